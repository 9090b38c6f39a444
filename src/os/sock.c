#include "os/sock.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "os/ret.h"

#define FDS_MAX 8

int os_socketpair(int fds[2], int type)
{
	OS_FAULT("socketpair");
	return os_ret(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds));
}

int os_send(int fd, const void *bytes, size_t n, const int *fds, size_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	OS_FAULT("sendmsg");
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
	}
	for (;;) {
		ssize_t r = sendmsg(fd, &msg, MSG_NOSIGNAL);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

static size_t take_fds(struct msghdr *msg, int *fds, size_t max)
{
	size_t taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (taken < max)
				fds[taken++] = fd;
			else
				fd_close(&fd);
		}
	}
	return taken;
}

int os_recv(int fd, void *buf, size_t size, int *fds, size_t *n_fds)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = control.bytes,
		              .msg_controllen = sizeof control.bytes };

	OS_FAULT("recvmsg");
	for (;;) {
		ssize_t r = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);

		if (r < 0 && errno == EINTR)
			continue;
		size_t taken = r < 0 ? 0 : take_fds(&msg, fds, n_fds ? *n_fds : 0);
		if (n_fds)
			*n_fds = taken;
		return os_ret(r);
	}
}

int os_loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };

	OS_FAULT("loopback");
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	return os_ret(ioctl(fd, SIOCSIFFLAGS, &req));
}
