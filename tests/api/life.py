#!/usr/bin/env python3
"""The API as a client sees it: lives of sandboxes and processes, records, tokens. TAP.

    tests/api/life.py           all (needs root)
    tests/api/life.py events    those with the word in their title
"""
import contextlib
import json
import random
import signal
import sqlite3
import sys
import threading
import time

import lib
from lib import USER_ID, Daemon, Stream, check, decoded, same, test, wait_until

EXEC_STATES = {"exited", "signaled", "timeout", "oom", "killed", "expired", "denied", "lost"}


# ---- sandboxes -------------------------------------------------------------------------------

@test("create, get, delete: one object with state, spec and what enforces it")
def _(api):
    c = api.client
    s = c.create(limits={"mem": "64m", "pids": 64})
    same(s["state"], "running", "state")
    same(s["generation"], 1, "generation")
    same(s["spec"]["limits"], {"mem": 64 << 20, "pids": 64}, "spec is canonical")
    check(s["enforced"]["mem"] not in ("none", None), f"enforced: {s['enforced']}")
    same(c.ok("GET", f"/v1/sandboxes/{s['id']}")["id"], s["id"], "get")
    c.remove(s)
    gone = c.get(f"/v1/sandboxes/{s['id']}")
    check(gone.status == 404 or gone.json["state"] == "gone", f"after delete: {gone}")
    same(c.delete(f"/v1/sandboxes/{s['id']}").status, 404, "delete again")
    same(c.get("/v1/sandboxes/sb_" + "a" * 26).status, 404, "never existed")


@test("list: labels, limit, cursor; newest first, each once")
def _(api):
    c = api.client
    ids = [c.create(labels={"n": str(i), "odd": str(i % 2)})["id"] for i in range(7)]
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        page = c.ok("GET", "/v1/sandboxes?limit=3" + (f"&cursor={cursor}" if cursor else ""))
        check(len(page["sandboxes"]) <= 3, "limit")
        seen += [s["id"] for s in page["sandboxes"]]
        cursor, pages = page["next"], pages + 1
    same(seen, ids[::-1], "order")
    same(pages, 3, "pages")
    odd = c.ok("GET", "/v1/sandboxes?label=odd%3D1")["sandboxes"]
    same([s["labels"]["n"] for s in odd], ["5", "3", "1"], "label")
    for bad in ("limit=0", "limit=-1", "limit=1e3", "limit=99999", "cursor=zzz", "label=odd", "colour=red"):
        same(c.get(f"/v1/sandboxes?{bad}").status, 400, bad)


@test("key: the same wishes get the same sandbox, others are refused; free again after deletion")
def _(api):
    c = api.client
    first = c.create(key="task-1", limits={"pids": 50})
    again = c.post("/v1/sandboxes", {"key": "task-1", "limits": {"pids": 50}})
    same((again.status, again.json["id"]), (200, first["id"]), "same")
    other = c.post("/v1/sandboxes", {"key": "task-1", "limits": {"pids": 51}})
    same((other.status, other.code), (409, "exists"), "another spec")
    same(c.ok("GET", "/v1/sandboxes/task-1")["id"], first["id"], "by key")
    same(c.execute("task-1", ["true"])["exit_code"], 0, "exec by key")
    c.remove("task-1")
    check(c.create(key="task-1")["id"] != first["id"], "a new one")
    results = []

    def race():
        mine = api.daemon.client()
        results.append(mine.post("/v1/sandboxes", {"key": "race"}))
        mine.close()
    threads = [threading.Thread(target=race) for _ in range(8)]
    _ = [t.start() for t in threads], [t.join() for t in threads]
    check(all(r.status in (200, 201, 409) for r in results), f"race: {results}")
    same(len({r.json["id"] for r in results if r.status < 300}), 1, "one of a race")


@test("stop and start: processes end, files stay; three different answers for stopped, gone, paused")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, ["sleep", "60"], wait=0)
    c.ok("POST", f"/v1/sandboxes/{s['id']}/exec", {"cmd": "echo kept > /work/file"})
    same(c.ok("POST", f"/v1/sandboxes/{s['id']}/stop", {})["state"], "stopped", "stop")
    ended = c.ok("GET", f"/v1/processes/{p['id']}")
    check(ended["state"] in ("killed", "signaled"), f"process after stop: {ended}")
    refused = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"]})
    same((refused.status, refused.code), (409, "conflict"), "exec when stopped")
    same(c.get(c.file(s, "/work/file")).body, b"kept\n", "files of a stopped one")
    same(c.ok("POST", f"/v1/sandboxes/{s['id']}/start", {})["state"], "running", "start")
    same(c.execute(s, ["cat", "/work/file"])["stdout"], "kept\n", "after start")


