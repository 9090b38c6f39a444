#!/usr/bin/env bash
# openapi.sh - GET /v1/openapi.json is valid, is what the daemon really answers, and is enough to
# make a client of. The checkers are installed into a folder of the build; what cannot be installed
# (no network) skips its checks and says so.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${CAISSON_BUILD:-$here/../../build}
venv=$build/openapi-venv
wanted=(openapi-spec-validator==0.9.0 jsonschema==4.26.0 openapi-python-client==0.29.1)

install_checkers() {
	local mark="$venv/installed ${wanted[*]}"
	[ -e "$mark" ] && return
	rm -rf "$venv"
	timeout -k 5 30 python3 -m venv "$venv" &&
		timeout -k 5 240 "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 "${wanted[@]}" &&
		touch "$mark"
}

python=python3
if [ -d "$build" ] && install_checkers >"$build/openapi-venv.log" 2>&1; then
	python=$venv/bin/python
fi
exec "$python" "$here/openapi.py"
