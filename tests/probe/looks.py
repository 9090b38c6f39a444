"""Looks at a sandbox from outside, and what is inherited: CAP, SYS, NSP, PRC, DEV, FDS, NET."""

import difflib
import errno
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess

import arms
import fixtures
import oracle

STANDARD_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin"
# Variables that the sandbox sets itself.
OWN_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "PWD", "TMPDIR", "CAISSON",
                 "CI", "DEBIAN_FRONTEND", "PAGER", "GIT_PAGER", "GIT_EDITOR", "GIT_TERMINAL_PROMPT")
ROOTFUL_MASK = 0xEB
DANGEROUS = ("mount", "bpf", "unshare", "setns", "io_uring_setup", "keyctl", "kexec_load", "init_module",
             "perf_event_open", "userfaultfd", "open_by_handle_at", "process_vm_readv", "reboot", "pivot_root",
             "fsopen", "clone3")


def compare_golden(corpus, name, text, result):
    path = f"{arms.HERE}/golden/{name}"
    if corpus.update and name not in corpus.updated:
        corpus.updated.add(name)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
    wanted = oracle.read(path)
    lines = difflib.unified_diff(wanted.splitlines(), text.splitlines(), "golden", "seen", "", "", 0)
    changes = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
    result.problems += [f"golden/{name}: {line}" for line in changes[:20]]


def masks_from_outside(corpus, row, result):
    for variant in row.variants:
        with corpus.hold(variant=variant) as h:
            allowed = ROOTFUL_MASK if variant == "rootful" else 0
            for pid in oracle.companions(h.pid):
                for mask in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                    bits = int((oracle.status(pid, mask) or ["ffff"])[0], 16)
                    if bits & ~(allowed if pid == h.pid else 0):
                        result.problems.append(f"{variant}: {mask} of host pid {pid} is {bits:x}, OPEN")


def set_id_image(corpus, row, result):
    for variant in row.variants:
        outcome = corpus.run(["/probe", "CAP-02", "/suid", "/sgid"], ("--image", "dir:{tmp}/image"), variant)
        result.problems += arms.judge_sandbox(row, outcome, variant + " image")


def ids_from_outside(corpus, row, result):
    """Rootless is single-user mode: the one id is the caller's own."""
    for variant in row.variants[:3]:
        with corpus.hold(variant=variant) as h:
            for key in ("Uid", "Gid", "Groups"):
                low = [i for i in oracle.status(h.pid, key) if int(i) < 65536]
                if low:
                    result.problems.append(f"{variant}: {key} has {low} on the host, OPEN")


def groups_of_caller(corpus, row, result):
    groups = [4, 6, 24, 27]
    result.control = "open" if corpus.control(("CAP-05",), extra_groups=groups).code == 0 else "stopped"
    for variant in row.variants:
        outcome = corpus.inside(("CAP-05",), variant=variant, extra_groups=groups)
        result.problems += arms.judge_sandbox(row, outcome, variant)


def _range(pid):
    start, count = [int(x) for x in oracle.read(f"/proc/{pid}/uid_map").split()[1:3]]
    return start, start + count


def disjoint_ids(corpus, row, result):
    del row
    result.control = "open"     # two bare processes share the one map of the host
    with corpus.hold(token="first-" + corpus.host.token) as a, corpus.hold(token="second-" + corpus.host.token) as b:
        (a0, a1), (b0, b1) = _range(a.pid), _range(b.pid)
        if a0 < b1 and b0 < a1:
            result.problems.append(f"ranges {a0}-{a1} and {b0}-{b1} overlap, OPEN")
        if min(a0, b0) < 65536:
            result.problems.append(f"range begins at {min(a0, b0)}: ids of the host, OPEN")


