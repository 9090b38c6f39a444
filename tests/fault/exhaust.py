"""exhaust.py - out of descriptors, processes, memory, disk, inodes: refused with a sentence or done."""
import contextlib
import functools
import os
import pathlib
import resource
import signal
import subprocess

import cell
import census
import launch
from loops import Tally, after, judge_failure, judge_kill

DESCRIPTORS = range(3, 64)
PROCESSES = range(1, 12)
ADDRESSES = [n * 64 * 1024 for n in (*range(24, 64), 96, 128, 256)]
DATA = [n * 16 * 1024 for n in (*range(1, 48), 64, 128)]
MEMORY = [n * 64 * 1024 for n in (*range(1, 32), 40, 64, 128)]
DISK = [f"size={n}k" for n in (4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)]
DISK += [f"nr_inodes={n}" for n in (1, 2, 3, 4, 5, 8, 16, 64, 256, 1024)]


def as_whom(is_root):
    return "" if is_root else ", rootless"


def judge(result, whole):
    """Refused, or done within the same cgroup. The command itself may feel the limit as well."""
    if result.status == 0 and result.seen is not None:
        of_cgroup = [[line for line in seen if line.startswith("/sys/fs/cgroup")] for seen in (result.seen, whole.seen)]
        result.seen = whole.seen if of_cgroup[0] == of_cgroup[1] else result.seen
    return judge_failure(result, whole)


def is_able_to_start(how):
    """Some limits are too small for any program: then the loader fails, not we."""
    try:
        done = subprocess.run([cell.BIN / "caisson-test", "version"], capture_output=True, **how.options())
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def scarce(name, is_root, cases, judge_with=judge):
    """`cases`: a label, further options of Launch, and the environment."""
    tally = Tally(name)
    launch.gc(is_root)
    before = census.take()
    whole = launch.Launch("-i", is_root=is_root).run()
    for label, options, environment in launch.Pace.thin(cases):
        how = launch.Launch("-i", is_root=is_root, **options)
        if not is_able_to_start(how):
            continue
        launch.gc(is_root)  # so that all of a first launch has to be made
        result = how.run(environment)
        tally.count(result.status)
        tally.add(label, [*judge_with(result, whole), *after(tally, how, before)])
    return tally


def descriptors(is_root):
    cases = [(f"{n} descriptors", {"rlimits": [(resource.RLIMIT_NOFILE, n)]}, {}) for n in DESCRIPTORS]
    return scarce(f"few descriptors{as_whom(is_root)}", is_root, cases)


def judge_memory(result, whole):
    """Where it ends cannot be said without memory. The command inherits the limit: its loader may crash of it."""
    is_said = result.status == 125 and "caisson: out of memory" in result.err
    return () if is_said or result.status in (127, 128 + signal.SIGSEGV) else judge(result, whole)


def memory(is_root):
    cases = [(f"{n} bytes of addresses", {"rlimits": [(resource.RLIMIT_AS, n)]}, {}) for n in ADDRESSES]
    cases += [(f"{n} bytes of data", {"rlimits": [(resource.RLIMIT_DATA, n)]}, {}) for n in DATA]
    return scarce(f"little memory{as_whom(is_root)}", is_root, cases, judge_memory)


def user_processes():
    """Root is exempt from this one."""
    cases = [(f"{n} processes", {"rlimits": [(resource.RLIMIT_NPROC, n)]}, {}) for n in PROCESSES]
    return scarce("few processes of the user", False, cases)


def caller_in_small_cgroup(name, file, values, judge_with):
    """The caller lives in a small cgroup; the sandbox has one of its own. Root only."""
    top = next(t for t in cell.hierarchies() if (t / file).exists())
    cell.hand_down(top)
    folder = top / "small"
    folder.mkdir()

    def join(value):
        (folder / file).write_text(str(value))
        (folder / "cgroup.procs").write_text("0")
    cases = [(f"{file} {value}", {"prepare": functools.partial(join, value)}, {}) for value in values]
    tally = scarce(name, True, cases, judge_with)
    folder.rmdir()
    return tally


def cgroup_processes():
    return caller_in_small_cgroup("few processes in the caller's cgroup", "pids.max", PROCESSES, judge)


def cgroup_memory():
    """Then the kernel kills the launcher or the monitor."""
    file = next(f for f in ("memory.limit_in_bytes", "memory.max") if any((t / f).exists() for t in cell.hierarchies()))
    return caller_in_small_cgroup("little memory in the caller's cgroup", file, MEMORY, judge_kill)


@contextlib.contextmanager
def small_file_system(at, options):
    at.mkdir(exist_ok=True)
    cell.mount("-t", "tmpfs", "-o", options, "small", at)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def disk(is_root):
    """The run folder is on a file system that is full."""
    tally = Tally(f"no room for the run folder{as_whom(is_root)}")
    at = pathlib.Path("/run/caisson" if is_root else "/run/user")
    folder = at if is_root else at / "caisson"
    environment = {} if is_root else {"XDG_RUNTIME_DIR": str(at)}
    owner = "mode=711" if is_root else f"mode=700,uid={launch.ROOTLESS_ID}"
    how = launch.Launch("-i", is_root=is_root)
    whole = how.run()
    launch.gc(is_root)
    at.mkdir(exist_ok=True)
    before = census.take()
    for size in launch.Pace.thin(DISK):
        with small_file_system(at, f"{size},{owner}"):
            result = how.run(environment)
            tally.count(result.status)
            tally.add(size, judge(result, whole))
            launch.gc(is_root, environment)
            left = {str(p.relative_to(folder)) for p in folder.glob("*")} | \
                {str(p.relative_to(folder)) for p in folder.glob("slots/*")}
            left -= {"slots", "slots/gate"}
            tally.add(size, [f"after gc: {name} in the run folder" for name in left])
        tally.add(size, after(tally, how, before))
    return tally
