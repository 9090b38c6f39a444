/*
 * waiting.c - does a process wait for input that nobody has sent? A guess, for those who ask.
 *
 * It is said when somebody of the tree sits in read(2) of the command's standard input, or in
 * select(2) of nothing else (line editors do that), at two looks in a row between which nothing
 * was written and no input is left over. /proc/PID/syscall has the call and its arguments; it is
 * closed to the monitor's id, so a child looks, which enters the user namespace for it. Who goes on
 * being quiet is looked at less and less often.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "monitor/monitor-internal.h"
#include "os/file.h"
#include "os/proc.h"

#define LOOK_MS 100
#define LOOK_MS_MAX 1000
#define MEMBERS_MAX 256

/* Standard input is 0 for most; a shell may have moved the terminal elsewhere. */
static bool is_input_of(const struct proc *p, pid_t pid, unsigned long fd)
{
	char path[64];
	struct stat ours, theirs;

	snprintf(path, sizeof path, "/proc/%d/fd/%lu", pid, fd);
	if (os_fstatat(AT_FDCWD, path, &theirs, 0) < 0)
		return false;
	if (p->command.is_tty) /* only its own terminals are in the sandbox's devpts */
		return S_ISCHR(theirs.st_mode) &&
		       (major(theirs.st_rdev) == 136 || major(theirs.st_rdev) == 5);
	return fstat(p->input.fd, &ours) == 0 && ours.st_ino == theirs.st_ino &&
	       ours.st_dev == theirs.st_dev;
}

static bool sits_in_read(const struct proc *p, pid_t pid)
{
	char path[64], text[256];
	long number;
	unsigned long first;

	snprintf(path, sizeof path, "/proc/%d/syscall", pid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0 ||
	    sscanf(text, "%ld %lx", &number, &first) != 2)
		return false; /* it runs, or is closed to us */
	if (number == SYS_read)
		return is_input_of(p, pid, first);
#ifdef SYS_select
	if (number == SYS_select)
		return first == 1 && is_input_of(p, pid, 0);
#endif
	return number == SYS_pselect6 && first == 1 && is_input_of(p, pid, 0);
}

static bool does_any_sit(const struct proc *p, const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sits_in_read(p, pids[i]))
			return true;
	return false;
}

static bool waits(const struct proc *p)
{
	pid_t pids[MEMBERS_MAX];
	int status = 0;

	if (p->has_exited || p->input.fd < 0 || p->in_len > 0)
		return false;
	size_t n = procs_tree(p, pids, MEMBERS_MAX); /* here: the child counts them otherwise */
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid == 0) /* In a child, with every right inside and none outside. */
		_exit(os_setns(p->monitor->init.pidfd, CLONE_NEWUSER) >= 0 &&
		      does_any_sit(p, pids, n));
	if (pid > 0)
		(void)os_wait(pid, &status, NULL); /* a few files of /proc: it does not take long */
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

static void look(struct proc *p)
{
	uint64_t now = p->log.at + p->took;

	if (now != p->quiet_at) {
		p->quiet_at = now;
		p->was_waiting = p->is_said = false;
		p->look_ms = LOOK_MS;
	}
	if (p->is_said || timer_now_ms() < p->look_at_ms)
		return; /* once, until something moves */
	bool is_waiting = waits(p);
	if (is_waiting && p->was_waiting) {
		p->due_waiting = p->is_said = true;
		talk_proc(p);
	}
	p->was_waiting = is_waiting;
	p->look_at_ms = timer_now_ms() + (is_waiting ? LOOK_MS : p->look_ms) - LOOK_MS / 2;
	p->look_ms = p->look_ms * 2 < LOOK_MS_MAX ? p->look_ms * 2 : LOOK_MS_MAX;
}

static void fired(struct timer *t)
{
	struct monitor *m = OWNER_OF(t, struct monitor, look);
	bool is_any = false;

	for (struct proc *p = m->procs; p; p = p->next) {
		if (!p->is_watched || p->is_over)
			continue;
		is_any = true;
		look(p);
	}
	if (is_any)
		timer_set(&m->timers, t, LOOK_MS);
}

void waiting_watch(struct proc *p, bool on)
{
	struct monitor *m = p->monitor;

	p->is_watched = on;
	p->was_waiting = p->is_said = false;
	p->look_ms = LOOK_MS;
	m->look.fired = fired;
	if (on)
		timer_set(&m->timers, &m->look, LOOK_MS);
}
