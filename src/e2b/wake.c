/*
 * wake.c - a request for a sandbox that is frozen, and was said to go on when somebody wants it.
 */
#include "e2b/e2b-internal.h"

#define WAKE_MS 300000 /* one that was woken lives at least so long */
#define AGAIN_MS 25    /* while it is between two states */
#define TRIES 400

struct waking {
	struct call *call;
	e2b_woken_fn *then;
	char id[ID_SIZE];
	struct timer again;
	int tries;
};

bool e2b_may_wake(const struct sbx *s)
{
	return s->life & LIFE_WAKES && (s->state == SANDBOX_PAUSED || s->change.is_busy);
}

static void finish(struct waking *w, struct sbx *s)
{
	struct call *c = w->call;
	e2b_woken_fn *then = w->then;

	timer_stop(&c->api->core->timers, &w->again);
	free(w);
	if (c->r) /* else nobody waits any more */
		then(c, s);
	call_unref(c);
}

static void look_later(struct waking *w)
{
	if (++w->tries > TRIES || !w->call->r)
		finish(w, NULL);
	else
		timer_set(&w->call->api->core->timers, &w->again, AGAIN_MS);
}

static void woken(void *arg, struct sbx *s, const struct fail *f)
{
	struct waking *w = arg;
	struct fail ignored;

	if (f) {
		look_later(w);
		return;
	}
	(void)!sbx_extend(s, 0, WAKE_MS, &ignored); /* it has just begun to run */
	finish(w, s);
}

static void look(struct waking *w)
{
	struct sbx *s = roster_find(&w->call->api->core->sandboxes, w->id);
	struct fail f = { 0 };

	if (!s || !e2b_is_there(s) || (s->state == SANDBOX_STOPPED && !s->change.is_busy))
		finish(w, NULL);
	else if (s->state == SANDBOX_RUNNING && !s->change.is_busy)
		finish(w, s);
	else if (sbx_resume(s, woken, w, &f) < 0)
		look_later(w);
}

static void fired(struct timer *t)
{
	look((struct waking *)(void *)((char *)t - offsetof(struct waking, again)));
}

void e2b_wake(struct call *c, const struct sbx *s, e2b_woken_fn *then)
{
	struct waking *w = mem_alloc(sizeof *w);

	*w = (struct waking){ .call = call_ref(c), .then = then };
	w->again.fired = fired;
	memcpy(w->id, s->id, sizeof w->id);
	look(w);
}
