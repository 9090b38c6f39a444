#!/usr/bin/env python3
"""What waits for a person: connections that are held, looser rules, wall time; who may decide, when it is too
late, and what is left when somebody is killed meanwhile. TAP.

    tests/net/approvals.py          all (needs root)
    tests/net/approvals.py killed   those with the word in their title
"""
import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pty
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import place  # before lib, whose folder it knows
import lib
import schema
import servers
from lib import Daemon, check, same, test, wait_until
from place import Box, wait_end

CURL = "curl -s --fail --max-time 100 -o /dev/null -w '%{http_code} %{num_connects}' "
HELD_SECONDS = 30 if place.HAS_MORE else 8


def options(ask="60s"):
    return [*place.OPTIONS[:2], "--net", f"ask={ask}", *place.OPTIONS[4:], "--listen", "127.0.0.1:0"]


@contextlib.contextmanager
def daemon(name, ask="60s"):
    d = Daemon(name, options=options(ask)).start()
    c = d.client()
    try:
        yield d, c
        c.close()
        c.remove_all()
        d.wait_clean()
    finally:
        c.close()
        d.stop()


def pending(c, n=1, query="", seconds=10):
    """So many wait, no more and no less; oldest first."""
    def look():
        found = c.ok("GET", f"/v1/approvals?state=pending{query}")["approvals"]
        return found[::-1] if len(found) == n else None
    if n == 0:
        wait_until(lambda: look() is not None, seconds, "nobody waits")
        return []
    return wait_until(look, seconds, f"{n} wait")


def decide(c, approval, decision, **more):
    return c.post(f"/v1/approvals/{lib.id_of(approval)}", {"decision": decision, **more})


def one(c, approval, wait=""):
    return c.ok("GET", f"/v1/approvals/{lib.id_of(approval)}{wait}")


def start(box, url="http://web.test/hello.txt"):
    """A client inside that just waits."""
    return box.client.execute(box.sandbox, CURL + url, wait="0s")


def ended(box, p, stdout, seconds=lib.PATIENCE):
    done = wait_end(box.client, p, seconds)
    check(done["stdout"].startswith(stdout), lambda: f"{place.summary(done)}\n{box.shown()}")
    return done


def ledger(c, kind):
    return [json.loads(x) for x in c.get(f"/v1/events?kind={kind}").body.decode().splitlines()]


long_one = {}


@test("a connection is held; the client inside just waits", own=True)
def _(_api):
    d = Daemon("long", options=options("120s")).start()
    c = d.client()
    box = Box(c, {"ask": ["web.test"]})
    p = start(box, "https://web.test/hello.txt")
    [a] = pending(c)
    long_one.update(d=d, c=c, box=box, p=p, a=a, began=time.monotonic())
    lib.SURROUNDINGS.extend([d.process.pid, *(lib.session_of(x) for x in d.monitors())])
    want = {"state": "pending", "kind": "net", "sandbox": box.id, "process": p["id"], "what": "connect to web.test:443",
            "suggestion": "net.allow: web.test:443", "detail": {"host": "web.test", "port": 443, "rule": "ask: web.test"},
            "scope": None, "actor": None, "decided_ms": None}
    same({k: a[k] for k in want}, want, "the question")
    check("ask: web.test" in a["why"] and "curl" in a["why"], a["why"])
    check(100_000 < a["until_ms"] - a["created_ms"] <= 120_000, a)


