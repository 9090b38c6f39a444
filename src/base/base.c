#include "base/base.h"

#include <unistd.h>

static _Noreturn void out_of_memory(void)
{
	static const char text[] = "caisson: out of memory\n";

	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		_exit(125); /* nobody to tell */
	_exit(125);
}

void *mem_alloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

void *mem_grow(void *p, size_t size)
{
	void *q = realloc(p, size ? size : 1);

	if (!q)
		out_of_memory();
	return q;
}

char *mem_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = mem_alloc(n);

	memcpy(p, s, n);
	return p;
}
