#include "gate/pace.h"

#include "test.h"

#define ALL (96ul << 10) /* that each of them wants */

static size_t behind; /* what is left when the first has all of its own */

struct ending {
	struct timer timer; /* first */
	struct loop *loop;
};

static void ended(struct timer *t)
{
	((struct ending *)(void *)t)->loop->is_done = true;
}

struct reader {
	struct pace_wait wait; /* first */
	struct pace *pace;
	struct loop *loop;
	size_t *left_over_all, got, turns;
};

static void read_some(struct reader *r)
{
	for (size_t n; r->got < ALL; r->got += n) {
		n = pace_allows(r->pace, &r->wait, ALL - r->got);
		if (n == 0)
			return;
		pace_took(r->pace, n);
		*r->left_over_all -= n;
	}
	if (!behind)
		behind = *r->left_over_all;
	r->loop->is_done = *r->left_over_all == 0;
}

static void woken(struct pace_wait *w)
{
	struct reader *r = (struct reader *)(void *)w;

	r->turns++;
	read_some(r);
}

/* Two that want as much as they can get: how long that takes. */
static uint64_t both(uint64_t per_s)
{
	struct loop loop;
	struct timers timers;
	struct pace pace;
	size_t left = 2 * ALL;
	struct reader r[2];
	uint64_t begin = timer_now_ms();

	behind = 0;
	CHECK_INT(loop_init(&loop), 0);
	CHECK_INT(timers_init(&timers, &loop), 0);
	pace_init(&pace, &timers);
	pace_set(&pace, per_s);
	for (int i = 0; i < 2; i++) {
		r[i] = (struct reader){ { .wake = woken }, &pace, &loop, &left, 0, 0 };
		read_some(&r[i]);
	}
	struct ending late = { { .fired = ended }, &loop };

	timer_set(&timers, &late.timer, 20000);
	CHECK(left == 0 || loop_run(&loop) == 0);
	CHECK_INT((long long)left, 0);
	timer_stop(&timers, &late.timer);
	pace_done(&pace);
	timers_done(&timers, &loop);
	loop_close(&loop);
	return timer_now_ms() - begin;
}

TEST(bytes_pass_at_the_pace_that_is_set_and_all_get_the_same)
{
	uint64_t ms = both(192u << 10); /* a second's worth */

	CHECK(ms > 800 && ms < 5000);
	CHECK(behind <= 3 * (16ul << 10));
	CHECK(both(0) < 500); /* no limit */
}

TEST(who_leaves_is_not_woken)
{
	struct loop loop;
	struct timers timers;
	struct pace pace;
	size_t left = 2 * ALL;

	CHECK_INT(loop_init(&loop), 0);
	CHECK_INT(timers_init(&timers, &loop), 0);
	pace_init(&pace, &timers);
	pace_set(&pace, 10240);
	struct reader a = { { .wake = woken }, &pace, &loop, &left, 0, 0 }, b = a;

	CHECK_INT((long long)pace_allows(&pace, &a.wait, 1), 0);
	CHECK_INT((long long)pace_allows(&pace, &b.wait, 1), 0);
	pace_leave(&b.wait);
	pace_leave(&b.wait);
	struct ending end = { { .fired = ended }, &loop };

	timer_set(&timers, &end.timer, 600);
	CHECK_INT(loop_run(&loop), 0);
	CHECK(a.turns > 0);
	CHECK_INT((long long)b.turns, 0);
	pace_leave(&a.wait);
	pace_done(&pace);
	timers_done(&timers, &loop);
	loop_close(&loop);
}
