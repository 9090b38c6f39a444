/*
 * helper.h - a program of ours that the launcher starts: found beside it, with one channel to it
 * at descriptor 3 and what else it needs from 4 on, and nothing else.
 */
#pragma once

#include <sys/types.h>

#include "engine/cgroup.h"

#define HELPER_FDS_MAX 8

struct helper {
	const char *name;
	/* Root mode: it keeps root's rights, or it gets this id and none. */
	bool is_root, keeps_rights;
	uid_t id;
	bool is_to_follow;           /* dies with the launcher */
	const struct cgroup *cgroup; /* that the launcher lives in, and it does not; or NULL */
	int fds[HELPER_FDS_MAX];     /* borrowed: 4, 5, ... for it */
	size_t n_fds;
};

/* Returns the launcher's end of the channel, SOCK_SEQPACKET and not blocking. */
int helper_start(const struct helper *h, pid_t *pid, struct err *e) MUST_USE;
