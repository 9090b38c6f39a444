"""The table. One row = one id of the list of checks: what is tried, what must stop it with which
errno, which wall is left out in the third arm. The code of a primitive is in the C file of its
letters; what needs more than a probe is named in `special` (special.py and its neighbours)."""

from dataclasses import dataclass, field


@dataclass
class Row:
    id: str
    title: str
    args: tuple = ()              # of the probe; {names} are filled in by the runner
    expect: str = "EPERM"         # errno in the sandbox, a regular expression
    ops: dict = field(default_factory=dict)   # other errnos by (variant:)op pattern
    allow: tuple = ()             # op patterns that may succeed; use-* must
    maybe: tuple = ()             # op patterns that a bare kernel may refuse as well
    off: tuple = ()               # walls to leave out, one at a time
    off_as: str = "agent"
    control: tuple = None         # arguments of the control arm, if others
    bare: tuple = ()              # commands before the probe in the control arm
    flags: tuple = ()             # of caisson run
    variants: tuple = ("agent", "root", "rootful", "rootless")
    by_variant: dict = field(default_factory=dict)   # arguments, if others
    tty: bool = False
    silent: bool = False          # no canary listener may hear of it
    special: str = ""             # function that judges, alone or after the probe
    probe: bool = True
    kept: tuple = None            # variants to try as a command of a kept sandbox, if not all: one where a run is long