@test("allowed: it goes on; denied: it fails at once; each with a record that names the approval", own=True)
def _(_api):
    with daemon("both") as (_, c):
        box = Box(c, {"ask": ["web.test"]})
        p = start(box)
        [a] = pending(c)
        got = decide(c, a, "allow", note="fine \x1b[2J")
        same((got.status, got.json["state"], got.json["scope"], got.json["actor"]), (200, "allowed", "once", "uid:0"), "decided")
        same(got.json["note"], "fine \\x1b[2J", "the note, as it can be shown")
        ended(box, p, "200 1")
        [r] = box.records(lambda r: r["close"] == "client")
        same((r["decision"], r["approval"], r["rule"]), ("ask_allow", a["id"], "ask: web.test"), "the record")
        p, begin = start(box), time.monotonic()  # once is once
        [b] = pending(c)
        check(b["id"] != a["id"], "another question")
        same(decide(c, b, "deny").json["state"], "denied", "denied")
        ended(box, p, "000")
        check(time.monotonic() - begin < 40, "it failed at once")
        [r] = box.records(lambda r: r["decision"] == "ask_deny")
        same((r["approval"], r["reason"]), (b["id"], "ask_denied"), "its record")
        p = c.ok("GET", f"/v1/processes/{p['id']}")
        check(any(v["reason"] == "ask_denied" for v in p["violations"]), p)
        asked, said = ledger(c, "approval.asked"), ledger(c, "approval.decided")
        same([x["data"]["approval"] for x in asked], [a["id"], b["id"]], "asked, in the ledger")
        same([(x["data"]["state"], x["actor"], x["sandbox"]) for x in said],
             [("allowed", "uid:0", box.id), ("denied", "uid:0", box.id)], "decided, in the ledger")


@test("the same is one question; a decision for the sandbox or the workspace answers the next; each has an end", own=True)
def _(_api):
    with daemon("scopes") as (_, c):
        w = c.ok("PUT", "/v1/workspaces/w", {})
        spec = {"fs": ["workspace:/work"], "workspace": w["id"]}
        one_box, other = (Box(c, {"ask": ["web.test", "other.test"]}, **spec) for _ in range(2))
        ps = [start(one_box) for _ in range(3)]
        [a] = pending(c)
        same(decide(c, a, "allow", scope="sandbox", **{"for": "1h"}).status, 200, "for the sandbox")
        _ = [ended(one_box, p, "200 1") for p in ps]
        ended(one_box, start(one_box), "200 1")
        same(len(c.ok("GET", "/v1/approvals")["approvals"]), 1, "it was not asked again")
        p = start(other)
        [b] = pending(c)
        same((b["sandbox"], b["workspace"]), (other.id, w["id"]), "the other one asks")
        same(decide(c, b, "allow", scope="workspace", **{"for": "1s"}).status, 200, "for the workspace")
        ended(other, p, "200 1")
        time.sleep(1.1)
        p = start(other)
        [x] = pending(c)
        decide(c, x, "deny", scope="workspace")
        ended(other, p, "000")
        ended(other, start(other), "000")
        box = Box(c, {"ask": ["web.test"]})
        p = start(box)
        [y] = pending(c)
        same(decide(c, y, "allow", scope="workspace").code, "invalid", "it has none")
        same(decide(c, y, "allow", **{"for": "1h"}).code, "invalid", "once has no time")
        same(decide(c, y, "maybe").code, "invalid", "no decision")
        same(decide(c, y, "allow", scope="world").code, "invalid", "no scope")
        decide(c, y, "allow")
        ended(box, p, "200 1")


@test("the same decision again changes nothing; another, a late one and one for nobody are told so", own=True)
def _(_api):
    with daemon("late", "5s") as (_, c):  # time enough to see the question
        box = Box(c, {"ask": ["web.test"]})
        p = start(box)
        [a] = pending(c)
        ended(box, p, "000")
        late = decide(c, a, "allow")
        same((late.status, late.code, late.json["state"]), (409, "conflict", "expired"), "late")
        check("nothing was changed" in late.json["detail"], late)
        same((one(c, a)["state"], one(c, a)["reason"]), ("expired", "nobody answered in time"), "the row")
        [r] = box.records(lambda r: r["decision"] == "ask_deny")
        same((r["reason"], r["approval"]), ("ask_timeout", a["id"]), "the record")
        p = start(box)
        [b] = pending(c)
        same([decide(c, b, "allow").status for _ in range(3)], [200, 200, 200], "the same again")
        again = decide(c, b, "deny")
        same((again.status, again.json["state"]), (409, "allowed"), "the other")
        same(decide(c, b, "allow", scope="sandbox").status, 409, "for more than it was")
        ended(box, p, "200 1")
        same(len([x for x in ledger(c, "approval.decided") if x["data"]["approval"] == b["id"]]), 1, "once in the ledger")
        same(decide(c, "ap_nothing", "allow").code, "not_found", "of none")


