#!/usr/bin/env python3
"""The life of workspaces, with real sandboxes, as root and as a user. TAP.

    tests/ws/life.py              all, about a minute (needs root)
    tests/ws/life.py undo         those with the word in their title
"""
import os
import signal
import sys
import threading
import time

import place
from place import Work, check, end_vaults, fill, lib, main, same, vaults, wait_until
from lib import Daemon, test

users = []  # the daemon of an ordinary user, once it is wanted


def user_daemon():
    if users and users[0].process.poll() is not None:
        users.pop()  # it was ended after a test that failed
    if not users:
        users.append(Daemon("user", uid=lib.USER_ID).start())
    return users[0]


def each(title, roles=("root", "user")):
    """A test as root and as an ordinary user."""
    def add(function):
        for role in roles:
            def run(api, role=role):
                daemon = api.daemon if role == "root" else user_daemon()
                c = daemon.client()
                try:
                    function(c, daemon)
                finally:
                    clear(c)
                    c.close()
            test(f"{role}: {title}")(run)
        return function
    return add


def clear(c):
    c.remove_all()
    for w in c.ok("GET", "/v1/workspaces?limit=1000")["workspaces"]:
        c.delete(f"/v1/workspaces/{w['id']}?force=1")


# ---- made and found --------------------------------------------------------------------------

@each("get or create by key; what is not asked for is refused")
def _(c, _daemon):
    first = c.put("/v1/workspaces/task", {})
    same(first.status, 201, "made")
    again = c.put("/v1/workspaces/task", {})
    same((again.status, again.json["id"]), (200, first.json["id"]), "found")
    same(c.ok("GET", f"/v1/workspaces/{first.json['id']}")["key"], "task", "by id")
    same(c.put("/v1/workspaces/task", {"mode": "read"}).code, "exists", "another mode")
    for key, body in (("a%20b", {}), ("ws_x", {}), ("ok", {"mod": "read"}), ("ok", {"mode": "write"}),
                      ("ok", {"spec": {"fs": "nonsense:/x"}}), ("ok", {"spec": {"workspace": "other"}})):
        same(c.put(f"/v1/workspaces/{key}", body).status, 400, f"{key} {body}")
    same(c.get("/v1/workspaces/nowhere").status, 404, "no such")
    same([w["key"] for w in c.ok("GET", "/v1/workspaces")["workspaces"]], ["task"], "list")


@each("rule 2: files work with no sandbox, and nothing of it is listed")
def _(c, _daemon):
    w = Work(c, "files")
    same(w.write("src/a.txt", b"one\ntwo\n")["created"], True, "write")
    same(w.read("src/a.txt"), b"one\ntwo\n", "read")
    same(w.read("../../etc/passwd"), None, "only what is in it")
    edited = c.call("PATCH", w.path + "/files/src/a.txt", {"edits": [{"old": "two", "new": "three"}]})
    same(edited.status, 200, f"edit: {edited}")
    same([m["line"] for m in w.post("grep", {"pattern": "thr"})["matches"]], [2], "grep")
    same(w.post("glob", {"pattern": "**/*.txt"})["paths"], ["src/a.txt"], "glob")
    same(sorted(w.tree()), ["src/", "src/a.txt"] if "src/" in w.tree() else ["src", "src/a.txt"], "tar")
    w.c.ok("POST", w.path + "/files:move", {"from": "src/a.txt", "to": "b.txt"})
    same(w.read("b.txt"), b"one\nthree\n", "moved")
    same(c.ok("GET", "/v1/sandboxes")["sandboxes"], [], "no sandbox")
    same(c.ok("GET", "/v1/quota")["used"]["sandboxes"], 0, "and none counted")
    same(len([p for p in w.history()["points"] if p["label"]]), 3, f"each write is a point: {w.history()}")
    same(w.get()["sandboxes"], [], "nobody works on it")


