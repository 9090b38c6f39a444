#!/bin/bash
# cli-verbs.sh - every verb of the CLI against a daemon of this script's own.
. "$(dirname "$0")/lib.sh"

"$caisson" serve --state "$T/state" --run "$T/run" --listen 127.0.0.1:0 >"$T/daemon" 2>&1 &
daemon=$!
trap 'kill "$daemon" 2>/dev/null; wait "$daemon"' EXIT
export CAISSON_SOCKET=$T/run/api.sock
eventually test -S "$CAISSON_SOCKET"

# cli ARGS...: $status, $out, $err
cli() {
	bounded "$caisson" "$@" >"$T/out" 2>"$T/err"
	status=$?
	out=$(tr -d '\0' <"$T/out")
	err=$(grep -av '^caisson: not enforced here: ' "$T/err" | tr -d '\0')
}
t_cli() { # NAME STATUS OUT ARGS...
	cli "${@:4}"
	t_is "$1" "$status $out" "$2 $3"
}
t_no() { # NAME STATUS PATTERN ARGS...: refused with one sentence
	cli "${@:4}"
	# shellcheck disable=SC2053 # a pattern
	[ "$status" = "$2" ] && [[ $err == "caisson: "$3 && $err != *$'\n'* ]]
	t_result "$1" $? "exit $status, want $2" "stderr: $err" "want:   caisson: $3"
}
t_value() { # NAME EXPRESSION, about the JSON `v` that was printed
	local said
	said=$(python3 -c 'import json, sys; v = json.load(open(sys.argv[1])); sys.exit(not eval(sys.argv[2]))' \
		"$T/out" "$2" 2>&1)
	t_result "$1" $? "not true: $2" "$said" "$(head -c 500 "$T/out")"
}

# ---- sandboxes ----------------------------------------------------------------------------------

cli create --key box --label team=a
t_like "create prints an id" "$status $out" "0 sb_*"
sb=$out
t_cli "the same key is the same sandbox" 0 "$sb" create --key box --label team=a
t_no "another spec under this key is not" 125 '*exists*' create --key box --pids 77
t_cli "list -q" 0 "$sb" list -q
t_cli "list by label" 0 "$sb" list -q --label team=a
t_cli "list by another label" 0 "" list -q --label team=b
cli list --json
t_value "list --json is the API's" 'v["sandboxes"][0]["id"].startswith("sb_") and v["sandboxes"][0]["state"] == "running"'
cli inspect box --json
t_value "inspect --json" 'v["key"] == "box" and v["generation"] == 1 and v["labels"] == {"team": "a"}'
t_no "one that is not there" 1 'no such sandbox' inspect nope
t_no "a spec that is wrong" 125 '*did you mean*' create --net denny
t_no "an option that is wrong" 125 'unknown option --jsn; *' list --jsn
t_no "a word too many" 125 'too many words: caisson list *' list x
t_no "a word too few" 125 'something is missing: caisson rm *' rm

# ---- run, which asks before the C library has started (src/cli/early.c) --------------------------

t_is "that part needs nothing of the library" \
	"$(nm -u "$(dirname "$caisson")"/*early.c.o | awk '{ print $2 }' | sort | xargs)" "_start early_sent"
t_cli "a short run" 3 out run --files 64 -- sh -c 'echo out; exit 3'
t_cli "one that takes a while" 4 $'a\nb' run -- sh -c 'echo a; sleep 0.1; echo b; exit 4'
t_cli "text with marks" 0 'a"b\c' run -- printf %s 'a"b\c'
t_cli "more than one read brings" 0 "$(seq 9000)" run -- seq 9000
t_no "a limit that is none" 125 '--mem: "x" is not a size *' run --mem x -- true
t_no "a program that is not there" 127 'execute: nope: No such file or directory' run -- nope
t_cli "killed" 137 "" run -- sh -c 'kill -9 $$'
"$caisson" run -- echo full >/dev/full 2>"$T/err"
t_is "output that nobody takes" "$? $(grep -v enforced "$T/err")" "125 caisson: write the output: No space left on device"
"$caisson" run -- sh -c 'seq 2000; exit 6' | (sleep 0.3; cat) >got
t_is "a reader that is late" "${PIPESTATUS[0]} $(md5sum <got)" "6 $(seq 2000 | md5sum)"
out=$("$caisson" run -- echo hi 2>&1 <&- 1>&-)
t_is "without standard descriptors" "$? $(grep -v enforced <<<"$out")" "0 "

