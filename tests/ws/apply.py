#!/usr/bin/env python3
"""caisson apply: a workspace's change in a folder of the host, whole or not at all; what executes later; kills. TAP.

    tests/ws/apply.py             all (needs root)
    tests/ws/apply.py kill        those with the word in their title
"""
import base64
import contextlib
import hashlib
import io
import json
import os
import pathlib
import pty
import shutil
import stat
import subprocess
import sys
import tarfile

import place
from place import Work, check, lib, main, same
from lib import Daemon, test

lib.cell.PROGRAMS = (*dict.fromkeys((*lib.cell.PROGRAMS, "caisson-test")),)
HOST = lib.HOME / "hosts"       # on the same disk as the daemons' folders
STATE = lib.HOME / "state"      # where the journals are
users = []
counter = 0


def user_daemon():
    if users and users[0].process.poll() is not None:
        users.pop()
    if not users:
        users.append(Daemon("user", uid=lib.USER_ID).start())
    return users[0]


def each(title):
    """A test as root and as an ordinary user."""
    def add(function):
        for role in ("root", "user"):
            def run(api, role=role):
                daemon = api.daemon if role == "root" else user_daemon()
                c = daemon.client()
                try:
                    function(Place(daemon, c))
                finally:
                    c.remove_all()
                    for w in c.ok("GET", "/v1/workspaces?limit=1000")["workspaces"]:
                        c.delete(f"/v1/workspaces/{w['id']}?force=1")
                    c.close()
            test(f"{role}: {title}")(run)
        return function
    return add


class Place:
    """A workspace with a known beginning, and a folder of the host that has the same."""

    def __init__(self, daemon, client):
        global counter  # pylint: disable=global-statement
        counter += 1
        self.daemon, self.c = daemon, client
        self.w = Work(client, f"w{counter}")
        self.host = HOST / f"h{counter}"
        self.state = STATE / f"s{counter}"
        for folder in (self.host, self.state):
            folder.mkdir(parents=True)
            if daemon.uid is not None:
                os.chown(folder, daemon.uid, daemon.uid)
        self.who = {} if daemon.uid is None else {"user": daemon.uid, "group": daemon.uid, "extra_groups": []}

    def begin(self, script):
        """The same in both, and the point that it is."""
        self.w.shell(script)
        self.on_host(script)
        self.base = self.w.post("snapshots", {})["id"]

    def on_host(self, script):
        subprocess.run(["sh", "-euc", "umask 022; " + script], cwd=self.host, check=True, timeout=100, **self.who)

    def apply(self, *words, status=0, program="caisson", env=None, base=None):
        command = [str(lib.cell.BIN / program), "apply", self.w.key, "--to", str(self.host), "--from", base or self.base, *words]
        done = subprocess.run(command, capture_output=True, timeout=100, cwd="/", stdin=subprocess.DEVNULL, check=False, umask=0o022, **self.who,
                              env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "XDG_STATE_HOME": str(self.state),
                                   "CAISSON_SOCKET": str(self.daemon.socket), **(env or {})})
        check(done.returncode in (status if isinstance(status, tuple) else (status,)), lambda: f"{command}: {done}")
        return done

    def report(self, *words, status=0):
        return json.loads(self.apply("--json", *words, status=status).stdout)

    def tree(self):
        return tree(self.host)

    def is_clean(self):
        """Nothing of ours is left."""
        left = [p for p in os.listdir(self.host) if p.startswith(".caisson")]
        journals = [p for p in (self.state / "caisson/apply").iterdir() if p.name.startswith(".")]
        same((left, journals), ([], []), "left behind")


def tree(folder):
    """name -> kind, mode, content, of everything below."""
    found = {}
    for root, folders, files in os.walk(os.fsencode(folder)):
        for name in folders + files:
            path = os.path.join(root, name)
            st = os.lstat(path)
            kind = stat.S_IFMT(st.st_mode)
            data = os.readlink(path) if stat.S_ISLNK(st.st_mode) else pathlib.Path(os.fsdecode(path)).read_bytes() if stat.S_ISREG(st.st_mode) else None
            found[os.path.relpath(path, os.fsencode(folder))] = (kind, None if stat.S_ISLNK(st.st_mode) else st.st_mode & 0o7777, data)
    return found


def acts(report):
    return {c["path"]: c["action"] for c in report["changes"]}


BEGIN = ("mkdir -p src/deep old/inner; seq 20 > src/a; seq 30 > src/deep/b; truncate -s 3M large; ln -s a src/link; echo gone > old/inner/x; echo tool > tool; echo t > t; "
         "printf 'bin\\0one' > bin; mkdir tofile; echo k > tofile/k; echo f > tofolder")
