# Written by sdk/python/generate from caisson/_a/sandbox.py. Do not edit.
"""A sandbox: a replaceable place to run commands in."""
from __future__ import annotations

from typing import Any, Iterator, Callable, Dict, List, Mapping, Optional, Sequence, Union

from .. import _exit, models
from .._common import UNSET, Command, Duration, Result, exec_body, given
from .._common import key as new_key
from .._pipe import make_mutex, pause
from ..errors import CaissonError, Conflict, NotFound
from . import tools as _tools
from .client import Client, default_client
from .files import Files
from .process import Process, Terminal

Stdin = Union[str, bytes, None]
Heard = Optional[Callable[[str], Any]]

UNMAKE_TRIES = 50


class Port:
    """A port inside that has a local one: HTTP and WebSocket, with a token of its own."""

    def __init__(self, sandbox: "Sandbox", made: models.PortMade) -> None:
        self._sandbox, self.made = sandbox, made
        self.port, self.url, self.headers = made["port"], made["url"], made["headers"]
        self.local_port, self.open_url, self.is_ready = made["local_port"], made["open_url"], made["ready"]

    def close(self) -> None:
        self._sandbox.close_port(self.port)

    def __repr__(self) -> str:
        return f"<Port {self.port} {self.url}>"


class Runs:
    """Who runs commands: a sandbox, or a workspace in its default one."""

    _client: Client

    def _start(self, body: Mapping[str, Any]) -> models.Process:
        raise NotImplementedError

    def exec(self, cmd: Command, *, timeout: Optional[Duration] = None, cwd: Optional[str] = None,
                   env: Optional[Mapping[str, str]] = None, stdin: Stdin = None, user: Optional[str] = None,
                   shell: Optional[str] = None, background: Optional[str] = None, label: Optional[str] = None,
                   output: Optional[Mapping[str, Any]] = None, at_end: Optional[str] = None,
                   wait: Optional[Duration] = None,
                   on_stdout: Heard = None, on_stderr: Heard = None, check: bool = False) -> Result:
        """Runs a command and returns what it left. A text goes to a shell, a list is run as it is.

        That it fails, is killed or runs out of time (`timeout`) is a result; with `check` an exception. With
        `wait` this returns after that long although it still runs. Whoever interrupts this call ends the command."""
        body, later = exec_body(cmd, stdin, timeout=timeout, cwd=cwd, env=env, user=user, shell=shell, label=label,
                                background=background, output=output, at_end=at_end)
        if wait is not None or (output is not None and not later):  # only this answer has more than the usual
            result = Result(self._start({**body, **(
                given(wait=wait) if wait is not None else {"on_disconnect": "kill"})}))
            return result.check() if check and result.is_over else result
        # It has a record before it is waited for: then no restart of the daemon can lose it.
        process = Process(self._client, self._start({**body, "wait": 0, "on_disconnect": "kill"}))
        result = self._attend(process, later, on_stdout, on_stderr)
        return result.check() if check else result

    def _attend(self, process: Process, later: bytes, on_stdout: Heard, on_stderr: Heard) -> Result:
        try:
            if later:
                process.write(later, eof=True)
            if on_stdout or on_stderr:
                return process.pump(on_stdout, on_stderr)
            return process.wait()
        except BaseException:
            try:
                process.kill()
            except CaissonError:
                pass  # it was over
            raise

    run = exec

    def spawn(self, cmd: Command, *, timeout: Optional[Duration] = None, cwd: Optional[str] = None,
                    env: Optional[Mapping[str, str]] = None, stdin: Union[str, bool, None] = None,
                    user: Optional[str] = None, shell: Optional[str] = None, background: Optional[str] = None,
                    label: Optional[str] = None, output: Optional[Mapping[str, Any]] = None,
                    at_end: Optional[str] = None, tty: bool = False,
                    rows: Optional[int] = None, cols: Optional[int] = None) -> Process:
        """Starts a command and returns at once. `stdin=True`: input comes later, by write(). `at_end`, "stop" or
        "delete", is what becomes of the sandbox when it has ended."""
        body, later = exec_body(cmd, stdin, timeout=timeout, cwd=cwd, env=env, user=user, shell=shell, label=label,
                                background=background, output=output, at_end=at_end, tty=tty or None, rows=rows,
                                cols=cols)
        process = Process(self._client, self._start({**body, "wait": 0}))
        if later:
            process.write(later, eof=True)
        return process

    def pty(self, cmd: Command = ("bash", "-i"), *, rows: int = 24, cols: int = 80, **options: Any) -> Terminal:
        """Starts a command with a terminal, and looks at it."""
        process = self.spawn(cmd, tty=True, rows=rows, cols=cols, stdin=True, **options)
        return process.terminal()

    def tools(self) -> "_tools.Tools":
        """bash, read, write, edit, glob and grep, in the shapes that models and frameworks take."""
        return _tools.Tools(self)


