/*
 * Two socket pairs, a relay between them, and a loop that runs until the test stops it.
 */
#include "gate/relay.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "test.h"

static struct rig {
	struct loop loop;
	struct pipes pipes;
	struct relay relay;
	struct meter meters[2];
	uint64_t used[2];
	int client, server; /* the far ends */
	int n_over, n_knock;
	enum relay_over why;
	bool is_broken;
} rig;

static void over(struct relay *r, enum relay_over why, bool is_broken)
{
	fd_close(&r->client.watch.fd);
	fd_close(&r->server.watch.fd);
	rig.n_over++;
	rig.why = why;
	rig.is_broken = is_broken;
}

static void knock(struct relay *r)
{
	(void)r;
	rig.n_knock++;
}

static int pair(int *far)
{
	int fds[2];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	*far = fds[1];
	return fds[0];
}

static void start(uint64_t max_up, uint64_t max_down)
{
	signal(SIGPIPE, SIG_IGN); /* splice knows no MSG_NOSIGNAL */
	CHECK_INT(loop_init(&rig.loop), 0);
	rig.meters[0] = (struct meter){ .used = &rig.used[0], .max = max_up };
	rig.meters[1] = (struct meter){ .used = &rig.used[1], .max = max_down };
	rig.relay = (struct relay){ .client = { .watch = { .fd = pair(&rig.client) } },
		                    .server = { .watch = { .fd = pair(&rig.server) } },
		                    .loop = &rig.loop,
		                    .pipes = &rig.pipes,
		                    .meters = rig.meters,
		                    .over = over,
		                    .knock = knock };
}

/* One turn after the other until nothing is ready; how many there were. */
static int turns(void)
{
	int n = 0;

	for (; n < 10000; n++) {
		struct loop *l = &rig.loop;

		l->n_events = epoll_wait(l->epoll_fd, l->events, LOOP_BATCH, 0);
		if (l->n_events <= 0)
			break;
		for (int i = 0; i < l->n_events; i++) {
			struct watch *w = l->events[i].data.ptr;

			if (w)
				w->ready(w, l->events[i].events);
		}
		l->n_events = 0;
	}
	CHECK(n < 10000); /* it spins */
	return n;
}

static void stop(void)
{
	fd_close(&rig.client);
	fd_close(&rig.server);
	if (!rig.n_over) {
		relay_stop(&rig.relay);
		over(&rig.relay, RELAY_CLIENT, false);
	}
	pipes_done(&rig.pipes);
	loop_close(&rig.loop);
}

static void say(int fd, const char *text)
{
	CHECK_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), (long)strlen(text));
}

static void expect(int fd, const char *text)
{
	char buf[256] = "";
	ssize_t n = recv(fd, buf, sizeof buf - 1, 0);

	CHECK_STR(n < 0 ? "(nothing)" : buf, text);
}

TEST(bytes_pass_both_ways_and_no_pipe_stays)
{
	start(UINT64_MAX, UINT64_MAX);
	relay_start(&rig.relay);
	say(rig.client, "up");
	say(rig.server, "down");
	turns();
	expect(rig.server, "up");
	expect(rig.client, "down");
	CHECK_INT(rig.relay.up.pipe[1], 0);
	CHECK_INT(rig.relay.down.pipe[1], 0);
	CHECK(rig.pipes.n > 0);
	CHECK_INT(rig.relay.up.bytes, 2);
	CHECK_INT(rig.relay.down.bytes, 4);
	CHECK_INT(turns(), 0);
	stop();
}

TEST(an_end_is_carried_and_the_other_way_stays_open)
{
	start(UINT64_MAX, UINT64_MAX);
	relay_start(&rig.relay);
	say(rig.client, "last");
	CHECK_INT(shutdown(rig.client, SHUT_WR), 0);
	turns();
	expect(rig.server, "last");
	expect(rig.server, "");
	CHECK_INT(rig.n_over, 0);
	CHECK_INT(turns(), 0);
	say(rig.server, "answer");
	turns();
	expect(rig.client, "answer");
	fd_close(&rig.server);
	turns();
	CHECK_INT(rig.n_over, 1);
	CHECK_INT(rig.why, RELAY_CLIENT);
	CHECK(!rig.is_broken);
	stop();
}

