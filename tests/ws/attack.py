#!/usr/bin/env python3
"""The attack corpus of workspaces: rows SNP, and rows FSX at the files of a workspace that no sandbox has. TAP, then a table.

    tests/ws/attack.py              all rows (needs root)
    tests/ws/attack.py SNP-0 full   those with a word in their title
"""
import contextlib
import hashlib
import io
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import threading
import time

import place
import rows
from place import Work, check, end_vaults, lib, same, wait_until
from corpus import as_user
from hostile import ENCODINGS, NAMES, file_verbs, judge, quote_bytes, tar_of
from lib import HOST, SECRET, Daemon
from rows import row

lib.TESTS.clear()  # those of hostile.py are about sandboxes; tests/api/attack.py runs them
BARE = lib.HOME / "bare"  # what the controls work on: the same disk


def digest(folder, *names):
    """Of all that lies on disk there: names, kinds, modes, owners, attributes, contents."""
    h = hashlib.sha256()
    for top in names or (".",):
        for path in sorted((folder / top).rglob("*")):
            info = path.lstat()
            h.update(f"{path} {info.st_mode} {info.st_uid} {info.st_gid} {info.st_size} {info.st_mtime_ns}".encode())
            with contextlib.suppress(OSError):
                h.update(repr(sorted((a, os.getxattr(path, a, follow_symlinks=False)) for a in os.listxattr(path, follow_symlinks=False))).encode())
            if path.is_file() and not path.is_symlink():
                h.update(path.read_bytes())
    return h.hexdigest()


def bare(name):
    shutil.rmtree(BARE / name, ignore_errors=True)
    (BARE / name).mkdir(parents=True)
    return BARE / name


def finish(c, *works):
    c.remove_all()
    for w in works:
        c.delete(f"{w.path}?force=1")


# ---- ids and modes ---------------------------------------------------------------------------

@row("SNP-01", "points and snapshots of others: by id, by guess, by '..', by a link in the store", own=True)
def _(_api, arms):
    d = Daemon("ids", options=["--listen", "127.0.0.1:0"]).start()
    local = d.client()
    a, b = (d.tcp(local.ok("POST", "/v1/tokens", {"scope": ["manage", "approve"], "tenant": t})["token"]) for t in "ab")
    theirs, mine = Work(a, "w"), Work(b, "w")
    theirs.write("secret", SECRET.encode())
    point, snapshot = theirs.history()["points"][0]["id"], theirs.post("snapshots", {"label": "kept"})["id"]
    done = theirs.execute("echo more > more")["id"]
    mine.write("own", b"own")
    before = mine.hash()
    (bare("ids") / "store").mkdir()
    (BARE / "ids/secret").write_text(SECRET)
    arms.control((BARE / "ids/store" / "../secret").read_text() == SECRET, "a store by path is left by '..'")
    names = [point, snapshot, done, "../" + point, point + "/../" + snapshot, "../../../../run/host/canary", "/run/host/canary", "1", "0", "-1", "2",
             "cp_" + "a" * 26, "sn_" + "0" * 26, point[:-1], point + "x", point.upper(), "%2e%2e/x", "cp_../../../../etc/passwd", "sn_*", "cp_%", "' OR 1=1 --"]
    verbs = (("restore", "to"), ("restore", "snapshot"), ("undo", "to"), ("fork", "at"), ("merge", "from"))
    for i, name in enumerate(names):
        for verb, field in verbs if i < 2 else (verbs[i % 5],):
            body = {field: name}
            answer = b.post(f"{mine.path}/{verb}", body)
            check(answer.status in (400, 404, 409), f"{verb} {name!r}: {answer}, OPEN")
        quoted = lib.urllib.parse.quote(name, safe="")
        for query in (f"base={quoted}", f"to={quoted}")[:1 + (i < 3)]:
            answer = b.get(f"{mine.path}/changes?{query}")
            check(answer.status in (400, 404) and SECRET.encode() not in answer.body, f"{query}: {answer}, OPEN")
    for path in (theirs.id, f"{theirs.id}/history", f"{theirs.id}/files/secret", f"{theirs.id}/archive", f"{theirs.id}/changes", f"{theirs.id}/export?format=patch"):
        same(b.get(f"/v1/workspaces/{path}").status, 404, f"{path}, OPEN")
    for verb in ("fork", "undo", "redo", "restore", "snapshots", "exec", "commits", "push", "merge", "restore-trash", "grep", "glob", "files:batch"):
        same(b.post(f"/v1/workspaces/{theirs.id}/{verb}", {"cmd": "id", "to": "base", "message": "x", "from": mine.id, "pattern": "x"}
                    if verb != "files:batch" else []).status in (400, 404), True, f"{verb}, OPEN")
    same(b.delete(f"/v1/workspaces/{theirs.id}?force=1").status, 404, "delete, OPEN")
    same(b.post("/v1/sandboxes", {"workspace": theirs.id}).status, 404, "a sandbox on it, OPEN")
    same(b.post(f"{mine.path}/merge", {"from": theirs.id}).status, 404, "merge, OPEN")
    same((mine.hash(), theirs.read("secret")), (before, SECRET.encode()), "both are as they were")
    # A link in the store, put there by nobody we know: it is not followed.
    kept = [p for p in (d.state / "blobs/p").iterdir() if p.name.isdigit()]
    for p in kept:
        p.rename(p.with_name("aside-" + p.name))
        p.symlink_to("aside-" + p.name)
    answer = a.post(f"{theirs.path}/restore", {"to": point})
    check(answer.status >= 400, f"a link in the store was followed: {answer}, OPEN")
    for p in kept:
        p.unlink()
        p.with_name("aside-" + p.name).rename(p)
    same(a.post(f"{theirs.path}/restore", {"to": point}).status, 200, "without the link")
    for client, w in ((a, theirs), (b, mine)):
        finish(client, w)
        client.close()
    d.wait_clean()
    d.stop()
    end_vaults()


