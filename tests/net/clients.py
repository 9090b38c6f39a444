#!/usr/bin/env python3
"""Real clients inside a sandbox, real servers outside, no proxy variable: each works where the rules let it,
and where they do not it fails at once, with a record. TAP.

    tests/net/clients.py         all (needs root)
    tests/net/clients.py curl    those with the word in their title
"""
import collections
import json
import sys

import place
import servers
from lib import check, same, test, wait_until
from place import Box, need


# title; programs; rules; command, in which HOST is the one allowed and then one that is not; what it
# prints; protocol of the record; its port.
Client = collections.namedtuple("Client", "title needs host command prints proto port")
URLLIB = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())"
REQUESTS = "import sys, requests; r = requests.get(sys.argv[1], timeout=20); r.raise_for_status(); print(r.text)"
FETCH = "fetch(process.argv[1]).then(r => r.text()).then(console.log, e => { console.error(e); process.exit(1) })"
SOCKET = """
import asyncio, ssl, sys, websockets
async def main():
    context = ssl.create_default_context() if sys.argv[1].startswith("wss") else None
    async with websockets.connect(sys.argv[1], ssl=context, open_timeout=20) as s:
        for n in (1, 1000, 100000):
            await s.send("x" * n)
            assert await s.recv() == "x" * n
    print("echoed")
asyncio.run(main())
"""
PUSH = """set -e; git clone -q https://HOST/project.git /work/push-HOST; cd /work/push-HOST
git config user.name a; git config user.email a@example.org; date +%N >new; git add new; git commit -qm new
b=agent-$(cat new); git push -q origin HEAD:refs/heads/$b 2>&1; git ls-remote origin $b"""
SSH = ("ssh -F /dev/null -i /work/ssh.key -o UserKnownHostsFile=/work/known_hosts -o BatchMode=yes -o HostKeyAlias=ssh.test "
       "-o ConnectTimeout=60 visitor@HOST 'echo hello from; id -un'")
PSQL = "PGPASSWORD=secret PGCONNECT_TIMEOUT=10 psql 'host=HOST user=visitor dbname=postgres sslmode=MODE' -Atc 'select 6 * 7 || current_user'"
JAVA = """set -e; cat >/work/Fetch.java <<'END'
public class Fetch {
    public static void main(String[] words) throws Exception {
        try (var in = new java.net.URL(words[0]).openStream()) { in.transferTo(System.out); }
    }
}
END
[ -e /work/store ] || keytool -importcert -noprompt -file /work/ca.pem -keystore /work/store -storepass changeit >/dev/null 2>&1
java -Xmx256m -Djavax.net.ssl.trustStore=/work/store -Djavax.net.ssl.trustStorePassword=changeit /work/Fetch.java https://HOST/hello.txt"""
# A sparse index was a thing to try when Debian 12 was made; later ones take the flag and say so.
CARGO = f"""set -e; mkdir -p /work/rust/src; cd /work/rust; : >src/lib.rs; export CARGO_HOME=/work/cargo-HOST CARGO_NET_RETRY=0 RUSTC_BOOTSTRAP=1
printf '[package]\\nname = "user"\\nversion = "1.0.0"\\n[dependencies]\\n{servers.PACKAGE} = {{ version = "1", registry = "own" }}\\n' >Cargo.toml
CARGO_HTTP_CAINFO=/work/ca.pem CARGO_REGISTRIES_OWN_INDEX=sparse+https://HOST/ cargo -q -Z sparse-registry fetch
cat $CARGO_HOME/registry/src/*/{servers.PACKAGE}-1.0.0/src/lib.rs"""

SMTP = "import smtplib, sys; print(smtplib.SMTP(sys.argv[1], 2525, timeout=20).noop())"

