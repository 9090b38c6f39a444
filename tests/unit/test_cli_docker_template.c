#include "cli/docker_template.h"

#include "test.h"

static const char value[] =
    "{\"ID\":\"abc\",\"N\":3,\"Yes\":true,\"No\":false,\"Nil\":null,\"List\":[\"a\",\"b\"],"
    "\"None\":[],"
    "\"Map\":{\"z\":\"1\",\"a.b\":\"2\"},\"State\":{\"Status\":\"up\",\"Code\":0},"
    "\"_labels\":{\"k\":\"v\"}}";

TEST(what_programs_write)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "plain", "plain" },
		{ "{{.ID}}", "abc" },
		{ "a {{ .ID }}\t{{.State.Status}}", "a abc\tup" },
		{ "{{.N}}{{.Yes}}{{.Nil}}", "3true<no value>" },
		{ "{{.List}} {{.Map}}", "[a b] map[a.b:2 z:1]" },
		{ "{{json .State}}", "{\"Status\":\"up\",\"Code\":0}" },
		{ "{{json .ID}}{{json .List}}", "\"abc\"[\"a\",\"b\"]" },
		{ "{{index .Map \"a.b\"}}|{{index .Map \"nope\"}}|{{index .List 1}}", "2||b" },
		{ "{{.Label \"k\"}}{{.Label \"other\"}}", "v" },
		{ "{{len .List}}{{len .Map}}{{len .ID}}", "223" },
		{ "{{range .List}}<{{.}}>{{end}}", "<a><b>" },
		{ "{{range .None}}{{.Foo}}{{else}}none{{end}}", "none" },
		{ "{{range .List}}{{$.ID}}{{end}}", "abcabc" },
		{ "{{range .Map}}{{.}},{{end}}", "1,2," },
		{ "{{if .Yes}}y{{else}}{{.Nope}}{{end}}", "y" },
		{ "{{if .No}}y{{else if .N}}n{{else}}z{{end}}!", "n!" },
		{ "{{if .No}}{{if .Yes}}a{{else}}b{{end}}{{else}}c{{end}}", "c" },
		{ "{{with .State}}{{.Status}}{{end}}{{with .None}}x{{end}}", "up" },
		{ "{{if eq .State.Status \"down\" \"up\"}}up{{end}}{{if ne .N 3}}x{{end}}", "up" },
		{ "{{if and .Yes (not .No)}}1{{end}}{{if or .No .None}}2{{end}}", "1" },
		{ "{{.ID | upper | printf \"<%s>\"}}", "<ABC>" },
		{ "{{printf \"%.2s|%-5s|%5d|%9.1s%\" .ID .ID .N .ID}}",
		  "ab|abc  |    3|        a%" },
		{ "{{printf \"%q %d%%\" .ID .N}}", "\"abc\" 3%" },
		{ "{{join .List \", \"}} {{index (split \"x:y\" \":\") 1}}", "a, b y" },
		{ "{{println .ID}}{{print .N .ID}}", "abc\n3abc" },
		{ "a {{- .ID -}} b{{/* words */}}c", "aabcbc" },
		{ "{{`raw`}}{{\"q\\\"\\t\"}}", "rawq\"\t" },
		{ "{{(.State).Status}}", "up" },
	};
	AUTO(json_decrefp) json_t *v = json_loads(value, 0, NULL);

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };
		struct err e = { 0 };

		CHECK_INT(template_render(rows[i].text, v, &out, &e), 0);
		CHECK_STR(str_text(&out), rows[i].shown);
	}
}

TEST(what_is_no_template_says_why)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "{{.Nope}}", "can't evaluate field Nope" },
		{ "{{.State.Nope}}", "can't evaluate field Nope" },
		{ "{{nope .ID}}", "function \"nope\" not defined" },
		{ "{{.ID", "unclosed action" },
		{ "{{", "missing value" },
		{ "{{}}", "missing value" },
		{ "{{if .Yes}}", "unexpected EOF" },
		{ "{{range .List}}x", "unexpected EOF" },
		{ "{{end}}", "unexpected {{end}}" },
		{ "{{else}}", "unexpected {{else}}" },
		{ "{{\"a}}", "unterminated quoted string" },
		{ "{{/* a", "unclosed comment" },
		{ "{{(.ID}}", "unclosed left paren" },
		{ "{{join .List}}", "wrong number of args for join" },
		{ "{{((((((((((((((((((((((((((((((((((((((((1", "too deep" },
	};
	AUTO(json_decrefp) json_t *v = json_loads(value, 0, NULL);

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };
		struct err e = { 0 };

		CHECK_INT(template_render(rows[i].text, v, &out, &e), -1);
		CHECK(strstr(e.msg, rows[i].why) != NULL);
	}
}
