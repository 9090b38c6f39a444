"""The three arms: bare control, the sandbox, the sandbox with one wall left out."""

import contextlib
import fnmatch
import json
import os
import pty
import re
import select
import socket
import subprocess
import tempfile
import time

import oracle

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CAISSON_BUILD", f"{ROOT}/build")
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = ("main", "cap", "sys", "census", "nsp", "prc", "dev", "fds", "cgr", "net", "verb")
CFLAGS = ("-std=gnu17 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes "
          "-Wmissing-prototypes -Wvla -Wformat=2 -Wswitch-enum -Wundef -Wwrite-strings").split()

# Who attacks: flags of caisson run, and who starts it. Each row is tried as all unless it says otherwise.
VARIANTS = {"agent": (), "root": ("-u", "root"), "rootful": ("-u", "root", "--profile", "rootful"), "rootless": ()}
ROOTLESS_ID = 65533
CALLER = {"rootless": ("setpriv", f"--reuid={ROOTLESS_ID}", f"--regid={ROOTLESS_ID}", "--clear-groups")}
# The launch proof refuses to start without a wall, so an arm without one is without the proof too. Rows call these one.
# A folder of the host that is shown by an overlay has no devices whatever its mount says: only the other way can miss that.
TOGETHER = {"masks": "masks,procro", "proof": "proof", "nodev": "nodev,inodes"}
REFUSED = 125
ABSENT = ("ENOSYS", "ENOENT", "ENODEV", "ENXIO", "ENOTTY", "EAFNOSUPPORT", "EPROTONOSUPPORT")
TIMEOUT, START_TIMEOUT = 80, 60


def build(host):
    probe = f"{host.tmp}/bin/probe"
    subprocess.run(["gcc", *CFLAGS, "-static", "-no-pie", "-iquote", f"{ROOT}/src", "-iquote", HERE, "-o", probe,
                    *(f"{HERE}/{s}.c" for s in SOURCES)], check=True)
    subprocess.run(["gcc", "-m32", "-O1", "-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-o",
                    f"{host.tmp}/bin/abi32", f"{HERE}/abi32.c"], check=True)
    return probe