# pylint: disable=line-too-long
CLIENTS = [
    Client("curl, TLS",          ["curl"],    "web.test",   "curl -sS --fail https://HOST/hello.txt", servers.TEXT, "tls", 443),
    Client("curl, plain",        ["curl"],    "web.test",   "curl -sS --fail http://HOST/hello.txt", servers.TEXT, "http", 80),
    Client("curl, HTTP/2",       ["curl"],    "web.test",   "curl -sS --fail --http2 https://HOST/host", "https web.test HTTP/2.0", "tls", 443),
    Client("curl, a name of the hosts file", ["curl"], "filed.test", "curl -sS --fail http://HOST/host", "http filed.test", "http", 80),
    Client("wget, TLS",          ["wget"],    "web.test",   "wget -q -t 1 --ca-certificate=/work/ca.pem -O - https://HOST/hello.txt", servers.TEXT, "tls", 443),
    Client("wget, plain",        ["wget"],    "web.test",   "wget -q -t 1 -O - http://HOST/hello.txt", servers.TEXT, "http", 80),
    Client("git clone",          ["git"],     "git.test",   "git clone -q https://HOST/project.git /work/clone-HOST && cat /work/clone-HOST/hello.txt", servers.TEXT, "tls", 443),
    Client("git push",           ["git"],     "git.test",   PUSH, "refs/heads/agent", "tls", 443),
    Client("pip install",        ["pip3"],    "index.test", f"/usr/bin/python3 -m pip install -q --no-cache-dir --retries 0 --target /work/pip --index-url https://HOST/simple {servers.PACKAGE} && PYTHONPATH=/work/pip /usr/bin/python3 -c 'import {servers.PACKAGE} as p; print(p.TEXT)'", servers.TEXT, "tls", 443),
    Client("npm install",        ["npm"],     "npm.test",   f"mkdir -p /work/npm && cd /work/npm && npm install --no-audit --no-fund --no-update-notifier --fetch-retries 0 --prefer-online --cafile /work/ca.pem --cache /work/npm-cache-HOST --registry https://HOST/ {servers.PACKAGE} && node -e 'console.log(require(\"{servers.PACKAGE}\"))'", servers.TEXT, "tls", 443),
    Client("node fetch",         ["node"],    "web.test",   ["node", "-e", FETCH, "https://HOST/hello.txt"], servers.TEXT, "tls", 443),
    Client("Python urllib",      [],          "web.test",   ["/usr/bin/python3", "-c", URLLIB, "https://HOST/hello.txt"], servers.TEXT, "tls", 443),
    Client("Python requests",    [],          "web.test",   ["/usr/bin/python3", "-c", REQUESTS, "https://HOST/hello.txt"], servers.TEXT, "tls", 443),
    Client("openssl s_client",   ["openssl"], "web.test",   "printf 'GET /hello.txt HTTP/1.0\\r\\nHost: HOST\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -CAfile /work/ca.pem -servername HOST -connect HOST:443", servers.TEXT, "tls", 443),
    Client("ssh",                ["ssh"],     "ssh.test",   SSH, "hello from\nvisitor", "ssh", 22),
    Client("WebSocket, TLS",     [],          "ws.test",    ["/usr/bin/python3", "-c", SOCKET, "wss://HOST/"], "echoed", "tls", 443),
    Client("WebSocket, plain",   [],          "ws.test",    ["/usr/bin/python3", "-c", SOCKET, "ws://HOST/"], "echoed", "http", 80),
    Client("SMTP, where the server speaks first", [], "mail.test", ["/usr/bin/python3", "-c", SMTP, "HOST"], "(250", "tcp", 2525),
    Client("psql",               ["psql"],    "db.test",    PSQL.replace("MODE", "disable"), "42visitor", "tcp", 5432),
    Client("psql, TLS after a word in clear", ["psql"], "db.test", PSQL.replace("MODE", "verify-full sslrootcert=/work/ca.pem"), "42visitor", "tcp", 5432),
    Client("Java",               ["java"],    "web.test",   JAVA, servers.TEXT, "tls", 443),
    Client("go mod download",    ["go"],      "go.test",    f"mkdir -p /work/go && cd /work/go && GOFLAGS=-modcacherw GOPATH=/work/gopath-HOST GOPROXY=https://HOST GONOSUMDB=* GOTOOLCHAIN=local go mod download -json go.test/{servers.PACKAGE}@v1.0.0", '"Version": "v1.0.0"', "tls", 443),
    Client("cargo fetch",        ["cargo", "rustc"], "cargo.test", CARGO, servers.TEXT.strip(), "tls", 443),
]
# pylint: enable=line-too-long
SLOW = {"pip install": 15.0, "npm install": 15.0, "cargo fetch": 15.0, "go mod download": 15.0, "Java": 15.0}  # to start, and to say no


