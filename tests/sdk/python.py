#!/usr/bin/env python3
"""The Python SDK against a daemon: both halves, every kind of call, broken connections, the end of a program. TAP.

    tests/sdk/python.py           all (needs root)
    tests/sdk/python.py tools     those with the word in their title
"""
import ast
import asyncio
import concurrent.futures
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request

import place
from place import lib
from lib import check, same, test, wait_until

import caisson
from caisson import Client, Process, Sandbox, Workspace, _seal, aio, errors
from caisson.adapters._run import run_whole  # now: the cell hides a tree below /tmp

FILES = place.load("sdk/python")
ONE_LINER = dict(net="deny", fs="ephemeral:/work", creds=None, limits=dict(cpu=2, mem="4g", pids=512, wall="10m"))
CANONICAL = {"net": {"mode": "deny"}, "fs": [{"kind": "ephemeral", "at": "/work"}], "creds": [],
             "limits": {"cpu": 2.0, "mem": 4294967296, "pids": 512, "wall_ms": 600000}, "user": "agent"}


def raises(kind, call, *words):
    try:
        call()
    except kind as error:
        check(all(w in str(error) for w in words), f"{kind.__name__}: {error}")
        return error
    except Exception as error:
        raise lib.Failed(f"{kind.__name__} expected, not {error!r}") from error
    raise lib.Failed(f"{kind.__name__} expected")


def client_of(api):
    return Client(socket=str(api.daemon.socket))


@test("the one-liner works as written and is deleted at the end of with")
def _(api):
    client = client_of(api)
    with Sandbox(**ONE_LINER, client=client) as s:
        same(s.info()["spec"], CANONICAL, "what was asked for")
        s.write("a.py", "print(1+1)")
        r = s.run("python3 a.py")
        same((r.ok, r.exit_code, r.stdout, r.state), (True, 0, "2\n", "exited"))
        same(s.read("/work/a.py"), "print(1+1)")
        id = s.id
    same([one["id"] for one in client.sandboxes()], [], "sandboxes")
    same(Sandbox.get(id, client=client).record["state"], "gone")
    s = Sandbox(client=client)
    s.close()  # never started: nothing to do
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        same({r.sandbox for r in pool.map(s.exec, ["true"] * 8)}, {s.id}, "one for all threads")
    s.close()


@test("folders of the host are lent before they are named")
def _(api):
    (lib.SOURCE / "lent").mkdir(exist_ok=True)
    (lib.SOURCE / "lent/file").write_text("of the host")
    for fs in (f"ro:{lib.SOURCE}/lent:/data", [dict(kind="overlay", src=f"{lib.SOURCE}/lent", at="/data")]):
        with Sandbox(fs=fs, client=client_of(api)) as s:
            same(s.read("/data/file"), "of the host")


@test("typos and holes of a spec are refused")
def _(api):
    client = client_of(api)
    for spec in (dict(net="denny"), dict(limits={"memory": "1g"}), dict(fs="ephemral:/work"),
                 dict(creds="ghp_" + "a" * 36), dict(fs=["ephemeral:/work", "ephemeral:/work"])):
        error = raises(ValueError, Sandbox(**spec, client=client).start)
        same(error.code, "invalid", str(spec))
    raises(TypeError, lambda: Sandbox(nett="deny"))


