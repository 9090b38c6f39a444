#include "spec/bind.h"

#include "test.h"

static bool reads(const char *text, struct bind *b, struct err *e)
{
	return bind_read(b, text, strlen(text), e) == 0;
}

TEST(canonical_text_is_read_back_as_itself)
{
	static const struct {
		const char *text, *canonical;
	} rows[] = {
		{ "{\"env\":\"X\",\"canary\":\"ghp_Zk3qP9sTw7LmX2vB8nC4\",\"file\":\"/home/agent/"
		  "x\"}",
		  "{\"env\":\"X\",\"canary\":\"ghp_Zk3qP9sTw7LmX2vB8nC4\",\"file\":\"/home/agent/"
		  "x\"}" },
		{ "{\"hosts\":[\"API.example.org\"]}",
		  "{\"hosts\":[\"api.example.org\"],\"inject\":\"bearer\"}" },
		{ "{\"inject\":\"basic:x-token\",\"hosts\":\"https://a.test:8443\"}",
		  "{\"hosts\":[\"a.test:8443\"],\"inject\":\"basic:x-token\"}" },
		{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:X-Key\",\"format\":\"Token {}\","
		  "\"methods\":[\"GET\"],\"paths\":[\"/a/**\"],\"env\":\"A_KEY\",\"ttl\":\"1h\","
		  "\"workspaces\":[\"total\"]}",
		  "{\"hosts\":[\"a.test\"],\"inject\":\"header:X-Key\",\"format\":\"Token {}\","
		  "\"methods\":[\"GET\"],\"paths\":[\"/a/**\"],\"env\":\"A_KEY\",\"ttl\":\"1h\","
		  "\"workspaces\":[\"total\"]}" },
		{ "{\"hosts\":[\"a.test\"],\"only_bound\":true}",
		  "{\"hosts\":[\"a.test\"],\"inject\":\"bearer\",\"only_bound\":true}" },
		{ "{\"hosts\":[\"a.test\"],\"only_bound\":false}",
		  "{\"hosts\":[\"a.test\"],\"inject\":\"bearer\"}" },
		{ "{\"hosts\":[\"a.test\"],\"approve\":\"first\",\"git\":[\"a\"],"
		  "\"push_ask\":[\"refs/heads/*\"]}",
		  "{\"hosts\":[\"a.test\"],\"inject\":\"bearer\",\"git\":[\"a\"],"
		  "\"push_ask\":[\"refs/heads/*\"],\"approve\":\"first\"}" },
		{ "{\"hosts\":[\"a.test\"],\"git\":[\"acme/app\"],\"push\":[\"refs/heads/agent/"
		  "*\"]}",
		  "{\"hosts\":[\"a.test\"],\"inject\":\"bearer\",\"git\":[\"acme/app\"],"
		  "\"push\":[\"refs/heads/agent/*\"]}" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(bind_done) struct bind b = { 0 };
		AUTO(bind_done) struct bind again = { 0 };
		AUTO(str_done) struct str out = { .max = BIND_TEXT_MAX };
		AUTO(str_done) struct str twice = { .max = BIND_TEXT_MAX };
		struct err e = { 0 };

		if (!reads(rows[i].text, &b, &e))
			printf("# %zu: %s\n", i, e.msg);
		CHECK((b.hosts.len == 1 || b.canary) && bind_print(&b, &out, &e) == 0);
		CHECK_STR(str_text(&out), rows[i].canonical);
		CHECK(reads(str_text(&out), &again, &e) && bind_print(&again, &twice, &e) == 0);
		CHECK_STR(str_text(&twice), rows[i].canonical);
	}
}

TEST(ways_to_say_it)
{
	static const struct {
		const char *inject;
		enum bind_how how;
		const char *arg;
	} rows[] = {
		{ "bearer", BIND_BEARER, "" },
		{ "basic:git", BIND_BASIC, "git" },
		{ "header:X-Api-Key", BIND_HEADER, "X-Api-Key" },
		{ "query:key", BIND_QUERY, "key" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(bind_done) struct bind b = { 0 };
		char text[128];
		struct err e = { 0 };

		snprintf(text, sizeof text, "{\"hosts\":[\"a.test\"],\"inject\":\"%s\"}",
		         rows[i].inject);
		CHECK(reads(text, &b, &e));
		CHECK_INT(b.how, rows[i].how);
		CHECK_STR(b.arg, rows[i].arg);
	}
}

static const struct refused {
	const char *text, *says;
} refused[] = {
	{ "{}", "hosts" },
	{ "{\"hosts\":[]}", "one at least" },
	{ "{\"hosts\":[\"*.a.test\"]}", "whole name" },
	{ "{\"hosts\":[\"http://a.test\"]}", "https and by nothing else" },
	{ "{\"hosts\":[\"10.0.0.1\"]}", "address" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"cookie\"}", "wants bearer" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"bearer:x\"}", "wants bearer" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"basic:\"}", "wants bearer" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"basic:a:b\"}", "colon" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:Host\"}", "no field" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:Content-Length\"}", "no field" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:a b\"}", "no field" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"query:a&b\"}", "not a key" },
	{ "{\"hosts\":[\"a.test\"],\"format\":\"{}\"}", "header:NAME" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:X\",\"format\":\"x\"}", "one {}" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:X\",\"format\":\"{}{}\"}", "one {}" },
	{ "{\"hosts\":[\"a.test\"],\"methods\":[\"TRACE\"]}", "TRACE" },
	{ "{\"hosts\":[\"a.test\"],\"push\":[\"refs/heads/x\"]}", "which repository" },
	{ "{\"hosts\":[\"a.test\"],\"git\":[\"acme/app.git\"]}", "without .git" },
	{ "{\"hosts\":[\"a.test\"],\"git\":[\"../app\"]}", "repository" },
	{ "{\"hosts\":[\"a.test\"],\"git\":[\"a/b\"],\"paths\":[\"/x\"]}", "do not go" },
	{ "{\"hosts\":[\"a.test\"],\"git\":[\"a/b\"],\"push\":[\"main\"]}", "pattern" },
	{ "{\"hosts\":[\"a.test\"],\"approve\":\"never\"}", "never" },
	{ "{\"hosts\":[\"a.test\"],\"push_ask\":[\"refs/heads/x\"]}", "which repository" },
};
static const struct refused refused_ways[] = {
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"aws:\"}", "wants bearer" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"aws:Eu\"}", "REGION" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"aws:/s3\"}", "REGION" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"aws:eu-west-3/\"}", "REGION" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"aws:eu-west-3/s3/x\"}", "REGION" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"aws\",\"env\":\"A\"}", "AWS_ACCESS_KEY_ID" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"github-app:1/2\"}", "api: goes with" },
	{ "{\"hosts\":[\"a.test\"],\"api\":\"https://a.test\"}", "api: goes with" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"github-app:12\",\"api\":\"https://"
	  "a.test\"}",
	  "APP/INST" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"github-app:a "
	  "b/2\",\"api\":\"https://a.test\"}",
	  "APP/INST" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"github-app:1/x\",\"api\":\"https://"
	  "a.test\"}",
	  "APP/INST" },
	{ "{\"hosts\":[\"a.test\"],\"inject\":\"github-app:1/2\",\"api\":\"http://"
	  "a.test\"}",
	  "not a base" },
	{ "{\"hosts\":[\"a.test\"],\"ttl\":\"0\"}", "between" },
	{ "{\"hosts\":[\"a.test\"],\"value\":\"x\"}", "value" },
	{ "{\"hosts\":[\"a.test\"],\"file\":\"/home/agent/x\"}", "canary" },
	{ "{\"canary\":\"ghp_Zk3qP9sTw7LmX2vB8nC4\"}", "env or file" },
	{ "{\"canary\":\"ghp_Zk3q\",\"env\":\"X\"}", "needs 16" },
	{ "{\"canary\":\"ghp_Zk3qP9sTw7 mX2vB8nC4\",\"env\":\"X\"}", "letters, digits" },
	{ "{\"canary\":\"ghp_Zk3qP9sTw7LmX2vB8nC4\",\"env\":\"X\",\"hosts\":[\"a.test\"]}",
	  "sent nowhere" },
	{ "{\"canary\":\"ghp_Zk3qP9sTw7LmX2vB8nC4\",\"file\":\"/proc/x\"}", "/proc" },
};

static void refuse(const struct refused *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bind b = { 0 };
		struct err e = { 0 };

		CHECK(!reads(rows[i].text, &b, &e));
		if (!strstr(e.msg, rows[i].says))
			printf("# %s: %s\n", rows[i].text, e.msg);
		CHECK(strstr(e.msg, rows[i].says));
		CHECK(!b.hosts.at);
	}
}

TEST(what_is_no_binding_is_refused_with_its_reason)
{
	refuse(refused, COUNT(refused));
	refuse(refused_ways, COUNT(refused_ways));
}

TEST(names_of_secrets)
{
	static const struct {
		const char *name;
		bool is_name;
	} rows[] = {
		{ "gh-app", true },
		{ "a", true },
		{ "a.b_c-1", true },
		{ "", false },
		{ "-a", false },
		{ "a/b", false },
		{ "ghp_x1", false },
		{ "a b", false },
		{ "0123456789012345678901234567890123", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		CHECK(rows[i].is_name == (secret_name_check(rows[i].name, &e) == 0));
	}
}

/* Moving a byte from one part to the next makes another text. */
TEST(beside_a_value_nothing_is_ambiguous)
{
	AUTO(str_done) struct str a = { .max = 100 };
	AUTO(str_done) struct str b = { .max = 100 };

	secret_aad("t", "name", "{}", &a);
	secret_aad("tn", "ame", "{}", &b);
	CHECK(a.len != b.len || memcmp(a.data, b.data, a.len) != 0);
}
