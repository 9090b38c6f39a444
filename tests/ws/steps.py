"""steps.py - a process is stopped at its n-th step, and killed there; or the whole host loses its power.

A step is a call by which a process changes something that others see: a file, a mount, a message. It
is counted from outside with ptrace(2), so the product is the product. Before a step, or after it.

Power: the file below the loop device has what reached the disk. A copy of it, taken while everybody
stands still, is what the next boot finds; all that was only in memory is gone with the processes.
"""
import contextlib
import ctypes
import os
import pathlib
import signal
import sqlite3
import subprocess
import time
import uuid

from place import IMAGE, lib, same, wait_until

WALL = 0x40000000
SEIZE, INTERRUPT, SYSCALL, SYSCALL_INFO, EVENT_MESSAGE = 0x4206, 0x4207, 24, 0x420e, 0x4201
SYSGOOD, TRACE_FORKS = 1, 2 | 4 | 8
EVENT_FORKS, EVENT_STOP = (1, 2, 3), 128
O_CREAT = 0o100
BOOT_ID = pathlib.Path("/proc/sys/kernel/random/boot_id")
COPY = IMAGE.with_name("disk.copy")
PIECE = 1 << 20

# x86-64; all others only look.
CALLS = {1: "write", 18: "pwrite", 40: "sendfile", 44: "sendto", 46: "sendmsg", 56: "clone", 59: "execve", 74: "fsync",
         75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 87: "unlink", 91: "fchmod", 93: "fchown",
         165: "mount", 166: "umount", 188: "setxattr", 189: "lsetxattr", 190: "fsetxattr", 199: "fremovexattr",
         257: "creat", 258: "mkdir", 259: "mknod", 260: "fchownat", 263: "unlinkat", 265: "link", 266: "symlink",
         268: "fchmodat", 280: "utimens", 285: "fallocate", 296: "pwritev", 306: "syncfs", 316: "renameat2",
         326: "copy_file_range", 328: "pwritev2", 429: "move_mount", 432: "fsmount", 435: "clone3",
         442: "mount_setattr", 452: "fchmodat2"}

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Call(ctypes.Structure):
    """struct ptrace_syscall_info"""
    _fields_ = [("op", ctypes.c_uint8), ("pad", ctypes.c_uint8 * 3), ("arch", ctypes.c_uint32), ("ip", ctypes.c_uint64),
                ("sp", ctypes.c_uint64), ("nr", ctypes.c_uint64), ("args", ctypes.c_uint64 * 6)]


