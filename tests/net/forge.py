#!/usr/bin/env python3
"""Secrets that are more than a text: signatures, and tokens that the gate gets by itself. TAP.

A cloud and two forges that check what they are told: forges.py.

    tests/net/forge.py        all (needs root)
    tests/net/forge.py AWS    those with the word in their title
"""
import base64
import json
import os
import pathlib
import random
import subprocess
import sys

import place  # before lib, whose folder it knows
import lib
import servers
from lib import check, same, test, wait_until
from place import Box, caisson

SOURCE = (pathlib.Path(__file__).parent / "forges.py").read_text()  # the cell may hide it
NET = {"allow": ["aws.test", "hub.test", "lab.test", "forge.test"]}
SECRET = random.SystemRandom().randbytes(20).hex()
KEY = f"KEYID{random.SystemRandom().randbytes(6).hex().upper()}:{SECRET}"
LAB = "glpat-" + random.SystemRandom().randbytes(10).hex()
TOKEN = random.SystemRandom().randbytes(30).hex() + "/+=="


def begin():
    servers.FOLDER.mkdir(parents=True, exist_ok=True)
    (servers.FOLDER / "forge.users").write_text("")
    finish = place.prepare()
    (servers.FOLDER / "aws.key").write_text(KEY)
    (servers.FOLDER / "lab.token").write_text(LAB)
    (servers.FOLDER / "ttl").write_text("3600")
    servers.run("openssl", "genrsa", "-out", servers.FOLDER / "app.key", "2048")
    servers.run("openssl", "rsa", "-in", servers.FOLDER / "app.key", "-pubout", "-out", servers.FOLDER / "app.pub")
    forges = servers.Server("forges", ["/usr/bin/python3", "-c", SOURCE, servers.WEB, "8201", servers.FOLDER], (servers.WEB, 8201))
    lib.SURROUNDINGS.append(forges.process.pid)

    def end():
        forges.stop()
        finish()
    return end


def said():
    """All that the forges were told."""
    path = servers.FOLDER / "forges.said"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def set_secret(api, name, *words, value, verb="set"):
    done = subprocess.run([str(lib.cell.BIN / "caisson"), "secret", verb, name, *words], input=value, text=True, capture_output=True, timeout=100,
                          cwd="/", check=False, env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(api.daemon.socket)})
    check(done.returncode == 0, lambda: f"secret {verb} {name}: {done}")


def make(api, *creds, **spec):
    return Box(api.client, NET, **{"env": {**place.PLAIN_ENV, "PYTHONWARNINGS": "ignore"}, "creds": list(creds), **spec})


CURL = "curl -sS --fail-with-body --max-time 60"

# ---- AWS ------------------------------------------------------------------------------------------

BOTO = """
import botocore.session, botocore.config, sys
s = botocore.session.get_session()
def client(name, **more):
    return s.create_client(name, endpoint_url="https://aws.test", config=botocore.config.Config(retries={"max_attempts": 1}, **more))
s3 = client("s3", s3={"addressing_style": "path"})
for key, data in (("a b/\\u00e9+c", b"small"), ("big", b"x" * 3000000)):
    s3.put_object(Bucket="b", Key=key, Body=data, ContentType="text/plain", Metadata={"note": "two  spaces"})
    assert s3.get_object(Bucket="b", Key=key)["Body"].read() == data
s3 = client("s3", s3={"addressing_style": "path", "payload_signing_enabled": True})
s3.put_object(Bucket="b", Key="hashed", Body=b"hashed")
assert s3.get_object(Bucket="b", Key="hashed")["Body"].read() == b"hashed"
print(client("sts").get_caller_identity()["Account"])
print(client("dynamodb").get_item(TableName="table", Key={"k": {"S": "v" * 200000}})["Item"]["said"]["S"])
"""

CHUNKS = """
import http.client, ssl, sys
c = http.client.HTTPSConnection("aws.test", context=ssl.create_default_context())
body = b"".join(b"%x;chunk-signature=%s\\r\\n" % (n, b"0" * 64) + b"z" * n + b"\\r\\n" for n in (70000, 9, 0))
c.request("PUT", "/chunks/one", body, {"X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Content-Encoding": "aws-chunked",
                                       "X-Amz-Decoded-Content-Length": "70009"})
print(c.getresponse().status)
"""


