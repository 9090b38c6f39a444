#!/usr/bin/env python3
"""The ledger: what is in it, who sees it, what survives, and what tampering is found. TAP.

    tests/api/ledger.py               all, about twenty seconds (needs root); rows LOG-03 and LOG-04 of the corpus
    tests/api/ledger.py tamper        those with the word in their title
"""
import contextlib
import hashlib
import http.client
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time

import corpus
import lib
from corpus import row
from lib import Daemon, check, same, test, wait_until
from schema import complete, valid

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
OPTIONS = ("--listen", "127.0.0.1:0")


def cli(*words):
    return subprocess.run([lib.cell.BIN / "caisson", *map(str, words)], capture_output=True, check=False, timeout=100)


def verify(folder, *words):
    """What `caisson events --verify` finds: its exit status, and the object."""
    done = cli("events", "--verify", "--ledger", folder, "--json", *words)
    check(done.returncode in (0, 1), f"verify: {done}")
    return done.returncode, json.loads(done.stdout)


def sound(folder, *words):
    status, seen = verify(folder, *words)
    same((status, seen["findings"]), (0, []), "the ledger is sound")
    return seen


def events(client, query=""):
    answer = client.get(f"/v1/events?{query}")
    same(answer.status, 200, f"events: {answer}")
    return [json.loads(line) for line in answer.body.splitlines()]


def records_in(folder):
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]


def kinds(records):
    return [r["kind"] for r in records]


def writers(daemon):
    """Of this daemon's ledger, whoever its launcher was: descriptor 4 is the folder."""
    found = []
    for p in lib.census.pids():
        with contextlib.suppress(OSError):
            if (s := lib.stat_of(p)) and s[0] == "caisson-ledger" and \
                    os.readlink(f"/proc/{p}/fd/4") == str(daemon.state / "ledger"):
                found.append(p)
    return found


def wait_written(daemon):
    wait_until(lambda: (lib.census.reap(), not writers(daemon))[1], 5, "the writer ends")


def wait_records(client, query, n):
    return wait_until(lambda: (found := events(client, query)) and len(found) >= n and found, 5, f"{n} of {query}")


# ---- what is in it ---------------------------------------------------------------------------

@test("a command: arguments, folder, names of variables, end, usage, hashes of its output, programs")
def _(api):
    c = api.client
    box = c.create()
    done = c.execute(box, "printf out; printf err >&2; /bin/true; exit 3", env={"TOKEN": "s3cr3t-value"})
    found = wait_records(c, f"process={done['id']}", 3)
    same(kinds(found), ["exec.started", "process.started", "exec.ended"], "kinds")
    started, ran, ended = found
    same(started["data"]["argv"][-1], "printf out; printf err >&2; /bin/true; exit 3", "argv")
    same((started["data"]["cwd"], started["data"]["env"]), ("/work", ["TOKEN"]), "cwd, env")
    same(ran["data"]["program"], "/bin/true", "program")
    same((ended["data"]["state"], ended["data"]["exit_code"]), ("exited", 3), "end")
    same(ended["data"]["sha256"], {"stdout": hashlib.sha256(b"out").hexdigest(),
                                   "stderr": hashlib.sha256(b"err").hexdigest()}, "hashes")
    check(ended["data"]["usage"]["ms"] >= 0, "usage")
    same({r["sandbox"] for r in found}, {box["id"]}, "sandbox")
    check(b"s3cr3t-value" not in b"".join(p.read_bytes() for p in (api.daemon.state / "ledger").iterdir()), "a value")
    c.remove(box)
    life = wait_until(lambda: (x := events(c, f"sandbox={box['id']}"))[-1]["kind"] == "sandbox.gone" and x, 5, "gone")
    same(kinds(life)[:2], ["sandbox.created", "sandbox.state"], "life")
    prev, n = "0" * 64, 0
    for r in life:
        n += 1
        same(r["link"], {"seq": n, "prev": prev}, "the chain of the sandbox")
        prev = r["hash"]


