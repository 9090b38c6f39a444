#!/usr/bin/env python3
"""The unmodified packages of E2B, newest and older, from their registries: a tour with each. TAP.

    tests/e2b/sdk.py    needs root, node and npm, and a network the first time

Packages are kept in build/e2b-sdk; without a registry and without them a tour is skipped.
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/api"))

import lib  # noqa: E402
from lib import Daemon, check, same, test  # noqa: E402

KEPT = ROOT / "build/e2b-sdk"
DOMAIN = "sbx.test"
PACKAGES = {"js-newest": "e2b@latest", "js-2.20": "e2b@2.20.1", "js-code": "@e2b/code-interpreter@latest", "py-newest": "e2b", "py-code": "e2b-code-interpreter", "py-jupyter": "ipykernel"}
HOOK = """const dns = require('dns'), lookup = dns.lookup
dns.lookup = (host, o, cb) => {
  if (typeof o === 'function') { cb = o; o = {} }
  if (!host.endsWith('.%s')) return lookup(host, o, cb)
  process.nextTick(() => o.all ? cb(null, [{ address: '127.0.0.1', family: 4 }]) : cb(null, '127.0.0.1', 4))
}
""" % DOMAIN


# ---- outside ---------------------------------------------------------------------------------

def install(name):
    """From the registry that this host's client is configured to use, whichever that is."""
    if name.startswith("js"):
        argv = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", KEPT / f"{name}.new", PACKAGES[name]]
    else:
        argv = [sys.executable, "-m", "pip", "install", "-q", "--target", KEPT / f"{name}.new", PACKAGES[name]]
    return subprocess.Popen([str(a) for a in argv], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def fetch():
    """All that are missing, side by side: whole, or not there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    under_way = {}
    for name in PACKAGES:
        if (KEPT / name).exists() or (name.startswith("js") and not shutil.which("npm")):
            continue
        shutil.rmtree(KEPT / f"{name}.new", ignore_errors=True)
        under_way[name] = install(name)
    for name, process in under_way.items():
        if process.wait(120) == 0:
            (KEPT / f"{name}.new").rename(KEPT / name)


# ---- inside ----------------------------------------------------------------------------------

def daemon():
    """One port of plain HTTP, and TLS for the hosts of sandboxes."""
    tls = lib.HOME / "tls"
    tls.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={DOMAIN}",
                    "-addext", f"subjectAltName=DNS:*.{DOMAIN}", "-keyout", tls / "key.pem", "-out", tls / "cert.pem"], check=True, capture_output=True)
    for path in (tls, tls / "key.pem", tls / "cert.pem"):
        path.chmod(0o755)
    (tls / "hook.cjs").write_text(HOOK)
    return Daemon("sdk", options=["--listen", "127.0.0.1:7443", "--listen", "http:127.0.0.1:7300", "--tls", tls / "cert.pem", tls / "key.pem", "--domain", f"{DOMAIN}:7443"]).start()


def tour(name, argv, env):
    if not (KEPT / name).exists():
        raise lib.Skip("the registry cannot be reached" if name.startswith("py") or shutil.which("npm") else "there is no npm")
    shutil.rmtree(lib.HOME / "tls", ignore_errors=True)
    d = daemon()
    key = d.client().ok("POST", "/v1/tokens", {"scope": "manage", "form": "e2b"})["token"]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=120, check=False, cwd="/",
                          env={**os.environ, "E2B_API_KEY": key, "E2B_API_URL": "http://127.0.0.1:7300", "E2B_SANDBOX_URL": "http://127.0.0.1:7300",
                               "E2B_VOLUME_API_URL": "http://127.0.0.1:7300", **env})
    check(done.returncode == 0 and done.stdout.split()[-1:] == ["end"], f"{done.stdout}\n{done.stderr}\n{d.tail()}")
    same(d.client().ok("GET", "/v1/sandboxes")["sandboxes"], [], "left of it")
    d.wait_clean()
    d.stop()
    return done.stdout.split("\n")


def node(name, *more):
    held = tour(name, ["node", "/run/tour.mjs"], {"E2B_PACKAGE": str(KEPT / name), "NODE_EXTRA_CA_CERTS": str(lib.HOME / "tls/cert.pem"),
                                                  "NODE_OPTIONS": f"--require {lib.HOME}/tls/hook.cjs"})
    for word in ("life", "commands", "terminal", "files", "signed", "host", "pause", *more):
        check(word in held, f"{word} is missing: {held}")


@test("npm: the newest e2b, on one port of plain HTTP, and getHost over TLS", own=True)
def _(_api):
    node("js-newest", "snapshot", "fork", "template")


@test("npm: e2b 2.20", own=True)
def _(_api):
    node("js-2.20")


@test("PyPI: the newest e2b, sync and async", own=True)
def _(_api):
    held = tour("py-newest", [sys.executable, "/run/tour.py"], {"PYTHONPATH": str(KEPT / "py-newest")})
    for word in ("life", "commands", "files", "pause, snapshot", "template", "async"):
        check(word in held, f"{word} is missing: {held}")


@test("npm: the newest @e2b/code-interpreter", own=True)
def _(_api):
    held = tour("js-code", ["node", "/run/tour_code.mjs"], {"E2B_PACKAGE": str(KEPT / "js-code")})
    for word in ("code", "contexts", "interrupt"):
        check(word in held, f"{word} is missing: {held}")


@test("PyPI: the newest e2b-code-interpreter, sync and async, and with kernels of Jupyter", own=True)
def _(_api):
    held = tour("py-code", [sys.executable, "/run/tour_code.py"], {"PYTHONPATH": str(KEPT / "py-code"), "JUPYTER": str(KEPT / "py-jupyter")})
    for word in ("code", "contexts", "interrupt", "killed", "async", "jupyter"):
        check(word in held, f"{word} is missing: {held}")


@test("npm: volumes and secrets with the newest e2b", own=True)
def _(_api):
    held = tour("js-newest", ["node", "/run/tour_more.mjs"], {"E2B_PACKAGE": str(KEPT / "js-newest")})
    for word in ("content", "volumes", "secrets"):
        check(word in held, f"{word} is missing: {held}")


@test("PyPI: volumes and secrets with the newest e2b, sync and async", own=True)
def _(_api):
    held = tour("py-newest", [sys.executable, "/run/tour_more.py"], {"PYTHONPATH": str(KEPT / "py-newest")})
    for word in ("content", "volumes", "async", "secrets"):
        check(word in held, f"{word} is missing: {held}")


TOURS = {name: (pathlib.Path(__file__).parent / name).read_text() for name in ("tour.mjs", "tour.py", "tour_code.mjs", "tour_code.py", "tour_more.mjs", "tour_more.py")}  # before /tmp is hidden


def prepare():
    for name, text in TOURS.items():
        pathlib.Path("/run", name).write_text(text)
    return lambda: None


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        fetch()
    sys.exit(lib.main(__file__, seconds=400, prepare=prepare))
