#!/bin/bash
# walls-gone.sh - a census by the host: what a sandbox was made of is gone when it is.
. "$(dirname "$0")/lib.sh"

# The folders of a process's cgroups, as far as they are caisson's.
group_dirs() {
	while IFS=: read -r _ name path; do
		[[ $path == */caisson/* ]] || continue
		for top in "/sys/fs/cgroup/${name#name=}" /sys/fs/cgroup/unified /sys/fs/cgroup; do
			[ ! -d "$top$path" ] || echo "$top$path"
		done
	done <"/proc/$1/cgroup"
}
start -- sh -c "sleep 300; : $mark"
pid=$(inside_pid)
dirs=$(group_dirs "$pid")
namespaces=$(readlink /proc/"$pid"/ns/{user,mnt,pid,net,ipc,uts,cgroup})
if has_cgroup memory; then
	t_ok "while it lives it has groups" test -n "$dirs"
fi
t_is "and seven namespaces of its own" "$(cat <(echo "$namespaces") <(readlink /proc/self/ns/{user,mnt,pid,net,ipc,uts,cgroup}) | sort | uniq -u | wc -l)" 14
t_ok "no mount of it is in ours" test -z "$(grep -e overlay -e caisson /proc/self/mountinfo)"
t_ok "a sandbox that lives is not swept" bounded "$caisson" gc
t_is "it lives on" "$(inside_pid)" "$pid"
stop
t_is "its processes are gone" "$(marked)" ""
left() { for dir in $dirs; do [ ! -e "$dir" ] || echo "$dir"; done; }
none_left() { [ -z "$(left)" ]; }
t_ok "its groups are gone" eventually none_left
in_use() { # namespaces of it that some process is in
	for ns in /proc/[0-9]*/ns/*; do readlink "$ns"; done 2>/dev/null | sort -u | grep -Fx -f <(echo "$namespaces" | tr ' ' '\n')
}
none_in_use() { [ -z "$(in_use)" ]; }
t_ok "its namespaces are gone" eventually none_in_use

# Many at once, some of them killed with their client. (The shell would tell of each.)
exec 3>&2 2>/dev/null
for i in {1..24}; do
	"$caisson" run -- sh -c "sleep 1; exit 3; : $mark" >/dev/null 2>&1 &
	clients[i]=$!
done
sleep 0.7
for i in 3 9 15 21; do kill -KILL "${clients[i]}"; done
failed=0
for i in {1..24}; do
	wait "${clients[i]}"
	status=$?
	[ "$status" = 3 ] || [[ " 3 9 15 21 " == *" $i "* && $status = 137 ]] || failed=$((failed + 1))
done
exec 2>&3 3>&-
t_is "24 at once, 4 of them killed: the others end as they should" "$failed failed" "0 failed"
t_gone "no process is left"

# Nothing on the host's disk grows with the number of runs.
state() { find "$E2E_BASE/$role/run" /run/caisson 2>/dev/null | wc -l; }
run -- true
before=$(state)
for _ in 1 2 3 4 5 6 7 8; do run -- true; done
no_more() { [ "$(state)" -le "$before" ]; }
t_ok "no file is left by a run" eventually no_more

t_like "gc" "$(bounded "$caisson" gc)" "*removed"
t_like "gc --dry-run --json" "$(bounded "$caisson" gc --dry-run --json)" '{"found":*}'
bounded "$caisson" gc --nonsense 2>"$T/err"
t_like "gc: bad usage" "$? $(cat "$T/err")" "125 caisson: unknown option --nonsense*"

# After gc nothing at all. Another's sandbox or daemon on this machine would be seen too: wait for its end.
kill "$E2E_DAEMON"
nobody_runs() { ! grep -qsx -e caisson -e caissond -e caisson-launche -e caisson-test -e caisson-init /proc/[0-9]*/comm; }
for _ in {1..6}; do eventually nobody_runs && break; done
bounded "$caisson" gc >/dev/null
found=$(
	places=("$E2E_BASE/$role/run")
	if is_root; then
		find /sys/fs/cgroup -maxdepth 2 -name caisson
		places+=(/run/caisson)
	fi
	cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -e ' - overlay none ' -e /caisson/skeleton
	find "${places[@]}" -name 'skeleton*' -prune
)
t_is "gc: no group, mount or file of a sandbox is left" "$found" ""
t_done
