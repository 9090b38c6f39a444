"""OpenAI Agents: an agent in a sandbox whose model is scripted, and what a session has to be able to do."""
import io
import json
from pathlib import Path

import pytest
from agents import Model, ModelResponse, RunConfig, Runner, Usage, set_tracing_disabled
from agents.sandbox import Manifest, SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Shell
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import (ExecTimeoutError, ExecTransportError, PtySessionNotFoundError, WorkspaceArchiveReadError,
                                   WorkspaceArchiveWriteError, WorkspaceReadNotFoundError)
from agents.sandbox.snapshot import LocalSnapshotSpec
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from caisson import Client, errors
from caisson.adapters.openai_agents import CaissonSandboxClient, CaissonSandboxClientOptions

set_tracing_disabled(True)


class Scripted(Model):
    """Asks for these commands, one after the other, and keeps what came back."""

    def __init__(self, *commands):
        self.commands, self.answers = list(commands), []

    async def get_response(self, system_instructions, input, model_settings, tools, *args, **kwargs):
        self.answers = [item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        if not self.commands:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            item = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        else:
            arguments = json.dumps({"cmd": self.commands.pop(0)})
            item = ResponseFunctionToolCall(type="function_call", call_id=f"c{len(self.commands)}", name="exec_command", arguments=arguments)
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


async def test_an_agent_with_its_tool():
    model = Scripted("cat notes/a.txt; echo b >made", "cat made; id -un; exit 3")
    agent = SandboxAgent(name="tester", model=model, capabilities=[Shell()], default_manifest=Manifest(entries={
        "notes": Dir(children={"a.txt": File(content=b"of the manifest\n")})}))
    result = await Runner.run(agent, "go", run_config=RunConfig(sandbox=SandboxRunConfig(client=CaissonSandboxClient())))
    assert result.final_output == "done"
    assert "of the manifest" in model.answers[0]
    assert "b\nagent" in model.answers[1] and "exited with code 3" in model.answers[1], model.answers[1]
    assert Client().sandboxes() == []


async def test_a_daemon_that_does_not_answer_costs_no_files(session, monkeypatch):
    """The sandbox is not taken for one that is gone, and an empty one made in its place."""
    id, client = session.state.sandbox_id, CaissonSandboxClient()

    async def silent(*_, **__):
        raise errors.SandboxUnavailable("the daemon does not answer")
    again = await client.resume(session.state)
    with monkeypatch.context() as patch:
        patch.setattr("caisson.adapters.openai_agents.Sandbox.get", silent)
        with pytest.raises(Exception, match="does not answer"):
            await again.start()
        assert not await again.running()
    await again.start()
    assert [one["id"] for one in Client().sandboxes()] == [id]


@pytest.fixture
async def session(tmp_path):
    client = CaissonSandboxClient()
    options = CaissonSandboxClientOptions(spec={"net": "deny"})
    made = await client.create(manifest=Manifest(environment={"value": {"A": "b c"}}), options=options,
                               snapshot=LocalSnapshotSpec(base_path=tmp_path))
    await made.start()
    yield made
    await made.aclose()
    await client.delete(made)
    assert Client().sandboxes() == []


async def test_commands(session):
    done = await session.exec("pwd; echo $A; echo e >&2; exit 7")
    assert (done.stdout, done.stderr, done.exit_code) == (b"/workspace\nb c\n", b"e\n", 7)
    assert (await session.exec("printf", "%s", "a b", shell=False)).stdout == b"a b"
    assert (await session.exec("nosuch", shell=False)).exit_code == 127
    assert (await session.exec("id -un", user="root")).stdout == b"root\n"
    assert (await session.exec("kill -9 $$")).exit_code == 137
    with pytest.raises(ExecTimeoutError):
        await session.exec("sleep 20", timeout=0.5)


async def test_files(session):
    await session.write(Path("d/x"), io.BytesIO(b"\0\xff" * 70000))
    assert (await session.read(Path("d/x"))).read() == b"\0\xff" * 70000
    with pytest.raises(WorkspaceReadNotFoundError):
        await session.read(Path("none"))
    with pytest.raises(WorkspaceArchiveReadError):
        await session.read(Path("d"))
    await session.mkdir("e/f", parents=True)
    assert {Path(one.path).name for one in await session.ls(".")} >= {"d", "e"}
    await session.rm("e", recursive=True)
    assert not (await session.exec("test -e e")).ok()
    await session.write(Path("g/by-name"), io.BytesIO(b"mine"), user="agent")
    assert (await session.read(Path("g/by-name"), user="agent")).read() == b"mine"
    with pytest.raises(WorkspaceArchiveWriteError):  # a root without rights over what is another's
        await session.write(Path("as-root"), io.BytesIO(b"mine"), user="root")
    with pytest.raises(Exception, match="escape|must be"):
        await session.read(Path("/etc/passwd"))


async def test_a_patch(session):
    from agents.editor import ApplyPatchOperation
    await session.apply_patch(ApplyPatchOperation(type="create_file", path="p.txt", diff="+one\n+two"))
    await session.apply_patch(ApplyPatchOperation(type="update_file", path="p.txt", diff="@@\n-one\n+1\n two"))
    assert (await session.exec("cat p.txt")).stdout.split() == [b"1", b"two"]


async def test_a_command_that_goes_on(session):
    first = await session.pty_exec_start("read x; echo got $x; sleep 30", tty=True, yield_time_s=0.3)
    assert first.exit_code is None and first.process_id is not None
    second = await session.pty_write_stdin(session_id=first.process_id, chars="word\n", yield_time_s=1)
    assert b"got word" in second.output and second.exit_code is None
    over = await session.pty_write_stdin(session_id=first.process_id, chars="\x03", yield_time_s=5)
    assert over.exit_code == 130 and over.process_id is None
    with pytest.raises(PtySessionNotFoundError):
        await session.pty_write_stdin(session_id=first.process_id, chars="")
    short = await session.pty_exec_start("echo short; exit 4", yield_time_s=5)
    assert (short.output, short.exit_code) == (b"short\n", 4)
    await session.pty_exec_start("sleep 100", yield_time_s=0.3)  # ended with the session


async def test_resume(session, tmp_path):
    """In the same sandbox while it lives; else from the snapshot."""
    client = CaissonSandboxClient()
    await session.write(Path("kept"), io.BytesIO(b"1"))
    await session.exec("echo outside >/tmp/outside")
    await session.stop()
    state = client.serialize_session_state(session.state)
    again = await client.resume(client.deserialize_session_state(json.loads(json.dumps(state))))
    await again.start()
    assert (await again.exec("cat kept /tmp/outside")).stdout == b"1outside\n"
    Client().call("DELETE", "/v1/sandboxes/{id}", values={"id": state["sandbox_id"]})
    assert not await again.running()
    with pytest.raises(ExecTransportError):
        await again.exec("true")
    new = await client.resume(client.deserialize_session_state(json.loads(json.dumps(state))))
    await new.start()
    done = await new.exec("cat kept; cat /tmp/outside")
    assert (done.stdout, done.exit_code) == (b"1", 1)
    await new.aclose()
    await client.delete(new)
    session._inner._sandbox = None  # what it was is gone
    session._inner.state.snapshot = new._inner.state.snapshot
    await session.start()


def test_the_snippet(snippet):
    model = Scripted("id -un")
    assert snippet("OpenAI Agents", model=model)["answer"].final_output == "done"
    assert "agent" in model.answers[0]
    assert Client().sandboxes() == []
