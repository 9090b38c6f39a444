#!/usr/bin/env python3
"""What a sandbox shares with the host and with other sandboxes by the inodes of what it is shown: /usr, the root,
and `ro:` folders. Each attack has a control beside it that gets through. TAP.

    tests/api/shown.py          all (needs root)
    tests/api/shown.py live     those with the word in their title
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

import lib
from lib import SOURCE, USER_ID, Daemon, check, same, test, wait_until

PYTHON = "/usr/bin/python3"
MODES = (("root", None), ("rootless", USER_ID))
READ_LOCK = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
WRITE_LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)

# Programs that run inside, and as the control beside it. Each prints one word.
WATCH = """
import ctypes, os, select, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(os.O_CLOEXEC)
for path in sys.argv[2:]:
    if libc.inotify_add_watch(fd, path.encode(), 0xfff) < 0: sys.exit(path + os.strerror(ctypes.get_errno()))
print('watching', flush=True)
seen = b''
while select.select([fd], [], [], float(sys.argv[1]))[0]:
    seen += os.read(fd, 65536)
    if b'caisson-bell' in seen or b'uname' in seen: break
print('heard' if b'caisson-bell' in seen or b'uname' in seen else 'silent')
"""
CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    print('connected', s.recv(99).decode())
except OSError as e:
    print(type(e).__name__)
"""
FIFO = """
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
print('read', os.read(fd, 99).decode() if select.select([fd], [], [], 2)[0] else 'nothing')
"""
LOCK = """
import fcntl, os, sys
files = [open(p, 'rb') for p in sys.argv[2:]]
try:
    for f in files: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    for f in files: fcntl.lockf(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
    print('locked', flush=True)
except OSError as e:
    print(type(e).__name__, e.filename or '', flush=True)
if sys.argv[1] == 'hold': sys.stdin.read()
"""
LEASE = """
import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open(sys.argv[1], 'rb')
try:
    fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    print('leased', flush=True)
except OSError as e:
    print(e.strerror, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def acting(uid):
    """What connects meanwhile is that user to the daemon."""
    if uid is not None:
        os.setegid(uid)
        os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextlib.contextmanager
def daemon(name, uid, folder):
    """With a folder of the source that belongs to the daemon's user."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.chown(folder, uid or 0, uid or 0)
    d = Daemon(name, uid=uid).start()
    c = d.client()
    try:
        with acting(uid):
            c.connection.connect()
        yield d, c
        c.close()
        c.remove_all()
        d.wait_clean()
    finally:
        c.close()
        d.stop()


def own(path, uid, text="text\n", mode=0o644):
    path.write_text(text)
    os.chown(path, uid or 0, uid or 0)
    path.chmod(mode)
    return path


class Inside:
    """A command inside, whose output is waited for while it lives."""

    def __init__(self, c, box, program, *args, socket_path):
        self.stream = lib.Stream(socket_path, f"/v1/sandboxes/{lib.id_of(box)}/exec",
                                 {"cmd": [PYTHON, "-c", program, *map(str, args)], "stdin": True})
        self.out = b""

    def wait(self, word):
        while word.encode() not in self.out:
            letter, data = self.stream.frame()
            check(letter != "X", lambda: f"it ended: {self.out} {data}")
            self.out += data if letter in "OE" else b""

    def end(self):
        with contextlib.suppress(OSError):
            self.stream.say("Z")
        rest = self.stream.rest()
        self.stream.close()
        return (self.out + rest["O"] + rest["E"]).decode()


