"""hostile.py - the rows FSX: paths, links, names and files that are not what they seem."""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import tarfile
import threading
import time

import lib
from corpus import row
from lib import HOST, SECRET, SOURCE, check, connect, quote, same, wait_until


def make_source():
    """A folder of the host with links that lead out of it."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    (SOURCE / "sub").mkdir(parents=True)
    for name in ("file", "sub/file"):
        (SOURCE / name).write_text("of the source\n")
    links = {"abs": HOST / "canary", "rel": "../host/canary", "dir-abs": HOST, "dir-rel": "../host", "gone": HOST / "none",
             "up": "../../../../../../../run/host/canary", "root": "/", "proc": "/proc/1/root/run/host/canary",
             "fd": "/proc/self/fd/3", "loop": "loop"}
    for name, target in links.items():
        (SOURCE / name).symlink_to(target)
    for path in (SOURCE, SOURCE / "sub"):
        path.chmod(0o777)
    for name in ("file", "sub/file"):
        (SOURCE / name).chmod(0o666)


def digest(folder):
    """Names, types, modes and contents."""
    h = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        h.update(f"{path.relative_to(folder)} {info.st_mode} {info.st_uid} {info.st_size}".encode())
        h.update(os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"")
    return h.hexdigest()


def tar_of(*members):
    """(name, type, bytes or link target, mode)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, data, mode in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.uid, info.gid, info.uname = kind, mode, 0, 0, "root"
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                info.linkname, data = data, b""
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def file_verbs(c, s, path):
    """Every verb that takes a path, on this one: name -> answer. Of a sandbox, or of what lies at a route."""
    at = s if isinstance(s, str) else f"/v1/sandboxes/{s['id']}"
    target = f"{at}/files/{path.lstrip('/')}"
    plain = lib.urllib.parse.unquote(path, errors="surrogateescape")
    with contextlib.suppress(UnicodeEncodeError):
        plain.encode()
    asks = {
        "read": ("GET", target, None), "lines": ("GET", target + "?lines=1-5", None), "stat": ("GET", target + "?stat&hash", None),
        "list": ("GET", target + "?list&depth=3", None), "tar": ("GET", f"{at}/archive?path={path}", None),
        "copy out": ("POST", f"{at}/files:copy", {"from": plain, "to": "/tmp/copied"}),
        "grep": ("POST", f"{at}/grep", {"pattern": "secret", "path": plain}),
        "glob": ("POST", f"{at}/glob", {"pattern": "**", "path": plain, "hidden": True}),
        "batch": ("POST", f"{at}/files:batch", [{"op": "read", "path": plain}, {"op": "stat", "path": plain}]),
        "edit": ("PATCH", target, {"edits": [{"old": "host", "new": "OPEN"}]}), "write": ("PUT", target, b"OPEN"),
        "tar in": ("PUT", f"{at}/archive?path={path}", tar_of(("canary", tarfile.REGTYPE, b"OPEN", 0o644))),
        "copy in": ("POST", f"{at}/files:copy", {"from": "/etc/hostname", "to": plain, "overwrite": True}),
        "mkdir": ("POST", f"{at}/files:mkdir", {"path": plain + "/made"}),
        "move": ("POST", f"{at}/files:move", {"from": plain, "to": "/tmp/moved"}),
        "delete": ("DELETE", target + "?recursive", None),
    }
    answers = {}
    for name, (method, url, body) in asks.items():
        with contextlib.suppress(UnicodeEncodeError, ValueError):  # it cannot even be sent
            answers[name] = c.call(method, url, body)
    return answers


def judge(answers, path):
    for name, answer in answers.items():
        check(answer.status < 500, f"{name} {path!r}: {answer}")
        check(SECRET.encode() not in answer.body, f"{name} {path!r} reads a file of the host, OPEN")


ENCODINGS = ["../", "%2e%2e/", "..%2f", "%2e%2e%2f", "..%5c", "..\\", "%252e%252e%252f", "%c0%ae%c0%ae/", "..%c0%af", "..;/",
             "....//", "..%00/", ".%2e/", "%2e./", "..//", "/../", "./../", "%u002e%u002e/", "..%ef%bc%8f", "%2e%2e%2f%2e%2e%2f"]


