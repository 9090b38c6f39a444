"""Bytes to and from the daemon: one class that blocks and one that awaits, with the same words."""
from __future__ import annotations

import asyncio
import os
import select
import socket
import subprocess
import threading
import time
from typing import Any, List, Optional

from . import _address
from ._address import Address

READ_BYTES = 65536


def _keep_alive(sock: socket.socket) -> None:
    """A peer that is gone is noticed, however long an answer takes."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _is_readable(sock: socket.socket) -> bool:
    """Nothing is due between two answers: what can be read is the end."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


class Pipe:
    """A connection that blocks."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    @classmethod
    def open(cls, address: Address) -> "Pipe":
        if address.tcp:
            sock = socket.create_connection(address.tcp, 30)
            _keep_alive(sock)
        else:
            sock = socket.socket(socket.AF_UNIX)
            try:
                sock.connect(address.path)
            except OSError:
                sock.close()
                raise
        sock.settimeout(None)
        return cls(sock)

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def recv(self) -> bytes:
        return self._sock.recv(READ_BYTES)

    def is_stale(self) -> bool:
        return _is_readable(self._sock)

    def interrupt(self) -> None:
        """Ends a recv() in another thread."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self._sock.close()


class AsyncPipe:
    """A connection of an event loop."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    @classmethod
    async def open(cls, address: Address) -> "AsyncPipe":
        loop = asyncio.get_running_loop()
        if address.tcp:
            sock = await loop.run_in_executor(None, socket.create_connection, address.tcp, 30)
            _keep_alive(sock)
            sock.setblocking(False)
            return cls(sock)
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address.path)
        except BaseException:
            sock.close()
            raise
        return cls(sock)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._sock, data)

    async def recv(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self._sock, READ_BYTES)

    def is_stale(self) -> bool:
        return _is_readable(self._sock)

    def interrupt(self) -> None:
        """Whoever waits for it hears the end."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self._sock.close()


# ---- what else differs -----------------------------------------------------------------------

def pause(seconds: float) -> None:
    time.sleep(seconds)


async def async_pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


def start_daemon(program: Optional[str]) -> None:
    made = subprocess.run(_address.start_command(program), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=_address.START_SECONDS, check=False)
    if made.returncode != 0:
        raise _address.start_failed(made.stderr)


async def async_start_daemon(program: Optional[str]) -> None:
    await asyncio.get_running_loop().run_in_executor(None, start_daemon, program)


def run_cli(program: Optional[str], address: Address, words: List[str]) -> Any:
    return _address.cli(program, address, *words)


async def async_run_cli(program: Optional[str], address: Address, words: List[str]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, run_cli, program, address, words)


def context() -> object:
    """To whom a pool of connections belongs: nobody inherits one by fork."""
    return os.getpid()


def async_context() -> object:
    return asyncio.get_running_loop()


class NoLock:
    """An event loop does one thing at a time."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def make_lock() -> Any:
    return threading.Lock()


def async_make_lock() -> NoLock:
    return NoLock()


class AsyncMutex:
    """A lock that belongs to the loop that first needs it, not to the one that made it."""

    def __init__(self) -> None:
        self._lock: Optional[asyncio.Lock] = None

    async def __aenter__(self) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        assert self._lock is not None
        self._lock.release()


def make_mutex() -> Any:
    return threading.RLock()


def async_make_mutex() -> AsyncMutex:
    return AsyncMutex()
