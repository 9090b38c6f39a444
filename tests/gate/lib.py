"""lib.py - the gate alone: a box (box.py), a world (world.py), and between them `caisson-gate` as its
monitor and its launcher see it.

A program of this folder runs itself again in user, network, mount and pid namespaces of its own, so it
needs no rights and leaves nothing. There it plays launcher and monitor: it sends the gate's master one
end of a socket pair and talks wire/gate.h by the other.
"""
import array
import contextlib
import json
import os
import pathlib
import resource
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD", HERE.parent.parent / "build"))

PATIENCE = 40   # seconds for what takes a moment when nobody else is there
AT_ONCE = 4.5   # the same, and less than who waits for a name in vain

START, RULES, CREDIT, ANSWER, UP, CA, RULED, RECORD, ASK, UNASK, KEY, MARKS, LOOK = range(13)
KINDS = ["opened", "closed", "lookup", "request"]
DECISIONS = ["allow", "deny", "ask_deny", "ask_allow"]
REASONS = ["none", "no_rule", "rule", "literal", "name_mismatch", "no_sni", "protocol", "special", "metadata", "unresolved", "unreachable",
           "budget", "spool", "ask_timeout", "ask_denied", "ask_full", "reloaded", "name_bad", "http_rule", "http_bad", "tls", "silent", "offline",
           "credential", "git", "reflected", "canary"]
PROTOS = ["unknown", "tls", "http", "ssh", "tcp", "dns"]
BY = ["nobody", "client", "server", "gate"]
CONTENT_FORM = "Q72s72sBB6x"
RECORD_FORM = "=QQQqQQQIIIIIHHBBBB16s16sII254s254s32s16s512s288s72s" + CONTENT_FORM
RECORD_FIELDS = ("seq request ask unix_ms bytes_up bytes_down ms kind decision reason proto generation port src_port is_v6 is_terminated close_by cache "
                 "dst real status count name sni alpn method path rule secret "
                 "body_bytes query_hash body_hash is_partial is_stream").split()


class Failed(Exception):
    """A check that did not hold."""


def check(is_true, text=""):
    if not is_true:
        raise Failed(text() if callable(text) else str(text))


def same(got, expected, what=""):
    check(got == expected, lambda: f"{what}: {got!r}, expected {expected!r}")


def text_of(b):
    return b.split(b"\0")[0].decode()


class Record(dict):
    __getattr__ = dict.get


def read_record(body):
    r = Record(zip(RECORD_FIELDS, struct.unpack(RECORD_FORM, body)))
    for field, words in (("kind", KINDS), ("decision", DECISIONS), ("reason", REASONS), ("proto", PROTOS), ("close_by", BY)):
        r[field] = words[r[field]]
    for field in ("name", "sni", "alpn", "method", "path", "rule", "secret", "query_hash", "body_hash"):
        r[field] = text_of(r[field])
    for field in ("dst", "real"):
        r[field] = socket.inet_ntop(socket.AF_INET6, r[field]) if r["is_v6"] or any(r[field][4:]) else socket.inet_ntop(socket.AF_INET, r[field][:4])
    return r


# ---- the three sides -------------------------------------------------------------------------