@test("much output is hashed too, beside other work")
def _(api):
    c = api.client
    box = c.create()
    done = c.execute(box, ["/bin/sh", "-c", "head -c 3000000 /dev/zero"])
    found = wait_records(c, f"process={done['id']}&kind=exec.output", 1)
    same(found[0]["data"]["sha256"]["stdout"], hashlib.sha256(bytes(3000000)).hexdigest(), "hash")


@test("of long arguments the beginning, and a hash of all")
def _(api):
    c = api.client
    box = c.create()
    argv = ["/bin/true", "x" * 5000, "the end"]
    done = c.execute(box, argv)
    data = wait_records(c, f"process={done['id']}&kind=exec.started", 1)[0]["data"]
    same(data["argv_sha256"], hashlib.sha256(b"".join(a.encode() + b"\0" for a in argv)).hexdigest(), "hash")
    check("argv_sha256" not in wait_records(c, "kind=exec.started&limit=1", 1)[0]["data"], "only then")


@test("workspaces: made, changed by which command, undone, forked, removed")
def _(api):
    c = api.client
    w = c.ok("PUT", "/v1/workspaces/led", {})
    done = c.ok("POST", f"/v1/workspaces/{w['id']}/exec", {"cmd": "echo 1 >a"})
    c.ok("POST", f"/v1/workspaces/{w['id']}/undo", {})
    c.ok("POST", f"/v1/workspaces/{w['id']}/fork", {"n": 2})
    for row in c.ok("GET", "/v1/workspaces")["workspaces"]:
        c.delete(f"/v1/workspaces/{row['id']}?force=1")
    found = wait_records(c, f"workspace={w['id']}&kind=workspace", 5)
    names = kinds(found)
    for kind in ("created", "changed", "moved", "forked", "removed"):
        check(f"workspace.{kind}" in names, f"{kind} is not in {names}")
    changed = [r for r in found if r["kind"] == "workspace.changed" and r.get("process") == done["id"]]
    check(len(changed) == 1 and changed[0]["data"]["files"] >= 1, f"what the command changed: {changed}")
    ended = wait_records(c, f"process={done['id']}&kind=exec.ended", 1)
    same(ended[0]["data"]["workspace"]["checkpoint"], changed[0]["data"]["point"], "checkpoint after it")


@test("who: the uid of a socket, the id of a token; of commands and of what goes on by itself, too")
def _(api):
    c = api.client
    made = c.ok("POST", "/v1/tokens", {"tenant": "carl", "scope": ["read", "exec", "manage"]})
    carl = api.daemon.tcp(made["token"])
    for client, actor in ((c, "uid:0"), (carl, f"token:{made['id']}")):
        w = client.ok("PUT", "/v1/workspaces/who", {})
        done = client.ok("POST", f"/v1/workspaces/{w['id']}/exec", {"cmd": "echo 1 >a"})
        client.ok("POST", f"/v1/workspaces/{w['id']}/undo", {})
        wait_records(c, f"workspace={w['id']}&kind=workspace.moved", 1)
        for r in events(c, f"workspace={w['id']}"):
            if r["kind"] in ("workspace.created", "workspace.moved", "exec.started", "exec.ended", "sandbox.created"):
                same(r.get("actor"), actor, r["kind"])
        same({r.get("actor") for r in events(c, f"process={done['id']}&kind=exec")}, {actor}, "its command")
        client.delete(f"/v1/workspaces/{w['id']}?force=1")
    token = [r for r in events(c, "kind=token") if r["data"]["token"] == made["id"]]
    same([(r["kind"], r["actor"], r["data"]["tenant"]) for r in token], [("token.made", "uid:0", "carl")], "the token")
    check(made["token"].encode() not in b"".join(p.read_bytes() for p in (api.daemon.state / "ledger").iterdir()), "its text")
    same(c.delete(f"/v1/tokens/{made['id']}").status in (204, 404), True, "revoke")


