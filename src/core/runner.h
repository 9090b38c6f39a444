/*
 * runner.h - one command in a sandbox that somebody else has: what it says line by line, and how it
 * ended. For what the daemon does in a user's sandbox on his behalf; what is ours alone runs in one
 * of its own (service.h).
 */
#pragma once

#include "core/process.h"

#define RUNNER_LINE_MAX 1024 /* longer ones are cut */
#define RUNNER_OUT_MAX 65536 /* of standard output: what is longer is not kept */

struct runner;

struct runner_end {
	struct fail fail; /* FAIL_NONE: it ran to its end */
	int exit_code;    /* then; 128 + n: signal n */
	const char *out;  /* bytes: hostile */
	size_t out_len;
};

struct runner_ask {
	const char *script, *user, *cwd;
	const struct pair_list *env;
	uint64_t timeout_ms;
	void (*line)(void *arg, bool is_err, const char *text); /* no controls in it; or NULL */
	void (*done)(void *arg,
	             const struct runner_end *end); /* never from within a call to here */
	void *arg;
};

struct runner *runner_start(struct sbx *s, const struct runner_ask *ask, struct fail *f) MUST_USE;
/* Nobody is told any more; it runs on until its sandbox ends. Fine with NULL. */
void runner_cancel(struct runner *r);
