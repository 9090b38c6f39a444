#include "wire/http.h"

#include "test.h"

#define BYTES(text) text, sizeof(text) - 1
#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\nHost: a\r\n"
#define HOST "Host: a\r\n"
#define TE "Transfer-Encoding: chunked\r\n"
#define END "\r\n"

enum { WAITS = 0, OK = 200, TEXT_MAX = 64 << 10 };

struct outcome {
	int status;   /* OK, WAITS, or what the client would be told */
	size_t taken; /* bytes of the message, when OK */
	struct str payload;
};

static void outcome_done(struct outcome *o)
{
	str_done(&o->payload);
}

/* Parses an exact copy, so that ASan sees a read behind the end. */
static int head_of(const char *bytes, size_t len, struct http_head *h)
{
	AUTO(freep) char *copy = mem_alloc(len ? len : 1);

	memcpy(copy, bytes, len);
	int n = http_request_head(copy, len, h);

	for (size_t i = 0; n > 0 && i < h->n_fields; i++)
		CHECK(h->fields[i].name.at > copy && h->fields[i].value.at <= copy + len);
	return n;
}

/* What a server does with a connection on which these bytes arrive, `step` at a time. */
static void serve(const char *bytes, size_t len, size_t step, struct outcome *out)
{
	struct http_head h;
	struct http_body body;
	struct http_piece piece;
	size_t have = 0;
	int n = 0;
	int r = HTTP_BODY_MORE;

	while (n == 0 && have < len) {
		have = len - have < step ? len : have + step;
		n = head_of(bytes, have, &h);
	}
	out->status = n < 0 ? http_error_status(n) : WAITS;
	if (n <= 0)
		return;
	http_body_init(&body, &h, TEXT_MAX);
	out->taken = (size_t)n;
	do {
		size_t left = have - out->taken;

		r = http_body_feed(&body, bytes + out->taken, left, &piece);
		str_addn(&out->payload, piece.data.at, piece.data.len);
		out->taken += piece.consumed;
		CHECK(r != HTTP_BODY_MORE || out->taken == have || piece.consumed > 0);
		if (out->taken == have)
			have = len - have < step ? len : have + step;
	} while (r == HTTP_BODY_MORE && out->taken < len);
	out->status = r < 0 ? http_error_status(r) : r == HTTP_BODY_DONE ? OK : WAITS;
}

struct row {
	const char *name, *bytes;
	size_t len;
	int want;
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		AUTO(outcome_done) struct outcome whole = { .payload = { .max = TEXT_MAX } };
		AUTO(outcome_done) struct outcome slow = { .payload = { .max = TEXT_MAX } };

		printf("# %s\n", rows[i].name);
		serve(rows[i].bytes, rows[i].len, rows[i].len, &whole);
		CHECK_INT(whole.status, rows[i].want);
		serve(rows[i].bytes, rows[i].len, 1, &slow);
		CHECK_INT(slow.status, rows[i].want);
		CHECK(slow.taken == whole.taken || rows[i].want != OK);
		CHECK_STR(str_text(&slow.payload), str_text(&whole.payload));
	}
}

/* Every prefix says "more" or what the whole says. */
static void check_prefixes(const struct row *row)
{
	struct http_head h;
	int whole = head_of(row->bytes, row->len, &h);

	for (size_t len = 0; len <= row->len; len++) {
		int n = head_of(row->bytes, len, &h);

		CHECK(n == 0 || n == whole);
	}
}

