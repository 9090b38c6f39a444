/*
 * fail.h - why a request of the API fails: one code of a closed list, and a sentence.
 *
 * A command's own failure, timeout or denial is no fail: that is a result. Sentences are for the
 * caller: no path, number or name of the host that the caller did not bring along.
 */
#pragma once

#include "base/err.h"

/* clang-format off */
enum fail_code {
	FAIL_NONE,
	FAIL_INVALID, FAIL_UNAUTHORIZED, FAIL_FORBIDDEN, FAIL_NOT_FOUND, FAIL_EXISTS, FAIL_STALE,
	FAIL_IS_DIRECTORY, FAIL_NOT_DIRECTORY, FAIL_PERMISSION_DENIED, FAIL_NOT_TEXT, FAIL_TOO_LARGE,
	FAIL_NO_MATCH, FAIL_AMBIGUOUS_MATCH, FAIL_CONFLICT, FAIL_BUSY, FAIL_APPROVAL_REQUIRED,
	FAIL_DENIED, FAIL_UNENFORCEABLE, FAIL_QUOTA, FAIL_SANDBOX_UNAVAILABLE, FAIL_BACKEND_ERROR,
	FAIL_REPO_AUTH, FAIL_REPO_UNREACHABLE, FAIL_EXPIRED,
	FAIL_CODES
};
/* clang-format on */

struct fail {
	enum fail_code code;
	bool is_retry_safe; /* nothing was done: the same request may be sent again */
	char detail[512];
};

const char *fail_name(enum fail_code code); /* "not_found" */
int fail_status(enum fail_code code);       /* 404 */

/* All return -1, so that a caller can return the call. */
int fail_set(struct fail *f, enum fail_code code, const char *fmt, ...) PRINTF(3, 4);
int fail_err(struct fail *f, const struct err *e); /* by the kind of our own error value */
