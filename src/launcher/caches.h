/*
 * caches.h - the package cache, caisson-cache: one process for all sandboxes, started when somebody
 * wants something of it.
 *
 * Two pairs of sockets live as long as the launcher: one for streams of the gate's children, which
 * have the near end of it, one for streams of who asks about the cache. While the cache does not
 * run, its ends are watched here: what comes starts it, and waits in the socket until it reads. So
 * nothing is lost when it dies. It finds them as descriptors 4 and 3, and its folder as 5.
 */
#pragma once

#include <sys/types.h>

#include "engine/cgroup.h"
#include "io/loop.h"

struct caches {
	bool is_root; /* root mode: it gets an id of its own */
	uid_t id;
	const struct cgroup *cgroup; /* that the launcher lives in, and it does not; or NULL */
	int state_fd;                /* of the folder that its own lies in */
	char *const *args;           /* for it, NULL-terminated; or NULL */
	struct loop *loop;
	pid_t pid;                     /* 0: not running */
	int gate_fd, ask_fd;           /* near ends; -1: not made */
	struct watch gate, ask;        /* far ends */
	uint64_t started_ms, again_ms; /* again_ms 0: when something comes */
	unsigned int backoff_ms;
};

int caches_open(struct caches *c, struct err *e) MUST_USE;
void caches_done(struct caches *c);
void caches_ended(struct caches *c, uint64_t now_ms); /* it was waited for */
void caches_tick(struct caches *c, uint64_t now_ms);
uint64_t caches_due(const struct caches *c); /* UINT64_MAX: never */
/* A stream whose other end it gets. */
int caches_ask(struct caches *c, struct err *e) MUST_USE;
