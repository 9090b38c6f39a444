"""openapi.py - the document, the answers and a client, each held against the others (openapi.sh).

The client of this file knows nothing of Caisson: names, methods, paths, parameters, bodies and
answers are all read from the document. Every answer it gets is checked against the schema that the
document has for it, and more strictly than the document asks: a member that is not described is a
failure here.
"""
import copy
import importlib
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import urllib.parse

import api

try:
    import jsonschema
except ImportError:
    jsonschema = None

tap = api.Tap()
METHODS = ("get", "put", "post", "delete", "patch")


class Operation:
    def __init__(self, method, path, about):
        self.method, self.path, self.about = method, path, about
        self.params = {(p["in"], p["name"]): p for p in about.get("parameters", [])}


class Client:
    def __init__(self, document, transport):
        self.document, self.transport = document, transport
        self.strict = strict(document)
        self.operations = {
            about["operationId"]: Operation(method.upper(), path, about)
            for path, item in document["paths"].items()
            for method, about in item.items() if method in METHODS
        }

    def resolve(self, part):
        while isinstance(part, dict) and "$ref" in part:
            ref, part = part["$ref"], self.document
            for name in ref.removeprefix("#/").split("/"):
                part = part[name]
        return part

    def target(self, op, values):
        path, query, headers = op.path, [], {}
        for name, value in values.items():
            where = next(i for i, n in op.params if n == name)  # else the document lacks it
            if where == "path":
                path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
            elif where == "query":
                query.append((name, value))
            else:
                headers[name] = value
        return path + ("?" + urllib.parse.urlencode(query) if query else ""), headers

    def call(self, name, body=None, accept=None, **values):
        """Calls an operation and checks what it answers; a _ in a parameter's name is a -."""
        op = self.operations[name]
        target, headers = self.target(op, {k.replace("_", "-"): v for k, v in values.items()})
        if accept:
            headers["Accept"] = accept
        if body is not None:
            media = next(iter(op.about["requestBody"]["content"]))
            headers["Content-Type"] = media
            if media == "application/json":
                self.check(f"{name}: the request", op.about["requestBody"]["content"][media], body)
                body = json.dumps(body).encode()
        answer = self.transport(op.method, target, body, headers)
        self.check_answer(name, op, answer)
        return answer

    def check_answer(self, name, op, answer):
        name = f"{name}: the answer {answer.status}"
        if answer.status >= 400 and str(answer.status) not in op.about["responses"]:
            form = self.resolve(op.about["responses"]["default"])["content"].get(answer.type)
        else:
            form = self.resolve(op.about["responses"].get(str(answer.status), {})).get("content", {}).get(
                answer.type)
        if not answer.body and answer.status in (204, 101):
            tap.check(name, str(answer.status) in op.about["responses"], answer)
        elif form is None:
            tap.check(name, False, "not in the document", answer)
        elif answer.type == "application/x-ndjson":
            for line in answer.body.splitlines():
                self.check(name, form, json.loads(line))
        elif answer.type.endswith("json"):
            self.check(name, form, answer.json)

    def check(self, name, form, value):
        if not jsonschema:
            tap.skip(name, "jsonschema is not installed")
            return
        schema = {**form["schema"], "components": self.strict["components"]}
        wrong = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
        tap.check(name, not wrong, *(f"{e.json_path}: {e.message}" for e in wrong), json.dumps(value)[:1500])


def strict(document):
    """Answers are open for new members; here none may come that nobody described."""
    document = copy.deepcopy(document)
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return document


# ---- what is shown ----------------------------------------------------------------------------

def check_document(document):
    try:
        import openapi_spec_validator
    except ImportError:
        tap.skip("the document is valid OpenAPI 3.1", "openapi-spec-validator is not installed")
        return
    wrong = list(openapi_spec_validator.OpenAPIV31SpecValidator(document).iter_errors())
    tap.check("the document is valid OpenAPI 3.1", not wrong, *(e.message for e in wrong))


