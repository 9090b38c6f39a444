#!/usr/bin/env python3
"""Ports: who listens inside, forwards with an origin of their own, bare connections. TAP.

    tests/api/ports.py           all (needs root)
    tests/api/ports.py cookie    those with the word in their title
"""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import sys
import threading
import time

import lib
from lib import Client, Daemon, check, connect, memory_kib, raw, read_all, same, status_of, test, wait_until

# What runs inside. It shows what reached it, and misbehaves on request.
APP = r'''
import base64, ctypes, hashlib, http.server, json, socket, socketserver, struct, sys, time
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
class App(http.server.BaseHTTPRequestHandler):
    protocol_version, n = "HTTP/1.1", 0
    def log_message(self, *a): pass
    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            out = b""
            while (n := int(self.rfile.readline(), 16)):
                out += self.rfile.read(n); self.rfile.readline()
            self.rfile.readline()
            return out
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))
    def answer(self, body, status=200, headers=()):
        App.n += 1
        self.send_response(status)
        for name, value in headers: self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def show(self):
        body = self.body()
        self.answer(json.dumps({"method": self.command, "path": self.path, "headers": self.headers.items(),
            "n": App.n + 1, "bytes": len(body), "sha": hashlib.sha256(body).hexdigest()}).encode(), headers=[("X-App", "yes"), ("Content-Type", "application/json")])
    def do_GET(self):
        kind, _, rest = self.path[1:].partition("/")
        getattr(self, "at_" + kind, self.show)(*([rest] if hasattr(self, "at_" + kind) else []))
    do_POST = do_PUT = do_HEAD = do_DELETE = do_OPTIONS = do_GET
    def at_cookies(self, rest):
        self.answer(b"ok", headers=[("Set-Cookie", "sid=42; Domain=example.org; Path=/"), ("Set-Cookie", "b=2; HttpOnly; Max-Age=9"), ("Clear-Site-Data", '"*"')])
    def at_raw(self, rest):
        self.connection.sendall(base64.urlsafe_b64decode(rest)); self.close_connection = True
    def at_long(self, rest):
        self.answer(b"", headers=[("X-Long", "a" * 70000)])
    def at_stream(self, rest):
        self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
        piece = b"x" * 65536
        for _ in range(int(rest) // len(piece)):
            self.wfile.write(b"10000\r\n" + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
    def at_sink(self, rest):
        left, n = int(self.headers["Content-Length"]), 0
        while left:
            piece = self.rfile.read(min(left, 65536)); left -= len(piece); n += len(piece)
        self.answer(str(n).encode())
    def at_early(self, rest):
        self.answer(b"no", status=413); self.close_connection = True
    def at_slow(self, rest):
        time.sleep(float(rest)); self.answer(b"slow")
    def at_reset(self, rest):
        self.connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        time.sleep(0.5)
        ctypes.CDLL(None).connect(self.connection.fileno(), bytes(16), 16)  # AF_UNSPEC resets it; SO_LINGER is no wish inside
        socket.socket(fileno=self.connection.detach()).close(); self.close_connection = True
    def at_ws(self, rest):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Early: hello\r\n"
            b"Set-Cookie: w=1\r\nSec-WebSocket-Accept: " + base64.b64encode(hashlib.sha1(key.encode()).digest()) + b"\r\n\r\nready:")
        while (data := self.connection.recv(65536)):
            self.connection.sendall(data)
        self.connection.sendall(b":over")
        self.close_connection = True
Server((sys.argv[2], int(sys.argv[1])), App).serve_forever()
'''

ECHO = r'''
import socket, threading, sys
l = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def serve(s):
    n = 0
    while (d := s.recv(65536)):
        n += len(d); s.sendall(d)
    s.sendall(b"|%d" % n); s.close()
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
'''


