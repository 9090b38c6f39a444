/*
 * span.h - text that belongs to somebody else: where it begins and how long it is.
 *
 * No NUL at the end. Letters are compared as ASCII, whatever the locale.
 */
#pragma once

#include "base/base.h"

struct span {
	const char *at;
	size_t len;
};

static inline struct span span_of(const char *text)
{
	return (struct span){ text, strlen(text) };
}

static inline bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && (s.len == 0 || memcmp(s.at, text, s.len) == 0);
}

static inline unsigned char span_lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static inline bool span_same_nocase(struct span a, struct span b)
{
	size_t i = 0;

	if (a.len != b.len)
		return false;
	while (i < a.len && span_lower(a.at[i]) == span_lower(b.at[i]))
		i++;
	return i == a.len;
}

static inline bool span_is_nocase(struct span s, const char *text)
{
	return span_same_nocase(s, span_of(text));
}

/* The first `n` bytes leave the span. */
static inline struct span span_after(struct span s, size_t n)
{
	return (struct span){ s.at + n, s.len - n };
}
