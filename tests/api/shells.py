#!/usr/bin/env python3
"""Named shells: what lasts from one command to the next, what ends a shell, what the next one gets back;
and what becomes of processes that a command leaves running. TAP.

    tests/api/shells.py         all (needs root)
    tests/api/shells.py exit    those with the word in their title
"""
import json
import os
import signal
import sys
import threading
import time

import lib
from lib import USER_ID, Daemon, Stream, check, same, test, wait_until


def shell(c, s, cmd, name="main", **options):
    return c.execute(s, cmd, shell=name, **options)


def sleeping():
    """How many: a command sees no other's processes, the host does."""
    return sum(1 for p in lib.census.pids() if lib.census.read(f"/proc/{p}/cmdline").startswith("sleep\0"))  # a dead one has none


def goes_on(c, s, marker, name="main"):
    """The same shell as before, and it works: an answer to a question that only it can know."""
    p = shell(c, s, f'echo "$marker"', name)
    same((p["stdout"], p["exit_code"], p["shell"]), (f"{marker}\n", 0, {"name": name, "restarted": False}), "goes on")


def is_new(c, s, why, name="main"):
    """Another shell, which says so."""
    p = shell(c, s, 'echo "[$marker]"', name)
    same((p["stdout"], p["exit_code"]), ("[]\n", 0), "a new shell")
    check(p["shell"]["restarted"] is True and why in p["shell"]["reason"], f"{p['shell']}, expected: {why}")
    return p


# ---- what lasts ------------------------------------------------------------------------------

@test("folder, variables, functions, options, aliases and arguments last; each command has its own record")
def _(api):
    c = api.client
    s = c.create(fs=["ephemeral:/work"])
    first = shell(c, s, "cd /tmp; plain=1; export shown=2; f() { echo f-$plain-$shown; }; set -f; set -- x y; alias hi='echo ho'")
    same((first["state"], first["exit_code"], first["cwd"], first["stdout"]), ("exited", 0, "/tmp", ""), "first")
    same(first["shell"], {"name": "main", "restarted": False}, "shell")
    second = shell(c, s, 'f; pwd; echo *; echo "$2"; hi; env | grep -c ^plain=; env | grep ^shown=')
    same(second["stdout"], "f-1-2\n/tmp\n*\ny\nho\n0\nshown=2\n", "second")
    check(second["id"] != first["id"], "a record each")
    same(c.ok("GET", f"/v1/processes/{first['id']}")["stdout"], "", "the first one's output")
    same(c.get(f"/v1/processes/{second['id']}/log").body.decode(), second["stdout"], "the log of the second")
    plain = c.execute(s, "pwd; echo [$shown]")
    same((plain["stdout"], "shell" in plain), ("/work\n[]\n", False), "others have nothing of it")
    other = shell(c, s, "pwd; echo [$shown]", "other")
    same(other["stdout"], "/work\n[]\n", "nor has another shell")
    listed = {p["id"]: p for p in c.ok("GET", f"/v1/processes?sandbox={s['id']}")["processes"]}
    same(listed[second["id"]]["shell"], {"name": "main", "restarted": False}, "in a list")
    same(listed[second["id"]]["cwd"], "/tmp", "cwd in a list")


@test("what a command writes is what it wrote: both streams, no newline at the end, nothing of ours")
def _(api):
    c = api.client
    s = c.create()
    cases = (
        ("printf a; printf b >&2", "a", "b", 0),
        ("printf '\\n'", "\n", "", 0),
        ("true", "", "", 0),
        ("false", "", "", 1),
        ("(exit 255)", "", "", 255),
        ("f() { return 7; }; f", "", "", 7),
        ("cat <<'E'\na $b 'c'\n\n.\n-\nE", "a $b 'c'\n\n.\n-\n", "", 0),
        (".\n", "", None, 2),
        ("for i in 1 2\ndo echo $i\ndone", "1\n2\n", "", 0),
        ("echo one # comment", "one\n", "", 0),
        ("echo 'it''s' \"q\" \\\\", "its q \\\n", "", 0),
        ("nosuchprogram", "", None, 127),
        ("echo (", "", None, 2),
        ("echo 'open", "", None, 2),
        ("cat", "", "", 0),
        ("read x; echo $?", "1\n", "", 0),
        ("", "", "", 0),
        ("   ", "", "", 0),
        ("break; echo no", None, None, 0),
        ("continue", None, None, 0),
        ("printf 'x\\0y'", "x\0y", "", 0),
    )
    shell(c, s, "marker=here")
    for cmd, out, err, code in cases:
        p = shell(c, s, cmd)
        got = lib.decoded(p).decode()
        check((p["state"], p["exit_code"]) == ("exited", code), f"{cmd!r}: {p['state']} {p['exit_code']} {p['stderr']!r}")
        check(out is None or got == out, f"{cmd!r}: {got!r}")
        check(err is None or p["stderr"] == err, f"{cmd!r}: stderr {p['stderr']!r}")
        check("_cs_" not in p["stderr"], f"{cmd!r}: {p['stderr']!r}")
    goes_on(c, s, "here")
    p = shell(c, s, "echo out; echo err >&2", output={"merge": True})
    same((p["stdout"], p["stderr"]), ("out\nerr\n", ""), "merge")
    goes_on(c, s, "here")


