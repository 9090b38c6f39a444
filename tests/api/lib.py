"""lib.py - a private daemon in a cell of its own, clients for it, and the tests' TAP.

A program of this folder runs itself again inside a cell (tests/fault/cell.py): there it is the
first process, everything below /run is its own, and the census at its end sees nobody else's
leftovers. A test is a function with one parameter, the Api; it fails by `check` or any exception.
"""
import base64
import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "sdk/python"))

import cell  # noqa: E402
import census  # noqa: E402
from caisson import _lend  # noqa: E402

cell.PROGRAMS = ("caissond", "caisson-launcher", "caisson-tree", "caisson-init", "caisson-gate", "caisson-vault", "caisson-cache", "caisson-ledger", "caisson-hook")
HOME = pathlib.Path("/run/api")        # state and run folders of the daemons of this cell
HOST = pathlib.Path("/run/host")       # what sandboxes must not reach
SOURCE = pathlib.Path("/run/source")   # what is shown inside
USER_ID = 64001                        # of nobody; as good as any ordinary user
PATIENCE = 40                          # seconds for what takes a moment when nobody else is there; less than the minute that many commands sleep
PROGRAM_SECONDS = 840                  # of all tests of a program: tools/check waits 15 minutes for it
SECRET = "host-secret-7f1c"


class Failed(Exception):
    """A check that did not hold."""


class Skip(Exception):
    """What is needed is not here; the reason is shown."""


def check(is_true, text=""):
    if not is_true:
        raise Failed(text() if callable(text) else text)


def same(got, expected, what=""):
    check(got == expected, lambda: f"{what}: {got!r}, expected {expected!r}")


def wait_until(true_when, seconds=PATIENCE, what=""):
    """Returns what it returned at last; fails when the time is over: a busy machine gets more than a caller thought of."""
    seconds = max(seconds, PATIENCE)
    deadline = time.monotonic() + seconds
    while True:
        value = true_when()
        if value:
            return value
        check(time.monotonic() < deadline, f"still not after {seconds} s: {what() if callable(what) else what or true_when}")
        time.sleep(0.01)


# ---- processes -------------------------------------------------------------------------------

def stat_of(pid):
    """(name, parent) or None."""
    text = census.read(f"/proc/{pid}/stat")
    if not text:
        return None
    head, _, tail = text.rpartition(")")
    return head.partition("(")[2], int(tail.split()[1])


def children_of(pid):
    """pid -> name"""
    stats = {p: stat_of(p) for p in census.pids()}
    return {p: s[0] for p, s in stats.items() if s and s[1] == pid}


def memory_kib(pid, field="VmRSS"):
    found = re.search(rf"^{field}:\s+(\d+)", census.read(f"/proc/{pid}/status"), re.M)
    return int(found[1]) if found else 0


def private_kib(pid):
    """What is in nobody else's memory."""
    text = census.read(f"/proc/{pid}/smaps_rollup")
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


# ---- clients ---------------------------------------------------------------------------------

class Answer:
    """One answer of the API."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """Of a problem object."""
        with contextlib.suppress(ValueError, AttributeError):
            return self.json.get("code")
        return None

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket, or TCP when the address is a pair."""

    def __init__(self, address, timeout):
        super().__init__("localhost", timeout=timeout)
        self.address = address

    def connect(self):
        self.sock = connect(self.address, self.timeout)


def connect(address, timeout=PATIENCE):
    if isinstance(address, tuple):
        return socket.create_connection(address, timeout)
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    try:
        s.connect(str(address))
    except OSError:
        s.close()
        raise
    return s


def quote(path):
    """Bytes or text as they go into a target."""
    return urllib.parse.quote(path, safe="/")


def lend(address, target, body):
    """As every client does before it names host paths (src/wire/lend.h); closed, what is lent once is lent no more."""
    folder = pathlib.Path(str(address)).parent
    said = None if isinstance(address, tuple) else _lend.message(target, body)
    if said is None or not (folder / "lend.sock").exists():
        return contextlib.nullcontext()
    s = connect(folder / "lend.sock")
    s.sendall(said)
    s.recv(1)
    return s


