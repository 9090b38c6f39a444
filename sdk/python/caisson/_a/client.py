"""The daemon: everything that is not of one sandbox, workspace or process."""
from __future__ import annotations

import atexit
import base64
import json
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Sequence, Union

from .. import _address, _seal, models
from .._common import Duration, Result, Size, exec_body, given, key, target
from .._pipe import async_pause, async_run_cli
from ..errors import ApprovalRequired, Invalid
from .http import Body, Gone, Response, WebSocket, Wire

FOLLOW_PAUSE = 0.1


class Client:
    """A daemon. Without arguments the one of the environment, else the user's own, which is started when it
    is needed. `host` is HOST:PORT and needs a `token`."""

    def __init__(self, *, socket: Optional[str] = None, host: Optional[str] = None, token: Optional[str] = None,
                 program: Optional[str] = None) -> None:
        self.wire = Wire(_address.find(socket, host, token), program)

    @classmethod
    def at(cls, address: _address.Address) -> "Client":
        client = cls.__new__(cls)
        client.wire = Wire(address, None)
        return client

    def close(self) -> None:
        self.wire.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    # ---- requests -----------------------------------------------------------------------

    async def open(self, method: str, template: str, *, values: Optional[Mapping[str, Any]] = None,
                   query: Optional[Mapping[str, Any]] = None, body: Any = None, data: Body = None,
                   headers: Optional[Mapping[str, str]] = None) -> Response:
        """Any request of docs/api.md. The answer is a good one; its body is still to be read."""
        sent: Dict[str, str] = dict(headers or {})
        if method == "POST":
            sent.setdefault("Idempotency-Key", key())
            body = {} if body is None and data is None else body
        if body is not None:
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        is_conditional = any(name.lower().startswith("if-") for name in sent)
        response = await self.wire.ask(method, target(template, values or {}, query), sent, data,
                                       method != "PATCH" and not is_conditional)
        if response.status >= 400:
            raise await self.wire.read_problem(response)
        return response

    async def call(self, method: str, template: str, **parts: Any) -> Any:
        """Any request whose answer is JSON, or nothing."""
        response = await self.open(method, template, **parts)
        text = await response.read()
        answer: Any = json.loads(text) if text else None
        if response.status == 202 and "approval" in answer:
            raise ApprovalRequired(f"a person is asked: {answer['approval']['what']}", status=202, problem=answer)
        return answer

    async def pages(self, method: str, template: str, member: str, *, values: Optional[Mapping[str, Any]] = None,
                    query: Optional[Mapping[str, Any]] = None) -> List[Any]:
        """All pages of a list."""
        found: List[Any] = []
        cursor: Optional[str] = None
        while True:
            page = await self.call(method, template, values=values, query={**(query or {}), "cursor": cursor})
            found += page[member]
            cursor = page.get("next")
            if cursor is None:
                return found

    async def follow(self, method: str, template: str, *, values: Optional[Mapping[str, Any]] = None,
                     query: Optional[Mapping[str, Any]] = None, after: int = 0,
                     is_last: Callable[[Any], bool] = lambda one: False) -> AsyncIterator[Any]:
        """Objects of a stream as they come, line by line. A connection that breaks is made again behind the
        last `seq` (or `rev`) that was seen, so nothing is lost and nothing comes twice."""
        is_endless = bool((query or {}).get("follow"))
        while True:
            try:
                response = await self.open(method, template, values=values, query={**(query or {}), "after": after},
                                           headers={"Accept": "application/x-ndjson"})
                async for line in response.lines():
                    if not line.strip():
                        continue
                    one = json.loads(line)
                    after = max(after, int(one.get("seq", one.get("rev", 0))))
                    yield one
                    if is_last(one):
                        response.close()
                        return
                if not is_endless:
                    return
            except Gone:
                pass
            await async_pause(FOLLOW_PAUSE)

    async def open_socket(self, method: str, template: str, values: Mapping[str, Any],
                          query: Mapping[str, Any]) -> WebSocket:
        return await WebSocket.open(self.wire, method, target(template, values, query))

    async def cli(self, *words: str) -> Any:
        """A command of the program `caisson` on the same daemon, for what is done on the caller's side."""
        return await async_run_cli(self.wire.program, self.wire.address, list(words))

    # ---- the daemon ---------------------------------------------------------------------

    async def health(self) -> models.Health:
        return await self.call("GET", "/v1/health")

    async def openapi(self) -> Dict[str, Any]:
        return await self.call("GET", "/v1/openapi.json")

    async def metrics(self) -> str:
        return (await (await self.open("GET", "/metrics")).read()).decode()

    async def backends(self) -> List[models.Backend]:
        return (await self.call("GET", "/v1/backends"))["backends"]

    async def quota(self) -> models.Quota:
        return await self.call("GET", "/v1/quota")

    async def events(self, *, after: int = 0, follow: bool = False, kind: Optional[str] = None,
                     sandbox: Optional[str] = None, workspace: Optional[str] = None, process: Optional[str] = None,
                     since: Optional[int] = None, limit: Optional[int] = None) -> AsyncIterator[models.Record]:
        """The ledger, oldest first."""
        query = given(follow=follow or None, kind=kind, sandbox=sandbox, workspace=workspace, process=process,
                      since=since, limit=limit)
        async for one in self.follow("GET", "/v1/events", query=query, after=after):
            yield one

    async def gc(self, *, dry_run: bool = False) -> models.Gc:
        return await self.call("POST", "/v1/gc", body={"dry_run": dry_run})

    async def fsck(self, *, repair: bool = False) -> models.Fsck:
        return await self.call("POST", "/v1/fsck", body={"repair": repair})

    # ---- tokens -------------------------------------------------------------------------

    async def create_token(self, *, name: Optional[str] = None, scope: Union[str, Sequence[str], None] = None,
                           ttl: Optional[Duration] = None, tenant: Optional[str] = None) -> models.TokenMade:
        return await self.call("POST", "/v1/tokens", body=given(name=name, scope=scope, ttl=ttl, tenant=tenant))

    async def tokens(self) -> List[models.Token]:
        return await self.pages("GET", "/v1/tokens", "tokens")

    async def revoke_token(self, id: str) -> None:
        await self.call("DELETE", "/v1/tokens/{id}", values={"id": id})

    # ---- the package cache --------------------------------------------------------------

    async def cache(self) -> List[models.CacheEntry]:
        return await self.pages("GET", "/v1/cache", "entries")

    async def cache_gc(self, *, max: Optional[Size] = None, older_than: Optional[Duration] = None) -> models.CacheGc:
        return await self.call("POST", "/v1/cache/gc", body=given(max=max, older_than=older_than))

    async def cache_verify(self) -> models.CacheVerified:
        return await self.call("POST", "/v1/cache/verify")

    # ---- secrets ------------------------------------------------------------------------

    async def set_secret(self, name: str, value: Union[str, bytes], *, hosts: Sequence[str],
                         **binding: Any) -> models.Secret:
        """Seals the value here, to the gate's key, and stores it. `binding` is what else it is bound to: inject,
        format, methods, paths, git, push, env, ttl, workspaces (docs/gate.md)."""
        sealing = await self.call("GET", "/v1/sealing")
        bind = json.dumps({"hosts": list(hosts), **given(**binding)}, separators=(",", ":"), ensure_ascii=False)
        aad = b"\x00".join((sealing["tenant"].encode(), name.encode(), bind.encode()))
        plain = value.encode() if isinstance(value, str) else value
        sealed = _seal.seal(base64.b64decode(sealing["key"]), sealing["info"].encode(), aad, plain)
        return await self.call("PUT", "/v1/secrets/{name}", values={"name": name},
                               body={"bind": bind, "sealed": base64.b64encode(sealed).decode()})

    async def secrets(self) -> List[models.Secret]:
        return (await self.call("GET", "/v1/secrets"))["secrets"]

    async def secret(self, name: str) -> models.Secret:
        return await self.call("GET", "/v1/secrets/{name}", values={"name": name})

    async def delete_secret(self, name: str) -> None:
        await self.call("DELETE", "/v1/secrets/{name}", values={"name": name})

    # ---- approvals ----------------------------------------------------------------------

    async def approvals(self, *, state: Optional[str] = None, kind: Optional[str] = None, sandbox: Optional[str] = None,
                        workspace: Optional[str] = None) -> List[models.Approval]:
        """What waits for a person (`state="pending"`), and what was decided, newest first."""
        return await self.pages("GET", "/v1/approvals", "approvals",
                                query=given(state=state, kind=kind, sandbox=sandbox, workspace=workspace))

    async def follow_approvals(self, *, after: int = 0, kind: Optional[str] = None, sandbox: Optional[str] = None,
                               workspace: Optional[str] = None) -> AsyncIterator[models.Approval]:
        """Those that are there, then every change, as it comes. `after` is a `rev`."""
        query = given(follow=True, kind=kind, sandbox=sandbox, workspace=workspace)
        async for one in self.follow("GET", "/v1/approvals", query=query, after=after):
            yield one

    async def approval(self, id: str, *, wait: Optional[Duration] = None) -> models.Approval:
        """One question; with `wait` when it is decided."""
        return await self.call("GET", "/v1/approvals/{id}", values={"id": id}, query=given(wait=wait))

    async def decide(self, id: str, decision: str, *, scope: Optional[str] = None, lasts: Optional[Duration] = None,
                     note: Optional[str] = None, seen: Optional[str] = None) -> models.Approval:
        """`allow` or `deny`, for this once, or for the sandbox or workspace and so long. A question whose `detail` has
        `cut` is allowed only with `seen`, the SHA-256 of `detail["what"]` as it was shown to who decides."""
        return await self.call("POST", "/v1/approvals/{id}", values={"id": id}, body=given(
            decision=decision, scope=scope, note=note, seen=seen, **{"for": lasts}))

    # ---- images -------------------------------------------------------------------------

    async def import_image(self, name: str, archive: Body, *, oci: bool = False, ref: Optional[str] = None,
                           replace: bool = False) -> models.Image:
        """A tar of a root file system, or with `oci` of an OCI layout: bytes, or an open file."""
        kind = "application/vnd.oci.image.layout.v1+tar" if oci else "application/x-tar"
        return await self.call("PUT", "/v1/images/{name}", values={"name": name}, data=archive,
                               query=given(ref=ref, replace=replace or None), headers={"Content-Type": kind})

    async def make_image(self, name: str, workspace: str, *, point: Optional[str] = None,
                         replace: Optional[bool] = None) -> models.Image:
        """Of the root that a workspace keeps (checkpoint: all)."""
        return await self.call("POST", "/v1/images",
                               body=given(name=name, workspace=workspace, point=point, replace=replace))

    async def images(self) -> List[models.Image]:
        return (await self.call("GET", "/v1/images"))["images"]

    async def image(self, name: str) -> models.Image:
        return await self.call("GET", "/v1/images/{name}", values={"name": name})

    async def delete_image(self, name: str) -> None:
        await self.call("DELETE", "/v1/images/{name}", values={"name": name})

    # ---- repositories -------------------------------------------------------------------

    async def add_repo(self, key: str, url: str, *, cred: Optional[str] = None, refs: Optional[Sequence[str]] = None,
                       refresh: Optional[str] = None, wait: Optional[Duration] = None) -> models.Repo:
        return await self.call("PUT", "/v1/repos/{id}", values={"id": key}, query=given(wait=wait),
                               body=given(url=url, cred=cred, refs=list(refs) if refs else None, refresh=refresh))

    async def repos(self) -> List[models.Repo]:
        return await self.pages("GET", "/v1/repos", "repos")

    async def repo(self, id: str) -> models.Repo:
        """By id, key or URL."""
        return await self.call("GET", "/v1/repos/{id}", values={"id": id})

    async def refresh_repo(self, id: str, *, wait: Optional[Duration] = None) -> models.Repo:
        return await self.call("POST", "/v1/repos/{id}/refresh", values={"id": id}, query=given(wait=wait))

    async def delete_repo(self, id: str) -> None:
        await self.call("DELETE", "/v1/repos/{id}", values={"id": id})

    # ---- lists --------------------------------------------------------------------------

    async def sandboxes(self, *, label: Optional[str] = None) -> List[models.Sandbox]:
        return await self.pages("GET", "/v1/sandboxes", "sandboxes", query=given(label=label))

    async def workspaces(self, *, parent: Optional[str] = None, trash: bool = False,
                         usage: bool = False) -> List[models.Workspace]:
        return await self.pages("GET", "/v1/workspaces", "workspaces",
                                query=given(parent=parent, trash=trash or None, usage=usage or None))

    async def processes(self, *, sandbox: Optional[str] = None, label: Optional[str] = None,
                        state: Optional[str] = None) -> List[models.Process]:
        return await self.pages("GET", "/v1/processes", "processes",
                                query=given(sandbox=sandbox, label=label, state=state))

    # ---- one shot -----------------------------------------------------------------------

    async def run(self, cmd: Union[str, Sequence[str]], *, spec: Optional[Mapping[str, Any]] = None,
                  files: Optional[Mapping[str, Union[str, bytes]]] = None, collect: Optional[Sequence[str]] = None,
                  allow_exec: Optional[Sequence[str]] = None, stdin: Optional[str] = None, check: bool = False, **options: Any) -> Result:
        """Makes a sandbox, runs one command in it, and removes it. `files` are there before it; what the patterns
        of `collect` match is brought back: `result.files` has it by name. Files that would execute on the host later
        stay and are in `result.missing`, unless a pattern of `allow_exec` names them."""
        given_files = None if files is None else {
            path: data if isinstance(data, str) else {"base64": base64.b64encode(data).decode()}
            for path, data in files.items()}
        body, later = exec_body(cmd, stdin, spec=spec, files=given_files, collect=list(collect) if collect else None,
                                allow_exec=list(allow_exec) if allow_exec else None, **options)
        if later:
            raise Invalid("stdin: text of at most 60 KiB here; a Sandbox takes more")
        result = Result(await self.call("POST", "/v1/run", body=body))
        return result.check() if check else result


_default: Dict[object, Client] = {}


def default_client() -> Client:
    """The one that is used unless another is given."""
    client = _default.get(None)
    if client is None:
        client = _default[None] = Client()
        atexit.register(client.close)
    return client
