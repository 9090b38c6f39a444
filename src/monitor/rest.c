/*
 * rest.c - what a command leaves running is ended before its end is told, for those who asked.
 *
 * The same way as everything else ends: TERM, a grace, KILL. With a cgroup of its own nobody
 * escapes. Without one those are found who did not leave its session; who could not be ended in
 * time is named in the end.
 */
#include <signal.h>

#include "monitor/monitor-internal.h"
#include "os/proc.h"

#define GRACE_MS 2000
#define LATE_MS 1000 /* after KILL: nothing more can be done */
#define LOOK_MS 5
#define MEMBERS_MAX 4096

static size_t members(const struct proc *p, pid_t pids[MEMBERS_MAX])
{
	size_t n = procs_tree(p, pids, MEMBERS_MAX), kept = 0;

	for (size_t i = 0; i < n; i++)
		if (pids[i] > 0 && pids[i] != p->spawn.pid && pids[i] != p->monitor->init.pid)
			pids[kept++] = pids[i];
	return p->shell ? shells_only_new(p, pids, kept) : kept;
}

static void close_rest(struct proc *p)
{
	p->is_resting = false;
	streams_read(p);
	procs_close(p);
}

static void fired(struct timer *t)
{
	struct proc *p = OWNER_OF(t, struct proc, rest);
	AUTO(freep) pid_t *pids = mem_alloc(MEMBERS_MAX * sizeof *pids);
	size_t n = report_is_tree_gone(p) ? 0 : members(p, pids);
	uint64_t so_far_ms = timer_now_ms() - p->resting_ms;

	if (n == 0 || so_far_ms > GRACE_MS + LATE_MS) {
		close_rest(p);
		return;
	}
	for (size_t i = 0; i < n && (!p->is_rest_told || so_far_ms > GRACE_MS); i++)
		(void)kill(pids[i], p->is_rest_told ? SIGKILL : SIGTERM); /* gone meanwhile: good */
	p->is_rest_told = true;
	timer_set(&p->monitor->timers, t, LOOK_MS);
}

void rest_end(struct proc *p)
{
	p->rest.fired = fired;
	p->is_resting = true;
	p->is_rest_told = false;
	p->resting_ms = timer_now_ms();
	timer_stop(&p->monitor->timers, &p->timeout);
	fired(&p->rest);
}