class Client:
    """Not for several threads at once. What was refused is remembered for API-16."""

    refusals = []  # (request line, body)

    def __init__(self, address, token=None, timeout=3 * PATIENCE):
        self.address, self.token = address, token
        self.connection = Connection(address, timeout)

    def send(self, method, path, body=None, headers=None):
        """The request alone; returns the response object, not yet read."""
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        try:
            with lend(self.address, path, body):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused early: the answer is there
                    self.connection.request(method, path, body, headers)
                return self.connection.getresponse()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def call(self, method, path, body=None, headers=None):
        response = self.send(method, path, body, headers)
        try:
            answer = Answer(response.status, response.headers, response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.status >= 400:
            Client.refusals.append((f"{method} {path} {body!r}", answer.body))
        return answer

    def get(self, path, **headers):
        return self.call("GET", path, headers=headers)

    def post(self, path, body=None, **headers):
        return self.call("POST", path, {} if body is None else body, named(headers))

    def put(self, path, body, **headers):
        return self.call("PUT", path, body, named(headers))

    def delete(self, path):
        return self.call("DELETE", path)

    def ok(self, method, path, body=None, **headers):
        """A JSON answer that must be a good one."""
        answer = self.call(method, path, body, named(headers))
        check(200 <= answer.status < 300, lambda: f"{method} {path}: {answer}")
        return answer.json if answer.body else None

    def create(self, spec=None, **keys):
        answer = self.post("/v1/sandboxes", {**(spec or {}), **keys})
        same(answer.status, 201, f"create {spec}: {answer}")
        return answer.json

    def execute(self, sandbox, cmd, **options):
        return self.ok("POST", f"/v1/sandboxes/{id_of(sandbox)}/exec", {"cmd": cmd, **options})

    def remove(self, sandbox):
        answer = self.delete(f"/v1/sandboxes/{id_of(sandbox)}")
        same(answer.status, 204, f"delete: {answer}")

    def remove_all(self):
        while some := self.ok("GET", "/v1/sandboxes?limit=1000")["sandboxes"]:
            for s in some:
                self.delete(f"/v1/sandboxes/{s['id']}")

    def file(self, sandbox, path):
        """The target of a file."""
        return f"/v1/sandboxes/{id_of(sandbox)}/files{quote(path)}"

    def close(self):
        self.connection.close()


def named(headers):
    return {name.replace("_", "-"): value for name, value in headers.items()}


# In a script: a child that is left running, seen under its own name before the script goes on.
ASLEEP = "{0} & until grep -qx sleep /proc/$!/comm; do :; done; "


def id_of(thing):
    return thing["id"] if isinstance(thing, dict) else thing


def decoded(process, name="stdout"):
    """The bytes of a stream of a process object."""
    text = process[name]
    return base64.b64decode(text) if process["encoding"] == "base64" else text.encode()


def raw(address, data, seconds=PATIENCE, is_half_closed=False):
    """Sends bytes as they are; returns all that comes back until the end or the time is over."""
    with connect(address, seconds) as s:
        with contextlib.suppress(OSError):  # an early answer may come with a reset
            s.sendall(data)
            if is_half_closed:
                s.shutdown(socket.SHUT_WR)
        return read_all(s, seconds)


def read_all(s, seconds):
    deadline, got = time.monotonic() + seconds, b""
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            s.settimeout(max(0.01, deadline - time.monotonic()))
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
    return got


def status_of(data):
    """Of raw bytes; None when there is no answer at all."""
    found = re.match(rb"HTTP/1\.1 (\d\d\d) ", data)
    return int(found[1]) if found else None


class Stream:
    """A live process as our CLI has it (wire/stream.h)."""

    def __init__(self, address, target, body=None, method="POST", token=None):
        text = json.dumps(body).encode() if body is not None else b""
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: caisson-stream",
                 f"Content-Length: {len(text)}"] + ([f"Authorization: Bearer {token}"] if token else [])
        self.lent = lend(address, target, text)
        self.socket = connect(address)
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        self.ahead = b""
        while b"\r\n\r\n" not in self.ahead:
            piece = self.socket.recv(65536)
            check(piece, f"upgrade: the connection ends: {self.ahead!r}")
            self.ahead += piece
        head, _, self.ahead = self.ahead.partition(b"\r\n\r\n")
        same(status_of(head + b"\r\n"), 101, f"upgrade: {head!r} {self.ahead!r}")

    def take(self, n):
        while len(self.ahead) < n:
            piece = self.socket.recv(65536)
            check(piece, "stream: the connection ends")
            self.ahead += piece
        taken, self.ahead = self.ahead[:n], self.ahead[n:]
        return taken

    def frame(self):
        """(letter, bytes)"""
        letter, length = struct.unpack(">c3xI", self.take(8))
        return letter.decode(), self.take(length)

    def say(self, letter, data=b""):
        self.socket.sendall(struct.pack(">c3xI", letter.encode(), len(data)) + data)

    def rest(self):
        """Everything to the end: streams by letter, and the last object."""
        out = {"O": b"", "E": b"", "L": b"", "S": b"", "X": b"", "F": b""}
        while True:
            try:
                letter, data = self.frame()
            except Failed:
                return out
            out[letter] += data

    def close(self):
        self.socket.close()
        with self.lent:
            pass


