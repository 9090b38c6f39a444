/*
 * git.h - what leaves a workspace by git: commits, merges, pushes, patches, bundles.
 *
 * All of it runs in service sandboxes that have the workspace at /work: to commit and to merge
 * writable, else read-only; only a push has a network, and that is one host. No sandbox of the
 * caller's is needed. What was committed or merged is a point of the workspace's history.
 */
#pragma once

#include "core/workspace.h"
#include "wire/git.h"

#define GIT_MESSAGE_MAX (64u << 10)
#define GIT_PATHS_MAX 50
#define GIT_OUT_MAX (4ull << 30) /* of a patch or a bundle */
#define GIT_CONFLICTS_MAX (256u << 10)

struct git_end {
	const char *sha;       /* HEAD of the workspace now; "" where that means nothing */
	const char *tree;      /* of what was committed, merged, pushed, exported; or "" */
	const char *remote;    /* PUSH: the branch that it went to */
	const char *conflicts; /* MERGE: names, each with its NUL; nothing was changed then */
	size_t conflicts_len;  /* 0: none */
	bool is_conflict;      /* JOIN: the file says how often */
	int fd;         /* PATCH, BETWEEN, BUNDLE, MAILS, TAKE, JOIN: what came of it; borrowed */
	uint64_t bytes; /* of it */
	const struct fail *fail; /* NULL: it worked, or there are conflicts */
};
typedef void git_done_fn(void *arg, const struct git_end *end);

enum git_verb {
	GIT_COMMIT,
	GIT_MERGE,
	GIT_PUSH,
	GIT_PATCH,
	GIT_BETWEEN, /* the same of two commits */
	GIT_BUNDLE,
	GIT_MAILS,
	GIT_TAKE, /* files as they were at a point, as tar: git_script_take */
	GIT_TREE, /* the files as they were at a point are applied somewhere: their tree */
	GIT_JOIN, /* one file, three versions of it: git_script_join */
};

struct git_ask {
	enum git_verb verb;
	const char *const *paths; /* COMMIT, PATCH: only these; NULL-terminated, or NULL */
	const char *message;      /* COMMIT */
	const char *name, *email; /* COMMIT: the author; NULL: "agent" */
	bool is_empty_fine;       /* COMMIT */
	const char *from;         /* MERGE: another workspace, or a commit or name of the mirror */
	const char *branch;       /* PUSH; NULL: the workspace's own */
	bool is_forced;           /* PUSH: over what was last seen there, and nothing else */
	const char *lease;        /* PUSH: that commit instead; "" for none at all; NULL */
	const char *base;  /* PATCH, BETWEEN, BUNDLE, MAILS: a commit; NULL: what it began with */
	const char *until; /* BETWEEN: a commit */
	const char *cred;  /* PUSH: a secret by name; NULL: that of the repository, or none */
	const char *since; /* PATCH: or a point */
	const char *at;    /* TAKE, TREE, PATCH: a point; NULL: now */
	const void *input; /* TAKE, JOIN: for standard input; copied */
	size_t input_len;
	size_t base_len, ours_len; /* JOIN: of the first two in it */
	struct json_t *record;     /* TREE: what else the ledger is told; borrowed */
	int client_fd;             /* PUSH: -1, or whose rights */
};
/* done() later, or right in the call when nothing can be started; -1: it was refused. */
int git_start(struct wsx *w, const struct git_ask *ask, git_done_fn *done, void *arg,
              struct fail *f) MUST_USE;