@test("AWS: a client that signs with the placeholder is signed for, whatever it says of its body")
def _(api):
    set_secret(api, "aws", "--host", "aws.test", "--inject", "aws:eu-west-3", value=KEY)
    box = make(api, "aws")
    same(box.good("printenv AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_DEFAULT_REGION | sort -u | wc -l")[0]["stdout"].strip(), "2")
    box.put("/work/boto.py", BOTO)
    done = box.run("AWS_CA_BUNDLE=$REQUESTS_CA_BUNDLE /usr/bin/python3 /work/boto.py")[0]
    check(done["stdout"] == "43\ntable\n", lambda: f"{place.summary(done)}\n{said()[-1]}")
    box.put("/work/chunks.py", CHUNKS)
    first = len(said())
    # Without a signature of the client's the name, or the binding, says what it is for.
    box.bad(f"{CURL} https://aws.test/b/big", 10)
    same(len(said()), first)
    set_secret(api, "aws", "--host", "aws.test", "--inject", "aws:eu-west-3/s3", value=KEY)
    lib.wait_until(lambda: box.run(f"{CURL} https://aws.test/b/hashed")[0]["stdout"] == "hashed", 5, "the other binding")
    box.good("python3 /work/chunks.py", "200")
    box.good(f"{CURL} https://aws.test/chunks/one | tr -d z | wc -c", "0")
    box.good(f"{CURL} -T /work/boto.py -H 'Expect: 100-continue' 'https://aws.test/b/up?x=%2F&a=1'")
    check(all(r["status"] == 200 for r in said()), said())
    check(not any("csn_ph_" in json.dumps(r) for r in said()), "a placeholder went out")
    row = box.records(lambda r: r["kind"] == "request" and r["path"] == "/b/big" and r["secrets"])[0]
    same((row["secrets"], row["status"]), (["aws"], 200))


@test("AWS: another key goes nowhere; a token is said, and neither comes back")
def _(api):
    (servers.FOLDER / "aws.key").write_text(f"{KEY}:{TOKEN}")
    set_secret(api, "aws", "--host", "aws.test", "--inject", "aws:eu-west-3/s3", value=f"{KEY}:{TOKEN}")
    box = make(api, "aws")
    first = len(said())
    other = "Authorization: AWS4-HMAC-SHA256 Credential={}/20260101/eu-west-3/s3/aws4_request, SignedHeaders=host, Signature=" + "0" * 64
    for words in ("-H '" + other.format("KEYIDOFOTHERS") + "'", "-H 'X-Amz-Security-Token: mine'", "-G -d X-Amz-Credential=mine/2026/x/s3/aws4_request -d X-Amz-Signature=00",
                  "-H 'X-Amz-Content-Sha256: what-i-want-to-say'"):
        box.good(f"curl -sS -o /dev/null -w '%{{http_code}}' {words} https://aws.test/b/x", "403")
    same(len(said()), first)
    box.good(f"{CURL} -d @/proc/self/cmdline -X PUT https://aws.test/t")
    box.good(f'{CURL} -H "{other.format("$AWS_ACCESS_KEY_ID")}" https://aws.test/t', "curl")
    same([r["fields"]["x-amz-security-token"] for r in said()[first:]], [TOKEN] * 2)
    for text in (SECRET, TOKEN):  # half of it comes from inside, so that it is nowhere in there
        half = len(text) // 2
        box.good(f"(printf %s '{text[:half]}'; printf %s '{text[half:]}') | {CURL} -T - https://aws.test/echo")
        check(text not in box.good(f"{CURL} https://aws.test/echo", "*" * len(text))[0]["stdout"], "it came back")
    (servers.FOLDER / "aws.key").write_text(KEY)


# ---- an app ---------------------------------------------------------------------------------------

def app_key():
    return (servers.FOLDER / "app.key").read_text()


def tokens():
    path = servers.FOLDER / "tokens"
    return path.read_text().split() if path.exists() else []


def set_app(api, *words, name="app", **more):
    set_secret(api, name, "--host", "hub.test", "--inject", "github-app:12345/678", "--api", "https://hub.test", *words, **{"value": app_key(), **more})


