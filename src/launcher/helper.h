/*
 * helper.h - a program of ours that the launcher starts: found beside it, with the descriptors that
 * it needs from 3 on and nothing else.
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
	char *const *args;           /* behind its name, NULL-terminated; NULL: none */
	int fds[HELPER_FDS_MAX];     /* borrowed: 3, 4, ... for it; -1: not there */
	size_t n_fds;
	bool tells_reason; /* with a channel: helper_reason() will be asked, not the log */
};

int helper_run(const struct helper *h, pid_t *pid, struct err *e) MUST_USE;
/* With a channel: 3 is its end of it, `fds` come behind that. Returns the launcher's end,
 * SOCK_SEQPACKET and not blocking. */
int helper_start(const struct helper *h, pid_t *pid, struct err *e) MUST_USE;

/* Why a program of helper_start() never ran, if its channel says so. To be asked only of one that
 * has ended, and that sends nothing by itself. Does not block. */
#define HELPER_REASON_MAX 512
bool helper_reason(int channel_fd, char text[HELPER_REASON_MAX]);
