#!/usr/bin/env python3
"""The door for clients of E2B, and what its hostile and clumsy clients, keys and sandboxes meet. TAP.

    tests/api/e2b_hostile.py         all (needs root)
    tests/api/e2b_hostile.py watch   those with the word in their title
"""
import base64
import contextlib
import io
import json
import socket
import sqlite3
import struct
import sys
import tarfile
import threading
import time
import urllib.parse

import lib
from door import DOMAIN, OFFLINE, door, signature
from lib import check, same, test, wait_until

OCTETS = {"Content-Type": "application/octet-stream"}
ROOT = {"Authorization": "Basic " + base64.b64encode(b"root:").decode()}


def address(d):
    return ("127.0.0.1", d.daemon.port())


def leave(address_, data):
    """Sends it, and is gone: the other side gets a reset."""
    s = lib.connect(address_)
    if s.family != socket.AF_UNIX:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.sendall(data)
    s.close()


def request(path, headers, body):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items())
    return head.encode() + b"\r\n" + body


def envelope(body):
    text = json.dumps(body).encode()
    return struct.pack(">BI", 0, len(text)) + text


@test("keys: one that may only look is not told the token by which commands are run", own=True)
def _(_api):
    with door("look") as d:
        s = d.create()
        for scope, want in (("read", None), ("approve", None), ("exec", s.token), ("manage", s.token)):
            same(d.ok("GET", f"/sandboxes/{s.id}", key=d.token(scope)).get("envdAccessToken"), want, scope)


@test("ports: those of a sandbox of another door stay shut when its network is changed by this one", own=True)
def _(_api):
    with door("shut") as d:
        c = d.daemon.client()
        native = c.ok("POST", "/v1/sandboxes", {})["id"]
        c.ok("POST", f"/v1/sandboxes/{native}/exec", {"cmd": ["sh", "-c", "python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1"]})
        d.ok("PUT", f"/sandboxes/i{native[3:]}/network", {"denyOut": ["0.0.0.0/0"]}, status=204)
        same(d.call("GET", "/", headers={"Host": f"8000-i{native[3:]}.{DOMAIN}"}).status, 502, "by its name")
        same(d.call("GET", "/", headers={"E2b-Sandbox-Id": f"i{native[3:]}", "E2b-Sandbox-Port": "8000"}).status, 502, "by the header")


@test("a client that leaves at once, with an Idempotency-Key: the daemon lives, and whoever asks again is served", own=True)
def _(_api):
    with door("left") as d:
        s, pid = d.create(), d.daemon.pid
        for i in range(40):
            key = {**s.headers, "Idempotency-Key": f"k{i}"}
            leave(address(d), request("/process.Process/Start", key, envelope({"process": {"cmd": "/bin/true"}})))
            leave(address(d), request("/filesystem.Filesystem/WatchDir", key, envelope({"path": "/tmp"})))
            leave(address(d), request("/filesystem.Filesystem/Stat", key, b'{"path":"/tmp"}'))
        body = json.dumps({"cmd": ["true"]}).encode()
        own = request("/v1/run", {"Idempotency-Key": "own"}, body)
        for _ in range(40):
            leave(d.daemon.socket, own)
        for _ in range(2):
            same(s.rpc("filesystem.Filesystem/Stat", {"path": "/tmp"}, **{"Idempotency-Key": "k1"}).status, 200, "here it means nothing")
        c = d.daemon.client()
        wait_until(lambda: c.call("POST", "/v1/run", body, {"Idempotency-Key": "own"}).status == 200, 10, "nothing was begun, or it is done")
        same(d.daemon.pid, pid, "it is the same daemon")
        same(s.run("echo up")[0], "up\n", "at work")


@test("signed URLs: who is meant is signed too, and times are numbers", own=True)
def _(_api):
    with door("signs") as d:
        s = d.create()
        s.files("POST", {"path": "f"}, b"hello", **OCTETS)
        query = urllib.parse.urlencode({"path": "f", "signature": signature("f", "read", "", s.token)})
        answer = d.call("GET", f"/files?{query}", headers=ROOT, key="none")
        same((answer.status, answer.body), (200, b"hello"), "a header makes nobody root")
        query = urllib.parse.urlencode({"path": "g", "signature": signature("g", "write", "", s.token)})
        same(d.call("POST", f"/files?{query}", b"x", {**ROOT, **OCTETS}, key="none").json[0]["path"], "/home/user/g", "nor when it writes")
        for expiry in ("", "x", "-1", "9" * 16, "9" * 25, f"{int(time.time()) + 60}x", " 99999999999"):
            query = urllib.parse.urlencode({"path": "f", "signature": signature("f", "read", "", s.token, expiry), "signature_expiration": expiry})
            same(d.call("GET", f"/files?{query}", key="none").status, 401, repr(expiry))


