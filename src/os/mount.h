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
/* The file system of an open mount itself, for all who have it: -EBUSY while somebody writes. */
int os_set_read_only(int mount_fd, bool is_read_only);
int os_fspick(int mount_fd); /* the file system of an open mount, to be reconfigured */
/* Makes a read-only file system look up names anew that are not open at the moment. */
int os_fs_forget_names(int fs_fd);
int os_fsmount(int fs_fd, unsigned int attrs); /* MOUNT_ATTR_*; a detached mount */

/* mount(2) with a text of options: overlay, whose layers are named relative to the cwd. Flags:
 * MS_* of <sys/mount.h>. */
int os_mount(const char *type, const char *path, unsigned long flags, const char *options);
int os_umount(const char *path); /* -EBUSY while it is used */
int os_umount_lazy(const char *path);

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
