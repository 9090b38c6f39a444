"""workspace.py - what workspaces cost: forks, checkpoints, undo, diff, new ones, work inside, in a small and a large tree.

A part of bench/run. Every figure is the time of a request on a kept connection, from the client's side. While it is taken a
persistent shell, a dev server that writes its log into the tree, and a watcher of its folders are at work in it, unless the row
says that nobody is there. Peers of the same run: a copy (cp -a --reflink=auto), git worktree add and git clone --shared, git status.

All of it, ours and the peers', lies on an ext4 with a journal in a file of its own (as root): what others write to the disk, and what
this host's own file system does slowly, is then not in the figures, and removing it takes no time.

A checkpoint is a part of its command's answer: it is measured from the clock that the command's shell read last to the answer,
and what the same takes without checkpoints, on the same tree, is subtracted. Both are in the result.
"""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import time

import daemon as daemons

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SMALL, LARGE = 1000, 50000
FILE_BYTES = 20 << 10  # 1 GB in the large one
ROUNDS = 21
FORKS = 100
CHANGED = (1, 10, 40)
BIG = 5000
TURNS = 3

DISK_BYTES = 12 << 30
BETWEEN = "git status between builds"  # what they left is new to the untracked cache, and the index is written each time
# What is in the tree beside its many files: a program of a few units, and tests.
UNITS, TESTS = 12, 40
SERVER = """import http.server, os, sys
log = open("dev.log", "a", buffering=1)
log.write("begin\\n")
class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        log.write("request\\n")
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""
WATCHER = """import ctypes, os
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0)
for folder, names, _ in os.walk("."):
    names[:] = [n for n in names if n != ".git"]
    assert libc.inotify_add_watch(fd, folder.encode(), 0xFC6) >= 0
print("ready", flush=True)
while os.read(fd, 65536):
    pass