def preload_canary(corpus, row, result):
    del row
    marker = f"{corpus.host.tmp}/scratch/loaded"
    library = f"{corpus.host.tmp}/ws/preload.so"
    arms.execute(["/bin/true"], env={"LD_PRELOAD": library})
    result.control = "open" if os.path.exists(marker) else "stopped"
    os.unlink(marker)
    for name in ("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "GCONV_PATH", "PYTHONPATH", "GIT_EXEC_PATH", "BASH_ENV"):
        for value in (library, "/mnt/ws/preload.so"):
            outcome = corpus.run(["/bin/true"], ("-e", f"{name}={value}"))
            if os.path.exists(marker):
                result.problems.append(f"{name}={value} was loaded outside, OPEN")
            if outcome.code != 0:
                result.problems.append(f"{name}={value}: exit {outcome.code} {outcome.err.strip()[:80]}")


def _names():
    out = subprocess.run(["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                         capture_output=True, check=True)
    names = {int(n): name for name, n in re.findall(r"#define __NR_(\w+) (\d+)\n", out.stdout.decode())}
    younger = ("cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount "
               "lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat listxattrat "
               "removexattrat open_tree_attr file_getattr file_setattr")
    return {335: "uretprobe", 336: "uprobe", **{451 + i: n for i, n in enumerate(younger.split())}, **names}


def _census(text):
    return {int(n): c for n, c in (line.split() for line in text.splitlines())}


def census(corpus, row, result):
    """A number that this kernel has not got answers ENOSYS whatever the filter says."""
    nobody = ("unshare", "-i", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    bare = _census(corpus.control(("census",), nobody).text)
    names = _names()
    for variant in row.variants:
        seen = _census(corpus.inside(("census",), variant=variant).text)
        lines = oracle.read(f"{arms.HERE}/golden/syscalls.x86_64").splitlines()
        golden = {int(n): c for n, _, c in (line.split() for line in lines)}
        for n, c in seen.items():
            if golden.get(n) == "reached" and bare.get(n) == "ENOSYS" and c == "ENOSYS":
                seen[n] = "reached"
            if variant == "rootful" and names.get(n) == "setgroups":    # it has that capability, inside
                seen[n] = golden.get(n)
            if names.get(n) in DANGEROUS and c not in ("EPERM", "ENOSYS"):
                result.problems.append(f"{variant}: {names[n]} is {c}, OPEN")
        text = "".join(f"{n} {names.get(n, 'none')} {c}\n" for n, c in seen.items())
        compare_golden(corpus, "syscalls.x86_64", text, result)


def debug_own_child(corpus, row, result):
    """The other side of SYS-10: debuggers work on what is theirs."""
    del row
    for tool in (["/usr/bin/strace", "-f", "-o", "/dev/null", "/bin/true"],
                 ["/usr/bin/gdb", "-nx", "-batch", "-ex", "run", "/bin/true"]):
        if os.path.exists(tool[0]):
            outcome = corpus.run(tool)
            if outcome.code != 0:
                result.problems.append(f"{tool[0]}: exit {outcome.code} {outcome.err.strip()[:120]}")


TOOLS = {
    "git": "git init -q r && cd r && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x",
    "python3": "python3 -c 'import subprocess,threading,ssl,sqlite3; t=threading.Thread(target=print); t.start(); "
               "t.join(); subprocess.run([\"true\"],check=True)'",
    "cc": "printf 'int main(void){return 0;}' >a.c && cc a.c -o a && ./a",
    "node": "node -e 'require(\"child_process\").execFileSync(\"true\")'",
    "make": "printf 'all:\\n\\ttrue\\n' >Makefile && make -s",
    "ps": "ps aux | grep -q ps", "rg": "echo hit >f && rg -q hit f", "go": "go version", "rustc": "rustc --version",
    "java": "java -Xmx64m -version", "gdb": "gdb -nx -batch -ex run /bin/true", "strace": "strace -o /dev/null true",
    "perl": "perl -e 'fork // die; wait'", "bash": "bash -c 'x=$(echo a | tr a b); test $x = b'",
    "tar": "tar cf a.tar /etc/hosts",
    "tmux": "tmux -V", "sqlite3": "sqlite3 :memory: 'select 1'", "openssl": "openssl version", "npm": "npm --version",
    "vim": "vim --version",
}


def toolchains(corpus, row, result):
    del row
    result.control, done = "open", []
    for tool, line in TOOLS.items():
        if not shutil.which(tool, path=STANDARD_PATH):
            continue
        outcome = corpus.run(["/bin/bash", "-c", f"export PATH={STANDARD_PATH}; cd /work; " + line])
        done.append(tool)
        if outcome.code != 0:
            result.problems.append(f"{tool}: exit {outcome.code} {(outcome.err + outcome.text).strip()[-160:]}")
    result.sandbox = "works" if not result.problems else "BROKEN"
    result.notes.append("tools: " + " ".join(done))


def namespaces_differ(corpus, row, result):
    del row
    with corpus.hold(token="first-" + corpus.host.token) as a, corpus.hold(token="second-" + corpus.host.token) as b:
        for kind in oracle.NAMESPACES:
            seen = [oracle.namespace(p, kind) for p in (a.pid, b.pid, "self", "1")]
            if seen[0] == seen[1] or seen[0] in seen[2:] or not seen[0]:
                result.problems.append(f"{kind}: {seen} are not all different, OPEN")


def supervisors(corpus, row, result):
    outcome = corpus.control((row.id, "{canary}"))
    result.control, problems, _ = arms.judge_control(row, outcome)
    result.problems += problems
    for variant in row.variants:
        token = "supervised-" + corpus.host.token
        with corpus.hold(variant=variant, words=(row.id, "-", token), token=token) as h:
            outside = sorted(oracle.supervisors(h.pid) | {h.process.pid})
            targets = [str(p) for p in (*outside, corpus.host.canary.pid, int(corpus.values["other"])) if p > 200]
            limits = [oracle.read(f"/proc/{p}/limits") for p in outside]
            outcome = h.finish((" ".join(targets) + "\n").encode())
        result.problems += arms.judge_sandbox(row, outcome, variant)
        if len(outcome.attempts) != 5 * len(targets) or len(outside) < 1 or not all(limits):
            result.problems.append(f"{variant}: {len(outcome.attempts)} attempts on {len(targets)} targets")


def no_api_socket(corpus, row, result):
    del row
    listing = corpus.run(["/bin/sh", "-c", "ls -A /run /run/caisson 2>/dev/null"]).text.split()
    strange = set(listing) - {"/run:", "/run/caisson:", "caisson", "self.sock", "lock", "log", "shm"}
    if strange:
        result.problems.append(f"/run holds {sorted(strange)}")


def neighbour(corpus, row, result):
    row.expect, row.ops = "ENOENT", {"process": "0", "tcp": "ECONNREFUSED", "abstract": "ECONNREFUSED", "kill": "ESRCH"}
    token = "planted-" + corpus.host.token
    with arms.Held([corpus.probe, "plant", token]) as b:
        outcome = corpus.control((row.id, token, str(b.pid)))
    result.control, problems, _ = arms.judge_control(row, outcome)
    result.problems += problems
    for variant in row.variants:
        with corpus.hold(variant=variant, words=("plant", token), token=token) as b:
            if '"open":true' not in b.out:
                result.problems.append(f"{variant}: nothing could be planted: {b.out.strip()}")
            outcome = corpus.inside((row.id, token, str(b.pid)), variant=variant)
        result.problems += arms.judge_sandbox(row, outcome, variant)


def survivors(corpus, row, result):
    token = "survivor-" + corpus.host.token
    with arms.Held([corpus.probe, row.id, token]) as bare:
        bare.process.kill()
        left = [p for p in oracle.pids_with(token) if p != bare.pid]
        result.control = "open" if len(left) >= 3 else "stopped"
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    argv, env = arms.caisson(corpus.host, ("--timeout", "3s"), ["/mnt/probe/probe", row.id, token])
    with arms.Held(argv, env, token) as h:
        outcome = h.finish()
    if outcome.code != 124:
        result.problems.append(f"timeout: exit {outcome.code}, expected 124")
    if not oracle.wait_until(lambda: not oracle.pids_with(token)):
        result.problems.append(f"after the timeout {oracle.pids_with(token)} survive, OPEN")
    argv, env = arms.caisson(corpus.host, (), ["/mnt/probe/probe", row.id, token])
    with arms.Held(argv, env, token) as h:
        h.process.kill()
        h.process.communicate()
    if not oracle.wait_until(lambda: not oracle.pids_with(token)):
        result.problems.append(f"after SIGKILL of the client {oracle.pids_with(token)} survive, OPEN")


def propagation(corpus, row, result):
    """A mount that the host makes after the start, in a mount namespace where all is shared."""
    folder = f"{corpus.host.tmp}/prop"
    os.mkdir(folder)
    row.ops, row.expect = {"propagation": "0"}, "ENOENT"
    shared = ["unshare", "-m", "--propagation", "shared", "sh", "-c", '"$@"; exit $?', "sh"]
    argv, env = arms.caisson(corpus.host, ("-i", "--fs", f"ro:{folder}:/mnt/prop"),
                             ["/mnt/probe/probe", row.id, "/mnt/prop/flag"])
    bare = ["unshare", "-m", "--propagation", "slave", corpus.probe, row.id, f"{folder}/flag"]
    def looked(held, holder):
        """`holder` is in the namespace whose mounts spread."""
        with held as h:
            subprocess.run(["nsenter", "-t", str(holder or h.process.pid), "-m", "sh", "-c",
                            f"mount -t tmpfs none {folder} && touch {folder}/flag"], check=True)
            return h.finish()

    result.control, problems, _ = arms.judge_control(row, looked(arms.Held([*shared, *bare], env), None))
    result.problems += problems
    with arms.Daemon(corpus.host, before=shared[:4]) as d:
        held = arms.Held(argv, {**env, "CAISSON_SOCKET": d.socket})
        result.problems += arms.judge_sandbox(row, looked(held, d.process.pid), "agent")


def hostile_images(corpus, row, result):
    del row
    victim, root, count, outcomes = f"{corpus.host.tmp}/victim", f"{corpus.host.tmp}/hostile", 0, {}
    for name, path, make_it in fixtures.hostile_images(corpus.host):
        before = oracle.tree_hash(victim)
        fixtures.minimal_image(corpus.host, root)
        fixtures.place_hostile(root, path, make_it)
        outcome = corpus.run(["/probe", "CGR-05", "1", "1", "/tmp", "/dev", "/run"], ("--image", f"dir:{root}"))
        count += 1
        outcomes[outcome.code] = outcomes.get(outcome.code, 0) + 1
        if oracle.tree_hash(victim) != before:
            result.problems.append(f"{name}: the host's tree changed, OPEN")
        if outcome.code not in (0, 1, 125):
            result.problems.append(f"{name}: exit {outcome.code} {outcome.err.strip()[:120]}")
        if outcome.code == 125 and path.split("/")[0] not in outcome.err:
            result.problems.append(f"{name}: refused without naming {path}: {outcome.err.strip()[:120]}")
        shutil.rmtree(root)
    result.control = "open"     # a link in a tree leads anywhere: that is what links do
    result.notes.append(f"{count} images; exit codes {outcomes}")


def device_list(corpus, row, result):
    bare = corpus.control(("devices",)).text.splitlines()
    result.control = "open" if len(bare) > 40 or any("kmsg" in line for line in bare) else "stopped"
    for variant in row.variants:
        lines = corpus.inside(("devices",), variant=variant).text.splitlines(True)
        compare_golden(corpus, "devices", "".join(sorted(lines)), result)


def _extra_fds(count):
    fds = []
    for i in range(count):
        fds += [os.open("/", os.O_RDONLY)] if i % 3 == 0 else list(os.pipe()) if i % 3 == 1 else [os.dup(2)]
    return fds


def inherited_fds(corpus, row, result):
    fds = _extra_fds(20)
    row.ops, row.expect = {"beyond-stderr": "EBADF"}, "0"
    result.control = "open" if corpus.control(("FDS-01",), pass_fds=fds).code == 0 else "stopped"
    for variant in row.variants:
        for flags in ((), ("-i",)):
            outcome = corpus.inside(("FDS-01",), flags, variant, pass_fds=fds)
            result.problems += arms.judge_sandbox(row, outcome, variant)
        for fd in fds:
            os.set_inheritable(fd, True)
        result.problems += arms.judge_sandbox(row, corpus.inside(("FDS-01",), (), variant, tty=True), variant + " tty")
    for fd in fds:
        os.close(fd)


def shuffled_fds(corpus, row, result):
    del row
    rng = random.Random(4)
    result.control = "open"     # a bare exec keeps whatever the parent left open: FDS-01
    argv, env = arms.caisson(corpus.host, (), ["/mnt/probe/probe", "FDS-04"])
    for closed in range(8):
        for extra in (0, rng.randrange(1, 64)):
            fds = _extra_fds(extra)
            shut = " ".join(f"{fd}>&-" for fd in range(3) if closed & 1 << fd)
            outcome = arms.execute(["sh", "-c", f'exec "$@" {shut}', "sh", *argv], env=env, pass_fds=fds)
            for fd in fds:
                os.close(fd)
            if outcome.code not in (1, 125):
                result.problems.append(f"closed {closed:03b}, {extra} more: exit {outcome.code} {outcome.err[:80]}")


def environment(corpus, row, result):
    token = corpus.host.token
    env = {"PATH": f"/usr/bin:/bin:/{token}", "HOME": f"/root/{token}", "SSH_AUTH_SOCK": f"/tmp/{token}",
           "CANARY": token, "USER": token, "GITHUB_TOKEN": token, "LANG": "C",
           "http_proxy": f"http://{token}.example.org"}
    row.expect, row.ops = "0", {"environ-of-init": "ENOENT"}
    words = ("FDS-05", token, *OWN_VARIABLES)
    outcome = corpus.control(words, env=env)
    result.control, problems, _ = arms.judge_control(row, outcome)
    result.problems += [p for p in problems if "environ-of-init" not in p]
    for variant in row.variants:
        argv, own = arms.caisson(corpus.host, (), ["/mnt/probe/probe", *words], None, variant)
        result.problems += arms.judge_sandbox(row, arms.execute(argv, env={**own, **env}), variant)


def _odd_parent():
    os.umask(0)
    os.nice(5)
    os.sched_setaffinity(0, {0})
    for limit, soft in ((resource.RLIMIT_NOFILE, 512), (resource.RLIMIT_CPU, 500), (resource.RLIMIT_STACK, 1 << 20),
                        (resource.RLIMIT_FSIZE, 1 << 30)):
        resource.setrlimit(limit, (soft, resource.getrlimit(limit)[1]))
    signal.setitimer(signal.ITIMER_REAL, 500)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    for sig in (signal.SIGINT, signal.SIGPIPE, signal.SIGUSR2, signal.SIGCHLD):
        signal.signal(sig, signal.SIG_IGN)
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
        f.write("500")


def inherited_state(corpus, row, result):
    usual, odd = corpus.control(("state",)), corpus.control(("state",), ("setarch", "-R"), preexec_fn=_odd_parent)
    result.control = "open" if usual.text != odd.text else "stopped"
    argv, env = arms.caisson(corpus.host, ("--files", "256"), ["/mnt/probe/probe", "state"])
    compare_golden(corpus, "state", arms.execute(argv, env=env).text, result)
    with arms.Daemon(corpus.host, before=("setarch", "-R"), preexec_fn=_odd_parent) as d:
        seen = d.run(["setarch", "-R", *argv], preexec_fn=_odd_parent)
    for line in sorted(set(seen.text.splitlines()) - set(oracle.read(f"{arms.HERE}/golden/state").splitlines())):
        result.problems.append(f"comes from the caller: {line}, OPEN")
    with arms.Daemon(corpus.host, preexec_fn=lambda: os.umask(0o777)) as d:
        strict = d.run(argv, preexec_fn=lambda: os.umask(0o777))
    for name, outcome in (("odd parent", seen), ("umask 0777", strict)):
        if outcome.code not in (0, 1):
            result.problems.append(f"{name}: exit {outcome.code} {outcome.err.strip()[:120]}")
    del row


def keyring_quota(corpus, row, result):
    """No command runs with the session keyring of whoever started it: not even where none other can be made."""
    del row
    faults = f"{corpus.host.tmp}/faults-of-keys"
    for error, code in ((errno.ENOSYS, 0), (errno.EDQUOT, 125)):    # built without keys: there is none to leave
        with open(faults, "w", encoding="ascii") as f:
            f.write(f"FAIL_AT=keyctl:{error}\n")
        argv, env = arms.caisson(corpus.host, (), ["/bin/true"])
        with arms.Daemon(corpus.host, "caisson-launcher-test", env={"CAISSON_FAULTS": faults}) as d:
            outcome = d.run(argv, env=env)
        if outcome.code != code:
            result.problems.append(f"{errno.errorcode[error]}: exit {outcome.code}, not {code}"
                                   + (", OPEN" if outcome.code == 0 else f": {outcome.err.strip()[:120]}"))
    result.control = "-"


def uplink_silent(corpus, row, result):
    """An address that is nobody's goes out by the default route, if there is one."""
    words = (row.id, "udp/203.0.113.9/9", ("talk" if row.flags else "tcp") + "/203.0.113.9/443")
    before = oracle.uplink_packets()
    corpus.control(words[:2])
    if oracle.uplink_packets() == before:
        result.problems.append("control: no packet reached the uplink")
    before = oracle.uplink_packets()
    for variant in row.variants:
        result.problems += arms.judge_sandbox(row, corpus.inside(words, row.flags, variant), variant)
    if oracle.uplink_packets() != before:
        result.problems.append("packets left by the uplink, OPEN")


def resolver(corpus, row, result):
    del row
    hits = corpus.host.listeners.settled()
    outcome = corpus.run(["/usr/bin/getent", "hosts", "data.example.org"])
    if outcome.code == 0 or corpus.host.listeners.settled() != hits:
        result.problems.append(f"a name was asked for: exit {outcome.code}, OPEN")


def listed_resolver(corpus, row, result):
    """The list has one name, which has an address of ours; nobody is asked for any."""
    hits = corpus.host.listeners.settled()
    for name, want in (("listed.example.org", 0), ("data.example.org", 2), ("data.listed.example.org", 2)):
        outcome = corpus.run(["/usr/bin/getent", "hosts", name], row.flags)
        if outcome.code != want or (want == 0) != outcome.text.startswith("198.18."):
            result.problems.append(f"{name}: exit {outcome.code} {outcome.text.strip()}, OPEN")
    if corpus.host.listeners.settled() != hits:
        result.problems.append("a name was asked for outside, OPEN")


def listens_inside(corpus, row, result):
    def reachable(port):
        with socket.socket() as s:
            s.settimeout(20)
            return s.connect_ex(("127.0.0.1", port)) == 0

    with arms.Held([corpus.probe, row.id, "47012", "@hold"]):
        result.control = "open" if reachable(47012) else "stopped"
    token = "listens-" + corpus.host.token
    with corpus.hold(words=(row.id, "47013", token, "@hold"), token=token) as h:
        if "true" not in h.out:
            result.problems.append("nothing listens inside: " + h.out)
        if reachable(47013):
            result.problems.append("the host reaches a port of the sandbox, OPEN")
