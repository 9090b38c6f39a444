"""door.py - a daemon with a TCP address and a key in E2B's form, and sandboxes as their clients see them: for tests/api/e2b*.py."""
import base64
import contextlib
import hashlib
import json
import struct
import urllib.parse

from lib import Client, Daemon, same

DOMAIN = "sbx.test"
OFFLINE = {"templateID": "base", "allow_internet_access": False}


class Door:
    """A daemon with a TCP address and a key."""

    def __init__(self, name, options=()):
        self.daemon = Daemon(name, options=["--listen", "127.0.0.1:0", "--domain", DOMAIN, *options]).start()
        self.key = self.token("manage")

    def token(self, scope, form="e2b", **more):
        return self.daemon.client().ok("POST", "/v1/tokens", {"scope": scope, "form": form, **more})["token"]

    def call(self, method, path, body=None, headers=None, key=None):
        client = Client(("127.0.0.1", self.daemon.port()))
        try:
            return client.call(method, path, body, {"X-API-KEY": key or self.key, **(headers or {})})
        finally:
            client.close()

    def ok(self, method, path, body=None, status=200, **more):
        answer = self.call(method, path, body, **more)
        same(answer.status, status, f"{method} {path}: {answer}")
        return answer.json if answer.body else None

    def create(self, **keys):
        made = self.ok("POST", "/v2/sandboxes", {**OFFLINE, **keys}, status=201)
        return Sandbox(self, made)

    def stop(self):
        self.daemon.client().remove_all()
        self.daemon.wait_clean()
        self.daemon.stop()


class Sandbox:
    def __init__(self, door, made):
        self.door, self.made, self.id, self.token = door, made, made["sandboxID"], made["envdAccessToken"]
        self.headers = {"E2b-Sandbox-Id": self.id, "X-Access-Token": self.token, "E2b-Sandbox-Port": "49983"}

    def rpc(self, method, body, **headers):
        return self.door.call("POST", "/" + method, json.dumps(body).encode(),
                              {**self.headers, "Content-Type": "application/json", **headers})

    def stream(self, method, body, raw=None, **headers):
        """Every message of a stream, the end last."""
        text = json.dumps(body).encode()
        answer = self.door.call("POST", "/" + method, struct.pack(">BI", 0, len(text)) + text if raw is None else raw,
                                {**self.headers, "Content-Type": "application/connect+json", **headers})
        return list(envelopes(answer))

    def run(self, command, shell=("/bin/bash", "-l"), **headers):
        """(what it said on standard output, its end event or the error)"""
        all_ = self.stream("process.Process/Start", {"process": {"cmd": shell[0], "args": [*shell[1:], "-c", command]}, "stdin": False}, **headers)
        events = [m["event"] for flag, m in all_ if flag == 0]
        out = b"".join(base64.b64decode(e["data"].get("stdout", "")) for e in events if "data" in e)
        end = [e["end"] for e in events if "end" in e]
        return out.decode(), end[0] if end else all_[-1][1].get("error")

    def files(self, method, query, body=None, **headers):
        return self.door.call(method, "/files?" + urllib.parse.urlencode(query), body, {**self.headers, **headers})


def envelopes(answer):
    same(answer.status, 200, answer)
    same(answer.headers["Content-Type"], "application/connect+json", "type")
    data, at = answer.body, 0
    while at < len(data):
        flag, n = struct.unpack(">BI", data[at:at + 5])
        yield flag, json.loads(data[at + 5:at + 5 + n])
        at += 5 + n
    same((flag, at), (2, len(data)), "the last envelope is the end, and there is one")


def signature(path, operation, user, token, expiry=None):
    """Of a URL for a file."""
    text = ":".join([path, operation, user, token] + ([str(expiry)] if expiry is not None else []))
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


@contextlib.contextmanager
def door(name, *options):
    d = Door(name, options)
    try:
        yield d
    finally:
        d.stop()
