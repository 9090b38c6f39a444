#!/usr/bin/env python3
"""Mirrors of repositories: a real server and folders, what is new there, what is hostile there, and interruptions. TAP.

    tests/ws/git_repos.py          all (needs root)
    tests/ws/git_repos.py hostile  those with the word in their title
"""
import json
import socket
import sys
import threading

import git_place as g
import lib
import place
import servers
from lib import check, same, test, wait_until


def client_of(api, role):
    return place.client_of(api, role)


@test("cloned once by HTTPS, found by key, id and URL; a second time it is there")
def _(api):
    url = g.serve(g.make("once"))
    for role in place.ROLES:
        client = client_of(api, role)
        repo = g.put(client, "once", url, status=(201,))
        same((repo["state"], repo["head"], repo["url"], repo["fetches"]), ("ready", "main", url, 1), "repo")
        same(g.put(client, "once", url, status=(200,))["id"], repo["id"], "again")
        same(g.put(client, "once", url.replace("git.test", "GIT.test:443"), status=(200,))["id"], repo["id"], "another spelling")
        for name in ("once", repo["id"], url.replace("/", "%2F")):
            same(client.ok("GET", f"/v1/repos/{name}")["id"], repo["id"], name)
        same([r["key"] for r in client.ok("GET", "/v1/repos")["repos"]], ["once"], "list")
        g.refused(client.put("/v1/repos/once", {"url": "https://git.test/other.git"}), "exists")
        g.refused(client.put("/v1/repos/twice", {"url": url}), "exists")
        same(client.delete("/v1/repos/once").status, 204, "delete")
        same(client.get("/v1/repos/once").status, 404, "deleted")
        g.put(client, "once", url, status=(201,))
        g.clear(client)


@test("what was pushed and branches that were made later are there after a refresh (defects 1 and 2)")
def _(api):
    source = g.make("later")
    url = g.serve(source)
    for role in place.ROLES:
        client = client_of(api, role)
        g.put(client, "later", url)
        old = g.git(source, "rev-parse", "main")
        g.git(source, "checkout", "-q", "main")
        new = g.commit(source, f"for {role}", a__txt=f"{role}\n")
        g.commit(source, "a branch", branch=f"made/after/{role}", c__txt="c\n")
        g.git(source, "push", "-q", g.ORIGIN / "later.git", "main", f"made/after/{role}")
        moved = client.ok("POST", "/v1/repos/later/refresh", {})
        same((moved["old"], moved["new"], moved["fetches"]), (old, new, 2), "refresh")
        g.git(source, "checkout", "-q", "main")
        g.clear(client)


@test("a folder is read with the caller's rights, and nothing of it is linked")
def _(api):
    source = g.make("folder")
    for role in place.ROLES:
        client = client_of(api, role)
        g.put_folder(api, role, "folder", f"file://{source}")
        same(client.ok("GET", "/v1/repos/folder")["url"], str(source), "url")
        links = [p for p in (source / ".git/objects").rglob("*") if p.is_file() and p.stat().st_nlink != 1]
        same(links, [], "hard links")
        g.put_folder(api, role, "empty", "/run/source", status=1)
        g.clear(client)
    g.refused(api.client.put("/v1/repos/none", {"url": "/run/folders/none"}), "not_found")
    source.chmod(0o700)  # root's own: not the other's to read
    said = g.put_folder(api, "user", "folder", source, status=(1, 125)).stderr
    check("/run/folders/folder" in said, said)
    g.refused(client_of(api, "user").put("/v1/repos/folder", {"url": str(source)}), "permission_denied")  # we are root, and not its user
    g.clear(client_of(api, "user"))
    g.clear(api.client)


@test("what is no URL of ours, no pattern and no credential is refused before anything runs")
def _(api):
    bad = ["ext::sh -c id", "fd::3", "ssh://git.test/x", "git@git.test:x", "http://git.test/x.git", "https://u:p@git.test/x.git",
           "https://127.0.0.1/x.git", "https://git.test/../x", "-u", "--upload-pack=id", "relative", ""]
    for url in bad:
        g.refused(api.client.put("/v1/repos/bad", {"url": url}), "invalid")
    for refs in (["refs/heads/a*"], ["heads/*"], [], ["refs/heads/*"] * 17, "refs/heads/*", [1], ["+refs/heads/*:refs/x/*"]):
        g.refused(api.client.put("/v1/repos/bad", {"url": "https://git.test/x.git", "refs": refs}), "invalid")
    g.refused(api.client.put("/v1/repos/bad", {"url": "https://git.test/x.git", "refresh": "sometimes"}), "invalid")
    g.refused(api.client.put("/v1/repos/bad", {"url": "https://git.test/x.git", "cred": "work"}), "not_found")
    g.refused(api.client.put("/v1/repos/bad", {"url": "https://git.test/x.git", "branch": "x"}), "invalid")
    g.refused(api.client.put("/v1/repos/-bad", {"url": "https://git.test/x.git"}), "invalid")
    same(api.client.ok("GET", "/v1/repos")["repos"], [], "left")


