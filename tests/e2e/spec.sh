#!/bin/bash
# spec.sh - flags and spec files say the same; what is wrong is refused by name.
. "$(dirname "$0")/lib.sh"

# ---- the one-liner ----
want='{"net":{"mode":"deny"},"fs":[{"kind":"ephemeral","at":"/work"}],"creds":[],"limits":{"cpu":2.0,"mem":4294967296,"pids":512,"wall_ms":600000},"user":"agent"}'
show() { bounded "$caisson" policy show "$@" 2>&1; }
t_is "policy show: flags" "$(show --net deny --fs ephemeral:/work --cpu 2 --mem 4g --pids 512 --wall 10m --json)" "$want"
cat >spec.yaml <<-'END'
	net: deny
	fs: ephemeral:/work
	creds: null
	limits: {cpu: 2, mem: 4g, pids: 512, wall: 10m}
END
t_is "policy show: YAML" "$(show --spec spec.yaml --json)" "$want"
printf '%s' "$want" >spec.json
t_is "policy show: JSON, as it was printed" "$(show --spec spec.json --json)" "$want"
show --spec spec.json >again.yaml
t_is "policy show: YAML, as it was printed" "$(show --spec again.yaml --json)" "$want"
t_like "policy show --resolved adds the defaults" "$(show --spec spec.json --resolved --json)" \
	'*"disk":2147483648,"inodes":262144,*"image":"host","backend":"native","profile":"default","checkpoint":"on"}'

# ---- run takes them ----
mkdir src && echo "of the host" >src/file
cat >run.yaml <<-END
	fs:
	  - overlay:$T/src:/work
	  - {kind: ephemeral, at: /data}
	user: root
	env: {A: b c, B: x}
	limits: {files: 100, pids: 40}
END
what='cat /work/file; ls -d /data; id -u; echo "$A $B"; ulimit -n'
run --spec run.yaml -- sh -c "$what"
t_is "run --spec, YAML" "$out" $'of the host\n/data\n0\nb c x\n100'
show --spec run.yaml --json >run.json
run --spec run.json -- sh -c "$what"
t_is "run --spec, the same in JSON" "$out" $'of the host\n/data\n0\nb c x\n100'
run --spec run.yaml -u 77 --files 90 -e A=z -- sh -c 'id -u; echo "$A $B"; ulimit -n'
t_is "flags win" "$out" $'77\nz x\n90'
run --spec run.yaml --fs ephemeral:/more -- ls -d /work /data /more
t_is "lists grow" "$status" 0
run --spec=run.yaml --user=78 -- id -u
t_is "--flag=value" "$out" 78
printf 'user: 79\n' >second.yaml
run --spec run.yaml --spec second.yaml -- sh -c 'id -u; ulimit -n'
t_is "two files: the later wins, the rest stays" "$out" $'79\n100'
run -e X=1 -e Y='a=b' -e Z= -- sh -c 'echo "$X,$Y,$Z,${Z-unset}"'
t_is "-e may be repeated" "$out" "1,a=b,,"
run --user 5 -- echo --json --user 6
t_is "after -- all is the command's" "$out" "--json --user 6"
run --user 5 echo -n --json
t_is "and after the first word" "$out" "--json"

# ---- refused: key, value, nearest ----
while IFS='|' read -r flags message; do
	# shellcheck disable=SC2086 # words
	t_says "run $flags" 125 "$message" $flags -- true
