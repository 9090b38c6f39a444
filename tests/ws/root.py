#!/usr/bin/env python3
"""`checkpoint: all`: the root of the sandboxes of a workspace is kept and undone with its files. TAP.

    tests/ws/root.py              all, a quarter of a minute (needs root)
    tests/ws/root.py dpkg         those with the word in their title
"""
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile

import place
from place import Work, check, end_vaults, lib, main, same, vaults, wait_until
from lib import Daemon, test

sys.path.append(str(place.ROOT / "tests/e2e"))
import oci  # noqa: E402

PROGRAMS = ("sh", "dpkg", "dpkg-deb", "dpkg-query", "dpkg-split", "tar", "rm", "diff", "cat", "ls", "mkdir", "env", "id", "ldconfig",
            "start-stop-daemon", "mv", "touch", "find", "md5sum", "sleep", "chmod", "ln", "stat", "sort", "true")
TAR = "application/x-tar"
ROOTFUL = {"user": "root", "profile": "rootful"}
# Every name outside of what is new in each sandbox, its kind, mode, owner and content.
LOOK = ("find / -xdev \\( -path /work -o -path /proc -o -path /tmp -o -path /run \\) -prune -o -printf '%p %y %m %u:%g %l\\n' | sort;"
        " find /etc /usr /opt /var -xdev -type f -exec md5sum {} + | sort")


# ---- an image with dpkg, of what this host has; read before the cell hides it ---------------------

def libraries(program):
    text = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", text)


def system():
    """A small system: a shell, dpkg and what they need."""
    found = {}
    for name in PROGRAMS:
        path = next(p for d in ("/usr/bin", "/usr/sbin") if os.path.exists(p := f"{d}/{name}"))
        for file in (path, *libraries(path)):
            where = re.sub(r"^/(lib|lib64|bin|sbin)/", r"/usr/\1/", file)
            found[where.lstrip("/")] = pathlib.Path(os.path.realpath(file)).read_bytes()
    folders = {"etc", "tmp", "var", "opt", "usr", "var/lib", "var/lib/dpkg", "var/lib/dpkg/info", "var/lib/dpkg/updates", "home"}
    for name in found:
        folders.update(str(p) for p in pathlib.PurePath(name).parents if str(p) != ".")
    yield from (oci.folder(f) for f in sorted(folders))
    yield from (oci.link(n, f"usr/{n}") for n in ("bin", "sbin", "lib", "lib64") if f"usr/{n}" in folders)
    yield from (oci.entry(n, data, mode=0o755) for n, data in sorted(found.items()))
    yield oci.entry("etc/passwd", oci.PASSWD)
    yield oci.entry("etc/group", b"root:x:0:\nweb:x:34:\n")
    yield oci.entry("var/lib/dpkg/status")


def deb():
    """A package with a program, a file of /etc and a script of its own."""
    def packed(*entries):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as t:
            for member, data in entries:
                member.name = "./" + member.name
                t.addfile(member, io.BytesIO(data))
        return out.getvalue()
    control = b"Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: a tool\n"
    parts = (("debian-binary", b"2.0\n"),
             ("control.tar", packed(oci.entry("control", control), oci.entry("postinst", b"#!/bin/sh\necho made > /etc/tool-made\n", mode=0o755))),
             ("data.tar", packed(oci.folder("usr"), oci.folder("usr/bin"), oci.entry("usr/bin/tool", b"#!/bin/sh\necho tool 1\n", mode=0o755),
                                 oci.folder("etc"), oci.entry("etc/tool.conf", b"x=1\n"))))
    out = b"!<arch>\n"
    for name, data in parts:
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return out


SYSTEM, PACKAGE = oci.tar(*system()), deb()


def put(c, name, body):
    answer = c.call("PUT", f"/v1/images/{name}", body, {"Content-Type": TAR})
    same(answer.status, 201, f"import: {answer}")
    return answer.json


def ready(api):
    c = api.client
    if not c.ok("GET", "/v1/images")["images"]:
        put(c, "system", SYSTEM)
    return c