@test("pause and resume: nothing runs meanwhile, and goes on where it was")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, "i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done", wait="100ms")
    paused = c.post(f"/v1/sandboxes/{s['id']}/pause")
    if paused.code == "unenforceable":
        return
    same((paused.status, paused.json["state"]), (200, "paused"), "pause")
    first = len(c.get(f"/v1/processes/{p['id']}/log").body)
    time.sleep(0.3)
    check(len(c.get(f"/v1/processes/{p['id']}/log").body) - first < 16, "it writes while paused")
    same(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"]}).status, 409, "exec when paused")
    same(c.ok("POST", f"/v1/sandboxes/{s['id']}/resume", {})["state"], "running", "resume")
    wait_until(lambda: len(c.get(f"/v1/processes/{p['id']}/log").body) > first + 16, what="it goes on")
    paused = c.ok("POST", f"/v1/sandboxes/{s['id']}/pause", {})
    c.remove(s)
    check(c.ok("GET", f"/v1/processes/{p['id']}")["state"] in ("killed", "signaled"), "deleted while paused")


@test("replace: same id, next generation, fresh files; old processes are told apart")
def _(api):
    c = api.client
    s = c.create(key="again")
    p = c.execute(s, "echo old > /work/f; sleep 60", wait="50ms")
    new = c.ok("POST", f"/v1/sandboxes/{s['id']}/replace", {})
    same((new["id"], new["generation"], new["state"]), (s["id"], 2, "running"), "replace")
    same(c.get(c.file(s, "/work/f")).status, 404, "ephemeral files")
    same(c.execute(s, ["true"])["exit_code"], 0, "exec")
    check(c.ok("GET", f"/v1/processes/{p['id']}")["state"] in ("killed", "signaled"), "the old process")


@test("ttl and extend, idle: sandboxes end by themselves, and not earlier")
def _(api):
    c = api.client
    extended, busy = c.create(ttl="5s"), c.create(idle="5s")
    c.ok("POST", f"/v1/sandboxes/{extended['id']}/extend", {"ttl": "1h"})
    c.execute(busy, ["sleep", "600"], wait=0)
    begun = time.monotonic()
    short, idle = c.create(ttl="1s"), c.create(idle="1s")

    def states():
        return [c.get(f"/v1/sandboxes/{s['id']}").json.get("state", "gone") for s in (short, idle, extended, busy)]
    wait_until(lambda: states() == ["gone", "gone", "running", "running"], what="short and idle gone")
    time.sleep(max(0, begun + 6 - time.monotonic()))
    same(states(), ["gone", "gone", "running", "running"], "the others stay")


@test("wall: from the first command on, across commands; extend moves it; the state is expired")
def _(api):
    c = api.client
    s, t = c.create(limits={"wall": "1s"}), c.create(limits={"wall": "5s"})
    q = c.execute(t, ["sleep", "600"], wait=0)
    c.ok("POST", f"/v1/sandboxes/{t['id']}/extend", {"wall": "1h"})
    p = c.execute(s, ["sleep", "60"], wait=0)
    same(c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")["state"], "expired", "wall")
    same(c.ok("GET", f"/v1/processes/{q['id']}?wait=6s")["state"], "running", "extended")


@test("100 creates from 20 clients: all run, ids are unique; then all are gone")
def _(api):
    made, wrong = [], []

    def work():
        mine = api.daemon.client(timeout=60)
        for _ in range(5):
            answer = mine.post("/v1/sandboxes", {"limits": {"mem": "16m", "disk": "4m"}})
            (made if answer.status == 201 else wrong).append(answer)
        mine.close()
    threads = [threading.Thread(target=work) for _ in range(20)]
    _ = [t.start() for t in threads], [t.join() for t in threads]
    check(not wrong, f"{len(wrong)} failed: {wrong[:3]}")
    same(len({a.json["id"] for a in made}), 100, "ids")
    check(all(a.json["state"] == "running" for a in made), "running")
    check(len(list((api.daemon.run / "sb").iterdir())) >= 100, "sockets of monitors")
    api.client.remove_all()
    wait_until(lambda: not list((api.daemon.run / "sb").glob("*.sock")), 10, "sockets of monitors are removed")


@test("usage and backends say what is")
def _(api):
    c = api.client
    s = c.create()
    c.execute(s, ["sleep", "60"], wait=0)
    usage = wait_until(lambda: (u := c.ok("GET", f"/v1/sandboxes/{s['id']}/usage"))["pids"] >= 1 and u, 2, "pids")
    check(usage["mem"] > 0 and usage["mem_peak"] >= usage["mem"], f"usage: {usage}")
    backend = c.ok("GET", "/v1/backends")["backends"][0]
    same((backend["name"], backend["mode"]), ("native", "root"), "backend")
    check(b"caisson_sandboxes{state=\"running\"} 1" in c.get("/metrics").body, "metrics")


@test("health and metrics: without a token only that it lives, a tenant's token its own, the operator and an admin all", own=True)
def _(_api):
    d = Daemon("counts", options=["--listen", "127.0.0.1:0"]).start()
    c = d.client()
    tokens = {t: c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": t})["token"] for t in "ab"}
    admin = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "admin"})["token"])
    a, b = (d.tcp(tokens[t]) for t in "ab")
    s = a.create()
    nobody, wrong = lib.Client(("127.0.0.1", d.port())), d.tcp("cst_wrong")
    for who in (nobody, wrong):
        same(who.ok("GET", "/v1/health"), {"status": "ready", "live": True, "ready": True}, "that it lives")
        same(who.get("/metrics").status, 401, "no counters")
    same([x.ok("GET", "/v1/health").get("sandboxes") for x in (a, b, admin, c)], [1, 0, 1, 1], "sandboxes")
    for who, n, is_all in ((a, 1, False), (b, 0, False), (admin, 1, True), (c, 1, True)):
        text = who.get("/metrics").body.decode()
        check(f'caisson_sandboxes{{state="running"}} {n}' in text and ("caisson_execs_total" in text) == is_all, text)
    a.remove(s)
    _ = [x.close() for x in (a, b, c, admin, nobody, wrong)]
    d.stop()


@test("a text that is too long for its field is the caller's mistake, wherever it is, and no 500")
def _(api):
    c = api.client
    s = c.create()
    w = c.ok("PUT", "/v1/workspaces/texts", {})
    for n in (4095, 4096, 4097, 5000, 100_000):
        for key, text in (("cwd", "/" + "x" * (n - 1)), ("label", "x" * n), ("user", "x" * n), ("shell", "x" * n)):
            for path in (f"/v1/sandboxes/{s['id']}/exec", f"/v1/workspaces/{w['id']}/exec", "/v1/run"):
                answer = c.post(path, {"cmd": ["true"], key: text})
                # A name that the kernel does not know ends in the command; a longer one never comes that far.
                check(answer.status in (400, 413, 422) or (key == "cwd" and n < 4096 and answer.status == 200) or
                      (path == "/v1/run" and key in ("label", "shell") and answer.status == 200), f"{path} {key} {n}: {answer}")
    same(c.execute(s, ["true"])["exit_code"], 0, "it lives")
    c.delete(f"/v1/workspaces/{w['id']}?force=1")
    c.remove(s)


@test("export: a bundle that is made while commits are is the one of some moment, and no 500")
def _(api):
    c = api.client
    at = f"/v1/workspaces/{c.ok('PUT', '/v1/workspaces/bundle', {})['id']}"
    commit = "git -c user.name=a -c user.email=a@example.org commit -q"
    c.ok("POST", f"{at}/exec", {"cmd": f"git init -q -b main . && echo 1 >a && git add a && {commit} -m one"})
    stop = threading.Event()

    def work():
        mine = api.daemon.client()
        while not stop.is_set():
            mine.post(f"{at}/exec", {"cmd": f"for i in 1 2 3 4 5 6; do date +%N >>a; {commit} -a -m x; done"})
        mine.close()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        got = [c.get(f"{at}/export?format=bundle") for _ in range(40)]
    finally:
        stop.set()
        thread.join(lib.PATIENCE)
    same([a for a in got if a.status != 200 or not a.body.startswith(b"# v2 git bundle")], [], "bundles")
    c.delete(f"{at}?force=1")


# ---- idempotency -----------------------------------------------------------------------------

