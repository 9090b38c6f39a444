"""Sandboxes that nobody closed are deleted when the program ends; those of a forked parent are the parent's."""
from __future__ import annotations

import atexit
import os
from typing import Dict, Tuple

from ._address import Address
from .errors import CaissonError

_left: Dict[str, Tuple[Address, int]] = {}


def remember(id: str, address: Address) -> None:
    _left[id] = (address, os.getpid())


def forget(id: str) -> None:
    _left.pop(id, None)


@atexit.register
def drop_all() -> None:
    from ._s.client import Client
    for id, (address, pid) in list(_left.items()):
        forget(id)
        if pid != os.getpid():
            continue
        try:
            client = Client.at(address._replace(is_named=True))  # a daemon that is gone is not started for that
            client.call("DELETE", "/v1/sandboxes/{id}", values={"id": id})
            client.close()
        except (CaissonError, OSError):
            pass  # it is gone, or the daemon is
