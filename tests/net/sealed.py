#!/usr/bin/env python3
"""Secrets: used by what is inside, and nowhere to be found there. TAP.

A REST server that says what it was sent (api.test, echo.test), behind nginx; a git server that wants a
password (forge.test). Values are made here and looked for everywhere at the end.

    tests/net/sealed.py          all (needs root)
    tests/net/sealed.py BEARER   those with the word in their title
"""
import base64
import json
import os
import pathlib
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.parse

import place  # before lib, whose folder it knows
import hunting
import lib
import schema
import servers
from lib import check, same, test, wait_until
from place import Box, caisson

NET = {"allow": ["api.test", "echo.test", "forge.test", "other.test"]}
# One that begins as others do, and has what base64 spells with + and /.
FOREIGN = "foreign"  # not stored: what an attacker brings along
VALUES = {name: f"canary-{name}-{random.SystemRandom().randbytes(12).hex()}>>>???" for name in ("bearer", "basic", "header", "query", "git", "new", FOREIGN)}
VALUES[FOREIGN] = VALUES[FOREIGN].strip(">?")  # so that curl does not have to escape it
CURL = "curl -sS --max-time 60"

REST = r"""
import base64, gzip, html, http.server, json, sys, time, urllib.parse
SPELL = {
    "plain": lambda t: t, "upper": lambda t: t.upper(), "hex": lambda t: t.encode().hex(), "HEX": lambda t: t.encode().hex().upper(),
    "percent": lambda t: "".join("%%%02x" % ord(c) for c in t), "quote": lambda t: urllib.parse.quote(t).lower(),
    "json": lambda t: "".join("\\u%04x" % ord(c) if c in ">?-" else c for c in t), "JSON": lambda t: "".join("\\u%04X" % ord(c) for c in t),
    "html": html.escape, "entities": lambda t: "".join("&#%d;" % ord(c) for c in t), "xentities": lambda t: "".join("&#x%x;" % ord(c) for c in t),
    "ansi": lambda t: t[:9] + "\x1b[1m" + t[9:], "lines": lambda t: "\n".join(t[i:i + 10] for i in range(0, len(t), 10)),
    "base64": lambda t: base64.b64encode(t.encode()).decode(), "late": lambda t: "x" * (3 << 19) + t,
}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        said = {"method": self.command, "path": self.path, "host": self.headers["Host"], "body": body.decode("latin1"),
                "fields": {k.lower(): v for k, v in self.headers.items()}}
        with open(sys.argv[3], "a") as log:
            log.write(json.dumps(said) + "\n")
        kind = self.path.split("?")[0]
        if kind == "/hidden":
            return self.say(json.dumps({"ok": bool(self.headers.get("Authorization"))}).encode())
        whole = json.dumps(said).encode()
        token = (self.headers.get("Authorization") or "").split(" ")[-1].encode()
        if kind == "/echo64":
            return self.say(b"x" + base64.b64encode(b"ab" + token + b"cd") + b"y" + base64.urlsafe_b64encode(token))
        if kind == "/spell":
            return self.say(("<" + SPELL[self.path.split("?")[1]](token.decode()) + ">").encode())
        if kind == "/twice":
            self.send_response(200)
            for coding in ("identity", "gzip"):
                self.send_header("Content-Encoding", coding)
            data = gzip.compress(token)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            return self.wfile.write(data)
        if kind == "/range":
            first, last = self.headers.get("Range", "bytes=0-9999").split("=")[1].split("-")
            part = token[int(first):int(last) + 1]
            if self.headers.get("Range") or "always" in self.path:
                return self.say(part, {"Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{len(token)}"}, 206)
            return self.say(token)
        if kind == "/ws":
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.end_headers()
            half = int(self.path.split("?")[1])
            for part in (b"<" + token[:half], token[half:] + b">"):
                self.wfile.write(part)
                self.wfile.flush()
                time.sleep(0.08)
            self.wfile.write(b"end s" if token[:1] == b"s" else b"end " + token[:1])  # what could begin one is not kept for ever
            self.wfile.flush()
            self.rfile.read(1)
            self.close_connection = True
            return None
        if kind == "/head":
            return self.say(b"see the head\n", {"X-Seen": token.decode()})
        if kind == "/slow":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(len(whole)):
                self.wfile.write(b"1\r\n" + whole[i:i + 1] + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return None
        return self.say(whole)
    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET
    def say(self, data, fields=(), status=200):
        self.send_response(status)
        for k, v in dict(fields).items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def begin():
    """The world, and the two servers of ours; their password file is there before nginx wants it."""
    servers.FOLDER.mkdir(parents=True, exist_ok=True)
    finish = place.prepare()
    hashed = servers.run("openssl", "passwd", "-apr1", VALUES["git"]).decode().strip()
    (servers.FOLDER / "forge.users").write_text(f"robot:{hashed}\n")
    rest = servers.Server("rest", ["/usr/bin/python3", "-c", REST, servers.WEB, "8200", said_file()], (servers.WEB, 8200))
    lib.SURROUNDINGS.append(rest.process.pid)

    def end():
        rest.stop()
        finish()
    return end


def said_file():
    return servers.FOLDER / "rest.said"


def said():
    """All requests that the REST server got."""
    return [json.loads(line) for line in said_file().read_text().splitlines()] if said_file().exists() else []


def set_secret(api, name, *words, value=None, status=0, verb="set"):
    who = api.daemon
    done = subprocess.run([str(lib.cell.BIN / "caisson"), "secret", verb, name, *words], input=value or VALUES[name], text=True,
                          capture_output=True, timeout=100, cwd="/", check=False,
                          env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(who.socket)})
    check((done.returncode == 0) == (status == 0), lambda: f"secret {verb} {name}: {done}")
    return done


def make(api, *creds, net=None, **spec):
    return Box(api.client, net or NET, **{"env": place.PLAIN_ENV, "creds": list(creds), **spec})


def heard(box, command, **options):
    """What the REST server says that it was sent."""
    text = box.good(command, **options)[0]["stdout"]
    return json.loads(text)


def ledger(api, query):
    return [json.loads(line) for line in api.client.get(f"/v1/events?{query}").body.splitlines()]


def count(path):
    return sum(r["path"] == path for r in said())


# ---- storing ----------------------------------------------------------------------------------

@test("set, ls, rotate, rm: a value goes in and never comes out")
def _(api):
    set_secret(api, "bearer", "--host", "api.test", "--env", "API_TOKEN", "--ttl", "1h")
    row = api.client.ok("GET", "/v1/secrets/bearer")
    same(row["bind"], {"hosts": ["api.test"], "inject": "bearer", "env": "API_TOKEN", "ttl": "1h"})
    same((row["version"], row["uses"], row["last_used_ms"]), (1, 0, None))
    set_secret(api, "bearer", verb="rotate", value=VALUES["new"])
    same(api.client.ok("GET", "/v1/secrets/bearer")["version"], 2)
    shown = caisson(api.daemon, "secret", "ls").stdout + caisson(api.daemon, "secret", "ls", "--json").stdout
    check("bearer" in shown and "api.test" in shown and not any(v in shown for v in VALUES.values()), shown)
    caisson(api.daemon, "secret", "rm", "bearer")
    same(api.client.get("/v1/secrets/bearer").status, 404)
    same(api.client.ok("GET", "/v1/secrets")["secrets"], [])


@test("what is not sealed, or bound to nothing, is refused and not repeated")
def _(api):
    value = VALUES["foreign"]
    bind = json.dumps({"hosts": ["api.test"]})
    for body in ({"value": value, "bind": bind}, {"bind": bind, "sealed": value}, {"bind": bind, "sealed": base64.b64encode(b"x" * 20).decode()},
                 {"sealed": base64.b64encode(b"x" * 100).decode()}, {"bind": '{"hosts":["*.test"]}', "sealed": base64.b64encode(b"x" * 100).decode()},
                 {"bind": "{}", "sealed": base64.b64encode(b"x" * 100).decode()}):
        answer = api.client.put("/v1/secrets/foreign", body)
        check(answer.status == 400 and value.encode() not in answer.body, f"{body}: {answer}")
    for words in (["--host", "http://api.test"], ["--host", "*.test"], [], ["--host", "api.test", "--inject", "cookie"], ["--host", "10.0.0.1"]):
        set_secret(api, "foreign", *words, status=1)
    set_secret(api, "foreign", "--host", "api.test", value="short", status=1)
    same(api.client.get("/v1/secrets/foreign").status, 404)


@test("creds: one that is not there, or without a network, makes no sandbox")
def _(api):
    set_secret(api, "bearer", "--host", "api.test", "--workspace", "other")
    set_secret(api, "basic", "--host", "api.test")
    for spec, words in (({"creds": ["nobody"], "net": NET}, "there is no secret"), ({"creds": ["basic"], "net": "deny"}, "without a network"),
                        ({"creds": ["bearer"], "net": NET}, "other workspaces")):
        answer = api.client.post("/v1/sandboxes", spec)
        check(answer.status >= 400 and words in answer.json["detail"], f"{spec}: {answer}")


@test("a value that is sealed beside another binding does not open")
def _(api):
    set_secret(api, "bearer", "--host", "api.test")
    row = api.client.ok("GET", "/v1/secrets/bearer")
    with sqlite3.connect(f"file:{api.daemon.state}/caisson.db?mode=ro", uri=True) as db:
        sealed = db.execute("SELECT sealed FROM secrets WHERE name='bearer'").fetchone()[0]
    bind = json.dumps({**row["bind"], "hosts": ["echo.test"]}, separators=(",", ":"))
    for name, text in (("bearer", bind), ("moved", json.dumps(row["bind"], separators=(",", ":")))):
        api.client.ok("PUT", f"/v1/secrets/{name}", {"bind": text, "sealed": sealed})
        answer = api.client.post("/v1/sandboxes", {"creds": [name], "net": NET})
        check(answer.status >= 400 and "does not open" in answer.json["detail"], answer)


# ---- using ------------------------------------------------------------------------------------

@test("bearer: with the placeholder or with nothing; only where it is bound")
def _(api):
    set_secret(api, "bearer", "--host", "api.test", "--path", "/repos/**", "--method", "GET", "--method", "POST", "--env", "API_TOKEN")
    box = make(api, "bearer")
    real = f"Bearer {VALUES['bearer']}"
    placeholder = box.good("printenv API_TOKEN")[0]["stdout"].strip()
    check(placeholder.startswith("csn_ph_") and len(placeholder) == 39, placeholder)
    ours = f"Bearer {placeholder}"
    said_before = len(said())
    for command in (f'{CURL} -H "Authorization: Bearer $API_TOKEN" https://api.test/repos/a', f"{CURL} https://api.test/repos/b",
                    f'{CURL} -u "x:$API_TOKEN" https://api.test/repos/c', f"{CURL} -d data https://api.test/repos/d"):
        box.good(command)
        last = said()[-1]
        same(last["fields"].get("authorization"), real)
        check(placeholder not in json.dumps(last), last)
    for where, field in (("https://api.test/elsewhere", ours), ("http://api.test/repos/a", ours), ("https://api.test:9443/repos/a", ours),
                         ("-k https://echo.test/repos/a", ours), ("-X PUT https://api.test/repos/a", ours)):
        box.good(f'{CURL} -H "Authorization: Bearer $API_TOKEN" {where}')
        same(said()[-1]["fields"].get("authorization"), field)
    for text in ("/repos/a?t=$API_TOKEN", "/repos/$API_TOKEN"):  # elsewhere in a request it is a text like any other
        box.good(f'{CURL} -d "$API_TOKEN" -H "X-Note: $API_TOKEN" "https://api.test{text}"')
        last = said()[-1]
        same((last["body"], last["fields"]["x-note"], last["fields"]["authorization"]), (placeholder, placeholder, real))
        check(placeholder in last["path"], last)
    same(len(said()) - said_before, 11)
    row = box.records(lambda r: r["kind"] == "request" and r["path"] == "/repos/a" and r["secrets"])[0]
    same((row["secrets"], row["name"], row["decision"]), (["bearer"], "api.test", "allow"))
    used = wait_until(lambda: r if (r := api.client.ok("GET", "/v1/secrets/bearer"))["uses"] >= 6 else None, 5, "uses")
    check(used["last_used_ms"] > 0, used)
    # Whoever looks at the ledger sees which secret went where, by which command, and when it was changed.
    records = wait_until(lambda: r if len(r := ledger(api, f"kind=secret&sandbox={box.id}")) >= 6 else None, 5, "records")
    same({(r["data"]["secret"], r["data"]["host"], r["data"]["port"]) for r in records}, {("bearer", "api.test", 443)})
    same([r["data"]["path"] for r in records][:4], ["/repos/a", "/repos/b", "/repos/c", "/repos/d"])
    check(all(r["process"].startswith("px_") and r["data"]["method"] in ("GET", "POST") for r in records), records)
    changed = ledger(api, "kind=secret.changed")
    same((changed[-1]["data"]["secret"], changed[-1]["data"]["what"], changed[-1]["actor"]), ("bearer", "set", "uid:0"))


@test("basic, header, query: as they are bound")
def _(api):
    set_secret(api, "basic", "--host", "echo.test", "--inject", "basic:robot", "--path", "/basic")
    set_secret(api, "header", "--host", "echo.test", "--inject", "header:X-Key", "--format", "Token {}", "--path", "/header", "--env", "KEY")
    set_secret(api, "query", "--host", "echo.test", "--inject", "query:key", "--path", "/query", "--env", "QUERY")
    box = make(api, "basic", "header", "query")
    box.good(f"{CURL} https://echo.test/basic")
    same(said()[-1]["fields"]["authorization"], "Basic " + base64.b64encode(f"robot:{VALUES['basic']}".encode()).decode())
    for command in (f"{CURL} https://echo.test/header", f'{CURL} -H "X-Key: $KEY" https://echo.test/header'):
        box.good(command)
        same((said()[-1]["fields"]["x-key"], said()[-1]["fields"].get("authorization")), (f"Token {VALUES['header']}", None))
    for command in (f"{CURL} 'https://echo.test/query?a=1&b=2'", f'{CURL} "https://echo.test/query?a=1&key=$QUERY&b=2"'):
        box.good(command)
        sent = urllib.parse.parse_qs(said()[-1]["path"].partition("?")[2])
        same(sent, {"key": [VALUES["query"]], "a": ["1"], "b": ["2"]})
    path = box.records(lambda r: r["kind"] == "request" and r["secrets"] == ["query"])[0]["path"]
    same(path, "/query")


@test("exclusive: another credential for such a host goes nowhere, and is on record")
def _(api):
    set_secret(api, "bearer", "--host", "api.test", "--env", "API_TOKEN")
    set_secret(api, "query", "--host", "api.test", "--inject", "query:key", "--path", "/query")
    box, evil = make(api, "bearer", "query"), VALUES["foreign"]
    before = len(said())
    tries = [f"-H 'Authorization: Bearer {evil}'", f"-u 'me:{evil}'", f"-H 'Cookie: s={evil}'", f"-H 'X-Api-Key: {evil}'",
             f"-H 'proxy-authorization: x {evil}'", f"-H 'PRIVATE-TOKEN: {evil}'", f"-G -d 'access_token={evil}'", f"-G -d 'key={evil}'",
             f"-G -d 'k%65y={evil}'", f'-H "Authorization: Bearer $API_TOKEN" -H "Authorization: Bearer {evil}"',
             f'-H "Authorization: Bearer {evil}$API_TOKEN"', f'-H "Authorization: Bearer $API_TOKEN{evil}"']
    for words in tries:
        for host in ("https://api.test", "http://api.test", "https://api.test:9443"):
            box.good(f"{CURL} -o /dev/null -w '%{{http_code}}' {words} {host}/x", "403")
    same([r for r in said()[before:] if evil in json.dumps(r)], [])
    rows = wait_until(lambda: r if len(r := box.records(lambda r: r["kind"] == "request" and r["reason"] == "credential")) == 3 * len(tries) else None,
                      5, "records")
    check(all(r["decision"] == "deny" for r in rows), rows)
    check(evil not in json.dumps(box.records()), "the credential is in a record")
    box.good(f"{CURL} -o /dev/null -w '%{{http_code}}' -k -H 'Authorization: Bearer {evil}' https://other.test/hello.txt", "200")
    same(box.run(f"{CURL} -X TRACE https://api.test/x -o /dev/null -w '%{{http_code}}'")[0]["stdout"], "403")


@test("an answer that says the secret is masked, however it comes")
def _(api):
    set_secret(api, "bearer", "--host", "api.test")
    box, value = make(api, "bearer"), VALUES["bearer"]
    for path in ("/echo", "/slow"):
        text = box.good(f"{CURL} -i --compressed https://api.test{path}")[0]["stdout"]
        check(value not in text and "*" * len(value) in text, text)
    text = box.good(f"{CURL} https://api.test/echo64")[0]["stdout"]
    inner = base64.b64encode(b"ab" + value.encode() + b"cd").decode()
    check(inner[4:-8] not in text and base64.urlsafe_b64encode(value.encode()).decode()[:-4] not in text and "*" * 40 in text, text)
    text = box.good(f"{CURL} -i https://api.test/head")[0]["stdout"]
    check(value not in text and "see the head" in text and "X-Seen: ****" in text, text)
    check(box.records(lambda r: r["reason"] == "reflected"), box.shown)
    # Length and the rest of an answer stay what they were.
    plain = box.good(f"{CURL} https://api.test/echo -o /work/a -w '%{{size_download}}'; stat -c %s /work/a")[0]["stdout"]
    check(plain, plain)


# Inside: speaks TLS by itself, and prints backwards what came, which no mask of an output knows.
BACKWARDS = r"""
import socket, ssl, sys
path, fields = sys.argv[1], sys.argv[2]
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", 443), 30), server_hostname="api.test")
s.sendall(f"GET {path} HTTP/1.1\r\nHost: api.test\r\n{fields}\r\n".encode())
data = b""
while (more := s.recv(65536)):
    data += more
    if data[-5:-1] == b"end ":
        s.sendall(b"x")
        break
