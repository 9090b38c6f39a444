#include "engine/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/userns.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

/* ---- pid 1 ------------------------------------------------------------------------- */

static int read_report(int fd, struct err *e)
{
	struct err report;
	int n = os_recv(fd, &report, sizeof report, NULL, NULL);

	if (n != (int)sizeof report)
		return err_new(e, ERR_INTERNAL, "pid 1 died while it built the walls");
	if (report.kind == ERR_NONE)
		return 0;
	*e = report;
	e->msg[sizeof e->msg - 1] = '\0';
	return -1;
}

static void end_child(pid_t pid)
{
	int status;

	(void)kill(pid, SIGKILL); /* an own child, not yet waited for */
	(void)os_wait(pid, &status, NULL);
}

static int let_go(const struct box *box, struct spawn_init *s, int go_fd, struct err *e)
{
	int r;

	/* With root's rights the monitor itself can give birth in there; without, a helper does.
	 * Now: the child may be looked at only until it changes its ids. */
	if (box->is_root) {
		r = os_setns(s->pidfd, CLONE_NEWPID);
		if (r < 0)
			return err_sys(e, -r, "enter the pid namespace");
		s->is_entered = true;
	}
	if (userns_map(box, s->pid, e) < 0)
		return err_wrap(e, "user namespace");
	r = os_write_all(go_fd, "g", 1);
	return r < 0 ? err_sys(e, -r, "start pid 1") : 0;
}

struct pipes {
	int go[2], entered[2], walls[2], report[2];
};

static void pipes_done(struct pipes *p)
{
	int *ends[] = { p->go, p->entered, p->walls, p->report };

	for (size_t i = 0; i < COUNT(ends); i++) {
		fd_close(&ends[i][0]);
		fd_close(&ends[i][1]);
	}
}

static int pipes_open(struct pipes *p, struct err *e)
{
	int r = os_pipe(p->go, 0);

	if (r >= 0)
		r = os_pipe(p->entered, 0);
	if (r >= 0)
		r = os_pipe(p->walls, 0);
	if (r >= 0)
		r = os_socketpair(p->report, SOCK_SEQPACKET);
	return r < 0 ? err_sys(e, -r, "pipe") : 0;
}

int spawn_init(const struct box *box, struct spawn_init *out, struct err *e)
{
	AUTO(pipes_done) struct pipes p = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	int pidfd = -1;

	if (pipes_open(&p, e) < 0)
		return -1;
	struct inside_io io = { .go_fd = p.go[0],
		                .entered_fd = p.entered[0],
		                .walls_fd = p.walls[1],
		                .report_fd = p.report[1] };
	int pid =
	    os_clone((struct clone_opts){ .flags = (uint64_t)box_namespaces(), .pidfd = &pidfd });
	if (pid < 0)
		return err_sys(e, -pid, "clone into new namespaces");
	if (pid == 0) {
		/* The other ends: or it would never see the monitor, or the command, go. */
		fd_close(&p.go[1]);
		fd_close(&p.entered[1]);
		fd_close(&p.walls[0]);
		fd_close(&p.report[0]);
		launch_inside(box, io);
	}
	os_cpus_leave(&box->cpus, pid); /* until it hears the word to go on */
	*out = (struct spawn_init){ .pid = pid,
		                    .pidfd = pidfd,
		                    .report_fd = -1,
		                    .go_fd = -1,
		                    .entered_fd = -1,
		                    .walls_fd = -1 };
	if (let_go(box, out, p.go[1], e) < 0) {
		end_child(pid);
		out->pid = 0;
		return -1;
	}
	out->report_fd = fd_take(&p.report[0]);
	out->go_fd = fd_take(&p.go[1]);
	out->entered_fd = fd_take(&p.entered[1]);
	out->walls_fd = fd_take(&p.walls[0]);
	return 0;
}

int spawn_await_walls(struct spawn_init *init, struct err *e)
{
	fd_close(&init->entered_fd); /* the command's process has its own */
	int r = read_report(init->report_fd, e);

	fd_close(&init->walls_fd);
	return r;
}

int spawn_become_init(struct spawn_init *init)
{
	int r = init->go_fd < 0 ? 0 : os_write_all(init->go_fd, "i", 1);

	fd_close(&init->go_fd);
	return r;
}

bool spawn_init_error(const struct spawn_init *init, struct err *e)
{
	return recv(init->report_fd, e, sizeof *e, MSG_DONTWAIT) == (ssize_t)sizeof *e &&
	       e->kind != ERR_NONE;
}

