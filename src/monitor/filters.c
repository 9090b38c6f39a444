/*
 * filters.c - how many system call filters the code inside has loaded.
 *
 * Loading one only takes rights away from the caller, and browsers, sshd and other sandboxes need
 * it. But the kernel keeps each as a compiled program in memory that all of the host shares, and
 * kernels since 6.9 can stop for good when about a thousand are freed at once. So the filter asks
 * the monitor, which lets FILTERS_MAX live in a sandbox.
 *
 * Each load leaves a record of the process that asked. When they are as many as there may be, a
 * census finds how many can be alive at most:
 *   - a process that lives has at most as many of its own as it has records, and as its threads
 *     have filters, together;
 *   - a program whose loader is gone lives on in its descendants only. What a process has inherited
 *     all its threads have, so any one of them tells how many that are at most.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/seccomp.h"

#define CENSUS_MS 200 /* not more often: code inside could keep us busy with it */
#define MEMBERS_MAX 4096

/* ---- the count --------------------------------------------------------------------- */

static size_t filters_bound(void)
{
	long bound = fault_number("CAISSON_FILTERS_MAX", FILTERS_MAX);

	return bound < FILTERS_MAX ? (size_t)bound : FILTERS_MAX;
}

bool filters_add(struct filters *f, pid_t pid, uint64_t born)
{
	if (f->n + f->n_orphans >= filters_bound())
		return false;
	f->loads[f->n++] = (struct filter_load){ pid, born };
	return true;
}

static const struct filter_holder *holder_of(const struct filter_load *l,
                                             const struct filter_holder *holders, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (holders[i].pid == l->pid && holders[i].born == l->born)
			return &holders[i];
	return NULL;
}

/* How many of the first `n` records are of the process that this one names. */
static size_t loads_before(const struct filters *f, size_t n, const struct filter_load *l)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += f->loads[i].pid == l->pid && f->loads[i].born == l->born;
	return count;
}

void filters_census(struct filters *f, const struct filter_holder *holders, size_t n)
{
	uint64_t inherited = 0;
	size_t kept = 0, gone = 0;

	for (size_t i = 0; i < n; i++)
		inherited += holders[i].inherited;
	for (size_t i = 0; i < f->n; i++) {
		const struct filter_load load = f->loads[i];
		const struct filter_holder *h = holder_of(&load, holders, n);

		if (load.pid == 0 || (h && loads_before(f, kept, &load) < h->in_all))
			f->loads[kept++] = load;
		else if (!h)
			gone++;
	}
	f->n = kept;
	f->n_orphans += gone;
	if (f->n_orphans > inherited)
		f->n_orphans = (size_t)inherited;
}

/* ---- what /proc says --------------------------------------------------------------- */

struct task {
	pid_t process;
	uint64_t filters;
	bool is_alive;
};

static bool read_task(const char *path, struct task *out)
{
	char text[4096];

	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return false;
	const char *state = strstr(text, "\nState:\t"), *process = strstr(text, "\nTgid:\t");
	const char *filters = strstr(text, "\nSeccomp_filters:\t");

	if (!state || !process || !filters)
		return false;
	out->is_alive = state[8] != 'Z' && state[8] != 'X';
	out->process = (pid_t)strtol(process + 7, NULL, 10);
	out->filters = strtoull(filters + 18, NULL, 10);
	return true;
}

/* proc(5): the 22nd field, in ticks since the boot. */
static bool read_born(pid_t pid, uint64_t *out)
{
	char path[32], text[512];
	unsigned long long ticks;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return false;
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at + 2,
	                  "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
	                  "%*d %llu",
	                  &ticks) != 1)
		return false;
	*out = ticks;
	return true;
}

/* Without our own, and those that the monitor was started with. */
static void add_thread(struct filter_holder *h, const struct task *t, uint64_t ours)
{
	uint64_t own = t->filters > ours ? t->filters - ours : 0;

	if (!t->is_alive)
		return;
	h->in_all += own;
	h->inherited = own;
}

static bool read_holder(pid_t pid, uint64_t ours, struct filter_holder *out)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	*out = (struct filter_holder){ .pid = pid };
	DIR *dir = read_born(pid, &out->born) ? opendir(path) : NULL;

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		struct task t;

		snprintf(path, sizeof path, "/proc/%d/task/%.20s/status", pid, d->d_name);
		if (d->d_name[0] != '.' && read_task(path, &t))
			add_thread(out, &t, ours);
	}
	if (dir)
		closedir(dir);
	return dir != NULL;
}

/* A list that is not whole frees nothing. */
static void take_census(struct monitor *m)
{
	AUTO(freep) pid_t *pids = mem_alloc(MEMBERS_MAX * sizeof *pids);
	AUTO(freep) struct filter_holder *holders = mem_alloc(MEMBERS_MAX * sizeof *holders);
	size_t n_pids = procs_living(m, pids, MEMBERS_MAX), n = 0;
	struct task self;

	if (n_pids == MEMBERS_MAX || !read_task("/proc/self/status", &self))
		return;
	for (size_t i = 0; i < n_pids; i++)
		n += read_holder(pids[i], self.filters + 1, &holders[n]);
	filters_census(&m->filters, holders, n);
}

/* ---- the answer -------------------------------------------------------------------- */

bool filters_is_load(const struct seccomp_notif *n)
{
	return n->data.nr == SYS_seccomp || n->data.nr == SYS_prctl;
}

static bool may_load(struct monitor *m, pid_t tid)
{
	const uint64_t now = timer_now_ms();
	struct task t;
	char path[32];
	uint64_t born = 0;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	if (!read_task(path, &t) || !read_born(t.process, &born))
		t.process = 0; /* gone, or not to be seen: counted as one that never ends */
	if (filters_add(&m->filters, t.process, born))
		return true;
	if (m->filters.census_ms && now - m->filters.census_ms < CENSUS_MS)
		return false;
	m->filters.census_ms = now;
	take_census(m);
	return filters_add(&m->filters, t.process, born);
}

void filters_answer(struct proc *p, const struct seccomp_notif *n)
{
	/* Both have the program there. Libraries ask with NULL what the kernel knows. */
	const bool is_question = n->data.args[2] == 0;

	if (is_question || may_load(p->monitor, (pid_t)n->pid)) {
		int r = os_seccomp_continue(execs_listener(p), n->id);

		if (r < 0 && r != -ENOENT)
			procs_stop(p, RUN_LOST, "the notification of a filter failed");
		return;
	}
	if (p->end.filters_denied < UINT16_MAX)
		p->end.filters_denied++;
	(void)os_seccomp_refuse(execs_listener(p), n->id, ENOMEM); /* or it is gone */
}
