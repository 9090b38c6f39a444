#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "monitor/monitor-internal.h"
#include "test.h"

/* ---- a monitor that only carries bytes --------------------------------------------- */

static struct monitor m;
static struct plan plan = { .has_stdin = true };
static struct box box = { .plan = &plan, .cgroup = { .box_fd = -1, .mon_fd = -1 } };

/* What the test holds: the client's end of the channel, and the command's ends of its streams. */
static int client_fd, in_fd, out_fd, err_fd;
static pid_t monitor_pid;
static struct channel_packet packet;

/* As in monitor.c, without an end. */
static void control_ready(struct watch *w, uint32_t events)
{
	if (events & EPOLLOUT)
		streams_unblock(&m);
	if (!(events & (EPOLLIN | EPOLLHUP)))
		return;
	ssize_t n = recv(w->fd, &packet, sizeof packet, MSG_DONTWAIT);
	if (n == 0)
		_exit(0);
	if (n > 0)
		streams_client(&m, &packet);
}

static void be_the_monitor(void)
{
	struct err e = { 0 };

	signal(SIGPIPE, SIG_IGN);
	if (loop_init(&m.loop) < 0 || loop_add(&m.loop, &m.control, EPOLLIN) < 0 ||
	    streams_watch(&m, &e) < 0)
		_exit(1);
	/* clock_active() only notes the time; there is no timer here. */
	m.timer.fd = -1;
	(void)loop_run(&m.loop);
	_exit(2);
}

/* Whom signals are for: in a group of its own, and gone with the test. */
static pid_t start_command(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		while (pause() < 0)
			;
	}
	setpgid(pid, pid); /* here too: a signal may come before the child has run */
	return pid;
}

static void start(void)
{
	struct payload_io io = { .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1 };
	struct err e = { 0 };
	int pair[2];

	m.box = &box;
	m.command.pid = start_command(); /* first: it shall hold no end of anything */
	m.command.pty_fd = -1;
	CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	m.control = (struct watch){ .fd = pair[1], .ready = control_ready };
	CHECK_INT(streams_open(&m, &io, &e), 0);
	fflush(NULL);
	monitor_pid = fork();
	if (monitor_pid == 0) {
		fd_close(&pair[0]);
		fd_close(&io.stdin_fd);
		fd_close(&io.stdout_fd);
		fd_close(&io.stderr_fd);
		be_the_monitor();
	}
	fd_close(&pair[1]);
	fd_close(&m.input.fd);
	fd_close(&m.streams[0].watch.fd);
	fd_close(&m.streams[1].watch.fd);
	client_fd = pair[0];
	in_fd = io.stdin_fd;
	out_fd = io.stdout_fd;
	err_fd = io.stderr_fd;
}

static void say(enum channel_type type, const void *bytes, size_t n)
{
	packet.head = (struct channel_head){ .type = type, .len = (uint32_t)n };
	if (n > 0)
		memcpy(packet.data, bytes, n);
	CHECK_INT(send(client_fd, &packet, sizeof packet.head + n, 0),
	          (long long)(sizeof packet.head + n));
}

static void end(void)
{
	int status;

	fd_close(&in_fd);
	fd_close(&out_fd);
	fd_close(&err_fd);
	fd_close(&client_fd);
	CHECK_INT(waitpid(monitor_pid, &status, 0), monitor_pid);
	CHECK_INT(status, 0); /* it lived until its client went */
	if (m.command.pid > 0) {
		CHECK_INT(kill(-m.command.pid, SIGKILL), 0);
		CHECK_INT(waitpid(m.command.pid, NULL, 0), m.command.pid);
	}
}

/* Ends the command by a signal that the client sends. */
static void end_by_signal(void)
{
	int32_t sig = SIGUSR1;
	int status;

	say(CH_SIGNAL, &sig, sizeof sig);
	CHECK_INT(waitpid(m.command.pid, &status, 0), m.command.pid);
	CHECK_INT(status, SIGUSR1);
	m.command.pid = 0;
}

/* The bytes of the next packet, which is of this type. */
static size_t hear(enum channel_type type)
{
	ssize_t n = recv(client_fd, &packet, sizeof packet, 0);

	CHECK(n >= (ssize_t)sizeof packet.head);
	CHECK_INT(packet.head.len, n - (ssize_t)sizeof packet.head);
	CHECK_INT(packet.head.type, type);
	return packet.head.len;
}

