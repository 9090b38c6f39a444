"""CFG and the tables of the command line: whatever is not understood is refused."""

import glob
import json
import os
import re
import shlex
import subprocess

import arms
import oracle
from rows import ROWS

REFUSED = arms.REFUSED
ENOSYS, EPERM, EACCES, EINVAL = 38, 1, 13, 22
WALLS = ("seccomp", "landlock", "masks", "caps", "netns", "netwalls", "cgroup", "hidepid", "nodev", "notify", "proof")

# (value, uid inside or None for refused)
USERS = (
    ("agent", 1000), ("root", 0), ("0", 0), ("0:0", 0), ("1000", 1000), ("1000:1000", 1000), ("-1", None),
    ("4294967295", None),
    ("4294967296", None), ("18446744073709551616", None), (" 0", None), ("0 ", None), ("1:0x0", None), ("0x0", None),
    ("+0", None),
    ("\u0660", None), ("\uff10", None), ("", None), ("1:", None), (":0", None), ("1:-1", None), ("1e0", None),
    ("root\n", None),
    ("nosuchuser", None), ("0:0:0", None), ("root:root:root", None), ("../root", None))
DIRECTORIES = (
    "/proc/self/fd/3", "/proc/self/fd/0", "/proc/self/cwd/..", "/proc/1/root", "/proc/self/root", "/mnt/ws/link-out",
    "/mnt/ws/link-fd",
    "relative", "..", "", "/nonexistent", "/work/../../../..", "/" + "a/" * 2500, "/" + "b" * 4096, "/etc/passwd",
    "/work\n")
# What the kernel is made to lack: calls with the errno, and a word that the refusal must hold.
LACKING = {
    "seccomp": (("317:38",), "seccomp"), "landlock": (("444:38",), "landlock"),
    "landlock disabled": (("444:95",), "landlock"),
    "user namespaces": (("435:1", "272:1"), "namespace|clone"), "mount calls": (("428:38", "430:38"),
        "open_tree|tmpfs|clone|fsopen|mount"),
    "mount_setattr": (("442:38",), "map|mount|attr"), "pivot_root": (("155:1",), "root")}
SPECS = {
    "missing": None, "empty": "", "spaces": "  \n", "half": '{"net":{"mode":"deny"', "list": "[]", "text": '"deny"',
    "number": "7", "null": "null",
    "binary": "\x00\x01\x02", "bad utf-8": b"\xff\xfe", "wrong type": '{"limits":"lots"}',
    "wrong inside": '{"limits":{"mem":{}}}'}
KEYS = (
    '{"nett":"deny"}', '{"limits":{"memory":"1g"}}', '{"net":"deny","net":"allow"}', '{"net":"deny"} trailing',
    '{"net":"deny"}{"net":"allow"}',
    '{"net":"denny"}', '{"fs":"ephemral:/work"}', '{"limits":{"pids":-1}}', '{"limits":{"pids":1e400}}',
    '{"profile":"privileged"}',
    '{"privileged":true}', '{"caps":["SYS_ADMIN"]}', '{"user":"agent","User":"root"}', "net: deny\nnet: allow\n",
    "net: deny\n---\nnet: allow\n",
    '{"creds":{"x":"literal-secret-value"}}', '{"fs":["ephemeral:/work","ro:/usr:/work"]}',
    '{"fs":"ephemeral:relative"}')
NETS = ("", " ", "allow:", "allow: ", "allow:,", "allow:#", "allow:# comment", "denny", "Deny", "deny ",
        "allow:example.org,", "none", "null", "[]", "{}",
        "allow:\x01", "ALLOW", "example.org")
HOSTILE_ENV = {
    "DOCKER_HOST": "tcp://198.51.100.7:2375", "HTTP_PROXY": "http://198.51.100.7:8080",
    "https_proxy": "http://198.51.100.7:8080",
    "ALL_PROXY": "socks5://198.51.100.7:8080", "GIT_DIR": "/tmp", "GIT_EXEC_PATH": "/tmp",
    "XDG_RUNTIME_DIR": "/nonexistent", "XDG_CONFIG_HOME": "/tmp",
    "XDG_STATE_HOME": "/nonexistent", "TMPDIR": "/nonexistent", "HOME": "/nonexistent", "PATH": "/nonexistent",
    "IFS": "/", "ENV": "/tmp/x",
    "CAISSON_LAYER_OFF": "seccomp", "CAISSON_FAIL_AT": "3", "CAISSON_KILL_AT": "5", "CAISSON_SOCKET": "/nonexistent",
    "LC_ALL": "xx_XX", "TZ": "../../x"}


