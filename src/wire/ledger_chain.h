/*
 * ledger_chain.h - does each line follow the one before?
 *
 * Lines are fed in the order of the files. What is wrong is told with its place, and checking goes
 * on behind it: a changed record, one that is missing, one that stands elsewhere or twice, one of
 * another ledger are different sentences. Without a key, signatures are not looked at; the writer
 * reads its own files that way.
 */
#pragma once

#include "wire/ledger_heads.h"
#include "wire/ledger_sign.h"

enum ledger_fault {
	LEDGER_SOUND,
	LEDGER_FAULT_FORM,      /* not a record */
	LEDGER_FAULT_CHANGED,   /* its bytes are not what its hash says */
	LEDGER_FAULT_MISSING,   /* records before it are not there: `from` to `to` */
	LEDGER_FAULT_ORDER,     /* it stands behind records that came after it; or twice */
	LEDGER_FAULT_LINK,      /* in its place, but it does not follow the one before */
	LEDGER_FAULT_SANDBOX,   /* nor the one before of its sandbox */
	LEDGER_FAULT_SIGNATURE, /* wrong: something between `from` and `to` is not as it was signed
	                         */
	LEDGER_FAULT_FOREIGN,   /* signed by another key, or for another ledger */
	LEDGER_FAULT_TORN,      /* the last line has no end */
	LEDGER_FAULT_TRUNCATED, /* there was more: `from` to `to`, says a signed head */
	LEDGER_FAULT_SEGMENT,   /* a file does not begin as one of its name does */
	LEDGER_FAULTS
};

const char *ledger_fault_name(enum ledger_fault fault); /* "changed" */

struct ledger_finding {
	enum ledger_fault fault;
	uint64_t seq; /* of the record; 0: it has none */
	uint64_t from, to;
};

struct ledger_chain {
	const struct ledger_key *key; /* NULL: signatures are not looked at */
	uint64_t first, seq;          /* first and last record; 0: none yet */
	uint64_t n, n_signatures;
	uint64_t signed_seq;   /* the last record with a good signature */
	uint64_t pruned_until; /* what the ledger says to have removed itself */
	char ledger[LEDGER_ID_SIZE];
	char hash[LEDGER_HASH_SIZE]; /* of the last record */
	bool is_adrift; /* something was missing: what sandboxes link to is not known for all */
	bool is_blind;  /* lines were no records: the next one stands for them */
	struct ledger_heads heads;
};

/* Up to LEDGER_FINDINGS_MAX of them, in `found`; returns how many. `line` is without newline. */
#define LEDGER_FINDINGS_MAX 4
size_t ledger_chain_feed(struct ledger_chain *c, struct span line,
                         struct ledger_finding found[LEDGER_FINDINGS_MAX]);
/* The line of the file `head`, after all others. LEDGER_SOUND: fine. */
struct ledger_finding ledger_chain_head(struct ledger_chain *c, struct span line);
/* What the ledger has removed of itself it says; more than that is missing. */
struct ledger_finding ledger_chain_start(const struct ledger_chain *c);
void ledger_chain_done(struct ledger_chain *c);