@test("signed URLs: a URL for files of one tenant is none for another, whatever their names are", own=True)
def _(_api):
    with door("apart") as d:
        acme = d.token("manage", tenant="acme")
        other = d.token("manage", tenant="other")
        d.daemon.stop()
        with contextlib.closing(sqlite3.connect(d.daemon.state / "caisson.db")) as db, db:  # a token from before such names were refused
            db.execute("UPDATE tokens SET tenant='acme:prod' WHERE tenant='other'")
        d.daemon.start()
        digest = "ab" * 32
        theirs = d.ok("POST", "/v3/templates", {"name": "web"}, status=202, key=other)["templateID"]
        same(d.ok("GET", f"/templates/web/files/{digest}", status=201, key=other)["present"], False, "before; and such a tenant's token works still")
        ours = d.ok("POST", "/v3/templates", {"name": "prod"}, status=202, key=acme)["templateID"]
        url = urllib.parse.urlsplit(d.ok("GET", f"/templates/prod:web/files/{digest}", status=201, key=acme)["url"])
        query = {**dict(urllib.parse.parse_qsl(url.query)), "tenant": "acme:prod"}
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("evil"))
        for name in ("web", theirs, "prod:web", "prod", ours):
            same(d.call("PUT", f"/templates/{name}/files/{digest}?{urllib.parse.urlencode(query)}", data.getvalue(), key="none").status, 401, name)
        same(d.ok("GET", f"/templates/web/files/{digest}", status=201, key=other)["present"], False, "after")
        same(d.call("PUT", f"{url.path}?{url.query}", data.getvalue(), key="none").status, 200, "the URL itself")
        same(d.ok("GET", f"/templates/{ours}/files/{digest}", status=201, key=acme)["present"], True, "where it was for")
        same(url.path, f"/templates/{ours}/files/{digest}", "by the id of the template, however it was spelt")
        same(d.daemon.client().post("/v1/tokens", {"tenant": "acme:prod", "scope": "read"}).code, "forbidden", "no new token of such a tenant")


@test("signed URLs: a name with colons does not make a signature for reading one for writing", own=True)
def _(_api):
    with door("colons") as d:
        s = d.create()
        s.files("POST", {"path": "a:write:user"}, b"mine", **OCTETS)
        sign = signature("a:write:user", "read", "", s.token)
        query = urllib.parse.urlencode({"path": "a:write:user", "signature": sign})
        same(d.call("GET", f"/files?{query}", key="none").body, b"mine", "what was signed")
        query = urllib.parse.urlencode({"path": "a", "username": "user:read:", "signature": sign})
        same(d.call("POST", f"/files?{query}", b"evil", OCTETS, key="none").status, 401, "what was not")


class Watch:
    """A stream of WatchDir, read when it is asked to."""

    def __init__(self, s, path, **more):
        self.sock = lib.connect(address(s.door), 30)
        self.sock.sendall(request("/filesystem.Filesystem/WatchDir", {**s.headers, "Content-Type": "application/connect+json"}, envelope({"path": path, **more})))
        self.sock.settimeout(30)
        self.seen = b""
        self.until(b'"start"')

    def until(self, text):
        """Reads up to there."""
        deadline = time.monotonic() + 30
        while text not in self.seen:
            check(time.monotonic() < deadline, f"{text} does not come")
            piece = self.sock.recv(1 << 20)
            check(piece, f"the stream has ended before {text}: {self.seen[-300:]}")
            self.seen = self.seen[-1000:] + piece


