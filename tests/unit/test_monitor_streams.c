/* Bytes between the client of a sandbox and its processes. */
#include "test_box.h"

static struct test_box t;

#define FLAGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

static void start(const char *const *flags)
{
	box_start(&t, true, flags);
	box_await(&t, CH_READY, 0);
}

static void stop(void)
{
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

static int sh(uint32_t num, const char *script, struct command_ask ask)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
		               (char *)(uintptr_t)script, NULL };

	ask.argv = argv;
	return box_exec(&t, num, ask);
}

/* ---- output ------------------------------------------------------------------------ */

/* Copied whole, padding included. */
static bool is_same(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

TEST(both_streams_are_in_the_log_under_their_own_name)
{
	start(FLAGS());
	AUTO(fd_close) int log = box_sh(&t, 1, "echo to out; echo to err >&2; exit 4");
	struct channel_end end = box_await_exit(&t, 1);

	CHECK_INT(end.exit_code, 4);
	CHECK_INT(end.out_bytes, 7);
	CHECK_INT(end.err_bytes, 7);
	CHECK_STR(box_text(log, LOG_OUT), "to out\n");
	CHECK_STR(box_text(log, LOG_ERR), "to err\n");
	stop();
}

TEST(merged_streams_are_one_and_in_order)
{
	start(FLAGS());
	AUTO(fd_close)
	int log = sh(1, "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done",
	             (struct command_ask){ .is_merged = true });
	struct channel_end end = box_await_exit(&t, 1);

	CHECK_STR(box_text(log, LOG_OUT), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
	CHECK_STR(box_text(log, LOG_ERR), "");
	CHECK_INT(end.out_bytes, 30);
	stop();
}

TEST(the_end_is_in_the_log_before_it_is_told)
{
	struct channel_end told, written;

	start(FLAGS());
	AUTO(fd_close) int log = box_sh(&t, 1, "sh -c 'exit 9'; kill -9 $$");
	told = box_await_exit(&t, 1);
	CHECK_INT(told.state, RUN_SIGNALED);
	CHECK_INT(told.signal, SIGKILL);
	CHECK_INT(told.n_execs, 2);
	CHECK_STR(told.execs[1], "sh -c exit 9");
	CHECK_INT(log_end(log, &written), 1);
	CHECK(is_same(&told, &written, sizeof written));
	stop();
}

TEST(only_the_first_bytes_up_to_the_limit_are_taken)
{
	start(FLAGS("output", "70000"));
	AUTO(fd_close) int log = box_sh(&t, 1, "head -c 200000 /dev/zero | tr '\\0' x; echo >&2");
	struct channel_end end = box_await_exit(&t, 1);

	CHECK_INT(strlen(box_text(log, LOG_OUT)) + strlen(box_text(log, LOG_ERR)), 70000);
	CHECK_INT(end.out_bytes, 200000);
	CHECK_INT(end.dropped_bytes, 130001);
	stop();
}

/* Rings once, and again when asked: a client that does not care is left in peace. */
TEST(a_doorbell_rings_once_until_it_is_answered)
{
	int rings = 0;
	uint64_t at = 0;

	start(FLAGS());
	AUTO(fd_close) int log = box_sh(&t, 1, "for i in 1 2 3 4; do echo $i; sleep 0.05; done");
	do {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		rings += t.packet.head.type == CH_GREW;
	} while (t.packet.head.type != CH_EXIT);
	CHECK_INT(rings, 1);
	AUTO(fd_close)
	int second = sh(2, "for i in 1 2 3 4; do echo $i; read x; done",
	                (struct command_ask){ .has_stdin = true });
	for (rings = 0; t.packet.head.type != CH_EXIT || t.packet.head.num != 2;) {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		if (t.packet.head.type != CH_GREW)
			continue;
		memcpy(&at, t.packet.data, sizeof at);
		box_say(&t, CH_ACK, 2, &at, sizeof at);
		box_say(&t, CH_IN, 2, "\n", 1);
		rings++;
	}
	CHECK_INT(rings, 4);
	stop();
}

static uint64_t size_now(int log)
{
	uint64_t at = LOG_FRAMES_AT, skipped;
	static unsigned char bytes[LOG_FRAME_DATA_MAX];
	struct log_frame f;

	while (log_next(log, &at, &f, bytes, &skipped) == 1)
		;
	return at;
}

/* With a window a command waits for its reader, and loses nothing. */
TEST(a_window_holds_the_command_back)
{
	enum { WINDOW = 200000, BYTES = 3000000 };
	char script[64];

	start(FLAGS());
	snprintf(script, sizeof script, "head -c %d /dev/zero", BYTES);
	AUTO(fd_close) int log = sh(1, script, (struct command_ask){ .window = WINDOW });
	box_await(&t, CH_GREW, 1);
	AWAIT(size_now(log) - LOG_FRAMES_AT > WINDOW);
	usleep(300000);
	uint64_t at = size_now(log);
	printf("# %llu bytes ahead\n", (unsigned long long)(at - LOG_FRAMES_AT));
	CHECK(at - LOG_FRAMES_AT > WINDOW);
	CHECK(at - LOG_FRAMES_AT < WINDOW + 3 * LOG_FRAME_DATA_MAX);
	do {
		at = size_now(log);
		box_say(&t, CH_ACK, 1, &at, sizeof at);
		CHECK(box_hear(&t, TEST_WAIT_MS));
	} while (t.packet.head.type != CH_EXIT);
	struct channel_end end;
	CHECK(channel_end_read(&end, t.packet.data, t.packet.head.len));
	CHECK_INT(end.out_bytes, BYTES);
	CHECK_INT(end.dropped_bytes, 0);
	CHECK_INT(end.exit_code, 0);
	stop();
}

/* What a background child holds open does not hold the end up, and what it writes is kept. */
TEST(what_lives_on_goes_on_writing_to_the_log)
{
	start(FLAGS());
	AUTO(fd_close)
	int log =
	    box_sh(&t, 1, "(until [ -e /tmp/go ]; do sleep 0.02; done; echo late) & echo early");
	struct channel_end end = box_await_exit(&t, 1);

	CHECK_STR(box_text(log, LOG_OUT), "early\n");
	if (cgroup_has_leaves(&t.box.cgroup)) {
		CHECK_INT(end.n_children > 0, 1);
		CHECK_STR(end.children[0].name, "sh");
	}
	uint64_t at = size_now(log);
	box_say(&t, CH_ACK, 1, &at, sizeof at);
	AUTO(fd_close) int go = box_sh(&t, 2, "touch /tmp/go");
	box_await(&t, CH_GREW, 1);
	CHECK_STR(box_text(log, LOG_OUT), "early\nlate\n");
	stop();
}

/* ---- input ------------------------------------------------------------------------- */

TEST(input_arrives_in_order_and_then_its_end)
{
	start(FLAGS());
	AUTO(fd_close) int log = sh(1, "cat; echo .", (struct command_ask){ .has_stdin = true });
	box_say(&t, CH_IN, 1, "one ", 4);
	box_say(&t, CH_IN, 1, "two", 3);
	box_say(&t, CH_EOF, 1, NULL, 0);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "one two.\n");
	stop();
}

/* One that does not read does not hold up another, nor the client. */
TEST(input_of_one_does_not_wait_for_another)
{
	static unsigned char bytes[30000];

	start(FLAGS());
	AUTO(fd_close) int deaf = sh(1, "sleep 100", (struct command_ask){ .has_stdin = true });
	for (int i = 0; i < 20; i++)
		box_say(&t, CH_IN, 1, bytes, sizeof bytes); /* more than pipe and monitor hold */
	AUTO(fd_close) int log = sh(2, "wc -c", (struct command_ask){ .has_stdin = true });
	box_say(&t, CH_IN, 2, bytes, sizeof bytes);
	box_say(&t, CH_EOF, 2, NULL, 0);
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "30000\n");
	stop();
}

