/*
 * restore_write.c - one name of the workspace gets what it had.
 *
 * Files are made by the one whose they are to be: an id that the layers do not know cannot make
 * any.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "os/extent.h"
#include "os/file.h"
#include "os/node.h"
#include "vault/blob.h"
#include "vault/restore.h"
#include "vault/xattrs.h"

static struct timespec mtime_of(const struct entry *e)
{
	return (struct timespec){ .tv_sec = e->mtime_s, .tv_nsec = e->mtime_ns };
}

static int set_owner(struct restore *r, int dir_fd, const char *name, const struct entry *e)
{
	return os_fchownat(dir_fd, name, den_id(r->v, e->uid), den_id(r->v, e->gid));
}

/* What is open gets the attributes of `want`; `have` is what it has, or NULL: it is new. */
static int dress(struct restore *r, int fd, const struct entry *have, const struct entry *want,
                 struct err *e)
{
	const struct xattrs_how how = { .id_base = den_id(r->v, 0), .is_view = true };
	bool is_owned = !have || (have->uid == want->uid && have->gid == want->gid);
	int status = is_owned ? 0 : set_owner(r, fd, "", want);

	if (status >= 0 && (!is_owned || (have && have->mode != want->mode)))
		status = os_fchmod(fd, want->mode);
	if (status < 0)
		return err_sys(e, -status, "set mode and owner");
	struct span now = have ? have->xattrs : (struct span){ 0 };
	if (xattrs_same_view(now, want->xattrs))
		return 0;
	return xattrs_write(fd, want->xattrs, how, e);
}

/* A file that is written. */
struct target {
	int dir_fd;
	const char *name;
	bool is_in_top, is_new;
};

static int open_new(struct restore *r, struct target *t, const struct entry *want, struct err *e)
{
	if (den_as(r->v, want->uid, want->gid, e) < 0)
		return -1;
	int fd = os_openat(t->dir_fd, t->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, want->mode);
	den_as_self(r->v);
	t->is_new = true;
	return fd < 0 ? err_sys(e, -fd, "make a file") : fd;
}

/* The inode stays, whoever has it open; not that of a program that runs. With O_TRUNC nothing is
 * copied up first. */
static int open_again(struct restore *r, struct target *t, const struct entry *want, struct err *e)
{
	int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | (t->is_in_top ? 0 : O_TRUNC);
	int fd = os_openat(t->dir_fd, t->name, flags, 0);

	if (fd >= 0)
		return fd;
	int status = os_unlinkat(t->dir_fd, t->name);
	if (status < 0)
		return err_sys(e, -status, "remove a file that cannot be written");
	return open_new(r, t, want, e);
}

/* `old_size`: of what it holds still. */
static int fill(struct blob_source source, int fd, uint64_t old_size, struct err *e)
{
	if (source.size == 0) {
		int status = old_size ? os_ftruncate(fd, 0) : 0;

		return status < 0 ? err_sys(e, -status, "empty a file") : 0;
	}
	return old_size ? blob_copy_over(source, fd, old_size, e) : blob_copy(source, fd, e);
}

