"""api.py - a daemon of our own to ask, and TAP; the standard library is enough.

The daemon is the one of $CAISSON_SOCKET, or one that is started here from $CAISSON_BUILD (build/
unless given), in a folder that is removed at the end.
"""
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "sdk/python"))

from caisson import _lend  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD", HERE.parent.parent / "build")).resolve()
PROGRAMS = ["caisson-launcher", "caissond", "caisson-tree", "caisson-init"]
ANSWER_S = 200


# ---- TAP ------------------------------------------------------------------------------------

class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def check(self, name, is_ok, *said):
        self.count += 1
        self.failed += not is_ok
        print(f"{'ok' if is_ok else 'not ok'} {self.count} - {name}", flush=True)
        if not is_ok:
            for line in "\n".join(str(s) for s in said)[:4000].splitlines():
                print(f"#   {line}")
        return is_ok

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def end(self):
        print(f"1..{self.count}")
        sys.exit(self.failed > 0)


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


# ---- HTTP -----------------------------------------------------------------------------------

class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=ANSWER_S):
        super().__init__("caisson", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()
        self.type = (self.headers["Content-Type"] or "").partition(";")[0]

    @property
    def json(self):
        return json.loads(self.body) if self.body else None

    @property
    def code(self):
        return self.json["code"] if self.type == "application/problem+json" else None

    def __repr__(self):
        return f"{self.status} {self.type} {self.body[:1500]!r}"


class Daemon:
    def __init__(self, *options, env=None):
        self.folder = self.process = None
        self.socket = os.environ.get("CAISSON_SOCKET")
        if self.socket:
            return
        missing = [p for p in PROGRAMS if not (BUILD / p).exists()]
        if missing:
            skip_all(f"{', '.join(missing)}: not built")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-api."))
        self.folder.chmod(0o755)  # the daemon's own id goes through it
        self.socket = str(self.folder / "run/api.sock")
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            [BUILD / "caisson-launcher", "--state", self.folder / "state", "--run", self.folder / "run",
             *options], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env=env)
        if not self.is_ready():
            said = self.said()
            self.end()
            skip_all(f"no daemon can be started here: {said.splitlines()[-1:] or 'it says nothing'}")

    def is_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end and (not self.process or self.process.poll() is None):
            try:
                if self.ask("GET", "/v1/health").status == 200:
                    return True
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.02)
        return False

    def said(self):
        return (self.folder / "log").read_text(errors="replace") if self.folder else ""

    def connect(self, timeout=ANSWER_S):
        return UnixConnection(self.socket, timeout)

    def ask(self, method, target, body=None, headers=None):
        """One request, on a connection of its own; what is not bytes goes as JSON."""
        connection = self.connect()
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        lent = self.lend(target, body)
        try:
            try:
                connection.request(method, target, body, headers or {})
            except BrokenPipeError:
                pass  # it was refused before all of it was sent; the answer says why
            return Answer(connection.getresponse())
        finally:
            connection.close()
            if lent:
                lent.close()

    def lend(self, target, body):
        """Host paths of a request, as every client does before it names them (docs/operating.md)."""
        said, path = _lend.message(target, body), os.path.join(os.path.dirname(self.socket), "lend.sock")
        if said is None or not os.path.exists(path):
            return None
        lent = socket.socket(socket.AF_UNIX)
        lent.connect(path)
        lent.sendall(said)
        lent.recv(1)
        return lent

    # The processes that are ours: the launcher, and what it started.

    def children(self):
        """{pid: name} of the launcher's own children: the daemon and the monitors."""
        pid, found = self.process.pid, {}
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                text = path.read_text()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:]
            if int(rest.split()[1]) == pid and rest[0] != "Z":
                found[int(text.split(" ", 1)[0])] = name
        return found

    def pid(self):
        return next((p for p, name in self.children().items() if name == "caissond"), None)

    def memory(self):
        """Private memory of the daemon and of all monitors, in bytes."""
        total = 0
        for pid in self.children():
            try:
                lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(l.split()[1]) for l in lines if l.startswith("Private_")) << 10
        return total

    def restart(self):
        """Kills the daemon; its launcher starts another."""
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 60
        while self.pid() in (None, pid) and time.monotonic() < end:
            time.sleep(0.02)
        return self.is_ready()

    def end(self):
        if not self.process:
            return
        try:
            for sandbox in self.ask("GET", "/v1/sandboxes").json["sandboxes"]:
                if sandbox["state"] not in ("gone", "failed"):
                    self.ask("DELETE", f"/v1/sandboxes/{sandbox['id']}")
        except (OSError, ValueError, KeyError):
            pass  # a daemon that does not answer is ended all the same
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
