#!/usr/bin/env python3
"""The package cache: real pip and npm in sandboxes, registries outside that can be gone, slow, or lie. TAP.

    tests/net/cache.py          all (needs root)
    tests/net/cache.py offline  those with the word in their title
"""
import json
import os
import signal
import sys

import place  # before lib, whose folder it knows
import lib
import servers
import shop as shops
from lib import check, same, test, wait_until
from place import Box

HOSTS = ["pkg.test", "files.test"]
PLAIN = {"HOME": "/work", "PATH": place.PATH, "PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
SERVICE_ID = 0x6fffff00
shop = None


def prepare():
    global shop  # pylint: disable=global-statement
    finish = place.prepare()
    shop = shops.Shop()

    def end():
        shop.close()
        finish()
    return end


def box_for(client, kind="pip", hosts=tuple(HOSTS), **net):
    """A sandbox that knows of no certificate: what its clients trust is placed there by us."""
    return Box(client, {"allow": list(hosts), "cache": [f"{kind}:{host}" for host in hosts], **net}, env=PLAIN)


def pip(name):
    return (f"/usr/bin/python3 -m pip install -q --no-cache-dir --retries 0 --target /work/p -i https://pkg.test/simple/ {name} && "
            f"PYTHONPATH=/work/p /usr/bin/python3 -c 'import {name} as p; print(p.TEXT)'")


def curl(path, host="files.test", more=""):
    return f"curl -sS --fail {more} https://{host}{path}"


def words(box, n=1):
    """What the cache did, request by request."""
    def look():
        rows = box.records(lambda r: r["kind"] == "request", 0)
        return rows if len(rows) >= n else None
    return [r["cache"] for r in wait_until(look, 3, f"{n} requests")]


def entries(client):
    return client.ok("GET", "/v1/cache?limit=1000")["entries"]


def pid_of(daemon):
    """Of the cache."""
    found = [p for p, name in lib.children_of(daemon.process.pid).items() if name.startswith("caisson-cache")]
    return found[0] if found else None


def get_index(box, name):
    """So that the cache knows the digest of its file."""
    box.good(curl(f"/simple/{name}/", "pkg.test", "-o /dev/null"))


# ---- clients ---------------------------------------------------------------------------------

def pip_thrice(api, role, is_json):
    client, name = place.client_of(api, role), f"pipped{role}{int(is_json)}"
    path = shop.pip(name, "from the shop", is_json, has_metadata=not is_json)
    for expected in (("miss", {"miss", "hit"}), ("revalidated", {"hit"})):
        box = box_for(client)
        box.good(pip(name), "from the shop")
        first, *rest = words(box, 2)
        check(first == expected[0] and set(rest) <= expected[1], box.shown)  # pip may ask for a file twice
    same(len(shop.asked(path)), 1, "fetches of the file")
    shop.close()
    place.names.asked.clear()
    try:
        box = box_for(client, offline=True)
        box.good(pip(name), "from the shop")
        same(set(words(box, 2)), {"hit"}, "offline")
        same([a for a in place.names.asked if a[0] in HOSTS], [], "names that were looked up")
        check(not [a for a in place.catcher.accepted if a[0] == servers.SHOP], "somebody was dialled")
    finally:
        shop.open()


for each_role in place.ROLES:
    for each_form in (False, True):
        test(f"{each_role}: pip, an index as {'JSON' if each_form else 'a page'}: fetched once, then from the cache, then offline")(
            lambda api, r=each_role, j=each_form: pip_thrice(api, r, j))


@test("npm: a package and one with a scope: fetched once, then from the cache, then offline", when=place.HAS_MORE)
def _(api):
    place.need("npm")
    tarball = servers.npm_tarball()
    paths = [shop.npm(servers.PACKAGE, tarball), shop.npm(f"@shop/{servers.PACKAGE}", tarball, f"/@shop%2f{servers.PACKAGE}")]
    install = (f"cd /work && npm install --silent --no-audit --no-fund --fetch-retries 0 --cache /work/c --registry https://pkg.test/ "
               f"{servers.PACKAGE} @shop/{servers.PACKAGE} && node -e 'console.log(require(\"{servers.PACKAGE}\"))'")
    for expected in ({"miss"}, {"revalidated", "hit"}):
        box = box_for(api.client, "npm", ["pkg.test"])
        box.good(install, servers.TEXT.strip(), seconds=90)
        same(set(words(box, 4)), expected, box.shown())
    same([len(shop.asked(p)) for p in paths], [1, 1], "fetches")
    shop.close()
    try:
        box = box_for(api.client, "npm", ["pkg.test"], offline=True)
        box.good(install, servers.TEXT.strip(), seconds=90)
        same(set(words(box, 4)), {"hit"}, "offline")
    finally:
        shop.open()


@test("cargo: a sparse index gives the digest of a crate, wherever its config.json says that lies")
def _(api):
    path = shop.crate("abcdef", b"a crate")
    for expected in (["miss", "miss", "miss"], ["miss", "revalidated", "hit"]):  # the first has no ETag
        box = box_for(api.client, "cargo")
        for target, host in (("/config.json", "pkg.test"), ("/ab/cd/abcdef", "pkg.test"), (path, "files.test")):
            box.good(curl(target, host))
        same(words(box, 3), expected, box.shown())


# ---- what a registry can do wrong -------------------------------------------------------------

@test("a file that is not what its index says is never answered whole, and not kept")
def _(api):
    good = shop.pages[("files.test", shop.pip("liar", "truth"))]
    path, lie = "/f/liar-1.0-py3-none-any.whl", bytearray(good.body)
    lie[-1] ^= 1
    for page in (shops.Page(bytes(lie)), shops.Page(bytes(lie), chunked=True), shops.Page(good.body + b"more"), shops.Page(good.body[:-1])):
        shop.pages[("files.test", path)] = page
        box = box_for(api.client)
        get_index(box, "liar")
        box.bad(curl(path, more="-o /work/got"), 5)
        box.bad(pip("liar"), 40)
        got, _ = box.run("cat /work/got | wc -c")
        check(int(got["stdout"]) < len(page.body), f"all of it came: {got['stdout']}")
    check(not [e for e in entries(api.client) if path in e["url"]], "it is kept")
    shop.pages[("files.test", path)] = good
    box_for(api.client).good(pip("liar"), "truth")
    check([e for e in entries(api.client) if path in e["url"]], "it is not kept")


@test("a transfer that is cut, by length or in chunks, is an error and is not kept; the next one is whole")
def _(api):
    path = shop.pip("torn", "whole", extra=bytes(300000))
    good = shop.pages[("files.test", path)]
    for chunked in (False, True):
        shop.pages[("files.test", path)] = shops.Page(good.body, cut=200000, chunked=chunked)
        box = box_for(api.client)
        get_index(box, "torn")
        box.bad(curl(path, more="-o /dev/null"), 5)
    shop.pages[("files.test", path)] = shops.Page(good.body, chunked=True)
    box_for(api.client).good(pip("torn"), "whole")
    check([e for e in entries(api.client) if path in e["url"]], "it is not kept")


@test("an index that is cut, malformed, compressed, huge or of another kind is passed on or refused, never kept")
def _(api):
    shop.pip("odd", "text")
    good = shop.pages[("pkg.test", "/simple/odd/")]
    at = "/simple/odd/"
    kinds = {
        "compressed": shops.Page(good.body, good.kind, headers={"Content-Encoding": "gzip"}),
        "other": shops.Page(good.body, "application/zip"),
        "missing": shops.Page(b"gone\n", good.kind, status=404),
        "moved": shops.Page(b"", good.kind, status=301, headers={"Location": "https://pkg.test/elsewhere/"}),
        "broken": shops.Page(b'{"files":[', "application/vnd.pypi.simple.v1+json"),
    }
    for name, page in kinds.items():
        shop.pages[("pkg.test", at)] = page
        box = box_for(api.client)
        answer, _ = box.run(f"curl -sS -o /work/got -w '%{{http_code}}' https://pkg.test{at}")
        same((answer["exit_code"], answer["stdout"]), (0, str(page.status)), name)
        same(words(box), ["miss" if name == "broken" else "pass"], name)
    shop.pages[("pkg.test", at)] = shops.Page(good.body, good.kind, cut=20)
    box_for(api.client).bad(curl(at, "pkg.test", "-o /dev/null"), 5)
    shop.pages[("pkg.test", at)] = shops.Page(b"<a>" * (23 << 20), good.kind, chunked=True)
    box_for(api.client).bad(curl(at, "pkg.test", "-o /dev/null"), 60)
    check(not [e for e in entries(api.client) if at in e["url"]], "it is kept")


@test("a new index counts at once: revalidated each time")
def _(api):
    shop.pip("fresh", "old")
    box_for(api.client).good(pip("fresh"), "old")
    shop.pip("fresh", "new")
    box = box_for(api.client)
    box.good(pip("fresh"), "new")
    same(words(box, 2), ["miss", "miss"], box.shown())


@test("a server that is slow: many who want the same file are one fetch, and all get it")
def _(api):
    path = shop.pip("shared", "many", extra=os.urandom(400000))
    page = shop.pages[("files.test", path)]
    page.slow = (20000, 0.03)
    boxes = [box_for(api.client) for _ in range(2)]
    for box in boxes:
        get_index(box, "shared")
    begin = [api.client.execute(box.sandbox, " & ".join([f"curl -sS --fail https://files.test{path} | sha256sum"] * 4) + " & wait", wait="0s")
             for box in boxes]
    for process in begin:
        done = place.wait_end(api.client, process)
        same(done["stdout"].split().count(shops.sha256(page.body)), 4, place.summary(done))
    same(len(shop.asked(path)), 1, "fetches")


@test("connections to a registry are used again; one that was closed meanwhile is no error")
def _(api):
    for i in range(6):
        shop.pip(f"often{i}", "text")
    box = box_for(api.client)
    before = shop.connections
    for i in range(6):
        get_index(box, f"often{i}")
    check(shop.connections - before <= 2, f"{shop.connections - before} connections")
    shop.drop()
    for i in range(6):
        get_index(box, f"often{i}")
    same(set(words(box, 12)), {"miss", "revalidated"}, box.shown())


# ---- what a sandbox can try --------------------------------------------------------------------

@test("what says who asks, or has a query, goes to the server; Range and forwarding fields change nothing")
def _(api):
    path = shop.pip("private", "text")
    body = shop.pages[("files.test", path)].body
    box = box_for(api.client)
    get_index(box, "private")
    box.good(curl(path, more="-o /dev/null"))
    shop.forget()
    for more in ("-H 'Authorization: Basic eDp5'", "-H 'Cookie: a=b'", "-u x:y"):
        box.good(curl(path, more=more + " -o /dev/null"))
    box.run(curl(path + "?x=1"))
    box.run(curl(path, more="-X POST -d x"))
    seen = shop.asked(path) + shop.asked(path + "?x=1")
    same(len(seen), 5, f"requests that went to the server: {seen}")
    shop.forget()
    for more in ("-H 'Range: bytes=0-9'", "-H 'X-Forwarded-Host: evil.test'", "-H 'X-Original-URL: /f/other'", "-H 'Accept-Encoding: gzip'",
                 "-H 'Cache-Control: no-cache'", "--http1.1"):
        box.good(curl(path, more=more) + " | sha256sum", shops.sha256(body))
    box.good(curl(path.replace("private", "%70rivate")) + " | sha256sum", shops.sha256(body))
    answer, _ = box.run(curl(path, more="-H 'Host: evil.test'"))
    check(answer["exit_code"] != 0, "another Host")
    same(shop.seen, [], "what the server saw")
    head, _ = box.good(curl(path, more="-I"), str(len(body)))
    check("caisson-cache" not in head["stdout"].lower(), head["stdout"])


@test("an index has a say only for those whose rules name it: another one cannot poison a file, nor keep it away")
def _(api):
    path = shop.pip("victim", "genuine")
    bad = shops.Page(f'<a href="https://files.test{path}#sha256={"0" * 64}">x</a>'.encode(), "text/html")
    shop.pages[("evil.test", "/simple/victim/")] = bad
    evil = box_for(api.client, hosts=["evil.test", "files.test"])
    evil.good(curl("/simple/victim/", "evil.test"))
    evil.bad(curl(path, more="-o /dev/null"), 5)
    box = box_for(api.client)
    box.good(pip("victim"), "genuine")
    same(words(box, 2), ["miss", "miss"], box.shown())
    lone = box_for(api.client, hosts=["files.test"])
    lone.good(curl(path, more="-o /dev/null"))
    same(words(lone), ["pass"], "a file without an index")


@test("an index that came by plain HTTP has no say for a file that comes by TLS")
def _(api):
    path = shop.pip("wired", "genuine")
    good = shop.pages[("pkg.test", "/simple/wired/")]
    bad = shops.Page(f'<a href="https://files.test{path}#sha256={"0" * 64}">x</a>'.encode(), "text/html")
    shop.pages[("pkg.test", "/simple/wired/")] = bad
    box = box_for(api.client)
    box.good("curl -sS --fail http://pkg.test/simple/wired/", "0" * 64)  # somebody on the wire could have said that
    box.good(curl(path) + " | sha256sum", shops.sha256(shop.pages[("files.test", path)].body))
    get_index(box, "wired")
    box.bad(curl(path, more="-o /dev/null"), 5)  # the control: the same by TLS counts
    shop.pages[("pkg.test", "/simple/wired/")] = good
    box.good(pip("wired"), "genuine")


@test("what came from a private address is shown only to those who may dial it")
def _(api):
    inner = shops.Shop(servers.INNER)
    body = b"inner secret"
    inner.pages[("inner.test", "/simple/s/")] = shops.Page(f'<a href="/f/s.whl#sha256={shops.sha256(body)}">s</a>'.encode(), "text/html")
    inner.pages[("inner.test", "/f/s.whl")] = shops.Page(body)
    try:
        box = box_for(api.client, hosts=["inner.test"], cidr=[f"{servers.INNER}/32"])
        for _ in range(2):
            box.good(curl("/simple/s/", "inner.test"))
            box.good(curl("/f/s.whl", "inner.test"), body.decode())
        check("hit" in words(box, 4), box.shown)
        for net in ({}, {"offline": True}):
            other = box_for(api.client, hosts=["inner.test"], **net)
            for target in ("/simple/s/", "/f/s.whl"):
                other.bad(curl(target, "inner.test"), 5)
    finally:
        inner.close()


@test("offline: only what is cached, at once, with a record; nothing is asked outside")
def _(api):
    shop.pip("there", "text")
    box_for(api.client).good(pip("there"), "text")
    shop.forget()
    place.names.asked.clear()
    box = Box(api.client, {"allow": [*HOSTS, "web.test"], "cache": [f"pip:{h}" for h in HOSTS], "cidr": ["127.0.0.0/8"], "offline": True}, env=PLAIN)
    box.bad("curl -sS --fail http://web.test/hello.txt", 2)
    box.bad(f"curl -sS --fail http://{servers.WEB}/hello.txt", 2)
    for command in (curl("/simple/absent/", "pkg.test"), curl("/f/absent.whl"), curl("/f/there-1.0-py3-none-any.whl?x"),
                    curl("/simple/there/", "pkg.test", "-d x"), curl("/simple/there/", "pkg.test", "-u a:b")):
        box.bad(command, 2)
    text, _ = box.run("curl -sS https://pkg.test/simple/absent/")
    check("not in the package cache" in text["stdout"], text["stdout"])
    box.good(pip("there"), "text")
    same((shop.seen, [a for a in place.names.asked if a[0].endswith(".test")]), ([], []), "what was asked outside")
    box.records_of(4, lambda r: r["decision"] == "deny" and r["reason"] == "offline")
    check("absent" in words(box, 8), box.shown)
    answer = api.client.post("/v1/sandboxes", {"net": {"allow": ["web.test"], "offline": True}})
    check(answer.status == 400 and "cached" in answer.json["detail"], answer)


# ---- its own life ------------------------------------------------------------------------------

@test("its own id, no rights, a filter; nobody else reads its folder")
def _(api):
    shop.pip("who", "text")
    box_for(api.client).good(pip("who"), "text")
    folder = api.daemon.home / "state/cache"
    status = lib.census.read(f"/proc/{pid_of(api.daemon)}/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    same((fields["Uid"].split()[0], fields["NoNewPrivs"], fields["Seccomp"], fields["CapEff"], fields["Groups"].strip()),
         (str(SERVICE_ID + 2), "1", "2", "0" * 16, ""), "rights")
    for path in [folder, *folder.rglob("*")]:
        st = path.stat()
        same((st.st_uid, st.st_mode & 0o077), (SERVICE_ID + 2, 0), path)
    user = place.daemon_of(api, "user")
    check(lib.census.read(f"/proc/{pid_of(user) or 0}/status") is not None, "the user's")


@test("killed at work: the client fails or is served, nothing half is left, and the next one finds what was there")
def _(api):
    path = shop.pip("slowly", "text", extra=os.urandom(300000))
    shop.pip("before", "kept")
    page = shop.pages[("files.test", path)]
    box = box_for(api.client)
    box.good(pip("before"), "kept")
    get_index(box, "slowly")
    page.slow = (5000, 0.2)
    process = api.client.execute(box.sandbox, curl(path) + " | sha256sum", wait="0s")
    folder = api.daemon.home / "state/cache/blobs"
    wait_until(lambda: list(folder.glob("tmp.*")), 5, "a file on its way")
    os.kill(pid_of(api.daemon), signal.SIGKILL)
    place.wait_end(api.client, process)
    page.slow = None
    box.good(curl(path) + " | sha256sum", shops.sha256(page.body))
    box.good(pip("before").replace("/work/p", "/work/q"), "kept")
    check("hit" in words(box, 6), box.shown)
    wait_until(lambda: not list(folder.glob("tmp.*")), what="nothing half is left")


@test("verify finds a bit that was flipped, in a file and in an index; gc makes room; ls says what there is")
def _(api):
    client = api.client
    client.ok("POST", "/v1/cache/gc", {"max": 0})
    same(entries(client), [], "after gc")
    for name in ("one", "two"):
        shop.pip(name, "text", extra=os.urandom(50000))
        box_for(client).good(pip(name), "text")
    rows = entries(client)
    same(sorted((e["kind"], e["type"]) for e in rows), [("pip", "file")] * 2 + [("pip", "index")] * 2, rows)
    same(client.ok("POST", "/v1/cache/verify", {}), {"checked": 4, "bad": []}, "whole")
    folder = api.daemon.home / "state/cache"
    for name in ("blobs", "meta"):
        file = sorted((folder / name).iterdir())[0]
        data = bytearray(file.read_bytes())
        data[3] ^= 4
        with open(file, "r+b") as out:
            out.write(data)
    verified = client.ok("POST", "/v1/cache/verify", {})
    same((verified["checked"], sorted(b["type"] for b in verified["bad"])), (4, ["file", "index"]), verified)
    same(len(entries(client)), 2, "left")
    same(client.ok("POST", "/v1/cache/gc", {"older_than": "1h"})["removed"], 0, "nothing is that old")
    done = client.ok("POST", "/v1/cache/gc", {"max": "1k"})
    same((done["removed"], done["bytes"], done["count"]), (2, 0, 0), done)
    same([p.name for p in folder.rglob("*") if p.is_file()], [], "files")
    same(client.post("/v1/cache/gc", {}).status, 400, "gc of nothing in particular")


@test("caisson cache ls, gc, verify; pages of the list")
def _(api):
    client = api.client
    for name in ("red", "green"):
        shop.pip(name, "text")
        box_for(client).good(pip(name), "text")
    first = client.ok("GET", "/v1/cache?limit=1")
    rest = client.ok("GET", f"/v1/cache?limit=1000&cursor={first['next']}")
    same((len(first["entries"]), len(rest["entries"]), rest["next"]), (1, first["count"] - 1, None), "pages")

    def caisson(*words_, status=0):
        return place.caisson(api.daemon, "cache", *words_, status=status).stdout
    check("https://pkg.test/simple/red/" in caisson("ls"), "ls")
    check(json.loads(caisson("ls", "--json"))["entries"], "ls --json")
    check(caisson("verify").endswith(", bad 0\n"), "verify")
    check("removed" in caisson("gc", "--max", "1k"), "gc")
    caisson("gc", status=125)


@test("it stays within its size: the least recently used goes first")
def _(api):
    daemon = lib.Daemon("small", options=(*place.OPTIONS, "--net", "cache=64m")).start()
    try:
        client = daemon.client()
        names = [f"big{i}" for i in range(4)]
        for name in names:
            shop.pip(name, "text", extra=os.urandom(20 << 20))
            box = box_for(client)
            get_index(box, name)
            box.good(curl(f"/f/{name}-1.0-py3-none-any.whl", more="-o /dev/null"))
        client.ok("GET", "/v1/cache")
        have = {e["url"] for e in entries(client) if e["type"] == "file"}
        check(not [u for u in have if "big0" in u] and [u for u in have if "big3" in u], have)
        check(client.ok("GET", "/v1/cache")["bytes"] <= 64 << 20, "too much")
        shop.pip("giant", "text", extra=os.urandom(40 << 20))
        box = box_for(client)
        get_index(box, "giant")
        box.good(curl("/f/giant-1.0-py3-none-any.whl", more="-o /dev/null"))
        same(words(box, 2), ["miss", "pass"], "one that is too large for it")
    finally:
        daemon.client().remove_all()
        daemon.stop()


@test("net.cache: off: presets are hosts like others, and nothing ends at the gate")
def _(api):
    daemon = lib.Daemon("off", options=(*place.OPTIONS, "--net", "cache=off", "--net", "presets.pip=pkg.test,files.test")).start()
    try:
        client = daemon.client()
        shop.pip("plain", "text")
        box = Box(client, {"allow": ["preset:pip"]})
        box.good(pip("plain"), "text")
        same(box.records(lambda r: r["kind"] == "request", 0), [], "requests that were read")
        same(client.get("/v1/cache").status, 409, "list")
        same(client.post("/v1/sandboxes", {"net": {"allow": ["preset:pip"], "offline": True}}).status, 400, "offline")
    finally:
        daemon.client().remove_all()
        daemon.stop()


@test("preset:pip of the daemon's config is cached by itself")
def _(api):
    daemon = lib.Daemon("preset", options=(*place.OPTIONS, "--net", "presets.pip=pkg.test,files.test")).start()
    try:
        client = daemon.client()
        shop.pip("preset", "text")
        for expected in (["miss", "miss"], ["revalidated", "hit"]):
            box = Box(client, {"allow": ["preset:pip"]}, env=PLAIN)
            box.good(pip("preset"), "text")
            same(words(box, 2), expected, box.shown())
    finally:
        daemon.client().remove_all()
        daemon.stop()


if __name__ == "__main__":
    sys.exit(place.main(__file__, begin=prepare))
