#!/usr/bin/env python3
"""The network of sandboxes as the API has it: records and who follows them, violations, why, rules that
change, and what only the operator may. A server of the cell's loopback is the world. TAP.

    tests/api/net.py        all (needs root)
    tests/api/net.py why    those with the word in their title
"""
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

import lib
from lib import Daemon, check, same, test, wait_until

GRANT = ("--net", "grant=127.0.0.0/8")
HOSTS = "127.0.0.1 localhost web.test other.test deny.test\n"
MS_BIND = 4096


class Echo(socketserver.BaseRequestHandler):
    """Gives back what comes, and notes how much that was."""

    seen = []

    def handle(self):
        n = 0
        with contextlib.suppress(OSError):
            while data := self.request.recv(65536):
                n += len(data)
                self.request.sendall(data)
        Echo.seen.append(n)


class World(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128


worlds = []
enter_cell = lib.enter


def enter(name):
    """With a server, and names that lead to it."""
    enter_cell(name)
    own = pathlib.Path("/run/hosts")
    own.write_text(HOSTS)
    same(ctypes.CDLL(None).mount(str(own).encode(), b"/etc/hosts", None, MS_BIND, None), 0, "mount /etc/hosts")
    worlds.append(World(("127.0.0.1", 0), Echo))
    threading.Thread(target=worlds[0].serve_forever, daemon=True).start()


lib.enter = enter


def port():
    """Of that server."""
    return worlds[0].server_address[1]


def talk(host, word="hello", hold=""):
    """A script that says a word to the server and prints the answer."""
    return f"exec 3<>/dev/tcp/{host}/{port()} && echo {word} >&3 && read -r -t 40 -u 3 x && echo \"$x\"; {hold}"


UNTIL_TOLD = "until [ -e /tmp/told ]; do sleep 0.05; done"


def tell(c, s):
    """Whoever waits for it."""
    same(c.put(c.file(s, "/tmp/told"), b"").status, 200, "told")


def rows(c, s, query=""):
    return c.ok("GET", f"/v1/sandboxes/{lib.id_of(s)}/connections{query}")["connections"]


def settled(c, s, n, query=""):
    """So many records, none of them of an open connection."""
    return wait_until(lambda: (r := rows(c, s, query)) and len(r) == n and all(x["close"] != "open" for x in r) and r,
                      5, f"{n} records")


@contextlib.contextmanager
def daemon(name, *options):
    d = Daemon(name, options=[*GRANT, *options]).start()
    c = d.client()
    try:
        yield d, c
        c.remove_all()
        d.wait_clean()
    finally:
        c.close()
        d.stop()


class Lines:
    """A stream of records, read by a thread."""

    def __init__(self, d, s, query="", token=None, **headers):
        self.client = d.client() if token is None else d.tcp(token)
        self.response = self.client.send("GET", f"/v1/sandboxes/{lib.id_of(s)}/connections?follow=1{query}",
                                         headers=lib.named(headers))
        same(self.response.status, 200, "follow")
        self.lines, self.is_over = [], False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError):
            for line in self.response:
                self.lines.append(line.decode().rstrip("\n"))
        self.is_over = True

    def records(self):
        return [json.loads(x) for x in self.lines if x.startswith("{")]

    def close(self):
        self.client.close()


# ---- records ---------------------------------------------------------------------------------