def refused(result, name, outcome, word=""):
    if "payload-ran" in outcome.text:
        result.problems.append(f"{name}: the command ran, OPEN")
    elif outcome.code != REFUSED or not outcome.err.strip() or not re.search(word, outcome.err, re.IGNORECASE):
        result.problems.append(f"{name}: exit {outcome.code}, said: {outcome.err.strip()[:140]}")


def user_table(corpus, row, result):
    del row
    result.control = "accepts"
    for text, uid in USERS:
        outcome = corpus.run(["/mnt/probe/probe", "cat", "/proc/self/status"], ("-u", text))
        seen = re.search(r"Uid:\s+(\d+)\s+(\d+)", outcome.text)
        if uid is None:
            refused(result, f"-u {text!r}", outcome)
            if seen:
                result.problems.append(f"-u {text!r} ran as {seen[1]}, OPEN")
        elif not seen or {int(seen[1]), int(seen[2])} != {uid}:
            result.problems.append(f"-u {text!r}: {seen and seen[0]} exit {outcome.code} {outcome.err.strip()[:80]}")


def workdir_table(corpus, row, result):
    """Descriptor 3 of the client is the folder with the secret."""
    del row
    with_fd = ["sh", "-c", f'exec "$@" 3<{corpus.host.tmp}', "sh"]
    bare = arms.execute([*with_fd, "sh", "-c", "cd /proc/self/fd/3 && cat secret"])
    result.control = "open" if corpus.host.token in bare.text else "stopped"
    races = ["/work/../../../.."] * 40  # upwards, while the host's root goes away
    for path in [*DIRECTORIES, *races]:
        argv, env = arms.caisson(corpus.host, ("-w", path), ["/bin/sh", "-c", "pwd -P; cat secret; cat ../secret"])
        outcome = arms.execute([*with_fd, *argv], env=env)
        lines = outcome.text.splitlines()
        if corpus.host.token in outcome.text:
            result.problems.append(f"-w {path[:40]!r} leads outside, OPEN")
        elif outcome.code not in (REFUSED, 126, 127) and not (lines and lines[0].startswith("/")
                                                              and "unreachable" not in lines[0]):
            result.problems.append(f"-w {path[:40]!r}: exit {outcome.code} {outcome.text[:60]!r} {outcome.err[:80]}")


def missing_layers(corpus, row, result):
    del row
    argv, env = arms.caisson(corpus.host, (), ["/bin/echo", "payload-ran"])
    result.control = "open" if "payload-ran" in arms.execute(argv, env=env).text else "stopped"
    for name, (calls, word) in LACKING.items():
        with arms.Daemon(corpus.host, before=(corpus.probe, "mask", *calls, "--")) as d:
            refused(result, f"no {name}", d.run(argv), word)
    hide = ["unshare", "-m", "sh", "-c", 'umount -l /sys/fs/cgroup; exec "$@"', "sh"]
    named, _ = arms.caisson(corpus.host, ("--mem", "64m"), ["/bin/echo", "payload-ran"])
    with arms.Daemon(corpus.host, before=hide) as d:
        refused(result, "no cgroups, mem named", d.run(named), "unenforceable: mem")
        outcome = d.run(argv)
    if outcome.code != 0 or "mem" not in outcome.err:
        result.problems.append(f"no cgroups, nothing named: exit {outcome.code}, said: {outcome.err.strip()[:120]}")
    if os.path.isdir("/sys/fs/cgroup/memory"):    # v1 cannot be handed to a user
        refused(result, "rootless, mem named", corpus.run(["/bin/echo", "payload-ran"], ("--mem", "64m"), "rootless"),
                "unenforceable: mem")


def _with_spec(corpus, text):
    path = f"{corpus.host.tmp}/scratch/spec"
    if text is not None:
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())
    outcome = corpus.run(["/bin/echo", "payload-ran"], ("--spec", path))
    if text is not None:
        os.unlink(path)
    return outcome