def check_sandboxes(client):
    call = client.call
    ask = {"key": "openapi", "labels": {"suite": "openapi"}, "ttl": "10m", "net": "deny",
           "fs": "ephemeral:/work", "creds": None, "limits": {"cpu": 1.5, "pids": 128, "wall": "9m"},
           "env": {"A": "b"}, "allow_weaker": ["cpu", "pids"]}
    made = call("sandboxes_create", ask, Idempotency_Key="openapi-1")
    tap.check("a sandbox is made", made.status == 201, made)
    same = call("sandboxes_create", ask)
    tap.check("its key gives it again", same.status == 200 and same.json["id"] == made.json["id"], same)
    sandbox = made.json["id"]
    call("sandbox_get", id=sandbox)
    call("sandboxes_list", label="suite=openapi", limit="1")
    call("sandbox_usage_get", id=sandbox)
    call("sandbox_ports_create", {"port": 3000, "ttl": "1h"}, id=sandbox)
    call("sandbox_ports_list", id=sandbox)
    call("sandbox_get", id=sandbox)
    call("sandbox_port_delete", id=sandbox, port="3000")
    call("sandbox_extend", {"ttl": "20m"}, id=sandbox)
    for verb, state in (("stop", "stopped"), ("start", "running")):
        answer = call(f"sandbox_{verb}", {}, id=sandbox)
        tap.check(f"after {verb} it is {state}", answer.json.get("state") == state, answer)
    call("sandbox_pause", {}, id=sandbox)
    call("sandbox_resume", {}, id=sandbox)
    return sandbox


def check_processes(client, sandbox):
    call = client.call
    done = call("sandbox_exec", {"cmd": "echo out; echo err >&2; exit 3", "timeout": "20s",
                                 "label": "one", "output": {"inline": "4k"}}, id=sandbox)
    tap.check("a command's failure is a result", done.status == 200 and done.json["exit_code"] == 3, done)
    tap.check("with its output", (done.json["stdout"], done.json["stderr"]) == ("out\n", "err\n"), done)
    call("process_get", id=done.json["id"], wait="1s")
    call("processes_list", sandbox=sandbox, limit="5")
    call("process_events_get", id=done.json["id"])
    call("process_log_get", id=done.json["id"])
    call("process_log_get", id=done.json["id"], Range="bytes=-4")
    call("sandbox_exec", {"cmd": ["printf", "\\377\\376"]}, id=sandbox)
    live = call("sandbox_exec", {"cmd": ["cat"], "tty": True, "stdin": True, "wait": "200ms"}, id=sandbox)
    tap.check("one that lives on is running", live.json["state"] == "running", live)
    live = live.json["id"]
    call("process_stdin", {"data": "x\n", "wait": "100ms"}, id=live)
    call("process_resize", {"rows": 30, "cols": 100}, id=live)
    call("process_signal", {"sig": "TERM", "scope": "tree"}, id=live)
    call("process_get", id=live, wait="5s")
    call("process_delete", id=live)
    call("run", {"cmd": "echo run", "spec": {"limits": {"mem": "64m"}, "allow_weaker": "mem"}})


