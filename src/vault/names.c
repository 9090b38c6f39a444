#include "vault/names.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"

#define READ_BYTES 32768
#define DEPTH_MAX 128 /* each level has a descriptor and a frame */

static int by_name(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static void add(struct names *n, const struct dirent64 *d)
{
	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return;
	/* A place in `bytes` until all are there: it may still move. */
	vec_push(&n->list, (struct name){ (const char *)(uintptr_t)n->bytes.len, d->d_type });
	str_addn(&n->bytes, d->d_name, strlen(d->d_name) + 1);
}

void names_done(struct names *n)
{
	vec_done(&n->list);
	str_done(&n->bytes);
}

int names_read(int dir_fd, struct names *out, struct err *e)
{
	AUTO(freep) char *buf = mem_alloc(READ_BYTES);
	int n;

	out->list.len = 0;
	out->bytes.max = SIZE_MAX;
	str_clear(&out->bytes);
	if (lseek(dir_fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "rewind a directory");
	while ((n = os_getdents(dir_fd, buf, READ_BYTES)) > 0) {
		for (int at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(buf + at);

			add(out, d);
			at += d->d_reclen;
		}
	}
	if (n < 0)
		return err_sys(e, -n, "read a directory");
	for (size_t i = 0; i < out->list.len; i++)
		out->list.at[i].text = out->bytes.data + (uintptr_t)out->list.at[i].text;
	if (out->list.len > 1)
		qsort(out->list.at, out->list.len, sizeof *out->list.at, by_name);
	return 0;
}

/* What lies too deep is moved up, and removed from there. */
struct removal {
	int root_fd;
	uint64_t moved, removed;
};

static int remove_entry(struct removal *r, int dir_fd, const char *name, int depth, struct err *e);

static int remove_below(struct removal *r, int fd, int depth, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };

	if (names_read(fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.list.len; i++)
		if (remove_entry(r, fd, names.list.at[i].text, depth + 1, e) < 0)
			return -1;
	return 0;
}

static int move_up(struct removal *r, int dir_fd, const char *name, struct err *e)
{
	char moved[32];
	int status = -EEXIST;

	while (status == -EEXIST || status == -ENOTEMPTY) { /* a name that is taken is another's */
		snprintf(moved, sizeof moved, "deep-%llu", (unsigned long long)r->moved++);
		status = os_renameat2((struct os_names){ dir_fd, name, r->root_fd, moved }, 1);
	}
	return status < 0 ? err_sys(e, -status, "move a directory up") : 0;
}

static int remove_entry(struct removal *r, int dir_fd, const char *name, int depth, struct err *e)
{
	int status = os_unlinkat(dir_fd, name);

	if (status == 0 || status == -ENOENT)
		return 0;
	if (status != -EISDIR && status != -EPERM)
		return err_sys(e, -status, "remove a file");
	if (depth > DEPTH_MAX)
		return move_up(r, dir_fd, name, e);
	AUTO(fd_close) int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(e, -fd, "open a directory to remove");
	if (remove_below(r, fd, depth, e) < 0)
		return -1;
	status = os_rmdirat(dir_fd, name);
	return status < 0 ? err_sys(e, -status, "remove a directory") : 0;
}

int names_remove(int dir_fd, const char *name, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct removal r = { .root_fd = fd };

	if (fd == -ENOENT)
		return 0;
	if (fd == -ENOTDIR || fd == -ELOOP)
		return remove_entry(&r, dir_fd, name, 0, e);
	if (fd < 0)
		return err_sys(e, -fd, "open a directory to remove");
	do { /* again: what was moved up lies here now */
		r.removed = r.moved;
		if (remove_below(&r, fd, 0, e) < 0)
			return -1;
	} while (r.removed != r.moved);
	int status = os_rmdirat(dir_fd, name);
	return status < 0 ? err_sys(e, -status, "remove a directory") : 0;
}
