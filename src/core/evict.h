/*
 * evict.h - who goes when the store holds too much. Pure: a list of all that is there, each with
 * what is known of it, and for each one a decision with its reason.
 *
 * Nothing that can be had only once is ever on the way out. The files of a workspace that is closed
 * are there twice: as its top, and in the blobs of its last point; without the top it is the same
 * workspace, and its next use makes one again. A checkout is made again from its mirror.
 */
#pragma once

#include "base/base.h"
#include "spec/config.h"

enum evict_kind {
	EVICT_TRASH,  /* a workspace whose time in the trash is over: it goes for good */
	EVICT_LAYER,  /* a checkout that no workspace and no point lies on */
	EVICT_TOP,    /* the files of a workspace; it stays */
	EVICT_POINTS, /* that no history leads through */
	EVICT_KINDS
};
const char *evict_kind_name(enum evict_kind kind); /* "trash", "checkout", "files", "points" */

struct evict_item {
	enum evict_kind kind;
	char id[64], key[132]; /* ws_…, or what it is */
	uint64_t num;
	uint64_t bytes;
	int64_t used_ms;
	bool is_pinned, is_trashed, is_open, is_changed;
	bool is_closed; /* in order: what it is, is its last point; else it is made so first */
	bool is_saved;  /* and that one is on disk, and can be read */

	bool is_going;
	const char *why;
	const char *failed; /* it was to go, and did not; the asker's */
};

struct evict_marks {
	uint64_t used, max, high, low; /* bytes; max 0: no bound */
};
struct evict_marks evict_marks(const struct config_store *config, uint64_t used);

/* Sets is_going and why of each; returns how many bytes would be free then. */
uint64_t evict_plan(struct evict_item *items, size_t n, const struct evict_marks *marks);