@test("exec: results, streams, input of any size, timeouts, shells, check")
def _(api):
    with Sandbox(client=client_of(api)) as s:
        r = s.exec("echo out; echo err >&2; exit 3", env={"A": "1"})
        same((r.ok, r.exit_code, r.stdout, r.stderr), (False, 3, "out\n", "err\n"))
        same(s.exec(["printenv", "A"], env={"A": "x y"}, cwd="/tmp").stdout, "x y\n")
        raises(errors.CommandError, lambda: s.exec("exit 3", check=True), "exit status 3")
        r = s.exec("sleep 9", timeout="200ms")
        same((r.state, r.ok), ("timeout", False))
        raises(TimeoutError, lambda: s.exec("sleep 9", timeout="200ms", check=True))
        same(s.exec("kill -9 $$").state, "signaled")
        heard = []
        r = s.exec("for i in 1 2 3; do echo $i; sleep 0.05; done; echo e >&2", on_stdout=heard.append,
                   on_stderr=lambda text: heard.append("!" + text))
        same(("".join(heard), r.stdout), ("1\n2\n3\n!e\n", "1\n2\n3\n"))
        same(s.exec("cat", stdin="häh").stdout, "häh")
        same(s.exec("sha256sum | cut -c1-8; wc -c", stdin="").ok, True)
        big = bytes(range(256)) * 2000
        same(s.exec("wc -c", stdin=big).stdout.strip(), str(len(big)))
        r = s.exec(["printf", r"\377\000"])
        same((r.stdout_bytes, r.stdout), (b"\xff\0", "\ufffd\0"))
        s.exec("cd /tmp; X=1", shell="main")
        same(s.exec("echo $PWD $X", shell="main").stdout, "/tmp 1\n")
        same([one["name"] for one in s.shells()], ["main"])
        s.delete_shell("main")
        same(s.shells(), [])
        r = s.exec("yes | head -c 300000", output={"inline": "1m"})
        same((len(r.stdout), r.dropped), (300000, 0))
        raises(errors.CommandError, lambda: s.exec("exit 3", check=True, output={"inline": "1m"}), "exit status 3")
        raises(errors.CommandError, lambda: s.exec("exit 3", check=True, wait="20s"), "exit status 3")
        same(s.exec("sleep 2", check=True, wait="50ms").is_over, False, "what still runs is not checked")
        r = s.exec("until [ -e go ]; do sleep 0.05; done; echo late", wait="50ms")
        same(r.is_over, False)
        s.write("go", "")
        same(Process.get(r.id, client=client_of(api)).wait().stdout, "late\n")
        same(s.exec("sleep 9", timeout=0.15).state, "timeout", "seconds with a fraction")


