#!/usr/bin/env python3
"""The sandbox's own CA: who trusts it, since when, and who cannot change that. TAP.

tests/net/clients.py has what real clients do with it.

    tests/net/trust.py          all (needs root)
    tests/net/trust.py PATCH    those with the word in their title
"""
import os
import pathlib
import shlex
import signal
import subprocess
import sys

import place  # before lib, whose folder it knows
import lib
import servers
from lib import Daemon, check, same, test, wait_until
from place import Box, caisson

HTTP = {"http": [{"host": "web.test", "paths": ["/hello.txt"]}]}
CERTS = "/etc/ssl/certs"
FETCH = "curl -sS --fail https://web.test/hello.txt"
NAMES = "SSL_CERT_FILE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS DENO_CERT"
LEAF = "openssl s_client -connect web.test:443 -servername web.test </dev/null 2>/dev/null | openssl x509"


def make(client, net=None, **spec):
    return Box(client, net or HTTP, **{"env": place.PLAIN_ENV, **spec})


def works(box):
    box.good(FETCH, servers.TEXT)


def own_ca(box):
    return box.good(f"cat {CERTS}/caisson.pem")[0]["stdout"]


def make_image(name, programs=("sh", "cat", "curl", "id", "ls", "mkdir", "mv", "rm", "tail", "touch")):
    """A folder with these programs and what they need; nothing in it is trusted."""
    image = servers.FOLDER / name
    for folder in ("bin", "etc", "lib", "lib64"):
        (image / folder).mkdir(parents=True)
    for program in programs:
        path = subprocess.check_output(["which", program], env={"PATH": place.PATH}, text=True).strip()
        libraries = [w for w in subprocess.check_output(["ldd", path], text=True).split() if w.startswith("/")]
        subprocess.run(["cp", "-Ln", path, image / "bin"], check=True)
        for library in libraries:
            (image / library[1:]).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-Ln", library, image / library[1:]], check=True)
    return image


def http_spec():
    """The same rules in a file."""
    spec = servers.FOLDER / "http.yaml"
    spec.write_text("net: {http: [{host: web.test, paths: [/hello.txt]}]}\n")
    return spec


def listing(image):
    return sorted((str(p), p.lstat().st_mode, p.lstat().st_size, p.lstat().st_mtime_ns) for p in image.rglob("*"))


@test("system clients need no variable: curl, wget, git, openssl, Python find it where the image has its list")
def _(api):
    for role in place.ROLES:
        box = make(place.client_of(api, role), {"http": [{"host": h, "paths": ["/**"]} for h in ("web.test", "git.test")]})
        bare = f"env {' '.join('-u ' + n for n in NAMES.split())} "
        for command in (FETCH, "wget -q -O - https://web.test/hello.txt", "openssl s_client -verify_return_error -connect web.test:443 </dev/null >/dev/null && echo hello from",
                        "/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen(\"https://web.test/hello.txt\").read())'",
                        "git clone -q https://git.test/project.git /work/clone && cat /work/clone/hello.txt"):
            box.good(f"{bare} sh -c {shlex.quote(command)}", "hello from")
        # OpenSSL by its folder alone, as where it has no file.
        box.good(f"openssl s_client -verify_return_error -no-CAfile -no-CAstore -CApath {CERTS} -connect web.test:443 -servername web.test "
                 "</dev/null 2>&1 | grep 'Verify return code: 0'")
        box.remove()


@test("variables say where it is, and those of the caller win; where no TLS ends there are none")
def _(api):
    box = make(api.client)
    box.good(f"for n in {NAMES}; do eval echo \\$$n; done", f"{CERTS}/ca-certificates.crt\n" * 2 + f"{CERTS}/caisson.pem\n" * 2)
    box.good("echo $SSL_CERT_FILE; echo $DENO_CERT", f"/mine\n{CERTS}/caisson.pem", env={"SSL_CERT_FILE": "/mine"})
    own = make(api.client, env={**place.PLAIN_ENV, "NODE_EXTRA_CA_CERTS": "/other"})
    own.good("echo $NODE_EXTRA_CA_CERTS; echo $SSL_CERT_FILE", f"/other\n{CERTS}/ca-certificates.crt")
    plain = make(api.client, {"allow": ["web.test"]})
    plain.good(f"for n in {NAMES}; do env | grep ^$n= && exit 1; done; ! ls {CERTS}/caisson.pem; ! grep {CERTS} /proc/mounts")


