/*
 * purse.h - the secrets of one sandbox, opened, in memory that is locked, in no core and wiped.
 *
 * Made with the rules; connections that have used one keep the whole, to look for it in answers.
 */
#pragma once

#include "spec/rules.h"

#define PURSE_MARKS 16   /* of two texts: a value, as it is decoded, three codes, hex */
#define SECRET_LEN_MIN 8 /* shorter ones would be found everywhere */

struct purse_entry {
	struct span said; /* as it is written: a field's value, or a query's; a key to sign with */
	struct span marks[PURSE_MARKS]; /* by which it would be known: forms of wire/spelling.h */
	size_t n_marks;
	char name[SECRET_NAME_MAX + 1];
	/* BIND_APP: of the token that is said, which has a moment to live. */
	struct span said_git; /* the same for git, which wants a user */
	int64_t until_ms;     /* since 1970: then another one is needed */
	uint64_t again_ms;    /* timer_now_ms(): not asked for before */
	size_t slots;         /* room for two, in turn: an answer may have the last one */
	size_t n_turns, n_fresh;
};

struct purse {
	size_t refs;
	uint8_t *at; /* all bytes */
	size_t size, used;
	bool begins[UINT8_MAX + 1]; /* bytes that the spelling of one may begin with */
	size_t n;
	struct purse_entry entries[]; /* as rules.creds */
};

/* What opens one: its value goes to `out`, locked, with room for SECRET_VALUE_MAX; its length. */
typedef int purse_open_fn(void *arg, const struct cred_rule *c, uint8_t *out, struct err *e);

/* NULL: one does not open, or is not a value that could be sent; *e says which. Not strict: such a
 * one has nothing to say, and the others are there: what was revoked is gone in any case. */
struct purse_opts {
	purse_open_fn *open;
	void *arg;
	bool is_strict;
};
struct purse *purse_new(const struct rules *r, const struct purse_opts *o, struct err *e) MUST_USE;
struct purse *purse_ref(struct purse *p);
void purse_unref(struct purse *p); /* NULL is fine */

bool purse_token_is(struct span token); /* something that a request can carry */
/* Until when is since 1970. What stood for the one before the last one is forgotten. */
void purse_set_token(struct purse *p, size_t i, struct span token, int64_t until_ms);
/* Those of `from` that are for the same: another document may say the same. */
void purse_keep_tokens(struct purse *p, const struct rules *r, const struct purse *from,
                       const struct rules *from_rules);

/* Overwrites what stands for a secret in `text`, however it is spelled, length kept; how often.
 * *open: from where on the text may be the beginning of one; `n`: nowhere. */
size_t purse_scan(const struct purse *p, char *text, size_t n, size_t *open);