class Outside:
    """The same on the host, as the control."""

    def __init__(self, program, *args, uid=None):
        extra = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.process = subprocess.Popen([PYTHON, "-c", program, *map(str, args)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **extra)
        self.out = ""

    def wait(self, word):
        while word not in self.out:
            line = self.process.stdout.readline()
            check(line, f"it ended: {self.out}")
            self.out += line

    def end(self):
        rest, _ = self.process.communicate()
        return self.out + rest


def word(c, box, program, *args):
    done = c.execute(box, [PYTHON, "-c", program, *map(str, args)])
    return done["stdout"].strip() + done["stderr"].strip()


for mode, user in MODES:
    @test(f"{mode}: nobody inside hears what the host opens in /usr")
    def _(_api, mode=mode, user=user):
        with daemon("watch-" + mode, user, SOURCE / "watch") as (d, c):
            box = c.create()
            inside = Inside(c, box, WATCH, 3, "/usr/bin", "/", "/etc", socket_path=d.socket)
            control = Outside(WATCH, 60, "/usr/bin", uid=user)
            inside.wait("watching")
            control.wait("watching")
            subprocess.run(["/usr/bin/uname"], check=True, stdout=subprocess.DEVNULL)
            check(control.end().endswith("heard\n"), "control: the host hears it")
            check(inside.end().endswith("silent\n"), "inside")

    @test(f"{mode}: two sandboxes share no watch and no lock in /usr, the root and /sys")
    def _(_api, mode=mode, user=user):
        files = ("/usr/bin/env", "/etc/passwd", "/sys/devices/system/cpu/online", "/etc/resolv.conf")
        with daemon("pair-" + mode, user, SOURCE / "pair") as (d, c):
            a, b = c.create(), c.create()
            holder = Inside(c, a, LOCK, "hold", *files, socket_path=d.socket)
            holder.wait("locked")
            same(word(c, b, LOCK, "try", *files), "locked", "the other sandbox")
            same(word(c, a, LOCK, "try", *files)[:15], "BlockingIOError", "control: the same sandbox")
            holder.end()
            listener = Inside(c, a, WATCH, 3, "/usr/bin", "/etc", "/", socket_path=d.socket)
            listener.wait("watching")
            c.execute(b, ["sh", "-c", "uname; cat /etc/passwd; ls / /etc"])
            check(listener.end().endswith("silent\n"), "the other sandbox is heard")

    @test(f"{mode}: a socket and a FIFO of the host in a `ro:` folder lead nowhere")
    def _(_api, mode=mode, user=user):
        folder = SOURCE / "ends"
        with daemon("ends-" + mode, user, folder) as (d, c):
            server = socket.socket(socket.AF_UNIX)
            server.bind(str(folder / "agent.sock"))
            os.chown(folder / "agent.sock", user or 0, user or 0)
            (folder / "agent.sock").chmod(0o666)  # whoever reaches it may: the inode has to stop him
            server.listen()
            os.mkfifo(folder / "fifo")
            (folder / "fifo").chmod(0o666)
            os.chown(folder / "fifo", user or 0, user or 0)
            box = c.create(fs=f"ro:{folder}:/mnt/x")

            def answer():
                with contextlib.suppress(OSError):
                    while True:
                        s, _ = server.accept()
                        s.sendall(b"of-the-host")
                        s.close()
            threading.Thread(target=answer, daemon=True).start()
            control = Outside(CONNECT, folder / "agent.sock", uid=user)
            same(control.end(), "connected of-the-host\n", "control: its owner")
            same(word(c, box, CONNECT, "/mnt/x/agent.sock"), "ConnectionRefusedError", "inside")
            server.close()
            for reader, expected in ((lambda: word(c, box, FIFO, "/mnt/x/fifo"), "read nothing"),
                                     (lambda: Outside(FIFO, folder / "fifo", uid=user).end().strip(), "read secret")):
                writer = os.open(folder / "fifo", os.O_RDWR | os.O_NONBLOCK)
                os.write(writer, b"secret")
                same(reader(), expected, "the FIFO")
                os.close(writer)

    @test(f"{mode}: locks and leases that are taken inside a `ro:` folder do not reach the host")
    def _(_api, mode=mode, user=user):
        folder = SOURCE / "locks"
        with daemon("locks-" + mode, user, folder) as (d, c):
            paths = [own(folder / "db", user), own(folder / "single", user)]
            box = c.create(fs=[f"ro:{folder}:/mnt/x", f"ro:{folder}/single:/mnt/single"])
            names = ("/mnt/x/db", "/mnt/single")
            holder = Inside(c, box, LOCK, "hold", *names, socket_path=d.socket)
            holder.wait("locked")
            for path in paths:
                with open(path, "r+b") as f:
                    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    fcntl.fcntl(f, fcntl.F_SETLK, WRITE_LOCK)
            holder.end()
            control = Outside(LOCK, "hold", *paths, uid=user)
            control.wait("locked")
            for path in paths:
                with open(path, "r+b") as f, contextlib.suppress(BlockingIOError):
                    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    check(False, "control: a lock of the host's is met")
            control.end()
            lease(c, box, d, folder / "db", "/mnt/x/db", user)


def lease(c, box, d, path, name, user):
    holder = Inside(c, box, LEASE, name, socket_path=d.socket)
    holder.wait("Invalid argument")
    control = Outside(LEASE, path, uid=user)
    control.wait("leased")
    with contextlib.suppress(BlockingIOError):
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        check(False, "control: a lease of the host's is met")
    control.end()
    os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))
    holder.end()


