#!/usr/bin/env python3
"""Clients of E2B and the network: a secret that a header rule names is said by the gate where it is bound, and is nowhere inside. TAP.

    tests/net/e2b.py          (needs root)
"""
import json
import sys

import place  # before lib, whose folder it knows
import lib
import servers
from door import door
from lib import check, same, test

VALUE = "a value that nobody inside has"
REST = r"""
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        data = json.dumps({k.lower(): v for k, v in self.headers.items()}).encode()
        open(sys.argv[3], "ab").write(data + b"\n")
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def said_file():
    return servers.FOLDER / "e2b.said"


def begin():
    servers.FOLDER.mkdir(parents=True, exist_ok=True)
    (servers.FOLDER / "forge.users").touch()  # nginx wants it
    finish = place.prepare()
    rest = servers.Server("rest", ["/usr/bin/python3", "-c", REST, servers.WEB, "8200", said_file()], (servers.WEB, 8200))
    lib.SURROUNDINGS.append(rest.process.pid)

    def end():
        rest.stop()
        finish()
    return end


@test("a header rule with a secret: the server gets the value, what is inside does not, and only where it is bound", own=True)
def _(_api):
    with door("rules", *map(str, place.OPTIONS)) as d:
        d.ok("POST", "/secrets", {"name": "key", "value": VALUE, "metadata": {"hosts": "api.test", "inject": "header:X-Api-Key", "format": "Key {}"}}, status=201)
        rules = {"api.test": [{"transform": {"headers": {"X-Api-Key": "Key ${e2b.secrets.key}", "X-Client": "plain"}}}]}
        s = d.create(allow_internet_access=True, network={"rules": rules})
        for host in ("api.test", "echo.test"):
            out, end = s.run(f"curl -sS {'-k' if host == 'echo.test' else ''} --max-time 60 https://{host}/{host}")
            same((out, end["exitCode"]), ("ok\n", 0), f"{host}: {d.daemon.tail()}")
        first, second = [json.loads(line) for line in said_file().read_text().splitlines()]
        same((first["x-api-key"], first["x-client"]), (f"Key {VALUE}", "plain"), "where it is bound")
        check("x-api-key" not in second and "x-client" not in second, second)
        seen = s.run("env; grep -rs nobody.inside.has /proc/*/environ /home /tmp /run /etc | head -c 100")[0]
        check(VALUE not in seen, seen)
        d.ok("DELETE", "/secrets/key", status=204)
        s.run("curl -sS --max-time 60 https://api.test/after")
        check(VALUE not in "".join(said_file().read_text().splitlines()[2:]), "one that is deleted is said no more")


if __name__ == "__main__":
    sys.exit(place.main(__file__, begin=begin))
