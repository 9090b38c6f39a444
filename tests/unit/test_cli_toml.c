#include "cli/toml.h"

#include "test.h"

TEST(toml_is_read)
{
	static const struct {
		const char *text, *json;
	} rows[] = {
		{ "", "{}" },
		{ "# only a comment\n\n", "{}" },
		{ "a = 1\nb = 'x'\n", "{\"a\":1,\"b\":\"x\"}" },
		{ "a = 1_000 # so many\r\nb = 0x10\r\n", "{\"a\":1000,\"b\":16}" },
		{ "a = true\nb = false\nc = -1.5\n", "{\"a\":true,\"b\":false,\"c\":-1.5}" },
		{ "d = 1979-05-27T07:32:00Z", "{\"d\":\"1979-05-27T07:32:00Z\"}" },
		{ "a.b.\"c d\" = 1", "{\"a\":{\"b\":{\"c d\":1}}}" },
		{ "[a]\nb = 1\n[a.c]\nd = 2\n[e]\n", "{\"a\":{\"b\":1,\"c\":{\"d\":2}},\"e\":{}}" },
		{ "[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3",
		  "{\"a\":[{\"b\":1},{\"b\":2,\"c\":{\"d\":3}}]}" },
		{ "a = [1, # one\n 2,\n [\"x\"],\n]", "{\"a\":[1,2,[\"x\"]]}" },
		{ "a = {b = 1, c.d = 'x'}", "{\"a\":{\"b\":1,\"c\":{\"d\":\"x\"}}}" },
		{ "a = \"\\u00e9\\n\\\"\"", "{\"a\":\"\\u00e9\\n\\\"\"}" },
		{ "a = 'C:\\dir'", "{\"a\":\"C:\\\\dir\"}" },
		{ "a = \"\"\"\nx\n  y \\\n   z\"\"\"", "{\"a\":\"x\\n  y z\"}" },
		{ "a = '''\nx'y\n'''", "{\"a\":\"x'y\\n\"}" },
		{ "a = \"\"", "{\"a\":\"\"}" },
		{ "\xef\xbb\xbf"
		  "a = 1",
		  "{\"a\":1}" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		AUTO(json_decrefp) json_t *got = NULL;

		if (toml_load(rows[i].text, strlen(rows[i].text), &got, &e) < 0)
			CHECK_STR(e.msg, rows[i].text);
		AUTO(freep) char *text = json_dumps(got, JSON_COMPACT | JSON_ENSURE_ASCII);
		AUTO(json_decrefp) json_t *want = json_loads(rows[i].json, 0, NULL);
		AUTO(freep) char *wanted = json_dumps(want, JSON_COMPACT | JSON_ENSURE_ASCII);

		CHECK_STR(text, wanted);
	}
}

TEST(what_is_wrong_is_named_by_its_line)
{
	static const struct {
		const char *text, *part;
	} rows[] = {
		{ "a", "line 1: a key lacks its =" },
		{ "\n= 1", "line 2: a key is expected" },
		{ "a = \n", "line 1: a value is expected" },
		{ "a = 1\na = 2", "line 2: a key is given twice" },
		{ "a = 1 b = 2", "line 1: more than one thing" },
		{ "a = 1\n[a]\n", "line 2: a key leads through" },
		{ "a = {}\n[[a]]\n", "line 2: a key is given twice" },
		{ "[a\n", "line 1: the name of a table" },
		{ "\n\na = \"x\n", "line 3: a text does not end" },
		{ "a = '''x\n", "a text does not end" },
		{ "a = \"\\x\"", "an unknown escape" },
		{ "a = \"\\u12\"", "lacks digits" },
		{ "a = \"\\ud800\"", "not a character" },
		{ "a = \"\xff\"", "not UTF-8" },
		{ "a = [1 2]", "a comma or ]" },
		{ "a = {b = 1 c = 2}", "a comma or }" },
		{ "a = [", "a value is expected" },
		{ "a = \"\x01\"", "control character" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		json_t *got = NULL;

		CHECK_INT(toml_load(rows[i].text, strlen(rows[i].text), &got, &e), -1);
		if (!strstr(e.msg, rows[i].part))
			CHECK_STR(e.msg, rows[i].part);
		CHECK(!got);
	}
	struct err e = { 0 };
	char deep[4096] = "a = ";
	json_t *got = NULL;

	memset(deep + 4, '[', sizeof deep - 4);
	CHECK_INT(toml_load(deep, sizeof deep, &got, &e), -1);
	CHECK_STR(e.msg, "line 1: too deep");
}
