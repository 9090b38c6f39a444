/*
 * test_api.h - a server with a route for everything that a handler may do, and a client to ask it.
 *
 * The test's process is the server; clients are its children, with sockets that block. What
 * handlers saw is in memory that both share.
 */
#pragma once

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <time.h>

#include "api/server.h"
#include "base/fd.h"
#include "io/timer.h"
#include "os/net.h"
#include "test.h"
#include "wire/url.h"

static struct loop loop;
static struct timers timers;
static struct server *server;
static struct server_limits limits;
static int tcp_port;

static struct {
	atomic_int heads, requests, overs, gone, fulls, rooms, ends, drained;
	atomic_int is_released; /* by the client: handlers that wait for it go on */
	atomic_llong bytes;
	atomic_llong wrong; /* bytes that are not as they were sent */
} * seen;

#ifdef __SANITIZE_ADDRESS__
enum { MEMORY_IS_OURS = false }; /* ASan keeps what is freed */
#else
enum { MEMORY_IS_OURS = true };
#endif

/* ---- handlers ---------------------------------------------------------------------- */

/* One that answers later. */
struct job {
	struct timer timer; /* first */
	struct request *r;
	long long left, at, ms;
	int ticks;
};

static char pattern[64 << 10]; /* pattern[i] depends on i alone */

static inline long long query_number(struct request *r)
{
	char text[24] = "";

	if (r->query.len < sizeof text)
		memcpy(text, r->query.at, r->query.len);
	return strtoll(text, NULL, 10);
}

static inline void job_end(struct job *j)
{
	timer_stop(&timers, &j->timer);
	free(j);
}

static inline void job_gone(struct request *r)
{
	seen->gone++;
	job_end(r->state);
}

static inline struct job *job_new(struct request *r, void (*fired)(struct timer *t))
{
	struct job *j = mem_alloc(sizeof *j);

	j->timer.fired = fired;
	j->r = r;
	r->state = j;
	r->gone = job_gone;
	return j;
}

static inline void answer_text(struct request *r, const char *text)
{
	reply(r, 200, "text/plain", text, strlen(text), NULL);
}

static inline void hello(struct request *r)
{
	answer_text(r, "hello");
}

static inline void echo(struct request *r)
{
	reply(r, 200, "application/json", r->body.at, r->body.len, NULL);
}

static inline void later_fired(struct timer *t)
{
	struct job *j = (struct job *)(void *)t;
	struct request *r = j->r;

	job_end(j);
	answer_text(r, "later");
}

static inline void later(struct request *r)
{
	struct job *j = job_new(r, later_fired);

	timer_set(&timers, &j->timer, (uint64_t)query_number(r));
}

static inline void held_fired(struct timer *t)
{
	if (seen->is_released)
		later_fired(t);
	else
		timer_set(&timers, t, 5);
}

/* Answers when the client lets it. */
static inline void held(struct request *r)
{
	struct job *j = job_new(r, held_fired);

	timer_set(&timers, &j->timer, 5);
}

static inline void never(struct request *r)
{
	(void)job_new(r, NULL);
}

/* As much as there is room for; the rest in on_room(). */
static inline void stream_more(struct request *r)
{
	struct job *j = r->state;

	while (j->left > 0) {
		size_t n = j->left < (32 << 10) ? (size_t)j->left : 32 << 10;

		const char *from = pattern + j->at % 251;

		j->left -= (long long)n;
		j->at += (long long)n;
		if (!reply_write(r, from, n)) {
			seen->fulls++;
			return;
		}
	}
	job_end(j);
	reply_end(r);
}

static inline void stream_room(struct request *r)
{
	seen->rooms++;
	stream_more(r);
}

static inline void stream(struct request *r)
{
	struct job *j = job_new(r, NULL);

	j->left = query_number(r);
	r->on_room = stream_room;
	reply_begin(r, 200, "application/octet-stream", -1, NULL);
	stream_more(r);
}

static inline void stream_length(struct request *r)
{
	struct job *j = job_new(r, NULL);

	j->left = query_number(r);
	r->on_room = stream_room;
	reply_begin(r, 200, NULL, j->left, NULL);
	stream_more(r);
}

static inline void tick(struct timer *t)
{
	struct job *j = (struct job *)(void *)t;
	struct request *r = j->r;

	if (++j->ticks > j->left) {
		job_end(j);
		reply_end(r);
		return;
	}
	(void)reply_write(r, "tick\n", 5);
	timer_set(&timers, &j->timer, 10);
}