class Place:
    """A sandbox with a server in it."""

    def __init__(self, client, port=3000, program=APP, address="127.0.0.1", sandbox=None):
        self.c, self.port = client, port
        self.s = sandbox or client.create(limits={"mem": "512m"})
        self.path = f"/v1/sandboxes/{self.s['id']}/ports"
        self.start(program, address)

    def start(self, program=APP, address="127.0.0.1"):
        self.c.put(self.c.file(self.s, f"/tmp/app{self.port}.py"), program.encode())
        self.process = self.c.execute(self.s, ["python3", f"/tmp/app{self.port}.py", str(self.port), address], wait="0s")
        wait_until(lambda: self.port in [x["port"] for x in self.listeners()], 10, "the server inside")

    def listeners(self):
        return self.c.ok("GET", self.path)["listeners"]

    def forward(self, **keys):
        made = self.c.ok("POST", self.path, {"port": self.port, **keys})
        return Forward(made)


class Forward:
    """Outside."""

    def __init__(self, made):
        self.made, self.port = made, made["local_port"]
        self.token = made["headers"]["X-Caisson-Port-Token"]

    def get(self, path, method="GET", body=None, token=True, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * lib.PATIENCE)
        named = lib.named(headers)
        if token:
            named["X-Caisson-Port-Token"] = self.token
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, named)
            r = connection.getresponse()
            return lib.Answer(r.status, r.headers, r.read())
        finally:
            connection.close()

    def seen(self, path="/", **options):
        """What the application got."""
        answer = self.get(path, **options)
        same(answer.status, 200, f"{path}: {answer}")
        o = answer.json
        o["headers"] = {k.lower(): v for k, v in o["headers"]}
        return o

    def raw(self, text, seconds=lib.PATIENCE, **options):
        data = text if isinstance(text, bytes) else text.format(host=f"127.0.0.1:{self.port}", token=self.token).encode()
        return raw(("127.0.0.1", self.port), data, seconds, **options)


HEAD = "GET {target} HTTP/1.1\r\nHost: {{host}}\r\nX-Caisson-Port-Token: {{token}}\r\n"


# ---- listeners -------------------------------------------------------------------------------

@test("listeners: port and address; IPv4 and IPv6; nobody else's")
def _(api):
    c = api.client
    p = Place(c, 3000)
    Place(c, 3001, address="::", sandbox=p.s)
    found = {x["port"]: x for x in p.listeners()}
    same(sorted(found), [3000, 3001], "ports")
    same((found[3000]["address"], found[3001]["address"]), ("127.0.0.1", "::"), "addresses")
    other = c.create()
    same(c.ok("GET", f"/v1/sandboxes/{other['id']}/ports"), {"listeners": [], "forwarded": []}, "of another")
    same(c.get("/v1/sandboxes/sb_" + "a" * 26 + "/ports").status, 404, "no sandbox")


@test("paused, stopped: the answer of that state; back to work afterwards")
def _(api):
    p = Place(api.client)
    f = p.forward()
    p.c.ok("POST", f"/v1/sandboxes/{p.s['id']}/pause")
    same(p.c.get(p.path).code, "conflict", "paused, list")
    same(p.c.post(p.path, {"port": 3000}).code, "conflict", "paused, forward")
    answer = f.get("/")
    same((answer.status, answer.code), (503, "conflict"), "paused, through it")
    p.c.ok("POST", f"/v1/sandboxes/{p.s['id']}/resume")
    same(f.get("/").status, 200, "resumed")
    p.c.ok("POST", f"/v1/sandboxes/{p.s['id']}/stop")
    same((p.c.get(p.path).code, f.get("/").status), ("conflict", 503), "stopped")
    p.c.ok("POST", f"/v1/sandboxes/{p.s['id']}/start")
    same(f.get("/").status, 502, "started, nobody listens")
    p.start()
    same(f.get("/").status, 200, "the same forward")


# ---- forwards --------------------------------------------------------------------------------

