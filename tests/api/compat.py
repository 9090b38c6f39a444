#!/usr/bin/env python3
"""The doors for SWE-ReX and OpenHands, byte by byte: who may, whose sandbox, what is said twice, what is refused. TAP.

    tests/api/compat.py           all (needs root)
    tests/api/compat.py session   those with the word in their title

What their own packages make of it: tests/doors/swerex.py, tests/doors/openhands.py.
"""
import io
import json
import os
import pathlib
import select
import signal
import socket
import sys
import threading
import time
import urllib.parse
import zipfile

import lib
from lib import Client, Daemon, check, same, test, wait_until

REX, HANDS = "/compat/swerex", "/compat/openhands"


class Door:
    """A daemon with a TCP address, a token and a sandbox."""

    def __init__(self, name):
        self.daemon = Daemon(name, options=["--listen", "127.0.0.1:0"]).start()
        self.local = self.daemon.client()
        self.key = self.token("manage")
        self.id = self.local.create({"key": "given"})["id"]

    def token(self, scope):
        return self.local.ok("POST", "/v1/tokens", {"scope": scope})["token"]

    def call(self, method, path, body=None, headers=None, key=None):
        client = Client(("127.0.0.1", self.daemon.port()))
        name = "X-API-Key" if path.startswith(REX) else "X-Session-API-Key"
        try:
            return client.call(method, path, body, {**({} if key == "" else {name: key or self.key}), **(headers or {})})
        finally:
            client.close()

    def rex(self, verb, body=None, base="/given", **more):
        return self.call("POST", f"{REX}{base}/{verb}", {} if body is None else body, **more)

    def ok(self, verb, body=None, **more):
        answer = self.rex(verb, body, **more)
        same(answer.status, 200, f"{verb} {body}: {answer}")
        return answer.json

    def raises(self, class_path, verb, body=None, **more):
        answer = self.rex(verb, body, **more)
        same((answer.status, answer.json.get("swerexception", {}).get("class_path")), (511, class_path), f"{verb} {body}: {answer}")
        return answer.json["swerexception"]

    def run(self, command, **more):
        return self.ok("run_in_session", {"command": command, "timeout": 60, "check": "silent", **more})

    def sleeps(self, seconds):
        """Whether that command runs: its argument is in no other."""
        return any(lib.census.read(f"/proc/{p}/cmdline") == f"sleep\0{seconds}\0" for p in lib.census.pids())

    def stop(self):
        self.local.remove_all()
        self.daemon.wait_clean()
        self.daemon.stop()


class Within:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.door = Door(self.name)
        return self.door

    def __exit__(self, *_):
        self.door.stop()


def form(parts, boundary="b0undary"):
    out = b""
    for name, filename, data in parts:
        more = f'; filename="{filename}"' if filename else ""
        out += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + data + b"\r\n"
    return out + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


@test("who may: no key, a wrong one, too little; each door has its own header; health is for everybody", own=True)
def _(_api):
    with Within("who") as d:
        for path in (f"{REX}/given/is_alive", f"{REX}/is_alive", f"{HANDS}/given/server_info"):
            same([d.call("GET", path, key=k).status for k in ("", "cst_wrong", d.token("read"))], [401, 401, 200], path)
        same(d.call("GET", f"{REX}/given/is_alive", key="", headers={"X-Session-API-Key": d.key}).status, 401, "the other door's header")
        same(d.rex("execute", {"command": "id", "shell": True}, key=d.token("read")).status, 403, "read may not execute")
        same(d.rex("execute", {"command": "id", "shell": True}, key=d.token("exec")).status, 200, "exec may")
        same(d.rex("execute", {"command": "id", "shell": True}, base="", key=d.token("exec")).status, 403, "but it may not make a sandbox")
        same(d.call("GET", f"{HANDS}/given/health", key="").json, {"status": "ok"}, "health")
        same(d.call("GET", f"{REX}/given/is_alive", headers={"Host": "evil.test"}).status, 403, "another Host")
        same((d.call("GET", f"{REX}/").json, d.call("GET", f"{REX}/given").json), ({"message": "hello world"},) * 2, "the root")
        same((d.rex("execute", {}, base="/sb_nobody").status, d.call("GET", f"{REX}/nobody/is_alive").json["is_alive"]), (404, False), "no such sandbox")
        same((d.rex("nothing").status, d.rex("execute", b"{").status, d.rex("execute", {"command": 7}).status), (404, 400, 400), "nonsense")


