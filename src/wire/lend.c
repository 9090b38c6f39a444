#include "wire/lend.h"

size_t lend_size(const struct lend_head *h)
{
	size_t len = (size_t)h->len[0] | (size_t)h->len[1] << 8 | (size_t)h->len[2] << 16 |
	             (size_t)h->len[3] << 24;

	if ((h->kind != LEND_ONCE && h->kind != LEND_KEEP) || len == 0 || len > LEND_BYTES_MAX)
		return 0;
	return sizeof *h + len;
}

int lend_check(const char *paths, size_t n, struct err *e)
{
	size_t count = 0;

	if (n == 0 || paths[n - 1] != '\0')
		return err_new(e, ERR_INVALID, "lend: the last path has no end");
	for (const char *at = paths; at < paths + n; at += strlen(at) + 1) {
		if (at[0] != '/' || strlen(at) >= PATH_TEXT_MAX)
			return err_new(e, ERR_INVALID, "lend: a path is not absolute, or too long");
		if (++count > LEND_PATHS_MAX)
			return err_new(e, ERR_INVALID, "lend: more than %d paths", LEND_PATHS_MAX);
	}
	return 0;
}

/* The next name of a path, and behind it the rest; of length 0 at the end. */
static size_t next_name(const char **path)
{
	for (;;) {
		*path += strspn(*path, "/");
		size_t n = strcspn(*path, "/");

		if (n != 1 || **path != '.')
			return n;
		*path += n;
	}
}

bool lend_is_same(const char *a, const char *b)
{
	for (;;) {
		size_t n = next_name(&a), m = next_name(&b);

		if (n != m || memcmp(a, b, n) != 0)
			return false;
		if (n == 0)
			return true;
		a += n;
		b += m;
	}
}
