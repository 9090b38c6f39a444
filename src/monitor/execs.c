/*
 * execs.c - every program that is started inside is announced here before it runs.
 *
 * The filter holds execve until it is answered. The arguments are read from the caller's
 * memory; another thread of it may change them afterwards, so this is a record, not a
 * decision; those that match a command of `gate.commands` wait for one all the same (trips.c).
 * Without a listener the kernel fails every execve: it is kept as long as anybody of
 * the tree lives, also when the command itself has ended.
 */
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "os/seccomp.h"

#define ARGS_MAX 24

ssize_t execs_peek(pid_t pid, uint64_t at, void *buf, size_t n)
{
	struct iovec local = { .iov_base = buf, .iov_len = n };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)at, .iov_len = n };

	return process_vm_readv(pid, &local, 1, &remote, 1, 0);
}

/* A read may not cross into an unmapped page: at most to the end of this one. */
size_t execs_peek_text(pid_t pid, uint64_t at, char *out, size_t size)
{
	size_t len = 0;

	while (len + 1 < size) {
		size_t room = 4096 - (size_t)((at + len) % 4096);
		size_t want = room < size - 1 - len ? room : size - 1 - len;
		ssize_t n = execs_peek(pid, at + len, out + len, want);

		if (n <= 0)
			break;
		char *nul = memchr(out + len, '\0', (size_t)n);
		if (nul) { /* what lies behind it would go to disk, and is not ours */
			memset(nul, 0, (size_t)(out + len + n - nul));
			return (size_t)(nul - out);
		}
		len += (size_t)n;
	}
	out[len] = '\0';
	return len;
}

static void record(struct proc *p, const struct seccomp_notif *n)
{
	uint64_t pointers[ARGS_MAX] = { 0 };
	bool is_at = n->data.nr == SYS_execveat;
	size_t len = 0;

	/* The first is the command's own, whose number may not be known yet. It is still our own
	 * program, closed even to us; the text is there already. */
	bool is_own = !p->is_announced;

	p->is_announced = true;
	if (p->is_over || (is_own && p->command.is_shell)) /* a shell is no command's own */
		return;
	p->end.n_execs++;
	if (is_own)
		return;
	struct channel_ran ran = { .pid = n->pid, .missed = p->n_untold };
	char *out = ran.text;
	ssize_t got =
	    execs_peek((pid_t)n->pid, n->data.args[is_at ? 2 : 1], pointers, sizeof pointers);

	if (got <= 0) /* near the end of a page: the path alone */
		execs_peek_text((pid_t)n->pid, n->data.args[is_at ? 1 : 0], out, CHANNEL_EXEC_TEXT);
	for (size_t i = 0; i < ARGS_MAX && pointers[i] && len + 2 < CHANNEL_EXEC_TEXT; i++) {
		if (i > 0)
			out[len++] = ' ';
		len +=
		    execs_peek_text((pid_t)n->pid, pointers[i], out + len, CHANNEL_EXEC_TEXT - len);
	}
	if (p->end.n_execs <= CHANNEL_EXECS_MAX)
		memcpy(p->end.execs[p->end.n_execs - 1], ran.text, sizeof ran.text);
	p->n_untold =
	    talk_about(p->monitor, CH_RAN, p->num, &ran, sizeof ran) ? 0 : p->n_untold + 1;
}

int execs_listener(const struct proc *p)
{
	return p->nest ? nests_listener(p->nest) : p->listener.fd;
}

void execs_resume(struct proc *p, const struct seccomp_notif *n)
{
	record(p, n);
	int r = os_seccomp_continue(execs_listener(p), n->id);
	monitor_executes(p->monitor);
	if (r < 0 && r != -ENOENT)
		procs_stop(p, RUN_LOST, "the exec notification failed");
}

void execs_hear(struct proc *p, const struct seccomp_notif *n)
{
	if (filters_is_load(n)) {
		filters_answer(p, n);
	} else if (!p->is_announced && p->command.is_gated && gatekeep_holds(p->monitor)) {
		p->is_held = true;
		p->held_id = n->id;
	} else if (!trips_hold(p, n)) {
		execs_resume(p, n);
	}
}

static bool is_exec(const struct seccomp_notif *n)
{
	return n->data.nr == SYS_execve || n->data.nr == SYS_execveat;
}

static void ready(struct watch *w, uint32_t events)
{
	struct proc *p = OWNER_OF(w, struct proc, listener);
	struct seccomp_notif n;

	if (!(events & EPOLLIN)) { /* the last process with this filter is gone */
		if (p->command.is_final)
			report_count(p); /* the kernel still takes its memory away */
		execs_close(p);
		procs_settle(p);
		return;
	}
	if (os_seccomp_receive(w->fd, &n) < 0)
		return; /* killed meanwhile */
	if (is_exec(&n) || filters_is_load(&n))
		execs_hear(p, &n);
	else /* what only a nursery and its commands may: or it is gone */
		(void)os_seccomp_refuse(w->fd, n.id, n.data.nr == SYS_clone3 ? ENOSYS : EPERM);
}

void execs_go_on(struct monitor *m)
{
	for (struct proc *p = m->procs, *next; p; p = next) {
		next = p->next;
		if (!p->is_held || execs_listener(p) < 0)
			continue;
		p->is_held = false;
		const struct seccomp_notif n = { .id = p->held_id };

		if (!trips_hold(p, &n))
			execs_resume(p, &n);
	}
}

void execs_refuse(struct monitor *m, const struct err *e)
{
	for (struct proc *p = m->procs, *next; p; p = next) {
		next = p->next;
		if (p->is_held && !p->is_over)
			procs_fail(p, e);
	}
}

int execs_watch(struct proc *p, struct err *e)
{
	p->listener = (struct watch){ .fd = fd_take(&p->spawn.listener_fd), .ready = ready };
	p->has_listener = true;
	int r = loop_add(&p->monitor->loop, &p->listener, EPOLLIN);
	return r < 0 ? err_sys(e, -r, "watch the exec listener") : 0;
}

void execs_close(struct proc *p)
{
	if (p->listener.fd >= 0)
		loop_remove(&p->monitor->loop, &p->listener);
	fd_close(&p->listener.fd);
	trips_leave(p);
}
