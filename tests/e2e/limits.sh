#!/bin/bash
# limits.sh - bombs, fills and floods end at their limit, the result names it, and meanwhile
# another sandbox and the host work.
. "$(dirname "$0")/lib.sh"

neighbour() { # WHEN
	t_is "$1: another sandbox works" "$(bounded "$caisson" run -- sh -c 'echo $((6 * 7)) >f; cat f' 2>/dev/null)" 42
	t_is "$1: the host works" "$(sh -c 'echo $((6 * 7))' | cat)" 42
}
bomb() { # ARGS...: in the background, its result in $T/out when it is over
	bounded "$caisson" run --json "$@" >"$T/out" 2>"$T/err" &
	bomb=$!
	sleep 1
}
defused() { wait "$bomb"; status=$?; }
hits() { # the limit is named as violated
	# An rlimit keeps no count of what it refused: there is nothing to report.
	[ "$1" = pids ] && ! has_cgroup pids && return
	t_json "$1: the result names the limit" '"'"$1"'" in [v["target"] for v in r["violations"] if v["kind"] == "limit"]'
}

# ---- pids ----
in_bloom() { [ "$(marked | grep -c python3)" -gt 30 ]; }
bomb --pids 64 --timeout 6s -- python3 -c "import os # $mark
while True:
	try: os.fork()
	except OSError: pass"
eventually in_bloom
t_ok "fork bomb: at most 64 processes" test "$(marked | grep -c python3)" -le 64
neighbour "fork bomb"
defused
t_is "fork bomb: ended by the timeout" "$status" 124
hits pids
run --pids 20 -- sh -c 'i=0; while [ $i -lt 15 ]; do sleep 5 & i=$((i + 1)); done; echo all'
t_is "pids: below the limit nothing is refused" "$out" all
run --pids 64 -- python3 -c 'import threading, time
n = 0
try:
	while n < 200: threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1
except RuntimeError: pass
print(50 < n < 64)'
t_is "pids: threads count too" "$out" True
t_run "pids: one is enough for one" 0 --pids 1 -- true

# ---- mem ----
if has_cgroup memory; then
	bomb --mem 128m --timeout 30s -- python3 -c 'x = []
while True: x.append(bytearray(1 << 20))'
	neighbour "memory bomb"
	defused
	t_is "memory bomb: 137" "$status" 137
	t_json "memory bomb: oom" 'r["state"] == "oom" and r["reason"] == "mem limit of 134217728 bytes reached"'
	hits mem
	run --json --mem 64m -- sh -c 'python3 -c "b\"x\" * (400 << 20)"; exit 5'
	hits mem
	run --json --mem 64m --disk 64m -- sh -c 'head -c 60000000 /dev/zero >/tmp/f; python3 -c "b\"x\" * (20 << 20)"; exit 5'
	hits mem # what lies in the scratch space is memory
else
	t_refused mem 128m
	t_run "mem: taken when weaker is allowed" 0 --mem 128m --allow-weaker mem -- true
	t_like "mem: and said" "$notice" "caisson: not enforced here: *mem*"
fi

# ---- cpu ----
hog='import os, time
for _ in range(3): os.fork()
t = time.monotonic()
while time.monotonic() - t < 2: pass'
if has_cgroup cpu; then
	bomb --cpu 0.5 -- python3 -c "$hog"
	neighbour "CPU hog"
	defused
	t_json "CPU hog: half a processor" 'r["usage"]["cpu_ms"] < 0.75 * r["ms"] + 100'
else
	t_refused cpu 0.5
	bomb --timeout 3s -- python3 -c "$hog"
	neighbour "CPU hog"
	defused
fi

# ---- disk, inodes ----
for place in /work /tmp /home/agent /dev/shm /run; do
	run --disk 16m -- sh -c "head -c 64M /dev/zero >$place/f; stat -c %s $place/f"
	t_ok "disk fill: $place ends at the limit" test "$out" -gt 8000000 -a "$out" -le 16777216
