#!/bin/bash
# config.sh - a real daemon with a config file: every key has its effect, flags win, mistakes are named.
. "$(dirname "$0")/lib.sh"

unset CAISSON_SOCKET # of the daemon that other scripts use
pid=
serve() { # ARGS...: a daemon with the sockets in $T/run
	rm -f run/api.sock
	"$caisson" serve "$@" </dev/null >log 2>&1 &
	pid=$!
	eventually is_served
	export CAISSON_SOCKET=$T/run/api.sock
}
is_served() { get run/api.sock /v1/health 2>/dev/null | grep -q '^200 {"status":"ready"' || is_ended; }
is_ended() { ! kill -0 "$pid" 2>/dev/null; }
end() {
	[ -z "$pid" ] || { kill "$pid" && wait "$pid"; } 2>/dev/null
	pid=
	unset CAISSON_SOCKET
}
trap end EXIT
c() { bounded "$caisson" "$@" 2>&1 | grep -v '^caisson: not enforced here: '; return "${PIPESTATUS[0]}"; }
remove_all() {
	local sb
	for sb in $(c list -q); do
		c rm "$sb" >/dev/null
	done
}
get() { # SOCKET PATH: status and body
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(f"GET {sys.argv[2]} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
data = b"".join(iter(lambda: s.recv(65536), b"")).decode()
print(data.split()[1], data.partition("\r\n\r\n")[2])' "$@"
}
field() { # EXPRESSION, about the JSON object o of stdin
	python3 -c 'import json, sys
o = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}
port() { sed -n 's/.*(port \([0-9]*\)).*/\1/p' log | head -n 1; }

# ---- mistakes ----------------------------------------------------------------------------------

bad() { # NAME TEXT PATTERN
	printf '%s\n' "$2" >bad.yaml
	t_like "check: $1" "$(c config check bad.yaml; echo "$?")" "caisson: bad.yaml: $3"$'\n1'
	t_like "serve: $1" "$(c serve --config bad.yaml; echo "$?")" "caisson: bad.yaml: $3"$'\n125'
}
bad "an unknown key, with its line and the nearest" $'ttl: 1h\nquotas: {mem: 1g}' \
	'line 2: unknown key "quotas"; did you mean "quota"[?]'
bad "a wrong type" 'quota: 5' 'line 1: quota: wants an object, not a number'
bad "an absurd value" 'ttl: 100000d' 'line 1: ttl: "100000d" is too large, the most is 365d'
bad "a level that there is not" 'log: loud' 'line 1: log: "loud" is neither debug, info, warn nor error'
bad "half of a pair" 'tls: {cert: /c}' 'tls: a certificate needs its key*'
bad "a default above its bound" $'most: {mem: 1g}\ndefaults: {mem: 2g}' 'defaults.mem: "2g" is more than most.mem, 1g'
bad "not YAML" 'ttl: [' 'line 2: *'
echo 'ttl: 1h' >bad.yaml
chmod 666 bad.yaml
t_is "one that others may write is refused" "$(c serve --config bad.yaml)" \
	"caisson: bad.yaml may be written by others (mode 0666); chmod go-w it"
chmod 644 bad.yaml
t_is "config check" "$(c config check bad.yaml)" "bad.yaml: ok"
t_is "config check --json" "$(c config check bad.yaml --json)" '{"ok":true}'
if is_root; then
	chown 65534 bad.yaml
	t_is "nor one of somebody else" "$(c serve --config bad.yaml)" \
		"caisson: bad.yaml belongs to user 65534; it must be root's or your own"
fi
t_is "a file that was named must be there" "$(c serve --config no.yaml; echo $?)" \
	$'caisson: open no.yaml: No such file or directory\n125'
t_like "a flag is checked too" "$(c serve --config none --quota mem=much; echo $?)" \
	$'caisson: --quota mem: "much" is not a size*\n125'
t_like "and an unknown one refused" "$(c serve --colour red; echo $?)" $'caisson: unknown option --colour*\n125'

# ---- every key ---------------------------------------------------------------------------------

mkdir free own
chmod 777 free
cat >full.yaml <<-E
	state: $T/state
	run: $T/run
	listen: ["127.0.0.1:0", "unix:$T/free/more.sock"]
	host_paths: [$T/own]
	ttl: 2h
	keep_records: 3d
	log: debug
	quota: {sandboxes: 2, processes: 1, cpu: 100, mem: 600m, pids: 2000, disk: 300m}
	defaults: {mem: 128m, disk: 16m}
	most: {mem: 512m, wall: 1h}
E
show=$(c config show --config full.yaml --ttl 1h --quota mem=700m | tr -s ' ')
t_like "config show: the file" "$show" "file: full.yaml"*
for row in "ttl 1h flag" "keep_records 3d file" "quota.mem 700m flag" "quota.sandboxes 2 file" "quota.cpu 100 file" \
	"idle_exit - default" "most.wall 1h file" "defaults.disk 16m file" \
	"listen 127.0.0.1:0,unix:$T/free/more.sock file" "service_id 1879047936 default"; do
	t_like "config show: $row" "$show" *$'\n'"$row"*
done
t_is "config show --json" "$(c config show --json --config full.yaml |
	field '[o["file"]] + [(v["value"], v["from"]) for v in o["values"] if v["key"] in ("idle_exit", "keep_records")]')" \
	"['full.yaml', (None, 'default'), ('3d', 'file')]"
