#!/usr/bin/env python3
"""ledger.py - what the ledger costs: records a second, verifying, and programs that commands start.

A part of bench/run; alone: bench/ledger.py prints the same rows. The writer is the real program, fed as the daemon
feeds it; the daemon's own share is in the exec rows of bench/daemon.py, which are measured with the ledger on.
"""
import contextlib
import json
import os
import pathlib
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEDGER = ROOT / "build/caisson-ledger"
HEADER = (ROOT / "src/wire/ledger.h").read_text()
NAME = int(re.search(r"LEDGER_NAME_SIZE (\d+)", HEADER)[1])
LIFE = int(re.search(r"LEDGER_LIFE_SIZE (\d+)", HEADER)[1])
KINDS = re.findall(r"^\tLEDGER_([A-Z_]+),", re.search(r"enum ledger_kind \{(.*?)\};", HEADER, re.S)[1], re.M)
STARTED, GONE = KINDS.index("PROCESS_STARTED"), KINDS.index("SANDBOX_GONE")
HELLO, APPEND, ACK = 1, 2, 4
RATE = 10_000
SECONDS = 10
SANDBOXES = 40
DATA = b'{"pid":12345,"program":"/usr/bin/python3 -m pytest -q tests/unit/test_of_something.py"}\0'


class Writer:
    """caisson-ledger, between us and a folder."""

    def __init__(self, folder):
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.near = near
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        keep = [os.dup(far.fileno()), os.dup(here)]

        def place():
            high = [os.dup2(fd, 50 + i) for i, fd in enumerate(keep)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
        self.process = subprocess.Popen([LEDGER], preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL)
        for fd in (*keep, here):
            os.close(fd)
        far.close()
        self.socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(near, [b"\0"], [other.fileno()])
        other.close()
        self.socket.send(struct.pack(f"=II{LIFE}s", HELLO, 1, b"be9c"))
        self.written = self.synced = 0

    def say(self, num, kind=STARTED):
        names = [b"bench", b"sb_%d" % (num % SANDBOXES), b"", b"px_bench", b""]
        self.socket.send(struct.pack("=IIQ" + f"{NAME}s" * 5, APPEND, kind, num, *names) + DATA)

    def hear(self, is_waiting=False):
        """All that was said to us."""
        while True:
            try:
                packet = self.socket.recv(65536, 0 if is_waiting else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if struct.unpack_from("=I", packet)[0] == ACK:
                self.written, self.synced = struct.unpack_from("=QQ", packet, 8)
                is_waiting = False

    def close(self):
        self.socket.close()
        self.near.close()
        self.process.wait(30)


def sustained(folder):
    """RATE records a second for SECONDS: how long until they are acknowledged, and on disk."""
    w = Writer(folder)
    sent, lags, sync_lags, said_at = 0, [], [], {}
    begin = time.monotonic()
    while sent < RATE * SECONDS or w.synced < sent:
        due = min(RATE * SECONDS, int((time.monotonic() - begin) * RATE))
        while sent < due:
            sent += 1
            w.say(sent)
            if sent % 100 == 0:
                said_at[sent] = [time.monotonic(), False]
        w.hear()
        now = time.monotonic()
        for num in [n for n in said_at if n <= w.written]:
            at, is_written = said_at[num]
            if not is_written:
                lags.append(now - at)
                said_at[num][1] = True
            if num <= w.synced:
                sync_lags.append(now - at)
                del said_at[num]
        time.sleep(0.0005)
        if now - begin > 6 * SECONDS:
            break
    took = time.monotonic() - begin
    w.close()
    lags.sort(), sync_lags.sort()
    return {"records": sent, "per_second": round(w.synced / took), "ack_ms_p50": 1000 * statistics.median(lags),
            "ack_ms_p99": 1000 * lags[len(lags) * 99 // 100], "disk_ms_p50": 1000 * statistics.median(sync_lags),
            "disk_ms_p99": 1000 * sync_lags[len(sync_lags) * 99 // 100]}


def flat_out(folder):
    """As fast as the writer takes them."""
    w, n, begin = Writer(folder), 200_000, time.monotonic()
    for num in range(1, n + 1):
        w.say(num, STARTED if num % 5 else GONE)  # a new life of the sandbox: no budget is spent
        if num % 256 == 0:
            w.hear()
    while w.synced < n:
        w.hear(True)
    took = time.monotonic() - begin
    w.close()
    return {"per_second": round(n / took)}


def verify(folder):
    begin = time.monotonic()
    seen = json.loads(subprocess.run([LEDGER, "verify", "--ledger", folder, "--json"], capture_output=True, check=True).stdout)
    took = time.monotonic() - begin
    return {"records": seen["records"], "per_second": round(seen["records"] / took),
            "bytes": sum(p.stat().st_size for p in pathlib.Path(folder).glob("*.jsonl"))}


PROGRAMS = 400
LOOP = f"i=0; while [ $i -lt {PROGRAMS} ]; do /bin/true; i=$((i+1)); done"


def programs(tmp):
    """What a program that is started inside costs, with a record of it and without."""
    import daemon  # pylint: disable=import-outside-toplevel  # it is not needed for the rest

    best = {"on": [], "off": []}
    with contextlib.ExitStack() as stack:
        boxes = {}
        for word in best:
            d = stack.enter_context(daemon.Daemon(tmp / f"ledger-{word}", options=("--process-events", word)))
            boxes[word] = d, d.ask("POST", "/v1/sandboxes", {})[1]["id"]
        for _ in range(15):
            for word, (d, box) in boxes.items():
                done = d.ask("POST", f"/v1/sandboxes/{box}/exec", {"cmd": ["/bin/sh", "-c", LOOP]})[1]
                best[word].append(done["ms"] * 1000 / PROGRAMS)
    on, off = (min(best[w]) for w in ("on", "off"))
    return {"on_us": on, "off_us": off, "added_us": on - off}


def bench(tmp):
    out = {}
    for name, run in (("sustained", sustained), ("flat_out", flat_out)):
        folder = pathlib.Path(tmp) / f"ledger-{name}"
        folder.mkdir()
        out[name] = run(folder)
    out["verify"] = verify(pathlib.Path(tmp) / "ledger-flat_out")
    if os.geteuid() == 0:
        out["programs"] = programs(pathlib.Path(tmp))
    show(out)
    return out


def show(r):
    s = r["sustained"]
    print(f"\nledger: {s['per_second']:,} records/s of {RATE:,} asked; acknowledged {s['ack_ms_p50']:.1f} ms p50, {s['ack_ms_p99']:.1f} p99; "
          f"on disk {s['disk_ms_p50']:.1f} ms p50, {s['disk_ms_p99']:.1f} p99")
    print(f"ledger: at most {r['flat_out']['per_second']:,} records/s; verify {r['verify']['per_second']:,} records/s")
    if "programs" in r:
        p = r["programs"]
        print(f"ledger: a program started inside: {p['off_us']:.0f} us, with a record {p['on_us']:.0f} us")


def verdicts(r):
    """(what, figure, budget)"""
    rows = [(f"ledger, {RATE:,} records/s asked / reached", RATE / r["sustained"]["per_second"], 1.02),
            ("ledger, on disk, p99, ms", r["sustained"]["disk_ms_p99"], 50),
            ("ledger, 200,000 records/s / verified", 200_000 / r["verify"]["per_second"], 1.0)]
    if "programs" in r:
        rows.append(("ledger, record of a program started inside, us", r["programs"]["added_us"], 50))
    return rows


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as where:
        os.chmod(where, 0o755)
        for what, figure, budget in verdicts(bench(where)):
            print(f"{'within' if figure <= budget else 'OVER':8}{what}: {figure:.2f} (budget {budget})")