@test("Idempotency-Key: replay, mismatch, in progress")
def _(api):
    c = api.client
    s = c.create()
    target = f"/v1/sandboxes/{s['id']}/exec"
    body = {"cmd": "date +%s%N; echo ran >> /work/count"}
    first = c.post(target, body, Idempotency_Key="k1")
    again = c.post(target, body, Idempotency_Key="k1")
    same(again.json["id"], first.json["id"], "replay: the process")
    same(again.body, first.body, "replay: the answer")
    same(again.headers["Idempotent-Replay"], "true", "it says so")
    same(c.execute(s, ["cat", "/work/count"])["stdout"], "ran\n", "ran once")
    other = c.post(target, {"cmd": "true"}, Idempotency_Key="k1")
    same((other.status, other.code), (409, "conflict"), "another body")
    elsewhere = c.post("/v1/sandboxes", body, Idempotency_Key="k1")
    same(elsewhere.status, 409, "another target")
    made = c.post("/v1/sandboxes", {}, Idempotency_Key="create")
    same(c.post("/v1/sandboxes", {}, Idempotency_Key="create").json["id"], made.json["id"], "create")
    refused = [c.post(target, {"cmd": 5}, Idempotency_Key="bad") for _ in range(2)]
    same([r.status for r in refused], [400, 400], "a refusal is replayed too")
    slow, held = [], {"cmd": "until [ -e /work/go ]; do sleep 0.05; done; echo slow"}

    def work():
        mine = api.daemon.client()
        slow.append(mine.post(target, held, Idempotency_Key="slow"))
        mine.close()
    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: c.ok("GET", "/v1/processes?state=running")["processes"], what="it runs")
    meanwhile = c.post(target, held, Idempotency_Key="slow")
    same((meanwhile.status, meanwhile.code), (409, "conflict"), "in progress")
    c.put(c.file(s, "/work/go"), b"")
    thread.join()
    same(c.post(target, held, Idempotency_Key="slow").json["id"], slow[0].json["id"], "done")
    for bad in ("", "x" * 300):
        same(c.post(target, body, Idempotency_Key=bad).status, 400, f"key of {len(bad)} bytes")


@test("Idempotency-Key: what the worker inside answers is kept, and who left in the middle learns what became of it")
def _(api):
    c = api.client
    s = c.create()
    c.put(c.file(s, "/work/f"), b"a b")
    moves = [c.post(f"/v1/sandboxes/{s['id']}/files:move", {"from": "/work/f", "to": "/work/g"}, Idempotency_Key="move") for _ in range(2)]
    same([(m.status, m.body) for m in moves], [(200, moves[0].body)] * 2, "moved once")
    same(moves[1].headers["Idempotent-Replay"], "true", "it says so")

    made = c.post("/v1/tokens", {"name": "kept"}, Idempotency_Key="token")
    same(made.status, 201, f"{made}")
    stored = b"".join(p.read_bytes() for p in api.daemon.state.glob("*.db*"))
    same((made.json["id"].encode() in stored, made.json["token"].encode() in stored), (True, False), "the text of a token is in no store")
    check("not kept" in c.post("/v1/tokens", {"name": "kept"}, Idempotency_Key="token").json["detail"], "nor given twice")

    def asked_again(target, body, key):
        answer = c.post(target, body, Idempotency_Key=key)
        return None if "being worked on" in answer.body.decode() else answer
    for n in range(12):  # in the middle of what is begun for it
        body, key = {"cmd": f"sleep 0.1; echo {n}"}, f"middle-{n}"
        for target in ("/v1/run", f"/v1/sandboxes/{s['id']}/exec"):
            mine = api.daemon.client()
            mine.connection.request("POST", target, json.dumps(body), {"Idempotency-Key": key + target[-3:]})
            time.sleep(0.004 * n)
            mine.close()
            answer = wait_until(lambda t=target, b=body, k=key + target[-3:]: asked_again(t, b, k), what="it is not being worked on for ever")
            check(answer.status in (200, 409), f"{answer}")
            check("not kept" in answer.json["detail"] if answer.status == 409 else answer.json["state"] in ("exited", "killed", "signaled"), f"{answer}")
    c.remove(s)


@test("Idempotency-Key: a client that leaves before its request is begun leaves nothing behind")
def _(api):
    pid, targets = api.daemon.pid, ("/v1/run", "/v1/workspaces/left/exec", "/mcp", "/v1/workspaces/left/fork")
    api.client.ok("PUT", "/v1/workspaces/left", {})
    for i in range(40):
        for target in targets:
            c = api.daemon.client()
            c.connection.request("POST", target, b'{"cmd": "true"}', {"Idempotency-Key": f"left-{i}-{target[-4:]}"})
            c.close()
    same(api.daemon.pid, pid, "the daemon is the same")
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    same([api.client.post("/mcp", body, Idempotency_Key="twice").status for _ in range(2)], [200, 200], "a door that keeps no answers takes no key")
    api.client.remove_all()
    api.client.ok("DELETE", "/v1/workspaces/left?force=1")


# ---- processes -------------------------------------------------------------------------------

@test("exec: exit code, both streams, signal, timeout, not found are results")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, "echo out; echo err >&2; exit 7")
    same([p[k] for k in ("state", "exit_code", "stdout", "stderr", "encoding")],
         ["exited", 7, "out\n", "err\n", "utf-8"], "both streams")
    same(p["bytes"], {"stdout": 4, "stderr": 4, "dropped": 0}, "bytes")
    p = c.execute(s, "kill -SEGV $$")
    same([p[k] for k in ("state", "exit_code", "signal")], ["signaled", None, int(signal.SIGSEGV)], "signal")
    begin = time.monotonic()
    p = c.execute(s, "trap '' TERM; sleep 60 & sleep 60", timeout="300ms")
    same([p[k] for k in ("state", "exit_code")], ["timeout", None], "timeout")
    check(time.monotonic() - begin < 40, f"timeout took {time.monotonic() - begin:.1f} s")
    same(c.execute(s, ["/no/such"])["exit_code"], 127, "not found")
    same(c.execute(s, ["/etc/passwd"])["exit_code"], 126, "not executable")
    same(c.execute(s, ["printf", "%s|", "a b", "$HOME", ""])["stdout"], "a b|$HOME||", "argv without a shell")
    same(c.execute(s, ["sh", "-c", "exit 300"])["exit_code"], 300 & 255, "status")


