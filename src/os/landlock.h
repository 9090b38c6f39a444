/*
 * landlock.h - the file system rules of Landlock. Value or -errno.
 */
#pragma once

#include <linux/landlock.h>

#include "base/base.h"

int os_landlock_abi(void);         /* 1 and up; -EOPNOTSUPP or -ENOSYS without it */
uint64_t os_landlock_all(int abi); /* every right of that version */
int os_landlock_ruleset(uint64_t handled_fs);
int os_landlock_allow(int ruleset_fd, int dir_fd, uint64_t access);
int os_landlock_restrict(int ruleset_fd);