@row("SNP-11", "modes and owners of all that is stored; another user of the host reads")
def _(api, arms):
    (bare("open") / "f").write_text(SECRET)
    for path in (BARE, BARE / "open", BARE / "open/f"):
        path.chmod(0o755)
    arms.control(as_user(lambda: (BARE / "open/f").read_text()) == SECRET, "another user reads a plain folder")
    w = Work(api.client, "modes")
    w.shell("umask 0; echo secret > f; mkdir -m 777 d; chmod 666 f; umask 022")
    w.post("snapshots", {"label": "kept"})
    wrong = []
    for at, folders, files in os.walk(api.daemon.state):
        inside = "/d" in at.removeprefix(str(api.daemon.state / "trees"))  # what is below has the modes that it has inside
        if inside:
            continue
        for name in [*folders, *files]:
            info = os.lstat(os.path.join(at, name))
            if info.st_mode & 0o077 and at != str(api.daemon.state) and not (at.endswith("trees") or name == "d"):
                wrong.append(f"{at}/{name} {oct(info.st_mode)}")
    check(not wrong, lambda: f"others may: {wrong[:8]}, OPEN")
    for path in ("trees", "blobs", "vol", "caisson.db", "logs"):
        seen = as_user(lambda path=path: (api.daemon.state / path).stat() and os.listdir(api.daemon.state / path))
        check(seen in ("PermissionError", "NotADirectoryError"), f"{path}: {seen}, OPEN")
    same(as_user(lambda: open(api.daemon.state / "caisson.db", "rb").read(1)), "PermissionError", "the database, OPEN")
    finish(api.client, w)


# ---- damage ----------------------------------------------------------------------------------

def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 0x10]))


@row("SNP-08", "bits flipped, files cut and exchanged in the store: an error, never another tree", own=True)
def _(_api, arms):
    folder = bare("flip")
    (folder / "a").write_text("content\n")
    shutil.copytree(folder, BARE / "flip-kept", dirs_exist_ok=True)
    flip(BARE / "flip-kept/a", 2)
    shutil.copytree(BARE / "flip-kept", folder, dirs_exist_ok=True)
    arms.control((folder / "a").read_text() != "content\n", "a copy that was damaged is restored without a word")
    chance, d = random.Random(8), Daemon("flips").start()
    c = d.client()
    w = Work(c, "flips")
    first = w.execute("mkdir d; seq 3000 > d/a; seq 30000 > b; seq 7 > c; ln -s b l; head -c 2500000 /dev/urandom > big")["id"]
    one = w.hash()
    w.execute("rm -rf d b l; seq 5 > c; echo x > new; : > big")
    two = w.hash()
    refused = silent = 0
    files = lambda: [p for p in (d.state / "blobs").rglob("*") if p.is_file() and p.name != "lock" and p.stat().st_size]  # noqa: E731
    for i in range(24):
        victim = files()[i % len(files())] if i < 12 else chance.choice(files())
        whole, times = victim.read_bytes(), victim.stat()
        kind = i % 4
        if kind < 2:
            flip(victim, chance.randrange(len(whole)))
        elif kind == 2:
            os.truncate(victim, chance.randrange(len(whole)))
        else:
            victim.write_bytes(chance.choice(files()).read_bytes())
        answer = c.post(f"{w.path}/restore", {"to": first})
        if answer.status == 200:
            same(w.hash(), one, f"{victim.name}, {kind}: another tree was restored, OPEN")
            silent += 1
        else:
            check(answer.status >= 500 and not answer.json.get("retry_safe"), f"{victim}: {answer}")
            refused += 1
        with open(victim, "wb") as f:
            f.write(whole)
        os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
        if answer.status != 200:
            same(w.hash(), two, f"{victim.name}, {kind}: the tree was touched, OPEN")
        else:
            w.post("undo") if w.history().get("ahead") else w.post("redo")
            same(w.hash(), two, "back")
    check(refused >= 6, f"only {refused} of 24 were noticed")
    # Closed, it is a row that changes; whoever opens it then finds out, and finds all of it when the store is whole again.
    c.remove_all()
    c.close()
    d.stop()
    end_vaults()
    d.start()
    c = w.c = d.client()
    victim = max(files(), key=lambda p: p.stat().st_size)
    flip(victim, 1_000_000)
    c.post(f"{w.path}/restore", {"to": first})
    answer = c.get(f"{w.path}/files/big")
    check(answer.status != 200 or answer.body == b"", f"what was damaged is handed out: {answer.status}, OPEN")
    flip(victim, 1_000_000)
    w.post("restore", {"to": first})
    same(w.hash(), one, "without damage")
    w.post("redo")
    same(w.hash(), two, "and back")
    arms.note(f"{refused} refused; {silent} did not concern what was restored")
    finish(c, w)
    d.wait_clean()
    c.close()
    d.stop()
    end_vaults()


