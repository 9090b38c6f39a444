"""launch.py - one launch of a test build with a fault in it, and everything that came out.

Launch is the CLI without a daemon (caisson-test), Shipped the chain that ships (chain.py), Kept a sandbox that lives on."""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import subprocess
import termios
import time

import cell
import census
import chain

SECONDS_MAX = 40    # a launch that takes longer hangs, also on a busy machine
SECONDS_MAX_SLOW = 60
SLOW_SECONDS = 0.08  # of a launch: an emulated machine, or worse
PACE_MAX = 8
ROOTLESS_ID = 64002  # of nobody; as good as any ordinary user
READY = "the walls stand"
CLEAN_SECONDS = 2
COLD = set()        # the census of the cell before its first suite

# What the command sees of its walls, in a form that is the same in each launch; then it waits for
# a line, so that the outside can be looked at as well.
LOOK = f"""
cat /proc/self/mounts /proc/self/limits /proc/net/route /proc/net/if_inet6
grep -c . /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6; cat /etc/resolv.conf 2>&1
grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status
grep . /proc/sys/user/max_*_namespaces
uname -n; pwd; env; echo / /dev/* /sys/* /home/* /proc/self/fd/*
(: > /made-here) 2>&1
echo {READY}; read line; true
"""
VARYING = [
    (re.compile(r"/proc/self/fd/\d+"), "/proc/self/fd/N"),
    (re.compile(r"\b([ug]id)=\d+"), r"\1=N"),
    (re.compile(r"\r"), ""),
]

# Of a cgroup, whichever version has it.
LIMIT_FILES = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max", "cpu.cfs_quota_us",
               "devices.list", "memory.max", "memory.swap.max", "memory.oom.group", "cpu.max")


class Pace:
    """An emulated machine gets more time for everything, and fewer launches. Load is no reason."""

    times = 1

    @classmethod
    def measure(cls):
        seconds = min(Launch(command=["true"], stdin="null").run().seconds for _ in range(3))
        cls.times = min(PACE_MAX, max(1, round(seconds / SLOW_SECONDS)))

    @classmethod
    def patience(cls):
        """After so many seconds a launch hangs. An emulated machine may be kept waiting by its host, unseen."""
        return SECONDS_MAX if cls.times == 1 else SECONDS_MAX_SLOW

    @classmethod
    def thin(cls, cases):
        """Every so many of them."""
        return list(cases)[::cls.times]


class Result:
    """What came out of one launch."""

    def __init__(self):
        self.status, self.out, self.err, self.seconds = None, "", "", 0.0
        self.calls = []      # (process, name) in order; empty when the program was killed
        self.seen = None     # of the walls, from inside and outside; None: the command never ran
        self.is_hung, self.found = False, []
        self.terminal_kept = True

    def call(self, n):
        """The n-th call in words: who made it, and which."""
        return " ".join(self.calls[n - 1]) if 0 < n <= len(self.calls) else "unknown call"


def roles(made, first="cli"):
    """(pid, call) to (name, call): in a new pid namespace 1 is init, 2 the command."""
    names, others = {"1": "init", "2": "command"}, [first, "monitor", "helper"]
    calls = []
    for pid, name in made:
        if pid not in names:
            names[pid] = others.pop(0) if others else "other"
        calls.append((names[pid], name))
    return calls


def limits_outside():
    """The limits of all sandboxes that run in the cell: one, in these tests."""
    found = []
    for top in cell.hierarchies():
        for at, _, names in os.walk(top / "caisson"):
            members = census.read(f"{at}/cgroup.procs").split()
            where = re.sub(r"caisson/\d+", "caisson/N", at)
            if members:
                found.append(f"{where}: members")
                found += [f"{where}/{f}: {census.read(f'{at}/{f}').split()}" for f in LIMIT_FILES if f in names]
    return sorted(found)


