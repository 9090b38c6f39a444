#!/usr/bin/env python3
"""Workspaces of repositories: what git sees inside, and what leaves by commit, merge, push, patch and bundle; hostile
files and settings. TAP.

    tests/ws/git_work.py          all (needs root)
    tests/ws/git_work.py merge    those with the word in their title
"""
import json
import shutil
import subprocess
import sys
import time

import git_place as g
import lib
import place
from lib import check, same, test

counter = 0


def key():
    global counter  # pylint: disable=global-statement
    counter += 1
    return f"w{counter}"


class Work:
    """A workspace, by the API."""

    def __init__(self, client, repo=None, made=None, **more):
        self.client = client
        if made is None:
            body = {**({"repo": str(repo)} if repo else {}), **more}
            answer = client.put(f"/v1/workspaces/{key()}", body)
            same(answer.status, 201, f"{body}: {answer}")
            made = answer.json
        self.made, self.id, self.path = made, made["id"], f"/v1/workspaces/{made['id']}"

    def run(self, cmd, status=0):
        done = self.client.ok("POST", f"{self.path}/exec", {"cmd": cmd, "timeout": "100s"})
        same(done["exit_code"], status, f"{cmd}: {done}")
        return done["stdout"].strip()

    def put(self, name, text):
        answer = self.client.put(f"{self.path}/files/{lib.quote(name)}", text.encode() if isinstance(text, str) else text)
        check(answer.status < 300, lambda: f"{name}: {answer}")

    def read(self, name):
        return self.client.get(f"{self.path}/files/{lib.quote(name)}").body.decode()

    def commit(self, message="a commit", **more):
        return self.client.ok("POST", f"{self.path}/commits", {"message": message, **more})["sha"]

    def post(self, verb, body=None):
        return self.client.post(f"{self.path}/{verb}", body or {})

    def patch(self, query=""):
        answer = self.client.get(f"{self.path}/changes?format=patch{query}")
        same(answer.status, 200, f"{answer}")
        return answer.body

    def fork(self):
        return Work(self.client, made=self.client.ok("POST", f"{self.path}/fork", {})["workspaces"][0])

    def remove(self):
        for box in self.client.ok("GET", "/v1/sandboxes?limit=1000")["sandboxes"]:
            self.client.delete(f"/v1/sandboxes/{box['id']}")
        answer = self.client.call("DELETE", f"{self.path}?force=1")
        same(answer.status, 204, f"{answer}")


def both(api):
    for role in place.ROLES:
        yield place.client_of(api, role), role


@test("inside: the commit, the branch and a clean status, with no write to the mirror and no path of the host")
def _(api):
    source = g.make("inside")
    url = g.serve(source)
    tip = g.git(source, "rev-parse", "HEAD")
    for client, role in both(api):
        w = Work(client, url)
        same((w.made["base_commit"], w.made["base"], w.made["dirty"]), (tip, None, False), role)
        same(w.run("git rev-parse HEAD; git symbolic-ref HEAD; git status --porcelain; git rev-parse origin/main"),
             f"{tip}\nrefs/heads/main\n{tip}", role)
        same(w.run("git config remote.origin.url"), url, "origin")
        w.run("git fsck --strict && echo x >x && git add x && git commit -qm inside && git gc -q && git log --oneline | wc -l | grep -qx 2")
        w.run("touch /run/caisson/repo/x", status=1)
        check(str(g.ORIGIN) not in w.run("grep -r . .git/config .git/objects/info/alternates") and "/run/api" not in w.run("cat .git/config"), "a path of the host")
        again = Work(client, url, base=tip)
        same(again.run("git rev-parse HEAD; git status --porcelain; git symbolic-ref -q HEAD || echo detached"), f"{tip}\ndetached", "the commit")
        named = Work(client, url, branch="fix/one")
        same(named.run("git symbolic-ref HEAD; git status --porcelain"), "refs/heads/fix/one", "the branch")
        for one in (w, again, named):
            one.remove()


