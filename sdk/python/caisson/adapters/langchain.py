"""Tools for LangChain and LangGraph: `create_agent(model, tools=CaissonToolkit(sandbox=s).get_tools())`.

bash, read, write, edit, glob and grep; what went wrong comes back in words, only our own failure is an exception.
"""
from __future__ import annotations

from typing import Any, List

from langchain_core.tools import BaseTool, BaseToolkit, StructuredTool
from pydantic import ConfigDict


class CaissonToolkit(BaseToolkit):
    """`sandbox` is a Sandbox or a Workspace."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    sandbox: Any

    def get_tools(self) -> List[BaseTool]:
        tools = self.sandbox.tools()

        def make(spec: Any) -> BaseTool:
            def call(**given: Any) -> str:
                return str(tools.call(spec["name"], {name: value for name, value in given.items() if value is not None}))
            return StructuredTool.from_function(call, name=spec["name"], description=spec["description"], args_schema=spec["schema"],
                                                infer_schema=False)
        return [make(spec) for spec in tools.specs("plain")]