@test("GitHub App: one token for all requests, as bearer and for git; another one before it ends")
def _(api):
    set_app(api, "--env", "GITHUB_TOKEN")
    box, first = make(api, "app"), len(tokens())
    box.good(f'for i in 1 2 3 4 5 6; do {CURL} -H "Authorization: Bearer $GITHUB_TOKEN" https://hub.test/user & done; wait', '{"path": "/user"}')
    same(len(tokens()), first + 1)
    box.good("git clone -q https://hub.test/acme/project.git /work/p && cat /work/p/hello.txt", servers.TEXT)
    same(len(tokens()), first + 1)
    check(all(r["fields"]["authorization"].split()[1] in tokens() for r in said() if r["path"] == "/user"), said())
    rows = box.records(lambda r: r["kind"] == "request" and r["secrets"] == ["app"])
    same({(r["method"], r["status"]) for r in rows if r["path"] == "/app/installations/678/access_tokens"}, {("POST", 201)})
    # Other rules that say the same keep it; another sandbox gets its own.
    set_secret(api, "aws", "--host", "aws.test", "--inject", "aws", value=KEY)
    box.good(f"{CURL} https://hub.test/user")
    same(len(tokens()), first + 1)
    (servers.FOLDER / "ttl").write_text("2")
    short = make(api, "app")
    short.good(f"{CURL} https://hub.test/user")
    count = len(tokens())
    check(count > first + 1, "the token of another sandbox")
    wait_until(lambda: short.good(f"{CURL} https://hub.test/user") and len(tokens()) > count, 10, "another one")
    (servers.FOLDER / "ttl").write_text("3600")


@test("GitHub App: only for its repositories; no token, no request; the app's key is in no child of the gate")
def _(api):
    set_app(api, "--git", "acme/project", "--push", "refs/heads/agent/*")
    box = make(api, "app")
    box.good("git clone -q https://hub.test/acme/project.git /work/p")
    push = ("cd /work/p && date +%N >more && git add . && git -c user.name=a -c user.email=a@example.org commit -qm more && git push -q origin HEAD:{}")
    box.good(push.format("refs/heads/agent/app"))
    box.bad(push.format("refs/heads/main"), 20)
    box.good("curl -sS -o /dev/null -w '%{http_code}' https://hub.test/user", "403")
    (servers.FOLDER / "ttl").write_text("0")
    none = make(api, "app")
    for _ in range(2):  # the second is told at once
        none.good("curl -sS -o /dev/null -w '%{http_code}' https://hub.test/acme/project.git/info/refs?service=git-upload-pack", "502")
    check(none.records(lambda r: r["reason"] == "token"), none.shown)
    (servers.FOLDER / "ttl").write_text("3600")
    # Another key: what was got with the last one is not said any more, and this one is not the app's.
    other = servers.run("openssl", "genrsa", "2048").decode()
    fetch = "curl -sS -o /dev/null -w '%{http_code}' https://hub.test/acme/project.git/info/refs?service=git-upload-pack"
    box.good(fetch, "200")
    set_secret(api, "app", value=other[other.index("-----"):], verb="rotate")
    wait_until(lambda: box.run(fetch)[0]["stdout"] == "502", 5, "the other key")
    set_secret(api, "app", value=app_key(), verb="rotate")
    wait_until(lambda: box.run(fetch)[0]["stdout"] == "200", 8, "the first one")
    lines = app_key().splitlines()
    der = base64.b64decode("".join(lines[1:-1]))
    forms = [lines[8].encode(), der[100:130], der[400:430], der[700:730], der[400:430][::-1], der[700:730][::-1]]
    late = make(api, "app")
    late.good("git ls-remote -q https://hub.test/acme/project.git")
    gates = [pid for pid, name in lib.children_of(api.daemon.process.pid).items() if name.startswith("caisson-gate")]
    gates += [pid for master in gates for pid in lib.children_of(master)]
    check(len(gates) > 1, gates)
    for pid in gates:
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                span, mode = line.split()[:2]
                if mode.startswith("rw"):
                    low, high = (int(x, 16) for x in span.split("-"))
                    mem.seek(low)
                    data = mem.read(high - low)
                    check(not any(f in data for f in forms), f"{pid}: {line}")


