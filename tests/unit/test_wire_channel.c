#include "wire/channel.h"

#include "test.h"

/* Copied whole, padding included. */
static bool is_same(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n) == 0;
}

TEST(every_end_has_its_exit_status_and_word)
{
	static const struct {
		struct channel_end end;
		int status;
		const char *word;
	} cases[] = {
		{ { .state = RUN_EXITED, .exit_code = 0 }, 0, "exited" },
		{ { .state = RUN_EXITED, .exit_code = 1 }, 1, "exited" },
		{ { .state = RUN_EXITED, .exit_code = 255 }, 255, "exited" },
		{ { .state = RUN_SIGNALED, .exit_code = -1, .signal = 6 }, 134, "signaled" },
		{ { .state = RUN_SIGNALED, .exit_code = -1, .signal = 64 }, 192, "signaled" },
		{ { .state = RUN_KILLED, .exit_code = -1, .signal = 15 }, 143, "killed" },
		{ { .state = RUN_KILLED, .exit_code = 3 }, 3, "killed" }, /* it heeded SIGTERM */
		{ { .state = RUN_TIMEOUT, .exit_code = -1, .signal = 15 }, 124, "timeout" },
		{ { .state = RUN_TIMEOUT, .exit_code = 3 }, 124, "timeout" },
		{ { .state = RUN_EXPIRED, .exit_code = -1, .signal = 9 }, 124, "expired" },
		{ { .state = RUN_OOM, .exit_code = -1, .signal = 9 }, 137, "oom" },
		{ { .state = RUN_LOST, .exit_code = -1, .signal = 9 }, 125, "lost" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct channel_end *end = &cases[i].end;

		CHECK_STR(run_state_name((enum run_state)end->state), cases[i].word);
		CHECK_INT(run_exit_status(end), cases[i].status);
	}
}

/* A report comes over a socket: a number out of range must neither crash nor look like success. */
TEST(a_state_that_nobody_knows_is_lost)
{
	static const uint32_t states[] = { RUN_LOST + 1, 1000, INT32_MAX, (uint32_t)INT32_MIN,
		                           UINT32_MAX };

	for (size_t i = 0; i < COUNT(states); i++) {
		struct channel_end end = { .state = states[i] };

		CHECK_STR(run_state_name((enum run_state)states[i]), "lost");
		CHECK_INT(run_exit_status(&end), 125);
	}
}

/* Only the execs that there are travel. */
TEST(an_end_comes_out_as_it_went_in)
{
	static const uint32_t counts[] = { 0, 1, 2, CHANNEL_EXECS_MAX, CHANNEL_EXECS_MAX + 7 };

	for (size_t i = 0; i < COUNT(counts); i++) {
		struct channel_end end = { .state = RUN_OOM,
			                   .exit_code = -1,
			                   .signal = 9,
			                   .reason = "mem limit of 1 bytes reached",
			                   .out_bytes = 1ull << 40,
			                   .n_children = 1,
			                   .children = { { 7, "sleep" } },
			                   .n_execs = counts[i] };
		struct channel_end out;
		size_t n;

		for (uint32_t k = 0; k < counts[i] && k < CHANNEL_EXECS_MAX; k++)
			snprintf(end.execs[k], sizeof end.execs[k], "program %u", k);
		n = channel_end_size(&end);
		CHECK(n <= sizeof end);
		AUTO(freep) unsigned char *bytes = mem_alloc(n);
		memcpy(bytes, &end, n);
		CHECK(channel_end_read(&out, bytes, n));
		CHECK(is_same(&out, &end, sizeof end));
	}
}

TEST(an_end_that_no_monitor_has_said_is_refused)
{
	static const struct {
		struct channel_end end;
		size_t n;
	} cases[] = {
		{ { .state = RUN_LOST + 1 }, sizeof(struct channel_end) },
		{ { .state = UINT32_MAX }, sizeof(struct channel_end) },
		{ { .exit_code = -2 }, sizeof(struct channel_end) },
		{ { .exit_code = 256 }, sizeof(struct channel_end) },
		{ { .signal = -1 }, sizeof(struct channel_end) },
		{ { .signal = 65 }, sizeof(struct channel_end) },
		{ { 0 }, 0 },
		{ { 0 }, offsetof(struct channel_end, execs) - 1 },
		{ { 0 }, sizeof(struct channel_end) + 1 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(freep)
		unsigned char *bytes = mem_alloc(cases[i].n + sizeof(struct channel_end));
		struct channel_end out;

		printf("# case %zu\n", i);
		memcpy(bytes, &cases[i].end, sizeof cases[i].end);
		CHECK(!channel_end_read(&out, bytes, cases[i].n));
	}
}

TEST(texts_in_an_end_are_closed_by_the_reader)
{
	struct channel_end end = { .n_children = 1, .n_execs = CHANNEL_EXECS_MAX }, out;

	memset(end.reason, 'r', sizeof end.reason);
	memset(end.children[0].name, 'c', sizeof end.children[0].name);
	memset(end.execs, 'e', sizeof end.execs);
	CHECK(channel_end_read(&out, &end, sizeof end));
	CHECK_INT(strlen(out.reason), sizeof out.reason - 1);
	CHECK_INT(strlen(out.children[0].name), sizeof out.children[0].name - 1);
	CHECK_INT(strlen(out.execs[CHANNEL_EXECS_MAX - 1]), CHANNEL_EXEC_TEXT - 1);
}

TEST(a_shell_has_a_plain_name)
{
	static const struct {
		const char *name;
		bool is_good;
	} cases[] = {
		{ "main", true }, { "a.b_c-D9", true }, { "-", true },    { "", false },
		{ "a b", false }, { "a/b", false },     { "a\n", false }, { "\xc3\xa9", false },
	};
	char long_name[SHELL_NAME_SIZE + 1];

	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK_INT(shell_name_is(cases[i].name, strlen(cases[i].name)), cases[i].is_good);
	memset(long_name, 'x', sizeof long_name);
	CHECK(shell_name_is(long_name, SHELL_NAME_SIZE - 1));
	CHECK(!shell_name_is(long_name, SHELL_NAME_SIZE));
}

/* What a shell says comes from inside. */
TEST(a_shell_is_three_strings_and_nothing_else)
{
	static const struct {
		const char *name, *text;
		size_t n;
		bool is_good;
	} cases[] = {
		{ "main", "bash\0/tmp\0export A=1\n", 22, true },
		{ "main", "\0\0", 3, true },
		{ "main", "", 0, true },
		{ "main", "\0\0\0", 4, false },
		{ "main", "\0x", 2, false },
		{ "main", "a\0b\0c", 5, false },
		{ "ma in", "", 0, false },
		{ "", "", 0, false },
	};
	unsigned char bytes[512];
	struct channel_shell got;
	const char *text;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct channel_shell s = { .flags = 3, .text_len = (uint32_t)cases[i].n };

		snprintf(s.name, sizeof s.name, "%s", cases[i].name);
		memset(s.reason, 'r', sizeof s.reason);
		memcpy(bytes, &s, sizeof s);
		memcpy(bytes + sizeof s, cases[i].text, cases[i].n);
		CHECK_INT(channel_shell_read(&got, &text, bytes, sizeof s + cases[i].n),
		          cases[i].is_good);
		CHECK_INT(strlen(got.reason), sizeof got.reason - 1);
		CHECK(!channel_shell_read(&got, &text, bytes, sizeof s + cases[i].n + 1));
		CHECK(!channel_shell_read(&got, &text, bytes, sizeof s - 1));
	}
	CHECK_STR(shell_text_cwd("bash\0/tmp\0A"), "/tmp");
	CHECK_STR(shell_text_env("bash\0/tmp\0A"), "A");
}
