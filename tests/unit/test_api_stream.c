#include "test_api.h"

/* ---- answers in pieces ------------------------------------------------------------- */

/* Reads `n` bytes that are as stream() sends them, or fails. */
static void want_pattern(const char *body, size_t len, size_t n)
{
	size_t wrong = 0;

	CHECK_INT(len, n);
	for (size_t i = 0; i < n; i++)
		wrong += body[i] != (char)(i % 251);
	CHECK_INT(wrong, 0);
}

static void stream_sizes(void)
{
	static const size_t sizes[] = { 0, 1, 1000, 40000, 300000, 2000000 };
	static const char *const paths[] = { "/stream", "/stream-length" };
	int (*const dials[])(void) = { dial, dial_tcp };

	for (size_t k = 0; k < COUNT(dials); k++) {
		int fd = dials[k]();

		for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
			struct answer a = { .error = 0 };
			char path[64];

			snprintf(path, sizeof path, "%s?%zu", paths[i % 2], sizes[i / 2]);
			get(fd, path);
			CHECK(read_answer_to(fd, &a, HTTP_ASKED_BODY));
			CHECK_INT(a.error, HTTP_BODY_DONE);
			CHECK_INT(a.head.body, i % 2 ? HTTP_LENGTH : HTTP_CHUNKED);
			want_pattern(a.body, a.len, sizes[i / 2]);
			free(a.body);
		}
		fd_close(&fd);
	}
}

TEST(streams_of_any_size_arrive_whole)
{
	serve(stream_sizes);
	CHECK_INT(seen->gone, 0);
}

static size_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t all = 0, pages = 0;

	CHECK(f && fscanf(f, "%zu %zu", &all, &pages) == 2);
	fclose(f);
	return pages * 4096;
}

enum { GIANT = 1 << 30 };

static void read_giant(void)
{
	AUTO(freep) char *buf = mem_alloc(1 << 20);
	int fd = dial();
	size_t total = 0;
	ssize_t n;

	put(fd, "GET /stream?1073741824 HTTP/1.0\r\n\r\n");
	usleep(300000); /* a slow reader: the queue fills */
	CHECK(seen->rooms < 2);
	for (size_t paused = 0; (n = recv(fd, buf, 1 << 20, 0)) > 0; total += (size_t)n)
		if (total - paused >= 4 << 20 && total < GIANT - (16 << 20)) {
			AWAIT(seen->fulls > seen->rooms); /* whoever is faster: it fills again */
			paused = total;
		}
	CHECK(total > GIANT && total < GIANT + 512);
	CHECK(seen->rooms > 100);
}

TEST(a_gigabyte_is_streamed_with_a_small_queue)
{
	open_server();
	size_t before = resident_bytes();
	serve_only(read_giant);
	size_t grown = resident_bytes() - before;

	printf("# grown by %zu KiB\n", grown >> 10);
	CHECK(!MEMORY_IS_OURS || grown < 2 << 20);
	close_server();
}

static void read_cut(void)
{
	static const char *const paths[] = { "/short", "/long", "/abort", "/abort-later" };
	int (*const dials[])(void) = { dial, dial_tcp };

	for (size_t i = 0; i < 2 * COUNT(paths); i++) {
		struct answer a = { .error = HTTP_E_CUT };
		int fd = dials[i % 2]();

		get(fd, paths[i / 2]);
		if (read_answer_to(fd, &a, HTTP_ASKED_BODY))
			free(a.body);
		CHECK(a.error < 0);
		want_end(fd);
	}
	/* To an old client only the kernel can say so. */
	int fd = dial_tcp();
	char buf[4096];
	ssize_t n;

	put(fd, "GET /abort-later HTTP/1.0\r\n\r\n");
	while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
		continue;
	CHECK_INT(n, -1);
	CHECK_INT(errno, ECONNRESET);
}

TEST(an_answer_that_is_not_finished_looks_so)
{
	serve(read_cut);
	CHECK_INT(seen->gone, 0);
}

static void leave_a_stream(void)
{
	int (*const dials[])(void) = { dial, dial_tcp };

	for (int i = 0; i < 8; i++) {
		int fd = dials[i % 2]();
		char buf[64];

		get(fd, i & 2 ? "/stream?99999999" : "/ticks?99999999");
		CHECK(recv(fd, buf, sizeof buf, 0) > 0);
		if (i & 4)
			usleep(5000);
		fd_close(&fd);
		CHECK(await_count(&seen->gone, i + 1));
	}
}

TEST(a_client_that_leaves_a_stream_is_noticed)
{
	serve(leave_a_stream);
	CHECK_INT(seen->gone, 8);
}

/* ---- bodies in pieces -------------------------------------------------------------- */

