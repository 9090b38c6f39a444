/*
 * canary.h - credentials that are none: made to look like one, placed where only somebody who looks
 * for such things finds them, and known again in whatever is on its way out. Pure.
 *
 * What is looked for is not the text but what is left of it: letters and digits in one case, all
 * else skipped, so that line breaks, dots between labels, %XX and two alphabets of base64 make no
 * difference. Of that every piece of CANARY_GRAM characters is known, of the value and of its hex,
 * base64 and base32 at whatever place in a longer text: a part of a canary is enough. Such a piece
 * is a number below 36^12, so that a match is exact, and what is not one costs a few instructions a
 * byte.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/span.h"

#define CANARY_VALUE_MAX 256
#define CANARY_GRAM 12
#define CANARY_RANDOM_MIN 16 /* letters and digits that nobody could guess */

/* ---- making ---- */

struct canary_like {
	const char *name;  /* "aws" */
	const char *shape; /* A a 0: a capital, a letter, a digit; *: any of these; else itself */
	size_t fixed;      /* of the shape, as it stands */
	const char *env;   /* where one would look for it */
};
extern const struct canary_like canary_likes[]; /* the last has no name */

/* `like` is the name of one, or a text of the same shape: its letters and digits become others of
 * their kind, but for a first word that says what it is ("ghp_"). `random` has CANARY_VALUE_MAX
 * bytes. */
int canary_make(const char *like, const uint8_t *random, struct str *out, struct err *e) MUST_USE;
/* Long enough to be known, and nothing in it that has to be quoted. */
int canary_check(const char *value, struct err *e) MUST_USE;

/* ---- knowing ---- */

struct canaries;
struct canaries *canaries_new(void);
void canaries_add(struct canaries *c, const char *name, const char *value);
void canaries_free(struct canaries *c); /* NULL is fine */

/* Of one text, as it comes in pieces; begins as { 0 }. */
struct canary_scan {
	uint64_t gram;
	uint32_t n; /* how many characters of it count; CANARY_GRAM at most */
};
/* The name of one that has come, or NULL; `c` NULL: nothing is looked for. */
const char *canaries_look(const struct canaries *c, struct canary_scan *s, struct span bytes);
/* The same of a whole text. */
const char *canaries_find(const struct canaries *c, struct span text);
