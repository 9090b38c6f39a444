/*
 * budget.h - so many in so much time: a bucket that fills again while nobody takes.
 */
#pragma once

#include "base/base.h"

struct bucket {
	uint32_t most;   /* 0: no limit */
	uint32_t per_ms; /* the time in which an empty one fills */
	uint64_t spent;  /* of most * per_ms */
	uint64_t at_ms;
};

/* Changes the limit; what was taken stays taken, as a part of the whole. */
void bucket_set(struct bucket *b, uint32_t most, uint32_t per_ms);
bool bucket_take(struct bucket *b, uint64_t now_ms); /* false: there is none left */
