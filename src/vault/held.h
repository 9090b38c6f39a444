/*
 * held.h - which blobs the checkpoints hold.
 */
#pragma once

#include "vault/blob.h"
#include "vault/points.h"

struct held {
	uint8_t hash[BLOB_HASH];
	uint64_t size;
	bool is_own, is_others; /* held by checkpoints of the workspace that is open; of others */
};

struct held_list {
	VEC(struct held) list; /* sorted by hash, each once */
	VEC(uint64_t) broken;  /* checkpoints that cannot be read */
	uint64_t own_workspace;
};

int held_find(const struct vault *v, struct held_list *out, struct err *e) MUST_USE;
bool held_has(const struct held_list *l, const uint8_t hash[BLOB_HASH]);
void held_done(struct held_list *l);
