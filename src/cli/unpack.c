#include "cli/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/fd.h"
#include "base/limits.h"
#include "wire/later.h"

#define PIECE (64u << 10)

struct unpack {
	struct archive *archive;
	unpack_source *source;
	void *arg;
	int root_fd;
	struct unpacked *done;
	struct err *e;
};

/* ---- names --------------------------------------------------------------------------- */

/* The next part of a path without `.` and empty ones; false at its end. */
static bool next_part(const char **rest, char part[NAME_TEXT_MAX])
{
	for (;;) {
		*rest += strspn(*rest, "/");
		size_t n = strcspn(*rest, "/");

		if (n == 0)
			return false;
		snprintf(part, NAME_TEXT_MAX, "%.*s", (int)(n < NAME_TEXT_MAX ? n : NAME_TEXT_MAX),
		         *rest);
		*rest += n;
		if (n != 1 || part[0] != '.')
			return true;
	}
}

static bool is_up(const char *part)
{
	return strcmp(part, "..") == 0;
}

/* How many folders deep; -1 for a name that leads out, or is too long. */
static int depth_of(const char *name)
{
	char part[NAME_TEXT_MAX];
	int depth = 0;

	if (name[0] == '/' || strlen(name) >= PATH_TEXT_MAX)
		return -1;
	for (; next_part(&name, part); depth++)
		if (is_up(part) || strlen(part) >= NAME_TEXT_MAX - 1)
			return -1;
	return depth;
}

/* `..` only in front, and not more often than the link is deep: behind a name it could be taken
 * from another link's target. */
static bool link_stays(const char *target, int depth)
{
	char part[NAME_TEXT_MAX];
	int up = 0, down = 0;

	if (target[0] == '/' || target[0] == '\0')
		return false;
	while (next_part(&target, part)) {
		if (!is_up(part))
			down++;
		else if (down > 0 || ++up >= depth)
			return false;
	}
	return true;
}

/* ---- making -------------------------------------------------------------------------- */

/* The folder that `name` lies in, made where it is missing; no link is followed. The last part is
 * left in `last`, empty for the top itself. */
static int open_parent(struct unpack *u, const char *name, char last[NAME_TEXT_MAX])
{
	AUTO(fd_close) int at = fcntl(u->root_fd, F_DUPFD_CLOEXEC, 0);
	const char *rest = name;
	char next[NAME_TEXT_MAX];

	last[0] = '\0';
	if (at < 0 || !next_part(&rest, last))
		return at < 0 ? err_sys(u->e, errno, "open the folder") : fd_take(&at);
	while (next_part(&rest, next)) {
		if (mkdirat(at, last, 0777) < 0 && errno != EEXIST)
			return err_sys(u->e, errno, "make %s", name);
		int below = openat(at, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below < 0)
			return err_sys(u->e, errno, "open a folder of %s", name);
		fd_close(&at);
		at = below;
		memcpy(last, next, sizeof next);
	}
	return fd_take(&at);
}

static int library_fails(struct unpack *u)
{
	if (u->e->kind != ERR_NONE)
		return -1;
	return err_new(u->e, ERR_INTERNAL, "the archive: %s", archive_error_string(u->archive));
}

static int fill(struct unpack *u, int fd, const char *name)
{
	static char buf[PIECE];
	la_ssize_t n;

	while ((n = archive_read_data(u->archive, buf, sizeof buf)) > 0) {
		for (la_ssize_t at = 0; at < n;) {
			ssize_t w = write(fd, buf + at, (size_t)(n - at));

			if (w < 0)
				return err_sys(u->e, errno, "write %s", name);
			at += w;
		}
		u->done->bytes += (uint64_t)n;
	}
	return n < 0 ? library_fails(u) : 0;
}

