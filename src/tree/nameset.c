#include "tree/nameset.h"

#define FIRST_SIZE 1024u

/* FNV-1a, begun at the seed. */
static uint64_t hash(const struct nameset *s, const char *path, size_t n)
{
	uint64_t h = s->seed ^ 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)path[i]) * 0x100000001b3ull;
	h ^= h >> 29;
	return h ? h : 1;
}

/* Where it is, or where there is room for it. */
static uint64_t *slot_of(const struct nameset *s, uint64_t h)
{
	size_t i = h & (s->size - 1);

	while (s->slots[i] && s->slots[i] != h)
		i = (i + 1) & (s->size - 1);
	return &s->slots[i];
}

static void grow(struct nameset *s)
{
	struct nameset old = *s;

	s->size = old.size ? old.size * 2 : FIRST_SIZE;
	s->slots = mem_alloc(s->size * sizeof *s->slots);
	for (size_t i = 0; i < old.size; i++)
		if (old.slots[i])
			*slot_of(s, old.slots[i]) = old.slots[i];
	free(old.slots);
}

/* False: it was there. */
static bool put(struct nameset *s, const char *path, size_t n)
{
	if (2 * (s->n + 1) > s->size)
		grow(s);
	uint64_t h = hash(s, path, n), *slot = slot_of(s, h);

	if (*slot)
		return false;
	*slot = h;
	s->n++;
	return true;
}

void nameset_add(struct nameset *s, const char *path)
{
	size_t n = strlen(path);

	while (put(s, path, n) && n > 0) { /* what is there came with all that is above it */
		do
			n--;
		while (n > 0 && path[n] != '/');
		if (n == 0)
			return;
	}
}

bool nameset_has(const struct nameset *s, const char *path)
{
	return s->size > 0 && *slot_of(s, hash(s, path, strlen(path)));
}

void nameset_clear(struct nameset *s)
{
	if (s->slots)
		memset(s->slots, 0, s->size * sizeof *s->slots);
	s->n = 0;
}

void nameset_done(struct nameset *s)
{
	free(s->slots);
	*s = (struct nameset){ 0 };
}