def text_of(command, host):
    if isinstance(command, list):
        return [word.replace("HOST", host) for word in command]
    return command.replace("HOST", host)


def fill(box, client):
    if client.host == "ssh.test":
        box.put("/work/ssh.key", (servers.FOLDER / "ssh.key").read_bytes())
        box.put("/work/known_hosts", (servers.FOLDER / "known_hosts").read_bytes())
        box.good("chmod 600 /work/ssh.key")


def one_client(api, client, role):
    need(*client.needs)
    box = Box(place.client_of(api, role), {"allow": [client.host]})
    fill(box, client)
    box.good("! env | grep -i proxy")
    command = text_of(client.command, client.host)
    process, _ = box.run(command)
    check(process["exit_code"] == 0 and client.prints in process["stdout"],
          lambda: f"{place.summary(process)}\n{box.shown()}\nthe same outside: {place.outside(command)}")
    row = box.records(lambda r: r["decision"] == "allow" and r["name"] == client.host)
    check(row, box.shown)
    same((row[0]["proto"], row[0]["port"]), (client.proto, client.port), "record")
    if client.proto == "tls":
        same(row[0]["sni"], client.host, "SNI on record")

    process, _ = box.bad(text_of(client.command, "denied.test"), SLOW.get(client.title, place.AT_ONCE))
    row = box.records(lambda r: r["decision"] == "deny" and r["name"] == "denied.test")
    check(row, box.shown)
    same((row[0]["reason"], row[0]["rule"]), ("no_rule", None), "record of the denied")
    check([v for v in process["violations"] if v["kind"] == "net" and "denied.test" in v["target"]],
          lambda: f"violations: {process['violations']}")
    box.remove()


@test("npm publish and install, Verdaccio", when=place.HAS_MORE)
def _(api):
    """A registry that npm itself installed; the package is made inside and goes there and back."""
    need("npm")
    check(servers.verdaccio_program(place.ROOT), "tests/net/verdaccio installs it")
    box = Box(api.client, {"allow": ["registry.test"]})
    box.put("/work/own/package.json", json.dumps({"name": "own", "version": "1.2.3", "main": "index.js"}))
    box.put("/work/own/index.js", "module.exports = 'published'\n")
    box.put("/work/.npmrc", "registry=https://registry.test/\ncafile=/work/ca.pem\nfetch-retries=0\naudit=false\nfund=false\n")
    user = json.dumps({"name": "a", "password": "secret"})
    box.good("""set -e; token=$(curl -sS --fail -X PUT -H 'Content-Type: application/json' -d '%s' \
        https://registry.test/-/user/org.couchdb.user:a | sed 's/.*"token": *"\\([^"]*\\)".*/\\1/')
        echo "//registry.test/:_authToken=$token" >>/work/.npmrc; cd /work/own; npm publish
        mkdir -p /work/use; cd /work/use; npm install own; node -e 'console.log(require("own"))'""" % user, "published")


# ---- TLS that is read ------------------------------------------------------------------------

# What the commands above say about whom to trust; here the sandbox knows by itself.
TRUST = ("--ca-certificate=/work/ca.pem ", "-CAfile /work/ca.pem ", "--cafile /work/ca.pem ",
         "-Djavax.net.ssl.trustStore=/work/store -Djavax.net.ssl.trustStorePassword=changeit ", "CARGO_HTTP_CAINFO=/work/ca.pem ")
PATHS = {"web.test": ["/hello.txt", "/host"], "git.test": ["/project.git/**"], "index.test": ["/simple/**"], "go.test": ["/go.test/**"],
         "npm.test": [f"/{servers.PACKAGE}", f"/{servers.PACKAGE}-1.0.0.tgz"], "ws.test": ["/"],
         "cargo.test": ["/config.json", f"/ga/te/{servers.PACKAGE}", f"/{servers.PACKAGE}-1.0.0.crate"]}


def without_trust(command):
    for words in TRUST:
        command = command.replace(words, "") if isinstance(command, str) else command
    return command