CHANGE = ("sed -i s/^3$/three/ src/a; rm -r old; echo new > src/new; mkdir -p more/folders; echo deep > more/folders/file; ln -sf deep/b src/link; echo end >> large; seq 200000 > numbers; "
          "chmod +x tool; mkdir empty; printf 'bin\\0two' > bin; rm -r tofile; echo file > tofile; rm tofolder; mkdir tofolder; echo in > tofolder/in; mv t moved")


@each("created, written, deleted, modes, links, folders for files and files for folders; nothing is done twice")
def _(p):
    p.begin(BEGIN)
    p.on_host("echo mine > mine")
    p.w.shell(CHANGE)
    before = p.tree()
    dry = p.report("--dry-run", status=1)
    same([r["path"] for r in dry["refused"]], ["tool"], "it becomes executable")
    same((dry["applied"], p.tree()), (False, before), "a dry run")
    refused = p.report(status=1)
    same((refused["applied"], p.tree()), (False, before), "without a yes")
    done = p.report("--allow-exec", "tool")
    same(acts(done), {"bin": "write", "empty": "mkdir", "large": "write", "numbers": "create", "more": "mkdir", "more/folders": "mkdir", "more/folders/file": "create", "moved": "create",
                      "old": "rmdir", "old/inner": "rmdir", "old/inner/x": "delete", "src/a": "write", "src/link": "write", "src/new": "create", "t": "delete",
                      "tofile": "create", "tofile/k": "delete", "tofolder": "to-folder", "tofolder/in": "create", "tool": "mode"}, "acts")
    tools = [c for c in done["changes"] if c["path"] == "tool"]
    same((tools[0]["mode"], tools[0]["mode_before"]), ("0755", "0644"), "modes")
    want = HOST / "want"
    want.mkdir()
    subprocess.run(["sh", "-euc", f"umask 022; {BEGIN}; {CHANGE}; echo mine > mine"], cwd=want, check=True)
    same(p.tree(), tree(want), "the tree")
    shutil.rmtree(want)
    p.is_clean()
    same(p.report()["changes"], [], "again")
    same(p.apply().stdout, b"", "and again")


@each("a file that was changed here too is merged; the same lines, other kinds and no text are conflicts, and nothing is done")
def _(p):
    p.begin(BEGIN)
    p.w.shell("sed -i s/^3$/three/ src/a; sed -i s/^20$/twenty/ src/deep/b; echo theirs > both")
    p.on_host("sed -i s/^18$/eighteen/ src/a; chmod +x src/a")
    done = p.report()
    same(acts(done), {"both": "create", "src/a": "merge", "src/deep/b": "write"}, "acts")
    lines = (p.host / "src/a").read_text().split()
    same((lines[2], lines[17], oct((p.host / "src/a").stat().st_mode & 0o777)), ("three", "eighteen", "0o755"), "merged, with the mode of the folder")
    p.is_clean()

    p.base = p.w.post("snapshots", {})["id"]
    p.w.shell("sed -i s/^5$/FIVE/ src/a; printf 'bin\\0w' > bin; rm src/deep/b; echo w >> tool; echo theirs > fresh; rm -r old; echo x > src/link2; echo y > t; mkdir d; echo e > d/e")
    p.on_host("sed -i s/^5$/five/ src/a; printf 'bin\\0h' > bin; echo more >> src/deep/b; rm tool; echo ours > fresh; echo z > old/inner/x; rm t; ln -s . t; echo file > d")
    before = p.tree()
    done = p.report(status=1)
    same({c["path"] for c in done["conflicts"]}, {"src/a", "bin", "src/deep/b", "tool", "fresh", "old/inner/x", "t", "d", "d/e"}, "conflicts")
    same((done["applied"], p.tree()), (False, before), "nothing was done")
    check(b"the same lines were changed here and there" in p.apply(status=1).stderr, "in words")
    p.is_clean()