def shell(c, s, cmd):
    done = c.execute(s, cmd)
    same(done["exit_code"], 0, f"{cmd}: {done}")
    return done["stdout"]


def cli(api, *words):
    env = {**os.environ, "CAISSON_SOCKET": str(api.daemon.socket)}
    done = subprocess.run([lib.cell.BIN / "caisson", *words], capture_output=True, text=True, env=env, check=False)
    same(done.returncode, 0, f"caisson {words}: {done.stderr}")
    return done.stdout


def clear(c):
    c.remove_all()
    for w in c.ok("GET", "/v1/workspaces?limit=1000")["workspaces"]:
        c.delete(f"/v1/workspaces/{w['id']}?force=1")


# ---- undo ------------------------------------------------------------------------------------

@test("as root: /etc/passwd and /usr/bin/env removed, undo, all is back")
def _(api):
    c = ready(api)
    w = Work(c, "root", spec={"image": "system", "checkpoint": "all", **ROOTFUL})
    w.shell("echo mine > file")
    before = w.shell(LOOK)
    check("/usr/bin/env" in before and "/etc/passwd" in before, before)
    same(w.get()["dirty"], True, "the file")
    w.shell("rm -rf /etc/passwd /usr/bin/env /var/lib/dpkg /etc/group; mv /opt /opt2; chmod 700 /usr; ln -s x /etc/link; echo other > file")
    same(w.execute("env")["exit_code"], 127, "broken")
    w.post("undo")
    same(w.shell(LOOK), before, "as before")
    same(w.shell("cat file"), "mine\n", "the file too")
    w.post("redo")
    same(w.execute("env")["exit_code"], 127, "broken again")
    w.post("undo")
    same(w.shell(LOOK), before, "as before")
    clear(c)


@test("dpkg -i of a package, undo, gone; redo, there; a fork has it too")
def _(api):
    c = ready(api)
    w = Work(c, "deb", spec={"image": "system", "checkpoint": "all", **ROOTFUL})
    w.write("tool.deb", PACKAGE)
    before = w.shell(LOOK)
    w.shell("dpkg -i tool.deb")
    same(w.shell("tool; cat /etc/tool.conf /etc/tool-made; dpkg-query -W"), "tool 1\nx=1\nmade\ntool\t1\n", "installed")
    after = w.shell(LOOK)
    start = next(p for p in w.history()["points"] if p["label"] == "the start of a sandbox")
    changed = w.changes(base=start["id"], root=1)
    same({n: changed.get(n) for n in ("usr/bin/tool", "etc/tool.conf", "etc/tool-made", "var/lib/dpkg/status")},
         {"usr/bin/tool": "A", "etc/tool.conf": "A", "etc/tool-made": "A", "var/lib/dpkg/status": "M"}, f"{changed}")
    same(w.changes(base=start["id"]), {}, "its files are another matter")
    check("usr/bin/tool" in cli(api, "diff", "deb", start["id"], "--root"), "caisson diff --root")
    same(c.get(w.path + "/changes?root=1&format=patch").code, "invalid", "no patch of a root")
    fork = Work.of(c, w.post("fork")["workspaces"][0])
    same(fork.shell("tool"), "tool 1\n", "in the fork")
    fork.shell("rm /usr/bin/tool")
    same(w.shell("tool"), "tool 1\n", "which is another one")
    w.post("undo")
    same((w.execute("tool")["exit_code"], w.shell("dpkg-query -W")), (127, ""), "gone")
    same(w.shell(LOOK), before, "as before")
    w.post("redo")
    same(w.shell(LOOK), after, "as after")
    point = next(p for p in w.history()["points"] if p["process"] and p["files"] > 5)
    c.remove_all()
    w.post("undo", {"to": point["process"]["id"] if isinstance(point["process"], dict) else point["process"]})
    same(w.shell(LOOK), before, "undone with nobody there")
    clear(c)