@test("watch: many changes at once are told, and those behind them", own=True)
def _(_api):
    with door("many") as d:
        s = d.create()
        s.run("mkdir w a")
        kept = s.rpc("filesystem.Filesystem/CreateWatcher", {"path": "w"}).json["watcherId"]
        stream = Watch(s, "w")
        s.run("cd a; for i in $(seq 2000); do printf -v n %0150d $i; : >$n; done; mv * ../w; echo >../w/last; sleep 0.3")
        stream.until(b'"last"')
        names = set()

        def is_told():  # by another worker, which may be slower
            names.update(e["name"] for e in s.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": kept}).json["events"])
            return "last" in names
        wait_until(is_told, 10, "the other one")
        same(len(names), 2001, "each of them")
        s.run("echo >w/more")
        stream.until(b'"more"')
        wait_until(lambda: [e for e in s.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": kept}).json["events"] if e["name"] == "more"], 5, "later ones too")


MOVES = """
import os
names = ["%0200d" % i for i in range(4000)]
for n in names: open("a/" + n, "w").close()
for x, y in ["aw", "wa"] * 10:
    for n in names: os.rename(x + "/" + n, y + "/" + n)
"""


@test("watch: a client that does not read costs no memory, and goes on where there is something left", own=True)
def _(_api):
    with door("slow") as d:
        s = d.create()
        s.run("mkdir a w")
        s.files("POST", {"path": "moves.py"}, MOVES.encode(), **OCTETS)
        stream = Watch(s, "w")
        before = lib.memory_kib(d.daemon.pid)
        same(s.run("python3 moves.py")[1]["exitCode"], 0, "much happens")
        grown = lib.memory_kib(d.daemon.pid) - before
        check(grown < 12 << 10, f"what nobody reads makes {grown} KiB")
        s.run("echo >w/last")
        stream.until(b'"last"')
        stream.sock.close()


@test("watch: a sandbox that is paused while its changes are looked at", own=True)
def _(_api):
    with door("deep") as d:
        s, pid = d.create(), d.daemon.pid
        s.run("mkdir w")
        kept = s.rpc("filesystem.Filesystem/CreateWatcher", {"path": "w", "includeEntry": True}).json["watcherId"]
        stream = Watch(s, "w", includeEntry=True)
        s.run("cd w; for i in $(seq 2000); do : >f$i; done")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(s.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcherId": kept})))
        thread.start()
        d.ok("POST", f"/sandboxes/{s.id}/pause", status=204)
        thread.join(30)
        check(answers and answers[0].status == 200 and len(answers[0].json["events"]) > 1000, "all of them, with or without an entry")
        stream.sock.close()
        same(d.daemon.pid, pid, "the daemon lives")
        d.ok("POST", f"/sandboxes/{s.id}/connect", {"timeout": 60}, status=201)
        same(s.run("ls w | wc -l")[0], "2000\n", "so does the sandbox")


@test("entries: times that a sandbox gives to its files are times for any client", own=True)
def _(_api):
    with door("times") as d:
        s = d.create()
        s.run("mkdir t; touch -d 1960-02-03T04:05:06.25Z t/a; touch -d @-99999999999999 t/b; touch -d @99999999999999 t/c; touch -d @0 t/d")
        times = [e["modifiedTime"] for e in s.rpc("filesystem.Filesystem/ListDir", {"path": "t"}).json["entries"]]
        same((times[0], times[3]), ("1960-02-03T04:05:06.250Z", "1970-01-01T00:00:00.000Z"), "before and at the beginning")
        for text in times:
            time.strptime(text[:19] + text[23:], "%Y-%m-%dT%H:%M:%SZ")


@test("network: what is not understood opens nothing", own=True)
def _(_api):
    with door("open") as d:
        s = d.create(allow_internet_access=True, network={"denyOut": ["8.8.8.8"], "allowOut": ["example.org"]})
        same(d.daemon.client().ok("GET", f"/v1/sandboxes/sb_{s.id[1:]}")["spec"]["net"]["deny_cidr"], ["8.8.8.8/32"], "denied")
        for body in ({"allow_internet_access": "false"}, {"allow_internet_access": 0}, {"network": {"allowPublicTraffic": 0}}, {"network": {"allowPublicTraffic": "false"}},
                     *({"allow_internet_access": True, "network": {"denyOut": ["8.8.8.8"], "allowOut": [text]}} for text in ("1.2.3.4/x", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/4294967264", "::/129", "1.2.3.4/-1")),
                     *({"allow_internet_access": True, "network": {"denyOut": [text]}} for text in ("8.8.8.8/x", "8.8.8.8/", "8.8.8.8/ 8", "8.8.8.8/4294967304")),
                     {"allow_internet_access": True, "network": {"rules": []}}, {"allow_internet_access": True, "network": {"rules": {"example.org": {"transform": {}}}}},
                     {"network": {"maskRequestHost": 1}}, {"network": {"maskRequestHost": "x" * 300}}, {"network": {"other": "x" * 300000}}):
            same(d.call("POST", "/v2/sandboxes", {**OFFLINE, **body}).status, 400, str(body)[:200])
        same(d.call("PUT", f"/sandboxes/{s.id}/network", {"allow_internet_access": "false"}).status, 400, "nor when it is changed")


@test("connect: many at once to one that rests; a time of nothing is not for ever", own=True)
def _(_api):
    with door("meet") as d:
        for pause in ({}, {"memory": False}):
            s = d.create()
            d.ok("POST", f"/sandboxes/{s.id}/pause", pause, status=204)
            seen = []
            threads = [threading.Thread(target=lambda: seen.append(d.call("POST", f"/v2/sandboxes/{s.id}/connect", {"timeout": 60}))) for _ in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            check(all(a.status in (200, 201) and a.json["envdAccessToken"] == s.token for a in seen), [(a.status, a.body) for a in seen])
            same(s.run("echo up")[0], "up\n", "and it runs")
        d.ok("POST", f"/sandboxes/{s.id}/pause", status=204)
        d.call("POST", f"/v2/sandboxes/{s.id}/connect", {"timeout": 0})
        wait_until(lambda: d.call("GET", f"/sandboxes/{s.id}").status == 404, 6, "its time is over")


if __name__ == "__main__":
    sys.exit(lib.main(__file__, seconds=300))
