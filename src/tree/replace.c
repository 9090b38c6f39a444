#include "tree/replace.h"

#include <linux/fs.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/blob.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/settle.h"
#include "tree/sys.h"
#include "wire/hash.h"

#define NEW_MODE 0644
#define MODE_BITS 0777

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int check_match(struct replace *r, struct err *e)
{
	AUTO(blob_done) struct blob old = { 0 };
	char hash[TREE_HASH_TEXT];

	if (r->is_new)
		return fail(e, TREE_STALE, "%s does not exist any more", r->how.path);
	AUTO(fd_close)
	int fd = os_openat(r->place.dir_fd, r->place.name,
	                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open %s", r->how.path);
	if (blob_read(&old, fd, &r->old, TREE_WHOLE_MAX, e) < 0)
		return err_wrap(e, "%s", r->how.path);
	hash_of(blob_span(&old), hash);
	if (strcmp(hash, r->how.match) != 0)
		return fail(e, TREE_STALE, "%s has changed: its hash is %s", r->how.path, hash);
	return 0;
}

/* What is there now, and whether it may be replaced. */
static int check_old(struct replace *r, struct err *e)
{
	int s = os_fstatat(r->place.dir_fd, r->place.name, &r->old, AT_SYMLINK_NOFOLLOW);

	if (s < 0 && s != -ENOENT)
		return err_sys(e, -s, "stat %s", r->how.path);
	r->is_new = s == -ENOENT;
	if (!r->is_new && S_ISDIR(r->old.st_mode))
		return fail(e, TREE_IS_DIRECTORY, "%s is a directory", r->how.path);
	if (!r->is_new && !S_ISREG(r->old.st_mode))
		return fail(e, TREE_INVALID, "%s is not a regular file", r->how.path);
	if (!r->is_new && r->how.only_new)
		return fail(e, TREE_EXISTS, "%s exists", r->how.path);
	if (r->how.expect && (r->is_new || !is_same(&r->old, r->how.expect)))
		return fail(e, TREE_STALE, "%s changed during the call", r->how.path);
	return r->how.match && *r->how.match ? check_match(r, e) : 0;
}

int replace_begin(struct replace *r, const struct replace_how *how, struct err *e)
{
	struct place_how where = { .follow = true, .make_parents = true, .undo = how->undo };
	size_t n = strlen(how->path);

	*r = (struct replace){ .how = *how, .place = { .dir_fd = -1 }, .fd = -1 };
	if (n > 0 && how->path[n - 1] == '/')
		return fail(e, TREE_IS_DIRECTORY, "%s names a directory", how->path);
	if (root_place(how->root_fd, how->path, where, &r->place, e) < 0 || check_old(r, e) < 0)
		return -1;
	char name[TEMP_NAME];
	temp_name(name);
	r->fd = os_openat(r->place.dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (r->fd < 0)
		return err_sys(e, -r->fd, "write %s", how->path);
	memcpy(r->temp, name, sizeof r->temp);
	return 0;
}

int replace_add(struct replace *r, struct span bytes, struct err *e)
{
	if (r->bytes + bytes.len > TREE_STREAM_MAX)
		return fail(e, TREE_TOO_LARGE, "%s: more than %llu bytes", r->how.path,
		            TREE_STREAM_MAX);
	int n = os_write_all(r->fd, bytes.at, bytes.len);
	if (n < 0)
		return err_sys(e, -n, "write %s", r->how.path);
	r->bytes += bytes.len;
	return 0;
}

/* The old owner where we may: a worker without rights can only keep its own files its own. */
static int set_mode(struct replace *r, struct err *e)
{
	mode_t mode = r->how.has_mode ? r->how.mode : r->is_new ? NEW_MODE : r->old.st_mode;
	struct stat st;

	if (!r->is_new && sys_fstat(r->fd, &st) == 0 &&
	    (st.st_uid != r->old.st_uid || st.st_gid != r->old.st_gid))
		(void)os_fchown(r->fd, r->old.st_uid, r->old.st_gid);
	int s = os_fchmod(r->fd, mode & MODE_BITS);
	return s < 0 ? err_sys(e, -s, "set the mode of %s", r->how.path) : 0;
}

/* Whoever asked for a version gets that one replaced, or nothing. */
static int check_again(struct replace *r, struct err *e)
{
	struct stat now;

	if (!r->how.expect && !(r->how.match && *r->how.match))
		return 0;
	int s = os_fstatat(r->place.dir_fd, r->place.name, &now, AT_SYMLINK_NOFOLLOW);
	if (s < 0 || !is_same(&now, &r->old))
		return fail(e, TREE_STALE, "%s changed during the call", r->how.path);
	return 0;
}

/* The old file changes names with the new one and goes. 0 when it must be done otherwise: an
 * overlay would first copy the old one up, which only pays for small ones. */
static int exchange(struct replace *r)
{
	const struct os_names names = { r->place.dir_fd, r->temp, r->place.dir_fd, r->place.name };

	if (r->how.undo || r->is_new || r->how.only_new || r->old.st_size > TREE_HASH_WHOLE)
		return 0;
	/* What is open to be written cannot be executed, and this one may be, at once. */
	AUTO(fd_close)
	int fd = os_openat(r->place.dir_fd, r->temp, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (os_renameat2(names, RENAME_EXCHANGE) < 0)
		return 0;
	(void)os_unlinkat(r->place.dir_fd, r->temp); /* the old one; nobody else knows its name */
	if (fd >= 0) /* one that we may not read is the kernel's business */
		settle_later(fd_take(&fd));
	return 1;
}

int replace_end(struct replace *r, struct err *e)
{
	if (set_mode(r, e) < 0 || check_again(r, e) < 0)
		return -1;
	/* A write, not a creation: whatever appeared meanwhile is replaced, unless only_new. */
	if (!exchange(r) &&
	    undo_put(r->how.undo, r->place.dir_fd, r->temp, r->place.name, r->how.only_new, e) < 0)
		return -1;
	r->temp[0] = '\0';
	fd_close(&r->fd); /* before anybody hears that it is there: see above */
	return 0;
}

void replace_done(struct replace *r)
{
	if (r->temp[0])
		(void)os_unlinkat(r->place.dir_fd, r->temp); /* nobody else knows it */
	r->temp[0] = '\0';
	fd_close(&r->fd);
	place_done(&r->place);
}

int replace_whole(const struct replace_how *how, struct span bytes, bool *is_new, struct err *e)
{
	AUTO(replace_done) struct replace r = { .place = { .dir_fd = -1 }, .fd = -1 };

	if (replace_begin(&r, how, e) < 0 || replace_add(&r, bytes, e) < 0 ||
	    replace_end(&r, e) < 0)
		return -1;
	if (is_new)
		*is_new = r.is_new;
	return 0;
}
