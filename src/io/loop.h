/*
 * loop.h - one thread, level-triggered epoll; signals, children and time are descriptors.
 *
 * A watch is embedded in its owner, who closes the descriptor after loop_remove(). A watch may
 * be removed, and its owner freed, from within any callback.
 */
#pragma once

#include <sys/epoll.h>

#include "base/base.h"

#define LOOP_BATCH 32

struct watch {
	int fd; /* borrowed */
	void (*ready)(struct watch *w, uint32_t events);
};

struct loop {
	int epoll_fd;
	struct epoll_event events[LOOP_BATCH];
	int n_events;
	bool is_done;
	bool has_pulse;
};

int loop_init(struct loop *l); /* 0 or -errno */
/* For a process that reads from, or closes, sockets of peers that it does not trust: no callback
 * sleeps longer than OS_PULSE_MS because of what they sent along (os/pulse.h). 0 or -errno. */
int loop_pulse(struct loop *l);
void loop_close(struct loop *l);
int loop_add(struct loop *l, struct watch *w, uint32_t events);
int loop_change(struct loop *l, struct watch *w, uint32_t events);
void loop_remove(struct loop *l, struct watch *w); /* fine when it was not added */
int loop_run(struct loop *l);                      /* until is_done */
