/*
 * spawn.c - times launches: from vfork to the end of waitpid, output to /dev/null.
 *
 *   spawn ROUNDS NAME [@uid=N] [@env=K=V]... CMD ARG... [++ NAME ...]...
 *   spawn --at-once COUNT NAME ...
 *
 * Every round launches every contestant once, in an order drawn anew, so that neither a noisy
 * neighbour nor what the launch before left to the kernel (a network namespace is torn down
 * after the fact) favours one of them. The first rounds warm the caches and are not counted.
 * With --at-once the one contestant is started COUNT times before any of them is waited for.
 * CMD is a path, not searched for. Prints one line per contestant, times in microseconds:
 *
 *   NAME FAILED MIN P50 P90 P99 MEAN
 *
 * FAILED counts launches that did not exit 0; a row that has any says nothing about speed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONTESTANTS_MAX = 32, ENV_MAX = 128, ROUNDS_MAX = 10000, WARM_ROUNDS = 3 };

struct contestant {
	const char *name;
	char **argv;
	char *env[ENV_MAX];
	long uid; /* -1: ours */
	long failed;
	int64_t *ns;
};

extern char **environ;

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "spawn: %s\n", what);
	exit(2);
}

static long number(const char *text, long max)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 0 || n > max)
		fail("not a number, or out of range");
	return n;
}

/* In the child of a vfork: the parent's memory, so nothing but system calls. The C library's
 * setresuid would go through its table of threads. */
static _Noreturn void child(const struct contestant *c, int null_fd)
{
	dup2(null_fd, 0);
	dup2(null_fd, 1);
	dup2(null_fd, 2);
	if (c->uid >= 0) {
		gid_t gid = (gid_t)c->uid;
		uid_t uid = (uid_t)c->uid;
		if (syscall(SYS_setgroups, 1, &gid) || syscall(SYS_setresgid, gid, gid, gid) ||
		    syscall(SYS_setresuid, uid, uid, uid))
			_exit(127);
	}
	execve(c->argv[0], c->argv, c->env);
	_exit(127);
}

static pid_t start(const struct contestant *c, int null_fd)
{
	pid_t pid = vfork();
	if (pid < 0)
		fail("vfork failed");
	if (pid == 0)
		child(c, null_fd);
	return pid;
}

static int64_t launch_ns(struct contestant *c, int null_fd)
{
	int64_t begin = now_ns();
	pid_t pid = start(c, null_fd);
	int status;
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid failed");
	int64_t took = now_ns() - begin;
	c->failed += status != 0;
	return took;
}

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void print_row(struct contestant *c, long rounds)
{
	double sum = 0;
	for (long i = 0; i < rounds; i++)
		sum += (double)c->ns[i];
	qsort(c->ns, (size_t)rounds, sizeof(*c->ns), compare_ns);

	printf("%s %ld", c->name, c->failed);
	const long percent[] = { 0, 50, 90, 99 };
	for (size_t i = 0; i < sizeof(percent) / sizeof(*percent); i++)
		printf(" %.1f", (double)c->ns[(rounds - 1) * percent[i] / 100] / 1e3);
	printf(" %.1f\n", sum / (double)rounds / 1e3);
}

/* Later entries win, as in a shell: our own environment comes last, minus what was set. */
static void set_env(struct contestant *c, size_t own)
{
	size_t n = own;
	for (char **e = environ; *e; e++) {
		size_t i = 0;
		size_t key = strcspn(*e, "=") + 1;
		while (i < own && strncmp(c->env[i], *e, key) != 0)
			i++;
		if (i == own && n + 1 < ENV_MAX)
			c->env[n++] = *e;
	}
}

/* Takes one contestant off the front of args; returns what follows it. */
static char **parse_contestant(struct contestant *c, char **args)
{
	size_t own = 0;
	*c = (struct contestant){ .name = *args++, .uid = -1 };
	for (; *args && **args == '@'; args++) {
		if (strncmp(*args, "@uid=", 5) == 0)
			c->uid = number(*args + 5, INT32_MAX);
		else if (strncmp(*args, "@env=", 5) == 0 && own < ENV_MAX / 2)
			c->env[own++] = *args + 5;
		else
			fail("unknown option of a contestant");
	}
	set_env(c, own);

	c->argv = args;
	while (*args && strcmp(*args, "++") != 0)
		args++;
	if (c->argv == args)
		fail("a contestant without a command");
	if (*args)
		*args++ = NULL;
	return args;
}

static void shuffle(size_t *order, size_t count)
{
	for (size_t i = count; i-- > 1;) {
		size_t j = (size_t)random() % (i + 1);
		size_t kept = order[i];
		order[i] = order[j];
		order[j] = kept;
	}
}

static void run_rounds(struct contestant *c, size_t count, long rounds, int null_fd)
{
	size_t order[CONTESTANTS_MAX];
	for (size_t i = 0; i < count; i++)
		order[i] = i;
	for (long r = -WARM_ROUNDS; r < rounds; r++) {
		shuffle(order, count);
		for (size_t i = 0; i < count; i++) {
			struct contestant *one = &c[order[i]];
			int64_t took = launch_ns(one, null_fd);
			if (r >= 0)
				one->ns[r] = took;
		}
	}
}

/* ns[] holds the start of each until it ends; pids[] says whose end it is. */
static void run_at_once(struct contestant *c, long count, int null_fd)
{
	static pid_t pids[ROUNDS_MAX];
	for (long i = 0; i < count; i++) {
		c->ns[i] = now_ns();
		pids[i] = start(c, null_fd);
	}
	for (long ended = 0; ended < count; ended++) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);
		long i = 0;
		while (i < count && pids[i] != pid)
			i++;
		if (i == count)
			fail("waitpid returned a stranger");
		c->ns[i] = now_ns() - c->ns[i];
		c->failed += status != 0;
	}
}

int main(int argc, char **argv)
{
	static struct contestant c[CONTESTANTS_MAX];
	size_t count = 0;
	bool at_once = argc > 1 && strcmp(argv[1], "--at-once") == 0;
	char **args = argv + 1 + at_once;

	if (argc < 4 + at_once)
		fail("usage: spawn ROUNDS NAME [@uid=N] [@env=K=V]... CMD ARG... [++ NAME ...]...");
	long rounds = number(*args++, ROUNDS_MAX);
	if (rounds == 0)
		fail("no rounds");
	for (; *args; count++) {
		if (count == CONTESTANTS_MAX)
			fail("too many contestants");
		args = parse_contestant(&c[count], args);
		c[count].ns = calloc((size_t)rounds, sizeof(*c[count].ns));
		if (!c[count].ns)
			fail("out of memory");
	}

	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		fail("open /dev/null failed");
	if (at_once && count != 1)
		fail("--at-once takes one contestant");
	if (at_once)
		run_at_once(c, rounds, null_fd);
	else
		run_rounds(c, count, rounds, null_fd);
	for (size_t i = 0; i < count; i++)
		print_row(&c[i], rounds);
	return 0;
}
