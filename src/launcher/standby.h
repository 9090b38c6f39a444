/*
 * standby.h - a program of ours that is started when somebody wants something of it: the package
 * cache, caisson-cache, the writer of the ledger, caisson-ledger, and the sender of webhooks,
 * caisson-hook. One process of each.
 *
 * Pairs of sockets live as long as the launcher: by the first come sockets of who asks, by the
 * second, of the cache, streams of the gate's children, which have the near end of it. While the
 * program does not run, the far ends are watched here: what comes starts it, and waits in the
 * socket until it reads. So nothing is lost when it dies. It finds them as descriptors 3 and up,
 * and its folder behind them.
 */
#pragma once

#include <sys/types.h>

#include "engine/cgroup.h"
#include "io/loop.h"

#define STANDBY_PAIRS_MAX 2

enum { STANDBY_ASK, STANDBY_GATE };

struct standby {
	const char *program, *folder; /* below the state's */
	const char *title;            /* for the operator */
	int socket_type;              /* of who asks */
	size_t n_pairs;
	bool outlives; /* it ends when it hears that the launcher is gone, and not before */
	bool is_root;  /* root mode: it gets an id of its own */
	uid_t id;
	const struct cgroup *cgroup; /* that the launcher lives in, and it does not; or NULL */
	int state_fd;                /* of the folder that its own lies in */
	char *const *args;           /* for it, NULL-terminated; or NULL */
	const char *key;             /* a file that it gets behind its folder, open; or NULL */
	struct loop *loop;
	pid_t pid; /* 0: not running */
	struct standby_pair {
		struct watch far; /* first */
		struct standby *owner;
		int near_fd;
	} pairs[STANDBY_PAIRS_MAX];
	uint64_t started_ms, again_ms; /* again_ms 0: when something comes */
	unsigned int backoff_ms;
};

void standby_init(struct standby *s); /* nothing is open: standby_done() may be called */
int standby_open(struct standby *s, struct err *e) MUST_USE;
void standby_done(struct standby *s);
void standby_ended(struct standby *s, uint64_t now_ms); /* it was waited for */
void standby_tick(struct standby *s, uint64_t now_ms);
uint64_t standby_due(const struct standby *s); /* UINT64_MAX: never */
/* A socket whose other end it gets. */
int standby_ask(struct standby *s, struct err *e) MUST_USE;
