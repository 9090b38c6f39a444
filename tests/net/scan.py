#!/usr/bin/env python3
"""Secrets that come back in some way: masked in what commands write and in diffs, and found nowhere. TAP.

A value is brought inside by the caller himself (a file that he writes): by design there is no other way, and
what it is looked for in does not care.

    tests/net/scan.py          all (needs root)
    tests/net/scan.py OUTPUT   those with the word in their title
"""
import base64
import json
import pathlib
import random
import shutil
import subprocess
import sys

import place  # before lib, whose folder it knows
import lib
from lib import check, same, test, wait_until
from place import Box, caisson

NET = {"allow": ["api.test"]}
VALUE = f"seen-{random.SystemRandom().randbytes(16).hex()}>>>???"
STARS = "*" * len(VALUE)


TWICE = """
import fcntl, os, struct
def unread(): return struct.unpack("i", fcntl.ioctl(1, 0x541b, bytes(4)))[0]
text = open("/work/leak", "rb").read()
os.write(1, text[:20])
while unread(): pass
os.write(1, text[20:])
"""


def set_secret(api, name, value, *words):
    done = subprocess.run([str(lib.cell.BIN / "caisson"), "secret", "set", name, *words], input=value, text=True, capture_output=True,
                          timeout=100, cwd="/", check=False, env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": str(api.daemon.socket)})
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
        # In two writes, the second when the first was read; over the border of a read of ours.
        f"python3 -c '{TWICE}'": STARS,
        "head -c 65520 /dev/zero | tr '\\0' x; cat /work/leak; echo y": "x" * 65520 + STARS + "y\n",
    }
    for command, want in cases.items():
        got = box.client.get(f"/v1/processes/{box.run(command)[0]['id']}/log").body.decode()
        check(got == want, lambda got=got, command=command: f"{command}: {len(got)} {got[-200:]}")
    # In single bytes. On a machine that is busy the first few may be waited for in vain; never one that a mark tells of.
    slowly = "import sys; [(sys.stdout.write(c), sys.stdout.flush()) for c in open('/work/leak').read()]"
    got = box.run(["python3", "-uc", slowly])[0]["stdout"]
    shown = len(got) - got.count("*")
    check(shown < 8 and got == VALUE[:shown] + STARS[shown:], got)
    for skip in range(3):
        text = base64.b64encode(b"abc"[:skip] + VALUE.encode() + b"tail").decode()
        core = base64.b64encode(VALUE[3:-3].encode()).decode()[4:-8]
        for coded in (text, text.replace("+", "-").replace("/", "_")):
            got = box.run(["printf", "%s", coded])[0]["stdout"]
            check(len(got) == len(coded) and "*" * 40 in got and core not in got, f"{coded}: {got}")
    both = box.run("cat /work/leak >&2")[0]
    same(both["stderr"], STARS)
    told = wait_until(lambda: e if len(e := events(api, "secret.masked", sandbox=box.id)) >= len(cases) + 7 else None, what="events")
    check(all(e["data"]["name"] == "seen" and e["process"] for e in told), told)
    # A terminal, a shell, and the log that is kept.
    process = box.client.execute(box.sandbox, "cat /work/leak", tty=True, wait="80s")
    log = box.client.get(f"/v1/processes/{process['id']}/log").body.decode()
    check(STARS in log and VALUE not in log, log)
    for _ in range(2):
        shell = box.client.execute(box.sandbox, "cat /work/leak", shell="main", wait="80s")
        same(shell["stdout"], STARS)
    # Prompts do not wait.
    prompt = box.client.execute(box.sandbox, "printf 'a prompt: '; sleep 600", wait="0s")
    wait_until(lambda: box.client.get(f"/v1/processes/{prompt['id']}/log").body == b"a prompt: ", what="the prompt")
    box.client.delete(f"/v1/processes/{prompt['id']}")
    # Nothing else changes: bytes are bytes.
    noise = random.Random(6).randbytes(3_000_000)
    box.put("/work/noise", noise)
    process = box.client.execute(box.sandbox, "cat /work/noise", wait="80s")
    same(box.client.get(f"/v1/processes/{process['id']}/log").body, noise)
    # Control: a sandbox that does not have it shows what it is given.
    other = make(api)
    other.put("/work/leak", VALUE)
    same(other.run("cat /work/leak")[0]["stdout"], VALUE)
    # Revoked: it is nobody's secret any more.
    caisson(api.daemon, "secret", "rm", "seen")
    wait_until(lambda: box.run("cat /work/leak")[0]["stdout"] == VALUE, 5, "no mask")


