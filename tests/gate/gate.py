#!/usr/bin/env python3
"""caisson-gate alone: names, decisions, first bytes, dialling, relay, records, asks, reload. TAP.

    tests/gate/gate.py           all; needs user namespaces, no rights
    tests/gate/gate.py ask       those with the word in their title
"""
import os
import re
import signal
import socket
import struct
import subprocess
import time

import lib
from lib import check, same, test

PUBLIC, OTHER, PUBLIC6 = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::34"
ZONE = {
    "www.example.org": [PUBLIC],
    "two.example.org": [PUBLIC6, PUBLIC],
    "dead.example.org": ["93.184.216.99", PUBLIC],
    "private.example.org": ["10.1.2.3"],
    "meta.example.org": ["169.254.169.254"],
    "mixed.example.org": ["127.0.0.1", PUBLIC],
    "own.example.org": ["10.99.0.1"],
    "other.example.net": [OTHER],
    "proxy.example.net": ["10.1.2.3"],
    "nobody.example.org": ["93.184.216.34"],
    "silent.example.org": "silent",
}
ALLOW = {"allow": ["*.example.org"]}

# Inside: connect, say something, print what comes.
TALK = r'''
import socket, sys
s = None
out = b""
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=40)
    if len(sys.argv) > 3: s.sendall(sys.argv[3].encode("latin-1").decode("unicode_escape").encode("latin-1"))
    if len(sys.argv) > 4: s.shutdown(socket.SHUT_WR)
    while True:
        data = s.recv(65536)
        if not data: break
        out += data
        if len(sys.argv) <= 4: break
except OSError: out += b"RESET"
sys.stdout.buffer.write(out)
'''
ASK_DNS = r'''
import socket, struct, sys
def ask(server, name, kind, tcp):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode("latin-1") for l in name.split(".")) + b"\0" + struct.pack(">HH", kind, 1)
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(40); s.connect((server, 53))
    if tcp:
        s.sendall(struct.pack(">H", len(q)) + q); a = s.recv(4096)[2:]
    else:
        s.send(q); a = s.recv(4096)
    rcode, n = a[3] & 15, struct.unpack(">H", a[6:8])[0]
    print(rcode, n, socket.inet_ntoa(a[-4:]) if n else "-")
ask(sys.argv[1], sys.argv[2], int(sys.argv[3]), len(sys.argv) > 4)
'''


def talk(p, host, port, say=None, to_end=False):
    return p.box.python(TALK, host, str(port), *([say] if say is not None else []), *(["end"] if to_end else [])).out


def dns(p, name, kind=1, server="198.18.0.1", tcp=False):
    r = p.box.python(ASK_DNS, server, name, str(kind), *(["tcp"] if tcp else []))
    return r.out.strip() or r.err.strip().splitlines()[-1]


# ---- names -----------------------------------------------------------------------------------

@test("DNS: listed names have addresses of ours, others do not exist, nothing goes out")
def _(p):
    g = p.gate(ALLOW)
    same(dns(p, "www.example.org"), "0 1 198.18.0.2")
    same(dns(p, "WWW.example.ORG"), "0 1 198.18.0.2")
    same(dns(p, "two.example.org"), "0 1 198.18.0.3")
    for kind in (28, 16, 15, 65, 64, 255, 33):
        same(dns(p, "www.example.org", kind), "0 0 -", kind)
    same(dns(p, "evil.test"), "3 0 -")
    same(dns(p, "a.b.example.org"), "3 0 -")
    same(dns(p, "secret-data.evil.test", 16), "3 0 -")
    r = g.record(kind="lookup", name="evil.test")
    same((r.decision, r.reason, r.proto, r.count), ("deny", "no_rule", "dns", 1))
    g.record(kind="lookup", name="secret-data.evil.test")
    same(p.world.log("dns"), [], "questions that went out")


