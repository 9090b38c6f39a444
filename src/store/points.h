/*
 * points.h - the rows of points: states of a workspace's top that were kept.
 *
 * The vault knows a point by its number, `num`; what it holds is relative to the stack below the
 * top. Several rows may have one number: a snapshot of what a command left has its own id and
 * label. `before` is the number of the point that it follows; so the rows are a tree, and a
 * workspace's history is the way from its head to where that begins. A fork goes on from a point of
 * its parent's.
 *
 * Where the workspace has a root of its own (workspaces.h), each point is two for the vault: `root`
 * is the number of the other, which has the same rows and goes with it.
 *
 * A row is written when the vault has made the point, which survives the end of any process. Power
 * is another matter: until `durable` it may be lost with the host, and its row is then no good.
 */
#pragma once

#include "store/store.h"

#define POINT_STACK_MAX 4096 /* bytes of JSON: VAULT_LAYERS_MAX numbers */

enum point_kind { POINT_AUTO, POINT_SNAPSHOT, POINT_UNDO, POINT_KIND_COUNT };
const char *point_kind_name(enum point_kind kind); /* "auto", "snapshot", "undo" */

struct point_row {
	int64_t seq;    /* order of birth; given by the store */
	const char *id; /* "cp_…", of a snapshot "sn_…" */
	const char *tenant;
	const char *node; /* NULL at insert: this store's */
	const char *workspace;
	int64_t num, before;
	int64_t root;      /* 0: there was no root, or nothing was written to it yet */
	const char *stack; /* JSON, as in workspaces.h */
	enum point_kind kind;
	const char *label;
	const char *process; /* the one whose end it is, or a sandbox whose start; or NULL */
	int64_t created_ms;
	int64_t files, bytes; /* how many differ from the one before; newly kept */
	int64_t durable;
	const char *boot_id;
};

struct point_list {
	struct point_row *rows;
	size_t n;
	const char *next; /* cursor, or NULL at the end */
};

/* By id; by the process whose end it is. */
int store_point_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                    struct point_row *out, struct err *e);
int store_point_by_process(struct store *s, const char *tenant, const char *process,
                           struct arena *a, struct point_row *out, struct err *e);
/* The first row with that number. */
int store_point_by_num(struct store *s, int64_t num, struct arena *a, struct point_row *out,
                       struct err *e);
/* From that number back, one row for each, at most `max`. */
int store_point_chain(struct store *s, int64_t num, size_t max, struct arena *a,
                      struct point_list *out, struct err *e);
/* Of one workspace. */
int store_point_list(struct store *s, const char *workspace, const struct store_page *page,
                     struct arena *a, struct point_list *out, struct err *e);

/* Of all workspaces, in order of birth, STORE_LIST_MAX at a time. */
int store_point_after(struct store *s, int64_t seq, struct arena *a, struct point_list *out,
                      struct err *e);

/* All of that workspace with a number up to this are on disk. */
int store_point_durable(struct store *s, const char *workspace, int64_t num, struct store_call call,
                        struct err *e);
/* Those of another boot that may not have reached the disk. */
int store_point_volatile(struct store *s, const char *boot_id, struct arena *a,
                         struct point_list *out, struct err *e);
/* Numbers that no workspace needs any more: not in the history of one that is there, nor ahead of
 * it, nor a snapshot of one. At most `max` rows. */
int store_point_useless(struct store *s, size_t max, struct arena *a, struct point_list *out,
                        struct err *e);
int store_point_drop(struct store *s, int64_t num, struct store_call call,
                     struct err *e); /* every row of it */
/* The same, and those that follow it follow the one before it. */
int store_point_cut(struct store *s, int64_t num, struct store_call call, struct err *e);
