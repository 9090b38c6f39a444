#!/usr/bin/env python3
"""The README's working day of an agent, run literally against a git server: clone, edit, test, undo, fork, merge, diff, push;
and what can happen on such a day, undone. TAP."""
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import zipfile

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


# What a day is, in this order: a word of a line of the README, and what else must stand there.
STEPS = (("up", "https://"), ("edit", "shop.py"), ("exec", "test_shop.py"), ("exec", "rm -rf * .git"), ("undo", ""), ("fork", ""), ("exec", "test_shop.py"), ("merge", ""),
         ("diff", "-p"), ("commit", "-m"), ("push", ""))


@test("the README has a day's commands in their order: clone, edit, test, undo, fork, merge, diff, push; nothing else is run")
def _(_api):
    lines = DAY.splitlines()
    at = 0
    for word, text in STEPS:
        found = [i for i, line in enumerate(lines[at:], at) if re.match(rf"(\w+=\$\()?caisson {word} ", line) and text in line]
        check(found, f"{word} {text} is not in what follows {lines[:at]}")
        at = found[0] + 1
    same([line for line in lines if not re.match(r"(\w+=\$\()?caisson ", line)], [], "lines that are no commands of ours")


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


def wheel():
    """A package as pip installs it: two hundred modules and a program."""
    out = io.BytesIO()
    files = {f"pkg/m{i}.py": f"x = {i}\n" * 20 for i in range(200)}
    files |= {"pkg/__init__.py": "def main():\n    print('installed')\n", "pkg-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: pkg\nVersion: 1\n",
              "pkg-1.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
              "pkg-1.dist-info/entry_points.txt": "[console_scripts]\npkg = pkg:main\n"}
    files["pkg-1.dist-info/RECORD"] = "".join(f"{name},,\n" for name in files) + "pkg-1.dist-info/RECORD,,\n"
    with zipfile.ZipFile(out, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return out.getvalue()


# As some are: over files that are there, into folders of others, with hooks and links.
INSTALLER = """#!/bin/sh
set -e
python3 -m pip install -q --no-index --no-deps --no-compile --disable-pip-version-check --target vendor dist/pkg-1-py3-none-any.whl
PYTHONPATH=vendor python3 -B -c 'import pkg; pkg.main()'
mkdir -p .git/hooks; printf '#!/bin/sh\\nexit 1\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
git config core.hooksPath /work/vendor; git config user.name installer
mv src lib; ln -s lib src; rm README; mkdir README; chmod 700 tool; sed -i s/one/two/ lib/a.txt
: >.gitignore; touch -d 2001-01-01 lib/b.txt; git add -A; git -c core.hooksPath= commit -qm installed
"""
HARM = {"rm -rf * .git": "rm -rf * .git", "git reset --hard": "git reset -q --hard HEAD~1 && git clean -qfdx && git reflog expire --expire=now --all && git gc -q --prune=now",
        "an installer": "sh install.sh"}


def state_of(client, work):
    """(tree hash of all there is, by the API: kinds, modes, owners, times, contents; what git says)"""
    with tarfile.open(fileobj=io.BytesIO(client.get(f"/v1/workspaces/{work}/archive").body)) as tar:
        found = {m.name: (m.type, m.mode, m.uid, m.gid, m.linkname, m.mtime if not m.isdir() else 0, hashlib.sha256(tar.extractfile(m).read() if m.isreg() else b"").hexdigest())
                 for m in tar}
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest(), len(found)


@test("rm -rf * .git; git reset --hard; an installer: each undone by one command, the tree hash as before, git status clean")
def _(api):
    for role in place.ROLES:
        source = g.make(f"harm-{role}", {"src/a.txt": "one\n", "src/b.txt": "b\n", "README": "read me\n", "tool": "#!/bin/sh\n", "install.sh": INSTALLER, ".gitignore": "*.pyc\n"})
        (source / "tool").chmod(0o755)
        (source / "dist").mkdir()
        (source / "dist/pkg-1-py3-none-any.whl").write_bytes(wheel())
        g.commit(source, "second", more="more\n")
        daemon, client = place.daemon_of(api, role), place.client_of(api, role)
        g.caisson(daemon, "up", g.serve(source), "--task", "harm")
        status = lambda daemon=daemon: g.caisson(daemon, "exec", "harm", "--", "git", "status", "--porcelain").stdout  # noqa: E731
        same(status(), "", "clean at first")
        head = g.git(source, "rev-parse", "HEAD")
        for name, command in HARM.items():
            before = state_of(client, "harm")  # now: git status writes what it saw of the files into its index
            g.caisson(daemon, "exec", "harm", "--", "sh", "-c", command)
            check(state_of(client, "harm") != before, f"{role}: {name} did nothing")
            g.caisson(daemon, "undo", "harm")
            same(state_of(client, "harm"), before, f"{role}: {name}, undone")
            same((status(), g.caisson(daemon, "exec", "harm", "--", "git", "rev-parse", "HEAD").stdout.strip()), ("", head), f"{role}: {name}: git")
        client.remove_all()
        g.clear(client)


if __name__ == "__main__":
    sys.exit(g.main(__file__))
