#!/bin/bash
# gate-walls.sh - a sandbox with a network: nothing leaves it but by the gate, which can be killed.
. "$(dirname "$0")/lib.sh"

# What a program inside gets when it tries: one line each, the word of the kernel or what came.
cat >try.py <<'PY'
import errno, socket, sys, time
T, U = socket.SOCK_STREAM, socket.SOCK_DGRAM

def attempt(kind, host, port):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    s.settimeout(20)
    begin = time.monotonic()
    try:
        s.connect((host, port))
        s.send(b"\x16\x03\x01\x00\x00")
        word = "open" if s.recv(1) else "closed"
    except OSError as e:
        word = errno.errorcode.get(e.errno, "timeout")
    return word + (" late" if time.monotonic() - begin > 4.5 else "")

for line in sys.argv[1:]:
    kind, host, port = line.split("/")
    print(line, attempt(T if kind == "tcp" else U, host, int(port)))
PY
probe() { # TARGET...: in $sb
	bounded "$caisson" exec "$sb" -- python3 -c "$(cat try.py)" "$@" 2>&1
}
names() { bounded "$caisson" exec "$sb" -- getent ahostsv4 "$@" 2>&1 | cut -d' ' -f1 | sort -u; }
why() {
	bounded "$caisson" exec "$sb" -- python3 -c 'import socket
s = socket.socket(socket.AF_UNIX)
s.connect("/run/caisson/self.sock")
s.send(b"why\n")
print(s.makefile().read())'
}
gates() { pgrep -x caisson-gate -P "${1:-$E2E_DAEMON}"; } # the master; with its pid: its children

t_run "deny has no route and no name server" 0 --net deny -- sh -c 'cat /proc/net/route /etc/resolv.conf; ! getent hosts example.org'
t_like "as before" "$out" "*no name server: net is denied*"
t_is "and no gate was started for it" "$(gates)" ""

t_run "a list of names" 0 --json --net allow:example.org,*.example.net -- sh -c \
	'cat /etc/resolv.conf; getent ahostsv4 example.org; getent hosts a.example.net; ! getent hosts example.com'
t_json "is enforced by the gate" "r['enforced']['net'] == 'netns, nftables, gate'"
t_json "names have addresses of ours" "'198.18.0.2' in r['stdout'] and '198.18.0.3' in r['stdout']"
t_json "what was refused is told" "[v['target'] for v in r['violations'] if v['kind'] == 'net'] == ['example.com']"
t_like "the gate runs" "$(gates)" "[0-9]*"

sb=$(bounded "$caisson" create --net allow:example.org 2>/dev/null)
t_like "one that is kept" "$sb" "sb_*"
said=$(probe tcp/192.0.2.1/443 tcp/2001:db8::1/443 tcp/169.254.169.254/80 tcp/10.0.0.1/22 tcp/198.18.0.1/1 tcp/127.0.0.1/1 \
	udp/192.0.2.1/443 udp/2001:db8::1/443 udp/224.0.0.251/5353)
t_is "addresses, metadata, the gate's own port, datagrams: all at once" "$said" "tcp/192.0.2.1/443 ECONNRESET
tcp/2001:db8::1/443 ECONNRESET
tcp/169.254.169.254/80 ECONNRESET
tcp/10.0.0.1/22 ECONNRESET
tcp/198.18.0.1/1 ECONNRESET
tcp/127.0.0.1/1 ECONNREFUSED
udp/192.0.2.1/443 EPERM
udp/2001:db8::1/443 EPERM
udp/224.0.0.251/5353 EPERM"
t_like "the sandbox can ask why" "$(why)" '*"target":"192.0.2.1:443","reason":"literal"*'
t_like "and sees nobody else's class of address" "$(why)" '*"169.254.169.254:80","reason":"metadata"*'

t_run "a server inside works on loopback and for all, on any port" 0 --net allow:example.org -- python3 -c '
import socket
for host, port in ("0.0.0.0", 5432), ("127.0.0.1", 8053), ("::", 8080):
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    s.bind((host, port)); s.listen()
    c = socket.create_connection(("::1" if ":" in host else "127.0.0.1", port))
    assert s.accept()[0].getpeername()[0] in ("127.0.0.1", "::1")
'
t_run "ping, raw, packet, netlink and others are refused as without a network" 0 --net allow -- python3 -c '
import socket
tries = [(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), (socket.AF_INET, socket.SOCK_RAW, 1),
         (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_NETLINK, socket.SOCK_RAW, 12),
         (socket.AF_VSOCK, socket.SOCK_STREAM, 0), (socket.AF_INET, socket.SOCK_SEQPACKET, 132), (socket.AF_INET, socket.SOCK_DGRAM, 136)]