@test("errors are exceptions of Python's own kinds")
def _(api):
    with Sandbox(client=client_of(api)) as s:
        s.mkdir("d/e")
        s.write("f", "one\ntwo\none\n")
        cases = [
            (FileNotFoundError, "not_found", lambda: s.read("none")),
            (IsADirectoryError, "is_directory", lambda: s.read("d")),
            (NotADirectoryError, "not_directory", lambda: s.read("f/x")),
            (PermissionError, "permission_denied", lambda: s.write("/etc/x", "")),
            (FileExistsError, "exists", lambda: s.write("f", "", only_new=True)),
            (errors.Stale, "stale", lambda: s.write("f", "", if_hash="0" * 64)),
            (LookupError, "no_match", lambda: s.edit("f", "three", "3")),
            (LookupError, "ambiguous_match", lambda: s.edit("f", "one", "1")),
            (ValueError, "invalid", lambda: s.exec("x", cwd="relative")),
            (ValueError, "invalid", lambda: s.set_net({"mode": "x"})),
        ]
        for kind, code, call in cases:
            same(raises(kind, call).code, code)
        same(raises(errors.AmbiguousMatch, lambda: s.edit("f", "one", "1")).lines, [1, 3])
    gone = Sandbox(client=Client(socket="/run/nobody.sock"))
    begin = time.monotonic()
    error = raises(caisson.SandboxUnavailable, gone.start)
    same((error.retry_safe, time.monotonic() - begin < 40), (True, True))
    codes = {c for c in errors._BY_CODE}
    said = client_of(api).openapi()["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]
    same(sorted(codes), sorted(said), "codes with a class")


@test("files: read, write, edit, list, search, patch, tar, watch")
def _(api):
    with Sandbox(client=client_of(api)) as s:
        made = s.write("src/a b.txt", b"\xff\0one\r\ntwo\r\n", mode="0600")
        same((made["created"], s.stat("src/a b.txt")["mode"]), (True, "0600"))
        same(s.read_bytes("src/a b.txt", first=2, last=4), b"one")
        s.write("t", "one\ntwo\nthree\n")
        same(s.read_lines("t", 2, 2)["text"], "two\n")
        same(s.edit("t", "two", "2", if_hash=s.stat("t", hash=True)["hash"])["replaced"], 1)
        s.edit_many("t", [{"old": "one", "new": "1"}, {"old": "three", "new": "3"}])
        s.insert("t", 0, "zero\n")
        same(s.read("t"), "zero\n1\n2\n3\n")
        s.write("big", io.BytesIO(b"x" * 3_000_000))
        same(s.stat("big")["bytes"], 3_000_000)
        s.copy("t", "u")
        s.move("u", "src/u")
        same(sorted(e["path"] for e in s.list(depth=2)), ["big", "src", "src/a b.txt", "src/u", "t"])
        same((s.exists("u"), s.exists("src/u")), (False, True))
        same([(m["path"], m["line"]) for m in s.grep("^2$", glob="t")["matches"]], [("t", 3)])
        same(s.glob("**/u")["paths"], ["src/u"])
        done = s.batch([{"op": "read", "path": "t"}, {"op": "stat", "path": "none"}])
        same(("ok" in done[0], done[1]["error"]["code"]), (True, "not_found"))
        s.patch("--- a/t\n+++ b/t\n@@ -1,2 +1,2 @@\n-zero\n+null\n 1\n")
        same(s.read("t").split()[0], "null")
        tar = s.download("src")
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            same(len([m for m in archive if m.isfile()]), 2)
        same(s.upload(tar, "copy")["files"], 2)
        s.delete("copy", recursive=True)
        same(s.exists("copy"), False)
        events = s.watch(recursive=True)
        same(next(events)["event"], "ready")
        s.write("src/new", "")
        found = next(e for e in events if e.get("path") == "src/new" and e["event"] in ("create", "move_to"))
        check(found)
        events.close()


@test("processes: input, signals, terminal, log, events behind a seq")
def _(api):
    client = client_of(api)
    with Sandbox(client=client) as s:
        p = s.spawn("cat; echo end", stdin=True, label="cat")
        p.write("a\n")
        p.write("b", eof=True)
        same((p.wait().stdout, p.log()), ("a\nbend\n", b"a\nbend\n"))
        same([one["id"] for one in client.processes(label="cat")], [p.id])
        p = s.spawn("echo 1; echo 2; echo 3")
        p.wait()
        seen = list(p.events())
        same(seen[-1]["type"], "end")
        same(b"".join(p.output(after=seen[0]["seq"])), b"".join([b"1\n2\n3\n"])[len(seen[0]["data"]):])
        p = s.spawn("trap 'echo got; exit 5' TERM; echo up; while :; do sleep 0.05; done")
        next(p.output())
        p.signal("TERM")
        same((p.wait().exit_code, p.poll().stdout), (5, "up\ngot\n"))
        with s.spawn("sleep 100") as p:
            same(p.wait("10ms").is_over, False)
        same(p.poll().state, "killed")
        with s.pty("stty size; read x; stty size; exit 4", rows=30, cols=100) as t:
            check(b"30 100" in t.read_until(b"100"), "its size")
            t.resize(40, 120)
            wait_until(lambda: s.exec(f"stty size </proc/$(pgrep -of 'read x')/fd/0 2>/dev/null; true").ok)
            t.send("\n")
            check(b"40 120" in t.read_until(b"120"), "its new size")
            check(all(True for _ in t))
            same(t.result.exit_code, 4)


@test("ports, connections, why, usage, pause")
def _(api):
    client = client_of(api)
    with Sandbox(client=client) as s:
        s.write("index.html", "hello")
        s.spawn("python3 -m http.server 8000")
        port = s.port(8000, wait="30s")
        with urllib.request.urlopen(urllib.request.Request(port.url, headers=port.headers), timeout=lib.PATIENCE) as answer:
            same(answer.read(), b"hello")
        same([one["port"] for one in s.ports()["listeners"]], [8000])
        port.close()
        same(s.ports()["forwarded"], [])
        same((s.why("example.org")["decision"], list(s.connections())), ("deny", []))
        check(s.usage()["pids"] > 0)
        s.pause()
        same(s.info()["state"], "paused")
        s.resume()
        same(s.extend(ttl="1h").info()["expires_ms"] is not None, True)
        s.stop()
        same((s.info()["state"], s.start().exec("cat index.html").stdout), ("stopped", "hello"))
    with Sandbox(key="kept", client=client) as s:
        s.write("x", "1")
        id = s.id
    again = Sandbox(key="kept", client=client)
    same((again.read("x"), again.id), ("1", id))
    again.close()


@test("workspaces: undo, fork, merge, diff, apply, snapshots, trash")
def _(api):
    client = client_of(api)
    ws = Workspace.open("task", client=client)
    same(Workspace.open("task", client=client).id, ws.id)
    ws.write("a.txt", "1\n")
    same(ws.exec("echo 2 >>a.txt; cat a.txt").stdout, "1\n2\n")
    ws.undo()
    same(ws.read("a.txt"), "1\n")
    ws.redo()
    same(ws.read("a.txt"), "1\n2\n")
    point = ws.snapshot("two")
    ws.exec("rm a.txt")
    ws.restore(point["id"])
    same(ws.read("a.txt"), "1\n2\n")
    check(len(ws.history()) >= 4)
    with ws.sandbox(limits={"mem": "1g"}) as s:
        same(s.exec("echo 3 >>a.txt; pwd").stdout, "/work\n")
    same(ws.read("a.txt"), "1\n2\n3\n")
    one, two = ws.fork(2)
    one.exec("echo more >b.txt")
    same((one.exists("b.txt"), two.exists("b.txt"), ws.exists("b.txt")), (True, False, False))
    same({f["path"]: f["status"] for f in ws.changes()["files"]}, {"a.txt": "A"})
    check("+3\n" in ws.diff())
    folder = lib.HOME / "target"
    folder.mkdir()
    same(ws.apply(str(folder), dry_run=True)["applied"], False)
    ws.apply(str(folder))
    same((folder / "a.txt").read_text(), "1\n2\n3\n")
    ws.write("run.sh", "#!/bin/sh\n", mode="0755")
    raises(PermissionError, lambda: ws.apply(str(folder)), "run.sh")
    ws.apply(str(folder), allow_exec=["run.sh"])
    check(os.access(folder / "run.sh", os.X_OK))
    (folder / "a.txt").write_text("other\n")
    ws.write("a.txt", "mine\n")
    raises(errors.Conflict, lambda: ws.apply(str(folder), allow_exec=["*"]), "a.txt")
    ws.update(pin=True)
    same(ws.info(usage=True)["pin"], True)
    with tarfile.open(fileobj=io.BytesIO(ws.take(["a.txt"]))) as archive:
        check("a.txt" in "".join(archive.getnames()))
    for w in (one, two, ws):
        w.remove(force=True)
    same(ws.restore_trash()["state"], "ready")
    ws.remove(force=True)


@test("secrets: sealed as RFC 9180 says; the gate opens what was sealed here")
def _(api):
    # A.2.1 of the RFC: the first message.
    sealed = _seal.seal(
        bytes.fromhex("4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a"),
        bytes.fromhex("4f6465206f6e2061204772656369616e2055726e"), bytes.fromhex("436f756e742d30"),
        bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479"),
        bytes.fromhex("f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600"))
    same(sealed.hex(), "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a"
         "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28")
    client = client_of(api)
    made = client.set_secret("one", "a-value-of-mine", hosts=["api.example.org"], inject="bearer", env="TOKEN")
    same((made["name"], made["bind"]["hosts"]), ("one", ["api.example.org"]))
    same([one["name"] for one in client.secrets()], ["one"])
    with Sandbox(net="allow:api.example.org", creds="one", client=client) as s:
        shown = s.exec("echo $TOKEN").stdout.strip()
        check(shown and shown != "a-value-of-mine", shown)
    client.delete_secret("one")
    raises(FileNotFoundError, lambda: client.secret("one"))


@test("the daemon: health, ledger, tokens, quota, run")
def _(api):
    client = client_of(api)
    same((client.health()["ready"], client.quota()["used"]["sandboxes"]), (True, 0))
    check("caisson_" in client.metrics())
    same(client.backends()[0]["name"], "native")
    r = client.run("cat; exit 3", spec=dict(limits=dict(mem="512m")), stdin="x")
    same((r.exit_code, r.stdout), (3, "x"))
    kinds = [one["kind"] for one in client.events()]
    check("exec.started" in kinds, kinds[:50])
    records = client.events(follow=True)
    same(next(records)["seq"], 1)
    records.close()
    token = client.create_token(name="t", scope="exec")
    same([one["id"] for one in client.tokens()], [token["id"]])
    client.revoke_token(token["id"])
    same((client.images(), client.repos(), client.cache()), ([], [], []))
    check(client.gc(dry_run=True)["dry_run"])
    same(client.fsck()["found"], 0)


@test("run: files go in, only what was named comes back, nothing stays")
def _(api):
    client = client_of(api)
    r = client.run("mkdir out; sort in/a >out/sorted; printf '\\377' >out/b.bin; echo no >other; cat; exit 2", stdin="text",
                   files={"in/a": "b\na\n", "in/raw": b"\xff\x00"}, collect=["out/**", "in/raw", "/tmp/none", "nothing*"])
    same((r.exit_code, r.stdout), (2, "text"))
    same(r.files, {"out/sorted": b"a\nb\n", "out/b.bin": b"\xff", "in/raw": b"\xff\x00"})
    same(sorted(r.missing), ["/tmp/none", "nothing*"])
    r = client.run("head -c 20000000 /dev/zero >big; echo 1 >/tmp/abs", collect=["big", "/tmp/abs"])
    same((r.files, r.missing), ({"/tmp/abs": b"1\n"}, ["big"]))
    r = client.run("sleep 9", timeout="100ms", collect=["*"])
    same((r.state, r.files), ("timeout", {}))
    for bad in (dict(files={"../x": ""}), dict(files={"/etc/x/y": ""}), dict(files={"a": 1}), dict(collect=[""])):
        raises(ValueError, lambda b=bad: client.call("POST", "/v1/run", body={"cmd": "true", **b}))
    raises(ValueError, lambda: client.run("true", spec=dict(net="denny"), collect=["*"]))
    wait_until(lambda: not client.sandboxes(), what="all of them are removed")


@test("run: the same by the CLI; names from inside lead nowhere else")
def _(api):
    into = lib.HOME / "into"
    into.mkdir()
    (into / "link").symlink_to(lib.HOME)

    def cli(*words):
        return subprocess.run([lib.cell.BIN / "caisson", "run", *words], capture_output=True, text=True, check=False, cwd=lib.HOME,
                              env={"PATH": "/usr/bin:/bin", "CAISSON_SOCKET": str(api.daemon.socket)})
    done = cli("--collect", "out/**", "--collect=none", "--into", str(into), "--", "sh", "-c",
               "mkdir -p out/d; echo 1 >out/d/x; chmod 755 out/d/x; ln -s /etc/passwd out/link; echo said; exit 3")
    same((done.returncode, done.stdout), (3, "said\n"))
    check("nothing to collect: none" in done.stderr and "not executable here: out/d/x" in done.stderr, done.stderr)
    check((into / "out/d/x").stat().st_mode & 0o777 == 0o644 and not (into / "out/link").is_symlink(), sorted(into.rglob("*")))
    done = cli("--collect", "link/**", "--into", str(into), "--", "sh", "-c", "mkdir link; echo bad >link/planted")
    check(not (lib.HOME / "planted").exists(), done.stderr)
    done = cli("--json", "--collect", "a", "--into", str(into), "--", "sh", "-c", "echo 1 >a")
    same([one["path"] for one in json.loads(done.stdout)["collected"]], ["a"])
    done = cli("--collect", "**", "--allow-exec", "x", "--into", str(into), "--", "sh", "-c", "echo 1 >x; echo 1 >y; chmod 755 x y")
    same([oct((into / n).stat().st_mode & 0o777) for n in "xy"], ["0o755", "0o644"], done.stderr)
    same([cli("--collect", "a", "-i", "--", "true").returncode, cli("--into", "a", "--", "true").returncode, cli("--allow-exec", "a", "--", "true").returncode], [125, 125, 125])
    shutil.rmtree(into)


@test("run: a client that leaves ends it")
def _(api):
    client = client_of(api)
    s = lib.connect(api.daemon.socket)
    body = b'{"cmd": "sleep 113", "collect": ["*"]}'
    s.sendall(b"POST /v1/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    wait_until(lambda: client.processes(state="running"))
    s.close()
    wait_until(lambda: not client.processes(state="running") and not client.sandboxes(), 10)


@test("tools: six of them, in each shape, answered in words")
def _(api):
    with Sandbox(client=client_of(api)) as s:
        tools = s.tools()
        names = ["bash", "read", "write", "edit", "glob", "grep"]
        same([t["name"] for t in tools.specs("anthropic")], names)
        same([t["function"]["name"] for t in tools.specs("openai")], names)
        same([t["name"] for t in tools.specs("openai-responses")], names)
        same([f.__name__ for f in tools.functions()], names)
        for spec, function in zip(tools.specs("plain"), tools.functions()):
            code = function.__func__.__code__
            same(set(spec["schema"]["properties"]), set(code.co_varnames[1:code.co_argcount]), spec["name"])
        cases = [
            ("write", {"file_path": "a/b.txt", "content": "one\ntwo\n"}, "[/work/a/b.txt: 8 bytes, new]"),
            ("read", {"file_path": "a/b.txt", "offset": 2}, "     2\ttwo"),
            ("glob", {"pattern": "**/*.txt"}, "a/b.txt"),
            ("grep", {"pattern": "tw."}, "a/b.txt:2:two"),
            ("grep", {"pattern": "o", "output_mode": "count"}, "a/b.txt:2"),
            ("bash", '{"command": "echo hi; echo no >&2; exit 2"}', "hi\nno\n[exit status 2]"),
            ("bash", {"command": "sleep 5", "timeout": 200}, "[timeout: timeout reached]"),
            ("edit", {"file_path": "a/b.txt", "old_string": "x", "new_string": ""}, "[/work/a/b.txt: the old text is not there]"),
            ("bash", {"cmd": ""}, "[bash: unknown: cmd; needed: command]"),
            ("bash", "{", "[the arguments are not JSON: "),
            ("rm", {}, "[there is no tool 'rm': "),
        ]
        for name, arguments, expected in cases:
            got = tools.call(name, arguments)
            check(got.startswith(expected) if expected.endswith(": ") else got == expected, f"{name} {arguments}: {got!r}")
        check("+1\n" in tools.call("edit", {"file_path": "a/b.txt", "old_string": "one", "new_string": "1"}))
        said = tools.call("bash", {"command": "yes | head -c 100000"})
        check(len(said) < 31000 and "left out" in said, len(said))


@test("asyncio: the same words, side by side, and a cancelled command is ended")
def _(api):
    async def cancelled(s, command, **options):
        task = asyncio.ensure_future(s.exec(command, **options))
        await asyncio.sleep(0.4)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        for _ in range(1000):
            if (await s.exec(["pgrep", "-f", command])).exit_code == 1:
                return
            await asyncio.sleep(0.02)
        raise lib.Failed(f"{command} still runs")

    async def main():
        client = aio.Client(socket=str(api.daemon.socket))
        async with aio.Sandbox(**ONE_LINER, client=client) as s:
            await s.write("a.py", "print(1+1)")
            meet = "mkdir -p met; : >met/{0}; until [ $(ls met | wc -l) = 8 ]; do sleep 0.05; done; echo {0}"  # none ends before all are there
            results = await asyncio.gather(*(s.exec(meet.format(i), timeout="80s") for i in range(8)))
            same([r.stdout for r in results], [f"{i}\n" for i in range(8)], "side by side")
            heard = []
            await s.exec("echo 1; echo 2", on_stdout=heard.append)
            same("".join(heard), "1\n2\n")
            p = await s.spawn("cat", stdin=True)
            await p.write("x", eof=True)
            same(b"".join([piece async for piece in p.output()]), b"x")
            t = await s.pty("echo tty; exit 2")
            check(b"tty" in await t.read_until(b"\n"))
            while await t.recv():
                pass
            same(t.result.exit_code, 2)
            same(await s.tools().call("bash", {"command": "echo a"}), "a")
            async for event in s.watch():
                same(event["event"], "ready")
                break
            await cancelled(s, "sleep 111")
            await cancelled(s, "sleep 113", output={"inline": "1m"})
            for ms in (0, 1, 2, 4, 8):
                task = asyncio.ensure_future(aio.Sandbox(client=client).start())
                await asyncio.sleep(ms / 1000)
                task.cancel()
                made = (await asyncio.gather(task, return_exceptions=True))[0]
                if isinstance(made, aio.Sandbox):  # it was faster
                    await made.close()
                same([one["id"] for one in await client.sandboxes()], [s.id], f"what a cancelled start leaves after {ms} ms")
            other = aio.Sandbox(client=client)
            same(len({r.sandbox for r in await asyncio.gather(*(other.exec("true") for _ in range(4)))}), 1, "one for all tasks")
            await other.close()
            try:
                await s.read("none")
                raise lib.Failed("it is not there")
            except FileNotFoundError:
                pass
        ws = await aio.Workspace.open("aio", client=client)
        await ws.exec("echo 1 >a")
        await ws.undo()
        same(await ws.exists("a"), False)
        await ws.remove(force=True)
        client.close()

    asyncio.run(main())
    asyncio.run(main())  # another loop


@test("an answer that ends early is our failure, by its name")
def _(api):
    path = lib.HOME / "broken.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer():
            for _ in range(2):
                peer = listener.accept()[0]
                peer.recv(65536)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        raises(errors.SandboxUnavailable, Client(socket=str(path)).health, "in the middle")

        async def main():
            await aio.Client(socket=str(path)).health()
        raises(errors.SandboxUnavailable, lambda: asyncio.run(main()), "in the middle")
        thread.join()
    path.unlink()


@test("a daemon that is killed: streams go on behind what was seen, requests are done once", own=True)
def _(api):
    d = lib.Daemon("restart").start()
    client = Client(socket=str(d.socket))
    with Sandbox(client=client) as s:
        p = s.spawn("for i in $(seq 1 40); do echo $i; sleep 0.05; done")
        threading.Timer(0.6, lambda: os.kill(d.pid, signal.SIGKILL)).start()
        same(b"".join(p.output()).decode().split(), [str(i) for i in range(1, 41)])
        same(p.wait().exit_code, 0)
        threading.Timer(0.4, lambda: os.kill(d.pid, signal.SIGKILL)).start()
        same(s.exec("echo x >>log; sleep 1; cat log").stdout, "x\n")
    d.wait_ready()
    d.wait_clean()
    d.stop()


@test("TCP with a token; without one it is a PermissionError; a person is asked and decides", own=True)
def _(api):
    d = lib.Daemon("tcp", options=["--listen", "127.0.0.1:0"]).start()
    host, operator = f"127.0.0.1:{d.port()}", Client(socket=str(d.socket))
    token = operator.create_token(scope="manage")["token"]
    with Sandbox(client=Client(host=host, token=token)) as s:
        same(s.run("echo tcp").stdout, "tcp\n")
        asked = raises(errors.ApprovalRequired, lambda: s.set_net({"allow": ["example.org"]}))
        same([one["id"] for one in operator.approvals(state="pending")], [asked.approval])
        raises(PermissionError, lambda: s._client.decide(asked.approval, "allow"))
        seen = operator.follow_approvals()
        same((next(seen)["state"], operator.decide(asked.approval, "deny", note="no")["state"]), ("pending", "denied"))
        same((next(seen)["state"], operator.approval(asked.approval, wait="40s")["note"]), ("denied", "no"))
        seen.close()
    same(raises(PermissionError, Client(host=host, token="no").sandboxes).code, "unauthorized")
    d.stop()


def run_as(script, uid=None, **env):
    """A program of its own that uses the SDK."""
    python = "/usr/bin/python3" if uid else sys.executable
    extra = {"user": uid, "group": uid, "extra_groups": []} if uid else {}
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, timeout=100, cwd="/", check=False,
                          env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(place.COPY / "sdk/python"),
                               "PYTHONDONTWRITEBYTECODE": "1", "CAISSON": str(lib.cell.BIN / "caisson"), **env}, **extra)
    check(done.returncode == 0, done.stderr)
    return done.stdout


