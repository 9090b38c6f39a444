#!/bin/bash
# exit-status.sh - what `caisson run` exits with, and the one sentence that goes with it.
. "$(dirname "$0")/lib.sh"

t_run "0 is the command's" 0 -- true
t_run "7 is the command's" 7 -- sh -c 'exit 7'
t_run "255 is the command's" 255 -- sh -c 'exit 255'
t_is "a command's own end is not commented" "$err" ""
for n in 124 125 126 127; do
	t_run "$n may be the command's own too" "$n" -- sh -c "exit $n"
done

t_says "124 after --timeout" 124 "timeout: *timeout*" --timeout 300ms -- sleep 60
t_says "124 after --wall" 124 "expired: wall*" --wall 300ms -- sleep 60
t_says "124 after --idle" 124 "expired: idle*" --idle 300ms -- sleep 60
t_run "124 although the command exits with 0 when it is asked to end" 124 \
	--timeout 300ms -- sh -c 'trap "exit 0" TERM; sleep 60 & wait'
t_run "a command that ends in time is not touched by the timeout" 3 --timeout 30s -- sh -c 'exit 3'

t_says "126 for a file that is not executable" 126 "*/etc/hostname: Permission denied" -- /etc/hostname
t_says "126 for a folder" 126 "*/work: Permission denied" -- /work
t_says "126 for a broken program" 126 "*" --fs "ro:$T:/in" -- /in/out # the empty file of run()

# The report of a failed execve and the end of its process arrive together: often.
wrong=0
for _ in {1..25}; do
	run -- no-such-program
	[[ $status = 127 && $err = "caisson: "*"no-such-program: No such file or directory" ]] || wrong=$((wrong + 1))
done
t_is "127 for a program that is not in PATH, 25 times" "$wrong wrong" "0 wrong"
t_says "127 for a path that is not there" 127 "*/no/such: No such file or directory" -- /no/such
t_says "127 for an empty name" 127 "*No such file or directory" -- ''

for sig in HUP:1 INT:2 QUIT:3 ABRT:6 KILL:9 SEGV:11 PIPE:13 TERM:15 USR1:10; do
	t_run "128+${sig#*:} when ${sig%:*} killed it" $((128 + ${sig#*:})) -- sh -c "kill -${sig%:*} \$\$"
done
if has_cgroup memory; then
	t_says "137 out of memory, with the limit" 137 "oom: mem limit of 67108864 bytes reached" \
		--mem 64m -- python3 -c 'b"x" * (400 << 20)'
else
	t_refused mem 64m
fi

# Ours: 125, and nothing runs.
t_says "no command" 125 "no command*" 
t_says "no command after --" 125 "no command*" --
t_says "an unknown option" 125 "*--bogus*" --bogus -- true
t_says "an option without its value" 125 "--mem needs a value" --mem
t_says "a value that is none" 125 '--timeout: "soon" is not a duration*' --timeout soon -- true
t_says "a timeout of nothing" 125 '--timeout: "0" is too small*' --timeout 0 -- true
t_says "a working directory that is not there" 125 "*/no/such: No such file or directory" -w /no/such -- true
t_says "a relative working directory" 125 "*work*" -w work -- true
t_says "an unknown user" 125 "user: somebody is not in the image*" -u somebody -- true
t_says "a host folder that is not there" 125 "*/no/such: No such file or directory" --fs ro:/no/such -- true
t_says "an image that is not there" 125 "image: */no/such: No such file or directory" --image dir:/no/such -- true

bounded "$caisson" nonsense 2>"$T/err"
t_is "an unknown verb" "$? $(cat "$T/err")" "125 caisson: unknown command nonsense; \`caisson help\` lists them"
t_ok "help" bounded "$caisson" help run
t_ok "version" bounded "$caisson" version

# The same with --json: the sentence is also an object, and nothing else is on stdout.
run --json --mem 64q -- true
t_json "a refusal as an object" '[*r] == ["error"] and [*r["error"]] == ["code", "message"] and r["error"]["code"] == "invalid"'
run --json -- no-such-program
t_json "not found as an object" 'r["error"]["code"] == "not_found" and "no-such-program" in r["error"]["message"]'
t_is "its status" "$status" 127

CAISSON_SOCKET="$T/none" "$caisson" run -- true 2>"$T/err"
t_like "without a daemon where it was said to be" "$? $(cat "$T/err")" "125 caisson: *$T/none*"
t_done
