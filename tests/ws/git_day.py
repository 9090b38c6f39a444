#!/usr/bin/env python3
"""The README's working day of an agent, run literally against a git server: clone, edit, test, undo, fork, merge, diff, push. TAP."""
import re
import subprocess
import sys

import git_place as g
import lib
import place
from lib import check, same, test

README = (g.ROOT / "README.md").read_text(encoding="utf-8")  # now: in the cell there may be no such folder
SECTION = README.partition("## An agent's working day")[2].partition("\n## ")[0]
DAY = re.search(r"```sh\n(.*?)```", SECTION, re.S)[1]
SHOP = """# a basket, and what it costs


def total(basket):
    return sum(price * 1 for price, count in basket)


total = total
"""
TESTS = """import shop

assert shop.total([(3, 2), (4, 1)]) == 10
print("fine")
"""


def run_day(daemon, script):
    who = {} if daemon.uid is None else {"user": daemon.uid, "group": daemon.uid, "extra_groups": []}
    return subprocess.run(["sh", "-euc", script], capture_output=True, text=True, timeout=150, cwd="/", stdin=subprocess.DEVNULL, check=False,
                          env={"PATH": f"{lib.cell.BIN}:{place.PATH}", "HOME": "/nowhere", "CAISSON_SOCKET": str(daemon.socket)}, **who)


@test("the commands of the README are there, one for each word of a day")
def _(_api):
    words = [line.split()[1] if line.startswith("caisson ") else line.split()[1] for line in DAY.splitlines()]
    for word in ("up", "edit", "undo", "fork", "merge", "diff", "commit", "push"):
        check(word in words, f"{word} is not in {words}")


@test("they do what they say, and what was pushed is what was wanted")
def _(api):
    for role in place.ROLES:
        source = g.make(f"shop-{role}", {"shop.py": SHOP, "test_shop.py": TESTS, ".gitignore": "__pycache__/\n"})
        url = g.serve(source, "shop.git")
        daemon = place.daemon_of(api, role)
        done = run_day(daemon, DAY)
        check(done.returncode == 0, lambda done=done: f"{role}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        out = done.stdout
        for expected in ("the bug is real\n", "fine\n", "+    return sum(price * count", "+++ b/shop.py", "+def sum_up(basket):", "fix-total "):
            check(expected in out, lambda out=out, expected=expected: f"{role}: {expected!r} is not in\n{out}\n{done.stderr}")
        bare = g.ORIGIN / "shop.git"
        pushed = g.git(bare, "show", "fix-total:shop.py")
        check("price * count" in pushed and "def sum_up(basket)" in pushed, pushed)
        same(g.git(bare, "diff", "--name-only", "main..fix-total"), "shop.py", "nothing else was committed")
        same(g.git(bare, "log", "--format=%s", "main..fix-total"), "the total counts what is in the basket", "the commit")
        same(g.git(bare, "rev-parse", "main"), g.git(source, "rev-parse", "main"), "main is as it was")
        client = place.client_of(api, role)
        client.remove_all()
        g.clear(client)
        same(g.markers(), [], url)
        bare.rename(g.ORIGIN / f"shop-{role}.git")


if __name__ == "__main__":
    sys.exit(g.main(__file__))
