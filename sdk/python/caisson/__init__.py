"""Caisson: a place where a coding agent works, behind walls.

    from caisson import Sandbox

    with Sandbox(net="deny", fs="ephemeral:/work", creds=None, limits=dict(cpu=2, mem="4g", pids=512, wall="10m")) as s:
        s.write("a.py", "print(1 + 1)")
        print(s.run("python3 a.py").stdout)

The same with `await` is in `caisson.aio`.
"""
from . import errors, models
from ._common import Result
from ._s.client import Client, default_client
from ._s.process import Process, Terminal
from ._s.sandbox import Port, Sandbox
from ._s.tools import Tools
from ._s.workspace import Workspace
from .errors import CaissonError, CommandError, CommandTimeout, SandboxUnavailable

__version__ = "0.1.0"
__all__ = ["CaissonError", "Client", "CommandError", "CommandTimeout", "Port", "Process", "Result", "Sandbox",
           "SandboxUnavailable", "Terminal", "Tools", "Workspace", "default_client", "errors", "models"]
