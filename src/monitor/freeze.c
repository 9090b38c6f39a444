/*
 * freeze.c - pause and hold: every process of the sandbox stops where it is.
 *
 * Paused is what a client wants to be seen; held is a moment in which files are copied or written
 * back. It ends by itself when its time is over, so that a daemon that dies in it leaves nobody
 * standing; and what is said to processes meanwhile waits here, so that nobody notices it. Frozen
 * is who is one of the two.
 *
 * The kernel takes a moment; the answer comes when all of them stand. Nobody is frozen while he is
 * started: one whose start fails is waited for, and what is frozen does not die (cgroup v1). Time
 * goes on: limits on it are limits on the sandbox's life.
 */
#include <time.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"

#define LEASE_MS_MAX 60000
#define LOOK_MS 2
#define LOOKS_MAX 1000
#define QUICK_LOOKS 20
#define QUICK_NS 25000 /* most stand within a tenth of a millisecond */

/* Something that was said while all stood still. */
struct later {
	struct later *next;
	struct message msg;
};

static bool is_wanted(const struct monitor *m)
{
	return m->is_paused || m->is_held;
}

static bool is_starting(const struct monitor *m)
{
	for (const struct proc *p = m->procs; p; p = p->next)
		if (p->spawn.report_fd >= 0)
			return true;
	return false;
}

/* 1: all of them stand, 0: not yet, or -errno. */
static int look_closely(const struct monitor *m)
{
	const struct timespec tick = { .tv_nsec = QUICK_NS };
	int r = cgroup_is_frozen(&m->box->cgroup);

	for (int i = 0; i < QUICK_LOOKS && r == 0 && m->freeze_tries == 0; i++) {
		(void)nanosleep(&tick, NULL);
		r = cgroup_is_frozen(&m->box->cgroup);
	}
	return r;
}

/* To all who wait for it. All or none: who is refused is not frozen. */
void freeze_answer(struct monitor *m, int error)
{
	const bool was_pause = m->asks_pause, was_hold = m->asks_hold;

	m->is_freezing = m->asks_pause = m->asks_hold = false;
	m->is_frozen = error == 0;
	if (error) {
		m->is_paused = m->is_paused && !was_pause;
		m->is_held = m->is_held && !was_hold;
		stopper_end(m);
		(void)cgroup_freeze(&m->box->cgroup, is_wanted(m));
		m->is_frozen = is_wanted(m);
	}
	if (was_pause)
		talk_done(m, CH_FREEZE, error);
	if (was_hold)
		talk_done(m, CH_HOLD, error);
}

/* A pause may last: a tracer would be in the way of whoever debugs inside. */
static int begin(struct monitor *m)
{
	bool is_moment = !cgroup_can_freeze(&m->box->cgroup) && !m->is_paused;

	return is_moment ? stopper_start(m) : cgroup_freeze(&m->box->cgroup, true);
}

static void look(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, freeze);
	int r = 0;

	if (!m->is_freezing && !is_starting(m)) {
		r = begin(m);
		m->is_freezing = r >= 0;
	}
	if (m->stopper_pid > 0)
		return; /* it tells */
	if (m->is_freezing)
		r = look_closely(m);
	if (r == 0 && ++m->freeze_tries < LOOKS_MAX)
		timer_set(&m->timers, t, LOOK_MS);
	else
		freeze_answer(m, r > 0 ? 0 : r < 0 ? -r : ETIMEDOUT);
}

static void freeze(struct monitor *m)
{
	if (m->is_frozen) {
		freeze_answer(m, 0);
		return;
	}
	if (m->is_freezing || m->freeze.at_ms)
		return; /* who came before waits for the same */
	m->freeze_tries = 0;
	m->freeze.fired = look;
	look(&m->freeze);
}

/* One of the two is over. 0 or the errno. */
static int thaw(struct monitor *m)
{
	if (is_wanted(m))
		return 0;
	timer_stop(&m->timers, &m->freeze);
	m->is_frozen = m->is_freezing = false;
	stopper_end(m);
	int r = cgroup_can_freeze(&m->box->cgroup) ? cgroup_freeze(&m->box->cgroup, false) : 0;
	return r < 0 ? -r : 0;
}

/* ---- a moment ------------------------------------------------------------------------ */

bool freeze_defer(struct monitor *m, struct message *msg)
{
	if (!m->is_held && !m->later) /* in the order in which they came */
		return false;
	struct later *l = mem_alloc(sizeof *l);
	memcpy(&l->msg, msg, sizeof *msg);
	l->next = NULL;
	msg->n_fds = 0; /* they are ours now */
	if (!m->later)
		m->later_last = &m->later;
	*m->later_last = l;
	m->later_last = &l->next;
	return true;
}

static struct later *take_later(struct monitor *m)
{
	struct later *all = m->later;

	m->later = NULL;
	return all;
}

static void later_free(struct later *l)
{
	for (size_t i = 0; i < l->msg.n_fds; i++)
		fd_close(&l->msg.fds[i]);
	free(l);
}

void freeze_forget(struct monitor *m)
{
	for (struct later *l = take_later(m), *next; l; l = next) {
		next = l->next;
		later_free(l);
	}
}

/* In its own turn of the loop: one of them may end the sandbox. */
static void hear_later(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, lease);

	for (struct later *l = take_later(m), *next; l; l = next) {
		next = l->next;
		talk_hear(m, &l->msg); /* it may be held again, and wait again */
		later_free(l);
	}
}

static int let_go(struct monitor *m)
{
	m->is_held = false;
	m->lease.fired = hear_later;
	timer_set(&m->timers, &m->lease, 0);
	return thaw(m);
}

static void lease_over(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, lease);

	m->is_lease_over = true;
	if (m->asks_hold) {
		m->asks_hold = false;
		talk_done(m, CH_HOLD, ETIMEDOUT);
	}
	(void)let_go(m);
}

void freeze_hold(struct monitor *m, uint32_t lease_ms)
{
	m->is_held = m->asks_hold = true;
	m->is_lease_over = false;
	m->lease.fired = lease_over;
	timer_set(&m->timers, &m->lease, lease_ms < LEASE_MS_MAX ? lease_ms : LEASE_MS_MAX);
	freeze(m);
	if (!m->is_held) /* refused at once */
		(void)let_go(m);
}

void freeze_release(struct monitor *m)
{
	int error = m->is_lease_over ? ETIMEDOUT : 0;

	m->is_lease_over = false;
	if (m->is_held)
		error = let_go(m);
	talk_done(m, CH_RELEASE, error);
}

/* ---- pause --------------------------------------------------------------------------- */

void freeze_set(struct monitor *m, bool on)
{
	m->is_paused = on;
	if (!on) {
		talk_done(m, CH_THAW, thaw(m));
		return;
	}
	m->asks_pause = true;
	freeze(m);
}

void freeze_end(struct monitor *m)
{
	m->is_paused = m->asks_pause = m->asks_hold = false;
	if (m->is_held)
		(void)let_go(m);
	else
		(void)thaw(m);
}
