/*
 * lookup.h - addresses of names upstream: c-ares in our loop, never blocking.
 *
 * Names are asked for as they are (no search domains); /etc/hosts counts. An answer is kept for as
 * long as its sender says, at most a minute, so that many connections are one question; whoever
 * dials checks its addresses each time.
 */
#pragma once

#include "io/timer.h"
#include "spec/rules.h"

#define LOOKUP_ADDRS_MAX 16

/* In the order in which they are to be tried: IPv6 and IPv4 by turns. Ports are 0. */
struct lookup_answer {
	struct rules_addr at[LOOKUP_ADDRS_MAX];
	size_t n;
};

struct lookup_wait {
	struct lookup_wait *next, **link;
	void (*done)(struct lookup_wait *w, const struct lookup_answer *a); /* n 0: no address */
};

struct lookups {
	struct loop *loop;
	struct timers *timers;
	struct ares_channeldata *channel;
	struct timer tick;
	struct lookup_name *names;
	struct lookup_socket *sockets;
	size_t n_names;
	int64_t conf[3]; /* which resolv.conf it was */
	uint64_t conf_ms;
};

int lookups_init(struct lookups *ls, struct loop *l, struct timers *t); /* 0 or -1 */
void lookups_done(struct lookups *ls);
/* True: *a is the answer. False: done() is called later. */
bool lookup(struct lookups *ls, const char *name, struct lookup_wait *w, struct lookup_answer *a);
void lookup_leave(struct lookup_wait *w); /* fine when it does not wait */