/* clang-format off */
static const struct row first_lines[] = {
	{ "plain", BYTES(GET HOST END), OK },
	{ "method of our own", BYTES("M-SEARCH / HTTP/1.1\r\n" HOST END), OK },
	{ "all of a target", BYTES("GET /aZ09-._~!$&'()*+,;=:@%2F[]?/? HTTP/1.1\r\n" HOST END), OK },
	{ "options of the server", BYTES("OPTIONS * HTTP/1.1\r\n" HOST END), OK },
	{ "http/1.0 without host", BYTES("GET / HTTP/1.0\r\n" END), OK },
	{ "nothing yet", BYTES(""), WAITS },
	{ "half a line", BYTES("GET / HT"), WAITS },
	{ "no end of the head", BYTES(GET HOST), WAITS },
	{ "half an end", BYTES(GET HOST "\r"), WAITS },
	{ "empty line first", BYTES("\r\n" GET HOST END), 400 },
	{ "space first", BYTES(" " GET HOST END), 400 },
	{ "no method", BYTES("/ HTTP/1.1\r\n" HOST END), 400 },
	{ "method with a colon", BYTES("GE:T / HTTP/1.1\r\n" HOST END), 400 },
	{ "method with a nul", BYTES("GE\0T / HTTP/1.1\r\n" HOST END), 400 },
	{ "method with eight bits", BYTES("G\xc9T / HTTP/1.1\r\n" HOST END), 400 },
	{ "tls hello", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400 },
	{ "two spaces before the target", BYTES("GET  / HTTP/1.1\r\n" HOST END), 400 },
	{ "two spaces behind the target", BYTES("GET /  HTTP/1.1\r\n" HOST END), 400 },
	{ "tab before the target", BYTES("GET\t/ HTTP/1.1\r\n" HOST END), 400 },
	{ "space behind the version", BYTES("GET / HTTP/1.1 \r\n" HOST END), 400 },
	{ "space in the target", BYTES("GET /a b HTTP/1.1\r\n" HOST END), 400 },
	{ "nul in the target", BYTES("GET /a\0b HTTP/1.1\r\n" HOST END), 400 },
	{ "cr in the target", BYTES("GET /a\rb HTTP/1.1\r\n" HOST END), 400 },
	{ "delete in the target", BYTES("GET /a\x7f HTTP/1.1\r\n" HOST END), 400 },
	{ "eight bits in the target", BYTES("GET /\xc3\xa4 HTTP/1.1\r\n" HOST END), 400 },
	{ "fragment", BYTES("GET /a#b HTTP/1.1\r\n" HOST END), 400 },
	{ "quote in the target", BYTES("GET /\"a HTTP/1.1\r\n" HOST END), 400 },
	{ "backslash in the target", BYTES("GET /\\a HTTP/1.1\r\n" HOST END), 400 },
	{ "angle bracket in the target", BYTES("GET /<a> HTTP/1.1\r\n" HOST END), 400 },
	{ "no target", BYTES("GET HTTP/1.1\r\n" HOST END), 400 },
	{ "target without a slash", BYTES("GET a HTTP/1.1\r\n" HOST END), 400 },
	{ "absolute target", BYTES("GET http://a/ HTTP/1.1\r\n" HOST END), 400 },
	{ "star without options", BYTES("GET * HTTP/1.1\r\n" HOST END), 400 },
	{ "connect to a host", BYTES("CONNECT a:443 HTTP/1.1\r\n" HOST END), 400 },
	{ "connect to a path", BYTES("CONNECT / HTTP/1.1\r\n" HOST END), 400 },
	{ "http/0.9", BYTES("GET /\r\n" END), 400 },
	{ "http/0.9, named", BYTES("GET / HTTP/0.9\r\n" END), 505 },
	{ "http/1.2", BYTES("GET / HTTP/1.2\r\n" HOST END), 505 },
	{ "http/2.0", BYTES("GET / HTTP/2.0\r\n" HOST END), 505 },
	{ "preface of http/2", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505 },
	{ "http/11", BYTES("GET / HTTP/11\r\n" HOST END), 400 },
	{ "http/1.10", BYTES("GET / HTTP/1.10\r\n" HOST END), 400 },
	{ "http/1.", BYTES("GET / HTTP/1.\r\n" HOST END), 400 },
	{ "http/+1.1", BYTES("GET / HTTP/+1.1\r\n" HOST END), 400 },
	{ "http/1,1", BYTES("GET / HTTP/1,1\r\n" HOST END), 400 },
	{ "small http", BYTES("GET / http/1.1\r\n" HOST END), 400 },
	{ "another protocol", BYTES("GET / ICAP/1.0\r\n" HOST END), 400 },
	{ "a response", BYTES("HTTP/1.1 200 OK\r\n\r\n"), 400 },
	{ "bare lf behind the line", BYTES("GET / HTTP/1.1\n" HOST END), 400 },
	{ "bare cr behind the line", BYTES("GET / HTTP/1.1\r" HOST END), 400 },
	{ "two crs behind the line", BYTES("GET / HTTP/1.1\r\r\n" HOST END), 400 },
};

