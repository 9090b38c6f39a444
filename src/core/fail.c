#include "core/fail.h"

#include <stdarg.h>

#include "base/advice.h"

/* clang-format off */
static const enum fail_code of_kind[] = {
	[ERR_NONE]          = FAIL_BACKEND_ERROR,
	[ERR_INVALID]       = FAIL_INVALID,
	[ERR_NOT_FOUND]     = FAIL_NOT_FOUND,
	[ERR_DENIED]        = FAIL_PERMISSION_DENIED,
	[ERR_LIMIT]         = FAIL_TOO_LARGE,
	[ERR_UNENFORCEABLE] = FAIL_UNENFORCEABLE,
	[ERR_INTERNAL]      = FAIL_BACKEND_ERROR,
};
/* clang-format on */

int fail_set(struct fail *f, enum fail_code code, const char *fmt, ...)
{
	va_list args;

	f->code = code;
	f->is_retry_safe = false;
	va_start(args, fmt);
	(void)vsnprintf(f->detail, sizeof f->detail, fmt, args);
	va_end(args);
	return -1;
}

int fail_err(struct fail *f, const struct err *e)
{
	return fail_set(f, of_kind[e->kind], "%s", e->msg);
}

int fail_unsent(struct fail *f, const struct err *e)
{
	if (e->kind != ERR_LIMIT)
		return fail_err(f, e);
	return fail_set(f, FAIL_BACKEND_ERROR, "the store is overloaded: %s; try again", e->msg);
}

int fail_unstored(struct fail *f, const char *what, bool is_disk_full)
{
	return fail_set(f, FAIL_BACKEND_ERROR, "%s%s%s", what,
	                is_disk_full ? ": the disk of the state folder is full; " : "",
	                is_disk_full ? advice(ADVICE_DISK_FULL) : "");
}
