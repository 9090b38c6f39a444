"""chain.py - the chain that ships, in a cell: CLI, daemon, monitor as they are, and caisson-launcher-test.

The launcher reads the faults of the next launch from a file and shows the calls of all its processes in another
(src/os/fault.h). One daemon serves all launches of a suite. A fault may end it: the next launch starts another, which
also removes what the dead one left, as on a real host.
"""
import os
import pathlib
import socket
import struct
import subprocess
import time

import cell
import census

HOME = pathlib.Path("/run/chain")
HELPERS = {"caissond", "caisson-ledger", "caisson-gate", "caisson-cache", "caisson-hook"}
START_SECONDS = 60
ENTRY = struct.Struct("Qi28s")  # struct fault in src/os/fault.c
TRACE_MAX = 4096
RUNNING = []


class Chain:
    """A launcher of root's, or of a user's."""

    def __init__(self, uid=None):
        self.uid = uid
        self.home = HOME / ("root" if uid is None else "user")
        self.run, self.state = self.home / "run", self.home / "state"
        self.faults, self.map = self.home / "faults", self.home / "map"
        self.socket = self.run / "api.sock"
        self.process, self.starts = None, 0

    def options(self):
        return {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}

    def start(self):
        if not self.home.exists():
            self.home.mkdir(parents=True)
            self.home.chmod(0o755)
            if self.uid is not None:
                os.chown(self.home, self.uid, self.uid)
        self.faults.write_text("")
        self.faults.chmod(0o644)
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(
                [cell.BIN / "caisson-launcher-test", "--state", self.state, "--run", self.run], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd="/", start_new_session=True, **self.options(),
                env={"PATH": os.environ["PATH"], "CAISSON_FAULTS": str(self.faults), "CAISSON_FAULT_MAP": str(self.map)})
        RUNNING.append(self)
        self.starts += 1
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no daemon: {census.read(self.home / 'log')[-600:]}")
            time.sleep(0.01)

    def answers(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            try:
                s.connect(str(self.socket))
                s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return s.recv(64).startswith(b"HTTP/1.1 200")
            except OSError:
                return False

    def is_alive(self):
        """Launcher and daemon. A launcher whose daemon died starts another: that is awaited."""
        if self.process is None or self.process.poll() is not None:
            return False
        return self.answers()

    def ensure(self):
        """Before a launch: there is a daemon."""
        if self.is_alive():
            return
        self.end()
        self.start()

    def family(self):
        """Pids of launcher, daemon and helpers while the launcher lives; what they start for a sandbox is not among them."""
        if self.process is None or self.process.poll() is not None:
            return set()
        own = {self.process.pid}
        for pid in census.all_pids():
            status = census.status_of(pid)
            if status.get("PPid") == str(self.process.pid) and status.get("Name") in HELPERS:
                own.add(pid)
        return own

    def plan(self, environment):
        """The faults of the next launch: CAISSON_X=y as X=y."""
        lines = [f"{name.removeprefix('CAISSON_')}={value}\n" for name, value in environment.items()]
        self.faults.write_text("".join(lines))

    def calls(self):
        """(pid, name) of all calls since the last launch began."""
        data = self.map.read_bytes()
        count = struct.unpack_from("q", data)[0]
        count = 0 if count > TRACE_MAX else count
        found = []
        for n in range(count):
            _, pid, name = ENTRY.unpack_from(data, 8 + n * ENTRY.size)
            found.append((str(pid), name.partition(b"\0")[0].decode()))
        return found

    def disarm(self):
        """A counter that no fault is ever at: what follows is not part of the launch."""
        with open(self.map, "r+b") as f:
            f.write(struct.pack("q", 1 << 40))

    def end(self):
        if self in RUNNING:
            RUNNING.remove(self)
        if self.process is not None and self.process.poll() is None:
            self.disarm()
            self.process.terminate()
            self.process.wait(START_SECONDS)
        self.process = None


def families():
    return {pid for chain in RUNNING for pid in chain.family()}
