/*
 * errand.h - one request to a file worker of a sandbox, whose answer is small: a JSON document, or
 * bytes that are wanted whole.
 */
#pragma once

#include <jansson.h>

#include "core/files.h"

#define ERRAND_ANSWER_MAX (32u << 20)

typedef void errand_fn(void *arg, json_t *answer, const struct fail *f); /* answer: borrowed */
typedef void errand_bytes_fn(void *arg, struct span answer, const struct fail *f); /* the same */
struct errand_ask {
	enum tree_verb verb;
	uint32_t flags, depth, max;
	const char *path;
	json_t *body;      /* taken; NULL: none */
	struct span bytes; /* or these, copied */
};
/* Both come back later, once; or at once, when it cannot be asked. */
void errand(struct sbx *s, const struct errand_ask *ask, errand_fn *done, void *arg);
/* More than ERRAND_ANSWER_MAX is FAIL_TOO_LARGE. */
void errand_bytes(struct sbx *s, const struct errand_ask *ask, errand_bytes_fn *done, void *arg);
/* What a worker said when it said no. */
void errand_fail(enum tree_code code, struct span problem, struct fail *f);
