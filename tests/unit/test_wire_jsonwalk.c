#include "wire/jsonwalk.h"

#include "base/str.h"
#include "test.h"

static void note_path(struct str *out, const struct jsonwalk_path *p)
{
	for (size_t i = 0; i < p->depth; i++)
		str_addf(out, "/%.*s", (int)p->keys[i].len, p->keys[i].at ? p->keys[i].at : "#");
}

static void note_text(void *arg, const struct jsonwalk_path *p, struct span raw)
{
	note_path(arg, p);
	str_addf(arg, "=%.*s ", (int)raw.len, raw.at);
}

static void note_closed(void *arg, const struct jsonwalk_path *p)
{
	note_path(arg, p);
	str_add(arg, "} ");
}

static const struct {
	const char *json, *want; /* NULL: refused */
} rows[] = {
	{ "\"a\"", "=a " },
	{ "{}", "} " },
	{ " { \"a\" : \"b\" , \"c\":[\"d\",{\"e\":\"f\"}] } ", "/a=b /c/=d /c//e=f /c/} } " },
	{ "[1,-2.5e+3,true,false,null,\"x\"]", "/=x " },
	{ "{\"a\":\"b\\\"c\\\\\"}", "/a=b\\\"c\\\\ } " },
	{ "", NULL },
	{ "{", NULL },
	{ "{\"a\"}", NULL },
	{ "{\"a\":}", NULL },
	{ "{\"a\":1,}", NULL },
	{ "[1,]", NULL },
	{ "[1 2]", NULL },
	{ "{} {}", NULL },
	{ "\"a", NULL },
	{ "\"a\\", NULL },
	{ "\"a\n\"", NULL },
	{ "nope", NULL },
	{ "{a:1}", NULL },
};

TEST(paths_of_texts_and_ends_of_objects)
{
	static const struct jsonwalk_ops ops = { note_text, note_closed };

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };

		test_true((jsonwalk(span_of(rows[i].json), &ops, &out) == 0) == !!rows[i].want,
		          rows[i].json, __FILE__, __LINE__);
		if (rows[i].want)
			CHECK_STR(str_text(&out), rows[i].want);
	}
}

TEST(depth_has_a_bound)
{
	static const struct jsonwalk_ops ops = { note_text, NULL };
	AUTO(str_done) struct str out = { .max = 4096 };
	char deep[2 * (JSONWALK_DEPTH + 1) + 1] = "";

	memset(deep, '[', JSONWALK_DEPTH);
	memset(deep + JSONWALK_DEPTH, ']', JSONWALK_DEPTH);
	CHECK(jsonwalk(span_of(deep), &ops, &out) == 0);
	memset(deep, '[', JSONWALK_DEPTH + 2);
	memset(deep + JSONWALK_DEPTH + 2, ']', JSONWALK_DEPTH);
	CHECK(jsonwalk(span_of(deep), &ops, &out) < 0);
}

TEST(texts_of_plain_ascii)
{
	static const struct {
		const char *raw, *want;
	} texts[] = {
		{ "abc", "abc" },
		{ "https:\\/\\/a.test\\/", "https://a.test/" },
		{ "\\u0041", "A" },
		{ "a\\\\b\\\"", "a\\b\"" },
		{ "\\u00e9", NULL },
		{ "\\n", NULL },
		{ "\xc3\xa9", NULL },
		{ "\\u00", NULL },
		{ "\\x", NULL },
		{ "0123456789abcdef", NULL },
		{ "0123456789abcde", "0123456789abcde" },
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		char out[16];
		int n = jsonwalk_ascii(span_of(texts[i].raw), out, sizeof out);

		test_true((n >= 0) == !!texts[i].want, texts[i].raw, __FILE__, __LINE__);
		if (texts[i].want)
			CHECK_STR(out, texts[i].want);
	}
}
