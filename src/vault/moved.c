#include "vault/moved.h"

struct place {
	struct span lower, path;
};
typedef VEC(struct place) places;

static void add_place(places *p, struct place one)
{
	vec_push(p, one);
}

static void add_moved(struct moved_list *l, struct moved one)
{
	vec_push(&l->list, one);
}

void moved_done(struct moved_list *m)
{
	vec_done(&m->list);
}

static struct span keep(struct arena *arena, struct span s)
{
	return (struct span){ arena_strndup(arena, s.at, s.len), s.len };
}

/* Directories of a top that lie on another one. */
static int list_redirected(const struct side *s, struct arena *arena, places *out, struct err *e)
{
	const char *name = s->is_rootless ? "user.overlay.redirect" : "trusted.overlay.redirect";

	for (size_t i = 0; i < s->top->list.len; i++) {
		const struct entry *at = &s->top->list.at[i];
		struct node n;

		if (at->type != ENTRY_DIR || entry_xattr(at, name).len == 0)
			continue;
		if (view_find(s, at->path, arena, &n, e) < 0)
			return -1;
		if (n.is_there && n.has_lower)
			add_place(out, (struct place){ n.lower, keep(arena, at->path) });
	}
	return 0;
}

/* Where this side has a directory of the layers: 1, or 0 for nowhere. */
static int find_place(const struct side *s, const places *known, struct span lower,
                      struct arena *arena, struct span *out, struct err *e)
{
	struct node n;

	for (size_t i = 0; i < known->len; i++) {
		if (path_order(known->at[i].lower, lower) == 0) {
			*out = known->at[i].path;
			return 1;
		}
	}
	if (view_find(s, lower, arena, &n, e) < 0)
		return -1;
	*out = lower;
	return n.is_there && n.seen.type == ENTRY_DIR && n.has_lower &&
	       path_order(n.lower, lower) == 0;
}

static bool is_known(const struct moved_list *m, struct span lower)
{
	for (size_t i = 0; i < m->list.len; i++)
		if (path_order(m->list.at[i].lower, lower) == 0)
			return true;
	return false;
}

static int pair(const struct side *const sides[2], const places *known, struct arena *arena,
                struct moved_list *out, struct err *e)
{
	for (size_t i = 0; i < known[0].len + known[1].len; i++) {
		struct place p = i < known[0].len ? known[0].at[i] : known[1].at[i - known[0].len];
		struct moved m = { .lower = p.lower };

		if (is_known(out, p.lower))
			continue;
		int has_from = find_place(sides[0], &known[0], p.lower, arena, &m.from, e);
		int has_to = find_place(sides[1], &known[1], p.lower, arena, &m.to, e);
		if (has_from < 0 || has_to < 0)
			return -1;
		if (has_from && has_to && path_order(m.from, m.to) != 0)
			add_moved(out, m);
	}
	return 0;
}

int moved_find(const struct side *a, const struct side *b, struct arena *arena,
               struct moved_list *out, struct err *e)
{
	const struct side *sides[2] = { a, b };
	places known[2] = { { 0 }, { 0 } };
	int r = 0;

	if (b->is_other)
		return 0;
	for (size_t i = 0; i < 2 && r >= 0; i++)
		r = list_redirected(sides[i], arena, &known[i], e);
	if (r >= 0)
		r = pair(sides, known, arena, out, e);
	vec_done(&known[0]);
	vec_done(&known[1]);
	return r;
}
