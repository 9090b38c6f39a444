/*
 * stopper.c - all processes of a sandbox stand still where there is no freezer for it.
 *
 * A helper enters the sandbox's namespaces and becomes the tracer of every thread inside: seized
 * and interrupted, not signalled, so that no parent sees a child stop and no shell a job. It looks
 * again until there is nobody new: who stands still makes no more. When it ends, however it ends,
 * the kernel lets all of them go on. Who is traced by another process inside cannot be seized: then
 * nobody is held.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/vec.h"
#include "monitor/monitor-internal.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

#define PASSES_MAX 1000 /* of somebody who forks as fast as he can */

/* ---- the tracer ------------------------------------------------------------------------ */

struct held {
	VEC(pid_t) tids;
	bool is_new; /* somebody in this pass */
};

static bool is_held(const struct held *h, pid_t tid)
{
	for (size_t i = 0; i < h->tids.len; i++)
		if (h->tids.at[i] == tid)
			return true;
	return false;
}

/* Not waited for, and refused with the same errno as one that another traces. */
static bool is_dead(pid_t tid)
{
	char path[32], text[512] = "";

	snprintf(path, sizeof path, "/proc/%d/stat", tid);
	if (os_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return true;
	const char *name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

/* 0 or -errno; who is gone meanwhile is no error. */
static int hold_thread(struct held *h, pid_t tid)
{
	if (is_held(h, tid))
		return 0;
	int r = os_trace_stop(tid);
	if (r == -ESRCH || (r == -EPERM && is_dead(tid)))
		return 0;
	if (r < 0)
		return r;
	h->is_new = true;
	vec_push(&h->tids, tid);
	return 0;
}

/* The numbers in a folder of /proc. */
static int each_number(const char *path, struct held *h, int (*each)(struct held *h, pid_t number))
{
	int fd = os_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int r = 0;

	if (fd == -ENOENT)
		return 0;
	if (!dir)
		return fd < 0 ? fd : -errno;
	for (struct dirent *d = readdir(dir); d && r == 0; d = readdir(dir)) {
		long number = strtol(d->d_name, NULL, 10);

		if (number > 0)
			r = each(h, (pid_t)number);
	}
	closedir(dir);
	return r;
}

static int hold_process(struct held *h, pid_t pid)
{
	char path[48];

	if (pid == 1 || pid == getpid()) /* pid 1 only reaps */
		return 0;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	return each_number(path, h, hold_thread);
}

static int hold_all(struct held *h)
{
	for (int i = 0; i < PASSES_MAX; i++) {
		h->is_new = false;
		int r = each_number("/proc", h, hold_process);
		if (r < 0 || !h->is_new)
			return r;
	}
	return -EAGAIN;
}

/* In a child of the monitor that is in the sandbox's pid namespace: soon in its user and mount
 * namespaces too, with all rights in the first and no filter. */
static _Noreturn void trace(int init_pidfd, int user, int report_fd)
{
	struct held h = { 0 };
	char byte;
	int r = os_setns(init_pidfd, user | CLONE_NEWNS);

	if (r >= 0)
		r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r >= 0)
		r = hold_all(&h);
	if (os_send(report_fd, &r, sizeof r, NULL, 0) < 0 || r < 0)
		_exit(0);
	(void)!read(report_fd, &byte, 1); /* until the monitor hangs up */
	_exit(0);
}

/* In a helper: the tracer is the monitor's own child, so that it is waited for. */
static _Noreturn void enter(int init_pidfd, int report_fd, int pid_fd)
{
	int r = os_setns(init_pidfd, CLONE_NEWUSER | CLONE_NEWPID);

	if (r >= 0)
		r = os_clone((struct clone_opts){ .flags = CLONE_PARENT });
	if (r == 0)
		trace(init_pidfd, 0, report_fd);
	(void)os_write_all(pid_fd, &r, sizeof r);
	_exit(0);
}

/* ---- the monitor ----------------------------------------------------------------------- */

static void hear(struct watch *w, uint32_t events)
{
	struct monitor *m = OWNER_OF(w, struct monitor, stopper);
	int error = -EIO; /* it died */

	(void)events;
	if (os_recv(w->fd, &error, sizeof error, NULL, NULL) != (int)sizeof error)
		error = -EIO;
	loop_remove(&m->loop, w); /* its end is ours to say */
	freeze_answer(m, -error);
}

/* As in engine/spawn.c: with root's rights our children are born in there; without, a helper enters
 * first. It does two calls and ends. The tracer's pid, or -errno. */
static int start_tracer(const struct monitor *m, int ours, int theirs)
{
	int pipe_fds[2], status = 0, tracer = -EIO;

	if (m->init.is_entered) {
		int child = os_clone((struct clone_opts){ 0 });

		if (child == 0) {
			fd_close(&ours); /* or it would never see us hang up */
			trace(m->init.pidfd, CLONE_NEWUSER, theirs);
		}
		return child;
	}
	int r = os_pipe(pipe_fds, O_CLOEXEC);

	if (r < 0)
		return r;
	AUTO(fd_close) int pid_read = pipe_fds[0];
	AUTO(fd_close) int pid_write = pipe_fds[1];
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return pid;
	if (pid == 0) {
		fd_close(&ours);
		enter(m->init.pidfd, theirs, pid_write);
	}
	fd_close(&pid_write);
	(void)os_wait(pid, &status, NULL);
	return read(pid_read, &tracer, sizeof tracer) == (ssize_t)sizeof tracer ? tracer : -EIO;
}

int stopper_start(struct monitor *m)
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return r;
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	r = start_tracer(m, ours, theirs);
	if (r < 0)
		return r;
	m->stopper_pid = r;
	m->stopper = (struct watch){ .fd = fd_take(&ours), .ready = hear };
	r = loop_add(&m->loop, &m->stopper, EPOLLIN);
	if (r < 0)
		stopper_end(m);
	return r;
}

void stopper_end(struct monitor *m)
{
	int status;

	if (m->stopper_pid == 0)
		return;
	loop_remove(&m->loop, &m->stopper);
	fd_close(&m->stopper.fd);
	(void)kill(m->stopper_pid, SIGKILL); /* our child, not waited for */
	(void)os_wait(m->stopper_pid, &status, NULL);
	m->stopper_pid = 0;
}
