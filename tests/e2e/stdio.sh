#!/bin/bash
# stdio.sh - bytes in and out of a command without a terminal.
. "$(dirname "$0")/lib.sh"

python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)))' >all
head -c 10000000 /dev/urandom >big

# Unchanged.
pipe() { bounded "$caisson" run "$@" 2>"$T/err"; }
t_same() { # NAME FILE: $T/got is the same
	cmp -s "$T/got" "$2"
	t_result "$1" $? "$(cmp "$T/got" "$2" 2>&1)" "$(cat "$T/err")"
}
pipe --fs "ro:$T:/in" -- cat /in/all >got
t_same "all 256 bytes come out" all
pipe -i -- cat <all >got
t_same "all 256 bytes go in and come out" all
pipe --fs "ro:$T:/in" -- cat /in/big >got
t_same "10 MB come out" big
pipe -i -- sha256sum <big >got
t_is "10 MB go in" "$(cut -c1-64 got)" "$(sha256sum <big | cut -c1-64)"
wrong=0
for _ in {1..5}; do
	pipe --timeout 60s -i -- cat <big >got
	cmp -s got big || wrong=$((wrong + 1))
done
t_is "10 MB go in and come out at the same time, 5 times" "$wrong wrong" "0 wrong"
# Much goes in while the output is not taken.
pipe --timeout 60s -i -- cat <big | (sleep 0.5; cat) >got
t_same "10 MB through a reader that is late" big
run -- printf 'no newline'
t_is "a last line without an end" "$(od -An -c "$T/out" | tail -n 1)" "   n   o       n   e   w   l   i   n   e"
run -- true
t_is "nothing is nothing" "$(wc -c <"$T/out")" 0
# A caller like node gives a pipe that does not block.
python3 - "$caisson" "$T/big" 2>"$T/err" >got <<-'PY'
	import os, subprocess, sys, time
	r, w = os.pipe()
	os.set_blocking(w, False)
	p = subprocess.Popen([sys.argv[1], "run", "--fs", f"ro:{sys.argv[2]}:/big", "--", "cat", "/big"], stdout=w)
	os.close(w)
	time.sleep(0.5)
	while data := os.read(r, 65536): sys.stdout.buffer.write(data)
	sys.exit(p.wait())
PY
t_same "10 MB into a pipe that does not block" big
run -- sh -c 'echo out; echo err >&2'
t_is "stdout and stderr are apart" "$out|$err" "out|err"
# Each is written when the one before it was taken.
bounded "$caisson" run -- python3 -c 'import fcntl, os, struct
for i in range(1, 6):
    for fd, name in ((1, "o"), (2, "e")):
        os.write(fd, f"{name}{i}\n".encode())
        while struct.unpack("i", fcntl.ioctl(fd, 0x541b, bytes(4)))[0]: pass # FIONREAD' >got 2>&1
t_is "and in order when they come one after the other" "$(grep -v '^caisson:' got | tr '\n' ' ')" \
	"o1 e1 o2 e2 o3 e3 o4 e4 o5 e5 "

# Standard input.
run -- sh -c 'cat; readlink /proc/self/fd/0' <all
t_is "without -i it is /dev/null" "$out" /dev/null
printf x >one
run -i -- sh -c 'cat; echo; echo end' <one
t_is "-i: the end arrives" "$out" $'x\nend'
run -i -- sh -c 'cat; echo end' </dev/null
t_is "-i: nothing, and its end" "$out" end
(sleep 0.3; echo late) | bounded "$caisson" run -i -- cat >got 2>/dev/null
t_is "-i: what comes late" "$? $(cat got)" "0 late"
SECONDS=0 wrong=0
for _ in {1..40}; do # the end is on its way while more input arrives
	yes | bounded "$caisson" run --timeout 60s -i -- true 2>"$T/err" || wrong=$((wrong + 1))
done
t_is "an endless input that nobody reads, 40 times" "$wrong wrong" "0 wrong"
bounded "$caisson" run -i -- sh -c 'exec <&-; sleep 0.5; echo ok' <big >got 2>/dev/null
t_is "an input that is closed early" "$? $(cat got)" "0 ok"
run -i -- head -c 3 <big
t_is "an input of which only the beginning is read" "$status" 0

# Ends of pipes.
SECONDS=0
bounded "$caisson" run -- sh -c "yes $mark" 2>/dev/null | head -n 1 >got
t_is "| head -1 ends it with 141" "${PIPESTATUS[0]} $(cat got)" "141 $mark"
t_ok "promptly" test $SECONDS -lt 45
t_gone "and nothing is left of it"
SECONDS=0
run -- sh -c "echo hi; sleep 60 & : $mark"
t_is "a background child holds the pipe: not waited for (F3)" "$status $out" "0 hi"
run -- sh -c "setsid sh -c 'trap \"\" HUP TERM; sleep 60; : $mark' & echo hi; exit 4"
t_is "nor for one in its own session" "$status $out" "4 hi"
t_ok "both returned promptly" test $SECONDS -lt 45
t_gone "and nothing is left of them"
# The child is there and waits before the command ends: a slow machine takes long to start one.
for _ in {1..10}; do # nor is it on time each time
	run -- bash -c 'mkfifo /tmp/go; exec 3<>/tmp/go; (read -ru 3; read -rt 0.02 -u 3; echo late) & sleep 0.5; echo hi; echo >&3'
	[ "$out" != $'hi\nlate' ] || break
done
t_is "what such a child writes in a moment still counts" "$out" $'hi\nlate'

# A caller that has closed some.
for closed_fds in '<&-' '>&-' '2>&-' '<&- >&-' '<&- >&- 2>&-'; do
	eval "bounded \"\$caisson\" run -- sh -c 'ls /proc/self/fd | wc -l; exit 5' $closed_fds" >"$T/out" 2>"$T/err"
	t_is "closed: $closed_fds" "$?" 5
done
eval "bounded \"\$caisson\" run -i -- sh -c 'cat; exit 5' <&-" >"$T/out" 2>"$T/err"
t_is "closed, and asked for: -i <&-" "$?" 5
exec 7<"$T/all"
run -- sh -c 'ls /proc/self/fd | tr "\n" " "'
exec 7<&-
t_is "nothing else is inherited" "$out" "0 1 2 3 "
bounded "$caisson" run -- sh -c 'echo hi' >/dev/full 2>"$T/err"
t_like "an output that cannot be written is our failure" "$? $(grep -v 'not enforced' "$T/err")" "125 caisson: *No space left*"

# Programs that would ask somebody are told that nobody is there (F1).
run -- env
for asks in GIT_TERMINAL_PROMPT=0 GIT_EDITOR=true GIT_PAGER=cat PAGER=cat DEBIAN_FRONTEND=noninteractive CI=1; do
	t_ok "without -t: $asks" grep -qx "$asks" "$T/out"
done
TOKEN=$mark SSH_AUTH_SOCK=$T/sock run -- env
t_ok "the caller's variables stay outside" test "${out#*"$mark"}" = "$out" -a "${out#*SSH}" = "$out"
run -e TOKEN="a b" -e EMPTY= -e PATH=/bin -- /usr/bin/env
t_like "those that are named arrive" $'\n'"$out"$'\n' $'*\nTOKEN=a b\nEMPTY=\nPATH=/bin\n*'
t_done
