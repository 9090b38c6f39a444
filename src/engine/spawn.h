/*
 * spawn.h - how the monitor starts pid 1 and commands. Called in the monitor only.
 *
 * One command, the final: pid 1 builds the walls while the command's process is already made and
 * waits for it; the two meet at `walls_fd`. Kept: a keeper meets pid 1 instead, makes the cgroup
 * namespace and ends; every command finds the walls standing.
 */
#pragma once

#include "engine/box.h"
#include "engine/netns.h"

/* A kernel that does not let a step end must not keep a client waiting: less than what the daemon
 * waits for a sandbox, so that the step is named. */
#define SPAWN_MS 20000
int spawn_start_ms(void); /* that, unless a test says otherwise */

struct spawn_init {
	pid_t pid;
	int pidfd;
	struct launch_progress *progress;
	int report_fd;                /* brings a struct err when the walls stand, or why not */
	int entered_fd;               /* for the first process: it has entered */
	int walls_fd;                 /* a byte when they stand; -1 once that was seen */
	int go_fd;                    /* lets it become caisson-init; -1 once that was said */
	int cgroup_ns_fd;             /* kept: of the keeper; else -1 */
	int door_fd;                  /* kept: self.sock, listening; else -1 */
	int rules_fd;                 /* kept: Landlock's; else -1 */
	int scratch_fd;               /* the tmpfs that everything writable lies in, to look at */
	int net_fds[NET_SOCKETS];     /* with a network: of the gate; else -1 */
	int live_fds[FS_ENTRIES_MAX]; /* overlays of folders that the host may change */
	size_t n_live;
	int trust_fd;    /* with a network, until it is mounted: engine/trust.h; else -1 */
	uint32_t proved; /* walls of all its commands: engine/proof.h */
	uint32_t known;  /* those that its last command has proved besides; UINT32_MAX: none yet */
	bool is_entered; /* our children are born in its pid namespace */
	bool is_init;    /* it is caisson-init: commands can enter */
};

/* Clones pid 1 into new namespaces and writes its id maps. It goes on by itself. */
int spawn_init(const struct box *box, struct spawn_init *out, struct err *e) MUST_USE;
/* Kept: the first process of the cgroup. Waits for its gift. */
int spawn_keeper(const struct box *box, struct spawn_init *init, struct err *e) MUST_USE;
/* Waits for its word. */
int spawn_await_walls(struct spawn_init *init, struct err *e) MUST_USE;
/* What the host has changed in folders that are shown inside appears there from now on. */
void spawn_follow_host(const struct spawn_init *init);
/* The builder's last step, once the first command is on its way: a short one need not wait for it,
 * and a very short one does without. Until then it sleeps. */
int spawn_become_init(struct spawn_init *init); /* 0 or -errno */
/* Waits until it is: nobody can enter by the builder any more. */
int spawn_await_init(struct spawn_init *init, struct err *e) MUST_USE;
bool spawn_init_error(const struct spawn_init *init,
                      struct err *e); /* why it died, if it said so */

/* Starts a command inside. Exit codes come from waiting for `pid`, which is a child of the caller.
 * Borrowed descriptors in `io`. */
struct spawn_command {
	pid_t pid;       /* 0: not known yet */
	int listener_fd; /* exec notification; -1 in a test build without it */
	int pty_fd;      /* -1 without a pty */
	int report_fd;   /* ends when the command executes, or brings a struct err */
	pid_t helper;    /* rootless: to be waited for, which spawn_hear() does */
	int gifts;       /* descriptors that have come */
	uint32_t proved; /* its own walls: engine/proof.h */
	uint32_t word;   /* of these, what it has said itself */
	bool is_proved;  /* it has */
};
int spawn_command(const struct box *box, const struct spawn_init *init, const struct command *c,
                  struct payload_io io, struct spawn_command *out, struct err *e) MUST_USE;

/* In a helper or a nursery: clones the command as a child of the monitor, in its cgroup. */
int spawn_born(const struct box *box, struct payload_io *io); /* a pid, 0 in the child, or -errno */

/* The next thing that its process says. Never waits. */
enum spawn_word {
	SPAWN_SILENT, /* nothing for now */
	SPAWN_WORD,   /* `c` knows more than before: the pid, a descriptor */
	SPAWN_RUNS,   /* it executes, or is dead: waiting for it tells */
	SPAWN_FAILED  /* *e has why */
};
enum spawn_word spawn_hear(struct spawn_command *c, struct err *e);
