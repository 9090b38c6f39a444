/*
 * supervise.c - the daemon is the launcher's child: started without rights, started again when
 * it dies. What it asked for dies with it; what it made lives on.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/child.h"
#include "launcher/server-internal.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

#define BACKOFF_MS_MIN 100
#define BACKOFF_MS_MAX 5000
#define LEAVE_MS 10000 /* for sandboxes that end with the daemon */
#define CHANNEL_FD 3
#define API_FD 4
#define STATUS_USAGE 125 /* before it was ever ready: no second try would do better */

/* ---- start --------------------------------------------------------------------------- */

/* Its descriptors are 0 to 4, whatever numbers they have here. */
static int place(int channel_fd, int api_fd)
{
	int high = fcntl(api_fd, F_DUPFD, API_FD + 1);

	if (high < 0)
		return -errno;
	int r = os_dup3(channel_fd, CHANNEL_FD, 0);
	if (r >= 0)
		r = os_dup3(high, API_FD, 0);
	int keep[] = { 0, 1, 2, CHANNEL_FD, API_FD };
	return r < 0 ? r : child_keep(keep, COUNT(keep));
}

/* In the child: from the launcher's rights to none, for good. */
static _Noreturn void become_daemon(const struct server *s, int channel_fd)
{
	int r = place(channel_fd, s->dirs.api_fd);

	if (r >= 0)
		r = child_give_up(s->kit.host.is_root, s->opts->service_id);
	if (r >= 0)
		r = os_execveat(AT_FDCWD, s->opts->daemon, s->opts->argv, s->opts->env, 0);
	fprintf(stderr, "caisson-launcher: start %s: %s\n", s->opts->daemon, strerror(-r));
	_exit(126);
}

int supervise_start(struct server *s, struct err *e)
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	if (theirs <= API_FD) { /* place() would tread on it */
		int high = fcntl(theirs, F_DUPFD_CLOEXEC, API_FD + 1);

		if (high < 0)
			return err_sys(e, errno, "duplicate a descriptor");
		fd_close(&theirs);
		theirs = high;
	}
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0)
		become_daemon(s, theirs);
	s->daemon.pid = pid;
	s->daemon.is_ready = false;
	s->daemon.restart_ms = 0;
	r = server_take_channel(s, fd_take(&ours));
	return r < 0 ? err_sys(e, -r, "watch the daemon") : 0;
}

/* ---- end ----------------------------------------------------------------------------- */

static void leave(struct server *s, int status)
{
	s->is_leaving = true;
	s->status = status;
	s->leave_ms = server_now() + LEAVE_MS;
}

/* One that answered is wanted back at once; one that never came to it is given time. */
static void plan_restart(struct server *s)
{
	struct daemon *d = &s->daemon;

	if (d->backoff_ms == 0 || d->is_ready)
		d->backoff_ms = BACKOFF_MS_MIN;
	d->restart_ms = server_now() + d->backoff_ms;
	fprintf(stderr, "caisson-launcher: the daemon is gone; again in %u ms\n", d->backoff_ms);
	d->backoff_ms = d->backoff_ms * 2 > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : d->backoff_ms * 2;
}

void supervise_ended(struct server *s, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	s->daemon.pid = 0;
	server_drop_daemon(s);
	if (code == STATUS_USAGE && !s->daemon.was_ready)
		leave(s, STATUS_USAGE);
	else if (code == 0 || s->daemon.is_told)
		leave(s, 0);
	else
		plan_restart(s);
}

void supervise_signal(struct server *s, int sig)
{
	s->daemon.is_told = s->daemon.is_told || sig != SIGHUP;
	if (s->daemon.pid > 0)
		(void)os_kill(s->daemon.pid, sig); /* our child, not waited for */
	else if (sig != SIGHUP && !s->is_leaving)
		leave(s, 0);
}

void supervise_tick(struct server *s, uint64_t now_ms)
{
	struct err e = { 0 };

	if (s->is_leaving && (now_ms >= s->leave_ms || ending_is_idle(s)))
		s->loop.is_done = true;
	if (s->is_leaving || s->daemon.restart_ms == 0 || now_ms < s->daemon.restart_ms)
		return;
	if (supervise_start(s, &e) < 0) {
		fprintf(stderr, "caisson-launcher: %s\n", e.msg);
		plan_restart(s);
	}
}

uint64_t supervise_due(const struct server *s)
{
	if (s->is_leaving)
		return ending_is_idle(s) ? 0 : s->leave_ms;
	return s->daemon.restart_ms ? s->daemon.restart_ms : UINT64_MAX;
}
