"""The same for asyncio: each method that asks the daemon is awaited, `with` is `async with`."""
from ._a.client import Client, default_client
from ._a.process import Process, Terminal
from ._a.sandbox import Port, Sandbox
from ._a.tools import Tools
from ._a.workspace import Workspace
from ._common import Result

__all__ = ["Client", "Port", "Process", "Result", "Sandbox", "Terminal", "Tools", "Workspace", "default_client"]
