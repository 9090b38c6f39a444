/*
 * pack.h - what one checkpoint found new, in one file until there is time to make blobs of it.
 *
 * A file of its own for each content costs more than the content; whoever works in the sandbox is
 * stopped meanwhile. So small ones are written one behind the other: blobs/k/NUMBER, named after
 * the checkpoint, there before that is. When nobody asks for anything they become blobs, a few at a
 * time, and the pack goes. A pack that somebody left is unpacked by whoever finds it: all steps can
 * be done twice.
 */
#pragma once

#include "vault/vault-internal.h"

#define PACK_MAX (256u << 10) /* a larger content becomes a blob at once */

int pack_open(struct vault *v, struct err *e) MUST_USE; /* once: the folder */
int pack_load(struct vault *v, struct err *e) MUST_USE; /* what a vault of this workspace left */

/* For one checkpoint: contents, then pack_commit() or pack_drop(). */
bool pack_has(const struct vault *v, const uint8_t hash[32]);
int pack_add(struct vault *v, const uint8_t hash[32], const void *bytes, size_t n,
             struct err *e) MUST_USE;
int pack_commit(struct vault *v, uint64_t number, struct err *e) MUST_USE;
void pack_drop(struct vault *v);

/* Where a content lies in the packs of this workspace, or of any: 1, a descriptor and a place. */
int pack_find(const struct vault *v, const uint8_t hash[32], int *fd, uint64_t *at,
              struct err *e) MUST_USE;

/* Makes some blobs; 1 while there are more. */
int pack_unpack_some(struct vault *v, struct err *e) MUST_USE;
/* Everybody's. */
int pack_unpack_all(struct vault *v, struct err *e) MUST_USE;
void pack_done(struct vault *v);
