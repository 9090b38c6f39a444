/*
 * report.c - what the end of a process says, and what the sandbox uses now.
 *
 * The final command of a sandbox speaks for all of it, by its cgroup. Any other speaks for itself
 * and for what it waited for, by rusage: the cgroup has the neighbours in it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor/monitor-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define MEMBERS_MAX 1024

/* Everything writable is one tmpfs. */
static bool look_at_scratch(const struct monitor *m, struct statfs *fs)
{
	return m->init.scratch_fd >= 0 && fstatfs(m->init.scratch_fd, fs) == 0;
}

static size_t children_of(pid_t pid, pid_t *out, size_t max)
{
	char path[64], text[4096];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	char *end = text;
	for (char *p = text; n < max; p = end) {
		long child = strtol(p, &end, 10);

		if (end == p)
			break;
		out[n++] = (pid_t)child;
	}
	return n;
}

/* The number that it has in there: the host's would say something about the host. */
static pid_t pid_inside(pid_t pid)
{
	char path[64], text[4096];

	snprintf(path, sizeof path, "/proc/%d/status", pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	char *line = strstr(text, "\nNSpid:");
	char *end = line ? strchr(line + 1, '\n') : NULL;
	if (!end)
		return 0;
	*end = '\0';
	char *last = strrchr(line, '\t');
	return last ? (pid_t)strtol(last, NULL, 10) : 0;
}

/* A listener of its own hangs up when the last process of the tree is gone: cheaper than a look at
 * the list. */
bool report_is_tree_gone(const struct proc *p)
{
	struct pollfd listener = { .fd = p->listener.fd };
	pid_t any;

	if (p->nest && p->leaf.num)
		return cgroup_leaf_members(&p->monitor->box->cgroup, p->leaf.num, &any, 1) == 0;

	return p->has_listener &&
	       (p->listener.fd < 0 || (poll(&listener, 1, 0) == 1 && listener.revents & POLLHUP));
}

/* Without a cgroup: what lives on after the command is pid 1's; or a shell's, while that lives. */
static size_t living(struct proc *p, pid_t pids[MEMBERS_MAX])
{
	pid_t init = p->monitor->init.pid;
	size_t n = 0;

	if (p->leaf.num || p->command.is_final)
		n = procs_tree(p, pids, MEMBERS_MAX);
	if (!p->leaf.num && (n == 0 || pids[0] == p->spawn.pid))
		n = children_of(init, pids, MEMBERS_MAX);
	if (!p->leaf.num && p->shell)
		n += children_of(p->spawn.pid, pids + n, MEMBERS_MAX - n);
	if (!p->shell)
		return n;
	size_t kept = shells_only_new(p, pids, n);
	shells_note_left(p, pids, n);
	return kept;
}

static void fill_children(struct proc *p)
{
	const struct monitor *m = p->monitor;
	pid_t pids[MEMBERS_MAX];

	if (report_is_tree_gone(p))
		return;
	size_t n = living(p, pids);
	for (size_t i = 0; i < n; i++) {
		char path[64];

		if (pids[i] == m->init.pid || pids[i] == p->spawn.pid)
			continue;
		if (p->end.n_children++ >= CHANNEL_CHILDREN_MAX)
			continue;
		struct channel_child *c = &p->end.children[p->end.n_children - 1];

		c->pid = pid_inside(pids[i]);
		snprintf(path, sizeof path, "/proc/%d/comm", pids[i]);
		int len = os_read_file(AT_FDCWD, path, c->name, sizeof c->name);
		if (len > 0 && c->name[len - 1] == '\n')
			c->name[len - 1] = '\0';
	}
}

/* It cannot be waited for before the others, which the kernel kills first; but it shows (proc(5),
 * field 9: PF_EXITING). */
static bool is_init_dying(const struct monitor *m)
{
	char path[32], text[512];
	unsigned int flags = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", m->init.pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return true;
	const char *at = strrchr(text, ')');
	return at && sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & 0x4;
}

/* Did pid 1 go first, and take the command along? It says so, or was found dead. */
static bool init_reason(struct proc *p)
{
	struct monitor *m = p->monitor;
	struct err e = { 0 };

	if (!m->is_ending && is_init_dying(m))
		m->is_init_lost = true;
	bool has_said = spawn_init_error(&m->init, &e);
	if (!has_said && !m->is_init_lost)
		return false;
	snprintf(p->reason, sizeof p->reason, "%s",
	         has_said ? e.msg : "pid 1 of the sandbox was killed");
	return true;
}

static void fill_state(struct proc *p)
{
	struct channel_end *end = &p->end;

	end->state = p->cause;
	end->exit_code = -1;
	if (WIFEXITED(p->status))
		end->exit_code = WEXITSTATUS(p->status);
	else
		end->signal = WTERMSIG(p->status);
	if (p->cause == RUN_EXITED && end->signal) {
		bool is_oom = end->signal == SIGKILL && end->oom_kills > 0;
		bool is_lost = !is_oom && end->signal == SIGKILL && init_reason(p);

		end->state = is_oom ? RUN_OOM : is_lost ? RUN_LOST : RUN_SIGNALED;
		if (is_oom)
			snprintf(p->reason, sizeof p->reason, "mem limit of %llu bytes reached",
			         (unsigned long long)p->monitor->box->plan->limits[LIMIT_MEM]);
	}
	memcpy(end->reason, p->reason, sizeof end->reason);
}

/* Only a command that was killed can be out of memory, unless somebody wants to know all. */
static void fill_oom(struct proc *p)
{
	struct monitor *m = p->monitor;

	if (!p->command.wants_usage && !(p->has_exited && WIFSIGNALED(p->status)))
		return;
	m->oom_kills =
	    m->oom_fd >= 0 ? cgroup_oom_read(m->oom_fd) : cgroup_oom_kills(&m->box->cgroup);
	p->end.oom_kills = m->oom_kills - p->oom_before;
}

bool report_is_oom(struct proc *p)
{
	fill_oom(p);
	return WIFSIGNALED(p->status) && WTERMSIG(p->status) == SIGKILL && p->end.oom_kills > 0;
}

static void fill_usage(struct proc *p)
{
	struct monitor *m = p->monitor;
	const struct cgroup_usage *u = &p->used;

	p->end.cpu_ms = p->cpu_ms;
	p->end.mem_peak = p->mem_peak;
	p->end.io_bytes = p->io_bytes;
	if (p->leaf.num)
		p->end.pids_denied = cgroup_leaf_denied(&p->leaf) - p->denied_before;
	if (!p->command.is_final)
		return;
	p->end.cpu_ms = u->cpu_ms ? u->cpu_ms : m->cpu_ms;
	p->end.mem_peak = u->mem_peak ? u->mem_peak : m->mem_peak;
	p->end.io_bytes = m->io_bytes;
	p->end.pids_denied = u->pids_denied;
}

void report_count(struct proc *p)
{
	struct statfs fs;

	if (p->is_counted)
		return;
	p->is_counted = true;
	fill_oom(p);
	if (!p->command.wants_usage)
		return;
	if (p->command.is_final)
		cgroup_usage(&p->monitor->box->cgroup, &p->used);
	if (!look_at_scratch(p->monitor, &fs))
		return;
	p->end.is_disk_full = fs.f_blocks > 0 && fs.f_bavail == 0;
	p->end.is_inodes_full = fs.f_files > 0 && fs.f_ffree == 0;
}

/* What can be seen only while the sandbox lives. */
void report_look(struct proc *p)
{
	if (p->command.wants_usage)
		fill_children(p);
}

void report_fill(struct proc *p)
{
	report_count(p);
	if (p->command.wants_usage)
		fill_usage(p);
	p->end.ms = timer_now_ms() - p->started_ms;
	p->end.out_bytes = p->streams[0].bytes;
	p->end.err_bytes = p->streams[1].bytes;
	p->end.dropped_bytes += p->log.dropped;
	fill_state(p);
}

/* ---- of the sandbox, now ----------------------------------------------------------- */

/* utime + stime of one process, in ms (proc(5): fields 14 and 15, after the name in brackets);
 * fields 16 and 17 have the same of its children that it has waited for. */
static uint64_t cpu_of(pid_t pid, bool has_waited_for)
{
	char path[32], text[512];
	unsigned long user = 0, system_time = 0, waited_user = 0, waited_system = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	const char *at = strrchr(text, ')');
	if (!at || sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu",
	                  &user, &system_time, &waited_user, &waited_system) != 4)
		return 0;
	if (has_waited_for)
		user += waited_user + waited_system;
	return (user + system_time) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t report_cpu_of_all(pid_t pid)
{
	return cpu_of(pid, true);
}

uint64_t report_cpu_ms(struct monitor *m)
{
	pid_t pids[MEMBERS_MAX];
	size_t n = procs_living(m, pids, MEMBERS_MAX);
	uint64_t sum = m->cpu_ms;

	for (size_t i = 0; i < n; i++)
		sum += pids[i] == getpid() ? 0 : cpu_of(pids[i], false);
	return sum;
}

void report_usage(struct monitor *m, struct channel_usage *out)
{
	const struct cgroup *cg = &m->box->cgroup;
	struct cgroup_usage u = { 0 };
	struct cgroup_now now = { 0 };
	struct statfs fs;

	cgroup_usage(cg, &u);
	cgroup_now(cg, &now);
	*out = (struct channel_usage){ .cpu_ms = u.cpu_ms ? u.cpu_ms : report_cpu_ms(m),
		                       .mem_now = now.mem,
		                       .mem_peak = u.mem_peak ? u.mem_peak : m->mem_peak,
		                       .pids = now.pids,
		                       .oom_kills = cgroup_oom_kills(cg),
		                       .pids_denied = u.pids_denied };
	if (look_at_scratch(m, &fs))
		out->disk_bytes = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}
