#include "os/netlink.h"

#include <linux/netlink.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "os/ret.h"

/* 1 when the last request was answered, 0 when there is more to come. */
static int read_answers(const void *bytes, size_t n)
{
	const struct nlmsghdr *h = bytes;

	for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		const struct nlmsgerr *e = NLMSG_DATA(h);

		if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_LENGTH(sizeof *e))
			return e->error < 0 ? e->error : 1;
	}
	return 0;
}

int os_netlink(int protocol, const void *requests, size_t n)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	_Alignas(struct nlmsghdr) char answer[8192];
	int r = 0;

	OS_FAULT("netlink");
	AUTO(fd_close) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	if (sendto(fd, requests, n, 0, (const struct sockaddr *)&kernel, sizeof kernel) < 0)
		return -errno;
	while (r == 0) {
		ssize_t got = recv(fd, answer, sizeof answer, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? -EPROTO : -errno;
		r = read_answers(answer, (size_t)got);
	}
	return r < 0 ? r : 0;
}
