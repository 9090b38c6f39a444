#include "gate/webpeek.h"

#include "test.h"

#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static struct http_head head;

/* Looks at `text` as it comes, `step` bytes at a time: the result, and what was seen of it. */
static int peek(const char *text, size_t step, struct gate_content *out)
{
	AUTO(webpeek_done) struct webpeek p = { 0 };
	size_t len = strlen(text);
	int n = http_proxy_head(text, len, &head), r = HTTP_BODY_MORE;

	CHECK(n > 0);
	webpeek_begin(&p, &head, (size_t)n);
	for (size_t have = (size_t)n; r == HTTP_BODY_MORE; have += step) {
		have = have < len ? have : len;
		r = webpeek_look(&p, (struct span){ text, have });
		if (have == len)
			break;
	}
	*out = p.content;
	return r;
}

TEST(the_body_is_hashed_where_it_lies_in_pieces_of_any_size)
{
	static const struct {
		const char *text, *hash;
		uint64_t bytes;
		int r;
	} rows[] = {
		{ "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "", 0, HTTP_BODY_DONE },
		{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "", 0,
		  HTTP_BODY_DONE },
		{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", ABC, 3,
		  HTTP_BODY_DONE },
		{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /next", ABC, 3,
		  HTTP_BODY_DONE },
		{ "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nabc", "", 3,
		  HTTP_BODY_MORE },
		{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "1\r\na\r\n2;x=y\r\nbc\r\n0\r\nT: u\r\n\r\n",
		  ABC, 3, HTTP_BODY_DONE },
		{ "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "",
		  1, HTTP_E_CHUNK },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		for (size_t step = 1; step < 40; step++) {
			struct gate_content c;

			CHECK_INT(peek(rows[i].text, step, &c), rows[i].r);
			CHECK_STR(c.body_hash, rows[i].hash);
			CHECK_INT(c.body_bytes, (long)rows[i].bytes);
			CHECK(!c.is_partial);
		}
}

TEST(a_long_body_is_partial_and_a_websocket_is_a_stream)
{
	AUTO(str_done) struct str text = { .max = 2ul * WEBPEEK_MAX };
	struct gate_content c;

	str_add(&text, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
	while (text.len < WEBPEEK_MAX)
		str_add(&text, "0123456789");
	CHECK_INT(peek(str_text(&text), 4096, &c), HTTP_BODY_DONE);
	CHECK(c.is_partial && c.body_hash[0] && !c.is_stream);
	CHECK(c.body_bytes < WEBPEEK_MAX && c.body_bytes > WEBPEEK_MAX - 4096);
	CHECK_INT(
	    peek("GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	         1, &c),
	    HTTP_BODY_DONE);
	CHECK(c.is_stream && !c.is_partial);
}

TEST(a_query_is_shown_whole_or_cut_with_its_hash)
{
	char long_one[3000], shown[GATE_QUERY_SIZE], hash[GATE_HASH_SIZE];
	const size_t sizes[] = { GATE_QUERY_SIZE - 1, GATE_QUERY_SIZE, sizeof long_one - 2 };

	webpeek_show_query(span_of("/x"), shown);
	CHECK_STR(shown, "");
	webpeek_hash_query(span_of("/x"), hash);
	CHECK_STR(hash, "");
	webpeek_show_query(span_of("/x?a=b?c"), shown);
	CHECK_STR(shown, "a=b?c");
	webpeek_hash_query(span_of("/x?abc"), hash);
	CHECK_STR(hash, ABC);
	memset(long_one, 'q', sizeof long_one);
	long_one[0] = '?';
	for (size_t i = 0; i < COUNT(sizes); i++) {
		bool is_cut = sizes[i] >= GATE_QUERY_SIZE;

		webpeek_show_query((struct span){ long_one, sizes[i] + 1 }, shown);
		webpeek_hash_query((struct span){ long_one, sizes[i] + 1 }, hash);
		CHECK(is_cut == (strstr(shown, "... (sha256:") != NULL));
		CHECK(!is_cut || strstr(shown, hash));
		CHECK(strlen(shown) < sizeof shown);
	}
}
