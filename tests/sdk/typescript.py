#!/usr/bin/env python3
"""The TypeScript SDK against a daemon: every kind of call, broken connections, the end of a program. TAP.

    tests/sdk/typescript.py           all (needs root and node)
    tests/sdk/typescript.py tools     those with the word in their title
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

import place
from place import lib
from lib import check, same, test, wait_until

FILES = place.load("sdk/typescript", "tests/sdk")
MODULE = place.COPY / "sdk/typescript/lib/index.js"


def node(*words, uid=None, **env):
    extra = {"user": uid, "group": uid, "extra_groups": []} if uid else {}
    return subprocess.run(["node", *map(str, words)], capture_output=True, text=True, timeout=300, cwd="/", check=False, env={
        "PATH": os.environ["PATH"], "HOME": str(lib.HOME), "CAISSON": str(lib.cell.BIN / "caisson"), **env}, **extra)


def script(text, **options):
    done = node("--input-type=module", "-e", f'import * as sdk from "{MODULE}";\n{text}', **options)
    check(done.returncode == options.get("status", 0), done.stderr)
    return done.stdout


@test("typescript.mjs: every test of it")
def _(api):
    target = lib.HOME / "target"
    target.mkdir()
    (lib.SOURCE / "lent").mkdir()
    (lib.SOURCE / "lent/file").write_text("of the host")
    done = node(place.COPY / "tests/sdk/typescript.mjs", MODULE, CAISSON_SOCKET=str(api.daemon.socket), TARGET=str(target),
                LENT=str(lib.SOURCE / "lent"))
    shutil.rmtree(target)
    results = [line for line in done.stdout.splitlines() if line.startswith(("ok", "not ok"))]
    check(done.returncode == 0 and len(results) == 13 and all(line.startswith("ok") for line in results), done.stdout + done.stderr)


@test("at the end of a program its sandboxes are deleted, also by exit()")
def _(api):
    for end in ("", "process.exit(0);", "throw new Error('no');"):
        done = node("--input-type=module", "-e", f"""
import {{ Sandbox }} from "{MODULE}";
const s = new Sandbox();
console.log((await s.run("echo mine")).stdout.trim());
{end}""", CAISSON_SOCKET=str(api.daemon.socket))
        same(done.stdout, "mine\n", done.stderr)
        states = {one["state"] for one in api.client.ok("GET", "/v1/sandboxes")["sandboxes"]}
        same(states, set(), end)


@test("a daemon that is killed: streams go on behind what was seen, commands are not lost", own=True)
def _(api):
    d = lib.Daemon("restart").start()
    threading.Timer(1.0, lambda: os.kill(d.pid, signal.SIGKILL)).start()
    said = script("""
const s = await sdk.Sandbox.create();
const p = await s.spawn("for i in $(seq 1 50); do echo $i; sleep 0.05; done");
const [r] = await Promise.all([s.exec("echo x >>log; sleep 2; cat log"), (async () => {
  for await (const piece of p.output()) process.stdout.write(piece);
})()]);
process.stdout.write(r.stdout);
await s.close();
""", CAISSON_SOCKET=str(d.socket))
    same(said.split(), [*(str(i) for i in range(1, 51)), "x"])
    d.wait_ready()
    d.wait_clean()
    d.stop()


@test("TCP with a token; without one it is Unauthorized", own=True)
def _(api):
    d = lib.Daemon("tcp", options=["--listen", "127.0.0.1:0"]).start()
    token = d.client().ok("POST", "/v1/tokens", {"scope": "manage"})["token"]
    said = script("""
const client = new sdk.Client();
const s = await sdk.Sandbox.create({ client });
console.log((await s.exec("echo tcp")).stdout.trim());
const t = await s.pty("echo terminal");
let shown = "";
for await (const piece of t) shown += piece;
console.log(shown.trim());
await s.close();
try {
  await new sdk.Client({ host: process.env.CAISSON_HOST, token: "no" }).sandboxes();
} catch (error) {
  console.log(error.name);
}
""", CAISSON_HOST=f"127.0.0.1:{d.port()}", CAISSON_TOKEN=token)
    same(said, "tcp\nterminal\nUnauthorized\n")
    d.wait_clean()
    d.stop()


@test("without a daemon one is started, for an ordinary user", own=True)
def _(api):
    home = lib.HOME / "user"
    home.mkdir()
    os.chown(home, lib.USER_ID, lib.USER_ID)
    said = script("""
const s = await sdk.Sandbox.create({ net: "deny", limits: { wall: "10m" } });
console.log((await s.run("echo started")).stdout.trim());
await s.close();
""", uid=lib.USER_ID, HOME=str(home), XDG_RUNTIME_DIR=str(home), XDG_STATE_HOME=str(home))
    same(said, "started\n")
    place.stop_daemon_of(home)
    shutil.rmtree(home)


@test("adapters load without their frameworks, by the names that package.json gives them")
def _(api):
    folder = place.COPY / "sdk/typescript"
    exports = json.loads((folder / "package.json").read_text())["exports"]
    names = sorted(name for name in exports if name != ".")
    same(names, ["./ai", "./deepagents", "./mastra"])
    for name in names:
        for file in exports[name].values():
            check((folder / file).exists(), file)
        same(script(f'console.log(Object.keys(await import("{folder / exports[name]["default"]}")).length > 0);'), "true\n", name)


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=place.prepare(FILES)))
