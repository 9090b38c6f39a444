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

static void put(struct timers *ts, size_t i, struct timer *t)
{
	ts->heap.at[i] = t;
	t->place = i + 1;
}

static void sift_up(struct timers *ts, size_t i, struct timer *t)
{
	while (i > 0) {
		struct timer *parent = ts->heap.at[(i - 1) / 2];

		if (parent->key_ms <= t->key_ms)
			break;
		put(ts, i, parent);
		i = (i - 1) / 2;
	}
	put(ts, i, t);
}

static void sift_down(struct timers *ts, size_t i, struct timer *t)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < ts->heap.len &&
		    ts->heap.at[child + 1]->key_ms < ts->heap.at[child]->key_ms)
			child++;
		if (child >= ts->heap.len || ts->heap.at[child]->key_ms >= t->key_ms)
			break;
		put(ts, i, ts->heap.at[child]);
		i = child;
	}
	put(ts, i, t);
}

static void heap_add(struct timers *ts, struct timer *t)
{
	t->key_ms = t->at_ms;
	t->is_due = false;
	vec_push(&ts->heap, t);
	sift_up(ts, ts->heap.len - 1, t);
}

static void heap_remove(struct timers *ts, struct timer *t)
{
	size_t i = t->place - 1;
	struct timer *last = ts->heap.at[--ts->heap.len];

	t->place = 0;
	if (last == t)
		return;
	if (i > 0 && ts->heap.at[(i - 1) / 2]->key_ms > last->key_ms)
		sift_up(ts, i, last);
	else
		sift_down(ts, i, last);
}

/* ---- the descriptor ---------------------------------------------------------------- */

static void arm(struct timers *ts)
{
	uint64_t next = ts->heap.len > 0 ? ts->heap.at[0]->key_ms : 0;

	if (next == 0 || (ts->armed_ms != 0 && ts->armed_ms <= next))
		return; /* at worst it wakes once for nothing */
	struct itimerspec at = { .it_value = { .tv_sec = (time_t)(next / 1000),
		                               .tv_nsec = (long)(next % 1000) * 1000000 } };

	ts->armed_ms = next;
	(void)timerfd_settime(ts->watch.fd, TFD_TIMER_ABSTIME, &at,
	                      NULL); /* a valid time cannot fail */
}

/* All that is due leaves the heap before the first is called: a timer that is set meanwhile waits
 * for the next turn, so that the loop gets its turn too. */
static void collect(struct timers *ts, uint64_t now)
{
	while (ts->heap.len > 0 && ts->heap.at[0]->key_ms <= now) {
		struct timer *t = ts->heap.at[0];

		heap_remove(ts, t);
		if (t->at_ms > now) {
			heap_add(ts, t);
			continue;
		}
		vec_push(&ts->due, t);
		t->place = ts->due.len;
		t->is_due = true;
	}
}

static void ready(struct watch *w, uint32_t events)
{
	struct timers *ts = TIMERS_OF(w);
	uint64_t count;

	(void)events;
	if (read(w->fd, &count, sizeof count) < 0)
		return;
	ts->armed_ms = 0;
	collect(ts, timer_now_ms());
	for (size_t i = 0; i < ts->due.len; i++) {
		struct timer *t = ts->due.at[i];

		if (!t)
			continue;
		t->place = 0;
		t->at_ms = 0;
		t->fired(t);
	}
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
		ts->due.at[t->place - 1] = NULL;
	else
		heap_remove(ts, t);
	t->place = 0;
}

void timer_set(struct timers *ts, struct timer *t, uint64_t in_ms)
{
	/* One more than the clock says: it has cut off a part of a millisecond. */
	uint64_t at_ms = in_ms ? timer_now_ms() + in_ms + 1 : 1;

	if (t->place != 0 && !t->is_due && t->key_ms <= at_ms) {
		t->at_ms = at_ms;
		return;
	}
	timer_stop(ts, t);
	t->at_ms = at_ms;
	heap_add(ts, t);
	arm(ts);
}
