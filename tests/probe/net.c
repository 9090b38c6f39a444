/*
 * net.c - NET under `net: deny` and with a list of names, and the socket rows of SYS.
 */
#include "probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAMILY_LAST 46
#define NETLINK_LAST 22

static int open_socket(int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);
	int err = errno;

	if (fd >= 0)
		close(fd);
	errno = err;
	return fd < 0 ? -1 : 0;
}

static void report_family(int family)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM };
	int made = 0, err = 0;
	char op[16];

	for (size_t t = 0; t < COUNT(types); t++) {
		if (open_socket(family, types[t], 0) == 0)
			made++;
		else
			err = errno;
	}
	snprintf(op, sizeof op, "af-%d", family);
	report(op, made ? 0 : err, made > 0, "%d types", made);
}

/* Arguments: families; without any, all but the four that programs need. */
static int sys_15(void)
{
	char op[16];

	for (int i = 0; arg(i); i++)
		report_family((int)arg_number(i, 0));
	for (int f = 0; !arg(0) && f <= FAMILY_LAST; f++)
		if (f != AF_UNIX && f != AF_INET && f != AF_INET6 && f != AF_NETLINK)
			report_family(f);
	for (int p = 1; p <= NETLINK_LAST; p++) {
		snprintf(op, sizeof op, "netlink-%d", p);
		attempt(op, open_socket(AF_NETLINK, SOCK_RAW, p), NULL);
	}
	attempt("use-unix", open_socket(AF_UNIX, SOCK_STREAM, 0), NULL);
	attempt("use-inet", open_socket(AF_INET, SOCK_STREAM, 0), NULL);
	attempt("use-inet6", open_socket(AF_INET6, SOCK_DGRAM, 0), NULL);
	attempt("use-netlink-route", open_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), NULL);
	return 0;
}

static long set_option(int level, int name, const void *value, socklen_t len)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : setsockopt(fd, level, name, value, len);
}

static int sys_16(void)
{
	static const int one = 1;

	attempt("raw", open_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), NULL);
	attempt("raw6", open_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), NULL);
	attempt("packet-by-inet", open_socket(AF_INET, 10, 0x300), NULL);
	attempt("ping", open_socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), NULL);
	attempt("ip-transparent", set_option(IPPROTO_IP, IP_TRANSPARENT, &one, sizeof one), NULL);
	attempt("so-mark", set_option(SOL_SOCKET, SO_MARK, &one, sizeof one), NULL);
	attempt("so-bindtodevice", set_option(SOL_SOCKET, SO_BINDTODEVICE, "lo", 3), NULL);
	attempt("tcp-ulp", set_option(IPPROTO_TCP, TCP_ULP, "tls", 4),
	        (const int[]){ ENOTCONN, 0 });
	return 0;
}

/* ONE program each: kernels exist that stop when many are freed at once. */
static long attach(int option)
{
	struct sock_filter take_all[] = { { .code = BPF_RET | BPF_K, .k = 0xffff } };
	struct sock_fprog program = { .len = COUNT(take_all), .filter = take_all };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	static const int one = 1, none = -1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0)
		return -1;
	if (option == SO_ATTACH_BPF || option == SO_ATTACH_REUSEPORT_EBPF)
		return setsockopt(fd, SOL_SOCKET, option, &none, sizeof none);
	return setsockopt(fd, SOL_SOCKET, option, &program, sizeof program);
}

static int sys_26(void)
{
	static const int past_rights[] = { EBADF, 0 };

	attempt("attach-filter", attach(SO_ATTACH_FILTER), NULL);
	attempt("attach-bpf", attach(SO_ATTACH_BPF), past_rights);
	attempt("attach-reuseport-cbpf", attach(SO_ATTACH_REUSEPORT_CBPF), NULL);
	attempt("attach-reuseport-ebpf", attach(SO_ATTACH_REUSEPORT_EBPF), past_rights);
	return 0;
}

/* Open: the socket lingers now, and whoever closes it waits. */
static int sys_27(void)
{
	struct linger want = { .l_onoff = 1, .l_linger = 5 }, is = { 0 };
	socklen_t len = sizeof is;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	long r = fd < 0 ? -1 : setsockopt(fd, SOL_SOCKET, SO_LINGER, &want, sizeof want);
	int err = r < 0 ? errno : 0;

	if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &is, &len) < 0)
		return -1;
	report("linger", err, is.l_onoff != 0, "on %d for %d s", is.l_onoff, is.l_linger);
	is.l_onoff = 0;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &is, sizeof is);
	return 0;
}

static long by_link(unsigned long request, const void *of)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? -1 : ioctl(fd, request, of);
}

