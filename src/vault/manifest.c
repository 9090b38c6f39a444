#include "vault/manifest.h"

void manifest_done(struct manifest *m)
{
	vec_done(&m->list);
	arena_done(&m->arena);
	*m = (struct manifest){ 0 };
}

static int rank(char c)
{
	return c == '/' ? 0 : (unsigned char)c;
}

int path_order(struct span a, struct span b)
{
	size_t n = a.len < b.len ? a.len : b.len, i = 0;

	while (i < n && a.at[i] == b.at[i])
		i++;
	if (i < n)
		return rank(a.at[i]) - rank(b.at[i]);
	return (a.len > b.len) - (a.len < b.len);
}

bool path_is_below(struct span path, struct span dir)
{
	if (dir.len == 0)
		return path.len > 0;
	return path.len > dir.len && path.at[dir.len] == '/' &&
	       memcmp(path.at, dir.at, dir.len) == 0;
}

static struct span keep(struct arena *a, struct span s)
{
	return (struct span){ s.len ? arena_strndup(a, s.at, s.len) : "", s.len };
}

struct entry *manifest_add(struct manifest *m, const struct entry *e)
{
	struct entry copy = *e;

	copy.path = keep(&m->arena, e->path);
	copy.target = keep(&m->arena, e->target);
	copy.xattrs = keep(&m->arena, e->xattrs);
	vec_push(&m->list, copy);
	return &m->list.at[m->list.len - 1];
}

size_t manifest_place(const struct manifest *m, struct span path)
{
	size_t low = 0, high = m->list.len;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (path_order(m->list.at[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct entry *manifest_find(const struct manifest *m, struct span path)
{
	size_t i = manifest_place(m, path);

	return i < m->list.len && path_order(m->list.at[i].path, path) == 0 ? &m->list.at[i] : NULL;
}

static bool span_same(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

bool entry_same(const struct entry *a, const struct entry *b)
{
	if (a->type != b->type)
		return false;
	if (a->type == ENTRY_WHITEOUT)
		return true;
	if (a->mode != b->mode || a->uid != b->uid || a->gid != b->gid ||
	    a->mtime_s != b->mtime_s || a->mtime_ns != b->mtime_ns)
		return false;
	if (a->type == ENTRY_FILE &&
	    (a->size != b->size || memcmp(a->hash, b->hash, sizeof a->hash) != 0))
		return false;
	return span_same(a->target, b->target) && span_same(a->xattrs, b->xattrs);
}

struct span entry_xattr(const struct entry *e, const char *name)
{
	struct span s = e->xattrs;

	while (s.len > 0) {
		size_t n = strlen(s.at) + 1;
		uint32_t len;

		memcpy(&len, s.at + n, sizeof len);
		if (strcmp(s.at, name) == 0)
			return (struct span){ s.at + n + sizeof len, len };
		s = span_after(s, n + sizeof len + len);
	}
	return (struct span){ 0 };
}

static const struct entry *entry_at(const struct manifest *m, size_t i)
{
	return i < m->list.len ? &m->list.at[i] : NULL;
}

static int order_of(const struct entry *x, const struct entry *y)
{
	return !x ? 1 : !y ? -1 : path_order(x->path, y->path);
}

int manifest_compare(const struct manifest *a, const struct manifest *b, manifest_difference *f,
                     void *ctx)
{
	size_t i = 0, j = 0;
	int r = 0;

	while (r >= 0 && (i < a->list.len || j < b->list.len)) {
		const struct entry *x = entry_at(a, i), *y = entry_at(b, j);
		int order = order_of(x, y);

		i += order <= 0;
		j += order >= 0;
		if (order != 0)
			r = f(ctx, order < 0 ? x : NULL, order < 0 ? NULL : y);
		else if (!entry_same(x, y))
			r = f(ctx, x, y);
	}
	return r;
}
