#include "spec/rules.h"

#include "test.h"

TEST(paths)
{
	static const struct {
		const char *pattern, *path;
		bool is_match;
	} rows[] = {
		{ "/", "/", true },
		{ "/", "/a", false },
		{ "/a", "/a", true },
		{ "/a", "/a/", false },
		{ "/a", "/A", false },
		{ "/a", "/ab", false },
		{ "/a/", "/a/", true },
		{ "/a/", "/a", false },
		{ "/*", "/a", true },
		{ "/*", "/", false },
		{ "/*", "/a/b", false },
		{ "/*", "/a/", false },
		{ "/a/*", "/a/b", true },
		{ "/a/*", "/a/", false },
		{ "/a/*/c", "/a/b/c", true },
		{ "/a/*/c", "/a/b/b/c", false },
		{ "/a/*/c", "/a//c", false },
		{ "/**", "/", true },
		{ "/**", "/a", true },
		{ "/**", "/a/b/c/", true },
		{ "/a/**", "/a", false },
		{ "/a/**", "/a/", true },
		{ "/a/**", "/a/b", true },
		{ "/a/**", "/a/b/c", true },
		{ "/a/**", "/ab/c", false },
		{ "/a/**", "/b/a/c", false },
		{ "/**/c", "/c", true },
		{ "/**/c", "/a/b/c", true },
		{ "/**/c", "/a/b/cc", false },
		{ "/**/c", "/a/c/b", false },
		{ "/a/**/c", "/a/c", true },
		{ "/a/**/c", "/a/b/c", true },
		{ "/a/**/c", "/a/c/c/c", true },
		{ "/a/**/c", "/a", false },
		{ "/a/**/c/**", "/a/c/c/d", true },
		{ "/a/**/b/*/d", "/a/b/b/c/d", true },
		{ "/a/**/b/*/d", "/a/b/b/d", true },
		{ "/a/**/b/*/d", "/a/b/d", false },
		{ "/**/**", "/a", true },
		{ "/**/**/a", "/a", true },
		{ "/v*/x", "/v1/x", true },
		{ "/v*/x", "/v/x", true },
		{ "/v*/x", "/v1/y/x", false },
		{ "/*.json", "/a.json", true },
		{ "/*.json", "/.json", true },
		{ "/*.json", "/a.jsonx", false },
		{ "/a*b*c", "/aXbYc", true },
		{ "/a*b*c", "/abbc", true },
		{ "/a*b*c", "/aXcYb", false },
		{ "/a", "", false },
		{ "", "/a", false },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %s on %s\n", rows[i].pattern, rows[i].path);
		CHECK_INT(path_matches(rows[i].pattern, rows[i].path), rows[i].is_match);
	}
}

/* A pattern of many stars on a path that nearly fits ends soon. */
TEST(no_pattern_is_slow)
{
	AUTO(str_done) struct str pattern = { .max = 65536 }, path = { .max = 65536 };

	for (int i = 0; i < 500; i++)
		str_add(&pattern, "/**/a*a*a");
	for (int i = 0; i < 4000; i++)
		str_add(&path, "/aaaaaaaa");
	str_add(&pattern, "/end");
	CHECK(!path_matches(str_text(&pattern), str_text(&path)));
}

static void read_rules(struct rules *r, const char *json)
{
	struct err e = { 0 };

	*r = (struct rules){ 0 };
	if (rules_read(r, json, strlen(json), &e) < 0)
		CHECK_STR(e.msg, json);
}

static const char json[] =
    "{\"net\":{\"allow\":[\"plain.test\",\"api.test\"],\"inspect\":[\"plain.test\"],"
    "\"http\":[{\"host\":\"api.test\",\"methods\":[\"GET\",\"HEAD\"],\"paths\":[\"/repos/**\"]},"
    "{\"host\":\"api.test\",\"methods\":[\"POST\"],\"paths\":[\"/repos/*/issues\"]},"
    "{\"host\":\"*.test:8443\",\"paths\":[\"/x\"]},"
    "{\"host\":\"read.test\",\"methods\":[\"GET\"]}]}}";

