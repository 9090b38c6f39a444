/*
 * census.c - SYS-01: every system call number, with arguments that can do nothing.
 *
 * One line of text per number instead of JSON: it is compared with a golden file. Run it
 * without privileges only: some calls take no arguments (vhangup, sync).
 *
 * The foreign ABIs are tried too: the same kernel is behind int $0x80 and behind the x32 bit.
 */
#include "probe.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST_NUMBER 511
#define X32_BIT 0x40000000L

static long by_x32(void)
{
	return syscall(X32_BIT | SYS_getpid);
}

static long by_int80(void)
{
	long r;

	/* getpid is 20 for i386; the kernel zeroes r8-r11 on this entry. */
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

static const char *class_of(long nr)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(1); /* pause and its like: blocked means reached */
		setsid();
		long r = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);

		_exit(r >= 0 ? 0 : errno == ENOSYS ? 1 : errno == EPERM ? 2 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return "error";
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? "killed" : "reached";
	return WEXITSTATUS(status) == 1 ? "ENOSYS" : WEXITSTATUS(status) == 2 ? "EPERM" : "reached";
}

static int census(void)
{
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	for (long nr = 0; nr <= LAST_NUMBER; nr++)
		printf("%ld %s\n", nr, class_of(nr));
	return 0;
}

/* Argument: a program for i386 that does one harmless call. */
static int foreign_abis(void)
{
	static const struct try tries[] = {
		{ "x32-number", by_x32, { 0 } },
		{ "int80", by_int80, { 0 } },
	};

	attempt_all(tries, COUNT(tries));
	int code = run_self(arg(0) ? arg(0) : "none", (const char *[]){ NULL });

	report("i386-program", code > 128 ? -(code - 128) : ENOEXEC, code == 42, "exit %d", code);
	return 0;
}

const struct row census_rows[] = { { "census", census }, { "SYS-01", foreign_abis }, { 0 } };
