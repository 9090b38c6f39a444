/*
 * master.h - the gate's first process: it forks a child for each socket that it is sent.
 */
#pragma once

#include "base/err.h"

struct master_opts {
	int launcher_fd; /* its end of a SOCK_SEQPACKET pair; every packet brings one socket */
	int cache_fd;    /* inherited by all children: the way to the package cache; or -1 */
	int key_fd;      /* what secrets are sealed to is read there (gate/safe.h); or -1 */
};

/* 0 when the launcher has hung up; the children end with it. */
int master_run(const struct master_opts *o, struct err *e) MUST_USE;