@test("names of a base and of a branch that are none are refused; one that is not there is not found")
def _(api):
    url = g.serve(g.make("names"))
    for client, _ in both(api):
        g.refused(client.put(f"/v1/workspaces/{key()}", {"repo": url, "base": "no-such"}), "not_found")
        for bad in ("-x", "a..b", "a b", "--upload-pack=x", "x\ny", "@{1}"):
            g.refused(client.put(f"/v1/workspaces/{key()}", {"repo": url, "base": bad}), "invalid")
            g.refused(client.put(f"/v1/workspaces/{key()}", {"repo": url, "branch": bad}), "invalid")
        g.clear(client)


@test("one checkout for a commit, however many workspaces; a repository in use is not removed")
def _(api):
    client = api.client
    url = g.serve(g.make("shared"))
    many = [Work(client, url) for _ in range(4)]
    trees = lambda: {p.name for p in (api.daemon.state / "trees").iterdir()}  # noqa: E731
    before = trees()
    begin = time.monotonic()
    more = [Work(client, url, base=many[0].made["base_commit"]) for _ in range(8)]
    took = (time.monotonic() - begin) / len(more)
    same(trees(), before, "trees")
    check(took < 5, f"{took:.3f} s each")
    name = many[0].made["repo"]
    g.refused(client.delete(f"/v1/repos/{name}"), "conflict")
    for one in many + more:
        one.remove()


@test("mode read is held by the mount, and nothing is committed there")
def _(api):
    url = g.serve(g.make("read"))
    for client, _ in both(api):
        w = Work(client, url, mode="read")
        same(w.run("touch x 2>/dev/null || echo no; git status --porcelain; git log --oneline | wc -l"), "no\n1", "read")
        g.refused(w.post("commits", {"message": "x"}), "permission_denied")
        w.remove()


@test("commit: files as they are, the paths that were named, an author, an index that is clean afterwards; nothing twice")
def _(api):
    url = g.serve(g.make("commit", {"a.txt": "one\n", "d/b.txt": "two\n", ".gitignore": "*.o\n"}))
    for client, _ in both(api):
        w = Work(client, url)
        base = w.made["base_commit"]
        w.run("echo more >>a.txt; rm d/b.txt; mkdir -p e; echo new >'e/sp ace'; echo x >x.o; ln -s a.txt link; printf '#!/bin/sh\\n' >run; chmod +x run")
        sha = w.commit("subject\n\nbody", author={"name": "A. Nobody", "email": "a@example.org"})
        same(w.run("git rev-parse HEAD; git status --porcelain; git symbolic-ref HEAD"), f"{sha}\nrefs/heads/main", "afterwards")
        same(w.run("git log -1 --format='%an <%ae> %cn%n%B'").rstrip(), "A. Nobody <a@example.org> A. Nobody\nsubject\n\nbody", "log")
        same(w.run("git diff --name-status -M HEAD~"), "M\ta.txt\nD\td/b.txt\nA\te/sp ace\nA\tlink\nA\trun", "names")
        same(w.run("git ls-tree HEAD run link | cut -c1-6 | sort"), "100755\n120000", "modes")
        w.run("git fsck --strict")
        g.refused(w.post("commits", {"message": "again"}), "conflict")
        same(w.run("git rev-parse HEAD^"), base, "parent")
        w.run("echo 1 >p; echo 2 >q; echo 3 >s; git add s")
        w.commit("one path", paths=["p"])
        same(w.run("git status --porcelain; git show --name-only --format= HEAD"), "A  s\n?? q\np", "the rest")
        check(w.commit("empty", allow_empty=True), "empty")
        for bad in ({}, {"message": " \n"}, {"message": "x", "author": {"name": "a\nb", "email": "x"}}, {"message": "x", "paths": ["/etc"]},
                    {"message": "x", "author": {"name": "a <b>", "email": "x"}}, {"message": "x", "amend": True}):
            g.refused(w.post("commits", bad), "invalid")
        w.run("git checkout -q --detach && echo d >d2")
        sha = w.commit("detached")
        same(w.run("git rev-parse HEAD; git symbolic-ref -q HEAD || git status --porcelain"), f"{sha}\n?? q" if w.run("git status --porcelain") else sha, "detached")
        w.run("touch .git/index.lock; echo y >y")
        g.refused(w.post("commits", {"message": "x"}), "busy")
        w.run("rm .git/index.lock; touch .git/MERGE_HEAD")
        g.refused(w.post("commits", {"message": "x"}), "conflict")
        w.run("rm -rf .git")
        g.refused(w.post("commits", {"message": "x"}), "conflict")
        w.remove()


