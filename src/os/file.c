#include "os/file.h"

#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/ret.h"

int os_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	OS_FAULT("openat");
	for (;;) {
		int fd = openat(dirfd, path, flags | O_CLOEXEC, mode);

		if (fd >= 0 || errno != EINTR)
			return os_ret(fd);
	}
}

int os_openat2(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned int)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = resolve,
	};

	OS_FAULT("openat2");
	return os_ret(syscall(SYS_openat2, dirfd, path, &how, sizeof how));
}

int os_mkdirat(int dirfd, const char *path, mode_t mode)
{
	OS_FAULT("mkdirat");
	return os_ret(mkdirat(dirfd, path, mode));
}

int os_rmdirat(int dirfd, const char *path)
{
	OS_FAULT("rmdirat");
	return os_ret(unlinkat(dirfd, path, AT_REMOVEDIR));
}

int os_unlinkat(int dirfd, const char *path)
{
	OS_FAULT("unlinkat");
	return os_ret(unlinkat(dirfd, path, 0));
}

int os_rename(const char *from, const char *to)
{
	OS_FAULT("rename");
	return os_ret(rename(from, to));
}

int os_rename_in(int dirfd, const char *from, const char *to)
{
	OS_FAULT("rename");
	return os_ret(renameat(dirfd, from, dirfd, to));
}

int os_sync(int fd)
{
	OS_FAULT("fdatasync");
	return os_ret(fdatasync(fd));
}

int os_room(int fd, uint64_t *left, uint64_t *all)
{
	struct statfs sf;

	OS_FAULT("statfs");
	if (fstatfs(fd, &sf) < 0)
		return -errno;
	*left = (uint64_t)sf.f_bavail * (uint64_t)sf.f_bsize;
	*all = (uint64_t)sf.f_blocks * (uint64_t)sf.f_bsize;
	return 0;
}

int os_symlinkat(const char *text, int dirfd, const char *path)
{
	OS_FAULT("symlinkat");
	return os_ret(symlinkat(text, dirfd, path));
}

int os_readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	OS_FAULT("readlinkat");
	ssize_t n = readlinkat(dirfd, path, buf, size);

	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	buf[n] = '\0';
	return (int)n;
}

int os_fchownat(int dirfd, const char *path, uid_t uid, gid_t gid)
{
	OS_FAULT("fchownat");
	return os_ret(fchownat(dirfd, path, uid, gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
}

int os_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	OS_FAULT("fstatat");
	return os_ret(fstatat(dirfd, path, st, flags));
}

int os_fstatfs(int fd, struct statfs *out)
{
	OS_FAULT("fstatfs");
	return os_ret(fstatfs(fd, out));
}

int os_statfs_type(int fd, const char *path, int64_t *type)
{
	struct statfs sf;

	OS_FAULT("statfs");
	int r = os_ret(path ? statfs(path, &sf) : fstatfs(fd, &sf));
	if (r == 0)
		*type = (int64_t)sf.f_type;
	return r;
}

int os_is_read_only(int fd)
{
	struct statvfs sv;

	OS_FAULT("statvfs");
	int r = os_ret(fstatvfs(fd, &sv));
	return r < 0 ? r : (sv.f_flag & ST_RDONLY) != 0;
}

int os_fchdir(int fd)
{
	OS_FAULT("fchdir");
	return os_ret(fchdir(fd));
}

int os_chdir(const char *path)
{
	OS_FAULT("chdir");
	return os_ret(chdir(path));
}

int os_pipe(int fds[2], int flags)
{
	OS_FAULT("pipe2");
	return os_ret(pipe2(fds, flags | O_CLOEXEC));
}

int os_pipe_size(int fd, size_t bytes)
{
	OS_FAULT("fcntl");
	return os_ret(fcntl(fd, F_SETPIPE_SZ, (int)bytes));
}

int os_dup3(int fd, int to, int flags)
{
	OS_FAULT("dup3");
	return os_ret(dup3(fd, to, flags));
}

int os_close_range(unsigned int first, unsigned int last, unsigned int flags)
{
	OS_FAULT("close_range");
	return os_ret(syscall(SYS_close_range, first, last, flags));
}

static int byte_lock(int fd, short type, off_t byte)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return os_ret(fcntl(fd, F_OFD_SETLK, &lock));
}

int os_lock_byte(int fd, off_t byte)
{
	OS_FAULT("fcntl");
	int r = byte_lock(fd, F_WRLCK, byte);
	return r == -EACCES ? -EAGAIN : r;
}

int os_unlock_byte(int fd, off_t byte)
{
	OS_FAULT("fcntl");
	return byte_lock(fd, F_UNLCK, byte);
}

int os_any_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET }; /* every byte */

	OS_FAULT("fcntl");
	int r = os_ret(fcntl(fd, F_OFD_GETLK, &lock));
	return r < 0 ? r : lock.l_type != F_UNLCK;
}

int os_write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	OS_FAULT("write");
	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

int os_write_file(int dirfd, const char *path, const char *text)
{
	AUTO(fd_close) int fd = os_openat(dirfd, path, O_WRONLY, 0);

	return fd < 0 ? fd : os_write_all(fd, text, strlen(text));
}

int os_random(void *bytes, size_t n)
{
	OS_FAULT("getrandom");
	ssize_t got = getrandom(bytes, n, 0);

	return got < 0 ? -errno : got == (ssize_t)n ? 0 : -EIO;
}

int os_make_file(int dirfd, const char *path, const void *bytes, size_t n, mode_t mode)
{
	AUTO(fd_close)
	int fd = os_openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);

	return fd < 0 || n == 0 ? (fd < 0 ? fd : 0) : os_write_all(fd, bytes, n);
}

int os_read_file(int dirfd, const char *path, char *buf, size_t size)
{
	AUTO(fd_close) int fd = os_openat(dirfd, path, O_RDONLY, 0);
	size_t len = 0;

	if (fd < 0)
		return fd;
	OS_FAULT("read");
	while (len < size - 1) {
		ssize_t n = read(fd, buf + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return (int)len;
}
