#!/usr/bin/env python3
"""The package cache: real pip and npm in sandboxes, registries outside that can be stopped or lie. TAP.

    tests/net/cache.py          all (needs root)
    tests/net/cache.py offline  those with the word in their title
"""
import sys

import place  # before lib, whose folder it knows
import lib
import servers
from lib import check, same, test
from place import Box

PIP = "/usr/bin/python3 -m pip install -q --no-cache-dir --retries 0 --target /work/p --trusted-host index.test " \
      f"-i http://index.test/simple/ {servers.PACKAGE} && PYTHONPATH=/work/p python3 -c 'import {servers.PACKAGE} as p; print(p.TEXT)'"


def words(box):
    """What the cache did, request by request."""
    return [(r["path"], r["status"], r["cache"]) for r in box.records(lambda r: r["kind"] == "request")]


@test("pip: first it is fetched, then it comes from the cache")
def _(api):
    for expected in ("miss", "hit"):
        box = Box(api.client, {"allow": ["index.test"], "cache": ["pip:index.test"]})
        box.good(PIP, servers.TEXT)
        print("#", words(box))
    box = Box(api.client, {"allow": ["index.test"], "cache": ["pip:index.test"], "offline": True})
    box.good(PIP, servers.TEXT)
    print("#", words(box))
    print("#", api.client.ok("GET", "/v1/cache"))
    print("#", api.client.ok("POST", "/v1/cache/verify", {}))
    print("#", api.client.ok("POST", "/v1/cache/gc", {"max": 0}))


if __name__ == "__main__":
    sys.exit(place.main(__file__))