@test("long scripts, many lines, much output")
def _(api):
    c = api.client
    s = c.create()
    shell(c, s, "marker=here")
    p = shell(c, s, "x='" + "y" * 100_000 + "'; echo ${#x}")
    same(p["stdout"], "100000\n", "100 KB in one line")
    p = shell(c, s, "\n".join(f"v{i}={i}" for i in range(2000)) + "\necho $v1999")
    same(p["stdout"], "1999\n", "2,000 lines")
    p = shell(c, s, ["printf", "%s|", "a b", "it's", "$HOME", "", "*", "x\ny", "-n"])
    same(p["stdout"], "a b|it's|$HOME||*|x\ny|-n|", "words of a list")
    p = shell(c, s, "seq 1 200000")
    same(p["bytes"]["stdout"], len("".join(f"{i}\n" for i in range(1, 200001))), "all of it is counted")
    check(p["stdout"].endswith("200000\n"), "the tail")
    answer = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "#" + "x" * 300_000, "shell": "main"})
    same((answer.status, answer.code), (413, "too_large"), "more than a shell reads in good time")
    goes_on(c, s, "here")


@test("options and traps of a script do not reach us, nor ours it: -x, -v, -u, -a, IFS, DEBUG, ERR, functions")
def _(api):
    c = api.client
    s = c.create()
    for name, first, then, out, err in (
            ("x", "set -x", "echo hi", "hi\n", "+ echo hi\n"),
            ("x2", "set -x; marker=1", "echo (", "", None),
            ("v", "set -v", "echo hi", "hi\n", None),
            ("u", "set -u", "echo hi", "hi\n", ""),
            ("a", "set -a; q=1", "env | grep -c '^q='; env | grep -c '^_cs'; r=2; env | grep ^r=", "1\n0\nr=2\n", ""),
            ("ifs", "IFS=:", "x=a:b; set -- $x; echo $#", "2\n", ""),
            ("err", "trap 'echo trapped' ERR", "echo hi", "hi\n", ""),
            ("fun", "printf() { echo fake; }; read() { echo fake; }; export() { echo fake; }; :() { echo fake; }", "echo hi", "hi\n", ""),
            ("cd", "cd() { echo mine; }", "cd /; pwd", "mine\n/work\n", ""),
            ("posix", "set -o posix", "echo (", "", None),
            ("path", "PATH=/nowhere", "echo hi", "hi\n", ""),
            ("noclobber", "set -C", "echo hi", "hi\n", ""),
            ("lastpipe", "shopt -s lastpipe nullglob extglob", "echo a | read x; echo $x", "a\n", ""),
            ("jobs", "set -m", "sleep 0.01 & wait; echo hi", "hi\n", None)):
        shell(c, s, first, name)
        p = shell(c, s, then, name)
        check(p["shell"]["restarted"] is False, f"{name}: {p['shell']}")
        check(p["stdout"] == out, f"{name}: {p['stdout']!r} {p['stderr']!r}")
        check(err is None or p["stderr"].lstrip("+") == err.lstrip("+"), f"{name}: stderr {p['stderr']!r}")
        check("_cs_r" not in p["stderr"], f"{name}: {p['stderr']!r}")


