/*
 * charset.c - the archive library gets no character sets.
 *
 * It would ask the C library, which then reads a table of modules from the sandbox's own /usr and
 * may load code that it names. Names are bytes here, and the archive library does without when it
 * is told that there is no such thing. These stand in for iconv(3) of the C library, in
 * this program only.
 */
#include "base/base.h"

void *iconv_open(const char *to, const char *from);
size_t iconv(void *cd, char **in, size_t *in_left, char **out, size_t *out_left);
int iconv_close(void *cd);

void *iconv_open(const char *to, const char *from)
{
	(void)to;
	(void)from;
	errno = EINVAL;
	return (void *)(intptr_t)-1;
}

size_t iconv(void *cd, char **in, size_t *in_left, char **out, size_t *out_left)
{
	(void)cd;
	(void)in;
	(void)in_left;
	(void)out;
	(void)out_left;
	errno = EBADF;
	return SIZE_MAX;
}

int iconv_close(void *cd)
{
	(void)cd;
	return 0;
}
