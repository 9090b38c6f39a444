/*
 * node.h - names, attributes, contents and extended attributes of files. Value or -errno.
 */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/base.h"

struct os_names {
	int from_fd;
	const char *from;
	int to_fd;
	const char *to;
};
int os_renameat2(struct os_names names, unsigned int flags); /* RENAME_NOREPLACE, _EXCHANGE */
int os_linkat(struct os_names names);
int os_mknodat(int dirfd, const char *name, mode_t mode, dev_t dev);
int os_fchmod(int fd, mode_t mode);
int os_fchmodat(int dirfd, const char *name, mode_t mode); /* never of a link */
int os_fchown(int fd, uid_t uid, gid_t gid);
int os_utimens(int dirfd, const char *name, struct timespec mtime); /* not through a link */

/* Interrupted calls are made again. */
ssize_t os_read(int fd, void *buf, size_t n);
int64_t os_seek_data(int fd, int64_t at); /* -ENXIO: none behind it */
/* Entries of an open directory, as getdents64(2) writes them. */
int os_getdents(int fd, void *buf, size_t n);

int os_start_writing(int fd); /* what the file has goes to the disk; does not wait for it */
int os_write_out(int fd);     /* all that is dirty now; the next store sets the file's times */
int os_syncfs(int fd);
int os_fsync(int fd);

/* Nobody has the file open for writing, or mapped so. 0, or -EAGAIN: somebody has. */
int os_nobody_writes(int fd);

/* Of what is open; a link itself has no attributes of users. */
int os_listxattr(int fd, char *names, size_t size);
ssize_t os_getxattr(int fd, const char *name, void *value, size_t size);
int os_setxattr(int fd, const char *name, const void *value, size_t n);
int os_removexattr(int fd, const char *name);
