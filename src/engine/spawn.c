#include "engine/spawn.h"

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

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS)

static int net_flag(void)
{
	return fault_layer_off("netns") ? 0 : CLONE_NEWNET;
}

/* Reads the report of a child that is building: ERR_NONE is success. */
static int read_report(int fd, struct err *e)
{
	struct err report;
	int n = os_recv(fd, &report, sizeof report, NULL, NULL);

	if (n != (int)sizeof report)
		return err_new(e, ERR_INTERNAL, "the process died while building the walls");
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

static int finish_init(const struct box *box, pid_t pid, int go_fd, int report_fd, struct err *e)
{
	if (userns_map(box, pid, e) < 0)
		return err_wrap(e, "user namespace");
	int r = os_write_all(go_fd, "g", 1);
	if (r < 0)
		return err_sys(e, -r, "start pid 1");
	return read_report(report_fd, e);
}

int spawn_init(const struct box *box, struct spawn_init *out, struct err *e)
{
	int go[2], report[2];
	int pidfd = -1;
	int r = os_pipe(go, 0);

	if (r < 0)
		return err_sys(e, -r, "pipe");
	AUTO(fd_close) int go_read = go[0];
	AUTO(fd_close) int go_write = go[1];
	r = os_socketpair(report, SOCK_SEQPACKET);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int report_read = report[0];
	AUTO(fd_close) int report_write = report[1];
	int pid = os_clone((struct clone_opts){ .flags = (uint64_t)(NAMESPACES | net_flag()),
						.cgroup_fd = box->cgroup.box_fd,
						.pidfd = &pidfd });
	if (pid < 0)
		return err_sys(e, -pid, "clone into new namespaces");
	if (pid == 0) {
		fd_close(&go_write); /* or it would never see the monitor go */
		fd_close(&report_read);
		launch_inside(box, go_read, report_write);
	}
	AUTO(fd_close) int owned = pidfd;
	fd_close(&report_write);
	if (finish_init(box, pid, go_write, report_read, e) < 0) {
		end_child(pid);
		return -1;
	}
	*out = (struct spawn_init){ .pid = pid, .pidfd = fd_take(&owned) };
	return 0;
}

/* In a helper: still the monitor's ids; enters the namespaces and clones the command as the
 * monitor's own child, so that the monitor waits for it. */
static int enter_and_clone(const struct box *box, int init_pidfd, struct payload_io io, struct err *e)
{
	int flags = NAMESPACES | net_flag();

	if (cgroup_join(&box->cgroup, e) < 0)
		return -1;
	int r = os_setns(init_pidfd, flags);
	if (r < 0)
		return err_sys(e, -r, "enter the namespaces");
	int pid = os_clone((struct clone_opts){ .flags = CLONE_PARENT,
						.cgroup_fd = box->cgroup.box_fd });
	if (pid < 0)
		return err_sys(e, -pid, "clone the command");
	if (pid > 0)
		return pid;
	/* Last, and here: from inside it the helper could not name the cgroup to clone into. */
	r = os_setns(init_pidfd, CLONE_NEWCGROUP);
	if (r < 0) {
		err_sys(e, -r, "enter the cgroup namespace");
		(void)os_send(io.report_fd, e, sizeof *e, NULL, 0);
		_exit(125);
	}
	launch_payload(box, io);
}

static _Noreturn void helper(const struct box *box, int init_pidfd, struct payload_io io)
{
	struct err e = { 0 };
	int pid = enter_and_clone(box, init_pidfd, io, &e);

	if (pid < 0)
		(void)os_send(io.report_fd, &e, sizeof e, NULL, 0);
	else
		(void)os_send(io.report_fd, &pid, sizeof pid, NULL, 0);
	_exit(pid < 0 ? 125 : 0);
}

/* Messages from helper and command, told apart by size: the pid, the gifts, an error. */
static int read_start(struct spawn_command *c, struct err *e)
{
	union {
		int pid;
		char byte;
		struct err e;
	} m;
	int fds[GIFT_COUNT];
	size_t n_fds = GIFT_COUNT;
	int n = os_recv(c->report_fd, &m, sizeof m, fds, &n_fds);

	if (n == (int)sizeof m.pid) {
		c->pid = m.pid;
		return 0;
	}
	if (n == 1) {
		size_t next = 0;

		if (n_fds > 0 && !fault_layer_off("seccomp") && !fault_layer_off("notify"))
			c->listener_fd = fds[next++];
		if (next < n_fds)
			c->pty_fd = fds[next++];
		return 1;
	}
	if (n == (int)sizeof m.e) {
		*e = m.e;
		e->msg[sizeof e->msg - 1] = '\0';
		return -1;
	}
	return err_new(e, ERR_INTERNAL, "the command's process died before it could execute");
}

/* Which of the two speaks first is not known. */
static int await_start(struct spawn_command *c, struct err *e)
{
	bool has_gift = false;

	while (c->pid == 0 || !has_gift) {
		int r = read_start(c, e);

		if (r < 0)
			return -1;
		has_gift |= r == 1;
	}
	return 0;
}

int spawn_command(const struct box *box, int init_pidfd, struct payload_io io,
		  struct spawn_command *out, struct err *e)
{
	int report[2];
	int status;
	int r = os_socketpair(report, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	*out = (struct spawn_command){ .listener_fd = -1, .pty_fd = -1 };
	AUTO(fd_close) int report_read = report[0];
	AUTO(fd_close) int report_write = report[1];
	io.report_fd = report_write;
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return err_sys(e, -pid, "clone a helper");
	if (pid == 0)
		helper(box, init_pidfd, io);
	fd_close(&report_write);
	out->report_fd = report_read;
	r = await_start(out, e);
	(void)os_wait(pid, &status, NULL);
	if (r < 0) {
		if (out->pid > 0)
			end_child(out->pid);
		fd_close(&out->listener_fd);
		fd_close(&out->pty_fd);
		return -1;
	}
	out->report_fd = fd_take(&report_read);
	return 0;
}
