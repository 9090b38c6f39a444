#!/usr/bin/env python3
"""Workspaces under kill -9: whoever dies in the middle of whatever, the tree is the old or the new one. TAP.

    tests/ws/crash.py                    all (needs root)
    ROUNDS=50 tests/ws/crash.py undo     more of those with the word in their title

Moments are chosen by chance; tests/ws/matrix.py goes through the steps of each process. The table at
the end says how often each state was found.
"""
import collections
import contextlib
import os
import random
import signal
import sys
import threading
import time

from place import Work, check, end_vaults, lib, main, same, vaults, wait_until
from lib import Daemon, test

ROUNDS = int(os.environ.get("ROUNDS", "2"))
SEED = int(os.environ.get("SEED", "1"))
found = collections.Counter()  # (operation, victim, state)
chooser = random.Random(SEED)


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


VICTIMS = {
    "daemon": lambda d: kill([d.pid] if d.pid else []),
    "launcher": lambda d: (d.process.kill(), d.process.wait()),
    "both": lambda d: d.kill(),
    "keeper": lambda d: kill(vaults()),
    "monitor": lambda d: kill(d.monitors()),
    "all": lambda d: (kill([*vaults(), *d.monitors()]), d.kill()),
}
SMALL = "mkdir -p s; seq 400 > s/a; seq 900 > s/b; ln -sf a s/l; echo one > top"
CHANGE = "rm -rf s; mkdir t; seq 3000 > t/x; echo two > top; chmod 700 top; ln -s x t/l; seq 10 | sed 's/^/t\\/f/' | xargs touch"


class Place:
    """A daemon and a workspace with two known states."""

    def __init__(self, d):
        self.d = d
        self.c = d.client()
        self.w = Work(self.c, f"w{chooser.randrange(1 << 40)}")
        self.s = self.w.sandbox()
        self.c.execute(self.s, SMALL)
        self.old = self.w.hash()

    def again(self):
        """Connects to whatever daemon lives, after one that was killed."""
        self.c.close()
        if self.d.process.poll() is not None:
            self.d.start()
        self.d.wait_ready()
        self.c = self.w.c = self.d.client()

    def end(self):
        self.c.remove_all()
        self.w.remove()
        self.c.close()


def strike(place, victim, operation, seconds):
    """The operation runs; after a while somebody dies."""
    own = place.d.client()

    def run():
        with contextlib.suppress(Exception):  # whether it was told that it worked is not the question
            operation(own)
    t = threading.Thread(target=run)
    t.start()
    time.sleep(seconds)
    VICTIMS[victim](place.d)
    t.join(6 * lib.PATIENCE)
    check(not t.is_alive(), f"{victim}: a request hangs")
    own.close()
    place.again()


def matrix(name, prepare, operation, states, slowest=0.012):
    """`states(place)`: name -> hash, what it may be afterwards."""
    def run(_api):
        d = Daemon(f"crash-{name}").start()
        for victim in VICTIMS:
            for i in range(ROUNDS):
                place = Place(d)
                prepare(place)
                may = states(place)
                strike(place, victim, lambda c, p=place: operation(p, c), slowest * (i + chooser.random()) / ROUNDS)
                now = wait_until(lambda p=place: settled(p), 20, "it can be read")
                which = [k for k, h in may.items() if h == now]
                check(which, lambda v=victim, p=place: f"{v}: a third state: {p.w.tree()}\n{d.tail()}")
                found[name, victim, which[0]] += 1
                goes_on(place)
                place.end()
        d.wait_clean()
        d.stop()
        end_vaults()
    test(f"kill -9 during {name}: every victim, {ROUNDS} moments: old or new, and it goes on", own=True)(run)


def settled(place):
    """The tree, once whoever had to be ended is."""
    with contextlib.suppress(lib.Failed):
        return place.w.hash()
    return None


def goes_on(place):
    """Commands, points and undo work as before."""
    before = place.w.hash()
    place.w.shell("echo more > more")
    place.w.post("undo")
    same(place.w.hash(), before, "undo after it")


# ---- a command and its point -----------------------------------------------------------------

def known_change(place):
    """The hash of the changed tree, from a fork."""
    fork = Work.of(place.c, place.w.post("fork")["workspaces"][0])
    fork.shell(CHANGE)
    place.new = fork.hash()
    fork.remove()


# A command that is killed half-way is half done: only its point is looked at here.
def point_only(place):
    known_change(place)
    place.c.execute(place.s, CHANGE + "; sync", wait="80s")


matrix("a snapshot", point_only, lambda p, c: c.ok("POST", p.w.path + "/snapshots", {"label": "x"}),
       lambda p: {"same": p.new})


# ---- undo, redo, restore ---------------------------------------------------------------------

