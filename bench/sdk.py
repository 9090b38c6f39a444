"""sdk.py - what a program waits for its first answer: a sandbox is made and runs one command, by our SDKs and by
those of E2B, side by side on one daemon.

A part of bench/run, and `bench/run sdk` alone. Packages of E2B come from the registries that this host's clients are
configured to use, to build/e2b-sdk (as for tests/e2b/sdk.py); without one, and without Node, a row is named with the
reason. A sandbox of E2B's clients has a workspace of its own at its home folder, ours here has none; one of each kind has
a network, which means a child of the gate.
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import daemon

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEPT = ROOT / "build/e2b-sdk"
FIELDS = ("min", "p50", "p90", "p99", "mean")
ROUNDS = 50

PYTHON = """
import json, os, sys, time
sys.path.insert(0, os.environ["SDK"])
{make}
times = []
for i in range(int(os.environ["ROUNDS"]) + 3):
    begin = time.perf_counter()
    s = make()
    assert run(s)
    end = time.perf_counter()
    gone(s)
    if i >= 3: times.append((end - begin) * 1e6)
print(json.dumps(times))
"""
NODE = """
import {{ pathToFileURL }} from 'node:url'
const sdk = await import(pathToFileURL(process.env.SDK).href)
{make}
const times = []
for (let i = 0; i < Number(process.env.ROUNDS) + 3; i++) {{
  const begin = performance.now()
  const s = await make()
  if (!await run(s)) throw new Error('it failed')
  const end = performance.now()
  await gone(s)
  if (i >= 3) times.push((end - begin) * 1000)
}}
console.log(JSON.stringify(times))
process.exit(0)
"""

# name -> language, where its package is, its three verbs
ROWS = {
    "caisson, Python": ("py", "ours", "from caisson import Sandbox\nmake = lambda: Sandbox(net='deny')\nrun = lambda s: s.run('true').ok\ngone = lambda s: s.close()"),
    "e2b, Python": ("py", "py-newest", "from e2b import Sandbox\nmake = lambda: Sandbox.create(allow_internet_access=False)\n"
                                       "run = lambda s: s.commands.run('true').exit_code == 0\ngone = lambda s: s.kill()"),
    "caisson, JavaScript": ("js", "ours", "const make = () => new sdk.Sandbox({ net: 'deny' }), run = async (s) => (await s.run('true')).ok, gone = (s) => s.close()"),
    "e2b, JavaScript": ("js", "js-newest", "const make = () => sdk.Sandbox.create({ allowInternetAccess: false }), run = async (s) => (await s.commands.run('true')).exitCode === 0, gone = (s) => s.kill()"),
    "caisson, JavaScript, a network": ("js", "ours", "const make = () => new sdk.Sandbox({ net: 'allow' }), run = async (s) => (await s.run('true')).ok, gone = (s) => s.close()"),
    "e2b, JavaScript, a network": ("js", "js-newest", "const make = () => sdk.Sandbox.create(), run = async (s) => (await s.commands.run('true')).exitCode === 0, gone = (s) => s.kill()"),
}
ENTRY = {("py", "ours"): ROOT / "sdk/python", ("js", "ours"): ROOT / "sdk/typescript/lib/index.js",
         ("py", "py-newest"): KEPT / "py-newest", ("js", "js-newest"): KEPT / "js-newest/node_modules/e2b/dist/index.mjs"}
INSTALL = {"py-newest": [sys.executable, "-m", "pip", "install", "-q", "--target"], "js-newest": ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix"]}


def obtain(name):
    """Why it is not there; None: it is."""
    if name == "ours" or (KEPT / name).exists():
        return None
    if not shutil.which(INSTALL[name][0]):
        return f"there is no {INSTALL[name][0]}"
    KEPT.mkdir(parents=True, exist_ok=True)
    new = KEPT / f"{name}.new"
    shutil.rmtree(new, ignore_errors=True)
    try:
        done = subprocess.run([*INSTALL[name], str(new), "e2b"], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return "the registry does not answer"
    if done.returncode != 0:
        return "the registry cannot be reached"
    new.rename(KEPT / name)
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def measure(row, env, rounds):
    """({min, p50, ...} in microseconds, None), or (None, the reason)."""
    language, package, verbs = ROWS[row]
    reason = obtain(package) or (None if language == "py" or shutil.which("node") else "there is no node")
    if reason:
        return None, reason
    argv = [sys.executable, "-c", PYTHON.format(make=verbs)] if language == "py" else ["node", "--input-type=module", "-e", NODE.format(make=verbs)]
    done = subprocess.run(argv, env={**env, "SDK": str(ENTRY[language, package]), "ROUNDS": str(rounds)},
                          cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=170, check=False)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no message"])[-1][:100]
    times = sorted(json.loads(done.stdout.splitlines()[-1]))
    at = {"min": 0, "p50": 0.5, "p90": 0.9, "p99": 0.99}
    return {**{k: times[min(int(v * len(times)), len(times) - 1)] for k, v in at.items()}, "mean": sum(times) / len(times)}, None


def bench(tmp, rounds=ROUNDS):
    port = free_port()
    result = {"times_us": {}, "absent": {}}
    with daemon.Daemon(tmp / "sdk", options=("--listen", f"127.0.0.1:{port}")) as d:
        key = d.ask("POST", "/v1/tokens", {"scope": "manage", "form": "e2b"})[1]["token"]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CAISSON_", "E2B_"))}
        env.update(CAISSON_SOCKET=str(d.socket), E2B_API_KEY=key, E2B_API_URL=f"http://127.0.0.1:{port}", E2B_SANDBOX_URL=f"http://127.0.0.1:{port}")
        print(f"a sandbox is made and runs its first command, by SDKs, {rounds} times, ms")
        print(f"{'':32}" + "".join(f"{f:>8}" for f in FIELDS))
        for row in ROWS:
            times, reason = measure(row, env, rounds)
            if times:
                result["times_us"][row] = times
                print(f"{row:32}" + "".join(f"{times[f] / 1000:8.2f}" for f in FIELDS))
            else:
                result["absent"][row] = reason
                print(f"{row:32}  {reason}")
    print()
    return result


def verdicts(result):
    """150 ms is what E2B says of its own service, without the way there."""
    return [(f"first command by {row}, p50, ms", t["p50"] / 1000, 150) for row, t in result["times_us"].items()]
