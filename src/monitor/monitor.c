#include "monitor/monitor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/caps.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

#define STOP_LOOK_MS 20
#define STOP_MS 2200 /* the grace of the processes, and a little */
#define MEMBERS_MAX 4096
#define BECOME_MS 20

/* A watch that cannot be made would leave somebody waiting for ever. */
void monitor_watch(struct monitor *m, struct watch *w, uint32_t events)
{
	if (loop_add(&m->loop, w, events) >= 0)
		return;
	m->cause = RUN_LOST;
	snprintf(m->reason, sizeof m->reason, "the monitor cannot watch its descriptors");
	monitor_finish(m);
}

/* ---- the end ----------------------------------------------------------------------- */

static struct proc *by_pid(const struct monitor *m, pid_t pid)
{
	for (struct proc *p = m->procs; p; p = p->next)
		if (p->spawn.pid == pid && !p->has_exited)
			return p;
	return NULL;
}

static void note_child(struct monitor *m, pid_t pid, int status, const struct rusage *usage)
{
	struct proc *p = by_pid(m, pid);
	struct proc other = { 0 };

	if (pid == m->init.pid && WIFEXITED(status))
		m->is_init_lost = true; /* it never does that by itself */
	if (!p)
		p = &other;
	procs_note_exit(p, status, usage);
	m->cpu_ms += p->cpu_ms;
	m->io_bytes += p->io_bytes;
	m->mem_peak = p->mem_peak > m->mem_peak ? p->mem_peak : m->mem_peak;
}

/* Pid 1 is killed: the kernel ends its namespace, and waiting for it is waiting for every
 * process inside, whatever session, group or signal mask it took. It ends last, after our other
 * children have been waited for: they live in its namespace. */
static void end_inside(struct monitor *m)
{
	struct rusage usage;
	int status;

	freeze_end(m);
	nests_end(m); /* before all: they are not in there */
	/* Dead already: then it took the others along, and that is the reason of their end. */
	if (m->init.pid > 0 && os_try_wait(m->init.pid, &status, &usage) > 0) {
		m->is_init_lost = true;
		m->init.pid = 0;
	}
	if (m->init.pid > 0)
		(void)kill(m->init.pid,
		           SIGKILL); /* our child, not waited for: the number is its own */
	for (;;) {
		int pid = os_wait(-1, &status, &usage);

		if (pid < 0)
			return;
		note_child(m, pid, status, &usage);
	}
}

/* A process that was ended by the end of the sandbox says so. */
static void inherit_cause(const struct monitor *m, struct proc *p)
{
	if (m->cause == RUN_EXITED || p->cause != RUN_EXITED || p->has_exited)
		return;
	p->cause = m->cause;
	memcpy(p->reason, m->reason, sizeof p->reason);
}

static void close_procs(struct monitor *m)
{
	talk_last(m);
	for (struct proc *p = m->procs; p; p = p->next) {
		streams_drain(p);
		if (!p->is_over)
			procs_close(p);
	}
}

/* One short command that ended by itself, with all it had started: nothing is left inside but the
 * builder of the walls, whose end is nobody's news. */
static bool is_quiet(const struct monitor *m)
{
	const struct proc *p = m->procs;

	return m->init.go_fd >= 0 && m->init.pid > 0 && p && !p->next && p->has_exited &&
	       WIFEXITED(p->status) && report_is_tree_gone(p);
}

void monitor_finish(struct monitor *m)
{
	struct channel_gone gone = { .state = m->cause };
	bool is_told = is_quiet(m);

	memcpy(gone.reason, m->reason, sizeof gone.reason);
	for (struct proc *p = m->procs; p; p = p->next) {
		inherit_cause(m, p);
		if (!p->is_over)
			report_look(p);
	}
	if (is_told) {
		close_procs(m);
		talk_await_forget(m);
	}
	end_inside(m);
	if (!is_told)
		close_procs(m);
	gatekeep_end(m);
	talk_say(m, CH_END, &gone, sizeof gone);
	_exit(0);
}

static bool is_any_left(const struct monitor *m)
{
	for (const struct proc *p = m->procs; p; p = p->next)
		if (!p->is_over)
			return true;
	return false;
}

/* Of a CH_STOP, after the grace of each: pid 1 stays. Returns how many there were. */
static size_t kill_rest(struct monitor *m, bool is_late)
{
	AUTO(freep) pid_t *pids = mem_alloc(MEMBERS_MAX * sizeof *pids);
	size_t n = procs_all(m, pids, MEMBERS_MAX);

	for (size_t i = 0; i < n && is_late; i++)
		(void)kill(pids[i], SIGKILL);
	return n;
}

