#!/usr/bin/env python3
"""caisson-gate alone, when somebody sets the wall clock: a year on, a year back, and so on. TAP.

The program is caisson-gate-clock (clock.c): the same, but its wall clock is the tests'; only in build/, where
libraries are linked in. Clients look at certificates as of that time.

    tests/gate/clock.py          all; needs user namespaces, no rights
"""
import os
import struct
import time

import lib
from lib import check, same, test

YEAR = 366 * 24 * 3600
JUMPS = (YEAR, -YEAR, -2 * YEAR, 30, -30, 0)
PUBLIC = "93.184.216.34"
ZONE = {name: [PUBLIC] for name in ("www.example.org", "two.example.org", "slow.example.org")}
TALK = "import socket,sys\ns = socket.create_connection((sys.argv[1], 5432))\ntry:\n  s.sendall(b'hello\\n'); print(s.recv(6).decode().strip() or 'END')\nexcept OSError: print('RESET')"


class Clock:
    def __init__(self, p):
        self.path = os.environ["GATE_CLOCK"] = f"{p.folder}/clock"
        self.set(0)

    def set(self, seconds):
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(fd, struct.pack("=q", seconds), 0)
        os.close(fd)

    @staticmethod
    def now(jump=0):
        return (time.time() + jump) * 1000


def start(p, net, **more):
    clock = Clock(p)
    return clock, p.gate(net, program="caisson-gate-clock", credit=2000, **more)


def talk(p, name="www.example.org"):
    return p.box.python(TALK, name).out.strip()


@test("the clock jumps: the program's clock is ours")
def _(p):
    clock, g = start(p, {"allow": ["*.example.org"]})
    for jump in JUMPS:
        clock.set(jump)
        same(talk(p), "hello")
        at = g.record(kind="opened").unix_ms
        check(abs(at - clock.now(jump)) < 10000, f"{jump}: {at}")


@test("the clock jumps: who is asked has the time that was said, and no less")
def _(p):
    for jump in JUMPS:
        clock, g = start(p, {"ask": ["*.example.org"]}, ask_ms=3000)
        n = p.box.start(lib.sys.executable, "-c", TALK, "www.example.org")
        g.ask()
        begin = time.monotonic()
        clock.set(jump)
        r = g.record(kind="closed")
        took = time.monotonic() - begin
        same((r.decision, r.reason), ("ask_deny", "ask_timeout"))
        check(1.5 < took < 20, f"{jump}: {took}")  # we may be late to hear of it
        same(p.box.wait(n).out.strip(), "RESET")
        n = p.box.start(lib.sys.executable, "-c", TALK, "two.example.org")
        a = g.ask()
        clock.set(-jump)
        g.answer(a.ask, True)
        same(p.box.wait(n).out.strip(), "hello")
        p.clean()


@test("the clock jumps: rates are of time that has passed")
def _(p):
    clock, g = start(p, {"allow": ["*.example.org"], "rate": {"connections": "4/h"}})
    same([talk(p) for _ in range(5)], ["hello"] * 4 + ["RESET"])
    for jump in JUMPS:
        clock.set(jump)
        same(talk(p), "RESET", jump)


@test("the clock jumps: open and silent connections stay, their times are true, and records are in order")
def _(p):
    clock, g = start(p, {"allow": ["*.example.org"]})
    code = "import socket,sys,time\ns = socket.create_connection(('www.example.org', 5432))\nfor i in range(8):\n  s.sendall(b'hello\\n'); print(s.recv(6).decode().strip(), flush=True); time.sleep(0.3)\n"
    begin = time.monotonic()
    n = p.box.start(lib.sys.executable, "-c", code)
    silent = p.box.start(lib.sys.executable, "-c", "import socket\ns = socket.create_connection(('two.example.org', 5432)); s.settimeout(3)\ntry: print(s.recv(1))\nexcept TimeoutError: print('waits')")
    first = g.record(kind="opened").seq
    seqs = []
    for jump in JUMPS:
        clock.set(jump)
        one = time.monotonic()
        same(talk(p, "slow.example.org"), "hello")
        r = g.record(kind="closed", name="slow.example.org")
        check(r.ms < (time.monotonic() - one) * 1000 + 1000, f"{jump}: {r.ms} ms")
        seqs.append(r.seq)
    same(p.box.wait(n).out.split(), ["hello"] * 8)
    same(p.box.wait(silent).out.strip(), "waits")
    r = g.record(kind="closed", seq=first)
    check(2000 < r.ms < (time.monotonic() - begin) * 1000 + 1000, f"{r.ms} ms")
    same(seqs, sorted(seqs))


@test("the clock jumps: certificates are good before and after, and so is a CA that was placed before")
def _(p):
    clock, g = start(p, {"mock": {"api.payments.test": "m"}}, mocks={"m": "answers: [{body: mocked}]"})
    ca = f"{p.folder}/placed.pem"
    with open(ca, "w") as f:
        f.write(g.ca)
    for jump in JUMPS:
        clock.set(jump)
        when = int(clock.now(jump) / 1000)
        r = p.box.run("openssl", "s_client", "-connect", "api.payments.test:443", "-servername", "api.payments.test", "-verify_hostname", "api.payments.test",
                      "-CAfile", ca, "-attime", str(when), "-verify_return_error", "-brief", input="")
        check("Verification: OK" in r.out + r.err, f"{jump}: {r.out} {r.err}")


@test("the clock jumps: a child that begins in another year has the same CA")
def _(p):
    clock, g = start(p, {"mock": {"api.payments.test": "m"}}, mocks={"m": "answers: [{body: mocked}]"})
    ca = f"{p.folder}/placed.pem"
    with open(ca, "w") as f:
        f.write(g.ca)
    for jump in (YEAR, -YEAR):
        clock.set(jump)
        g.s.close()
        g.connect({"net": {"mock": {"api.payments.test": "m"}}, "mocks": {"m": "answers: [{body: mocked}]"}})
        for when in (jump, 0):  # of the next leaf, then of the clock that is set right again
            clock.set(when)
            r = p.box.run("openssl", "s_client", "-connect", "api.payments.test:443", "-servername", "api.payments.test", "-CAfile", ca,
                          "-attime", str(int(clock.now(when) / 1000)), "-verify_return_error", "-brief", input="")
            check("Verification: OK" in r.out + r.err, f"{jump} {when}: {r.out} {r.err}")


if __name__ == "__main__":
    lib.main(ZONE)
