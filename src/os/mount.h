/*
 * mount.h - mounts by descriptor: the API of Linux 5.2 and later. Value or -errno.
 */
#pragma once

#include <linux/mount.h>

#include "base/base.h"

int os_fsopen(const char *type);
int os_fsconfig_text(int fs_fd, const char *key, const char *value);
int os_fsconfig_flag(int fs_fd, const char *key);
int os_fsconfig_create(int fs_fd);
int os_fsmount(int fs_fd, unsigned int attrs); /* MOUNT_ATTR_*; a detached mount */

/* A detached clone of the mount at dirfd/path; `recursive` takes what is mounted below along. */
int os_open_tree(int dirfd, const char *path, bool recursive);
int os_move_mount(int tree_fd, int dirfd, const char *path);
/* Sets attributes; and no mount or unmount on the other side shows in it any more. */
int os_mount_setattr(int fd, uint64_t set, bool recursive);
int os_mount_idmap(int tree_fd, int userns_fd);
int os_bind(const char *from, const char *to);     /* what is mounted below `from` stays there */
int os_mount_private(int dirfd, const char *path); /* recursively */
int os_pivot_root_here(void); /* the cwd becomes the root; the old one lies on top of it */
int os_detach_here(void);     /* the topmost mount on the cwd, with all that is mounted in it */
