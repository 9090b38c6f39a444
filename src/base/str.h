/*
 * str.h - a text builder with a ceiling.
 *
 * Appends do not fail one by one: past `max` the builder stops and remembers it in
 * `overflow`; check once at the end. `data` is always NUL-terminated, never NULL once
 * something was added; str_text() is safe on an empty one.
 */
#pragma once

#include <stdarg.h>

#include "base/base.h"

struct str {
	char *data;
	size_t len, cap, max;
	bool overflow;
};

void str_add(struct str *s, const char *text);
void str_addn(struct str *s, const void *bytes, size_t n);
void str_addf(struct str *s, const char *fmt, ...) PRINTF(2, 3);
void str_room(struct str *s, size_t n); /* the next n bytes do not move what is there */
void str_clear(struct str *s);          /* keeps the memory */
void str_done(struct str *s);
void str_wipe(struct str *s); /* the same, and what it held is overwritten */

static inline const char *str_text(const struct str *s)
{
	return s->data ? s->data : "";
}
