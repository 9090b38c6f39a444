"""daemon.py - what the daemon costs: requests on a kept connection, many sandboxes, a restart.

A part of bench/run. Peers: a plain fork+exec in the same run, and `docker exec` with Debian's
docker.io, whose daemon is started here with folders of its own and an image made of the host's /usr.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
API = BUILD / "bench/api"
IDLE = 1000
AT_ONCE = 100
FIELDS = ("min", "p50", "p90", "p99", "mean")
FILE = b"hither and " + b"a line of the file, as long as lines are\n" * 249


def build():
    API.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-static", "-o", API,
                    ROOT / "bench/api.c"], check=True)


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("bench", timeout=120)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Daemon:
    """caisson-launcher with folders of its own."""

    def __init__(self, home, uid=None, own=None, options=()):
        self.home, self.uid, self.own, self.options = pathlib.Path(home), uid, own or {}, options
        self.socket = self.home / "run/api.sock"
        self.connection = Connection(self.socket)
        self.process = None
        self.home.mkdir(parents=True, exist_ok=True)
        if uid is not None:
            os.chown(self.home, uid, uid)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.connection.close()
        self.remove_all()
        self.process.terminate()
        self.process.wait()

    def start(self):
        """Returns the seconds until it answers."""
        begin = time.monotonic()
        who = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.own_files(), BUILD / "caisson-launcher", "--state", self.home / "state", "--run", self.home / "run",
                 *self.options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **who)
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/v1/health")[0] == 200:
                    return time.monotonic() - begin
            if self.process.poll() is not None or time.monotonic() - begin > 60:
                raise RuntimeError((self.home / "log").read_text()[-500:])
            time.sleep(0.002)

    def own_files(self):
        """Files that only this daemon sees, in a mount namespace of its own."""
        binds = "".join(f"mount --bind '{own}' '{path}' && " for path, own in self.own.items())
        return ["unshare", "-m", "sh", "-c", binds + 'exec "$@"', "sh"] if binds else []

    def ask(self, method, path, body=None):
        """(status, JSON or bytes), on a connection that is kept."""
        try:
            self.connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body)
            answer = self.connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            raise
        is_json = "json" in (answer.headers["Content-Type"] or "")
        return answer.status, json.loads(data) if is_json else data

    def sandboxes(self):
        found, cursor = [], ""
        while cursor is not None:
            page = self.ask("GET", f"/v1/sandboxes?limit=1000{cursor}")[1]
            found += page["sandboxes"]
            cursor = page["next"] and f"&cursor={page['next']}"
        return found

    def remove_all(self):
        for s in self.sandboxes():
            self.ask("DELETE", f"/v1/sandboxes/{s['id']}")

    def family(self):
        """Names of its processes by pid: caissond, monitors, inits; parents may have died."""
        found = {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                pid = int(stat.parent.name)
                name, parent = re.match(r"\d+ \((.*)\) . (\d+)", stat.read_text()).groups()
                found[pid] = (name, int(parent), (stat.parent / "cmdline").read_text())
        mine = {pid for pid, (_, _, line) in found.items() if f"\0{self.home / 'run'}" in line and pid != self.process.pid}
        return {pid: name for pid, (name, parent, _) in found.items()
                if pid in mine or (name == "caisson-init" and parent in mine)}


def parse(text):
    rows = {}
    for line in text.splitlines():
        name, failed, *times = line.rsplit(" ", len(FIELDS) + 1)
        rows[name] = {"failed": int(failed), **dict(zip(FIELDS, map(float, times)))}
    return rows


def api(*args):
    return parse(subprocess.run([API, *map(str, args)], check=True, text=True, stdout=subprocess.PIPE).stdout)


def private_kib(pid):
    with contextlib.suppress(OSError):
        lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
    return 0


# ---- docker ----------------------------------------------------------------------------------

def docker_image(tmp):
    """The host's /usr/bin/true with its libraries, as an archive for `docker import`."""
    archive = tmp / "image.tar"
    files = {"/bin/true", "/bin/sleep"}
    for program in list(files):
        text = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        files |= {word for word in text.split() if word.startswith("/")}
    with tarfile.open(archive, "w", dereference=True) as tar:
        for path in sorted(files):
            tar.add(os.path.realpath(path), path.lstrip("/"))
    return archive


