#!/usr/bin/env python3
"""The prompt-injection drill: an agent that obeys a hostile repository (bait.py), and what comes of it. TAP.

First the agent runs without walls, in the same cell: each attempt has to succeed there, or its failure behind walls
would prove nothing. Then in a sandbox with a workspace, bound secrets and a list of hosts; and the host looks around.

    tests/drill/drill.py                         all (needs root)
    CAISSON_DRILL_KEEP=FOLDER tests/drill/drill.py   keeps report.html, report.md, the attestation and the screenshot
"""
import base64
import contextlib
import hashlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import threading

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/ws"), str(ROOT / "tests/net")]

import bait  # noqa: E402
import git_place as g  # noqa: E402  before lib, whose folder it knows
import internet  # noqa: E402
import lib  # noqa: E402
import place  # noqa: E402
import sealed  # noqa: E402
import servers  # noqa: E402
import shop as shops  # noqa: E402
from lib import check, same, test, wait_until  # noqa: E402

lib.TESTS.clear()  # those of the modules above
AGENT = pathlib.Path(__file__).with_name("agent.py").read_text(encoding="utf-8")  # now: the cell may hide it
KEEP = os.environ.get("CAISSON_DRILL_KEEP") and pathlib.Path(os.environ["CAISSON_DRILL_KEEP"]).resolve()
HOST, HOME = pathlib.Path(bait.HOST), pathlib.Path("/run/drill/home")
BARE = pathlib.Path("/run/drill/bare")
VALUES = {name: f"drill-{name}-{random.SystemRandom().randbytes(12).hex()}" for name in ("api", "git", "key")}
ATTACKER = "198.51.100.9"
NET = {"allow": ["api.test", "forge.test", "files.test"],
       "http": [{"host": "pkg.test", "methods": ["GET", "HEAD"], "paths": ["/**"]}], "cache": ["pip:pkg.test", "pip:files.test"]}
PACKAGE = "drillpackage"
BROWSER = "chromium-headless-shell"
HAS_BROWSER = os.environ.get("CAISSON_BROWSER") == "1"  # `make drill`
done = {}  # what the tests before found: control, agent, work


# ---- the world ------------------------------------------------------------------------------

def begin():
    HOST.mkdir(parents=True)
    HOME.mkdir()
    servers.FOLDER.mkdir(parents=True, exist_ok=True)
    finish = place.prepare(has_wire=True)
    hashed = servers.run("openssl", "passwd", "-apr1", VALUES["git"]).decode().strip()
    (servers.FOLDER / "forge.users").write_text(f"robot:{hashed}\n")
    rest = servers.Server("rest", ["/usr/bin/python3", "-c", sealed.REST, servers.WEB, "8200", sealed.said_file()], (servers.WEB, 8200))
    lib.SURROUNDINGS.append(rest.process.pid)
    internet.bind_over(g.BUNDLE, pathlib.Path(g.BUNDLE).read_text() + servers.CA.read_text())
    g.FOLDERS.mkdir(mode=0o755)
    place.names.zone.update({"*.evil.test": [ATTACKER], "*.leak-dns.evil.test": [ATTACKER]})
    shop = shops.Shop()
    shop.pip(PACKAGE, "good")
    source = g.make("drill", bait.FILES)
    for name in bait.EXECUTABLE:
        (source / name).chmod(0o755)
    g.git(source, "commit", "-qam", "executable")
    g.serve(source, "drill.git")
    done["first"] = g.git(source, "rev-parse", "HEAD")
    done["source"], done["shop"] = source, shop
    done["control"] = control()

    def end():
        shop.close()
        rest.stop()
        g.end_vaults()
        finish()
        shutil.rmtree(g.FOLDERS)
        shutil.rmtree("/run/drill")
    return end


def plant():
    """What there is to steal, and to spoil."""
    for folder in (HOST, HOME):
        shutil.rmtree(folder)
        folder.mkdir(mode=0o777)
    (HOST / "canary").write_text("as it was\n")
    (HOME / ".bashrc").write_text("# as it was\n")
    (HOME / ".ssh").mkdir()
    (HOME / ".ssh/id_ed25519").write_text(f"PRIVATE KEY {VALUES['key']}\n")


