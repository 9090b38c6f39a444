/*
 * file.h - files and directories by descriptor. Value or -errno; O_CLOEXEC always.
 */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "base/base.h"

int os_openat(int dirfd, const char *path, int flags, mode_t mode);
/* `resolve` is RESOLVE_* of openat2(2). */
int os_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve);
int os_mkdirat(int dirfd, const char *path, mode_t mode); /* an existing entry is -EEXIST */
int os_rmdirat(int dirfd, const char *path);
int os_unlinkat(int dirfd, const char *path);
int os_rename(const char *from, const char *to);
int os_rename_in(int dirfd, const char *from, const char *to); /* within one folder */
int os_sync(int fd);                                           /* its bytes are on the disk */
int os_room(int fd, uint64_t *left, uint64_t *all); /* bytes, for whoever has no rights */
int os_symlinkat(const char *text, int dirfd, const char *path);
int os_readlinkat(int dirfd, const char *path, char *buf, size_t size); /* NUL-terminated */
int os_fchownat(int dirfd, const char *path, uid_t uid, gid_t gid);
int os_fstatat(int dirfd, const char *path, struct stat *st, int flags);
struct statfs;
int os_fstatfs(int fd, struct statfs *out);
int os_statfs_type(int fd, const char *path, int64_t *type); /* path NULL: of fd */
int os_is_read_only(int fd); /* the mount, or its file system: 1, else 0 */
int os_fchdir(int fd);
int os_chdir(const char *path);
int os_pipe(int fds[2], int flags);
int os_pipe_size(int fd, size_t bytes); /* at least; -EPERM beyond what a user may have */
int os_dup3(int fd, int to, int flags); /* flags 0: survives execve */
int os_close_range(unsigned int first, unsigned int last, unsigned int flags);
int os_lock_byte(int fd, off_t byte); /* open-file lock; -EAGAIN when another holds it */
int os_unlock_byte(int fd, off_t byte);
int os_any_locked(int fd); /* 1 when another holds a lock on any byte, else 0 */

/* One write(2) of `text` to an existing file: control files of /proc and cgroups. */
int os_write_file(int dirfd, const char *path, const char *text);
/* Creates `path` with these bytes. */
int os_random(void *bytes, size_t n); /* all of them: no more than 256 */
int os_make_file(int dirfd, const char *path, const void *bytes, size_t n, mode_t mode);
/* Reads at most size-1 bytes and terminates them; returns the length. */
int os_read_file(int dirfd, const char *path, char *buf, size_t size);
/* All bytes or -errno. */
int os_write_all(int fd, const void *bytes, size_t n);
