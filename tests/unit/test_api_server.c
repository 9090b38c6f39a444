#include "test_api.h"

/* ---- one request ------------------------------------------------------------------- */

static void ask_all(void)
{
	static const struct {
		const char *request;
		int status;
		const char *body;
	} rows[] = {
		{ "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n", 200, "hello" },
		{ "GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n", 404, "no" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 200, "abc" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 200, "" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\n\r\n", 200, "" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
		  200, "abcde" },
		{ "POST /hello HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		  200, "hello" },
		{ "POST /upload HTTP/1.1\r\nHost: h\r\n\r\n", 200, "0" },
		{ "POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n\0\1\2", 200, "3" },
		{ "GET /extra HTTP/1.1\r\nHost: h\r\n\r\n", 201, "made" },
		{ "GET /later?20 HTTP/1.1\r\nHost: h\r\n\r\n", 200, "later" },
		{ "GET /ticks HTTP/1.1\r\nHost: h\r\n\r\n", 200, "tick\ntick\ntick\n" },
		{ "GET /stream?0 HTTP/1.1\r\nHost: h\r\n\r\n", 200, "" },
		{ "GET /empty HTTP/1.1\r\nHost: h\r\n\r\n", 204, "" },
		{ "GET /upgrade HTTP/1.1\r\nHost: h\r\n\r\n", 426, "" },
		{ "GET /bye HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 404, "no" },
	};
	int fds[] = { dial(), dial_tcp() };

	for (size_t k = 0; k < COUNT(fds); k++) {
		for (size_t i = 0; i < COUNT(rows); i++) {
			size_t n = strlen(rows[i].request);

			if (strcmp(rows[i].body, "3") == 0)
				n += 3; /* the one with a NUL in its body */
			seen->bytes = 0;
			CHECK_INT(put_bytes(fds[k], rows[i].request, n), n);
			want(fds[k], rows[i].status, rows[i].body);
		}
		want_end(fds[k]);
	}
}

TEST(every_kind_of_request_is_answered_on_one_kept_connection)
{
	serve(ask_all);
	CHECK_INT(seen->gone, 0);
	CHECK_INT(seen->wrong, 0);
}

static void drip(int fd, const char *text)
{
	for (; *text; text++) {
		CHECK_INT(put_bytes(fd, text, 1), 1);
		usleep(100);
	}
}

static void send_bytes_one_by_one(void)
{
	int fds[] = { dial(), dial_tcp() };

	for (size_t k = 0; k < 2 * COUNT(fds); k++) {
		drip(fds[k / 2], "POST /echo HTTP/1.1\r\nHost: h\r\nX-Long: 0123456789\r\n"
		                 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
		want(fds[k / 2], 200, "abc");
	}
}

TEST(a_request_may_come_byte_by_byte)
{
	serve(send_bytes_one_by_one);
	CHECK_INT(seen->requests, 4);
}

/* Without an end of line it is parsed at 1, 2, 4 ... bytes; a fault is still found. */
static void drip_garbage(void)
{
	int fd = dial();
	size_t n = 0;

	for (int i = 0; i < 3; i++)
		put(fd, "\x01");
	want(fd, 400, NULL);
	want_end(fd);
	fd = dial();
	put(fd, "GET / HTTP/1.1\r\nX: ");
	while (n < HTTP_HEAD_MAX && put_bytes(fd, "aaaaaaaaaaaaaaaa", 16) == 16)
		n += 16;
	want(fd, 431, NULL);
	want_end(fd);
}

TEST(a_fault_in_a_slow_head_is_found_before_its_end)
{
	serve(drip_garbage);
	CHECK_INT(seen->heads, 0);
}

static void pipeline_on(int fd)
{
	AUTO(str_done) struct str text = { .max = 1 << 20 };
	enum { ROUNDS = 100 };

	for (int i = 0; i < ROUNDS; i++) {
		str_add(&text, "GET /later?1 HTTP/1.1\r\nHost: h\r\n\r\n");
		for (int k = 0; k < 9; k++)
			str_addf(
			    &text,
			    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n%04d%d", i,
			    k);
		str_add(&text, "GET /ticks HTTP/1.1\r\nHost: h\r\n\r\n");
	}
	put(fd, text.data);
	for (int i = 0; i < ROUNDS; i++) {
		want(fd, 200, "later");
		for (int k = 0; k < 9; k++) {
			char number[8];

			snprintf(number, sizeof number, "%04d%d", i, k);
			want(fd, 200, number);
		}
		want(fd, 200, "tick\ntick\ntick\n");
	}
}

static void pipeline(void)
{
	pipeline_on(dial());
	pipeline_on(dial_tcp());
}

TEST(requests_that_are_sent_ahead_are_answered_in_order)
{
	serve(pipeline);
}

static void look_at_heads(void)
{
	struct answer a = { .error = 0 };
	int fd = dial();

	get(fd, "/hello");
	CHECK(read_answer_to(fd, &a, HTTP_ASKED_BODY));
	CHECK(http_header(&a.head, "Date") && http_header(&a.head, "Date")->len == 29);
	CHECK(span_is(*http_header(&a.head, "Content-Type"), "text/plain"));
	CHECK(!http_header(&a.head, "Connection"));
	free(a.body);
	put(fd, "HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n");
	CHECK(read_answer_to(fd, &a, HTTP_ASKED_HEAD));
	CHECK_INT(a.head.length, 5);
	CHECK_INT(a.len, 0);
	free(a.body);
	put(fd, "HEAD /stream?100 HTTP/1.1\r\nHost: h\r\n\r\n");
	CHECK(read_answer_to(fd, &a, HTTP_ASKED_HEAD));
	CHECK(span_is(*http_header(&a.head, "Transfer-Encoding"), "chunked"));
	free(a.body);
	get(fd, "/extra");
	CHECK(read_answer_to(fd, &a, HTTP_ASKED_BODY));
	CHECK(span_is(*http_header(&a.head, "X-One"), "1"));
	CHECK(span_is(*http_header(&a.head, "X-Two"), "2"));
	free(a.body);
	get(fd, "/empty");
	CHECK(read_answer_to(fd, &a, HTTP_ASKED_BODY));
	CHECK(!http_header(&a.head, "Content-Length"));
	free(a.body);
	get(fd, "/bad-field");
	CHECK(read_answer_to(fd, &a, HTTP_ASKED_BODY));
	CHECK_INT(a.head.status, 500);
	CHECK_INT(a.len, 0);
	CHECK(!http_header(&a.head, "Set-Cookie"));
	free(a.body);
	want_end(fd);
}

TEST(heads_say_what_is_true_and_nothing_else)
{
	serve(look_at_heads);
}

static void ask_old(void)
{
	static const char *const rows[][2] = {
		{ "GET /hello HTTP/1.0\r\n\r\n", "hello" },
		{ "GET /ticks HTTP/1.0\r\n\r\n", "tick\ntick\ntick\n" },
		{ "GET /later?5 HTTP/1.0\r\n\r\n", "later" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		int fd = dial_tcp();

		put(fd, rows[i][0]);
		want(fd, 200, rows[i][1]);
		want_end(fd);
	}
}

TEST(an_old_client_is_answered_until_the_connection_ends)
{
	serve(ask_old);
}

static void ask_who(void)
{
	char text[128];
	int fd = dial();

	snprintf(text, sizeof text, "unix tls=0 uid=%d gid=%d fd=1 path=/who query=a=b?c", getuid(),
	         getgid());
	get(fd, "/who?a=b?c");
	want(fd, 200, text);
	fd = dial_tcp();
	get(fd, "/who");
	want(fd, 200, "tcp tls=0 uid=-1 gid=-1 fd=1 path=/who query=");
}

TEST(a_request_knows_by_which_door_it_came)
{
	serve(ask_who);
}

/* ---- malformed --------------------------------------------------------------------- */

static void ask_wrong(void)
{
	static const struct {
		const char *request;
		int status;
		const char *code;
	} rows[] = {
		{ "\r\n", 400, "invalid" },
		{ "GET /hello HTTP/1.1\r\n\r\n", 400, "invalid" },
		{ "GET /hello HTTP/2.0\r\nHost: h\r\n\r\n", 505, "invalid" },
		{ "GET /hello HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400, "invalid" },
		{ "POST /hello HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", 400,
		  "invalid" },
		{ "POST /hello HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
		  400, "invalid" },
		{ "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz", 400,
		  "invalid" },
		{ "POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a\r\n",
		  400, "invalid" },
		{ "POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n", 413,
		  "too_large" },
		{ "POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n",
		  413, "too_large" },
		{ "POST /upload-small HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n", 413,
		  "too_large" },
		{ "GET /hello HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", 417, "invalid" },
	};
	char code[64];

	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		struct answer a = { .error = 0 };
		int fd = i % 2 ? dial() : dial_tcp();

		printf("# row %zu\n", i / 2);
		put(fd, rows[i / 2].request);
		put(fd, "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
		CHECK(read_answer_to(fd, &a, HTTP_ASKED_BODY));
		CHECK_INT(a.head.status, rows[i / 2].status);
		CHECK(!a.head.keep_alive);
		CHECK(span_is(*http_header(&a.head, "Content-Type"), "application/problem+json"));
		snprintf(code, sizeof code, "\"status\":%d,\"code\":\"%s\",\"detail\":\"",
		         rows[i / 2].status, rows[i / 2].code);
		CHECK(strstr(a.body, code) && a.body[0] == '{' && a.body[a.len - 1] == '}');
		free(a.body);
		want_end(fd);
	}
}

TEST(a_malformed_request_is_told_why_and_is_the_last)
{
	serve(ask_wrong);
	CHECK_INT(seen->gone, 0);
}

/* Much more than the socket holds: to close at once would take the answer back. */
static void upload_refused(void)
{
	AUTO(freep) char *big = mem_alloc(1 << 20);

	for (int i = 0; i < 2; i++) {
		int fd = i ? dial() : dial_tcp();

		put(fd, "POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n");
		CHECK_INT(put_bytes(fd, big, 1 << 20), 1 << 20);
		want(fd, 413, NULL);
		want_end(fd);
	}
}

TEST(a_refused_upload_still_reads_its_answer)
{
	serve(upload_refused);
}

static void answered_early(void)
{
	int fd = dial();
	AUTO(freep) char *big = mem_alloc(1 << 20);

	/* Little is missing: it is skipped. */
	post(fd, "/nothing", "abc");
	want(fd, 404, "no");
	put(fd, "POST /upload-hello HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n");
	want(fd, 200, "hello");
	CHECK_INT(put_bytes(fd, big, 20000), 20000);
	get(fd, "/hello");
	want(fd, 200, "hello");
	/* Or was read already, and waits. */
	for (int i = 0; i < 2; i++) {
		put(fd, "POST /upload-one HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n");
		CHECK_INT(put_bytes(fd, big, 50000), 50000);
		want(fd, 200, "later");
	}
	put(fd, "POST /upload-one HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	        "2\r\nab\r\n2\r\ncd\r\n0\r\n\r\nGET /hello");
	want(fd, 200, "later");
	want_end(fd);
	fd = dial();
	/* Much is missing: that was the last one. */
	put(fd, "POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n");
	CHECK_INT(put_bytes(fd, big, 1 << 20), 1 << 20);
	want(fd, 404, "no");
	want_end(fd);
	fd = dial();
	put(fd,
	    "POST /nothing HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
	want(fd, 404, "no");
	want_end(fd);
}

TEST(an_answer_before_the_body_skips_it_or_ends)
{
	serve(answered_early);
}

static void wait_for_100(void)
{
	static const char expect[] = "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n";
	static const struct {
		const char *path, *body;
		int interim, final;
		bool is_kept;
	} rows[] = {
		{ "/echo", "abc", 100, 200, true },          { "/upload", NULL, 100, 200, true },
		{ "/nothing", NULL, 0, 404, false },         { "/hello", NULL, 0, 400, false },
		{ "/upload-hello", "hello", 0, 200, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[256];
		int fd = dial();
		struct answer a = { .error = 0 };

		snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: h\r\n%s", rows[i].path,
		         expect);
		put(fd, text);
		if (rows[i].interim) {
			CHECK(read_head(fd, &a, HTTP_ASKED_BODY));
			CHECK_INT(a.head.status, 100);
			put(fd, "abc");
		}
		want(fd, rows[i].final, rows[i].body);
		if (!rows[i].is_kept)
			want_end(fd);
	}
	/* Who does not wait is not told to go on. */
	int fd = dial();
	put(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
	        "Content-Length: 3\r\n\r\nabc");
	want(fd, 200, "abc");
}

TEST(the_body_is_asked_for_only_when_it_is_wanted)
{
	serve(wait_for_100);
}

/* ---- clients that leave ------------------------------------------------------------ */

static void leave_at_every_byte(void)
{
	static const char *const requests[] = {
		"POST /never HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc",
		"POST /upload-paused?1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n3\r\nabc\r\n0\r\n\r\n",
		"GET /upgrade HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: "
		"echo\r\n\r\nabc",
		"GET /hello HTTP/1.1\r\nHost: h\r\n\r\nGET /stream?999999 HTTP/1.1\r\nHost: "
		"h\r\n\r\n",
	};

	for (size_t k = 0; k < COUNT(requests) * 2; k++) {
		const char *text = requests[k / 2];

		for (size_t i = 0; i <= strlen(text); i++) {
			int fd = k % 2 ? dial() : dial_tcp();

			CHECK_INT(put_bytes(fd, text, i), i);
			if (i % 3 == 0)
				usleep(200);
			if (i % 2 == 0) /* nothing is said, the kernel resets */
				setsockopt(fd, SOL_SOCKET, SO_LINGER,
				           &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
			fd_close(&fd);
		}
	}
	int fd = dial();
	get(fd, "/hello");
	want(fd, 200, "hello");
}

TEST(a_client_may_leave_at_any_byte)
{
	open_server();
	serve_only(leave_at_every_byte);
	for (int i = 0; i < TEST_WAIT_MS / 50 && server_connections(server) > 0; i++)
		serve_for_ms(50); /* the last ones */
	CHECK_INT(server_connections(server), 0);
	close_server();
}

static void leave_while_waiting(void)
{
	int (*const dials[])(void) = { dial, dial_tcp };

	for (int i = 0; i < 4; i++) {
		int fd = dials[i % 2]();

		get(fd, "/never");
		CHECK(await_count(&seen->requests, i + 1));
		CHECK_INT(seen->gone, i);
		if (i >= 2)
			get(fd, "/hello"); /* sent ahead, and never read */
		usleep(2000);
		fd_close(&fd);
		CHECK(await_count(&seen->gone, i + 1));
	}
}

TEST(a_waiting_client_that_leaves_is_noticed)
{
	serve(leave_while_waiting);
	CHECK_INT(seen->gone, 4);
}

static void shut_and_wait(void)
{
	static const char *const rows[][2] = {
		{ "/hello", "hello" },
		{ "/later?50", "later" },
		{ "/ticks", "tick\ntick\ntick\n" },
	};
	int (*const dials[])(void) = { dial, dial_tcp };

	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		int fd = dials[i % 2]();

		get(fd, rows[i / 2][0]);
		get(fd, "/hello"); /* one more, sent ahead */
		if (i & 2)
			usleep(5000);
		shutdown(fd, SHUT_WR);
		want(fd, 200, rows[i / 2][1]);
		want(fd, 200, "hello");
		want_end(fd);
	}
	/* In the middle of a body it is an error. */
	int fd = dial();
	put(fd, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nab");
	shutdown(fd, SHUT_WR);
	want(fd, 400, NULL);
	want_end(fd);
}

TEST(a_client_that_sends_no_more_still_gets_its_answer)
{
	serve(shut_and_wait);
	CHECK_INT(seen->gone, 0);
}

/* First it closes half of it, then the rest. */
static void shut_and_leave(void)
{
	int fd = dial();

	get(fd, "/never");
	CHECK(await_count(&seen->requests, 1));
	shutdown(fd, SHUT_WR);
	usleep(20000);
	CHECK_INT(seen->gone, 0);
	fd_close(&fd);
	CHECK(await_count(&seen->gone, 1));
}

TEST(half_closed_clients_are_watched_too)
{
	serve(shut_and_leave);
}

/* ---- what it costs to wait --------------------------------------------------------- */

static void wait_half_closed(void)
{
	int fd[] = { dial(), dial_tcp(), dial() };

	get(fd[0], "/later?500");
	get(fd[1], "/later?500");
	get(fd[2], "/later?500");
	put(fd[2], "GET /hel"); /* sent ahead */
	CHECK(await_count(&seen->requests, 3));
	shutdown(fd[0], SHUT_WR);
	shutdown(fd[1], SHUT_WR);
	usleep(450000);
}

TEST(waiting_costs_no_time)
{
	struct timespec t;

	open_server();
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	int64_t before = t.tv_sec * 1000 + t.tv_nsec / 1000000;
	serve_only(wait_half_closed);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	CHECK(t.tv_sec * 1000 + t.tv_nsec / 1000000 - before < 100l * test_slow());
	close_server();
}

/* ---- addresses --------------------------------------------------------------------- */

TEST(addresses_are_numbers_or_localhost)
{
	static const struct {
		const char *address;
		bool is_taken;
	} rows[] = {
		{ "127.0.0.1:0", true },    { "localhost:0", true },
		{ "127.0.0.1", false },     { "127.0.0.1:", false },
		{ "127.0.0.1:x", false },   { "127.0.0.1:65536", false },
		{ ":80", false },           { "", false },
		{ "::1:80", false },        { "[::1:0", false },
		{ "[]:0", false },          { "example.org:80", false },
		{ "127.0.0.1:-1", false },  { "127.0.0.1: 80", false },
		{ "[127.0.0.1]:0", false }, { "192.0.2.1:0", false },
	};
	struct err e = { 0 };

	open_server();
	for (size_t i = 0; i < COUNT(rows); i++) {
		int r = server_listen_tcp(server, rows[i].address, NULL, NULL, &e);

		printf("# %s: %d %s\n", rows[i].address, r, r < 0 ? e.msg : "");
		CHECK(rows[i].is_taken ? r > 0 : r == -1);
	}
	int r = server_listen_tcp(server, "[::1]:0", NULL, NULL, &e);
	CHECK(r > 0 || e.sys == EADDRNOTAVAIL || e.sys == EAFNOSUPPORT);
	CHECK_INT(server_listen_tcp(server, "127.0.0.1:0", "cert", NULL, &e), -1);
	CHECK_INT(server_listen_tcp(server, "127.0.0.1:0", "/nonexistent", "/nonexistent", &e), -1);
	close_server();
}

static void ask_by_six(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
		                  .sin6_port = htons((uint16_t)tcp_port),
		                  .sin6_addr = in6addr_loopback };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	get(fd, "/who");
	want(fd, 200, "tcp tls=0 uid=-1 gid=-1 fd=1 path=/who query=");
}

TEST(localhost_is_both_families)
{
	struct err e = { 0 };

	open_server();
	CHECK(server_listen_tcp(server, "[::1]:0", NULL, NULL, &e) > 0 || e.sys != 0);
	if (e.sys)
		SKIP("needs IPv6");
	tcp_port = server_listen_tcp(server, "localhost:0", NULL, NULL, &e);
	CHECK(tcp_port > 0);
	serve_only(ask_by_six);
	close_server();
}