TEST(a_side_that_takes_nothing_stops_the_other)
{
	static char block[64 << 10];
	size_t sent = 0, got = 0;
	ssize_t n;

	start(UINT64_MAX, UINT64_MAX);
	relay_start(&rig.relay);
	for (int i = 0; i < 1000; i++) {
		n = send(rig.client, block, sizeof block, MSG_NOSIGNAL);
		if (n > 0)
			sent += (size_t)n;
		turns();
	}
	CHECK(sent < 4 << 20);
	CHECK(rig.relay.up.held > 0 && rig.relay.up.pipe[1] > 0);
	CHECK_INT(turns(), 0);
	CHECK_INT(shutdown(rig.client, SHUT_WR), 0);
	CHECK_INT(turns(), 0);
	while ((n = recv(rig.server, block, sizeof block, 0)) > 0) {
		got += (size_t)n;
		turns();
	}
	CHECK_INT(n, 0);
	CHECK_INT(got, sent);
	CHECK_INT(rig.relay.up.pipe[1], 0);
	stop();
}

TEST(what_a_server_said_before_it_broke_arrives)
{
	start(UINT64_MAX, UINT64_MAX);
	relay_start(&rig.relay);
	say(rig.server, "too much");
	fd_close(&rig.server);
	say(rig.client, "more"); /* to nobody */
	turns();
	expect(rig.client, "too much");
	CHECK_INT(shutdown(rig.client, SHUT_WR), 0);
	turns();
	CHECK_INT(rig.n_over, 1);
	stop();
}

TEST(not_a_byte_over_the_budget)
{
	start(5, UINT64_MAX);
	relay_start(&rig.relay);
	say(rig.client, "1234567");
	turns();
	expect(rig.server, "12345");
	CHECK_INT(rig.n_over, 1);
	CHECK_INT(rig.why, RELAY_BUDGET);
	CHECK_INT(rig.used[0], 5);
	stop();
}

TEST(an_end_costs_no_budget)
{
	start(4, UINT64_MAX);
	relay_start(&rig.relay);
	say(rig.client, "1234");
	turns();
	CHECK_INT(shutdown(rig.client, SHUT_WR), 0);
	turns();
	CHECK_INT(rig.n_over, 0);
	say(rig.server, "down");
	turns();
	expect(rig.client, "down");
	stop();
}

TEST(a_client_that_is_held_is_told_once_for_what_arrives)
{
	start(UINT64_MAX, UINT64_MAX);
	rig.relay.is_up_held = true;
	relay_start(&rig.relay);
	say(rig.server, "220 ready");
	say(rig.client, "EH");
	turns();
	expect(rig.client, "220 ready");
	CHECK_INT(rig.n_knock, 1);
	say(rig.client, "LO");
	turns();
	CHECK_INT(rig.n_knock, 2);
	CHECK_INT(turns(), 0);
	relay_open_up(&rig.relay);
	turns();
	expect(rig.server, "EHLO");
	stop();
}

static bool refuses(struct relay *r, struct span bytes)
{
	(void)r;
	return memmem(bytes.at, bytes.len, "stop", 4) != NULL;
}

TEST(what_is_refused_does_not_arrive_and_what_came_before_does)
{
	start(UINT64_MAX, UINT64_MAX);
	rig.relay.refuses = refuses;
	relay_start(&rig.relay);
	say(rig.client, "go on");
	turns();
	expect(rig.server, "go on");
	say(rig.server, "stop is fine on the way back");
	turns();
	expect(rig.client, "stop is fine on the way back");
	say(rig.client, "now stop");
	turns();
	CHECK_INT(rig.n_over, 1);
	CHECK_INT(rig.why, RELAY_REFUSED);
	CHECK(rig.is_broken);
	expect(rig.server, "");
	stop();
}

TEST(the_end_of_one_that_is_looked_at_is_passed_on)
{
	start(UINT64_MAX, UINT64_MAX);
	rig.relay.refuses = refuses;
	relay_start(&rig.relay);
	say(rig.client, "last words");
	CHECK_INT(shutdown(rig.client, SHUT_WR), 0);
	turns();
	expect(rig.server, "last words");
	expect(rig.server, "");
	CHECK_INT(rig.n_over, 0);
	stop();
}