@test("a patch that git applies: binary, renames, modes, names of any kind; as with trusted git (GIT-13)")
def _(api):
    big = "".join(f"line {i}\n" for i in range(200))
    source = g.make("patch", {"a.txt": "one\n", "move.txt": big, "d/b.txt": "two\n", "gone.txt": "x\n"})
    url = g.serve(source)
    for client, role in both(api):
        w = Work(client, url)
        w.put("bytes.bin", bytes(range(256)) * 50)
        w.run("mkdir new; mv move.txt new/moved.txt; echo x >>new/moved.txt; rm gone.txt; chmod +x a.txt; ln -s a.txt link; echo t >'tab\tname'; echo u >ü; echo staged >s; git add s")
        w.run("git config diff.external 'touch /work/ran; :'; git config color.ui always; git config diff.noprefix true; git config core.pager 'touch /work/ran'; echo '*.txt diff=x' >.git/info/attributes; git config diff.x.textconv 'touch /work/ran; cat'")
        patch = w.patch()
        check(b"GIT binary patch" in patch and b"rename from move.txt" in patch and b"\x1b[" not in patch, lambda patch=patch: patch[:3000].decode(errors="replace"))
        copy = g.FOLDERS / f"applied-{role}"
        g.git("/", "clone", "-q", f"file://{source}", copy)
        g.git(copy, "apply", "--index", "-", data=patch)
        same(g.git(copy, "write-tree"), w.run("cp .git/index /tmp/i; GIT_INDEX_FILE=/tmp/i git add -A; GIT_INDEX_FILE=/tmp/i git write-tree"), "trees")
        trusted = subprocess.run(["git", "-C", str(copy), "-c", "safe.directory=*", "diff", "--cached", "--binary", "--full-index", "-M", "HEAD"], env=g.ENV, capture_output=True, check=True).stdout
        same(patch, trusted, "as trusted git has it")
        same(w.run("ls ran 2>/dev/null || echo no; git status --porcelain | grep -c ."), "no\n" + w.run("git status --porcelain | grep -c ."), "untouched")
        check(b"link" in w.patch("&path=link") and b"a.txt b/" not in w.patch("&path=link").replace(b"link", b""), "one path")
        w.run("rm -rf .git")
        same(w.patch().count(b"rename from"), 1, "without a git folder")
        w.remove()
    empty = Work(api.client)
    empty.put("x.txt", "x\n")
    check(b"+++ b/x.txt" in empty.patch(), "of no repository")
    first = empty.client.ok("POST", f"{empty.path}/snapshots", {})["id"]
    empty.run("echo y >>x.txt; cp x.txt two; printf 'a\\0b' >bin")
    second = empty.client.ok("POST", f"{empty.path}/snapshots", {})["id"]
    empty.run("rm two; echo z >>x.txt")
    for query, has, has_not in ((f"&base={first}", (b"+y\n+z", b"b/bin"), (b"two", b"+x\n")), (f"&base={first}&to={second}", (b"+y\n", b"b/two", b"GIT binary patch"), (b"+z",)),
                                (f"&base={second}&to={first}", (b"-y\n", b"deleted file"), (b"+y", b"z\n")), (f"&to={first}", (b"+x\n",), (b"two", b"bin")),
                                (f"&base={second}&to={second}", (), (b"diff",))):
        patch = empty.patch(query)
        check(all(x in patch for x in has) and not any(x in patch for x in has_not), lambda query=query, patch=patch: f"{query}: {patch}")
    g.refused(empty.client.get(f"{empty.path}/changes?format=patch&base=sn_none"), "not_found")
    g.refused(empty.client.get(f"{empty.path}/changes?format=patch&to=cp_none"), "not_found")
    empty.remove()
    repo = Work(api.client, url)
    repo.run("echo 1 >one; git add one; git -c user.name=x -c user.email=x commit -qm one; echo 2 >two")
    point = repo.client.ok("POST", f"{repo.path}/snapshots", {})["id"]
    repo.run("rm -rf .git; echo 3 >three")
    check(all(x in repo.patch(f"&to={point}") for x in (b"b/one", b"b/two")) and b"three" not in repo.patch(f"&to={point}"), "up to a point")
    same([line for line in repo.patch(f"&base={point}").splitlines() if line.startswith(b"+++")], [b"+++ b/three"], "from a point on, whatever became of git")
    repo.remove()


