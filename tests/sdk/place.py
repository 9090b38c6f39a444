"""place.py - for the tests of the SDKs: a cell with a daemon (tests/api/lib.py), and a copy of the SDKs in it."""
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/api"), str(ROOT / "sdk/python")]

import lib  # noqa: E402

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
COPY = pathlib.Path("/run/sdk")


def load(*folders):
    """Read before the cell is entered, which may hide the tree."""
    return {str(p.relative_to(ROOT)): p.read_bytes() for folder in folders for p in sorted((ROOT / folder).rglob("*"))
            if p.is_file() and "__pycache__" not in p.parts and "node_modules" not in p.parts}


def prepare(files):
    """The SDKs as files that anybody can read, and the CLI's place."""
    def make():
        for name, data in files.items():
            path = COPY / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        os.environ["CAISSON"] = str(lib.cell.BIN / "caisson")
        os.environ["HOME"] = str(lib.HOME)
        return lambda: None
    return make


def stop_daemon_of(home):
    """The one that a client has started there."""
    def line(pid):
        return lib.census.read(f"/proc/{pid}/cmdline")
    found = [p for p in lib.census.pids() if f"\0{home}/caisson\0" in line(p) and "caisson-launcher" in line(p)]
    lib.check(found, "the daemon that was started")
    os.kill(min(found), signal.SIGTERM)
    lib.wait_until(lambda: (lib.census.reap(), not any(os.path.exists(f"/proc/{p}") for p in found))[1], 20)
