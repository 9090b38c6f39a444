/*
 * fill.c - a new top that holds what a checkpoint held, made as it lies on disk.
 *
 * Nobody has it mounted yet. A folder `filling` stands in the tree until it is whole: a top that
 * was cut short is begun again.
 */
#include "vault/fill.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/blob.h"
#include "vault/names.h"
#include "vault/parent.h"
#include "vault/points.h"
#include "vault/trees.h"
#include "vault/xattrs.h"

#define MARK "filling"

struct filling {
	const struct vault *v;
	struct parent parent;
};

/* Owner, then mode, which the change of owner may cut; the time last. */
static int dress(const struct filling *f, int dir_fd, const char *name, int fd,
                 const struct entry *want, struct err *e)
{
	bool is_root = f->v->uid == 0;
	int r = is_root ? os_fchownat(dir_fd, name, want->uid, want->gid) : 0;

	if (r >= 0 && want->type != ENTRY_LINK)
		r = fd >= 0 ? os_fchmod(fd, want->mode) : os_fchmodat(dir_fd, name, want->mode);
	if (r < 0)
		return err_sys(e, -r, "set mode and owner");
	if (fd >= 0 && want->xattrs.len > 0 &&
	    xattrs_write(fd, want->xattrs, (struct xattrs_how){ 0 }, e) < 0)
		return -1;
	r = os_utimens(dir_fd, name,
	               (struct timespec){ .tv_sec = want->mtime_s, .tv_nsec = want->mtime_ns });
	return r < 0 ? err_sys(e, -r, "set a time") : 0;
}

static int make_file(struct filling *f, int dir_fd, const char *name, const struct entry *want,
                     struct err *e)
{
	AUTO(fd_close)
	int fd = os_openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(e, -fd, "make a file");
	if (want->size > 0) {
		AUTO(content_done) struct content from = { .fd = -1 };

		if (blob_open(f->v, want->hash, &from, e) < 0 ||
		    blob_copy((struct blob_source){ from, want->size, want->hash }, fd, e) < 0)
			return -1;
	}
	return dress(f, dir_fd, name, fd, want, e);
}

static int make_link(struct filling *f, int dir_fd, const char *name, const struct entry *want,
                     struct err *e)
{
	char text[PATH_MAX];

	snprintf(text, sizeof text, "%.*s", (int)want->target.len, want->target.at);
	int r = os_symlinkat(text, dir_fd, name);
	return r < 0 ? err_sys(e, -r, "make a link") : dress(f, dir_fd, name, -1, want, e);
}

static int make_other(struct filling *f, int dir_fd, const char *name, const struct entry *want,
                      struct err *e)
{
	mode_t type = want->type == ENTRY_WHITEOUT ? S_IFCHR
	              : want->type == ENTRY_FIFO   ? S_IFIFO
	                                           : S_IFSOCK;
	int r = os_mknodat(dir_fd, name, type | 0600, 0); /* device 0:0 is a whiteout */

	if (r < 0)
		return err_sys(e, -r, "make a node");
	return want->type == ENTRY_WHITEOUT ? 0 : dress(f, dir_fd, name, -1, want, e);
}

static int tie(struct filling *f, int dir_fd, const char *name, const struct entry *want,
               struct err *e)
{
	AUTO(parent_done) struct parent first = { .root_fd = f->parent.root_fd, .fd = -1 };
	const char *first_name;
	int other = parent_open(&first, want->target, &first_name, e);

	if (other < 0)
		return -1;
	int r = os_linkat((struct os_names){ other, first_name, dir_fd, name });
	return r < 0 ? err_sys(e, -r, "link a file") : 0;
}

static int make_entry(struct filling *f, const struct entry *want, struct err *e)
{
	const char *name;
	int dir = parent_open(&f->parent, want->path, &name, e);

	if (dir < 0)
		return -1;
	switch (want->type) {
	case ENTRY_DIR: {
		int r = os_mkdirat(dir, name, 0700);
		return r < 0 ? err_sys(e, -r, "make a folder") : 0;
	}
	case ENTRY_FILE:
		return want->target.len ? tie(f, dir, name, want, e)
		                        : make_file(f, dir, name, want, e);
	case ENTRY_LINK:
		return make_link(f, dir, name, want, e);
	case ENTRY_WHITEOUT:
	case ENTRY_FIFO:
	case ENTRY_SOCKET:
		return make_other(f, dir, name, want, e);
	case ENTRY_TYPES:
		break;
	}
	return err_new(e, ERR_INTERNAL, "an entry of no type");
}

