#!/usr/bin/env python3
"""The door for clients of E2B, byte by byte: who may, which sandbox is meant, envelopes, forms, signatures, hosts. TAP.

    tests/api/e2b.py          all (needs root)
    tests/api/e2b.py signed   those with the word in their title

What their own packages make of it: tests/e2b/sdk.py.
"""
import base64
import contextlib
import gzip
import hashlib
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.parse

import lib
from door import DOMAIN, OFFLINE, Sandbox, door, signature
from lib import check, same, test, wait_until

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import oci  # noqa: E402

SMALL = oci.tar(*oci.small_root())  # before the cell hides where it comes from


@test("life: made, listed by metadata and page, found, given time, paused, connected, removed", own=True)
def _(_api):
    with door("life") as d:
        first = d.create(metadata={"a": "b c&d", "n": "1"}, timeout=60)
        other = d.ok("POST", "/sandboxes", {**OFFLINE, "metadata": {"a": "b c&d"}}, status=201)
        check(first.made["domain"] == DOMAIN and first.made["clientID"] and first.made["envdVersion"], first.made)
        same(d.ok("GET", f"/sandboxes/{first.id}")["metadata"], {"a": "b c&d", "n": "1"}, "metadata")
        query = "metadata=" + urllib.parse.quote("a=" + urllib.parse.quote(urllib.parse.quote("b c&d")))
        page = d.call("GET", f"/v2/sandboxes?{query}&limit=1&order=asc")
        same([s["sandboxID"] for s in page.json], [first.id], "the first page")
        rest = d.call("GET", f"/v2/sandboxes?{query}&limit=1&order=asc&nextToken={page.headers['X-Next-Token']}")
        same(([s["sandboxID"] for s in rest.json], rest.headers["X-Next-Token"]), ([other["sandboxID"]], None), "the last page")
        same([s["sandboxID"] for s in d.ok("GET", "/v2/sandboxes?metadata=n%3D1")], [first.id], "by another")
        d.ok("POST", f"/sandboxes/{first.id}/timeout", {"timeout": 600}, status=204)
        end = d.ok("GET", f"/sandboxes/{first.id}")["endAt"]
        d.ok("POST", f"/v2/sandboxes/{first.id}/connect", {"timeout": 5})
        same(d.ok("GET", f"/sandboxes/{first.id}")["endAt"], end, "connect does not shorten")
        d.ok("POST", f"/sandboxes/{first.id}/pause", status=204)
        d.ok("POST", f"/sandboxes/{first.id}/pause", status=409)
        same([s["sandboxID"] for s in d.ok("GET", "/v2/sandboxes?state=paused")], [first.id], "paused ones")
        same(d.call("GET", "/health", headers=first.headers).status, 502, "paused is not there")
        d.ok("POST", f"/sandboxes/{first.id}/connect", {"timeout": 60}, status=201)
        same(d.call("GET", "/health", headers=first.headers).status, 204, "and there again")
        for one in (first.id, other["sandboxID"]):
            d.ok("DELETE", f"/sandboxes/{one}", status=204)
            same(d.ok("DELETE", f"/sandboxes/{one}", status=404)["code"], 404, "the body says it too")
        same(d.ok("GET", "/v2/sandboxes"), [], "none is left")
        wait_until(lambda: d.daemon.client().ok("GET", "/v1/workspaces")["workspaces"] == [], 5, "its workspace goes with it")


@test("life: its time is over: removed, frozen, or its files kept without what ran", own=True)
def _(_api):
    with door("lapse") as d:
        gone, frozen, bare = d.create(timeout=1), d.create(timeout=600, autoPause=True), d.create(timeout=600, autoPause=True, autoPauseMemory=False)
        boot = bare.run("cat /proc/sys/kernel/random/boot_id; echo kept >f")[0]
        frozen.run("(while sleep 0.1; do date +%N >/tmp/tick; done) >/dev/null 2>&1 & echo in memory >/tmp/m")
        for s in (frozen, bare):
            d.ok("POST", f"/sandboxes/{s.id}/timeout", {"timeout": 1}, status=204)
        for s in (frozen, bare):
            wait_until(lambda: d.ok("GET", f"/sandboxes/{s.id}")["state"] == "paused", 6)
        wait_until(lambda: d.call("GET", f"/sandboxes/{gone.id}").status == 404, 6)
        for s in (frozen, bare):
            d.ok("POST", f"/sandboxes/{s.id}/connect", {"timeout": 60}, status=201)
        look = "cat /tmp/m; for i in $(seq 100); do b=$(cat /tmp/tick); : ${a:=$b}; [ -n \"$b\" ] && [ \"$a\" != \"$b\" ] && echo ticks && break; sleep 0.1; done"
        same(frozen.run(look)[0], "in memory\nticks\n", "what ran goes on")
        out = bare.run("cat f; cat /proc/sys/kernel/random/boot_id; ls /tmp | wc -l")[0].split()
        check(out[0] == "kept" and out[1] != boot.strip() and out[2] == "0", out)
        same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}}).status, 400, "both")