@test("files of a command: added, changed, deleted, other rights, renamed; by name, and bounded")
def _(api):
    c = api.client
    w = c.ok("PUT", "/v1/workspaces/files", {})
    run = lambda cmd: c.ok("POST", f"/v1/workspaces/{w['id']}/exec", {"cmd": cmd})["id"]  # noqa: E731
    run("mkdir d; echo 1 >kept; echo 2 >gone; echo 3 >changed; echo 4 >rights; echo longer text >d/old")
    second = run("echo x >>changed; rm gone; chmod 600 rights; echo n >new; mv d/old d/renamed; printf x >\"$(printf 'a\\033[2J\\377')\"")
    third = run("mkdir many; cd many; i=0; while [ $i -lt 300 ]; do : >f$i; i=$((i+1)); done")
    first, found = (wait_records(c, f"process={p}&kind=workspace.files", 1)[0]["data"] for p in (second, third))
    by_status = {}
    for n in first["names"]:
        by_status.setdefault(n["status"], []).append(n.get("path") or "base64")
    same({k: sorted(v) for k, v in by_status.items()},
         {"A": ["base64", "new"], "M": ["changed"], "D": ["gone"], "mode": ["rights"], "R": ["d/renamed"]}, "names")
    same({k: first[k] for k in ("added", "modified", "deleted", "mode", "renamed", "files")},
         {"added": 2, "modified": 1, "deleted": 1, "mode": 1, "renamed": 1, "files": 6}, "counts")
    same((found["added"], found["files"], len(found["names"]), found["unnamed"]), (301, 301, 100, 201), "bounded")
    ended = wait_records(c, f"process={second}&kind=exec.ended", 1)[0]["data"]
    same(first["point"], ended["workspace"]["checkpoint"], "of which point")
    started = wait_records(c, f"process={third}&kind=exec.started", 1)[0]["data"]
    same(started["at"], ended["workspace"]["at"], "the point before the next one")
    c.delete(f"/v1/workspaces/{w['id']}?force=1")


GIT = ("git init -q -b main . && echo 1 >a && git add a && git -c user.name=a -c user.email=a@example.org commit -q -m one && echo 2 >>a")


@test("promotions: commit, export, apply, with the tree of what was accepted, on disk before the answer")
def _(api):
    c = api.client
    w = c.ok("PUT", "/v1/workspaces/promote", {})
    at = f"/v1/workspaces/{w['id']}"
    tree = lambda: c.ok("POST", f"{at}/exec", {"cmd": "git rev-parse HEAD HEAD^{tree}"})["stdout"].split()  # noqa: E731
    c.ok("POST", f"{at}/exec", {"cmd": GIT})
    answer = c.ok("POST", f"{at}/commits", {"message": "two"})
    same([answer["sha"], answer["tree"]], tree(), "what is answered")
    # Synced before it was answered: it is there at once.
    last = events(c, f"workspace={w['id']}&kind=git.committed")[-1]
    same((last["data"]["commit"], last["data"]["tree"], last["actor"]), (answer["sha"], answer["tree"], "uid:0"), "commit")
    for form, name in (("bundle", "bundle"), ("patch", "patch")):
        body = c.get(f"{at}/export?format={form}").body
        last = events(c, f"workspace={w['id']}&kind=workspace.exported")[-1]["data"]
        same((last["format"], last["commit"], last["tree"], last["bytes"], last["sha256"]),
             (name, *tree(), len(body), hashlib.sha256(body).hexdigest()), form)
    got = c.ok("POST", "/v1/run", {"cmd": "echo 1 >a; echo 2 >Makefile", "collect": ["*"]})["collected"]
    last = events(c, "kind=run.collected")[-1]
    same((last["data"]["files"], last["data"]["left_out"], last["data"]["names"], last["actor"], len(got)), (1, 1, [{"bytes": 2, "path": "a", "mode": "0644"}], "uid:0", 2), "collect")
    same(last["data"]["sha256"], hashlib.sha256(b"0644 2 a\x001\n").hexdigest(), "the hash of it")
    folder = lib.HOME / "to"
    folder.mkdir()
    done = subprocess.run([lib.cell.BIN / "caisson", "apply", "promote", "--to", folder, "--yes"], capture_output=True, check=False,
                          env={"CAISSON_SOCKET": str(api.daemon.socket), "HOME": str(lib.HOME), "PATH": os.environ["PATH"]}, timeout=100)
    same((done.returncode, (folder / "a").read_text()), (0, "1\n2\n"), f"apply: {done}")
    begun, ended = events(c, f"workspace={w['id']}&kind=workspace.applied")
    same([r["data"]["state"] for r in (begun, ended)], ["begun", "done"], "before and after")
    for r in (begun, ended):
        same((r["data"]["tree"], r["data"]["to"], r["actor"]), (tree()[1], str(folder), "uid:0"), "what, where, who")
    same([n["path"] for n in begun["data"]["names"]], ["a"], "names")
    for bad in ({}, {"at": "base", "to": "/x", "state": "maybe"}, {"at": "base", "to": "/x", "state": "done", "changes": [1]},
                {"at": "nowhere", "to": "/x", "state": "done"}):
        check(c.post(f"{at}/applied", bad).status in (400, 404), bad)
    same(len(events(c, f"workspace={w['id']}&kind=workspace.applied")), 2, "no word of those")
    shutil.rmtree(folder)
    c.delete(f"{at}?force=1")


