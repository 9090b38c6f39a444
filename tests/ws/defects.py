#!/usr/bin/env python3
"""Eleven defects of another system for workspaces, one test each, that they do not exist here. TAP.

They were found there by running it: mirrors that go stale, worktrees that point at the host, rights that are only
advice, rows that are lost, output that is kept in memory. As root and as an ordinary user; the first three, where a
checkout takes its second, as one of them.
"""
import contextlib
import pathlib
import sys
import threading

import git_place as g
import lib
import place
from git_work import Work, both
from lib import check, same, test

lib.TESTS.clear()  # those of git_work.py run there
HOSTNAME = pathlib.Path("/etc/hostname").read_text(encoding="utf-8").strip()
shared = {}  # name -> URL: one repository for all who do not change it


def url_of(name="defects"):
    if name not in shared:
        shared[name] = g.serve(g.make(name))
    return shared[name]


@contextlib.contextmanager
def works(client, *asks):
    """Workspaces, and their end."""
    made = []
    try:
        for repo, more in asks:
            made.append(Work(client, repo, **more))
        yield made
    finally:
        for one in made:
            one.remove()


@test("defect 1: after a push, a second workspace off the same branch has the new commit, not the old one")
def _(api):
    url = url_of("pushed")
    source, bare = g.FOLDERS / "pushed", g.ORIGIN / "pushed.git"
    client = place.client_of(api, "root")
    with works(client, (url, {"base": "main"})) as (first,):
        new = g.commit(source, "new", a__txt="new\n")
        g.git(source, "push", "-q", bare, "main")
        with works(client, (url, {"base": "main"})) as (second,):
            same((second.made["base_commit"], second.run("git rev-parse HEAD; cat a.txt")), (new, f"{new}\nnew"), "the second")
            check(first.run("git rev-parse HEAD") != new, "the first one stays where it was")


@test("defect 2: a branch that was made after the first clone is a base like any other")
def _(api):
    url = url_of("pushed")
    source, bare = g.FOLDERS / "pushed", g.ORIGIN / "pushed.git"
    client = place.client_of(api, "user")
    client.ok("PUT", "/v1/repos/pushed", {"url": url})
    tip = g.commit(source, "later", branch="made/later", b__txt="later\n")
    g.git(source, "push", "-q", bare, "made/later")
    with works(client, (url, {"base": "made/later"})) as (w,):
        same((w.made["base_commit"], w.run("git symbolic-ref HEAD")), (tip, "refs/heads/made/later"), "the branch")


@test("defect 3: with the origin gone, a commit of the mirror becomes a workspace with all its history")
def _(api):
    url = url_of("gone")
    source, bare = g.FOLDERS / "gone", g.ORIGIN / "gone.git"
    old = g.git(source, "rev-parse", "HEAD")
    new = g.commit(source, "second", a__txt="second\n")
    g.git(source, "push", "-q", bare, "main")
    client = place.client_of(api, "root")
    client.ok("PUT", "/v1/repos/gone", {"url": url})
    bare.rename(g.ORIGIN / "away.git")
    try:
        with works(client, (url, {"base": old})) as (w,):  # nobody has had it checked out yet
            same(w.run(f"cat a.txt; git show {new}:a.txt; git fsck --full >/dev/null && echo whole"), "one\nsecond\nwhole", "all is there")
            same(w.run("git config --get-regexp 'partial|promisor' || echo none"), "none", "it is no partial clone")
        g.refused(client.put("/v1/workspaces/moved", {"repo": url, "base": "main"}), "repo_unreachable")  # a name may have moved
    finally:
        (g.ORIGIN / "away.git").rename(bare)


@test("defect 4: a timeout ends the command with all it started, also what left its session or changed its parent")
def _(api):
    for client, role in both(api):
        with works(client, (None, {})) as (w,):
            # Without a cgroup a user's daemon does not find what detached itself twice; that ends with the sandbox.
            twice = "(setsid sh -c 'sleep 43 & sleep 44' &);" if role == "root" else ""
            done = client.ok("POST", f"{w.path}/exec", {"cmd": f"sleep 41 & setsid sleep 42 & {twice} sleep 45", "timeout": "1s"})
            same(done["state"], "timeout", role)
            same(w.run("ps -eo args | grep -c '^sleep 4[1-5]' || true"), "0", "children")
            same([p for p in lib.census.pids() if lib.census.read(f"/proc/{p}/cmdline").startswith(("sleep\x004", "sleep 4"))], [], "as the host sees it")


@test("defect 5: a tree that was deleted is never handed out as ready: the folder is there, and undo brings it back")
def _(api):
    url = url_of()
    for client, role in both(api):
        with works(client, (url, {})) as (w,):
            w.run("rm -rf /work/* /work/.[a-z]*; rmdir /work 2>/dev/null; true")
            again = client.put(f"/v1/workspaces/{w.made['key']}", {"repo": url})
            same((again.status, again.json["id"], again.json["state"]), (200, w.id, "ready"), role)
            same(w.run("pwd; ls -A | wc -l; echo works >x; cat x"), "/work\n0\nworks", "it can be worked in")
            client.ok("POST", f"{w.path}/undo", {"steps": 2})
            same(w.run("git status --porcelain; cat a.txt"), "one", "as it was")


