#include "wire/connect.h"

/* clang-format off */
static const struct {
	const char *name;
	int status;
} codes[] = {
	[CONNECT_UNKNOWN]             = { "unknown",             500 },
	[CONNECT_INVALID_ARGUMENT]    = { "invalid_argument",    400 },
	[CONNECT_DEADLINE_EXCEEDED]   = { "deadline_exceeded",   504 },
	[CONNECT_NOT_FOUND]           = { "not_found",           404 },
	[CONNECT_ALREADY_EXISTS]      = { "already_exists",      409 },
	[CONNECT_PERMISSION_DENIED]   = { "permission_denied",   403 },
	[CONNECT_RESOURCE_EXHAUSTED]  = { "resource_exhausted",  429 },
	[CONNECT_FAILED_PRECONDITION] = { "failed_precondition", 400 },
	[CONNECT_UNIMPLEMENTED]       = { "unimplemented",       501 },
	[CONNECT_INTERNAL]            = { "internal",            500 },
	[CONNECT_UNAVAILABLE]         = { "unavailable",         503 },
	[CONNECT_UNAUTHENTICATED]     = { "unauthenticated",     401 },
};
/* clang-format on */
_Static_assert(COUNT(codes) == CONNECT_CODES, "a code has no name");

const char *connect_name(enum connect_code code)
{
	return codes[code].name;
}

int connect_status(enum connect_code code)
{
	return codes[code].status;
}

/* clang-format off */
static const enum connect_code of_fail[] = {
	[FAIL_NONE]                = CONNECT_UNKNOWN,
	[FAIL_INVALID]             = CONNECT_INVALID_ARGUMENT,
	[FAIL_UNAUTHORIZED]        = CONNECT_UNAUTHENTICATED,
	[FAIL_FORBIDDEN]           = CONNECT_PERMISSION_DENIED,
	[FAIL_NOT_FOUND]           = CONNECT_NOT_FOUND,
	[FAIL_EXISTS]              = CONNECT_ALREADY_EXISTS,
	[FAIL_STALE]               = CONNECT_FAILED_PRECONDITION,
	[FAIL_IS_DIRECTORY]        = CONNECT_INVALID_ARGUMENT,
	[FAIL_NOT_DIRECTORY]       = CONNECT_INVALID_ARGUMENT,
	[FAIL_PERMISSION_DENIED]   = CONNECT_PERMISSION_DENIED,
	[FAIL_NOT_TEXT]            = CONNECT_INVALID_ARGUMENT,
	[FAIL_TOO_LARGE]           = CONNECT_RESOURCE_EXHAUSTED,
	[FAIL_NO_MATCH]            = CONNECT_FAILED_PRECONDITION,
	[FAIL_AMBIGUOUS_MATCH]     = CONNECT_FAILED_PRECONDITION,
	[FAIL_CONFLICT]            = CONNECT_FAILED_PRECONDITION,
	[FAIL_BUSY]                = CONNECT_UNAVAILABLE,
	[FAIL_APPROVAL_REQUIRED]   = CONNECT_PERMISSION_DENIED,
	[FAIL_DENIED]              = CONNECT_PERMISSION_DENIED,
	[FAIL_UNENFORCEABLE]       = CONNECT_UNIMPLEMENTED,
	[FAIL_QUOTA]               = CONNECT_RESOURCE_EXHAUSTED,
	[FAIL_SANDBOX_UNAVAILABLE] = CONNECT_UNAVAILABLE,
	[FAIL_BACKEND_ERROR]       = CONNECT_INTERNAL,
	[FAIL_REPO_AUTH]           = CONNECT_PERMISSION_DENIED,
	[FAIL_REPO_UNREACHABLE]    = CONNECT_UNAVAILABLE,
	[FAIL_EXPIRED]             = CONNECT_DEADLINE_EXCEEDED,
};
/* clang-format on */
_Static_assert(COUNT(of_fail) == FAIL_CODES, "a code of ours is none of theirs");

enum connect_code connect_of(enum fail_code code)
{
	return of_fail[code];
}

bool connect_message(struct span body, struct span *out)
{
	const unsigned char *b = (const unsigned char *)body.at;

	if (body.len < CONNECT_HEAD || b[0] != 0)
		return false;
	size_t n = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];

	if (n != body.len - CONNECT_HEAD)
		return false;
	*out = span_after(body, CONNECT_HEAD);
	return true;
}

void connect_print(struct str *out, unsigned int flags, struct span message)
{
	const unsigned char head[CONNECT_HEAD] = { (unsigned char)flags,
		                                   (unsigned char)(message.len >> 24),
		                                   (unsigned char)(message.len >> 16),
		                                   (unsigned char)(message.len >> 8),
		                                   (unsigned char)message.len };

	str_addn(out, head, sizeof head);
	str_addn(out, message.at, message.len);
}