/* With NULL or a name that nobody has: each fails, but after the kernel has asked for a module. */
static int sys_28(void)
{
	static const int asked[] = { EFAULT, ENOPKG, EINVAL, ENODEV, EOPNOTSUPP, ENOSYS, 0 };
	static const struct {
		const char *op;
		unsigned long request;
	} links[] = {
		{ "get-bridge", SIOCGIFBR },    { "set-bridge", SIOCSIFBR },
		{ "add-bridge", SIOCBRADDBR },  { "del-bridge", SIOCBRDELBR },
		{ "bridge-link", SIOCBRADDIF }, { "bridge-unlink", SIOCBRDELIF },
		{ "get-vlan", SIOCGIFVLAN },    { "set-vlan", SIOCSIFVLAN },
	};
	static const char key[256] = { AF_INET };

	for (size_t i = 0; i < COUNT(links); i++)
		attempt(links[i].op, by_link(links[i].request, NULL), asked);
	attempt("tcp-md5", set_option(IPPROTO_TCP, TCP_MD5SIG, key, 4), asked);
	attempt("tcp-ao", set_option(IPPROTO_TCP, 38, key, 4), asked); /* TCP_AO_ADD_KEY */
	return 0;
}

static long send_flagged(int flags)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	return send(pair[0], "x", 1, flags);
}

static long send_message(int flags)
{
	struct iovec bytes = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &bytes, .msg_iovlen = 1 } };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	if (sendmmsg(pair[0], &message, 1, flags) < 0)
		return -1;
	return sendmsg(pair[0], &message.msg_hdr, flags);
}

static int sys_29(void)
{
	static const int one = 1;

	attempt("urgent", send_flagged(MSG_OOB), NULL);
	attempt("urgent-message", send_message(MSG_OOB), NULL);
	attempt("zerocopy", send_flagged(MSG_ZEROCOPY), NULL);
	attempt("so-zerocopy", set_option(SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one), NULL);
	attempt("use-send", send_flagged(MSG_NOSIGNAL), NULL);
	attempt("use-message", send_message(MSG_NOSIGNAL), NULL);
	return 0;
}

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to;
	socklen_t len;
	int family;
};

static bool parse_address(const char *text, unsigned long port, struct address *a)
{
	*a = (struct address){ .family = strchr(text, ':') ? AF_INET6 : AF_INET };
	a->to.any.sa_family = (sa_family_t)a->family;
	if (a->family == AF_INET) {
		a->to.v4.sin_port = htons((uint16_t)port);
		a->len = sizeof a->to.v4;
		return inet_pton(AF_INET, text, &a->to.v4.sin_addr) == 1;
	}
	a->to.v6.sin6_port = htons((uint16_t)port);
	a->len = sizeof a->to.v6;
	return inet_pton(AF_INET6, text, &a->to.v6.sin6_addr) == 1;
}

static long finish_connect(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int err = ETIMEDOUT;
	socklen_t len = sizeof err;

	if (poll(&p, 1, 2000) == 1)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	errno = err;
	return err ? -1 : 0;
}

static const struct {
	const char *name;
	int type, protocol;
} transports[] = {
	{ "tcp", SOCK_STREAM, 0 },
	{ "talk", SOCK_STREAM, 0 }, /* somebody answers */
	{ "udp", SOCK_DGRAM, 0 },
	{ "icmp", SOCK_RAW, IPPROTO_ICMP },
	{ "ping", SOCK_DGRAM, IPPROTO_ICMP },
	{ "sctp", SOCK_STREAM, IPPROTO_SCTP },
	{ "raw", SOCK_RAW, 253 },
};

/* With a gate every connection comes about, and is then judged. */
static long hear(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&p, 1, 2000) != 1)
		return errno = ETIMEDOUT, -1;
	ssize_t n = recv(fd, &byte, 1, 0);

	if (n == 0)
		errno = EPIPE;
	return n > 0 ? 0 : -1;
}

/* One datagram goes out where it can: a DNS question, or for ICMP an echo request. */
static long reach(size_t transport, const struct address *a)
{
	int type = transports[transport].type, protocol = transports[transport].protocol;
	bool is_talk = strcmp(transports[transport].name, "talk") == 0;
	static const unsigned char question[] =
	    "\x12\x34\1\0\0\1\0\0\0\0\0\0\4data\7example\3org\0\0\1\0\1";
	static const unsigned char echo[8] = { 8 };
	bool is_icmp = protocol == IPPROTO_ICMP;
	const void *bytes = is_icmp ? echo : question;
	size_t len = is_icmp ? sizeof echo : sizeof question - 1;
	int fd = socket(a->family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd < 0)
		return -1;
	long r = type == SOCK_STREAM ? connect(fd, &a->to.any, a->len)
	                             : sendto(fd, bytes, len, 0, &a->to.any, a->len);

	if (r < 0 && errno == EINPROGRESS)
		r = finish_connect(fd);
	if (r == 0 && is_talk)
		r = hear(fd);
	int err = errno;

	close(fd);
	errno = err;
	return r;
}