def check_files(client, sandbox):
    call, at = client.call, {"id": sandbox}
    put = call("sandbox_file_put", b"one\r\ntwo\r\n", path="work/a b/ü.txt", mode="0640", **at)
    tap.check("a file is written, with its parents", put.status == 200 and put.json["created"], put)
    got = call("sandbox_file_get", path="work/a b/ü.txt", **at)
    tap.check("and read", got.body == b"one\r\ntwo\r\n", got)
    call("sandbox_file_get", path="work/a b/ü.txt", Range="bytes=5-7", **at)
    call("sandbox_file_get", path="work/a b/ü.txt", lines="1-1", **at)
    call("sandbox_file_get", path="work/a b/ü.txt", stat="", hash="", **at)
    call("sandbox_file_get", path="work", list="", depth="3", hidden="", **at)
    edited = call("sandbox_file_edit", {"edits": [{"old": "two", "new": "2"}]}, path="work/a b/ü.txt",
                  If_Match=put.json["hash"], **at)
    tap.check("an edit keeps the line ends", edited.status == 200, edited)
    stale = call("sandbox_file_edit", {"insert": {"line": 0, "text": "zero\n"}}, path="work/a b/ü.txt",
                 If_Match=put.json["hash"], **at)
    tap.check("an edit of what has changed is stale", stale.code == "stale", stale)
    none = call("sandbox_file_edit", {"edits": [{"old": "nine", "new": "9"}]}, path="work/a b/ü.txt", **at)
    tap.check("an edit that matches nothing says so", none.code == "no_match", none)
    call("sandbox_file_put", b"old", path="work/c", **at)
    call("sandbox_files_copy", {"from": "work/c", "to": "work/d"}, **at)
    call("sandbox_files_move", {"from": "d", "to": "e"}, **at, **{"path": "work"})
    call("sandbox_files_mkdir", {"path": "work/new/er"}, **at)
    batch = [{"op": "write", "path": "f", "text": "f\n"}, {"op": "read", "path": "f"},
             {"op": "stat", "path": "f", "hash": True}, {"op": "read", "path": "not there"},
             {"op": "edit", "path": "f", "edits": [{"old": "f", "new": "g"}]},
             {"op": "delete", "path": "f"}]
    answer = call("sandbox_files_batch", batch, path="work", **at)
    tap.check("a batch answers each by itself, in order",
              [next(iter(r)) for r in answer.json] == ["ok", "ok", "ok", "error", "ok", "ok"], answer)
    call("sandbox_patch", b"--- a/c\n+++ b/c\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n",
         path="work", **at)
    call("sandbox_grep", {"pattern": "o.e", "path": "work", "context": 1, "glob": "*.txt"}, **at)
    call("sandbox_glob", {"pattern": "**/*", "path": "work", "sort": "mtime"}, **at)
    tar = call("sandbox_archive_get", path="work", format="tar", **at)
    call("sandbox_archive_put", tar.body, path="/work/again", **at)
    call("sandbox_file_delete", path="work/new", recursive="", **at)


def check_errors(client, sandbox):
    rows = [
        ("sandbox_get", None, {"id": "sb_nothere"}, "not_found"),
        ("sandboxes_create", {"key": "/"}, {}, "invalid"),
        ("sandboxes_create", {"net": "denny"}, {}, "invalid"),
        ("sandbox_exec", {"cmd": []}, {"id": sandbox}, "invalid"),
        ("process_get", None, {"id": "px_nothere"}, "not_found"),
        ("sandbox_file_get", None, {"id": sandbox, "path": "work/none"}, "not_found"),
        ("sandbox_file_get", None, {"id": sandbox, "path": "work"}, "is_directory"),
        ("sandboxes_list", None, {"limit": "0"}, "invalid"),
    ]
    for name, body, values, code in rows:
        answer = client.call(name, body, **values)
        tap.check(f"{name} {body or list(values)}: {code}", answer.code == code, answer)


def check_operating(client):
    for name in ("health_get", "backends_get", "quota_get", "metrics_get", "openapi_get", "tokens_list"):
        client.call(name)
    made = client.call("tokens_create", {"name": "t", "scope": ["read", "exec"], "ttl": "1h"})
    tap.check("a token is made", made.status == 201, made)
    client.call("token_delete", id=made.json["id"])


