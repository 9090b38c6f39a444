#!/bin/bash
# result.sh - the object that `caisson run --json` prints, field by field.
. "$(dirname "$0")/lib.sh"

run --json -- sh -c 'echo out; echo err >&2; exit 3'
t_is "the exit status is the same with --json" "$status" 3
t_is "and nothing of the command is on stderr" "$err" ""
t_is "one line" "$(wc -l <"$T/out")" 1
t_json "the fields, in this order" '[*r] == """id state exit_code signal reason stdout stderr encoding bytes
	cwd ms usage children violations execs enforced""".split()'
t_json "id" 'r["id"].startswith("px_") and len(r["id"]) > 8'
t_json "exited" 'r["state"] == "exited" and r["exit_code"] == 3 and r["signal"] is None and r["reason"] is None'
t_json "the streams are apart" 'r["stdout"] == "out\n" and r["stderr"] == "err\n" and r["encoding"] == "utf-8"'
t_json "bytes" 'r["bytes"] == {"stdout": 4, "stderr": 4, "dropped": 0}'
t_json "ms and usage are whole numbers" '[*r["usage"]] == ["cpu_ms", "mem_peak", "io"] and
	all(type(v) is int and v >= 0 for v in [r["ms"], *r["usage"].values()])'
t_json "nothing left, nothing violated" 'r["children"] == [] and r["violations"] == []'
t_json "the programs that were started" 'r["execs"] == {"count": 1, "first": ["sh -c echo out; echo err >&2; exit 3"]}'
first=$(cat "$T/out")
run --json -- true
t_ok "an id is new each time" test "${first:0:30}" != "${out:0:30}"

# enforced: a mechanism for every field that has a default, and for each that was named.
always='"net": "netns", "creds": "scrubbed environment", "syscalls": "seccomp", "disk": "tmpfs", "inodes": "tmpfs",
	"files": "rlimit"'
t_json "enforced: what every host can" '{**r["enforced"], '"$always"'} == r["enforced"]'
t_json "enforced: fs" 'r["enforced"]["fs"] in ("mountns, landlock", "mountns")'
if is_root; then
	t_json "enforced: user" 'r["enforced"]["user"] == "userns, own id range"'
else
	t_json "enforced: user" 'r["enforced"]["user"] == "userns, one id"'
fi
for field in cpu:cpu mem:memory pids:pids; do
	limit=${field%:*}
	if has_cgroup "${field#*:}"; then
		t_json "enforced: $limit" 'r["enforced"]["'"$limit"'"].split(",")[0] in ("cgroup1", "cgroup2")'
	elif [ "$limit" = pids ]; then
		t_json "enforced: pids" 'r["enforced"]["pids"] == "rlimit"'
	else
		t_json "enforced: $limit is none" 'r["enforced"]["'"$limit"'"] == "none"'
	fi
done
t_json "enforced: no limit that was not asked for" '{"wall", "idle", "io"}.isdisjoint(r["enforced"])'
run --json --wall 1m --idle 1m --output 1m -- true
t_json "enforced: wall, idle and output" '[r["enforced"][k] for k in ("wall", "idle", "output")] == ["timerfd", "timerfd", "monitor"]'

# A default that the host cannot enforce is said in one line; with --json the object says it.
t_is "no note with --json" "$notice" ""
run -- true
if has_cgroup memory; then
	t_is "nothing to note" "$notice" ""
else
	t_is "one note" "$notice" "caisson: not enforced here: cpu, mem (no cgroup delegation)"
fi

# States.
run --json -- sh -c 'kill -TERM $$'
t_json "signaled" 'r["state"] == "signaled" and r["exit_code"] is None and r["signal"] == 15 and r["reason"] is None'
run --json --timeout 3s -- sh -c 'echo before; exec sleep 60'
t_json "timeout" 'r["state"] == "timeout" and r["exit_code"] is None and r["signal"] == 15 and "timeout" in r["reason"]'
t_json "what was written before is there" 'r["stdout"] == "before\n" and 3000 <= r["ms"] < 60000'
run --json --wall 300ms -- sleep 60
t_json "expired (wall)" 'r["state"] == "expired" and "wall" in r["reason"]'
run --json --idle 300ms -- sleep 60
t_json "expired (idle)" 'r["state"] == "expired" and "idle" in r["reason"]'
if has_cgroup memory; then
	run --json --mem 64m -- python3 -c 'b"x" * (400 << 20)'
	t_json "oom" 'r["state"] == "oom" and r["signal"] == 9 and r["reason"] == "mem limit of 67108864 bytes reached"'
	t_json "oom is a violation" '[(v["kind"], v["target"]) for v in r["violations"]] == [("limit", "mem")]'
	t_json "mem_peak came to the limit" '60 << 20 <= r["usage"]["mem_peak"] <= 64 << 20'
fi
run --json -- python3 -c 'x = bytearray(64 << 20); import time; t = time.process_time()
while time.process_time() - t < 0.4: pass'
t_json "usage: mem_peak" '64 << 20 < r["usage"]["mem_peak"] < 200 << 20'
t_json "usage: cpu_ms" '400 <= r["usage"]["cpu_ms"] <= r["ms"] * 2 + 100'
run --json -w /tmp -- pwd
t_json "cwd, as asked" 'r["cwd"] == "/tmp" and r["stdout"] == "/tmp\n"'
run --json --fs ephemeral:/data -- pwd
t_json "cwd, where the only writable mount is" 'r["cwd"] == "/data" and r["stdout"] == "/data\n"'

# Children that were left running, F3; programs that were started.
# It is left running under its own name, and seen so without another program.
run --json -- bash -c 'sleep 60 & until read -r name </proc/$!/comm && [ "$name" = sleep ]; do :; done; echo done'
t_json "children" '[(c["name"], type(c["pid"])) for c in r["children"]] == [("sleep", int)]'
t_json "execs count programs, not forks" 'r["execs"]["count"] == 2 and r["execs"]["first"][1] == "sleep 60"'
run --json -- sh -c 'for i in $(seq 100); do /bin/true; done'
t_json "execs: all counted, the first kept" 'r["execs"]["count"] == 102 and len(r["execs"]["first"]) == 32'
run --json -- sh -c "/bin/echo $(printf '\377') \"$(printf 'tab\there')\""
t_json "an argument that is no text cannot break the object" 'r["execs"]["count"] == 2'

# Bytes that are no text, F8.
run --json -- printf 'a\377\376'
t_json "invalid UTF-8 is base64" 'r["encoding"] == "base64" and base64.b64decode(r["stdout"]) == b"a\xff\xfe"'
run --json -- sh -c "printf 'a\\000b'; echo text >&2"
t_json "NUL too, and one encoding for both streams" 'r["encoding"] == "base64" and
	base64.b64decode(r["stdout"]) == b"a\0b" and base64.b64decode(r["stderr"]) == b"text\n"'
run --json -- printf 'ä €\360\237\230\200 \\ " \t\001'
t_json "valid UTF-8 is text" 'r["encoding"] == "utf-8" and r["stdout"] == "ä €\U0001F600 \\ \" \t\x01"'
t_ok "and the object is ASCII" env LC_ALL=C grep -q '^[ -~]*$' "$T/out"

# Head and tail of much output, F7.
run --json -- sh -c 'echo FIRST; seq 100000; echo LAST'
t_json "head and tail are kept" 'r["stdout"].startswith("FIRST\n1\n") and r["stdout"].endswith("100000\nLAST\n")'
t_json "bytes counts all" 'r["bytes"]["stdout"] == 588906'
t_json "a notice says how much is missing" '"\n[... %d bytes dropped ...]\n" % r["bytes"]["dropped"] in r["stdout"]'
t_json "inline is bounded" 'len(kept) <= 48 << 10'
t_json "kept + dropped is all" 'len(kept) + r["bytes"]["dropped"] == 588906'
run --json -- python3 -c 'import sys; sys.stdout.buffer.write(b"x" + "€".encode() * 100000)'
t_json "cut between code points" 'r["encoding"] == "utf-8" and set(kept.decode()) == {"x", "€"}'
t_json "kept + dropped is all there too" 'len(kept) + r["bytes"]["dropped"] == 300001'
run --json -- python3 -c 'import sys; sys.stdout.buffer.write(b"a" * 100000 + b"\xff")'
t_json "a last byte that is no text is not lost" 'r["encoding"] == "base64" and kept[-1] == 255'
run --json -- head -c 1000000 /dev/urandom
t_json "much that is no text" 'r["encoding"] == "base64" and len(kept) + r["bytes"]["dropped"] == 1000000'

bounded "$caisson" run --json -- true >/dev/full 2>"$T/err"
t_like "a result that cannot be written is our failure" "$? $(grep -v 'not enforced' "$T/err")" "125 caisson: *No space left*"
t_done
