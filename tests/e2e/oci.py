"""oci.py - archives of root file systems and OCI layouts, made by hand; well-formed ones and others.

    oci.py root FOLDER        a small root: busybox, a few files
    oci.py layout FOLDER      an OCI layout with the same root in two layers, named `small`
"""
import ctypes
import ctypes.util
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import sys
import tarfile

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
OCI = "application/vnd.oci.image."
PASSWD = b"root:x:0:0::/root:/bin/sh\nweb:x:33:34::/:/bin/sh\n"
APPLETS = ("sh", "cat", "echo", "id", "ls", "stat", "mkdir", "rm", "test", "touch", "env", "find", "head", "wc", "sleep")


def zstd(data, level=3):
    """By the library itself: Python has no module for it."""
    lib = ctypes.CDLL("libzstd.so.1")
    for name in ("ZSTD_compressBound", "ZSTD_compress"):
        getattr(lib, name).restype = ctypes.c_size_t
    room = lib.ZSTD_compressBound(ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    n = lib.ZSTD_compress(out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), level)
    assert n <= room
    return out.raw[:n]


PACKERS = {"": bytes, "+gzip": lambda data: gzip.compress(data, mtime=0), "+zstd": zstd}


# ---- tar ---------------------------------------------------------------------------------------

def entry(name, data=b"", kind=tarfile.REGTYPE, **attributes):
    """(member, bytes); `data` of a link is where it leads."""
    member = tarfile.TarInfo(name)
    member.type, member.mtime = kind, 1000
    member.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        member.linkname, data = data, b""
    member.size = len(data)
    for key, value in attributes.items():
        setattr(member, key, value)
    return member, data


def folder(name, **attributes):
    return entry(name, kind=tarfile.DIRTYPE, **attributes)


def link(name, target, **attributes):
    return entry(name, target, tarfile.SYMTYPE, **attributes)


def hard(name, target):
    return entry(name, target, tarfile.LNKTYPE)


def tar(*entries, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for member, data in entries:
            if member.size == len(data):
                archive.addfile(member, io.BytesIO(data))
                continue
            head = member.tobuf(form, "utf-8", "surrogateescape")  # it lies
            archive.fileobj.write(head + data)
            archive.offset += len(head) + len(data)
    return out.getvalue()


def small_root():
    """What runs: entries of a tar."""
    busybox = pathlib.Path(shutil.which("busybox") or "/bin/busybox").read_bytes()
    return [folder("bin"), entry("bin/busybox", busybox, mode=0o4755), *(link(f"bin/{a}", "busybox") for a in APPLETS),
            folder("etc"), entry("etc/passwd", PASSWD), entry("etc/motd", b"from the image\n", uid=33, gid=34),
            hard("etc/issue", "etc/motd"), link("etc/mtab", "/proc/mounts"), folder("usr")]


# ---- OCI ---------------------------------------------------------------------------------------

class Layout:
    """Blobs and the documents that name them. Whoever wants a broken one changes them before tar()."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
        self.layers, self.ids, self.manifests = [], [], []
        self.config = {"os": "linux", "architecture": ARCH}

    def blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}

    def layer(self, data, packing="+gzip"):
        self.ids.append("sha256:" + hashlib.sha256(data).hexdigest())
        self.layers.append({"mediaType": f"{OCI}layer.v1.tar{packing}", **self.blob(PACKERS[packing](data))})
        return self

    def manifest(self, ref=None, **platform_):
        """All layers so far, as one image."""
        config = {**self.config, "rootfs": {"type": "layers", "diff_ids": list(self.ids)}}
        text = {"schemaVersion": 2, "mediaType": f"{OCI}manifest.v1+json", "layers": list(self.layers),
                "config": {"mediaType": f"{OCI}config.v1+json", **self.blob(json.dumps(config).encode())}}
        row = {"mediaType": f"{OCI}manifest.v1+json", **self.blob(json.dumps(text).encode())}
        if ref:
            row["annotations"] = {"org.opencontainers.image.ref.name": ref}
        if platform_:
            row["platform"] = platform_
        self.manifests.append(row)
        return self

    def whole(self):
        """With index.json: name to bytes."""
        if not self.manifests:
            self.manifest()
        index = {"schemaVersion": 2, "mediaType": f"{OCI}index.v1+json", "manifests": self.manifests}
        return {"index.json": json.dumps(index).encode(), **self.files}

    def tar(self):
        return tar(*(entry(name, data) for name, data in self.whole().items()))

    def write(self, path):
        for name, data in self.whole().items():
            file = pathlib.Path(path, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def two_layers():
    """The second takes away, hides and replaces."""
    below = [*small_root(), entry("etc/gone", b"1"), folder("opt"), entry("opt/old", b"1"), entry("etc/kind", b"a file")]
    above = [entry("etc/.wh.gone"), entry("opt/new", b"2"), entry("opt/.wh..wh..opq"), folder("etc/kind"),
             entry("etc/kind/in", b"2"), hard("etc/again", "etc/motd")]
    return Layout().layer(tar(*below), "+gzip").layer(tar(*above), "+zstd").manifest("small")


if __name__ == "__main__":
    what, path = sys.argv[1:]
    if what == "root":
        os.makedirs(path)
        with tarfile.open(fileobj=io.BytesIO(tar(*small_root()))) as made:
            made.extractall(path)
    else:
        two_layers().write(path)