@each("what git ignores and its own folder stay; what executes later needs a yes of its own, one by one")
def _(p):
    p.begin("echo build/ > .gitignore; echo '{\"name\": \"x\", \"scripts\": {\"test\": \"true\"}}' > package.json; echo run > Makefile; mkdir .git; echo ours > .git/config")
    p.w.shell("mkdir build; echo o > build/o; truncate -s 20M build/large; echo '[core] fsmonitor = x' > .git/config; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; "
              "echo '{\"name\": \"y\", \"scripts\": {\"test\": \"true\"}}' > package.json; echo ok > plain")
    done = p.report()
    same((acts(done), {x["path"].split("/")[0] for x in done["left_out"]}), ({"package.json": "write", "plain": "create"}, {".git", "build"}), "left out")
    same((p.host / ".git/config").read_text(), "ours\n", ".git")

    names = {".envrc": "echo x", "Makefile": "all:", ".github/workflows/ci.yml": "on: push", ".vscode/tasks.json": "{}", ".idea/x.xml": "x", "AGENTS.md": "x", ".gitattributes": "x",
             ".gitmodules": "x", "package.json": '{"scripts": {"postinstall": "x"}}', ".husky/pre-commit": "x", "sub/.git/hooks/post-checkout": "x", "GIT~1/config": "x",
             ".GIT/config": "x", ".git /config": "x", "x/.Git./config": "x", ".g\u200cit/config": "x", "MAKEFI~1": "x", "conftest.py": "x", "bare/HEAD": "x"}
    for name, text in names.items():
        p.w.write(lib.quote(name), text.encode())
    p.w.shell("ln -s /etc/passwd out; ln -s ../../x up; ln -s src in; ln -s .git/hooks hooked; echo s > suid; chmod 4755 suid; echo x > exec; chmod 755 exec; rm plain")
    before = p.tree()
    done = p.report("--ignored", status=1)
    same({r["path"] for r in done["refused"]}, {*names, "out", "up", "hooked", "suid", "exec"} - {"sub/.git/hooks/post-checkout"}, "refused")
    same({x["path"] for x in done["left_out"] if not x["path"].startswith(".git")}, {"sub/.git", "sub/.git/hooks", "sub/.git/hooks/post-checkout"}, "a git folder below")
    same((acts(done)["plain"], acts(done)["build/o"], p.tree()), ("delete", "create", before), "nothing was done")
    same(len(p.report("--allow-exec", ".*", "--allow-exec", "?*/*", status=1)["refused"]), 10, "some")
    p.report("--allow-exec", "*", "--allow-exec", ".git/*")
    same(oct((p.host / "suid").stat().st_mode & 0o7777), "0o755", "with a yes, without its setuid bit")
    same(os.readlink(p.host / "out"), "/etc/passwd", "a link that leads out")
    same((p.host / ".git/config").read_text(), "[core] fsmonitor = x\n", ".git, with a yes")
    p.is_clean()


def program(p, name, *words, stdin=None):
    """Another program of ours, in the place of the host; what it wrote."""
    link = lib.HOME / "docker"
    if not link.is_symlink():
        link.symlink_to(lib.cell.BIN / "caisson")
    done = subprocess.run([str(link if name == "docker" else lib.cell.BIN / name), *words], capture_output=True, timeout=100, cwd=p.host, stdin=stdin or subprocess.DEVNULL, check=False,
                          umask=0o022, **p.who, env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "XDG_STATE_HOME": str(p.state), "CAISSON_SOCKET": str(p.daemon.socket)})
    check(done.returncode == 0, f"{name} {words}: {done}")
    return done.stdout


MAKE_SPECIAL = "mkdir d; for f in d/new changed; do printf '#!/bin/sh\\nid\\n' > $f; chmod 6755 $f; done; chmod 7777 d"


@each("setuid, setgid and sticky bits never cross: apply with every yes, collect, cp, docker cp, archives")
def _(p):
    p.begin("echo old > changed; echo mine > kept; chmod 755 changed kept")
    p.on_host("chmod 4755 changed kept")
    p.w.shell(MAKE_SPECIAL + "; chmod 700 kept")
    box = p.c.ok("POST", "/v1/sandboxes", {"workspace": p.w.key})["id"]
    inside = p.c.ok("POST", f"/v1/sandboxes/{box}/exec", {"cmd": "stat -c %a d/new changed d", "wait": "20s"})["stdout"]
    same(inside.split(), ["6755", "6755", "7777"], "control: the workspace has the bits")
    report = p.apply("--allow-exec", "*")
    same(oct((p.host / "kept").stat().st_mode & 0o7777), "0o4755", "a file of the host's own bytes keeps its bits")
    (p.host / "kept").unlink()
    for folder in ("cp", "docker", "tar", "api"):
        (p.host / folder).mkdir()
        if p.who:
            os.chown(p.host / folder, p.daemon.uid, p.daemon.uid)
    program(p, "caisson", "run", "--allow-exec", "*", "--collect", "**", "--into", "collected", "--", "sh", "-c", MAKE_SPECIAL)
    for source, into in ((p.w.key, "cp"), (box, "cp/box")):
        program(p, "caisson", "cp", f"{source}:/work/d" if source == box else f"{source}:d", into)
        program(p, "caisson", "cp", f"{source}:/work/changed" if source == box else f"{source}:changed", "cp/" + source.replace("_", ""))
    name = box
    program(p, "docker", "cp", f"{name}:/work/d", "docker/d")
    program(p, "docker", "cp", f"{name}:/work/changed", "docker/changed")
    streams = [program(p, "docker", "cp", f"{name}:/work/{what}", "-") for what in ("d", "changed")]
    streams.append(p.c.get(f"/v1/sandboxes/{box}/archive?path=/work").body)
    for i, stream in enumerate(streams):
        with tarfile.open(fileobj=io.BytesIO(stream)) as archive:
            same([m.name for m in archive if m.mode & 0o7000], [], f"archive {i}")
            check(any(m.isreg() for m in archive), f"archive {i} has files")
    for one in p.c.ok("POST", "/v1/run", {"cmd": MAKE_SPECIAL, "collect": ["**"], "allow_exec": ["*"]})["collected"]:
        same(int(one["mode"], 8) & 0o7000, 0, f"collected by the API: {one['path']}")
    seen = {k: oct(v[1]) for k, v in p.tree().items() if v[1] is not None}
    check({b"d/new", b"changed", b"collected/d/new", b"collected/changed", b"cp/d/new", b"docker/d/new", b"docker/changed"} <= set(seen), f"{seen}")
    same({k: v for k, v in seen.items() if int(v, 8) & 0o7000}, {}, "on the host")
    check(b"setuid, setgid and sticky bits stay" in report.stderr, report.stderr)


