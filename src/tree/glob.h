/*
 * glob.h - names with wildcards. Pure; time grows with pattern times path, never faster.
 *
 *   *      anything within one name            ?     one character
 *   **     as a whole name: any number of them [a-z] [!a-z]
 *   {a,b}  one of them, nested if need be      \     the next character itself
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "wire/span.h"

/* One pattern without braces. */
bool glob_matches(struct span pattern, struct span path);

/* What a pattern with braces unfolds to; kept in the arena. */
struct globs {
	VEC(struct span) at;
};
int globs_add(struct globs *g, struct span pattern, struct arena *arena, struct err *e) MUST_USE;
bool globs_match(const struct globs *g, struct span path);
void globs_done(struct globs *g);
