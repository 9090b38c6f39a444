"""The host's side of the corpus: canaries that hostile code must not reach, and honest looks
at a sandbox from outside. A row passes only if the probe and these agree."""

import contextlib
import ctypes
import hashlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
IPC_CREAT, IPC_RMID = 0o1000, 0
KEY_SESSION, KEYCTL_JOIN, SYS_ADD_KEY, SYS_KEYCTL = -3, 1, 248, 250

# Addresses that a sandbox must never reach. Here they all lie on the loopback of a network
# namespace of our own, so that no packet of any arm can leave the machine.
ADDRESSES = (
    "198.51.100.7", "192.0.2.80", "169.254.169.254", "169.254.170.2", "100.100.100.200",
    "168.63.129.16", "10.0.0.1", "172.17.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.53",
    "2001:db8::7", "fd00:ec2::254", "fd00:1::1")
TCP_PORTS = (22, 25, 53, 80, 443, 853, 2375, 6443, 8080)
UDP_PORTS = (53, 443, 3478, 5353, 51820)


def read(path, default=""):
    try:
        with open(path, "rb") as f:
            return f.read().decode("utf-8", "replace")
    except OSError:
        return default


def tree_hash(root):
    """Names, types, modes and contents below root; nothing is followed."""
    h = hashlib.sha256()
    for base, dirs, files in sorted(os.walk(root)):
        for name in sorted(dirs + files):
            path = os.path.join(base, name)
            st = os.lstat(path)
            h.update(f"{path} {st.st_mode:o} {st.st_uid} {st.st_rdev}\n".encode())
            if os.path.islink(path):
                h.update(os.readlink(path).encode())
            elif os.path.isfile(path):
                with open(path, "rb") as f:
                    h.update(f.read())
    return h.hexdigest()


def pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def pids_with(token):
    return [p for p in pids() if token in read(f"/proc/{p}/cmdline") and p != os.getpid()]


def status(pid, key):
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith(key + ":"):
            return line.split(":", 1)[1].split()
    return []


