#!/usr/bin/env python3
"""Secrets that come back in some way: masked in what commands write and in diffs, and found nowhere. TAP.

A value is brought inside by the caller himself (a file that he writes): by design there is no other way, and
what it is looked for in does not care.

    tests/net/scan.py          all (needs root)
    tests/net/scan.py OUTPUT   those with the word in their title
"""
import base64
import json
import random
import subprocess
import sys
import time

import place  # before lib, whose folder it knows
import lib
from lib import check, same, test, wait_until
from place import Box, caisson

NET = {"allow": ["api.test"]}
VALUE = f"seen-{random.SystemRandom().randbytes(16).hex()}>>>???"
STARS = "*" * len(VALUE)


def set_secret(api, name, value, *words):
    done = subprocess.run([str(lib.cell.BIN / "caisson"), "secret", "set", name, *words], input=value, text=True, capture_output=True,
                          timeout=30, cwd="/", check=False, env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(api.daemon.socket)})
    same(done.returncode, 0, done)


def make(api, *creds, **spec):
    return Box(api.client, spec.pop("net", NET), **{"env": place.PLAIN_ENV, "creds": list(creds), **spec})


def events(api, kind, **having):
    answer = api.client.get(f"/v1/events?kind={kind}")
    same(answer.status, 200, answer)
    return [e for e in map(json.loads, answer.body.decode().splitlines()) if e["kind"] == kind and all(e.get(k) == v for k, v in having.items())]


# ---- output -----------------------------------------------------------------------------------

@test("output: a value, and its base64, in what a command writes becomes stars, however it comes; with an event")
def _(api):
    set_secret(api, "seen", VALUE, "--host", "api.test", "--env", "API_TOKEN")
    box = make(api, "seen")
    box.put("/work/leak", VALUE)
    cases = {
        "cat /work/leak": STARS,
        "echo begin; cat /work/leak; echo end": f"begin\n{STARS}end\n",
        "printf '%s%s' \"$(cat /work/leak)\" \"$(cat /work/leak)\"": STARS * 2,
        # In two writes with a pause; in single bytes; over the border of a read of ours.
        "head -c 20 /work/leak; sleep 0.05; tail -c +21 /work/leak": STARS,
        "python3 -uc 'import sys; [(sys.stdout.write(c), sys.stdout.flush()) for c in open(\"/work/leak\").read()]'": STARS,
        "head -c 65520 /dev/zero | tr '\\0' x; cat /work/leak; echo y": "x" * 65520 + STARS + "y\n",
    }
    for command, want in cases.items():
        got = box.client.get(f"/v1/processes/{box.run(command)[0]['id']}/log").body.decode()
        check(got == want, lambda got=got, command=command: f"{command}: {len(got)} {got[-200:]}")
    for skip in range(3):
        text = base64.b64encode(b"abc"[:skip] + VALUE.encode() + b"tail").decode()
        core = base64.b64encode(VALUE[3:-3].encode()).decode()[4:-8]
        for coded in (text, text.replace("+", "-").replace("/", "_")):
            got = box.run(["printf", "%s", coded])[0]["stdout"]
            check(len(got) == len(coded) and "*" * 40 in got and core not in got, f"{coded}: {got}")
    both = box.run("cat /work/leak >&2")[0]
    same(both["stderr"], STARS)
    told = events(api, "secret.masked", sandbox=box.id)
    check(len(told) >= len(cases) + 7 and all(e["data"]["name"] == "seen" and e["process"] for e in told), told)
    # A terminal, a shell, and the log that is kept.
    process = box.client.execute(box.sandbox, "cat /work/leak", tty=True, wait="10s")
    log = box.client.get(f"/v1/processes/{process['id']}/log").body.decode()
    check(STARS in log and VALUE not in log, log)
    for _ in range(2):
        shell = box.client.execute(box.sandbox, "cat /work/leak", shell="main", wait="10s")
        same(shell["stdout"], STARS)
    # Prompts do not wait.
    begin = time.monotonic()
    box.good("printf 'a prompt: '", "a prompt: ")
    check(time.monotonic() - begin < 1, "slow")
    # Nothing else changes: bytes are bytes.
    noise = random.Random(6).randbytes(3_000_000)
    box.put("/work/noise", noise)
    process = box.client.execute(box.sandbox, "cat /work/noise", wait="20s")
    same(box.client.get(f"/v1/processes/{process['id']}/log").body, noise)
    # Control: a sandbox that does not have it shows what it is given.
    other = make(api)
    other.put("/work/leak", VALUE)
    same(other.run("cat /work/leak")[0]["stdout"], VALUE)
    # Revoked: it is nobody's secret any more.
    caisson(api.daemon, "secret", "rm", "seen")
    wait_until(lambda: box.run("cat /work/leak")[0]["stdout"] == VALUE, 5, "no mask")


if __name__ == "__main__":
    sys.exit(place.main(__file__))
