#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "api/server-internal.h"

#include "test_api.h"

/* ---- deadlines --------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	return (int64_t)timer_now_ms();
}

/* Not before its time, and not at the time that would be without the limit: 10 s or more. */
static void check_time(int64_t from, int64_t least_ms)
{
	int64_t ms = now_ms() - from;

	printf("# %d ms\n", (int)ms);
	CHECK(ms >= least_ms && ms < 9500);
}

static void be_slow(void)
{
	static const struct {
		const char *text;
		int status; /* 0: closed without a word */
		int64_t ms;
	} rows[] = {
		{ "", 0, 200 },
		{ "GET /hel", 408, 200 },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc", 408, 300 },
		{ "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc", 408, 300 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		int64_t from = now_ms(); /* its time begins with the connection */
		int fd = i % 2 ? dial() : dial_tcp();

		put(fd, rows[i].text);
		if (rows[i].status)
			want(fd, rows[i].status, NULL);
		want_end(fd);
		check_time(from, rows[i].ms);
	}
	int64_t from = now_ms();
	int fd = dial();
	get(fd, "/hello");
	want(fd, 200, "hello");
	want_end(fd);
	check_time(from, 500);
}

TEST(who_is_slow_to_send_is_closed)
{
	limits =
	    (struct server_limits){ .head_ms = 200, .body_idle_ms = 300, .keep_alive_ms = 500 };
	serve(be_slow);
}

/* A head has its time as a whole, a body starts anew with every byte. */
static void drip(void)
{
	int64_t from = now_ms();
	int fd = dial();

	struct pollfd answer = { .fd = fd, .events = POLLIN };
	do
		put(fd, "a");
	while (poll(&answer, 1, 20) == 0 && now_ms() - from < 9500);
	check_time(from, 1000);
	want(fd, 408, NULL);
	fd_close(&fd);
	fd = dial();
	put(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n");
	for (int i = 0; i < 20; i++) {
		usleep(150000);
		put(fd, "a");
	}
	want(fd, 200, "aaaaaaaaaaaaaaaaaaaa");
	/* The next head has its own time. */
	for (int i = 0; i < 4; i++) {
		usleep(400000);
		put(fd, "GET /hello HTTP/1.1\r\nHost: h\r\n\r\nGET /hello HTTP");
		want(fd, 200, "hello");
		put(fd, "/1.1\r\nHost: h\r\n\r\n");
		want(fd, 200, "hello");
	}
}

TEST(drops_of_a_head_do_not_buy_time)
{
	limits = (struct server_limits){ .head_ms = 1000, .body_idle_ms = 2000 };
	serve(drip);
}

static void read_slowly(void)
{
	char buf[8192];
	int fd = dial();
	size_t n = 0;

	/* Somewhat, but steadily. */
	put(fd, "GET /stream?1000000 HTTP/1.0\r\n\r\n");
	for (int i = 0; i < 50 && recv(fd, buf, sizeof buf, 0) > 0; i++)
		usleep(80000);
	CHECK_INT(seen->gone, 0);
	while (recv(fd, buf, sizeof buf, 0) > 0)
		n++;
	CHECK(n > 50);
	fd_close(&fd);
	/* Not at all. */
	fd = dial();
	get(fd, "/stream?10000000");
	CHECK(await_count(&seen->gone, 1));
	fd_close(&fd);
}

TEST(who_does_not_take_its_answer_is_closed)
{
	limits = (struct server_limits){ .send_idle_ms = 2000 };
	serve(read_slowly);
}

/* ---- ceilings ---------------------------------------------------------------------- */

static void crowd(void)
{
	enum { MAX = 8 };
	int fds[MAX];

	for (int i = 0; i < MAX; i++) {
		fds[i] = dial();
		get(fds[i], "/hello");
		want(fds[i], 200, "hello");
	}
	get(fds[0], "/hello"); /* now the second is the oldest */
	want(fds[0], 200, "hello");
	int fd = dial();
	get(fd, "/hello");
	want(fd, 200, "hello");
	want_end(fds[1]);
	fds[1] = fd;
	for (int i = 0; i < MAX; i++)
		get(fds[i], "/never");
	CHECK(await_count(&seen->requests, MAX + 2 + MAX));
	fd = dial(); /* nobody is idle */
	want(fd, 503, NULL);
	want_end(fd);
	fd_close(&fds[5]);
	CHECK(await_count(&seen->gone, 1));
	fd = dial();
	get(fd, "/hello");
	want(fd, 200, "hello");
}

TEST(at_the_ceiling_the_oldest_idle_one_makes_room)
{
	limits = (struct server_limits){ .connections_max = 8 };
	serve(crowd);
}

static int count_answered(const int *fds, int n)
{
	int answered = 0;

	for (int i = 0; i < n; i++)
		answered += poll(&(struct pollfd){ .fd = fds[i], .events = POLLIN }, 1, 0);
	return answered;
}

/* More than the server has descriptors. */
static void squeeze(void)
{
	enum { MANY = 60 };
	int fds[MANY], served = 0, refused = 0;

	for (int i = 0; i < MANY; i++) {
		static const char text[] = "GET /held HTTP/1.1\r\nHost: h\r\n\r\n";

		fds[i] = dial();
		(void)put_bytes(fds[i], text, sizeof text - 1); /* it may be refused already */
	}
	AWAIT(seen->heads + count_answered(fds, MANY) == MANY);
	usleep(300000); /* all wait, and the server has nothing to do */
	seen->is_released = 1;
	for (int i = 0; i < MANY; i++) {
		struct answer a = { .error = 0 };

		if (read_answer_to(fds[i], &a, HTTP_ASKED_BODY)) {
			served += a.head.status == 200;
			free(a.body);
		}
		refused += a.head.status == 503;
		if (a.head.status != 200)
			fd_close(&fds[i]);
	}
	printf("# served %d, refused %d of %d\n", served, refused, MANY);
	CHECK(served > 5 && refused > 5);
	/* All that are left are idle: they make room. */
	for (int i = 0; i < MANY; i++) {
		int fd = dial();

		get(fd, "/hello");
		want(fd, 200, "hello");
	}
}

TEST(without_descriptors_load_is_shed_and_it_recovers_alone)
{
	struct rlimit old, low;
	struct timespec t;

	open_server();
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ 32, old.rlim_max };
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
	/* The client gets its own limit back. */
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		setrlimit(RLIMIT_NOFILE, &old);
		squeeze();
		_exit(0);
	}
	struct watch end = { .fd = pidfd_open(pid, 0), .ready = client_ended };
	int status = 0;
	CHECK_INT(loop_add(&loop, &end, EPOLLIN), 0);
	CHECK_INT(loop_run(&loop), 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	CHECK(t.tv_sec == 0 && t.tv_nsec < 200000000l * test_slow()); /* it did not spin */
	loop_remove(&loop, &end);
	fd_close(&end.fd);
	close_server();
}

static void ask_patiently(void)
{
	int fd = dial();

	get(fd, "/hello");
	CHECK(await_count(&seen->ends, 1)); /* nobody has come to the door for a while */
	want(fd, 200, "hello");
}

static void open_the_door(struct timer *t)
{
	struct rlimit r;

	(void)t;
	CHECK_INT(seen->heads, 0);
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = 1000;
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &r), 0);
	seen->ends = 1;
}

