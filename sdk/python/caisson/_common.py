"""What both halves share: words of a request, and the results of commands."""
from __future__ import annotations

import base64
import urllib.parse
import uuid
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from .errors import CommandError, CommandTimeout
from .models import Process as ProcessRecord
from .models import Violation

Duration = Union[str, int, float]  # "10m", or seconds
Size = Union[str, int]             # "4g", or bytes
Command = Union[str, Sequence[str]]

ENDED = frozenset(("exited", "signaled", "timeout", "oom", "killed", "expired", "denied", "lost"))
STDIN_INLINE_MAX = 60 << 10
STDIN_PIECE = 32 << 10


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()


def key() -> str:
    """Of a request that is done once, however often it is sent."""
    return uuid.uuid4().hex


def given(**values: Any) -> Dict[str, Any]:
    """Without what was not said. A float is a duration in seconds."""
    return {name: f"{round(value * 1000)}ms" if isinstance(value, float) else value
            for name, value in values.items() if value is not None and value is not UNSET}


def quote(text: Union[str, bytes]) -> str:
    return urllib.parse.quote(text, safe="")


def quote_path(path: Union[str, bytes]) -> str:
    """A leading slash is a part of it: without, it is taken from the working folder."""
    data = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
    return "/".join(quote(part) for part in data.split(b"/")) if not data.startswith(b"/") else (
        "%2F" + "/".join(quote(part) for part in data[1:].split(b"/")))


def target(template: str, values: Mapping[str, Any], query: Optional[Mapping[str, Any]]) -> str:
    words = {name: quote_path(v) if name == "path" else quote(str(v)) for name, v in values.items()}
    text = template.format(**words)
    pairs = []
    for name, value in (query or {}).items():
        if value is None or value is False:
            continue
        pairs.append(quote(name) if value is True else f"{quote(name)}={quote(str(value))}")
    return text + ("?" + "&".join(pairs) if pairs else "")


def text_or_bytes(name: str, value: Union[str, bytes]) -> Dict[str, str]:
    """A member of a body that may be any bytes."""
    if isinstance(value, str):
        return {name: value}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name + "_base64": base64.b64encode(value).decode()}


def exec_body(cmd: Command, stdin: Union[str, bytes, bool, None], **options: Any) -> Tuple[Dict[str, Any], bytes]:
    """The body, and the input that is sent behind it."""
    body: Dict[str, Any] = {"cmd": cmd if isinstance(cmd, str) else list(cmd), **given(**options)}
    later = b""
    if isinstance(stdin, (str, bytes)):
        data = stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else stdin
        try:
            body["stdin"] = data.decode()
        except UnicodeDecodeError:
            body["stdin"] = True
        if len(data) > STDIN_INLINE_MAX:
            body["stdin"] = True
        if body["stdin"] is True:
            later = data
    elif stdin is not None:
        body["stdin"] = stdin
    return body, later


class Result:
    """What a command left. `ok`: it ended by itself with status 0."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.record = cast(ProcessRecord, record)

    id = property(lambda self: self.record["id"])
    sandbox = property(lambda self: self.record["sandbox"])

    @property
    def state(self) -> str:
        return self.record["state"]

    @property
    def exit_code(self) -> Optional[int]:
        return self.record["exit_code"]

    @property
    def signal(self) -> Optional[int]:
        return self.record["signal"]

    @property
    def reason(self) -> Optional[str]:
        return self.record["reason"]

    @property
    def ok(self) -> bool:
        return self.state == "exited" and self.exit_code == 0

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    def _bytes(self, stream: str) -> bytes:
        text = str(self.record.get(stream, ""))
        return base64.b64decode(text) if self.record.get("encoding") == "base64" else text.encode()

    @property
    def stdout(self) -> str:
        return self._bytes("stdout").decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self._bytes("stderr").decode(errors="replace")

    @property
    def stdout_bytes(self) -> bytes:
        return self._bytes("stdout")

    @property
    def stderr_bytes(self) -> bytes:
        return self._bytes("stderr")

    @property
    def dropped(self) -> int:
        """Bytes of output that are in the log and not here."""
        return self.record["bytes"]["dropped"]

    @property
    def cwd(self) -> Optional[str]:
        return self.record["cwd"]

    @property
    def ms(self) -> int:
        return self.record["ms"]

    @property
    def seq(self) -> int:
        return int(self.record.get("seq", 0))

    @property
    def violations(self) -> List[Violation]:
        return list(self.record.get("violations", []))

    @property
    def files(self) -> Dict[str, bytes]:
        """Of a run with `collect`: what was brought back, by name."""
        return {one["path"]: base64.b64decode(one["base64"]) for one in self.record.get("collected", []) if "base64" in one}

    @property
    def missing(self) -> List[str]:
        """Of a run with `collect`: what nothing matches, cannot be read or is too large."""
        return [*self.record.get("missing", []),
                *(one["path"] for one in self.record.get("collected", []) if "base64" not in one)]

    def describe(self) -> str:
        how = {"exited": f"exit status {self.exit_code}", "signaled": f"ended by signal {self.signal}"}.get(
            self.state, self.state)
        said = (self.stderr or self.stdout).strip().splitlines()
        return f"{how}{': ' + self.reason if self.reason else ''}{': ' + said[-1] if said else ''}"

    def check(self) -> "Result":
        """Itself, when it is ok; else CommandTimeout or CommandError."""
        if self.ok:
            return self
        raise (CommandTimeout if self.state in ("timeout", "expired") else CommandError)(self)

    def __repr__(self) -> str:
        return f"<Result {self.record['id']} {self.describe()!r}>"
