/*
 * arena.h - memory of one request or one spec, dropped whole.
 */
#pragma once

#include "base/base.h"

struct arena {
	struct arena_block *head;
};

void *arena_alloc(struct arena *a, size_t size) MUST_USE; /* zeroed */
char *arena_strndup(struct arena *a, const char *s, size_t n) MUST_USE;
char *arena_strdup(struct arena *a, const char *s) MUST_USE;
void arena_done(struct arena *a);