@test("defect 6: read-only is held by the mount: not the API, not a shell, not root inside can write")
def _(api):
    url = url_of()
    for client, role in both(api):
        with works(client, (url, {"mode": "read"})) as (w,):
            check(client.put(f"{w.path}/files/x", b"x").status >= 400, "by the API")
            check(client.call("PATCH", f"{w.path}/files/a.txt", {"edits": [{"old": "one", "new": "two"}]}).status >= 400, "an edit")
            said = client.ok("POST", f"{w.path}/exec", {"cmd": "echo x >a.txt; touch y; rm -f a.txt; git commit --allow-empty -m x; ls; cat a.txt",
                                                               **({"user": "root"} if role == "root" else {})})
            check("Read-only file system" in said["stderr"] and said["stdout"].endswith("a.txt\nd\none\n"), f"{role}: {said}")
            g.refused(w.post("commits", {"message": "x"}), "permission_denied")


@test("defect 7: sixteen clients at once, and the daemon killed at once afterwards: no row is lost", own=True)
def _(_api):
    daemon = lib.Daemon("rows").start()
    answers = []

    def make(number):
        client = daemon.client()
        answers.append(client.put(f"/v1/workspaces/many-{number}", {}).status)
        client.close()
    threads = [threading.Thread(target=make, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    daemon.kill()
    daemon.start()
    client = daemon.client()
    same((answers, sorted(w["key"] for w in client.ok("GET", "/v1/workspaces?limit=1000")["workspaces"])),
         ([201] * 16, sorted(f"many-{n}" for n in range(16))), "rows")
    for n in range(16):
        client.delete(f"/v1/workspaces/many-{n}?force=1")
    client.close()
    daemon.stop()
    g.end_vaults()


@test("defect 8: 300 MB of output, of which a thousand bytes are wanted, cost no memory")
def _(api):
    for client, role in both(api):
        with works(client, (None, {})) as (w,):
            w.run("true")
            daemon = place.daemon_of(api, role)
            before = {p: lib.memory_kib(p) for p in (daemon.pid, daemon.process.pid, *daemon.monitors())}
            done = client.ok("POST", f"{w.path}/exec", {"cmd": "head -c 300000000 /dev/zero | tr '\\0' x", "timeout": "100s", "output": {"inline": "1k", "max_log": "4m"}})
            check(done["exit_code"] == 0 and 1000 <= len(done["stdout"]) < 4096, lambda done=done: str(done)[:500])
            grown = {p: lib.memory_kib(p) - was for p, was in before.items()}
            check(max(grown.values()) < 16 << 10, f"{role}: KiB more: {grown}")


@test("defect 9: no file of the host's is inside: not its name, not its folders, not what others may read")
def _(api):
    for client, role in both(api):
        with works(client, (None, {})) as (w,):
            check(w.run("cat /etc/hostname 2>/dev/null || hostname") != HOSTNAME, f"{role}: the host's name")
            w.run(f"ls {g.FOLDERS} {lib.HOME} {g.ORIGIN} {lib.HOST} /root/. /home/user", status=2)
            answer = client.get(f"{w.path}/files/etc/hostname")
            same(answer.status, 404, "by the API: its root is the workspace")


@test("defect 10: git works inside: status, commit, log, gc; nothing points at a path of the host")
def _(api):
    url = url_of()
    for client, role in both(api):
        with works(client, (url, {})) as (w,):
            same(w.run("git status --porcelain && echo x >x && git add x && git commit -qm inside && git gc -q && git log --oneline | wc -l"), "2", role)
            said = w.run("cat .git/config .git/objects/info/alternates; git rev-parse --git-dir --git-common-dir --show-toplevel")
            check(str(lib.HOME) not in said and str(g.ORIGIN) not in said and "/run/folders" not in said, f"a path of the host: {said}")
            for line in w.run("cat .git/objects/info/alternates").split():
                w.run(f"test -d {line} && ! touch {line}/x 2>/dev/null")


@test("defect 11: a command sees variables of ours alone, none of the server's")
def _(api):
    known = {"CAISSON", "CI", "DEBIAN_FRONTEND", "GIT_EDITOR", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "LANG", "PAGER", "PATH", "PWD", "SHLVL", "TERM", "TMPDIR", "USER", "_"}
    for client, role in both(api):
        with works(client, (None, {})) as (w,):
            values = dict(line.partition("=")[::2] for line in w.run("env").splitlines())
            same(set(values) - known, set(), role)
            check(values["HOME"] != "/nowhere", "the daemon's own")


if __name__ == "__main__":
    sys.exit(g.main(__file__))