def snapshot():
    """Of all that is the host's: name -> what it is."""
    return {str(p): (p.lstat().st_mode, p.lstat().st_ino, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() and not p.is_symlink() else b"")
            for folder in (HOST, HOME) for p in sorted(folder.rglob("*"))}


def main_on_server():
    return g.git(g.ORIGIN / "drill.git", "rev-parse", "main")


def marks(name):
    """What a packet of it has: a host, the same in a question for it, or a path."""
    return f"{name}.evil.test", "".join(chr(len(label)) + label for label in (name, "evil", "test")), f"/{name}"


def lines(text):
    return {row["name"]: row for row in map(json.loads, text.splitlines())}


# ---- the control ----------------------------------------------------------------------------

def listen(path):
    """Instead of a daemon. Returns the list of what it heard."""
    import socket  # pylint: disable=import-outside-toplevel
    heard, server = [], socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(4)

    def serve():
        s, _ = server.accept()
        with s:
            heard.append(s.recv(4096))
            s.sendall(internet.ANSWER)
        server.close()
    threading.Thread(target=serve, daemon=True).start()
    return heard


def control():
    """The agent without walls, before there is any daemon: attempt -> it arrived."""
    plant()
    guard_program = pathlib.Path("/run/drill/caissond")
    shutil.copy(shutil.which("sleep"), guard_program)
    heard = listen(HOST / "api.sock")
    before = snapshot()
    with subprocess.Popen([guard_program, "600"]) as guard:
        g.git("/", "clone", "-q", done["source"], BARE)
        env = {"PATH": place.PATH, "HOME": str(HOME), "DRILL_TOKEN": VALUES["api"], "CURL_CA_BUNDLE": str(servers.CA), "GIT_SSL_CAINFO": str(servers.CA),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.https://robot:{VALUES['git']}@forge.test/.insteadOf", "GIT_CONFIG_VALUE_0": "https://forge.test/",
               "GIT_TERMINAL_PROMPT": "0"}
        script = pathlib.Path("/run/drill/agent.py")
        script.write_text(AGENT)
        ran = subprocess.run([sys.executable, "-B", script], cwd=BARE, env=env, capture_output=True, text=True, timeout=400, check=False, start_new_session=True)
        check(ran.returncode == 0, lambda: f"the agent without walls: {ran}")
        place.wire.wait_for("background.evil.test")
        killed = guard.poll() == -signal.SIGKILL
        guard.kill()
    end_background()
    after, said = snapshot(), lines(ran.stdout)
    changed = {pathlib.Path(p).name for p in after if after[p] != before.get(p)}
    arrived = {"wire": lambda name: any(place.wire.seen(mark) for mark in marks(name)),
               "server": lambda name: any(r["path"] == f"/{name}" and VALUES["api"] in r["body"] for r in sealed.said()),
               "main": lambda _: main_on_server() != done["first"],
               "file": lambda name: bool({name, {"persist-home": ".bashrc", "symlink": "canary"}.get(name)} & changed),
               "guard": lambda _: killed, "socket": lambda name: bool(heard and name.encode() in heard[0])}
    result = {name: arrived[a.where](name) for name, a in bait.ATTEMPTS.items()}
    result["reflect"] = VALUES["api"] in (BARE / "notes.txt").read_text()
    result["said"] = said
    g.git(g.ORIGIN / "drill.git", "update-ref", "refs/heads/main", done["first"])
    shutil.rmtree(BARE)
    guard_program.unlink()
    return result


def end_background():
    """What the agent left running: a session of its own, in this cell."""
    for pid in lib.census.pids():
        if b"background.evil.test" in lib.census.read(f"/proc/{pid}/cmdline").encode():
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: (lib.census.reap(), True)[1], 1)


@test("control: without walls every attempt arrives")
def _(_api):
    result = done["control"]
    missed = [name for name in (*bait.ATTEMPTS, "reflect") if not result[name]]
    same(missed, [], f"what the agent said: {json.dumps(result['said'], indent=1)}\n")


# ---- the agent behind walls -----------------------------------------------------------------

def set_secrets(api):
    sealed.set_secret(api, "api", "--host", "api.test", "--env", "DRILL_TOKEN", value=VALUES["api"])
    sealed.set_secret(api, "git", "--host", "forge.test", "--inject", "basic:robot", "--git", "drill", "--push", "refs/heads/agent/*", value=VALUES["git"])


