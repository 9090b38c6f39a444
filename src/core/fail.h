/*
 * fail.h - why a request of the API fails: one code of a closed list, and a sentence.
 *
 * A command's own failure, timeout or denial is no fail: that is a result. Sentences are for the
 * caller: no path, number or name of the host that the caller did not bring along.
 */
#pragma once

#include "base/err.h"
#include "wire/code.h"

struct fail {
	enum fail_code code;
	bool is_retry_safe; /* nothing was done: the same request may be sent again */
	char detail[512];
};

/* All return -1, so that a caller can return the call. */
int fail_set(struct fail *f, enum fail_code code, const char *fmt, ...) PRINTF(3, 4);
int fail_err(struct fail *f, const struct err *e); /* by the kind of our own error value */
/* The store did not take a request: too many wait, or what the error says of this one. */
int fail_unsent(struct fail *f, const struct err *e);
/* The store did not take it; with a full disk the sentence says that, and what to do. */
int fail_unstored(struct fail *f, const char *what, bool is_disk_full);
