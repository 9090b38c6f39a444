"""LangChain: the standard tests for tools, and an agent whose model is scripted."""
import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from caisson import Sandbox, Workspace
from caisson.adapters.langchain import CaissonToolkit

SANDBOX = Sandbox(net="deny")  # deleted at the end of the program
EXAMPLES = {"bash": {"command": "echo hello"}, "read": {"file_path": "/etc/hostname"}, "write": {"file_path": "a.txt", "content": "one\n"},
            "edit": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}, "glob": {"pattern": "*.txt"},
            "grep": {"pattern": "t.o", "ignore_case": True}}


def tool_named(name):
    return next(one for one in CaissonToolkit(sandbox=SANDBOX).get_tools() if one.name == name)


def make(base, name):
    class Standard(base):
        tool_constructor = property(lambda self: tool_named(name))
        tool_invoke_params_example = property(lambda self: EXAMPLES[name])
    return Standard


for _name in EXAMPLES:
    globals()[f"TestUnit{_name.title()}"] = make(ToolsUnitTests, _name)
    globals()[f"TestLive{_name.title()}"] = make(ToolsIntegrationTests, _name)


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        assert [one.name for one in tools] == list(EXAMPLES)
        return self


@pytest.mark.parametrize("place", ["sandbox", "workspace"])
def test_an_agent(place):
    with Sandbox() as sandbox:
        here = sandbox if place == "sandbox" else Workspace.open("langchain")
        turns = [AIMessage(content="", tool_calls=[{"name": name, "args": args, "id": str(i)}]) for i, (name, args) in enumerate([
            ("write", {"file_path": "sum.py", "content": "print(40 + 3)\n"}), ("edit", {"file_path": "sum.py", "old_string": "3", "new_string": "2"}),
            ("bash", {"command": "python3 sum.py; exit 9"}), ("edit", {"file_path": "sum.py", "old_string": "none", "new_string": ""})])]
        agent = create_agent(Scripted(messages=iter([*turns, AIMessage(content="done")])), tools=CaissonToolkit(sandbox=here).get_tools())
        said = [m.content for m in agent.invoke({"messages": [("user", "go")]})["messages"] if m.type == "tool"]
        assert "42" in said[2] and "9" in said[2] and said[3].startswith("["), said
        if place == "workspace":
            here.remove(force=True)


async def test_awaited():
    assert "hello" in await tool_named("bash").ainvoke({"command": "echo hello"})


def test_the_snippet(snippet):
    asked = AIMessage(content="", tool_calls=[{"name": "bash", "args": {"command": "id -un"}, "id": "0"}])
    said = snippet("LangChain", model=Scripted(messages=iter([asked, AIMessage(content="done")])))["answer"]["messages"]
    assert [m.content.strip() for m in said if m.type == "tool"] == ["agent"]