@test("images, repositories, ports: what was added and removed, by whom")
def _(api):
    c = api.client
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    answer = c.put("/v1/images/tiny", archive.getvalue(), Content_Type="application/x-tar")
    same(answer.status, 201, f"image: {answer}")
    c.delete("/v1/images/tiny")
    box = c.create()
    forward = c.ok("POST", f"/v1/sandboxes/{box['id']}/ports", {"port": 8080})
    c.delete(f"/v1/sandboxes/{box['id']}/ports/8080")
    found = wait_records(c, "kind=image,port", 4)
    same([(r["kind"], r["data"].get("name") or r["data"]["port"], r["actor"]) for r in found],
         [("image.added", "tiny", "uid:0"), ("image.removed", "tiny", "uid:0"), ("port.opened", 8080, "uid:0"), ("port.closed", 8080, "uid:0")], "records")
    same(found[2]["data"]["local_port"], forward["local_port"], "where")
    c.remove(box)


@test("foreign text ends no line and moves no terminal")
def _(api):
    c = api.client
    box = c.create()
    evil = "\x1b]52;c;AAAA\x07\x1b[2J\u202e\x7f\u009b\n{\"seq\":1}"
    c.execute(box, ["/bin/true", evil], label=evil)
    done = wait_records(c, f"sandbox={box['id']}&kind=exec.ended", 1)
    line = [r for r in events(c, f"sandbox={box['id']}") if r["kind"] == "exec.started"][0]
    same(line["data"]["argv"][1], evil, "it is there")
    for form in ("text", "jsonl", "ocsf", "otlp"):
        shown = subprocess.run([lib.cell.BIN / "caisson", "events", "--sandbox", box["id"], "--format", form],
                               env={"CAISSON_SOCKET": str(api.daemon.socket)}, capture_output=True, check=True).stdout
        check(re.fullmatch(rb"[\n -~]+", shown), f"{form}: {shown!r}")
        check(len(shown.splitlines()) >= len(done), form)


