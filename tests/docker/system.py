"""An image of this host's own system: a few programs, what they are linked with, and Python's library; a tar."""

import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile

PROGRAMS = ("bash sh env ls cat cp mv rm mkdir chmod chown touch echo printf sleep true false id stat head tail wc tr sed "
            "grep sort uniq find ps kill pwd date uname hostname seq tar test tee basename dirname readlink mktemp dd ln mkfifo "
            "python3").split()
FOLDERS = "dev proc sys tmp run root home etc var/tmp".split()
PASSWD = "root:x:0:0:root:/root:/bin/bash\nweb:x:33:33:web:/var:/bin/sh\n"
GROUP = "root:x:0:\nweb:x:33:\n"


def which(name):
    for folder in ("/usr/bin", "/bin", "/usr/sbin"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return None


def libraries(path):
    """What the loader would map for it, the loader itself included."""
    said = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return re.findall(r"(/\S+\.so\S*)", said)


class Image:
    def __init__(self, out):
        self.tar = tarfile.open(fileobj=out, mode="w|")
        self.names = set()

    def folder(self, name):
        if name and name not in self.names:
            self.folder(os.path.dirname(name))
            self.names.add(name)
            head = tarfile.TarInfo(name)
            head.type, head.mode = tarfile.DIRTYPE, 0o1777 if name in ("tmp", "var/tmp") else 0o755
            self.tar.addfile(head)

    def text(self, name, text):
        self.folder(os.path.dirname(name))
        head = tarfile.TarInfo(name)
        head.size = len(text)
        self.tar.addfile(head, io.BytesIO(text.encode()))

    def link(self, name, to):
        self.names.add(name)
        head = tarfile.TarInfo(name)
        head.type, head.linkname = tarfile.SYMTYPE, to
        self.tar.addfile(head)

    def file(self, path, name=None):
        """As one file, wherever links lead; below usr/, as on a system whose /bin and /lib are links."""
        name = name or path.lstrip("/")
        if not name.startswith("usr/"):
            name = "usr/" + name
        if name in self.names:
            return
        self.folder(os.path.dirname(name))
        self.names.add(name)
        real = os.path.realpath(path)
        head = tarfile.TarInfo(name)
        head.size, head.mode = os.path.getsize(real), 0o755 if os.access(real, os.X_OK) else 0o644
        with open(real, "rb") as data:
            self.tar.addfile(head, data)

    def program(self, path):
        self.file(path)
        for library in libraries(path):
            self.file(library)


def python_files():
    """The standard library without what a test never imports."""
    base = sysconfig.get_path("stdlib", vars={"installed_base": "/usr", "base": "/usr"})
    if not os.path.isdir(base):
        base = "/usr/lib/python%d.%d" % sys.version_info[:2]
    skip = {"test", "idlelib", "tkinter", "lib2to3", "ensurepip", "distutils", "turtledemo", "__pycache__", "dist-packages",
            "site-packages", "pydoc_data"}
    for folder, folders, names in os.walk(base):
        folders[:] = sorted(set(folders) - skip)
        for name in sorted(names):
            if name.endswith((".py", ".so")):
                yield os.path.join(folder, name)


def write(out, with_python=True):
    image = Image(out)
    for name in ("bin", "lib", "lib64", "sbin"):
        image.link(name, "usr/" + name)
    for name in FOLDERS:
        image.folder(name)
    image.text("etc/passwd", PASSWD)
    image.text("etc/group", GROUP)
    for name in PROGRAMS:
        path = which(name)
        if path and (with_python or name != "python3"):
            image.program(path)
    for path in python_files() if with_python else ():
        image.file(path)
        if path.endswith(".so"):
            for library in libraries(path):
                image.file(library)
    image.tar.close()


if __name__ == "__main__":
    write(sys.stdout.buffer, "--small" not in sys.argv)
