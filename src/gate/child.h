/*
 * child.h - the process that is the network of one sandbox.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

struct child_opts {
	int monitor_fd;
	int cache_fd; /* -1: there is no package cache */
	int safe_fd;  /* the way to who opens secrets (gate/safe.h) */
	pid_t master;
};

/* Serves until the monitor hangs up: 0. Gives up its rights first; -1 when it could not begin, or
 * was told nonsense. */
int child_run(const struct child_opts *o, struct err *e) MUST_USE;
