"""world.py - what is on the other side of the gate: a DNS server and all other servers, in a network
namespace of their own. It notes every question, connection and request, so that a test can tell what
has reached it.

Started by lib.py; one line of JSON in, one out: {"do": "log"}, {"do": "clear"}, {"do": "zone", ...}.
"""
import base64
import hashlib
import json
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time

OWN = "10.99.0.2"
ADDRESSES = [  # all of them are here
    "93.184.216.34", "93.184.216.35", "10.1.2.3", "169.254.169.254", "100.100.100.200", "198.51.100.9",
    "2606:2800:220:1::34", "fd00:ec2::254",
]
PUBLIC, OTHER, PUBLIC6 = "93.184.216.34", "93.184.216.35", "2606:2800:220:1::34"

events, lock, zone = [], threading.Lock(), {}
seen = threading.Semaphore(0)  # events that a client has told of


def note(**what):
    with lock:
        events.append(what)


# ---- DNS -------------------------------------------------------------------------------------

def dns_answer(msg):
    ident, _, n = struct.unpack(">HHH", msg[:6])
    labels, at = [], 12
    while msg[at]:
        labels.append(msg[at + 1:at + 1 + msg[at]].decode("latin-1"))
        at += 1 + msg[at]
    kind, = struct.unpack(">H", msg[at + 1:at + 3])
    question, name = msg[12:at + 5], ".".join(labels).lower()
    note(kind="dns", name=name, type=kind)
    found = zone.get(name)
    if found == "silent":
        return None
    answers = b""
    count = 0
    for text in found or []:
        family = socket.AF_INET6 if ":" in text else socket.AF_INET
        if kind == (28 if family == socket.AF_INET6 else 1):
            data = socket.inet_pton(family, text)
            answers += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 1, len(data)) + data
            count += 1
    rcode = 0 if found is not None else 3
    return struct.pack(">HHHHHH", ident, 0x8180 | rcode, 1, count, 0, 0) + question + answers


def listen_dns():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((OWN, 53))
    return s


def serve_dns(s):
    while True:
        msg, peer = s.recvfrom(4096)
        out = dns_answer(msg)
        if out:
            s.sendto(out, peer)


# ---- HTTP ------------------------------------------------------------------------------------

class Head:
    def __init__(self, line, fields):
        self.line, self.fields = line, fields
        self.method, self.target = (line.split(" ") + ["", ""])[:2]

    def get(self, name):
        return next((v for k, v in self.fields if k.lower() == name), None)


def read_head(f):
    lines = []
    while True:
        line = f.readline(65536)
        if not line:
            return None
        line = line.decode("latin-1").rstrip("\r\n")
        if not line:
            break
        lines.append(line)
    if not lines:
        return None
    return Head(lines[0], [tuple(x.split(": ", 1)) if ": " in x else (x.rstrip(":"), "") for x in lines[1:]])


def read_body(f, head):
    """The body, and its trailers."""
    if head.get("transfer-encoding") == "chunked":
        out, trailers = b"", []
        while True:
            n = int(f.readline().split(b";")[0], 16)
            if n == 0:
                break
            out += f.read(n)
            f.readline()
        while (line := f.readline().strip()):
            trailers.append(line.decode())
        return out, trailers
    return f.read(int(head.get("content-length") or 0)), []


