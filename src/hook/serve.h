/*
 * serve.h - webhooks: what the daemon wants sent, one after the other, and how each ended.
 *
 * A receiver that says 2xx has it. Another one is tried again, a little later each time, and in
 * the end given up. What waits here is bounded by what the daemon says at a time.
 */
#pragma once

#include "base/err.h"

struct serve_opts {
	int launcher_fd, key_fd;
	const char *url, *proxy; /* proxy: or NULL */
};

int serve_run(const struct serve_opts *o, struct err *e) MUST_USE;
