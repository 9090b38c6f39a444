/* In a network of its own: who reaches what, and what the sockets of the gate see of it. */
#include "engine/netns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>

#include "base/fd.h"
#include "os/capture.h"
#include "os/net.h"
#include "os/netpolicy.h"
#include "test.h"

static int fds[NET_SOCKETS];

static void enter(void)
{
	struct err e = { 0 };

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		SKIP("needs user namespaces");
	if (netns_route(&e) < 0 || netns_wall(fds, &e) < 0)
		CHECK_STR(e.msg, "");
}

static union os_address address(const char *text, uint16_t port)
{
	union os_address a = { .v6 = { 0 } };

	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons(port);
	} else {
		CHECK_INT(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons(port);
	}
	return a;
}

/* A host may have been started without. */
static bool is_known(const union os_address *a)
{
	AUTO(fd_close) int fd = socket(a->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0;
}

static socklen_t size_of(const union os_address *a)
{
	return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

static int open_to(const union os_address *a, int type)
{
	int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	return fd;
}

/* 0 or the errno */
static int attempt(const char *text, uint16_t port, int type)
{
	union os_address a = address(text, port);
	AUTO(fd_close) int fd = open_to(&a, type);

	if (type == SOCK_STREAM)
		return connect(fd, &a.any, size_of(&a)) < 0 ? errno : 0;
	return sendto(fd, "x", 1, 0, &a.any, size_of(&a)) < 0 ? errno : 0;
}

static const char *text_of(const union os_address *a)
{
	static char out[64];
	char host[INET6_ADDRSTRLEN];
	bool is_v6 = a->any.sa_family == AF_INET6;

	inet_ntop(a->any.sa_family,
	          is_v6 ? (const void *)&a->v6.sin6_addr : (const void *)&a->v4.sin_addr, host,
	          sizeof host);
	snprintf(out, sizeof out, "%s %u", host, ntohs(is_v6 ? a->v6.sin6_port : a->v4.sin_port));
	return out;
}

/* What was sent arrives in a moment. */
static int await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK_INT(poll(&p, 1, TEST_WAIT_MS), 1);
	return fd;
}

TEST(every_connection_comes_with_the_address_that_was_meant)
{
	static const struct {
		const char *to;
		uint16_t port;
		const char *seen;
	} rows[] = {
		{ "192.0.2.1", 443, "192.0.2.1 443" },
		{ "10.0.0.1", 22, "10.0.0.1 22" },
		{ "169.254.169.254", 80, "169.254.169.254 80" },
		{ "198.18.0.77", 5432, "198.18.0.77 5432" },
		{ "198.18.0.1", 53, "198.18.0.1 53" },
		{ "198.18.0.1", NET_TCP_PORT, "198.18.0.1 1" }, /* itself is nothing special */
		{ "2001:db8::1", 443, "2001:db8::1 443" },
		{ "fd00:ec2::254", 80, "fd00:ec2::254 80" },
		{ "2001:2::1", NET_TCP_PORT, "2001:2::1 1" },
		{ "::ffff:192.0.2.9", 80, "192.0.2.9 80" },
	};

	enter();
	for (size_t i = 0; i < COUNT(rows); i++) {
		union os_address to = address(rows[i].to, rows[i].port), seen;
		bool is_v6 = strchr(rows[i].seen, ':');

		if (!is_known(&to))
			continue;
		AUTO(fd_close) int client = open_to(&to, SOCK_STREAM);
		CHECK_INT(connect(client, &to.any, size_of(&to)), 0);
		AUTO(fd_close) int got = os_accept(await(fds[is_v6 ? NET_TCP6 : NET_TCP4]));
		CHECK(got >= 0);
		CHECK_INT(os_original_dst(got, &seen), 0);
		CHECK_STR(text_of(&seen), rows[i].seen);
		CHECK_INT(send(client, "ab", 2, 0), 2);
		char buf[4];
		CHECK_INT(recv(await(got), buf, sizeof buf, 0), 2);
	}
	CHECK_INT(os_accept(fds[NET_TCP4]), -EAGAIN);
}

TEST(a_question_is_answered_from_where_it_was_sent)
{
	static const char *const servers[] = { "198.18.0.1", "192.0.2.53", "2001:db8::53" };

	enter();
	for (size_t i = 0; i < COUNT(servers); i++) {
		union os_address to = address(servers[i], 53);
		enum net_socket s = to.any.sa_family == AF_INET ? NET_UDP4 : NET_UDP6;
		struct os_datagram d;
		char buf[16];

		if (!is_known(&to))
			continue;
		AUTO(fd_close) int client = open_to(&to, SOCK_DGRAM);
		/* Connected: an answer from elsewhere would not be taken. */
		CHECK_INT(connect(client, &to.any, size_of(&to)), 0);
		CHECK_INT(send(client, "who?", 4, 0), 4);
		CHECK_INT(os_recv_datagram(await(fds[s]), buf, sizeof buf, &d), 4);
		CHECK_INT(os_answer_datagram(fds[s], "you", 3, &d), 3);
		CHECK_INT(recv(await(client), buf, sizeof buf, MSG_DONTWAIT), 3);
	}
}

TEST(everything_else_fails_in_the_call)
{
	static const struct {
		const char *to;
		uint16_t port;
	} rows[] = {
		{ "192.0.2.1", 443 },   { "192.0.2.1", 123 },      { "198.18.0.1", 54 },
		{ "2001:db8::1", 443 }, { "2001:2::1", 5353 },     { "192.0.2.1", 1 },
		{ "224.0.0.1", 5353 },  { "169.254.169.254", 80 },
	};

	enter();
	for (size_t i = 0; i < COUNT(rows); i++) {
		union os_address a = address(rows[i].to, rows[i].port);

		if (is_known(&a))
			CHECK_INT(attempt(rows[i].to, rows[i].port, SOCK_DGRAM), EPERM);
	}
	/* Not even by who may make such sockets. */
	union os_address to = address("192.0.2.1", 0);
	AUTO(fd_close) int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	CHECK(raw >= 0);
	CHECK_INT(sendto(raw, "\10\0\0\0\0\0\0\0", 8, 0, &to.any, sizeof to.v4), -1);
	CHECK_INT(errno, EPERM);
}

TEST(loopback_is_the_sandboxs_own)
{
	static const uint16_t ports[] = { NET_TCP_PORT, 53, 5432 };
	union os_address v6 = address("::1", 1);

	enter();
	for (size_t i = 0; i < COUNT(ports); i++) {
		union os_address a = address("127.0.0.1", ports[i]), any = address("0.0.0.0", 5432);

		CHECK_INT(attempt("127.0.0.1", ports[i], SOCK_STREAM), ECONNREFUSED);
		if (is_known(&v6))
			CHECK_INT(attempt("::1", ports[i], SOCK_STREAM), ECONNREFUSED);
		AUTO(fd_close) int own = os_listen_tcp(ports[i] == 5432 ? &any : &a);
		CHECK(own >= 0);
		CHECK_INT(attempt("127.0.0.1", ports[i], SOCK_STREAM), 0);
		AUTO(fd_close) int got = os_accept(await(own));
		CHECK(got >= 0);
		/* It hears nothing that was meant for others. */
		CHECK_INT(attempt("192.0.2.1", ports[i], SOCK_STREAM), 0);
		CHECK_INT(os_accept(own), -EAGAIN);
	}
	union os_address dns = address("127.0.0.1", 53);
	AUTO(fd_close) int udp = open_to(&dns, SOCK_DGRAM);
	CHECK_INT(bind(udp, &dns.any, sizeof dns.v4), 0);
	CHECK_INT(attempt("127.0.0.1", 53, SOCK_DGRAM), 0);
	char buf[4];
	CHECK_INT(recv(await(udp), buf, sizeof buf, MSG_DONTWAIT), 1);
}

/* Every address can be bound here, but what is sent to it is the gate's. */
TEST(nobody_takes_the_place_of_the_gate)
{
	enter();
	union os_address a = address("192.0.2.1", 443), dns = address("192.0.2.53", 53);
	union os_address gate = address("198.18.0.1", NET_TCP_PORT);
	AUTO(fd_close) int tcp = os_listen_tcp(&a);
	AUTO(fd_close) int udp = open_to(&dns, SOCK_DGRAM);
	char buf[4];

	CHECK(tcp >= 0);
	CHECK_INT(bind(udp, &dns.any, sizeof dns.v4), 0);
	CHECK_INT(attempt("192.0.2.1", 443, SOCK_STREAM), 0);
	CHECK_INT(os_accept(tcp), -EAGAIN);
	CHECK_INT(attempt("192.0.2.53", 53, SOCK_DGRAM), 0);
	CHECK_INT(recv(udp, buf, sizeof buf, MSG_DONTWAIT), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(os_listen_tcp(&gate), -EADDRINUSE);
}

/* Who closes the sockets closes the network. */
TEST(without_the_sockets_nothing_is_reached)
{
	enter();
	union os_address any = address("0.0.0.0", 443), to = address("192.0.2.1", 443);
	AUTO(fd_close) int own = os_listen_tcp(&any);
	AUTO(fd_close) int client = open_to(&to, SOCK_STREAM);

	netns_close(fds);
	CHECK_INT(fcntl(client, F_SETFL, O_NONBLOCK), 0);
	CHECK_INT(connect(client, &to.any, sizeof to.v4), -1);
	CHECK_INT(errno, EINPROGRESS);
	CHECK_INT(os_accept(own), -EAGAIN);
}

TEST(it_is_made_once)
{
	struct err e = { 0 };
	int again[NET_SOCKETS];

	enter();
	CHECK_INT(netns_wall(again, &e), -1);
	CHECK_INT(e.sys, EADDRINUSE);
	e = (struct err){ 0 };
	CHECK_INT(netns_route(&e), -1);
	CHECK_INT(e.sys, EEXIST);
}

TEST(without_rights_it_says_so)
{
	struct err e = { 0 };

	if (geteuid() == 0)
		CHECK_INT(setresuid(65534, 65534, 65534), 0);
	CHECK_INT(netns_route(&e), -1);
	CHECK_INT(e.sys, EPERM);
}
