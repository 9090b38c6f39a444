"""A process: everything that was executed, running or not."""
from __future__ import annotations

import base64
import json
from typing import Any, AsyncIterator, Callable, Mapping, Optional, Union

from .. import models
from .._common import ENDED, STDIN_PIECE, Duration, Result, given
from .._pipe import async_pause
from ..errors import Busy, Conflict, NotFound
from .client import Client
from .http import WebSocket

POLL = "20s"
KILL_WAIT = "10s"


def _is_end(event: Mapping[str, Any]) -> bool:
    return event.get("type") == "end"


def event_bytes(event: Mapping[str, Any]) -> bytes:
    """What an output event has written."""
    return base64.b64decode(event["base64"]) if "base64" in event else str(event.get("data", "")).encode()


class Terminal:
    """The terminal of a process: what is typed goes in, what is shown comes out."""

    def __init__(self, process: "Process", socket: WebSocket) -> None:
        self.process, self._socket = process, socket
        self.result: Optional[Result] = None

    async def send(self, data: Union[str, bytes]) -> None:
        await self._socket.send(data.encode() if isinstance(data, str) else data)

    async def resize(self, rows: int, cols: int) -> None:
        await self._socket.send(json.dumps({"resize": {"rows": rows, "cols": cols}}).encode(), 1)

    async def eof(self) -> None:
        await self._socket.send(b'{"eof":true}', 1)

    async def recv(self) -> bytes:
        """Some output; nothing at the end, and then `result` is known."""
        while True:
            message = await self._socket.recv()
            if message is None:
                return b""
            if isinstance(message, bytes):
                return message
            self.result = Result(json.loads(message))

    async def read_until(self, wanted: bytes) -> bytes:
        """All output up to and with these bytes, or to the end; what comes behind them may be there too."""
        got = b""
        while wanted not in got:
            piece = await self.recv()
            if not piece:
                break
            got += piece
        return got

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            piece = await self.recv()
            if not piece:
                return
            yield piece

    def close(self) -> None:
        """Nobody looks any more; the process goes on."""
        self._socket.close()

    async def __aenter__(self) -> "Terminal":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class Process:
    """A process that was started, by its id."""

    def __init__(self, client: Client, record: models.Process) -> None:
        self._client, self.record = client, record

    @classmethod
    async def get(cls, id: str, *, client: Optional[Client] = None) -> "Process":
        from .client import default_client
        client = client or default_client()
        return cls(client, await client.call("GET", "/v1/processes/{id}", values={"id": id}))

    @property
    def id(self) -> str:
        return self.record["id"]

    async def _ask(self, method: str, template: str, **parts: Any) -> Any:
        return await self._client.call(method, template, values={"id": self.id}, **parts)

    async def poll(self) -> Result:
        """What is known of it now, with the output so far."""
        self.record = await self._ask("GET", "/v1/processes/{id}")
        return Result(self.record)

    async def wait(self, timeout: Optional[Duration] = None) -> Result:
        """When it has ended, or after that long as it is then: it goes on."""
        if timeout is not None:
            self.record = await self._ask("GET", "/v1/processes/{id}", query=given(wait=timeout))
            return Result(self.record)
        while True:
            self.record = await self._ask("GET", "/v1/processes/{id}", query={"wait": POLL})
            if self.record["state"] in ENDED:
                return Result(self.record)

    async def kill(self) -> Result:
        """Ends it and all it started."""
        self.record = await self._ask("DELETE", "/v1/processes/{id}")
        return Result(self.record) if self.record["state"] in ENDED else await self.wait(KILL_WAIT)

    async def signal(self, sig: Union[str, int], *, tree: bool = False) -> Result:
        return Result(await self._ask("POST", "/v1/processes/{id}/signal",
                                      body={"sig": sig, "scope": "tree" if tree else "process"}))

    async def resize(self, rows: int, cols: int) -> Result:
        return Result(await self._ask("POST", "/v1/processes/{id}/resize", body={"rows": rows, "cols": cols}))

    async def write(self, data: Union[str, bytes], *, eof: bool = False) -> None:
        """Input, all of it, as fast as it is read."""
        rest = data.encode() if isinstance(data, str) else data
        while rest or eof:
            piece, more = rest[:STDIN_PIECE], rest[STDIN_PIECE:]
            body = {**({"base64": base64.b64encode(piece).decode()} if piece else {}),
                    **({"eof": True} if eof and not more else {})}
            try:
                await self._ask("POST", "/v1/processes/{id}/stdin", body=body)
            except (Busy, Conflict) as error:
                if (await self.poll()).is_over:  # nobody reads it any more
                    return
                if isinstance(error, Conflict):
                    raise
                await async_pause(0.01)
                continue
            rest = more
            if not rest:
                return

    async def close_stdin(self) -> None:
        await self.write(b"", eof=True)

    async def events(self, *, after: int = 0, follow: bool = True) -> AsyncIterator[models.Event]:
        """Its output as it comes, and its end. `after` is a `seq`: what comes behind it."""
        async for event in self._client.follow("GET", "/v1/processes/{id}/events", values={"id": self.id}, after=after,
                                               query=given(follow=follow or None), is_last=_is_end):
            yield event

    async def output(self, *, after: int = 0, follow: bool = True) -> AsyncIterator[bytes]:
        """Both streams as bytes, as they come."""
        async for event in self.events(after=after, follow=follow):
            if event["type"] == "output":
                yield event_bytes(event)

    async def log(self, *, first: Optional[int] = None, last: Optional[int] = None) -> bytes:
        """Its output as bytes: all of it, or FIRST to LAST."""
        headers = {} if first is None and last is None else {"Range": f"bytes={first or 0}-{'' if last is None else last}"}
        response = await self._client.open("GET", "/v1/processes/{id}/log", values={"id": self.id}, headers=headers)
        return await response.read()

    async def terminal(self, *, after: Optional[int] = None) -> Terminal:
        """Of one that was started with a terminal; with all output so far, or what comes behind `after`."""
        query = given(after=after)
        return Terminal(self, await self._client.open_socket("GET", "/v1/processes/{id}/tty", {"id": self.id}, query))

    async def pump(self, on_stdout: Optional[Callable[[str], Any]], on_stderr: Optional[Callable[[str], Any]],
                   after: int = 0) -> Result:
        """Hands out the output as it comes; returns at the end."""
        calls = {"stdout": on_stdout, "stderr": on_stderr}
        async for event in self.events(after=after):
            call = calls.get(str(event.get("stream")))
            if call is not None:
                call(event_bytes(event).decode(errors="replace"))
        return await self.poll()

    async def __aenter__(self) -> "Process":
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.kill()
        except (NotFound, Conflict):
            pass  # it was over

    def __repr__(self) -> str:
        return f"<Process {self.id} {self.record['state']}>"
