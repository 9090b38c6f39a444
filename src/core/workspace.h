/*
 * workspace.h - one workspace in the daemon's memory: there while somebody works with it.
 *
 * Its row (store/workspaces.h) is the truth, and this object its only writer. Its files are behind
 * a keeper (vault.h) that holds the one mount of it; sandboxes are attached to that, and come and
 * go. What changes the tree or the row is an operation; those of one workspace run one after the
 * other, in the order they were asked for (workspace-internal.h).
 *
 *   open      row: not clean ─▷ keeper ─▷ what was pending is done again
 *   point     sandboxes frozen ─▷ keeper copies what changed ─▷ thawed ─▷ row; synced later
 *   restore   point ─▷ row: pending ─▷ keeper writes back, frozen ─▷ row ─▷ thawed
 *   close     point ─▷ synced ─▷ keeper ends ─▷ row: clean
 *
 * A keeper that dies loses nothing: the tree is on disk as it is. The sandboxes that have its mount
 * are ended, because the next keeper makes another one.
 */
#pragma once

#include "core/sandbox.h"
#include "store/workspaces.h"

#define WORKSPACE_FOLDER "/work" /* where the file workers of a workspace have their root */

struct changed;
struct vault;
struct ws_op;
struct ws_waiter;

enum wsx_link { WSX_CLOSED, WSX_OPENING, WSX_OPEN, WSX_CLOSING };

struct wsx {
	struct roster_entry entry; /* first; the key is row.id */
	struct core *core;
	struct arena arena;       /* of texts of the row that never change */
	struct workspace_row row; /* as it is on record, or about to be */
	char *stack, *ahead, *pending, *spec, *reason;

	struct vault *vault;
	struct vault *root; /* the keeper of its root, where it has one (workspace_root.c) */
	void (*root_done)(void *arg, const struct fail *f); /* it is being opened */
	void *root_arg;
	enum wsx_link link;
	struct sbx *attached; /* whoever has its mount; sbx.next_attached */
	struct sbx *service;  /* one of them, ours: for requests about files */
	struct ws_waiter *service_waiters, *default_waiters;
	bool is_service_due, is_default_due;
	bool has_sandboxes; /* at our end: some live on with its mount */
	bool is_finding;    /* what it holds then becomes a point */
	bool is_doubtful;   /* at the last opening: nobody had said that it is at its head */
	bool is_found; /* after a restart of ours: the keeper of those who are attached may live */
	struct changed *changes; /* lists of files that the keeper makes (changed.h) */
	struct ws_op *first, **last;
	bool is_busy;  /* the first operation is under way */
	bool is_again; /* it begins anew when the keeper is known to be dead */
	bool is_kept;  /* it was at its head when nobody was there, and nobody came since */
	unsigned int refs;
	bool is_scratch;                 /* nobody will want it out of the trash */
	uint64_t held_files, held_bytes; /* of its top, when it was counted last (reserve.h) */
	struct timer idle, sync;
	int64_t unsynced;   /* the last point that may not be on disk; 0: none */
	size_t n_hardening; /* records that points are on disk, on their way there themselves */
	int64_t hard_num;   /* up to this point they have arrived */

	struct { /* sandboxes that stand still for the operation under way */
		size_t n_waiting;
		int error;
		void (*done)(struct wsx *w, int error);
		struct timer again; /* they stand as long as it takes, and as we live */
		uint32_t lease_ms;
	} freeze;
};

/* It would survive a loss of power, and so would the record that says so. */
struct point_row;
bool wsx_is_durable(const struct wsx *w, const struct point_row *row);

typedef void wsx_done_fn(void *arg, struct wsx *w, const struct fail *f); /* f NULL: it worked */

/* By id or key; of another tenant, in the trash or gone is not found. Good until the loop's next
 * turn, or with a reference. */
struct wsx *wsx_find(struct core *c, const char *tenant, const char *name, struct fail *f);
void wsx_ref(struct wsx *w);
void wsx_unref(struct wsx *w);

#define WSX_LAYERS_MAX 2
struct wsx_ask {
	const char *tenant, *key;
	const char *mode;      /* NULL: edit */
	const char *spec_text; /* of the default sandbox; NULL: {} */
	const char *repo, *base, *base_commit, *branch;
	uint64_t layers[WSX_LAYERS_MAX]; /* sealed trees below its top, the uppermost first */
	size_t n_layers;                 /* 0: empty */
	uint64_t ttl_ms, disk_bytes, inodes;
	bool is_pinned;
};
/* Only a row: there is nothing on disk before it is opened. `exists` with a key that is taken. */
int wsx_create(struct core *c, const struct wsx_ask *ask, wsx_done_fn *done, void *arg,
               struct fail *f) MUST_USE;

/* ---- life: workspace_life.c ---- */

/* {"pin":…} and so on; the fields that are there. */
struct wsx_life {
	bool has_pin, is_pinned, has_ttl;
	uint64_t ttl_ms;
	const char *spec_text;
};
int wsx_change(struct wsx *w, const struct wsx_life *life, wsx_done_fn *done, void *arg,
               struct fail *f) MUST_USE;
/* To the trash. `busy` with sandboxes, `conflict` when it has changed; unless by force, which ends
 * the sandboxes. */
int wsx_delete(struct wsx *w, bool is_forced, wsx_done_fn *done, void *arg,
               struct fail *f) MUST_USE;
int wsx_untrash(struct core *c, const char *tenant, const char *id, wsx_done_fn *done, void *arg,
                struct fail *f) MUST_USE;
