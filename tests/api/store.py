"""store.py - the rows FSX about what the host mounts for a sandbox: workspaces, their layers, owners and flags."""
import os
import re

from corpus import as_user, row
from lib import check, same


def workspace(c, key, **ask):
    return c.ok("PUT", f"/v1/workspaces/{key}", ask)


def sandbox_of(c, key, **spec):
    return c.create(workspace=key, fs=["workspace:/work"], **spec)


def forget(c, *keys):
    c.remove_all()
    for key in keys:
        c.call("DELETE", f"/v1/workspaces/{key}?force")


WRITES = ("echo x > f", ": > new", "rm f", "mv f g", "chmod 777 f", "touch f", "touch -d 2001-01-01 f", "ln f h", "ln -s f s", "mkdir d",
          "rmdir sub", "truncate -s 0 f", "fallocate -l 9 f", "mkfifo p", "cp f c", "chmod 777 .", "touch .", "rm -rf .", "dd if=/dev/null of=f",
          "python3 -c \"import os; os.setxattr('f', 'user.x', b'1')\"",
          "python3 -c \"import mmap, os; mmap.mmap(os.open('f', os.O_RDWR), 1)\"",
          "python3 -c \"import fcntl, os; fcntl.ioctl(os.open('.', os.O_RDONLY), 0x40086602, b'\\x10' + bytes(7))\"")  # FS_IOC_SETFLAGS


def write_attempts(c, sandbox, users=("agent", "root")):
    """Every way to write to /work: the list of those that worked."""
    worked = []
    for user in users:
        for attempt in WRITES:
            if c.execute(sandbox, f"cd /work && {attempt}", user=user, wait="20s")["exit_code"] == 0:
                worked.append(f"{user}: {attempt}")
    return worked


@row("FSX-11", "every way to write to a workspace that is only read, also below it")
def _(api):
    c = api.client
    edit = workspace(c, "fsx-11")
    s = sandbox_of(c, "fsx-11")
    c.execute(s, "echo here > f; mkdir -p sub; echo here > sub/f", wait="20s")
    check(write_attempts(c, s, users=("agent",)), "none of them works where one may write: the row proves nothing")
    workspace(c, "fsx-11-read", mode="read")
    s = sandbox_of(c, "fsx-11-read")
    same(write_attempts(c, s), [], "OPEN: written to a workspace of mode read")
    forget(c, "fsx-11", "fsx-11-read")
    return edit["mode"]


# Names, descriptors and attributes that could lead to a layer.
REACH = r"""
for p in /m /t /x /y /w /l /b /v /proc/1/root/m /proc/1/cwd /proc/self/root/../m /work/../m /work/../t /work/../../t; do
  [ -e "$p" ] && echo "there is $p"
done
for p in /proc/[0-9]*; do
  for f in "$p"/fd/* "$p"/cwd "$p"/root; do
    case $(readlink "$f" 2>/dev/null) in */trees/*|*/blobs*|*/vol/*|/m/*|/t/*) echo "$f leads there";; esac
  done
done
python3 - <<'END'
import os
for at, folders, files in os.walk("/work"):
    for name in [*folders, *files, "."]:
        for attribute in os.listxattr(os.path.join(at, name), follow_symlinks=False):
            if "overlay" in attribute:
                print("attribute", attribute)
for path in ("/work/../d", "/work/..//17/d", "/work/.../d"):
    if os.path.exists(path):
        print("there is", path)
END
find / -xdev \( -name sealed -o -name trees -o -name blobs \) 2>/dev/null
"""


