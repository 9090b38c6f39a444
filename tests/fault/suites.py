"""suites.py - what runs in which cell. Each suite is a list of (function, arguments), a test each.

Loops go through the chain that ships, with one daemon for each. On caisson-test are: a first launch (its daemon would have
to be new each time), a crowd, kills from outside and exhaustion (of the caller, who is the launcher there), and gc.

The step of a loop is 1 where it matters most; FULL=1 in the environment makes it 1 everywhere, adds
stubborn commands to the kill loops and more rounds to the crowds.
"""
import errno
import os
import pathlib
import shutil
import subprocess

import census
import exhaust
import launch
import outside
import traced
from launch import Kept, Launch, Shipped
from loops import FAILS, KILLS, fails_with, gc_loop, loop

FULL = bool(os.environ.get("FULL"))
SOURCE = pathlib.Path("/run/source")
IMAGE = pathlib.Path("/run/image")
IMAGE_PROGRAMS = ("sh", "cat", "grep", "uname", "env", "sleep", "setsid", "true")

FORKS = "setsid sleep 60 & (sleep 60 &) ; sleep 60"


def make_source():
    SOURCE.mkdir()
    (SOURCE / "file").write_text("of the host\n")
    os.chmod(SOURCE, 0o755)


def make_image():
    """A root with a shell and what it needs."""
    (IMAGE / "bin").mkdir(parents=True)
    for name in IMAGE_PROGRAMS:
        program = shutil.which(name)
        shutil.copy(program, IMAGE / "bin")
        for word in subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout.split():
            if word.startswith("/"):
                target = IMAGE / word[1:]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, target)


def prepare():
    """Also the first use of the run folders: they and their lock files stay for good."""
    make_source()
    make_image()
    launch.Pace.measure()
    for is_root in (True, False):
        Launch(is_root=is_root, command=["true"], stdin="null").run()
        launch.gc(is_root)
    launch.COLD |= census.take()


def step(n):
    return 1 if FULL else n * launch.Pace.times


def look(*flags, how=Shipped, **options):
    """A command that shows its walls."""
    return how("-i", *flags, **options)


def forks(*flags, **options):
    """A command that would stay for a minute."""
    if FULL:
        return Shipped("--timeout", "200ms", *flags, command=["sh", "-c", outside.STUBBORN], stdin="null", **options)
    return Shipped("--timeout", "100ms", *flags, command=["sh", "-c", FORKS], stdin="null", **options)


def stays(**options):
    return Launch(command=["sh", "-c", outside.STUBBORN], stdin="null", **options)


def short(**options):
    return Launch(command=["sh", "-c", "sleep 2 & sleep 0.5"], stdin="null", **options)


VARIANTS = {
    "terminal": (["-t"], {"stdin": "tty"}),
    "overlay": (["--fs", f"overlay:{SOURCE}:/work"], {}),
    "image": (["--image", f"dir:{IMAGE}"], {}),
    "rootful": (["-u", "root", "--profile", "rootful"], {}),
    "as root": (["-u", "root"], {}),
    "json": (["--json"], {"stdin": "null"}),
    "network": (["--net", "allow:example.org"], {}),
}
ROOTLESS = {"is_root": False}
IN_ROOTLESS = ("terminal", "overlay", "image", "json", "network")


def variants(kind, fault, every, names=VARIANTS, **options):
    return [(loop, (f"{kind}: {name}", look(*flags, **more, **options), fault, step(every)))
            for name, (flags, more) in VARIANTS.items() if name in names]


def other_errors(**options):
    numbers = (errno.ENOMEM, errno.EMFILE, errno.EAGAIN, errno.EPERM, errno.EINTR)
    return [(loop, (f"call fails with {errno.errorcode[n]}", look(**options), fails_with(n), step(7))) for n in numbers]


def crowds(how, rounds):
    return [(outside.crowd, (f"all at once, {kills} kills", how, seed, kills))
            for seed, kills in [(0, 0), *((s, 60) for s in range(1, rounds + 1))]]


# Longest first: cells run side by side.
SUITES = {
    "kills": lambda: [(loop, ("caller is killed", forks(), KILLS, step(1)))],
    "kills-rootless": lambda: [(loop, ("caller is killed", forks(**ROOTLESS), KILLS, step(1)))],
    "fails-variants": lambda: variants("call fails", FAILS, 3),
    "kills-cold": lambda: [
        (loop, ("caller is killed, first launch", look(how=Launch), KILLS, step(50), True)),
        (loop, ("caller is killed, first launch, rootless", look(how=Launch, **ROOTLESS), KILLS, step(50), True))],
    "fails-cold": lambda: [
        (loop, ("call fails, first launch", look(how=Launch), FAILS, step(50), True)),
        (loop, ("call fails, first launch, rootless", look(how=Launch, **ROOTLESS), FAILS, step(50), True))],
    "fails": lambda: [(loop, ("call fails", look(), FAILS, step(1)))],
    "fails-rootless": lambda: [(loop, ("call fails", look(**ROOTLESS), FAILS, step(1))), *other_errors(**ROOTLESS)],
    "fails-otherwise": other_errors,
    "fails-variants-rootless": lambda: variants("call fails", FAILS, 9, IN_ROOTLESS, **ROOTLESS),
    "kills-variants": lambda: variants("caller is killed", KILLS, 7),
    "kills-variants-rootless": lambda: variants("caller is killed", KILLS, 13, IN_ROOTLESS, **ROOTLESS),
    "kept": lambda: [
        (loop, ("call fails, kept", Kept(), FAILS, step(5))), (loop, ("caller is killed, kept", Kept(), KILLS, step(7))),
        (loop, ("call fails, kept, rootless", Kept(**ROOTLESS), FAILS, step(11))),
        (loop, ("caller is killed, kept, rootless", Kept(**ROOTLESS), KILLS, step(17)))],
    "crowd": lambda: crowds(short(), 20 if FULL else 2) + crowds(short(**ROOTLESS), 20 if FULL else 2),
    "outside": lambda: [
        (outside.one_killed, ("killed from outside", stays())),
        (outside.one_killed, ("killed from outside, rootless", stays(**ROOTLESS))),
        (outside.one_killed, ("killed from outside, all stopped before", stays(), True)),
        (outside.one_killed, ("killed from outside, all stopped before, rootless", stays(**ROOTLESS), True)),
        (outside.asked_to_end, ("asked twice to end", stays())),
        (outside.asked_to_end, ("asked twice to end, rootless", stays(**ROOTLESS)))],
    "exhaustion": lambda: [
        (exhaust.descriptors, (True,)), (exhaust.descriptors, (False,)),
        (exhaust.memory, (True,)), (exhaust.memory, (False,)),
        (exhaust.user_processes, ()), (exhaust.cgroup_processes, ()), (exhaust.cgroup_memory, ()),
        (exhaust.disk, (True,)), (exhaust.disk, (False,))],
    "gc": lambda: [
        (gc_loop, ("a call of gc fails", FAILS.variable, step(1))),
        (gc_loop, ("gc is killed", KILLS.variable, step(1)))],
}
if FULL:
    SUITES["traced"] = lambda: [(traced.loop, ("every call fails, by strace", True)),
                                (traced.loop, ("every call fails, by strace, rootless", False))]
