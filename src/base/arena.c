#include "base/arena.h"

#include <stdalign.h>

#define BLOCK_BYTES 4096

struct arena_block {
	struct arena_block *next;
	size_t used, cap;
	alignas(max_align_t) unsigned char bytes[];
};

void *arena_alloc(struct arena *a, size_t size)
{
	size_t need = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	struct arena_block *b = a->head;

	if (!b || b->cap - b->used < need) {
		size_t cap = need > BLOCK_BYTES ? need : BLOCK_BYTES;

		b = mem_alloc(sizeof *b + cap);
		b->cap = cap;
		b->next = a->head;
		a->head = b;
	}
	void *p = b->bytes + b->used;
	b->used += need;
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);

	memcpy(p, s, n);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

void arena_done(struct arena *a)
{
	struct arena_block *b = a->head;

	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
	a->head = NULL;
}
