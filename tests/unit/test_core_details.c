#include "core/details.h"

#include "base/limits.h"
#include "test.h"
#include "wire/base64.h"

/* ---- what is said of one end ------------------------------------------------------- */

static struct keep kept[2];
static struct channel_end end;

static void json_done(json_t **j)
{
	json_decref(*j);
}

/* The details, the streams, and how much of them is missing. */
static json_t *result(void)
{
	AUTO(freep) char *text = details_of(&end, NULL);
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	CHECK(o);
	json_object_set_new(o, "dropped", json_integer((json_int_t)details_streams(o, kept)));
	return o;
}

/* The value at "execs.first"; fails when there is none. */
static const json_t *at(const json_t *j, const char *path)
{
	char part[64];

	for (const char *p = path; *p; p += *p == '.') {
		size_t n = strcspn(p, ".");

		snprintf(part, sizeof part, "%.*s", (int)n, p);
		j = json_is_array(j) ? json_array_get(j, strtoul(part, NULL, 10))
		                     : json_object_get(j, part);
		p += n;
	}
	if (!j)
		printf("# nothing at %s\n", path);
	CHECK(j);
	return j;
}

static const char *text_at(const json_t *j, const char *path)
{
	return json_string_value(at(j, path));
}

static long long number_at(const json_t *j, const char *path)
{
	CHECK(json_is_integer(at(j, path)));
	return json_integer_value(at(j, path));
}

/* ---- tests ------------------------------------------------------------------------- */

static void keep_anew(void)
{
	for (size_t i = 0; i < COUNT(kept); i++) {
		keep_done(&kept[i]);
		keep_init(&kept[i], INLINE_OUTPUT_MAX);
	}
}

TEST(odd_text_comes_back_as_it_was)
{
	static const char *const texts[] = {
		"",
		"plain\n",
		"\"quotes\" and \\backslashes\\",
		"\x01\x02\x1b[31m\x7f\r\t\b\f",
		"</script><!-- {\"state\":\"exited\"}\n",
		"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		"\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf", /* line separators, byte order mark */
		"\xef\xbf\xbe\xf4\x8f\xbf\xbf",         /* no characters, but valid */
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		keep_anew();
		keep_add(&kept[0], texts[i], strlen(texts[i]));
		keep_add(&kept[1], texts[COUNT(texts) - 1 - i],
		         strlen(texts[COUNT(texts) - 1 - i]));
		AUTO(json_done) json_t *j = result();

		CHECK_STR(text_at(j, "stdout"), texts[i]);
		CHECK_STR(text_at(j, "stderr"), texts[COUNT(texts) - 1 - i]);
		CHECK_STR(text_at(j, "encoding"), "utf-8");
	}
}

TEST(one_stream_of_bytes_puts_both_in_base64)
{
	static const struct {
		const char *bytes[2];
		size_t n[2];
	} cases[] = {
		{ { "\xff\xfe", "text" }, { 2, 4 } },
		{ { "text", "\xff" }, { 4, 1 } },
		{ { "a\0b", "" }, { 3, 0 } },
		{ { "\x80", "\x80" }, { 1, 1 } },
	};
	static const char *const names[] = { "stdout", "stderr" };

	for (size_t i = 0; i < COUNT(cases); i++) {
		keep_anew();
		for (size_t s = 0; s < 2; s++)
			keep_add(&kept[s], cases[i].bytes[s], cases[i].n[s]);
		AUTO(json_done) json_t *j = result();

		CHECK_STR(text_at(j, "encoding"), "base64");
		for (size_t s = 0; s < 2; s++) {
			AUTO(str_done) struct str want = { .max = 64 };

			base64_encode(cases[i].bytes[s], cases[i].n[s], &want);
			CHECK_STR(text_at(j, names[s]), str_text(&want));
		}
	}
}

