#include "tree/sys.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/ret.h"

int sys_fstat(int fd, struct stat *st)
{
	OS_FAULT("fstat");
	return os_ret(fstat(fd, st));
}

ssize_t sys_pread(int fd, void *buf, size_t n, uint64_t at)
{
	OS_FAULT("pread64");
	for (;;) {
		ssize_t r = pread(fd, buf, n, (off_t)at);

		if (r >= 0 || errno != EINTR)
			return r < 0 ? -errno : r;
	}
}

ssize_t sys_write(int fd, const void *buf, size_t n)
{
	OS_FAULT("write");
	for (;;) {
		ssize_t r = write(fd, buf, n);

		if (r >= 0 || errno != EINTR)
			return r < 0 ? -errno : r;
	}
}

ssize_t sys_copy_range(int from_fd, int to_fd, size_t n)
{
	OS_FAULT("copy_file_range");
	for (;;) {
		ssize_t r = copy_file_range(from_fd, NULL, to_fd, NULL, n, 0);

		if (r >= 0 || errno != EINTR)
			return r < 0 ? -errno : r;
	}
}

int sys_set_nonblocking(int fd)
{
	OS_FAULT("fcntl");
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -errno : os_ret(fcntl(fd, F_SETFL, flags | O_NONBLOCK));
}

int sys_send_now(int fd, const void *bytes, size_t n)
{
	OS_FAULT("sendto");
	for (;;) {
		ssize_t r = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

int sys_recv_now(int fd, void *buf, size_t size)
{
	OS_FAULT("recvfrom");
	for (;;) {
		ssize_t r = recv(fd, buf, size, MSG_DONTWAIT);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

int sys_wait(int fd, short events, int socket_fd, int wait_ms)
{
	struct pollfd fds[] = { { .fd = socket_fd, .events = POLLIN },
		                { .fd = fd, .events = events } };

	OS_FAULT("poll");
	int n = poll(fds, COUNT(fds), wait_ms);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return (fds[1].revents ? SYS_FD_READY : 0) | (fds[0].revents ? SYS_SOCKET_READY : 0);
}

int sys_poll(struct pollfd *fds, size_t n, int wait_ms)
{
	OS_FAULT("poll");
	int r = poll(fds, n, wait_ms);

	if (r >= 0 || errno != EINTR)
		return os_ret(r);
	for (size_t i = 0; i < n; i++)
		fds[i].revents = 0;
	return 0;
}

int sys_connect(const union os_address *a)
{
	socklen_t n = a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;

	OS_FAULT("connect");
	AUTO(fd_close)
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, &a->any, n) < 0 && errno != EINPROGRESS)
		return -errno;
	return fd_take(&fd);
}

int sys_socket_error(int fd)
{
	socklen_t n = sizeof(int);
	int error = 0;

	OS_FAULT("getsockopt");
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
		return -errno;
	return -error;
}

int sys_inotify_init(void)
{
	OS_FAULT("inotify_init1");
	return os_ret(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
}

int sys_inotify_add_here(int fd, uint32_t mask)
{
	OS_FAULT("inotify_add_watch");
	return os_ret(inotify_add_watch(fd, ".", mask));
}

int sys_inotify_remove(int fd, int watch)
{
	OS_FAULT("inotify_rm_watch");
	return os_ret(inotify_rm_watch(fd, watch));
}

uint64_t sys_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t sys_random(void)
{
	uint64_t value = 0;

	(void)!getrandom(&value, sizeof value, 0); /* 8 bytes always come once the pool is ready */
	return value;
}