# ---- a full disk -----------------------------------------------------------------------------

FILLER = lib.HOME / "filler"


@contextlib.contextmanager
def full_disk(left):
    """About so many bytes are free; what the file system keeps for itself is not among them."""
    info = os.statvfs(lib.HOME)
    size = info.f_bfree * info.f_frsize
    try:
        with open(FILLER, "wb", buffering=0) as f:
            while True:
                try:
                    os.posix_fallocate(f.fileno(), 0, size)
                    break
                except OSError:
                    size -= 256 << 10
            os.truncate(FILLER, size - left)
        yield
    finally:
        FILLER.unlink(missing_ok=True)


def write_plain(path, n):
    """How much of it is there then."""
    subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=64k", f"count={n >> 16}"], stderr=subprocess.DEVNULL, check=False)
    size = path.stat().st_size
    path.unlink()
    return size


def may_be(w, states, what):
    """The tree is one of these: which."""
    now = wait_until(lambda: hash_of(w), 20, f"{what}: the tree can be read")
    found = [k for k, h in states.items() if h == now]
    check(found, lambda: f"{what}: a third state, OPEN: {sorted(w.tree())[:20]}")
    return found[0]


def hash_of(w):
    with contextlib.suppress(lib.Failed):
        return w.hash()
    return None


@row("SNP-03", "the disk is full during a point, a snapshot, an undo, a fork: old or new, and it goes on", own=True)
def _(_api, arms):
    with full_disk(500_000):
        arms.control(0 < write_plain(BARE / "f", 5 << 20) < 5 << 20, "a plain write leaves half a file")
    d = Daemon("full").start()
    c = d.client()
    seen = set()
    victim = Work(c, "victim")
    s = victim.sandbox()
    c.execute(s, "seq 10 > a")
    c.execute(s, "seq 100000 > later; touch /tmp/done; sleep 1000", wait="0s")
    wait_until(lambda: c.get(c.file(s, "/tmp/done") + "?stat").status == 200, 10, "it is written, and no point made of it")
    with full_disk(0):
        same(c.delete(f"{victim.path}?force=1").status, 204, "to remove one is the way to get room")
    back = Work.of(c, c.ok("POST", f"/v1/workspaces/{victim.id}/restore-trash", {}))
    same(back.shell("cat a later | wc -l"), "100010\n", "what no point was made of")
    finish(c, back)
    for left in (0, 40_000, 300_000, 3_000_000):
        w = Work(c, f"full-{left}")
        s = w.sandbox()
        c.execute(s, "seq 100000 > a; seq 20 > b; mkdir d; seq 9 > d/x")
        one = w.hash()
        with full_disk(left):
            for body in ({"cmd": "cp a a2; cat a a2 > b; rm d/x; echo new > n"}, {"cmd": "sync; true"}):
                answer = c.post(f"/v1/sandboxes/{s['id']}/exec", body)
                seen.add(f"exec {answer.status}")
            answers = [c.post(f"{w.path}/{verb}", body) for verb, body in
                       (("snapshots", {"label": "x"}), ("fork", {"key": f"fork-{left}"}), ("undo", {}))]
        seen |= {f"{a.status} {a.code or ''}".strip() for a in answers}
        wait_until(lambda c=c, s=s: c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "true"}).json.get("exit_code") == 0, 20, "the sandbox runs on")
        check(all(a.status in (200, 201) or a.code in ("quota", "backend_error", "busy", "conflict") for a in answers), lambda answers=answers: f"{left}: {answers}")
        now = w.hash()
        if answers[2].status == 200:
            same(now, one, f"{left}: undone, OPEN")
        for point in w.history()["points"]:  # what is on record can be had
            w.post("restore", {"to": point["id"]})
        w.post("restore", {"to": "base"})
        w.post("restore", {"to": w.history()["points"][-1]["id"]})
        same(w.hash(), one, f"{left}: the first point, OPEN")
        finish(c, w, *([Work.of(c, answers[1].json["workspaces"][0])] if answers[1].status == 201 else []))
    arms.note(f"seen: {', '.join(sorted(seen))}")
    d.wait_clean()
    c.close()
    d.stop()
    end_vaults()


