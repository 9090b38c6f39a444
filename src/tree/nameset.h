/*
 * nameset.h - which paths one layer has touched, and so all directories above them.
 *
 * Only hashes are kept, of 64 bits, with a seed that nobody knows: two paths that meet are a matter
 * of 10^-8 in a layer of a million, and would harm nobody but that image.
 */
#pragma once

#include "base/base.h"

struct nameset {
	uint64_t *slots; /* 0: empty */
	size_t n, size;  /* size: a power of two */
	uint64_t seed;
};

void nameset_add(struct nameset *s, const char *path); /* "a/b/c": and "a/b", and "a" */
bool nameset_has(const struct nameset *s, const char *path);
void nameset_clear(struct nameset *s);
void nameset_done(struct nameset *s);
