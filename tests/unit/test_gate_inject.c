#include "gate/inject.h"

#include "test.h"

#define PH1 "csn_ph_00000000000000000000000000000001"
#define PH2 "csn_ph_00000000000000000000000000000002"
#define OTHER "csn_ph_00000000000000000000000000000009"

#define PH4 "csn_ph_00000000000000000000000000000004"

/* d.test: only what is bound; c2.test: signed; a.test: a bearer for GET below /a; a query for /q.
 * b.test:8443: a header, until 1000. */
static const char doc[] =
    "{\"net\":{\"mode\":\"allow\"},\"creds\":["
    "{\"name\":\"one\",\"tenant\":\"t\",\"sealed\":\"AAAA\",\"placeholder\":\"" PH1 "\","
    "\"bind\":\"{\\\"hosts\\\":[\\\"a.test\\\"],\\\"methods\\\":[\\\"GET\\\"],"
    "\\\"paths\\\":[\\\"/a/**\\\"]}\"},"
    "{\"name\":\"two\",\"tenant\":\"t\",\"sealed\":\"AAAA\",\"placeholder\":\"" PH2 "\","
    "\"bind\":\"{\\\"hosts\\\":[\\\"a.test\\\"],\\\"inject\\\":\\\"query:k\\\","
    "\\\"paths\\\":[\\\"/q\\\"]}\"},"
    "{\"name\":\"three\",\"tenant\":\"t\",\"sealed\":\"AAAA\",\"until_ms\":1000,"
    "\"bind\":\"{\\\"hosts\\\":[\\\"b.test:8443\\\"],\\\"inject\\\":\\\"header:X-K\\\"}\"},"
    "{\"name\":\"four\",\"tenant\":\"t\",\"sealed\":\"AAAA\",\"placeholder\":\"" PH4 "\","
    "\"bind\":\"{\\\"hosts\\\":[\\\"c2.test\\\"],\\\"inject\\\":\\\"aws\\\"}\"},"
    "{\"name\":\"five\",\"tenant\":\"t\",\"sealed\":\"AAAA\","
    "\"bind\":\"{\\\"hosts\\\":[\\\"d.test\\\"],\\\"paths\\\":[\\\"/mine/**\\\"],"
    "\\\"only_bound\\\":true}\"}]}";

static struct http_head head;

struct row {
	const char *name;
	uint16_t port;
	const char *method, *target, *field;
	enum gate_reason why;
	size_t which;
};

static void check(const struct rules *r, const struct row *row)
{
	char text[1024], path[256];
	size_t which = 77;

	snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", row->method,
	         row->target, row->name, row->field, *row->field ? "\r\n" : "");
	snprintf(path, sizeof path, "%.*s", (int)strcspn(row->target, "?"), row->target);
	CHECK(http_proxy_head(text, strlen(text), &head) > 0);
	struct inject_ask q = { .rules = r,
		                .head = &head,
		                .name = row->name,
		                .method = row->method,
		                .path = path,
		                .port = row->port,
		                .is_tls = row->port != 80,
		                .now_ms = 999 };
	enum gate_reason why = inject_choose(&q, &which);

	if (why != row->why || which != row->which)
		printf("# %s %s: %d %zu\n", row->target, row->field, (int)why, which);
	CHECK_INT(why, row->why);
	CHECK(which == row->which);
	q.now_ms = 1000;
	if (strcmp(row->name, "b.test") == 0 && why == GATE_NONE) {
		(void)inject_choose(&q, &which);
		CHECK(which == INJECT_NONE);
	}
}

/* "user:" PH1 and PH1 ":" as basic authentication has them */
#define USER                                                                                       \
	"Authorization: Basic dXNlcjpjc25fcGhfMDAwMDAwMDAwMDAwMDAwMDAwMDAw"                        \
	"MDAwMDAwMDAwMDE="

