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
 *   - a load is open until its thread asks again or ends: the kernel may still be at it;
 *   - a process that lives has at most as many of its own as it has records, and as its threads
 *     have filters, together;
 *   - all others live on in processes that inherited them. What a process has inherited all its
 *     threads have, so any one of them tells how many that are at most.
 * Processes come and go meanwhile, and one that goes on as its own child is never where it was
 * listed. So a census counts only when all that were listed at one time could be read. Before Linux
 * 6.11 a process keeps its programs until somebody has waited for it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/seccomp.h"

#define CENSUS_MS 200 /* not more often: code inside could keep us busy with it */
#define CENSUS_ROUNDS 8
#define MEMBERS_MAX 4096
#define HOLDERS_MAX 8192
#define CHILDREN_BYTES 65536

/* ---- the count --------------------------------------------------------------------- */

static size_t filters_bound(void)
{
	long bound = fault_number("CAISSON_FILTERS_MAX", FILTERS_MAX);

	return bound < FILTERS_MAX ? (size_t)bound : FILTERS_MAX;
}

bool filters_add(struct filters *f, struct filter_load load)
{
	if (f->n + f->n_orphans >= filters_bound())
		return false;
	f->loads[f->n++] = load;
	return true;
}

void filters_settle(struct filters *f, pid_t tid)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->loads[i].tid == tid)
			f->loads[i].tid = 0;
}

bool filters_outlive(const char *release)
{
	unsigned int major = 0, minor = 0;

	return sscanf(release, "%u.%u", &major, &minor) != 2 || major < 6 ||
	       (major == 6 && minor < 11);
}

static const struct filter_holder *holder_of(const struct filter_load *l,
                                             const struct filter_holder *holders, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (holders[i].pid == l->pid && holders[i].born == l->born)
			return &holders[i];
	return NULL;
}

/* How many of the first `n` records are of the process that this one names, and not open. */
static size_t loads_before(const struct filters *f, size_t n, const struct filter_load *l)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += f->loads[i].pid == l->pid && f->loads[i].born == l->born &&
		         f->loads[i].tid == 0;
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

		if (load.pid == 0 || load.tid != 0 ||
		    (h && loads_before(f, kept, &load) < h->in_all))
			f->loads[kept++] = load;
		else
			gone++; /* also from one that lives: its thread ended, a child has it */
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
};

static bool read_task(const char *path, struct task *out)
{
	char text[4096];

	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return false;
	const char *process = strstr(text, "\nTgid:\t"),
		   *filters = strstr(text, "\nSeccomp_filters:\t");

	if (!process || !filters)
		return false;
	out->process = (pid_t)strtol(process + 7, NULL, 10);
	out->filters = strtoull(filters + 18, NULL, 10);
	return true;
}

/* proc(5): the third field is the state, the 22nd the time of birth, in ticks since the boot. */
static bool read_stat(pid_t pid, char *state, uint64_t *born)
{
	char path[32], text[512];
	unsigned long long ticks;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return false;
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at + 2,
	                  "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
	                  "%*d %llu",
	                  state, &ticks) != 2)
		return false;
	*born = ticks;
	return true;
}

struct census {
	const struct monitor *monitor;
	uint64_t ours; /* that all have: our own, and those that the monitor was started with */
	struct filter_holder *holders;
	size_t n_holders;
	pid_t *listed;
	size_t n_listed;
	char *text;
	bool has_cgroup;
	bool wants_zombies;
};

static bool is_known(const struct census *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_holders; i++)
		if (c->holders[i].pid == pid)
			return true;
	return false;
}

/* Calls for each thread of the process, which has one at least; false: it is gone, or one of them.
 */
static bool each_thread(struct census *c, pid_t pid, void *arg,
                        bool (*look)(struct census *c, const char *path, void *arg))
{
	char path[64];
	bool is_read = false;

	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%d/task/%.20s", pid, d->d_name);
		is_read = look(c, path, arg);
		if (!is_read)
			break;
	}
	if (dir)
		closedir(dir);
	return is_read;
}

static bool add_thread(struct census *c, const char *folder, void *arg)
{
	struct filter_holder *h = arg;
	struct task t;
	char path[96];

	snprintf(path, sizeof path, "%s/status", folder);
	if (!read_task(path, &t))
		return false;
	h->inherited = t.filters > c->ours ? t.filters - c->ours : 0;
	h->in_all += h->inherited;
	return true;
}

/* Threads that ended are counted like those that live. */
static bool add_holder(struct census *c, pid_t pid)
{
	struct filter_holder h = { .pid = pid };
	char state;

	if (is_known(c, pid))
		return true;
	if (c->n_holders == HOLDERS_MAX || !read_stat(pid, &state, &h.born) ||
	    !each_thread(c, pid, &h, add_thread))
		return false;
	c->holders[c->n_holders++] = h;
	return true;
}

