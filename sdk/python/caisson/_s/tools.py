# Written by sdk/python/generate from caisson/_a/tools.py. Do not edit.
"""The six tools of an agent: what to tell a model, and who does what it asks for."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from .._toolspec import (BASH_SECONDS, BASH_SECONDS_MAX, GLOB_MAX, GREP_MAX, READ_LINES, TOOLS, clip, shapes,
                         show_lines, show_matches, show_result)
from ..errors import CaissonError, SandboxUnavailable


class Tools:
    """`specs(kind)` goes with the request to the model; `call` does what comes back, and says how it went in
    words: only our own failure is an exception. `functions()` are six functions with types and texts, which
    most frameworks take as they are."""

    def __init__(self, place: Any) -> None:
        self._place = place  # a Sandbox or a Workspace

    def specs(self, kind: str = "anthropic") -> List[Dict[str, Any]]:
        """anthropic, openai, openai-responses or plain."""
        return shapes(kind)

    def functions(self) -> List[Callable[..., Any]]:
        return [self.bash, self.read, self.write, self.edit, self.glob, self.grep]

    def call(self, name: str, arguments: Union[str, Mapping[str, Any]]) -> str:
        """What a model asked for: arguments as an object, or as the JSON text of one."""
        by_name: Dict[str, Callable[..., Any]] = {f.__name__: f for f in self.functions()}
        spec = next((t for t in TOOLS if t["name"] == name), None)
        if spec is None:
            return f"[there is no tool {name!r}: {', '.join(by_name)}]"
        try:
            given: Any = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
        except ValueError as error:
            return f"[the arguments are not JSON: {error}]"
        unknown = [k for k in given if k not in spec["schema"]["properties"]] if isinstance(given, dict) else ["?"]
        missing = [k for k in spec["schema"]["required"] if k not in given]
        if unknown or missing:
            return f"[{name}: " + "; ".join(
                [f"unknown: {', '.join(unknown)}"] * bool(unknown) + [f"needed: {', '.join(missing)}"] * bool(missing)) + "]"
        try:
            return str(by_name[name](**given))
        except SandboxUnavailable:
            raise
        except CaissonError as error:
            return f"[{error}]"

    def bash(self, command: str, timeout: Optional[int] = None, description: Optional[str] = None,
                   run_in_background: bool = False) -> str:
        """Run a command in the sandbox. `timeout` is in milliseconds."""
        if run_in_background:
            process = self._place.spawn(command, label=description)
            return f"[{process.id} runs in the background]"
        seconds = min(timeout / 1000 if timeout else BASH_SECONDS, BASH_SECONDS_MAX)
        return show_result(self._place.exec(command, timeout=seconds, label=description))

    def read(self, file_path: str, offset: Optional[int] = None, limit: Optional[int] = None) -> str:
        """Read a text file. Lines are numbered; `offset` is the first one, from 1."""
        first = max(offset or 1, 1)
        return clip(show_lines(self._place.read_lines(file_path, first, first + (limit or READ_LINES) - 1)))

    def write(self, file_path: str, content: str) -> str:
        """Write a file, whole; folders that miss are made."""
        made = self._place.write(file_path, content)
        return f"[{made['path']}: {made['bytes']} bytes, {'new' if made['created'] else 'replaced'}]"

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
        """Replace a text in a file. It has to stand there exactly, and once unless `replace_all` is set."""
        made = self._place.edit(file_path, old_string, new_string, all=replace_all)
        return str(made.get("diff") or f"[{made['replaced']} replaced]")

    def glob(self, pattern: str, path: Optional[str] = None) -> str:
        """Find files by name, newest first. ** is any depth."""
        found = self._place.glob(pattern, path, sort="mtime", max=GLOB_MAX)
        names = [one if isinstance(one, str) else one["path"] for one in found["paths"]]
        return "\n".join(names + ["[there are more]"] * bool(found["truncated"])) or "[nothing was found]"

    def grep(self, pattern: str, path: Optional[str] = None, glob: Optional[str] = None,
                   output_mode: str = "content", ignore_case: bool = False, context: Optional[int] = None,
                   multiline: bool = False, head_limit: Optional[int] = None) -> str:
        """Search in files by a regular expression."""
        found = self._place.grep(pattern, path, glob=glob, ignore_case=ignore_case, multiline=multiline,
                                       context=context, max=head_limit or GREP_MAX)
        return show_matches(found, output_mode)
