/*
 * pace.h - so many bytes in a second, over all connections of a sandbox in one direction.
 *
 * A reader asks before it reads. When nothing may pass, or others wait, it waits in a line: the
 * first of it is woken when there is something again, may read once, and goes to the end of the
 * line if it wants more. So all that want get the same, and none is starved.
 */
#pragma once

#include "io/timer.h"

struct pace_wait {
	struct pace_wait *next, **link; /* link NULL: does not wait */
	struct pace *pace;
	/* Its turn has come. May free its owner. */
	void (*wake)(struct pace_wait *w);
};

struct pace {
	struct timers *timers;
	struct timer timer;
	uint64_t per_s;      /* bytes; 0: no limit */
	uint64_t left_milli; /* thousandths of bytes that may pass now */
	uint64_t at_ms;      /* when that was so */
	struct pace_wait *first, **end;
	const struct pace_wait *turn; /* was just woken */
};

void pace_init(struct pace *p, struct timers *ts);
/* Another limit. What waits is woken by it. */
void pace_set(struct pace *p, uint64_t per_s);
/* How many of `most` bytes may be read now; 0: wait, and `wake` follows unless it leaves. */
size_t pace_allows(struct pace *p, struct pace_wait *w, size_t most);
void pace_took(struct pace *p, size_t n);
void pace_leave(struct pace_wait *w); /* fine when it does not wait */
void pace_done(struct pace *p);
