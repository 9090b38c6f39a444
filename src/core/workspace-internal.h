/*
 * workspace-internal.h - operations on one workspace, one after the other.
 */
#pragma once

#include "core/vault.h"
#include "core/workspace.h"

/* First member of whatever an operation needs. run() is called when it is its turn; ws_end() lets
 * the next one run, after which the operation is its own to free. fail() instead of run(): there is
 * no keeper, and the operation needs one. */
struct ws_op {
	struct ws_op *next;
	struct wsx *w;
	void (*run)(struct ws_op *o);
	void (*fail)(struct ws_op *o, const struct fail *f); /* it ends here */
	void (*drop)(struct ws_op *o); /* the daemon ends, nobody is told; NULL: it is one piece */
	char actor[ACTOR_SIZE];        /* whose request began it; "": nobody's */
	bool needs_vault;
	bool is_second; /* run() was called before, and the keeper died under it */
};

void ws_add(struct wsx *w, struct ws_op *o);
void ws_add_first(struct wsx *w, struct ws_op *o); /* nothing is under way; it does not run yet */
void ws_end(struct ws_op *o);
void ws_pump(struct wsx *w);
/* The keeper died under the operation that is under way: run() is called again, with the next one,
 * once. False: that is not what happened, or it was the second. */
bool ws_again(struct wsx *w, const struct err *e);

void ws_free(struct wsx *w);
struct wsx *ws_load(struct core *c, const struct workspace_row *row);
struct wsx *ws_by_id(struct core *c, const char *id);        /* of any tenant; NULL */
void ws_text(char **at, const char *text, const char **row); /* a text of the row that changes */

/* Writes what `fields` names; done() is told of failure too, and then the row is as it was. */
typedef void ws_stored_fn(void *arg, const struct fail *f);
void ws_store(struct wsx *w, uint32_t fields, struct workspace_with with, ws_stored_fn *done,
              void *arg);

/* The same, and the disk has it then: what is done next may reach it first. */
void ws_store_durably(struct wsx *w, uint32_t fields, struct workspace_with with,
                      ws_stored_fn *done, void *arg);

void ws_fail(struct fail *f, const struct err *e); /* of the keeper: our own failure, mostly */
void ws_ask(struct wsx *w, const struct vault_packet *p, int fd, vault_done_fn *done, void *arg);
int ws_layers(const char *stack, uint64_t layers[VAULT_LAYERS_MAX]); /* how many; -1 */

/* One of its keepers has died, or cannot be had; the other ends when nobody has its mount. */
void ws_lost(struct wsx *w, struct vault **which, const struct err *e);

/* ---- its root, with `checkpoint: all`: workspace_root.c ---- */
void ws_root_open(struct wsx *w, ws_stored_fn *done, void *arg); /* its row has one */
/* Within an operation: that sandbox may have it. The first makes it. */
void ws_root_attach(struct wsx *w, const struct sbx *s, ws_stored_fn *done, void *arg);
int64_t ws_root_of(const struct wsx *w, int64_t num); /* of that point; 0: the image alone */
/* A sandbox that has the root, and could not go on with that point of it; NULL: none. */
const struct sbx *ws_root_user(const struct wsx *w, int64_t root);
/* Of both keepers, one after the other, where there are two: the sums. */
void ws_ask_both(struct wsx *w, const struct vault_packet *first, const struct vault_packet *second,
                 vault_done_fn *done, void *arg);
void ws_ask_root(struct wsx *w, const struct vault_packet *p, int fd, vault_done_fn *done,
                 void *arg);
/* Nobody has it open: its row gets new tops, which begin with that point. The old ones are trash
 * with the row, and go when it is written: ws_drop_tops(). Returns what is to be written. */
uint32_t ws_new_tops(struct wsx *w, int64_t begins, int64_t root, struct workspace_with *with);
void ws_drop_tops(struct core *c, const struct workspace_with *with);
/* Of the keeper of the store: those that a bounded workspace has. Nobody has it open. */
void ws_remove_volumes(struct wsx *w, vault_done_fn *done, void *arg);

/* Everybody stands still, or nobody does and there is an error. Within an operation. */
void ws_freeze(struct wsx *w, uint32_t lease_ms, void (*done)(struct wsx *w, int error));
void ws_thaw(struct wsx *w);
void ws_freeze_again(struct timer *t);
bool ws_has_users(const struct wsx *w); /* but the sandbox of ours, while it has nothing to do */
/* Nobody can have written since its head was made. */
bool ws_is_at_head(const struct wsx *w);
bool ws_has_processes(const struct wsx *w, struct str *names);

/* What changed since the head becomes a point, within an operation; frozen already. `row` is what
 * was kept, num 0: nothing had changed. It is not on record yet. */
struct ws_kept {
	struct wsx *w;
	struct point_row row;
	int64_t root_files; /* of row.files */
	char id[ID_SIZE];
	void (*done)(void *arg, struct ws_kept *k, const struct fail *f);
	void *arg;
};
void ws_keep(struct ws_kept *k, struct wsx *w, const struct wsx_point_ask *ask);
void ws_keep_found(struct wsx *w); /* before anything else is done */
/* Those points are no more, the newest first: the row names others. 1: done() will be told. */
int wsx_forget_points(struct core *c, const struct workspace_row *row,
                      const struct point_list *lost, ws_stored_fn *done, void *arg);
/* Records that points up to `num` are on disk; done (or NULL) when that record is, too. */
int ws_harden(struct wsx *w, int64_t num, ws_stored_fn *done, void *arg, struct err *e) MUST_USE;
void ws_sync_soon(struct wsx *w, int64_t num);
void ws_redo_pending(struct wsx *w, ws_stored_fn *done, void *arg); /* the keeper is there */
void ws_forget_pending(struct wsx *w);
bool ws_is_cut_short(const struct workspace_row *row); /* what is pending was not done */
/* For workspace_row.pending of one with a new top; the caller frees it. */
char *ws_unsynced_text(const struct core *c);
/* Within an operation: our own sandbox is ended, and the keeper; `busy` while others have it,
 * unless they are to go too. */
void ws_shut(struct wsx *w, bool is_forced, ws_stored_fn *done, void *arg);
void ws_close(struct wsx *w); /* as an operation of its own */
void ws_close_then(struct wsx *w, wsx_done_fn *done, void *arg);
bool ws_is_idle(const struct wsx *w); /* closed, and nobody is about to open it */
void ws_end_sandboxes(struct wsx *w);
void ws_sync_fired(struct timer *t);
struct attach_op;
void ws_forget_attach(struct attach_op *o); /* who waited is gone; NULL is fine */