def check_generated(document, daemon):
    """A client that a generator wrote from the document, over the same socket."""
    generator = pathlib.Path(sys.executable).parent / "openapi-python-client"
    name = "a generated client creates, executes, reads a file and deletes"
    if sys.prefix == sys.base_prefix or not generator.exists():
        tap.skip(name, "openapi-python-client is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "openapi.json").write_text(json.dumps(document))
        made = subprocess.run([generator, "generate", "--meta", "none", "--path", path / "openapi.json",
                               "--output-path", path / "made_client"], capture_output=True, text=True)
        if not tap.check("a generator makes a client", made.returncode == 0, made.stdout, made.stderr):
            return
        sys.path.insert(0, folder)
        try:
            tap.check(name, *use_generated(daemon))
        except Exception as e:  # whatever the generated code does not like
            tap.check(name, False, repr(e))


def use_generated(daemon):
    import httpx
    part = lambda name: importlib.import_module(f"made_client.{name}")
    # The token is not looked at here: by the unix socket the kernel says who calls.
    client = part("client").AuthenticatedClient(
        base_url="http://caisson", token="none", timeout=httpx.Timeout(60),
        httpx_args={"transport": httpx.HTTPTransport(uds=daemon.socket)})
    models, file = part("models"), part("types").File
    made = part("api.sandboxes.sandboxes_create").sync(client=client, body=models.SandboxAsk(key="generated"))
    written = part("api.files.sandbox_file_put").sync(
        made.id, "work/x", client=client, body=file(payload=b"from a generated client"))
    ran = part("api.sandboxes.sandbox_exec").sync(made.id, client=client, body=models.ExecAsk(cmd="wc -c <x"))
    read = part("api.files.sandbox_file_get").sync_detailed(made.id, "work/x", client=client)
    gone = part("api.sandboxes.sandbox_delete").sync_detailed(made.id, client=client)
    is_ok = (ran.stdout.strip() == "23" and ran.state == "exited" and written.bytes_ == 23 and
             read.content == b"from a generated client" and gone.status_code == 204)
    return is_ok, made, written, ran, read, gone


def tcp_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def check_tcp(document, client, port):
    """The same client by TCP, with a token that it has made by the unix socket."""
    made = client.call("tokens_create", {"name": "tcp", "scope": "manage"})

    def ask(method, target, body, headers, token=made.json["token"]):
        connection = api.http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, target, body,
                               {**headers, **({"Authorization": f"Bearer {token}"} if token else {})})
            return api.Answer(connection.getresponse())
        finally:
            connection.close()

    refused = ask("GET", "/v1/sandboxes", None, {}, token=None)
    tap.check("by TCP nobody is served without a token", refused.status == 401, refused)
    by_tcp = Client(document, ask)
    sandbox = by_tcp.call("sandboxes_create", {}).json["id"]
    ran = by_tcp.call("sandbox_exec", {"cmd": "echo 42 >n"}, id=sandbox)
    read = by_tcp.call("sandbox_file_get", id=sandbox, path="work/n")
    gone = by_tcp.call("sandbox_delete", id=sandbox)
    tap.check("by TCP and with a token: create, exec, read a file, delete",
              ran.json["exit_code"] == 0 and read.body == b"42\n" and gone.status == 204, ran, read, gone)
    refused = by_tcp.call("tokens_list")
    tap.check("a token does no more than its scope", refused.code == "forbidden", refused)
    client.call("token_delete", id=made.json["id"])
    refused = by_tcp.call("sandboxes_list")
    tap.check("a revoked token is refused", refused.code == "unauthorized", refused)


def main():
    port = tcp_port()
    daemon = api.Daemon("--listen", f"127.0.0.1:{port}")
    try:
        document = daemon.ask("GET", "/v1/openapi.json").json
        client = Client(document, daemon.ask)
        check_document(document)
        check_operating(client)
        sandbox = check_sandboxes(client)
        check_processes(client, sandbox)
        check_files(client, sandbox)
        check_errors(client, sandbox)
        client.call("sandbox_replace", {}, id=sandbox)
        gone = client.call("sandbox_delete", id=sandbox)
        tap.check("it is deleted", gone.status == 204, gone)
        check_generated(document, daemon)
        if daemon.process:
            check_tcp(document, client, port)
        else:
            tap.skip("by TCP and with a token", "the daemon is not ours")
    finally:
        daemon.end()
    tap.end()


main()
