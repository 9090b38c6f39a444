#!/usr/bin/env python3
"""Programs that call docker, unmodified, with our program as that: mini-swe-agent and Goose. TAP.

    tests/doors/docker.py    needs root, git and npm, and a network the first time

mini-swe-agent comes from PyPI, without the packages that only its clients of models and of benchmarks need; its own tests of
its Docker environment come from its public repository at the commit below, or from the one that $CAISSON_MINI_SWE_AGENT names,
and are not copied here. Goose is its binary from npm; a scripted model answers it. What was fetched is kept in build/doors.
"""
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/api"), str(ROOT / "tests/docker")]

import lib  # noqa: E402
import system  # noqa: E402
from lib import check, same, test, wait_until  # noqa: E402

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
KEPT = ROOT / "build/doors"
MINI, SUITE, GOOSE = KEPT / "mini-swe-agent", KEPT / "mini-swe-agent-suite", KEPT / "goose"
REPOSITORY = os.environ.get("CAISSON_MINI_SWE_AGENT", "https://github.com/SWE-agent/mini-swe-agent")
COMMIT = "a83fcae82d2a08f0ee0c688f9d137b3566c097f8"
NEEDED = "pyyaml requests jinja2 pydantic tenacity rich python-dotenv typer platformdirs pytest".split()
HOME = pathlib.Path("/run/person")
BIN = HOME / ".local/bin"


# ---- outside ---------------------------------------------------------------------------------

def run(*argv):
    return subprocess.run([str(a) for a in argv], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode == 0


def fetch():
    """Each whole, or not there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--target")
    for kept in (MINI, SUITE, GOOSE):
        new = kept.with_name(kept.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        if kept.exists():
            continue
        is_there = (run(*pip, new, "--no-deps", "mini-swe-agent") and run(*pip, new, *NEEDED) if kept == MINI else
                    run("git", "clone", "-q", REPOSITORY, new) and run("git", "-C", new, "checkout", "-q", COMMIT) if kept == SUITE else
                    run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", new, "@aaif/goose-binary-linux-x64"))
        if is_there:
            new.rename(kept)


# ---- inside ----------------------------------------------------------------------------------

def prepare():
    BIN.mkdir(parents=True)
    (BIN / "docker").symlink_to(lib.cell.BIN / "caisson")
    return lambda: None


def need(*kept):
    for path in kept:
        if not path.exists():
            raise lib.Skip(f"{path.name} could not be fetched")


def person(api, **more):
    """The environment of somebody whose `docker` we are, and an image."""
    env = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(HOME), "CAISSON_SOCKET": str(api.daemon.socket), "LC_ALL": "C.UTF-8",
           "PYTHONPATH": str(MINI), "PYTHONDONTWRITEBYTECODE": "1", "MSWEA_SILENT_STARTUP": "1", **more}
    if "python" not in docker(env, "images"):
        data = io.BytesIO()
        system.write(data)
        done = subprocess.run([lib.cell.BIN / "caisson", "image", "import", "python:3.11", "-"], input=data.getvalue(), env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode == 0, done.stdout.decode())
    return env


def docker(env, *words):
    done = subprocess.run([BIN / "docker", *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0, lambda: f"docker {' '.join(words)}: {done.stderr}")
    return done.stdout


@test("mini-swe-agent: its own tests of its Docker environment")
def _(api):
    need(MINI, SUITE)
    env = person(api)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-k", "docker-docker or [docker]",
                           "tests/environments/test_docker.py"], cwd=SUITE, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    counts = re.search(r"(\d+) passed", done.stdout)
    check(done.returncode == 0 and counts and int(counts[1]) >= 11 and "skipped" not in done.stdout.splitlines()[-1], done.stdout[-4000:])
    wait_until(lambda: docker(env, "ps", "-aq") == "", 30, "they remove theirs")


AGENT = """
import logging, sys
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.docker import DockerEnvironment
from minisweagent.models.test_models import DeterministicModel, make_output
steps = ["mkdir -p src && printf 'def add(a, b):\\n    return a - b\\n' >src/calc.py && printf 'from calc import add\\nassert add(2, 3) == 5, add(2, 3)\\n' >src/check.py",
         "cd src && python3 -B check.py", "sed -i 's/a - b/a + b/' src/calc.py", "cd src && python3 -B check.py && echo good",
         "sleep 30", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat src/calc.py"]
env = DockerEnvironment(image="python:3.11", cwd="/testbed", timeout=3)
agent = DefaultAgent(DeterministicModel(outputs=[make_output(s, [{"command": s}], cost=0.1) for s in steps]), env,
                     system_template="s", instance_template="{{task}}")
result = agent.run("make it add")
texts = [m["content"] for m in agent.messages if m["role"] == "user"]
print(result["exit_status"], repr(result["submission"]))
print("\\n".join(str(t) for t in texts))
"""


@test("mini-swe-agent: its agent mends a file in a container, by a script")
def _(api):
    need(MINI)
    env = person(api)
    done = subprocess.run([sys.executable, "-c", AGENT], cwd="/", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120)
    check(done.returncode == 0, done.stderr)
    for part in ("Submitted 'def add(a, b):\\n    return a + b\\n'", "AssertionError: -1", "<returncode>1</returncode>", "good", "timed out after 3 seconds"):
        check(part in done.stdout, f"{part!r} is missing in:\n{done.stdout}")
    wait_until(lambda: docker(env, "ps", "-aq") == "", 30, "it removes its own")


SERVER = """
import json, os, sys
for line in sys.stdin:
    ask = json.loads(line)
    results = {
        "initialize": lambda: {"protocolVersion": ask["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "inside", "version": "1"}},
        "tools/list": lambda: {"tools": [{"name": "where", "description": "Says where it runs", "inputSchema": {"type": "object", "properties": {}}}]},
        "tools/call": lambda: {"content": [{"type": "text", "text": "inside " + os.uname().nodename + " " + os.environ["CAISSON"]}]},
    }
    if "id" in ask:
        method = ask["method"]
        answer = {"result": results[method]()} if method in results else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], **answer}), flush=True)
