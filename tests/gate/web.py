#!/usr/bin/env python3
"""caisson-gate alone: HTTP in plain text, and TLS that ends at the gate. TAP.

    tests/gate/web.py            all; needs user namespaces, no rights
    tests/gate/web.py smuggl     those with the word in their title
"""
import base64
import json
import os
import re
import time

import lib
from lib import check, same, test

PUBLIC, OTHER = "93.184.216.34", "93.184.216.35"
ZONE = {name: [PUBLIC] for name in ("www.example.org", "two.example.org", "gone.example.org", "a.api.test")}
ZONE["other.example.net"] = [OTHER]
ZONE["private.example.org"] = ["10.1.2.3"]
ALLOW = {"allow": ["*.example.org"]}

# Inside: sends bytes (base64) to host port, prints what came until the end, or a moment longer than the last of it.
RAW = r'''
import base64, socket, ssl, sys
host, port, data, last = sys.argv[1], int(sys.argv[2]), base64.b64decode(sys.argv[3]), base64.b64decode(sys.argv[4])
out = b""
try:
    s = socket.create_connection((host, port), timeout=40)
    if len(sys.argv) > 5:
        c = ssl.create_default_context(cafile=sys.argv[5]); c.set_alpn_protocols(["http/1.1"])
        s = c.wrap_socket(s, server_hostname=sys.argv[6] if len(sys.argv) > 6 else host)
    s.sendall(data)
    while (d := s.recv(65536)):
        out += d
        if last and last in out: s.settimeout(0.5)  # is there more?
except TimeoutError: pass
except OSError as e: out += b"RESET"
sys.stdout.buffer.write(out)
'''


def raw(p, data, host="www.example.org", port=80, last="", tls=()):
    if isinstance(data, str):
        data = data.encode("latin-1")
    return p.box.python(RAW, host, str(port), base64.b64encode(data).decode(), base64.b64encode(last.encode()).decode(), *tls).out