@test("a connection, a refused lookup and a literal are on record; pages and filters", own=True)
def _(_api):
    with daemon("records") as (_, c):
        s = c.create(net={"allow": ["web.test"], "deny": ["deny.test"]})
        p = c.execute(s, talk("web.test"))
        same((p["stdout"], p["violations"]), ("hello\n", []), "the exchange")
        got = settled(c, s, 1)[0]
        want = {"kind": "connection", "sandbox": s["id"], "connection": 1, "process": p["id"], "name": "web.test",
                "dst": "198.18.0.2", "real": "127.0.0.1", "port": port(), "proto": "tcp", "decision": "allow",
                "rule": "allow: web.test", "reason": None, "bytes_up": 6, "bytes_down": 6, "close": "client", "count": 1}
        same({k: got[k] for k in want}, want, "the record")
        check(abs(got["ts_ms"] / 1000 - time.time()) < 300 and got["ms"] < 60000, f"times: {got}")
        q = c.execute(s, "getent hosts nothing.test; getent hosts deny.test; (exec 3<>/dev/tcp/192.0.2.1/80) 2>&1; true")
        denied = settled(c, s, 3, "?decision=deny")
        same([(r["kind"], r["name"], r["dst"], r["reason"]) for r in denied],
             [("lookup", "nothing.test", None, "no_rule"), ("lookup", "deny.test", None, "rule"),
              ("connection", None, "192.0.2.1", "literal")], "denials")
        same({r["process"] for r in denied}, {q["id"]}, "whose")
        same(len(rows(c, s, "?decision=allow")), 1, "allowed")
        same(len(rows(c, s, "?decision=ask_deny")), 0, "asked")
        same([r["name"] for r in rows(c, s, "?name=deny.test")], ["deny.test"], "by name")
        page = c.ok("GET", f"/v1/sandboxes/{s['id']}/connections?limit=3")
        same((len(page["connections"]), page["next"]), (3, page["connections"][-1]["seq"]), "a page")
        last = c.ok("GET", f"/v1/sandboxes/{s['id']}/connections?after={page['next']}")
        same((len(last["connections"]), last["next"]), (1, None), "the next")
        for query in ("?after=x", "?limit=0", "?limit=2000", "?decision=maybe", "?since=1"):
            same(c.get(f"/v1/sandboxes/{s['id']}/connections{query}").code, "invalid", query)
        same(c.get("/v1/sandboxes/sb_nothing/connections").code, "not_found", "no such sandbox")


@test("records and traffic agree: every connection once, with its bytes; every denial once", own=True)
def _(_api):
    with daemon("agree") as (_, c):
        s = c.create(net={"allow": ["web.test"]})
        sizes = [(i * 7919) % 50000 + 1 for i in range(60)]
        Echo.seen.clear()
        script = "".join(f"exec 3<>/dev/tcp/web.test/{port()}; head -c {n} /dev/zero >&3 & head -c {n} <&3 >/dev/null; wait; exec 3>&-\n"
                         f"getent hosts no{i}.test\n" for i, n in enumerate(sizes))
        same(c.execute(s, script, timeout="60s")["state"], "exited", "the script")
        got = wait_until(lambda: (r := rows(c, s, "?limit=1000&decision=allow")) and len(r) == len(sizes)
                         and all(x["close"] != "open" for x in r) and r, 10, "all on record")
        wait_until(lambda: len(Echo.seen) == len(sizes), 5, "the server has seen all")
        for key in ("bytes_up", "bytes_down"):
            same(sorted(r[key] for r in got), sorted(sizes), key)
        same(sorted(Echo.seen), sorted(sizes), "what the server saw")
        same(len({r["connection"] for r in got}), len(sizes), "numbers")
        denied = settled(c, s, len(sizes), "?limit=1000&decision=deny")
        same({(r["name"], r["count"]) for r in denied}, {(f"no{i}.test", 1) for i in range(len(sizes))}, "denials")


@test("violations: of the command that ran, certain when it was alone in the sandbox", own=True)
def _(_api):
    with daemon("violations") as (_, c):
        alone = c.ok("POST", "/v1/run", {"spec": {"net": {"allow": ["web.test"]}},
                                         "cmd": "getent hosts a.test; getent hosts a.test; getent hosts b.test"})
        found = {v["target"]: v for v in alone["violations"]}
        same(sorted(found), ["a.test", "b.test"], "targets")
        check(all(v["certain"] is True and v["kind"] == "net" and v["rule"] == "deny" and v["reason"] == "no_rule"
                  for v in found.values()), f"{found}")
        wait_until(lambda: {r["name"] for r in rows(c, alone["sandbox"], "?decision=deny")} == {"a.test", "b.test"}, 5,
                   "records of one that is gone")
        s = c.create(net={"allow": ["web.test"]})
        first = c.execute(s, UNTIL_TOLD, wait=0)
        second = c.execute(s, "getent hosts c.test")
        same([(v["target"], v["certain"]) for v in second["violations"]], [("c.test", False)], "one of two")
        tell(c, s)
        ended = c.ok("GET", f"/v1/processes/{first['id']}?wait=40s")
        same([v["target"] for v in ended["violations"]], ["c.test"], "it may have been this one")