@each("rule 1: sandboxes are removed, replaced and killed; the tree stays")
def _(c, daemon):
    w = Work(c, "durable")
    fill(w)
    before = w.hash()
    s = w.sandbox()
    same(c.execute(s, "cat src/a | wc -l")["stdout"].strip(), "100", "seen inside")
    c.remove(s)
    same(w.hash(), before, "after a removal")
    s = w.sandbox()
    c.ok("POST", f"/v1/sandboxes/{s['id']}/replace", {})
    same(c.execute(s, "wc -l < src/deep/b")["stdout"].strip(), "2000", "after a replace")
    for pid in daemon.monitors():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] != "running", 10, "noticed")
    same(w.hash(), before, "after the death of monitors")
    same(w.shell("cat tool | tail -1"), "echo run\n", "and it goes on")


@each("several sandboxes share one tree; mode read is held by the mount")
def _(c, _daemon):
    w = Work(c, "shared")
    one, two = w.sandbox(), w.sandbox()
    c.execute(one, "echo from-one > note")
    same(c.execute(two, "cat note; echo two >> note")["stdout"], "from-one\n", "seen by the other")
    same(w.read("note"), b"from-one\ntwo\n", "and by the API")
    same(sorted(w.get()["sandboxes"]), sorted([one["id"], two["id"]]), "who works on it")
    r = Work(c, "fixed", mode="read")
    refused = r.execute("touch x; echo $?; mkdir y")
    check("Read-only file system" in refused["stderr"], f"{refused}")
    answer = c.put(r.path + "/files/x", b"1")
    check(answer.status >= 400, f"a write by the API: {answer}")
    same(r.tree() in ({}, {".": r.tree().get(".")}), True, "nothing came in")
    same(c.create({"workspace": w.id, "fs": ["workspace:/src", "ephemeral:/work"]})["state"], "running", "elsewhere")
    for spec in ({"fs": "workspace:/work"}, {"workspace": w.id, "fs": "ephemeral:/work"},
                 {"workspace": w.id, "fs": ["workspace:/a", "workspace:/b"]}):
        same(c.post("/v1/sandboxes", spec).status, 400, f"{spec}")
    same(c.post("/v1/sandboxes", {"workspace": "nobody"}).status, 404, "no such workspace")


# ---- points ----------------------------------------------------------------------------------

@each("history, undo, redo, restore, snapshots, changes")
def _(c, _daemon):
    w = Work(c, "points")
    same(w.execute("true")["workspace"]["checkpoint"], None, "nor does the first command, when it changes nothing")
    states, ids = [w.hash()], []
    for cmd in ("mkdir d; echo 1 > d/a; echo 1 > b", "echo 2 > d/a; rm b; ln -s d l", "rm -rf d l; echo 3 > c; chmod 640 c"):
        done = w.execute(cmd)
        check(done["workspace"]["checkpoint"], f"a point: {done}")
        ids.append(done["id"])
        states.append(w.hash())
    idle = w.execute("cat c")
    same(idle["workspace"]["checkpoint"], None, "nothing changed, no point")
    same(len(w.history()["points"]), 3, "one for each")
    same(w.history()["points"][0]["process"], ids[2], "and they are known")
    for at in (2, 1, 0):
        w.post("undo")
        same(w.execute("ls -R")["workspace"]["checkpoint"], None, f"a look after the undo to {at} is no step")
        same(w.hash(), states[at], f"undo to {at}")
    same(w.get()["dirty"], False, "as it began")
    same(c.post(w.path + "/undo", {}).code, "conflict", "no further")
    w.post("redo", {"steps": 2})
    same(w.hash(), states[2], "redo of two")
    w.post("redo")
    same(w.hash(), states[3], "redo of the last")
    same(c.post(w.path + "/redo", {}).code, "conflict", "no further")
    w.post("undo", {"to": ids[1]})
    same(w.hash(), states[1], "undo of the second and all after it")
    snapshot = w.post("snapshots", {"label": "mine"})
    check(snapshot["id"].startswith("sn_"), f"{snapshot}")
    w.shell("echo other > z")
    w.post("restore", {"to": ids[2]})
    same(w.hash(), states[3], "as the third left it, though it was undone")
    w.post("restore", {"to": "base"})
    w.post("restore", {"to": idle["id"]})
    same(w.hash(), states[3], "as one that changed nothing found it")
    w.post("restore", {"snapshot": snapshot["id"]})
    same(w.hash(), states[1], "the snapshot")
    w.post("restore", {"to": "base"})
    same(w.hash(), states[0], "the beginning")
    w.post("restore", {"to": ids[1]})
    same(w.changes(), {"d": "A", "d/a": "A", "l": "A"}, "from the beginning")
    same(w.changes(base=ids[0]), {"b": "D", "d/a": "M", "l": "A"}, "from the first")
    same(w.changes(base=ids[1], to=ids[2]), {"c": "A", "d": "D", "d/a": "D", "l": "D"}, "between two")
    same(c.post(w.path + "/restore", {"to": "cp_" + "0" * 26}).code, "not_found", "no such point")
    same(c.ok("GET", w.path + "/changes?format=stat")["counts"], {"A": 3}, "stat")


