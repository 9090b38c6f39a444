/*
 * attest.h - what a ledger says about a change that was promoted, as an in-toto statement. Pure.
 *
 * Records are fed in their order; the statement is about the last promotion among them, or the one
 * that was asked for, and has nothing in it that is not in a record. It has no time of its own: of
 * the same records the same statement is made, byte for byte.
 *
 *   _type          https://in-toto.io/Statement/v1
 *   predicateType  https://slsa.dev/provenance/v1
 *   subject        the branch or the workspace; gitCommit and gitTree, as far as there are
 *   buildType      urn:caisson:task:v1, docs/ledger.md says what is in it
 */
#pragma once

#include <jansson.h>

#include "wire/ledger_sign.h"

#define ATTEST_STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define ATTEST_PREDICATE_TYPE "https://slsa.dev/provenance/v1"
#define ATTEST_BUILD_TYPE "urn:caisson:task:v1"
#define ATTEST_BYTES_MAX (1u << 20)    /* of a statement */
#define ATTEST_LIST_BYTES (192u << 10) /* of a list in it; the rest is counted */

struct attest_ask {
	char tenant[LEDGER_NAME_SIZE], workspace[LEDGER_NAME_SIZE];
	uint64_t record; /* the promotion; 0: the last */
	const char *ledger;
};

struct attest {
	struct attest_ask ask;
	json_t *now, *at;       /* what is known; and what was when it was promoted, or NULL */
	json_t *running;        /* process -> its place among the commands */
	size_t commands, hosts; /* bytes so far */
	bool is_over;           /* the record that was asked for has been seen */
};

void attest_init(struct attest *a, const struct attest_ask *ask);
void attest_done(struct attest *a);
void attest_feed(struct attest *a, const struct ledger_line *l);
/* Canonical JSON. False: nothing was promoted, or it is too much. */
bool attest_print(const struct attest *a, struct str *out);

/* Is a text such a statement? What of it is shown to people comes back, else NULL. */
json_t *attest_read(struct span text) MUST_USE;
