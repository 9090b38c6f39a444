/*
 * promote.h - what is about to leave a workspace is looked at first: a canary in it, and it stays.
 *
 * By a script in a sandbox of ours that prints what is new, files as they are and every commit,
 * whatever is taken for text; it is read here as bytes, and kept nowhere. A tenant without canaries
 * pays nothing.
 */
#pragma once

#include "core/workspace.h"
#include "wire/canary.h"

enum promote_what {
	PROMOTE_FILES,   /* as they are, since what the workspace began with */
	PROMOTE_COMMITS, /* all since then */
};

struct promote_ask {
	enum promote_what what;
	const char *verb; /* "push": of the sentence */
	const char *base; /* a commit, or NULL: what it began with */
};
/* NULL: nothing is in the way; else why it stays. */
typedef void promote_done_fn(void *arg, const struct fail *f);
/* done() later, or right in the call. */
void promote_look(struct wsx *w, const struct promote_ask *ask, promote_done_fn *done, void *arg);

/* It was found: recorded, and refused. */
int promote_refuse(const struct wsx *w, const char *verb, const char *canary, struct fail *f);
