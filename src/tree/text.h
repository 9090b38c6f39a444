/*
 * text.h - bytes as lines and as UTF-8. Pure.
 */
#pragma once

#include "base/str.h"
#include "wire/span.h"

/* Length of the code point at the beginning, 0 when there is none (RFC 3629). */
size_t utf8_first(struct span s);
bool utf8_is_valid(struct span s);
/* At most `max` bytes from the beginning, not ending inside a code point. */
struct span utf8_cut(struct span s, size_t max);
/* Every byte that belongs to no code point becomes U+FFFD. */
void utf8_lossy(struct span s, struct str *out);

/* Takes the next line, with its line feed if it has one. False at the end. */
bool line_take(struct span *rest, struct span *line);
/* Without its line feed, and without the carriage return before that. */
struct span line_bare(struct span line);

struct line_ends {
	size_t lf, crlf; /* a CRLF counts only as such */
};
struct line_ends line_ends_count(struct span s);
const char *line_ends_name(struct line_ends ends); /* "lf", "crlf", "mixed", "none" */
/* All lines end with CRLF, and there are some. */
bool line_ends_are_crlf(struct line_ends ends);
/* Adds `s` with every line feed that has no carriage return given one. */
void crlf_add(struct span s, struct str *out);

bool has_bom(struct span s); /* EF BB BF */
bool has_nul(struct span s);