def changed(place):
    place.c.execute(place.s, CHANGE)
    place.new = place.w.hash()


matrix("undo", changed, lambda p, c: c.ok("POST", p.w.path + "/undo", {}),
       lambda p: {"old": p.new, "new": p.old})


def undone(place):
    changed(place)
    place.w.post("undo")


matrix("redo", undone, lambda p, c: c.ok("POST", p.w.path + "/redo", {}),
       lambda p: {"old": p.old, "new": p.new})


def snapped(place):
    place.mark = place.w.post("snapshots", {})["id"]
    changed(place)


matrix("restore", snapped, lambda p, c: c.ok("POST", p.w.path + "/restore", {"to": p.mark}),
       lambda p: {"old": p.new, "new": p.old})


# ---- without a sandbox: another top -----------------------------------------------------------

def alone(place):
    place.c.execute(place.s, "mkdir many; cd many; seq 1500 | xargs touch")
    place.new = place.w.hash()
    place.c.remove_all()


matrix("undo of much, nobody there", alone, lambda p, c: c.ok("POST", p.w.path + "/undo", {}),
       lambda p: {"old": p.new, "new": p.old}, slowest=0.08)


# ---- fork, create ----------------------------------------------------------------------------

@test(f"kill -9 during fork: all or none, {ROUNDS} moments each", own=True)
def _(_api):
    d = Daemon("crash-fork").start()
    for victim in ("daemon", "both", "keeper", "all"):
        for i in range(ROUNDS):
            place = Place(d)
            place.c.execute(place.s, "echo more > late")
            strike(place, victim, lambda c, p=place: c.ok("POST", p.w.path + "/fork", {"n": 20, "key": "f"}),
                   0.01 * (i + chooser.random()) / ROUNDS)
            forks = place.c.ok("GET", f"/v1/workspaces?parent={place.w.id}")["workspaces"]
            check(len(forks) in (0, 20), f"{victim}: {len(forks)} forks")
            found["fork", victim, "new" if forks else "old"] += 1
            for f in forks[:2]:
                fork = Work.of(place.c, f)
                check(fork.read("top") == b"one\n", f"{victim}: a fork has its tree")
            for f in forks:
                Work.of(place.c, f).remove()
            goes_on(place)
            place.end()
    d.wait_clean()
    d.stop()
    end_vaults()


@test(f"kill -9 while a workspace is made and first opened: it is there or not, {ROUNDS} moments each", own=True)
def _(_api):
    d = Daemon("crash-create").start()
    for victim in ("daemon", "launcher", "both", "keeper", "all"):
        for i in range(ROUNDS):
            place = Place(d)
            key = f"n{chooser.randrange(1 << 40)}"

            def make(c, key=key):
                c.ok("PUT", f"/v1/workspaces/{key}", {})
                c.ok("PUT", f"/v1/workspaces/{key}/files/a", b"data")
            strike(place, victim, make, 0.05 * (i + chooser.random()) / ROUNDS)
            is_there = place.c.get(f"/v1/workspaces/{key}").status == 200
            w = Work(place.c, key)
            data = wait_until(lambda w=w: w.c.get(w.path + "/files/?list=1").status == 200 and [w.read("a")], 20, "read")[0]
            check(data in (None, b"data"), f"{victim}: {data}")
            found["create", victim, "new" if data else "made" if is_there else "old"] += 1
            w.write("b", b"1")
            same(w.read("b"), b"1", "it goes on")
            w.remove()
            goes_on(place)
            place.end()
    d.wait_clean()
    d.stop()
    end_vaults()


# ---- a command whose daemon dies -------------------------------------------------------------

@test("a command goes on while the daemon is dead; its point is made by the next one", own=True)
def _(_api):
    d = Daemon("crash-exec").start()
    place = Place(d)
    p = place.c.execute(place.s, "sleep 0.5; " + CHANGE, wait="0s")
    d.kill()
    time.sleep(1)
    place.again()
    done = wait_until(lambda: (o := place.c.ok("GET", f"/v1/processes/{p['id']}"))["state"] == "exited" and o, 10, "ended")
    same(done["exit_code"], 0, "its exit is known")
    place.w.post("undo")
    same(place.w.hash(), place.old, "and it can be undone")
    place.end()
    d.wait_clean()
    d.stop()
    end_vaults()


def table():
    print("| " + f"{'operation':28} {'killed':9} found")
    for name, victim in sorted({(n, v) for n, v, _ in found}):
        states = ", ".join(f"{s} {k}" for (n, v, s), k in sorted(found.items()) if (n, v) == (name, victim))
        print("| " + f"{name:28} {victim:9} {states}")


if __name__ == "__main__":
    sys.exit(main(__file__, extra=table))
