#include "launcher/standby.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "launcher/helper.h"
#include "launcher/rundir.h"
#include "os/file.h"
#include "os/sock.h"

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 5000
#define STEADY_MS 2000 /* who lived that long starts again at once */

/* Somebody else's file, or one that others can read, is no secret. */
static int open_key(const char *path, struct err *e)
{
	AUTO(fd_close) int fd = os_openat(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;
	int r = fd < 0 ? fd : os_fstatat(fd, "", &st, AT_EMPTY_PATH);

	if (r < 0)
		return err_sys(e, -r, "open %s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return err_new(e, ERR_DENIED, "%s is another's, or open to others", path);
	return fd_take(&fd);
}

static int start(struct standby *s, struct err *e)
{
	AUTO(fd_close)
	int dir = rundir_own(s->state_fd, s->folder, s->is_root ? s->id : geteuid(), e);
	if (dir < 0)
		return -1;
	AUTO(fd_close) int key = s->key ? open_key(s->key, e) : -1;

	if (s->key && key < 0)
		return -1;
	struct helper h = { .name = s->program,
		            .is_root = s->is_root,
		            .id = s->id,
		            .is_to_follow = !s->outlives,
		            .cgroup = s->cgroup,
		            .args = s->args };

	for (size_t i = 0; i < s->n_pairs; i++)
		h.fds[h.n_fds++] = s->pairs[i].far.fd;
	h.fds[h.n_fds++] = dir;
	if (s->key)
		h.fds[h.n_fds++] = key;
	return helper_run(&h, &s->pid, e);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void plan_again(struct standby *s, uint64_t now)
{
	if (now - s->started_ms >= STEADY_MS)
		s->backoff_ms = BACKOFF_MS_MIN;
	else if (s->backoff_ms < BACKOFF_MS_MAX)
		s->backoff_ms = s->backoff_ms ? s->backoff_ms * 2 : BACKOFF_MS_MIN;
	s->again_ms = now + s->backoff_ms;
}

/* Somebody wants it. */
static void wanted(struct watch *w, uint32_t events)
{
	struct standby *s = ((struct standby_pair *)(void *)w)->owner;
	struct err e = { 0 };

	(void)events;
	for (size_t i = 0; i < s->n_pairs; i++)
		loop_remove(s->loop, &s->pairs[i].far);
	s->started_ms = now_ms();
	if (start(s, &e) == 0)
		return;
	fprintf(stderr, "caisson-launcher: %s: %s\n", s->title, e.msg);
	plan_again(s, s->started_ms);
}

static int listen_on(struct standby *s)
{
	int r = 0;

	for (size_t i = 0; i < s->n_pairs && r >= 0; i++)
		r = loop_add(s->loop, &s->pairs[i].far, EPOLLIN);
	return r;
}

void standby_ended(struct standby *s, uint64_t now)
{
	s->pid = 0;
	plan_again(s, now);
	fprintf(stderr, "caisson-launcher: %s is gone; again when it is wanted\n", s->title);
}

void standby_tick(struct standby *s, uint64_t now)
{
	if (s->again_ms == 0 || now < s->again_ms)
		return;
	s->again_ms = 0;
	if (listen_on(s) < 0)
		plan_again(s, now);
}

uint64_t standby_due(const struct standby *s)
{
	return s->again_ms ? s->again_ms : UINT64_MAX;
}

static int make_pair(struct standby *s, struct standby_pair *p)
{
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (r < 0)
		return r;
	*p = (struct standby_pair){ .far = { .fd = fds[1], .ready = wanted },
		                    .owner = s,
		                    .near_fd = fds[0] };
	return 0;
}

void standby_init(struct standby *s)
{
	for (size_t i = 0; i < STANDBY_PAIRS_MAX; i++)
		s->pairs[i].near_fd = s->pairs[i].far.fd = -1;
}

int standby_open(struct standby *s, struct err *e)
{
	int r = 0;

	standby_init(s);
	for (size_t i = 0; i < s->n_pairs && r >= 0; i++)
		r = make_pair(s, &s->pairs[i]);
	if (r >= 0)
		r = listen_on(s);
	return r < 0 ? err_sys(e, -r, "make sockets for %s", s->title) : 0;
}

void standby_done(struct standby *s)
{
	for (size_t i = 0; i < STANDBY_PAIRS_MAX; i++) {
		fd_close(&s->pairs[i].near_fd);
		fd_close(&s->pairs[i].far.fd);
	}
}

int standby_ask(struct standby *s, struct err *e)
{
	const char byte = 0;
	int fds[2];
	int r = os_socketpair(fds, s->socket_type);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];

	r = os_send(s->pairs[STANDBY_ASK].near_fd, &byte, 1, &theirs, 1);
	return r < 0 ? err_sys(e, -r, "reach %s", s->title) : fd_take(&ours);
}
