"""loops.py - the n-th kernel call fails, or its caller is killed, for every n of a launch.

The calls of the processes of a launch interleave, so one n is not the same call in each run; the
loops meet all of them all the same, because they go through every n.
"""
import collections
import contextlib
import signal
import subprocess

import cell
import census
import launch

SURVIVAL_SECONDS = 5    # a busy machine takes its time to bury somebody
CALLS_MAX = 5000        # of a launch: some 400, and 3000 when the skeleton has to be made
GC_CALLS_BEGIN = 120    # afterwards it mostly asks for locks
GC_STEP = 400
LEFTOVER = "77"         # a slot that no launch has
LEFTOVER_ID = 0x70000000 + 77 * 65536  # and an id of it: src/launcher/slot.h
DIFFERENCES_MAX = 12
ALIKE_MIN = 10


def sentences(result, whole):
    """On stderr, but those that stand there in any case (`not enforced here: ...`)."""
    return [line for line in result.err.splitlines() if line not in whole.err.splitlines()]


def judge_end(result):
    """What no fault excuses."""
    if result.is_hung:
        yield "\n  ".join(["hangs; what is there:", *result.found])
    elif result.status < 0 and result.status != -signal.SIGKILL:
        yield f"crashes with signal {-result.status}"
    if not result.terminal_kept and result.status >= 0:
        yield "leaves the terminal changed"


def judge_refusal(result, whole):
    """125 is one sentence that names the step."""
    lines = sentences(result, whole)
    if len(lines) != 1 or not lines[0].startswith("caisson: ") or lines[0].count(": ") < 2:
        yield f"exit 125 wants one sentence that names the step; stderr: {lines}"
    if result.seen is not None and "lost" not in result.err:
        yield f"the command ran and the exit is 125: {lines}"


def difference(seen, expected):
    """A few of the lines that differ. Of a command that never ran there is nothing to say."""
    lines = [f"  without: {line}" for line in expected if line not in seen] if seen else []
    lines += [f"  instead: {line}" for line in seen if line not in expected]
    return "\n".join(lines[:DIFFERENCES_MAX])


def judge_failure(result, whole):
    """Whole or not at all: a refused launch ran nothing, a launch that went on lost no wall."""
    yield from judge_end(result)
    if result.is_hung:
        return
    if result.status == 125:
        yield from judge_refusal(result, whole)
    elif result.status == 126 and "caisson: execute: " in result.err:
        return  # the call that failed was execve itself
    elif result.status != 0:
        yield f"exit {result.status}: {result.err.strip()}"
    elif result.seen != whole.seen:
        yield "goes on, but not with the same walls:\n" + difference(result.seen or [], whole.seen)


def judge_kill(result, whole):
    yield from judge_end(result)
    if result.status == 125:
        lines = sentences(result, whole)
        if len(lines) != 1 or not lines[0].startswith("caisson: "):
            yield f"exit 125 wants one sentence; stderr: {lines}"
    elif result.status not in (whole.status, -signal.SIGKILL, 128 + signal.SIGKILL):
        yield f"exit {result.status}: {result.err.strip()}"
    elif result.status == whole.status and result.seen != whole.seen:
        yield "goes on, but not with the same walls:\n" + difference(result.seen or [], whole.seen)


class Tally:
    """What a loop met."""

    def __init__(self, name):
        self.name, self.runs = name, 0
        self.left = 0  # launches that left work for gc
        self.statuses, self.found = {}, {}

    def count(self, status):
        self.runs += 1
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def add(self, where, problems):
        for problem in problems:
            self.found.setdefault(problem, []).append(where)

    def problems(self):
        """Each once, with the places where it was met."""
        return [f"{problem}\n  at {'; '.join(places)}" for problem, places in self.found.items()]

    def title(self):
        ends = ", ".join(f"{count} x {status}" for status, count in sorted(self.statuses.items()))
        return f"{self.name}: {self.runs} runs; exits {ends}; gc had work {self.left} times"


def survivors():
    """Processes that do not end in some seconds."""
    for text in sorted(census.wait_empty(SURVIVAL_SECONDS * launch.Pace.times)):
        yield f"survives {SURVIVAL_SECONDS} s: {text}"


