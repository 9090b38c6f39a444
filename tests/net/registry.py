#!/usr/bin/env python3
"""The host's own registry: a small package is installed inside by a rule for just the hosts that the host's
own client is configured to use, whichever these are. TAP.

    tests/net/registry.py    needs root, and a network
"""
import contextlib
import ipaddress
import json
import os
import pathlib
import socket
import subprocess
import sys

import place  # before lib, whose folder it knows
import lib
from lib import check, test
from place import need

RESOLV = pathlib.Path("/etc/resolv.conf").read_text()  # may be a link into /run, which the cell has its own of
SECONDS = 60


def prepare():
    target = pathlib.Path("/etc/resolv.conf").resolve()
    if not target.exists():
        target.parent.mkdir(parents=True)
        target.write_text(RESOLV)
    return lambda: None


def environment(daemon=None):
    """As a person has it, who has configured pip and npm by files or by variables."""
    return {**os.environ, "PATH": place.PATH, **({"CAISSON_SOCKET": str(daemon.socket)} if daemon else {})}


def grants(preset):
    """Where the registry is a mirror inside, at a special address, an operator lets names lead there."""
    shown = run([lib.cell.BIN / "caisson", "policy", "show", "--resolved", "--json", "--net", f"preset:{preset}"], environment())
    check(shown.returncode == 0, shown)
    found = set()
    for host in json.loads(shown.stdout)["net"]["allow"]:
        with contextlib.suppress(OSError):
            found |= {entry[4][0] for entry in socket.getaddrinfo(host.partition(":")[0], 443, type=socket.SOCK_STREAM)}
    inner = [str(ipaddress.ip_network(a)) for a in found if not ipaddress.ip_address(a).is_global]
    return ("--net", f"grant={','.join(inner)}") if inner else ()


def run(words, env):
    return subprocess.run([str(w) for w in words], env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=2 * SECONDS, check=False)


def installed(preset, try_outside, variables, command, prints):
    """By `preset:NAME` it works, and with no rule it fails at once."""
    outside = run(try_outside, environment())
    if outside.returncode != 0:
        raise lib.Skip(f"the host's own {preset} reaches no registry")
    daemon = lib.Daemon(preset, options=grants(preset)).start()
    env = environment(daemon)
    flags = [flag for name, words in variables.items() if (value := run(words, env).stdout.strip().splitlines()[-1:])
             and value[0] not in ("", "undefined", "null") for flag in ("-e", f"{name}={value[0]}")]
    caisson = lib.cell.BIN / "caisson"
    inside = run([caisson, "run", "--net", f"preset:{preset}", "--timeout", f"{SECONDS}s", *flags, "--", "sh", "-c", command], env)
    check(inside.returncode == 0 and prints in inside.stdout, lambda: f"{flags} {inside}")
    denied = run([caisson, "run", "--net", "allow:unused.example.org", "--timeout", "30s", *flags, "--", "sh", "-c", command], env)
    check(denied.returncode not in (0, 124), lambda: f"{flags} {denied}")
    daemon.stop()


@test("pip: a small package, by the registry of this host's pip", own=True)
def _(_api):
    need("pip3")
    pip = "/usr/bin/python3 -m pip"
    installed("pip", [*pip.split(), "download", "-q", "--no-deps", "-d", "/run/api/six", "six"],
              {"PIP_INDEX_URL": [*pip.split(), "config", "get", "global.index-url"]},
              f"{pip} install -q --no-cache-dir --retries 0 --target /work/p six && PYTHONPATH=/work/p python3 -c 'import six; print(six.__name__)'",
              "six")


@test("npm: a small package, by the registry of this host's npm", own=True, when=place.HAS_MORE)
def _(_api):
    need("npm")
    installed("npm", ["npm", "view", "--fetch-retries", "0", "isarray", "name"], {"npm_config_registry": ["npm", "config", "get", "registry"]},
              "cd /work && HOME=/work npm install --silent --no-audit --no-fund --fetch-retries 0 isarray "
              "&& node -e 'console.log(typeof require(\"isarray\"))'", "function")


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=prepare, shares=("--net",)))
