/*
 * attest.h - the ledger says what it knows about a promoted change, and signs that (wire/attest.h).
 *
 * Nobody hands it a text to sign: who asks names a workspace, and every word of the statement is
 * read from the records, one file in a turn, so that the writer is not held up. A record whose hash
 * does not hold is no record.
 */
#pragma once

#include "ledger/book.h"
#include "wire/attest.h"

struct attest_run {
	const struct book *book;
	struct attest attest;
	uint64_t next; /* the file to read now begins with this record */
};

void attest_start(struct attest_run *r, const struct book *b, const struct ledger_attest *ask);
void attest_stop(struct attest_run *r);
/* The next file: 1 there are more, 0 that was the last, -1. */
int attest_step(struct attest_run *r, struct err *e) MUST_USE;
/* The envelope, in a file without a name: its descriptor. -1 with e->kind ERR_INVALID: nothing was
 * promoted. */
int attest_seal(const struct attest_run *r, uint64_t *record, struct err *e) MUST_USE;

/* `caisson attest verify`: 0 it is genuine, 1 it is not; both are said in `out`. -1: it cannot be
 * read. */
int attest_verify(const char *file, const char *key, bool is_json, struct str *out,
                  struct err *e) MUST_USE;