@test("who may: a key of ours with its scope and tenant, the token of the sandbox, nobody else", own=True)
def _(_api):
    with door("auth") as d:
        s, other = d.create(), d.create()
        same(d.call("GET", "/v2/sandboxes", key="e2b_00").json["code"], 401, "an unknown key")
        same(d.call("POST", "/v2/sandboxes", OFFLINE, key=d.token("read")).status, 403, "a key that may read")
        same(d.ok("GET", "/v2/sandboxes", key=d.token("manage", tenant="other")), [], "another tenant's")
        same(d.call("GET", f"/sandboxes/{s.id}", key=d.token("manage", tenant="other")).status, 404, "nor by name")
        for token, want in ((s.token, 200), (other.token, 401), ("", 401), (s.token[:-1] + "0", 401 if s.token[-1] != "0" else 200)):
            same(d.call("POST", "/process.Process/List", b"{}", {**s.headers, "X-Access-Token": token}).status, want, token)
        bare = {k: v for k, v in s.headers.items() if k != "E2b-Sandbox-Id"}
        same(d.call("POST", "/process.Process/List", b"{}", bare).status, 200, "the token alone says which")
        for name in ("", "i", "sb_" + s.id[1:], s.id[:-1], s.id + "x", "i" + "0" * 26, "../x"):
            same(d.call("GET", "/health", headers={**s.headers, "E2b-Sandbox-Id": name}).status, 502, repr(name))
        same(d.call("GET", "/health", headers={**s.headers, "Host": "evil.example.org"}).status, 403, "a Host of somebody else")
        same(d.call("GET", "/v2/sandboxes", headers={"Origin": "https://evil.example.org"}).status, 403, "a page of somebody else")
        same(s.rpc("process.Process/List", {}, Authorization="Basic " + base64.b64encode(b"nobody9:").decode()).status, 200, "no user is needed to look")


@test("process: output, ends, time, users, folders, and what is no envelope", own=True)
def _(_api):
    with door("process") as d:
        s = d.create(envVars={"FOO": "1"})
        out, end = s.run("echo $FOO $HOME $E2B_SANDBOX $E2B_SANDBOX_ID; pwd")
        same((out, end["exitCode"], end["exited"]), (f"1 /home/user true {s.id}\n/home/user\n", 0, True), "the environment")
        same(s.run("exit 3")[1], {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}, "a bad end")
        same(s.run("kill -9 $$")[1]["status"], "signal: killed", "a killed one")
        same(s.run("sleep 9", **{"Connect-Timeout-Ms": "300"})[1]["code"], "deadline_exceeded", "its time is over")
        same(s.run("id -u", Authorization="Basic " + base64.b64encode(b"root:").decode())[0], "0\n", "root inside")
        same(s.run("id", Authorization="Basic " + base64.b64encode(b"nobody9:").decode())[1], {"code": "unauthenticated", "message": "invalid username: 'nobody9'"}, "a user that is none")
        start = {"process": {"cmd": "/bin/true", "cwd": "/nowhere"}}
        same(s.stream("process.Process/Start", start)[-1][1]["error"]["code"], "invalid_argument", "a folder that is none")
        for raw in (b"", b"\0", b"\0\0\0\0\2{", b"\0\0\0\0\2{}x", b"\1\0\0\0\2{}", b"\0\xff\xff\xff\xff{}", b"\0\0\0\0\2[]", b"{}", b"\0\0\0\0\2{}"):
            same(s.stream("process.Process/Start", None, raw=raw)[-1][1]["error"]["code"], "invalid_argument", raw)
        same(s.rpc("process.Process/SendSignal", {"process": {"pid": 999999}, "signal": "SIGNAL_SIGKILL"}).json["code"], "not_found", "nobody")
        same(s.rpc("process.Process/NoSuch", {}).status, 404, "no such call")
        same(s.run("head -c 3000000 /dev/zero | tr '\\0' x")[0].count("x"), 3000000, "much")