static void stop_fired(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, stop);
	bool is_late = timer_now_ms() - m->stop_ms >= STOP_MS;

	if (!m->is_stopping && (is_late || !is_any_left(m)))
		monitor_finish(m);
	if (!m->is_stopping || is_any_left(m) || kill_rest(m, is_late) > 0) {
		timer_set(&m->timers, t, STOP_LOOK_MS);
		return;
	}
	m->is_stopping = false;
	talk_done(m, CH_STOP, 0);
}

void monitor_stop(struct monitor *m, enum run_state cause, const char *reason)
{
	struct proc *next;

	freeze_end(m);
	if (!m->is_stopping) {
		m->cause = cause;
		snprintf(m->reason, sizeof m->reason, "%s", reason);
	}
	for (struct proc *p = m->procs; p; p = next) {
		next = p->next; /* one that has exited is freed */
		procs_stop(p, cause, reason);
	}
	m->stop_ms = timer_now_ms();
	timer_set(&m->timers, &m->stop, 0);
}

/* Leaves whose last process was not quite gone. */
static void sweep_fired(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, sweep);
	struct proc *next;

	for (struct proc *p = m->procs; p; p = next) {
		next = p->next;
		procs_settle(p);
	}
}

/* ---- birth ------------------------------------------------------------------------- */

static void become_fired(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, become);

	if (spawn_become_init(&m->init) < 0)
		monitor_stop(m, RUN_LOST, "pid 1 of the sandbox cannot be reached");
}

void monitor_executes(struct monitor *m)
{
	if (m->init.go_fd >= 0 && m->become.at_ms == 0)
		timer_set(&m->timers, &m->become, BECOME_MS);
}

/* Nothing of the client's terminal stays open here, and no signal of it arrives. */
static int step_detach(struct monitor *m, struct err *e)
{
	(void)m;
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

	/* Still as root: what another launcher has removed meanwhile has to be made again. */
	if (cgroup_join_shared(&m->box->cgroup, e) < 0)
		return -1;
	(void)os_reset_schedule();
	if (!m->box->is_oom_plain) /* a user may only raise it */
		(void)os_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "0");
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

/* The launcher's session keyring may hold keys of vaults and of the caller. Everything that the
 * monitor starts, pid 1 included, inherits an empty one of the monitor's instead. */
static int step_keyring(struct monitor *m, struct err *e)
{
	int r = os_new_session_keyring();

	(void)m;
	if (r == -EDQUOT)
		return err_new(e, ERR_LIMIT,
		               "the user's quota of keys is used up (/proc/key-users; "
		               "kernel.keys.maxkeys)");
	return r < 0 && r != -ENOSYS ? err_sys(e, -r, "keyctl") : 0; /* or built without keys */
}

static int step_init(struct monitor *m, struct err *e)
{
	if (spawn_init(m->box, &m->init, e) < 0)
		return -1;
	m->box->cgroup.init_pid = m->init.pid;
	return 0;
}

/* From here on no right is left, and nobody of this user may look into the process: a command
 * that shares our uid (rootless) could otherwise reach the program file through /proc. */
static int step_drop(struct monitor *m, struct err *e)
{
	int r = os_prctl(PR_SET_DUMPABLE, 0);

	(void)m;
	if (r >= 0)
		r = os_caps_set(0, 0, 0);
	if (r >= 0 && !fault_layer_off("nnp"))
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
	int r = cgroup_take_keys(&m->box->cgroup, keys, n_keys);

	return r < 0 ? err_sys(e, -r, "take the keys of the cgroup") : 0;
}

static int step_proof(struct monitor *m, struct err *e)
{
	return proof_limits(m->box, &m->init.proved, e);
}

static int step_loop(struct monitor *m, struct err *e)
{
	int r = loop_init(&m->loop);

	if (r >= 0)
		r = loop_pulse(&m->loop);
	return r < 0 ? err_sys(e, -r, "make the loop") : clock_open(m, e);
}

/* The first process of the cgroup, while pid 1 works: the one command, or the keeper. */
static int step_first(struct monitor *m, struct err *e)
{
	return m->box->is_kept ? spawn_keeper(m->box, &m->init, e) : talk_await_exec(m, e);
}

static int step_walls(struct monitor *m, struct err *e)
{
	if (spawn_await_walls(&m->init, e) < 0)
		return -1;
	clock_follow(m); /* the one command has started before they stood */
	return gatekeep_open(m, e);
}

/* Pid 1 died, and the kernel ended all others with it. */
static void init_ready(struct watch *w, uint32_t events)
{
	struct monitor *m = OWNER_OF(w, struct monitor, init_watch);

	(void)events;
	m->cause = RUN_LOST;
	snprintf(m->reason, sizeof m->reason, "pid 1 of the sandbox was killed");
	monitor_finish(m);
}