# ---- what leaves a workspace ----------------------------------------------------------------------

def pushed(api, branch):
    """A workspace with a commit that was pushed."""
    set_app(api, "--git", "acme/project", "--push", "refs/heads/agent/*")
    same(api.client.ok("PUT", "/v1/repos/hub?wait=80s", {"url": "https://hub.test/acme/project.git", "cred": "app"})["state"], "ready")
    work = api.client.ok("PUT", "/v1/workspaces/task", {"repo": "hub", "branch": branch})
    api.client.ok("PUT", f"/v1/workspaces/{work['id']}/files/new.txt", b"new\n")
    caisson(api.daemon, "commit", work["id"], "-m", "by us")
    caisson(api.daemon, "push", work["id"])
    return work["id"]


@test("pulls: at GitHub with an app's token, at GitLab by its own base and field; a second time it is the same one")
def _(api):
    set_app(api, "--path", "/repos/acme/project/pulls", name="api")
    work = pushed(api, "agent/hub")
    words = ("pulls", work, "--title", "What \"we\" did", "--body", "line\n\u00e9", "--api", "https://hub.test")
    caisson(api.daemon, *words, "--cred", "app", status=(1, 2, 125))  # that one is for git
    first = caisson(api.daemon, *words, "--cred", "api", "--draft").stdout.strip()
    check(first.startswith("https://hub.test/acme/project/pull/"), first)
    same(caisson(api.daemon, *words, "--cred", "api").stdout.strip(), first)
    same(api.client.post(f"/v1/workspaces/{work}/pulls", {"title": "x", "api": "https://hub.test", "cred": "api", "branch": "agent/none"}).code, "conflict")
    made = api.client.post(f"/v1/workspaces/{work}/pulls", {"title": "x", "api": "https://hub.test", "cred": "api"})
    same((made.status, made.json["url"], made.json["branch"], made.json["base"], made.json["forge"]), (200, first, "agent/hub", "main", "github"))
    for body in ({}, {"title": "a\nb"}, {"title": "a", "api": "http://hub.test"}, {"title": "a", "forge": "other"}, {"title": "a", "branch": "a..b"}):
        same(api.client.post(f"/v1/workspaces/{work}/pulls", body).status, 400)
    events = [json.loads(line) for line in api.client.get("/v1/events?kind=git.proposed&limit=10").body.splitlines()]
    same([e["data"]["url"] for e in events], [first])
    set_secret(api, "lab", "--host", "lab.test", "--inject", "header:PRIVATE-TOKEN", value=LAB)
    words = ("pulls", work, "--title", "merge", "--forge", "gitlab", "--api", "https://lab.test/api/v4", "--cred", "lab")
    first = caisson(api.daemon, *words).stdout.strip()
    check(first.startswith("https://lab.test/acme/project/-/merge_requests/"), first)
    same(caisson(api.daemon, *words).stdout.strip(), first)
    set_secret(api, "lab", "--host", "lab.test", "--inject", "header:PRIVATE-TOKEN", value="glpat-of-somebody-else")
    check("credential" in caisson(api.daemon, *words, status=(1, 2, 125)).stderr, "another token")
    api.client.delete(f"/v1/workspaces/{work}?force=1")


@test("git: addresses in SSH's way, fetched and pushed by https, with nothing but a placeholder")
def _(api):
    set_app(api, "--git", "acme/project", "--push", "refs/heads/agent/*")
    box = make(api, "app")
    for url in ("git@hub.test:acme/project.git", "ssh://git@hub.test/acme/project.git"):
        box.good(f"rm -rf /work/p; git clone -q {url} /work/p && cat /work/p/hello.txt", servers.TEXT)
        same(box.good("git -C /work/p config remote.origin.url")[0]["stdout"].strip(), url)
    box.good("cd /work/p && git fetch -q && date >more && git add . && git -c user.name=a -c user.email=a@example.org commit -qm more && "
             "git push -q origin HEAD:refs/heads/agent/ssh")
    own = make(api, "app", env={**place.PLAIN_ENV, "GIT_CONFIG_COUNT": "0"})  # the caller's stays
    own.good("printenv GIT_CONFIG_COUNT", "0\n")


