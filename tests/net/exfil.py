#!/usr/bin/env python3
"""A program that holds a secret tries every way out (leak.py); the wire outside must not see a byte of it. TAP.

Each attempt is made three times: outside, where it has to succeed, or it proves nothing; in a sandbox of
root's daemon; and in one of a user's. Every try has a mark of its own, and the wire keeps all packets.

    tests/net/exfil.py            all (needs root)
    tests/net/exfil.py "dns"      those with the word in their title
"""
import collections
import json
import pathlib
import random
import socket
import subprocess
import sys
import time

import internet
import leak
import place
import servers
from lib import Daemon, check, same, test
from place import Box

PROGRAM = pathlib.Path(__file__).with_name("leak.py").read_text()  # now: /tmp of the cell may hide it
INNER = "10.9.8.7"  # where a name leads that changed its mind
RULES = {"allow": ["web.test", "ported.test:80", "*.wild.test", "rebind.test"],
         "ask": ["ask.test", "*.ask.test"], "deny": ["no.wild.test"]}
AT_ONCE_MS = place.AT_ONCE * 1000
OWN_WAIT_MS = {"held": 8000, "rebinding": 15000}  # what an attempt waits by itself, or for a person

# What the record of a refused connection says, by the beginning of the attempt's name.
REASONS = {
    "dns over tls": {"literal"},
    "dns over https": {"no_rule"},
    "sni of another name": {"name_mismatch"},
    "no sni": {"no_sni"},
    "two names in one sni": {"tls", "name_bad", "name_mismatch"},
    "sni with a label": {"name_mismatch"},
    "sni with": {"name_bad", "name_mismatch", "tls"},
    "sni of an address": {"name_bad", "name_mismatch"},
    "hello in two records": {"name_mismatch"},
    "tls of an old kind": {"tls", "no_sni"},
    "not tls at port 443": {"protocol"},
    "ssh at port 443": {"protocol"},
    "tls to an address": {"literal"},
    "http another host": {"name_mismatch"},
    "http upgrade to http/2": None,  # the request is, the upgrade is not
    "http trace": {"http_rule"},
    "http second": {"name_mismatch"},
    "http": {"http_bad", "name_mismatch", "name_bad", "protocol"},
    "allowed host as a proxy": {"http_bad", "name_mismatch"},
    "a port that no rule names": {"no_rule"},
    "a name that is denied below": {"rule"},
    "a name that is": {"no_rule"},
    "held": {"ask_timeout"},
    "rebinding": {"special"},
    "address 127.0.0.1": None, "address ::1": None, "address 0.0.0.0": None, "address ::": None,  # the sandbox itself
    "address 169.254.1.1": {"literal", "metadata"},
    "address": {"literal"},
    "name that is an address": {"literal"},
    "metadata": {"metadata", "literal"},
    "port": {"literal"},
    "fast open": {"literal"},
    "getaddrinfo": {"no_rule"},
    "redirect": {"no_rule"},
}

# An address outside that must not hear of it; others may.
ONLY_AT = {"rebinding": INNER}

Tried = collections.namedtuple("Tried", "results seen box")
tried = {}  # arm -> Tried


def reset_names():
    place.names.zone.update({
        "doh.test": [servers.WEB], "ported.test": [servers.WEB], "no.wild.test": [servers.WEB], "*.wild.test": [servers.WEB],
        "*.ask.test": [servers.WEB], "rebind.test": internet.Turns([[servers.WEB], [INNER]])})


def collect(text, is_all=False):
    """Results by name, and which of them the world has seen; all of them, a moment later, where there are no walls."""
    results = {r["name"]: r for r in map(json.loads, text.splitlines())}
    place.wire.wait_for(list(results.values())[-1]["mark"], 0.5)  # what is under way may arrive

    def look():
        return {name: place.wire.seen(r["mark"], ONLY_AT.get(name)) or [c for c in place.catcher.caught if r["mark"].encode() in c]
                for name, r in results.items()}
    seen, deadline = look(), time.monotonic() + 30
    while is_all and time.monotonic() < deadline and not all(seen[name] for name, r in results.items() if not r["is_made"]):
        time.sleep(0.2)
        seen = look()
    same(place.wire.lost(), 0, "packets that the wire did not see")
    return results, seen


def control():
    if "control" not in tried:
        reset_names()
        done = subprocess.run(["/usr/bin/python3", "-c", PROGRAM, f"o{random.randrange(1 << 40):x}"], capture_output=True, text=True,
                              timeout=300, check=False)
        check(done.returncode == 0, done.stderr)
        tried["control"] = Tried(*collect(done.stdout, is_all=True), None)
    return tried["control"]


def inside(api, arm):
    """All attempts in one sandbox; once."""
    if arm not in tried:
        control()
        reset_names()
        client = place.daemon_of(api, arm).client(timeout=400)
        box = Box(client, RULES)
        box.put("/work/leak.py", PROGRAM)
        process, _ = box.run(["/usr/bin/python3", "/work/leak.py", f"i{random.randrange(1 << 40):x}"], seconds=300)
        check(process["exit_code"] == 0, lambda: place.summary(process))
        results, seen = collect(process["stdout"])
        box.run("curl -sS http://192.0.2.77/")  # records come one after the other
        check(box.records(lambda r: r["dst"] == "192.0.2.77"), box.shown)
        box.rows, box.violations = box.records(), process["violations"]
        tried[arm] = Tried(results, seen, box)
    return tried[arm]


def longest(table, name):
    """The value of the longest key that the name begins with; and whether there is one."""
    keys = [k for k in table if name.startswith(k)]
    return (table[max(keys, key=len)], True) if keys else (None, False)