static inline void ticks(struct request *r)
{
	struct job *j = job_new(r, tick);

	j->left = r->query.len ? query_number(r) : 3;
	reply_begin(r, 200, "text/event-stream", -1, NULL);
	timer_set(&timers, &j->timer, 10);
}

static inline void too_short(struct request *r)
{
	reply_begin(r, 200, NULL, 10, NULL);
	(void)reply_write(r, "12345", 5);
	reply_end(r);
}

static inline void too_long(struct request *r)
{
	reply_begin(r, 200, NULL, 3, NULL);
	(void)reply_write(r, "12345", 5);
	reply_end(r);
}

static inline void aborted(struct request *r)
{
	reply_begin(r, 200, NULL, -1, NULL);
	(void)reply_write(r, "12345", 5);
	reply_abort(r);
}

static inline void aborted_later_fired(struct timer *t)
{
	struct job *j = (struct job *)(void *)t;
	struct request *r = j->r;

	job_end(j);
	reply_abort(r);
}

static inline void aborted_later(struct request *r)
{
	struct job *j = job_new(r, aborted_later_fired);

	reply_begin(r, 200, NULL, -1, NULL);
	timer_set(&timers, &j->timer, 5);
}

static inline void bad_field(struct request *r)
{
	static const char *const extra[] = { "X-Name", "a\r\nSet-Cookie: b", NULL };

	reply(r, 200, NULL, "x", 1, extra);
}

static inline void extra_fields(struct request *r)
{
	static const char *const extra[] = { "X-One", "1", "X-Two", "2", NULL };

	reply(r, 201, "text/plain", "made", 4, extra);
}

static inline void empty(struct request *r)
{
	reply(r, 204, NULL, NULL, 0, NULL);
}

static inline void who(struct request *r)
{
	char text[128];

	snprintf(text, sizeof text, "%s tls=%d uid=%d gid=%d fd=%d path=%.*s query=%.*s",
	         r->door == DOOR_UNIX ? "unix" : "tcp", r->is_tls, (int)r->peer_uid,
	         (int)r->peer_gid, r->socket_fd >= 0, (int)r->path.len, r->path.at,
	         (int)r->query.len, r->query.at);
	answer_text(r, text);
}

static inline void take(struct request *r, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		seen->wrong += ((const char *)p)[i] != pattern[(seen->bytes + (long long)i) % 251];
	seen->bytes += (long long)n;
	if (n > 0)
		return;
	seen->ends++;
	char text[32];

	snprintf(text, sizeof text, "%lld", (long long)seen->bytes);
	if (r->state)
		job_end(r->state);
	answer_text(r, text);
}

static inline void upload(struct request *r)
{
	r->on_data = take;
}

static inline void unpause(struct timer *t)
{
	reply_pause(((struct job *)(void *)t)->r, false);
}

static inline void take_and_pause(struct request *r, const void *p, size_t n)
{
	struct job *j = r->state;

	if (n > 0) {
		reply_pause(r, true);
		timer_set(&timers, &j->timer, (uint64_t)j->ms);
	}
	take(r, p, n);
}

static inline void upload_paused(struct request *r)
{
	struct job *j = job_new(r, unpause);

	j->ms = query_number(r);
	r->on_data = take_and_pause;
}

/* It takes a piece, and answers later without the rest. */
static inline void take_one(struct request *r, const void *p, size_t n)
{
	struct job *j = r->state;

	(void)p;
	(void)n;
	reply_pause(r, true);
	timer_set(&timers, &j->timer, 5);
}

static inline void upload_one(struct request *r)
{
	(void)job_new(r, later_fired);
	r->on_data = take_one;
}

static inline void raw_data(struct request *r, const void *p, size_t n)
{
	if (n > 0) {
		seen->bytes += (long long)n;
		(void)reply_write(r, p, n);
		return;
	}
	seen->ends++;
	reply_end(r);
}

static inline void raw_gone(struct request *r)
{
	(void)r;
	seen->gone++;
}

static inline void upgrade(struct request *r)
{
	static const char *const extra[] = { "X-Extra", "yes", NULL };

	if (!request_asks_upgrade(r, "echo")) {
		reply(r, 426, NULL, NULL, 0, NULL);
		return;
	}
	r->on_data = raw_data;
	r->gone = raw_gone;
	reply_upgrade(r, "echo", extra);
}

static inline void unpause_when_released(struct timer *t)
{
	if (seen->is_released)
		unpause(t);
	else
		timer_set(&timers, t, 10);
}

static inline void raw_paused_data(struct request *r, const void *p, size_t n)
{
	struct job *j = r->state;

	seen->bytes += (long long)n;
	if (n > 0 && !j->ticks++) {
		reply_pause(r, true);
		timer_set(&timers, &j->timer, 10);
	}
	if (n == 0)
		seen->ends++;
	(void)p;
}