@each("forks are rows; they begin alike and part")
def _(c, _daemon):
    w = Work(c, "parent")
    fill(w)
    first = w.history()["points"][0]["process"]
    w.shell("echo second > src/a")
    before = w.hash()
    made = w.post("fork", {"n": 3, "key": "try"})["workspaces"]
    same([f["key"] for f in made], ["try-1", "try-2", "try-3"], "their keys")
    forks = [Work.of(c, f) for f in made]
    same([f.hash() for f in forks], [before] * 3, "they begin alike")
    forks[0].shell("rm -rf src; echo mine > own")
    w.shell("echo theirs > tool")
    same(forks[1].hash(), before, "one does not see another")
    check(w.read("own") is None, "nor does the parent")
    forks[0].post("undo")
    same(forks[0].hash(), before, "undo in a fork")
    forks[0].post("undo")
    check(forks[0].read("src/a").startswith(b"1\n2\n"), "and of what its parent did")
    at = Work.of(c, w.post("fork", {"at": first})["workspaces"][0])
    check(at.read("src/a").startswith(b"1\n2\n"), "at a point")
    w.remove()
    same(forks[2].hash(), before, "the parent is gone")
    same(c.post(forks[1].path + "/fork", {"n": 0}).status, 400, "none")
    same(c.post(forks[1].path + "/fork", {"key": "try-1"}).code, "exists", "a key that is taken")
    many = forks[1].post("fork", {"n": 100})["workspaces"]
    same(len({f["id"] for f in many}), 100, "a hundred")


# ---- its end ---------------------------------------------------------------------------------

@each("removed means trash; out of it everything is as it was")
def _(c, _daemon):
    w = Work(c, "trash")
    same(c.delete(w.path).status, 204, "one without changes goes at once")
    w = Work(c, "trash")
    fill(w)
    before = w.hash()
    s = w.sandbox()
    same(c.delete(w.path).code, "busy", "sandboxes work on it")
    c.remove_all()
    same(c.delete(w.path).code, "conflict", "it has changes")
    w.remove()
    same(c.get(w.path).status, 404, "it is gone")
    same(c.get(f"/v1/sandboxes/{s['id']}").json["state"], "gone", "the sandbox too")
    rows = c.ok("GET", "/v1/workspaces?trash=1")["workspaces"]
    check(w.id in [r["id"] for r in rows], "it is in the trash")
    other = Work(c, "trash")  # the key is free
    same(c.post(f"/v1/workspaces/{w.id}/restore-trash", {}).code, "exists", "unless it is taken")
    other.remove()
    back = Work.of(c, c.ok("POST", f"/v1/workspaces/{w.id}/restore-trash", {}))
    same(back.hash(), before, "as it was")
    same(len(back.history()["points"]) >= 1, True, "with its history")
    short = Work(c, "short", ttl="1h")
    pinned = Work(c, "pinned", ttl="100ms", pin=True)
    same((short.get()["ttl_ms"], pinned.get()["pin"]), (3600000, True), "time to live")