@test("at the end of a program its sandboxes are deleted, by the process that made them")
def _(api):
    said = run_as("""
import os
from caisson import Sandbox
s = Sandbox()
s.run("true")
if os.fork() == 0:
    raise SystemExit(0)
os.wait()
print(s.run("echo mine").stdout, end="")
""", CAISSON_SOCKET=str(api.daemon.socket))
    same((said, client_of(api).sandboxes()), ("mine\n", []))
    said = run_as("""
import asyncio
from caisson.aio import Sandbox
async def main():
    s = Sandbox()
    print((await s.run("echo a")).stdout, end="")
asyncio.run(main())
""", CAISSON_SOCKET=str(api.daemon.socket))
    same((said, client_of(api).sandboxes()), ("a\n", []))


@test("without a daemon one is started, for an ordinary user", own=True)
def _(api):
    home = lib.HOME / "user"
    home.mkdir()
    os.chown(home, lib.USER_ID, lib.USER_ID)
    said = run_as("""
from caisson import Sandbox
with Sandbox(net="deny", fs="ephemeral:/work", creds=None, limits=dict(wall="10m")) as s:
    print(s.run("echo started").stdout, end="")
""", lib.USER_ID, HOME=str(home), XDG_RUNTIME_DIR=str(home), XDG_STATE_HOME=str(home))
    same(said, "started\n")
    place.stop_daemon_of(home)
    shutil.rmtree(home)


