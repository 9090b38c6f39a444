/*
 * zip.h - zip archives as APPNOTE.TXT has them, by their central directory; stored and deflated
 * entries. Refused: encryption, more than one disk, Zip64 (more than 65534 entries, or 4 GiB).
 * Numbers are checked for their ranges, and against the size of the file by who reads there.
 */
#pragma once

#include "base/err.h"
#include "wire/span.h"

#define ZIP_TAIL_MAX (22u + 65535u) /* the end record, and the longest comment behind it */
#define ZIP_CENTRAL_BYTES 46u
#define ZIP_LOCAL_BYTES 30u

struct zip_end {
	uint32_t entries;
	uint64_t at, len; /* of the central directory */
};

enum zip_method { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_entry {
	struct span name; /* in the directory; a folder ends with a slash */
	enum zip_method method;
	uint32_t crc;
	uint64_t packed, size;
	uint64_t at; /* of its local head */
};

/* The last bytes of a file of `size` bytes. */
int zip_end(struct span tail, uint64_t size, struct zip_end *out, struct err *e) MUST_USE;
/* The next entry of the central directory, which shrinks from its front. 1, 0 at the end, -1. */
int zip_next(struct span *directory, struct zip_entry *out, struct err *e) MUST_USE;
/* From the ZIP_LOCAL_BYTES of its local head: how many bytes later its content begins. */
int zip_local(const void *head, struct err *e) MUST_USE;