bool spawn_command_error(const struct spawn_command *c, struct err *e)
{
	union {
		char bytes[sizeof(struct err)];
		struct err e;
	} m;
	ssize_t n;

	do
		n = recv(c->report_fd, &m, sizeof m, MSG_DONTWAIT);
	while (n > 0 && n < (ssize_t)sizeof m); /* the pid, a descriptor's letter */
	if (n == (ssize_t)sizeof m)
		*e = m.e;
	return n == (ssize_t)sizeof m;
}

/* ---- a command --------------------------------------------------------------------- */

/* In a helper: enters the user and pid namespaces and clones the command as the monitor's own
 * child, so that the monitor waits for it. */
static _Noreturn void helper(const struct box *box, struct payload_io io)
{
	struct err e = { 0 };
	char byte;
	int r = 0;

	if (io.walls_fd >= 0 && read(io.walls_fd, &byte, 1) != 1)
		_exit(125); /* pid 1 has said why */
	r = os_setns(io.init_pidfd, CLONE_NEWUSER | CLONE_NEWPID);
	if (r >= 0)
		r = os_clone(
		    (struct clone_opts){ .flags = CLONE_PARENT, .cgroup_fd = box->cgroup.box_fd });
	if (r == 0) {
		io.is_in_userns = true;
		launch_payload(box, io);
	}
	if (r < 0) {
		err_sys(&e, -r, "enter the namespaces");
		(void)os_send(io.report_fd, &e, sizeof e, NULL, 0);
		_exit(125);
	}
	_exit(os_send(io.report_fd, &r, sizeof r, NULL, 0) < 0 ? 125 : 0);
}

static int clone_command(const struct box *box, const struct spawn_init *init, struct payload_io io,
                         struct spawn_command *out)
{
	int pid;

	if (init->is_entered) {
		os_cpus_stay(&box->cpus); /* we sleep soon, pid 1 works elsewhere */
		pid = os_clone((struct clone_opts){ .cgroup_fd = box->cgroup.box_fd });
		os_cpus_take(&box->cpus);
		if (pid == 0)
			launch_payload(box, io);
		out->pid = pid;
	} else {
		pid = os_clone((struct clone_opts){ 0 });
		if (pid == 0)
			helper(box, io);
		out->helper = pid;
	}
	return pid;
}

int spawn_command(const struct box *box, const struct spawn_init *init, struct payload_io io,
                  struct spawn_command *out, struct err *e)
{
	int report[2];
	int r = os_socketpair(report, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	*out = (struct spawn_command){ .listener_fd = -1, .pty_fd = -1, .report_fd = -1 };
	AUTO(fd_close) int report_read = report[0];
	AUTO(fd_close) int report_write = report[1];
	io.report_fd = report_write;
	io.init_pidfd = init->pidfd;
	io.cgroup_ns_fd = -1;
	io.is_in_userns = false;
	io.entered_fd = init->entered_fd;
	io.walls_fd = init->walls_fd;
	r = clone_command(box, init, io, out);
	if (r < 0) {
		out->pid = out->helper = 0;
		return err_sys(e, -r, "clone");
	}
	out->report_fd = fd_take(&report_read);
	return 0;
}

/* Messages from helper and command, told apart by size: the pid, a descriptor, an error. */
static int read_start(struct spawn_command *c, struct err *e)
{
	union {
		int pid;
		char letter;
		struct err e;
	} m;
	int fd = -1;
	size_t n_fds = 1;
	int n = os_recv(c->report_fd, &m, sizeof m, &fd, &n_fds);

	if (n == (int)sizeof m.pid) {
		c->pid = m.pid;
		return 0;
	}
	if (n == 1) {
		*(m.letter == GIFT_PTY ? &c->pty_fd : &c->listener_fd) = n_fds ? fd : -1;
		c->gifts++;
		return 0;
	}
	if (n == (int)sizeof m.e) {
		*e = m.e;
		e->msg[sizeof e->msg - 1] = '\0';
		return -1;
	}
	return err_new(e, ERR_INTERNAL, "the command's process died before it could execute");
}

/* Which of the two speaks first is not known. */
int spawn_await_start(const struct box *box, struct spawn_command *c, struct err *e)
{
	const int gifts = box->plan->is_tty ? 2 : 1;
	int status = 0;
	int r = 0;

	/* It ends at once, and when well after it has sent the pid. */
	if (c->helper > 0)
		(void)os_wait(c->helper, &status, NULL);
	c->helper = 0;
	if (status != 0 && !spawn_command_error(c, e))
		err_new(e, ERR_INTERNAL, "the helper that enters the namespaces died");
	if (status != 0)
		return -1;
	while (r >= 0 && (c->pid == 0 || c->gifts < gifts))
		r = read_start(c, e);
	return r;
}