@row("FSX-18", "the layers of a workspace from inside, by name, by descriptor, by attribute; and for other users of the host")
def _(api):
    c, d = api.client, api.daemon
    workspace(c, "fsx-18")
    for user in ("agent", "root"):
        s = sandbox_of(c, "fsx-18", user=user)
        c.execute(s, "mkdir -p d; echo x > d/f; mv d e; rm e/f; mkdir e/f", wait="20s")
        seen = c.execute(s, REACH, wait="30s")
        same(seen["stdout"], "", f"OPEN: {user} reaches a layer")
        mounts = c.execute(s, "cat /proc/self/mountinfo", wait="20s")["stdout"]
        line = next(m for m in mounts.splitlines() if " /work " in m)
        check(str(d.state) not in line, f"OPEN: the mount tells where it lies: {line}")
    for name in ("trees", "blobs", "vol"):
        info = (d.state / name).stat()
        same((info.st_uid, info.st_mode & 0o7777), (0, 0o700), name)
    for path in (d.state, d.state / "trees", d.run / "vt"):
        same(as_user(lambda path=path: os.listdir(path)), "PermissionError", f"{path}, another user")
    forget(c, "fsx-18")


@row("FSX-24", "who owns what is written to a workspace; chown to ids of the host, of others, of nobody")
def _(api):
    c, d = api.client, api.daemon
    workspace(c, "fsx-24")
    s = sandbox_of(c, "fsx-24", user="root", profile="rootful")
    made = c.execute(s, "cd /work; touch a b c; chown 1000 a; chown 65534 b; chown 65535 c; echo $?; chown 1879048192 c; echo $?; "
                        "chown 4294967294 c; echo $?; stat -c %u a b c", wait="20s")
    same(re.findall(r"^\d+$", made["stdout"], re.MULTILINE), ["1", "1", "1", "1000", "65534", "0"], f"chown: {made}")
    c.execute(s, "touch /work/agents", user="agent", wait="20s")
    tops = [p.parent for p in d.state.glob("trees/*/d/agents")]
    same(len(tops), 1, "tops with the file")
    owners = {p.name: (p.stat().st_uid, p.stat().st_gid) for p in tops[0].iterdir()}
    same(owners, {"a": (1000, 0), "b": (65534, 0), "c": (0, 0), "agents": (1000, 1000)}, "on disk: the ids inside, and behind 0700")
    same(as_user(lambda: os.stat(tops[0] / "c")), "PermissionError", "a file of root's id, for a user of the host")
    setid = c.execute(s, "cd /work; cp /bin/id i; chmod 6755 i; stat -c %a i", wait="20s")["stdout"].strip()
    seen = c.execute(s, "/work/i -u; grep NoNewPrivs /proc/self/status", user="agent", wait="20s")["stdout"]
    check(seen.startswith("1000\n"), f"OPEN: setuid works in a workspace: {seen}")
    forget(c, "fsx-24")
    return f"mode {setid} is kept, and nothing comes of it"


# What must be among the flags of a mount, by its place; longest first. Everything else must be in the last row.
FLAGS = ((r"/work", {"rw", "nosuid", "nodev"}), (r"/proc", {"ro", "nosuid", "nodev", "noexec"}),
         (r"/proc/(sys|acpi).*", {"ro", "nosuid", "nodev"}), (r"/proc/.*", {"nosuid", "noexec"}),
         (r"/dev/(null|zero|full|random|urandom|tty|pts)", {"nosuid", "noexec"}), (r"/(tmp|run|home/agent|root|dev/shm)", {"rw", "nosuid", "nodev"}),
         (r".*", {"ro", "nosuid", "nodev"}))


@row("FSX-25", "the flags of every mount inside, with a workspace that is written or read")
def _(api):
    c = api.client
    wrong, n = [], 0
    for key, ask, work in (("fsx-25", {}, "rw"), ("fsx-25-read", {"mode": "read"}, "ro")):
        workspace(c, key, **ask)
        s = sandbox_of(c, key)
        for line in c.execute(s, "cat /proc/self/mountinfo", wait="20s")["stdout"].splitlines():
            at, flags = line.split()[4], set(line.split()[5].split(","))
            wanted = next(w for pattern, w in FLAGS if re.fullmatch(pattern, at))
            wanted = wanted - {"rw"} | {work} if at == "/work" else wanted
            wrong += [f"{at}: {sorted(flags)}, without {sorted(wanted - flags)}"] * bool(wanted - flags)
            n += 1
    check(n > 20, f"only {n} mounts seen")
    check(not wrong, "OPEN: " + "\n".join(wrong))
    forget(c, "fsx-25", "fsx-25-read")
    return f"{n} mounts"
