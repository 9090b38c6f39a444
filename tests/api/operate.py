#!/usr/bin/env python3
"""operate.py - what an operator sets and sees: quotas, defaults and bounds, records, readiness."""
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import lib
from lib import Daemon, check, same, test, wait_until

SMALL = {"limits": {"mem": "64m", "disk": "4m", "pids": 32, "cpu": 1}}


@contextlib.contextmanager
def daemon(name, *options):
    """One of its own, and nothing of it is left."""
    d = Daemon(name, options=options).start()
    try:
        yield d, d.client()
        d.client().remove_all()
        d.wait_clean()
    finally:
        d.stop()


def refused(answer, sentence):
    same((answer.status, answer.code, answer.json["detail"]), (429, "quota", sentence), "refusal")


@test("quota: each bound holds, says what, how much and the bound, and gives way when there is room", own=True)
def _(_api):
    rows = [
        ("sandboxes=1", "sandboxes: 1 more with 1 in use, and the quota is 1"),
        ("cpu=1.5", "cpu: 1 more with 1 in use, and the quota is 1.5"),
        ("mem=100m", "mem: 64m more with 64m in use, and the quota is 100m"),
        ("pids=63", "pids: 32 more with 32 in use, and the quota is 63"),
        ("disk=7m", "disk: 4m more with 4m in use, and the quota is 7m"),
    ]
    for bound, sentence in rows:
        with daemon("quota-" + bound.partition("=")[0], "--quota", bound) as (_, c):
            first = c.create(SMALL)
            refused(c.post("/v1/sandboxes", SMALL), sentence)
            refused(c.post("/v1/run", {"spec": SMALL, "cmd": ["true"]}), sentence)
            name = bound.partition("=")[0]
            shown = c.ok("GET", "/v1/quota")
            check(shown["used"][name] > 0 and shown["most"][name] >= shown["used"][name], f"shown: {shown}")
            check(not any(v for k, v in shown["most"].items() if k != name), f"other bounds: {shown}")
            c.remove(first)
            same(c.ok("GET", "/v1/quota")["used"][name], 0, "nothing is in use")
            c.create(SMALL)


@test("quota: a stopped sandbox needs room to live again", own=True)
def _(_api):
    with daemon("quota-start", "--quota", "pids=63") as (_, c):
        first = c.create(SMALL)
        c.ok("POST", f"/v1/sandboxes/{first['id']}/stop")
        second = c.create(SMALL)
        for verb in ("start", "replace"):
            refused(c.post(f"/v1/sandboxes/{first['id']}/{verb}"), "pids: 32 more with 32 in use, and the quota is 63")
        same(c.ok("GET", f"/v1/sandboxes/{first['id']}")["state"], "stopped", "state")
        c.ok("POST", f"/v1/sandboxes/{second['id']}/replace")  # it lives already
        c.remove(second)
        c.ok("POST", f"/v1/sandboxes/{first['id']}/start")


@test("quota: processes that live at once", own=True)
def _(_api):
    with daemon("quota-processes", "--quota", "processes=2") as (_, c):
        s = c.create(SMALL)
        first = c.execute(s, ["sleep", "60"], wait=0)
        c.execute(s, ["sleep", "60"], wait=0)
        refused(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"]}),
                "processes: 1 more with 2 in use, and the quota is 2")
        same(c.ok("GET", "/v1/quota")["used"]["processes"], 2, "used")
        c.delete(f"/v1/processes/{first['id']}")
        c.ok("GET", f"/v1/processes/{first['id']}?wait=40s")
        same(c.execute(s, ["true"])["exit_code"], 0, "room again")


@test("quota: of a hundred creates at once ten pass; another tenant has its own; a restart forgets nothing", own=True)
def _(_api):
    with daemon("quota-race", "--quota", "sandboxes=10", "--listen", "127.0.0.1:0") as (d, c):
        answers = []

        def work():
            mine = d.client(timeout=60)
            for _ in range(5):
                answers.append(mine.post("/v1/sandboxes", SMALL))
            mine.close()
        threads = [threading.Thread(target=work) for _ in range(20)]
        _ = [t.start() for t in threads], [t.join() for t in threads]
        same(sorted({a.status for a in answers}), [201, 429], "answers")
        same(sum(a.status == 201 for a in answers), 10, "that passed")
        token = c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "other"})["token"]
        other = d.tcp(token)
        same(other.ok("GET", "/v1/quota")["used"]["sandboxes"], 0, "another tenant")
        other.remove(other.create(SMALL))
        os.kill(d.pid, signal.SIGKILL)
        c.close()
        d.wait_ready()
        same(c.ok("GET", "/v1/quota")["used"], {"sandboxes": 10, "processes": 0, "cpu": 10.0, "mem": 640 << 20,
                                                "pids": 320, "disk": 40 << 20, "workspaces": 0}, "used after a restart")
        refused(c.post("/v1/sandboxes", SMALL), "sandboxes: 1 more with 10 in use, and the quota is 10")


@test("defaults and most: limits that a spec does not name, and the most that it may", own=True)
def _(_api):
    with daemon("most", "--default", "mem=96m", "--default", "disk=8m", "--most", "mem=128m", "--most", "pids=20",
                "--most", "wall=1h") as (_, c):
        s = c.create()
        look = c.execute(s, "df -k --output=size /work | tail -n 1; for i in $(seq 40); do sleep 5 & done; wait")
        same(look["stdout"].strip(), str(8 << 10), "disk")
        check(any(v["target"] == "pids" for v in look["violations"]), f"pids: {look['violations']}")
        same(c.ok("GET", "/v1/quota")["used"]["mem"], 96 << 20, "mem")
        same(c.ok("GET", f"/v1/sandboxes/{s['id']}")["spec"]["limits"], {}, "the spec is what the caller said")
        for limits, sentence in (({"mem": "256m"}, 'limits.mem: "256m" is more than the operator allows, the most is 128m'),
                                 ({"wall": "2h"}, 'limits.wall: "2h" is more than the operator allows, the most is 1h')):
            for answer in (c.post("/v1/sandboxes", {"limits": limits}),
                           c.post("/v1/run", {"spec": {"limits": limits}, "cmd": ["true"]})):
                same((answer.status, answer.code, answer.json["detail"]), (400, "invalid", sentence), "refusal")
        c.create(limits={"mem": "128m", "wall": "1h"})