@test("nobody else trusts it: not the host, not another sandbox, nor does this one trust another's")
def _(api):
    one, two = make(api.client), make(api.client)
    leaf = one.good(LEAF)[0]["stdout"]
    for box in (one, two):
        box.put("/work/leaf.pem", leaf)
    one.good("openssl verify /work/leaf.pem", "OK")
    two.bad("openssl verify /work/leaf.pem", 5)
    check(own_ca(one) != own_ca(two), "the same CA")
    for box in (one, two):
        check(own_ca(box) not in pathlib.Path(f"{CERTS}/ca-certificates.crt").read_text(), "the host has it")
    (servers.FOLDER / "leaf.pem").write_text(leaf)
    outside = subprocess.run(["openssl", "verify", servers.FOLDER / "leaf.pem"], capture_output=True, text=True, check=False)
    check(outside.returncode != 0, outside.stdout)


@test("nobody inside can change it: the user, root, root of profile: rootful")
def _(api):
    tries = [f"echo >>{CERTS}/ca-certificates.crt", f"echo >{CERTS}/new", f"rm -f {CERTS}/caisson.pem", f"mv {CERTS} /etc/ssl/away",
             f"mv {CERTS}/caisson.pem {CERTS}/x", f"rm -rf {CERTS}", f"mkdir {CERTS}/x", f"chmod 777 {CERTS}", f"umount {CERTS}", f"ln -sf /x {CERTS}/caisson.pem",
             f"mount --bind /work {CERTS}", f"mount -o remount,rw {CERTS}", "mount -t tmpfs none /etc/ssl",
             f"python3 -c 'import os; os.setxattr(\"{CERTS}/caisson.pem\", \"user.x\", b\"\")'"]
    for role, spec, user in (("root", {}, None), ("root", {}, "root"), ("root", {"profile": "rootful"}, "root"), ("user", {}, None)):
        box = make(place.client_of(api, role), **spec)
        before = box.good(f"ls -lA {CERTS}; cat {CERTS}/ca-certificates.crt")[0]["stdout"]
        for command in tries:
            process, _ = box.run(f"({command}) 2>/dev/null", **({"user": user} if user else {}))
            check(process["exit_code"] != 0, f"{role}, {spec}, as {user}: {command} works")
        same(box.good(f"ls -lA {CERTS}; cat {CERTS}/ca-certificates.crt")[0]["stdout"], before, "what is there")
        works(box)
        box.remove()


@test("image dir: with and without a list of its own; the folder on the host stays as it was")
def _(api):
    bare, listed = make_image("bare"), make_image("listed")
    (listed / "etc/ssl/certs").mkdir(parents=True)
    (listed / "etc/ssl/certs/ca-certificates.crt").write_text("# of the image\n")
    (listed / "etc/ssl/certs/more.pem").write_text("more\n")
    before = listing(bare), listing(listed)
    for image, spec in ((bare, {}), (listed, {}), (bare, {"profile": "rootful"})):
        box = make(api.client, image=f"dir:{image}", **spec)
        box.good(["/bin/curl", "-sS", "--fail", "https://web.test/hello.txt"], servers.TEXT)
        bundle = box.good(["/bin/cat", f"{CERTS}/ca-certificates.crt"])[0]["stdout"]
        same(bundle, ("# of the image\n" if image == listed else "") + own_ca(box), "the list")
        box.bad(["/bin/touch", f"{CERTS}/x"], 5)
        if image == listed:
            box.good(["/bin/cat", f"{CERTS}/more.pem"], "more")
        box.remove()
    subprocess.run(["chown", "-R", f"{lib.USER_ID}:{lib.USER_ID}", bare, listed], check=True)
    for image in (bare, listed):  # a user's own command, since the daemon opens what its client may
        done = caisson(place.daemon_of(api, "user"), "run", "--spec", http_spec(), "--image", f"dir:{image}", "--", "/bin/sh", "-c",
                       f"{FETCH} && cat {CERTS}/ca-certificates.crt && ! touch {CERTS}/x")
        check(done.stdout.startswith(servers.TEXT + ("# of the image\n" if image == listed else "-----BEGIN")), f"{done}")
    same((listing(bare), listing(listed)), before, "the images on the host")


@test("caisson run: the one command finds it, however soon it comes; nothing waits that does not need it")
def _(api):
    spec = http_spec()
    for daemon in (place.daemon_of(api, role) for role in place.ROLES):
        for _ in range(8):
            same(caisson(daemon, "run", "--spec", spec, "--", "curl", "-sS", "--fail", "https://web.test/hello.txt").stdout, servers.TEXT, "curl")
        caisson(daemon, "run", "--spec", spec, "--", "test", "-e", f"{CERTS}/caisson.pem")


