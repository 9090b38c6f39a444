/*
 * trees.h - folders of the store (wire/vault.h, store/trees.h): numbers, and the life of those that
 * are nobody's top.
 *
 *   tree_make    a row, then an empty folder; mounted writable while it is filled
 *   tree_seal    it never changes again, is on disk, and may be a layer or an image
 *   tree_keep    it is ready and stays writable: a mirror
 *   tree_remove  trash, then gone
 *
 * What is neither sealed nor kept when a daemon starts is removed.
 */
#pragma once

#include "core/vault.h"
#include "store/workspaces.h"

/* A number that nothing in this store ever had: of a tree, a point, a workspace. */
uint64_t trees_number(struct core *c);

struct tree_new {
	const char *tenant;
	const char *kind;  /* "repo", "checkout", "layer", "image" */
	const char *owner; /* who needs it: rp_…, ws_…, the name of an image */
	const char *key;   /* once for each owner and kind (`exists`), or NULL */
};

/* f NULL: it worked. Always later, never from within the call. */
typedef void tree_done_fn(void *arg, uint64_t num, const struct fail *f);

void tree_make(struct core *c, const struct tree_new *from, tree_done_fn *done, void *arg);
void tree_seal(struct core *c, uint64_t num, tree_done_fn *done, void *arg);
void tree_keep(struct core *c, uint64_t num, tree_done_fn *done, void *arg);
/* `num` and `filled` were made by tree_make(); `num` becomes what one saw with checkpoint `from`
 * over `layer`, and is to be sealed; `filled` is of no use then. Without `from` it is the layer. */
struct tree_flat {
	uint64_t num, layer, from, filled;
};
typedef void tree_flat_fn(void *arg, uint64_t files, uint64_t bytes, const struct fail *f);
void tree_flatten(struct core *c, const struct tree_flat *how, tree_flat_fn *done, void *arg);
/* In the background; nobody mounts it any more. */
void tree_remove(struct core *c, uint64_t num);

/* The keeper of the store is asked, as in vault.h. */
void trees_ask(struct core *c, const struct vault_packet *p, int fd, vault_done_fn *done,
               void *arg);

/* Points that no history needs any more, some of them. */
void trees_drop_points(struct core *c, size_t max);

/* After a loss of power: what the keeper has of that workspace behind these points (0: any) is half
 * written, or nobody knows of it. */
struct trees_last {
	int64_t num, root;
};
void trees_drop_after(struct core *c, const struct workspace_row *owner, struct trees_last last);

bool trees_are_idle(const struct core *c); /* nothing is on its way */
uint64_t trees_next(const struct core *c); /* the next number, without taking it */
/* Numbers up to this one are taken: true when that is news. */
bool trees_skip(struct core *c, uint64_t num);

/* ---- for core.c ---- */
int trees_open(struct core *c, struct err *e) MUST_USE;
void trees_recover(struct core *c); /* what was under way is removed */
void trees_close(struct core *c);
