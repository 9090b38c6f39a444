/* Named shells of a kept sandbox: one process, many commands, each with its number, log and end. */
#include "test_box.h"

static struct test_box t;
static struct channel_shell told;
static const char *told_text;

static void start(void)
{
	box_start(&t, true, (const char *const[]){ NULL });
	box_await(&t, CH_READY, 0);
}

static void stop(void)
{
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

static int ask(uint32_t num, const char *script, struct command_ask ask)
{
	char *const argv[] = { (char *)(uintptr_t) "main", (char *)(uintptr_t)script, NULL };

	ask.argv = argv;
	ask.is_shell = ask.wants_usage = true;
	return box_exec(&t, num, ask);
}

/* The state that is told last before the end of the command. */
static struct channel_end await_end(uint32_t num)
{
	struct channel_end end;

	for (;;) {
		CHECK(box_hear(&t, TEST_WAIT_MS));
		CHECK(t.packet.head.type != CH_FAIL);
		if (t.packet.head.type == CH_SHELL) {
			static unsigned char data[CHANNEL_DATA_MAX];

			memcpy(data, t.packet.data, t.packet.head.len);
			CHECK(channel_shell_read(&told, &told_text, data, t.packet.head.len));
		}
		if (t.packet.head.type != CH_EXIT || t.packet.head.num != num)
			continue;
		CHECK(channel_end_read(&end, t.packet.data, t.packet.head.len));
		return end;
	}
}

static void run(uint32_t num, const char *script, int exit_code, const char *output)
{
	AUTO(fd_close) int log = ask(num, script, (struct command_ask){ 0 });
	struct channel_end end = await_end(num), written;

	CHECK_INT(end.state, RUN_EXITED);
	CHECK_INT(end.exit_code, exit_code);
	CHECK_INT(log_end(log, &written), 1);
	CHECK_INT(written.exit_code, exit_code);
	CHECK_STR(box_text(log, LOG_OUT), output);
}

static void say(enum channel_type type, struct channel_shell s, const char *text, size_t n)
{
	unsigned char data[1024];

	snprintf(s.name, sizeof s.name, "main");
	s.text_len = (uint32_t)n;
	memcpy(data, &s, sizeof s);
	memcpy(data + sizeof s, text, n);
	box_say(&t, type, 0, data, sizeof s + n);
}

TEST(one_shell_serves_many_commands)
{
	start();
	run(1, "cd /tmp; x=1", 0, "");
	CHECK_STR(shell_text_cwd(told_text), "/tmp");
	CHECK_INT(told.flags, SHELL_LIVES);
	for (uint32_t i = 2; i < 20; i++)
		run(i, "echo $PWD $x; (exit 3)", 3, "/tmp 1\n");
	run(20, "exit 5", 5, "");
	CHECK_INT(told.flags, 0);
	run(21, "echo $PWD [$x]", 0, "/tmp []\n");
	CHECK_INT(told.flags, SHELL_LIVES | SHELL_RESTARTED);
	CHECK_STR(told.reason, "it ended with exit status 5");
	stop();
}

TEST(a_shell_that_works_takes_no_other_command)
{
	start();
	AUTO(fd_close) int first = ask(1, "sleep 100", (struct command_ask){ 0 });
	AUTO(fd_close) int second = ask(2, "true", (struct command_ask){ 0 });
	box_await(&t, CH_FAIL, 2);
	box_say(&t, CH_KILL, 1, NULL, 0);
	CHECK_INT(await_end(1).state, RUN_KILLED);
	box_say(&t, CH_KILL, 1, NULL, 0); /* nobody has that number any more */
	run(3, "echo hi", 0, "hi\n");
	CHECK(told.flags & SHELL_RESTARTED);
	box_say(&t, CH_KILL, 3, NULL, 0); /* it has ended: the shell is not meant */
	told.flags = 0;
	run(4, "echo ho", 0, "ho\n");
	CHECK(!(told.flags & SHELL_RESTARTED));
	stop();
}

TEST(the_next_client_hears_of_it_and_goes_on)
{
	start();
	run(1, "cd /usr; x=1", 0, "");
	AUTO(fd_close) int log = ask(2, "sleep 0.3; cd /tmp; exit 4", (struct command_ask){ 0 });
	box_await(&t, CH_STARTED, 2);
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	box_await(&t, CH_SHELL, 2);
	CHECK_INT(await_end(2).exit_code, 4);
	box_connect(&t);
	box_await(&t, CH_READY, 0);
	box_say(&t, CH_SYNC, 0, NULL, 0);
	CHECK_INT(await_end(2).exit_code, 4);
	CHECK_INT(told.flags, 0);
	CHECK_STR(shell_text_cwd(told_text), "/usr");
	run(3, "pwd", 0, "/usr\n");
	stop();
}

TEST(a_shell_of_another_monitor_is_given_back_and_forgotten)
{
	static const char text[] = "bash\0/usr\0declare -x given=\"1\"\n";
	static const char younger[] = "bash\0/etc\0declare -x given=\"2\"\n";

	start();
	say(CH_SHELL, (struct channel_shell){ .reason = "it was elsewhere" }, text, sizeof text);
	run(1, "echo $PWD $given [$CI]", 0, "/usr 1 []\n");
	CHECK_STR(told.reason, "it was elsewhere");
	say(CH_SHELL, (struct channel_shell){ 0 }, younger, sizeof younger); /* known already */
	run(2, "echo $PWD $given", 0, "/usr 1\n");
	say(CH_DROP, (struct channel_shell){ 0 }, "", 0);
	run(3, "echo [$given]", 0, "[]\n");
	CHECK_INT(told.flags, SHELL_LIVES);
	box_say(&t, CH_SHELL, 0, "short", 5);
	box_say(&t, CH_DROP, 0, NULL, 0);
	run(4, "echo [$given]", 0, "[]\n");
	stop();
}

TEST(input_ends_and_begins_again)
{
	start();
	for (uint32_t i = 1; i < 4; i++) {
		AUTO(fd_close) int log = ask(i, "cat", (struct command_ask){ .has_stdin = true });

		box_say(&t, CH_IN, i, "typed", 5);
		box_say(&t, CH_EOF, i, NULL, 0);
		CHECK_INT(await_end(i).exit_code, 0);
		CHECK_STR(box_text(log, LOG_OUT), "typed");
		run(i + 10, "cat", 0, "");
	}
	stop();
}

TEST(what_is_left_running_is_ended_when_that_was_asked)
{
	static const char script[] = "sleep 100 & setsid sleep 101 & sleep 0.1; echo ok";

	start();
	AUTO(fd_close) int in_shell = ask(1, script, (struct command_ask){ .is_alone = true });
	struct channel_end end = await_end(1);
	CHECK_INT(end.state, RUN_EXITED);
	if (cgroup_has_leaves(&t.box.cgroup))
		CHECK_INT(end.n_children, 0);
	run(2, "echo on", 0, "on\n");

	char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
		               (char *)(uintptr_t)script, NULL };
	AUTO(fd_close)
	int plain = box_exec(
	    &t, 3, (struct command_ask){ .argv = argv, .wants_usage = true, .is_alone = true });
	end = await_end(3);
	CHECK_INT(end.exit_code, 0);
	if (cgroup_has_leaves(&t.box.cgroup))
		CHECK_INT(end.n_children, 0);
	CHECK_STR(box_text(plain, LOG_OUT), "ok\n");
	stop();
}

TEST(a_malformed_command_for_a_shell_fails_alone)
{
	static const char *const names[] = { "", "a/b", "a b" };

	start();
	for (uint32_t i = 0; i < COUNT(names); i++) {
		char *const argv[] = { (char *)(uintptr_t)names[i], (char *)(uintptr_t) "true",
			               NULL };
		AUTO(fd_close)
		int log =
		    box_exec(&t, i + 1, (struct command_ask){ .argv = argv, .is_shell = true });

		box_await(&t, CH_FAIL, i + 1);
	}
	char *const alone[] = { (char *)(uintptr_t) "main", NULL };
	AUTO(fd_close)
	int log = box_exec(&t, 8, (struct command_ask){ .argv = alone, .is_shell = true });
	box_await(&t, CH_FAIL, 8);
	run(9, "echo hi", 0, "hi\n");
	stop();
}