# ---- registries -----------------------------------------------------------------------------------

@test("npm publish to a registry that wants a token, with a placeholder in .npmrc", when=place.HAS_MORE)
def _(api):
    place.need("npm")
    check(servers.verdaccio_program(place.ROOT), "tests/net/verdaccio installs it")
    # Whoever keeps the registry makes the token, and nobody inside sees it.
    body = json.dumps({"name": "robot", "password": "secret-of-robot"})
    made = servers.run("curl", "-sS", "--fail", "--cacert", servers.CA, "-X", "PUT", "-H", "Content-Type: application/json", "-d", body,
                       "https://registry.test/-/user/org.couchdb.user:robot")
    token = json.loads(made)["token"]
    set_secret(api, "npm", "--host", "registry.test", "--env", "NPM_TOKEN", value=token)
    net = {"allow": ["registry.test"]}
    files = {"/work/.npmrc": "registry=https://registry.test/\n//registry.test/:_authToken=${NPM_TOKEN}\nfetch-retries=0\naudit=false\nfund=false\n",
             "/work/own/package.json": json.dumps({"name": "@own/thing", "version": "1.2.3", "main": "index.js"}),
             "/work/own/index.js": "module.exports = 'published'\n"}
    publish = "cd /work/own && npm publish --access public"
    for creds in ((), ("npm",)):
        box = Box(api.client, net, env=place.PLAIN_ENV if creds else {**Box.ENV, "NPM_TOKEN": "none-at-all"}, creds=list(creds))
        for path, text in files.items():
            box.put(path, text)
        if not creds:
            box.bad(publish, 30)
            continue
        box.good(f"{publish}; mkdir -p /work/use; cd /work/use; npm install @own/thing && node -e 'console.log(require(\"@own/thing\"))'", "published", seconds=60)
        box.good("npm whoami", "robot")
        found = box.run(f"grep -rl '{token[:40]}' /work /tmp || true")[0]["stdout"]
        same(found, "")


UPLOAD = """
import os, requests
name = "gatepackage-1.0-py3-none-any.whl"
r = requests.post("https://hub.test/legacy/", auth=("__token__", os.environ["TWINE_PASSWORD"]), files={"content": (name, b"PK" * 50000)},
                  data={":action": "file_upload", "protocol_version": "1", "name": "gatepackage"})
print(r.status_code)
"""


@test("an upload as twine makes it: basic authentication with a placeholder for a password")
def _(api):
    (servers.FOLDER / "upload.token").write_text(TOKEN)
    set_secret(api, "index", "--host", "hub.test", "--inject", "basic:__token__", "--path", "/legacy/", "--method", "POST", "--env", "TWINE_PASSWORD", value=TOKEN)
    box = make(api, "index")
    box.put("/work/upload.py", UPLOAD)
    box.good("/usr/bin/python3 /work/upload.py", "200")
    box.good("TWINE_PASSWORD=mine /usr/bin/python3 /work/upload.py", "403")


# ---- deaths ---------------------------------------------------------------------------------------

# Half of a body, then the rest once it may: the gate holds it to be signed.
HALF = """
import http.client, os, ssl, time
c = http.client.HTTPSConnection("aws.test", context=ssl.create_default_context())
c.putrequest("POST", "/body")
c.putheader("Content-Length", "20")
c.putheader("Content-Type", "text/plain")
c.endheaders(b"x" * 10)
open("/work/half", "w").close()
while not os.path.exists("/work/go"):
    time.sleep(0.01)
c.send(b"y" * 10)
print(c.getresponse().status)
"""
STEPS = {"token": f"{CURL} -w '%{{http_code}}' https://hub.test/token", "sent": f"{CURL} -w '%{{http_code}}' https://hub.test/sent",
         "answer": f"{CURL} -w '%{{http_code}}' https://hub.test/answer", "body": "rm -f /work/half /work/go; python3 /work/half.py"}


def victims(daemon):
    master = next(pid for pid, name in lib.children_of(daemon.process.pid).items() if name == "caisson-gate")
    return {"child": lambda: next(iter(lib.children_of(master))), "master": lambda: master, "daemon": lambda: daemon.pid}


