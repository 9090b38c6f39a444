/*
 * census.h - what lies in the store, as its keeper counted it (vault/census.c).
 *
 * The last one is remembered: disk use in lists, bounds and eviction go by it. A look at the disk
 * takes a while, so it is always somewhat old.
 */
#pragma once

#include "core/core.h"

struct census_tree {
	uint64_t num; /* first: they are sorted by it */
	uint64_t bytes, files;
	bool is_sealed, is_half;
};

struct census_volume {
	uint64_t num; /* of the workspace */
	uint64_t bytes;
};

struct census_point {
	uint64_t num;
	uint64_t workspace; /* its number; 0: it cannot be read */
	bool is_broken;
};

/* What the points of a workspace keep. */
struct census_holder {
	uint64_t num;
	uint64_t kept, shared;
};

struct census {
	VEC(struct census_tree) trees;
	VEC(struct census_volume) volumes;
	VEC(struct census_point) points;
	VEC(struct census_holder) holders;
	uint64_t total; /* bytes of all */
	size_t n_strays;
	int64_t taken_ms;
	uint64_t took_ms;
};

/* c NULL: f says why not. Good within the call; it stays core->census until the next one. */
/* Told later, or at once where not even the question can be asked. */
typedef void census_done_fn(void *arg, const struct census *census, const struct fail *f);
void census_take(struct core *c, census_done_fn *done, void *arg);
/* The last one will do, if it is young for the time that it took. */
void census_get(struct core *c, census_done_fn *done, void *arg);
void census_close(struct core *c);

/* Pure: from the keeper's lines. */
void census_read(struct census *out, const char *text, size_t len);
void census_done(struct census *census);

/* NULL: there is none of that number, or no census. */
const struct census_tree *census_tree(const struct census *census, uint64_t num);
const struct census_volume *census_volume(const struct census *census, uint64_t num);
const struct census_point *census_point(const struct census *census, uint64_t num);
const struct census_holder *census_holder(const struct census *census, uint64_t num);

/* Disk use of one workspace, so far as it was counted: its own files and points; and what others
 * may have too: what of its points theirs keep, and the layers that it stands on. */
struct workspace_row;
struct census_use {
	uint64_t top, unique, shared, layers, files; /* shared: with the layers */
	bool is_volume;                              /* files were not counted */
};
struct census_use census_use(const struct census *census, const struct workspace_row *row);