@test("time in the trash is over: its top and its points go, what a fork needs stays", own=True)
def _(_api):
    others = set(vaults())
    d = Daemon("trash", options=("--keep-trash", "1s")).start()
    c = d.client()
    w = Work(c, "old", ttl="8s")
    pinned = Work(c, "pinned", ttl="100ms", pin=True)
    pinned.write("x", b"1")
    fill(w)
    w.shell("seq 5000 > more")
    fork = Work.of(c, w.post("fork", {"at": w.history()["points"][1]["id"]})["workspaces"][0])
    before = fork.hash()
    c.remove_all()
    wait_until(lambda: c.ok("GET", f"/v1/workspaces/{w.id}")["state"] != "ready", 20, "it is not used, and goes to the trash")
    wait_until(lambda: c.ok("GET", f"/v1/workspaces/{w.id}")["state"] == "gone", 20, "and then it is gone")
    same(c.post(f"/v1/workspaces/{w.id}/restore-trash", {}).code, "not_found", "for ever")
    same(fork.hash(), before, "its fork is as it was")
    fork.post("restore", {"to": "base"})
    same(fork.read("tool"), None, "also at the beginning")
    same(pinned.get()["state"], "ready", "what is pinned stays")
    clear(c)
    d.wait_clean()
    c.close()
    d.stop()
    for pid in set(vaults()) - others:  # of the store, at most: it was at work, and ends in a minute
        os.kill(pid, signal.SIGKILL)


# ---- while others are at work ----------------------------------------------------------------

WATCHER = r"""
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0o4000)
libc.inotify_add_watch(fd, b"/work", 0xfff & ~2)
log = open("/work/server.log", "w")
seen = 0
for i in range(1000000):
    try:
        seen += len(os.read(fd, 65536)) > 0
    except BlockingIOError:
        pass
    log.write(f"{i} {seen}\n"); log.flush()
    open("/tmp/seen", "w").write(f"{i} {seen}")
    time.sleep(0.01)
"""
MAPPER = r"""
import mmap, os, time
f = open("/work/map", "w+b"); f.truncate(4096)
m = mmap.mmap(f.fileno(), 4096); f.close()
for i in range(100000):
    m[0:8] = b"%08d" % i
    open("/tmp/at", "w").write(str(i))
    time.sleep(0.005)
"""


@each("rm -rf of all, then undo: shell, server, watcher and mapping live on", roles=("root",))
def _(c, _daemon):
    w = Work(c, "busy")
    fill(w)
    s = w.sandbox()
    w.write("watcher.py", WATCHER.encode())
    w.write("mapper.py", MAPPER.encode())
    c.execute(s, "cd src/deep; export KEPT=yes", shell="main")
    watcher = c.execute(s, "python3 watcher.py", wait="0s")
    mapper = c.execute(s, "python3 mapper.py", wait="0s")
    wait_until(lambda: c.execute(s, "cat /tmp/seen /tmp/at")["exit_code"] == 0, 10, "they run")
    before = {k: v for k, v in w.tree().items() if "server.log" not in k and k.strip("./") != "map"}
    done = c.execute(s, "rm -rf /work/src /work/tool /work/hard /work/empty; echo gone > /work/after", shell="main")
    check(done["workspace"]["checkpoint"], f"{done}")
    w.post("undo")
    after = {k: v for k, v in w.tree().items() if "server.log" not in k and k.strip("./") != "map"}
    same(after, before, "the tree")
    same(c.execute(s, "cd . ; pwd; echo $KEPT; wc -l < b", shell="main")["stdout"].split(),
         ["/work/src/deep", "yes", "2000"], "the shell")
    c.execute(s, "sed -i s/1/x/ src/a")
    for file in ("/tmp/seen", "/tmp/at"):
        first = c.execute(s, f"cat {file}")["stdout"]
        wait_until(lambda file=file, first=first: c.execute(s, f"cat {file}")["stdout"] not in ("", first), what=f"{file}: it goes on")
    for p in (watcher, mapper):
        same(c.ok("GET", f"/v1/processes/{p['id']}")["state"], "running", "they live")
    wait_until(lambda: int((c.execute(s, "tail -1 server.log")["stdout"].split() + ["0", "0"])[1]) > 0, what="the watcher saw the undo")
    at = int(w.read("map")[:8])
    wait_until(lambda: int(w.read("map")[:8]) > at, 5, "the mapping is the file's")


CLOCK = """
import time
while True:
    open("/work/clock", "a").write(f"{time.monotonic()}\\n")
    time.sleep(0.01)
"""


