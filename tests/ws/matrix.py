#!/usr/bin/env python3
"""The crash matrix: whoever dies before or after whatever step, the state is the old or the new one. TAP.

    tests/ws/matrix.py                       some steps of each row, a minute (needs root)
    STEPS=all tests/ws/matrix.py undo        every step of the rows with the word in their title: long
    STEPS=20 SEED=7 tests/ws/matrix.py       more of them, others (make soak)

Steps are those of one process (steps.py); a row is one process during one operation. The first run
of a row sees how many there are. Rows with `power` stop at a step of that process, and then the host
loses its power: at once, or a while later, when the file system has written its own part already.
"""
import collections
import contextlib
import os
import random
import subprocess
import sys
import threading
import time

import steps
from place import IMAGE, Work, check, end_vaults, lib, same, vaults, wait_until
from lib import Daemon, test

STEPS = os.environ.get("STEPS", "1")
CHOOSER = random.Random(int(os.environ.get("SEED", "1")))
DISK_BYTES = 192 << 20
LATE_SECONDS = 1.3  # more than the time between two commits of the file system
SMALL = "mkdir -p s; seq 400 > s/a; seq 900 > s/b; ln -sf a s/l; echo one > top; ln s/a hard"
CHANGE = "rm -rf s; mkdir t; seq 3000 > t/x; echo two > top; chmod 700 top; ln -s x t/l; touch t/a t/b; mv hard t/moved"
MANY = "mkdir many; cd many; seq 600 | xargs touch; cd ..; " + CHANGE
rows = []   # of the table
known = {}  # (operation, process) -> names of its steps
Moment = collections.namedtuple("Moment", "number when late")


class Place:
    """A workspace with a point that is on disk, and a state after it."""

    def __init__(self, daemon):
        self.d, self.c = daemon, daemon.client()
        others = set(vaults())
        self.w = Work(self.c, f"w{CHOOSER.randrange(1 << 40)}")
        self.enter()
        self.c.execute(self.s, SMALL)
        self.old = self.w.hash()
        self.mark = self.w.post("snapshots", {})["id"]
        self.keeper = (set(vaults()) - others).pop()
        self.answer = None  # of the operation, if there was one
        self.is_fresh = False  # its points were made a moment ago

    def enter(self, **spec):
        """A sandbox, and whose monitor it has."""
        before = set(self.d.monitors())
        self.s = self.w.sandbox(**spec)
        self.monitor = (set(self.d.monitors()) - before).pop()

    def again(self):
        self.c.close()
        if self.d.process.poll() is not None:
            self.d.start()
        self.d.wait_ready()
        self.c = self.w.c = self.d.client()

    def state(self):
        with contextlib.suppress(lib.Failed):
            return self.w.hash()
        return None

    def end(self):
        self.c.remove_all()
        self.w.remove()
        self.c.close()


# ---- operations ------------------------------------------------------------------------------
# Each: prepare(place); run(place, client); look(place) -> "old" or "new", after it is up again.

def tree_of(place):
    return wait_until(place.state, 20, "it can be read")


def old_or_new(place):
    now = tree_of(place)
    if place.lost_power and place.is_fresh and now == place.old:
        return "last"  # neither was on disk: the last point that was
    check(now in (place.before, place.after), lambda: f"a third state: {sorted(place.w.tree())}\n{place.d.tail()}")
    return "old" if now == place.before else "new"


def known_change(place, script=CHANGE):
    place.c.execute(place.s, script)
    place.before, place.after = place.w.hash(), place.old


def fresh_change(place):
    """Two commands, and the disk does not have their points yet."""
    place.c.execute(place.s, CHANGE)
    place.after = place.w.hash()
    place.c.execute(place.s, "rm -rf t/a; seq 500 > t/x; mkdir u; seq 40 > u/v")
    place.before, place.is_fresh = place.w.hash(), True


def unkept_change(place):
    """What it is now is in no point."""
    place.c.remove_all()
    place.enter(checkpoint="off")
    place.c.execute(place.s, CHANGE)
    place.before = place.after = place.w.hash()


def nobody_there(place):
    """Much to undo: it gets another top."""
    known_change(place, MANY)
    place.c.remove_all()


def another_top(place):
    """It has one, and nobody has looked at it."""
    nobody_there(place)
    place.w.post("undo")
    place.before = place.after


def run_open(place, client):
    return client.ok("GET", place.w.path + "/changes")


def look_snapshot(place):
    old_or_new(place)
    made = [p for p in place.w.history()["points"] if p.get("label") == "matrix"]
    check(made or not place.answer, "a snapshot that was told of is gone")
    if made:
        same(fork_at(place, made[0]["id"]), place.before, "the tree of the snapshot")
    return "new" if made else "old"