class WebSocket:
    """Just enough of RFC 6455, and all that it forbids."""

    def __init__(self, address, target, headers=()):
        self.socket = connect(address)
        lines = [f"GET {target} HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *headers]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        self.ahead = b""
        while b"\r\n\r\n" not in self.ahead:
            piece = self.socket.recv(65536)
            if not piece:
                break
            self.ahead += piece
        head, _, self.ahead = self.ahead.partition(b"\r\n\r\n")
        self.head = head

    def send(self, opcode, data=b"", is_final=True, mask=b"abcd", claim=None, reserved=0):
        n = len(data) if claim is None else claim
        head = bytes([(0x80 if is_final else 0) | reserved | opcode])
        bit = 0x80 if mask else 0
        if n < 126:
            head += bytes([bit | n])
        elif n < 65536:
            head += bytes([bit | 126]) + struct.pack(">H", n)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", n)
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data)) if mask else data
        self.socket.sendall(head + (mask or b"") + masked)

    def frames(self, seconds=PATIENCE):
        """(opcode, bytes) until the end of the connection or of the time."""
        data, at = self.ahead + read_all(self.socket, seconds), 0
        while len(data) - at >= 2:
            opcode, n = data[at] & 15, data[at + 1] & 127
            at += 2
            if n >= 126:
                size = 2 if n == 126 else 8
                n = int.from_bytes(data[at:at + size], "big")
                at += size
            yield opcode, data[at:at + n]
            at += n

    def close(self):
        self.socket.close()


# ---- the host's side -------------------------------------------------------------------------

IN_ALL = 0x00000fff  # every event of inotify(7)