@test("files: whole, in forms, gzipped, with attributes, by range; what is none is refused", own=True)
def _(_api):
    with door("files") as d:
        s = d.create()
        text = b"hello " * 50000
        form = b'--xx\r\nContent-Disposition: form-data; name="file"; filename="f1"\r\n\r\n' + text + b'\r\n--xx\r\nContent-Disposition: form-data; name="file"; filename="d/f2"\r\n\r\ntwo\r\n--xx--\r\n'
        kind = {"Content-Type": "multipart/form-data; boundary=xx"}
        octets = {"Content-Type": "application/octet-stream"}
        same([w["path"] for w in s.files("POST", {}, form, **kind).json], ["/home/user/f1", "/home/user/d/f2"], "a form of two")
        same(s.files("GET", {"path": "f1"}).body, text, "the first")
        same(s.files("GET", {"path": "f1"}, Range="bytes=6-10").body, b"hello", "a range")
        written = s.files("POST", {"path": "~/g"}, gzip.compress(text), **octets, **{"Content-Encoding": "gzip", "X-Metadata-Author": "me"})
        same(written.json, [{"path": "/home/user/g", "name": "g", "type": "file", "metadata": {"author": "me"}}], "gzip and attributes")
        same(s.files("GET", {"path": "/home/user/./x/../g"}).body, text, "unpacked")
        stat = s.rpc("filesystem.Filesystem/Stat", {"path": "g"}).json["entry"]
        same((stat["metadata"], stat["owner"], stat["permissions"], stat["size"]), ({"author": "me"}, "user", "-rw-r--r--", str(len(text))), "an entry")
        same(s.files("POST", {"path": "g"}, b"again", **octets).status, 200, "over it")
        check("metadata" not in s.rpc("filesystem.Filesystem/Stat", {"path": "g"}).json["entry"], "attributes go with what was written over")
        same(s.files("GET", {"path": "."}).status, 400, "a folder")
        same(s.files("GET", {"path": "none"}).json["code"], 404, "nothing")
        for body, headers in ((form[:-9], kind), (b"x" + form, kind), (b"", kind), (form, {"Content-Type": "text/plain"}), (b"no gzip", {**octets, "Content-Encoding": "gzip"}),
                              (gzip.compress(text)[:-9], {**octets, "Content-Encoding": "gzip"}), (gzip.compress(b"1") + b"x", {**octets, "Content-Encoding": "gzip"}), (b"1", {**octets, "Content-Encoding": "br"})):
            same(s.files("POST", {} if headers is kind else {"path": "bad"}, body, **headers).status, 400, (body[:20], headers))
        check(s.rpc("filesystem.Filesystem/Stat", {"path": "bad"}).status == 404, "nothing of it is there")
        twice = form.replace(b"d/f2", b"f1")
        same(s.files("POST", {}, twice, **kind).status, 400, "one name twice")
        bomb = gzip.compress(b"\0" * (64 << 20))
        before = lib.memory_kib(d.daemon.pid)
        same(s.files("POST", {"path": "big"}, bomb, **octets, **{"Content-Encoding": "gzip"}).status, 200, "64 MiB of 64 KiB")
        grown = lib.memory_kib(d.daemon.pid) - before
        check(grown < 4 << 10, f"they pass through, and leave {grown} KiB")
        same(s.rpc("filesystem.Filesystem/Remove", {"path": "d"}).status, 200, "removed")
        same(s.rpc("filesystem.Filesystem/MakeDir", {"path": "d/e"}).json["entry"]["type"], "FILE_TYPE_DIRECTORY", "made")
        same(s.rpc("filesystem.Filesystem/MakeDir", {"path": "d/e"}).json["code"], "already_exists", "twice")
        same(s.rpc("filesystem.Filesystem/Move", {"source": "f1", "destination": "d/n/f"}).json["entry"]["path"], "/home/user/d/n/f", "moved")
        same([e["path"] for e in s.rpc("filesystem.Filesystem/ListDir", {"path": "d", "depth": 2}).json["entries"]],
             ["/home/user/d/e", "/home/user/d/n", "/home/user/d/n/f"], "a list")


@test("watches that nobody is connected to: what was done before the question is in its answer, with the entry", own=True)
def _(_api):
    with door("watch") as d:
        s = d.create()
        s.rpc("filesystem.Filesystem/MakeDir", {"path": "w"})
        for entry in (False, True):
            made = s.rpc("filesystem.Filesystem/CreateWatcher", {"path": "w", "includeEntry": entry}).json["watcherId"]
            s.files("POST", {"path": "w/f"}, b"hello", **{"Content-Type": "application/octet-stream"})
            events = s.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": made}).json["events"]
            check({"EVENT_TYPE_CREATE", "EVENT_TYPE_WRITE"} <= {e["type"] for e in events} and {e["name"] for e in events} == {"f"}, events)
            same({e.get("entry", {}).get("path") for e in events if e["type"] != "EVENT_TYPE_RENAME"}, {"/home/user/w/f" if entry else None}, "entries")
            same(s.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": made}).json["events"], [], "once")
            same(s.rpc("filesystem.Filesystem/RemoveWatcher", {"watcherId": made}).status, 200, "removed")
            same(s.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": made}).json["code"], "not_found", "gone")


@test("files: signed for, without a token and without a name of the sandbox", own=True)
def _(_api):
    with door("sign") as d:
        d.create()
        s = d.create()
        s.files("POST", {"path": "f"}, b"hello", **{"Content-Type": "application/octet-stream"})
        now = int(time.time())
        cases = [({"signature": signature("f", "read", "", s.token)}, 200), ({"signature": signature("f", "write", "", s.token)}, 401),
                 ({"signature": signature("g", "read", "", s.token)}, 401), ({"signature": "v1_x"}, 401), ({"signature": ""}, 401),
                 ({"signature": signature("f", "read", "", s.token, now + 60), "signature_expiration": now + 60}, 200),
                 ({"signature": signature("f", "read", "", s.token, now - 60), "signature_expiration": now - 60}, 401),
                 ({"signature": signature("f", "read", "", s.token, now - 60), "signature_expiration": now + 60}, 401),
                 ({"signature": signature("f", "read", "root", s.token)}, 401)]
        for query, want in cases:
            answer = d.call("GET", "/files?" + urllib.parse.urlencode({"path": "f", **query}), key="none")
            same(answer.status, want, f"{query}: {answer}")
        same(d.call("GET", "/files?path=f", key="none").status, 502, "neither")


@test("snapshots and forks: what a home had, twice and apart", own=True)
def _(_api):
    with door("snap") as d:
        s = d.create(metadata={"m": "1"})
        s.run("echo one >f")
        made = d.ok("POST", f"/sandboxes/{s.id}/snapshots", {"name": "first"}, status=201)
        same(made, {"snapshotID": "first:default", "names": ["first:default"]}, "its name")
        d.ok("POST", f"/sandboxes/{s.id}/snapshots", {"name": "first"}, status=409)
        s.run("echo two >f")
        copy = d.create(templateID="first")
        same((copy.run("cat f")[0], s.run("cat f")[0]), ("one\n", "two\n"), "apart")
        forks = [Sandbox(d, f["sandbox"]) for f in d.ok("POST", f"/sandboxes/{s.id}/fork", {"count": 2}, status=201)]
        same([f.run("cat f")[0] for f in forks], ["two\n"] * 2, "forks")
        same(d.ok("GET", f"/sandboxes/{forks[0].id}")["metadata"], {"m": "1"}, "with its metadata")
        same([x["snapshotID"] for x in d.ok("GET", f"/snapshots?sandboxID={s.id}")], ["first:default"], "listed by its sandbox")
        same(d.ok("GET", f"/snapshots?sandboxID={copy.id}"), [], "of another")
        d.ok("DELETE", "/templates/first%3Adefault", status=204)
        d.ok("DELETE", "/templates/first%3Adefault", status=404)
        same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "templateID": "first"}).status, 404, "no longer a template")
        for bad in ({"name": "a b"}, {"name": "../x"}, {"name": 1}):
            same(d.call("POST", f"/sandboxes/{s.id}/snapshots", bad).status, 400, bad)


