#!/usr/bin/env python3
"""The attack corpus of git: rows GIT, and what a fork of a repository can do to it (SNP-07). TAP, then a table.

    tests/ws/attack_git.py          all rows (needs root)
    tests/ws/attack_git.py GIT-01   those with the word in their title

Each command that git can be made to run by what lies in a repository is first seen to run, by plain git in a plain
folder: a mark of its own per key. Then the same lies in a workspace, and everything we do with workspaces is done.
Every execution of git below our launcher is looked at by the kernel's leave (fanotify): none is on the host.
"""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import select
import struct
import subprocess
import sys
import time

import git_place as g
import lib
import place
import rows
from git_work import Work
from lib import check, same, wait_until
from rows import row

lib.TESTS.clear()  # those of git_work.py run there
MARKS = pathlib.Path("/run/marks")
TOKEN = "caisson-canary-token-5d1e"
GIT = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def mark(key):
    return key.replace("*", "_").replace(":", "_")


def payload(key):
    """Leaves a mark on the host, or in the workspace."""
    return f"sh -c 'touch /run/marks/{mark(key)} /work/.marks/{mark(key)} 2>/dev/null; exit 1' x"


# ---- who executes git ------------------------------------------------------------------------

FAN_CLASS_CONTENT, FAN_CLOEXEC, FAN_OPEN_EXEC_PERM, FAN_MARK_ADD, AT_FDCWD = 4, 1, 0x40000, 1, -100


class Watch:
    """Every execution of git in this cell, held until it has been looked at. In a process of its own: ours may be the one that waits."""

    def __init__(self):
        reader, writer = os.pipe()
        stop, self.stopper = os.pipe()
        libc = ctypes.CDLL(None, use_errno=True)
        fan = libc.fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, os.O_RDONLY)
        check(fan >= 0, f"fanotify_init: {os.strerror(ctypes.get_errno())}")
        for path in {os.path.realpath(p) for p in ("/usr/bin/git", "/usr/lib/git-core/git")}:
            done = libc.fanotify_mark(fan, FAN_MARK_ADD, ctypes.c_uint64(FAN_OPEN_EXEC_PERM), AT_FDCWD, path.encode())
            check(done == 0, f"fanotify_mark {path}: {os.strerror(ctypes.get_errno())}")
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.stopper)
            self.serve(fan, stop, writer)
            os._exit(0)
        for fd in (fan, stop, writer):
            os.close(fd)
        self.reader = reader

    @staticmethod
    def look(pid):
        """Whose it is, and where it is."""
        names, at = [], pid
        while at > 1 and (stat := lib.stat_of(at)):
            names.append(stat[0])
            at = stat[1]
        is_out = {n: os.readlink(f"/proc/{pid}/ns/{n}") == os.readlink(f"/proc/self/ns/{n}") for n in ("mnt", "user", "pid")}
        return {"ours": any(n.startswith("caisson") for n in names), "outside": [n for n, x in is_out.items() if x], "by": names[:4]}

    def serve(self, fan, stop, writer):
        seen = []
        while True:
            ready, _, _ = select.select([fan, stop], [], [])
            if fan not in ready:
                break
            data = os.read(fan, 4096)
            while len(data) >= 24:
                length, _, _, _, _, fd, pid = struct.unpack("=IBBHQii", data[:24])
                try:
                    seen.append(self.look(pid) if pid > 0 else None)
                except OSError as e:
                    seen.append({"ours": True, "outside": [str(e)], "by": []})
                os.write(fan, struct.pack("=iI", fd, 1))  # FAN_ALLOW
                os.close(fd)
                data = data[length:]
        os.write(writer, json.dumps([s for s in seen if s]).encode())

    def end(self):
        """What was seen."""
        os.close(self.stopper)
        text = b""
        while piece := os.read(self.reader, 1 << 16):
            text += piece
        os.close(self.reader)
        os.waitpid(self.pid, 0)
        return json.loads(text)


# ---- what plain git executes -----------------------------------------------------------------

