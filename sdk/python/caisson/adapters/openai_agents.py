"""A sandbox client for the OpenAI Agents SDK: `SandboxRunConfig(client=CaissonSandboxClient())`.

The workspace of a manifest is a folder of the sandbox; a session that is resumed finds its sandbox again while that lives, else its
snapshot. A port is reached by `session.sandbox.port()`: it has a token that goes in a header, for which an exposed port has no place.
"""
from __future__ import annotations

import io
import tarfile
import time
import uuid
from pathlib import Path
from typing import Any, Dict, List, Literal, Optional, Union

from agents.sandbox.errors import (ExecTimeoutError, ExecTransportError, PtySessionNotFoundError, WorkspaceArchiveReadError,
                                   WorkspaceArchiveWriteError, WorkspaceReadNotFoundError)
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import BaseSandboxClient, BaseSandboxClientOptions, BaseSandboxSession, SandboxSession, SandboxSessionState
from agents.sandbox.session.pty_types import (PTY_PROCESSES_MAX, PtyExecUpdate, allocate_pty_process_id, clamp_pty_yield_time_ms,
                                              process_id_to_prune_from_meta, resolve_pty_write_yield_time_ms, truncate_text_by_tokens)
from agents.sandbox.session.runtime_helpers import RESOLVE_WORKSPACE_PATH_HELPER, RuntimeHelperScript
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
from agents.sandbox.types import ExecResult, User
from agents.sandbox.util.tar_utils import should_skip_tar_member

from ..aio import Client, Process, Sandbox
from ..errors import CaissonError, NotFound, SandboxUnavailable
from ._run import Done, end, run_whole, status_of

LIVE = ("creating", "running", "paused")
OUR_FAILURES = ("lost", "expired")
WRITE = 'mkdir -p -- "$(dirname -- "$1")" && exec cat >"$1"'
Who = Union[str, User, None]


class CaissonSandboxClientOptions(BaseSandboxClientOptions):
    """`spec` is what Sandbox() takes."""
    type: Literal["caisson"] = "caisson"
    spec: Dict[str, Any] = {}


class CaissonSandboxSessionState(SandboxSessionState):
    type: Literal["caisson"] = "caisson"
    spec: Dict[str, Any] = {}
    sandbox_id: str = ""


class _Live:
    """A command that goes on; its log is the daemon's, and we know how much of it was shown."""

    def __init__(self, process: Process, has_tty: bool) -> None:
        self.process, self.has_tty, self.shown, self.is_over, self.used = process, has_tty, 0, False, time.monotonic()


def _name(user: Who) -> Optional[str]:
    return user.name if isinstance(user, User) else user


