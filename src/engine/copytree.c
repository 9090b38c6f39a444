#include "engine/copytree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/file.h"

#define DEPTH_MAX 8
#define FILE_BYTES_MAX (4L << 20)

static int copy_file(int from_fd, int to_fd, const char *name, const struct stat *st, struct err *e)
{
	if (!(st->st_mode & S_IROTH) || st->st_size > FILE_BYTES_MAX)
		return 0;
	AUTO(fd_close) int in = os_openat(from_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (in < 0)
		return in == -ENOENT ? 0 : err_sys(e, -in, "open %s", name);
	AUTO(freep) char *bytes = mem_alloc((size_t)st->st_size + 1);
	ssize_t n = read(in, bytes, (size_t)st->st_size);
	if (n < 0)
		return err_sys(e, errno, "read %s", name);
	int r = os_make_file(to_fd, name, bytes, (size_t)n, 0644 | (st->st_mode & 0111));
	return r < 0 ? err_sys(e, -r, "write %s", name) : 0;
}

static int copy_link(int from_fd, int to_fd, const char *name, struct err *e)
{
	char text[PATH_MAX];
	int r = os_readlinkat(from_fd, name, text, sizeof text);

	if (r >= 0)
		r = os_symlinkat(text, to_fd, name);
	return r < 0 ? err_sys(e, -r, "copy the link %s", name) : 0;
}

static int copy_entry(int from_fd, int to_fd, const char *name, int depth, struct err *e);

static int copy_dir(int from_fd, int to_fd, const char *name, int depth, struct err *e)
{
	int fd = os_openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int status = os_mkdirat(to_fd, name, 0755);

	if (fd == -EACCES || depth == 0) {
		fd_close(&fd);
		return 0;
	}
	AUTO(fd_close)
	int to = status < 0 && status != -EEXIST
	             ? status
	             : os_openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *dir = fd < 0 || to < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		fd_close(&fd);
		return err_sys(e, to < 0 ? -to : errno, "copy the folder %s", name);
	}
	int r = 0;
	for (struct dirent *d = readdir(dir); d && r == 0; d = readdir(dir))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			r = copy_entry(fd, to, d->d_name, depth - 1, e);
	closedir(dir);
	return r;
}

static int copy_entry(int from_fd, int to_fd, const char *name, int depth, struct err *e)
{
	struct stat st;
	int r = os_fstatat(from_fd, name, &st, AT_SYMLINK_NOFOLLOW);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return err_sys(e, -r, "stat %s", name);
	if (S_ISLNK(st.st_mode))
		return copy_link(from_fd, to_fd, name, e);
	if (S_ISREG(st.st_mode))
		return copy_file(from_fd, to_fd, name, &st, e);
	bool is_public = (st.st_mode & 0005) == 0005;
	return S_ISDIR(st.st_mode) && is_public ? copy_dir(from_fd, to_fd, name, depth, e) : 0;
}

int copytree(int from_fd, int to_fd, const char *name, struct err *e)
{
	return copy_entry(from_fd, to_fd, name, DEPTH_MAX, e);
}

static void remove_children(int fd)
{
	DIR *dir = fdopendir(dup(fd));

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			copytree_remove(fd, d->d_name);
	if (dir)
		closedir(dir);
}

void copytree_remove(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return;
	AUTO(fd_close)
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	remove_children(fd);
	(void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}