@test("descriptors: a script may close and redirect what it likes; ours is not among them")
def _(api):
    c = api.client
    s = c.create()
    for name, first, then, out in (
            ("out", "exec >/tmp/log", "echo hi; cat /tmp/log >&2", ""),
            ("nine", "exec 9>&-", "echo hi", "hi\n"),
            ("nine2", "exec 9</etc/passwd; read x <&9; echo ${x%%:*}", "echo hi", "hi\n"),
            ("both", "exec >&- 2>&-", "true", ""),
            ("in", "exec </etc/passwd", "cat", ""),
            ("keep", "exec 5>/tmp/five", "echo hi >&5; cat /tmp/five", "hi\n")):
        shell(c, s, first, name)
        p = shell(c, s, then, name)
        check(p["shell"]["restarted"] is False, f"{name}: {p['shell']}")
        check(p["stdout"] == out and p["exit_code"] == 0, f"{name}: {p['exit_code']} {p['stdout']!r} {p['stderr']!r}")
    p = shell(c, s, "ls -l /proc/self/fd | grep -c socket; bash -c 'ls -l /proc/self/fd | grep -c socket'", "see")
    same(p["stdout"], "0\n0\n", "no program has it")


# ---- what ends a shell -----------------------------------------------------------------------

@test("what ends the shell is the end of the command, with the true code; the next one says that it is another")
def _(api):
    c = api.client
    s = c.create()
    for cmd, state, code, why in (
            ("exit 3", "exited", 3, "exit status 3"),
            ("set -e\nfalse\necho no", "exited", 1, "exit status 1"),
            ("exec sh -c 'exit 4'", "exited", 4, "exit status 4"),
            ("kill -9 $$", "signaled", None, "signal 9"),
            ("kill -TERM $$", "signaled", None, "signal 15"),
            ("set -u; echo $nosuch", "exited", 127, "exit status 127"),
            ("trap 'echo bye' EXIT; exit 5", "exited", 5, "exit status 5"),
            ("break 5", "exited", 0, "exit status 0"),
            ("ulimit -n 4", "exited", 125, "exit status 125")):
        shell(c, s, "cd /tmp; marker=here; export kept='a b\n\"c\" $d'; unset CI")
        p = shell(c, s, cmd)
        check((p["state"], p["exit_code"]) == (state, code), f"{cmd!r}: {p['state']} {p['exit_code']} {p['reason']}")
        p = is_new(c, s, why)
        same(p["cwd"], "/tmp", f"{cmd!r}: folder")
        p = shell(c, s, 'echo "$kept"; echo "[${CI-}]"')
        same((p["stdout"], p["shell"]["restarted"]), ('a b\n"c" $d\n[]\n', False), f"{cmd!r}: variables")
    same(c.ok("GET", f"/v1/sandboxes/{s['id']}/shells")["shells"][0]["restarts"], 9, "restarts")


@test("set -e of an earlier command counts in the next")
def _(api):
    c = api.client
    s = c.create()
    shell(c, s, "set -e; marker=here")
    goes_on(c, s, "here")
    p = shell(c, s, "false; echo no")
    same((p["exit_code"], p["stdout"]), (1, ""), "false")
    is_new(c, s, "exit status 1")


@test("timeout, DELETE, signals: the whole tree ends, the shell with it, and the next one says so")
def _(api):
    c = api.client
    s = c.create()
    leaf = "sleep 1000 & setsid sleep 1001 & sleep 1002"
    shell(c, s, "cd /tmp")
    p = shell(c, s, leaf, timeout="300ms")
    same(p["state"], "timeout", "timeout")
    wait_until(lambda: sleeping() == 0, 5, "the tree after the timeout")
    same(is_new(c, s, "timeout")["cwd"], "/tmp", "cwd")
    p = shell(c, s, "trap 'echo heard' TERM; sleep 1000; echo after", timeout="300ms")
    same(p["state"], "timeout", "one that heeds the hint in its own way")
    is_new(c, s, "timeout")
    p = shell(c, s, leaf, wait="200ms")
    same((p["state"], p["shell"]["name"]), ("running", "main"), "running")
    c.delete(f"/v1/processes/{p['id']}")
    p = c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")
    same(p["state"], "killed", "delete")
    wait_until(lambda: sleeping() == 0, 5, "the tree after delete")
    is_new(c, s, "ended by the client")
    p = shell(c, s, leaf, wait="200ms")
    c.ok("POST", f"/v1/processes/{p['id']}/signal", {"sig": "KILL", "scope": "tree"})
    p = c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")
    same((p["state"], p["signal"]), ("signaled", 9), "signal to the tree")
    is_new(c, s, "signal 9")
    shell(c, s, "marker=here")
    ended = shell(c, s, "true")
    same(c.delete(f"/v1/processes/{ended['id']}").status, 409, "delete of one that has ended")
    goes_on(c, s, "here")


