"""failure_modes.py - how sandboxes fail agents, F1 to F22, and that this one does not.

    failure-modes.sh [F3 F12...]    all rows of docs/failure-modes.md, or only these

Each function is one row. They share a daemon; a row that needs more than one sandbox, or one with
limits, makes its own.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import api

tap = api.Tap()
daemon = None
MIB = 1 << 20
SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


def check(name, is_ok, *said):
    caller = sys._getframe(1).f_code.co_name
    return tap.check(f"{caller}: {name}", is_ok, *said)


class Sandbox:
    """A sandbox for the length of a with."""
    def __init__(self, **spec):
        answer = daemon.ask("POST", "/v1/sandboxes", spec)
        if answer.status != 201:
            raise RuntimeError(f"no sandbox: {answer}")
        self.about = answer.json
        self.id = self.about["id"]
        self.path = f"/v1/sandboxes/{self.id}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        daemon.ask("DELETE", self.path)

    def ask_exec(self, cmd, headers=None, **more):
        return daemon.ask("POST", f"{self.path}/exec", {"cmd": cmd, "timeout": "100s", **more}, headers)

    def run(self, cmd, **more):
        answer = self.ask_exec(cmd, **more)
        if answer.status != 200:
            raise RuntimeError(f"{cmd}: {answer}")
        return answer.json

    def verb(self, name):
        return daemon.ask("POST", f"{self.path}/{name}", {})

    def has_cgroup(self):
        return "cgroup" in self.about["enforced"]["pids"]

    def get(self):
        return daemon.ask("GET", self.path).json

    def put(self, path, data, **headers):
        return daemon.ask("PUT", f"{self.path}/files/{path}", data,
                          {k.replace("_", "-"): v for k, v in headers.items()})

    def read(self, path):
        return daemon.ask("GET", f"{self.path}/files/{path}")


def process(id_, wait="0s"):
    return daemon.ask("GET", f"/v1/processes/{id_}?wait={wait}").json


def events(id_, after=0):
    answer = daemon.ask("GET", f"/v1/processes/{id_}/events?after={after}")
    return [json.loads(line) for line in answer.body.splitlines()]


def data_of(event):
    return base64.b64decode(event["base64"]) if "base64" in event else event["data"].encode()


def seconds(function):
    begin = time.monotonic()
    return function(), time.monotonic() - begin


def eventually(is_so, limit=40):
    end = time.monotonic() + limit
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def listing(sandbox, label):
    return daemon.ask("GET", f"/v1/processes?sandbox={sandbox.id}&label={label}").json["processes"]


# A process inside, found by its arguments; the searcher itself does not count.
def alive(sandbox, mark):
    return sandbox.run(f"grep -lz '^{mark}$' /proc/[0-9]*/cmdline 2>/dev/null | grep -v self | wc -l")["stdout"].strip()


# ---- commands ---------------------------------------------------------------------------------

@row
def F1():
    with Sandbox() as s:
        r, took = seconds(lambda: s.run("cat; read x; echo read $?"))
        check("what reads its input finds the end at once", r["stdout"] == "read 1\n" and took < 50, r)
        r = s.run("(: </dev/tty) 2>/dev/null && echo tty; echo $GIT_TERMINAL_PROMPT $PAGER $DEBIAN_FRONTEND")
        check("there is no terminal to ask on, and programs are told", r["stdout"] == "0 cat noninteractive\n", r)
        r = s.run("echo name:; read x; echo got $x", tty=True, stdin=True, wait="0s")
        check("one that waits on its terminal says so",
              eventually(lambda: process(r["id"], "1s")["waiting_for_input"] is True) and process(r["id"])["state"] == "running", process(r["id"]))
        daemon.ask("POST", f"/v1/processes/{r['id']}/stdin", {"data": "me\n"})
        r = process(r["id"], "40s")
        check("and goes on with what it is given", "got me" in r["stdout"] and r["state"] == "exited", r)


@row
def F2():
    with Sandbox() as s:
        r, took = seconds(lambda: s.run(
            "setsid sleep 901 & (setsid sh -c 'sleep 901 & sleep 901' &); nohup sleep 901 & trap '' TERM; sleep 901",
            timeout="500ms"))
        check("a timeout is told as one, in time", r["state"] == "timeout" and took < 50, r, took)
        check("nothing of it is left, however it was started", alive(s, "901") == "0", alive(s, "901"))
        if s.has_cgroup():
            check("and nothing is said to be left", r["children"] == [], r["children"])
        else:
            tap.skip("F2: nothing is said to be left", "needs a cgroup for each command")


@row
def F3():
    with Sandbox() as s:
        r, took = seconds(lambda: s.run("sleep 300 & until grep -qx sleep /proc/$!/comm; do :; done; echo started"))
        check("a server in the background does not hold the answer", r["stdout"] == "started\n" and took < 60, r, took)
        check("it is named as left running", [c["name"] for c in r["children"]] == ["sleep"], r["children"])
        first = s.run("(sleep 1; echo late) & echo now")
        second = s.run("sleep 2; echo second")
        check("what it says later is not in the next command's output",
              (first["stdout"], second["stdout"]) == ("now\n", "second\n"), first, second)
        check("but in the log of its own", eventually(lambda: daemon.ask("GET", first["log"]).body == b"now\nlate\n"),
              daemon.ask("GET", first["log"]).body)


@row
def F4():
    with Sandbox() as s:
        connection = daemon.connect()
        connection.request("POST", f"{s.path}/exec", json.dumps(
            {"cmd": "sleep 1; echo done >/work/f4", "label": "kept"}))
        eventually(lambda: listing(s, "kept"))
        connection.close()
        listed = listing(s, "kept")
        check("a process whose client has left is still on record", len(listed) == 1, listed)
        check("and ends as if nobody had left", process(listed[0]["id"], "40s")["exit_code"] == 0 and
              s.read("work/f4").body == b"done\n", listed)
        connection = daemon.connect()
        connection.request("POST", f"{s.path}/exec", json.dumps(
            {"cmd": "sleep 902", "on_disconnect": "kill", "label": "killed"}))
        eventually(lambda: listing(s, "killed"))
        connection.close()
        check("on_disconnect: kill ends it", eventually(lambda: alive(s, "902") == "0"))


@row
def F5():
    with Sandbox() as s:
        s.run("for i in 1 2 3 4 5 6 7 8; do (sh -c 'sleep 0.1 & exit' &) ; done; sleep 0.5")
        zombies = "grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l"
        check("orphans are reaped", eventually(lambda: s.run(zombies)["stdout"] == "0\n"), s.run(zombies))


@row
def F6():
    size = 256 * MIB
    with Sandbox(limits={"output": "1g"}) as s:
        s.run("head -c 4m /dev/zero")  # buffers are there now
        before = daemon.memory()
        r = s.run(f"head -c {size} /dev/zero | tr '\\0' x; echo; echo end", output={"max_log": "8m"})
        grown = daemon.memory() - before
        check("256 MiB of output are read to the end", r["state"] == "exited" and r["stdout"].endswith("x\nend\n"),
              r["state"], r["bytes"])
        check("and counted", r["bytes"]["stdout"] == size + 5, r["bytes"])
        check("at most 16 MiB of memory are needed for it", grown <= 16 * MIB, grown)


@row
def F7():
    whole = "".join(f"{i}\n" for i in range(1, 100001))
    with Sandbox() as s:
        r = s.run("seq 1 100000")
        check("head and tail are shown", r["stdout"].startswith("1\n2\n") and r["stdout"].endswith("\n99999\n100000\n"),
              r["stdout"][:50], r["stdout"][-50:])
        check("and how much is not", 0 < r["bytes"]["dropped"] < r["bytes"]["stdout"] == len(whole), r["bytes"])
        log = daemon.ask("GET", r["log"])
        check("the log has all of it", log.body == whole.encode(), len(log.body))
        part = daemon.ask("GET", r["log"], headers={"Range": "bytes=-7"})
        check("also in part", (part.status, part.body) == (206, b"100000\n"), part)


@row
def F8():
    text = "aü€😀" * 3000
    with Sandbox() as s:
        r = s.run(["python3", "-c", "import os,time\nb='aü€😀'*3000\nb=b.encode()\n"
                   "for i in range(0, len(b), 997): os.write(1, b[i:i+997]); time.sleep(0.001)"])
        check("text that was written in pieces is text", (r["encoding"], r["stdout"]) == ("utf-8", text),
              r["encoding"], r["bytes"], r["stderr"])
        got = events(r["id"])
        check("events are cut between characters", all("data" in e for e in got if e["type"] == "output") and
              "".join(e["data"] for e in got if e["type"] == "output") == text, got[:2])
        r = s.run("printf 'a\\377\\000b'")
        check("bytes that are no text come exactly", r["encoding"] == "base64" and
              base64.b64decode(r["stdout"]) == b"a\xff\0b", r)
        check("as events too", b"".join(data_of(e) for e in events(r["id"]) if e["type"] == "output") == b"a\xff\0b")


@row
def F9():
    with Sandbox() as s:
        before = b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n"
        hash_ = s.put("work/f", before).json["hash"]
        edit = {"edits": [{"old": "one\ntwo", "new": "1\n2"}]}
        r = daemon.ask("PATCH", f"{s.path}/files/work/f", edit, {"If-Match": hash_})
        check("an edit with other line ends finds its place, and says how",
              r.status == 200 and r.json["match"] == "eol" and r.json["replaced"] == 1, r)
        check("line ends and byte order mark stay", s.read("work/f").body == b"\xef\xbb\xbf1\r\n2\r\nthree\r\n",
              s.read("work/f").body)
        check("the answer shows what has changed", "+2" in r.json["diff"], r)
        r = daemon.ask("PATCH", f"{s.path}/files/work/f", {"edits": [{"old": "three", "new": "3"}]}, {"If-Match": hash_})
        check("an edit of what has changed meanwhile is refused", (r.status, r.code) == (412, "stale"), r)


# ---- sandboxes --------------------------------------------------------------------------------

@row
def F10():
    with Sandbox() as s:
        s.put("work/unsaved", b"hours of work")
        s.run("sleep 903 & echo more >>/work/unsaved")
        s.verb("stop")
        r = s.verb("start")
        check("stop and start keep every byte", r.json["state"] == "running" and
              s.read("work/unsaved").body == b"hours of workmore\n", r, s.read("work/unsaved"))
        check("processes do not survive a stop, and nobody says they do", alive(s, "903") == "0")
        if daemon.process:
            daemon.restart()
            check("a crash of the daemon keeps every byte", s.read("work/unsaved").body == b"hours of workmore\n",
                  s.read("work/unsaved"))


@row
def F11():
    with Sandbox(key="f11") as s:
        s.verb("stop")
        r = s.ask_exec("true")
        check("stopped is an answer of its own", (r.status, r.code) == (409, "conflict") and
              s.get()["state"] == "stopped", r, s.get())
        r = s.verb("start")
        check("it is the same one that is started again", r.json["id"] == s.id and r.json["generation"] == 1, r)
        daemon.ask("DELETE", s.path)
        r = s.ask_exec("true")
        check("gone is an answer of its own", r.code == "not_found" and s.get()["state"] == "gone", r, s.get())
        listed = [b["id"] for b in daemon.ask("GET", "/v1/sandboxes").json["sandboxes"] if b["key"] == "f11"]
        check("and no new one took its place", listed in ([], [s.id]), listed)
    if not daemon.process:
        tap.skip("F11: unreachable", "the daemon is not ours")
        return
    before = daemon.children()
    with Sandbox() as s:
        monitor = next(p for p in daemon.children() if p not in before)
        os.kill(monitor, signal.SIGSTOP)
        try:
            daemon.restart()
            r = s.ask_exec("true")
            check("unreachable is an answer of its own: ask again",
                  (r.status, r.code) == (503, "sandbox_unavailable") and r.json["retry_safe"] is True, r)
            check("on doubt it is not replaced", s.get()["generation"] == 1 and s.get()["state"] == "unreachable", s.get())
        finally:
            os.kill(monitor, signal.SIGCONT)
        check("when it answers again, it is the same one",
              eventually(lambda: s.get()["state"] == "running") and s.run("echo here")["stdout"] == "here\n", s.get())


@row
def F12():
    with Sandbox() as s:
        r = s.run("for i in $(seq 1 40); do echo line $i; sleep 0.1; done; exit 7", wait="0s")
        connection = daemon.connect()
        connection.request("GET", f"/v1/processes/{r['id']}/events?follow=1")
        stream = connection.getresponse()
        first = [json.loads(stream.readline()) for _ in range(3)]
        connection.sock.close()
        connection.close()
        process(r["id"], "40s")
        rest = events(r["id"], first[-1]["seq"])
        text = "".join(e["data"] for e in first + rest if e["type"] == "output")
        check("after a lost stream, the rest is there and nothing twice",
              text == "".join(f"line {i}\n" for i in range(1, 41)), text)
        check("the exit code is the command's", rest[-1]["type"] == "end" and rest[-1]["process"]["exit_code"] == 7,
              rest[-1])
    if not daemon.process:
        tap.skip("F12: lost", "the daemon is not ours")
        return
    before = daemon.children()
    with Sandbox() as s:
        monitor = next(p for p in daemon.children() if p not in before)
        r = s.run("sleep 904", wait="0s")
        os.kill(monitor, signal.SIGKILL)
        r = process(r["id"], "40s")
        check("when nobody knows how it ended, the answer is lost and not 0",
              r["state"] == "lost" and r["exit_code"] is None, r)


@row
def F13():
    with Sandbox() as s:
        rows = [("exit 1", 1), ("set -e; false; echo no", 1), ("echo 'open", 2), ("kill -9 $$", None),
                ("PS1='$ '; exec 1>&-; true", 0)]
        got = [(r["exit_code"], r["state"]) for r in (s.run(cmd) for cmd, _ in rows)]
        check("exit, set -e, an open quote and a killed shell are results of that command",
              got == [(code, "exited" if code is not None else "signaled") for _, code in rows], got)
        check("and the next one runs as ever", s.run("echo fine")["stdout"] == "fine\n")
        rows = [("echo 'open", 2), ("PS1='END 0'; echo END 0; printf 'no newline'; false", 1), ("exec 1>&- 2>&- 9>&-; (exit 3)", 3)]
        got = [(r["exit_code"], r["state"], r["shell"]["restarted"]) for r in (s.run(cmd, shell="a") for cmd, _ in rows)]
        check("a named shell goes on after an open quote, prompts in the output and closed descriptors",
              got == [(code, "exited", False) for _, code in rows], got)
        s.run("cd /tmp; export A=1; set -e", shell="b")
        dead = s.run("false; echo no", shell="b")
        after = s.run("pwd; echo $A", shell="b")
        check("what ends it is the command's own end; the next one has folder and variables back, and says so",
              (dead["exit_code"], dead["stdout"], after["stdout"]) == (1, "", "/tmp\n1\n") and after["shell"]["restarted"]
              and "exit status 1" in after["shell"]["reason"], [dead, after])


@row
def F14():
    with Sandbox() as s:
        s.run("cd /tmp; export A=1")
        r = s.run("pwd; echo $A")
        check("the answer says where a command ran, and it is true", r["stdout"] == f"{r['cwd']}\n\n", r)
        r = s.run("pwd; echo $A", cwd="/tmp", env={"A": "2"})
        check("where it runs and with what is said with the command", r["stdout"] == "/tmp\n2\n" and r["cwd"] == "/tmp", r)
        r = s.run("cd /tmp; export A=3; b=4", shell="main")
        check("in a named shell the answer says where the command left it", r["cwd"] == "/tmp", r)
        r = s.run("pwd; echo $A$b", shell="main")
        check("and the next one goes on there", r["stdout"] == "/tmp\n34\n", r)


@row
def F15():
    if not shutil.which("git"):
        tap.skip("F15: worktrees", "git is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run([*git, "init", "-q"], check=True)
        pathlib.Path(folder, "f").write_text("one\n")
        subprocess.run([*git, "add", "f"], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, check=True).stdout
        boxes = [Sandbox(fs=f"overlay:{folder}:/work") for _ in range(4)]
        try:
            cmd = ("git config --global --add safe.directory /work; git config --global user.name b; "
                   "git config --global user.email b@example.org; sleep 0.2; for i in 1 2 3; do echo $i >>f; "
                   "git commit -qam $i || exit 1; done; git config core.bare true; git rev-list --count HEAD")
            begun = [s.run(cmd, wait="0s")["id"] for s in boxes]
            got = [process(id_, "100s") for id_ in begun]
            check("four at once on one checkout: no lock, no race", [r["stdout"] for r in got] == ["4\n"] * 4,
                  *(r["stdout"] + r["stderr"] for r in got))
        finally:
            for s in boxes:
                s.__exit__()
        after = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, check=True).stdout
        status = subprocess.run([*git, "status", "--porcelain"], capture_output=True, check=True).stdout
        check("and the checkout on the host is as it was", (after, status) == (head, b""), after, status)


@row
def F16():
    with Sandbox() as s:
        r = s.run(f"env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'")
        check("what the daemon has in its environment is not inside", SECRET not in r["stdout"] and
              "CAISSON_F16" not in r["stdout"], r)
    r = daemon.ask("POST", "/v1/sandboxes", {"creds": SECRET})
    check("a secret in a spec is refused, and not repeated", r.code == "invalid" and SECRET.encode() not in r.body, r)
    check("nor written to the log", SECRET not in daemon.said())


@row
def F17():
    serve = "mkdir -p /tmp/w && echo {0} >/tmp/w/i && python3 -m http.server -d /tmp/w 3000 >/dev/null 2>&1 & "
    ask = "for i in $(seq 50); do python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:3000/i\").read().decode().strip())' 2>/dev/null && break; sleep 0.1; done"
    with Sandbox() as a, Sandbox() as b:
        got = [s.run(serve.format(name) + ask)["stdout"] for s, name in ((a, "first"), (b, "second"))]
        check("two servers have the same port, each its own", got == ["first\n", "second\n"], got)
        check("and the next command reaches the one of its sandbox", a.run(ask)["stdout"] == "first\n")
        a.verb("stop")
        a.verb("start")
        r = a.run("python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:3000/i\")' 2>&1 | tail -1")
        check("after a restart nobody else answers in its place", "refused" in r["stdout"], r)


@row
def F18():
    with Sandbox() as other, Sandbox(limits={"mem": "64m", "pids": 64}, allow_weaker=["mem", "pids"]) as s:
        live = other.run("sleep 905", wait="0s")
        r = s.run("pkill -9 -f caisson; pkill -9 sleep; kill -9 -1; echo no")
        check("kill of everything kills what is inside", r["state"] in ("signaled", "killed"), r)
        check("and nothing else", process(live["id"])["state"] == "running" and
              daemon.ask("GET", "/v1/health").status == 200)
        if s.has_cgroup():
            r = s.run(["python3", "-c", "x = b'x' * (1 << 30)"])
            check("too much memory is told as that", r["state"] == "oom", r)
        else:
            tap.skip("F18: too much memory", "it cannot be limited here")
        check("the sandbox is usable afterwards", s.run("echo yes")["stdout"] == "yes\n")


@row
def F19():
    with Sandbox(limits={"pids": 16, "disk": "1m"}, allow_weaker="pids") as s:
        if s.has_cgroup():
            r = s.run("for i in $(seq 40); do sleep 2 & done; wait")
            check("a command that ran into a limit says which",
                  [(v["kind"], v["target"]) for v in r["violations"]] == [("limit", "pids")], r["violations"], r["stderr"])
        else:
            tap.skip("F19: processes", "a cgroup counts who was refused; there is none")
        r = s.run("head -c 4m /dev/zero >/work/big; echo $?")
        check("so does one that filled the disk", [v["target"] for v in r["violations"]] == ["disk"], r)


# ---- the daemon -------------------------------------------------------------------------------

@row
def F20():
    with Sandbox() as s:
        for _ in range(50):
            s.run("echo x")
        before = daemon.memory()
        for _ in range(300):
            s.run("echo x")
        grown = daemon.memory() - before
        check("300 commands later, the daemon is as large as before", grown < 2 * MIB, grown)
        r = s.run("yes", wait="0s", output={"max_log": "1m"})
        worst = max(seconds(lambda: daemon.ask("GET", "/v1/health"))[1] for _ in range(50) if not time.sleep(0.02))
        check("a flood of output does not hold up others", worst < 10 and process(r["id"])["state"] == "running", worst)
        daemon.ask("DELETE", f"/v1/processes/{r['id']}")
        r = s.run("yes", timeout="2s", output={"max_log": "1m"})
        check("nor the clock: its timeout is on time", r["state"] == "timeout" and 1900 < r["ms"] < 30000, r["state"], r["ms"])


@row
def F21():
    with Sandbox() as s:
        key = {"Idempotency-Key": f"f21-{s.id}"}
        first = s.ask_exec("echo x >>/work/n; wc -l </work/n", key)
        again = s.ask_exec("echo x >>/work/n; wc -l </work/n", key)
        check("the same request under the same key is done once",
              again.body == first.body and s.read("work/n").body == b"x\n", first, again)
        other = s.ask_exec("echo other", key)
        check("the key for another request is refused", (other.status, other.code) == (409, "conflict"), other)
        if not daemon.process:
            tap.skip("F21: crash", "the daemon is not ours")
            return
        live = s.run("sleep 1; echo survived; exit 5", wait="0s")
        check("a killed daemon comes back", daemon.restart(), daemon.said())
        again = s.ask_exec("echo x >>/work/n; wc -l </work/n", key)
        check("and knows what was done", again.body == first.body and s.read("work/n").body == b"x\n", first, again)
        r = process(live["id"], "40s")
        check("what ran meanwhile has lost nothing", (r["exit_code"], r["stdout"]) == (5, "survived\n"), r)
        r = s.verb("replace")
        check("who holds an old one can tell by the generation", r.json["generation"] == 2 and r.json["id"] == s.id, r)


@row
def F22():
    with Sandbox(limits={"disk": "4m"}) as s, Sandbox() as other:
        other.put("work/f", b"theirs")
        s.put("work/f", b"dirty")
        r = s.put("work/f", b"x" * (8 * MIB))
        check("what has no room is refused, in words", r.code == "quota", r)
        check("and makes no room of other work", s.read("work/f").body == b"dirty" and
              other.read("work/f").body == b"theirs", s.read("work/f"), other.read("work/f"))


def check_page():
    """The page has the rows of this file, and the tests that it names exist."""
    root = api.HERE.parent.parent
    text = (root / "docs/failure-modes.md").read_text()
    numbers = re.findall(r"^\| (F\d+) \|", text, re.M)
    tap.check("the page has a row for each", numbers == list(ROWS), numbers)
    named = re.findall(r"`(tests/\S+?)(?:: (\w+))?`", text)
    lost = [f"{path}: {name}" for path, name in named if not (root / path).exists() or
            name and f"({name})" not in (root / path).read_text() and name not in ROWS]
    tap.check("the tests that it names exist", not lost, *lost)


def main():
    global daemon
    names = sys.argv[1:] or list(ROWS)
    daemon = api.Daemon(env={**os.environ, "GITHUB_TOKEN": SECRET, "CAISSON_F16": SECRET})
    try:
        for name in names:
            try:
                ROWS[name]()
            except Exception as e:  # the other rows are looked at all the same
                tap.check(f"{name}: it was looked at", False, repr(e), daemon.said()[-1000:])
        check_page()
    finally:
        daemon.end()
    tap.end()


main()