def get(path="/", host="www.example.org", fields="", method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n"


def statuses(text):
    return re.findall(r"HTTP/1\.1 (\d\d\d)", text)


# ---- plain -----------------------------------------------------------------------------------

@test("plain HTTP passes, printed anew, and what is about the connection stays here")
def _(p):
    g = p.gate(ALLOW)
    r = p.box.curl("-H", "X-One: 1", "-H", "Connection: X-Two", "-H", "X-Two: 2", "-H", "Proxy-Authorization: x", "-d", "body", "http://www.example.org/a?b=c")
    same(r.rc, 0, r.err)
    seen = json.loads(r.out)
    same(seen["line"], "POST /a?b=c HTTP/1.1")
    names = [k for k, _ in seen["fields"]]
    same(names[0], "Host")
    check("X-One" in names and "X-Two" not in names and "Proxy-Authorization" not in names, names)
    same(seen["bytes"], 4)
    opened, closed = g.record(kind="opened"), g.record(kind="closed")
    same((opened.proto, opened.name, opened.rule, closed.reason, closed.seq), ("http", "www.example.org", "allow: *.example.org", "none", opened.seq))
    g.no_record(kind="request")


@test("Host must be the name, in every request and every form")
def _(p):
    g = p.gate(ALLOW)
    ok, bad = get(), get(host="two.example.org")
    same(statuses(raw(p, bad)), ["421"])
    r = g.record(kind="closed")
    same((r.decision, r.reason, r.proto), ("deny", "name_mismatch", "http"))
    same(statuses(raw(p, ok + bad)), ["200", "421"])
    same(statuses(raw(p, "GET http://two.example.org/ HTTP/1.1\r\nHost: two.example.org\r\n\r\n")), ["421"])
    same(statuses(raw(p, "GET http://www.example.org/x HTTP/1.1\r\nHost: two.example.org\r\n\r\n")), ["400"])
    same(statuses(raw(p, "GET https://www.example.org/x HTTP/1.1\r\nHost: www.example.org\r\n\r\n")), ["400"])
    same(statuses(raw(p, "GET / HTTP/1.0\r\n\r\n")), ["421"])
    same(statuses(raw(p, get(host="www.example.org:8080"))), ["421"])
    same(statuses(raw(p, get(host="www.example.org:80") + get("/last", host="WWW.Example.org."), last="GET /last")), ["200", "200"])
    same(statuses(raw(p, "GET http://www.example.org/abs HTTP/1.1\r\nHost: www.example.org\r\n\r\n", last="GET /abs")), ["200"])
    lines = [e["line"] for e in p.world.log("request")]
    check("GET /abs HTTP/1.1" in lines and not [x for x in lines if "two" in x], lines)


@test("what two programs could read in two ways is refused")
def _(p):
    p.gate(ALLOW)
    host = "Host: www.example.org\r\n"
    for case in ("GET / HTTP/1.1\r\nHost: www.example.org\r\nHost: www.example.org\r\n\r\n",
                 f"POST / HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 f"POST / HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
                 f"POST / HTTP/1.1\r\n{host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
                 f"POST / HTTP/1.1\r\n{host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                 f"GET / HTTP/1.1\r\n{host}X: a\r\n b\r\n\r\n",
                 f"GET / HTTP/1.1\n{host}\r\n", f"GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n",
                 f"GET  / HTTP/1.1\r\n{host}\r\n", f"get / http/1.1\r\n{host}\r\n", f"GET / HTTP/2.0\r\n{host}\r\n",
                 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 f"POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nx\r\n",
                 f"\r\nGET / HTTP/1.1\r\n{host}\r\n"):
        got = statuses(raw(p, case))
        check(got and got[0][0] in "45", f"{case!r}: {got}")
    same([e["line"] for e in p.world.log("request") if e["line"].startswith("GET")], [])


@test("CONNECT and TRACE are refused: an allowed host is not a proxy")
def _(p):
    g = p.gate(ALLOW)
    same(statuses(raw(p, "CONNECT www.example.org:80 HTTP/1.1\r\nHost: www.example.org:80\r\n\r\n")), ["403"])
    same(statuses(raw(p, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n")), ["421"])
    same(statuses(raw(p, get(method="TRACE"))), ["403"])
    same(g.record(kind="closed").decision, "deny")
    same(p.world.log("request"), [])


@test("many requests on one connection, pipelined too")
def _(p):
    g = p.gate(ALLOW)
    out = raw(p, "".join(get(f"/{i}") for i in range(20)), last="GET /19 ")
    same(statuses(out), ["200"] * 20)
    same(re.findall(r"GET /(\d+) ", out), [str(i) for i in range(20)])
    same(len(p.world.log("connect")), 1)
    g.record(kind="closed")


@test("bodies: long ones both ways, chunked with trailers, 100-continue, an early answer")
def _(p):
    g = p.gate(ALLOW)
    big = f"{p.folder}/big"
    with open(big, "wb") as f:
        f.write(os.urandom(8 << 20))
    r = p.box.curl("-T", big, "http://www.example.org/up")
    same(json.loads(r.out)["bytes"], 8 << 20)
    r = p.box.curl("-H", "Transfer-Encoding: chunked", "-T", big, "http://www.example.org/up")
    same(json.loads(r.out)["bytes"], 8 << 20)
    r = p.box.curl("-o", "/dev/null", "-w", "%{size_download}", "http://www.example.org/big/50000000")
    same(r.out, "50000000")
    r = p.box.curl("-H", "Expect: 100-continue", "-d", "x" * 2000, "-v", "http://www.example.org/up")
    check("100 Continue" in r.err and json.loads(r.out)["bytes"] == 2000, r.err)
    r = p.box.curl("-T", big, "-H", "Expect:", "-w", "%{http_code}", "http://www.example.org/early")
    check("413" in r.out, r.out + r.err)
    out = raw(p, get(fields="Transfer-Encoding: chunked\r\n", method="POST") + "5;ext=1\r\nhello\r\n0\r\nX-Sum: 1\r\nHost: evil\r\n\r\n", last='"sha": ')
    seen = json.loads(out[out.index("{"):])
    same((seen["bytes"], seen["trailers"]), (5, ["X-Sum: 1"]))
    out = raw(p, get("/chunks"), last="X-Sum: 3\r\n\r\n")
    check(out.endswith("0\r\nX-Sum: 3\r\n\r\n") and "three" in out, out)


@test("events come when they are sent, not when all have been")
def _(p):
    p.gate(ALLOW)
    code = r'''
import http.client
c, other = (http.client.HTTPConnection("www.example.org") for _ in range(2))
c.request("GET", "/events/5")
r = c.getresponse(); n = 0
while (line := r.readline()):
    if line.startswith(b"data"): n += 1; other.request("GET", "/seen"); other.getresponse().read()
print(n)
'''
    same(p.box.python(code).out.strip(), "5")


@test("WebSocket: behind 101 bytes are bytes, both ways, with ends")
def _(p):
    g = p.gate(ALLOW)
    code = r'''
import socket, sys, os
s = socket.create_connection(("www.example.org", 80), timeout=40)
s.sendall(b"GET /ws HTTP/1.1\r\nHost: www.example.org\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nearly")
f = s.makefile("rb"); head = b""
while (line := f.readline()) != b"\r\n": head += line
assert b"101" in head and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
assert f.read(5) == b"early"
block = os.urandom(1 << 20)
import threading
threading.Thread(target=lambda: (s.sendall(block * 4), s.shutdown(1))).start()
got = f.read()
print(got == block * 4)
'''
    r = p.box.python(code)
    same(r.out.strip(), "True", r.err)
    g.record(kind="closed", reason="none")


@test("an answer that is no HTTP is a 502; two answers to one request are one")
def _(p):
    g = p.gate(ALLOW)
    def answer(text):
        return "/raw/" + base64.urlsafe_b64encode(text.encode()).decode()
    for text in ("nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
                 "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", ""):
        same(statuses(raw(p, get(answer(text)))), ["502"], text)
    out = raw(p, get(answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")) + get("/second"))
    check("evil" not in out and statuses(out) == ["200"], out)
    out = raw(p, get(answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")))
    check(out.endswith("RESET"), out)
    out = raw(p, get(answer("HTTP/1.0 200 OK\r\n\r\nuntil the end")))
    check(out.endswith("until the end") and "Connection: close" in out, out)


@test("HTTP/1.0 clients get an answer without chunks, and an end")
def _(p):
    p.gate(ALLOW)
    out = raw(p, "GET /chunks HTTP/1.0\r\nHost: www.example.org\r\n\r\n")
    check(out.endswith("\r\n\r\none two three") and "Transfer-Encoding" not in out, out)


@test("no such server, a special address: an answer says so")
def _(p):
    g = p.gate(ALLOW)
    same(statuses(raw(p, get(host="gone.example.org:6666"), host="gone.example.org", port=6666)), ["504"])
    same(g.record(kind="closed").reason, "unreachable")
    same(statuses(raw(p, get(host="private.example.org"), host="private.example.org")), ["403"])
    r = g.record(kind="closed")
    same((r.reason, r.decision), ("special", "deny"))
    same(statuses(raw(p, get(host="none.example.org"), host="none.example.org")), ["502"])
    same(g.record(kind="closed").reason, "unresolved")


@test("redirects are not followed here, and judged again when the client does")
def _(p):
    p.gate(ALLOW)
    r = p.box.curl("-L", "http://www.example.org/redirect/evil.test")
    same(r.rc, 6)
    r = p.box.curl("-L", f"http://www.example.org/redirect/{OTHER}")
    check(r.rc in (7, 52, 55, 56), r.rc)
    same(len(p.world.log("request")), 2)


@test("http rules hold for plain HTTP: method, path, and what is ambiguous; each request is told")
def _(p):
    g = p.gate({"http": [{"host": "www.example.org", "methods": ["GET"], "paths": ["/repos/**"]}]})
    same(statuses(raw(p, get("/repos/a?x=/../y") + get("/repos/a", method="POST"))), ["200", "403"])
    a, b = g.record(kind="request", request=1), g.record(kind="request", request=2)
    same((a.method, a.path, a.status, a.decision, a.rule), ("GET", "/repos/a", 200, "allow", "http: www.example.org"))
    same((b.method, b.path, b.status, b.decision, b.reason), ("POST", "/repos/a", 403, "deny", "http_rule"))
    for path in ("/other", "/repos/../other", "/repos/%2e%2e/other", "/repos/..;/x", "/repos//x", "/repos/%2fx", "/repos/a\\b"):
        got = statuses(raw(p, get(path)))
        check(got in (["403"], ["400"]), f"{path}: {got}")
    same([e["line"] for e in p.world.log("request")], ["GET /repos/a?x=/../y HTTP/1.1"])


@test("an address with a cidr rule: a denied name cannot be reached by it")
def _(p):
    g = p.gate({"cidr": [f"{PUBLIC}/32:80"], "deny": ["www.example.org"]})
    same(statuses(raw(p, get(host=PUBLIC), host=PUBLIC, last='"sha": ')), ["200"])
    same(statuses(raw(p, get(host=PUBLIC) + get(), host=PUBLIC)), ["200", "403"])


@test("addresses that are denied: by themselves, and where names lead there")
def _(p):
    g = p.gate({"mode": "allow", "deny_cidr": [f"{PUBLIC}/32"]})
    r = p.box.curl(f"http://{PUBLIC}/")
    check(r.rc in (7, 52, 55, 56), f"by itself: {r.rc} {r.err} {r.out}")
    same(statuses(raw(p, get())), ["403"])
    r = g.record(kind="closed", name="www.example.org")
    same((r.reason, r.decision), ("rule", "deny"))
    same(p.world.log("request"), [])


@test("headers: said by the gate instead of the client, by HTTP and HTTPS, and to nobody else")
def _(p):
    g = p.gate({"allow": ["*.example.org"], "headers": ["www.example.org X-Token: of the gate", "www.example.org X-More: 2"]})
    ca = trust(p, g)
    for url, more in (("http://www.example.org/", ()), ("https://www.example.org/", ("--cacert", ca))):
        r = p.box.curl("-H", "x-token: mine", *more, url)
        same(r.rc, 0, r.err)
        fields = [f for f in json.loads(r.out)["fields"] if f[0].lower() in ("x-token", "x-more")]
        same(fields, [["X-Token", "of the gate"], ["X-More", "2"]], url)
    seen = json.loads(p.box.curl("-H", "X-Token: mine", "http://two.example.org/").out)
    same([f for f in seen["fields"] if f[0] == "X-Token"], [["X-Token", "mine"]], "another host")


@test("slow heads end, and cost nothing")
def _(p):
    g = p.gate(ALLOW)
    before = cpu_of(g.child())
    code = "import socket,time\nk = [socket.create_connection(('www.example.org', 80)) for _ in range(50)]\nfor i in range(20):\n  for s in k: s.sendall(b'GET / HTTP/1.1\\r\\n'[i:i+1] if i < 16 else b'x')\n  time.sleep(0.1)"
    p.box.python(code)
    check(cpu_of(g.child()) - before < 0.5, "it spins")


def cpu_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@test("reload closes a kept connection that is not allowed any more")
def _(p):
    g = p.gate(ALLOW)
    n = p.box.start(lib.sys.executable, "-c", RAW, "www.example.org", "80", base64.b64encode(get().encode()).decode(), "")
    g.record(kind="opened")
    time.sleep(0.3)
    same(g.rules({"net": {"allow": ["two.example.org"]}}).closed, 1)
    check(p.box.wait(n).out.endswith("RESET"), "still open")


# ---- TLS that ends here ----------------------------------------------------------------------

INSPECT = {"allow": ["*.example.org"], "inspect": ["www.example.org", "bad.example.org"]}


def trust(p, g):
    path = f"{p.folder}/sandbox-ca.pem"
    check(g.ca and "BEGIN CERTIFICATE" in g.ca, "no CA")
    with open(path, "w") as f:
        f.write(g.ca)
    return path


@test("TLS: a host that is inspected ends here, with a certificate of the sandbox's own CA")
def _(p):
    g = p.gate(INSPECT)
    ca = trust(p, g)
    r = p.box.curl("-v", "--cacert", ca, "-d", "body", "https://www.example.org/a?b=c")
    same(r.rc, 0, r.err)
    check("ALPN: server accepted http/1.1" in r.err, r.err)
    seen = json.loads(r.out)
    same(seen["line"], "POST /a?b=c HTTP/1.1")
    o, q, c = g.record(kind="opened"), g.record(kind="request"), g.record(kind="closed")
    same((o.proto, o.is_terminated, o.sni, o.alpn, o.rule), ("tls", 1, "www.example.org", "h2,http/1.1", "allow: *.example.org"))
    same((q.method, q.path, q.status, q.request, q.seq), ("POST", "/a", 200, 1, o.seq))
    same((c.seq, c.is_terminated), (o.seq, 1))
    same(p.world.log("tls")[0]["sni"], "www.example.org")
    # others pass through as they are
    same(p.box.curl("--cacert", p.ca, "https://two.example.org/").rc, 0)
    check(p.box.curl("--cacert", ca, "https://two.example.org/").rc == 60, "not its own certificate")


@test("TLS: the certificates are as strict clients want them")
def _(p):
    g = p.gate(INSPECT)
    ca = trust(p, g)
    r = p.box.run("openssl", "s_client", "-connect", "www.example.org:443", "-servername", "www.example.org", "-CAfile", ca, "-x509_strict", "-verify_return_error",
                  "-verify_hostname", "www.example.org", "-showcerts")
    check("Verify return code: 0" in r.out, r.out[-500:] + r.err[-500:])
    leaf = r.out[r.out.index("-----BEGIN"):r.out.index("-----END CERTIFICATE-----") + 26]
    text = p.box.run("openssl", "x509", "-noout", "-text", input=leaf).out
    for part in ("X509v3 Basic Constraints: critical", "CA:FALSE", "Digital Signature", "TLS Web Server Authentication", "X509v3 Subject Key Identifier", "X509v3 Authority Key Identifier",
                 "DNS:www.example.org"):
        check(part in text, f"{part} is missing: {text}")
    text = p.box.run("openssl", "x509", "-noout", "-text", input=g.ca).out
    for part in ("CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "Subject Key Identifier", "Caisson sb_test"):
        check(part in text, f"{part} is missing: {text}")


@test("TLS: the next child has the same CA, another sandbox another one")
def _(p):
    names = os.memfd_create("names")
    g = p.gate(INSPECT, names=names)
    ca = trust(p, g)
    g.stop()
    p.gate(INSPECT, names=names)
    same(p.box.curl("--cacert", ca, "https://www.example.org/").rc, 0)
    p.gates[-1].stop()
    p.gate(INSPECT, ident="sb_other")
    same(p.box.curl("--cacert", ca, "https://www.example.org/").rc, 60)


@test("TLS: servers upstream are verified: name, issuer, date")
def _(p):
    g = p.gate(INSPECT)
    ca = trust(p, g)
    lib.subprocess.check_call(["mount", "--bind", f"{p.folder}/other.pem", "/etc/ssl/certs/ca-certificates.crt"])
    try:
        g.stop()
        g = p.gate(INSPECT)
        r = p.box.curl("--cacert", ca, "-w", "%{http_code}", "https://www.example.org/")
        check(r.out.endswith("502") and "(tls)" in r.out, r.out)
        c = g.record(kind="closed")
        same((c.reason, c.decision), ("tls", "allow"))
        same([e["line"] for e in p.world.log("request")], [])
        g.stop()
        p.gate(INSPECT, args=("--ca", f"{p.folder}/ca.pem"))  # what an operator adds
        same(p.box.curl("--cacert", ca, "https://www.example.org/").rc, 0)
    finally:
        lib.subprocess.check_call(["umount", "/etc/ssl/certs/ca-certificates.crt"])


@test("TLS: the host's list of certificates is read again when it changes, by the next child")
def _(p):
    g = p.gate(INSPECT)
    ca = trust(p, g)

    def answer():
        g.s.close()
        g.connect({"net": INSPECT})
        return p.box.curl("--cacert", ca, "-o", "/dev/null", "-w", "%{http_code}", "https://www.example.org/").out
    same([answer() for _ in range(3)], ["200"] * 3)
    lib.subprocess.check_call(["mount", "--bind", f"{p.folder}/other.pem", "/etc/ssl/certs/ca-certificates.crt"])
    try:
        same([answer() for _ in range(3)], ["502"] * 3)
    finally:
        lib.subprocess.check_call(["umount", "/etc/ssl/certs/ca-certificates.crt"])
    same([answer() for _ in range(3)], ["200"] * 3)


@test("TLS: every request is judged; the inner Host must be the name")
def _(p):
    g = p.gate({"http": [{"host": "www.example.org", "methods": ["GET"], "paths": ["/repos/**"]}]})
    ca = trust(p, g)
    out = raw(p, get("/repos/a") + get("/repos/b") + get("/other"), port=443, tls=(ca,))
    same(statuses(out), ["200", "200", "403"])
    same([g.record(kind="request", request=i).status for i in (1, 2, 3)], [200, 200, 403])
    same(statuses(raw(p, get("/repos/a") + get("/repos/a", host="two.example.org"), port=443, tls=(ca,))), ["200", "421"])
    r = g.record(kind="request", reason="name_mismatch")
    same((r.status, r.decision), (421, "deny"))
    same(statuses(raw(p, "GET http://www.example.org/repos/a HTTP/1.1\r\nHost: www.example.org\r\n\r\n", port=443, tls=(ca,))), ["400"])
    same(statuses(raw(p, get("/repos/a", method="CONNECT"), port=443, tls=(ca,))), ["400"])
    same(len(p.world.log("request")), 3)


@test("TLS: keep-alive, bodies, chunks, events, WebSocket, 100-continue through the gate")
def _(p):
    g = p.gate(INSPECT)
    ca = trust(p, g)
    big = f"{p.folder}/big"
    with open(big, "wb") as f:
        f.write(os.urandom(8 << 20))
    same(json.loads(p.box.curl("--cacert", ca, "-T", big, "https://www.example.org/up").out)["bytes"], 8 << 20)
    same(json.loads(p.box.curl("--cacert", ca, "-H", "Transfer-Encoding: chunked", "-T", big, "https://www.example.org/up").out)["bytes"], 8 << 20)
    same(p.box.curl("--cacert", ca, "-o", "/dev/null", "-w", "%{size_download}", "https://www.example.org/big/30000000").out, "30000000")
    r = p.box.curl("--cacert", ca, "-H", "Expect: 100-continue", "-d", "x" * 2000, "-v", "https://www.example.org/up")
    check("100 Continue" in r.err, r.err)
    r = p.box.curl("--cacert", ca, "-T", big, "-H", "Expect:", "-w", "%{http_code}", "https://www.example.org/early")
    check("413" in r.out, r.out + r.err)
    out = raw(p, get("/chunks") + get("/2"), port=443, last='"sha": ', tls=(ca,))
    check("0\r\nX-Sum: 3\r\n\r\nHTTP/1.1 200" in out, out)
    ws = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    out = raw(p, get("/ws", fields=ws) + "echo me", port=443, last="echo me", tls=(ca,))
    check("101 Switching" in out and out.endswith("echo me"), out)
    code = r'''
import http.client, ssl, sys
c, other = (http.client.HTTPSConnection("www.example.org", context=ssl.create_default_context(cafile=sys.argv[1])) for _ in range(2))
c.request("GET", "/events/5")
r = c.getresponse(); n = 0
while (line := r.readline()):
    if line.startswith(b"data"): n += 1; other.request("GET", "/seen"); other.getresponse().read()
print(n)
'''
    same(p.box.python(code, ca).out.strip(), "5")


@test("TLS: a client that wants only HTTP/2, or speaks no HTTP, is told so")
def _(p):
    g = p.gate(INSPECT)
    ca = trust(p, g)
    r = p.box.run("openssl", "s_client", "-connect", "www.example.org:443", "-servername", "www.example.org", "-CAfile", ca, "-alpn", "h2")
    check("no application protocol" in r.err, r.err[-300:])
    same(g.record(kind="closed").reason, "tls")
    out = raw(p, b"\0\1\2 nonsense\r\n\r\n", port=443, tls=(ca,))
    same(statuses(out), ["400"])
    same(g.record(kind="closed").reason, "http_bad")
    out = raw(p, "SSH-2.0-x\r\n", port=443)
    same(out, "RESET")


@test("TLS: a handshake that stalls costs nothing and ends")
def _(p):
    g = p.gate(INSPECT)
    code = r'''
import socket, ssl, time
i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
c = ssl.create_default_context().wrap_bio(i, o, server_hostname="www.example.org")
try: c.do_handshake()
except ssl.SSLWantReadError: pass
s = socket.create_connection(("www.example.org", 443)); s.sendall(o.read()); time.sleep(2)
'''
    before = cpu_of(g.child())
    p.box.python(code)
    check(cpu_of(g.child()) - before < 0.1, "it spins")
    same(p.world.log("connect"), [])


@test("TLS: rules that come later bring the CA, and close what has passed unread")
def _(p):
    g = p.gate(ALLOW)
    same(g.ca, None)
    n = p.box.start(lib.sys.executable, "-c", RAW, "www.example.org", "443", base64.b64encode(get().encode()).decode(), "", p.ca)
    g.record(kind="opened")
    time.sleep(0.3)
    same(g.rules({"net": INSPECT}).closed, 1)
    p.box.wait(n)
    same(p.box.curl("--cacert", trust(p, g), "https://www.example.org/").rc, 0)


# ---- mocks -----------------------------------------------------------------------------------

MOCK = """answers:
  - {method: GET, path: /v1/users/*, headers: {Content-Type: application/json}, body: '{"name": "mocked"}'}
  - {method: POST, path: /v1/charges, status: 201, body: made, delay: 300ms}
"""


def mocked(p):
    return p.gate({"allow": ["*.example.org"], "mock": {"api.payments.test": "mocks/p.yaml"}}, mocks={"mocks/p.yaml": MOCK})


@test("mock: a name that the gate plays, by HTTP and HTTPS, and nothing leaves")
def _(p):
    g = mocked(p)
    ca = trust(p, g)
    for url in ("http://api.payments.test/v1/users/7", "https://api.payments.test/v1/users/7"):
        r = p.box.curl("--cacert", ca, "-i", url)
        check("200 OK" in r.out and "application/json" in r.out and r.out.endswith('{"name": "mocked"}'), r.out + r.err)
        q = g.record(kind="request")
        same((q.path, q.status, q.rule), ("/v1/users/7", 200, "mock: api.payments.test"))
    start = time.monotonic()
    r = p.box.curl("--cacert", ca, "-d", "x" * 100000, "-w", "%{http_code}", "https://api.payments.test/v1/charges")
    same(r.out, "made201", r.err)
    check(0.3 <= time.monotonic() - start < 40, "no delay")
    same(p.box.curl("--cacert", ca, "-o", "/dev/null", "-w", "%{http_code}", "https://api.payments.test/other").out, "404")
    host = "Host: api.payments.test\r\n"
    out = raw(p, f"GET /v1/users/1 HTTP/1.1\r\n{host}\r\nHEAD /v1/users/2 HTTP/1.1\r\n{host}\r\nPOST /v1/charges HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", host="api.payments.test", last="made")
    same(statuses(out), ["200", "200", "201"])
    same(talk_raw(p, "api.payments.test"), "RESET")
    same([e for e in p.world.log() if e["kind"] != "dns"], [])
    same(p.world.log("dns"), [])


def talk_raw(p, host):
    return raw(p, b"\0\0\0\x08\x04\xd2\x16\x2f", host=host, port=5432)


def folder(**files):
    return json.dumps({"files": {name.replace("__", "/"): base64.b64encode(body).decode() for name, body in files.items()}})


@test("mock: a folder, by HTTP and HTTPS: types, index, what is not there, other methods")
def _(p):
    large = bytes(range(256)) * 8000
    files = {"a__b.json": b"{}", "a__index.html": b"<b>", "bytes.bin": b"\0\1\2", "large": large}
    g = p.gate({"mock": {"api.payments.test": "tree"}}, mocks={"tree": folder(**files)})
    ca = trust(p, g)
    for scheme in ("http", "https"):
        url = f"{scheme}://api.payments.test"
        for path, args, want in (("/a/b.json", (), "200 application/json 2"), ("/a/b.json?q=1", (), "200 application/json 2"),
                                 ("/%61/b%2Djson", (), "404  24"), ("/%61/b.json", (), "200 application/json 2"),
                                 ("/a/", (), "200 text/html; charset=utf-8 3"), ("/a", (), "404  24"), ("/x/", (), "404  24"),
                                 ("/bytes.bin", (), "200 application/octet-stream 3"), ("/a/b.json", ("-I",), "200 application/json 0"),
                                 ("/a/b.json", ("-d", "x"), "405  0")):
            r = p.box.curl("--cacert", ca, *args, "-o", "/dev/null", "-w", "%{http_code} %{content_type} %{size_download}", url + path)
            same((path, args, r.out), (path, args, want), r.err)
        r = p.box.curl("--cacert", ca, url + "/large", "-o", f"{p.folder}/large", "-w", "%{size_download}")
        same(r.out, str(len(large)), r.err)
        same(open(f"{p.folder}/large", "rb").read() == large, True)
    for target in ("/../a/b.json", "/a/../a/b.json", "/%2e%2e/a/b.json", "/a%2Fb.json", "//a/b.json"):
        same(statuses(raw(p, get(target, "api.payments.test", "Connection: close\r\n"), host="api.payments.test")), ["404"], target)
    same(p.world.log(), [])


@test("mock: clients that ask for a large file and take nothing hold little")
def _(p):
    g = p.gate({"mock": {"api.payments.test": "tree"}}, mocks={"tree": folder(large=bytes(2000000))}, credit=2000)
    greedy = "import socket,sys,time\nl=[]\nfor i in range(200):\n s=socket.create_connection(('api.payments.test',80)); s.sendall(b'GET /large HTTP/1.1\\r\\nHost: api.payments.test\\r\\n\\r\\n'); l.append(s)\ntime.sleep(1)\nprint('held', flush=True)\ntime.sleep(2)\n"
    n = p.box.start(lib.sys.executable, "-c", greedy)
    time.sleep(2.5)
    with open(f"/proc/{g.child()}/status") as f:
        rss = int(re.search(r"VmRSS:\s*(\d+) kB", f.read()).group(1)) << 10
    check(rss < 80 << 20, f"{rss >> 20} MiB for 200 clients")
    g.rules({"net": {"mock": {"api.payments.test": "tree"}}, "mocks": {"tree": folder(large=b"other")}})
    p.box.wait(n)
    r = p.box.curl("http://api.payments.test/large")
    same(r.out, "other", r.err)


@test("mock: a file that is none refuses, and never dials")
def _(p):
    g = p.gate({"mock": {"www.example.org": "m.yaml"}}, mocks={"m.yaml": "answers: nonsense"})
    same(statuses(raw(p, get(fields="Connection: close\r\n"))), ["404"])
    same(p.world.log(), [])


if __name__ == "__main__":
    lib.main(ZONE)