"""
GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "safe.directory=*", "-c", "core.compression=0",
       "-c", "init.defaultBranch=main", "-c", "gc.auto=0"]


def git(folder, *words, **options):
    return subprocess.run([*GIT, "-C", str(folder), *map(str, words)], check=True, stdout=subprocess.PIPE, **options).stdout.decode().strip()


def median(samples):
    return sorted(samples)[len(samples) // 2]


def timed(function, *args):
    begin = time.monotonic()
    function(*args)
    return 1000 * (time.monotonic() - begin)


@contextlib.contextmanager
def disk(tmp):
    """A folder on a file system of its own; a user has only the one that is there."""
    folder = tmp / "workspaces"
    folder.mkdir()
    if os.geteuid() != 0:
        yield folder
        return
    image = tmp / "workspaces.img"
    with open(image, "wb") as f:
        f.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard", image], check=True)
    loop = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", image], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    subprocess.run(["mount", "-o", "noinit_itable", loop, folder], check=True)
    subprocess.run(["losetup", "--detach", loop], check=True)  # when it is unmounted
    try:
        yield folder
    finally:
        for _ in range(100):  # keepers go a moment after their daemon
            if subprocess.run(["umount", folder], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                break
            time.sleep(0.1)
        image.unlink()


# ---- a repository ----------------------------------------------------------------------------

def name_of(i):
    return f"pkg{i // 500}/mod{i // 20 % 25}/f{i}.txt"


def project():
    """Names and contents of what can be built and tested."""
    calls = " + ".join(f"f{i}(1)" for i in range(UNITS))
    yield "c/main.c", "".join(f"int f{i}(int);\n" for i in range(UNITS)) + f"int main(void)\n{{\n\treturn ({calls}) == 0;\n}}\n"
    for i in range(UNITS):
        yield f"c/u{i}.c", f"#include <stdio.h>\n#include <stdlib.h>\nint f{i}(int x) {{ return printf(\"%d\", x + {i}); }}\n"
    yield "c/Makefile", f"p: main.o {' '.join(f'u{i}.o' for i in range(UNITS))}\n\t$(CC) -o $@ $^\n"
    for i in range(TESTS):
        cases = "".join(f"    def test_{k}(self):\n        self.assertEqual(sorted(range({k}, 0, -1))[0], 1)\n" for k in range(1, 11))
        yield f"py/test_{i}.py", f"import json, re, tempfile, unittest\nclass Case{i}(unittest.TestCase):\n{cases}"
    yield "dev/server.py", SERVER
    yield "dev/watcher.py", WATCHER
    yield ".gitignore", "*.o\n/c/p\n__pycache__\n/dev.log\n"


def make_repository(folder, files):
    """Bare, by one stream: a git add of as many files takes a minute."""
    git(folder.parent, "init", "-q", "--bare", folder)
    importer = subprocess.Popen([*GIT, "-C", folder, "fast-import", "--quiet"], stdin=subprocess.PIPE)
    out = io.BufferedWriter(importer.stdin, 1 << 20)
    line = b"a line of a file that is as long as lines are, more or less\n"
    out.write(b"commit refs/heads/main\ncommitter bench <bench@example.org> 1700000000 +0000\ndata 5\nbench\n")

    def add(name, data):
        out.write(f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n")
    for i in range(files):
        head = f"file {i}\n".encode()
        add(name_of(i), head + (line * (FILE_BYTES // len(line) + 1))[:FILE_BYTES - len(head)])
    for name, text in project():
        add(name, text.encode())
    out.flush()
    importer.stdin.close()
    if importer.wait() != 0:
        raise RuntimeError("git fast-import failed")
    return git(folder, "rev-parse", "main")


# ---- one workspace ---------------------------------------------------------------------------

class Work:
    """A workspace of the daemon's with somebody at work in it."""

    def __init__(self, daemon, key, **ask):
        self.daemon, self.path = daemon, f"/v1/workspaces/{key}"
        self.has_points = ask.get("spec", {}).get("checkpoint") != "off"
        self.ok("PUT", "", ask)

    def ok(self, method, path, body=None):
        status, answer = self.daemon.ask(method, self.path + path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {self.path}{path}: {status} {answer}")
        return answer

    def execute(self, cmd, **options):
        done = self.ok("POST", "/exec", {"cmd": cmd, **options})
        if "wait" not in options and done["exit_code"] != 0:
            raise RuntimeError(f"{cmd}: {str(done)[:1000]}")
        return done

    def shell(self, cmd):
        return self.execute(cmd, shell="main")["stdout"]

    def inhabit(self):
        """A shell in one of its folders, a dev server, a watcher of all of its folders."""
        self.shell("cd /work/pkg0/mod0")
        self.execute("exec python3 dev/server.py", cwd="/work", wait=0)
        watcher = self.execute("exec python3 dev/watcher.py", cwd="/work", wait=0)
        for _ in range(1000):
            if "ready" in str(self.daemon.ask("GET", f"/v1/processes/{watcher['id']}/log")[1]):
                break
            time.sleep(0.02)
        else:
            raise RuntimeError("the watcher does not begin")
        self.shell("until (: < /dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done; cd .")

    def leave(self):
        for name in self.ok("GET", "")["sandboxes"]:
            self.daemon.ask("DELETE", f"/v1/sandboxes/{name}")

    def change(self, n, word):
        """Writes n files from the shell, each in a folder of its own. Milliseconds from its last look at the clock to the answer."""
        done = self.execute(f'cd /work; for ((i = 0; i < {n}; i++)); do '
                            f'echo "{word} $i" > pkg$((i / 25))/mod$((i % 25))/f$((i * 20)).txt; done; '
                            'cd pkg0/mod0; echo $EPOCHREALTIME', shell="main")
        took = 1000 * (time.time() - float(done["stdout"]))
        if done.get("workspace", {}).get("checkpoint") is None and self.has_points:
            raise RuntimeError(f"no checkpoint: {done}")
        return took

    def undo(self, files):
        """Milliseconds; at least so many went back."""
        begin = time.monotonic()
        done = self.ok("POST", "/undo", {})
        took = 1000 * (time.monotonic() - begin)
        if done["files"] < files:
            raise RuntimeError(f"undo of {files}: {done}")
        return took


# ---- one size --------------------------------------------------------------------------------

class World:
    """A repository, and workspaces of its one commit."""

    def __init__(self, daemon, tmp, files):
        self.daemon, self.files, self.key = daemon, files, f"tree{files}"
        self.bare, self.host, self.once = tmp / f"{self.key}.git", tmp / f"{self.key}-host", {}
        self.commit = make_repository(self.bare, files)
        self.once["mirror"] = timed(daemon.ask, "PUT", f"/v1/repos/{self.key}", {"url": str(self.bare)})
        self.once["first checkout"] = timed(self.work, "first")
        self.once["git clone --shared"] = timed(git, tmp, "clone", "-q", "--shared", self.bare, self.host)
        self.once["git worktree add"] = timed(git, self.host, "worktree", "add", "-q", "--detach", tmp / f"{self.key}-tree", "main")
        copy = tmp / f"{self.key}-copy"
        self.once["cp -a --reflink=auto"] = timed(lambda: subprocess.run(["cp", "-a", "--reflink=auto", self.host, copy], check=True))
        self.busy, self.plain = self.work("busy"), self.work("plain", spec={"checkpoint": "off"})
        self.busy.inhabit()
        self.plain.inhabit()
        self.samples = {}

    def work(self, name, **ask):
        return Work(self.daemon, f"{self.key}-{name}", repo=self.key, base=self.commit, **ask)

    def add(self, name, took):
        self.samples.setdefault(name, []).append(took)

    def fork(self, n):
        self.busy.ok("POST", "/fork", {"n": n})

    def round(self, i):
        """Each of them once."""
        self.add("new workspace", timed(self.work, f"new{i}"))
        for n in CHANGED:
            self.add(f"answer, {n} changed", self.busy.change(n, f"round{i}"))
            self.add(f"answer, {n} changed, no checkpoint", self.plain.change(n, f"round{i}"))
            if n == 10:
                self.add("diff of 10", timed(self.look, 10))
            if n == 40:
                self.add("fork", timed(self.fork, 1))
            self.add(f"undo of {n}", self.busy.undo(n))
        self.add("fork right after an undo of 40", timed(self.fork, 1))

    def look(self, n):
        found = self.busy.ok("GET", "/changes?base=base")["files"]
        found = [f for f in found if f["path"] != "dev.log"]
        if len(found) != n:
            raise RuntimeError(f"{n} changes: {found}")

    def git_status(self):
        """The peer of the diff: 10 changes in the tree of the host, caches warm."""
        for i in range(10):
            (self.host / name_of(20 * i)).write_text("changed\n")
        times = [timed(git, self.host, "status", "--porcelain") for _ in range(7)]
        git(self.host, "checkout", "-q", "--", ".")
        return median(times)

    def result(self):
        """p50 in ms."""
        rows = {name: median(values) for name, values in self.samples.items()}
        for n in CHANGED:
            rows[f"checkpoint of {n}"] = rows[f"answer, {n} changed"] - rows[f"answer, {n} changed, no checkpoint"]
        return {**rows, **self.once}


def bench_big(world):
    """5,000 files change, everybody leaves, and it is undone: while its keeper is there, and when it has ended."""
    w = world.work("big")
    rows = {}
    for wait_s, name in ((1, "undo of 5,000"), (1, "undo of 5,000"), (1, "undo of 5,000"), (13, "undo of 5,000, closed")):
        w.execute(f"for ((i = 0; i < {BIG}; i++)); do echo $i > pkg$((i / 500))/mod$((i / 20 % 25))/f$i.txt; done", cwd="/work")
        w.leave()
        time.sleep(wait_s)
        rows.setdefault(name, []).append(w.undo(BIG))
        rows.setdefault("first command after it", []).append(timed(w.execute, "true"))
    status = w.execute("time git status --porcelain", cwd="/work")
    if status["stdout"]:
        raise RuntimeError(f"not as before: {status['stdout'][:200]}")
    rows["first git status after it"] = [1000 * seconds(status["stderr"])]
    rows["second git status"] = [1000 * seconds(w.execute("time git status --porcelain", cwd="/work")["stderr"])]
    w.leave()
    return {name: median(values) for name, values in rows.items()}


def seconds(text):
    """Of bash's time."""
    minutes, rest = next(line for line in text.splitlines() if line.startswith("real")).split()[1].rstrip("s").split("m")
    return 60 * int(minutes) + float(rest)


# ---- work inside -----------------------------------------------------------------------------

def bench_inside(world, tmp, spawn, parse):
    """The same commands in a workspace and in a clone on the host, in turns; arm -> name -> times in microseconds."""
    tools = tmp / "tools"
    tools.mkdir(exist_ok=True)
    shutil.copy(BUILD / "bench/spawn", tools)
    status = ["/usr/bin/git", "status", "--porcelain"]
    alone = [9, "git status", *status]
    mixed = [5, BETWEEN, *status, "++", "C build", "/usr/bin/make", "-s", "-B", "-C", "c",
             "++", "Python tests", "/usr/bin/python3", "-m", "unittest", "discover", "-q", "-s", "py"]
    w = world.work("inside", spec={"fs": ["workspace:/work", f"ro:{tools}:/opt/bench"]})
    arms = {"host": lambda jobs: spawn(*jobs, cwd=world.host),
            "inside": lambda jobs: parse(w.execute(["/opt/bench/spawn", *map(str, jobs)], cwd="/work")["stdout"])}
    result = {arm: {} for arm in arms}
    for turn in range(2 * TURNS):
        for arm, run in arms.items():
            for name, t in run((alone, mixed)[turn % 2]).items():
                if name not in result[arm] or t["p50"] < result[arm][name]["p50"]:
                    result[arm][name] = t
    w.leave()
    return result


# ---- all -------------------------------------------------------------------------------------

def bench(tmp, spawn, parse):
    begin = time.monotonic()
    with disk(tmp) as folder, daemons.Daemon(folder / "daemon") as daemon:
        worlds = [World(daemon, folder, n) for n in (SMALL, LARGE)]
        os.sync()  # what the copies left to write
        for i in range(ROUNDS):
            for world in worlds:
                world.round(i)
        for _ in range(5):
            for world in worlds:
                world.add("100 forks", timed(world.fork, FORKS))
        large = worlds[-1]
        large.once["git status of 10"] = large.git_status()
        for world in worlds:
            world.busy.leave()
            world.plain.leave()
        large.once.update(bench_big(large))
        result = {"file_bytes": FILE_BYTES, "rounds": ROUNDS, "ms": {w.files: w.result() for w in worlds},
                  "inside": bench_inside(large, folder, spawn, parse)}
    result["took_s"] = time.monotonic() - begin
    show(result)
    return result


def show(r):
    small, large = r["ms"].values()
    print(f"workspaces of {SMALL} and {LARGE} files of {r['file_bytes'] >> 10} KiB, a shell, a server and a watcher alive, ms (p50 of {r['rounds']})")
    for name, value in large.items():
        other = small.get(name)
        print(f"  {name:38}" + (f"{other:10.2f}{value:10.2f}{value / other:8.2f} x" if other else f"{'':10}{value:10.2f}"))
    print("  inside / host, caches warm, ms (p50)")
    for name, host in r["inside"]["host"].items():
        ours = r["inside"]["inside"][name]
        failed = host["failed"] + ours["failed"]
        print(f"  {name:38}{host['p50'] / 1000:10.2f}{ours['p50'] / 1000:10.2f}{ours['p50'] / host['p50']:8.2f} x" +
              (f"   {failed} FAILED" if failed else ""))
    print(f"  all of it took {r['took_s']:.0f} s\n")


def verdicts(r):
    """(what, figure, budget)."""
    small, large = r["ms"].values()
    rows = [(f"{name}, {LARGE} files, ms", large[key], most) for name, key, most in (
        ("fork", "fork", 2), ("100 forks", "100 forks", 100), ("checkpoint of 1 change", "checkpoint of 1", 3),
        ("checkpoint of 40 changes", "checkpoint of 40", 3), ("undo of 40 changes", "undo of 40", 6),
        ("undo of 5,000 changes, nobody there", "undo of 5,000", 10), ("diff of 10 changes", "diff of 10", 3),
        ("new workspace at a cached commit", "new workspace", 10))]
    rows += [(f"{name}, {LARGE} files / {SMALL} files", large[name] / small[name], 1.5)
             for name in ("fork", "100 forks", "checkpoint of 40", "undo of 40", "diff of 10")]
    for name, ours in r["inside"]["inside"].items():
        host = r["inside"]["host"][name]
        if name != BETWEEN and not ours["failed"] + host["failed"]:
            rows.append((f"{name} in a workspace / host", ours["p50"] / host["p50"], 1.10))
    return rows
