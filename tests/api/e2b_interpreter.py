#!/usr/bin/env python3
"""The code interpreter of E2B's clients, byte by byte: port 49999 of a sandbox, started when it is asked for first. TAP.

    tests/api/e2b_interpreter.py          all (needs root)
    tests/api/e2b_interpreter.py output   those with the word in their title

What their own packages make of it: tests/e2b/sdk.py.
"""
import json
import sys
import threading
import time

import lib
from door import DOMAIN, door
from lib import check, same, test


class Interpreter:
    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.headers = {"E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": "49999", "Content-Type": "application/json"}

    def call(self, method, path, body=None, **headers):
        return self.sandbox.door.call(method, path, json.dumps(body).encode() if body is not None else None, {**self.headers, **headers})

    def execute(self, code, **keys):
        return self.call("POST", "/execute", {"code": code, **keys}, **{"X-Access-Token": self.sandbox.token})

    def events(self, code, **keys):
        """Every event, the first and the last left out: they are always the same."""
        answer = self.execute(code, **keys)
        same(answer.status, 200, answer)
        all_ = [e for e in map(json.loads, answer.body.decode().splitlines()) if e["type"] != "keepalive"]
        same((all_[0]["type"], all_[-1]), ("number_of_executions", {"type": "end_of_execution"}), str(all_)[:500])
        return all_[1:-1]

    def said(self, code, kind, **keys):
        return "".join(e["text"] for e in self.events(code, **keys) if e["type"] == kind)

    def text(self, code, **keys):
        main = [e for e in self.events(code, **keys) if e["type"] == "result" and e["is_main_result"]]
        return main[0]["text"] if main else None

    def error(self, code, **keys):
        return [e for e in self.events(code, **keys) if e["type"] == "error"][0]


@test("code: values, output, errors, shell lines, what objects say of themselves, in order", own=True)
def _(_api):
    with door("code") as d:
        i = Interpreter(d.create(templateID="code-interpreter-v1", envVars={"GREETING": "hi"}))
        same(i.events("1 + 1"), [{"type": "result", "is_main_result": True, "text": "2"}], "a value")
        same(i.events("x = 5"), [], "none")
        same((i.text("x"), i.text("'a b'"), i.text("x;")), ("5", "a b", None), "kept; a text without its quotes; silenced")
        kinds = [e["type"] for e in i.events("print('a')\ndisplay(1)\nimport os; os.system('echo b')\nprint('e', file=__import__('sys').stderr)\n7") if e["type"] != "stdout" or e["text"].strip()]
        same(kinds, ["stdout", "result", "stdout", "stderr", "result"], "one after the other")
        e = i.error("def f():\n    return 1 / 0\nf()")
        check((e["name"], e["value"]) == ("ZeroDivisionError", "division by zero") and "line 2, in f" in e["traceback"] and "<interpreter>" not in e["traceback"], e)
        same((i.error("x =")["name"], i.error("raise SystemExit(3)")["value"], i.text("x")), ("SyntaxError", "3", "5"), "and it goes on")
        same(i.text("  y = 1\n  y + 1"), "2", "indented as a whole")
        same(i.text("import asyncio\nawait asyncio.sleep(0, 'later')"), "later", "await")
        same(i.said("!echo $((1+2))", "stdout"), "3\n", "a line of shell")
        same(i.text("import os; os.getcwd(), os.environ['GREETING'], os.environ['HOME'], os.getuid()"), "('/home/user', 'hi', '/home/user', 1000)", "where and as whom")
        same(len(i.said("print('é' * 300000)", "stdout")), 300001, "much, in pieces")
        rich = i.events("class A:\n  def __repr__(s): return 'A'\n  def _repr_html_(s): return '<b>'\n  def _repr_png_(s): return b'\\x89'\n  def _repr_mimebundle_(s, **k): return {'x/y': 1}\nA()")
        same(rich, [{"type": "result", "is_main_result": True, "text": "A", "html": "<b>", "png": "iQ==", "extra": {"x/y": 1}}], "types")
        same(i.events("{'a': [1]}")[0]["json"], {"a": [1]}, "JSON")
        same((i.text("import os; os.getenv('V')", env_vars={"V": "once"}), i.text("os.getenv('V', 'none')")), ("once", "none"), "variables of one execution")
        same((i.error("import os; os._exit(4)")["name"], i.error("x")["name"], i.text("1")), ("KernelDied", "NameError", "1"), "a kernel that dies is another one")
        same([p["config"]["cmd"] for p in i.sandbox.rpc("process.Process/List", {}).json["processes"]], [], "it is not among their processes")


