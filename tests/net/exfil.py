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
import subprocess
import sys

import internet
import leak
import place
import servers
from lib import USER_ID, Daemon, Skip, check, same, test
from place import Box

PROGRAM = pathlib.Path(__file__).with_name("leak.py")
INNER = "10.9.8.7"  # where a name leads that changed its mind
RULES = {"allow": ["web.test", "ported.test:80", "*.wild.test", "rebind.test"],
         "ask": ["ask.test", "*.ask.test"], "deny": ["no.wild.test"]}
AT_ONCE_MS = 1000
OWN_WAIT_MS = {"held": 3500, "rebinding": 1500}  # what an attempt waits by itself, or for a person

# What the record of a refused connection says, by the beginning of the attempt's name.
REASONS = {
    "dns over tls": {"literal"},
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
    "http connect to itself": {"http_bad"},
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
    "multipath tcp": {"literal"},
    "getaddrinfo": {"no_rule"},
    "redirect": {"no_rule"},
}

Tried = collections.namedtuple("Tried", "results seen box")
tried = {}  # arm -> Tried


def reset_names():
    place.names.zone.update({
        "ported.test": [servers.WEB], "no.wild.test": [servers.WEB], "*.wild.test": [servers.WEB],
        "*.ask.test": [servers.WEB], "rebind.test": internet.Turns([[servers.WEB], [INNER]])})


def collect(text):
    """Results by name, and which of them the world has seen."""
    results = {r["name"]: r for r in map(json.loads, text.splitlines())}
    place.wire.wait_for(list(results.values())[-1]["mark"], 0.5)  # what is under way may arrive
    seen = {name: place.wire.seen(r["mark"]) or [c for c in place.catcher.caught if r["mark"].encode() in c]
            for name, r in results.items()}
    same(place.wire.lost(), 0, "packets that the wire did not see")
    return results, seen


def control():
    if "control" not in tried:
        reset_names()
        done = subprocess.run(["/usr/bin/python3", PROGRAM, f"o{random.randrange(1 << 40):x}"], capture_output=True, text=True,
                              timeout=120, check=False)
        check(done.returncode == 0, done.stderr)
        tried["control"] = Tried(*collect(done.stdout), None)
    return tried["control"]


def inside(api, arm):
    """All attempts in one sandbox; once."""
    if arm not in tried:
        control()
        reset_names()
        daemon = api.daemon if arm == "root" else Daemon("user", uid=USER_ID, options=place.OPTIONS).start()
        client = daemon.client(timeout=200)
        box = Box(client, RULES)
        box.put("/work/leak.py", PROGRAM.read_bytes())
        process, _ = box.run(["/usr/bin/python3", "/work/leak.py", f"i{random.randrange(1 << 40):x}"], seconds=120)
        check(process["exit_code"] == 0, lambda: place.summary(process))
        results, seen = collect(process["stdout"])
        box.rows, box.violations = box.records(), process["violations"]
        tried[arm] = Tried(results, seen, box)
        if arm != "root":
            client.remove_all()
            client.close()
            daemon.stop()
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
    if leak.ATTEMPTS[name][1]:
        if outside.results[name]["said"] != leak.MADE:
            raise Skip(f"this kernel has none: {outside.results[name]['said']}")
    else:
        check(outside.seen[name], lambda: f"outside it does not get out either: {outside.results[name]}")
    _, seen, box = inside(api, arm)
    result = tried[arm].results[name]
    check(not seen[name], lambda: f"{result}\nseen outside: " + "\n".join(
        internet.describe(p) for p in seen[name][:4]))
    check(result["said"] != leak.MADE, "there is such a socket")
    allowed, is_patient = longest(OWN_WAIT_MS, name)
    check(result["ms"] < (allowed if is_patient else AT_ONCE_MS), lambda: f"not at once: {result}")
    reasons, _ = longest(REASONS, name)
    if reasons:
        rows = rows_of(result, box.rows)
        check([r for r in rows if r["decision"] in ("deny", "ask_deny") and r["reason"] in reasons],
              lambda: f"{result}: no record says one of {reasons}: {rows}")


for each_arm in ("root", "user"):
    for each_name in leak.ATTEMPTS:
        test(f"{each_arm}: {each_name}")(lambda api, arm=each_arm, name=each_name: one_attempt(api, arm, name))


@test("what is allowed does get out, and is seen")
def _(api):
    box = Box(api.client, RULES)
    mark = f"allowed{random.randrange(1 << 40):x}"
    box.good(f"curl -sS -o /dev/null http://web.test/{mark}")
    check(place.wire.wait_for(mark), "the wire is blind")


if __name__ == "__main__":
    sys.exit(place.main(__file__, has_wire=True))
