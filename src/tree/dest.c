#include "tree/dest.h"

#include <linux/openat2.h>

#include "base/fd.h"
#include "os/file.h"
#include "tree/call.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/remove.h"
#include "tree/sys.h"

#define STRICT (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)
#define COPY_PIECE (8u << 20)

int dest_open(struct dest *d, int parent_fd, struct err *e)
{
	char name[TEMP_NAME];

	*d = (struct dest){ .parent_fd = parent_fd,
		            .root_fd = -1,
		            .dir_fd = -1,
		            .dir = { .max = TREE_WALK_PATH_MAX } };
	temp_name(name);
	int r = os_mkdirat(parent_fd, name, 0700);
	if (r < 0)
		return err_sys(e, -r, "make a directory");
	memcpy(d->temp, name, sizeof d->temp);
	d->root_fd = os_openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	r = d->root_fd < 0 ? d->root_fd : sys_fstat(d->root_fd, &d->root);
	return r < 0 ? err_sys(e, -r, "open a new directory") : 0;
}

static int open_dir(const struct dest *d, const char *path)
{
	return os_openat2(d->root_fd, path, O_RDONLY | O_DIRECTORY, 0, STRICT);
}

/* Makes all directories of a path. 0 or -errno. */
static int make_dirs(const struct dest *d, char *path)
{
	for (char *p = path; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		AUTO(fd_close) int fd = open_dir(d, path);
		int r = fd >= 0 || fd != -ENOENT ? fd : os_mkdirat(d->root_fd, path, 0755);
		*p = '/';
		if (r < 0)
			return r;
	}
	int r = os_mkdirat(d->root_fd, path, 0755);
	return r == -EEXIST ? 0 : r;
}

int dest_parent(struct dest *d, const char *path, const char **name, struct err *e)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	*name = slash ? slash + 1 : path;
	if (n == 0)
		return d->root_fd;
	if (d->dir_fd >= 0 && d->dir.len == n && memcmp(d->dir.data, path, n) == 0)
		return d->dir_fd;
	fd_close(&d->dir_fd);
	str_clear(&d->dir);
	str_addn(&d->dir, path, n);
	int fd = d->dir.overflow ? -ENAMETOOLONG : open_dir(d, d->dir.data);
	if (fd == -ENOENT) {
		int r = make_dirs(d, d->dir.data);

		fd = r < 0 ? r : open_dir(d, d->dir.data);
	}
	if (fd < 0)
		return err_sys(e, -fd, "open %s", str_text(&d->dir));
	d->dir_fd = fd;
	return fd;
}

int dest_mkdir(struct dest *d, const char *path, struct err *e)
{
	const char *name;
	int dir_fd = dest_parent(d, path, &name, e);

	if (dir_fd < 0)
		return -1;
	int r = os_mkdirat(dir_fd, name, 0755);
	if (r == -EEXIST) {
		AUTO(fd_close)
		int fd = os_openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

		r = fd < 0 ? fd : 0;
	}
	return r < 0 ? err_sys(e, -r, "make directory %s", path) : 0;
}

void dest_done(struct dest *d)
{
	struct err e;

	fd_close(&d->dir_fd);
	fd_close(&d->root_fd);
	str_done(&d->dir);
	if (d->temp[0])
		(void)remove_tree(d->parent_fd, d->temp, (struct remove_how){ 0 }, &e);
	d->temp[0] = '\0';
}

int dest_count(struct dest *d, uint64_t bytes, struct err *e)
{
	if (bytes > TREE_STREAM_MAX || d->bytes + bytes > TREE_STREAM_MAX)
		return fail(e, TREE_TOO_LARGE, "more than %llu bytes", TREE_STREAM_MAX);
	d->bytes += bytes;
	return 0;
}

/* Where copy_file_range cannot: other file systems, /proc. */
static ssize_t copy_piece(int from_fd, int to_fd)
{
	ssize_t n = sys_copy_range(from_fd, to_fd, COPY_PIECE);

	if (n > 0)
		return n;
	char buf[32 << 10];
	n = os_read(from_fd, buf, sizeof buf);
	if (n <= 0)
		return n;
	int r = os_write_all(to_fd, buf, (size_t)n);
	return r < 0 ? r : n;
}

int dest_copy(struct dest *d, int from_fd, int to_fd, struct call *call, struct err *e)
{
	for (;;) {
		ssize_t n = copy_piece(from_fd, to_fd);

		if (n < 0)
			return err_sys(e, (int)-n, "copy");
		if (n == 0)
			return 0;
		if (dest_count(d, (uint64_t)n, e) < 0 || call_check(call, e) < 0)
			return -1;
	}
}