@test("filters, follow, Server-Sent Events, a page")
def _(api):
    c = api.client
    box = c.create()
    c.execute(box, "true")
    wait_records(c, f"sandbox={box['id']}&kind=exec", 2)
    same(set(kinds(events(c, "kind=exec.ended,sandbox.created"))), {"exec.ended", "sandbox.created"}, "kinds")
    last = events(c, "limit=3")
    same([r["seq"] for r in last], [1, 2, 3], "limit")
    same(events(c, "after=2&limit=1")[0]["seq"], 3, "after")
    same(events(c, f"since={int(time.time() * 1000) + 100000}"), [], "since")
    same(c.get("/v1/events?kind=" + ",".join("abcdefghijklmnopq")).status, 400, "too many kinds")
    same(c.get("/v1/events?sandbox=nobody").status, 404, "no such sandbox")
    sse = c.get(f"/v1/events?sandbox={box['id']}", Accept="text/event-stream").body.decode()
    check(re.match(r"id: \d+\nevent: sandbox.created\ndata: \{", sse), sse[:100])
    other, got = api.daemon.client(), []
    response = other.send("GET", f"/v1/events?follow=1&sandbox={box['id']}&kind=exec.started&after={last[-1]['seq']}")

    def read():
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            while line := response.readline():
                got.append(json.loads(line))
    thread = threading.Thread(target=read)
    thread.start()
    wait_until(lambda: len(got) == 1, 5, "what is there")
    c.execute(box, "echo more")
    wait_until(lambda: len(got) == 2, 5, "what is new")
    other.connection.sock and other.connection.sock.shutdown(2)
    thread.join(lib.PATIENCE)
    other.close()


@test("a token sees its tenant's records; the rest is the operator's")
def _(api):
    c = api.client
    tokens = [c.ok("POST", "/v1/tokens", {"tenant": n, "scope": ["read", "exec", "manage"]})["token"]
              for n in ("anna", "bert")]
    for token in tokens:
        api.daemon.tcp(token).ok("POST", "/v1/run", {"cmd": ["/bin/true"]})
    for name, token in zip(("anna", "bert"), tokens):
        seen = wait_until(lambda token=token: "exec.ended" in kinds(x := events(api.daemon.tcp(token))) and x, what=f"{name} ran")
        same({r["tenant"] for r in seen}, {name}, "tenants")
    check("daemon.started" in kinds(events(c)), "the operator sees all")


@test("every record is what the published schema says")
def _(api):
    complete()
    seen = valid(events(api.client))
    for kind in ("daemon.started", "sandbox.created", "exec.ended", "process.started"):
        check(seen[kind] > 0, f"{kind} of {seen}")
    print(f"| {sum(seen.values())} records of {len(seen)} kinds are as docs/ledger.schema.json says")


# ---- what survives ---------------------------------------------------------------------------

@test("kill -9 of writer, daemon, launcher, all: what was answered is on record, once, and all is sound", own=True)
def _(_api):
    daemon = Daemon("ledger").start()
    answered = []
    for who in ("writer", "daemon", "writer", "launcher", "all", "writer+daemon", "daemon"):
        c = daemon.client()
        for _ in range(5):
            answered.append(c.ok("POST", "/v1/run", {"cmd": ["/bin/true"]})["id"])
        for pid in (writers(daemon) if who in ("writer", "all", "writer+daemon") else []):
            os.kill(pid, signal.SIGKILL)
        if who in ("daemon", "writer+daemon"):
            os.kill(daemon.pid, signal.SIGKILL)
        if who in ("launcher", "all"):
            daemon.kill()
            daemon.start()
        daemon.wait_ready()
        c.close()
    c = daemon.client()
    ended = wait_until(lambda: (x := [r["process"] for r in events(c, "kind=exec.ended")])
                       and set(answered) <= set(x) and x, 5, "all that was answered")
    lost = len(answered) - len(set(ended) & set(answered))
    same(lost, 0, "answered and not on record")
    numbers = [r["src"] for r in events(c) if "src" in r]
    same(len(numbers), len(set(numbers)), "no word twice")
    wait_until(lambda: kinds(events(c)).count("daemon.started") >= 6, what="daemons")
    c.close()
    daemon.stop()
    wait_written(daemon)
    same(sound(daemon.state / "ledger")["unsigned"], 0, "an orderly end is signed")