static int open_same(const struct target *t, struct err *e)
{
	int fd = os_openat(t->dir_fd, t->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	return fd < 0 ? err_sys(e, -fd, "open a file") : fd;
}

static int write_file(struct restore *r, struct target t, struct node *a, struct node *b,
                      struct err *e)
{
	struct entry have, want;
	int same = t.is_new ? 0 : view_same_content(r->v, a, b, e);
	AUTO(content_done) struct content from = { .fd = -1 };
	bool is_read = !same && b->seen.size > 0;

	if (same < 0 || (!t.is_new && view_read(a, &r->arena, &have, e) < 0))
		return -1;
	if ((is_read ? view_open_read(r->v, b, &r->arena, &from, &want, e)
	             : view_read(b, &r->arena, &want, e)) < 0)
		return -1;
	AUTO(fd_close)
	int fd = same       ? open_same(&t, e)
	         : t.is_new ? open_new(r, &t, &want, e)
	                    : open_again(r, &t, &want, e);
	if (fd < 0)
		return -1;
	const struct blob_source source = { from, b->seen.size, b->top ? b->top->hash : NULL };
	uint64_t old_size = t.is_in_top && !t.is_new ? a->seen.size : 0;
	if (!same && fill(source, fd, old_size, e) < 0)
		return -1;
	if (dress(r, fd, t.is_new ? NULL : &have, &want, e) < 0)
		return -1;
	int status = os_utimens(t.dir_fd, t.name, mtime_of(&want));
	return status < 0 ? err_sys(e, -status, "set a time") : 0;
}

static int make_node(struct restore *r, int dir_fd, const char *name, const struct entry *want,
                     struct err *e)
{
	char target[PATH_MAX];
	int status = -EINVAL;

	if (den_as(r->v, want->uid, want->gid, e) < 0)
		return -1;
	switch (want->type) {
	case ENTRY_DIR:
		status = os_mkdirat(dir_fd, name, want->mode);
		break;
	case ENTRY_LINK:
		snprintf(target, sizeof target, "%.*s", (int)want->target.len, want->target.at);
		status = os_symlinkat(target, dir_fd, name);
		break;
	case ENTRY_FIFO:
		status = os_mknodat(dir_fd, name, S_IFIFO | want->mode, 0);
		break;
	case ENTRY_SOCKET:
		status = os_mknodat(dir_fd, name, S_IFSOCK | want->mode, 0);
		break;
	case ENTRY_FILE:
	case ENTRY_WHITEOUT:
	case ENTRY_TYPES:
		break;
	}
	den_as_self(r->v);
	if (status < 0)
		return err_sys(e, -status, "make it again");
	if (want->type == ENTRY_DIR)
		return 0; /* its attributes come when it is full */
	status = os_utimens(dir_fd, name, mtime_of(want));
	return status < 0 ? err_sys(e, -status, "set a time") : 0;
}

int restore_write(struct restore *r, struct span path, struct node *a, struct node *b,
                  struct err *e)
{
	const char *name;
	struct entry want;
	bool is_file =
	    a->is_there && b->is_there && a->seen.type == ENTRY_FILE && b->seen.type == ENTRY_FILE;

	/* Another name of a file that may not be there yet: restore_links(). */
	if (b->is_there && b->seen.type == ENTRY_FILE && b->seen.target.len > 0)
		return a->is_there && a->seen.type == ENTRY_DIR ? restore_remove(r, path, e) : 0;
	/* A name of more than one stops being that. */
	if (is_file && a->seen.target.len > 0)
		is_file = false;
	if (a->is_there && !is_file) {
		if (restore_remove(r, path, e) < 0)
			return -1;
		a->is_there = false;
	}
	if (!b->is_there)
		return 0;
	int dir = parent_open(&r->parent, path, &name, e);
	if (dir < 0)
		return -1;
	if (b->seen.type == ENTRY_FILE)
		return write_file(r, (struct target){ dir, name, a->top, !a->is_there }, a, b, e);
	return view_read(b, &r->arena, &want, e) < 0 ? -1 : make_node(r, dir, name, &want, e);
}

int restore_attributes(struct restore *r, struct span path, struct node *a, struct node *b,
                       struct err *e)
{
	struct entry have, want;
	bool is_new = !a->is_there || a->seen.type != ENTRY_DIR;
	const char *name = ".";
	int dir = path.len ? parent_open(&r->parent, path, &name, e) : r->v->work_fd;

	if (dir < 0 || view_read(b, &r->arena, &want, e) < 0 ||
	    (!is_new && view_read(a, &r->arena, &have, e) < 0))
		return -1;
	AUTO(fd_close) int fd = os_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open folder %.200s", path.at);
	if (dress(r, fd, is_new ? NULL : &have, &want, e) < 0)
		return err_wrap(e, "%.200s", path.at);
	int status = os_utimens(dir, name, mtime_of(&want));
	return status < 0 ? err_sys(e, -status, "set the time of %.200s", path.at) : 0;
}

/* ---- files with more than one name ------------------------------------------------- */

static int tie(struct restore *r, const struct entry *want, struct err *e)
{
	const char *name, *first_name;
	struct stat st, first;
	int first_dir = parent_open(&r->parent, want->target, &first_name, e);
	AUTO(fd_close) int kept = first_dir < 0 ? -1 : os_openat(first_dir, ".", O_PATH, 0);

	if (kept < 0)
		return first_dir < 0 ? -1 : err_sys(e, -kept, "open a folder");
	int dir = parent_open(&r->parent, want->path, &name, e);
	if (dir < 0)
		return -1;
	int status = os_fstatat(kept, first_name, &first, AT_SYMLINK_NOFOLLOW);
	if (status >= 0 && os_fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) >= 0) {
		if (st.st_ino == first.st_ino)
			return 0;
		status = os_unlinkat(dir, name);
	}
	if (status >= 0)
		status = os_linkat((struct os_names){ kept, first_name, dir, name });
	return status < 0 ? err_sys(e, -status, "link %.200s", want->path.at) : 1;
}

/* The folder was left with its time before it got this name. */
static int reset_folder(struct restore *r, struct span path, struct err *e)
{
	const char *slash = memrchr(path.at, '/', path.len);
	struct span dir = { path.at, slash ? (size_t)(slash - path.at) : 0 };
	const struct entry *want = manifest_find(r->sides->at[1].top, dir);
	int status = want ? os_utimens(r->parent.fd, ".", mtime_of(want)) : 0;

	return status < 0 ? err_sys(e, -status, "set the time of a folder") : 0;
}

int restore_links(struct restore *r, struct err *e)
{
	const struct manifest *to = r->sides->at[1].top;

	for (size_t i = 0; i < to->list.len; i++) {
		const struct entry *want = &to->list.at[i];

		if (want->type != ENTRY_FILE || want->target.len == 0)
			continue;
		int status = tie(r, want, e);
		if (status < 0 || (status > 0 && reset_folder(r, want->path, e) < 0))
			return -1;
	}
	return 0;
}