@test("one command at a time; what cannot be in a shell is refused with the reason")
def _(api):
    c = api.client
    s = c.create()
    exec_ = f"/v1/sandboxes/{s['id']}/exec"
    running = shell(c, s, "sleep 1000", wait="0s")
    answer = c.post(exec_, {"cmd": "true", "shell": "main"})
    same((answer.status, answer.code), (409, "busy"), "busy")
    check(running["id"] in answer.json["detail"], f"it names the process: {answer}")
    same(shell(c, s, "echo hi", "other")["stdout"], "hi\n", "another shell")
    c.delete(f"/v1/processes/{running['id']}")
    same(c.ok("GET", f"/v1/processes/{running['id']}?wait=40s")["state"], "killed", "its end")
    for body, word in (({"tty": True}, "tty"), ({"user": "root"}, "user"), ({"shell": ""}, "shell"), ({"shell": "a/b"}, "shell"),
                       ({"shell": "x" * 65}, "shell"), ({"shell": "a b"}, "shell"), ({"shell": 1}, "shell"), ({"shell": "é"}, "shell"),
                       ({"env": {"A-B": "c"}}, "env"), ({"background": "maybe"}, "background"), ({"background": 1}, "background")):
        answer = c.post(exec_, {"cmd": "true", "shell": "main", **body})
        check(answer.status == 400 and word in answer.json["detail"], f"{body}: {answer}")
    same(c.post("/v1/run", {"cmd": "true", "shell": "main"}).status, 400, "run has no shells")
    same(shell(c, s, "true", "x" * 64)["exit_code"], 0, "the longest name")
    same(shell(c, s, "id -un", user="agent")["stdout"].strip(), "agent", "its own user")


@test("cwd and env are set in the shell, and stay; a folder that is not there fails the command alone")
def _(api):
    c = api.client
    s = c.create(fs=["ephemeral:/work"])
    shell(c, s, "marker=here")
    p = shell(c, s, "pwd; echo $A", cwd="/tmp", env={"A": "it's \"b\" $c"})
    same((p["stdout"], p["cwd"]), ("/tmp\nit's \"b\" $c\n", "/tmp"), "set")
    p = shell(c, s, "pwd; env | grep ^A=")
    same(p["stdout"], "/tmp\nA=it's \"b\" $c\n", "stay")
    p = shell(c, s, "echo no", cwd="/not/there")
    check(p["exit_code"] != 0 and p["stdout"] == "" and "/not/there" in p["stderr"], f"{p}")
    p = shell(c, s, ["pwd"], cwd="/usr")
    same(p["stdout"], "/usr\n", "words")
    goes_on(c, s, "here")


@test("input: none unless asked for; a text, or piece by piece with an end; the next command has its own")
def _(api):
    c = api.client
    s = c.create()
    shell(c, s, "marker=here")
    same(shell(c, s, "cat")["stdout"], "", "none")
    same(shell(c, s, "cat", stdin="one\ntwo")["stdout"], "one\ntwo", "a text")
    same(shell(c, s, "cat; echo end", stdin="")["stdout"], "end\n", "an empty text")
    same(shell(c, s, "read x; echo $x", stdin="a\nb\nc\n")["stdout"], "a\n", "not all of it is read")
    same(shell(c, s, "cat", stdin="new")["stdout"], "new", "nothing is left for the next")
    p = shell(c, s, "read x; echo got $x; cat", stdin=True, wait="0s")
    wait_until(lambda: c.ok("GET", f"/v1/processes/{p['id']}?wait=500ms")["waiting_for_input"], 5, "waiting_for_input")
    c.ok("POST", f"/v1/processes/{p['id']}/stdin", {"data": "first\nsecond\n"})
    p = c.ok("POST", f"/v1/processes/{p['id']}/stdin", {"data": "third", "eof": True, "wait": "40s"})
    same((p["state"], p["stdout"]), ("exited", "got first\nsecond\nthird"), "piece by piece")
    same(shell(c, s, "cat")["stdout"], "", "none again")
    same(c.post(f"/v1/processes/{shell(c, s, 'sleep 0.5', wait='0s')['id']}/stdin", {"data": "x"}).status, 409, "without input")
    wait_until(lambda: not busy(c, s), 5, "the shell is free")
    big = "0123456789abcde\n" * 3000
    same(shell(c, s, "wc -c", stdin=big)["stdout"].strip(), str(len(big)), "48,000 bytes")
    goes_on(c, s, "here")


