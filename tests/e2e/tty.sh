#!/bin/bash
# tty.sh - `caisson run -t`: a terminal of its own, and the caller's terminal as it was.
. "$(dirname "$0")/lib.sh"

t_term() { # NAME END STEP... -- ARGS of run
	local steps=() said
	while [ "$3" != -- ]; do
		steps+=("$3")
		set -- "$1" "$2" "${@:4}"
	done
	said=$(bounded python3 "$tests/term.py" "${steps[@]}" -- "$caisson" run "${@:4}" 2>&1)
	t_is "$1" "$said" "$2"
}

t_term "all three are a terminal" "exit 0 restored" 'expect yes yes yes' -- \
	-t -- sh -c 'for fd in 0 1 2; do test -t $fd && printf "yes "; done; echo'
t_term "it is one of its own devpts" "exit 0 restored" 'expect /dev/pts/0' -- -t -- tty
t_term "and the controlling one" "exit 0 restored" 'expect ctty=works' -- \
	-t -- sh -c 'echo ctty=works >/dev/tty'
t_term "TERM says so" "exit 0 restored" 'expect xterm-256color' -- -t -- sh -c 'echo $TERM'
t_term "the size of the window" "exit 0 restored" 'expect 30 100' -- -t -- stty size
t_term "a resize arrives, and SIGWINCH with it" "exit 0 restored" \
	'expect ready' 'size 41 123' 'expect winch 41 123' 'type x\r' -- \
	-t -- bash -c 'trap "echo winch \$(stty size)" WINCH; echo ready; until read -rt 1; do :; done'
t_term "what is typed arrives, echoed once" "exit 5 restored" \
	'expect ready' 'mode raw' 'type abc\r' $'expect abc\r\ngot abc' -- \
	-t -- sh -c 'echo ready; read -r x; echo got $x; exit 5'
t_term "Ctrl-D is the end" "exit 0 restored" 'expect ready' 'type one\r\x04' 'expect end' -- \
	-t -- sh -c 'echo ready; cat; echo end'
t_term "Ctrl-C interrupts the command" "exit 130 restored" 'expect ready' 'type \x03' -- \
	-t -- sh -c 'echo ready; exec sleep 60'
t_term "Ctrl-C is the command's to handle" "exit 9 restored" 'expect ready' 'type \x03' 'expect caught' -- \
	-t -- bash -c 'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.1; done'
t_term "Ctrl-\\ quits" "exit 131 restored" 'expect ready' 'type \x1c' -- -t -- sh -c 'echo ready; exec sleep 60'
# bash: a child of dash that is stopped before it executes holds its parent (vfork), which then does not stop.
t_term "Ctrl-Z stops a job of a shell inside, fg goes on with it" "exit 4 restored" \
	'expect $' 'type bash -c "trap \\"echo go\\"on CONT; echo r\\"\\"uns; while :; do sleep 0.1; done"\r' 'expect runs' 'type \x1a' 'expect Stopped' \
	'type fg\r' 'expect goon' 'type \x03' 'expect $' 'type exit 4\r' -- \
	-t -- bash --norc --noprofile -i
t_term "a full-screen program's modes do not leak out" "exit 0 restored" 'expect ready' -- \
	-t -- sh -c 'stty raw -echo; echo ready'
t_term "bytes arrive unchanged in raw mode" "exit 0 restored" \
	'expect ready' 'type \x00\x01\x03\x04\x1a\x7f\x80\xff' 'expect 00 01 03 04 1a 7f 80 ff' -- \
	-t -- sh -c 'stty raw -echo; echo ready; head -c 8 | od -An -tx1'

# Restored on every way out.
t_term "restored after a timeout" "exit 124 restored" 'expect ready' 'mode raw' -- \
	-t --timeout 1s -- sh -c 'echo ready; exec sleep 60'
t_term "restored after kill -9 of the command" "exit 137 restored" 'expect ready' -- \
	-t -- sh -c 'stty raw -echo; echo ready; kill -9 $$'
t_term "restored when there was nothing to start" "exit 127 restored" -- -t -- /no/such
t_term "restored after SIGTERM" "exit 143 restored" 'expect ready' 'mode raw' 'signal TERM' -- \
	-t -- sh -c 'echo ready; exec sleep 60'
t_term "restored while stopped, raw again after" "exit 0 restored" \
	'expect ready' 'mode raw' 'signal TSTP' 'stopped' 'mode cooked' 'signal CONT' 'mode raw' 'type x\r' 'expect got x' -- \
	-t -- sh -c 'echo ready; read -r x; echo got $x'
t_term "the window is closed: all ends" "exit 143" 'expect ready' 'hangup' -- \
	-t -- sh -c "echo ready; sleep 60; : $mark"
t_gone "and nothing is left"

t_term "a background job does not hold the terminal" "exit 0 restored" 'expect started' -- \
	-t -- sh -c "sleep 60 & echo started; : $mark"
t_term "nor one that ignores the hang-up" "exit 0 restored" 'expect started' -- \
	-t -- sh -c "(trap '' HUP; sleep 60; : $mark) & echo started"
t_gone "and both are gone"
t_term "a command that closes its terminal early lives on" "exit 3 restored" -- \
	-t -- sh -c 'exec <&- >&- 2>&-; sleep 0.5; exit 3'
t_term "10,000 lines" "exit 0 restored" $'expect 9999\r\n10000\r\n' -- -t -- seq 10000

# Without a terminal outside.
run -t -- sh -c 'test -t 0 && test -t 1 && stty size' </dev/null
t_is "-t gives one although the caller has none" "$status $out" $'0 24 80\r'
printf 'line\n' | bounded "$caisson" run -it --timeout 45s -- sh -c 'read -r x; echo got $x' >"$T/out" 2>/dev/null
t_like "-it from a pipe" "$(tr -d '\r' <"$T/out")" "*got line"
# cat would wait for ever for somebody who cannot come, F1.
printf 'line\n' | bounded "$caisson" run -it --timeout 45s -- cat >"$T/out" 2>/dev/null
t_is "-it from a pipe: its end arrives" "$?" 0
printf 'line\n' | bounded "$caisson" run -it -- sh -c 'exec <&- >&- 2>&-; sleep 0.5; exit 3' >"$T/out" 2>&1
t_is "-it from a pipe: a closed terminal is no hang-up" "$?" 3
bounded "$caisson" run -t --timeout 45s -- sh -c 'read -r x || exit 6' </dev/null >/dev/null 2>&1
t_is "-t from /dev/null: nobody will type" "$?" 6

# Without -t, from a terminal.
t_term "no terminal without -t" "exit 0 restored" 'expect none, none, no session of a terminal' -- \
	-- sh -c 'test -t 0 || test -t 1 || test -t 2 || echo "none, $(tty -s || echo none), $( (: </dev/tty) 2>&- || echo no session of a terminal)"'
t_term "the terminal stays cooked without -t" "exit 0 restored" 'expect ready' 'mode cooked' 'sleep 0.3' -- \
	-- sh -c 'echo ready; sleep 0.2'
t_term "Ctrl-C without -t" "exit 130 restored" 'expect ready' 'type \x03' -- -- sh -c 'echo ready; exec sleep 60'
t_term "Ctrl-Z without -t stops both, and both go on" "exit 0 restored" \
	'expect ready' 'type \x1a' 'stopped' 'signal CONT' 'expect done' -- -- sh -c 'echo ready; sleep 1; echo done'
t_term "-i reads lines from the terminal" "exit 0 restored" 'expect ready' 'type abc\r' 'expect got abc' -- \
	-i -- sh -c 'echo ready; read -r x; echo got $x'
t_done
