# lib.sh - TAP, and the same script twice: as root and as an ordinary user.
#
# A script sources this file first. In the process that tools/check started, the line does not come
# back: it copies programs and scripts to a place that everybody may read, runs the script there
# once for each role, and counts. In those runs it does come back, with
#   $role      root or user; is_root asks
#   $T         an empty folder of this run
#   $caisson   the program; build/caisson unless $CAISSON_BUILD names another folder. It finds a daemon
#              of this role's own by $CAISSON_SOCKET
#   $closed    a folder that only root may open
# The last line of a script is `t_done`. When root is not there, only the user's run takes place.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
umask 022

readonly OTHER_UID=64001 # of nobody: an account is not needed
readonly LIMIT_S=200     # of one command; a machine without KVM is slow, and others are busy

# A daemon of this role's own: nothing of the host's is touched.
start_daemon() { # BASE ROLE [AS...]
	(cd / && exec "${@:3}" env -i PATH="$PATH" "$1/bin/caisson-launcher" --state "$1/$2/state" --run "$1/$2/run/d" \
		</dev/null >"$1/$2.daemon" 2>&1) &
	daemon=$!
	for _ in $(seq 600); do
		[ ! -S "$1/$2/run/d/api.sock" ] || return 0
		sleep 0.1
	done
	echo "# the daemon does not start: $(cat "$1/$2.daemon")"
}

stop_daemon() {
	kill "$daemon" 2>/dev/null # a test may have done it
	wait "$daemon"
}

