"""What the adapters share: a command whose whole output is wanted, as bytes, however much it is."""
from __future__ import annotations

import asyncio
import uuid
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Set, Union

from .._a.process import Process, event_bytes
from .._common import Command, Result
from ..aio import Sandbox
from ..errors import CaissonError

TERM = 15
STDIN_PIECES_MAX = 1 << 20  # more than that is slow by many requests


def status_of(result: Result) -> int:
    """As a shell has it."""
    if result.state == "exited":
        return result.exit_code or 0
    if result.state == "signaled":
        return 128 + (result.signal or TERM)
    return {"timeout": 124, "expired": 124, "denied": 126}.get(result.state, 137)


def refusal_of(result: Result) -> str:
    """Why it was not executed at all, or did not end by itself."""
    return result.reason or ("" if result.state in ("exited", "signaled") else result.state)


class Done(NamedTuple):
    result: Result
    stdout: bytes
    stderr: bytes
    is_cut: bool  # the beginning of a stream is missing

    @property
    def status(self) -> int:
        return status_of(self.result)

    @property
    def refusal(self) -> str:
        return refusal_of(self.result)


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: Optional[int]) -> None:
        self.data, self.limit, self.is_cut = bytearray(), limit, False

    def add(self, piece: bytes) -> None:
        self.data += piece
        if self.limit is not None and len(self.data) > 2 * self.limit:
            self.end()

    def end(self) -> bytes:
        if self.limit is not None and len(self.data) > self.limit:
            del self.data[:-self.limit or None]
            self.is_cut = True
        return bytes(self.data)


async def run_whole(place: Sandbox, cmd: Command, *, stdin: Union[str, bytes, None] = None, limit: Optional[int] = None,
                    heard: Optional[Callable[[str, bytes], Any]] = None, **options: Any) -> Done:
    """Runs it to its end. Of each stream the last `limit` bytes; whoever cancels this ends the command."""
    data = stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else stdin
    if data is not None and len(data) > STDIN_PIECES_MAX and not isinstance(cmd, str):
        cmd, data = await _from_file(place, cmd, data), None
    process = await place.spawn(cmd, stdin=None if data is None else True, **options)
    try:
        if data is not None:
            await process.write(data, eof=True)
        return await _listen(process, limit, heard)
    except BaseException:
        await end(process)
        raise


_ending: Set["asyncio.Task[None]"] = set()  # a loop keeps no task alive by itself


async def end(process: Process) -> None:
    """Kills it, also for one who is cancelled again and again meanwhile, as scopes of anyio do."""
    async def kill() -> None:
        try:
            await process.kill()
        except CaissonError:
            pass  # it was over
    task = asyncio.ensure_future(kill())
    _ending.add(task)
    task.add_done_callback(_ending.discard)
    await asyncio.shield(task)


async def _from_file(place: Sandbox, cmd: Sequence[str], data: bytes) -> List[str]:
    """The command with much input: in one request as a file, which is gone when it begins to read."""
    path = f"/tmp/input-{uuid.uuid4().hex}"
    await place.write(path, data, mode="0644")
    return ["sh", "-c", 'exec <"$0"; rm -f -- "$0" 2>/dev/null; exec "$@"', path, *cmd]


async def _listen(process: Process, limit: Optional[int], heard: Optional[Callable[[str, bytes], Any]]) -> Done:
    streams = {"stdout": _Tail(limit), "stderr": _Tail(limit)}
    async for event in process.events():
        if event["type"] == "output":
            piece, name = event_bytes(event), str(event["stream"])
            streams[name].add(piece)
            if heard is not None:
                heard(name, piece)
    out, err = streams["stdout"].end(), streams["stderr"].end()
    return Done(await process.poll(), out, err, any(one.is_cut for one in streams.values()))
