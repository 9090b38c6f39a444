/*
 * master.h - the gate's first process: it forks a child for each socket that it is sent.
 */
#pragma once

#include "base/err.h"

/* `cache_fd` is inherited by all children: the way to the package cache, or -1.
 * `fd` is the launcher's end of a SOCK_SEQPACKET pair; every packet brings one socket, whatever its
 * bytes. 0 when the launcher has hung up; the children end with it. */
int master_run(int fd, int cache_fd, struct err *e) MUST_USE;