@test("exec: env, cwd, user")
def _(api):
    c = api.client
    s = c.create(env={"A": "spec", "B": "spec"})
    same(c.execute(s, "echo $A $B $C; pwd", env={"B": "exec", "C": "3"}, cwd="/tmp")["stdout"],
         "spec exec 3\n/tmp\n", "env, cwd")
    same(c.execute(s, ["id", "-u"])["stdout"], "1000\n", "agent")
    same(c.execute(s, ["id", "-u"], user="root")["stdout"], "0\n", "root inside")
    for bad in ({"env": {"A=B": "1"}}, {"env": {"": "1"}}, {"env": {"A": 1}}, {"env": []}, {"cwd": "relative"},
                {"user": "no-such-user"}, {"user": "../x"}, {"cmd": []}, {"cmd": ["a", 1]}, {"cmd": None}, {"cmd": ["a\0b"]},
                {"tty": "yes"}, {"timeout": -1}, {"colour": 1}, {"output": {"inline": "1t"}}, {"wait": "soon"}):
        answer = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"], **bad})
        check(answer.status in (400, 422), f"{bad}: {answer}")
    missing = c.execute(s, ["true"], cwd="/no/such")
    check(missing["state"] != "exited" or missing["exit_code"] != 0, f"a cwd that is not there: {missing}")


@test("wait and background: the call returns, the process goes on and is found again")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, "echo early; until [ -e /work/go ]; do sleep 0.05; done; echo late", wait="100ms")
    same((p["state"], p["exit_code"]), ("running", None), "wait=100ms")
    wait_until(lambda: c.ok("GET", f"/v1/processes/{p['id']}")["stdout"] == "early\n", what="so far")
    same(c.execute(s, ["true"], wait=0)["state"] in ("queued", "running", "exited"), True, "wait=0")
    c.put(c.file(s, "/work/go"), b"")
    p = c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")
    same((p["state"], p["stdout"], p["exit_code"]), ("exited", "early\nlate\n", 0), "at the end")
    p = c.execute(s, lib.ASLEEP.format("sleep 60") + "echo started")
    same((p["state"], p["stdout"]), ("exited", "started\n"), "children do not hold the answer")
    check([child["name"] for child in p["children"]] == ["sleep"], f"children: {p['children']}")
    several = [c.execute(s, ["sh", "-c", f"sleep 0.2; exit {i}"], wait=0)["id"] for i in range(10)]
    same([c.ok("GET", f"/v1/processes/{i}?wait=40s")["exit_code"] for i in several], list(range(10)), "ten at once")


@test("stdin: text, pieces, end, a process that does not read, one without")
def _(api):
    c = api.client
    s = c.create()
    same(c.execute(s, ["cat"], stdin="hello")["stdout"], "hello", "text")
    same(c.execute(s, ["cat"])["stdout"], "", "none is /dev/null")
    p = c.execute(s, ["sh", "-c", "read a; read b; echo $b $a; cat"], stdin=True, wait=0)
    target = f"/v1/processes/{p['id']}/stdin"
    c.ok("POST", target, {"data": "one\n"})
    c.ok("POST", target, {"base64": "dHdvCg=="})
    p = c.ok("POST", target, {"data": "rest", "eof": True, "wait": "40s"})
    same((p["state"], p["stdout"]), ("exited", "two one\nrest"), "pieces")
    same(c.post(target, {"data": "late"}).status, 409, "after the end")
    sleeper = c.execute(s, ["sleep", "60"], stdin=True, wait=0)
    answers = [c.post(f"/v1/processes/{sleeper['id']}/stdin", {"data": "x" * 60000}) for _ in range(6)]
    check(answers[0].status == 200 and answers[-1].code == "busy", f"one that does not read: {answers}")
    same(c.execute(s, ["true"])["exit_code"], 0, "the others go on")
    none = c.execute(s, ["sleep", "60"], wait=0)
    same(c.post(f"/v1/processes/{none['id']}/stdin", {"data": "x"}).status, 409, "without stdin")
    check(c.ok("GET", f"/v1/processes/{sleeper['id']}")["state"] == "running", "it still sleeps")


@test("tty and merge: a terminal of its own, sizes, one stream in order")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, "stty size; test -t 0 && test -t 1 && test -t 2 && echo terminal", tty=True, rows=33, cols=101)
    same(p["stdout"], "33 101\r\nterminal\r\n", "tty")
    p = c.execute(s, "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done", output={"merge": True})
    same((p["stdout"], p["stderr"]), ("o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n", ""), "merge")
    p = c.execute(s, "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done", tty=True, wait=0)
    wait_until(lambda: b"ready" in c.get(f"/v1/processes/{p['id']}/log").body, what="its trap")
    c.ok("POST", f"/v1/processes/{p['id']}/resize", {"rows": 40, "cols": 90})
    p = c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")
    same((p["stdout"], p["exit_code"]), ("ready\r\n40 90\r\n", 3), "resize")
    plain = c.execute(s, ["sleep", "60"], wait=0)
    same(c.post(f"/v1/processes/{plain['id']}/resize", {"rows": 4, "cols": 9}).status, 409, "resize without tty")
    ws = c.execute(s, "read a; echo got $a", tty=True, stdin=True, wait=0)
    w = lib.WebSocket(api.daemon.socket, f"/v1/processes/{ws['id']}/tty")
    check(b" 101 " in w.head, f"WebSocket: {w.head!r}")
    w.send(1, b'{"resize":{"rows":20,"cols":50}}')
    w.send(2, b"typed\r")
    frames = list(w.frames())
    w.close()
    out = b"".join(data for opcode, data in frames if opcode == 2)
    check(b"got typed" in out, f"WebSocket output: {out!r}")
    ends = [json.loads(data) for opcode, data in frames if opcode == 1]
    check(ends and ends[-1].get("exit_code") == 0, f"the end as a text message: {ends}")


@test("output: bytes exact, limits of inline and log, head and tail, code points whole")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, "head -c 300000 /dev/urandom > /work/r; cat /work/r", output={"inline": "1m"})
    same(p["encoding"], "base64", "encoding")
    body = c.get(c.file(s, "/work/r")).body
    same(len(body), 300000, "size")
    check(decoded(p) == body, "inline bytes differ")
    check(c.get(f"/v1/processes/{p['id']}/log").body == body, "log differs")
    p = c.execute(s, "seq 1 100000", output={"inline": "4k"})
    truth = "".join(f"{i}\n" for i in range(1, 100001))
    check(len(p["stdout"]) <= 4300 and p["stdout"].startswith("1\n2\n") and p["stdout"].endswith("99999\n100000\n"),
          f"head+tail: {p['stdout'][:20]!r}…{p['stdout'][-20:]!r} {len(p['stdout'])}")
    check(p["bytes"]["dropped"] >= len(truth) - 4300, f"dropped: {p['bytes']}")
    check(c.get(f"/v1/processes/{p['id']}/log").body.decode() == truth, "the whole log is on disk")
    p = c.execute(s, "yes ä | head -c 20001", output={"inline": "1001"})
    same(p["encoding"], "utf-8", "cut on code points")
    p = c.execute(s, "seq 1 200000", output={"max_log": "64k"})
    log = c.get(f"/v1/processes/{p['id']}/log").body
    check(len(log) < 200000 and log.startswith(b"1\n2\n") and log.endswith(b"\n200000\n"),
          f"max_log: {len(log)} bytes, {log[:10]!r} … {log[-10:]!r}")
    big = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"], "output": {"inline": "1g"}})
    same(big.status, 400, "inline has a ceiling")


