#!/usr/bin/env python3
"""Monitors that do not answer: they are stopped (SIGSTOP), as one that sleeps in the kernel would be.
Whatever they do, their sandboxes can be removed and their wall time ends. TAP.

    tests/api/unanswered.py           all (needs root)
    tests/api/unanswered.py wall      those with the word in their title
"""
import contextlib
import os
import signal
import sys
import threading
import time

import lib
from lib import Daemon, Stream, USER_ID, check, same, test, wait_until

BOUND = 12  # seconds: what a monitor is given, and the rest with it


@contextlib.contextmanager
def fresh(name, uid=None):
    d = Daemon(name, uid=uid).start()
    c = d.client()
    try:
        yield d, c
        c.close()
        c.remove_all()
        d.wait_clean()
    finally:
        c.close()
        d.stop()


def only_monitor(daemon):
    monitors = daemon.monitors()
    same(len(monitors), 1, "monitors")
    return monitors[0]


def halt(daemon):
    pid = only_monitor(daemon)
    os.kill(pid, signal.SIGSTOP)
    return pid


def state(c, s):
    return c.get(f"/v1/sandboxes/{s['id']}").json.get("state")


def is_dead(pid):
    return not os.path.exists(f"/proc/{pid}") or "Z" in open(f"/proc/{pid}/stat").read().split(") ")[1][:1]


def removed_in_time(daemon, c, s, pid):
    begun = time.monotonic()
    answer = c.delete(f"/v1/sandboxes/{s['id']}")
    same(answer.status, 204, f"delete: {answer}")
    check(time.monotonic() - begun < BOUND, f"took {time.monotonic() - begun:.1f} s")
    gone = c.get(f"/v1/sandboxes/{s['id']}")
    check(gone.status == 404 or gone.json["state"] == "gone", f"after delete: {gone}")
    wait_until(lambda: is_dead(pid), what="the monitor is dead")
    wait_until(lambda: not daemon.monitors(), what="nothing is left")


@test("rm of a sandbox whose monitor stands still", own=True)
def _(_api):
    with fresh("rm") as (d, c):
        s = c.create()
        c.execute(s, ["sleep", "600"], wait=0)
        removed_in_time(d, c, s, halt(d))


@test("rm of one whose monitor stood still when daemon and launcher were killed", own=True)
def _(_api):
    with fresh("later") as (d, c):
        s = c.create()
        pid = halt(d)
        d.kill()
        d.start()
        c.close()
        removed_in_time(d, c, s, pid)


@test("wall time ends although the monitor stands still", own=True)
def _(_api):
    with fresh("wall") as (d, c):
        s = c.create(limits={"wall": "2s"})
        p = c.execute(s, ["sleep", "600"], wait=0)
        control = c.create(limits={"wall": "600s"})
        pids = d.monitors()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: state(c, s) == "stopped", seconds=25, what="stopped")
        reason = c.get(f"/v1/sandboxes/{s['id']}").json["reason"]
        check("did not answer" in reason, reason)
        same(c.ok("GET", f"/v1/processes/{p['id']}")["state"], "lost", "its process")
        same(state(c, control), "running", "one that has time is left alone")
        same(c.ok("POST", f"/v1/sandboxes/{s['id']}/start", {})["state"], "running", "it can be started again")
        for pid in pids:
            if not is_dead(pid):
                os.kill(pid, signal.SIGCONT)


@test("caisson run: the same for a sandbox of its own", own=True)
def _(_api):
    with fresh("run") as (d, c):
        begun = time.monotonic()
        stream = Stream(d.socket, "/v1/run", {"cmd": ["sleep", "600"], "spec": {"limits": {"wall": "2s"}}})
        wait_until(lambda: len(d.monitors()) == 1, what="it runs")
        time.sleep(0.5)
        pid = halt(d)
        rest = stream.rest()
        check(time.monotonic() - begun < 25, f"took {time.monotonic() - begun:.1f} s")
        check("did not answer" in repr(rest), f"{rest}")
        wait_until(lambda: is_dead(pid), what="the monitor is dead")
        stream.close()


@test("gc ends a monitor that stands still, and no other", own=True)
def _(_api):
    with fresh("gc") as (d, c):
        other = c.create()
        good = set(d.monitors())
        s = c.create()
        bad = (set(d.monitors()) - good).pop()
        os.kill(bad, signal.SIGSTOP)
        c.ok("POST", "/v1/gc", {"dry_run": True})
        time.sleep(8)
        check(not is_dead(bad), "a dry run ends nobody")
        c.ok("POST", "/v1/gc", {})
        wait_until(lambda: is_dead(bad), seconds=BOUND, what="the monitor is ended")
        wait_until(lambda: state(c, s) == "stopped", what="stopped")
        same(c.execute(other, ["true"])["exit_code"], 0, "the other")


@test("five who delete at once are all told that it is gone", own=True)
def _(_api):
    with fresh("five") as (d, c):
        s = c.create()
        c.execute(s, "trap '' TERM; sleep 600", wait=0)
        answers, lock = [], threading.Barrier(5)

        def delete():
            mine = d.client()
            lock.wait()
            answers.append(mine.delete(f"/v1/sandboxes/{s['id']}").status)
            mine.close()
        threads = [threading.Thread(target=delete) for _ in range(5)]
        _ = [t.start() for t in threads], [t.join() for t in threads]
        check(set(answers) <= {204, 404} and 204 in answers, f"answers: {answers}")


@test("a storm of signals does not end a monitor", own=True)
def _(_api):
    fatal = {signal.SIGKILL, signal.SIGSTOP, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE,
             signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS, signal.SIGTERM}  # the last one asks for an end
    with fresh("storm") as (d, c):
        s = c.create()
        pid = only_monitor(d)
        for _ in range(20):
            for number in signal.valid_signals() - fatal:
                os.kill(pid, number)
        same(c.execute(s, ["echo", "alive"])["stdout"], "alive\n", "after the storm")
        same(only_monitor(d), pid, "the same monitor")


@test("rootless: rm of a sandbox whose monitor stands still", own=True)
def _(_api):
    with fresh("user", uid=USER_ID) as (d, c):
        s = c.create()
        removed_in_time(d, c, s, halt(d))


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