@test("DNS: any server that is asked answers, by TCP too")
def _(p):
    p.gate(ALLOW)
    for server in ("8.8.8.8", "9.9.9.9", "198.18.0.1", "2001:4860:4860::8888"):
        same(dns(p, "www.example.org", server=server), "0 1 198.18.0.2", server)
        same(dns(p, "www.example.org", server=server, tcp=True), "0 1 198.18.0.2", server)


@test("DNS: a flood of names below a wildcard is cut, and told as one")
def _(p):
    g = p.gate({"allow": ["**.example.org"]})
    code = "import socket\nn = 0\nfor i in range(400):\n  try: socket.gethostbyname('x%d.example.org' % i); n += 1\n  except OSError: pass\nprint(n)"
    begin = time.monotonic()
    n = int(p.box.python(code, timeout=60).out)
    check(300 <= n <= 310 + 5 * (time.monotonic() - begin), n)  # 300 a minute
    r = g.record(kind="lookup", reason="budget")
    g.no_record(kind="lookup", reason="no_rule")
    check(r.name.endswith(".example.org"), r)


@test("DNS: many alike are one record for a while")
def _(p):
    g = p.gate(ALLOW)
    p.box.python("import socket\nfor i in range(50):\n  try: socket.gethostbyname('evil.test')\n  except OSError: pass")
    first = g.record(kind="lookup", name="evil.test")
    rest = g.record(kind="lookup", name="evil.test")
    same(first.count, 1)
    check(rest.count >= 49, rest.count)


# ---- decisions -------------------------------------------------------------------------------

@test("TLS to an allowed name passes, with one record when it opens and one when it ends")
def _(p):
    g = p.gate(ALLOW)
    r = p.box.curl("--cacert", p.ca, "https://www.example.org/x")
    same(r.rc, 0, r.err)
    opened = g.record(kind="opened")
    same((opened.name, opened.sni, opened.alpn, opened.proto, opened.decision, opened.reason, opened.port, opened.dst, opened.real, opened.rule),
         ("www.example.org", "www.example.org", "h2,http/1.1", "tls", "allow", "none", 443, "198.18.0.2", PUBLIC, "allow: *.example.org"))
    closed = g.record(kind="closed")
    same(closed.seq, opened.seq)
    check(closed.bytes_up > 300 and closed.bytes_down > 1000, closed)
    same(p.world.log("tls")[0]["sni"], "www.example.org")


@test("an unlisted name fails at once")
def _(p):
    p.gate(ALLOW)
    start = time.monotonic()
    r = p.box.curl("https://www.evil.test/")
    same(r.rc, 6)
    check(time.monotonic() - start < lib.AT_ONCE, "slow")


@test("addresses without a name are reset, in all spellings and families")
def _(p):
    g = p.gate(ALLOW)
    for url in (f"https://{PUBLIC}/", "http://1572395042/", "http://0x5db8d822/", "http://0135.0270.0330.042/", f"http://[{PUBLIC6}]/", "http://169.254.169.254/latest",
                "http://198.18.0.77/", "http://10.1.2.3/", "http://[::ffff:93.184.216.34]/"):
        r = p.box.curl(url)
        check(r.rc in (7, 35, 52, 55, 56), f"{url}: {r.rc} {r.err}")  # whichever step the reset comes at
    for dst, reason in ((PUBLIC, "literal"), (PUBLIC6, "literal"), ("169.254.169.254", "metadata"), ("198.18.0.77", "literal"), ("10.1.2.3", "literal")):
        r = g.record(kind="closed", dst=dst)
        same((r.decision, r.reason, r.close_by), ("deny", reason, "gate"), dst)
    same(p.world.log("connect"), [])


@test("SNI must be the name; none is not enough")
def _(p):
    g = p.gate(ALLOW)
    r = p.box.curl("--cacert", p.ca, "--connect-to", "other.example.net:443:www.example.org:443", "https://other.example.net/")
    check(r.rc in (35, 55, 56), r.rc)
    same(g.record(kind="closed").reason, "name_mismatch")
    r = p.box.run("openssl", "s_client", "-connect", "www.example.org:443", "-noservername")
    r2 = g.record(kind="closed")
    same((r2.reason, r2.proto), ("no_sni", "tls"))
    same(p.world.log("connect"), [])