class Daemon:
    """The product as it ships, with state and run folder of its own. `before`: words before the launcher's."""

    def __init__(self, host, program="caisson-launcher", before=(), uid=0, env=None, **options):
        self.folder = tempfile.mkdtemp(prefix="daemon-", dir=host.tmp)
        os.chmod(self.folder, 0o711)
        os.chown(self.folder, uid, uid)
        self.socket = f"{self.folder}/run/api.sock"
        if uid:
            options.update(user=uid, group=uid, extra_groups=[])
        with open(f"{self.folder}/out", "wb") as out:
            self.process = subprocess.Popen(
                [*before, f"{BUILD}/{program}", "--state", f"{self.folder}/state", "--run", f"{self.folder}/run"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={"PATH": os.environ["PATH"], **(env or {})}, **options)
        deadline = time.monotonic() + START_TIMEOUT
        while not self._answers() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def _answers(self):
        """The launcher makes the socket before it starts the daemon: only an answer says that there is one."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            try:
                client.connect(self.socket)
                client.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return client.recv(64).startswith(b"HTTP/1.1 200")
            except OSError:
                return False

    def said(self):
        return oracle.read(f"{self.folder}/out")

    def run(self, argv, env=None, **options):
        """What a client of it sees; when it did not even start, what it said itself."""
        if self.process.poll() is not None:
            return Outcome(REFUSED, "", self.said())
        return execute(argv, env={**(env or {}), "CAISSON_SOCKET": self.socket}, **options)

    def close(self):
        self.process.terminate()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Daemons:
    """Those that all rows share, each started when it is first needed."""

    def __init__(self, host):
        self.host, self.running = host, {}
        self.faults = f"{host.tmp}/faults"    # of the test build: which walls the next launch leaves out

    def _get(self, name, **options):
        if name not in self.running:
            self.running[name] = Daemon(self.host, **options)
        return self.running[name]

    def of(self, variant, layer=None):
        if layer:
            with open(self.faults, "w", encoding="ascii") as f:
                f.write(f"LAYER_OFF={TOGETHER.get(layer, layer)},proof\n")
            return self._get("test", program="caisson-launcher-test", env={"CAISSON_FAULTS": self.faults})
        if variant == "rootless":
            return self._get("rootless", uid=ROOTLESS_ID)
        return self._get("root")

    def close(self):
        for d in self.running.values():
            d.close()


class Outcome:
    """Attempts of one run of the probe: [{op, errno, open, detail}], and how it ended."""

    def __init__(self, code, out, err):
        self.code, self.text, self.err = code, out, err
        self.attempts = []
        for line in out.splitlines():
            if line.startswith('{"id":"') and '"op"' in line:
                self.attempts.append(json.loads(line))

    def errnos(self):
        return {a["op"]: a["errno"] for a in self.attempts}


def execute(argv, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("env", {"PATH": os.environ["PATH"]})
    try:
        r = subprocess.run(argv, capture_output=True, timeout=TIMEOUT, check=False, **options)
    except subprocess.TimeoutExpired as e:
        return Outcome(-1, (e.stdout or b"").decode(errors="replace"), "timed out")
    return Outcome(r.returncode, r.stdout.decode(errors="replace"), r.stderr.decode(errors="replace"))


def on_terminal(argv):
    """Runs argv with a new pseudo terminal as its controlling one."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, {"PATH": os.environ["PATH"], "TERM": "dumb"})
    out, ended, state = b"", 0, 0
    while True:    # not until the terminal ends: ioctls of the probe may have made it deaf to that
        if select.select([fd], [], [], 0.2)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:
                break
        elif ended:
            break
        else:
            ended, state = os.waitpid(pid, os.WNOHANG)
    if not ended:
        _, state = os.waitpid(pid, 0)
    os.close(fd)
    return Outcome(os.waitstatus_to_exitcode(state), out.decode(errors="replace").replace("\r", ""), "")


def places(host, flags):
    """The probe's folder is at /mnt/probe, fixtures at /mnt/ws."""
    if any(f.startswith("dir:") for f in flags):
        return []
    return ["--fs", "ephemeral:/work", "--fs", f"ro:{host.tmp}/bin:/mnt/probe", "--fs", f"ro:{host.tmp}/ws:/mnt/ws"]


def client(host, words, variant="agent", layer=None):
    """(argv, env) of the CLI, to be run at once: a layer is left out by the next launch of its daemon."""
    env = {"PATH": os.environ["PATH"], "CAISSON_SOCKET": host.daemons.of(variant, layer).socket}
    return [*CALLER.get(variant, ()), f"{BUILD}/caisson", *words], env


def caisson(host, flags, command, layer=None, variant="agent"):
    """(argv, env) of one launch."""
    return client(host, ["run", *places(host, flags), *VARIANTS[variant], *flags, "--", *command], variant, layer)


def alone(host, flags, command, variant="agent"):
    """(argv, env) of one launch by the test build without a daemon, which listens to src/os/fault.h's variables."""
    argv = ["run", *places(host, flags), *VARIANTS[variant], *flags, "--", *command]
    return [*CALLER.get(variant, ()), f"{BUILD}/caisson-test", *argv], {"PATH": os.environ["PATH"]}


def sandbox(host, flags, command, layer=None, variant="agent", tty=False, **options):
    argv, env = caisson(host, (*flags, *(("-t",) if tty else ())), command, layer, variant)
    if tty:
        return on_terminal(["env", *(f"{k}={v}" for k, v in env.items()), *argv])
    options.setdefault("env", {}).update(env)
    return execute(argv, **options)


class Kept:
    """Sandboxes that live on, one for each set of flags: rows are tried in them too, each as one more command."""

    def __init__(self, host):
        self.host, self.ids = host, {}

    def get(self, flags, variant, layer=None):
        key = (tuple(flags), variant, layer)
        if key not in self.ids:
            words = ["create", *places(self.host, flags), *VARIANTS[variant], *flags]
            argv, env = client(self.host, words, variant, layer)
            made = execute(argv, env=env)
            if made.code != 0:
                raise RuntimeError(f"create: exit {made.code}: {made.err.strip()[:160]}")
            self.ids[key] = made.text.strip()
        return self.ids[key]

    def run(self, command, flags, variant, layer=None, tty=False):
        words = ["exec", *(("-t",) if tty else ()), self.get(flags, variant, layer), "--", *command]
        argv, env = client(self.host, words, variant, layer)
        if tty:
            return on_terminal(["env", *(f"{k}={v}" for k, v in env.items()), *argv])
        return execute(argv, env=env)


class Held:
    """A run that waits inside until the host has looked: `with Held(...) as h: h.pid`."""

    def __init__(self, argv, env=None, token=None, **options):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env or {"PATH": os.environ["PATH"]}, **options)
        self.out, self.token, self.pid = "", token, None

    def __enter__(self):
        end = time.monotonic() + START_TIMEOUT
        while '"id":"hold"' not in self.out:
            left = max(0, end - time.monotonic())
            chunk = self.process.stdout.read1(65536) if select.select([self.process.stdout], [], [], left)[0] else b""
            self.out += chunk.decode(errors="replace")
            if not chunk:
                self.process.kill()
                raise RuntimeError("did not start: " + self.process.stderr.read1(4096).decode(errors="replace").strip())
        found = oracle.inside(self.token) if self.token else [self.process.pid]
        if not found:
            self.finish()
            raise RuntimeError("no process of the sandbox is to be found")
        self.pid = found[0]
        return self

    def finish(self, line=b"\n"):
        try:
            out, err = self.process.communicate(line, timeout=TIMEOUT)
        except subprocess.TimeoutExpired:    # what it left behind may hold the pipes: do not wait for their end
            self.process.kill()
            self.process.wait()
            return Outcome(-1, self.out, "timed out")
        return Outcome(self.process.returncode, self.out + out.decode(errors="replace"), err.decode(errors="replace"))

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.finish()


