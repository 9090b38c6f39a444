/* What a peer sends along must not make us sleep when the kernel closes it for us. */
#include "os/pulse.h"

#include "io/loop.h"
#include "lingering.h"
#include "os/net.h"

struct reader {
	struct watch watch;
	struct loop *loop;
	int got;
	bool is_closing; /* instead of reading */
};

static void reader_ready(struct watch *w, uint32_t events)
{
	struct reader *r = (struct reader *)(void *)w;
	char byte;

	(void)events;
	if (r->is_closing)
		close(w->fd);
	else
		r->got = os_recv_some(w->fd, &byte, 1);
	r->loop->is_done = true;
}

/* How long one callback takes that reads, or closes, ends[0]. */
static uint64_t turn_ms(struct reader *r, int fd, bool has_pulse)
{
	struct loop loop;

	CHECK_INT(loop_init(&loop), 0);
	if (has_pulse)
		CHECK_INT(loop_pulse(&loop), 0);
	r->loop = &loop;
	r->watch = (struct watch){ .fd = fd, .ready = reader_ready };
	CHECK_INT(loop_add(&loop, &r->watch, EPOLLIN), 0);
	uint64_t began = linger_now();
	CHECK_INT(loop_run(&loop), 0);
	uint64_t took = linger_now() - began;
	loop_close(&loop);
	return took;
}

TEST(control_a_plain_read_sleeps_as_long_as_the_sender_wished)
{
	int ends[2];
	char byte;

	CHECK_INT(os_socketpair(ends, SOCK_STREAM), 0);
	CHECK(linger_send(ends[1], "x", 1));
	uint64_t began = linger_now();
	CHECK_INT(read(ends[0], &byte, 1), 1);
	CHECK(linger_now() - began > LINGER_MS - 500);
}

TEST(control_a_loop_without_a_pulse_sleeps_too)
{
	struct reader r = { 0 };
	int ends[2];

	CHECK_INT(os_socketpair(ends, SOCK_SEQPACKET), 0);
	CHECK(linger_send(ends[1], "x", 1));
	CHECK(turn_ms(&r, ends[0], false) > LINGER_MS - 500);
}

TEST(a_callback_that_reads_is_back_soon_and_knows_why)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

	for (size_t i = 0; i < COUNT(types); i++) {
		struct reader r = { 0 };
		int ends[2];

		CHECK_INT(os_socketpair(ends, types[i]), 0);
		CHECK(linger_send(ends[1], "x", 1));
		CHECK(turn_ms(&r, ends[0], true) < LINGER_SOON_MS);
		CHECK_INT(r.got, -EBADMSG);
	}
}

TEST(a_callback_that_closes_what_it_has_not_read_is_back_soon)
{
	struct reader r = { .is_closing = true };
	int ends[2];

	CHECK_INT(os_socketpair(ends, SOCK_STREAM), 0);
	for (int i = 0; i < 3; i++)
		CHECK(linger_send(ends[1], "x", 1));
	CHECK(turn_ms(&r, ends[0], true) < LINGER_SOON_MS);
}

/* The one that comes is a unix socket, in whose queue lies the one that sleeps. */
TEST(a_socket_in_a_socket_is_no_way_round_it)
{
	struct reader r = { 0 };
	int ends[2], carrier[2];

	CHECK_INT(os_socketpair(ends, SOCK_STREAM), 0);
	CHECK_INT(os_socketpair(carrier, SOCK_STREAM), 0);
	CHECK(linger_send(carrier[1], "x", 1));
	CHECK_INT(os_send(ends[1], "x", 1, &carrier[0], 1), 1);
	close(carrier[0]);
	close(carrier[1]);
	CHECK(turn_ms(&r, ends[0], true) < LINGER_SOON_MS);
}

TEST(a_kernel_that_can_refuses_them_at_the_sender)
{
	int ends[2], fd = 0;

	CHECK_INT(os_socketpair(ends, SOCK_STREAM), 0);
	CHECK_INT(os_send(ends[1], "x", 1, &fd, 1), 1); /* control */
	if (!os_refuse_fds(ends[0]))
		SKIP("needs SO_PASSRIGHTS (Linux 6.16)");
	CHECK_INT(os_send(ends[1], "x", 1, &fd, 1), -EPERM);
	CHECK_INT(os_send(ends[1], "x", 1, NULL, 0), 1);
	CHECK_INT(os_send(ends[0], "x", 1, &fd, 1), 1); /* the other way is open */
}

TEST(poll_waits_the_whole_time_whatever_signals_come)
{
	int ends[2];

	CHECK_INT(os_socketpair(ends, SOCK_STREAM), 0);
	struct pollfd wait = { .fd = ends[0], .events = POLLIN };

	CHECK_INT(os_pulse_init(), 0);
	os_pulse_on();
	uint64_t began = linger_now();
	CHECK_INT(poll(&wait, 1, 6 * OS_PULSE_MS), -1); /* control */
	CHECK(linger_now() - began < 4ull * OS_PULSE_MS);
	began = linger_now();
	CHECK_INT(os_poll(&wait, 1, 6 * OS_PULSE_MS), 0);
	CHECK(linger_now() - began >= 6ull * OS_PULSE_MS - 1);
	os_pulse_off();
}
