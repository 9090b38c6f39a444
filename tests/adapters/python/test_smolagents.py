"""smolagents: a code agent whose model is scripted, and what an executor has to be able to do."""
import pytest
from smolagents import ChatMessage, CodeAgent, Model, tool
from smolagents.utils import AgentError

from caisson import Client, Sandbox
from caisson.adapters.smolagents import CaissonExecutor


class Scripted(Model):
    def __init__(self, *codes):
        super().__init__()
        self.codes, self.seen = list(codes), []

    def generate(self, messages, **kwargs):
        self.seen.append(str(messages[-1].content))
        return ChatMessage(role="assistant", content=f"Thought: go\n<code>\n{self.codes.pop(0)}\n</code>")


@tool
def double(number: int) -> int:
    """Twice as much.

    Args:
        number: of what
    """
    return number * 2


@pytest.fixture
def executor():
    one = CaissonExecutor(net="deny", timeout=20)
    yield one
    one.cleanup()
    assert Client().sandboxes() == []


def test_an_agent():
    model = Scripted("x = double(given)\nprint('now', x)", "import os\nprint(open('/etc/hostname').read())\nfinal_answer({'x': x, 'cwd': os.getcwd()})")
    with CodeAgent(tools=[double], model=model, executor=CaissonExecutor(net="deny"), verbosity_level=0) as agent:
        assert agent.run("go", additional_args={"given": 21}) == {"x": 42, "cwd": "/work"}
    assert "now 42" in model.seen[1]
    assert Client().sandboxes() == []


def test_state_values_and_logs(executor):
    assert executor("a = 1").output is None
    done = executor("import subprocess, sys\nprint('out'); subprocess.run(['echo', 'below']); print('err', file=sys.stderr)\na + 1")
    assert (done.output, done.is_final_answer) == (2, False)
    assert sorted(done.logs.split()) == ["below", "err", "out"]
    assert executor("{1, 2}").output == "{1, 2}"
    executor.send_variables({"when": (1, b"\xff")})
    assert executor("when == (1, b'\\xff')").output is True
    assert executor("!echo by a shell").logs == "by a shell\n"
    assert len(executor("print('x' * 300000)").logs) == 300001


def test_errors(executor):
    with pytest.raises(AgentError, match="ZeroDivisionError"):
        executor("kept = 5\n1 / 0")
    assert executor("kept").output == 5
    with pytest.raises(AgentError, match="SyntaxError"):
        executor("def")
    executor.timeout = 1
    with pytest.raises(AgentError, match="TimeoutError"):
        executor("while True: pass")
    with pytest.raises(AgentError, match="interpreter ended"):
        executor("import os\nos._exit(3)")
    with pytest.raises(AgentError, match="NameError"):
        executor("kept")


def test_a_sandbox_that_is_there():
    with Sandbox() as sandbox:
        sandbox.write("data.csv", "a,b\n1,2\n")
        executor = CaissonExecutor(sandbox=sandbox)
        assert executor("open('data.csv').read()").output == "a,b\n1,2\n"
        executor.cleanup()
        assert sandbox.read("data.csv") == "a,b\n1,2\n"


def test_the_snippet(snippet):
    assert snippet("smolagents", model=Scripted("import getpass\nfinal_answer(getpass.getuser())"))["answer"] == "agent"
    assert Client().sandboxes() == []


def interrupted():
    raise KeyboardInterrupt
    yield


def test_an_interrupt_ends_the_interpreter(executor):
    """Its answer is not taken for that of the next code."""
    executor("x = 1")
    executor._answers, answers = interrupted(), executor._answers
    with pytest.raises(KeyboardInterrupt):
        executor("'of the first'")
    assert next(answers, None) in (None, {"value": "of the first", "logs": ""})
    assert executor("'of the second'").output == "of the second"


def test_cleanup_when_the_interpreter_is_gone_already(executor):
    executor("x = 1")
    executor.sandbox.exec("pkill -KILL python3")
    executor.cleanup()
    assert Client().sandboxes() == []