/* Descriptors of the host that only the builder needed. */
static void release(struct box *box)
{
	int *own[] = { &box->init_exe_fd, &box->skeleton_fd, &box->skeleton_tree_fd,
		       &box->image_tree_fd, &box->nodes_tree_fd };
	int image_fd = box->plan->image_fd;

	for (size_t i = 0; i < COUNT(own); i++)
		fd_close(own[i]);
	fd_close(&image_fd);
	for (size_t i = 0; i < box->plan->n_mounts; i++) {
		int source_fd = box->plan->mounts[i].source_fd;

		fd_close(&source_fd);
		fd_close(&box->mount_tree_fds[i]);
	}
}

/* Descriptors are the only thing of which many commands need many. */
static void allow_many(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		(void)os_setrlimit(RLIMIT_NOFILE, files.rlim_max, files.rlim_max);
}

/* It stays: pid 1 becomes init, commands may come, the door is open. */
static int step_keep(struct monitor *m, struct err *e)
{
	if (!m->box->is_kept)
		return 0;
	if (spawn_await_init(&m->init, e) < 0)
		return -1;
	release(m->box);
	allow_many();
	m->oom_fd = cgroup_oom_open(&m->box->cgroup);
	m->init_watch = (struct watch){ .fd = m->init.pidfd, .ready = init_ready };
	int r = loop_add(&m->loop, &m->init_watch, EPOLLIN);
	if (r < 0)
		return err_sys(e, -r, "watch pid 1");
	m->due_ready = true;
	return self_open(m, e);
}

static int step_talk(struct monitor *m, struct err *e)
{
	return talk_open(m, e);
}

/* clang-format off */
static const struct {
	const char *name;
	int (*run)(struct monitor *m, struct err *e);
} birth[] = {
	{ "lower the monitor",        step_lower },
	{ "leave the keyring",        step_keyring },
	{ "make the namespaces",      step_init },
	{ "detach the monitor",       step_detach }, /* while pid 1 works */
	{ "lock the monitor",         step_drop },
	{ "await the cgroup",         step_cgroup },
	{ "prove the walls",          step_proof },
	{ "make the loop",            step_loop },
	{ "make the first process",   step_first },
	{ "build the walls",          step_walls },
	{ "keep the sandbox",         step_keep },
	{ "watch the client",         step_talk },
};
/* clang-format on */

/* Pid 1 and the command's process each see the other go: whose own trouble was first? */
static void find_cause(struct monitor *m, struct err *e)
{
	struct err other = { 0 };

	if (e->sys == EPIPE) { /* pid 1 saw the command's process go */
		if (m->procs && procs_failure(m->procs, &other))
			*e = other;
	} else if (spawn_init_error(&m->init, &other) && other.sys != EPIPE) {
		*e = other;
		err_wrap(e, "build the walls");
	}
}

void monitor_give_up(struct monitor *m, const struct err *e)
{
	struct err cause = *e;

	bool is_late = e->sys == ETIME;

	if (!is_late)
		find_cause(m, &cause);
	/* The first process waits for pid 1, or dies with it. */
	fd_close(&m->init.entered_fd);
	fd_close(&m->init.walls_fd);
	if (!is_late) /* else the kernel may not let them end either */
		end_inside(m);
	talk_last(m);
	talk_say(m, CH_FAIL, &cause, sizeof cause);
	if (is_late)
		end_inside(m);
	_exit(125);
}

void monitor_main(struct box *box, int control_fd)
{
	static struct monitor m;
	struct err e = { 0 };

	signal(SIGPIPE, SIG_IGN); /* an answer, not an end */
	(void)os_shrug_signals(); /* fails for a bad number only */
	m.box = box;
	m.control.fd = control_fd;
	m.door.fd = m.oom_fd = -1;
	m.proved = UINT32_MAX; /* nothing was told */
	m.init.pidfd = m.init.report_fd = m.init.go_fd = m.init.entered_fd = m.init.walls_fd = -1;
	m.init.cgroup_ns_fd = m.init.door_fd = m.init.rules_fd = m.init.scratch_fd = -1;
	m.init.trust_fd = -1;
	for (size_t i = 0; i < NET_SOCKETS; i++)
		m.init.net_fds[i] = -1;
	m.stop.fired = stop_fired;
	m.sweep.fired = sweep_fired;
	m.become.fired = become_fired;
	for (size_t i = 0; i < COUNT(birth); i++) {
		if (birth[i].run(&m, &e) < 0) {
			err_wrap(&e, "%s", birth[i].name);
			monitor_give_up(&m, &e);
		}
	}
	talk_flush(&m);
	(void)loop_run(&m.loop); /* ends in monitor_finish() */
	monitor_finish(&m);
}
