#!/usr/bin/env python3
"""After a loss of power: the disk of tests/v2/powerloss as it was at many moments, each with a daemon that starts on it. TAP.

    tests/v2/powerlook.py        uses POWER_DIR: empty.img, log.img, acks.json

A moment is a number of entries of the log. What was flushed by then is on the disk; of the writes since the last flush a random
part is, in no order. Everything that was acknowledged before has to be there, whole, and fsck has nothing to find.
"""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "ws"))

import steps  # noqa: E402
from place import Work, check, lib, same, wait_until  # noqa: E402
from lib import Daemon, test  # noqa: E402

FOLDER = pathlib.Path(os.environ.get("POWER_DIR", "build/power")).resolve()
MOMENTS = int(os.environ.get("POWER_MOMENTS", "16"))
SECTOR, FLUSH, DISCARD = 512, 1, 4
MAGIC = 0x6A736677736872  # dm-log-writes; QEMU's blklogwrites writes the same


class Log:
    """Entries of the log, in order: (sector, sectors, flags, where its bytes are)."""

    def __init__(self, path):
        self.file = open(path, "rb")  # pylint: disable=consider-using-with
        magic, version, n, self.sector = struct.unpack("<QQQI", self.file.read(28))
        same((magic, version), (MAGIC, 1), "the log of the disk")
        self.entries, at = [], self.sector
        for _ in range(n):
            self.file.seek(at)
            sector, sectors, flags, _size = struct.unpack("<QQQQ", self.file.read(32))
            at += self.sector
            self.entries.append((sector, sectors, flags, at))
            at += 0 if flags & DISCARD else sectors * self.sector

    def apply(self, image, i):
        sector, sectors, flags, at = self.entries[i]
        if sectors == 0:
            return
        image.seek(sector * self.sector)
        if flags & DISCARD:
            image.write(bytes(sectors * self.sector))
            return
        self.file.seek(at)
        image.write(self.file.read(sectors * self.sector))

    def last_flush(self, moment):
        return max((i for i in range(moment) if self.entries[i][2] & FLUSH), default=0)


class Disk:
    """Moments in growing order; those before are never made again."""

    def __init__(self):
        self.log, self.done = Log(FOLDER / "log.img"), 0
        self.now = FOLDER / "now.img"
        shutil.copy(FOLDER / "empty.img", self.now)

    def at(self, moment, seed):
        """A file with the disk as it is after a loss of power then."""
        flush, crash = self.log.last_flush(moment), FOLDER / "crash.img"
        with open(self.now, "r+b") as image:
            for i in range(self.done, flush):
                self.log.apply(image, i)
        self.done = max(self.done, flush)
        subprocess.run(["cp", "--sparse=always", self.now, crash], check=True)
        chance = random.Random(seed)
        since = [i for i in range(flush, moment) if chance.random() < 0.5]
        chance.shuffle(since)
        with open(crash, "r+b") as image:
            for i in since:
                self.log.apply(image, i)
        return crash


def with_daemon(image, look):
    """look(daemon, client) on that disk."""
    subprocess.run(["mount", "-o", "loop", image, lib.HOME], check=True)
    try:
        d = Daemon("power")
        subprocess.run(["rm", "-rf", d.run], check=True)
        d.start()
        c = d.client()
        try:
            return look(d, c)
        finally:
            c.close()
            d.kill()
            wait_until(lambda: (lib.census.kill_all(), lib.census.reap(), not lib.census.pids())[2], 10, "all end")
            steps.remove_cgroups()
    finally:
        wait_until(lambda: subprocess.run(["umount", lib.HOME], stderr=subprocess.DEVNULL, check=False).returncode == 0, 20, "umount")


def missing(d, c, acks):
    """Of what was acknowledged, all that is not there."""
    lost = []
    records = {e["seq"]: e["hash"] for e in map(json.loads, c.get("/v1/events?kind=run.collected").body.splitlines())}
    lost += [a for a in acks if a["kind"] == "record" and records.get(a["seq"]) != a["hash"]]
    points = [a for a in acks if a["kind"] == "point"]
    rows = [w for w in c.ok("GET", "/v1/workspaces")["workspaces"] if w["key"] == "w"]
    if not rows:
        return lost + points
    w = Work.of(c, rows[0])
    there = {p["id"] for p in w.history()["points"] if p["durable"]}
    for a in points:
        if a["id"] not in there:
            lost.append({**a, "why": "it is no durable point of the history"})
        elif (answer := c.post(f"{w.path}/restore", {"to": a["id"]})).status != 200:
            lost.append({**a, "why": str(answer)})
        elif w.hash() != a["hash"]:
            lost.append({**a, "why": "other files"})
    verified = subprocess.run([lib.cell.BIN / "caisson", "events", "--verify", "--ledger", d.state / "ledger"], capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "CAISSON_SOCKET": str(d.socket)})
    check(verified.returncode == 0, f"the ledger: {verified}")
    return lost


@test("power is lost at many moments: all that was told to be on disk is there, and fsck finds nothing", own=True)
def _(_api):
    disk, acks = Disk(), json.loads((FOLDER / "acks.json").read_text())
    work = [a for a in acks if a["kind"] != "end"]
    n = len(disk.log.entries)
    chance = random.Random(1)
    moments = sorted({*(min(a["at"], n) for a in work), *(chance.randrange(work[0]["at"], n) for _ in range(MOMENTS))})
    flushes = sum(1 for e in disk.log.entries if e[2] & FLUSH)
    bad = []
    for moment in moments:
        due = [a for a in work if a["at"] <= moment]
        later = [a for a in work if a["at"] > moment]

        def look(d, c, due=due, later=later):
            # A restore that was under way is told of until the workspace is opened, and done again then.
            first = [f for f in c.ok("POST", "/v1/fsck", {})["findings"] if f["problem"] != "a restore of it was cut short"]
            lost, unseen = missing(d, c, due), len(missing(d, c, later[2:]))
            return first + c.ok("POST", "/v1/fsck", {})["findings"], lost, unseen
        found, lost, unseen = with_daemon(disk.at(moment, moment), look)
        print(f"| at write {moment} of {n}: {len(due)} acknowledged, {len(lost)} of them lost, {len(found)} findings; of {len(later[2:])} later ones {unseen} are not there", flush=True)
        if lost or found:
            bad.append((moment, lost, found))
        if moment == moments[0]:
            check(unseen == len(later[2:]) > 0, "control: what came later is seen to be missing")
    print(f"| {len(moments)} moments, {n} entries of the log, {flushes} flushes, {len(work)} acknowledgements", flush=True)
    same(bad, [], "after a loss of power")


if __name__ == "__main__":
    sys.exit(lib.main(__file__, seconds=1800))