static const struct row fields[] = {
	{ "no space behind the colon", BYTES(GET "Host:a\r\n" END), OK },
	{ "white space around a value", BYTES(GET "Host: \t a \t \r\n" END), OK },
	{ "host in capitals", BYTES(GET "HOST: a\r\n" END), OK },
	{ "empty value", BYTES(GET HOST "X:\r\n" END), OK },
	{ "eight bits in a value", BYTES(GET HOST "X: \xc3\xa4\xff\r\n" END), OK },
	{ "all of a name", BYTES(GET HOST "!#$%&'*+-.^_`|~09azAZ: x\r\n" END), OK },
	{ "all lines bare lf", BYTES("GET / HTTP/1.1\nHost: a\n\n"), 400 },
	{ "one line bare lf", BYTES(GET HOST "X: y\nZ: z\r\n" END), 400 },
	{ "end with lf", BYTES(GET HOST "\n"), 400 },
	{ "end with lf lf", BYTES(GET "Host: a\n\n"), 400 },
	{ "end with cr only", BYTES(GET HOST "\rX"), 400 },
	{ "bare cr in a value", BYTES(GET HOST "X: a\rb\r\n" END), 400 },
	{ "cr cr lf", BYTES(GET HOST "X: a\r\r\n" END), 400 },
	{ "cr in a name", BYTES(GET HOST "X\rY: a\r\n" END), 400 },
	{ "nul in a value", BYTES(GET HOST "X: a\0b\r\n" END), 400 },
	{ "nul in a name", BYTES(GET HOST "X\0: a\r\n" END), 400 },
	{ "escape in a value", BYTES(GET HOST "X: a\x1b[2J\r\n" END), 400 },
	{ "vertical tab in a value", BYTES(GET HOST "X: a\x0b\r\n" END), 400 },
	{ "delete in a value", BYTES(GET HOST "X: a\x7f\r\n" END), 400 },
	{ "space before the colon", BYTES(GET HOST "X : a\r\n" END), 400 },
	{ "tab before the colon", BYTES(GET HOST "X\t: a\r\n" END), 400 },
	{ "space in a name", BYTES(GET HOST "X Y: a\r\n" END), 400 },
	{ "empty name", BYTES(GET HOST ": a\r\n" END), 400 },
	{ "no colon", BYTES(GET HOST "X\r\n" END), 400 },
	{ "name in quotes", BYTES(GET HOST "\"X\": a\r\n" END), 400 },
	{ "eight bits in a name", BYTES(GET HOST "\xc4: a\r\n" END), 400 },
	{ "folded with a space", BYTES(GET HOST "X: a\r\n b\r\n" END), 400 },
	{ "folded with a tab", BYTES(GET HOST "X: a\r\n\tb\r\n" END), 400 },
	{ "folded to nothing", BYTES(GET HOST "X: a\r\n \r\n" END), 400 },
	{ "space before the first field", BYTES(GET " " HOST END), 400 },
	{ "no host", BYTES(GET END), 400 },
	{ "two hosts", BYTES(GET HOST HOST END), 400 },
	{ "two different hosts", BYTES(GET HOST "Host: b\r\n" END), 400 },
	{ "two hosts in http/1.0", BYTES("GET / HTTP/1.0\r\n" HOST HOST END), 400 },
	{ "bad host in http/1.0", BYTES("GET / HTTP/1.0\r\nHost: a b\r\n" END), 400 },
	{ "connection with a quote", BYTES(GET HOST "Connection: \"close\"\r\n" END), 400 },
	{ "connection with a space", BYTES(GET HOST "Connection: close x\r\n" END), 400 },
	{ "expectation", BYTES(GET HOST "Expect: 100-Continue\r\n" END), OK },
	{ "unknown expectation", BYTES(GET HOST "Expect: 200-ok\r\n" END), 417 },
	{ "two expectations", BYTES(GET HOST "Expect: 100-continue, x\r\n" END), 417 },
	{ "expectation twice",
	  BYTES(GET HOST "Expect: 100-continue\r\nExpect: 100-continue\r\n" END), 417 },
	{ "expectation in http/1.0", BYTES("GET / HTTP/1.0\r\nExpect: x\r\n" END), OK },
};

