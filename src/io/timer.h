/*
 * timer.h - many deadlines on one descriptor.
 *
 * A timer is embedded in its owner, who stops it before he is freed. Moving a deadline back, which
 * busy connections do all the time, is one store: the timer keeps its place in the heap and finds
 * its new one when the old one is reached. The descriptor is set only when the next deadline comes
 * earlier than what it waits for. CLOCK_MONOTONIC: it stands still while the host sleeps.
 */
#pragma once

#include "base/vec.h"
#include "io/loop.h"

struct timer {
	void (*fired)(struct timer *t); /* once; it may set, stop and free any timer */
	uint64_t at_ms;                 /* 0: not set */
	size_t place;                   /* in the heap or among the due, + 1; 0: in neither */
	bool is_due;
};

struct timer_slot {
	uint64_t key_ms; /* never later than the timer's at_ms */
	struct timer *timer;
};

struct timers {
	struct watch watch;
	VEC(struct timer_slot) heap;
	VEC(struct timer_slot) due; /* of this turn; NULL: stopped */
	uint64_t armed_ms;          /* 0: the descriptor waits for nothing */
};

int timers_init(struct timers *ts, struct loop *l); /* 0 or -errno */
void timers_done(struct timers *ts, struct loop *l);
/* In so many ms, and not before; 0: in the next turn of the loop. Replaces the deadline before. */
void timer_set(struct timers *ts, struct timer *t, uint64_t in_ms);
void timer_stop(struct timers *ts, struct timer *t); /* fine when it is not set */
uint64_t timer_now_ms(void);