@test("without a gate a command that needs one is not executed, and the reason is said", own=True)
def _(_api):
    nothing = servers.FOLDER / "nothing.pem"
    nothing.write_text("no certificate\n")
    spec = http_spec()
    daemon = Daemon("gateless", options=["--net", f"ca={nothing}"]).start()
    done = caisson(daemon, "run", "--spec", spec, "--", "echo", "executed", status=125)
    check("executed" not in done.stdout and "gate" in done.stderr, f"{done}")
    answer = daemon.client().post("/v1/sandboxes", {"net": HTTP})
    check(answer.status >= 500 and "gate" in answer.body.decode(), f"{answer}")
    check("read the certificates in" in daemon.tail(), daemon.tail())
    daemon.stop()


@test("a sandbox that was paused, stopped, replaced: its CA is placed again")
def _(api):
    for role in place.ROLES:
        client = place.client_of(api, role)
        box = make(client)
        works(box)
        first = own_ca(box)
        for verbs, is_same in ((("pause", "resume"), True), (("stop", "start"), None), (("replace",), False))[role == "user":]:
            for verb in verbs:
                client.ok("POST", f"/v1/sandboxes/{box.id}/{verb}", {})
            works(box)
            check(is_same is None or (own_ca(box) == first) == is_same, f"after {verbs}")
        box.remove()


@test("the child of the gate, or all of it, is killed: the same CA, for who runs meanwhile too")
def _(api):
    def gate():
        return [p for p, name in lib.children_of(api.daemon.process.pid).items() if name == "caisson-gate"][0]
    box = make(api.client)
    works(box)
    first, before = own_ca(box), box.good(LEAF + " -noout -issuer")[0]["stdout"]
    for victims in (lambda: lib.children_of(gate()), lambda: [gate()]):
        for pid in list(victims()):
            os.kill(pid, signal.SIGKILL)
        works(box)
        same(own_ca(box), first, "the CA")
        same(box.good(LEAF + " -noout -issuer")[0]["stdout"], before, "who signs")


@test("PATCH: rules that end TLS come later and bring the CA; rules that do not leave it")
def _(api):
    for role in place.ROLES:
        client = place.client_of(api, role)
        box = make(client, {"allow": ["web.test"]})
        box.bad(FETCH, 5)  # it is the server itself that answers
        client.ok("PATCH", f"/v1/sandboxes/{box.id}/net", HTTP)
        works(box)
        first = own_ca(box)
        client.ok("PATCH", f"/v1/sandboxes/{box.id}/net", {"allow": ["web.test"]})
        box.good(f"! env | grep -q {CERTS}")
        same(own_ca(box), first, "what is there")
        client.ok("PATCH", f"/v1/sandboxes/{box.id}/net", {"allow": ["web.test"], "inspect": ["web.test"]})
        works(box)
        same(own_ca(box), first, "the CA")
        box.remove()


@test("a host that the gate plays is believed too")
def _(api):
    box = make(api.client, {"mock": {"played.test": "m.yaml"}, "mocks": {"m.yaml": "answers: [{path: /a, body: played}]"}})
    box.good("curl -sS --fail https://played.test/a", "played")


@test("net.ca: without it servers of another authority are not believed by the gate", own=True)
def _(_api):
    options = [o for o in place.OPTIONS if not o.startswith("ca=")]
    options = [o for i, o in enumerate(options) if not (o == "--net" and (i + 1 == len(options) or options[i + 1] == "--net"))]
    daemon = Daemon("strict", options=options).start()
    box = make(daemon.client())
    box.good("curl -sS -o /dev/null -w '%{http_code}' https://web.test/hello.txt", "502")
    check(wait_until(lambda: box.records(lambda r: r["reason"] == "tls"), 3, "a record"), box.shown)
    box.remove()
    daemon.stop()


@test("net.ca: a file that cannot be read is said at the start", own=True)
def _(_api):
    daemon = Daemon("wrong", options=["--net", "ca=/no/such.pem"])
    daemon.spawn()
    wait_until(lambda: "net.ca: open /no/such.pem: No such file" in daemon.tail(), 5, daemon.tail)
    daemon.process.terminate()
    daemon.process.wait(lib.PATIENCE)


if __name__ == "__main__":
    sys.exit(place.main(__file__))
