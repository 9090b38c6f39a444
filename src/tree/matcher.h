/*
 * matcher.h - finds a text or a regular expression; the work for one line has a ceiling.
 */
#pragma once

#include "base/err.h"
#include "wire/span.h"

struct call;
struct matcher;

struct matcher_how {
	struct call *call; /* asked on the way through a long text whether to go on */
	struct span pattern;
	bool is_literal, ignore_case, multiline;
};

struct matcher *matcher_new(const struct matcher_how *how, struct err *e) MUST_USE;
void matcher_free(struct matcher **m);

struct found {
	size_t at, len; /* in the text that was searched */
};

/* 1: found, 0: not there, -1: it takes too many steps to say, or the call was stopped. */
int matcher_find(struct matcher *m, struct span text, size_t from, struct found *out);

/* A literal, which is found in many lines at once as fast as in one. */
bool matcher_is_plain(const struct matcher *m);
/* A byte that every match has, so that lines without it need not be looked at; -1: none known. */
int matcher_needs(const struct matcher *m);