@test("a bundle that git fetches, a mailbox that git applies")
def _(api):
    source = g.make("bundle")
    url = g.serve(source)
    for client, role in both(api):
        w = Work(client, url)
        g.refused(client.get(f"{w.path}/export?format=bundle"), "conflict")
        w.run("echo 1 >one"), w.commit("first\n\nwith a body")
        w.run("echo 2 >two"), w.commit("second")
        head = w.run("git rev-parse HEAD")
        copy = g.FOLDERS / f"taken-{role}"
        g.git("/", "clone", "-q", f"file://{source}", copy)
        (copy / "b").write_bytes(client.get(f"{w.path}/export?format=bundle").body)
        g.git(copy, "fetch", "-q", copy / "b", "main:taken")
        same(g.git(copy, "rev-parse", "taken"), head, "bundle")
        g.git(copy, "am", "-q", data=client.get(f"{w.path}/export?format=patch").body)
        same(g.git(copy, "rev-parse", "HEAD^{tree}"), w.run("git rev-parse HEAD^{tree}"), "mailbox")
        g.refused(client.get(f"{w.path}/export?format=zip"), "invalid")
        w.remove()


@test("push: a new branch, more commits, refused when something else is there, over it with a lease; and seen by the next workspace")
def _(api):
    source = g.make("push")
    url = g.serve(source)
    bare = g.ORIGIN / "push.git"
    for client, role in both(api):
        branch = f"fix/{role}"
        w = Work(client, url, branch=branch)
        w.run("echo 1 >one")
        first = w.commit("first")
        same(w.post("push").json, {"sha": first, "tree": w.run("git rev-parse HEAD^{tree}"), "remote": branch}, "push")
        same(g.git(bare, "rev-parse", branch), first, "there")
        w.run("echo 2 >two")
        second = w.commit("second")
        same(w.post("push", {}).json["sha"], second, "again")
        other = Work(client, url, base=branch)
        same(other.made["base_commit"], second, "the next workspace")
        theirs = g.commit(source, f"theirs {role}", c__txt=role)
        g.git(source, "push", "-q", "-f", bare, f"HEAD:refs/heads/{branch}")
        w.run("echo 3 >three")
        third = w.commit("third")
        g.refused(w.post("push"), "stale")
        g.refused(w.post("push", {"force_with_lease": True}), "stale")  # what was last seen is not there any more
        same(g.git(bare, "rev-parse", branch), theirs, "untouched")
        same(w.post("push", {"force_with_lease": theirs}).json["sha"], third, "over what the caller saw")
        g.refused(w.post("push", {"branch": "main", "force_with_lease": ""}), "stale")
        client.ok("POST", f"/v1/repos/{w.made['repo']}/refresh", {})
        w.run("git commit -q --amend -m amended")
        check(w.post("push", {"force_with_lease": True}).status == 200, "over what was last seen")
        for bad in ("-x", "a b", "refs/heads/x", "a..b", "x\x1b[31m"):
            g.refused(w.post("push", {"branch": bad}), "invalid")
        g.refused(w.post("push", {"cred": "work"}), "not_found")
        plain = Work(client, url)
        plain.run("echo x >x")
        plain.commit("x")
        same(plain.post("push").json["remote"], f"caisson/{plain.made['key']}", "a branch of its own")
        for one in (w, other, plain):
            one.remove()


