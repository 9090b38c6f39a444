#!/usr/bin/env python3
"""The network of a sandbox as its users have it: the commands, both roles, bulk, lives of a sandbox, and
records against what the server has seen. TAP.

    tests/net/system.py           all (needs root)
    tests/net/system.py records   those with the word in their title
"""
import collections
import json
import re
import subprocess
import sys
import time

import place  # before lib, whose folder it knows
import lib
import servers
from lib import check, same, test, wait_until
from place import Box, caisson

BIG = 64 << 20  # of servers.make_files


@test("caisson run: what is allowed works, what is not is in the result, with the rule to add")
def _(api):
    for daemon in (place.daemon_of(api, role) for role in place.ROLES):
        web = caisson(daemon, "run", "--net", "allow:web.test", "--", "curl", "-sS", "http://web.test/hello.txt")
        same(web.stdout, servers.TEXT, "curl")
        begin = time.monotonic()
        no = caisson(daemon, "run", "--json", "--net", "allow:web.test", "--", "curl", "-sS", "http://denied.test/", status=6)
        check(time.monotonic() - begin < place.AT_ONCE, "not at once")
        check([v for v in json.loads(no.stdout)["violations"] if v["target"].startswith("denied.test") and v["reason"] == "no_rule"],
              no.stdout)
        deny = caisson(daemon, "run", "--", "curl", "-sS", "http://web.test/", status=6)
        check("resolve" in deny.stderr, deny.stderr)


@test("create, exec, net, why, policy set, net again: as a person would")
def _(api):
    for daemon in (place.daemon_of(api, role) for role in place.ROLES):
        box = caisson(daemon, "create", "--net", "allow:web.test").stdout.strip()
        caisson(daemon, "exec", box, "--", "curl", "-sS", "--fail", "http://web.test/hello.txt")
        caisson(daemon, "exec", box, "--", "curl", "-sS", "http://other.test/hello.txt", status=6)
        rows = wait_until(lambda: [json.loads(line) for line in caisson(daemon, "net", box, "--denied", "--json").stdout.splitlines()],  # pylint: disable=cell-var-from-loop
                          3, "records")
        same([(r["name"], r["decision"], r["reason"]) for r in rows], [("other.test", "deny", "no_rule")], "caisson net")
        why = json.loads(caisson(daemon, "why", box, "other.test:80", "--json", status=1).stdout)
        same((why["decision"], why["reason"]), ("deny", "no_rule"), "why")
        list_, _, host = why["would_allow"].partition(": ")
        same(list_, "allow", "would_allow")
        caisson(daemon, "policy", "set", box, "--allow", host)
        caisson(daemon, "why", box, "other.test:80")
        same(caisson(daemon, "exec", box, "--", "curl", "-sS", "http://other.test/hello.txt").stdout, servers.TEXT, "after the change")
        caisson(daemon, "exec", box, "--", "curl", "-sSk", "https://other.test/", status=(7, 35))  # the rule is for port 80
        text = caisson(daemon, "net", box).stdout
        check("other.test" in text and "web.test" in text, text)
        caisson(daemon, "rm", box)


@test("bulk: 64 MiB down and up, whole, by TLS and plain; bytes are on record")
def _(api):
    digest = subprocess.run(["sha256sum", servers.FOLDER / "www/big"], capture_output=True, text=True, check=True).stdout.split()[0]
    box = Box(api.client, {"allow": ["web.test"]})
    for scheme in ("http", "https"):
        box.good(f"curl -sS --fail {scheme}://web.test/big | sha256sum", digest)
        box.good(f"head -c {BIG} /dev/zero | curl -sS --fail -T - {scheme}://web.test/sink", "web.test")
    rows = box.records_of(4)
    wait_until(lambda: all(r["close"] != "open" for r in box.records_of(4)), 3, "the ends")
    rows = box.records_of(4)
    for column, n in (("bytes_down", 2), ("bytes_up", 2)):
        same(len([r for r in rows if BIG <= r[column] < BIG * 1.05]), n, f"{column}: {[r[column] for r in rows]}")


MANY = """
import socket, sys
for i in range(int(sys.argv[1])):
    with socket.create_connection(("web.test", 80), 40) as s:
        s.sendall(f"GET /hello.txt?{sys.argv[2]}{i} HTTP/1.1\\r\\nHost: web.test\\r\\nConnection: close\\r\\n\\r\\n".encode())
        while s.recv(65536): pass
"""