TEST(requests)
{
	/* clang-format off */
	static const struct {
		const char *name;
		unsigned long port;
		const char *host, *method, *path;
		enum gate_reason why;
		const char *rule;
	} rows[] = {
		{ "api.test", 443, "api.test", "GET", "/repos/a", GATE_NONE, "http: api.test" },
		{ "api.test", 80, "API.test", "HEAD", "/repos/a/b", GATE_NONE, "http: api.test" },
		{ "api.test", 443, "api.test", "GET", "/repos", GATE_HTTP_RULE, "http: api.test" },
		{ "api.test", 443, "api.test", "POST", "/repos/a", GATE_HTTP_RULE, "http: api.test" },
		{ "api.test", 443, "api.test", "POST", "/repos/a/issues", GATE_NONE, "http: api.test" },
		{ "api.test", 443, "api.test", "get", "/repos/a", GATE_HTTP_RULE, "http: api.test" },
		{ "api.test", 443, "api.test", "DELETE", "/repos/a", GATE_HTTP_RULE, "http: api.test" },
		{ "api.test", 443, "api.test", "GET", NULL, GATE_HTTP_BAD, "http: api.test" },
		{ "api.test", 443, "other.test", "GET", "/repos/a", GATE_NAME_MISMATCH, "" },
		{ "api.test", 443, "", "GET", "/repos/a", GATE_NAME_MISMATCH, "" },
		{ "api.test", 443, "a b", "GET", "/repos/a", GATE_NAME_BAD, "" },
		{ "api.test", 8443, "api.test", "PUT", "/x", GATE_NONE, "http: *.test:8443" },
		{ "other.test", 8443, "other.test", "PUT", "/x", GATE_NONE, "http: *.test:8443" },
		{ "other.test", 8443, "other.test", "PUT", "/y", GATE_HTTP_RULE, "http: *.test:8443" },
		{ "read.test", 443, "read.test", "GET", "/any/where", GATE_NONE, "http: read.test" },
		{ "read.test", 443, "read.test", "PUT", "/any/where", GATE_HTTP_RULE, "http: read.test" },
		{ "plain.test", 443, "plain.test", "PUT", "/any", GATE_NONE, "" },
		{ "plain.test", 443, "plain.test", "PUT", NULL, GATE_NONE, "" },
		{ "plain.test", 443, "api.test", "PUT", "/any", GATE_NAME_MISMATCH, "" },
		{ "plain.test", 443, "plain.test", "CONNECT", "/any", GATE_HTTP_RULE, "" },
		{ "plain.test", 443, "plain.test", "TRACE", "/any", GATE_HTTP_RULE, "" },
		{ NULL, 80, "10.0.0.1", "GET", "/any", GATE_NONE, "" },
		{ NULL, 80, "10.0.0.1", "CONNECT", "/any", GATE_HTTP_RULE, "" },
	};
	/* clang-format on */
	AUTO(rules_done) struct rules r;

	read_rules(&r, json);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_BYTES, .name = rows[i].name,
			              .to.port = (uint16_t)rows[i].port, .proto = GATE_PROTO_TLS,
			              .said = said_host(span_of(rows[i].host), 0) };
		struct verdict v = rules_http(&r, &q, rows[i].method, rows[i].path);

		printf("# row %zu\n", i);
		CHECK_STR(gate_reason_name(v.reason), gate_reason_name(rows[i].why));
		CHECK_INT(v.what, rows[i].why == GATE_NONE ? VERDICT_ALLOW : VERDICT_DENY);
		CHECK_STR(v.rule, rows[i].rule);
	}
}

