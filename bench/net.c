/*
 * net.c - both ends of the gate's benchmark: a server, and clients that time what they do.
 *
 *   net serve                            prints its port on 127.0.0.1, serves until its input ends
 *   net serve-tls PEM                    the same, by TLS; only GET
 *   net bulk HOST PORT BYTES             so many bytes from it; prints MB/s
 *   net connect HOST PORT ROUNDS         connect, one byte there and back, close
 *   net request HOST PORT ROUNDS         GET on a kept connection
 *   net tls HOST PORT ROUNDS             the same, by TLS
 *   net idle HOST PORT COUNT             connections that have carried a byte each; prints "ready",
 *                                        and holds them until it is ended
 *
 * connect, request and tls print MIN P50 P90 P99 in microseconds; the first rounds warm and do not
 * count. What a client says does not look like HTTP, so that it is relayed and not judged request
 * by request. The first byte says what is wanted: 1 and a number as text, that many bytes; GET, a
 * small answer; all else comes back, byte for byte.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
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

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbench";

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
	bool is_http = n > 3 && memcmp(piece, "GET", 3) == 0;
	const char *what = is_http ? answer : piece;
	size_t len = is_http ? sizeof answer - 1 : (size_t)n;
	if (n <= 0 || send(fd, what, len, MSG_NOSIGNAL) != (ssize_t)len)
		close(fd);
}

/* Says where. */
static int listen_somewhere(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
		                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof name;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(fd, (struct sockaddr *)&name, len) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&name, &len) < 0)
		fail("listen");
	signal(SIGCHLD, SIG_IGN);
	many_files();
	printf("%d\n", ntohs(name.sin_port));
	fflush(stdout);
	return fd;
}

static _Noreturn void serve_requests(SSL_CTX *ctx, int fd)
{
	char ask[4096];
	SSL *tls = SSL_new(ctx);
	if (!tls || !SSL_set_fd(tls, fd) || SSL_accept(tls) != 1)
		_exit(1);
	while (SSL_read(tls, ask, sizeof ask) > 0 && SSL_write(tls, answer, sizeof answer - 1) > 0)
		;
	_exit(0);
}

static void serve_tls(const char *pem)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int one = 1;
	if (!ctx || SSL_CTX_use_certificate_file(ctx, pem, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, pem, SSL_FILETYPE_PEM) != 1)
		fail(pem);
	int fd = listen_somewhere();
	for (;;) {
		int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		if (fork() == 0)
			serve_requests(ctx, conn);
		close(conn);
	}
}

static void serve(void)
{
	int fd = listen_somewhere(), loop = epoll_create1(0), one = 1;
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

/* Plain or TLS. */
struct peer {
	int fd;
	SSL *tls;
};

static ssize_t peer_read(const struct peer *p, void *buf, size_t n)
{
	return p->tls ? SSL_read(p->tls, buf, (int)n) : read(p->fd, buf, n);
}

static ssize_t peer_write(const struct peer *p, const void *bytes, size_t n)
{
	return p->tls ? SSL_write(p->tls, bytes, (int)n) : write(p->fd, bytes, n);
}

/* Whom it trusts makes no difference once it is connected. */
static SSL *shake(int fd, const char *host)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *tls = ctx ? SSL_new(ctx) : NULL;
	if (!tls || !SSL_set_fd(tls, fd) || !SSL_set_tlsext_host_name(tls, host) ||
	    SSL_connect(tls) != 1)
		fail("handshake");
	return tls;
}

static void requests(const struct sockaddr_in *to, const char *host, long rounds, bool is_tls)
{
	static int64_t ns[ROUNDS_MAX];
	struct peer peer = { .fd = dial(to) };
	char ask[512], got[4096];
	if (is_tls)
		peer.tls = shake(peer.fd, host);
	int n = snprintf(ask, sizeof ask, "GET /bench HTTP/1.1\r\nHost: %s:%d\r\n\r\n", host,
	                 ntohs(to->sin_port));
	for (long i = -WARM_ROUNDS; i < rounds; i++) {
		int64_t begin = now_ns();
		size_t len = 0;
		if (peer_write(&peer, ask, (size_t)n) != n)
			fail("ask");
		while (!is_whole(got, len)) {
			ssize_t r = peer_read(&peer, got + len, sizeof got - len);
			if (r <= 0)
				fail("answer");
			len += (size_t)r;
		}
		if (i >= 0)
			ns[i] = now_ns() - begin;
		else if (strncmp(got, "HTTP/1.1 200", 12) != 0)
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
	if (argc == 3 && strcmp(argv[1], "serve-tls") == 0)
		serve_tls(argv[2]);
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
		requests(&to, argv[2], n, false);
	else if (n > 0 && n <= ROUNDS_MAX && strcmp(argv[1], "tls") == 0)
		requests(&to, argv[2], n, true);
	else
		return 2;
	return 0;
}