class Canary:
    """Files of the host that nobody may touch: content, names and every access are watched."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        for name in ("sub", "empty"):
            (HOST / name).mkdir(mode=0o777)
        (HOST / "canary").write_text(SECRET)
        (HOST / "sub/canary").write_text(SECRET)
        for path in (HOST / "canary", HOST / "sub/canary"):
            path.chmod(0o666)  # whoever reaches it may: it is the walls that stop him
        HOST.chmod(0o777)
        self.watch()

    def watch(self):
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for path in (HOST, HOST / "sub", HOST / "empty", HOST / "canary", HOST / "sub/canary"):
            check(self.libc.inotify_add_watch(self.fd, str(path).encode(), IN_ALL) >= 0, "inotify")

    def touched(self):
        """What happened since the last look."""
        problems = []
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.fd, 65536)
            while len(data) >= 16:
                _, mask, _, n = struct.unpack("iIII", data[:16])
                problems.append(f"event {mask:#x} {data[16:16 + n].rstrip(bytes(1)).decode(errors='replace')}")
                data = data[16 + n:]
        os.close(self.fd)  # our own look is no touch
        names = sorted(str(p.relative_to(HOST)) for p in HOST.rglob("*"))
        texts = {(HOST / n).read_text() for n in names if n.endswith("canary")}
        if names != ["canary", "empty", "sub", "sub/canary"] or texts != {SECRET}:
            problems.append(f"changed: {names} {texts}")
        self.watch()
        return problems[:8]


# ---- the daemon ------------------------------------------------------------------------------

class Daemon:
    """caisson-launcher with folders of its own; also started again on what a dead one left."""

    def __init__(self, name="main", uid=None, options=(), rlimits=(), program="caisson-launcher", env=None):
        self.home, self.uid, self.options, self.rlimits = HOME / name, uid, list(options), rlimits
        self.program, self.env = program, env or {}
        self.state, self.run = self.home / "state", self.home / "run"
        self.socket = self.run / "api.sock"
        self.log = self.home / "log"
        self.process = None
        self.home.mkdir(parents=True, exist_ok=True)
        if uid is not None:
            os.chown(self.home, uid, uid)

    def spawn(self):
        extra = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}

        def limit():
            for which, value in self.rlimits:
                resource.setrlimit(which, (value, value))
        argv = [cell.BIN / self.program, "--state", self.state, "--run", self.run, *self.options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                env={"PATH": os.environ["PATH"], "HOME": "/nowhere", **self.env,
                     **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}},
                preexec_fn=limit if self.rlimits else None, **extra)

    def start(self):
        self.spawn()
        self.wait_ready()
        return self

    def is_ready(self):
        """The daemon of this launcher, not one that is about to end because its own is dead."""
        if self.relatives("caissond") != [self.pid]:
            return False
        with contextlib.suppress(OSError, http.client.HTTPException):
            c = Client(self.socket, timeout=5)
            try:
                return c.get("/v1/health").status == 200
            finally:
                c.close()
        return False

    def wait_ready(self, seconds=PATIENCE):
        begin = time.monotonic()
        while not self.is_ready():
            check(self.process.poll() is None, lambda: f"the launcher ended: {self.tail()}")
            check(time.monotonic() - begin < seconds, lambda: f"no daemon after {seconds} s: {self.tail()}")
            time.sleep(0.005)
        return time.monotonic() - begin

    def tail(self):
        return census.read(self.log)[-1500:]

    @property
    def pid(self):
        """Of caissond, or None."""
        found = [p for p, name in children_of(self.process.pid).items() if name == "caissond"]
        return found[0] if found else None

    def relatives(self, name):
        """Processes of that name with our folder, but the launcher itself: parents may have died."""
        return [p for p in census.pids(but=[self.process.pid]) if (s := stat_of(p)) and s[0].startswith(name)
                and f"\0{self.run}\0" in census.read(f"/proc/{p}/cmdline") + "\0"]

    def monitors(self):
        """Of all its sandboxes; not what they have cloned into one and that does not execute yet."""
        own = len(census.read("/proc/self/status").partition("NSpid:")[2].splitlines()[0].split())
        return [p for p in self.relatives("caisson-launc")
                if len(census.read(f"/proc/{p}/status").partition("NSpid:")[2].partition("\n")[0].split()) == own]

    def client(self, **options):
        return Client(self.socket, **options)

    def port(self):
        """Of its first TCP address."""
        return int(re.findall(r"\(port (\d+)\)", census.read(self.log))[-1])

    def tcp(self, token=None, **options):
        return Client(("127.0.0.1", self.port()), token=token, **options)

    def kill(self):
        """Launcher and daemon, not the monitors."""
        pid = self.pid
        self.process.kill()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def wait_clean(self):
        """Until nothing of the sandboxes that were removed is left."""
        def rest():
            census.reap()
            return [p.name for p in (self.run / "sb").glob("*.sock")], self.monitors()

        try:
            wait_until(lambda: rest() == ([], []))
        except Failed:
            left = self.client().get("/v1/sandboxes")
            raise Failed(f"left of removed sandboxes: {rest()}, known: {left.json}\n{self.tail()}") from None

    def stop(self, seconds=PATIENCE):
        """Orderly. Sandboxes that are kept live on."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                raise Failed(f"the launcher does not end in {seconds} s") from None


# ---- tests -----------------------------------------------------------------------------------

TESTS = []  # (title, function, is_own)
SURROUNDINGS = []  # sessions of servers that run beside all tests


def test(title, own=False, when=True):
    """A test for the common daemon; `own`: it starts, kills or exhausts daemons of its own."""
    def add(function):
        if when:
            TESTS.append((title, function, own))
        return function
    return add


class Api:
    """What a test works with. The common daemon starts when it is first wanted."""

    def __init__(self, options=()):
        self.options = options
        self._daemon = None
        self.client_ = None

    @property
    def daemon(self):
        if self._daemon is None:
            self._daemon = Daemon(options=self.options).start()
        return self._daemon

    @property
    def client(self):
        """One kept connection for the simple things."""
        if self.client_ is None:
            self.client_ = self.daemon.client()
        return self.client_

    def settle(self):
        """After a test: nothing of it is left, and the daemon is the one that it was."""
        if self._daemon is None:
            return
        self.client.close()
        self.client.remove_all()

    def end(self):
        if self._daemon is not None:
            self.client.remove_all()
            self.client.close()
            self._daemon.stop()
            self._daemon = self.client_ = None


def run_one(api, function, is_own):
    """Returns its problems, and why it was skipped or None."""
    before = None if is_own or api._daemon is None else api.daemon.pid
    try:
        function(api)
        if not is_own:
            api.settle()
    except Skip as skip:
        return [], str(skip)
    except Failed as failed:
        problems = [str(failed)]
    except Exception:  # pylint: disable=broad-except  # a test that breaks has failed; the next may run
        problems = [traceback.format_exc()]
    else:
        problems = []
    if before and api.daemon.pid != before:
        problems.append(f"caissond died: {api.daemon.tail()}")
        api.daemon.wait_ready()
    if problems:
        with contextlib.suppress(Exception):  # the next test may find a clean place all the same
            clean_up(api, is_own)
    return problems, None


