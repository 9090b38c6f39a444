#include "wire/http.h"

#include "test.h"

#define V "HTTP/1.1 "
#define OKAY V "200 OK\r\n"
#define TE "Transfer-Encoding: chunked\r\n"
#define CL "Content-Length: 5\r\n"
#define UPGRADE "Connection: upgrade\r\nUpgrade: websocket\r\n"

enum { TEXT_MAX = 64 << 10, REFUSED = -1 };

/* clang-format off */
static const struct answer {
	const char *text;
	int kind; /* or REFUSED */
	bool keep_alive;
	enum http_asked asked;
} answers[] = {
	{ OKAY CL "\r\n", HTTP_LENGTH, true, HTTP_ASKED_BODY },
	{ OKAY TE "\r\n", HTTP_CHUNKED, true, HTTP_ASKED_BODY },
	{ OKAY "\r\n", HTTP_UNTIL_CLOSE, false, HTTP_ASKED_BODY },
	{ OKAY CL "Connection: close\r\n\r\n", HTTP_LENGTH, false, HTTP_ASKED_BODY },
	{ "HTTP/1.0 200 OK\r\n" CL "\r\n", HTTP_LENGTH, false, HTTP_ASKED_BODY },
	{ "HTTP/1.0 200 OK\r\n\r\n", HTTP_UNTIL_CLOSE, false, HTTP_ASKED_BODY },
	{ V "200 \r\n" CL "\r\n", HTTP_LENGTH, true, HTTP_ASKED_BODY },
	{ V "200\r\n" CL "\r\n", HTTP_LENGTH, true, HTTP_ASKED_BODY },
	{ V "404 Nicht gefunden \xc3\xbc\r\n" CL "\r\n", HTTP_LENGTH, true, HTTP_ASKED_BODY },
	{ V "100 Continue\r\n\r\n", HTTP_NO_BODY, true, HTTP_ASKED_BODY },
	{ V "103 Early Hints\r\nLink: x\r\n\r\n", HTTP_NO_BODY, true, HTTP_ASKED_BODY },
	{ V "204 No Content\r\n\r\n", HTTP_NO_BODY, true, HTTP_ASKED_BODY },
	{ V "204 No Content\r\nContent-Length: 0\r\n\r\n", HTTP_NO_BODY, true, HTTP_ASKED_BODY },
	{ V "304 Not Modified\r\n" CL "\r\n", HTTP_NO_BODY, true, HTTP_ASKED_BODY },
	{ V "304 Not Modified\r\n" TE "\r\n", HTTP_NO_BODY, true, HTTP_ASKED_BODY },
	{ OKAY CL "\r\n", HTTP_NO_BODY, true, HTTP_ASKED_HEAD },
	{ OKAY TE "\r\n", HTTP_NO_BODY, true, HTTP_ASKED_HEAD },
	{ OKAY "\r\n", HTTP_NO_BODY, true, HTTP_ASKED_HEAD },
	{ OKAY CL "\r\n", HTTP_NO_BODY, true, HTTP_ASKED_CONNECT },
	{ V "403 Forbidden\r\n" CL "\r\n", HTTP_LENGTH, true, HTTP_ASKED_CONNECT },
	{ V "101 Switching Protocols\r\n" UPGRADE "\r\n", HTTP_NO_BODY, true, HTTP_ASKED_BODY },
	{ OKAY "Host: a\r\nHost: b c\r\nExpect: x\r\n" CL "\r\n", HTTP_LENGTH, true, HTTP_ASKED_BODY },
	{ V "101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ "HTTP/1.0 101 Switching Protocols\r\n" UPGRADE "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "100 Continue\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "204 No Content\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "204 No Content\r\n" TE "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ OKAY CL TE "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ OKAY CL TE "\r\n", REFUSED, false, HTTP_ASKED_HEAD },
	{ OKAY CL CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ OKAY "Transfer-Encoding: gzip, chunked\r\n\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ "HTTP/1.0 200 OK\r\n" TE "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "20 OK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "2000 OK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "099 Low\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "600 High\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "2x0 OK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V " 200 OK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "200 O\rK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "200 OK\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ V "200 O\x01\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ "HTTP/2.0 200 OK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ "HTTP/1.1\t200 OK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ "ICY 200 OK\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ "\r\n" OKAY CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ OKAY " " CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
	{ OKAY "X : y\r\n" CL "\r\n", REFUSED, false, HTTP_ASKED_BODY },
};
/* clang-format on */

TEST(a_response_has_the_body_that_rfc_9112_says)
{
	for (size_t i = 0; i < COUNT(answers); i++) {
		const struct answer *a = &answers[i];
		size_t len = strlen(a->text);
		struct http_head h;
		int n = http_response_head(a->text, len, a->asked, &h);

		printf("# %s\n", a->text);
		CHECK(n == (int)len || (n < 0 && a->kind == REFUSED));
		if (n > 0) {
			CHECK_INT(h.body, a->kind);
			CHECK_INT(h.keep_alive, a->keep_alive);
			CHECK_INT(h.is_upgrade_websocket, h.status == 101);
		}
		for (size_t part = 0; part < len; part++) {
			int r = http_response_head(a->text, part, a->asked, &h);

			CHECK(r == 0 || r == n);
		}
	}
}

TEST(the_line_of_a_response_is_read)
{
	static const char text[] = V "503 Try again\r\nContent-Length: 7\r\n\r\n";
	struct http_head h;

	CHECK_INT(http_response_head(text, sizeof text - 1, HTTP_ASKED_HEAD, &h), sizeof text - 1);
	CHECK_INT(h.status, 503);
	CHECK(span_is(h.reason, "Try again"));
	CHECK_INT(h.minor, 1);
	CHECK(h.has_length);
	CHECK_INT(h.length, 7);
}

/* Feeds `step` bytes at a time, from exact copies. Returns what the last call said. */
static int feed(struct http_body *b, const char *bytes, size_t len, size_t step, struct str *out)
{
	int r = HTTP_BODY_MORE;

	for (size_t at = 0; at < len && r == HTTP_BODY_MORE;) {
		size_t n = len - at < step ? len - at : step;
		AUTO(freep) char *copy = mem_alloc(n);
		struct http_piece piece;

		memcpy(copy, bytes + at, n);
		r = http_body_feed(b, copy, n, &piece);
		CHECK(piece.consumed > 0 || r < 0);
		CHECK(piece.data.len <= piece.consumed && piece.consumed <= n);
		str_addn(out, piece.data.at, piece.data.len);
		at += piece.consumed;
	}
	return r;
}

TEST(pieces_of_any_size_give_the_same_bytes)
{
	static const struct {
		struct http_head head;
		const char *text, *want;
	} rows[] = {
		{ { .body = HTTP_CHUNKED },
		  "4\r\nWiki\r\n7\r\npedia i\r\nB\r\nn \r\nchunks.\r\n0\r\n\r\n",
		  "Wikipedia in \r\nchunks." },
		{ { .body = HTTP_LENGTH, .length = 5 }, "hello", "hello" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		for (size_t step = 1; step <= strlen(rows[i].text); step++) {
			AUTO(str_done) struct str got = { .max = TEXT_MAX };
			struct http_body b;

			http_body_init(&b, &rows[i].head, 100);
			CHECK_INT(feed(&b, rows[i].text, strlen(rows[i].text), step, &got),
			          HTTP_BODY_DONE);
			CHECK_STR(str_text(&got), rows[i].want);
			CHECK_INT(b.seen, got.len);
			CHECK_INT(http_body_eof(&b), HTTP_BODY_DONE);
		}
	}
}

TEST(what_follows_a_body_stays)
{
	static const struct http_head heads[] = {
		{ .body = HTTP_NO_BODY },
		{ .body = HTTP_LENGTH, .length = 0 },
		{ .body = HTTP_LENGTH, .length = 2 },
	};

	for (size_t i = 0; i < COUNT(heads); i++) {
		struct http_body b;
		struct http_piece piece;

		http_body_init(&b, &heads[i], 10);
		CHECK_INT(http_body_feed(&b, "xxGET", 5, &piece), HTTP_BODY_DONE);
		CHECK_INT(piece.consumed, heads[i].length);
		CHECK_INT(http_body_feed(&b, "GET", 3, &piece), HTTP_BODY_DONE);
		CHECK_INT(piece.consumed, 0);
	}
}

TEST(the_ceiling_counts_payload_and_is_exact)
{
	static const struct {
		struct http_head head;
		const char *text, *want;
		int result;
	} rows[] = {
		{ { .body = HTTP_LENGTH, .length = 4 }, "abcd", "abcd", HTTP_BODY_DONE },
		{ { .body = HTTP_LENGTH, .length = 5 }, "abcde", "", HTTP_E_BODY_LARGE },
		{ { .body = HTTP_CHUNKED },
		  "3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
		  "abcd",
		  HTTP_BODY_DONE },
		{ { .body = HTTP_CHUNKED },
		  "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
		  "abc",
		  HTTP_E_BODY_LARGE },
		{ { .body = HTTP_UNTIL_CLOSE }, "abcd", "abcd", HTTP_BODY_MORE },
		{ { .body = HTTP_UNTIL_CLOSE }, "abcde", "abcd", HTTP_E_BODY_LARGE },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		for (size_t step = 1; step <= 64; step *= 8) {
			AUTO(str_done) struct str got = { .max = TEXT_MAX };
			struct http_piece piece;
			struct http_body b;

			printf("# %zu by %zu\n", i, step);
			http_body_init(&b, &rows[i].head, 4);
			int r = feed(&b, rows[i].text, strlen(rows[i].text), step, &got);

			CHECK_INT(r, rows[i].result);
			CHECK_STR(str_text(&got), rows[i].want);
			if (r < 0) /* and it stays so */
				CHECK_INT(http_body_feed(&b, "0\r\n\r\n", 5, &piece), r);
		}
	}
}

TEST(an_end_of_the_connection_ends_only_a_body_that_waits_for_it)
{
	static const struct {
		struct http_head head;
		const char *text;
		int want;
	} rows[] = {
		{ { .body = HTTP_NO_BODY }, "", HTTP_BODY_DONE },
		{ { .body = HTTP_UNTIL_CLOSE }, "", HTTP_BODY_DONE },
		{ { .body = HTTP_UNTIL_CLOSE }, "x", HTTP_BODY_DONE },
		{ { .body = HTTP_LENGTH, .length = 2 }, "x", HTTP_E_CUT },
		{ { .body = HTTP_LENGTH, .length = 2 }, "xy", HTTP_BODY_DONE },
		{ { .body = HTTP_LENGTH, .length = 99 }, "", HTTP_E_BODY_LARGE },
		{ { .body = HTTP_CHUNKED }, "", HTTP_E_CUT },
		{ { .body = HTTP_CHUNKED }, "0\r\n\r", HTTP_E_CUT },
		{ { .body = HTTP_CHUNKED }, "0\r\n\r\n", HTTP_BODY_DONE },
		{ { .body = HTTP_CHUNKED }, "zz", HTTP_E_CHUNK },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str got = { .max = TEXT_MAX };
		struct http_body b;

		printf("# %zu\n", i);
		http_body_init(&b, &rows[i].head, 10);
		feed(&b, rows[i].text, strlen(rows[i].text), 1, &got);
		CHECK_INT(http_body_eof(&b), rows[i].want);
	}
}

/* A long extension is refused at its first byte, not kept. */
TEST(an_endless_chunk_extension_costs_nothing)
{
	static const struct http_head head = { .body = HTTP_CHUNKED };
	struct http_body b;
	struct http_piece piece;
	char text[] = "5;aaaaaaaaaaaaaaaaaaaaaaaaaaaa";

	http_body_init(&b, &head, 100);
	CHECK_INT(http_body_feed(&b, text, sizeof text - 1, &piece), HTTP_E_CHUNK);
	CHECK_INT(piece.consumed, 2);
}
