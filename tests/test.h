/*
 * test.h - TEST(name) { ... } and the main() that runs them, TAP on stdout.
 *
 * Every test is a process of its own, so that a chdir, an unshare or a seccomp filter of one
 * does not reach the next; it has a minute, and whatever it leaves running in its process
 * group is killed. A test has passed only when its last line was reached and the process then
 * ended well: a crash, a leak (found by ASan at exit) and a stray exit(0) are failures.
 *
 *   test_x            all tests of the program
 *   test_x PART       those whose name contains PART
 *   test_x --list     their names
 *
 * docs/decisions/0007-own-test-h.md
 */
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

#define TEST(name)                                                                                 \
	static void name(void);                                                                    \
	__attribute__((constructor)) static void name##_register(void)                             \
	{                                                                                          \
		static struct test test = { #name, name, NULL };                                   \
		test_register(&test);                                                              \
	}                                                                                          \
	static void name(void)

/* Each ends the test when it does not hold. */
#define CHECK(cond) test_true(cond, #cond, __FILE__, __LINE__)
#define CHECK_INT(got, want) test_int(got, want, #got, __FILE__, __LINE__)
#define CHECK_STR(got, want) test_str(got, want, #got, __FILE__, __LINE__)

/* Waits for what comes in a moment or never: other processes take their time on a busy machine. */
#define AWAIT(cond)                                                                                \
	do {                                                                                       \
		bool is_so = (cond);                                                               \
		for (int ms = 0; !is_so && ms < TEST_WAIT_MS; ms++, is_so = (cond))                \
			usleep(1000);                                                              \
		test_true(is_so, #cond, __FILE__, __LINE__);                                       \
	} while (0)

/* Ends the test as not run; say what it would need. */
#define SKIP(why) test_skip(why)

enum { TEST_SECONDS_MAX = 60, TEST_FAILED = 1, TEST_PASSED = 76, TEST_SKIPPED = 77 };
enum { TEST_WAIT_MS = 30000 };

static struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
} * test_first, **test_end = &test_first;

static struct test *test_now;
static int test_number;

static inline void test_register(struct test *t)
{
	*test_end = t;
	test_end = &t->next;
}

static inline _Noreturn void test_leave(int status)
{
	fflush(NULL);
	_exit(status);
}

static inline void test_true(bool cond, const char *text, const char *file, int line)
{
	if (cond)
		return;
	printf("# %s:%d: not true: %s\n", file, line, text);
	test_leave(TEST_FAILED);
}

static inline void test_int(long long got, long long want, const char *text, const char *file,
                            int line)
{
	if (got == want)
		return;
	printf("# %s:%d: %s is %lld, not %lld\n", file, line, text, got, want);
	test_leave(TEST_FAILED);
}

static inline void test_str(const char *got, const char *want, const char *text, const char *file,
                            int line)
{
	if (got == want || (got && want && strcmp(got, want) == 0))
		return;
	printf("# %s:%d: %s is \"%s\",\n#   not \"%s\"\n", file, line, text, got ? got : "(null)",
	       want ? want : "(null)");
	test_leave(TEST_FAILED);
}

static inline _Noreturn void test_skip(const char *why)
{
	printf("ok %d - %s # SKIP %s\n", test_number, test_now->name, why);
	test_leave(TEST_SKIPPED);
}

/* So many times longer may everything take: a machine without KVM. */
static inline int test_slow(void)
{
	const char *slow = getenv("TEST_SLOW");

	return slow ? (int)strtol(slow, NULL, 10) : 1;
}

/* Waits for the test and ends what it left behind. Returns its wait status. */
static int test_wait(pid_t pid)
{
	struct pollfd end = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int status = 0;

	int seconds = TEST_SECONDS_MAX * test_slow();

	if (poll(&end, 1, seconds * 1000) == 0)
		printf("# still running after %d s\n", seconds);
	close(end.fd);
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

/* Returns false when the test failed. */
static bool test_run(struct test *t)
{
	test_now = t;
	test_number++;
	fflush(NULL);
	pid_t pid = fork();

	if (pid < 0)
		abort(); /* and never kill(-pid) */
	if (pid == 0) {
		setpgid(0, 0);
		t->run();
		exit(TEST_PASSED); /* not _exit: ASan looks for leaks now */
	}
	setpgid(pid, pid);
	int status = test_wait(pid);

	if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED)
		return true; /* test_skip() has printed its line */
	bool passed = WIFEXITED(status) && WEXITSTATUS(status) == TEST_PASSED;

	if (WIFSIGNALED(status))
		printf("# killed by signal %d, %s\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	else if (!passed && WEXITSTATUS(status) != TEST_FAILED)
		printf("# ended early, exit status %d\n", WEXITSTATUS(status));
	printf("%s %d - %s\n", passed ? "ok" : "not ok", test_number, t->name);
	return passed;
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "";
	bool list = strcmp(part, "--list") == 0;
	bool all_passed = true;

	setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not take the lines before it along */
	for (struct test *t = test_first; t; t = t->next) {
		if (list)
			puts(t->name);
		else if (strstr(t->name, part))
			all_passed = test_run(t) && all_passed;
	}
	if (!list)
		printf("1..%d\n", test_number);
	return list || (all_passed && test_number > 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}
