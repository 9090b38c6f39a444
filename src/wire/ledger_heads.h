/*
 * ledger_heads.h - the last record of each sandbox that is not gone: what the next one links to.
 */
#pragma once

#include "wire/ledger.h"

struct ledger_head {
	char sandbox[LEDGER_NAME_SIZE]; /* "": nobody's place */
	uint64_t seq;
	char hash[LEDGER_HASH_SIZE];
};

struct ledger_heads {
	struct ledger_head
	    *at; /* a table of `size` places, a power of two; at most half are taken */
	size_t size, n;
};

struct ledger_head *ledger_heads_find(struct ledger_heads *h, struct span sandbox);
/* That, or a new one with seq 0 and zeros. `sandbox` is a name, and not "". */
struct ledger_head *ledger_heads_take(struct ledger_heads *h, struct span sandbox);
void ledger_heads_drop(struct ledger_heads *h, struct span sandbox);
void ledger_heads_clear(struct ledger_heads *h);