/* The worst that may be kept, in the longest form that it can take. */
TEST(full_streams_fit_as_text_and_as_bytes)
{
	static const unsigned char fill[] = { 'a', 0x01, 0xff };
	AUTO(freep) unsigned char *bytes = mem_alloc(3 * INLINE_OUTPUT_MAX);

	for (size_t i = 0; i < COUNT(fill); i++) {
		keep_anew();
		memset(bytes, fill[i], 3 * INLINE_OUTPUT_MAX);
		for (size_t s = 0; s < 2; s++)
			keep_add(&kept[s], bytes, 3 * INLINE_OUTPUT_MAX);
		AUTO(json_done) json_t *j = result();

		CHECK(json_string_length(at(j, "stderr")) >= INLINE_OUTPUT_MAX);
		CHECK_STR(text_at(j, "stdout"), text_at(j, "stderr"));
		CHECK_INT(number_at(j, "dropped"), 4 * INLINE_OUTPUT_MAX);
		CHECK_STR(text_at(j, "encoding"), fill[i] < 0x80 ? "utf-8" : "base64");
	}
}

/* Bytes of a sequence that was cut are in no text: they count as dropped. */
TEST(shown_and_dropped_are_all)
{
	static const char euro[] = "\xe2\x82\xac";

	for (size_t lead = 0; lead < 3; lead++) {
		keep_anew();
		keep_add(&kept[0], "aa", lead);
		for (size_t i = 0; i < INLINE_OUTPUT_MAX; i++)
			keep_add(&kept[0], euro, 3);
		AUTO(json_done) json_t *j = result();
		const char *line = strstr(text_at(j, "stdout"), "\n[... ");

		CHECK(line);
		size_t line_len = strcspn(line + 1, "\n") + 2;
		size_t shown = json_string_length(at(j, "stdout")) - line_len;

		CHECK_INT((long long)shown + number_at(j, "dropped"), (long long)kept[0].bytes);
	}
}

/* A name is whatever a program inside calls itself. */
TEST(names_from_inside_are_text_in_any_case)
{
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "sh", "sh" },
		{ "", "" },
		{ "\",\"pid\":1", "\",\"pid\":1" },
		{ "new\nline\x1b", "new\nline\x1b" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "cut\xe2\x82", "cut??" },
		{ "\xff\x80z", "??z" },
	};

	end.n_children = end.n_execs = COUNT(cases);
	for (size_t i = 0; i < COUNT(cases); i++) {
		end.children[i].pid = (int32_t)i + 1;
		snprintf(end.children[i].name, sizeof end.children[i].name, "%s", cases[i].name);
		snprintf(end.execs[i], sizeof end.execs[i], "%s", cases[i].name);
	}
	AUTO(json_done) json_t *j = result();

	CHECK_INT(json_array_size(at(j, "children")), COUNT(cases));
	for (size_t i = 0; i < COUNT(cases); i++) {
		const json_t *child = json_array_get(at(j, "children"), i);

		CHECK_INT(number_at(child, "pid"), (int)i + 1);
		CHECK_STR(text_at(child, "name"), cases[i].want);
		CHECK_STR(json_string_value(json_array_get(at(j, "execs.first"), i)),
		          cases[i].want);
	}
}

TEST(a_count_beyond_the_arrays_is_only_a_count)
{
	end.n_children = end.n_execs = 1000000;
	AUTO(json_done) json_t *j = result();

	CHECK_INT(json_array_size(at(j, "children")), CHANNEL_CHILDREN_MAX);
	CHECK_INT(json_array_size(at(j, "execs.first")), CHANNEL_EXECS_MAX);
	CHECK_INT(number_at(j, "execs.count"), 1000000);
}

TEST(only_what_happened_is_a_violation)
{
	AUTO(json_done) json_t *none = result();
	CHECK_INT(json_array_size(at(none, "violations")), 0);
	end.oom_kills = 1;
	end.pids_denied = 2;
	end.dropped_bytes = 3;
	end.is_disk_full = 4;
	end.is_inodes_full = 5;
	AUTO(json_done) json_t *j = result();
	static const char *const targets[] = { "mem", "pids", "output", "disk", "inodes" };

	CHECK_INT(json_array_size(at(j, "violations")), COUNT(targets));
	for (size_t i = 0; i < COUNT(targets); i++) {
		const json_t *v = json_array_get(at(j, "violations"), i);

		CHECK_STR(text_at(v, "kind"), "limit");
		CHECK_STR(text_at(v, "target"), targets[i]);
		CHECK_INT(number_at(v, "count"), (int)i + 1);
	}
}