# ---- templates -------------------------------------------------------------------------------

SH = ("/bin/sh",)  # what a small image has


def step(kind, *args, **more):
    return {"type": kind, "args": list(args), **more}


class Templates:
    """A door, and builds by it."""

    def __init__(self, d):
        self.door = d

    def begin(self, name, **more):
        made = self.door.ok("POST", "/v3/templates", {"name": name, "cpuCount": 1, "memoryMB": 512, **more}, status=202)
        return made["templateID"], made["buildID"]

    def start(self, name, steps, base=("fromImage", "small"), **more):
        template, build = self.begin(name)
        body = {base[0]: base[1], "steps": steps, **more}
        return template, build, self.door.call("POST", f"/v2/templates/{template}/builds/{build}", body)

    def status(self, template, build, offset=0):
        return self.door.ok("GET", f"/templates/{template}/builds/{build}/status?logsOffset={offset}")

    def build(self, name, steps, **more):
        """(the last status, all lines)"""
        template, build, answer = self.start(name, steps, **more)
        same(answer.status, 202, answer)
        last = wait_until(lambda: (s := self.status(template, build))["status"] in ("ready", "error") and s, 3 * lib.PATIENCE, "the build")
        return last, "\n".join(last["logs"])

    def upload(self, template, entries):
        """What COPY copies, by the URL that says where, without a key."""
        data = oci.tar(*entries)
        digest = hashlib.sha256(data).hexdigest()
        link = self.door.ok("GET", f"/templates/{template}/files/{digest}", status=201)
        same(link["present"], False, "new")
        url = urllib.parse.urlsplit(link["url"])
        for query, want in ((url.query[:-1] + ("0" if url.query[-1] != "0" else "1"), 401), (url.query.replace("tenant=local", "tenant=other"), 401), ("", 401), (url.query, 200)):
            same(self.door.call("PUT", f"{url.path}?{query}", data, key="none").status, want, query)
        same(self.door.ok("GET", f"/templates/{template}/files/{digest}", status=201)["present"], True, "there")
        return digest


@test("templates: steps on an image, each once; what they left is what a sandbox begins with", own=True)
def _(_api):
    with door("build") as d:
        t = Templates(d)
        put = d.daemon.client().call("PUT", "/v1/images/small", SMALL, {"Content-Type": "application/x-tar"})
        same(put.status, 201, put)
        template, _ = t.begin("mine")
        digest = t.upload(template, [oci.folder("src"), oci.entry("src/a", b"A\n"), oci.folder("src/d"), oci.entry("src/d/b", b"B\n"), oci.link("src/l", "a")])
        steps = [step("COPY", "src/*", "to", "", "0755", filesHash=digest), step("COPY", "src", "/srv/all/", "root", "", filesHash=digest),
                 step("RUN", "cat to/a to/l to/d/b; stat -c %a:%u to/a; stat -c %u /srv/all/d/b; id -u; pwd"), step("ENV", "X", "1", "Y", '$X-"2"'),
                 step("RUN", "echo Y=$Y >/etc/marker", "root"), step("WORKDIR", "/app"), step("RUN", "echo here >f", "root"), step("USER", "root")]
        last, log = t.build("mine:v1", steps, startCmd="touch /tmp/up; sleep 600", readyCmd="test -f /tmp/up")
        same(last["status"], "ready", log)
        check("A\nA\nB\n755:1000\n0\n1000\n/home/user\n" in log and "CACHED" not in log, log)
        s = d.create(templateID="mine:v1")
        same(s.run("pwd; id -u; cat f /etc/marker /home/user/to/d/b; ls /tmp", shell=SH)[0], '/app\n0\nhere\nY=1-"2"\nB\nup\n', "a sandbox of it")
        same([p["tag"] for p in s.rpc("process.Process/List", {}).json["processes"]], ["start"], "what it starts")
        # the same again, and one that differs at its end
        _, log = t.build("mine:v2", steps)
        same(log.count("CACHED"), 5, log)
        _, log = t.build("other", steps[:6] + [step("RUN", "echo else >f", "root")])
        same((log.count("CACHED"), "echo else" in log), (4, True), log)
        _, log = t.build("other", steps[:6], force=True)
        same(log.count("CACHED"), 0, log)
        _, log = t.build("child", [step("RUN", "cat /etc/marker f")], base=("fromTemplate", "mine:v1"))
        check('Y=1-"2"\nhere' in log, log)
        # a snapshot of such a sandbox has its image
        d.ok("POST", f"/sandboxes/{s.id}/snapshots", {"name": "of"}, status=201)
        same(d.create(templateID="of").run("cat /etc/marker", shell=SH)[0], 'Y=1-"2"\n', "of a snapshot")
        d.ok("DELETE", f"/templates/{template}", status=409)
        d.daemon.client().remove_all()
        d.ok("DELETE", f"/templates/{template}", status=204)
        same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "templateID": "mine:v1"}).status, 404, "it is gone")
        same(d.ok("GET", "/templates/aliases/mine", status=404)["code"], 404, "so is its name")
        same({x["names"][0] for x in d.ok("GET", "/templates")}, {"other", "child"}, "the others are there")