# ---- exec ---------------------------------------------------------------------------------------

t_cli "its output" 0 $'a b\n$HOME' exec box -- printf '%s\n%s' 'a b' '$HOME'
t_cli "without --" 0 hi exec box echo hi
t_cli "options of the command are its own" 0 -i exec box echo -i
t_cli "its exit status" 7 "" exec box -- sh -c 'exit 7'
t_cli "by a signal" 143 "" exec box -- sh -c 'kill $$'
t_cli "its timeout" 124 "" exec box --timeout 300ms -- sleep 60
t_no "no such program" 127 'execute: *No such file*' exec box -- /nope
t_no "no program" 126 'execute: *Permission denied*' exec box -- /etc
t_no "no such sandbox" 125 'no such sandbox' exec nope -- true
cli exec box -e 'A=1 2' -e B= -w /tmp -- sh -c 'pwd; echo "$A|$B"'
t_is "variables and folder" "$out" $'/tmp\n1 2|'
cli exec box -- sh -c 'echo out; echo err >&2'
t_is "both streams" "$out|$err" "out|err"
head -c 3000000 /dev/urandom >big
bounded "$caisson" exec -i box -- cat <big >got 2>"$T/err"
cmp -s got big
t_result "3 MB go in and come out" $? "$(cat "$T/err")" "$(wc -c got)"
t_cli "without -i standard input is empty" 0 "" exec box -- cat <big
SECONDS=0
bounded "$caisson" exec box -- yes "$mark" 2>/dev/null | head -n 1 >got
t_is "| head -1 ends it with 141" "${PIPESTATUS[0]} $(cat got)" "141 $mark"
t_gone "and nothing is left of it"
t_ok "promptly" test $SECONDS -lt 60
cli exec box --json --label first -- sh -c 'echo hi; exit 3'
t_value "--json is the API's object" \
	'v["exit_code"] == 3 and v["stdout"] == "hi\n" and v["label"] == "first" and v["id"].startswith("px_")'
t_is "and its status" "$status" 3
cli exec nope --json -- true
t_value "--json of what is refused" 'v["code"] == "not_found" and v["status"] == 404'
printf 'in\n' >in
bounded "$caisson" exec -i --json box -- cat <in >"$T/out" 2>"$T/err"
t_value "--json with standard input" 'v["stdout"] == "in\n"'

# ---- processes ----------------------------------------------------------------------------------

