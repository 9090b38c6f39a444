"""internet.py - everything that is outside of the sandboxes of a cell: addresses, names, and who listens.

The network of a cell is its own and has no way out, so all of the Internet can be played there:
every address is local, a DNS server of ours knows the names, and what nobody else serves goes to a
catcher that takes anything. The wire sees every packet; what the gate lets out of a sandbox passes it.
"""
import contextlib
import pathlib
import selectors
import socket
import struct
import subprocess
import threading
import time

FOLDER = pathlib.Path("/run/world")
DNS_ADDRESS = "127.0.0.53"
ETH_P_ALL = 3
SOL_PACKET, PACKET_STATISTICS = 263, 6
CATCHER_NAME = "\0gate-catcher"  # of an abstract socket
TCP_PORTS = (25, 53, 80, 443, 465, 853, 2222, 3128, 6443, 8080, 8443, 9418)  # not 22, 5432: their servers do not share
UDP_PORTS = (53, 69, 123, 443, 500, 3478, 5353, 51820)


def open_wide():
    """Every address is ours: a packet to any of them stays here, and whoever listens on it gets it."""
    for family, everything in (("-4", "0.0.0.0/0"), ("-6", "::/0")):
        subprocess.run(["ip", family, "route", "add", "local", everything, "dev", "lo"], check=True)
    # A user's ping sockets, so that the control of that attempt can succeed.
    pathlib.Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647")


def bind_over(path, text):
    """Another file there, for this cell alone."""
    FOLDER.mkdir(exist_ok=True)
    own = FOLDER / pathlib.Path(path).name
    own.write_text(text)
    subprocess.run(["mount", "--bind", str(own), str(pathlib.Path(path).resolve())], check=True)
    return own


class Wire:
    """All packets of the cell's own network, whoever sent them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.packets = []
        self.is_over = False
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.2)
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while not self.is_over:
            with contextlib.suppress(TimeoutError):
                packet = self.socket.recv(65600)
                with self.lock:
                    self.packets.append(packet)

    def seen(self, mark, address=None):
        """Packets (to this address) with the mark in them, in whatever case: names do not care either.

        Every attempt sends its mark in one piece, and loopback packets hold 64 KiB."""
        mark = mark.lower().encode()
        to = socket.inet_aton(address) if address else None
        with self.lock:
            return [p for p in self.packets if mark in p.lower() and to in (None, p[30:34])]

    def wait_for(self, mark, seconds=40.0):
        deadline = time.monotonic() + seconds
        while not (found := self.seen(mark)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def lost(self):
        """How many packets there was no room for since the last look."""
        return struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]

    def forget(self):
        with self.lock:
            self.packets.clear()

    def close(self):
        self.is_over = True
        self.thread.join()
        self.socket.close()


def describe(packet):
    """Of a frame that should not have been there."""
    text = "".join(chr(b) if 32 <= b < 127 else "." for b in packet[14:])
    return f"{len(packet)} bytes: {text[:300]}"


# ---- names -----------------------------------------------------------------------------------

def read_question(message):
    """(name, type, end of the question)"""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    return ".".join(labels).lower(), struct.unpack_from(">H", message, at + 1)[0], at + 5


class Turns(list):
    """Lists of addresses: the first lookup gets the first, and the last goes on for ever."""


class Names:
    """A DNS server; `zone` may change at any time: name, or *.name, to a list of addresses or Turns. It
    answers from a thread, over UDP and TCP, and remembers who was asked for."""

    def __init__(self, zone):
        self.zone, self.asked = dict(zone), []
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # the catcher has 0.0.0.0
        self.udp.bind((DNS_ADDRESS, 53))
        self.tcp = socket.socket()
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.tcp.bind((DNS_ADDRESS, 53))
        self.tcp.listen(64)
        for serve in (self.serve_udp, self.serve_tcp):
            threading.Thread(target=serve, daemon=True).start()

    def addresses(self, name, kind):
        known = self.zone.get(name, self.zone.get("*." + name.partition(".")[2]))
        if isinstance(known, Turns):
            return known.pop(0) if len(known) > 1 and kind == 1 else known[0]
        return known

    def answer(self, message):
        name, kind, end = read_question(message)
        self.asked.append((name, kind))
        known = self.addresses(name, kind)
        records = []
        for address in known or []:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            if kind == {socket.AF_INET: 1, socket.AF_INET6: 28}[family]:
                data = socket.inet_pton(family, address)
                records.append(struct.pack(">HHHIH", 0xc00c, kind, 1, 0, len(data)) + data)
        flags = 0x8580 if known is not None else 0x8583  # authoritative; NXDOMAIN
        return message[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + message[12:end] + b"".join(records)

    def serve_udp(self):
        while True:
            message, sender = self.udp.recvfrom(4096)
            with contextlib.suppress(IndexError, struct.error, OSError):
                self.udp.sendto(self.answer(message), sender)

    def serve_tcp(self):
        while True:
            s, _ = self.tcp.accept()
            with s, contextlib.suppress(IndexError, struct.error, OSError):
                s.settimeout(20)
                size = struct.unpack(">H", s.recv(2, socket.MSG_WAITALL))[0]
                answer = self.answer(s.recv(size, socket.MSG_WAITALL))
                s.sendall(struct.pack(">H", len(answer)) + answer)


# ---- whoever else ----------------------------------------------------------------------------

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncaught"


class Catcher:
    """Listens at every address that nobody else has and takes what comes; the wire keeps it."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.accepted = []  # (address, port) of ours, of each connection
        for family in (socket.AF_INET, socket.AF_INET6):
            for kind, ports in ((socket.SOCK_STREAM, TCP_PORTS), (socket.SOCK_DGRAM, UDP_PORTS)):
                for port in ports:
                    self.listen(family, kind, port)
        s = socket.socket(socket.AF_UNIX)
        s.bind(CATCHER_NAME)
        s.listen(64)
        self.caught = []  # what came by the abstract socket, which no wire sees
        self.selector.register(s, selectors.EVENT_READ, self.accept_abstract)
        threading.Thread(target=self.run, daemon=True).start()

    def listen(self, family, kind, port):
        s = socket.socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(("", port))
        if kind == socket.SOCK_STREAM:
            s.listen(128)
        self.selector.register(s, selectors.EVENT_READ, self.accept if kind == socket.SOCK_STREAM else self.echo)

    def run(self):
        while True:
            for key, _ in self.selector.select():
                with contextlib.suppress(OSError):
                    key.data(key.fileobj)

    def accept(self, listener):
        s, _ = listener.accept()
        self.accepted.append(s.getsockname()[:2])
        self.selector.register(s, selectors.EVENT_READ, self.take)

    def take(self, s):
        self.selector.unregister(s)
        with s:
            if s.recv(65536):
                s.sendall(ANSWER)

    def echo(self, s):
        data, sender = s.recvfrom(65536)
        s.sendto(data, sender)

    def accept_abstract(self, listener):
        s, _ = listener.accept()
        with s:
            s.settimeout(0.5)
            self.caught.append(s.recv(4096))
