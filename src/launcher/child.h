/*
 * child.h - what every forked child of the launcher does first.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

/* Closes all descriptors but these; -1 stands for none. Sorts `keep`. 0 or -errno. */
int child_keep(int *keep, size_t n);

#define CHILD_FIRST_FD 3
/* What a program finds at its start: fds[i] becomes descriptor 3 + i and survives execve; -1 stands
 * for none. Others at these numbers are closed. 0 or -errno. */
int child_place(const int *fds, size_t n);

/* For a program without rights: signals as new, a session of its own, and in root mode this id and
 * no capability; no_new_privs. 0 or -errno. */
int child_give_up(bool is_root, uid_t id);
