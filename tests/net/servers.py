"""servers.py - the servers that real clients talk to, each with an address of its own in the world of the cell.

All of them are started by start(), keep everything below /run/world and are ended by their pids.
Names and addresses: ZONE. Certificates are of an authority that is made on the spot.
"""
import base64
import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tarfile
import time
import zipfile

import internet

FOLDER = internet.FOLDER
CA = FOLDER / "ca.pem"
WEB, SSH, DB, REGISTRY, MAIL, SHOP = "127.0.0.10", "127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14", "127.0.0.15"
INNER = "10.9.8.7"  # a private one

# What is denied is as alive as what is allowed: web.test and denied.test are the same server.
ZONE = {
    **{name: [WEB] for name in ("web.test", "git.test", "index.test", "npm.test", "go.test", "cargo.test", "ws.test", "denied.test",
                                "other.test", "ask.test", "registry.test", "a.wild.test", "b.wild.test", "api.test", "echo.test", "forge.test",
                                "aws.test", "hub.test", "lab.test")},
    "ssh.test": [SSH],
    "db.test": [DB],
    "mail.test": [MAIL],
    **{name: [SHOP] for name in ("pkg.test", "files.test", "evil.test")},
    "inner.test": [INNER],
}
TEXT = "hello from the other side\n"
PACKAGE = "gatepackage"  # on every index: version 1.0, says TEXT
USER_ID = 64002          # whom servers that refuse to be root run as; also the one that ssh logs in


def run(*words, **options):
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout.decode(errors='replace')[-2000:]}")
    return done.stdout


def wait_listening(address, port, process, log, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((address, port), 5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"nobody listens at {address}:{port}: {log.read_text()[-2000:]}") from None
            time.sleep(0.02)


class Server:
    """A process of ours, and the place that it listens at."""

    def __init__(self, name, words, place=None, **options):
        self.log = FOLDER / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True, **options)
        if place:
            wait_listening(*place, self.process, self.log)

    def stop(self):
        """With all that it started; its group is its own."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(20)
                return
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                self.process.wait()
                return


# ---- certificates ----------------------------------------------------------------------------

def make_certificates():
    """An authority, and one certificate for all the names."""
    key, request = FOLDER / "key.pem", FOLDER / "request.pem"
    extra = FOLDER / "names.cnf"
    extra.write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in ZONE) + "\n")
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=world", "-keyout", FOLDER / "ca.key", "-out", CA)
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=web.test",
        "-keyout", key, "-out", request)
    run("openssl", "x509", "-req", "-in", request, "-CA", CA, "-CAkey", FOLDER / "ca.key", "-CAcreateserial",
        "-days", "2", "-extfile", extra, "-out", FOLDER / "cert.pem")


# ---- what is served --------------------------------------------------------------------------

def make_wheel(folder):
    """A package and its index page, as pip wants them."""
    name = f"{PACKAGE}-1.0-py3-none-any.whl"
    place = folder / "simple" / PACKAGE
    place.mkdir(parents=True)
    info = f"{PACKAGE}-1.0.dist-info"
    files = {f"{PACKAGE}.py": f"TEXT = {TEXT!r}\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: gate\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(place / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    digest = hashlib.sha256((place / name).read_bytes()).hexdigest()
    (place / "index.html").write_text(f'<!DOCTYPE html><a href="{name}#sha256={digest}">{name}</a>\n')


def npm_tarball():
    out = io.BytesIO()
    files = {"package/package.json": json.dumps({"name": PACKAGE, "version": "1.0.0", "main": "index.js"}),
             "package/index.js": f"module.exports = {json.dumps(TEXT)};\n"}
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def make_npm(folder):
    """What a registry says of one package; a file of that name, served as JSON."""
    folder.mkdir()
    tarball = npm_tarball()
    (folder / f"{PACKAGE}-1.0.0.tgz").write_bytes(tarball)
    version = {"name": PACKAGE, "version": "1.0.0", "main": "index.js",
               "dist": {"tarball": f"https://npm.test/{PACKAGE}-1.0.0.tgz",
                        "integrity": "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode(),
                        "shasum": hashlib.sha1(tarball).hexdigest()}}
    (folder / PACKAGE).write_text(json.dumps({"name": PACKAGE, "dist-tags": {"latest": "1.0.0"},
                                              "versions": {"1.0.0": version}}))


def make_go(folder):
    """A module proxy is a tree of files: go.dev/ref/mod#goproxy-protocol."""
    module, version = f"go.test/{PACKAGE}", "v1.0.0"
    place = folder / module / "@v"
    place.mkdir(parents=True)
    text = f"module {module}\n"
    (place / "list").write_text(version + "\n")
    (place / f"{version}.info").write_text(json.dumps({"Version": version}))
    (place / f"{version}.mod").write_text(text)
    with zipfile.ZipFile(place / f"{version}.zip", "w") as archive:
        archive.writestr(f"{module}@{version}/go.mod", text)
        archive.writestr(f"{module}@{version}/text.go", f"package {PACKAGE}\n\nconst Text = {json.dumps(TEXT)}\n")