for t in tries:
    try: socket.socket(*t)
    except OSError: continue
    raise SystemExit(f"{t} works")
'

# An image whose own file is a link to nowhere, as where systemd asks for names.
mkdir -p img/{bin,etc,lib,lib64}
cp /bin/cat img/bin/
ldd /bin/cat | grep -o '/[^ ]*' | while read -r file; do cp --parents "$file" img/; done
ln -s ../run/systemd/resolve/stub-resolv.conf img/etc/resolv.conf
t_run "an image gets the gate's name server" 0 --image "dir:$T/img" --net allow:example.org -- cat /etc/resolv.conf
t_like "and no other" "$out" "nameserver 198.18.0.1*"
t_ok "its own file is as it was" test -L img/etc/resolv.conf

# ---- what dies comes back ----------------------------------------------------------------------

first=$(names example.org)
t_is "a name has an address, also for who asks what addresses this host has" "$first" 198.18.0.2
one_child() { [ "$(gates "$(gates)" | wc -l)" = 1 ]; } # those of runs that have ended may take a moment
eventually one_child
master=$(gates) child=$(gates "$(gates)")
kill -9 "$child"
t_is "the child is killed: the same name has the same address" "$(names example.org)" "$first"
t_ok "by another one" test "$(gates "$master")" != "$child"
kill -9 "$master"
t_is "the whole gate is killed: the same" "$(names example.org)" "$first"
t_like "and what is not listed is still not there" "$(probe tcp/192.0.2.1/443)" "*ECONNRESET"

# Connections wait for it, none is open meanwhile.
bounded "$caisson" exec "$sb" -- python3 -c 'import socket, time
ends = set()
until = time.monotonic() + 3
while time.monotonic() < until:
    try:
        s = socket.create_connection(("192.0.2.1", 443), 40)
        ends.add("open" if s.recv(1) else "closed")
    except ConnectionResetError: ends.add("closed")
print(*sorted(ends))' >"$T/ends" 2>&1 &
loop=$!
for _ in 1 2 3 4 5 6; do
	sleep 0.3
	kill -9 $(gates "$(gates)") 2>/dev/null
done
wait "$loop"
t_is "killed again and again: never open, never silent" "$(cat "$T/ends")" "closed"

daemon=$(pgrep -x caissond -P "$E2E_DAEMON")
kill -9 "$daemon"
t_ok "the daemon is killed" eventually bounded "$caisson" exec "$sb" -- true
t_is "the same name has the same address" "$(names example.org)" "$first"
t_is "stop and start are new walls, and a gate" "$(bounded "$caisson" stop "$sb" 2>&1 >/dev/null && bounded "$caisson" start "$sb" 2>&1 >/dev/null &&
	names example.org)" "$first"
t_ok "rm" bounded "$caisson" rm "$sb"
no_child() { [ -z "$(gates "$(gates)")" ]; }
t_ok "its child ends with it" eventually no_child

# ---- without a gate ---------------------------------------------------------------------------

# The daemon of this role has its programs beside it; the next one has no gate there.
mkdir bad bad/run
cp "$E2E_BASE"/bin/{caisson,caissond,caisson-init,caisson-launcher,caisson-tree} bad/
chmod 711 bad/run
bad/caisson-launcher --state "$T/bad/state" --run "$T/bad/run/d" </dev/null >"$T/bad/log" 2>&1 &
bad=$!
served() { CAISSON_SOCKET=$T/bad/run/d/api.sock bounded "$caisson" list -q >/dev/null 2>&1; }
t_ok "a daemon without a gate" eventually served
CAISSON_SOCKET=$T/bad/run/d/api.sock t_says "a run is refused with one sentence" 125 "caisson-gate is neither beside *" --net allow:example.org -- true
out=$(CAISSON_SOCKET=$T/bad/run/d/api.sock bounded "$caisson" create --net allow:example.org 2>&1 | grep -v '^caisson: not enforced')
t_like "and so is a sandbox" "$out" "caisson: caisson-gate is neither beside *"
CAISSON_SOCKET=$T/bad/run/d/api.sock t_run "without a network all is well" 0 -- true
printf '#!/bin/sh\nexit 1\n' >bad/caisson-gate
chmod 755 bad/caisson-gate
out=$(CAISSON_SOCKET=$T/bad/run/d/api.sock bounded "$caisson" create --net allow:example.org 2>&1 | grep -v '^caisson: not enforced')
t_like "a gate that ends at once is one too" "$out" "caisson: *the gate*" # "start the gate: " before it where the launcher saw the end
kill "$bad"
wait "$bad"
t_done