@test("log: Range of an ended one: first, middle, last bytes; what is no range")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, "seq 1 5000")
    truth = "".join(f"{i}\n" for i in range(1, 5001)).encode()
    target = f"/v1/processes/{p['id']}/log"
    for text, want in (("bytes=0-9", truth[:10]), ("bytes=100-199", truth[100:200]), ("bytes=-7", truth[-7:]),
                       ("bytes=20000-", truth[20000:]), ("bytes=0-99999999", truth)):
        answer = c.get(target, Range=text)
        same((answer.status, answer.body), (206, want), text)
        check(answer.headers["Content-Range"].endswith(f"/{len(truth)}"), text)
    for text in ("bytes=9-3", "lines=0-9", "bytes=a-b", "bytes=99999999-", f"bytes=0-{2**70}"):
        answer = c.get(target, Range=text)
        check(answer.status in (200, 206, 416), f"{text}: {answer.status}")
        check(answer.status != 200 or answer.body == truth, text)


def read_events(c, target, after, stop_after=None):
    """(bytes, last seq, is at the end); gives up in the middle when it has enough."""
    response = c.send("GET", f"{target}?follow=1&after={after}")
    out, seq, is_end = b"", after, False
    for line in response:
        event = json.loads(line)
        check(event["seq"] >= seq, f"seq goes back: {event}")
        seq = event["seq"]
        if event["type"] == "end":
            is_end = True
            break
        out += lib.base64.b64decode(event["base64"]) if "base64" in event else event["data"].encode()
        if stop_after is not None and len(out) >= stop_after:
            c.close()
            return out, seq, False
    response.close()
    c.close()
    return out, seq, is_end


@test("events: after= resumes without loss or duplication, live and afterwards; SSE too")
def _(api):
    c = api.client
    s = c.create()
    chooser = random.Random(3)
    p = c.execute(s, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); [ $((i % 500)) = 0 ] && sleep 0.05; done",
                  wait=0)
    truth = "".join(f"line {i}\n" for i in range(3000)).encode()
    target = f"/v1/processes/{p['id']}/events"
    for _ in range(3):
        out, seq, is_end, rounds = b"", 0, False, 0
        while not is_end:
            piece, seq, is_end = read_events(api.daemon.client(), target, seq, chooser.randrange(1, 8000))
            out, rounds = out + piece, rounds + 1
            check(rounds < 3000, "it does not end")
        check(out == truth, f"{len(out)} bytes in {rounds} pieces, expected {len(truth)}")
    body = c.get(target, Accept="text/event-stream").body.decode()
    last = [line for line in body.splitlines() if line.startswith("id: ")][-1]
    check("event: end" in body and last, "SSE")
    middle = body.splitlines()[0]
    rest = c.get(target, Accept="text/event-stream", **{"Last-Event-ID": middle[4:]}).body.decode()
    check(rest and middle not in rest.splitlines(), "Last-Event-ID")
    same(c.get(f"{target}?after=x").status, 400, "after=x")
    far = c.get(f"{target}?after={2**62}")
    check(far.status in (200, 400), f"after beyond the end: {far}")


@test("at_end: a sandbox stops, or goes, with one of its processes")
def _(api):
    c = api.client
    s = c.create()
    c.execute(s, ["sleep", "60"], wait=0)
    same(c.execute(s, "echo kept >/work/x; exit 3", at_end="stop")["exit_code"], 3)
    wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "stopped", what="stopped")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/start")
    same(c.execute(s, "cat /work/x", at_end="keep")["stdout"], "kept\n")
    same(c.execute(s, ["/no/such"], at_end="delete")["exit_code"], 127)
    wait_until(lambda: c.get(f"/v1/sandboxes/{s['id']}").json["state"] == "gone", what="gone")
    s = c.create()
    same(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "true", "at_end": "pause"}).status, 400)
    c.execute(s, ["sleep", "600"], wait=0, at_end="delete")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/stop")  # its end is that of the stop
    wait_until(lambda: c.get(f"/v1/sandboxes/{s['id']}").json["state"] == "gone", what="gone")


@test("signals: to the process, to the tree; DELETE ends all it started and nobody else's")
def _(api):
    c = api.client
    s = c.create()
    by = c.execute(s, ["sleep", "60"], wait=0)
    p = c.execute(s, "trap 'echo hup' HUP; echo ready; while :; do sleep 0.05; done", wait=0)
    wait_until(lambda: b"ready" in c.get(f"/v1/processes/{p['id']}/log").body, what="its trap")
    c.ok("POST", f"/v1/processes/{p['id']}/signal", {"sig": "HUP"})
    wait_until(lambda: b"hup" in c.get(f"/v1/processes/{p['id']}/log").body, what="HUP")
    c.ok("POST", f"/v1/processes/{p['id']}/signal", {"sig": 15, "scope": "tree"})
    same(c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")["state"], "signaled", "TERM to the tree")
    q = c.execute(s, "trap '' TERM; setsid sleep 301 & (sleep 302 &) ; sleep 303", wait="200ms")
    c.ok("DELETE", f"/v1/processes/{q['id']}")
    check(c.ok("GET", f"/v1/processes/{q['id']}?wait=40s")["state"] in ("killed", "signaled"), "DELETE")
    wait_until(lambda: c.execute(s, "grep -sl '^sleep.30[123]' /proc/[0-9]*/cmdline | wc -l")["stdout"] == "0\n", 8,
               "its children are dead")
    same(c.ok("GET", f"/v1/processes/{by['id']}")["state"], "running", "the neighbour")
    for bad in ({"sig": "FOO"}, {"sig": 0}, {"sig": 65}, {"sig": -9}, {"sig": "KILL", "scope": "host"}, {}):
        same(c.post(f"/v1/processes/{by['id']}/signal", bad).status, 400, f"{bad}")
    same(c.post(f"/v1/processes/{q['id']}/signal", {"sig": "TERM"}).status, 409, "after the end")


@test("records stay when the sandbox is gone: state, exit code, log; listed by sandbox, label, state")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, "echo kept; exit 9", label="tests")
    c.execute(s, ["true"], label="other")
    c.remove(s)
    again = c.ok("GET", f"/v1/processes/{p['id']}")
    same([again[k] for k in ("state", "exit_code", "stdout", "label", "sandbox")],
         ["exited", 9, "kept\n", "tests", s["id"]], "record")
    same(c.get(f"/v1/processes/{p['id']}/log").body, b"kept\n", "log")
    same(c.ok("GET", f"/v1/processes/{p['id']}")["cmd"][-1], "echo kept; exit 9", "cmd")
    same([x["id"] for x in c.ok("GET", f"/v1/processes?sandbox={s['id']}&label=tests")["processes"]], [p["id"]], "list")
    same(len(c.ok("GET", f"/v1/processes?sandbox={s['id']}&state=exited")["processes"]), 2, "by state")
    same(c.get("/v1/processes?state=sleeping").status, 400, "no such state")


