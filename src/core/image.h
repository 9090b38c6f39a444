/*
 * image.h - images: names of a tenant's for root file systems that were imported (spec `image`).
 *
 * An image is one sealed tree (core/trees.h). It comes of an archive that a client sends; a file
 * worker unpacks it (TREE_IMAGE of wire/tree.h) in a sandbox of ours that has nothing but the new
 * tree, and no network. Nothing of the archive is looked at here: its bytes go through.
 *
 *   name is free ─▷ tree ─▷ sandbox ─▷ worker takes the body ─▷ sandbox gone ─▷ sealed ─▷ named
 *
 * Or of what a sandbox left in a root that its workspace keeps: image_snapshot.c.
 *
 * Whatever fails, or a client that leaves, removes the tree. A name that is given to another tree
 * leaves the old one to the sandboxes that have it; images_sweep() removes it after the last.
 */
#pragma once

#include "core/sandbox.h"
#include "store/images.h"

#define IMAGE_BYTES_MAX (16ull << 30)  /* of one, unpacked: as TREE_STREAM_MAX of files */
#define IMAGE_RESERVE_MAX (1ull << 30) /* that a disk keeps free; a small one its 20th part */
#define IMAGE_IMPORTS_MAX 4            /* at a time: each has a sandbox, and the disk is one */

struct image_import;

struct image_ask {
	const char *tenant, *name;
	const char *ref; /* of a layout: the name of the image in it, or NULL */
	bool is_oci, is_replace;
};

/* Of whoever sends the body. None of them comes from within a call to here. */
struct image_owner {
	void (*room)(void *arg); /* more of the body may be given */
	/* It is over: one of both is NULL. The import is freed behind it. */
	void (*done)(void *arg, const struct image_row *row, const struct fail *f);
	void *arg;
};

struct image_import *image_import(struct core *c, const struct image_ask *ask,
                                  struct image_owner owner, struct fail *f) MUST_USE;
/* The next piece, of TREE_PIECE_MAX bytes at most. False: not now, room() tells. */
bool image_import_body(struct image_import *im, const void *bytes, size_t n, bool is_last);
/* The owner has left: it is told nothing more. */
void image_import_cancel(struct image_import *im);

/* Of the root of a workspace's sandboxes (`checkpoint: all`), as it is or was at a point. Of `ask`
 * name and is_replace count. The row is good within the call. */
#define IMAGE_SNAPSHOT "snapshot" /* its source; its digest is the id of the point then */
typedef void image_made_fn(void *arg, const struct image_row *row, const struct fail *f);
int image_snapshot(struct wsx *w, const struct image_ask *ask, const char *point,
                   image_made_fn *done, void *arg, struct fail *f) MUST_USE;

/* May it have that name? */
int image_check(struct core *c, const struct image_ask *ask, struct fail *f) MUST_USE;
/* Refused while a sandbox has it, or the root of a workspace is of it: `busy`. */
int image_remove(struct core *c, const char *tenant, const char *name, struct store_call call,
                 struct fail *f) MUST_USE;
/* `busy` while a sandbox has it; one that is not there is used by nobody. */
int image_check_unused(struct core *c, const char *tenant, const char *name,
                       struct fail *f) MUST_USE;
/* Of ours: its name goes. Refused while a sandbox has it; roots of workspaces keep its tree. */
int image_retire(struct core *c, const char *tenant, const char *name, struct fail *f) MUST_USE;
int image_find(struct core *c, const char *tenant, const char *name, struct arena *a,
               struct image_row *out, struct fail *f) MUST_USE;

/* ---- for sandboxes ---- */
/* Sets s->image_tree by what its spec names now; 0 when that is no imported image. */
int image_resolve(struct sbx *s, struct fail *f) MUST_USE;
/* A user of its image by name, as plan_ids(). */
int image_ids(const struct sbx *s, const char *user, uint32_t *uid, uint32_t *gid,
              struct err *e) MUST_USE;

/* ---- for core.c ---- */
void images_sweep(struct core *c); /* what has no name and no sandbox */
void images_close(struct core *c); /* imports are forgotten; the next start removes their trees */
/* Is the tree that of an import, or of a snapshot, under way? */
bool image_is_coming(const struct core *c, uint64_t tree);
bool image_is_taken(const struct core *c, uint64_t tree);
void image_takings_close(struct core *c);
