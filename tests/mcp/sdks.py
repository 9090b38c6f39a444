#!/usr/bin/env python3
"""The protocol's own clients, newest, from their registries: Python and TypeScript, both revisions, stdio and HTTP. TAP.

    tests/mcp/sdks.py    needs root, node and npm, and a network the first time

Packages are kept in build/mcp-clients; without a registry and without them a tour is skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import agent
import lib
from lib import Daemon, check, test

HERE = pathlib.Path(__file__).resolve().parent
KEPT = agent.ROOT / "build/mcp-clients"
lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
PACKAGES = {"python": ["mcp>=2.3"], "v1": ["@modelcontextprotocol/sdk@1"], "v2": ["@modelcontextprotocol/client@2"]}


# ---- outside ---------------------------------------------------------------------------------

def fetch():
    """Whole, or not there: from the registry that this host's client is configured to use."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, packages in PACKAGES.items():
        new = KEPT / f"{name}.new"
        if (KEPT / name).exists() or (name != "python" and not shutil.which("npm")):
            continue
        shutil.rmtree(new, ignore_errors=True)
        argv = [sys.executable, "-m", "pip", "install", "-q", "--target", new] if name == "python" else \
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", new]
        done = subprocess.run([str(a) for a in (*argv, *packages)], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=170, check=False)
        if done.returncode == 0:
            new.rename(KEPT / name)


# ---- inside ----------------------------------------------------------------------------------

def tour(package, *argv):
    if not (KEPT / package).exists():
        raise lib.Skip("the registry cannot be reached")
    d = Daemon("sdks", options=["--listen", "127.0.0.1:0"]).start()
    admin = d.client()
    admin.ok("PUT", "/v1/workspaces/tour", {"spec": {"gate": {"commands": ["touch asked-*"]}}})
    env = {**os.environ, "CAISSON": str(lib.cell.BIN / "caisson"), "CAISSON_SOCKET": str(d.socket), "HOME": "/run", "PYTHONPATH": str(KEPT / "python"),
           "TOKEN": admin.ok("POST", "/v1/tokens", {"scope": ["exec", "approve"]})["token"]}
    for kind, where in (("stdio", "tour"), ("http", f"http://127.0.0.1:{d.port()}/mcp?workspace=tour")):
        done = subprocess.run([str(a) for a in (*argv, kind, where)], capture_output=True, text=True, timeout=90, check=False, cwd="/", env=env)
        check(done.returncode == 0 and done.stdout.split()[-1:] == ["end"], f"{kind}: {done.stdout}\n{done.stderr}\n{d.tail()}")
    admin.remove_all()
    admin.ok("DELETE", "/v1/workspaces/tour?force=1")
    d.wait_clean()
    d.stop()


for revision, mode in ((agent.NOW, "auto"), (agent.THEN, "legacy")):
    test(f"Python, {revision}", own=True)(lambda _api, mode=mode: tour("python", sys.executable, HERE / "tour.py", mode))
for revision, name in ((agent.NOW, "v2"), (agent.THEN, "v1")):
    test(f"TypeScript, {revision}", own=True)(lambda _api, name=name: tour(name, "node", HERE / "tour.mjs", name, KEPT / name))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        fetch()
    sys.exit(lib.main(__file__, seconds=400))
