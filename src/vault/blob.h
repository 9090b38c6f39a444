/*
 * blob.h - what files held, by its hash.
 *
 * A file is cut into pieces of 64 KiB. Its name is the SHA-256 of its size and of every piece that
 * is not all zeros, with its place: so a file with holes is named, kept and copied at the price of
 * what it holds, and verified whatever holes the copy has. On disk: blobs/XX/REST. A blob appears
 * whole, by rename(2), and a small one is on disk before. Whoever keeps one holds the shared lock
 * of the blobs until a checkpoint names it (vault/points.h), and makes it young: the sweep removes
 * only what is old.
 */
#pragma once

#include "vault/vault-internal.h"

#define BLOB_HASH 32
#define BLOB_PATH_MAX 72

/* Where a content can be read: from this place on. */
struct content {
	int fd; /* -1: nowhere */
	uint64_t at;
};
void content_done(struct content *c);

void blob_path(const uint8_t hash[BLOB_HASH], char out[BLOB_PATH_MAX]);
int blob_hash(struct content from, uint64_t size, uint8_t hash[BLOB_HASH], struct err *e) MUST_USE;

/* Keeps what `fd` holds. *kept grows by its bytes unless they were there already. */
int blob_keep(struct vault *v, int fd, uint64_t size, uint8_t hash[BLOB_HASH], uint64_t *kept,
              struct err *e) MUST_USE;
/* From a pack; fine when it is there already. At most PACK_MAX bytes. */
int blob_make(const struct vault *v, const uint8_t hash[BLOB_HASH], int fd, uint64_t at, size_t n,
              struct err *e) MUST_USE;

/* All that was kept until now is on disk. */
void blob_synced(struct vault *v);

int blob_open(const struct vault *v, const uint8_t hash[BLOB_HASH], struct content *out,
              struct err *e) MUST_USE;
/* Fails when it does not hold what its name says: a disk, or somebody, changed it. */
int blob_check(struct content from, uint64_t size, const uint8_t hash[BLOB_HASH],
               struct err *e) MUST_USE;

/* What is copied: `hash` says what it must be; NULL when nobody knows. */
struct blob_source {
	struct content from;
	uint64_t size;
	const uint8_t *hash;
};
/* Into a file that is empty; holes stay holes. Small contents are judged before a byte is written,
 * large ones while they are. */
int blob_copy(struct blob_source source, int to_fd, struct err *e) MUST_USE;
/* Over the `old_size` bytes that are there. A file that is never empty in between is not flushed
 * when it is closed (ext4, auto_da_alloc), and keeps its blocks. */
int blob_copy_over(struct blob_source source, int to_fd, uint64_t old_size, struct err *e) MUST_USE;