@test("follow: opened and closed as they come, to the end of the sandbox; SSE goes on behind an id", own=True)
def _(_api):
    with daemon("follow") as (d, c):
        s = c.create(net={"allow": ["web.test"]})
        follower = Lines(d, s)
        held = c.execute(s, talk("web.test", hold=UNTIL_TOLD), wait=0)
        wait_until(lambda: [r["close"] for r in follower.records()] == ["open"], 5, "the open connection")
        tell(c, s)
        c.ok("GET", f"/v1/processes/{held['id']}?wait=40s")
        wait_until(lambda: [r["close"] for r in follower.records()] == ["open", "client"], 5, "and its end")
        first, second = follower.records()
        check(first["connection"] == second["connection"] and first["seq"] < second["seq"], f"{first} {second}")
        same([r["seq"] for r in rows(c, s)], [second["seq"]], "the last word replaces the first")
        c.execute(s, "getent hosts a.test")
        events = Lines(d, s, Accept="text/event-stream", Last_Event_ID=str(second["seq"]))
        wait_until(lambda: any(x.startswith("data: ") for x in events.lines), 5, "an event")
        same(events.lines[1], "event: lookup", "its name")
        check(events.lines[0] == f"id: {rows(c, s)[-1]['seq']}", f"{events.lines}")
        denied = Lines(d, s, "&decision=deny")
        wait_until(lambda: len(denied.records()) == 1, 5, "what is there already")
        c.remove(s)
        wait_until(lambda: follower.is_over and events.is_over and denied.is_over, 5, "the end")
        same([r["kind"] for r in follower.records()], ["connection", "connection", "lookup"], "all of them")
        _ = [x.close() for x in (follower, events, denied)]