@test("a server that is not there, a repository that is not there: says so, and is cloned later under the same key")
def _(api):
    source = g.make("absent")
    for role in place.ROLES:
        client = client_of(api, role)
        name = f"absent-{role}.git"
        g.refused(client.put("/v1/repos/absent", {"url": "https://git.test:4443/x.git"}), "repo_unreachable")
        same(client.delete("/v1/repos/absent").status, 204, "delete")
        detail = g.refused(client.put("/v1/repos/absent", {"url": f"https://git.test/{name}"}), "repo_unreachable")
        check("not found" in detail, detail)
        same(client.ok("GET", "/v1/repos/absent")["state"], "failed", "state")
        g.refused(client.post("/v1/repos/absent/refresh"), "conflict")
        g.serve(source, name)
        same(g.put(client, "absent", f"https://git.test/{name}")["state"], "ready", "state")
        (g.ORIGIN / name).rename(g.ORIGIN / f"moved-{role}")
        g.refused(client.post("/v1/repos/absent/refresh"), "repo_unreachable")
        after = client.ok("GET", "/v1/repos/absent")
        same((after["state"], after["fetches"]), ("ready", 1), "a refresh that failed leaves it as it was")
        g.clear(client)


@test("several at once are one clone; a refresh that was asked for meanwhile is one of its own")
def _(api):
    url = g.serve(g.make("several"))
    found = []

    def ask():
        found.append(g.put(api.daemon.client(), "several", url))
    threads = [threading.Thread(target=ask) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(({r["id"] for r in found}.__len__(), {r["fetches"] for r in found}), (1, {1}), "clones")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(api.daemon.client().post("/v1/repos/several/refresh"))) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same({a.status for a in answers}, {200}, "refreshes")
    g.clear(api.client)


