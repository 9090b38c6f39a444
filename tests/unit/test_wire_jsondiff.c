#include "wire/jsondiff.h"

#include "base/str.h"
#include "test.h"

static void difference(const char *old, const char *now, struct str *out)
{
	json_t *a = old ? json_loads(old, JSON_DECODE_ANY, NULL) : NULL;
	json_t *b = now ? json_loads(now, JSON_DECODE_ANY, NULL) : NULL;
	json_t *lines = json_difference(a, b);
	const json_t *line;
	size_t i;

	json_array_foreach(lines, i, line) str_addf(out, "%s\n", json_string_value(line));
	json_decref(lines);
	json_decref(a);
	json_decref(b);
}

TEST(each_entry_that_differs_is_one_line)
{
	static const struct {
		const char *old, *now, *lines;
	} rows[] = {
		{ "{}", "{}", "" },
		{ "{\"allow\":[\"a\",\"b\"]}", "{\"allow\":[\"a\",\"b\",\"**\"]}",
		  "+ allow: \"**\"\n" },
		{ "{\"allow\":[\"a\",\"b\"]}", "{\"allow\":[\"**\",\"b\"]}",
		  "- allow: \"a\"\n+ allow: \"**\"\n" },
		{ "{\"allow\":[\"a\"],\"deny\":[\"x\"]}", "{\"allow\":[\"a\"]}",
		  "- deny: \"x\"\n" },
		{ "{\"mode\":\"list\"}", "{\"mode\":\"allow\"}",
		  "- mode: \"list\"\n+ mode: \"allow\"\n" },
		{ NULL, "{\"allow\":[\"a\"]}", "+ allow: \"a\"\n" },
		{ "\"deny\"", "{\"allow\":[\"a\"]}", "- \"deny\"\n+ allow: \"a\"\n" },
		{ "{\"b\":{\"up\":1,\"down\":2}}", "{\"b\":{\"up\":3,\"down\":2}}",
		  "- b.up: 1\n+ b.up: 3\n" },
		{ "{\"http\":[{\"host\":\"a\",\"methods\":[\"GET\"]}]}",
		  "{\"http\":[{\"methods\":[\"GET\",\"PUT\"],\"host\":\"a\"}]}",
		  "- http: {\"host\":\"a\",\"methods\":[\"GET\"]}\n"
		  "+ http: {\"host\":\"a\",\"methods\":[\"GET\",\"PUT\"]}\n" },
		{ "{\"allow\":[\"a\",\"a\"]}", "{\"allow\":[\"a\"]}", "- allow: \"a\"\n" },
		{ "{\"allow\":[\"a\",\"b\"]}", "{\"allow\":[\"b\",\"a\"]}",
		  "~ allow: [\"b\",\"a\"]\n" },
		{ "{\"allow\":[\"a\"]}", "{\"allow\":{\"a\":1}}",
		  "- allow: [\"a\"]\n+ allow: {\"a\":1}\n" },
		{ "{}", "{\"allow\":[\"a\\n+ deny: b\\u202e\"]}",
		  "+ allow: \"a\\n+ deny: b\\u202E\"\n" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };

		difference(rows[i].old, rows[i].now, &out);
		CHECK_STR(str_text(&out), rows[i].lines);
	}
}

TEST(one_entry_behind_many_is_the_only_line)
{
	AUTO(str_done) struct str old = { .max = 65536 };
	AUTO(str_done) struct str now = { .max = 65536 };
	AUTO(str_done) struct str out = { .max = 65536 };

	str_add(&old, "{\"allow\":[\"x\"");
	for (int i = 0; i < 200; i++)
		str_addf(&old, ",\"pkg%d.mirror.example.org\"", i);
	str_add(&now, str_text(&old));
	str_add(&old, "]}");
	str_add(&now, ",\"**\"]}");
	difference(str_text(&old), str_text(&now), &out);
	CHECK_STR(str_text(&out), "+ allow: \"**\"\n");
}
