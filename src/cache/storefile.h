/*
 * storefile.h - the file of one entry: [body][claims][json][footer].
 */
#pragma once

#include "cache/store.h"

/* One text line; at the end of the file. */
#define FOOTER_SIZE 39 /* "%016llu %010zu %010zu\n": hits, bytes of claims, bytes of json */
#define HEADER_MAX (32u << 10)

/* Everything behind the body; `claims` NULL: none. How many bytes the claims are. */
size_t storefile_print(const struct entry *n, const store_claims *claims, struct str *out);
/* What of it was said is put into the entry, its claims are added to `claims`. */
int storefile_read(int fd, struct entry *n, store_claims *claims, struct err *e) MUST_USE;
/* The place of the hits in a file of this size. */
static inline off_t storefile_hits_at(off_t size)
{
	return size - FOOTER_SIZE;
}