def one_death(api, box, step, victim):
    """A request that somebody dies under: it fails, or is answered once, and is on record. What came of it."""
    go, arrived, hold = (servers.FOLDER / name for name in ("forges.go", "forges.arrived", "forges.hold"))
    for path in (go, arrived):
        path.unlink(missing_ok=True)
    hold.touch()
    if step != "token":  # which it has then
        go.touch()
        box.good(f"{CURL} --retry 5 --retry-all-errors https://hub.test/warm")
        go.unlink()
        arrived.unlink(missing_ok=True)
    path = f"/{step}"
    first = sum(r["path"] == path for r in said())
    rows = len(box.records(lambda r: r.get("path") == path and r["secrets"], 0))
    process = api.client.execute(box.sandbox, STEPS[step], wait="0s", timeout="80s")
    if step == "body":
        wait_until(lambda: box.run("test -e /work/half")[0]["exit_code"] == 0, 5, "half of a body")
    else:
        wait_until(arrived.exists, 5, f"a request at {step}")
    pid = victims(api.daemon)[victim]()
    os.kill(pid, 9)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5, "his end")
    hold.unlink()
    go.touch()
    api.daemon.wait_ready()
    api.client = box.client = api.daemon.client()
    if step == "body":
        box.run("touch /work/go")
    done = place.wait_end(api.client, process, 90)
    seen = sum(r["path"] == path for r in said()) - first
    check(seen <= 1, f"it was said {seen} times")
    is_whole = done["exit_code"] == 0 and done["stdout"].endswith("200\n" if step == "body" else "200")
    check(not is_whole or seen == 1, f"{step} {victim}: {done}")
    texts = [SECRET, *tokens(), app_key().splitlines()[3]]
    check(not any(t in done["stdout"] for t in texts), "a secret came back")
    if seen == 1:  # also of one whose answer nobody saw
        wait_until(lambda: len(box.records(lambda r: r.get("path") == path and r["secrets"], 0)) == rows + 1, 5, f"a record of {step}, {victim}: {box.shown()}")
    box.good(f"{CURL} --retry 5 --retry-all-errors https://hub.test/after")  # it works again
    return seen, is_whole


@test("whoever dies under the use of a secret: it is said once or not at all, is on record, and nothing is left of it", own=True)
def _(_api):
    daemon = lib.Daemon("deaths", options=place.OPTIONS).start()
    api = type("Api", (), {"daemon": daemon, "client": daemon.client()})
    set_secret(api, "aws", "--host", "aws.test", "--inject", "aws:eu-west-3/sqs", value=KEY)
    came = {}
    for victim in ("child", "master", "daemon"):
        set_app(api)
        box = make(api, "app", "aws")
        box.put("/work/half.py", HALF)
        for step in STEPS:
            came[step, victim] = one_death(api, box, step, victim)
        box.remove()
    same([k for k, (_, is_whole) in came.items() if is_whole], [(step, "daemon") for step in STEPS])  # they go on without it
    unseen = {k for k, (seen, _) in came.items() if seen == 0}
    early = {(s, v) for v in ("child", "master") for s in ("token", "body")}
    # What is on its way to the server may be lost with who sends it.
    check(early <= unseen <= early | {("sent", "child"), ("sent", "master")}, f"{sorted(unseen)}")
    events = [json.loads(line) for line in api.client.get("/v1/events?kind=secret.used&limit=1000").body.splitlines()]
    same({(r["data"]["secret"], r["data"]["path"]) for r in events if r["data"]["path"] in ("/sent", "/answer", "/body", "/token")},
         {("app", "/sent"), ("app", "/answer"), ("app", "/token"), ("aws", "/body")})
    for folder in (daemon.state, daemon.run):
        for path in pathlib.Path(folder).rglob("*"):
            if path.is_file() and not path.is_symlink():
                data = path.read_bytes()
                check(not any(t.encode() in data for t in (SECRET, *tokens(), app_key().splitlines()[3])), f"in {path}")
    daemon.client().remove_all()
    daemon.wait_clean()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(place.main(__file__, begin=begin))
