/*
 * freeze.c - pause and resume: every process of the sandbox stops where it is.
 *
 * The kernel takes a moment; the answer comes when all of them stand. Time goes on: limits on it
 * are limits on the sandbox's life.
 */
#include "monitor/monitor-internal.h"

#define LOOK_MS 2
#define LOOKS_MAX 1000

static void look(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, freeze);
	int r = cgroup_is_frozen(&m->box->cgroup);

	if (r == 0 && ++m->freeze_tries < LOOKS_MAX) {
		timer_set(&m->timers, t, LOOK_MS);
		return;
	}
	m->is_freezing = false;
	m->is_frozen = r > 0;
	if (r <= 0)
		(void)cgroup_freeze(&m->box->cgroup, false); /* all or none */
	talk_done(m, CH_FREEZE, r > 0 ? 0 : r < 0 ? -r : ETIMEDOUT);
}

void freeze_set(struct monitor *m, bool on)
{
	int r = cgroup_freeze(&m->box->cgroup, on);

	if (r < 0 || !on) {
		timer_stop(&m->timers, &m->freeze);
		if (r >= 0)
			m->is_frozen = m->is_freezing = false;
		talk_done(m, on ? CH_FREEZE : CH_THAW, r < 0 ? -r : 0);
		return;
	}
	m->is_freezing = true;
	m->freeze_tries = 0;
	m->freeze.fired = look;
	look(&m->freeze);
}

void freeze_end(struct monitor *m)
{
	if (m->is_frozen || m->is_freezing)
		(void)cgroup_freeze(&m->box->cgroup, false);
	timer_stop(&m->timers, &m->freeze);
	m->is_frozen = m->is_freezing = false;
}
