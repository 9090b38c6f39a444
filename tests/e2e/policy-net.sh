#!/bin/bash
# policy-net.sh - network rules for people: presets from the clients' own configuration and never from a
# project, the policies of srt and Codex, what a sandbox reached, why, and rules that change.
. "$(dirname "$0")/lib.sh"

mkdir home project none
export HOME=$T/home PIP_CONFIG_FILE=$T/home/pip.conf # the last word of pip, whatever the host has
clean=$PATH
only() { (export PATH=$T/none && bounded_by "$@"); } # without any client to ask
bounded_by() { /usr/bin/timeout --preserve-status -k 5 "$LIMIT_S" "$caisson" "$@" 2>&1; }
allowed() { # PRESET...: the hosts, of clients that are configured but not there
	local flags=() p
	for p in "$@"; do
		flags+=(--net "preset:$p")
	done
	only policy show "${flags[@]}" --resolved --json | /usr/bin/python3 -c 'import json, sys
text = sys.stdin.read()
try:
    print(" ".join(json.loads(text)["net"]["allow"]))
except ValueError:
    print(text, end="")'
}

# ---- presets ----
t_is "pip: nothing is configured and nobody can be asked" "$(allowed pip)" \
	"caisson: preset:pip: no pip.conf names an index, and there is no pip to ask"
printf '[global]\nindex-url = https://u:secret@pip.test/simple\nextra-index-url =\n  https://more.test:8443/\n' >home/pip.conf
t_is "pip: pip.conf" "$(allowed pip)" "pip.test more.test:8443"
t_is "pip: a variable wins" "$(PIP_INDEX_URL=https://env.test/ allowed pip)" "env.test more.test:8443"
printf '[global]\nindex-url = https://10.0.0.1/simple\n' >home/pip.conf
t_like "pip: an address is not a name" "$(allowed pip)" "*preset:pip: a registry is configured by its address; name it with cidr"
printf '[global]\nindex-url = https://pip.test/simple\n' >home/pip.conf

printf 'registry=https://npm.test/\n@acme:registry=https://acme.test/npm/\n//acme.test/npm/:_authToken=secret\n' >home/.npmrc
t_is "npm: .npmrc and its scopes" "$(allowed npm)" "acme.test npm.test"
t_is "npm: a variable wins" "$(NPM_CONFIG_REGISTRY=https://env.test allowed npm)" "acme.test env.test"

mkdir -p home/.cargo/registry/index/cargo.test-0123456789abcdef
printf '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://cargo.test/"\n' >home/.cargo/config.toml
printf '{"dl":"https://files.cargo.test/crates"}' >home/.cargo/registry/index/cargo.test-0123456789abcdef/config.json
t_is "cargo: source replacement, and where its packages lie" "$(allowed cargo)" "cargo.test files.cargo.test"
printf '[source\n' >home/.cargo/config.toml
t_like "cargo: a broken file is named with its line" "$(allowed cargo)" "*config.toml: line 1: *"

mkdir -p home/.config/go
printf 'GOPROXY=https://go.test|https://second.test,direct\nGOSUMDB=sum.test\n' >home/.config/go/env
t_is "go: its env file" "$(allowed go)" "go.test second.test sum.test"
t_is "several presets in one list, each host once" "$(GOPROXY=https://npm.test allowed npm go)" "acme.test npm.test sum.test"

want=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null | sed 's/#.*//' | grep -o 'https\?://[^/ ]*' |
	sed 's,.*://,,' | sort -u)
if [ -n "$want" ]; then
	t_is "apt: the sources of this host" "$(allowed apt | tr ' ' '\n' | sort)" "$want"
else
	t_skip "apt: the sources of this host" "it has none"
fi
t_like "a preset that there is not" "$(only policy show --net preset:pop)" '*did you mean "pip"*'
t_is "without --resolved it stays a name" "$(only policy show --net preset:pip --json | grep -o '"allow":.[^]]*')" '"allow":["preset:pip"'
t_like "sets are the daemon's to know" "$(only policy show --net set:docs --resolved --json)" '*"allow":\["set:docs"\]*'

# ---- never from a project ----
cd project || exit
printf 'registry=https://evil.test/\n' >.npmrc
printf '[global]\nindex-url = https://evil.test/\n' >pip.conf
mkdir -p .cargo bin
printf '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://evil.test/"\n' >.cargo/config.toml
for p in npm go python3 rustc cargo pip; do
	printf '#!/bin/sh\ntouch %s/ran\necho https://evil.test/\necho https://evil.test/\n' "$T" >"bin/$p"
