#include "base/base.h"

void *mem_alloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		abort();
	return p;
}

void *mem_grow(void *p, size_t size)
{
	void *q = realloc(p, size ? size : 1);

	if (!q)
		abort();
	return q;
}

char *mem_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = mem_alloc(n);

	memcpy(p, s, n);
	return p;
}
