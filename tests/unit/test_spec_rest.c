#include "unit/test_spec.h"

#include "base/limits.h"

struct row {
	const char *text, *want;
};

TEST(every_form_of_the_rest)
{
	static const struct row rows[] = {
		{ "{\"image\":\"host\"}", WITH("\"image\":\"host\"") },
		{ "{\"image\":\"python:3.12-slim\"}", WITH("\"image\":\"python:3.12-slim\"") },
		{ "{\"image\":\"some/python:3\"}", WITH("\"image\":\"some/python:3\"") },
		{ "{\"image\":\"dir:/srv//root/\"}", WITH("\"image\":\"dir:/srv/root\"") },
		{ "{\"backend\":\"native\"}", WITH("\"backend\":\"native\"") },
		{ "{\"workspace\":\"task-123\"}", WITH("\"workspace\":\"task-123\"") },
		{ "{\"workspace\":123}", WITH("\"workspace\":\"123\"") },
		{ "{\"profile\":\"default\"}", WITH("\"profile\":\"default\"") },
		{ "{\"profile\":\"rootful\"}", WITH("\"profile\":\"rootful\"") },
		{ "{\"env\":{}}", WITH_NET(DENY) },
		{ "{\"env\":{\"CI\":\"1\",\"_a9\":\"\"}}",
		  WITH("\"env\":{\"CI\":\"1\",\"_a9\":\"\"}") },
		{ "{\"env\":{\"CI\":1}}", WITH("\"env\":{\"CI\":\"1\"}") },
		{ "{\"env\":[\"A=1\",\"B=x=y\",\"C=\"]}",
		  WITH("\"env\":{\"A\":\"1\",\"B\":\"x=y\",\"C\":\"\"}") },
		{ "{\"env\":\"A=1\"}", WITH("\"env\":{\"A\":\"1\"}") },
		{ "{\"env\":{\"A\":\"\\t\\n\\u001b\"}}",
		  WITH("\"env\":{\"A\":\"\\t\\n\\u001B\"}") },
		{ "{\"services\":\"redis-server\"}", WITH("\"services\":[\"redis-server\"]") },
		{ "{\"setup\":[\"make\",\"a\\nb\"]}", WITH("\"setup\":[\"make\",\"a\\nb\"]") },
		{ "{\"gate\":{}}", WITH_NET(DENY) },
		{ "{\"gate\":{\"commands\":\"git push\"}}",
		  WITH("\"gate\":{\"commands\":[\"git push\"]}") },
		{ "{\"gate\":{\"commands\":[\"rm -rf *\",\"git ** push\"]}}",
		  WITH("\"gate\":{\"commands\":[\"rm -rf *\",\"git ** push\"]}") },
		{ "{\"checkpoint\":\"on\"}", WITH("\"checkpoint\":\"on\"") },
		{ "{\"checkpoint\":\"off\"}", WITH("\"checkpoint\":\"off\"") },
		{ "{\"checkpoint\":\"all\"}", WITH("\"checkpoint\":\"all\"") },
		{ "{\"checkpoint\":true}", WITH("\"checkpoint\":\"on\"") },
		{ "{\"checkpoint\":false}", WITH("\"checkpoint\":\"off\"") },
		{ "{\"allow_weaker\":[\"pids\",\"net\"]}",
		  WITH("\"allow_weaker\":[\"pids\",\"net\"]") },
		{ "{\"allow_weaker\":\"mem\"}", WITH("\"allow_weaker\":[\"mem\"]") },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		takes(rows[i].text, rows[i].want);
}

TEST(wrong_rest)
{
	static const struct row rows[] = {
		{ "{\"nett\":\"deny\"}", "unknown key \"nett\"; did you mean \"net\"?" },
		{ "{\"network\":\"deny\"}", "did you mean \"net\"?" },
		{ "{\"allow-weaker\":[]}", "did you mean \"allow_weaker\"?" },
		{ "{\"mem\":\"4g\"}", "unknown key \"mem\"" },
		{ "{\"\":1}", "unknown key \"\"" },
		{ "{\"gate\":\"git push\"}", "gate: wants an object" },
		{ "{\"gate\":{\"comands\":[]}}", "did you mean \"commands\"?" },
		{ "{\"gate\":{\"commands\":[\"** push\"]}}",
		  "gate.commands[0]: \"** push\" begins with no program" },
		{ "{\"gate\":{\"commands\":[\"a\",\"a  b\"]}}", "gate.commands[1]: \"a  b\"" },
		{ "{\"image\":\"ho st\"}",
		  "image: \"ho st\" is not valid; did you mean \"host\"?" },
		{ "{\"image\":\"some//python\"}", "valid: host, dir:PATH, NAME" },
		{ "{\"image\":\"some/../python\"}", "valid: host, dir:PATH, NAME" },
		{ "{\"image\":\":x\"}", "is not valid" },
		{ "{\"image\":\"dir:\"}", "is empty" },
		{ "{\"image\":\"dir:root\"}", "is relative" },
		{ "{\"image\":\"dir:/a/../b\"}", "not allowed" },
		{ "{\"image\":\"dir:/proc/1/root\"}", "cannot be mounted" },
		{ "{\"image\":null}", "image: wants text, not null" },
		{ "{\"image\":[\"host\"]}", "image: wants text, not a list" },
		{ "{\"backend\":\"nativ\"}", "did you mean \"native\"?" },
		{ "{\"workspace\":\"\"}", "is empty" },
		{ "{\"workspace\":\"../x\"}", "is not a name" },
		{ "{\"workspace\":\"a/b\"}", "is not a name" },
		{ "{\"workspace\":\".a\"}", "is not a name" },
		{ "{\"workspace\":\"a b\"}", "is not a name" },
		{ "{\"profile\":\"rootfull\"}", "did you mean \"rootful\"?" },
		{ "{\"profile\":1}", "profile: wants text" },
		{ "{\"env\":1}", "env: wants an object" },
		{ "{\"env\":null}", "env: wants an object" },
		{ "{\"env\":{\"1A\":\"x\"}}", "\"1A\" is not the name of a variable" },
		{ "{\"env\":{\"A-B\":\"x\"}}", "is not the name of a variable" },
		{ "{\"env\":{\"A=B\":\"x\"}}", "is not the name of a variable" },
		{ "{\"env\":{\"A\\nB\":\"x\"}}", "is not the name of a variable" },
		{ "{\"env\":{\"\":\"x\"}}", "has 1 to 255 bytes" },
		{ "{\"env\":{\"A\":1.10}}", "env.A: wants text (write it in quotes)" },
		{ "{\"env\":{\"A\":true}}", "env.A: wants text (write it in quotes)" },
		{ "{\"env\":{\"A\":null}}", "env.A: wants text (write it in quotes)" },
		{ "{\"env\":[\"A\"]}", "env[0]: \"A\" has no value; write \"A=\"" },
		{ "{\"env\":[\"=x\"]}", "has 1 to 255 bytes" },
		{ "{\"env\":[\"A=1\",\"A=2\"]}", "\"A\" is given twice" },
		{ "{\"services\":[1]}", "services[0]: wants text" },
		{ "{\"services\":[\"\"]}", "services[0]: is empty" },
		{ "{\"setup\":[\"a\\u0007b\"]}", "has a control byte" },
		{ "{\"setup\":{}}", "setup: wants a list of texts" },
		{ "{\"checkpoint\":\"of\"}", "did you mean \"on\"?" },
		{ "{\"checkpoint\":1}", "valid" },
		{ "{\"checkpoint\":null}",
		  "checkpoint: wants \"on\", \"off\" or \"all\", not null" },
		{ "{\"allow_weaker\":[\"memory\"]}",
		  "allow_weaker[0]: \"memory\" is not valid; did you mean \"mem\"?" },
		{ "{\"allow_weaker\":[\"allow_weaker\"]}", "is not valid" },
		{ "{\"allow_weaker\":[\"limits\"]}", "is not valid" },
		{ "{\"allow_weaker\":[\"wall_ms\"]}", "did you mean \"wall\"?" },
		{ "{\"allow_weaker\":[\"\"]}", "is not valid" },
		{ "{\"user\":\"\"}", "user: \"\" is not a user" },
		{ "{\"user\":\"-1\"}", "is not a user" },
		{ "{\"user\":-1}", "is not a user" },
		{ "{\"user\":4294967295}", "is not a user" },
		{ "{\"user\":1.0}", "user: wants text" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		refuses(rows[i].text, rows[i].want);
}

TEST(users)
{
	static const struct row rows[] = {
		{ "{\"user\":\"root\"}", "root" },
		{ "{\"user\":0}", "0" },
		{ "{\"user\":\"0:0\"}", "0:0" },
		{ "{\"user\":1000}", "1000" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char want[128];

		snprintf(want, sizeof want,
		         "{\"net\":" DENY ",\"fs\":[],\"creds\":[],\"limits\":{},\"user\":\"%s\"}",
		         rows[i].want);
		takes(rows[i].text, want);
	}
}

TEST(flags_by_name_and_letter)
{
	static const char *const flags[] = {
		"net",        "fs",           "creds",   "cpu",    "mem",   "disk",     "inodes",
		"pids",       "wall",         "idle",    "output", "files", "io",       "image",
		"backend",    "workspace",    "profile", "env",    "user",  "services", "setup",
		"checkpoint", "allow-weaker", "e",       "u",
	};
	static const char *const others[] = {
		"",     "limits", "wall_ms", "allow_weaker", "mode",
		"kind", "spec",   "json",    "--net",        "x",
	};
	for (size_t i = 0; i < COUNT(flags); i++)
		CHECK(spec_is_flag(flags[i]));
	for (size_t i = 0; i < COUNT(others); i++)
		CHECK(!spec_is_flag(others[i]));
	flag_takes("e", "A=1", WITH("\"env\":{\"A\":\"1\"}"));
	flag_takes("u", "root",
	           "{\"net\":" DENY ",\"fs\":[],\"creds\":[],\"limits\":{},\"user\":\"root\"}");
	flag_refuses("memory", "4g", "unknown flag --memory; did you mean --mem?");
	flag_refuses("xyzzy", "4g", "unknown flag --xyzzy");
	flag_refuses("u", "-1", "--user: \"-1\" is not a user");
	flag_refuses("fs", "ro:/\xff", "--fs: the value is not UTF-8");
	flag_refuses("wall_ms", "1", "unknown flag --wall_ms; did you mean --wall?");
}

TEST(a_later_flag_wins_and_lists_grow)
{
	AUTO(spec_done) struct spec s;
	struct err e = { 0 };

	spec_init(&s);
	CHECK_INT(spec_flag(&s, "env", "A=1", &e), 0);
	CHECK_INT(spec_flag(&s, "env", "B=2", &e), 0);
	CHECK_INT(spec_flag(&s, "e", "A=3", &e), 0);
	CHECK_INT(spec_flag(&s, "image", "dir:/a", &e), 0);
	CHECK_INT(spec_flag(&s, "image", "dir:/b", &e), 0);
	CHECK_INT(spec_flag(&s, "setup", "a", &e), 0);
	CHECK_INT(spec_flag(&s, "setup", "b", &e), 0);
	CHECK_INT(spec_flag(&s, "services", "c", &e), 0);
	CHECK_INT(spec_flag(&s, "allow-weaker", "mem", &e), 0);
	CHECK_INT(spec_flag(&s, "allow-weaker", "pids", &e), 0);
	check_printed(&s, WITH("\"image\":\"dir:/b\",\"env\":{\"A\":\"3\",\"B\":\"2\"},"
	                       "\"services\":[\"c\"],\"setup\":[\"a\",\"b\"],"
	                       "\"allow_weaker\":[\"mem\",\"pids\"]"));
	CHECK(spec_weaker(&s, "mem") && spec_weaker(&s, "pids") && !spec_weaker(&s, "cpu"));
}

TEST(ceilings_of_env_and_lists)
{
	AUTO(spec_done) struct spec s;
	AUTO(str_done) struct str big = { .max = TEXT_MAX };
	struct err e = { 0 };
	char text[64];

	spec_init(&s);
	for (int i = 0; i < ENV_ENTRIES_MAX; i++) {
		snprintf(text, sizeof text, "V%d=1", i);
		CHECK_INT(spec_flag(&s, "env", text, &e), 0);
	}
	CHECK_INT(spec_flag(&s, "env", "MORE=1", &e), -1);
	CHECK_STR(e.msg, "--env: has more than 1024 entries");
	CHECK_INT(spec_flag(&s, "env", "V7=2", &e), 0);
	for (int i = 0; i < 4096; i++)
		CHECK_INT(spec_flag(&s, "setup", "x", &e), 0);
	CHECK_INT(spec_flag(&s, "setup", "x", &e), -1);
	CHECK_STR(e.msg, "--setup: has more than 4096 entries");
	str_add(&big, "A=");
	for (int i = 0; i < 128 << 10; i++)
		str_add(&big, "x");
	flag_refuses("env", str_text(&big), "the value has 131072 bytes, the most is 130816");
	flag_refuses("setup", str_text(&big), "has 131074 bytes, the most is 131071");
	while (big.len <= SPEC_BYTES_MAX)
		str_add(&big, "x");
	flag_refuses("net", str_text(&big), "--net: the value has more than 4194304 bytes");
}
