#!/usr/bin/env python3
"""Who carries the network is killed under load, rules change in storms, clients are slow or too many. Whatever
happens, an address means what it meant, what is denied stays denied, and it works again at once. TAP.

    tests/net/faults.py           all (needs root); make check-gate has more of each
    tests/net/faults.py killed    those with the word in their title
"""
import json
import os
import random
import signal
import sys
import time

import place  # before lib, whose folder it knows
import lib
from lib import Daemon, check, same, test, wait_until
from place import Box, wait_end

RULES = {"allow": ["web.test", "other.test"]}
BACK_SECONDS = place.AT_ONCE  # from one answer to the next, over a death; less than a client waits for one that is lost
more = 4 if place.HAS_MORE else 1

# Inside: asks for ever, by addresses that it looked up once, and tries what is denied. Prints what came of it.
LOAD = r"""
import json, signal, socket, sys, time
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
names = ["web.test", "other.test"]
at = {n: socket.gethostbyname(n) for n in names}
def ask(address, port, host):
    try:
        with socket.create_connection((address, port), 5) as s:
            s.settimeout(5)
            s.sendall(f"GET /host HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            got = b""
            while piece := s.recv(65536): got += piece
        return got.decode().partition("\r\n\r\n")
    except OSError as error:
        return "", "", error.strerror or repr(error)
good, errors, wrong, leaks, gap, answers = 0, {}, [], [], 0.0, []
last = time.monotonic()
end = time.monotonic() + 600
while not over or good <= 50 and time.monotonic() < end:  # on a busy machine so many take their time
    for n in names:
        begin = time.time()
        head, _, body = ask(at[n], 80, n)
        if " 200 " in head:
            if body.endswith("\\n") and f"http {n} " not in body: wrong.append([n, body])  # else it was cut
            answers.append([n, begin, time.time()])
            good += 1
            gap, last = max(gap, time.monotonic() - last), time.monotonic()
        else:
            errors[body[:40] + head[:12]] = errors.get(body[:40] + head[:12], 0) + 1
            time.sleep(0.005)
    for address, port, host in ((at["web.test"], 80, "denied.test"), (at["web.test"], 80, "other.test"), ("5.6.7.8", 8080, "web.test")):
        head, _, body = ask(address, port, host)
        if " 200 " in head: leaks.append([address, host, body])
print(json.dumps({"good": good, "errors": errors, "wrong": wrong, "leaks": leaks, "gap": gap, "answers": answers}))
"""


class Load:
    """It runs in a sandbox of its own while something happens."""

    def __init__(self, client, rules=None):
        self.box = Box(client, rules or RULES)
        self.box.put("/work/load.py", LOAD)
        self.process = client.execute(self.box.sandbox, ["/usr/bin/python3", "/work/load.py"], wait="0s")
        lib.wait_until(lambda: self.box.records(lambda r: r["decision"] == "allow", 0), 5, "the load")

    def end(self, client=None):
        client = client or self.box.client
        time.sleep(0.3)  # it had time to work again
        client.ok("POST", f"/v1/processes/{self.process['id']}/signal", {"sig": "TERM"})
        done = wait_end(client, self.process)
        check(done["exit_code"] == 0, lambda: place.summary(done))
        out = json.loads(done["stdout"])
        same((out["wrong"], out["leaks"]), ([], []), f"answers of others, and what was denied: {out['errors']}")
        check(out["good"] > 50, out)
        return out


def gate_of(daemon):
    """The gate itself, or None; and its children, one per sandbox."""
    found = [p for p, name in lib.children_of(daemon.process.pid).items() if name == "caisson-gate"]
    return (found[0], list(lib.children_of(found[0]))) if found else (None, [])


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def killed_often(daemon, load, n, victim, pause=0.3):
    for _ in range(n):
        pid = wait_until(victim, 5, "somebody to kill")
        kill(pid)
        wait_until(lambda pid=pid: not os.path.exists(f"/proc/{pid}") or victim() != pid, 5, "his end")
        time.sleep(pause + random.random() * pause)
    daemon.wait_ready()
    return load.end(daemon.client())


@test("a child of the gate killed under load comes back with the same meaning of every address", own=True)
def _(_api):
    daemon = Daemon("child", options=place.OPTIONS).start()
    load = Load(daemon.client())
    out = killed_often(daemon, load, 8 * more, lambda: (gate_of(daemon)[1] or [None])[0])
    check(out["gap"] < BACK_SECONDS, f"nothing for {out['gap']:.1f} s, {out['errors']}")
    load.box.remove()
    daemon.stop()


@test("the whole gate killed under load, with the same end", own=True)
def _(_api):
    daemon = Daemon("whole", options=place.OPTIONS).start()
    load = Load(daemon.client())
    out = killed_often(daemon, load, 3 if more == 1 else 8, lambda: gate_of(daemon)[0], pause=0.6 * more)
    check(out["gap"] < 2 * BACK_SECONDS, f"nothing for {out['gap']:.1f} s, {out['errors']}")  # it is not started in a row
    load.box.remove()
    daemon.stop()