sys.stdout.buffer.write(data[::-1][:3000])
"""


@test("the value does not come back in another spelling, in parts, in a coding that was said twice, or behind 101")
def _(api):
    set_secret(api, "bearer", "--host", "api.test")
    box, value = make(api, "bearer"), VALUES["bearer"]

    def backwards(path, fields="Connection: close\r\n"):
        return box.good(["python3", "-c", BACKWARDS, path, fields])[0]["stdout"][::-1]
    for name in ("plain", "upper", "hex", "HEX", "percent", "quote", "json", "JSON", "html", "entities", "xentities", "ansi", "lines", "base64"):
        text = backwards(f"/spell?{name}")
        inner = text[text.index("\r\n\r\n<") + 5:-3 if name == "base64" else -1]  # its last digits depend on what follows
        check(text.endswith(">") and not inner.strip("x*\n").replace("\x1b[1m", "").strip("*\n"), f"{name}: {text[-400:]}")
    text = backwards("/spell?late")  # behind the first MiB
    check(text.endswith("x" + "*" * len(value) + ">"), text[-400:])
    text = backwards("/twice")
    check(text.startswith("HTTP/1.1 502"), text)
    parts = ""
    for first in range(0, len(value), 13):
        text = backwards("/range", f"Range: bytes={first}-{first + 12}\r\nIf-Range: x\r\nConnection: close\r\n")
        parts += text.partition("\r\n\r\n")[2]
        check("range" not in said()[-1]["fields"] and text.startswith("HTTP/1.1 200"), text)
    check(not parts.strip("*"), parts)
    check(backwards("/range?always").startswith("HTTP/1.1 502"), "a part that nobody asked for")
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    for half in (1, 3, 4, 20, len(value) - 1, len(value)):
        text = backwards(f"/ws?{half}", upgrade).partition("\r\n\r\n")[2]
        stars = "*" * (len(value) - (half if half < 4 else 0))
        same(text, f"<{value[:half] if half < 4 else ''}{stars}>end {value[0]}", f"behind 101, cut at {half}")


@test("what a server could read as another path or method does not arrive; only_bound refuses what no binding covers")
def _(api):
    set_secret(api, "bearer", "--host", "api.test", "--path", "/mine/**", "--method", "GET")
    set_secret(api, "new", "--host", "echo.test", "--path", "/mine/**", "--only-bound")
    same(api.client.ok("GET", "/v1/secrets/new")["bind"]["only_bound"], True)
    box = make(api, "bearer", "new")
    real = f"Bearer {VALUES['bearer']}"
    code = f"{CURL} --path-as-is -o /dev/null -w '%{{http_code}}' "
    box.good(code + "https://api.test/mine/x", "200")
    same(said()[-1]["fields"].get("authorization"), real, "the control")
    for dots in ("..%3b", "..%20", "..%c2%a0", "..%e2%80%8b", "%ef%bc%8e%ef%bc%8e", "..%3Bx=1"):
        box.good(code + f"'https://api.test/mine/{dots}/x'", "200")  # it goes, as any other path: without the secret
        same(said()[-1]["fields"].get("authorization"), None, dots)
    fields = ("X-HTTP-Method-Override: DELETE", "X-Original-URL: /admin", "X-Rewrite-URL: /admin", "X-Forwarded-Host: evil.test", "X_Note: x",
              "Content_Length: 5", "X-Fine: 1")
    box.good(code + " ".join(f"-H '{f}'" for f in fields) + " https://api.test/mine/x", "200")
    came = said()[-1]["fields"]
    same((came.get("authorization"), came.get("x-fine")), (real, "1"), came)
    check(not {f.split(":")[0].lower() for f in fields[:-1]} & set(came), came)
    box.good(code + f"-H 'Authorization: Bearer {VALUES[FOREIGN]}' https://api.test/mine/x", "403")
    box.good(code + f"-H 'Authorization: Bearer {VALUES[FOREIGN]}' https://api.test/theirs", "200")  # elsewhere their own tokens live
    same(said()[-1]["fields"].get("authorization"), f"Bearer {VALUES[FOREIGN]}")
    before = len(said())
    box.good(code + "https://echo.test/mine/x", "200")
    for where in ("https://echo.test/theirs", "http://echo.test/mine/x", "https://echo.test:9443/mine/x", "-d access_token=x https://echo.test/theirs"):
        box.good(code + where, "403")
    same(len(said()) - before, 1, "only what is bound")


@test("revoked, replaced, over: at once, in sandboxes that run")
def _(api):
    set_secret(api, "bearer", "--host", "api.test", "--env", "API_TOKEN")
    box, other = make(api, "bearer"), make(api)
    ask = f'{CURL} -H "Authorization: Bearer $API_TOKEN" https://api.test/x'
    box.good(ask)
    same(said()[-1]["fields"]["authorization"], f"Bearer {VALUES['bearer']}")
    set_secret(api, "bearer", verb="rotate", value=VALUES["new"])

    def now(box, field, command=ask):
        box.good(command)
        return said()[-1]["fields"].get("authorization") == field
    wait_until(lambda: now(box, f"Bearer {VALUES['new']}"), 3, "the new value")
    placeholder = box.good("printenv API_TOKEN")[0]["stdout"].strip()
    # Another sandbox can do nothing with it.
    check(now(other, f"Bearer {placeholder}", f"{CURL} -k -H 'Authorization: Bearer {placeholder}' https://api.test/x"), said()[-1])
    caisson(api.daemon, "secret", "rm", "bearer")
    wait_until(lambda: now(box, f"Bearer {placeholder}", ask.replace("-sS", "-sSk")), 3, "nothing but the placeholder")
    set_secret(api, "bearer", "--host", "api.test", "--env", "API_TOKEN", "--ttl", "1s")
    late = make(api, "bearer")
    time.sleep(1.1)
    placeholder = late.good("printenv API_TOKEN")[0]["stdout"].strip()
    check(now(late, f"Bearer {placeholder}"), said()[-1])


@test("two sandboxes with the same secret have placeholders of their own; the gate and the daemon may die", own=True)
def _(_api):
    daemon = lib.Daemon("dies", options=place.OPTIONS).start()
    first = daemon.process.pid
    api = type("Api", (), {"daemon": daemon, "client": daemon.client()})
    set_secret(api, "bearer", "--host", "api.test", "--env", "API_TOKEN")
    boxes = [make(api, "bearer") for _ in range(2)]
    tokens = {box.good("printenv API_TOKEN")[0]["stdout"] for box in boxes}
    same(len(tokens), 2)
    ask = f'{CURL} -H "Authorization: Bearer $API_TOKEN" https://api.test/x'
    real = f"Bearer {VALUES['bearer']}"
    for kill in ("gate", "daemon"):
        if kill == "gate":
            for pid, name in lib.children_of(daemon.process.pid).items():
                if name.startswith("caisson-gate"):
                    os.kill(pid, 9)
        else:
            daemon.stop()
            daemon.start()
            api.client = daemon.client()
        for box in boxes:
            box.client = api.client
            box.good(ask)
            same(said()[-1]["fields"]["authorization"], real)
    same({box.good("printenv API_TOKEN")[0]["stdout"] for box in boxes}, tokens)
    daemon.client().remove_all()
    # Whose launcher is dead they are removed by the next one, a moment later.
    wait_until(lambda: not [g for g in lib.census.cgroups() if f"/caisson/{first}/" in g], 5, "no cgroup of theirs")
    daemon.wait_clean()
    daemon.stop()


# ---- git --------------------------------------------------------------------------------------

@test("git: clone and push of what wants a password, with none inside")
def _(api):
    set_secret(api, "git", "--host", "forge.test", "--inject", "basic:robot")
    box = make(api, "git")
    box.good("git clone -q https://forge.test/project.git /work/p && cat /work/p/hello.txt", servers.TEXT)
    who = "-c user.name=a -c user.email=a@example.org"
    box.good(f"cd /work/p && echo more >more && git add . && git {who} commit -qm more && git push -q origin HEAD:refs/heads/agent/one")
    out = servers.run("git", "-C", servers.FOLDER / "git/project.git", "-c", "safe.directory=*", "log", "--format=%s", "agent/one").decode()
    same(out.split(), ["more", "first"])
    plain = make(api)
    plain.bad("git clone -q https://forge.test/project.git /work/p", 20)


PUSH = ("cd /work/p && date +%N >more && git add . && git -c user.name=a -c user.email=a@example.org commit -qm more && "
        "git push -q origin HEAD:{}")


@test("git: only that repository, and only those refs")
def _(api):
    set_secret(api, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "project", "--push", "refs/heads/agent/*")
    box = make(api, "git")
    box.good("git clone -q https://forge.test/project.git /work/p")
    box.good(PUSH.format("refs/heads/agent/two"))
    for ref in ("refs/heads/main", "refs/heads/agent/a/b", "refs/tags/agent", "refs/heads/agent/three HEAD:refs/heads/main"):
        box.bad(PUSH.format(ref), 20)
    rows = box.records_of(4, lambda r: r["kind"] == "request" and r["reason"] == "git")
    check(len(rows) == 4 and all(r["path"] == "/project.git/git-receive-pack" and r["decision"] == "deny" for r in rows), box.shown)
    refs = servers.run("git", "-C", servers.FOLDER / "git/project.git", "-c", "safe.directory=*", "for-each-ref", "--format=%(refname)").decode().split()
    check("refs/heads/agent/two" in refs and "refs/heads/agent/three" not in refs and "refs/tags/agent" not in refs, refs)
    same(servers.run("git", "-C", servers.FOLDER / "git/project.git", "-c", "safe.directory=*", "log", "--format=%s", "main").decode().split(), ["first"])
    # Large enough that git sends it in chunks, after a question.
    box.good("cd /work/p && head -c 3000000 /dev/urandom >big && git add . && git -c user.name=a -c user.email=a@example.org commit -qm big && "
             "git push -q origin HEAD:refs/heads/agent/big")
    for path in ("/project.git/HEAD", "/other.git/info/refs?service=git-upload-pack", "/project.git/info/refs"):
        box.good(f"{CURL} -o /dev/null -w '%{{http_code}}' 'https://forge.test{path}'", "401")
    set_secret(api, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "project")
    wait_until(lambda: box.run(PUSH.format("refs/heads/agent/four"))[0]["exit_code"] != 0, 5, "a push that is refused")
    box.good("cd /work/p && git fetch -q")


@test("repo add and push with a secret: in sandboxes of ours, by the same rules")
def _(api):
    set_secret(api, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "project", "--push", "refs/heads/agent/*")
    url = "https://forge.test/project.git"
    check(api.client.put("/v1/repos/open?wait=80s", {"url": url}).status >= 400, "it needs none")
    same(api.client.put("/v1/repos/wrong", {"url": url, "cred": "nobody"}).code, "not_found")
    api.client.delete("/v1/repos/open")
    caisson(api.daemon, "repo", "add", url, "--cred", "git")
    repo = api.client.ok("GET", "/v1/repos")["repos"][0]
    same((repo["cred"], repo["state"]), ("git", "ready"))
    work = api.client.ok("PUT", "/v1/workspaces/task", {"repo": repo["id"], "branch": "agent/mine"})
    api.client.ok("PUT", f"/v1/workspaces/{work['id']}/files/new.txt", b"new\n")
    sha = api.client.ok("POST", f"/v1/workspaces/{work['id']}/commits", {"message": "by us"})["sha"]
    caisson(api.daemon, "push", work["id"])
    pushed = ledger(api, f"workspace={work['id']}&kind=git.pushed")[-1]
    same((pushed["data"]["commit"], pushed["data"]["host"], pushed["data"]["branch"], pushed["actor"]), (sha, "forge.test", "agent/mine", "uid:0"))
    used = wait_until(lambda: [r for r in ledger(api, f"kind=secret.used&workspace={work['id']}") if r["data"]["secret"] == "git"], 5, "its secret")
    same({r["data"]["host"] for r in used}, {"forge.test"})
    at = servers.run("git", "-C", servers.FOLDER / "git/project.git", "-c", "safe.directory=*", "rev-parse", "agent/mine").decode().strip()
    same(at, sha)
    check(api.client.post(f"/v1/workspaces/{work['id']}/push", {"branch": "main"}).status >= 400, "a push to main")
    api.client.delete(f"/v1/workspaces/{work['id']}?force=1")
    api.client.delete(f"/v1/repos/{repo['id']}")


# ---- nowhere else -----------------------------------------------------------------------------

HUNT = r"""
import base64, os, sys
value = sys.stdin.readline().strip().encode()
forms = [value, base64.b64encode(value)[:-4], value.hex().encode()]
hits = []
def look(name, data):
    if any(f in data for f in forms):
        hits.append(name)
