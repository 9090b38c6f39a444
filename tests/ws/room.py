#!/usr/bin/env python3
"""Inodes and bytes of the store's file system: a sandbox that takes all of them is stopped, and the next workspace is made. TAP.

    tests/ws/room.py             all (needs root)
    tests/ws/room.py inodes      those with the word in their title

The file system of the store is small, and a loop device.
"""
import os
import subprocess
import sys

import place
from place import Work, check, lib, same, wait_until
from lib import Daemon, test

INODES = 8192
RESERVE, BALLAST = INODES // 16, INODES // 32  # src/wire/room.h
EMPTY = ("import os, time\nn, end = 0, time.time() + 15\nwhile time.time() < end:\n    try:\n        os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY)); n += 1\n"
         "    except OSError: time.sleep(0.001)\n")
FULL = EMPTY.replace("os.close(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY))", "open(f'f{n}', 'w').write(f'unique {n}')")
BYTES = "import time\nend = time.time() + 15\nf = open('large', 'wb')\nwhile time.time() < end:\n    try:\n        f.write(b'x' * 65536); f.flush()\n    except OSError: time.sleep(0.001)\n"


def prepare():
    with open(place.IMAGE, "wb") as f:
        f.truncate(256 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-N", str(INODES), place.IMAGE], check=True)
    subprocess.run(["mount", "-o", "loop", place.IMAGE, lib.HOME], check=True)
    os.chmod(lib.HOME, 0o755)

    def finish():
        place.end_vaults()
        wait_until(lambda: subprocess.run(["umount", lib.HOME], stderr=subprocess.DEVNULL, check=False).returncode == 0, 10, "umount of the disk")
        place.IMAGE.unlink()
    return finish


def free():
    return os.statvfs(lib.HOME).f_ffree


def attack(name, uid, script, lacks):
    """One sandbox writes until it stops; then somebody else begins."""
    d = Daemon(name, uid=uid).start()
    c = d.client()
    other = Work(c, "other")
    bystander = other.sandbox()
    c.execute(bystander, "echo mine > mine")
    wait_until(lambda: len(os.listdir(d.state / "blobs/r")) >= BALLAST, 10, "the ballast is there")
    w = Work(c, "taker")
    s = w.sandbox()
    c.execute(s, "true")
    c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": ["python3", "-c", script], "wait": "0s"})
    wait_until(lambda: lacks(os.statvfs(lib.HOME)), 20, "it takes all that there is")
    wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "stopped", 20, "its sandbox is stopped")
    check("reserve" in c.ok("GET", f"/v1/sandboxes/{s['id']}")["reason"] or "", "and says why")
    wait_until(lambda: free() >= BALLAST // 2, 10, f"inodes for the operator: {free()}")
    same(c.ok("GET", f"/v1/sandboxes/{bystander['id']}")["state"], "running", "nobody else is stopped")
    same(c.execute(bystander, "cat mine")["stdout"], "mine\n", "and works on")
    return d, c, w, s


def go_on(d, c, w, s):
    """The next workspace is made; that which took the room takes no sandbox; without it all is well."""
    after = Work(c, "after")
    same(after.shell("echo next > n; cat n"), "next\n", "the next workspace")
    check(free() >= BALLAST // 4, f"free inodes: {free()}")
    refused = c.post("/v1/sandboxes", {"workspace": w.key})
    same((refused.status, refused.code), (429, "quota"), f"it takes no other sandbox: {refused}")
    refused = c.post(f"/v1/sandboxes/{s['id']}/start", {})
    same((refused.status, refused.code), (429, "quota"), f"and its own is not started again: {refused}")
    c.remove_all()
    for one in (w, after):
        c.delete(f"{one.path}?force=1")
    c.close()
    d.stop()
    place.end_vaults()
    subprocess.run(["rm", "-rf", d.state], check=True)


def who(role):
    return None if role == "root" else lib.USER_ID


for ROLE in ("root", "user"):
    @test(f"{ROLE}: one sandbox makes empty files until it stops: the next workspace is made, and inodes are left", own=True)
    def _(_api, role=ROLE):
        d, c, w, s = attack(f"e{role}", who(role), EMPTY, lambda v: v.f_ffree < RESERVE)
        go_on(d, c, w, s)

    @test(f"{ROLE}: the same with files that differ: what is kept of them does not take the rest", own=True)
    def _(_api, role=ROLE):
        d, c, w, s = attack(f"d{role}", who(role), FULL, lambda v: v.f_ffree < RESERVE)
        go_on(d, c, w, s)

    @test(f"{ROLE}: one sandbox writes bytes until it stops: it is stopped, and the next workspace is made once it is gone", own=True)
    def _(_api, role=ROLE):
        d, c, w, _s = attack(f"b{role}", who(role), BYTES, lambda v: v.f_bavail * v.f_bsize < (256 << 20) // 32)
        c.delete(f"{w.path}?force=1")
        go_on_bytes(d, c)


def go_on_bytes(d, c):
    after = Work(c, "after")
    same(after.shell("echo next > n; cat n"), "next\n", "the next workspace")
    c.remove_all()
    c.close()
    d.stop()
    place.end_vaults()
    subprocess.run(["rm", "-rf", d.state], check=True)


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=prepare))