@test("execute: streams, exit codes, signals, the environment, folders, time, and its exceptions", own=True)
def _(_api):
    with Within("execute") as d:
        same(d.ok("execute", {"command": "printf 'a\\377'; echo e >&2; exit 3", "shell": True}), {"stdout": "a\\xff", "stderr": "e\n", "exit_code": 3}, "streams")
        same(d.ok("execute", {"command": "echo a; echo b >&2", "shell": True, "merge_output_streams": True}), {"stdout": "a\nb\n", "stderr": "", "exit_code": 0}, "merged")
        same(d.ok("execute", {"command": "kill -9 $$", "shell": True})["exit_code"], -9, "a signal")
        same(d.ok("execute", {"command": ["printenv"], "env": {"A": "1 2"}})["stdout"], "A=1 2\n", "the whole environment")
        same(d.ok("execute", {"command": ["pwd"], "cwd": "/usr"})["stdout"], "/usr\n", "a folder")
        d.raises("swerex.exceptions.CommandTimeoutError", "execute", {"command": ["sleep", "9"], "timeout": 0.2})
        d.raises("builtins.FileNotFoundError", "execute", {"command": ["no-such-program"]})
        said = d.raises("swerex.exceptions.NonZeroExitCodeError", "execute", {"command": "echo \"it's\"; false", "shell": True, "check": True, "error_msg": "oh"})
        same(said["message"], "oh: Command 'echo \"it\\'s\"; false' failed with exit code 1. Stdout:\n\"it's\\n\"\nStderr:\n''", "as Python says it")


@test("session: what is typed is run whole, prompts are not to be seen, exit codes are true, patterns end a wait", own=True)
def _(_api):
    with Within("session") as d:
        d.raises("swerex.exceptions.SessionDoesNotExistError", "run_in_session", {"command": "true"})
        same(d.ok("create_session"), {"output": "", "session_type": "bash"}, "begun")
        d.raises("swerex.exceptions.SessionExistsError", "create_session")
        same(d.run("x=1\ncat <<'E'\n$x `!!` \"\\n\" grün\nE\nfalse"),
             {"output": "$x `!!` \"\\n\" grün\n", "exit_code": 1, "failure_reason": "", "expect_string": "SHELLPS1PREFIX", "session_type": "bash"}, "a document")
        same(d.run("echo $x; PS1='> '; (exit 42)")["exit_code"], 42, "the prompt that it still has")
        same(d.run("printf 'a\\r\\nb\\033[1mc\\033[0m'")["output"], "a\r\nbc", "control characters")
        same(len(d.run("head -c 600000 /dev/zero | tr '\\0' y")["output"]), 600000, "much")
        cut = d.run("head -c 9000000 /dev/zero | tr '\\0' y")["output"]
        check(len(cut) < 8000000 and "bytes left out" in cut and cut.endswith("yyy"), f"far too much: {len(cut)}")
        same(d.run("echo " + "z" * 200000)["output"], "z" * 200000 + "\n", "a long line")
        said = d.raises("swerex.exceptions.BashIncorrectSyntaxError", "run_in_session", {"command": "echo no\n(a"})
        check("syntax error" in said["extra_info"]["bash_stderr"], said)
        same(d.run("ok", check="ignore")["exit_code"], None, "nobody asked for the exit code")
        same(d.run("echo one; sleep 0.2; echo two", expect=["o[n]e"])["expect_string"], "o[n]e", "a pattern")
        same(d.rex("run_in_session", {"command": "true", "expect": ["("]}).status, 400, "no pattern")
        slow = time.monotonic()
        d.raises("swerex.exceptions.CommandTimeoutError", "run_in_session", {"command": "printf %030d 0; sleep 90", "expect": ["(0+)+b"], "timeout": 0.3})
        check(time.monotonic() - slow < 60, "a pattern that would look for ever")
        same(d.ok("run_in_session", {"action_type": "bash_interrupt"})["exit_code"], 0, "interrupted")
        same(d.run("echo on")["output"], "on\n", "and on")
        d.raises("pexpect.exceptions.EOF", "run_in_session", {"command": "exit", "timeout": 60})
        d.raises("swerex.exceptions.SessionDoesNotExistError", "close_session")


