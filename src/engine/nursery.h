/*
 * nursery.h - the process that bears the commands of a kept sandbox. Called in the monitor only.
 *
 * Every command runs behind the same filter. A filter is a compiled program of the kernel, and one
 * for each command would be many (docs/decisions/0052-nursery.md). So one child of the monitor
 * enters the sandbox, loads it once, and bears each command by order, as a child of the monitor's.
 * It lives in the host's pid namespace: nothing inside sees, signals or traces it.
 */
#pragma once

#include "engine/spawn.h"

struct nursery {
	pid_t pid;    /* 0: none lives */
	int order_fd; /* SOCK_SEQPACKET */
};

/* Clones it and waits until it has loaded the filter, whose listener it gives. */
int nursery_start(const struct box *box, const struct spawn_init *init, struct nursery *out,
                  int *listener_fd, struct err *e) MUST_USE;
/* As spawn_command(); the pid comes by the report. Never waits. e->sys is EAGAIN when it has as
 * many orders as it can take, EPIPE or ECONNRESET when it is dead. */
int nursery_order(const struct nursery *n, const struct command *c, struct payload_io io,
                  struct spawn_command *out, struct err *e) MUST_USE;
void nursery_end(struct nursery *n);
