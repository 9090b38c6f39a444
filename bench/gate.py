"""gate.py - what the gate costs: bytes, connections and requests through it, idle ones, and the start of a
sandbox that has a network.

A part of bench/run. The peer is HAProxy (Debian) in TCP mode, relaying the same between the same two programs
(bench/net.c), by copying and by splicing; the better of the two counts. The client of the gate is inside, that of
HAProxy and of the direct arm on the host.
"""
import contextlib
import json
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import time

import daemon

ROOT = pathlib.Path(__file__).resolve().parent.parent
NET = ROOT / "build/bench/net"
NAME = "bench.test"
READ = "read.test"  # where TLS ends at the gate
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
BULK = 2_000_000_000
ROUNDS = 1000
TURNS = 5
IDLE = 10_000
IDLE_EACH = min(IDLE, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 300)  # of one sandbox: each has two ends

HAPROXY = """
global
    maxconn 1000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen copy
    bind 127.0.0.1:{copy}
    server s 127.0.0.1:{port}
listen splice
    bind 127.0.0.1:{splice}
    option splice-auto
    server s 127.0.0.1:{port}
"""


def build():
    NET.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-o", NET, ROOT / "bench/net.c",
                    "-lssl", "-lcrypto"],
                   check=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_certificate(tmp):
    """For READ, signed by itself: its PEM is what the gate has to trust."""
    pem, key = tmp / "read.crt", tmp / "read.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", f"/CN={READ}", "-addext", f"subjectAltName=DNS:{READ}", "-keyout", key, "-out", pem],
                   check=True, capture_output=True)
    both = tmp / "read.pem"
    both.write_text(pem.read_text() + key.read_text())
    return pem, both


@contextlib.contextmanager
def process(argv, **options):
    p = subprocess.Popen(list(map(str, argv)), text=True, **options)
    try:
        yield p
    finally:
        p.kill()
        p.wait()


def wait_port(port):
    for _ in range(500):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.01)
    raise RuntimeError(f"nobody listens on {port}")


