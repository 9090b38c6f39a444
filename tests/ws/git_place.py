"""git_place.py - repositories for tests: on a real server by HTTPS, in a folder, and hostile ones.

A hostile repository carries every command that git can be made to run by what is in a repository. Each command
makes the same marks; markers() are those that were made where nobody may make any: on the host.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/net"), str(ROOT / "tests/api")]

import place  # noqa: E402
import internet  # noqa: E402
import lib  # noqa: E402
import servers  # noqa: E402
from lib import check, same  # noqa: E402

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson-vault")
ORIGIN = servers.FOLDER / "git"          # what nginx serves as https://git.test/
FOLDERS = pathlib.Path("/run/folders")   # of the caller
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
MARK = "marked-by-git"
MARKED = [f"/tmp/{MARK}", f"/run/{MARK}", f"/{MARK}", f"/run/folders/{MARK}"]
PAYLOAD = "sh -c '" + "; ".join(f"touch {path}" for path in (*MARKED, f"/work/{MARK}")) + "'"
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
       "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org"}


def git(folder, *words, data=None, status=0):
    """On the host of the tests, in a repository that the test made itself: what it prints."""
    done = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(folder), *map(str, words)], input=data, env=ENV,
                          capture_output=True, timeout=100, check=False)
    check(done.returncode == status, lambda: f"git {words}: {done}")
    return done.stdout.decode(errors="surrogateescape").strip()


def make(name, files=None, folder=FOLDERS):
    """A repository with one commit on main."""
    path = folder / name
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")
    for file, text in (files or {"a.txt": "one\n", "d/b.txt": "two\n"}).items():
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_text(text)
    git(path, "add", "-A")
    git(path, "commit", "-qm", "first")
    return path


def serve(path, name=None):
    """A copy of it on the server: its URL."""
    name = name or f"{path.name}.git"
    git("/", "clone", "-q", "--bare", "--no-local", f"file://{path}", ORIGIN / name)
    git(ORIGIN / name, "config", "http.receivepack", "true")
    return f"https://git.test/{name}"


def commit(path, message="next", branch=None, **files):
    """One more, on a branch of its own perhaps: its hash."""
    if branch:
        git(path, "checkout", "-q", "-B", branch)
    for file, text in files.items():
        (path / file.replace("__", ".")).write_text(text)
    git(path, "add", "-A")
    git(path, "commit", "-qm", message, "--allow-empty")
    return git(path, "rev-parse", "HEAD")


# ---- hostile ------------------------------------------------------------------------------------

# Keys of a configuration whose value git executes, or that lead to one.
KEYS = ["core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy", "core.alternateRefsCommand",
        "sequence.editor", "diff.external", "diff.evil.textconv", "diff.evil.command", "filter.evil.clean", "filter.evil.smudge",
        "filter.evil.process", "merge.evil.driver", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "credential.helper",
        "alias.status", "alias.commit", "uploadpack.packObjectsHook", "remote.origin.uploadpack", "remote.origin.receivepack",
        "pager.diff", "pager.log", "pager.status", "interactive.diffFilter", "sendemail.sendmailCmd", "difftool.evil.cmd",
        "mergetool.evil.cmd", "browser.evil.cmd", "trailer.evil.command", "lfs.customtransfer.evil.path", "submodule.evil.update",
        "blame.ignoreRevsFile", "init.templateDir"]
HOOKS = ["applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg",
         "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive",
         "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman",
         "post-index-change", "query-watchman"]


def arm(git_folder):
    """Its configuration and its hooks run the payload."""
    config = [f"[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[core]\n\thooksPath = {git_folder}/hooks\n\tattributesFile = /work/.gitattributes\n"]
    for key in KEYS:
        section, _, name = key.rpartition(".")
        head, _, sub = section.partition(".")
        value = "!" + PAYLOAD if head == "alias" or key == "submodule.evil.update" else PAYLOAD
        value = value.replace("\\", "\\\\").replace('"', '\\"')
        config.append(f'[{head}{f" {chr(34)}{sub}{chr(34)}" if sub else ""}]\n\t{name} = "{value}"\n')
    config.append(f'[include]\n\tpath = {git_folder}/more\n[includeIf "gitdir:/"]\n\tpath = {git_folder}/more\n[url "ext::{PAYLOAD}"]\n\tinsteadOf = https://\n')
    with open(git_folder / "config", "a", encoding="utf-8") as f:
        f.write("".join(config))
    (git_folder / "more").write_text(f'[core]\n\tfsmonitor = "{PAYLOAD}"\n')
    (git_folder / "hooks").mkdir(exist_ok=True)
    for hook in HOOKS:
        (git_folder / "hooks" / hook).write_text(f"#!/bin/sh\n{PAYLOAD}\n")
        (git_folder / "hooks" / hook).chmod(0o755)
    (git_folder / "info").mkdir(exist_ok=True)
    (git_folder / "info/attributes").write_text("* filter=evil diff=evil merge=evil\n")


def hostile_files():
    return {".gitattributes": "* filter=evil diff=evil merge=evil ident\n*.u working-tree-encoding=UTF-16\n[attr]x filter=evil\n",
            ".gitmodules": f'[submodule "evil"]\n\tpath = sub\n\turl = "ext::{PAYLOAD}"\n\tupdate = none\n',
            ".lfsconfig": f'[lfs]\n\turl = "ext::{PAYLOAD}"\n[lfs "customtransfer.evil"]\n\tpath = "{PAYLOAD}"\n',
            ".mailmap": "t <x@example.org> <t@example.org>\n", ".husky/pre-commit": f"#!/bin/sh\n{PAYLOAD}\n",
            "a.txt": "one $Id$\n", "d/b.txt": "two\n"}


def hostile(name):
    """A folder of the caller's, armed in every way."""
    path = make(name, hostile_files())
    arm(path / ".git")
    return path


