#!/usr/bin/env python3
"""The ledger: what is in it, who sees it, what survives, and what tampering is found. TAP.

    tests/api/ledger.py               all, about ten seconds (needs root)
    tests/api/ledger.py tamper        those with the word in their title
"""
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import lib
from lib import Daemon, check, same, test, wait_until

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
OPTIONS = ("--listen", "127.0.0.1:0")


def cli(*words):
    return subprocess.run([lib.cell.BIN / "caisson", *map(str, words)], capture_output=True, check=False, timeout=30)


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
    other, got = api.daemon.client(timeout=10), []
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
    thread.join(5)
    other.close()


@test("a token sees its tenant's records; the rest is the operator's")
def _(api):
    c = api.client
    tokens = [c.ok("POST", "/v1/tokens", {"tenant": n, "scope": ["read", "exec", "manage"]})["token"]
              for n in ("anna", "bert")]
    for token in tokens:
        api.daemon.tcp(token).ok("POST", "/v1/run", {"cmd": ["/bin/true"]})
    wait_until(lambda: len(events(c, "kind=sandbox.gone")) >= 2, 5, "both ran")
    for name, token in zip(("anna", "bert"), tokens):
        seen = events(api.daemon.tcp(token))
        same({r["tenant"] for r in seen}, {name}, "tenants")
        check("exec.ended" in kinds(seen), kinds(seen))
    check("daemon.started" in kinds(events(c)), "the operator sees all")


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
    check(kinds(events(c)).count("daemon.started") >= 6, "daemons")
    c.close()
    daemon.stop()
    wait_written(daemon)
    same(sound(daemon.state / "ledger")["unsigned"], 0, "an orderly end is signed")


@test("a full disk: the daemon goes on, nothing is lost, and all of it is written when there is room", own=True)
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
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        wait_until(lambda: len(events(c, "kind=exec.ended")) >= len(done), 10, "all are written")
        same([r["process"] for r in events(c, "kind=exec.ended")], done, "all, in order, once")
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
    time.sleep(1.1)  # so that a signature stands in the middle
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


@test("tamper: flip, drop, swap, truncate, replay, splice, rewrite: each is found, and where", own=True)
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
    # with the files and the key, elsewhere, and nothing else
    away = lib.HOME / "away"
    away.mkdir()
    for path in (*folder.glob("*.jsonl"), folder / "head"):
        shutil.copy(path, away)
    shutil.copy(folder / "key.pub", lib.HOME / "public.pem")
    same(sound(away, "--key", lib.HOME / "public.pem")["hash"], seen["hash"], "elsewhere")
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


@test("the files are the ledger's: the daemon can neither read its key nor change a record", own=True)
def _(_api):
    daemon = Daemon("own").start()
    folder = daemon.state / "ledger"
    wait_until(lambda: (folder / "key").exists(), 5, "key")
    ids = {(folder / n).stat().st_uid for n in ("key", "key.pub", "00000000000000000001.jsonl")}
    same(len(ids), 1, "one owner")
    same(folder.stat().st_mode & 0o777, 0o700, "the folder")
    status = lib.census.read(f"/proc/{daemon.pid}/status")
    check(f"Uid:\t{ids.pop()}" not in status, "not the daemon's id")
    daemon.stop()


if __name__ == "__main__":
    sys.exit(lib.main(__file__, options=OPTIONS))
