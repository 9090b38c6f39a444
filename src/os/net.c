#include "os/net.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include "base/fd.h"
#include "os/ret.h"

#define BACKLOG 4096

/* The first and the last are of listeners only. */
enum { OPTION_KEEPALIVE = 1, OPTION_V6ONLY = 6 };

/* What is accepted inherits all of it. A host that vanished is noticed after two minutes. */
static const struct {
	int level, option, value;
} options[] = {
	{ SOL_SOCKET, SO_REUSEADDR, 1 },
	[OPTION_KEEPALIVE] = { SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ IPPROTO_TCP, TCP_NODELAY, 1 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
	{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
	{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	[OPTION_V6ONLY] = { IPPROTO_IPV6, IPV6_V6ONLY, 1 }, /* the last: not for IPv4 */
};

union os_address os_loopback(bool is_v6, uint16_t port)
{
	union os_address a = { .v6 = { 0 } };

	if (is_v6)
		a.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
			                      .sin6_port = htons(port),
			                      .sin6_addr = in6addr_loopback };
	else
		a.v4 = (struct sockaddr_in){ .sin_family = AF_INET,
			                     .sin_port = htons(port),
			                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	return a;
}

int os_listen_tcp(const union os_address *a)
{
	bool is_v6 = a->any.sa_family == AF_INET6;

	OS_FAULT("socket");
	AUTO(fd_close)
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int r = 0;
	for (size_t i = 0; r >= 0 && i < COUNT(options) - !is_v6; i++)
		r = os_ret(setsockopt(fd, options[i].level, options[i].option, &options[i].value,
		                      sizeof options[i].value));
	if (r >= 0)
		r = os_ret(bind(fd, &a->any, is_v6 ? sizeof a->v6 : sizeof a->v4));
	if (r >= 0)
		r = os_ret(listen(fd, BACKLOG));
	return r < 0 ? r : fd_take(&fd);
}

int os_port(int fd)
{
	union os_address a = { .v6 = { 0 } };
	socklen_t n = sizeof a;

	OS_FAULT("getsockname");
	if (getsockname(fd, &a.any, &n) < 0)
		return -errno;
	return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

int os_accept(int fd)
{
	OS_FAULT("accept4");
	return os_ret(accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int os_accept_from(int fd, union os_address *peer)
{
	socklen_t n = sizeof *peer;

	OS_FAULT("accept4");
	return os_ret(accept4(fd, &peer->any, &n, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

int os_connect_tcp(const union os_address *a)
{
	bool is_v6 = a->any.sa_family == AF_INET6;

	OS_FAULT("connect");
	AUTO(fd_close)
	int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int r = 0;
	for (size_t i = OPTION_KEEPALIVE; r >= 0 && i < OPTION_V6ONLY; i++)
		r = os_ret(setsockopt(fd, options[i].level, options[i].option, &options[i].value,
		                      sizeof options[i].value));
	if (r >= 0)
		r = os_ret(connect(fd, &a->any, is_v6 ? sizeof a->v6 : sizeof a->v4));
	return r < 0 && r != -EINPROGRESS ? r : fd_take(&fd);
}

int os_peer_cred(int fd, struct ucred *out)
{
	socklen_t n = sizeof *out;

	OS_FAULT("getsockopt");
	return os_ret(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, out, &n));
}

int os_recv_some(int fd, void *buf, size_t size)
{
	OS_FAULT("recv");
	for (;;) {
		struct iovec iov = { .iov_base = buf, .iov_len = size };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t r = recvmsg(fd, &msg, MSG_DONTWAIT);

		if (r >= 0 && msg.msg_flags & MSG_CTRUNC)
			return -EBADMSG; /* the kernel has closed what came along */
		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

int os_peek(int fd, void *buf, size_t size)
{
	OS_FAULT("recv");
	for (;;) {
		ssize_t r = recv(fd, buf, size, MSG_DONTWAIT | MSG_PEEK);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

int os_splice(int from, int to, size_t n)
{
	OS_FAULT("splice");
	for (;;) {
		ssize_t r = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

int os_sendv(int fd, struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };

	OS_FAULT("sendmsg");
	for (;;) {
		ssize_t r = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}

int os_unsent(int fd)
{
	int n = 0;

	OS_FAULT("ioctl");
	return ioctl(fd, SIOCOUTQ, &n) < 0 ? -errno : n;
}

int os_shut_write(int fd)
{
	OS_FAULT("shutdown");
	return os_ret(shutdown(fd, SHUT_WR));
}

int os_reset_on_close(int fd)
{
	struct linger l = { .l_onoff = 1 };

	OS_FAULT("setsockopt");
	return os_ret(setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l));
}

int os_own_addresses(union os_address *out, size_t max)
{
	struct ifaddrs *list;
	size_t n = 0;

	OS_FAULT("getifaddrs");
	if (getifaddrs(&list) < 0)
		return -errno;
	for (const struct ifaddrs *i = list; i && n < max; i = i->ifa_next) {
		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

		if (family != AF_INET && family != AF_INET6)
			continue;
		out[n] = (union os_address){ .v6 = { 0 } };
		memcpy(&out[n++], i->ifa_addr, family == AF_INET ? sizeof out->v4 : sizeof out->v6);
	}
	freeifaddrs(list);
	return (int)n;
}

int os_address_events(void)
{
	struct sockaddr_nl me = { .nl_family = AF_NETLINK,
		                  .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };

	OS_FAULT("socket");
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&me, sizeof me) == 0)
		return fd;
	int r = -errno;

	close(fd);
	return r;
}

int os_address_list(int fd)
{
	struct {
		struct nlmsghdr head;
		struct ifaddrmsg body;
	} ask = { .head = { .nlmsg_len = sizeof ask,
		            .nlmsg_type = RTM_GETADDR,
		            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		  .body = { .ifa_family = AF_UNSPEC } };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	OS_FAULT("sendto");
	return sendto(fd, &ask, sizeof ask, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0
	           ? -errno
	           : 0;
}

/* The address that a message is about: of a peer's link the local one. */
static bool read_address(const struct nlmsghdr *m, union os_address *out)
{
	const struct ifaddrmsg *body = NLMSG_DATA(m);
	size_t want = body->ifa_family == AF_INET6 ? 16 : 4;
	int left = (int)IFA_PAYLOAD(m);
	bool has_one = false;

	*out = (union os_address){ .v6 = { .sin6_family = body->ifa_family } };
	for (const struct rtattr *a = IFA_RTA(body); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if ((a->rta_type != IFA_LOCAL && (a->rta_type != IFA_ADDRESS || has_one)) ||
		    RTA_PAYLOAD(a) < want)
			continue;
		memcpy(want == 16 ? (void *)&out->v6.sin6_addr : (void *)&out->v4.sin_addr,
		       RTA_DATA(a), want);
		has_one = true;
	}
	return has_one && (body->ifa_family == AF_INET || body->ifa_family == AF_INET6);
}

int os_address_next(int fd, os_address_fn *fn, void *arg)
{
	static union {
		struct nlmsghdr head;
		char bytes[32768];
	} buf;
	struct sockaddr_nl from = { 0 };
	socklen_t size = sizeof from;

	OS_FAULT("recvfrom");
	ssize_t n = recvfrom(fd, &buf, sizeof buf, MSG_DONTWAIT, (struct sockaddr *)&from, &size);

	if (n < 0)
		return -errno;
	if (from.nl_pid != 0)
		return 0; /* not the kernel */
	unsigned left = (unsigned)n;

	for (const struct nlmsghdr *m = &buf.head; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		union os_address a;

		if ((m->nlmsg_type == RTM_NEWADDR || m->nlmsg_type == RTM_DELADDR) &&
		    m->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifaddrmsg)) && read_address(m, &a))
			fn(arg, &a, m->nlmsg_type == RTM_NEWADDR);
	}
	return 0;
}
