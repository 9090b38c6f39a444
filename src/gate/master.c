#include "gate/master.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fd.h"
#include "gate/child.h"
#include "gate/ends.h"
#include "gate/harden.h"
#include "io/journal.h"
#include "os/file.h"
#include "os/sock.h"

enum { CHILD_FD = 3, CACHE_FD = 4 };

/* In the child: rights of the master. Nothing of it stays but the standard descriptors; other
 * sandboxes' sockets were closed when they were given away. */
static _Noreturn void be_child(pid_t master, int fd, int cache_fd)
{
	struct err e = { 0 };
	/* Above both numbers first: one may be the other's. */
	int child = fcntl(fd, F_DUPFD_CLOEXEC, CACHE_FD + 1);
	int r = cache_fd < 0 || cache_fd == CACHE_FD ? 0 : os_dup3(cache_fd, CACHE_FD, O_CLOEXEC);

	if (r >= 0)
		r = child < 0 ? -errno : os_dup3(child, CHILD_FD, O_CLOEXEC);
	if (r >= 0)
		r = os_close_range(cache_fd < 0 ? CACHE_FD : CACHE_FD + 1, ~0u, 0);
	if (r < 0)
		_exit(1);
	const struct child_opts opts = { .monitor_fd = CHILD_FD,
		                         .cache_fd = cache_fd < 0 ? -1 : CACHE_FD,
		                         .master = master };

	if (child_run(&opts, &e) < 0) {
		journal(JOURNAL_ERROR, "a child of the gate ended", "reason", e.msg, NULL);
		_exit(1);
	}
	_exit(0);
}

int master_run(int fd, int cache_fd, struct err *e)
{
	pid_t own = getpid();

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* nobody waits: the kernel reaps */
	if (harden_master(e) < 0)
		return -1;
	for (;;) {
		char word[16];
		int given = -1;
		size_t n_fds = 1;
		int n = os_recv(fd, word, sizeof word, &given, &n_fds);

		if (n < 0)
			return err_sys(e, -n, "hear the launcher");
		if (n == 0 && n_fds == 0)
			return 0;
		pid_t pid = n_fds == 1 ? fork() : 1;
		if (pid == 0)
			be_child(own, given, cache_fd);
		if (pid < 0)
			journal(JOURNAL_ERROR, "no child for a sandbox", "reason", strerror(errno),
			        NULL);
		fd_close(&given); /* without a child its other end is told so */
		ends_refresh();   /* for the next one; nobody waits for us now */
	}
}