@test("kill -9 under load, again and again: nothing that was answered is missing, nothing is there twice, all is sound", own=True)
def _(_api):
    daemon = Daemon("load").start()
    answered, is_over = [], threading.Event()

    def work():
        while not is_over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, lib.Failed):
                c = daemon.client(timeout=20)
                while not is_over.is_set():
                    answered.append(c.ok("POST", "/v1/run", {"cmd": ["/bin/true"]})["id"])
            time.sleep(0.02)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(16):
        time.sleep(0.1)
        if i in (5, 11) and daemon.pid:
            os.kill(daemon.pid, signal.SIGKILL)
        for pid in writers(daemon):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(answered) > 5, what="some commands")
    is_over.set()
    for thread in threads:
        thread.join(2 * lib.PATIENCE)
    daemon.wait_ready()
    c = daemon.client()
    wait_until(lambda: set(answered) <= {r["process"] for r in events(c, "kind=exec.ended")}, 10,
               lambda: f"all of {len(answered)}")
    words = [r["src"] for r in events(c) if "src" in r]
    same(len(words), len(set(words)), "no word twice")
    c.close()
    daemon.stop()
    wait_written(daemon)
    sound(daemon.state / "ledger")
    valid(records_in(daemon.state / "ledger"))
    print(f"| {len(answered)} commands answered while writers and daemons were killed, all on record")


@row("LOG-04", "a full disk: nothing is lost, at last nothing new is begun; with room again all of it is written, once", own=True)
def _(_api):
    daemon = Daemon("full").start()
    folder = daemon.state / "ledger"
    wait_until((folder / "head").exists, 5, "a ledger")
    daemon.stop()
    wait_written(daemon)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", folder], check=True)
    try:
        daemon.start()
        c = daemon.client()
        box = c.create()
        done = [c.execute(box, ["/bin/true", "x" * 3500])["id"] for _ in range(70)]
        wait_until(lambda: "the ledger takes nothing" in lib.census.read(daemon.log), 5, "it is said")
        same(c.get("/v1/health").status, 200, "health")
        check(len(events(c, "kind=exec.ended")) < len(done), "it was not full")
        refused, wide = None, {f"V{i}" + "x" * 250: "" for i in range(110)}
        for _ in range(700):  # 16 MiB that nobody takes
            refused = c.post(f"/v1/sandboxes/{box['id']}/exec", {"cmd": ["/bin/true"], "env": wide})
            if refused.status != 200:
                break
            done.append(refused.json["id"])
        same((refused.status, refused.code), (503, "sandbox_unavailable"), "what cannot be recorded does not begin")
        check("ledger" in refused.body.decode(), refused)
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        wait_until(lambda: len(events(c, "kind=exec.ended")) >= len(done), 10, "all are written")
        same([r["process"] for r in events(c, "kind=exec.ended")], done, "all, in order, once")
        same(c.execute(box, ["/bin/true"])["exit_code"], 0, "it goes on")
        c.remove(box)
        c.close()
        daemon.stop()
        wait_written(daemon)
        sound(folder)
    finally:
        with contextlib.suppress(lib.Failed):
            daemon.stop()
        subprocess.run(["umount", "-l", folder], check=False)


# ---- tampering -------------------------------------------------------------------------------

def made(name, runs):
    """A ledger of a daemon that has ended: its folder."""
    daemon = Daemon(name).start()
    c = daemon.client()
    for _ in range(runs):
        c.ok("POST", "/v1/run", {"cmd": ["/bin/true"]})
    file = daemon.state / "ledger/00000000000000000001.jsonl"
    wait_until(lambda: '"kind":"ledger.checkpoint"' in file.read_text().splitlines()[-1], what="a signature in the middle")
    for _ in range(runs):
        c.ok("POST", "/v1/run", {"cmd": ["/bin/false"]})
    c.close()
    daemon.stop()
    wait_written(daemon)
    return daemon.state / "ledger"


