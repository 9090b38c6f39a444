/*
 * nesting.c - what the kernel counts for the user namespace of a sandbox: no namespaces in it, and
 * rootless not all watches of its user.
 */
#include <fcntl.h>

#include "base/fd.h"
#include "engine/build.h"
#include "os/fault.h"
#include "os/file.h"

const char *const nesting_kinds[NESTING_KINDS] = { "user", "pid", "ipc", "uts",
	                                           "time", "mnt", "net", "cgroup" };
#define KINDS_LATER 2 /* the last of them: the first process makes its own before */

static int forbid(const char *const *kinds, size_t n, struct err *e)
{
	if (fault_layer_off("nested"))
		return 0;
	AUTO(fd_close)
	int dir = os_openat(AT_FDCWD, "/proc/sys/user", O_PATH | O_DIRECTORY, 0);

	if (dir < 0)
		return err_sys(e, -dir, "open /proc/sys/user");
	for (size_t i = 0; i < n; i++) {
		char file[32];

		snprintf(file, sizeof file, "max_%s_namespaces", kinds[i]);
		int r = os_write_file(dir, file, "0");
		if (r < 0)
			return err_sys(e, -r, "write %s", file);
	}
	return 0;
}

/* Rootless, what a sandbox watches counts as the caller's, whose other programs need some too: a
 * quarter of what the host gives one user is for each sandbox. In root mode every sandbox counts as
 * a user of its own. Written by the owner of the namespace, nobody inside can raise it. */
int nesting_bound_watches(struct build *b, struct err *e)
{
	static const char *const kinds[] = { "instances", "watches" };

	for (size_t i = 0; i < COUNT(kinds) && !b->box->is_root; i++) {
		char file[64], text[32] = "";

		snprintf(file, sizeof file, "/proc/sys/fs/inotify/max_user_%s", kinds[i]);
		int r = os_read_file(AT_FDCWD, file, text, sizeof text);
		if (r == -ENOENT)
			continue; /* a kernel without inotify */
		unsigned long share = r < 0 ? 0 : strtoul(text, NULL, 10) / 4;
		snprintf(file, sizeof file, "/proc/sys/user/max_inotify_%s", kinds[i]);
		snprintf(text, sizeof text, "%lu", share);
		if (r >= 0)
			r = os_write_file(AT_FDCWD, file, text);
		if (r < 0)
			return err_sys(e, -r, "bound %s", file);
	}
	return 0;
}

/* A detached mount counts as a mount namespace, so this comes after the last mount. */
int nesting_forbid(struct build *b, struct err *e)
{
	(void)b;
	return forbid(nesting_kinds, NESTING_KINDS - KINDS_LATER, e);
}

/* Those that the first process has made. */
int nesting_forbid_others(struct build *b, struct err *e)
{
	(void)b;
	return forbid(nesting_kinds + NESTING_KINDS - KINDS_LATER, KINDS_LATER, e);
}
