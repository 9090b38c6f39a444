/* How packets come to such a socket is engine/netns.h's business; here it hears for all. */
#include "os/capture.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>

#include "base/fd.h"
#include "os/sock.h"
#include "test.h"

#define PORT 53

static void enter(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		SKIP("needs user namespaces");
	CHECK_INT(os_loopback_up(), 0);
}

static int capture(bool is_v6, int type)
{
	union os_address a = os_loopback(is_v6, PORT);

	if (is_v6)
		a.v6.sin6_addr = in6addr_any;
	else
		a.v4.sin_addr.s_addr = INADDR_ANY;
	return os_capture(&a, type);
}

/* What was sent arrives in a moment. */
static int await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK_INT(poll(&p, 1, TEST_WAIT_MS), 1);
	return fd;
}

/* A connected client takes an answer only from where it asked. */
static void ask_and_answer(bool is_v6, const char *asked)
{
	AUTO(fd_close) int fd = capture(is_v6, SOCK_DGRAM);
	AUTO(fd_close)
	int client = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union os_address to = os_loopback(is_v6, PORT);
	struct os_datagram d;
	char buf[16];

	CHECK(fd >= 0);
	if (!is_v6)
		CHECK_INT(inet_pton(AF_INET, asked, &to.v4.sin_addr), 1);
	CHECK_INT(os_recv_datagram(fd, buf, sizeof buf, &d), -EAGAIN);
	CHECK_INT(connect(client, &to.any, is_v6 ? sizeof to.v6 : sizeof to.v4), 0);
	CHECK_INT(send(client, "hi", 2, 0), 2);
	CHECK_INT(os_recv_datagram(await(fd), buf, sizeof buf, &d), 2);
	CHECK_INT(d.to.any.sa_family, to.any.sa_family);
	if (!is_v6)
		CHECK_INT(d.to.v4.sin_addr.s_addr, to.v4.sin_addr.s_addr);
	CHECK_INT(os_answer_datagram(fd, "ho", 2, &d), 2);
	CHECK_INT(recv(await(client), buf, sizeof buf, MSG_DONTWAIT), 2);
}

TEST(an_answer_comes_from_the_address_that_was_asked)
{
	enter();
	ask_and_answer(false, "127.0.0.1");
	ask_and_answer(false, "127.4.5.6");
	ask_and_answer(true, "::1");
}

TEST(a_connection_has_its_destination_and_small_packets_are_not_delayed)
{
	union os_address to = os_loopback(false, PORT), dst, peer;
	int on = 0;
	socklen_t len = sizeof on;

	enter();
	AUTO(fd_close) int server = capture(false, SOCK_STREAM);
	CHECK(server >= 0);
	to.v4.sin_addr.s_addr = htonl(0x7f040506);
	AUTO(fd_close) int client = os_connect_tcp(&to);
	CHECK(client >= 0);
	AUTO(fd_close) int fd = os_accept_from(await(server), &peer);
	CHECK(fd >= 0);
	CHECK_INT(ntohs(peer.v4.sin_port), os_port(client));
	CHECK_INT(os_original_dst(fd, &dst), 0);
	CHECK_INT(dst.v4.sin_addr.s_addr, to.v4.sin_addr.s_addr);
	CHECK_INT(ntohs(dst.v4.sin_port), PORT);
	CHECK_INT(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	CHECK_INT(on, 1);
}

TEST(it_takes_a_right)
{
	if (geteuid() == 0)
		CHECK_INT(setresuid(65534, 65534, 65534), 0);
	CHECK_INT(capture(false, SOCK_DGRAM), -EPERM);
}

TEST(nobody_reaches_a_deaf_one)
{
	AUTO(fd_close) int fd = os_deaf();
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK(fd >= 0);
	CHECK_INT(poll(&p, 1, 0), 0);
	CHECK_INT(os_accept(fd), -EOPNOTSUPP);
}