@test("session: two at once wait for each other, an interrupt does not, whoever left makes room", own=True)
def _(_api):
    with Within("turns") as d:
        d.ok("create_session")
        said = {}

        def run(name, command):
            said[name] = d.run(command)
        first = threading.Thread(target=run, args=("first", "sleep 0.4; echo a"))
        first.start()
        time.sleep(0.15)
        same(d.run("echo b")["output"], "b\n", "the second")
        first.join()
        same(said["first"]["output"], "a\n", "the first")
        first = threading.Thread(target=run, args=("held", "sleep 300; echo never"))
        first.start()
        wait_until(lambda: d.sleeps("300"), what="the command")
        d.ok("run_in_session", {"action_type": "bash_interrupt"})
        first.join(lib.PATIENCE)
        same((said.get("held") or {}).get("exit_code"), 130, "the command that was interrupted")
        client = Client(("127.0.0.1", d.daemon.port()))
        client.connection.request("POST", f"{REX}/given/run_in_session", json.dumps({"command": "trap '' INT; sleep 301"}), {"X-API-Key": d.key})
        wait_until(lambda: d.sleeps("301"), what="the command of one that leaves")
        client.close()
        time.sleep(0.2)
        d.ok("run_in_session", {"action_type": "bash_interrupt", "n_retry": 1, "timeout": 0.3})
        same(d.run("trap - INT; echo c")["output"].count("c\n"), 1, "after one that left")


@test("session: it outlives the daemon; what was said under an id is said again", own=True)
def _(_api):
    with Within("again") as d:
        d.ok("create_session", {"session": "s"})
        d.run("x=kept; cd /tmp", session="s")
        first = d.rex("run_in_session", {"command": "echo $((n += 1))", "session": "s"}, headers={"X-Request-ID": "one"})
        again = d.rex("run_in_session", {"command": "echo $((n += 1))", "session": "s"}, headers={"X-Request-ID": "one"})
        same((first.json, again.json["output"]), (again.json, "1\n"), "the same answer, once done")
        wrong = [d.rex("run_in_session", {"command": "(exit $((n += 1)))", "session": "s", "check": "raise"}, headers={"X-Request-ID": "two"}) for _ in range(2)]
        same([w.status for w in wrong] + [wrong[0].json], [511, 511, wrong[1].json], "an exception, too")
        d.daemon.kill()
        d.daemon.start()
        d.local = d.daemon.client()
        wait_until(lambda: d.rex("run_in_session", {"command": "true", "session": "s", "timeout": 40}).status == 200, 10, "found again")
        same(d.run("echo $x $PWD $n", session="s")["output"], "kept /tmp 1\n", "as it was")
        same(d.ok("close_session", {"session": "s"}), {"session_type": "bash"}, "closed")
        check(d.raises("swerex.exceptions.SessionDoesNotExistError", "close_session", {"session": "\1" * 128})["message"].endswith("' does not exist"), "a strange name")
        d.raises("swerex.exceptions.SessionDoesNotExistError", "close_session", {"session": "s"})