@test("every file is Python 3.9")
def _(api):
    for name, data in FILES.items():
        if name.endswith(".py"):
            tree = ast.parse(data, name, feature_version=(3, 9))
            words = [n for n in ast.walk(tree) if isinstance(n, ast.Match)]
            check(not words, name)
            first = [n.names[0].name for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
            check(first or not any(isinstance(n, ast.AnnAssign) for n in ast.walk(tree)), f"{name}: annotations are run")
    check(json.dumps(sorted(FILES)), "there are some")


@test("adapters: whoever is cancelled again while the command is ended has ended it")
def _(api):
    class Far(aio.Sandbox):
        """By a slow network."""
        async def spawn(self, *words, **options):
            process = await super().spawn(*words, **options)
            kill = process.kill

            async def later():
                await asyncio.sleep(0.05)
                return await kill()
            process.kill = later
            return process

    async def main():
        client = aio.Client(socket=str(api.daemon.socket))
        async with Far(client=client) as s:
            begun = asyncio.Event()
            task = asyncio.ensure_future(run_whole(s, "echo begun; sleep 69", heard=lambda *_: begun.set()))
            await asyncio.wait_for(begun.wait(), 20)
            while not task.done():  # as a scope of anyio does it
                task.cancel()
                await asyncio.sleep(0)
            same(task.cancelled(), True, "the task")
            deadline = time.monotonic() + 10
            while [p for p in await client.processes() if p["state"] == "running"]:
                check(time.monotonic() < deadline, "the command goes on")
                await asyncio.sleep(0.05)
    asyncio.run(main())


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=place.prepare(FILES)))
