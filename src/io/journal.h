/*
 * journal.h - what a program of ours has to say to its operator: one line per event on standard
 * error, with the ids that lead to the records.
 *
 *   2026-01-31T12:00:00.250Z warn caissond: the sandbox stopped sandbox=sb_… reason="its monitor
 * died"
 *
 * The words are ours, the values may be anybody's: they are quoted where they need it, and every
 * control character is escaped, so that a line is a line.
 */
#pragma once

#include "base/base.h"

enum journal_level { JOURNAL_DEBUG, JOURNAL_INFO, JOURNAL_WARN, JOURNAL_ERROR, JOURNAL_LEVELS };

const char *journal_level_name(enum journal_level level);
/* JOURNAL_LEVELS: there is none of that name. */
enum journal_level journal_level_of(const char *name);

/* Before that: everything from JOURNAL_INFO on, without a name. */
void journal_open(const char *program, enum journal_level from);
bool journal_hears(enum journal_level level);
/* Pairs of texts follow: key, value, ..., NULL. A pair whose value is NULL or "" is left out. */
void journal(enum journal_level level, const char *words, ...) __attribute__((sentinel));

/* For the tests: the line that it would write. */
struct str;
struct journal_pair {
	const char *key, *value;
};
void journal_print(struct str *out, int64_t unix_ms, enum journal_level level, const char *words,
                   const struct journal_pair *pairs);
