#!/bin/bash
# user.sh - who the command is, inside and outside.
. "$(dirname "$0")/lib.sh"

while read -r flag name uid gid; do
	run -u "$flag" -- sh -c 'echo "$(id -un 2>/dev/null) $(id -u) $(id -g)"'
	t_is "-u $flag" "$status $out" "0 $name $uid $gid"
done <<-'END'
	agent agent 1000 1000
	root root 0 0
	0 root 0 0
	1234 1234 1234 1234
	1234:55 1234 1234 55
	65534 nobody 65534 65534
END
run -- id -un
t_is "agent, when nobody is named" "$out" agent
run -u root -- sh -c 'echo $HOME $USER; cd; pwd; touch f && stat -c "%U %a" .'
t_is "root is at home in /root" "$out" $'/root root\n/root\nroot 700'
run -u 1234 -- sh -c 'touch /work/f /tmp/f ~/f && stat -c "%u" /work ~ | tr "\n" " "'
t_is "a number has a home and a place to work" "$status $out" "0 1234 1234 "
run -u 1234 -- id -G
t_is "no other groups" "$out" 1234
t_says "a user that is not there" 125 "user: somebody is not in the image*" -u somebody -- true
if is_root; then
	t_says "a number that is not mapped" 125 "user: *70000*" -u 70000 -- true
fi

# ---- outside ----
look() { # USER: what the host sees of a process of his
	local pid
	start -u "$1" -- sh -c "sleep 60; : $mark"
	pid=$(inside_pid)
	sed -nE 's/^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):\s*/\1 /p' "/proc/$pid/status" >"$T/seen"
	readlink "/proc/$pid/ns/user" >"$T/ns"
	stop
}
for user in root agent; do
	look "$user"
	ids=$(sed -n 's/^[UG]id //p' "$T/seen" | tr '\t ' '\n\n' | sort -u)
	if is_root; then
		t_ok "$user inside is a number that is nobody's outside" awk '$1 < 65536 { exit 1 }' <<<"$ids"
		t_ok "with no account" test -z "$(getent passwd "$(head -n 1 <<<"$ids")")"
	else
		t_is "$user inside is the caller outside" "$ids" "$(id -u)"
	fi
	t_is "no capability in any set" "$(sed -n 's/^Cap.* //p' "$T/seen" | sort -u)" 0000000000000000
	t_is "no_new_privs and a filter" "$(grep -e NoNew -e Seccomp "$T/seen" | tr '\n' ' ')" "NoNewPrivs 1 Seccomp 2 "
	groups=$(sed -n 's/^Groups //p' "$T/seen" | tr -d ' \n')
	is_root || [ "$groups" != "$(id -G | tr -d ' ')" ] || groups= # he cannot drop them: THREATS.md
	t_is "no group of the caller" "$groups" ""
	t_ok "in a user namespace of its own" test "$(cat "$T/ns")" != "$(readlink /proc/self/ns/user)"
done
t_gone "nothing is left"
# Two at a time do not share an id range.
if is_root; then
	start -- sh -c "sleep 60; : $mark"
	first=$(stat -c %u "/proc/$(inside_pid)/cwd/.")
	run -- sh -c 'cat /proc/self/uid_map'
	t_ok "two sandboxes have ids of their own" test "$first" -gt 65536 -a "$((first - 1000))" != "$(awk '{ print $2 }' <<<"$out")"
	stop
fi

run -u root -- sh -c 'n=0; while read -r line; do $line 2>/dev/null || n=$((n + 1)); done <<-END
	chown 5 /work
	mount -t tmpfs x /work
	hostname x
	chroot / true
	mknod /work/d c 1 3
	touch /etc/x
	cat /proc/1/environ
	unshare -m true
	END
	echo $n refused'
t_is "root inside may do nothing that agent may not" "$out" "8 refused"

# ---- profile: rootful, for installing packages ----
if ! is_root; then # one id is all there is, and /usr belongs to somebody else
	t_says "rootful is unenforceable here" 125 "unenforceable: profile (*" --profile rootful -u root -- true
	t_done
fi
rootful() { run --profile rootful -u root "$@"; }
rootful -- sh -c 'touch f && chown 5:6 f && stat -c "%u %g" f && chmod 4755 f && install -o 7 -g 8 -m 600 f /usr/local/bin/g && stat -c "%u %g %a" /usr/local/bin/g'
t_is "rootful: chown and install" "$status $out" $'0 5 6\n7 8 600'
rootful -- sh -c 'echo x >/etc/made && echo x >/usr/lib/made && rm /usr/bin/env && echo changed >/usr/bin/env && ls /etc/made /usr/lib/made && cat /usr/bin/env'
t_is "rootful: the system can be changed" "$status $out" $'0 /etc/made\n/usr/lib/made\nchanged'
t_ok "rootful: but not the host's" test ! -e /etc/made -a ! -e /usr/lib/made -a "$(wc -c </usr/bin/env)" -gt 1000
rootful -- python3 -c 'import os; os.setgroups([]); os.setgid(1000); os.setuid(1000); os.execlp("sh", "sh", "-c", "id -u; touch /usr/x")'
t_is "rootful: can become another user, who may less" "$status $out" "1 1000"
if ! has_attributes; then # dpkg renames the folders that it unpacks
	t_skip "rootful: a Debian package installs" "$NO_ATTRIBUTES"
elif command -v dpkg-deb >/dev/null; then
	mkdir -p pkg/DEBIAN pkg/opt/hello debs
	printf 'Package: hello-caisson\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: test\n' >pkg/DEBIAN/control
	printf '#!/bin/sh\nchown 33:33 /opt/hello/file\n' >pkg/DEBIAN/postinst
	chmod 755 pkg/DEBIAN/postinst
	echo hello >pkg/opt/hello/file
	dpkg-deb --build --root-owner-group pkg debs/hello.deb >/dev/null
	rootful --fs "ro:$T/debs:/debs" -- sh -c 'mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates && : >/var/lib/dpkg/status &&
		dpkg -i /debs/hello.deb >/dev/null && stat -c "%u %n" /opt/hello/file && dpkg -s hello-caisson | grep ^Status'
	t_is "rootful: a Debian package installs" "$status $out" $'0 33 /opt/hello/file\nStatus: install ok installed'
fi
rootful -- sh -c 'grep CapBnd /proc/self/status; mount -t tmpfs x /mnt; unshare -m true'
t_like "rootful: six capabilities and no more" "$out" "CapBnd:*00000000000000eb"
t_ok "rootful: no mounts, no namespaces" test "$status" != 0
run --profile rootful -- sh -c 'id -u; chown 5 /work/x 2>/dev/null || touch /usr/x 2>/dev/null'
t_is "rootful: agent stays agent" "$status $out" "1 1000"
t_done
