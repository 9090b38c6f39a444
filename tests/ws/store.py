#!/usr/bin/env python3
"""Room in the store of workspaces, and whether it is whole: quotas, eviction, gc, fsck. TAP.

    tests/ws/store.py             all (needs root)
    tests/ws/store.py fsck        those with the word in their title
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from place import Work, check, end_vaults, fill, lib, main, same, vaults, wait_until
from lib import Daemon, cell, test

MIB = 1 << 20


@contextlib.contextmanager
def daemon(name, *options, uid=None):
    """A daemon of its own, a client of it; nothing of it is left."""
    others = set(vaults())
    d = Daemon(name, uid=uid, options=options).start()
    c = d.client()
    yield d, c
    c.remove_all()
    for w in c.ok("GET", "/v1/workspaces?limit=1000")["workspaces"]:
        c.delete(f"/v1/workspaces/{w['id']}?force=1")
    c.close()
    d.wait_clean()
    d.stop()
    for pid in set(vaults()) - others:
        os.kill(pid, signal.SIGKILL)


def gc(c, dry=False):
    """The report, and its decisions about files by key."""
    report = c.ok("POST", "/v1/gc", {"dry_run": dry})
    return report, {r["key"]: r for r in report["decisions"] if r["kind"] == "files"}


def caisson(d, *words):
    """As whose daemon it is."""
    who = {} if d.uid is None else {"user": d.uid, "group": d.uid, "extra_groups": []}
    done = subprocess.run([cell.BIN / "caisson", *words], capture_output=True, text=True, check=False, timeout=100, cwd="/", **who,
                          env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "CAISSON_SOCKET": str(d.socket)})
    return done.returncode, done.stdout, done.stderr


# ---- quotas ----------------------------------------------------------------------------------

@test("quotas: how many workspaces, how much one may have", own=True)
def _(_api):
    with daemon("quota", "--quota", "workspaces=4", "--store", "workspace=32m") as (d, c):
        codes = []

        def make(n):
            mine = d.client()
            codes.append(mine.put(f"/v1/workspaces/w{n}", {}).status)
            mine.close()
        threads = [threading.Thread(target=make, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        same(sorted(codes), [201] * 4 + [429] * 4, "eight at once")
        refused = c.put("/v1/workspaces/more", {})
        same((refused.status, refused.code), (429, "quota"), f"{refused}")
        check("4 in use" in refused.json["detail"], f"{refused}")
        quota = c.ok("GET", "/v1/quota")
        same((quota["most"]["workspaces"], quota["used"]["workspaces"]), (4, 4), "both are told")
        w = Work.of(c, c.ok("GET", "/v1/workspaces")["workspaces"][0])
        same(c.post(w.path + "/fork", {}).code, "quota", "a fork is one too")
        same(w.get()["disk"], 32 * MIB, "a volume holds the bound")
        full = w.execute("head -c 48m /dev/zero > large; ls")
        check("No space left" in full["stderr"], f"{full}")
        w.remove()
        same(c.put("/v1/workspaces/more", {"disk": "64m"}).code, "quota", "more than the most")
        made = c.put("/v1/workspaces/more", {"disk": "16m"})
        same((made.status, made.json["disk"]), (201, 16 * MIB), "less is fine, and there is room")
        wait_until(lambda: not c.ok("GET", "/v1/sandboxes")["sandboxes"], 10, "its sandbox went with it")
        w = Work.of(c, made.json)
        w.write("small", b"mine\n")
        same(caisson(d, "ws", "rm", "more")[0], 1, "it has changes")
        same(caisson(d, "ws", "rm", "--force", "more")[0], 0, "thrown away")
        same(caisson(d, "ws", "restore-trash", w.id)[0], 0, "and taken back")
        for _again in range(8):  # a volume is free a moment after its keeper said goodbye
            w.remove()
            c.ok("POST", f"/v1/workspaces/{w.id}/restore-trash", {})
            same(c.get(w.path + "/files/small").body, b"mine\n", "opened at once")


@test("user: what cannot be held is found and refused", own=True)
def _(_api):
    with daemon("found", "--store", "workspace=8m", uid=lib.USER_ID) as (_d, c):
        w = Work(c, "big")
        w.shell("head -c 12m /dev/urandom > large")
        c.remove_all()

        def refused():
            gc(c)
            return c.post(w.path + "/exec", {"cmd": "true"}).code == "quota" or c.remove_all()
        wait_until(refused, 10, "it has too much")
        c.ok("DELETE", w.path + "/files/large")
        gc(c)
        same(w.shell("echo fine"), "fine\n", "less of it")


# ---- eviction --------------------------------------------------------------------------------

def evicted(role):
    uid = None if role == "root" else lib.USER_ID
    with daemon(f"evict-{role}", "--store", "max=40m", "--store", "high=50", "--store", "low=30", uid=uid) as (d, c):
        kinds = {"pinned": {"pin": True}, "old": {}, "late": {}, "busy": {}, "thrown": {}}
        works = {key: Work(c, key, **ask) for key, ask in kinds.items()}
        for w in works.values():
            w.shell("head -c 3m /dev/urandom > large; echo mine > small")
        fork = Work.of(c, works["late"].post("fork", {"key": "fork"})["workspaces"][0])
        before = {key: w.hash() for key, w in works.items()}
        c.remove_all()
        s = works["busy"].sandbox()
        works["thrown"].remove()
        report, said = gc(c, dry=True)
        same((report["dry_run"], report["max"], report["high"]), (True, 40 * MIB, 20 * MIB), "marks")
        check(said.keys() >= {"pinned", "busy", "fork", "old", "late"}, f"{report}")

        def decided():  # the daemon makes room by itself too: what has gone already has no bytes
            report, said = gc(c, dry=True)
            said["thrown"] = next(r for r in report["decisions"] if r["id"] == works["thrown"].id)
            for key, action, why in (("pinned", "keep", "pinned"), ("busy", "keep", "works with it"), ("fork", "keep", "no files"),
                                     ("thrown", "remove", "in the trash"), ("old", "remove", "kept as a point")):
                row = said[key]
                if (row["action"], why in row["why"]) != (action, True) and (action == "keep" or row["bytes"]):
                    return None
            return said
        wait_until(decided, 10, "each one has its reason")
        status, out, _err = caisson(d, "gc", "--dry-run")
        check(status == 0 and "it is pinned" in out and "would be freed" in out, f"{status}: {out}")
        wait_until(lambda: not any(gc(c)[1][key]["bytes"] for key in ("old", "late")), 10, "their files are gone")
        check(all(decided()[key]["bytes"] > 3 * MIB for key in ("pinned", "busy")), "and those of others are not")
        for key in ("pinned", "old", "late", "busy"):
            same(works[key].hash(), before[key], f"{key}: nobody sees a difference")
        same(fork.hash(), before["late"], "nor in a fork")
        works["old"].post("undo")
        same(works["old"].read("small"), None, "undo in one that was evicted")
        works["old"].post("redo")
        same(works["old"].hash(), before["old"], "and redo")
        back = Work.of(c, c.ok("POST", f"/v1/workspaces/{works['thrown'].id}/restore-trash", {}))
        same(back.hash(), before["thrown"], "out of the trash")
        c.remove(s)


def used_while_room_is_made(role):
    uid = None if role == "root" else lib.USER_ID
    with daemon(f"used-{role}", "--store", "max=16m", "--store", "high=50", "--store", "low=10", uid=uid) as (d, c):
        w = Work(c, "used")
        w.shell("head -c 6m /dev/urandom > large")
        c.remove_all()
        other = d.client()
        answer = other.send("GET", w.path + "/files/large")
        some = answer.read(1 << 16)
        for _again in range(5):
            row = gc(c)[1]["used"]
            same((row["action"], row["bytes"] >= 6 * MIB), ("keep", True), f"somebody reads it: {row}")
        same(len(some + answer.read()), 6 * MIB, "all of what was being read")
        other.close()
        wait_until(lambda: not gc(c)[1]["used"]["bytes"], 20, "its files are gone")
        ended = threading.Event()

        def make_room():
            mine = d.client()
            while not ended.is_set():
                gc(mine)
            mine.close()
        thread = threading.Thread(target=make_room)
        thread.start()
        try:
            for n in range(40):
                same(w.c.put(f"{w.path}/files/f{n % 4}", b"%d" % n).status // 100, 2, "a file is written")
                same(w.c.get(f"{w.path}/files/f{n % 4}").body, b"%d" % n, "and read")
                if n % 8 == 0:
                    check("large" in w.tree(), "an archive is whole")
        finally:
            ended.set()
            thread.join()


for the_role in ("root", "user"):
    test(f"{the_role}: above the high mark what can be had again goes, and nobody sees a difference", own=True)(lambda _api, role=the_role: evicted(role))
    test(f"{the_role}: room is made beside who reads and writes files", own=True)(lambda _api, role=the_role: used_while_room_is_made(role))


@test("a workspace that is deleted beside who writes to it", own=True)
def _(_api):
    with daemon("beside", "--keep-trash", "1s") as (d, c):
        def write(n, found):
            mine = d.client()
            while (answer := mine.put(f"/v1/workspaces/w{n}/files/small", b"mine")).status == 200:
                pass
            found.append(answer)
            mine.close()
        for n in range(12):
            w, found = Work(c, f"w{n}"), []
            writers = [threading.Thread(target=write, args=(n, found)) for _each in range(2)]
            for t in writers:
                t.start()
            time.sleep(0.01 * (n % 4))
            w.remove()
            for t in writers:
                t.join()
            check(all(a.status in (404, 503) for a in found), f"{found}")
            same(c.get(w.path).status, 404, "it is gone")
        wait_until(lambda: not c.ok("GET", "/v1/workspaces?trash=1")["workspaces"], 20, "nobody holds one of them")


@test("the bound of the store: by itself, in volumes too; then no more is made", own=True)
def _(_api):
    with daemon("bound", "--store", "max=24m", "--store", "high=60", "--store", "low=20") as (d, c):
        w = Work(c, "held", disk="32m")
        w.shell("head -c 8m /dev/urandom > large")
        before = w.hash()
        c.remove_all()
        volumes = d.state / "vol"
        images = {p.name for p in volumes.iterdir() if p.name.isdigit()}
        same(len(images), 1, "a volume")
        wait_until(lambda: not [p for p in volumes.iterdir() if p.name.isdigit()], 20, "it goes by itself")
        same(w.hash(), before, "and comes back")
        pinned = Work(c, "pinned", pin=True)
        pinned.shell("head -c 14m /dev/urandom > large")
        wait_until(lambda: (gc(c), c.put("/v1/workspaces/more", {}).code == "quota")[1], 20, "there is no room")
        same(c.post(pinned.path + "/fork", {}).code, "quota", "for a fork neither")
        c.remove_all()
        pinned.remove()


@test("disk use: alone and shared; nothing of a workspace stays when it is gone", own=True)
def _(_api):
    with daemon("usage", "--keep-trash", "1s") as (d, c):
        w = Work(c, "one", disk="64m")
        w.shell("head -c 2m /dev/urandom > large")
        fork = Work.of(c, w.post("fork", {"key": "two"})["workspaces"][0])
        fork.shell("echo mine > small")
        for path in (w.path, fork.path):
            use = c.ok("GET", path + "?usage=1")["usage"]
            check(use["unique"] >= 2 * MIB, f"its own files: {use}")
            check(2 * MIB <= use["shared"] < 3 * MIB, f"in points of both: {use}")

        def listed():  # a volume is as large as the disk has it
            rows = {r["key"]: r["usage"] for r in c.ok("GET", "/v1/workspaces?usage=1")["workspaces"]}
            return all(2 * MIB <= rows["one"][k] < 4 * MIB for k in ("unique", "shared"))
        wait_until(listed, 5, "all of them in one list")
        _status, out, _err = caisson(d, "ws", "ls", "--usage")
        check("UNIQUE" in out and "SHARED" in out, out)
        c.remove_all()
        w.remove()
        fork.remove()
        wait_until(lambda: c.ok("GET", f"/v1/workspaces/{w.id}")["state"] == "gone", 20, "it is gone")
        wait_until(lambda: not [p for p in (d.state / "vol").iterdir() if p.name.isdigit()], 10, "its volume too")


# ---- fsck ------------------------------------------------------------------------------------

class Broken:
    """A store, while nobody has it open, and ways to break it."""

    def __init__(self, d):
        self.d = d
        self.trees, self.blobs, self.volumes = (d.state / name for name in ("trees", "blobs", "vol"))

    def sql(self, text, *values):
        db = sqlite3.connect(next(self.d.state.glob("*.db")))
        with db:
            rows = db.execute(text, values).fetchall()
        db.close()
        return rows

    def of(self, w, column):
        return self.sql(f"SELECT {column} FROM workspaces WHERE id=?", w.id)[0][0]

    def folder(self, num):
        (self.trees / str(num) / "d").mkdir(parents=True)

    def tree_row(self, num):
        self.sql("INSERT INTO trees(num,tenant,node,kind,state,owner,bytes,created_ms)"
                 " SELECT ?,tenant,node,'checkout','ready','rp_x',0,0 FROM workspaces LIMIT 1", num)

    def lose_files(self, w):
        shutil.rmtree(self.trees / str(self.of(w, "top")))

    def lose_point(self, w):
        (self.blobs / "p" / str(self.sql("SELECT min(num) FROM points WHERE workspace=?", w.id)[0][0])).unlink()

    def lose_row(self, process):
        self.sql("DELETE FROM points WHERE process=?", process)

    def spoil_blob(self, size):
        found = [p for p in self.blobs.glob("[0-9a-f][0-9a-f]/*") if p.stat().st_size == size]
        same(len(found), 1, f"a blob of {size} bytes")
        with open(found[0], "r+b") as f:
            f.seek(100)
            f.write(b"damage")

    def pending(self, w):
        head = self.of(w, "head")
        mark = json.dumps({"to": head, "now": head, "ahead": [], "applied": False, "boot": "x"})
        self.sql("UPDATE workspaces SET pending=? WHERE id=?", mark, w.id)


# What is planted; what is found, of which kind; whether it can be mended.
DAMAGE = (
    ("a folder without a row", lambda b, w: b.folder(5), "tree", "no row names", True),
    ("a number of later", lambda b, w: b.folder(10**12), "store", "next number", True),
    ("a volume of nobody", lambda b, w: (b.volumes / "424242").write_bytes(b"x"), "volume", "no workspace has", True),
    ("a row without its folder", lambda b, w: b.tree_row(13), "tree", "is missing", True),
    ("a layer that is not sealed", lambda b, w: (b.tree_row(14), b.folder(14)), "tree", "not sealed", True),
    ("a workspace without files", lambda b, w: b.lose_files(w["files"]), "workspace", "its files are missing", True),
    ("a point without its checkpoint", lambda b, w: b.lose_point(w["point"]), "point", "is missing or broken", True),
    ("a checkpoint without a row", lambda b, w: b.lose_row(w["undone"]), "point", "no row names", True),
    ("a head that leads nowhere", lambda b, w: b.sql("UPDATE workspaces SET head=777 WHERE id=?", w["head"].id),
     "workspace", "a point that is not there", True),
    ("a blob that changed", lambda b, w: b.spoil_blob(70001), "blob", "changed", True),
    ("a restore that was cut short", lambda b, w: b.pending(w["pending"]), "workspace", "cut short", True),
    ("a blob that nobody has any more", lambda b, w: b.spoil_blob(70002), "blob", "changed", False),
    ("a layer that is not there", lambda b, w: b.sql("UPDATE workspaces SET stack='[12]' WHERE id=?", w["layer"].id),
     "workspace", "layer 12", False),
    ("something of somebody else's", lambda b, w: (b.trees / "odd").mkdir(), "store", "not ours", False),
)


def matches(row, damage):
    return row["kind"] == damage[2] and damage[3] in row["problem"]


@test("fsck: each kind of damage is found, and mended where nothing is lost by it", own=True)
def _(_api):
    with daemon("fsck") as (d, c):
        works = {key: Work(c, key) for key in ("files", "point", "head", "pending", "ahead", "layer", "blob")}
        for w in works.values():
            fill(w)
            w.shell("echo second > src/a")
        works["blob"].shell("head -c 70001 /dev/urandom > kept; head -c 70002 /dev/urandom > lost")
        works["blob"].shell("echo other > lost")
        undone = works["ahead"].execute("echo undone > src/a")["id"]
        works["ahead"].post("undo")
        before = {key: w.hash() for key, w in works.items()}
        works["undone"] = undone
        same(c.ok("POST", "/v1/fsck", {})["findings"], [], "it is whole")
        same(caisson(d, "fsck")[0], 0, "and the command says so")
        c.remove_all()
        c.close()
        b = Broken(d)
        wait_until(lambda: not list(b.blobs.glob("k/*")), 10, "contents are blobs")
        d.stop()
        end_vaults()
        for damage in DAMAGE:
            damage[1](b, works)
        d.start()
        c = d.client()
        found = c.ok("POST", "/v1/fsck", {})
        for damage in DAMAGE:
            check(any(matches(r, damage) for r in found["findings"]), f"{damage[0]} is not found: {found['findings']}")
        same([r for r in found["findings"] if r["mended"]], [], "only looked at")
        status, out, _err = caisson(d, "fsck", "--json")
        same((status, len(json.loads(out)["findings"])), (1, len(found["findings"])), "the same again")
        mended = c.ok("POST", "/v1/fsck", {"repair": True})["findings"]
        for damage in DAMAGE:
            rows = [r["mended"] for r in mended if matches(r, damage)]
            check(damage[4] in rows, f"{damage[0]}: {rows} of {mended}")
        left = c.ok("POST", "/v1/fsck", {})["findings"]
        same(sorted(r["problem"].split(":")[0] for r in left),
             ["layer 12 below it is missing", "missing", "something that is not ours lies among the trees"], "what is left")
        for key in ("files", "point", "head", "pending", "ahead", "blob"):
            w = Work.of(c, works[key].made)
            same(w.hash(), before[key], f"{key}: the tree")
            w.shell("echo third > src/a; rm tool")
            w.post("undo")
            same(w.hash(), before[key], f"{key}: and undo works")
        (b.trees / "odd").rmdir()
        status, out, _err = caisson(d, "fsck", "--repair")
        check(status == 1 and "not mended" in out, f"{status}: {out}")


# ---- flattening ------------------------------------------------------------------------------

def repository(path, files):
    """With one commit on main."""
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", "-C", path, "-c", "user.name=t", "-c", "user.email=t@example.org", *words], check=True,
                       env={"PATH": os.environ["PATH"], "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1"})
    return path


def flattened(role):
    uid = None if role == "root" else lib.USER_ID
    folder = pathlib.Path("/run/folders") / role
    folder.mkdir(parents=True)
    repo = repository(folder / "r", {f"d{i}/f{k}.txt": f"{i} {k}\n" for i in range(4) for k in range(5)})
    if uid:
        subprocess.run(["chown", "-R", f"{uid}:{uid}", folder], check=True)
    with daemon(f"flat-{role}", "--store", "layers=1", uid=uid) as (d, c):
        b = Broken(d)

        def stacks():
            return {key: json.loads(stack) for key, stack in b.sql("SELECT key,stack FROM workspaces WHERE state<>'gone'")}

        def up(key):  # a folder of the caller's: only the CLI is one
            status, out, err = caisson(d, "up", str(repo), "--task", key)
            same((status, err), (0, ""), f"up {key}: {out}")
            return Work.of(c, c.ok("GET", f"/v1/workspaces/{key}"))
        one, two = up("one"), up("two")
        s = two.sandbox()
        sleeper = c.execute(s, "exec sleep 1000", wait="0s")
        first = one.execute("mv d0 moved; rm -r d1; mkdir d1; echo new > d1/n; echo more >> d2/f0.txt; rm d3/f1.txt")["id"]
        one.shell("mv moved d9; echo x > d9/x; git add -A; git -c user.name=t -c user.email=t@t.test commit -qm second; rm d2/f1.txt")
        Work.of(c, one.post("fork", {"key": "fork", "at": first})["workspaces"][0])
        works = {key: Work.of(c, c.ok("GET", f"/v1/workspaces/{key}")) for key in ("one", "two", "fork")}

        def seen():
            return {key: (w.hash(), w.changes(), w.shell("git --no-optional-locks status --porcelain")) for key, w in works.items()}

        def again():
            nonlocal c
            c.close()
            d.stop()
            d.start()
            c = d.client()
            for w in works.values():
                w.c = c
        before = seen()
        same({len(v) for v in stacks().values()}, {2}, "two layers each")
        same(len({str(v) for v in stacks().values()}), 1, "the same for all")
        c.ok("DELETE", f"/v1/sandboxes/default:{works['one'].id}")
        c.ok("DELETE", f"/v1/sandboxes/default:{works['fork'].id}")
        if role == "root":
            again()
            time.sleep(1.5)  # time enough to do what must not be done
            same({len(v) for v in stacks().values()}, {2}, "not while somebody has one of them")
            same(c.ok("GET", f"/v1/processes/{sleeper['id']}")["state"], "running", "who lives on")
        c.remove_all()
        again()
        wait_until(lambda: {len(v) for v in stacks().values()} == {1}, 10, "one layer")
        same(len({str(v) for v in stacks().values()}), 1, "the same for all")
        same(seen(), before, "nobody sees a difference")
        s = works["one"].sandbox()
        shell = c.execute(s, "cd d9; echo here > /tmp/x", shell="main")
        same(shell["exit_code"], 0, f"{shell}")
        works["one"].post("undo")
        same(works["one"].tree().keys() - works["fork"].tree().keys(), set(), "undo with a shell in it")
        works["one"].post("redo")
        works["one"].post("restore", {"to": "base"})
        same(works["one"].hash(), works["two"].hash(), "to the beginning")
        works["one"].post("redo")
        same(works["one"].hash(), before["one"][0], "and back")
        same(works["one"].changes(base=first, to="head").keys() >= {"d9", "d2/f1.txt"}, True, "between points of before")
        if role == "root":
            works["late"] = up("late")
            works["late"].shell("echo late > late")
            late = works["late"].hash()
            c.remove_all()
            again()
            wait_until(lambda: len(stacks()["late"]) == 1, 10, "a later one too")
            same(stacks()["late"], stacks()["one"], "by the same tree")
            same((works["late"].hash(), works["one"].hash()), (late, before["one"][0]), "and they are as they were")
        same(c.ok("POST", "/v1/fsck", {})["findings"], [], "all of it is whole")
    shutil.rmtree(folder.parent)


@test("root: a long stack becomes one layer when nobody has it open, and nobody sees a difference", own=True)
def _(_api):
    flattened("root")


@test("user: a long stack becomes one layer when nobody has it open, and nobody sees a difference", own=True)
def _(_api):
    flattened("user")


if __name__ == "__main__":
    sys.exit(main(__file__))