for top, folders, files in os.walk("/"):
    folders[:] = [f for f in folders if os.path.join(top, f) not in ("/proc", "/sys", "/usr", "/lib", "/lib64")]
    for f in files:
        path = os.path.join(top, f)
        try:
            if os.path.isfile(path) and not os.path.islink(path):
                look(path, open(path, "rb").read())
        except OSError:
            pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid():
        continue
    for f in ("environ", "cmdline"):
        try:
            look(f"/proc/{pid}/{f}", open(f"/proc/{pid}/{f}", "rb").read())
        except OSError:
            pass
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                span, mode = line.split()[:2]
                if "r" in mode and "vvar" not in line and "vsyscall" not in line:
                    a, b = (int(x, 16) for x in span.split("-"))
                    try:
                        mem.seek(a)
                        look(f"/proc/{pid}/mem", mem.read(min(b - a, 64 << 20)))
                    except (OSError, ValueError, OverflowError):
                        pass
    except OSError:
        pass
print("\n".join(hits) or "nothing")
"""


class Sampler:
    """What processes show to others, as often as can be, while it lasts."""

    def __init__(self, hunter):
        self.hunter, self.is_over, self.rounds = hunter, False, 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.is_over:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                if int(pid) != os.getpid():
                    self.hunter.shown(pid)
            self.rounds += 1
            time.sleep(0.01)

    def stop(self):
        self.is_over = True
        self.thread.join()
        check(self.rounds > 10, f"only {self.rounds} looks")


def exercise(box):
    """Every kind of client, with what a server may say back."""
    who = "-c user.name=a -c user.email=a@example.org"
    ask = f'{CURL} -H "Authorization: Bearer $API_TOKEN" https://api.test'
    for path in ("/x", "/echo", "/echo64", "/head", "/slow"):
        box.good(f"{ask}{path} >>/work/answers")
    box.good(f"{CURL} https://echo.test/echo >>/work/answers")
    box.good("python3 -c \"import urllib.request as u, os; print(u.urlopen(u.Request('https://api.test/echo', "
             "headers={'Authorization': 'Bearer ' + os.environ['API_TOKEN']})).read())\" >>/work/answers")
    box.good("rm -rf /work/p && git clone -q https://forge.test/project.git /work/p && cd /work/p && date +%N >new && git add . && "
             f"git {who} commit -qm new && git push -q origin HEAD:refs/heads/agent/hunted && git fetch -q")
    # An attacker's own key goes nowhere, and is on record.
    box.good(f"{CURL} -o /dev/null -w '%{{http_code}}' -H 'Authorization: Bearer {VALUES[FOREIGN]}' https://api.test/mine", "403")
    check(box.records(lambda r: r["kind"] == "request" and r["path"] == "/mine" and r["decision"] == "deny" and r["reason"] == "credential"), box.shown)
    same(count("/mine"), 0)
    box.client.execute(box.sandbox, f"sh -c 'while :; do {ask}/echo >>/work/log; sleep 0.05; done'", wait="0s", timeout="600s")


def texts_of(api, box, work):
    """All that the daemon says to who asks, also when he asks for nonsense."""
    for path in ("/v1/secrets", "/v1/secrets/bearer", "/v1/sandboxes", f"/v1/sandboxes/{box.id}", f"/v1/sandboxes/{box.id}/connections?limit=1000",
                 "/v1/processes?limit=1000", "/v1/events", "/v1/events?format=ocsf", "/metrics", "/v1/health", "/v1/sealing", "/v1/repos", "/v1/workspaces",
                 f"/v1/workspaces/{work}/history", f"/v1/workspaces/{work}/changes?format=patch", f"/v1/workspaces/{work}/archive"):
        yield path, api.client.get(path).body
    value = VALUES["bearer"]
    for body in ({"value": value}, {"bind": value, "sealed": value}, {"bind": json.dumps({"hosts": [value]}), "sealed": value},
                 {"bind": json.dumps({"hosts": ["api.test"], "inject": value, "env": value}), "sealed": base64.b64encode(value.encode()).decode()}):
        for name in ("bearer2", urllib.parse.quote(value, safe="")):
            answer = api.client.put(f"/v1/secrets/{name}", body)
            check(answer.status >= 400, answer)
            yield f"PUT {name} {list(body)}", answer.body
    for words in (["doctor"], ["events"], ["secret", "ls"], ["list"]):
        done = caisson(api.daemon, *words, status=(0, 1))
        yield " ".join(words), done.stdout + done.stderr


def gates_below(tree):
    """Children of the gate's master: they have what their sandbox may use. And the others."""
    gates = {pid for pid in tree if hunting.name_of(pid).startswith("caisson-gate")}
    children = {pid for pid in gates if tree[pid] in gates}
    return children, set(tree) - children


