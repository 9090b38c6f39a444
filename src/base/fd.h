/*
 * fd.h - who owns a descriptor.
 *
 * -1 owns nothing. A parameter named fd is borrowed; fd_take() hands over, visibly.
 */
#pragma once

#include <unistd.h>

#include "base/base.h"

/* Also the AUTO() function; keeps errno. */
static inline void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

static inline int fd_take(int *fd)
{
	int owned = *fd;

	*fd = -1;
	return owned;
}
