#!/bin/bash
# first-errors.sh - what somebody meets in the first five minutes, provoked for real: each error says what to type.
. "$(dirname "$0")/lib.sh"

unset CAISSON_SOCKET # of the daemon that other scripts use
export XDG_RUNTIME_DIR=$T/run XDG_STATE_HOME=$T/state
mkdir "$XDG_RUNTIME_DIR"
own=$XDG_RUNTIME_DIR/caisson # of the daemon that a user's command starts

# caisson WORDS...: its status and all that it said.
c() {
	bounded "$caisson" "$@" >"$T/said" 2>&1 </dev/null
	echo "$? $(cat "$T/said")"
}
serve() { c serve --config none --state "$T/s" --run "$T/r" "$@"; }

serving= # the one in the background
start_serving() {
	"$caisson" serve --config none --state "$T/s" --run "$T/r" >"$T/served" 2>&1 </dev/null &
	serving=$!
	eventually grep -qs "requests are answered" "$T/served"
}
stop_serving() {
	[ -z "$serving" ] || { kill "$serving" && wait "$serving"; }
	serving=
}
# Those that a client has started here: the launcher ends when it is told to.
stop_own() {
	local pid args
	for pid in /proc/[0-9]*; do
		mapfile -d '' -t args 2>/dev/null <"$pid/cmdline" || continue
		[[ ${args[0]-} == */caisson-launcher && " ${args[*]} " == *" $T/run/caisson "* ]] || continue
		grep -q '^PPid:	1$' "$pid/status" 2>/dev/null && kill "${pid#/proc/}"
	done
	eventually test ! -S "$own/api.sock"
}
trap 'stop_serving; stop_own' EXIT

# ---- a command line ----
t_is "a verb" "$(c rnu -- true)" "125 caisson: unknown command rnu; did you mean run?"
t_is "an option of run" "$(c run --memm 1g -- true)" "125 caisson: unknown option --memm; did you mean --mem?"
t_is "another" "$(c run --colect x -- true)" "125 caisson: unknown option --colect; did you mean --collect?"
t_is "an option of the spec" "$(c create --memm 1g)" "125 caisson: unknown option --memm; did you mean --mem?"
t_is "an option of a verb" "$(c exec --shel main x -- true)" "125 caisson: unknown option --shel; did you mean --shell?"
t_is "an option of the config" "$(c serve --lsten x)" "125 caisson: unknown option --lsten; did you mean --listen?"
t_is "one that is like none" "$(c list --nonsense)" "125 caisson: unknown option --nonsense; \`caisson help list\` lists them"

# ---- a daemon, and the way to it ----
t_like "no daemon where one was named" "$(CAISSON_SOCKET=$T/none c list)" \
	"125 caisson: connect to $T/none: No such file or directory; start it with \`caisson serve\`, or let commands do it: unset CAISSON_SOCKET*"
t_like "nor anybody at that port" "$(CAISSON_HOST=127.0.0.1:1 c list)" \
	"125 caisson: connect to 127.0.0.1:1: Connection refused; over there: caisson serve --listen HOST:PORT"

python3 - "$T/busy" <<-'END' &
	import socket, sys, time
	with socket.create_server(("127.0.0.1", 0)) as s:
	    open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
	    __import__("os").rename(sys.argv[1] + ".new", sys.argv[1])
	    time.sleep(600)
END
busy=$!
eventually test -s "$T/busy"
port=$(cat "$T/busy")
t_is "a port that is taken" "$(serve --listen "127.0.0.1:$port")" \
	"125 caissond: 127.0.0.1:$port: listen: Address already in use; \`ss -ltnp\` shows who has it; choose another: --listen HOST:PORT"
t_like "the same in the background" "$(serve --detach --listen "127.0.0.1:$port")" \
	"125 caisson: the daemon did not start: caissond: 127.0.0.1:$port: listen: Address already in use; \`ss -ltnp\` shows who has it*"
kill "$busy"
wait "$busy" 2>/dev/null
t_like "an address of another host" "$(serve --listen 192.0.2.1:7300)" "125 caissond: 192.0.2.1:7300: listen: Cannot assign requested address; \`ip -br addr\` lists*"
if ! is_root && [ "$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)" -gt 80 ]; then
	t_like "a port that is root's" "$(serve --listen 127.0.0.1:80)" "125 caissond: 127.0.0.1:80: listen: Permission denied; ports below 1024 are root's*"
