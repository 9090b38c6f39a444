#!/usr/bin/env python3
"""Faults of the daemon: killed under load, out of everything, fed with garbage. TAP.

    tests/api/crash.py                all, about a minute (needs root)
    tests/api/crash.py kill -9        those with the word in their title
    CYCLES=1000 tests/api/crash.py kill    as long as tests/soak/daemon does it
"""
import contextlib
import http.client
import json
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import lib
from lib import Daemon, Stream, check, connect, raw, same, status_of, test, wait_until
from load import Load

CYCLES = int(os.environ.get("CYCLES", "20"))
SEED = int(os.environ.get("SEED", "1"))
SLOW_CLIENTS = int(os.environ.get("SLOW_CLIENTS", "2000"))
GROWTH_KIB = 16 << 10


def check_database(state):
    """Of a copy: nobody else's files are made in the folder."""
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        for path in state.glob("caisson.db*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, folder)
        with contextlib.closing(sqlite3.connect(f"{folder}/caisson.db")) as db:
            same(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "the database")
            same(db.execute("PRAGMA foreign_key_check").fetchall(), [], "the database, keys")


# ---- killed ----------------------------------------------------------------------------------

def kill_pid(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def strike(daemon, chooser):
    """Kills somebody. Returns who, and how many monitors died."""
    who = chooser.choices(("caissond", "launcher", "both", "monitor", "monitors", "all"), (30, 25, 15, 15, 5, 10))[0]
    monitors = daemon.monitors() if who in ("monitor", "monitors", "all") else []
    if who in ("caissond", "both", "all"):
        for pid in daemon.relatives("caissond"):
            kill_pid(pid)
    if who in ("launcher", "both", "all"):
        daemon.process.kill()
    if who == "monitor":
        monitors = monitors and [chooser.choice(monitors)]
    for pid in monitors:
        kill_pid(pid)
    return who, len(monitors)


class Follower:
    """Reads one long output across restarts: nothing is lost, nothing comes twice."""

    LINES = 100_000

    def __init__(self, daemon):
        self.daemon = daemon
        c = daemon.client()
        self.sandbox = c.create(limits={"mem": "64m"})["id"]
        self.process = c.execute(self.sandbox, ["python3", "-u", "-c", "import time\n"
                                 f"for i in range({self.LINES}):\n print(i)\n time.sleep(0.005)"], wait=0)["id"]
        c.close()
        self.out, self.seq, self.is_end, self.rounds = b"", 0, False, 0
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while not self.is_end:
            c = self.daemon.client()
            self.rounds += 1
            with contextlib.suppress(OSError, lib.http.client.HTTPException, ValueError):  # killed: a line may be cut
                response = c.send("GET", f"/v1/processes/{self.process}/events?follow=1&after={self.seq}")
                for line in response:
                    event = json.loads(line)
                    if event["type"] == "end":
                        self.is_end = True
                        break
                    self.out += event["data"].encode()
                    self.seq = event["seq"]
            c.close()
            time.sleep(0.01)

    def end(self):
        """It was removed, or its monitor was killed: as far as it came, it is what was written."""
        c = self.daemon.client()
        c.delete(f"/v1/sandboxes/{self.sandbox}")
        c.close()
        self.thread.join(2 * lib.PATIENCE)
        check(self.is_end, f"what is followed does not end: {self.process}")
        truth = "".join(f"{i}\n" for i in range(self.LINES)).encode()
        check(truth.startswith(self.out), f"followed in {self.rounds} connections: {len(self.out)} bytes, not as written")
        return len(self.out), self.rounds


def cycle(daemon, load, chooser, number):
    load.go.set()
    time.sleep(chooser.uniform(0.02, 0.35))
    who, monitors = strike(daemon, chooser)
    if chooser.random() < 0.3:
        time.sleep(chooser.uniform(0, 0.1))
        again, more = strike(daemon, chooser)  # while the first is being dealt with
        who, monitors = f"{who}, {again}", monitors + more
    if daemon.process.poll() is not None or "launcher" in who or "both" in who or "all" in who:
        daemon.process.wait()
        if chooser.random() < 0.3:
            wait_until(lambda: (lib.census.reap(), not daemon.relatives("caissond"))[1], 10, "a daemon without a launcher ends")
            check_database(daemon.state)
        daemon.spawn()
    seconds = daemon.wait_ready()
    load.pause()
    lib.census.reap()
    try:
        load.verify(monitors)
    except lib.Failed as failed:
        raise lib.Failed(f"cycle {number}, {who} killed, seed {SEED}: {failed}\n{daemon.tail()}") from None
    return who, seconds


@test(f"kill -9 of daemon, launcher, monitors, all, under load: {CYCLES} cycles", own=True)
def _(_api):
    daemon, chooser = Daemon("killed").start(), random.Random(SEED)
    load = Load(daemon, SEED)
    load.start()
    follower = Follower(daemon)
    slowest, victims, followed = 0.0, {}, []
    for number in range(1, CYCLES + 1):
        who, seconds = cycle(daemon, load, chooser, number)
        slowest = max(slowest, seconds)
        for word in who.split(", "):
            victims[word] = victims.get(word, 0) + 1
        if follower.is_end:
            followed.append(follower.end())
            follower = Follower(daemon)
        if CYCLES >= 100 and number % (CYCLES // 20) == 0:
            print(f"# {number} cycles: {load.counts}", flush=True)
    load.end = True
    load.go.set()
    for t in load.threads:
        t.join(2 * lib.PATIENCE)
    c = daemon.client()
    records = load.verify_all(c)
    followed.append(follower.end())
    c.remove_all()
    c.close()
    daemon.wait_clean()
    daemon.stop()
    lib.census.reap()
    check_database(daemon.state)
    print(f"# {victims}, {records} records, {load.counts}, followed {sum(n for n, _ in followed)} bytes in "
          f"{sum(n for _, n in followed)} connections, slowest restart {slowest:.2f} s", flush=True)


@test("restart: 50 sandboxes with open processes are found again; an orderly end keeps them too", own=True)
def _(_api):
    d = Daemon("again").start()
    c = d.client()
    made = [c.create(limits={"mem": "32m", "disk": "4m"}) for _ in range(50)]
    running = [c.execute(s, ["sh", "-c", f"sleep 1.2; echo {i}; exit {i}"], wait=0)["id"] for i, s in enumerate(made)]
    slow = c.execute(made[0], ["sleep", "60"], wait=0, timeout="3s")["id"]
    c.close()
    for end in (d.kill, d.stop):
        c.close()
        end()
        lib.census.reap()
        same(len(d.monitors()), 50, "monitors live on")
        d.spawn()
        d.wait_ready()
        same([s["state"] for s in c.ok("GET", "/v1/sandboxes?limit=100")["sandboxes"]], ["running"] * 50, "all run")
    for i, name in enumerate(running):
        p = c.ok("GET", f"/v1/processes/{name}?wait=40s")
        same((p["state"], p["exit_code"], p["stdout"]), ("exited", i, f"{i}\n"), "exit code across restarts")
    same(c.ok("GET", f"/v1/processes/{slow}?wait=40s")["state"], "timeout", "timeouts fire")
    c.remove_all()
    c.close()
    d.wait_clean()
    d.stop()
    lib.census.reap()
    check_database(d.state)


@test("restart: what was due when a process, or a sandbox, had ended is done by the next daemon", own=True)
def _(_api):
    d = Daemon("due").start()
    c = d.client()
    made = [c.create(limits={"mem": "32m", "disk": "4m"})["id"] for _ in range(3)]
    for s in made:
        c.execute(s, ["true"])
    gone = c.create()["id"]
    c.remove(gone)
    wait_until(lambda: c.get(f"/v1/sandboxes/{gone}").json["state"] == "gone")
    orphan, other = (c.ok("PUT", f"/v1/workspaces/{name}", {})["id"] for name in ("orphan", "other"))
    c.close()
    d.stop()
    with contextlib.closing(sqlite3.connect(d.state / "caisson.db")) as db, db:  # as if it had been killed in between
        for s, at_end in zip(made, (0, 1, 2)):
            db.execute("UPDATE processes SET at_end=? WHERE sandbox=?", (at_end, s))
        db.execute("UPDATE sandboxes SET workspace=?, life=4 WHERE id=?", (orphan, gone))
    d.start()
    for s, state in zip(made, ("running", "stopped", "gone")):
        wait_until(lambda: c.get(f"/v1/sandboxes/{s}").json["state"] == state, 5, state)  # pylint: disable=cell-var-from-loop
    wait_until(lambda: [w["id"] for w in c.ok("GET", "/v1/workspaces")["workspaces"]] == [other], 5, "its workspace")
    c.remove_all()
    c.close()
    d.wait_clean()
    d.stop()


@test("restart: a request that is repeated under its Idempotency-Key is told what the first one made", own=True)
def _(_api):
    d = Daemon("again").start()
    c = d.client()
    s = c.create()
    w = c.ok("PUT", "/v1/workspaces/again", {})
    paths = {f"/v1/sandboxes/{s['id']}/exec": ("px",), f"/v1/workspaces/{w['id']}/exec": ("sb", "px"), "/v1/run": ("sb", "px")}
    ask = {"cmd": ["sleep", "3600"]}

    def post(path):
        with contextlib.suppress(OSError, http.client.HTTPException):
            d.client().call("POST", path, ask, {"Idempotency-Key": f"key {path}"})
    threads = [threading.Thread(target=post, args=(path,), daemon=True) for path in paths]
    for thread in threads:
        thread.start()
    wait_until(lambda: len([p for p in c.ok("GET", "/v1/processes?state=running")["processes"]]) == len(paths), what="they run")
    c.close()
    os.kill(d.pid, signal.SIGKILL)
    for thread in threads:
        thread.join(lib.PATIENCE)
    d.wait_ready()
    c = d.client()
    for path, kinds in paths.items():
        answer = c.call("POST", path, ask, {"Idempotency-Key": f"key {path}"})
        same((answer.status, answer.code), (409, "conflict"), path)
        made = answer.json["made"]
        check({"px"} <= {x[:2] for x in made} <= set(kinds), f"{path}: {made}")
        process = c.ok("GET", f"/v1/processes/{next(x for x in made if x.startswith('px_'))}")
        check("sleep" in json.dumps(process), process)
    same(c.call("POST", "/v1/sandboxes", {}, {"Idempotency-Key": "new"}).status, 201, "another key")
    c.remove_all()
    c.close()
    d.wait_clean()
    d.stop()


# ---- a workspace -----------------------------------------------------------------------------

def keepers(d):
    """The caisson-vaults of this daemon: they have its folders as descriptors, and no command line."""
    names = {p.name for p in (d.run / "vt").glob("*.sock")}
    return [p for p in lib.census.pids() if (s := lib.stat_of(p)) and s[0].startswith("caisson-vault")] if names else []


VICTIMS = {
    "the keeper": lambda d: keepers(d), "the monitor": lambda d: d.monitors(), "caissond": lambda d: [d.pid],
    "the launcher": lambda d: [d.process.pid], "launcher and keeper": lambda d: [d.process.pid, *keepers(d)],
    "launcher and monitor": lambda d: [d.process.pid, *d.monitors()],
    "all": lambda d: [d.process.pid, d.pid, *keepers(d), *d.monitors()],
}


def read_back(d, key):
    """What a workspace has, once it can be had again: in a sandbox of its own."""
    def attempt():
        answer = d.client().post(f"/v1/workspaces/{key}/exec", {"cmd": "cat f g", "wait": "40s"})
        return answer.json["stdout"] if answer.status == 200 and answer.json["state"] == "exited" else None
    wait_until(attempt, 20, lambda: f"{key} can be read again: {d.tail()}")
    return attempt()


@test("kill -9 of each program of a workspace: what was written is there, and nothing is left", own=True)
def _(_api):
    for who, choose in VICTIMS.items():
        before = lib.census.take()
        d = Daemon("ws-" + who.replace(" ", "-")).start()
        c = d.client()
        c.ok("PUT", "/v1/workspaces/w", {})
        s = c.create(workspace="w", fs=["workspace:/work"])
        same(c.execute(s, f"echo {who} > f; echo x > g; (sleep 1000 > g2 &)", wait="40s")["exit_code"], 0, who)
        for pid in choose(d):
            kill_pid(pid)
        if d.process.pid not in lib.census.pids() or who.startswith(("the launcher", "launcher", "all")):
            d.process.wait()
            d.spawn()
        d.wait_ready()
        same(read_back(d, "w"), f"{who}\nx\n", who)
        c = d.client()
        c.remove_all()
        answer = c.call("DELETE", "/v1/workspaces/w?force")
        same(answer.status, 204, f"{who}: {answer} {d.tail()}")
        d.wait_clean()
        d.stop()
        c.close()
        left = [x for x in lib.leftovers(before) if not x.startswith(f"file {lib.HOME}")]
        check(not left, f"after the death of {who}: {left}")


@test("two launchers on one folder: the second refuses; a stale socket is no obstacle", own=True)
def _(_api):
    d = Daemon("twice").start()
    second = subprocess.run([lib.cell.BIN / "caisson-launcher", "--state", d.state, "--run", d.run], capture_output=True,
                            timeout=lib.PATIENCE, check=False, text=True)
    same(second.returncode, 3, f"the second: {second.stderr}")
    check(d.is_ready(), "the first goes on")
    d.kill()
    wait_until(lambda: (lib.census.reap(), not d.relatives("caissond"))[1], 5, "its end")
    check(d.socket.exists(), "the socket of a killed one is still there")
    d.start()
    d.stop()
    lib.census.reap()


def is_well(d):
    with contextlib.suppress(OSError, lib.http.client.HTTPException):
        c = d.client(timeout=5)
        with contextlib.closing(c):
            return c.get("/v1/health").status == 200
    return False


# ---- out of everything -----------------------------------------------------------------------

@test("disk full: reading, stopping, deleting still work; when there is room again, all does", own=True)
def _(_api):
    d = Daemon("full")
    d.state.mkdir()
    lib.cell.mount("-t", "tmpfs", "-o", "size=64m", "full", d.state)
    try:
        d.start()
        c = d.client()
        s, t = c.create(limits={"mem": "64m"}), c.create()
        first = c.execute(s, "echo before; exit 5")
        answers = []
        for _ in range(4):  # logs take room as well, and keep it
            answers.append(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "yes | head -c 3000000", "output": {"inline": "1k"}}))
            if answers[-1].status != 200:
                break
        filler = d.state / "filler"
        with contextlib.suppress(OSError), open(filler, "wb") as f:
            while f.write(b"x" * 65536):
                f.flush()
        for _ in range(20):
            answers.append(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "echo x; exit 3"}))
            answers.append(c.post("/v1/sandboxes", {}))
        for a in answers:
            check(a.status in (200, 201, 429, 500, 503), f"when full: {a}")
            if a.status == 200:
                check(a.json["state"] != "exited" or a.json["exit_code"] in (0, 3, 141), f"an exit code when full: {a}")
        check(d.process.poll() is None and d.is_ready(), f"the daemon lives: {d.tail()}")
        again = c.ok("GET", f"/v1/processes/{first['id']}")
        same((again["exit_code"], again["stdout"]), (5, "before\n"), "an old record")
        same(c.get(c.file(s, "/etc/passwd")).status, 200, "files are read")
        stop = c.post(f"/v1/sandboxes/{s['id']}/stop")
        same(stop.status, 200, f"stop when full: {stop}")
        gone = c.delete(f"/v1/sandboxes/{t['id']}")
        same(gone.status, 204, f"delete when full: {gone}")
        filler.unlink()
        c.ok("POST", f"/v1/sandboxes/{s['id']}/start", {})
        again = []

        def works():
            again.append(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "echo after"}))
            return again[-1].status == 200 and again[-1].json["stdout"] == "after\n"
        with contextlib.suppress(lib.Failed):
            wait_until(works, 5)
        check(works(), lambda: f"when there is room again: {again[-1]}")
        c.remove_all()
        c.close()
        d.stop()
        check_database(d.state)
    finally:
        if d.process and d.process.poll() is None:
            d.kill()
        lib.census.reap()
        subprocess.run(["umount", "-l", d.state], check=False)


