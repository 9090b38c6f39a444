#!/usr/bin/env python3
"""The ledger for others: OCSF and OpenTelemetry, pushed to a collector; floods; files that end and go. TAP.

    tests/api/ledger_out.py             all, about ten seconds (needs root)
    tests/api/ledger_out.py otlp        those with the word in their title
"""
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time

import lib
from lib import Daemon, check, same, test, wait_until

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
BURST = 200


def command(api, *words):
    return [lib.cell.BIN / "caisson", "events", *map(str, words)], {
        "env": {"CAISSON_SOCKET": str(api.daemon.socket), "HOME": "/nowhere", "PATH": os.environ["PATH"]}}


def shown(api, *words, status=0):
    argv, options = command(api, *words)
    done = subprocess.run(argv, capture_output=True, check=False, timeout=60, **options)
    same(done.returncode, status, f"{words}: {done.stderr}")
    return done


def lines(api, *words):
    return [json.loads(line) for line in shown(api, *words).stdout.splitlines()]


def events(client, query=""):
    return [json.loads(line) for line in client.get(f"/v1/events?{query}").body.splitlines()]


# ---- others' words ---------------------------------------------------------------------------

NEEDED = {  # by class of OCSF 1.3, beyond what all of them need
    1007: ("actor", "device", "process"), 3004: ("entity",), 4001: ("dst_endpoint",), 4002: ("dst_endpoint", "http_request"),
    4003: ("query",), 6002: ("app",), 6003: ("actor", "api", "src_endpoint"),
}