def collected_records(p):
    return [json.loads(line) for line in p.c.get("/v1/events?kind=run.collected").body.splitlines()]


@each("run --collect: what executes later stays and is named, unless --allow-exec; what comes is on record")
def _(p):
    (p.host / "into").mkdir(mode=0o777)
    (p.host / "into").chmod(0o777)
    make = ("mkdir -p .vscode .github/workflows src; echo x | tee .envrc .vscode/tasks.json Makefile .github/workflows/ci.yml .new WARP.md >/dev/null; echo c > src/main.c; echo d > readme.md; "
            "echo '{\"name\": \"x\"}' > package.json; mkdir sub; echo '{\"scripts\": {\"test\": \"x\"}}' > sub/package.json; echo r > tool; chmod 755 tool; printf o > \"$(printf 'odd\\377')\"")
    asked = {".envrc", ".vscode/tasks.json", "Makefile", ".github/workflows/ci.yml", ".new", "WARP.md", "sub/package.json"}
    plain = {"src/main.c", "readme.md", "package.json", "tool", "odd\udcff"}
    before = collected_records(p)

    def collect(*words):
        answer = subprocess.run([lib.cell.BIN / "caisson", "run", "--collect", "**", *words, "--into", "into", "--", "sh", "-c", make], cwd=p.host, capture_output=True, check=False,
                                umask=0o022, env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "CAISSON_SOCKET": str(p.daemon.socket)}, **p.who)
        same(answer.returncode, 0, answer)
        return answer
    done = collect()
    got = {os.path.relpath(os.path.join(root, f), p.host / "into") for root, _, files in os.walk(p.host / "into") for f in files}
    same(got, plain, done.stderr)
    check(all(f"left out: {name}: ".encode() in done.stderr for name in asked) and b"not executable here: tool" in done.stderr, done.stderr)
    same(oct((p.host / "into/tool").stat().st_mode & 0o777), "0o644", "it comes without being executable")
    record = [e for e in collected_records(p) if e not in before]
    same(len(record), 1, record)
    data = record[0]["data"]
    same((data["files"], data["left_out"], {n["path"] for n in data["names"]} >= plain - {"odd\udcff"}), (5, len(asked), True), data)
    digest = hashlib.sha256()
    for name in data["names"]:
        path = base64.b64decode(name["path_base64"]) if "path_base64" in name else name["path"].encode()
        body = (p.host / "into" / os.fsdecode(path)).read_bytes()
        digest.update(f"{name['mode']} {len(body)} ".encode() + path + b"\0" + body)
    same((data["sha256"], data["bytes"]), (digest.hexdigest(), sum((p.host / "into" / n).stat().st_size for n in plain)), "the hash is of what came")
    check(record[0]["sandbox"].startswith("sb_") and record[0]["process"].startswith("px_") and record[0]["actor"].startswith("uid:"), record)
    done = collect("--allow-exec", "*")
    check(all((p.host / "into" / name).exists() for name in asked) and os.access(p.host / "into/tool", os.X_OK), done.stderr)
    answer = p.c.ok("POST", "/v1/run", {"cmd": make, "collect": ["**"], "allow_exec": [".e*"]})
    same({one["path"] for one in answer["collected"] if "base64" not in one}, asked - {".envrc"}, "by the API")
    check(all("executes_later" in one for one in answer["collected"] if "base64" not in one), answer)
    for bad in ("x", [""], [1], ["x"] * 65):
        same(p.c.post("/v1/run", {"cmd": "true", "collect": ["*"], "allow_exec": bad}).status, 400, bad)