@test("run: makes, runs, removes; nothing stays; a client that leaves takes it along")
def _(api):
    c = api.client
    p = c.ok("POST", "/v1/run", {"cmd": "echo $A; exit 4", "env": {"A": "one-shot"}, "spec": {"limits": {"pids": 20}}})
    same((p["state"], p["exit_code"], p["stdout"]), ("exited", 4, "one-shot\n"), "run")
    same(c.ok("GET", f"/v1/processes/{p['id']}")["exit_code"], 4, "its record")
    same(c.ok("GET", "/v1/sandboxes")["sandboxes"], [], "its sandbox")
    live = Stream(api.daemon.socket, "/v1/run", {"cmd": ["sh", "-c", "echo out; echo err >&2; cat; exit 5"],
                                                 "stdin": True})
    live.say("I", b"typed")
    live.say("Z")
    frames = live.rest()
    same((frames["O"], frames["E"]), (b"out\ntyped", b"err\n"), "stream")
    same(json.loads(frames["X"])["exit_code"], 5, "stream end")
    started = json.loads(frames["S"])
    check("enforced" not in started and started["process"]["id"], f"stream start: {started}")
    whole = Stream(api.daemon.socket, "/v1/run", {"cmd": ["sh", "-c", "echo out"], "inline": True}).rest()
    check(json.loads(whole["X"])["enforced"]["net"] == "netns", f"stream end, for a result: {whole['X']}")
    same(json.loads(whole["X"])["stdout"], "out\n", "stream end, for a result")
    left = Stream(api.daemon.socket, "/v1/run", {"cmd": ["sleep", "60"]})
    same(left.frame()[0], "S", "started")
    left.close()
    wait_until(lambda: not c.ok("GET", "/v1/sandboxes")["sandboxes"], 8, "the client left")
    bad = c.post("/v1/run", {"cmd": ["true"], "spec": {"net": "denny"}})
    same(bad.status, 400, "spec")
    missing = c.post("/v1/run", {"cmd": ["/no/such"]})
    same((missing.status, missing.json["exit_code"]), (200, 127), "not found")
    oom = c.ok("POST", "/v1/run", {"cmd": ["python3", "-c", "x = bytearray(200 << 20)"],
                                   "spec": {"limits": {"mem": "32m"}}})
    check(oom["state"] in ("oom", "exited", "signaled"), f"oom: {oom}")


@test("attach: a live process joined later, its output once, input and end")
def _(api):
    c = api.client
    s = c.create()
    p = c.execute(s, ["sh", "-c", "echo first; read x; echo $x; exit 6"], stdin=True, wait="100ms")
    live = Stream(api.daemon.socket, f"/v1/processes/{p['id']}/attach", method="GET")
    live.say("I", b"second\n")
    frames = live.rest()
    same(frames["O"], b"first\nsecond\n", "output")
    same(json.loads(frames["X"])["exit_code"], 6, "end")
    q = c.execute(s, "sleep 60", wait=0, on_disconnect="kill")
    same(c.ok("GET", f"/v1/processes/{q['id']}")["state"] in ("queued", "running"), True, "it had its answer")


@test("a command, then the walls anew, at once: the last word of the old ones is heard")
def _(api):
    c = api.client
    s = c.create(limits={"mem": "64m"})["id"]
    for i in range(40):
        same(c.execute(s, ["true"])["exit_code"], 0, f"exec {i}")
        same(c.ok("POST", f"/v1/sandboxes/{s}/replace", {})["state"], "running", f"replace {i}")
    c.remove(s)


