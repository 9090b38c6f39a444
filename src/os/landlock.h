/*
 * landlock.h - rules and scopes of Landlock. Value or -errno.
 */
#pragma once

#include <linux/landlock.h>

#include "base/base.h"

int os_landlock_abi(void);                 /* 1 and up; -EOPNOTSUPP or -ENOSYS without it */
uint64_t os_landlock_all(int abi);         /* every right of that version */
#define OS_LANDLOCK_IOCTL_DEV (1ull << 15) /* Linux 6.10 */
#define OS_LANDLOCK_SCOPES 3ull            /* abstract unix sockets and signals; Linux 6.12 */
int os_landlock_ruleset(uint64_t handled_fs, uint64_t scoped); /* scoped: 0 before ABI 6 */
int os_landlock_allow(int ruleset_fd, int dir_fd, uint64_t access);
int os_landlock_restrict(int ruleset_fd);