def broken_specs(corpus, row, result):
    del row
    result.control = "open" if "payload-ran" in _with_spec(corpus, '{"net":{"mode":"deny"}}').text else "stopped"
    for name, text in SPECS.items():
        refused(result, name, _with_spec(corpus, text))
    for path in (corpus.host.tmp, "/dev/null", "/proc/self/mem"):
        refused(result, path, corpus.run(["/bin/echo", "payload-ran"], ("--spec", path)))
    os.chmod(corpus.host.secret, 0o600)
    argv, env = arms.caisson(corpus.host, ("--spec", corpus.host.secret), ["/bin/echo", "payload-ran"])
    refused(result, "unreadable", arms.execute(argv, env=env, user=65533, group=65533, extra_groups=[]))


def unknown_keys(corpus, row, result):
    del row
    result.control = "open" if "payload-ran" in _with_spec(corpus,
                                                           "net: deny\nlimits: {pids: 64}\n").text else "stopped"
    for text in KEYS:
        refused(result, text, _with_spec(corpus, text))


def net_table(corpus, row, result):
    del row
    result.control = "accepts" if corpus.run(["/bin/echo", "payload-ran"], ("--net", "deny")).code == 0 else "stopped"
    for text in NETS:
        refused(result, f"--net {text!r}", corpus.run(["/bin/echo", "payload-ran"], ("--net", text)))


