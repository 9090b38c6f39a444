#include "os/net.h"

#include <fcntl.h>
#include <ifaddrs.h>
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
		ssize_t r = recv(fd, buf, size, MSG_DONTWAIT);

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