def after(tally, how, before):
    """No process after some seconds; nothing at all after gc."""
    how.recover()
    yield from survivors()
    if census.take() <= before:
        return
    tally.left += 1
    problem = how.gc()
    if problem:
        yield problem
    remains = census.left(before, SURVIVAL_SECONDS * launch.Pace.times)
    before |= remains  # said once
    for text in sorted(remains):
        yield f"after gc: {text}"


def next_start(how, whole):
    """What a fault left must not harm the launch after it."""
    result = how.run()
    yield from judge_end(result)
    if not result.is_hung and (result.status, result.seen) != (whole.status, whole.seen):
        yield (f"the next launch: exit {result.status}: {result.err.strip()}\n" +
               difference(result.seen or [], whole.seen or []))


def cold_again(how):
    """With the last sandbox gone gc removes also what they shared."""
    problem = how.end()
    yield from survivors()
    if problem:
        yield problem
    yield from (f"after the last gc: {text}" for text in sorted(census.take() - launch.COLD - how.stays()))


class Fault:
    """What is done at the n-th call, and what may come of it."""

    def __init__(self, variable, judge, value=""):
        self.variable, self.judge, self.value = variable, judge, value

    def at(self, n):
        return {self.variable: f"{n}{self.value}"}


FAILS = Fault("CAISSON_FAIL_AT", judge_failure)
KILLS = Fault("CAISSON_KILL_AT", judge_kill)


def fails_with(number):
    return Fault("CAISSON_FAIL_AT", judge_failure, f":{number}")


def unlike(calls, step):
    """Every step-th n, and those of the launcher that are not one of many alike (copied files): it
    makes what launches share; the others do what they always do."""
    rows = [tuple(calls[max(0, n - 3):n + 1]) for n in range(len(calls))]
    alike = collections.Counter(rows)
    return launch.Pace.thin(n for n, row in enumerate(rows, 1)
                            if n % step == 0 or (row[-1][0] == "cli" and alike[row] < ALIKE_MIN))


def loop(name, how, fault, step=1, is_cold=False):
    """One launch for each n, until a launch makes fewer calls than n. A cold one has to make what
    all launches share, and what it leaves of that is used by the next."""
    tally = Tally(name)
    with contextlib.nullcontext() if is_cold else how.warm():
        if is_cold:
            how.gc()
        before = census.take()
        whole = how.run()
        if whole.is_hung or not whole.calls:
            tally.add("without a fault", [f"does not work: {whole.status} {whole.err}"])
            return tally
        for n in unlike(whole.calls, step) if is_cold else range(1, CALLS_MAX, step):
            if is_cold:
                how.gc()
            result = how.run(fault.at(n))
            if result.calls and len(result.calls) < n:
                break
            problems = list(fault.judge(result, whole))
            if is_cold:
                problems += next_start(how, whole)
            problems += after(tally, how, before)
            tally.count(result.status)
            tally.add(f"n={n} ({(result if result.calls else whole).call(n)})", problems)
    tally.add("the end", cold_again(how))
    return tally


def plant_leftover():
    """As of a launcher and a monitor that were killed at once: cgroups, and somebody in them."""
    sleeper = subprocess.Popen(["sleep", "60"], user=LEFTOVER_ID)  # gc ends nobody with another id
    for top in cell.hierarchies():
        base = top / "caisson"
        if any((base / file).exists() for file in launch.LIMIT_FILES if file != "devices.list"):
            (base / LEFTOVER).mkdir()
            (base / LEFTOVER / "cgroup.procs").write_text(str(sleeper.pid))


def gc_loop(name, variable, step):
    """The same for gc itself, with something to collect; the gc after it finishes the work."""
    tally = Tally(name)
    how = launch.Launch(command=["true"], stdin="null")
    with launch.kept_warm(how.is_root):
        launch.gc(how.is_root)
        before = census.take()
        for n in [*range(1, GC_CALLS_BEGIN, step), *range(GC_CALLS_BEGIN, CALLS_MAX, GC_STEP * step)]:
            plant_leftover()
            problems = [launch.gc(how.is_root, {variable: str(n)})]
            tally.count(0)
            problems += [launch.gc(how.is_root)]
            tally.add(f"n={n}", [*filter(None, problems), *after(tally, how, before)])
    tally.add("the end", cold_again(how))
    return tally
