#include "os/mount.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/ret.h"

/* <sys/mount.h> and <linux/mount.h> of Debian 12 cannot be included together. */
#define UMOUNT_DETACH 2
#define UMOUNT_NOFOLLOW_FLAG 8
#define MOUNT_BIND (1ul << 12)    /* MS_BIND */
#define MOUNT_PRIVATE (1ul << 18) /* MS_PRIVATE */

int os_fsopen(const char *type)
{
	OS_FAULT("fsopen");
	return os_ret(syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
}

int os_fsconfig_text(int fs_fd, const char *key, const char *value)
{
	OS_FAULT("fsconfig");
	return os_ret(syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_STRING, key, value, 0));
}

int os_fsconfig_flag(int fs_fd, const char *key)
{
	OS_FAULT("fsconfig");
	return os_ret(syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_FLAG, key, NULL, 0));
}

int os_fsconfig_create(int fs_fd)
{
	OS_FAULT("fsconfig");
	return os_ret(syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}

int os_fspick(int mount_fd)
{
	OS_FAULT("fspick");
	return os_ret(syscall(SYS_fspick, mount_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));
}

static int reconfigure(int fs_fd, const char *flag)
{
	int r = os_fsconfig_flag(fs_fd, flag);

	return r < 0
	           ? r
	           : os_ret(syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0));
}

int os_set_read_only(int mount_fd, bool is_read_only)
{
	AUTO(fd_close) int fs = os_fspick(mount_fd);

	return fs < 0 ? fs : reconfigure(fs, is_read_only ? "ro" : "rw");
}

/* reconfigure_super() drops all cached names that nobody uses, whatever else it changes. */
int os_fs_forget_names(int fs_fd)
{
	return reconfigure(fs_fd, "ro");
}

int os_fsmount(int fs_fd, unsigned int attrs)
{
	OS_FAULT("fsmount");
	return os_ret(syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, attrs));
}

int os_mount(const char *type, const char *path, unsigned long flags, const char *options)
{
	OS_FAULT("mount");
	return os_ret(syscall(SYS_mount, type, path, type, flags, options));
}

int os_umount(const char *path)
{
	OS_FAULT("umount2");
	return os_ret(syscall(SYS_umount2, path, UMOUNT_NOFOLLOW_FLAG));
}

int os_umount_lazy(const char *path)
{
	OS_FAULT("umount2");
	return os_ret(syscall(SYS_umount2, path, UMOUNT_DETACH | UMOUNT_NOFOLLOW_FLAG));
}

int os_open_tree(int dirfd, const char *path, bool recursive)
{
	unsigned int flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
	                     AT_SYMLINK_NOFOLLOW | (recursive ? AT_RECURSIVE : 0);

	OS_FAULT("open_tree");
	return os_ret(syscall(SYS_open_tree, dirfd, path, flags));
}

int os_move_mount(int tree_fd, int dirfd, const char *path)
{
	unsigned int flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;

	OS_FAULT("move_mount");
	return os_ret(syscall(SYS_move_mount, tree_fd, "", dirfd, path, flags));
}

static int setattr(int fd, const char *path, unsigned int flags, struct mount_attr *attr)
{
	OS_FAULT("mount_setattr");
	return os_ret(syscall(SYS_mount_setattr, fd, path, flags, attr, sizeof *attr));
}

int os_mount_setattr(int fd, uint64_t set, bool recursive)
{
	struct mount_attr attr = { .attr_set = set, .propagation = MOUNT_PRIVATE };

	return setattr(fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attr);
}

int os_mount_idmap(int tree_fd, int userns_fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP,
		                   .userns_fd = (uint64_t)(unsigned int)userns_fd };

	return setattr(tree_fd, "", AT_EMPTY_PATH, &attr);
}

int os_bind(const char *from, const char *to)
{
	OS_FAULT("mount");
	return os_ret(syscall(SYS_mount, from, to, NULL, MOUNT_BIND, NULL));
}

int os_mount_private(int dirfd, const char *path)
{
	struct mount_attr attr = { .propagation = MOUNT_PRIVATE };

	return setattr(dirfd, path, AT_RECURSIVE, &attr);
}

int os_pivot_root_here(void)
{
	OS_FAULT("pivot_root");
	/* With both paths equal the old root is stacked on the new one, pivot_root(2), NOTES. */
	return os_ret(syscall(SYS_pivot_root, ".", "."));
}

int os_detach_here(void)
{
	OS_FAULT("umount2");
	return os_ret(syscall(SYS_umount2, ".", UMOUNT_DETACH));
}