@test("nobody is told of a process that is not on record")
def _(api):
    c = api.client
    s = c.create()
    database = sqlite3.connect(f"file:{api.daemon.state / 'caisson.db'}?mode=ro", uri=True)
    run, execute = ("/v1/run", {"cmd": ["sleep", "0.2"]}), (f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"]})

    def has_row(number):
        return database.execute("SELECT count(*) FROM processes WHERE id=?", (number,)).fetchone()[0] == 1

    def check_log(number):
        log = (api.daemon.state / "logs" / number).read_bytes()
        check(log[:8] != bytes(8) and log[12288:12289] == b"{", "how it ended and who it is stand in its log")
    for i in range(40):
        for target, body in (run, execute) if i % 4 == 0 else (execute,):
            stream = Stream(api.daemon.socket, target, body)
            letter, first = stream.frame()
            told = json.loads(first)
            same(letter, "S", target)
            if "process" in told:
                check(has_row(told["process"]["id"]), target)
                stream.rest()
            else:  # it was over before there was something to tell: its end says who it was
                number = json.loads(stream.rest()["X"])["id"]
                if not has_row(number):
                    check_log(number)
            stream.close()
        stream = Stream(api.daemon.socket, "/v1/run", {"cmd": ["true"]})  # a short one: its log is its record first
        check_log(json.loads(stream.rest()["X"])["id"])
        stream.close()
    database.close()


# ---- files -----------------------------------------------------------------------------------

@test("files: write, read, range, lines, edit, stat, list, move, copy, delete, grep, glob, batch, patch, tar")
def _(api):
    c = api.client
    s = c.create()
    at = f"/v1/sandboxes/{s['id']}"
    made = c.put(c.file(s, "/work/a/b.txt"), b"one\ntwo\nthree\n")
    check(made.status in (200, 201), f"put: {made}")
    digest = made.json["hash"]
    same(c.get(c.file(s, "/work/a/b.txt")).body, b"one\ntwo\nthree\n", "read")
    part = c.get(c.file(s, "/work/a/b.txt"), Range="bytes=4-6")
    same((part.status, part.body), (206, b"two"), "range")
    same(c.ok("GET", c.file(s, "/work/a/b.txt") + "?lines=2-3")["text"], "two\nthree\n", "lines")
    edited = c.call("PATCH", c.file(s, "/work/a/b.txt"), {"edits": [{"old": "two", "new": "2"}]},
                    {"If-Match": f'"{digest}"'})
    same(edited.status, 200, f"edit: {edited}")
    stale = c.call("PATCH", c.file(s, "/work/a/b.txt"), {"edits": [{"old": "2", "new": "3"}]},
                   {"If-Match": f'"{digest}"'})
    same((stale.status, stale.code), (412, "stale"), "If-Match")
    same(c.call("PATCH", c.file(s, "/work/a/b.txt"), {"edits": [{"old": "none", "new": "x"}]}).code, "no_match", "edit")
    stat = c.ok("GET", c.file(s, "/work/a/b.txt") + "?stat")
    same((stat["type"], stat["bytes"]), ("file", 12), "stat")
    same([e["path"].rsplit("/", 1)[-1] for e in c.ok("GET", c.file(s, "/work/a") + "?list")["entries"]], ["b.txt"], "list")
    c.ok("POST", f"{at}/files:copy", {"from": "/work/a/b.txt", "to": "/work/c.txt"})
    c.ok("POST", f"{at}/files:move", {"from": "/work/c.txt", "to": "/work/d.txt"})
    c.ok("POST", f"{at}/files:mkdir", {"path": "/work/x/y"})
    same(c.get(c.file(s, "/work/c.txt")).status, 404, "moved")
    found = c.ok("POST", f"{at}/grep", {"pattern": "thr.e", "path": "/work"})
    same(sorted(m["path"].lstrip("/") for m in found["matches"]), ["work/a/b.txt", "work/d.txt"], "grep")
    same(len(c.ok("POST", f"{at}/glob", {"pattern": "**/*.txt", "path": "/work"})["paths"]), 2, "glob")
    batch = c.ok("POST", f"{at}/files:batch", [{"op": "read", "path": "/work/none"},
                                               {"op": "write", "path": "/work/e", "text": "e"},
                                               {"op": "stat", "path": "/work/e"}])
    same(["error" in b for b in batch], [True, False, False], f"batch: {batch}")
    patch = "--- a/d.txt\n+++ b/d.txt\n@@ -1,3 +1,3 @@\n one\n-2\n+zwei\n three\n"
    c.ok("POST", f"{at}/patch", patch.encode())
    same(c.get(c.file(s, "/work/d.txt")).body, b"one\nzwei\nthree\n", "patch")
    for name in ("../d.txt", "../../tmp/evil", "/tmp/evil", "sub/../../d.txt", "/work/d.txt"):
        for evil in (f"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n",
                     f"*** Begin Patch\n*** Add File: new\n+x\n*** Add File: {name}\n+x\n*** End Patch\n"):
            same(c.post(f"{at}/patch", evil.encode()).code, "invalid", evil)
    same(c.execute(s, "ls /work/new /tmp/evil; cat /work/d.txt")["stdout"], "one\nzwei\nthree\n", "nothing of it was written")
    archive = c.get(f"{at}/archive?path=/work")
    same(archive.status, 200, "tar out")
    c.ok("POST", f"{at}/files:mkdir", {"path": "/work/back"})
    same(c.put(f"{at}/archive?path=/work/back", archive.body).status, 200, "tar in")
    same(c.execute(s, "find /work/back -name d.txt | xargs cat")["stdout"], "one\nzwei\nthree\n", "tar")
    same(c.delete(c.file(s, "/work/a")).status in (400, 409), True, "a folder that is not empty")
    c.ok("DELETE", c.file(s, "/work/a") + "?recursive")
    same(c.get(c.file(s, "/work/a")).status, 404, "deleted")
    same(c.put(c.file(s, "/work/e"), b"x", If_None_Match="*").status, 409, "If-None-Match")
    same(c.execute(s, ["stat", "-c", "%U", "/work/e"])["stdout"], "agent\n", "files are the agent's")
    big = bytes(range(256)) * 40960
    same(c.put(c.file(s, "/work/big"), big).status in (200, 201), True, "10 MiB")
    check(c.get(c.file(s, "/work/big")).body == big, "10 MiB back")


@test("files: a name without a slash in front means what a command of the sandbox means")
def _(api):
    c = api.client
    for spec, folder in (({}, "/work"), ({"fs": "ephemeral:/data"}, "/data")):
        s = c.create(spec)
        at = f"/v1/sandboxes/{s['id']}"
        same(c.put(f"{at}/files/a.sh?relative", b"echo $0; cat b").status, 200, "write")
        same(c.put(f"{at}/files{folder}/b?relative", b"").status, 200, f"{folder} below {folder}")
        same(c.put(f"{at}/files/{folder}/b?relative", b"two").status, 200, "a slash in front: from the root")
        same(c.execute(s, "sh a.sh")["stdout"], "a.sh\ntwo", "exec meets the same file")
        same(c.get(f"{at}/files{folder}/a.sh").body, b"echo $0; cat b", "without relative: from the root")
        same(c.get(f"{at}/files/a.sh").status, 404, "which has no such file")
        same(sorted(e["path"] for e in c.ok("GET", f"{at}/files/?relative&list")["entries"] if e["type"] == "file"),
             ["a.sh", "b"], "list")
        c.ok("PATCH", f"{at}/files/a.sh?relative", {"edits": [{"old": "cat", "new": "wc -c"}]})
        c.ok("POST", f"{at}/files:mkdir", {"path": "x"})
        c.ok("POST", f"{at}/files:copy", {"from": "b", "to": "x/c"})
        same(c.get(f"{at}/files{folder}/x/c").body, b"two", "copy")
        same([m["path"] for m in c.ok("POST", f"{at}/grep?path=x", {"pattern": "two"})["matches"]], ["c"], "grep")
        same(c.ok("POST", f"{at}/glob", {"pattern": "x/*"})["paths"], ["x/c"], "glob")
        same(c.ok("POST", f"{at}/files:batch", [{"op": "read", "path": "x/c"}])[0]["ok"]["text"], "two", "batch")
        archive = c.get(f"{at}/archive?path=x")
        same(c.put(f"{at}/archive?path=y", archive.body).status, 200, f"tar: {archive}")
        same(c.execute(s, "cat y/c")["stdout"], "two", "tar in")
        c.ok("DELETE", f"{at}/files/a.sh?relative")
        same(c.execute(s, "ls a.sh")["exit_code"], 2, "deleted")
        c.remove(s)


@test("watch: what changes is told while it changes")
def _(api):
    c = api.client
    s = c.create()
    mine = api.daemon.client()
    response = mine.send("GET", c.file(s, "/work") + "?watch&recursive")
    same(response.status, 200, "watch")
    c.put(c.file(s, "/work/new"), b"1")
    seen = b""
    for line in response:
        seen += line
        if b"new" in line:
            break
    check(b"new" in seen, f"events: {seen!r}")
    mine.close()


# ---- tokens, users ---------------------------------------------------------------------------

@test("admin is the operator's: a token of another tenant that has it from before does what the other scopes let it do, there", own=True)
def _(_api):
    d = Daemon("admins", options=["--listen", "127.0.0.1:0"]).start()
    c = d.client()
    old = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "b"})["token"])
    worker = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "a"})["token"])
    d.stop()
    with contextlib.closing(sqlite3.connect(d.state / "caisson.db")) as db, db:
        db.execute("UPDATE tokens SET scopes='admin' WHERE tenant='b'")
    d.start()
    c, old, worker = d.client(), d.tcp(old.token), d.tcp(worker.token)
    s = worker.create(limits={"wall": "10m"})
    asked = worker.ok("POST", f"/v1/sandboxes/{s['id']}/extend", {"wall": "1h"})["approval"]
    same(old.ok("GET", "/v1/approvals")["approvals"], [], "another tenant's questions")
    same(old.post(f"/v1/approvals/{asked['id']}", {"decision": "allow"}).code, "not_found", "its answers")
    same([r for r in old.get("/v1/events").body.splitlines() if b'"tenant":"b"' not in r], [], "its records")
    same([old.get("/v1/tokens").code, old.post("/v1/gc", {}).code], ["forbidden", "forbidden"], "what is the host's")
    mine = old.create()
    same(old.execute(mine, ["true"])["exit_code"], 0, "its own tenant's it works with")
    same(c.ok("GET", "/v1/approvals")["approvals"][0]["id"], asked["id"], "the operator sees it")
    for x, box in ((old, mine), (worker, s)):
        x.remove(box)
        x.close()
    c.close()
    d.stop()