def program(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def inside(token):
    """Host pids of probes with this token in argv that live in a pid namespace below ours."""
    return [p for p in pids_with(token) if len(status(p, "NSpid")) > 1 and program(p) == "probe"]


def namespace(pid, kind):
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return ""


def companions(pid):
    """Every process in the pid namespace of pid."""
    own = namespace(pid, "pid")
    if own in ("", namespace("self", "pid")):    # gone, or the host's: never act on those
        return []
    return [p for p in pids() if namespace(p, "pid") == own]


def pid_1_of(pid):
    """Of the sandbox that it is in."""
    own = namespace(pid, "pid")
    return next(p for p in pids() if namespace(p, "pid") == own and (status(p, "NSpid") or [""])[-1] == "1")


def descendants(root):
    parents = {p: int((status(p, "PPid") or ["0"])[0]) for p in pids()}
    found, grew = {root}, True
    while grew:
        more = {p for p, up in parents.items() if up in found} - found
        found |= more
        grew = bool(more)
    return found - {root}


def parent(pid):
    """Of a command in a sandbox: its monitor."""
    return int((status(pid, "PPid") or ["0"])[0])


def supervisors(pid):
    """Everybody above a command in a sandbox: monitor, launcher, and who is beside them (daemon)."""
    launcher = parent(parent(pid))
    return {launcher, *(p for p in descendants(launcher) if len(status(p, "NSpid")) == 1)}


def cgroup_of(pid):
    """{controller: (path in its hierarchy)} as the host sees it."""
    groups = {}
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(",") if names else ["unified"]:
            groups[name] = path
    return groups


def cgroup_folder(pid, controller):
    """Where this controller bounds pid: in a v1 hierarchy of its own, or on v2."""
    groups = cgroup_of(pid)
    return f"/sys/fs/cgroup/{controller}{groups[controller]}" if controller in groups else \
        f"/sys/fs/cgroup{groups['unified']}"


def cgroup_files(pid):
    """Limits of the groups of pid, to be compared before and after."""
    out = {}
    for name, path in cgroup_of(pid).items():
        for f in ("memory.limit_in_bytes", "memory.max", "pids.max", "cpu.cfs_quota_us", "cpu.max"):
            text = read(f"/sys/fs/cgroup/{name}{path}/{f}") or read(f"/sys/fs/cgroup{path}/{f}")
            if text:
                out[f"{name}:{f}"] = text.strip()
    return out


def modules():
    """Names only: the kernel's use counts change all the time."""
    return {line.split()[0] for line in read("/proc/modules").splitlines()}


def wait_until(condition, seconds=40.0):
    """A busy machine gets more time than any row means."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


class Listeners:
    """Counts whoever connects or sends a datagram."""

    def __init__(self, unix_path, abstract):
        self.hits = 0
        self._selector = selectors.DefaultSelector()
        for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            for kind, ports in ((socket.SOCK_STREAM, TCP_PORTS), (socket.SOCK_DGRAM, UDP_PORTS)):
                for port in ports:
                    self._add(family, kind, (host, port))
        self._add(socket.AF_UNIX, socket.SOCK_STREAM, unix_path)
        self._add(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + abstract)
        threading.Thread(target=self._serve, daemon=True).start()

    def _add(self, family, kind, address):
        s = socket.socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(address)
        if kind == socket.SOCK_STREAM:
            s.listen(64)
        s.setblocking(False)
        self._selector.register(s, selectors.EVENT_READ, kind)

    def settled(self):
        """The count, once it has stopped changing."""
        before = -1
        while before != self.hits:
            before = self.hits
            time.sleep(0.05)
        return before

    def is_above(self, hits):
        """Within some seconds: a listener is a thread on a busy machine."""
        deadline = time.monotonic() + 40
        while self.hits == hits and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.hits > hits

    def _serve(self):
        while True:
            for key, _ in self._selector.select():
                with contextlib.suppress(OSError):
                    one = key.fileobj.accept()[0] if key.data == socket.SOCK_STREAM else None
                    if not one:
                        key.fileobj.recvfrom(2048)
                    self.hits += 1    # who came and is gone already was there too
                    if one:
                        with one:
                            one.send(b"!")


def run_quiet(*argv):
    return subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode


def private_network():
    """A host of our own: the addresses above, an uplink that leads nowhere, a default route."""
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare the network")
    for words in ("link set lo up", "link add up0 type veth peer name up1",
                  "addr add 192.0.2.2/24 dev up0", "link set up0 up", "link set up1 up",
                  "route add default via 192.0.2.1", "neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev up0"):
        run_quiet("ip", *words.split())
    for a in ADDRESSES:
        run_quiet("ip", "addr", "add", a, "dev", "lo", *(["nodad"] if ":" in a else []))
    for path, value in (("net/ipv4/ping_group_range", "0 2147483647"), ("net/ipv6/conf/up0/disable_ipv6", "1")):
        with open(f"/proc/sys/{path}", "w", encoding="ascii") as f:
            f.write(value)


def uplink_packets():
    out = subprocess.run(["ip", "-s", "-j", "link", "show", "up0"], capture_output=True, check=False)
    return json.loads(out.stdout or b"[{}]")[0].get("stats64", {}).get("tx", {}).get("packets", 0)


class Host:
    """All canaries of one run, and the folder that everything lives in."""

    def __init__(self):
        self.real_net = namespace("self", "net")
        self.clock = time.time() - time.monotonic()
        private_network()
        self.tmp = tempfile.mkdtemp(prefix="caisson-probe-")
        os.chmod(self.tmp, 0o755)
        self.token = "canary" + os.path.basename(self.tmp)[-8:]
        self.key = int.from_bytes(os.urandom(3), "big") | 0x0CA00000
        for d in ("bin", "ws", "scratch"):
            os.mkdir(f"{self.tmp}/{d}")
        self.secret = f"{self.tmp}/secret"
        with open(self.secret, "w", encoding="ascii") as f:
            f.write(self.token)
        self.listeners = Listeners(f"{self.tmp}/canary.sock", self.token)
        self._make_ipc()
        self._make_key()
        self.canary = None
        self.daemons = None    # arms.Daemons
        self._loaded = set()

    def start_canary(self, probe):
        env = {"CANARY": self.token, "PATH": "/usr/bin"}
        self.canary = subprocess.Popen([probe, "hold", self.token, "sbx-canary"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env=env)
        self.canary.stdout.readline()

    def _make_ipc(self):
        self._ids = (libc.shmget(self.key, 4096, IPC_CREAT | 0o666), libc.semget(self.key, 1, IPC_CREAT | 0o666),
                     libc.msgget(self.key, IPC_CREAT | 0o666))
        self._queue = libc.mq_open(f"/{self.token}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        with open(f"/dev/shm/{self.token}", "w", encoding="ascii") as f:
            f.write(self.token)

    def _make_key(self):
        libc.syscall(SYS_KEYCTL, KEYCTL_JOIN, None)
        libc.syscall(SYS_ADD_KEY, b"user", self.token.encode(), b"secret", 6, KEY_SESSION)

    @contextlib.contextmanager
    def may_load(self):
        """For what has no walls: an arm without them, or the host itself. The kernel may load a module for what it asks."""
        before = modules()
        yield
        self._loaded |= modules() - before

    def census(self):
        """What no arm may change."""
        return {"mounts": hashlib.sha256(read("/proc/self/mountinfo").encode()).hexdigest(),
                "hostname": os.uname().nodename, "modules": modules() - self._loaded,
                "core_pattern": read("/proc/sys/kernel/core_pattern"),
                "clock": abs(time.time() - time.monotonic() - self.clock) < 2,
                "secret": read(self.secret), "canary alive": self.canary.poll() is None,
                "canary limits": read(f"/proc/{self.canary.pid}/limits")}

    def close(self):
        if self.daemons:
            self.daemons.close()
        if self.canary:
            self.canary.kill()
            self.canary.wait()
        for pid in pids_with(self.tmp):    # no process of ours survives; the folder's name is unique
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        libc.shmctl(self._ids[0], IPC_RMID, None)
        libc.semctl(self._ids[1], 0, IPC_RMID)
        libc.msgctl(self._ids[2], IPC_RMID, None)
        libc.mq_unlink(f"/{self.token}".encode())
        os.unlink(f"/dev/shm/{self.token}")
        shutil.rmtree(self.tmp, ignore_errors=True)
