/*
 * flags.h - the options of a verb as a table, and the one parser for all of them.
 *
 * A row says name, letter, type, help, and which field of the verb's struct it fills; help, man
 * page and completion walk the same rows.
 */
#pragma once

#include "base/err.h"

/* What the field is. */
enum flag_type {
	FLAG_SWITCH,   /* bool */
	FLAG_TEXT,     /* const char * */
	FLAG_TWO,      /* const char *[2] */
	FLAG_LIST,     /* struct flag_list; each one adds */
	FLAG_NUMBER,   /* struct flag_number */
	FLAG_DURATION, /* struct flag_number, in ms */
	FLAG_TYPES
};

struct flag_list {
	const char **at;
	size_t len, cap;
};

struct flag_number {
	bool is_set;
	uint64_t value;
};

struct flag {
	char letter; /* '\0': none */
	enum flag_type type;
	const char *name; /* without the dashes; NULL: only a letter */
	size_t offset;
	const char *arg; /* "DIR" in the help; NULL for a switch */
	const char *help;
	const char *words; /* what the value may be, for the completion: "bash zsh"; or NULL */
};

struct flag_table {
	const struct flag *at;
	size_t n;
	/* Words that are in no row: 1 taken (*i is at the last of them), 0 not mine, -1. */
	int (*other)(void *into, int argc, char **argv, int *i, struct err *e);
	size_t
	    words_before; /* the word after so many is a command, with options of its own; 0: no */
	bool is_strict;   /* the first word ends the options */
	bool takes_spec, takes_config; /* what `other` knows, for "did you mean" */
};

struct words {
	char **at; /* NULL-terminated */
	size_t n;
};

/* Fills `into`, which is zeroed; argv[0] is the verb. The words that are no options come together
 * at the beginning of argv. 1: --help was asked for; 0; -1. */
int flags_parse(const struct flag_table *t, int argc, char **argv, void *into, struct words *out,
                struct err *e) MUST_USE;
void flags_done(const struct flag_table *t, void *into); /* frees the lists */
