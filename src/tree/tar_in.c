/*
 * tar_in.c - a tar archive becomes files.
 *
 * An archive with one entry that we do not take (absolute, `..`, a link that leads out, a device)
 * is refused whole and leaves nothing (unpack.h).
 */
#include <archive.h>
#include <archive_entry.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/sys.h"
#include "tree/tarname.h"
#include "tree/unpack.h"
#include "tree/verbs.h"

struct untar {
	struct unpack in; /* first */
	struct archive *archive;
	size_t entries;
};

static void untar_done(struct untar *u)
{
	if (u->archive)
		archive_read_free(u->archive);
	u->archive = NULL;
}

static la_ssize_t get(struct archive *archive, void *data, const void **bytes)
{
	struct untar *u = data;
	struct span piece = { "", 0 };
	int r = call_body(u->in.call, &piece, u->in.e);

	*bytes = piece.at;
	if (r < 0) {
		archive_set_error(archive, EIO, "the body ended early");
		return -1;
	}
	return r > 0 ? (la_ssize_t)piece.len : 0;
}

static int archive_fails(struct untar *u)
{
	if (u->in.e->kind != ERR_NONE)
		return -1;
	return fail(u->in.e, TREE_INVALID, "the archive: %s", archive_error_string(u->archive));
}

/* What an earlier entry of the same name made, unless it is a directory. */
static int make_room(int dir_fd, const char *name, const char *path, struct err *e)
{
	int r = os_unlinkat(dir_fd, name);

	if (r == -EISDIR || r == -EPERM)
		return fail(e, TREE_INVALID, "%s: twice in the archive", path);
	return r < 0 && r != -ENOENT ? err_sys(e, -r, "unpack %s", path) : 0;
}

static int fill(struct untar *u, int fd, const char *path)
{
	char buf[64 << 10];

	for (;;) {
		la_ssize_t n = archive_read_data(u->archive, buf, sizeof buf);

		if (n < 0)
			return archive_fails(u);
		if (n == 0)
			return 0;
		int r = os_write_all(fd, buf, (size_t)n);
		if (r < 0)
			return err_sys(u->in.e, -r, "write %s", path);
		if (call_check(u->in.call, u->in.e) < 0)
			return -1;
	}
}

static int unpack_file(struct untar *u, struct archive_entry *entry, const char *path)
{
	int64_t size = archive_entry_size(entry);
	const char *name;

	if (size < 0 || dest_count(&u->in.dest, (uint64_t)size, u->in.e) < 0)
		return size < 0 ? fail(u->in.e, TREE_INVALID, "%s: a size below 0", path) : -1;
	int dir_fd = dest_parent(&u->in.dest, path, &name, u->in.e);
	if (dir_fd < 0 || make_room(dir_fd, name, path, u->in.e) < 0)
		return -1;
	AUTO(fd_close)
	int fd = os_openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(u->in.e, -fd, "unpack %s", path);
	if (fill(u, fd, path) < 0)
		return -1;
	int r = os_fchmod(fd, archive_entry_mode(entry) & 0777);
	if (r < 0)
		return err_sys(u->in.e, -r, "set the mode of %s", path);
	/* A time that the file system does not take is no reason to fail. */
	(void)os_utimens(dir_fd, name, (struct timespec){ .tv_sec = archive_entry_mtime(entry) });
	u->in.dest.files++;
	return 0;
}

static int unpack_symlink(struct untar *u, struct archive_entry *entry, const char *path)
{
	const char *target = archive_entry_symlink(entry);
	const char *name;

	if (!target || !tarname_link_stays(path, target))
		return fail(u->in.e, TREE_INVALID, "%s: a link that leads out of the archive",
		            path);
	int dir_fd = dest_parent(&u->in.dest, path, &name, u->in.e);
	if (dir_fd < 0 || make_room(dir_fd, name, path, u->in.e) < 0)
		return -1;
	int r = os_symlinkat(target, dir_fd, name);
	u->in.dest.files++;
	return r < 0 ? err_sys(u->in.e, -r, "make link %s", path) : 0;
}

