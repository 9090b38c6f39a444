#include "vault/points.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "os/file.h"
#include "os/node.h"
#include "os/unix.h"
#include "vault/names.h"
#include "vault/trees.h"

#define POINT_BYTES_MAX (1u << 30) /* a million files */
#define LOCK_BYTE 0

int points_open(struct vault *v, struct err *e)
{
	int r = os_mkdirat(v->blobs_fd, "p", 0700);

	v->points_fd = r < 0 && r != -EEXIST
	                   ? r
	                   : os_openat(v->blobs_fd, "p", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (v->points_fd < 0)
		return err_sys(e, -v->points_fd, "open the checkpoints");
	v->lock_fd = os_openat(v->blobs_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	return v->lock_fd < 0 ? err_sys(e, -v->lock_fd, "open the lock of the blobs") : 0;
}

int points_lock(const struct vault *v, struct err *e)
{
	int r = os_lock_shared(v->lock_fd, LOCK_BYTE);

	return r < 0 ? err_sys(e, -r, "lock the blobs") : 0;
}

int points_lock_alone(const struct vault *v, struct err *e)
{
	int r;

	/* Others hold it for milliseconds. */
	while ((r = os_lock_byte(v->lock_fd, LOCK_BYTE)) == -EAGAIN)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return r < 0 ? err_sys(e, -r, "lock the blobs") : 0;
}

void points_unlock(const struct vault *v)
{
	(void)os_unlock_byte(v->lock_fd, LOCK_BYTE);
}

static int read_bytes(const struct vault *v, uint64_t number, struct str *out, struct err *e)
{
	char name[TREE_NAME_MAX];
	struct stat st;

	trees_name(number, name);
	AUTO(fd_close) int fd = os_openat(v->points_fd, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd == -ENOENT)
		return err_new(e, ERR_NOT_FOUND, "there is no checkpoint %s", name);
	int r = fd < 0 ? fd : os_fstatat(fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return err_sys(e, -r, "open checkpoint %s", name);
	if ((uint64_t)st.st_size > POINT_BYTES_MAX)
		return err_new(e, ERR_LIMIT, "checkpoint %s is too large", name);
	AUTO(freep) char *bytes = mem_alloc((size_t)st.st_size + 1);
	ssize_t n = os_read(fd, bytes, (size_t)st.st_size);
	if (n < 0)
		return err_sys(e, (int)-n, "read checkpoint %s", name);
	out->max = POINT_BYTES_MAX;
	str_addn(out, bytes, (size_t)n);
	return 0;
}

int points_load(const struct vault *v, uint64_t number, struct manifest *out, struct err *e)
{
	AUTO(manifest_done) struct manifest m = { 0 };
	struct str chain[POINTS_CHAIN_MAX + 1] = { 0 };
	size_t n = 0;
	int r = 0;

	for (uint64_t at = number; at && r >= 0;) {
		struct manifest_head head = { 0 };

		if (n == COUNT(chain))
			r = err_new(e, ERR_INTERNAL, "too many checkpoints build on each other");
		else
			r = read_bytes(v, at, &chain[n++], e);
		if (r >= 0)
			r = manifest_parse_head(
			    (struct span){ str_text(&chain[n - 1]), chain[n - 1].len }, &head, e);
		if (r >= 0 && head.number != at)
			r = err_new(e, ERR_INTERNAL, "another checkpoint lies in its place");
		at = head.base;
	}
	for (size_t i = n; i-- > 0;) {
		if (r >= 0)
			r = manifest_parse((struct span){ str_text(&chain[i]), chain[i].len }, &m,
			                   e);
		str_done(&chain[i]);
	}
	if (r < 0)
		return err_wrap(e, "checkpoint %llu", (unsigned long long)number);
	manifest_done(out);
	*out = m;
	m = (struct manifest){ 0 };
	return 0;
}

bool points_has(const struct vault *v, uint64_t number)
{
	char name[TREE_NAME_MAX];
	struct stat st;

	trees_name(number, name);
	return os_fstatat(v->points_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int points_save(const struct vault *v, struct manifest *m, const struct manifest *before,
                struct err *e)
{
	AUTO(str_done) struct str bytes = { .max = POINT_BYTES_MAX };
	char name[TREE_NAME_MAX], temp[TREE_NAME_MAX + 8];
	bool is_based = before && before->number && before->workspace == m->workspace &&
	                before->top == m->top && before->chain + 1 < POINTS_CHAIN_MAX &&
	                points_has(v, before->number);

	m->base = is_based ? before->number : 0;
	m->chain = is_based ? before->chain + 1 : 0;
	manifest_print(m, is_based ? before : NULL, &bytes);
	if (bytes.overflow)
		return err_new(e, ERR_LIMIT, "the checkpoint has too many files");
	trees_name(m->number, name);
	snprintf(temp, sizeof temp, "tmp-%llu", (unsigned long long)m->workspace);
	AUTO(fd_close)
	int fd = os_openat(v->points_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : os_write_all(fd, bytes.data, bytes.len);
	if (r >= 0 && points_has(v, m->number)) /* the disk has it: never less than that */
		r = os_fsync(fd);
	if (r >= 0)
		r = os_renameat2((struct os_names){ v->points_fd, temp, v->points_fd, name }, 0);
	return r < 0 ? err_sys(e, -r, "write checkpoint %s", name) : 0;
}

int points_all(const struct vault *v, points_each *f, void *ctx, struct err *e)
{
	AUTO(names_done) struct names names = { 0 };

	if (names_read(v->points_fd, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.list.len; i++) {
		AUTO(str_done) struct str bytes = { 0 };
		struct err why = { 0 };
		char *end;
		uint64_t number = strtoull(names.list.at[i].text, &end, 10);

		if (*end) /* one that is being written */
			continue;
		int r = read_bytes(v, number, &bytes, &why);
		if (f(ctx, number, (struct span){ str_text(&bytes), bytes.len },
		      r < 0 ? &why : NULL) < 0)
			return -1;
	}
	return 0;
}

int points_remove(const struct vault *v, uint64_t number, struct err *e)
{
	char name[TREE_NAME_MAX];

	trees_name(number, name);
	int r = os_unlinkat(v->points_fd, name);
	return r < 0 && r != -ENOENT ? err_sys(e, -r, "remove checkpoint %s", name) : 0;
}
