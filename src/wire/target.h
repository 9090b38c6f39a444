/*
 * target.h - the one meaning of a request target, or none.
 *
 * A path that is judged here and read there must mean the same at both places, so what servers are
 * known to read in different ways is refused: dot segments (with parameters too: "..;x"), `//`,
 * a backslash, %2e %2f %5c %00 and other escaped control bytes, an escaped escape (%25 before two
 * digits), bytes that are not UTF-8 (an overlong "/" is none), raw bytes that RFC 3986 does not
 * have, a fragment, and everything that is not origin-form ("*", an absolute URL).
 */
#pragma once

#include "base/str.h"
#include "wire/span.h"

/* Adds the path without the query to `out`: escapes of unreserved characters are undone, digits of
 * the others are upper case. -1: ambiguous, nothing was added. */
int http_target_normal(struct span target, struct str *out) MUST_USE;

/* A path as people write it: what cannot stand in a target is escaped, in the same spelling. */
void http_target_escape(const char *path, struct str *out);
