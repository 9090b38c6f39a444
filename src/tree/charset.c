/*
 * charset.c - the archive library gets no character sets.
 *
 * It would ask the C library, which then reads a table of modules from the sandbox's own /usr and
 * may load code that it names. Names are bytes here; the archive library does without when it is
 * told that there is no such thing (docs/decisions, "tree worker").
 */
#include <iconv.h>

#include "base/base.h"

iconv_t iconv_open(const char *to, const char *from)
{
	(void)to;
	(void)from;
	errno = EINVAL;
	return (iconv_t)-1; /* NOLINT: that is how iconv(3) says it */
}

size_t iconv(iconv_t cd, char **in, size_t *in_left, char **out, size_t *out_left)
{
	(void)cd;
	(void)in;
	(void)in_left;
	(void)out;
	(void)out_left;
	errno = EBADF;
	return (size_t)-1;
}

int iconv_close(iconv_t cd)
{
	(void)cd;
	return 0;
}
