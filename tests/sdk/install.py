#!/usr/bin/env python3
"""The Python SDK is installed as a user would, without a network. TAP. (The other one: tests/doors/npm.py.)"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NO_NETWORK = ["unshare", "--net"] if os.geteuid() == 0 else []
SCRIPT = """
import caisson, caisson.aio, json, pathlib
from caisson import Sandbox
from importlib import metadata
here = pathlib.Path(caisson.__file__).parent
print(json.dumps([metadata.version("caisson"), caisson.__version__, (here / "py.typed").exists(), "site-packages" in str(here),
                  sorted(str(p.relative_to(here)) for p in here.rglob("*.py")),
                  [f"{e.group}: {e.value}" for e in metadata.distribution("caisson").entry_points]]))
Sandbox(net="deny", fs="ephemeral:/work", creds=None, limits=dict(cpu=2, mem="4g", pids=512, wall="10m"))
"""


def run(*words, **options):
    return subprocess.run([*NO_NETWORK, *map(str, words)], capture_output=True, text=True, check=False, timeout=170, **options)


def install_python(folder):
    copy = folder / "sdk"  # as delivered: nothing of a build is left in the tree
    shutil.copytree(ROOT / "sdk/python", copy, ignore=shutil.ignore_patterns("__pycache__"))
    steps = [run("/usr/bin/python3", "-m", "venv", "--without-pip", folder / "venv"),
             run("/usr/bin/python3", "-m", "pip", "--python", folder / "venv/bin/python", "install", "-q", "--no-index", copy)]
    done = run(folder / "venv/bin/python", "-B", "-c", SCRIPT, cwd=folder)
    try:
        version, own, is_typed, is_installed, names, entries = json.loads(done.stdout)
    except ValueError:
        return "\n".join(s.stdout + s.stderr for s in [*steps, done])
    wanted = sorted(str(p.relative_to(copy / "caisson")) for p in (copy / "caisson").rglob("*.py"))
    is_fine = version == own and is_typed and is_installed and names == wanted and entries == ["inspect_ai: caisson.adapters.inspect_ai"]
    return None if is_fine else f"{done.stdout} {wanted}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        problem = install_python(pathlib.Path(folder))
    print(f"{'not ' if problem else ''}ok 1 - pip install ./sdk/python into a venv, with no network\n1..1")
    print("".join(f"# {line}\n" for line in (problem or "").splitlines()), end="")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