@test("who works in it does not notice: a shell, a log that is open, another sandbox")
def _(api):
    c = ready(api)
    w = Work(c, "live")
    spec = {"image": "system", "checkpoint": "all", "fs": ["workspace:/work", "ephemeral:/opt/new"], **ROOTFUL}
    one, two = w.sandbox(**spec), w.sandbox(**spec)
    shell(c, one, "mkdir /srv; echo 1 > /srv/a")
    c.execute(one, "cd /srv; X=1", shell="main")
    c.ok("POST", f"/v1/sandboxes/{one['id']}/exec", {"cmd": "exec sleep 60 >> /srv/log", "wait": "0s"})
    wait_until(lambda: "log" in shell(c, two, "ls /srv"), 5, "seen by the other")
    shell(c, two, "rm -rf /etc /srv/a /usr/bin/env; echo x > f")
    same(c.execute(one, "env")["exit_code"], 127, "one root")
    w.post("undo")
    same(c.execute(one, "pwd; echo $X; cat a; ls; env true", shell="main")["stdout"], "/srv\n1\n1\na\nlog\n", "where it was")
    same(shell(c, two, "cat /etc/passwd").encode(), oci.PASSWD, "and for the other")
    c.ok("POST", f"/v1/sandboxes/{two['id']}/replace", {})
    same(shell(c, two, "cat /srv/a; ls /opt/new"), "1\n", "a new generation has the same root")
    answer = c.post(w.path + "/restore", {"snapshot": "base"})
    same((answer.status, answer.code), (409, "busy"), f"its mounts need what is there: {answer}")
    check(one["id"] in answer.json["detail"] or two["id"] in answer.json["detail"], f"says who: {answer}")
    c.remove_all()
    w.post("restore", {"snapshot": "base"})
    s = w.sandbox(**spec)
    same(c.execute(s, "ls /srv")["exit_code"], 2, "as the image says")
    same(c.delete("/v1/images/system").code, "busy", "the image is needed")
    c.remove_all()
    same(c.delete("/v1/images/system").code, "busy", "also without a sandbox")
    clear(c)


@test("what cannot be kept is refused with a sentence")
def _(api):
    c = ready(api)
    w, r = Work(c, "no"), Work(c, "fixed", mode="read")
    for spec, code, word in (({"workspace": w.id}, "unenforceable", "host"), ({"workspace": w.id, "image": "dir:/"}, "unenforceable", "dir:"),
                             ({"image": "system"}, "invalid", "workspace"), ({"workspace": r.id, "image": "system"}, "invalid", "read")):
        answer = c.post("/v1/sandboxes", {**spec, "checkpoint": "all"})
        same(answer.code, code, f"{spec}: {answer}")
        check("checkpoint: all" in answer.json["detail"] and word in answer.json["detail"], f"{answer}")
    put(c, "other", SYSTEM)
    s = w.sandbox(image="system", checkpoint="all", **ROOTFUL)
    answer = c.post("/v1/sandboxes", {"workspace": w.id, "image": "other", "checkpoint": "all"})
    same(answer.code, "conflict", f"one root, one image: {answer}")
    plain = w.sandbox(image="system", **ROOTFUL)
    shell(c, plain, "echo x > /etc/mine; echo seen > here")
    same(c.execute(s, "cat here; cat /etc/mine")["stdout"], "seen\n", "without it a root is one's own")
    clear(c)
    same(c.delete("/v1/images/other").status, 204, "not needed")


@test("as one types it: up, exec, undo")
def _(api):
    c = ready(api)
    cli(api, "up", "--task", "typed", "--image", "system", "--checkpoint", "all", "--profile", "rootful", "-u", "root")
    cli(api, "exec", "typed", "--", "rm", "/etc/passwd", "/usr/bin/env")
    same(cli(api, "exec", "typed", "--", "ls", "/etc"), "group\n", "removed")
    check("2" in cli(api, "undo", "typed"), "it says how many")
    same(cli(api, "exec", "typed", "--", "env", "cat", "/etc/passwd").encode(), oci.PASSWD, "back")
    check("the start of a sandbox" in cli(api, "history", "typed"), "what came in with the sandbox")
    clear(c)


