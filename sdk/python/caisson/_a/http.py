"""HTTP/1.1 as the daemon speaks it: connections that are kept, answers that are read whole or piece by piece."""
from __future__ import annotations

import base64
import json
import os
import struct
import time
from typing import Any, AsyncIterator, BinaryIO, Dict, List, Optional, Tuple, Union

from .. import _address, _lend
from .._pipe import AsyncPipe, async_context, async_make_lock, async_pause, async_start_daemon
from ..errors import SandboxUnavailable, error_of

HEAD_MAX = 1 << 20
IDLE_MAX = 8
REPEAT_SECONDS = 15.0  # as long as a daemon needs to come back
PAUSE_MAX = 1.0
PIECE = 1 << 18

Body = Union[bytes, BinaryIO, None]


class Gone(SandboxUnavailable):
    """The connection ended before its answer did."""


class Connection:
    """One connection and the bytes that were read ahead."""

    def __init__(self, pipe: AsyncPipe) -> None:
        self.pipe, self.ahead = pipe, b""

    async def fill(self) -> None:
        try:
            piece = await self.pipe.recv()
        except ConnectionError as error:
            raise Gone(f"the connection ends in the middle of an answer: {error}") from error
        if not piece:
            raise Gone("the connection ends in the middle of an answer")
        self.ahead += piece

    async def line(self) -> bytes:
        while b"\r\n" not in self.ahead:
            if len(self.ahead) > HEAD_MAX:
                raise Gone("an answer with an endless head")
            await self.fill()
        line, _, self.ahead = self.ahead.partition(b"\r\n")
        return line

    async def some(self, n: int) -> bytes:
        """At least one byte and at most n."""
        if not self.ahead:
            await self.fill()
        taken, self.ahead = self.ahead[:n], self.ahead[n:]
        return taken

    async def exactly(self, n: int) -> bytes:
        pieces: List[bytes] = []
        while n > 0:
            pieces.append(await self.some(n))
            n -= len(pieces[-1])
        return b"".join(pieces)

    async def head(self) -> Tuple[int, Dict[str, str]]:
        words = (await self.line()).split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise Gone("what answers does not speak HTTP")
        headers: Dict[str, str] = {}
        while True:
            line = await self.line()
            if not line:
                return int(words[1]), headers
            name, _, value = line.partition(b":")
            headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()


class Response:
    """An answer whose body is still to be read."""

    def __init__(self, wire: "Wire", connection: Connection, status: int, headers: Dict[str, str]) -> None:
        self._wire, self._connection = wire, connection
        self.status, self.headers = status, headers
        self._is_chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        length = headers.get("content-length")
        self._left = int(length) if length is not None else None
        if status == 204 or status < 200:
            self._left = 0
        self._is_open = True

    def _release(self) -> None:
        if self._is_open:
            self._is_open = False
            if self.headers.get("connection", "").lower() == "close":
                self._connection.pipe.close()
            else:
                self._wire.give_back(self._connection)

    def close(self) -> None:
        """What was not read is not wanted."""
        if self._is_open:
            self._is_open = False
            self._connection.pipe.interrupt()
            self._connection.pipe.close()

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            n = int((await self._connection.line()).split(b";")[0], 16)
            left = n
            while left > 0:
                piece = await self._connection.some(left)
                left -= len(piece)
                yield piece
            await self._connection.line()
            if n == 0:
                return

    async def _plain(self) -> AsyncIterator[bytes]:
        while self._left is None or self._left > 0:
            try:
                piece = await self._connection.some(PIECE if self._left is None else self._left)
            except Gone:
                if self._left is None:  # it ends with its connection
                    self.close()
                    return
                raise
            if self._left is not None:
                self._left -= len(piece)
            yield piece

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        try:
            async for piece in self._chunks() if self._is_chunked else self._plain():
                yield piece
            self._release()
        finally:
            self.close()

    async def lines(self) -> AsyncIterator[bytes]:
        rest = b""
        async for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line

    async def read(self) -> bytes:
        body = []
        async for piece in self.pieces():
            body.append(piece)
        return b"".join(body)


def _size_of(body: Body) -> int:
    if body is None:
        return 0
    if isinstance(body, bytes):
        return len(body)
    at = body.tell()
    size = body.seek(0, os.SEEK_END) - at
    body.seek(at)
    return size


