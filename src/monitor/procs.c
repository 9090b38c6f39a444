/*
 * procs.c - the life of a process: start, signals, exit, the rest of its tree.
 *
 *   starting ──▷ running ──▷ exited ──▷ over ──▷ settled
 *       └── failed (never executed)
 *
 * Starting takes a while and is not waited for: the command's process reports over a socket. Over:
 * the end is in the log and the client is told; what the command left running may go on writing to
 * the log. Settled: nothing of its tree lives, which its exec listener or its cgroup tells; then it
 * is freed.
 *
 * A tree is what lives in the command's cgroup. Without one (no rights, no cgroups) it is the
 * process, its descendants and its session: what detached itself twice is not found, and ends with
 * the sandbox.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define GRACE_MS 2000
#define DRAIN_MS 50
#define TREE_MAX 4096
#define TREE_LOOK_MS 1000 /* whether what a command left running has ended */

struct proc *procs_find(const struct monitor *m, uint32_t num)
{
	for (struct proc *p = m->procs; p; p = p->next)
		if (p->num == num)
			return p;
	return NULL;
}

/* ---- the tree ---------------------------------------------------------------------- */

struct kin {
	pid_t pid, parent, session;
};

/* proc(5): pid (name) state ppid pgrp session ... */
static bool read_kin(int proc_fd, const char *name, struct kin *out)
{
	char path[32], text[512];

	snprintf(path, sizeof path, "%.20s/stat", name);
	if (name[0] < '1' || name[0] > '9' || os_read_file(proc_fd, path, text, sizeof text) <= 0)
		return false;
	const char *at = strrchr(text, ')');
	out->pid = (pid_t)strtol(name, NULL, 10);
	return at && sscanf(at + 2, "%*c %d %*d %d", &out->parent, &out->session) == 2;
}

static size_t all_kin(struct kin *out, size_t max)
{
	DIR *dir = opendir("/proc");
	size_t n = 0;

	for (struct dirent *d = dir ? readdir(dir) : NULL; d && n < max; d = readdir(dir))
		n += read_kin(dirfd(dir), d->d_name, &out[n]);
	if (dir)
		closedir(dir);
	return n;
}

