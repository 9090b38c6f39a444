"""cell.py - a place of its own for one suite of launches: what it finds there, they have left.

A cell has its own processes, mounts and network, its own /run and /tmp, and a folder of its own
at the top of every cgroup hierarchy. So other sandboxes of this machine do not disturb its
census, a gc in it touches nobody else, and when its first process ends the kernel ends the rest.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("caisson-test", "caisson-gate", "caisson-init", "caisson", "caisson-launcher-test", "caissond", "caisson-tree",
            "caisson-ledger", "caisson-cache", "caisson-hook", "caisson-vault")
BIN = pathlib.Path("/run/bin")
NOTES = pathlib.Path("/run/notes")  # anybody may write: counts and traces of test builds
PREFIX = "caisson-cell-"


def hierarchies():
    """Where each cgroup hierarchy of this host is mounted."""
    found = []
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        left, right = line.split(" - ")
        point, kind = left.split()[4], right.split()[0]
        if kind in ("cgroup", "cgroup2") and point not in found:
            found.append(point)
    return [pathlib.Path(p) for p in found]


# ---- outside ---------------------------------------------------------------------------------

def hand_down(folder):
    """v2: lets the folders in it have the controllers that it has itself."""
    for controller in words_of(folder / "cgroup.controllers"):
        with contextlib.suppress(OSError):  # some need more than to be asked
            (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def words_of(path):
    return path.read_text().split() if path.exists() else []


def make(name):
    for top in hierarchies():
        hand_down(top)
        folder = top / name
        folder.mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):  # v1: empty in a new folder
            if (top / "cgroup.clone_children").exists() and (folder / file).exists():
                (folder / file).write_text((top / file).read_text())


def remove(name):
    """Its cgroups, from the leaves up. The kernel takes a moment to let go of the last process."""
    deadline = time.monotonic() + 60
    for top in hierarchies():
        for folder, _, _ in os.walk(top / name, topdown=False):
            while os.path.isdir(folder):
                try:
                    os.rmdir(folder)
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)


def remove_stale():
    """Of runs that were killed."""
    names = {folder.name for top in hierarchies() for folder in top.glob(PREFIX + "*")}
    for name in names:
        if not os.path.exists("/proc/" + name[len(PREFIX):].split("-")[0]):
            remove(name)


class Cell:
    """Runs argv, with the name of the cell appended, as the first process of a new cell. Ends with us.

    `shares`: what it has with the host after all, an option of unshare(1)."""

    def __init__(self, argv, label, shares=(), **options):
        self.name = f"{PREFIX}{os.getpid()}-{label}"
        make(self.name)
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid",
             "--fork", "--kill-child", "--mount-proc", *(o for o in ("--net", "--ipc") if o not in shares), *argv,
             self.name], **options)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        remove(self.name)


# ---- inside ----------------------------------------------------------------------------------

def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def enter(name):
    """First thing in the cell, when all modules are loaded: /tmp may hide them afterwards."""
    build = pathlib.Path(os.environ.get("CAISSON_BUILD", ROOT / "build"))
    for top in hierarchies():
        mount("--bind", top / name, top)
    mount("-t", "tmpfs", "-o", "mode=755", "cell", "/run")
    BIN.mkdir()
    for program in PROGRAMS:
        shutil.copy(build / program, BIN)
    NOTES.mkdir()
    NOTES.chmod(0o777)
    mount("-t", "tmpfs", "-o", "mode=1777", "cell", "/tmp")
    os.chdir("/")
    os.environ.pop("XDG_RUNTIME_DIR", None)