def hold_sandbox(host, flags=(), variant="agent", words=None, token=None):
    token = token or host.token + "-in"
    argv, env = caisson(host, ("-i", *flags), ["/mnt/probe/probe", *(words or ("hold", token))], None, variant)
    return Held(argv, env, token)


def matches(op, patterns):
    return any(fnmatch.fnmatch(op, p) for p in patterns)


def expected(row, op, variant):
    for key in (f"{variant}:{op}", op):
        for pattern, errno in row.ops.items():
            if fnmatch.fnmatch(key, pattern):
                return errno
    return row.expect


def judge_control(row, outcome):
    """Problems of the control arm: a probe that cannot succeed proves nothing."""
    attempts = [a for a in outcome.attempts if not matches(a["op"], row.allow)]
    shut = [a for a in attempts if not a["open"] and not matches(a["op"], row.maybe)]
    problems = [f"control: {a['op']} is stopped here too ({a['errno']})" for a in shut if a["errno"] not in ABSENT]
    opened = any(a["open"] for a in attempts)
    if not opened and any(a["errno"] not in ABSENT for a in attempts):
        problems.append("control: no attempt succeeds")
    if outcome.code not in (0, 1):
        problems.append(f"control: probe failed: {outcome.err.strip()[:120]}")
    absent = [a["op"] for a in attempts if not a["open"] and a["errno"] in ABSENT]
    return ("open" if opened else "absent"), problems, absent


def judge_sandbox(row, outcome, variant, where=""):
    problems, label = [], f"{variant} {where}".strip()
    if outcome.code not in (0, 1):
        return [f"{label}: exit {outcome.code}: {outcome.err.strip()[:160]}"]
    for a in outcome.attempts:
        op, errno, detail = a["op"], a["errno"], a["detail"].strip()
        if matches(op, row.allow) or matches(f"{variant}:{op}", row.allow):
            if not a["open"] and op.startswith("use-"):
                problems.append(f"{label}: {op} must work: {errno}")
        elif a["open"]:
            problems.append(f"{label}: {op} is OPEN ({detail})")
        elif not re.fullmatch(expected(row, op, variant), errno):
            problems.append(f"{label}: {op} gave {errno}, expected {expected(row, op, variant)} ({detail})")
    if not outcome.attempts:
        problems.append(f"{label}: no attempts reported")
    return problems


def judge_off(row, with_wall, without):
    """One word for the table: open, or what still stops it."""
    if without.code not in (0, 1):
        return f"exit {without.code}"
    before = {a["op"]: a for a in with_wall.attempts}
    opened = [a for a in without.attempts if a["open"] and not before.get(a["op"], a)["open"]]
    changed = sorted({a["errno"] for a in without.attempts
                      if not a["open"] and a["op"] in before and before[a["op"]]["errno"] != a["errno"]})
    if opened:
        return "open" if len(opened) + len(row.allow) >= len(without.attempts) else f"open({len(opened)})"
    return "stopped:" + "+".join(changed) if changed else "stopped"
