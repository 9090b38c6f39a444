#include "tree/remove.h"

#include <stdio.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"
#include "tree/undo.h"
#include "tree/walk.h"

static void count(const struct remove_how *how)
{
	if (how->removed)
		(*how->removed)++;
}

/* Removes level by level from the top, and moves what lies deeper up: each name costs as much as it
 * is deep (TREE_DEPTH_MAX), so that a folder of n levels would cost n * n. */
#define REMOVE_LEVELS 128

struct removal {
	struct remove_how how;
	int top_fd;
	uint64_t num;  /* of the next name that something is moved up to */
	bool is_moved; /* something was, and waits there for another pass */
	bool is_stuck; /* something cannot be: it is removed where it is */
};

static void move_up(struct removal *x, const struct walk_entry *entry)
{
	char name[32];
	int r = -EEXIST;

	while (r == -EEXIST) {
		snprintf(name, sizeof name, TEMP_PREFIX "deep-%llu", (unsigned long long)x->num++);
		r = os_renameat2((struct os_names){ entry->dir_fd, entry->name, x->top_fd, name },
		                 RENAME_NOREPLACE);
	}
	x->is_moved |= r == 0;
	x->is_stuck |= r < 0;
}

/* An empty directory goes at once; one with entries is entered, and goes when it is left. */
static int remove_entry(struct removal *x, struct walk *w, const struct walk_entry *entry,
                        struct err *e)
{
	bool is_dir = entry->type == DT_DIR;
	int r = is_dir ? os_rmdirat(entry->dir_fd, entry->name)
	               : os_unlinkat(entry->dir_fd, entry->name);
	bool is_full = is_dir && (r == -ENOTEMPTY || r == -EEXIST);

	if (is_full && !entry->is_leave && entry->depth < REMOVE_LEVELS)
		return 0;
	if (is_full && !entry->is_leave && !w->how.is_endless) {
		move_up(x, entry);
		return 0;
	}
	if (is_full && (!entry->is_leave || x->is_stuck)) /* what is stuck is in it */
		return 0;
	walk_skip(w);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "delete %s", entry->path);
	return 1;
}

static int remove_pass(struct removal *x, bool is_endless, struct err *e)
{
	AUTO(walk_done) struct walk w = { .fd = -1 };
	struct walk_how all = { .call = x->how.call,
		                .depth = is_endless ? 0 : REMOVE_LEVELS,
		                .with_hidden = true,
		                .with_temp = true,
		                .with_git = true,
		                .with_leave = true,
		                .is_strict = true,
		                .is_endless = is_endless };
	struct walk_entry entry;
	int fd = os_openat(x->top_fd, ".", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return err_sys(e, -fd, "open what is to be deleted");
	x->is_moved = x->is_stuck = false;
	int r = walk_open(&w, fd, all, e);
	while (r >= 0 && (r = walk_next(&w, &entry, e)) > 0) {
		r = remove_entry(x, &w, &entry, e);
		if (r > 0)
			count(&x->how);
	}
	return r;
}

static int remove_below(int dir_fd, const char *name, struct remove_how how, struct err *e)
{
	AUTO(fd_close)
	int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct removal x = { .how = how, .top_fd = fd };
	int r = 0;

	if (fd < 0)
		return err_sys(e, -fd, "open %s", name);
	do
		r = remove_pass(&x, false, e);
	while (r >= 0 && x.is_moved && !x.is_stuck);
	return r >= 0 && x.is_stuck ? remove_pass(&x, true, e) : r;
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