ROOT_MODE = ("agent", "root", "rootful")   # rows about limits that rootless refuses on some hosts: CFG-01
AGENT = ("agent",)
NONE = "0"                        # the call is answered, with nothing in it
WRITE = "EACCES|EROFS"            # by file mode, or by the read-only mount when the mode allows
PUBLIC = "198.51.100.7"
PUBLIC6 = "2001:db8::7"
HOSTS = ("192.0.2.2", "10.0.0.1", "172.17.0.1", "192.168.1.1", "127.0.0.53", "fd00:1::1")
METADATA = ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254")
SPECIAL = ("10.0.0.1", "172.17.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "fd00:1::1", "192.0.2.80")
NO_ROUTE = "ENETUNREACH"
RESET = "ECONNRESET"              # by the gate, once it has seen whom it was for
LISTED = ("--net", "allow:listed.example.org")
LOCAL = "ECONNREFUSED"            # the sandbox's own loopback answers, and nobody listens there
SETIDS = ("/mnt/ws/suid", "/mnt/ws/sgid")


def tcp(hosts, port=80):
    return tuple(f"tcp/{h}/{port}" for h in hosts)


def talk(hosts, port=80):
    return tuple(f"talk/{h}/{port}" for h in hosts)


def udp(hosts, port=53):
    return tuple(f"udp/{h}/{port}" for h in hosts)


ROWS = (
    # Privileges and identity
    Row("CAP-01", "all five capability masks are empty, in init and after exec", expect=NONE, off=("caps",),
        ops={"init": "ENOENT"}, maybe=("*CapInh", "*CapAmb", "init*"), by_variant={"rootful": ("eb",)},
        special="masks_from_outside"),
    Row("CAP-02", "set-id copies change nothing", SETIDS, expect=NONE, off=("caps",), special="set_id_image",
        control=("{tmp}/ws/suid", "{tmp}/ws/sgid"), bare=("setpriv", "--reuid=65534", "--regid=65534",
                                                          "--clear-groups")),
    Row("CAP-04", "no other user, no other group", off=("caps",), special="ids_from_outside",
        ops={"rootless:set*[ug]id": "EINVAL|EPERM"}, allow=("rootful:set*",)),
    Row("CAP-05", "no group of the caller comes along", expect=NONE, special="groups_of_caller", probe=False),
    Row("CAP-06", "two sandboxes share no host id", special="disjoint_ids", probe=False),
    Row("CAP-08", "user is parsed whole or refused", special="user_table", probe=False),
    Row("CAP-09", "securebits, keepcaps, dumpable and the like regain nothing", off=("caps",),
        ops={"after-*": NONE, "securebits-unlocked": NONE, "drop-no-new-privs": "EINVAL"},
        maybe=("set-mm", "*CapInh", "*CapAmb"),
        by_variant={"rootful": ("eb",)}, allow=("rootful:securebits-unlocked",)),
    Row("CAP-11", "variables for the loader stay inside", special="preload_canary", probe=False),
    Row("CAP-12", "every descendant is as confined", ("/made-by-probe",), expect=NONE, off=("seccomp", "landlock"),
        off_as="root",
        control=("{tmp}/scratch/made",), allow=("rootful:*-paths",)),
    # System calls
    Row("SYS-01", "census of all numbers, and no foreign ABI", ("/mnt/probe/abi32",), expect="SIGSYS", off=("seccomp",),
        control=("{tmp}/bin/abi32",), maybe=("x32-number",), special="census", kept=AGENT),
    Row("SYS-03", "mounts, by the old calls and the new", off=("seccomp",)),
    Row("SYS-04", "no new namespace, no other namespace", off=("seccomp",), ops={"clone3-*": "ENOSYS"},
        bare=("unshare", "-u")),
    Row("SYS-05", "bpf", off=("seccomp",)),
    Row("SYS-06", "io_uring", expect="ENOSYS", off=("seccomp",)),
    Row("SYS-07", "userfaultfd", off=("seccomp",), ops={"dev-*": "ENOENT"}),
    Row("SYS-08", "perf events", off=("seccomp",)),
    Row("SYS-09", "keyrings", ("{token}",), off=("seccomp",)),
    Row("SYS-10", "ptrace of init and of processes outside", ("1", "{canary}", "{other}"), off=("caps",),
        ops={"*-0": "EPERM|ESRCH", "*": "ESRCH"}, control=("{canary}",), special="debug_own_child"),
    Row("SYS-11", "memory and descriptors of other processes", ("1", "{canary}", "{other}"), off=("seccomp",),
        ops={"proc-mem-*": "ENOENT"}, control=("{canary}",)),
    Row("SYS-13", "modules, kexec, reboot, swap, accounting, ports, kernel log", off=("seccomp",)),
    Row("SYS-15", "socket families", expect="EAFNOSUPPORT", off=("seccomp",), control=("17", "16"), allow=("use-*",)),
    Row("SYS-16", "raw sockets and the options that redirect", off=("seccomp",), maybe=("tcp-ulp",)),
    Row("SYS-17", "personality, 32 bits", off=("seccomp",), allow=("0x8", "0x20000", "0x40000")),
    Row("SYS-18", "setting the clock", off=("seccomp",)),
    Row("SYS-21", "rare calls that were often the way in", off=("seccomp",)),
    Row("SYS-24", "tools of the host still work", special="toolchains", probe=False),
    Row("SYS-25", "doctor names weak settings", special="doctor", probe=False),
    Row("SYS-26", "programs that sockets run", off=("seccomp",)),
    Row("SYS-27", "sockets that make who closes them wait", expect=NONE, off=("seccomp",)),
    Row("SYS-28", "requests that load a module before rights are looked at", off=("seccomp",),
        maybe=("tcp-md5", "tcp-ao")),
    Row("SYS-29", "urgent bytes and shared pages", expect="EOPNOTSUPP", off=("seccomp",), allow=("use-*",),
        maybe=("urgent*",)),
    Row("SYS-30", "filters of its own, up to a bound", ("12", "8"), expect="ENOMEM", special="filter_bound",
        allow=("use-*",), probe=False),
    # Namespaces
    Row("NSP-01", "seven namespaces of its own", ("{namespaces}",), expect=NONE, special="namespaces_differ",
        off=("netns",),
        maybe=("mnt",)),
    Row("NSP-02", "no process of the host", ("{canary}", "sbx-canary"), expect="ESRCH", ops={"listed": NONE}),
    Row("NSP-04", "nothing to do to supervisors", expect="ESRCH", special="supervisors", control=("{canary}",),
        probe=False),
    Row("NSP-05", "System V and POSIX objects of the host", ("{key}", "{token}"), expect="ENOENT"),
    Row("NSP-07", "no socket of the host in the tree", ("/", "{tmp}/canary.sock", "{token}"), expect="ENOENT",
        silent=True,
        off=("netns",), ops={"sockets-found": NONE, "canary-abstract": "ECONNREFUSED"},
        control=("{tmp}", "{tmp}/canary.sock", "{token}"),
        maybe=("known-names",), kept=AGENT),
    Row("NSP-08", "no control plane by any address", tcp(("127.0.0.1", "::1"), 8080) + tcp(HOSTS, 2375), expect=LOCAL,
        silent=True,
        off=("netns",), ops={"tcp/127*": LOCAL, "tcp/1[0-9]*": NO_ROUTE, "tcp/fd*": NO_ROUTE}, special="no_api_socket"),
    Row("NSP-09", "the host's name", off=("seccomp",), ops={"proc-*": WRITE}, bare=("unshare", "-u")),
    Row("NSP-10", "nothing of a neighbour", special="neighbour", probe=False),
    Row("NSP-11", "no process survives the end", special="survivors", probe=False),
    Row("NSP-12", "orphans are reaped", ("3000",), expect=NONE, flags=("--pids", "64"), control=("200", "adopt"),
        kept=AGENT),
    Row("NSP-14", "no mount crosses in either direction", special="propagation", probe=False),
    Row("NSP-16", "no namespace to enter or to make", ("1",), expect="ENOENT", ops={"max-*": NONE},
        control=("{canary}",)),
    # /proc, /sys, launcher
    Row("PRC-01", "core_pattern and core dumps", expect=NONE, ops={"core_pattern": WRITE}, off=("masks",),
        maybe=("core-*",)),
    Row("PRC-02", "no writable switch that runs programs on the host", ("/proc", "/sys"), expect="ENOENT|EACCES|EROFS",
        off=("masks",),
        control=("/sys/fs/cgroup", "/proc")),
    Row("PRC-03", "sysrq", expect="ENOENT|EACCES|EROFS", off=("masks",)),
    Row("PRC-04", "files that tell about the host are empty or absent", expect="0|ENOENT|EACCES|EPERM", off=("masks",),
        maybe=("*",), ops={"/sys/*": "ENOENT"}),
    Row("PRC-05", "nothing below /proc is writable", ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc"),
        expect="ENOENT|EACCES|EROFS", off=("masks",), off_as="root", control=("/proc/sys/vm", "/proc/irq")),
    Row("PRC-06", "nothing below /sys is writable", ("/sys",), expect="ENOENT|EACCES|EROFS",
        control=("/sys/kernel/mm",)),
    Row("PRC-07", "hostile images", special="hostile_images", probe=False),
    Row("PRC-10", "nothing of another user's process", ("1",), expect="ENOENT", off=("hidepid",),
        control=("{canary}",)),
    Row("PRC-11", "identity of the host", ("{identity}",), expect="0|ENOENT|EACCES", maybe=("*",), off=("masks",)),
    Row("PRC-12", "no path, name or id of the outside", ("{paths}",), expect="0|ENOENT|EACCES", maybe=("*",),
        flags=("--fs", "overlay:{tmp}/home/canaryuser/tc:/mnt/tc"), allow=("uname", "mac-address")),
    Row("PRC-13", "the core limit stays", expect=NONE, ops={"core-prlimit-old": "EPERM"}, off=("seccomp",),
        allow=("use-*",)),
    # Devices and terminals
    Row("DEV-01", "no device made or brought along", ("/tmp", "/mnt/ws/node-null", "/mnt/ws/node-kmsg"),
        off=("seccomp", "nodev", "cgroup"),
        ops={"ready-made-*": "EACCES"}, control=("{tmp}/scratch", "{tmp}/ws/node-null", "{tmp}/ws/node-kmsg")),
    Row("DEV-02", "exactly the documented nodes", special="device_list", probe=False),
    Row("DEV-03", "no other device by name", expect="ENOENT", maybe=("/dev/[sv]da",)),
    Row("DEV-05", "terminal ioctls", off=("seccomp",), tty=True, maybe=("tioclinux", "kdgkbmode", "vt-getstate")),
    Row("DEV-07", "/dev/shm is bounded", ("96",), expect=NONE, ops={"fill": "ENOSPC", "mqueue": "ENOENT"},
        flags=("--disk", "32m"), control=("8",), bare=("sh", "-c", 'mount -t tmpfs bare /dev/shm; exec "$@"', "sh")),
    Row("DEV-08", "kernel log", off=("seccomp",), ops={"*kmsg": "ENOENT|EACCES", "dev-log": "ENOENT"}),
    # Descriptors, environment, inherited state
    Row("FDS-01", "three descriptors", special="inherited_fds", probe=False),
    Row("FDS-02", "working directory", special="workdir_table", probe=False),
    Row("FDS-04", "closed and shuffled standard descriptors", special="shuffled_fds", probe=False),
    Row("FDS-05", "environment", special="environment", probe=False),
    Row("FDS-06", "umask, limits, signals, priorities are reset", special="inherited_state", probe=False),
    Row("FDS-07", "session keyring", ("{token}",), ops={"proc-keys": "0|ENOENT|EACCES"}, off=("seccomp", "masks")),
    Row("FDS-08", "the launcher's keyring when the quota of keys is used up", special="keyring_quota", probe=False),
    # Resources
    Row("CGR-01", "fork bomb", ("200",), expect="EAGAIN", flags=("--pids", "64"), off=("cgroup",),
        special="bomb_with_neighbour"),
    Row("CGR-02", "thread bomb", ("200",), expect="EAGAIN|ENOMEM", flags=("--pids", "64"), off=("cgroup",)),
    Row("CGR-03", "memory bomb", special="memory_bomb", probe=False),
    Row("CGR-05", "disk and inode fill", ("48", "2500", "/work", "/tmp", "/home/agent", "/dev/shm", "/run"),
        expect="ENOSPC",
        flags=("--disk", "32m", "--inodes", "2000"), control=("48", "2500", "{tmp}/scratch"),
        ops={"root*:*:/home/agent": "ENOSPC|EACCES"}, kept=AGENT),
    Row("CGR-07", "processor hog", ("600", "80"), flags=("--cpu", "0.5"), ops={"cpu-share": NONE}, maybe=("cpu-share",),
        variants=ROOT_MODE,
        special="cpu_quota", kept=AGENT),
    Row("CGR-09", "output flood", special="output_flood", probe=False),
    Row("CGR-10", "input and output hog", special="io_hog", probe=False),
    Row("CGR-11", "cgroup file systems", ("/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory",
                                          "/sys/fs/cgroup/unified"), variants=ROOT_MODE,
        expect="ENOENT|EACCES|EROFS", control=("{hierarchy}",), special="limits_unchanged"),
    Row("CGR-12", "a group of its own in every hierarchy", special="every_controller", probe=False, variants=ROOT_MODE),
    Row("CGR-13", "priorities, locked memory, huge pages, limits", expect="EPERM|EACCES|ENOMEM|EROFS",
        flags=("--mem", "256m"), variants=ROOT_MODE,
        maybe=("hugetlb", "oom-score", "raise-limit")),
    Row("CGR-14", "sparse and preallocated files", ("/work", "64"), expect="0|EFBIG", ops={"fallocate": "ENOSPC"},
        flags=("--disk", "32m"),
        control=("{tmp}/scratch", "64"), maybe=("truncate-8-eib",)),
    Row("CGR-15", "real-time classes and priorities that the caller's limits allow", special="generous_limits",
        ops={"sched-fifo-by-attr": "ENOSYS", "nice-lowest": "EACCES", "core-sharing": "EINVAL"},
        maybe=("core-sharing",), probe=False),
    Row("CGR-18", "limits that the caller has and code inside must not", special="generous_limits", expect=NONE,
        probe=False),
    Row("CGR-17", "clients that die", special="dead_clients", probe=False),
    Row("CGR-19", "frozen, then ended", special="frozen", probe=False),
    Row("CGR-21", "hostile and benign side by side", special="mixed_load", probe=False),
    # Network, denied
    Row("NET-01", "a public address, by every transport", tuple(f"{t}/{PUBLIC}/443"
                                                                for t in ("tcp", "udp", "icmp", "ping", "sctp", "raw"))
        + (f"tcp/{PUBLIC6}/443", f"udp/{PUBLIC6}/443"), expect=NO_ROUTE, silent=True, off=("netns",),
        maybe=("sctp*", "raw*"),
        ops={"icmp/*": "EPERM", "ping/*": "EPERM", "raw/*": "EPERM", "sctp/*": "EPROTONOSUPPORT"},
        special="uplink_silent"),
    Row("NET-02", "services of the host", tcp(("127.0.0.1", "::1", "0.0.0.0")) + tcp(HOSTS), expect=NO_ROUTE,
        silent=True, off=("netns",),
        ops={"tcp/127*": LOCAL, "tcp/::1*": LOCAL, "tcp/0.*": LOCAL}),
    Row("NET-03", "cloud metadata", tcp(METADATA), expect=NO_ROUTE, silent=True, off=("netns",)),
    Row("NET-05", "private and special ranges", tcp(SPECIAL) + udp(SPECIAL), expect=NO_ROUTE, silent=True,
        off=("netns",)),
    Row("NET-06", "an empty or broken allow-list allows nothing", special="net_table", probe=False),
    Row("NET-13", "names", udp(("127.0.0.1", "127.0.0.53", PUBLIC, PUBLIC6)) + tcp(("127.0.0.53", PUBLIC), 53)
        + tcp((PUBLIC,), 853)
        + ("udp/224.0.0.251/5353",), expect=NO_ROUTE, silent=True, off=("netns",),
        ops={"tcp/127*": LOCAL, "udp/127*": LOCAL}, allow=("udp/127*",), special="resolver"),
    Row("NET-15", "address literals", tcp((PUBLIC, PUBLIC6), 443) + tcp((PUBLIC, PUBLIC6), 80), expect=NO_ROUTE,
        silent=True, off=("netns",)),
    Row("NET-19", "QUIC, STUN, WireGuard", udp((PUBLIC, PUBLIC6), 443) + udp((PUBLIC,), 3478) + udp((PUBLIC,), 51820),
        expect=NO_ROUTE,
        silent=True, off=("netns",)),
    Row("NET-20", "other ports", tuple(f"tcp/{PUBLIC}/{p}" for p in (22, 25, 53, 2375, 6443)), expect=NO_ROUTE,
        silent=True, off=("netns",)),
    Row("NET-23", "what listens inside is not on the host", special="listens_inside", probe=False),
    Row("NET-24", "forged packets and addresses", off=("seccomp", "caps"), ops={"packet*": "EAFNOSUPPORT"}),
    Row("NET-31", "loopback only, no route", expect=NONE, off=("netns",), maybe=("neighbours", "routes6")),
    # Network, with a list of names: what is not on it
    Row("SYS-15L", "with a list: socket families", expect="EAFNOSUPPORT", off=("seccomp",), control=("17", "16"),
        allow=("use-*",), flags=LISTED),
    Row("SYS-16L", "with a list: raw sockets and the options that redirect", off=("seccomp",), maybe=("tcp-ulp",), flags=LISTED),
    Row("NET-01L", "with a list: a public address, by every transport", tuple(f"{t}/{PUBLIC}/443"
                                                                          for t in ("talk", "udp", "icmp", "ping", "sctp", "raw"))
        + (f"talk/{PUBLIC6}/443", f"udp/{PUBLIC6}/443"), silent=True, off=("netns", "netwalls"), flags=LISTED,
        maybe=("sctp*", "raw*"), ops={"talk/*": RESET, "sctp/*": "EPROTONOSUPPORT"}, special="uplink_silent"),
    Row("NET-02L", "with a list: services of the host", talk(("127.0.0.1", "::1", "0.0.0.0")) + talk(HOSTS), expect=RESET,
        silent=True, off=("netns",), flags=LISTED, ops={"talk/127*": LOCAL, "talk/::1*": LOCAL, "talk/0.*": LOCAL}),
    Row("NET-03L", "with a list: cloud metadata", talk(METADATA), expect=RESET, silent=True, off=("netns",), flags=LISTED),
    Row("NET-05L", "with a list: private and special ranges", talk(SPECIAL) + udp(SPECIAL, 443), expect=RESET, silent=True,
        off=("netns", "netwalls"), flags=LISTED, ops={"udp/*": "EPERM"}),
    Row("NET-13L", "with a list: names", talk((PUBLIC,), 853) + ("udp/224.0.0.251/5353",), expect=RESET, silent=True,
        off=("netns",), flags=LISTED, ops={"udp/*": "EPERM"}, special="listed_resolver"),
    Row("NET-15L", "with a list: address literals", talk((PUBLIC, PUBLIC6), 443) + talk((PUBLIC, PUBLIC6), 80), expect=RESET,
        silent=True, off=("netns",), flags=LISTED),
    Row("NET-19L", "with a list: QUIC, STUN, WireGuard", udp((PUBLIC, PUBLIC6), 443) + udp((PUBLIC,), 3478) + udp((PUBLIC,), 51820),
        silent=True, off=("netns", "netwalls"), flags=LISTED),
    Row("NET-20L", "with a list: other ports", tuple(f"talk/{PUBLIC}/{p}" for p in (22, 25, 2375, 6443)), expect=RESET,
        silent=True, off=("netns",), flags=LISTED),
    Row("NET-24L", "with a list: forged packets and addresses", off=("seccomp", "caps"), ops={"packet*": "EAFNOSUPPORT"},
        flags=LISTED),
    Row("NET-31L", "with a list: loopback only, no route out", expect=NONE, off=("netns",), maybe=("neighbours", "routes6"),
        flags=LISTED),
    # Configuration
    Row("CFG-01", "a host that lacks a layer", special="missing_layers", probe=False),
    Row("CFG-02", "a spec file that is no spec", special="broken_specs", probe=False),
    Row("CFG-03", "keys that do not exist", special="unknown_keys", probe=False),
    Row("CFG-04", "configuration in the working folder", special="workspace_config", probe=False),
    Row("CFG-07", "every wall is missed by a row when it is left out", special="mutants", probe=False),
    Row("CFG-10", "a hostile environment of the caller", special="hostile_environment", probe=False),
    Row("CFG-11", "command lines of the README", special="readme", probe=False),
)

GATE = "needs a network: docs/gate.md names its tests"
NOT_APPLICABLE = {
    "NSP-17": "snapshots of memory: micro-VM and gVisor backends",
    "DEV-09": "the spec has no device grants",
    "CGR-16": "needs the file API of a workspace",
    "CGR-20": GATE,
    "NET-07": GATE, "NET-09": GATE, "NET-10": GATE, "NET-12": GATE, "NET-16": GATE, "NET-18": GATE, "NET-22": GATE,
    "NET-26": GATE, "NET-28": GATE, "NET-29": GATE, "NET-30": GATE,
    "CFG-08": GATE,
}