class CaissonSandboxSession(BaseSandboxSession):
    state: CaissonSandboxSessionState

    def __init__(self, state: CaissonSandboxSessionState, sandbox: Optional[Sandbox] = None) -> None:
        self.state, self._sandbox = state, sandbox
        self._live: Dict[int, _Live] = {}

    @property
    def sandbox(self) -> Sandbox:
        if self._sandbox is None:
            raise RuntimeError("the session was not started")
        return self._sandbox

    # ---- life ---------------------------------------------------------------------------

    async def _ensure_backend_started(self) -> None:
        """The one that is there; a new one outlives the program, until the client deletes it."""
        if self._sandbox is not None:
            return
        client = Client()
        if await self._is_there():
            self._set_start_state_preserved(True)
        else:
            spec = {"fs": [f"ephemeral:{self.state.manifest.root}"], **self.state.spec}
            self.state.sandbox_id = (await client.call("POST", "/v1/sandboxes", body=spec))["id"]
            self.state.workspace_root_ready = False
        self._sandbox = await Sandbox.get(self.state.sandbox_id, client=client)

    async def _prepare_backend_workspace(self) -> None:
        await self._exec_checked_nonzero("mkdir", "-p", "--", self.state.manifest.root)

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    async def _validate_path_access(self, path: Union[Path, str], *, for_write: bool = False) -> Path:
        return await self._validate_remote_path_access(path, for_write=for_write)

    async def running(self) -> bool:
        try:
            return self._sandbox is not None and await self._is_there()
        except CaissonError:
            return False

    async def _is_there(self) -> bool:
        """A daemon that does not answer is no sandbox that is gone: its files would be given up for an empty one."""
        try:
            there = await Sandbox.get(self.state.sandbox_id) if self.state.sandbox_id else None
        except NotFound:
            return False
        return there is not None and there.record is not None and there.record["state"] in LIVE

    # ---- commands -----------------------------------------------------------------------

    async def exec(self, *command: Union[str, Path], timeout: Optional[float] = None, shell: Union[bool, List[str]] = True,
                   user: Who = None) -> ExecResult:
        words = self._prepare_exec_command(*command, shell=shell, user=None)  # no sudo: whoever it is is asked for
        done = await self._run(words, timeout, user)
        return ExecResult(stdout=done.stdout, stderr=done.stderr + done.refusal.encode(), exit_code=done.status)

    async def _exec_internal(self, *command: Union[str, Path], timeout: Optional[float] = None) -> ExecResult:
        return await self.exec(*command, timeout=timeout, shell=False)

    async def _options(self, user: Who) -> Dict[str, Any]:
        return {"cwd": self.state.manifest.root if self._start_root_is_there() else None, "user": _name(user),
                "env": await self.state.manifest.environment.resolve()}

    def _start_root_is_there(self) -> bool:
        return self.state.workspace_root_ready or "fs" not in self.state.spec

    async def _run(self, words: List[str], timeout: Optional[float], user: Who, stdin: Optional[bytes] = None) -> Done:
        try:
            done = await run_whole(self.sandbox, words, timeout=timeout, stdin=stdin, **await self._options(user))
        except CaissonError as error:
            safe = isinstance(error, SandboxUnavailable) and error.retry_safe
            raise ExecTransportError(command=words, cause=error, message=str(error), retryable=safe) from error
        if done.result.state == "timeout":
            raise ExecTimeoutError(command=words, timeout_s=timeout)
        if done.result.state in OUR_FAILURES:
            raise ExecTransportError(command=words, message=done.refusal)
        return done

    # ---- commands that go on ------------------------------------------------------------

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(self, *command: Union[str, Path], timeout: Optional[float] = None, shell: Union[bool, List[str]] = True,
                             user: Who = None, tty: bool = False, yield_time_s: Optional[float] = None,
                             max_output_tokens: Optional[int] = None) -> PtyExecUpdate:
        words = self._prepare_exec_command(*command, shell=shell, user=None)
        process = await self.sandbox.spawn(words, tty=tty, stdin=True if tty else None, timeout=timeout, **await self._options(user))
        id = allocate_pty_process_id(set(self._live))
        if len(self._live) >= PTY_PROCESSES_MAX:
            await self._end(process_id_to_prune_from_meta([(i, one.used, one.is_over) for i, one in self._live.items()]))
        self._live[id] = _Live(process, tty)
        ms = clamp_pty_yield_time_ms(10_000 if yield_time_s is None else int(yield_time_s * 1000))
        return await self._look(id, ms, max_output_tokens)

    async def pty_write_stdin(self, *, session_id: int, chars: str, yield_time_s: Optional[float] = None,
                              max_output_tokens: Optional[int] = None) -> PtyExecUpdate:
        live = self._live.get(session_id)
        if live is None:
            raise PtySessionNotFoundError(session_id=session_id)
        if chars:
            if not live.has_tty:
                raise RuntimeError("stdin is not available for this process")
            await live.process.write(chars)
        ms = resolve_pty_write_yield_time_ms(yield_time_ms=250 if yield_time_s is None else int(yield_time_s * 1000), input_empty=not chars)
        return await self._look(session_id, ms, max_output_tokens)

    async def _look(self, id: int, ms: int, tokens: Optional[int]) -> PtyExecUpdate:
        """What it wrote since the last look, when it is over or the time is."""
        live = self._live[id]
        live.used = time.monotonic()
        result = await live.process.wait(ms / 1000)
        live.is_over = result.is_over
        wrote = result.record["bytes"]["stdout"] + result.record["bytes"]["stderr"]
        data = await live.process.log(first=live.shown) if wrote > live.shown else b""
        live.shown += len(data)
        text, count = truncate_text_by_tokens(data.decode(errors="replace"), tokens)
        if live.is_over:
            del self._live[id]
        return PtyExecUpdate(None if live.is_over else id, text.encode(), status_of(result) if live.is_over else None, count)

    async def _end(self, id: Optional[int]) -> None:
        live = self._live.pop(id, None) if id is not None else None
        if live is not None:
            await end(live.process)

    async def pty_terminate_all(self) -> None:
        for id in list(self._live):
            await self._end(id)

    # ---- files --------------------------------------------------------------------------

    async def read(self, path: Path, *, user: Who = None) -> io.IOBase:
        if user is not None:
            at = await self._check_read_with_exec(path, user=user)
            return io.BytesIO((await self._run(["cat", "--", at.as_posix()], None, user)).stdout)
        at = await self._validate_path_access(path)
        try:
            return io.BytesIO(await self.sandbox.read_bytes(at.as_posix()))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except CaissonError as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error

    async def write(self, path: Path, data: io.IOBase, *, user: Who = None) -> None:
        at = await self._validate_path_access(path, for_write=True)
        given = data.read()
        content = given.encode() if isinstance(given, str) else bytes(given)
        try:
            if user is None:
                await self.sandbox.write(at.as_posix(), content)
                return
        except CaissonError as error:
            raise WorkspaceArchiveWriteError(path=at, cause=error) from error
        done = await self._run(["sh", "-c", WRITE, "sh", at.as_posix()], None, user, content)
        if not done.result.ok:
            raise WorkspaceArchiveWriteError(path=at, context={"stderr": done.stderr.decode(errors="replace")})

    async def persist_workspace(self) -> io.IOBase:
        root, skip, out = self.state.manifest.root, self._persist_workspace_skip_relpaths(), io.BytesIO()
        try:
            archive = await self.sandbox.download(root)
        except CaissonError as error:
            raise WorkspaceArchiveReadError(path=Path(root), cause=error) from error
        with tarfile.open(fileobj=io.BytesIO(archive)) as source, tarfile.open(fileobj=out, mode="w") as kept:
            for member in source:
                if not should_skip_tar_member(member.name, skip_rel_paths=skip, root_name=None):
                    kept.addfile(member, source.extractfile(member) if member.isreg() else None)
        out.seek(0)
        return out

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        try:
            await self.sandbox.upload(bytes(data.read()), self.state.manifest.root)
        except CaissonError as error:
            raise WorkspaceArchiveWriteError(path=Path(self.state.manifest.root), cause=error) from error


