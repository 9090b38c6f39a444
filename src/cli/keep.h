/*
 * keep.h - the head and the tail of a stream, in bounded memory.
 */
#pragma once

#include "base/limits.h"
#include "base/str.h"

#define KEEP_HALF (INLINE_OUTPUT_MAX / 2)

struct keep {
	unsigned char head[KEEP_HALF], tail[KEEP_HALF]; /* the tail is a ring */
	uint64_t bytes;                                 /* in all */
};

void keep_add(struct keep *k, const void *bytes, size_t n);
/* The kept text: whole, or head, a line that says how much is missing, tail. Cut on code points;
 * returns false when the bytes are not UTF-8 (then `out` has them as they are). */
bool keep_text(const struct keep *k, struct str *out);
uint64_t keep_dropped(const struct keep *k);
/* Bytes of a sequence whose other part was dropped: they are not in the text either. */
uint64_t keep_cut(const struct keep *k);
