/*
 * moved.h - directories of the layers that two sides have at different names.
 *
 * A directory is known by its way in the layers; where that lies in each view is looked up, so a
 * directory that was renamed is found whatever else changed in it.
 */
#pragma once

#include "vault/view.h"

struct moved {
	struct span lower, from, to; /* in the arena, or of a manifest of `b` */
};

struct moved_list {
	VEC(struct moved) list;
};

/* None when the sides do not lie on the same layers. */
int moved_find(const struct side *a, const struct side *b, struct arena *arena,
               struct moved_list *out, struct err *e) MUST_USE;
void moved_done(struct moved_list *m);
