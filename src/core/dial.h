/*
 * dial.h - a connection to a port inside a sandbox. A worker behind the walls makes it and carries
 * its bytes (wire/tree.h, TREE_DIAL); here is one end of a pair that this process made itself. No
 * descriptor ever comes from inside.
 */
#pragma once

#include "core/files.h"

#define DIAL_MS 5000 /* for a port to take the connection */

struct dial {
	struct job job; /* first */
	struct core *core;
	int fd; /* our end; never read before is_connected. MSG_DONTWAIT only */
	/* Something of what follows has changed; may call dial_end(). */
	void (*changed)(struct dial *d);
	void *owner;
	struct fail fail;   /* why there is no connection */
	bool is_connected;  /* fd may be used */
	bool is_far_closed; /* the application closed its side, and all it wrote is in fd */
	bool is_over; /* the worker has done with it: no connection, both closed, or a reset */
	bool is_left; /* nobody is told any more */
	struct timer deadline; /* for a worker to see that we have left */
};

/* NULL and the reason, when the sandbox does not run or the port is not one; else it is told
 * by `changed`, later. */
struct dial *dial_start(struct sbx *s, uint16_t port, uint32_t time_ms, struct fail *f) MUST_USE;
/* Hangs up. */
void dial_end(struct dial *d);