each_role() {
	local script here build base roles=(user) role as=() first=0 failed=0 failed_here daemon=
	script=$(basename "$0")
	here=$(cd "$(dirname "$0")" && pwd)
	build=${CAISSON_BUILD:-$here/../../build}
	[ "$(id -u)" != 0 ] || roles=(root user)
	base=$(mktemp -d /tmp/caisson-e2e.XXXXXX)
	# shellcheck disable=SC2064 # the name as it is now
	trap "kill \"\$daemon\" 2>/dev/null; rm -rf '$base'" EXIT
	trap 'exit 130' INT TERM HUP
	chmod 755 "$base"
	cp -r "$here" "$base/e2e"
	mkdir -m 755 "$base/bin"
	cp "$build"/caisson{,-gate,-init,-launcher,-ledger,-test,-tree,-vault} "$build/caissond" "$here/../../tools/demo" "$base/bin/"
	[ "$script" != cli-verbs.sh ] || cp "$build"/libearly.a.p/*.o "$base/bin/"
	install -d -m 700 "$base/closed"
	echo "only root may read this" >"$base/closed/file"
	for role in "${roles[@]}"; do
		install -d -m 711 "$base/$role" "$base/$role/run"
		if [ "$role" = user ] && [ "$(id -u)" = 0 ]; then
			as=(setpriv --reuid "$OTHER_UID" --regid "$OTHER_UID" --clear-groups --)
			chown -R "$OTHER_UID:$OTHER_UID" "$base/user"
		fi
		start_daemon "$base" "$role" "${as[@]}"
		(cd "$base/$role" && exec "${as[@]}" env -i PATH="$PATH" LC_ALL="$LC_ALL" HOME="$base/$role" \
			TMPDIR="$base/$role" XDG_RUNTIME_DIR="$base/$role/run" E2E_ROLE="$role" E2E_BASE="$base" \
			CAISSON_SOCKET="$base/$role/run/d/api.sock" E2E_DAEMON="$daemon" \
			E2E_FIRST="$first" bash "$base/e2e/$script")
		stop_daemon
		# The count is there only when the script came to its last line.
		if ! read -r first failed_here 2>/dev/null <"$base/$role/count"; then
			first=$((first + 1)) failed_here=1
			echo "not ok $first - $role: the script ended early"
		fi
		failed=$((failed + failed_here))
	done
	echo "1..$first"
	exit "$((failed > 0))"
}

[ -n "${E2E_ROLE-}" ] || each_role

role=$E2E_ROLE
caisson=$E2E_BASE/bin/caisson
tests=$E2E_BASE/e2e
T=$E2E_BASE/$role/t
# In the user's own run there is no folder of root's here: its home is one.
closed=$E2E_BASE/closed
[ "$(stat -c %u "$closed")" = 0 ] || closed=/root
mark=e2e.$role.$$.$RANDOM # an argument by which the host finds our processes
mkdir "$T"
cd "$T" || exit

is_root() { [ "$role" = root ]; }

# ---- results ----------------------------------------------------------------------------------

t_count=$E2E_FIRST
t_failed=0

# t_result NAME IS_OK [DIAGNOSTIC...]
t_result() {
	t_count=$((t_count + 1))
	if [ "$2" = 0 ]; then
		echo "ok $t_count - $role: $1"
		return
	fi
	t_failed=$((t_failed + 1))
	echo "not ok $t_count - $role: $1"
	printf '%s\n' "${@:3}" | cut -c1-2000 | sed 's/^/#   /'
}

t_ok() { # NAME COMMAND...: it exits with 0
	local said
	said=$("${@:2}" 2>&1)
	t_result "$1" $? "${*:2}" "$said"
}

t_is() { # NAME GOT WANT
	[ "$2" = "$3" ]
	t_result "$1" $? "got:  $2" "want: $3"
}

t_like() { # NAME GOT PATTERN, of the shell
	# shellcheck disable=SC2053 # a pattern
	[[ $2 == $3 ]]
	t_result "$1" $? "got:  $2" "want: $3"
}

t_skip() { # NAME REASON
	t_count=$((t_count + 1))
	echo "ok $t_count - $role: $1 # SKIP $2"
}

t_done() {
	echo "$t_count $t_failed" >"$E2E_BASE/$role/count"
	exit 0
}

# ---- the program ------------------------------------------------------------------------------

# Its exit status is the program's own, also when the time is over: 124 is a word of caisson's.
bounded() { timeout --preserve-status -k 5 "$LIMIT_S" "$@"; }

# caisson run ARGS...: $status, $out, $err; a note about defaults that are not enforced is $notice.
run() {
	bounded "$caisson" run "$@" >"$T/out" 2>"$T/err"
	status=$?
	out=$(tr -d '\0' <"$T/out")
	notice=$(grep -a '^caisson: not enforced here: ' "$T/err")
	err=$(grep -av '^caisson: not enforced here: ' "$T/err" | tr -d '\0')
}

# The same in the background: $started is its pid, without a timeout in between; stop ends it.
# A script's background jobs ignore SIGINT and SIGQUIT unless told otherwise.
start() {
	env --default-signal "$caisson" run "$@" >"$T/started" 2>&1 </dev/null &
	started=$!
	eventually is_inside
}
stop() { kill "$started" && wait "$started"; }

t_run() { # NAME STATUS ARGS...
	run "${@:3}"
	[ "$status" = "$2" ]
	t_result "$1" $? "exit $status, want $2" "stdout: $out" "stderr: $err"
}

t_says() { # NAME STATUS PATTERN ARGS...: exits so, with one sentence that has this in it
	run "${@:4}"
	# shellcheck disable=SC2053 # a pattern
	[ "$status" = "$2" ] && [[ $err == "caisson: "$3 && $err != *$'\n'* ]]
	t_result "$1" $? "exit $status, want $2" "stderr: $err" "want:   caisson: $3"
}

t_json() { # NAME EXPRESSION, about what run --json printed: result.py
	local said
	said=$(python3 "$tests/result.py" "$T/out" "$2" 2>&1)
	t_result "$1" $? "not true: $2" "$said"
}

# Whether the host lets us bound what needs a cgroup: root always, others where v2 was handed to them.
has_cgroup() { # CONTROLLER
	local own top
	is_root && return
	own=$(sed -n 's/^0:://p' /proc/self/cgroup)
	for top in /sys/fs/cgroup /sys/fs/cgroup/unified; do
		[ -w "$top$own/cgroup.procs" ] && [ -w "$top$own" ] &&
			grep -qw "$1" "$top$own/cgroup.controllers" && return
	done
	return 1
}

# Whether a tmpfs keeps user attributes. An overlay notes in one that a new folder hides what lies
# below it: without, a folder of the source cannot be removed, nor any folder be renamed in one.
has_attributes() {
	python3 -c 'import os, tempfile
with tempfile.NamedTemporaryFile(dir="/dev/shm") as f:
	os.setxattr(f.name, "user.caisson", b"")' 2>/dev/null
}
readonly NO_ATTRIBUTES="needs a tmpfs with user attributes, Linux 6.6"

t_refused() { # LIMIT VALUE: cannot be enforced here, so it is not taken
	t_says "--$1 $2 is unenforceable here" 125 \
		"unenforceable: $1 (no cgroup delegation); allow with --allow-weaker $1, or have one: *" "--$1" "$2" -- true
}

# ---- the host's view --------------------------------------------------------------------------

# Processes with our mark among their arguments: pid and first argument.
marked() {
	local file args
	for file in /proc/[0-9]*/cmdline; do
		mapfile -d '' -t args 2>/dev/null <"$file" || continue
		[[ ${args[*]-} != *"$mark"* ]] || echo "$(basename "${file%/cmdline}") ${args[0]}"
	done
}

eventually() { # COMMAND...: true within half a minute, for a busy machine
	local i
	for ((i = 0; i < 300; i++)); do
		"$@" && return
		sleep 0.1
	done
	return 1
}

none_marked() { [ -z "$(marked)" ]; }

t_gone() { # NAME: no marked process is left
	eventually none_marked
	t_result "$1" $? "left: $(marked)"
}

inside_pid() { # of a marked shell in the sandbox
	marked | sed -n 's/ sh$//p' | head -n 1
}

is_inside() { [ -n "$(inside_pid)" ]; }
