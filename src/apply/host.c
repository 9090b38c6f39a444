#include "apply/host.h"

#include <linux/openat2.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"

#define SAFE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define PIECE (64u << 10)
#define PATH_BYTES_MAX 4096

int host_parent(int root_fd, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	char folder[PATH_BYTES_MAX] = ".";

	if (n >= sizeof folder)
		return -ENAMETOOLONG;
	if (slash) {
		memcpy(folder, path, n);
		folder[n] = '\0';
	}
	*name = slash ? slash + 1 : path;
	return os_openat2(root_fd, folder, O_PATH | O_DIRECTORY, 0, SAFE);
}

void host_ident(const struct stat *st, struct apply_ident *out)
{
	*out = (struct apply_ident){ .ino = st->st_ino,
		                     .size = (uint64_t)st->st_size,
		                     .mtime = st->st_mtim,
		                     .mode = st->st_mode,
		                     .uid = st->st_uid,
		                     .gid = st->st_gid };
}

bool host_is_same(const struct apply_ident *a, const struct stat *st)
{
	return a->ino == st->st_ino && a->size == (uint64_t)st->st_size &&
	       a->mtime.tv_sec == st->st_mtim.tv_sec && a->mtime.tv_nsec == st->st_mtim.tv_nsec &&
	       a->mode == st->st_mode;
}

static const struct {
	mode_t format;
	enum node_type type;
} types[] = { { S_IFREG, NODE_FILE }, { S_IFLNK, NODE_LINK }, { S_IFDIR, NODE_DIR } };

static enum node_type type_of(mode_t mode)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if ((mode & S_IFMT) == types[i].format)
			return types[i].type;
	return NODE_OTHER;
}

/* What it means for a name that the folder that it lies in cannot be opened. */
static int missing(int r, struct apply_entry *e, struct err *err)
{
	if (r == -ENOENT)
		e->host.type = NODE_NONE;
	else if (r == -ENOTDIR || r == -ELOOP)
		e->host.type = NODE_BLOCKED;
	else if (r == -EXDEV)
		e->host.type = NODE_ELSEWHERE;
	else
		return err_sys(err, -r, "open the folder of %s", e->path);
	return 0;
}

int host_look(int root_fd, struct apply_entry *e, struct arena *arena, struct err *err)
{
	const char *name;
	AUTO(fd_close) int dir_fd = host_parent(root_fd, e->path, &name);
	char target[PATH_BYTES_MAX];
	struct stat st;

	e->host = (struct apply_node){ 0 };
	if (dir_fd < 0)
		return missing(dir_fd, e, err);
	int r = os_fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0)
		return missing(r, e, err);
	e->host = (struct apply_node){ .type = type_of(st.st_mode), .mode = st.st_mode };
	host_ident(&st, &e->was);
	if (e->host.type != NODE_LINK)
		return 0;
	r = os_readlinkat(dir_fd, name, target, sizeof target);
	if (r < 0)
		return err_sys(err, -r, "read the link %s", e->path);
	e->host.target = arena_strdup(arena, target);
	return 0;
}

/* 1: the folder is there, 0, -1. */
static int has_folder(int root_fd, const char *path, struct err *e)
{
	AUTO(fd_close) int fd = os_openat2(root_fd, path, O_PATH | O_DIRECTORY, 0, SAFE);

	if (fd >= 0)
		return 1;
	return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP
	           ? 0
	           : err_sys(e, -fd, "look at %s", path);
}

int host_trim(int root_fd, struct apply_ops *ops, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < ops->list.len; i++) {
		const struct apply_op *op = &ops->list.at[i];
		int is_there = op->kind == OP_MKDIR ? has_folder(root_fd, op->path, e) : 0;

		if (is_there < 0)
			return -1;
		if (!is_there)
			ops->list.at[n++] = *op;
	}
	ops->list.len = n;
	return 0;
}

/* ---- content ------------------------------------------------------------------------- */

static int open_file(int root_fd, const char *path)
{
	struct stat st;
	AUTO(fd_close)
	int fd = os_openat2(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, SAFE);

	if (fd < 0)
		return fd;
	int r = os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return r;
	return S_ISREG(st.st_mode) ? fd_take(&fd) : -EINVAL;
}

void host_compare_begin(int root_fd, const struct apply_entry *e, struct host_compare *c)
{
	*c = (struct host_compare){ .fd = -1 };
	if (e->host.type != NODE_FILE)
		return;
	int fd = open_file(root_fd, e->path);
	if (fd >= 0)
		c->fd = fd;
	else if (fd != -ENOENT && fd != -ELOOP && fd != -ENOTDIR && fd != -EINVAL && fd != -EXDEV)
		c->error = fd; /* else it is no longer what we saw */
	c->is_same = fd >= 0;
}

static void differs(struct host_compare *c)
{
	c->is_same = false;
	fd_close(&c->fd);
}

void host_compare_feed(struct host_compare *c, const void *bytes, size_t n)
{
	const char *at = bytes;
	char buf[PIECE];

	while (n > 0 && c->fd >= 0) {
		ssize_t r = os_read(c->fd, buf, n < sizeof buf ? n : sizeof buf);

		if (r < 0)
			c->error = (int)r;
		if (r <= 0 || memcmp(buf, at, (size_t)r) != 0) {
			differs(c);
			return;
		}
		at += r;
		n -= (size_t)r;
	}
}

int host_compare_end(struct host_compare *c)
{
	char more;
	ssize_t n = c->fd >= 0 ? os_read(c->fd, &more, 1) : 0;

	if (n < 0)
		c->error = (int)n;
	if (n != 0)
		differs(c);
	fd_close(&c->fd);
	return c->error < 0 ? c->error : c->is_same;
}

int host_read(int root_fd, const char *path, struct str *out, struct err *e)
{
	AUTO(fd_close) int fd = open_file(root_fd, path);
	char buf[PIECE];
	ssize_t n;

	if (fd < 0) {
		int r = fd;

		fd = -1;
		return err_sys(e, -r, "read %s", path);
	}
	while ((n = os_read(fd, buf, sizeof buf)) > 0 && !out->overflow)
		str_addn(out, buf, (size_t)n);
	return n < 0 ? err_sys(e, (int)-n, "read %s", path) : 0;
}