def busy(c, s, name="main"):
    return any(x["state"] == "busy" for x in c.ok("GET", f"/v1/sandboxes/{s['id']}/shells")["shells"] if x["name"] == name)


@test("live: the stream of a command in a shell, with input, as the CLI has it")
def _(api):
    c = api.client
    s = c.create()
    shell(c, s, "cd /tmp; marker=here")
    live = Stream(api.daemon.socket, f"/v1/sandboxes/{s['id']}/exec", {"cmd": "pwd; cat; echo err >&2; exit 6", "shell": "main", "stdin": True})
    live.say("I", b"typed\n")
    live.say("Z")
    got = live.rest()
    live.close()
    same((got["O"], got["E"]), (b"/tmp\ntyped\n", b"err\n"), f"streams {got}")
    same(json.loads(got["X"])["exit_code"], 6, "exit code")
    is_new(c, s, "exit status 6")


# ---- what is left running --------------------------------------------------------------------

@test("children: what this command left running, not what those before did; its output stays with its own")
def _(api):
    c = api.client
    s = c.create()
    first = shell(c, s, "(until [ -e /tmp/go ]; do sleep 0.05; done; echo late; sleep 1000) & true")  # it does not wait
    same([x["name"] for x in first["children"]][-1:] != [], True, f"children {first['children']}")
    c.put(c.file(s, "/tmp/go"), b"")
    wait_until(lambda: c.ok("GET", f"/v1/processes/{first['id']}")["stdout"] == "late\n", 5, "late output, in its own log")
    second = shell(c, s, lib.ASLEEP.format("sleep 1001") + "echo hi")
    same((second["stdout"], [x["name"] for x in second["children"]]), ("hi\n", ["sleep"]), "the second")
    third = shell(c, s, "echo ho")
    same((third["stdout"], third["children"]), ("ho\n", []), "the third")
    same(shell(c, s, "jobs -pr | wc -l")["stdout"].strip(), "2", "and they are jobs of the shell")


