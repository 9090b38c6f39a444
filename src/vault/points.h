/*
 * points.h - checkpoints on disk: blobs/p/NUMBER.
 *
 * Each says what differs from the one before of the same top, and now and then one says all; so a
 * history of thousands stays small, and reading one is bounded. Who writes or removes holds the
 * lock of the blobs (vault/blob.h).
 */
#pragma once

#include "vault/manifest.h"
#include "vault/vault-internal.h"

#define POINTS_CHAIN_MAX 32

int points_open(struct vault *v, struct err *e) MUST_USE;             /* once */
int points_lock(const struct vault *v, struct err *e) MUST_USE;       /* shared */
int points_lock_alone(const struct vault *v, struct err *e) MUST_USE; /* waits for all others */
void points_unlock(const struct vault *v);

/* Another vault may have removed a checkpoint, or set it aside, since this one has seen it. */
bool points_has(const struct vault *v, uint64_t number);
/* 0 is the empty one. `out` is replaced on success. */
int points_load(const struct vault *v, uint64_t number, struct manifest *out,
                struct err *e) MUST_USE;
/* As what differs from `before`, when that is worth it (NULL: all of it). Sets m->base, m->chain.
 */
int points_save(const struct vault *v, struct manifest *m, const struct manifest *before,
                struct err *e) MUST_USE;

/* Every checkpoint of every workspace. A broken one has no bytes, and `why` says so. */
typedef int points_each(void *ctx, uint64_t number, struct span bytes, const struct err *why);
int points_all(const struct vault *v, points_each *f, void *ctx, struct err *e) MUST_USE;
int points_remove(const struct vault *v, uint64_t number, struct err *e) MUST_USE;
