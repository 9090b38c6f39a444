#!/bin/bash
# image.sh - what a command sees as its root: image `host`, and a directory.
. "$(dirname "$0")/lib.sh"

inside() { run -- sh -c "$1"; }

# ---- host: nothing of the host's people, secrets and state ----
inside 'ls -A /home'
t_is "no home but the agent's" "$out" agent
inside 'ls -A /home/agent /root /run /tmp /opt /var/lib /var/log /var/cache'
t_is "its home, /root, /run, /tmp and /var are empty" "$(grep -v ':$' <<<"$out" | tr -d '\n')" ""
for path in /etc/shadow /etc/gshadow /etc/ssh /etc/sudoers /etc/krb5.keytab /etc/cloud /etc/NetworkManager \
	/etc/wireguard /etc/apt/auth.conf /etc/docker /etc/kubernetes /etc/gitconfig /etc/npmrc /etc/pip.conf \
	/etc/ssl/private /var/lib/cloud /var/lib/dpkg /var/run/docker.sock /boot /mnt /srv /lost+found; do
	inside "test -e $path || test -L $path"
	t_is "no $path" "$status" 1
done
inside 'cat /etc/machine-id /etc/hostname /etc/resolv.conf; test -e /var/lib/dbus/machine-id; echo $?'
t_is "machine-id is empty, the names are our own" "$out" $'caisson\n# no name server: net is denied\n1'
inside 'cut -d: -f1 /etc/passwd | tr "\n" " "; cut -d: -f1 /etc/group | tr "\n" " "'
t_is "accounts are our own" "$out" "root agent nobody root tty agent nogroup "
inside 'find / -xdev \( -type s -o -type p -o -type b \) 2>/dev/null; find /run /tmp /var -type s'
t_is "no sockets, pipes, disks" "$out" ""
inside 'awk "\$4 !~ /nosuid/ { print \$2 }" /proc/self/mounts'
t_is "no mount honours setuid" "$out" ""
inside 'touch /usr/x /usr/bin/x /etc/x /x 2>/dev/null; ls /usr/x /usr/bin/x /etc/x /x 2>/dev/null'
t_is "the system is not writable" "$out" ""
inside 'ls /dev | tr "\n" " "'
t_is "/dev" "$out" "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero "
inside 'echo x >/dev/null; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c; echo x >/dev/full' 
t_is "the nodes work" "$out" $'4\n4'
inside 'echo /proc/[0-9]* | wc -w; grep -c . /proc/net/route' # sh, ls and pid 1 at most; the head line
t_like "/proc shows its own processes and network" "$out" $'[1-4]\n1'
inside 'hostname; uname -n'
t_is "the host's name is not told" "$out" $'caisson\ncaisson'
inside 'ls -A /sys'
t_is "/sys is a small one" "$out" devices

# ---- host: what people work with, if the host has it ----
works() { # PROGRAM SCRIPT WANT
	command -v "$1" >/dev/null || return 0
	inside "$2"
	t_is "$1 works" "$status $out" "0 $3"
}
works git 'git init -q . && git config user.name a && git config user.email a@example.org && echo x >f && git add f &&
	git commit -qm first && git log --format=%s && git status --short' first
works python3 'python3 -c "import json, ssl, sqlite3, subprocess, threading, multiprocessing as m
if __name__ == \"__main__\": print(sum(m.Pool(2).map(abs, [-1, -2])))"' 3
works cc 'printf "#include <stdio.h>\nint main(void) { return puts(\"built\") < 0; }\n" >a.c && cc -O2 -pthread a.c -o a && ./a' built
works c++ 'printf "#include <iostream>\nint main() { std::cout << 1 + 1; }\n" >a.cc && c++ a.cc -o a && ./a' 2
works make 'printf "all:\n\t@echo made\n" >Makefile && make' made
works node 'node -e "console.log(6 * 7, os.cpus().length > 0)"' "42 true"
works ps 'ps -o comm= -p $$; ps ax | grep -c "sh -c"' $'sh\n2'
works rg 'echo needle >f && rg -c needle f' 1
works perl 'perl -MPOSIX -e "print floor(2.5)"' 2
works tar 'mkdir d && echo x >d/f && tar -czf a.tgz d && tar -tzf a.tgz | tail -n 1' d/f
works curl 'curl -s -m 5 http://example.org/ >/dev/null; echo $?' 6

inside 'id -un; id -u; id -g; echo ~; pwd; echo $HOME $USER; stat -c %U . ~ | tr "\n" " "; touch ~/a /tmp/a /work/a && echo writable'
t_is "agent, at home in /home/agent, at work in /work" "$out" \
	$'agent\n1000\n1000\n/home/agent\n/work\n/home/agent agent\nagent agent writable'
inside 'ls -A /work /tmp ~'
t_is "and nothing of that is there the next time" "$(tr -d '\n' <<<"$out")" "/home/agent:/tmp:/work:"

# ---- a directory ----
img=$T/img
mkdir -p "$img/bin" "$img/etc" "$img/opt/app"
for program in sh ls cat id stat touch; do
	path=$(readlink -f "$(command -v $program)")
	cp "$path" "$img/bin/$program"
	for library in $(ldd "$path" | grep -o '/[^ ]*'); do
		mkdir -p "$img${library%/*}"
		cp -n "$library" "$img$library"
	done
done
printf 'root:x:0:0::/root:/bin/sh\nbuilder:x:1500:1500::/opt/app:/bin/sh\n' >"$img/etc/passwd"
echo "of the image" >"$img/opt/app/file"
tree() { find "$img" -printf '%P %m %U %s %T@ %C@\n' | sort; }
tree >before
indir() { run --image "dir:$img" "$@"; }
indir -- sh -c 'cat /opt/app/file; ls /usr 2>&1; id -u; pwd'
t_is "dir: the folder is the root" "$out" $'of the image\nls: cannot access \'/usr\': No such file or directory\n1000\n/work'
indir -- ls -d /dev/null /dev/pts /proc/self /run /tmp /home/agent /work
t_is "dir: with the folders that every program counts on" "$status" 0
indir -u builder -- id
t_is "dir: users of its own passwd" "$out" "uid=1500(builder) gid=1500 groups=1500"
indir -u 4321 -- id -u
t_is "dir: or a number" "$out" 4321
indir -- sh -c 'touch /tmp/a /work/a && echo ok; touch /bin/b; echo $?'
t_is "dir: /tmp and /work are writable, the image is not" "$out" $'ok\n1'
indir -- nonesuch
t_is "dir: what is not in it is not found" "$status" 127
tree >after
t_ok "dir: nothing of it changed on the host" cmp before after
run --image "dir:$img/etc/passwd" -- true
t_like "dir: a file is no image" "$status $err" "125 caisson: image: * is not a folder"
ln -s /etc/shadow "$img/opt/app/link"
indir -- cat /opt/app/link
t_is "dir: a link does not lead out" "$status" 1
if ! is_root; then
	run --image "dir:$closed" -- true
	t_like "dir: one that the caller may not read" "$status $err" "125 caisson: image: * $closed: Permission denied"
fi
t_done