@test("templates: tags lead to builds, and move; without an image the home folder is kept", own=True)
def _(_api):
    with door("tags") as d:
        t = Templates(d)
        last, log = t.build("home:v1", [step("RUN", "echo one >f; sleep 1"), step("WORKDIR", "/app")], base=("fromImage", "e2bdev/base"))
        check(last["status"] == "ready" and "host's own system" in log, log)
        s = d.create(templateID="home:v1")
        same(s.run("pwd; touch x; cat ~/f")[0], "/app\none\n", "what is kept, and a folder to work in")
        same(s.files("POST", {"path": "y"}, b"y", **{"Content-Type": "application/octet-stream"}).json[0]["path"], "/app/y", "paths begin there too")
        same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "templateID": "home"}).status, 404, "it has no tag default")
        same(d.ok("POST", "/templates/tags", {"target": "home:v1", "tags": ["default", "stable"]}, status=201)["tags"], ["default", "stable"], "more tags")
        same(d.create(templateID="home").run("cat ~/f")[0], "one\n", "by the tag that nobody has to say")
        for tags in ([":x"], ["x:"], [""], ["a b"], [], "x"):
            same(d.call("POST", "/templates/tags", {"target": "home:v1", "tags": tags}).status, 400, tags)
        same(d.call("POST", "/templates/tags", {"target": "none:v1", "tags": ["x"]}).status, 404, "of nobody")
        template = d.ok("GET", "/templates/aliases/home")["templateID"]
        t.build("home:v1", [step("RUN", "echo two >f")], base=("fromTemplate", "base"))
        builds = {x["tag"]: x["buildID"] for x in d.ok("GET", f"/templates/{template}/tags")}
        check(builds["v1"] != builds["stable"] == builds["default"], builds)
        same((d.create(templateID="home:v1").run("cat ~/f")[0], d.create(templateID="home:stable").run("cat ~/f")[0]), ("two\n", "one\n"), "a tag that moved")
        d.ok("DELETE", "/templates/tags", {"name": "home", "tags": ["stable"]}, status=204)
        same(sorted(x["tag"] for x in d.ok("GET", f"/templates/{template}/tags")), ["default", "v1"], "fewer")


@test("templates: what fails says where and why; a restart ends a build", own=True)
def _(_api):
    with door("fails", "--net", "builds=a.example.org,set:own", "--net", "sets.own=b.example.org") as d:
        t = Templates(d)
        host = ("fromImage", "e2bdev/base")
        for steps, want, where in (([step("RUN", "true"), step("RUN", "echo why >&2; exit 3")], "failed to run command 'echo why >&2; exit 3': exit status 3", "2"),
                                   ([step("RUN", "whoami", "root123")], "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'", "1"),
                                   ([step("USER", "nobody9")], "invalid username: 'nobody9'", "1"),
                                   ([step("RUN", "true"), step("COPY", "a", "b", filesHash="00ff")], "COPY: its files have not been uploaded", "2")):
            last, log = t.build("bad", steps, base=host)
            same((last["status"], last["reason"]["message"], last["reason"]["step"]), ("error", want, where), log)
        for base, steps, want in ((("fromImage", "nowhere/at:all"), [], 404), (("fromTemplate", "none"), [], 404), (host, [step("ADD", "a")], 400), (host, [step("COPY", "a")], 400),
                                  (host, [step("ENV", "a")], 400), (host, [step("RUN", 1)], 400)):
            same(t.start("bad", steps, base=base)[2].status, want, (base, steps))
        for name in ("", ":x", "a b", "a:b c", "../x", 1):
            same(d.call("POST", "/v3/templates", {"name": name}).status, 400, name)
        same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "templateID": "bad"}).status, 404, "none of it can be used")
        template, build, _ = t.start("slow", [step("RUN", "sleep 60")], base=host)
        same(t.status(template, build)["status"], "building", "it goes on")
        same(d.call("POST", f"/v2/templates/{template}/builds/{build}", {"steps": []}).status, 409, "once")
        wait_until(lambda: any("sleep 60" in x for x in t.status(template, build)["logs"]), 10)
        same(d.ok("GET", "/v2/sandboxes"), [], "nobody sees where it is built")
        sandbox = d.daemon.client().ok("GET", "/v1/sandboxes")["sandboxes"][0]
        same((sandbox["spec"]["net"]["allow"], sandbox["labels"]), (["a.example.org", "b.example.org"], {"build": build}), "what the operator lets builds reach, and no more")
        began = [json.loads(x) for x in d.daemon.client().get(f"/v1/events?sandbox={sandbox['id']}").body.splitlines()]
        same({e.get("actor", "nobody")[:9] for e in began if e["kind"] in ("sandbox.created", "exec.started")}, {"token:tk_"}, "who began it")
        d.daemon.stop()
        d.daemon.start()
        last = t.status(template, build)
        check(last["status"] == "error" and "restarted" in last["reason"]["message"], last)
        nothing_left(d, "what it was built in goes")