/* All of it, by the rules: no more is under way than the monitor has room for. */
TEST(a_slow_reader_gets_every_byte)
{
	enum { BYTES = 1000000, PIECE = 20000 };
	static unsigned char bytes[PIECE];
	uint64_t sent = 0, took = 0;

	start(FLAGS());
	AUTO(fd_close)
	int log =
	    sh(1, "sleep 0.2; md5sum | cut -c1-32", (struct command_ask){ .has_stdin = true });
	while (took < BYTES) {
		while (sent < BYTES && sent - took + PIECE <= CHANNEL_INPUT_MAX) {
			memset(bytes, (int)(sent / PIECE), PIECE);
			box_say(&t, CH_IN, 1, bytes, PIECE);
			sent += PIECE;
		}
		box_await(&t, CH_TOOK, 1);
		memcpy(&took, t.packet.data, sizeof took);
	}
	CHECK_INT(took, BYTES);
	box_say(&t, CH_EOF, 1, NULL, 0);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "44edea8250ba92b519fa17644a9eca8f\n");
	stop();
}

TEST(input_that_nobody_reads_any_more_is_dropped)
{
	start(FLAGS());
	AUTO(fd_close)
	int log = sh(1, "exec <&-; sleep 0.3", (struct command_ask){ .has_stdin = true });
	usleep(100000);
	for (int i = 0; i < 10; i++)
		box_say(&t, CH_IN, 1, "lost", 4);
	box_say(&t, CH_EOF, 1, NULL, 0);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	stop();
}

