/*
 * sides.h - two points of a workspace as views (vault/view.h): checkpoints, now, or the empty top.
 */
#pragma once

#include "vault/view.h"

struct sides {
	struct manifest points[2]; /* what it had to look up */
	struct side at[2];
	int other_fd; /* layers that are mounted for this alone; -1: none */
};

/* VAULT_NOW is looked at now; 0 is what the layers say. */
int sides_open(struct vault *v, uint64_t from, uint64_t to, struct sides *out,
               struct err *e) MUST_USE;
/* Of two that are there already; borrowed. */
int sides_of(struct vault *v, const struct manifest *from, const struct manifest *to,
             struct sides *out, struct err *e) MUST_USE;
/* The first side is what is there now, and is looked at again. */
int sides_look_again(struct vault *v, struct sides *s, struct err *e) MUST_USE;
void sides_done(struct sides *s);
