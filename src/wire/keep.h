/*
 * keep.h - the head and the tail of a stream, in bounded memory.
 */
#pragma once

#include "base/str.h"

struct keep {
	size_t half;         /* bytes of the head, and of the tail */
	unsigned char *head; /* both made when there is something to keep; the tail is a ring */
	unsigned char *tail;
	uint64_t bytes; /* in all */
	uint64_t
	    skipped; /* bytes that were lost before they came here; they are counted as dropped */
};

void keep_init(struct keep *k, size_t max); /* at least 2 */
void keep_done(struct keep *k);
void keep_add(struct keep *k, const void *bytes, size_t n);
/* What comes from now on is the tail: the bytes between were never seen. */
void keep_skip(struct keep *k, uint64_t n);
/* The kept text: whole, or head, a line that says how much is missing, tail. Cut on code points;
 * returns false when the bytes are not UTF-8 (then `out` has them as they are). */
bool keep_text(const struct keep *k, struct str *out);
/* Bytes that are not in that text, those of cut code points included. */
uint64_t keep_dropped(const struct keep *k);
