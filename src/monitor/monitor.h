/*
 * monitor.h - the supervisor of one sandbox.
 *
 * It is the parent of pid 1 and of every command, so exit codes come from its waitpid. In root
 * mode it is an id that means nothing on the host and owns the user namespace: that gives it
 * every right inside and none outside. When it dies everything inside dies. When its client goes
 * away a sandbox that is kept waits for the next one; any other ends.
 */
#pragma once

#include "engine/box.h"

/* In the forked child: takes over control_fd (one end of the channel) and never returns. */
void monitor_main(struct box *box, int control_fd) __attribute__((noreturn));