def served():
    return (servers.FOLDER / "access.log").read_text().count("\n")


def read_client(api, client, role):
    """The same command where TLS to its host ends at the gate, and nothing says whom to trust but what the sandbox has itself."""
    need(*client.needs)
    box = Box(place.client_of(api, role), {"http": [{"host": client.host, "paths": PATHS[client.host]}]}, env=place.PLAIN_ENV)
    before = served()
    process, _ = box.run(without_trust(text_of(client.command, client.host)))
    prints = client.prints.replace("HTTP/2.0", "HTTP/1.1")  # it is not offered where it is not carried
    check(process["exit_code"] == 0 and prints in process["stdout"], lambda: f"{place.summary(process)}\n{box.shown()}")

    def requests():
        return [r for r in box.records(lambda r: r["kind"] == "request") if r["decision"] == "allow"]
    wait_until(lambda: 0 < len(requests()) == served() - before, 5, "a record for each request that the server saw")
    check(all((r["name"], r["rule"]) == (client.host, f"http: {client.host}") and r["status"] and r["method"] for r in requests()),
          lambda: str(requests()))

    box.good(f"curl -sS -o /dev/null -w '%{{http_code}}' https://{client.host}/not/listed", "403")
    rows = box.records(lambda r: r["kind"] == "request" and r["decision"] == "deny")
    same([(r["method"], r["path"], r["reason"]) for r in rows], [("GET", "/not/listed", "http_rule")], "what is not listed")
    box.remove()


@test("read: an http rule lets through its methods and paths, and says no to the rest, with a record")
def _(api):
    box = Box(api.client, {"http": [{"host": "web.test", "methods": ["GET"], "paths": ["/hello.txt", "/host"]}]}, env=place.PLAIN_ENV)
    box.good("curl -sS --fail https://web.test/hello.txt", servers.TEXT)
    box.good("curl -sS --fail http://web.test/host", "http web.test")
    wrong = ("-X POST -d x https://web.test/hello.txt", "https://web.test/big", "--path-as-is https://web.test/hello.txt/../big",
             "https://web.test/%2e%2e/big", "-X DELETE http://web.test/hello.txt", "http://web.test/hello.txt%2f..%2fbig")
    for words in wrong:
        box.good(f"curl -sS -o /dev/null -w '%{{http_code}}' {words} | grep -x '40[03]'")
    rows = box.records_of(2 + len(wrong), lambda r: r["kind"] == "request")
    same(sorted((r["method"], r["path"], r["status"]) for r in rows if r["decision"] == "allow"),
         [("GET", "/hello.txt", 200), ("GET", "/host", 200)], "requests that were allowed")
    same(len([r for r in rows if r["decision"] == "deny" and r["reason"] in ("http_rule", "http_bad")]), len(wrong), "those that were not")


@test("read: a server whose certificate is another's is not believed, whatever the client would say")
def _(api):
    box = Box(api.client, {"allow": ["nocert.test"], "inspect": ["nocert.test"]})
    place.names.zone["nocert.test"] = [servers.WEB]
    answer, _ = box.run("curl -skS -o /dev/null -w '%{http_code}' https://nocert.test/hello.txt")
    same(answer["stdout"], "502", place.summary(answer))
    check(box.records(lambda r: r["reason"] == "tls"), box.shown)


def is_here(client):
    """What make check does not install comes with make check-gate."""
    return place.HAS_MORE or not {"npm", "psql", "java", "go", "cargo"} & set(client.needs)


def is_quick(client):
    """Without much to start."""
    return set(client.needs) <= {"curl", "wget", "git", "openssl", "ssh"}


for each_role in place.ROLES:
    for each_client in (c for c in CLIENTS if is_here(c) and (each_role == "root" or place.HAS_MORE or is_quick(c))):
        test(f"{each_role}: {each_client.title}")(lambda api, c=each_client, r=each_role: one_client(api, c, r))
        if each_client.proto == "tls":
            test(f"{each_role}, read: {each_client.title}")(lambda api, c=each_client, r=each_role: read_client(api, c, r))


if __name__ == "__main__":
    sys.exit(place.main(__file__))
