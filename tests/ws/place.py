"""place.py - workspaces of a daemon in a cell, on a file system as hosts have it.

A program of this folder calls main() as those of tests/api do; its tests get the same Api.
"""
import hashlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/api"))

import lib  # noqa: E402
from lib import Failed, check, same, wait_until  # noqa: E402

lib.cell.PROGRAMS = (*dict.fromkeys((*lib.cell.PROGRAMS, "caisson", "caisson-vault")),)
IMAGE = pathlib.Path("/run/disk.img")
DISK_BYTES = 1 << 30
ENDS = []  # called when all tests are over


def prepare():
    """The folders of the daemons are on ext4: /run of a cell is in memory. Returns what ends it."""
    with open(IMAGE, "wb") as f:
        f.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", IMAGE], check=True)
    subprocess.run(["mount", "-o", "loop", IMAGE, lib.HOME], check=True)
    os.chmod(lib.HOME, 0o755)

    def finish():
        for function in ENDS:
            function()
        end_vaults()
        wait_until(lambda: subprocess.run(["umount", lib.HOME], stderr=subprocess.DEVNULL, check=False).returncode == 0,
                   10, "umount of the disk")
        IMAGE.unlink()
    return finish


def vaults():
    """pid of every keeper of storage in this cell."""
    return [p for p in lib.census.pids() if (s := lib.stat_of(p)) and s[0] == "caisson-vault"]


def end_vaults():
    """They outlive daemon and launcher by a minute, which nobody here waits for."""
    for pid in vaults():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: (lib.census.reap(), not vaults())[1], 5, "keepers end")


def is_again(answer):
    """Nothing was done, and somebody is about to come back."""
    return answer.status >= 500 and answer.json.get("retry_safe") is True


# ---- one workspace ---------------------------------------------------------------------------

class Work:
    """One workspace, by its key."""

    def __init__(self, client, key, **ask):
        self.c, self.key = client, key
        self.path = f"/v1/workspaces/{key}"
        self.made = client.ok("PUT", self.path, ask)
        self.id = self.made["id"]

    @classmethod
    def of(cls, client, row):
        """One that is there."""
        self = cls.__new__(cls)
        self.c, self.key, self.id, self.made = client, row["key"], row["id"], row
        self.path = f"/v1/workspaces/{row['id']}"
        return self

    def ok(self, method, path, body=None):
        """As our CLI does it: asked again while nothing was done and somebody is about to come back."""
        answer = wait_until(lambda: None if is_again(a := self.c.call(method, path, body)) else a, 20, f"{method} {path}")
        check(200 <= answer.status < 300, lambda: f"{method} {path}: {answer}")
        return answer.json if answer.body else None

    def get(self):
        return self.ok("GET", self.path)

    def execute(self, cmd, **options):
        return self.ok("POST", self.path + "/exec", {"cmd": cmd, **options})

    def shell(self, cmd, **options):
        """Its output; the command must succeed."""
        done = self.execute(cmd, **options)
        same((done["state"], done["exit_code"]), ("exited", 0), f"{cmd}: {done}")
        return done["stdout"]

    def write(self, name, data):
        return self.ok("PUT", f"{self.path}/files/{name}", data)

    def read(self, name):
        answer = self.c.get(f"{self.path}/files/{name}")
        return answer.body if answer.status == 200 else None

    def post(self, verb, body=None):
        return self.ok("POST", f"{self.path}/{verb}", body or {})

    def tree(self):
        """name -> what it is, of everything in it, through the API alone."""
        answer = wait_until(lambda: None if is_again(a := self.c.get(self.path + "/archive")) else a, 10, "an archive")
        same(answer.status, 200, f"archive: {answer}")
        found = {}
        with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
            for m in tar:
                data = tar.extractfile(m).read() if m.isreg() else m.linkname.encode()
                found[m.name] = (m.type, oct(m.mode), m.uid, hashlib.sha256(data).hexdigest()[:16])
        return found

    def hash(self):
        return hashlib.sha256(repr(sorted(self.tree().items())).encode()).hexdigest()

    def history(self):
        return self.ok("GET", self.path + "/history")

    def changes(self, **query):
        text = "&".join(f"{k}={v}" for k, v in query.items())
        answer = self.ok("GET", f"{self.path}/changes?{text}")
        return {f["path"]: f["status"] for f in answer["files"]}

    def sandbox(self, **spec):
        return self.c.create({"workspace": self.id, **spec})

    def remove(self):
        self.ok("DELETE", self.path + "?force=1")


def fill(work):
    """Something of everything, by a command."""
    work.shell("mkdir -p src/deep empty; seq 100 > src/a; seq 2000 > src/deep/b; ln -s ../src/a empty/link;"
               " printf '#!/bin/sh\\necho run\\n' > tool; chmod 755 tool; ln src/a hard; : > zero; chmod 600 zero")


def main(file, **options):
    return lib.main(file, prepare=prepare, **options)


__all__ = ["Failed", "Work", "check", "end_vaults", "fill", "lib", "main", "same", "time", "vaults", "wait_until"]
