/*
 * hash.h - SHA-256 of what a file holds; it is the file's version in the API.
 *
 * OpenSSL's own routine without the rest of that library: no providers, no configuration file,
 * 14 KiB, and the processor's instructions for it where there are some.
 */
#pragma once

#include "wire/span.h"
#include "wire/tree.h"

#define HASH_BYTES 32

struct hash {
	uint64_t state[16]; /* holds a SHA256_CTX */
};

void hash_init(struct hash *h);
void hash_add(struct hash *h, struct span bytes);
void hash_bytes(struct hash *h, uint8_t out[HASH_BYTES]);
void hash_text(struct hash *h, char out[TREE_HASH_TEXT]);
void hash_of(struct span bytes, char out[TREE_HASH_TEXT]);
