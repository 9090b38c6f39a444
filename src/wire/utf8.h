/*
 * utf8.h - is this UTF-8 (RFC 3629)? In pieces, wherever they were cut.
 *
 * No overlong forms, no surrogates, nothing above U+10FFFF.
 */
#pragma once

#include "base/base.h"

struct utf8 {
	uint8_t left;      /* bytes that this code point still needs */
	uint8_t low, high; /* what the next of them may be */
};

/* False when the text cannot become UTF-8 any more. Starts from { 0 }. */
bool utf8_feed(struct utf8 *u, const void *bytes, size_t n);

/* How many bytes at the end are the beginning of a code point that goes on behind them; 0..3. */
size_t utf8_open_end(const void *bytes, size_t n);

/* May the text end here? */
static inline bool utf8_is_whole(const struct utf8 *u)
{
	return u->left == 0;
}

/* All of it at once. */
static inline bool utf8_is(const void *bytes, size_t n)
{
	struct utf8 u = { 0 };

	return utf8_feed(&u, bytes, n) && utf8_is_whole(&u);
}