@test("the daemon killed under load: connections go on without it", own=True)
def _(_api):
    daemon = Daemon("daemon", options=place.OPTIONS).start()
    load = Load(daemon.client())
    out = killed_often(daemon, load, 2 * more, lambda: daemon.pid, pause=0.6)
    check(out["gap"] < BACK_SECONDS, f"nothing for {out['gap']:.1f} s, {out['errors']}")
    client = daemon.client()
    rows = client.ok("GET", f"/v1/sandboxes/{load.box.id}/connections?limit=1000&decision=allow")["connections"]
    check(rows, "no records")
    client.remove(load.box.sandbox)
    daemon.wait_clean()
    daemon.stop()


@test("launcher and daemon killed: nothing is open meanwhile, and the next ones bring it back", own=True)
def _(_api):
    daemon = Daemon("all", options=place.OPTIONS).start()
    load = Load(daemon.client())
    for _ in range(more):
        daemon.kill()
        time.sleep(0.5)
        daemon.start()
        time.sleep(0.7)
    load.end(daemon.client())
    daemon.client().remove(load.box.sandbox)
    daemon.wait_clean()
    daemon.stop()


@test("a storm of new rules: what they deny is denied from the moment they are taken", own=True)
def _(_api):
    daemon = Daemon("storm", options=place.OPTIONS).start()
    client = daemon.client()
    load = Load(daemon.client())
    tight = []  # (taken, until)
    for _ in range(40 * more):
        client.ok("PATCH", f"/v1/sandboxes/{load.box.id}/net", {"allow": ["web.test"]})
        begin = time.time()
        time.sleep(random.random() * 0.02)
        tight.append((begin, time.time()))
        client.ok("PATCH", f"/v1/sandboxes/{load.box.id}/net", RULES)
        time.sleep(random.random() * 0.02)
    out = load.end()
    bad = [a for a in out["answers"] if a[0] == "other.test" and any(b < a[1] and a[2] < e for b, e in tight)]
    same(bad, [], "answers while it was denied")
    check(out["gap"] < BACK_SECONDS, out["gap"])
    rows = client.ok("GET", f"/v1/sandboxes/{load.box.id}/connections?limit=1000&name=other.test&decision=deny")["connections"]
    check(rows, "no connection fell into a moment of tight rules")
    load.box.remove()
    daemon.stop()


@test("new rules close what is open, at once, and leave the rest", own=True)
def _(_api):
    daemon = Daemon("cut", options=place.OPTIONS).start()
    client = daemon.client()
    box = Box(client, RULES)
    hold = """
import socket, sys, time
def open(name):
    s = socket.create_connection((name, 443), 40); s.settimeout(60); return s
import ssl
context = ssl.create_default_context()
held = {n: context.wrap_socket(open(n), server_hostname=n) for n in ("web.test", "other.test")}
print("open", flush=True)
begin = time.monotonic()
try:
    got = held["other.test"].recv(1)
except OSError as error:
    got = b""
print("cut", got, flush=True)
held["web.test"].sendall(b"GET /hello.txt HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n")
print(held["web.test"].recv(65536).decode())
"""
    p = client.execute(box.sandbox, ["/usr/bin/python3", "-c", hold], wait="0s")
    wait_until(lambda: b"open" in client.get(f"/v1/processes/{p['id']}/log").body, 5, "both")
    begin = time.monotonic()
    changed = client.ok("PATCH", f"/v1/sandboxes/{box.id}/net", {"allow": ["web.test"]})
    same(changed["closed"], 1, f"closed: {changed}")
    done = wait_end(client, p)
    check(time.monotonic() - begin < 40 and "cut b''" in done["stdout"] and "200 OK" in done["stdout"], lambda: place.summary(done))
    row = box.records(lambda r: r["reason"] == "reloaded")
    same([r["name"] for r in row], ["other.test"], "record")
    box.remove()
    daemon.stop()


CROWD = r"""
import resource, select, socket, sys, time
n, port = int(sys.argv[1]), 80
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
at = socket.gethostbyname("web.test")
request = b"GET /hello.txt HTTP/1.1\r\nHost: web.test\r\n\r\n"
held = []
def answer(s):
    got = b""
    while not got.endswith(b"other side\n"):
        piece = s.recv(65536)
        if not piece: raise OSError("closed")
        got += piece
for turn in (1, 2):
    for i in range(n):
        if turn == 1:
            try:
                s = socket.create_connection((at, port), 40)
                s.settimeout(40); s.sendall(request); answer(s)
            except OSError as error:
                print("stopped at", i, error); n = i; break
            held.append(s)
        else:
            held[i].sendall(request); answer(held[i])
    print("turn", turn, len(held), flush=True)
"""