@test("files: texts as Python reads them, and its exceptions; uploads, whole or unpacked; what an archive may not do", own=True)
def _(_api):
    with Within("files") as d:
        same(d.ok("write_file", {"path": "new/deep.txt", "content": "ä\r\nb\rc\n"}), {}, "written")
        same(d.ok("read_file", {"path": "/work/new/deep.txt"})["content"], "ä\nb\nc\n", "read")
        d.ok("execute", {"command": "printf 'a\\377' >/work/bytes", "shell": True})
        same([d.ok("read_file", {"path": "/work/bytes", "errors": e})["content"] for e in ("ignore", "replace", "backslashreplace")], ["a", "a\ufffd", "a\\xff"], "errors")
        same(d.ok("read_file", {"path": "/work/bytes", "encoding": "latin-1"})["content"], "aÿ", "an encoding")
        d.raises("builtins.UnicodeDecodeError", "read_file", {"path": "/work/bytes"})
        d.raises("builtins.LookupError", "read_file", {"path": "/work/bytes", "encoding": "ebcdic"})
        d.raises("builtins.FileNotFoundError", "read_file", {"path": "/none"})
        d.raises("builtins.IsADirectoryError", "read_file", {"path": "/work"})
        d.raises("builtins.PermissionError", "write_file", {"path": "/etc/x", "content": ""})
        same([d.rex(verb, {"path": "x" * 9000, "content": ""}).status for verb in ("read_file", "write_file")], [400, 400], "no path is so long")
        data = bytes(range(256)) * 20000
        body, head = form([("file", "x", data), ("target_path", None, b"/work/up/x"), ("unzip", None, b"false")])
        same(d.rex("upload", body, headers=head).json, {}, "a file")
        same(d.local.get(f"/v1/sandboxes/{d.id}/files/work/up/x").body, data, "its bytes")

        def unzip(entries, target):
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in entries:
                    archive.writestr(name, text)
            body, head = form([("file", "z.zip", packed.getvalue()), ("target_path", None, target), ("unzip", None, b"true")])
            return d.rex("upload", body, headers=head)
        same(unzip([("a", "1"), ("d/", ""), ("d/b", "2" * 100000)], b"/work/tree").json, {}, "an archive")
        same(d.ok("execute", {"command": "cd /work/tree; find . -type f | sort; wc -c <d/b; ls -A /tmp", "shell": True})["stdout"], "./a\n./d/b\n100000\n", "unpacked")
        for name in ("../out", "/abs", "d/../../out"):
            same(unzip([(name, "x")], b"/work/bad").status, 400, name)
        body, head = form([("file", "z.zip", b"PK\5\6nonsense"), ("target_path", None, b"/work/bad"), ("unzip", None, b"true")])
        same(d.rex("upload", body, headers=head).status, 400, "no archive")
        body, head = form([("target_path", None, b"/work/bad")])
        same((d.rex("upload", body, headers=head).status, d.rex("upload", b"{}").status), (400, 400), "no file, no form")
        same(d.ok("execute", {"command": "ls -A /tmp; ls -d /work/bad /work/out /out", "shell": True})["stdout"], "", "nothing is left of them")


