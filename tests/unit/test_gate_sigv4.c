#include "gate/sigv4.h"

#include "test.h"

#define KEY "KEYID0EXAMPLE0000001:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define NOW_MS 1772600767000 /* 2026-03-04 05:06:07 */
#define PH "csn_ph_00000000000000000000000000000001"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static struct http_head head;
static size_t all;

/* `text` is the request, with the body behind its head. */
static bool sign(struct sigv4 *s, const char *text, const char *name, const char *bound,
                 const char *value, struct str *out)
{
	int n = http_proxy_head(text, strlen(text), &head);
	struct sigv4_ask q = { .head = &head,
		               .name = name,
		               .bound = bound,
		               .value = span_of(value),
		               .now_ms = NOW_MS };

	CHECK(n > 0);
	if (!sigv4_begin(s, &q, &all))
		return false;
	s->head.max = 1 << 16;
	struct http_print p = http_print_request(&s->head, head.method, head.path);
	sigv4_print(s, &p);
	CHECK(sigv4_feed(s, span_of(text + n), out) == 0);
	CHECK(sigv4_end(s, out, out) == 0);
	return true;
}

struct row {
	const char *request, *name, *bound, *value, *signature, *names;
};

/* Of another program: the client library's own signatures. */
TEST(signs_as_clients_do)
{
	static const struct row rows[] = {
		{ "GET / HTTP/1.1\r\nHost: sqs.example.org\r\n\r\n", "sqs.example.org",
		  "eu-west-3/sqs", KEY,
		  "96f2f3053b5e9e931578e87b13829378f000c2724884a2f4ebc2ba91185f9174",
		  "host;x-amz-date" },
		{ "GET /?b=2&a=1&a=0&c&a-b=x%20y&%C3%A9=%2F HTTP/1.1\r\nHost: "
		  "sqs.example.org:8443\r\n\r\n",
		  "sqs.example.org", "eu-west-3/sqs", KEY,
		  "ba9244a1a984c62b03aecc9cd2d49850ca2f6057be48ba9d349ebb606983f9ec",
		  "host;x-amz-date" },
		{ "GET /2015-03-31/functions/a%3Ab/./x//y/../z/ HTTP/1.1\r\nHost: "
		  "l.example.org\r\n\r\n",
		  "l.example.org", "eu-west-3/lambda", KEY,
		  "fd956e28ecf7f7568a12fee7e95e9171fc61cb2f13bad639a2420dfbcd901357",
		  "host;x-amz-date" },
		{ "POST /q HTTP/1.1\r\nHost: sqs.example.org\r\nContent-Length: 36\r\n"
		  "content-type: application/x-www-form-urlencoded\r\n\r\n"
		  "Action=SendMessage&MessageBody=hello",
		  "sqs.example.org", "eu-west-3/sqs", KEY,
		  "d64c430c1263a8e130a3ef4498a1b66fa7715f514282556251a4e0a8378ec676",
		  "content-type;host;x-amz-date" },
		{ "POST / HTTP/1.1\r\nHost: d.example.org\r\nContent-Length: 2\r\n"
		  "X-Amz-Target: Db.Get  Item\r\nX-Amz-Date: 20200101T000000Z\r\n"
		  "Content-Type: application/x-amz-json-1.0\r\n\r\n{}",
		  "d.example.org", "eu-west-3/dynamodb", KEY ":TOKEN/EXAMPLE+token==",
		  "3e6a530878b68141e606bf25f87e13e3699f7a159dd0c461819e4c9d97427734",
		  "content-type;host;x-amz-date;x-amz-security-token;x-amz-target" },
		{ "PUT /a%20b/%C3%A9//c%2Bd?x-id=PutObject HTTP/1.1\r\n"
		  "Host: bucket.s3.eu-west-3.example.org\r\nContent-Type: text/plain\r\n"
		  "Content-Length: 4\r\n\r\ntext",
		  "bucket.s3.eu-west-3.example.org", "", KEY,
		  "fb20d02758bc12d5551e352d35af6ab4189715350f6a1d11ca2f24eea6785733",
		  "content-type;host;x-amz-content-sha256;x-amz-date" },
		{ "GET /bucket?list-type=2&prefix=a%2Fb%3D HTTP/1.1\r\nHost: s3.example.org\r\n"
		  "X-Amz-Content-Sha256: " EMPTY "\r\n"
		  "Authorization: AWS4-HMAC-SHA256 Credential=" PH
		  "/20260304/eu-west-3/s3/aws4_request, SignedHeaders=host, Signature=00\r\n\r\n",
		  "s3.example.org", "", KEY,
		  "fba63a1dfa47bbaab64fffe1a37ae15a5babac63f30c6d9c1f9a13dd83fa32df",
		  "host;x-amz-content-sha256;x-amz-date" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 1 << 16 };
		char wanted[256];
		struct sigv4 s = { 0 };

		CHECK(sign(&s, rows[i].request, rows[i].name, rows[i].bound, rows[i].value, &out));
		CHECK_STR(s.signature, rows[i].signature);
		snprintf(wanted, sizeof wanted, "SignedHeaders=%s, Signature=%s\r\n", rows[i].names,
		         rows[i].signature);
		CHECK(strstr(str_text(&s.head), wanted) != NULL);
		/* What was held is there, behind its head. */
		const char *body = strstr(rows[i].request, "\r\n\r\n") + 4;

		CHECK(out.len >= strlen(body));
		CHECK_STR(out.len > 0 ? out.data + out.len - strlen(body) : "", body);
		sigv4_done(&s);
	}
	CHECK_INT(all, 0);
}

