"""forges.py - a cloud and two forges, written from their documented contracts: they believe nobody who does not prove himself.

    forges.py ADDRESS PORT FOLDER

aws.test  Signature Version 4: the signature of every request, and of every chunk, is computed again. FOLDER/aws.key: ID:SECRET[:TOKEN].
          Objects can be put and got; what has X-Amz-Target, or is a form, is an API that answers.
hub.test  GitHub's REST API: the token of an app's installation (FOLDER/app.pub: the app's key, its id is 12345, the installation 678; FOLDER/ttl:
          seconds that a token lives), pull requests of acme/project; /auth says whether a request of git may be.
lab.test  GitLab's: merge requests of acme/project. FOLDER/lab.token.
Everything that was said is a line of FOLDER/forges.said.
"""
import base64
import calendar
import datetime
import hashlib
import hmac
import http.server
import json
import pathlib
import re
import secrets
import subprocess
import sys
import time
import urllib.parse

ADDRESS, PORT, FOLDER = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
objects = {}
tokens = {}  # and when they end
pulls = {}   # of both forges: (host, source) -> what was made


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


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def check_app(proof):
    """docs "Generating a JSON Web Token for a GitHub App": RS256, iat in the past, exp at most ten minutes after, iss."""
    head, body, signature = proof.split(".")
    need(json.loads(unpadded(head)) == {"alg": "RS256", "typ": "JWT"}, "another algorithm")
    claims = json.loads(unpadded(body))
    need(claims["iss"] == "12345" and claims["iat"] <= time.time() < claims["exp"] <= claims["iat"] + 600, "claims")
    (FOLDER / "jwt.text").write_text(f"{head}.{body}")
    (FOLDER / "jwt.signature").write_bytes(unpadded(signature))
    done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", FOLDER / "app.pub", "-signature", FOLDER / "jwt.signature", FOLDER / "jwt.text"],
                          capture_output=True, check=False)
    need(done.returncode == 0, "it is signed by another")


def has_branch(name):
    done = subprocess.run(["git", "-C", FOLDER / "git/project.git", "-c", "safe.directory=*", "show-ref", "--verify", "-q", f"refs/heads/{name}"], check=False)
    return done.returncode == 0


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

    def hold(self):
        """Until somebody says that it may go on."""
        with open(FOLDER / "forges.arrived", "a", encoding="utf-8") as log:
            log.write(self.path + "\n")
        while not (FOLDER / "forges.go").exists():
            time.sleep(0.01)

    def say_half(self, data):
        self.send_response(200)
        self.send_header("Content-Length", str(2 * len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        self.hold()
        self.wfile.write(data)

    def note(self, status, why=""):
        with open(FOLDER / "forges.said", "a", encoding="utf-8") as log:
            log.write(json.dumps({"host": self.headers["Host"], "method": self.command, "path": self.path, "status": status, "why": why,
                                  "fields": {k.lower(): v for k, v in self.headers.items()}}) + "\n")

    def do_GET(self):
        body = self.body()
        try:
            if self.path == "/sent" or (self.path.endswith("/access_tokens") and (FOLDER / "forges.hold").exists()):
                self.hold()
            status, data = HOSTS[self.headers["Host"].split(":")[0]](self, body)
            self.note(status)
            if self.path == "/answer":
                self.say_half(b"x" * 100000)
            else:
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


    def token(self):
        words = self.headers.get("Authorization", "").split(" ")
        if words[0] == "Basic":
            user, _, token = base64.b64decode(words[1]).decode().partition(":")
            need(user == "x-access-token", "another user")
        else:
            need(words[0] in ("Bearer", "token"), "no token")
            token = words[1]
        need(tokens.get(token, 0) > time.time(), "no token that is good")

    def hub(self, body):
        path, _, query = self.path.removeprefix("/api/v3").partition("?")
        if path == "/app/installations/678/access_tokens" and self.command == "POST":
            check_app(self.headers["Authorization"].removeprefix("Bearer "))
            ttl = float((FOLDER / "ttl").read_text())
            need(ttl > 0, "not today")
            token, end = "ghs_" + secrets.token_hex(18), int(time.time() + ttl)
            tokens[token] = end
            with open(FOLDER / "tokens", "a", encoding="utf-8") as log:
                log.write(token + "\n")
            return 201, {"token": token, "expires_at": datetime.datetime.fromtimestamp(end, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "permissions": {"contents": "write"}, "repositories": json.loads(body).get("repositories")}
        if path == "/auth":
            try:
                self.token()
            except Refused:
                return 401, b""
            return 200, b""
        if path == "/legacy/":
            word = base64.b64encode(b"__token__:" + (FOLDER / "upload.token").read_bytes()).decode()
            need(self.headers.get("Authorization") == f"Basic {word}" and b'name=":action"' in body and len(body) > 100000, "upload")
            return 200, b""
        self.token()
        if path != "/repos/acme/project/pulls":
            return 200, {"path": path}
        if self.command == "GET":
            wanted = urllib.parse.parse_qs(query)
            need(wanted["state"] == ["open"], "query")
            return 200, [p for (h, s), p in pulls.items() if h == "hub" and [f"acme:{s}"] == wanted["head"]]
        ask = json.loads(body)
        need(set(ask) <= {"title", "head", "base", "body", "draft"} and ask["title"] and "github" in self.headers["Accept"], "fields")
        if ("hub", ask["head"]) in pulls:
            return 422, {"message": "Validation Failed", "errors": [{"message": f"A pull request already exists for acme:{ask['head']}."}]}
        if not has_branch(ask["head"]) or not has_branch(ask["base"]):
            return 422, {"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "head", "code": "invalid"}]}
        n = len(pulls) + 1
        pulls["hub", ask["head"]] = {"number": n, "html_url": f"https://hub.test/acme/project/pull/{n}", "state": "open", "title": ask["title"],
                                     "body": ask.get("body"), "draft": ask.get("draft", False)}
        return 201, pulls["hub", ask["head"]]

    def lab(self, body):
        need(self.headers.get("Private-Token") == (FOLDER / "lab.token").read_text(), "no token")
        path, _, query = self.path.partition("?")
        need(path == "/api/v4/projects/acme%2Fproject/merge_requests", "path")
        if self.command == "GET":
            wanted = urllib.parse.parse_qs(query)
            need(wanted["state"] == ["opened"], "query")
            return 200, [p for (h, s), p in pulls.items() if h == "lab" and [s] == wanted["source_branch"]]
        ask = json.loads(body)
        need(set(ask) <= {"title", "source_branch", "target_branch", "description"} and ask["title"], "fields")
        if ("lab", ask["source_branch"]) in pulls:
            return 409, {"message": [f"Another open merge request already exists for this source branch: !{len(pulls)}"]}
        n = len(pulls) + 1
        pulls["lab", ask["source_branch"]] = {"iid": n, "web_url": f"https://lab.test/acme/project/-/merge_requests/{n}", "state": "opened",
                                              "title": ask["title"], "description": ask.get("description")}
        return 201, pulls["lab", ask["source_branch"]]


HOSTS = {"aws.test": Handler.aws, "hub.test": Handler.hub, "lab.test": Handler.lab}
http.server.ThreadingHTTPServer((ADDRESS, PORT), Handler).serve_forever()
