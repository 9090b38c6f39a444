/*
 * budget.h - how many records one sandbox may cause before they are only counted.
 *
 * What comes from inside comes as fast as the code there likes. Each sandbox has BUDGET_BURST
 * records unless the operator says another number, and gets BUDGET_RATE more a second; beyond that
 * one record per kind and second says how many there were. What a caller of the API does, and what
 * has to be on disk before it is acknowledged, is never only counted.
 */
#pragma once

#include "base/vec.h"
#include "wire/ledger.h"

#define BUDGET_BURST 20000
#define BUDGET_RATE 50
#define BUDGET_PLACES 4096 /* two sandboxes that share one are bounded together */
#define BUDGET_SUMS_MAX 512

struct budget_place {
	int64_t at_ms;
	uint32_t spent;
};

struct budget_sum {
	char tenant[LEDGER_NAME_SIZE],
	    sandbox[LEDGER_NAME_SIZE]; /* "": of all for whom there was no room */
	enum ledger_kind kind;
	uint64_t count;
	int64_t from_ms, to_ms;
};

struct budget {
	uint32_t burst; /* 0: BUDGET_BURST */
	struct budget_place places[BUDGET_PLACES];
	VEC(struct budget_sum) sums;
};

/* False: it was counted. */
bool budget_take(struct budget *b, const struct ledger_event *ev, int64_t now_ms);
void budget_done(struct budget *b);
