#include "gate/purse.h"

#include <jansson.h>

#include "gate/mask.h"
#include "spellings.h"
#include "test.h"
#include "wire/base64.h"
#include "wire/spelling.h"

#define VALUE "s3cret-value>>>???"

static const char *opens_as;

static int open_as(void *arg, const struct cred_rule *c, uint8_t *out, struct err *e)
{
	(void)arg;
	(void)c;
	(void)e;
	size_t n = strlen(opens_as);

	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)opens_as[i];
	return (int)n;
}

static const struct purse_opts strict = { open_as, NULL, true };

/* Rules with one secret that is bound like this. */
static struct rules rules_with(const char *bind)
{
	AUTO(str_done) struct str text = { .max = 4096 };
	struct rules r = { 0 };
	struct err e = { 0 };
	json_t *doc = json_pack("{s{ss},s[{ss,ss,ss,ss}]}", "net", "mode", "allow", "creds", "name",
	                        "one", "tenant", "t", "bind", bind, "sealed", "AAAA");
	char *json = json_dumps(doc, 0);

	if (rules_read(&r, json, strlen(json), &e) < 0)
		printf("# %s\n", e.msg);
	CHECK_INT((long long)r.creds.len, 1);
	free(json);
	json_decref(doc);
	return r;
}

static struct purse *purse_with(const char *bind, const char *value)
{
	AUTO(rules_done) struct rules r = rules_with(bind);
	struct err e = { 0 };

	opens_as = value;
	return purse_new(&r, &strict, &e);
}

TEST(said_as_it_is_bound)
{
	static const struct {
		const char *bind, *said;
	} rows[] = {
		{ "{\"hosts\":[\"a.test\"]}", "Bearer " VALUE },
		{ "{\"hosts\":[\"a.test\"],\"inject\":\"basic:me\"}",
		  "Basic bWU6czNjcmV0LXZhbHVlPj4+Pz8/" },
		{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:X\"}", VALUE },
		{ "{\"hosts\":[\"a.test\"],\"inject\":\"header:X\",\"format\":\"a {} b\"}",
		  "a " VALUE " b" },
		{ "{\"hosts\":[\"a.test\"],\"inject\":\"query:k\"}",
		  "s3cret-value%3E%3E%3E%3F%3F%3F" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct purse *p = purse_with(rows[i].bind, VALUE);

		CHECK(p != NULL);
		CHECK(span_is(p->entries[0].said, rows[i].said));
		CHECK(p->used <= p->size);
		purse_unref(p);
	}
}

TEST(what_no_request_can_carry_is_refused)
{
	static const char *const values[] = { "", "short", "with a\nline break",
		                              "with a\x7f byte" };

	for (size_t i = 0; i < COUNT(values); i++)
		CHECK(!purse_with("{\"hosts\":[\"a.test\"]}", values[i]));
}

TEST(not_strict_one_that_does_not_open_says_nothing)
{
	static const struct purse_opts lax = { open_as, NULL, false };
	AUTO(rules_done) struct rules r = rules_with("{\"hosts\":[\"a.test\"]}");
	struct err e = { 0 };

	opens_as = "short";
	struct purse *p = purse_new(&r, &lax, &e);

	CHECK(p && p->n == 1 && p->entries[0].said.len == 0 && p->entries[0].n_marks == 0);
	purse_unref(p);
}

/* The longest, in the form that takes the most room. */
TEST(there_is_room_for_the_longest)
{
	AUTO(freep) char *value = mem_alloc(SECRET_VALUE_MAX + 1);
	AUTO(str_done) struct str sealed = { .max = 4ul * SECRET_VALUE_MAX };
	AUTO(rules_done)
	struct rules r = rules_with("{\"hosts\":[\"a.test\"],\"inject\":\"query:k\"}");
	struct err e = { 0 };

	for (size_t i = 0; i < SECRET_VALUE_MAX; i++)
		value[i] = i % 3 == 0 ? '>' : '?';
	value[SECRET_VALUE_MAX] = '\0';
	base64_encode(value, SECRET_VALUE_MAX, &sealed);
	r.creds.at[0].sealed = str_text(&sealed);
	opens_as = value;
	struct purse *p = purse_new(&r, &strict, &e);

	CHECK(p != NULL && p->used <= p->size);
	CHECK_INT((long long)p->entries[0].said.len, 3ll * SECRET_VALUE_MAX);
	purse_unref(p);
}

/* All of `text` through the mask in pieces of that size. */
static void masked(struct purse *p, const char *text, size_t piece, struct str *out)
{
	struct mask m = { 0 };
	size_t len = strlen(text);

	mask_begin(&m, p);
	for (size_t at = 0; at < len; at += piece)
		mask_feed(&m, (struct span){ text + at, len - at < piece ? len - at : piece }, out);
	mask_flush(&m, out);
	mask_done(&m);
}

TEST(masked_in_pieces_of_any_size)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "nothing here", "nothing here" },
		{ VALUE, "******************" },
		{ "a" VALUE VALUE "b", "a************************************b" },
		{ "s3cret-s3cret-value>>>??? s3cret-valu",
		  "s3cret-****************** s3cret-valu" },
		{ "{\"t\": \"Bearer " VALUE "\"}", "{\"t\": \"Bearer ******************\"}" },
		{ "x czNjcmV0LXZhbHVlPj4+Pz8/ y", "x ************************ y" },
		{ "x czNjcmV0LXZhbHVlPj4-Pz8_ y", "x ************************ y" },
		/* behind one and two bytes: only what depends on the value alone */
		{ "YXMzY3JldC12YWx1ZT4+Pj8/Pw==", "YX***********************w==" },
		{ "YWJzM2NyZXQtdmFsdWU+Pj4/Pz8=", "YWJ***********************8=" },
	};
	struct purse *p = purse_with("{\"hosts\":[\"a.test\"]}", VALUE);

	for (size_t i = 0; i < COUNT(rows); i++)
		for (size_t piece = 1; piece <= strlen(rows[i].in); piece++) {
			AUTO(str_done) struct str out = { .max = 1024 };

			masked(p, rows[i].in, piece, &out);
			CHECK_STR(str_text(&out), rows[i].out);
		}
	purse_unref(p);
}

