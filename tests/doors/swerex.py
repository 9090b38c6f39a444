#!/usr/bin/env python3
"""The unmodified package of SWE-ReX from its registry: its own execution tests, and a deployment from start to stop. TAP.

    tests/doors/swerex.py    needs root, and a network the first time

What is fetched is kept in build/doors. The tests come from the package's source archive; of ours are the fixtures (tests/doors/swerex/conftest.py).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/api"))

import lib  # noqa: E402
from lib import Daemon, check, same, test  # noqa: E402

KEPT = ROOT / "build/doors"
PACKAGES = ["swe-rex", "aiohttp", "pytest", "pytest-asyncio"]
ADDRESS = "127.0.0.1:7310"
PASSES = 49  # of version 1.4.0; one more is marked by them as one that fails


def pip(*words):
    return subprocess.run([sys.executable, "-m", "pip", *map(str, words)], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=400, check=False).returncode == 0


def fetch():
    """Whole, or not there."""
    KEPT.mkdir(parents=True, exist_ok=True)
    if not (KEPT / "swerex").exists() and pip("install", "-q", "--target", KEPT / "swerex.new", *PACKAGES):
        (KEPT / "swerex.new").rename(KEPT / "swerex")
    if not list(KEPT.glob("swe_rex-*.tar.gz")):
        pip("download", "-q", "--no-deps", "--no-binary", ":all:", "-d", KEPT, "swe-rex")


def their_tests():
    for archive in KEPT.glob("swe_rex-*.tar.gz"):
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.endswith("/tests/test_execution.py"):
                    return archive.name[len("swe_rex-"):-len(".tar.gz")], tar.extractfile(member).read()
    return None, None


FILES = {name: (pathlib.Path(__file__).parent / "swerex" / name).read_text() for name in ("conftest.py", "tour.py")}  # before /tmp is hidden


class Door:
    def __init__(self, scope):
        if not (KEPT / "swerex").exists() or not their_tests()[0]:
            raise lib.Skip("the registry cannot be reached")
        self.daemon = Daemon("swerex", options=["--listen", ADDRESS]).start()
        self.token = self.daemon.client().ok("POST", "/v1/tokens", {"scope": scope})["token"]

    def run(self, base, *argv):
        return subprocess.run([sys.executable, *map(str, argv)], capture_output=True, text=True, timeout=300, check=False, cwd="/run/suite",
                              env={**os.environ, "PYTHONPATH": str(KEPT / "swerex"), "REX_BASE": f"http://{ADDRESS}/compat/swerex{base}", "REX_TOKEN": self.token})

    def stop(self):
        self.daemon.client().remove_all()
        self.daemon.wait_clean()
        self.daemon.stop()


@test("their own execution tests, in a sandbox that is named", own=True)
def _(_api):
    d = Door("exec")
    path = "/work/bin:/usr/local/bin:/usr/bin:/bin"
    made = d.daemon.client().create({"fs": ["ephemeral:/work"], "env": {"PATH": path}})
    d.daemon.client().execute(made, "mkdir /work/bin && ln -s /usr/bin/python3 /work/bin/python")
    version, text = their_tests()
    (pathlib.Path("/run/suite/tests/test_execution.py")).write_bytes(text)
    done = d.run(f"/{made['id']}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "--basetemp=/tmp/rex", "tests")
    shutil.rmtree("/tmp/rex", ignore_errors=True)
    numbers = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|xfailed|xpassed|skipped|errors?)", done.stdout.splitlines()[-1])}
    print(f"| SWE-ReX {version}, tests/test_execution.py: {numbers}")
    check(done.returncode == 0 and numbers.get("passed", 0) + numbers.get("xpassed", 0) >= PASSES, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}\n{d.daemon.tail()}")
    d.stop()


@test("RemoteDeployment: a sandbox of the token's own, made by its first session and gone with stop()", own=True)
def _(_api):
    d = Door("manage")
    done = d.run("", "/run/suite/tour.py")
    check(done.returncode == 0 and "end" in done.stdout.splitlines(), f"{done.stdout}\n{done.stderr}\n{d.daemon.tail()}")
    same(d.daemon.client().ok("GET", "/v1/sandboxes")["sandboxes"], [], "left of it")
    d.stop()


def prepare():
    tests = pathlib.Path("/run/suite/tests")
    tests.mkdir(parents=True)
    (tests / "__init__.py").touch()
    (tests / "conftest.py").write_text(FILES["conftest.py"])
    (tests.parent / "tour.py").write_text(FILES["tour.py"])
    return lambda: None


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        fetch()
    sys.exit(lib.main(__file__, seconds=600, prepare=prepare))
