#include "launcher/helper.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "io/program.h"
#include "launcher/child.h"
#include "launcher/launcher.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

#define ARGS_MAX 512

/* In the child: 3 and those after it, whatever numbers they have here. */
static int place(const struct helper *h)
{
	int keep[3 + HELPER_FDS_MAX] = { 0, 1, 2 };
	int r = child_place(h->fds, h->n_fds);

	for (size_t i = 0; i < h->n_fds; i++)
		keep[3 + i] = h->fds[i] < 0 ? -1 : CHILD_FIRST_FD + (int)i;
	return r < 0 ? r : child_keep(keep, 3 + h->n_fds);
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

/* In the child, whose program does not start. The channel carries the reason to a launcher that
 * asks for it, so that the caller's answer has it; else the log has to do. */
static _Noreturn void fail_start(const struct helper *h, const char *path, int error,
                                 bool is_placed)
{
	int channel = is_placed ? CHILD_FIRST_FD : h->fds[0];
	char text[HELPER_REASON_MAX];

	snprintf(text, sizeof text, "start %s: %s", path, strerror(error));
	if (!h->tells_reason || os_send(channel, text, strlen(text), NULL, 0) < 0)
		fprintf(stderr, "caisson-launcher: %s\n", text);
	_exit(126);
}

static _Noreturn void become(const struct helper *h, const char *path)
{
	char name[NAME_MAX];
	char *argv[ARGS_MAX] = { name }, *const env[] = { NULL };

	snprintf(name, sizeof name, "%s", h->name);
	for (size_t i = 0; h->args && h->args[i] && i + 2 < ARGS_MAX; i++)
		argv[i + 1] = h->args[i];
	if (h->cgroup) { /* that is removed with the last sandbox; it may take longer to end */
		struct cgroup cg = *h->cgroup;

		cgroup_leave(&cg);
	}
	int r = place(h);
	bool is_placed = r >= 0;
	if (r >= 0)
		r = settle(h);
	if (r >= 0)
		r = os_execveat(AT_FDCWD, path, argv, env, 0);
	fail_start(h, path, -r, is_placed);
}

int helper_run(const struct helper *h, pid_t *pid, struct err *e)
{
	char path[PATH_TEXT_MAX];

	if (program_find(h->name, path, e) < 0)
		return -1;
	int r = os_clone((struct clone_opts){ 0 });
	if (r < 0)
		return err_sys(e, -r, "clone");
	if (r == 0)
		become(h, path);
	*pid = r;
	return 0;
}

int helper_start(const struct helper *h, pid_t *pid, struct err *e)
{
	struct helper with = *h;
	int fds[2];

	int r = os_socketpair(fds, SOCK_SEQPACKET);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0) /* we wait for nobody */
		return err_sys(e, errno, "set the channel non-blocking");
	with.fds[0] = theirs;
	memcpy(with.fds + 1, h->fds, h->n_fds * sizeof *h->fds);
	with.n_fds++;
	return helper_run(&with, pid, e) < 0 ? -1 : fd_take(&ours);
}

bool helper_reason(int channel_fd, char text[HELPER_REASON_MAX])
{
	int n = -ECONNRESET;

	/* The kernel reports once that the peer left packets unread, before it gives ours out. */
	for (int tries = 0; tries < 2 && n == -ECONNRESET; tries++)
		n = os_recv(channel_fd, text, HELPER_REASON_MAX - 1, NULL, NULL);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}
