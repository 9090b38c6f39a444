#!/bin/bash
# demo.sh - what `make demo` shows is true, and it would say so if it were not.
. "$(dirname "$0")/lib.sh"

SECONDS=0
CAISSON=$caisson bounded "$E2E_BASE/bin/demo" >out 2>err
t_is "every attack was stopped, and the work was done" "$? $(tail -n 1 out)" "0 Every attack was stopped, and the work was done."
t_ok "within the time that it has" test "$SECONDS" -lt "$LIMIT_S"
t_is "nothing is on stderr" "$(cat err)" ""
t_is "plain text when nobody watches" "$(grep -c $'\033' out)" 0
t_ok "at least 12 attacks" test "$(grep -c ' stopped ' out)" -ge 12
t_is "the attacks work where there are no walls" "$(grep -c ' works  *stopped ' out) $(grep -c ' fails ' out)" "8 0"
t_is "the orders of a README are on record" "$(grep -c -e 'look up evil.example.net' -e 'connect 203.0.113.66:80' -e 'connect 169.254.169.254:80' out)" 3
if has_cgroup memory; then
	t_is "all is enforced" "$(grep -c -e 'NOT ENFORCED' -e unenforceable out)" 0
else
	t_is "what is not enforced here is said" "$(grep -c 'NOT ENFORCED' out) $(grep -c ' refused .*unenforceable: mem' out)" "2 1"
fi
t_is "it cleans up" "$(find "$TMPDIR" -maxdepth 1 -name 'caisson-demo*')" ""

CAISSON=$E2E_BASE/bin/caisson-test CAISSON_LAYER_OFF=netns,proof bounded "$E2E_BASE/bin/demo" >out 2>err
t_is "with a hole in a wall it fails" "$? $(grep -c 'loopback .* GOT IN ' out)" "1 1"
CAISSON=/bin/false bounded "$E2E_BASE/bin/demo" >out 2>err
t_is "without a sandbox it fails" "$?" 1
t_done
