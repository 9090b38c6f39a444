/*
 * secret.h - memory for what must not be found elsewhere: never swapped, in no core, and, where
 * that is asked for, not in a forked child. Value or -errno.
 */
#pragma once

#include "base/base.h"

/* Whole pages, zero. -ENOMEM or -EPERM when they cannot be locked (RLIMIT_MEMLOCK). */
int os_secret_map(size_t n, bool is_wiped_on_fork, void **out);
/* Overwritten first. NULL is fine. */
void os_secret_unmap(void *at, size_t n);
/* A key of the kernel's keyrings, of type "user", by its description: its bytes; -ENOKEY. */
int os_keyring_read(const char *description, void *buf, size_t size);