done
run --disk 16m -- sh -c 'head -c 10M /dev/zero >/work/f; head -c 10M /dev/zero >/tmp/f; du -cb /work/f /tmp/f | tail -n 1 | cut -f1'
t_ok "disk fill: one limit for all places" test "$out" -le 16777216
bomb --disk 16m --timeout 6s -- sh -c 'while :; do head -c 64M /dev/zero >>/work/f; done'
neighbour "disk fill"
defused
hits disk
run --json --disk 16m -- sh -c 'head -c 64M /dev/zero >/work/f; rm /work/f; head -c 1M /dev/zero >/work/f'
t_json "disk: room comes back with rm" 'r["exit_code"] == 0'
bomb --inodes 500 --timeout 6s -- python3 -c 'n = 0
while True:
	try: open(f"/work/{n}", "w").close(); n += 1
	except OSError: pass'
neighbour "inode fill"
defused
hits inodes
run --inodes 500 -- sh -c 'cd /tmp; i=0; while [ $i -lt 1000 ] && mkdir $i 2>/dev/null; do i=$((i + 1)); done; echo $i'
t_ok "inode fill: folders too, and in /tmp" test "$out" -gt 300 -a "$out" -le 500

# ---- files ----
opened='import os
n = 0
try:
	while True: os.open("/dev/null", os.O_RDONLY); n += 1
except OSError as e: print(n, e.errno)'
run --files 64 -- python3 -c "$opened"
t_is "open files" "$out" "61 24"
run --files 64 -- sh -c 'ulimit -Hn; ulimit -n 65 2>/dev/null || echo fixed'
t_is "open files: the limit cannot be raised" "$out" $'64\nfixed'
t_run "open files: the least there can be is enough for one" 0 --files 16 -- true

# ---- output ----
run --output 100k -- head -c 1000000 /dev/zero
t_is "output flood: the limit passes, no more" "$(wc -c <"$T/out")" 102400
t_like "output flood: and is said" "$status $err" "0 caisson: output limit reached: 897600 bytes dropped"
run --output 1k -- sh -c 'head -c 5000 /dev/zero; echo late'
t_is "output flood: a small limit keeps the beginning" "$(wc -c <"$T/out")" 1024
run --output 1k -- sh -c 'head -c 600 /dev/zero; head -c 600 /dev/zero >&2'
t_ok "output flood: one limit for both streams" test $(($(wc -c <"$T/out") + $(head -c 600 "$T/err" | tr -dc '\0' | wc -c))) -le 1024
bomb --output 1m --timeout 6s -- yes
neighbour "output flood"
defused
hits output
t_json "output flood: all is counted" 'r["bytes"]["stdout"] > 10 << 20 and r["bytes"]["dropped"] > 9 << 20'
# What is passed on is cut only when somebody asks for it, and `enforced` does not say otherwise.
passed=$(bounded "$caisson" run -- head -c 70000000 /dev/zero 2>/dev/null | wc -c)
t_is "output: no limit, no cut" "$passed" 70000000
run --json -- true
t_json "output: and none is claimed" '"output" not in r["enforced"]'

# ---- time ----
SECONDS=0
run --json --wall 1s -- sh -c 'trap "" TERM; while :; do sleep 0.1; done'
t_json "wall: also for one that does not listen" 'r["state"] == "expired" and 1000 <= r["ms"] < 20000'
run --json --idle 4s -- sh -c 'for i in 1 2 3 4; do sleep 1.5; echo $i; done'
t_json "idle: output is life" 'r["state"] == "exited"'
(for _ in 1 2 3 4; do sleep 1.5; echo x; done) | bounded "$caisson" run --json -i --idle 4s -- sh -c 'wc -l >/tmp/n; cat /tmp/n' >"$T/out" 2>/dev/null
t_json "idle: input is life" 'r["state"] == "exited" and r["stdout"] == "4\n"'
run --json --idle 4s -- python3 -c 'import time
t = time.monotonic()
while time.monotonic() - t < 6: pass'
t_json "idle: work is life" 'r["state"] == "exited"'
run --json --idle 500ms -- sh -c 'echo x; sleep 60'
t_json "idle: silence is not" 'r["state"] == "expired" and "idle" in r["reason"]'

t_says "io: there is no device to bound" 125 "unenforceable: io (*); allow with --allow-weaker io" --io 1m -- true
t_run "io: taken when weaker is allowed" 0 --io 1m --allow-weaker io -- true
t_like "io: and said, with the reason of io" "$notice" "caisson: not enforced here: *io*(*device*)"
t_says "disk is at most mem" 125 'limits.disk: "8g" is larger than mem*' --disk 8g -- true
t_done
