#include "vault/known.h"

/* FNV-1a: a name of the layers that collides costs its own workspace a few steps. */
static size_t slot_of(struct span path)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < path.len; i++)
		h = (h ^ (unsigned char)path.at[i]) * 16777619u;
	return h % KNOWN_SLOTS;
}

struct known *known_at(struct known_table *t, struct span path)
{
	struct known **at = &t->slots[slot_of(path)];

	for (struct known *k = *at; k; k = k->next)
		if (k->path.len == path.len && memcmp(k->path.at, path.at, path.len) == 0)
			return k;
	struct known *k = arena_alloc(&t->arena, sizeof *k);
	*k = (struct known){ .next = *at, .path = known_keep(t, path) };
	*at = k;
	t->n++;
	return k;
}

struct span known_keep(struct known_table *t, struct span s)
{
	return (struct span){ s.len ? arena_strndup(&t->arena, s.at, s.len) : "", s.len };
}

void known_forget(struct known_table *t)
{
	arena_done(&t->arena);
	*t = (struct known_table){ 0 };
}

void known_trim(struct known_table *t)
{
	if (t->n > KNOWN_MAX)
		known_forget(t);
}
