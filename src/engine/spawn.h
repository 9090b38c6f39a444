/*
 * spawn.h - how the monitor starts pid 1 and commands. Called in the monitor only.
 *
 * Pid 1 builds the walls while the first command's process is already made and waits for it:
 * the two meet at `walls_fd`. Later commands find the walls standing.
 */
#pragma once

#include "engine/box.h"

struct spawn_init {
	pid_t pid;
	int pidfd;
	int report_fd;   /* brings a struct err when the walls stand, or why not */
	int entered_fd;  /* for the first command: it is in the mount namespace */
	int walls_fd;    /* a byte when they stand; -1 once that was seen */
	int go_fd;       /* lets it become caisson-init; -1 once that was said */
	bool is_entered; /* our children are born in its pid namespace */
};

/* Clones pid 1 into new namespaces and writes its id maps. It goes on by itself. */
int spawn_init(const struct box *box, struct spawn_init *out, struct err *e) MUST_USE;
/* Waits for its word. */
int spawn_await_walls(struct spawn_init *init, struct err *e) MUST_USE;
/* The builder's last step, once the first command is on its way: a short one need not wait for it,
 * and a very short one does without. Until then it sleeps. */
int spawn_become_init(struct spawn_init *init); /* 0 or -errno */
bool spawn_init_error(const struct spawn_init *init,
                      struct err *e); /* why it died, if it said so */

/* Starts the plan's command inside. Exit codes come from waiting for `pid`, which is a child of
 * the caller. Borrowed descriptors in `io`. */
struct spawn_command {
	pid_t pid;
	int listener_fd; /* exec notification; -1 in a test build without it */
	int pty_fd;      /* -1 without a pty */
	int report_fd;   /* ends when the command executes, or brings a struct err */
	pid_t helper;    /* rootless: to be waited for by spawn_await_start() */
	int gifts;       /* descriptors that have come */
};
int spawn_command(const struct box *box, const struct spawn_init *init, struct payload_io io,
                  struct spawn_command *out, struct err *e) MUST_USE;
int spawn_await_start(const struct box *box, struct spawn_command *c, struct err *e) MUST_USE;
/* What it reported, if pid 1 gave up because it is gone. */
bool spawn_command_error(const struct spawn_command *c, struct err *e);
