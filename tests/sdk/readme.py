#!/usr/bin/env python3
"""The README's first five minutes, run literally: installed below a prefix of its own, then each block as root and as an
ordinary user, with the daemon that the first command starts. TAP.

    tests/sdk/readme.py           needs root, for a cell; the line for npm: `make check-doors`
"""
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/fault"))

import cell  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.partition("## The first five minutes")[2].partition("\n## ")[0], re.S)
# What it is, the language, a word that it has, at most so many lines.
EXPECTED = (("install", "sh", "make install", 1), ("cli", "sh", "caisson run --", 1), ("pip", "sh", "pip install ./sdk/python", 1),
            ("python", "python", "from caisson import Sandbox", 3), ("npm", "sh", "npm install ./sdk/typescript", 1),
            ("typescript", "ts", 'from "@caisson/sdk"', 3), ("mcp", "sh", "caisson mcp", 1), ("e2b", "sh", "E2B_SANDBOX_URL=", 3))
BLOCK = {name: text for (name, *_), (_, text) in zip(EXPECTED, BLOCKS)}
PREFIX, SOURCE, HOME = pathlib.Path("/run/prefix"), pathlib.Path("/run/source"), pathlib.Path("/run/home")
PATH, PYTHON = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "/usr/bin/python3"
USER_ID = 64001
ANSWER = "42\n"
HAS_NPM = os.environ.get("CAISSON_NPM") == "1"  # tests/doors/readme.py
MCP = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                                                                      "clientInfo": {"name": "readme", "version": "1"}}},
       {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
results = []


def report(title, problem):
    results.append(problem)
    print("".join(f"# {line}\n" for line in (problem or "").splitlines()), end="")
    print(f"{'not ' if problem else ''}ok {len(results)} - {title}", flush=True)


def load(folder):
    """All of it: relative path -> (mode, bytes)."""
    return {str(p.relative_to(folder)): (stat.S_IMODE(p.stat().st_mode), p.read_bytes()) for p in sorted(folder.rglob("*"))
            if p.is_file() and not {"__pycache__", "node_modules"} & set(p.parts)}


def put(files, folder):
    for name, (mode, data) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)


def shell(script, env, cwd, uid=None, **options):
    who = {"user": uid, "group": uid, "extra_groups": []} if uid else {}
    return subprocess.run(["sh", "-euc", script], env=env, cwd=cwd, capture_output=True, text=True, timeout=300, check=False, **who,
                          **({"stdin": subprocess.DEVNULL} if "input" not in options else {}), **options)


def said(done, expected):
    """None, or what was wrong."""
    is_fine = done.returncode == 0 and done.stdout == expected
    if not is_fine:
        for log in (pathlib.Path("/run/caisson/launcher.log"), *HOME.glob("*/run/caisson/launcher.log")):
            done.stderr += f"\n{log}: {log.read_text()}" if log.exists() else ""
    return None if is_fine else f"status {done.returncode}\nstdout: {done.stdout}\nstderr: {done.stderr}\nexpected: {expected}"


# ---- one role ----------------------------------------------------------------------------------

