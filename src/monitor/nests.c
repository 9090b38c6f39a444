/*
 * nests.c - who bears the commands of a kept sandbox, and which of them a notification is about.
 *
 * A nest is a nursery (engine/nursery.h) and the listener of the filter that it has loaded, which
 * all its commands have. There is one that works; a nursery that died leaves its listener to the
 * commands that it bore, for as long as one of them lives.
 *
 * The listener does not say which command a process belongs to: its cgroup does, from which nothing
 * inside can move away. Where commands have no cgroups of their own each loads a filter of its own.
 */
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/nursery.h"
#include "monitor/monitor-internal.h"
#include "os/fault.h"
#include "os/seccomp.h"

struct nest {
	struct nest *next;
	struct monitor *monitor;
	struct watch listener;
	struct nursery nursery;
};

int nests_listener(const struct nest *n)
{
	return n->listener.fd;
}

static struct proc *owner_of(const struct nest *n, pid_t pid)
{
	uint32_t leaf = cgroup_leaf_of(&n->monitor->box->cgroup, pid);

	for (struct proc *p = n->monitor->procs; p && leaf; p = p->next)
		if (p->leaf.num == leaf && p->nest == n)
			return p;
	return NULL;
}

/* The last process that has its filter is gone, the nursery included. */
static void drop_nest(struct nest *n)
{
	struct nest **at = &n->monitor->nests;

	while (*at != n)
		at = &(*at)->next;
	*at = n->next;
	for (struct proc *p = n->monitor->procs; p; p = p->next)
		if (p->nest == n)
			p->nest = NULL;
	loop_remove(&n->monitor->loop, &n->listener);
	fd_close(&n->listener.fd);
	nursery_end(&n->nursery);
	free(n);
}

/* What the filter lets nobody do but the nursery, and a command that has not executed yet. */
static void answer_asked(const struct nest *n, const struct proc *p, const struct seccomp_notif *s)
{
	bool is_clone = s->data.nr == SYS_clone3;
	bool is_ours = is_clone ? (pid_t)s->pid == n->nursery.pid : p && !p->is_announced;

	int r = is_ours ? os_seccomp_continue(n->listener.fd, s->id)
	                : os_seccomp_refuse(n->listener.fd, s->id, is_clone ? ENOSYS : EPERM);

	/* It may be gone meanwhile. Else it would wait for ever: the end of it is the answer then.
	 */
	if (r < 0 && r != -ENOENT)
		(void)kill((pid_t)s->pid, SIGKILL);
}

static void nest_ready(struct watch *w, uint32_t events)
{
	struct nest *n = OWNER_OF(w, struct nest, listener);
	struct seccomp_notif s;

	if (!(events & EPOLLIN)) {
		drop_nest(n);
		return;
	}
	if (os_seccomp_receive(w->fd, &s) < 0)
		return; /* killed meanwhile */
	bool is_clone = s.data.nr == SYS_clone3;
	struct proc *p = is_clone ? NULL : owner_of(n, (pid_t)s.pid);

	if (is_clone || s.data.nr == SYS_setns)
		answer_asked(n, p, &s);
	else if (p)
		execs_hear(p, &s);
	else
		(void)os_seccomp_refuse(w->fd, s.id, EPERM); /* it is gone, or is not ours */
}

static struct nest *nest_new(struct monitor *m, struct err *e)
{
	struct nest *n = mem_alloc(sizeof *n);

	*n = (struct nest){ .monitor = m, .listener = { .fd = -1, .ready = nest_ready } };
	n->nursery.order_fd = -1;
	int r = nursery_start(m->box, &m->init, &n->nursery, &n->listener.fd, e);
	if (r >= 0) {
		r = loop_add(&m->loop, &n->listener, EPOLLIN);
		if (r < 0)
			err_sys(e, -r, "watch the listener");
	}
	if (r < 0) {
		nursery_end(&n->nursery);
		fd_close(&n->listener.fd);
		free(n);
		return NULL;
	}
	n->next = m->nests;
	m->nests = n;
	return n;
}

bool nests_serve(const struct proc *p)
{
	return p->leaf.num && !fault_layer_off("notify") && !fault_layer_off("seccomp");
}

int nests_order(struct proc *p, const struct command *c, struct payload_io io, struct err *e)
{
	struct monitor *m = p->monitor;

	io.known = m->init.known;
	for (int tries = 0; tries < 2; tries++) {
		struct nest *n = m->nests && m->nests->nursery.pid ? m->nests : nest_new(m, e);

		if (!n)
			return -1;
		if (nursery_order(&n->nursery, c, io, &p->spawn, e) == 0) {
			p->nest = n;
			p->has_listener = true;
			return 0;
		}
		if (e->sys == EAGAIN) /* hundreds at once */
			return spawn_command(m->box, &m->init, c, io, &p->spawn, e);
		if (e->sys != EPIPE && e->sys != ECONNRESET)
			return -1;
		nursery_end(&n->nursery); /* it is dead: another one */
	}
	return -1;
}

void nests_end(struct monitor *m)
{
	for (struct nest *n = m->nests; n; n = n->next)
		nursery_end(&n->nursery);
}