@test("merge: a fork with commits and files that are not committed; conflicts are data, and nothing is changed by them")
def _(api):
    url = g.serve(g.make("merge", {"a.txt": "".join(f"{i}\n" for i in range(30)), "b.txt": "b\n", "c.txt": "c\n"}))
    for client, _ in both(api):
        w = Work(client, url)
        fork = w.fork()
        w.run("sed -i s/^2$/two/ a.txt")                                # here, not committed
        fork.run("sed -i s/^25$/twenty-five/ a.txt; git mv b.txt moved.txt; echo n >new.txt; rm c.txt")  # there, not committed
        done = w.post("merge", {"from": fork.id})
        same(done.json, {"sha": w.made["base_commit"], "tree": w.run("git rev-parse HEAD^{tree}")}, "nothing was committed")
        same(w.run("sed -n '3p;26p' a.txt; cat moved.txt new.txt; ls b.txt c.txt 2>/dev/null; true"), "two\ntwenty-five\nb\nn", "files")
        same(w.run("git log --oneline | wc -l"), "1", "commits")

        committed = w.fork()
        committed.run("echo 1 >committed; echo 2 >not")
        committed.commit("there", paths=["committed"])
        w.run("echo 3 >here")
        here = w.commit("here", paths=["here"])
        done = w.post("merge", {"from": committed.id}).json
        same(w.run("git rev-parse HEAD; git log -1 --format=%P").split(), [done["sha"], here, committed.run("git rev-parse HEAD")], "a merge commit")
        same(w.run("cat committed not here; git status --porcelain not committed here"), "1\n2\n3\n?? not", "files")
        same(w.run("git fsck --strict 2>&1 | grep -v dangling || echo fine"), "fine", "fsck")

        left, right = w.fork(), w.fork()
        left.run("echo left >b2; echo left >both")
        right.run("echo right >both; echo right >c2")
        same(left.post("merge", {"from": right.made["id"]}).json, {"conflicts": [{"path": "both"}]}, "conflicts")
        same(left.run("cat both b2; ls c2 2>/dev/null; ls .git/index.lock 2>/dev/null; true"), "left\nleft", "unchanged")
        g.refused(left.post("merge", {"from": left.id}), "invalid")
        g.refused(left.post("merge", {"from": "ws_none"}), "not_found")
        g.refused(left.post("merge", {}), "invalid")
        same(left.post("merge", {"from": "main"}).json["sha"], left.run("git rev-parse HEAD"), "a branch that it has")
        for one in (left, right, committed, fork, w):
            one.remove()