def rows(d, sql):
    """What the store says, while the daemon runs."""
    with contextlib.closing(sqlite3.connect(f"file:{d.daemon.state / 'caisson.db'}?mode=ro", uri=True)) as db:
        return [r[0] for r in db.execute(sql)]


def left(d):
    """Sandboxes, images of builds, and workspaces that nothing ends by itself."""
    images = [x["name"] for x in d.daemon.client().ok("GET", "/v1/images")["images"]]
    return ([x["id"] for x in d.daemon.client().ok("GET", "/v1/sandboxes")["sandboxes"]], [x for x in images if x.startswith("template:")],
            rows(d, "SELECT id FROM workspaces WHERE state='ready' AND expires_ms IS NULL"))


def nothing_left(d, what):
    with contextlib.suppress(lib.Failed):
        wait_until(lambda: left(d) == ([], [], []), 15)
    same(left(d), ([], [], []), what)


@test("templates: one that begins with kept steps stays; all lines are there; what is too much is refused", own=True)
def _(_api):
    with door("kept") as d:
        t = Templates(d)
        d.daemon.client().call("PUT", "/v1/images/small", SMALL, {"Content-Type": "application/x-tar"})
        for tag in ("a", "b"):
            same(t.build(f"mine:{tag}", [step("RUN", "echo 1 >f")])[0]["status"], "ready", tag)
        same(rows(d, "SELECT w.expires_ms FROM builds b JOIN workspaces w ON w.id=b.workspace WHERE b.state='ready'"), [None, None], "their files have no end")
        # a snapshot goes on when its template is built anew
        s = d.create(templateID="mine:b")
        d.ok("POST", f"/sandboxes/{s.id}/snapshots", {"name": "of"}, status=201)
        d.ok("DELETE", f"/sandboxes/{s.id}", status=204)
        for _ in range(2):
            same(t.build("mine:b", [step("RUN", "echo 2 >f")], force=True)[0]["status"], "ready", "anew")
        same(d.create(templateID="of").run("cat f", shell=SH)[0], "1\n", "a snapshot of the build before")
        template, build, _ = t.start("loud", [step("RUN", "i=0; while [ $i -lt 7000 ]; do i=$((i+1)); echo line-$i; done >f; cat f")])
        wait_until(lambda: t.status(template, build)["status"] == "ready", 30, "the build")
        same(rows(d, f"SELECT count(*) FROM build_lines WHERE build='{build}' AND text LIKE 'line-%'"), [7000], "lines")
        big = [step("ENV", *[x for i in range(9) for x in (f"V{i}", "v" * 32000)])]
        last, log = t.build("big", big)
        check(last["status"] == "error" and "more than" in last["reason"]["message"], last)
        digest = t.upload(template, [oci.entry("a", b"A\n")])
        many = [step("COPY", "a", "to", filesHash=digest)] * 20 + [step("WORKDIR", f"/w{i}") for i in range(45)]
        pid = d.daemon.pid
        last, log = t.build("many", many, base=("fromImage", "e2bdev/base"))
        check(last["status"] == "error" and "places" in last["reason"]["message"], last)
        same(d.daemon.pid, pid, "the daemon")


@test("templates: at no moment of a build there is something that would stay for ever after a crash", own=True)
def _(_api):
    with door("moment") as d:
        t, seen, ended = Templates(d), [], threading.Event()
        d.daemon.client().call("PUT", "/v1/images/small", SMALL, {"Content-Type": "application/x-tar"})

        def look():
            with contextlib.closing(sqlite3.connect(f"file:{d.daemon.state / 'caisson.db'}?mode=ro", uri=True)) as db:
                while not ended.is_set():
                    seen.extend(db.execute("SELECT id, created_ms, used_ms FROM workspaces WHERE state='ready' AND expires_ms IS NULL"
                                           " AND id NOT IN (SELECT workspace FROM builds WHERE workspace IS NOT NULL)"
                                           " AND id NOT IN (SELECT workspace FROM sandboxes WHERE workspace IS NOT NULL)"))
        thread = threading.Thread(target=look)
        thread.start()
        try:
            for i in range(6):  # the same tag: each takes the place of the one before
                same(t.build("mine:a", [step("RUN", f"echo {i} >f")], base=("fromImage", "small") if i % 2 else ("fromImage", "e2bdev/base"))[0]["status"], "ready", i)
        finally:
            ended.set()
            thread.join()
        same(seen, [], "what nothing ends, and nobody knows")


