"""outside.py - kill -9 from outside: of each process of a running sandbox, and of any in a crowd."""
import contextlib
import os
import random
import signal
import subprocess
import tempfile
import threading
import time

import cell
import census
import launch
from loops import SURVIVAL_SECONDS, Tally, after, next_start

READY_SECONDS = 40
CROWD = 64
CROWD_SECONDS = 120

# What a hostile command does to stay: own sessions, orphans, deaf to all signals that it may be deaf to.
STUBBORN = """
trap '' TERM HUP INT QUIT
setsid sleep 60 &
(setsid sh -c 'trap "" TERM HUP; sleep 60 & sleep 60' &)
sleep 60 &
echo ready
while :; do sleep 60; done
"""


def parents():
    """pid -> (parent, pids inside)."""
    found = {}
    for pid in census.pids():
        status = dict(line.split(":\t", 1) for line in census.read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        if status:
            found[pid] = (int(status["PPid"]), status["NSpid"].split()[1:])
    return found


def roles(cli):
    """Who is who in a sandbox whose command runs."""
    known = parents()
    monitor = next(pid for pid, (parent, _) in known.items() if parent == cli)
    inside = {pids[-1]: pid for pid, (parent, pids) in known.items() if pids and parent == monitor}
    everybody = [pid for pid, (_, pids) in known.items() if pids]
    return {"cli": [cli], "monitor": [monitor], "init": [inside["1"]], "command": [inside["2"]],
            "cli and monitor": [cli, monitor], "monitor and init": [monitor, inside["1"]], "everybody inside": everybody}


# Which exit status of the CLI may follow.
VICTIMS = {
    "cli": (-signal.SIGKILL,),
    "monitor": (125,),
    "init": (125, 128 + signal.SIGKILL),  # it takes the command along
    "command": (128 + signal.SIGKILL,),
    "cli and monitor": (-signal.SIGKILL,),
    "monitor and init": (125, 128 + signal.SIGKILL),
    "everybody inside": (125, 128 + signal.SIGKILL),
}


def running(how):
    """The program, with its command at work."""
    process = how.start({}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.set_blocking(process.stdout.fileno(), False)
    deadline = time.monotonic() + READY_SECONDS * launch.Pace.times
    while b"ready" not in (process.stdout.read() or b""):
        if process.poll() is not None or time.monotonic() > deadline:
            census.kill_all()
            raise RuntimeError(f"the command does not start: {process.stderr.read()}")
        time.sleep(0.002)
    return process


def send(pids, sig):
    """Who is hit may take others along before their turn comes."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)


def judge_killed(process, expected):
    try:
        _, err = process.communicate(timeout=launch.Pace.patience())
    except subprocess.TimeoutExpired:
        yield "\n  ".join(["hangs; what is there:", *sorted(map(census.describe, census.pids()))])
        census.kill_all()
        process.wait()
        return
    if process.returncode not in expected:
        yield f"exit {process.returncode}, not {expected}: {err.decode().strip()}"
    if process.returncode == 125 and b"caisson: " not in err:
        yield "exit 125 without a sentence"


def one_killed(name, how, is_stopped=False):
    """Each victim in turn; with `is_stopped` all processes inside are stopped before."""
    tally = Tally(name)
    before = census.take()
    for victim, expected in VICTIMS.items():
        process = running(how)
        who = roles(process.pid)
        if is_stopped:
            send(who["everybody inside"], signal.SIGSTOP)
        send(who[victim], signal.SIGKILL)
        problems = list(judge_killed(process, expected))
        problems += after(tally, how, before)
        tally.count(process.returncode)
        tally.add(victim, problems)
    return tally


def asked_to_end(name, how):
    """TERM once is for the command; twice is for us."""
    tally = Tally(name)
    before = census.take()
    for sig in (signal.SIGTERM, signal.SIGHUP):
        process = running(how)
        for _ in range(2):
            process.send_signal(sig)
            time.sleep(0.05)
        problems = list(judge_killed(process, (125, 128 + signal.SIGKILL, 128 + sig)))
        tally.add(sig.name, [*problems, *after(tally, how, before)])
        tally.count(process.returncode)
    return tally


# ---- a crowd ---------------------------------------------------------------------------------

def kill_randomly(starter, started, chooser, kills_max):
    """Until all were started and have ended. Launchers, monitors, inits, commands on their way. Returns how often."""
    kills = 0
    deadline = time.monotonic() + CROWD_SECONDS * launch.Pace.times
    while (starter.is_alive() or any(p.poll() is None for p in started)) and time.monotonic() < deadline:
        victims = [pid for pid in census.pids() if census.read(f"/proc/{pid}/comm").startswith("caisson")]
        if victims and kills < kills_max:
            send([chooser.choice(victims)], signal.SIGKILL)
            kills += 1
        time.sleep(chooser.uniform(0, 0.02))
    starter.join()
    return kills


def judge_crowd(started, texts, kills):
    """Who was not hit ends as if alone, so no more may fail than were hit."""
    hung = [p for p in started if p.poll() is None]
    if hung:
        yield "\n  ".join([f"{len(hung)} hang; what is there:", *sorted(map(census.describe, census.pids()))])
        census.kill_all()
    for process, text in zip(started, texts):
        status = process.wait()
        if status not in (0, 125, -signal.SIGKILL, 128 + signal.SIGKILL) or (status == 125 and "caisson: " not in text):
            yield f"exit {status}: {text or 'without a sentence'}"
    failed = [text for p, text in zip(started, texts) if p.returncode not in (0, -signal.SIGKILL)]
    if len(failed) > kills:
        yield "\n  ".join([f"{len(failed)} launches failed, {kills} processes were killed:", *sorted(set(failed))])


def start_all(how, files, started):
    for file in files:
        started.append(how.start({}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file))


def crowd(name, how, seed, kills_max):
    """Many at once, on a cold host; afterwards a launch has all its walls."""
    tally = Tally(f"{name} (seed {seed})")
    look = launch.Launch("-i", is_root=how.is_root)
    whole = look.run()
    launch.gc(how.is_root)
    before = census.take()
    started, files = [], [tempfile.TemporaryFile(dir=cell.NOTES) for _ in launch.Pace.thin(range(CROWD))]
    starter = threading.Thread(target=start_all, args=(how, files, started))
    starter.start()
    kills = kill_randomly(starter, started, random.Random(seed), kills_max)
    for file in files:
        file.seek(0)
    texts = [file.read().decode(errors="replace").strip() for file in files]
    tally.add("crowd", judge_crowd(started, texts, kills))
    for process in started:
        tally.count(process.returncode)
    tally.add("crowd", [f"survives {SURVIVAL_SECONDS} s: {text}"
                        for text in census.wait_empty(SURVIVAL_SECONDS * launch.Pace.times)])
    tally.add("the launch after it", next_start(look, whole))
    tally.add("crowd", after(tally, how, before))
    return tally
