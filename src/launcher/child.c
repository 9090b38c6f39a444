#include "launcher/child.h"

#include "os/file.h"

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int child_keep(int *keep, size_t n)
{
	unsigned int next = 0;
	int r = 0;

	qsort(keep, n, sizeof *keep, by_number);
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (keep[i] < 0)
			continue;
		unsigned int fd = (unsigned int)keep[i];

		if (fd > next)
			r = os_close_range(next, fd - 1, 0);
		next = fd >= next ? fd + 1 : next;
	}
	return r < 0 ? r : os_close_range(next, ~0u, 0);
}