def markers():
    """What was executed on the host, or left there by a sandbox."""
    found = [path for path in MARKED if pathlib.Path(path).exists()]
    for folder in (lib.HOME, FOLDERS, ORIGIN):
        found += [str(p) for p in folder.rglob(MARK)]
    return found


def prepare():
    FOLDERS.mkdir(mode=0o755)
    finish_world = place.prepare()
    # git in a sandbox reads what the host trusts; TLS passes the gate unread.
    internet.bind_over(BUNDLE, pathlib.Path(BUNDLE).read_text() + servers.CA.read_text())

    def finish():
        for daemon in place.users:  # as finish_world() ends them
            clear(daemon.client())
        finish_world()
        end_vaults()
        shutil.rmtree(FOLDERS)
    return finish


def clear(client):
    for work in client.ok("GET", "/v1/workspaces?limit=1000")["workspaces"]:
        client.delete(f"/v1/workspaces/{work['id']}?force=1")
    for repo in client.ok("GET", "/v1/repos?limit=1000")["repos"]:
        client.delete(f"/v1/repos/{repo['id']}")


def end_vaults():
    """Keepers outlive their daemons for a minute; the census is not that patient."""
    for pid in lib.census.pids():
        if (lib.stat_of(pid) or ("",))[0].startswith("caisson-vault"):
            os.kill(pid, signal.SIGTERM)
    lib.wait_until(lambda: (lib.census.reap(), not [p for p in lib.census.pids() if (lib.stat_of(p) or ("",))[0].startswith("caisson-vault")])[1],
                   5, "the end of keepers")


def main(file, seconds=lib.PROGRAM_SECONDS):
    return lib.main(file, seconds=seconds, options=place.OPTIONS, prepare=prepare)


def put(client, key, url, status=(200, 201), **more):
    answer = client.put(f"/v1/repos/{key}", {"url": str(url), **more})
    check(answer.status in status, lambda: f"{key} {url}: {answer}")
    return answer.json


def caisson(daemon, *words, status=0, env_more=None, **options):
    """The command, as the user whose daemon it is; its exit status is checked."""
    who = {} if daemon.uid is None else {"user": daemon.uid, "group": daemon.uid, "extra_groups": []}
    done = subprocess.run([str(lib.cell.BIN / "caisson"), *map(str, words)], capture_output=True, text=True, timeout=100, cwd="/",
                          env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(daemon.socket), **(env_more or {})},
                          stdin=subprocess.DEVNULL, check=False, **who, **options)
    check(done.returncode in (status if isinstance(status, tuple) else (status,)), lambda: f"caisson {' '.join(map(str, words))}: {done}")
    return done


def put_folder(api, role, key, path, status=0):
    """By the command: folders are opened with the rights of the client's process."""
    return caisson(place.daemon_of(api, role), "repo", "add", path, key, status=status)


def refused(answer, code):
    same(answer.code, code, f"{answer}")
    return answer.json["detail"]
