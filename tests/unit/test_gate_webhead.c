#include "gate/webhead.h"

#include "test.h"

static struct http_head head;

static const char *request(const char *text)
{
	static struct str out = { .max = WEB_HEAD_MAX };
	struct err e = { 0 };

	str_clear(&out);
	CHECK_INT(http_proxy_head(text, strlen(text), &head), (long)strlen(text));
	CHECK_INT(webhead_request(&head, NULL, &(struct webhead_to){ 0 }, &out, &e), 0);
	return str_text(&out);
}

static const char *answer(const char *text, struct webhead_way way)
{
	static struct str out = { .max = WEB_HEAD_MAX };
	struct err e = { 0 };

	str_clear(&out);
	CHECK_INT(http_response_head(text, strlen(text), HTTP_ASKED_BODY, &head),
	          (long)strlen(text));
	way.body = way.body ? way.body : head.body;
	CHECK_INT(webhead_answer(&head, &way, &out, &e), 0);
	return str_text(&out);
}

#define V " HTTP/1.1\r\n"
#define H "Host: a.test\r\n"

TEST(requests_are_said_anew)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "GET /x?y" V H "A: b\r\n\r\n", "GET /x?y" V H "A: b\r\n\r\n" },
		{ "GET http://a.test/x" V H "\r\n", "GET /x" V H "\r\n" },
		{ "GET http://a.test:8080" V "Host: a.test:8080\r\n\r\n",
		  "GET /" V "Host: a.test:8080\r\n\r\n" },
		{ "OPTIONS *" V H "\r\n", "OPTIONS *" V H "\r\n" },
		{ "GET /" V "A: b\r\nConnection: close, C\r\n" H "C: d\r\nKeep-Alive: 5\r\n\r\n",
		  "GET /" V H "A: b\r\nConnection: close\r\n\r\n" },
		{ "POST /" V H "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n",
		  "POST /" V H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n" },
		{ "POST /" V H "Transfer-Encoding: chunked\r\nTE: trailers\r\n\r\n",
		  "POST /" V H "Transfer-Encoding: chunked\r\n\r\n" },
		{ "GET /" V H "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "GET /" V H "\r\n" },
		{ "GET /" V H "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		  "GET /" V H "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n" },
		{ "GET / HTTP/1.0\r\n" H "\r\n", "GET /" V H "Connection: close\r\n\r\n" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_STR(request(rows[i].in), rows[i].out);
}

TEST(fields_that_rules_say_are_not_the_clients)
{
	static const char rules_text[] = "{\"net\":{\"mode\":\"allow\",\"headers\":["
					 "\"a.test X-One: 1\",\"*.test x-one: 2\","
					 "\"b.test X-Two: 3\"]}}";
	static const char in[] = "GET /" V H "X-ONE: mine\r\nX-Two: mine\r\n\r\n";
	AUTO(rules_done) struct rules r = { 0 };
	AUTO(str_done) struct str out = { .max = WEB_HEAD_MAX };
	struct err e = { 0 };

	CHECK_INT(rules_read(&r, rules_text, strlen(rules_text), &e), 0);
	CHECK_INT(http_proxy_head(in, strlen(in), &head), (long)strlen(in));
	CHECK_INT(webhead_request(&head, NULL, &(struct webhead_to){ &r, "a.test", 443 }, &out, &e),
	          0);
	CHECK_STR(str_text(&out), "GET /" V H "X-Two: mine\r\nX-One: 1\r\n\r\n");
}

TEST(answers_are_said_anew)
{
	static const struct webhead_way last = { .is_last = true };
	static const struct webhead_way raw = { .is_last = true, .body = HTTP_UNTIL_CLOSE };

	CHECK_STR(answer("HTTP/1.1 200 Fine\r\nA: b\r\nContent-Length: 3\r\n\r\n",
	                 (struct webhead_way){ 0 }),
	          "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\n");
	CHECK_STR(
	    answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n", last),
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
	CHECK_STR(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", raw),
	          "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	CHECK_STR(answer("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	                 (struct webhead_way){ 0 }),
	          "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
	CHECK_STR(answer("HTTP/1.1 200 OK\r\nCaisson-Cache: hit\r\nContent-Length: 3\r\n\r\n",
	                 (struct webhead_way){ .is_cached = true }),
	          "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
	CHECK_STR(answer("HTTP/1.1 200 OK\r\nCaisson-Cache: hit\r\nContent-Length: 3\r\n\r\n",
	                 (struct webhead_way){ 0 }),
	          "HTTP/1.1 200 OK\r\nCaisson-Cache: hit\r\nContent-Length: 3\r\n\r\n");
	CHECK_STR(answer("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", last),
	          "HTTP/1.1 103 \r\nLink: x\r\n\r\n");
	CHECK_STR(
	    answer("HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\nA: b\r\n\r\n",
	           (struct webhead_way){ 0 }),
	    "HTTP/1.1 101 Switching Protocols\r\nA: b\r\nUpgrade: websocket\r\n"
	    "Connection: Upgrade\r\n\r\n");
}

TEST(trailers_say_nothing_that_frames_or_routes)
{
	AUTO(str_done) struct str in = { .max = 1000 }, out = { .max = 1000 };
	struct err e = { 0 };

	str_add(&in, "X-Sum: 1\r\nHost: evil.test\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n\r");
	CHECK_INT(webhead_last_chunk(&in, NULL, &out, &e), 0);
	CHECK_STR(str_text(&out), "0\r\nX-Sum: 1\r\n\r\n");
	str_clear(&out);
	str_clear(&in);
	CHECK_INT(webhead_last_chunk(&in, NULL, &out, &e), 0);
	CHECK_STR(str_text(&out), "0\r\n\r\n");
	str_add(&in, "no field\r\n\r");
	CHECK_INT(webhead_last_chunk(&in, NULL, &out, &e), -1);
}

#define OVERRIDES                                                                                  \
	"X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n"    \
	"x-forwarded-host: evil.test\r\nContent_Length: 5\r\nX_Api_Key: b\r\n"

/* http rules for a.test, a binding with a path for b.test, one without for c.test. */
static const char judged[] =
    "{\"net\":{\"mode\":\"list\",\"allow\":[\"**\"],\"http\":[{\"host\":\"a.test\",\"methods\":["
    "\"POST\"]}]},"
    "\"creds\":[{\"name\":\"b\",\"tenant\":\"t\",\"sealed\":\"AAAA\",\"bind\":"
    "\"{\\\"hosts\\\":[\\\"b.test\\\"],\\\"paths\\\":[\\\"/x\\\"]}\"},"
    "{\"name\":\"c\",\"tenant\":\"t\",\"sealed\":\"AAAA\",\"bind\":"
    "\"{\\\"hosts\\\":[\\\"c.test\\\"],\\\"inject\\\":\\\"header:X-Key\\\"}\"}]}";

TEST(where_method_or_path_decide_nothing_else_says_what_they_are)
{
	static const struct {
		const char *name;
		bool is_dropped;
	} rows[] = {
		{ "a.test", true }, { "b.test", true }, { "c.test", false }, { "d.test", false }
	};
	static const char text[] = "POST /x" V H OVERRIDES "A: b\r\n\r\n";
	AUTO(rules_done) struct rules r = { 0 };
	struct err e = { 0 };

	CHECK_INT(rules_read(&r, judged, sizeof judged - 1, &e), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = WEB_HEAD_MAX };
		const struct webhead_to to = { &r, rows[i].name, 443 };

		CHECK_INT(http_proxy_head(text, strlen(text), &head), (long)strlen(text));
		CHECK_INT(webhead_request(&head, NULL, &to, &out, &e), 0);
		CHECK(strstr(str_text(&out), "A: b\r\n"));
		CHECK((strstr(str_text(&out), "Override") == NULL) == rows[i].is_dropped);
		CHECK((strstr(str_text(&out), "/admin") == NULL) == rows[i].is_dropped);
		CHECK((strstr(str_text(&out), "evil") == NULL) == rows[i].is_dropped);
		CHECK((strstr(str_text(&out), "X_Api_Key") == NULL) == rows[i].is_dropped);
	}
}

TEST(trailers_carry_no_credential_to_a_bound_host)
{
	static const struct {
		const char *name, *out;
	} rows[] = { { "c.test", "0\r\nX-Sum: 1\r\n\r\n" },
		     { "b.test", "0\r\nX-Sum: 1\r\n\r\n" },
		     { "d.test",
		       "0\r\nX-Sum: 1\r\nX-Key: EVIL\r\nx_key: EVIL\r\nX-Api-Key: E\r\n\r\n" } };
	AUTO(rules_done) struct rules r = { 0 };
	struct err e = { 0 };

	CHECK_INT(rules_read(&r, judged, sizeof judged - 1, &e), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str in = { .max = 1000 }, out = { .max = 1000 };
		const struct webhead_to to = { &r, rows[i].name, 443 };

		str_add(&in, "X-Sum: 1\r\nX-Key: EVIL\r\nx_key: EVIL\r\nX-Api-Key: E\r\n\r");
		CHECK_INT(webhead_last_chunk(&in, &to, &out, &e), 0);
		CHECK_STR(str_text(&out), rows[i].out);
	}
}

TEST(a_refusal_is_whole)
{
	AUTO(str_done) struct str out = { .max = 1000 };

	webhead_refusal(403, "no\n", true, &out);
	CHECK(http_response_head(str_text(&out), out.len, HTTP_ASKED_BODY, &head) > 0);
	CHECK_INT(head.status, 403);
	CHECK_INT(head.length, 3);
	CHECK(!head.keep_alive);
	CHECK_STR(str_text(&out) + out.len - 3, "no\n");
}