cli exec box --background -- sh -c "echo one; echo two >&2; : $mark; read -r x; sleep 60"
px=$out
t_like "--background prints an id" "$status $px" "0 px_*"
has_said() { [ "$("$caisson" logs "$px" 2>&1 | sort | xargs)" = "one two" ]; }
eventually has_said
t_cli "ps has it" 0 "$px" ps -q
t_cli "ps of the sandbox, by its key" 0 "$px" ps -q box
cli ps
t_like "and what it is" "$out" "ID*COMMAND*$px*running*sh -c echo one;*"
t_no "ps of no sandbox" 1 'no such sandbox' ps nope
cli logs "$px"
t_is "logs: each stream where it belongs" "$out|$err" "one|two"
t_cli "logs --stderr" 0 two logs --stderr "$px"
cli kill -s USR1 "$px"
t_is "kill -s" "$status" 0
ended() { [ -z "$("$caisson" ps -q box)" ]; }
eventually ended
cli inspect "$px" --json
t_value "reached it" 'v["state"] == "signaled" and v["signal"] == 10'
cli exec box --background -- sh -c "sh -c 'setsid sleep 60 $mark' & echo a; sleep 60"
px=$out
t_cli "kill" 0 "" kill "$px"
t_gone "ends all it started"
t_cli "ps has only what runs" 0 "" ps -q box
t_ok "ps -a has all" grep -q SIGUSR1 <("$caisson" ps -a box)
t_no "kill what has ended" 1 "$px: the process has ended" kill "$px"
cli exec box --background -- sh -c 'for i in 1 2 3; do echo $i; sleep 0.2; done; exit 6'
px=$out
t_cli "logs -f waits for the end" 0 $'1\n2\n3' logs -f "$px"
t_cli "attach shows all, and ends as it did" 6 $'1\n2\n3' attach --no-stdin "$px"
t_cli "exec --shell: a script" 0 "" exec box --shell main -- 'cd /tmp; x=1; export y=2'
t_cli "the next one goes on there" 0 "/tmp 12" exec box --shell main -- 'echo "$PWD $x$y"'
t_cli "several words are one command" 0 'a  b $x' exec --shell main box -- echo 'a  b' '$x'
printf 'typed\n' >in
bounded "$caisson" exec -i --shell main box -- 'read -r z; echo "got $z"' <in >"$T/out" 2>"$T/err"
t_is "with standard input" "$(cat "$T/out")" "got typed"
cli exec box --shell main -- 'exit 4'
t_is "what ends the shell ends the command" "$status" 4
cli exec box --shell main -- 'echo "$PWD $x$y"'
t_is "and the next one says that it is another" "$status $out $err" "0 /tmp 2 caisson: the shell was started anew: it ended with exit status 4"
t_no "--shell with a terminal" 125 'tty: *' exec -t --shell main box -- true
cli exec box --json --children kill -- sh -c "sleep 60 $mark & sleep 0.1; echo ok"
t_value "--children kill leaves nothing" 'v["stdout"] == "ok\n" and v["children"] == []'
t_gone "and nothing is left"
t_no "--children of another kind" 125 '*background*' exec box --children eat -- true
cli exec box --wait 4s -- sh -c 'echo soon; sleep 600'
t_like "--wait leaves it running" "$status $out $err" "0 soon caisson: px_* is still running"
px=${err#caisson: } px=${px%% *}
"$caisson" attach "$px" </dev/null >"$T/attached" 2>&1 &
attached=$!
eventually grep -qs soon "$T/attached"
kill "$attached"
wait "$attached"
t_is "SIGTERM leaves what one is attached to" "$? $("$caisson" ps -q)" "0 $px"
cli kill "$px"
env --default-signal "$caisson" exec box -- sh -c "echo there; sleep 61; : $mark" >"$T/killed" 2>&1 </dev/null &
client=$!
eventually grep -qs there "$T/killed"
px=$("$caisson" ps -q)
kill -KILL "$client"
wait "$client" 2>/dev/null
t_cli "a client that is killed leaves the command running" 0 "$px" ps -q
cli kill "$px"
env --default-signal "$caisson" exec box -- sh -c "echo there; sleep 61; : $mark" >"$T/ended" 2>&1 </dev/null &
client=$!
eventually grep -qs there "$T/ended"
kill "$client"
wait "$client"
t_is "SIGTERM ends the command of exec" $? 143
t_gone "and all of it"

# ---- files --------------------------------------------------------------------------------------

printf 'one\ntwo\nthree\n' >text
bounded "$caisson" write box /work/a/b.txt --mode 600 <text
t_is "write" $? 0
t_cli "read" 0 $'one\ntwo\nthree' read box /work/a/b.txt
t_cli "read --lines" 0 $'two\nthree' read box /work/a/b.txt --lines 2-3
t_cli "its mode" 0 600 exec box -- stat -c %a /work/a/b.txt
bounded "$caisson" write box /work/big --from big
bounded "$caisson" read box /work/big >got 2>"$T/err"
cmp -s got big
t_result "3 MB to a file and back" $? "$(cat "$T/err")"
t_no "read what is not there" 1 '*No such file*' read box /work/none
t_no "write --new over a file" 1 '*' write box /work/a/b.txt --new --from text
cli write box /work/a/b.txt --if-match "$(printf %064d 0)" --from text --json
t_value "write with a stale hash" 'v["code"] == "stale"'
cli edit box /work/a/b.txt two 2
t_like "edit prints the difference" "$status $out" $'0 *\n-two\n+2\n*'
t_no "edit of what is not there" 1 '*' edit box /work/a/b.txt absent x
t_no "edit needs both" 125 '*OLD and NEW*' edit box /work/a/b.txt x
cli edit box /work/a/b.txt --insert 0 zero
t_cli "edit --insert" 0 $'zero\none\n2\nthree' read box /work/a/b.txt
t_cli "grep" 0 "/work/a/b.txt:2:one" grep box '^o.e$' /work
t_cli "grep -C" 0 $'/work/a/b.txt-1-zero\n/work/a/b.txt:2:one\n/work/a/b.txt-3-2' grep box one /work -C 1
t_cli "grep finds nothing" 1 "" grep box absent /work
t_no "grep of no sandbox is another status" 125 'no such sandbox' grep nope x
t_cli "glob" 0 /work/a/b.txt glob box '**/*.txt' /work
t_cli "ls" 0 $'a/\nbig' ls box /work
cli ls box /work/a -l
t_like "ls -l" "$out" $'TYPE *\nfile  0600*b.txt'

mkdir -p d/sub d/empty
printf 'x' >d/x
printf 'y' >'d/sub/y z'
ln -s ../x d/sub/link
t_cli "cp of a folder" 0 "" cp d box:/work/copy
t_cli "is all there" 0 $'./empty\n./sub\n./sub/link\n./sub/y z\n./x' exec box -w /work/copy -- sh -c 'find . -mindepth 1 | LC_ALL=C sort'
t_cli "cp into a folder that is there" 0 "" cp d box:/work/copy
t_cli "goes under its own name" 0 x exec box -- cat /work/copy/d/x
cli exec box -- sh -c 'cd /work/copy; ln -s /etc/passwd out; ln -s ../../.. up; mkfifo pipe; chmod 4755 x'
t_cli "cp of a folder to here" 0 "" cp box:/work/copy back
t_is "has its files" "$(cat back/x 'back/sub/y z' back/sub/link)" xyx
t_ok "no link that leads out, no pipe" test ! -L back/out -a ! -L back/up -a ! -e back/pipe
t_is "no setuid bit" "$(stat -c %a back/x)" 755
t_cli "cp of a file" 0 "" cp box:/work/a/b.txt here.txt
t_is "here" "$(head -n 1 here.txt)" zero
cli exec box -- sh -c 'cd /work; printf ran >tool; chmod 6755 tool'
t_cli "cp of a program" 0 "" cp box:/work/tool tool
t_is "it is one here, and nothing more" "$(stat -c %a tool)" 755
mkdir places && ln -s /dev/null places/null && ln -s "$T/tool" places/tool && ln -s places links && mkfifo places/pipe
for name in places/null places/tool places/pipe places links; do
	t_no "cp to $name, where a name would be lost" 125 '*neither a file nor a folder*' cp box:/work/tool "$name"
done
t_is "they are as before" "$(readlink places/null) $(cat tool)" "/dev/null ran"
rm places/tool
t_cli "cp to a link to a folder" 0 "" cp box:/work/tool links
t_is "goes into it" "$(cat places/tool)" ran
t_cli "cp of a file to a folder" 0 "" cp here.txt box:/work/
t_cli "there" 0 zero exec box -- head -n 1 /work/here.txt
t_no "cp within one side" 125 'one of the two is SANDBOX:PATH*' cp a b
t_no "cp of what is not here" 125 'open nothing*' cp nothing box:/work/x
t_no "cp of what is not there" 1 '*no such*' cp box:/work/nothing x

# ---- text of others on a terminal (LOG-01) --------------------------------------------------------

evil=$'\e]0;x\a\xe2\x80\xae\xc2\x9b31m'
cli exec box --label "$evil" --background -- sh -c 'sleep 60' "$evil"
px=$out
bad='[^ -~]' # nothing but ASCII is in these tables
cli ps
t_ok "ps: labels and commands are harmless" test -z "$(grep -a "$bad" "$T/out")"
cli exec box -- touch "/work/$evil"
cli ls box /work
t_ok "ls: so are names" test -z "$(grep -a "$bad" "$T/out")"
cli glob box '*0;*' /work
t_ok "glob: too" test -s "$T/out" -a -z "$(grep -a "$bad" "$T/out")"
cli read box "/work/no$evil"
t_ok "and sentences" test -s "$T/err" -a -z "$(grep -a "$bad" "$T/err")"
cli ps --json
t_ok "JSON too" test -s "$T/out" -a -z "$(grep -a "$bad" "$T/out")"
cli exec box -- printf '\033[2Jscreen\n'
printf '\033[2Jscreen\n' >want
t_ok "output of exec is unchanged" cmp "$T/out" want
cli kill "$px"
cli exec box --background -- printf '\033[2Jscreen\n'
px=$out
cli logs -f "$px"
t_ok "logs into a file too" cmp "$T/out" want
said=$(bounded python3 "$tests/term.py" 'expect \x1b[2Jscreen' -- "$caisson" logs "$px" 2>&1)
t_is "on a terminal they are shown, not obeyed" "$said" "exit 0 restored"

# ---- terminals ----------------------------------------------------------------------------------

t_term() { # NAME END STEP... -- ARGS
	local steps=() said
	while [ "$3" != -- ]; do
		steps+=("$3")
		set -- "$1" "$2" "${@:4}"
	done
	said=$(bounded python3 "$tests/term.py" "${steps[@]}" -- "$caisson" "${@:4}" 2>&1)
	t_is "$1" "$said" "$2"
}
t_term "a shell" "exit 5 restored" 'mode raw' 'type echo $((6*7)) $(stty size)\r' 'expect 42 30 100' \
	'type exit 5\r' -- sh box
t_term "exec -t: Ctrl-C is the command's" "exit 9 restored" 'expect ready' 'type \x03' 'expect caught' -- \
	exec -t box -- bash -c 'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 0.1; done'
t_term "a resize arrives" "exit 0 restored" 'expect ready' 'size 41 123' 'expect winch 41 123' 'type x\r' -- \
	exec -t box -- bash -c 'trap "echo winch \$(stty size)" WINCH; echo ready; until read -rt 1; do :; done'

# ---- life ---------------------------------------------------------------------------------------

state() { "$caisson" inspect box --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])'; }
cli stop box
t_is "stop" "$status $(state)" "0 stopped"
t_cli "files stay" 0 x read box /work/copy/x
t_no "nothing runs in it" 125 '*' exec box -- true
cli start box
t_is "start" "$status $(state)" "0 running"
if has_cgroup freezer || is_root; then
	cli pause box
	t_is "pause" "$status $(state)" "0 paused"
	cli resume box
	t_is "resume" "$status $(state)" "0 running"
