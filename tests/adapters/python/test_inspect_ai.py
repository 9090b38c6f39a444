"""inspect_ai: its own checks for sandbox providers, with walls as they are by default and with a root inside that may change the system."""
import os

import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, solver, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import SandboxUnavailableError, sandbox
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from caisson import Client

NOT_BY_DEFAULT = {"test_exec_as_user": "adds a user, and /etc is read-only for everybody"}
SPECS = {"default": {}, "rootful": {"image": "debian", "profile": "rootful"}}


@pytest.fixture(params=SPECS)
async def sandbox_env(request):
    if request.param == "default" and request.node.originalname in NOT_BY_DEFAULT:
        pytest.xfail(NOT_BY_DEFAULT[request.node.originalname])
    kind = registry_find_sandboxenv("caisson")  # by the entry point
    env = await kind.make(kind.config_deserialize(SPECS[request.param]))
    yield env
    await env.close()


def scripted(*outputs):
    outputs = [*outputs, ModelOutput.from_content("mockllm/model", "seen")]
    for one in outputs:
        one.usage = ModelUsage()  # else it is counted, by tables from the network
    return get_model("mockllm/model", custom_outputs=outputs)


def bash_call(command):
    return ModelOutput.for_tool_call("mockllm/model", "bash", {"command": command})


def solve(*solvers, outputs=(), **task):
    task = Task(dataset=[Sample(input="?", target="seen", files={"given.txt": "of the sample"})], solver=[*solvers, generate()],
                scorer=includes(), **task)
    [log] = eval(task, model=scripted(*outputs), display="none", log_dir=os.environ["TMPDIR"])
    assert log.status == "success", log.error
    assert Client().sandboxes() == []
    return log.samples[0]


def bash_says(command, **task):
    """To a model that asks for one command by inspect_ai's own tool."""
    sample = solve(use_tools([bash(timeout=20)]), outputs=[bash_call(command)], **task)
    return [m.text for m in sample.messages if m.role == "tool"][0]


def test_an_eval_with_its_tool_and_files():
    assert bash_says("cat given.txt; id -un", sandbox="caisson") == "of the sampleagent\n"


def test_a_config_from_a_file(tmp_path):
    (tmp_path / "caisson.yaml").write_text("fs: ephemeral:/elsewhere\n")
    assert bash_says("pwd", sandbox=("caisson", str(tmp_path / "caisson.yaml"))) == "/elsewhere\n"


@solver
def by_exec_remote():
    async def solve_(state, _generate):
        done = await sandbox().exec_remote(["sh", "-c", "echo one; echo two >&2; exit 3"], stream=False)
        state.metadata["done"] = [done.stdout, done.stderr, done.returncode]
        return state
    return solve_


@pytest.mark.parametrize("name", SPECS)
def test_its_own_program_inside(name):
    """exec_remote, by which a command outlives a request."""
    config = registry_find_sandboxenv("caisson").config_deserialize(SPECS[name])
    assert solve(by_exec_remote(), sandbox=("caisson", config)).metadata["done"] == ["one\n", "two\n", 3]


async def test_our_failure_is_no_result():
    env = await registry_find_sandboxenv("caisson").make()
    Client().call("DELETE", "/v1/sandboxes/{id}", values={"id": env.sandbox.id})
    with pytest.raises(SandboxUnavailableError):
        await env.exec(["true"])
    await env.close()


async def test_much_output_is_cut_in_front():
    env = await registry_find_sandboxenv("caisson").make()
    done = await env.exec(["sh", "-c", "seq 2000000; echo end >&2"])
    assert (len(done.stdout), done.stdout[-8:], done.stderr) == (10 << 20, "2000000\n", "end\n")
    await env.close()


async def test_one_that_cannot_be_looked_at_is_not_left():
    kind = registry_find_sandboxenv("caisson")
    with pytest.raises(Exception, match="id"):
        await kind.make(kind.config_deserialize({"env": {"PATH": "/none"}}))
    assert Client().sandboxes() == []


async def test_cleanup_from_the_command_line():
    kind = registry_find_sandboxenv("caisson")
    env = await kind.make(task="a task")
    assert (await env.connection()).command == f"caisson exec -it {env.sandbox.id} -- bash -l"
    await kind.cli_cleanup(None)
    assert Client().sandboxes() == []
    await env.close()


def test_the_snippet(snippet, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # its log goes there
    log = snippet("inspect_ai", model=scripted(bash_call("id -un")))["log"]
    assert [m.text for m in log.samples[0].messages if m.role == "tool"] == ["agent\n"]