def fork_at(place, point):
    fork = Work.of(place.c, place.w.post("fork", {"at": point})["workspaces"][0])
    found = fork.hash()
    fork.remove()
    return found


def look_forks(place):
    old_or_new(place)
    forks = place.c.ok("GET", f"/v1/workspaces?parent={place.w.id}")["workspaces"]
    check(len(forks) in (0, 3), f"{len(forks)} forks")
    check(forks or not place.answer or place.lost_power, "forks that were told of are gone")
    for row in forks:
        fork = Work.of(place.c, row)
        # A fork of what the disk does not have yet begins with what it has.
        check(fork.hash() in ((place.before, place.old) if place.lost_power else (place.before,)), "the tree of a fork")
        fork.remove()
    return "new" if forks else "old"


def prepare_create(place):
    place.before = place.after = place.old
    place.key = f"n{CHOOSER.randrange(1 << 40)}"


def run_create(place, client):
    client.ok("PUT", f"/v1/workspaces/{place.key}", {})
    return client.ok("GET", f"/v1/workspaces/{place.key}/changes")


def look_create(place):
    old_or_new(place)
    is_there = place.c.get(f"/v1/workspaces/{place.key}").status == 200
    check(is_there or not place.answer or place.lost_power, "a workspace that was told of is gone")
    w = Work(place.c, place.key)
    same(sorted(wait_until(lambda: [w.tree()], 20, "read")[0]), [], "it is empty")
    w.shell("echo 1 > b")
    w.remove()
    return "new" if is_there else "old"


def prepare_gc(place):
    """A fork that goes, of one that stays: they share what they hold."""
    known_change(place)
    place.after = place.before
    fork = Work.of(place.c, place.w.post("fork")["workspaces"][0])
    fork.shell("seq 7000 > of-the-fork; rm -f top")
    place.gone = fork.id
    place.c.remove_all()
    place.enter()
    fork.remove()


def run_gc(place, client):
    def is_gone():
        return client.ok("GET", f"/v1/workspaces/{place.gone}")["state"] == "gone"
    wait_until(is_gone, 10, "out of the trash")
    time.sleep(0.1)  # its trees and points go then
    return True


def look_gc(place):
    old_or_new(place)
    state = place.c.ok("GET", f"/v1/workspaces/{place.gone}")["state"]
    wait_until(lambda: place.c.ok("GET", f"/v1/workspaces/{place.gone}")["state"] == "gone", 20, "gone in the end")
    return "new" if state == "gone" else "old"


Operation = collections.namedtuple("Operation", "name prepare run look victims")


def post(verb, **body):
    return lambda place, client: client.ok("POST", f"{place.w.path}/{verb}", body)


OPERATIONS = [
    Operation("create", prepare_create, run_create, look_create, "daemon launcher new-keeper"),
    Operation("snapshot", unkept_change, post("snapshots", label="matrix"), look_snapshot, "keeper daemon monitor"),
    Operation("fork", unkept_change, post("fork", n=3, key="f"), look_forks, "keeper daemon monitor"),
    Operation("undo", known_change, post("undo"), old_or_new, "keeper daemon monitor"),
    Operation("undo-fresh", fresh_change, post("undo"), old_or_new, "keeper"),
    Operation("restore", known_change, lambda p, c: c.ok("POST", p.w.path + "/restore", {"to": p.mark}), old_or_new,
              "keeper daemon"),
    Operation("undo-much", nobody_there, post("undo"), old_or_new, "keeper daemon"),
    Operation("open", another_top, run_open, old_or_new, "daemon launcher new-keeper"),
    Operation("gc", prepare_gc, run_gc, look_gc, "store daemon"),
]
POWER = {"create": "daemon", "snapshot": "keeper daemon", "fork": "keeper daemon", "undo": "keeper daemon", "undo-fresh": "keeper daemon",
         "restore": "keeper", "undo-much": "daemon", "open": "new-keeper", "gc": "store daemon"}
VICTIMS = {
    "keeper": lambda p: (p.keeper, False),
    "store": lambda p: (pid, False) if (pid := store_keeper()) else (p.d.process.pid, True),
    "new-keeper": lambda p: (p.d.process.pid, True),
    "daemon": lambda p: (p.d.pid, False),
    "launcher": lambda p: (p.d.process.pid, False),
    "monitor": lambda p: (p.monitor, False),
}


def store_keeper():
    """Who looks after what is no workspace's, if he is there: by the name of his socket."""
    lines = [line.split() for line in lib.census.read("/proc/net/unix").splitlines()]
    inodes = {f"socket:[{w[6]}]" for w in lines if len(w) == 8 and "/0-" in w[7] and w[7].endswith(".sock")}
    for pid in vaults():
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/7") in inodes:
                return pid
    return None


# ---- one cell of the matrix ------------------------------------------------------------------

