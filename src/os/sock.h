/*
 * sock.h - socket pairs, descriptor passing, the loopback interface. Value or -errno.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

int os_socketpair(int fds[2], int type); /* AF_UNIX; SOCK_CLOEXEC is added */
int os_send(int fd, const void *bytes, size_t n, const int *fds, size_t n_fds);
/* Returns the length, 0 at the end. At most *n_fds descriptors are taken; *n_fds says how many
 * came. */
int os_recv(int fd, void *buf, size_t size, int *fds, size_t *n_fds);
int os_loopback_up(void);