def make_cargo(folder):
    """A sparse index is a tree of files too, by the first letters of a name; and the package."""
    out, top = io.BytesIO(), f"{PACKAGE}-1.0.0"
    files = {"Cargo.toml": f'[package]\nname = "{PACKAGE}"\nversion = "1.0.0"\nedition = "2021"\n',
             "src/lib.rs": f"pub const TEXT: &str = {json.dumps(TEXT)};\n"}
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    place = folder / PACKAGE[:2] / PACKAGE[2:4]
    place.mkdir(parents=True)
    (folder / f"{top}.crate").write_bytes(out.getvalue())
    (folder / "config.json").write_text(json.dumps({"dl": "https://cargo.test/{crate}-{version}.crate"}))
    line = {"name": PACKAGE, "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
            "cksum": hashlib.sha256(out.getvalue()).hexdigest()}
    (place / PACKAGE).write_text(json.dumps(line) + "\n")


def make_repository(folder):
    """A bare repository with one commit, and anybody may push."""
    folder.mkdir()
    bare, work = folder / "project.git", FOLDER / "checkout"
    who = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
           "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    run("git", "init", "-q", "--bare", "-b", "main", bare, env=who)
    run("git", "-C", bare, "config", "http.receivepack", "true", env=who)
    run("git", "clone", "-q", bare, work, env=who)
    (work / "hello.txt").write_text(TEXT)
    run("git", "-C", work, "add", ".", env=who)
    run("git", "-C", work, "commit", "-qm", "first", env=who)
    run("git", "-C", work, "push", "-q", "origin", "HEAD:main", env=who)


def make_files():
    www = FOLDER / "www"
    www.mkdir()
    (www / "hello.txt").write_text(TEXT)
    with open(www / "big", "wb") as big:
        for i in range(64):
            big.write(bytes([i]) * (1 << 20))
    make_wheel(FOLDER / "index")
    make_npm(FOLDER / "npm")
    make_go(FOLDER / "go")
    make_cargo(FOLDER / "cargo")
    make_repository(FOLDER / "git")


# ---- servers ---------------------------------------------------------------------------------