class World:
    """The server, HAProxy in front of it, and a sandbox that may reach it by name."""

    def __init__(self, tmp, stack):
        server = stack.enter_context(process([NET, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        self.port = int(server.stdout.readline())
        bundle, pem = make_certificate(tmp)
        server = stack.enter_context(process([NET, "serve-tls", pem], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        self.tls_port = int(server.stdout.readline())
        self.haproxy = {}
        if shutil.which("haproxy"):
            ports = {"copy": free_port(), "splice": free_port()}
            config = tmp / "haproxy.cfg"
            config.write_text(HAPROXY.format(port=self.port, **ports))
            stack.enter_context(process(["haproxy", "-db", "-q", "-f", config]))
            for port in ports.values():
                wait_port(port)
            self.haproxy = ports
        hosts = tmp / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {NAME} {READ}\n")
        programs = tmp / "net"
        programs.mkdir()
        shutil.copy(NET, programs)
        own = {"/etc/hosts": hosts, **({BUNDLE: bundle} if pathlib.Path(BUNDLE).exists() else {})}
        self.daemon = stack.enter_context(daemon.Daemon(tmp / "gate-daemon", own=own))
        rules = {"allow": [NAME], "cidr": ["127.0.0.0/8"], "http": [{"host": READ, "methods": ["GET"], "paths": ["/bench"]}]}
        self.spec = {"net": rules, "fs": f"ro:{programs}:/opt/net", "limits": {"files": 65536, "mem": "2g"}}
        self.sandbox = self.create()

    def create(self):
        status, made = self.daemon.ask("POST", "/v1/sandboxes", self.spec)
        if status != 201:
            raise RuntimeError(f"a sandbox with a network: {made}")
        return made

    def inside(self, *args, wait=True, sandbox=None):
        body = {"cmd": ["/opt/net/net", *map(str, args)]}
        if not wait:
            body["wait"] = 0
        status, answer = self.daemon.ask("POST", f"/v1/sandboxes/{(sandbox or self.sandbox)['id']}/exec", body)
        if status != 200 or (wait and answer["exit_code"] != 0):
            raise RuntimeError(f"net {args}: {answer}")
        return answer

    def run(self, arm, what, *args):
        """The numbers that bench/net.c prints."""
        name, port = (READ, self.tls_port) if what == "tls" else (NAME, self.port)
        if arm == "gate":
            out = self.inside(what, name, port, *args)["stdout"]
        else:
            port = self.haproxy.get(arm, port)
            out = subprocess.run([NET, what, "127.0.0.1", str(port), *map(str, args)], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        return [float(word) for word in out.split()]

    def arms(self, what=None):
        return ["direct", *(self.haproxy if what != "tls" else ()), "gate"]


def private_kib(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += sum(int(n) for n in re.findall(r"^Private_\w+: +(\d+)", text, re.M))
    return total


def gate_pids(launcher):
    """The gate and its children, of this launcher."""
    parents, names = {}, {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, name, parent = re.match(r"(\d+) \((.*)\) . (\d+)", stat.read_text()).groups()
            parents[int(pid)], names[int(pid)] = int(parent), name
    def is_ours(pid):
        while pid in parents and pid != launcher:
            pid = parents[pid]
        return pid == launcher
    return [pid for pid, name in names.items() if name == "caisson-gate" and is_ours(pid)]


def median(samples):
    return sorted(samples)[len(samples) // 2]


def bulk(world):
    rates = {arm: [] for arm in world.arms()}
    for _ in range(TURNS):
        for arm in rates:
            rates[arm] += world.run(arm, "bulk", BULK)
    return {arm: median(values) for arm, values in rates.items()}


def timed(world, what, *args):
    """Arm -> min, p50, p90, p99 of its quietest turn, in microseconds."""
    result = {}
    for _ in range(TURNS):
        for arm in world.arms(what):
            row = world.run(arm, what, ROUNDS, *args)
            if arm not in result or row[1] < result[arm][1]:
                result[arm] = row
    return result


def hold(world, sandbox, count):
    """So many connections of a sandbox."""
    px = world.inside("idle", NAME, world.port, count, wait=False, sandbox=sandbox)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        log = world.daemon.ask("GET", f"/v1/processes/{px['id']}/log")[1]
        if b"ready" in (log if isinstance(log, bytes) else json.dumps(log).encode()):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{count} connections: {log}")


def idle(world):
    """Of one sandbox, or as many as the descriptors of a process make it."""
    counts = [IDLE_EACH] * (IDLE // IDLE_EACH) + ([IDLE % IDLE_EACH] if IDLE % IDLE_EACH else [])
    sandboxes = [world.create() for _ in counts]
    time.sleep(1)
    before = private_kib(gate_pids(world.daemon.process.pid))
    for sandbox, count in zip(sandboxes, counts):
        hold(world, sandbox, count)
    time.sleep(1)
    after = private_kib(gate_pids(world.daemon.process.pid))
    for sandbox in sandboxes:
        world.daemon.ask("DELETE", f"/v1/sandboxes/{sandbox['id']}")
    return {"connections": IDLE, "sandboxes": len(sandboxes), "gate_kib": after, "kib_each": (after - before) / IDLE}


def start(world, caisson, spawn, rounds):
    """The same run with and without a network, in one run of the harness."""
    env = f"@env=CAISSON_SOCKET={world.daemon.socket}"
    return spawn(rounds, "net: deny", env, caisson, "run", "--net", "deny", "--", "/bin/true",
                 "++", "net: allow list", env, caisson, "run", "--net", f"allow:{NAME}", "--", "/bin/true")


def bench(tmp, caisson, spawn, rounds):
    with contextlib.ExitStack() as stack:
        world = World(tmp, stack)
        result = {"start": start(world, caisson, spawn, rounds), "bulk_mb_s": bulk(world),
                  "connect_us": timed(world, "connect"), "request_us": timed(world, "request"), "tls_us": timed(world, "tls"),
                  "idle": idle(world)}
    show(result)
    return result


def show(r):
    print("through the gate")
    print("  bulk, MB/s (median)            " + "  ".join(f"{arm} {v:.0f}" for arm, v in r["bulk_mb_s"].items()))
    print("  connect, a byte, close, ms     " + "  ".join(f"{arm} {v[1] / 1000:.3f}" for arm, v in r["connect_us"].items()))
    print("  plain HTTP request, kept, ms   " + "  ".join(f"{arm} {v[1] / 1000:.3f}" for arm, v in r["request_us"].items()))
    for i, which in ((1, "p50"), (3, "p99")):
        print(f"  TLS that ends here, kept, {which}    " + "  ".join(f"{arm} {v[i] / 1000:.3f}" for arm, v in r["tls_us"].items()))
    for name, t in r["start"].items():
        print(f"  start, {name:24}{t['p50'] / 1000:.2f} ms" + (f"   {t['failed']} FAILED" if t["failed"] else ""))
    print(f"  {r['idle']['connections']} idle, of {r['idle']['sandboxes']} sandboxes      gate {r['idle']['gate_kib']} KiB, "
          f"{r['idle']['kib_each']:.2f} KiB each")
    print()


def verdicts(r):
    peer = max((r["bulk_mb_s"][arm] for arm in ("copy", "splice") if arm in r["bulk_mb_s"]), default=None)
    rows = []
    if peer:
        rows.append(("bulk, HAProxy / gate", peer / r["bulk_mb_s"]["gate"], round(1 / 0.9, 3)))
    rows.append(("connect through the gate, added ms",
                 (r["connect_us"]["gate"][1] - r["connect_us"]["direct"][1]) / 1000, 0.3))
    rows.append(("request on a kept connection, added ms, p50",
                 (r["request_us"]["gate"][1] - r["request_us"]["direct"][1]) / 1000, 0.2))
    rows.append(("request on a kept connection, added ms, p99",
                 (r["request_us"]["gate"][3] - r["request_us"]["direct"][3]) / 1000, 2))
    for i, which, most in ((1, "p50", 0.2), (3, "p99", 2)):
        rows.append((f"request whose TLS ends at the gate, added ms, {which}",
                     (r["tls_us"]["gate"][i] - r["tls_us"]["direct"][i]) / 1000, most))
    deny, listed = r["start"]["net: deny"], r["start"]["net: allow list"]
    if not deny["failed"] and not listed["failed"]:
        rows.append(("start with an allow-list / net: deny", listed["p50"] / deny["p50"], 1.3))
    return rows
