#include "launcher/caches.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/child.h"
#include "launcher/launcher.h"
#include "launcher/rundir.h"
#include "os/file.h"
#include "os/proc.h"
#include "os/sock.h"

enum { ASK_FD = CHILD_FIRST_FD, GATE_FD, DIR_FD };

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 5000
#define STEADY_MS 2000 /* who lived that long starts again at once */
#define ARGS_MAX 512

#define OF(w, member) ((struct caches *)(void *)((char *)(w)-offsetof(struct caches, member)))

/* In the child: from the launcher's rights to none, for good. */
static _Noreturn void become_cache(const struct caches *c, const char *path, int dir_fd)
{
	char name[] = "caisson-cache";
	char *argv[ARGS_MAX] = { name }, *const env[] = { NULL };
	const int given[] = { c->ask.fd, c->gate.fd, dir_fd };
	int keep[] = { 0, 1, 2, ASK_FD, GATE_FD, DIR_FD };

	for (size_t i = 0; c->args && c->args[i] && i + 2 < ARGS_MAX; i++)
		argv[i + 1] = c->args[i];
	if (c->cgroup) { /* that is removed with the last sandbox; it may take longer to end */
		struct cgroup cg = *c->cgroup;

		cgroup_leave(&cg);
	}
	int r = child_place(given, COUNT(given));
	if (r >= 0)
		r = child_keep(keep, COUNT(keep));
	if (r >= 0)
		r = os_chdir("/");
	if (r >= 0)
		r = child_give_up(c->is_root, c->id);
	if (r >= 0) /* after the change of ids, which clears it */
		r = os_prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r >= 0)
		r = os_execveat(AT_FDCWD, path, argv, env, 0);
	fprintf(stderr, "caisson-launcher: start %s: %s\n", path, strerror(-r));
	_exit(126);
}

static int start(struct caches *c, struct err *e)
{
	char path[PATH_MAX];

	if (launcher_find("caisson-cache", path, e) < 0)
		return -1;
	AUTO(fd_close)
	int dir = rundir_own(c->state_fd, "cache", c->is_root ? c->id : geteuid(), e);
	if (dir < 0)
		return -1;
	int pid = os_clone((struct clone_opts){ 0 });
	if (pid < 0)
		return err_sys(e, -pid, "clone");
	if (pid == 0)
		become_cache(c, path, dir);
	c->pid = pid;
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void plan_again(struct caches *c, uint64_t now)
{
	if (now - c->started_ms >= STEADY_MS)
		c->backoff_ms = BACKOFF_MS_MIN;
	else if (c->backoff_ms < BACKOFF_MS_MAX)
		c->backoff_ms = c->backoff_ms ? c->backoff_ms * 2 : BACKOFF_MS_MIN;
	c->again_ms = now + c->backoff_ms;
}

/* Somebody wants it. */
static void wanted(struct caches *c)
{
	struct err e = { 0 };

	loop_remove(c->loop, &c->gate);
	loop_remove(c->loop, &c->ask);
	c->started_ms = now_ms();
	if (start(c, &e) == 0)
		return;
	fprintf(stderr, "caisson-launcher: the package cache: %s\n", e.msg);
	plan_again(c, c->started_ms);
}

static void gate_ready(struct watch *w, uint32_t events)
{
	(void)events;
	wanted(OF(w, gate));
}

static void ask_ready(struct watch *w, uint32_t events)
{
	(void)events;
	wanted(OF(w, ask));
}

static int listen_on(struct caches *c)
{
	int r = loop_add(c->loop, &c->gate, EPOLLIN);

	return r < 0 ? r : loop_add(c->loop, &c->ask, EPOLLIN);
}

void caches_ended(struct caches *c, uint64_t now)
{
	c->pid = 0;
	plan_again(c, now);
	fprintf(stderr, "caisson-launcher: the package cache is gone; again when it is wanted\n");
}

void caches_tick(struct caches *c, uint64_t now)
{
	if (c->again_ms == 0 || now < c->again_ms)
		return;
	c->again_ms = 0;
	if (listen_on(c) < 0)
		plan_again(c, now);
}

uint64_t caches_due(const struct caches *c)
{
	return c->again_ms ? c->again_ms : UINT64_MAX;
}

static int make_pair(int *near, struct watch *far, void (*ready)(struct watch *w, uint32_t events))
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (r < 0)
		return r;
	*near = fds[0];
	*far = (struct watch){ .fd = fds[1], .ready = ready };
	return 0;
}

int caches_open(struct caches *c, struct err *e)
{
	int r = make_pair(&c->gate_fd, &c->gate, gate_ready);

	if (r >= 0)
		r = make_pair(&c->ask_fd, &c->ask, ask_ready);
	if (r >= 0)
		r = listen_on(c);
	return r < 0 ? err_sys(e, -r, "make sockets for the package cache") : 0;
}

void caches_done(struct caches *c)
{
	fd_close(&c->gate_fd);
	fd_close(&c->ask_fd);
	fd_close(&c->gate.fd);
	fd_close(&c->ask.fd);
}

int caches_ask(struct caches *c, struct err *e)
{
	const char byte = 0;
	int fds[2];
	int r = os_socketpair(fds, SOCK_STREAM);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];

	r = os_send(c->ask_fd, &byte, 1, &theirs, 1);
	return r < 0 ? err_sys(e, -r, "reach the package cache") : fd_take(&ours);
}