@test("bytes that are not TLS do not pass on 443, garbage that looks like TLS nowhere")
def _(p):
    g = p.gate(ALLOW)
    same(talk(p, "www.example.org", 443, "SSH-2.0-x\\r\\n", True), "RESET")
    same(g.record(kind="closed").reason, "protocol")
    same(talk(p, "www.example.org", 8443, "\\x16\\x03\\x01\\x00\\x04abcd", True), "RESET")
    same(g.record(kind="closed").reason, "tls")
    same(p.world.log("connect"), [])


@test("a deny rule wins; a rule with a port is about that port")
def _(p):
    g = p.gate({"allow": ["*.example.org:443"], "deny": ["two.example.org"]})
    same(dns(p, "two.example.org"), "3 0 -")
    same(g.record(kind="lookup").reason, "rule")
    same(talk(p, "www.example.org", 5432, "hello\\n"), "RESET")
    same(g.record(kind="closed").reason, "no_rule")
    same(p.box.curl("--cacert", p.ca, "https://www.example.org/").rc, 0)


@test("a hello in pieces is judged when it is whole, and costs nothing meanwhile")
def _(p):
    g = p.gate(ALLOW)
    code = r'''
import socket, ssl, sys, time
i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
c = ssl.create_default_context().wrap_bio(i, o, server_hostname="www.example.org")
try: c.do_handshake()
except ssl.SSLWantReadError: pass
hello = o.read()
s = socket.create_connection(("www.example.org", 443))
for b in range(0, len(hello), 100): s.sendall(hello[b:b+100]); time.sleep(0.05)
s.settimeout(40); print(s.recv(5)[0])
'''
    r = p.box.python(code)
    same(r.out.strip(), "22", r.err)
    code = "import socket,time\ns = socket.create_connection(('www.example.org', 443)); s.sendall(b'\\x16\\x03\\x01\\x02'); time.sleep(3)"
    before = cpu_of(g.child())
    p.box.python(code)
    check(cpu_of(g.child()) - before < 0.2, "it spins")


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@test("a client that says nothing is reset after a while on 443")
def _(p):
    g = p.gate(ALLOW)
    start = time.monotonic()
    r = p.box.python("import socket\ns = socket.create_connection(('www.example.org', 443)); s.settimeout(60)\ntry: print(s.recv(1))\nexcept ConnectionResetError: print('RESET')")
    same(r.out.strip(), "RESET")
    check(9 < time.monotonic() - start < 50)
    same(g.record(kind="closed").reason, "silent")


@test("a server that speaks first is heard, and the client is judged when it speaks")
def _(p):
    g = p.gate(ALLOW)
    code = r'''
import socket, sys
s = socket.create_connection(("www.example.org", 25), timeout=40)
print(s.recv(100).decode().strip())
s.sendall(sys.argv[1].encode().decode("unicode_escape").encode("latin-1"))
try: print(s.recv(100).decode("latin-1").strip())
except OSError: print('RESET')
'''
    same(p.box.python(code, "EHLO me\\r\\n").out.split("\n")[:2], ["220 ready", "250 EHLO me"])
    same(g.record(kind="closed").proto, "tcp")
    same(p.box.python(code, "GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n").out.split("\n")[:2], ["220 ready", "RESET"])
    r = g.record(kind="closed")
    check(r.reason in ("protocol", "name_mismatch"), r.reason)


@test("SSH and other protocols pass where no port is special")
def _(p):
    g = p.gate(ALLOW)
    check("250 SSH-2.0-x" in talk(p, "www.example.org", 22, "SSH-2.0-x\\r\\n", True), "no answer")
    same(g.record(kind="closed").proto, "ssh")
    same(talk(p, "www.example.org", 5432, "\\x00\\x00\\x00\\x08\\x04\\xd2\\x16\\x2f"), "\x00\x00\x00\x08\x04\xd2\x16\x2f")