# ---- promotions -------------------------------------------------------------------------------

@test("diffs: a value in what would leave is refused, or masked where a text is shown; with an event")
def _(api):
    set_secret(api, "seen", VALUE, "--host", "api.test", "--env", "API_TOKEN")
    for i in range(34):  # more than one question has room for
        set_secret(api, f"s{i}", f"another value, number {i:04d}", "--host", "api.test")
    work = api.client.ok("PUT", "/v1/workspaces/scan", {})
    path = f"/v1/workspaces/{work['id']}"
    box = Box(api.client, "deny", env=place.PLAIN_ENV, workspace=work["id"])
    who = "-c user.name=a -c user.email=a@example.org"
    box.good(f"cd /work && rm -f ca.pem && git init -q && echo one >one && git add . && git {who} commit -qm one")
    first = box.good("git -C /work rev-parse HEAD")[0]["stdout"].strip()
    folder = pathlib.Path("/run/target")
    folder.mkdir(exist_ok=True)
    for i, (name, text) in enumerate((("seen", VALUE), ("seen", base64.b64encode(b"x" + VALUE.encode()).decode()), ("s33", "another value, number 0033"))):
        before = len(events(api, "secret.masked", workspace=work["id"]))
        api.client.ok("PUT", f"{path}/files/notes.txt", f"token: {text}\n".encode())
        same(api.client.post(f"{path}/commits", {"message": "x"}).code, "denied")
        done = caisson(api.daemon, "apply", work["id"], "--to", folder, "--yes", status=(1, 2, 125))
        check(f'"{name}"' in done.stderr and not (folder / "notes.txt").exists(), done)
        shown = api.client.get(f"{path}/changes?format=patch&base=origin")
        check(shown.status == 200 and b"token: " in shown.body and b"*" * 20 in shown.body and text.encode() not in shown.body, lambda shown=shown: shown)
        box.good(f"cd /work && git add . && git {who} commit -qm two{i}")
        same(api.client.get(f"{path}/export?format=bundle").code, "denied")
        mails = api.client.get(f"{path}/export?format=patch&base={first}")
        check(mails.status == 200 and b"token: " in mails.body and text.encode() not in mails.body, lambda mails=mails: mails)
        told = wait_until(lambda before=before: e if len(e := events(api, "secret.masked", workspace=work["id"])[before:]) >= 5 else None, 5, "events")
        check(all(e["data"]["name"] == name for e in told), told)
        same(sorted((e["data"]["way"], e["data"]["refused"]) for e in told),
             [("bundle", True), ("commit", True), ("patch", False), ("patch", False), ("take", True)])
        box.good("cd /work && git reset -q --hard HEAD~1")
    box.good("cd /work && echo two >>one")
    api.client.ok("POST", f"{path}/commits", {"message": "innocent"})
    caisson(api.daemon, "apply", work["id"], "--to", folder, "--yes")
    same((folder / "one").read_text(), "one\ntwo\n")
    same(api.client.get(f"{path}/export?format=bundle").status, 200)
    shutil.rmtree(folder)
    api.client.delete(f"/v1/sandboxes/{box.id}")
    api.client.delete(f"{path}?force=1")
    for secret in api.client.ok("GET", "/v1/secrets")["secrets"]:
        api.client.delete(f"/v1/secrets/{secret['name']}")


if __name__ == "__main__":
    sys.exit(place.main(__file__))
