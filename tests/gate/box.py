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

RULES = """
table inet caisson {
	chain catch {
		type nat hook output priority -100;
		ip daddr 127.0.0.0/8 return
		ip6 daddr ::1 return
		meta l4proto tcp redirect to :PORT
	}
	chain out {
		type filter hook output priority 0; policy drop;
		ip daddr 127.0.0.0/8 accept
		ip6 daddr ::1 accept
		meta l4proto tcp accept
		udp dport 53 accept
		udp sport 53 accept
	}
}
"""


def run(*argv):
    subprocess.check_call(argv)


def listen(family, kind, port):
    s = socket.socket(family, kind | socket.SOCK_NONBLOCK)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if kind == socket.SOCK_STREAM:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", port))
    if kind == socket.SOCK_STREAM:
        s.listen(4096)
    return s


def make():
    run("ip", "link", "set", "lo", "up")
    run("ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo")
    run("ip", "-6", "route", "add", "local", "::/0", "dev", "lo")
    tcp4 = listen(socket.AF_INET, socket.SOCK_STREAM, 0)
    port = tcp4.getsockname()[1]
    tcp6 = listen(socket.AF_INET6, socket.SOCK_STREAM, port)
    udp = [listen(f, socket.SOCK_DGRAM, 53) for f in (socket.AF_INET, socket.AF_INET6)]
    subprocess.run(["nft", "-f", "-"], input=RULES.replace("PORT", str(port)).encode(), check=True)
    return [tcp4, tcp6, *udp]


def execute(order):
    try:
        p = subprocess.run(order["argv"], input=order.get("input", "").encode("latin-1"), capture_output=True, timeout=order.get("timeout", 20))
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