def threads(pid):
    try:
        return [int(t) for t in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


class Tracer:
    """Every thread of a process; with `follows`, its children instead of itself. Of one thread of ours."""

    def __init__(self, pid, follows=False):
        self.pid, self.follows = pid, follows
        self.names = []   # of the steps seen
        self.entered = {}  # tid -> name of the step it is in
        self.tids = set()
        for tid in threads(pid):
            self.ask(SEIZE, tid, 0, SYSGOOD | TRACE_FORKS if follows else SYSGOOD | 8)
            self.ask(INTERRUPT, tid)
            self.tids.add(tid)

    def ask(self, what, tid, address=0, data=0):
        return libc.ptrace(what, tid, address, data)

    def go(self, tid, sig=0):
        self.ask(SYSCALL, tid, 0, sig)

    def call_of(self, tid):
        """("enter" or "leave", the name of a step) or None."""
        info = Call()
        self.ask(SYSCALL_INFO, tid, ctypes.sizeof(info), ctypes.addressof(info))
        if info.op == 2:
            name = self.entered.pop(tid, None)
            return name and ("after", name)
        name = CALLS.get(info.nr) if info.op == 1 else None
        if not name or (name == "creat" and not info.args[2] & O_CREAT) or (self.follows and tid == self.pid):
            return None
        self.entered[tid] = name
        return "before", name

    def stopped(self, tid, status):
        """One stop. Returns the call if it stands at a step; everybody else goes on."""
        event, sig = status >> 16, os.WSTOPSIG(status)
        if sig == signal.SIGTRAP | 0x80:
            call = self.call_of(tid)
            if call:
                return call
            self.go(tid)
        elif event in EVENT_FORKS:
            child = ctypes.c_ulong()
            self.ask(EVENT_MESSAGE, tid, 0, ctypes.addressof(child))
            self.tids.add(child.value)
            self.go(tid)
        else:
            self.go(tid, 0 if event or sig == signal.SIGTRAP else sig)
        return None

    def look(self):
        """One look at all of them: (tid, when, name) of who stands at a step, or None."""
        for tid in list(self.tids):
            try:
                pid, status = os.waitpid(tid, os.WNOHANG | WALL)
            except ChildProcessError:
                pid, status = tid, 0
            if pid == 0:
                continue
            if not os.WIFSTOPPED(status):
                self.tids.discard(tid)
                continue
            call = self.stopped(tid, status)
            if call:
                return tid, *call
        return None

    def run(self, target, is_over, seconds=100):
        """Until somebody stands at step `target` = (number, "before" or "after"); True: he still does."""
        deadline = time.monotonic() + seconds
        while self.tids and time.monotonic() < deadline:
            found = self.look()
            if not found:
                if is_over():
                    return False
                time.sleep(0.0002)
                continue
            tid, when, name = found
            if when == "before":
                self.names.append(name)
            if target and (len(self.names) - 1, when) == target:
                self.victim = tid
                return True
            self.go(tid)
        return False

    def kill(self):
        """Whoever it is about; the kernel forgets the call that he stands before."""
        pids = {self.pid} if not self.follows else {t for t in self.tids if t != self.pid}
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + lib.PATIENCE
        while (left := [t for t in self.tids if t in pids or not self.follows]) and time.monotonic() < deadline:
            for tid in left:
                try:
                    pid, status = os.waitpid(tid, os.WNOHANG | WALL)
                except ChildProcessError:
                    self.tids.discard(tid)
                    continue
                if pid and not os.WIFSTOPPED(status):
                    self.tids.discard(tid)
            time.sleep(0.001)
        self.release()

    def release(self):
        """Who lives is let go; he has to stand for that."""
        for tid in list(self.tids):
            self.ask(INTERRUPT, tid)
        deadline = time.monotonic() + lib.PATIENCE
        while self.tids and time.monotonic() < deadline:
            for tid in list(self.tids):
                try:
                    pid, status = os.waitpid(tid, os.WNOHANG | WALL)
                except ChildProcessError:
                    pid, status = tid, 0
                if pid == 0:
                    continue
                if os.WIFSTOPPED(status):
                    self.ask(17, tid)
                self.tids.discard(tid)
            time.sleep(0.001)


# ---- power -----------------------------------------------------------------------------------

def copy_image():
    """What the disk has. Again until nothing changed meanwhile: so it is one moment."""
    while True:
        pieces = {}
        with open(IMAGE, "rb") as f, open(COPY, "wb") as to:
            to.truncate(os.fstat(f.fileno()).st_size)
            at = 0
            with contextlib.suppress(OSError):  # ENXIO: no more data
                while True:
                    at = os.lseek(f.fileno(), at, os.SEEK_DATA) // PIECE * PIECE
                    pieces[at] = os.pread(f.fileno(), PIECE, at)
                    os.pwrite(to.fileno(), pieces[at], at)
                    at += PIECE
            if all(os.pread(f.fileno(), PIECE, at) == data for at, data in pieces.items()):
                return


def stand_still():
    for pid in lib.census.pids():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)


def remove_cgroups():
    for top in lib.cell.hierarchies():
        for folder, _, _ in os.walk(top, topdown=False):
            if folder != str(top):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


def mount_disk():
    subprocess.run(["mount", "-o", "loop,commit=1", IMAGE, lib.HOME], check=True)


def rename_boot(path, now, other):
    db = sqlite3.connect(path)
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for column in db.execute(f"PRAGMA table_info({table})").fetchall():
            db.execute(f"UPDATE {table} SET {column[1]} = replace({column[1]}, ?, ?) WHERE {column[1]} LIKE ?",
                       (now, other, f"%{now}%"))
    db.commit()


def new_boot(daemon):
    """The kernel is another one than the records say. Its id cannot be changed, so they are."""
    pid = os.fork()
    if pid == 0:  # who ends so does not close: the log of the store stays
        status = 1
        with contextlib.suppress(BaseException):
            rename_boot(daemon.state / "caisson.db", BOOT_ID.read_text().strip(), str(uuid.uuid4()))
            status = 0
        os._exit(status)
    same(os.waitpid(pid, 0)[1], 0, "the records of the store")


def lose_power(daemon):
    """All processes end, the disk is what it was at this moment, and nothing of /run is left."""
    stand_still()
    copy_image()
    wait_until(lambda: (lib.census.kill_all(), lib.census.reap(), not lib.census.pids())[2], 10, "all end")
    daemon.process.wait()
    wait_until(lambda: subprocess.run(["umount", lib.HOME], stderr=subprocess.DEVNULL, check=False).returncode == 0,
               10, "umount of the disk")
    wait_until(lambda: not any(str(IMAGE) in text for text in lib.census.loops()), 10, "its device is free")
    os.replace(COPY, IMAGE)
    mount_disk()
    subprocess.run(["rm", "-rf", daemon.run], check=True)
    remove_cgroups()
    new_boot(daemon)
