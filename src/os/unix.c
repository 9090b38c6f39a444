#include "os/unix.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/un.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/ret.h"

/* By the descriptor of its folder: a path has room for 108 bytes only, and could be replaced. */
static int address_at(int dirfd, const char *name, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", dirfd, name);

	return n < 0 || (size_t)n >= sizeof out->sun_path ? -ENAMETOOLONG : 0;
}

int os_listen_at(int dirfd, const char *name, int type, mode_t mode)
{
	struct sockaddr_un address;
	int r = address_at(dirfd, name, &address);

	OS_FAULT("bind");
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	/* The file gets the mode of the socket's own inode (unix(7), bind). */
	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	mode_t mask = umask(0);
	r = os_ret(bind(fd, (struct sockaddr *)&address, sizeof address));
	umask(mask);
	if (r >= 0)
		r = os_ret(listen(fd, SOMAXCONN));
	return r < 0 ? r : fd_take(&fd);
}

int os_connect_at(int dirfd, const char *name, int type)
{
	struct sockaddr_un address;
	int r = address_at(dirfd, name, &address);

	OS_FAULT("connect");
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = os_ret(connect(fd, (struct sockaddr *)&address, sizeof address));
	return r < 0 ? r : fd_take(&fd);
}

int os_knock_at(int dirfd, const char *name, int type)
{
	int fd = os_connect_at(dirfd, name, type);
	int r = fd == -EAGAIN || fd > 0 ? 0 : fd; /* its queue is full: somebody has one */

	if (fd >= 0)
		(void)close(fd);
	return r;
}

int os_socket_option(int fd, int option)
{
	int value = 0;
	socklen_t size = sizeof value;

	OS_FAULT("getsockopt");
	int r = os_ret(getsockopt(fd, SOL_SOCKET, option, &value, &size));
	return r < 0 ? r : value;
}

int os_peer(int fd, struct os_peer *out)
{
	struct ucred cred;
	socklen_t size = sizeof cred;

	OS_FAULT("getsockopt");
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	size = sizeof out->groups;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, out->groups, &size) < 0)
		return errno == ERANGE ? -E2BIG : -errno;
	out->uid = cred.uid;
	out->gid = cred.gid;
	out->n_groups = size / sizeof out->groups[0];
	return 0;
}

int os_bound_file(int fd)
{
	OS_FAULT("ioctl");
	return os_ret(ioctl(fd, SIOCUNIXFILE, 0)); /* close-on-exec already */
}

int os_set_groups(const gid_t *groups, size_t n)
{
	OS_FAULT("setgroups");
	return os_ret(syscall(SYS_setgroups, n, groups));
}

int os_notify(const char *address, const char *text)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = strlen(address);

	OS_FAULT("sendto");
	if (n == 0 || n >= sizeof to.sun_path || (address[0] != '/' && address[0] != '@'))
		return -EINVAL;
	memcpy(to.sun_path, address, n);
	if (address[0] == '@')
		to.sun_path[0] = '\0';
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	return os_ret(sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to,
	                     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)));
}

int os_lock_shared(int fd, off_t byte)
{
	struct flock how = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	OS_FAULT("fcntl");
	for (;;) {
		int r = fcntl(fd, F_OFD_SETLKW, &how);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

int os_lock_process(int fd)
{
	struct flock how = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	OS_FAULT("fcntl");
	int r = os_ret(fcntl(fd, F_SETLK, &how));
	return r == -EACCES ? -EAGAIN : r;
}