@row("SNP-03b", "an undo that finds no room half-way is taken back, and what is done afterwards stays", own=True)
def _(_api, arms):
    d = Daemon("half").start()
    c = d.client()
    w = Work(c, "half")
    s = w.sandbox()
    keeper = c.execute(s, "sleep 1000", wait="0s")
    c.execute(s, "seq 7 > 0; head -c 30000000 /dev/urandom > m; seq 8 > z")
    one = w.hash()
    c.execute(s, "seq 9 > 0; echo small > m; seq 10 > z")
    two = w.hash()
    with full_disk(12_000_000):
        arms.control(write_plain(BARE / "f", 30_000_000) < 29_000_000, "there is room for all of it")
        answer = c.post(f"{w.path}/undo", {})
    same(answer.code, "quota", f"it cannot be: {answer}")
    same(w.hash(), two, "without room nothing is begun, OPEN")
    stubborn = next(d.state.glob("trees/*/d/m"))
    subprocess.run(["chattr", "+i", stubborn], check=True)  # the second of three files: it stops there
    answer = c.post(f"{w.path}/undo", {})
    subprocess.run(["chattr", "-i", stubborn], check=True)
    same(answer.code, "backend_error", f"half-way: {answer}")
    state = may_be(w, {"old": two, "new": one}, "half an undo")
    c.execute(s, "echo later > later") if state == "old" else None
    same(c.ok("GET", f"/v1/processes/{keeper['id']}")["state"], "running", f"whoever works there goes on: {state} {d.tail()}")
    later = w.hash()
    c.close()
    d.kill()
    d.start()
    c = w.c = d.client()
    same(w.hash(), later, "what was done afterwards is there after a restart, OPEN")
    w.post("undo", {"steps": 2})
    same(w.hash(), one, "and both can be undone")
    arms.note(f"the tree is the {state} one")
    finish(c, w)
    d.wait_clean()
    c.close()
    d.stop()
    end_vaults()


# ---- files of a workspace without a sandbox --------------------------------------------------

@row("FSX-01", "'..' in twenty encodings, absolute, '//', NUL, very long, at a workspace")
def _(api, arms):
    c = api.client
    w = Work(c, "paths")
    w.write("own", b"own")
    goal = str(HOST / "canary").lstrip("/")
    (bare("up") / "x").write_text("x")
    arms.control((BARE / "up" / ("../" * 8) / "etc/passwd").exists(), "a path with '..' leaves a folder")
    paths = [enc * 8 + goal for enc in ENCODINGS[::2]] + ["/" + goal, "//" + goal, "///./" + goal, "%00", goal + "%00.txt", "a/" * 2040 + "x", "x" * 5000, "%2e", "",
                                                      "%2fetc%2fpasswd", "own/../../" + goal, "..", "../..", "/proc/self/root/" + goal]
    for i, path in enumerate(paths):
        answers = {}
        at = f"{w.path}/files/{path}"
        with contextlib.suppress(ValueError, lib.http.client.InvalidURL):
            answers = {"read": c.get(at), "tar": c.get(f"{w.path}/archive?path=/{path}"), **({"write": c.put(at + "-new", b"OPEN")} if i % 4 == 0 else {})}
        judge(answers, path)
        check(b"root:x:0" not in b"".join(a.body for a in answers.values()), f"{path}: a file of the system")
    same(w.read("own"), b"own", "it is well")
    finish(c, w)