/* True when something can be read within this time. */
static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void write_text(int fd, const char *text)
{
	CHECK_INT(write(fd, text, strlen(text)), (long long)strlen(text));
}

/* Byte number i of a stream that does not repeat soon. */
static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 7 + i / 251 + i / 65521);
}

/* ---- output ------------------------------------------------------------------------ */

TEST(both_streams_arrive_under_their_own_type)
{
	start();
	write_text(out_fd, "to out");
	CHECK_INT(hear(CH_OUT), 6);
	CHECK_INT(memcmp(packet.data, "to out", 6), 0);
	write_text(err_fd, "to err");
	CHECK_INT(hear(CH_ERR), 6);
	CHECK_INT(memcmp(packet.data, "to err", 6), 0);
	fd_close(&out_fd); /* the end of one is not the end of the other */
	write_text(err_fd, "more");
	CHECK_INT(hear(CH_ERR), 4);
	end();
}

/* Writes until nobody takes any more for a while; returns how much went. */
static size_t write_until_full(int fd)
{
	static unsigned char chunk[4096];
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	size_t written = 0;

	CHECK_INT(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (poll(&room, 1, 300) == 1) {
		for (size_t i = 0; i < sizeof chunk; i++)
			chunk[i] = byte_at(written + i);
		ssize_t n = write(fd, chunk, sizeof chunk);

		if (n > 0)
			written += (size_t)n;
		CHECK(written < 64 << 20);
	}
	return written;
}

static void read_output(size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		size_t n = hear(CH_OUT);

		for (size_t i = 0; i < n; i++)
			CHECK(packet.data[i] == byte_at(got + i));
		got += n;
	}
}

TEST(a_client_that_does_not_read_stops_the_command_and_loses_nothing)
{
	start();
	size_t written = write_until_full(out_fd);

	printf("# full after %zu bytes\n", written);
	CHECK(written > 0);
	read_output(written);
	CHECK(!readable(client_fd, 50));
	write_text(err_fd, "x"); /* and it goes on */
	CHECK_INT(hear(CH_ERR), 1);
	end();
}

TEST(the_first_bytes_up_to_the_limit_pass_and_then_none)
{
	static const struct {
		size_t limit, piece, pieces;
	} cases[] = {
		{ 1000, 4096, 1 }, { 1000, 1000, 1 }, { 1000, 999, 1 },    { 1000, 1, 3 },
		{ 1000, 300, 9 },  { 1, 5, 2 },       { 70000, 4096, 40 },
	};

	plan.named[LIMIT_OUTPUT] = true;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t total = cases[i].piece * cases[i].pieces, got = 0;
		char bytes[4096];

		printf("# %zu of %zu\n", cases[i].limit, total);
		plan.limits[LIMIT_OUTPUT] = cases[i].limit;
		start();
		for (size_t k = 0; k < cases[i].pieces; k++) {
			for (size_t b = 0; b < cases[i].piece; b++)
				bytes[b] = (char)byte_at(k * cases[i].piece + b);
			CHECK_INT(write(out_fd, bytes, cases[i].piece), cases[i].piece);
		}
		while (readable(client_fd, got < total && got < cases[i].limit ? 5000 : 50)) {
			size_t n = hear(CH_OUT);

			for (size_t b = 0; b < n; b++)
				CHECK(packet.data[b] == byte_at(got + b));
			got += n;
		}
		CHECK_INT(got, total < cases[i].limit ? total : cases[i].limit);
		end();
	}
}

TEST(a_default_limit_cuts_nothing)
{
	plan.limits[LIMIT_OUTPUT] = 1;
	start();
	write_text(out_fd, "more than one");
	CHECK_INT(hear(CH_OUT), 13);
	end();
}

/* ---- input ------------------------------------------------------------------------- */

TEST(input_arrives_in_order_and_then_its_end)
{
	char text[16] = "";

	start();
	say(CH_IN, "one ", 4);
	say(CH_IN, "two", 3);
	say(CH_EOF, NULL, 0);
	for (size_t got = 0; got < 7;) {
		ssize_t n = read(in_fd, text + got, sizeof text - 1 - got);

		CHECK(n > 0);
		got += (size_t)n;
	}
	CHECK_STR(text, "one two");
	CHECK_INT(read(in_fd, text, sizeof text), 0);
	end();
}