class World:
    def __init__(self, folder):
        self.p = subprocess.Popen(["unshare", "-n", sys.executable, str(HERE / "world.py"), folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        subprocess.check_call(["ip", "link", "add", "vh", "type", "veth", "peer", "name", "vw", "netns", str(self.pid())])
        for argv in ("addr add 10.99.0.1/24 dev vh", "addr add fd99::1/64 dev vh nodad", "link set vh up", "link set lo up",
                     "route add default via 10.99.0.2", "-6 route add default via fd99::2"):
            subprocess.check_call(["ip", *argv.split()])
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        check(self.p.stdout.readline(), "the world does not start")

    def pid(self):  # once it has a namespace of its own
        for _ in range(100 * PATIENCE):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{self.p.pid}/ns/net") != os.readlink("/proc/self/ns/net"):
                    return self.p.pid
            time.sleep(0.01)
        raise Failed("the world has no namespace")

    def say(self, **order):
        self.p.stdin.write(json.dumps(order) + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def log(self, kind=None):
        return [e for e in self.say(do="log") if kind in (None, e["kind"])]


class Box:
    def __init__(self, folder):
        mine, its = socket.socketpair()
        self.p = subprocess.Popen(["unshare", "-nm", sys.executable, str(HERE / "box.py"), folder], stdin=its)
        its.close()
        _, fds, _, _ = socket.recv_fds(mine, 16, 8)
        check(len(fds) == 4, "the box does not start")
        self.fds, self.control, self.n = fds, mine, 0
        self.results, self.cond = {}, threading.Condition()
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        for line in self.control.makefile("r"):
            r = Record(json.loads(line))
            with self.cond:
                self.results[r.id] = r
                self.cond.notify_all()

    def start(self, *argv, **how):
        self.n += 1
        self.control.sendall(json.dumps({"id": self.n, "argv": argv, **how}).encode() + b"\n")
        return self.n

    def wait(self, n, timeout=2 * PATIENCE):
        with self.cond:
            check(self.cond.wait_for(lambda: n in self.results, timeout), "the box does not answer")
            return self.results.pop(n)

    def run(self, *argv, **how):
        return self.wait(self.start(*argv, **how))

    def python(self, code, *args, **how):
        return self.run(sys.executable, "-c", code, *args, **how)

    def curl(self, *args, **how):
        return self.run("curl", "-sS", "--max-time", str(PATIENCE), *args, **how)


class Gate:
    """The program, one child, and what the child has said."""
    def __init__(self, box, rules, credit=256, ident="sb_test", names=None, args=(), program="caisson-gate"):
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.launcher, self.box, self.generation, self.ident, self.credit = mine, box, 1, ident, credit
        self.names = names if names is not None else os.memfd_create("names")
        self.seed = bytes(range(32))
        self.log = open(f"{os.environ['GATE_FOLDER']}/gate.log", "ab")
        self.p = subprocess.Popen([*os.environ.get("GATE_WRAP", "").split(), str(BUILD / program), *args], preexec_fn=lambda: os.dup2(its.fileno(), 3), pass_fds=(3,), stderr=self.log)
        its.close()
        self.records, self.others, self.ca = [], [], None
        self.connect(rules)

    def connect(self, rules):
        self.s, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self.launcher, [b"x"], [its.fileno()])
        its.close()
        self.send(START, struct.pack("=40sII32s", self.ident.encode(), self.generation, self.credit, self.seed), [*self.box.fds, self.names, self.document(rules)])
        self.expect(UP)

    @staticmethod
    def document(rules):
        fd = os.memfd_create("rules")
        os.write(fd, rules if isinstance(rules, bytes) else json.dumps(rules).encode())
        return fd

    def send(self, kind, body=b"", fds=()):
        socket.send_fds(self.s, [struct.pack("=II", kind, len(body)) + body], list(fds))

    def hear(self, timeout):
        if not select.select([self.s], [], [], timeout)[0]:
            return None
        try:
            packet = self.s.recv(4096)
        except ConnectionResetError:
            packet = b""
        if not packet:
            raise Failed("the child has hung up: " + open(self.log.name).read()[-3000:])
        kind, _ = struct.unpack("=II", packet[:8])
        if kind == RECORD:
            self.records.append(read_record(packet[8:]))
        elif kind == CA:
            self.ca = text_of(packet[8:])
        else:
            self.others.append((kind, packet[8:]))
        return kind

    def expect(self, kind, timeout=PATIENCE):
        deadline = time.monotonic() + timeout
        while True:
            for i, (k, body) in enumerate(self.others):
                if k == kind:
                    del self.others[i]
                    return body
            check(self.hear(max(0, deadline - time.monotonic())) is not None, f"no message {kind}")

    def record(self, timeout=PATIENCE, **wanted):
        """The first record that is like that, taken out."""
        deadline = time.monotonic() + timeout
        while True:
            for i, r in enumerate(self.records):
                if all(r.get(k) == v for k, v in wanted.items()):
                    return self.records.pop(i)
            left = deadline - time.monotonic()
            if left <= 0 or self.hear(left) is None:
                raise Failed(f"no record {wanted}; of {len(self.records)} the last are {[{k: r[k] for k in ('kind', 'name', 'decision', 'reason', 'proto')} for r in self.records[-3:]]}")

    def no_record(self, timeout=0.2, **wanted):
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            self.hear(left)
        found = [r for r in self.records if wanted and all(r.get(k) == v for k, v in wanted.items())]
        check(not found, f"records: {found}")

    def rules(self, rules, timeout=PATIENCE):
        self.generation += 1
        self.send(RULES, struct.pack("=II", self.generation, 0), [self.document(rules)])
        generation, is_refused, closed, _, reason = struct.unpack("=IIII240s", self.expect(RULED, timeout))
        return Record(generation=generation, is_refused=is_refused, closed=closed, reason=text_of(reason))

    def give_credit(self, n):
        self.send(CREDIT, struct.pack("=II", n, 0))

    def ask(self, timeout=PATIENCE):
        form = "=QQIHBB254s288s16s512s1024s72s1024s2x" + CONTENT_FORM
        names = "ask seq ms port kind is_first name rule method path query secret refs body_bytes query_hash body_hash is_partial is_stream".split()
        found = zip(names, struct.unpack(form, self.expect(ASK, timeout)))
        return Record((k, text_of(v) if isinstance(v, bytes) else v) for k, v in found)

    def unask(self, timeout=PATIENCE):
        return struct.unpack("=Q", self.expect(UNASK, timeout))[0]

    def answer(self, ask, is_allowed):
        self.send(ANSWER, struct.pack("=QII", ask, is_allowed, 0))

    def child(self):
        """Its pid."""
        with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children") as f:
            return int(f.read().split()[0])

    def stop(self):
        self.launcher.close()
        self.s.close()
        same(self.p.wait(PATIENCE), 0, "the gate ended with: " + open(self.log.name).read()[-3000:])


# ---- programs --------------------------------------------------------------------------------

def make_certificates(folder):
    """A CA, a server below it, one that has expired, and one of nobody's."""
    def openssl(*argv):
        subprocess.run(["openssl", *argv], check=True, capture_output=True, cwd=folder)
    names = "DNS:*.example.org,DNS:example.org,DNS:*.example.net,DNS:*.api.test"
    pathlib.Path(folder, "ext").write_text(f"subjectAltName={names}\n")
    for ca in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", f"/CN=test {ca}",
                "-keyout", f"{ca}.key", "-out", f"{ca}.pem", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "30", "-extfile", "ext", "-out", "server.crt")
    pathlib.Path(folder, "server.pem").write_text(pathlib.Path(folder, "server.crt").read_text() + pathlib.Path(folder, "server.key").read_text())


TESTS = []


def test(title):
    def add(f):
        TESTS.append((title, f))
        return f
    return add


class Place:
    """What a test gets."""
    def __init__(self, folder):
        self.folder = folder
        for path, text in (("/etc/resolv.conf", "nameserver 10.99.0.2\noptions timeout:10 attempts:1\n"), ("/etc/hosts", "127.0.0.1 localhost\n93.184.216.34 hosts.example.org\n")):
            own = f"{folder}/host-{os.path.basename(path)}"
            pathlib.Path(own).write_text(text)
            subprocess.check_call(["mount", "--bind", own, path])
        make_certificates(folder)
        subprocess.check_call(["mount", "--bind", f"{folder}/ca.pem", "/etc/ssl/certs/ca-certificates.crt"])
        self.world, self.box = World(folder), Box(folder)
        self.ca = f"{folder}/ca.pem"
        self.gates = []

    def gate(self, net, **more):
        names = {k: more.pop(k) for k in ("credit", "ident", "names", "args", "program") if k in more}
        g = Gate(self.box, {"net": net, **more}, **names)
        self.gates.append(g)
        return g

    def clean(self):
        for g in self.gates:
            with contextlib.suppress(Exception):
                g.stop()
            g.p.kill()
        self.gates.clear()
        self.world.say(do="clear")


def run_tests(words, zone):
    os.environ["GATE_FOLDER"] = tempfile.mkdtemp()
    subprocess.check_call(["mount", "-t", "tmpfs", "tmpfs", os.environ["GATE_FOLDER"]])
    place = Place(os.environ["GATE_FOLDER"])
    wanted = [(t, f) for t, f in TESTS if all(w in t for w in words)]
    failed = 0
    for i, (title, f) in enumerate(wanted, 1):
        place.world.say(do="zone", zone=zone)
        place.world.say(do="clear")
        try:
            f(place)
            print(f"ok {i} - {title}", flush=True)
        except Exception as e:
            failed += 1
            print(f"not ok {i} - {title}", flush=True)
            where = "" if isinstance(e, Failed) else traceback.format_exc()
            at = traceback.extract_tb(e.__traceback__)
            line = [x for x in at if x.filename == f.__code__.co_filename][-1]
            print("\n".join(f"# {x}" for x in f"line {line.lineno}: {e}\n{where}".splitlines()), flush=True)
        place.clean()
    print(f"1..{len(wanted)}")
    return 1 if failed else 0


def main(zone):
    if os.environ.get("GATE_INSIDE"):
        sys.exit(run_tests(sys.argv[1:], zone))
    os.environ["GATE_INSIDE"] = "1"
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # nft and ip: an ordinary user of Debian has neither folder
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # thousands of connections: an ordinary user begins with 1,024
    os.execvp("unshare", ["unshare", "-rnm", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])
