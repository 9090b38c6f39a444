/*
 * fill.h - tops as they lie on disk, from a checkpoint or empty.
 */
#pragma once

#include "vault/manifest.h"
#include "vault/vault-internal.h"

struct fill {
	uint64_t top, from; /* from 0: empty */
	const uint64_t *layers;
	uint32_t n_layers;
};

/* 1: made now, 0: it was there. A checkpoint must have lain on these layers. */
int fill_top(const struct vault *v, const struct fill *f, struct err *e) MUST_USE;
/* Everything of `m` into an empty folder. */
int fill_tree(const struct vault *v, int files_fd, const struct manifest *m,
              struct err *e) MUST_USE;