@row("FSX-02", "links to the outside, last and in the middle, sixteen verbs at a workspace (FSX-03, FSX-05)")
def _(api, arms):
    c = api.client
    w = Work(c, "links")
    folder = bare("links")
    targets = {"abs": HOST / "canary", "dir-abs": HOST, "up": "../../../../../../../../run/host/canary", "dir-up": "../../../../../../run/host", "root": "/",
               "proc": "/proc/1/root/run/host/canary", "fd": "/proc/self/fd/3", "loop": "loop", "gone": HOST / "none", "state": api.daemon.state}
    (BARE / "secret").write_text(SECRET)
    (folder / "l").symlink_to("../secret")
    arms.control((folder / "l").read_text() == SECRET, "a link leaves a folder")
    w.shell("; ".join(f"ln -s {target} {name}" for name, target in targets.items()))
    for path in ("abs", "up", "proc", "fd", "loop", "gone", "dir-abs/canary", "dir-up/sub/canary", "root/run/host/canary", "dir-abs", "state/caisson.db",
                 "root/proc/self/environ", "root/work/root/run/host/sub"):
        answers = file_verbs(c, w.path, path)
        judge(answers, path)
        check(b"SQLite" not in b"".join(a.body for a in answers.values()), f"{path}: the database, OPEN")
    w.shell(f"rm -rf *; mkdir a; echo inside > a/canary; ln -s {HOST} b")
    s = w.sandbox()
    c.execute(s, "while :; do mv a c 2>/dev/null; mv b a; mv a b; mv c a; done", wait=0)
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        for answer in (c.get(f"{w.path}/files/a/canary"), c.put(f"{w.path}/files/a/new", b"OPEN"), c.get(f"{w.path}/files/a?list")):
            check(SECRET.encode() not in answer.body and answer.status < 500, f"during swaps: {answer}, OPEN")
    finish(c, w)


@row("FSX-06", "hard links across forks and to layers, then writes by the API: nobody else's file changes")
def _(api, arms):
    c = api.client
    folder = bare("hard")
    (folder / "a").write_text("one")
    subprocess.run(["cp", "-al", folder / "a", folder / "fork"], check=True)
    (folder / "fork").write_text("two")
    arms.control((folder / "a").read_text() == "two", "a fork by hard links shares its files")
    w = Work(c, "hard")
    w.shell("echo one > file; ln file hard; mkdir sub; ln file sub/hard; chmod 600 hard")
    w.post("snapshots", {"label": "kept"})
    fork = Work.of(c, w.post("fork", {"key": "hard-fork"})["workspaces"][0])
    before = w.hash()
    trees = [p for p in (api.daemon.state / "trees").iterdir() if (p / "sealed").exists()]
    sealed = digest(api.daemon.state / "trees", *(p.name for p in trees))
    fork.shell("ln hard again; ln -f sub/hard third")
    for name in ("hard", "sub/hard", "file", "again"):
        for answer in (c.put(f"{fork.path}/files/{name}", b"changed\n"), c.put(f"{fork.path}/files/{name}?mode=0777", b"again\n"),
                       c.call("PATCH", f"{fork.path}/files/{name}", {"edits": [{"old": "again", "new": "edited"}]}),
                       c.post(f"{fork.path}/files:move", {"from": name, "to": name + "-moved"}), c.delete(f"{fork.path}/files/{name}-moved")):
            check(answer.status < 300, f"{name}: {answer}")
    same(w.hash(), before, "the other workspace, OPEN")
    same(digest(api.daemon.state / "trees", *(p.name for p in trees)), sealed, "what is sealed, OPEN")
    finish(c, w, fork)


@row("FSX-07", "FIFO, socket, folder, sparse terabyte at a workspace: an answer in time, nobody blocked")
def _(api, arms):
    c, d = api.client, api.daemon
    os.mkfifo(bare("fifo") / "f")
    reader = threading.Thread(target=lambda: os.close(os.open(BARE / "fifo/f", os.O_RDONLY)), daemon=True)
    reader.start()
    reader.join(0.2)
    arms.control(reader.is_alive(), "who opens a FIFO waits")
    os.close(os.open(BARE / "fifo/f", os.O_WRONLY))
    w = Work(c, "kinds")
    w.shell("mkfifo fifo; mkdir dir; truncate -s 1T sparse || truncate -s 8G sparse; ln -s fifo link; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'")
    wrong = []
    for path in ("fifo", "link", "sock", "dir", "sparse"):
        for name, (method, target, body) in {
                "read": ("GET", f"{w.path}/files/{path}", None), "lines": ("GET", f"{w.path}/files/{path}?lines=1-2", None),
                "hash": ("GET", f"{w.path}/files/{path}?stat&hash", None), "edit": ("PATCH", f"{w.path}/files/{path}", {"edits": [{"old": "a", "new": "b"}]}),
                "grep": ("POST", f"{w.path}/grep", {"pattern": "zzz", "path": path}), "changes": ("GET", f"{w.path}/changes", None),
                "snapshot": ("POST", f"{w.path}/snapshots", {"label": "x"})}.items():
            if path == "sparse" and name == "grep":
                continue  # it is told its time: FSX-28 at sandboxes
            begin = time.monotonic()
            mine = d.client()
            response = mine.send(method, target, body)
            with contextlib.suppress(OSError, lib.http.client.HTTPException):
                response.read(1 << 20)
            seconds = time.monotonic() - begin
            mine.close()
            if seconds > 20 or response.status >= 500:  # who is blocked waits for ever
                wrong.append(f"{name} {path}: {response.status} after {seconds:.1f} s")
    check(not wrong, "\n".join(wrong))
    w.shell("rm -f *; rmdir dir")
    w.post("undo")
    same(w.shell("stat -c '%F %s' fifo sock sparse").split("\n")[:2], ["fifo 0", "socket 0"], "they are undone like others")
    finish(c, w)


