#include "io/timer.h"

#include <time.h>

#include "base/fd.h"
#include "test.h"

static struct loop loop;
static struct timers timers;

struct item {
	struct timer timer;     /* first */
	uint64_t due_ms, at_ms; /* at the earliest; as it was set, a moment later */
	int fired;
	struct item *other;
};

static struct item *item_of(struct timer *t)
{
	return (struct item *)(void *)t;
}

static int order[64], n_order;
static int left;

static void open_timers(void)
{
	CHECK_INT(loop_init(&loop), 0);
	CHECK_INT(timers_init(&timers, &loop), 0);
}

static void close_timers(void)
{
	timers_done(&timers, &loop);
	timers_done(&timers, &loop); /* twice is fine */
	loop_close(&loop);
}

static void note(struct timer *t)
{
	struct item *i = item_of(t);

	i->fired++;
	CHECK(timer_now_ms() >= i->due_ms);
	if (n_order < (int)COUNT(order))
		order[n_order++] = (int)i->at_ms;
	if (--left == 0)
		loop.is_done = true;
}

static void set(struct item *i, uint64_t in_ms)
{
	i->due_ms = timer_now_ms() + in_ms;
	timer_set(&timers, &i->timer, in_ms);
	i->at_ms = i->timer.at_ms;
}

TEST(deadlines_come_in_their_order_and_not_before_time)
{
	static const uint64_t in_ms[] = { 30, 5, 0, 60, 5, 90, 1, 31, 29, 10 };
	struct item items[COUNT(in_ms)] = { 0 };

	open_timers();
	for (size_t i = 0; i < COUNT(in_ms); i++) {
		items[i].timer.fired = note;
		set(&items[i], in_ms[i]);
	}
	left = COUNT(in_ms);
	CHECK_INT(loop_run(&loop), 0);
	for (int i = 1; i < n_order; i++)
		CHECK(order[i - 1] <= order[i] + 1);
	for (size_t i = 0; i < COUNT(items); i++)
		CHECK_INT(items[i].fired, 1);
	close_timers();
}

TEST(a_deadline_may_move_both_ways_and_be_stopped)
{
	struct item later = { .timer.fired = note }, sooner = later, stopped = later;

	open_timers();
	set(&later, 5);
	set(&later, 1000); /* keeps its place, and must not fire there */
	set(&sooner, 4000);
	set(&sooner, 10);
	set(&stopped, 20);
	timer_stop(&timers, &stopped.timer);
	timer_stop(&timers, &stopped.timer);
	left = 2;
	CHECK_INT(loop_run(&loop), 0);
	CHECK(later.fired == 1 && sooner.fired == 1 && stopped.fired == 0);
	CHECK(order[0] == (int)sooner.at_ms);
	close_timers();
}

static void stop_other(struct timer *t)
{
	timer_stop(&timers, &item_of(t)->other->timer);
	note(t);
}

static void set_other(struct timer *t)
{
	set(item_of(t)->other, 20);
	note(t);
}

static void free_other(struct timer *t)
{
	timer_stop(&timers, &item_of(t)->other->timer);
	free(item_of(t)->other);
	note(t);
}

/* All are due in one turn, and the first changes the second. */
TEST(timers_change_each_other_in_one_turn)
{
	struct item a = { .timer.fired = stop_other }, b = { .timer.fired = note };
	struct item c = { .timer.fired = set_other }, d = { .timer.fired = note };
	struct item e = { .timer.fired = free_other };
	struct item *f = mem_alloc(sizeof *f);

	a.other = &b;
	c.other = &d;
	e.other = f;
	open_timers();
	f->timer.fired = note;
	set(&a, 0);
	set(&c, 0);
	set(&e, 0);
	set(&b, 1);
	set(&d, 1);
	set(f, 1);
	usleep(5000);
	left = 4;
	CHECK_INT(loop_run(&loop), 0);
	CHECK(b.fired == 0 && d.fired == 1);
	close_timers();
}

static int turns;

static void again(struct timer *t)
{
	if (++turns == 3)
		set(item_of(t)->other, 0);
	timer_set(&timers, t, 0);
}

/* One that is always due lets the loop serve others. */
TEST(the_next_turn_is_a_turn_of_the_loop)
{
	struct item busy = { .timer.fired = again }, end = { .timer.fired = note };

	open_timers();
	busy.other = &end;
	set(&busy, 0);
	left = 1;
	CHECK_INT(loop_run(&loop), 0);
	CHECK(turns > 2);
	timer_stop(&timers, &busy.timer);
	close_timers();
}

enum { MANY = 20000 };

TEST(many_random_deadlines_all_come)
{
	static struct item items[MANY];
	unsigned int seed = 7;

	open_timers();
	for (int i = 0; i < MANY; i++) {
		items[i].timer.fired = note;
		set(&items[i], (uint64_t)(rand_r(&seed) % 200));
	}
	left = MANY;
	for (int i = 0; i < 3 * MANY; i++) {
		struct item *it = &items[rand_r(&seed) % MANY];

		if (rand_r(&seed) % 4 == 0 && it->timer.at_ms) {
			timer_stop(&timers, &it->timer);
			left--;
		} else if (it->timer.at_ms) {
			set(it, (uint64_t)(rand_r(&seed) % 300));
		}
	}
	int wanted = left, fired = 0;

	CHECK_INT(loop_run(&loop), 0);
	for (int i = 0; i < MANY; i++) {
		CHECK(items[i].fired <= 1);
		fired += items[i].fired;
	}
	CHECK_INT(fired, wanted);
	close_timers();
}

/* As connections do it: every request moves a deadline back. */
TEST(moving_a_deadline_back_is_cheap)
{
	static struct item items[MANY];
	struct timespec a, b;
	enum { MOVES = 2000000 };

	open_timers();
	for (int i = 0; i < MANY; i++) {
		items[i].timer.fired = note;
		set(&items[i], 75000);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (int i = 0; i < MOVES; i++)
		timer_set(&timers, &items[i % MANY].timer, 75000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	int64_t ns = (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;

	printf("# %d ns each\n", (int)(ns / MOVES));
	CHECK(ns / MOVES < 2000l * test_slow());
	close_timers();
}
