#include "os/sock.h"

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "test.h"

enum { NAMES = 4 }; /* as many as one message of ours carries */

static int count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	for (struct dirent *d = readdir(dir); d; d = readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Memory with a name in it, so that one descriptor can be told from another. */
static int named(int number)
{
	int fd = memfd_create("sock", MFD_CLOEXEC);

	CHECK_INT(ftruncate(fd, number), 0);
	return fd;
}

static int number_of(int fd)
{
	return (int)lseek(fd, 0, SEEK_END);
}

/* A sender of ours does not send more than NAMES; this one is a stranger. */
static void send_many(int fd, const int *fds, size_t n)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 64)];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 'x';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
		              .msg_iovlen = 1,
		              .msg_control = control.bytes,
		              .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	CHECK_INT(sendmsg(fd, &msg, 0), 1);
}

TEST(a_pair_is_close_on_exec_and_keeps_packets_apart)
{
	int pair[2];
	char buf[16];

	CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET), 0);
	CHECK_INT(fcntl(pair[0], F_GETFD) & fcntl(pair[1], F_GETFD), FD_CLOEXEC);
	CHECK_INT(os_send(pair[0], "one", 3, NULL, 0), 3);
	CHECK_INT(os_send(pair[0], "three", 5, NULL, 0), 5);
	CHECK_INT(os_recv(pair[1], buf, sizeof buf, NULL, NULL), 3);
	CHECK_INT(os_recv(pair[1], buf, sizeof buf, NULL, NULL), 5);
	CHECK_INT(memcmp(buf, "three", 5), 0);
	fd_close(&pair[0]);
	CHECK_INT(os_recv(pair[1], buf, sizeof buf, NULL, NULL), 0);
	fd_close(&pair[1]);
}

TEST(descriptors_arrive_in_order_and_close_on_exec)
{
	for (size_t n = 0; n <= NAMES; n++) {
		int pair[2], sent[NAMES], got[NAMES];
		size_t n_got = NAMES;
		char byte;

		CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET), 0);
		for (size_t i = 0; i < n; i++)
			sent[i] = named((int)i + 1);
		CHECK_INT(os_send(pair[0], "x", 1, sent, n), 1);
		for (size_t i = 0; i < n; i++)
			fd_close(&sent[i]);
		CHECK_INT(os_recv(pair[1], &byte, 1, got, &n_got), 1);
		CHECK_INT(n_got, n);
		for (size_t i = 0; i < n; i++) {
			CHECK_INT(number_of(got[i]), (int)i + 1);
			CHECK_INT(fcntl(got[i], F_GETFD), FD_CLOEXEC);
			fd_close(&got[i]);
		}
		fd_close(&pair[0]);
		fd_close(&pair[1]);
	}
}

/* The kernel hands over what fits in the control buffer, and we what was asked for. */
TEST(descriptors_that_nobody_asked_for_are_closed)
{
	static const struct {
		size_t sent, wanted, want;
	} cases[] = {
		{ 1, 0, 0 }, { 4, 0, 0 }, { 4, 1, 1 },  { 4, 3, 3 },
		{ 5, 4, 4 }, { 8, 2, 2 }, { 50, 4, 4 }, { 50, 0, 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		int pair[2], fds[64], got[NAMES] = { -1, -1, -1, -1 };
		size_t n_got = cases[i].wanted;
		char byte;

		CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET), 0);
		for (size_t k = 0; k < cases[i].sent; k++)
			fds[k] = pair[0];
		int before = count_open();

		send_many(pair[0], fds, cases[i].sent);
		CHECK_INT(os_recv(pair[1], &byte, 1, got, &n_got), 1);
		CHECK_INT(n_got, cases[i].want);
		CHECK_INT(count_open() - before, (int)cases[i].want);
		for (size_t k = 0; k < n_got; k++)
			fd_close(&got[k]);
		fd_close(&pair[0]);
		fd_close(&pair[1]);
	}
}

TEST(who_takes_no_descriptors_gets_none)
{
	int pair[2];
	char byte;

	CHECK_INT(os_socketpair(pair, SOCK_STREAM), 0);
	int before = count_open();
	CHECK_INT(os_send(pair[0], "x", 1, pair, 2), 1);
	CHECK_INT(os_recv(pair[1], &byte, 1, NULL, NULL), 1);
	CHECK_INT(count_open(), before);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

TEST(a_failed_receive_has_no_descriptors)
{
	int pair[2], got[NAMES];
	size_t n_got = NAMES;
	char byte;

	CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET | SOCK_NONBLOCK), 0);
	CHECK_INT(os_recv(pair[0], &byte, 1, got, &n_got), -EAGAIN);
	CHECK_INT(n_got, 0);
	n_got = NAMES;
	CHECK_INT(os_recv(-1, &byte, 1, got, &n_got), -EBADF);
	CHECK_INT(n_got, 0);
	fd_close(&pair[0]);
	fd_close(&pair[1]);
}

/* A client that went away is an answer; SIGPIPE would end the test. */
TEST(a_send_to_nobody_is_an_error_and_no_signal)
{
	static const int types[] = { SOCK_SEQPACKET, SOCK_STREAM };

	for (size_t i = 0; i < COUNT(types); i++) {
		int pair[2];

		CHECK_INT(os_socketpair(pair, types[i]), 0);
		fd_close(&pair[1]);
		CHECK_INT(os_send(pair[0], "x", 1, NULL, 0), -EPIPE);
		fd_close(&pair[0]);
	}
}

static bool loopback_is_up(void)
{
	struct ifreq req = { .ifr_name = "lo" };
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK_INT(ioctl(fd, SIOCGIFFLAGS, &req), 0);
	return req.ifr_flags & IFF_UP;
}

TEST(loopback_comes_up_in_a_new_network)
{
	if (unshare(CLONE_NEWNET) < 0)
		SKIP("needs root");
	CHECK(!loopback_is_up());
	CHECK_INT(os_loopback_up(), 0);
	CHECK(loopback_is_up());
}