done <<-'END'
	--net denny|--net: "denny" is not valid; did you mean "deny"?
	--net example.org|--net: "example.org" needs the prefix: "allow:example.org"
	--fs ephemral:/work|*"ephemral" is not valid; did you mean "ephemeral"?
	--fs ephemeral:work|--fs: "work" is relative; write "/work"
	--fs ro:/usr/../etc:/x|*"/usr/../etc"*
	--fs ephemeral:/a --fs ro:/usr:/a|*two mounts at "/a"*
	--fs ro:/usr:/proc|--fs: "/proc" is reserved*
	--fs ro:/usr:/|--fs: "/" is reserved*
	--fs ro:/proc/1:/x|--fs: "/proc/1" cannot be mounted*
	--mem -1|--mem: "-1" is negative
	--mem 9999t|--mem: "9999t" is too large, the most is 1024t
	--mem 1k|--mem: "1k" is too small, the least is 4m
	--mem 4q|--mem: "4q" is not a size*
	--cpu 0|--cpu: "0" is too small*
	--pids 0|--pids: "0" is too small*
	--pids 1.5|--pids: "1.5" is not a whole number
	--wall 400d|--wall: "400d" is too large*
	--files 1|--files: "1" is too small*
	--memory 4g|*--memory*--mem*
	--creds ghp_0123456789abcdef0123456789abcdef0123|--creds: this is a literal secret (not shown)*
	--user a:b:c|--user: "a:b:c" is not a user*
	--image hosst|image: there is no "hosst"; did you mean "host"?
	--image oci:app|--image: "oci:app" is not valid*
	--profile root|--profile: "root" is not valid; did you mean "rootful"?
	--checkpoint maybe|--checkpoint: "maybe" is not valid; valid: on, off, all
	--env FOO|--env: "FOO" has no value; write "FOO=" for an empty one
	--env 1A=b|--env: "1A" is not the name of a variable*
	--allow-weaker memm|--allow-weaker: "memm" is not valid; did you mean "mem"?
	--backend nativ|--backend: "nativ" is not valid; did you mean "native"?
	--backend docker|--backend: "docker" is not valid; valid: native
	--spec /no/such|*/no/such: No such file or directory
END
run --creds ghp_0123456789abcdef0123456789abcdef0123 -- true
t_ok "a secret is not repeated" test "${err#*ghp_}" = "$err"

# Each document and what is said about it. \n as in printf.
while IFS='|' read -r text message; do
	printf "$text" >bad.yaml
	t_says "spec: $text" 125 "bad.yaml: $message" --spec bad.yaml -- true
done <<-'END'
	limits: {memory: 4g}|line 1: limits: unknown key "memory"; did you mean "mem"?
	net: deny\nlimts: {}|line 2: unknown key "limts"; did you mean "limits"?
	net: deny\nnet: allow|line 2: key "net" is given twice
	|the spec is empty; write {} for all defaults
	net: [|*line*
	{"net": "deny",|*
	fs: [{kind: ro, at: /x}]|*src*
	limits: {mem: lots}|*"lots" is not a size*
	env: {A: [1]}|*env*
	user: [root]|*user*
	fs: &a [*a]|*
END

# ---- what another part of the product would have to provide is refused, not ignored ----
while IFS='|' read -r flags message; do
	# shellcheck disable=SC2086 # words
	t_says "unenforceable: $flags" 125 "unenforceable: $message" $flags -- true
done <<-'END'
	--services server|services (*
	--setup make|setup (*
	--io 1m|io (*); allow with --allow-weaker io
END
t_says "a workspace that is not there" 125 "workspace: there is no app" --workspace app --fs workspace:/work -- true
t_says "a workspace without a name" 125 "fs: workspace:AT needs workspace*" --fs workspace:/work -- true
t_says "a secret that is not there" 125 'creds: there is no secret "github"' --creds github --net allow:a.test -- true
run --json --setup make -- true
t_json "as an object" 'r["error"]["code"] == "unenforceable" and r["error"]["message"].startswith("unenforceable: setup (")'

# ---- policy check ----
check() { bounded "$caisson" policy check "$@" 2>&1; echo "$?"; }
t_is "policy check: good" "$(check spec.yaml)" $'spec.yaml: ok\n0'
t_is "policy check --json: good" "$(check --json spec.yaml)" $'{"ok":true}\n0'
printf 'net: denny\n' >bad.yaml
t_is "policy check: bad" "$(check bad.yaml)" $'caisson: bad.yaml: line 1: net: "denny" is not valid; did you mean "deny"?\n1'
bounded "$caisson" policy check --json bad.yaml >out 2>/dev/null
t_json "policy check --json: bad" 'r["ok"] is False and "denny" in r["error"]'
t_like "policy check: bad usage" "$(check)" $'caisson: usage: *\n125'
t_done
