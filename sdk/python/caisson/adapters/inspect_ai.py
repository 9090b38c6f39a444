"""A sandbox environment for inspect_ai: `sandbox="caisson"`, or `sandbox=("caisson", "spec.yaml")`.

inspect_ai finds it by itself (an entry point of this package). The file, or a CaissonConfig, is a spec (docs/spec.md).
"""
from __future__ import annotations

import json
import pathlib
import posixpath
from typing import Any, Dict, List, Literal, Optional, Union, overload

import yaml
from inspect_ai.util import (ExecResult, OutputLimitExceededError, SandboxConnection, SandboxEnvironment,
                             SandboxEnvironmentConfigType, SandboxEnvironmentLimits, SandboxUnavailableError, sandboxenv)
from pydantic import BaseModel

from .. import _exit
from ..aio import Client, Sandbox
from ..errors import CaissonError, Invalid, PermissionDenied, SandboxUnavailable
from ._run import Done, run_whole

LABEL = "inspect_ai"
OUR_FAILURES = ("lost", "expired")  # of the sandbox, whatever the command was


class CaissonConfig(BaseModel, frozen=True, extra="allow"):
    """What Sandbox() takes: CaissonConfig(net="deny", limits={"mem": "2g"})."""

    def __hash__(self) -> int:
        return hash(self.model_dump_json())


def spec_of(config: Optional[SandboxEnvironmentConfigType]) -> Dict[str, Any]:
    if isinstance(config, BaseModel):
        return config.model_dump()
    if config is None:
        return {}
    text = pathlib.Path(config).read_text(encoding="utf-8")
    return dict((json.loads if config.endswith(".json") else yaml.safe_load)(text) or {})