@row("FSX-09", "files that execute later, and were not there before, on their way to a folder of the host: none comes without a yes")
def _(api, arms):
    c, d = api.client, api.daemon
    names = (".git/hooks/pre-commit", ".git/config", ".vscode/tasks.json", ".envrc", ".husky/pre-push", "Makefile", ".github/workflows/x.yml", ".claude/settings.json")
    host, plain = bare("applied"), bare("plain")
    w = Work(c, "later")
    w.write("a.txt", b"one\n")
    base = w.post("snapshots", {})["id"]
    (host / "a.txt").write_text("one\n")
    w.write("a.txt", b"two\n")
    for name in names:
        w.write(name, b"harm\n")
    with tarfile.open(fileobj=io.BytesIO(c.get(f"{w.path}/archive").body)) as tar:
        tar.extractall(plain)
    arms.control(all((plain / name).exists() for name in names), "whoever unpacks it has them")
    before = digest(host)

    def apply(*words):
        return subprocess.run([lib.cell.BIN / "caisson", "apply", "later", "--to", host, "--from", base, "--yes", *words], capture_output=True, text=True, cwd="/", check=False,
                              stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "XDG_STATE_HOME": str(BARE / "journal"), "CAISSON_SOCKET": str(d.socket)})
    done = apply()
    same((done.returncode, digest(host)), (1, before), f"nothing is applied, OPEN: {done}")
    done = apply("--allow-exec", "Makefile", "--allow-exec", ".envrc")
    same((done.returncode, digest(host)), (1, before), f"nor in part: {done}")
    arms.off(apply("--allow-exec", "*").returncode == 0 and (host / ".envrc").exists(), "the question")
    check(not (host / ".git").exists(), "a git folder of theirs, OPEN")
    finish(c, w)


@row("FSX-15", "names that are hard to carry: exact in list, tar, changes, patch; undone like others")
def _(api, arms):
    c, chance = api.client, random.Random(15)
    names = NAMES + [bytes(chance.choice([b for b in range(1, 256) if b != 47]) for _ in range(chance.randrange(1, 60))) for _ in range(40)]
    names = [n for n in dict.fromkeys(names) if n not in (b".", b"..")]
    folder = bare("names")
    for name in names:
        (pathlib.Path(os.fsdecode(bytes(folder) + b"/" + name))).write_bytes(b"x")
    said = subprocess.run(["ls", folder], capture_output=True, check=True).stdout
    arms.control(len(said.splitlines()) != len(names), "a list by lines is not what is there")
    w = Work(c, "names")
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as t:
        for name in names:
            info = tarfile.TarInfo("n/" + name.decode(errors="surrogateescape"))
            info.size = len(name)
            t.addfile(info, io.BytesIO(name))
    answer = c.put(f"{w.path}/archive?path=/", tar.getvalue())
    check(answer.status == 200, f"{answer}")
    for name in names[:40]:
        same(c.get(f"{w.path}/files/n/" + quote_bytes(name)).body, name, f"read {name!r}")

    def path_of(entry):
        return lib.base64.b64decode(entry["path_base64"]) if "path_base64" in entry else entry["path"].encode()
    changed = {path_of(f) for f in c.ok("GET", f"{w.path}/changes")["files"]}
    same(changed - {b"n"}, {b"n/" + n for n in names}, "changes")
    listed = {path_of(e).rsplit(b"/", 1)[-1] for e in c.ok("GET", f"{w.path}/files/n?list&hidden&max=1000")["entries"]}
    same(listed, set(names), "list")
    before = w.hash()
    w.shell("rm -rf n")
    w.post("undo")
    same(w.hash(), before, "undone")
    finish(c, w)


