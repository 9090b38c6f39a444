#include "base/err.h"

#include <stdarg.h>

static const char *const kind_names[] = {
	[ERR_NONE] = "none",
	[ERR_INVALID] = "invalid",
	[ERR_NOT_FOUND] = "not_found",
	[ERR_DENIED] = "denied",
	[ERR_LIMIT] = "too_large",
	[ERR_UNENFORCEABLE] = "unenforceable",
	[ERR_INTERNAL] = "backend_error",
};
_Static_assert(COUNT(kind_names) == ERR_INTERNAL + 1, "a kind has no name");

const char *err_kind_name(enum err_kind kind)
{
	return kind_names[kind];
}

int(err_new)(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	e->kind = kind;
	e->sys = 0;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return -1;
}

int(err_sys)(struct err *e, int errnum, const char *fmt, ...)
{
	va_list ap;

	e->kind = errnum == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL;
	e->sys = errnum;
	va_start(ap, fmt);
	int n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof e->msg)
		snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", strerror(errnum));
	return -1;
}

int(err_wrap)(struct err *e, const char *fmt, ...)
{
	char outer[sizeof e->msg];
	char inner[sizeof e->msg];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(outer, sizeof outer, fmt, ap);
	va_end(ap);
	memcpy(inner, e->msg, sizeof inner);
	snprintf(e->msg, sizeof e->msg, "%s: %s", outer, inner);
	return -1;
}
