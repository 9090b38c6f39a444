"""tour.py - the protocol's own Python package as a client of ours, as it comes from its registry.

    tour.py auto|legacy stdio WORKSPACE    with $CAISSON, the program
    tour.py auto|legacy http URL           with $TOKEN
"""
import asyncio
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

MODE, KIND, WHERE = sys.argv[1:]
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
TOOLS = ["bash", "read", "write", "edit", "glob", "grep", "process", "git", "workspace"]


def same(got, expected, what):
    assert got == expected, f"{what}: {got!r}, expected {expected!r}"


def server():
    if KIND == "stdio":
        names = ("CAISSON_SOCKET", "PATH", "HOME")
        return StdioServerParameters(command=os.environ["CAISSON"], args=["mcp", "--workspace", WHERE], env={n: os.environ[n] for n in names})
    return streamable_http_client(WHERE, http_client=httpx2.AsyncClient(headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}, timeout=30))


async def tour():
    asked, told = [], []

    async def elicit(_context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"decision": "allow once"})

    async def progress(*what):
        told.append(what)

    async with Client(server(), mode=MODE, elicitation_callback=elicit) as c:
        same(c.protocol_version, VERSIONS[MODE], "revision")
        same(c.server_info.name, "caisson", "who")
        same([t.name for t in (await c.list_tools()).tools], TOOLS, "tools")
        done = await c.call_tool("bash", {"command": "echo begun; sleep 1.3; echo hi"}, progress_callback=progress)
        same((done.structured_content["exit_code"], done.content[0].text), (0, "begun\nhi\n"), "bash")
        assert told and told[0][2] == "begun", told
        made = await c.call_tool("write", {"file_path": f"{MODE}-{KIND}", "content": "one\ntwo\n"})
        same(made.structured_content["bytes"], 8, "write")
        same((await c.call_tool("read", {"file_path": f"/work/{MODE}-{KIND}"})).structured_content["text"], "one\ntwo\n", "read")
        same((await c.call_tool("edit", {"file_path": f"{MODE}-{KIND}", "old_string": "two", "new_string": "2"})).structured_content["replaced"], 1, "edit")
        assert f"{MODE}-{KIND}" in (await c.call_tool("glob", {"pattern": "*"})).content[0].text
        assert f"{MODE}-{KIND}:2:2" in (await c.call_tool("grep", {"pattern": "2", "output_mode": "content"})).content[0].text
        wrong = await c.call_tool("read", {"file_path": "none"})
        assert wrong.is_error and "not_found" in wrong.content[0].text, wrong
        done = await c.call_tool("bash", {"command": f"touch asked-{MODE}-{KIND}"})
        same((len(asked), done.structured_content["exit_code"]), (1, 0), f"asked: {asked}, {done}")
        assert f"touch asked-{MODE}-{KIND}" in asked[0], asked
        same((await c.call_tool("workspace", {"action": "info"})).structured_content["state"], "ready", "workspace")
        try:
            await asyncio.wait_for(c.call_tool("bash", {"command": "sleep 67"}), 1)
            raise AssertionError("not cancelled")
        except asyncio.TimeoutError:
            pass
        for _ in range(100):
            left = await c.call_tool("bash", {"command": "pgrep -x -f 'sleep 67' || true"})
            if left.content[0].text.strip() in ("", "[no output]"):
                break
            await asyncio.sleep(0.05)
        same(left.content[0].text.strip(), "[no output]", "what was taken back has ended")
    print("end")


asyncio.run(tour())