@each("a point that takes long: nobody moves before it is made", roles=("root",))
def _(c, daemon):
    w = Work(c, "slow")
    w.write("clock.py", CLOCK.encode())
    s = w.sandbox()
    c.execute(s, "python3 clock.py", wait="0s")
    wait_until(lambda: c.execute(s, "test -s clock")["exit_code"] == 0, 10, "it runs")
    keepers = vaults()
    second = daemon.client()
    asked = threading.Thread(target=lambda: second.post(w.path + "/snapshots", {}))
    for pid in keepers:
        os.kill(pid, signal.SIGSTOP)
    try:
        asked.start()
        time.sleep(9.5)  # longer than they would wait for a daemon that is gone
    finally:
        for pid in keepers:
            os.kill(pid, signal.SIGCONT)
        asked.join()
        second.close()
    times = [float(line) for line in w.read("clock").split()]
    gap = max(b - a for a, b in zip(times, times[1:]))
    check(gap > 6, f"they stood still, for {gap:.1f} s")


@each("a large undo with somebody there is busy, or ends him", roles=("root",))
def _(c, _daemon):
    w = Work(c, "large")
    w.shell("echo 1 > a")
    before = w.hash()
    w.shell("mkdir many; cd many; seq 3000 | xargs touch")
    s = w.sandbox()
    sleeper = c.execute(s, "sleep 1000", wait="0s")
    refused = c.post(w.path + "/undo", {})
    same(refused.code, "busy", f"{refused}")
    check(sleeper["id"] in refused.json["detail"], f"who: {refused}")
    check(w.read("many/7") is not None, "nothing was undone")
    w.post("undo", {"processes": "kill"})
    same(w.hash(), before, "undone")
    check(c.ok("GET", f"/v1/processes/{sleeper['id']}?wait=40s")["state"] in ("killed", "signaled"), "he was ended")
    w.post("redo")
    c.remove_all()
    w.post("undo")  # nobody there: another top
    same(w.hash(), before, "undone again")


@each("many at once: commands, writes, undo and redo")
def _(c, daemon):
    w = Work(c, "crowd")
    boxes = [w.sandbox() for _ in range(2)]
    problems = []

    def work(n):
        mine = daemon.client()
        try:
            for i in range(6):
                mine.execute(boxes[n % 2], f"echo {i} > c{n}")
                mine.ok("PUT", f"{w.path}/files/f{n}", str(i).encode())
                if n == 0:
                    mine.post(w.path + "/undo", {})
                    mine.post(w.path + "/redo", {})
        except Exception as e:  # pylint: disable=broad-except  # told below
            problems.append(repr(e))
        finally:
            mine.close()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(problems, [], "nobody failed")
    w.shell("echo end > last")
    before = w.hash()
    w.shell("rm -rf *")
    w.post("undo")
    same(w.hash(), before, "and it can still be undone")


# ---- restarts --------------------------------------------------------------------------------

def restarted(role):
    daemon = Daemon(f"again-{role}", uid=None if role == "root" else lib.USER_ID).start()
    c = daemon.client()
    w = Work(c, "again")
    fill(w)
    s = w.sandbox()
    c.execute(s, "cd src; export X=1", shell="main")
    before = w.hash()
    for how in ("stop", "kill"):
        c.close()
        getattr(daemon, how)()
        daemon.start()
        c = daemon.client()
        w.c = c
        same(c.execute(s, "pwd; echo $X", shell="main")["stdout"], "/work/src\n1\n", f"after {how}: the sandbox")
        same(w.hash(), before, f"after {how}: the tree")
        w.shell("echo new > n")
        w.post("undo")
        same(w.hash(), before, f"after {how}: undo")
    same(len(vaults()) > 0, True, "it has a keeper")
    for pid in vaults():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "stopped", 10, "its sandbox ends")
    same(w.hash(), before, "after the death of its keeper")
    w.shell("echo new > n")
    w.post("undo")
    same(w.hash(), before, "and undo works")
    c.remove_all()
    w.remove()
    daemon.wait_clean()
    c.close()
    daemon.stop()
    end_vaults()


@test("root: restart, kill -9 of the daemon, death of the keeper: nothing is lost", own=True)
def _(_api):
    restarted("root")


@test("user: restart, kill -9 of the daemon, death of the keeper: nothing is lost", own=True)
def _(_api):
    restarted("user")


def end_users():
    while users:
        d = users.pop()
        if d.process.poll() is not None:
            continue  # it was ended after a test that failed
        c = d.client()
        clear(c)
        c.close()
        d.stop()


place.ENDS.append(end_users)

if __name__ == "__main__":
    sys.exit(main(__file__))