class Sandbox(Files, Runs):
    """What is asked for (docs/spec.md). Nothing is done until the first use, `start()` or `with`, whose end
    deletes it; without, it is deleted when the program ends. One with a `key` is stopped instead: the same key
    finds it again, with its files."""

    _at = "/v1/sandboxes/{id}"

    def __init__(self, *, net: Any = UNSET, fs: Any = UNSET, creds: Any = UNSET, limits: Optional[Mapping[str, Any]] = None,
                 user: Optional[str] = None, image: Optional[str] = None, backend: Optional[str] = None,
                 workspace: Optional[str] = None, profile: Optional[str] = None,
                 env: Union[Mapping[str, str], Sequence[str], None] = None, services: Optional[Sequence[Any]] = None,
                 setup: Optional[Sequence[Any]] = None, checkpoint: Union[str, bool, None] = None,
                 allow_weaker: Optional[Sequence[str]] = None, key: Optional[str] = None,
                 labels: Optional[Mapping[str, str]] = None, ttl: Optional[Duration] = None,
                 idle: Optional[Duration] = None, client: Optional[Client] = None) -> None:
        self._client = client or default_client()
        self._ask_for: Dict[str, Any] = given(
            net=net, fs=fs, limits=limits, user=user, image=image, backend=backend, workspace=workspace, profile=profile,
            env=env, services=services, setup=setup, checkpoint=checkpoint, allow_weaker=allow_weaker, key=key,
            labels=labels, ttl=ttl, idle=idle)
        if creds is not UNSET:
            self._ask_for["creds"] = creds
        self.record: Optional[models.Sandbox] = None
        self._keeps = key is not None
        self._starting = make_mutex()

    @classmethod
    def get(cls, id: str, *, client: Optional[Client] = None) -> "Sandbox":
        """One that is there, by id or key. It is not deleted at the end."""
        sandbox = cls(client=client)
        sandbox._keeps = True
        sandbox.record = sandbox._client.call("GET", "/v1/sandboxes/{id}", values={"id": id})
        return sandbox

    # ---- life ---------------------------------------------------------------------------

    def _id(self) -> str:
        if self.record is None:
            with self._starting:  # whoever else begins with it at the same time gets the same one
                if self.record is None:
                    self._make()
        assert self.record is not None
        return self.record["id"]

    @property
    def id(self) -> str:
        """Once it was started."""
        if self.record is None:
            raise ValueError("the sandbox was not started yet")
        return self.record["id"]

    def start(self) -> "Sandbox":
        """Makes it; one that is stopped is made usable again."""
        if self.record is None:
            self._id()
            return self
        return self._turn("POST", "/v1/sandboxes/{id}/start")

    def _make(self) -> None:
        once = {"Idempotency-Key": new_key()}
        try:
            made = self._client.call("POST", "/v1/sandboxes", body=self._ask_for, headers=once)
        except CaissonError:
            raise
        except BaseException:
            if not self._keeps:
                self._unmake(once)
            raise
        if not self._keeps:
            _exit.remember(made["id"], self._client.wire.address)
        if made["state"] == "stopped":
            made = self._client.call("POST", "/v1/sandboxes/{id}/start", values={"id": made["id"]})
        self.record = made

    def info(self) -> models.Sandbox:
        self.record = self._ask("GET", "/v1/sandboxes/{id}")
        return self.record

    def _turn(self, method: str, template: str, **parts: Any) -> "Sandbox":
        self.record = self._ask(method, template, **parts)
        return self

    def stop(self) -> "Sandbox":
        """Ends its processes; files stay."""
        return self._turn("POST", "/v1/sandboxes/{id}/stop")

    def pause(self) -> "Sandbox":
        return self._turn("POST", "/v1/sandboxes/{id}/pause")

    def resume(self) -> "Sandbox":
        return self._turn("POST", "/v1/sandboxes/{id}/resume")

    def replace(self) -> "Sandbox":
        """New walls, a new generation, the same id."""
        return self._turn("POST", "/v1/sandboxes/{id}/replace")

    def extend(self, *, wall: Optional[Duration] = None, ttl: Optional[Duration] = None) -> "Sandbox":
        return self._turn("POST", "/v1/sandboxes/{id}/extend", body=given(wall=wall, ttl=ttl))

    def close(self) -> None:
        """Deletes it, with all that runs in it. A workspace stays. Nothing, when it was never started."""
        if self.record is None:
            return
        try:
            self._ask("DELETE", "/v1/sandboxes/{id}")
        except NotFound:
            pass  # it is gone already
        _exit.forget(self.record["id"])
        self.record = None

    def _unmake(self, once: Mapping[str, str]) -> None:
        """Whoever is interrupted does not know what was made: under the same key it is told, and deleted."""
        for _ in range(UNMAKE_TRIES):
            try:
                made = self._client.call("POST", "/v1/sandboxes", body=self._ask_for, headers=once)
                self._client.call("DELETE", "/v1/sandboxes/{id}", values={"id": made["id"]})
                return
            except Conflict:
                pause(0.1)  # it is being made
            except CaissonError:
                return

    def __enter__(self) -> "Sandbox":
        self._id()
        return self

    def __exit__(self, *_: object) -> None:
        if self._keeps:
            self.stop()
        else:
            self.close()

    def usage(self) -> models.Usage:
        return self._ask("GET", "/v1/sandboxes/{id}/usage")

    # ---- commands -----------------------------------------------------------------------

    def _start(self, body: Mapping[str, Any]) -> models.Process:
        return self._ask("POST", "/v1/sandboxes/{id}/exec", body=body)

    def processes(self) -> List[models.Process]:
        return self._client.processes(sandbox=self._id())

    def shells(self) -> List[models.Shell]:
        return (self._ask("GET", "/v1/sandboxes/{id}/shells"))["shells"]

    def delete_shell(self, name: str) -> None:
        """Ends a named shell, with what runs in it, and forgets it."""
        self._client.call("DELETE", "/v1/sandboxes/{id}/shells/{name}",
                                values={"id": self._id(), "name": name})

    # ---- network ------------------------------------------------------------------------

    def ports(self) -> models.PortList:
        return self._ask("GET", "/v1/sandboxes/{id}/ports")

    def port(self, port: int, *, wait: Optional[Duration] = None, ttl: Optional[Duration] = None,
                   local_port: Optional[int] = None) -> Port:
        """Forwards a port; with `wait` when somebody listens there."""
        return Port(self, self._ask("POST", "/v1/sandboxes/{id}/ports",
                                          body=given(port=port, wait=wait, ttl=ttl, local_port=local_port)))

    def close_port(self, port: int) -> None:
        self._client.call("DELETE", "/v1/sandboxes/{id}/ports/{port}",
                                values={"id": self._id(), "port": port})

    def connections(self, *, after: int = 0, follow: bool = False, decision: Optional[str] = None,
                          name: Optional[str] = None) -> Iterator[models.Connection]:
        """What it reached, and what was denied, oldest first."""
        values, query = {"id": self._id()}, given(decision=decision, name=name)
        if follow:
            for one in self._client.follow("GET", "/v1/sandboxes/{id}/connections", values=values, after=after,
                                                 query={**query, "follow": True}):
                yield one
            return
        at: Optional[int] = after
        while at is not None:
            page = self._client.call("GET", "/v1/sandboxes/{id}/connections", values=values,
                                           query={**query, "after": at})
            for one in page["connections"]:
                yield one
            at = page["next"]

    def why(self, host: str, port: Optional[int] = None) -> models.Why:
        """Whether its rules allow a host, by which rule, and what would."""
        return self._ask("GET", "/v1/sandboxes/{id}/why", query=given(host=host, port=port))

    def set_net(self, net: Any) -> models.NetChanged:
        """New rules for its network, at once."""
        return self._ask("PATCH", "/v1/sandboxes/{id}/net", body={"mode": net} if isinstance(net, str) else net)

    def __repr__(self) -> str:
        return f"<Sandbox {self.record['id'] if self.record else 'not started'}>"