/* To a regular file that was unpacked before. */
static int unpack_hardlink(struct untar *u, struct archive_entry *entry, const char *path)
{
	char target[PATH_TEXT_MAX];
	const char *name, *old_name;
	struct stat st;
	bool is_top;

	if (!tarname_clean(archive_entry_hardlink(entry), target, &is_top))
		return fail(u->in.e, TREE_INVALID, "%s: a link that leads out of the archive",
		            path);
	int old_fd = dest_parent(&u->in.dest, target, &old_name, u->in.e);
	if (old_fd < 0)
		return -1;
	/* The directory of the other name takes its place in u->in.dest. */
	AUTO(fd_close) int kept = os_openat(old_fd, ".", O_PATH | O_DIRECTORY, 0);
	if (kept < 0 || os_fstatat(kept, old_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return fail(u->in.e, TREE_INVALID, "%s: a link to what is not there", path);
	int dir_fd = dest_parent(&u->in.dest, path, &name, u->in.e);
	if (strcmp(target, path) == 0)
		return 0;
	if (dir_fd < 0 || make_room(dir_fd, name, path, u->in.e) < 0)
		return -1;
	int r = os_linkat((struct os_names){ kept, old_name, dir_fd, name });
	u->in.dest.files++;
	return r < 0 ? err_sys(u->in.e, -r, "make link %s", path) : 0;
}

static int unpack_dir(struct untar *u, struct archive_entry *entry, const char *path)
{
	const char *name;

	if (dest_mkdir(&u->in.dest, path, u->in.e) < 0)
		return -1;
	int dir_fd = dest_parent(&u->in.dest, path, &name, u->in.e);
	if (dir_fd < 0)
		return -1;
	AUTO(fd_close) int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	/* What is below must still find room in it. */
	int r = fd < 0 ? fd : os_fchmod(fd, (archive_entry_mode(entry) & 0777) | 0700);
	return r < 0 ? err_sys(u->in.e, -r, "set the mode of %s", path) : 0;
}

static int unpack(struct untar *u, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	char path[PATH_TEXT_MAX];
	bool is_top;

	if (++u->entries > TREE_ARCHIVE_ENTRIES_MAX)
		return fail(u->in.e, TREE_TOO_LARGE, "more than %d entries",
		            TREE_ARCHIVE_ENTRIES_MAX);
	if (!name || !tarname_clean(name, path, &is_top)) {
		if (name && is_top && archive_entry_filetype(entry) == AE_IFDIR)
			return 0;
		return fail(u->in.e, TREE_INVALID, "\"%s\": a name that is not taken",
		            name ? name : "");
	}
	if (archive_entry_hardlink(entry))
		return unpack_hardlink(u, entry, path);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return unpack_file(u, entry, path);
	case AE_IFLNK:
		return unpack_symlink(u, entry, path);
	case AE_IFDIR:
		return unpack_dir(u, entry, path);
	default:
		return fail(u->in.e, TREE_INVALID, "%s: not a file, directory or link", path);
	}
}

static int unpack_all(struct unpack *in)
{
	struct untar *u = (struct untar *)in;
	struct archive_entry *entry;
	int r;

	u->archive = archive_read_new();
	if (!u->archive)
		abort();
	archive_read_support_format_tar(u->archive);
	if (archive_read_open(u->archive, u, NULL, get, NULL) != ARCHIVE_OK)
		return archive_fails(u);
	/* A warning says that a name is not ASCII; we take its bytes. */
	while ((r = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN) {
		if (unpack(u, entry) < 0 || call_check(u->in.call, u->in.e) < 0)
			return -1;
	}
	return r == ARCHIVE_EOF ? 0 : archive_fails(u);
}

int verb_tar_in(struct call *c, struct err *e)
{
	AUTO(untar_done) struct untar u = { .in = UNPACK(c, e, unpack_all) };

	return unpack_run(&u.in);
}
