#!/usr/bin/env python3
"""Every program of examples/ runs and says what it should. TAP.

    tests/sdk/examples.py             all (needs root)
    tests/sdk/examples.py postgres    those with the word in their title

Playwright comes from the registry that pip is configured for, once, to build/playwright.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import place
from place import ROOT, lib
from lib import check, test

PLAYWRIGHT = ROOT / "build/playwright"
FILES = place.load("sdk/python", "sdk/typescript", "examples")
DRIVER = {str(p.relative_to(PLAYWRIGHT)): p.read_bytes() for p in (PLAYWRIGHT / "node_modules").rglob("*") if p.is_file()}
INSIDE = pathlib.Path("/run/playwright")
NOT_HERE = 77
VERSION = "playwright==1.52.0"  # later ones do not take Debian 12's Node


def run(api, program, *words):
    done = subprocess.run([*program, *map(str, words)], capture_output=True, text=True, timeout=300, check=False, cwd="/", env={
        "PATH": os.environ["PATH"], "HOME": str(lib.HOME), "CAISSON_SOCKET": str(api.daemon.socket), "PYTHONDONTWRITEBYTECODE": "1",
        "CAISSON": str(lib.cell.BIN / "caisson"), "PYTHONPATH": str(place.COPY / "sdk/python")})
    if done.returncode == NOT_HERE:
        raise lib.Skip(done.stdout.strip())
    check(done.returncode == 0, done.stdout + done.stderr)
    return done.stdout


def example(name):
    return [sys.executable, str(place.COPY / "examples" / name)]


def says(text, *wanted):
    check(all(one in text for one in wanted), text)


@test("fix_tests.py: write, test, fix, until all is well")
def _(api):
    says(run(api, example("fix_tests.py")), "passes: True", "+import re")


@test("fix_tests.mjs: the same in JavaScript")
def _(api):
    modules = place.COPY / "examples/node_modules/@caisson"
    modules.mkdir(parents=True)
    (modules / "sdk").symlink_to(place.COPY / "sdk/typescript")
    says(run(api, ["node"], place.COPY / "examples/fix_tests.mjs"), "passes: true")


@test("data_analysis.py: only what was named comes back")
def _(api):
    says(run(api, example("data_analysis.py")), "rows: 300", "files: out/chart.svg out/summary.json")


@test("best_of_three.py: the best is merged")
def _(api):
    says(run(api, example("best_of_three.py")), "merged: a sieve", "odd numbers    fails")


@test("postgres_tests.py: a database of their own, in memory")
def _(api):
    says(run(api, example("postgres_tests.py")), "on tmpfs", "ok   money moves", "ok   nobody owes", "ok   names are unique")


@test("browser_test.py: Playwright and Chromium inside")
def _(api):
    for name, data in DRIVER.items():
        path = INSIDE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    says(run(api, example("browser_test.py"), INSIDE), "'count': '84'", "'outside': 'not reached'")
    shutil.rmtree(INSIDE)


def get_playwright():
    """The package for Python has the one for JavaScript in it. Without one, the test says that it is not there."""
    inner, core = "playwright/driver/package/", PLAYWRIGHT / "node_modules/playwright-core"
    if core.is_dir():
        return
    shutil.rmtree(PLAYWRIGHT, ignore_errors=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", PLAYWRIGHT, VERSION], cwd="/",
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120)
    for wheel in PLAYWRIGHT.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(PLAYWRIGHT / "new", [name for name in packed.namelist() if name.startswith(inner)])
        core.parent.mkdir()
        (PLAYWRIGHT / "new" / inner).rename(core)
        wheel.unlink()


if __name__ == "__main__":
    if "--cell" not in sys.argv:
        get_playwright()
    sys.exit(lib.main(__file__, prepare=place.prepare(FILES)))
