/*
 * api.c - times requests to the daemon on kept connections, beside a plain fork+exec.
 *
 *   api SOCKET ROUNDS SANDBOX          exec of /bin/true, file read and edit, create; and fork+exec
 *   api SOCKET --at-once COUNT         COUNT creates on as many connections, all sent at once
 *
 * Every round does each of them once, in an order drawn anew, as spawn.c does. A file of 10 KiB at
 * /work/bench.txt is read and edited (one word, there and back). A sandbox that was created is
 * deleted between the timings; with --at-once they stay. Prints one line each, times in
 * microseconds:
 *
 *   NAME FAILED MIN P50 P90 P99 MEAN
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 10000, AT_ONCE_MAX = 1000, WARM_ROUNDS = 5, ANSWER_MAX = 1 << 16 };

static const char *socket_path;
static const char *sandbox;

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "api: %s: %s\n", what, errno ? strerror(errno) : "");
	exit(2);
}

static long number(const char *text, long max)
{
	char *end;
	errno = 0;
	long n = strtol(text, &end, 10);
	if (errno || end == text || *end || n <= 0 || n > max)
		fail("not a number, or out of range");
	return n;
}

/* ---- HTTP, as much as is needed --------------------------------------------------------- */

static int dial(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		fail("connect");
	return fd;
}