@test("nobody who waits any more: withdrawn, and too late for an answer", own=True)
def _(_api):
    with daemon("gone") as (_, c):
        box, other = Box(c, {"ask": ["web.test"]}), Box(c, {"ask": ["web.test"]})
        p = start(box)
        [a] = pending(c)
        c.delete(f"/v1/processes/{p['id']}")
        got = one(c, a, "?wait=40s")
        same(got["state"], "withdrawn", "its client was killed")
        start(other)
        [b] = pending(c)
        other.remove()
        same(one(c, b, "?wait=40s")["state"], "withdrawn", "its sandbox is gone")
        late = decide(c, b, "allow")
        same((late.status, late.json["state"]), (409, "withdrawn"), "late")


@test("long poll, lines and Server-Sent Events; from where one was; filters", own=True)
def _(_api):
    with daemon("follow") as (d, c):
        box = Box(c, {"ask": ["web.test", "other.test"]})
        seen, lines, tail = {}, [], d.client()
        response = tail.send("GET", "/v1/approvals?follow=1", headers={"Accept": "text/event-stream"})

        def read():
            with contextlib.suppress(OSError, ValueError, AttributeError):  # it is closed meanwhile
                for line in response:
                    lines.append(line.decode().rstrip())
        threading.Thread(target=read, daemon=True).start()
        waiter = d.client()
        t = threading.Thread(target=lambda: seen.update(waiter.ok("GET", "/v1/approvals?state=pending&wait=80s")))
        t.start()
        time.sleep(0.2)
        p = start(box)
        t.join(2 * lib.PATIENCE)
        [a] = seen["approvals"]
        same((a["sandbox"], seen["next"]), (box.id, None), "who polled")
        begin = time.monotonic()
        same(c.ok("GET", "/v1/approvals?state=pending&kind=push&wait=300ms")["approvals"], [], "none of that kind")
        check(time.monotonic() - begin >= 0.25, "it waited")
        decide(c, a, "allow")
        ended(box, p, "200 1")
        wait_until(lambda: [x for x in lines if x.startswith("event:")] == ["event: pending", "event: allowed"], 5, lines)
        revs = [int(x[4:]) for x in lines if x.startswith("id: ")]
        check(revs == sorted(set(revs)), revs)
        again = d.client()
        r = again.send("GET", f"/v1/approvals?follow=1&after={revs[0]}")
        same(json.loads(r.readline())["state"], "allowed", "from there on")
        for query, n in (("?state=allowed", 1), ("?state=denied", 0), ("?kind=net", 1), ("?kind=wall", 0), (f"?sandbox={box.id}", 1)):
            same(len(c.ok("GET", f"/v1/approvals{query}")["approvals"]), n, query)
        for query in ("?state=open", "?kind=nothing", "?wait=x", "?after=1"):
            same(c.get(f"/v1/approvals{query}").code, "invalid", query)
        tail.connection.sock.shutdown(socket.SHUT_RDWR)  # else close() waits for who reads
        _ = [x.close() for x in (again, tail, waiter)]


