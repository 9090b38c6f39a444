/* self.sock and the private descriptor of a shell: what comes from there does not hold up the
 * monitor. The attacker is this test, outside of the walls: in a sandbox SO_LINGER does nothing. */
#include <sys/pidfd.h>
#include <sys/stat.h>

#include "lingering.h"
#include "os/pulse.h"
#include "test_box.h"

static struct test_box t;

static void start(void)
{
	if (geteuid() != 0)
		SKIP("needs root: descriptors of the monitor are borrowed");
	box_start(&t, true, (const char *const[]){ NULL });
	box_await(&t, CH_READY, 0);
}

static void stop(void)
{
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

/* Every socket of the monitor takes descriptors, as on a kernel before 6.16. */
static void allow_all(void)
{
	AUTO(fd_close) int pidfd = pidfd_open(t.monitor_pid, 0);

	CHECK(pidfd >= 0);
	for (int i = 3; i < 64; i++) {
		AUTO(fd_close) int fd = pidfd_getfd(pidfd, i, 0);

		if (fd >= 0)
			linger_allow(fd);
	}
}

static pid_t child_of(pid_t parent)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
	CHECK(os_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	return (pid_t)strtol(text, NULL, 10);
}

static int dial_self(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/root/run/caisson", child_of(t.monitor_pid));
	AUTO(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = dir < 0 ? -1 : os_connect_at(dir, "self.sock", SOCK_STREAM);

	CHECK(fd >= 0);
	return fd;
}

/* How long until a command has run. */
static uint64_t answer_ms(uint32_t num)
{
	char *const argv[] = { (char *)(uintptr_t) "/bin/true", NULL };
	uint64_t began = linger_now();
	AUTO(fd_close) int log = box_exec(&t, num, (struct command_ask){ .argv = argv });

	box_await(&t, CH_EXIT, num);
	return linger_now() - began;
}

TEST(a_descriptor_that_is_sent_to_self_sock_does_not_hold_it_up)
{
	char answer[256];

	start();
	allow_all();
	AUTO(fd_close) int plain = dial_self();
	CHECK_INT(send(plain, "whoami\n", 7, 0), 7); /* control: it is served */
	struct pollfd wait = { .fd = plain, .events = POLLIN };
	CHECK_INT(poll(&wait, 1, TEST_WAIT_MS), 1);
	CHECK(recv(plain, answer, sizeof answer, 0) > 0);
	AUTO(fd_close) int one = dial_self();
	CHECK(linger_send(one, "w", 1));
	CHECK(answer_ms(1) < LINGER_SOON_MS);
	AUTO(fd_close) int two = dial_self();       /* closed unread, after the answer */
	CHECK_INT(kill(t.monitor_pid, SIGSTOP), 0); /* or it would have answered before */
	CHECK_INT(send(two, "whoami\n", 7, 0), 7);
	CHECK(linger_send(two, "x", 1));
	CHECK_INT(kill(t.monitor_pid, SIGCONT), 0);
	CHECK(answer_ms(2) < LINGER_SOON_MS);
	stop();
}

TEST(where_the_kernel_can_self_sock_takes_none)
{
	start();
	AUTO(fd_close) int one = dial_self();
	if (!os_refuse_fds(t.fd))
		SKIP("needs SO_PASSRIGHTS (Linux 6.16)");
	CHECK(!linger_send(one, "w", 1));
	stop();
}

/* While a shell executes a script it has closed SHELL_FD and keeps the socket under a higher
 * number. */
static int word_of(int pidfd)
{
	for (int i = 9; i < 20; i++) {
		AUTO(fd_close) int fd = pidfd_getfd(pidfd, i, 0);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
			return fd_take(&fd);
	}
	return -1;
}

TEST(a_descriptor_that_is_sent_as_the_word_of_a_shell_does_not_hold_it_up)
{
	char *const argv[] = { (char *)(uintptr_t) "main", (char *)(uintptr_t) "echo $$; sleep 60",
		               NULL };
	struct command_ask ask = { .argv = argv, .is_shell = true };
	struct channel_started started;

	start();
	AUTO(fd_close) int log = box_exec(&t, 1, ask);
	box_await(&t, CH_STARTED, 1);
	memcpy(&started, t.packet.data, sizeof started);
	allow_all();
	AUTO(fd_close) int pidfd = pidfd_open(started.pid, 0);
	CHECK(pidfd >= 0);
	AUTO(fd_close) int word = -1;
	AWAIT((word = word_of(pidfd)) >= 0);
	CHECK(linger_send(word, "x", 1));
	CHECK(answer_ms(2) < LINGER_SOON_MS);
	stop();
}

/* How much of a second a flood of questions gets, and that it is served again in the next one. */
TEST(questions_are_rationed_and_nobody_is_turned_away)
{
	size_t in_second[2] = { 0 };

	start();
	uint64_t began = linger_now();
	while (linger_now() - began < 1900) {
		AUTO(fd_close) int fd = dial_self();
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		char answer[256];

		CHECK_INT(send(fd, "whoami\n", 7, 0), 7);
		CHECK_INT(poll(&wait, 1, TEST_WAIT_MS), 1);
		CHECK(recv(fd, answer, sizeof answer, 0) > 0);
		in_second[(linger_now() - began) / 1000 % 2]++;
	}
	printf("# %zu and %zu answers\n", in_second[0], in_second[1]);
	CHECK(in_second[0] >= 90 && in_second[0] <= 110);
	CHECK(in_second[1] >= 90 && in_second[1] <= 110);
	CHECK(answer_ms(1) < LINGER_SOON_MS); /* the rest of the monitor is not rationed */
	stop();
}
