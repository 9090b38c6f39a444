#!/usr/bin/env python3
"""Each adapter for Python with its framework, newest, from its registry: the framework's own tests for sandboxes where it has some. TAP.

    tests/adapters/python.py              all (needs root, and a network the first time)
    tests/adapters/python.py deepagents   those with the word in their title
"""
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

import kept
from kept import INSIDE, lib, place
from lib import same, test

INSTALLED = lib.HOME / "installed"
PYTEST = ["pytest", "pytest-asyncio"]
FRAMEWORKS = {  # what is installed, and which file tests it
    "inspect_ai": (["inspect_ai", *PYTEST], "test_inspect_ai.py", "-k", "not rootful"),
    "inspect_ai with an image": ([], "test_inspect_ai.py", "-k", "rootful"),
    "deepagents": (["deepagents", "langchain-tests", *PYTEST], "test_deepagents.py"),
    "deepagents==0.6.12": (["deepagents==0.6.12", "langchain-tests", *PYTEST], "test_deepagents.py"),
    "openai-agents": (["openai-agents", *PYTEST], "test_openai_agents.py"),
    "langchain": (["langchain", "langchain-tests", *PYTEST], "test_langchain.py"),
    "smolagents": (["smolagents", *PYTEST], "test_smolagents.py"),
}
PIP = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore"]
IMAGE = ["mmdebstrap", "--quiet", "--format=tar", "--variant=minbase", "--include=adduser,procps,python3", "--skip=output/dev", "bookworm"]
OPTIONS = ["-B", "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-W", "ignore", "-o", "asyncio_mode=auto",
           "-o", "asyncio_default_fixture_loop_scope=function"]


def steps():
    found = {name: [*PIP, "--target", kept.TARGET, *packages] for name, (packages, *_) in FRAMEWORKS.items() if packages}
    return {**found, "inspect_ai-image": [*IMAGE, kept.TARGET]}


def version_of(name, folder):
    found = [p.stem.partition("-") for p in folder.glob("*.dist-info")]
    wanted = re.split("[=<> ]", name)[0].replace("-", "_").lower()
    return next(version for package, _, version in found if package.lower() == wanted)


def install():
    """Our own, as a user would: inspect_ai looks for its entry points."""
    subprocess.run([*PIP, "--no-index", "--no-deps", "--target", INSTALLED, place.COPY / "sdk/python"], check=True, cwd="/")


def run(api, name):
    if not INSTALLED.exists():
        install()
    work, kept_as, (_, file, *more) = lib.HOME / "work", name.split()[0], FRAMEWORKS[name]
    kept.run(api, [sys.executable, *OPTIONS, f"--junitxml={work}/result.xml", f"--rootdir={work}", f"--basetemp={work}/base", *more,
                   place.COPY / "tests/adapters/python" / file], NAME=kept_as, PYTHONPATH=f"{INSTALLED}:{INSIDE / kept_as}")
    suite = xml.parse(work / "result.xml").getroot().find("testsuite")
    known = len(suite.findall("testcase/skipped[@type='pytest.xfail']"))
    same(int(suite.get("skipped")), known, "skipped without a reason")
    shutil.rmtree(work)
    kept.tell("Python", re.split("[=<>]", name)[0], version_of(name, INSIDE / kept_as), int(suite.get("tests")) - known, known)


def image(api, *words):
    done = subprocess.run([os.environ["CAISSON"], "image", *words], env={**os.environ, "CAISSON_SOCKET": str(api.daemon.socket)}, capture_output=True,
                          text=True, check=False)
    same((done.returncode, done.stderr), (0, ""), "image")


def add(name):
    @test(f"{name} (Python)")
    def _(api):
        if "image" in name:
            image(api, "import", "debian", INSIDE / "inspect_ai-image")
        run(api, name)
        if "image" in name:
            image(api, "rm", "debian")


for _name in FRAMEWORKS:
    add(_name)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        kept.fetch(steps(), sys.argv[1:])
    sys.exit(lib.main(__file__, seconds=12 * 60, prepare=kept.prepare("sdk/python", "tests/adapters/python")))