def cores(folders):
    return [path for folder in folders for path in pathlib.Path(folder).glob("core*") if path.is_file()]


@test("what the ledger has of all that is as its schema says")
def _(api):
    seen = schema.valid(ledger(api, "kind=secret,git,repo,workspace,net,approval"))
    check((seen["secret.used"] > 0 and seen["secret.changed"] > 0 and seen["git.pushed"] > 0) or len(sys.argv) > 3, seen)


@test("after all of it: no value inside, in the daemon's folders, in what it said, or in what processes show")
def _(api):
    stored = {name: value for name, value in VALUES.items() if name != FOREIGN}
    hunter = hunting.Hunter(stored)
    sampler = Sampler(hunter)
    set_secret(api, "bearer", "--host", "api.test", "--env", "API_TOKEN")
    set_secret(api, "header", "--host", "echo.test", "--inject", "header:X-Key")
    set_secret(api, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "project", "--push", "refs/heads/agent/*")
    work = api.client.ok("PUT", "/v1/workspaces/hunted", {})["id"]
    box = make(api, "bearer", "header", "git", workspace=work)
    exercise(box)
    wait_until(lambda: count("/echo") > 8, 5, "requests")
    box.put("/work/hunt.py", HUNT)
    # The hunter inside is told what it looks for in two halves, else it would find its own command.
    value = VALUES["bearer"]
    half = len(value) // 2
    found = box.good(f"(printf %s '{value[:half]}'; printf '%s\\n' '{value[half:]}') | python3 /work/hunt.py")[0]["stdout"]
    same(found.strip(), "nothing")
    sampler.stop()
    same(hunter.take_hits(), [], "shown by processes")
    # Memory: children of the gate have it, which proves that this finds it; nobody else.
    tree = hunting.below(api.daemon.process.pid)
    children, others = gates_below(tree)
    for pid in children:
        hunter.memory(pid, "gates")
    check("bearer" in {name for _, name in hunter.take_hits()}, "the gate has what it sends")
    for pid in others | {api.daemon.process.pid}:
        hunter.memory(pid)
    same(hunter.take_hits(), [], "memory")
    inside = hunting.root_pid_of(others)
    check(len(inside) >= 2, inside)
    first = min(inside)  # the first process of it stays; commands come and go
    hunter.tree(f"/proc/{first}/root", "inside", {f"/proc/{first}/root/{f}" for f in ("proc", "sys", "usr", "lib", "lib64", "bin", "sbin")})
    for folder in (api.daemon.state, api.daemon.run):
        hunter.tree(folder, "state")
    hunter.file(api.daemon.log, "log")
    same(hunter.take_hits(), [], "files")
    for what, text in texts_of(api, box, work):
        hunter.look(what, text, "said")
    same(hunter.take_hits(), [], "said")
    check(all(hunter.seen.get(kind, 0) > least for kind, least in (("memory", 10 << 20), ("inside", 10000), ("state", 1 << 20), ("objects", 500),
                                                                  ("said", 10000), ("shown", 100000), ("log", 100))), hunter.seen)
    # Revoked: it is not even there any more (best effort: TLS has buffers of its own).
    api.client.delete("/v1/secrets/bearer")
    wait_until(lambda: "csn_ph_" in box.run(f'{CURL} -k -H "Authorization: Bearer $API_TOKEN" https://api.test/echo')[0]["stdout"], 5, "the placeholder")
    for pid in children:
        hunter.memory(pid, "gates")
    check("bearer" not in {name for _, name in hunter.take_hits()}, "it stays in the gate")
    api.client.remove(box.sandbox)
    api.client.delete(f"/v1/workspaces/{work}?force=1")