/* All rows that only differ in whom they call. Arguments: transport/address/port. */
static int reach_all(void)
{
	for (int i = 0; arg(i); i++) {
		char transport[16] = "", host[64] = "";
		unsigned long port = 0;
		struct address a;

		if (sscanf(arg(i), "%15[^/]/%63[^/]/%lu", transport, host, &port) != 3 ||
		    !parse_address(host, port, &a))
			return errno = EINVAL, -1;
		for (size_t t = 0; t < COUNT(transports); t++)
			if (strcmp(transports[t].name, transport) == 0)
				attempt(arg(i), reach(t, &a), NULL);
	}
	return 0;
}

/* Argument: a port. Listens everywhere inside; the host must not find it. */
static int net_23(void)
{
	struct address a;

	parse_address("0.0.0.0", (unsigned long)arg_number(0, 47012), &a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool ok = fd >= 0 && bind(fd, &a.to.any, a.len) == 0 && listen(fd, 4) == 0;

	report("use-listen", ok ? 0 : errno, ok, " ");
	return ok ? 0 : -1;
}

static long link_ioctl(unsigned long request)
{
	struct ifreq r = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return -1;
	if (request == SIOCSIFADDR)
		r = (struct ifreq){ .ifr_name = "lo:9",
			            .ifr_addr = { .sa_family = AF_INET,
			                          .sa_data = "\0\0\x7f\0\0\x9" } };
	return ioctl(fd, request, &r);
}

static int net_24(void)
{
	attempt("packet", open_socket(AF_PACKET, SOCK_RAW, 0), NULL);
	attempt("packet-dgram", open_socket(AF_PACKET, SOCK_DGRAM, 0), NULL);
	attempt("set-flags", link_ioctl(SIOCSIFFLAGS), NULL);
	attempt("add-address", link_ioctl(SIOCSIFADDR), NULL);
	attempt("raw", open_socket(AF_INET, SOCK_RAW, IPPROTO_RAW), NULL);
	return 0;
}

static int count_lines(const char *path, const char *not_with)
{
	FILE *f = fopen(path, "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof line, f))
		n += !strstr(line, not_with);
	if (f)
		fclose(f);
	return n;
}

static int net_31(void)
{
	struct ifaddrs *all = NULL;
	int foreign = 0;
	char first[64] = "";

	if (getifaddrs(&all) < 0)
		return -1;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (strcmp(i->ifa_name, "lo") == 0)
			continue;
		foreign++;
		snprintf(first, sizeof first, "%s", i->ifa_name);
	}
	freeifaddrs(all);
	report("interfaces", 0, foreign > 0, "%d beyond lo %s", foreign, first);
	int routes = count_lines("/proc/net/route", "Iface");

	report("routes", 0, routes > 0, "%d", routes);
	routes = count_lines("/proc/net/ipv6_route", " lo\n");
	report("routes6", 0, routes > 0, "%d", routes);
	report("neighbours", 0, count_lines("/proc/net/arp", "IP address") > 0, " ");
	return 0;
}

const struct row net_rows[] = {
	{ "SYS-15", sys_15 },
	{ "SYS-16", sys_16 },
	{ "SYS-26", sys_26 },
	{ "SYS-27", sys_27 },
	{ "SYS-28", sys_28 },
	{ "SYS-29", sys_29 },
	{ "NET-01", reach_all },
	{ "NET-02", reach_all },
	{ "NET-03", reach_all },
	{ "NET-05", reach_all },
	{ "NET-13", reach_all },
	{ "NET-15", reach_all },
	{ "NET-19", reach_all },
	{ "NET-20", reach_all },
	{ "NSP-08", reach_all },
	{ "NET-23", net_23 },
	{ "NET-24", net_24 },
	{ "NET-31", net_31 },
	/* the same with a list of names */
	{ "SYS-15L", sys_15 },
	{ "SYS-16L", sys_16 },
	{ "NET-01L", reach_all },
	{ "NET-02L", reach_all },
	{ "NET-03L", reach_all },
	{ "NET-05L", reach_all },
	{ "NET-13L", reach_all },
	{ "NET-15L", reach_all },
	{ "NET-19L", reach_all },
	{ "NET-20L", reach_all },
	{ "NET-24L", net_24 },
	{ "NET-31L", net_31 },
	{ 0 },
};
