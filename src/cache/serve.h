/*
 * serve.h - the package cache as a program: one process, one loop.
 *
 * `launcher_fd` brings streams of who asks about it, `gates_fd` those of the children of the gate
 * (wire/cache.h), `dir_fd` is where all of it lies. The last two outlive it: the next one goes on.
 */
#pragma once

#include "base/err.h"

struct serve_opts {
	int launcher_fd, gates_fd, dir_fd;
	uint64_t max;      /* bytes */
	const char *proxy; /* of the operator's; NULL: none */
};

/* Until the launcher hangs up: 0. */
int serve_run(const struct serve_opts *o, struct err *e) MUST_USE;
