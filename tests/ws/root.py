#!/usr/bin/env python3
"""`checkpoint: all`: the root of the sandboxes of a workspace is kept and undone with its files. TAP.

    tests/ws/root.py              all, a quarter of a minute (needs root)
    tests/ws/root.py dpkg         those with the word in their title
"""
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile

import place
from place import Work, check, end_vaults, lib, main, same, vaults, wait_until
from lib import Daemon, test

sys.path.append(str(place.ROOT / "tests/e2e"))
import oci  # noqa: E402

PROGRAMS = ("sh", "dpkg", "dpkg-deb", "dpkg-query", "dpkg-split", "tar", "rm", "diff", "cat", "ls", "mkdir", "env", "id", "ldconfig",
            "start-stop-daemon", "mv", "touch", "find", "md5sum", "sleep", "chmod", "ln", "stat", "sort", "true")
TAR = "application/x-tar"
ROOTFUL = {"user": "root", "profile": "rootful"}
# Every name outside of what is new in each sandbox, its kind, mode, owner and content.
LOOK = ("find / -xdev \\( -path /work -o -path /proc -o -path /tmp -o -path /run \\) -prune -o -printf '%p %y %m %u:%g %l\\n' | sort;"
        " find /etc /usr /opt /var -xdev -type f -exec md5sum {} + | sort")


# ---- an image with dpkg, of what this host has; read before the cell hides it ---------------------

def libraries(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", text)


def system():
    """A small system: a shell, dpkg and what they need."""
    found = {}
    for name in PROGRAMS:
        path = next(p for d in ("/usr/bin", "/usr/sbin") if os.path.exists(p := f"{d}/{name}"))
        for file in (path, *libraries(path)):
            where = re.sub(r"^/(lib|lib64|bin|sbin)/", r"/usr/\1/", file)
            found[where.lstrip("/")] = pathlib.Path(os.path.realpath(file)).read_bytes()
    folders = {"etc", "tmp", "var", "opt", "usr", "var/lib", "var/lib/dpkg", "var/lib/dpkg/info", "var/lib/dpkg/updates", "home"}
    for name in found:
        folders.update(str(p) for p in pathlib.PurePath(name).parents if str(p) != ".")
    yield from (oci.folder(f) for f in sorted(folders))
    yield from (oci.link(n, f"usr/{n}") for n in ("bin", "sbin", "lib", "lib64") if f"usr/{n}" in folders)
    yield from (oci.entry(n, data, mode=0o755) for n, data in sorted(found.items()))
    yield oci.entry("etc/passwd", oci.PASSWD)
    yield oci.entry("etc/group", b"root:x:0:\nweb:x:34:\n")
    yield oci.entry("var/lib/dpkg/status")


def deb():
    """A package with a program, a file of /etc and a script of its own."""
    def packed(*entries):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as t:
            for member, data in entries:
                member.name = "./" + member.name
                t.addfile(member, io.BytesIO(data))
        return out.getvalue()
    control = b"Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a tool\n"
    parts = (("debian-binary", b"2.0\n"),
             ("control.tar", packed(oci.entry("control", control), oci.entry("postinst", b"#!/bin/sh\necho made > /etc/tool-made\n", mode=0o755))),
             ("data.tar", packed(oci.folder("usr"), oci.folder("usr/bin"), oci.entry("usr/bin/tool", b"#!/bin/sh\necho tool 1\n", mode=0o755),
                                 oci.folder("etc"), oci.entry("etc/tool.conf", b"x=1\n"))))
    out = b"!<arch>\n"
    for name, data in parts:
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


SYSTEM, PACKAGE = oci.tar(*system()), deb()


def put(c, name, body):
    answer = c.call("PUT", f"/v1/images/{name}", body, {"Content-Type": TAR})
    same(answer.status, 201, f"import: {answer}")
    return answer.json


def ready(api):
    c = api.client
    if not c.ok("GET", "/v1/images")["images"]:
        put(c, "system", SYSTEM)
    return c


def shell(c, s, cmd):
    done = c.execute(s, cmd)
    same(done["exit_code"], 0, f"{cmd}: {done}")
    return done["stdout"]


def clear(c):
    c.remove_all()
    for w in c.ok("GET", "/v1/workspaces?limit=1000")["workspaces"]:
        c.delete(f"/v1/workspaces/{w['id']}?force=1")


# ---- undo ------------------------------------------------------------------------------------

@test("as root: /etc/passwd and /usr/bin/env removed, undo, all is back")
def _(api):
    c = ready(api)
    w = Work(c, "root", spec={"image": "system", "checkpoint": "all", **ROOTFUL})
    w.shell("echo mine > file")
    before = w.shell(LOOK)
    check("/usr/bin/env" in before and "/etc/passwd" in before, before)
    same(w.get()["dirty"], True, "the file")
    w.shell("rm -rf /etc/passwd /usr/bin/env /var/lib/dpkg /etc/group; mv /opt /opt2; chmod 700 /usr; ln -s x /etc/link; echo other > file")
    same(w.execute("env")["exit_code"], 127, "broken")
    w.post("undo")
    same(w.shell(LOOK), before, "as before")
    same(w.shell("cat file"), "mine\n", "the file too")
    w.post("redo")
    same(w.execute("env")["exit_code"], 127, "broken again")
    w.post("undo")
    same(w.shell(LOOK), before, "as before")
    clear(c)


if __name__ == "__main__":
    sys.exit(main(__file__))
