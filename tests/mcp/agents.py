#!/usr/bin/env python3
"""Agents that people have, from their registries, with the lines of docs/agents.md as they are written there. TAP.

    tests/mcp/agents.py    needs root, node and npm, and a network the first time

The model is a script (model.py): it calls the tool bash and says what came back, so no key is needed and nobody is
asked. Packages are kept in build/mcp-agents; without a registry and without them an agent is skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import agent
import lib
import model
from lib import Daemon, check, test

KEPT = agent.ROOT / "build/mcp-agents"
HOME = pathlib.Path("/run/agents")
DOCS = (agent.ROOT / "docs/agents.md").read_text()
lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
MACHINE = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli", "goose": f"@aaif/goose-binary-linux-{MACHINE}"}
GOOSE = KEPT / f"goose/node_modules/@aaif/goose-binary-linux-{MACHINE}/bin"
NODE = KEPT / f"node/node_modules/node-linux-{MACHINE}/bin"


# ---- outside ---------------------------------------------------------------------------------

def fetch():
    """Whole, or not there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, package in {**PACKAGES, "node": f"node-linux-{MACHINE}@22"}.items():
        new = KEPT / f"{name}.new"
        if (KEPT / name).exists() or not shutil.which("npm"):
            continue
        shutil.rmtree(new, ignore_errors=True)
        done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(new), package], cwd="/", stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=170, check=False)
        if done.returncode == 0:
            new.rename(KEPT / name)


# ---- inside ----------------------------------------------------------------------------------

def snippet(name):
    """The block below the name of an agent."""
    return re.search(rf"\*\*{name}\*\*[^\n]*\n```\w+\n(.*?)```", DOCS, re.S)[1]


class Place:
    """A daemon, a folder to work in, a home, and the agent in the path."""

    def __init__(self, name):
        if not (KEPT / name).exists():
            raise lib.Skip("the registry cannot be reached")
        shutil.rmtree(HOME, ignore_errors=True)
        (HOME / "work").mkdir(parents=True)
        (HOME / "tmp").mkdir()
        self.daemon = Daemon("agents").start()
        self.model = model.start()
        port = self.model.server_address[1]
        self.env = {"PATH": f"{lib.cell.BIN}:{KEPT / name}/node_modules/.bin:{GOOSE}:{NODE}:{os.environ['PATH']}", "HOME": str(HOME), "CAISSON_SOCKET": str(self.daemon.socket),
                    "TERM": "dumb", "TMPDIR": str(HOME / "tmp"), "CLAUDE_CODE_TMPDIR": str(HOME / "tmp"), "URL": f"http://127.0.0.1:{port}"}

    def run(self, line, **env):
        """Of a shell, in the folder; what it printed."""
        done = subprocess.run(["sh", "-c", line], cwd=HOME / "work", env={**self.env, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=100, check=False)
        check(done.returncode == 0, lambda: f"{line}: {done.returncode}\n{done.stdout}\n{[(p, str(a)[:300]) for p, a in self.model.seen]}\n{self.daemon.tail()}")
        return done.stdout

    def end(self, said):
        """It has done what the model told it to, inside."""
        check(f"{model.SAID}" in said and "from-inside" in said and "/work" in said, lambda: f"{said}\n{[(p, str(a)[-600:]) for p, a in self.model.seen]}")
        client = self.daemon.client()
        commands = [p["cmd"] for p in client.ok("GET", "/v1/processes")["processes"]]
        check(any(model.COMMAND in c for c in commands), f"{commands}")
        self.model.shutdown()
        client.remove_all()
        client.ok("DELETE", "/v1/workspaces/task-1?force=1")
        self.daemon.wait_clean()
        self.daemon.stop()
        shutil.rmtree(HOME)


@test("Claude Code", own=True)
def _(_api):
    p = Place("claude")
    add, use = snippet("Claude Code").strip().split("\n")
    p.run(add)
    check("✔ Connected" in p.run("claude mcp list"), "it connects")
    said = p.run(use + " -p 'run it' </dev/null", ANTHROPIC_BASE_URL=p.env["URL"], ANTHROPIC_API_KEY="none", DISABLE_TELEMETRY="1", DISABLE_AUTOUPDATER="1",
                 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
    p.end(said)


@test("Codex", own=True)
def _(_api):
    p = Place("codex")
    (HOME / ".codex").mkdir()
    (HOME / ".codex/config.toml").write_text(snippet("Codex") + f'\n[mcp_servers.caisson.env]\nCAISSON_SOCKET = "{p.env["CAISSON_SOCKET"]}"\n[model_providers.script]\nname = "script"\nbase_url = "{p.env["URL"]}/v1"\nwire_api = "responses"\n')
    check(re.search(r"^caisson +caisson +mcp --key task-1 .* enabled", p.run("codex mcp list"), re.M), "its list")
    p.end(p.run("codex exec --skip-git-repo-check -s read-only -c model_provider=script -c model=gpt-5 'run it'"))


@test("Gemini CLI", own=True)
def _(_api):
    p = Place("gemini")
    (HOME / "work/.gemini").mkdir()
    (HOME / ".gemini").mkdir()
    (HOME / ".gemini/settings.json").write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    (HOME / "work/.gemini/settings.json").write_text(snippet("Gemini CLI"))
    env = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": p.env["URL"]}
    check("Connected" in p.run("gemini mcp list", **env), "it connects")
    p.end(p.run("gemini --approval-mode yolo -m gemini-2.5-flash -p 'run it'", **env))


@test("Goose", own=True)
def _(_api):
    p = Place("goose")
    (HOME / ".config/goose").mkdir(parents=True)
    (HOME / ".config/goose/config.yaml").write_text(snippet("Goose"))
    p.end(p.run("goose run --no-session -t 'run it'", GOOSE_PROVIDER="anthropic", GOOSE_MODEL="claude-sonnet-4-5", ANTHROPIC_HOST=p.env["URL"], ANTHROPIC_API_KEY="none",
                GOOSE_DISABLE_KEYRING="1", GOOSE_MODE="auto", XDG_CONFIG_HOME=str(HOME / ".config")))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        fetch()
    sys.exit(lib.main(__file__, seconds=500))