@row("FSX-01", "'..' in twenty encodings, absolute, '//', NUL, backslash, overlong, very long")
def _(api):
    c = api.client
    s = c.create()
    goal = str(HOST / "canary").lstrip("/")
    paths = [enc * 8 + goal for enc in ENCODINGS] + ["work/" + enc * 8 + goal for enc in ENCODINGS]
    paths += ["/" + goal, "//" + goal, "///./" + goal, "work/%00/" + goal, "%00", goal + "%00.txt", "C:/" + goal, "file://" + goal,
              "work/" + "a/" * 2040 + "x", "x" * 5000, "%2e", ".", "", "~/" + goal, "$HOME/" + goal, "%2fetc%2fpasswd", "work/..",
              "work/../../../" + goal, "%5c%5chost%5cshare", "work/./.././../run/./host/../host/canary"]
    for path in paths:
        answers = {}
        at = f"/v1/sandboxes/{s['id']}/files/{path}"
        with contextlib.suppress(ValueError, lib.http.client.InvalidURL):
            answers = {"read": c.get(at), "stat": c.get(at + "?stat"), "write": c.put(at + "-new", b"OPEN"),
                       "tar": c.get(f"/v1/sandboxes/{s['id']}/archive?path=/{path}"), "list": c.get(at + "?list"),
                       "delete": c.delete(at)}
        judge(answers, path)
    same(c.execute(s, ["true"])["exit_code"], 0, "the sandbox is well")


def links_row(api, paths):
    c = api.client
    for kind in ("overlay", "ro"):
        make_source()
        before = digest(SOURCE)
        s = c.create(fs=f"{kind}:{SOURCE}:/work")
        for path in paths:
            judge(file_verbs(c, s, path), path)
        c.remove(s)
        same(digest(SOURCE), before, f"the source of {kind}")
    s = c.create()
    inside = "; ".join(f"ln -s {target} /work/{name}" for name, target in (
        ("abs", HOST / "canary"), ("rel", "../run/host/canary"), ("dir-abs", HOST), ("gone", HOST / "none"), ("root", "/"),
        ("up", "../../../../run/host/canary"), ("proc", "/proc/1/root/run/host/canary"), ("dir-rel", "../run/host"),
        ("fd", "/proc/self/fd/3"), ("loop", "loop")))
    c.execute(s, inside)
    for path in paths:
        judge(file_verbs(c, s, path), path)
    c.remove(s)


@row("FSX-02", "a link to the outside as the last component, sixteen verbs")
def _(api):
    links_row(api, ["/work/abs", "/work/rel", "/work/up", "/work/gone", "/work/proc", "/work/fd", "/work/loop"])


@row("FSX-03", "a link in the middle, and the root of the tree as a link; swapped during the call")
def _(api):
    links_row(api, ["/work/dir-abs/canary", "/work/dir-rel/sub/canary", "/work/root/run/host/canary",
                    "/work/root/work/root/run/host/sub", "/work/dir-abs/none", "/work/dir-abs"])
    c = api.client
    s = c.create()
    c.execute(s, f"mkdir /work/a; echo inside > /work/a/canary; ln -s {HOST} /work/b; cd /work; "
                 "while :; do mv a c 2>/dev/null; mv b a; mv a b; mv c a; done", wait=0)
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        for answer in (c.get(c.file(s, "/work/a/canary")), c.put(c.file(s, "/work/a/new"), b"OPEN"),
                       c.get(c.file(s, "/work/a") + "?list"), c.delete(c.file(s, "/work/a/new"))):
            check(SECRET.encode() not in answer.body and answer.status < 500, f"during swaps: {answer}, OPEN")