@test("ttl: a sandbox that names none ends; keep-records: rows and logs of ended processes go", own=True)
def _(_api):
    with daemon("keep", "--ttl", "8s", "--keep-records", "2s") as (d, c):
        s = c.create(SMALL)
        longer = c.create({**SMALL, "ttl": "1h"})
        p = c.execute(s, ["echo", "x"])
        check((d.state / "logs" / p["id"]).exists(), "its log")
        wait_until(lambda: c.get(f"/v1/processes/{p['id']}").status == 404, 8, "the record goes")
        check(not (d.state / "logs" / p["id"]).exists(), "and the log with it")
        wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "gone", 8, "the sandbox ends")
        same(c.ok("GET", f"/v1/sandboxes/{longer['id']}")["state"], "running", "one with a ttl of its own")


@test("health: ready when every sandbox that was found again has spoken; one that does not answer holds it for "
      "seconds, not for ever", own=True)
def _(_api):
    with daemon("settle") as (d, c):
        made = [c.create(SMALL) for _ in range(3)]
        monitor = d.monitors()[0]
        os.kill(monitor, signal.SIGSTOP)
        os.kill(d.pid, signal.SIGKILL)
        c.close()
        answers = {}

        def health():
            with contextlib.suppress(OSError):
                mine = d.client(timeout=5)
                answer = mine.get("/v1/health")
                mine.close()
                answers.setdefault(answer.status, answer.json)
                return answer.status == 200
        begin = time.monotonic()
        wait_until(health, 10, "ready")
        check(time.monotonic() - begin > 3, "it did not wait")
        same((answers[503]["status"], answers[503]["live"], answers[503]["ready"]), ("starting", True, False), "before")
        states = sorted(c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] for s in made)
        same(states, ["running", "running", "unreachable"], "states")
        os.kill(monitor, signal.SIGCONT)
        wait_until(lambda: all(c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "running" for s in made), 5, "all run")


@test("a monitor that dies before it was heard again: the sandbox is stopped, the daemon ready, and start works", own=True)
def _(_api):
    with daemon("unheard") as (d, c):
        s = c.create(SMALL)
        monitor = d.monitors()[0]
        old = d.pid
        os.kill(monitor, signal.SIGSTOP)
        os.kill(old, signal.SIGKILL)
        c.close()

        def answers():  # it has called all that it knows by then
            with contextlib.suppress(OSError):
                return d.pid not in (None, old) and d.client(timeout=5).get("/v1/health").status == 503
        wait_until(answers, what="another daemon")
        os.kill(monitor, signal.SIGKILL)
        d.wait_ready()
        wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "stopped", 3, "stopped")
        time.sleep(5.5)
        same(c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"], "stopped", "and it stays so")
        same(c.ok("POST", f"/v1/sandboxes/{s['id']}/start")["state"], "running", "start")
        same(c.execute(s, ["true"])["exit_code"], 0, "exec")


@test("a monitor that is killed while its sandbox is made: unavailable, and safe to ask again", own=True)
def _(_api):
    with daemon("newborn") as (d, c):
        over, seen = threading.Event(), set()

        def kill():
            children = f"/proc/{d.process.pid}/task/{d.process.pid}/children"
            own = d.pid
            while not over.is_set():
                for pid in map(int, lib.census.read(children).split()):
                    if pid != own and pid not in seen:
                        seen.add(pid)
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            answers = [c.post("/v1/sandboxes", SMALL) for _ in range(60)]
            while all(a.status == 201 for a in answers) and len(answers) < 1000:  # it came too late each time
                answers.append(c.post("/v1/sandboxes", SMALL))
        finally:
            over.set()
            killer.join()
        refused = {(a.status, a.code, a.json["retry_safe"]): a.json["detail"] for a in answers if a.status != 201}
        same(set(refused),
             {(503, "sandbox_unavailable", True)}, f"{refused}")
        c.create(SMALL)


@contextlib.contextmanager
def failing(pid, call, n):
    """The n-th such call of a process from now on fails."""
    p = subprocess.Popen(["strace", "-p", str(pid), "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error=ENOSPC:when={n}"],
                         stderr=subprocess.PIPE)
    check(b"attached" in p.stderr.readline(), "strace does not attach")
    try:
        yield
    finally:
        p.terminate()
        p.wait()
        p.stderr.close()


@test("a channel that cannot be watched: each call of the daemon's loop fails once while a sandbox is made, and nothing is left", own=True)
def _(_api):
    with daemon("deaf") as (d, c):
        statuses = set()
        for body in (SMALL, {**SMALL, "net": {"allow": ["a.test"]}}):
            for n in range(1, 9):
                with failing(d.pid, "epoll_ctl", n):
                    with contextlib.suppress(Exception):  # it may be the client's connection that is hit
                        statuses.add(d.client(timeout=5).post("/v1/sandboxes", body).status)
                c.remove_all()
                d.wait_clean()
        check(500 <= max(statuses) < 600, f"nothing failed: {statuses}")
        same(c.execute(c.create(SMALL), ["true"])["exit_code"], 0, "exec")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
