#include "tree/blob.h"

#include "tree/fail.h"
#include "tree/sys.h"

#define FIRST_GUESS 4096

/* One read more than the size says: it may have grown, or never been true. */
static int read_to_end(struct blob *b, int fd, size_t room, size_t max, struct err *e)
{
	for (;;) {
		if (b->len == room) {
			room = room * 2 < max + 1 ? room * 2 : max + 1;
			b->at = mem_grow(b->at, room);
		}
		ssize_t n = sys_pread(fd, b->at + b->len, room - b->len, b->len);

		if (n < 0)
			return err_sys(e, (int)-n, "read");
		b->len += (size_t)n;
		if (b->len > max)
			return fail(e, TREE_TOO_LARGE, "more than %zu bytes", max);
		if (n == 0)
			return 0;
	}
}

int blob_read(struct blob *b, int fd, struct stat *st, size_t max, struct err *e)
{
	int r = sys_fstat(fd, st);

	if (r < 0)
		return err_sys(e, -r, "stat");
	if (!S_ISREG(st->st_mode))
		return fail(e, S_ISDIR(st->st_mode) ? TREE_IS_DIRECTORY : TREE_INVALID,
		            "not a regular file");
	if ((uint64_t)st->st_size > max)
		return fail(e, TREE_TOO_LARGE, "%lld bytes, and %zu is the limit",
		            (long long)st->st_size, max);
	size_t room = st->st_size > 0 ? (size_t)st->st_size + 1 : FIRST_GUESS;

	b->at = mem_alloc(room);
	b->len = 0;
	return read_to_end(b, fd, room, max, e);
}

void blob_done(struct blob *b)
{
	free(b->at);
	*b = (struct blob){ 0 };
}