def session_of(pid):
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def clean_up(api, is_own):
    """After a failure. A daemon of the test's own may be left, and its sandboxes."""
    if not is_own:
        api.settle()
        return
    mine = [api._daemon.process.pid, api._daemon.pid] if api._daemon else []
    mine += [p for p in census.pids() if session_of(p) in SURROUNDINGS]
    wait_until(lambda: (census.kill_all(but=mine), census.reap(), len(census.pids(but=mine)) == 0)[2])
    Daemon("sweeper").start().stop()


def lo_up():
    """A new network namespace has its loopback down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14s", b"lo", 1, b""))  # SIOCSIFFLAGS, IFF_UP


def enter(name):
    cell.enter(name)
    lo_up()
    HOME.mkdir(mode=0o755)
    HOST.mkdir(mode=0o755)
    SOURCE.mkdir(mode=0o755)


def members_of(text):
    """Of a cgroup that should not be there."""
    kind, _, path = text.partition(" ")
    return f": {census.read(path + '/cgroup.procs').split()}" if kind == "cgroup" else ""


def leftovers(before):
    """What a census finds that was not there before; the kernel gets a moment."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = census.take() - before
        if not found or time.monotonic() > deadline:
            return [text + members_of(text) for text in sorted(found)]
        time.sleep(0.02)


def warm():
    """A first sandbox: what all share afterwards (skeleton, top of the cgroups) is no leftover."""
    for uid in (None, USER_ID):
        d = Daemon("warm" if uid is None else "warm-user", uid=uid).start()
        c = d.client()
        c.remove(c.create())
        c.close()
        d.stop()


def run_inside(name, words, options=(), extra=None, prepare=None):
    """All tests, or those with one of the words in their titles. Prints without numbers.

    `prepare` makes what surrounds them and returns the function that takes it away again."""
    enter(name)
    finish = prepare() if prepare else None
    warm()
    before = census.take()
    api = Api(options)
    for title, function, is_own in TESTS:
        if words and not any(w in title for w in words):
            continue
        begin = time.monotonic()
        problems, skip = run_one(api, function, is_own)
        report(title, problems, time.monotonic() - begin, skip)
    problems = []
    try:
        api.end()
        if finish:
            finish()
        problems = leftovers(before)
    except Failed as failed:
        problems = [str(failed)]
    report("census: no process, mount, cgroup, namespace or file is left", shorten(problems), 0)
    if extra:
        extra()


def shorten(lines, most=24):
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more"]


def report(title, problems, seconds, skip=None):
    for problem in problems:
        print("# " + problem.replace("\n", "\n# "))
    end = f"({seconds:.1f} s)" if skip is None else f"# SKIP {skip}"
    print(f"{'not ok' if problems else 'ok'} - {title} {end}", flush=True)


def main(file, seconds=PROGRAM_SECONDS, shares=(), **options):
    """Outside: makes the cell and counts. Inside: runs the tests."""
    if sys.argv[1:2] == ["--cell"]:
        run_inside(sys.argv[-1], sys.argv[2:-1], **options)
        return 0
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root, for a cell with cgroups of its own")
        return 0
    cell.remove_stale()
    inside = cell.Cell([sys.executable, os.path.abspath(file), "--cell", *sys.argv[1:]],
                       pathlib.Path(file).stem, shares, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True)
    try:
        return count(inside.process, seconds)
    finally:
        inside.end()


def count(process, seconds):
    """Numbers the results as they come; lines of the table come last."""
    n = failed = 0
    table = []
    clock = threading.Timer(seconds, process.kill)
    clock.daemon = True
    clock.start()
    for line in process.stdout:
        if line.startswith(("ok - ", "not ok - ")):
            n += 1
            failed += line.startswith("not")
            line = line.replace("ok - ", f"ok {n} - ", 1)
        if line.startswith("| "):
            table.append("# " + line[2:])
            continue
        print(line, end="", flush=True)
    status = process.wait()
    clock.cancel()
    if status != 0:
        n, failed = n + 1, failed + 1
        print(f"not ok {n} - the tests came to their end (status {status})")
    print(f"1..{n}")
    print("".join(table), end="")
    return 1 if failed else 0