@test("execs and usage are of the command, not of the shell")
def _(api):
    c = api.client
    s = c.create()
    p = shell(c, s, "/bin/true; /bin/echo x")
    same((p["execs"]["count"], p["execs"]["first"]), (2, ["/bin/true", "/bin/echo x"]), "execs of the first")
    p = shell(c, s, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
    check(p["usage"]["cpu_ms"] >= 50, f"cpu {p['usage']}")
    same(p["execs"]["count"], 0, "no program")
    most = max(40, p["usage"]["cpu_ms"] // 2)
    p = shell(c, s, "/bin/true")
    check(p["usage"]["cpu_ms"] <= most and p["execs"]["count"] == 1, f"{p['usage']} {p['execs']}")


@test("background kill: nothing of the command is left when its end is told; keep, and others, are left alone")
def _(api):
    c = api.client
    s = c.create()
    mess = "sleep 1000 & setsid sleep 1001 & (setsid sh -c 'sleep 1002 & sleep 1003 &' &); (trap '' TERM; sleep 1004) & sleep 0.2; echo done"
    kept = c.execute(s, lib.ASLEEP.format("sleep 999"))
    same([x["name"] for x in kept["children"]], ["sleep"], "keep")
    for name, options in (("plain", {}), ("in a shell", {"shell": "main"})):
        p = c.execute(s, mess, background="kill", **options)
        same((p["state"], p["exit_code"], p["stdout"], p["children"]), ("exited", 0, "done\n", []), name)
        same(sleeping(), 1, f"{name}: only the other command's is left")
        check(p["ms"] < 60000, f"{name}: {p['ms']} ms")
    p = c.execute(s, "exit 3", background="kill")
    check(p["exit_code"] == 3 and p["ms"] < 1900, f"nothing to kill: {p['ms']} ms")
    shell(c, s, "sleep 998 &")
    p = shell(c, s, "sleep 997 & echo ok", background="kill")
    same((p["stdout"], p["children"]), ("ok\n", []), "in a shell")
    same(sleeping(), 2, "what an earlier command of the shell left stays")
    goes_on(c, s, "")


@test("background kill, without cgroups: an ordinary user's daemon", own=True)
def _(_api):
    d = Daemon("user", uid=USER_ID).start()
    try:
        c = d.client()
        s = c.create()
        for options in ({}, {"shell": "main"}):
            p = c.execute(s, "sleep 1000 & (sleep 1001 & sleep 1002) & echo done", background="kill", **options)
            same((p["state"], p["stdout"], p["children"]), ("exited", "done\n", []), f"{options}")
        same(sleeping(), 0, "none is left")
        p = shell(c, s, "cd /tmp; " + lib.ASLEEP.format("sleep 1003"))
        same([x["name"] for x in p["children"]], ["sleep"], "keep")
        same(shell(c, s, "pwd")["children"], [], "the next")
        same(shell(c, s, "sleep 1004 & sleep 1005", timeout="300ms")["state"], "timeout", "timeout")
        same(is_new(c, s, "timeout")["cwd"], "/tmp", "cwd")
        c.remove(s)
    finally:
        d.stop()


# ---- life of the sandbox ---------------------------------------------------------------------

@test("list and delete")
def _(api):
    c = api.client
    s = c.create()
    path = f"/v1/sandboxes/{s['id']}/shells"
    same(c.ok("GET", path)["shells"], [], "none")
    shell(c, s, "cd /tmp; marker=here")
    p = shell(c, s, "sleep 1000 & sleep 1001", "two", wait="0s")
    rows = {x["name"]: x for x in c.ok("GET", path)["shells"]}
    same(rows["main"], {"name": "main", "state": "idle", "process": None, "cwd": "/tmp", "restarts": 0}, "idle")
    same((rows["two"]["state"], rows["two"]["process"]), ("busy", p["id"]), "busy")
    same(c.delete(f"{path}/two").status, 204, "delete one at work")
    same(c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")["state"], "killed", "its command")
    same(c.delete(f"{path}/main").status, 204, "delete an idle one")
    same(c.delete(f"{path}/main").status, 404, "again")
    same(c.ok("GET", path)["shells"], [], "none is left")
    p = shell(c, s, 'pwd; echo "[$marker]"')
    same((p["stdout"], p["shell"]["restarted"]), ("/work\n[]\n", False), "a new one of that name knows nothing of it")
    wait_until(lambda: sleeping() == 0, 5, "their processes end")
    same(c.get("/v1/sandboxes/sb_" + "a" * 26 + "/shells").status, 404, "of no sandbox")
    shell(c, s, "exit 1")
    same(c.ok("GET", path)["shells"][0]["state"], "ended", "ended")


@test("stop and replace: shells end; the next command gets folder and variables back, and says what is not there")
def _(api):
    c = api.client
    s = c.create(fs=["ephemeral:/work"])
    shell(c, s, "mkdir /tmp/deep; cd /tmp/deep; export kept=1; marker=here")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/stop", {})
    same(c.ok("GET", f"/v1/sandboxes/{s['id']}/shells")["shells"][0]["state"], "ended", "after the stop")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/start", {})
    p = is_new(c, s, "stopped")
    same(p["cwd"], "/tmp/deep", "the folder")
    same(shell(c, s, "echo $kept; pwd")["stdout"], "1\n/tmp/deep\n", "all is there")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/replace", {})
    p = is_new(c, s, "built anew")
    check("folder" in p["shell"]["reason"], f"{p['shell']}")
    same(p["cwd"], "/work", "the default folder")
    same(shell(c, s, "echo $kept; pwd")["stdout"], "1\n/work\n", "variables are there")


@test("pause and resume: a shell sleeps and goes on")
def _(api):
    c = api.client
    s = c.create()
    shell(c, s, "marker=here")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/pause", {})
    same(c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "true", "shell": "main"}).status, 409, "paused")
    c.ok("POST", f"/v1/sandboxes/{s['id']}/resume", {})
    goes_on(c, s, "here")


@test("kill -9 of the daemon between commands and during one: the same shell goes on, the record is true", own=True)
def _(_api):
    d = Daemon("killed").start()

    def kill():
        pid = d.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: d.pid not in (None, pid), 10, "another daemon")
        d.wait_ready()
        own = d.client()
        wait_until(lambda: own.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "running", 5, "its monitor has told all")
        return own
    try:
        c = d.client()
        s = c.create()
        shell(c, s, "cd /tmp; marker=here; export kept=1")
        for turn in range(2):
            c = kill()
            goes_on(c, s, "here")
            p = shell(c, s, f"sleep 0.8; cd /usr; export turn={turn}; echo done; (exit {turn + 5})", wait="0s")
            c = kill()
            p = c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")
            same((p["state"], p["exit_code"], p["stdout"], p["cwd"]), ("exited", turn + 5, "done\n", "/usr"), "true end")
            same(p["shell"], {"name": "main", "restarted": False}, "shell")
            same(shell(c, s, "pwd; echo $turn$marker")["stdout"], f"/usr\n{turn}here\n", "the same shell")
        p = shell(c, s, "sleep 0.5; exit 9", wait="0s")  # ends while nobody listens
        os.kill(d.pid, signal.SIGSTOP)
        time.sleep(1)
        c = kill()
        p = c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")
        same((p["state"], p["exit_code"]), ("exited", 9), "ended while nobody listened")
        p = is_new(c, s, "exit status 9")
        same(p["cwd"], "/usr", "cwd")
        p = shell(c, s, "sleep 1000", wait="0s")
        c = kill()
        answer = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "true", "shell": "main"})
        same((answer.status, answer.code), (409, "busy"), "busy after a restart")
        check(p["id"] in answer.json["detail"], f"{answer}")
        c.delete(f"/v1/processes/{p['id']}")
        same(c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")["state"], "killed", "it can be ended")
        same(shell(c, s, "echo $kept")["stdout"], "1\n", "after all of it")
        rows = c.ok("GET", f"/v1/sandboxes/{s['id']}/shells")["shells"]
        same([(x["name"], x["state"], x["restarts"]) for x in rows], [("main", "idle", 2)], "list")
        c.ok("POST", f"/v1/sandboxes/{s['id']}/replace", {})
        c = kill()
        same(is_new(c, s, "built anew")["cwd"], "/usr", "after replace and a kill")
        c.remove(s)
        d.wait_clean()
    finally:
        d.stop()


@test("kill -9 of the monitor: lost is said, and the next walls have the shell's folder and variables", own=True)
def _(_api):
    d = Daemon("monitor").start()
    try:
        c = d.client()
        s = c.create()
        shell(c, s, "cd /usr; export kept=1")
        p = shell(c, s, "sleep 1000", wait="0s")
        os.kill(d.monitors()[0], signal.SIGKILL)
        same(c.ok("GET", f"/v1/processes/{p['id']}?wait=40s")["state"], "lost", "its command")
        wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "stopped", 10, "stopped")
        c.ok("POST", f"/v1/sandboxes/{s['id']}/start", {})
        same(is_new(c, s, "built anew")["cwd"], "/usr", "folder")
        same(shell(c, s, "echo $kept")["stdout"], "1\n", "variables")
        c.remove(s)
    finally:
        d.stop()


