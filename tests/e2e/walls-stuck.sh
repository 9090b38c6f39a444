#!/bin/bash
# walls-stuck.sh - a step that the kernel does not let end is named, and nothing is left of the sandbox.
. "$(dirname "$0")/lib.sh"

test_program=$E2E_BASE/bin/caisson-test
stuck() { # CALL: the first process that makes it never comes back
	CAISSON_STOP_AT=$1 CAISSON_START_MS=700 bounded "$test_program" run -- true >out 2>err
	echo "$?"
}
nobody_left() { ! grep -qsx -e caisson-test /proc/[0-9]*/comm; }

t_is "control: without it the command runs" "$(CAISSON_START_MS=700 bounded "$test_program" run -- echo fine 2>/dev/null)" fine
t_is "pid 1 hangs: our own error" "$(stuck sethostname)" 125
t_ok "the step is named" grep -q "set the host name: pid 1 is still at that after 700 ms" err
t_ok "nothing is left" eventually nobody_left
t_is "later in the walls" "$(stuck pivot_root)" 125
t_ok "that step is named" grep -q "switch the root: pid 1 is still at that after 700 ms" err
t_ok "nothing is left of that either" eventually nobody_left
t_is "the command's process hangs before it executes" "$(stuck landlock_restrict_self)" 125
t_ok "its step is named" grep -q "enter landlock: the command's process is still at that after 700 ms" err
t_ok "and nothing is left" eventually nobody_left

t_done
