#!/usr/bin/env python3
"""The attack corpus of the daemon: rows API, FSX and LOG, each judged on the host's side. TAP, then a table.

    tests/api/attack.py             all rows (needs root)
    tests/api/attack.py API-0 FSX   those with a word in their title

Every row runs beside files of the host that are watched: content, names, every access. A row whose
answers are wrong is WRONG; one that touched the host, or let a secret out, is OPEN.
"""
import contextlib
import json
import os
import random
import re
import select
import socket
import sys
import threading
import time

import corpus
import lib
from lib import HOST, SECRET, Client, Daemon, Stream, WebSocket, check, connect, raw, same, status_of, test, wait_until
from corpus import as_user, row
import hostile  # noqa: F401  # the rows FSX
import store  # noqa: F401  # those about workspaces

SOME_ID = "a" * 26


def routes(client):
    """Every route, from what the daemon says of itself: (method, pattern)."""
    paths = client.ok("GET", "/v1/openapi.json")["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def target_of(pattern, sandbox, process, token="tk_" + SOME_ID):
    ids = {"/v1/sandboxes/": sandbox, "/v1/processes/": process, "/v1/tokens/": token,
           "/v1/workspaces/": "ws_" + SOME_ID, "/v1/repos/": "rp_" + SOME_ID, "/v1/approvals/": "ap_" + SOME_ID}
    for prefix, value in ids.items():
        if pattern.startswith(prefix):
            pattern = pattern.replace("{id}", value)
    check("{id}" not in pattern, f"which id has {pattern}?")
    return pattern.replace("{path}", "work/file").replace("{port}", "3000").replace("{name}", "main")


def get_raw(address, target="/v1/sandboxes", method="GET", headers=(), host="localhost", body=b""):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close", f"Content-Length: {len(body)}", *headers]
    return raw(address, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)


# ---- who may ---------------------------------------------------------------------------------

@row("API-01", "no token, wrong, expired, revoked, another daemon's; another user at the socket", own=True)
def _(_api):
    plain = Daemon("plain").start()
    listening = [line for line in lib.census.read("/proc/net/tcp").splitlines()[1:] if line.split()[3] == "0A"]
    check(not listening, f"a port is open by default: {listening}, OPEN")
    info = os.stat(plain.socket)
    same(info.st_mode & 0o777, 0o600, "mode of the socket")
    same(as_user(lambda: Client(plain.socket).get("/v1/sandboxes").status), "PermissionError", "another user")
    os.chmod(plain.run, 0o755)
    os.chmod(plain.socket, 0o666)  # the mode was only the first wall
    same(as_user(lambda: Client(plain.socket).get("/v1/sandboxes").status), "401", "another user, by his credentials")
    same(as_user(lambda: Client(plain.socket).post("/v1/run", {"cmd": ["true"]}).status), "401", "another user runs")
    foreign = plain.client().ok("POST", "/v1/tokens", {"scope": ["admin"]})["token"]
    plain.stop()

    d = Daemon("tokens", options=["--listen", "127.0.0.1:0"]).start()
    local = d.client()
    good = local.ok("POST", "/v1/tokens", {"scope": ["admin"]})["token"]
    short = local.ok("POST", "/v1/tokens", {"scope": ["admin"], "ttl": "1s"})["token"]
    revoked = local.ok("POST", "/v1/tokens", {"scope": ["admin"]})
    local.delete(f"/v1/tokens/{revoked['id']}")
    time.sleep(1.1)
    address = ("127.0.0.1", d.port())
    bad = {"none": [], "empty": ["Authorization: Bearer "], "wrong": ["Authorization: Bearer x"],
           "expired": [f"Authorization: Bearer {short}"], "revoked": [f"Authorization: Bearer {revoked['token']}"],
           "another daemon's": [f"Authorization: Bearer {foreign}"], "basic": [f"Authorization: Basic {good}"],
           "two": [f"Authorization: Bearer {good}", f"Authorization: Bearer {good}"],
           "longer": [f"Authorization: Bearer {good}x"], "shorter": [f"Authorization: Bearer {good[:-1]}"],
           "cookie": [f"Cookie: token={good}"], "space": [f"Authorization: Bearer  {good}"]}
    for what, headers in bad.items():
        status = status_of(get_raw(address, headers=headers))
        check(status in (400, 401), f"{what}: {status}, OPEN")
    same(status_of(get_raw(address, f"/v1/sandboxes?token={good}")), 401, "in the query")
    same(status_of(get_raw(address, headers=[f"Authorization: Bearer {good}"])), 200, "the good one")
    for method, pattern in routes(local):
        if pattern == "/v1/health":
            continue
        status = status_of(get_raw(address, target_of(pattern, "sb_" + SOME_ID, "px_" + SOME_ID), method))
        same(status, 401, f"{method} {pattern} without a token")
    d.stop()


@row("API-02", "every route with the ids of another tenant", own=True)
def _(_api):
    d = Daemon("tenants", options=["--listen", "127.0.0.1:0"]).start()
    local = d.client()
    a, b = (d.tcp(local.ok("POST", "/v1/tokens", {"scope": ["manage", "approve"], "tenant": t})["token"]) for t in "ab")
    theirs = a.create(key="private", labels={"secret": "label"})
    a.put(a.file(theirs, "/work/file"), SECRET.encode())
    p = a.execute(theirs, ["sleep", "60"], wait=0, label="private")
    token = local.ok("POST", "/v1/tokens", {"scope": ["read"], "tenant": "a"})
    for name in (theirs["id"], "private"):
        for method, pattern in routes(local):
            if "{id}" not in pattern:
                continue
            target = target_of(pattern, name, p["id"], token["id"])
            mine = b.call(method, target, {} if method in ("POST", "PATCH") else None)
            none = b.call(method, target_of(pattern, "sb_" + SOME_ID, "px_" + SOME_ID),
                          {} if method in ("POST", "PATCH") else None)
            check(mine.status in (403, 404, 400), f"{method} {target}: {mine}, OPEN")
            check(mine.status == none.status and len(mine.body) == len(none.body),
                  f"{method} {pattern}: {mine} where nothing is: {none}")
    for listing in ("/v1/sandboxes", "/v1/processes", "/v1/processes?label=private", "/v1/sandboxes?label=secret%3Dlabel",
                    f"/v1/processes?sandbox={theirs['id']}", "/v1/tokens"):
        body = b.get(listing).body.decode()
        check(theirs["id"] not in body and p["id"] not in body and token["id"] not in body, f"{listing}: {body}, OPEN")
    check(b.post("/v1/tokens", {"scope": ["admin"], "tenant": "a"}).status == 403, "a token for another tenant, OPEN")
    check(b.post("/v1/tokens", {"scope": ["admin"], "tenant": "local"}).status == 403, "a token for the operator, OPEN")
    same(a.ok("GET", f"/v1/processes/{p['id']}")["state"], "running", "the process of a lives")
    same(a.get(a.file(theirs, "/work/file")).body.decode(), SECRET, "the file of a")
    a.remove(theirs)
    d.stop()


@row("API-03", "a browser: form post, rebinding, foreign Origin, WebSocket, preflight", own=True)
def _(_api):
    d = Daemon("browser", options=["--listen", "127.0.0.1:0"]).start()
    local = d.client()
    good = local.ok("POST", "/v1/tokens", {"scope": ["admin"]})["token"]
    address, bearer = ("127.0.0.1", d.port()), [f"Authorization: Bearer {good}"]
    s = local.create()
    p = local.execute(s, ["sleep", "60"], tty=True, stdin=True, wait=0)
    form = ["Content-Type: application/x-www-form-urlencoded", "Origin: https://evil.example.com"]
    same(status_of(get_raw(address, "/v1/run", "POST", form, body=b'{"cmd":["true"]}')) in (401, 403), True, "form post")
    for host in ("evil.example.com", f"evil.example.com:{d.port()}", "127.0.0.1.evil.example.com", "localhost.example.org",
                 "x@localhost"):
        check(status_of(get_raw(address, headers=bearer, host=host)) in (400, 403), f"Host: {host}, OPEN")
    for origin in ("https://evil.example.com", "null", "http://localhost.evil.example.com", "file://",
                   f"http://localhost:{d.port() + 1}", "http://", "localhost"):
        status = status_of(get_raw(address, headers=[*bearer, f"Origin: {origin}"], host=f"localhost:{d.port()}"))
        same(status, 403, f"Origin: {origin}")
    same(status_of(get_raw(address, headers=[*bearer, f"Origin: http://localhost:{d.port()}"],
                           host=f"localhost:{d.port()}")), 200, "its own Origin")
    w = WebSocket(address, f"/v1/processes/{p['id']}/tty", [*bearer, "Origin: https://evil.example.com"])
    check(b" 101 " not in w.head, f"WebSocket from another origin: {w.head!r}, OPEN")
    w.close()
    answer = get_raw(address, "/v1/sandboxes", "OPTIONS", ["Origin: https://evil.example.com",
                                                           "Access-Control-Request-Method: POST"])
    check(status_of(answer) in (401, 403, 404, 405), f"preflight: {answer[:60]!r}")
    for answer in (answer, get_raw(address, headers=bearer)):
        check(b"access-control-allow" not in answer.lower(), f"{answer[:200]!r}, OPEN")
    local.remove(s)
    d.stop()


# ---- what comes in ---------------------------------------------------------------------------

def deep(n):
    return b'{"cmd":' + b"[" * n + b"]" * n + b"}"


JSON_TABLE = [
    ("depth 1,000", deep(1000)), ("depth 100,000", deep(100_000)), ("depth 1,000,000", deep(1_000_000)),
    ("objects 100,000 deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    ("duplicate keys", b'{"cmd":["true"],"cmd":["false"]}'), ("1e400", b'{"cmd":["true"],"timeout":1e400}'),
    ("invalid UTF-8", b'{"cmd":["\xff\xfe"]}'), ("overlong UTF-8", b'{"cmd":["\xc0\xae"]}'),
    ("lone surrogate", b'{"cmd":["\\ud800"]}'), ("NUL escaped", b'{"cmd":["a\\u0000b"]}'),
    ("NUL in the text", b'{"cmd":["a\0b"]}'), ("NaN", b'{"cmd":["true"],"timeout":NaN}'), ("cut", b'{"cmd":["tr'),
    ("two values", b'{"cmd":["true"]}{"cmd":["true"]}'), ("a text", b'"cmd"'), ("a number", b"5"), ("an array", b"[]"),
    ("null", b"null"), ("nothing", b""), ("a BOM", b'\xef\xbb\xbf{"cmd":["true"]}'), ("a comment", b'{/*x*/"cmd":["true"]}'),
    ("single quotes", b"{'cmd':['true']}"), ("20 digits", b'{"cmd":["true"],"timeout":99999999999999999999}'),
    ("10,000 arguments", json.dumps({"cmd": ["x"] * 300_000}).encode()),
    ("2 MiB of spaces", b" " * (2 << 20) + b"{}"), ("3 MiB", b'{"cmd":["' + b"x" * (3 << 20) + b'"]}'),
]


@row("API-05", "JSON: depth, duplicates, 1e400, bytes that are no text, 1 GB, slowly")
def _(api):
    s = api.client.create()
    target = f"/v1/sandboxes/{s['id']}/exec"
    before = lib.memory_kib(api.daemon.pid)
    for what, body in JSON_TABLE:
        status = api.client.call("POST", target, body).status
        check(400 <= status < 500, f"{what}: {status}")
    head = f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 30}\r\n\r\n".encode()
    same(status_of(raw(api.daemon.socket, head + b"{" * 100_000)), 413, "1 GB announced")
    chunked = (f"POST {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
               + b"10000\r\n" + b"[" * 65536 + b"\r\n")
    with connect(api.daemon.socket) as c:
        with contextlib.suppress(OSError):
            c.sendall(chunked + (b"10000\r\n" + b"[" * 65536 + b"\r\n") * 200)
        same(status_of(lib.read_all(c, lib.PATIENCE)), 413, "13 MB in chunks")
    slow = [connect(api.daemon.socket) for _ in range(50)]
    for c in slow:
        c.sendall(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
    begin = time.monotonic()
    same(api.client.execute(s, ["true"])["exit_code"], 0, "others meanwhile")
    check(time.monotonic() - begin < 8, "others wait for slow bodies")
    for c in slow:
        c.close()
    grown = lib.memory_kib(api.daemon.pid) - before
    check(grown < 64 << 10, f"the daemon grew by {grown} KiB")


BAD_NAMES = ["../x", "..", ".", "a/b", "", "-x", "x" * 300, "ünïcode", "a b", "a\nb", "a\0b", "%2e%2e", "*", "sb_",
             "sb_../../etc", "sb_" + "a" * 25, "sb_" + "A" * 26, "sb_" + "a" * 27, "sb_" + "a" * 25 + "/", "~root", "$(id)",
             "a;b", "|x", "con", "\u202ecba", "0", "-1", "null", "px_" + SOME_ID, "sb_" + "a" * 25 + "\n"]


def tree_of(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@test("bodies that never end, by one token that may only read: every other tenant and the operator still send theirs", own=True)
def _(_api):
    d = Daemon("hoard", options=["--listen", "127.0.0.1:0"]).start()
    c = d.client()
    reader = c.ok("POST", "/v1/tokens", {"tenant": "a", "scope": "read"})["token"]
    manager = d.tcp(c.ok("POST", "/v1/tokens", {"tenant": "b", "scope": "manage"})["token"])
    own = d.tcp(c.ok("POST", "/v1/tokens", {"tenant": "a", "scope": "manage"})["token"])
    s = own.create()
    ask = [lambda: c.post("/v1/sandboxes", {}).status, lambda: manager.post("/v1/sandboxes", {}).status]
    same([x() for x in ask], [201, 201], "before")
    socks, n = [], 5 << 20
    while n > 0 and len(socks) < 120:  # as much as is taken, down to the last byte
        x = lib.connect(("127.0.0.1", d.port()))
        x.sendall(f"POST /v1/sandboxes/{s['id']}/grep HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {reader}\r\n"
                  f"Content-Type: application/json\r\nContent-Length: {n + 1}\r\n\r\n".encode())
        with contextlib.suppress(OSError):
            x.sendall(b" " * n)
        is_refused = bool(select.select([x], [], [], 0.01 if len(socks) < 5 else 0.1)[0])
        if is_refused:
            x.close()
            n //= 2
        else:
            socks.append(x)
    same([x() for x in ask], [201, 201], f"beside {len(socks)} bodies that do not end")
    _ = [x.close() for x in socks]
    wait_until(lambda: own.post("/v1/sandboxes", {}).status == 201, what="its own tenant again")
    for x in (c, manager, own):
        x.remove_all()
        x.close()
    d.stop()


@row("API-06", "ids and names: '../x', 'a/b', '', '.', 300 letters, '-x', %2f, NUL")
def _(api):
    c, d = api.client, api.daemon
    c.remove(c.create())  # what stays of one is no news below
    wait_until(lambda: not list((d.run / "sb").iterdir()), 5, "its socket")
    before = tree_of(d.run), tree_of(d.state), sorted(lib.census.cgroups())
    for name in BAD_NAMES:
        path = lib.urllib.parse.quote(name, safe="")
        for target in (f"/v1/sandboxes/{path}", f"/v1/processes/{path}", f"/v1/processes/{path}/log",
                       f"/v1/sandboxes/{path}/files/etc/passwd", f"/v1/processes/{path}/events"):
            answer = c.get(target)
            # An empty name is the collection itself, with a slash too many.
            check(400 <= answer.status < 500, f"{target}: {answer}")
        same(c.post(f"/v1/sandboxes/{path}/exec", {"cmd": ["true"]}).status // 100, 4, f"exec in {name!r}")
        same(c.call("DELETE", f"/v1/sandboxes/{path}").status // 100, 4, f"delete {name!r}")
        key = c.post("/v1/sandboxes", {"key": name})
        if key.status == 201:  # a name of his own, and no path in it
            check(re.fullmatch(r"[A-Za-z0-9_:@][A-Za-z0-9._:@-]*", name), f"key {name!r} is taken")
            c.remove(key.json)
        else:
            same(key.status, 400, f"key {name!r}: {key}")
        tenant = c.post("/v1/tokens", {"tenant": name, "scope": ["read"]})
        check(tenant.status in (201, 400, 403), f"tenant {name!r}: {tenant}")
    for target in ("/v1/sandboxes/%2e%2e/tokens", "/v1/sandboxes/..%2f..%2fetc", "/v1/../etc/passwd", "//etc/passwd",
                   "/v1/sandboxes/%00", "/v1/sandboxes/%zz", "/v1/sandboxes/%", "/v1//sandboxes", "/v1/sandboxes/"):
        check(400 <= c.get(target).status < 500, target)
    wait_until(lambda: (tree_of(d.run), tree_of(d.state), sorted(lib.census.cgroups())) == before, 5,
               "folders and cgroups of the daemon are as before")


@row("API-08", "shell metacharacters in every text")
def _(api):
    c, d = api.client, api.daemon
    marker = HOST / "pwned"
    for text in (f"$(touch {marker})", f"`touch {marker}`", f"; touch {marker} ;", f"| touch {marker}", f"&& touch {marker}",
                 f"\ntouch {marker}\n", f"' ; touch {marker} ; '", f'" ; touch {marker} ; "', f"%0atouch {marker}",
                 f"> {marker}", f"${{IFS}}touch${{IFS}}{marker}"):
        s = c.create(labels={"l": text}, env={"V": text})
        for options in ({"cmd": ["echo", text]}, {"cmd": text}, {"cmd": ["true"], "env": {"E": text}},
                        {"cmd": ["true"], "cwd": "/" + text}, {"cmd": ["true"], "label": text},
                        {"cmd": ["true"], "user": text}, {"cmd": [text]}, {"cmd": ["cat"], "stdin": text}):
            c.post(f"/v1/sandboxes/{s['id']}/exec", options)
        for spec in ({"fs": f"ro:/{text}:/mnt/x"}, {"fs": [{"kind": "ephemeral", "at": "/" + text}]}, {"image": f"dir:/{text}"},
                     {"user": text}, {"net": f"allow:{text}"}, {"key": text}, {"backend": text}, {"workspace": text}):
            answer = c.post("/v1/sandboxes", spec)
            if answer.status == 201:
                c.remove(answer.json)
        for target in (f"/files/work/{lib.quote(text)}", f"/archive?path={lib.quote(text)}"):
            c.put(f"/v1/sandboxes/{s['id']}{target}", b"x")
            c.get(f"/v1/sandboxes/{s['id']}{target}")
        for verb in ("grep", "glob"):
            c.post(f"/v1/sandboxes/{s['id']}/{verb}", {"pattern": text, "path": "/work"})
        c.post(f"/v1/sandboxes/{s['id']}/patch", f"--- a/{text}\n+++ b/{text}\n@@ -0,0 +1 @@\n+x\n".encode())
        c.post("/v1/tokens", {"name": text, "scope": [text]})
        with contextlib.suppress(ValueError):  # a line break is not even sent
            c.post("/v1/sandboxes", {"net": "denny"}, Idempotency_Key=text.replace("\n", " "))
        c.remove(s)
    check(not marker.exists(), "a shell of the host ran it, OPEN")
    same(lib.children_of(d.pid), {}, "the daemon has no children")


REQUESTS = [
    {"privileged": True}, {"caps": ["SYS_ADMIN"]}, {"cap_add": ["ALL"]}, {"capabilities": ["CAP_SYS_ADMIN"]},
    {"net": "host"}, {"pid": "host"}, {"ipc": "host"}, {"userns": "host"}, {"network_mode": "host"}, {"pid_mode": "host"},
    {"devices": ["/dev/kvm"]}, {"device": "/dev/mem"}, {"security_opt": ["seccomp=unconfined"]}, {"seccomp": "unconfined"},
    {"apparmor": "unconfined"}, {"cgroup_parent": "/"}, {"cgroup": "/"}, {"runtime": "runc"}, {"backend": "docker"},
    {"backend": "host"}, {"profile": "privileged"}, {"profile": "none"}, {"image": "dir:/"}, {"image": "host,/"},
    {"fs": "rw:/etc:/mnt"}, {"fs": [{"kind": "bind", "src": "/", "at": "/mnt"}]},
    {"fs": [{"kind": "ro", "src": "/run/host", "at": "/mnt", "rw": True}]}, {"mounts": ["/:/host"]}, {"volumes": ["/:/host"]},
    {"limits": {"memory": "4g"}}, {"limits": {"pids": -1}}, {"limits": {"mem": "unlimited"}}, {"allow_weaker": ["seccomp"]},
    {"allow_weaker": ["everything"]}, {"user": "0:0:0"}, {"user": {"uid": 0}}, {"env": {"LD_PRELOAD": []}}, {"hostname": "x"},
    {"sysctls": {"kernel.core_pattern": "|/x"}}, {"ulimits": {}}, {"spec": {}}, {"tenant": "other"}, {"id": "sb_" + SOME_ID},
    {"state": "running"}, {"enforced": {}}, {"slot": 1}, {"generation": 7}, {"PRIVILEGED": True}, {"Net": "deny"}, {"": 1},
]


@row("API-09", "privileged, capabilities, host namespaces, devices, unconfined; unknown fields")
def _(api):
    c = api.client
    s = c.create()
    accepted = []
    for request in REQUESTS:
        answer = c.post("/v1/sandboxes", request)
        if answer.status == 201:
            accepted.append(request)
            c.remove(answer.json)
        else:
            check(answer.status in (400, 403, 422), f"{request}: {answer}")
    # The host's own root as an image is a root like any other: read-only, with no id of the host.
    check(accepted in ([], [{"image": "dir:/"}]), f"accepted: {accepted}")
    for extra in ({"privileged": True}, {"caps": ["ALL"]}, {"cgroup": "/"}, {"namespace": "host"}, {"pid": 1}, {"uid": 0},
                  {"output": {"file": "/etc/x"}}, {"env_file": "/etc/passwd"}, {"user": "0:0:0"}):
        answer = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"], **extra})
        same(answer.status, 400, f"exec with {extra}")
        same(c.post("/v1/run", {"cmd": ["true"], **extra}).status, 400, f"run with {extra}")
    for verb in ("stop", "start", "pause", "resume", "replace"):
        answer = c.post(f"/v1/sandboxes/{s['id']}/{verb}", {"force": True})
        check(answer.status in (400, 409), f"{verb} with an unknown field: {answer}")
    root = c.execute(s, "id -u; cat /proc/self/uid_map; head -c 1 /etc/shadow; mount -t tmpfs x /mnt", user="root")
    check(root["exit_code"] != 0 and "0          0" not in root["stdout"], f"root inside: {root}")


NUMBERS = [-1, 0, 1, 2**31, 2**31 - 1, 2**32, 2**63 - 1, 2**63, 2**64, 1.5, -0.0, "1e3", " 5", "5 ", "0x10", "٣", "", "inf",
           True, None, [], {}]


@row("API-11", "numbers at the edge for limits, times, sizes, signals, ranges")
def _(api):
    c = api.client
    s = c.create()
    for limit in ("cpu", "mem", "disk", "inodes", "pids", "wall", "wall_ms", "idle", "output", "files", "io"):
        for value in NUMBERS:
            answer = c.post("/v1/sandboxes", {"limits": {limit: value}, "allow_weaker": ["io"]})
            check(answer.status in (201, 400, 422), f"{limit}={value!r}: {answer}")
            if answer.status == 201:
                check(value is None or (type(value) in (int, float) and value > 0), f"{limit}={value!r} is taken: {answer}")
                c.remove(answer.json)
    for key in ("ttl", "idle"):
        for value in NUMBERS:
            answer = c.post("/v1/sandboxes", {key: value})
            check(answer.status in (201, 400), f"{key}={value!r}: {answer}")
            if answer.status == 201:
                expires = answer.json["expires_ms"]
                check(expires is None or expires > time.time() * 1000 - 60000, f"{key}={value!r}: expires {expires}")
                c.delete(f"/v1/sandboxes/{answer.json['id']}")
    for value in NUMBERS:
        for options in ({"timeout": value}, {"wait": value}, {"rows": value}, {"output": {"inline": value}},
                        {"output": {"max_log": value}}):
            if options.get("wait") in (1, 1.5, 2**31 - 1, 2**31, 2**32):
                continue  # it would be waited for
            answer = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"], **options})
            check(answer.status in (200, 400), f"{options}: {answer}")
    p = c.execute(s, ["sleep", "60"], tty=True, wait=0)
    for value in NUMBERS:
        if value == 1:
            continue  # which is one
        check(c.post(f"/v1/processes/{p['id']}/signal", {"sig": value}).status == 400, f"sig={value!r}")
        check(c.post(f"/v1/processes/{p['id']}/resize", {"rows": value, "cols": 80}).status == 400, f"rows={value!r}")
    ended = c.execute(s, ["seq", "1", "100"])
    for text in ("-1", "0", "1", "2147483648", "9223372036854775808", "18446744073709551616", "1e3", "%205", "5%20", "+5", "0x5",
                 "NaN"):
        for target in (f"/v1/sandboxes?limit={text}", f"/v1/processes/{ended['id']}?wait={text}",
                       f"/v1/processes/{ended['id']}/events?after={text}", c.file(s, "/etc/passwd") + f"?lines={text}",
                       c.file(s, "/etc") + f"?list&depth={text}", c.file(s, "/etc") + f"?list&max={text}",
                       c.file(s, "/etc/passwd") + f"?lines=1-{text}"):
            answer = c.get(target)
            check(answer.status in (200, 400, 413), f"{target}: {answer}")
        for header in (f"bytes={text}-", f"bytes=0-{text}", f"bytes=-{text}", f"bytes={text}-{text}"):
            for target in (f"/v1/processes/{ended['id']}/log", c.file(s, "/etc/passwd")):
                check(c.get(target, Range=header).status in (200, 206, 400, 416), f"{header} {target}")


@row("API-13", "a create that fails at any step leaves nothing; a quota is exact")
def _(api):
    c, d = api.client, api.daemon


    def now():
        lib.census.reap()
        return len(lib.census.pids()), sorted(lib.census.cgroups()), lib.descriptors(d.pid), tree_of(d.run)
    before = now()
    plain = HOST.parent / "plain"
    plain.write_text("no folder")
    for spec, status in (({"fs": "ro:/no/such:/mnt"}, 404), ({"image": "dir:/no/such"}, 404),
                         ({"fs": "overlay:/run/plain:/mnt"}, 400), ({"user": "nobody-here"}, 400), ({"image": "dir:/run/plain"}, 400),
                         ({"limits": {"mem": "4m", "disk": "1g"}}, 0), ({"services": ["db"]}, 0),
                         ({"fs": "workspace:/work"}, 0), ({"fs": ["ro:/usr:/mnt", "ro:/no/such:/opt/x"]}, 404)):
        answer = c.post("/v1/sandboxes", spec)
        check(answer.status == status or (not status and 400 <= answer.status < 600), f"{spec}: {answer}")
    plain.unlink()
    same(c.ok("GET", "/v1/sandboxes")["sandboxes"], [], "no sandbox is left")
    wait_until(lambda: now() == before, what="processes, cgroups, descriptors and sockets are as before")
    return "the edge of quotas: tests/api/operate.py, tests/unit/test_store_sandboxes.c"


# ---- streams ---------------------------------------------------------------------------------

@row("API-14", "a client that leaves, half-closes or reads slowly, anywhere in a stream; resume by offset")
def _(api):
    c, d, chooser = api.client, api.daemon, random.Random(14)
    s = c.create()
    p = c.execute(s, "seq 1 60000", output={"inline": "1k"})
    truth = "".join(f"{i}\n" for i in range(1, 60001)).encode()
    c.put(c.file(s, "/work/big"), truth)
    before = lib.descriptors(d.pid)
    targets = [f"/v1/processes/{p['id']}/log", f"/v1/processes/{p['id']}/events", c.file(s, "/work/big"),
               f"/v1/sandboxes/{s['id']}/archive?path=/work"]
    for i in range(150):
        target = targets[i % len(targets)]
        with connect(d.socket) as sock:
            if i % 3 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            sock.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            if i % 5 == 0:
                sock.shutdown(socket.SHUT_WR)
            want = chooser.randrange(0, 300_000)
            with contextlib.suppress(OSError):
                while want > 0 and (piece := sock.recv(min(want, 20_000))):
                    want -= len(piece)
    out, seq, is_end = b"", 0, False
    while not is_end:
        mine = d.client()
        response = mine.send("GET", f"{targets[1]}?after={seq}")
        stop = chooser.randrange(1, 6)
        for line in response:
            event = json.loads(line)
            is_end = event["type"] == "end"
            if is_end:
                break
            out, seq, stop = out + event["data"].encode(), event["seq"], stop - 1
            if stop == 0:
                break
        mine.close()
    check(out == truth, f"events: {len(out)} bytes, expected {len(truth)}")
    parts, at = b"", 0
    while at < len(truth):
        n = chooser.randrange(1, 90_000)
        parts += c.get(targets[0], Range=f"bytes={at}-{at + n - 1}").body
        at += n
    check(parts == truth, "log by ranges")
    for _ in range(40):  # in the middle of waiting
        with connect(d.socket) as sock:
            body = b'{"cmd":["sleep","60"],"on_disconnect":"kill"}'
            sock.sendall(f"POST /v1/sandboxes/{s['id']}/exec HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                         + body[:chooser.randrange(len(body) + 1)])
            if chooser.random() < 0.5:
                time.sleep(0.01)
    wait_until(lambda: not c.ok("GET", f"/v1/processes?sandbox={s['id']}&state=running")["processes"], 8, "those that left")
    wait_until(lambda: lib.descriptors(d.pid) <= before + 2, 5,
               f"descriptors: {before}, now {lib.descriptors(d.pid)}")


@row("API-15", "PTY and WebSocket: oversize, unmasked, reserved, invalid, floods, closing at once")
def _(api):
    c, d = api.client, api.daemon
    s = c.create()

    def open_one():
        p = c.execute(s, ["cat"], tty=True, stdin=True, wait=0)
        w = WebSocket(d.socket, f"/v1/processes/{p['id']}/tty")
        check(b" 101 " in w.head, f"handshake: {w.head!r}")
        return p, w
    hostile = {
        "2^63 bytes": lambda w: w.send(2, b"x", claim=2**63), "2^63-1 bytes": lambda w: w.send(2, b"x", claim=2**63 - 1),
        "1 MiB": lambda w: w.send(2, b"x" * (1 << 20)), "unmasked": lambda w: w.send(2, b"x", mask=None),
        "reserved bit": lambda w: w.send(2, b"x", reserved=0x40), "opcode 3": lambda w: w.send(3, b"x"),
        "opcode 11": lambda w: w.send(11, b"x"), "text that is none": lambda w: w.send(1, b"\xff\xfe"),
        "long ping": lambda w: w.send(9, b"x" * 126), "fragmented ping": lambda w: w.send(9, b"x", is_final=False),
        "continuation first": lambda w: w.send(0, b"x"), "close of 1 byte": lambda w: w.send(8, b"x"),
        "close 999": lambda w: w.send(8, b"\x03\xe7"), "JSON that is none": lambda w: w.send(1, b'{"resize":'),
        "resize to nothing": lambda w: w.send(1, b'{"resize":{"rows":-1,"cols":99999999999}}'),
        "garbage": lambda w: w.socket.sendall(os.urandom(5000)),
    }
    for what, act in hostile.items():
        p, w = open_one()
        with contextlib.suppress(OSError):
            act(w)
            list(w.frames(0.2))
        w.close()
        check(c.get("/v1/health").status == 200, what)
        c.delete(f"/v1/processes/{p['id']}")
    before = lib.memory_kib(d.pid)
    p, w = open_one()
    w.socket.settimeout(2)
    with contextlib.suppress(OSError):
        for i in range(3000):
            w.send(1, json.dumps({"resize": {"rows": 1 + i % 200, "cols": 80}}).encode())
    same(c.execute(s, ["true"])["exit_code"], 0, "others during a flood of sizes")
    w.close()
    p, w = open_one()  # nobody reads what comes back
    w.socket.settimeout(1)
    with contextlib.suppress(OSError):
        for _ in range(2000):
            w.send(2, b"y" * 4000)
    check(lib.memory_kib(d.pid) - before < 32 << 10, "the daemon holds what a client does not read")
    w.close()
    for _ in range(30):
        p, w = open_one()
        w.send(2, b"x\n")
        w.close()
    for target, headers in ((f"/v1/processes/{p['id']}/tty", ()), (f"/v1/processes/{p['id']}/attach", ())):
        same(status_of(get_raw(d.socket, target, headers=headers)), 400, f"{target} without an upgrade")
    live = Stream(d.socket, f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["cat"], "stdin": True})
    with contextlib.suppress(OSError):
        live.socket.sendall(b"Q\0\0\0\xff\xff\xff\xff" + os.urandom(4000))
    live.close()
    same(c.execute(s, ["true"])["exit_code"], 0, "afterwards")


STATES = {  # state -> the statuses of the operations below
    "running": {"get": 200, "exec": 200, "read": 200, "write": 200, "usage": 200, "extend": 200, "start": 409, "resume": 409,
                "pause": 200},
    "paused": {"get": 200, "exec": 409, "usage": 200, "start": 409, "pause": 409, "read": 409, "write": 409, "extend": 409,
               "resume": 200},
    "stopped": {"get": 200, "exec": 409, "read": 200, "write": 200, "pause": 409, "resume": 409, "stop": 409, "extend": 409,
                "start": 200},
    "gone": {"get": 200, "exec": 404, "read": 404, "write": 404, "usage": 404, "extend": 404, "start": 404, "pause": 404,
             "resume": 404, "stop": 404, "replace": 404, "delete": 404},
}


@row("API-17", "every operation in every state: a definite answer")
def _(api):
    c = api.client

    def put_into(state):
        s = c.create()
        c.put(c.file(s, "/work/f"), b"1")
        for verb in {"paused": ["pause"], "stopped": ["stop"]}.get(state, []):
            c.ok("POST", f"/v1/sandboxes/{s['id']}/{verb}", {})
        if state == "gone":
            c.remove(s)
        return s
    wrong = []
    for state, expected in STATES.items():
        s = put_into(state)
        at = f"/v1/sandboxes/{s['id']}"
        verbs = {
            "get": lambda at=at: c.get(at), "exec": lambda at=at: c.post(f"{at}/exec", {"cmd": ["true"]}),
            "read": lambda s=s: c.get(c.file(s, "/work/f")), "write": lambda s=s: c.put(c.file(s, "/work/f"), b"2"),
            "usage": lambda at=at: c.get(f"{at}/usage"), "extend": lambda at=at: c.post(f"{at}/extend", {"ttl": "1h"}),
            "delete": lambda at=at: c.delete(at),
            **{v: lambda v=v, at=at: c.post(f"{at}/{v}") for v in ("start", "stop", "pause", "resume", "replace")}}
        for verb, status in expected.items():
            answer = verbs[verb]()
            if answer.status != status:
                wrong.append(f"{verb} when {state}: {answer}, expected {status}")
    check(not wrong, "\n".join(wrong))
    for verb, state in (("stop", "stopped"), ("replace", "running")):  # out of a pause, by another way
        s = put_into("paused")
        answer = c.post(f"/v1/sandboxes/{s['id']}/{verb}")
        same((answer.status, answer.json.get("state")), (200, state), f"{verb} when paused: {answer}")
        same(c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"], state, f"after {verb} when paused")
    answers = []

    def work(verb):
        mine = api.daemon.client()
        for _ in range(8):
            answers.append(mine.call("DELETE" if verb == "" else "POST", f"/v1/sandboxes/{s['id']}{verb}", {} if verb else None))
        mine.close()
    for _ in range(4):  # all at once: one change at a time, the others are told
        s = c.create()
        threads = [threading.Thread(target=work, args=(v,)) for v in ("/stop", "/start", "/pause", "/resume", "/replace")]
        _ = [t.start() for t in threads], [t.join() for t in threads]
        state = c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"]
        check(state in ("running", "paused", "stopped"), f"after a race: {state}")
        c.delete(f"/v1/sandboxes/{s['id']}")
    check(all(a.status in (200, 404, 409) for a in answers), f"a race: {[a for a in answers if a.status >= 500][:3]}")


# ---- what goes out ---------------------------------------------------------------------------

ESCAPES = {"OSC 52": "\x1b]52;c;AAAA\x07", "OSC 8": "\x1b]8;;http://evil.example.com\x07x\x1b]8;;\x07", "title": "\x1b]0;x\x07",
           "DCS": "\x1bP+q544e\x1b\\", "CPR": "\x1b[6n", "DA": "\x1b[c", "alt screen": "\x1b[?1049h", "C1": "\x9b6n",
           "bidi": "\u202eevil\u202c", "CR": "a\rb", "BEL": "\x07", "DEL": "\x7f"}


@row("LOG-01", "control sequences in output, names, labels, errors: escaped wherever they are JSON or a log of ours")
def _(api):
    c, d = api.client, api.daemon
    for what, text in ESCAPES.items():
        s = c.create(labels={"l": text})
        c.put(c.file(s, "/work/" + text.replace("/", "_")), b"x")
        p = c.execute(s, ["printf", "%s", text], label=text)
        bodies = [c.get(t) for t in (f"/v1/sandboxes/{s['id']}", "/v1/sandboxes", f"/v1/processes/{p['id']}", "/v1/processes",
                                     f"/v1/processes/{p['id']}/events", c.file(s, "/work") + "?list")]
        bodies += [c.post("/v1/sandboxes", {text: 1}), c.post("/v1/sandboxes", {"user": text}),
                   c.post("/v1/sandboxes", {"fs": f"ro:/{text}"}), c.get(f"/v1/sandboxes?{lib.quote(text)}=1"),
                   c.get(f"/v1/sandboxes/{lib.quote(text)}"), c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": [text]}),
                   c.get(c.file(s, "/work/none" + text)), c.post(f"/v1/sandboxes/{s['id']}/grep", {"pattern": "(" + text}),
                   c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["true"], "cwd": "/" + text})]
        for answer in bodies:
            found = re.search(rb"[\x00-\x08\x0b-\x1f]", answer.body)
            check(not found, f"{what}: a raw control character in {answer}, OPEN")
            if "ndjson" not in answer.headers["Content-Type"]:
                json.loads(answer.body)
        same(c.get(f"/v1/processes/{p['id']}/log").body, text.encode(), f"{what}: the log is exact")
        c.remove(s)
    log = d.log.read_bytes()
    check(not re.search(rb"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", log), f"the daemon's log: {log[-200:]!r}, OPEN")


LEAKS = [
    (rb"/run/(?:api|bin|notes)[^\s\"']*|/proc/self/fd|caisson\.db|/var/lib", "a path of the host"),
    (rb"0x[0-9a-f]{6,}|\.c:\d+|Assertion|#\d+ 0x", "an address or a line of source"),
    (rb"uid ?[=:]? ?18\d{8}|gid ?[=:]? ?18\d{8}", "an id of the host"), (rb"SELECT |INSERT |UPDATE |sqlite", "SQL"),
    (SECRET.encode(), "the secret"), (rb"Traceback|stack", "a stack"),
]


@row("API-16", "no refusal of all rows above tells a path, id or line of the host")
def _(_api):
    leaks, codes = [], set()
    for request, body in Client.refusals:
        if not body:
            continue
        with contextlib.suppress(ValueError):
            codes.add(json.loads(body).get("code"))
        for pattern, what in LEAKS:
            found = re.search(pattern, body)
            if found and found[0].decode(errors="replace").rstrip("\\:") not in request:  # not brought along
                leaks.append(f"{what} in the answer to {request[:200]}: {body[:300]!r}")
    check(not leaks, f"{len(leaks)} leaks, OPEN:\n" + "\n".join(leaks[:10]))
    check(len(Client.refusals) > 300 or len(sys.argv) > 3, f"only {len(Client.refusals)} refusals were seen")
    unknown = codes - {"invalid", "unauthorized", "forbidden", "not_found", "exists", "stale", "is_directory", "not_directory",
                       "permission_denied", "not_text", "too_large", "no_match", "ambiguous_match", "conflict", "busy",
                       "approval_required", "denied", "unenforceable", "quota", "sandbox_unavailable", "backend_error",
                       "repo_auth", "repo_unreachable", "expired"}
    check(not unknown, f"codes that are not of the closed list: {unknown}")
    return f"{len(Client.refusals)} refusals read"


if __name__ == "__main__":
    sys.exit(lib.main(__file__, extra=corpus.print_table))
