"""A workspace: a durable tree. It outlives every sandbox, and what a command did to it can be undone."""
from __future__ import annotations

import base64
import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .. import models
from .._common import Duration, Size, given
from ..errors import Conflict, Denied, SandboxUnavailable
from .client import Client, default_client
from .files import Files
from .sandbox import Runs, Sandbox


class Workspace(Files, Runs):
    """By `open` (get or make it by a key of yours) or `get`. Files and git need no sandbox."""

    _at = "/v1/workspaces/{id}"

    def __init__(self, client: Client, record: models.Workspace) -> None:
        self._client, self.record = client, record

    @classmethod
    async def open(cls, key: str, *, repo: Optional[str] = None, base: Optional[str] = None,
                   branch: Optional[str] = None, mode: Optional[str] = None, pin: Optional[bool] = None,
                   ttl: Optional[Duration] = None, spec: Optional[Mapping[str, Any]] = None,
                   disk: Optional[Size] = None, inodes: Optional[int] = None,
                   client: Optional[Client] = None) -> "Workspace":
        """The one with this key, or a new one."""
        client = client or default_client()
        body = given(repo=repo, base=base, branch=branch, mode=mode, pin=pin, ttl=ttl, spec=spec, disk=disk, inodes=inodes)
        return cls(client, await client.call("PUT", "/v1/workspaces/{id}", values={"id": key}, body=body))

    @classmethod
    async def get(cls, id: str, *, client: Optional[Client] = None) -> "Workspace":
        """One that is there, by id or key."""
        client = client or default_client()
        return cls(client, await client.call("GET", "/v1/workspaces/{id}", values={"id": id}))

    async def _id(self) -> str:
        return self.record["id"]

    @property
    def id(self) -> str:
        return self.record["id"]

    @property
    def key(self) -> Optional[str]:
        return self.record["key"]

    async def info(self, *, usage: bool = False) -> models.Workspace:
        self.record = await self._ask("GET", "/v1/workspaces/{id}", query={"usage": usage})
        return self.record

    async def update(self, *, pin: Optional[bool] = None, ttl: Optional[Duration] = None,
                     spec: Optional[Mapping[str, Any]] = None) -> models.Workspace:
        """Pins it, or gives it another time to live or another spec."""
        self.record = await self._ask("PATCH", "/v1/workspaces/{id}", body=given(pin=pin, ttl=ttl, spec=spec))
        return self.record

    async def remove(self, *, force: bool = False) -> None:
        """To the trash, for a day; with `force` also when it has changes or sandboxes."""
        await self._ask("DELETE", "/v1/workspaces/{id}", query={"force": force})

    async def restore_trash(self) -> models.Workspace:
        self.record = await self._ask("POST", "/v1/workspaces/{id}/restore-trash")
        return self.record

    # ---- commands -----------------------------------------------------------------------

    async def _start(self, body: Mapping[str, Any]) -> models.Process:
        return await self._ask("POST", "/v1/workspaces/{id}/exec", body=body)

    def sandbox(self, *, fs: Any = "workspace:/work", **spec: Any) -> Sandbox:
        """A sandbox of its own that works on it."""
        return Sandbox(workspace=self.id, fs=fs, client=self._client, **spec)

    # ---- history ------------------------------------------------------------------------

    async def fork(self, n: Optional[int] = None, *, key: Optional[str] = None,
                   at: Optional[str] = None) -> "List[Workspace]":
        """More workspaces that begin as this one is, or was at a point."""
        made = await self._ask("POST", "/v1/workspaces/{id}/fork", body=given(n=n, key=key, at=at))
        return [Workspace(self._client, one) for one in made["workspaces"]]

    async def snapshot(self, label: Optional[str] = None) -> models.Point:
        return await self._ask("POST", "/v1/workspaces/{id}/snapshots", body=given(label=label))

    async def _turn(self, method: str, template: str, body: Dict[str, Any]) -> models.Restored:
        turned: models.Restored = await self._ask(method, template, body=body)
        self.record = turned["workspace"]
        return turned

    async def undo(self, steps: Optional[int] = None, *, to: Optional[str] = None,
                   processes: Optional[str] = None) -> models.Restored:
        """Back to what it was before the last command, or before `to` (px_…)."""
        return await self._turn("POST", "/v1/workspaces/{id}/undo", given(steps=steps, to=to, processes=processes))

    async def redo(self, steps: Optional[int] = None, *, processes: Optional[str] = None) -> models.Restored:
        return await self._turn("POST", "/v1/workspaces/{id}/redo", given(steps=steps, processes=processes))

    async def restore(self, to: str, *, processes: Optional[str] = None) -> models.Restored:
        """To any point of its history: cp_…, sn_…, px_… or base."""
        return await self._turn("POST", "/v1/workspaces/{id}/restore", given(to=to, processes=processes))

    async def history(self) -> List[models.Point]:
        """What changed it, newest first."""
        return await self._client.pages("GET", "/v1/workspaces/{id}/history", "points", values={"id": self.id})

    async def changes(self, *, base: Optional[str] = None, to: Optional[str] = None, path: Optional[str] = None,
                      plain: bool = False, root: bool = False) -> models.Changes:
        """Which files differ between two points, to now unless given."""
        return await self._ask("GET", "/v1/workspaces/{id}/changes", query={
            "format": "json", "plain": plain, "root": root, **given(base=base, to=to, path=path)})

    async def diff(self, *, base: Optional[str] = None, to: Optional[str] = None, path: Optional[str] = None) -> str:
        """The same as a patch that git applies."""
        response = await self._open("GET", "/v1/workspaces/{id}/changes",
                                    query={"format": "patch", **given(base=base, to=to, path=path)})
        return (await response.read()).decode(errors="surrogateescape")

    # ---- results ------------------------------------------------------------------------

    async def commit(self, message: str, *, paths: Optional[Sequence[str]] = None,
                     author: Optional[Mapping[str, str]] = None, allow_empty: Optional[bool] = None) -> models.Committed:
        return await self._ask("POST", "/v1/workspaces/{id}/commits", body=given(
            message=message, paths=list(paths) if paths else None, author=author, allow_empty=allow_empty))

    async def merge(self, other: "Union[Workspace, str]") -> models.Committed:
        """What another workspace, or a branch or commit, has. Conflicts are named, and then nothing was changed."""
        source = other.id if isinstance(other, Workspace) else other
        return await self._ask("POST", "/v1/workspaces/{id}/merge", body={"from": source})

    async def push(self, *, branch: Optional[str] = None, force_with_lease: Union[bool, str, None] = None,
                   cred: Optional[str] = None) -> models.Committed:
        return await self._ask("POST", "/v1/workspaces/{id}/push",
                               body=given(branch=branch, force_with_lease=force_with_lease, cred=cred))

    async def pr(self, title: str, *, body: Optional[str] = None, base: Optional[str] = None, branch: Optional[str] = None,
                 draft: Optional[bool] = None, cred: Optional[str] = None, forge: Optional[str] = None,
                 api: Optional[str] = None) -> models.Pull:
        """Opens a pull or merge request for a branch that was pushed."""
        return await self._ask("POST", "/v1/workspaces/{id}/pulls", body=given(
            title=title, body=body, base=base, branch=branch, draft=draft, cred=cred, forge=forge, api=api))

    async def export(self, format: str = "bundle", *, base: Optional[str] = None) -> bytes:
        """Its commits as a file: `bundle` or `patch`."""
        response = await self._open("GET", "/v1/workspaces/{id}/export", query={"format": format, **given(base=base)})
        return await response.read()

    async def attest(self, *, record: Optional[int] = None) -> models.Attestation:
        """What was promoted of it, as the ledger attests it: an in-toto statement in a DSSE envelope."""
        return await self._ask("GET", "/v1/workspaces/{id}/attestation", query=given(record=record))

    async def take(self, paths: Sequence[str], *, at: Optional[str] = None) -> bytes:
        """Some of its files as they were at a point, as tar."""
        response = await self._open("POST", "/v1/workspaces/{id}/take", body=given(at=at, paths=list(paths)))
        return await response.read()

    async def merge_file(self, base: bytes, ours: bytes, theirs: bytes) -> models.Joined:
        """Three versions of a file made one, by git."""
        coded = {name: base64.b64encode(data).decode() for name, data in
                 (("base", base), ("ours", ours), ("theirs", theirs))}
        return await self._ask("POST", "/v1/workspaces/{id}/merge-file", body=coded)

    async def apply(self, to: str, *, allow_exec: Sequence[str] = (), dry_run: bool = False,
                    source: Optional[str] = None, at: Optional[str] = None, ask: bool = False) -> Dict[str, Any]:
        """Its change in a folder here, whole or not at all, by the program `caisson`. What executes later needs
        a pattern of `allow_exec`, or with `ask` the yes of a person; what both have changed is a conflict."""
        words = ["apply", self.id, "--to", to, "--json", "--dry-run" if dry_run else "--yes"]
        for pattern in allow_exec:
            words += ["--allow-exec", pattern]
        words += ["--ask"] if ask else []
        words += ["--from", source] if source else []
        words += ["--at", at] if at else []
        done = await self._client.cli(*words)
        said = done.stderr.decode(errors="replace").strip()
        try:
            report: Dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise SandboxUnavailable(f"apply: {said or 'nothing was said'}") from None
        if dry_run or done.returncode == 0:
            return report
        for member, kind, what in (("conflicts", Conflict, "conflicts"),
                                   ("refused", Denied, "these execute later and were not allowed")):
            paths = [str(one.get("path")) for one in report.get(member, [])]
            if paths:
                raise kind(f"apply: {what}: {', '.join(paths)}", problem=report)
        raise SandboxUnavailable(f"apply: {said or 'nothing was said'}")

    def __repr__(self) -> str:
        return f"<Workspace {self.record['key'] or self.record['id']}>"