@test("a follower that does not read costs nobody anything", own=True)
def _(_api):
    with daemon("slow") as (d, c):
        s = c.create(net={"allow": ["web.test"]})
        slow = lib.connect(d.socket)
        slow.sendall(f"GET /v1/sandboxes/{s['id']}/connections?follow=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        p = c.execute(s, f"for i in $(seq 400); do exec 3<>/dev/tcp/web.test/{port()}; exec 3>&-; done; echo done")
        same(p["stdout"], "done\n", "the loop")
        wait_until(lambda: sum(r["close"] != "open" for r in rows(c, s, "?limit=1000")) == 400, 10, "all on record")
        slow.close()


@test("records outlive the daemon: what happens while it is dead is told to the next one", own=True)
def _(_api):
    with daemon("crash") as (d, c):
        s = c.create(net={"allow": ["web.test"]})
        c.execute(s, talk("web.test"))
        settled(c, s, 1)
        c.execute(s, f"sleep 1; {talk('web.test')} getent hosts late.test", wait=0)
        os.kill(d.pid, signal.SIGKILL)
        c.close()
        time.sleep(1.5)
        d.wait_ready()
        got = settled(c, s, 3)
        same(sorted((r["name"], r["kind"], r["decision"]) for r in got),
             [("late.test", "lookup", "deny")] + [("web.test", "connection", "allow")] * 2, "what happened")
        check(len({r["connection"] for r in got}) == 3, f"numbers: {got}")
        same(c.execute(s, talk("web.test", "again"))["stdout"], "again\n", "the same names mean the same")


def kill_children():
    """Of the gate."""
    gates = [p for p in lib.census.pids() if (x := lib.stat_of(p)) and x[0].startswith("caisson-gate")]
    parents = {x[1] for p in gates if (x := lib.stat_of(p))}
    for p in gates:
        if p not in parents:
            with contextlib.suppress(ProcessLookupError):
                os.kill(p, signal.SIGKILL)


@test("an open connection whose gate dies is lost, and the next one works", own=True)
def _(_api):
    with daemon("lost") as (d, c):
        s = c.create(net={"allow": ["web.test"]})
        held = c.execute(s, talk("web.test", hold="read -r -t 100 -u 3 y; echo ended"), wait=0)
        wait_until(lambda: c.get(f"/v1/processes/{held['id']}/log").body == b"hello\n", 5, "the answer")
        wait_until(lambda: [r["close"] for r in rows(c, s)] == ["open"], 5, "open")
        kill_children()
        same(c.ok("GET", f"/v1/processes/{held['id']}?wait=40s")["stdout"], "hello\nended\n", "it noticed")
        wait_until(lambda: [r["close"] for r in rows(c, s)] == ["lost"], 5, "lost")
        same(c.execute(s, talk("web.test", "again"))["stdout"], "again\n", "again")


# ---- why -------------------------------------------------------------------------------------

@test("why: which rule decides, and the narrowest that would allow it", own=True)
def _(_api):
    with daemon("why") as (_, c):
        s = c.create(net={"allow": ["web.test", "*.wild.test:8080"], "deny": ["deny.web.test"], "ask": ["ask.test"],
                          "cidr": ["8.8.8.0/24:53"]})
        cases = (
            ("host=web.test", "allow", "allow: web.test", None, None),
            ("host=WEB.test.&port=22", "allow", "allow: web.test", None, None),
            ("host=a.wild.test&port=8080", "allow", "allow: *.wild.test:8080", None, None),
            ("host=a.wild.test", "deny", None, "no_rule", "allow: a.wild.test:443"),
            ("host=deny.web.test", "deny", "deny: deny.web.test", "rule", None),
            ("host=ask.test", "ask", "ask: ask.test", None, "allow: ask.test:443"),
            ("host=8.8.8.8&port=53", "allow", "cidr: 8.8.8.0/24:53", None, None),
            ("host=8.8.8.8", "deny", None, "literal", "cidr: 8.8.8.8/32:443"),
            ("host=169.254.169.254&port=80", "deny", None, "metadata", None),
        )
        for query, decision, rule, reason, add in cases:
            got = c.ok("GET", f"/v1/sandboxes/{s['id']}/why?{query}")
            same([got[k] for k in ("decision", "rule", "reason", "would_allow")], [decision, rule, reason, add], query)
        for query in ("host=", "port=80", "host=a&port=0", "host=a&port=70000", "host=a_b..c", "host=a%00b", "host=0x7f.1"):
            same(c.get(f"/v1/sandboxes/{s['id']}/why?{query}").code, "invalid", query)


# ---- rules that change -----------------------------------------------------------------------

def change(c, s, net):
    return c.call("PATCH", f"/v1/sandboxes/{lib.id_of(s)}/net", net)


@test("new rules hold at once, close what they do not allow, and are there after a restart and a replacement", own=True)
def _(_api):
    with daemon("change") as (d, c):
        s = c.create(net={"allow": ["web.test"]})
        held = c.execute(s, talk("web.test", hold="read -r -t 100 -u 3 y; echo ended"), wait=0)
        wait_until(lambda: c.get(f"/v1/processes/{held['id']}/log").body == b"hello\n", 5, "the answer")
        wait_until(lambda: [r["close"] for r in rows(c, s)] == ["open"], 5, "open")
        looser = change(c, s, {"allow": ["web.test", "other.test"]}).json
        same((looser["closed"], looser["loosened"]), (0, True), "more")
        check(looser["generation"] > 0, f"{looser}")
        same(c.execute(s, talk("other.test"))["stdout"], "hello\n", "the new name")
        tighter = change(c, s, {"allow": ["other.test"]}).json
        same((tighter["closed"], tighter["loosened"], tighter["net"]),
             (1, False, {"mode": "list", "allow": ["other.test"]}), "less")
        check(tighter["generation"] > looser["generation"], f"{tighter}")
        same(c.ok("GET", f"/v1/processes/{held['id']}?wait=40s")["stdout"], "hello\nended\n", "its connection ended")
        wait_until(lambda: rows(c, s, "?name=web.test")[-1]["reason"] == "reloaded", 5, "and why")
        same(c.execute(s, talk("web.test"))["stdout"], "", "no more")
        same(c.ok("GET", f"/v1/sandboxes/{s['id']}")["spec"]["net"], {"mode": "list", "allow": ["other.test"]}, "spec")
        os.kill(d.pid, signal.SIGKILL)
        c.close()
        d.wait_ready()
        same(c.ok("GET", f"/v1/sandboxes/{s['id']}")["spec"]["net"], {"mode": "list", "allow": ["other.test"]}, "row")
        same(c.execute(s, talk("other.test"))["stdout"], "hello\n", "after a restart")
        c.ok("POST", f"/v1/sandboxes/{s['id']}/replace")
        same(c.execute(s, talk("other.test"))["stdout"], "hello\n", "after a replacement")
        same(c.execute(s, talk("web.test"))["stdout"], "", "the old rules are gone")
        same(change(c, s, {"mode": "deny"}).status, 200, "nothing any more")
        same(c.execute(s, talk("other.test"))["stdout"], "", "nothing")


# Says when each connection was accepted and when its first bytes came.
CLOCKED = r"""
import select, socket, sys, time
l = socket.create_server(("127.0.0.1", 0), backlog=4096); l.setblocking(False)
p = select.epoll(); p.register(l, select.EPOLLIN); socks = {}
print(l.getsockname()[1], flush=True)
while True:
    for fd, _ in p.poll():
        if fd == l.fileno():
            while True:
                try: s, _ = l.accept()
                except BlockingIOError: break
                print("accept", time.monotonic(), flush=True)
                s.setblocking(False); socks[s.fileno()] = s; p.register(s, select.EPOLLIN)
            continue
        s = socks[fd]
        try: data = s.recv(65536)
        except BlockingIOError: continue
        except OSError: data = b""
        if data: print("bytes", time.monotonic(), flush=True)
        else: p.unregister(fd); s.close(); del socks[fd]
"""
# Threads that connect, send and hang up as fast as they can, and some that send on and on.
HAMMER = r"""
import socket, sys, threading, time
port = int(sys.argv[1])
def short():
    while True:
        try:
            with socket.create_connection(("web.test", port), 5) as s: s.sendall(b"hello")
        except OSError: time.sleep(0.005)
def long():
    while True:
        try:
            with socket.create_connection(("web.test", port), 5) as s:
                while True: s.sendall(b"x" * 100); time.sleep(0.002)
        except OSError: time.sleep(0.005)
for f in [short] * 6 + [long] * 3: threading.Thread(target=f, daemon=True).start()
print("begun", flush=True)
time.sleep(600)
"""


@test("when PATCH has answered, nothing that the new rules deny arrives any more: 20 rounds under a storm of connections", own=True)
def _(_api):
    with daemon("tight") as (_, c):
        server = subprocess.Popen([sys.executable, "-c", CLOCKED], stdout=subprocess.PIPE, text=True)
        said, late, busy = [], [], []
        try:
            where = int(server.stdout.readline())
            threading.Thread(target=lambda: said.extend(line.split() for line in server.stdout), daemon=True).start()
            open_, shut = {"allow": ["web.test"]}, {"mode": "deny"}
            s = c.create(net=open_)
            hammer = c.execute(s, ["python3", "-c", HAMMER, str(where)], wait=0)
            for i in range(20):
                begin = time.monotonic()
                wait_until(lambda begin=begin: len([1 for _, at in said[-2000:] if float(at) > begin]) > 30, 30, "the storm")
                before = time.monotonic()
                same(change(c, s, shut).status, 200, f"round {i}")
                answered = time.monotonic()
                time.sleep(0.6)
                times = [(what, float(at)) for what, at in said[:]]
                busy.append(len([1 for _, at in times if before - 0.3 < at < before]))
                late.append([(what, round(at - answered, 4)) for what, at in times if at > answered])
                same(change(c, s, open_).status, 200, "open again")
            print(f"# arrived in the 0.3 s before each PATCH: {busy}; after its answer: {[len(x) for x in late]}")
            check(min(busy) > 3, f"the storm was none: {busy}")
            same([x for x in late if x], [], "arrived after the answer")
            c.delete(f"/v1/processes/{hammer['id']}")
        finally:
            server.kill()
            server.wait()


@test("a network that was taken away is there again by new rules, also after a restart; what comes meanwhile is denied", own=True)
def _(_api):
    with daemon("deny") as (d, c):
        s = c.create(net={"allow": ["web.test"]})
        for what in ("daemon", "gate", "both"):
            same(change(c, s, {"mode": "deny"}).status, 200, "nothing any more")
            if what != "daemon":
                kill_children()
            if what != "gate":
                os.kill(d.pid, signal.SIGKILL)
                c.close()
                d.wait_ready()
            before = len(rows(c, s, "?decision=deny"))
            begin = time.monotonic()
            same(c.execute(s, talk("web.test"))["stdout"], "", f"{what}: denied")
            check(time.monotonic() - begin < 30, f"{what}: it waited")
            wait_until(lambda: len(rows(c, s, "?decision=deny")) > before, 5, f"{what}: on record")
            answer = change(c, s, {"allow": ["web.test"]})
            same(answer.status, 200, f"{what}: {answer}")
            same(c.execute(s, talk("web.test"))["stdout"], "hello\n", f"{what}: again")


@test("a storm of changes: each holds or says why not, the last one counts", own=True)
def _(_api):
    with daemon("storm") as (d, c):
        s = c.create(net={"allow": ["web.test"]})
        busy = c.execute(s, f"for i in $(seq 300); do exec 3<>/dev/tcp/web.test/{port()} && exec 3>&-; done; echo done", wait=0)
        codes, last = [], []

        def work(k):
            mine = d.client()
            for i in range(25):
                answer = change(mine, s, {"allow": ["web.test", f"n{k}-{i}.test"]})
                codes.append((answer.status, answer.code))
                if answer.status == 200:
                    last.append((answer.json["generation"], answer.json["net"]["allow"][1]))
            mine.close()
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        _ = [t.start() for t in threads], [t.join() for t in threads]
        check(set(codes) <= {(200, None), (409, "busy")} and len(last) >= 4, f"{set(codes)} {len(last)}")
        same(len({g for g, _ in last}), len(last), "a generation each")
        name = max(last)[1]
        same(c.ok("GET", f"/v1/sandboxes/{s['id']}/why?host={name}")["decision"], "allow", "the last one")
        same(c.execute(s, f"getent hosts {name}")["exit_code"], 0, "in the gate too")
        same(c.ok("GET", f"/v1/processes/{busy['id']}?wait=80s")["stdout"], "done\n", "nobody else noticed")


@test("rules that are wrong change nothing; a sandbox without a network gets one when it is replaced", own=True)
def _(_api):
    with daemon("wrong") as (_, c):
        s = c.create(net={"allow": ["web.test"]})
        for net, part in (({"allow": ["10.0.0.1"]}, "is an address"), ({"alow": []}, "unknown key"),
                          ({"allow": ["set:none"]}, "no such set"), ([], "an object of rules"),
                          ({"cidr": ["169.254.169.254/32"]}, "metadata"), ({"deny": ["a.test"]}, "nothing is allowed"),
                          ({"mock": {"a.test": "m.yaml"}}, "is missing")):
            answer = change(c, s, net)
            check(answer.status == 400 and part in answer.json["detail"], f"{net}: {answer}")
        same(c.execute(s, talk("web.test"))["stdout"], "hello\n", "as before")
        same(c.ok("GET", f"/v1/sandboxes/{s['id']}")["spec"]["net"], {"mode": "list", "allow": ["web.test"]}, "spec")
        none = c.create()
        same(change(c, none, {"allow": ["web.test"]}).code, "conflict", "it has no network")
        same(change(c, none, {"mode": "deny"}).status, 200, "that is what it has")
        c.ok("POST", f"/v1/sandboxes/{s['id']}/stop")
        same(change(c, s, {"allow": ["other.test"]}).status, 200, "of a stopped one")
        c.ok("POST", f"/v1/sandboxes/{s['id']}/start")
        same(c.execute(s, talk("other.test"))["stdout"], "hello\n", "it has them")


@test("who is not the operator may only take away, or ask; an admin's token may all of it", own=True)
def _(_api):
    with daemon("who", "--listen", "127.0.0.1:0") as (d, c):
        tenant = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "t"})["token"])
        admin = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "admin"})["token"])
        s = tenant.create(net={"allow": ["web.test", "other.test"], "deny": ["deny.test"]})
        for net in ({"allow": ["web.test", "x.test"]}, {"allow": ["*"]}, {"mode": "allow"},
                    {"allow": ["web.test:22", "other.test"], "cidr": ["8.8.8.8/32"]}):
            answer = change(tenant, s, net)
            same((answer.status, answer.json["approval"]["kind"]), (202, "policy"), f"{net}: {answer}")
        same(change(tenant, s, {"allow": ["web.test"], "deny": ["deny.test"]}).status, 200, "tighter")
        same(change(tenant, s, {"allow": ["web.test", "other.test"], "deny": ["deny.test"]}).status, 202, "back")
        same(change(admin, s, {"mode": "deny"}).code, "not_found", "an admin has the operator's")
        own = c.create(net={"allow": ["web.test"]})
        same(change(admin, own, {"allow": ["web.test", "other.test"]}).json["loosened"], True, "an admin")
        c.remove(own)
        same(change(c, s, {"mode": "deny"}).code, "not_found", "of another tenant")
        same(c.get(f"/v1/sandboxes/{s['id']}/connections").code, "not_found", "its records too")
        reader = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "read", "tenant": "t"})["token"])
        same(change(reader, s, {"mode": "deny"}).code, "forbidden", "a reader")
        same(len(rows(reader, s)), 0, "may look")
        tenant.remove(s)
        _ = [x.close() for x in (tenant, admin, reader)]


