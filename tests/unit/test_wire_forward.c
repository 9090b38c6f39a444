#include "wire/forward.h"

#include "test.h"

#define TAG "0123abcd"
#define OWN "cp" TAG

static const char *const prefixes[] = { "cst_", "e2b_", "cpt_", NULL };
static const char *const wholes[] = { "0123456789abcdef", NULL };
static const struct forward_way way = { .tag = TAG, .carry = { prefixes, wholes } };

static void parse(const char *text, struct http_head *h)
{
	CHECK_INT(http_request_head(text, strlen(text), h), (long long)strlen(text));
}

/* ---- cookies ------------------------------------------------------------------------- */

TEST(only_cookies_of_this_forward_go_in)
{
	static const struct {
		const char *outside, *inside;
	} rows[] = {
		{ "", "" },
		{ "sid=1", "" },
		{ OWN "_sid=1", "sid=1" },
		{ OWN "_sid=1; other=2; " OWN "_b=3", "sid=1; b=3" },
		{ OWN "=secret", "" },
		{ OWN "_=1", "" },
		{ "cp0123abce_sid=1", "" },
		{ "x" OWN "_sid=1", "" },
		{ ";; " OWN "_a=b=c;", "a=b=c" },
		{ " " OWN "_a = b ;" OWN "_c=\"d e\"", "a=b; c=\"d e\"" },
		{ OWN "_a", "" },
		{ "=" OWN "_a=1", "" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 1024 };

		cookie_in(span_of(rows[i].outside), TAG, &out);
		CHECK_STR(str_text(&out), rows[i].inside);
	}
}

TEST(a_cookie_goes_out_under_a_name_of_ours)
{
	static const struct {
		const char *inside, *outside; /* NULL: none */
	} rows[] = {
		{ "sid=1", OWN "_sid=1; HttpOnly" },
		{ "sid=1; Path=/; Domain=example.org; Max-Age=5",
		  OWN "_sid=1; Path=/; Max-Age=5; HttpOnly" },
		{ "sid=1; domain = .example.org;SameSite=None",
		  OWN "_sid=1; SameSite=None; HttpOnly" },
		{ "sid=; HTTPONLY; secure", OWN "_sid=; secure; HttpOnly" },
		{ "__Host-a=b", OWN "___Host-a=b; HttpOnly" },
		{ "a=b;;; ;Path=/x", OWN "_a=b; Path=/x; HttpOnly" },
		{ "", NULL },
		{ "novalue", NULL },
		{ "=1", NULL },
		{ " =1; Path=/", NULL },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 1024 };

		CHECK_INT(cookie_out(span_of(rows[i].inside), TAG, &out), rows[i].outside != NULL);
		CHECK_STR(str_text(&out), rows[i].outside ? rows[i].outside : "");
	}
}

TEST(the_cookie_of_the_token_is_ours_alone)
{
	CHECK(cookie_is_token(span_of(OWN), TAG));
	CHECK(!cookie_is_token(span_of(OWN "_"), TAG));
	CHECK(!cookie_is_token(span_of("cp0123abc"), TAG));
	CHECK(!cookie_is_token(span_of("CP0123abcd"), TAG));
	CHECK(!cookie_is_token(span_of(""), TAG));
}

/* ---- requests ------------------------------------------------------------------------ */

#define FIRST "Host: 127.0.0.1:4000\r\n"
#define LAST                                                                                       \
	"X-Forwarded-Host: 127.0.0.1:4000\r\nX-Forwarded-Proto: http\r\n"                          \
	"X-Forwarded-For: 127.0.0.1\r\n"
#define CLOSE "Connection: close\r\n\r\n"

