/*
 * serve.h - the ledger as a program: one process, one loop, and whoever asks is only heard.
 *
 * `launcher_fd` brings the sockets of daemons (wire/ledger.h), `dir_fd` is the folder. All that is
 * waiting in a socket is written together, and synced together when one of it has to be; the rest
 * within SERVE_SYNC_MS. A signature comes SERVE_SEAL_MS after the first record without one.
 */
#pragma once

#include "base/err.h"

#define SERVE_SYNC_MS 15 /* leaves the disk most of the promised 50 */
#define SERVE_SEAL_MS 1000
#define SERVE_RETRY_MS 200 /* the disk took nothing */
#define SERVE_LOCK_MS 5000 /* for the writer before us to end */

struct serve_opts {
	int launcher_fd, dir_fd;
	uint64_t file_bytes, keep_bytes; /* 0: as in book.h */
	uint32_t burst;                  /* 0: as in budget.h */
};

/* Until the launcher hangs up and everybody has been heard: 0. */
int serve_run(const struct serve_opts *o, struct err *e) MUST_USE;
