#!/usr/bin/env python3
"""Volumes of E2B's clients, byte by byte: made, listed, deleted; their content; mounted in sandboxes. TAP.

    tests/api/e2b_volumes.py           all (needs root)
    tests/api/e2b_volumes.py mounted   those with the word in their title

What their own packages make of it: tests/e2b/sdk.py.
"""
import contextlib
import sys
import urllib.parse

import lib
from door import OFFLINE, door
from lib import check, same, test


class Volume:
    def __init__(self, d, name):
        self.door, self.made = d, d.ok("POST", "/volumes", {"name": name}, status=201)
        self.id, self.token = self.made["volumeID"], self.made["token"]

    def call(self, method, what, body=None, token=None, **query):
        headers = {"Authorization": f"Bearer {token or self.token}"}
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/octet-stream"
        return self.door.call(method, f"/volumecontent/{self.id}/{what}?" + urllib.parse.urlencode(query), body, headers, key="none")

    def read(self, path):
        return self.call("GET", "file", path=path).body

    def names(self, path="/", **query):
        return sorted(e["path"] for e in self.call("GET", "dir", path=path, **query).json)


@contextlib.contextmanager
def shelf(name):
    """A door whose volumes go before it: what a worker of ours is kept for would be left otherwise."""
    with door(name) as d:
        try:
            yield d
        finally:
            d.daemon.client().remove_all()
            for v in d.call("GET", "/volumes").json:
                d.call("DELETE", f"/volumes/{v['volumeID']}")


@test("volumes: made, listed, found, deleted; of the tenant, by name once", own=True)
def _(_api):
    with shelf("volumes") as d:
        one, two = Volume(d, "one"), Volume(d, "Two_2-x")
        same({v["name"] for v in d.ok("GET", "/volumes")}, {"one", "Two_2-x"}, "listed")
        check(all("token" not in v for v in d.ok("GET", "/volumes")), "without tokens")
        same(d.ok("GET", f"/volumes/{one.id}"), one.made, "the same token again")
        same(d.call("POST", "/volumes", {"name": "one"}).status, 409, "the name is taken")
        for bad in ({}, {"name": ""}, {"name": "a b"}, {"name": "../x"}, {"name": "a.b"}, {"name": 1}, {"name": "x" * 200}):
            same(d.call("POST", "/volumes", bad).status, 400, bad)
        other = d.token("manage", tenant="other")
        same((d.ok("GET", "/volumes", key=other), d.call("GET", f"/volumes/{one.id}", key=other).status, d.call("DELETE", f"/volumes/{one.id}", key=other).status), ([], 404, 404), "another tenant's")
        same(d.call("GET", f"/volumes/{one.id}", key=d.token("read")).status, 403, "a token for its content is not for one who may only look")
        workspace = d.daemon.client().ok("PUT", "/v1/workspaces/mine", {})["id"]
        same(d.call("GET", f"/volumes/{workspace}").status, 404, "a workspace is none")
        d.ok("DELETE", f"/volumes/{two.id}", status=204)
        d.ok("DELETE", f"/volumes/{two.id}", status=404)
        same([v["name"] for v in d.ok("GET", "/volumes")], ["one"], "gone")
        same(Volume(d, "Two_2-x").names(), [], "and the name is free, and empty")