fi

start_serving
t_like "a second one in the same place" "$(serve)" "3 caisson-launcher: another launcher has $T/r; \`caisson list\` reaches its daemon; for one more: caisson serve --run DIR --state DIR"
is_root || # it is given some seconds for the end of the other
	t_like "one with the same state" "$(c serve --config none --state "$T/s" --run "$T/r2")" \
	"125 caissond: state folder $T/s: another daemon is using this folder; end that one, or use another folder: caisson serve --state DIR"
t_is "an image that there is not" "$(CAISSON_SOCKET=$T/r/api.sock c run --image debian -- true)" \
	'125 caisson: image: there is no "debian"; valid: host; another: caisson image import NAME FILE|oci:DIR'
if is_root; then
	chmod 711 "$T"
	t_like "a socket of somebody else's" \
		"$(CAISSON_SOCKET=$T/r/api.sock setpriv --reuid "$OTHER_UID" --regid "$OTHER_UID" --clear-groups -- "$caisson" list 2>&1; echo $?)" \
		"caisson: connect to $T/r/api.sock: Permission denied; the socket is of who started the daemon: sudo caisson *unset CAISSON_SOCKET*"$'\n125'
fi
kill -KILL "$serving"
wait "$serving" 2>/dev/null
serving=
t_like "a socket that is left of one that was killed" "$(CAISSON_SOCKET=$T/r/api.sock c list)" \
	"125 caisson: connect to $T/r/api.sock: Connection refused; start it with \`caisson serve\`*"
start_serving
t_like "which the next one takes over" "$(CAISSON_SOCKET=$T/r/api.sock c list)" "0 ID *"
stop_serving

# ---- programs that are not there ----
for name in caissond caisson-launcher caisson-init caisson-tree; do
	rm -rf "${T:?}/bin" && cp -r "$E2E_BASE/bin" "$T/bin" && rm "$T/bin/$name"
	said=$(caisson=$T/bin/caisson; is_root && serve || c list)
	t_like "without $name" "$said" "125 *$name*; \`make install\` puts all programs in place"
	stop_own
done

# ---- what only a user meets ----
if ! is_root; then
	if ! has_cgroup memory; then
		said=$(c run --mem 1g -- true)
		t_like "no cgroup was delegated" "$said" "125 caisson: unenforceable: mem (no cgroup delegation); allow with --allow-weaker mem, or have one: *"
		t_like "doctor says the same" "$(c doctor)" "*${said##*have one: }*"
	fi
	t_like "a daemon that a command has started runs" "$(c list)" "0 *"
	t_is "serve takes its place" "$(c serve --detach --listen 127.0.0.1:0)" "0 "
	t_like "and says no to another" "$(c serve --detach)" "125 caisson: another launcher has $own; *"
	t_ok "it listens" grep -q "listening on 127.0.0.1:0" "$own/launcher.log"
	stop_own
	# A user namespace in which this user has no more of a kind: what `sysctl -w user.max_...=0` does on a whole host.
	for kind in user net; do
		within() { python3 "$tests/first_errors.py" "user.max_${kind}_namespaces=0" "$caisson" "$@" 2>&1; }
		said=$(within run -- true)
		t_like "no $kind namespaces" "$said" "caisson: *No space left on device; as root: sysctl -w user.max_${kind}_namespaces=65536"
		stop_own
		t_like "and no sandbox" "$(within create)" "caisson: *as root: sysctl -w user.max_${kind}_namespaces=65536"
		stop_own
		t_like "doctor says the same" "$(within doctor)" "*sysctl -w user.max_${kind}_namespaces=65536*cannot be enforced in rootless mode"
	done
	t_done
fi

# ---- what only root meets, or can show ----
# A host of its own: mounts that end with it. What is left of the machine's cgroups is as it was.
alone() {
	rm -f "$T/r/api.sock" # of one that was killed
	unshare --mount --propagation private -- bash -c "$1" alone "$caisson" "$T" 2>&1
}

