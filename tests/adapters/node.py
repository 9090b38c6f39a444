#!/usr/bin/env python3
"""Each adapter for JavaScript with its framework, newest, from its registry. TAP.

    tests/adapters/node.py          all (needs root, npm, and a network the first time)
    tests/adapters/node.py mastra   those with the word in their title

The frameworks ask for Node 22, which is not Debian's: it comes from the registry, too.
"""
import json
import os
import re
import shutil
import sys

import kept
from kept import INSIDE, lib, place
from lib import check, test

PROJECT = lib.HOME / "project"
FRAMEWORKS = {  # what is installed, and which file tests it
    "ai": (["ai@latest", "@ai-sdk/harness@latest", "zod", "ws"], "ai.test.mjs"),
    "@mastra-core": (["@mastra/core@latest", "zod"], "mastra.test.mjs"),
    "deepagents-js": (["deepagents@latest", "@langchain/core@latest", "langchain@latest"], "deepagents.test.mjs"),
}
PACKAGES = {"@mastra-core": "@mastra/core", "deepagents-js": "deepagents"}
NPM = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", kept.TARGET]


def steps(words):
    found = {name: [*NPM, *packages] for name, (packages, _) in FRAMEWORKS.items() if not words or any(word in name for word in words)}
    return {**found, "node": [*NPM, "node@22"]}


def make_project(name):
    """A project that has the framework and, by a link as npm makes it, our SDK; what is kept is not written to."""
    shutil.rmtree(PROJECT, ignore_errors=True)
    for source in (INSIDE / name / "node_modules").iterdir():
        for one in source.iterdir() if source.name.startswith("@") else [source]:
            link = PROJECT / one.relative_to(INSIDE / name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(one)
    (PROJECT / "node_modules/@caisson").mkdir()
    (PROJECT / "node_modules/@caisson/sdk").symlink_to(place.COPY / "sdk/typescript")
    for file in (place.COPY / "tests/adapters/node").iterdir():
        shutil.copy(file, PROJECT)


def run(api, name):
    make_project(name)
    work, said = kept.run(api, [INSIDE / "node/node_modules/.bin/node", "--test", "--test-reporter=tap", PROJECT / FRAMEWORKS[name][1]], NAME=name)
    shutil.rmtree(work)
    counts = {word: int(number) for word, number in re.findall(r"^# (pass|fail|skipped|cancelled|todo) (\d+)$", said, re.M)}
    check(counts["pass"] > 0 and sum(counts.values()) == counts["pass"], said[-4000:])
    package = PACKAGES.get(name, name)
    kept.tell("Node", package, json.loads((INSIDE / name / "node_modules" / package / "package.json").read_text())["version"], counts["pass"])


def add(name):
    @test(f"{name} (Node)")
    def _(api):
        run(api, name)


for _name in FRAMEWORKS:
    add(_name)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--cell"] and os.geteuid() == 0:
        kept.fetch(steps(sys.argv[1:]), ())
    sys.exit(lib.main(__file__, seconds=12 * 60, prepare=kept.prepare("sdk/typescript", "tests/adapters/node")))
