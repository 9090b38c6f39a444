/*
 * cgroup_huge.c - no huge pages inside: the memory controller does not count them.
 *
 * One bound of 0 on caisson/ holds for all sandboxes, whatever page sizes there are; nothing is
 * written per sandbox. A kernel without the hugetlb controller, and a user whose service manager
 * does not hand it down, have none: docs/THREATS.md says what that means.
 */
#include <dirent.h>
#include <fcntl.h>

#include "engine/cgroup-internal.h"
#include "os/file.h"

static bool is_bound(const char *name, bool is_v2)
{
	const char *end = is_v2 ? ".max" : ".limit_in_bytes";
	size_t n = strlen(name), m = strlen(end);

	return strncmp(name, "hugetlb.", strlen("hugetlb.")) == 0 && n > m &&
	       strcmp(name + n - m, end) == 0;
}

int cgroup_forbid_huge(const struct cgroup_tree *t)
{
	char path[CGROUP_PATH_MAX];
	int n = 0;

	snprintf(path, sizeof path, "%s/cgroup.subtree_control", t->path);
	if (t->is_v2) /* absent from cgroup.controllers: refused, and no file below has the name */
		(void)os_write_file(AT_FDCWD, path, "+hugetlb");
	snprintf(path, sizeof path, "%s/" CGROUP_BASE, t->path);
	DIR *dir = opendir(path);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		if (is_bound(d->d_name, t->is_v2))
			n += os_write_file(dirfd(dir), d->d_name, "0") >= 0;
	if (dir)
		closedir(dir);
	return n;
}