@test("OCSF: one event a record, each with what its class needs, and the record's hash")
def _(api):
    c = api.client
    box = c.create()
    c.execute(box, ["/bin/sh", "-c", "/bin/true; exit 3"])
    wait_until(lambda: events(c, f"sandbox={box['id']}&kind=exec.ended"), 5, "the end")
    records, found = lines(api, "--sandbox", box["id"], "--format", "jsonl"), lines(api, "--sandbox", box["id"], "--format", "ocsf")
    same([e["metadata"]["uid"] for e in found], [r["hash"] for r in records], "hashes")
    for e, r in zip(found, records):
        same((e["metadata"]["event_code"], e["metadata"]["sequence"], e["time"]), (r["kind"], r["seq"], r["ts"]), "which")
        same((e["category_uid"], e["type_uid"]), (e["class_uid"] // 1000, e["class_uid"] * 100 + e["activity_id"]), "numbers")
        for key in NEEDED[e["class_uid"]]:
            check(e[key], f"{key} of {e}")
        same(e["unmapped"]["data"], r["data"], "the rest")
    ended = [e for e in found if e["metadata"]["event_code"] == "exec.ended"][0]
    same((ended["class_uid"], ended["exit_code"], ended["actor"]["user"]["uid"], ended["device"]["uid"]), (1007, 3, "uid:0", box["id"]), "a process")
    c.remove(box)


class Collector(http.server.ThreadingHTTPServer):
    """Takes what an OpenTelemetry collector takes; says `answers` first."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.requests = [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """Who is sent away may hang up."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def records(self):
        """(sequence number, kind, attributes) of all that was taken."""
        out = []
        for body in self.requests:
            for resource in body["resourceLogs"]:
                same(resource["resource"]["attributes"][0]["value"]["stringValue"], "caisson", "service.name")
                for r in resource["scopeLogs"][0]["logRecords"]:
                    attributes = {a["key"]: next(iter(a["value"].values())) for a in r["attributes"]}
                    check(int(r["timeUnixNano"]) > 1e18 and r["severityNumber"] in (9, 13), r)
                    out.append((int(attributes["caisson.seq"]), r["body"]["stringValue"], attributes))
        return out


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, answer = self.server.answers.pop(0) if self.server.answers else (200, b"{}")
        if self.path != "/v1/logs" or self.headers["Content-Type"] != "application/json":
            status = 400
        if status == 200:
            self.server.requests.append(json.loads(body))
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@test("OTLP: pushed whole and in order, again when the collector is busy, and from the cursor on")
def _(api):
    c = api.client
    box = c.create()
    for _ in range(3):
        c.execute(box, ["/bin/true", "\x1b[2J"])
    collector, cursor = Collector(), lib.HOME / "cursor"
    collector.answers = [(503, b""), (429, b"")]
    done = shown(api, "--otlp", collector.url, "--cursor", cursor)
    got = collector.records()
    same([g[0] for g in got], list(range(1, got[-1][0] + 1)), "all, in order, once")
    same(int(cursor.read_text()), got[-1][0], "the cursor")
    check(f"{len(got)} records sent" in done.stderr.decode(), done.stderr)
    ours = {r["seq"]: r for r in events(c)}
    for seq, kind, attributes in got:
        same((kind, attributes["caisson.hash"], json.loads(attributes["caisson.data"])),
             (ours[seq]["kind"], ours[seq]["hash"], ours[seq]["data"]), "as it is")
        same(attributes.get("caisson.actor"), ours[seq].get("actor"), "who")
    c.execute(box, "true")
    wait_until(lambda: events(c, f"after={got[-1][0]}&kind=exec.ended"), 5, "one more")
    collector.requests.clear()
    shown(api, "--otlp", collector.url, "--cursor", cursor)
    same(collector.records()[0][0], got[-1][0] + 1, "behind the cursor")
    c.remove(box)
    for answer in ((400, b"no"), (200, b'{"partialSuccess":{"rejectedLogRecords":"3"}}')):
        collector.answers = [answer]
        before = cursor.read_text()
        check(b"collector" in shown(api, "--otlp", collector.url, "--cursor", cursor, "--after", 0, status=125).stderr, answer)
        same(cursor.read_text(), before, "what was refused is not counted")
    for url in ("https://127.0.0.1:1", "ftp://x", "http://", "http://a b", "http://u:p@127.0.0.1:1"):
        shown(api, "--otlp", url, status=125)
    collector.shutdown()


@test("OTLP: follows, and goes on where it was when the collector comes back")
def _(api):
    c = api.client
    box = c.create()
    collector = Collector()
    argv, options = command(api, "-f", "--otlp", collector.url, "--sandbox", box["id"], "--kind", "exec")
    child = subprocess.Popen(argv, stderr=subprocess.DEVNULL, **options)
    try:
        c.execute(box, "true")
        wait_until(lambda: len(collector.records()) == 2, 10, "as it happens")
        collector.answers = [(503, b"")] * 2
        c.execute(box, "true")
        wait_until(lambda: len(collector.records()) == 4, 10, "when it was busy")
        same([g[1] for g in collector.records()], ["exec.started", "exec.ended"] * 2, "in order")
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(lib.PATIENCE)
    collector.shutdown()
    c.remove(box)


# ---- floods ----------------------------------------------------------------------------------

def is_slow(seconds, total):
    """So slow that one by one was within the bounds."""
    return BURST + 60 * seconds >= total


def told(client, box, kind):
    """How many of that kind, one by one; and in sums."""
    found = events(client, f"sandbox={box['id']}")
    sums = [r["data"] for r in found if r["kind"] == "ledger.sum" and r["data"]["of"] == kind]
    return sum(r["kind"] == kind for r in found), sums


@test("a loop of programs: a burst, then one sum a second; what was asked of the API is on record; others are as before", own=True)
def _(_api):
    daemon = Daemon("flood", options=("--ledger-burst", str(BURST))).start()
    c = daemon.client()
    box, other = c.create(), c.create()
    total = 1500
    begin = time.monotonic()
    done = c.execute(box, ["/bin/sh", "-c", f"i=0; while [ $i -lt {total} ]; do /bin/true; i=$((i+1)); done"], timeout="110s", wait="110s")
    seconds = time.monotonic() - begin
    same(done["exit_code"], 0, "the loop")
    quick = c.execute(other, ["/bin/sh", "-c", "/bin/true; :"])
    check(quick["exit_code"] == 0, "another sandbox")

    def all_told():
        single, sums = told(c, box, "process.started")
        missed = sum(r["data"].get("missed", 0) for r in events(c, f"sandbox={box['id']}&kind=process.started"))
        return single + sum(s["count"] for s in sums) + missed >= total and (single, sums, missed)
    single, sums, missed = wait_until(all_told, what="every one is counted")
    check(BURST * 0.9 <= single <= BURST + 60 * (seconds + 3), f"{single} one by one in {seconds:.1f} s")
    same(single + sum(s["count"] for s in sums) + missed, total, "none is lost")
    check(1 <= len(sums) <= seconds + 3 or is_slow(seconds, total), f"{len(sums)} sums in {seconds:.1f} s")
    same([r["data"]["program"] for r in events(c, f"sandbox={other['id']}&kind=process.started")], ["/bin/true"], "the other's are told")
    size = sum(p.stat().st_size for p in (daemon.state / "ledger").glob("*.jsonl"))
    check(size < (single + len(sums) + 400) * 1000, f"{size} bytes")
    for b in (box, other):
        c.remove(b)
    c.close()
    daemon.stop()


@test("a flood of connections: the same", own=True)
def _(_api):
    daemon = Daemon("nets", options=("--ledger-burst", str(BURST))).start()
    c = daemon.client()
    box = c.create({"net": {"allow": ["listed.test"]}})
    total, begin = 600, time.monotonic()
    done = c.execute(box, ["/usr/bin/python3", "-c", "import socket\n"
                           f"for i in range({total}):\n s = socket.socket()\n s.settimeout(2)\n"
                           " try: s.connect(('198.51.100.7', 81)); s.send(b'x'); s.recv(1)\n except OSError: pass\n s.close()"], timeout="110s", wait="110s")
    same(done["exit_code"], 0, f"the flood: {done}")
    seconds = time.monotonic() - begin

    def counted():
        found = events(c, f"sandbox={box['id']}&kind=net")
        sums = [r["data"] for r in events(c, f"sandbox={box['id']}&kind=ledger.sum") if r["data"]["of"] == "net.connection"]
        return len(found), sum(r["data"]["count"] for r in found) + sum(s["count"] for s in sums), len(sums)
    single, everything, n_sums = wait_until(lambda: (x := counted())[1] >= total and x, 10, "every one is counted")
    check(single <= BURST + 60 * (seconds + 3), f"{single} one by one in {seconds:.1f} s")
    check(everything >= total and (n_sums >= 1 or is_slow(seconds, total)), f"{everything} of {total}, {n_sums} sums in {seconds:.1f} s")
    c.remove(box)
    c.close()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(lib.main(__file__))
