# Written by sdk/python/generate from caisson/_a/files.py. Do not edit.
"""Files of a sandbox or a workspace. A path without a slash in front is taken from where commands start."""
from __future__ import annotations

from typing import Any, Iterator, Dict, List, Mapping, Optional, Sequence, Union

from .. import models
from .._common import given, text_or_bytes
from .client import Client
from .http import Body

Path = Union[str, bytes]


def _if(hash: Optional[str], is_new: bool = False) -> Dict[str, str]:
    return {**({"If-Match": f'"{hash}"'} if hash else {}), **({"If-None-Match": "*"} if is_new else {})}


class Files:
    """`{at}` stands for /v1/sandboxes/{id} or /v1/workspaces/{id}."""

    _at = ""
    _client: Client

    def _id(self) -> str:
        raise NotImplementedError

    def _ask(self, method: str, template: str, *, path: Optional[Path] = None, **parts: Any) -> Any:
        values = {"id": self._id(), **({} if path is None else {"path": path})}
        return self._client.call(method, template.replace("{at}", self._at), values=values, **parts)

    def _open(self, method: str, template: str, *, path: Optional[Path] = None, **parts: Any) -> Any:
        values = {"id": self._id(), **({} if path is None else {"path": path})}
        return self._client.open(method, template.replace("{at}", self._at), values=values, **parts)

    # ---- one file -----------------------------------------------------------------------

    def read_bytes(self, path: Path, *, first: Optional[int] = None, last: Optional[int] = None) -> bytes:
        """All of it, or the bytes FIRST to LAST."""
        headers = {} if first is None and last is None else {"Range": f"bytes={first or 0}-{'' if last is None else last}"}
        response = self._open("GET", "{at}/files/{path}", path=path, query={"relative": True}, headers=headers)
        return response.read()

    def read(self, path: Path, *, encoding: str = "utf-8", errors: str = "strict") -> str:
        return (self.read_bytes(path)).decode(encoding, errors)

    def read_lines(self, path: Path, first: int = 1, last: Optional[int] = None) -> models.FileLines:
        """Lines FIRST to LAST, with the hash of the file and where to go on."""
        lines = f"{first}-{'' if last is None else last}"
        return self._ask("GET", "{at}/files/{path}", path=path, query={"relative": True, "lines": lines})

    def write(self, path: Path, content: Union[str, bytes, Body], *, mode: Optional[str] = None,
                    if_hash: Optional[str] = None, only_new: bool = False) -> models.FileWritten:
        """All of it, atomically; parents are made. `content` may be an open file."""
        data = content.encode() if isinstance(content, str) else content
        return self._ask("PUT", "{at}/files/{path}", path=path, data=data, headers=_if(if_hash, only_new),
                               query={"relative": True, "mode": mode})

    def edit(self, path: Path, old: Union[str, bytes], new: Union[str, bytes], *, all: bool = False,
                   if_hash: Optional[str] = None) -> models.FileEdited:
        """Replaces what stands there exactly, once unless `all`; line ends may differ."""
        edit = {**text_or_bytes("old", old), **text_or_bytes("new", new), **({"all": True} if all else {})}
        return self.edit_many(path, [edit], if_hash=if_hash)

    def edit_many(self, path: Path, edits: Sequence[Mapping[str, Any]], *,
                        if_hash: Optional[str] = None) -> models.FileEdited:
        """Several replacements {old, new, all?}, one after the other."""
        return self._ask("PATCH", "{at}/files/{path}", path=path, query={"relative": True},
                               headers=_if(if_hash), body={"edits": list(edits)})

    def insert(self, path: Path, line: int, text: str, *, if_hash: Optional[str] = None) -> models.FileEdited:
        """Whole lines behind this one; 0 is the top."""
        return self._ask("PATCH", "{at}/files/{path}", path=path, query={"relative": True}, headers=_if(if_hash),
                               body={"insert": {"line": line, "text": text}})

    def delete(self, path: Path, *, recursive: bool = False, if_hash: Optional[str] = None) -> models.FileDeleted:
        return self._ask("DELETE", "{at}/files/{path}", path=path, headers=_if(if_hash),
                               query={"relative": True, "recursive": recursive})

    def stat(self, path: Path, *, hash: bool = False) -> models.FileStat:
        return self._ask("GET", "{at}/files/{path}", path=path, query={"relative": True, "stat": True, "hash": hash})

    def exists(self, path: Path) -> bool:
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def list(self, path: Path = ".", *, depth: Optional[int] = None, hidden: bool = False,
                   max: Optional[int] = None) -> List[models.FileStat]:
        found = self._ask("GET", "{at}/files/{path}", path=path, query={
            "relative": True, "list": True, "depth": depth, "hidden": hidden, "max": max})
        return found["entries"]

    def watch(self, path: Path = ".", *, recursive: bool = False) -> Iterator[models.WatchEvent]:
        """Changes below a folder, as they happen. An event `overflow` means: look again."""
        import json
        response = self._open("GET", "{at}/files/{path}", path=path,
                                    query={"relative": True, "watch": True, "recursive": recursive})
        try:
            for line in response.lines():
                if line.strip():
                    yield json.loads(line)
        finally:
            response.close()

    # ---- several ------------------------------------------------------------------------

    def move(self, source: Path, to: Path, *, overwrite: bool = False) -> models.Transferred:
        return self._ask("POST", "{at}/files:move", body={
            **text_or_bytes("from", source), **text_or_bytes("to", to), "overwrite": overwrite})

    def copy(self, source: Path, to: Path, *, overwrite: bool = False) -> models.Transferred:
        return self._ask("POST", "{at}/files:copy", body={
            **text_or_bytes("from", source), **text_or_bytes("to", to), "overwrite": overwrite})

    def mkdir(self, path: Path, *, mode: Optional[str] = None) -> models.FolderMade:
        return self._ask("POST", "{at}/files:mkdir", body={**text_or_bytes("path", path), **given(mode=mode)})

    def batch(self, operations: Sequence[Mapping[str, Any]], *, atomic: bool = False,
                    path: Optional[str] = None) -> List[models.BatchResult]:
        """Operations {op: read|write|edit|delete|stat, path, …} in order; each has a result or an error."""
        return self._ask("POST", "{at}/files:batch", body=list(operations), query={"atomic": atomic, **given(path=path)})

    def patch(self, patch: Union[str, bytes], *, folder: Optional[str] = None) -> models.Patched:
        """A unified diff or a V4A patch, whole or not at all."""
        return self._ask("POST", "{at}/patch", data=patch.encode() if isinstance(patch, str) else patch,
                               query=given(path=folder), headers={"Content-Type": "text/plain"})

    def grep(self, pattern: Union[str, bytes], path: Optional[Path] = None, *, literal: bool = False,
                   ignore_case: bool = False, multiline: bool = False, ignored: bool = False,
                   glob: Union[str, Sequence[str], None] = None, context: Optional[int] = None,
                   max: Optional[int] = None) -> models.GrepFound:
        where = {} if path is None else text_or_bytes("path", path)
        flags = {name: True for name, is_set in (("literal", literal), ("ignore_case", ignore_case),
                                                 ("multiline", multiline), ("ignored", ignored)) if is_set}
        return self._ask("POST", "{at}/grep", body={**text_or_bytes("pattern", pattern), **where, **flags,
                                                          **given(glob=glob, context=context, max=max)})

    def glob(self, pattern: Union[str, bytes], path: Optional[Path] = None, *, max: Optional[int] = None,
                   sort: Optional[str] = None, ignored: bool = False) -> models.GlobFound:
        where = {} if path is None else text_or_bytes("path", path)
        return self._ask("POST", "{at}/glob", body={**text_or_bytes("pattern", pattern), **where,
                                                          **given(max=max, sort=sort, ignored=ignored or None)})

    def download(self, path: str = ".") -> bytes:
        """A folder as tar."""
        return (self._open("GET", "{at}/archive", query={"path": path, "format": "tar"})).read()

    def upload(self, archive: Body, path: str = ".") -> models.Unpacked:
        """Unpacks a tar archive: bytes, or an open file."""
        return self._ask("PUT", "{at}/archive", query={"path": path}, data=archive,
                               headers={"Content-Type": "application/x-tar"})
