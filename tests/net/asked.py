#!/usr/bin/env python3
"""Requests that wait for a person: the use of a secret, a push outside of the allowed refs, what publishes.
Allowed, denied, nobody answers; and what is left when somebody is killed meanwhile. TAP.

A REST server (api.test, registry.test), behind nginx; a git server that wants a password (forge.test).

    tests/net/asked.py          all (needs root)
    tests/net/asked.py push     those with the word in their title
"""
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading

import place  # before lib, whose folder it knows
import agent
import lib
import servers
from lib import Daemon, check, same, test, wait_until
from place import Box, caisson, wait_end

place.OPTIONS[3] = "ask=60s"
NET = {"allow": ["api.test", "forge.test"]}
VALUE = f"asked-{random.SystemRandom().randbytes(12).hex()}"
CURL = "curl -sS --max-time 70 -o /dev/null -w '%{http_code} %{num_connects}' "
GIT = ["git", "-C", str(servers.FOLDER / "git/project.git"), "-c", "safe.directory=*"]

REST = r"""
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with open(sys.argv[3], "a") as log:
            log.write(json.dumps({"method": self.command, "path": self.path, "body": body.decode("latin1"),
                                  "token": self.headers.get("Authorization")}) + "\n")
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
    do_POST = do_PUT = do_DELETE = do_GET
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def begin():
    servers.FOLDER.mkdir(parents=True, exist_ok=True)
    finish = place.prepare()
    hashed = servers.run("openssl", "passwd", "-apr1", VALUE).decode().strip()
    (servers.FOLDER / "forge.users").write_text(f"robot:{hashed}\n")
    rest = servers.Server("rest", ["/usr/bin/python3", "-c", REST, servers.WEB, "8200", said_file()], (servers.WEB, 8200))
    lib.SURROUNDINGS.append(rest.process.pid)

    def end():
        rest.stop()
        finish()
    return end


def said_file():
    return servers.FOLDER / "rest.said"


def said(path):
    """What the server got there."""
    lines = said_file().read_text().splitlines() if said_file().exists() else []
    return [r for r in map(json.loads, lines) if r["path"] == path]


def set_secret(daemon, name, *words):
    done = subprocess.run([str(lib.cell.BIN / "caisson"), "secret", "set", name, *words], input=VALUE, text=True, capture_output=True,
                          timeout=100, cwd="/", check=False, env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(daemon.socket)})
    same(done.returncode, 0, done)


def make(client, *creds, net=None, **spec):
    return Box(client, net or NET, **{"env": place.PLAIN_ENV, "creds": list(creds), **spec})


def pending(c, n=1, seconds=10):
    def look():
        found = c.ok("GET", "/v1/approvals?state=pending")["approvals"]
        return found[::-1] if len(found) == n else None
    if n == 0:
        wait_until(lambda: look() is not None, seconds, "nobody waits")
        return []
    return wait_until(look, seconds, f"{n} wait")


def decide(c, approval, decision, **more):
    answer = c.post(f"/v1/approvals/{approval['id']}", {"decision": decision, **more})
    same(answer.status, 200, answer)


def start(box, command):
    return box.client.execute(box.sandbox, command, wait="0s")


def ended(box, p, stdout, seconds=lib.PATIENCE):
    done = wait_end(box.client, p, seconds)
    check(done["stdout"].startswith(stdout), lambda: f"{place.summary(done)}\n{box.shown()}")
    return done


def body_words(body):
    return f" with a body of {len(body)} bytes, sha256:{hashlib.sha256(body).hexdigest()}"


def ledger(c, kind, box):
    return [r["data"] for x in c.get(f"/v1/events?kind={kind}").body.splitlines() if (r := json.loads(x))["sandbox"] == box.id]


def request_of(box, path):
    return wait_until(lambda: box.records(lambda r: r["kind"] == "request" and r["path"] == path and r["status"]), 5, f"the record of {path}")[0]


# ---- secrets ----------------------------------------------------------------------------------

@test("approve each: every request waits, and goes out with the secret or not at all")
def _(api):
    c = api.client
    set_secret(api.daemon, "each", "--host", "api.test", "--approve", "each")
    same(c.ok("GET", "/v1/secrets/each")["bind"]["approve"], "each", "the binding")
    box = make(c, "each")
    p = start(box, CURL + "-d text https://api.test/one?q=1")
    [a] = pending(c)
    want = {"kind": "secret", "what": "use the secret each for POST api.test:443/one?q=1" + body_words(b"text"), "sandbox": box.id, "process": p["id"]}
    same({k: a[k] for k in want}, want, "the question")
    same(said("/one?q=1"), [], "nothing has gone out")
    decide(c, a, "allow")
    ended(box, p, "200 1")
    [r] = said("/one?q=1")
    same((r["method"], r["body"], r["token"]), ("POST", "text", f"Bearer {VALUE}"), "what came")
    row = request_of(box, "/one")
    same((row["decision"], row["secrets"], row["approval"], row["status"]), ("ask_allow", ["each"], a["id"], 200), "the record")
    p = start(box, CURL + "-d text https://api.test/one?q=1")
    [b] = pending(c)
    decide(c, b, "deny")
    ended(box, p, "403 1")
    same(len(said("/one?q=1")), 1, "it did not go out")
    [row] = box.records(lambda r: r["kind"] == "request" and r["reason"] == "ask_denied")
    same((row["decision"], row["approval"]), ("ask_deny", b["id"]), "the record")
    # Two of one connection: each waits, and the connection is the same.
    p = start(box, f"{CURL} https://api.test/a {CURL[CURL.index('-o'):]} https://api.test/b")
    for path in ("a", "b"):
        [a] = pending(c)
        same(a["what"], f"use the secret each for GET api.test:443/{path}", "one after the other")
        decide(c, a, "allow")
        wait_until(lambda path=path: said(f"/{path}"), 5, path)
    ended(box, p, "200 1200 0")
    box.remove()


MANY = r"""
import concurrent.futures, subprocess
def one(i):
    argv = ["curl", "-sS", "--max-time", "70", "-o", "/dev/null", "-w", "%{http_code}", "-d", BODY % i, "https://" + URL % i]
    return subprocess.run(argv, capture_output=True, text=True).stdout