"""


class Model(http.server.BaseHTTPRequestHandler):
    """Calls the one tool that there is, then repeats what it said."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["content-length"])))
        names = [t["function"]["name"] for t in ask.get("tools") or () if t["function"]["name"].endswith("where")]
        last = ask["messages"][-1]
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": names[0] if names else "", "arguments": "{}"}}
        is_call = names and last["role"] != "tool"
        delta = {"role": "assistant", "content": None, "tool_calls": [call]} if is_call else {"role": "assistant", "content": f"heard: {last['content']}"}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if ask.get("stream"):
            parts = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                     {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if is_call else "stop"}], "usage": usage}]
            body = "".join(f"data: {json.dumps(p)}\n\n" for p in parts) + "data: [DONE]\n\n"
        else:
            body = json.dumps({**chunk, "object": "chat.completion", "usage": usage,
                               "choices": [{"index": 0, "message": delta, "finish_reason": "tool_calls" if is_call else "stop"}]})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if ask.get("stream") else "application/json")
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


@test("Goose: --container starts its extension inside, by docker exec -i")
def _(api):
    need(GOOSE)
    env = person(api)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    id = docker(env, "run", "-d", "--name", "goose", "python:3.11", "sleep", "600").strip()
    (HOME / "server.py").write_text(SERVER)
    docker(env, "cp", str(HOME / "server.py"), "goose:/server.py")
    goose = GOOSE / "node_modules/@aaif/goose-binary-linux-x64/bin/goose"
    done = subprocess.run([goose, "run", "--no-session", "--no-profile", "--container", id, "--with-extension", "inside:python3 /server.py",
                           "-t", "say where you are"], cwd=HOME, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, env={**env, "GOOSE_DISABLE_KEYRING": "1", "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "gpt-4o", "GOOSE_MODE": "auto",
                                            "OPENAI_API_KEY": "none", "OPENAI_HOST": f"http://127.0.0.1:{server.server_port}"})
    check("heard: inside caisson 1" in done.stdout, done.stdout)
    same(docker(env, "rm", "-f", "goose"), "goose\n")
    server.shutdown()


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        fetch()
    sys.exit(lib.main(__file__, seconds=600, prepare=prepare))
