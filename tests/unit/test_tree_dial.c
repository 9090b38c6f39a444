#include <netinet/in.h>
#include <poll.h>

#include "test_tree.h"

/* ---- an application of the test's own ------------------------------------------------ */

/* Without a backlog (-1) nobody listens, and the port is nobody else's either. */
static int listen_at(int backlog, uint16_t *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_INT(backlog < 0 ? 0 : listen(fd, backlog), 0);
	CHECK_INT(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	*port = ntohs(a.sin_port);
	return fd;
}

/* Asks for a connection; our end of the pair. */
static int ask_dial(struct rig *r, uint64_t port, uint32_t time_ms)
{
	struct tree_ask ask = { .request = {
				    .verb = TREE_DIAL, .from = port, .time_ms = time_ms } };
	int ends[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	rig_ask(r, ask, ends[1]);
	close(ends[1]);
	return ends[0];
}

static enum tree_code code_of(struct rig *r)
{
	struct reply reply = { .data = { .max = SIZE_MAX } };

	rig_reply(r, &reply);
	enum tree_code code = (enum tree_code)reply.last.code;

	reply_done(&reply);
	return code;
}

struct line {
	struct rig r;
	struct reply reply;
	int near, far;
};

static void connect_line(struct line *l)
{
	uint16_t port;
	int listener = listen_at(8, &port);

	rig_open(&l->r);
	l->reply = (struct reply){ .data = { .max = SIZE_MAX } };
	l->near = ask_dial(&l->r, port, 0);
	l->far = accept(listener, NULL, NULL);
	CHECK(l->far >= 0);
	CHECK(rig_packet(&l->r, &l->reply)); /* the ANSWER, and there is more */
	CHECK_INT(l->reply.first.code, TREE_OK);
	close(listener);
}

static void want_bytes(int fd, const char *text)
{
	char buf[64] = "";
	size_t n = 0;

	while (n < strlen(text)) {
		ssize_t k = recv(fd, buf + n, sizeof buf - 1 - n, 0);

		CHECK(k > 0);
		n += (size_t)k;
	}
	CHECK_STR(buf, text);
}

static void want_end(int fd)
{
	char c;

	CHECK_INT(recv(fd, &c, 1, 0), 0);
}

TEST(bytes_go_both_ways_and_each_side_ends_by_itself)
{
	struct line l;

	connect_line(&l);
	CHECK_INT(send(l.near, "there", 5, 0), 5);
	want_bytes(l.far, "there");
	CHECK_INT(send(l.far, "back", 4, 0), 4);
	want_bytes(l.near, "back");
	CHECK_INT(shutdown(l.near, SHUT_WR), 0);
	want_end(l.far);
	CHECK_INT(send(l.far, "later", 5, 0), 5);
	want_bytes(l.near, "later");
	close(l.far);
	want_end(l.near);
	CHECK(rig_packet(&l.r, &l.reply)); /* the far side ended well */
	CHECK_INT((long long)l.reply.data.len, 1);
	CHECK(!rig_packet(&l.r, &l.reply));
	CHECK_CODE(l.reply.last.code, TREE_OK);
	reply_done(&l.reply);
	close(l.near);
	rig_close(&l.r);
}

TEST(a_reset_is_no_good_end)
{
	struct linger hard = { .l_onoff = 1 };
	struct line l;

	connect_line(&l);
	CHECK_INT(setsockopt(l.far, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
	close(l.far);
	CHECK(!rig_packet(&l.r, &l.reply));
	CHECK(l.reply.last.code != TREE_OK);
	want_end(l.near);
	reply_done(&l.reply);
	close(l.near);
	rig_close(&l.r);
}

TEST(a_requester_that_leaves_frees_the_worker)
{
	struct line l;

	connect_line(&l);
	CHECK_INT(send(l.near, "last", 4, 0), 4);
	close(l.near);
	want_bytes(l.far, "last");
	want_end(l.far); /* though the far side never ends */
	CHECK(!rig_packet(&l.r, &l.reply));
	reply_done(&l.reply);
	CHECK_CODE(rig_do(&l.r, TREE_STAT, 0, "/", "", &l.reply), TREE_OK);
	reply_done(&l.reply);
	close(l.far);
	rig_close(&l.r);
}

TEST(a_slow_reader_holds_nobody_but_the_sender)
{
	static char piece[64 << 10];
	struct line l;
	size_t sent = 0;
	ssize_t n;

	connect_line(&l);
	while (poll(&(struct pollfd){ .fd = l.near, .events = POLLOUT }, 1, 200) > 0 &&
	       (n = send(l.near, piece, sizeof piece, MSG_DONTWAIT)) > 0)
		sent += (size_t)n;
	CHECK(sent < (64u << 20)); /* the kernel's buffers, and one of the worker's */
	CHECK_INT(shutdown(l.near, SHUT_WR), 0);
	for (size_t got = 0; got < sent; got += (size_t)n) {
		n = recv(l.far, piece, sizeof piece, 0);
		CHECK(n > 0);
	}
	want_end(l.far);
	rig_cancel(&l.r);
	CHECK(!rig_packet(&l.r, &l.reply));
	CHECK_CODE(l.reply.last.code, TREE_EXPIRED);
	reply_done(&l.reply);
	close(l.near);
	close(l.far);
	rig_close(&l.r);
}

TEST(who_does_not_answer_is_told_apart)
{
	struct rig r;
	uint16_t port, closed;
	int listener = listen_at(0, &port), nobody = listen_at(-1, &closed);
	int fillers[4];

	rig_open(&r);
	close(ask_dial(&r, closed, 0));
	CHECK_CODE(code_of(&r), TREE_NOT_FOUND);
	close(ask_dial(&r, 0, 0));
	CHECK_CODE(code_of(&r), TREE_INVALID);
	close(ask_dial(&r, 65536, 0));
	CHECK_CODE(code_of(&r), TREE_INVALID);
	struct tree_ask bare = { .request = { .verb = TREE_DIAL, .from = port } };
	rig_ask(&r, bare, -1);
	CHECK_CODE(code_of(&r), TREE_INVALID);
	/* A full queue: SYNs are dropped, and nothing comes back. */
	for (size_t i = 0; i < COUNT(fillers); i++) {
		struct sockaddr_in a = { .sin_family = AF_INET,
			                 .sin_port = htons(port),
			                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)connect(fillers[i], (struct sockaddr *)&a, sizeof a);
	}
	struct pollfd first = { .fd = fillers[0], .events = POLLOUT };
	CHECK_INT(poll(&first, 1, TEST_WAIT_MS), 1);
	int near = ask_dial(&r, port, 200);
	CHECK_CODE(code_of(&r), TREE_EXPIRED);
	close(near);
	for (size_t i = 0; i < COUNT(fillers); i++)
		close(fillers[i]);
	close(listener);
	close(nobody);
	rig_close(&r);
}

TEST(listeners_are_found)
{
	struct rig r;
	struct reply reply = { .data = { .max = SIZE_MAX } };
	struct tree_listener one;
	uint16_t port;
	int listener = listen_at(1, &port);
	bool is_found = false;

	rig_open(&r);
	rig_ask(&r, (struct tree_ask){ .request = { .verb = TREE_PORTS } }, -1);
	rig_reply(&r, &reply);
	CHECK_CODE(reply.last.code, TREE_OK);
	for (size_t i = 0;
	     tree_listener_at((struct span){ reply.data.data, reply.data.len }, i, &one); i++)
		is_found |= one.port == port && !one.is_v6 && one.address[0] == 127;
	CHECK(is_found);
	reply_done(&reply);
	close(listener);
	rig_close(&r);
}
