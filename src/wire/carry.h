/*
 * carry.h - does a text carry a token of ours, on its way to a program that must not have one?
 *
 * As it is, percent-encoded, in base64 at any place (Basic), or percent-encoded base64. A token is
 * known by its prefix, or whole. Pure.
 */
#pragma once

#include "base/str.h"
#include "wire/span.h"

struct carry {
	const char *const *prefixes; /* of tokens, "cst_"; ends with NULL; NULL: none */
	const char *const *wholes;   /* tokens without a prefix; ends with NULL; NULL: none */
};

bool carry_in(const struct carry *c, struct span text);
/* A request target without those parameters of its query that carry one. */
void carry_query(const struct carry *c, struct span target, struct str *out);
