"""forges.py - a cloud and two forges, written from their documented contracts: they believe nobody who does not prove himself.

    forges.py ADDRESS PORT FOLDER

aws.test  Signature Version 4: the signature of every request, and of every chunk, is computed again. FOLDER/aws.key: ID:SECRET[:TOKEN].
          Objects can be put and got; what has X-Amz-Target, or is a form, is an API that answers.
Everything that was said is a line of FOLDER/forges.said.
"""
import calendar
import hashlib
import hmac
import http.server
import json
import pathlib
import re
import sys
import time
import urllib.parse

ADDRESS, PORT, FOLDER = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
objects = {}


class Refused(Exception):
    pass


def need(is_true, why):
    if not is_true:
        raise Refused(why)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def quoted(text, safe=""):
    return urllib.parse.quote(text, safe="-_.~" + safe)


class Signature:
    """Of one request: docs "Create a signed request" and "Signature calculations: chunked upload"."""

    def __init__(self, handler, body):
        h = handler.headers
        said = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, *SignedHeaders=([^,]+), *Signature=([0-9a-f]{64})",
                            h.get("Authorization", ""))
        need(said, "no signature")
        who, date, self.region, self.service, names, signature = said.groups()
        key = (FOLDER / "aws.key").read_text().split(":")
        self.stamp = h["X-Amz-Date"]
        need(who == key[0] and self.stamp.startswith(date), "another key or day")
        need(abs(calendar.timegm(time.strptime(self.stamp, "%Y%m%dT%H%M%SZ")) - time.time()) < 900, "too old")
        need(len(key) < 3 or h.get("X-Amz-Security-Token") == key[2], "another token")
        names = names.split(";")
        need("host" in names and all(k.lower() in names for k in h if k.lower().startswith("x-amz-")), "not all is signed")
        self.key = b"AWS4" + key[1].encode()
        for part in (date, self.region, self.service, "aws4_request"):
            self.key = mac(self.key, part)
        self.scope = f"{date}/{self.region}/{self.service}/aws4_request"
        self.payload = h.get("X-Amz-Content-Sha256") or sha(body)
        need(self.service != "s3" or "x-amz-content-sha256" in names, "S3 wants the hash")
        canonical = "\n".join([handler.command, self.path_of(handler.path), self.query_of(handler.path),
                               *(f"{n}:" + ",".join(re.sub(" +", " ", v.strip()) for v in h.get_all(n, [])) for n in names),
                               "", ";".join(names), self.payload])
        text = f"AWS4-HMAC-SHA256\n{self.stamp}\n{self.scope}\n{sha(canonical.encode())}"
        self.last = mac(self.key, text).hex()
        need(hmac.compare_digest(self.last, signature), "the signature is another")

    def path_of(self, target):
        path = target.split("?")[0]
        if self.service == "s3":
            return quoted(urllib.parse.unquote(path), "/")
        parts = []
        for part in path.split("/"):
            if part == "..":
                parts = parts[:-1]
            elif part not in ("", "."):
                parts.append(part)
        return quoted("/" + "/".join(parts) + ("/" if path.endswith("/") and parts else ""), "/")

    @staticmethod
    def query_of(target):
        pairs = [p.partition("=") for p in target.partition("?")[2].split("&") if p]
        return "&".join(f"{k}={v}" for k, v in sorted((quoted(urllib.parse.unquote(k)), quoted(urllib.parse.unquote(v))) for k, _, v in pairs))

    def plain(self, body):
        """What the body is, once its chunks were checked."""
        if not self.payload.startswith("STREAMING-"):
            need(self.payload in ("UNSIGNED-PAYLOAD", sha(body)), "the body is another")
            return body
        out = b""
        while True:
            line, _, body = body.partition(b"\r\n")
            size, _, signature = line.decode().partition(";chunk-signature=")
            n = int(size, 16)
            data, body = body[:n], body[n:]
            if "HMAC" in self.payload:
                text = f"AWS4-HMAC-SHA256-PAYLOAD\n{self.stamp}\n{self.scope}\n{self.last}\n{sha(b'')}\n{sha(data)}"
                self.last = mac(self.key, text).hex()
                need(signature == self.last, "a chunk's signature is another")
            out += data
            if n == 0:
                return out
            need(body[:2] == b"\r\n", "a chunk has no end")
            body = body[2:]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        out = b""
        while n := int(self.rfile.readline().split(b";")[0], 16):
            out += self.rfile.read(n)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return out

    def say(self, status, data, fields=()):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        for k, v in dict(fields).items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def note(self, status, why=""):
        with open(FOLDER / "forges.said", "a", encoding="utf-8") as log:
            log.write(json.dumps({"host": self.headers["Host"], "method": self.command, "path": self.path, "status": status, "why": why,
                                  "fields": {k.lower(): v for k, v in self.headers.items()}}) + "\n")

    def do_GET(self):
        body = self.body()
        try:
            status, data = HOSTS[self.headers["Host"].split(":")[0]](self, body)
            self.note(status)
            self.say(status, data)
        except Refused as why:
            self.note(403, str(why))
            self.say(403, {"message": str(why)})
    do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_GET

    def aws(self, body):
        data = Signature(self, body).plain(body)
        path = urllib.parse.unquote(self.path.split("?")[0])
        if self.headers.get("X-Amz-Target"):
            return 200, {"Item": {"said": {"S": json.loads(data)["TableName"]}}}
        if self.command == "POST":
            return 200, (b"<GetCallerIdentityResponse><GetCallerIdentityResult><Account>" + str(len(data)).encode()
                         + b"</Account></GetCallerIdentityResult></GetCallerIdentityResponse>")
        if self.command == "PUT":
            objects[path] = data
            return 200, b""
        return (200, objects[path]) if path in objects else (404, b"")


HOSTS = {"aws.test": Handler.aws}
http.server.ThreadingHTTPServer((ADDRESS, PORT), Handler).serve_forever()
