/*
 * decode.h - gzip and zstd, unpacked as they come, with a bound on what may come of it.
 *
 * Here and not by libarchive's filters: those do not look at the checksum of gzip, and cannot say
 * early that a few bytes are about to become terabytes.
 */
#pragma once

#include <zlib.h>
#include <zstd.h>

#include "base/err.h"
#include "wire/span.h"

enum decode_kind {
	DECODE_AUTO, /* as its first bytes say */
	DECODE_PLAIN,
	DECODE_GZIP,
	DECODE_ZSTD,
	DECODE_KINDS
};

/* The next piece, valid until the next call. 1: a piece, 0: the end, -1. */
typedef int decode_source_fn(void *arg, struct span *out, struct err *e);

struct decode {
	enum decode_kind kind;
	decode_source_fn *source;
	void *arg;
	struct span in;  /* of the last piece, not yet used */
	char head[4];    /* the first bytes, when they came one by one */
	size_t head_len; /* that are still to be used */
	uint64_t n_in, n_out;
	z_stream gzip;
	ZSTD_DStream *zstd;
	bool is_begun, is_between, is_source_done; /* between: of members or frames */
	char *out;
};

void decode_open(struct decode *d, enum decode_kind kind, decode_source_fn *source, void *arg);
/* As a source. */
int decode_next(struct decode *d, struct span *out, struct err *e) MUST_USE;
void decode_done(struct decode *d);
