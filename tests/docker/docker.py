#!/usr/bin/env python3
"""`docker` as a link to our program: its words, outputs and exit codes, against a real daemon. TAP.

    tests/docker/docker.py          all (needs root)
    tests/docker/docker.py cp       those with the word in their title
"""
import functools
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "api"), str(HERE.parent / "e2e"), str(HERE)]

import lib  # noqa: E402
import oci  # noqa: E402
import system  # noqa: E402
from lib import check, same, test, wait_until  # noqa: E402

lib.cell.PROGRAMS = (*lib.cell.PROGRAMS, "caisson")
DOCKER = pathlib.Path("/run/docker-bin/docker")
PLACE = pathlib.Path("/run/docker-files")
TERM = (HERE.parent / "e2e/term.py").read_bytes()
IMAGE = "python:3.12"


def prepare():
    DOCKER.parent.mkdir()
    DOCKER.symlink_to(lib.cell.BIN / "caisson")
    PLACE.mkdir()
    (PLACE / "term.py").write_bytes(TERM)
    return lambda: None


@functools.lru_cache
def small():
    """The tar of a root file system without Python."""
    data = io.BytesIO()
    system.write(data, with_python=False)
    return data.getvalue()


class Docker:
    """The program, with the daemon of this test and an image."""

    def __init__(self, api, images=(IMAGE, "plain", "acme/tool:v1")):
        self.env = {"PATH": os.environ["PATH"], "HOME": "/run", "CAISSON_SOCKET": str(api.daemon.socket), "LC_ALL": "C.UTF-8",
                    "FROM_HERE": "here"}
        if IMAGE not in self.out("images", "--format", "{{.Repository}}:{{.Tag}}"):
            for name in images:
                done = subprocess.run([lib.cell.BIN / "caisson", "image", "import", name, "-"], input=small(), env=self.env,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                check(done.returncode == 0, done.stdout.decode())

    def run(self, *words, input=None, **env):
        done = subprocess.run([DOCKER, *words], input=input, stdin=subprocess.DEVNULL if input is None else None, env={**self.env, **env},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def out(self, *words, **more):
        status, out, err = self.run(*words, **more)
        check(status == 0, lambda: f"docker {words}: {status}\n{err}")
        return out

    def fails(self, status, text, *words, **more):
        got = self.run(*words, **more)
        check(got[0] == status and text in got[2], lambda: f"docker {words}: {got}, expected {status} and {text!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        left = self.out("ps", "-aq").split()
        if left:
            self.out("rm", "-f", *left)


@test("run: output, streams, exit codes, --rm")
def _(api):
    with Docker(api) as docker:
        same(docker.run("run", "--rm", IMAGE, "sh", "-c", "echo out; echo err >&2; exit 3"), (3, "out\n", "err\n"))
        same(docker.out("run", "--rm", "-i", IMAGE, "cat", input=b"piped\0bytes"), "piped\0bytes")
        same(docker.out("run", "--rm", IMAGE, "cat", input=b"not for it"), "", "input without -i")
        for words, status, text in ((["nosuch"], 127, 'exec: "nosuch": executable file not found in $PATH'),
                                    (["/no/such"], 127, "no such file or directory"),
                                    (["/etc/passwd"], 126, "permission denied")):
            for how in (["--rm"], ["--rm", "-d"]):
                docker.fails(status, text, "run", *how, IMAGE, *words)
        same(docker.run("run", "--rm", IMAGE, "sh", "-c", "kill -TERM $$")[0], 143)
        check(re.fullmatch("[0-9a-f]{64}\n", docker.out("run", "--rm", "-qd", IMAGE, "true")), "-qd")
        same(docker.run("run", "--rm", IMAGE, "sh", "-c", "kill -KILL $$")[0], 137)
        same(docker.run("run", "--rm", "-m", "64m", IMAGE, "sh", "-c", "x=0123456789; while :; do x=$x$x; done")[0], 137, "no memory")
        same(docker.out("ps", "-aq"), "", "what is left")
        same(docker.out("run", "--rm", "--entrypoint", "echo", IMAGE, "-n", "--rm"), "--rm")
        same(docker.out("run", "--rm", "plain", "echo", "a tag of its own"), "a tag of its own\n")
        for name in ("plain:latest", "docker.io/library/plain", "acme/tool:v1"):
            docker.out("run", "--rm", name, "true")
        docker.fails(125, "no command specified", "run", "--rm", IMAGE)


@test("run: what an image says of itself holds where nothing else is said")
def _(api):
    with Docker(api) as docker:
        layout = oci.Layout()
        layout.config["config"] = {"Env": ["PATH=/opt/bin:/usr/bin:/bin", "KIND=image", "OTHER=image"], "Entrypoint": ["/bin/sh", "-c"],
                                   "Cmd": ["echo $KIND $PATH; pwd; id -u; exit 6"], "WorkingDir": "/app", "User": "web"}
        layout.layer(small(), "")
        (PLACE / "layout.tar").write_bytes(layout.tar())
        done = subprocess.run([lib.cell.BIN / "caisson", "image", "import", "whole:1", f"oci:{PLACE}/layout.tar"], env=docker.env, capture_output=True,
                              text=True)
        same((done.returncode, done.stderr), (0, ""))
        same(docker.run("run", "--rm", "whole:1")[:2], (6, "image /opt/bin:/usr/bin:/bin\n/app\n33\n"))
        same(docker.out("run", "--rm", "-e", "KIND=mine", "-w", "/tmp", "-u", "0", "whole:1", "echo $KIND $OTHER; pwd; id -u"), "mine image\n/tmp\n0\n")
        same(docker.out("run", "--rm", "--entrypoint", "echo", "whole:1", "words"), "words\n")
        docker.fails(125, "no command specified", "run", "--rm", "--entrypoint", "", "whole:1")
        docker.out("create", "--name", "entry", "whole:1", "true")
        same(docker.out("inspect", "-f", "{{json .Config.Entrypoint}} {{json .Config.Cmd}}", "entry"), '["/bin/sh","-c"] ["true"]\n')
        config = json.loads(docker.out("image", "inspect", "whole:1"))[0]["Config"]
        same((config["WorkingDir"], config["User"], "KIND=image" in config["Env"]), ("/app", "web", True))


@test("run: what is wrong is said in Docker's shape, and ends with 125")
def _(api):
    with Docker(api) as docker:
        docker.fails(125, "Unable to find image 'nosuch:latest' locally\ndocker: Error response from daemon: No such image", "run", "nosuch", "true")
        docker.fails(125, "caisson image import nosuch:1 FILE.tar", "run", "nosuch:1", "true")
        docker.fails(125, "unknown flag: --frobnicate\n\nUsage:  docker run [OPTIONS] IMAGE", "run", "--frobnicate=1", IMAGE)
        docker.fails(125, "unknown shorthand flag: 'Q' in -Q", "run", "-Q", IMAGE)
        docker.fails(1, "requires at least 1 argument", "run")
        docker.fails(125, "Invalid container name (a b)", "run", "--name", "a b", IMAGE, "true")
        docker.fails(1, "'frobnicate' is not a docker command", "frobnicate")
        for words, text in ((["--privileged"], "--privileged is refused"), (["--network", "host"], "--network host is refused"),
                            (["--cap-add", "SYS_ADMIN"], "--cap-add SYS_ADMIN is refused"), (["--device", "/dev/kvm"], "--device /dev/kvm is refused"),
                            (["-v", "/etc:/mnt"], "-v /etc:/mnt:ro"), (["--pid", "host"], "shares nothing with the host"),
                            (["--security-opt", "seccomp=unconfined"], "is refused"), (["--restart", "always"], "is refused"),
                            (["--pull", "always"], "never pulled"), (["--platform", "windows/amd64"], "is refused"),
                            (["--memory", "lots"], "invalid size"), (["--cpus", "x"], "--cpus"), (["-l", "caisson.docker.3=x"], "one of ours"),
                            (["-w", b"/\xff"], "not UTF-8"), (["--entrypoint", b"\xff"], "not UTF-8"), (["-v", b"/:/\xff:ro"], "not UTF-8")):
            docker.fails(125, text, "run", "--rm", *words, IMAGE, "true")
        same(docker.out("ps", "-aq"), "", "what is left")


@test("run: names, variables, folders, users and limits")
def _(api):
    with Docker(api) as docker:
        (PLACE / "env").write_text("# words\nFILE=file\nFROM_HERE\n")
        said = docker.out("run", "--rm", "-e", "A=b=c", "-e", "FROM_HERE", "-eB=1", "--env-file", str(PLACE / "env"), "-w", "/new/folder", IMAGE,
                          "sh", "-c", "echo $A $B $FILE $FROM_HERE; pwd; id -u; touch /etc/mine /here && echo writable")
        same(said, "b=c 1 file here\n/new/folder\n0\nwritable\n")
        same(docker.out("run", "--rm", IMAGE, "pwd"), "/\n")
        same(docker.out("run", "--rm", "--user", "1234:99", IMAGE, "sh", "-c", "id -u; id -g"), "1234\n99\n")
        same(docker.out("run", "--rm", "-u", "web", IMAGE, "id", "-u"), "33\n")
        same(docker.out("run", "--rm", "--read-only", "--tmpfs", "/scratch:size=1m", IMAGE, "sh", "-c",
                        "touch /etc/x 2>/dev/null || echo shut; touch /tmp/x /scratch/x && echo open"), "shut\nopen\n")
        same(docker.out("run", "--rm", "--cap-drop", "ALL", IMAGE, "grep", "CapEff", "/proc/self/status"), "CapEff:\t0000000000000000\n")
        name = docker.out("run", "-d", "--name", "limited_one", "-m", "256m", "--cpus", "0.5", "--pids-limit", "64", "--ulimit", "nofile=333:333",
                          "--init", "--hostname", "caisson", "--shm-size", "1g", "-l", "a.b/c=d e", "--label", "bare", IMAGE, "sleep", "100").strip()
        same(docker.out("inspect", "-f", "{{.HostConfig.Memory}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}} {{index .Config.Labels \"a.b/c\"}}",
                        name), "268435456 500000000 64 d e\n")
        same(docker.out("exec", "limited_one", "sh", "-c", "ulimit -n"), "333\n")
        for words in (("--runtime", "runc"), ("--runtime", "nvidia"), ("--oom-score-adj", "500"), ("--ulimit", "memlock=-1:-1"), ("--ulimit", "nproc=10")):
            docker.fails(125, f"{' '.join(words)} is refused", "run", "--rm", *words, IMAGE, "true")
        docker.out("run", "--rm", "--oom-score-adj", "0", "--ulimit", "core=0", IMAGE, "true")
        docker.fails(125, 'Conflict. The container name "/limited_one" is already in use', "run", "--name", "limited_one", IMAGE, "true")
        docker.fails(125, 'Conflict. The container name "/limited_one" is already in use', "run", "--name", "limited_one", "-d", "-m", "256m", "--cpus",
                     "0.5", "--pids-limit", "64", IMAGE, "sleep", "100")


@test("run: folders of the host, volumes, networks")
def _(api):
    with Docker(api) as docker:
        (PLACE / "host").mkdir(exist_ok=True)
        (PLACE / "host/a").write_text("from the host\n")
        here = str(PLACE / "host")
        same(docker.out("run", "--rm", "-v", f"{here}:/mnt:ro", IMAGE, "sh", "-c", "cat /mnt/a; touch /mnt/b 2>/dev/null || echo shut"),
             "from the host\nshut\n")
        same(docker.out("run", "--rm", "-v", f"{here}:/mnt:O", IMAGE, "sh", "-c", "echo new >/mnt/a; cat /mnt/a"), "new\n")
        same(docker.out("run", "--rm", "--mount", f"type=bind,source={here},target=/mnt,readonly", IMAGE, "cat", "/mnt/a"), "from the host\n")
        same((PLACE / "host/a").read_text(), "from the host\n")
        docker.fails(125, "bind source path does not exist", "run", "--rm", "-v", "/no/such:/mnt:ro", IMAGE, "true")
        docker.fails(125, "a sandbox has one workspace", "run", "--rm", "-v", "one:/a", "-v", "two:/b", IMAGE, "true")
        docker.out("run", "--rm", "-v", "kept:/data", IMAGE, "sh", "-c", "echo kept >/data/x")
        same(docker.out("run", "--rm", "-v", "kept:/data", IMAGE, "cat", "/data/x"), "kept\n")
        for words, mode, warns in ((["--network", "none"], "none", False), ([], "none", False), (["--network", "bridge"], "none", True),
                                   (["--network", "allow:example.org"], "bridge", False)):
            status, out, err = docker.run("run", "-d", *words, IMAGE, "sleep", "100")
            same((status, "WARNING" in err), (0, warns), f"{words}: {err}")
            same(docker.out("inspect", "-f", "{{.HostConfig.NetworkMode}}", out.strip()), mode + "\n", str(words))


@test("exec: streams, codes, users, folders, background; what does not run is refused")
def _(api):
    with Docker(api) as docker:
        id = docker.out("run", "-d", "--name", "box.1", "-w", "/srv", "-e", "OWN=1", IMAGE, "sleep", "1000").strip()
        check(re.fullmatch("[0-9a-f]{64}", id), id)
        for name in ("box.1", id, id[:12], id[:6]):
            same(docker.run("exec", name, "sh", "-c", "pwd; echo $OWN$MORE >&2; exit 9", ), (9, "/srv\n", "1\n"), name)
        same(docker.out("exec", "-i", "-e", "MORE=2", "-w", "/tmp", "-u", "33", "box.1", "sh", "-c", "cat; echo $MORE; pwd; id -u", input=b"in\n"),
             "in\n2\n/tmp\n33\n")
        docker.fails(127, 'exec: "nosuch": executable file not found in $PATH', "exec", "box.1", "nosuch")
        docker.fails(126, "permission denied", "exec", "box.1", "/etc/passwd")
        docker.fails(1, "Error response from daemon: No such container: nosuch", "exec", "nosuch", "true")
        docker.fails(1, "requires at least 2 arguments", "exec", "box.1")
        docker.fails(125, "unknown flag: --foo", "exec", "--foo", "box.1", "true")
        docker.fails(1, "the input device is not a TTY", "exec", "-it", "box.1", "true")
        same(docker.out("exec", "-t", "box.1", "sh", "-c", "test -t 1 && echo tty"), "tty\r\n")
        same(docker.out("exec", "-d", "box.1", "sh", "-c", "echo done >/tmp/background"), "")
        wait_until(lambda: docker.run("exec", "box.1", "cat", "/tmp/background")[1] == "done\n", 10)
        wait_until(lambda: re.search(r"^UID .* CMD\nroot .* sleep 1000$", docker.out("top", "box.1")), what="one process")
        docker.out("stop", "-t", "1", "box.1")
        docker.fails(1, f"container {id} is not running", "exec", "box.1", "true")
        docker.out("pause", docker.out("run", "-d", "--name", "ice", IMAGE, "sleep", "100").strip())
        docker.fails(1, "is paused", "exec", "ice", "true")
        same(docker.out("ps", "--format", "{{.State}}", "--filter", "name=ice"), "paused\n")
        docker.out("unpause", "ice")
        docker.out("exec", "ice", "true")


@test("stop keeps files, start runs the command again, logs have both lives")
def _(api):
    with Docker(api) as docker:
        script = "echo life $(cat /count 2>/dev/null || echo 0); echo 1 >/count; echo error >&2; exec sleep 1000"
        docker.out("run", "-d", "--name", "lives", IMAGE, "sh", "-c", script)
        wait_until(lambda: "life" in docker.out("logs", "lives"), 10)
        docker.out("exec", "lives", "sh", "-c", "echo text >/etc/kept; mkdir /var/deep; sleep 500 >/dev/null 2>&1 &")
        same(docker.out("stop", "lives"), "lives\n")
        same(docker.out("inspect", "-f", "{{.State.Status}} {{.State.Running}} {{.State.ExitCode}}", "lives"), "exited false 143\n")
        same(docker.out("wait", "lives"), "143\n")
        same(docker.out("cp", "lives:/etc/kept", "-")[:8], "kept\0\0\0\0", "files of a stopped one")
        same(docker.out("start", "lives"), "lives\n")
        same(docker.out("exec", "lives", "sh", "-c", "cat /etc/kept; ls -d /var/deep"), "text\n/var/deep\n")
        wait_until(lambda: api.client.get("/v1/sandboxes/docker:lives/usage").json["pids"] < 3, what="what ran before is over")
        wait_until(lambda: docker.run("logs", "lives") == (0, "life 0\nlife 1\n", "error\nerror\n"), what="both lives")
        same(len("".join(docker.run("logs", "--tail", "1", "lives")[1:]).splitlines()), 1, "the last line")
        check(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z life 0\n", docker.out("logs", "-t", "lives")), "times")
        same(docker.out("restart", "-t", "1", "lives"), "lives\n")
        wait_until(lambda: docker.run("logs", "lives")[1].count("life 1") == 2, 10)
        docker.fails(1, "container is running: stop the container before removing", "rm", "lives")
        same(docker.out("kill", "lives"), "lives\n")
        same(docker.out("inspect", "-f", "{{.State.ExitCode}}", "lives"), "137\n")
        docker.fails(1, "is not running", "kill", "lives")
        docker.fails(1, "invalid signal: NOPE", "kill", "-s", "NOPE", "lives")
        docker.fails(1, "invalid signal: NOPE", "stop", "-s", "NOPE", "lives")
        docker.fails(125, "invalid signal: NOPE", "run", "-d", "--stop-signal", "NOPE", IMAGE, "true")
        docker.fails(125, "invalid argument", "run", "-d", "--stop-timeout", "x", IMAGE, "true")
        docker.out("run", "-dt", "--name", "shell", IMAGE, "sh")
        docker.out("run", "-d", "--name", "alarm", IMAGE, "sleep", "100")
        docker.out("kill", "--signal=sigalrm", "alarm")
        same(docker.out("wait", "alarm"), "142\n")
        docker.out("start", "alarm")
        docker.out("pause", "alarm")
        docker.out("kill", "alarm")
        same(docker.out("wait", "alarm"), "137\n")
        same(docker.out("inspect", "-f", "{{.State.Running}}", "shell"), "true\n", "a terminal without input")
        docker.out("run", "--name", "many", IMAGE, "sh", "-c", "i=0; while [ $i -lt 100 ]; do echo $i; i=$((i + 1)); done")
        for n, lines in (("9223372036854775808", 100), ("3", 3), ("0", 0), ("all", 100)):
            same(len(docker.out("logs", "--tail", n, "many").splitlines()), lines, n)
        same(docker.out("rm", "lives"), "lives\n")
        docker.fails(1, "No such container: lives", "rm", "lives")
        docker.out("rm", "-f", "lives")


@test("the end of its process is the end of a container, whoever looks")
def _(api):
    with Docker(api) as docker:
        docker.out("run", "-d", "--name", "short", IMAGE, "sh", "-c", "sleep 300 & echo last; exit 4")
        same(docker.out("wait", "short"), "4\n")
        wait_until(lambda: docker.out("ps", "-a", "--format", "{{.Status}}").startswith("Exited (4) "), 10)
        wait_until(lambda: api.client.get("/v1/sandboxes/docker:short").json["state"] == "stopped", 10)
        same(docker.out("logs", "-f", "short"), "last\n")
        same(docker.run("start", "-a", "short")[:2], (4, "last\n"))
        docker.out("run", "-d", "--rm", "--name", "gone", IMAGE, "sleep", "0.2")
        wait_until(lambda: "gone" not in docker.out("ps", "-a"), 10)
        docker.out("run", "--rm", "--name", "gone", IMAGE, "true")  # the name is free
        docker.out("run", "-d", "--rm", "--name", "stopped", IMAGE, "sleep", "100")
        docker.out("stop", "stopped")
        wait_until(lambda: docker.out("ps", "-aq", "--filter", "name=stopped") == "", what="removed")
        docker.out("run", "-d", "--name", "deaf", IMAGE, "sh", "-c", "trap '' TERM; echo deaf; sleep 100 & while :; do wait; done")
        wait_until(lambda: docker.out("logs", "deaf") == "deaf\n", what="its trap")
        docker.out("stop", "-t", "1", "deaf")
        same(docker.out("inspect", "-f", "{{.State.ExitCode}}", "deaf"), "137\n")
        name = docker.out("create", "--name", "later", IMAGE, "echo", "created").strip()
        same(docker.out("ps", "-a", "--format", "{{.State}} {{.Status}}", "-f", f"id={name[:12]}"), "created Created\n")
        docker.fails(1, "is not running", "exec", "later", "true")
        same(docker.out("wait", "later"), "0\n")
        same(docker.run("start", "-a", "later")[:2], (0, "created\n"))


@test("signals and terminals")
def _(api):
    with Docker(api) as docker:
        for sig, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            p = subprocess.Popen([DOCKER, "run", "--rm", IMAGE, "sh", "-c", "echo up; exec sleep 100"], env=docker.env, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            same(p.stdout.readline(), b"up\n")
            p.send_signal(sig)
            same(p.wait(100), status, str(sig))
            p.communicate()
        p = subprocess.Popen([DOCKER, "run", "--rm", IMAGE, "sh", "-c", "trap 'sleep 3; echo saved; exit 7' TERM; echo up; while :; do sleep 0.1; done"],
                             env=docker.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same(p.stdout.readline(), b"up\n")
        p.send_signal(signal.SIGTERM)
        same((p.wait(20), p.communicate()[0]), (7, b"saved\n"), "it takes its time")
        same(docker.out("ps", "-aq"), "")
        docker.out("run", "-d", "--name", "term", IMAGE, "sleep", "100")
        said = subprocess.run([sys.executable, PLACE / "term.py", "expect up", "type hello\\r", "expect <hello>", "size 40 120", "type \\x03",
                               "--", DOCKER, "exec", "-it", "term", "sh", "-c", "echo up; read x; echo \"<$x>\"; exec sleep 100"],
                              env=docker.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        check("exit 130" in said.stdout and "restored" in said.stdout, said.stdout)
        p = subprocess.Popen([DOCKER, "logs", "-f", "term"], env=docker.env, stdout=subprocess.PIPE)
        docker.out("kill", "-s", "TERM", "term")
        same(p.wait(100), 0)
        p.communicate()
        wait_until(lambda: docker.out("ps", "-aq", "-f", "exited=143"), 10)


@test("cp: files, folders and archives, both ways, by Docker's rules")
def _(api):
    with Docker(api) as docker:
        here = PLACE / "cp"
        (here / "dir/sub").mkdir(parents=True)
        (here / "a").write_bytes(b"\0file\n")
        (here / "dir/sub/b").write_text("b\n")
        (here / "dir/run").write_text("#!/bin/sh\necho ran\n")
        (here / "dir/run").chmod(0o755)
        docker.out("run", "-d", "--name", "cp", IMAGE, "sleep", "100")

        def find(path):
            return sorted(docker.out("exec", "cp", "find", path, "-type", "f").split())

        docker.out("cp", str(here / "a"), "cp:/root/new")
        docker.out("cp", str(here / "a"), "cp:/root")
        docker.out("cp", str(here / "a"), "cp:/root/")
        same(find("/root"), ["/root/a", "/root/new"])
        same(docker.out("exec", "cp", "cat", "/root/new"), "\0file\n")
        docker.out("cp", str(here / "dir/run"), "cp:/bin")  # a link to a folder
        same(docker.out("exec", "cp", "run"), "ran\n")
        docker.out("cp", str(here / "dir"), "cp:/srv1")  # not there: it is made
        docker.out("cp", str(here / "dir"), "cp:/srv1")  # there: below it
        same(find("/srv1"), ["/srv1/dir/run", "/srv1/dir/sub/b", "/srv1/run", "/srv1/sub/b"])
        docker.out("exec", "cp", "mkdir", "/srv2")
        docker.out("cp", f"{here}/dir/.", "cp:srv2")
        same(find("/srv2"), ["/srv2/run", "/srv2/sub/b"])
        same(docker.out("exec", "cp", "/srv2/run"), "ran\n")
        docker.fails(1, "Could not find the file /no/", "cp", str(here / "a"), "cp:/no/such/place")
        docker.fails(1, "Could not find the file /nowhere/", "cp", str(here / "a"), "cp:/nowhere/")
        docker.fails(1, "cannot copy directory", "cp", str(here / "dir"), "cp:/root/a")
        docker.fails(1, "No such container", "cp", str(here / "a"), "nosuch:/")
        docker.fails(1, "copying between containers is not supported", "cp", "cp:/root/a", "cp:/root/b")

        docker.out("cp", "cp:/srv2/run", str(here / "back"))
        same((here / "back").read_text(), "#!/bin/sh\necho ran\n")
        docker.out("cp", "cp:/srv2", str(here / "out"))
        same(sorted(str(p.relative_to(here)) for p in (here / "out").rglob("*")), ["out/run", "out/sub", "out/sub/b"])
        docker.out("cp", "cp:/srv2", str(here / "out"))
        docker.out("cp", "cp:/srv2/.", str(here / "out"))
        check((here / "out/srv2/sub/b").exists() and not (here / "out/srv2/srv2").exists(), "a folder that is there")
        docker.fails(1, "Could not find the file /no/such in container cp", "cp", "cp:/no/such", str(here / "x"))
        docker.out("exec", "cp", "ln", "-s", "srv2", "/alias")
        for to in ("alias1", "out"):
            docker.out("cp", "cp:/alias", str(here / to))
        check((here / "alias1/sub/b").exists() and (here / "out/alias/sub/b").exists(), "a link to a folder")

        packed = subprocess.run([DOCKER, "cp", "cp:/srv2", "-"], env=docker.env, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            same(sorted(m.name for m in tar), ["srv2", "srv2/run", "srv2/sub", "srv2/sub/b"])
            same(tar.getmember("srv2/run").mode & 0o777, 0o755)
        one = subprocess.run([DOCKER, "cp", "cp:/root/new", "-"], env=docker.env, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(one)) as tar:
            same([(m.name, tar.extractfile(m).read()) for m in tar], [("new", b"\0file\n")])
        docker.out("cp", "-", "cp:/var", input=packed)
        same(find("/var/srv2"), ["/var/srv2/run", "/var/srv2/sub/b"])
        docker.fails(1, "extraction point is not a directory", "cp", "-", "cp:/root/a", input=packed)
        docker.out("exec", "cp", "sh", "-c", "mkdir /umlaut; echo 1 >/umlaut/ü; echo 2 >\"/umlaut/$(printf 'a\\377')\"")
        odd = subprocess.run([DOCKER, "cp", "cp:/umlaut", "-"], env=docker.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        same((odd.returncode, odd.stderr), (0, b""))
        with tarfile.open(fileobj=io.BytesIO(odd.stdout)) as tar:
            same(sorted(m.name.encode("utf-8", "surrogateescape") for m in tar), [b"umlaut", b"umlaut/a\xff", "umlaut/ü".encode()])
        one = subprocess.run([DOCKER, "cp", "cp:/umlaut/ü", "-"], env=docker.env, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(one)) as tar:
            same([m.name for m in tar], ["ü"])


@test("cp: what is inside decides nothing here: no link, no name, no device")
def _(api):
    with Docker(api) as docker:
        here = PLACE / "out"
        here.mkdir()
        (PLACE / "mine").write_text("mine\n")
        docker.out("run", "-d", "--name", "bad", IMAGE, "sleep", "100")

        def inside(script):
            docker.out("exec", "bad", "sh", "-c", script)

        inside(f"mkdir -p /t/d; cd /t; ln -s {PLACE}/mine a; ln -s ../mine up; ln -s d inner; ln -s d/../../mine round; mkfifo d/pipe; echo f >d/f; "
               "chmod 6755 d/f; ln -s / root; ln d/f hard")
        status, _, err = docker.run("cp", "bad:/t", str(here))
        same(status, 0, err)
        check("left out 4 " in err, err)
        same(sorted(str(p.relative_to(here)) for p in here.rglob("*")), ["t", "t/d", "t/d/f", "t/hard", "t/inner"])
        same((here / "t/d/f").stat().st_mode & 0o7777, 0o755)
        inside("cd /t; rm inner; mkdir inner; echo through >inner/g; rm a; mkdir a; echo x >a/mine")
        docker.fails(1, "inner", "cp", "bad:/t", str(here))  # a link of before is not gone through
        same(sorted(p.name for p in (here / "t/d").iterdir()), ["f"])
        (here / "link").symlink_to(PLACE / "mine")
        (here / "null").symlink_to("/dev/null")
        inside("echo theirs >/link; cp /link /null; cp /link /full")
        for words in (["bad:/link", str(here)], ["bad:/link", str(here / "link")], ["bad:/null", str(here)], ["bad:/full", "/dev"],
                      ["bad:/full", "/dev/null"], ["bad:/full", "/dev/stdout"]):
            docker.fails(1, "is neither a file nor a folder", "cp", *words)
        check(pathlib.Path("/dev/null").is_char_device() and pathlib.Path("/dev/stdout").is_symlink(), "devices")
        same((PLACE / "mine").read_text(), "mine\n")
        docker.out("cp", "bad:/t/d/f", str(here / "program"))
        same((here / "program").stat().st_mode & 0o7777, 0o755)


@test("ps, inspect, images: columns, templates, filters")
def _(api):
    with Docker(api) as docker:
        one = docker.out("run", "-d", "--name", "one", "-l", "kind=x", "-l", "n=1", IMAGE, "sleep", "1000").strip()
        docker.run("run", "--name", "two", "-l", "kind=y", "plain", "sh", "-c", "exit 5; echo 'a longer command'")
        wait_until(lambda: docker.out("ps", "-a", "--format", "{{.State}}", "--filter", "name=two") == "exited\n", what="its end")
        lines = docker.out("ps").splitlines()
        check(re.fullmatch(r"CONTAINER ID   IMAGE         COMMAND        CREATED +STATUS +PORTS     NAMES", lines[0]), lines[0])
        check(re.fullmatch(r"[0-9a-f]{12}   python:3.12   \"sleep 1000\"   .+ ago +Up .+ +one", lines[1]), lines[1])
        same(len(lines), 2)
        same(docker.out("ps", "-aq", "--no-trunc").split()[1], one)
        same(docker.out("ps", "-q"), one[:12] + "\n")
        same(docker.out("container", "ls", "-a", "--format", "{{.Names}} {{.State}} {{.Label \"kind\"}}"), "two exited y\none running x\n")
        same(docker.out("ps", "-a", "--format", "table {{.Names}}\t{{.Command}}").splitlines()[:2],
             ["NAMES     COMMAND", 'two       "sh -c exit 5; echo …"'])
        row = json.loads(docker.out("ps", "--format", "json"))
        same((row["ID"], row["Names"], row["Image"], row["State"], row["Labels"]), (one[:12], "one", IMAGE, "running", "kind=x,n=1"))
        same(json.loads(docker.out("ps", "--format", "{{json .}}"))["Names"], "one")
        for filters, names in ((["name=on"], "one"), (["name=^on$"], ""), (["name=^/one$"], "one"), (["name=o.e|tw+o$"], "two one"), (["label=kind"], "two one"), (["label=kind=x"], "one"),
                               (["label=kind", "label=n=1"], "one"), (["status=exited"], "two"), (["status=running", "status=exited"], "two one"),
                               (["ancestor=plain"], "two"), (["exited=5"], "two"), ([f"id={one[:5]}"], "one")):
            words = [w for f in filters for w in ("--filter", f)]
            same(docker.out("ps", "-a", *words, "--format", "{{.Names}}").split(), names.split(), str(filters))
        docker.fails(1, "invalid filter 'frob'", "ps", "--filter", "frob=1")
        docker.fails(1, "can't evaluate field Nope", "ps", "-a", "--format", "{{.Nope}}")
        all = json.loads(docker.out("inspect", "one", "two"))
        same([o["Name"] for o in all], ["/one", "/two"])
        same((all[0]["Id"], all[0]["Path"], all[0]["Args"], all[0]["State"]["Running"]), (one, "sleep", ["1000"], True))
        same((all[1]["State"]["Status"], all[1]["State"]["ExitCode"], all[1]["Config"]["Labels"]), ("exited", 5, {"kind": "y"}))
        same(docker.out("inspect", "--format", "{{.Name}} {{range .Config.Cmd}}[{{.}}]{{end}} {{if .State.Running}}up{{else}}down{{end}}", "one", "two"),
             "/one [sleep][1000] up\n/two [sh][-c][exit 5; echo 'a longer command'] down\n")
        status, out, err = docker.run("inspect", "one", "nosuch", "-f", "{{.Id}}")
        same((status, out, err), (1, one + "\n", "Error: No such object: nosuch\n"))
        check(re.match(r"REPOSITORY +TAG +IMAGE ID +CREATED +SIZE\n", docker.out("images")), "images")
        same(docker.out("images", "plain", "--format", "{{.Repository}}:{{.Tag}}"), "plain:latest\n")
        check(docker.out("images", "-q", IMAGE).strip(), "an id")
        same(docker.out("images", "-q", "nosuch"), "")
        same(json.loads(docker.out("image", "inspect", IMAGE))[0]["RepoTags"], [IMAGE])
        docker.fails(1, "No such image", "image", "inspect", "nosuch")
        check(docker.out("pull", IMAGE).endswith(f"Status: Image is up to date for {IMAGE}\n{IMAGE}\n"), "pull")
        docker.fails(1, "No such image", "pull", "nosuch")
        check(docker.out("--version").startswith("Docker version "), "version")
        same(docker.out("--config", "/tmp", "--log-level=error", "-l", "info", "-D", "ps", "-q"), one[:12] + "\n")
        for words in (["-H", "tcp://x"], ["--host=tcp://x"], ["--context", "x"]):
            docker.fails(125, "is refused: $CAISSON_SOCKET says which daemon", *words, "ps")
        same(docker.out("version", "--format", "{{.Server.Os}} {{.Server.APIVersion}}"), "linux 1.47\n")
        same(docker.out("info", "--format", "{{.Containers}} {{.ContainersRunning}}"), "2 1\n")


@test("ports are forwarded, with a token that is told")
def _(api):
    with Docker(api) as docker:
        status, out, err = docker.run("run", "-d", "--name", "web", "-p", "8123:80", IMAGE, "sleep", "100")
        same(status, 0, err)
        check(re.search(r"WARNING: -p 8123:80: HTTP at http://\S+, and every request needs \S+: \S+", err), err)
        same(docker.out("port", "web"), "80/tcp -> 127.0.0.1:8123\n")
        same(docker.out("port", "web", "80"), "127.0.0.1:8123\n")
        docker.fails(1, "no public port '81' published", "port", "web", "81")
        same(docker.out("ps", "--format", "{{.Ports}}"), "127.0.0.1:8123->80/tcp\n")
        docker.fails(125, "-p 8123:81", "run", "-d", "--name", "web2", "-p", "8123:81", IMAGE, "sleep", "100")
        docker.fails(1, "No such container: web2", "rm", "web2")


@test("sandboxes that are not Docker's can be entered, and are not listed")
def _(api):
    with Docker(api) as docker:
        made = api.client.post("/v1/sandboxes", {"key": "native"}).json
        same(docker.out("exec", "native", "pwd"), "/work\n")
        same(docker.out("exec", made["id"], "echo", "by id"), "by id\n")
        same(docker.out("ps", "-aq"), "")
        docker.fails(1, "was not made by `docker run`", "restart", "native")
        docker.out("rm", "-f", "native")


@test("a container's end is on record through the daemon's death", own=True)
def _(api):
    daemon = lib.Daemon("killed").start()
    docker = Docker(type("Own", (), {"daemon": daemon}), [IMAGE])
    docker.out("run", "-d", "--name", "over", IMAGE, "sleep", "1")
    docker.out("run", "-d", "--rm", "--name", "removed", IMAGE, "sleep", "1")
    daemon.kill()
    time.sleep(1.2)
    daemon.start()
    wait_until(lambda: docker.out("ps", "-a", "--format", "{{.Names}} {{.State}}") == "over exited\n", 20)
    docker.out("rm", "over")
    daemon.wait_clean()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(lib.main(__file__, prepare=prepare))
