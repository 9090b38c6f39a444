"""A Python executor for smolagents: `CodeAgent(tools=[], model=model, executor=CaissonExecutor(net="deny"))`.

One interpreter lives in the sandbox for as long as the executor does. It is told what to run by lines of JSON, and answers with such lines;
whatever the code prints, itself or by a program that it starts, goes elsewhere.
"""
from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional

from smolagents import AgentLogger, LogLevel
from smolagents.local_python_executor import CodeOutput
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from .. import Process, Sandbox
from .._s.process import event_bytes
from ..errors import CaissonError
from ._run import refusal_of, status_of

PIP = {"PIP_USER": "1", "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_RETRIES": "1"}  # what tools need is installed for the user alone

# Runs inside. The last expression of the code is its value, as in a notebook; `!` in front is for a shell.
INSIDE = r'''
import ast, json, os, signal, subprocess, sys, tempfile, traceback
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
printed = tempfile.TemporaryFile()
os.dup2(printed.fileno(), 1), os.dup2(printed.fileno(), 2)
space = {"__name__": "__main__"}

def late(*_):
    raise TimeoutError("the code took too long")

def run(code):
    if code.startswith("!"):
        subprocess.run(code[1:], shell=True, stdin=subprocess.DEVNULL)
        return None
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<code>", "exec"), space)
    return eval(compile(ast.Expression(last.value), "<code>", "eval"), space) if last else None

def show(value):
    try:
        json.dumps(value)
        return value
    except (TypeError, ValueError):
        return repr(value)

signal.signal(signal.SIGALRM, late)
for line in iter(sys.stdin.readline, ""):
    ask, said = json.loads(line), {}
    os.ftruncate(1, 0), os.lseek(1, 0, os.SEEK_SET)
    try:
        signal.alarm(ask["seconds"])
        said["value"] = show(run(ask["code"]))
    except BaseException as error:
        said["error"] = [type(error).__name__, str(error), traceback.format_exc()]
    signal.alarm(0)
    sys.stdout.flush(), sys.stderr.flush()
    said["logs"] = os.pread(1, 1 << 20, 0).decode(errors="replace")
    print(json.dumps(said), file=answers, flush=True)
'''


class CaissonExecutor(RemotePythonExecutor):
    """In a sandbox of its own, made of what Sandbox() takes, or in one that is there: CaissonExecutor(sandbox=s)."""

    def __init__(self, additional_imports: Optional[List[str]] = None, logger: Optional[AgentLogger] = None, allow_pickle: bool = False, *,
                 sandbox: Optional[Sandbox] = None, timeout: int = 0, **spec: Any) -> None:
        super().__init__(additional_imports or [], logger or AgentLogger(level=LogLevel.ERROR), allow_pickle)
        self.sandbox, self.timeout, self._is_own = sandbox or Sandbox(**spec), timeout, sandbox is None
        self._process: Optional[Process] = None
        self._answers: Iterator[Dict[str, Any]] = iter(())
        self.installed_packages = self.install_packages(self.additional_imports)

    def _start(self) -> Process:
        process = self.sandbox.spawn(["python3", "-c", INSIDE], stdin=True, label="smolagents", env=PIP)
        self._answers = _lines(process)
        return process

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        self._process = self._process or self._start()
        try:
            self._process.write(json.dumps({"code": code, "seconds": self.timeout}) + "\n")
            said = next(self._answers, None)
        except BaseException:  # else the answer that is still to come would be taken for the next one's
            self._end()
            raise
        if said is None:
            ended, self._process = self._process.wait(), None
            why = refusal_of(ended) or f"exit status {status_of(ended)}"
            raise AgentError(f"The interpreter ended, and with it all variables: {why}", self.logger)
        if "error" not in said:
            return CodeOutput(output=said["value"], logs=said["logs"], is_final_answer=False)
        name, value, trace = said["error"]
        if name == self.FINAL_ANSWER_EXCEPTION:
            return CodeOutput(output=self._deserialize_final_answer(value, self.allow_pickle), logs=said["logs"], is_final_answer=True)
        raise AgentError(f"{said['logs']}\nExecuting code yielded an error:\n{name}\n{value}\n{trace}", self.logger)

    def _end(self) -> None:
        process, self._process = self._process, None
        try:
            if process is not None:
                process.kill()
        except CaissonError:
            pass  # it was over

    def cleanup(self) -> None:
        self._end()
        if self._is_own:
            self.sandbox.close()


def _lines(process: Process) -> Iterator[Dict[str, Any]]:
    rest = b""
    for event in process.events():
        if event["type"] == "output" and event["stream"] == "stdout":
            *lines, rest = (rest + event_bytes(event)).split(b"\n")
            yield from (json.loads(line) for line in lines)