/* Somebody else took the reserve. */
TEST(without_even_the_reserve_listening_pauses)
{
	struct timer door = { .fired = open_the_door };
	struct timespec a, b;
	struct rlimit r;

	open_server();
	CHECK_INT(getrlimit(RLIMIT_NOFILE, &r), 0);
	AUTO(fd_close) int highest = dup(0); /* and the client's, below */
	r.rlim_cur = (rlim_t)highest + 1;
	fd_close(&server->reserve_fd);
	fd_close(&highest);
	fflush(NULL);
	pid_t pid = fork();
	int status = 0;
	if (pid == 0) {
		ask_patiently();
		_exit(0);
	}
	struct watch end = { .fd = pidfd_open(pid, 0), .ready = client_ended };
	CHECK_INT(loop_add(&loop, &end, EPOLLIN), 0);
	int last = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(setrlimit(RLIMIT_NOFILE, &r), 0);
	timer_set(&timers, &door, 400);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	CHECK_INT(loop_run(&loop), 0);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 50l * test_slow());
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	CHECK(server->reserve_fd >= 0);
	loop_remove(&loop, &end);
	fd_close(&end.fd);
	fd_close(&last);
	close_server();
}

/* Until the server has read all of it. */
static void await_read(int fd)
{
	int n_unread = -1;

	AWAIT(ioctl(fd, SIOCOUTQ, &n_unread) == 0 && n_unread == 0);
}