def apply_armed(daemon, role, w, source):
    """Into a checkout of the same repository whose own git folder is armed as well; then the same once more, with everything allowed."""
    host, state = g.FOLDERS / f"promoted-{role}", g.FOLDERS / f"journal-{role}"
    g.git("/", "clone", "-q", f"file://{g.ORIGIN}/{source.name}.git", host)  # before it is armed
    g.arm(host / ".git")
    state.mkdir()
    if daemon.uid is not None:
        subprocess.run(["chown", "-R", f"{daemon.uid}:{daemon.uid}", host, state], check=True)
    words = ("apply", w.id, "--to", host, "--json")
    w.run("echo 'int x;' >x.c; printf 'all:\\n\\t" + "touch /tmp/x" + "\\n' >Makefile; printf '#!/bin/sh\\n' >run.sh; chmod +x run.sh; ln -s /etc/passwd out")
    env = {"XDG_STATE_HOME": str(state)}
    refused = json.loads(g.caisson(daemon, *words, status=1, env_more=env).stdout)
    check({"Makefile", "run.sh", "out"} <= {x["path"] for x in refused["refused"]} and not refused["applied"], lambda: f"{refused}")
    before = {p: (p.read_bytes() if p.is_file() else None) for p in (host / ".git").rglob("*")}
    done = json.loads(g.caisson(daemon, *words, "--allow-exec", "[!.]*", env_more=env).stdout)
    same({p: (p.read_bytes() if p.is_file() else None) for p in (host / ".git").rglob("*")}, before, "its git folder")
    same(g.markers(), [], "marks after an apply")
    shutil.rmtree(host), shutil.rmtree(state)
    return done


@test("a workspace armed with every setting, hook and filter: commit, diff, merge, export, push and apply run none of them (GIT-01, 02, 04)")
def _(api):
    source = g.hostile("armed")
    url = g.serve(source)
    arm = g.FOLDERS / "arm"
    for client, role in both(api):
        w = Work(client, url, branch=f"armed-{role}")
        stage = arm / role
        stage.mkdir(parents=True)
        (stage / "config").write_text("")
        g.arm(stage)
        text = (stage / "config").read_text().replace(str(stage), "/work/.git")
        w.put("conf", text), w.put("more", (stage / "more").read_text()), w.put("hook", f"#!/bin/sh\n{g.PAYLOAD}\n")
        w.run("cat conf >>.git/config; mv more .git/more; mkdir -p .git/hooks .git/info; chmod +x hook; rm conf; "
              f"for h in {' '.join(g.HOOKS)}; do cp hook .git/hooks/$h; done; rm hook; echo '* filter=evil diff=evil merge=evil' >.git/info/attributes; "
              "mkdir nested && cd nested && git init -q . && git -c user.name=x -c user.email=x commit -q --allow-empty -m x && cp ../.git/config .git/config && cp -r ../.git/hooks .git/ && cd .. && "
              "echo x >>a.txt && rm -f /work/" + g.MARK)
        fork = w.fork()
        fork.run(f"echo y >y.txt; rm -f /work/{g.MARK}")
        w.commit("armed")
        w.patch()
        same(w.post("merge", {"from": fork.id}).status, 200, "merge")
        client.get(f"{w.path}/export?format=bundle"), client.get(f"{w.path}/export?format=patch")
        same(w.post("push").status, 200, "push")
        applied = apply_armed(place.daemon_of(api, role), role, w, source)
        same(applied["left_out"] != [] and {x["path"] for x in applied["changes"]} >= {"a.txt", "y.txt"}, True, f"apply: {applied}")
        same(w.run(f"ls {g.MARK} nested/{g.MARK} 2>/dev/null; true"), "", "marks inside")
        same(g.markers(), [], "marks on the host")
        fork.remove(), w.remove()


@test("git folders that lead elsewhere: a file, a link, a common folder, borrowed objects (GIT-04)")
def _(api):
    url = g.serve(g.make("elsewhere"))
    for client, _ in both(api):
        for trick in ("mv .git real; echo 'gitdir: /work/real' >.git", "mv .git real; ln -s real .git", "echo /work >.git/commondir",
                      "mv .git/refs r; ln -s /work/r .git/refs", "mv .git/objects o; ln -s /work/o .git/objects"):
            w = Work(client, url)
            w.run(f"echo x >x; {trick}")
            g.refused(w.post("commits", {"message": "x"}), "conflict")
            check(b"+++ b/x" in w.patch(), trick)
            w.remove()
        w = Work(client, url)
        w.run("echo /etc >.git/objects/info/alternates; echo x >x")
        w.commit("x")  # what it needs of the mirror is given to it
        w.run("ln -s /etc/passwd stolen; ln -s ../../../../etc/shadow more; echo y >y")
        check(b"root:" not in w.patch(), "a link was followed")
        w.remove()


