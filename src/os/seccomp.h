/*
 * seccomp.h - load a filter, answer its notifications. Value or -errno.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "base/base.h"

/* Needs no_new_privs. With `listener` the return value is the notification descriptor. */
int os_seccomp_load(const struct sock_filter *code, size_t n, bool listener);
int os_seccomp_receive(int listener_fd, struct seccomp_notif *out);
int os_seccomp_valid(int listener_fd, uint64_t id); /* 0 while the caller still waits */
int os_seccomp_continue(int listener_fd, uint64_t id);
int os_seccomp_refuse(int listener_fd, uint64_t id, int error); /* the call fails with it */