TEST(a_rule_that_asks_wins_over_one_that_allows)
{
	static const char asking[] =
	    "{\"net\":{\"http\":["
	    "{\"host\":\"reg.test\",\"methods\":[\"GET\",\"PUT\"]},"
	    "{\"host\":\"reg.test\",\"methods\":[\"PUT\",\"DELETE\"],\"ask\":true},"
	    "{\"host\":\"api.test\",\"methods\":[\"GET\"]},"
	    "{\"host\":\"api.test\",\"paths\":[\"/x/releases\"],\"ask\":true}]}}";
	static const struct {
		const char *name, *method, *path;
		enum verdict_what what;
		const char *rule;
	} rows[] = {
		{ "reg.test", "GET", "/a", VERDICT_ALLOW, "http: reg.test" },
		{ "reg.test", "PUT", "/a", VERDICT_ASK, "http ask: reg.test" },
		{ "reg.test", "DELETE", "/a", VERDICT_ASK, "http ask: reg.test" },
		{ "reg.test", "POST", "/a", VERDICT_DENY, "http: reg.test" },
		/* no rule is about paths there: one that is unclear decides nothing */
		{ "reg.test", "GET", NULL, VERDICT_ALLOW, "http: reg.test" },
		{ "reg.test", "PUT", NULL, VERDICT_ASK, "http ask: reg.test" },
		{ "reg.test", "POST", NULL, VERDICT_DENY, "http: reg.test" },
		{ "api.test", "GET", "/x/releases", VERDICT_ASK, "http ask: api.test" },
		{ "api.test", "POST", "/x/releases", VERDICT_ASK, "http ask: api.test" },
		{ "api.test", "GET", "/x", VERDICT_ALLOW, "http: api.test" },
		{ "api.test", "GET", NULL, VERDICT_DENY, "http: api.test" },
		{ "api.test", "POST", "/x", VERDICT_DENY, "http: api.test" },
	};
	AUTO(rules_done) struct rules r;

	read_rules(&r, asking);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct question q = { STAGE_BYTES, .name = rows[i].name, .to.port = 443,
			              .proto = GATE_PROTO_TLS,
			              .said = said_host(span_of(rows[i].name), 0) };
		struct verdict v = rules_http(&r, &q, rows[i].method, rows[i].path);

		printf("# row %zu\n", i);
		CHECK_INT(v.what, rows[i].what);
		CHECK_STR(v.rule, rows[i].rule);
	}
}

/* ---- why --------------------------------------------------------------------------- */

TEST(why)
{
	/* clang-format off */
	static const struct {
		const char *name;
		uint16_t port;
		enum verdict_what what;
		enum gate_reason why;
		const char *rule, *narrowest;
	} rows[] = {
		{ "a.test", 443, VERDICT_ALLOW, GATE_NONE, "allow: a.test:443", "" },
		{ "A.test.", 0, VERDICT_ALLOW, GATE_NONE, "allow: a.test:443", "" },
		{ "a.test", 80, VERDICT_DENY, GATE_NO_RULE, "", "allow: a.test:80" },
		{ "B.Test", 443, VERDICT_DENY, GATE_NO_RULE, "", "allow: b.test:443" },
		{ "ask.test", 22, VERDICT_ASK, GATE_NONE, "ask: ask.test", "allow: ask.test:22" },
		{ "x.bad.test", 443, VERDICT_DENY, GATE_RULE, "deny: *.bad.test", "" },
		{ "8.8.8.8", 53, VERDICT_DENY, GATE_LITERAL, "", "cidr: 8.8.8.8/32:53" },
		{ "2606:4700:0::1", 53, VERDICT_DENY, GATE_LITERAL, "", "cidr: 2606:4700::1/128:53" },
		{ "10.0.0.1", 443, VERDICT_DENY, GATE_SPECIAL, "cidr: 10.0.0.0/8", "grant: 10.0.0.1/32:443" },
		{ "10.1.0.1", 443, VERDICT_ALLOW, GATE_NONE, "cidr: 10.0.0.0/8", "" },
		{ "169.254.169.254", 80, VERDICT_DENY, GATE_METADATA, "", "" },
		{ "0x7f.1", 80, VERDICT_DENY, GATE_NAME_BAD, "", "" },
		{ "a b", 80, VERDICT_DENY, GATE_NAME_BAD, "", "" },
		{ "", 80, VERDICT_DENY, GATE_NAME_BAD, "", "" },
	};
	/* clang-format on */
	AUTO(rules_done) struct rules r;

	read_rules(&r, "{\"net\":{\"allow\":[\"a.test:443\"],\"ask\":[\"ask.test\"],"
	               "\"deny\":[\"*.bad.test\"],\"cidr\":[\"10.0.0.0/8\"]},"
	               "\"grant\":[\"10.1.0.0/16\"]}");
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str rule = { .max = 1024 }, narrowest = { .max = 1024 };
		struct verdict v = rules_explain(&r, rows[i].name, rows[i].port, &rule, &narrowest);

		printf("# %s:%u\n", rows[i].name, rows[i].port);
		CHECK_INT(v.what, rows[i].what);
		CHECK_STR(gate_reason_name(v.reason), gate_reason_name(rows[i].why));
		CHECK_STR(str_text(&rule), rows[i].rule);
		CHECK_STR(str_text(&narrowest), rows[i].narrowest);
	}
}