static void upload_to(const char *path, size_t n, bool is_chunked)
{
	AUTO(freep) char *bytes = mem_alloc(n + 1);
	char text[256], number[32];
	int fd = n % 2 ? dial() : dial_tcp();

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i % 251);
	snprintf(number, sizeof number, "Content-Length: %zu", n);
	snprintf(text, sizeof text, "PUT %s HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n", path,
	         is_chunked ? "Transfer-Encoding: chunked" : number);
	put(fd, text);
	for (size_t at = 0, k; at < n; at += k) {
		k = is_chunked && n - at > 7001 ? 7001 : n - at;
		snprintf(text, sizeof text, "%zx\r\n", k);
		if (is_chunked)
			put(fd, text);
		CHECK_INT(put_bytes(fd, bytes + at, k), k);
		if (is_chunked)
			put(fd, "\r\n");
	}
	if (is_chunked)
		put(fd, "0\r\n\r\n");
	get(fd, "/hello"); /* behind it */
	snprintf(number, sizeof number, "%zu", n);
	want(fd, 200, number);
	want(fd, 200, "hello");
	fd_close(&fd);
	seen->bytes = 0;
}

static void upload_sizes(void)
{
	static const size_t sizes[] = { 0, 1, 16383, 16384, 65536, 65537, 1000001, 5000000 };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (int k = 0; k < 2; k++) {
			upload_to("/upload", sizes[i], k);
			upload_to("/upload-paused?0", sizes[i] / 4, k);
			upload_to("/upload-paused?1", sizes[i] / 16, k);
		}
	}
}

TEST(uploads_arrive_whole_with_and_without_pauses)
{
	serve(upload_sizes);
	CHECK_INT(seen->wrong, 0);
	CHECK_INT(seen->ends, 48);
	CHECK_INT(seen->gone, 0);
}

/* The handler takes one piece and no more: the sender must come to a stop. */
static void push_against_a_pause(void)
{
	AUTO(freep) char *bytes = mem_alloc(64 << 20);
	int fd = dial();

	put(fd, "PUT /upload-paused?20000 HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n");
	struct timeval tv = { .tv_usec = 300000 };
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
	size_t n = put_bytes(fd, bytes, 64 << 20);

	printf("# %zu KiB went out, %lld were taken\n", n >> 10, (long long)seen->bytes >> 10);
	CHECK(n < 2 << 20);
	CHECK(seen->bytes <= 64 << 10);
	CHECK_INT(seen->gone, 0);
	fd_close(&fd);
	CHECK(await_count(&seen->gone, 1)); /* also while it is paused */
}

TEST(a_pause_holds_the_sender_back)
{
	serve(push_against_a_pause);
}

/* ---- upgrades ---------------------------------------------------------------------- */

static void read_101(int fd)
{
	char head[1024] = "";
	size_t n = 0;

	while (!strstr(head, "\r\n\r\n") && n < sizeof head - 1 && recv(fd, head + n, 1, 0) == 1)
		n++;
	CHECK(strncmp(head, "HTTP/1.1 101 Switching Protocols\r\n", 34) == 0);
	CHECK(strstr(head, "\r\nConnection: Upgrade\r\n"));
	CHECK(strstr(head, "\r\nUpgrade: echo\r\n"));
	CHECK(!strstr(head, "Content-Length") && !strstr(head, "Transfer-Encoding"));
}

static void want_bytes(int fd, const char *text)
{
	char buf[64] = "";
	size_t n = 0;

	while (n < strlen(text) && recv(fd, buf + n, 1, 0) == 1)
		n++;
	CHECK_STR(buf, text);
}

#define UPGRADE(path)                                                                              \
	"GET " path " HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\n"                  \
	"Upgrade: other, Echo\r\n\r\n"

static void talk_raw(void)
{
	int (*const dials[])(void) = { dial, dial_tcp };

	for (int i = 0; i < 6; i++) {
		int fd = dials[i % 2]();

		get(fd, "/hello");
		want(fd, 200, "hello");
		put(fd, UPGRADE("/upgrade") "ahead"); /* in one packet */
		read_101(fd);
		want_bytes(fd, "ahead");
		put(fd, "GET / HTTP/1.1\r\n\r\n"); /* means nothing now */
		want_bytes(fd, "GET / HTTP/1.1\r\n\r\n");
		if (i < 4) {
			put(fd, "last");
			shutdown(fd, SHUT_WR);
			want_bytes(fd, "last");
			CHECK(at_end(fd));
		}
		fd_close(&fd);
		CHECK(await_count(&seen->ends, i + 1));
	}
	CHECK_INT(seen->ends, 6);
}

TEST(an_upgraded_connection_is_raw_both_ways)
{
	serve(talk_raw);
	CHECK_INT(seen->gone, 0);
}

/* Its last bytes are read although it has left, and although they were not wanted then. */
static void leave_while_paused(void)
{
	int fd = dial();

	put(fd, UPGRADE("/upgrade-paused"));
	read_101(fd);
	put(fd, "1");
	CHECK(await_bytes(1));
	put(fd, "234");
	fd_close(&fd);
	usleep(300000);
	CHECK_INT(seen->bytes, 1);
	CHECK_INT(seen->gone, 0);
	seen->is_released = 1;
	CHECK(await_count(&seen->gone, 1));
	CHECK_INT(seen->bytes, 4);
	CHECK_INT(seen->ends, 1);
}

TEST(the_last_bytes_of_one_that_left_are_delivered)
{
	struct timespec t;

	serve(leave_while_paused);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	CHECK(t.tv_sec == 0 && t.tv_nsec < 60000000l * test_slow()); /* it did not spin */
}