@test("a cidr rule reaches an address, and no other port")
def _(p):
    g = p.gate({"cidr": [f"{PUBLIC}/32:5432"]})
    same(talk(p, PUBLIC, 5432, "hello\\n"), "hello\n")
    same(g.record(kind="opened").rule, f"cidr: {PUBLIC}/32:5432")
    same(talk(p, PUBLIC, 7, "hello\\n"), "RESET")


# ---- upstream --------------------------------------------------------------------------------

@test("names that lead to special addresses are not dialled; metadata never")
def _(p):
    g = p.gate(ALLOW, grant=["169.254.0.0/16"])
    for name, reason in (("private", "special"), ("meta", "metadata"), ("own", "special")):
        same(talk(p, f"{name}.example.org", 5432, "hello\\n"), "RESET", name)
        r = g.record(kind="closed", name=f"{name}.example.org")
        same((r.reason, r.decision), (reason, "deny"), name)
    same(p.world.log("connect"), [])
    same(talk(p, "mixed.example.org", 5432, "hello\\n"), "RESET", "public and private: none of them")
    same(g.record(kind="closed", name="mixed.example.org").reason, "special")
    same(p.world.log("connect"), [])
    same(talk(p, "www.example.org", 5432, "hello\\n"), "hello\n", "the control")


@test("an address that the host gets while a gate runs is the host's from then on")
def _(p):
    late = "93.184.216.99"
    p.world.say(do="zone", zone={**ZONE, "late.example.org": [late]})
    g = p.gate(ALLOW)
    same(talk(p, "www.example.org", 5432, "hello\\n"), "hello\n", "it serves")
    subprocess.check_call(["ip", "addr", "add", f"{late}/32", "dev", "lo"])
    try:
        with socket.create_server((late, 5432)) as s:
            socket.create_connection((late, 5432), 5).close()  # the control: somebody listens
            s.accept()[0].close()
            same(talk(p, "late.example.org", 5432, "hello\\n"), "RESET", "denied")
            same(g.record(kind="closed", name="late.example.org").reason, "special")
            s.settimeout(0.2)
            try:
                s.accept()
                check(False, "it was dialled")
            except TimeoutError:
                pass
    finally:
        subprocess.check_call(["ip", "addr", "del", f"{late}/32", "dev", "lo"])


@test("rebinding: another answer at the second lookup is checked again")
def _(p):
    g = p.gate(ALLOW)
    same(talk(p, "www.example.org", 5432, "hello\\n"), "hello\n")
    for address, reason in (("10.1.2.3", "special"), ("169.254.169.254", "metadata"), ("127.0.0.1", "special")):
        p.world.say(do="zone", zone={**ZONE, "www.example.org": [address]})
        time.sleep(2.2)  # the answer before is kept for so long
        same(talk(p, "www.example.org", 5432, "hello\\n"), "RESET", address)
        same(g.record(kind="closed", name="www.example.org", decision="deny").reason, reason)
    same({e["to"] for e in p.world.log("connect")}, {PUBLIC})


@test("what the operator grants is dialled")
def _(p):
    p.gate(ALLOW, grant=["10.1.2.0/24"])
    same(talk(p, "private.example.org", 5432, "hello\\n"), "hello\n")


@test("the next address is tried when the first is silent; IPv6 comes first")
def _(p):
    g = p.gate(ALLOW)
    same(talk(p, "two.example.org", 5432, "hello\\n"), "hello\n")
    same(p.world.log("connect")[0]["to"], PUBLIC6)
    start = time.monotonic()
    same(talk(p, "dead.example.org", 5432, "hello\\n"), "hello\n")
    check(time.monotonic() - start < 15, "slow")  # all of it may take 20
    g.record(kind="opened", real=PUBLIC)


@test("no such name upstream, nobody there, no resolver: reset, and why")
def _(p):
    g = p.gate(ALLOW)
    same(talk(p, "missing.example.org", 5432, "hello\\n"), "RESET")
    r = g.record(kind="closed", name="missing.example.org")
    same((r.reason, r.decision), ("unresolved", "allow"))
    same(talk(p, "www.example.org", 6666, "hello\\n"), "RESET")
    same(g.record(kind="closed", name="www.example.org").reason, "unreachable")


