#include "launcher/child.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include "os/caps.h"
#include "os/file.h"
#include "os/proc.h"

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

#define PLACES_MAX 16

int child_place(const int *fds, size_t n)
{
	int above[PLACES_MAX], r = 0;

	/* Above all of these first: one may have another's number. */
	for (size_t i = 0; i < n && r >= 0; i++) {
		above[i] =
		    fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, CHILD_FIRST_FD + (int)n);
		r = fds[i] >= 0 && above[i] < 0 ? -errno : 0;
	}
	for (size_t i = 0; i < n && r >= 0; i++)
		r = above[i] < 0 ? 0 : os_dup3(above[i], CHILD_FIRST_FD + (int)i, 0);
	return r;
}

int child_give_up(bool is_root, uid_t id)
{
	int r = os_reset_signals();

	if (r >= 0)
		r = os_setsid();
	if (r >= 0 && is_root) {
		r = os_caps_bound(0);
		if (r >= 0)
			r = os_drop_groups();
		if (r >= 0)
			r = os_set_ids(id, (gid_t)id);
		if (r >= 0)
			r = os_caps_ambient(0);
		if (r >= 0)
			r = os_caps_set(0, 0, 0);
	}
	return r < 0 ? r : os_prctl(PR_SET_NO_NEW_PRIVS, 1);
}
