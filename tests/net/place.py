"""place.py - sandboxes with rules for the network, in a cell that has a world of its own around it.

A program of this folder calls main() as those of tests/api do; its tests get the same Api. It can be
told to leave out what is heavy: PostgreSQL, Verdaccio, Node, npm, Java, Go, Cargo (make check-gate has them).
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/api"), str(ROOT / "tests/mcp")]

import lib  # noqa: E402
import servers  # noqa: E402
import internet  # noqa: E402
from lib import Skip, check  # noqa: E402

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson", "caisson-gate", "caisson-cache")
HAS_MORE = os.environ.get("CAISSON_NET_MORE") == "1"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/go/bin"
GRANT = "127.0.0.0/8"  # where the servers are: special, so the operator has to say that names may lead there
OPTIONS = ["--net", f"grant={GRANT}", "--net", "ask=1s"]  # of every daemon here
ROLES = ("root", "user")
AT_ONCE = 4.5   # seconds, with the start of a client, on a busy machine: whoever waits for a name in vain waits longer
users = []      # the daemon of an ordinary user, once it is wanted
names = None    # internet.Names
wire = None     # internet.Wire, when the program wants one
catcher = None  # internet.Catcher


def prepare(has_servers=True, has_wire=False):
    """The world. Returns what ends it."""
    global names, wire, catcher  # pylint: disable=global-statement
    internet.open_wide()
    internet.bind_over("/etc/resolv.conf", f"nameserver {internet.DNS_ADDRESS}\noptions timeout:10 attempts:2\n")
    internet.bind_over("/etc/hosts", f"127.0.0.1 localhost\n{servers.WEB} filed.test\n")
    names = internet.Names(servers.ZONE)
    started = servers.start(ROOT, HAS_MORE) if has_servers else []
    lib.SURROUNDINGS += [server.process.pid for server in started]
    catcher = internet.Catcher()  # now: it would answer for a server that did not start
    wire = internet.Wire() if has_wire else None

    def finish():
        if users:
            client_of(None, "user").remove_all()
            users.pop().stop()
        for server in reversed(started):
            server.stop()
        if wire:
            wire.close()
        check_logs()
    return finish


def check_logs():
    """What a sanitizer said, when the programs have one (CAISSON_BUILD)."""
    for log in lib.HOME.glob("*/log"):
        text = log.read_text(errors="replace")
        at = max(text.find("AddressSanitizer"), text.find("runtime error:"))
        check(at < 0, lambda text=text, at=at: text[max(0, at - 500):at + 4000])


def main(file, has_servers=True, has_wire=False, seconds=lib.PROGRAM_SECONDS, begin=None):
    """begin: instead of prepare(), which it calls."""
    if has_servers:  # the gate has to believe them when it reads their TLS; nobody inside does
        OPTIONS.extend(("--net", f"ca={servers.CA}"))
    return lib.main(file, seconds=seconds, options=OPTIONS, prepare=begin or (lambda: prepare(has_servers, has_wire)))


def daemon_of(api, role):
    if role == "root":
        return api.daemon
    if not users:
        users.append(lib.Daemon("user", uid=lib.USER_ID, options=OPTIONS).start())
    return users[0]


def client_of(api, role):
    return api.client if role == "root" else daemon_of(api, role).client()


def need(*programs):
    for program in programs:
        if shutil.which(program, path=PATH) is None:
            raise Skip(f"{program} is not installed; make check-gate does it")


def caisson(daemon, *words, status=0, **options):
    """The command; its exit status is checked, or one of several."""
    who = {} if daemon.uid is None else {"user": daemon.uid, "group": daemon.uid, "extra_groups": []}
    done = subprocess.run([str(lib.cell.BIN / "caisson"), *map(str, words)], capture_output=True, text=True, timeout=100, cwd="/",
                          env={"PATH": PATH, "HOME": "/nowhere", "XDG_STATE_HOME": str(lib.HOME / "apply"), "CAISSON_SOCKET": str(daemon.socket)},
                          stdin=subprocess.DEVNULL, check=False, **who, **options)
    check(done.returncode in (status if isinstance(status, tuple) else (status,)), lambda: f"caisson {' '.join(map(str, words))}: {done}")
    return done


def wait_end(client, process, seconds=lib.PATIENCE):
    """Of a process that was started and not waited for; with its output."""
    path = f"/v1/processes/{process['id']}"
    done = lib.wait_until(lambda: p if (p := client.ok("GET", path))["state"] == "exited" else None, seconds, "the end of a process")
    return {**done, "stdout": client.get(f"{path}/log").body.decode(errors="replace"), "stderr": ""}


class Box:
    """A sandbox, its rules, and what came of them."""

    # What tells each client which authority to trust. There is no proxy in it.
    ENV = {"SSL_CERT_FILE": "/work/ca.pem", "CURL_CA_BUNDLE": "/work/ca.pem", "GIT_SSL_CAINFO": "/work/ca.pem",
           "NODE_EXTRA_CA_CERTS": "/work/ca.pem", "REQUESTS_CA_BUNDLE": "/work/ca.pem", "PIP_CERT": "/work/ca.pem",
           "PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
           "GIT_TERMINAL_PROMPT": "0", "HOME": "/work", "PATH": PATH}

    def __init__(self, client, net, **spec):
        self.client = client
        self.sandbox = client.create({"net": net, **{"env": self.ENV, **spec}})
        self.id = self.sandbox["id"]
        self.put("/work/ca.pem", servers.CA.read_bytes())

    def put(self, path, data):
        answer = self.client.put(self.client.file(self.sandbox, path), data if isinstance(data, bytes) else data.encode())
        check(answer.status < 300, f"put {path}: {answer}")

    def run(self, command, seconds=80, **options):
        """(process, seconds it took)"""
        begin = time.monotonic()
        process = self.client.execute(self.sandbox, command, timeout=f"{seconds}s", wait=f"{seconds + 5}s", **options)
        return process, time.monotonic() - begin

    def good(self, command, expected="", **options):
        process, took = self.run(command, **options)
        check(process["exit_code"] == 0 and expected in process["stdout"],
              lambda: f"{command}\n{summary(process)}\n{self.shown()}")
        return process, took

    def bad(self, command, seconds_max=AT_ONCE, **options):
        process, took = self.run(command, **options)
        check(process["exit_code"] not in (0, None), lambda: f"it worked: {command}\n{summary(process)}\n{self.shown()}")
        check(took < max(seconds_max, AT_ONCE), lambda: f"it failed only after {took:.1f} s: {command}\n{summary(process)}\n{self.shown()}")
        return process, took

    def records(self, true_when=None, seconds=lib.PATIENCE, **query):
        """All that came, or those for which it is true: at least one, after a moment."""
        deadline = time.monotonic() + seconds
        words = "&".join(["limit=1000", *(f"{k}={v}" for k, v in query.items())])
        while True:
            rows = self.client.ok("GET", f"/v1/sandboxes/{self.id}/connections?{words}")["connections"]
            found = [row for row in rows if true_when is None or true_when(row)]
            if found or true_when is None or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

    def records_of(self, n, true_when=lambda r: r["kind"] == "connection"):
        """So many at least, of connections unless something else is said; they come a moment after."""
        return lib.wait_until(lambda: found if len(found := self.records(true_when, 0)) >= n else None, what=f"{n} records")

    def shown(self):
        """Its records, for a message."""
        keys = ("kind", "name", "dst", "port", "proto", "sni", "decision", "reason", "rule", "close", "path", "status", "cache")
        rows = self.records()
        return "\n".join(json.dumps({k: row[k] for k in keys if row.get(k)}) for row in rows[-20:]) or "no records"

    def remove(self):
        self.client.remove(self.sandbox)


PLAIN_ENV = {key: value for key, value in Box.ENV.items() if value != "/work/ca.pem"}  # nothing says whom to trust


def summary(process):
    return (f"exit {process['exit_code']}, {process.get('state')} {process.get('reason') or ''}\n"
            f"{process['stdout'][-1500:]}\n{process['stderr'][-1500:]}")


def outside(command, seconds=80, **env):
    """The same in the cell itself: whether the server is to blame."""
    place = internet.FOLDER / "outside"
    place.mkdir(exist_ok=True)
    shutil.copy(servers.CA, place / "ca.pem")
    words = command if isinstance(command, list) else ["sh", "-c", command]
    text = {k: v.replace("/work", str(place)) for k, v in {**Box.ENV, **env}.items()}
    return subprocess.run([w.replace("/work", str(place)) for w in words], env=text, cwd=place, timeout=seconds,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
