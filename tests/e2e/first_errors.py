"""first_errors.py SETTING=VALUE PROGRAM [ARG]... - for first-errors.sh: a program of this user's, in a user namespace in which
a setting of user.* is another. There it can be changed without root, and the kernel means it."""
import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000

uid, gid = os.geteuid(), os.getegid()
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(CLONE_NEWUSER) < 0:
    sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
name, value = sys.argv[1].split("=")
for path, text in (("self/setgroups", "deny"), ("self/gid_map", f"{gid} {gid} 1"), ("self/uid_map", f"{uid} {uid} 1"),
                   ("sys/" + name.replace(".", "/"), value)):
    with open("/proc/" + path, "w", encoding="ascii") as file:
        file.write(text)
os.execv(sys.argv[2], sys.argv[2:])
