#!/usr/bin/env python3
"""proof.py - the launch proof: each wall is left out in turn, on the chain that ships, and nothing starts.

caisson-launcher-test is the launcher with the switches of src/os/fault.h; daemon, CLI and all else are as they ship. A
wall whose absence the proof alone notices is also left out together with the proof: then the command runs, so nothing
else had refused it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import lib
from lib import USER_ID, Daemon, Failed, check, same, test, wait_until

import cell
import census

cell.PROGRAMS += ("caisson", "caisson-launcher-test", "caisson-vault-test", "caisson-test")
SHIPPED = [p for p in cell.PROGRAMS if not p.endswith("-test")]
SWITCHES = (b"LAYER_OFF", b"FAIL_AT", b"KILL_AT", b"FAULT_MAP", b"fault_hit")
REFUSED = 125
FALLBACKS = {"inodes"}  # a switch that takes the other way of two: place_show() in src/engine/place.c
LISTED = ("--net", "allow:example.org")

# Walls without which a later step of the launch fails by itself: what is said then, in a sandbox for one command and in
# a kept one. Of all others the proof says the name.
BY_STEP = {
    "userns": "namespace", "mountns": "mount the scratch", "pidns": "mount proc|pid namespace",
    "utsns": "set the host name|make the namespaces", "nnp": "seccomp|landlock"}
BY_STEP_KEPT = {**BY_STEP, "cgroupns": "enter the namespaces"}
# An overlay without an upper layer is read-only whatever its mount says: only the other way to show a folder can miss it.
WITH = {"readonly": ("inodes",)}
# What a rootless launch cannot miss, and why.
NOT_ROOTLESS = {
    "userns": "without it there is no right to make another namespace", "mountns": "the same", "pidns": "the same",
    "utsns": "the same", "ipcns": "the same", "netns": "the same", "cgroupns": "the same",
    "ids": "the one id is the caller's from the beginning",
    "cgroup": "version 1 has none for users", "initcgroup": "version 1 has none for users",
    "limits": "version 1 has none for users"}
# Without any group pid 1 of a kept sandbox is the first to miss it.
SAID = {"cgroup": "(init)?cgroup"}


# Read now: the cell hides a tree below /tmp.
SOURCES = {str(p.relative_to(cell.ROOT)): p.read_text() for p in (cell.ROOT / "src").rglob("*.c")}


def walls():
    """Their names, from the table itself."""
    table = SOURCES["src/engine/proof.c"].partition("names[] = {")[2].partition("};")[0]
    return re.findall(r'\[WALL_\w+\] = "(\w+)"', table)


class Chain:
    """A daemon whose launcher leaves out what is asked for."""

    def __init__(self, name, uid=None):
        self.uid = uid
        self.faults = cell.NOTES / f"faults-{name}"
        self.leave_out()
        self.daemon = Daemon(name, uid=uid, program="caisson-launcher-test", env={"CAISSON_FAULTS": str(self.faults)}).start()

    def leave_out(self, *names):
        self.faults.write_text(f"LAYER_OFF={','.join(names)}\n")

    def caisson(self, *words):
        who = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        done = subprocess.run([cell.BIN / "caisson", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=lib.PATIENCE, check=False, cwd="/",
                              env={"PATH": os.environ["PATH"], "CAISSON_SOCKET": str(self.daemon.socket)}, **who)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def run(self, flags=()):
        return self.caisson("run", *flags, "-w", "/tmp", "--", "echo", "it ran")

    def kept(self, flags=()):
        """One more command of a sandbox that is kept, or why there is no such sandbox."""
        code, sandbox, said = self.caisson("create", *flags)
        if code:
            return code, "", said
        try:
            return self.caisson("exec", "-w", "/tmp", sandbox, "--", "echo", "it ran")
        finally:
            self.daemon.client().remove(sandbox)

    def census(self):
        """Nothing of a launch is left: no sandbox, no monitor, no socket, no cgroup."""
        self.daemon.wait_clean()
        wait_until(lambda: not [p for p in self.groups() if re.search(r"/caisson/\d+$", p)], what=self.groups)

    @staticmethod
    def groups():
        return [text for text in census.cgroups() if "/caisson/" in text]

    def close(self):
        self.daemon.client().remove_all()
        self.daemon.stop()


def flags_of(wall):
    return LISTED if wall == "netwalls" else ()


def judge(problems, what, wall, outcome, steps):
    code, out, said = outcome
    if "it ran" in out:
        problems.append(f"{what} without {wall}: the command ran")
    elif code != REFUSED or not re.search(steps.get(wall, rf"prove the walls: {SAID.get(wall, wall)}: "), said):
        problems.append(f"{what} without {wall}: exit {code}, said: {said}")


def judge_alone(problems, what, wall, outcome):
    """Without the proof as well: all other walls stand, and none of them minds."""
    if outcome[1] != "it ran":
        problems.append(f"{what} without {wall} and the proof: exit {outcome[0]}, said: {outcome[2]}")


# Without these a command cannot run even if nobody proves anything: its folder is not there, or it is not heard.
NOT_ALONE = ("root",)


def without_each(chain, names):
    problems = []
    for wall in names:
        for what, start, steps in (("run", chain.run, BY_STEP), ("exec", chain.kept, BY_STEP_KEPT)):
            chain.leave_out(wall, *WITH.get(wall, ()))
            judge(problems, what, wall, start(flags_of(wall)), steps)
            if wall not in steps and wall not in NOT_ALONE:
                chain.leave_out(wall, *WITH.get(wall, ()), "proof")
                judge_alone(problems, what, wall, start(flags_of(wall)))
            chain.census()
    chain.leave_out()
    for what, start in (("run", chain.run), ("exec", chain.kept)):
        for flags in ((), LISTED):
            same(start(flags)[1], "it ran", f"{what} {flags} with all walls")
    check(not problems, "\n".join(problems))


@test("each wall left out: run and exec are refused, the error names it, and nothing is left", own=True)
def _(_api):
    chain = Chain("walls")
    try:
        without_each(chain, walls())
    finally:
        chain.close()


@test("each wall left out, rootless", own=True)
def _(_api):
    chain = Chain("walls-user", USER_ID)
    try:
        without_each(chain, [w for w in walls() if w not in NOT_ROOTLESS])
    finally:
        chain.close()


@test("what is not a wall cannot be left out: the table of walls is whole", own=True)
def _(_api):
    names = walls()
    check(len(names) > 20 and len(set(names)) == len(names), f"walls: {names}")
    text = "".join(SOURCES.values())
    switches = set(re.findall(r'fault_layer_off\("(\w+)"\)', text)) - {"proof"} - FALLBACKS
    check(switches <= set(names), f"switches without a wall: {switches - set(names)}")


@test("enforced says what was proved in this launch", own=True)
def _(_api):
    chain = Chain("facts")

    def enforced():
        code, out, said = chain.caisson("run", "--json", "--", "true")
        same(code, 0, said)
        return json.loads(out)["enforced"]

    def enforced_of_kept():
        _, sandbox, _ = chain.caisson("create")
        client = chain.daemon.client()
        before = client.ok("GET", f"/v1/sandboxes/{sandbox}")["enforced"]
        same(chain.caisson("exec", sandbox, "--", "true")[0], 0)
        after = client.ok("GET", f"/v1/sandboxes/{sandbox}")["enforced"]
        client.remove(sandbox)
        return before, after
    try:
        whole = enforced()
        same(whole["fs"], "mountns, landlock")
        same(enforced_of_kept(), (whole, whole))
        chain.leave_out("landlock", "proof")
        none = {k: v for k, v in enforced().items() if k not in ("creds",)}
        same(set(none.values()), {"none"}, f"nothing was proved: {none}")
        same({v for k, v in enforced_of_kept()[1].items() if k != "creds"}, {"none"})
    finally:
        chain.close()


@test("what ships has no switch", own=True)
def _(_api):
    for program in cell.PROGRAMS:
        data = (cell.BIN / program).read_bytes()
        found = [s.decode() for s in SWITCHES if s in data]
        if program in SHIPPED:
            check(not found, f"{program} has {found}")
        else:
            check(b"fault_hit" in data or b"FAIL_AT" in data, f"{program} has none: this test would see nothing")


sys.exit(lib.main(__file__))