NGINX = """
daemon off; worker_processes 2; worker_rlimit_nofile 65536; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 30000; }}
http {{
  access_log {folder}/access.log; types {{ text/html html; text/plain txt; }} default_type application/octet-stream;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5; client_max_body_size 0; keepalive_requests 1000000;
  ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
  server {{
    listen {web}:80 default_server reuseport backlog=4096; listen {web}:443 ssl http2 default_server reuseport backlog=4096;
    server_name web.test denied.test other.test ask.test; root {folder}/www;
    location = /host {{ return 200 "$scheme $host $server_protocol\\n"; }}
    location = /away {{ return 302 http://denied.test$is_args$args; }}
    location = /away-tls {{ return 302 https://denied.test/hello.txt; }}
    location /sink {{ client_body_buffer_size 1m; proxy_pass http://{web}:80/host; proxy_set_header Host web.test; }}
  }}
  server {{ listen {web}:80; listen {web}:443 ssl http2; server_name index.test; root {folder}/index; index index.html; }}
  server {{ listen {web}:443 ssl http2; server_name npm.test; root {folder}/npm; default_type application/json; }}
  server {{ listen {web}:443 ssl http2; server_name go.test; root {folder}/go; }}
  server {{ listen {web}:443 ssl http2; server_name cargo.test; root {folder}/cargo; }}
  server {{ listen {web}:443 ssl http2; server_name git.test;
    location / {{
      fastcgi_pass unix:{folder}/cgi.sock; fastcgi_request_buffering off; include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME {backend}; fastcgi_param GIT_PROJECT_ROOT {folder}/git;
      fastcgi_param GIT_HTTP_EXPORT_ALL ""; fastcgi_param PATH_INFO $uri; fastcgi_param REMOTE_USER someone;
      fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol; }} }}
  server {{ listen {web}:80; listen {web}:443 ssl; listen {web}:9443 ssl; server_name api.test echo.test;
    location = /ws {{ proxy_pass http://{web}:8200; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }}
    location / {{ proxy_pass http://{web}:8200; proxy_http_version 1.1; proxy_set_header Host $host:$server_port; proxy_buffering off;
      proxy_set_header X-Scheme $scheme; proxy_pass_request_headers on; }} }}
  server {{ listen {web}:443 ssl http2; server_name forge.test; auth_basic forge; auth_basic_user_file {folder}/forge.users;
    location / {{
      fastcgi_pass unix:{folder}/cgi.sock; fastcgi_request_buffering off; include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME {backend}; fastcgi_param GIT_PROJECT_ROOT {folder}/git;
      fastcgi_param GIT_HTTP_EXPORT_ALL ""; fastcgi_param PATH_INFO $uri; fastcgi_param REMOTE_USER $remote_user;
      fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol; }} }}
  server {{ listen {web}:443 ssl; server_name aws.test hub.test lab.test;
    location / {{ proxy_pass http://{web}:8201; proxy_http_version 1.1; proxy_set_header Host $http_host; }}
    location = /auth {{ internal; proxy_pass http://{web}:8201; proxy_pass_request_body off; proxy_set_header Content-Length "";
      proxy_set_header Host hub.test; }}
    location ~ ^/acme/[a-z]*[.]git/ {{ auth_request /auth; error_page 401 = @who; rewrite ^/acme(/.*)$ $1 break;
      fastcgi_pass unix:{folder}/cgi.sock; fastcgi_request_buffering off; include /etc/nginx/fastcgi_params;
      fastcgi_param SCRIPT_FILENAME {backend}; fastcgi_param GIT_PROJECT_ROOT {folder}/git;
      fastcgi_param GIT_HTTP_EXPORT_ALL ""; fastcgi_param PATH_INFO $uri; fastcgi_param REMOTE_USER someone;
      fastcgi_param HTTP_GIT_PROTOCOL $http_git_protocol; }}
    location @who {{ add_header WWW-Authenticate 'Basic realm="forge"' always; return 401; }} }}
  server {{ listen {web}:443 ssl http2; server_name registry.test;
    location / {{ proxy_pass http://{registry}:4873; proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto https; }} }}
  server {{ listen {web}:80; listen {web}:443 ssl; server_name ws.test;
    location / {{ proxy_pass http://{web}:8100; proxy_http_version 1.1; proxy_read_timeout 60s;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_set_header Host $host; }} }}
}}
"""

ECHO = """
import asyncio, sys, websockets
async def echo(socket, *_):
    async for message in socket:
        await socket.send(message)
async def main():
    async with websockets.serve(echo, sys.argv[1], int(sys.argv[2])):
        await asyncio.Future()
asyncio.run(main())
"""


def start_nginx():
    backend = run("git", "--exec-path").decode().strip() + "/git-http-backend"
    config = FOLDER / "nginx.conf"
    # Without "user" its workers would be nobody, who may not write to our repository.
    config.write_text("user root; " + NGINX.format(folder=FOLDER, web=WEB, registry=REGISTRY, backend=backend))
    # The spawner would fork and leave: -f keeps fcgiwrap's errors, and its own socket is enough.
    cgi = Server("fcgiwrap", ["fcgiwrap", "-f", "-c", "2", "-s", f"unix:{FOLDER}/cgi.sock"],
                 env={**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
                      "GIT_CONFIG_VALUE_0": "*"})
    while not (FOLDER / "cgi.sock").exists() and cgi.process.poll() is None:
        time.sleep(0.02)
    echo = Server("echo", ["/usr/bin/python3", "-c", ECHO, WEB, "8100"], (WEB, 8100))
    return [cgi, echo, Server("nginx", ["nginx", "-e", "stderr", "-p", FOLDER, "-c", config], (WEB, 443))]