# ---- hostile ---------------------------------------------------------------------------------

FIND = "import os, socket\ns = socket.socket(fileno=os.dup(1))\n"


@test("whoever finds the private socket can lie about this shell and do nothing else")
def _(api):
    c = api.client
    s = c.create(limits={"mem": "256m", "pids": 64})
    monitor = api.daemon.monitors()[0]
    open_before = lib.descriptors(monitor)
    # A subshell has a copy of the shell's own descriptors, and can hand one on as standard output.
    take = "n=; for f in /proc/$BASHPID/fd/*; do [ -S $f ] && n=${f##*/}; done; [ $n ] || echo no socket >&2; python3 -c \"$code\" >&$n"
    for name, code in (
            ("garbage", "s.send(b'garbage')"),
            ("zeros", "s.send(bytes(100000))"),
            ("status", "s.send(b'999\\0\\0/\\0\\0')"),
            ("long", "s.settimeout(2)\nfor i in range(2000): s.send(b'0\\0bash\\0/\\0' + b'x' * 65536 if i == 0 else b'x' * 65536)"),
            ("descriptors", "import array\nfor i in range(50): s.sendmsg([b'0'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])"),
            ("thief", "s.settimeout(1)\ntry: s.recv(10)\nexcept OSError: pass"),
            ("closer", "s.shutdown(socket.SHUT_RDWR)")):
        before = lib.private_kib(monitor)
        p = shell(c, s, f"( {take}; true ); echo after", name, env={"code": FIND + code}, timeout="8s")
        check(p["state"] in ("exited", "lost", "timeout", "signaled"), f"{name}: {p['state']}")
        check("no socket" not in p["stderr"], f"{name}: it found none: {p['stderr']}")
        same(c.execute(s, "echo well")["stdout"], "well\n", f"{name}: others")
        wait_until(lambda: shell(c, s, "echo again", name, timeout="20s")["stdout"] == "again\n", 10, f"{name}: the shell")
        check(lib.private_kib(monitor) < before + 1024, f"{name}: the monitor grew by {lib.private_kib(monitor) - before} KiB")
    wait = "import time\nwhile not os.path.exists('/tmp/go'): time.sleep(0.05)\n"
    p = shell(c, s, f"( {take}; true ) & sleep 0.1; true", "idle", env={"code": FIND + wait + "s.send(b'0\\0\\0/\\0\\0')"})
    same(p["exit_code"], 0, "a writer that waits")
    c.put(c.file(s, "/tmp/go"), b"")
    shells = f"/v1/sandboxes/{s['id']}/shells"
    wait_until(lambda: next(x for x in c.ok("GET", shells)["shells"] if x["name"] == "idle")["state"] == "ended", what="its end")
    p = shell(c, s, "echo again", "idle")
    same(p["stdout"], "again\n", "a new one")
    check(p["shell"]["restarted"] and "private descriptor" in p["shell"]["reason"], f"{p['shell']}")
    for x in c.ok("GET", f"/v1/sandboxes/{s['id']}/shells")["shells"]:
        c.delete(f"/v1/sandboxes/{s['id']}/shells/{x['name']}")
    # Some cgroups and logs are kept for the next command and for self.sock.
    wait_until(lambda: lib.descriptors(monitor) < open_before + 64, 10, f"descriptors: {open_before} before")


