#include "tree/fail.h"

#include <stdarg.h>

/* The first row of a code is the errno that fail() uses for it. */
static const struct {
	int sys;
	enum tree_code code;
} rows[] = {
	{ EINVAL, TREE_INVALID },
	{ ENOENT, TREE_NOT_FOUND },
	{ EEXIST, TREE_EXISTS },
	{ ESTALE, TREE_STALE },
	{ EISDIR, TREE_IS_DIRECTORY },
	{ ENOTDIR, TREE_NOT_DIRECTORY },
	{ EACCES, TREE_PERMISSION_DENIED },
	{ EILSEQ, TREE_NOT_TEXT },
	{ EFBIG, TREE_TOO_LARGE },
	{ ENOMSG, TREE_NO_MATCH },
	{ ENOTUNIQ, TREE_AMBIGUOUS_MATCH },
	{ EDEADLK, TREE_CONFLICT },
	{ EBUSY, TREE_BUSY },
	{ ENOSPC, TREE_QUOTA },
	{ ECANCELED, TREE_EXPIRED },
	{ EIO, TREE_BACKEND_ERROR },
	{ EPERM, TREE_PERMISSION_DENIED },
	{ EROFS, TREE_PERMISSION_DENIED },
	{ ELOOP, TREE_INVALID },
	{ ENAMETOOLONG, TREE_INVALID },
	{ ENXIO, TREE_INVALID }, /* open(2) of a socket */
	{ ENODEV, TREE_INVALID },
	{ EOVERFLOW, TREE_TOO_LARGE },
	{ ENOTEMPTY, TREE_CONFLICT },
	{ EXDEV, TREE_CONFLICT },
	{ EDQUOT, TREE_QUOTA },
	{ ETXTBSY, TREE_BUSY },
	{ EAGAIN, TREE_BUSY },
};

int(fail)(struct err *e, enum tree_code code, const char *fmt, ...)
{
	va_list ap;
	size_t i = 0;

	while (i < COUNT(rows) && rows[i].code != code)
		i++;
	e->kind = code == TREE_NOT_FOUND ? ERR_NOT_FOUND : ERR_INVALID;
	e->sys = i < COUNT(rows) ? rows[i].sys : EIO;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return -1;
}

enum tree_code fail_code(const struct err *e)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].sys == e->sys)
			return rows[i].code;
	}
	return TREE_BACKEND_ERROR;
}
