/*
 * promote.h - what is about to leave a workspace is looked at first (scanner.h): a canary in it, or
 * the value of a secret, and it stays.
 *
 * By a script in a sandbox of ours that prints what is new, files as they are or every commit, all
 * of it taken for text; it is read here as bytes, and kept nowhere.
 */
#pragma once

#include "core/scanner.h"
#include "core/workspace.h"

enum promote_what {
	PROMOTE_NOTHING,
	PROMOTE_FILES,   /* as they are, since what the workspace began with */
	PROMOTE_COMMITS, /* all since then */
};

/* What stays for it. */
struct promote_bar {
	bool has_canaries, has_secrets;
};

struct promote_ask {
	enum promote_what what;
	const char *verb; /* "push": of the sentence */
	struct promote_bar bar;
	struct scanner *scanner; /* borrowed; afterwards ready for another text */
};
/* NULL: nothing is in the way; else why it stays. */
typedef void promote_done_fn(void *arg, const struct fail *f);
/* done() later, or right in the call. */
void promote_look(struct wsx *w, const struct promote_ask *ask, promote_done_fn *done, void *arg);

/* What was found and may not be: recorded, and refused. 0: nothing of that. */
int promote_judge(const struct wsx *w, const char *verb, const struct scanner *s,
                  struct promote_bar bar, struct fail *f);
/* Secrets that were found were masked: recorded. */
void promote_note_masked(const struct wsx *w, const char *verb, const struct scanner *s);