@each("names of any bytes; a folder that became a link to elsewhere is a conflict and nothing is written through it")
def _(p):
    p.begin("mkdir -p sub/inner; echo 1 > sub/inner/f; echo 2 > sub/g")
    p.w.shell("""for n in "$(printf 'a\\nb')" -x "$(printf '\\377\\376')" "$(printf '\\033[31m')" '*' '\\x' ' ' "$(printf 'dir\\377')/x"; do mkdir -p "./$(dirname "./$n")"; echo x > "./$n"; done""")
    out = p.apply().stdout
    check(b"\x1b" not in out and b"\xff" not in out, f"{out}")
    check({b"a\nb", b"-x", b"\xff\xfe", b"\x1b[31m", b"*", b"\\x", b" ", b"dir\xff/x"} <= set(p.tree()), f"{p.tree()}")
    p.base = p.w.post("snapshots", {})["id"]
    elsewhere = HOST / f"elsewhere{counter}"
    elsewhere.mkdir(mode=0o777)
    elsewhere.chmod(0o777)
    p.w.shell("echo 3 > sub/inner/f; echo 4 > sub/inner/new; echo 5 > sub/h; rm sub/g")
    for trick in (f"mv sub was; ln -s {elsewhere} sub", f"rm sub; mv was sub; mv sub/inner was; ln -s {elsewhere} sub/inner", "rm sub/inner; ln -s ../was sub/inner"):
        p.on_host(trick)
        done = p.report(status=1)
        check({"sub/inner/f", "sub/inner/new"} <= {c["path"] for c in done["conflicts"]}, f"{trick}: {done}")
        same(os.listdir(elsewhere), [], trick)
    p.on_host("rm sub/inner; mv was sub/inner")
    p.report()
    same((p.host / "sub/inner/f").read_text(), "3\n", "and then it works")


@each("again and again: what an earlier apply wrote is no change of the folder's, also when the workspace takes it back")
def _(p):
    p.begin("seq 9 > a; echo r > reverted; echo g > gone; echo keep > keep")
    p.w.shell("sed -i s/5/five/ a; echo changed > reverted; rm gone; echo n > new; echo x > dropped")
    p.report()
    p.w.shell("sed -i s/five/FIVE/ a; echo r > reverted; echo back > gone; echo m > new; rm dropped")
    p.on_host("echo mine >> a; echo mine > keep")
    done = p.report()
    same(acts(done), {"a": "merge", "reverted": "write", "gone": "create", "new": "write", "dropped": "delete"}, "acts")
    same({n: (p.host / n).read_text() for n in ("a", "reverted", "gone", "new", "keep")},
         {"a": "1\n2\n3\n4\nFIVE\n6\n7\n8\n9\nmine\n", "reverted": "r\n", "gone": "back\n", "new": "m\n", "keep": "mine\n"}, "files")
    p.on_host("seq 9 > a; echo r > reverted; echo g > gone; rm new")  # as it was before all of it
    same(acts(p.report()), {"a": "write", "gone": "write", "new": "create"}, "from the beginning")
    p.on_host("echo mine > new")
    p.w.shell("echo o > new")
    same([c["path"] for c in p.report(status=1)["conflicts"]], ["new"], "a change of the folder's")
    p.w.post("undo")
    same(p.w.read("new"), b"m\n", "the last command is undone, not the snapshot of an apply")


@each("a folder that another file system is mounted over; a journal of somebody else; a folder that cannot be written")
def _(p):
    p.begin("mkdir -p sub ro; echo 1 > sub/f; echo 1 > ro/f; echo 1 > top")
    p.w.shell("echo 2 > sub/f; echo 2 > top")
    subprocess.run(["mount", "-t", "tmpfs", "none", p.host / "sub"], check=True)
    try:
        (p.host / "sub/f").write_text("1\n")
        done = p.report(status=1)
        same([c["path"] for c in done["conflicts"]], ["sub/f"], "a mount")
    finally:
        subprocess.run(["umount", p.host / "sub"], check=True)
    # A journal that comes with a repository is no journal of the caller's.
    forged = p.host / ".caisson-apply.0000000000000000"
    forged.mkdir(mode=0o700)
    (forged / "n0").write_text("evil")
    (forged / "journal").write_text("caisson-apply 1 ready .caisson-apply.0000000000000000\nremove 0 0 0 0 0 0 dG9w\n")
    p.report()
    same(((p.host / "top").read_text(), sorted(os.listdir(forged))), ("2\n", ["journal", "n0"]), "it is left alone")
    shutil.rmtree(forged)
    p.w.shell("mkdir .caisson-apply.x; echo x > .caisson-apply.x/y")
    check(b"cannot be applied" in p.apply(status=(1, 125)).stderr, "a name of ours")
    p.w.shell("rm -r .caisson-apply.x; echo 3 > ro/f; echo 3 > sub/f; echo 3 > top")
    subprocess.run(["chattr", "+i", p.host / "ro"], check=True)  # nothing in it can be renamed, whoever asks
    try:
        before = p.tree()
        check(b"nothing was applied" in p.apply(status=(1, 125)).stderr, "a step that fails")
        same(p.tree(), before, "all or nothing")
        p.is_clean()
    finally:
        subprocess.run(["chattr", "-i", p.host / "ro"], check=True)
    p.report()
    same((p.host / "ro/f").read_text(), "3\n", "and then it works")


