"""exhaust.py - out of descriptors, processes, memory, disk, inodes: refused with a sentence or done."""
import contextlib
import os
import pathlib
import resource
import subprocess

import cell
import census
import launch
from loops import Tally, after, judge_failure

MIB = 1024 * 1024
DESCRIPTORS = range(3, 64)
PROCESSES = range(1, 12)
ADDRESSES_MIB = (*range(3, 24), 32, 48, 64)
MEMORY_MIB = (1, 2, 3, 4, 6, 8)
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


def scarce(name, is_root, cases):
    """`cases`: a label, further options of Launch, and the environment."""
    tally = Tally(name)
    launch.gc(is_root)
    before = census.take()
    whole = launch.Launch("-i", is_root=is_root).run()
    for label, options, environment in cases:
        how = launch.Launch("-i", is_root=is_root, **options)
        if not is_able_to_start(how):
            continue
        launch.gc(is_root)  # so that all of a first launch has to be made
        result = how.run(environment)
        tally.count(result.status)
        tally.add(label, [*judge(result, whole), *after(tally, how, before)])
    return tally


def descriptors(is_root):
    cases = [(f"{n} descriptors", {"rlimits": [(resource.RLIMIT_NOFILE, n)]}, {}) for n in DESCRIPTORS]
    return scarce(f"few descriptors{as_whom(is_root)}", is_root, cases)


def addresses(is_root):
    cases = [(f"{n} MiB of addresses", {"rlimits": [(resource.RLIMIT_AS, n * MIB)]}, {}) for n in ADDRESSES_MIB]
    return scarce(f"little address space{as_whom(is_root)}", is_root, cases)


def user_processes():
    """Root is exempt from this one."""
    cases = [(f"{n} processes", {"rlimits": [(resource.RLIMIT_NPROC, n)]}, {}) for n in PROCESSES]
    return scarce("few processes of the user", False, cases)


def cgroup_processes():
    """The caller lives in a small cgroup; the sandbox has one of its own."""
    top = next((t for t in cell.hierarchies() if (t / "pids.max").exists()), None)
    folder = top / "small"
    folder.mkdir()

    def join():
        (folder / "cgroup.procs").write_text("0")

    def cases():
        for n in PROCESSES:
            (folder / "pids.max").write_text(str(n))
            yield f"pids.max {n}", {"prepare": join}, {}
    tally = scarce("few processes in the caller's cgroup", True, cases())
    folder.rmdir()
    return tally


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
    environment = {} if is_root else {"XDG_RUNTIME_DIR": str(at)}
    owner = "mode=711" if is_root else f"mode=700,uid={launch.ROOTLESS_ID}"
    how = launch.Launch("-i", is_root=is_root)
    launch.gc(is_root)
    whole = how.run()
    launch.gc(is_root)
    at.mkdir(exist_ok=True)
    before = census.take()
    for size in DISK:
        with small_file_system(at, f"{size},{owner}"):
            result = how.run(environment)
            tally.count(result.status)
            tally.add(size, judge(result, whole))
            problem = launch.gc(is_root, environment)
            left = [e for e in os.listdir(at if is_root else at / "caisson") if e != "slots"] if any(os.scandir(at)) else []
            tally.add(size, ([problem] if problem else []) + [f"after gc: {e} in the run folder" for e in left])
        tally.add(size, after(tally, how, before))
    return tally
