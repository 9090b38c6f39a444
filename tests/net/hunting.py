"""hunting.py - looks for values everywhere: memory, files and git objects, as they are and in the usual codes.

What it reads is of our programs and of what runs in sandboxes; the servers and clients of the tests have the
values by right.
"""
import base64
import os
import pathlib
import subprocess
import urllib.parse
import zlib

import lib

BYTES_MAX = 256 << 20  # of one file or one mapping


def forms(value):
    """All by which a value would be known; of base64 what does not depend on what is beside it."""
    raw = value.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode(), raw[::-1], urllib.parse.quote(value, safe="").encode()}
    for skip, cut in ((0, 0), (1, 2), (2, 3)):
        code = base64.b64encode(b"\0" * skip + raw)[cut:8 * (skip + len(raw)) // 6]
        found |= {code, code.translate(bytes.maketrans(b"+/", b"-_"))}
    return found


class Hunter:
    def __init__(self, values):
        self.forms = {name: forms(value) for name, value in values.items()}
        self.hits = []   # (place, name of the value)
        self.seen = {}   # kind of place -> bytes that were read
        self.skip = set()

    def look(self, place, data, kind="text"):
        data = data.encode() if isinstance(data, str) else data
        self.seen[kind] = self.seen.get(kind, 0) + len(data)
        self.hits += [(str(place), name) for name, all_forms in self.forms.items() if any(f in data for f in all_forms)]

    def take_hits(self):
        hits, self.hits = self.hits, []
        return hits

    # ---- files ----

    def file(self, path, kind):
        try:
            data = pathlib.Path(path).read_bytes() if os.path.getsize(path) <= BYTES_MAX else b""
        except OSError:
            return
        self.look(path, data, kind)
        if data[:1] == b"\x78":  # a loose object of git
            try:
                self.look(f"{path}, inflated", zlib.decompress(data), "objects")
            except zlib.error:
                pass
        if str(path).endswith(".pack"):
            self.pack(path)

    def pack(self, path):
        folder = pathlib.Path(path).parent.parent.parent  # objects/pack/x
        done = subprocess.run(["git", "--git-dir", folder, "-c", "safe.directory=*", "cat-file", "--batch", "--batch-all-objects"],
                              capture_output=True, timeout=60, check=False, env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"})
        self.look(f"{path}, objects", done.stdout, "objects")

    def tree(self, top, kind, leave_out=()):
        for at, folders, files in os.walk(top):
            folders[:] = [f for f in folders if os.path.join(at, f) not in leave_out]
            for name in files:
                path = os.path.join(at, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    self.file(path, kind)

    # ---- processes ----

    def memory(self, pid, kind="memory"):
        try:
            maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
            mem = open(f"/proc/{pid}/mem", "rb", 0)
        except OSError:
            return
        with mem:
            for line in maps:
                span, mode = line.split()[:2]
                if "r" not in mode or "[vvar" in line or "[vsyscall" in line:
                    continue
                begin, end = (int(x, 16) for x in span.split("-"))
                try:
                    mem.seek(begin)
                    data = mem.read(min(end - begin, BYTES_MAX))
                except (OSError, ValueError, OverflowError):
                    continue
                self.look(f"memory of {pid} {name_of(pid)}", data, kind)

    def shown(self, pid):
        """What others see of it."""
        for name in ("cmdline", "environ"):
            try:
                data = pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
            if b"GATEWAY_INTERFACE=" not in data:  # what a server of the tests starts
                self.look(f"/proc/{pid}/{name}", data, "shown")


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "?"


def below(pid):
    """All that it started, and what these started; with their parents."""
    found, turn = {}, [pid]
    while turn:
        parent = turn.pop()
        for child in lib.children_of(parent):
            if child not in found:
                found[child] = parent
                turn.append(child)
    return found


def root_pid_of(pids):
    """Of those the ones that are in another root: inside of a sandbox."""
    own = os.stat("/").st_ino, os.stat("/").st_dev
    inside = []
    for pid in pids:
        try:
            st = os.stat(f"/proc/{pid}/root/.")
        except OSError:
            continue
        if (st.st_ino, st.st_dev) != own:
            inside.append(pid)
    return inside