t_like "config show without a file" "$(c config show --config none)" "file: none"*

serve --config full.yaml
t_ok "serve: state and run are where the file says" test -S run/api.sock -a -e state/caisson.db
t_like "listen: by TCP" "$(cat log)" "*listening on 127.0.0.1:0 (port *)*"
t_like "listen: on another socket" "$(get free/more.sock /v1/health)" '200 {"status":"ready"*'
t_is "listen: which is nobody else's" "$(stat -c %a free/more.sock)" 600
one=$(c create)
t_like "a sandbox" "$one" "sb_*"
t_like "log: what became of it, with its id" "$(cat log)" "*Z info caissond: a sandbox runs sandbox=$one tenant=*"
t_like "log: debug has every request" "$(cat log)" "*Z debug caissond: a request method=POST path=/v1/sandboxes status=201 tenant=*"
t_is "ttl" "$(c inspect "$one" --json | field 'round((o["expires_ms"] - o["created_ms"]) / 1000)')" 7200
t_is "defaults: disk" "$(c exec "$one" -- df -k --output=size /work | tail -n 1 | tr -d ' ')" $((16 << 10))
t_is "defaults count as used" "$(get run/api.sock /v1/quota | cut -d' ' -f2- | field 'o["used"]["mem"], o["most"]["mem"]')" \
	"($((128 << 20)), $((600 << 20)))"
t_is "most: refused" "$(c create --allow-weaker mem --mem 1g; echo $?)" \
	$'caisson: limits.mem: "1g" is more than the operator allows, the most is 512m\n125'
t_is "most: of run, too" "$(c run --wall 2h -- true; echo $?)" \
	$'caisson: limits.wall: "2h" is more than the operator allows, the most is 1h\n125'
t_is "quota: mem" "$(c create --allow-weaker mem --mem 500m; echo $?)" \
	$'caisson: mem: 500m more with 128m in use, and the quota is 600m\n125'
t_ok "a second sandbox" bounded "$caisson" create
t_is "quota: sandboxes" "$(c create; echo $?)" $'caisson: sandboxes: 1 more with 2 in use, and the quota is 2\n125'
bounded "$caisson" exec "$one" -- sleep 60 >/dev/null 2>&1 &
busy=$!
is_busy() { c ps | grep -q ' running '; }
eventually is_busy
t_is "quota: processes" "$(c exec "$one" -- true; echo $?)" \
	$'caisson: processes: 1 more with 1 in use, and the quota is 1\n125'
kill -HUP "$pid"
sleep 0.3
t_ok "no reload: SIGHUP changes nothing and ends nothing" bounded "$caisson" list
remove_all
wait "$busy"
# A token reaches the operator's folders and no other.
token=$(c token create --scope manage --json | field 'o["token"]')
by_token() { env -u CAISSON_SOCKET CAISSON_HOST="127.0.0.1:$(port)" CAISSON_TOKEN="$token" timeout 60 "$caisson" run --fs "ro:$1:/own" -- echo in 2>/dev/null; }
t_is "host_paths: a token may name it" "$(by_token "$T/own"; echo $?)" $'in\n0'
t_is "host_paths: and no other" "$(by_token "$T/free"; echo $?)" 125
end

# ---- flags win ---------------------------------------------------------------------------------