TEST(what_cannot_be_signed)
{
	static const char post[] = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n"
				   "X-Amz-Content-Sha256: %s\r\n\r\nx";
	static const struct {
		const char *hash, *name, *bound, *value;
		bool is_fine;
	} rows[] = {
		{ EMPTY, "a.test", "eu-west-3/x", KEY, true },
		{ EMPTY, "a.test", "", KEY, false },
		{ EMPTY, "a.test", "eu-west-3", KEY, false },
		{ EMPTY, "x.eu-west-3.test", "", KEY, true },
		{ EMPTY, "a.test", "eu-west-3/x", "onlyone12345", false },
		{ EMPTY, "a.test", "eu-west-3/x", "KEYID0EXAMPLE:short", false },
		{ "UNSIGNED-PAYLOAD", "a.test", "eu-west-3/s3", KEY, true },
		{ "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "a.test", "eu-west-3/s3", KEY, true },
		{ "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "a.test", "eu-west-3/s3", KEY,
		  false },
		{ "leak-this-to-the-other-side", "a.test", "eu-west-3/s3", KEY, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 1 << 16 };
		char text[512];
		struct sigv4 s = { 0 };

		snprintf(text, sizeof text, post, rows[i].hash);
		CHECK(sign(&s, text, rows[i].name, rows[i].bound, rows[i].value, &out) ==
		      rows[i].is_fine);
		sigv4_done(&s);
	}
}

/* The example of the documentation: 64 KiB, 1 KiB and nothing, all of them 'a'. */
TEST(chunks_in_pieces_of_any_size)
{
	static const char *const signatures[] = {
		"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
		"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"
	};
	static const size_t sizes[] = { 65536, 1024, 0 }, steps[] = { 1 << 20, 4096, 77 };
	AUTO(str_done) struct str in = { .max = 1 << 20 }, want = { .max = 1 << 20 };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		str_addf(&in, "%zx;chunk-signature=%064d\r\n", sizes[i], 7);
		str_addf(&want, "%zx;chunk-signature=%s\r\n", sizes[i], signatures[i]);
		for (size_t k = 0; k < sizes[i]; k++) {
			str_add(&in, "a");
			str_add(&want, "a");
		}
		str_add(&in, "\r\n");
		str_add(&want, "\r\n");
	}
	for (size_t i = 0; i < COUNT(steps); i++) {
		AUTO(str_done) struct str out = { .max = 1 << 20 };
		struct sigv4 s = {
			.is_on = true,
			.payload = SIGV4_CHUNKS,
			.value = span_of(
			    "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
			.region = "us-east-1",
			.service = "s3",
			.stamp = "20130524T000000Z",
			.signature =
			    "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
			.all = &all,
		};

		for (size_t at = 0; at < in.len; at += steps[i]) {
			size_t n = in.len - at < steps[i] ? in.len - at : steps[i];

			CHECK_INT(sigv4_feed(&s, (struct span){ in.data + at, n }, &out), 0);
		}
		CHECK_INT(sigv4_end(&s, &out, &out), 0);
		CHECK(out.len == want.len && memcmp(out.data, want.data, out.len) == 0);
		CHECK_INT(sigv4_feed(&s, span_of("more"), &out), SIGV4_BAD);
		sigv4_done(&s);
	}
	CHECK_INT(all, 0);
}

TEST(chunks_that_are_none)
{
	static const struct {
		const char *text;
		int fed, ended;
	} rows[] = {
		{ "5;chunk-signature=0\r\nhello\r\n", SIGV4_BAD, 0 },
		{ "x;chunk-signature=%064d\r\n", SIGV4_BAD, 0 },
		{ ";chunk-signature=%064d\r\n", SIGV4_BAD, 0 },
		{ "5;chunk-signature=%064d\r\nhelloXX", SIGV4_BAD, 0 },
		{ "5;chunk-signature=%064d\r\nhello\r\n", 0, SIGV4_BAD },
		{ "200001;chunk-signature=%064d\r\n", SIGV4_LARGE, 0 },
		{ "ffffffffffffffffffff;chunk-signature=%064d\r\n", SIGV4_BAD, 0 },
		{ "0;chunk-signature=%064d\r\n\r\n", 0, 0 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 1 << 20 }, in = { .max = 1 << 10 };
		const char *mark = strstr(rows[i].text, "%064d");
		struct sigv4 s = {
			.is_on = true, .payload = SIGV4_CHUNKS, .value = span_of(KEY), .all = &all
		};

		if (mark)
			str_addf(&in, "%.*s%064d%s", (int)(mark - rows[i].text), rows[i].text, 7,
			         mark + 5);
		else
			str_add(&in, rows[i].text);
		CHECK_INT(sigv4_feed(&s, (struct span){ in.data, in.len }, &out), rows[i].fed);
		if (rows[i].fed == 0)
			CHECK_INT(sigv4_end(&s, &out, &out), rows[i].ended);
		sigv4_done(&s);
	}
	CHECK_INT(all, 0);
}

TEST(no_more_is_held_than_may_be)
{
	AUTO(str_done) struct str out = { .max = 1 << 20 }, big = { .max = SIGV4_BODY_MAX + 1 };
	struct sigv4 s = { .is_on = true, .payload = SIGV4_HELD, .all = &all };

	str_room(&big, SIGV4_BODY_MAX);
	big.len = SIGV4_BODY_MAX;
	CHECK_INT(sigv4_feed(&s, (struct span){ big.data, big.len }, &out), 0);
	CHECK_INT(sigv4_feed(&s, span_of("x"), &out), SIGV4_LARGE);
	sigv4_done(&s);
	s = (struct sigv4){ .is_on = true, .payload = SIGV4_HELD, .all = &all };
	all = SIGV4_ALL_MAX - 1;
	CHECK_INT(sigv4_feed(&s, span_of("x"), &out), 0);
	CHECK_INT(sigv4_feed(&s, span_of("x"), &out), SIGV4_LARGE);
	sigv4_done(&s);
	CHECK_INT(all, SIGV4_ALL_MAX - 1);
	all = 0;
}

TEST(by_whom_it_is_signed)
{
	static const struct {
		const char *value;
		bool is_ours;
	} rows[] = {
		{ "AWS4-HMAC-SHA256 Credential=" PH "/2/r/s/aws4_request,Signature=0", true },
		{ "AWS4-HMAC-SHA256 SignedHeaders=a, Credential=" PH "/2/r/s/aws4_request", true },
		{ "AWS4-HMAC-SHA256 Credential=" PH "x/2/r/s/aws4_request", false },
		{ "AWS4-HMAC-SHA256 XCredential=" PH "/2/r/s/aws4_request", false },
		{ "AWS4-HMAC-SHA256 Credential=OTHER/2/" PH "/s/aws4_request", false },
		{ "Bearer Credential=" PH "/2/r/s", false },
		{ "", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK(sigv4_is_by(span_of(rows[i].value), PH) == rows[i].is_ours);
}