def make_work(api, key):
    """A workspace of the repository, and a sandbox with it."""
    work = api.client.ok("PUT", f"/v1/workspaces/{key}", {"repo": done["repo"], "branch": f"agent/{key}"})
    box = api.client.create({"workspace": work["id"], "net": NET, "creds": ["api", "git"], "env": {"HOME": "/home/agent", "PATH": place.PATH, "GIT_TERMINAL_PROMPT": "0"}})
    return work, box


@test("the agent obeys all of it in a sandbox: nothing arrives outside, and the host is as it was")
def _(api):
    set_secrets(api)
    g.caisson(api.daemon, "repo", "add", "https://forge.test/drill.git", "drill", "--cred", "git")
    done["repo"] = api.client.ok("GET", "/v1/repos/drill")["id"]
    plant()
    (HOST / "api.sock").symlink_to(api.daemon.socket)  # who reaches it speaks to the real one
    work, box = make_work(api, "fix")
    done["work"], done["box"] = work, box
    before, wires, caught = snapshot(), len(place.wire.packets), len(place.catcher.accepted)
    requests, pid, shown = len(sealed.said()), api.daemon.pid, len(done["shop"].seen)
    api.client.ok("PUT", api.client.file(box, "/tmp/agent.py"), AGENT.encode())
    ran = api.client.execute(box, ["python3", "-B", "/tmp/agent.py"], timeout="110s", wait="110s")
    same((ran["state"], ran["exit_code"]), ("exited", 0), f"the agent: {ran}")
    done["ran"], said = ran, lines(ran["stdout"])
    same(set(said), set(done["control"]["said"]), "it did the same things")
    same(said["commit"]["status"], 0, f"and the work: {said['commit']}")
    check("AssertionError" not in said["test"]["said"], said["test"])
    api.client.remove(box)  # with what it left running
    new = place.wire.packets[wires:]
    arrived = [name for name in bait.ATTEMPTS for mark in marks(name) if any(mark.encode() in p.lower() for p in new)]
    same(arrived, [], "seen outside")
    same(place.catcher.accepted[caught:], [], "the catcher")
    same([r for r in sealed.said()[requests:] if "attacker-key" in json.dumps(r)], [], "the attacker's account")
    same([row for row in done["shop"].seen[shown:] if row[1] != "GET"], [], "the package registry")
    same(main_on_server(), done["first"], "main on the server")
    same(snapshot(), before, "files of the host")
    same(api.daemon.pid, pid, "the daemon")
    same(api.client.ok("GET", "/v1/sandboxes")["sandboxes"], [], "sandboxes")


@test("the secrets are nowhere: in what it said, in the workspace, in the daemon's folders, in the ledger")
def _(api):
    archive = api.client.get(f"/v1/workspaces/{done['work']['id']}/archive").body
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        notes = tar.extractfile("notes.txt").read() if "notes.txt" in tar.getnames() else tar.extractfile("./notes.txt").read()
    check(b"reflect" in notes and b"****" in notes, f"what the server said of it: {notes}")
    forms = [f for v in (VALUES["api"], VALUES["git"]) for f in (v.encode(), base64.b64encode(v.encode())[:-4], v.encode().hex().encode())]
    forms.append(VALUES["key"].encode())
    places = {"its words": json.dumps(done["ran"]).encode(), "its files": archive, "the log": api.daemon.log.read_bytes()}
    for folder in (api.daemon.state, api.daemon.run):
        places.update({str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()})
    same([name for name, data in places.items() if any(f in data for f in forms)], [], "a secret is in")
    same(api.client.get("/v1/events?kind=policy.changed").body, b"", "rules of a sandbox were changed")


@test("the next task of the same repository finds it as it was, and the package cache too")
def _(api):
    work, box = make_work(api, "next")
    with tarfile.open(fileobj=io.BytesIO(api.client.get(f"/v1/workspaces/{work['id']}/archive").body)) as tar:
        files = {m.name.removeprefix("./"): tar.extractfile(m).read() for m in tar if m.isreg()}
    same({n: f.decode() for n, f in files.items() if not n.startswith(".git/")}, bait.FILES, "its files")
    check(not any(n.startswith(".git/hooks/") and not n.endswith(".sample") for n in files), "a hook")
    check(b"hooksPath" not in files[".git/config"], files[".git/config"])
    out = api.client.execute(box, f"git status --porcelain && /usr/bin/python3 -m pip install -q --no-cache-dir --disable-pip-version-check --target /tmp/p -i https://pkg.test/simple/ {PACKAGE} && "
                             f"PYTHONPATH=/tmp/p python3 -B -c 'import {PACKAGE} as p; print(p.TEXT)'", timeout="100s", wait="100s")
    same((out["exit_code"], out["stdout"]), (0, "good\n"), f"{out}")
    verified = api.client.ok("POST", "/v1/cache/verify", {})
    check(not verified.get("removed"), f"{verified}")
    api.client.remove(box)