@sandboxenv(name="caisson")
class CaissonSandboxEnvironment(SandboxEnvironment):
    """One sandbox; files and commands are those of its user, who is not root unless asked."""

    live: Dict[str, "CaissonSandboxEnvironment"] = {}  # of this program, by id

    def __init__(self, sandbox: Sandbox, home: str, uid: int, groups: List[int]) -> None:
        super().__init__()
        self.sandbox, self.home, self.uid, self.groups = sandbox, home, uid, groups

    # ---- life ---------------------------------------------------------------------------

    @classmethod
    async def make(cls, config: Optional[SandboxEnvironmentConfigType] = None, task: str = "") -> "CaissonSandboxEnvironment":
        sandbox = await Sandbox(**{"labels": {LABEL: task[:255] or "none"}, **spec_of(config)}).start()
        try:
            home, uid, groups = (await sandbox.exec("pwd; id -u; id -G", check=True)).stdout.splitlines()
        except BaseException:
            await sandbox.close()  # nobody else knows of it
            raise
        self = cls(sandbox, home, int(uid), [int(one) for one in groups.split()])
        cls.live[sandbox.id] = self
        return self

    async def close(self) -> None:
        self.live.pop(self.sandbox.id, None)
        await self.sandbox.close()

    @classmethod
    async def sample_init(cls, task_name: str, config: Optional[SandboxEnvironmentConfigType],
                          metadata: Dict[str, str]) -> Dict[str, SandboxEnvironment]:
        return {"default": await cls.make(config, task_name)}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Optional[SandboxEnvironmentConfigType],
                             environments: Dict[str, SandboxEnvironment], interrupted: bool) -> None:
        for one in environments.values():
            await one.as_type(cls).close()

    @classmethod
    async def task_cleanup(cls, task_name: str, config: Optional[SandboxEnvironmentConfigType], cleanup: bool) -> None:
        for id, one in list(cls.live.items()):
            if cleanup:
                await one.close()
            else:
                _exit.forget(id)  # it outlives the program, as was asked
                print(f"caisson exec -it {id} -- bash -l")

    @classmethod
    async def cli_cleanup(cls, id: Optional[str]) -> None:
        for one in await Client().sandboxes():
            if one["id"] == id or (id is None and LABEL in (one.get("labels") or {})):
                await (await Sandbox.get(one["id"])).close()

    @classmethod
    def config_files(cls) -> List[str]:
        return ["caisson.yaml", "caisson.json"]

    @classmethod
    def config_deserialize(cls, config: Dict[str, Any]) -> BaseModel:
        return CaissonConfig(**config)

    async def connection(self, *, user: Optional[str] = None) -> SandboxConnection:
        words = f" -u {user}" if user else ""
        return SandboxConnection(type="caisson", command=f"caisson exec -it{words} {self.sandbox.id} -- bash -l", container=self.sandbox.id)

    # ---- commands -----------------------------------------------------------------------

    async def exec(self, cmd: List[str], input: Union[str, bytes, None] = None, cwd: Optional[str] = None,
                   env: Optional[Dict[str, str]] = None, user: Optional[str] = None, timeout: Optional[int] = None,
                   timeout_retry: bool = True, concurrency: bool = True) -> ExecResult[str]:
        """A time-out is never a lost request here, so none is retried; and the limits of the sandbox throttle."""
        options: Dict[str, Any] = dict(stdin=input, cwd=posixpath.join(self.home, cwd or ""), env=env, timeout=timeout,
                                       limit=SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE)
        try:
            try:
                done = await run_whole(self.sandbox, cmd, user=user, **options)
            except Invalid as error:
                if user is None or not str(error).startswith("user: "):
                    raise
                ids = await self._ids_of(user)
                if not ids:
                    return ExecResult(False, 1, "", f"{error}\n")
                done = await run_whole(self.sandbox, cmd, user=ids, **options)
        except (SandboxUnavailable, FileNotFoundError) as error:
            raise SandboxUnavailableError(str(error)) from error
        return self._result(cmd, done, timeout)

    async def _ids_of(self, user: str) -> str:
        """UID:GID of somebody whom the image did not have: added since, by a command."""
        found = await self.sandbox.exec(["getent", "passwd", "--", user], user="root")
        return ":".join(found.stdout.split(":")[2:4]) if found.ok else ""

    @staticmethod
    def _result(cmd: List[str], done: Done, timeout: Optional[int]) -> ExecResult[str]:
        if done.result.state == "timeout":
            raise TimeoutError(f"{cmd[0]}: not over after {timeout} s")
        if done.result.state in OUR_FAILURES:
            raise SandboxUnavailableError(done.refusal)
        if done.status == 126 and done.refusal:
            raise PermissionError(done.refusal)
        said = f"{done.refusal}\n" if done.refusal else ""
        return ExecResult(done.result.ok, done.status, done.stdout.decode(errors="replace"),
                          done.stderr.decode(errors="replace") + said)

    # ---- files --------------------------------------------------------------------------

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        try:
            await self._may_write(file)
            await self.sandbox.write(file, contents)
        except CaissonError as error:
            raise _named(error, file) from error

    async def _may_write(self, file: str) -> None:
        """We replace a file by another, which its own mode does not forbid; here it does."""
        try:
            there = await self.sandbox.stat(file)
        except (FileNotFoundError, NotADirectoryError):
            return
        who = 0o200 if there["uid"] == self.uid else 0o020 if there["gid"] in self.groups else 0o002
        if there["type"] == "file" and self.uid != 0 and not int(there["mode"], 8) & who:
            raise PermissionDenied(f"mode {there['mode']}")

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> Union[str, bytes]:
        try:
            if (await self.sandbox.stat(file))["bytes"] > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
            data = await self.sandbox.read_bytes(file)
        except CaissonError as error:
            raise _named(error, file) from error
        return data.decode("utf-8") if text else data


def _named(error: CaissonError, file: str) -> Exception:
    """The exception that is expected, with the name of the file as it was given."""
    if isinstance(error, SandboxUnavailable):
        return SandboxUnavailableError(str(error))
    for kind in (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError):
        if isinstance(error, kind):
            return (FileNotFoundError if kind is NotADirectoryError else kind)(error.errno, f"{file}: {error}")
    return error