static bool is_listed(pid_t pid, const pid_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

/* Round by round, until nobody is added. */
static size_t descendants(pid_t pid, pid_t *out, size_t max)
{
	AUTO(freep) struct kin *all = mem_alloc(TREE_MAX * sizeof *all);
	size_t n_all = all_kin(all, TREE_MAX), n = 0, before;

	out[n++] = pid;
	do {
		before = n;
		for (size_t i = 0; i < n_all && n < max; i++)
			if (!is_listed(all[i].pid, out, n) &&
			    (all[i].session == pid || is_listed(all[i].parent, out, n)))
				out[n++] = all[i].pid;
	} while (n > before);
	return n;
}

size_t procs_tree(const struct proc *p, pid_t *out, size_t max)
{
	const struct cgroup *cg = &p->monitor->box->cgroup;
	bool is_counted = cgroup_has(cg, CG_PIDS) || cgroup_has(cg, CG_MEMORY);

	if (p->leaf.num)
		return cgroup_leaf_members(cg, p->leaf.num, out, max);
	if (p->command.is_final && is_counted)
		return cgroup_members(cg, out, max);
	/* Without a cgroup: all of /proc, which takes its time. */
	return p->spawn.pid == 0 ? 0 : descendants(p->spawn.pid, out, max);
}

size_t procs_all(const struct monitor *m, pid_t *out, size_t max)
{
	size_t n = cgroup_members(&m->box->cgroup, out, max), kept = 0;

	if (n == 0 && m->box->cgroup.n_trees == 0)
		n = descendants(m->init.pid, out, max);
	for (size_t i = 0; i < n; i++)
		if (out[i] > 0 && out[i] != m->init.pid)
			out[kept++] = out[i];
	return kept;
}

size_t procs_living(const struct monitor *m, pid_t *out, size_t max)
{
	const struct cgroup *cg = &m->box->cgroup;
	bool is_counted = cgroup_has(cg, CG_PIDS) || cgroup_has(cg, CG_MEMORY);
	size_t n = is_counted ? cgroup_members(cg, out, max) : 0;

	return n > 0 ? n : descendants(getpid(), out, max);
}

static void signal_tree(struct proc *p, int sig)
{
	AUTO(freep) pid_t *pids = mem_alloc(TREE_MAX * sizeof *pids);
	size_t n = procs_tree(p, pids, TREE_MAX);

	for (size_t i = 0; i < n; i++)
		if (pids[i] > 0 && pids[i] != p->monitor->init.pid)
			(void)kill(pids[i], sig); /* gone meanwhile: good */
}

void procs_kill(struct proc *p)
{
	p->is_tree_killed = true;
	if (p->leaf.num)
		cgroup_leaf_kill(&p->monitor->box->cgroup, p->leaf.num);
	else
		signal_tree(p, SIGKILL);
}

/* Before it executes it has no session of its own, it would die of what it may want to hear, and
 * where a helper makes it we do not know its pid: a signal waits for that. */
void procs_signal(struct proc *p, int sig, enum channel_scope scope)
{
	bool is_there = p->is_running || p->is_held;

	if (scope == SCOPE_TREE)
		signal_tree(p, sig);
	else if (!p->has_exited && p->spawn.pid > 0 && is_there)
		(void)kill(-p->spawn.pid, sig); /* its own session: the group is its pid */
	else if (!p->has_exited)
		p->due_signals |= 1ull << (sig - 1);
}

static void signal_due(struct proc *p)
{
	for (int sig = 1; sig < NSIG && p->due_signals; sig++)
		if (p->due_signals & 1ull << (sig - 1))
			(void)kill(-p->spawn.pid, sig);
	p->due_signals = 0;
}

void procs_stop(struct proc *p, enum run_state cause, const char *reason)
{
	if (!p->is_over) {
		if (p->cause != RUN_EXITED)
			return; /* it is ending already */
		p->cause = cause;
		snprintf(p->reason, sizeof p->reason, "%s", reason);
		if (p->has_exited) {
			procs_close(p);
			return;
		}
	} else if (p->shell) {
		shells_stopped(p, reason);
	}
	signal_tree(p, SIGTERM);
	timer_set(&p->monitor->timers, &p->grace, GRACE_MS);
}

static void timeout_fired(struct timer *t)
{
	procs_stop(OWNER_OF(t, struct proc, timeout), RUN_TIMEOUT, "timeout reached");
}

/* The command itself is waited for, and then its end is written. */
static void grace_fired(struct timer *t)
{
	struct proc *p = OWNER_OF(t, struct proc, grace);

	if (p->command.is_final)
		monitor_finish(p->monitor);
	procs_kill(p);
}

/* ---- the end ----------------------------------------------------------------------- */

/* Making and removing a group is a tenth of a short command: some are kept for the next ones. */
static int take_leaf(struct proc *p)
{
	struct monitor *m = p->monitor;

	if (m->n_leaves > 0)
		p->leaf = m->leaves[--m->n_leaves];
	else {
		int r = cgroup_leaf_make(&m->box->cgroup, ++m->last_leaf, &p->leaf);

		if (r < 0)
			return r;
	}
	p->denied_before = cgroup_leaf_denied(&p->leaf);
	return 0;
}

/* One whose members were killed takes no more births. The kernel may need a moment to let go of
 * the last member: false. */
static bool give_leaf(struct proc *p)
{
	struct monitor *m = p->monitor;

	if (!p->is_tree_killed && p->has_listener && m->n_leaves < COUNT(m->leaves)) {
		m->leaves[m->n_leaves++] = p->leaf;
		p->leaf = (struct cgroup_leaf){ .fd = -1, .events_fd = -1 };
		return true;
	}
	return cgroup_leaf_remove(&m->box->cgroup, p->leaf.num);
}

void procs_settle(struct proc *p)
{
	struct monitor *m = p->monitor;
	struct proc **at = &m->procs;

	if (!p->is_over || p->child.fd >= 0 || !streams_ended(p) || p->listener.fd >= 0)
		return;
	if (p->nest && !report_is_tree_gone(p)) {
		if (m->sweep.at_ms == 0)
			timer_set(&m->timers, &m->sweep, TREE_LOOK_MS);
		return;
	}
	if (p->leaf.num && !give_leaf(p)) {
		timer_set(&m->timers, &m->sweep, 20);
		return;
	}
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	m->n_procs--;
	timer_stop(&m->timers, &p->timeout);
	timer_stop(&m->timers, &p->start);
	timer_stop(&m->timers, &p->grace);
	timer_stop(&m->timers, &p->drain);
	timer_stop(&m->timers, &p->rest);
	trips_leave(p);
	streams_close(p);
	cgroup_leaf_close(&p->leaf);
	fd_close(&p->log_fd);
	free(p);
}

static void close_start(struct proc *p)
{
	struct monitor *m = p->monitor;

	if (p->report.fd >= 0)
		loop_remove(&m->loop, &p->report);
	fd_close(&p->spawn.report_fd);
	p->report.fd = -1;
	if (p->child.fd >= 0)
		loop_remove(&m->loop, &p->child);
	fd_close(&p->child.fd);
}

/* Of a shell that lives on only the command ends. */
void procs_close(struct proc *p)
{
	struct monitor *m = p->monitor;

	if (p->command.is_final && !m->is_ending)
		monitor_finish(m);
	if (p->shell && p->has_exited)
		shells_ended(p);
	gatekeep_hear(m); /* of what it was refused: told before its end is */
	gatekeep_tell(m);
	if (!m->is_ending)
		report_look(p);
	masks_end(p);
	report_fill(p);
	if (p->cause != RUN_EXITED && !m->is_ending)
		procs_kill(p); /* the rest of it goes with the command */
	p->is_over = true;
	p->is_resting = false;
	timer_stop(&m->timers, &p->timeout);
	timer_stop(&m->timers, &p->drain);
	timer_stop(&m->timers, &p->rest);
	if (p->has_exited)
		close_start(p);
	self_note(p);
	if (p->log_fd >= 0)
		(void)log_close(&p->log,
		                &p->end); /* a full disk: the client is told all the same */
	talk_exit(p);
	if (!m->is_ending)
		procs_settle(p);
}

/* It never executed: no end, but a reason. What it had made goes. */
void procs_fail(struct proc *p, const struct err *e)
{
	struct monitor *m = p->monitor;
	struct rusage usage;
	int status;

	if (!m->box->is_kept)
		monitor_give_up(m, e);
	if (p->nest && p->spawn.pid == 0) /* who bore it died before it told its number */
		(void)procs_tree(p, &p->spawn.pid, 1);
	if (p->spawn.pid > 0 && !p->has_exited) {
		(void)kill(p->spawn.pid, SIGKILL); /* our child, not waited for */
		(void)os_wait(p->spawn.pid, &status, &usage);
	}
	close_start(p);
	execs_close(p);
	streams_close(p);
	if (p->shell)
		shells_ended(p);
	talk_fail(m, p->num, e);
	p->is_over = true;
	procs_settle(p);
}

bool procs_failure(struct proc *p, struct err *e)
{
	enum spawn_word word = p->spawn.report_fd < 0 ? SPAWN_SILENT : SPAWN_WORD;

	while (word == SPAWN_WORD)
		word = spawn_hear(&p->spawn, e);
	return word == SPAWN_FAILED;
}

void procs_note_exit(struct proc *p, int status, const struct rusage *usage)
{
	uint64_t peak = (uint64_t)usage->ru_maxrss * 1024;

	p->has_exited = true;
	p->status = status;
	p->cpu_ms = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
	            (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
	p->mem_peak = peak;
	p->io_bytes = (uint64_t)(usage->ru_inblock + usage->ru_oublock) * 512;
}

static void drain_fired(struct timer *t)
{
	procs_close(OWNER_OF(t, struct proc, drain));
}

void procs_drained(struct proc *p)
{
	if (p->has_exited && !p->is_over && !p->is_resting)
		procs_close(p);
	else
		procs_settle(p);
}

static void hear_report(struct proc *p);

void procs_look(struct proc *p)
{
	struct monitor *m = p->monitor;
	struct rusage usage = { 0 };
	int status;

	if (os_try_wait(p->spawn.pid, &status, &usage) <= 0)
		return;
	procs_note_exit(p, status, &usage);
	m->cpu_ms += p->cpu_ms;
	m->io_bytes += p->io_bytes;
	m->mem_peak = p->mem_peak > m->mem_peak ? p->mem_peak : m->mem_peak;
	loop_remove(&m->loop, &p->child);
	fd_close(&p->child.fd);
	hear_report(p); /* its last words: it may have failed, and the terminal may be among them */
}

static void child_ready(struct watch *w, uint32_t events)
{
	(void)events;
	procs_look(OWNER_OF(w, struct proc, child));
}

/* Its own execve is announced before it happens; a test build may do without. */
static bool was_executed(const struct proc *p)
{
	return p->spawn.gifts > 0 && (p->is_announced || !p->has_listener);
}

static void started(struct proc *p)
{
	timer_stop(&p->monitor->timers, &p->start);
	p->is_running = true;
	if (!p->has_exited) /* its number may be another's by now */
		signal_due(p);
	p->due_started = !p->command.is_final || p->trips.n > 0;
	talk_proc(p);
}

/* Exited, and all it said about its start is heard. */
static void exited(struct proc *p)
{
	struct err e = { 0 };

	if (p->is_over) { /* a shell that had nothing to do */
		if (p->shell)
			shells_ended(p);
		streams_read(p);
		procs_settle(p);
		return;
	}
	if (p->cause == RUN_EXITED && !was_executed(p)) {
		if (report_is_oom(p))
			err_new(&e, ERR_LIMIT, "start the command: mem limit of %llu bytes reached",
			        (unsigned long long)p->monitor->box->plan->limits[LIMIT_MEM]);
		else
			err_new(&e, ERR_INTERNAL,
			        "start the command: its process died before it could execute");
		procs_fail(p, &e);
		return;
	}
	if (!p->is_running && was_executed(p)) /* the nursery still held its end of the report */
		started(p);
	streams_read(p); /* what it wrote is there already */
	if (p->cause == RUN_EXITED && p->command.is_alone && !report_is_tree_gone(p)) {
		rest_end(p);
		return;
	}
	if (p->cause != RUN_EXITED || streams_ended(p)) {
		procs_close(p);
		return;
	}
	/* Others may hold the pipes: what they still write in a moment belongs to the answer,
	 * but their life does not. */
	talk_proc(p);
	timer_set(&p->monitor->timers, &p->drain, DRAIN_MS);
}

/* ---- the start --------------------------------------------------------------------- */

static int watch_child(struct proc *p, struct err *e)
{
	p->child.fd = os_pidfd_open(p->spawn.pid);
	if (p->child.fd < 0)
		return err_sys(e, -p->child.fd, "watch the command");
	int r = loop_add(&p->monitor->loop, &p->child, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch the command") : 0;
}

/* Told once, not for each command: the same walls are proved for all. Of a sandbox for one command
 * only those who want to know all about it are told. */
static void note_proof(struct proc *p)
{
	struct monitor *m = p->monitor;
	uint32_t walls = m->init.proved | p->spawn.proved;

	if (!p->spawn.is_proved || walls == m->proved)
		return;
	m->proved = walls;
	m->init.known = p->spawn.word;
	p->due_proved = m->box->is_kept || p->command.wants_usage;
}

/* What became known: the pid of a helper's child, a descriptor, the proof. */
static int take_word(struct proc *p, struct err *e)
{
	note_proof(p);
	if (p->spawn.pid > 0 && p->child.fd < 0 && !p->has_exited) {
		if (watch_child(p, e) < 0)
			return -1;
		if (p->cause != RUN_EXITED)
			signal_tree(p, SIGTERM); /* it was ended before it was known */
	}
	if (p->spawn.pty_fd >= 0 && streams_take_pty(p, e) < 0)
		return -1;
	return p->spawn.listener_fd >= 0 ? execs_watch(p, e) : 0;
}

static void runs(struct proc *p)
{
	loop_remove(&p->monitor->loop, &p->report);
	fd_close(&p->spawn.report_fd);
	p->report.fd = -1;
	if (!p->has_exited)
		started(p);
}

/* Somebody inside may have stopped it, or the kernel does not let a step end. One whose execve was
 * announced waits for a person or for the gate, who have deadlines of their own. */
static void start_fired(struct timer *t)
{
	struct proc *p = OWNER_OF(t, struct proc, start);
	struct monitor *m = p->monitor;
	struct err e = { 0 };

	if (p->spawn.report_fd < 0 || p->is_announced || p->is_held || p->is_over)
		return;
	if (p->command.is_final)
		err_new(&e, ERR_INTERNAL, "%s: the command's process is still at that after %d ms",
		        launch_payload_name(m->init.progress->payload), spawn_start_ms());
	else
		err_new(&e, ERR_INTERNAL,
		        "start the command: its process did not execute it in %d ms",
		        spawn_start_ms());
	e.sys = ETIME;
	procs_fail(p, &e);
}

static void hear_report(struct proc *p)
{
	struct err e = { 0 };
	enum spawn_word word = p->spawn.report_fd < 0 ? SPAWN_SILENT : SPAWN_WORD;

	while (word == SPAWN_WORD) {
		word = spawn_hear(&p->spawn, &e);
		if (word == SPAWN_WORD && take_word(p, &e) < 0)
			word = SPAWN_FAILED;
	}
	if (word == SPAWN_FAILED) {
		procs_fail(p, &e);
		return;
	}
	if (word == SPAWN_RUNS)
		runs(p);
	if (p->has_exited)
		exited(p);
}

static void report_ready(struct watch *w, uint32_t events)
{
	(void)events;
	hear_report(OWNER_OF(w, struct proc, report));
}

/* The arguments, as the record of execs has them: its memory is closed to us until it executes. */
static void note_arguments(struct proc *p, const struct command *c)
{
	const char *arg = c->text + strlen(c->text) + 1;
	size_t len = 0;

	for (uint32_t i = 0; i < c->argc && len + 2 < CHANNEL_EXEC_TEXT; i++) {
		len += (size_t)snprintf(p->end.execs[0] + len, CHANNEL_EXEC_TEXT - len, "%s%s",
		                        i ? " " : "", arg);
		arg += strlen(arg) + 1;
	}
}

static int64_t unix_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What is a command's own, and not its process's. */
static void begin(struct proc *p, struct proc_start *s)
{
	p->num = s->num;
	p->command = s->command;
	p->command.text = NULL;
	fd_close(&p->log_fd);
	p->log_fd = fd_take(&s->log_fd);
	log_create(&p->log, p->log_fd, s->command.log_max);
	p->acked = p->tail.from = p->tail.to = p->log.at;
	p->started_ms = timer_now_ms();
	p->started_unix_ms = unix_ms();
	p->oom_before = p->monitor->oom_kills;
	masks_begin(p);
}

static struct proc *make(struct monitor *m, struct proc_start *s)
{
	struct proc *p = mem_alloc(sizeof *p);

	p->monitor = m;
	p->log_fd = -1;
	begin(p, s);
	p->leaf.fd = p->leaf.events_fd = p->report.fd = p->child.fd = p->listener.fd = p->input.fd =
	    p->pipe_fd = -1;
	p->streams[0].watch.fd = p->streams[1].watch.fd = -1;
	p->spawn.report_fd = p->spawn.listener_fd = p->spawn.pty_fd = -1;
	p->child.ready = child_ready;
	p->report.ready = report_ready;
	p->timeout.fired = timeout_fired;
	p->start.fired = start_fired;
	p->grace.fired = grace_fired;
	p->drain.fired = drain_fired;
	note_arguments(p, &s->command);
	trips_learn(p, &s->command);
	p->next = m->procs;
	m->procs = p;
	m->n_procs++;
	return p;
}

int procs_check(const struct monitor *m, const struct proc_start *s, struct err *e)
{
	const struct plan *plan = m->box->plan;
	const size_t most = cgroup_has_leaves(&m->box->cgroup) ? PROCS_MAX : PROCS_ALONE_MAX;

	if (s->num == 0 || procs_find(m, s->num))
		return err_new(e, ERR_INVALID, "process %u exists", s->num);
	if (m->n_procs >= most)
		return err_new(e, ERR_LIMIT, "%zu processes live in this sandbox", most);
	if (!m->box->is_kept && (!s->command.is_final || m->procs))
		return err_new(e, ERR_INVALID, "this sandbox is for one command");
	if (!m->box->is_root && (s->command.uid != plan->uid || s->command.gid != plan->gid))
		return err_new(
		    e, ERR_UNENFORCEABLE,
		    "unenforceable: user (there is one id inside, %u:%u; more take root)",
		    plan->uid, plan->gid);
	if (m->is_paused)
		return err_new(e, ERR_INVALID, "the sandbox is paused");
	if (m->is_stopping || m->cause != RUN_EXITED)
		return err_new(e, ERR_INVALID, "the sandbox is being stopped");
	return 0;
}

static int spawn(struct proc *p, const struct command *c, struct payload_io *io, struct err *e)
{
	struct monitor *m = p->monitor;

	if (m->box->is_kept && !c->is_final && cgroup_has_leaves(&m->box->cgroup)) {
		int r = take_leaf(p);

		if (r < 0)
			return err_sys(e, -r, "make the cgroup of the command");
	}
	io->leaf = p->leaf;
	spawn_follow_host(&m->init); /* what the host did before this command is there for it */
	int started = nests_serve(p) ? nests_order(p, c, *io, e)
	                             : spawn_command(m->box, &m->init, c, *io, &p->spawn, e);
	if (started < 0)
		return -1;
	p->report.fd = p->spawn.report_fd;
	int r = loop_add(&m->loop, &p->report, EPOLLIN);
	if (r < 0)
		return err_sys(e, -r, "watch the start");
	return p->spawn.pid > 0 ? watch_child(p, e) : 0;
}

void procs_start_done(struct proc_start *s)
{
	fd_close(&s->log_fd);
	fd_close(&s->extra_fd);
	fd_close(&s->program_fd);
}

void procs_renew(struct proc *p, struct proc_start *s)
{
	begin(p, s);
	memset(&p->end, 0, sizeof p->end);
	p->denied_before = p->leaf.num ? cgroup_leaf_denied(&p->leaf) : 0;
	p->streams[0].bytes = p->streams[1].bytes = 0;
	p->took = p->took_own = 0;
	p->cause = RUN_EXITED;
	p->reason[0] = '\0';
	p->is_over = p->is_rung = p->due_grew = p->due_took = p->due_waiting = p->due_proc = false;
	p->is_watched = p->was_waiting = p->is_said = false;
	p->due_started = p->is_running;
	clock_started(p->monitor);
	if (p->command.timeout_ms)
		timer_set(&p->monitor->timers, &p->timeout, p->command.timeout_ms);
}

int procs_start(struct monitor *m, struct proc_start *s, struct err *e)
{
	struct payload_io io = { .stdin_fd = -1,
		                 .stdout_fd = -1,
		                 .stderr_fd = -1,
		                 .extra_fd = s->extra_fd,
		                 .program_fd = s->program_fd,
		                 .leaf.fd = -1 };

	if (procs_check(m, s, e) < 0)
		return -1;
	struct proc *p = make(m, s);
	int r = streams_open(p, &io, e);
	if (r == 0)
		r = spawn(p, &s->command, &io, e);
	fd_close(&io.stdin_fd);
	fd_close(&io.stdout_fd);
	fd_close(&io.stderr_fd);
	if (r < 0) {
		procs_fail(p, e);
		return 0; /* that was the answer */
	}
	clock_started(m);
	timer_set(&m->timers, &p->start, (uint64_t)spawn_start_ms());
	if (s->command.timeout_ms)
		timer_set(&m->timers, &p->timeout, s->command.timeout_ms);
	return 0;
}
