"""agent.py - clients of the Model Context Protocol that show what comes: both revisions by HTTP, and caisson mcp."""
import itertools
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading

import jsonschema

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/api"))

import lib  # noqa: E402
from lib import Client, check  # noqa: E402

NOW, THEN = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
TASKS = {"extensions": {META + "tasks": {}}}
IDS = itertools.count(1)


def messages_of(response):
    """Of an answer, as they come: one JSON text, or events."""
    if "event-stream" not in (response.headers["Content-Type"] or ""):
        text = response.read()
        yield json.loads(text) if text else None
        return
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


class Http:
    """One revision by HTTP."""

    def __init__(self, address, revision, token=None, target="/mcp", capabilities=None):
        self.address, self.revision, self.token, self.target = address, revision, token, target
        self.capabilities, self.session, self.schemas = capabilities or {}, None, {}
        if revision == THEN:
            client, response = self.send("initialize", {"protocolVersion": THEN, "capabilities": self.capabilities, "clientInfo": {"name": "t", "version": "1"}})
            self.session = response.headers["Mcp-Session-Id"]
            self.first = next(messages_of(response))["result"]
            client.close()

    def send(self, method, params=None, headers=None, id=None, **meta):
        """Returns the client, to be closed, and the response, not yet read."""
        params = dict(params or {})
        own = {"Accept": "application/json, text/event-stream"}
        if self.session:
            own["Mcp-Session-Id"] = self.session
        if self.revision == NOW:
            params["_meta"] = {META + "protocolVersion": NOW, META + "clientCapabilities": self.capabilities, **meta}
            own.update({"MCP-Protocol-Version": NOW, "Mcp-Method": method})
            name = params.get("name") or params.get("taskId")
            if name:
                own["Mcp-Name"] = name
        elif meta:
            params["_meta"] = meta
        own.update(headers or {})
        c = Client(self.address, token=self.token)
        return c, c.send("POST", self.target, {"jsonrpc": "2.0", "id": id or next(IDS), "method": method, "params": params}, own)

    def all(self, method, params=None, **meta):
        client, response = self.send(method, params, **meta)
        found = list(messages_of(response))
        client.close()
        return found

    def result(self, method, params=None, **meta):
        last = self.all(method, params, **meta)[-1]
        check("result" in last, lambda: f"{method}: {last}")
        return last["result"]

    def tool(self, name, **arguments):
        return self.result("tools/call", {"name": name, "arguments": arguments})

    def ok(self, name, **arguments):
        """The structured content, which is as its schema says, and the text."""
        r = self.tool(name, **arguments)
        check(not r.get("isError"), lambda: f"{name} {arguments}: {r}")
        if not self.schemas:
            self.schemas = {t["name"]: t["outputSchema"] for t in self.result("tools/list")["tools"]}
        jsonschema.Draft202012Validator(self.schemas[name]).validate(r["structuredContent"])
        return r["structuredContent"], r["content"][0]["text"]

    def refused(self, name, **arguments):
        r = self.tool(name, **arguments)
        check(r.get("isError") is True, lambda: f"{name} {arguments}: {r}")
        return r["content"][0]["text"]


class Stdio:
    """caisson mcp, and every line that it says."""

    def __init__(self, daemon, *options, env=None, user=None):
        self.process = subprocess.Popen([lib.cell.BIN / "caisson", "mcp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=env or {**os.environ, "CAISSON_SOCKET": str(daemon.socket)}, user=user, text=True)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    def say(self, method, params=None, id=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if id is not None:
            message["id"] = id
        self.raw(json.dumps(message))

    def raw(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self, seconds=2 * lib.PATIENCE):
        return json.loads(self.lines.get(timeout=seconds))

    def end(self):
        """Status, and what was said that nobody has heard."""
        self.process.stdin.close()
        status = self.process.wait(lib.PATIENCE)
        self.reader.join(lib.PATIENCE)
        return status, [self.lines.get() for _ in range(self.lines.qsize())]


def stop_daemon_of(home, is_last=True):
    """The one that was started there; who serves a workspace may stay for the next."""
    def line(pid):
        return lib.census.read(f"/proc/{pid}/cmdline")
    all_of = [p for p in lib.census.pids() if f"\0{home}/caisson\0" in line(p) and "caisson-launcher" in line(p)]
    launchers = [p for p in all_of if "caissond" in lib.children_of(p).values()]
    check(len(launchers) == 1, f"the daemon that was started: {launchers}")
    os.kill(launchers[0], signal.SIGTERM)
    lib.wait_until(lambda: (lib.census.reap(), not any(line(p) for p in (all_of if is_last else launchers)))[1], 20)
