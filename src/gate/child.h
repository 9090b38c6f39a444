/*
 * child.h - the process that is the network of one sandbox.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

/* Serves until the monitor hangs up: 0. Gives up its rights first; -1 when it could not begin, or
 * was told nonsense. */
int child_run(int monitor_fd, pid_t master, struct err *e) MUST_USE;
