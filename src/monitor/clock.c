/*
 * clock.c - one timer descriptor for all deadlines of a sandbox.
 */
#include <fcntl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/file.h"

uint64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void arm(struct monitor *m)
{
	uint64_t next = 0;
	struct itimerspec at = { 0 };

	for (enum deadline d = 0; d < DEADLINES; d++)
		if (m->deadline_ms[d] && (!next || m->deadline_ms[d] < next))
			next = m->deadline_ms[d];
	at.it_value.tv_sec = (time_t)(next / 1000);
	at.it_value.tv_nsec = (long)(next % 1000) * 1000000;
	(void)timerfd_settime(m->timer.fd, TFD_TIMER_ABSTIME, &at,
	                      NULL); /* a valid time cannot fail */
}

void clock_set(struct monitor *m, enum deadline d, uint64_t in_ms)
{
	m->deadline_ms[d] = in_ms ? clock_ms() + in_ms : 0;
	arm(m);
}

/* utime + stime of one process, in ms (proc(5): fields 14 and 15, after the name in brackets). */
static uint64_t cpu_of(pid_t pid)
{
	char path[32], text[512];
	unsigned long user = 0, system_time = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
	                  &system_time) != 2)
		return 0;
	return (user + system_time) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t cpu_used(struct monitor *m)
{
	enum { MAX = 1024 };
	pid_t pids[MAX];
	size_t n = cgroup_members(&m->box->cgroup, pids, MAX);
	uint64_t sum = n == 0 ? cpu_of(m->command.pid) : 0;

	for (size_t i = 0; i < n; i++)
		sum += cpu_of(pids[i]);
	return sum;
}

/* Only a note: the deadline moves when it fires, not at every byte. */
void clock_active(struct monitor *m)
{
	m->last_io_ms = clock_ms();
}

/* Idle is no byte in or out, and less than one percent of a processor. */
static void idle_fired(struct monitor *m)
{
	uint64_t limit = m->box->plan->limits[LIMIT_IDLE];
	uint64_t since = clock_ms() - m->last_io_ms;
	uint64_t cpu = cpu_used(m);

	if (since < limit) {
		clock_set(m, AT_IDLE, limit - since);
	} else if (cpu > m->idle_cpu_ms + limit / 100) {
		m->idle_cpu_ms = cpu;
		clock_set(m, AT_IDLE, limit);
	} else {
		monitor_stop(m, RUN_EXPIRED, "idle limit reached");
	}
}

static void fired(struct monitor *m, enum deadline d)
{
	m->deadline_ms[d] = 0;
	switch (d) {
	case AT_TIMEOUT:
		monitor_stop(m, RUN_TIMEOUT, "timeout reached");
		break;
	case AT_WALL:
		monitor_stop(m, RUN_EXPIRED, "wall limit reached");
		break;
	case AT_IDLE:
		idle_fired(m);
		break;
	case AT_GRACE:
	case AT_DRAIN:
		monitor_finish(m);
	case DEADLINES:
		break;
	}
}

static void ready(struct watch *w, uint32_t events)
{
	struct monitor *m = MONITOR_OF(w, timer);
	uint64_t now = clock_ms();
	uint64_t count;

	(void)events;
	if (read(w->fd, &count, sizeof count) < 0)
		return;
	for (enum deadline d = 0; d < DEADLINES; d++)
		if (m->deadline_ms[d] && m->deadline_ms[d] <= now)
			fired(m, d);
	arm(m);
}

int clock_open(struct monitor *m, struct err *e)
{
	const struct plan *p = m->box->plan;

	m->timer =
	    (struct watch){ .fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		            .ready = ready };
	if (m->timer.fd < 0)
		return err_sys(e, errno, "make a timer");
	int r = loop_add(&m->loop, &m->timer, EPOLLIN);
	if (r < 0)
		return err_sys(e, -r, "watch the timer");
	m->started_ms = m->last_io_ms = clock_ms();
	clock_set(m, AT_TIMEOUT, p->timeout_ms);
	clock_set(m, AT_WALL, p->limits[LIMIT_WALL]);
	clock_set(m, AT_IDLE, p->limits[LIMIT_IDLE]);
	return 0;
}
