/*
 * workspaces.h - the rows of workspaces: durable trees, each with its history.
 *
 *   making ──▷ ready ──▷ trash ◁──▷ ready
 *      ├──▷ failed ──▷ trash ──▷ gone, which is final
 *      └──▷ trash
 *
 * What a workspace shows is a stack of sealed trees and one top (wire/vault.h). A point is a state
 * of the top that was kept (points.h); `head` is the one that the workspace was last known to be
 * at. It may have changed since then, unless it is clean: closed, and nothing has written to it.
 */
#pragma once

#include "store/points.h"
#include "store/store.h"

enum workspace_state {
	WORKSPACE_MAKING,
	WORKSPACE_READY,
	WORKSPACE_FAILED,
	WORKSPACE_TRASH,
	WORKSPACE_GONE,
	WORKSPACE_STATE_COUNT
};

const char *workspace_state_name(enum workspace_state state);
bool workspace_state_may(enum workspace_state from, enum workspace_state to);

#define WORKSPACE_AHEAD_MAX (64u << 10)
#define WORKSPACE_FORKS_MAX 1000 /* of one request */

struct workspace_row {
	int64_t seq; /* order of birth; given by the store */
	const char *id, *tenant;
	const char *node; /* NULL at insert: this store's */
	const char
	    *key; /* the caller's name for it; unique in the tenant until it is in the trash */
	const char *repo, *base, *base_commit, *branch; /* NULL: of no repository */
	const char *mode;                               /* "edit", "read" */
	enum workspace_state state;
	const char *state_reason;
	const char *spec;    /* canonical JSON: of the sandbox that commands run in by default */
	const char *parent;  /* the one that it is a fork of, or NULL */
	int64_t num;         /* its number for the vault */
	int64_t top;         /* the number of its top */
	const char *stack;   /* JSON: numbers of sealed trees, the uppermost first */
	int64_t begins;      /* the point that a top begins with which is not there yet; 0: empty */
	int64_t origin;      /* the point that the workspace itself began with; 0: none */
	int64_t head;        /* the point that it is at, or has changed since; 0: none */
	const char *ahead;   /* JSON: points that were undone, the next to be done again last */
	int64_t rev;         /* grows with every change that was noticed */
	int64_t clean;       /* 1: closed, and at `head` */
	const char *pending; /* JSON: a change of the tree that is under way; NULL: none */
	int64_t pin;
	int64_t ttl_ms, expires_ms;
	int64_t created_ms, used_ms;
	int64_t ended_ms;           /* since when it is in the trash, or gone */
	int64_t disk_bytes, inodes; /* bounds of its top; 0: none */
	/* The root of its sandboxes with `checkpoint: all`, which is a second stack: the tree of an
	 * image and a top. All 0: there is none. */
	int64_t root_num; /* its number for the vault */
	int64_t root_top, root_begins;
	int64_t root_tree;      /* of the image */
	const char *root_image; /* what that was called when the root began */
};

/* What an update writes: the fields of the row that its bits name. */
enum workspace_field {
	WORKSPACE_SET_STATE = 1 << 0, /* and state_reason, ended_ms */
	WORKSPACE_SET_BASE = 1 << 1,  /* repo, base, base_commit, branch */
	WORKSPACE_SET_SPEC = 1 << 2,
	WORKSPACE_SET_STACK = 1 << 3, /* and top, begins */
	WORKSPACE_SET_HEAD = 1 << 4,  /* and ahead, rev */
	WORKSPACE_SET_CLEAN = 1 << 5,
	WORKSPACE_SET_PENDING = 1 << 6,
	WORKSPACE_SET_LIFE = 1 << 7, /* pin, ttl_ms, expires_ms */
	WORKSPACE_SET_USED = 1 << 8, /* and expires_ms */
	WORKSPACE_SET_ORIGIN = 1 << 9,
	WORKSPACE_SET_ROOT = 1 << 10, /* all of it */
};

struct workspace_query {
	struct store_page page;
	uint32_t states;           /* bits 1 << state; 0: all but trash and gone */
	const char *parent, *repo; /* NULL: any */
};

struct workspace_list {
	struct workspace_row *rows;
	size_t n;
	const char *next; /* cursor, or NULL at the end */
};

/* Several in one transaction: all of them or none. In state making or ready. */
int store_workspace_insert(struct store *s, const struct workspace_row *rows, size_t n,
                           struct store_call call, struct err *e);
/* The same, unless the tenant would then have more than `most` (0: no bound) that are not in the
 * trash: STORE_CONFLICT. All rows are of one tenant. */
struct workspace_batch {
	const struct workspace_row *rows;
	size_t n;
	uint64_t most;
};
int store_workspace_insert_within(struct store *s, const struct workspace_batch *batch,
                                  struct store_call call, struct err *e);
int store_workspace_count(struct store *s, const char *tenant, uint64_t *out, struct err *e);
/* What goes on record in the same transaction. */
struct workspace_with {
	const struct point_row *point; /* a new one, or NULL */
	int64_t trash;                 /* a tree that was its top, and is nobody's now; 0: none */
	int64_t root_trash;            /* the same of its root */
};
/* Changes `fields` of the row with row->id. A change of state is compare-and-set, as in
 * sandboxes.h. */
int store_workspace_update(struct store *s, const struct workspace_row *row, uint32_t fields,
                           struct workspace_with with, struct store_call call, struct err *e);

int store_workspace_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                        struct workspace_row *out, struct err *e);
/* The one that is neither in the trash nor gone. */
int store_workspace_by_key(struct store *s, const char *tenant, const char *key, struct arena *a,
                           struct workspace_row *out, struct err *e);
/* Of whatever tenant. */
int store_workspace_by_id(struct store *s, const char *id, struct arena *a,
                          struct workspace_row *out, struct err *e);
/* One whose root is of that image: it is not gone. */
int store_workspace_by_root(struct store *s, int64_t tree, struct arena *a,
                            struct workspace_row *out, struct err *e);
/* Another one than `but` whose default sandbox has the image of that name. */
struct workspace_by_image {
	const char *tenant, *image, *but; /* but NULL: any */
};
bool store_workspace_has_image(struct store *s, const struct workspace_by_image *q);
int store_workspace_list(struct store *s, const struct workspace_query *query, struct arena *a,
                         struct workspace_list *out, struct err *e);
/* Those with something pending, and those that were being made. */
int store_workspace_unsettled(struct store *s, struct arena *a, struct workspace_list *out,
                              struct err *e);
/* Ready, though they went with a sandbox (LIFE_OWNS_WORK) that is gone, and no other has them. */
int store_workspace_orphaned(struct store *s, struct arena *a, struct workspace_list *out,
                             struct err *e);
/* Those that nobody has used for their time, and are not pinned; in the trash since before. */
int store_workspace_expired(struct store *s, int64_t now_ms, struct arena *a,
                            struct workspace_list *out, struct err *e);
int store_workspace_trashed(struct store *s, int64_t before_ms, struct arena *a,
                            struct workspace_list *out, struct err *e);

/* One row for each stack of more than `most` layers, whoever has it. */
int store_stack_long(struct store *s, uint64_t most, size_t max, struct arena *a,
                     struct workspace_list *out, struct err *e);
/* Whatever lies on `from` lies on `to`, a tree that shows the same: workspaces and points, and the
 * tree is ready; STORE_CONFLICT when it is not there. */
struct stack_change {
	const char *from, *to;
	int64_t tree;
};
int store_stack_replace(struct store *s, const struct stack_change *change, struct store_call call,
                        struct err *e);