/* Folders get their attributes when they are full, the innermost first. */
static int dress_folders(struct filling *f, const struct manifest *m, struct err *e)
{
	for (size_t i = m->list.len; i-- > 0;) {
		const struct entry *want = &m->list.at[i];
		const char *name = ".";

		if (want->type != ENTRY_DIR)
			continue;
		int dir = want->path.len ? parent_open(&f->parent, want->path, &name, e)
		                         : f->parent.root_fd;
		if (dir < 0)
			return -1;
		AUTO(fd_close)
		int fd = os_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd < 0)
			return err_sys(e, -fd, "open a folder of the top");
		if (dress(f, fd, ".", fd, want, e) < 0)
			return -1;
	}
	return 0;
}

int fill_tree(const struct vault *v, int files_fd, const struct manifest *m, struct err *e)
{
	struct filling f = { .v = v, .parent = { .root_fd = files_fd, .fd = -1 } };
	int r = 0;

	for (size_t i = 0; i < m->list.len && r >= 0; i++)
		if (m->list.at[i].path.len > 0)
			r = make_entry(&f, &m->list.at[i], e);
	if (r >= 0)
		r = dress_folders(&f, m, e);
	parent_done(&f.parent);
	return r < 0 ? -1 : 0;
}

static int fill_from(const struct vault *v, const struct fill *f, struct err *e)
{
	AUTO(manifest_done) struct manifest m = { 0 };

	if (points_load(v, f->from, &m, e) < 0)
		return -1;
	if (!trees_same_stack(v, (struct stack_of){ m.layers, m.n_layers },
	                      (struct stack_of){ f->layers, f->n_layers }))
		return err_new(e, ERR_INVALID, "checkpoint %llu lies on other layers",
		               (unsigned long long)f->from);
	AUTO(fd_close) int files = trees_open_files(v, f->top, e);
	return files < 0 ? -1 : fill_tree(v, files, &m, e);
}

/* 1, 0: it is not there. What cannot be said is an error: nothing may be taken for half made. */
static int has(int tree_fd, const char *name, struct err *e)
{
	struct stat st;
	int r = os_fstatat(tree_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "look at a top");
	return r == 0;
}

/* 1: it is whole already. */
static int clear_half_made(const struct vault *v, uint64_t top, struct err *e)
{
	struct err why = { 0 };
	AUTO(fd_close) int tree = trees_open(v, top, &why);

	if (tree < 0 && why.kind == ERR_NOT_FOUND)
		return 0;
	if (tree < 0) {
		*e = why;
		return -1;
	}
	int is_marked = has(tree, MARK, e);
	if (is_marked == 0)
		return has(tree, "w", e);
	return is_marked < 0 || names_remove(tree, "d", e) < 0 ? -1 : 0;
}

int fill_top(const struct vault *v, const struct fill *f, struct err *e)
{
	char name[TREE_NAME_MAX];
	int r = clear_half_made(v, f->top, e);

	if (r != 0)
		return r < 0 ? -1 : 0;
	if (!f->from)
		return trees_make_top(v, f->top, f->layers[0], e) < 0 ? -1 : 1;
	trees_name(f->top, name);
	r = os_mkdirat(trees_root(v, true), name, 0711);
	AUTO(fd_close) int tree = r < 0 && r != -EEXIST ? r : trees_open(v, f->top, e);
	if (tree < 0)
		return r < 0 && r != -EEXIST ? err_sys(e, -r, "make tree %s", name) : -1;
	r = os_mkdirat(tree, MARK, 0700);
	if (r < 0 && r != -EEXIST)
		return err_sys(e, -r, "mark tree %s", name);
	if (trees_make_top(v, f->top, f->layers[0], e) < 0 || fill_from(v, f, e) < 0)
		return -1;
	r = os_rmdirat(tree, MARK);
	return r < 0 ? err_sys(e, -r, "unmark tree %s", name) : 1;
}