@test("forward: GET, POST by length and in chunks, HEAD, errors; what the application sees")
def _(api):
    f = Place(api.client).forward()
    check(f.made["ready"] and f.made["url"] == f"http://127.0.0.1:{f.port}", f.made)
    o = f.seen("/a/b?x=1&y=%20", X_Mine="1")
    same((o["method"], o["path"], o["headers"]["x-mine"]), ("GET", "/a/b?x=1&y=%20", "1"), "request")
    here = f"127.0.0.1:{f.port}"
    same({k: o["headers"].get(k) for k in ("host", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-for", "connection")},
         {"host": here, "x-forwarded-host": here, "x-forwarded-proto": "http", "x-forwarded-for": "127.0.0.1", "connection": "close"}, "ours")
    check("x-caisson-port-token" not in o["headers"] and f.token not in json.dumps(o), "the token stays outside")
    body = os.urandom(300000)
    for kind in (body, iter([body[:1], body[1:99999], body[99999:]])):
        o = f.seen("/", method="POST", body=kind)
        same((o["bytes"], o["sha"]), (len(body), hashlib.sha256(body).hexdigest()), "body")
    answer = f.get("/", method="HEAD")
    check(answer.status == 200 and answer.body == b"" and int(answer.headers["Content-Length"]) > 100, "HEAD")
    same(answer.headers["Connection"], "close", "one request a connection")
    same(f.get("/early", method="POST", body=b"x" * 3000000).status, 413, "an answer before the body is through")
    same(f.get("/.caisson/other").status, 404, "our own folder is not the application's")


@test("forward: IPv6 inside, localhost and IPv6 outside; an old server that answers until it closes")
def _(api):
    p = Place(api.client, address="::1")
    f = p.forward()
    for host in ("localhost", "[::1]"):
        text = f"GET / HTTP/1.1\r\nHost: {host}:{f.port}\r\nX-Caisson-Port-Token: {f.token}\r\n\r\n"
        address = ("::1", f.port) if host == "[::1]" else ("127.0.0.1", f.port)
        if host == "[::1]" and not lib.pathlib.Path("/proc/net/if_inet6").read_text().strip():
            continue
        same(status_of(raw(address, text.encode())), 200, host)
    p.c.execute(p.s, "mkdir -p /tmp/www && echo hello >/tmp/www/a.txt && cd /tmp/www && exec python3 -m http.server 8000", wait="0s")
    old = Forward(p.c.ok("POST", p.path, {"port": 8000, "wait": "30s"}))
    same((old.made["ready"], old.get("/a.txt").body), (True, b"hello\n"), "http.server")


@test("forward: readiness is waited for, and only so long; local_port as asked; renewed by a second POST")
def _(api):
    c = api.client
    s = c.create()
    path = f"/v1/sandboxes/{s['id']}/ports"
    begin = time.monotonic()
    made = c.ok("POST", path, {"port": 4000, "wait": "500ms"})
    check(not made["ready"] and 0.4 < time.monotonic() - begin < 30, f"not ready: {made}")
    f = Forward(made)
    same(f.get("/").status, 502, "it stands all the same")
    threading.Timer(0.7, lambda: Place(Client(api.daemon.socket), 4000, sandbox=s)).start()
    again = Forward(c.ok("POST", path, {"port": 4000, "wait": "30s"}))
    check(again.made["ready"] and again.port == f.port and again.token != f.token, again.made)
    same((f.get("/").status, again.get("/").status), (401, 200), "the old token is void")
    same(c.post(path, {"port": 4000, "local_port": f.port + 1 if f.port < 65535 else 2000}).code, "conflict", "another local port")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        free = socket.socket()
        free.bind(("127.0.0.1", 0))
        n = free.getsockname()[1]
        free.close()
        same(c.post(path, {"port": 4001, "local_port": taken.getsockname()[1]}).code, "conflict", "taken")
        same(c.ok("POST", path, {"port": 4001, "local_port": n})["local_port"], n, "as asked")
    for bad in ({}, {"port": 0}, {"port": 70000}, {"port": "x"}, {"port": 1, "local_port": 80}, {"port": 1, "wait": "1h"}, {"port": 1, "x": 1}):
        same(c.post(path, bad).code, "invalid", bad)
    same({x["port"] for x in c.ok("GET", f"/v1/sandboxes/{s['id']}")["ports"]}, {4000, 4001}, "the sandbox shows them")
    same(c.delete(path + "/4001").status, 204, "delete")
    same((c.delete(path + "/4001").status, c.delete(path + "/x").status), (404, 400), "again")
    check(refused(n), "its listener is closed")


def refused(port):
    with contextlib.suppress(OSError):
        connect(("127.0.0.1", port)).close()
        return False
    return True


@test("forward: ends by time, with the sandbox, by DELETE in the middle of an answer")
def _(api):
    p = Place(api.client)
    short = Forward(p.c.ok("POST", p.path, {"port": 3000, "ttl": "5s"}))
    same(short.get("/").status, 200, "before")
    wait_until(lambda: refused(short.port), 5, "ttl")
    wait_until(lambda: p.c.ok("GET", p.path)["forwarded"] == [], what="gone from the list")
    f = p.forward()
    with connect(("127.0.0.1", f.port)) as s:
        s.sendall(f"GET /stream/{1 << 30} HTTP/1.1\r\nHost: 127.0.0.1:{f.port}\r\nX-Caisson-Port-Token: {f.token}\r\n\r\n".encode())
        check(s.recv(100).startswith(b"HTTP/1.1 200"), "it flows")
        p.c.delete(p.path + "/3000")
        try:
            while s.recv(1 << 20):
                pass
            ended = "closed"
        except ConnectionResetError:
            ended = "reset"
        same(ended, "reset", "cut, and not to be taken for the whole")
    f = p.forward()
    p.c.remove(p.s)
    check(refused(f.port), "gone with the sandbox")


@test("forward: kept over a restart and a crash of the daemon, with token and local port; a taken port goes", own=True)
def _(_):
    d = Daemon("kept").start()
    p = Place(d.client())
    f, lost = p.forward(), Forward(p.c.ok("POST", p.path, {"port": 3999}))
    for how in (d.stop, d.kill):
        how()
        d.start()
        wait_until(lambda: d.client().get(p.path).status == 200, 10, "found again")
        same(f.get("/").status, 200, "the same URL and token")
    with open(d.state / "caisson.db", "rb") as db:
        check(f.token.encode() not in db.read(), "the token is not on disk")
    d.stop()
    with socket.create_server(("127.0.0.1", lost.port)):
        d.start()
        c = d.client()
        same([x["port"] for x in c.ok("GET", f"/v1/sandboxes/{p.s['id']}")["ports"]], [3000], "the other one is left")
        check("port 3999 is no longer forwarded" in d.tail(), d.tail())
    wait_until(lambda: c.get(p.path).status == 200, 10, "found again")
    c.remove(p.s)
    d.wait_clean()
    d.stop()


@test("Idempotency-Key: the token is not kept; who asks again gets a new one", own=True)
def _(_):
    d = Daemon("idem").start()
    p = Place(d.client())
    first, second = (Forward(p.c.ok("POST", p.path, {"port": 3000}, Idempotency_Key="k")) for _ in range(2))
    same((first.get("/").status, second.get("/").status), (401, 200), "the second counts")
    p.c.remove(p.s)
    d.stop()
    for file in d.state.glob("caisson.db*"):
        check(first.token.encode() not in file.read_bytes() and second.token.encode() not in file.read_bytes(), file)


@test("WebSocket: bytes both ways behind the head, early bytes, the end of each side")
def _(api):
    f = Place(api.client).forward()
    head = (f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{f.port}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-Caisson-Port-Token: {f.token}\r\n\r\n")
    with connect(("127.0.0.1", f.port)) as s:
        s.sendall(head.encode())
        got = b""
        while b"ready:" not in got:
            got += s.recv(4096)
        check(status_of(got) == 101 and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in got and b"X-Early: hello" in got, got)
        check(re.search(rb"Set-Cookie: cp[0-9a-f]{8}_w=1; HttpOnly", got), got)
        data = os.urandom(3 << 20)
        threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
        back = read_all(s, 100)
        check(back == data + b":over", f"{len(back)} bytes of {len(data)}")
    plain = f.raw(HEAD.format(target="/ws") + "\r\n")
    same(status_of(plain), 502, "switching protocols unasked")


@test("bare connection: bytes, half-close; nobody there; needs the upgrade")
def _(api):
    p = Place(api.client, 5000, ECHO)
    def dial(port, upgrade="caisson-port"):
        s = connect(api.daemon.socket)
        s.sendall(f"GET {p.path}/{port}/connect HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: {upgrade}\r\n\r\n".encode())
        got = b""
        while b"\r\n\r\n" not in got:
            got += s.recv(4096)
        return s, got
    s, got = dial(5000)
    same(status_of(got), 101, "upgrade")
    data = os.urandom(5 << 20)
    threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
    back = got.partition(b"\r\n\r\n")[2] + read_all(s, 100)
    check(back == data + b"|%d" % len(data), f"{len(back)} bytes")
    same([status_of(dial(n, u)[1]) for n, u in ((5001, "caisson-port"), (0, "caisson-port"), (5000, "websocket"))],
         [404, 400, 400], "refusals")


# ---- attacks ---------------------------------------------------------------------------------

@test("attack: no token, wrong ones, doubled ones, another forward's: 401, and nothing reaches the sandbox")
def _(api):
    p = Place(api.client)
    f = p.forward()
    q = Place(api.client)
    g = q.forward()
    wrong = [None, "", "x", f.token[:-1], f.token + "x", f.token.lower(), g.token, f.token[:-1] + "\x80"]
    before = f.seen()["n"]
    for token in wrong:
        answer = f.get("/", token=False, **({"X_Caisson_Port_Token": token} if token is not None else {}))
        same((answer.status, answer.code), (401, "unauthorized"), f"{token!r}")
        check(answer.headers.get("X-App") is None, "not the application's")
    twice = f.raw(HEAD.format(target="/") + "X-Caisson-Port-Token: {token}\r\n\r\n")
    same(status_of(twice), 401, "twice")
    for target in ("/?token=" + f.token, "/.caisson/open", "/.caisson/open?token=" + g.token, "/.caisson/open?token="):
        same(f.get(target, token=False).status, 401, target)
    same(f.get("/", token=False, Authorization=f"Bearer {f.token}").status, 401, "it is no bearer token")
    same(f.seen()["n"], before + 1, "requests that reached it")


@test("attack: Host of somebody else (DNS rebinding), another port, none")
def _(api):
    f = Place(api.client).forward()
    for host in ("example.org", f"example.org:{f.port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.2:{f.port}", f"localhost.example.org:{f.port}",
                 f"127.0.0.1.example.org:{f.port}"):
        data = f.raw(f"GET / HTTP/1.1\r\nHost: {host}\r\nX-Caisson-Port-Token: {f.token}\r\n\r\n".encode())
        same(status_of(data), 421, host)
    same(status_of(f.raw(f"GET / HTTP/1.0\r\nX-Caisson-Port-Token: {f.token}\r\n\r\n".encode())), 421, "HTTP/1.0 without one")


@test("attack: smuggling is refused, not forwarded")
def _(api):
    p = Place(api.client)
    f = p.forward()
    post = HEAD.replace("GET", "POST").format(target="/")
    smuggled = "GET /stolen HTTP/1.1\r\nHost: x\r\n\r\n"
    tricks = {
        "CL and TE": post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
        "two CL": post + "Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + smuggled,
        "CL list": post + "Content-Length: 0, 0\r\n\r\n" + smuggled,
        "CL plus": post + "Content-Length: +0\r\n\r\n" + smuggled,
        "TE twice": post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "TE other": post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "fold": post + "X: a\r\n Content-Length: 4\r\n\r\nGET ",
        "bare LF": post + "X: a\nContent-Length: 4\r\n\r\nGET ",
        "space before colon": post + "Content-Length : 4\r\n\r\nGET ",
        "chunk extension": post + "Transfer-Encoding: chunked\r\n\r\n0;x\r\n\r\n",
        "chunk size": post + "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
        "trailer": post + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
        "absolute target": "GET http://example.org/ HTTP/1.1\r\nHost: {host}\r\nX-Caisson-Port-Token: {token}\r\n\r\n",
        "CONNECT": "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: {host}\r\nX-Caisson-Port-Token: {token}\r\n\r\n",
        "HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }
    for name, text in tricks.items():
        status = status_of(f.raw(text))
        check(status is not None and 400 <= status < 600, f"{name}: {status}")
    same(f.seen()["n"], 1, "whole requests that reached it")
    # A second request behind the first is not served, and not forwarded.
    both = f.raw(HEAD.format(target="/a") + "\r\n" + HEAD.format(target="/b") + "\r\n")
    same(both.count(b"HTTP/1.1 200"), 1, "one request a connection")
    check(b'"/b"' not in both, "the second")


@test("attack: an application that answers garbage, splits heads or lies about lengths")
def _(api):
    f = Place(api.client).forward()
    def answer(data):
        target = "/raw/" + base64.urlsafe_b64encode(data).decode()
        return f.raw(HEAD.format(target=target) + "\r\n")
    ok = b"HTTP/1.1 200 OK\r\n"
    for name, data in {
        "nothing": b"", "no HTTP": b"hello\r\n\r\n", "bare LF": b"HTTP/1.1 200 OK\nX: y\n\n", "fold": ok + b"X: a\r\n b\r\n\r\n",
        "two lengths": ok + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "both": ok + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "NUL": ok + b"X: a\0b\r\n\r\n", "many": ok + b"Y: b\r\n" * 80 + b"\r\n", "status": b"HTTP/1.1 999 ?\r\n\r\n",
    }.items():
        same(status_of(answer(data)), 502, name)
    same(f.get("/long").status, 502, "a head without end")
    split = answer(ok + b"X: a\rSet-Cookie: z=1\r\nContent-Length: 0\r\n\r\n")
    check(status_of(split) == 502 and b"z=1" not in split, split)
    more = answer(ok + b"Content-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nX-Second: 1\r\n\r\n")
    check(more.endswith(b"\r\n\r\nab") and b"X-Second" not in more, more)
    less = answer(ok + b"Content-Length: 9\r\n\r\nab")
    check(b"Content-Length: 9" in less and less.endswith(b"ab"), less)
    chunk = answer(ok + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n")
    check(not chunk.endswith(b"0\r\n\r\n"), f"a broken body does not look whole: {chunk}")
    interim = answer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nX: 1\r\n\r\n" + ok + b"Content-Length: 2\r\n\r\nok")
    check(status_of(interim) == 200 and interim.endswith(b"ok"), interim)
    with contextlib.suppress(http.client.IncompleteRead, ConnectionResetError):
        check(f.get("/reset").body is None, "an answer that was cut by a reset looks whole")


@test("attack: cookies of one forward, of the host and of the daemon stay where they belong")
def _(api):
    f, g = Place(api.client).forward(), Place(api.client).forward()
    answer = f.get("/cookies")
    made = answer.headers.get_all("Set-Cookie")
    check(len(made) == 2 and all(re.match(r"cp[0-9a-f]{8}_(sid=42; Path=/|b=2; Max-Age=9); HttpOnly$", x) for x in made), made)
    same(answer.headers.get("Clear-Site-Data"), None, "it would empty everybody's jar")
    tag = made[0][:10]
    jar = f"{tag}_sid=42; other=1; cp00000000_sid=9; {tag}={f.token}; {tag}_=1; sid=7"
    same(f.seen("/", Cookie=jar)["headers"].get("cookie"), "sid=42", "back inside")
    check("cookie" not in g.seen("/", Cookie=jar)["headers"], "to another forward")
    opened = f.get(f.made["open_url"].partition(str(f.port))[2], token=False)
    same((opened.status, opened.headers["Location"]), (303, "/"), "open")
    own = opened.headers["Set-Cookie"]
    same(own, f"{tag}={f.token}; Path=/; HttpOnly; SameSite=Lax", "our cookie")
    o = f.seen("/", token=False, Cookie=own.partition(";")[0] + "; x=1")
    check("cookie" not in o["headers"] and f.token not in json.dumps(o), "our cookie stays outside")
    same(g.get("/", token=False, Cookie=own.partition(";")[0]).status, 401, "it opens no other forward")
    for name, value, expected in (("Authorization", "Bearer cst_abc", None), ("Authorization", "Basic " + base64.b64encode(b"u:cst_abc").decode(), None),
                                  ("Authorization", "Bearer theirs", "Bearer theirs"), ("Proxy-Authorization", "Basic eA==", None),
                                  ("X-Forwarded-For", "10.0.0.1", "127.0.0.1"), ("Forwarded", "for=10.0.0.1", None),
                                  ("X-API-Key", "cst_abc", None), ("X-Access-Token", "e2b_abc", None), ("X-API-Key", "theirs", "theirs"),
                                  ("Referer", f"http://127.0.0.1/.caisson/open?token={f.token}", None), ("Referer", "http://127.0.0.1/", "http://127.0.0.1/"),
                                  ("X-Real-Ip", "10.0.0.1", None), ("X-Forwarded-User", "root", None), ("Via", "1.1 proxy", None)):
        same(f.seen("/", **{name.replace("-", "_"): value})["headers"].get(name.lower()), expected, f"{name}: {value}")
    # What Connection names is for us.
    data = f.raw(HEAD.format(target="/") + "Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Stay: 1\r\n\r\n")
    check(b"X-Hop" not in data and b"X-Stay" in data, data)


@test("local_port: a token names those of the operator's range, the operator and an admin any from 1024 on", own=True)
def _(_api):
    for option, rows in ((None, (("exec", 5432, False), ("exec", 19999, False), ("exec", 30000, False), ("exec", 29998, True), ("admin", 31998, True), (None, 31999, True))),
                         ("4100-4101", (("exec", 4100, True), ("exec", 20000, False))), ("none", (("exec", 20000, False), ("exec", None, True), (None, 20000, True)))):
        d = lib.Daemon("range", options=["--listen", "127.0.0.1:0", *(("--ports", option) if option else ())]).start()
        c = d.client()
        s = c.create()
        path = f"/v1/sandboxes/{s['id']}/ports"
        for scope, n, is_taken in rows:
            who = d.tcp(c.ok("POST", "/v1/tokens", {"scope": scope})["token"]) if scope else c
            answer = who.post(path, {"port": 4002, **({"local_port": n} if n else {})})
            same(answer.code, None if is_taken else "permission_denied", f"{n} by {scope}: {answer}")
            c.delete(f"{path}/4002")
        c.remove(s)
        c.close()
        d.stop()


@test("attack: a page of another forward cannot use the browser's cookie")
def _(api):
    f = Place(api.client).forward()
    own = f.get(f.made["open_url"].partition(str(f.port))[2], token=False).headers["Set-Cookie"].partition(";")[0]
    def ask(**headers):
        return f.get("/", token=False, Cookie=own, **headers).status
    here = f"http://127.0.0.1:{f.port}"
    same([ask(), ask(Origin=here), ask(Sec_Fetch_Site="same-origin"), ask(Sec_Fetch_Site="none"),
          ask(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document")], [200] * 5, "its own pages, and links")
    same([ask(Origin="http://127.0.0.1:1"), ask(Origin="null"), ask(Origin="http://example.org"), ask(Sec_Fetch_Site="same-site"),
          ask(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe"),
          ask(Sec_Fetch_Site="same-site", Sec_Fetch_Mode="websocket", Sec_Fetch_Dest="websocket")], [403] * 6, "pages of others")


@test("attack: inside reaches neither the forward nor the API; the API is not served on a forward, nor the other way")
def _(api):
    p = Place(api.client)
    f = p.forward()
    probe = p.c.execute(p.s, ["python3", "-c", f"import socket\nfor a in ('127.0.0.1','::1'):\n try: socket.create_connection((a,{f.port}),2); print('open')\n except OSError as e: print(e.errno)"])
    check("open" not in probe["stdout"] and probe["stdout"].count("\n") == 2, probe["stdout"])
    same(f.seen("/v1/health")["path"], "/v1/health", "it is the application's path here")
    same(f.get("/v1/health", token=False).status, 401, "and needs its token")
    same(p.c.get("/.caisson/open?token=" + f.token).status, 404, "the API's door knows no forward")


@test("limits: a full queue inside, too many requests, slow readers: others go on, the daemon stays as it is")
def _(api):
    d = api.daemon
    p = Place(api.client)
    f = p.forward()
    p.c.put(p.c.file(p.s, "/tmp/full.py"), b"import socket,time\nl=socket.socket(); l.bind(('127.0.0.1',6000)); l.listen(0)\n"
            b"c=[socket.socket() for _ in range(4)]\nfor s in c: s.setblocking(False); s.connect_ex(('127.0.0.1',6000))\nopen('/tmp/is-full','w').close()\ntime.sleep(999)\n")
    p.c.execute(p.s, ["python3", "/tmp/full.py"], wait="0s")
    wait_until(lambda: p.c.get(p.c.file(p.s, "/tmp/is-full")).status == 200, what="full")
    full = Forward(p.c.ok("POST", p.path, {"port": 6000}))
    begin, results = time.monotonic(), []
    waiting = [threading.Thread(target=lambda: results.append(full.get("/").status)) for _ in range(12)]
    for t in waiting:
        t.start()
    time.sleep(0.3)
    for _ in range(5):
        one = time.monotonic()
        same((f.get("/").status, p.c.get(p.c.file(p.s, "/tmp/full.py")).status), (200, 200), "others go on")
        check(time.monotonic() - one < 8, "and at once")
    for t in waiting:
        t.join()
    check(results == [504] * 12 and time.monotonic() - begin < 60, f"{results} in {time.monotonic() - begin:.1f} s")

    many = [connect(("127.0.0.1", f.port)) for _ in range(80)]
    for s in many:
        s.sendall(HEAD.format(target="/slow/6").format(host=f"127.0.0.1:{f.port}", token=f.token).encode() + b"\r\n")
    got = [status_of(read_all(s, lib.PATIENCE)) for s in many]
    for s in many:
        s.close()
    check(got.count(200) >= 60 and set(got) <= {200, 503} and 503 in got, f"{got}")

    before = memory_kib(d.pid)
    slow = [connect(("127.0.0.1", f.port)) for _ in range(20)]
    for s in slow:  # they take nothing
        s.sendall(HEAD.format(target=f"/stream/{1 << 30}").format(host=f"127.0.0.1:{f.port}", token=f.token).encode() + b"\r\n")
    time.sleep(1.5)
    check(memory_kib(d.pid) - before < 20 * 512 + 4096, f"slow readers cost {memory_kib(d.pid) - before} KiB")
    for s in slow:
        s.close()


@test("limits: a gigabyte each way keeps the daemon's memory flat")
def _(api):
    d = api.daemon
    f = Place(api.client).forward()
    same(f.get("/").status, 200, "warm")
    before, peak, size = memory_kib(d.pid), 0, 1 << 30
    with connect(("127.0.0.1", f.port), 60) as s:
        s.sendall(HEAD.format(target=f"/stream/{size}").format(host=f"127.0.0.1:{f.port}", token=f.token).encode() + b"\r\n")
        n, into = 0, bytearray(1 << 20)
        while (k := s.recv_into(into)):
            n += k
            if n & 0x3fffff < k:
                peak = max(peak, memory_kib(d.pid))
    check(n > size, f"{n} bytes")
    with connect(("127.0.0.1", f.port), 60) as s:
        s.sendall(HEAD.replace("GET", "POST").format(target="/sink").format(host=f"127.0.0.1:{f.port}", token=f.token).encode() +
                  f"Content-Length: {size}\r\n\r\n".encode())
        piece = bytes(1 << 20)
        for _ in range(size // len(piece)):
            s.sendall(piece)
            peak = max(peak, memory_kib(d.pid))
        check(read_all(s, 100).endswith(str(size).encode()), "all of it came")
    check(peak - before < 4096, f"grew by {peak - before} KiB")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