@row("FSX-05", "/proc/self/root, /proc/self/fd/N, /proc/1/cwd, /dev/fd/N, /dev/stdin")
def _(api):
    c = api.client
    s = c.create()
    goal = str(HOST / "canary")
    paths = [f"/proc/self/root{goal}", f"/proc/1/root{goal}", f"/proc/thread-self/root{goal}", f"/proc/self/cwd/..{goal}",
             f"/proc/1/cwd{goal}", *(f"/proc/self/fd/{n}" for n in range(12)), *(f"/proc/1/fd/{n}" for n in range(5)),
             *(f"/proc/self/fd/{n}/../../run/host/canary" for n in range(3, 12)), "/dev/fd/3", "/dev/fd/4", "/dev/stdin", "/dev/stdout",
             "/proc/self/exe", "/proc/self/mem", "/proc/self/map_files", "/proc/self/environ", "/proc/kcore", "/proc/sysrq-trigger",
             "/proc/self/task", "/run/caisson/self.sock"]
    for path in paths:
        at = c.file(s, path)
        answers = {"read": c.get(at), "stat": c.get(at + "?stat"), "write": c.put(at, b"OPEN"), "list": c.get(at + "?list"),
                   "edit": c.call("PATCH", at, {"edits": [{"old": "a", "new": "b"}]})}
        judge(answers, path)
        check(b"caisson.db" not in answers["list"].body and b"api.sock" not in answers["list"].body, f"{path}: OPEN")
    environ = c.get(c.file(s, "/proc/self/environ")).body
    check(b"HOME=/nowhere" not in environ, "the environment of the daemon, OPEN")


@row("FSX-06", "hard links to files of the layer below, then writes by the API")
def _(api):
    c = api.client
    make_source()
    before = digest(SOURCE)
    s = c.create(fs=f"overlay:{SOURCE}:/work")
    c.execute(s, "cd /work; ln file hard; ln sub/file hard2; ln -f hard sub/hard3; chmod 777 hard; chmod 600 file", user="root")
    for name in ("hard", "hard2", "sub/hard3", "file", "sub/file"):
        for answer in (c.put(c.file(s, f"/work/{name}"), b"changed\n"), c.put(c.file(s, f"/work/{name}") + "?mode=0777", b"again\n"),
                       c.call("PATCH", c.file(s, f"/work/{name}"), {"edits": [{"old": "again", "new": "edited"}]}),
                       c.post(f"/v1/sandboxes/{s['id']}/files:move", {"from": f"/work/{name}", "to": f"/work/{name}-moved"}),
                       c.delete(c.file(s, f"/work/{name}-moved"))):
            check(answer.status < 500, f"{name}: {answer}")
    same(digest(SOURCE), before, "the layer below")