COMMIT, DIFF, STATUS = "echo x >>a.txt; git add -A; git commit -qm x", "echo x >>a.txt; git diff", "git status"
ATTRIBUTES = "echo '* diff=evil filter=evil merge=evil' >.git/info/attributes; "
SIGN, PLAIN = ("commit", "gpgSign", "true"), ('remote "origin"', "url", "/run/folders/plain")
# key -> (more settings, what a host does that does not expect it)
KEYS = {
    "core.fsmonitor": ((), STATUS), "core.pager": ((), "script -qec 'git -p log' /dev/null"), "core.editor": ((), "git commit --allow-empty"),
    "core.sshCommand": ((), "git fetch ssh://git.test/x"), "core.gitProxy": ((), "git fetch git://git.test/x"),
    "core.askPass": ((), "printf 'protocol=https\\nhost=git.test\\n\\n' | git credential fill"),
    "credential.helper": ((), "printf 'protocol=https\\nhost=git.test\\n\\n' | git credential fill"),
    "sequence.editor": ((), "git commit -q --allow-empty -m y; git rebase -i HEAD~1"),
    "diff.external": ((), DIFF), "diff.evil.command": ((), ATTRIBUTES + DIFF), "diff.evil.textconv": ((), ATTRIBUTES + DIFF),
    "filter.evil.clean": ((), ATTRIBUTES + COMMIT), "filter.evil.process": ((), ATTRIBUTES + COMMIT),
    "filter.evil.smudge": ((), ATTRIBUTES + "rm a.txt; git checkout a.txt"),
    "merge.evil.driver": ((), ATTRIBUTES + "git checkout -qb o; echo 1 >a.txt; git commit -qam 1; git checkout -q main; echo 2 >a.txt; git commit -qam 2; git merge o"),
    "gpg.program": ((SIGN,), COMMIT), "gpg.ssh.program": ((SIGN, ("gpg", "format", "ssh"), ("user", "signingKey", "key::x")), COMMIT),
    "gpg.x509.program": ((SIGN, ("gpg", "format", "x509")), COMMIT), "alias.st": ((), "git st"),
    "remote.origin.uploadpack": ((PLAIN,), "git fetch origin"),
    "remote.origin.receivepack": ((PLAIN,), "git push origin HEAD:refs/heads/x"),
    "trailer.evil.command": ((('trailer "evil"', "key", "E"),), "git interpret-trailers --trailer evil </dev/null"),
    "difftool.evil.cmd": ((), "echo x >>a.txt; git difftool -y -t evil"), "core.hooksPath": ((), COMMIT),
    "include.path": ((), STATUS), "includeIf.gitdir:**.path": ((), STATUS),
    "url.ext.insteadOf": ((('protocol "ext"', "allow", "always"), ('remote "origin"', "url", "https://git.test/x")), "git fetch origin"),
    "interactive.diffFilter": ((), "echo x >>a.txt; echo q | script -qec 'git -c color.ui=always add -p' /dev/null"),
    "core.alternateRefsCommand": ((PLAIN,), "echo /run/folders/plain/.git/objects >.git/objects/info/alternates; git fetch origin"),
}
HOOKS = {
    "pre-commit": COMMIT, "prepare-commit-msg": COMMIT, "commit-msg": COMMIT, "post-commit": COMMIT, "post-index-change": COMMIT, "reference-transaction": COMMIT,
    "post-checkout": "git checkout -q -b x", "pre-push": "git push /run/folders/plain HEAD:refs/heads/y",
    "pre-merge-commit": "git checkout -qb o; git commit -q --allow-empty -m 1; git checkout -q main; git merge --no-ff o",
    "post-merge": "git checkout -qb o; git commit -q --allow-empty -m 1; git checkout -q main; git merge o",
    "pre-rebase": "git commit -q --allow-empty -m y; git rebase --force-rebase HEAD~1", "post-rewrite": "git commit -q --amend -m z",
    "applypatch-msg": "git format-patch -1 --stdout --root >../p; git am <../p; rm ../p",
}
# git executes these as they are, without a shell.
PROGRAMS = ("core.gitProxy", "core.askPass", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "url.ext.insteadOf")


