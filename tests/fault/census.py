"""census.py - what exists in the cell besides the suite itself, as a set of sentences.

What is in the set after a launch and was not before it is what the launch left behind. Any
process of the cell counts, whatever it is called and whoever it belongs to: nobody else is here.
"""
import contextlib
import fcntl
import os
import pathlib
import signal
import struct
import time

import cell

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
LOOP_GET_STATUS64 = 0x4C05
LOOP_INFO_BYTES = 232


def reap():
    """Orphans come to us, the first process of the cell. Only when no launch is being waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] > 0:
            pass
    except ChildProcessError:
        pass


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace")
    except OSError:
        return ""  # gone meanwhile


SERVERS = []  # functions that return pids of a daemon: they are no leftovers while it runs (chain.py)


def all_pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def pids(but=()):
    known = {os.getpid(), *but, *(pid for servers in SERVERS for pid in servers())}
    return [pid for pid in all_pids() if pid not in known]


def status_of(pid):
    lines = read(f"/proc/{pid}/status").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def describe(pid):
    status = status_of(pid)
    command = " ".join(read(f"/proc/{pid}/cmdline").replace("\0", " ").split())[:60] or f"({status.get('Name')})"
    inside = status.get("NSpid", "?").split()[1:]
    return f"process [{command}] {status.get('State')}" + (f", pid {inside[-1]} inside" if inside else "")


def namespaces(pid):
    found = set()
    for kind in NAMESPACES:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
        except OSError:
            pass  # gone meanwhile
    return found


def processes():
    reap()
    return {describe(pid) for pid in pids()}


def cgroups():
    return {f"cgroup {os.path.join(at, folder)}"
            for top in cell.hierarchies() for at, folders, _ in os.walk(top) for folder in folders}


def files():
    places = ["/run", "/run/caisson", "/tmp", *pathlib.Path("/tmp").glob("caisson-*"),
              *pathlib.Path("/run/chain").glob("*/run/sb")]
    return {f"file {entry.path}" for place in places if os.path.isdir(place)
            for entry in os.scandir(place) if entry.path != str(cell.NOTES)}


def loop_place(name):
    """Of a loop device: the file system that its file lies on, as /proc/self/mountinfo says it."""
    with contextlib.suppress(OSError), open(f"/dev/{name}", "rb") as f:
        device = struct.unpack_from("Q", fcntl.ioctl(f, LOOP_GET_STATUS64, bytes(LOOP_INFO_BYTES)))[0]
        return f"{os.major(device)}:{os.minor(device)}"
    return None


def loops():
    """Those of this cell: their files lie in its own memory (cell.enter), or on one of them."""
    mounts = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
    ours = {words[2] for words in mounts if words[-2] == "cell"}
    files = {p.parent.parent: read(p).strip() for p in pathlib.Path("/sys/block").glob("loop*/loop/backing_file")}
    found = set()
    for _ in range(2):  # a volume lies on a disk that is such a device itself
        for device, file in files.items():
            if loop_place(device.name) in ours:
                found.add(f"loop device {device.name} of {file}")
                ours.add(read(device / "dev").strip())
    return found


def take():
    """All of it. Mounts: those of the host side; a mount inside lives with its namespace."""
    found = processes()
    found |= {f"mount {line}" for line in read("/proc/self/mountinfo").splitlines()}
    found |= {f"namespace {n}" for pid in pids() for n in namespaces(pid) - namespaces("self")}
    return found | cgroups() | files() | loops()


def left(before, seconds):
    """What is there and was not before, if it does not go in so many seconds."""
    deadline = time.monotonic() + seconds
    found = take() - before
    while found and time.monotonic() < deadline:
        time.sleep(0.005)
        found = take() - before
    return found


def wait_empty(seconds):
    """Until no process is left. Returns those that are, and ends them: the next launch is not theirs."""
    deadline = time.monotonic() + seconds
    left = processes()
    while left and time.monotonic() < deadline:
        time.sleep(0.002)
        left = processes()
    while left and processes():
        kill_all()
        time.sleep(0.002)
    return left


def kill_all(but=()):
    for pid in pids(but):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
