/*
 * net.c - both ends of the gate's benchmark: a server, and clients that time what they do.
 *
 *   net serve                            prints its port on 127.0.0.1, serves until its input ends
 *   net bulk HOST PORT BYTES             so many bytes from it; prints MB/s
 *   net connect HOST PORT ROUNDS         connect, one byte there and back, close
 *   net request HOST PORT ROUNDS         GET on a kept connection
 *   net idle HOST PORT COUNT             connections that have carried a byte each; prints "ready",
 *                                        and holds them until it is ended
 *
 * connect and request print MIN P50 P90 P99 in microseconds; the first rounds warm and do not
 * count. What a client says does not look like HTTP, so that it is relayed and not judged request
 * by request. The first byte says what is wanted: 1 and a number as text, that many bytes; GET, a
 * small answer; all else comes back, byte for byte.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 100000, WARM_ROUNDS = 20, EVENTS = 64, PIECE = 256 << 10 };

static char piece[PIECE];

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void print_times(int64_t *ns, long n)
{
	const long percent[] = { 0, 50, 90, 99 };
	qsort(ns, (size_t)n, sizeof *ns, compare);
	for (int i = 0; i < 4; i++)
		printf("%s%.1f", i ? " " : "", (double)ns[(n - 1) * percent[i] / 100] / 1e3);
	printf("\n");
}

static void many_files(void)
{
	struct rlimit files;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* ---- server -------------------------------------------------------------------------- */

static void send_bulk(int fd, long long n)
{
	while (n > 0) {
		ssize_t w = send(fd, piece, n < PIECE ? (size_t)n : PIECE, MSG_NOSIGNAL);
		if (w <= 0)
			break;
		n -= w;
	}
	_exit(0);
}

static void serve_one(int fd)
{
	ssize_t n = read(fd, piece, PIECE - 1);
	if (n > 1 && piece[0] == '\1') {
		piece[n] = '\0';
		long long bytes = strtoll(piece + 1, NULL, 10);
		if (fork() == 0)
			send_bulk(fd, bytes);
		close(fd);
		return;
	}
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbench";
	bool is_http = n > 3 && memcmp(piece, "GET", 3) == 0;
	const char *what = is_http ? answer : piece;
	size_t len = is_http ? sizeof answer - 1 : (size_t)n;
	if (n <= 0 || send(fd, what, len, MSG_NOSIGNAL) != (ssize_t)len)
		close(fd);
}

static void serve(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof name;
	int fd = socket(AF_INET, SOCK_STREAM, 0), loop = epoll_create1(0), one = 1;
	if (bind(fd, (struct sockaddr *)&name, len) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&name, &len) < 0)
		fail("listen");
	signal(SIGCHLD, SIG_IGN);
	many_files();
	printf("%d\n", ntohs(name.sin_port));
	fflush(stdout);
	epoll_ctl(loop, EPOLL_CTL_ADD, fd,
	          &(struct epoll_event){ .events = EPOLLIN, .data.fd = fd });
	epoll_ctl(loop, EPOLL_CTL_ADD, 0, &(struct epoll_event){ .events = EPOLLIN, .data.fd = 0 });
	for (;;) {
		struct epoll_event events[EVENTS];
		int n = epoll_wait(loop, events, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			int at = events[i].data.fd;
			if (at == 0)
				exit(0);
			if (at != fd) {
				serve_one(at);
				continue;
			}
			int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
			setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
			epoll_ctl(loop, EPOLL_CTL_ADD, conn,
			          &(struct epoll_event){ .events = EPOLLIN, .data.fd = conn });
		}
	}
}

/* ---- clients ------------------------------------------------------------------------- */

static struct sockaddr_in look_up(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	if (getaddrinfo(host, port, &hints, &found) != 0)
		fail(host);
	struct sockaddr_in name = *(struct sockaddr_in *)(void *)found->ai_addr;
	freeaddrinfo(found);
	return name;
}

static int dial(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof *to) < 0)
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static void echo_byte(int fd)
{
	char byte = '\2';
	if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || read(fd, &byte, 1) != 1)
		fail("echo");
}

static void bulk(const struct sockaddr_in *to, const char *bytes)
{
	int fd = dial(to);
	char text[32];
	long long left = strtoll(bytes, NULL, 10), all = left;
	int n = snprintf(text, sizeof text, "\1%s", bytes);
	int64_t begin = now_ns();
	if (write(fd, text, (size_t)n) != n)
		fail("ask");
	while (left > 0) {
		ssize_t r = read(fd, piece, PIECE);
		if (r <= 0)
			fail("read");
		left -= r;
	}
	printf("%.1f\n", (double)all / 1e6 / ((double)(now_ns() - begin) / 1e9));
}

static void connects(const struct sockaddr_in *to, long rounds)
{
	static int64_t ns[ROUNDS_MAX];
	for (long i = -WARM_ROUNDS; i < rounds; i++) {
		int64_t begin = now_ns();
		int fd = dial(to);
		echo_byte(fd);
		close(fd);
		if (i >= 0)
			ns[i] = now_ns() - begin;
	}
	print_times(ns, rounds);
}

/* A head and a body of known length; true when the answer is whole. */
static bool is_whole(const char *text, size_t n)
{
	const char *end = memmem(text, n, "\r\n\r\n", 4);
	const char *length = memmem(text, n, "ontent-", 7);
	const char *number = length ? memchr(length, ':', 32) : NULL;
	return end && number && (size_t)(text + n - end - 4) >= strtoul(number + 1, NULL, 10);
}

static void requests(const struct sockaddr_in *to, const char *host, long rounds)
{
	static int64_t ns[ROUNDS_MAX];
	int fd = dial(to);
	char ask[512], answer[4096];
	int n = snprintf(ask, sizeof ask, "GET /bench HTTP/1.1\r\nHost: %s:%d\r\n\r\n", host,
	                 ntohs(to->sin_port));
	for (long i = -WARM_ROUNDS; i < rounds; i++) {
		int64_t begin = now_ns();
		size_t len = 0;
		if (write(fd, ask, (size_t)n) != n)
			fail("ask");
		while (!is_whole(answer, len)) {
			ssize_t r = read(fd, answer + len, sizeof answer - len);
			if (r <= 0)
				fail("answer");
			len += (size_t)r;
		}
		if (i >= 0)
			ns[i] = now_ns() - begin;
		else if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
			fail("status");
	}
	print_times(ns, rounds);
}

static void idle(const struct sockaddr_in *to, long count)
{
	many_files();
	for (long i = 0; i < count; i++)
		echo_byte(dial(to));
	printf("ready\n");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		serve();
	if (argc < 5)
		return 2;
	struct sockaddr_in to = look_up(argv[2], argv[3]);
	long n = strtol(argv[4], NULL, 10);
	if (strcmp(argv[1], "bulk") == 0)
		bulk(&to, argv[4]);
	else if (strcmp(argv[1], "idle") == 0)
		idle(&to, n);
	else if (n > 0 && n <= ROUNDS_MAX && strcmp(argv[1], "connect") == 0)
		connects(&to, n);
	else if (n > 0 && n <= ROUNDS_MAX && strcmp(argv[1], "request") == 0)
		requests(&to, argv[2], n);
	else
		return 2;
	return 0;
}