def change(folder, user):
    """All that a host may do to a folder: by rename, in place, removed, new, and a folder made anew."""
    own(folder / "new.tmp", user, "two\n").rename(folder / "renamed")
    with open(folder / "inplace", "w") as f:
        f.write("two\n")
    (folder / "gone").unlink()
    own(folder / "new", user, "new\n")
    shutil.rmtree(folder / "d")
    (folder / "d").mkdir()
    os.chown(folder / "d", user or 0, user or 0)
    own(folder / "d/x", user, "x\n")


LOOK = "cd /mnt/x; cat renamed inplace new d/x 2>&1; ls; test -e gone && echo old"
FRESH = "two\ntwo\nnew\nx\nd\ninplace\nnew\nrenamed\n"
WAIT = (f"look() {{ {LOOK}; }}; look >/dev/null; echo ready; i=0; while [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); "
        f"[ \"$(look)\" = \"$WANTED\" ] && echo fresh && exit; done; look")

for mode, user in MODES:
    @test(f"{mode}: live: what the host changes in a `ro:` folder is there for the next command, and for one that runs")
    def _(_api, mode=mode, user=user):
        folder = SOURCE / "live"
        with daemon("live-" + mode, user, folder) as (d, c):
            for is_running in (False, True):
                for name in ("renamed", "inplace", "gone"):
                    own(folder / name, user, "one\n")
                (folder / "d").mkdir(exist_ok=True)
                os.chown(folder / "d", user or 0, user or 0)
                (folder / "d/x").unlink(missing_ok=True)
                (folder / "new").unlink(missing_ok=True)
                box = c.create(fs=f"ro:{folder}:/mnt/x")
                before = c.execute(box, LOOK)["stdout"]
                check("one\none\n" in before and "old" in before and "new: No such" in before, before)
                if not is_running:
                    change(folder, user)
                    same(c.execute(box, LOOK)["stdout"], FRESH, "the next command")
                    continue
                runs = lib.Stream(d.socket, f"/v1/sandboxes/{lib.id_of(box)}/exec",
                                  {"cmd": WAIT, "env": {"WANTED": FRESH.strip()}})
                same(runs.frame()[0] in "SO", True, "it runs")
                time.sleep(0.3)
                change(folder, user)
                out = runs.rest()["O"].decode()
                check(out.endswith("fresh\n"), lambda out=out: out)


for mode, user in MODES:
    @test(f"{mode}: a `ro:` folder with a mount of the host's below it, which no overlay can show, is there and read-only")
    def _(_api, mode=mode, user=user):
        folder = SOURCE / "below"
        with daemon("below-" + mode, user, folder) as (_, c):
            own(folder / "file", user, "above\n")
            (folder / "m").mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0777", "below", folder / "m"], check=True)
            try:
                own(folder / "m/inner", user, "below\n")
                box = c.create(fs=f"ro:{folder}:/mnt/x")
                done = c.execute(box, "cat /mnt/x/file; for f in file new m/inner m/new; do (echo x >/mnt/x/$f) 2>/dev/null && echo $f; done; :")
                same(done["stdout"], "above\n", "what is read, and what could be written")
                same([(folder / f).read_text() for f in ("file", "m/inner")], ["above\n", "below\n"], "the host's files")
                same(sorted(p.name for p in folder.rglob("*")), ["file", "inner", "m"], "the host's names")
            finally:
                subprocess.run(["umount", folder / "m"], check=True)