@test("special-purpose ranges: the operator's, or granted to all; metadata is nobody's", own=True)
def _(_api):
    with daemon("special", "--listen", "127.0.0.1:0", "--net", "grant=10.1.0.0/16") as (d, c):
        tenant = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "t"})["token"])
        admin = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "admin"})["token"])
        for who, cidr, code in ((tenant, "10.2.0.0/16", "permission_denied"), (tenant, "192.168.1.1/32:80", "permission_denied"),
                                (tenant, "fd00::/8", "permission_denied"), (tenant, "10.1.2.0/24", None), (tenant, "8.8.8.8/32", None),
                                (admin, "10.2.0.0/16", None), (c, "10.2.0.0/16", None), (c, "169.254.169.254/32", "invalid"),
                                (admin, "fd00:ec2::254/128", "invalid")):
            answer = who.post("/v1/sandboxes", {"net": {"cidr": [cidr]}})
            same(answer.code if answer.status != 201 else None, code, f"{cidr}: {answer}")
            once = who.post("/v1/run", {"spec": {"net": {"cidr": [cidr]}}, "cmd": ["true"]})
            same(once.code if once.status != 200 else None, code, f"run {cidr}: {once}")
        tenant.remove_all()
        _ = [x.close() for x in (tenant, admin)]


@test("presets and sets of the API are what the config says, and stored as hosts", own=True)
def _(_api):
    with daemon("sets", "--net", "presets.pip=web.test,b.test:8443", "--net", "sets.docs=other.test") as (_, c):
        s = c.create(net=["preset:pip", "set:docs", "x.test"])
        same(s["spec"]["net"], {"mode": "list", "allow": ["web.test", "b.test:8443", "other.test", "x.test"],
                                "cache": ["pip:web.test", "pip:b.test:8443"]}, "expanded")
        same(c.execute(s, talk("other.test"))["stdout"], "hello\n", "reached")
        for net, part in ((["preset:npm"], "preset:npm: the config of this daemon names no hosts"),
                          (["set:other"], "set:other: the config of this daemon has no such set"),
                          (["preset:pop"], 'did you mean "pip"?')):
            answer = c.post("/v1/sandboxes", {"net": net})
            check(answer.status == 400 and part in answer.json["detail"], f"{answer}")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
