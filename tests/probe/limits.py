"""CGR: small bombs, while a neighbour and the host go on working."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import threading
import time

import arms
import oracle

RSS_MAX_KIB = 32 * 1024
BOMBS = {
    "fork": ("--pids", "64"), "memory": ("--mem", "64m"), "disk": ("--disk", "32m"), "processor": ("--cpu", "0.5")}
BOMB_WORDS = {"fork": ("CGR-01", "100000"), "memory": ("CGR-03", "4096"), "disk": ("CGR-05", "4096", "10", "/work"),
              "processor": ("CGR-07", "1500", "1000")}


def neighbour_works(corpus, result, when):
    """Another sandbox starts, computes and ends; the host forks."""
    outcome = corpus.run(["/bin/sh", "-c", "echo $((6 * 7))"])
    if outcome.code != 0 or outcome.text.strip() != "42":
        result.problems.append(f"{when}: the neighbour failed: exit {outcome.code} {outcome.err.strip()[:100]}")
    if subprocess.run(["/bin/true"], check=False).returncode != 0:
        result.problems.append(f"{when}: the host cannot fork")


def bomb_with_neighbour(corpus, row, result):
    token = "bomb-" + corpus.host.token
    with corpus.hold(row.flags, words=(row.id, "200", token, "@hold"), token=token) as h:
        path = oracle.cgroup_folder(h.pid, "pids")
        now, most = oracle.read(f"{path}/pids.current").strip(), oracle.read(f"{path}/pids.max").strip()
        pid_1 = 0 if os.path.exists(f"{path}/cgroup.controllers") else 1    # on v1 it is in this group and counted beside
        if not now or int(now) > 64 + pid_1 or most != str(64 + pid_1):
            result.problems.append(f"pids.current {now or 'unknown'}, pids.max {most}, OPEN")
        neighbour_works(corpus, result, "during the bomb")
    if not oracle.wait_until(lambda: not os.path.exists(path)):
        result.problems.append("the group is still there")


def memory_bomb(corpus, row, result):
    result.control = "open"
    for how in ("anon", "mlock", "cow"):
        bare = corpus.control((row.id, "96", how))
        if bare.code != 0:
            result.problems.append(f"control: {how}: exit {bare.code}")
        outcome = corpus.inside((row.id, "96", how), ("--mem", "64m"))
        if outcome.code != 137:
            result.problems.append(f"{how}: exit {outcome.code}, expected 137, OPEN")
        without = corpus.inside((row.id, "96", how), ("--mem", "64m"), layer="cgroup")
        result.off["cgroup"] = "open" if without.code == 0 else f"exit {without.code}"
    if result.off["cgroup"] == "open":
        corpus.missed("cgroup", row)
    report = corpus.inside((row.id, "96"), ("--mem", "64m", "--json"))
    if '"oom"' not in report.text:
        result.problems.append(f"the result does not say oom: {report.text[:120]}")
    neighbour_works(corpus, result, "after the bomb")


def cpu_quota(corpus, row, result):
    with corpus.hold(row.flags) as h:
        files = oracle.cgroup_files(h.pid)
        quota = {v for k, v in files.items() if k.endswith(("cpu.cfs_quota_us", "cpu.max"))}
        if not quota & {"50000", "50000 100000"}:
            result.problems.append(f"quota is {files}, expected 50000, OPEN")


def filter_bound(corpus, row, result):
    """With a bound of 8 in place of the real one: the real one is tried where a kernel may stop, in the guest."""
    result.control, problems, _ = arms.judge_control(row, corpus.control((row.id, *row.args)))
    result.problems += problems
    for variant in row.variants:
        argv, env = arms.caisson(corpus.host, ("--json",), ["/mnt/probe/probe", row.id, *row.args], None, variant)
        uid = arms.ROOTLESS_ID if variant == "rootless" else 0
        with arms.Daemon(corpus.host, "caisson-launcher-test", uid=uid, env={"CAISSON_FILTERS_MAX": "8"}) as d:
            outcome = d.run(argv, env=env)
        said = json.loads(outcome.text)
        inside = arms.Outcome(said["exit_code"], said["stdout"], "")
        result.problems += arms.judge_sandbox(row, inside, variant)
        if not any(v["kind"] == "limit" and v["target"] == "filters" for v in said["violations"]):
            result.problems.append(f"{variant}: not on record: {said['violations']}")


GENEROUS = {resource.RLIMIT_RTPRIO: 50, resource.RLIMIT_NICE: 40, resource.RLIMIT_RTTIME: resource.RLIM_INFINITY,
            resource.RLIMIT_MEMLOCK: resource.RLIM_INFINITY, resource.RLIMIT_MSGQUEUE: resource.RLIM_INFINITY,
            resource.RLIMIT_SIGPENDING: 1 << 20}


def _generous():
    for limit, value in GENEROUS.items():
        resource.setrlimit(limit, (value, value))


def generous_limits(corpus, row, result):
    """The caller may do all of it without any right, as a member of the group `audio` does: by its limits."""
    able = subprocess.run(["prlimit", "--rtprio=50", "--nice=40", "--memlock=-1", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0    # it takes CAP_SYS_RESOURCE
    generous = _generous if able else None
    if able:
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        result.control, problems, _ = arms.judge_control(row, corpus.control((row.id,), nobody, preexec_fn=generous))
        result.problems += problems
    else:
        result.control = "absent"
        result.notes.append("nobody here may raise the limits of the caller: the sandbox alone")
    for variant in row.variants:
        argv, env = arms.alone(corpus.host, row.flags, ["/mnt/probe/probe", row.id], variant)
        result.problems += arms.judge_sandbox(row, arms.execute(argv, env=env, preexec_fn=generous), variant)


def output_flood(corpus, row, result):
    """Sizes only: 256 MiB come out of the command, the cap is 1 MiB."""
    del row
    result.control = "open" if len(corpus.control(("flood", "8")).text) == 8 << 20 else "stopped"
    for piece in ("65536", "1000"):
        argv, env = arms.caisson(corpus.host, ("--output", "1m", "--timeout", "60s"),
                                 ["/mnt/probe/probe", "flood", "256", piece])
        flood = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                 env=env)
        size, peak = 0, 0
        launcher = corpus.host.daemons.of("agent").process.pid    # what its monitors have, and itself
        watched = {p for p in oracle.descendants(launcher) if oracle.program(p) == "caisson-launcher"} | {launcher}
        while chunk := flood.stdout.read1(1 << 20):
            size += len(chunk)
            for pid in {flood.pid} | watched if size % 7 == 0 else {flood.pid}:
                peak = max(peak, int((oracle.status(pid, "VmHWM") or ["0"])[0]))
        flood.wait()
        if size > 2 << 20:
            result.problems.append(f"pieces of {piece}: {size >> 20} MiB came out, OPEN")
        if peak > RSS_MAX_KIB:
            result.problems.append(f"pieces of {piece}: {peak} KiB resident, OPEN")
        result.notes.append(f"pieces of {piece}: {size} bytes out, exit {flood.returncode}, {peak} KiB resident")


def io_hog(corpus, row, result):
    """A named io limit is enforced or refused; without one a storm stays in memory, which is bounded."""
    del row
    result.control = "open" if corpus.control(("fsync-storm", corpus.host.tmp + "/scratch",
                                               "300")).code == 1 else "stopped"
    named = corpus.run(["/bin/true"], ("--io", "1m"))
    if not (named.code == 0 or (named.code == 125 and "io" in named.err)):
        result.problems.append(f"--io 1m: exit {named.code} {named.err.strip()[:100]}")
    storm = threading.Thread(target=corpus.inside, args=(("fsync-storm", "/work", "1000"),))
    storm.start()
    neighbour_works(corpus, result, "during the storm")
    storm.join()
    result.notes.append("--io: " + ("enforced" if named.code == 0 else "refused: " + named.err.strip()[:90]))


def limits_unchanged(corpus, row, result):
    token = "limits-" + corpus.host.token
    for variant in row.variants:
        with corpus.hold((*row.flags, "--pids", "64", "--mem", "64m"), variant, (row.id, *row.args, token, "@hold"),
                         token) as h:
            files = oracle.cgroup_files(h.pid)
            found = set(files.values())
            if not {"64", "65"} & found or str(64 << 20) not in found:    # 65: with pid 1, on v1
                result.problems.append(f"{variant}: limits are {files}, OPEN")


CONTROLLERS = ("cpu", "cpuacct", "memory", "pids", "devices", "freezer", "blkio", "net_cls", "unified")


def every_controller(corpus, row, result):
    own = oracle.cgroup_of("self")
    result.control = "open" if all(p == "/" or p == own[n] for n,
                                   p in oracle.cgroup_of(corpus.host.canary.pid).items()) else "stopped"
    for variant in row.variants:
        with corpus.hold(variant=variant) as h:
            groups, pid_1 = oracle.cgroup_of(h.pid), oracle.cgroup_of(oracle.pid_1_of(h.pid))
            for name, path in groups.items():
                if name in CONTROLLERS and (path == "/" or path == own.get(name)):
                    result.problems.append(f"{variant}: {name} is {path}, OPEN")
            for name in ("cpu", "memory", "pids") if "memory" in groups else ("unified",):
                if not re.search(r"/caisson/\d+(/mon)?$", pid_1[name]):
                    result.problems.append(f"{variant}: pid 1: {name} is {pid_1.get(name)}, OPEN")


def dead_clients(corpus, row, result):
    """Launches whose client is killed at a random time, half of them."""
    del row
    rng, token, running = random.Random(17), "dead-" + corpus.host.token, []
    with arms.Held(["sh", "-c", '"$@" & wait', "sh", corpus.probe, "NSP-11", token]) as bare:
        bare.process.kill()
        bare.process.wait()
    left = oracle.pids_with(token)
    result.control = "stopped"
    argv, env = arms.caisson(corpus.host, ("-i",), ["/mnt/probe/probe", "hold", token])
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        result.control = "open"
    for n in range(24):
        client = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.02)
        if n % 2:
            client.kill()
        running.append(client)
    for client in running:
        client.communicate()
    if not oracle.wait_until(lambda: not oracle.pids_with(token)):
        result.problems.append(f"{len(oracle.pids_with(token))} processes survive their client, OPEN")
    arms.execute([f"{arms.BUILD}/caisson", "gc"])


def _freeze(path, word):
    with open(path, "w", encoding="ascii") as f:
        f.write(word)


def _freezer(held):
    """(file, word) that freezes this sandbox, if it has a group with nobody else in it."""
    ours = set(oracle.companions(held.pid)) | oracle.descendants(held.process.pid)
    groups = oracle.cgroup_of(held.pid)
    for name, file, word in (("unified", "cgroup.freeze", "1"), ("freezer", "freezer.state", "FROZEN")):
        for top in (f"/sys/fs/cgroup/{name}", "/sys/fs/cgroup"):
            group = f"{top}{groups.get(name, '/')}"
            members = {int(p) for p in oracle.read(f"{group}/cgroup.procs").split()}
            if os.path.exists(f"{group}/{file}") and members and members <= ours:
                return f"{group}/{file}", word
    return None, None


def frozen(corpus, row, result):
    """cgroup v1: a frozen process does not even die of SIGKILL. On v2 it does; the row is the same."""
    del row
    own = f"/sys/fs/cgroup/freezer/{corpus.host.token}"
    if os.path.isdir("/sys/fs/cgroup/freezer"):
        os.mkdir(own)
        bare = subprocess.Popen(["sleep", "30"])
        with open(f"{own}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(bare.pid))
        _freeze(f"{own}/freezer.state", "FROZEN")
        bare.kill()
        time.sleep(0.1)
        result.control = "open" if bare.poll() is None else "stopped"
        _freeze(f"{own}/freezer.state", "THAWED")
        bare.wait()
        oracle.wait_until(lambda: not oracle.read(f"{own}/cgroup.procs"))
        os.rmdir(own)
    token = "frozen-" + corpus.host.token
    for words in (("hold", token), ("CGR-01", "40", token, "@hold")):
        with corpus.hold(("--timeout", "3s"), words=words, token=token) as h:
            path, word = _freezer(h)
            if path:
                _freeze(path, word)
            else:    # no group of its own to freeze: stop everything inside
                for pid in oracle.companions(h.pid):
                    os.kill(pid, signal.SIGSTOP)
            result.notes.append(f"frozen by {path or 'SIGSTOP'}")
            if not oracle.wait_until(lambda h=h: h.process.poll() is not None):
                result.problems.append("does not end, OPEN")
                if path:
                    _freeze(path, "0" if word == "1" else "THAWED")
                h.process.kill()
            h.process.wait()
        if h.process.returncode != 124 or oracle.pids_with(token):
            result.problems.append(f"exit {h.process.returncode}, left {oracle.pids_with(token)}")


def mixed_load(corpus, row, result):
    """Four attackers at once; eight benign sandboxes must all do their work."""
    del row
    result.control = "-"
    attackers = []
    for name, flags in BOMBS.items():
        argv, env = arms.caisson(corpus.host, (*flags, "--timeout", "30s"), ["/mnt/probe/probe", *BOMB_WORDS[name],
            "@hold"])
        attackers.append(subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL))
    for n in range(8):
        neighbour_works(corpus, result, f"benign {n}")
    for a in attackers:
        a.kill()
        a.wait()
