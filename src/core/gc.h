/*
 * gc.h - room in the store: what is over goes, and when it holds too much, what can be had again
 * (evict.h). Asked for, or by itself where the operator set a bound.
 */
#pragma once

#include "core/evict.h"
#include "core/workspace.h"

struct gc_report {
	bool is_dry;
	struct evict_marks marks;
	const struct evict_item *items;
	size_t n;
	uint64_t freed; /* or would be */
};

typedef void gc_done_fn(void *arg, const struct gc_report *report, const struct fail *f);
void gc_run(struct core *c, bool is_dry, gc_done_fn *done, void *arg);

/* May there be another workspace? By the last census. */
int gc_admit(const struct core *c, struct fail *f) MUST_USE;
/* `quota` for one that was found to have more than it may, where no volume holds it. */
int gc_check_workspace(const struct wsx *w, struct fail *f) MUST_USE;

void gc_look(struct core *c); /* now and then */
void gc_close(struct core *c);