static inline void upgrade_paused(struct request *r)
{
	(void)job_new(r, unpause_when_released);
	r->on_data = raw_paused_data;
	reply_upgrade(r, "echo", NULL);
}

static inline void drain(struct request *r)
{
	(void)server_drain(server);
	answer_text(r, "bye");
}

static const struct test_route {
	const char *path;
	enum body_mode mode;
	void (*run)(struct request *r);
	uint64_t max;
} test_routes[] = {
	{ "/hello", BODY_NONE, hello, 0 },
	{ "/echo", BODY_WHOLE, echo, 1 << 20 },
	{ "/small", BODY_WHOLE, echo, 16 },
	{ "/later", BODY_WHOLE, later, 1 << 20 },
	{ "/held", BODY_WHOLE, held, 1 << 20 },
	{ "/never", BODY_WHOLE, never, 1 << 20 },
	{ "/stream", BODY_NONE, stream, 0 },
	{ "/stream-length", BODY_NONE, stream_length, 0 },
	{ "/ticks", BODY_NONE, ticks, 0 },
	{ "/short", BODY_NONE, too_short, 0 },
	{ "/long", BODY_NONE, too_long, 0 },
	{ "/abort", BODY_NONE, aborted, 0 },
	{ "/abort-later", BODY_NONE, aborted_later, 0 },
	{ "/bad-field", BODY_NONE, bad_field, 0 },
	{ "/extra", BODY_NONE, extra_fields, 0 },
	{ "/empty", BODY_NONE, empty, 0 },
	{ "/who", BODY_NONE, who, 0 },
	{ "/upload", BODY_STREAM, upload, UINT64_MAX },
	{ "/upload-small", BODY_STREAM, upload, 16 },
	{ "/upload-paused", BODY_STREAM, upload_paused, UINT64_MAX },
	{ "/upload-hello", BODY_STREAM, hello, UINT64_MAX },
	{ "/upload-one", BODY_STREAM, upload_one, UINT64_MAX },
	{ "/upload-never", BODY_STREAM, never, UINT64_MAX },
	{ "/upgrade", BODY_NONE, upgrade, 0 },
	{ "/upgrade-paused", BODY_NONE, upgrade_paused, 0 },
	{ "/drain", BODY_NONE, drain, 0 },
};

static inline void on_head(struct request *r)
{
	seen->heads++;
	for (size_t i = 0; i < COUNT(test_routes); i++) {
		if (!span_is(r->path, test_routes[i].path))
			continue;
		r->route = (void *)(uintptr_t)&test_routes[i];
		r->body_mode = test_routes[i].mode;
		r->body_max = test_routes[i].max;
		const struct span *owner = http_header(r->head, "X-Owner");

		if (owner)
			r->owner = arena_strndup(&r->arena, owner->at, owner->len);
		return;
	}
	reply(r, 404, "text/plain", "no", 2, NULL);
}

static inline void on_request(struct request *r)
{
	seen->requests++;
	((const struct test_route *)r->route)->run(r);
}

/* Once for every head, whatever happened. */
static inline void on_end(struct request *r)
{
	CHECK(r->head->method.len > 0);
	seen->overs++;
}

static inline void on_drained(struct server *s)
{
	(void)s;
	seen->drained++;
}

/* ---- the server -------------------------------------------------------------------- */

static const struct server_ops test_ops = { on_head, on_request, on_end, on_drained };

/* In the abstract namespace: it leaves no file. */
static inline struct sockaddr_un socket_name(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "caisson-test-%d", (int)getpgid(0));
	return a;
}

static inline void open_server(void)
{
	struct sockaddr_un a = socket_name();
	struct err e = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (char)(i % 251);
	seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(seen != MAP_FAILED);
	CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_INT(listen(fd, 4096), 0);
	CHECK_INT(loop_init(&loop), 0);
	CHECK_INT(timers_init(&timers, &loop), 0);
	server = server_new(&loop, &test_ops, limits, &e);
	CHECK(server);
	CHECK_INT(server_listen_unix(server, fd, &e), 0);
	tcp_port = server_listen_tcp(server, "127.0.0.1:0", NULL, NULL, &e);
	CHECK(tcp_port > 0);
}

static inline void close_server(void)
{
	server_free(server);
	CHECK_INT(seen->overs, seen->heads);
	timers_done(&timers, &loop);
	loop_close(&loop);
}

static inline void client_ended(struct watch *w, uint32_t events)
{
	(void)w;
	(void)events;
	loop.is_done = true;
}