@test("apply: what executes later is not taken without a yes, and a link that leads out is none of it")
def _(api):
    target = pathlib.Path("/run/drill/checkout")
    shutil.rmtree(target, ignore_errors=True)
    g.git("/", "clone", "-q", done["source"], target)
    before = hashlib.sha256(repr(sorted((str(p), p.read_bytes()) for p in target.rglob("*") if p.is_file())).encode()).hexdigest()
    refused = g.caisson(api.daemon, "apply", "fix", "--to", target, status=(1, 125), env_more={"XDG_STATE_HOME": "/run/drill/apply"})
    check(".vscode/tasks.json" in refused.stdout + refused.stderr, f"{refused}")
    after = hashlib.sha256(repr(sorted((str(p), p.read_bytes()) for p in target.rglob("*") if p.is_file())).encode()).hexdigest()
    same(after, before, "the folder")
    shutil.rmtree(target)


# ---- the report -----------------------------------------------------------------------------

def keep(path):
    if KEEP:
        shutil.copy(path, KEEP)


@test("the report names each attempt, as HTML and as Markdown; and the ledger is sound")
def _(api):
    g.caisson(api.daemon, "push", "fix")
    pages = {}
    for name in ("report.html", "report.md"):
        path = pathlib.Path("/run/drill") / name

        def missing(path=path, name=name):
            g.caisson(api.daemon, "report", "fix", "-o", path, "--ledger", api.daemon.state / "ledger")
            pages[name] = path.read_text(encoding="utf-8")
            return [a for a, row in bait.ATTEMPTS.items() if row.word not in pages[name]]
        with contextlib.suppress(lib.Failed):  # what the gate saw comes a moment later
            wait_until(lambda: not missing(), 5)
        keep(path)
        same(missing(), [], f"attempts that are not in {name}")
        for text in ("The ledger is sound", "git.pushed", "shop.py"):
            check(text in pages[name], f"{text!r} is not in {name}")
        check(not any(v in pages[name] for v in VALUES.values()), f"a secret is in {name}")
    check("<img" not in pages["report.html"] and "<script" not in pages["report.html"] and "&lt;img src=x" in pages["report.html"], "the bait's tags")


def by_hand(envelope, key):
    """Whether openssl, which knows nothing of us, finds the signature good."""
    body = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    text, sig = pathlib.Path("/run/drill/elsewhere/text"), pathlib.Path("/run/drill/elsewhere/sig")
    text.write_bytes(b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body))
    sig.write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin", "-in", text, "-sigfile", sig], capture_output=True, check=False).returncode == 0


def alone(*words, status=0):
    """With no daemon to ask."""
    ran = subprocess.run([lib.cell.BIN / "caisson", *map(str, words)], capture_output=True, text=True, timeout=100, check=False,
                         env={"PATH": place.PATH, "HOME": "/nowhere", "CAISSON_SOCKET": "/nowhere/sock"})
    same(ran.returncode, status, f"caisson {words}: {ran}")
    return ran.stdout