def workspace_config(corpus, row, result):
    """A working folder full of files that ask for more than the command line gives."""
    del row
    folder, marker = f"{corpus.host.tmp}/hostile-ws", f"{corpus.host.tmp}/scratch/executed"
    os.makedirs(f"{folder}/.git/hooks")
    script = f"#!/bin/sh\ntouch {marker}\n"
    for name, text in (("caisson.yaml", "net: allow\nprofile: rootful\nuser: root\nsetup: ['touch " + marker + "']\n"),
                       ("caisson.json", '{"net":"allow"}'),
                       (".caisson", "net: allow\n"), (".env", f"LD_PRELOAD={corpus.host.tmp}/ws/preload.so\n"),
                       (".envrc", script),
                       ("devcontainer.json", json.dumps({"initializeCommand": f"touch {marker}"})), (".mcp.json", "{}"),
                       ("AGENTS.md", script),
                       (".git/hooks/post-checkout", script), (".git/config", f"[core]\n\tfsmonitor = touch {marker}\n"),
                       ("true", script)):
        with open(f"{folder}/{name}", "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(f"{folder}/{name}", 0o755)
    subprocess.run([f"{folder}/true"], check=True)
    result.control = "open" if os.path.exists(marker) else "stopped"
    os.unlink(marker)
    hits = corpus.host.listeners.settled()
    for flags in ((), ("--fs", f"overlay:{folder}:/src")):
        outcome = corpus.inside(("NET-02", "tcp/127.0.0.1/80", "tcp/198.51.100.7/80"), flags, cwd=folder)
        status = corpus.run(["/mnt/probe/probe", "cat", "/proc/self/status"], flags, cwd=folder)
        if outcome.code != 1 or corpus.host.listeners.settled() != hits or os.path.exists(marker):
            result.problems.append(f"exit {outcome.code}, marker {os.path.exists(marker)}, OPEN")
        if not re.search(r"Uid:\s+1000\s", status.text) or not re.search(r"CapEff:\s+0+\n", status.text):
            result.problems.append("the folder chose who the command runs as, OPEN")


def hostile_environment(corpus, row, result):
    del row
    result.control = "-"
    words = ("NET-02", "tcp/127.0.0.1/80"), ("SYS-05",), ("CAP-01",)
    for name, value in {**HOSTILE_ENV, "LD_LIBRARY_PATH": corpus.host.tmp}.items():
        for w in words:
            argv, env = arms.caisson(corpus.host, (), ["/mnt/probe/probe", *w])
            outcome = arms.execute(argv, env={**env, name: value})
            if outcome.code not in (1, REFUSED):
                result.problems.append(f"{name}={value}: {w[0]} exit {outcome.code} {outcome.err.strip()[:100]}")
    with arms.Daemon(corpus.host, env={**HOSTILE_ENV, "PATH": os.environ["PATH"]}) as d:    # of the launcher's caller
        for w in words:
            outcome = d.run(arms.caisson(corpus.host, (), ["/mnt/probe/probe", *w])[0])
            if outcome.code not in (1, REFUSED):
                result.problems.append(f"the launcher's: {w[0]} exit {outcome.code} {outcome.err.strip()[:100]}")


def doctor(corpus, row, result):
    """What this host really has: each weak setting must be named in the report."""
    del row
    with corpus.host.may_load():  # it is the host's own, and tries what a sandbox will ask for
        outcome = arms.execute([f"{arms.BUILD}/caisson", "doctor", "--json"])
    try:
        json.loads(outcome.text)
    except ValueError as e:
        result.problems.append(f"no JSON: {e}: {outcome.text[:80]}")
    weak = {"io_uring": ("kernel/io_uring_disabled", "0"), "tiocsti": ("dev/tty/legacy_tiocsti", "1"),
            "unprivileged_bpf": ("kernel/unprivileged_bpf_disabled", "0"),
            "perf_event_paranoid": ("kernel/perf_event_paranoid", "-1"),
            "kptr_restrict": ("kernel/kptr_restrict", "0"), "dmesg_restrict": ("kernel/dmesg_restrict", "0")}
    found = [w for w, (path, value) in weak.items() if oracle.read(f"/proc/sys/{path}").strip() == value]
    if not os.path.exists("/proc/sys/kernel/yama"):
        found.append("yama")
    result.control = "open" if found else "absent"
    result.problems += [f"doctor does not name {w}" for w in found if w not in outcome.text.lower()]
    result.notes.append("weak here: " + " ".join(found))


def _notices_notify(corpus):
    def listeners(layer):
        token = "notify-" + corpus.host.token
        argv, env = arms.caisson(corpus.host, ("-i",), ["/mnt/probe/probe", "hold", token], layer)
        with arms.Held(argv, env, token) as h:
            links = glob.glob(f"/proc/{oracle.parent(h.pid)}/fd/*")
            return sum("seccomp notify" in os.readlink(p) for p in links if os.path.islink(p))
    return listeners(None) > 0 and listeners("notify") == 0


def _notices_proof(corpus):
    """An outer filter that answers a call otherwise is the kind of surprise that the proof is for."""
    faults = f"{corpus.host.tmp}/faults-of-proof"
    codes = []
    with open(faults, "w", encoding="ascii"):
        pass
    with arms.Daemon(corpus.host, "caisson-launcher-test", (corpus.probe, "mask", f"42:{EACCES}", "--"),
                     env={"CAISSON_FAULTS": faults}) as d:
        for off in ("", "LAYER_OFF=proof\n"):
            with open(faults, "w", encoding="ascii") as f:
                f.write(off)
            codes.append(d.run(arms.caisson(corpus.host, (), ["/bin/true"])[0]).code)
    return codes == [REFUSED, 0]


def mutants(corpus, row, result):
    """Each wall left out is a mutant; a row of this run must have noticed."""
    result.control = "-"
    if _notices_notify(corpus):
        corpus.missed("notify", row)
    if _notices_proof(corpus):
        corpus.missed("proof", row)
    for wall in WALLS:
        tried = any(wall in r.off for r in ROWS) or wall in ("notify", "proof")
        if wall not in corpus.seen:
            result.problems.append(f"{wall}: no row notices that it is gone" + ("" if tried else " (none tries)"))
    result.notes += [f"{w} is missed by {' '.join(ids)}" for w, ids in corpus.seen.items()]


def readme(corpus, row, result):
    """The flags of every `caisson run` in the README, with three P0 rows as the command."""
    del row
    text = oracle.read(f"{arms.ROOT}/README.md")
    lines = re.findall(r"^\s*(?:\$ )?(?:sudo )?(?:build/|\./)?caisson run (.*?)--(?: |$)", text, re.MULTILINE)
    result.control = "-"
    if not lines:
        result.problems.append("README.md shows no `caisson run ... -- command`")
    for line in dict.fromkeys(lines):
        flags = [w for w in shlex.split(line) if w not in ("-t", "-it", "--json")]
        own = ["--fs", f"ro:{corpus.host.tmp}/bin:/mnt/probe"]
        for words in (("SYS-05",), ("CAP-01",), ("NET-02", "tcp/127.0.0.1/80")):
            outcome = arms.execute([f"{arms.BUILD}/caisson", "run", *flags, *own, "--", "/mnt/probe/probe", *words],
                                   cwd=f"{corpus.host.tmp}/scratch")
            if outcome.code not in (1, REFUSED):
                result.problems.append(f"caisson run {line}: {words[0]} exit {outcome.code} {outcome.err.strip()[:80]}")