class Docker:
    """dockerd with everything in a folder of ours, no network; None of it stays."""

    def __init__(self, tmp):
        self.tmp = tmp / "docker"
        self.tmp.mkdir()
        self.host = ["docker", "-H", f"unix://{self.tmp}/sock"]
        self.process = None

    def start(self):
        """Returns why it cannot be had, or None."""
        if os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("docker"):
            return "not installed (docker.io), or no root"
        log = open(self.tmp / "log", "wb")
        # vfs, if need be: overlay on overlay does not work everywhere, and exec does not care.
        for driver in ("overlay2", "vfs"):
            self.process = subprocess.Popen(
                ["dockerd", "-H", f"unix://{self.tmp}/sock", "--data-root", self.tmp / "data", "--exec-root", self.tmp / "exec",
                 "--pidfile", self.tmp / "pid", "--bridge", "none", "--iptables=false", "--ip6tables=false",
                 "--storage-driver", driver], stdout=log, stderr=log, start_new_session=True)
            if self.wait():
                return None
            self.end()
        words = (self.tmp / "log").read_text(errors="replace").strip().splitlines() or ["no message"]
        return f"dockerd does not start: {words[-1][:200]}"

    def wait(self):
        for _ in range(300):
            if self.process.poll() is not None:
                return False
            if subprocess.run([*self.host, "version"], capture_output=True, check=False).returncode == 0:
                return True
            time.sleep(0.1)
        return False

    def container(self):
        """Its name, or why there is none."""
        archive = docker_image(self.tmp)
        for argv in (["import", archive, "bench"],
                     ["run", "-d", "--name", "bench", "--network", "none", "bench", "/bin/sleep", "3600"]):
            done = subprocess.run([*self.host, *argv], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return None, f"docker {argv[0]}: {(done.stderr.strip().splitlines() or ['?'])[-1][:200]}"
        return "bench", None

    def end(self):
        if self.process and self.process.poll() is None:
            subprocess.run([*self.host, "rm", "-f", "bench"], capture_output=True, check=False)
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def bench_docker(tmp, rounds, spawn):
    """Times of `docker exec`, or the reason why there are none."""
    docker = Docker(tmp)
    try:
        reason = docker.start()
        name = None
        if not reason:
            name, reason = docker.container()
        if reason:
            return None, reason
        program = shutil.which("docker")
        return spawn(rounds, "docker exec", program, *docker.host[1:], "exec", name, "/bin/true")["docker exec"], None
    finally:
        docker.end()


# ---- ours ------------------------------------------------------------------------------------

def bench_requests(daemon, rounds):
    made = daemon.ask("POST", "/v1/sandboxes", {})[1]["id"]
    daemon.ask("PUT", f"/v1/sandboxes/{made}/files/work/bench.txt", FILE)
    rows = api(daemon.socket, rounds, made)
    daemon.ask("DELETE", f"/v1/sandboxes/{made}")
    return rows


def bench_restart(daemon):
    """kill -9 of launcher and daemon; seconds until it answers, and until all are usable again."""
    ours = [pid for pid, name in daemon.family().items() if name == "caissond"]
    daemon.process.kill()
    for pid in ours:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    daemon.process.wait()
    daemon.connection.close()
    begin = time.monotonic()
    answers = daemon.start()
    waiting = [s["id"] for s in daemon.sandboxes()]
    lost, first = 0, len(waiting)
    while waiting:  # asked of every one: nothing is usable before its monitor has told what happened
        name = waiting[-1]
        status, usage = daemon.ask("GET", f"/v1/sandboxes/{name}/usage")
        if status == 200 or status in (404, 409):
            lost += status != 200
            waiting.pop()
    usable = time.monotonic() - begin
    status, process = daemon.ask("POST", f"/v1/sandboxes/{daemon.sandboxes()[0]['id']}/exec", {"cmd": ["/bin/true"]})
    return {"found": first, "lost": lost, "answers_s": answers, "usable_s": usable,
            "exec_ok": status == 200 and process["exit_code"] == 0, "usage": bool(usage)}


def bench_idle(daemon):
    """So many that do nothing: memory of theirs that nobody else has."""
    before = sum(private_kib(pid) for pid, name in daemon.family().items() if name == "caissond")
    begin = time.monotonic()
    failed = 0
    for _ in range(IDLE // AT_ONCE):
        failed += api(daemon.socket, "--at-once", AT_ONCE)["create"]["failed"]
    seconds = time.monotonic() - begin
    kib = {}
    for pid, name in daemon.family().items():
        role = {"caissond": "daemon", "caisson-init": "init"}.get(name, "monitor")
        kib[role] = kib.get(role, 0) + private_kib(pid)
    restart = bench_restart(daemon)
    begin = time.monotonic()
    daemon.remove_all()
    return {"count": IDLE, "failed": failed, "create_s": seconds, "remove_s": time.monotonic() - begin,
            "per_sandbox_kib": (kib.get("monitor", 0) + kib.get("init", 0)) / IDLE, "daemon_kib": kib.get("daemon", 0) - before,
            "restart": restart}


def show(rows):
    print(f"{'':30}" + "".join(f"{f:>8}" for f in FIELDS) + "   / fork+exec")
    base = rows["fork+exec"]["p50"]
    for name, t in rows.items():
        failed = f"   {t['failed']} FAILED" if t["failed"] else ""
        print(f"{name:30}" + "".join(f"{t[f] / 1000:8.2f}" for f in FIELDS) + f"{t['p50'] / base:10.2f}{failed}")


def bench(daemon, tmp, rounds, spawn):
    """All of it, with its tables. `spawn` is the harness of bench/run."""
    daemon.connection.close()  # an idle one is not kept for ever
    result = {"requests_us": bench_requests(daemon, rounds)}
    rows = dict(result["requests_us"])
    docker, reason = bench_docker(tmp, max(20, rounds // 10), spawn)
    if docker:
        rows["docker exec"] = result["docker_exec_us"] = docker
    result["docker_absent"] = reason
    print(f"requests on a kept connection, {rounds} rounds of all in one run, ms")
    show(rows)
    if reason:
        print(f"{'docker exec':30}  {reason}")
    result["at_once_us"] = api(daemon.socket, "--at-once", AT_ONCE)["create"]
    daemon.remove_all()
    t = result["at_once_us"]
    print(f"\n{AT_ONCE} creates at once: p50 {t['p50'] / 1000:.1f} ms, p99 {t['p99'] / 1000:.1f} ms, {t['failed']} failed")
    idle = result["idle"] = bench_idle(daemon)
    restart = idle["restart"]
    print(f"{idle['count']} idle sandboxes, made in {idle['create_s']:.1f} s: {idle['per_sandbox_kib']:.0f} KiB private each, "
          f"daemon {idle['daemon_kib']} KiB for all; {idle['failed']} failed; removed in {idle['remove_s']:.1f} s")
    print(f"restart with them: answers after {restart['answers_s']:.2f} s, all usable after {restart['usable_s']:.2f} s, "
          f"{restart['lost']} lost of {restart['found']}\n")
    return result


def verdicts(result):
    """(what, figure, budget); a row with failures judges nothing."""
    rows, r = [], result["requests_us"]
    if not r["exec"]["failed"]:
        rows.append(("exec in a live sandbox, p50 / fork+exec", r["exec"]["p50"] / r["fork+exec"]["p50"], 3))
        if result.get("docker_exec_us") and not result["docker_exec_us"]["failed"]:
            # "at least 25 times faster", as something that must not be exceeded
            rows.append(("exec in a live sandbox x 25 / docker exec", 25 * r["exec"]["p50"] / result["docker_exec_us"]["p50"], 1))
    for name in ("read", "edit"):
        if not r[name]["failed"]:
            rows.append((f"file {name}, 10 KiB, p50, ms", r[name]["p50"] / 1000, 0.5))
    if not result["at_once_us"]["failed"]:
        rows.append((f"{AT_ONCE} creates at once, p99 / single p50", result["at_once_us"]["p99"] / r["create"]["p50"], 20))
    rows.append((f"{AT_ONCE} creates at once, failed", result["at_once_us"]["failed"], 0))
    idle = result["idle"]
    rows += [(f"{IDLE} idle sandboxes, private KiB each", idle["per_sandbox_kib"], 1024), ("of them, failed", idle["failed"], 0),
             ("restart with them until all are usable, s", idle["restart"]["usable_s"], 2), ("of them, lost", idle["restart"]["lost"], 0)]
    return rows
