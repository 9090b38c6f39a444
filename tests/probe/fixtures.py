"""Things that hostile people bring along: set-id programs, device nodes, images made of links."""

import os
import shutil
import socket
import subprocess

import oracle

PRELOAD = """#include <fcntl.h>
__attribute__((constructor)) static void loaded(void) { open("%s/loaded", O_CREAT | O_WRONLY, 0644); }
"""
IMAGE_DIRS = ("bin", "dev", "etc", "home/agent", "opt", "proc", "root", "run", "sys", "tmp", "usr", "var", "work")


def identity():
    """The host's name first, then strings that single it out."""
    texts = [oracle.read(p).strip() for p in (
        "/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/proc/cmdline", "/sys/class/dmi/id/product_uuid",
        "/sys/class/dmi/id/board_serial")]
    name = os.uname().nodename
    return [name, *(t[:60] for t in texts if len(t) > 8), *([name] if len(name) > 5 else [])]


def paths(host):
    return [os.uname().nodename, "canaryuser", "/root/", "upperdir=/run", "upperdir=/var", "upperdir=/tmp", host.token]


def make(host):
    ws, probe = f"{host.tmp}/ws", f"{host.tmp}/bin/probe"
    for name, mode in (("suid", 0o4755), ("sgid", 0o2755)):
        shutil.copy(probe, f"{ws}/{name}")
        os.chmod(f"{ws}/{name}", mode)
    os.mknod(f"{ws}/node-null", 0o020666, os.makedev(1, 3))
    os.mknod(f"{ws}/node-kmsg", 0o020666, os.makedev(1, 11))
    for name in ("node-null", "node-kmsg"):
        os.chmod(f"{ws}/{name}", 0o666)
    os.symlink(host.tmp, f"{ws}/link-out")
    os.symlink("/proc/self/fd/3", f"{ws}/link-fd")
    os.makedirs(f"{host.tmp}/home/canaryuser/tc")
    os.chmod(f"{host.tmp}/scratch", 0o777)
    with open(f"{host.tmp}/scratch/preload.c", "w", encoding="ascii") as f:
        f.write(PRELOAD % f"{host.tmp}/scratch")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", f"{ws}/preload.so", f"{host.tmp}/scratch/preload.c"], check=True)
    minimal_image(host, f"{host.tmp}/image")


def minimal_image(host, root):
    """A folder image of one static program, its set-id copies and empty folders."""
    for d in IMAGE_DIRS:
        os.makedirs(f"{root}/{d}")
    for name, mode in (("probe", 0o755), ("suid", 0o4755), ("sgid", 0o2755)):
        shutil.copy(f"{host.tmp}/bin/probe", f"{root}/{name}")
        os.chmod(f"{root}/{name}", mode)


def _link(to):
    return lambda path: os.symlink(to, path)


def _file(path):
    with open(path, "w", encoding="ascii") as f:
        f.write("not a folder\n")


def _socket(path):
    s = socket.socket(socket.AF_UNIX)
    s.bind(path)
    s.close()


def hostile_images(host):
    """Yields (name, root): one thing is wrong in each. Links lead into {tmp}/victim."""
    victim = f"{host.tmp}/victim"
    for d in ("dev", "etc", "pts", "shm", "proc", "sys", "tmp", "run"):
        os.makedirs(f"{victim}/{d}")
        with open(f"{victim}/{d}/file", "w", encoding="ascii") as f:
            f.write("victim")
    up = "../" * 12 + victim.lstrip("/")
    for d in ("dev", "etc", "proc", "sys", "tmp", "run", "home/agent", "var/tmp", "work", "root"):
        yield f"{d} -> host, absolute", d, _link(f"{victim}/{d.split('/')[0]}")
    for d in ("dev", "proc", "sys", "etc", "tmp"):
        yield f"{d} -> host, relative", d, _link(f"{up}/{d}")
    for d in ("dev", "proc", "tmp", "run", "home"):
        yield f"{d} -> nowhere", d, _link("/nonexistent/place")
        yield f"{d} -> itself", d, _link(f"/{d}")
    for d in ("dev", "proc", "sys", "tmp", "etc"):
        yield f"{d} is a file", d, _file
    for d, to in (("dev/null", f"{victim}/dev/file"), ("dev/console", f"{victim}/dev/file"),
                  ("dev/pts", f"{victim}/pts"),
                  ("dev/shm", f"{victim}/shm"), ("dev/ptmx", f"{victim}/dev/file"), ("dev/fd", victim),
                  ("dev/tty", "/dev/tty"),
                  ("etc/passwd", f"{victim}/etc/file"), ("etc/hosts", f"{victim}/etc/file"),
                  ("etc/resolv.conf", f"{victim}/etc/file")):
        yield f"{d} -> host", d, _link(to)
    yield "run is a socket", "run", _socket


def place_hostile(root, path, make_it):
    full = f"{root}/{path}"
    if os.path.isdir(full) and not os.path.islink(full):
        shutil.rmtree(full)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    make_it(full)