TEST(masked_however_it_is_spelled_and_wherever_it_is_cut)
{
	struct purse *p = purse_with("{\"hosts\":[\"a.test\"]}", SPELLED_VALUE);

	for (size_t i = 0; i < COUNT(spelled_texts); i++) {
		const char *text = spelled_texts[i];
		const size_t len = strlen(text);

		for (size_t cut = 0; cut <= len; cut++) {
			AUTO(str_done) struct str out = { .max = 1024 };
			struct mask m = { 0 };

			mask_begin(&m, p);
			mask_feed(&m, (struct span){ text, cut }, &out);
			mask_feed(&m, (struct span){ text + cut, len - cut }, &out);
			mask_flush(&m, &out);
			CHECK_INT((long long)m.hits, 1);
			CHECK_INT((long long)out.len, (long long)len);
			CHECK(spelled_is_masked((struct span){ out.data, out.len }));
			mask_done(&m);
		}
	}
	purse_unref(p);
}

TEST(a_value_that_looks_like_a_code_is_found_plain_and_encoded)
{
	static const char value[] = "ab%41cd\\u0042&amp;ef";
	static const char *const texts[] = { "x ab%41cd\\u0042&amp;ef y",
		                             "x ab%2541cd%5Cu0042%26amp%3bef y" };
	struct purse *p = purse_with("{\"hosts\":[\"a.test\"]}", value);

	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO(str_done) struct str out = { .max = 1024 };

		masked(p, texts[i], 5, &out);
		CHECK(strncmp(str_text(&out), "x ***", 5) == 0);
		CHECK_INT((long long)strspn(str_text(&out) + 2, "*"), (long long)out.len - 4);
	}
	purse_unref(p);
}

/* A prefix that somebody chose cannot swallow the first character. */
TEST(what_stands_before_it_does_not_hide_it)
{
	static const char *const before[] = { "%", "%4",  "\\",   "\\u",   "\\u00",
		                              "&", "&#x", "\033", "\033[", "\033]0;" };
	struct purse *p = purse_with("{\"hosts\":[\"a.test\"]}", "41abcdef0123");

	for (size_t i = 0; i < COUNT(before); i++) {
		AUTO(str_done) struct str in = { .max = 1024 }, out = { .max = 1024 };

		str_addf(&in, "%s41abcdef0123", before[i]);
		masked(p, str_text(&in), in.len, &out);
		CHECK(!strstr(str_text(&out), "abcdef0123"));
	}
	purse_unref(p);
}