class Launch:
    """How to start: flags of `caisson run`, as whom, with what as standard input and limits."""

    def __init__(self, *flags, is_root=True, command=("sh", "-c", LOOK), stdin="pipe", rlimits=(), prepare=None):
        self.flags, self.is_root, self.command = list(flags), is_root, list(command)
        self.stdin, self.rlimits, self.prepare = stdin, rlimits, prepare

    def options(self):
        def before_exec():
            for which, value in self.rlimits:
                resource.setrlimit(which, (value, value))
            if self.prepare:
                self.prepare()
        extra = {} if self.is_root else {"user": ROOTLESS_ID, "group": ROOTLESS_ID, "extra_groups": []}
        if self.rlimits or self.prepare:
            extra["preexec_fn"] = before_exec
        return extra

    def start(self, environment, program="caisson-test", **streams):
        """Without waiting for it. Signals as from a shell: Python ignores some."""
        argv = [cell.BIN / program, "run", *self.flags, "--", *self.command]
        env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", **environment}
        return subprocess.Popen(argv, env=env, restore_signals=True, **streams, **self.options())

    def run(self, environment=None):
        """To its end, or for as long as patience lasts."""
        result = Result()
        notes = {"CAISSON_TRACE": str(cell.NOTES / "trace")}
        with contextlib.ExitStack() as stack:
            reply, stdin = self.open_stdin(stack)
            terminal = termios_of(stdin)
            begin = time.monotonic()
            process = self.start({**notes, **(environment or {})}, stdin=stdin,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            stack.enter_context(process)
            if self.stdin == "pipe":
                os.close(stdin)
            follow(process, reply, result, begin + Pace.patience())
            result.seconds = time.monotonic() - begin
            result.terminal_kept = terminal == termios_of(stdin if terminal else None)
        self.read_notes(result)
        return result

    def open_stdin(self, stack):
        """The end to answer on, and the program's."""
        if self.stdin == "null":
            return None, subprocess.DEVNULL
        if self.stdin == "tty":
            ours, theirs = pty.openpty()
            stack.callback(os.close, theirs)
        else:
            theirs, ours = os.pipe()
        stack.callback(os.close, ours)
        return ours, theirs

    def read_notes(self, result):
        trace = cell.NOTES / "trace"
        # Who is killed at a call may have been counted and not named.
        lines = [line.split() for line in census.read(trace).splitlines()]
        result.calls = roles((words[1], words[2] if len(words) > 2 else "unnamed") for words in lines)
        trace.unlink(missing_ok=True)
        self.read_output(result)

    def read_output(self, result):
        text = result.out
        if "--json" in self.flags:
            with contextlib.suppress(ValueError):
                answer = json.loads(text)
                text = answer.get("stdout", "") + json.dumps(answer.get("enforced"))
                if answer.get("state") == "lost":  # said there instead of on stderr
                    result.err += f"caisson: lost: {answer['reason']}\n"
        if READY in text:
            for pattern, word in VARYING:
                text = pattern.sub(word, text)
            result.seen = text.splitlines() + (result.seen or [])


    # What surrounds a loop of launches, and removes what they left.

    @contextlib.contextmanager
    def warm(self):
        with kept_warm(self.is_root):
            gc(self.is_root)
            yield

    def gc(self):
        return gc(self.is_root)

    def recover(self):
        """Before anybody is called a survivor."""

    def stays(self):
        """What is there for good after its first use."""
        return set()

    def end(self):
        """With the last sandbox gone, what they shared."""
        census.wait_empty(CLEAN_SECONDS)
        return gc(self.is_root)


class Shipped(Launch):
    """Through the CLI and a daemon, as users do. Signals and limits of the caller are not the launcher's."""

    CHAINS = {True: chain.Chain(), False: chain.Chain(ROOTLESS_ID)}

    @property
    def chain(self):
        return self.CHAINS[self.is_root]

    def words(self):
        return [cell.BIN / "caisson", "run", *self.flags, "--", *self.command]

    def start(self, environment, program=None, **streams):
        self.chain.ensure()
        self.chain.plan({name: value for name, value in environment.items() if name != "CAISSON_TRACE"})
        env = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "CAISSON_SOCKET": str(self.chain.socket)}
        return subprocess.Popen(self.words(), env=env, restore_signals=True, **streams, **self.options())

    def read_notes(self, result):
        """Once the launcher has removed what was left: these calls fail too."""
        deadline = time.monotonic() + CLEAN_SECONDS
        while time.monotonic() < deadline and (census.processes() or list((self.chain.run / "sb").glob("*"))):
            time.sleep(0.002)
        result.calls = roles(self.chain.calls(), "launcher")
        self.chain.disarm()
        self.read_output(result)

    @contextlib.contextmanager
    def warm(self):
        self.chain.ensure()
        census.SERVERS.append(chain.families)
        try:
            self.run()
            yield
        finally:
            census.SERVERS.remove(chain.families)

    def stays(self):
        """Of both: a suite may have had both in its cell."""
        return {f"file {run_folder(is_root)}/monitors" for is_root in (True, False)}

    def gc(self):
        """A launcher removes what it finds when it starts."""
        self.chain.end()
        self.chain.start()

    def end(self):
        self.chain.end()
        deadline = time.monotonic() + CLEAN_SECONDS
        while census.processes() and time.monotonic() < deadline:  # its helpers end after it
            time.sleep(0.005)
        shutil.rmtree(chain.HOME, ignore_errors=True)
        return gc(self.is_root)


