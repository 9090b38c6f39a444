#!/usr/bin/env python3
"""The SDKs are installed as a user would, without a network: pip into a venv, npm into a project. TAP."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HAS_MORE = os.environ.get("CAISSON_SDK_MORE") == "1"  # npm: `make check-sdk`
NO_NETWORK = ["unshare", "--net"] if os.geteuid() == 0 else []
SCRIPT = """
import caisson, caisson.aio, json, pathlib
from caisson import Sandbox
from importlib import metadata
here = pathlib.Path(caisson.__file__).parent
print(json.dumps([metadata.version("caisson"), caisson.__version__, (here / "py.typed").exists(), "site-packages" in str(here),
                  sorted(p.name for p in here.iterdir() if p.suffix == ".py")]))
Sandbox(net="deny", fs="ephemeral:/work", creds=None, limits=dict(cpu=2, mem="4g", pids=512, wall="10m"))
"""
MODULE = """
import { Sandbox, Client, Workspace } from "@caisson/sdk";
console.log(JSON.stringify([typeof Sandbox.create, typeof Client, typeof Workspace.open]));
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
        version, own, is_typed, is_installed, names = json.loads(done.stdout)
    except ValueError:
        return "\n".join(s.stdout + s.stderr for s in [*steps, done])
    wanted = sorted(p.name for p in (ROOT / "sdk/python/caisson").glob("*.py"))
    is_fine = version == own and is_typed and is_installed and names == wanted
    return None if is_fine else f"{done.stdout} {wanted}"


def install_script(folder):
    project = folder / "project"
    project.mkdir()
    (project / "package.json").write_text('{"private": true, "type": "module"}')
    (project / "a.js").write_text(MODULE)
    done = run("npm", "install", "--offline", "--no-audit", "--no-fund", "--cache", folder / "npm", ROOT / "sdk/typescript",
               cwd=project)
    used = run("node", "a.js", cwd=project)
    is_fine = used.stdout == '["function","function","function"]\n'
    return None if is_fine else done.stdout + done.stderr + used.stdout + used.stderr


def main():
    failed = 0
    tests = [("pip install ./sdk/python into a venv, with no network", install_python),
             ("npm install ./sdk/typescript into a project, with no network", install_script)]
    tests = [t for t in tests if t[1] is not install_script or HAS_MORE]
    print(f"1..{len(tests)}")
    for number, (title, test) in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as folder:
            problem = test(pathlib.Path(folder))
        failed += problem is not None
        print(f"{'not ' if problem else ''}ok {number} - {title}", flush=True)
        print("".join(f"# {line}\n" for line in (problem or "").splitlines()), end="")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
