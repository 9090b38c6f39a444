#include "launcher/helper.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/child.h"
#include "launcher/launcher.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

#define CHANNEL_FD 3

/* In the child: 3 and those after it, whatever numbers they have here. */
static int place(const struct helper *h, int channel_fd)
{
	int from[1 + HELPER_FDS_MAX] = { channel_fd }, keep[3 + 1 + HELPER_FDS_MAX] = { 0, 1, 2 };
	size_t n = 1 + h->n_fds;
	int r = 0;

	memcpy(from + 1, h->fds, h->n_fds * sizeof *from);
	for (size_t i = 0; i < n; i++) { /* out of the way first: no copy overwrites a source */
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, CHANNEL_FD + (int)n);
		if (from[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n && r >= 0; i++) {
		keep[3 + i] = CHANNEL_FD + (int)i;
		r = os_dup3(from[i], CHANNEL_FD + (int)i, 0);
	}
	return r < 0 ? r : child_keep(keep, 3 + n);
}

static int settle(const struct helper *h)
{
	int r = os_chdir("/");

	if (r >= 0)
		r = child_give_up(h->is_root && !h->keeps_rights, h->id);
	if (r >= 0 && h->is_to_follow) /* after the change of ids, which clears it */
		r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);
	return r;
}

static _Noreturn void become(const struct helper *h, const char *path, int channel_fd)
{
	char name[NAME_MAX];
	char *const argv[] = { name, NULL }, *const env[] = { NULL };

	snprintf(name, sizeof name, "%s", h->name);
	if (h->cgroup) { /* that is removed with the last sandbox; it may take longer to end */
		struct cgroup cg = *h->cgroup;

		cgroup_leave(&cg);
	}
	int r = place(h, channel_fd);
	if (r >= 0)
		r = settle(h);
	if (r >= 0)
		r = os_execveat(AT_FDCWD, path, argv, env, 0);
	fprintf(stderr, "caisson-launcher: start %s: %s\n", path, strerror(-r));
	_exit(126);
}

int helper_start(const struct helper *h, pid_t *pid, struct err *e)
{
	char path[PATH_MAX];
	int fds[2];

	if (launcher_find(h->name, path, e) < 0)
		return -1;
	int r = os_socketpair(fds, SOCK_SEQPACKET);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0) /* we wait for nobody */
		return err_sys(e, errno, "set the channel non-blocking");
	r = os_clone((struct clone_opts){ 0 });
	if (r < 0)
		return err_sys(e, -r, "clone");
	if (r == 0)
		become(h, path, theirs);
	*pid = r;
	return fd_take(&ours);
}