static int make_file(struct unpack *u, int dir_fd, const char *last, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	const struct timespec times[] = { { .tv_nsec = UTIME_OMIT },
		                          { .tv_sec = archive_entry_mtime(entry) } };

	if (unlinkat(dir_fd, last, 0) < 0 && errno != ENOENT)
		return err_sys(u->e, errno, "replace %s", name);
	AUTO(fd_close)
	int fd = openat(dir_fd, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	                later_mode(archive_entry_perm(entry)));
	if (fd < 0)
		return err_sys(u->e, errno, "make %s", name);
	if (fill(u, fd, name) < 0)
		return -1;
	(void)futimens(fd, times); /* a file system without times keeps the file */
	u->done->files++;
	return 0;
}

static int make_folder(struct unpack *u, int dir_fd, const char *last, struct archive_entry *entry)
{
	/* The owner can always go in: the rest of the archive has to. */
	if (mkdirat(dir_fd, last, later_mode(archive_entry_perm(entry)) | 0700) < 0 &&
	    errno != EEXIST)
		return err_sys(u->e, errno, "make %s", archive_entry_pathname(entry));
	return 0;
}

static int make_link(struct unpack *u, int dir_fd, const char *last, struct archive_entry *entry)
{
	const char *target = archive_entry_symlink(entry), *name = archive_entry_pathname(entry);

	if (!target || !link_stays(target, depth_of(name))) {
		u->done->left_out++;
		return 0;
	}
	if (unlinkat(dir_fd, last, 0) < 0 && errno != ENOENT)
		return err_sys(u->e, errno, "replace %s", name);
	return symlinkat(target, dir_fd, last) < 0 ? err_sys(u->e, errno, "make link %s", name) : 0;
}

static int make_entry(struct unpack *u, struct archive_entry *entry)
{
	static const struct {
		mode_t type;
		int (*make)(struct unpack *u, int dir_fd, const char *last,
		            struct archive_entry *entry);
	} kinds[] = { { S_IFREG, make_file }, { S_IFDIR, make_folder }, { S_IFLNK, make_link } };
	const char *name = archive_entry_pathname(entry);
	mode_t type = archive_entry_filetype(entry);
	char last[NAME_TEXT_MAX];
	size_t i = 0;

	if (!name || depth_of(name) < 0)
		return err_new(u->e, ERR_DENIED, "the archive has a name that leads out of it");
	while (i < COUNT(kinds) && kinds[i].type != type)
		i++;
	if (i == COUNT(kinds) || archive_entry_hardlink(entry)) {
		u->done->left_out++;
		return 0;
	}
	AUTO(fd_close) int dir_fd = open_parent(u, name, last);
	if (dir_fd < 0)
		return -1;
	return last[0] ? kinds[i].make(u, dir_fd, last, entry) : 0;
}

/* ---- the archive --------------------------------------------------------------------- */

static la_ssize_t get(struct archive *archive, void *data, const void **bytes)
{
	struct unpack *u = data;
	long n = u->source(u->arg, bytes, u->e);

	if (n < 0)
		archive_set_error(archive, EIO, "it ended early");
	return n;
}

static int make_all(struct unpack *u)
{
	struct archive_entry *entry;
	int r;

	while ((r = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN)
		if (make_entry(u, entry) < 0)
			return -1;
	return r == ARCHIVE_EOF ? 0 : library_fails(u);
}

int unpack_folder(int dir_fd, unpack_source *source, void *arg, struct unpacked *out, struct err *e)
{
	struct unpack u = { .archive = archive_read_new(),
		            .source = source,
		            .arg = arg,
		            .root_fd = dir_fd,
		            .done = out,
		            .e = e };

	*out = (struct unpacked){ 0 };
	*e = (struct err){ 0 };
	archive_read_support_format_tar(u.archive);
	int r = archive_read_open(u.archive, &u, NULL, get, NULL) == ARCHIVE_OK ? make_all(&u)
	                                                                        : library_fails(&u);
	archive_read_free(u.archive);
	return r;
}