fi
cli replace box
cli inspect box --json
t_value "replace" 'v["generation"] == 2 and v["state"] == "running"'
t_cli "extend" 0 "" extend box --ttl 1h
cli top
t_like "top" "$out" $'ID *CPU*MEM*\n'"$sb  box*running*"
cli top --json
t_value "top --json" '"pids" in v["sandboxes"][0]["usage"]'

# ---- ports --------------------------------------------------------------------------------------

"$caisson" exec box -- sh -c 'mkdir -p /tmp/www && echo hello >/tmp/www/f && cd /tmp/www && exec python3 -m http.server 3100' \
	>/dev/null 2>&1 </dev/null &
inside=$!
cli port box 3100 --url --wait 30s
t_like "port --url" "$status $out" $'0 http://127.0.0.1:*\nX-Caisson-Port-Token: cpt_*\nhttp://127.0.0.1:*/.caisson/open?token=cpt_*'
mapfile -t made <"$T/out"
fetch() { python3 -c 'import sys, urllib.request as u
h = dict([sys.argv[2].split(": ", 1)]) if len(sys.argv) > 2 else {}
try: print(u.urlopen(u.Request(sys.argv[1], headers=h), timeout=60).read().decode(), end="")
except u.HTTPError as e: print(e.code)' "$@"; }
t_is "its URL, with the header" "$(fetch "${made[0]}/f" "${made[1]}")" hello
t_is "and without" "$(fetch "${made[0]}/f")" 401
cli ports box
t_like "ports" "$status $out" $'0 PORT *ADDRESS *FORWARDED*\n3100  0.0.0.0  '"${made[0]}"
cli ports box --json
t_value "ports --json" 'v["listeners"] == [{"port": 3100, "address": "0.0.0.0"}] and v["forwarded"][0]["port"] == 3100'
t_cli "port --rm" 0 "" port box 3100 --rm
t_no "once" 1 'the port is not forwarded' port box 3100 --rm
"$caisson" port box 3100:0 --wait 30s >"$T/where" 2>"$T/port.err" &
forward=$!
eventually test -s "$T/where"
t_is "port: a connection of its own" "$(fetch "http://$(cat "$T/where")/f")" hello
t_is "and another" "$(fetch "http://$(cat "$T/where")/f")" hello
kill "$forward"
wait "$forward" 2>/dev/null
kill "$inside"
wait "$inside" 2>/dev/null
t_no "port --wait gives up" 1 'nothing listens on port 3199' port box 3199 --wait 300ms
t_no "a port that is none" 125 'x is not PORT or PORT:LOCAL' port box x
t_no "--ttl alone" 125 '--ttl goes with --url' port box 1 --ttl 1h
t_cli "rm" 0 "" rm box
t_cli "it is gone" 0 "" list -q
t_no "and says so" 125 'no such sandbox' exec box -- true

# ---- tokens -------------------------------------------------------------------------------------

port=$(sed -n 's/.*(port \([0-9]*\)).*/\1/p' "$T/daemon")
cli token create --scope read --name reader
token=$out
t_like "token create" "$token" "cst_*"
by_tcp() { (unset CAISSON_SOCKET; CAISSON_HOST=127.0.0.1:$port bounded "$caisson" "$@" 2>&1); }
t_is "without a token" "$(by_tcp list)" "caisson: a bearer token is needed"
t_like "with it" "$(CAISSON_TOKEN=$token by_tcp list)" "ID *"
t_is "within its scope" "$(CAISSON_TOKEN=$token by_tcp create)" "caisson: the token lacks the scope manage"
cli token ls
t_like "token ls" "$out" $'ID *\ntk_*reader*read*valid'
t_ok "without the text" test "${out#*"$token"}" = "$out"
cli token rm "$(awk 'NR == 2 { print $1 }' "$T/out")"
t_like "token rm" "$(CAISSON_TOKEN=$token by_tcp list)" "caisson: the token is *revoked"

# ---- help ---------------------------------------------------------------------------------------

"$caisson" help --man >caisson.1
if command -v groff >/dev/null; then
	t_is "groff has no complaint about the man page" "$(groff -man -ww -z -Tutf8 caisson.1 2>&1)" ""
fi
wrong=
for verb in $("$caisson" help | awk '$1 == "caisson" && NF > 2 { print $2 }'); do
	[ "$verb" != caisson: ] || continue
	"$caisson" help "$verb" | grep -q "^usage: caisson $verb" || wrong+=" $verb"
	grep -q "^.SS caisson $verb " caisson.1 || wrong+=" $verb(1)"
done
t_is "every verb has its help and its section" "$wrong" ""
"$caisson" completion bash >completion
t_ok "bash takes the completion" bash -n completion
cli exec --help
t_like "--help of a verb" "$status $out" "0 usage: caisson exec *"
t_no "an unknown verb" 125 'unknown command nope; *' nope
t_done
