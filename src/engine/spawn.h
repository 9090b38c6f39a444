/*
 * spawn.h - how the monitor starts pid 1 and commands. Called in the monitor only.
 */
#pragma once

#include "engine/box.h"

/* Clones pid 1 into new namespaces, writes its id maps, waits until the walls stand. */
struct spawn_init {
	pid_t pid;
	int pidfd;
};
int spawn_init(const struct box *box, struct spawn_init *out, struct err *e) MUST_USE;

/* Starts the plan's command inside. Returns once it executes; exit codes come from waiting for
 * `pid`, which is a child of the caller. Borrowed descriptors in `io`. */
struct spawn_command {
	pid_t pid;
	int listener_fd; /* exec notification; -1 in a test build without it */
	int pty_fd;      /* -1 without a pty */
	int report_fd;   /* ends when the command executes, or brings a struct err */
};
int spawn_command(const struct box *box, int init_pidfd, struct payload_io io,
		  struct spawn_command *out, struct err *e) MUST_USE;