class Wire:
    """The daemon, as somebody who answers requests."""

    def __init__(self, address: _address.Address, program: Optional[str]) -> None:
        self.address, self.program = address, program
        self._idle: List[Connection] = []
        self._lock = async_make_lock()
        self._owner: Optional[object] = None

    # ---- connections --------------------------------------------------------------------

    def _take_idle(self) -> Optional[Connection]:
        with self._lock:
            if self._owner != async_context():  # another process's, or another loop's
                self._idle, self._owner = [], async_context()
            while self._idle:
                connection = self._idle.pop()
                if not connection.ahead and not connection.pipe.is_stale():
                    return connection
                connection.pipe.close()
        return None

    def give_back(self, connection: Connection) -> None:
        with self._lock:
            if self._owner == async_context() and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.pipe.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.pipe.close()

    async def connect(self) -> Connection:
        """A new one; without a daemon, one is started."""
        try:
            return Connection(await AsyncPipe.open(self.address))
        except (FileNotFoundError, ConnectionRefusedError):
            if not _address.may_start(self.address):
                raise
        await async_start_daemon(self.program)
        return Connection(await AsyncPipe.open(self.address))

    # ---- requests -----------------------------------------------------------------------

    def head_of(self, method: str, target: str, headers: Dict[str, str]) -> bytes:
        host = _address.host_text(self.address.tcp) if self.address.tcp else "localhost"
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{k}: {v}" for k, v in headers.items())]
        if self.address.token:
            lines.append(f"Authorization: Bearer {self.address.token}")
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a line end in a header")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    async def _send(self, connection: Connection, head: bytes, body: Body) -> None:
        try:
            if body is None or isinstance(body, bytes):
                await connection.pipe.send(head + (body or b""))
                return
            await connection.pipe.send(head)
            while True:
                piece = body.read(PIECE)
                if not piece:
                    return
                await connection.pipe.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent: the answer says why

    async def _try(self, connection: Connection, head: bytes, body: Body) -> Response:
        try:
            await self._send(connection, head, body)
            status, headers = await connection.head()
            while 100 <= status < 101:
                status, headers = await connection.head()
        except BaseException:
            connection.pipe.close()
            raise
        return Response(self, connection, status, headers)

    async def _lend(self, target: str, body: Body) -> Optional[AsyncPipe]:
        """Keeps the paths of a request lent until it is closed; None: there is nothing to lend, or nobody to lend it to."""
        said = None if self.address.tcp else _lend.message(target, body)
        if said is None:
            return None
        try:
            pipe = await AsyncPipe.open(_lend.address(self.address))
        except OSError:
            return None  # a daemon of the caller's own needs nobody's word
        try:
            await pipe.send(said)
            if await pipe.recv() == _lend.OK:
                return pipe
        except OSError:
            pass
        pipe.close()
        return None  # the daemon says what it could not open

    async def ask(self, method: str, target: str, headers: Dict[str, str], body: Body, can_repeat: bool) -> Response:
        """The answer to a request. Repeated when nobody answers and twice does no harm."""
        head = self.head_of(method, target, {**headers, "Content-Length": str(_size_of(body))} if body is not None
                            or method in ("POST", "PUT", "PATCH") else headers)
        until, seconds = time.monotonic() + REPEAT_SECONDS, 0.02
        is_whole = body is None or isinstance(body, bytes)  # and can be sent again
        while True:
            connection = self._take_idle()
            is_kept = connection is not None
            try:
                connection = connection or await self.connect()
                lent = await self._lend(target, body)
                try:
                    response = await self._try(connection, head, body)
                finally:
                    if lent:
                        lent.close()
                if response.status != 503 or time.monotonic() > until or not is_whole:
                    return response
                said = await self.read_problem(response)
                if not said.problem.get("retry_safe"):
                    raise said
            except (ConnectionError, FileNotFoundError) as error:
                if isinstance(error, SandboxUnavailable) and not isinstance(error, Gone):
                    raise  # somebody did answer
                may = is_whole and (can_repeat or connection is None)
                if not may or time.monotonic() > until or self._is_hopeless(connection):
                    raise SandboxUnavailable(f"the daemon does not answer: {error}",
                                             problem={"retry_safe": connection is None}) from error
                if is_kept:
                    continue  # it was closed while nobody looked
            await async_pause(seconds)
            seconds = min(seconds * 2, PAUSE_MAX)

    def _is_hopeless(self, connection: Optional[Connection]) -> bool:
        """A socket that was named and is not there: nobody will come."""
        return connection is None and self.address.is_named and not self.address.tcp and not os.path.exists(self.address.path)

    async def read_problem(self, response: Response) -> Any:
        text = await response.read()
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {}
        return error_of(response.status, problem if isinstance(problem, dict) else {})


# ---- WebSocket, RFC 6455: the client's half ----------------------------------------------------

class WebSocket:
    """Messages of a terminal: bytes are its input and output, texts are JSON."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, wire: Wire, method: str, path: str) -> "WebSocket":
        connection = await wire.connect()
        try:
            await connection.pipe.send(wire.head_of(method, path, {
                "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode()}))
            status, headers = await connection.head()
            if status != 101:
                raise await wire.read_problem(Response(wire, connection, status, headers))
        except BaseException:
            connection.pipe.close()
            raise
        return cls(connection)

    async def send(self, data: bytes, opcode: int = 2) -> None:
        n, mask = len(data), os.urandom(4)
        size = bytes([0x80 | n]) if n < 126 else (
            b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n))
        whole = int.from_bytes(mask * ((n + 3) // 4), "big") >> (-n % 4 * 8)
        masked = (int.from_bytes(data, "big") ^ whole).to_bytes(n, "big")
        await self._connection.pipe.send(bytes([0x80 | opcode]) + size + mask + masked)

    async def _frame(self) -> Tuple[int, bytes]:
        first, n = await self._connection.exactly(2)
        if n == 126:
            n = int.from_bytes(await self._connection.exactly(2), "big")
        elif n == 127:
            n = int.from_bytes(await self._connection.exactly(8), "big")
        return first & 15, await self._connection.exactly(n)

    async def recv(self) -> Optional[Union[bytes, str]]:
        """The next message; None at the end."""
        while True:
            opcode, data = await self._frame()
            if opcode == 9:
                await self.send(data, 10)
            elif opcode == 8:
                return None
            elif opcode in (1, 2):
                return data if opcode == 2 else data.decode()

    def close(self) -> None:
        self._connection.pipe.interrupt()
        self._connection.pipe.close()