@test("records: each connection of many clients at once is there once, with what the server saw")
def _(api):
    box = Box(api.client, {"allow": ["web.test"]})
    clients, each = 8, 50
    box.put("/work/many.py", MANY)
    box.good(" & ".join(f"/usr/bin/python3 /work/many.py {each} m{i}x" for i in range(clients)) + " & wait")
    rows = box.records_of(clients * each)
    wait_until(lambda: all(r["close"] != "open" for r in box.records_of(clients * each)), 5, "the ends")
    rows = box.records_of(clients * each)
    same(len(rows), clients * each, "records")
    same(collections.Counter(r["decision"] for r in rows), {"allow": clients * each}, "decisions")
    same(len({r["connection"] for r in rows}), clients * each, "numbers")
    same({(r["name"], r["real"], r["port"], r["proto"]) for r in rows}, {("web.test", servers.WEB, 80, "http")}, "who")
    log = (servers.FOLDER / "access.log").read_text()
    same(len(re.findall(r"\"GET /hello\.txt\?m\dx\d+ ", log)), clients * each, "requests that the server saw")


@test("net: allow is still through the gate: any name, any public address, all on record; special ones are not")
def _(api):
    box = Box(api.client, {"mode": "allow"})
    box.good("curl -sS --fail https://web.test/hello.txt", servers.TEXT)
    box.good("curl -sS --fail http://5.6.7.8:8080/", "caught")
    for url in ("http://10.1.2.3:8080/", "http://169.254.169.254/", "http://[fd00::1]:8080/", "http://[::ffff:10.1.2.3]:8080/"):
        box.bad(f"curl -gsS --fail {url}", 2)
    rows = box.records_of(6)
    same([(r["name"] or r["dst"], r["decision"], r["reason"]) for r in rows],
         [("web.test", "allow", None), ("5.6.7.8", "allow", None), ("10.1.2.3", "deny", "special"),
          ("169.254.169.254", "deny", "metadata"), ("fd00::1", "deny", "special"), ("10.1.2.3", "deny", "special")], "records")


LOCAL = """
import socket, threading
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "127.1.2.3")):
    server = socket.create_server((address, 0), family=family)
    threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"), daemon=True).start()
    with socket.create_connection(server.getsockname()[:2], 40) as s:
        assert s.recv(10) == b"hello"
print("fine")
"""


@test("localhost inside always works, whatever the rules, and is nobody's business")
def _(api):
    for net in ({"mode": "deny"}, {"allow": ["web.test"]}, {"mode": "allow"}):
        box = Box(api.client, net)
        box.good(["/usr/bin/python3", "-c", LOCAL], "fine")
        same(box.records(), [], f"records of {net}")


@test("net: deny has no resolver, no listener, no route: every way fails at once")
def _(api):
    box = Box(api.client, {"mode": "deny"})
    listening = box.good("cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | grep -v local_address || true")[0]["stdout"]
    same(listening, "", "sockets")
    for command in ("curl -sS http://web.test/", "curl -sS http://5.6.7.8/", "curl -gsS 'http://[2a05:1::8]/'"):
        box.bad(command, 2)


@test("a sandbox that was paused, stopped, replaced still has its network, and its rules")
def _(api):
    client = api.client
    box = Box(client, {"allow": ["web.test"]})

    def works():
        box.good("curl -sS --fail http://web.test/hello.txt", servers.TEXT)
        box.bad("curl -sS --fail http://denied.test/hello.txt", 2)
    works()
    for verbs in (("pause", "resume"), ("stop", "start"), ("replace",)):
        for verb in verbs:
            client.ok("POST", f"/v1/sandboxes/{box.id}/{verb}", {})
        works()


@test("two sandboxes: each its own rules, addresses and records")
def _(api):
    one, two = Box(api.client, {"allow": ["web.test"]}), Box(api.client, {"allow": ["other.test"]})
    # The first name of each has the same address.
    first = [b.good(f"getent hosts {n}")[0]["stdout"].split()[0] for b, n in ((one, "web.test"), (two, "other.test"))]
    same(first[0], first[1], "addresses")
    one.good("curl -sS --fail http://web.test/host", "web.test")
    two.good("curl -sS --fail http://other.test/host", "other.test")
    two.bad("curl -sS --fail http://web.test/host", 2)
    two.bad(f"curl -sS --fail -H 'Host: web.test' http://{first[0]}/host", 2)
    same({r["name"] for r in one.records_of(1)}, {"web.test"}, "records of the one")
    check("web.test" not in {r["name"] for r in two.records() if r["decision"] == "allow"}, two.shown)


@test("a child of the gate ends with its sandbox")
def _(api):
    def children():
        return [p for p in lib.census.pids() if (lib.stat_of(p) or ("",))[0].startswith("caisson-gate")]
    boxes = [Box(api.client, {"allow": ["web.test"]}) for _ in range(3)]
    for box in boxes:
        box.good("curl -sS --fail http://web.test/hello.txt")
    most = len(children())
    for box in boxes:
        box.remove()
    wait_until(lambda: len(children()) <= most - 3, 5, "children of the gate that end")


if __name__ == "__main__":
    sys.exit(place.main(__file__))