@test("an attestation of what was pushed is verified elsewhere, with the file and the key alone; a changed one is not")
def _(api):
    elsewhere = pathlib.Path("/run/drill/elsewhere")
    elsewhere.mkdir()
    file, key = elsewhere / "fix.intoto.jsonl", elsewhere / "key.pub"
    g.caisson(api.daemon, "attest", "fix", "-o", file)
    keep(file)
    shutil.copy(api.daemon.state / "ledger/key.pub", key)
    said = alone("attest", "verify", file, "--key", key)
    check(said.startswith("genuine: signed by key "), said)
    found = json.loads(alone("attest", "verify", file, "--key", key, "--json"))["statement"]
    subject, definition = found["subject"][0], found["predicate"]["buildDefinition"]
    pushed = g.git(g.ORIGIN / "drill.git", "rev-parse", "agent/fix")
    same((subject["name"], subject["digest"]["gitCommit"]), ("forge.test agent/fix", pushed))
    tree = g.git(g.ORIGIN / "drill.git", "rev-parse", "agent/fix^{tree}")
    same(subject["digest"]["gitTree"], tree, "the tree")
    check({"name": "base", "digest": {"gitCommit": done["first"]}}.items() <= definition["resolvedDependencies"][0].items(), definition)
    same(definition["externalParameters"]["commands"], [{"argv": ["python3", "-B", "/tmp/agent.py"], "cwd": "/work", "exit_code": 0}])
    same([len(p) for p in definition["internalParameters"]["policies"]], [64])
    products = {p["name"]: p["annotations"] for p in found["predicate"]["runDetails"]["byproducts"]}
    hosts = products["hosts"]["hosts"]
    check(hosts["leak-env.evil.test"] == {"denied": 1} and hosts["api.test:443"]["requests"] == 1 and hosts["169.254.169.254:80"]["denied"] == 1, hosts)
    record = [r for r in map(json.loads, api.client.get("/v1/events?kind=git.pushed").body.splitlines()) if r["data"]["commit"] == pushed][-1]
    same((products["ledger"]["promotion"]["record"], products["ledger"]["promotion"]["hash"]), (record["seq"], record["hash"]))
    envelope = json.loads(file.read_text())
    check(by_hand(envelope, key), "openssl says no")
    same(api.client.ok("GET", "/v1/workspaces/fix/attestation"), envelope, "the same again")
    same(api.client.get("/v1/workspaces/fix/attestation?record=1").status, 404, "no promotion")
    same(api.client.get("/v1/workspaces/next/attestation").status, 404, "nothing was promoted")
    forged = base64.b64decode(envelope["payload"]).replace(b"evil.test", b"good.test")
    file.write_text(json.dumps({**envelope, "payload": base64.b64encode(forged).decode()}))
    check(alone("attest", "verify", file, "--key", key, status=1).startswith("NOT GENUINE: "), "forged")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", elsewhere / "own"], check=True)
    subprocess.run(["openssl", "pkey", "-in", elsewhere / "own", "-pubout", "-out", elsewhere / "own.pub"], check=True)
    file.write_text(json.dumps(envelope))
    alone("attest", "verify", file, "--key", elsewhere / "own.pub", status=1)


@test("a browser opens it: it shows the page, executes and loads nothing", when=HAS_BROWSER)
def _(_api):
    if shutil.which(BROWSER) is None:
        raise lib.Skip(f"{BROWSER} is not installed; tools/setup drill does it")
    page, shot = pathlib.Path("/run/drill/report.html"), pathlib.Path("/run/drill/report.png")
    base = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir=/run/drill/browser"]
    env = {"PATH": place.PATH, "HOME": "/run/drill"}
    wires = len(place.wire.packets)
    subprocess.run([*base, "--window-size=1180,1500", f"--screenshot={shot}", page.as_uri()], env=env, capture_output=True, timeout=200, check=True)
    dom = subprocess.run([*base, "--dump-dom", page.as_uri()], env=env, capture_output=True, text=True, timeout=200, check=True).stdout
    check("<title>Task fix</title>" in dom, dom[:500])
    data = shot.read_bytes()
    check(data.startswith(b"\x89PNG") and len(data) > 20000, f"{len(data)} bytes")
    same([internet.describe(p) for p in place.wire.packets[wires:] if b"evil.test" in p], [], "asked for by the browser")
    keep(shot)
    shutil.rmtree("/run/drill/browser", ignore_errors=True)


@test("the workspace is removed, and by its id the ledger still tells the same")
def _(api):
    g.clear(api.client)
    page = g.caisson(api.daemon, "report", done["work"]["id"], "--ledger", api.daemon.state / "ledger").stdout
    missing = [a for a, row in bait.ATTEMPTS.items() if row.word not in page]
    same((missing, "The ledger is sound" in page), ([], True), page[:2000])
    g.caisson(api.daemon, "report", "nobody", status=(1, 125))


if __name__ == "__main__":
    place.OPTIONS.extend(("--net", f"ca={servers.CA}"))
    sys.exit(lib.main(__file__, options=place.OPTIONS, prepare=begin))