def line_of(key, folder):
    """A setting that runs its payload; `folder`: the git folder as it will be known."""
    section, _, name = key.rpartition(".")
    head, _, sub = section.partition(".")
    value = payload(key)
    if head == "alias" or key == "credential.helper":
        value = "!" + value
    if key == "core.hooksPath":
        value = f"{folder}/evil-hooks"
    if name == "path":
        value = f"{folder}/more-{head}"
    if key in PROGRAMS:
        value = f"{folder}/evil-bin/{key}"
    if key == "url.ext.insteadOf":
        return f'[url "ext::{value} "]\n\tinsteadOf = https://\n'
    value = value.replace('"', '\\"')
    return f'[{head}{f" {chr(34)}{sub}{chr(34)}" if sub else ""}]\n\t{name} = "{value}"\n'


def files_of(key):
    """What the setting leads to: name in the git folder -> text."""
    if key in PROGRAMS:
        return {f"evil-bin/{key}": f"#!/bin/sh\n{payload(key)}\n"}
    if key == "core.hooksPath":
        return {"evil-hooks/pre-commit": f"#!/bin/sh\n{payload(key)}\n"}
    if key.endswith(".path"):
        return {f"more-{key.split('.')[0]}": f'[core]\n\tfsmonitor = "{payload(key)}"\n'}
    return {}


