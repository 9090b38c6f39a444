#include "os/node.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "os/ret.h"

int os_renameat2(struct os_names names, unsigned int flags)
{
	OS_FAULT("renameat2");
	return os_ret(renameat2(names.from_fd, names.from, names.to_fd, names.to, flags));
}

int os_linkat(struct os_names names)
{
	OS_FAULT("linkat");
	return os_ret(linkat(names.from_fd, names.from, names.to_fd, names.to, 0));
}

int os_mknodat(int dirfd, const char *name, mode_t mode, dev_t dev)
{
	OS_FAULT("mknodat");
	return os_ret(mknodat(dirfd, name, mode, dev));
}

int os_fchmod(int fd, mode_t mode)
{
	OS_FAULT("fchmod");
	return os_ret(fchmod(fd, mode));
}

int os_fchmodat(int dirfd, const char *name, mode_t mode)
{
	OS_FAULT("fchmodat");
	return os_ret(fchmodat(dirfd, name, mode, 0));
}

int os_fchown(int fd, uid_t uid, gid_t gid)
{
	OS_FAULT("fchown");
	return os_ret(fchown(fd, uid, gid));
}

int os_utimens(int dirfd, const char *name, struct timespec mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime };

	OS_FAULT("utimensat");
	return os_ret(utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW));
}

ssize_t os_read(int fd, void *buf, size_t n)
{
	OS_FAULT("read");
	for (;;) {
		ssize_t r = read(fd, buf, n);

		if (r >= 0 || errno != EINTR)
			return r < 0 ? -errno : r;
	}
}

int64_t os_seek_data(int fd, int64_t at)
{
	OS_FAULT("lseek");
	off_t r = lseek(fd, at, SEEK_DATA);

	return r < 0 ? -errno : r;
}

int os_getdents(int fd, void *buf, size_t n)
{
	OS_FAULT("getdents64");
	return os_ret(getdents64(fd, buf, n));
}

int os_start_writing(int fd)
{
	OS_FAULT("sync_file_range");
	return os_ret(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
}

int os_write_out(int fd)
{
	OS_FAULT("sync_file_range");
	return os_ret(
	    sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE));
}

int os_syncfs(int fd)
{
	OS_FAULT("syncfs");
	return os_ret(syncfs(fd));
}

int os_fsync(int fd)
{
	OS_FAULT("fsync");
	return os_ret(fsync(fd));
}

/* A lease for reading is refused while an inode is open for writing, and a shared mapping keeps it
 * open (fcntl(2), F_SETLEASE). */
int os_nobody_writes(int fd)
{
	OS_FAULT("fcntl");
	int r = os_ret(fcntl(fd, F_SETLEASE, F_RDLCK));

	return r < 0 ? r : os_ret(fcntl(fd, F_SETLEASE, F_UNLCK));
}

int os_listxattr(int fd, char *names, size_t size)
{
	OS_FAULT("flistxattr");
	return os_ret(flistxattr(fd, names, size));
}

ssize_t os_getxattr(int fd, const char *name, void *value, size_t size)
{
	OS_FAULT("fgetxattr");
	ssize_t r = fgetxattr(fd, name, value, size);

	return r < 0 ? -errno : r;
}

int os_setxattr(int fd, const char *name, const void *value, size_t n)
{
	OS_FAULT("fsetxattr");
	return os_ret(fsetxattr(fd, name, value, n, 0));
}

int os_removexattr(int fd, const char *name)
{
	OS_FAULT("fremovexattr");
	return os_ret(fremovexattr(fd, name));
}
