#include "launcher/gates.h"

#include <sys/socket.h>

#include "base/fd.h"
#include "launcher/helper.h"
#include "launcher/sealkey.h"
#include "os/sock.h"

#define BACKOFF_MS_MIN 50
#define BACKOFF_MS_MAX 2000
#define STEADY_MS 2000 /* who lived that long starts again at once */

static int start(struct gates *g, uint64_t now_ms, struct err *e)
{
	static char option[] = "--ca";
	bool has_key = g->state_fd >= 0;
	AUTO(fd_close) int key = has_key ? sealkey_open(g->state_fd, g->key_source, e) : -1;
	char *const args[] = { option, (char *)(uintptr_t)g->ca, NULL };
	const struct helper gate = { .name = "caisson-gate",
		                     .is_root = g->is_root,
		                     .id = g->id,
		                     .is_to_follow = true,
		                     .cgroup = g->cgroup,
		                     .args = g->ca ? args : NULL,
		                     .fds = { g->cache_fd, key },
		                     .n_fds = 2,
		                     .tells_reason = true };
	if (has_key && key < 0)
		return -1;
	int fd = helper_start(&gate, &g->pid, e);

	if (fd < 0)
		return -1;
	g->channel_fd = fd;
	g->reason[0] = '\0';
	g->started_ms = now_ms;
	return 0;
}

/* Whoever comes too early is told when to come again. */
static void plan_again(struct gates *g, uint64_t now_ms)
{
	bool was_steady = now_ms - g->started_ms >= STEADY_MS;

	(void)helper_reason(g->channel_fd, g->reason);
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
	fprintf(stderr, "caisson-launcher: the gate is gone%s%s; again when it is asked for\n",
	        *g->reason ? ": " : "", g->reason);
}

static int check_running(struct gates *g, uint64_t now_ms, struct err *e)
{
	if (g->channel_fd >= 0)
		return 0;
	if (now_ms < g->again_ms && *g->reason)
		return err_new(e, ERR_INTERNAL, "the gate: %s", g->reason);
	if (now_ms < g->again_ms)
		return err_new(e, ERR_INTERNAL,
		               "start the gate: the gate ended right after its start; see the "
		               "launcher's log");
	return start(g, now_ms, e);
}

int gates_ask(struct gates *g, uint64_t now_ms, struct err *e)
{
	const char byte = 0;
	int fds[2];
	int r = os_socketpair(fds, SOCK_SEQPACKET);

	if (r < 0)
		return err_sys(e, -r, "socketpair");
	AUTO(fd_close) int ours = fds[0];
	AUTO(fd_close) int theirs = fds[1];

	/* A gate that has ended unnoticed hangs up; another takes its place. Every other error is
	 * the launcher's own and says nothing about the gate. */
	for (int tries = 0; tries < 2; tries++) {
		if (check_running(g, now_ms, e) < 0)
			return -1;
		r = os_send(g->channel_fd, &byte, 1, &theirs, 1);
		if (r >= 0)
			return fd_take(&ours);
		if (r != -EPIPE && r != -ECONNRESET)
			break;
		plan_again(g, now_ms);
	}
	return err_sys(e, -r, "reach the gate");
}

void gates_done(struct gates *g)
{
	fd_close(&g->channel_fd);
}
