#include "os/capture.h"

#include <arpa/inet.h>

#include "base/fd.h"
#include "test.h"

static int listener(bool is_v6, uint16_t *port)
{
	union os_address a = os_loopback(is_v6, 0);
	int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (is_v6)
		a.v6.sin6_addr = in6addr_any;
	else
		a.v4.sin_addr.s_addr = INADDR_ANY;
	CHECK_INT(bind(fd, &a.any, is_v6 ? sizeof a.v6 : sizeof a.v4), 0);
	*port = (uint16_t)os_port(fd);
	return fd;
}

/* A connected client takes an answer only from where it asked. */
static void ask_and_answer(bool is_v6, const char *asked)
{
	uint16_t port;
	AUTO(fd_close) int fd = listener(is_v6, &port);
	AUTO(fd_close)
	int client = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union os_address to = os_loopback(is_v6, port);
	struct os_datagram d;
	char buf[16];

	if (!is_v6)
		CHECK_INT(inet_pton(AF_INET, asked, &to.v4.sin_addr), 1);
	CHECK_INT(os_want_dst(fd, is_v6), 0);
	CHECK_INT(os_recv_datagram(fd, buf, sizeof buf, &d), -EAGAIN);
	CHECK_INT(connect(client, &to.any, is_v6 ? sizeof to.v6 : sizeof to.v4), 0);
	CHECK_INT(send(client, "hi", 2, 0), 2);
	CHECK_INT(os_recv_datagram(fd, buf, sizeof buf, &d), 2);
	CHECK_INT(d.to.any.sa_family, to.any.sa_family);
	if (!is_v6)
		CHECK_INT(d.to.v4.sin_addr.s_addr, to.v4.sin_addr.s_addr);
	CHECK_INT(os_answer_datagram(fd, "ho", 2, &d), 2);
	CHECK_INT(recv(client, buf, sizeof buf, MSG_DONTWAIT), 2);
}

TEST(an_answer_comes_from_the_address_that_was_asked)
{
	ask_and_answer(false, "127.0.0.1");
	ask_and_answer(false, "127.4.5.6");
	ask_and_answer(true, "::1");
}

TEST(a_connection_that_nobody_redirected_has_no_other_destination)
{
	union os_address a = os_loopback(false, 0), dst;
	AUTO(fd_close) int server = os_listen_tcp(&a);

	a = os_loopback(false, (uint16_t)os_port(server));
	AUTO(fd_close) int client = os_connect_tcp(&a);
	union os_address peer;

	CHECK(client >= 0);
	AUTO(fd_close) int fd = os_accept_from(server, &peer);
	CHECK(fd >= 0);
	CHECK_INT(ntohs(peer.v4.sin_port), os_port(client));
	CHECK(os_original_dst(fd, false, &dst) < 0);
}