@test("tokens over TCP: scopes include those below, tenants are apart, revoked is revoked", own=True)
def _(_api):
    d = Daemon("tcp", options=["--listen", "127.0.0.1:0"]).start()
    try:
        local = d.client()
        tokens = {scope: local.ok("POST", "/v1/tokens", {"name": scope, "scope": [scope], "tenant": "local" if scope == "admin" else "a"})
                  for scope in ("read", "exec", "manage", "admin")}
        same(local.post("/v1/tokens", {"scope": ["admin"], "tenant": "a"}).code, "forbidden", "an admin of a tenant")
        made = d.tcp(tokens["manage"]["token"]).create(key="mine")
        want = {  # scope -> list, exec, create, tokens
            "read": [200, 403, 403, 403], "exec": [200, 200, 403, 403],
            "manage": [200, 200, 201, 403], "admin": [200, 404, 201, 200]}
        for scope, statuses in want.items():
            c = d.tcp(tokens[scope]["token"])
            got = [c.get("/v1/sandboxes").status, c.post(f"/v1/sandboxes/{made['id']}/exec", {"cmd": ["true"]}).status,
                   c.post("/v1/sandboxes", {}).status, c.get("/v1/tokens").status]
            same(got, statuses, scope)
            c.close()
        same(d.tcp(tokens["exec"]["token"]).post(f"/v1/sandboxes/{made['id']}/exec", {"cmd": ["true"], "at_end": "stop"}).status, 403,
             "exec, and the end of the sandbox")
        other = d.tcp(local.ok("POST", "/v1/tokens", {"scope": ["manage"], "tenant": "b"})["token"])
        same(other.get(f"/v1/sandboxes/{made['id']}").status, 404, "another tenant")
        same(other.get("/v1/sandboxes/mine").status, 404, "another tenant's key")
        same(other.ok("GET", "/v1/sandboxes")["sandboxes"], [], "another tenant's list")
        same(local.get(f"/v1/sandboxes/{made['id']}").status, 404, "the local tenant")
        short = local.ok("POST", "/v1/tokens", {"scope": ["read"], "ttl": "5s"})["token"]
        same(d.tcp(short).get("/v1/sandboxes").status, 200, "before it expires")
        admin = d.tcp(tokens["admin"]["token"])
        same(admin.delete(f"/v1/tokens/{tokens['read']['id']}").status, 204, "revoke")
        same(d.tcp(tokens["read"]["token"]).get("/v1/sandboxes").status, 401, "revoked")
        listed = admin.ok("GET", "/v1/tokens")["tokens"]
        check(not any("token" in t or "hash" in t for t in listed) and sorted(t["tenant"] for t in listed) == ["a", "a", "a", "b", "local", "local"], f"list: {listed}")
        wait_until(lambda: d.tcp(short).get("/v1/sandboxes").status == 401, what="expired")
        database = b"".join(p.read_bytes() for p in d.state.glob("caisson.db*"))
        check(not any(t["token"].encode() in database for t in tokens.values()), "a token's text is in the database")
        for who in (admin, d.tcp(tokens["manage"]["token"])):
            for s in who.ok("GET", "/v1/sandboxes")["sandboxes"]:
                who.remove(s)
    finally:
        d.stop()


@test("an ordinary user's own daemon: create, exec, files, delete; root's are others", own=True)
def _(_api):
    d = Daemon("user", uid=USER_ID).start()
    try:
        c = d.client()
        s = c.create()
        p = c.execute(s, "id -u; echo hi > /work/f; exit 3")
        same((p["exit_code"], p["stdout"]), (3, "1000\n"), "exec")
        same(c.get(c.file(s, "/work/f")).body, b"hi\n", "file")
        same(c.ok("GET", "/v1/backends")["backends"][0]["mode"], "rootless", "mode")
        named = c.post("/v1/sandboxes", {"limits": {"cpu": 1}})
        check(named.status in (201, 422), f"a named limit is enforced or refused: {named}")
        if named.status == 201:
            c.remove(named.json)
        c.remove(s)
    finally:
        d.stop()


@test("idle-exit: a daemon on demand ends when there is nothing to keep, and not before", own=True)
def _(_api):
    d = Daemon("demand", options=["--on-demand", "--idle-exit", "5"]).start()
    c = d.client()
    s = c.create()
    c.close()
    time.sleep(6.5)
    check(d.process.poll() is None, "it ended with a sandbox to keep")
    c.remove(s)
    c.close()
    wait_until(lambda: d.process.poll() is not None, 6, "its end")
    same(d.process.returncode, 0, "status")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
