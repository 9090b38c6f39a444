#include "engine/spawn.h"

#include <sys/socket.h>

#include "base/fd.h"
#include "os/sock.h"

#include "test.h"

/* ---- what the command's process says ----------------------------------------------- */

/* A descriptor that finds no room in our table is taken away by the kernel, without an error. */
TEST(a_gift_that_did_not_arrive_is_a_failure_of_ours)
{
	static const struct {
		char letter;
		bool is_given;
		enum spawn_word word;
	} cases[] = {
		{ GIFT_LISTENER, true, SPAWN_WORD },
		{ GIFT_LISTENER, false, SPAWN_FAILED },
		{ GIFT_PTY, true, SPAWN_WORD },
		{ GIFT_PTY, false, SPAWN_FAILED },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spawn_command c = { .listener_fd = -1, .pty_fd = -1, .pid = 1 };
		struct err e = { 0 };
		int pair[2];

		printf("# case %zu\n", i);
		CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET | SOCK_NONBLOCK), 0);
		AUTO(fd_close) int mouth = pair[1];
		c.report_fd = pair[0];
		CHECK_INT(os_send(mouth, &cases[i].letter, 1, &mouth, cases[i].is_given ? 1 : 0),
		          1);
		CHECK_INT(spawn_hear(&c, &e), cases[i].word);
		CHECK_INT(e.sys, cases[i].word == SPAWN_FAILED ? EMFILE : 0);
		CHECK_INT(c.listener_fd >= 0,
		          cases[i].is_given && cases[i].letter == GIFT_LISTENER);
		CHECK_INT(c.pty_fd >= 0, cases[i].is_given && cases[i].letter == GIFT_PTY);
		fd_close(&c.listener_fd);
		fd_close(&c.pty_fd);
		fd_close(&c.report_fd);
	}
}

/* The monitor would never hear of a program start: nothing may run so. */
TEST(a_filter_without_its_listener_is_refused)
{
	static const char letter = GIFT_NONE;
	struct spawn_command c = { .listener_fd = -1, .pty_fd = -1, .pid = 1 };
	struct err e = { 0 };
	int pair[2];

	CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET | SOCK_NONBLOCK), 0);
	AUTO(fd_close) int mouth = pair[1];
	AUTO(fd_close) int ear = pair[0];
	c.report_fd = ear;
	CHECK_INT(os_send(mouth, &letter, 1, NULL, 0), 1);
	CHECK_INT(spawn_hear(&c, &e), SPAWN_FAILED);
	CHECK_STR(e.msg, "prove the walls: notify: no program start is reported");
}

TEST(the_walls_that_were_proved_are_heard)
{
	static const struct proof_word word = { .proved = WALL_BIT(WALL_LANDLOCK) };
	struct spawn_command c = { .listener_fd = -1, .pty_fd = -1, .pid = 1 };
	struct err e = { 0 };
	int pair[2];

	CHECK_INT(os_socketpair(pair, SOCK_SEQPACKET | SOCK_NONBLOCK), 0);
	AUTO(fd_close) int mouth = pair[1];
	AUTO(fd_close) int ear = pair[0];
	c.report_fd = ear;
	CHECK_INT(os_send(mouth, &word, sizeof word, NULL, 0), sizeof word);
	CHECK_INT(spawn_hear(&c, &e), SPAWN_WORD);
	CHECK(c.is_proved);
	CHECK_INT(c.proved, WALL_BIT(WALL_LANDLOCK));
}