TEST(a_request_is_printed_anew_without_what_is_not_the_applications)
{
	static const struct {
		const char *fields, *kept;
	} rows[] = {
		{ "Accept: */*\r\n", "Accept: */*\r\n" },
		{ "X-Caisson-Port-Token: t\r\nx-caisson-port-token: u\r\n", "" },
		{ "Authorization: Bearer cst_x\r\n", "" },
		{ "Authorization: Basic dTpjc3RfeA==\r\n", "" }, /* u:cst_x */
		{ "Authorization: Bearer e2b_x\r\n", "" },
		{ "Authorization: Basic dTplMmJfeA==\r\n", "" }, /* u:e2b_x */
		{ "Authorization: Basic dTp4\r\n", "Authorization: Basic dTp4\r\n" },
		{ "Authorization: x\r\n", "Authorization: x\r\n" },
		{ "Proxy-Authorization: x\r\nTE: trailers\r\nKeep-Alive: 5\r\n", "" },
		{ "Connection: close, X-Hop\r\nX-Hop: 1\r\nX-Stay: 2\r\n", "X-Stay: 2\r\n" },
		{ "X-Forwarded-For: 10.0.0.1\r\nForwarded: for=1\r\nX-Forwarded-Host: a\r\n", "" },
		{ "Upgrade: h2c\r\n", "" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
		AUTO(str_done) struct str in = { .max = 4096 }, want = { .max = 4096 };
		struct http_head h;
		struct err e;

		str_addf(&in, "GET /a?b HTTP/1.1\r\n" FIRST "%s\r\n", rows[i].fields);
		str_addf(&want, "GET /a?b HTTP/1.1\r\n" FIRST "%s" LAST CLOSE, rows[i].kept);
		parse(in.data, &h);
		CHECK_INT(forward_request(&h, &way, &out, &e), 0);
		CHECK_STR(out.data, want.data);
	}
}

/* Every field that a client or a proxy of its may put a token or itself into. */
TEST(no_field_carries_a_token_or_the_word_of_a_proxy)
{
	static const char *const fields[] = {
		"X-API-Key",      "X-Access-Token",
		"Authorization",  "Referer",
		"X-Auth-Token",   "Api-Key",
		"X-Anything",     "Origin",
		"Proxy-Anything", "Sec-WebSocket-Protocol",
	};
	static const char *const tokens[] = {
		"cst_abcdefgh",
		"Bearer cst_abcdefgh",
		"e2b_00ff",
		"cpt_x",
		"http://127.0.0.1:4000/.caisson/open?token=cpt_x",
		"http://h/?next=http%3A%2F%2Fh%2F%3Ft%3Dcst%255Fabc",
		"cst%5fabcdefgh",
		"Basic dTpjc3RfeA==",
		"Y3N0X3h5",
		"eGNzdF94",
		"eHhjc3RfeHg",
		"k=0123456789abcdef",
		"MDEyMzQ1Njc4OWFiY2RlZg",
	};
	static const char *const words[] = {
		"X-Real-Ip",
		"X-Real-IP",
		"X_Real_Ip",
		"X-Forwarded-User",
		"X-Forwarded-Email",
		"X-Forwarded-Port",
		"X-Forwarded",
		"Forwarded",
		"Via",
		"X-Client-IP",
		"True-Client-IP",
		"CF-Connecting-IP",
		"Remote-User",
		"X-Remote-User",
		"X-Auth-Request-Email",
		"Proxy",
		"X-Original-URL",
		"X-Forwarded-Prefix",
		"X-Amzn-Oidc-Data",
		"X-Caisson-Port-Token",
	};
	struct http_head h;
	struct err e;

	for (size_t i = 0; i < COUNT(fields) * COUNT(tokens) + COUNT(words); i++) {
		AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
		AUTO(str_done) struct str in = { .max = 4096 };
		size_t k = i - COUNT(fields) * COUNT(tokens);
		bool is_word = i >= COUNT(fields) * COUNT(tokens);

		str_addf(&in, "GET /a?b HTTP/1.1\r\n" FIRST "%s: %s\r\nX-Own: 1\r\n\r\n",
		         is_word ? words[k] : fields[i % COUNT(fields)],
		         is_word ? "somebody" : tokens[i / COUNT(fields)]);
		parse(in.data, &h);
		CHECK_INT(forward_request(&h, &way, &out, &e), 0);
		CHECK_STR(out.data, "GET /a?b HTTP/1.1\r\n" FIRST "X-Own: 1\r\n" LAST CLOSE);
	}
}

TEST(fields_cookies_and_parameters_of_the_application_stay)
{
	static const char *const kept[] = {
		"X-API-Key: their-own",          "X-Access-Token: abc", "Authorization: Bearer x",
		"Referer: http://h/docst_a",     "X-Request-Id: 1",     "X-Forward: 1",
		"Origin: http://127.0.0.1:4000", "Accept: */*",
	};
	static const struct {
		const char *target, *printed; /* NULL: refused */
	} targets[] = {
		{ "/a?token=cst_abc", "/a" },
		{ "/a?x=1&token=cst_abc&y=2", "/a?x=1&y=2" },
		{ "/a?token=cst%5Fabc&&x", "/a?&x" },
		{ "/a?x=%zz&&y", "/a?x=%zz&&y" },
		{ "/a?", "/a?" },
		{ "/cst_abc/x", NULL },
		{ "/cst%5fabc/x?y", NULL },
	};
	struct http_head h;
	struct err e;

	for (size_t i = 0; i < COUNT(kept); i++) {
		AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
		AUTO(str_done) struct str in = { .max = 4096 };

		str_addf(&in, "GET /a HTTP/1.1\r\n" FIRST "%s\r\n\r\n", kept[i]);
		parse(in.data, &h);
		CHECK_INT(forward_request(&h, &way, &out, &e), 0);
		CHECK(strstr(out.data, kept[i]) != NULL);
	}
	for (size_t i = 0; i < COUNT(targets); i++) {
		AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
		AUTO(str_done) struct str in = { .max = 4096 };
		AUTO(str_done) struct str want = { .max = 4096 };

		str_addf(&in, "GET %s HTTP/1.1\r\n" FIRST "\r\n", targets[i].target);
		parse(in.data, &h);
		int r = forward_request(&h, &way, &out, &e);

		CHECK_INT(r, targets[i].printed ? 0 : -1);
		if (r < 0)
			continue;
		str_addf(&want, "GET %s HTTP/1.1\r\n" FIRST LAST CLOSE, targets[i].printed);
		CHECK_STR(out.data, want.data);
	}
}

TEST(cookies_with_a_token_stay_outside)
{
	static const struct forward_way bare = { .carry = { prefixes, wholes } };
	AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
	AUTO(str_done) struct str tagged = { .max = FORWARD_HEAD_MAX };
	struct http_head h;
	struct err e;

	parse("GET / HTTP/1.1\r\n" FIRST "Cookie: a=1; s=cst_abc; b=2\r\n\r\n", &h);
	CHECK_INT(forward_request(&h, &bare, &out, &e), 0);
	CHECK(strstr(out.data, "\r\nCookie: a=1; b=2\r\n"));
	parse("GET / HTTP/1.1\r\n" FIRST "Cookie: " OWN "_a=cpt_x; " OWN "_b=2\r\n\r\n", &h);
	CHECK_INT(forward_request(&h, &way, &tagged, &e), 0);
	CHECK(strstr(tagged.data, "\r\nCookie: b=2\r\n"));
}

TEST(bodies_and_websockets_keep_their_framing)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "POST / HTTP/1.1\r\n" FIRST "Content-Length: 7\r\n\r\n",
		  "POST / HTTP/1.1\r\n" FIRST LAST "Content-Length: 7\r\n" CLOSE },
		{ "POST / HTTP/1.1\r\n" FIRST "Transfer-Encoding: chunked\r\n\r\n",
		  "POST / HTTP/1.1\r\n" FIRST LAST "Transfer-Encoding: chunked\r\n" CLOSE },
		{ "GET / HTTP/1.1\r\n" FIRST "Upgrade: websocket\r\nConnection: Upgrade\r\n"
		  "Sec-WebSocket-Key: x\r\n\r\n",
		  "GET / HTTP/1.1\r\n" FIRST "Sec-WebSocket-Key: x\r\n" LAST
		  "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n" },
		{ "GET / HTTP/1.1\r\n" FIRST "Cookie: a=1; " OWN "_b=2\r\nCookie: " OWN
		  "_c=3\r\n\r\n",
		  "GET / HTTP/1.1\r\n" FIRST "Cookie: b=2; c=3\r\n" LAST CLOSE },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = FORWARD_HEAD_MAX };
		struct http_head h;
		struct err e;

		parse(rows[i].in, &h);
		CHECK_INT(forward_request(&h, &way, &out, &e), 0);
		CHECK_STR(out.data, rows[i].out);
	}
}