def strike(place, operation, victim, moment, is_power):
    """Runs the operation up to the moment. Returns the names of the steps, and whether it was reached."""
    client = place.d.client()

    def run():
        with contextlib.suppress(Exception):  # whoever is killed does not answer
            place.answer = operation.run(place, client)
    thread = threading.Thread(target=run)
    tracer = steps.Tracer(*VICTIMS[victim](place))
    wait_until(lambda: tracer.run(None, lambda: True) is False, 5)  # all of them have stood once
    thread.start()
    is_reached = tracer.run(moment and moment[:2], lambda: not thread.is_alive())
    if is_power:
        if moment and moment.late:
            time.sleep(LATE_SECONDS)
        steps.lose_power(place.d)
        tracer.tids.clear()
    else:
        tracer.kill()
    thread.join(3 * lib.PATIENCE)
    check(not thread.is_alive(), "a request hangs")
    client.close()
    return tracer.names, is_reached


def goes_on(place):
    """The point that was on disk is what it was; commands, points and undo work."""
    same(fork_at(place, place.mark), place.old, "the point before")
    before = place.w.hash()
    place.w.shell("echo more > more")
    place.w.post("undo")
    same(place.w.hash(), before, "undo after it")


def one_cell(daemon, operation, victim, moment, is_power):
    place = Place(daemon)
    place.lost_power = is_power
    operation.prepare(place)
    if is_power:
        os.sync()
    names, is_reached = strike(place, operation, victim, moment, is_power)
    place.again()
    found = operation.look(place)
    goes_on(place)
    place.end()
    return names, is_reached, found


def moments(n):
    """Which of n steps, before and after: the last, and others that are chosen."""
    every = [Moment(k, when, False) for k in range(n) for when in ("before", "after")]
    if STEPS == "all" or len(every) <= 2 * int(STEPS):
        return every
    return sorted(CHOOSER.sample(every[:-1], int(STEPS))) + every[-1:]


def row(operation, victim, is_power):
    def run(_api):
        daemon = Daemon(f"m-{operation.name}", options=("--keep-trash", "1s") if operation.name == "gc" else ()).start()
        how = "power" if is_power else "kill"
        names = known.get((operation.name, victim))
        if not names:
            names, _, found = one_cell(daemon, operation, victim, None, is_power)
            known[operation.name, victim] = names
            rows.append((operation.name, victim, how, len(names), "", "at the end", found))
        chosen = moments(len(names))
        if is_power:
            chosen = [m._replace(late=i % 2 == 1) for i, m in enumerate(chosen)]
        for moment in chosen:
            title = f"{moment.number + 1}/{len(names)} {names[moment.number]}"
            try:
                seen, is_reached, found = one_cell(daemon, operation, victim, moment, is_power)
            except Exception as e:
                raise lib.Failed(f"{moment.when} {title}: {e}\n{daemon.tail()}") from e
            if is_reached:
                title = f"{moment.number + 1}/{len(names)} {seen[moment.number]}"
            rows.append((operation.name, victim, how, len(names), title,
                         (moment.when if is_reached else "was over") + (", late" if moment.late else ""), found))
        with contextlib.closing(daemon.client()) as c:
            c.ok("POST", "/v1/fsck", {"repair": True})  # whoever died has left something
            same(c.ok("POST", "/v1/fsck", {})["findings"], [], "the store is whole")
        daemon.wait_clean()
        daemon.stop()
        end_vaults()
    name = f"{operation.name}: {'power is lost' if is_power else 'kill -9'} at a step of {victim}: old or new, and it goes on"
    test(name, own=True)(run)


SLOW = {("gc", "daemon")}  # seconds each: not with a step or two
for _o in OPERATIONS:
    for _v, _is_power in [(v, False) for v in _o.victims.split()] + [(v, True) for v in POWER[_o.name].split()]:
        if STEPS != "1" or (_o.name, _v) not in SLOW:
            row(_o, _v, _is_power)


def table():
    print("| " + f"{'operation':13} {'process':11} {'how':6} {'step':28} {'when':16} found")
    for name, victim, how, n, title, when, found in rows:
        print("| " + f"{name:13} {victim:11} {how:6} {title or f'{n} steps':28} {when:16} {found}")


def prepare():
    with open(IMAGE, "wb") as f:
        f.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-J", "size=4", IMAGE], check=True)
    steps.mount_disk()
    os.chmod(lib.HOME, 0o755)

    def finish():
        end_vaults()
        wait_until(lambda: subprocess.run(["umount", lib.HOME], stderr=subprocess.DEVNULL, check=False).returncode == 0,
                   10, "umount of the disk")
        IMAGE.unlink()
    return finish


if __name__ == "__main__":
    sys.exit(lib.main(__file__, seconds=lib.PROGRAM_SECONDS if STEPS == "1" else 40000, prepare=prepare, extra=table))