class CaissonSandboxClient(BaseSandboxClient[Optional[CaissonSandboxClientOptions]]):
    backend_id = "caisson"
    supports_default_options = True

    async def create(self, *, snapshot: Union[SnapshotSpec, SnapshotBase, None] = None, manifest: Optional[Manifest] = None,
                     options: Optional[CaissonSandboxClientOptions] = None) -> SandboxSession:
        id = uuid.uuid4()
        state = CaissonSandboxSessionState(session_id=id, manifest=self._validate_manifest_for_create(manifest or Manifest()),
                                           snapshot=resolve_snapshot(snapshot, str(id)), spec=options.spec if options else {})
        return self._wrap_session(CaissonSandboxSession(state))

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        if not isinstance(state, CaissonSandboxSessionState):
            raise TypeError("CaissonSandboxClient.resume expects a CaissonSandboxSessionState")
        state.assert_path_grants_rebound()
        return self._wrap_session(CaissonSandboxSession(state))

    async def delete(self, session: SandboxSession) -> SandboxSession:
        inner = session._inner
        if not isinstance(inner, CaissonSandboxSession):
            raise TypeError("CaissonSandboxClient.delete expects a CaissonSandboxSession")
        if inner._sandbox is not None:
            await inner._sandbox.close()
            inner._sandbox = None
        return session

    def deserialize_session_state(self, payload: Dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, CaissonSandboxSessionState)
