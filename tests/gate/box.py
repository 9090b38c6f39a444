"""box.py - the sandbox's side: a network namespace in which every address is local, four sockets that
are handed out, and a place to run programs. What pid 1 of a real sandbox does (src/engine), by `ip` and
`nft`, so that the gate can be tested alone.

Started by lib.py; descriptor 0 is a socket: the descriptors go out by it, then orders come in.
"""
import json
import os
import socket
import subprocess
import sys

IP_PKTINFO, IP_TRANSPARENT, IPV6_TRANSPARENT = 8, 19, 75  # linux/in.h, linux/in6.h

RULES = """
table inet caisson {
	chain in {
		type filter hook prerouting priority mangle; policy drop;
		tcp flags & (syn|ack) != syn accept
		ip daddr 127.0.0.0/8 accept
		ip6 daddr ::1 accept
		meta nfproto ipv4 meta l4proto tcp tproxy ip to 198.18.0.1:1 accept
		meta nfproto ipv4 udp dport 53 tproxy ip to 198.18.0.1:53 accept
		meta nfproto ipv6 meta l4proto tcp tproxy ip6 to [2001:2::1]:1 accept
		meta nfproto ipv6 udp dport 53 tproxy ip6 to [2001:2::1]:53 accept
	}
	chain out {
		type filter hook output priority 0; policy drop;
		meta l4proto tcp accept
		ip daddr 127.0.0.0/8 accept
		ip6 daddr ::1 accept
		udp dport 53 accept
	}
}
"""


def run(*argv):
    subprocess.check_call(argv)


def listen(family, kind, port):
    s = socket.socket(family, kind | socket.SOCK_NONBLOCK)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
    else:
        s.setsockopt(socket.IPPROTO_IP, IP_TRANSPARENT, 1)
    if kind == socket.SOCK_STREAM:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    elif family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        s.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    s.bind(("2001:2::1" if family == socket.AF_INET6 else "198.18.0.1", port))
    if kind == socket.SOCK_STREAM:
        s.listen(4096)
    return s


def make():
    run("ip", "link", "set", "lo", "up")
    run("ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo", "src", "127.0.0.1")
    run("ip", "-6", "route", "add", "local", "::/0", "dev", "lo")
    subprocess.run(["nft", "-f", "-"], input=RULES.encode(), check=True)
    return [listen(f, kind, port) for kind, port in ((socket.SOCK_STREAM, 1), (socket.SOCK_DGRAM, 53))
            for f in (socket.AF_INET, socket.AF_INET6)]


def execute(order):
    try:
        p = subprocess.run(order["argv"], input=order.get("input", "").encode("latin-1"), capture_output=True, timeout=order.get("timeout", 70))
        return {"rc": p.returncode, "out": p.stdout.decode("latin-1"), "err": p.stderr.decode("latin-1")}
    except subprocess.TimeoutExpired as e:
        return {"rc": -1, "out": (e.stdout or b"").decode("latin-1"), "err": "timeout"}


def main():
    control = socket.socket(fileno=0)
    for path, text in (("/etc/resolv.conf", "nameserver 198.18.0.1\n"), ("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")):
        own = f"{sys.argv[1]}/box-{os.path.basename(path)}"
        with open(own, "w") as f:
            f.write(text)
        run("mount", "--bind", own, path)
    sockets = make()
    socket.send_fds(control, [b"made"], [s.fileno() for s in sockets])
    for s in sockets:
        s.close()
    lines = control.makefile("r")
    for line in lines:
        pid = os.fork()
        if pid == 0:
            order = json.loads(line)
            out = json.dumps({"id": order["id"], **execute(order)}).encode() + b"\n"
            control.sendall(out)
            os._exit(0)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


if __name__ == "__main__":
    main()