/* Of ours: gone for ever, soon. Takes the reference. */
void wsx_discard(struct wsx *w);
bool wsx_is_dirty(const struct wsx *w); /* it is not what it began as */

struct wsx_forks {
	size_t n;
	const char *key; /* NULL, or: of the only one; "key-1", … of several */
	const char *at;  /* NULL: as it is now; else a point (wsx_point) */
	uint64_t ttl_ms; /* 0: that of the workspace */
	bool is_scratch; /* by the daemon, for what is on record itself: this is not */
	bool is_ours;    /* for a moment, by the daemon: no quota counts */
	bool is_bare;    /* of its files alone: the root that it keeps is not theirs */
};
/* The new ones are `ids`, n of them. */
typedef void wsx_forked_fn(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f);
int wsx_fork(struct wsx *w, const struct wsx_forks *forks, wsx_forked_fn *done, void *arg,
             struct fail *f) MUST_USE;

/* ---- points: workspace_point.c, workspace_undo.c ---- */

/* id "": nothing had changed, and there is no new one. */
typedef void wsx_point_fn(void *arg, struct wsx *w, const struct point_row *point,
                          const struct fail *f);
struct wsx_point_ask {
	enum point_kind kind;
	const char *label, *process; /* or NULL */
	bool is_start; /* of a sandbox: what came into its root is not its user's doing */
};
/* Copied. A snapshot is made even when nothing has changed, and is on disk when it is told. */
void wsx_point(struct wsx *w, const struct wsx_point_ask *ask, wsx_point_fn *done, void *arg);
/* After whatever is under way or waits. */
void wsx_settle(struct wsx *w, wsx_done_fn *done, void *arg);
bool wsx_wants_point(const struct sbx *s); /* when something ended that may have written */

/* "cp_…", "sn_…", "px_…" (when it had ended), "base", "head", "origin" (of a fork: what it began
 * as). num 0: the tree without any change.
 */
int wsx_point_find(struct wsx *w, const char *name, struct arena *a, struct point_row *out,
                   struct fail *f) MUST_USE;

size_t wsx_steps_ahead(const struct wsx *w); /* that can be redone */

enum wsx_way { WSX_UNDO, WSX_REDO, WSX_RESTORE };
struct wsx_restore {
	enum wsx_way way;
	uint64_t steps; /* UNDO, REDO; 0: 1 */
	const char *to; /* RESTORE: a point. UNDO: a process, that one and all after it */
	bool may_end;   /* processes that are in the way */
};
struct wsx_restored {
	int64_t from, to; /* numbers of points */
	uint64_t files;
};
typedef void wsx_restored_fn(void *arg, struct wsx *w, const struct wsx_restored *r,
                             const struct fail *f);
void wsx_restore(struct wsx *w, const struct wsx_restore *ask, wsx_restored_fn *done, void *arg);

/* ---- looking: workspace_look.c ---- */

/* What differs between two points, as lines of JSON in a file (wire/vault.h). The callee closes
 * nothing. */
struct wsx_between {
	const char *from, *to; /* to NULL: now */
	bool is_plain;         /* nothing was renamed: it is gone, and something came */
	bool is_root;          /* of the root that it keeps, not of its files */
};
typedef void wsx_changes_fn(void *arg, struct wsx *w, int fd, const struct fail *f);
int wsx_changes(struct wsx *w, const struct wsx_between *between, wsx_changes_fn *done, void *arg,
                struct fail *f) MUST_USE;
struct wsx_usage {
	uint64_t bytes, files; /* of its top */
	uint64_t kept, shared; /* in its points, each content once; of that also in others' */
};
typedef void wsx_usage_fn(void *arg, struct wsx *w, const struct wsx_usage *u,
                          const struct fail *f);
void wsx_usage(struct wsx *w, wsx_usage_fn *done, void *arg);

/* The sandbox of ours that requests about files go to; started when it is not there. */
void wsx_service(struct wsx *w, sbx_done_fn *done, void *arg);
/* The one that commands run in by default. `client_fd`: whose host paths, or -1. */
void wsx_default(struct wsx *w, int client_fd, sbx_done_fn *done, void *arg);

/* ---- for sandbox.c, process.c, files.c, core.c, expire.c ---- */

/* `checkpoint: all`: its root is the workspace's, and `tree` is the image of that. */
bool wsx_wants_root(const struct sbx *s);
int wsx_check_root(const struct sbx *s, int64_t *tree, struct fail *f) MUST_USE;
/* Before the walls are built: the mount is there, and this sandbox is going to have it. */
void wsx_attach(struct wsx *w, struct sbx *s, wsx_done_fn *done, void *arg);
void wsx_detach(struct sbx *s);                /* fine when it is not attached */
void wsx_adopt(struct sbx *s, const char *id); /* at start: it may have the mount */
void wsx_on_frozen(struct sbx *s, int error);  /* asked for by freeze */
void wsx_recover(struct core *c);              /* at start, after the sandboxes were found */
void wsx_end_orphans(struct core *c);          /* at start: LIFE_OWNS_WORK, and that is gone */
void wsx_look(struct core *c);                 /* now and then: what is over, trash, old points */
void wsx_end_trash(struct core *c);            /* whose time there is over */
bool wsx_may_rest(const struct wsx *w);        /* nobody works with it, though it may be open */
/* Its files go; its next use makes them again from its last point. One that is not closed in order
 * is, and what it is becomes a point; of others that is on disk: the caller has looked. */
void wsx_evict(struct wsx *w, wsx_done_fn *done, void *arg);
/* The same for one whose files are gone already. */
void wsx_begin_again(struct wsx *w, wsx_done_fn *done, void *arg);
void wsx_close_all(struct core *c);