class Person:
    """Somebody with the programs in the PATH, a home folder, and a copy of the sources to stand in."""

    def __init__(self, role, uid):
        self.role, self.uid, self.home = role, uid, HOME / role
        self.home.mkdir(parents=True)
        (self.home / "run").mkdir(mode=0o700)
        self.source = self.home / "caisson"
        shutil.copytree(SOURCE, self.source)
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", self.home / "venv"], check=True)
        pip = self.home / "venv/bin/pip"
        pip.write_text(f'#!/bin/sh\nexec {PYTHON} -m pip --python {self.home}/venv/bin/python "$@"\n')
        pip.chmod(0o755)
        if uid:
            subprocess.run(["chown", "-R", f"{uid}:{uid}", self.home], check=True)
        self.env = {"PATH": f"{self.home}/venv/bin:{PREFIX}/bin:{PATH}", "HOME": str(self.home), "PIP_NO_CACHE_DIR": "1",
                    "XDG_RUNTIME_DIR": str(self.home / "run"), "PYTHONDONTWRITEBYTECODE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(self, script, **options):
        return shell(script, self.env, self.source, self.uid, **options)

    def end_daemon(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            words = pathlib.Path(f"/proc/{pid}/cmdline")
            try:
                line, parent = words.read_bytes(), int(words.with_name("stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if line.startswith(str(PREFIX).encode()) and b"caisson-launcher" in line.partition(b"\0")[0] and parent <= 1:
                os.kill(int(pid), signal.SIGTERM)
        socket = self.home / "run/caisson/api.sock" if self.uid else pathlib.Path("/run/caisson/api.sock")
        deadline = time.monotonic() + 60
        while socket.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return "the daemon did not end" if socket.exists() else None

    def typescript(self):
        if not HAS_NPM:
            modules = self.source / "node_modules/@caisson"
            modules.mkdir(parents=True)
            (modules / "sdk").symlink_to(self.source / "sdk/typescript")
        (self.source / "hello.mjs").write_text(BLOCK["typescript"])
        return said(self.run("node hello.mjs"), ANSWER + "\n")

    def mcp(self):
        done = self.run(BLOCK["mcp"], input="".join(json.dumps(one) + "\n" for one in MCP))
        answers = {one.get("id"): one for one in map(json.loads, done.stdout.splitlines())}
        tools = {one["name"] for one in answers.get(2, {}).get("result", {}).get("tools", ())}
        return None if {"bash", "read", "write", "edit", "glob", "grep"} <= tools else f"{done.stdout}{done.stderr}"

    def e2b(self):
        """The block, then a sandbox by what it exported."""
        done = self.run(BLOCK["e2b"] + '\necho "$E2B_API_KEY $E2B_API_URL $E2B_SANDBOX_URL"')
        if done.returncode != 0 or len(done.stdout.split()) != 3:
            return said(done, "a key and two addresses")
        key, api, sandbox = done.stdout.split()
        ask = urllib.request.Request(f"{api}/sandboxes", json.dumps({"templateID": "base", "timeout": 60}).encode(),
                                     {"X-API-Key": key, "Content-Type": "application/json"})
        with urllib.request.urlopen(ask, timeout=80) as answer:
            made = json.load(answer)
        alive = urllib.request.Request(f"{sandbox}/health", headers={"E2b-Sandbox-Id": made["sandboxID"], "E2b-Sandbox-Port": "49983"})
        with urllib.request.urlopen(alive, timeout=80) as answer:
            is_fine = answer.status in (200, 204)
        end = urllib.request.Request(f"{api}/sandboxes/{made['sandboxID']}", headers={"X-API-Key": key}, method="DELETE")
        urllib.request.urlopen(end, timeout=80).close()
        return None if is_fine else f"{made} {answer.status}"


def live(person):
    steps = [("caisson run", lambda: said(person.run(BLOCK["cli"]), ANSWER)),
             ("pip install", lambda: None if person.run(BLOCK["pip"]).returncode == 0 else said(person.run(BLOCK["pip"]), "")),
             ("three lines of Python", lambda: said(person.run("python -", input=BLOCK["python"]), ANSWER + "\n")),
             ("npm install", lambda: None if person.run(BLOCK["npm"]).returncode == 0 else said(person.run(BLOCK["npm"]), "")),
             ("three lines of TypeScript", person.typescript), ("caisson mcp", person.mcp), ("a key and two variables for E2B", person.e2b),
             ("and the daemon ends when it is told to", person.end_daemon)]
    for title, step in steps:
        if title != "npm install" or HAS_NPM:
            report(f"{person.role}: {title}", step())


# ---- the place ---------------------------------------------------------------------------------

def inside(name):
    installed, sources = load(pathlib.Path(os.environ["README_PREFIX"])), load(ROOT / "sdk")
    cell.PROGRAMS = ()
    cell.enter(name)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    put(installed, PREFIX)
    put(sources, SOURCE / "sdk")
    HOME.mkdir()
    for role, uid in (("root", None), ("user", USER_ID)):
        live(Person(role, uid))


def install():
    """The first block, from the sources here to a folder of the test's."""
    report("the README begins with these blocks, in this order, and each is short", "\n".join(
        f"{name}: {BLOCKS[i:i + 1]}" for i, (name, kind, word, most) in enumerate(EXPECTED)
        if i >= len(BLOCKS) or BLOCKS[i][0] != kind or word not in BLOCKS[i][1] or len(BLOCKS[i][1].splitlines()) > most) or None)
    done = shell(BLOCK["install"], {**os.environ, "PREFIX": os.environ["README_PREFIX"]}, ROOT)
    report("make install", None if done.returncode == 0 else done.stdout + done.stderr)


def main():
    if sys.argv[1:2] == ["--cell"]:
        inside(sys.argv[-1])
        return 0
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root, for a cell with cgroups of its own")
        return 0
    cell.remove_stale()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["README_PREFIX"] = folder
        install()
        there = cell.Cell([sys.executable, os.path.abspath(__file__), "--cell"], "readme", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            for line in there.process.stdout:
                found = re.match(r"(not )?ok \d+ - (.*)", line)
                if found:
                    report(found[2], "see above" if found[1] else None)
                else:
                    print(line, end="")
            status = there.process.wait()
        finally:
            there.end()
    if status != 0:
        report(f"the tests came to their end (status {status})", "no")
    print(f"1..{len(results)}")
    return 1 if any(results) else 0


if __name__ == "__main__":
    sys.exit(main())