static void ask(int fd, const char *method, const char *path, const char *body)
{
	static char buf[1 << 15];
	int n = snprintf(buf, sizeof(buf),
	                 "%s %s HTTP/1.1\r\nHost: bench\r\nContent-Length: %zu\r\n\r\n%s", method,
	                 path, strlen(body), body);
	if (n >= (int)sizeof(buf) || send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
		fail("send");
}

/* The whole answer, which has a Content-Length; its body. Returns its status. */
static int take(int fd, char *answer, const char **body)
{
	size_t have = 0, want = 0;
	const char *end = NULL;
	while (!end || have < want) {
		ssize_t n = recv(fd, answer + have, ANSWER_MAX - 1 - have, 0);
		if (n <= 0)
			fail("recv");
		have += (size_t)n;
		answer[have] = '\0';
		if (!end && (end = strstr(answer, "\r\n\r\n"))) {
			const char *length = strcasestr(answer, "\r\ncontent-length:");
			want = (size_t)(end + 4 - answer) +
			       (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
		}
	}
	*body = end + 4;
	return (int)strtol(answer + strlen("HTTP/1.1 "), NULL, 10);
}

static int request(int fd, const char *method, const char *path, const char *text)
{
	static char answer[ANSWER_MAX];
	const char *body;
	ask(fd, method, path, text);
	return take(fd, answer, &body);
}

/* ---- what is timed ---------------------------------------------------------------------- */

static int fd; /* the kept connection */

static bool do_spawn(void)
{
	int status;
	pid_t pid = vfork();
	if (pid < 0)
		fail("vfork");
	if (pid == 0) {
		char *argv[] = { "/bin/true", NULL };
		execv(argv[0], argv);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool do_exec(void)
{
	static char answer[ANSWER_MAX];
	const char *body;
	char path[256];
	snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", sandbox);
	ask(fd, "POST", path, "{\"cmd\":[\"/bin/true\"]}");
	return take(fd, answer, &body) == 200 && strstr(body, "\"exit_code\":0");
}

static bool do_read(void)
{
	char path[256];
	snprintf(path, sizeof(path), "/v1/sandboxes/%s/files/work/bench.txt", sandbox);
	return request(fd, "GET", path, "") == 200;
}

static bool do_edit(void)
{
	static bool is_back;
	char path[256];
	const char *to = is_back ? "{\"edits\":[{\"old\":\"there\",\"new\":\"hither\"}]}"
	                         : "{\"edits\":[{\"old\":\"hither\",\"new\":\"there\"}]}";
	is_back = !is_back;
	snprintf(path, sizeof(path), "/v1/sandboxes/%s/files/work/bench.txt", sandbox);
	return request(fd, "PATCH", path, to) == 200;
}

static char made[64]; /* deleted after the clock was stopped */

static bool take_made(const char *body)
{
	const char *id = strstr(body, "\"id\":\"");
	made[0] = '\0';
	if (id)
		sscanf(id + 6, "%63[^\"]", made);
	return made[0] != '\0';
}

static bool do_create(void)
{
	static char answer[ANSWER_MAX];
	const char *body;
	ask(fd, "POST", "/v1/sandboxes", "{}");
	return take(fd, answer, &body) == 201 && take_made(body);
}

static void delete_made(void)
{
	char path[128];
	if (!made[0])
		return;
	snprintf(path, sizeof(path), "/v1/sandboxes/%s", made);
	if (request(fd, "DELETE", path, "") != 204)
		fail("delete");
	made[0] = '\0';
}

static struct contestant {
	const char *name;
	bool (*run)(void);
	long failed;
	int64_t ns[ROUNDS_MAX];
} contestants[] = {
	{ .name = "fork+exec", .run = do_spawn }, { .name = "exec", .run = do_exec },
	{ .name = "read", .run = do_read },       { .name = "edit", .run = do_edit },
	{ .name = "create", .run = do_create },
};
enum { CONTESTANTS = sizeof(contestants) / sizeof(*contestants) };

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void print_row(const char *name, long failed, int64_t *ns, long rounds)
{
	double sum = 0;
	for (long i = 0; i < rounds; i++)
		sum += (double)ns[i];
	qsort(ns, (size_t)rounds, sizeof(*ns), compare_ns);
	printf("%s %ld", name, failed);
	const long percent[] = { 0, 50, 90, 99 };
	for (size_t i = 0; i < sizeof(percent) / sizeof(*percent); i++)
		printf(" %.1f", (double)ns[(rounds - 1) * percent[i] / 100] / 1e3);
	printf(" %.1f\n", sum / (double)rounds / 1e3);
}

static void run_rounds(long rounds)
{
	for (long r = -WARM_ROUNDS; r < rounds; r++) {
		size_t first = (size_t)random() % CONTESTANTS;
		for (size_t i = 0; i < CONTESTANTS; i++) {
			struct contestant *c = &contestants[(first + i) % CONTESTANTS];
			int64_t begin = now_ns();
			bool is_well = c->run();
			int64_t took = now_ns() - begin;
			delete_made();
			if (r >= 0) {
				c->ns[r] = took;
				c->failed += !is_well;
			}
		}
	}
	for (size_t i = 0; i < CONTESTANTS; i++)
		print_row(contestants[i].name, contestants[i].failed, contestants[i].ns, rounds);
}

static void run_at_once(long count)
{
	static struct pollfd fds[AT_ONCE_MAX];
	static int64_t ns[AT_ONCE_MAX];
	static char answer[ANSWER_MAX];
	long failed = 0, open = count;
	for (long i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = dial(), .events = POLLIN };
	int64_t begin = now_ns();
	for (long i = 0; i < count; i++)
		ask(fds[i].fd, "POST", "/v1/sandboxes", "{\"labels\":{\"bench\":\"1\"}}");
	while (open > 0) {
		if (poll(fds, (nfds_t)count, 60000) <= 0)
			fail("poll");
		for (long i = 0; i < count; i++) {
			const char *body;
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			failed += take(fds[i].fd, answer, &body) != 201;
			ns[i] = now_ns() - begin;
			close(fds[i].fd);
			fds[i].fd = -1;
			open--;
		}
	}
	print_row("create", failed, ns, count);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		fail("usage: api SOCKET ROUNDS SANDBOX | api SOCKET --at-once COUNT");
	socket_path = argv[1];
	if (strcmp(argv[2], "--at-once") == 0) {
		run_at_once(number(argv[3], AT_ONCE_MAX));
		return 0;
	}
	sandbox = argv[3];
	fd = dial();
	run_rounds(number(argv[2], ROUNDS_MAX));
	return 0;
}
