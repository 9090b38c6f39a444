/*
 * advice.h - what to type when the host is not as it has to be.
 *
 * One table for the errors that people meet first and for `caisson doctor`: whoever reads the
 * same trouble in either reads the same way out.
 */
#pragma once

#include "base/err.h"

enum advice {
	ADVICE_NONE,
	/* of the host: engine/hostcheck.h knows which */
	ADVICE_DOCTOR,
	ADVICE_KERNEL,
	ADVICE_LINUX_62,
	ADVICE_LINUX_66,
	ADVICE_LSM,
	ADVICE_USERNS_CONFIG,
	ADVICE_USERNS_COUNT,
	ADVICE_UNCONFINED,
	ADVICE_OVERLAY_MODULE,
	ADVICE_OVERLAY_KERNEL,
	ADVICE_PROC,
	ADVICE_NO_NESTING,
	ADVICE_SECCOMP,
	ADVICE_NET_ADMIN,
	ADVICE_NFT,
	ADVICE_MAPPED_USR,
	ADVICE_MAPPED_STATE,
	ADVICE_LOOP_MODULES,
	ADVICE_LOOP,
	ADVICE_CGROUP_WRITE,
	ADVICE_CGROUP_V1,
	ADVICE_CGROUP_SCOPE,
	ADVICE_CGROUP_DELEGATE,
	/* of the daemon and its clients */
	ADVICE_SOCKET_DENIED,
	ADVICE_NO_DAEMON,
	ADVICE_NO_SERVER,
	ADVICE_RUNS_ALREADY,
	ADVICE_STATE_TAKEN,
	ADVICE_PORT_TAKEN,
	ADVICE_PORT_LOW,
	ADVICE_NO_ADDRESS,
	ADVICE_PROGRAMS,
	ADVICE_DISK_FULL,
	ADVICE_FILTERS,
	ADVICES
};

const char *advice(enum advice a); /* static; NULL for ADVICE_NONE */

/* Adds it to the message, as a part of the sentence. Returns -1, as all that fill an error. */
int err_advise(struct err *e, enum advice a);
