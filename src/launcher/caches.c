#include "launcher/caches.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/helper.h"
#include "launcher/rundir.h"
#include "os/sock.h"

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 5000
#define STEADY_MS 2000 /* who lived that long starts again at once */

#define OF(w, member) ((struct caches *)(void *)((char *)(w)-offsetof(struct caches, member)))

static int start(struct caches *c, struct err *e)
{
	AUTO(fd_close)
	int dir = rundir_own(c->state_fd, "cache", c->is_root ? c->id : geteuid(), e);
	if (dir < 0)
		return -1;
	const struct helper cache = { .name = "caisson-cache",
		                      .is_root = c->is_root,
		                      .id = c->id,
		                      .is_to_follow = true,
		                      .cgroup = c->cgroup,
		                      .args = c->args,
		                      .fds = { c->ask.fd, c->gate.fd, dir },
		                      .n_fds = 3 };

	return helper_run(&cache, &c->pid, e);
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
