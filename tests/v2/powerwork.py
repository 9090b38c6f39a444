#!/usr/bin/env python3
"""In the guest of tests/v2/powerloss: work on a store that lies on the third disk. A line `ack {...}` for all that is said to be on disk.

The host reads these lines and how far the log of the disk's writes has come by then. Nothing is closed in order.
"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "ws"))

from place import Work, lib, wait_until  # noqa: E402
from lib import Daemon, test  # noqa: E402

DISK = os.environ.get("POWER_DISK", "/dev/vdc")
ROUNDS = int(os.environ.get("POWER_ROUNDS", "8"))
COMMANDS = (
    "mkdir -p d$N/e; seq 2000 > d$N/a; head -c 300000 /dev/urandom > d$N/large; for i in 1 2 3 4 5 6 7 8 9; do echo $N $i > d$N/e/$i; done; ln -s a d$N/link",
    "mv d$P/a d$P/b; echo over > d$P/e/1; rm d$P/e/2; chmod 600 d$P/e/3; cp -r d$P copy$N; seq 9 >> d$P/b",
    "rm -r copy$P; mv d$(($N - 2)) moved$N; truncate -s 5M sparse; echo x | dd of=sparse bs=1 seek=4000000 conv=notrunc 2>/dev/null",
)


def prepare():
    subprocess.run(["mount", "-o", "commit=5" + (",loop" if os.path.isfile(DISK) else ""), DISK, lib.HOME], check=True)
    return lambda: None


def say(**what):
    print("# ack " + json.dumps(what), flush=True)


@test("work, and what is told to be on disk", own=True)
def _(_api):
    d = Daemon("power").start()
    c = d.client()
    w = Work(c, "w")
    s = w.sandbox()
    for n in range(ROUNDS):
        c.execute(s, f"N={n} P={n - 1}; {COMMANDS[n % len(COMMANDS)]}; echo {n} > n")
        tree = w.hash()
        point = w.post("snapshots", {"label": f"s{n}"})["id"] if n % 3 == 2 else w.history()["head"]
        wait_until(lambda point=point: next(p for p in w.history()["points"] if p["id"] == point)["durable"], 60, "it is on disk")
        say(kind="point", id=point, hash=tree, n=n)
        if n % 4 == 1:
            w.post("undo")
            w.post("redo")
        if n % 3 == 0:
            c.ok("POST", "/v1/run", {"cmd": f"echo {n} > out", "collect": ["out"]})
            record = json.loads(c.get("/v1/events?kind=run.collected").body.splitlines()[-1])
            say(kind="record", seq=record["seq"], hash=record["hash"], n=n)
    say(kind="end", n=ROUNDS)
    os._exit(0)  # without a word to the daemon


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=prepare))
