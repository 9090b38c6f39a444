#!/usr/bin/env python3
"""The TypeScript SDK is installed as a user would, without a network: npm into a project. TAP."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NO_NETWORK = ["unshare", "--net"] if os.geteuid() == 0 else []
MODULE = """
import { Sandbox, Client, Workspace } from "@caisson/sdk";
console.log(JSON.stringify([typeof Sandbox.create, typeof Client, typeof Workspace.open]));
"""


def run(*words, **options):
    return subprocess.run([*NO_NETWORK, *map(str, words)], capture_output=True, text=True, check=False, timeout=170, **options)


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
    with tempfile.TemporaryDirectory() as folder:
        problem = install_script(pathlib.Path(folder))
    print(f"{'not ' if problem else ''}ok 1 - npm install ./sdk/typescript into a project, with no network\n1..1")
    print("".join(f"# {line}\n" for line in (problem or "").splitlines()), end="")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