@test("hostile configuration, hooks, filters, attributes and submodules: nothing is executed on the host (GIT-01, 02, 04, 12)")
def _(api):
    source = g.hostile("hostile")
    url = g.serve(source)
    g.arm(g.ORIGIN / "hostile.git")  # what the server has, git-http-backend reads with its own rights: not ours to judge
    for role in place.ROLES:
        client = client_of(api, role)
        g.put_folder(api, role, "folder", source)
        g.caisson(place.daemon_of(api, role), "repo", "refresh", "folder")
        same([m for m in g.markers() if not m.startswith(str(g.ORIGIN))], [], "marks on the host")
        g.clear(client)
    check(url.endswith("hostile.git"), url)
    run = g.make("update", {".gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = https://git.test/x.git\n\tupdate = "!{g.PAYLOAD}"\n'})
    check("gitmodules" in g.refused(api.client.put("/v1/repos/update", {"url": str(run)}), "repo_unreachable"), "not fsck")
    g.clear(api.client)


@test("a folder whose git folder lies elsewhere is refused (GIT-04, GIT-06)")
def _(api):
    secret = g.make("secret", {"secret.txt": lib.SECRET})
    pointed = g.FOLDERS / "pointed"
    pointed.mkdir()
    (pointed / ".git").write_text(f"gitdir: {secret}/.git\n")
    g.refused(api.client.put("/v1/repos/pointed", {"url": str(pointed)}), "repo_unreachable")
    linked = g.FOLDERS / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(secret / ".git")
    g.refused(api.client.put("/v1/repos/linked", {"url": str(linked)}), "repo_unreachable")
    borrowed = g.FOLDERS / "borrowed"
    borrowed.mkdir()
    g.git(borrowed, "init", "-q", "-b", "main")
    (borrowed / ".git/objects/info").mkdir(exist_ok=True)
    (borrowed / ".git/objects/info/alternates").write_text(f"{secret}/.git/objects\n")
    (borrowed / ".git/refs/heads/main").write_text(g.git(secret, "rev-parse", "main") + "\n")
    answer = api.client.put("/v1/repos/borrowed", {"url": str(borrowed)})
    check(answer.status >= 400, lambda: f"{answer}")
    g.clear(api.client)


def raw_object(path, kind, data):
    return g.git(path, "hash-object", "-w", "-t", kind, "--literally", "--stdin", data=data)


@test("trees with .git in them, .. and the like are refused whole (GIT-11)")
def _(api):
    for number, name in enumerate((b".git", b"..", b".GIT", b"git~1", b"a/b", b".git\xe2\x80\x8c")):
        source = g.make(f"bad-{number}")
        blob = g.git(source, "rev-parse", "HEAD:a.txt")
        tree = raw_object(source, "tree", b"100644 " + name + b"\0" + bytes.fromhex(blob))
        sha = raw_object(source, "commit", f"tree {tree}\nauthor t <t@example.org> 1 +0000\ncommitter t <t@example.org> 1 +0000\n\nbad\n".encode())
        g.git(source, "update-ref", "refs/heads/main", sha)
        detail = g.refused(api.client.put(f"/v1/repos/bad-{number}", {"url": str(source)}), "repo_unreachable")
        same(api.client.ok("GET", f"/v1/repos/bad-{number}")["state"], "failed", detail)
    g.clear(api.client)


@test("odd names of branches, tags, files and authors go through (GIT-09)")
def _(api):
    source = g.make("odd", {"-rf": "x", "a\nb": "x", "\u202etxt.exe": "x", "\x1b[31mred": "x", "sp ace": "x", "--": "x"})
    for name in ("ä/ö", "x'y", "a$(id)", "a;id", "a|id", "a`id`", "\u202erev", "x" * 180):
        g.git(source, "branch", "--", name)
        g.git(source, "tag", "--", name + "-t")
    g.git(source, "-c", "user.name=\x1b]0;owned\x07", "commit", "-qm", "\x1b[2J\u202e", "--allow-empty")
    g.git(source, "update-ref", "refs/heads/-dash", "HEAD")
    for role in place.ROLES:
        client = client_of(api, role)
        g.put_folder(api, role, "odd", source)
        g.caisson(place.daemon_of(api, role), "repo", "refresh", "odd")
        g.clear(client)
    same(g.markers(), [], "marks")


class Silent:
    """A server that takes connections and says nothing."""

    def __init__(self, port):
        self.socket = socket.create_server((servers.WEB, port))
        self.taken = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            try:
                self.taken.append(self.socket.accept()[0])
            except OSError:
                return

    def close(self):
        self.socket.close()
        for one in self.taken:
            one.close()


@test("kill -9 of the daemon while it clones: nothing is left of it, and the next try works", own=True)
def _(_api):
    silent = Silent(4445)
    url = g.serve(g.make("killed"))
    daemon = lib.Daemon("killed", options=place.OPTIONS).start()
    client = daemon.client()
    answer = client.put("/v1/repos/killed?wait=0", {"url": "https://git.test:4445/killed.git"})
    same((answer.status, answer.json["state"]), (202, "cloning"), "put")
    wait_until(lambda: silent.taken, 10, "the clone's connection")
    g.refused(client.delete("/v1/repos/killed"), "busy")
    client.close()
    daemon.kill()
    daemon.start()
    client = daemon.client()
    repo = client.ok("GET", "/v1/repos/killed")
    same((repo["state"], repo["reason"]), ("failed", "the daemon was restarted meanwhile"), "repo")
    wait_until(lambda: len(list((daemon.state / "trees").iterdir())) <= 1, 10, "the end of the tree")
    silent.close()
    same(client.delete("/v1/repos/killed").status, 204, "delete")
    g.put(client, "killed", url)
    client.ok("POST", "/v1/repos/killed/refresh", {})
    daemon.wait_clean()
    daemon.kill()  # in the midst of nothing: it is there again
    daemon.start()
    same(daemon.client().ok("GET", "/v1/repos/killed")["state"], "ready", "state")
    daemon.client().ok("POST", "/v1/repos/killed/refresh", {})
    g.clear(daemon.client())
    daemon.wait_clean()
    daemon.stop()
    g.end_vaults()


@test("services are in no list and count for no quota")
def _(api):
    silent = Silent(4446)
    before = api.client.ok("GET", "/v1/quota")["used"]
    api.client.put("/v1/repos/hidden?wait=0", {"url": "https://git.test:4446/x.git"})
    wait_until(lambda: silent.taken, 10, "the clone's connection")
    same(api.client.ok("GET", "/v1/sandboxes")["sandboxes"], [], "sandboxes")
    same(api.client.ok("GET", "/v1/processes?state=running")["processes"], [], "processes")
    same(api.client.ok("GET", "/v1/quota")["used"], before, "quota")
    silent.close()
    wait_until(lambda: api.client.ok("GET", "/v1/repos/hidden")["state"] == "failed", 20, "the end of the clone")
    g.clear(api.client)


@test("caisson repo add, ls, refresh, rm")
def _(api):
    source = g.make("cli")
    url = g.serve(source)
    for daemon in (place.daemon_of(api, role) for role in place.ROLES):
        out = g.caisson(daemon, "repo", "add", url).stdout.split()
        check(out[0] == "git.test-cli" and out[1].startswith("rp_"), lambda out=out: f"{out}")
        same(json.loads(g.caisson(daemon, "repo", "add", url, "--json").stdout)["id"], out[1], "again")
        g.caisson(daemon, "repo", "add", source, "mine")
        check("cli" in g.caisson(daemon, "repo", "ls").stdout, "ls")
        same(len(json.loads(g.caisson(daemon, "repo", "ls", "--json").stdout)["repos"]), 2, "ls --json")
        tip = g.git(source, "rev-parse", "--short=12", "main")
        same(g.caisson(daemon, "repo", "refresh", "mine").stdout, f"mine main {tip}\n", "refresh")
        g.caisson(daemon, "repo", "add", "ext::sh", status=125)
        g.caisson(daemon, "repo", "add", "https://git.test/none.git", "none", status=1)
        g.caisson(daemon, "repo", "rm", "mine", "none", out[1])
        same(g.caisson(daemon, "repo", "refresh", "mine", status=1).stderr, "caisson: mine: no such repository\n", "gone")


if __name__ == "__main__":
    sys.exit(g.main(__file__))