@row("FSX-07", "FIFO, socket, device, /proc file, folder, sparse terabyte: an answer, nobody blocked")
def _(api):
    c, d = api.client, api.daemon
    s = c.create()
    made = c.execute(s, "cd /work; mkfifo fifo; mkdir dir; truncate -s 1T sparse || true; ln -s fifo link; "
                        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'")
    same(made["exit_code"], 0, f"fixtures: {made}")
    slow = []

    def probe():
        mine = d.client()
        while not done:
            begin = time.monotonic()
            mine.get("/v1/health")
            slow.append(time.monotonic() - begin)
            time.sleep(0.02)
        mine.close()
    done = []
    thread = threading.Thread(target=probe)
    thread.start()
    threads = len(os.listdir(f"/proc/{d.pid}/task"))
    wrong = []
    for path in ("/work/fifo", "/work/link", "/work/sock", "/work/dir", "/work/sparse", "/dev/zero", "/dev/null", "/dev/full",
                 "/dev/random", "/dev/tty", "/dev/ptmx", "/proc/kmsg", "/proc/self/pagemap", "/proc/uptime"):
        for name, (method, target, body) in {
                "read": ("GET", c.file(s, path), None), "lines": ("GET", c.file(s, path) + "?lines=1-2", None),
                "hash": ("GET", c.file(s, path) + "?stat&hash", None), "write": ("PUT", c.file(s, path), b"x"),
                "edit": ("PATCH", c.file(s, path), {"edits": [{"old": "a", "new": "b"}]}),
                "copy": ("POST", f"/v1/sandboxes/{s['id']}/files:copy", {"from": path, "to": "/tmp/copy", "overwrite": True}),
                "grep": ("POST", f"/v1/sandboxes/{s['id']}/grep", {"pattern": "zzz", "path": path}),
                "batch": ("POST", f"/v1/sandboxes/{s['id']}/files:batch", [{"op": "read", "path": path}])}.items():
            if path == "/work/sparse" and name in ("write",):
                continue  # a write puts a new file in its place
            begin = time.monotonic()
            mine = d.client()
            response = mine.send(method, target, body)
            with contextlib.suppress(OSError, lib.http.client.HTTPException):
                response.read(1 << 20)
            seconds = time.monotonic() - begin
            mine.close()
            limit = 40 if path == "/work/sparse" and name == "grep" else 8  # who is blocked waits for ever
            if seconds > limit or response.status >= 500:
                wrong.append(f"{name} {path}: {response.status} after {seconds:.1f} s")
    done.append(1)
    thread.join()
    check(not wrong, "\n".join(wrong))
    check(max(slow) < 8, f"others waited {max(slow):.2f} s")
    same(len(os.listdir(f"/proc/{d.pid}/task")), threads, "threads of the daemon")


@row("FSX-11", "every write verb on a read-only mount, and below it")
def _(api):
    c = api.client
    make_source()
    before = digest(SOURCE)
    s = c.create(fs=[f"ro:{SOURCE}:/opt/src", "ephemeral:/work"])
    for user in ("agent", "root"):
        c.execute(s, "cd /opt/src; echo x > file; : > new; rm file; mv file g; chmod 777 file; touch file; ln file h; mkdir d; "
                     "truncate -s 0 sub/file; setfattr -n user.x -v 1 file", user=user)
    for path in ("/opt/src/file", "/opt/src/sub/file", "/opt/src/sub", "/opt/src/new", "/usr/bin/env", "/etc/passwd", "/opt/src"):
        answers = file_verbs(c, s, path)
        for name in ("edit", "write", "tar in", "copy in", "mkdir", "move", "delete"):
            if name in answers:
                check(400 <= answers[name].status < 500 or path in ("/etc/passwd",), f"{name} {path}: {answers[name]}")
    same(digest(SOURCE), before, "the source")
    check(os.path.exists("/usr/bin/env") and os.path.exists("/etc/passwd"), "the host's own files")


@row("FSX-12", "paths of the host that nobody may mount: of the daemon, /proc, /sys, /dev, by link and by '..'")
def _(api):
    c, d = api.client, api.daemon
    links = pathlib.Path("/run/links")
    links.mkdir(exist_ok=True)
    goals = [d.state, d.run, d.run / "sb", "/proc", "/proc/1", "/sys", "/dev"]
    for i, goal in enumerate(goals):
        with contextlib.suppress(FileExistsError):
            (links / str(i)).symlink_to(goal)
        for path in (str(goal), f"/run/links/{i}", f"/run/../{goal}", f"/run/links/../{str(goal).lstrip('/')}", f"/{goal}/."):
            for kind in ("ro", "overlay"):
                answer = c.post("/v1/sandboxes", {"fs": [{"kind": kind, "src": path, "at": "/mnt"}]})
                if answer.status == 201:
                    seen = c.execute(answer.json, "ls -a /mnt | head -20")
                    check(False, f"{kind} of {path} is mounted: {seen['stdout']!r}, OPEN")
                check(answer.status in (400, 403, 404), f"{kind} {path}: {answer}")
    shutil.rmtree(links)


@row("FSX-14", "names of 255 and 256 bytes, paths of 4095 and 4096, forty links and more")
def _(api):
    c = api.client
    s = c.create()
    for n, statuses in ((255, (200, 201)), (256, (400, 404, 413, 414))):
        answer = c.put(c.file(s, "/work/" + "n" * n), b"x")
        check(answer.status in statuses, f"a name of {n}: {answer}")
    same(c.get(c.file(s, "/work/" + "n" * 255)).body, b"x", "255 back")
    folder = "/work/" + "/".join(["d" * 200] * 19)
    for n in (4094, 4095, 4096, 5000):
        path = folder + "/" + "e" * (n - len(folder) - 1) if n - len(folder) - 1 < 255 else \
            folder + "/" + "e" * 200 + "/" + "f" * min(254, n - len(folder) - 202)
        answer = c.put(c.file(s, path), str(len(path)).encode())
        check(answer.status in (200, 201, 400, 413, 414), f"a path of {len(path)}: {answer}")
        if answer.status < 300:
            same(c.get(c.file(s, path)).body, str(len(path)).encode(), "back")
    c.execute(s, "cd /work; echo end > l0; for i in $(seq 1 60); do ln -s l$((i-1)) l$i; done")
    for n, is_well in ((1, True), (30, True), (45, False), (60, False)):
        answer = c.get(c.file(s, f"/work/l{n}"))
        check((answer.status == 200 and answer.body == b"end\n") if is_well else 400 <= answer.status < 500, f"{n} links: {answer}")
    deep = c.execute(s, ["python3", "-c", "import os\nfor i in range(2000):\n os.mkdir('x'*50); os.chdir('x'*50)"], cwd="/work")
    same(deep["exit_code"], 0, "2,000 levels")
    for answer in (c.get(c.file(s, "/work") + "?list&depth=64"), c.post(f"/v1/sandboxes/{s['id']}/glob", {"pattern": "**/y"}),
                   c.get(f"/v1/sandboxes/{s['id']}/archive?path=/work"), c.call("DELETE", c.file(s, "/work/" + "x" * 50) + "?recursive")):
        check(answer.status < 500, f"2,000 levels: {answer}")
    # Landlock asks every folder above for each name: what we do for a caller must not cost the square of the depth.
    levels, begin = 6_000, time.monotonic()
    deep = c.execute(s, ["python3", "-c", f"import os\nfor i in range({levels}):\n os.mkdir('d'); os.chdir('d')"], cwd="/work", timeout="300s")
    same(deep["exit_code"], 0, f"{levels} levels")
    made = time.monotonic() - begin
    same(c.call("DELETE", c.file(s, "/work/d") + "?recursive").json["deleted"], levels, "all of them")
    took = time.monotonic() - begin - made
    check(took < made, f"{levels} levels were made in {made:.1f} s, and deleted in {took:.1f} s")


NAMES = [b"new\nline", b"\x1b[31m", b"\xff\xfe", b"\xc3\x28", "\u202ertl".encode(), b"-rf", b"%41", b"%", b'"quo"te', b"a'b", b"\xc2\xa0",
         b" lead", b"trail ", b"tab\t", b"back\\slash", b"semi;colon", b"#hash", b"?query", b"a+b", b"&", b"*", b"[x]", b"{a,b}", b"~",
         b"$HOME", b"`x`", b"..x", b"...", b"\x7f", b"\x80", b"a\rb", "e\u0301".encode(), "\u00e9".encode(), b"CON", b".hidden", b"@"]


@row("FSX-15", "names that are hard to carry: exact in write, list, read, tar, delete; JSON stays JSON")
def _(api):
    c, chooser = api.client, random.Random(15)
    s = c.create()
    names = NAMES + [bytes(chooser.choice([b for b in range(1, 256) if b != 47]) for _ in range(chooser.randrange(1, 60)))
                     for _ in range(150)]
    names = [n for n in dict.fromkeys(names) if n not in (b".", b"..")]
    for name in names:
        answer = c.put(f"/v1/sandboxes/{s['id']}/files/work/n/" + quote_bytes(name), b"<" + name + b">")
        check(answer.status in (200, 201), f"write {name!r}: {answer}")
    listed = c.ok("GET", f"/v1/sandboxes/{s['id']}/files/work/n?list&hidden&max=1000")["entries"]
    found = {lib.base64.b64decode(e["path_base64"]).rsplit(b"/", 1)[-1] if "path_base64" in e
             else e["path"].encode().rsplit(b"/", 1)[-1] for e in listed}
    same(found, set(names), "names in the list")
    archive = tarfile.open(fileobj=io.BytesIO(c.get(f"/v1/sandboxes/{s['id']}/archive?path=/work/n").body), errors="surrogateescape")
    packed = {m.name.encode(errors="surrogateescape").rsplit(b"/", 1)[-1] for m in archive if m.isreg()}
    check(packed == set(names), f"names in the archive: {sorted(packed ^ set(names))[:6]}")
    for name in names:
        target = f"/v1/sandboxes/{s['id']}/files/work/n/" + quote_bytes(name)
        same(c.get(target).body, b"<" + name + b">", f"read {name!r}")
        check(c.delete(target).status == 200, f"delete {name!r}")
    same(c.ok("GET", f"/v1/sandboxes/{s['id']}/files/work/n?list&hidden")["entries"], [], "all deleted")


def quote_bytes(name):
    return lib.urllib.parse.quote_from_bytes(name, safe="")


@row("FSX-19", "folders without rights, immutable ones, a busy tree: removal works all the same")
def _(api):
    c, d = api.client, api.daemon
    for user in ("agent", "root"):
        s = c.create()
        c.execute(s, "cd /work; mkdir -p a/b/c; echo x > a/b/c/f; chmod 000 a/b/c a/b a; mkdir i; chattr +i i 2>/dev/null; "
                     "chmod 000 /work /tmp; sleep 60 & exec 9>/tmp/x; sleep 60", user=user, wait="100ms")
        c.remove(s)
    wait_until(lambda: not d.monitors() and not list((d.run / "sb").glob("*.sock")), 5, "all is removed")


@row("FSX-21", "an upload cut anywhere; several at once: old or new, never a part")
def _(api):
    c, d, chooser = api.client, api.daemon, random.Random(21)
    s = c.create()
    old, sizes = b"old" * 1000, (0, 1, 100, 4095, 4096, 65535, 65536, 65537, 300_000, 1_000_000)
    for i in range(60):
        c.put(c.file(s, "/work/f"), old)
        size = chooser.choice(sizes)
        data = bytes([65 + i % 26]) * size
        cut = chooser.choice([0, 1, size // 2, max(0, size - 1), size])
        with connect(d.socket) as sock:
            with contextlib.suppress(OSError):
                if i % 2:
                    sock.sendall(f"PUT {c.file(s, '/work/f')} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode())
                    sock.sendall(data[:cut])
                else:
                    sock.sendall(f"PUT {c.file(s, '/work/f')} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
                    sock.sendall(f"{size:x}\r\n".encode() + data[:cut] if size else b"")
        now = c.get(c.file(s, "/work/f")).body
        check(now in (old, data), f"cut after {cut} of {size}: {len(now)} bytes are there")
    left = c.ok("GET", c.file(s, "/work") + "?list&hidden")["entries"]
    wait_until(lambda: [e["path"].rsplit("/", 1)[-1] for e in c.ok("GET", c.file(s, "/work") + "?list&hidden")["entries"]] == ["f"], 5,
               f"no part stays behind: {[e['path'] for e in left]}")
    seen, wrong = set(), []
    valid = {bytes([97 + i]) * 200_000 for i in range(4)} | {old}

    def writer(i):
        mine = d.client()
        for _ in range(6):
            mine.put(mine.file(s, "/work/g"), bytes([97 + i]) * 200_000)
        mine.close()
    c.put(c.file(s, "/work/g"), old)
    threads = [threading.Thread(target=writer, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        body = c.get(c.file(s, "/work/g")).body
        seen.add(body[:1])
        if body not in valid:
            wrong.append(len(body))
    check(not wrong, f"mixed contents of {wrong[:5]} bytes")


def read_to(sock, *words, seconds=lib.PATIENCE):
    """All that comes until one of the words is in it; nothing, when none of them comes."""
    deadline, got = time.monotonic() + seconds, b""
    with contextlib.suppress(TimeoutError):
        while (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            piece = sock.recv(1 << 20)
            got += piece
            if not piece or any(w in got[-len(piece) - 100:] for w in words):
                break
    return got if any(w in got for w in words) else b""


@row("FSX-22", "watch during a storm: bounded memory, an overflow that says so, and it goes on afterwards")
def _(api):
    c, d = api.client, api.daemon
    s = c.create()
    with connect(d.socket) as sock:
        sock.sendall(f"GET {c.file(s, '/work')}?watch&recursive HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        before = lib.memory_kib(d.pid)
        c.execute(s, ["python3", "-c", "import os, time\nend = time.time() + 1.5\ni = 0\nwhile time.time() < end:\n"
                      " n = f'/work/f{i % 5000}'\n open(n, 'w').close(); os.rename(n, n + 'r'); i += 1\n"])
        grown = lib.memory_kib(d.pid) - before  # nobody has read a byte so far
        check(grown < 16 << 10, f"the daemon grew by {grown} KiB")
        c.put(c.file(s, "/work/last-of-all"), b"")
        storm = read_to(sock, b"last-of-all", b'"overflow"')
        check(storm, "the last is missing and nobody says so")
        rest = b""
        for i in range(40):  # what comes while it is told of an overflow may be lost with it
            c.put(c.file(s, f"/work/afterwards-{i}"), b"")
            rest += read_to(sock, b"afterwards-", seconds=1)
            if b"afterwards-" in rest:
                break
        events, is_overflow = (storm + rest).count(b'"event"'), b'"overflow"' in storm + rest
        check(b"afterwards-" in rest, f"after {events} events and an overflow ({is_overflow}) it is silent")
    return f"{events} events read, overflow told: {is_overflow}"


@row("FSX-26", "files of other users and without rights: as `cat` inside sees them")
def _(api):
    c = api.client
    s = c.create()
    c.execute(s, "cd /work; echo x > mine; chmod 000 mine; mkdir dir; echo y > dir/f; chmod 000 dir; echo z > open; chmod 644 open")
    c.execute(s, "cd /tmp; echo root > root; chmod 600 root; mkdir rdir; echo q > rdir/f; chmod 700 rdir", user="root")
    for path in ("/work/mine", "/work/dir/f", "/work/open", "/tmp/root", "/tmp/rdir/f", "/etc/shadow", "/etc/passwd", "/root/x",
                 "/proc/1/environ", "/proc/1/mem", "/root/.bashrc", "/etc/ssl/private/x"):
        inside = c.execute(s, ["cat", path])
        outside = c.get(c.file(s, path))
        same(outside.status == 200, inside["exit_code"] == 0, f"{path}: cat {inside['stderr']!r}, API {outside}")
        if "ermission denied" in inside["stderr"]:
            same(outside.code, "permission_denied", path)
    for path in ("/etc/passwd", "/tmp/root", "/usr/x", "/x"):
        inside = c.execute(s, ["sh", "-c", f"echo >> {path}"])["exit_code"] == 0
        answer = c.put(c.file(s, path), b"")
        check(inside or answer.status >= 400, f"write {path}: {answer}")


@row("FSX-28", "grep: catastrophic patterns, binary, huge and sparse files, loops of links; it can be left")
def _(api):
    c, d = api.client, api.daemon
    s = c.create()
    c.execute(s, "cd /work; head -c 100000 /dev/zero | tr '\\0' a > a; head -c 3000000 /dev/urandom > bin; truncate -s 10G sparse; "
                 "ln -s . loop; ln -s .. up; mkdir d; ln -s ../d d/d; yes 'some line of text' | head -c 20000000 > long")
    worst = []
    for pattern in ("(a+)+$", "(a|a)*b", "(.*)*x", "((a{1,50}){1,50}){1,50}b", "(?:a?){50}a{50}", "^(([a-z])+.)+[A-Z]([a-z])+$", "(",
                    "a{99999}", "\\", "[", "(?R)", "(?{code})", "x" * 20000, "zzz", "\\x00"):
        begin = time.monotonic()
        answer = d.client().post(f"/v1/sandboxes/{s['id']}/grep", {"pattern": pattern, "path": "/work"})
        seconds = time.monotonic() - begin
        worst.append(seconds)
        check(answer.status < 500 and seconds < 100, f"{pattern[:30]!r}: {answer.status} after {seconds:.1f} s")
        begin = time.monotonic()
        same(c.get("/v1/health").status, 200, "others")
        check(time.monotonic() - begin < 8, "others wait for a search")
    with connect(d.socket) as sock:
        body = json.dumps({"pattern": "(.*)*x", "path": "/"}).encode()
        sock.sendall(f"POST /v1/sandboxes/{s['id']}/grep HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        time.sleep(0.1)
    begin = time.monotonic()
    same(c.get(c.file(s, "/work/a") + "?stat").status, 200, "after one that was left")
    check(time.monotonic() - begin < 8, "the worker of one that left is not freed")
    return f"the longest took {max(worst):.1f} s"


@row("FSX-29", "mode 06777, devices, owners, links and '..' in uploads and archives")
def _(api):
    c = api.client
    s = c.create()
    at = f"/v1/sandboxes/{s['id']}"
    for mode, want in (("06777", "777"), ("4755", "755"), ("7777", "777"), ("0644", "644"), ("000", "0"), ("177777", "777")):
        answer = c.put(c.file(s, f"/work/m{mode}") + f"?mode={mode}", b"x")
        if answer.status < 300:
            same(c.execute(s, ["stat", "-c", "%a %F", f"/work/m{mode}"])["stdout"], f"{want} regular file\n", mode)
        else:
            same(answer.status, 400, f"mode {mode}: {answer}")
    for mode in ("8", "-1", "0x1ff", "rwx", "", "99999999999999999999"):
        check(c.put(c.file(s, "/work/bad") + f"?mode={mode}", b"x").status in (200, 201, 400), f"mode {mode!r}")
    members = [("suid", tarfile.REGTYPE, b"#!/bin/sh\n", 0o6777), ("dev", tarfile.CHRTYPE, b"", 0o666), ("blk", tarfile.BLKTYPE, b"", 0o666),
               ("fifo", tarfile.FIFOTYPE, b"", 0o666), ("../up", tarfile.REGTYPE, b"OPEN", 0o666),
               ("/run/host/abs", tarfile.REGTYPE, b"OPEN", 0o666), ("link", tarfile.SYMTYPE, str(HOST), 0o777),
               ("link/new", tarfile.REGTYPE, b"OPEN", 0o666), ("hard", tarfile.LNKTYPE, "../../etc/passwd", 0o666),
               ("hard2", tarfile.LNKTYPE, str(HOST / "canary"), 0o666), ("ok", tarfile.REGTYPE, b"ok", 0o640),
               ("a/../../up2", tarfile.REGTYPE, b"OPEN", 0o666), ("x" * 300, tarfile.REGTYPE, b"long", 0o666)]
    for member in members:
        answer = c.put(f"{at}/archive?path=/work/t", tar_of(member, ("after", tarfile.REGTYPE, b"", 0o600)))
        check(answer.status < 500, f"{member[0][:40]} {member[1]!r}: {answer}")
    seen = c.execute(s, "cd /work/t; find . -perm /6000; find . -type c -o -type b; find /work /tmp / -maxdepth 1 -name 'up*'; "
                        "stat -c '%U %a' suid ok 2>&1")["stdout"]
    check("./suid\n" not in seen and "./dev" not in seen and "./blk" not in seen and "up" not in seen, f"inside: {seen!r}")
    whole = c.put(f"{at}/archive?path=/work/u", tar_of(*members))
    check(whole.status < 500, f"all at once: {whole}")
    for data in (b"", b"x" * 700, os.urandom(5000), tar_of(members[0])[:700], b"\0" * 2048):
        check(c.put(f"{at}/archive?path=/work/v", data).status < 500, f"an archive that is none: {data[:10]!r}")
