/*
 * output.h - what a process wrote, read from its log (wire/log.h) in large pieces.
 *
 * A log may hold millions of tiny frames and is up to `max_log` long, so nothing here reads all of
 * one in a single turn of the loop: a scan stops after SCAN_TURN bytes and goes on where it was.
 */
#pragma once

#include "base/err.h"
#include "io/log.h"
#include "wire/keep.h"

#define SCAN_BLOCK (256u << 10)
#define SCAN_TURN (4u << 20)

struct scan {
	int fd;           /* borrowed */
	uint64_t at;      /* the next frame */
	size_t part;      /* bytes of it that were taken already */
	uint64_t skipped; /* bytes of the hole that was stepped over before the last frame */
	unsigned char *block;
	uint64_t block_at;
	size_t block_len;
};

struct scan_piece {
	enum log_stream stream;
	uint64_t ms;
	const unsigned char *bytes; /* in the scan's block: until the next call */
	size_t len;
	uint64_t seq; /* `after` that continues behind it */
};

/* After any position that a piece or a part of one had; 0: from the beginning. A position inside a
 * frame is found by walking there. */
void scan_init(struct scan *s, int fd, uint64_t after);
void scan_done(struct scan *s);
/* 1 with a piece, 0 at the end for now, -errno; -EPROTO for what no monitor has written. */
int scan_next(struct scan *s, struct scan_piece *out);

/* Head and tail of both streams, from where the scan is to the end or for one turn. Returns true
 * when the end was reached. */
bool output_keep(struct scan *s, struct keep kept[LOG_STREAMS]);
