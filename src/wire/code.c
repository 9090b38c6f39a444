#include "wire/code.h"

/* clang-format off */
static const struct {
	const char *name;
	int status;
} codes[] = {
	[FAIL_NONE]                = { "none",                200 },
	[FAIL_INVALID]             = { "invalid",             400 },
	[FAIL_UNAUTHORIZED]        = { "unauthorized",        401 },
	[FAIL_FORBIDDEN]           = { "forbidden",           403 },
	[FAIL_NOT_FOUND]           = { "not_found",           404 },
	[FAIL_EXISTS]              = { "exists",              409 },
	[FAIL_STALE]               = { "stale",               412 },
	[FAIL_IS_DIRECTORY]        = { "is_directory",        409 },
	[FAIL_NOT_DIRECTORY]       = { "not_directory",       409 },
	[FAIL_PERMISSION_DENIED]   = { "permission_denied",   403 },
	[FAIL_NOT_TEXT]            = { "not_text",            415 },
	[FAIL_TOO_LARGE]           = { "too_large",           413 },
	[FAIL_NO_MATCH]            = { "no_match",            422 },
	[FAIL_AMBIGUOUS_MATCH]     = { "ambiguous_match",     422 },
	[FAIL_CONFLICT]            = { "conflict",            409 },
	[FAIL_BUSY]                = { "busy",                409 },
	[FAIL_APPROVAL_REQUIRED]   = { "approval_required",   403 },
	[FAIL_DENIED]              = { "denied",              403 },
	[FAIL_UNENFORCEABLE]       = { "unenforceable",       422 },
	[FAIL_QUOTA]               = { "quota",               429 },
	[FAIL_SANDBOX_UNAVAILABLE] = { "sandbox_unavailable", 503 },
	[FAIL_BACKEND_ERROR]       = { "backend_error",       500 },
	[FAIL_REPO_AUTH]           = { "repo_auth",           403 },
	[FAIL_REPO_UNREACHABLE]    = { "repo_unreachable",    502 },
	[FAIL_EXPIRED]             = { "expired",             410 },
};
/* clang-format on */
_Static_assert(COUNT(codes) == FAIL_CODES, "a code has no name");

const char *fail_name(enum fail_code code)
{
	return codes[code].name;
}

int fail_status(enum fail_code code)
{
	return codes[code].status;
}
