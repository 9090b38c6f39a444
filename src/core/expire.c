#include "core/expire.h"

#include <unistd.h>

#include "core/process.h"
#include "core/workspace.h"
#include "store/idem.h"

#define LOOK_MS 1000
#define PURGE_MS 60000 /* old records are looked for so often, unless they live shorter */

static bool is_over(const struct sbx *s)
{
	bool is_late = s->expires_ms > 0 && core_now_ms() >= s->expires_ms;
	bool is_idle =
	    s->idle_ms > 0 && !s->processes && core_mono_ms() - s->active_ms >= s->idle_ms;

	return (is_late || is_idle) && !s->change.is_busy && s->state != SANDBOX_CREATING;
}

static void lapsed(void *arg, struct sbx *s, const struct fail *f)
{
	(void)arg;
	if (!f)
		sbx_rest(s); /* else it is tried again */
}

/* Frozen or stopped it has no time that could be over: that begins when it goes on. Where nothing
 * can be frozen its files are what stays of it. */
static void lapse(struct sbx *s)
{
	bool is_stop = s->life & LIFE_STOP || !s->link.ready.can_freeze;
	bool is_at_rest = s->state == SANDBOX_PAUSED || s->state == SANDBOX_STOPPED;
	struct fail f;

	if (is_at_rest && s->expires_ms > 0)
		sbx_rest(s);
	else if (s->state == SANDBOX_RUNNING)
		(void)!(is_stop ? sbx_stop : sbx_pause)(s, lapsed, NULL, &f);
}

static void look_at(void *entry, void *arg)
{
	struct sbx *s = entry;
	struct fail f;

	(void)arg;
	sbx_look_alive(s);
	if (sbx_end_due(s) || !is_over(s))
		return;
	if (s->life & (LIFE_PAUSE | LIFE_STOP))
		lapse(s);
	else
		(void)sbx_delete(s, NULL, NULL, &f); /* unreachable: tried again */
}

/* Nobody asks, nothing lives: whoever needs a daemon starts one. */
static bool is_useless(const struct core *c)
{
	return c->config.idle_exit_ms > 0 && c->sandboxes.n == 0 && c->n_clients == 0 &&
	       core_mono_ms() - c->busy_ms >= c->config.idle_exit_ms;
}

/* More than one turn removes: the rest at the next look. */
static void purged(void *arg, const struct store_answer *a)
{
	struct core *c = arg;

	if (a->rows > 0)
		c->purged_ms = 0;
}

static void purge(struct core *c)
{
	struct err e;

	int64_t before_ms = core_now_ms() - (int64_t)c->config.keep_records_ms;
	struct process_list old;
	AUTO(arena_done) struct arena a = { 0 };

	c->purged_ms = core_mono_ms();
	/* Logs first: a row without a log is found again, a log without a row is not. */
	if (c->config.keep_records_ms > 0 &&
	    store_process_ended(c->store, before_ms, &a, &old, &e) == 0) {
		for (size_t i = 0; i < old.n; i++)
			(void)unlinkat(c->logs_fd, old.rows[i].id, 0); /* or it is gone already */
		(void)store_purge(c->store, before_ms,
		                  (struct store_call){ .done = purged, .arg = c }, &e);
	}
	(void)store_idem_purge(c->store, core_now_ms(), (struct store_call){ 0 }, &e);
}

static void look(struct timer *t)
{
	struct core *c = (struct core *)(void *)((char *)t - offsetof(struct core, expire));
	uint64_t keep_ms = c->config.keep_records_ms;
	uint64_t purge_ms = keep_ms > 0 && keep_ms < PURGE_MS ? keep_ms : PURGE_MS;

	roster_each(&c->sandboxes, look_at, NULL);
	wsx_look(c);
	if (core_mono_ms() - c->purged_ms >= purge_ms)
		purge(c);
	if (is_useless(c))
		c->loop->is_done = true;
	timer_set(&c->timers, &c->expire, LOOK_MS);
}

void expire_start(struct core *c)
{
	c->expire.fired = look;
	timer_set(&c->timers, &c->expire, LOOK_MS);
}
