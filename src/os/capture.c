#include "os/capture.h"

#include <netinet/tcp.h>

#include "base/fd.h"
#include "os/ret.h"

#define BACKLOG 4096

int os_capture(const union os_address *a, int type)
{
	static const int on = 1;
	const bool is_v6 = a->any.sa_family == AF_INET6, is_stream = type == SOCK_STREAM;
	const struct {
		bool is_wanted;
		int level, option;
	} options[] = {
		{ !is_v6, IPPROTO_IP, IP_TRANSPARENT },
		{ is_v6, IPPROTO_IPV6, IPV6_TRANSPARENT },
		{ is_v6, IPPROTO_IPV6, IPV6_V6ONLY },
		{ is_stream, IPPROTO_TCP, TCP_NODELAY }, /* what is accepted inherits it */
		{ !is_stream && !is_v6, IPPROTO_IP, IP_PKTINFO },
		{ !is_stream && is_v6, IPPROTO_IPV6, IPV6_RECVPKTINFO },
	};

	OS_FAULT("capture");
	AUTO(fd_close) int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int r = 0;
	for (size_t i = 0; r >= 0 && i < COUNT(options); i++)
		if (options[i].is_wanted)
			r = os_ret(
			    setsockopt(fd, options[i].level, options[i].option, &on, sizeof on));
	if (r >= 0)
		r = os_ret(bind(fd, &a->any, is_v6 ? sizeof a->v6 : sizeof a->v4));
	if (r >= 0 && is_stream)
		r = os_ret(listen(fd, BACKLOG));
	return r < 0 ? r : fd_take(&fd);
}

int os_deaf(void)
{
	OS_FAULT("socket");
	return os_ret(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int os_original_dst(int fd, union os_address *out)
{
	socklen_t n = sizeof *out;

	OS_FAULT("getsockname");
	*out = (union os_address){ .v6 = { 0 } };
	return os_ret(getsockname(fd, &out->any, &n));
}

union info {
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct cmsghdr align;
};

static bool read_dst(struct msghdr *msg, union os_address *to)
{
	struct in_pktinfo v4;
	struct in6_pktinfo v6;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&v4, CMSG_DATA(c), sizeof v4);
			to->v4 =
			    (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = v4.ipi_addr };
			return true;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&v6, CMSG_DATA(c), sizeof v6);
			to->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
				                        .sin6_addr = v6.ipi6_addr };
			return true;
		}
	}
	return false;
}

int os_recv_datagram(int fd, void *buf, size_t size, struct os_datagram *out)
{
	union info control;
	struct iovec iov = { buf, size };
	struct msghdr msg = { .msg_name = &out->from,
		              .msg_namelen = sizeof out->from,
		              .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = control.bytes,
		              .msg_controllen = sizeof control.bytes };

	OS_FAULT("recvmsg");
	for (;;) {
		ssize_t r = recvmsg(fd, &msg, MSG_DONTWAIT);

		if (r < 0 && errno == EINTR)
			continue;
		if (r >= 0 && !read_dst(&msg, &out->to))
			return -EBADMSG;
		return os_ret(r);
	}
}

/* The interface is the kernel's choice: only the source address is said. */
static void say_source(struct cmsghdr *c, const union os_address *to)
{
	if (to->any.sa_family == AF_INET) {
		struct in_pktinfo v4 = { .ipi_spec_dst = to->v4.sin_addr };

		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof v4);
		memcpy(CMSG_DATA(c), &v4, sizeof v4);
	} else {
		struct in6_pktinfo v6 = { .ipi6_addr = to->v6.sin6_addr };

		c->cmsg_level = IPPROTO_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof v6);
		memcpy(CMSG_DATA(c), &v6, sizeof v6);
	}
}

int os_answer_datagram(int fd, const void *bytes, size_t n, const struct os_datagram *d)
{
	union info control = { 0 };
	bool is_v4 = d->to.any.sa_family == AF_INET;
	union os_address from = d->from;
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	struct msghdr msg = {
		.msg_name = &from,
		.msg_namelen = is_v4 ? sizeof from.v4 : sizeof from.v6,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = is_v4 ? CMSG_SPACE(sizeof(struct in_pktinfo))
		                        : CMSG_SPACE(sizeof(struct in6_pktinfo)),
	};

	OS_FAULT("sendmsg");
	say_source(CMSG_FIRSTHDR(&msg), &d->to);
	for (;;) {
		ssize_t r = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (r >= 0 || errno != EINTR)
			return os_ret(r);
	}
}