@test("caisson run is a step as well")
def _(api):
    c = ready(api)
    w = Work(c, "once")
    spec = {"workspace": w.id, "fs": "workspace:/work", "image": "system", "checkpoint": "all", **ROOTFUL}

    def run(cmd):
        done = c.ok("POST", "/v1/run", {"spec": spec, "cmd": cmd})
        return done["exit_code"], done["stdout"]
    same(run("echo 1 > /etc/one"), (0, ""), "the first")
    same(run("echo 2 > /etc/one; rm /usr/bin/env"), (0, ""), "the second")
    same(run("cat /etc/one"), (0, "2\n"), "stays")
    w.post("undo")
    same(run("cat /etc/one; ls /usr/bin/env"), (0, "1\n/usr/bin/env\n"), "undone")
    clear(c)


@test("an image of what was installed: now, at a point; in use it stays")
def _(api):
    c = ready(api)
    w = Work(c, "prepared", spec={"image": "system", "checkpoint": "all", **ROOTFUL})
    same(c.post("/v1/images", {"name": "early", "workspace": w.id}).code, "conflict", "it has no root yet")
    w.write("tool.deb", PACKAGE)
    w.shell("echo web2:x:44:45::/:/bin/sh >> /etc/passwd; rm -r /opt; mkdir /opt; echo 1 > /opt/own")
    first = w.history()["points"][0]["id"]
    w.shell("dpkg -i tool.deb; rm /usr/bin/md5sum; mv /var /var2; ln /opt/own /opt/hard")
    seen = w.shell("find /etc /usr /opt /var2 -printf '%p %y %m %u:%g %n %l\\n' | sort")
    made = c.ok("POST", "/v1/images", {"name": "tools", "workspace": "prepared"})
    same((made["source"], made["digest"], made["files"] > 30), ("snapshot", None, True), f"{made}")
    c.ok("POST", "/v1/images", {"name": "early", "workspace": w.id, "point": first})
    same(c.post("/v1/images", {"name": "early", "workspace": w.id}).code, "exists", "the name is taken")
    for body in ({"name": "x"}, {"name": "a//b", "workspace": w.id}, {"name": "x", "workspace": w.id, "at": 1}):
        same(c.post("/v1/images", body).code, "invalid", f"{body}")
    for body in ({"name": "x", "workspace": "none"}, {"name": "x", "workspace": w.id, "point": "cp_none"}):
        same(c.post("/v1/images", body).code, "not_found", f"{body}")

    def run(image, cmd, **spec):
        done = c.ok("POST", "/v1/run", {"spec": {"image": image, **ROOTFUL, **spec}, "cmd": cmd})
        return done["stdout"]
    look = "find /etc /usr /opt /var2 -printf '%p %y %m %u:%g %n %l\\n' | sort"
    links = re.compile(r"(:\S+) \d+ ")  # files are links of those that they were
    same(links.sub(r"\1 ", run("tools", look)), links.sub(r"\1 ", seen), "what was there")
    same(run("tools", "tool; ls /opt; id -u", user="web2", profile="default"), "tool 1\nhard\nown\n44\n", "as a user of it")
    same(run("early", "ls /opt /usr/bin/md5sum; tool"), "/usr/bin/md5sum\n\n/opt:\nown\n", "as it was before")
    clear(c)
    again = Work(c, "again", spec={"image": "tools", "checkpoint": "all", **ROOTFUL})
    again.shell("rm /usr/bin/tool")
    same(c.delete("/v1/images/tools").code, "busy", "a root is of it")
    again.post("undo")
    same(again.shell("tool"), "tool 1\n", "a root of an image of a root")
    check("tools" in cli(api, "image", "ls"), "caisson image ls")
    cli(api, "image", "import", "third", "ws:again@head")
    same(run("third", "tool"), "tool 1\n", "by the CLI")
    clear(c)
    for name in ("early", "third"):
        same(c.delete(f"/v1/images/{name}").status, 204, f"remove {name}")


def keepers():
    """Those that have a mount: not the one of the store."""
    def has_mount(pid):
        try:
            return " - overlay " in pathlib.Path(f"/proc/{pid}/mountinfo").read_text()
        except OSError:
            return False  # it is about to be gone
    return sorted(filter(has_mount, vaults()))