@test("no descriptors: 300 clients at a daemon with 128; it sheds them and recovers alone", own=True)
def _(_api):
    d = Daemon("descriptors", rlimits=[(resource.RLIMIT_NOFILE, 128)]).start()
    c = d.client()
    s = c.create()
    many = []
    for _ in range(300):
        with contextlib.suppress(OSError):
            many.append(connect(d.socket, 5))
    for sock in many[::2]:
        with contextlib.suppress(OSError):
            sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
    answers = []
    for _ in range(20):
        with contextlib.suppress(OSError, lib.http.client.HTTPException):
            answers.append(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"]}).status)
    check(set(answers) <= {200, 429, 500, 503}, f"meanwhile: {answers}")
    for sock in many:
        sock.close()
    wait_until(lambda: is_well(d), what="it recovers")
    fresh = d.client()
    wait_until(lambda: fresh.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"]}).status == 200, 5, "exec afterwards")
    procs = [fresh.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["sleep", "60"], "wait": 0}) for _ in range(150)]
    started = [a.json["id"] for a in procs if a.status == 200]
    check(all(a.status in (200, 429, 500, 503) for a in procs), f"150 processes with 128 descriptors: {procs[-3:]}")
    ends = [fresh.ok("GET", f"/v1/processes/{name}") for name in started]
    odd = [p for p in ends if p["state"] not in ("queued", "running") and not (p["state"] == "lost" and p["reason"])]
    check(not odd, f"{odd[:2]}")
    check(any(p["state"] == "lost" for p in ends) or len(started) < 150, "nothing ran out")
    for name in started:
        fresh.delete(f"/v1/processes/{name}")
    wait_until(lambda: fresh.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"]}).status == 200, 8, "exec at last")
    fresh.remove_all()
    fresh.close()
    d.stop()


@test(f"{SLOW_CLIENTS} slow clients: half a head, half a body, an answer nobody reads; others are served", own=True)
def _(_api):
    resource.setrlimit(resource.RLIMIT_NOFILE, (SLOW_CLIENTS + 500, max(SLOW_CLIENTS + 500, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    d = Daemon("slow").start()
    c = d.client()
    s = c.create()
    c.put(c.file(s, "/work/big"), b"x" * (1 << 20))
    before = lib.memory_kib(d.pid)
    kinds = [b"GET /v1/hea", b"GET /v1/health HTTP/1.1\r\nHost: x\r\nX-Slow: ",
             b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{", b"",
             f"GET {c.file(s, '/work/big')} HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
             f"PUT {c.file(s, '/work/up')} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nxx".encode()]
    many = []
    try:
        for i in range(SLOW_CLIENTS):
            sock = connect(d.socket)
            # Files go through eight workers of the sandbox: a few such clients are enough.
            sock.sendall(kinds[i % 6] if i < 60 else kinds[i % 4])
            many.append(sock)
        worst = 0.0
        for _ in range(20):
            begin = time.monotonic()
            same(c.get("/v1/health").status, 200, "health")
            same(c.execute(s, ["true"])["exit_code"], 0, "exec")
            worst = max(worst, time.monotonic() - begin)
        check(worst < 8, f"a good client waited {worst:.2f} s")  # a slow one is waited for longer
        per = (lib.memory_kib(d.pid) - before) / SLOW_CLIENTS
        check(per < 20, f"{per:.1f} KiB for each slow client")
    finally:
        for sock in many:
            sock.close()
    wait_until(lambda: lib.descriptors(d.pid) < 60, 10, f"descriptors of those who left: {lib.descriptors(d.pid)}")
    other = c.get(c.file(s, "/etc/passwd"))
    same(other.status, 200, f"files afterwards: {other}")
    c.remove_all()
    c.close()
    d.stop()


@test("exec keeps working while a sandbox burns its processors, memory and processes")
def _(api):
    c = api.client
    s = c.create(limits={"cpu": 1, "mem": "96m", "disk": "16m", "pids": 48})
    c.execute(s, ["python3", "-c", "import os, time\nwhile True:\n try:\n  if os.fork() == 0:\n   while True: pass\n"
                  " except OSError:\n  time.sleep(0.01)"], wait=0)
    c.execute(s, ["python3", "-c", "import time\nx = []\nwhile True:\n try:\n  x.append(bytearray(1 << 20))\n  x[-1][::4096] = b'x' * 256\n"
                  " except MemoryError:\n  time.sleep(1)\n if len(x) > 60: time.sleep(60)"], wait=0)
    c.execute(s, ["sh", "-c", "while :; do cat /dev/zero > /tmp/fill; done"], wait=0)
    burnt = wait_until(lambda: (u := c.ok("GET", f"/v1/sandboxes/{s['id']}/usage"))["pids"] >= 40 and u, what="it does burn")
    times = []
    for i in range(10):
        begin = time.monotonic()
        p = c.execute(s, ["sh", "-c", f"exit {i}"], timeout="60s")
        times.append(time.monotonic() - begin)
        same((p["state"], p["exit_code"]), ("exited", i), f"exec {i} in a burning sandbox: {p}")
    c.remove(s)
    print(f"# {burnt['pids']} processes, p50 {sorted(times)[5] * 1000:.0f} ms, longest {max(times) * 1000:.0f} ms")


@test("1 GiB of output through exec: daemon and monitor grow by 16 MiB at most")
def _(api):
    c, d = api.client, api.daemon
    s = c.create(limits={"output": "4g"})
    c.execute(s, ["true"])
    monitor = d.monitors()[0]
    before = lib.memory_kib(d.pid), lib.memory_kib(monitor)
    begin = time.monotonic()
    p = c.execute(s, ["head", "-c", str(1 << 30), "/dev/zero"])
    seconds = time.monotonic() - begin
    same((p["state"], p["exit_code"], p["bytes"]["stdout"]), ("exited", 0, 1 << 30), "1 GiB")
    peak = lib.memory_kib(d.pid, "VmHWM") - before[0], lib.memory_kib(monitor, "VmHWM") - before[1]
    check(max(peak) <= GROWTH_KIB, f"grew by {peak} KiB")
    live = Stream(d.socket, f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["head", "-c", str(1 << 28), "/dev/zero"]})
    got = 0
    while True:
        letter, data = live.frame()
        got += len(data) if letter == "O" else 0
        if letter in "XF":
            break
    same((letter, got), ("X", 1 << 28), "256 MiB live")
    q = c.execute(s, ["head", "-c", str(1 << 28), "/dev/zero"], wait=0)
    with connect(d.socket) as sock:  # a client that asks and does not read
        sock.sendall(f"GET /v1/processes/{q['id']}/log?follow HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        same(c.ok("GET", f"/v1/processes/{q['id']}?wait=100s")["bytes"]["stdout"], 1 << 28, "a reader that sleeps")
    grown = lib.memory_kib(d.pid, "VmHWM") - before[0], lib.memory_kib(monitor, "VmHWM") - before[1]
    check(max(grown) <= GROWTH_KIB, f"grew by {grown} KiB")
    log = sum(p.stat().st_blocks * 512 for p in (d.state / "logs").iterdir())
    check(log < 3 * 80 << 20, f"logs take {log >> 20} MiB")
    print(f"# {1024 / seconds:.0f} MiB/s, growth: daemon {grown[0]} KiB, monitor {grown[1]} KiB")


# ---- garbage ---------------------------------------------------------------------------------

GOOD = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"
MALFORMED = {
    "nothing": b"\r\n\r\n", "no version": b"GET /v1/health\r\n\r\n", "HTTP/0.9": b"GET /\r\n", "HTTP/2.0": b"GET / HTTP/2.0\r\n\r\n",
    "HTTP/1.2": b"GET / HTTP/1.2\r\nHost: x\r\n\r\n", "lower case": b"get /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "two spaces": b"GET  /v1/health HTTP/1.1\r\nHost: x\r\n\r\n", "tab": b"GET\t/v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "bare LF": b"GET /v1/health HTTP/1.1\nHost: x\n\n", "bare CR": b"GET /v1/health HTTP/1.1\rHost: x\r\r",
    "no Host": b"GET /v1/health HTTP/1.1\r\n\r\n", "two Hosts": GOOD + b"Host: y\r\n\r\n",
    "space before colon": GOOD + b"X : y\r\n\r\n", "folded": GOOD + b"X: y\r\n z\r\n\r\n", "no name": GOOD + b": y\r\n\r\n",
    "NUL in a value": GOOD + b"X: a\0b\r\n\r\n", "control in a name": GOOD + b"X\x01: b\r\n\r\n", "no colon": GOOD + b"nonsense\r\n\r\n",
    "high bytes in a name": GOOD + b"\xff\xfe: b\r\n\r\n", "two lengths": GOOD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "length and chunked": GOOD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "length of -1": GOOD + b"Content-Length: -1\r\n\r\n", "length of +1": GOOD + b"Content-Length: +1\r\n\r\na",
    "length of 0x1": GOOD + b"Content-Length: 0x1\r\n\r\na", "length of 2^64": GOOD + b"Content-Length: 18446744073709551616\r\n\r\n",
    "length list": GOOD + b"Content-Length: 1, 1\r\n\r\na", "identity": GOOD + b"Transfer-Encoding: identity\r\n\r\n",
    "gzip, chunked": GOOD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "chunked twice": GOOD + b"Transfer-Encoding: chunked, chunked\r\n\r\n",
    "xchunked": GOOD + b"Transfer-Encoding: xchunked\r\n\r\n", "chunk size -1": GOOD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "chunk size huge": GOOD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "chunk without end":
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}X\r\n0\r\n\r\n",
    "chunk with bare LF": b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n",
    "body for GET": GOOD + b"Content-Length: 2\r\n\r\n{}", "target of 100,000 bytes": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "header of 100,000 bytes": GOOD + b"X: " + b"a" * 100_000 + b"\r\n\r\n", "5,000 headers": GOOD + b"X: y\r\n" * 5000 + b"\r\n",
    "no slash": b"GET v1/health HTTP/1.1\r\nHost: x\r\n\r\n", "fragment": b"GET /v1/health#x HTTP/1.1\r\nHost: x\r\n\r\n",
    "bad escape": b"GET /v1/sandboxes/%zz HTTP/1.1\r\nHost: x\r\n\r\n", "high bytes in the target": b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
    "CONNECT": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "TRACE": b"TRACE /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "absolute": b"GET http://evil.example.com/v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "PRI": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "TLS": bytes.fromhex("16030100c8010000c40303") + b"\0" * 200, "SSH": b"SSH-2.0-x\r\n",
    "random": bytes(random.Random(7).randrange(256) for _ in range(3000)), "unknown expectation": GOOD + b"Expect: 200-ok\r\n\r\n",
    "h2c": GOOD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "method of 1,000": b"X" * 1000 + b" / HTTP/1.1\r\nHost: x\r\n\r\n", "POST without length": b"POST /v1/run HTTP/1.1\r\nHost: x\r\n\r\n",
    "smuggled": b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding : chunked\r\n\r\n{}",
}
WELL = {"absolute", "h2c", "HTTP/0.9"}  # may be answered 200, or as nothing at all


@test(f"malformed HTTP: {len(MALFORMED)} kinds, whole, in pieces, and behind a good request")
def _(api):
    d = api.daemon
    for what, data in MALFORMED.items():
        status = status_of(raw(d.socket, data, is_half_closed=True))
        check(status is None or 400 <= status < 600 and status not in (500, 503) or what in WELL, f"{what}: {status}")
        behind = raw(d.socket, GOOD + b"\r\n" + data, is_half_closed=True)
        same(status_of(behind), 200, f"a good request before {what}")
    for what in ("two Hosts", "length and chunked", "bare LF", "random", "smuggled"):
        with connect(d.socket) as sock, contextlib.suppress(OSError):
            for i in range(0, min(len(MALFORMED[what]), 300)):
                sock.sendall(MALFORMED[what][i:i + 1])
    pipelined = raw(d.socket, (GOOD + b"\r\n") * 30, is_half_closed=True)
    same(pipelined.count(b"HTTP/1.1 200 "), 30, "30 requests in one piece")
    same(api.client.ok("GET", "/v1/sandboxes")["sandboxes"], [], "nothing was made")


@test("random bytes and mutated requests: 400 connections, no crash, nothing held")
def _(api):
    d, chooser = api.daemon, random.Random(SEED)
    before = lib.descriptors(d.pid)
    seeds = list(MALFORMED.values()) + [b'POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\n\r\n{"cmd":["true"]}']
    for _ in range(400):
        data = bytearray(chooser.choice(seeds)[:4000])
        for _ in range(chooser.randrange(1, 12)):
            if data:
                data[chooser.randrange(len(data))] = chooser.randrange(256)
        with connect(d.socket) as sock, contextlib.suppress(OSError):
            sock.settimeout(1)
            sock.sendall(data)
            if chooser.random() < 0.5:
                sock.shutdown(socket.SHUT_WR)
                sock.recv(100)
    wait_until(lambda: lib.descriptors(d.pid) <= before + 3, 12, "descriptors")
    same(api.client.get("/v1/health").status, 200, "health")


if __name__ == "__main__":
    sys.exit(lib.main(__file__, seconds=max(lib.PROGRAM_SECONDS, CYCLES * 12)))
