#!/bin/bash
# tree.sh - whatever ends a run ends all that it started. The host looks, by a mark in the arguments.
. "$(dirname "$0")/lib.sh"

# Every way to get out of the reach of a signal; each carries the mark.
zoo="sh -c 'trap \"\" TERM HUP INT; sleep 300; : $mark' &
setsid sh -c 'sleep 300; : $mark' &
(setsid sh -c '(trap \"\" TERM; sleep 300; : $mark) &' &)
(sh -c 'sleep 300; : $mark' &)
sh -c 'kill -STOP \$\$; : $mark' &
nohup sh -c 'sleep 300; : $mark' >/dev/null 2>&1 &
python3 -c 'import os, signal, time # $mark
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
time.sleep(300)' &
sleep 0.5; echo started"
in_zoo() { [ "$(marked | grep -vc caisson)" -ge 7 ]; }

SECONDS=0
bounded "$caisson" run --json --timeout 5s -- sh -c "$zoo; trap '' TERM; while :; do sleep 0.1; done; : $mark" >"$T/out" 2>"$T/err" &
pid=$!
t_ok "they live while the command does" eventually in_zoo
wait "$pid"
t_is "timeout: 124" "$?" 124
t_is "timeout: nothing is left when it returns" "$(marked)" ""
t_json "timeout: TERM, some time, then the end" 'r["state"] == "timeout" and r["signal"] == 9 and 5000 <= r["ms"] < 60000'
run --json --timeout 4s -- sh -c 'trap "echo bye; exit 0" TERM; while :; do sleep 0.1; done'
t_json "timeout: one that listens is not killed" 'r["stdout"] == "bye\n" and r["exit_code"] == 0 and r["state"] == "timeout"'

run -- sh -c "$zoo"
t_is "end of the command: its own status" "$status $out" "0 started"
t_is "end of the command: nothing is left when it returns" "$(marked)" ""
run --wall 3s -- sh -c "$zoo; sleep 60"
t_is "wall: nothing is left when it returns" "$status $(marked)" "124 "

# ---- the CLI is told to end ----
for sig in INT:130 TERM:143 HUP:143 QUIT:131 USR1:138 USR2:140; do
	start -- sh -c "sleep 60 & wait; : $mark"
	kill -"${sig%:*}" "$started"
	wait "$started"
	t_is "SIG${sig%:*} ends it" "$?" "${sig#*:}"
	t_is "SIG${sig%:*}: nothing is left" "$(marked)" ""
done
ready() { eventually grep -q ready "$T/started"; }
start -- sh -c "trap 'echo caught; exit 5' TERM; echo ready; sleep 60 & wait; : $mark"
ready
kill -TERM "$started"
wait "$started"
t_is "SIGTERM is the command's to handle" "$? $(grep caught "$T/started")" "5 caught"
deaf="trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done; : $mark"
start -- sh -c "$deaf"
ready
kill -INT "$started"
sleep 0.5
t_ok "a command may ignore SIGINT" is_inside
kill -TERM "$started"
sleep 0.1
t_ok "after SIGTERM it has some time" is_inside
wait "$started"
t_is "then it is killed" "$?" 137
t_is "and nothing is left" "$(marked)" ""
"$caisson" run --json -- sh -c "$deaf" >"$T/out" 2>/dev/null &
started=$!
loops() { pgrep -P "$(inside_pid)" >/dev/null; } # what it writes is in the object, later
eventually loops
kill -TERM "$started"
wait "$started"
t_json "killed, by the client" 'r["state"] == "killed" and r["signal"] == 9 and "client" in r["reason"]'

# ---- the CLI dies ----
start -- sh -c "$zoo; sleep 60; : $mark"
eventually in_zoo
exec 3>&2 2>/dev/null # the shell would tell of it
kill -KILL "$started"
wait "$started"
exec 2>&3 3>&-
t_gone "kill -9 of the CLI: nothing survives it"

# A caller that is not there any more must not be able to keep it alive, nor one that does not read.
mkfifo "$T/stuck"
sleep 300 <"$T/stuck" & # opens it, reads nothing
reader=$!
"$caisson" run --timeout 2s -- sh -c "yes; : $mark" >"$T/stuck" 2>/dev/null &
started=$!
eventually is_inside
stuck_gone() { [ -z "$(marked | grep -v caisson)" ]; }
t_ok "timeout: also when nobody takes the output" eventually stuck_gone
kill "$reader"
wait "$started"
t_ok "and then it returns" test $? = 124 -o $? = 141
sleep 300 <"$T/stuck" &
reader=$!
"$caisson" run -- sh -c "yes; : $mark" >"$T/stuck" 2>/dev/null &
started=$!
eventually is_inside
sleep 0.5
kill -TERM "$started"
t_ok "SIGTERM: also when nobody takes the output" eventually stuck_gone
kill "$reader"
wait "$started"

# nohup: a signal that the caller ignores is not the command's business.
(trap '' HUP; exec "$caisson" run -- sh -c "sleep 1; echo survived; : $mark" >"$T/out" 2>/dev/null) &
started=$!
eventually is_inside
kill -HUP "$started"
wait "$started"
t_is "nohup: SIGHUP is ignored" "$? $(cat "$T/out")" "0 survived"

# pids are reused: the end of one run must not hit another.
start -- sh -c "sleep 60; : $mark"
before=$(inside_pid)
for _ in 1 2 3 4 5; do run --timeout 200ms -- sleep 60; done
t_is "other runs end, this one lives" "$(inside_pid)" "$before"
stop
t_gone "until it is its turn"
t_done
