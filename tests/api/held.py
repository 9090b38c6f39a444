#!/usr/bin/env python3
"""Programs that wait for a person (gate.commands): the command itself, and what it starts; allowed, denied,
nobody answers; and what is left when somebody is killed meanwhile. TAP.

    tests/api/held.py          all (needs root)
    tests/api/held.py killed   those with the word in their title
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import lib
from lib import Daemon, check, same, test, wait_until

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
GATE = {"gate": {"commands": ["uname -r", "id ** -u"]}}
OWN = ["uname", "-r"]
INSIDE = "echo before; uname -r; echo after $?"


@contextlib.contextmanager
def daemon(name, ask="60s", uid=None):
    d = Daemon(name, uid=uid, options=["--net", f"ask={ask}"]).start()
    c = d.client()
    try:
        yield d, c
        c.close()
        c.remove_all()
        d.wait_clean()
        same(pending(c, 0), [], "nobody waits any more")
    finally:
        c.close()
        d.stop()


def pending(c, n=1, seconds=10):
    def look():
        found = c.ok("GET", "/v1/approvals?state=pending")["approvals"]
        return found[::-1] if len(found) == n else None
    if n == 0:
        wait_until(lambda: look() is not None, seconds, "nobody waits")
        return []
    return wait_until(look, seconds, f"{n} wait")


def decide(c, approval, decision, **more):
    answer = c.post(f"/v1/approvals/{lib.id_of(approval)}", {"decision": decision, **more})
    same(answer.status, 200, answer)
    return answer.json


def one(c, approval, wait=""):
    return c.ok("GET", f"/v1/approvals/{lib.id_of(approval)}{wait}")


def state(c, p):
    return c.ok("GET", f"/v1/processes/{p['id']}")


def end(c, p, seconds=10):
    done = wait_until(lambda: x if (x := state(c, p))["state"] not in ("queued", "running", "awaiting_approval") else None, seconds, "its end")
    return {**done, "stdout": c.get(f"/v1/processes/{p['id']}/log").body.decode(errors="replace")}


def start(c, box, cmd, **more):
    return c.execute(box, cmd, wait="0s", **more)


def restart(d, c):
    old = d.pid
    c.close()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: d.pid not in (None, old), 10, "another daemon")
    d.wait_ready()


RELEASE = os.uname().release


@test("the command itself is awaiting_approval, and runs when somebody says yes", own=True)
def _(_api):
    with daemon("own") as (_, c):
        box = c.create(GATE)
        p = start(c, box, OWN, timeout="5s")
        [a] = pending(c)
        want = {"kind": "command", "what": "run uname -r", "sandbox": box["id"], "process": p["id"],
                "detail": {"argv": OWN, "rule": "uname -r", "inside": False}}
        same({k: a[k] for k in want}, want, "the question")
        wait_until(lambda: state(c, p)["state"] == "awaiting_approval", 5, "its state")
        time.sleep(5.5)  # the time until somebody answers is not the command's
        decide(c, a, "allow")
        done = end(c, p)
        same((done["state"], done["exit_code"], done["stdout"].strip()), ("exited", 0, RELEASE), done)
        same(done["violations"], [], "nothing was refused")
        p = start(c, box, ["uname", "-s"])
        same(end(c, p)["state"], "exited", "another one is not held")


@test("denied: it was never executed, 126, and the record says by whom", own=True)
def _(_api):
    with daemon("denied") as (d, c):
        box = c.create(GATE)
        p = start(c, box, OWN)
        [a] = pending(c)
        decide(c, a, "deny", note="no")
        done = end(c, p)
        same((done["state"], done["exit_code"], done["reason"]), ("denied", None, f"gate.commands: denied, approval {a['id']}"), done)
        [v] = done["violations"]
        want = {"kind": "command", "target": "uname -r", "rule": "uname -r", "reason": "denied", "approval": a["id"]}
        same({k: v[k] for k in want}, want, "the violation")
        said = [json.loads(x) for x in c.get("/v1/events?kind=approval.decided").body.decode().splitlines()]
        same([(x["data"]["state"], x["process"]) for x in said], [("denied", p["id"])], "the ledger")
        cli = subprocess.Popen([str(lib.cell.BIN / "caisson"), "run", "--spec", "/dev/stdin", "--", *OWN], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
                               env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "CAISSON_SOCKET": str(d.socket)})
        cli.stdin.write(json.dumps(GATE))
        cli.stdin.close()
        [b] = pending(c)
        wait_until(lambda: state(c, {"id": b["process"]})["state"] == "awaiting_approval", what="of caisson run too")
        decide(c, b, "deny")
        same(cli.wait(lib.PATIENCE), 126, "caisson run")
        text = cli.stderr.read()
        check(b["id"] in text, text)


@test("what a command starts is held in the middle of it: allowed it goes on, denied its execve fails", own=True)
def _(_api):
    for uid in (None, lib.USER_ID):
        held_inside(uid)


def held_inside(uid):
    with daemon(f"inside-{uid}", uid=uid) as (_, c):
        box = c.create(GATE)
        for decision, status, out in (("allow", 0, f"before\n{RELEASE}\nafter 0\n"), ("deny", 0, "before\nafter 126\n")):
            p = start(c, box, INSIDE)
            [a] = pending(c)
            same((a["what"], a["detail"]["inside"], a["process"]), ("run uname -r", True, p["id"]), "the question")
            same(state(c, p)["state"], "running", "the command runs")
            decide(c, a, decision)
            done = end(c, p)
            text = "".join(x for x in done["stdout"].splitlines(True) if "not permitted" not in x)
            same((done["exit_code"], text), (status, out), decision)
            same([v["reason"] for v in done["violations"]], [] if decision == "allow" else ["denied"], "violations")
        # By whatever way: a path, a search of PATH, another name for it, a shell that lives on.
        for cmd in ("/usr/bin/uname -r", "env uname -r", "exec -a harmless uname -r", "cp /usr/bin/uname /tmp/x; exec -a uname /tmp/x -r"):
            p = start(c, box, ["bash", "-c", cmd])
            [a] = pending(c)
            decide(c, a, "deny")
            same(end(c, p)["exit_code"], 126, cmd)
        p = start(c, box, "id -G -u", shell="main")
        [a] = pending(c)
        same((a["what"], a["detail"]["rule"]), ("run id -G -u", "id ** -u"), "in a named shell")
        decide(c, a, "deny")
        same(end(c, p)["exit_code"], 126, "in a named shell")


@test("a decision for the sandbox answers the next; the same at once is one question", own=True)
def _(_api):
    with daemon("again") as (_, c):
        box = c.create(GATE)
        ps = [start(c, box, OWN) for _ in range(3)]
        [a] = pending(c)
        decide(c, a, "allow", scope="sandbox")
        same([end(c, p)["exit_code"] for p in ps], [0, 0, 0], "all of them")
        same(end(c, start(c, box, INSIDE))["stdout"], f"before\n{RELEASE}\nafter 0\n", "not asked again")
        same(len(c.ok("GET", "/v1/approvals")["approvals"]), 1, "one question in all")
        other = c.create(GATE)
        p = start(c, other, ["id", "-u", "it's", "x y"])
        [b] = pending(c)
        same(b["what"], "run id -u 'it'\\''s' 'x y'", "words that mean one thing")
        decide(c, b, "deny", scope="sandbox")
        same(end(c, p)["state"], "denied", "no")
        same(end(c, start(c, other, ["id", "-u", "it's", "x y"]))["state"], "denied", "no, the next time too")


@test("nobody answers: refused in time; too many at once: refused at once", own=True)
def _(_api):
    with daemon("late", "6s") as (_, c):  # long enough for many to be there at once
        box = c.create(GATE)
        p, q = start(c, box, OWN), start(c, box, INSIDE)
        same((end(c, p)["state"], end(c, q)["stdout"].splitlines()[-1]), ("denied", "after 126"), "late")
        check("expired" in end(c, p)["reason"], end(c, p))
        [a] = [x for x in c.ok("GET", "/v1/approvals")["approvals"] if x["process"] == p["id"]] or [None]
        same(a and a["state"], "expired", "the question")
        many = "for i in $(seq 90); do id -u $i 2>/dev/null || echo no & done; wait"
        done = end(c, start(c, box, many), 30)
        same(done["stdout"].split(), ["no"] * 90, "none of many")
        check(any(v["reason"] == "too many wait" for v in done["violations"]), done["violations"])


@test("who waits is told so: on the terminal, and inside, where nobody can answer", own=True)
def _(_api):
    with daemon("told") as (d, c):
        box = c.create(GATE)
        cli = subprocess.Popen([str(lib.cell.BIN / "caisson"), "exec", box["id"], "--", "sh", "-c", INSIDE], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
                               env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "CAISSON_SOCKET": str(d.socket)})
        [a] = pending(c)
        check(f"caisson approve {a['id']}" in (line := cli.stderr.readline()), line)
        ask = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/caisson/self.sock'); s.sendall(b'%s\\n'); print(s.recv(9999).decode())"
        why = c.execute(box, ["python3", "-c", ask % "why"])
        [x] = json.loads(why["stdout"])["pending"]
        same((x["kind"], x["target"], x["rule"]), ("command", "uname -r", "uname -r"), why)
        for words in (f"allow {a['id']}", "allow", "approve 1"):
            check("error" in c.execute(box, ["python3", "-c", ask % words])["stdout"], words)
        same(one(c, a)["state"], "pending", "nobody answered")
        decide(c, a, "allow")
        same((cli.wait(lib.PATIENCE), cli.stdout.read()), (0, f"before\n{RELEASE}\nafter 0\n"), "it goes on")


@test("killed, stopped, paused while it is held: withdrawn, or still the same question", own=True)
def _(_api):
    with daemon("signals") as (_, c):
        box = c.create(GATE)
        for cmd in (OWN, INSIDE):
            p = start(c, box, cmd)
            [a] = pending(c)
            c.delete(f"/v1/processes/{p['id']}")
            same(one(c, a, "?wait=40s")["state"], "withdrawn", cmd)
            same(end(c, p)["state"], "killed", cmd)
        p = start(c, box, INSIDE)
        [a] = pending(c)
        for _ in range(3):  # each of them interrupts the execve, which is said again
            c.ok("POST", f"/v1/sandboxes/{box['id']}/pause")
            c.ok("POST", f"/v1/sandboxes/{box['id']}/resume")
        for sig in ("STOP", "CONT", "WINCH"):
            c.ok("POST", f"/v1/processes/{p['id']}/signal", {"sig": sig, "scope": "tree"})
        time.sleep(1)
        same([x["id"] for x in pending(c)], [a["id"]], "the same question")
        decide(c, a, "allow")
        same(end(c, p)["stdout"], f"before\n{RELEASE}\nafter 0\n", "it goes on")
        p = start(c, box, INSIDE)
        [a] = pending(c)
        c.remove(box)
        same(one(c, a, "?wait=40s")["state"], "withdrawn", "its sandbox is gone")


@test("the daemon is killed while they are held: they wait on, and the next one decides", own=True)
def _(_api):
    with daemon("killed") as (d, c):
        box = c.create(GATE)
        p, q = start(c, box, OWN), start(c, box, "id -u >/dev/null; echo $?")
        asked = sorted(x["id"] for x in pending(c, 2))
        wait_until(lambda: state(c, p)["state"] == "awaiting_approval", 5, "its state")
        for _ in range(2):
            restart(d, c)
            same(sorted(x["id"] for x in pending(c, 2)), asked, "the same questions")
        wait_until(lambda: state(c, p)["state"] == "awaiting_approval", what="its state")
        for a in pending(c, 2):
            decide(c, a, "allow" if a["process"] == p["id"] else "deny")
        done = end(c, p)
        same((done["state"], done["stdout"].strip()), ("exited", RELEASE), done)
        check(end(c, q)["stdout"].endswith("126\n"), end(c, q))


@test("its monitor is killed while it is held: lost, and withdrawn", own=True)
def _(_api):
    with daemon("monitor") as (d, c):
        box = c.create(GATE)
        p = start(c, box, OWN)
        [a] = pending(c)
        [m] = d.monitors()
        os.kill(m, signal.SIGKILL)
        same(one(c, a, "?wait=40s")["state"], "withdrawn", "nobody waits")
        same(end(c, p)["state"], "lost", "the process")


@test("what is no command to hold is refused, and the spec says it again as it was said", own=True)
def _(_api):
    with daemon("spec") as (_, c):
        for bad in ("", " a", "a  b", "** x", 7, "a\x01"):
            same(c.post("/v1/sandboxes", {"gate": {"commands": [bad]}}).status, 400, bad)
        same(c.post("/v1/sandboxes", {"gate": {"comands": ["x"]}}).status, 400, "a slip")
        box = c.create({"gate": {"commands": ["git ** push"]}})
        same(box["spec"]["gate"], {"commands": ["git ** push"]}, "the spec")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