static const struct {
	struct gate_record r;
	const char *target, *rule, *reason;
	long long count;
	bool is_new;
} denials[] = {
	{ { .kind = GATE_CLOSED, .name = "example.org", .port = 443, .reason = GATE_NO_RULE },
	  "example.org:443",
	  "deny",
	  "no_rule",
	  1,
	  true },
	{ { .kind = GATE_LOOKUP,
	    .name = "example.net",
	    .port = 53,
	    .reason = GATE_NO_RULE,
	    .count = 7 },
	  "example.net",
	  "deny",
	  "no_rule",
	  7,
	  true },
	{ { .kind = GATE_CLOSED, .name = "example.org", .port = 443, .reason = GATE_NO_RULE },
	  "example.org:443",
	  "deny",
	  "no_rule",
	  2,
	  false },
	{ { .kind = GATE_CLOSED,
	    .name = "example.org",
	    .port = 443,
	    .reason = GATE_RULE,
	    .rule = "deny: example.org" },
	  "example.org:443",
	  "deny: example.org",
	  "rule",
	  1,
	  true },
	{ { .kind = GATE_CLOSED, .dst = { 192, 0, 2, 1 }, .port = 80, .reason = GATE_LITERAL },
	  "192.0.2.1:80",
	  "deny",
	  "literal",
	  1,
	  true },
	{ { .kind = GATE_CLOSED,
	    .dst = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
	    .is_v6 = 1,
	    .port = 80,
	    .reason = GATE_LITERAL },
	  "[2001:db8::1]:80",
	  "deny",
	  "literal",
	  1,
	  true },
};

TEST(what_was_denied_is_a_violation_and_counted)
{
	AUTO(json_done) json_t *list = NULL;
	size_t n = 0;

	for (size_t i = 0; i < COUNT(denials); i++) {
		details_deny(&list, &denials[i].r, i == 0);
		n += denials[i].is_new;
		CHECK_INT(json_array_size(list), n);
		const json_t *row = json_array_get(list, denials[i].is_new ? n - 1 : 0);

		CHECK_STR(text_at(row, "kind"), "net");
		CHECK_STR(text_at(row, "target"), denials[i].target);
		CHECK_STR(text_at(row, "rule"), denials[i].rule);
		CHECK_STR(text_at(row, "reason"), denials[i].reason);
		CHECK_INT(number_at(row, "count"), denials[i].count);
		CHECK_INT(json_is_true(at(row, "certain")), denials[i].is_new ? i == 0 : 1);
	}
	for (int i = 0; i < 100; i++) {
		struct gate_record r = { .kind = GATE_CLOSED, .port = 1 };

		snprintf(r.name, sizeof r.name, "h%d.test", i);
		details_deny(&list, &r, false);
	}
	CHECK_INT(json_array_size(list), DENIALS_MAX);
	end = (struct channel_end){ .oom_kills = 1 };
	AUTO(freep) char *text = details_of(&end, list);
	AUTO(json_done) json_t *o = json_loads(text, 0, NULL);

	CHECK_STR(text_at(o, "violations.0.kind"), "limit");
	CHECK_STR(text_at(o, "violations.1.target"), "example.org:443");
	CHECK_INT(json_array_size(at(o, "violations")), DENIALS_MAX + 1);
}

/* ---- arguments --------------------------------------------------------------------- */

TEST(of_long_arguments_the_beginning_and_a_hash)
{
	static char most[ARGV_TEXT_MAX + 1], more[ARGV_TEXT_MAX + 2];
	const char *const short_ones[] = { "a", "b \"c\"", NULL },
			  *const at_most[] = { most, NULL },
			  *const too_long[] = { more, "end", NULL };
	const struct {
		const char *const *argv;
		const char *begins, *ends;
		bool is_hashed;
	} rows[] = { { short_ones, "[\"a\",\"b ", "c\\\"\"]", false },
		     { at_most, "[\"xxx", "xxx\"]", false },
		     { too_long, "[\"xxx", "\"...\"]", true } };

	memset(most, 'x', ARGV_TEXT_MAX);
	memset(more, 'x', ARGV_TEXT_MAX + 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(freep) char *text = details_argv(rows[i].argv);
		char hash[TREE_HASH_TEXT] = "";

		details_argv_hash(rows[i].argv, hash);
		CHECK_INT(hash[0] != '\0', rows[i].is_hashed);
		CHECK(strncmp(text, rows[i].begins, strlen(rows[i].begins)) == 0);
		CHECK_STR(text + strlen(text) - strlen(rows[i].ends), rows[i].ends);
	}
}
