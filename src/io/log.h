/*
 * log.h - writes and reads the record of one process; the format is in wire/log.h.
 */
#pragma once

#include "wire/log.h"

/* ---- writer (monitor) ---- */
struct log_writer {
	int fd;      /* borrowed */
	uint64_t at; /* where the next frame goes */
	uint64_t max;
	struct log_hole hole;
	uint64_t dropped; /* bytes that could not be written */
	bool is_stuck;    /* no hole can be made here: only the head is kept */
};
void log_create(struct log_writer *w, int fd, uint64_t max_bytes); /* 0: no limit */
/* Appends one frame of at most LOG_FRAME_DATA_MAX; a disk that is full drops it whole and counts.
 */
void log_add(struct log_writer *w, enum log_stream s, uint64_t ms, const void *bytes, size_t n);
int log_close(const struct log_writer *w, const struct channel_end *end); /* 0 or -errno */

/* ---- reader (daemon, one-shot run) ---- */
/* The frame at `*at` (LOG_FRAMES_AT first), its bytes in `buf` of LOG_FRAME_DATA_MAX; moves `*at`
 * to the next one, over the hole if there is one (`*skipped` gets its size, else 0). 1, 0 at the
 * end for now, -errno; -EPROTO for what no writer of ours has written. */
int log_next(int fd, uint64_t *at, struct log_frame *f, void *buf, uint64_t *skipped);
/* 1 with the end record, 0 when there is none yet, -errno. */
int log_end(int fd, struct channel_end *out);
bool log_has_end(int fd);
int log_hole(int fd, struct log_hole *out); /* 0 or -errno */