@test("inode numbers in a `ro:` folder are the host's: git finds its index fresh")
def _(_api):
    folder = SOURCE / "numbers"
    with daemon("numbers", None, folder) as (_, c):
        own(folder / "file", None)
        box = c.create(fs=f"ro:{folder}:/mnt/x")
        same(int(c.execute(box, "stat -c %i /mnt/x/file")["stdout"]), os.stat(folder / "file").st_ino, "the number")


@test("nodes of /dev cannot be touched, and can be written")
def _(_api):
    with daemon("nodes", None, SOURCE / "nodes") as (_, c):
        box = c.create()
        before = os.stat("/dev/null").st_mtime_ns
        done = c.execute(box, "python3 -c 'import os; os.utime(\"/dev/null\")'; echo x >/dev/null && "
                              "head -c 4 /dev/zero | wc -c")
        same(done["stdout"], "4\n", done)
        same(os.stat("/dev/null").st_mtime_ns, before, "its time")


@test("two sandboxes, and the host, do not meet at the nodes of /dev")
def _(_api):
    nodes = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")    # tty: there is none to open
    with daemon("meet", None, SOURCE / "meet") as (d, c):
        a, b = c.create(), c.create()
        holder = Inside(c, a, LOCK, "hold", *nodes, socket_path=d.socket)
        holder.wait("locked")
        same(word(c, b, LOCK, "try", *nodes), "locked", "the other sandbox")
        host = Outside(LOCK, "try", *nodes)
        host.wait("locked")
        same(word(c, a, LOCK, "try", *nodes)[:15], "BlockingIOError", "control: the same sandbox")
        host.end()
        holder.end()


@test("a set-id file of root's in a workspace is out of every user's reach, and an open store is not served", own=True)
def _(_api):
    with daemon("setid", None, SOURCE / "setid") as (d, c):
        c.ok("PUT", "/v1/workspaces/w", {})
        box = c.create({"workspace": "w", "fs": "workspace:/work", "user": "root", "profile": "rootful"})
        done = c.execute(box, "cp /bin/true /work/tool && chmod 4755 /work/tool && stat -c '%u %a' /work/tool")
        same(done["stdout"], "0 4755\n", done)
        [found] = d.state.glob("trees/*/d/tool")
        same((found.stat().st_uid, found.stat().st_mode & 0o7777), (0, 0o4755), "control: on disk it is what it says")
        with acting(USER_ID):
            try:
                os.stat(found)
                check(False, "a user reaches it")
            except PermissionError:
                pass
        c.remove(box)
    (d.state / "trees").chmod(0o755)
    d.spawn()
    check(d.process.wait(lib.PATIENCE) != 0 and "trees belongs to somebody else or is open to others" in d.tail(), d.tail())
    (d.state / "trees").chmod(0o700)


INSTANCES = """
import ctypes, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
fds = []
while len(fds) < int(sys.argv[1]) and (fd := libc.inotify_init1(os.O_CLOEXEC)) >= 0: fds.append(fd)
print(len(fds), os.strerror(ctypes.get_errno()) if len(fds) < int(sys.argv[1]) else 'all', flush=True)
sys.stdin.read()
"""


@test("rootless: one sandbox does not use up its user's inotify instances")
def _(_api):
    most = int(pathlib.Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    with daemon("instances", USER_ID, SOURCE / "instances") as (d, c):
        greedy, modest = c.create(), c.create()
        holder = Inside(c, greedy, INSTANCES, most, socket_path=d.socket)
        holder.wait("\n")
        same(holder.out.decode(), f"{most // 4} Too many open files\n", "a quarter is what one takes")
        for what, got in (("another sandbox", word(c, modest, INSTANCES, 8)),
                          ("the user", Outside(INSTANCES, 8, uid=USER_ID).end().strip())):
            same(got, "8 all", what)
        done = c.execute(greedy, "echo 1000 >/proc/sys/user/max_inotify_instances")
        check(done["exit_code"] != 0, "nobody inside raises it")
        holder.end()


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
