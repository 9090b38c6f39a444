/*
 * checkout.h - from a repository and a name to the sealed trees of a workspace.
 *
 *   base ─▷ commit    by the mirror, after a refresh when the name can move and that is due
 *   commit ─▷ tree    files and git folder at that commit: made once, shared by all
 *   branch ─▷ tree    a small one over it: HEAD is that branch (none: HEAD is the commit)
 *
 * With both trees there and a commit for a base, no git runs and no byte is copied. The git folder
 * of a workspace is private, since it lies in the workspace's own files; its objects are those of
 * the mirror, which has to be mounted read-only at GIT_MIRROR (gitscript.h) in every sandbox of it.
 */
#pragma once

#include "core/repo.h"

#define CHECKOUT_LAYERS_MAX 2

struct checkout {
	char repo[ID_SIZE];
	uint64_t mirror;                      /* its tree */
	char commit[GIT_SHA_SIZE];            /* what the base meant */
	char branch[GIT_REF_MAX + 1];         /* that HEAD is; "": the commit itself */
	uint64_t layers[CHECKOUT_LAYERS_MAX]; /* the uppermost first */
	size_t n_layers;
};

struct checkout_ask {
	const char *tenant;
	const char *repo;   /* key, id, or a URL: one that is new is cloned */
	const char *base;   /* branch, tag, commit, refs/...; NULL: the main branch */
	const char *branch; /* a new one at that commit; NULL: the base, when it is one */
	int client_fd;      /* whose folders; -1: nobody's */
};

/* f NULL: it worked. Always later. */
typedef void checkout_done_fn(void *arg, const struct checkout *out, const struct fail *f);
void checkout_get(struct core *c, const struct checkout_ask *ask, checkout_done_fn *done,
                  void *arg);

/* ---- for core.c ---- */
void checkout_close(struct core *c);