@test("cores: a crash of what has secrets leaves none", own=True)
def _(_api):
    daemon = lib.Daemon("cores", options=place.OPTIONS).start()
    api = type("Api", (), {"daemon": daemon, "client": daemon.client()})
    set_secret(api, "bearer", "--host", "api.test", "--env", "API_TOKEN")
    box = make(api, "bearer")
    box.good(f"{CURL} https://api.test/x")
    folders = ["/", "/tmp", "/run", daemon.state, daemon.run]
    control = pathlib.Path(daemon.run) / "control"
    control.mkdir()
    pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text()
    sleeper = subprocess.Popen(["sleep", "60"], cwd=control, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1)))
    sleeper.send_signal(signal.SIGABRT)
    sleeper.wait()
    check(cores([control]) or pattern[0] in "/|", "a crash leaves a core here, else this proves nothing")
    tree = hunting.below(daemon.process.pid)
    for pid in list(tree):
        name = hunting.name_of(pid)
        if not name.startswith("caisson-gate"):
            continue  # the others have none
        limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
        check(re.search(r"Max core file size +0 +0 ", limits), lambda name=name, limits=limits: f"{name}: {limits}")
        folders.append(os.readlink(f"/proc/{pid}/cwd"))
    # Not traced by others of its id either: it is not dumpable, so its files in /proc are root's.
    gates = [pid for pid in tree if hunting.name_of(pid).startswith("caisson-gate")]
    check(len(gates) >= 2 and all(os.stat(f"/proc/{pid}/mem").st_uid == 0 for pid in gates), gates)
    for pid in gates:
        try:
            os.kill(pid, signal.SIGABRT)
        except ProcessLookupError:
            pass
    box.client = daemon.client()
    box.good(f"{CURL} https://api.test/x")
    same(cores(folders), [])
    daemon.client().remove_all()
    daemon.stop()


