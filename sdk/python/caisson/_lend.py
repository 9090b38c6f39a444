"""Host paths are lent to the launcher before a request names them: it opens no others with the caller's rights."""
from __future__ import annotations

import json
import os
import struct
from typing import Any, List, Optional

from ._address import Address

OK = b"+"
_KINDS = ("ro:", "overlay:")


def _of_entry(entry: Any) -> Optional[str]:
    if isinstance(entry, dict):
        return entry.get("src")
    kind = next((k for k in _KINDS if isinstance(entry, str) and entry.startswith(k)), None)
    return entry[len(kind):].split(":")[0] if kind else None


def _of_object(body: Any) -> List[Any]:
    if not isinstance(body, dict):
        return []
    fs, image = body.get("fs"), body.get("image")
    found = [_of_entry(entry) for entry in (fs if isinstance(fs, list) else [fs])]
    found += [image[4:]] if isinstance(image, str) and image.startswith("dir:") else []
    for key in ("url", "repo"):
        text = body.get(key)
        found.append(text[7:] if isinstance(text, str) and text.startswith("file://") else text)
    return found


def message(target: str, body: Any) -> Optional[bytes]:
    """What is said to the launcher before this request; None: nothing has to be lent."""
    if not isinstance(body, bytes) or not body.startswith(b"{"):
        return None
    try:
        value = json.loads(body)
        paths = [p for p in _of_object(value) + _of_object(value.get("spec")) if isinstance(p, str) and p.startswith("/")]
        text = b"".join(os.fsencode(p) + b"\0" for p in paths)
    except (ValueError, RecursionError):  # the daemon refuses it
        return None
    kind = b"o" if target.partition("?")[0] == "/v1/run" else b"k"
    return kind + struct.pack("<I", len(text)) + text if text else None


def address(api: Address) -> Address:
    return api._replace(path=os.path.join(os.path.dirname(api.path), "lend.sock"))
