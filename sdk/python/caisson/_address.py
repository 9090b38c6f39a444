"""Where the daemon is, and how to get one: the rules of the CLI, which starts it."""
from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from .errors import Invalid, SandboxUnavailable

START_SECONDS = 30


class Address(NamedTuple):
    """Of a unix socket, or with `tcp` of a host; `is_named`: it was said where, so nothing is started."""
    path: str
    tcp: Optional[Tuple[str, int]]
    token: Optional[str]
    is_named: bool


def split_host(text: str) -> Tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise Invalid(f"a host is HOST:PORT, not {text!r}")
    return host, int(port)


def host_text(tcp: Tuple[str, int]) -> str:
    return f"[{tcp[0]}]:{tcp[1]}" if ":" in tcp[0] else f"{tcp[0]}:{tcp[1]}"


def run_dir() -> str:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if os.geteuid() == 0:
        return "/run/caisson"
    if runtime:
        return f"{runtime}/caisson"
    folder = Path(f"/tmp/caisson-{os.geteuid()}")
    if folder.is_symlink() or (folder.exists() and (folder.stat().st_uid != os.geteuid() or folder.stat().st_mode & 0o22)):
        raise Invalid(f"{folder} belongs to somebody else")
    return str(folder)


def find(socket: Optional[str] = None, host: Optional[str] = None, token: Optional[str] = None) -> Address:
    """What was said, else what the environment says, else where the CLI looks."""
    if not socket and not host:
        socket, host = os.environ.get("CAISSON_SOCKET") or None, os.environ.get("CAISSON_HOST") or None
        if socket and host:
            raise Invalid("CAISSON_HOST and CAISSON_SOCKET: which one?")
    elif socket and host:
        raise Invalid("a socket and a host: which one?")
    if host:
        return Address("", split_host(host), token or os.environ.get("CAISSON_TOKEN") or None, True)
    return Address(socket or f"{run_dir()}/api.sock", None, None, bool(socket))


def binary(given: Optional[str] = None) -> str:
    """The program `caisson`: as given, $CAISSON, on the PATH, or beside a checkout of this package."""
    asked = given or os.environ.get("CAISSON")
    if asked:
        return asked
    beside = Path(__file__).resolve().parents[3] / "build/caisson"
    found = shutil.which("caisson") or (str(beside) if os.access(beside, os.X_OK) else None)
    if not found:
        raise SandboxUnavailable("no daemon answers, and there is no program `caisson` to start one: install it, "
                                 "put it on the PATH, or set CAISSON=/path/to/caisson or CAISSON_SOCKET")
    return found


def start_command(program: Optional[str]) -> List[str]:
    """Any command that asks the daemon something starts it when it is not there, one starter at a time."""
    return [binary(program), "ps", "--json"]


def start_failed(said: bytes) -> SandboxUnavailable:
    lines = said.decode(errors="replace").strip().splitlines()
    return SandboxUnavailable(f"the daemon could not be started: {lines[-1] if lines else 'nothing was said'}")


def may_start(address: Address) -> bool:
    return not address.is_named and os.environ.get("CAISSON_START") != "never"


def cli(program: Optional[str], address: Address, *words: str) -> "subprocess.CompletedProcess[bytes]":
    """A command of the CLI, on the same daemon."""
    return subprocess.run([binary(program), *words], env=cli_environment(address), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def cli_environment(address: Address) -> Dict[str, str]:
    env = {k: v for k, v in os.environ.items() if k not in ("CAISSON_SOCKET", "CAISSON_HOST", "CAISSON_TOKEN")}
    if address.tcp:
        env["CAISSON_HOST"] = host_text(address.tcp)
        if address.token:
            env["CAISSON_TOKEN"] = address.token
    elif address.is_named:
        env["CAISSON_SOCKET"] = address.path
    return env
