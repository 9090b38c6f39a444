"""A sandbox backend for deepagents: `create_deep_agent(backend=CaissonBackend(net="deny"))`.

BaseSandbox makes everything else of these four: it runs small programs inside, which need python3 there.
"""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple, TypeVar

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from .. import Sandbox
from ..errors import CaissonError, SandboxUnavailable
from ._run import refusal_of, status_of

SECONDS = 30 * 60
T = TypeVar("T")
WORDS = {"not_found": "file_not_found", "not_directory": "file_not_found", "permission_denied": "permission_denied",
         "forbidden": "permission_denied", "is_directory": "is_directory", "invalid": "invalid_path"}


class CaissonBackend(BaseSandbox):
    """A sandbox of its own, made of what Sandbox() takes, or one that is there: CaissonBackend(sandbox=s)."""

    def __init__(self, *, sandbox: Optional[Sandbox] = None, timeout: int = SECONDS, **spec: Any) -> None:
        self.sandbox, self.timeout = sandbox or Sandbox(**spec), timeout

    @property
    def id(self) -> str:
        if self.sandbox.record is None:
            self.sandbox.start()
        return self.sandbox.id

    def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
        """0 seconds are no limit."""
        seconds = self.timeout if timeout is None else timeout
        done = self.sandbox.exec(command, timeout=seconds or None, output={"inline": "4m", "merge": True})
        why = refusal_of(done)
        said = done.stdout + (f"\n[{why}]" if why else "")
        return ExecuteResponse(output=said, exit_code=status_of(done), truncated=done.dropped > 0)

    def upload_files(self, files: List[Tuple[str, bytes]]) -> List[FileUploadResponse]:
        return [FileUploadResponse(path, _try(path, lambda: self.sandbox.write(path, data))[1]) for path, data in files]

    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
        return [FileDownloadResponse(path, *_try(path, lambda: self.sandbox.read_bytes(path))) for path in paths]

    def close(self) -> None:
        """Deletes the sandbox; at the end of the program it is done without."""
        self.sandbox.close()


def _try(path: str, act: Callable[[], T]) -> Tuple[Optional[T], Any]:
    """What came of it, or the word for why nothing did. Only our own failure is an exception."""
    if not path.startswith("/"):
        return None, "invalid_path"
    try:
        return act(), None
    except SandboxUnavailable:
        raise
    except CaissonError as error:
        return None, WORDS.get(error.code, str(error))
