#include "unit/test_spec.h"

#include "base/limits.h"

struct row {
	const char *text, *want;
};

static void json_refuses(const char *text, const char *part)
{
	refuses_by(spec_json, text, strlen(text), part);
}

static void yaml_refuses(const char *text, const char *part)
{
	refuses_by(spec_yaml, text, strlen(text), part);
}

TEST(nothing_is_never_the_defaults)
{
	static const char *const rows[] = { "", " ", "\n", "\t\r\n  \n" };
	static const char *const yaml[] = { "# only a comment\n", "---\n", "---\n...\n", "~",
		                            "null" };

	for (size_t i = 0; i < COUNT(rows); i++)
		refuses(rows[i], "the spec is empty");
	for (size_t i = 0; i < COUNT(yaml); i++)
		yaml_refuses(yaml[i], "the spec is empty");
	json_refuses("null", "wants an object");
	takes("{}", WITH_NET(DENY));
}

TEST(json_is_strict)
{
	static const struct row rows[] = {
		{ "{\"net\":\"deny\"", "line 1: ends in the middle" },
		{ "{\"net\":\"deny\"}x", "line 1: more text after the end" },
		{ "{\"net\":\"deny\"}\n{}", "line 2: more text after the end" },
		{ "{\"net\":\"deny\"} // no", "more text after the end" },
		{ "{\"net\":\"deny\",}", "line 1: not JSON" },
		{ "{net:\"deny\"}", "not JSON" },
		{ "{'net':'deny'}", "not JSON" },
		{ "{\"net\":\"deny\",\n\"net\":\"allow\"}", "line 2: key \"net\" is given twice" },
		{ "{\"limits\":{\"mem\":1,\"mem\":2}}", "key \"mem\" is given twice" },
		{ "{\"net\":\"de\\u0000ny\"}", "text with a NUL" },
		{ "{\"n\\u0000et\":\"deny\"}", "text with a NUL" },
		{ "{\"net\":\"\xff\"}", "not UTF-8" },
		{ "{\"net\":\"\\ud800\"}", "not JSON" },
		{ "{\"limits\":{\"cpu\":NaN}}", "not JSON" },
		{ "{\"limits\":{\"cpu\":Infinity}}", "not JSON" },
		{ "{\"limits\":{\"cpu\":1e999}}", "a number is too large" },
		{ "{\"limits\":{\"mem\":99999999999999999999}}", "a number is too large" },
		{ "\xef\xbb\xbf{}", "not JSON" },
		{ "[]", "wants an object of keys such as net, fs, limits, not a list" },
		{ "\"deny\"", "not text" },
		{ "1", "not a number" },
		{ "true", "not true" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		json_refuses(rows[i].text, rows[i].want);
	refuses_by(spec_json, "{}\0", 3, "NUL byte");
	refuses_by(spec_yaml, "{}\0", 3, "NUL byte");
}

TEST(yaml_is_small_and_typed_like_json)
{
	static const struct row rows[] = {
		{ "net: deny\n", WITH_NET(DENY) },
		{ "---\nnet: deny\n...\n", WITH_NET(DENY) },
		{ "%YAML 1.1\n---\nnet: deny\n", WITH_NET(DENY) },
		{ "net: 'deny' # quoted\n", WITH_NET(DENY) },
		{ "creds:\n", WITH_CREDS("[]") },
		{ "creds: ~\n", WITH_CREDS("[]") },
		{ "fs:\n- ephemeral:/a\n-\n  kind: ro\n  src: /b\n",
		  WITH_FS("[{\"kind\":\"ephemeral\",\"at\":\"/a\"},"
		          "{\"kind\":\"ro\",\"src\":\"/b\",\"at\":\"/b\"}]") },
		{ "limits: {cpu: 2, mem: 4g, pids: 512, wall: 10m}\n",
		  WITH_LIMITS("{\"cpu\":2.0,\"mem\":4294967296,\"pids\":512,\"wall_ms\":600000}") },
		{ "limits: {cpu: 0.5}\n", WITH_LIMITS("{\"cpu\":0.5}") },
		{ "limits: {cpu: '0.5'}\n", WITH_LIMITS("{\"cpu\":0.5}") },
		{ "env: {A: no, B: on, C: 010, D: 1_000, E: 0x1F, F: .5, G: True, H: '1'}\n",
		  WITH("\"env\":{\"A\":\"no\",\"B\":\"on\",\"C\":\"010\",\"D\":\"1_000\",\"E\":"
		       "\"0x1F\","
		       "\"F\":\".5\",\"G\":\"True\",\"H\":\"1\"}") },
		{ "env: {A: 12:30:45, B: 2024-01-01, C: -, D: -x}\n",
		  WITH("\"env\":{\"A\":\"12:30:45\",\"B\":\"2024-01-01\",\"C\":\"-\",\"D\":\"-"
		       "x\"}") },
		{ "env: {A: \"true\", B: 'null', C: \"\"}\n",
		  WITH("\"env\":{\"A\":\"true\",\"B\":\"null\",\"C\":\"\"}") },
		{ "user: 1000:1000\n",
		  "{\"net\":" DENY
		  ",\"fs\":[],\"creds\":[],\"limits\":{},\"user\":\"1000:1000\"}" },
		{ "checkpoint: off\n", WITH("\"checkpoint\":\"off\"") },
		{ "setup:\n- |\n  make\n  make test\n- >-\n  a\n  b\n",
		  WITH("\"setup\":[\"make\\nmake test\\n\",\"a b\"]") },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		takes_by(spec_yaml, rows[i].text, rows[i].want);
}

TEST(yaml_errors_have_their_line)
{
	static const struct row rows[] = {
		{ "net: deny\nnet: deny\n", "line 2: key \"net\" is given twice" },
		{ "limits:\n  mem: 4g\n  memory: 4g\n", "line 3: limits: unknown key \"memory\"" },
		{ "limits:\n  mem:\n    4k\n", "line 2: limits.mem: \"4k\" is too small" },
		{ "fs:\n- ephemeral:/a\n- ephemeral:b\n", "line 3: fs[1]: \"b\" is relative" },
		{ "fs:\n- kind: ro\n  src: /a\n  at: b\n", "line 4: fs[0].at: \"b\" is relative" },
		{ "net:\n  allow:\n  - a.example.org\n  - 10.0.0.1\n",
		  "line 4: net.allow[1]: \"10.0.0.1\" is an address" },
		{ "checkpoint: on\nprofile: true\nuser: x\n",
		  "line 2: profile: wants text, not true" },
		{ "env:\n  A: 1\n  B: 1.5\n", "line 3: env.B: wants text" },
		{ "env:\n  A: 1\n  B-: 1\n", "line 3: env: \"B-\" is not the name" },
		{ "creds:\n- a\n- b: c\n", "line 3: creds[1]: b: the source" },
		{ "user: a\nnet:\n  deny:\n  - a.example.org\n",
		  "line 2: net: nothing is allowed" },
		{ "fs:\n- ephemeral:/a\n- kind: ro\n  at: /b\n",
		  "line 3: fs[1]: kind \"ro\" needs src" },
		{ "net: deny\nfs: [\n", "line 3: " },
		{ "net: deny\n\tfs: x\n", "line 2: " },
		{ "a: b: c\n", "line 1: mapping values are not allowed" },
		{ "net: &x deny\n", "line 1: anchors (&) are not allowed" },
		{ "fs: &x []\n", "line 1: anchors (&) are not allowed" },
		{ "net: &x {}\n", "line 1: anchors (&) are not allowed" },
		{ "\nnet: *x\n", "line 2: aliases (*) are not allowed" },
		{ "net:\n  allow: [*.example.org]\n", "line 2: " },
		{ "net: !!str deny\n", "line 1: tags (!) are not allowed" },
		{ "net: ! deny\n", "line 1: tags (!) are not allowed" },
		{ "fs: !x []\n", "line 1: tags (!) are not allowed" },
		{ "net: !x {}\n", "line 1: tags (!) are not allowed" },
		{ "net: deny\n---\nnet: allow\n", "line 2: a second document" },
		{ "? [a]\n: b\n", "line 1: a key must be text" },
		{ "? {a: b}\n: b\n", "line 1: a key must be text" },
		{ "<<: {net: deny}\n", "line 1: unknown key \"<<\"" },
		{ "net: \"de\\0ny\"\n", "line 1: text with a NUL" },
		{ "\"n\\0et\": deny\n", "line 1: text with a NUL" },
		{ "net: \x01\n", "line 1: control characters" },
		{ "net: \xff\n", "line 1: " },
		{ "net: \"\\ud800\"\n", "line 1: " },
		{ "- net\n", "wants an object of keys" },
		{ "deny\n", "wants an object of keys" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		yaml_refuses(rows[i].text, rows[i].want);
}

static void check_depth(int depth, const char *json_part, const char *yaml_part)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };

	str_add(&text, "{\"net\":");
	for (int i = 1; i < depth; i++)
		str_add(&text, "[");
	for (int i = 1; i < depth; i++)
		str_add(&text, "]");
	str_add(&text, "}");
	refuses_by(spec_json, str_text(&text), text.len, json_part);
	refuses_by(spec_yaml, str_text(&text), text.len, yaml_part);
}

TEST(depth_and_size_have_ceilings)
{
	AUTO(str_done) struct str text = { .max = TEXT_MAX };

	check_depth(SPEC_DEPTH_MAX, "net[0]: wants text", "net[0]: wants text");
	check_depth(SPEC_DEPTH_MAX + 1, "nested deeper than 16", "nested too deep");
	check_depth(1000, "nested deeper than 16", "nested too deep");
	check_depth(100000, "nested too deep", "nested too deep");

	str_add(&text, "{}");
	while (text.len < SPEC_BYTES_MAX)
		str_add(&text, " ");
	takes_by(spec_json, str_text(&text), WITH_NET(DENY));
	takes_by(spec_yaml, str_text(&text), WITH_NET(DENY));
	str_add(&text, " ");
	refuses_by(spec_json, str_text(&text), text.len, "more than 4194304 bytes");
	refuses_by(spec_yaml, str_text(&text), text.len, "more than 4194304 bytes");
}

TEST(a_file_is_json_or_yaml_by_name_then_by_content)
{
	static const struct {
		const char *name, *text, *error; /* NULL: taken */
	} rows[] = {
		{ "a.json", "{\"net\":\"deny\"}", NULL },
		{ "a.json", "net: deny", "not JSON" },
		{ "a.yaml", "net: deny", NULL },
		{ "a.yml", "{net: deny}", NULL },
		{ "a.yaml", "{\"net\":\"deny\"}", NULL },
		{ "a", "net: deny", NULL },
		{ "a", " \n{\"net\":\"deny\"}", NULL },
		{ "a", "{net: deny}", "not JSON" },
		{ "json", "net: deny", NULL },
		{ "a", "", "the spec is empty" },
		{ "a.json", "", "the spec is empty" },
		{ "a.yaml", " ", "the spec is empty" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		printf("# %s: %s\n", rows[i].name, quote(rows[i].text).text);
		spec_init(&s);
		int r = spec_document(&s, rows[i].name, rows[i].text, strlen(rows[i].text), &e);

		CHECK_INT(r, rows[i].error ? -1 : 0);
		if (rows[i].error)
			CHECK(strstr(e.msg, rows[i].error));
	}
}