rm -f free/more.sock
serve --config full.yaml --state state2 --quota sandboxes=1 --listen "unix:$T/free/other.sock" --most mem=1g
t_ok "flags win: state, from here" test -e state2/caisson.db
t_ok "a list of flags replaces the file's" test -S free/other.sock -a ! -S free/more.sock
t_ok "flags win: most" bounded "$caisson" create --allow-weaker mem --mem 520m
t_is "flags win: quota, and the rest of the file counts" "$(c create; echo $?)" \
	$'caisson: sandboxes: 1 more with 1 in use, and the quota is 1\n125'
remove_all
end

cat >small.yaml <<-E
	state: $T/state3
	run: $T/run
	idle_exit: 8
	service_id: 64123
	keep_records: 1
	tls: {cert: $T/free/cert.pem, key: $T/free/key.pem}
	listen: ["127.0.0.1:0"]
E
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
	-keyout free/key.pem -out free/cert.pem 2>/dev/null
chmod 644 free/key.pem # for the daemon's own id
serve --config small.yaml
t_like "tls" "$(openssl s_client -connect "127.0.0.1:$(port)" </dev/null 2>/dev/null)" "*BEGIN CERTIFICATE*"
! is_root || t_is "service_id" "$(stat -c %u state3/caisson.db)" 64123
c run -- true
no_records() { [ "$(c ps -aq | wc -l)$(find state3/logs -type f | wc -l)" = 00 ]; }
t_ok "keep_records: records and logs go" eventually no_records
t_ok "idle_exit: it ends by itself" eventually is_ended
pid=
unset CAISSON_SOCKET

# ---- socket activation -------------------------------------------------------------------------

cat >activate.py <<-'E'
	# As systemd does it: descriptor 3 listens, and it is announced to this very process.
	import os, socket, sys
	s = socket.socket(socket.AF_UNIX)
	s.bind(sys.argv[1])
	s.listen()
	os.chmod(sys.argv[1], 0o600)
	n = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	n.bind(sys.argv[1] + ".notify")
	if os.fork():
	    n.settimeout(60)
	    print(n.recv(4096).decode().split("\n")[0], flush=True)
	    os.wait()
	    sys.exit(0)
	os.dup2(s.fileno(), 3)
	os.set_inheritable(3, True)
	os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", NOTIFY_SOCKET=sys.argv[1] + ".notify")
	open("activated", "w").write(str(os.getpid()))
	os.execv(sys.argv[2], sys.argv[2:])
E
mkdir given
python3 activate.py "$T/given/api.sock" "$caisson" serve --config none --state "$T/state4" --run "$T/run4" >notified 2>log4 &
python=$!
is_told() { [ -s notified ]; }
eventually is_told
t_is "NOTIFY_SOCKET passes through serve" "$(cat notified)" READY=1
t_ok "and so does the socket that was given" env CAISSON_SOCKET="$T/given/api.sock" timeout 60 "$caisson" list
t_ok "no other was made" test ! -e run4/api.sock
kill "$(cat activated)"
wait "$python"

# ---- the usual place ---------------------------------------------------------------------------

launcher() { # pid and arguments of the one with that run folder
	local file args
	for file in /proc/[0-9]*/cmdline; do
		mapfile -d '' -t args 2>/dev/null <"$file" || continue
		[[ ${args[0]-} != */caisson-launcher || " ${args[*]} " != *" $1 "* ]] || echo "$(basename "${file%/cmdline}") ${args[*]}"
	done
}
if ! is_root; then
	export XDG_CONFIG_HOME=$T/xdg XDG_STATE_HOME=$T/own-state XDG_RUNTIME_DIR=$T/own-run
	mkdir -p xdg/caisson own-run
	echo 'most: {wall: 1h}' >xdg/caisson/config.yaml
	t_is "a daemon on demand reads it" "$(c run --wall 2h -- true; echo $?)" \
		$'caisson: limits.wall: "2h" is more than the operator allows, the most is 1h\n125'
	found=$(launcher "$T/own-run/caisson")
	t_like "and ends when it is idle, as ever" "$found" "*--idle-exit 1m*"
	kill "${found%% *}"
	is_gone() { ! [ -S own-run/caisson/api.sock ]; }
	eventually is_gone
	echo "run: $T/elsewhere" >xdg/caisson/config.yaml
	t_like "a file that moves the socket is no file for a daemon on demand" "$(c list; echo $?)" \
		"caisson: $T/xdg/caisson/config.yaml has run: $T/elsewhere, where no command looks for a daemon*"$'\n125'
	chmod 666 xdg/caisson/config.yaml
	t_like "nor is one that others may write" "$(c list; echo $?)" \
		"caisson: $T/xdg/caisson/config.yaml may be written by others*"$'\n125'
fi
t_done