static const struct row choices[] = {
	{ "a.test", 443, "GET", "/a/b", "", GATE_NONE, 0 },
	{ "a.test", 443, "GET", "/a/b", "Authorization: Bearer " PH1, GATE_NONE, 0 },
	{ "a.test", 443, "GET", "/a/b", "authorization: " PH1, GATE_NONE, 0 },
	{ "a.test", 443, "GET", "/a/b", USER, GATE_NONE, 0 },
	{ "a.test", 443, "GET", "/q?x=1", "", GATE_NONE, 1 },
	{ "a.test", 443, "GET", "/q?k=" PH2, "", GATE_NONE, 1 },
	{ "b.test", 8443, "DELETE", "/", "", GATE_NONE, 2 },
	{ "c2.test", 443, "PUT", "/x",
	  "Authorization: AWS4-HMAC-SHA256 Credential=" PH4 "/2/r/s/aws4_request, S=0", GATE_NONE,
	  3 },
	{ "c2.test", 443, "PUT", "/x", "", GATE_NONE, 3 },
	{ "c2.test", 443, "PUT", "/x",
	  "Authorization: AWS4-HMAC-SHA256 Credential=OTHER/2/r/s/aws4_request, S=0",
	  GATE_CREDENTIAL, INJECT_NONE },
	{ "c2.test", 443, "GET", "/x?X-Amz-Credential=" PH4 "/2&X-Amz-Signature=00", "",
	  GATE_CREDENTIAL, INJECT_NONE },
	{ "c2.test", 443, "GET", "/x", "X-Amz-Security-Token: t", GATE_CREDENTIAL, INJECT_NONE },
	/* where it is not for: as it is */
	{ "a.test", 443, "POST", "/a/b", "Authorization: Bearer " PH1, GATE_NONE, INJECT_NONE },
	{ "a.test", 443, "GET", "/b", "Authorization: Bearer " PH1, GATE_NONE, INJECT_NONE },
	{ "a.test", 8443, "GET", "/a/b", "Authorization: " PH1, GATE_NONE, INJECT_NONE },
	{ "a.test", 80, "GET", "/a/b", "Authorization: " PH1, GATE_NONE, INJECT_NONE },
	{ "a.test", 443, "GET", "/a/b", "Authorization: Bearer " PH2, GATE_NONE, INJECT_NONE },
	{ "c.test", 443, "GET", "/a/b", "Authorization: Bearer x", GATE_NONE, INJECT_NONE },
	{ "c.test", 443, "GET", "/a/b", "Authorization: Bearer " PH1, GATE_NONE, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "", GATE_NONE, INJECT_NONE },
	/* another credential */
	{ "a.test", 443, "GET", "/a/b", "Authorization: Bearer x", GATE_CREDENTIAL, INJECT_NONE },
	{ "a.test", 443, "GET", "/a/b", "Authorization: Bearer " OTHER, GATE_CREDENTIAL,
	  INJECT_NONE },
	{ "a.test", 443, "GET", "/a/b", "Authorization: Bearer x" PH1, GATE_CREDENTIAL,
	  INJECT_NONE },
	{ "a.test", 443, "GET", "/a/b", "Authorization: Bearer " PH1 "x", GATE_CREDENTIAL,
	  INJECT_NONE },
	{ "a.test", 443, "GET", "/a/b", "Authorization: Basic eDp5", GATE_CREDENTIAL, INJECT_NONE },
	{ "a.test", 443, "GET", "/a/b", "Cookie: a=b", GATE_CREDENTIAL, INJECT_NONE },
	{ "a.test", 80, "GET", "/a/b", "X-API-KEY: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "a.test", 9999, "GET", "/a/b?access_token=b", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "a.test", 443, "GET", "/q?x=1&%6b=b", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "a.test", 443, "POST", "/q?k", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "X-K: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "x_k: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "X_Api_Key: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "X-Vault-Token: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "X-GitHub-Token: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "X-Shopify-Access-Token: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "X-Authorization: b", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/?token=b", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/?key=b", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/?sp=r&sig=b", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/?AWSAccessKeyId=a&Signature=b", "", GATE_CREDENTIAL,
	  INJECT_NONE },
	{ "b.test", 443, "GET", "/?X-Goog-Signature=b", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "b.test", 443, "GET", "/", "X-Note: b", GATE_NONE, INJECT_NONE },
	{ "b.test", 443, "GET", "/?page=2", "", GATE_NONE, INJECT_NONE },
	/* elsewhere on the host the client's own tokens live */
	{ "a.test", 443, "GET", "/b", "Authorization: Bearer x", GATE_NONE, INJECT_NONE },
	{ "a.test", 9999, "GET", "/b?access_token=b", "", GATE_NONE, INJECT_NONE },
	{ "a.test", 443, "GET", "/b?k", "", GATE_NONE, INJECT_NONE },
	/* unless only what is bound may go there */
	{ "d.test", 443, "GET", "/mine/x", "", GATE_NONE, 4 },
	{ "d.test", 443, "GET", "/mine/x", "Cookie: a=b", GATE_CREDENTIAL, INJECT_NONE },
	{ "d.test", 443, "GET", "/other", "", GATE_CREDENTIAL, INJECT_NONE },
	{ "d.test", 443, "GET", "/other", "Authorization: Bearer x", GATE_CREDENTIAL, INJECT_NONE },
	{ "d.test", 80, "GET", "/mine/x", "", GATE_CREDENTIAL, INJECT_NONE },
};

TEST(which_goes_with_a_request)
{
	AUTO(rules_done) struct rules r = { 0 };
	struct err e = { 0 };

	CHECK_INT(rules_read(&r, doc, sizeof doc - 1, &e), 0);
	for (size_t i = 0; i < COUNT(choices); i++)
		check(&r, &choices[i]);
}

TEST(a_query_has_the_key_once)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "/q", "/q?k=VALUE" },
		{ "/q?", "/q?k=VALUE" },
		{ "/q?a=1&b", "/q?k=VALUE&a=1&b" },
		{ "/q?k=x&a=1&%6B=y&c=", "/q?k=VALUE&a=1&c=" },
		{ "/q?access_token=x", "/q?k=VALUE" },
	};
	AUTO(rules_done) struct rules r = { 0 };
	struct purse_entry entry = { .said = { "VALUE", 5 } };
	struct err e = { 0 };

	CHECK_INT(rules_read(&r, doc, sizeof doc - 1, &e), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 256 };
		struct injection j = { &r, &r.creds.at[1], &entry, entry.said, NULL };

		inject_target(&j, span_of(rows[i].in), &out);
		CHECK_STR(str_text(&out), rows[i].out);
	}
}