def rewrite(lines):
    """By one who knows the format, and has no key: all hashes are right again."""
    prev, heads, out = "0" * 64, {}, []
    for line in lines:
        r = json.loads(line)
        text = line[:line.rindex(',"hash":"')]
        text = text[:text.rindex(',"prev":"')] + f',"prev":"{prev}"'
        if "link" in r:
            n, head = heads.get(r["sandbox"], (0, "0" * 64))
            text = re.sub(r'"link":\{"seq":\d+,"prev":"[0-9a-f]+"\}', f'"link":{{"seq":{n + 1},"prev":"{head}"}}', text, count=1)
        prev = hashlib.sha256(text.encode()).hexdigest()
        if "link" in r:
            heads[r["sandbox"]] = (n + 1, prev)
        out.append(f'{text},"hash":"{prev}"}}')
    return out


def flipped(x, k, _other=None):
    return [*x[:k], x[k].replace('"exit_code":0', '"exit_code":1'), *x[k + 1:]]


TAMPERS = (  # what is done to the lines x, at k the end of a command, y: of another ledger; what is found first, and how far from k
    ("nothing", lambda x, k, y: x, None, 0),
    ("flip", flipped, "changed", 0),
    ("drop", lambda x, k, y: [*x[:k], *x[k + 1:]], "missing", 0),
    ("drop the first", lambda x, k, y: x[1:], "segment", None),
    ("swap", lambda x, k, y: [*x[:k], x[k + 1], x[k], *x[k + 2:]], "missing", 0),
    ("truncate", lambda x, k, y: x[:-4], "truncated", None),
    ("replay", lambda x, k, y: [*x, x[k]], "order", 0),
    ("replay in place", lambda x, k, y: [*x[:k + 2], x[k], *x[k + 3:]], "order", 0),
    ("splice", lambda x, k, y: [*x[:k], *y[k:]], "link", 0),
    ("another ledger", lambda x, k, y: y, "foreign", None),
    ("rewrite", lambda x, k, y: rewrite(flipped(x, k)), "signature", None),
    ("cut a line", lambda x, k, y: [*x[:k], x[k][:50], *x[k + 1:]], "form", 0),
)


SWEEP = (  # what is done at record k
    lambda x, k: [*x[:k], *x[k + 1:]],
    lambda x, k: [*x[:k], x[k].replace('"ts":1', '"ts":2', 1), *x[k + 1:]],
    lambda x, k: [*x[:k], x[k][:-70] + ("0" if x[k][-70] != "0" else "1") + x[k][-69:], *x[k + 1:]],
    lambda x, k: [*x[:k], x[k].replace('"kind":"', '"kind":"x', 1), *x[k + 1:]],
    lambda x, k: [*x[:k + 1], x[k], *x[k + 1:]],
)


def sweep(folder, name, lines):
    """One change at every record, by one who has no key."""
    copy, n = lib.HOME / "sweep", 0
    shutil.copytree(folder, copy)
    for k in range(1, len(lines) - 1):
        for change in SWEEP:
            (copy / name).write_text("\n".join(change(lines, k)) + "\n")
            status, found = verify(copy, "--key", folder / "key.pub")
            check(status == 1 and found["findings"][0]["record"] == k + 1, lambda: f"record {k + 1}: {found}")
            n += 1
    shutil.rmtree(copy)
    return n