static bool is_listed(const struct census *c, pid_t pid)
{
	for (size_t i = 0; i < c->n_listed; i++)
		if (c->listed[i] == pid)
			return true;
	return false;
}

static bool is_zombie(pid_t pid)
{
	uint64_t born;
	char state;

	return read_stat(pid, &state, &born) && state == 'Z';
}

/* Children of a thread that are not listed: zombies, which no cgroup lists, or all if there is no
 * cgroup. */
static bool list_children(struct census *c, const char *folder, void *arg)
{
	char path[96], *end = c->text;

	(void)arg;
	snprintf(path, sizeof path, "%s/children", folder);
	int n = os_read_file(AT_FDCWD, path, c->text, CHILDREN_BYTES);
	for (const char *at = c->text; n > 0; at = end) {
		pid_t child = (pid_t)strtol(at, &end, 10);

		if (end == at)
			break;
		if (is_listed(c, child) || (c->has_cgroup && !is_zombie(child)))
			continue;
		if (c->n_listed == MEMBERS_MAX)
			return false;
		c->listed[c->n_listed++] = child;
	}
	return n >= 0 && n < CHILDREN_BYTES - 1;
}

/* One round; false: not all that was listed could be read. What is known is not read again: nobody
 * loads anything meanwhile, they ask us. */
static bool look_around(struct census *c)
{
	const struct cgroup *cg = &c->monitor->box->cgroup;
	bool is_counted = cgroup_has(cg, CG_PIDS) || cgroup_has(cg, CG_MEMORY);

	c->n_listed = is_counted ? cgroup_members(cg, c->listed, MEMBERS_MAX) : 0;
	c->has_cgroup = c->n_listed > 0;
	if (c->n_listed == MEMBERS_MAX)
		return false;
	c->listed[c->n_listed++] = getpid(); /* whose children commands can make theirs */
	for (size_t i = 0; i < c->n_listed; i++)
		if (!add_holder(c, c->listed[i]) ||
		    ((c->wants_zombies || !c->has_cgroup) &&
		     !each_thread(c, c->listed[i], NULL, list_children)))
			return false;
	return true;
}

/* Loads of threads that ended. Before the list: what such a thread left behind is listed. */
static void settle_ended(struct filters *f)
{
	char path[64];

	for (size_t i = 0; i < f->n; i++) {
		snprintf(path, sizeof path, "/proc/%d/task/%d", f->loads[i].pid, f->loads[i].tid);
		if (f->loads[i].tid && access(path, F_OK) < 0)
			f->loads[i].tid = 0;
	}
}

/* A list that never is whole frees nothing. */
static void take_census(struct monitor *m)
{
	AUTO(freep) pid_t *listed = mem_alloc(MEMBERS_MAX * sizeof *listed);
	AUTO(freep) struct filter_holder *holders = mem_alloc(HOLDERS_MAX * sizeof *holders);
	AUTO(freep) char *text = mem_alloc(CHILDREN_BYTES);
	struct census c = { .monitor = m, .holders = holders, .listed = listed, .text = text };
	struct utsname kernel;
	struct task self;

	if (uname(&kernel) < 0 || !read_task("/proc/self/status", &self))
		return;
	c.ours = self.filters + 1;
	c.wants_zombies = filters_outlive(kernel.release);
	settle_ended(&m->filters);
	for (int i = 0; i < CENSUS_ROUNDS; i++)
		if (look_around(&c)) {
			filters_census(&m->filters, c.holders, c.n_holders);
			return;
		}
}

/* ---- the answer -------------------------------------------------------------------- */

bool filters_is_load(const struct seccomp_notif *n)
{
	return n->data.nr == SYS_seccomp || n->data.nr == SYS_prctl;
}

static bool may_load(struct monitor *m, pid_t tid)
{
	struct filter_load load = { .tid = tid };
	struct task t;
	char path[32], state;

	snprintf(path, sizeof path, "/proc/%d/status", tid);
	if (read_task(path, &t) && read_stat(t.process, &state, &load.born))
		load.pid = t.process; /* else it is gone, or not to be seen: it never ends */
	filters_settle(&m->filters, tid);
	if (filters_add(&m->filters, load))
		return true;

	const uint64_t began = timer_now_ms();
	if (began < m->filters.next_census_ms)
		return false;
	take_census(m);
	const uint64_t ended = timer_now_ms();
	m->filters.next_census_ms = ended + CENSUS_MS + 4 * (ended - began);
	return filters_add(&m->filters, load);
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
