#!/usr/bin/env python3
"""The tools as a client of the Model Context Protocol has them: by HTTP in both revisions, and by caisson mcp. TAP.

    tests/mcp/tools.py           all (needs root)
    tests/mcp/tools.py cancel    those with the word in their title
"""
import json
import os
import shutil
import signal
import sys
import threading
import time

from agent import META, NOW, TASKS, THEN, Http, Stdio, messages_of, stop_daemon_of  # first: it knows where lib is
import lib
from lib import Client, Daemon, check, same, test, wait_until

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
TOOLS = ["bash", "read", "write", "edit", "glob", "grep", "process", "git", "workspace"]


def workspace(api, key, **members):
    api.client.ok("PUT", f"/v1/workspaces/{key}", members)
    return key


def remove(api, *names):
    """Who still serves its files goes with a workspace."""
    api.client.remove_all()
    for name in names:
        api.client.ok("DELETE", f"/v1/workspaces/{name}?force=1")


def clients(api, key):
    return [Http(api.daemon.socket, r, target=f"/mcp?workspace={key}") for r in (NOW, THEN)]


def together(*functions):
    """Side by side; fails as the first that fails."""
    failed = []

    def run(function):
        try:
            function()
        except BaseException as e:  # pylint: disable=broad-except
            failed.append(e)
    threads = [threading.Thread(target=run, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


def sleeping(seconds):
    """Commands of this test: their argument is in no other."""
    return [p for p in lib.census.pids() if f"sleep\0{seconds}\0" in lib.census.read(f"/proc/{p}/cmdline")]


# ---- the protocol ----------------------------------------------------------------------------

@test("both revisions: who we are, the tools in their order, with schemas and hints")
def _(api):
    now, then = Http(api.daemon.socket, NOW), Http(api.daemon.socket, THEN)
    found = now.result("server/discover")
    check(NOW in found["supportedVersions"] and THEN in found["supportedVersions"], f"versions: {found}")
    same((found["resultType"], found["_meta"][META + "serverInfo"]["name"]), ("complete", "caisson"), "discover")
    check(META + "tasks" in found["capabilities"]["extensions"], "tasks")
    same((then.first["protocolVersion"], then.first["serverInfo"]["name"], then.first["capabilities"]), (THEN, "caisson", {"tools": {}}), "initialize")
    lists = [c.result("tools/list") for c in (now, then)]
    same([t["name"] for t in lists[0]["tools"]], TOOLS, "order")
    same(lists[0]["tools"], lists[1]["tools"], "both lists")
    check(lists[0]["ttlMs"] > 0 and lists[0]["cacheScope"] == "public" and "ttlMs" not in lists[1], "caching")
    for t in lists[0]["tools"]:
        same((t["inputSchema"]["type"], t["outputSchema"]["type"]), ("object", "object"), t["name"])
        check("workspace" in t["inputSchema"]["properties"], t["name"])
        for ref in set(part.split('"')[0] for part in json.dumps(t["outputSchema"]).split('"$ref": "')[1:]):
            check(ref.startswith("#/$defs/") and ref[8:] in t["outputSchema"]["$defs"], f"{t['name']}: {ref}")
        same(t["annotations"]["readOnlyHint"], t["name"] in ("read", "glob", "grep"), t["name"])
    bound = Http(api.daemon.socket, NOW, target="/mcp?workspace=x").result("tools/list")["tools"]
    check(all("workspace" not in t["inputSchema"]["properties"] for t in bound), "a bound server asks for no workspace")
    same(then.result("ping"), {}, "ping")


@test("what breaks the rules of a revision has that revision's code and status")
def _(api):
    now, then, tasks = Http(api.daemon.socket, NOW), Http(api.daemon.socket, THEN), Http(api.daemon.socket, NOW, capabilities=TASKS)
    rows = [
        (now, "no/such", {}, {}, 404, -32601), (then, "no/such", {}, {}, 200, -32601),
        (now, "initialize", {}, {}, 404, -32601), (now, "ping", {}, {}, 404, -32601), (then, "server/discover", {}, {}, 400, -32602),
        (now, "tools/call", {"name": "nothing"}, {}, 400, -32602), (then, "tools/call", {"name": "nothing"}, {}, 200, -32602),
        (now, "tools/call", {"name": "bash", "arguments": []}, {}, 400, -32602),
        (now, "tools/list", {}, {"Mcp-Method": "tools/call"}, 400, -32020), (now, "tools/list", {}, {"MCP-Protocol-Version": THEN}, 400, -32020),
        (now, "tools/call", {"name": "read"}, {"Mcp-Name": "write"}, 400, -32020), (then, "tools/list", {}, {"MCP-Protocol-Version": "1999-01-01"}, 400, -32022),
        (now, "tools/call", {"name": "read", "requestState": "ask-0"}, {}, 400, -32602),
        (now, "tasks/get", {"taskId": "px_none"}, {}, 400, -32021), (tasks, "tasks/get", {"taskId": "px_none"}, {}, 400, -32602),
        (tasks, "tasks/get", {"taskId": "../x"}, {}, 400, -32602), (tasks, "tasks/cancel", {"taskId": "px_none"}, {}, 400, -32602),
        (tasks, "tasks/list", {}, {}, 404, -32601), (tasks, "tasks/get", {"taskId": "px_none"}, {"Mcp-Name": "px_other"}, 400, -32020),
    ]
    for c, method, params, headers, status, code in rows:
        client, response = c.send(method, params, headers)
        got = list(messages_of(response))[-1]
        same((response.status, got.get("error", {}).get("code")), (status, code), f"{c.revision} {method} {params} {headers}: {got}")
        check("id" in got, f"{got}")
        client.close()
    encoded = {"Mcp-Name": "=?base64?cmVhZA==?="}
    check("file_path is needed" in json.dumps(list(messages_of(now.send("tools/call", {"name": "read"}, encoded)[1]))), "a header may be encoded")
    for body, status, code in ((b"{", 400, -32700), (b"[]", 400, -32600), (b'{"jsonrpc":"2.0","id":1}', 400, -32600)):
        answer = api.client.call("POST", "/mcp", body)
        same((answer.status, answer.json["error"]["code"]), (status, code), body)
    answer = api.client.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    same((answer.status, answer.body), (202, b""), "a notification")
    same([api.client.call(m, "/mcp").status for m in ("GET", "DELETE")], [405, 405], "other methods")
    same(api.client.post("/mcp?worspace=x", {}).status, 400, "a parameter that is none")
    same(api.client.post("/mcp?conformance", {"jsonrpc": "2.0", "id": 1, "method": "ping"}).json["error"]["code"], -32600, "the fixtures of the tests are elsewhere")


@test("hostile: names, numbers and tokens that are none")
def _(api):
    pid, key = api.daemon.pid, workspace(api, "mcp-hostile")
    state = "ask-0." + "9" * 15 + "." + "0" * 64
    odd = Http(api.daemon.socket, NOW, target="/mcp?workspace=%ff")
    same(odd.all("tools/call", {"name": "bash", "arguments": {}, "requestState": state})[-1]["error"]["code"], -32600, "a name that is not UTF-8")
    now = Http(api.daemon.socket, NOW, target=f"/mcp?workspace={key}")
    for token in ({}, [], True, "x" * 257):
        same(now.all("tools/list", progressToken=token)[-1]["error"]["code"], -32602, f"{token}")
    for token in (1, 1.5, None, "x" * 256):
        check("result" in now.all("tools/list", progressToken=token)[-1], f"{token}")
    huge = 2**63 - 1
    now.ok("write", file_path="f", content="one\ntwo\n")
    for arguments in ({"offset": huge}, {"offset": huge - 1023, "limit": 2000}, {"offset": huge, "limit": huge}, {"view_range": [1, huge]}, {"view_range": [huge, huge]},
                      {"view_range": [-huge, huge]}, {"view_range": ["a", {}]}, {"offset": -huge}, {"limit": 0}):
        now.tool("read", file_path="f", **arguments)
    same(now.ok("read", file_path="f", offset=2.0, limit=1.0)[1], "     2\ttwo\n", "2.0 is 2")
    same(now.ok("read", file_path="f", view_range=[1.0, 1.0])[0]["lines"], 1, "there too")
    check("an integer" in now.refused("read", file_path="f", offset=1.5), "1.5 is none")
    long = "/".join(["\u2603" * 80] * 12)
    check("too long" in now.refused("write", file_path=long, content="x"), "a name that does not fit is not another, shorter one")
    same(now.ok("glob", pattern="**")[1], "/work/f\n", "nothing was written")
    check("too long" in now.refused("git", action="diff", paths=["x" * 9000]), "nor looked at")
    deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 100000 + b"]" * 100000 + b"}}"
    same(api.client.call("POST", "/mcp", deep).status, 400, "deep")
    for body in (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', b'{"jsonrpc":"2.0","id":"' + b"x" * 300 + b'","method":"ping"}',
                 b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', b"null", b'"x"', b"[]", b"\xff"):
        same(api.client.call("POST", "/mcp", body).status, 400, body)
    same(api.daemon.pid, pid, "the daemon is the same")
    remove(api, key)


# ---- tools -----------------------------------------------------------------------------------

def limited(c, folder):
    """The object of grep is what was asked for, as the text is: there are clients that show only one of both."""
    for name in "ab":
        c.ok("write", file_path=f"{folder}/{name}", content="0\nx1\n2\nx3\n4\n")

    def said(**more):
        found, text = c.ok("grep", pattern="x", path=folder, **more)
        return [(m["path"][-1], m["line"], m.get("before", []), m.get("after", []), m.get("count")) for m in found["matches"]], found["truncated"], text.count("\n")
    same(said(), ([("a", 2, [], [], None), ("b", 2, [], [], None)], False, 2), "one of each file")
    same(said(head_limit=1), ([("a", 2, [], [], None)], True, 2), "one file")
    same(said(output_mode="count"), ([("a", 2, [], [], 2), ("b", 2, [], [], 2)], False, 2), "counts")
    same(said(output_mode="content", head_limit=3), ([("a", 2, [], [], None), ("a", 4, [], [], None), ("b", 2, [], [], None)], True, 4), "lines")
    same(said(output_mode="content", head_limit=2, **{"-A": 1})[0], [("a", 2, [], ["2"], None)], "after, and nothing before")
    same(said(output_mode="content", head_limit=2, **{"-B": 1})[0], [("a", 2, ["0"], [], None)], "before")


@test("files: write, read, edit, glob, grep; what is wrong is said to the model")
def _(api):
    for i, c in enumerate(clients(api, workspace(api, "mcp-files"))):
        made, _ = c.ok("write", file_path=f"/work/d{i}/a.txt", content="one\ntwo\nthree ☃\n")
        check(made["created"] and made["bytes"] == 18, f"{made}")
        lines, text = c.ok("read", file_path=f"d{i}/a.txt")
        same((lines["total_lines"], text), (3, "     1\tone\n     2\ttwo\n     3\tthree ☃\n"), "read")
        same(c.ok("read", file_path=f"/work/d{i}/a.txt", offset=2, limit=1)[1].split("\n")[0], "     2\ttwo", "a line")
        same(c.ok("read", file_path=f"/work/d{i}/a.txt", view_range=[3, -1])[0]["first"], 3, "a range")
        same(c.ok("edit", file_path=f"d{i}/a.txt", old_string="two", new_string="2")[0]["replaced"], 1, "edit")
        check("ambiguous_match" in c.refused("edit", file_path=f"d{i}/a.txt", old_string="e", new_string="E"), "ambiguous")
        check("no_match" in c.refused("edit", file_path=f"d{i}/a.txt", old_string="absent", new_string="E"), "no match")
        same(c.ok("edit", file_path=f"d{i}/a.txt", old_string="e", new_string="E", replace_all=True)[0]["replaced"], 3, "all")
        same(c.ok("glob", pattern=f"d{i}/*.txt")[1], f"/work/d{i}/a.txt\n", "glob")
        same(c.ok("grep", pattern="thr", path=f"/work/d{i}", **{"-i": True})[1], f"/work/d{i}/a.txt\n", "grep: files")
        same(c.ok("grep", pattern="thr", path=f"d{i}", output_mode="content", **{"-B": 1})[1], f"/work/d{i}/a.txt-2-2\n/work/d{i}/a.txt:3:thrEE ☃\n", "grep: content")
        same(c.ok("grep", pattern="E", path=f"d{i}", output_mode="count")[1], f"/work/d{i}/a.txt:2\n", "grep: count")
        limited(c, f"g{i}")
        check("not_found" in c.refused("read", file_path="/work/none"), "not found")
        check("outside" in c.refused("read", file_path="/etc/passwd"), "outside")
        check("is needed" in c.refused("read"), "an argument is missing")
        check("unknown argument" in c.refused("read", file_path="x", no=1), "an unknown one")
        check("a string" in c.refused("read", file_path=5), "a wrong one")
        check("bound to" in c.refused("read", file_path="x", workspace="another"), "another workspace")
    free = Http(api.daemon.socket, NOW)
    check("which one" in free.refused("read", file_path="x"), "no workspace")
    same(free.ok("read", file_path="d0/a.txt", workspace="mcp-files")[0]["lines"], 3, "one that is named")
    remove(api, "mcp-files")


@test("bash: the shell lasts, restart, codes, timeout, side by side, background and process")
def _(api):
    for c in clients(api, workspace(api, "mcp-bash")):
        same(c.ok("bash", command="cd /tmp; export x=7; echo hi")[1], "hi\n", "first")
        same(c.ok("bash", command="pwd; echo $x")[1], "/tmp\n7\n", "it lasts")
        same(c.ok("bash", restart=True)[0]["state"], "exited", "restart")
        same(c.ok("bash", command="pwd; echo [$x]")[1], "/work\n[]\n", "a new one")
        px, text = c.ok("bash", command="echo no >&2; false")
        same((px["exit_code"], text), (1, "no\n[exit code 1]\n"), "a code")
        px, text = c.ok("bash", command="sleep 61", timeout=300)
        same(px["state"], "timeout", text)
        results = [None, None]

        def side(i, c=c, results=results):
            results[i] = c.ok("bash", command=f"sleep 0.5; echo {i}")[1]
        threads = [threading.Thread(target=side, args=(i,)) for i in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        same(results, ["0\n", "1\n"], "side by side")
        px, text = c.ok("bash", command="read line; echo got $line; sleep 62", run_in_background=True)
        check(px["state"] in ("queued", "running") and px["id"] in text, text)
        c.ok("process", id=px["id"], action="stdin", chars="it\n")
        wait_until(lambda: "got it" in c.ok("process", id=px["id"])[1])
        same(c.ok("process", id=px["id"], action="kill", wait_ms=40000)[0]["state"], "killed", "kill")
        check("not_found" in c.refused("process", id="px_none"), "none")


@test("git and workspace: status, diff, log, commit; history, undo, snapshot, restore, fork")
def _(api):
    c = clients(api, workspace(api, "mcp-git"))[0]
    c.ok("bash", command="git init -q -b main . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m first")
    c.ok("write", file_path="f", content="1\n")
    check("f" in c.ok("git", action="status")[1], "status")
    sha = c.ok("git", action="commit", message="second")[0]["sha"]
    same(len(sha), 40, "commit")
    check("second" in c.ok("git", action="log", limit=1)[1], "log")
    snapshot = c.ok("workspace", action="snapshot", label="s")[0]["id"]
    c.ok("write", file_path="f", content="2\n")
    check("+2" in c.ok("git", action="diff", base=sha)[1], "diff")
    c.ok("bash", command="seq 100000 >many; mkdir -p d; cd d; seq -f 'file-%g' 1100 | xargs touch")
    patch, text = c.ok("git", action="diff", base=sha, paths=["many"])
    check(len(patch["patch"]) < 50000 and "left out" in patch["patch"] and patch["patch"] == text, "a long one is cut, in both")
    check("one text" in c.refused("git", action="diff", paths=["f", "many"]), "one at a time")
    changed, text = c.ok("git", action="status")
    check(len(changed["files"]) == 1000 and changed["files_left_out"] > 0 and "files in all" in text, lambda: text[-100:])
    c.ok("workspace", action="undo")
    c.ok("workspace", action="undo")
    same(c.ok("read", file_path="f")[0]["text"], "1\n", "undo")
    c.ok("bash", command="rm f")
    c.ok("workspace", action="restore", to=snapshot)
    same(c.ok("read", file_path="f")[0]["text"], "1\n", "restore")
    same(c.ok("workspace", action="info")[0]["key"], "mcp-git", "info")
    check(len(c.ok("workspace", action="history")[0]) > 0, "history")
    forks = c.ok("workspace", action="fork", n=2)[0]["workspaces"]
    same(len(forks), 2, "fork")
    check(c.refused("git", action="push"), "there is no repository to push to")
    check("action" in c.refused("workspace", action="no"), "no such action")
    remove(api, "mcp-git", *[lib.id_of(f) for f in forks])


# ---- time ------------------------------------------------------------------------------------

@test("progress is told while a command runs; a task is its process, and can be cancelled")
def _(api):
    key = workspace(api, "mcp-time")

    def told(c):
        found = c.all("tools/call", {"name": "bash", "arguments": {"command": "echo begun; sleep 8"}}, progressToken="p1")
        told = [m["params"] for m in found if m.get("method") == "notifications/progress"]
        check(told and all(t["progressToken"] == "p1" for t in told) and "begun" in [t["message"] for t in told], f"{found}")
        same(found[-1]["result"]["structuredContent"]["exit_code"], 0, "result")

    def task(c):
        wait_until(lambda: c.tool("bash", command="echo quick")["resultType"] == "complete", what="what is quick is no task")
        task = c.tool("bash", command="sleep 4; echo slow")
        same((task["resultType"], task["status"]), ("task", "working"), f"{task}")
        check(type(task["ttlMs"]) is int and type(task["pollIntervalMs"]) is int and "result" not in task, f"{task}")
        done = wait_until(lambda: (t := c.result("tasks/get", {"taskId": task["taskId"]}))["status"] != "working" and t)
        same((done["status"], done["result"]["content"][0]["text"]), ("completed", "slow\n"), "completed")
        same(c.result("tasks/cancel", {"taskId": task["taskId"]}), {"resultType": "complete"}, "what has ended is cancelled as well")

    def cancelled(c):
        task = c.tool("bash", command="sleep 63")
        same(c.result("tasks/cancel", {"taskId": task["taskId"]}), {"resultType": "complete"}, "the word that it was heard")
        same(wait_until(lambda: (t := c.result("tasks/get", {"taskId": task["taskId"]}))["status"] != "working" and t)["status"], "cancelled", "cancelled")

    tasks = [Http(api.daemon.socket, NOW, target=f"/mcp?workspace={key}", capabilities=TASKS) for _ in range(2)]
    together(*[lambda c=c: told(c) for c in clients(api, key)], lambda: task(tasks[0]), lambda: cancelled(tasks[1]))
    other = Http(api.daemon.socket, NOW, target=f"/mcp?workspace={workspace(api, 'mcp-other')}", capabilities=TASKS)
    foreign = tasks[0].ok("bash", command="true")[0]["id"]
    check("not_found" in other.refused("process", id=foreign), "a process of another workspace is not there")
    same(other.all("tasks/get", {"taskId": foreign})[-1]["error"]["code"], -32602, "nor is its task")
    same(Http(api.daemon.socket, NOW).ok("process", id=foreign)[0]["id"], foreign, "who is not bound has both")


def begin(c, command, id):
    """Sent, and nothing is waited for."""
    params, headers = {"name": "bash", "arguments": {"command": command}}, {"Accept": "application/json, text/event-stream"}
    if c.revision == NOW:
        params["_meta"] = {META + "protocolVersion": NOW, META + "clientCapabilities": {}}
        headers.update({"MCP-Protocol-Version": NOW, "Mcp-Method": "tools/call", "Mcp-Name": "bash"})
    else:
        headers["Mcp-Session-Id"] = c.session
    client = Client(c.address)
    client.connection.request("POST", c.target, json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}), headers)
    return client


@test("cancel: who hangs up, or takes it back, ends his command and no other")
def _(api):
    key = workspace(api, "mcp-cancel")

    def taken_back(c, seconds):
        client = begin(c, f"sleep {seconds}", 77)
        wait_until(lambda: sleeping(seconds), 10, "the command")
        if c.revision == NOW:
            client.close()
        else:
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
            same(api.client.call("POST", "/mcp", message, {"Mcp-Session-Id": c.session}).status, 202, "cancelled")
            response = client.connection.getresponse()
            same((response.status, list(messages_of(response))), (200, []), "nothing more is said of it")
        wait_until(lambda: not sleeping(seconds), 10, "its end")
        client.close()

    def left_alone(c):
        same(c.ok("bash", command="sleep 1.5")[0]["exit_code"], 0, "another command")
    now, then = clients(api, key)
    together(lambda: taken_back(now, 64), lambda: taken_back(then, 65), lambda: left_alone(now), lambda: left_alone(then))


@test("cancel: who takes back a look at a process does not end it")
def _(api):
    now = clients(api, workspace(api, "mcp-looked"))[0]
    px = now.ok("bash", command="sleep 68", run_in_background=True)[0]["id"]
    params = {"name": "process", "arguments": {"id": px, "action": "signal", "signal": "CONT"}, "_meta": {META + "protocolVersion": NOW, META + "clientCapabilities": {}}}
    headers = {"MCP-Protocol-Version": NOW, "Mcp-Method": "tools/call", "Mcp-Name": "process"}
    for i in range(200):
        c = Client(now.address)
        c.connection.request("POST", now.target, json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": params}), headers)
        time.sleep(i % 20 / 20000)
        c.close()
    same(now.ok("process", id=px)[0]["state"], "running", "it runs")
    same(now.ok("process", id=px, action="kill", wait_ms=5000)[0]["state"], "killed", "until somebody ends it")


# ---- people ----------------------------------------------------------------------------------

def pending(client, what):
    return wait_until(lambda: [a for a in client.ok("GET", "/v1/approvals?state=pending")["approvals"] if a["what"] == f"run {what}"], what=what)[0]


def decision(word):
    return {"action": "accept", "content": {"decision": word}}


GATE = {"gate": {"commands": ["touch asked-*"]}}


@test("approvals: the person at the client is asked, and his word is the queue's")
def _(api):
    key = workspace(api, "mcp-ask", spec=GATE)
    now = Http(api.daemon.socket, NOW, target=f"/mcp?workspace={key}", capabilities={"elicitation": {}})
    then = Http(api.daemon.socket, THEN, target=f"/mcp?workspace={key}", capabilities={"elicitation": {"form": {}}})

    def newer(word):
        params = {"name": "bash", "arguments": {"command": f"touch asked-{word[:4]}", "run_in_background": False}}
        first = now.result("tools/call", params)
        same(first["resultType"], "input_required", f"{first}")
        form = first["inputRequests"]["approve"]
        check(form["method"] == "elicitation/create" and f"touch asked-{word[:4]}" in form["params"]["message"], f"{form}")
        state, yes = first["requestState"], {"approve": decision(word)}
        wrong = [dict(params, arguments={"command": "true"}, requestState=state, inputResponses=yes), dict(params, name="read", requestState=state, inputResponses=yes),
                 dict(params, requestState=state[:-1] + ("0" if state[-1] != "0" else "1"), inputResponses=yes), dict(params, requestState=state.replace(".", ".9", 1), inputResponses=yes),
                 dict(params, requestState=state)]
        for w in wrong:
            same(now.all("tools/call", w)[-1]["error"]["code"], -32602, f"{w}")
        other = Http(api.daemon.socket, NOW, target="/mcp", capabilities={"elicitation": {}})
        same(other.all("tools/call", dict(params, requestState=state, inputResponses=yes))[-1]["error"]["code"], -32602, "of a server that is bound otherwise")
        again = now.result("tools/call", dict(params, requestState=state, inputResponses={}))
        same(again["resultType"], "input_required", "who says nothing is asked once more")
        whole = dict(params, requestState=again["requestState"], inputResponses=yes)
        result = now.result("tools/call", whole)["structuredContent"]
        same(result["exit_code"] == 0 and result["state"] == "exited", word == "allow once", f"{result}")
        same(now.all("tools/call", whole)[-1]["error"]["code"], -32602, "it is good once")

    def older():
        client, response = then.send("tools/call", {"name": "bash", "arguments": {"command": "touch asked-then"}})
        messages = messages_of(response)
        request = next(m for m in messages if "method" in m and "id" in m)
        same(request["method"], "elicitation/create", f"{request}")
        own = api.daemon.client()
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": decision("allow once")}
        same(own.post("/mcp", answer).status, 202, "an answer of somebody who was not asked")
        check(pending(own, "touch asked-then"), "changes nothing")
        same(own.post("/mcp", answer, Mcp_Session_Id=then.session).status, 202, "the answer")
        same(list(messages)[-1]["result"]["structuredContent"]["exit_code"], 0, "and it ran")
        client.close()
        own.close()
    together(lambda: newer("allow once"), lambda: newer("deny"), older)
    decisions = [(a["state"], a["actor"]) for a in api.client.ok("GET", "/v1/approvals?state=allowed&kind=command")["approvals"]]
    same(decisions, [("allowed", "uid:0")] * 2, "on record, with who it was")


@test("approvals: who cannot be asked is told what is pending; a task asks by itself")
def _(api):
    key = workspace(api, "mcp-held", spec=GATE)
    target = f"/mcp?workspace={key}"

    def told(revision, capabilities):
        c, own = Http(api.daemon.socket, revision, target=target, capabilities=capabilities), api.daemon.client()
        px, text = c.ok("bash", command=f"touch asked-{revision}")
        a = pending(own, f"touch asked-{revision}")
        check(f"approval {a['id']} is pending" in text and px["state"] in ("running", "awaiting_approval"), text)
        check(a["id"] in px["note"], "and in the object")
        own.ok("POST", f"/v1/approvals/{a['id']}", {"decision": "allow"})
        same(c.ok("process", id=px["id"], wait_ms=40000)[0]["exit_code"], 0, "it went on")
        own.close()

    def task():
        c = Http(api.daemon.socket, NOW, target=target, capabilities={**TASKS, "elicitation": {}})
        made = c.tool("bash", command="touch asked-task")
        same(made["resultType"], "task", f"{made}")
        got = wait_until(lambda: (t := c.result("tasks/get", {"taskId": made["taskId"]}))["status"] != "working" and t)
        [(name, question)] = got["inputRequests"].items()
        check(got["status"] == "input_required" and "touch asked-task" in question["params"]["message"], f"{got}")
        blind = Http(api.daemon.socket, NOW, target=target, capabilities=TASKS)
        same("inputRequests" in blind.result("tasks/get", {"taskId": made["taskId"]}), False, "who cannot ask is not made to")
        for answers in ({"ap_other": decision("allow once")}, {name: {"action": "cancel"}}):
            same(c.result("tasks/update", {"taskId": made["taskId"], "inputResponses": answers}), {"resultType": "complete"}, "what is no answer to it")
            same(c.result("tasks/get", {"taskId": made["taskId"]})["status"], "input_required", "changes nothing")
        same(c.result("tasks/update", {"taskId": made["taskId"], "inputResponses": {name: decision("allow once")}}), {"resultType": "complete"}, "the answer")
        done = wait_until(lambda: (t := c.result("tasks/get", {"taskId": made["taskId"]}))["status"] not in ("working", "input_required") and t)
        same((done["status"], done["result"]["structuredContent"]["exit_code"]), ("completed", 0), f"{done}")
    together(lambda: told(NOW, {}), lambda: told(THEN, {"elicitation": {"url": {}}}), task)


@test("approvals: who dismisses the question leaves it to others, and the model hears of it")
def _(api):
    key = workspace(api, "mcp-dismissed", spec=GATE)
    target, elicitation = f"/mcp?workspace={key}", {"elicitation": {}}

    def told(result, word, own):
        a = pending(own, f"touch asked-{word}")
        check(a["id"] in result["structuredContent"]["note"] and a["id"] in result["content"][0]["text"], f"{result}")
        own.ok("POST", f"/v1/approvals/{a['id']}", {"decision": "deny"})
        own.close()

    def newer():
        c, params = Http(api.daemon.socket, NOW, target=target, capabilities=elicitation), {"name": "bash", "arguments": {"command": "touch asked-newer"}}
        state = c.result("tools/call", params)["requestState"]
        told(c.result("tools/call", dict(params, requestState=state, inputResponses={"approve": {"action": "cancel"}})), "newer", api.daemon.client())

    def older(word, answer):
        c, own = Http(api.daemon.socket, THEN, target=target, capabilities=elicitation), api.daemon.client()
        client, response = c.send("tools/call", {"name": "bash", "arguments": {"command": f"touch asked-{word}"}})
        messages = messages_of(response)
        request = next(m for m in messages if "method" in m and "id" in m)
        same(own.post("/mcp", {"jsonrpc": "2.0", "id": request["id"], **answer}, Mcp_Session_Id=c.session).status, 202, "the answer")
        told(list(messages)[-1]["result"], word, own)
        client.close()
    together(newer, lambda: older("cancel", {"result": {"action": "cancel"}}), lambda: older("error", {"error": {"code": -32601, "message": "no"}}))


@test("approvals: of one client so many calls wait, and others are told at once", own=True)
def _(_api):
    d = Daemon("away").start()
    admin = d.client()
    admin.ok("PUT", "/v1/workspaces/w", {"spec": GATE})
    results = []

    def call(i):
        c = Http(d.socket, NOW, target="/mcp?workspace=w", capabilities={"elicitation": {}})
        results.append(c.tool("bash", command=f"touch asked-{i}"))
    call(0)
    together(*[lambda i=i: call(i) for i in range(1, 35)])
    same(sorted(r["resultType"] for r in results), ["complete"] * 3 + ["input_required"] * 32, "how many wait")
    check(all("is pending" in r["structuredContent"]["note"] for r in results if r["resultType"] == "complete"), f"{results}")
    admin.remove_all()
    admin.ok("DELETE", "/v1/workspaces/w?force=1")
    d.wait_clean()
    d.stop()


@test("a token may with tools what it may without: its scope, and its tenant", own=True)
def _(_api):
    d = Daemon("tokens", options=["--listen", "127.0.0.1:0"]).start()
    admin = d.client()
    admin.ok("PUT", "/v1/workspaces/w", {"spec": GATE})
    tokens = {scope: admin.ok("POST", "/v1/tokens", {"scope": scope.split()})["token"] for scope in ("read", "exec", "exec approve")}
    stranger = admin.ok("POST", "/v1/tokens", {"scope": "manage", "tenant": "other"})["token"]
    address = ("127.0.0.1", d.port())
    tools = {name: Http(address, NOW, token=t, target="/mcp?workspace=w", capabilities={"elicitation": {}}) for name, t in {**tokens, "stranger": stranger}.items()}
    tools["exec"].ok("write", file_path="f", content="x")
    same(tools["read"].ok("read", file_path="f")[0]["text"], "x", "read")
    check("forbidden" in tools["read"].refused("write", file_path="f", content="y"), "read does not write")
    check("forbidden" in tools["exec"].refused("workspace", action="fork"), "exec does not manage")
    check("not_found" in tools["stranger"].refused("read", file_path="f"), "another tenant's is not there")
    for name, is_allowed in (("exec", False), ("exec approve", True)):
        params = {"name": "bash", "arguments": {"command": f"touch asked-{name[5:]}"}}
        first = tools[name].result("tools/call", params)
        whole = dict(params, requestState=first["requestState"], inputResponses={"approve": decision("allow once")})
        for who in tools:
            if who != name:
                same(tools[who].all("tools/call", whole)[-1]["error"]["code"], -32602, f"{who} answers for {name}")
        result = tools[name].result("tools/call", whole)
        a = admin.ok("GET", "/v1/approvals?limit=1")["approvals"][0]
        same(a["state"], "allowed" if is_allowed else "pending", f"{name}: {a}")
        check(is_allowed or f"approval {a['id']} is pending" in result["content"][0]["text"], f"{result}")
        same(result["structuredContent"]["exit_code"], 0 if is_allowed else None, f"{result}")
    task = Http(address, NOW, token=tokens["exec"], target="/mcp?workspace=w", capabilities={**TASKS, "elicitation": {}})
    made = task.tool("bash", command="touch asked-by-task")
    [name] = wait_until(lambda: task.result("tasks/get", {"taskId": made["taskId"]}).get("inputRequests"))
    refused = task.all("tasks/update", {"taskId": made["taskId"], "inputResponses": {name: decision("allow once")}})[-1]
    check("scope approve" in refused["error"]["message"], f"{refused}")
    same(admin.ok("GET", f"/v1/approvals/{name}")["state"], "pending", "nor by a task")
    reader = Http(address, NOW, token=tokens["read"], target="/mcp?workspace=w", capabilities=TASKS)
    check("scope exec" in reader.all("tasks/cancel", {"taskId": made["taskId"]})[-1]["error"]["message"], "read does not cancel")
    same(Client(address).call("POST", "/mcp", {}).status, 401, "no token")
    same(Client(address, token=tokens["read"]).call("POST", "/mcp", {}, {"Origin": "http://evil.example.org"}).status, 403, "another origin")
    admin.remove_all()
    admin.ok("DELETE", "/v1/workspaces/w?force=1")
    d.wait_clean()
    d.stop()


# ---- stdio -----------------------------------------------------------------------------------

@test("caisson mcp: both revisions on one line each, side by side, taken back; nothing else is said")
def _(api):
    s = Stdio(api.daemon, "--key", "mcp-stdio")
    s.say("initialize", {"protocolVersion": THEN, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}, id=0)
    same(s.hear()["result"]["protocolVersion"], THEN, "initialize")
    s.say("notifications/initialized")
    s.say("tools/call", {"name": "bash", "arguments": {"command": "sleep 66"}}, id="slow")
    wait_until(lambda: sleeping(66), 10)
    s.say("tools/call", {"name": "bash", "arguments": {"command": "echo quick"}}, id="quick")
    answer = s.hear()
    same((answer["id"], answer["result"]["content"][0]["text"]), ("quick", "quick\n"), "side by side")
    s.say("notifications/cancelled", {"requestId": "slow"})
    wait_until(lambda: not sleeping(66), 10, "it is taken back")
    meta = {META + "protocolVersion": NOW, META + "clientCapabilities": {}}
    s.say("server/discover", {"_meta": meta}, id=5)
    same(s.hear()["result"]["resultType"], "complete", "the other revision")
    s.say("tools/call", {"name": "bash", "arguments": {"command": "echo begun; sleep 4"}, "_meta": {**meta, "progressToken": 9}}, id=6)
    same(s.hear()["method"], "notifications/progress", "progress")
    while "id" not in (last := s.hear()):
        pass
    same((last["id"], last["result"]["structuredContent"]["exit_code"]), (6, 0), "result")
    s.raw("not JSON")
    same(s.hear()["error"]["code"], -32700, "no JSON")
    s.say("no/such", id=7)
    same(s.hear()["error"]["code"], -32601, "no method")
    s.process.stdin.write('{"jsonrpc":"2.0","id":8,"method":"ping"}')
    status, [last] = s.end()
    same((status, json.loads(last)), (0, {"jsonrpc": "2.0", "id": 8, "result": {}}), "a last line without an end, and the end")
    none = Stdio(api.daemon, "--workspace", "none-of-this-key")
    same((none.process.wait(lib.PATIENCE) != 0, none.end()[1]), (True, []), "no such workspace")
    check("no such workspace" in none.process.stderr.read(), "and it is said")


@test("caisson mcp: a daemon that dies is said to be lost, and the next call has another", own=True)
def _(_api):
    d = Daemon("lost").start()
    s = Stdio(d, "--key", "w")
    s.say("tools/call", {"name": "bash", "arguments": {"command": "sleep 67"}}, id=1)
    wait_until(lambda: sleeping(67), 10)
    os.kill(d.pid, signal.SIGKILL)
    same(s.hear()["error"]["message"], "the daemon closed the connection", "the call")
    wait_until(d.is_ready, 15, "another daemon")
    s.say("ping", id=2)
    same(s.hear()["result"], {}, "the next one")
    same(s.end()[0], 0, "the end")
    admin = d.client()
    admin.remove_all()
    admin.ok("DELETE", "/v1/workspaces/w?force=1")
    d.wait_clean()
    d.stop()


@test("without a daemon one is started, for an ordinary user; and again when it has ended meanwhile", own=True)
def _(_api):
    home = lib.HOME / "user"
    home.mkdir()
    os.chown(home, lib.USER_ID, lib.USER_ID)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "XDG_STATE_HOME": str(home)}
    s = Stdio(None, "--key", "task-1", env=env, user=lib.USER_ID)
    s.say("initialize", {"protocolVersion": THEN, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}, id=0)
    same(s.hear()["result"]["serverInfo"]["name"], "caisson", "it answers")
    for i in (1, 2):
        s.say("tools/call", {"name": "bash", "arguments": {"command": "echo $((++n)) >>said; cat said"}}, id=i)
        answer = s.hear()
        same(answer["result"]["content"][0]["text"], "1\n" * i, f"{answer}")
        [socket] = home.rglob("api.sock")
        client = Client(socket)
        client.remove_all()
        if i == 2:
            client.ok("DELETE", "/v1/workspaces/task-1?force=1")
        client.close()
        stop_daemon_of(home, is_last=i == 2)
    same(s.end()[0], 0, "the end")
    shutil.rmtree(home)


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
