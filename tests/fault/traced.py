"""traced.py - the product itself, with calls made to fail from outside by strace (FULL=1 only).

The hooks of a test build sit in the wrappers of src/os; strace reaches every call of every process,
also those made by libc. It counts per process, so one run may fail the n-th `openat` of several.
"""
import collections
import re
import subprocess

import cell
import census
import launch
from loops import Tally, after, cold_again

CALLS_OF_ONE_MAX = 50
SECONDS_MAX = 10

# As we use them they cannot fail, or libc aborts when they do; the last ones are the tracer's own.
EXEMPT = {"arch_prctl", "brk", "exit", "exit_group", "futex", "getegid", "geteuid", "getpid", "getppid", "kill",
          "mmap", "mprotect", "munmap", "rseq", "rt_sigaction", "rt_sigreturn", "set_robust_list", "set_tid_address",
          "umask", "execve"}
COMMAND = ("run", "-i", "--", "/bin/echo", "token")
STATUSES = (0, 1, 125, 126, 127, 137)  # 1 and 127: of the command, whose calls fail as well


def execute(*arguments, is_root):
    """Returns status, stderr, and whether it hung."""
    how = launch.Launch(is_root=is_root)
    process = subprocess.Popen(["strace", "-f", "-qq", "-o", cell.NOTES / "strace", *arguments, cell.BIN / "caisson-test", *COMMAND],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env={"PATH": "/usr/bin:/bin"}, **how.options())
    try:
        _, err = process.communicate(timeout=SECONDS_MAX * launch.Pace.times)
        return process.returncode, err.decode(errors="replace"), False
    except subprocess.TimeoutExpired:
        launch.end_hung(process)
        return None, process.communicate()[1].decode(errors="replace"), True


def calls(is_root):
    """Which there are, and how often one process makes each at most."""
    execute(is_root=is_root)
    counts = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", census.read(cell.NOTES / "strace"), re.MULTILINE))
    most = collections.Counter()
    for (_, name), count in counts.items():
        most[name] = max(most[name], count)
    return {name: count for name, count in most.items() if name not in EXEMPT}


def loop(name, is_root):
    tally = Tally(name)
    how = launch.Launch(is_root=is_root)
    with launch.kept_warm(is_root):
        (cell.NOTES / "strace").touch()
        (cell.NOTES / "strace").chmod(0o666)
        before = census.take()
        for call, count in calls(is_root).items():
            for n in range(1, min(count, CALLS_OF_ONE_MAX) + 1):
                status, err, is_hung = execute("-e", f"inject={call}:error=EIO:when={n}", is_root=is_root)
                problems = ["hangs"] if is_hung else []
                if status not in (*STATUSES, None):
                    problems.append(f"exit {status}: {err.strip()}")
                if status == 125 and "caisson: " not in err and call != "write":
                    problems.append("exit 125 without a sentence")
                tally.count(str(status))
                problems += after(tally, how, before)
                # A file of /etc that cannot be looked at makes another skeleton; unused ones go when nobody runs.
                tally.add(f"{call} {n}", [p for p in problems if "/skeleton-" not in p])
    tally.add("the end", cold_again(how))
    return tally
