/* Deadlines, seen by the client of a sandbox. */
#include "test_box.h"

static struct test_box t;

static void run(const char *const *flags, const char *script, uint64_t timeout_ms)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
		               (char *)(uintptr_t)script, NULL };

	box_start(&t, true, flags);
	box_await(&t, CH_READY, 0);
	AUTO(fd_close)
	int log = box_exec(&t, 1, (struct command_ask){ .argv = argv, .timeout_ms = timeout_ms });
}

/* Not before its time; the upper bound is only for a clock that stands. */
static void check_end(enum run_state state, const char *reason, uint64_t least_ms)
{
	struct channel_end end = box_await_exit(&t, 1);

	printf("# %s after %llu ms: %s\n", run_state_name((enum run_state)end.state),
	       (unsigned long long)end.ms, end.reason);
	CHECK_INT(end.state, state);
	CHECK_STR(end.reason, reason);
	CHECK(end.ms >= least_ms);
	CHECK(end.ms < least_ms + TEST_WAIT_MS);
}

#define FLAGS(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

TEST(a_timeout_ends_the_process_and_not_the_sandbox)
{
	run(FLAGS("wall", "60s", "idle", "60s"), "sleep 100", 1500);
	check_end(RUN_TIMEOUT, "timeout reached", 1500);
	AUTO(fd_close) int log = box_sh(&t, 2, "echo still here");
	CHECK_INT(box_await_exit(&t, 2).exit_code, 0);
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

static void check_gone(const char *reason)
{
	struct channel_gone gone;

	box_await(&t, CH_END, 0);
	memcpy(&gone, t.packet.data, sizeof gone);
	CHECK_INT(gone.state, RUN_EXPIRED);
	CHECK_STR(gone.reason, reason);
	box_end(&t);
}

TEST(the_wall_limit_ends_the_sandbox)
{
	run(FLAGS("wall", "2s", "idle", "60s"), "sleep 100", 60000);
	check_end(RUN_EXPIRED, "wall limit reached", 2000);
	check_gone("wall limit reached");
}

TEST(the_wall_limit_counts_from_the_first_command)
{
	box_start(&t, true, FLAGS("wall", "4s"));
	box_await(&t, CH_READY, 0);
	usleep(4100000);
	AUTO(fd_close) int log = box_sh(&t, 1, "exit 3");
	CHECK_INT(box_await_exit(&t, 1).exit_code, 3);
	check_gone("wall limit reached");
}

TEST(the_wall_limit_can_be_moved)
{
	uint64_t later = 5000;

	run(FLAGS("wall", "4s"), "sleep 100", 0);
	box_say(&t, CH_EXTEND, 0, &later, sizeof later);
	check_end(RUN_EXPIRED, "wall limit reached", 5000);
	check_gone("wall limit reached");
}

TEST(idle_is_no_byte_and_no_work)
{
	static const struct {
		const char *script;
		uint64_t least_ms;
	} cases[] = {
		{ "sleep 100", 2000 },
		{ "sleep 0.5; echo; sleep 100", 2500 }, /* a byte starts the time anew */
		{ "timeout 3 sh -c 'while :; do :; done'; sleep 100", 3000 }, /* so does work */
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		run(FLAGS("idle", "2s"), cases[i].script, 0);
		check_end(RUN_EXPIRED, "idle limit reached", cases[i].least_ms);
		check_gone("idle limit reached");
	}
}

/* Who ignores SIGTERM has two seconds. */
TEST(grace_ends_too)
{
	run(FLAGS(), "trap '' TERM; while :; do sleep 1; done", 4000); /* till it is set */
	check_end(RUN_TIMEOUT, "timeout reached", 6000);
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}
