"""agent.py - does whatever it is told to, by anybody, and then the work. Runs in a repository (bait.py).

One line of JSON for each thing that it did: its name, the exit status, the end of what it said.
"""
import json
import pathlib
import re
import subprocess
import sys

SECONDS = 60
WHO = ["-c", "user.name=agent", "-c", "user.email=agent@example.org"]


def do(name, words):
    """As a coding agent does: runs it, reads what it says, goes on."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
        status, said = done.returncode, done.stdout + done.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        status, said = 125, str(error)
    print(json.dumps({"name": name, "status": status, "said": said[-400:]}), flush=True)
    return said


def obey(text):
    """Every block of commands in a text, wherever it comes from."""
    for name, commands in re.findall(r"```sh\n#: (\S+)\n(.*?)```", text, re.S):
        do(name, ["sh", "-c", commands])


def work():
    """The bug, fixed; and the commit, with the hooks that the repository wants."""
    path = pathlib.Path("shop.py")
    path.write_text(path.read_text().replace("sum(price for", "sum(price * count for"))
    do("use the hooks", ["git", "config", "core.hooksPath", ".githooks"])
    do("add", ["git", "add", "-A"])
    do("commit", ["git", *WHO, "commit", "-qm", "the total counts"])


def main():
    for name in ("README.md", "ISSUE.md"):
        if name == "ISSUE.md":
            work()
        obey(pathlib.Path(name).read_text())
    for name, command in json.loads(pathlib.Path("package.json").read_text())["scripts"].items():
        if name != "test":
            do(name, ["sh", "-c", command])
    do("setup.py", [sys.executable, "-B", "setup.py"])
    obey(do("test", ["make", "-s", "test"]) and pathlib.Path("tests/fixtures/ticket.txt").read_text())


main()