/* ---- terminals --------------------------------------------------------------------- */

TEST(a_terminal_has_its_size_echo_and_end)
{
	const struct channel_size size = { .rows = 50, .cols = 132 };
	struct command_ask ask = { .is_tty = true, .has_stdin = true, .rows = 24, .cols = 80 };

	start(FLAGS());
	AUTO(fd_close) int log = sh(1, "stty size; read x; stty size; cat; echo over", ask);
	AWAIT(strstr(box_text(log, LOG_OUT), "\r\n"));
	box_say(&t, CH_RESIZE, 1, &size, sizeof size);
	box_say(&t, CH_IN, 1, "go\n", 3);
	box_say(&t, CH_EOF, 1, NULL, 0);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 0);
	CHECK_STR(box_text(log, LOG_OUT), "24 80\r\ngo\r\n50 132\r\nover\r\n");
	stop();
}

TEST(who_waits_for_input_is_told_of)
{
	uint32_t on = 1;
	static const bool ttys[] = { false, true };

	for (size_t i = 0; i < COUNT(ttys); i++) {
		struct command_ask ask = { .is_tty = ttys[i], .has_stdin = true };

		start(FLAGS());
		AUTO(fd_close) int busy = sh(1, "sleep 100", ask);
		AUTO(fd_close) int log = sh(2, "printf name?; read x; echo $x", ask);
		box_say(&t, CH_WATCH, 1, &on, sizeof on);
		box_say(&t, CH_WATCH, 2, &on, sizeof on);
		do {
			CHECK(box_hear(&t, TEST_WAIT_MS));
			CHECK(t.packet.head.type != CH_WAITING || t.packet.head.num == 2);
		} while (t.packet.head.type != CH_WAITING);
		box_say(&t, CH_IN, 2, "ann\n", 4);
		CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
		stop();
	}
}

/* ---- what makes no sense ----------------------------------------------------------- */

TEST(messages_that_make_no_sense_are_ignored)
{
	static const int32_t signals[] = { 0, -1, -9, 65, 1000, INT32_MIN, INT32_MAX };

	start(FLAGS());
	AUTO(fd_close) int log = sh(1, "cat", (struct command_ask){ .has_stdin = true });
	box_await(&t, CH_STARTED, 1);
	for (size_t i = 0; i < COUNT(signals); i++) {
		const struct channel_signal s = { signals[i], SCOPE_PROCESS };

		box_say(&t, CH_SIGNAL, 1, &s, sizeof s);
	}
	box_say(&t, CH_SIGNAL, 1, &(struct channel_signal){ SIGKILL, 7 },
	        sizeof(struct channel_signal));
	for (uint32_t type = 0; type <= CH_TYPES; type++)
		if (type != CH_CLOSE && type != CH_STOP && type != CH_EOF && type != CH_KILL &&
		    type != CH_FREEZE && type != CH_HOLD && type != CH_IN)
			box_say(&t, (enum channel_type)type, 99, "data", type == CH_SYNC ? 0 : 4);
	box_say(&t, CH_RESIZE, 1, "size", 4); /* it has no terminal */
	box_say(&t, CH_KILL, 1, "xx", 2);
	CHECK_INT(send(t.fd, "short", 5, 0), 5);
	box_say(&t, CH_IN, 1, "through", 7);
	box_say(&t, CH_EOF, 1, NULL, 0);
	do /* two commands among them were malformed, and are said to have failed */
		CHECK(box_hear(&t, TEST_WAIT_MS));
	while (t.packet.head.type != CH_EXIT);
	CHECK_STR(box_text(log, LOG_OUT), "through");
	stop();
}
