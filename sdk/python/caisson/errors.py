"""What can go wrong, as exceptions. That a command fails, runs out of time or is refused something is a result.

Each code of the API has a class; it is also the exception of Python that means the same, so that
`except FileNotFoundError` does what one expects.
"""
from __future__ import annotations

import errno
from typing import Any, Dict, List, Optional, Type


class CaissonError(Exception):
    """Any answer of the API that is an error. `code` is of a closed list (docs/api.md)."""

    code: str = ""
    errno_: Optional[int] = None

    def __init__(self, detail: str = "", *, status: int = 0, problem: Optional[Dict[str, Any]] = None) -> None:
        self.detail = detail
        self.status = status
        self.problem: Dict[str, Any] = problem or {}
        if isinstance(self, OSError) and self.errno_ is not None:
            super().__init__(self.errno_, detail)
        else:
            super().__init__(detail)

    def __str__(self) -> str:
        return self.detail

    @property
    def lines(self) -> List[int]:
        """Of an edit or a patch: where it matches, or nearly does."""
        return list(self.problem.get("lines", []))


class Invalid(CaissonError, ValueError):
    code = "invalid"


class Unauthorized(CaissonError, PermissionError):
    code, errno_ = "unauthorized", errno.EACCES


class Forbidden(CaissonError, PermissionError):
    code, errno_ = "forbidden", errno.EPERM


class NotFound(CaissonError, FileNotFoundError):
    code, errno_ = "not_found", errno.ENOENT


class Exists(CaissonError, FileExistsError):
    code, errno_ = "exists", errno.EEXIST


class Stale(CaissonError):
    """It has changed since: the hash, or the generation, is another one."""
    code = "stale"


class IsADirectory(CaissonError, IsADirectoryError):
    code, errno_ = "is_directory", errno.EISDIR


class NotADirectory(CaissonError, NotADirectoryError):
    code, errno_ = "not_directory", errno.ENOTDIR


class PermissionDenied(CaissonError, PermissionError):
    code, errno_ = "permission_denied", errno.EACCES


class NotText(CaissonError, ValueError):
    code = "not_text"


class TooLarge(CaissonError, OSError):
    code, errno_ = "too_large", errno.EFBIG


class NoMatch(CaissonError, LookupError):
    code = "no_match"


class AmbiguousMatch(CaissonError, LookupError):
    code = "ambiguous_match"


class Conflict(CaissonError):
    code = "conflict"


class Busy(CaissonError):
    code = "busy"


class ApprovalRequired(CaissonError, PermissionError):
    """A person is asked; `approval` is the id of the question (Client.approval waits for the answer)."""
    code, errno_ = "approval_required", errno.EPERM

    @property
    def approval(self) -> Optional[str]:
        asked = self.problem.get("approval")
        return asked.get("id") if isinstance(asked, dict) else asked


class Denied(CaissonError, PermissionError):
    code, errno_ = "denied", errno.EPERM


class Unenforceable(CaissonError, ValueError):
    """This host has no mechanism for a limit or a wall that was asked for."""
    code = "unenforceable"


class QuotaExceeded(CaissonError, OSError):
    code, errno_ = "quota", errno.EDQUOT


class SandboxUnavailable(CaissonError, ConnectionError):
    """Our own failure, never the command's. `retry_safe`: nothing was done, ask again."""
    code, errno_ = "sandbox_unavailable", errno.EIO

    @property
    def retry_safe(self) -> bool:
        return bool(self.problem.get("retry_safe", False))


class BackendError(SandboxUnavailable):
    code = "backend_error"


class RepoAuth(CaissonError, PermissionError):
    code, errno_ = "repo_auth", errno.EACCES


class RepoUnreachable(CaissonError, ConnectionError):
    code, errno_ = "repo_unreachable", errno.EHOSTUNREACH


class Expired(CaissonError, TimeoutError):
    code, errno_ = "expired", errno.ETIMEDOUT


class CommandError(CaissonError):
    """Of `check`: a command that did not end well. `result` is what it left."""

    def __init__(self, result: Any) -> None:
        self.result = result
        super().__init__(result.describe())


class CommandTimeout(CommandError, TimeoutError):
    """Of `check`: it ran out of time."""
    errno_ = errno.ETIMEDOUT


def _all(cls: Type[CaissonError]) -> List[Type[CaissonError]]:
    return [cls] + [one for sub in cls.__subclasses__() for one in _all(sub)]


_BY_CODE: Dict[str, Type[CaissonError]] = {c.code: c for c in _all(CaissonError) if c.code}


def error_of(status: int, problem: Dict[str, Any]) -> CaissonError:
    """The exception for a problem object."""
    code = problem.get("code", "")
    cls = _BY_CODE.get(code, SandboxUnavailable if status >= 500 else CaissonError)
    error = cls(str(problem.get("detail") or problem.get("title") or f"HTTP {status}"), status=status, problem=problem)
    error.code = code or error.code
    return error
