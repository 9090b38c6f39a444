/*
 * proof.h - the launch proof: each wall is tried once it stands. Any surprise refuses the start.
 *
 * A check asks for something that its wall alone refuses, or looks at a fact that its wall alone
 * makes: with that wall left out and all others standing, the check fails. The four parts run
 * where the wall can be seen:
 *   pid 1              its cgroup, and the file system that it has built, once per sandbox
 *   monitor            the limits of the cgroup, once per sandbox
 *   command's process  its cgroup, before it loses sight of the host
 *   command's process  everything else, after the last wall and before its first instruction
 * tests/api/proof.py leaves out every wall in turn and sees the launch refused.
 */
#pragma once

#include <sys/types.h>

#include "base/err.h"

struct box;
struct build;
struct command;

/* The names are those of CAISSON_LAYER_OFF, and an error of the proof begins with one. */
enum wall {
	WALL_USERNS,
	WALL_MOUNTNS,
	WALL_PIDNS,
	WALL_NETNS,
	WALL_IPCNS,
	WALL_UTSNS,
	WALL_CGROUPNS,
	WALL_ROOT,
	WALL_READ_ONLY,
	WALL_NODEV,
	WALL_DISK,
	WALL_PROC_READ_ONLY,
	WALL_MASKS,
	WALL_HIDEPID,
	WALL_NESTED,
	WALL_NETWALLS,
	WALL_CGROUP,
	WALL_INIT_CGROUP,
	WALL_LIMITS,
	WALL_IDS,
	WALL_CAPS,
	WALL_SECUREBITS,
	WALL_NO_NEW_PRIVS,
	WALL_RLIMITS,
	WALL_DESCRIPTORS,
	WALL_SECCOMP,
	WALL_NOTIFY,
	WALL_LANDLOCK,
	WALL_COUNT
};
#define WALL_BIT(wall) (1u << (wall))
#define WALLS_ALL (WALL_BIT(WALL_COUNT) - 1)

const char *wall_name(enum wall w);

/* Pid 1 and the command's process send it to the monitor, over their report sockets. */
struct proof_word {
	uint32_t proved, zero;
};

/* What a sandbox must not have in common with the launcher. */
#define PROOF_NAMESPACES 7
struct proof_host {
	dev_t root_dev;
	ino_t root_ino;
	ino_t namespaces[PROOF_NAMESPACES]; /* by enum wall, WALL_USERNS first */
};
int proof_look_at_host(struct proof_host *out, struct err *e) MUST_USE;

/* Each adds the walls that it has proved to *proved. */

/* In pid 1, after the change of the root and without rights. */
int proof_tree(const struct build *b, uint32_t *proved, struct err *e) MUST_USE;
/* In the monitor, when the cgroup is ready. */
int proof_limits(const struct box *box, uint32_t *proved, struct err *e) MUST_USE;
/* In the command's process and in pid 1, which still see the host's /proc; `w` is the wall of whose
 * it is. */
int proof_cgroup(const struct box *box, enum wall w, uint32_t *proved, struct err *e) MUST_USE;
/* In the command's process, inside. `n_fds`: how many descriptors are open, from 0 on. */
struct proof_at {
	const struct box *box;
	const struct command *command;
	int n_fds;
};
int proof_run(const struct proof_at *at, uint32_t *proved, struct err *e) MUST_USE;
