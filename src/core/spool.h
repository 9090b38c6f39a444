/*
 * spool.h - what was said to the ledger and is not acknowledged, in a file: the next daemon says it
 * again when this one and the writer die together.
 *
 * One write(2) a record, to STATE/ledger.spool; never synced: it is there for our death, not for
 * the host's. It is emptied when all was acknowledged and it has grown, so it may hold what is on
 * record already: whoever says it again keeps life and number, by which the writer knows it.
 */
#pragma once

#include "base/err.h"
#include "wire/ledger.h"

#define SPOOL_BYTES_MAX (64u << 20)
#define SPOOL_KEPT (64u << 10) /* less is not worth a call */

struct spool {
	int fd; /* -1: none */
	uint64_t bytes;
	bool has_old; /* it was not empty */
};

/* All that is in it, in order; `packet` has `n` bytes, for the time of the call. */
typedef void spool_fn(void *arg, const char *life, const struct ledger_append *packet, size_t n);
int spool_open(struct spool *s, const char *state_dir, spool_fn *found, void *arg,
               struct err *e) MUST_USE;
/* False: there is no room for it, here or on the disk. */
bool spool_add(struct spool *s, const char *life, const struct ledger_append *packet, size_t n);
void spool_clear(struct spool *s); /* all was acknowledged */
void spool_close(struct spool *s);