@test("tokens of the API: long, in a header only, nowhere in clear")
def _(api):
    made = [json.loads(caisson(api.daemon, "token", "create", "--scope", "read", "--json").stdout) for i in range(2)]
    tokens = [next(v for v in m.values() if isinstance(v, str) and len(v) > 30) for m in made]
    check(tokens[0] != tokens[1] and all(len(set(re.sub("^[a-z]+_", "", t))) > 8 and len(re.sub("^[a-z]+_", "", t)) * 4 >= 128 for t in tokens), "entropy")
    hunter = hunting.Hunter({"one": tokens[0], "two": tokens[1]})
    for query in (f"?token={tokens[0]}", f"?access_token={tokens[0]}"):
        api.client.get(f"/v1/sandboxes{query}")  # the owner's socket answers; it is in no log
    for folder in (api.daemon.state, api.daemon.run):
        hunter.tree(folder, "state")
    hunter.file(api.daemon.log, "log")
    same(hunter.take_hits(), [])
    for m in made:
        caisson(api.daemon, "token", "rm", m["id"])
    api.client.ok("GET", "/v1/sealing")  # there is a key
    for path, mode in ((api.daemon.state / "gate.key", 0o600), (api.daemon.state / "caisson.db", 0o600)):
        same(path.stat().st_mode & 0o777, mode, path)


if __name__ == "__main__":
    sys.exit(place.main(__file__, begin=begin))