def place_files(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def bare_run(folder, script):
    env = {**g.ENV, "TERM": "xterm", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
           "GIT_CONFIG_KEY_1": "user.name", "GIT_CONFIG_VALUE_1": "t", "GIT_CONFIG_KEY_2": "user.email", "GIT_CONFIG_VALUE_2": "t@example.org"}
    with subprocess.Popen(["sh", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as p:
        try:
            p.wait(100)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)


def fire_one(template, key, more, script):
    """Has plain git executed it? In a copy of the repository."""
    folder = g.FOLDERS / f"bare-{mark(key)}"
    subprocess.run(["cp", "-a", template, folder], check=True)
    config = "".join(f"[{section}]\n\t{name} = {value}\n" for section, name, value in more)
    if key in HOOKS:
        place_files(folder / ".git/hooks", {key: f"#!/bin/sh\n{payload(key)}\n"})
    else:
        config += line_of(key, folder / ".git")
        place_files(folder / ".git", files_of(key))
    with open(folder / ".git/config", "a", encoding="utf-8") as f:
        f.write(config)
    bare_run(folder, script)
    subprocess.run(["rm", "-rf", folder], check=True)
    return (MARKS / mark(key)).exists()


def fire_bare(template):
    """Those that plain git does not execute."""
    asks = {**KEYS, **{hook: ((), script) for hook, script in HOOKS.items()}}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        fired = pool.map(lambda key: fire_one(template, key, *asks[key]), asks)
        missing = [key for key, is_fired in zip(asks, fired) if not is_fired]
    for left in pathlib.Path("/tmp").glob(".git_signing_key*"):
        left.unlink()
    return missing


def arm_inside(w):
    """All of them, in one workspace."""
    config = "".join(line_of(key, pathlib.Path("/work/.git")) for key in KEYS)
    config += "[commit]\n\tgpgSign = true\n[protocol]\n\tallow = always\n[trailer \"evil\"]\n\tkey = E\n[core]\n\tattributesFile = /work/.gitattributes\n"
    w.put("conf", config)
    for key in KEYS:
        for name, text in files_of(key).items():
            w.put(f"put/{name}", text)
    for hook in HOOKS:
        w.put(f"put/hooks/{hook}", f"#!/bin/sh\n{payload(hook)}\n")
    w.run("cat conf >>.git/config; mkdir -p .git/hooks .git/info .marks; cp -r put/* .git/; chmod -R +x .git/hooks .git/evil-hooks .git/evil-bin; rm -rf conf put; "
          "echo '* diff=evil filter=evil merge=evil' >.git/info/attributes; cp .git/info/attributes .gitattributes; echo .marks >>.git/info/exclude; "
          "echo x >>a.txt; rm -f .marks/*; mkdir nested")
    w.run("cd nested; git -c core.fsmonitor= -c core.hooksPath= init -q .; cp ../.git/config .git/config; cp -r ../.git/hooks .git/; rm -f ../.marks/*")


def do_all(client, w, fork):
    """Everything that we do with git in a workspace."""
    w.commit("armed")
    check(b"a.txt" in w.patch(f"&base={w.made['base_commit']}") or True, "patch")
    w.put("b.txt", "new\n")
    client.ok("GET", f"{w.path}/changes")
    client.ok("GET", f"{w.path}/changes?format=stat")
    w.patch()
    same(w.post("merge", {"from": fork.id}).status, 200, "merge")
    w.post("commits", {"message": "merged", "allow_empty": True})
    for kind in ("bundle", "patch"):
        same(client.get(f"{w.path}/export?format={kind}").status, 200, kind)
    same(w.post("push").status, 200, "push")
    client.ok("POST", f"/v1/repos/{w.made['repo']}/refresh", {})
    client.ok("POST", f"{w.path}/undo", {})
    client.ok("POST", f"{w.path}/redo", {})


@row("GIT-01", f"{len(KEYS)} settings, {len(HOOKS)} hooks, attributes, filters (GIT-02, GIT-04): plain git runs each; we run none, nowhere")
def _(api, arms):
    url = g.serve(g.make("plain"), "keys.git")
    missing = fire_bare(g.FOLDERS / "plain")
    arms.control(not missing, f"plain git does not run {missing}")
    for role in ("root",):  # git_work.py has both
        client = place.client_of(api, role)
        w = Work(client, url, branch=f"armed-{role}")
        fork = w.fork()
        fork.put("y.txt", "y\n")
        arm_inside(w)
        for mark in MARKS.iterdir():
            mark.unlink()
        watch = Watch()
        try:
            do_all(client, w, fork)
            same(g.git(g.FOLDERS / "plain", "rev-parse", "--is-inside-work-tree"), "true", "a git of the host's, for the watch")
        finally:
            seen = watch.end()
        same([m.name for m in MARKS.iterdir()], [], "marks on the host, OPEN")
        same(w.run("ls -A .marks"), "", "marks of a service, OPEN")
        ours = [s for s in seen if s["ours"]]
        check(len(ours) > 10 and [s for s in seen if not s["ours"] and s["outside"]], f"the watch saw too little: {seen[:5]}")
        outside = [s for s in ours if s["outside"]]
        check(not outside, f"git was executed outside of walls, OPEN: {outside[:3]}")
        # Without our way to call git the second wall is left: it runs, and stays inside.
        w.run("git -c user.name=x status >/dev/null 2>&1; git commit -qam y >/dev/null 2>&1; git fetch origin >/dev/null 2>&1; true")
        arms.off(w.run("ls -A .marks | wc -l") != "0" and not list(MARKS.iterdir()), f"our-config({role}, inside)")
        same([m.name for m in MARKS.iterdir()], [], "marks on the host by git inside, OPEN")
        arms.note(f"{role}: {len(ours)} executions of git by us, none on the host")
        fork.remove(), w.remove()


# ---- secrets ---------------------------------------------------------------------------------

def scan(folder, token):
    """Files below with the token in them."""
    found = subprocess.run(["grep", "-rlaF", token, folder], capture_output=True, text=True, check=False)
    return found.stdout.split()


FIND = r"""
import glob, os
token = ('TOKEN').encode()
def look(path):
    try:
        with open(path, "rb") as f:
            if token in f.read(1 << 24):
                print(path)
    except OSError:
        pass
for top in ("/work", "/run", "/etc", "/home", "/root", "/tmp", "/var"):
    for at, _, files in os.walk(top):
        for name in files:
            look(os.path.join(at, name))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    look(path)
"""


@row("GIT-07", "a token in the folder that is mirrored, in the host's settings and environment: found nowhere inside, nor in the store", own=True)
def _(_api, arms):
    source = g.make("tokens")
    url = g.serve(source, "tokens.git")
    g.git(source, "remote", "add", "origin", f"https://user:{TOKEN}@git.test/tokens.git")
    (source / ".git/FETCH_HEAD").write_text(f"{'0' * 40}\t\tbranch 'main' of https://user:{TOKEN}@git.test/tokens\n")
    (source / ".git/logs/HEAD").write_text(f"{'0' * 40} {'1' * 40} t <t@example.org> 1 +0000\tclone: from https://user:{TOKEN}@git.test/tokens\n")
    copy = g.FOLDERS / "tokens-plain"
    subprocess.run(["cp", "-a", source, copy], check=True)
    arms.control(scan(copy, TOKEN) != [], "a copy of the folder has it")
    home = pathlib.Path("/run/home")
    home.mkdir()
    (home / ".gitconfig").write_text(f"[http]\n\textraHeader = X-Token: {TOKEN}\n[credential]\n\thelper = store\n")
    (home / ".git-credentials").write_text(f"https://user:{TOKEN}@git.test\n")
    (home / ".netrc").write_text(f"machine git.test login user password {TOKEN}\n")
    daemon = lib.Daemon("tokens", options=place.OPTIONS)
    spawn = subprocess.Popen
    given = []

    def with_token(*words, env=None, **options):  # the environment of an operator who was careless
        given.append(words[0])
        return spawn(*words, env={**(env or {}), "GIT_TOKEN": TOKEN, "GITHUB_TOKEN": TOKEN, "HOME": str(home), "GIT_ASKPASS": f"/bin/echo {TOKEN}",
                                  "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": f"X-Token: {TOKEN}"}, **options)
    subprocess.Popen = with_token
    try:
        daemon.start()
    finally:
        subprocess.Popen = spawn
    arms.control(given != [], "what started the daemon has it")
    check(TOKEN not in pathlib.Path(f"/proc/{daemon.process.pid}/environ").read_text(), "the launcher has it, OPEN")
    client = daemon.client()
    g.refused(client.put("/v1/repos/bad", {"url": f"https://user:{TOKEN}@git.test/tokens.git"}), "invalid")
    g.caisson(daemon, "repo", "add", source, "folder")
    client.ok("PUT", "/v1/repos/served", {"url": url})
    works = [Work(client, "folder")]
    for w in works:
        w.run("echo x >x")
        w.commit("x")
        w.patch()
        w.put("find.py", FIND.replace("TOKEN", f"{TOKEN[:9]}' + '{TOKEN[9:]}"))  # else it would find itself
        same(w.run("python3 find.py"), "", "inside, OPEN")
        check(TOKEN not in w.run("env; git config -l --show-origin; git remote -v; cat .git/config"), "inside, by git, OPEN")
    client.ok("POST", "/v1/repos/served/refresh", {})
    client.close()
    same(scan(daemon.state, TOKEN), [], "in the store, OPEN")
    same([p for p in (daemon.log,) if TOKEN in p.read_text(errors="replace")], [], "in the log, OPEN")
    client = daemon.client()
    for w in works:
        w.client = client
        w.remove()
    g.clear(client)
    daemon.wait_clean()
    daemon.stop()
    g.end_vaults()
    subprocess.run(["rm", "-rf", home], check=True)


# ---- size ------------------------------------------------------------------------------------

def bomb(name, leaf_bytes, width, depth):
    """A repository of a few objects whose files are width ** depth times the leaf; or only folders."""
    path = g.make(name)
    leaf = f"100644 blob {g.git(path, 'hash-object', '-w', '--stdin', data=bytes(leaf_bytes))}" if leaf_bytes else f"040000 tree {g.git(path, 'mktree', data=b'')}"
    lines = "".join(f"{leaf}\tf{i}\n" for i in range(width))
    for _ in range(depth):
        tree = g.git(path, "mktree", data=lines.encode())
        lines = "".join(f"040000 tree {tree}\td{i}\n" for i in range(width))
    sha = g.git(path, *GIT, "commit-tree", "-m", "bomb", tree)
    g.git(path, "update-ref", "refs/heads/main", sha)
    return path


def used(path):
    info = os.statvfs(path)
    return (info.f_blocks - info.f_bfree) * info.f_frsize


@row("GIT-10", "bombs: ten billion folders, a terabyte of zeros, 2,000 refs, submodules in a circle: refused or bounded, the disk as before")
def _(api, arms):
    client = api.client
    small = bomb("bomb-control", 1, 10, 4)
    begin = time.monotonic()
    g.git("/", "clone", "-q", f"file://{small}", g.FOLDERS / "bomb-cloned")
    n = sum(len(f) for _, _, f in os.walk(g.FOLDERS / "bomb-cloned") if "/.git" not in _)
    objects = int(g.git(small, "count-objects").split()[0])
    arms.control(n >= 10_000 and objects < 20, f"{n} files of {objects} objects")
    subprocess.run(["rm", "-rf", g.FOLDERS / "bomb-cloned"], check=True)
    took = time.monotonic() - begin
    before = used(lib.HOME)
    for name, leaf, width, depth in (("bomb-bytes", 1 << 20, 32, 4), ("bomb-folders", 0, 10, 10)):
        source = bomb(name, leaf, width, depth)
        client.ok("PUT", f"/v1/repos/{name}", {"url": str(source)})
        begin = time.monotonic()
        g.refused(client.put(f"/v1/workspaces/{name}", {"repo": name}), "too_large")
        check(time.monotonic() - begin < 60, f"{name}: refused after {time.monotonic() - begin:.1f} s")
    check(used(lib.HOME) - before < 64 << 20, f"{used(lib.HOME) - before >> 20} MiB more on the disk, OPEN")
    many = g.make("many-refs", {"a": "x", ".gitmodules": '[submodule "c"]\n\tpath = c\n\turl = /run/folders/many-refs\n'})
    g.git(many, "update-index", "--add", "--cacheinfo", f"160000,{g.git(many, 'rev-parse', 'HEAD')},c")
    g.git(many, "commit", "-qm", "of itself")
    tip = g.git(many, "rev-parse", "HEAD")
    (many / ".git/packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + "".join(f"{tip} refs/heads/r{i:06}\n" for i in range(2_000)))
    client.ok("PUT", "/v1/repos/many", {"url": str(many)})
    w = Work(client, "many", base="r001999")
    same((w.made["base_commit"], w.run("ls -A c | wc -l; git status --porcelain")), (tip, "0"), "2,000 refs; a submodule is a folder, and empty")
    w.remove()
    g.clear(client)
    arms.note(f"plain git made {n} files of {objects} objects in {took:.1f} s")


@row("GIT-12", "blame.ignoreRevsFile, .mailmap, .lfsconfig, attribute macros, links for .git* files: no file of the host is read, nothing runs")
def _(api, arms):
    canary = pathlib.Path("/run/folders/canary")
    canary.write_text(f"{lib.SECRET}\n")
    source = g.make("reads", {"a.txt": "one\n", ".lfsconfig": f'[lfs "customtransfer.x"]\n\tpath = "{payload("lfs")}"\n'})
    g.git(source, "config", "blame.ignoreRevsFile", canary)
    said = subprocess.run(["git", "-C", source, "-c", "safe.directory=*", "blame", "a.txt"], env=g.ENV, capture_output=True, text=True, check=False).stderr
    arms.control(lib.SECRET in said, f"plain git does not print what it reads: {said}")
    os.symlink(canary, source / ".mailmap")
    os.symlink("/run/host/canary", source / "link")
    (source / ".gitattributes").write_text("[attr]macro filter=evil diff=evil\n* macro\n")
    g.git(source, "add", "-A")
    g.git(source, "commit", "-qm", "links")
    url = g.serve(source)
    for role in ("root",):
        client = place.client_of(api, role)
        w = Work(client, url, branch=f"reads-{role}")
        w.put("conf", f"[blame]\n\tignoreRevsFile = {canary}\n[mailmap]\n\tfile = {canary}\n[core]\n\tattributesFile = {canary}\n\texcludesFile = {canary}\n\tworktree = /\n"
                      f"[commit]\n\ttemplate = {canary}\n[filter \"evil\"]\n\tclean = \"{payload('macro')}\"\n")
        w.run("cat conf >>.git/config; rm conf; mkdir -p .marks .git/info; echo .marks >>.git/info/exclude; echo x >>a.txt")
        for body in (w.patch(), json.dumps(client.ok("GET", f"{w.path}/changes")).encode()):
            check(lib.SECRET.encode() not in body, "a file of the host, OPEN")
        w.commit("reads")
        for kind in ("bundle", "patch"):
            check(lib.SECRET.encode() not in client.get(f"{w.path}/export?format={kind}").body, f"{kind}, OPEN")
        same((w.post("push").status, w.run("ls -A .marks; true"), [m.name for m in MARKS.iterdir()]), (200, "", []), "push; nothing ran")
        same(g.git(g.ORIGIN / "reads.git", "diff", "--name-only", "main", f"reads-{role}"), "a.txt", "core.worktree of theirs counts for nothing")
        w.remove()


# ---- forks of one checkout -------------------------------------------------------------------

WRITE_ALL = r"""
import ctypes, mmap, os
for at, folders, files in os.walk("/work"):
    if "/.git" in at:
        continue
    for name in files:
        path = os.path.join(at, name)
        if os.path.islink(path):
            continue
        with open(path, "r+b") as f:
            m = mmap.mmap(f.fileno(), 0)
            m[0:1] = b"#"
            m.flush()
            m.close()
        os.setxattr(path, "user.mark", b"1")
        os.chmod(path, 0o700)
        os.utime(path, (1, 1))
        os.link(path, path + ".hard")
        with open(path + ".hard", "ab") as f:
            f.write(b"more")
        os.truncate(path, 3)
os.rename("/work/d", "/work/e")
os.mkdir("/work/d")
os.symlink("/etc", "/work/d/b.txt")
"""


@row("SNP-07", "everything is written in one fork of a checkout, also through mappings: the layer, the mirror and the other fork are as before")
def _(api, arms):
    client = api.client
    source = g.make("forked", {"a.txt": "one\n", "d/b.txt": "two\n", "d/c.txt": "three\n"})
    plain = g.FOLDERS / "forked-plain"
    subprocess.run(["cp", "-al", source, plain], check=True)
    with open(plain / "a.txt", "a", encoding="utf-8") as f:
        f.write("more")
    arms.control((source / "a.txt").read_text() != "one\n", "a fork by hard links writes to both")
    (source / "a.txt").write_text("one\n")
    a = Work(client, g.serve(source))
    a.run("echo mine >mine")
    b = a.fork()
    look = "git status --porcelain; find . -path ./.git -prune -o -printf '%p %y %m %n %s %T@ %l\\n' | sort; find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort"
    before = b.run(look)
    below = {p.name: digest(p) for p in (api.daemon.state / "trees").iterdir() if (p / "sealed").exists()}
    check(len(below) >= 2, f"layers: {below}")
    a.put("all.py", WRITE_ALL)
    a.run("python3 all.py; chmod -R u+w .git; rm -rf .git/objects; git init -q . 2>/dev/null; true")
    a.client.ok("POST", f"{a.path}/snapshots", {"label": "all"})
    same(b.run(look), before, "the other fork, OPEN")
    for name, was in below.items():
        same(digest(api.daemon.state / "trees" / name), was, f"layer {name}, OPEN")
    fresh = Work(client, a.made["repo"], base=a.made["base_commit"])
    same(fresh.run("git status --porcelain; cat a.txt d/b.txt; git fsck --strict 2>&1 | grep -v dangling || true"), "one\ntwo", "a new one of that commit, OPEN")
    for one in (fresh, b, a):
        one.remove()


def digest(folder):
    found = subprocess.run("find . -printf '%p %y %m %U %G %s %T@ %l\\n' | sort; find . -type f -exec sha256sum {} + | sort; getfattr -Rhd -m - . 2>/dev/null || true",
                           shell=True, cwd=folder, capture_output=True, check=True).stdout
    return hash(found)


ELSEWHERE = {
    "GIT-04": "GIT-01 has hooks; git folders that lead elsewhere: tests/ws/git_work.py, tests/ws/git_repos.py",
    "GIT-06": "tests/ws/git_repos.py: alternates, links of a folder",
    "GIT-09": "tests/ws/git_work.py, tests/ws/git_repos.py",
    "GIT-11": "tests/ws/git_repos.py",
    "GIT-13": "tests/ws/git_work.py: byte by byte as trusted git has it",
}


def main():
    def prepare():
        end = g.prepare()
        MARKS.mkdir()
        MARKS.chmod(0o777)
        if os.path.exists("/etc/gitconfig"):  # what an operator wrote for himself
            place.internet.bind_over("/etc/gitconfig", f"[http]\n\textraHeader = X-Token: {TOKEN}\n")
        return end
    return lib.main(__file__, options=place.OPTIONS, prepare=prepare, extra=lambda: rows.print_table(ELSEWHERE))


if __name__ == "__main__":
    sys.exit(main())