@row("LOG-03", "records deleted, edited, cut off, moved, replayed, spliced, rewritten: each is found, and where", own=True)
def _(_api):
    folder, other = made("one", 3), made("two", 3)
    name = "00000000000000000001.jsonl"
    ours, theirs = ((f / name).read_text().splitlines() for f in (folder, other))
    seen = sound(folder)
    k = next(i for i, line in enumerate(ours) if '"kind":"exec.ended"' in line)
    for title, tamper, fault, at in TAMPERS:
        copy = lib.HOME / "copy"
        shutil.copytree(folder, copy)
        (copy / name).write_text("\n".join(tamper(ours, k, theirs)) + "\n")
        status, found = verify(copy, "--key", folder / "key.pub")
        shutil.rmtree(copy)
        if fault is None:
            same((status, found["findings"]), (0, []), title)
            continue
        same(status, 1, f"{title}: exit status")
        first = found["findings"][0]
        same(first["fault"], fault, f"{title}: {first}")
        if at is not None:
            same(first["record"], k + 1 + at, f"{title}: {first}")
    n = sweep(folder, name, ours)
    # with the files and the key, elsewhere, and nothing else
    away = lib.HOME / "away"
    away.mkdir()
    for path in (*folder.glob("*.jsonl"), folder / "head"):
        shutil.copy(path, away)
    shutil.copy(folder / "key.pub", lib.HOME / "public.pem")
    same(sound(away, "--key", lib.HOME / "public.pem")["hash"], seen["hash"], "elsewhere")
    same(sound(away, "--key", lib.HOME / "public.pem", "--from", seen["last"])["hash"], seen["hash"], "the last file alone")
    # an older head and fewer lines are a whole ledger; who remembers better, finds it
    seals = [i for i, line in enumerate(ours) if '"kind":"ledger.checkpoint"' in line]
    (away / name).write_text("\n".join(ours[:seals[0] + 1]) + "\n")
    (away / "head").write_text(ours[seals[0]] + "\n")
    sound(away, "--key", lib.HOME / "public.pem")
    status, found = verify(away, "--key", lib.HOME / "public.pem", "--expect", f"{seen['last']}:{seen['hash']}")
    same((status, found["findings"][0]["fault"]), (1, "truncated"), "expected")
    said = cli("events", "--verify", "--ledger", away, "--key", lib.HOME / "public.pem").stdout.decode()
    check(said.startswith("sound: ") and "\nlast: " in said, said)
    shutil.rmtree(away)
    valid(records_in(folder))
    return f"{n} changes, one at each record: all found"


@test("a daemon that starts with a ledger whose end was cut off records that first, and verify goes on to say so", own=True)
def _(_api):
    for cut in (0, 5):
        folder = made(f"cut{cut}", 2)
        name = folder / "00000000000000000001.jsonl"
        lines = name.read_text().splitlines()
        with name.open("r+") as f:  # the same file, owner and mode: only shorter
            f.truncate(len("\n".join(lines[:len(lines) - cut]) + "\n"))
        daemon = Daemon(f"cut{cut}").start()
        c = daemon.client()
        c.ok("POST", "/v1/run", {"cmd": ["/bin/true"]})
        last = len(lines)
        news = events(c, f"after={last}")
        c.close()
        daemon.stop()
        wait_written(daemon)
        log = lib.census.read(daemon.log)
        if not cut:
            sound(folder)
            check("signed head" not in log, "nothing to say")
            continue
        same((news[0]["kind"], news[0]["seq"], news[0]["data"]),
             ("ledger.damaged", last + 1, {"file": "head", "fault": "truncated", "record": last, "from": last - cut + 1, "to": last}), "first of all")
        check("not what its signed head says" in log, "the journal")
        for _ in range(2):
            status, found = verify(folder)
            same((status, [(f["fault"], f["from"], f["to"]) for f in found["findings"]]), (1, [("missing", last - cut + 1, last)]), "verify")
            daemon.start()
            daemon.stop()
            wait_written(daemon)
        valid(records_in(folder))


@test("the files are the ledger's: the daemon can neither read its key nor change a record", own=True)
def _(_api):
    daemon = Daemon("own").start()
    folder = daemon.state / "ledger"
    names = ("key", "key.pub", "00000000000000000001.jsonl")
    wait_until(lambda: all((folder / n).exists() for n in names), what="its files")
    ids = {(folder / n).stat().st_uid for n in names}
    same(len(ids), 1, "one owner")
    same(folder.stat().st_mode & 0o777, 0o700, "the folder")
    status = lib.census.read(f"/proc/{daemon.pid}/status")
    check(f"Uid:\t{ids.pop()}" not in status, "not the daemon's id")
    daemon.stop()


if __name__ == "__main__":
    sys.exit(lib.main(__file__, options=OPTIONS, extra=lambda: corpus.print_table({})))