@test("templates: killed at any step, deleted while they are built, nothing is left of them", own=True)
def _(_api):
    with door("killed") as d:
        t, chooser = Templates(d), random.Random(int(os.environ.get("SEED", "1")))
        d.daemon.client().call("PUT", "/v1/images/small", SMALL, {"Content-Type": "application/x-tar"})
        template = None
        for i in range(int(os.environ.get("CYCLES", "10"))):
            template, build, answer = t.start("mine", [step("RUN", f"echo {i} >f"), step("RUN", "echo 2 >g", "root")])
            same(answer.status, 202, answer)
            time.sleep(chooser.uniform(0, 1.0))
            d.daemon.kill()
            d.daemon.start()
            last = t.status(template, build)
            check(last["status"] in ("error", "ready"), last)
        d.ok("DELETE", f"/templates/{template}", status=204)
        nothing_left(d, "of those that were killed")
        template, build, _ = t.start("slow", [step("RUN", "sleep 60")])
        wait_until(lambda: any("sleep 60" in x for x in t.status(template, build)["logs"]), 10)
        d.ok("DELETE", f"/templates/{template}", status=204)
        nothing_left(d, "of one that was deleted")
        same(rows(d, "SELECT count(*) FROM template_tags"), [0], "tags")
        found = d.daemon.client().ok("POST", "/v1/fsck", {})["findings"]
        same([x for x in found if x["kind"] != "point"], [], "the store is whole, but for a point that was being made")


SERVER = "python3 -c \"import http.server as h\nclass H(h.BaseHTTPRequestHandler):\n def do_GET(s):\n  b=str(s.headers).encode(); s.send_response(200); s.send_header('Content-Length',str(len(b))); s.end_headers(); s.wfile.write(b)\nh.HTTPServer(('',8000),H).serve_forever()\""


def serve(s):
    s.run(f"nohup {SERVER} >/dev/null 2>&1 &")
    token = {"e2b-traffic-access-token": s.made.get("trafficAccessToken", "")}
    wait_until(lambda: s.door.call("GET", "/", headers={"E2b-Sandbox-Id": s.id, "E2b-Sandbox-Port": "8000", **token}).status == 200, 10)


@test("hosts: a port by name or by header, its token, its mask, and waking by traffic", own=True)
def _(_api):
    with door("host") as d:
        s = d.create()
        serve(s)
        host = {"Host": f"8000-{s.id}.{DOMAIN}:1"}
        seen = d.call("GET", "/sandboxes", headers={**host, "Cookie": "a=b"}, key="none")
        check(seen.status == 200 and b"Cookie: a=b" in seen.body and f"Host: 8000-{s.id}".encode() in seen.body, seen)
        for query in ("?", "?&a", "?a&", "?=b", "?%zz"):
            same(d.call("GET", f"/{query}", headers=host).status, 200, f"a query is the application's: {query[:20]}")
        same(d.call("GET", "/", headers={"Host": f"8001-{s.id}.{DOMAIN}"}).json["message"], "The sandbox is running but port is not open", "a closed one")
        for name in (f"8000-i{'0' * 26}", "8000-", "0-x", f"99999-{s.id}", "x"):
            check(d.call("GET", "/", headers={"Host": f"{name}.{DOMAIN}"}).status in (401, 404, 502), name)
        same(d.call("GET", "/health", headers={"Host": f"49983-{s.id}.{DOMAIN}"}).status, 204, "its agent has a host too")
        private = d.create(network={"allowPublicTraffic": False, "maskRequestHost": "masked.example.org:${PORT}"})
        serve(private)
        host, token = {"Host": f"8000-{private.id}.{DOMAIN}"}, private.made["trafficAccessToken"]
        for text, want in ((None, 403), (token, 200), (private.token, 403), (token[:-2], 403)):
            same(d.call("GET", "/", headers={**host, **({"e2b-traffic-access-token": text} if text else {})}).status, want, text)
        seen = d.call("GET", "/", headers={**host, "e2b-traffic-access-token": token}).body.lower()
        check(b"host: masked.example.org:8000" in seen and token.encode() not in seen, seen)
        native = d.daemon.client().ok("POST", "/v1/sandboxes", {})["id"]
        d.daemon.client().ok("POST", f"/v1/sandboxes/{native}/exec", {"cmd": ["sh", "-c", "python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1"]})
        same(d.call("GET", "/", headers={"Host": f"8000-i{native[3:]}.{DOMAIN}"}).status, 502, "one of another door: its ports are not for everybody")
        wakes = d.create(autoPause=True, autoResume={"enabled": True})
        serve(wakes)
        for one, want in ((wakes, 200), (s, 502)):
            d.ok("POST", f"/sandboxes/{one.id}/pause", status=204)
            same(d.call("GET", "/", headers={"Host": f"8000-{one.id}.{DOMAIN}"}).status, want, "after a pause")
        same(d.ok("GET", f"/sandboxes/{wakes.id}")["state"], "running", "traffic has woken it")
        for use in (lambda: wakes.run("echo up")[0] == "up\n", lambda: wakes.files("POST", {"path": "f"}, b"x" * 300000, **{"Content-Type": "application/octet-stream"}).status == 200,
                    lambda: len(wakes.files("GET", {"path": "f"}).body) == 300000):
            d.ok("POST", f"/sandboxes/{wakes.id}/pause", status=204)
            same(d.call("GET", "/health", headers=wakes.headers).status, 502, "to ask whether it is there does not wake it")
            check(use(), "a command or a file does")


