#include "wire/http.h"

#include "test.h"

enum { TEXT_MAX = 4096 };

#define SPAN(text) ((struct span){ text, sizeof(text) - 1 })

TEST(a_request_is_printed_and_read_back)
{
	AUTO(str_done) struct str s = { .max = TEXT_MAX };
	struct err e = { 0 };
	struct http_head h;
	struct http_print p = http_print_request(&s, SPAN("POST"), SPAN("/v1/run?x=%20"));

	http_print_text(&p, "Host", "localhost");
	http_print_field(&p, SPAN("X-Empty"), SPAN(""));
	http_print_framing(&p, HTTP_LENGTH, 42);
	CHECK_INT(http_print_end(&p, &e), 0);
	CHECK_STR(str_text(&s), "POST /v1/run?x=%20 HTTP/1.1\r\nHost: localhost\r\nX-Empty: \r\n"
	                        "Content-Length: 42\r\n\r\n");
	CHECK_INT(http_request_head(s.data, s.len, &h), s.len);
	CHECK_INT(h.length, 42);
}

TEST(a_response_is_printed_behind_what_is_there)
{
	AUTO(str_done) struct str s = { .max = TEXT_MAX };
	struct err e = { 0 };
	struct http_print p = http_print_response(&s, 100);

	CHECK_INT(http_print_end(&p, &e), 0);
	p = http_print_response(&s, 200);
	http_print_framing(&p, HTTP_CHUNKED, 0);
	CHECK_INT(http_print_end(&p, &e), 0);
	http_print_chunk(&s, "hello, world", 12);
	http_print_chunk(&s, "", 0);
	http_print_chunk(&s, "\r\n", 2);
	http_print_last_chunk(&s);
	CHECK_STR(str_text(&s), "HTTP/1.1 100 Continue\r\n\r\n"
	                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	                        "c\r\nhello, world\r\n2\r\n\r\n\r\n0\r\n\r\n");
}

TEST(kinds_without_a_frame_print_none)
{
	AUTO(str_done) struct str s = { .max = TEXT_MAX };
	struct err e = { 0 };
	struct http_print p = http_print_response(&s, 299);

	http_print_framing(&p, HTTP_NO_BODY, 5);
	http_print_framing(&p, HTTP_UNTIL_CLOSE, 5);
	CHECK_INT(http_print_end(&p, &e), 0);
	CHECK_STR(str_text(&s), "HTTP/1.1 299 \r\n\r\n");
}

TEST(what_a_head_cannot_hold_is_taken_back_whole)
{
	static const struct {
		struct span name, value;
	} rows[] = {
		{ SPAN("X"), SPAN("a\r\nSet-Cookie: b") },
		{ SPAN("X"), SPAN("a\nb") },
		{ SPAN("X"), SPAN("a\rb") },
		{ SPAN("X"), SPAN("a\0b") },
		{ SPAN("X"), SPAN("a\x1b") },
		{ SPAN("X"), SPAN("a\x7f") },
		{ SPAN(""), SPAN("a") },
		{ SPAN("X:"), SPAN("a") },
		{ SPAN("X Y"), SPAN("a") },
		{ SPAN("X\r\n"), SPAN("a") },
		{ SPAN("content-length"), SPAN("5") },
		{ SPAN("TRANSFER-ENCODING"), SPAN("chunked") },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str s = { .max = TEXT_MAX };
		struct err e = { 0 };

		printf("# %zu\n", i);
		str_add(&s, "before");
		struct http_print p = http_print_response(&s, 200);

		http_print_field(&p, rows[i].name, rows[i].value);
		http_print_text(&p, "Y", "good");
		http_print_framing(&p, HTTP_LENGTH, 5);
		CHECK_INT(http_print_end(&p, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
		CHECK_STR(str_text(&s), "before");
		CHECK_INT(s.len, strlen("before"));
		CHECK(!s.overflow);
	}
}

TEST(first_lines_are_checked_too)
{
	static const struct {
		struct span method, target;
	} rows[] = {
		{ SPAN(""), SPAN("/") },         { SPAN("GET"), SPAN("") },
		{ SPAN("G T"), SPAN("/") },      { SPAN("GET"), SPAN("/a b") },
		{ SPAN("GET"), SPAN("/a\r\n") }, { SPAN("GET"), SPAN("/\xff") },
	};
	static const int statuses[] = { -1, 0, 99, 600 };
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str s = { .max = TEXT_MAX };
		struct http_print p = http_print_request(&s, rows[i].method, rows[i].target);

		CHECK_INT(http_print_end(&p, &e), -1);
		CHECK_STR(str_text(&s), "");
	}
	for (size_t i = 0; i < COUNT(statuses); i++) {
		AUTO(str_done) struct str s = { .max = TEXT_MAX };
		struct http_print p = http_print_response(&s, statuses[i]);

		CHECK_INT(http_print_end(&p, &e), -1);
		CHECK_STR(str_text(&s), "");
	}
}

/* What was there before is still whole, so that it can be sent. */
TEST(a_full_buffer_keeps_what_it_had)
{
	AUTO(str_done) struct str s = { .max = 30 };
	struct err e = { 0 };

	str_add(&s, "before");
	struct http_print p = http_print_response(&s, 200);

	http_print_text(&p, "X", "0123456789");
	CHECK_INT(http_print_end(&p, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	CHECK_STR(str_text(&s), "before");
	CHECK(!s.overflow);
	str_add(&s, "this is too much for thirty bytes");
	CHECK(s.overflow);
	p = http_print_response(&s, 200);
	CHECK_INT(http_print_end(&p, &e), -1);
	CHECK(s.overflow);
}

TEST(every_status_that_we_send_has_words)
{
	static const int statuses[] = { 100, 101, 200, 201, 202, 204, 206, 304, 400, 401, 403,
		                        404, 405, 409, 411, 412, 413, 414, 415, 416, 417, 422,
		                        426, 429, 431, 500, 501, 502, 503, 504, 505 };

	for (size_t i = 0; i < COUNT(statuses); i++)
		CHECK(strlen(http_reason(statuses[i])) > 1);
	CHECK_STR(http_reason(299), "");
}