/* ---- answers ------------------------------------------------------------------------- */

TEST(an_answer_keeps_its_fields_but_those_of_the_connection)
{
	static const char session[] = OWN "_s=1; HttpOnly";
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nDate: now\r\n"
				   "Set-Cookie: s=1; Domain=example.org\r\nSet-Cookie: bad\r\n"
				   "Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 1\r\n"
				   "Clear-Site-Data: \"*\"\r\nAlt-Svc: h3=\":1\"\r\nX-Two: 2\r\n"
				   "Content-Length: 0\r\n\r\n";
	static const char *const want[] = { "Content-Type", "a/b", "Set-Cookie", session,
		                            "X-Two",        "2",   NULL };
	AUTO(arena_done) struct arena a = { 0 };
	const char *out[FORWARD_FIELDS];
	struct http_head h;

	CHECK(http_response_head(text, strlen(text), HTTP_ASKED_BODY, &h) > 0);
	forward_answer(&h, TAG, &a, out);
	for (size_t i = 0; i < COUNT(want); i++)
		CHECK_STR(out[i], want[i]);
}

/* ---- who asks ------------------------------------------------------------------------ */

TEST(the_host_is_the_listeners_own)
{
	static const struct {
		const char *host;
		bool is_ours;
	} rows[] = {
		{ "127.0.0.1:4000", true },    { "localhost:4000", true },
		{ "[::1]:4000", true },        { "LOCALHOST:4000", true },
		{ "127.0.0.1", false },        { "127.0.0.1:4001", false },
		{ "127.0.0.2:4000", false },   { "example.org:4000", false },
		{ "[::2]:4000", false },       { "localhost.:4000", false },
		{ "a.localhost:4000", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str in = { .max = 4096 };
		struct http_head h;

		str_addf(&in, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", rows[i].host);
		parse(in.data, &h);
		CHECK_INT(forward_host_is(&h, 4000), rows[i].is_ours);
	}
}

TEST(a_page_of_another_origin_is_seen)
{
	static const struct {
		const char *fields;
		bool is_own;
	} rows[] = {
		{ "", true },
		{ "Origin: http://127.0.0.1:4000\r\n", true },
		{ "Origin: http://127.0.0.1:4001\r\n", false },
		{ "Origin: https://127.0.0.1:4000\r\n", false },
		{ "Origin: null\r\n", false },
		{ "Origin: http://127.0.0.1:4000\r\nOrigin: http://127.0.0.1:4000\r\n", false },
		{ "Sec-Fetch-Site: same-origin\r\n", true },
		{ "Sec-Fetch-Site: none\r\n", true },
		{ "Sec-Fetch-Site: same-site\r\n", false },
		{ "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n", false },
		{ "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
		  "Sec-Fetch-Dest: document\r\n",
		  true },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str in = { .max = 4096 };
		struct http_head h;

		str_addf(&in, "GET / HTTP/1.1\r\n" FIRST "%s\r\n", rows[i].fields);
		parse(in.data, &h);
		CHECK_INT(forward_is_own_page(&h), rows[i].is_own);
	}
}
