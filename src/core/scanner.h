/*
 * scanner.h - looks through what is about to leave for what a tenant keeps: canaries, whose values
 * are known here, and secrets, whose values are not: a child of the gate is started for the
 * question, which makes marks of them (wire/marks.h) with a key of ours, for this one time.
 */
#pragma once

#include "core/core.h"
#include "wire/span.h"

struct scanner;

/* What to look with; NULL: there is nothing to look for. With `f` nobody can say. Right in the call
 * when nobody has to be asked. */
typedef void scanner_fn(void *arg, struct scanner *s, const struct fail *f);
void scanner_open(struct core *c, const char *tenant, scanner_fn *done, void *arg);
void scanner_free(struct scanner *s); /* NULL is fine */
void scanners_close(struct core *c);

/* The same text with stars where a secret was is added to `out`; what may be the beginning of one
 * comes later. */
void scanner_feed(struct scanner *s, struct span in, struct str *out);
void scanner_flush(struct scanner *s, struct str *out); /* there is no more */
/* Names of what was found, or NULL. */
const char *scanner_canary(const struct scanner *s);
const char *scanner_secret(const struct scanner *s);
uint64_t scanner_hits(const struct scanner *s); /* of secrets */
void scanner_again(struct scanner *s);          /* another text */
