#!/bin/bash
# daemon-on-demand.sh - a client that finds no daemon starts one, and only one.
. "$(dirname "$0")/lib.sh"

# Root's own daemon is the machine's: this is about a user's.
if is_root; then
	t_done
fi
unset CAISSON_SOCKET # of the daemon that other scripts use
export XDG_STATE_HOME=$T/state
run_dir=$XDG_RUNTIME_DIR/caisson

launchers() { # pids of those with our run folder
	local pid args
	for pid in /proc/[0-9]*; do
		mapfile -d '' -t args 2>/dev/null <"$pid/cmdline" || continue
		[[ ${args[0]-} == */caisson-launcher && " ${args[*]} " == *" $run_dir "* ]] || continue
		# Monitors are forked from it; the one that is not a child of another is meant.
		grep -q '^PPid:	1$' "$pid/status" 2>/dev/null && echo "${pid#/proc/}"
	done
}
end_daemon() {
	local pid
	for pid in $(launchers); do
		kill "$pid"
	done
	eventually nobody
}
nobody() { ! [ -S "$run_dir/api.sock" ]; }
trap end_daemon EXIT

out=$(CAISSON_START=never bounded "$caisson" list 2>&1)
t_like "CAISSON_START=never: none is started" "$? $out" "125 caisson: connect to *"
out=$(CAISSON_SOCKET=$T/other bounded "$caisson" list 2>&1)
t_like "nor when one was named" "$? $out" "125 caisson: connect to $T/other*"
t_ok "so there is none" nobody

for i in {1..8}; do
	bounded "$caisson" list -q >"$T/out.$i" 2>&1 &
	clients[i]=$!
done
wrong=0
for i in {1..8}; do
	wait "${clients[i]}" || wrong=$((wrong + 1))
done
t_is "eight clients at once, all served" "$wrong wrong $(cat "$T"/out.*)" "0 wrong "
t_is "by one daemon" "$(launchers | wc -l)" 1
t_is "whose folder is nobody else's" "$(stat -c '%a %u' "$run_dir/api.sock") $(stat -c %a "$XDG_STATE_HOME/caisson")" \
	"600 $(id -u) 700"
sb=$(bounded "$caisson" create 2>/dev/null)
t_like "it makes sandboxes" "$sb" "sb_*"
end_daemon
t_is "the daemon is gone, the next client starts another that knows the sandbox" \
	"$(bounded "$caisson" exec "$sb" -- echo still here 2>&1)" "still here"
t_ok "rm" bounded "$caisson" rm "$sb"
end_daemon

# One that leaves has its folder a little longer than its socket.
python3 -c 'import fcntl, sys, time
lock = open(sys.argv[1], "r+")
fcntl.lockf(lock, fcntl.LOCK_EX)
open(sys.argv[2], "x")
time.sleep(1)' "$run_dir/launcher.lock" "$T/locked" &
leaving=$!
eventually test -e "$T/locked"
out=$(bounded "$caisson" list -q 2>&1)
t_is "one that is leaving is waited for" "$? $out" "0 "
wait "$leaving"
end_daemon

# What the launcher says when it fails is shown.
mkdir -p bad
cp "$caisson" bad/caisson
printf '#!/bin/sh\necho "first line" >&2\necho "caisson-launcher: no \033[31mluck" >&2\nexit 125\n' >bad/caisson-launcher
chmod 755 bad/caisson-launcher
out=$(bounded bad/caisson list 2>&1)
t_is "a launcher that fails: its last words, harmless" "$? $out" \
	"125 caisson: the daemon did not start: caisson-launcher: no \\x1b[31mluck"
rm bad/caisson-launcher
out=$(bounded bad/caisson list 2>&1)
t_like "no launcher" "$? $out" "125 caisson: caisson-launcher is neither beside this program*"

# A folder that somebody else could have made is not trusted.
own=/tmp/caisson-$(id -u)
if [ ! -e "$own" ] && ln -s "$T" "$own"; then
	out=$(unset XDG_RUNTIME_DIR; bounded "$caisson" list 2>&1)
	t_is "a link in the place of our folder" "$? $out" "125 caisson: $own belongs to somebody else"
	rm "$own"
fi
t_done