@test("contexts: made, apart, restarted, removed; what is none", own=True)
def _(_api):
    with door("contexts") as d:
        i = Interpreter(d.create())
        made = i.call("POST", "/contexts", {"cwd": "/tmp"}).json
        same((made["language"], made["cwd"]), ("python", "/tmp"), "made")
        i.events("x = 1", context_id=made["id"])
        same((i.text("x", context_id=made["id"]), i.error("x")["name"], i.text("import os; os.getcwd()", context_id=made["id"])), ("1", "NameError", "/tmp"), "apart")
        same(sorted(c["cwd"] for c in i.call("GET", "/contexts").json), ["/home/user", "/tmp"], "listed")
        same(i.call("POST", f"/contexts/{made['id']}/restart").status, 200, "restarted")
        same(i.error("x", context_id=made["id"])["value"], "name 'x' is not defined", "empty again")
        same([i.call("DELETE", f"/contexts/{made['id']}").status for _ in "12"], [200, 404], "removed once")
        for body, status in (({"code": "1", "context_id": made["id"]}, 404), ({"code": "1", "context_id": "x", "language": "python"}, 400), ({"code": 1}, 422), ({}, 422), ([], 422),
                             ({"code": "1", "env_vars": {"A": 1}}, 422), ({"code": "1", "language": "cobol"}, 500)):
            same(i.call("POST", "/execute", body, **{"X-Access-Token": i.sandbox.token}).status, status, body)
        same(i.call("POST", "/contexts", {"cwd": "/nowhere"}).status, 500, "no such folder")
        same((i.call("GET", "/nothing", **{"X-Access-Token": i.sandbox.token}).status, i.call("GET", "/health").json), (404, "OK"), "else")


@test("who may: code takes the token of the sandbox, private ones another, and neither gets inside", own=True)
def _(_api):
    with door("may") as d:
        s = d.create()
        i = Interpreter(s)
        for token, want in ((None, 401), ("", 401), (d.create().token, 401), (s.token, 200)):
            same(i.call("POST", "/execute", {"code": "1"}, **({"X-Access-Token": token} if token is not None else {})).status, want, token)
        same(d.call("POST", "/execute", b'{"code":"1"}', {"Host": f"49999-{s.id}.{DOMAIN}", "X-Access-Token": s.token}).status, 200, "by its host")
        for path in ("/execute/", "//execute", "/execute//", "/%65xecute", "/execute?x", "/contexts/../execute", "/contexts//../execute", "/./execute", "/execute;x", "/EXECUTE", "/nothing", "/"):
            same(i.call("POST", path, {"code": "1"}).status, 401, path)
        private = Interpreter(d.create(network={"allowPublicTraffic": False}))
        same((private.execute("1").status, private.call("GET", "/contexts").status), (403, 403), "a private one")
        private.headers["e2b-traffic-access-token"] = private.sandbox.made["trafficAccessToken"]
        same((private.text("1"), private.call("GET", "/contexts").status), ("1", 200), "with its token")


@test("an image's own interpreter is used, and is not told the token", own=True)
def _(_api):
    with door("own") as d:
        s = d.create()
        code = ("import http.server as h\nclass H(h.BaseHTTPRequestHandler):\n def do_POST(s):\n  b = str(s.headers).encode(); s.send_response(200)\n"
                "  s.send_header('Content-Length', str(len(b))); s.end_headers(); s.wfile.write(b)\nfor port in (49999, 8000):\n"  # who reaches the second finds the first
                " __import__('threading').Thread(target=h.HTTPServer(('', port), H).serve_forever).start()")
        s.files("POST", {"path": "own.py"}, code.encode(), **{"Content-Type": "application/octet-stream"})
        s.run("nohup python3 own.py >/dev/null 2>&1 &")
        ask = lambda port: d.call("POST", "/execute", b"x", {**s.headers, "E2b-Sandbox-Port": str(port), "X-Other": "1"})
        lib.wait_until(lambda: ask(8000).status == 200, 10)
        for port in (8000, 49999):
            seen = ask(port)
            check(seen.status == 200 and b"X-Other" in seen.body and s.token.encode() not in seen.body, seen)


@test("interrupted: a client that leaves stops what it ran, and the context stays", own=True)
def _(_api):
    with door("leave") as d:
        i = Interpreter(d.create())
        i.events("x = 1")
        client = lib.Client(("127.0.0.1", d.daemon.port()))
        answer = client.send("POST", "/execute", {"code": "x = 2\nprint('runs', flush=True)\nimport time\ntime.sleep(60)\nx = 3"}, {**i.headers, "X-Access-Token": i.sandbox.token})
        said = []
        while not (said and b"runs" in said[-1]):
            said.append(answer.readline())
            check(said[-1], f"it runs: {said}")
        answer.close()
        client.close()
        begun = time.monotonic()
        same(i.text("x"), "2", "stopped, not lost")
        check(time.monotonic() - begun < 40, "at once")
        made = i.call("POST", "/contexts", {}).json["id"]
        held = []
        thread = threading.Thread(target=lambda: held.append(i.execute("import time; time.sleep(60)", context_id=made).body))
        thread.start()
        lib.wait_until(lambda: i.call("POST", f"/contexts/{made}/restart").status == 200 and (thread.join(0.3), not thread.is_alive())[1], 20)
        check(b"ContextRestarting" in held[0] and b"end_of_execution" in held[0], f"what runs in a context that is restarted: {held}")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
