/*
 * extent.h - parts of a file by their position. Value or -errno.
 *
 * fault.h does not fail these but the first and the last: they carry what a command writes, which
 * is no step of a launch. tests/unit/test_io_log.c fails them by the limit of a file's size.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

int os_memfd(const char *name);
int os_memfd_sealable(const char *name);
int os_seal(int fd); /* for good: nobody can write it, or change its size */
/* All bytes or -errno; what was written before an error stays. */
int os_pwrite2(int fd, const void *head, size_t n_head, const void *bytes, size_t n, off_t at);
/* How many came: fewer than asked for only at the end of the file. */
int os_pread(int fd, void *buf, size_t n, off_t at);
int os_punch(int fd, off_t at, off_t len); /* reads as zeros, takes no room */
int os_ftruncate(int fd, off_t size);
/* Shared, for reading and writing; until munmap(2). */
int os_map_shared(int fd, size_t size, void **out);