@test("who works cannot answer for himself; looser rules and wall time are asked for, and done", own=True)
def _(_api):
    with daemon("who") as (d, c):
        def client(scope, tenant="t"):
            return d.tcp(c.ok("POST", "/v1/tokens", {"scope": scope, "tenant": tenant})["token"])
        worker, judge, stranger = client("manage"), client("approve"), client("approve", "u")
        box = Box(worker, {"allow": ["web.test"], "ask": ["other.test"]})
        net = {"allow": ["web.test", "other.test"]}
        answer = worker.call("PATCH", f"/v1/sandboxes/{box.id}/net?why=it%20needs%20it", net)
        same(answer.status, 202, answer)
        a = answer.json["approval"]
        same((a["kind"], a["state"], a["why"], a["detail"]["net"]), ("policy", "pending", "it needs it", net), "the question")
        same(worker.call("PATCH", f"/v1/sandboxes/{box.id}/net", net).json["approval"]["id"], a["id"], "the same again")
        same([decide(x, a, "allow").code for x in (worker, client("exec"), client("read"))], ["forbidden"] * 3, "who works")
        same((decide(stranger, a, "allow").code, stranger.get(f"/v1/approvals/{a['id']}").code), ("not_found",) * 2, "another tenant")
        same(judge.post("/v1/sandboxes", {}).code, "forbidden", "who decides does not work")
        same(decide(judge, a, "allow", scope="sandbox").code, "invalid", "a change is decided once")
        got = decide(judge, a, "allow")
        same(got.status, 200, got)
        check(got.json["actor"].startswith("token:tk_"), got)
        wait_until(lambda: one(c, a)["applied_ms"], 5, "it is done")
        same(c.get(f"/v1/sandboxes/{box.id}").code, "not_found", "it is another tenant's")
        same(worker.ok("GET", f"/v1/sandboxes/{box.id}")["spec"]["net"]["allow"], net["allow"], "the rules")
        box.good(CURL + "http://other.test/hello.txt", "200 1")
        same(worker.call("PATCH", f"/v1/sandboxes/{box.id}/net", {**net, "cidr": ["10.1.1.0/24"]}).code, "permission_denied",
             "nobody is asked for what is the operator's")
        answer = worker.post(f"/v1/sandboxes/{box.id}/extend", {"wall": "1h", "why": "slow tests"})
        same((answer.status, answer.json["approval"]["kind"]), (202, "wall"), answer)
        same(c.ok("GET", "/v1/approvals?state=pending")["approvals"][0]["tenant"], "t", "the operator sees it")
        same(decide(c, answer.json["approval"], "deny", note="no").json["state"], "denied", "denied")
        answer = worker.post(f"/v1/sandboxes/{box.id}/extend", {"wall": "1h"})
        decide(c, answer.json["approval"], "allow")
        wait_until(lambda: one(c, answer.json["approval"])["applied_ms"], 5, "more time")
        same(worker.post(f"/v1/sandboxes/{box.id}/extend", {"ttl": "1h"}).status, 200, "that needs nobody")
        box.remove()


WHY = r"""
import socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/caisson/self.sock")
for word in (b"why\n",):
    s.sendall(word); print(s.recv(65536).decode(), end="")
"""


@test("inside, why tells of what waits; there is no word that answers", own=True)
def _(_api):
    with daemon("inside") as (_, c):
        box = Box(c, {"ask": ["web.test"]})
        p = start(box)
        [a] = pending(c)
        done, _ = box.good(["/usr/bin/python3", "-c", WHY])
        [w] = json.loads(done["stdout"])["pending"]
        same((w["kind"], w["target"], w["rule"]), ("net", "web.test:80", "ask: web.test"), "what waits")
        check(0 < w["left_ms"] <= 60000, w)
        same(c.ok("GET", f"/v1/sandboxes/{box.id}/why?host=web.test&port=80")["approval"]["id"], a["id"], "why, outside")
        for words in (f"allow {a['id']}", f"approve {a['id']}", "answer 1", "decide"):
            done, _ = box.good(["/usr/bin/python3", "-c", WHY.replace("why", words)])
            check("error" in done["stdout"], done)
        same(one(c, a)["state"], "pending", "nobody answered")
        decide(c, a, "deny")
        ended(box, p, "000")


