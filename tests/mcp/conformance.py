#!/usr/bin/env python3
"""The protocol's own conformance suite, from its registry: the server scenarios that each revision requires. TAP.

    tests/mcp/conformance.py    needs root, node and npm, and a network the first time

The suite, and a node that is new enough for it, are kept in build/mcp-conformance; without a registry and without
them the tests are skipped. It brings no token, so a relay in front of the daemon's TCP port adds one, and says in the target that the fixtures are wanted.
"""
import os
import platform
import re
import select
import shutil
import socket
import subprocess
import sys
import threading

import agent  # first: it knows where lib is
import lib
from lib import Daemon, check, same, test

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson", "caissond-conformance")
KEPT = agent.ROOT / "build/mcp-conformance"
PACKAGE = KEPT / "node_modules/@modelcontextprotocol/conformance"
MORE = ["http-header-validation", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-request-headers"]
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "x64")
PACKAGES = ["@modelcontextprotocol/conformance@0.2.0-alpha.12", f"node-linux-{MACHINE}@22"]


# ---- outside ---------------------------------------------------------------------------------

def fetch():
    """Whole, or not there."""
    if KEPT.exists() or not shutil.which("npm"):
        return
    new = KEPT.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    argv = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", new, *PACKAGES]
    done = subprocess.run([str(a) for a in argv], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=170, check=False)
    if done.returncode == 0:
        new.rename(KEPT)


# ---- inside ----------------------------------------------------------------------------------

def carry(client, port, token):
    """One request with the token, and all that comes back."""
    with client, socket.create_connection(("127.0.0.1", port), 20) as server:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = client.recv(65536)
            if not piece:
                return
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        while len(body) < (int(found[1]) if found else 0):
            body += client.recv(65536)
        head = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head).replace(b" /mcp HTTP", b" /mcp?conformance=1&workspace=suite HTTP", 1)
        server.sendall(head + f"\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n".encode() + body)
        while True:
            ready, _, _ = select.select([client, server], [], [], 60)
            piece = server.recv(65536) if server in ready else b""
            if not piece:
                return  # either has ended
            client.sendall(piece)


def relay(port, token):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=quietly, args=(client, port, token), daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def quietly(*args):
    try:
        carry(*args)
    except OSError:
        pass  # who has left is not told


def run(*options):
    """The suite, with a daemon that has the fixtures; what it printed."""
    if not KEPT.exists():
        raise lib.Skip("the registry cannot be reached" if shutil.which("npm") else "there is no npm")
    shutil.copy(lib.cell.BIN / "caissond-conformance", lib.cell.BIN / "caissond")
    d = Daemon("mcp", options=["--listen", "127.0.0.1:0"]).start()
    admin = d.client()
    token = admin.ok("POST", "/v1/tokens", {"scope": "exec"})["token"]
    admin.ok("PUT", "/v1/workspaces/suite", {})
    argv = [KEPT / f"node_modules/node-linux-{MACHINE}/bin/node", PACKAGE / "dist/index.js", "server", "--url", f"http://127.0.0.1:{relay(d.port(), token)}/mcp", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, cwd="/run", env={**os.environ, "HOME": "/run"})
    admin.remove_all()
    admin.ok("DELETE", "/v1/workspaces/suite?force=1")
    d.wait_clean()
    d.stop()
    check(done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}\n{d.tail()}")
    return done.stdout


def required(revision):
    """How many scenarios it requires; each has passed."""
    text = (PACKAGE / "requirements" / f"{revision}.yaml").read_text() if KEPT.exists() else ""
    names = re.findall(r"^ +- (\S+)", text.partition("\nserver:\n")[2].partition("\n\n")[0], re.M)
    said = run("--requirements", revision)
    for name in names:
        check(re.search(rf"^✓ {name}: [1-9]\d* passed, 0 failed$", said, re.M), f"{name} was not run: {said[-6000:]}")
    return len(names)


@test("2025-11-25: every required server scenario", own=True)
def _(_api):
    same(required("2025-11-25"), 30, "scenarios")


@test("2026-07-28: every required server scenario", own=True)
def _(_api):
    same(required("2026-07-28"), 37, "scenarios")


for scenario in MORE:
    test(f"not required: {scenario}", own=True)(lambda _api, s=scenario: run("--scenario", s))


@test("caisson mcp --conformance has them too", own=True)
def _(_api):
    shutil.copy(lib.cell.BIN / "caissond-conformance", lib.cell.BIN / "caissond")
    d = Daemon("lines").start()
    s = agent.Stdio(d, "--conformance")
    s.say("initialize", {"protocolVersion": agent.THEN, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}, id=0)
    check("prompts" in s.hear()["result"]["capabilities"], "initialize")
    s.say("tools/call", {"name": "test_simple_text"}, id=1)
    check("simple text" in s.hear()["result"]["content"][0]["text"], "a fixture")
    same(s.end(), (0, []), "the end")
    d.stop()


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        fetch()
    sys.exit(lib.main(__file__, seconds=600))
