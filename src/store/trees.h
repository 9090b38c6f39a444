/*
 * trees.h - the rows of trees: folders of the store, by number (wire/vault.h).
 *
 *   making ──▷ ready ──▷ trash ──▷ (no row)
 *      └──────────────────▷┘
 *
 * A row is there before its folder, and goes after it: a folder without a row is nobody's. What is
 * still in the making when a daemon starts is trash, unless its maker goes on with it.
 */
#pragma once

#include "store/store.h"

enum tree_state { TREE_MAKING, TREE_READY, TREE_TRASH, TREE_STATE_COUNT };
const char *tree_state_name(enum tree_state state);

struct tree_row {
	int64_t num;
	const char *tenant;
	const char *node; /* NULL at insert: this store's */
	const char *kind; /* "repo", "checkout", "top", "layer", "image" */
	enum tree_state state;
	const char *owner; /* rp_…, ws_…, the name of an image */
	const char *key;   /* what it is of its owner, once for each kind; or NULL */
	int64_t bytes;     /* 0: not known */
	int64_t created_ms;
};

struct tree_list {
	struct tree_row *rows;
	size_t n;
};

/* In state making, or ready. */
int store_tree_insert(struct store *s, const struct tree_row *row, struct store_call call,
                      struct err *e);
/* To another state; bytes -1 leaves them. Ready only from making, trash from both. */
int store_tree_move(struct store *s, int64_t num, enum tree_state state, int64_t bytes,
                    struct store_call call, struct err *e);
int store_tree_drop(struct store *s, int64_t num, struct store_call call, struct err *e);

/* A checkout, or a flat layer, goes to the trash, unless a workspace or a point lies on it:
 * STORE_CONFLICT. */
int store_tree_retire(struct store *s, int64_t num, struct store_call call, struct err *e);
/* Those that it would do for, made before that time. */
int store_tree_unused(struct store *s, int64_t before_ms, struct arena *a, struct tree_list *out,
                      struct err *e);

int store_tree_get(struct store *s, int64_t num, struct arena *a, struct tree_row *out,
                   struct err *e);
/* The one that is making or ready; what counts of `which` is owner, kind and key. */
int store_tree_by_key(struct store *s, const struct tree_row *which, struct arena *a,
                      struct tree_row *out, struct err *e);
/* Of an owner, but trash; oldest first. */
int store_tree_of(struct store *s, const char *owner, struct arena *a, struct tree_list *out,
                  struct err *e);
/* All in that state, oldest first. */
int store_tree_in(struct store *s, enum tree_state state, struct arena *a, struct tree_list *out,
                  struct err *e);
