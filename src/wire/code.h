/*
 * code.h - the closed list of codes that the API fails with, and the HTTP status of each.
 */
#pragma once

#include "base/base.h"

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

const char *fail_name(enum fail_code code); /* "not_found" */
int fail_status(enum fail_code code);       /* 404 */