done
chmod +x bin/*
rm -rf ../home/.npmrc ../home/.config ../home/.cargo ../home/pip.conf
evil() { (export PATH=$T/project/bin:./bin:bin: && bounded_by policy show --net "preset:$1" --resolved --json); }
for p in pip npm cargo go; do
	t_like "$p: files and programs of a project are not looked at" "$(evil $p)" "caisson: preset:$p: *"
done
t_ok "and none of them was run" test ! -e "$T/ran"
cd ..
mkdir clients
printf '#!/bin/sh\npwd\n[ "$(pwd)" = / ] && echo https://client.test/ || echo https://evil.test/\n' >clients/npm
printf '#!/bin/sh\necho https://proxy.test,direct\necho off\n' >clients/go
chmod +x clients/*
asked() { (export PATH=$T/clients:/usr/bin:/bin && cd project && npm_config_registry=https://evil.test/ bounded_by policy show --net "preset:$1" --resolved --json) | grep -o '"allow":[^]]*.'; }
t_is "a client of one's own is asked, in /" "$(asked npm)" '"allow":["client.test"]'
t_is "and so is go" "$(asked go)" '"allow":["proxy.test"]'
export PATH=$clean

# ---- policies of others ----
check() { bounded "$caisson" policy check "$@" 2>&1; }
cat >srt.json <<-END
	{"network": {"allowedDomains": ["example.org", "*.example.net"], "deniedDomains": ["x.example.net"], "allowLocalBinding": true},
	 "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": [".", "/srv/cache"], "denyWrite": [".env"]}}
END
check srt.json >srt.yaml
t_is "srt: what it comes to is a spec of ours" "$(check srt.yaml)" "srt.yaml: ok"
t_like "srt: hosts" "$(bounded "$caisson" policy show --spec srt.yaml --json)" \
	'*"allow":\["example.org","\*\*.example.net"\],"deny":\["x.example.net"\]*'
t_like "srt: folders" "$(cat srt.yaml)" "*src: $T*at: /work*src: /srv/cache*"
t_like "srt: what has no equivalent is named" "$(cat srt.yaml)" "*# network.allowLocalBinding: holds by itself*# filesystem.denyWrite: no equivalent*"
t_like "srt: as JSON" "$(check --json srt.json)" '{"ok":true,"format":"srt","spec":{"net":*,"notes":\[*\]}'
printf '{"permissions": {}, "sandbox": {"network": {"allowedDomains": ["a.test"]}}}' >settings.json
t_like "an agent's settings with a sandbox in them" "$(check settings.json)" "*- a.test*"
printf '{"network": {"allowedDomains": ["10.0.0.1"]}}' >bad.json
t_like "srt: what is wrong is said" "$(check bad.json)" '*bad.json: as a spec of ours: net.allow\[0\]: "10.0.0.1" is an address; use cidr'
printf 'model = "x"\nsandbox_mode = "workspace-write"\n[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = ["/srv/a"]\n' >config.toml
t_like "Codex: a sandbox mode" "$(check config.toml)" "*mode: allow*src: $T*at: /work*src: /srv/a*"
printf 'default_permissions = "p"\n[permissions.p.network]\nenabled = true\n[permissions.p.network.domains]\n"**.example.org" = "allow"\n' >config.toml
t_like "Codex: a permission profile" "$(check config.toml)" "*- example.org*- '\*\*.example.org'*"
printf 'a = [1,\n' >config.toml
t_like "Codex: a broken file is named with its line" "$(check config.toml)" "*config.toml: line 2: a value is expected"
printf 'net:\n  allow:\n  - example.org\n  - exa mple\n' >ours.yaml
t_like "ours: the line of what is wrong" "$(check ours.yaml)" '*ours.yaml: line 4: net.allow\[1\]: *'

# ---- mocks ----
mkdir -p mocks
printf 'answers: [{path: /a, body: from the mock}]\n' >mocks/a.yaml
printf 'net: {mock: {a.test: mocks/a.yaml}}\n' >mock.yaml
t_like "the rules file of a mock is read from beside the spec" "$(bounded "$caisson" policy show --spec mock.yaml --json)" \
	'*"mocks":{"mocks/a.yaml":"answers: *"}*'
printf 'answer: []\n' >mocks/bad.yaml
printf 'net: {mock: {a.test: mocks/bad.yaml}}\n' >bad.yaml
t_like "what is wrong in it is named with its line" "$(check bad.yaml)" '*net.mock: mocks/bad.yaml: line 1: unknown key "answer"*'
run --spec mock.yaml -- bash -c 'exec 3<>/dev/tcp/a.test/80; printf "GET /a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n" >&3; tail -n 1 <&3'
t_is "the gate answers from it" "$out" "from the mock"
ln -s /etc/passwd mocks/link
printf 'net: {mock: {a.test: mocks/link}}\n' >mock.yaml
t_like "but not by a link" "$(check mock.yaml)" "*net.mock: open mocks/link: *"

mkdir -p tree/a
printf '{"from": "a file"}\n' >tree/a/b.json
printf '\0\1\2' >tree/a/bytes
printf 'net: {mock: {a.test: tree/}}\n' >mock.yaml
t_like "a folder of files" "$(bounded "$caisson" policy show --spec mock.yaml --json)" \
	'*"mock":{"a.test":"tree"},"mocks":{"tree":"{\\"files\\":{\\"a/b.json\\":\\"eyJmcm9tIjogImEgZmlsZSJ9Cg==\\",\\"a/bytes\\":\\"AAEC\\"}}"}*'
run --spec mock.yaml -- bash -c 'exec 3<>/dev/tcp/a.test/80; printf "GET /a/b.json HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n" >&3; cat <&3'
t_like "the gate answers from it" "$out" "HTTP/1.1 200 OK*Content-Type: application/json*"$'\r\n\r\n''{"from": "a file"}'
head -c 2000000 /dev/zero >tree/large
sb=$(bounded "$caisson" create --spec mock.yaml 2>/dev/null)
t_is "two million bytes come from a sandbox that stays" "$(bounded "$caisson" exec "$sb" -- bash -c 'exec 3<>/dev/tcp/a.test/80; printf "GET /large HTTP/1.0\r\nHost: a.test\r\n\r\n" >&3; tail -c 2000000 <&3 | wc -c')" 2000000
bounded "$caisson" rm "$sb" >/dev/null 2>&1
head -c 200000 /dev/zero >tree/more
t_like "too large" "$(check mock.yaml)" "*net.mock: tree: the files have more than 2097152 bytes"
rm tree/large tree/more
ln -s /etc/passwd tree/link
t_like "a link in it" "$(check mock.yaml)" "*net.mock: tree: link is neither a file nor a folder"
rm tree/link
mkfifo tree/fifo
t_like "a fifo in it" "$(check mock.yaml)" "*net.mock: tree: fifo is neither a file nor a folder"
rm tree/fifo
(cd tree && for i in {1..1000}; do : >"$i"; done)
t_like "too many" "$(check mock.yaml)" "*net.mock: tree: more than 1000 files"

# ---- a sandbox ----
c() { bounded "$caisson" "$@" 2>&1 | grep -v '^caisson: not enforced here: '; return "${PIPESTATUS[0]}"; }
sb=$(c create --net allow:example.org --net allow:'*.wild.test')
if [[ $sb == sb_* ]]; then
	c exec "$sb" -- getent hosts one.test >/dev/null
	c exec "$sb" -- bash -c '(exec 3<>/dev/tcp/192.0.2.1/80) 2>/dev/null; true' >/dev/null
	eventually eval '[ "$(c net "$sb" --json | wc -l)" = 2 ]'
	t_like "net: a table" "$(c net "$sb")" "TIME*DECISION*TARGET*BY*deny*one.test*dns*no_rule*deny*192.0.2.1:80*literal*"
	t_like "net --denied --json: lines" "$(c net "$sb" --denied --json | head -n 1)" '{"seq":*"kind":"lookup"*"name":"one.test"*}'
	t_is "net --name" "$(c net "$sb" --name one.test --json | wc -l)" 1
	t_is "net: of none" "$(c net sb_none)" "caisson: no such sandbox"
	timeout 200 "$caisson" net "$sb" -f >follow 2>&1 &
	follower=$!
	eventually grep -q literal follow
	c exec "$sb" -- getent hosts two.test >/dev/null
	t_ok "net -f: as they come" eventually grep -q two.test follow
	t_is "why: allowed" "$(c why "$sb" example.org)" "example.org:443: allow, by allow: example.org"
	t_is "why: not, and what would" "$(c why "$sb" one.test:80; echo $?)" \
		$'one.test:80: deny (no_rule)\nwould allow it: allow: one.test:80\n1'
	t_is "why: an address" "$(c why "$sb" '[2001:db8::1]:22')" \
		$'2001:db8::1:22: deny (literal)\nwould allow it: cidr: 2001:db8::1/128:22'
	t_like "policy set --allow adds" "$(c policy set "$sb" --allow one.test --deny two.one.test)" "rules * hold; 0 open connections were closed"
	t_is "and it holds" "$(c exec "$sb" -- getent hosts one.test | grep -c 198.18)" 1
	t_like "policy set --net replaces" "$(c policy set "$sb" --net allow:three.test --json)" \
		'{"closed":0,*"net":{"mode":"list","allow":\["three.test"\]}}'
	t_is "and the old ones are gone" "$(c exec "$sb" -- getent hosts one.test)" ""
	t_like "inspect shows them" "$(c inspect "$sb" --json)" '*"allow":\["three.test"\]*'
	t_like "what is wrong changes nothing" "$(c policy set "$sb" --net allow:10.0.0.1; c why "$sb" three.test)" \
		'*is an address; use cidr*three.test:443: allow, by allow: three.test'
	t_like "only net can be changed" "$(c policy set "$sb" --mem 1g)" "*only net can be changed while a sandbox lives"
	t_like "policy set needs something to set" "$(c policy set "$sb")" "*usage: caisson policy set SANDBOX*"
	c rm "$sb" >/dev/null
	wait "$follower"
	t_is "net -f ends with the sandbox" $? 0
	t_is "the records of one that is gone" "$(c net "$sb" --name one.test --json | wc -l)" 1
else
	t_like "a sandbox without a network is told why" "$sb" "caisson: *net*"
fi

t_done