@test("files: of an upload that never got its name nothing stays; large answers that nobody takes are not made without end", own=True)
def _(_api):
    with Within("left") as d:
        def is_clean():
            return d.ok("execute", {"command": "ls -A /tmp", "shell": True})["stdout"] == ""
        body, head = form([("file", "x", b"x" * 100000), ("target_path", None, b"/work/x")])
        cut = body.index(b"target_path")
        same(d.rex("upload", body[:cut] + b"\r\n\r\n--b0undary--\r\n", headers=head).status, 400, "a name that is none")
        wait_until(is_clean, 5, "after a form that was refused")
        for n in (50000, cut, len(body) - 4):
            client = Client(("127.0.0.1", d.daemon.port()))
            client.connection.putrequest("POST", f"{REX}/given/upload")
            for key, value in {**head, "X-API-Key": d.key, "Content-Length": str(len(body))}.items():
                client.connection.putheader(key, value)
            client.connection.endheaders(body[:n])
            time.sleep(0.3)
            client.close()
            wait_until(is_clean, 5, f"after a client that left with {n} bytes sent")
        d.ok("execute", {"command": "yes 'a line of a text' | head -c 30000000 >/work/text; head -c 1100000 /work/text >/work/probe; truncate -s 5M /work/zeros", "shell": True})
        same(d.rex("read_file", {"path": "/work/zeros"}).status, 413, "no text")
        slow = [Client(("127.0.0.1", d.daemon.port())) for _ in range(6)]
        for client in slow:
            client.connection.connect()
            client.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connection.request("POST", f"{REX}/given/read_file", json.dumps({"path": "/work/text"}), {"X-API-Key": d.key})
        # Asked for with a file that is just large enough: one of 30 MB each time would keep the daemon from the others.
        wait_until(lambda: d.rex("read_file", {"path": "/work/probe"}).status == 409, 25, "another one is refused")
        d.ok("write_file", {"path": "/work/small", "content": "s"})
        same(d.ok("read_file", {"path": "/work/small"})["content"], "s", "a small one is not")
        for client in slow:
            client.close()
        wait_until(lambda: d.rex("read_file", {"path": "/work/text"}).status == 200, 25, "and then it is not")


