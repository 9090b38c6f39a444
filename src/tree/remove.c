#include "tree/remove.h"

#include "base/fd.h"
#include "os/file.h"
#include "tree/walk.h"

static void count(const struct remove_how *how)
{
	if (how->removed)
		(*how->removed)++;
}

/* An empty directory goes at once; one with entries is entered, and goes when it is left. */
static int remove_entry(struct walk *w, const struct walk_entry *entry, struct err *e)
{
	bool is_dir = entry->type == DT_DIR;
	int r = is_dir ? os_rmdirat(entry->dir_fd, entry->name)
	               : os_unlinkat(entry->dir_fd, entry->name);

	if (is_dir && !entry->is_leave && (r == -ENOTEMPTY || r == -EEXIST))
		return 0;
	walk_skip(w);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "delete %s", entry->path);
	return 1;
}

static int remove_below(int dir_fd, const char *name, struct remove_how how, struct err *e)
{
	AUTO(walk_done) struct walk w = { .fd = -1 };
	struct walk_how all = { .call = how.call,
		                .with_hidden = true,
		                .with_temp = true,
		                .with_git = true,
		                .with_leave = true,
		                .is_strict = true };
	struct walk_entry entry;
	int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd < 0)
		return err_sys(e, -fd, "open %s", name);
	int r = walk_open(&w, fd, all, e);
	while (r >= 0 && (r = walk_next(&w, &entry, e)) > 0) {
		r = remove_entry(&w, &entry, e);
		if (r > 0)
			count(&how);
	}
	return r;
}

int remove_tree(int dir_fd, const char *name, struct remove_how how, struct err *e)
{
	int r = os_unlinkat(dir_fd, name);

	if (r == -EISDIR || r == -EPERM) { /* POSIX says EPERM of a directory */
		r = os_rmdirat(dir_fd, name);
		if (r == -ENOTDIR)
			r = -EPERM;
	}
	if (r == -ENOTEMPTY || r == -EEXIST) {
		if (remove_below(dir_fd, name, how, e) < 0)
			return -1;
		r = os_rmdirat(dir_fd, name);
	}
	if (r < 0)
		return err_sys(e, -r, "delete %s", name);
	count(&how);
	return 0;
}
