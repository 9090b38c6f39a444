#include "monitor/monitor.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/caps.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

#define GRACE_MS 2000

/* Without a cgroup: what lives on after the command is pid 1's. */
static size_t orphans(pid_t init, pid_t *out, size_t max)
{
	char path[64], text[4096];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", init, init);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return 0;
	char *end = text;
	for (char *p = text; n < max; p = end) {
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		out[n++] = (pid_t)pid;
	}
	return n;
}

/* Everything writable is one tmpfs: /tmp stands for all of it. */
static void look_at_scratch(struct monitor *m)
{
	char path[64];
	struct statfs fs;

	snprintf(path, sizeof path, "/proc/%d/root/tmp", m->init.pid);
	if (statfs(path, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return;
	m->end.is_disk_full = fs.f_blocks > 0 && fs.f_bavail == 0;
	m->end.is_inodes_full = fs.f_files > 0 && fs.f_ffree == 0;
}

static void count_children(struct monitor *m)
{
	enum { MAX = 1024 };
	pid_t pids[MAX];
	size_t n = cgroup_members(&m->box->cgroup, pids, MAX);

	if (n == 0)
		n = orphans(m->init.pid, pids, MAX);
	for (size_t i = 0; i < n; i++) {
		char path[64];
		struct channel_child *c = &m->end.children[m->end.n_children];

		if (pids[i] == m->init.pid || pids[i] == m->command.pid)
			continue;
		if (m->end.n_children++ >= CHANNEL_CHILDREN_MAX)
			continue;
		c->pid = pids[i];
		snprintf(path, sizeof path, "/proc/%d/comm", pids[i]);
		int len = os_read_file(AT_FDCWD, path, c->name, sizeof c->name);
		if (len > 0 && c->name[len - 1] == '\n')
			c->name[len - 1] = '\0';
	}
}

static void fill_usage(struct monitor *m)
{
	struct cgroup_usage u;

	/* Only a command that was killed can be out of memory, unless somebody wants to know all.
	 */
	if (m->box->plan->wants_usage || (m->has_exited && WIFSIGNALED(m->status)))
		m->end.oom_kills = cgroup_oom_kills(&m->box->cgroup);
	if (m->box->plan->wants_usage) {
		cgroup_usage(&m->box->cgroup, &u);
		m->end.cpu_ms = u.cpu_ms ? u.cpu_ms : m->user_cpu_ms;
		m->end.mem_peak = u.mem_peak ? u.mem_peak : m->user_mem_peak;
		m->end.io_bytes = m->user_io_bytes;
		m->end.pids_denied = u.pids_denied;
	}
	m->end.ms = clock_ms() - m->started_ms;
	m->end.out_bytes = m->streams[0].bytes;
	m->end.err_bytes = m->streams[1].bytes;
}

/* Did pid 1 go first, and take the command along? It says so, or was found dead. */
static bool init_reason(struct monitor *m)
{
	struct err e = { 0 };
	bool has_said = spawn_init_error(&m->init, &e);

	if (!has_said && !m->is_init_lost)
		return false;
	snprintf(m->reason, sizeof m->reason, "%s",
	         has_said ? e.msg : "pid 1 of the sandbox was killed");
	return true;
}

static void fill_state(struct monitor *m)
{
	struct channel_end *end = &m->end;

	end->state = m->cause;
	end->exit_code = -1;
	if (WIFEXITED(m->status))
		end->exit_code = WEXITSTATUS(m->status);
	else
		end->signal = WTERMSIG(m->status);
	if (m->cause == RUN_EXITED && end->signal) {
		bool is_oom = end->signal == SIGKILL && end->oom_kills > 0;

		bool is_lost = !is_oom && end->signal == SIGKILL && init_reason(m);

		end->state = is_oom ? RUN_OOM : is_lost ? RUN_LOST : RUN_SIGNALED;
		if (is_oom)
			snprintf(m->reason, sizeof m->reason, "mem limit of %llu bytes reached",
			         (unsigned long long)m->box->plan->limits[LIMIT_MEM]);
	}
	memcpy(end->reason, m->reason, sizeof end->reason);
}

/* The command's own usage, with that of all it waited for, and pid 1's, with that of the orphans:
 * together everything that ran inside. */
static void add_usage(struct monitor *m, const struct rusage *usage)
{
	uint64_t peak = (uint64_t)usage->ru_maxrss * 1024;

	m->user_cpu_ms += (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
	                  (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
	m->user_mem_peak = peak > m->user_mem_peak ? peak : m->user_mem_peak;
	m->user_io_bytes += (uint64_t)(usage->ru_inblock + usage->ru_oublock) * 512;
}

static void note_exit(struct monitor *m, int status, const struct rusage *usage)
{
	m->has_exited = true;
	m->status = status;
	add_usage(m, usage);
}

/* Nothing will be read from the cgroups any more (fill_usage). */
static bool is_count_done(const struct monitor *m)
{
	return m->has_exited && WIFEXITED(m->status) && !m->box->plan->wants_usage;
}

/* Pid 1 is killed: the kernel ends its namespace, and waiting for it is waiting for every
 * process inside, whatever session, group or signal mask it took. It ends last, after our other
 * children have been waited for: they live in its namespace. */
static void end_inside(struct monitor *m)
{
	struct rusage usage;
	int status;

	/* Dead already: then it took the others along, and that is the reason of their end. */
	if (m->init.pid > 0 && os_try_wait(m->init.pid, &status, &usage) > 0) {
		m->is_init_lost = true;
		m->init.pid = 0;
	}
	if (m->init.pid > 0)
		(void)kill(m->init.pid,
		           SIGKILL); /* our child, not waited for: the number is its own */
	if (is_count_done(m)) /* the client may take the cgroups away while the kernel works */
		channel_send(m, CH_EBB, NULL, 0);
	for (;;) {
		int pid = os_wait(-1, &status, &usage);

		if (pid < 0)
			return;
		if (pid == m->init.pid && WIFEXITED(status))
			m->is_init_lost = true; /* it never does that by itself */
		if (pid == m->command.pid && !m->has_exited)
			note_exit(m, status, &usage);
		else
			add_usage(m, &usage);
	}
}

void monitor_finish(struct monitor *m)
{
	if (m->box->plan->wants_usage) {
		count_children(m);
		look_at_scratch(m);
	}
	end_inside(m);
	streams_drain(m);
	fill_usage(m);
	fill_state(m);
	channel_send(m, CH_END, &m->end, sizeof m->end);
	_exit(0);
}

void monitor_drained(struct monitor *m)
{
	if (m->has_exited && streams_ended(m))
		monitor_finish(m);
}

static void terminate_all(struct monitor *m)
{
	enum { MAX = 4096 };
	pid_t pids[MAX];
	size_t n = cgroup_members(&m->box->cgroup, pids, MAX);

	for (size_t i = 0; i < n; i++)
		if (pids[i] > 0 && pids[i] != m->init.pid)
			(void)kill(pids[i], SIGTERM);
	if (n == 0)
		(void)kill(-m->command.pid, SIGTERM);
}

void monitor_stop(struct monitor *m, enum run_state cause, const char *reason)
{
	if (m->cause != RUN_EXITED)
		return; /* it is ending already */
	m->cause = cause;
	snprintf(m->reason, sizeof m->reason, "%s", reason);
	if (m->has_exited)
		monitor_finish(m);
	terminate_all(m);
	clock_set(m, AT_GRACE, GRACE_MS);
}

/* Pid 1 and the command's process each see the other go: whose own trouble was first? */
static void find_cause(struct monitor *m, struct err *e)
{
	struct err other = { 0 };

	if (e->sys == EPIPE) { /* pid 1 saw the command's process go */
		if (spawn_command_error(&m->command, &other))
			*e = other;
	} else if (spawn_init_error(&m->init, &other) && other.sys != EPIPE) {
		*e = other;
		err_wrap(e, "build the walls");
	}
}

static _Noreturn void give_up(struct monitor *m, const struct err *e)
{
	/* The command's process waits for pid 1, or dies with it. */
	fd_close(&m->init.entered_fd);
	fd_close(&m->init.walls_fd);
	end_inside(m);
	channel_send(m, CH_FAIL, e, sizeof *e);
	_exit(125);
}

static void child_ready(struct watch *w, uint32_t events)
{
	struct monitor *m = MONITOR_OF(w, child);
	struct rusage usage = { 0 };

	(void)events;
	int status;

	if (os_try_wait(m->command.pid, &status, &usage) <= 0)
		return;
	note_exit(m, status, &usage);
	loop_remove(&m->loop, w);
	struct err e = { 0 };
	if (spawn_command_error(&m->command, &e))
		give_up(m, &e); /* it never executed, and says why */
	streams_read(m);        /* what it wrote is there already */
	if (m->cause != RUN_EXITED || streams_ended(m))
		monitor_finish(m);
	/* Others may hold the pipes: what they still write in a moment belongs to the answer,
	 * but their life does not. */
	clock_set(m, AT_DRAIN, 50);
}

static void control_ready(struct watch *w, uint32_t events)
{
	struct monitor *m = MONITOR_OF(w, control);
	static struct channel_packet p; /* 32 KiB: not on the stack of a callback */

	if (events & EPOLLOUT)
		streams_unblock(m);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	ssize_t n = recv(w->fd, &p, sizeof p, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) /* the client is gone: so is the reason to run */
		monitor_finish(m);
	if ((size_t)n < sizeof p.head || p.head.len != (size_t)n - sizeof p.head)
		return;
	streams_client(m, &p);
}

/* ---- birth ------------------------------------------------------------------------- */

/* Nothing of the client's terminal stays open here, and no signal of it arrives. */
static int step_detach(struct monitor *m, struct err *e)
{
	if (cgroup_join_shared(&m->box->cgroup, e) < 0)
		return -1;
	int r = os_setsid();
	AUTO(fd_close) int null = r < 0 ? r : os_openat(AT_FDCWD, "/dev/null", O_RDWR, 0);
	for (int fd = 0; fd < 3 && null >= 0 && r >= 0; fd++)
		r = os_dup3(null, fd, 0);

	return r < 0 || null < 0 ? err_sys(e, r < 0 ? -r : -null, "detach") : 0;
}

/* From root to the id that owns the sandbox; only the rights to write its maps and to give birth
 * in its pid namespace are kept, until that is done. */
static int step_lower(struct monitor *m, struct err *e)
{
	uint64_t maps = CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_SETGID) | CAP_BIT(CAP_SYS_ADMIN);

	(void)os_reset_schedule();
	(void)os_write_file(AT_FDCWD, "/proc/self/oom_score_adj",
	                    "0"); /* a user may only raise it */
	if (!m->box->is_root)
		return 0;
	int r = os_drop_groups();
	if (r >= 0)
		r = os_prctl(PR_SET_KEEPCAPS, 1);
	if (r >= 0)
		r = os_set_ids(m->box->uid, m->box->gid);
	if (r >= 0)
		r = os_caps_set(maps, maps, 0);
	if (r >= 0) /* or its own /proc would belong to root, and the maps could not be written */
		r = os_prctl(PR_SET_DUMPABLE, 1);
	return r < 0 ? err_sys(e, -r, "become %u", m->box->uid) : 0;
}

static int step_init(struct monitor *m, struct err *e)
{
	return spawn_init(m->box, &m->init, e);
}

/* From here on no right is left, and nobody of this user may look into the process: a command
 * that shares our uid (rootless) could otherwise reach the program file through /proc. */
static int step_drop(struct monitor *m, struct err *e)
{
	int r = os_prctl(PR_SET_DUMPABLE, 0);

	(void)m;
	if (r >= 0)
		r = os_caps_set(0, 0, 0);
	if (r >= 0)
		r = os_prctl(PR_SET_NO_NEW_PRIVS, 1);
	return r < 0 ? err_sys(e, -r, "drop the last rights") : 0;
}

/* The launcher makes the cgroup while we make namespaces. */
static int step_cgroup(struct monitor *m, struct err *e)
{
	struct channel_head head = { 0 };
	int keys[CGROUP_KEYS_MAX];
	size_t n_keys = COUNT(keys);
	int n = os_recv(m->control.fd, &head, sizeof head, keys, &n_keys);

	if (n != (int)sizeof head || head.type != CH_GO)
		return err_new(e, ERR_INTERNAL, "the launcher gave up");
	os_cpus_take(&m->box->cpus);
	if (cgroup_take_keys(&m->box->cgroup, keys, n_keys) < 0)
		return err_new(e, ERR_INTERNAL, "the launcher sent %zu descriptors", n_keys);
	return 0;
}

static int step_command(struct monitor *m, struct err *e)
{
	struct payload_io io = { .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1 };
	int r = streams_open(m, &io, e);

	if (r == 0)
		r = spawn_command(m->box, &m->init, io, &m->command, e);
	fd_close(&io.stdin_fd);
	fd_close(&io.stdout_fd);
	fd_close(&io.stderr_fd);
	return r;
}

static int step_walls(struct monitor *m, struct err *e)
{
	return spawn_await_walls(&m->init, e);
}

static int step_start(struct monitor *m, struct err *e)
{
	return spawn_await_start(m->box, &m->command, e);
}

static int step_watch(struct monitor *m, struct err *e)
{
	int r = loop_init(&m->loop);

	if (r < 0)
		return err_sys(e, -r, "make the loop");
	m->child = (struct watch){ .fd = os_pidfd_open(m->command.pid), .ready = child_ready };
	if (m->child.fd < 0)
		return err_sys(e, -m->child.fd, "watch the command");
	r = loop_add(&m->loop, &m->child, EPOLLIN);
	if (r >= 0)
		r = loop_add(&m->loop, &m->control, EPOLLIN);
	if (r < 0)
		return err_sys(e, -r, "watch");
	return clock_open(m, e) < 0 || streams_watch(m, e) < 0 || execs_watch(m, e) < 0 ? -1 : 0;
}

/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct monitor *m, struct err *e);
} birth[] = {
	{ "lower the monitor",     step_lower },
	{ "make the namespaces",   step_init },
	{ "detach the monitor",    step_detach }, /* while pid 1 works */
	{ "lock the monitor",      step_drop },
	{ "await the cgroup",      step_cgroup },
	{ "prepare the command",   step_command },
	{ "build the walls",       step_walls },
	{ "start the command",     step_start },
	{ "watch the sandbox",     step_watch },
};
/* clang-format on */

/* The command's process reports on its way to execve: its socket ends when that worked. With
 * the notification it only gets there when the loop answers, so this is a watch as well. */
static void report_ready(struct watch *w, uint32_t events);

static struct report_watch {
	struct watch watch;
	struct monitor *monitor;
} report;

static void report_ready(struct watch *w, uint32_t events)
{
	struct monitor *m = report.monitor;
	struct err e = { 0 };
	ssize_t n = recv(w->fd, &e, sizeof e, 0);

	(void)events;
	loop_remove(&m->loop, w);
	fd_close(&w->fd);
	if (n == (ssize_t)sizeof e) {
		e.msg[sizeof e.msg - 1] = '\0';
		give_up(m, &e);
	}
}

static int watch_report(struct monitor *m, struct err *e)
{
	report =
	    (struct report_watch){ .watch = { .fd = m->command.report_fd, .ready = report_ready },
		                   .monitor = m };
	int r = loop_add(&m->loop, &report.watch, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch the start") : 0;
}

void monitor_main(struct box *box, int control_fd)
{
	static struct monitor m;
	struct err e = { 0 };

	signal(SIGPIPE, SIG_IGN); /* an answer, not an end */
	m.box = box;
	m.control = (struct watch){ .fd = control_fd, .ready = control_ready };
	m.init.pidfd = m.init.report_fd = m.init.go_fd = m.init.entered_fd = m.init.walls_fd = -1;
	m.command.pty_fd = m.command.listener_fd = m.command.report_fd = -1;
	for (size_t i = 0; i < COUNT(birth); i++) {
		if (birth[i].run(&m, &e) < 0) {
			err_wrap(&e, "%s", birth[i].name);
			find_cause(&m, &e);
			give_up(&m, &e);
		}
	}
	if (watch_report(&m, &e) < 0)
		give_up(&m, &e);
	(void)loop_run(&m.loop); /* ends in monitor_finish() */
	monitor_finish(&m);
}