/* Sends all of a stream as input, from a process of its own: it may have to wait. */
static pid_t start_typing(size_t bytes)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		unsigned char chunk[10000];

		fd_close(&in_fd); /* the command's end is not the client's */
		for (size_t at = 0; at < bytes; at += sizeof chunk) {
			for (size_t i = 0; i < sizeof chunk; i++)
				chunk[i] = byte_at(at + i);
			say(CH_IN, chunk, sizeof chunk);
		}
		say(CH_EOF, NULL, 0);
		_exit(0);
	}
	return pid;
}

/* Reads to the end, as the command, with a rest after each piece. */
static void read_input(size_t bytes, useconds_t rest_us)
{
	size_t got = 0;

	for (ssize_t n = 1; n > 0; got += (size_t)n) {
		unsigned char chunk[5003];

		n = read(in_fd, chunk, sizeof chunk);
		CHECK(n >= 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK(chunk[i] == byte_at(got + (size_t)i));
		usleep(rest_us);
	}
	CHECK_INT(got, bytes);
}

/* More than pipe and monitor hold: the client waits in its own socket, and nothing is lost. */
TEST(input_waits_for_a_command_that_reads_slowly)
{
	enum { BYTES = 1000000 };

	start();
	pid_t client = start_typing(BYTES);
	read_input(BYTES, 100);
	CHECK_INT(waitpid(client, NULL, 0), client);
	end();
}

/* Both directions full at once, each then drained: no byte is lost, and nobody waits for ever. */
TEST(blocked_output_does_not_cost_input)
{
	enum { BYTES = 1000000 };

	start();
	pid_t client = start_typing(BYTES);
	usleep(50000); /* input waits in the monitor */
	size_t written = write_until_full(out_fd);

	read_output(written); /* output flows again, input still waits */
	written = write_until_full(out_fd);
	read_input(BYTES, 0);
	read_output(written); /* and it was not forgotten while input flowed */
	CHECK_INT(waitpid(client, NULL, 0), client);
	end();
}

TEST(input_that_nobody_reads_any_more_is_dropped)
{
	start();
	fd_close(&in_fd);
	for (int i = 0; i < 10; i++)
		say(CH_IN, "lost", 4);
	say(CH_EOF, NULL, 0);
	write_text(out_fd, "still here");
	CHECK_INT(hear(CH_OUT), 10);
	end();
}

TEST(a_client_is_heard_after_the_command_closed_its_input)
{
	start();
	pid_t client = start_typing(200000); /* more than the pipe takes: some of it waits */
	usleep(50000);
	fd_close(&in_fd);
	CHECK_INT(waitpid(client, NULL, 0), client);
	end_by_signal();
	end();
}

/* ---- what else a client says ------------------------------------------------------- */

TEST(a_signal_reaches_the_command)
{
	start();
	end_by_signal();
	end();
}

/* Neither obeyed nor a reason to fall over. */
TEST(messages_that_make_no_sense_are_ignored)
{
	static const int32_t signals[] = { 0, -1, -9, 65, 1000, INT32_MIN, INT32_MAX };
	static const uint32_t types[] = { CH_STARTED, CH_OUT, CH_ERR,   CH_FAIL,
		                          CH_END,     CH_GO,  CH_TYPES, UINT32_MAX };

	start();
	for (size_t i = 0; i < COUNT(signals); i++)
		say(CH_SIGNAL, &signals[i], sizeof signals[i]);
	say(CH_SIGNAL, "xx", 2);
	say(CH_SIGNAL, NULL, 0);
	say(CH_RESIZE, "size", 4); /* it has no terminal */
	say(CH_RESIZE, NULL, 0);
	for (size_t i = 0; i < COUNT(types); i++)
		say((enum channel_type)types[i], "data", 4);
	say(CH_IN, "through", 7);
	CHECK(readable(in_fd, 5000));
	CHECK_INT(read(in_fd, packet.data, sizeof packet.data), 7);
	CHECK(!readable(client_fd, 0));
	CHECK_INT(kill(m.command.pid, 0), 0);
	CHECK_INT(waitpid(m.command.pid, NULL, WNOHANG), 0);
	end();
}
