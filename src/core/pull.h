/*
 * pull.h - a pull request (GitHub) or merge request (GitLab) for a branch that was pushed.
 *
 * One request to the forge's API, and, when there is one already, a question which; both by curl in
 * a sandbox that reaches that host and nothing else, and has the secret only as every sandbox has
 * one: the gate says it. What the forge answers is hostile.
 */
#pragma once

#include "core/workspace.h"

#define PULL_TITLE_MAX 1024
#define PULL_TEXT_MAX (64u << 10)
#define PULL_URL_MAX 2048

struct pull_ask {
	const char *title;
	const char *text;   /* what it is about; NULL: nothing */
	const char *branch; /* that was pushed; NULL: as git.h has it */
	const char *base;   /* where it is to go; NULL: what the workspace began with, or HEAD */
	const char *forge;  /* "github", "gitlab"; NULL: by the name of the host */
	const char *api;    /* the base of its API; NULL: https://api.HOST, https://HOST/api/v4 */
	const char *cred;   /* a secret by name; NULL: that of the repository, or none */
	bool is_draft;
};

struct pull_end {
	const char *url, *forge, *branch, *base;
	int64_t number;
	bool is_new;             /* false: there was one for that branch */
	const struct fail *fail; /* NULL: it is there */
};
typedef void pull_done_fn(void *arg, const struct pull_end *end);

/* done() later, or right in the call when nothing can be started; -1: it was refused. */
int pull_start(struct wsx *w, const struct pull_ask *ask, pull_done_fn *done, void *arg,
               struct fail *f) MUST_USE;