@test("session: what a command writes, or a client expects, keeps nobody else waiting", own=True)
def _(_api):
    with Within("hostile") as d:
        d.ok("create_session")
        d.run("yes $'\\036P0\\036' | tr -d '\\n' | head -c 6000000; touch /work/done")
        wait_until(lambda: d.ok("execute", {"command": ["test", "-e", "/work/done"]})["exit_code"] == 0, 20, "all of them said")
        begun = time.monotonic()
        same(d.run("echo on")["output"], "on\n", "after a million prompts")
        check(time.monotonic() - begun < 5, f"{time.monotonic() - begun} s")
        begun = time.monotonic()
        said = d.raises("swerex.exceptions.CommandTimeoutError", "run_in_session",
                        {"command": "head -c 300000 /dev/zero | tr '\\0' a; sleep 9", "expect": [".{0,200}.{0,200}(?=[bc])"], "timeout": 1})
        check(time.monotonic() - begun < 4 and "takes too long" in said["message"], f"{time.monotonic() - begun} s: {said}")
        d.ok("run_in_session", {"action_type": "bash_interrupt"})
        same([d.rex("run_in_session", {"command": "true", "expect": e}).status for e in (["x" * 5000], ["x"] * 65)], [400, 400], "patterns have bounds")
        d.local.ok("POST", f"/v1/sandboxes/{d.id}/exec", {"cmd": "stty -echo; exec sleep 100", "tty": True, "label": "swerex:mute", "wait": "0s"})
        time.sleep(0.5)
        same(d.run("x", session="mute", is_interactive_command=True, expect=[""])["expect_string"], "", "nothing was said, and nothing expected")
        d.rex("run_in_session", {"command": "sleep 100", "timeout": 0.2})
        waiting = [Client(("127.0.0.1", d.daemon.port())) for _ in range(17)]
        for client in waiting:
            client.connection.request("POST", f"{REX}/given/run_in_session", json.dumps({"command": "cat", "is_interactive_command": True}), {"X-API-Key": d.key})
        told = select.select([c.connection.sock for c in waiting], [], [], 5)[0]
        same([c.connection.getresponse().status for c in waiting if c.connection.sock in told], [409], "so many wait for a turn, and no more")
        for client in waiting:
            client.close()
        d.ok("close_session")
        d.ok("create_session")
        result = {}
        held = threading.Thread(target=lambda: result.update(d.run("head -c 5500000 /dev/zero | tr '\\0' y; sleep 1.5; printf MARK; head -c 3000000 /dev/zero | tr '\\0' y; sleep 9", expect=["MARK"], check="ignore")))
        held.start()
        time.sleep(1)
        os.kill(d.daemon.pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(d.daemon.pid, signal.SIGCONT)
        held.join()
        same(result.get("expect_string"), "MARK", "in the middle of a flood")


@test("session: one that waits takes little memory", own=True)
def _(_api):
    with Within("idle") as d:
        d.ok("create_session", {"session": "0"})
        d.run("head -c 7000000 /dev/zero | tr '\\0' y", session="0")
        before = lib.memory_kib(d.daemon.pid)
        for i in range(1, 7):
            d.ok("create_session", {"session": str(i)})
            d.run("head -c 7000000 /dev/zero | tr '\\0' y", session=str(i))
        lib.wait_until(lambda: lib.memory_kib(d.daemon.pid) - before < 20000, 20, "what was read is let go")


@test("a sandbox whose programs lie: a bash that never answers, a git that never ends", own=True)
def _(_api):
    with Within("lies") as d:
        d.local.create({"key": "liar", "env": {"PATH": "/work/bin:/usr/bin:/bin"}})

        def lie(name, text):
            d.ok("write_file", {"path": f"/work/bin/{name}", "content": "#!/bin/sh\n" + text}, base="/liar")
            d.ok("execute", {"command": ["chmod", "755", f"/work/bin/{name}"]}, base="/liar")
        d.ok("create_session", base="/liar")
        lie("bash", "exec sleep 100\n")
        d.raises("swerex.exceptions.CommandTimeoutError", "run_in_session", {"command": "true", "timeout": 1}, base="/liar")
        for what, status in (("@ d/", 200), ("A d/x", 200), ("A x", 413)):
            lie("git", f"[ \"$6\" != diff ] || {{ yes '{what}' | head -n 300000; yes '@ d/' | head -n 300000; }} | tr ' \\n' '\\0\\0'\n")
            begun = time.monotonic()
            answer = d.call("GET", f"{HANDS}/liar/api/git/changes?path=/work")
            same((answer.status, time.monotonic() - begun < 5), (status, True), f"{what}: {time.monotonic() - begun} s, {answer.body[:200]}")


@test("the token's own sandbox: made when it is needed, each token's its own, gone with close", own=True)
def _(_api):
    with Within("own") as d:
        def count():
            return len(d.local.ok("GET", "/v1/sandboxes")["sandboxes"])
        check(d.call("GET", f"{REX}/is_alive").json["is_alive"], "alive before it is there")
        same((d.ok("close", base=""), count()), ({}, 1), "nothing to close")
        d.ok("write_file", {"path": "f", "content": "mine"}, base="")
        same((d.ok("read_file", {"path": "/work/f"}, base="")["content"], count()), ("mine", 2), "one of its own")
        d.raises("builtins.FileNotFoundError", "read_file", {"path": "/work/f"}, base="", key=d.token("manage"))
        same(d.call("POST", f"{HANDS}/api/bash/execute_bash_command", {"command": "cat /work/f"}).json["exit_code"], 1, "another door's is another one")
        same(count(), 4, "sandboxes")
        same((d.ok("close", base=""), count()), ({}, 3), "gone")
        d.ok("create_session")
        same(d.ok("close"), {}, "of one that was given, sessions end")
        same((d.ok("execute", {"command": ["true"]})["exit_code"], count()), (0, 3), "and it stays")


@test("OpenHands: events by order, one whole answer, files, what git says", own=True)
def _(_api):
    with Within("hands") as d:
        def get(what, **query):
            return d.call("GET", f"{HANDS}/given/api/{what}?{urllib.parse.urlencode(query)}")

        def post(path, body):
            return d.call("POST", f"{HANDS}/given/api/bash/{path}", body).json
        made = post("start_bash_command", {"command": "echo a; echo b >&2; sleep 0.2; printf '\\303'; sleep 0.3; printf '\\244'; exit 5", "timeout": 9})
        same((made["kind"], made["timeout"], made["cwd"]), ("BashCommand", 9, None), "begun")
        seen, order = [], -1
        while not seen or seen[-1]["exit_code"] is None:
            page = get("bash/bash_events/search", command_id__eq=made["id"], kind__eq="BashOutput", limit=100, **({"order__gt": order} if order >= 0 else {})).json["items"]
            check(all(e["order"] > order for e in page), page)
            seen += page
            order = seen[-1]["order"] if seen else -1
        same(("".join(e["stdout"] or "" for e in seen), "".join(e["stderr"] or "" for e in seen), seen[-1]["exit_code"]), ("a\nä", "b\n", 5), "all of it, once")
        same(len({e["id"] for e in seen}), len(seen), "ids")
        same(get("bash/bash_events/search", command_id__eq=made["id"], order__gt=order).json["items"], [], "nothing more")
        for limit in (1, 2, 3):
            paged, page = [], {"next_page_id": 0}
            while page["next_page_id"] is not None and len(paged) < 20:
                page = get("bash/bash_events/search", command_id__eq=made["id"], limit=limit, page_id=page["next_page_id"]).json
                check(0 < len(page["items"]) <= limit, page)
                paged += page["items"]
            same(("".join(e["stdout"] or "" for e in paged), "".join(e["stderr"] or "" for e in paged), paged[-1]["exit_code"]), ("a\nä", "b\n", 5), f"by pages of {limit}")
        same([get("bash/bash_events/search", command_id__eq=made["id"], **q).status for q in ({"limit": 0}, {"sort_order": "TIMESTAMP_DESC"}, {"kind__eq": "x"}, {"order__gt": "x"})], [400] * 4, "nonsense")
        same((get("bash/bash_events/search").status, get("bash/bash_events/search", command_id__eq="px_nobody").status), (400, 404), "no command")
        whole = post("execute_bash_command", {"command": "echo a; echo b >&2; sleep 90", "timeout": 5})
        same((whole["stdout"], whole["stderr"], whole["exit_code"]), ("a\n", "b\n", -1), "its time was over")
        body, head = form([("file", "x", b"\0bytes")])
        same(d.call("POST", f"{HANDS}/given/api/file/upload?path=/work/n/x", body, head).json, {"success": True, "file_size": 6}, "sent")
        same(get("file/download", path="/work/n/x").body, b"\0bytes", "fetched")
        same((get("file/download", path="x").status, get("file/download", path="/none").status), (400, 404), "no file")
        same((get("git/changes", path="/work").json, get("git/diff", path="/work/n/x").json), ([], {"modified": None, "original": None}), "no repository")
        post("execute_bash_command", {"command": "cd /work && git init -q -b main . && git config user.email a@example.org && git config user.name a && echo 1 >f && git add f && git commit -qm 1 && git checkout -qb side && echo 2 >f && git commit -qam 2 && echo 3 >>f"})
        changes = [{"status": "UPDATED", "path": "f"}, {"status": "ADDED", "path": "n/x"}]
        same(get("git/changes", path="/work").json, changes, "since the branch left main")
        same(get("git/diff", path="/work/f").json, {"modified": "2\n3", "original": "1"}, "one file")
        same(get("git/diff", path="/work/f", ref="HEAD").json["original"], "2", "since the last commit")
        same([get("git/changes", path="/work", ref=r).status for r in ("none", "--help")] + [get("git/diff", path="/work/gone").status], [400] * 3, "no ref, no file")


if __name__ == "__main__":
    assert pathlib.Path(__file__).exists()
    sys.exit(lib.main(__file__))