class Http(socketserver.StreamRequestHandler):
    """Paths are what a test wants to see; everything else shows the request."""
    port = 80
    wbufsize = 0

    def handle(self):
        note(kind="connect", port=self.server.server_address[1], to=self.request.getsockname()[0].replace("::ffff:", ""), is_tls=isinstance(self.request, ssl.SSLSocket))
        try:
            while self.one():
                pass
        except (OSError, ValueError):
            pass

    def answer(self, body, status="200 OK", fields=()):
        out = f"HTTP/1.1 {status}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields) + f"Content-Length: {len(body)}\r\n\r\n"
        self.wfile.write(out.encode("latin-1") + body)

    def one(self):
        head = read_head(self.rfile)
        if not head:
            return False
        note(kind="request", line=head.line, fields=head.fields, port=self.server.server_address[1])
        path = head.target
        if head.get("upgrade") == "websocket":
            return self.websocket(head)
        if path.startswith("/early"):  # an answer before the body was read
            self.answer(b"too much", "413 Content Too Large", [("Connection", "close")])
            time.sleep(1)  # closing would take the answer back
            return False
        if head.get("expect") == "100-continue":
            if path.startswith("/nocontinue"):
                self.answer(b"no", "417 Expectation Failed", [("Connection", "close")])
                return False
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body, trailers = read_body(self.rfile, head)
        name = path[1:].split("/")[0].split("?")[0]
        special = getattr(self, "at_" + name, None)
        if special:
            return special(head, body)
        shown = json.dumps({"line": head.line, "fields": head.fields, "bytes": len(body), "trailers": trailers,
                            "sha": hashlib.sha256(body).hexdigest()}).encode()
        self.answer(b"" if head.method == "HEAD" else shown)
        return head.get("connection") != "close"

    def at_big(self, head, _):
        n = int(head.target.split("/")[2])
        self.wfile.write(f"HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n".encode())
        block = b"x" * 65536
        while n > 0:
            self.wfile.write(block[:n])
            n -= min(n, 65536)
        return True

    def at_events(self, head, _):
        """Each when the one before it has arrived: the client says so, by at_seen."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for i in range(int(head.target.split("/")[2])):
            self.wfile.write(f"data: {i}\n\n".encode())
            if not seen.acquire(timeout=20):
                break
        return False

    def at_seen(self, *_):
        seen.release()
        self.answer(b"yes")
        return True

    def at_chunks(self, head, _):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        for piece in (b"one ", b"two ", b"three"):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(0.05)
        self.wfile.write(b"0\r\nX-Sum: 3\r\n\r\n")
        return True

    def at_raw(self, head, _):
        self.wfile.write(base64.urlsafe_b64decode(head.target.split("/")[2]))
        return False

    def at_redirect(self, head, _):
        self.answer(b"", "302 Found", [("Location", "http://" + head.target.split("/")[2] + "/")])
        return True

    def at_slow(self, head, _):
        time.sleep(float(head.target.split("/")[2]))
        self.answer(b"slow")
        return True

    def websocket(self, head):
        key = head.get("sec-websocket-key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.wfile.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        while (data := self.request.recv(65536)):
            self.request.sendall(data)
        return False


class Tls(Http):
    def setup(self):
        self.request = self.server.context.wrap_socket(self.request, server_side=True)
        note(kind="tls", sni=getattr(self.request, "caisson_sni", None), alpn=self.request.selected_alpn_protocol())
        super().setup()


# ---- others ----------------------------------------------------------------------------------

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        note(kind="connect", port=self.server.server_address[1], to=self.request.getsockname()[0].replace("::ffff:", ""))
        try:
            while (data := self.request.recv(1 << 20)):
                note(kind="bytes", port=self.server.server_address[1], data=data[:64].decode("latin-1"))
                self.request.sendall(data)
            self.request.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Greeter(socketserver.BaseRequestHandler):
    """The server speaks first."""
    def handle(self):
        note(kind="connect", port=self.server.server_address[1], to=self.request.getsockname()[0].replace("::ffff:", ""))
        self.request.sendall(b"220 ready\r\n")
        data = self.request.recv(65536)
        note(kind="bytes", port=self.server.server_address[1], data=data[:64].decode("latin-1"))
        self.request.sendall(b"250 " + data)


class Sink(socketserver.BaseRequestHandler):
    """Takes everything, and says how much when the client has ended."""
    def handle(self):
        n = 0
        try:
            while (data := self.request.recv(1 << 20)):
                n += len(data)
            self.request.sendall(str(n).encode())
        except OSError:
            pass


class Source(socketserver.BaseRequestHandler):
    """As many zeros as the first line says."""
    def handle(self):
        left = int(self.request.makefile("rb").readline())
        block = bytes(1 << 20)
        try:
            while left > 0:
                self.request.sendall(block[:left])
                left -= min(left, 1 << 20)
        except OSError:
            pass


class Stuck(socketserver.BaseRequestHandler):
    """Reads nothing."""
    def handle(self):
        time.sleep(30)


def listen_idle():
    listener = socket.socket(socket.AF_INET6)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("::", 9003))
    listener.listen(4096)
    return listener


def serve_idle(listener):
    """Port 9003: takes connections and keeps them; echoes what comes on one."""
    import selectors
    sel = selectors.DefaultSelector()
    sel.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in sel.select():
            if key.fileobj is listener:
                s, _ = listener.accept()
                sel.register(s, selectors.EVENT_READ)
                continue
            try:
                data = key.fileobj.recv(65536)
                if data:
                    key.fileobj.sendall(data)
            except OSError:
                data = b""
            if not data:
                sel.unregister(key.fileobj)
                key.fileobj.close()


class HttpProxy(socketserver.StreamRequestHandler):
    wbufsize = 0

    def handle(self):
        head = read_head(self.rfile)
        note(kind="proxy", line=head.line)
        # The server's first word together with our own: nobody may swallow it.
        self.wfile.write(b"HTTP/1.1 200 Established\r\nVia: test\r\n\r\nhello from " + head.target.encode() + b"\n")
        while (data := self.request.recv(65536)):
            self.request.sendall(data)


class SocksProxy(socketserver.BaseRequestHandler):
    def handle(self):
        s = self.request
        n = s.recv(2)[1]
        s.recv(n)
        s.sendall(b"\x05\x00")
        _, _, _, kind = s.recv(4)
        name = s.recv(s.recv(1)[0]).decode() if kind == 3 else socket.inet_ntop(socket.AF_INET6 if kind == 4 else socket.AF_INET, s.recv(16 if kind == 4 else 4))
        port, = struct.unpack(">H", s.recv(2))
        note(kind="socks", name=name, port=port, type=kind)
        s.sendall(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00hello from socks\n")
        while (data := s.recv(65536)):
            s.sendall(data)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024
    address_family = socket.AF_INET6

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def handle_error(self, request, client_address):
        pass


def tls_context(folder, protocols):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(f"{folder}/server.pem")
    c.set_alpn_protocols(protocols)
    c.sni_callback = lambda s, name, _: setattr(s, "caisson_sni", name)
    return c


PORTS = {7: Echo, 22: Greeter, 25: Greeter, 80: Http, 443: Tls, 853: Echo, 3128: HttpProxy, 1080: SocksProxy, 5432: Echo, 8080: Http, 8443: Tls,
         9000: Sink, 9001: Source, 9002: Stuck}


def start(folder):
    run = subprocess.check_call
    run(["ip", "link", "set", "lo", "up"])
    run(["ip", "addr", "add", f"{OWN}/24", "dev", "vw"])
    run(["ip", "addr", "add", "fd99::2/64", "dev", "vw", "nodad"])
    for a in ADDRESSES:
        run(["ip", "addr", "add", a + ("/128" if ":" in a else "/32"), "dev", "lo"] + (["nodad"] if ":" in a else []))
    run(["ip", "link", "set", "vw", "up"])
    for serve, listen in ((serve_dns, listen_dns), (serve_idle, listen_idle)):
        threading.Thread(target=serve, args=(listen(),), daemon=True).start()
    for port, handler in PORTS.items():
        server = Server(("::", port), handler)
        if handler is Tls:
            server.context = tls_context(folder, ["http/1.1"])
        threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    global zone
    sys.stdin.readline()  # vw is here
    start(sys.argv[1])
    print(json.dumps("up"), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        out = None
        with lock:
            if order["do"] == "log":
                out = list(events)
            elif order["do"] == "clear":
                events.clear()
            elif order["do"] == "zone":
                zone = order["zone"]
        print(json.dumps(out), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