@test("odd names and messages: options, control characters, right to left, not UTF-8, long ones (GIT-09)")
def _(api):
    url = g.serve(g.make("odd-work"))
    for client, _ in both(api):
        w = Work(client, url)
        w.run("""touch -- -rf --amend '$(id)' ';id' "$(printf 'a\\nb')" "$(printf '\\033[31m')" "$(printf '\\377\\376')" "$(printf '\\342\\200\\256x')" '*' '[a]' ':(top)'""")
        sha = w.commit("--amend \x1b[2J \u202e -m x\n\n" + "y" * 60000)
        same(w.run("git rev-parse HEAD; git status --porcelain; git ls-tree -z --name-only HEAD | tr '\\0' '\\n' | wc -l"), f"{sha}\n14", "all of them")
        w.run("echo 1 >p1; echo 2 >p2; echo 3 >'*'")
        w.commit("star", paths=["*"])  # a name, not a pattern
        same(w.run("git status --porcelain"), "?? p1\n?? p2", "literal")
        same(w.post("commits", {"message": "x" * 70000}).code, "too_large", "too long")
        w.remove()


@test("undo of a commit, of a merge, and of rm -rf * .git: the tree and its status are as before")
def _(api):
    url = g.serve(g.make("undone"))
    for client, _ in both(api):
        w = Work(client, url)
        state = lambda w=w: w.run("git status --porcelain; git rev-parse HEAD; find . -type f ! -path './.git/*' -exec sha256sum {} + | sort; ls -la .git | wc -l")  # noqa: E731
        w.run("echo edit >>a.txt")
        before = state()
        w.commit("to be undone")
        w.client.ok("POST", f"{w.path}/undo", {})
        same(state(), before, "a commit")
        w.run("rm -rf * .git")
        w.client.ok("POST", f"{w.path}/undo", {})
        same(state(), before, "rm -rf")
        w.run("git reset -q --hard; git clean -qfd")
        w.client.ok("POST", f"{w.path}/undo", {})
        same(state(), before, "reset --hard")
        w.remove()


@test("caisson commit, merge, push, export")
def _(api):
    source = g.make("verbs")
    url = g.serve(source)
    for client, role in both(api):
        daemon = place.daemon_of(api, role)
        w = Work(client, url, branch=f"verbs-{role}")
        name = w.made["key"]
        fork = w.fork()
        fork.run("echo f >f")
        w.run("echo 1 >one")
        sha = g.caisson(daemon, "commit", name, "-m", "by the command", "--author", "A B <a@example.org>").stdout.strip()
        same(w.run("git log -1 --format='%H %an'"), f"{sha} A B", "commit")
        g.caisson(daemon, "commit", name, "-m", "again", status=1)
        same(g.caisson(daemon, "merge", name, fork.id).stdout.strip(), sha, "merge")
        same(json.loads(g.caisson(daemon, "commit", name, "-m", "two", "--json", "f").stdout)["sha"], w.run("git rev-parse HEAD"), "--json")
        fork.run("echo g >f"), w.run("echo h >f")
        same(g.caisson(daemon, "merge", name, fork.id, status=1).stderr, "caisson: both have changed f\n", "conflict")
        same(g.caisson(daemon, "push", name).stdout.split()[0], f"verbs-{role}", "push")
        out = g.caisson(daemon, "export", name, "patch").stdout
        same(out.count("\nSubject: "), 2, "patches")
        check(g.caisson(daemon, "export", name, "bundle", "-o", "/dev/null").stdout == "", "bundle")
        fork.remove(), w.remove()


if __name__ == "__main__":
    sys.exit(g.main(__file__))
