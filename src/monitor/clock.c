/*
 * clock.c - the deadlines of the sandbox: wall and idle. Those of a process are in procs.c.
 */
#include "monitor/monitor-internal.h"

/* Only a note: the deadline moves when it fires, not at every byte. */
void clock_active(struct monitor *m)
{
	m->last_io_ms = timer_now_ms();
}

static void wall_fired(struct timer *t)
{
	monitor_stop(OWNER_OF(t, struct monitor, wall), RUN_EXPIRED, "wall limit reached");
}

#define LIVE_MS 1000 /* how long a name of a shown folder may be old */

/* Nobody inside: nobody looks, and the next command begins with a fresh look. */
static void live_fired(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, live);

	spawn_follow_host(&m->init);
	if (m->procs)
		timer_set(&m->timers, t, LIVE_MS);
}

void clock_follow(struct monitor *m)
{
	if (m->init.n_live && m->live.at_ms == 0)
		timer_set(&m->timers, &m->live, LIVE_MS);
}

/* Idle is no byte in or out, and less than one percent of a processor. */
static void idle_fired(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, idle);
	uint64_t limit = m->box->plan->limits[LIMIT_IDLE];
	uint64_t since = timer_now_ms() - m->last_io_ms;
	uint64_t cpu = report_cpu_ms(m);

	if (since < limit) {
		timer_set(&m->timers, t, limit - since);
	} else if (cpu > m->idle_cpu_ms + limit / 100) {
		m->idle_cpu_ms = cpu;
		timer_set(&m->timers, t, limit);
	} else {
		monitor_stop(m, RUN_EXPIRED, "idle limit reached");
	}
}

/* The wall limit is the life of the sandbox from its first command on. */
void clock_started(struct monitor *m)
{
	uint64_t limit = m->box->plan->limits[LIMIT_WALL];

	clock_active(m);
	if (!m->has_started && limit)
		timer_set(&m->timers, &m->wall, limit);
	m->has_started = true;
	clock_follow(m);
}

void clock_extend(struct monitor *m, uint64_t wall_ms)
{
	m->has_started = true; /* it counts from now on, whatever comes first */
	if (wall_ms)
		timer_set(&m->timers, &m->wall, wall_ms);
	else
		timer_stop(&m->timers, &m->wall);
}

int clock_open(struct monitor *m, struct err *e)
{
	uint64_t limit = m->box->plan->limits[LIMIT_IDLE];
	int r = timers_init(&m->timers, &m->loop);

	if (r < 0)
		return err_sys(e, -r, "make a timer");
	m->wall.fired = wall_fired;
	m->idle.fired = idle_fired;
	m->live.fired = live_fired;
	clock_active(m);
	if (limit)
		timer_set(&m->timers, &m->idle, limit);
	return 0;
}