@test("a fork bomb in a shell: ended by its timeout, and the next command works")
def _(api):
    c = api.client
    s = c.create(limits={"pids": 40, "mem": "256m"})
    shell(c, s, "cd /tmp")
    p = shell(c, s, "b() { b | b & }; b; sleep 100", timeout="1500ms")
    check(p["state"] in ("timeout", "exited", "signaled"), f"{p}")
    p = wait_until(lambda: (q := shell(c, s, "echo fine", timeout="20s"))["stdout"] == "fine\n" and q, 15, "the next command")
    same(p["cwd"], "/tmp", "cwd")


@test("more variables than are kept: the shell goes on; what comes after it has older ones and says so")
def _(api):
    c = api.client
    s = c.create()
    shell(c, s, "export small=1; cd /tmp")
    p = shell(c, s, "export big=$(head -c 60000 /dev/zero | tr '\\0' x); marker=here; cd /usr")
    same((p["exit_code"], p["cwd"]), (0, "/usr"), "it ends well")
    goes_on(c, s, "here")
    same(shell(c, s, "echo ${#big}")["stdout"], "60000\n", "it has it")
    shell(c, s, "exit 1")
    p = is_new(c, s, "too many variables")
    same(p["cwd"], "/usr", "the folder is as it was")
    same(shell(c, s, "echo $small ${#big}")["stdout"], "1 0\n", "older variables")


@test("at most 64 shells in a sandbox")
def _(api):
    c = api.client
    s = c.create()
    for i in range(64):
        same(shell(c, s, "true", f"n{i}")["exit_code"], 0, f"{i}")
    answer = c.post(f"/v1/sandboxes/{s['id']}/exec", {"cmd": "true", "shell": "more"})
    same((answer.code, len(c.ok("GET", f"/v1/sandboxes/{s['id']}/shells")["shells"])), ("quota", 64), "one more")
    c.delete(f"/v1/sandboxes/{s['id']}/shells/n5")
    same(shell(c, s, "true", "more")["exit_code"], 0, "after one was deleted")


@test("many at once: every shell keeps its own, and nobody else's")
def _(api):
    c = api.client
    s = c.create()
    problems = []

    def work(i):
        own = api.daemon.client()
        try:
            for n in range(15):
                p = shell(own, s, f"x=$((${{x:-0}} + 1)); echo {i} $x", f"n{i}")
                if p["stdout"] != f"{i} {n + 1}\n":
                    problems.append((i, n, p["stdout"], p["stderr"]))
        finally:
            own.close()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(problems, [], "counts")


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
