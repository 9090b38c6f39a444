/*
 * sandbox_end.c - how the daemon ends a sandbox: paced, together with others who ask for the same,
 * and without its monitor's help if need be.
 *
 * A monitor that does not answer may be stopped, or asleep in the kernel because of something that
 * its sandbox did. It holds every deadline of the sandbox, so it must not be able to keep it
 * alive: the launcher ends it, and what it leaves (docs/decisions/0054-ends-that-do-not-come.md).
 */
#include "core/files.h"
#include "core/maker.h"
#include "core/sandbox-internal.h"
#include "io/journal.h"

#define END_MS 5000  /* for a monitor to close its sandbox */
#define GONE_MS 5000 /* for the rest of one that was killed */
#define STOP_MS 30000
#define PROBE_MS 5000 /* for a monitor to say anything at all */
#define OVERDUE_LOOK_MS 10000

/* ---- one of many ---------------------------------------------------------------------- */

static struct sbx *of_paced(struct paced *p)
{
	return (struct sbx *)(void *)((char *)p - offsetof(struct sbx, paced));
}

/* A word that cannot be sent is as one that is not answered. */
void sbx_end_begin(struct paced *p)
{
	struct sbx *s = of_paced(p);
	bool is_close = s->end_type == CH_CLOSE;

	if (s->core->is_closing)
		return; /* the next daemon finds its state, and goes on */
	timer_set(&s->core->timers, &s->timer, is_close ? END_MS : STOP_MS);
	(void)link_send(&s->link, s->end_type, 0, NULL, 0);
}

void sbx_end_order(struct sbx *s, enum channel_type type)
{
	s->end_type = type;
	pace_join(&s->core->pace, &s->paced);
}

void sbx_end_over(struct sbx *s)
{
	pace_leave(&s->core->pace, &s->paced);
}

/* ---- without its monitor --------------------------------------------------------------- */

void sbx_kill(struct sbx *s)
{
	if (s->slot < 0 || s->is_killed)
		return;
	s->is_killed = true;
	journal(JOURNAL_WARN, "a monitor does not answer and is ended", "sandbox", s->id, NULL);
	maker_kill(s->core, s->slot, s->socket_name);
}

bool sbx_end_late(struct sbx *s)
{
	if (s->paced.state == PACED_WAITING) { /* its turn has not come */
		timer_set(&s->core->timers, &s->timer, END_MS);
		return true;
	}
	bool is_closing = s->paced.state == PACED_ENDING && s->end_type == CH_CLOSE;

	if (!(is_closing || s->state == SANDBOX_DELETING) || s->is_killed)
		return false;
	sbx_kill(s); /* its end of the channel tells */
	timer_set(&s->core->timers, &s->timer, GONE_MS);
	return true;
}

const char *sbx_why_lost(const struct sbx *s)
{
	return s->is_killed ? "the monitor of the sandbox did not answer and was ended"
	                    : "the monitor of the sandbox died";
}

/* ---- is there anybody? ------------------------------------------------------------------ */

void sbx_probe(struct sbx *s)
{
	if (s->probed_ms || s->is_killed || s->link.watch.fd < 0 || s->state == SANDBOX_CREATING ||
	    s->state == SANDBOX_REPLACING || s->state == SANDBOX_DELETING)
		return;
	s->probed_ms = core_mono_ms();
	(void)link_send(&s->link, CH_USAGE, 0, NULL, 0);
}

void sbx_heard(struct sbx *s)
{
	s->probed_ms = 0;
}

/* The monitor knows better when it is over: it counts from the first command on, and it may have
 * been extended. It only has to show that it is there. */
static bool is_overdue(const struct sbx *s)
{
	uint64_t wall_ms = s->spec.limits[LIMIT_WALL].value;

	return wall_ms > 0 && s->started_ms > 0 && s->state == SANDBOX_RUNNING &&
	       core_now_ms() - s->started_ms > (int64_t)wall_ms + PROBE_MS &&
	       core_mono_ms() - s->overdue_ms >= OVERDUE_LOOK_MS;
}

void sbx_look_alive(struct sbx *s)
{
	if (s->probed_ms && core_mono_ms() - s->probed_ms >= PROBE_MS) {
		s->probed_ms = 0;
		sbx_kill(s);
	} else if (is_overdue(s)) {
		s->overdue_ms = core_mono_ms();
		sbx_probe(s);
	}
}

static void probe_one(void *entry, void *arg)
{
	(void)arg;
	sbx_probe(entry);
}

void sbx_probe_all(struct core *c)
{
	roster_each(&c->sandboxes, probe_one, NULL);
}

/* ---- delete ----------------------------------------------------------------------------- */

struct sbx_deleter {
	struct sbx_deleter *next;
	sbx_done_fn *done;
	void *arg;
};

/* Whoever asks for the same as another is answered with him. */
static void join_delete(struct sbx *s, sbx_done_fn *done, void *arg)
{
	struct sbx_deleter *d = done ? mem_alloc(sizeof *d) : NULL;

	if (!d)
		return;
	*d = (struct sbx_deleter){ s->deleters, done, arg };
	s->deleters = d;
}

void sbx_tell_deleters(struct sbx *s, const struct fail *f)
{
	while (s->deleters) {
		struct sbx_deleter *d = s->deleters;

		s->deleters = d->next;
		d->done(d->arg, s, f);
		free(d);
	}
}

void sbx_drop_deleters(struct sbx *s)
{
	while (s->deleters) {
		struct sbx_deleter *d = s->deleters;

		s->deleters = d->next;
		free(d);
	}
}

/* Nobody is connected: dead as a rule, and else it is made so. */
static void delete_unheard(struct sbx *s)
{
	if (s->slot >= 0) {
		sbx_kill(s);
		maker_clean(s->core, s->slot);
	}
	sbx_be_gone(s, "deleted");
}

int sbx_delete(struct sbx *s, sbx_done_fn *done, void *arg, struct fail *f)
{
	if (s->state == SANDBOX_CREATING)
		return sbx_refuse_state(s, "delete", f);
	if (s->state == SANDBOX_DELETING && s->change.is_busy) {
		join_delete(s, done, arg);
		return 0;
	}
	s->is_unsettled = false; /* whatever it would have told */
	if (sbx_change_begin(s, done, arg, f) < 0)
		return -1;
	files_close(s);
	sbx_set_state(s, SANDBOX_DELETING, "");
	if (s->link.watch.fd < 0)
		delete_unheard(s);
	else
		sbx_end_order(s, CH_CLOSE);
	return 0;
}