def overlay_hides(folder):
    """What a character device 0:0 in an upper folder does to a file below."""
    for name in ("lower", "upper", "work", "m"):
        (folder / name).mkdir()
    (folder / "lower/f").write_text("x")
    os.mknod(folder / "upper/f", 0o20000, 0)
    subprocess.run(["mount", "-t", "overlay", "x", "-o", f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work", folder / "m"], check=True)
    try:
        return not (folder / "m/f").exists()
    finally:
        subprocess.run(["umount", folder / "m"], check=True)


@row("FSX-17", "whiteouts as data: .wh.* names, device 0:0, attributes of overlays; nothing below is hidden, out and in again")
def _(api, arms):
    c = api.client
    arms.control(overlay_hides(bare("whiteout")), "a whiteout in a layer hides what is below")
    w = Work(c, "whiteouts")
    w.shell("mkdir d; for f in a b d/x d/y; do echo $f > $f; done")
    w.post("snapshots", {"label": "below"})
    below = w.hash()
    upper = Work.of(c, w.post("fork", {"key": "whiteouts-fork"})["workspaces"][0])
    s = upper.sandbox(user="root", profile="rootful")
    said = c.execute(s, "touch .wh.a d/.wh..wh..opq .wh..wh.aufs .wh.; mknod b2 c 0 0; mknod d/x2 b 0 0; "
                        "python3 -c \"import os\nfor n, v in (('user.overlay.opaque', b'y'), ('user.overlay.whiteout', b''), ('user.overlay.redirect', b'/'), "
                        "('trusted.overlay.opaque', b'y'), ('trusted.overlay.redirect', b'/')):\n for p in ('d', 'a'):\n  try: os.setxattr(p, n, v); print(n, p)\n"
                        "  except OSError as e: print(e.errno)\"; ls -A")
    check("trusted.overlay" not in said["stdout"], f"an attribute that overlays obey, OPEN: {said}")
    expected = {".wh.a", ".wh.", ".wh..wh.aufs", "a", "b", "d", "d/x", "d/y", "d/.wh..wh..opq"}
    names = lambda x: {n.strip("/").removeprefix("./") for n in x.tree()} - {".", ""}  # noqa: E731
    same(names(upper), expected, f"all is there as it was made, and no device: {said}")
    upper.post("snapshots", {"label": "again"})
    again = Work.of(c, upper.post("fork", {"key": "whiteouts-again"})["workspaces"][0])
    same(names(again), expected, "in a fork")
    copy = Work(c, "whiteouts-copy")
    same(c.put(f"{copy.path}/archive?path=/", c.get(f"{upper.path}/archive").body).status, 200, "out and in again")
    same(names(copy), expected, "and in again")
    c.remove_all()
    upper.post("restore", {"to": "base"}), again.remove(), copy.remove()
    same(w.hash(), below, "what lies below, OPEN")
    members = [(name, tarfile.REGTYPE, b"", 0o644) for name in (".wh.a", "d/.wh..wh..opq", ".wh.d")] + [("b", tarfile.CHRTYPE, b"", 0o666)]
    for member in members:
        c.put(f"{w.path}/archive?path=/", tar_of(member))
    same({"a", "b", "d/x", "d/y"} <= names(w), True, "an archive that is unpacked hides nothing, OPEN")
    finish(c, w, upper)


@row("FSX-19", "folders without rights and full trees left behind: a workspace can be undone and removed")
def _(api, arms):
    c = api.client
    (bare("rights") / "a").mkdir(mode=0)
    arms.control(as_user(lambda: os.listdir(BARE / "rights/a")) == "PermissionError", "a folder without rights stops a user")
    w = Work(c, "rights")
    w.shell("mkdir -p a/b/c; echo x > a/b/c/f; chmod 644 a/b/c/f")
    before = w.hash()
    w.shell("chmod 000 a/b/c/f a/b/c a/b a")
    w.post("undo")
    same(w.hash(), before, "undone")
    w.post("redo")
    # Deeper than any program can name: no point is made of it, and whoever removes it can undo again.
    deep = w.execute("mkdir deep; python3 -c 'import os\nos.chdir(\"deep\")\nfor i in range(300): os.mkdir(\"x\" * 200); os.chdir(\"x\" * 200)'; chmod 000 deep")
    check(deep["exit_code"] == 0 and not deep["workspace"]["checkpoint"], f"{deep}")
    same(c.post(f"{w.path}/undo", {}).code, "too_large", "it says why")
    w.shell("chmod 700 deep; rm -rf deep")
    w.post("undo")
    w.execute("mkdir deep; python3 -c 'import os\nos.chdir(\"deep\")\nfor i in range(300): os.mkdir(\"x\" * 200); os.chdir(\"x\" * 200)'; chmod 000 deep")
    c.remove_all()
    w.remove()
    same(c.get(w.path).status, 404, "removed")
    back = Work.of(c, c.ok("POST", f"/v1/workspaces/{w.id}/restore-trash", {}))
    same(back.shell("chmod 700 deep; ls deep | wc -c"), "201\n", "and nothing of it is lost")
    back.shell("rm -rf deep")
    finish(c, back)


@row("FSX-26", "files without rights and of root: the API at a workspace is no more than the agent")
def _(api, arms):
    c = api.client
    (bare("mode") / "f").write_text(SECRET)
    (BARE / "mode/f").chmod(0)
    arms.control((BARE / "mode/f").read_text() == SECRET, "a daemon that is root reads all")
    w = Work(c, "mode")
    s = w.sandbox(user="root", profile="rootful")
    c.execute(s, "cd /work; echo x > mine; chown 1000 mine; chmod 000 mine; echo r > roots; chown 0 roots; chmod 600 roots; mkdir rdir; chown 0 rdir; chmod 700 rdir; echo q > rdir/f")
    agent = w.sandbox()
    for path in ("mine", "roots", "rdir/f"):
        inside = c.execute(agent, ["cat", f"/work/{path}"], user="agent")["exit_code"] == 0
        outside = c.get(f"{w.path}/files/{path}")
        same(outside.status == 200, inside, f"{path}: {outside}")
        answer = c.put(f"{w.path}/files/rdir/new", b"x")
        check(answer.status >= 400, f"a write where the agent may not: {answer}")
    finish(c, w)


@row("FSX-29", "hostile archives into a workspace (ARC-01), modes 06777, devices; more than there is room for (ARC-03)")
def _(api, arms):
    c = api.client
    folder = bare("tar")
    evil = tar_of(("l", tarfile.SYMTYPE, str(BARE), 0o777), ("l/through", tarfile.REGTYPE, b"OPEN", 0o666))
    with tarfile.open(fileobj=io.BytesIO(evil)) as tar:
        tar.extractall(folder)  # as any program did before there were filters
    arms.control((BARE / "through").exists(), "an archive writes through its own link")
    w = Work(c, "tar")
    members = [("suid", tarfile.REGTYPE, b"#!/bin/sh\n", 0o6777), ("dev", tarfile.CHRTYPE, b"", 0o666), ("../up", tarfile.REGTYPE, b"OPEN", 0o666),
               ("/run/host/abs", tarfile.REGTYPE, b"OPEN", 0o666), ("link", tarfile.SYMTYPE, str(HOST), 0o777), ("link/new", tarfile.REGTYPE, b"OPEN", 0o666),
               ("hard", tarfile.LNKTYPE, "../../etc/passwd", 0o666), ("hard2", tarfile.LNKTYPE, str(HOST / "canary"), 0o666),
               ("a/../../up2", tarfile.REGTYPE, b"OPEN", 0o666), ("x" * 300, tarfile.REGTYPE, b"long", 0o666)]
    for member in members:
        answer = c.put(f"{w.path}/archive?path=/t", tar_of(member, ("after", tarfile.REGTYPE, b"", 0o600)))
        check(answer.status < 500, f"{member[0][:40]} {member[1]!r}: {answer}")
    check(c.put(f"{w.path}/archive?path=/u", tar_of(*members)).status < 500, "all at once")
    for data in (b"", b"x" * 700, os.urandom(5000), tar_of(members[0])[:700]):
        check(c.put(f"{w.path}/archive?path=/v", data).status < 500, f"an archive that is none: {data[:10]!r}")
    for mode in ("06777", "4755", "7777"):
        c.put(f"{w.path}/files/m{mode}?mode={mode}", b"x")
    seen = w.shell("find . -perm /6000; find . -type c -o -type b; find / -maxdepth 1 -name 'up*'")
    same(seen, "", "set-ids, devices, files elsewhere, OPEN")
    sparse = io.BytesIO()
    with tarfile.open(fileobj=sparse, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info, data = tarfile.TarInfo("GNUSparseFile.0/s"), b"1\n0\n1\n".ljust(512, b"\0") + b"x"
        info.size = len(data)
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s", "GNU.sparse.realsize": str(1 << 45)}
        tar.addfile(info, io.BytesIO(data))
    was = os.statvfs(lib.HOME).f_bfree
    check(c.put(f"{w.path}/archive?path=/s", sparse.getvalue()).status < 500, "32 terabytes of nothing")
    with full_disk(2_000_000):
        answer = c.put(f"{w.path}/archive?path=/f", tar_of(("large", tarfile.REGTYPE, bytes(8 << 20), 0o644)))
    check(answer.status in (413, 422, 429, 507), f"more than there is room for: {answer}")
    check((was - os.statvfs(lib.HOME).f_bfree) * 4096 < 16 << 20, "the disk is not as before, OPEN")
    same(w.shell("echo well"), "well\n", "afterwards")
    finish(c, w)


def main():
    finish_place = place.prepare

    def prepare():
        end = finish_place()
        BARE.mkdir()
        return end
    return lib.main(__file__, prepare=prepare, extra=rows.print_table)


if __name__ == "__main__":
    sys.exit(main())
