#include "launcher/trees.h"

#include <fcntl.h>
#include <linux/openat2.h>

#include "base/fd.h"
#include "os/file.h"

static int has(int tree_fd, const char *name, uint64_t number, struct err *e)
{
	struct stat st;
	int r = os_fstatat(tree_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "look at tree %llu", (unsigned long long)number);
	return r == 0;
}

static int check(int tree_fd, uint64_t number, struct trees_want want, struct err *e)
{
	int is_sealed = has(tree_fd, "sealed", number, e);
	int is_top = is_sealed < 0 ? -1 : has(tree_fd, "w", number, e);

	if (is_top < 0)
		return -1;
	if (is_top && !is_sealed) /* what an overlay writes to is not to be changed below it */
		return err_new(e, ERR_INVALID, "tree %llu is the top of a workspace",
		               (unsigned long long)number);
	if (want.is_writable && is_sealed)
		return err_new(e, ERR_INVALID, "tree %llu is sealed: it can only be read",
		               (unsigned long long)number);
	if (want.is_image && !is_sealed)
		return err_new(e, ERR_INVALID, "tree %llu is not sealed: it is no image yet",
		               (unsigned long long)number);
	return 0;
}

int trees_open(int trees_fd, uint64_t number, struct trees_want want, struct err *e)
{
	const uint64_t how = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
	char name[24];

	snprintf(name, sizeof name, "%llu", (unsigned long long)number);
	AUTO(fd_close) int tree = os_openat2(trees_fd, name, O_PATH | O_DIRECTORY, 0, how);
	AUTO(fd_close)
	int files = tree < 0 ? tree : os_openat2(tree, "d", O_PATH | O_DIRECTORY, 0, how);

	if (files == -ENOENT)
		return err_new(e, ERR_NOT_FOUND, "tree %s does not exist", name);
	if (files < 0)
		return err_sys(e, -files, "open tree %s", name);
	return check(tree, number, want, e) < 0 ? -1 : fd_take(&files);
}