def at_terminal(d, letters, *words):
    """`caisson approve` for a person: answers each question by a letter. Returns what was shown."""
    master, slave = pty.openpty()
    env = {"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(d.socket)}
    with subprocess.Popen([str(lib.cell.BIN / "caisson"), "approve", *words], stdin=slave, stdout=slave, stderr=slave,
                          env=env, cwd="/", start_new_session=True) as child:
        os.close(slave)
        seen = b""
        for letter in letters:
            n = seen.count(b"[q]uit? ")
            while seen.count(b"[q]uit? ") == n:
                check(select.select([master], [], [], lib.PATIENCE)[0], seen.decode())
                seen += os.read(master, 65536)
            os.write(master, letter.encode() + b"\n")
        with contextlib.suppress(OSError):  # its end
            while piece := os.read(master, 65536):
                seen += piece
        os.close(master)
        same(child.wait(lib.PATIENCE), 0, seen.decode())
    return seen.decode()


@test("caisson approvals and approve: a list, lines as they come, words and a terminal", own=True)
def _(_api):
    with daemon("cli") as (d, c):
        box = Box(c, {"ask": ["web.test", "other.test"]})
        with subprocess.Popen([str(lib.cell.BIN / "caisson"), "approvals", "-f"], stdout=subprocess.PIPE, text=True, cwd="/",
                              env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(d.socket)}) as tail:
            p = start(box)
            [a] = pending(c)
            check(f"{a['id']}  pending   net      {box.id}  connect to web.test:80" in tail.stdout.readline(), "a line")
            shown = place.caisson(d, "approvals").stdout
            check(all(x in shown for x in (a["id"], "connect to web.test:80", box.id, "FIRST SEEN")), shown)
            same(json.loads(place.caisson(d, "approvals", "--json").stdout)["id"], a["id"], "--json")
            check("no terminal" in place.caisson(d, "approve", status=125).stderr, "input that is no terminal")
            place.caisson(d, "approve", a["id"], "--allow", "--deny", status=125)
            place.caisson(d, "approve", a["id"], "--allow", "--scope", "sandbox", "--for", "10m", "--note", "fine")
            ended(box, p, "200 1")
            check("allowed" in (line := tail.stdout.readline()) and "uid:0, sandbox" in line, line)
            tail.kill()
        got = one(c, a)
        same((got["scope"], got["note"], got["expires_ms"] - got["decided_ms"]), ("sandbox", "fine", 600_000), "the row")
        late = place.caisson(d, "approve", a["id"], "--deny", status=1).stderr
        check("is allowed: nothing was changed" in late, late)
        p, q = start(box, "http://other.test/hello.txt"), start(box, "https://web.test/hello.txt")
        pending(c, 2)
        check("web.test:80: ask" in (why := place.caisson(d, "why", box.id, "web.test:80").stdout) and f"{a['id']} is allowed" in why, why)
        shown = at_terminal(d, "xad")
        for word in ("who", "what", "why", "seen", "instead", "connect to other.test:80", "net.allow: web.test:443", box.id):
            check(word in shown, f"{word}: {shown}")
        by = {x["what"]: x["state"] for x in c.ok("GET", "/v1/approvals")["approvals"]}
        same(sorted(by.values()), ["allowed", "allowed", "denied"], "decided, one after the other")
        _ = [ended(box, x, "") for x in (p, q)]
        check("nothing waits" in at_terminal(d, ""), "an empty list")


