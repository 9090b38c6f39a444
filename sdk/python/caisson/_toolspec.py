"""The six tools that coding agents have, with the field names that models know."""
from __future__ import annotations

from typing import Any, Dict, List

BASH_SECONDS = 120
BASH_SECONDS_MAX = 600
OUTPUT_MAX = 30000     # characters of a result; the tail counts more than the head
READ_LINES = 2000
LINE_MAX = 2000
GLOB_MAX = 200
GREP_MAX = 200


def _text(description: str) -> Dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str, least: int = 1) -> Dict[str, Any]:
    return {"type": "integer", "minimum": least, "description": description}


def _flag(description: str) -> Dict[str, Any]:
    return {"type": "boolean", "description": description}


def _tool(name_: str, description_: str, needed: List[str], **properties: Any) -> Dict[str, Any]:
    return {"name": name_, "description": description_,
            "schema": {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}}


_PATH = "from the working folder, or absolute"

TOOLS: List[Dict[str, Any]] = [
    _tool("bash", "Run a command in the sandbox. Each call is a shell of its own that starts in the working folder; "
          "processes that it leaves in the background go on. The result has both streams, and the exit status when it "
          "is not 0.", ["command"],
          command=_text("what to run"), timeout=_number("milliseconds, at most 600000; 120000 unless given"),
          description=_text("what it is for, in a few words"),
          run_in_background=_flag("return at once; the result names the process")),
    _tool("read", "Read a text file. Lines are numbered.", ["file_path"], file_path=_text(_PATH),
          offset=_number("the first line, from 1"), limit=_number("how many lines; 2000 unless given")),
    _tool("write", "Write a file, whole; folders that miss are made.", ["file_path", "content"],
          file_path=_text(_PATH), content=_text("all of it")),
    _tool("edit", "Replace a text in a file. It has to stand there exactly, and once unless replace_all is set.",
          ["file_path", "old_string", "new_string"], file_path=_text(_PATH), old_string=_text("what stands there"),
          new_string=_text("what shall stand there"), replace_all=_flag("every place")),
    _tool("glob", "Find files by name, newest first. ** is any depth.", ["pattern"], pattern=_text("such as **/*.py"),
          path=_text("where to begin; the working folder unless given")),
    _tool("grep", "Search in files by a regular expression (PCRE2).", ["pattern"], pattern=_text("what to find"),
          path=_text("a folder or file; the working folder unless given"), glob=_text("only files of this name: *.py"),
          output_mode={"type": "string", "enum": ["content", "files_with_matches", "count"],
                       "description": "lines, names of files, or how many in each; lines unless given"},
          ignore_case=_flag("A is a"), context=_number("lines before and after", 0),
          multiline=_flag("a match may go over line ends"), head_limit=_number("matches; 200 unless given")),
]


def clip(text: str) -> str:
    """A third from the front, the rest from the end."""
    if len(text) <= OUTPUT_MAX:
        return text
    head, tail = OUTPUT_MAX // 3, OUTPUT_MAX - OUTPUT_MAX // 3
    return f"{text[:head]}\n[… {len(text) - OUTPUT_MAX} characters left out …]\n{text[-tail:]}"


def show_result(result: Any) -> str:
    """What a model is told about a command."""
    parts = [clip(part) for part in (result.stdout, result.stderr) if part]
    if result.dropped:
        parts.append(f"[{result.dropped} bytes of output are only in the log of {result.id}]")
    if not result.is_over:
        parts.append(f"[{result.id} still runs]")
    elif result.state != "exited":
        parts.append(f"[{result.state}{': ' + result.reason if result.reason else ''}]")
    elif result.exit_code != 0:
        parts.append(f"[exit status {result.exit_code}]")
    parts += [f"[refused: {v['kind']} {v['target']}]" for v in result.violations]
    return "\n".join(part.rstrip("\n") for part in parts) or "[no output]"


def show_lines(lines: Any) -> str:
    """Numbered, as models expect it; and where to go on."""
    if lines["encoding"] != "utf-8":
        return f"[{lines['path']} is not text: {lines['bytes']} bytes]"
    rows = lines["text"].split("\n")
    if rows and rows[-1] == "":
        rows.pop()
    shown = "\n".join(f"{lines['first'] + i:6}\t{row.rstrip(chr(13))[:LINE_MAX]}" for i, row in enumerate(rows))
    if lines["next"] is not None:
        shown += f"\n[{lines['total_lines']} lines; go on with offset {lines['next']}]"
    return shown or "[the file is empty]"


def show_matches(found: Any, mode: str) -> str:
    if mode == "content":
        rows = []
        for m in found["matches"]:
            before, after = m.get("before", []), m.get("after", [])
            rows += [f"{m['path']}-{m['line'] - len(before) + i}-{text}" for i, text in enumerate(before)]
            rows.append(f"{m['path']}:{m['line']}:{m['text'][:LINE_MAX]}")
            rows += [f"{m['path']}-{m['line'] + 1 + i}-{text}" for i, text in enumerate(after)]
    else:
        counts: Dict[str, int] = {}
        for m in found["matches"]:
            counts[m["path"]] = counts.get(m["path"], 0) + 1
        rows = [f"{path}:{n}" if mode == "count" else path for path, n in counts.items()]
    if found["truncated"]:
        rows.append("[there may be more]")
    return clip("\n".join(rows)) or "[nothing was found]"


def shapes(kind: str) -> List[Dict[str, Any]]:
    """What is sent to a model with a request."""
    if kind == "anthropic":
        return [{"name": t["name"], "description": t["description"], "input_schema": t["schema"]} for t in TOOLS]
    if kind == "openai":
        return [{"type": "function", "function": {"name": t["name"], "description": t["description"],
                                                  "parameters": t["schema"]}} for t in TOOLS]
    if kind == "openai-responses":
        return [{"type": "function", "name": t["name"], "description": t["description"], "parameters": t["schema"],
                 "strict": False} for t in TOOLS]
    if kind == "plain":
        return [dict(t) for t in TOOLS]
    raise ValueError(f"{kind!r}: anthropic, openai, openai-responses or plain")
