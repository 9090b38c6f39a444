"""kept.py - packages of frameworks from their registries, kept in build/adapters, and a cell in which they and our SDKs are found.

Remove build/adapters to have the newest again.
"""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "sdk"))

import place  # noqa: E402
from place import lib  # noqa: E402

KEPT = place.ROOT / "build/adapters"
INSIDE = pathlib.Path("/run/packages")  # the same in the cell, which may hide the tree
DOC = place.COPY / "docs/adapters.md"
SECONDS = 500  # of one framework's tests, at most
TARGET = "{}"


# ---- outside ---------------------------------------------------------------------------------

def fetch_one(name, command):
    """Whole, or not there."""
    new = KEPT / f"new-{name}"
    shutil.rmtree(new, ignore_errors=True)
    new.unlink(missing_ok=True)
    done = subprocess.run([str(new) if word == TARGET else word for word in command], stdin=subprocess.DEVNULL, cwd="/", check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode == 0:
        new.rename(KEPT / name)
    return f"# {name}: {done.stderr[-600:]}".replace("\n", "\n# ") if done.returncode != 0 else None


def fetch(steps, words):
    """`steps`: name -> command. What is wanted and missing, by the registries that this host's clients are configured to use."""
    KEPT.mkdir(parents=True, exist_ok=True)
    wanted = [(name, command) for name, command in steps.items()
              if not (KEPT / name).exists() and (not words or any(word in name for word in words))]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for problem in pool.map(lambda one: fetch_one(*one), wanted):
            if problem:
                print(problem)


# ---- inside ----------------------------------------------------------------------------------

def prepare(*folders):
    """Read now, before the cell is entered."""
    files = place.load(*folders) | {"docs/adapters.md": (place.ROOT / "docs/adapters.md").read_bytes()}
    fd = os.open(KEPT, os.O_PATH | os.O_DIRECTORY) if KEPT.exists() else -1

    def make():
        place.prepare(files)()
        INSIDE.mkdir()
        subprocess.run(["mount", "--bind", f"/proc/self/fd/{fd}", str(INSIDE)], check=True, pass_fds=[fd])
        return lambda: subprocess.run(["umount", str(INSIDE)], check=True)
    return make


def run(api, command, **env):
    """In a folder of its own, which goes again. Returns what it printed, and what `read` makes of the folder."""
    lib.check((INSIDE / env["NAME"]).exists(), f"{env['NAME']} could not be installed")
    work = lib.HOME / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS, cwd=work, check=False, env={
        "PATH": os.environ["PATH"], "HOME": str(work), "TMPDIR": str(work), "CAISSON_SOCKET": str(api.daemon.socket), "ADAPTERS_DOC": str(DOC), **env})
    lib.check(done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:])
    return work, done.stdout


def tell(language, name, version, passed, known=0):
    """A line of the table."""
    print(f"| {language:7} {name:25} {version:10} {passed:4} passed" + (f", {known} fail as they are known to" if known else ""), flush=True)
