#include "launcher/gates.h"

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

enum { CHANNEL_FD = CHILD_FIRST_FD, CACHE_FD };

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 2000
#define STEADY_MS 2000 /* who lived that long starts again at once */

/* In the child: from the launcher's rights to none, for good. */
static _Noreturn void become_gate(const struct gates *g, const char *path, int channel_fd)
{
	char name[] = "caisson-gate", option[] = "--ca";
	char *ca = (char *)(uintptr_t)g->ca; /* execve(2) changes none of them */
	char *const argv[] = { name, ca ? option : NULL, ca, NULL }, *const env[] = { NULL };
	const int given[] = { channel_fd, g->cache_fd };
	int keep[] = { 0, 1, 2, CHANNEL_FD, g->cache_fd < 0 ? -1 : CACHE_FD };
	int r = child_place(given, COUNT(given));

	if (g->cgroup) { /* that is removed with the last sandbox; it may take longer to end */
		struct cgroup cg = *g->cgroup;

		cgroup_leave(&cg);
	}
	if (r >= 0)
		r = child_keep(keep, COUNT(keep));
	if (r >= 0)
		r = os_chdir("/");
	if (r >= 0)
		r = child_give_up(g->is_root, g->id);
	if (r >= 0) /* after the change of ids, which clears it */
		r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r >= 0)
		r = os_execveat(AT_FDCWD, path, argv, env, 0);
	fprintf(stderr, "caisson-launcher: start %s: %s\n", path, strerror(-r));
	_exit(126);
}

static int start(struct gates *g, uint64_t now_ms, struct err *e)
{
	char path[PATH_MAX];
	int fds[2];

	if (launcher_find("caisson-gate", path, e) < 0)
		return -1;
	int r = os_socketpair(fds, SOCK_SEQPACKET);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0) /* we wait for nobody */
		return err_sys(e, errno, "set the channel non-blocking");
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0)
		become_gate(g, path, theirs);
	g->pid = pid;
	g->channel_fd = fd_take(&ours);
	g->started_ms = now_ms;
	return 0;
}

/* Whoever comes too early is told when to come again. */
static void plan_again(struct gates *g, uint64_t now_ms)
{
	bool was_steady = now_ms - g->started_ms >= STEADY_MS;

	fd_close(&g->channel_fd);
	if (was_steady)
		g->backoff_ms = 0;
	else if (g->backoff_ms == 0)
		g->backoff_ms = BACKOFF_MS_MIN;
	else
		g->backoff_ms *= g->backoff_ms * 2 > BACKOFF_MS_MAX ? 1 : 2;
	g->again_ms = now_ms + g->backoff_ms;
}

void gates_ended(struct gates *g, uint64_t now_ms)
{
	g->pid = 0;
	if (g->channel_fd >= 0)
		plan_again(g, now_ms);
	fprintf(stderr, "caisson-launcher: the gate is gone; again when it is asked for\n");
}

static int check_running(struct gates *g, uint64_t now_ms, struct err *e)
{
	if (g->channel_fd >= 0)
		return 0;
	if (now_ms < g->again_ms)
		return err_new(e, ERR_INTERNAL,
		               "the gate ended right after its start; see the launcher's log");
	return start(g, now_ms, e);
}

int gates_ask(struct gates *g, uint64_t now_ms, struct err *e)
{
	int fds[2];

	if (check_running(g, now_ms, e) < 0)
		return -1;
	int r = os_socketpair(fds, SOCK_SEQPACKET);
	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];
	const char byte = 0;
	r = os_send(g->channel_fd, &byte, 1, &theirs, 1);
	if (r < 0) {
		if (r != -EAGAIN)
			plan_again(g, now_ms);
		return err_sys(e, -r, "reach the gate");
	}
	return fd_take(&ours);
}

void gates_done(struct gates *g)
{
	fd_close(&g->channel_fd);
}