/* Where nobody can wait for the rest. */
TEST(what_was_let_go_is_still_the_beginning)
{
	struct purse *p = purse_with("{\"hosts\":[\"a.test\"]}", VALUE);
	AUTO(str_done) struct str out = { .max = 1024 };
	struct mask m = { 0 };

	mask_begin(&m, p);
	mask_feed(&m, span_of("> s3c"), &out);
	CHECK_STR(str_text(&out), "> ");
	CHECK_INT((long long)mask_waiting(&m), 3);
	mask_let_go(&m, &out);
	CHECK_STR(str_text(&out), "> s3c");
	CHECK_INT((long long)mask_waiting(&m), 0);
	mask_feed(&m, span_of("ret-value>>>??? and"), &out);
	mask_flush(&m, &out);
	CHECK_STR(str_text(&out), "> s3c*************** and");
	CHECK_INT((long long)m.hits, 1);
	mask_done(&m);
	purse_unref(p);
}

TEST(what_is_no_beginning_of_it_is_not_held_back)
{
	static const struct {
		const char *text;
		size_t tail;
	} rows[] = {
		{ "", 0 },  { "x", 0 },     { "data: x\n\n", 0 },
		{ "s", 1 }, { "xs3cr", 4 }, { "s3crs", 1 },
	};
	struct purse *p = purse_with("{\"hosts\":[\"a.test\"]}", VALUE);

	for (size_t i = 0; i < COUNT(rows); i++) {
		char copy[64];
		size_t n = strlen(rows[i].text), open;

		snprintf(copy, sizeof copy, "%s", rows[i].text);
		CHECK_INT((long long)purse_scan(p, copy, n, &open), 0);
		CHECK_INT((long long)(n - open), (long long)rows[i].tail);
	}
	purse_unref(p);
}

#define APP "{\"hosts\":[\"a.test\"],\"inject\":\"github-app:1/2\",\"api\":\"https://api.test\"}"

static bool is_masked(const struct purse *p, const char *text)
{
	char copy[256];

	snprintf(copy, sizeof copy, "%s", text);
	size_t open;

	return purse_scan(p, copy, strlen(copy), &open) == 1 && strspn(copy, "*") == strlen(copy);
}

TEST(tokens_come_and_go_and_the_last_two_are_masked)
{
	static const char *const tokens[] = { "ghs_first_token", "ghs_second_token>>>???",
		                              "ghs_third_token" };
	AUTO(rules_done) struct rules r = rules_with(APP), other = rules_with(APP);
	struct err e = { 0 };

	opens_as = "what an app shows of itself";
	struct purse *p = purse_new(&r, &strict, &e), *next = purse_new(&other, &strict, &e);

	CHECK_INT((long long)p->entries[0].said.len, 0);
	CHECK(!is_masked(p, opens_as));
	for (size_t i = 0; i < COUNT(tokens); i++) {
		char wanted[64];

		CHECK(purse_token_is(span_of(tokens[i])));
		purse_set_token(p, 0, span_of(tokens[i]), 1000);
		snprintf(wanted, sizeof wanted, "Bearer %s", tokens[i]);
		CHECK(span_is(p->entries[0].said, wanted));
		CHECK(strncmp(p->entries[0].said_git.at, "Basic eC1hY2Nlc3MtdG9rZW46", 26) == 0);
		CHECK(is_masked(p, tokens[i]));
		CHECK(i == 0 || is_masked(p, tokens[i - 1]));
		CHECK(i < 2 || !is_masked(p, tokens[i - 2]));
	}
	/* Rules that say the same have the token of the last ones. */
	purse_keep_tokens(next, &other, p, &r);
	CHECK(span_is(next->entries[0].said, "Bearer ghs_third_token"));
	CHECK_INT(next->entries[0].until_ms, 1000);
	purse_unref(next);
	other.creds.at[0].sealed = "BBBB";
	next = purse_new(&other, &strict, &e);
	purse_keep_tokens(next, &other, p, &r);
	CHECK_INT((long long)next->entries[0].said.len, 0);
	purse_unref(next);
	purse_unref(p);
	CHECK(!purse_token_is(span_of("short")) && !purse_token_is(span_of("line\r\nbreak")));
}

TEST(of_a_key_to_sign_with_the_secret_parts_are_masked)
{
	static const char bind[] = "{\"hosts\":[\"a.test\"],\"inject\":\"aws\"}";
	struct purse *p = purse_with(bind, "KEYID000001:the-secret-key:and-a-token==");

	CHECK(is_masked(p, "the-secret-key") && is_masked(p, "and-a-token=="));
	CHECK(!is_masked(p, "KEYID000001"));
	purse_unref(p);
	CHECK(!purse_with(bind, "no key at all"));
}