@test("looser rules: the person sees what they add and take away, and nothing else; a cut text is never offered", own=True)
def _(_api):
    with daemon("diff") as (d, c):
        worker = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "t"})["token"])
        there = [f"pkg{i}.mirror.example.org" for i in range(200)]
        s = worker.create(net={"allow": there, "deny": ["bad.test"]})

        def loosen(net):
            answer = worker.call("PATCH", f"/v1/sandboxes/{s['id']}/net", net)
            same(answer.status, 202, answer)
            return answer.json["approval"]
        a = loosen({"allow": [*there, "**"], "deny": ["bad.test"]})
        same((a["what"], a["detail"]["difference"]), ('change the rules of its network: + allow: "**"', ['+ allow: "**"']), "the question")
        shown = at_terminal(d, "n", a["id"])
        check('+ allow: "**"' in shown and "mirror.example.org" not in shown, shown)
        b = loosen({"allow": there[1:] + ["new.test"], "deny": []})
        same(b["detail"]["difference"], ['- allow: "pkg0.mirror.example.org"', '+ allow: "new.test"', '- deny: "bad.test"'], "added and removed")
        # Of two differences one is made: the other was shown for rules that are no more.
        same(decide(c, b, "allow").status, 200, "allowed")
        wait_until(lambda: one(c, b)["applied_ms"], what="it is done")
        same((one(c, a)["state"], one(c, a)["reason"]), ("withdrawn", "the rules have changed since it was asked"), "the other")
        same(worker.ok("GET", f"/v1/sandboxes/{s['id']}")["spec"]["net"]["allow"][-1], "new.test", "the rules")
        # A difference of more than a line: the API wants proof, a terminal pages through it.
        many = [f"evil{i}.mirror.example.org" for i in range(150)]
        a = loosen({"allow": [*there, *many]})
        check(a["detail"]["cut"] and len(a["what"]) < 4096 and many[-1] in a["detail"]["what"], a)
        for seen in ({}, {"seen": ""}, {"seen": hashlib.sha256(a["what"].encode()).hexdigest()}):
            same(decide(c, a, "allow", **seen).code, "invalid", seen)
        check("detail.what" in place.caisson(d, "approve", a["id"], "--allow", status=1).stderr, "by words")
        shown = at_terminal(d, "a", a["id"])
        check(all(x in shown for x in many), shown)
        same(one(c, a)["state"], "allowed", "seen, and allowed")
        wait_until(lambda: one(c, a)["applied_ms"], what="it is done")
        a = loosen({"allow": [*there, *many, *(f"more{i}.mirror.example.org" for i in range(150))]})
        same(decide(c, a, "allow", seen=hashlib.sha256(a["detail"]["what"].encode()).hexdigest()).status, 200, "by the API")
        worker.remove(s)
        worker.close()


@test("a command that is longer than anybody can see is only denied; invisible characters are shown in every text", own=True)
def _(_api):
    with daemon("cut") as (d, c):
        s = c.create(gate={"commands": ["true"]})
        p = c.execute(s, ["true", "\u202egnp.exe", "\u200b\u2066\u00ad\U000e0041"], wait="0s")
        [a] = pending(c)
        same(a["what"].count("\\u{"), 5, a["what"])
        check(not set("\u202e\u200b\u2066\u00ad\U000e0041") & set(json.dumps(a["what"], ensure_ascii=False)), a["what"])
        same(decide(c, a, "allow").status, 200, "allowed")
        wait_end(c, p)
        p = c.execute(s, ["true", "x" * 6000], wait="0s")
        [a] = pending(c)
        same((a["detail"]["cut"], decide(c, a, "allow", seen="0" * 64).code), (True, "invalid"), "nobody has all of it")
        shown = at_terminal(d, "ad", a["id"])
        check("[a]llow" not in shown and "only be denied" in shown, shown)
        same(one(c, a)["state"], "denied", "denied")
        wait_until(lambda: c.ok("GET", f"/v1/processes/{p['id']}")["state"] == "denied", what="its end")
        c.remove(s)