def start_ssh():
    """dropbear, for one user that exists in this cell only; keys: ssh.key for him, host.pub of the server."""
    home = FOLDER / "home"
    (home / ".ssh").mkdir(parents=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", FOLDER / "ssh.key")
    run("dropbearkey", "-t", "ed25519", "-f", FOLDER / "host.key")
    public = run("dropbearkey", "-y", "-f", FOLDER / "host.key").decode().split("\n")[1]
    (FOLDER / "known_hosts").write_text(f"ssh.test {' '.join(public.split()[:2])}\n")
    shutil.copy(FOLDER / "ssh.key.pub", home / ".ssh/authorized_keys")
    run("chown", "-R", f"{USER_ID}:{USER_ID}", home)
    run("chmod", "-R", "go=", home)
    internet.bind_over("/etc/passwd", pathlib.Path("/etc/passwd").read_text()
                    + f"visitor:x:{USER_ID}:{USER_ID}::{home}:/bin/sh\n")
    internet.bind_over("/etc/shadow", pathlib.Path("/etc/shadow").read_text() + "visitor:*:1::::::\n")
    return [Server("dropbear", ["dropbear", "-F", "-E", "-s", "-r", FOLDER / "host.key", "-P", FOLDER / "ssh.pid",
                                "-p", f"{SSH}:22"], (SSH, 22))]


def start_mail():
    """It speaks first, and its client waits for that."""
    return [Server("mail", ["/usr/bin/python3", "-W", "ignore", "-m", "smtpd", "-n", "-c", "smtpd.DebuggingServer", f"{MAIL}:2525",
                            "127.0.0.1:1"], (MAIL, 2525))]


def postgres_folder():
    """Of the newest that is installed, or None."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


def start_postgres():
    """With TLS; user visitor, password secret."""
    programs, data = postgres_folder(), FOLDER / "db"
    data.mkdir()
    (FOLDER / "password").write_text("secret")
    for name in ("cert.pem", "key.pem"):
        shutil.copy(FOLDER / name, FOLDER / f"db-{name}")
        os.chown(FOLDER / f"db-{name}", USER_ID, USER_ID)
        (FOLDER / f"db-{name}").chmod(0o600)
    os.chown(data, USER_ID, USER_ID)
    who = {"user": USER_ID, "group": USER_ID, "extra_groups": [], "cwd": "/", "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}}
    run(programs / "initdb", "-D", data, "-U", "visitor", "-A", "scram-sha-256", "--no-sync",
        "--pwfile", FOLDER / "password", **who)
    with open(data / "pg_hba.conf", "a", encoding="utf-8") as hba:
        hba.write("host all all 127.0.0.0/8 scram-sha-256\n")
    return [Server("postgres", [programs / "postgres", "-D", data, "-k", "", "-c", f"listen_addresses={DB}", "-c", "fsync=off",
                                "-c", "ssl=on", "-c", f"ssl_cert_file={FOLDER}/db-cert.pem",
                                "-c", f"ssl_key_file={FOLDER}/db-key.pem"], (DB, 5432), **who)]


VERDACCIO = """
storage: {folder}/verdaccio
auth: {{htpasswd: {{file: {folder}/htpasswd}}}}
packages: {{'@own/*': {{access: $authenticated, publish: $authenticated}}, '**': {{access: $all, publish: $all}}}}
listen: http://{address}:4873
log: {{type: stdout, level: warn}}
"""


def verdaccio_program(root):
    """Where tests/net/verdaccio puts it, or None."""
    path = root / "build/verdaccio/node_modules/verdaccio/bin/verdaccio"
    return path if path.exists() else None


def start_verdaccio(root):
    config = FOLDER / "verdaccio.yaml"
    config.write_text(VERDACCIO.format(folder=FOLDER, address=REGISTRY))
    return [Server("verdaccio", ["node", verdaccio_program(root), "--config", config], (REGISTRY, 4873),
                   env={"PATH": os.environ["PATH"], "HOME": str(FOLDER)})]


def start(root, has_more):
    """All servers that can be had here."""
    FOLDER.mkdir(exist_ok=True)
    FOLDER.chmod(0o755)
    make_certificates()
    make_files()
    started = start_nginx() + start_ssh() + start_mail()
    if has_more and postgres_folder():
        started += start_postgres()
    if has_more and verdaccio_program(root):
        started += start_verdaccio(root)
    return started