@test("/etc/hosts counts, search domains do not")
def _(p):
    p.gate(ALLOW)
    same(talk(p, "hosts.example.org", 5432, "hello\\n"), "hello\n")
    same(p.world.log("dns"), [])


@test("a company's HTTP proxy gets the name; not a byte behind its answer is lost")
def _(p):
    g = p.gate(ALLOW, proxy="http://proxy.example.net:3128")
    check(talk(p, "www.example.org", 5432, "hello\\n", True).startswith("hello from www.example.org:5432\nhello"), "lost")
    same([e["name"] for e in p.world.log("dns") if "www" in e["name"]], [])
    same(p.world.log("proxy")[0]["line"], "CONNECT www.example.org:5432 HTTP/1.1")
    same(g.record(kind="opened").real, "10.1.2.3")


@test("a company's SOCKS proxy gets the name")
def _(p):
    p.gate({"allow": ["*.example.org"], "cidr": [f"{PUBLIC}/32"]}, proxy="socks5://10.1.2.3:1080")
    same(talk(p, "www.example.org", 5432, "hello\\n", True), "hello from socks\nhello\n")
    e = p.world.log("socks")[0]
    same((e["name"], e["port"], e["type"]), ("www.example.org", 5432, 3))
    same(talk(p, PUBLIC, 5432, "hello\\n", True), "hello from socks\nhello\n")


# ---- bytes -----------------------------------------------------------------------------------

MOVE = r'''
import socket, sys, hashlib, os, threading
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60)
n = int(sys.argv[3])
block = b"\0" + os.urandom((1 << 20) - 1)
up, down = hashlib.sha256(), hashlib.sha256()
def send():
    left = n
    while left > 0:
        s.sendall(block[:left]); up.update(block[:left]); left -= min(left, len(block))
    s.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
got = 0
while (data := s.recv(1 << 20)): down.update(data); got += len(data)
t.join()
print(up.hexdigest() == down.hexdigest() or got)
'''


@test("bytes arrive whole both ways at once, with an end in each direction")
def _(p):
    g = p.gate(ALLOW)
    same(p.box.python(MOVE, "www.example.org", "5432", str(40 << 20), timeout=60).out.strip(), "True")
    r = g.record(kind="closed")
    same((r.bytes_up, r.bytes_down, r.close_by), (40 << 20, 40 << 20, "client"))


@test("an end is carried: all is sent, then the answer comes")
def _(p):
    p.gate(ALLOW)
    code = "import socket\ns = socket.create_connection(('www.example.org', 9000))\nfor i in range(100): s.sendall(b'x' * 100000)\ns.shutdown(1)\nprint(s.recv(100).decode())"
    same(p.box.python(code).out.strip(), "10000000")


@test("a server that does not read stops the client, and memory stays small")
def _(p):
    g = p.gate(ALLOW)
    code = "import socket\ns = socket.create_connection(('www.example.org', 9002)); s.settimeout(2); n = 0\ntry:\n  while True: n += s.send(b'\\0' * 65536)\nexcept OSError: print(n)"
    n = int(p.box.python(code).out)
    check(n < 64 << 20, n)
    check(rss_of(g.child()) < 30 << 20, rss_of(g.child()))


