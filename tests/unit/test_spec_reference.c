#include "unit/test_spec.h"

TEST(help_has_one_line_per_flag)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	size_t flags = 0, lines = 0;
	const struct opt *o;

	spec_help(&out);
	CHECK(!out.overflow);
	for (const char *p = str_text(&out); *p; p++)
		lines += *p == '\n';
	for (size_t i = 0; (o = flag_row(i)); i++) {
		char text[64];

		flags++;
		snprintf(text, sizeof text, "--%s %s", o->flag, o->arg);
		CHECK(strstr(str_text(&out), text));
	}
	CHECK_INT(lines, flags);
	CHECK(flags <= FLAGS_MAX);
	CHECK(strstr(str_text(&out),
	             "  --mem SIZE              memory with page cache and tmpfs, no swap (4g)\n"));
	CHECK(strstr(str_text(&out), "  -e, --env K=V... "));
}

TEST(lines_of_help_fit_the_terminal)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	spec_help(&out);
	for (char *rest = out.data; *rest;) {
		char *line = strsep(&rest, "\n");

		printf("# %s\n", line);
		CHECK(strlen(line) <= 100);
	}
}

static void check_rows(const char *text, const struct opt_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct opt *o = &t->at[i];
		char row[64];

		printf("# %s\n", o->key);
		snprintf(row, sizeof row, "\n| `%s` | ", o->key);
		CHECK(strstr(text, row));
		CHECK(o->help && strstr(text, o->help));
		CHECK(o->forms && strstr(text, o->forms));
	}
}

TEST(the_reference_has_every_key)
{
	static const struct opt_table *const tables[] = { &top_table,  &net_table, &http_table,
		                                          &rate_table, &fs_table,  &limit_table };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	spec_reference(&out);
	CHECK(!out.overflow);
	for (size_t i = 0; i < COUNT(tables); i++)
		check_rows(str_text(&out), tables[i]);
}

/* Each fenced block of the language goes through the reader; returns how many there were. */
static int check_examples(const char *text, const char *fence, spec_reader *read)
{
	int count = 0;

	while ((text = strstr(text, fence))) {
		const char *start = text + strlen(fence);
		const char *end = strstr(start, "```");
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		CHECK(end);
		spec_init(&s);
		if (read(&s, start, (size_t)(end - start), &e) < 0 || spec_check(&s, &e) < 0)
			CHECK_STR(e.msg, "");
		text = end;
		count++;
	}
	return count;
}

TEST(the_examples_of_the_reference_are_valid)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };

	spec_reference(&out);
	CHECK_INT(check_examples(str_text(&out), "```yaml\n", spec_yaml), 5);
	CHECK_INT(check_examples(str_text(&out), "```json\n", spec_json), 1);
}

/* What a row prints as its default is what spec_resolve() uses. */
TEST(every_default_is_valid)
{
	const struct opt *o;

	for (size_t i = 0; (o = flag_row(i)); i++) {
		AUTO(spec_done) struct spec s;
		struct err e = { 0 };

		spec_init(&s);
		if (o->dflt && spec_flag(&s, o->flag, o->dflt, &e) < 0)
			CHECK_STR(e.msg, "");
	}
}