static const struct row bodies[] = {
	{ "length 0", BYTES(POST "Content-Length: 0\r\n" END), OK },
	{ "length", BYTES(POST "Content-Length: 5\r\n" END "hello"), OK },
	{ "length with zeros", BYTES(POST "Content-Length: 005\r\n" END "hello"), OK },
	{ "length, cut", BYTES(POST "Content-Length: 5\r\n" END "hell"), WAITS },
	{ "length twice", BYTES(POST "Content-Length: 5\r\nContent-Length: 5\r\n" END "hello"), 400 },
	{ "two lengths", BYTES(POST "Content-Length: 5\r\nContent-Length: 6\r\n" END "hello"), 400 },
	{ "list of lengths", BYTES(POST "Content-Length: 5, 5\r\n" END "hello"), 400 },
	{ "length with a plus", BYTES(POST "Content-Length: +5\r\n" END "hello"), 400 },
	{ "length with a minus", BYTES(POST "Content-Length: -5\r\n" END "hello"), 400 },
	{ "length in hex", BYTES(POST "Content-Length: 0x5\r\n" END "hello"), 400 },
	{ "length with a point", BYTES(POST "Content-Length: 5.0\r\n" END "hello"), 400 },
	{ "length with a space", BYTES(POST "Content-Length: 1 0\r\n" END "hello"), 400 },
	{ "length in quotes", BYTES(POST "Content-Length: \"5\"\r\n" END "hello"), 400 },
	{ "length with a nul", BYTES(POST "Content-Length: 5\0\r\n" END "hello"), 400 },
	{ "empty length", BYTES(POST "Content-Length:\r\n" END "hello"), 400 },
	{ "length with a space before the colon",
	  BYTES(POST "Content-Length : 5\r\n" END "hello"), 400 },
	{ "length of 2^64", BYTES(POST "Content-Length: 18446744073709551616\r\n" END), 413 },
	{ "length of 2^64 + 5", BYTES(POST "Content-Length: 18446744073709551621\r\n" END), 413 },
	{ "length above our ceiling", BYTES(POST "Content-Length: 65537\r\n" END), 413 },
	{ "longest length", BYTES(POST "Content-Length: 999999999999999999\r\n" END), 413 },
	{ "chunked", BYTES(POST TE END "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), OK },
	{ "chunked in capitals",
	  BYTES(POST "TRANSFER-ENCODING: Chunked\r\n" END "1\r\nx\r\n0\r\n\r\n"), OK },
	{ "chunk size with zeros", BYTES(POST TE END "0005\r\nhello\r\n000\r\n\r\n"), OK },
	{ "chunk size in capitals", BYTES(POST TE END "A\r\n0123456789\r\n0\r\n\r\n"), OK },
	{ "chunk with line ends inside", BYTES(POST TE END "4\r\n\r\n0\r\r\n0\r\n\r\n"), OK },
	{ "chunked, cut", BYTES(POST TE END "5\r\nhello\r\n0\r\n"), WAITS },
	{ "length and chunked",
	  BYTES(POST "Content-Length: 5\r\n" TE END "0\r\n\r\nGET /evil"), 400 },
	{ "chunked and length",
	  BYTES(POST TE "Content-Length: 5\r\n" END "0\r\n\r\nGET /evil"), 400 },
	{ "length 0 and chunked", BYTES(POST "Content-Length: 0\r\n" TE END "0\r\n\r\n"), 400 },
	{ "chunked twice", BYTES(POST TE TE END "0\r\n\r\n"), 501 },
	{ "chunked, chunked",
	  BYTES(POST "Transfer-Encoding: chunked, chunked\r\n" END "0\r\n\r\n"), 501 },
	{ "chunked, identity",
	  BYTES(POST "Transfer-Encoding: chunked, identity\r\n" END "0\r\n\r\n"), 501 },
	{ "identity, then chunked",
	  BYTES(POST "Transfer-Encoding: identity\r\n" TE END "0\r\n\r\n"), 501 },
	{ "chunked, then identity",
	  BYTES(POST TE "Transfer-Encoding: identity\r\n" END "0\r\n\r\n"), 501 },
	{ "identity", BYTES(POST "Transfer-Encoding: identity\r\n" END), 501 },
	{ "gzip, chunked",
	  BYTES(POST "Transfer-Encoding: gzip, chunked\r\n" END "0\r\n\r\n"), 501 },
	{ "xchunked", BYTES(POST "Transfer-Encoding: xchunked\r\n" END "0\r\n\r\n"), 501 },
	{ "chunked in quotes",
	  BYTES(POST "Transfer-Encoding: \"chunked\"\r\n" END "0\r\n\r\n"), 501 },
	{ "chunked;x", BYTES(POST "Transfer-Encoding: chunked;x=y\r\n" END "0\r\n\r\n"), 501 },
	{ "comma, chunked", BYTES(POST "Transfer-Encoding: ,chunked\r\n" END "0\r\n\r\n"), 501 },
	{ "empty coding", BYTES(POST "Transfer-Encoding:\r\n" END), 501 },
	{ "vertical tab, chunked",
	  BYTES(POST "Transfer-Encoding: \x0b" "chunked\r\n" END "0\r\n\r\n"), 400 },
	{ "chunked, nul", BYTES(POST "Transfer-Encoding: chunked\0\r\n" END "0\r\n\r\n"), 400 },
	{ "folded chunked",
	  BYTES(POST "Transfer-Encoding:\r\n chunked\r\n" END "0\r\n\r\n"), 400 },
	{ "coding with a space before the colon",
	  BYTES(POST "Transfer-Encoding : chunked\r\n" END "0\r\n\r\n"), 400 },
	{ "space before the coding",
	  BYTES(POST "X: y\r\n Transfer-Encoding: chunked\r\n" END "0\r\n\r\n"), 400 },
	{ "coding behind a bare lf",
	  BYTES(POST "X: y\nTransfer-Encoding: chunked\r\n" END "0\r\n\r\n"), 400 },
	{ "chunked in http/1.0", BYTES("POST / HTTP/1.0\r\n" TE END "0\r\n\r\n"), 400 },
	{ "identity in http/1.0",
	  BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: identity\r\n" END), 501 },
	{ "no chunk size", BYTES(POST TE END "\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "no last chunk size", BYTES(POST TE END "\r\n\r\n"), 400 },
	{ "chunk size with 0x", BYTES(POST TE END "0x5\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size with a plus", BYTES(POST TE END "+5\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size with a minus", BYTES(POST TE END "-5\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size with a space before", BYTES(POST TE END " 5\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size with a space behind", BYTES(POST TE END "5 \r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size with a tab", BYTES(POST TE END "5\t\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size with a nul", BYTES(POST TE END "5\0\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size not hex", BYTES(POST TE END "g\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size with an underscore",
	  BYTES(POST TE END "1_0\r\n0123456789abcdef\r\n0\r\n\r\n"), 400 },
	{ "chunk size of 16 digits", BYTES(POST TE END "0000000000000005\r\nhello\r\n"), 400 },
	{ "chunk size of 2^64 + 5", BYTES(POST TE END "10000000000000005\r\nhello\r\n"), 400 },
	{ "chunk above our ceiling", BYTES(POST TE END "10001\r\n"), 413 },
	{ "chunks above our ceiling", BYTES(POST TE END "1\r\nx\r\n10000\r\n"), 413 },
	{ "largest chunk", BYTES(POST TE END "fffffffffffffff\r\n"), 413 },
	{ "chunk extension", BYTES(POST TE END "5;a=b\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk extension, empty", BYTES(POST TE END "5;\r\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk extension with a bare lf",
	  BYTES(POST TE END "5;a\nhello\r\n0\r\n\r\n"), 400 },
	{ "extension of the last chunk", BYTES(POST TE END "0;a=b\r\n\r\n"), 400 },
	{ "chunk size, lf", BYTES(POST TE END "5\nhello\r\n0\r\n\r\n"), 400 },
	{ "chunk size, cr", BYTES(POST TE END "5\rhello\r\n0\r\n\r\n"), 400 },
	{ "chunk end, lf", BYTES(POST TE END "5\r\nhello\n0\r\n\r\n"), 400 },
	{ "chunk end, any two bytes", BYTES(POST TE END "5\r\nhelloXX0\r\n\r\n"), 400 },
	{ "chunk end, missing", BYTES(POST TE END "5\r\nhello0\r\n\r\n"), 400 },
	{ "chunk end, cr cr", BYTES(POST TE END "5\r\nhello\r\r0\r\n\r\n"), 400 },
	{ "last chunk, lf", BYTES(POST TE END "0\n\r\n"), 400 },
	{ "end of chunks, lf", BYTES(POST TE END "0\r\n\n"), 400 },
	{ "end of chunks, cr x", BYTES(POST TE END "0\r\n\rX"), 400 },
	{ "trailer", BYTES(POST TE END "0\r\nX: y\r\n\r\n"), 400 },
	{ "trailer with a length", BYTES(POST TE END "0\r\nContent-Length: 5\r\n\r\n"), 400 },
};
/* clang-format on */

TEST(first_lines_are_taken_or_refused_with_the_right_status)
{
	check_rows(first_lines, COUNT(first_lines));
}

TEST(fields_are_taken_or_refused_with_the_right_status)
{
	check_rows(fields, COUNT(fields));
}

TEST(bodies_are_taken_or_refused_with_the_right_status)
{
	check_rows(bodies, COUNT(bodies));
}

TEST(a_prefix_says_more_or_what_the_whole_says)
{
	static const struct {
		const struct row *rows;
		size_t count;
	} tables[] = {
		{ first_lines, COUNT(first_lines) },
		{ fields, COUNT(fields) },
		{ bodies, COUNT(bodies) },
	};
	size_t hostile = 0;

	for (size_t i = 0; i < COUNT(tables); i++) {
		for (size_t j = 0; j < tables[i].count; j++) {
			printf("# %s\n", tables[i].rows[j].name);
			check_prefixes(&tables[i].rows[j]);
			hostile += tables[i].rows[j].want >= 400;
		}
	}
	CHECK(hostile >= 87);
}

TEST(a_host_is_a_name_or_an_address_with_or_without_a_port)
{
	static const struct {
		const char *text, *host;
		int port;
	} rows[] = {
		{ "a", "a", 0 },
		{ "localhost:8080", "localhost", 8080 },
		{ "Example.ORG", "Example.ORG", 0 },
		{ "example.org.", "example.org.", 0 },
		{ "under_score.example.org", "under_score.example.org", 0 },
		{ "192.0.2.1:80", "192.0.2.1", 80 },
		{ "[::1]", "[::1]", 0 },
		{ "[2001:db8::1]:65535", "[2001:db8::1]", 65535 },
		{ "[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.1]", 1 },
		{ "", NULL, 0 },
		{ ":80", NULL, 0 },
		{ "a:", NULL, 0 },
		{ "a:0", NULL, 0 },
		{ "a:65536", NULL, 0 },
		{ "a:000080", NULL, 0 },
		{ "a:8o", NULL, 0 },
		{ "a:+80", NULL, 0 },
		{ "a:80:80", NULL, 0 },
		{ "a b", NULL, 0 },
		{ "a,b", NULL, 0 },
		{ "a/b", NULL, 0 },
		{ "a@b", NULL, 0 },
		{ "a%00", NULL, 0 },
		{ "a?", NULL, 0 },
		{ "b\xc3\xbc", NULL, 0 },
		{ ".a", NULL, 0 },
		{ "a..b", NULL, 0 },
		{ "a..", NULL, 0 },
		{ ".", NULL, 0 },
		{ "http://a", NULL, 0 },
		{ "::1", NULL, 0 },
		{ "[]", NULL, 0 },
		{ "[::1", NULL, 0 },
		{ "[::1]80", NULL, 0 },
		{ "[::1]:", NULL, 0 },
		{ "[fe80::1%25eth0]", NULL, 0 },
		{ "[1:2:3:4:5:6:7:8:9]", NULL, 0 },
		{ "[192.0.2.1]", NULL, 0 },
		{ "[::1]]", NULL, 0 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct span host = span_of("unset");
		uint16_t port = 1;
		bool is_ok = http_host_split(span_of(rows[i].text), &host, &port);

		printf("# %s\n", rows[i].text);
		CHECK(is_ok == (rows[i].host != NULL));
		CHECK(span_is(host, is_ok ? rows[i].host : "unset"));
		CHECK_INT(port, is_ok ? rows[i].port : 1);
	}
}

TEST(labels_and_names_of_a_host_are_bounded)
{
	char name[256];

	memset(name, 'a', sizeof name);
	for (size_t i = 63; i < sizeof name; i += 64)
		name[i] = '.';
	struct span host;
	uint16_t port;

	CHECK(http_host_split((struct span){ name, 253 }, &host, &port));
	CHECK(!http_host_split((struct span){ name, 254 }, &host, &port));
	name[63] = 'a';
	CHECK(http_host_split((struct span){ name, 63 }, &host, &port));
	CHECK(!http_host_split((struct span){ name, 64 }, &host, &port));
}

/* `n` bytes of `fill` between two texts. */
static void pad(struct str *s, const char *before, size_t n, const char *behind)
{
	str_clear(s);
	str_add(s, before);
	for (size_t i = 0; i < n; i++)
		str_add(s, "x");
	str_add(s, behind);
	CHECK(!s->overflow);
}

TEST(ceilings_are_exact)
{
	static const struct {
		const char *before, *behind;
		size_t fits; /* bytes between them */
		int status;
	} rows[] = {
		{ "", " / HTTP/1.1\r\n" HOST END, HTTP_METHOD_MAX, 501 },
		{ "GET /", " HTTP/1.1\r\n" HOST END, HTTP_TARGET_MAX - 1, 414 },
		{ GET HOST "X: ", "\r\n" END, HTTP_HEAD_MAX - sizeof(GET HOST "X: \r\n" END) + 1,
		  431 },
		{ GET HOST, ": y\r\n" END, HTTP_HEAD_MAX - sizeof(GET HOST ": y\r\n" END) + 1,
		  431 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str s = { .max = TEXT_MAX };
		struct http_head h;

		printf("# %s\n", rows[i].behind);
		pad(&s, rows[i].before, rows[i].fits, rows[i].behind);
		CHECK_INT(head_of(s.data, s.len, &h), (int)s.len);
		CHECK_INT(head_of(s.data, s.len - 1, &h), 0);
		pad(&s, rows[i].before, rows[i].fits + 1, rows[i].behind);
		CHECK_INT(http_error_status(head_of(s.data, s.len, &h)), rows[i].status);
		pad(&s, rows[i].before, 40000, "");
		CHECK_INT(http_error_status(head_of(s.data, s.len, &h)), rows[i].status);
	}
}

TEST(the_sixty_fifth_field_is_too_many)
{
	for (int extra = 0; extra < 2; extra++) {
		AUTO(str_done) struct str s = { .max = TEXT_MAX };
		struct http_head h;

		str_add(&s, GET HOST);
		for (int i = 1; i < HTTP_FIELDS_MAX + extra; i++)
			str_addf(&s, "X-%d: y\r\n", i);
		str_add(&s, END);
		int n = head_of(s.data, s.len, &h);

		if (extra)
			CHECK_INT(http_error_status(n), 431);
		else
			CHECK_INT(n, s.len);
	}
}

TEST(what_follows_the_head_is_not_looked_at)
{
	static const char text[] = GET HOST END "\0\n\xff";
	struct http_head h;

	CHECK_INT(http_request_head(text, sizeof text - 1, &h), sizeof(GET HOST END) - 1);
	CHECK_INT(http_request_head(NULL, 0, &h), 0);
}

TEST(a_head_says_what_its_lines_say)
{
	static const char text[] =
	    "PATCH /v1/x?y=1 HTTP/1.1\r\nHost: Example.org:8080\r\n"
	    "X-One:  a b \r\nx-one: c\r\nEmpty:\r\nContent-Length: 12\r\n\r\n";
	struct http_head h;

	CHECK_INT(http_request_head(text, sizeof text - 1, &h), sizeof text - 1);
	CHECK(span_is(h.method, "PATCH"));
	CHECK(span_is(h.target, "/v1/x?y=1"));
	CHECK(span_is(h.path, "/v1/x?y=1"));
	CHECK(span_is(h.host, "Example.org"));
	CHECK_INT(h.port, 8080);
	CHECK_INT(h.minor, 1);
	CHECK_INT(h.n_fields, 5);
	CHECK(span_is(*http_header(&h, "X-ONE"), "a b"));
	CHECK_INT(http_header_count(&h, "x-onE"), 2);
	CHECK_INT(http_header(&h, "empty")->len, 0);
	CHECK(!http_header(&h, "X-On"));
	CHECK_INT(http_header_count(&h, "none"), 0);
	CHECK_INT(h.body, HTTP_LENGTH);
	CHECK_INT(h.length, 12);
}

/* clang-format off */
#define UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
static const struct meaning {
	const char *text;
	enum http_body_kind body;
	bool keep_alive, expect_continue, is_upgrade;
} meanings[] = {
	{ GET HOST END, HTTP_NO_BODY, true, false, false },
	{ POST "Content-Length: 0\r\n" END, HTTP_LENGTH, true, false, false },
	{ POST TE END, HTTP_CHUNKED, true, false, false },
	{ "GET / HTTP/1.0\r\n" END, HTTP_NO_BODY, false, false, false },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n" END, HTTP_NO_BODY, false, false, false },
	{ GET HOST "Connection: close\r\n" END, HTTP_NO_BODY, false, false, false },
	{ GET HOST "Connection: x ,\tCLOSE\r\n" END, HTTP_NO_BODY, false, false, false },
	{ GET HOST "Connection: ,,\r\nConnection: close\r\n" END, HTTP_NO_BODY, false, false, false },
	{ GET HOST "Connection: closed\r\n" END, HTTP_NO_BODY, true, false, false },
	{ GET HOST "Connection:\r\n" END, HTTP_NO_BODY, true, false, false },
	{ POST "Content-Length: 1\r\nExpect: 100-continue\r\n" END, HTTP_LENGTH, true, true, false },
	{ POST TE "Expect: 100-continue\r\n" END, HTTP_CHUNKED, true, true, false },
	{ POST "Content-Length: 0\r\nExpect: 100-continue\r\n" END, HTTP_LENGTH, true, false, false },
	{ GET HOST "Expect: 100-continue\r\n" END, HTTP_NO_BODY, true, false, false },
	{ GET HOST UPGRADE END, HTTP_NO_BODY, true, false, true },
	{ GET HOST "Upgrade: h2c, websocket\r\nConnection: upgrade\r\n" END, HTTP_NO_BODY, true, false, true },
	{ GET HOST "Upgrade: websocket\r\n" END, HTTP_NO_BODY, true, false, false },
	{ GET HOST "Connection: upgrade\r\n" END, HTTP_NO_BODY, true, false, false },
	{ GET HOST "Connection: upgrade\r\nUpgrade: h2c\r\n" END, HTTP_NO_BODY, true, false, false },
	{ POST UPGRADE END, HTTP_NO_BODY, true, false, false },
	{ GET HOST UPGRADE TE END, HTTP_CHUNKED, true, false, false },
	{ "GET / HTTP/1.0\r\n" UPGRADE END, HTTP_NO_BODY, false, false, false },
};
/* clang-format on */

TEST(fields_decide_about_body_and_connection)
{
	for (size_t i = 0; i < COUNT(meanings); i++) {
		const struct meaning *m = &meanings[i];
		struct http_head h;

		printf("# %s\n", m->text);
		CHECK(http_request_head(m->text, strlen(m->text), &h) > 0);
		CHECK_INT(h.body, m->body);
		CHECK_INT(h.keep_alive, m->keep_alive);
		CHECK_INT(h.expect_continue, m->expect_continue);
		CHECK_INT(h.is_upgrade_websocket, m->is_upgrade);
	}
}

TEST(a_proxy_takes_all_four_forms)
{
	static const struct {
		const char *text;
		int status, form;
		const char *host, *path;
		int port;
	} rows[] = {
		{ GET HOST END, OK, HTTP_ORIGIN, "a", "/", 0 },
		{ "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", OK, HTTP_ASTERISK, "a", "*", 0 },
		{ "GET http://b.example:81/c?d HTTP/1.1\r\nHost: B.example:81\r\n\r\n", OK,
		  HTTP_ABSOLUTE, "b.example", "/c?d", 81 },
		{ "GET HTTPS://[::1] HTTP/1.1\r\nHost: [::1]\r\n\r\n", OK, HTTP_ABSOLUTE, "[::1]",
		  "/", 0 },
		{ "GET http://a/ HTTP/1.0\r\n\r\n", OK, HTTP_ABSOLUTE, "a", "/", 0 },
		{ "CONNECT b.example:443 HTTP/1.1\r\nHost: a\r\n\r\n", OK, HTTP_AUTHORITY,
		  "b.example", "b.example:443", 443 },
		{ "CONNECT [::1]:443 HTTP/1.0\r\n\r\n", OK, HTTP_AUTHORITY, "[::1]", "[::1]:443",
		  443 },
		{ "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", OK,
		  HTTP_AUTHORITY, "a", "a:443", 443 },
		{ .text = "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "GET http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "GET http://a/ HTTP/1.1\r\n\r\n", .status = 400 },
		{ .text = "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "GET http:///b HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "GET a:443 HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "CONNECT a:443/ HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "CONNECT http://a:443 HTTP/1.1\r\nHost: a\r\n\r\n", .status = 400 },
		{ .text = "CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
		  .status = 400 },
		{ .text = "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n" TE "\r\n", .status = 400 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct http_head h;
		int n = http_proxy_head(rows[i].text, strlen(rows[i].text), &h);

		printf("# %s\n", rows[i].text);
		CHECK_INT(n < 0 ? http_error_status(n) : OK, rows[i].status);
		if (n < 0)
			continue;
		CHECK_INT(h.form, rows[i].form);
		CHECK(span_is(h.host, rows[i].host));
		CHECK(span_is(h.path, rows[i].path));
		CHECK_INT(h.port, rows[i].port);
	}
}

TEST(the_reason_for_a_refusal_is_named)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{ "GET\t/", HTTP_E_LINE },
		{ "GET /\r", HTTP_E_LINE },
		{ "GET /\"", HTTP_E_TARGET },
		{ "GET a HTTP/1.1\r\n" HOST END, HTTP_E_FORM },
		{ "GET / HTTP/3.0", HTTP_E_VERSION },
		{ "GET / HTTP/1.1\n", HTTP_E_NEWLINE },
		{ GET "A: b\n", HTTP_E_NEWLINE },
		{ GET HOST " ", HTTP_E_FOLD },
		{ GET HOST "\t", HTTP_E_FOLD },
		{ GET "A ", HTTP_E_NAME },
		{ GET ":", HTTP_E_NAME },
		{ GET "A: \x01", HTTP_E_VALUE },
		{ GET END, HTTP_E_HOST },
		{ GET HOST "Content-Length: x\r\n" END, HTTP_E_LENGTH },
		{ GET HOST "Transfer-Encoding: x\r\n" END, HTTP_E_CODING },
		{ GET HOST TE "Content-Length: 1\r\n" END, HTTP_E_FRAMING },
		{ GET HOST "Connection: a b\r\n" END, HTTP_E_CONNECTION },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct http_head h;

		printf("# %s\n", rows[i].text);
		CHECK_INT(head_of(rows[i].text, strlen(rows[i].text), &h), rows[i].want);
	}
}

TEST(every_error_has_a_status_and_a_text)
{
	static const int known[] = { 400, 413, 414, 417, 431, 501, 505 };

	for (int e = -1; e >= HTTP_E_LAST; e--) {
		bool is_known = false;

		for (size_t i = 0; i < COUNT(known); i++)
			is_known |= http_error_status(e) == known[i];
		CHECK(is_known);
		CHECK(strlen(http_error_text(e)) > 0);
	}
	CHECK_INT(http_error_status(0), 500);
	CHECK_INT(http_error_status(HTTP_E_LAST - 1), 500);
}