def all_records(box):
    """Page by page."""
    rows, after = [], 0
    while after is not None:
        page = box.client.ok("GET", f"/v1/sandboxes/{box.id}/connections?limit=1000&after={after}")
        rows, after = rows + page["connections"], page["next"]
    return rows


@test("many connections at once, all of them used again; when all end at once none is lost and none denied", own=True)
def _(_api):
    n = 9000 if place.HAS_MORE else 1000  # each costs the gate three descriptors or two; an ordinary limit is 20000
    daemon = Daemon("crowd", options=place.OPTIONS).start()
    client = daemon.client(timeout=400)
    box = Box(client, {"allow": ["web.test"]})
    _, took = box.good(["/usr/bin/python3", "-c", CROWD, str(n)], f"turn 2 {n}\n", seconds=300)
    box.good("curl -sS --fail http://web.test/hello.txt")
    print(f"# {n} connections, each used twice: {took:.1f} s")
    wait_until(lambda: [r["close"] for r in all_records(box)].count("client") == n + 1, 10, "the ends of all")
    same({r["decision"] for r in all_records(box)}, {"allow"}, "decisions")
    box.remove()
    daemon.stop()


ASKS = r"""
import select, socket, sys, time
at = socket.gethostbyname("ask.test")
held = []
for port in range(2000, 2000 + int(sys.argv[1])):
    s = socket.socket(); s.setblocking(False); s.connect_ex((at, port)); held.append(s)
begin, left = time.monotonic(), set(held)
while left and time.monotonic() - begin < 60:
    p = select.poll()
    by = {s.fileno(): s for s in left}
    for fd in by: p.register(fd, select.POLLIN)
    for fd, events in p.poll(200):
        left.discard(by[fd])
print("left", len(left), "%.1f" % (time.monotonic() - begin))
"""


@test("a flood of questions is bounded: the rest is denied, and others are served meanwhile", own=True)
def _(_api):
    daemon = Daemon("asks", options=place.OPTIONS).start()
    client = daemon.client()
    box = Box(client, {"allow": ["web.test"], "ask": ["ask.test"]})
    p = client.execute(box.sandbox, ["/usr/bin/python3", "-c", ASKS, "800"], wait="0s")
    for _ in range(5):
        box.good("curl -sS --fail --max-time 20 http://web.test/hello.txt")
    done = wait_end(client, p, 80)
    check(done["stdout"].startswith("left 0 "), lambda: place.summary(done))
    box.records(lambda r: r["name"] == "ask.test" and r["reason"] == "ask_timeout")
    reasons = {r["reason"] for r in box.records_of(100) if r["name"] == "ask.test"}
    check(reasons <= {"ask_timeout", "ask_full", "budget", "spool"} and "ask_timeout" in reasons, reasons)
    box.good("curl -sS --fail --max-time 20 http://web.test/hello.txt")
    box.remove()
    daemon.stop()


SLOW = r"""
import select, socket, sys, time
at = socket.gethostbyname("web.test")
held = {}
for i in range(int(sys.argv[1])):
    s = socket.create_connection((at, (80, 443)[i % 2]), 5); held[s] = (b"GET / HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00\x01\x00")[i % 2]
begin = time.monotonic()
while held and time.monotonic() - begin < 50:
    for s, rest in list(held.items()):
        try:
            if rest: s.send(rest[:1])
            held[s] = rest[1:]
            s.setblocking(False)
            if s.recv(100) == b"": raise OSError
        except BlockingIOError: pass
        except OSError: s.close(); del held[s]
    time.sleep(0.5)
print("left", len(held), "%.1f" % (time.monotonic() - begin))
"""


@test("slow clients are cut, cost little, and disturb nobody", own=True, when=place.HAS_MORE)  # half a minute
def _(_api):
    daemon = Daemon("slow", options=place.OPTIONS).start()
    client = daemon.client()
    box = Box(client, {"allow": ["web.test"]})
    box.good("curl -sS --fail http://web.test/hello.txt")
    child = gate_of(daemon)[1][0]
    before = lib.private_kib(child)
    p = client.execute(box.sandbox, ["/usr/bin/python3", "-c", SLOW, "1000"], wait="0s")
    most = 0
    for _ in range(60):
        _, took = box.good("curl -sS --fail --max-time 2 http://web.test/hello.txt")
        check(took < 2, f"others wait {took:.1f} s")
        most = max(most, lib.private_kib(child))
        time.sleep(0.4)
    done = wait_end(client, p, 60)
    check(done["stdout"].startswith("left 0 "), lambda: place.summary(done))
    check(most - before < 16 << 10, f"{most - before} KiB for 1000 slow connections")
    box.remove()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(place.main(__file__))