class Kept(Shipped):
    """A sandbox that lives on, one command in it, and its end; the fault may be in any of these."""

    SCRIPT = """sandbox=$("$0" create) || exit; "$0" exec -i "$sandbox" -- "$@"; status=$?
"$0" rm "$sandbox" >/dev/null 2>&1; exit $status"""

    def recover(self):
        """It outlives its launcher; the next one ends what nobody knows of. A launcher may also be at what is left of the
        launch before, and take the daemon along while a command runs: then the client removes its sandbox now."""
        was_alive = self.chain.is_alive()
        self.chain.ensure()
        if not was_alive:
            for sandbox in json.loads(self.ask("list", "--json"))["sandboxes"]:
                self.ask("rm", sandbox["id"])

    def ask(self, *words):
        return subprocess.run([cell.BIN / "caisson", *words], capture_output=True, text=True, check=False,
                              timeout=Pace.patience(), **self.options(),
                              env={"PATH": os.environ["PATH"], "CAISSON_SOCKET": str(self.chain.socket)}).stdout

    def words(self):
        return ["sh", "-c", self.SCRIPT, cell.BIN / "caisson", *self.command]


def termios_of(fd):
    return termios.tcgetattr(fd) if isinstance(fd, int) and fd >= 0 and os.isatty(fd) else None


def follow(process, reply, result, deadline):
    """Collects output until the process ends; others may hold its pipes longer. Answers the command."""
    out, err = process.stdout.fileno(), process.stderr.fileno()
    texts = {out: [], err: []}
    pidfd = os.pidfd_open(process.pid)
    waiting = {*texts, pidfd}
    for fd in texts:
        os.set_blocking(fd, False)
    while pidfd in waiting:
        ready, _, _ = select.select(waiting, [], [], max(0, deadline - time.monotonic()))
        if not ready:
            result.is_hung = True
            break
        for fd in texts:
            waiting -= read_all(fd, texts[fd])
        if result.seen is None and reply is not None and READY.encode() in b"".join(texts[out]):
            result.seen = limits_outside()
            with contextlib.suppress(BrokenPipeError):
                os.write(reply, b"\n")
        if pidfd in ready:
            waiting.discard(pidfd)
    os.close(pidfd)
    if result.is_hung:
        result.found = sorted(map(census.describe, census.pids()))
        end_hung(process)
    result.status = process.wait()
    for fd in texts:
        read_all(fd, texts[fd])
    result.out, result.err = (b"".join(texts[fd]).decode(errors="replace") for fd in (out, err))


def end_hung(process):
    """The others first: then the program may still end by itself and tell which calls were made."""
    census.kill_all(but=[process.pid])
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    process.kill()


def read_all(fd, chunks):
    """What is there now. Returns the descriptor in a set when nothing more will come."""
    while True:
        try:
            chunk = os.read(fd, 65536)
        except BlockingIOError:
            return set()
        if not chunk:
            return {fd}
        chunks.append(chunk)


def gc(is_root=True, environment=None, program="caisson-test"):
    """Returns what was wrong with it, or None. It may fail, with a sentence, when a fault is asked for."""
    try:
        done = subprocess.run([cell.BIN / program, "gc"], capture_output=True, text=True,
                              timeout=Pace.patience(), env={"PATH": os.environ["PATH"], **(environment or {})},
                              **Launch(is_root=is_root).options())
    except subprocess.TimeoutExpired:
        return "gc: hangs"
    is_said = done.stderr.startswith("caisson: ") or ": resists" in done.stdout
    is_excused = environment and (is_said or done.returncode == -signal.SIGKILL)
    return None if done.returncode == 0 or is_excused else f"gc: exit {done.returncode}: {done.stdout + done.stderr}"


def run_folder(is_root):
    return pathlib.Path("/run/caisson" if is_root else f"/tmp/caisson-{ROOTLESS_ID}")


@contextlib.contextmanager
def kept_warm(is_root):
    """As if somebody were launching: gc leaves what all launches share (skeleton, top of the cgroups)."""
    Launch(is_root=is_root, command=["true"], stdin="null").run()
    with open(run_folder(is_root) / "slots/gate", "r+b") as file:  # src/launcher/slot.h
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1)
        yield