/* Serves until the client, a child, has ended, and wants it to end well. */
static inline void serve_only(void (*client)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		client();
		fflush(NULL);
		_exit(0);
	}
	struct watch end = { .fd = pidfd_open(pid, 0), .ready = client_ended };

	loop.is_done = false;
	CHECK_INT(loop_add(&loop, &end, EPOLLIN), 0);
	CHECK_INT(loop_run(&loop), 0);
	loop_remove(&loop, &end);
	fd_close(&end.fd);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static inline void enough(struct timer *t)
{
	(void)t;
	loop.is_done = true;
}

static inline void serve_for_ms(uint64_t ms)
{
	struct timer end = { .fired = enough };

	loop.is_done = false;
	timer_set(&timers, &end, ms);
	CHECK_INT(loop_run(&loop), 0);
}

static inline void serve(void (*client)(void))
{
	open_server();
	serve_only(client);
	close_server();
}

/* ---- the client -------------------------------------------------------------------- */

static inline int dial(void)
{
	struct sockaddr_un a = socket_name();
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static inline int dial_tcp(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		                 .sin_port = htons((uint16_t)tcp_port),
		                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

/* How many bytes went out before the peer closed. */
static inline size_t put_bytes(int fd, const char *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = send(fd, p + done, n - done, MSG_NOSIGNAL);

		if (r <= 0)
			break;
		done += (size_t)r;
	}
	return done;
}

static inline void put(int fd, const char *text)
{
	CHECK_INT(put_bytes(fd, text, strlen(text)), strlen(text));
}

static inline void get(int fd, const char *path)
{
	char text[512];

	snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
	put(fd, text);
}

static inline void post(int fd, const char *path, const char *body)
{
	char text[2048];

	snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s",
	         path, strlen(body), body);
	put(fd, text);
}

/* One answer, read by the strict parser: what is behind it stays in the socket. */
struct answer {
	char head_bytes[4096];
	struct http_head head;
	char *body;
	size_t len;
	int error; /* of the body */
};

/* Byte by byte, so that nothing of the next one is taken. Returns false at the end. */
static inline bool read_head(int fd, struct answer *a, enum http_asked asked)
{
	size_t n = 0;
	int r = 0;

	while (r == 0 && n < sizeof a->head_bytes && recv(fd, a->head_bytes + n, 1, 0) == 1)
		r = http_response_head(a->head_bytes, ++n, asked, &a->head);
	CHECK(r >= 0);
	CHECK(r > 0 || n == 0);
	return r > 0;
}

static inline bool read_answer_to(int fd, struct answer *a, enum http_asked asked)
{
	struct http_body b;
	struct http_piece piece;
	struct str body = { .max = SIZE_MAX / 4 };
	char buf[1];
	ssize_t n = 0;

	do { /* as every client: 100 may come at any time before the answer */
		if (!read_head(fd, a, asked))
			return false;
	} while (a->head.status == 100);
	http_body_init(&b, &a->head, UINT64_MAX);
	int r = http_body_feed(&b, buf, 0, &piece);

	while (r == HTTP_BODY_MORE && (n = recv(fd, buf, 1, 0)) == 1) {
		r = http_body_feed(&b, buf, 1, &piece);
		str_addn(&body, piece.data.at, piece.data.len);
	}
	a->error = n == 1 || n == 0 ? http_body_eof(&b) : HTTP_E_CUT;
	if (r < 0)
		a->error = r;
	if (!body.data)
		str_add(&body, "");
	a->body = body.data;
	a->len = body.len;
	return true;
}

/* NULL: any body. */
static inline void want(int fd, int status, const char *body)
{
	struct answer a = { .error = 0 };

	CHECK(read_answer_to(fd, &a, HTTP_ASKED_BODY));
	CHECK_INT(a.head.status, status);
	CHECK_INT(a.error, HTTP_BODY_DONE);
	if (body)
		CHECK_STR(a.body, body);
	free(a.body);
}

static inline bool at_end(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) <= 0;
}

static inline void want_end(int fd)
{
	CHECK(at_end(fd));
	fd_close(&fd);
}

/* Until the server has seen it. */
static inline bool await_count(const atomic_int *counter, int at_least)
{
	for (int i = 0; i < TEST_WAIT_MS && *counter < at_least; i++)
		usleep(1000);
	return *counter >= at_least;
}

static inline bool await_bytes(long long at_least)
{
	for (int i = 0; i < TEST_WAIT_MS && seen->bytes < at_least; i++)
		usleep(1000);
	return seen->bytes >= at_least;
}
