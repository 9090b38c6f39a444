/*
 * err.h - one error value that gathers context on its way up.
 *
 * Fixed size and free of pointers: nothing to release, and a child sends it through a
 * pipe with one atomic write. Fill it once, wrap it where that adds something, print it
 * once at the top. All functions here return -1, so that a caller can return the call.
 */
#pragma once

#include <limits.h>

#include "base/base.h"

enum err_kind {
	ERR_NONE,
	ERR_INVALID,       /* the caller's input is wrong */
	ERR_NOT_FOUND,     /* something named does not exist */
	ERR_DENIED,        /* the caller may not */
	ERR_LIMIT,         /* a ceiling of ours was reached */
	ERR_UNENFORCEABLE, /* a named field has no mechanism on this host */
	ERR_INTERNAL,      /* our own failure, or the kernel's */
};

struct err {
	enum err_kind kind;
	int sys;       /* errno of the failed call, or 0 */
	char msg[504]; /* "outer: inner: cause" */
};
_Static_assert(sizeof(struct err) <= PIPE_BUF, "one atomic pipe write");

int err_new(struct err *e, enum err_kind kind, const char *fmt, ...) PRINTF(3, 4);
int err_sys(struct err *e, int errnum, const char *fmt, ...) PRINTF(3, 4); /* adds strerror */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3);            /* prefixes */

/* Says to compiler and analyzer, in every file, that the answer is -1. */
static inline int err_minus_one(int r)
{
	(void)r;
	return -1;
}
#define err_new(...) err_minus_one(err_new(__VA_ARGS__))
#define err_sys(...) err_minus_one(err_sys(__VA_ARGS__))
#define err_wrap(...) err_minus_one(err_wrap(__VA_ARGS__))

const char *err_kind_name(enum err_kind kind);
