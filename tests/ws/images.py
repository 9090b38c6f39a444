#!/usr/bin/env python3
"""images.py - images of a daemon in a cell: their life, and archives that mean harm (rows ARC of the corpus).

The state folders lie on a file system as hosts have it, and small: what is left of a refused archive shows.
"""
import contextlib
import gzip
import hashlib
import io
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import threading
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/api"), str(ROOT / "tests/e2e")]

import lib  # noqa: E402
import oci  # noqa: E402
from corpus import RESULTS, row  # noqa: E402
from lib import check, same, test, wait_until  # noqa: E402

lib.cell.PROGRAMS = (*dict.fromkeys((*lib.cell.PROGRAMS, "caisson-vault")),)
TAR, LAYOUT = "application/x-tar", "application/vnd.oci.image.layout.v1+tar"
DISK = pathlib.Path("/run/disk.img")
DISK_BYTES = 1 << 30
SMALL = oci.tar(*oci.small_root())  # before the cell hides where it comes from


def prepare():
    """Returns what ends it."""
    with open(DISK, "wb") as f:
        f.truncate(DISK_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", DISK], check=True)
    subprocess.run(["mount", "-o", "loop", DISK, lib.HOME], check=True)
    os.chmod(lib.HOME, 0o755)

    def finish():
        for pid in vaults():
            os.kill(pid, 9)  # they outlive launcher and daemon by a minute, which nobody waits for
        wait_until(lambda: (lib.census.reap(), not vaults())[1], 5, "keepers end")
        wait_until(lambda: subprocess.run(["umount", lib.HOME], stderr=subprocess.DEVNULL, check=False).returncode == 0, 10)
        DISK.unlink()
    return finish


def vaults():
    return [p for p in lib.census.pids() if (s := lib.stat_of(p)) and s[0] == "caisson-vault"]


# ---- words -------------------------------------------------------------------------------------

def put(c, name, body, kind=TAR, query=""):
    return c.call("PUT", f"/v1/images/{name}{query}", body, {"Content-Type": kind})


def imported(c, name, body, kind=TAR, query=""):
    answer = put(c, name, body, kind, query)
    same(answer.status, 201, f"import: {answer}")
    return answer.json


def names(c):
    return [i["name"] for i in c.ok("GET", "/v1/images")["images"]]


def trees(daemon):
    """Numbers of the trees on disk, without the empty one that is always there."""
    return sorted(int(n) for n in os.listdir(daemon.state / "trees") if n != "1")


def nothing_left(c, daemon):
    """No name, no tree, no sandbox."""
    same(names(c), [], "images")
    wait_until(lambda: not trees(daemon), 10, f"no tree is left: {trees(daemon)}")
    same(c.ok("GET", "/v1/sandboxes")["sandboxes"], [], "sandboxes")


def shell(c, image, script, **spec):
    """What a command in that image prints."""
    done = c.ok("POST", "/v1/run", {"spec": {"image": image, **spec}, "cmd": ["/bin/sh", "-c", script]})
    same(done["exit_code"], 0, f"{script}: {done}")
    return done["stdout"]


def drop(c, *images):
    for name in images:
        same(c.delete(f"/v1/images/{name}").status, 204, f"remove {name}")


def used_bytes():
    st = os.statvfs(lib.HOME)
    return (st.f_blocks - st.f_bfree) * st.f_frsize


# ---- life --------------------------------------------------------------------------------------

@test("a tar, packed in any way, is a root")
def packed(api):
    c = api.client
    for name, pack in (("plain", bytes), ("gz", gzip.compress), ("zst", oci.zstd)):
        made = imported(c, name, pack(SMALL))
        same((made["source"], made["layers"], made["dropped"]), ("tar", 1, 1), "what it is")
        same(made["digest"], hashlib.sha256(pack(SMALL)).hexdigest() if name != "gz" else made["digest"], "digest")
        same(shell(c, name, "cat /etc/motd /etc/issue; id -u; stat -c %u:%g:%h /etc/motd; stat -c %a /bin/busybox"),
             "from the image\nfrom the image\n1000\n33:34:2\n755\n", "inside")
        same(shell(c, name, "id -u; id -g", user="web"), "33\n34\n", "a user of the image")
        same(shell(c, name, "touch /etc/new && rm /etc/motd && ls /etc", user="root", profile="rootful"),
             "again\nissue\nmtab\nnew\npasswd\n".replace("again\n", ""), "writable, and gone with the sandbox")
    same(names(c), ["gz", "plain", "zst"], "list")
    same(c.ok("GET", "/v1/images/gz")["name"], "gz", "one")
    drop(c, "plain", "gz", "zst")
    nothing_left(c, api.daemon)


@test("layers of an OCI layout lie over each other")
def layers(api):
    c = api.client
    layout = oci.two_layers()
    for name, body, query in (("dir", layout.tar(), ""), ("packed", oci.zstd(layout.tar()), "?ref=small")):
        made = imported(c, name, body, LAYOUT, query)
        same((made["source"], made["layers"]), ("oci", 2), "what it is")
        same("sha256:" + made["digest"], layout.manifests[0]["digest"], "digest")
        same(shell(c, name, "ls /etc /opt; cat /etc/kind/in /etc/again"),
             "/etc:\nagain\nissue\nkind\nmotd\nmtab\npasswd\n\n/opt:\nnew\n2from the image\n", "inside")
    same(put(c, "dir", layout.tar(), LAYOUT, "?ref=other&replace").code, "invalid", "no such image in it")
    drop(c, "dir", "packed")
    nothing_left(c, api.daemon)


@test("the platform and the name decide which image of a layout it is")
def choice(api):
    c = api.client
    one = oci.Layout().layer(oci.tar(*oci.small_root(), entry_of("one"))).manifest("one", os="linux", architecture=oci.ARCH)
    one.config["architecture"] = "s390x"
    one.manifest("one", os="linux", architecture="s390x")
    imported(c, "one", one.tar(), LAYOUT)
    same(shell(c, "one", "cat /etc/which"), "one", "ours")
    both = oci.Layout().layer(oci.tar(*oci.small_root(), entry_of("a"))).manifest("a")
    both.layers.clear(), both.ids.clear()
    both.layer(oci.tar(*oci.small_root(), entry_of("b"))).manifest("b")
    same(put(c, "two", both.tar(), LAYOUT).json["detail"], "more than one image; name one of: a, b", "two of them")
    imported(c, "two", both.tar(), LAYOUT, "?ref=b")
    same(shell(c, "two", "cat /etc/which"), "b", "by name")
    drop(c, "one", "two")


def entry_of(text):
    return oci.entry("etc/which", text.encode())


@test("a name is taken once, given away only when asked, and its old tree stays for those who have it")
def names_of(api):
    c = api.client
    imported(c, "base", oci.tar(*oci.small_root(), entry_of("old")))
    answer = put(c, "base", SMALL)
    same((answer.status, answer.code), (409, "exists"), "again")
    s = c.create(image="base")
    old = trees(api.daemon)
    same((c.delete("/v1/images/base").code), "busy", "a sandbox has it")
    imported(c, "base", oci.tar(*oci.small_root(), entry_of("new")), query="?replace")
    same(c.execute(s, "cat /etc/which")["stdout"], "old", "who has the old one")
    same(shell(c, "base", "cat /etc/which"), "new", "who comes now")
    check(set(old) < set(trees(api.daemon)), "both are there")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/replace", {})
    same(c.execute(s, "cat /etc/which")["stdout"], "new", "another generation of it")
    wait_until(lambda: len(trees(api.daemon)) == 1, 5, "the old one goes")
    c.remove(s)
    drop(c, "base")
    nothing_left(c, api.daemon)


@test("names that are none, kinds that are none, images that are not there")
def wrong(api):
    c = api.client
    for name in ("host", "dir:x", ".x", "a%2f%2fb", "a%20b", "x" * 300):
        same(put(c, name, SMALL).code, "invalid", name)
    same(put(c, "x", SMALL, "application/zip").code, "invalid", "kind")
    same(put(c, "x", SMALL, TAR, "?ref=x").code, "invalid", "a name in a tar")
    imported(c, "python", SMALL)
    same(c.post("/v1/sandboxes", {"image": "pyhton"}).json["detail"],
         'image: there is no "pyhton"; did you mean "python"?', "the nearest")
    same(c.get("/v1/images/other").status, 404, "get")
    same(c.delete("/v1/images/other").status, 404, "delete")
    drop(c, "python")


@test("without root it is the same, but for owners", own=True)
def rootless(_):
    daemon = lib.Daemon("rootless", uid=lib.USER_ID).start()
    try:
        c = daemon.client()
        imported(c, "small", gzip.compress(SMALL))
        same(shell(c, "small", "cat /etc/motd; id -u; stat -c %u:%h /etc/motd"), "from the image\n1000\n1000:2\n", "inside")
        imported(c, "layers", oci.two_layers().tar(), LAYOUT)
        same(shell(c, "layers", "ls /opt; cat /etc/kind/in"), "new\n2", "inside")
        for what, body, _ in hostile():
            check(400 <= put(c, "bad", body).status < 500, what)
        drop(c, "small", "layers")
        nothing_left(c, daemon)
    finally:
        daemon.stop()


@test("who leaves in the middle, and a daemon that dies there, leave nothing", own=True)
def middle(_):
    daemon = lib.Daemon("middle").start()
    try:
        c = daemon.client()
        with slow_import(daemon, SMALL[:len(SMALL) // 2]):
            wait_until(lambda: trees(daemon), 5, "a tree is made")
            time.sleep(0.1)
        nothing_left(c, daemon)
        with slow_import(daemon, SMALL[:len(SMALL) // 2]):
            wait_until(lambda: trees(daemon) and workers(), 5, "it is unpacked")
            daemon.kill()
        daemon.start()
        c = daemon.client()
        nothing_left(c, daemon)
        imported(c, "small", SMALL)
        daemon.kill()
        daemon.start()
        c = daemon.client()
        same(shell(c, "small", "cat /etc/motd"), "from the image\n", "after a restart")
        s = c.create(image="small")
        daemon.kill()
        daemon.start()
        c = daemon.client()
        wait_until(lambda: c.get("/v1/health").status == 200, 10)
        imported(c, "small", oci.tar(*oci.small_root(), entry_of("new")), query="?replace")
        same(c.execute(s, "cat /etc/motd")["stdout"], "from the image\n", "found again, with its tree")
        c.remove(s)
        wait_until(lambda: len(trees(daemon)) == 1, 5, "the old one goes")
        drop(c, "small")
        nothing_left(c, daemon)
        daemon.wait_clean()
    finally:
        daemon.stop()


@contextlib.contextmanager
def slow_import(daemon, part):
    """A client that has sent a part of a large body."""
    s = lib.connect(daemon.socket)
    s.sendall(b"PUT /v1/images/slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-tar\r\n"
              b"Content-Length: 100000000\r\n\r\n" + part)
    try:
        yield s
    finally:
        s.close()


def workers():
    return [p for p in lib.census.pids() if (s := lib.stat_of(p)) and s[0] == "caisson-tree"]


@test("the disk keeps its reserve, a tenant its quota", own=True)
def room(_):
    daemon = lib.Daemon("room").start()
    filler = lib.HOME / "filler"
    try:
        c = daemon.client()
        st = os.statvfs(lib.HOME)
        with open(filler, "wb") as f:  # but for 5 % and 4 MiB
            os.posix_fallocate(f.fileno(), 0, st.f_bavail * st.f_frsize - st.f_blocks * st.f_frsize // 20 - (4 << 20))
        big = oci.tar(*(oci.entry(f"f{i}", random.randbytes(1 << 20)) for i in range(40)))
        answer = put(c, "big", big)
        check(answer.code in ("quota", "too_large"), lambda: f"while it comes: {answer}")
        nothing_left(c, daemon)
        with open(lib.HOME / "more", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 8 << 20)
        same(put(c, "small", SMALL).code, "quota", "before it comes")
        nothing_left(c, daemon)
    finally:
        filler.unlink()
        (lib.HOME / "more").unlink(missing_ok=True)
        daemon.stop()
    daemon = lib.Daemon("quota", options=["--quota", "disk=3m"]).start()
    try:
        c = daemon.client()
        imported(c, "first", SMALL)
        same(c.ok("GET", "/v1/quota")["used"]["disk"], c.ok("GET", "/v1/images/first")["bytes"], "what is counted")
        check(put(c, "second", SMALL).code in ("quota", "too_large"), "more than the tenant may have")
        drop(c, "first")
        imported(c, "second", SMALL)
        drop(c, "second")
        nothing_left(c, daemon)
    finally:
        daemon.stop()


# ---- harm --------------------------------------------------------------------------------------

def pax(name, **records):
    member, data = oci.entry(name, b"x")
    member.pax_headers = {k.replace("__", "."): v for k, v in records.items()}
    return member, data


def harmful():
    """(what, entries): each is reason enough."""
    up = "../" * 12 + "run/host/canary"
    for name in (up, "/run/host/canary", "a/../../x", "..", "a/..", "./../x", "/", "//x", "a/b/../../../x", "x/" * 3000 + "y"):
        yield f"name {name[:40]}", [oci.entry(name, b"harm")]
        yield f"folder {name[:40]}", [oci.folder(name)]
        yield f"hard link from {name[:40]}", [oci.entry("f", b"x"), oci.hard(name, "f")]
    for target in ("/run/host", "/run/host/sub", "../../../../run/host", ".", "..", "d"):
        for through in (oci.entry("l/canary", b"harm"), oci.folder("l/new"), oci.link("l/x", "y"), oci.entry("l/a/b/c", b"harm")):
            yield f"through a link to {target}", [oci.folder("d"), oci.link("l", target), through]
    yield "through two links", [oci.link("a", "b"), oci.link("b", "/run/host"), oci.entry("a/canary", b"harm")]
    for target in (up, "/run/host/canary", "/etc/passwd", "missing", "d", "l/canary", "self", ""):
        yield f"hard link to {target[-20:]}", [oci.folder("d"), oci.link("l", "/run/host"), oci.hard("self", target)]
    yield "hard links in a circle", [oci.hard("a", "b"), oci.hard("b", "a")]
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE):
        yield f"kind {kind}", [oci.entry("dev/x", kind=kind, devmajor=1, devminor=3)]
    for first, second in ((oci.entry("x", b"1"), oci.folder("x")), (oci.folder("x"), oci.entry("x", b"1")),
                          (oci.folder("x"), oci.link("x", "/run/host")), (oci.entry("x", b"1"), oci.link("x", "/run/host/canary")),
                          (oci.link("x", "/run/host/canary"), oci.entry("x", b"harm")), (oci.link("x", "d"), oci.folder("x"))):
        yield f"twice, {first[0].type} and {second[0].type}", [first, second]
    yield "path of pax", [pax("fine", path="../../run/host/canary")]
    yield "path of pax, absolute", [pax("fine", path="/run/host/canary")]
    yield "attribute of overlays", [pax("f", SCHILY__xattr__user__overlay__opaque="y")]
    yield "attribute of overlays", [pax("f", SCHILY__xattr__trusted__overlay__redirect="/")]
    yield "below a file", [oci.entry("f", b"x"), oci.entry("f/g", b"x")]
    yield "a size that is none", [oci.entry("f", size=1 << 50)]


def hostile():
    """(what, archive, entries); each alone, behind what is good, and in front of it."""
    for what, entries in harmful():
        is_gnu = len(entries[0][0].name) % 2 and not entries[0][0].pax_headers
        form = tarfile.GNU_FORMAT if is_gnu else tarfile.PAX_FORMAT
        try:
            yield what, oci.tar(*entries, form=form), entries
        except OverflowError:
            yield what, oci.tar(*entries), entries


@row("ARC-01", "tar: .., absolute, through links, links out, other kinds, twice, pax, GNU")
def archives(api):
    c = api.client
    n = 0
    for what, body, entries in hostile():
        good = oci.entry("good", b"x" * 3000)
        for variant, kind in ((body, TAR), (gzip.compress(body), TAR), (oci.tar(good, *entries), TAR),
                              (oci.Layout().layer(oci.tar(good)).layer(body, "+zstd").tar(), LAYOUT)):
            if what == "a size that is none" and variant is not body:
                continue
            answer = put(c, "bad", variant, kind)
            check(400 <= answer.status < 500, lambda: f"{what}: {answer}")
            n += 1
    nothing_left(c, api.daemon)
    return f"{n} archives, each refused whole; no tree is left"


@row("ARC-02", "zip: it is not taken at all")
def zips(api):
    same(put(api.client, "bad", b"PK\x03\x04" + bytes(60), "application/zip").code, "invalid", "by its kind")
    same(put(api.client, "bad", b"PK\x03\x04" + bytes(60)).code, "invalid", "as if it were a tar")


@row("ARC-03", "bombs: gzip, zstd, nested, many entries, sparse, in a layer")
def bombs(api):
    c = api.client
    zeros = oci.tar(oci.entry("zeros", bytes(150 << 20)))
    many = oci.tar(oci.entry("n", b""))[:512]
    head, data = oci.entry("GNUSparseFile.0/s", b"1\n0\n1\n".ljust(512, b"\0") + b"x")
    head.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s", "GNU.sparse.realsize": str(1 << 45)}
    bodies = {
        "gzip": (gzip.compress(zeros, 9), TAR), "zstd": (oci.zstd(zeros), TAR),
        "gzip in gzip": (gzip.compress(gzip.compress(zeros, 9), 9), TAR),
        "a layer": (oci.Layout().layer(zeros, "+gzip").tar(), LAYOUT),
        "a layer, zstd": (oci.Layout().layer(zeros, "+zstd").tar(), LAYOUT),
        "the layout": (oci.zstd(oci.tar(*(oci.entry(n, d) for n, d in oci.Layout().layer(zeros, "").whole().items()))), LAYOUT),
        "sparse": (oci.tar((head, data)), TAR),
        "many entries": (gzip.compress(many * 300_000 + bytes(1024), 9), TAR),
    }
    del zeros
    before, most = used_bytes(), [0]
    stop = threading.Event()

    def watch():
        while not stop.wait(0.02):
            most[0] = max(most[0], used_bytes() - before)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for what, (body, kind) in bodies.items():
            answer = put(c, "bomb", body, kind)
            check(answer.code in ("too_large", "invalid", "quota"), lambda: f"{what}: {answer}")
    finally:
        stop.set()
        watcher.join()
    nothing_left(c, api.daemon)
    check(most[0] < 250 << 20, f"{most[0] >> 20} MiB of disk in between")
    check(lib.memory_kib(api.daemon.pid, "VmHWM") < 200 << 10, "memory of the daemon")
    # The log of the database and the ledger may have grown by some of it; of a bomb it would be more.
    wait_until(lambda: used_bytes() - before < 16 << 20, what=lambda: f"the disk is as before: {used_bytes() - before} bytes more")
    return f"at most {most[0] >> 20} MiB of disk while they came, none after"


@row("ARC-08", "out, in, out again: the same bytes")
def there_and_back(api):
    c = api.client
    chance = random.Random(5)
    for i in range(6):
        imported(c, "tree", oci.tar(*oci.small_root(), *random_tree(chance)), query="?replace")
        first = export(c, "tree")
        with tarfile.open(fileobj=io.BytesIO(first)) as archive:
            again = [(m, archive.extractfile(m).read() if m.isreg() else b"") for m in archive]
        for member, _ in again:
            member.name, member.pax_headers = "data/" + member.name, {}
            if member.islnk():
                member.linkname = "data/" + member.linkname
        imported(c, "again", oci.tar(*oci.small_root(), oci.folder("data"), *again), query="?replace")
        second = export(c, "again")
        check(second == first, lambda: f"tree {i}: {differences(first, second)}")
    drop(c, "tree", "again")


def differences(*archives_):
    """Of two archives, member by member."""
    sides = []
    for data in archives_:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            sides.append({m.name: (m.type, m.mode, m.uid, m.gid, m.size, m.mtime, m.linkname) for m in archive})
    return [(k, sides[0].get(k), sides[1].get(k)) for k in {**sides[0], **sides[1]} if sides[0].get(k) != sides[1].get(k)][:5]


def random_tree(chance):
    """Odd names, links, empty folders, odd modes; files that are hard links of each other."""
    letters = ["a", "b", " ", "-", "é", "\n", "\\", "*", "☃", ".", "_" * 100]
    names_, files = ["data"], []
    yield oci.folder("data")
    for n in range(60):
        name = f"{chance.choice(names_)}/{n}{''.join(chance.choices(letters, k=3))}"
        kind = chance.choice("dffflh")
        if kind == "d":
            names_.append(name)
            yield oci.folder(name, mode=chance.choice([0o755, 0o700, 0o777]))
        elif kind == "l":
            yield oci.link(name, chance.choice(["..", "/etc/passwd", "x", "a/../b"]))
        elif kind == "h" and files:
            yield oci.hard(name, chance.choice(files))
        else:
            files.append(name)
            yield oci.entry(name, chance.randbytes(chance.choice([0, 1, 511, 512, 70000])), mode=chance.choice([0o644, 0o400, 0o755]))


def export(c, image):
    s = c.create(image=image, user="root", profile="rootful")
    try:
        answer = c.get(f"/v1/sandboxes/{s['id']}/archive?path=/data")
        same(answer.status, 200, f"export: {answer}")
        return answer.body
    finally:
        c.remove(s)


@row("ARC-09", "a bit of an archive or a manifest is flipped, it is cut, its parts change places")
def flipped(api):
    c = api.client
    layout = oci.Layout().layer(oci.tar(oci.folder("d"), oci.entry("d/f", random.randbytes(700))))
    whole = layout.whole()
    manifest = layout.manifests[0]["digest"][7:]
    n = 0
    for name, data in whole.items():
        for at in range(0, len(data), max(1, len(data) // 24)):
            bad = dict(whole)
            bad[name] = data[:at] + bytes([data[at] ^ (1 << at % 7)]) + data[at + 1:]
            answer = put(c, "flip", oci.tar(*(oci.entry(k, v) for k, v in bad.items())), LAYOUT)
            if answer.status == 201:  # a byte of a name that means nothing here
                same((answer.json["digest"], name), (manifest, "index.json"), "what it is")
                drop(c, "flip")
            n += 1
        for bad in ({k: v for k, v in whole.items() if k != name}, {**whole, name: data[:-1]}, {**whole, name: b""}):
            answer = put(c, "flip", oci.tar(*(oci.entry(k, v) for k, v in bad.items())), LAYOUT)
            same(answer.code, "invalid", f"{name} cut: {answer}")
            n += 1
    body = layout.tar()
    for at in range(512, len(body) - 10240, 1024):
        check(put(c, "flip", body[:at], LAYOUT).status >= 400, f"cut at {at}")
        n += 1
    backwards = oci.tar(*(oci.entry(k, v) for k, v in reversed(whole.items())))
    same(imported(c, "flip", backwards, LAYOUT)["digest"], manifest, "in another order it is the same")
    drop(c, "flip")
    for packed_ in (gzip.compress(SMALL, mtime=0), ):
        for at in range(20, len(packed_), len(packed_) // 24):
            bad = packed_[:at] + bytes([packed_[at] ^ 1]) + packed_[at + 1:]
            check(put(c, "flip", bad).status >= 400, f"gzip, byte {at}")
            n += 1
    nothing_left(c, api.daemon)
    return f"{n} damaged ones"


@row("ARC-10", "what unpacks has no right, no network and no file but those it makes")
def inspected(api):
    daemon = api.daemon
    before = set(workers())
    with slow_import(daemon, SMALL[:len(SMALL) // 2]):
        pid = wait_until(lambda: set(workers()) - before, 5, "the worker").pop()
        wait_until(lambda: "etc" in str(os.listdir(f"/proc/{pid}/root/work")) or os.listdir(f"/proc/{pid}/root/work"), 5)
        status = dict(line.split(":\t", 1) for line in lib.census.read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        check(all(int(i) >= 0x60000000 for i in status["Uid"].split() + status["Gid"].split()), f"ids {status['Uid']}")
        same((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"), "filter")
        check(int(status["CapEff"], 16) & ~0xeb == 0, f"rights in its own namespace {status['CapEff']}")
        check(os.readlink(f"/proc/{pid}/ns/user") != os.readlink("/proc/self/ns/user"), "its user namespace")
        links = lib.census.read(f"/proc/{pid}/net/dev").splitlines()[2:]
        same([line.split(":")[0].strip() for line in links], ["lo"], "its network")
        same(len(lib.census.read(f"/proc/{pid}/net/route").splitlines()), 1, "routes")
        open_ = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        check(not any("state" in o or "api" in o for o in open_), f"open: {open_}")
    nothing_left(api.client, daemon)


# ---- wrong documents -----------------------------------------------------------------------------

@test("documents of a layout that say too much, too little, or something else")
def documents(api):
    c = api.client

    def refused(layout, words, **changes):
        whole = {**layout.whole(), **changes}
        answer = put(c, "bad", oci.tar(*(oci.entry(k, v) for k, v in whole.items() if v is not None)), LAYOUT)
        same(answer.code, "invalid", f"{words}: {answer}")
        check(words in answer.json["detail"], lambda: f"{words}: {answer.json['detail']}")
    layer = oci.tar(oci.entry("f", b"x"))
    for kind in ("application/vnd.oci.image.layer.nondistributable.v1.tar", "text/plain", f"{oci.OCI}layer.v1.tar+encrypted"):
        layout = oci.Layout().layer(layer)
        layout.layers[0]["mediaType"] = kind
        refused(layout, "media type")
    layout = oci.Layout().layer(layer, "+gzip")
    layout.layers[0]["mediaType"] = f"{oci.OCI}layer.v1.tar+zstd"
    refused(layout, "not packed as it says")
    layout = oci.Layout().layer(layer)
    layout.layers.append({**layout.layers[0], "digest": "sha256:" + "0" * 64})
    layout.ids.append(layout.ids[0])
    refused(layout, "it is not there")
    layout = oci.Layout().layer(layer)
    layout.layers[0]["size"] += 1
    refused(layout, "bytes, and not")
    layout = oci.Layout().layer(layer)
    layout.ids[0] = "sha256:" + "0" * 64
    refused(layout, "unpacked it is not")
    layout = oci.Layout().layer(layer)
    layout.ids.append(layout.ids[0])
    refused(layout, "layers")
    layout = oci.Layout().layer(layer)
    layout.config["architecture"] = "s390x"
    refused(layout, "not for linux/")
    for changes, words in (({"oci-layout": None}, "oci-layout is not there"), ({"index.json": None}, "index.json is not there"),
                           ({"oci-layout": b'{"imageLayoutVersion":"9"}'}, "version"), ({"index.json": b"[]"}, "index"),
                           ({"index.json": b'{"schemaVersion":2,"schemaVersion":2}'}, "index")):
        whole = {**oci.Layout().layer(layer).whole(), **changes}
        answer = put(c, "bad", oci.tar(*(oci.entry(k, v) for k, v in whole.items() if v is not None)), LAYOUT)
        same(answer.code, "invalid", words)
        check(words in answer.json["detail"], lambda: f"{words}: {answer.json['detail']}")
    nothing_left(c, api.daemon)


def print_table():
    print("| ")
    print(f"| {'id':8}{'daemon':10}what is tried")
    for number, result, title, note in sorted(RESULTS):
        print(f"| {number:8}{result:10}{title}")
        if note:
            print(f"|                   {note}")


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=prepare, extra=print_table))