@test("content: files and folders, who may, what is none", own=True)
def _(_api):
    with shelf("content") as d:
        v, other = Volume(d, "v"), Volume(d, "other")
        text = b"hello " * 100000
        made = v.call("PUT", "file", text, path="f.txt", mode=0o640).json
        same({k: made[k] for k in ("name", "path", "type", "size", "mode", "uid", "gid")}, {"name": "f.txt", "path": "/f.txt", "type": "file", "size": len(text), "mode": 0o640, "uid": 1000, "gid": 1000}, "written")
        check(all(made[k].endswith("Z") for k in ("atime", "mtime", "ctime")), made)
        same(v.read("/f.txt") == text, True, "read")
        same(v.call("GET", "path", path="f.txt").json, made, "and said again")
        same(v.call("PUT", "file", b"2", path="f.txt").status, 409, "it is there")
        same((v.call("PUT", "file", b"2", path="f.txt", force="true").status, v.read("f.txt")), (201, b"2"), "by force")
        same((v.call("PUT", "file", b"", path="empty").status, v.read("empty")), (201, b""), "an empty one")
        same(v.call("PUT", "file", b"2", path="none/f").status, 404, "in nothing")
        same((v.call("POST", "dir", path="a/b").status, v.call("POST", "dir", path="a/b", force="true").status, v.call("POST", "dir", path="a/b").status), (404, 201, 409), "folders")
        same((v.call("POST", "dir", path="d", mode=0o700).json["mode"], v.call("POST", "dir", path="f.txt").status), (0o700, 409), "its mode; a file in the way")
        v.call("PUT", "file", b"3", path="/a/b/../b/.g")
        same((v.names(), v.names("/a", depth=3)), (["/a", "/d", "/empty", "/f.txt"], ["/a/b", "/a/b/.g"]), "lists")
        same((v.call("DELETE", "path", path="a").status, v.call("DELETE", "path", path="a").status, v.call("DELETE", "path", path="/").status), (204, 404, 400), "deleted")
        same((v.call("PATCH", "path", {"mode": 0o700}, path="d").status, v.call("PATCH", "path", {"mode": 0o755}, path="d").status, v.call("PATCH", "path", {"uid": 0}, path="d").status), (200, 422, 422), "what is so, and what cannot be")
        same(v.call("PUT", "file", b"x", path="g", uid=0).status, 422, "another owner")
        for query, want in (({}, 400), ({"path": ""}, 400), ({"path": "none"}, 404), ({"path": "d", "force": "maybe"}, 400)):
            same(v.call("GET", "path", **query).status, want, query)
        for token in ("x", other.token, v.token[:-1], v.token.replace(".", ".x"), v.token.split(".", maxsplit=1)[0], d.key):
            same(v.call("GET", "path", token=token, path="f.txt").status, 401, token)
        same(d.call("GET", f"/volumecontent/{v.id}/path?path=f.txt").status, 401, "a key is not the token")
        d.ok("DELETE", f"/volumes/{other.id}", status=204)
        same(other.call("GET", "path", path="/").status, 404, "of one that is gone")


@test("mounted: in one sandbox and another, kept behind them; what cannot be is refused", own=True)
def _(_api):
    with shelf("mount") as d:
        v = Volume(d, "data")
        v.call("PUT", "file", b"from outside\n", path="in")
        mounts = [{"name": "data", "path": "/mnt/data"}]
        one, two = d.create(volumeMounts=mounts), d.create(volumeMounts=mounts)
        same(one.run("cat /mnt/data/in; echo inside >/mnt/data/out; echo home >f; pwd; cat f")[0], "from outside\n/home/user\nhome\n", "its files, and a home of its own")
        same((two.run("cat /mnt/data/out; ls")[0], v.read("out")), ("inside\n", b"inside\n"), "seen by the other, and by the API")
        same(d.ok("GET", f"/sandboxes/{one.id}")["volumeMounts"], mounts, "said again")
        d.ok("POST", f"/sandboxes/{one.id}/pause", status=204)
        d.ok("POST", f"/sandboxes/{one.id}/connect", {"timeout": 60}, status=201)
        same(one.run("cat f /mnt/data/out")[0], "home\ninside\n", "after a pause")
        same(d.call("DELETE", f"/volumes/{v.id}").status, 409, "somebody has it")
        for answer in (d.call("POST", f"/sandboxes/{one.id}/pause", {"memory": False}), d.call("POST", f"/sandboxes/{one.id}/snapshots", {}), d.call("POST", f"/sandboxes/{one.id}/fork", {})):
            check(answer.status == 422 and "home folder" in answer.json["message"], answer)
        for s in (one, two):
            d.ok("DELETE", f"/sandboxes/{s.id}", status=204)
        home = d.create(volumeMounts=[{"name": "data", "path": "/home/user"}])
        same(home.run("cat out")[0], "inside\n", "as a home folder")
        d.ok("POST", f"/sandboxes/{home.id}/snapshots", {"name": "s"}, status=422)
        d.ok("DELETE", f"/sandboxes/{home.id}", status=204)
        same(v.names(), ["/in", "/out"], "kept")
        for body, want in (([{"name": "none", "path": "/v"}], 404), ([{"name": "data"}], 400), ([{"name": "data", "path": "v"}], 400), (mounts * 2, 422), ({}, 400), ([{"name": "data", "path": "/"}], 400),
                           ([{"name": "data", "path": "/proc/x"}], 400)):
            same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "volumeMounts": body}).status, want, body)
        same(d.call("POST", "/v2/sandboxes", {**OFFLINE, "volumeMounts": mounts, "autoPause": True, "autoPauseMemory": False}).status, 422, "a pause without memory")
        same(d.ok("GET", "/v2/sandboxes"), [], "nothing was made")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
