#include "io/timer.h"

#include <sys/timerfd.h>
#include <time.h>

#include "base/fd.h"
#include "os/ret.h"

#define TIMERS_OF(w) ((struct timers *)(void *)((char *)(w)-offsetof(struct timers, watch)))

uint64_t timer_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- heap -------------------------------------------------------------------------- */

static void put(struct timers *ts, size_t i, struct timer_slot slot)
{
	ts->heap.at[i] = slot;
	slot.timer->place = i + 1;
}

static void sift_up(struct timers *ts, size_t i, struct timer_slot slot)
{
	while (i > 0) {
		struct timer_slot parent = ts->heap.at[(i - 1) / 2];

		if (parent.key_ms <= slot.key_ms)
			break;
		put(ts, i, parent);
		i = (i - 1) / 2;
	}
	put(ts, i, slot);
}

static void sift_down(struct timers *ts, size_t i, struct timer_slot slot)
{
	const struct timer_slot *at = ts->heap.at;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < ts->heap.len && at[child + 1].key_ms < at[child].key_ms)
			child++;
		if (child >= ts->heap.len || at[child].key_ms >= slot.key_ms)
			break;
		put(ts, i, at[child]);
		i = child;
	}
	put(ts, i, slot);
}

static void heap_add(struct timers *ts, struct timer *t)
{
	struct timer_slot slot = { t->at_ms, t };

	t->is_due = false;
	vec_push(&ts->heap, slot);
	sift_up(ts, ts->heap.len - 1, slot);
}

static void heap_remove(struct timers *ts, struct timer *t)
{
	size_t i = t->place - 1;
	struct timer_slot last = ts->heap.at[--ts->heap.len];

	t->place = 0;
	if (last.timer == t)
		return;
	if (i > 0 && ts->heap.at[(i - 1) / 2].key_ms > last.key_ms)
		sift_up(ts, i, last);
	else
		sift_down(ts, i, last);
}

/* ---- the descriptor ---------------------------------------------------------------- */

static void arm(struct timers *ts)
{
	uint64_t next = ts->heap.len > 0 ? ts->heap.at[0].key_ms : 0;

	if (next == 0 || (ts->armed_ms != 0 && ts->armed_ms <= next))
		return; /* at worst it wakes once for nothing */
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(next / 1000),
		                               .tv_nsec = (long)(next % 1000) * 1000000 } };

	ts->armed_ms = next;
	(void)timerfd_settime(ts->watch.fd, TFD_TIMER_ABSTIME, &at,
	                      NULL); /* a valid time cannot fail */
}

/* The first of the heap has been reached; it is due, unless it was moved back meanwhile. */
static void take_first(struct timers *ts, uint64_t now)
{
	struct timer *t = ts->heap.at[0].timer;

	heap_remove(ts, t);
	if (t->at_ms > now) {
		heap_add(ts, t);
		return;
	}
	vec_push(&ts->due, (struct timer_slot){ t->at_ms, t });
	t->place = ts->due.len;
	t->is_due = true;
}

static void fire(struct timer *t)
{
	t->place = 0;
	t->at_ms = 0;
	t->fired(t);
}

/* All that is due leaves the heap before the first is called: a timer that is set meanwhile waits
 * for the next turn, so that the loop gets its turn too. */
static void ready(struct watch *w, uint32_t events)
{
	struct timers *ts = TIMERS_OF(w);
	uint64_t count, now = timer_now_ms();

	(void)events;
	if (read(w->fd, &count, sizeof count) < 0)
		return;
	ts->armed_ms = 0;
	while (ts->heap.len > 0 && ts->heap.at[0].key_ms <= now)
		take_first(ts, now);
	for (size_t i = 0; i < ts->due.len; i++)
		if (ts->due.at[i].timer)
			fire(ts->due.at[i].timer);
	ts->due.len = 0;
	arm(ts);
}

int timers_init(struct timers *ts, struct loop *l)
{
	OS_FAULT("timerfd_create");
	*ts = (struct timers){ .watch = { .fd = timerfd_create(CLOCK_MONOTONIC,
		                                               TFD_CLOEXEC | TFD_NONBLOCK),
		                          .ready = ready } };
	if (ts->watch.fd < 0)
		return -errno;
	int r = loop_add(l, &ts->watch, EPOLLIN);

	if (r < 0)
		fd_close(&ts->watch.fd);
	return r;
}

void timers_done(struct timers *ts, struct loop *l)
{
	if (ts->watch.fd >= 0)
		loop_remove(l, &ts->watch);
	fd_close(&ts->watch.fd);
	vec_done(&ts->heap);
	vec_done(&ts->due);
}

void timer_stop(struct timers *ts, struct timer *t)
{
	t->at_ms = 0;
	if (t->place == 0)
		return;
	if (t->is_due)
		ts->due.at[t->place - 1].timer = NULL;
	else
		heap_remove(ts, t);
	t->place = 0;
}

void timer_set(struct timers *ts, struct timer *t, uint64_t in_ms)
{
	/* One more than the clock says: it has cut off a part of a millisecond. */
	uint64_t at_ms = in_ms ? timer_now_ms() + in_ms + 1 : 1;

	if (t->place != 0 && !t->is_due && ts->heap.at[t->place - 1].key_ms <= at_ms) {
		t->at_ms = at_ms;
		return;
	}
	timer_stop(ts, t);
	t->at_ms = at_ms;
	heap_add(ts, t);
	arm(ts);
}