static void send_large_bodies(void)
{
	AUTO(freep) char *big = mem_alloc(1 << 20);
	int fds[3];

	for (int i = 0; i < 3; i++) {
		fds[i] = dial();
		put(fds[i], "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 600001\r\n\r\n");
		(void)put_bytes(fds[i], big, 600000); /* one byte is missing */
		if (i < 2)
			await_read(fds[i]);
	}
	want(fds[2], 503, NULL);
	want_end(fds[2]);
	for (int i = 0; i < 2; i++) {
		put(fds[i], "x");
		want(fds[i], 200, NULL);
	}
	fds[2] = dial();
	post(fds[2], "/echo", "abc");
	want(fds[2], 200, "abc");
}

TEST(bodies_share_a_ceiling)
{
	limits = (struct server_limits){ .memory_max = 1500000 };
	serve(send_large_bodies);
}

/* A body of 100,001 bytes of which the last is missing. */
static int hoard(const char *field, const char *big)
{
	int fd = dial();

	put(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n");
	put(fd, field);
	put(fd, "\r\n");
	(void)put_bytes(fd, big, 100000);
	return fd;
}

/* Of 1,600,128 bytes each owner has 200,016, and all of them 1,400,112. */
static void send_bodies_of_owners(void)
{
	static const char *const owners[] = {
		"X-Owner: b\r\n", "X-Owner: c\r\n", "X-Owner: d\r\n",
		"X-Owner: e\r\n", "X-Owner: f\r\n", "X-Owner: g\r\n"
	};
	AUTO(freep) char *big = mem_alloc(100000);
	int fds[2], last, others[2 * COUNT(owners)];

	for (int i = 0; i < 2; i++)
		await_read(fds[i] = hoard("X-Owner: a\r\n", big));
	want(hoard("X-Owner: a\r\n", big), 503, NULL);
	for (size_t i = 0; i < COUNT(others); i++) /* the same is there for each other owner */
		await_read(others[i] = hoard(owners[i / 2], big));
	want(hoard("X-Owner: h\r\n", big), 503, NULL);
	await_read(last = hoard("", big)); /* and what is left is the operator's */
	put(last, "x");
	want(last, 200, NULL);
	put(fds[0], "x");
	want(fds[0], 200, NULL);
	await_read(last = hoard("X-Owner: a\r\n", big)); /* what is given back can be had again */
	put(last, "x");
	want(last, 200, NULL);
}

TEST(an_owner_has_its_share_of_memory_and_the_operator_a_reserve)
{
	limits = (struct server_limits){ .memory_max = 1600128 };
	serve(send_bodies_of_owners);
}

static void trickle(void)
{
	int fd = dial();

	put(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
	for (int i = 0; i < 30; i++) {
		usleep(20000);
		if (send(fd, "x", 1, MSG_NOSIGNAL) < 0)
			break;
	}
	want(fd, 408, NULL);
}

TEST(a_body_that_never_ends_is_given_up)
{
	limits = (struct server_limits){ .body_idle_ms = 20000, .body_ms = 300 };
	serve(trickle);
}

/* ---- the end ----------------------------------------------------------------------- */

static void drain_all(void)
{
	int idle = dial(), waiting = dial(), last = dial();

	get(idle, "/hello");
	want(idle, 200, "hello");
	get(waiting, "/held");
	CHECK(await_count(&seen->requests, 2));
	get(waiting, "/hello"); /* sent ahead, and too late */
	get(last, "/drain");
	struct answer a = { .error = 0 };
	CHECK(read_answer_to(last, &a, HTTP_ASKED_BODY));
	CHECK_STR(a.body, "bye");
	CHECK(!a.head.keep_alive);
	free(a.body);
	want_end(last);
	want_end(idle);
	CHECK_INT(seen->drained, 0);
	seen->is_released = 1;
	want(waiting, 200, "later");
	want_end(waiting);
	CHECK(await_count(&seen->drained, 1));
}

TEST(draining_finishes_what_was_begun)
{
	open_server();
	serve_only(drain_all);
	struct sockaddr_un name = socket_name();
	AUTO(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(connect(fd, (struct sockaddr *)&name, sizeof name), -1);
	CHECK_INT(errno, ECONNREFUSED);
	CHECK(server_drain(server));
	CHECK_INT(server_connections(server), 0);
	close_server();
}

static void wait_for_ever(void)
{
	int fds[4];

	for (size_t i = 0; i < COUNT(fds); i++) {
		fds[i] = dial();
		get(fds[i], i % 2 ? "/never" : "/stream?9999999");
	}
	CHECK(await_count(&seen->requests, COUNT(fds)));
	_exit(0);
}

TEST(freeing_tells_those_that_are_still_at_work)
{
	serve(wait_for_ever);
	CHECK_INT(seen->gone, 4);
}

/* ---- many -------------------------------------------------------------------------- */

enum { CROWD = 10000 };

static size_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t all = 0, pages = 0;

	CHECK(f && fscanf(f, "%zu %zu", &all, &pages) == 2);
	fclose(f);
	return pages * 4096;
}

static bool raise_descriptors(void)
{
	struct rlimit r;

	CHECK_INT(getrlimit(RLIMIT_NOFILE, &r), 0);
	if (r.rlim_max < CROWD + 100)
		r.rlim_max = CROWD + 100;
	r.rlim_cur = CROWD + 100;
	return setrlimit(RLIMIT_NOFILE, &r) == 0;
}

static int crowd_fds[CROWD];
static const char *crowd_text;

/* Each has sent its text; then one more asks, again and again. */
static void be_many(void)
{
	for (int i = 0; i < CROWD; i++) {
		crowd_fds[i] = dial();
		put(crowd_fds[i], crowd_text);
		if (crowd_text[0] == 'G')
			want(crowd_fds[i], 200, "hello");
	}
	int fd = dial();
	int64_t from = now_ms();

	for (int i = 0; i < 2000; i++) {
		post(fd, "/echo", "{\"a\":1}");
		want(fd, 200, "{\"a\":1}");
	}
	printf("# 2000 requests among %d others: %d ms\n", CROWD, (int)(now_ms() - from));
	seen->ends = 1;
	while (seen->drained == 0)
		usleep(1000);
}

static void watch_crowd(struct timer *t)
{
	if (seen->ends && server_connections(server) == CROWD + 1)
		loop.is_done = true;
	else
		timer_set(&timers, t, 20);
}

static void measure_crowd(const char *text, size_t bytes_max)
{
	if (!raise_descriptors())
		SKIP("needs 10,100 descriptors");
	limits.head_ms = 600000; /* all of them have to come first */
	open_server();
	crowd_text = text;
	size_t before = resident_bytes();
	fflush(NULL);
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		be_many();
		_exit(0);
	}
	struct timer watcher = { .fired = watch_crowd };
	timer_set(&timers, &watcher, 20);
	CHECK_INT(loop_run(&loop), 0);
	size_t each = (resident_bytes() - before) / CROWD;
	printf("# %zu bytes each\n", each);
	CHECK(!MEMORY_IS_OURS || each < bytes_max);
	int64_t from = now_ms();
	seen->drained = 1;
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	while (server_connections(server) > 0 && now_ms() - from < TEST_WAIT_MS)
		serve_for_ms(10);
	printf("# all left: %d ms\n", (int)(now_ms() - from));
	CHECK_INT(server_connections(server), 0);
	close_server();
}

TEST(ten_thousand_idle_connections_are_cheap)
{
	measure_crowd("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n", 1024);
}

TEST(ten_thousand_slow_heads_are_cheap)
{
	measure_crowd("POST /echo HTTP/1.1\r\nHost: h\r\nX-Slow: ", 1024);
}

TEST(ten_thousand_waiting_requests_are_bounded)
{
	measure_crowd("POST /never HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}", 6 << 10);
}

/* ---- speed ------------------------------------------------------------------------- */

enum { ROUNDS = 20000 };

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void ask_fast(void)
{
	static const char text[] =
	    "POST /echo HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
	    "User-Agent: test/1\r\nContent-Type: application/json\r\n"
	    "Content-Length: 61\r\n\r\n"
	    "{\"cmd\":\"true\",\"cwd\":\"/work\",\"timeout\":1000,\"wait\":1000,\"x\":1}";
	static int64_t ns[ROUNDS];
	int fd = dial();
	char buf[4096];

	for (int i = 0; i < ROUNDS; i++) {
		struct timespec a, b;

		clock_gettime(CLOCK_MONOTONIC, &a);
		CHECK_INT(send(fd, text, sizeof text - 1, 0), (ssize_t)sizeof text - 1);
		CHECK(recv(fd, buf, sizeof buf, 0) > 100);
		clock_gettime(CLOCK_MONOTONIC, &b);
		ns[i] = (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;
	}
	qsort(ns, ROUNDS, sizeof ns[0], compare);
	printf("# round trip p50 %d ns, p99 %d ns\n", (int)ns[ROUNDS / 2],
	       (int)ns[ROUNDS - ROUNDS / 100]);
}

TEST(a_small_request_costs_microseconds)
{
	struct timespec a, b;

	open_server();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	serve_only(ask_fast);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	int64_t ns = (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;
	printf("# %d ns of the server's time each\n", (int)(ns / ROUNDS));
	CHECK(ns / ROUNDS < 40000l * test_slow());
	close_server();
}
