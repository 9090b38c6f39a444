#include "gate/master.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "gate/child.h"
#include "gate/ends.h"
#include "gate/harden.h"
#include "gate/safe.h"
#include "io/journal.h"
#include "os/file.h"
#include "os/pulse.h"
#include "os/sock.h"

/* Of a child, in this order. */
enum { CHILD_FD = 3, CACHE_FD, SAFE_FD, END_FD };
#define FDS (END_FD - CHILD_FD)

/* -1 stays -1: its number is nobody's then. */
static int place_fds(int fds[FDS])
{
	int r = 0;

	/* Above all numbers first: one may be another's. */
	for (size_t i = 0; i < FDS; i++)
		if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, END_FD)) < 0)
			return -errno;
	for (int i = 0; i < FDS && r >= 0; i++) {
		if (fds[i] >= 0)
			r = os_dup3(fds[i], CHILD_FD + i, O_CLOEXEC);
		else
			(void)close(CHILD_FD + i);
		fds[i] = fds[i] < 0 ? -1 : CHILD_FD + i;
	}
	return r < 0 ? r : os_close_range(END_FD, ~0u, 0);
}

/* In the child: rights of the master. Nothing of it stays but the standard descriptors; other
 * sandboxes' sockets were closed when they were given away, and the key is on a page that is
 * zero here. */
static _Noreturn void be_child(pid_t master, int fds[FDS])
{
	struct err e = { 0 };

	if (place_fds(fds) < 0)
		_exit(1);
	const struct child_opts opts = {
		.monitor_fd = fds[0], .cache_fd = fds[1], .safe_fd = fds[2], .master = master
	};

	if (child_run(&opts, &e) < 0) {
		journal(JOURNAL_ERROR, "a child of the gate ended", "reason", e.msg, NULL);
		_exit(1);
	}
	_exit(0);
}

struct master {
	const struct master_opts *opts;
	pid_t own;
	int safe_fds[2]; /* ours, and that of all children */
};

/* One packet of the launcher's: 1, 0 when it has hung up, or -errno. */
static int take_one(const struct master *m)
{
	char word[16];
	int given = -1;
	size_t n_fds = 1;
	int n = os_recv(m->opts->launcher_fd, word, sizeof word, &given, &n_fds);

	if (n < 0 || (n == 0 && n_fds == 0))
		return n;
	pid_t pid = n_fds == 1 ? fork() : 1;
	if (pid == 0)
		be_child(m->own, (int[FDS]){ given, m->opts->cache_fd, m->safe_fds[1] });
	if (pid < 0)
		journal(JOURNAL_ERROR, "no child for a sandbox", "reason", strerror(errno), NULL);
	fd_close(&given); /* without a child its other end is told so */
	ends_refresh();   /* for the next one; nobody waits for us now */
	return 1;
}

int master_run(const struct master_opts *o, struct err *e)
{
	struct master m = { .opts = o, .own = getpid() };
	struct pollfd waits[] = { { .fd = o->launcher_fd, .events = POLLIN },
		                  { .events = POLLIN } };
	int r = 1;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* nobody waits: the kernel reaps */
	if (safe_init(o->key_fd, e) < 0)
		return -1;
	r = os_socketpair(m.safe_fds, SOCK_SEQPACKET);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	r = os_pulse_init();
	if (r < 0)
		return err_sys(e, -r, "catch a signal");
	if (harden_master(e) < 0)
		return -1;
	waits[1].fd = m.safe_fds[0];
	for (r = 1; r > 0;) {
		r = os_poll(waits, COUNT(waits), -1);
		if (r < 0)
			return err_sys(e, -r, "wait");
		if (waits[1].revents) { /* first: a child waits for it, whom we need not trust */
			os_pulse_on();
			safe_serve(m.safe_fds[0]);
			os_pulse_off();
		}
		if (waits[0].revents)
			r = take_one(&m);
	}
	return r < 0 ? err_sys(e, -r, "hear the launcher") : 0;
}
