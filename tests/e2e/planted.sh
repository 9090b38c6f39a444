#!/bin/bash
# planted.sh - programs that somebody else could have put in place of ours, or of a client's, are not executed;
# and what a command starts on demand has nothing of the caller's environment that it does not need.
. "$(dirname "$0")/lib.sh"
unset CAISSON_SOCKET
export XDG_STATE_HOME=$T/state HOME=$T/home
mkdir home open closed

plant() { # FILE: says that it was executed
	printf '#!/bin/sh\necho "planted $0" >>%s\nexit 1\n' "$T/executed" >"$1"
	chmod 755 "$1"
}
executed() { cat "$T/executed" 2>/dev/null || echo nothing; }

# ---- a client of a registry, found by PATH ----
plant open/python3
plant open/pip
plant closed/python3
plant closed/pip
chmod 777 open
cd home || exit # what lies below the caller's folder is a project's, and never executed
resolve() { PATH=$1:$PATH PIP_CONFIG_FILE=/dev/null bounded "$caisson" policy show --net preset:pip --resolved --json >/dev/null 2>&1; }
resolve "$T/open"
t_is "a client in a folder of PATH that everybody may write is not executed" "$(executed)" nothing
resolve "$T/closed"
t_like "control: one in a folder of the caller's own is" "$(executed)" "planted $T/closed/*"
rm -f "$T/executed"
printf '#!/usr/bin/env node\n' >"$T/closed/npm"
chmod 755 "$T/closed/npm"
plant "$T/open/node"
PATH=$T/open:$T/closed:$PATH bounded "$caisson" policy show --net preset:npm --resolved --json >/dev/null 2>&1
t_is "nor is the interpreter of one that is a script" "$(executed)" nothing
rm -f "$T/executed"

# ---- root, and a caisson in the home of another ----
if is_root; then
	plant "$T/closed/pip"
	chown 64001 "$T/closed"
	resolve "$T/closed"
	t_is "a client in a folder of another user's is not executed" "$(executed)" nothing
	mkdir -m 755 "$T/theirs" "$T/theirs/bin"
	cp "$caisson" "$T/theirs/bin/caisson"
	chown 64001 "$T/theirs"
	PATH=$T/closed:$PATH PIP_CONFIG_FILE=/dev/null bounded "$T/theirs/bin/caisson" policy show --net preset:pip --resolved --json >/dev/null 2>&1
	t_like "control: who has caisson itself below a folder of his could have replaced that" "$(executed)" "planted $T/closed/*"
	chown 0 "$T/closed"
	rm -rf "$T/executed" "$T/theirs"
fi

# ---- our own programs, beside caisson ----
beside() { # MODE: a caisson in a folder of that mode, with a planted launcher
	rm -rf "$T/place"
	mkdir "$T/place"
	cp "$caisson" "$T/place/caisson"
	plant "$T/place/caisson-launcher"
	chmod "$1" "$T/place"
	XDG_RUNTIME_DIR=$T/run bounded "$T/place/caisson" list 2>&1
}
mkdir -m 700 "$T/run"
if ! is_root; then # root's own daemon is the machine's
	out=$(beside 0777)
	t_is "a launcher in a folder that everybody may write is not started" "$(executed)" nothing
	t_like "and the error says which folder, and what to do" "$out" "*caisson-launcher is not started: $T/place may be written by others (mode 0777): chmod go-w it*"
	out=$(beside 0755)
	t_like "control: one in a folder of the caller's own is" "$(executed)" "planted $T/place/caisson-launcher"
	rm -f "$T/executed"

	export XDG_RUNTIME_DIR=$T/run2
	mkdir -m 700 "$T/run2"
	API_TOKEN=hunter2 CAISSON_TOKEN='' bounded "$caisson" list -q
	found=
	for pid in /proc/[0-9]*; do
		mapfile -d '' -t args 2>/dev/null <"$pid/cmdline" || continue
		[[ ${args[0]-} == */caisson-launcher && " ${args[*]} " == *" $T/run2/caisson "* ]] && found=${pid#/proc/}
	done
	t_like "a launcher was started" "$found" "[0-9]*"
	t_is "with nothing of the caller's environment but what is listed" \
		"$(tr '\0' '\n' <"/proc/$found/environ" 2>/dev/null | grep -c hunter2)" 0
	t_ok "control: any other program has it" env API_TOKEN=hunter2 grep -qz hunter2 /proc/self/environ
	kill "$found"
	eventually test ! -S "$T/run2/caisson/api.sock"
fi
t_done