def rss_of(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * 4096


@test("a reset of one side reaches the other")
def _(p):
    g = p.gate(ALLOW)
    code = "import socket,struct,time\ns = socket.create_connection(('www.example.org', 5432)); s.sendall(b'hi\\n'); s.recv(3)\ns.setsockopt(1, 13, struct.pack('ii', 1, 0)); s.close()"
    p.box.python(code)
    same(g.record(kind="closed").close_by, "client")


# Inside: sends or takes so many bytes by each of some connections; prints seconds and bytes of each.
PACED = r'''
import socket, sys, threading, time
host, n, count, way = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
begin, got = time.monotonic(), [0] * count
def one(i):
    s = socket.create_connection((host, 5432), timeout=60)
    def send():
        for _ in range(n // 8192): s.sendall(b"x" * 8191 + b"\n")
        s.shutdown(socket.SHUT_WR)
    threading.Thread(target=send, daemon=True).start()
    while (d := s.recv(65536)):
        got[i] += len(d)
        if way == "half" and i == 0 and got[0] >= n // 2 and not half: half.extend(got)
half = []
ts = [threading.Thread(target=one, args=(i,)) for i in range(count)]
_ = [t.start() for t in ts], [t.join() for t in ts]
print(time.monotonic() - begin, *got, *half)
'''


@test("bytes pass as fast as the rules say, all connections together, and each gets its share; also after new rules and in the next child")
def _(p):
    def run(n, count, way="all"):
        r = p.box.python(PACED, "www.example.org", str(n), str(count), way)
        check(r.rc == 0 and r.out, r.err)
        seconds, *got = r.out.split()
        same([int(x) for x in got[:count]], [n] * count, "all of it came back")
        return float(seconds), [int(x) for x in got[count:]]
    mib = 1 << 20
    g = p.gate(ALLOW)
    control, _ = run(2 * mib, 1)
    for rate, count in (({"up": "1m/s"}, 1), ({"down": "1m/s"}, 1), ({"up": "1m/s"}, 4)):
        same(g.rules({"net": {**ALLOW, "rate": rate}}).is_refused, 0)
        took, half = run(2 * mib // count, count, "half")
        check(1.6 < took < 8 and took > 2 * control, f"{rate} by {count}: {took:.2f} s for 2 MiB; without: {control:.2f} s")
        check(count == 1 or min(half) > max(half) // 4, f"shares when the first had half of its own: {half}")
    g.p.kill()
    g.p.wait()
    g = p.gate({**ALLOW, "rate": {"down": "1m/s"}})
    took, _ = run(2 * mib, 1)
    check(1.6 < took < 8, f"the next child: {took:.2f} s")
    same(g.rules({"net": ALLOW}).is_refused, 0)
    took, _ = run(2 * mib, 1)
    check(took < 1.5, f"without a rate again: {took:.2f} s")


@test("bytes up and down have a budget for the sandbox's life, also across children")
def _(p):
    names = os.memfd_create("names")
    g = p.gate({"allow": ["*.example.org"], "rate": {"bytes_up": "1m"}}, names=names)
    code = "import socket\ns = socket.create_connection(('www.example.org', 9000)); n = 0\ntry:\n  while True: n += s.send(b'\\0' * 1000)\nexcept OSError: print('RESET')"
    same(p.box.python(code).out.strip(), "RESET")
    r = g.record(kind="closed")
    same((r.reason, r.bytes_up), ("budget", 1 << 20))
    g.stop()
    g = p.gate({"allow": ["*.example.org"], "rate": {"bytes_up": "1m"}}, names=names)
    same(talk(p, "www.example.org", 5432, "x\\n", True), "RESET")


@test("connections have a budget; what is over it is told as one")
def _(p):
    g = p.gate({"allow": ["*.example.org"], "rate": {"connections": "5/h"}})
    out = [talk(p, "www.example.org", 5432, "hello\\n") for _ in range(8)]
    same(out.count("hello\n"), 5)
    r = g.record(kind="closed", reason="budget")
    check(r.count in (1, 2, 3), r.count)


@test("without credit nothing opens; afterwards one record says how many")
def _(p):
    g = p.gate(ALLOW, credit=2)
    same(talk(p, "www.example.org", 5432, "hello\\n"), "hello\n")
    for _ in range(3):
        same(talk(p, "www.example.org", 5432, "hello\\n"), "RESET")
    g.give_credit(10)
    same(talk(p, "www.example.org", 5432, "hello\\n"), "hello\n")
    r = g.record(kind="closed", reason="spool")
    same((r.count, r.decision), (3, "deny"))


# ---- asks ------------------------------------------------------------------------------------

@test("ask: the client waits; one question for all; allowed")
def _(p):
    g = p.gate({"ask": ["*.example.org"]})
    runs = [p.box.start(lib.sys.executable, "-c", TALK, "www.example.org", "5432", "hello\\n") for _ in range(3)]
    a = g.ask()
    same((a.name, a.port, a.rule, a.ms), ("www.example.org", 5432, "ask: *.example.org", 300000))
    count = "print(sum(l.split()[2].endswith(':1538') and l.split()[3] == '01' for l in open('/proc/net/tcp')))"  # to port 5432, established
    deadline = time.monotonic() + lib.PATIENCE
    while int(p.box.python(count).out) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    check(not [o for o in g.others if o[0] == lib.ASK], "asked twice")
    same(p.world.log("connect"), [])
    g.answer(a.ask, True)
    same([p.box.wait(n).out for n in runs], ["hello\n"] * 3)
    same(g.record(kind="closed").decision, "ask_allow")


@test("ask: denied, timed out, left")
def _(p):
    g = p.gate({"ask": ["*.example.org"]}, ask_ms=3000)
    n = p.box.start(lib.sys.executable, "-c", TALK, "www.example.org", "5432", "hello\\n")
    g.answer(g.ask().ask, False)
    same(p.box.wait(n).out, "RESET")
    r = g.record(kind="closed")
    same((r.decision, r.reason), ("ask_deny", "ask_denied"))
    same(talk(p, "www.example.org", 5432, "hello\\n"), "RESET")
    same(g.record(kind="closed").reason, "ask_timeout")
    a = g.ask()
    g.answer(a.ask, True)  # after its end: nothing
    p.box.python("import socket\ns = socket.create_connection(('two.example.org', 5432)); s.close()")
    r = g.record(kind="closed", name="two.example.org")
    same((r.decision, r.close_by), ("ask_deny", "client"))
    same(p.world.log("connect"), [])


@test("ask: withdrawn when nobody waits any more; who comes back in time joins it; an answer then changes nothing")
def _(p):
    g = p.gate({"ask": ["*.example.org"]})
    visit = "import socket,time\nfor i in range(2):  # again, soon enough\n  s = socket.create_connection(('www.example.org', 5432)); time.sleep(0.3); s.close()"
    n = p.box.start(lib.sys.executable, "-c", visit)
    a = g.ask()
    p.box.wait(n)
    check(not [o for o in g.others if o[0] in (lib.ASK, lib.UNASK)], "asked or withdrawn too soon")
    same(g.unask(), a.ask)
    n = p.box.start(lib.sys.executable, "-c", TALK, "www.example.org", "5432", "hello\\n")
    b = g.ask()
    check(b.ask != a.ask, "the same number")
    g.answer(a.ask, True)
    time.sleep(0.5)
    same(p.world.log("connect"), [])
    g.answer(b.ask, True)
    same(p.box.wait(n).out, "hello\n")
    p.box.start(lib.sys.executable, "-c", TALK, "two.example.org", "5432", "hello\\n")
    a = g.ask()
    g.rules({"net": {"allow": ["two.example.org"]}})  # it needs no answer any more
    same(g.unask(), a.ask)


@test("ask: a flood is bounded")
def _(p):
    g = p.gate({"ask": ["**.example.org"]})
    code = "import socket,time\nk = []\nfor i in range(80):\n  try: k.append(socket.create_connection(('n%d.example.org' % i, 5432)))\n  except OSError: pass\ntime.sleep(1)"
    p.box.python(code)
    same(len([r for r in [g.record(kind="closed", reason="ask_full") for _ in range(16)]]), 16)
    code = "import socket,time\nk = []\nfor i in range(300):\n  try: k.append(socket.create_connection(('n0.example.org', 5432)))\n  except OSError: pass\ntime.sleep(1)"
    g.give_credit(1000)
    p.box.python(code)
    for _ in range(44):
        g.record(kind="closed", reason="ask_full")


# ---- rules anew, deaths ----------------------------------------------------------------------

@test("reload: tighter rules close what is open, at once")
def _(p):
    g = p.gate(ALLOW)
    n = p.box.start(lib.sys.executable, "-c", "import socket\ns = socket.create_connection(('www.example.org', 5432)); s.sendall(b'hi\\n'); s.recv(3)\ntry: s.recv(1)\nexcept ConnectionResetError: print('RESET')")
    g.record(kind="opened")
    time.sleep(0.3)
    r = g.rules({"net": {"allow": ["two.example.org"]}})
    same((r.is_refused, r.closed, r.generation), (0, 1, 2))
    same(p.box.wait(n).out.strip(), "RESET")
    same(g.record(kind="closed").reason, "reloaded")
    same(dns(p, "www.example.org"), "3 0 -")


@test("reload: what is still allowed stays open; a broken document changes nothing and says so")
def _(p):
    g = p.gate(ALLOW)
    code = "import socket,time\ns = socket.create_connection(('www.example.org', 5432)); s.sendall(b'hi\\n'); s.recv(3); time.sleep(1.5); s.sendall(b'ho'); print(s.recv(2).decode())"
    n = p.box.start(lib.sys.executable, "-c", code)
    g.record(kind="opened")
    for bad in (b"", b"{", b"{}", b'{"net": {"allow": ["not a host"]}}', b'{"net": {}, "nonsense": 1}', b"x" * (1 << 20 | 1)):
        r = g.rules(bad)
        check(r.is_refused == 1 and r.reason, f"{bad[:20]}: {r}")
    same(g.rules({"net": {"allow": ["www.example.org"]}}).closed, 0)
    same(p.box.wait(n).out.strip(), "ho")


@test("reload: held connections follow")
def _(p):
    g = p.gate({"ask": ["*.example.org"]})
    n = p.box.start(lib.sys.executable, "-c", TALK, "www.example.org", "5432", "hello\\n")
    g.ask()
    g.rules({"net": ALLOW})
    same(p.box.wait(n).out, "hello\n")


@test("a child that is killed is replaced, and every address means the same")
def _(p):
    g = p.gate(ALLOW)
    same(dns(p, "two.example.org"), "0 1 198.18.0.2")
    same(dns(p, "www.example.org"), "0 1 198.18.0.3")
    seq = None
    same(talk(p, "198.18.0.3", 5432, "hello\\n"), "hello\n")
    seq = g.record(kind="opened").seq
    os.kill(g.child(), signal.SIGKILL)
    n = p.box.start(lib.sys.executable, "-c", TALK, "198.18.0.3", "5432", "hello\\n")  # waits in the listener's queue
    time.sleep(0.3)
    same(p.world.log("connect")[1:], [])
    g.connect({"net": ALLOW})
    same(p.box.wait(n).out, "hello\n")
    r = g.record(kind="opened")
    same(r.name, "www.example.org")
    check(r.seq > seq, r.seq)
    same(dns(p, "two.example.org"), "0 1 198.18.0.2")


@test("master: ends with the launcher, children with it; nothing of one is in another")
def _(p):
    g = p.gate(ALLOW)
    child = g.child()
    fds = os.listdir(f"/proc/{child}/fd")
    check(len(fds) < 20, fds)
    g.launcher.close()
    same(g.p.wait(lib.PATIENCE), 0)
    for _ in range(20 * lib.PATIENCE):
        if not os.path.exists(f"/proc/{child}") or "Z" in open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0]:
            break
        time.sleep(0.05)
    else:
        raise lib.Failed("the child lives on")
    g.s.close()


@test("the child has given up what it has no use for")
def _(p):
    g = p.gate(ALLOW)
    status = open(f"/proc/{g.child()}/status").read()
    field = lambda name: re.search(rf"^{name}:\s+(\S+)", status, re.M).group(1)
    same((field("NoNewPrivs"), field("Seccomp"), field("Seccomp_filters")), ("1", "2", "2"))


if __name__ == "__main__":
    lib.main(ZONE)