with concurrent.futures.ThreadPoolExecutor(40) as pool: print(*pool.map(one, range(40)))
"""


@test("approve each is each: 40 at once are 40 questions, and one yes releases one of them, with the body that was shown")
def _(api):
    c = api.client
    set_secret(api.daemon, "each", "--host", "api.test", "--approve", "each")
    box = make(c, "each")
    for url, body, n_same in (("api.test/pay%.0s", "amount=1", 40), ("api.test/pay?to=%d", "amount=%d000", 1)):
        before = len([x for x in map(json.loads, said_file().read_text().splitlines()) if x["path"].startswith("/pay")]) if said_file().exists() else 0
        code = f"URL, BODY = {url!r}, {body + '%.0s' * ('%' not in body)!r}\n{MANY}"
        p = start(box, ["python3", "-c", code])
        asked = pending(c, 40, 40)
        same(len({a["what"] for a in asked}), 40 // n_same, "different ones")
        check(all("with a body of" in a["what"] and a["detail"]["body_sha256"] in a["what"] for a in asked), asked[0])
        decide(c, asked[7], "allow")
        wait_until(lambda before=before: len([x for x in said_file().read_text().splitlines() if '"/pay' in x]) > before, 10, "one arrives")
        same(len(pending(c, 39)), 39, "the others wait on")
        for a in asked[:7] + asked[8:]:
            decide(c, a, "deny")
        done = wait_end(c, p, 60)
        same(sorted(done["stdout"].split()), ["200"] + ["403"] * 39, done)
        came = [x for x in map(json.loads, said_file().read_text().splitlines()) if x["path"].startswith("/pay")][before:]
        same(len(came), 1, "one was sent")
        shown = asked[7]["detail"]
        same((hashlib.sha256(came[0]["body"].encode()).hexdigest(), came[0]["path"].partition("?")[2], came[0]["token"]),
             (shown["body_sha256"], shown.get("query", ""), f"Bearer {VALUE}"), "the one that was shown")
        [row] = box.records(lambda r, a=asked[7]: r["kind"] == "request" and r["approval"] == a["id"])
        same((row["status"], row["decision"]), (200, "ask_allow"), "its record")
    used = ledger(c, "secret.used", box)
    same([(u["query_sha256"] if "query_sha256" in u else None, u["body_sha256"]) for u in used][-1],
         (shown["query_sha256"], shown["body_sha256"]), "the ledger")
    same(len(used), 2, "uses")
    box.remove()


@test("a body that is too long to be shown is said to be; one that comes late or in chunks is waited for")
def _(api):
    c = api.client
    set_secret(api.daemon, "each", "--host", "api.test", "--approve", "each")
    box = make(c, "each")
    box.good("head -c 900000 /dev/zero >/tmp/fits; head -c 3000000 /dev/zero >/tmp/long")
    for name, size in (("fits", 900000), ("long", 3000000)):
        for how in ("", "-H Transfer-Encoding:\\ chunked "):
            p = start(box, CURL + how + f"-T /tmp/{name} https://api.test/{name}")
            [a] = pending(c)
            d = a["detail"]
            same(d.get("body_partial", False), name == "long", a)
            check(size >= d["body_bytes"] > 890000, a)
            check(("of which only the first" in a["what"]) == (name == "long"), a)
            same(d["body_sha256"], hashlib.sha256(bytes(d["body_bytes"])).hexdigest(), "the hash of what was looked at")
            decide(c, a, "allow")
            ended(box, p, "200 1")
    p = start(box, f"(printf a; sleep 1; printf b) | {CURL} -T - https://api.test/slow")
    [a] = pending(c)
    same(a["what"], "use the secret each for PUT api.test:443/slow" + body_words(b"ab"), "all of it")
    decide(c, a, "deny")
    ended(box, p, "403 1")
    query = "q=" + "x" * 3000
    p = start(box, CURL + f"https://api.test/query?{query}")
    [a] = pending(c)
    check(a["what"].endswith(f"... (sha256:{hashlib.sha256(query.encode()).hexdigest()})"), a["what"])
    check(a["detail"].get("cut"), a["detail"])
    same(c.post(f"/v1/approvals/{a['id']}", {"decision": "allow"}).code, "invalid", "a yes to what nobody has seen whole")
    decide(c, a, "deny")
    ended(box, p, "403 1")
    box.remove()


@test("approve first: once in a sandbox, also when its gate or the daemon has died since", own=True)
def _(_api):
    d = Daemon("first", options=place.OPTIONS).start()
    c = d.client()
    set_secret(d, "first", "--host", "api.test", "--approve", "first")
    box = make(c, "first")
    ps = [start(box, CURL + f"https://api.test/first/{i}") for i in range(3)]
    [a] = pending(c)
    same(a["what"], "use the secret first for api.test:443", "the question")
    decide(c, a, "allow")
    _ = [ended(box, p, "200 1") for p in ps]
    box.good(CURL + "https://api.test/first/4", "200 1")
    for pid, name in lib.children_of(d.process.pid).items():
        if name.startswith("caisson-gate"):
            os.kill(pid, signal.SIGKILL)
    box.good(CURL + "--retry 5 --retry-all-errors https://api.test/first/5", "200 1")
    same([len(said(f"/first/{i}")) for i in range(6)], [1, 1, 1, 0, 1, 1], "all of them")
    d.stop()
    d.start()
    box.client = c = d.client()
    box.good(CURL + "https://api.test/first/6", "200 1")
    same(len(c.ok("GET", "/v1/approvals")["approvals"]), 1, "one question")
    other = make(c, "first")
    p = start(other, CURL + "https://api.test/first/7")
    [b] = pending(c)
    decide(c, b, "deny")
    ended(other, p, "403 1")
    same(said("/first/7"), [], "another sandbox has its own")
    c.remove_all()
    d.wait_clean()
    d.stop()


@test("nobody answers, the client leaves, the gate is killed: nothing goes out, and nobody waits", own=True)
def _(_api):
    d = Daemon("leaves", options=[*place.OPTIONS[:3], "ask=2s", *place.OPTIONS[4:]]).start()
    c = d.client()
    set_secret(d, "each", "--host", "api.test", "--approve", "each")
    box = make(c, "each")
    box.good(CURL + "https://api.test/late", "403 1")
    [row] = box.records(lambda r: r["kind"] == "request" and r["reason"])
    same((row["decision"], row["reason"]), ("ask_deny", "ask_timeout"), "late")
    d.stop()
    d.options[3] = "ask=60s"
    d.start()
    box.client = c = d.client()
    p = start(box, CURL + "https://api.test/left")
    wait_until(lambda: c.ok("GET", "/v1/approvals?state=pending")["approvals"], 10, "a question")
    [a] = pending(c)
    c.delete(f"/v1/processes/{p['id']}")
    same(c.ok("GET", f"/v1/approvals/{a['id']}?wait=40s")["state"], "withdrawn", "its client was killed")
    p = start(box, CURL + "https://api.test/killed; echo $?")
    [a] = pending(c)
    for pid, name in lib.children_of(d.process.pid).items():
        if name.startswith("caisson-gate"):
            os.kill(pid, signal.SIGKILL)
    same(c.ok("GET", f"/v1/approvals/{a['id']}?wait=40s")["state"], "withdrawn", "its gate was killed")
    done = wait_end(c, p, 20)
    check(not done["stdout"].startswith("200"), done)
    p = start(box, CURL + "https://api.test/daemon")  # it is held on, and decided by the next one
    [a] = pending(c)
    os.kill(d.pid, signal.SIGKILL)
    c.close()
    wait_until(lambda: d.is_ready(), 15, "another daemon")
    same([x["id"] for x in pending(c)], [a["id"]], "the same question")
    decide(c, a, "allow")
    ended(box, p, "200 1")
    same([len(said(f"/{x}")) for x in ("late", "left", "killed", "daemon")], [0, 0, 0, 1], "what went out")
    c.remove_all()
    d.wait_clean()
    d.stop()


# ---- git --------------------------------------------------------------------------------------

PUSH = ("cd /work/p && date +%N >more && git add . && git -c user.name=a -c user.email=a@example.org commit -qm more && "
        "git push -q origin HEAD:{}")


def head_of(ref):
    done = subprocess.run([*GIT, "rev-parse", "-q", "--verify", ref], capture_output=True, text=True, check=False)
    return done.stdout.strip()


@test("a push outside of the allowed refs is asked for; one that is for neither is refused")
def _(api):
    c = api.client
    set_secret(api.daemon, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "project", "--push", "refs/heads/agent/*",
               "--push-ask", "refs/heads/*")
    box = make(c, "git")
    box.good("git clone -q https://forge.test/project.git /work/p")
    box.good(PUSH.format("refs/heads/agent/asked"))
    p = start(box, PUSH.format("refs/heads/release HEAD:refs/heads/agent/asked") + " && git rev-parse HEAD")
    [a] = pending(c)
    want = {"kind": "push", "what": "push to refs/heads/release of forge.test:443/project.git", "sandbox": box.id, "process": p["id"]}
    same({k: a[k] for k in want}, want, "the question")
    same(head_of("refs/heads/release"), "", "nothing was pushed")
    decide(c, a, "allow")
    done = ended(box, p, "")
    same((done["exit_code"], done["stdout"].strip()), (0, head_of("refs/heads/release")), done)
    big = "cd /work/p && head -c 2000000 /dev/urandom >big && " + PUSH.format("refs/heads/big").partition("&& ")[2]
    p = start(box, big)  # in chunks, behind a question
    [a] = pending(c)
    decide(c, a, "allow")
    same(ended(box, p, "")["exit_code"], 0, "a large one")
    check(head_of("refs/heads/big"), "it is there")
    p = start(box, PUSH.format("refs/heads/main"))
    [a] = pending(c)
    before = head_of("refs/heads/main")
    decide(c, a, "deny")
    check(ended(box, p, "")["exit_code"] != 0, "denied")
    same(head_of("refs/heads/main"), before, "as it was")
    box.bad(PUSH.format("refs/tags/x"), 20)
    same(pending(c, 0), [], "a tag is not even asked for")
    box.remove()


@test("caisson push of a workspace asks as well")
def _(api):
    c = api.client
    set_secret(api.daemon, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "project", "--push", "refs/heads/agent/*",
               "--push-ask", "refs/heads/*")
    caisson(api.daemon, "repo", "add", "https://forge.test/project.git", "--cred", "git")
    repo = c.ok("GET", "/v1/repos")["repos"][0]
    work = c.ok("PUT", "/v1/workspaces/task", {"repo": repo["id"], "branch": "agent/mine"})
    for decision in ("allow", "deny"):
        c.ok("PUT", f"/v1/workspaces/{work['id']}/files/{decision}.txt", b"new\n")
        sha = c.ok("POST", f"/v1/workspaces/{work['id']}/commits", {"message": decision})["sha"]
        got = {}
        other = api.daemon.client()
        t = threading.Thread(target=lambda got=got, other=other: got.update(answer=other.post(f"/v1/workspaces/{work['id']}/push", {"branch": "ours"})))
        t.start()
        [a] = pending(c)
        want = {"kind": "push", "what": "push to refs/heads/ours of forge.test:443/project.git", "sandbox": None, "workspace": work["id"]}
        same({k: a[k] for k in want}, want, "the question")
        decide(c, a, decision)
        t.join(2 * lib.PATIENCE)
        other.close()
        same(got["answer"].status < 300, decision == "allow", got["answer"])
        same(head_of("refs/heads/ours") == sha, decision == "allow", decision)
    c.delete(f"/v1/workspaces/{work['id']}?force=1")
    c.delete(f"/v1/repos/{repo['id']}")


@test("push by a tool of MCP: its client is asked; one that cannot be is told, and calls again")
def _(api):
    c = api.client
    set_secret(api.daemon, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "project", "--push", "refs/heads/agent/*",
               "--push-ask", "refs/heads/*")
    caisson(api.daemon, "repo", "add", "https://forge.test/project.git", "--cred", "git")
    repo = c.ok("GET", "/v1/repos")["repos"][0]
    c.ok("PUT", "/v1/workspaces/tool", {"repo": repo["id"], "branch": "agent/tool"})
    target = "/mcp?workspace=tool"
    able = agent.Http(api.daemon.socket, agent.NOW, target=target, capabilities={"elicitation": {}})
    unable = agent.Http(api.daemon.socket, agent.THEN, target=target)

    def commit(name):
        able.ok("write", file_path=name, content="new\n")
        return able.ok("git", action="commit", message=name)[0]["sha"]
    sha = commit("asked.txt")
    call = {"name": "git", "arguments": {"action": "push", "branch": "tool"}}
    first = able.result("tools/call", call)
    check("push to refs/heads/tool" in first["inputRequests"]["approve"]["params"]["message"], first)
    answer = {"approve": {"action": "accept", "content": {"decision": "allow once"}}}
    done = able.result("tools/call", {**call, "requestState": first["requestState"], "inputResponses": answer})
    same((done["structuredContent"]["sha"], head_of("refs/heads/tool")), (sha, sha), done)
    sha = commit("told.txt")
    text = unable.refused("git", action="push", branch="tool")
    [a] = pending(c)
    check(f"approval {a['id']} is pending" in text and "call again" in text, text)
    check(f"approval {a['id']} is pending" in unable.refused("git", action="push", branch="tool"), "too early")
    decide(c, a, "allow")
    same((unable.ok("git", action="push", branch="tool")[0]["sha"], head_of("refs/heads/tool")), (sha, sha), "it was granted")
    same(pending(c, 0), [], "nothing waits")
    c.delete("/v1/workspaces/tool?force=1")
    c.delete(f"/v1/repos/{repo['id']}")


# ---- publish ----------------------------------------------------------------------------------

@test("what publishes waits, what only takes does not; a rule of http can say the same")
def _(api):
    c = api.client
    net = {"publish": ["npm:api.test"], "http": [{"host": "echo.test", "methods": ["GET"]},
                                                 {"host": "echo.test", "paths": ["/repos/*/releases"], "ask": True}]}
    box = make(c, net=net)
    shown = c.ok("GET", f"/v1/sandboxes/{box.id}")["spec"]["net"]
    check({"host": "api.test", "methods": ["PUT", "DELETE"], "ask": True} in shown["http"], shown)
    box.good(CURL + "https://api.test/left-pad", "200 1")
    box.good(CURL + "https://api.test/@a%2fb", "200 1")
    for decision, status in (("allow", "200"), ("deny", "403")):
        hostname = box.good("cat /etc/hostname")[0]["stdout"].encode()
        p = start(box, CURL + f"-T /etc/hostname https://api.test/@a%2f{decision}")
        [a] = pending(c)
        want = {"kind": "publish", "what": f"send PUT api.test:443/@a%2f{decision}" + body_words(hostname), "process": p["id"]}
        same({k: a[k] for k in want}, want, "the question")
        decide(c, a, decision)
        ended(box, p, f"{status} 1")
        same([r["method"] for r in said(f"/@a%2f{decision}")], ["PUT"] if decision == "allow" else [], decision)
    p = start(box, CURL + "-d release https://echo.test/repos/x/releases")
    [a] = pending(c)
    same(a["what"], "send POST echo.test:443/repos/x/releases" + body_words(b"release"), "the question")
    decide(c, a, "allow", scope="sandbox")
    ended(box, p, "200 1")
    box.good(CURL + "-d release https://echo.test/repos/x/releases", "200 1")
    box.good(CURL + "-d other https://echo.test/repos/x", "403 1")
    p = start(box, CURL + "-d other https://echo.test/repos/x/releases")  # what stands is about that body
    [b] = pending(c)
    decide(c, b, "deny")
    ended(box, p, "403 1")
    row = request_of(box, "/repos/x/releases")
    same((row["decision"], row["approval"]), ("ask_allow", a["id"]), "the record")
    box.remove()


if __name__ == "__main__":
    sys.exit(place.main(__file__, begin=begin))