class Receiver:
    """Of webhooks, behind TLS. Answers what it is told to; 200 otherwise."""

    def __init__(self):
        self.seen, self.answers = [], []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.seen.append((dict(self.headers.items()), body, self.path))
                status = receiver.answers.pop(0) if receiver.answers else 200
                if status:
                    self.send_response(status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
        self.server = http.server.ThreadingHTTPServer((servers.WEB, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(servers.FOLDER / "cert.pem", servers.FOLDER / "key.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://hub.test:{self.server.server_address[1]}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def events(self):
        return [json.loads(body)["event"] for _, body, _ in self.seen]

    def times(self, name):
        return [h["webhook-id"] for h, _, _ in self.seen].count(name)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def signature(key, headers, body):
    said = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, said, "sha256")).decode()


@test("a webhook hears of each question and decision, signed; tried again, also when its sender or the daemon is killed", own=True)
def _(_api):
    secret, receiver = b"0123456789abcdef-webhook", Receiver()
    path = lib.HOME / "webhook.key"
    path.write_text("whsec_" + base64.b64encode(secret).decode() + "\n")
    path.chmod(0o600)
    d = Daemon("hook", options=[*options(), "--approvals", f"webhook={receiver.url}", "--approvals", f"key={path}"]).start()
    c = d.client()
    box = Box(c, {"ask": ["web.test"]})
    p = start(box)
    [a] = pending(c)
    wait_until(lambda: receiver.events() == ["approval.pending"], 10, receiver.events)
    headers, body, where = receiver.seen[0]
    same((where, headers["webhook-id"], headers["Content-Type"]), ("/hook", f"{a['id']}.pending", "application/json"), "the request")
    same(headers["webhook-signature"], signature(secret, headers, body), "the signature")
    check(abs(int(headers["webhook-timestamp"]) - time.time()) < 300, headers)
    same(json.loads(body)["approval"], a, "what it says")
    receiver.answers[:] = [500, 0]  # it says no, it says nothing
    decide(c, a, "allow")
    ended(box, p, "200 1")
    wait_until(lambda: receiver.events() == ["approval.pending"] + ["approval.allowed"] * 3, 15, receiver.events)
    same({h["webhook-id"] for h, _, _ in receiver.seen[1:]}, {f"{a['id']}.allowed"}, "the same, tried again")
    strike([x for x, name in lib.children_of(d.process.pid).items() if name == "caisson-hook"])
    p = start(box)
    [b] = pending(c)
    wait_until(lambda: receiver.times(f"{b['id']}.pending") == 1, 10, "after its sender")
    restart(d, c)
    wait_until(lambda: receiver.times(f"{b['id']}.pending") == 2, 10, "the next daemon says it again, by the same name")
    decide(c, b, "deny")
    ended(box, p, "000")
    wait_until(lambda: receiver.times(f"{b['id']}.denied") == 1, 10, "denied")
    check(secret.decode() not in d.log.read_text() and "whsec" not in d.log.read_text(), "the key is in the log")
    box.remove()
    c.close()
    d.wait_clean()
    d.stop()
    path.chmod(0o644)  # others can read it: it is no key
    d.start()
    c = d.client()
    box = Box(c, {"ask": ["web.test"]})
    p = start(box)
    [x] = pending(c)
    wait_until(lambda: "open to others" in d.tail(), 5, d.tail)
    decide(c, x, "deny")  # nothing else suffers
    ended(box, p, "000")
    box.remove()
    c.close()
    d.wait_clean()
    d.stop()
    receiver.close()


# ---- somebody dies ---------------------------------------------------------------------------

def strike(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def restart(d, *clients):
    """kill -9 of caissond; the launcher has another one at once."""
    for c in clients:
        c.close()
    old = d.pid
    strike([old])
    wait_until(lambda: d.pid not in (None, old), 10, "another one")
    d.wait_ready()


@test("the daemon is killed while a connection is held: it is held on, and decided by the next one", own=True)
def _(_api):
    with daemon("killed") as (d, c):
        box = Box(c, {"ask": ["web.test"]})
        p = start(box)
        [a] = pending(c)
        for _ in range(2):
            restart(d, c)
            same([x["id"] for x in pending(c)], [a["id"]], "the same question")
        same(decide(c, a, "allow").status, 200, "decided")
        ended(box, p, "200 1")
        [r] = box.records(lambda r: r["close"] == "client")
        same((r["decision"], r["approval"]), ("ask_allow", a["id"]), "the record")


@test("killed right after a decision: it was made or it was not, and what is on record is what happened", own=True)
def _(_api):
    with daemon("between") as (d, c):
        for i in range(4):
            box = Box(c, {"ask": ["web.test"]})
            p = start(box)
            [a] = pending(c)
            t = threading.Thread(target=quiet, args=(d, a))
            t.start()
            time.sleep(i * 0.002)
            strike([d.pid])
            t.join(2 * lib.PATIENCE)
            c.close()
            wait_until(lambda: d.pid, 10, "another one")
            d.wait_ready()
            state = one(c, a)["state"]
            check(state in ("pending", "allowed"), state)
            said = [x["data"]["state"] for x in ledger(c, "approval.decided") if x["data"]["approval"] == a["id"]]
            check(state == "pending" or said == ["allowed"], f"{state} {said}")
            if state == "pending":
                decide(c, a, "allow")
                ended(box, p, "200 1")
            else:  # the answer reached the gate, or the question is asked again
                wait_until(lambda p=p: c.ok("GET", f"/v1/processes/{p['id']}")["state"] == "exited" or
                           c.ok("GET", "/v1/approvals?state=pending")["approvals"], 10, "it goes on")
                for x in c.ok("GET", "/v1/approvals?state=pending")["approvals"]:
                    decide(c, x, "allow")
                ended(box, p, "200 1")
            box.remove()


def quiet(d, a):
    with contextlib.suppress(OSError, lib.http.client.HTTPException, ValueError):
        decide(d.client(), a, "allow")


def gates(d):
    """The children of the gate, one per sandbox."""
    found = [p for p, name in lib.children_of(d.process.pid).items() if name == "caisson-gate"]
    return [child for p in found for child in lib.children_of(p)]


@test("the gate or the monitor is killed while it holds: nothing opens, and the question is withdrawn", own=True)
def _(_api):
    with daemon("holders") as (d, c):
        for name in ("caisson-gate", "monitor"):
            box = Box(c, {"ask": ["web.test"]})
            p = start(box)
            [a] = pending(c)
            strike(gates(d) if name == "caisson-gate" else d.monitors())
            same(one(c, a, "?wait=40s")["state"], "withdrawn", name)
            late = decide(c, a, "allow")
            same((late.status, late.json["state"]), (409, "withdrawn"), "late")
            if name == "caisson-gate":
                ended(box, p, "000")
                p = start(box)
                [b] = pending(c)
                decide(c, b, "allow")
                ended(box, p, "200 1")
            box.remove()


@test("the ledger is killed just before a decision: it is made when the next one has it on disk", own=True)
def _(_api):
    with daemon("writer") as (d, c):
        box = Box(c, {"ask": ["web.test"]})
        p = start(box)
        [a] = pending(c)
        writers = [x for x, name in lib.children_of(d.process.pid).items() if name == "caisson-ledger"]
        check(writers, "somebody to kill")
        strike(writers)
        same(decide(c, a, "allow").status, 200, "decided")
        ended(box, p, "200 1")
        same([x["data"]["approval"] for x in ledger(c, "approval.decided")], [a["id"]], "in the ledger")


@test("looser rules that were asked for survive the daemon; what was allowed is done", own=True)
def _(_api):
    with daemon("lasting") as (d, c):
        worker = d.tcp(c.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "t"})["token"])
        box = Box(worker, {"allow": ["web.test"]})
        a = worker.call("PATCH", f"/v1/sandboxes/{box.id}/net", {"allow": ["web.test", "other.test"]}).json["approval"]
        token = worker.token
        restart(d, c, worker)
        worker = box.client = d.tcp(token)
        same([x["id"] for x in pending(c)], [a["id"]], "it still waits")
        threading.Thread(target=quiet, args=(d, a)).start()
        wait_until(lambda: one(c, a)["state"] == "allowed", 5, "allowed")
        restart(d, c, worker)
        worker = box.client = d.tcp(token)
        wait_until(lambda: one(c, a)["applied_ms"], 10, "it is done")
        same(worker.ok("GET", f"/v1/sandboxes/{box.id}")["spec"]["net"]["allow"], ["web.test", "other.test"], "the rules")
        box.remove()


@test(f"after {HELD_SECONDS} s it is allowed: 200, one connection, no retry", own=True)
def _(_api):
    d, c, box = (long_one[k] for k in ("d", "c", "box"))
    c.close()
    time.sleep(max(0, HELD_SECONDS + 0.5 - (time.monotonic() - long_one["began"])))
    [a] = pending(c)
    same(a["id"], long_one["a"]["id"], "the same question")
    decide(c, a, "allow")
    done = ended(box, long_one["p"], "200 1")
    check(done["ms"] >= HELD_SECONDS * 1000, done)
    same(len(box.records(lambda r: r["kind"] == "connection")), 1, "connections")
    schema.valid([json.loads(line) for line in c.get("/v1/events").body.splitlines()])
    box.remove()
    c.close()
    d.wait_clean()
    d.stop()


if __name__ == "__main__":
    sys.exit(place.main(__file__))
