#!/usr/bin/env python3
"""The unmodified remote workspaces of OpenHands, from the package of its registry: a tour. TAP.

    tests/doors/openhands.py    needs root, Python 3.12 or newer, and a network the first time

The package is kept in build/doors. CAISSON_PYTHON names an interpreter that is not found by its name.
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

KEPT = ROOT / "build/doors/openhands"
ADDRESS = "127.0.0.1:7311"
TOUR = (pathlib.Path(__file__).parent / "openhands/tour.py").read_text()  # before /tmp is hidden
NAMES = ["python3", "python3.14", "python3.13", "python3.12"]


def interpreter():
    """One that their package runs with; or None."""
    for name in [os.environ.get("CAISSON_PYTHON"), sys.executable, *NAMES]:
        path = name and shutil.which(name)
        if path and subprocess.run([path, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def fetch():
    """Whole, or not there."""
    python = interpreter()
    if python and not KEPT.exists():
        new = KEPT.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        if subprocess.run([python, "-m", "pip", "install", "-q", "--target", new, "openhands-sdk"], cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=800, check=False).returncode == 0:
            new.rename(KEPT)


def version():
    return next((p.name.split("-")[1] for p in KEPT.glob("openhands_sdk-*.dist-info")), "")[:-len(".dist")]


def tour(scope, base):
    """`base` is called with the daemon and says what follows the door's folder."""
    if not interpreter():
        raise lib.Skip("their package needs Python 3.12 or newer")
    if not KEPT.exists():
        raise lib.Skip("the registry cannot be reached")
    d = Daemon("openhands", options=["--listen", ADDRESS]).start()
    key = d.client().ok("POST", "/v1/tokens", {"scope": scope})["token"]
    done = subprocess.run([interpreter(), "/run/tour.py"], capture_output=True, text=True, timeout=200, check=False, cwd="/",
                          env={**os.environ, "PYTHONPATH": str(KEPT), "OH_HOST": f"http://{ADDRESS}/compat/openhands{base(d)}", "OH_KEY": key,
                               "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1", "HOME": "/tmp"})
    check(done.returncode == 0 and done.stdout.split()[-1:] == ["end"], f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}\n{d.tail()}")
    same(len(d.client().ok("GET", "/v1/sandboxes")["sandboxes"]), 1, "sandboxes")
    print(f"| OpenHands SDK {version()}, {scope}: {' '.join(done.stdout.split())}")
    d.client().remove_all()
    d.wait_clean()
    d.stop()


@test("a workspace in a sandbox that is named", own=True)
def _(_api):
    tour("exec", lambda d: "/" + d.client().create({"key": "hands", "fs": ["ephemeral:/workspace"]})["key"])


@test("a workspace in the token's own sandbox, which its first command makes", own=True)
def _(_api):
    tour("manage", lambda d: "")


def prepare():
    pathlib.Path("/run/tour.py").write_text(TOUR)
    return lambda: None


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        fetch()
    sys.exit(lib.main(__file__, seconds=600, prepare=prepare))