@contextlib.contextmanager
def casefold():
    """A folder that finds names without regard to case and to characters that nobody sees."""
    image, top = pathlib.Path("/run/casefold.img"), pathlib.Path("/run/casefold")  # beside the disk of the daemons, not on it
    top.mkdir()
    try:
        with open(image, "wb") as f:
            f.truncate(16 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8", image], check=True)
        if subprocess.run(["mount", "-o", "loop", image, top], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise lib.Skip("this kernel has no casefold (CONFIG_UNICODE)")
        try:
            (top / "h").mkdir()
            subprocess.run(["chattr", "+F", top / "h"], check=True)
            yield top / "h"
        finally:
            subprocess.run(["umount", "-d", top], check=True)
    finally:
        image.unlink()
        top.rmdir()


@test("on a folder that folds case, no other spelling of a name that executes later comes without a yes")
def _(api):
    with casefold() as folder:
        p = Place(api.daemon, api.client)
        p.host = folder
        p.begin("mkdir .claude; echo mine > .claude/settings.json; echo all: > Makefile")
        check((folder / ".CL\u2060aude/settings.json").exists() and (folder / "make\ufb01le").exists(), "control: the file system takes them for the same")
        names = (".cl\u2060aude/settings.local.json", ".clau\u00adde/agents.md", "make\ufb01le", "\ufeffmakefile", ".\u200bENVRC", ".mcp.j\u017fon")
        for name in names:
            p.w.write(lib.quote(name), b"evil")
        before = p.tree()
        report = p.report(status=1)
        asked = {r["path"] for r in report["refused"]} | {r["path"] for r in report["conflicts"]}
        same((set(names) - asked, report["applied"], p.tree()), (set(), False, before), report)


def on_terminal(p, answers, *words):
    """The command with a terminal, and what it is told line by line: its status, and all that it wrote."""
    pid, fd = pty.fork()
    if pid == 0:
        env = {"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(p.state), "CAISSON_SOCKET": str(p.daemon.socket), "TERM": "dumb"}
        os.execve(lib.cell.BIN / "caisson", ["caisson", "apply", p.w.key, "--to", str(p.host), "--from", p.base, *words], env)
    os.write(fd, "".join(a + "\n" for a in answers).encode())
    out = b""
    with contextlib.suppress(OSError):  # EIO: the other end is closed
        while data := os.read(fd, 4096):
            out += data
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


@test("on a terminal: one question for all that execute later, by reason, or one for each; no leaves them out, anything else ends it")
def _(api):
    p = Place(api.daemon, api.client)
    p.begin("echo 1 > a")
    p.w.shell("echo 2 > a; echo x > .envrc; echo y > Makefile; printf z > \"$(printf '\\033[2Jz.mk')\"")
    before = p.tree()
    for answers in (["q"], ["e", "y", "q"], ["e", "y", "y", ""], ["e", "y", "n", "y", "n"], ["y", "n"], [""]):
        status, out = on_terminal(p, answers)
        check(status == 1 and b"nothing was applied" in out, f"{answers}: {status} {out}")
        same(p.tree(), before, f"{answers}")
    check(b"\x1b" not in out and b"\\x1b[2Jz.mk" in out, f"{out}")
    check(out.count(b"Take these 3?") == 1 and out.count(b"a build executes it:") == 1, f"{out}")
    status, out = on_terminal(p, ["n", "y"])
    same((status, sorted(p.tree())), (0, [b"a"]), f"{out}")
    status, out = on_terminal(p, ["e", "n", "y", "n", "y"])
    same((status, sorted(p.tree())), (0, [b".envrc", b"a"]), f"{out}")
    status, out = on_terminal(p, ["y"], "--yes")
    same((status, sorted(p.tree())), (0, sorted([b".envrc", b"Makefile", b"\x1b[2Jz.mk", b"a"])), f"{out}")
    p.is_clean()


KILL_BEGIN = "mkdir -p d/e rm; echo 1 > d/w; echo 2 > d/e/m; echo 3 > rm/x; echo 4 > mode; ln -s a link; echo 5 > tofolder"
KILL_CHANGE = "echo 9 > d/w; echo new > d/e/new; rm -r rm; chmod +x mode; ln -sf b link; mkdir -p fresh/er; echo 7 > fresh/er/f; rm tofolder; mkdir tofolder; echo 8 > tofolder/y"


LOOKS = {"openat2", "fstatat", "getdents64", "getdents", "readlinkat", "read", "fsync", "syncfs", "fcntl"}  # nothing is other after them


def is_worth(calls, n, first, variable):
    """Who is killed before a look leaves what he leaves when he is killed after the call before it."""
    return n % 40 == 1 or n >= first and (calls[n - 1] not in LOOKS or n == len(calls) or (variable == "CAISSON_FAIL_AT" and n % 5 == 0))


def kills(p, variable, statuses):
    """Every call of ours to the kernel is the last one, or fails: old or new, then it goes on."""
    p.begin(KILL_BEGIN)
    p.w.shell(KILL_CHANGE)
    words = ("--at", p.w.post("snapshots", {})["id"], "--allow-exec", "mode")
    clean, journals = HOST / f"clean{counter}", p.state / "caisson/apply"
    subprocess.run(["cp", "-a", p.host, clean], check=True)
    old = p.tree()
    p.apply(*words, program="caisson-test", env={"CAISSON_TRACE": str(p.state / "calls")})
    new, calls = p.tree(), [line.split()[2] for line in (p.state / "calls").read_text().splitlines()]
    first = calls.index("fsync") - 4  # of the first journal; before it nothing is written
    check(new != old and len(calls) - first > 60, f"{calls}")
    is_full = os.environ.get("FULL") == "1"
    states = {"old": 0, "new": 0, "between": 0}
    moments = [n for n in range(1, len(calls) + 1) if is_full or is_worth(calls, n, first, variable)]
    for n in moments:
        subprocess.run(["rm", "-rf", p.host, *journals.glob("last.*")], check=True)
        subprocess.run(["cp", "-a", clean, p.host], check=True)
        done = p.apply(*words, program="caisson-test", env={variable: str(n)}, status=statuses)
        now = {k: v for k, v in p.tree().items() if not k.startswith(b".caisson-apply.")}
        states["old" if now == old else "new" if now == new else "between"] += 1
        if variable == "CAISSON_FAIL_AT":
            check(now in (old, new) and (now == new or done.returncode != 0), lambda n=n, done=done: f"{calls[n - 1]} {n} fails: a third state: {p.tree()} {done}")
        settled = p.apply("--at", p.base)  # without any change: it only brings back what was begun, or finds it done
        now = p.tree()
        check(now in (old, new), lambda n=n, now=now, settled=settled: f"{variable} {calls[n - 1]} {n}: a third state: {now} {settled}")
        p.is_clean()
        if n % 10 == 0:
            p.apply(*words)
            same(p.tree(), new, f"{variable}={n}: and it goes on")
    print(f"| apply, {variable} at {len(moments)} of {len(calls)} calls: {states}")
    shutil.rmtree(clean)
    return states


@test("kill -9 at every step of an apply: the next one finds the old state or the new one, never a third")
def _(api):
    states = kills(Place(api.daemon, api.client), "CAISSON_KILL_AT", -9)
    check(min(states.values()) > 0, f"{states}")


@test("every call of an apply to the kernel fails once: nothing is half applied")
def _(api):
    kills(Place(api.daemon, api.client), "CAISSON_FAIL_AT", (0, 1, 125))


def prepare():
    finish_place = place.prepare()

    def finish():
        for d in users:
            d.stop()
        finish_place()
    return finish


# ---- somebody else says yes ------------------------------------------------------------------

def asking(p, *words):
    """An apply that waits; with what it says."""
    command = [str(lib.cell.BIN / "caisson"), "apply", p.w.key, "--to", str(p.host), "--from", p.base, "--ask", *words]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", **p.who,
                            env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "XDG_STATE_HOME": str(p.state), "CAISSON_SOCKET": str(p.daemon.socket)})


def question(p, n=1):
    def look():
        found = p.c.ok("GET", "/v1/approvals?state=pending")["approvals"]
        return found if len(found) == n else None
    return lib.wait_until(look, 20, "a question")[0] if n else lib.wait_until(lambda: look() is not None, 20, "no question")


def decide(p, a, decision, **more):
    same(p.c.post(f"/v1/approvals/{a['id']}", {"decision": decision, **more}).status, 200, decision)


@each("--ask: the queue decides about what executes later, by name and by the hash of it all")
def _(p):
    p.begin("echo a > a; echo all: > Makefile")
    p.w.shell("echo b > a; echo all:evil > Makefile; printf '#!/bin/sh\\n' > run; chmod 755 run")
    before = p.tree()
    done = asking(p)
    a = question(p)
    files = {f["path"]: f["why"] for f in a["detail"]["files"]}
    same((a["kind"], a["workspace"], set(files), a["detail"]["to"]), ("apply", p.w.made["id"], {"Makefile", "run"}, str(p.host)), a)
    tree_hash = a["detail"]["tree"]
    check(tree_hash in a["what"] and "a build executes it: Makefile; it becomes executable: run" in a["what"], a["what"])
    same(p.tree(), before, "nothing is done before")
    decide(p, a, "deny", note="no")
    same(done.wait(100), 1, "denied")
    check(a["id"] in (text := done.stderr.read()) and "denied" in text, text)
    same(p.tree(), before, "nothing was done")
    # For as long as it stays what it was: another byte is another question.
    done = asking(p, "--dry-run")
    same(done.wait(100), 1, "a dry run asks nobody")
    done = asking(p)
    a = question(p)
    same(a["detail"]["tree"], tree_hash, "the same change")
    decide(p, a, "allow", scope="workspace")
    same(done.wait(100), 0, "allowed")
    same((p.host / "Makefile").read_text(), "all:evil\n", "it is there")
    p.is_clean()
    p.on_host("echo all: > Makefile; echo a > a; rm run")
    shutil.rmtree(p.state / "caisson")
    p.apply("--ask")  # the same tree: answered by what stands
    same((p.host / "Makefile").read_text(), "all:evil\n", "again")
    p.on_host("echo all: > Makefile; echo a > a; rm run")
    shutil.rmtree(p.state / "caisson")
    p.w.shell("echo all:worse > Makefile")
    done = asking(p)
    a = question(p)
    check(a["detail"]["tree"] != tree_hash, "a change afterwards is not covered")
    decide(p, a, "deny")
    same(done.wait(100), 1, "denied")
    same((p.host / "Makefile").read_text(), "all:\n", "as it was")


@each("--ask: new names with a dot in front and settings of tools, however many, are one question, by reason")
def _(p):
    p.begin("echo 1 > .mine; mkdir .tools; echo 1 > .tools/x; echo 1 > plain")
    p.w.shell("echo 2 > .mine; echo 2 > .tools/x; echo 2 > plain; mkdir src docs; echo c > src/main.c; echo d > docs/x.md")
    same(set(acts(p.report())), {".mine", ".tools/x", "plain", "src", "src/main.c", "docs", "docs/x.md"}, "control: what is there already, and ordinary names, ask nobody")
    p.base = p.w.post("snapshots", {})["id"]
    p.w.shell("for i in $(seq 100); do mkdir -p new/$i; echo x > new/$i/.tool; echo x > new/$i/tool.config.js; done; echo x > .tools/y; echo x > WARP.md")
    done = asking(p)
    a = question(p)
    by_reason = {}
    for f in a["detail"]["files"]:
        by_reason.setdefault(f["why"], []).append(f["path"])
    same(sorted(map(len, by_reason.values())), [1, 100, 101], by_reason.keys())
    check(all(a["what"].count(why) == 1 for why in list(by_reason)[:2]), a["what"])
    shown = subprocess.run(["script", "-qec", f"{lib.cell.BIN / 'caisson'} approve", "/dev/null"], input=b"q\n", capture_output=True, check=False,
                           **p.who, env={"PATH": "/usr/bin:/bin", "TERM": "dumb", "HOME": "/nowhere", "CAISSON_SOCKET": str(p.daemon.socket)}).stdout.decode()
    check(all(f["path"] in shown for f in a["detail"]["files"]) and all(shown.count(f"because   {why}") == 1 for why in by_reason), shown[-3000:])
    decide(p, a, "allow")
    same(done.wait(100), 0, "allowed")
    check((p.host / "new/100/.tool").exists() and (p.host / "WARP.md").exists(), "all of them")


@each("--ask: nobody answers, or the caller is killed: nothing is done, and nobody waits")
def _(p):
    p.begin("echo all: > Makefile")
    p.w.shell("echo all:evil > Makefile")
    before = p.tree()
    done = asking(p, "--timeout", "1s")
    same(done.wait(100), 1, "late")
    check("expired" in (text := done.stderr.read()), text)
    done = asking(p)
    a = question(p)
    done.kill()
    done.wait()
    same(p.c.ok("GET", f"/v1/approvals/{a['id']}?wait=40s")["state"], "withdrawn", "killed")
    same(p.tree(), before, "nothing was done")
    for bad in ({"to": "x"}, {"tree": "abc"}, {"files": []}, {"files": [{"path": "x"}]}, {"more": 1}):
        body = {"to": "/x", "tree": "0" * 64, "files": [{"path": "x", "why": "y"}], **bad}
        same(p.c.post(f"/v1/workspaces/{p.w.key}/ask", body).status, 400, bad)


@test("--ask: the daemon is killed: nothing is done, and the next one has the question still", own=True)
def _(_api):
    d = Daemon("asked").start()
    p = Place(d, d.client())
    p.begin("echo all: > Makefile")
    p.w.shell("echo all:evil > Makefile")
    words = ("--at", p.w.post("snapshots", {})["id"])
    before = p.tree()
    done = asking(p, *words)
    a = question(p)
    p.c.close()
    old = d.pid
    os.kill(old, 9)
    check(done.wait(100) != 0, "its daemon is gone")
    lib.wait_until(lambda: d.pid not in (None, old), 15, "another daemon")
    d.wait_ready()
    same(p.tree(), before, "nothing was done")
    done = asking(p, *words)
    lib.wait_until(lambda: a["id"] in done.stderr.readline(), 10, "the same question")
    decide(p, a, "allow")
    same(done.wait(100), 0, "allowed")
    same((p.host / "Makefile").read_text(), "all:evil\n", "it is there")
    p.c.remove_all()
    p.c.delete(f"/v1/workspaces/{p.w.key}?force=1")
    p.c.close()
    d.wait_clean()
    d.stop()


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=prepare))