@test("root: restart, kill -9 of the daemon, death of either keeper: the root is as it was", own=True)
def _(_api):
    daemon = Daemon("kept").start()
    c = daemon.client()
    put(c, "system", SYSTEM)
    w = Work(c, "kept")
    s = w.sandbox(image="system", checkpoint="all", **ROOTFUL)
    shell(c, s, "echo 1 > /etc/one")
    before = shell(c, s, LOOK)
    for how in ("stop", "kill"):
        c.close()
        getattr(daemon, how)()
        daemon.start()
        w.c = c = daemon.client()
        shell(c, s, "rm /etc/one /usr/bin/env")
        w.post("undo")
        same(shell(c, s, LOOK), before, f"after {how}")
    for n in range(2):
        os.kill(keepers()[n], signal.SIGKILL)
        wait_until(lambda: c.ok("GET", f"/v1/sandboxes/{s['id']}")["state"] == "stopped", 10, "its sandbox ends")
        wait_until(lambda: c.post(f"/v1/sandboxes/{s['id']}/start", {}).status == 200, 10, "and starts again")
        same(shell(c, s, LOOK), before, "after the death of a keeper")
        shell(c, s, "rm /etc/one /usr/bin/env")
        w.post("undo")
        same(shell(c, s, LOOK), before, "and undo works")
    clear(c)
    same(c.delete("/v1/images/system").code, "busy", "what is in the trash may come back")
    daemon.wait_clean()
    c.close()
    daemon.stop()
    end_vaults()


@test("evicted it comes back; the store is whole, and with the workspace its root goes", own=True)
def _(_api):
    daemon = Daemon("evict", options=("--store", "max=200m", "--store", "high=1", "--store", "low=1", "--keep-trash", "1s")).start()
    c = daemon.client()
    put(c, "system", SYSTEM)
    for key, disk in (("plain", {}), ("bounded", {"disk": "64m"})):
        w = Work(c, key, spec={"image": "system", "checkpoint": "all", **ROOTFUL}, **disk)
        w.shell("head -c 3000000 /dev/urandom > /opt/large; rm /usr/bin/env; echo mine > file")
        before = w.shell(LOOK)
        w.shell("rm /opt/large")
        w.post("undo")
        same(w.shell(LOOK), before, f"{key}: undone")
        c.remove_all()

        def evicted(w=w):
            rows = {r["id"]: r for r in c.ok("POST", "/v1/gc", {})["decisions"] if r["kind"] == "files"}
            return rows[w.id]["bytes"] == 0
        wait_until(evicted, 15, f"{key}: it has no files")
        same(c.ok("POST", "/v1/fsck", {})["findings"], [], f"{key}: whole without them")
        same(w.shell(LOOK), before, f"{key}: and back")
        c.remove_all()
        wait_until(lambda: c.ok("POST", "/v1/fsck", {})["findings"] == [], 10, f"{key}: whole")
        w.remove()
        wait_until(lambda w=w: c.ok("GET", f"/v1/workspaces/{w.id}")["state"] == "gone", 20, "it is gone")
    wait_until(lambda: c.delete("/v1/images/system").status == 204, 5, "nobody needs the image")
    wait_until(lambda: os.listdir(daemon.state / "trees") == ["1"], 10, "no tree is left")
    wait_until(lambda: not [n for n in os.listdir(daemon.state / "vol") if n.isdigit()], 10, "nor a volume")
    c.close()
    daemon.stop()
    end_vaults()


@test("without root there is nothing to keep, and it says so", own=True)
def _(_api):
    daemon = Daemon("user", uid=lib.USER_ID).start()
    c = daemon.client()
    put(c, "system", SYSTEM)
    w = Work(c, "kept")
    answer = c.post("/v1/sandboxes", {"workspace": w.id, "image": "system", "checkpoint": "all", "user": "root"})
    same(answer.code, "unenforceable", f"{answer}")
    check("root" in answer.json["detail"], f"{answer}")
    clear(c)
    c.close()
    daemon.stop()
    end_vaults()


if __name__ == "__main__":
    sys.exit(main(__file__))
