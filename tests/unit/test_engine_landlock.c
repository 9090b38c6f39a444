#include "engine/landlock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/landlock.h"
#include "os/proc.h"
#include "test.h"

#define NAME "caisson-test-landlock"

static int reach_abstract(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "\0" NAME };
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const socklen_t len = offsetof(struct sockaddr_un, sun_path) + sizeof NAME;

	return connect(fd, (struct sockaddr *)&to, len) < 0 ? errno : 0;
}

static int listen_abstract(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "\0" NAME };
	const socklen_t len = offsetof(struct sockaddr_un, sun_path) + sizeof NAME;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(bind(fd, (struct sockaddr *)&at, len), 0);
	CHECK_INT(listen(fd, 8), 0);
	return fd;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

TEST(names_and_signals_of_the_only_command_stay_with_it)
{
	if (landlock_abi() < 6)
		SKIP("needs Landlock ABI 6, Linux 6.12");
	AUTO(fd_close) int outside = listen_abstract();
	static const struct plan plan;
	const struct command command = { .uid = 1000, .gid = 1000 };
	pid_t other = sleeper();
	struct err e = { 0 };
	int status;

	CHECK_INT(reach_abstract(), 0);
	CHECK_INT(kill(other, 0), 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_INT(os_prctl(PR_SET_NO_NEW_PRIVS, 1), 0);
		CHECK_INT(landlock_enter(&plan, &command, (struct landlock_fds){ -1, -1 }, &e), 0);
		CHECK_INT(reach_abstract(), EPERM);
		CHECK_INT(kill(other, 0) < 0 ? errno : 0, EPERM);
		pid_t own = sleeper();

		CHECK_INT(kill(own, SIGKILL), 0);
		CHECK_INT(waitpid(own, &status, 0), own);
		_exit(TEST_PASSED);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), TEST_PASSED);
	CHECK_INT(kill(other, SIGKILL), 0);
	CHECK_INT(waitpid(other, &status, 0), other);
}

static int ask_device(const char *path)
{
	AUTO(fd_close) int fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios t;

	if (fd < 0)
		return errno;
	return ioctl(fd, TCGETS, &t) < 0 ? errno : 0;
}

/* A kept sandbox: another command signals what this one has started. */
TEST(commands_of_a_kept_sandbox_reach_each_other)
{
	static const struct plan plan;
	const struct command command = { .uid = 1000, .gid = 1000 };
	struct err e = { 0 };
	AUTO(fd_close) int rules = landlock_rules(&plan, &e);
	AUTO(fd_close) int outside = listen_abstract();
	pid_t other = sleeper();
	int status;

	if (rules < 0)
		SKIP("needs Landlock");
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_INT(os_prctl(PR_SET_NO_NEW_PRIVS, 1), 0);
		CHECK_INT(landlock_enter(&plan, &command, (struct landlock_fds){ rules, -1 }, &e),
		          0);
		CHECK_INT(reach_abstract(), 0);
		CHECK_INT(kill(other, SIGKILL), 0);
		_exit(TEST_PASSED);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), TEST_PASSED);
	CHECK_INT(waitpid(other, &status, 0), other);
}

/* As `mv` does it. A ruleset without a word about it forbids it. */
TEST(files_move_between_folders)
{
	static const struct plan plan;
	const struct command command = { .uid = 1000, .gid = 1000 };
	char folder[] = "/tmp/caisson-test-move-XXXXXX", from[64], to[64];
	struct err e = { 0 };

	CHECK(mkdtemp(folder));
	snprintf(from, sizeof from, "%s/a", folder);
	CHECK_INT(mkdir(from, 0700), 0);
	snprintf(from, sizeof from, "%s/a/file", folder);
	snprintf(to, sizeof to, "%s/file", folder);
	fd_close(&(int){ open(from, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) });
	CHECK_INT(os_prctl(PR_SET_NO_NEW_PRIVS, 1), 0);
	CHECK_INT(landlock_enter(&plan, &command, (struct landlock_fds){ -1, -1 }, &e), 0);
	CHECK_INT(rename(from, to) < 0 ? errno : 0, 0);
	(void)unlink(to);
	snprintf(from, sizeof from, "%s/a", folder);
	(void)rmdir(from);
	(void)rmdir(folder);
}

/* The rules of a sandbox on this host's root: devices are asked in /dev, and nowhere else. */
TEST(devices_are_asked_in_dev_only)
{
	static const struct plan plan;
	const struct command command = { .uid = 1000, .gid = 1000 };
	char node[] = "/tmp/caisson-test-node-XXXXXX";
	struct err e = { 0 };

	if (landlock_abi() < 5)
		SKIP("needs Landlock ABI 5, Linux 6.10");
	AUTO(fd_close) int made = mkstemp(node);
	CHECK(made >= 0);
	(void)unlink(node);
	if (mknod(node, S_IFCHR | 0600, 1 << 8 | 3) < 0)
		SKIP("needs the right to make devices");
	CHECK_INT(ask_device(node), ENOTTY);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK_INT(os_prctl(PR_SET_NO_NEW_PRIVS, 1), 0);
		CHECK_INT(landlock_enter(&plan, &command, (struct landlock_fds){ -1, -1 }, &e), 0);
		CHECK_INT(ask_device("/dev/null"), ENOTTY);
		CHECK_INT(ask_device(node), EACCES);
		_exit(TEST_PASSED);
	}
	int status;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	(void)unlink(node);
	CHECK_INT(WEXITSTATUS(status), TEST_PASSED);
}
