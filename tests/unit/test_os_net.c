#include "os/net.h"

#include <netinet/tcp.h>

#include "base/fd.h"
#include "os/sock.h"
#include "test.h"

static union os_address loopback(uint16_t port)
{
	return (union os_address){ .v4 = { .sin_family = AF_INET,
		                           .sin_port = htons(port),
		                           .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
}

TEST(an_accepted_connection_is_ready_for_a_server)
{
	union os_address a = loopback(0);
	AUTO(fd_close) int listener = os_listen_tcp(&a);
	int on = 0;
	socklen_t len = sizeof on;

	CHECK(listener >= 0);
	CHECK_INT(os_accept(listener), -EAGAIN);
	a = loopback((uint16_t)os_port(listener));
	CHECK_INT(os_listen_tcp(&a), -EADDRINUSE);
	AUTO(fd_close) int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(connect(client, &a.any, sizeof a.v4), 0);
	AUTO(fd_close) int fd = os_accept(listener);
	CHECK(fd >= 0);
	CHECK_INT(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	CHECK_INT(on, 1);
	CHECK_INT(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &len), 0);
	CHECK_INT(on, 1);
	CHECK_INT(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &on, &len), 0);
	CHECK_INT(on, 60);
	char buf[8];
	CHECK_INT(os_recv_some(fd, buf, sizeof buf), -EAGAIN);
	CHECK_INT(os_reset_on_close(fd), 0);
	fd_close(&fd);
	CHECK_INT(recv(client, buf, sizeof buf, 0), -1);
	CHECK_INT(errno, ECONNRESET);
}

TEST(sending_never_blocks_and_never_kills)
{
	static char big[4 << 20];
	int fds[2];
	struct iovec iov[] = { { big, 1 }, { big, sizeof big } };
	struct ucred peer;
	char buf[64];

	CHECK_INT(os_socketpair(fds, SOCK_STREAM), 0);
	CHECK_INT(os_peer_cred(fds[0], &peer), 0);
	CHECK_INT(peer.uid, getuid());
	int n = os_sendv(fds[0], iov, 2);
	CHECK(n > 1 && n < (int)sizeof big);
	CHECK_INT(os_sendv(fds[0], iov, 2), -EAGAIN);
	CHECK(os_unsent(fds[0]) >= n);
	CHECK_INT(os_shut_write(fds[0]), 0);
	CHECK_INT(os_sendv(fds[0], iov, 2), -EPIPE);
	CHECK_INT(os_recv_some(fds[1], buf, sizeof buf), sizeof buf);
	fd_close(&fds[1]);
	CHECK_INT(os_sendv(fds[0], iov, 2), -EPIPE);
	fd_close(&fds[0]);
	CHECK_INT(os_unsent(-1), -EBADF);
	CHECK_INT(os_port(-1), -EBADF);
}