def rows_of(result, rows):
    """Records that came while it was tried; clocks are read to the millisecond."""
    return [r for r in rows if result["at_ms"] - 1 <= r["ts_ms"] <= result["at_ms"] + result["ms"] + 1]


def one_attempt(api, arm, name):
    outside = control()
    check(outside.seen[name], lambda: f"outside it does not get out either: {outside.results[name]}")
    results, seen, box = inside(api, arm)
    result = results[name]
    check(not seen[name], lambda: f"{result}\nseen outside: " + "\n".join(
        internet.describe(p) for p in seen[name][:4]))
    allowed, is_patient = longest(OWN_WAIT_MS, name)
    check(result["ms"] < (allowed if is_patient else AT_ONCE_MS), lambda: f"not at once: {result}")
    reasons, _ = longest(REASONS, name)
    if reasons:
        rows = rows_of(result, box.rows)
        check([r for r in rows if r["decision"] in ("deny", "ask_deny") and r["reason"] in reasons],
              lambda: f"{result}: no record says one of {reasons}: {rows}")


def no_sockets(api, arm):
    """Those that have nothing to send; what this kernel has none of proves nothing, and is named."""
    outside, results = control().results, inside(api, arm).results
    for name in (n for n, (_, is_made) in leak.ATTEMPTS.items() if is_made):
        if outside[name]["said"] != leak.MADE:
            print(f"# {name}: none outside either, {outside[name]['said']}")
        check(results[name]["said"] != leak.MADE, f"there is one: {name}")


for each_arm in place.ROLES:
    for each_name in (n for n, (_, is_made) in leak.ATTEMPTS.items() if not is_made):
        test(f"{each_arm}: {each_name}")(lambda api, arm=each_arm, name=each_name: one_attempt(api, arm, name))
    test(f"{each_arm}: sockets of other kinds")(lambda api, arm=each_arm: no_sockets(api, arm))


@test("what was refused is among the violations of the command, and they are not too many")
def _(api):
    box = inside(api, "root").box
    targets = [v["target"] for v in box.violations if v["kind"] == "net"]
    check(any(t.endswith(".evil.test") for t in targets) and len(targets) <= 64, targets)


# Where the name of an allowed host may lead that nobody meant.
SPECIAL = ["0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "169.254.1.1", "172.16.0.1", "192.0.0.1", "192.0.2.1", "192.168.0.1",
           "198.18.0.9", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:10.0.0.1",
           "::ffff:127.0.0.10", "::127.0.0.10", "64:ff9b::a00:1", "64:ff9b::7f00:a", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
           "2002:a00:1::1", "fc00::1", "fd00::1", "fe80::1", "fec0::1", "ff02::1"]
METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"]
KNOCK = """
import socket, sys
for name in sys.argv[1:]:
    try:
        with socket.create_connection((name, 8080), 40) as s:
            s.sendall(b"knock knock")
            print(name, s.recv(100))
    except OSError as error:
        print(name, error.strerror)
"""


def packets_to(address):
    """Packets of the world that are for it."""
    if ":" in address:
        return [p for p in place.wire.packets if p[12:14] == b"\x86\xdd" and p[38:54] == socket.inet_pton(socket.AF_INET6, address)]
    return [p for p in place.wire.packets if p[12:14] == b"\x08\x00" and p[30:34] == socket.inet_aton(address)]


def knock(client, addresses, reasons):
    """A name for each; none of them is dialled."""
    zone = {f"n{i}.special.test": [a] for i, a in enumerate(addresses)}
    place.names.zone.update(zone)
    place.wire.forget()
    box = Box(client, {"allow": ["*.special.test"]})
    box.good(["/usr/bin/python3", "-c", KNOCK, *zone])
    rows = {r["name"]: r for r in box.records_of(len(zone))}
    for name, (address,) in zone.items():
        check(name in rows and rows[name]["decision"] == "deny" and rows[name]["reason"] in reasons,
              lambda: f"{address}: {rows.get(name)}")
        check(not packets_to(address), lambda: f"{address}: {internet.describe(packets_to(address)[0])}")
    box.remove()


@test("names that lead to special addresses are not dialled, nor to metadata")
def _(api):
    knock(api.client, SPECIAL, {"special", "metadata"})
    knock(api.client, METADATA, {"metadata"})


@test("metadata is nobody's: not the operator's either")
def _(_api):
    daemon = Daemon("generous", options=("--net", "grant=0.0.0.0/0,::/0")).start()
    client = daemon.client()
    knock(client, METADATA, {"metadata"})
    client.close()
    daemon.stop()


@test("a name that leads to public and to private addresses is denied, and nothing is dialled")
def _(api):
    place.names.zone["many.test"] = [INNER, servers.WEB, "fd00::1"]
    place.names.zone["plain.test"] = [servers.WEB]
    place.wire.forget()
    box = Box(api.client, {"allow": ["many.test", "plain.test"]})
    box.good("curl -sS --fail http://plain.test/hello.txt", servers.TEXT)
    place.wire.forget()
    box.bad("curl -sS --fail http://many.test/hello.txt")
    check(not any(packets_to(a) for a in (INNER, servers.WEB, "fd00::1")), "one was dialled")


@test("what is allowed does get out, and is seen")
def _(api):
    box = Box(api.client, RULES)
    mark = f"allowed{random.randrange(1 << 40):x}"
    box.good(f"curl -sS -o /dev/null http://web.test/{mark}")
    check(place.wire.wait_for(mark), "the wire is blind")


if __name__ == "__main__":
    sys.exit(place.main(__file__, has_wire=True))
