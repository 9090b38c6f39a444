#include "gate/pace.h"

#define TICK_MS 10
#define BURST_MS 100        /* what may pass at once after a pause */
#define TURNS_MAX 1024      /* before the loop hears of something else */
#define LEAST 512u          /* fewer are not worth a read */
#define QUANTUM (16u << 10) /* of one turn */

static struct pace *pace_of(struct timer *t)
{
	return (struct pace *)(void *)((char *)t - offsetof(struct pace, timer));
}

/* Slow ones get at least one worthwhile read. */
static uint64_t burst_milli(const struct pace *p)
{
	uint64_t most = p->per_s * BURST_MS, least = 1000ull * LEAST;

	return most > least ? most : least;
}

static void pace_refill(struct pace *p)
{
	uint64_t now = timer_now_ms(), passed = now - p->at_ms, whole = burst_milli(p);

	p->at_ms = now;
	if (passed >= whole / p->per_s || p->left_milli + passed * p->per_s > whole)
		p->left_milli = whole;
	else
		p->left_milli += passed * p->per_s;
}

static bool pace_has_some(const struct pace *p)
{
	return p->left_milli >= 1000ull * LEAST;
}

static void pace_queue(struct pace *p, struct pace_wait *w)
{
	if (w->link)
		return;
	w->pace = p;
	w->next = NULL;
	w->link = p->end;
	*p->end = w;
	p->end = &w->next;
	if (!p->timer.at_ms)
		timer_set(p->timers, &p->timer, TICK_MS);
}

void pace_leave(struct pace_wait *w)
{
	if (!w->link)
		return;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	else
		w->pace->end = w->link;
	w->next = NULL;
	w->link = NULL;
}

size_t pace_allows(struct pace *p, struct pace_wait *w, size_t most)
{
	const bool is_turn = p->turn == w;

	if (p->per_s == 0)
		return most;
	p->turn = NULL;
	pace_refill(p);
	if ((p->first && !is_turn) || !pace_has_some(p)) {
		pace_queue(p, w);
		return 0;
	}
	uint64_t left = p->left_milli / 1000;

	most = most < QUANTUM ? most : QUANTUM;
	return left < most ? (size_t)left : most;
}

void pace_took(struct pace *p, size_t n)
{
	if (p->per_s > 0)
		p->left_milli = p->left_milli > 1000ull * n ? p->left_milli - 1000ull * n : 0;
}

/* One after the other, as long as there is something: who wants more is last in the line again. */
static void pace_ticked(struct timer *t)
{
	struct pace *p = pace_of(t);

	for (int n = 0; n < TURNS_MAX && p->first; n++) {
		struct pace_wait *w = p->first;

		if (p->per_s > 0)
			pace_refill(p);
		if (p->per_s > 0 && !pace_has_some(p))
			break;
		pace_leave(w);
		p->turn = w;
		w->wake(w);
		p->turn = NULL;
	}
	if (p->first)
		timer_set(p->timers, t, TICK_MS);
}

void pace_set(struct pace *p, uint64_t per_s)
{
	if (p->per_s != per_s) /* nobody gains by a change, or by another child */
		p->left_milli = 0;
	p->per_s = per_s;
	p->at_ms = timer_now_ms();
	if (p->first)
		timer_set(p->timers, &p->timer, TICK_MS);
}

void pace_init(struct pace *p, struct timers *ts)
{
	*p = (struct pace){ .timers = ts, .timer.fired = pace_ticked };
	p->end = &p->first;
}

void pace_done(struct pace *p)
{
	timer_stop(p->timers, &p->timer);
}
