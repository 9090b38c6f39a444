#include "cli/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"

#define PIECE (64u << 10)

struct pack {
	struct archive *archive;
	size_t root_len; /* of the folder's own path */
	int fd;
	bool is_failed; /* then the library may end the archive, but nobody gets to see that */
	struct err *e;
};

static void entry_freep(struct archive_entry **entry)
{
	archive_entry_free(*entry);
}

static int library_fails(struct pack *p, const char *path)
{
	return err_new(p->e, ERR_INTERNAL, "%s: %s", path, archive_error_string(p->archive));
}

/* Exactly `size` bytes: the head has said so. */
static int put_bytes(struct pack *p, int fd, const char *path, uint64_t size)
{
	static char buf[PIECE];

	while (size > 0) {
		ssize_t n = read(fd, buf, size < sizeof buf ? (size_t)size : sizeof buf);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(p->e, errno, "read %s", path);
		if (n == 0)
			return err_new(p->e, ERR_INVALID, "%s became shorter while it was read",
			               path);
		if (archive_write_data(p->archive, buf, (size_t)n) != n)
			return library_fails(p, path);
		size -= (uint64_t)n;
	}
	return 0;
}

static int set_target(struct pack *p, const FTSENT *f, struct archive_entry *entry)
{
	char target[PATH_TEXT_MAX];
	ssize_t n = readlink(f->fts_accpath, target, sizeof target - 1);

	if (n < 0)
		return err_sys(p->e, errno, "read link %s", f->fts_path);
	target[n] = '\0';
	archive_entry_copy_symlink(entry, target);
	return 0;
}

static int put_entry(struct pack *p, const FTSENT *f)
{
	AUTO(entry_freep) struct archive_entry *entry = archive_entry_new();
	bool is_file = f->fts_info == FTS_F, is_link = f->fts_info != FTS_D && !is_file;
	AUTO(fd_close)
	int fd =
	    is_file ? open(f->fts_accpath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	struct stat st = *f->fts_statp;

	if (is_file && (fd < 0 || fstat(fd, &st) < 0))
		return err_sys(p->e, errno, "open %s", f->fts_path);
	archive_entry_copy_pathname(entry, f->fts_path + p->root_len + 1);
	archive_entry_set_mode(entry, st.st_mode & (S_IFMT | 0777));
	archive_entry_set_size(entry, is_file ? st.st_size : 0);
	archive_entry_set_mtime(entry, st.st_mtim.tv_sec, 0);
	if (is_link && set_target(p, f, entry) < 0)
		return -1;
	/* A warning says that a name is not ASCII: it is then stored as bytes. */
	if (archive_write_header(p->archive, entry) < ARCHIVE_WARN)
		return library_fails(p, f->fts_path);
	return is_file ? put_bytes(p, fd, f->fts_path, (uint64_t)st.st_size) : 0;
}

static int put_one(struct pack *p, const FTSENT *f)
{
	switch (f->fts_info) {
	case FTS_D:
	case FTS_F:
	case FTS_SL:
	case FTS_SLNONE:
		return f->fts_level == FTS_ROOTLEVEL ? 0 : put_entry(p, f);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return err_sys(p->e, f->fts_errno, "read %s", f->fts_path);
	default:
		return 0; /* the way back from a folder, or no file at all */
	}
}

static int put_tree(struct pack *p, const char *path)
{
	char root[PATH_TEXT_MAX];
	int n = snprintf(root, sizeof root, "%s", path);
	char *const roots[] = { root, NULL };
	FTSENT *f;
	int r = 0;

	while (n > 1 && root[n - 1] == '/')
		root[--n] = '\0';
	p->root_len = strcmp(root, "/") == 0 ? 0 : (size_t)n;
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	if (!tree)
		return err_sys(p->e, errno, "read %s", path);
	errno = 0;
	while (r == 0 && (f = fts_read(tree)))
		r = put_one(p, f);
	if (r == 0 && errno != 0)
		r = err_sys(p->e, errno, "read %s", path);
	fts_close(tree);
	return r;
}

static la_ssize_t put(struct archive *archive, void *data, const void *bytes, size_t n)
{
	const struct pack *p = data;
	ssize_t w = (ssize_t)n;

	if (!p->is_failed)
		do
			w = write(p->fd, bytes, n);
		while (w < 0 && errno == EINTR);
	if (w < 0)
		archive_set_error(archive, errno, "write the archive: %s", strerror(errno));
	return w;
}

static int put_file(struct pack *p, int dir_fd, const char *name)
{
	AUTO(entry_freep) struct archive_entry *entry = archive_entry_new();
	AUTO(fd_close)
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(p->e, errno, "open %s", name);
	if (!S_ISREG(st.st_mode))
		return err_new(p->e, ERR_INVALID, "%s is not a file", name);
	archive_entry_copy_pathname(entry, name);
	archive_entry_set_mode(entry, S_IFREG | 0644);
	archive_entry_set_size(entry, st.st_size);
	if (archive_write_header(p->archive, entry) < ARCHIVE_WARN)
		return library_fails(p, name);
	return put_bytes(p, fd, name, (uint64_t)st.st_size);
}

static int put_files(struct pack *p, const char *path, const char *const *names)
{
	AUTO(fd_close) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? err_sys(p->e, errno, "open %s", path) : 0;

	for (; r == 0 && *names; names++)
		r = put_file(p, dir, *names);
	return r;
}

/* `names` NULL: all. */
static int pack_some(const char *path, const char *const *names, int fd, struct err *e)
{
	struct pack p = { .archive = archive_write_new(), .fd = fd, .e = e };

	archive_write_set_format_pax_restricted(p.archive);
	archive_write_set_bytes_per_block(p.archive, PIECE);
	archive_write_set_bytes_in_last_block(p.archive, 1);
	int r = archive_write_open(p.archive, &p, NULL, put, NULL) == ARCHIVE_OK
	            ? 0
	            : library_fails(&p, path);
	if (r == 0)
		r = names ? put_files(&p, path, names) : put_tree(&p, path);
	if (r == 0 && archive_write_close(p.archive) != ARCHIVE_OK)
		r = library_fails(&p, path);
	p.is_failed = r < 0;
	archive_write_free(p.archive);
	return r;
}

int pack_folder(const char *path, int fd, struct err *e)
{
	return pack_some(path, NULL, fd, e);
}

int pack_files(const char *path, const char *const *names, int fd, struct err *e)
{
	return pack_some(path, names, fd, e);
}