@test("network: addresses that are denied, headers of a host; get says what holds", own=True)
def _(_api):
    with door("net") as d:
        rules = {"api.example.org": [{"transform": {"headers": {"X-Token": "value 1"}}}]}
        s = d.create(allow_internet_access=True, network={"denyOut": ["8.8.8.8", "9.0.0.0/8"], "allowOut": ["9.9.9.9/32", "9.0.0.0/8"], "rules": rules})
        native = f"/v1/sandboxes/sb_{s.id[1:]}"
        c = d.daemon.client()
        same(c.ok("GET", native)["spec"]["net"], {"mode": "allow", "deny_cidr": ["8.8.8.8/32"], "headers": ["api.example.org X-Token: value 1"]}, "as rules of ours")
        for host, want in (("8.8.8.8", "deny"), ("8.8.4.4", "allow"), ("9.9.9.9", "allow"), ("example.org", "allow")):
            same(c.ok("GET", f"{native}/why?host={host}&port=443")["decision"], want, host)
        shown = d.ok("GET", f"/sandboxes/{s.id}")["network"]
        same((shown["denyOut"], shown["rules"]), (["8.8.8.8", "9.0.0.0/8"], rules), "said again")
        d.ok("PUT", f"/sandboxes/{s.id}/network", {"denyOut": ["8.8.8.0/24"], "rules": rules}, status=204)
        same(c.ok("GET", f"{native}/why?host=8.8.8.9&port=443")["decision"], "deny", "more is denied")
        same(d.ok("GET", f"/sandboxes/{s.id}")["network"], {"denyOut": ["8.8.8.0/24"], "rules": rules}, "what is left out is cleared")
        check(d.call("PUT", f"/sandboxes/{s.id}/network", {}).status in (202, 403), "to loosen takes more than this key")
        same(d.call("PUT", f"/sandboxes/{s.id}/network", {"egressProxy": {"address": "a:1"}}).status, 422, "not offered")


@test("refused, with a sentence: what is not here is not left out in silence", own=True)
def _(_api):
    with door("refuse") as d:
        for body, want in (({"timeout": 0}, 400), ({"timeout": -1}, 400), ({"timeout": 10**9}, 400), ({"timeout": "5"}, 400), ({"metadata": []}, 400), ({"metadata": {"a": 1}}, 400),
                           ({"metadata": {"a" * 64: "x"}}, 400), ({"envVars": {"a": None}}, 400), ({"templateID": "none"}, 404), ({"templateID": "../x"}, 404), ({"templateID": 1}, 400),
                           ({"volumeMounts": [{"name": "v", "path": "/v"}]}, 404), ({"iam": {"tokens": {"a": {}}}}, 422), ({"network": {"rules": {"example.org": [{"other": 1}]}}, "allow_internet_access": True}, 422),
                           ({"network": {"allowOut": ["8.8.8.8"], "denyOut": ["8.8.8.0/24"]}, "allow_internet_access": True}, 422),
                           ({"network": {"rules": {"example.org": [{"transform": {"headers": {"Host": "x"}}}]}}, "allow_internet_access": True}, 400),
                           ({"network": {"egressProxy": {"address": "a:1"}}}, 422), ({"network": {"denyOut": ["example.org"]}}, 400), ({"network": {"allowOut": "x"}}, 400),
                           ({"network": 1}, 400), ({"network": {"allowOut": ["10.0.0.1"], "denyOut": ["0.0.0.0/0"]}}, 403)):
            answer = d.call("POST", "/v2/sandboxes", {**OFFLINE, **body})
            check(answer.status == want and answer.json["code"] == want and answer.json["message"], f"{body}: {answer}")
        for query in ("limit=0", "limit=101", "state=gone", "order=x", "nextToken=x", "metadata=%zz"):
            same(d.call("GET", f"/v2/sandboxes?{query}").status, 400, query)
        same(d.ok("GET", "/v2/sandboxes"), [], "nothing was made")
        same(d.daemon.client().ok("GET", "/v1/workspaces")["workspaces"], [], "and nothing kept")


@test("CLI: caisson token create --e2b prints the key on its last line", own=True)
def _(_api):
    with door("cli") as d:
        shown = subprocess.run([lib.cell.BIN / "caisson", "token", "create", "--e2b"], env={"CAISSON_SOCKET": str(d.daemon.socket), "PATH": "/usr/bin:/bin"},
                               capture_output=True, text=True, timeout=lib.PATIENCE, check=True)
        key = shown.stdout.splitlines()[-1]
        check(key.startswith("e2b_") and set(key[4:]) <= set("0123456789abcdef"), key)
        same(d.ok("GET", "/v2/sandboxes", key=key), [], "it opens the door")


if __name__ == "__main__":
    lib.cell.PROGRAMS += ("caisson",)
    assert pathlib.Path(__file__).exists()
    sys.exit(lib.main(__file__))
