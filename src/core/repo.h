/*
 * repo.h - repositories: a mirror that is cloned once, kept up to date, and never edited.
 *
 * A mirror is a tree of the store (trees.h): a bare repository with every commit, whose refs lie in
 * a namespace of ours. Clone and fetch run in a service sandbox whose network is that one host;
 * a folder of the caller's is opened with his rights, each time. The row (store/repos.h) is the
 * lock. Nothing is ever removed from a mirror: workspaces borrow its objects.
 *
 * Who asks for a refresh while one runs gets the next one: what was pushed before the question is
 * in the answer.
 */
#pragma once

#include "core/core.h"
#include "store/repos.h"
#include "wire/git.h"

struct repo_ask {
	const char *tenant, *key;
	const char *url;     /* as the caller says it */
	const char *cred;    /* a secret by name (secret.h), or NULL */
	const char *refs;    /* JSON list of patterns; NULL: branches and tags */
	const char *refresh; /* "always", "manual", a duration; NULL: always */
	int client_fd;       /* whose folders; -1: nobody's */
};

/* The row is borrowed for the call; f NULL: it worked. `old`: the tip of its main branch before. */
struct repo_end {
	const struct repo_row *row;
	const char *old, *tip; /* "" for none */
	const struct fail *fail;
};
typedef void repo_done_fn(void *arg, const struct repo_end *end);

/* Get or create. done() when it can be used, or right in the call; -1: it was refused, and nobody
 * is told. `id` (if not NULL) gets the id of the row. */
int repo_put(struct core *c, const struct repo_ask *ask, repo_done_fn *done, void *arg,
             struct fail *f) MUST_USE;
int repo_refresh(struct core *c, const struct repo_row *row, int client_fd, repo_done_fn *done,
                 void *arg, struct fail *f) MUST_USE;
/* Refused while a workspace needs it. */
int repo_delete(struct core *c, const struct repo_row *row, repo_done_fn *done, void *arg,
                struct fail *f) MUST_USE;
/* done() will not be called; the work goes on. */
void repo_forget(struct core *c, const void *arg);

/* By id, key or URL. */
int repo_find(struct core *c, const char *tenant, const char *name, struct arena *a,
              struct repo_row *out, struct fail *f) MUST_USE;
void repo_settle(const struct core *c, struct repo_row *row); /* one that was read from the store */
/* Is what its branches say old enough to ask again? */
bool repo_is_due(const struct repo_row *row);

/* What a clone or fetch says of itself, NULL when none runs. */
const char *repo_progress(const struct core *c, const char *id);
/* Told of each line of it, and of the end (line NULL). Embedded in its owner. */
struct repo_watch {
	struct repo_watch *next;
	void (*heard)(struct repo_watch *w, const char *line);
};
bool repo_watch_add(struct core *c, const char *id, struct repo_watch *w); /* false: none runs */
void repo_watch_remove(struct core *c, struct repo_watch *w);

/* ---- for core.c ---- */
void repo_recover(struct core *c);
void repo_close(struct core *c);