mkdir "$T/full"
t_like "a disk that is full: no daemon" "$(alone 'mount -t tmpfs -o size=64k none "$2/full" && "$1" serve --config none --state "$2/full/s" --run "$2/r"')" \
	"caissond: state folder $T/full/s: *full; make room there (df -h; caisson gc), or use another disk: caisson serve --state DIR"
before=$(readlink /proc/[0-9]*/exe 2>/dev/null | grep -cx "$E2E_BASE/bin/caisson-ledger")
said=$(alone 'mount -t tmpfs -o size=8m none "$2/full"
	"$1" serve --config none --state "$2/full/s" --run "$2/r" --log error </dev/null >"$2/served" 2>&1 &
	for i in {1..600}; do ! CAISSON_SOCKET=$2/r/api.sock "$1" list >/dev/null 2>&1 || break; sleep 0.1; done
	export CAISSON_SOCKET=$2/r/api.sock
	"$1" run -- true; "$1" create
	kill $! && wait $!')
# The first may still find room.
t_like "a disk with little room: nothing new" "$said" "*caisson: the sandbox could not be stored: the disk of the state folder is full; make room there*"
ledgers() { readlink /proc/[0-9]*/exe 2>/dev/null | grep -cx "$E2E_BASE/bin/caisson-ledger"; }
no_more() { [ "$(ledgers)" -le "$before" ]; }
t_ok "its ledger has ended, too" eventually no_more

said=$(alone 'for at in $(awk "\$3 ~ /^cgroup/ { print \$2 }" /proc/mounts); do mount -o remount,bind,ro "$at"; done
	"$1" serve --config none --state "$2/s" --run "$2/r" --log error </dev/null >"$2/served" 2>&1 &
	for i in {1..600}; do ! CAISSON_SOCKET=$2/r/api.sock "$1" list >/dev/null 2>&1 || break; sleep 0.1; done
	CAISSON_SOCKET=$2/r/api.sock "$1" run --mem 1g -- true
	kill -KILL $!; wait $! 2>/dev/null')
t_like "cgroups that cannot be written" "$said" "caisson: *; let /sys/fs/cgroup be written: *"

# In a chroot the kernel makes no user namespace: EPERM, as with a switch of Debian's, or of Ubuntu's.
for row in unprivileged_userns_clone:0:1 apparmor_restrict_unprivileged_userns:1:0; do
	IFS=: read -r name is want <<<"$row"
	said=$(NAME=$name IS=$is alone 'mkdir "$2/top" && mount --rbind / "$2/top" && cp -r /proc/sys/kernel "$2/kernel" 2>/dev/null
		echo "$IS" >"$2/kernel/$NAME" && mount --bind "$2/kernel" "$2/top/proc/sys/kernel" || exit
		chroot "$2/top" "$1" serve --config none --state "$2/s" --run "$2/r" --log error </dev/null >"$2/served" 2>&1 &
		for i in {1..600}; do ! CAISSON_SOCKET=$2/r/api.sock "$1" list >/dev/null 2>&1 || break; sleep 0.1; done
		CAISSON_SOCKET=$2/r/api.sock "$1" run -- true
		chroot "$2/top" "$1" doctor
		kill $! && wait $!')
	t_like "kernel.$name" "$said" "caisson: *Operation not permitted; as root: sysctl -w kernel.$name=$want"$'\n'"*sysctl -w kernel.$name=$want*cannot be enforced in root mode"
	rmdir "$T/top" && rm -rf "$T/kernel"
done
said=$(alone 'echo 5.10.0-8-amd64 >"$2/release" && mkdir "$2/top" && mount --rbind / "$2/top" && mount --bind "$2/release" "$2/top/proc/sys/kernel/osrelease" || exit
	chroot "$2/top" "$1" serve --config none --state "$2/s" --run "$2/r" --log error </dev/null >"$2/served" 2>&1 &
	for i in {1..600}; do ! CAISSON_SOCKET=$2/r/api.sock "$1" list >/dev/null 2>&1 || break; sleep 0.1; done
	CAISSON_SOCKET=$2/r/api.sock "$1" run -- true
	chroot "$2/top" "$1" doctor
	kill $! && wait $!')
t_like "a kernel that is too old" "$said" "caisson: *; Linux 5.10.0-8-amd64 is too old: a kernel of 6.1 or later*older than Linux 6.1*a kernel of 6.1 or later*"
t_done
