#include "cli/table.h"

#include "test.h"

TEST(columns_stand_below_each_other)
{
	static const char *const heads[] = { "ID", "NAME", "X", NULL };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = 4096 };

	table_init(&t, heads);
	table_cell(&t, "1");
	table_cell(&t, "gr\xc3\xbc\xc3\x9f");
	table_cell(&t, "end");
	table_cell(&t, "22222");
	table_cell(&t, "");
	table_cellf(&t, "%d%%", 7);
	table_print(&t, 0, &out);
	CHECK_STR(str_text(&out), "ID     NAME  X\n"
	                          "1      gr\xc3\xbc\xc3\x9f  end\n"
	                          "22222  -     7%\n");
}

TEST(foreign_text_is_harmless_and_lines_are_cut)
{
	static const char *const heads[] = { "A", "B", NULL };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = 4096 };

	table_init(&t, heads);
	table_cell(&t, "\x1b[2J");
	table_cell(&t, "a\nb\xc3\xbc\xc3\xbc\xc3\xbc");
	table_print(&t, 14, &out);
	CHECK_STR(str_text(&out), "A        B\n\\x1b[2J  a\\nb\xc3\xbc\n");
}

TEST(a_table_without_rows_has_its_heads)
{
	static const char *const heads[] = { "A", "B", NULL };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str out = { .max = 4096 };

	table_init(&t, heads);
	table_print(&t, 0, &out);
	CHECK_STR(str_text(&out), "A  B\n");
}

TEST(a_cell_without_end_is_cut)
{
	static const char *const heads[] = { "A", NULL };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str text = { .max = 1u << 20 }, out = { .max = 1u << 20 };

	for (int i = 0; i < 100000; i++)
		str_add(&text, "\x01");
	table_init(&t, heads);
	table_cell(&t, str_text(&text));
	table_print(&t, 0, &out);
	CHECK(out.len > 4000 && out.len < 4200);
}

TEST(numbers_for_people)
{
	static const struct {
		uint64_t n;
		const char *bytes, *duration;
	} rows[] = {
		{ 0, "0B", "0ms" },          { 999, "999B", "999ms" },
		{ 1024, "1.0K", "1s" },      { 10240, "10K", "10s" },
		{ 60000, "59K", "1m" },      { 3600000, "3.4M", "1h" },
		{ 172800000, "165M", "2d" }, { UINT64_MAX, "16E", "213503982334d" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_STR(brief_bytes(rows[i].n).text, rows[i].bytes);
		CHECK_STR(brief_duration(rows[i].n).text, rows[i].duration);
	}
	CHECK_STR(brief_age(0).text, "");
	CHECK_STR(brief_age(INT64_MAX).text, "0ms"); /* not yet */
}
