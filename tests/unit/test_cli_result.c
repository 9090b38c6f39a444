#include "cli/result.h"

#include "test.h"

static void json_done(json_t **j)
{
	json_decref(*j);
}

/* One line of plain ASCII, and JSON. */
static json_t *read_back(const struct str *s)
{
	CHECK(!s->overflow);
	CHECK(strchr(s->data, '\n') == s->data + s->len - 1);
	for (size_t i = 0; i < s->len; i++)
		CHECK((signed char)s->data[i] > 0);
	json_t *j = json_loads(s->data, JSON_REJECT_DUPLICATES, NULL);

	CHECK(j);
	return j;
}

/* What a daemon says besides stays out, what it does not say is null. */
TEST(has_every_key_in_its_order)
{
	static const char *const keys[] = {
		"id",       "state",      "exit_code", "signal",   "reason", "stdout",
		"stderr",   "encoding",   "bytes",     "cwd",      "ms",     "usage",
		"children", "violations", "execs",     "enforced",
	};
	AUTO(str_done) struct str out = { .max = 1 << 20 };
	AUTO(json_done) json_t *hello = json_pack("{s{ss}}", "enforced", "mem", "cgroup2");
	AUTO(json_done)
	json_t *process = json_pack("{ss,si,ss,ss,s{si}}", "log", "/v1/x", "exit_code", 3, "id",
	                            "px_1", "stdout", "caf\xc3\xa9 \x7f\n", "bytes", "stdout", 7);
	const char *key;
	json_t *value;
	size_t n = 0;

	result_print(hello, process, &out);
	AUTO(json_done) json_t *j = read_back(&out);
	json_object_foreach(j, key, value)
	{
		CHECK(n < COUNT(keys));
		CHECK_STR(key, keys[n++]);
	}
	CHECK_INT(n, COUNT(keys));
	CHECK_STR(json_string_value(json_object_get(j, "stdout")), "caf\xc3\xa9 \x7f\n");
	CHECK_INT(json_integer_value(json_object_get(j, "exit_code")), 3);
	CHECK(json_is_null(json_object_get(j, "signal")));
	CHECK(json_equal(json_object_get(j, "enforced"), json_object_get(hello, "enforced")));
}

TEST(an_error_has_its_kind_and_its_sentence)
{
	static const struct {
		struct err e;
		const char *code, *message;
	} cases[] = {
		{ { ERR_INVALID, 0, "\"mem\": \\ wants a size\n" }, "invalid", NULL },
		{ { ERR_UNENFORCEABLE, 0, "unenforceable: io" }, "unenforceable", NULL },
		{ { ERR_INTERNAL, EIO, "caf\xc3\xa9: Input/output error" }, "backend_error", NULL },
		{ { ERR_DENIED, 0, "" }, "denied", NULL },
		{ { ERR_NOT_FOUND, ENOENT, "open /\xff\xfe: No such file" },
		  "not_found",
		  "open /??: No such file" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str out = { .max = 1 << 20 };

		result_print_error(&cases[i].e, &out);
		AUTO(json_done) json_t *j = read_back(&out);
		const json_t *error = json_object_get(j, "error");

		CHECK_STR(json_string_value(json_object_get(error, "code")), cases[i].code);
		CHECK_STR(json_string_value(json_object_get(error, "message")),
		          cases[i].message ? cases[i].message : cases[i].e.msg);
	}
}
