#include "wire/channel.h"

#include "test.h"

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
