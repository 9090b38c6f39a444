#include "tree/root.h"

#include <linux/openat2.h>

#include "base/fd.h"
#include "base/limits.h"
#include "os/file.h"
#include "tree/fail.h"
#include "tree/limits.h"
#include "tree/sys.h"

#define AGAIN_MAX 64 /* renames elsewhere make openat2 give up when it meets `..` */

void place_done(struct place *p)
{
	fd_close(&p->dir_fd);
}

/* Value or -errno. */
static int resolve(int root_fd, const char *path, int flags)
{
	int r = -EAGAIN;

	if (!(flags & O_PATH)) /* which openat2 lets stand beside few others */
		flags |= O_NONBLOCK | O_NOCTTY;
	for (int i = 0; i < AGAIN_MAX && (r == -EAGAIN || r == -EINTR); i++)
		r = os_openat2(root_fd, *path ? path : ".", flags, 0,
		               RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	return r;
}

int root_open(int root_fd, const char *path, int flags, struct err *e)
{
	int fd = resolve(root_fd, path, flags);

	if (fd < 0)
		return err_sys(e, -fd, "open %s", path);
	return fd;
}

int root_open_dir(int root_fd, const char *path, struct err *e)
{
	return root_open(root_fd, path, O_RDONLY | O_DIRECTORY, e);
}

int root_open_file(int root_fd, const char *path, struct stat *st, struct err *e)
{
	AUTO(fd_close) int fd = root_open(root_fd, path, O_RDONLY, e);

	if (fd < 0)
		return -1;
	int r = sys_fstat(fd, st);
	if (r < 0)
		return err_sys(e, -r, "stat %s", path);
	if (S_ISDIR(st->st_mode))
		return fail(e, TREE_IS_DIRECTORY, "%s is a directory", path);
	if (!S_ISREG(st->st_mode))
		return fail(e, TREE_INVALID, "%s is not a regular file", path);
	return fd_take(&fd);
}

int root_join(const char *base, const char *name, char out[PATH_TEXT_MAX], struct err *e)
{
	int n = name[0] == '/' || !*base ? snprintf(out, PATH_TEXT_MAX, "%s", name)
	                                 : snprintf(out, PATH_TEXT_MAX, "%s/%s", base, name);

	if (n >= PATH_TEXT_MAX)
		return fail(e, TREE_INVALID, "a path of %d bytes", n);
	return 0;
}

/* Splits at the last name. `dir` is "" when there is no directory in the path. */
static int split(const char *path, char dir[PATH_TEXT_MAX], char name[NAME_MAX + 1], struct err *e)
{
	size_t end = strlen(path);

	while (end > 0 && path[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	size_t n = end - start;
	if (n > NAME_MAX)
		return fail(e, TREE_INVALID, "a name of %zu bytes", n);
	memcpy(name, path + start, n);
	name[n] = '\0';
	if (n == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return fail(e, TREE_INVALID, "\"%s\" names no entry of a directory", path);
	memcpy(dir, path, start);
	dir[start] = '\0';
	return 0;
}

/* One directory of the path: opens it below the one before, or makes it there. */
static int step(int root_fd, const char *prefix, int before_fd, struct undo *undo, struct err *e)
{
	char dir[PATH_TEXT_MAX], name[NAME_MAX + 1];
	int fd = resolve(root_fd, prefix, O_PATH | O_DIRECTORY);

	if (fd != -ENOENT)
		return fd < 0 ? err_sys(e, -fd, "open %s", prefix) : fd;
	if (split(prefix, dir, name, e) < 0)
		return -1;
	int r = os_mkdirat(before_fd, name, 0755);
	if (r < 0 && r != -EEXIST)
		return err_sys(e, -r, "make directory %s", prefix);
	if (r == 0 && undo && undo_made_dir(undo, before_fd, name, e) < 0)
		return -1;
	return root_open(root_fd, prefix, O_PATH | O_DIRECTORY, e);
}

static int make_parents(int root_fd, const char *dir, struct undo *undo, struct err *e)
{
	AUTO(fd_close) int fd = root_open(root_fd, "", O_PATH | O_DIRECTORY, e);
	char prefix[PATH_TEXT_MAX];

	for (size_t i = 0; fd >= 0 && dir[i]; i++) {
		if (dir[i] == '/' || (dir[i + 1] != '/' && dir[i + 1]))
			continue;
		memcpy(prefix, dir, i + 1);
		prefix[i + 1] = '\0';
		int next = step(root_fd, prefix, fd, undo, e);
		fd_close(&fd);
		fd = next;
	}
	return fd_take(&fd);
}

static int open_parent(int root_fd, const char *dir, struct place_how how, struct err *e)
{
	int fd = resolve(root_fd, dir, O_PATH | O_DIRECTORY);

	if (fd == -ENOENT && how.make_parents)
		return make_parents(root_fd, dir, how.undo, e);
	return fd < 0 ? err_sys(e, -fd, "open %s", *dir ? dir : "/") : fd;
}

/* Puts what the link at `place` says in the place of `path`. 0 when there is no link. */
static int follow(const struct place *place, const char *dir, char path[PATH_TEXT_MAX],
                  struct err *e)
{
	char target[PATH_TEXT_MAX];
	int n = os_readlinkat(place->dir_fd, place->name, target, sizeof target);

	if (n == -EINVAL || n == -ENOENT)
		return 0;
	if (n < 0)
		return err_sys(e, -n, "read link %s", path);
	if (root_join(dir, target, path, e) < 0)
		return -1;
	return 1;
}

int root_place(int root_fd, const char *path, struct place_how how, struct place *out,
               struct err *e)
{
	char at[PATH_TEXT_MAX], dir[PATH_TEXT_MAX];

	if (root_join("", path, at, e) < 0)
		return -1;
	for (int hops = 0; hops <= TREE_LINK_HOPS_MAX; hops++) {
		AUTO(place_done) struct place p = { .dir_fd = -1 };

		if (split(at, dir, p.name, e) < 0)
			return -1;
		p.dir_fd = open_parent(root_fd, dir, how, e);
		if (p.dir_fd < 0)
			return -1;
		int r = how.follow ? follow(&p, dir, at, e) : 0;
		if (r < 0)
			return -1;
		if (r == 0) {
			*out = p;
			p.dir_fd = -1;
			return 0;
		}
	}
	return fail(e, TREE_INVALID, "too many links: %s", path);
}
