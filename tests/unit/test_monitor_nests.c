/* One filter for all commands of a kept sandbox: how many there are, and what a nursery that dies
 * leaves behind. */
#include <dirent.h>
#include <linux/sched.h>
#include <sys/syscall.h>

#include "test_box.h"

static struct test_box t;

static void start(void)
{
	box_start(&t, true, (const char *const[]){ NULL });
	box_await(&t, CH_READY, 0);
	if (!cgroup_has_leaves(&t.box.cgroup))
		SKIP("needs a cgroup for each process");
}

static void stop(void)
{
	box_say(&t, CH_CLOSE, 0, NULL, 0);
	box_await(&t, CH_END, 0);
	box_end(&t);
}

/* Each load of our filter gives the monitor a listener. */
static size_t count_listeners(void)
{
	char path[64], name[64];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", t.monitor_pid);
	DIR *dir = opendir(path);
	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, name, sizeof name - 1);

		name[len > 0 ? len : 0] = '\0';
		n += strstr(name, "seccomp notify") != NULL;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* The monitor's child that is in its own pid namespace, and is not pid 1 of another. */
static pid_t find_nursery(void)
{
	char path[64], text[4096];
	DIR *dir = opendir("/proc");
	pid_t found = 0;

	for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
		char parent[32], own[32];

		snprintf(path, sizeof path, "%.20s/status", d->d_name);
		if (os_read_file(dirfd(dir), path, text, sizeof text) <= 0)
			continue;
		snprintf(parent, sizeof parent, "\nPPid:\t%d\n", t.monitor_pid);
		snprintf(own, sizeof own, "\nNSpid:\t%.20s\n", d->d_name);
		if (strstr(text, parent) && strstr(text, own) && !strstr(text, "State:\tZ"))
			found = (pid_t)strtol(d->d_name, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return found;
}

TEST(twenty_commands_have_one_filter)
{
	int logs[20];

	start();
	for (uint32_t i = 0; i < COUNT(logs); i++) {
		logs[i] = box_sh(&t, i + 1, "sleep 100 & exec sleep 100");
		box_await(&t, CH_STARTED, i + 1);
		CHECK_INT(count_listeners(), 1);
	}
	stop();
	for (size_t i = 0; i < COUNT(logs); i++)
		fd_close(&logs[i]);
}

TEST(a_nursery_that_dies_is_replaced_and_its_commands_go_on)
{
	start();
	AUTO(fd_close)
	int first = box_sh(&t, 1, "while ! [ -e /tmp/go ]; do /bin/sleep 0.02; done; exit 7");
	box_await(&t, CH_STARTED, 1);
	pid_t nursery = find_nursery();
	CHECK(nursery > 0);
	CHECK_INT(kill(nursery, SIGKILL), 0);
	AWAIT(find_nursery() == 0);
	AUTO(fd_close) int second = box_sh(&t, 2, "/usr/bin/touch /tmp/go; exit 8");
	CHECK_INT(box_await_exit(&t, 2).exit_code, 8);
	CHECK_INT(box_await_exit(&t, 1).exit_code, 7); /* it has executed programs all the while */
	CHECK(find_nursery() > 0);
	AWAIT(count_listeners() == 1);
	stop();
}

/* What each has started is its own, whoever bore them. */
TEST(programs_are_counted_where_they_belong)
{
	static const char *const scripts[] = {
		"/bin/true; /bin/true; exit 0", "exit 0",
		"setsid /bin/sh -c '/bin/true; /bin/true; /bin/true'"
	};
	static const uint32_t programs[] = { 3, 1, 6 };

	start();
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < COUNT(scripts); i++) {
			uint32_t num = (uint32_t)round * 10 + i + 1;
			char *const argv[] = { (char *)(uintptr_t) "/bin/sh",
				               (char *)(uintptr_t) "-c",
				               (char *)(uintptr_t)scripts[i], NULL };
			AUTO(fd_close)
			int log = box_exec(&t, num, (struct command_ask){ .argv = argv });

			CHECK_INT(box_await_exit(&t, num).n_execs, programs[i]);
		}
	}
	stop();
}
