/*
 * tar_out.c - a file or a directory as a tar archive (ustar; pax where that is too small).
 *
 * The order is that of the names, times are whole seconds and owners have no names, so that equal
 * trees give equal archives. What is no file, directory or link is left out.
 */
#include <archive.h>
#include <archive_entry.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/root.h"
#include "tree/sys.h"
#include "tree/verbs.h"
#include "tree/walk.h"
#include "wire/later.h"

struct tar {
	struct call *call;
	struct archive *archive;
	struct err *e;
	uint64_t bytes;
	size_t entries;
};

static void tar_done(struct tar *t)
{
	if (t->archive)
		archive_write_free(t->archive);
	t->archive = NULL;
}

static void entry_free(struct archive_entry **entry)
{
	archive_entry_free(*entry);
}

static la_ssize_t put(struct archive *archive, void *data, const void *bytes, size_t n)
{
	struct tar *t = data;

	if (call_add(t->call, (struct span){ bytes, n }, t->e) == 0)
		return (la_ssize_t)n;
	archive_set_error(archive, EIO, "nobody takes it");
	return -1;
}

static int tar_open(struct tar *t, struct err *e)
{
	t->archive = archive_write_new();
	if (!t->archive)
		abort();
	archive_write_set_format_pax_restricted(t->archive);
	archive_write_set_bytes_per_block(t->archive, TREE_PACKET_MAX / 2);
	archive_write_set_bytes_in_last_block(t->archive, 1);
	if (archive_write_open(t->archive, t, NULL, put, NULL) != ARCHIVE_OK)
		return fail(e, TREE_BACKEND_ERROR, "begin an archive");
	return 0;
}

/* Our own error when call_add() had one, else the library's. */
static int archive_fails(struct tar *t, const char *path)
{
	if (t->e->kind != ERR_NONE)
		return -1;
	return fail(t->e, TREE_BACKEND_ERROR, "%s: %s", path, archive_error_string(t->archive));
}

static int put_bytes(struct tar *t, int fd, const char *path, uint64_t size)
{
	unsigned char *buf = t->call->conn->in;

	for (uint64_t at = 0; at < size;) {
		size_t want = size - at < TREE_PACKET_MAX ? (size_t)(size - at) : TREE_PACKET_MAX;
		ssize_t n = sys_pread(fd, buf, want, at);

		if (n < 0)
			return err_sys(t->e, (int)-n, "read %s", path);
		if (n == 0)
			return fail(t->e, TREE_CONFLICT, "%s shrank during the call", path);
		if (archive_write_data(t->archive, buf, (size_t)n) != n)
			return archive_fails(t, path);
		if (call_check(t->call, t->e) < 0)
			return -1;
		at += (size_t)n;
	}
	return 0;
}

static int set_link(struct tar *t, const struct walk_entry *from, struct archive_entry *entry)
{
	char target[PATH_TEXT_MAX];
	int r = os_readlinkat(from->dir_fd, from->name, target, sizeof target);

	if (r < 0)
		return err_sys(t->e, -r, "read link %s", from->path);
	archive_entry_copy_symlink(entry, target);
	return 0;
}

static int count(struct tar *t, uint64_t bytes, const char *path)
{
	t->bytes += bytes < TREE_STREAM_MAX ? bytes : TREE_STREAM_MAX + 1;
	if (t->bytes > TREE_STREAM_MAX || ++t->entries > TREE_ARCHIVE_ENTRIES_MAX)
		return fail(t->e, TREE_TOO_LARGE, "the archive would be too large at %s", path);
	return 0;
}

static int put_entry(struct tar *t, const struct walk_entry *from)
{
	AUTO(entry_free) struct archive_entry *entry = archive_entry_new();
	bool is_file = from->type == DT_REG;
	struct stat st;
	AUTO(fd_close)
	int fd = is_file ? os_openat(from->dir_fd, from->name,
	                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0)
	                 : -1;

	if (!entry)
		abort();
	if (is_file && fd < 0)
		return err_sys(t->e, -fd, "open %s", from->path);
	int r = is_file ? sys_fstat(fd, &st)
	                : os_fstatat(from->dir_fd, from->name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		return err_sys(t->e, -r, "stat %s", from->path);
	if (IFTODT(st.st_mode) != from->type)
		return fail(t->e, TREE_CONFLICT, "%s changed during the call", from->path);
	if (count(t, is_file ? (uint64_t)st.st_size : 0, from->path) < 0)
		return -1;
	archive_entry_copy_pathname(entry, from->path);
	archive_entry_set_mode(entry, (st.st_mode & S_IFMT) | later_mode(st.st_mode));
	archive_entry_set_size(entry, is_file ? st.st_size : 0);
	archive_entry_set_mtime(entry, st.st_mtim.tv_sec, 0);
	archive_entry_set_uid(entry, st.st_uid);
	archive_entry_set_gid(entry, st.st_gid);
	if (from->type == DT_LNK && set_link(t, from, entry) < 0)
		return -1;
	/* A warning says that a name is not ASCII: it is then stored as bytes, and says so. */
	if (archive_write_header(t->archive, entry) < ARCHIVE_WARN)
		return archive_fails(t, from->path);
	return is_file ? put_bytes(t, fd, from->path, (uint64_t)st.st_size) : 0;
}

static int put_below(struct tar *t, int dir_fd)
{
	AUTO(walk_done) struct walk w = { .fd = -1 };
	const struct walk_how how = {
		.call = t->call, .with_hidden = true, .with_git = true, .is_strict = true
	};
	struct walk_entry entry;
	int r = walk_open(&w, dir_fd, how, t->e);

	while (r >= 0 && (r = walk_next(&w, &entry, t->e)) > 0) {
		if (entry.type == DT_REG || entry.type == DT_DIR || entry.type == DT_LNK)
			r = put_entry(t, &entry);
	}
	return r;
}

static int put_single(struct tar *t, const char *path)
{
	AUTO(place_done) struct place p = { .dir_fd = -1 };

	if (root_place(t->call->conn->root_fd, path, (struct place_how){ .follow = true }, &p,
	               t->e) < 0)
		return -1;
	const struct walk_entry entry = {
		.dir_fd = p.dir_fd, .name = p.name, .path = p.name, .type = DT_REG
	};
	return put_entry(t, &entry);
}

int verb_tar_out(struct call *c, struct err *e)
{
	AUTO(tar_done) struct tar t = { .call = c, .e = e };
	struct stat st;
	AUTO(fd_close) int fd = root_open(c->conn->root_fd, c->path, O_RDONLY, e);

	if (fd < 0)
		return -1;
	*e = (struct err){ 0 };
	int r = sys_fstat(fd, &st);
	if (r < 0)
		return err_sys(e, -r, "stat %s", c->path);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return fail(e, TREE_INVALID, "%s is not a file or directory", c->path);
	c->answer.content = TREE_TAR;
	if (tar_open(&t, e) < 0)
		return -1;
	r = S_ISDIR(st.st_mode) ? put_below(&t, fd_take(&fd)) : put_single(&t, c->path);
	if (r < 0)
		return -1;
	return archive_write_close(t.archive) == ARCHIVE_OK ? 0 : archive_fails(&t, c->path);
}
