#include "wire/lend.h"

#include "test.h"

TEST(a_head_has_a_kind_and_a_length)
{
	static const struct {
		struct lend_head h;
		size_t size;
	} rows[] = {
		{ { LEND_ONCE, { 5, 0, 0, 0 } }, 10 },    { { LEND_KEEP, { 0, 1, 0, 0 } }, 261 },
		{ { LEND_KEEP, { 0, 0, 1, 0 } }, 65541 }, { { LEND_KEEP, { 1, 0, 1, 0 } }, 0 },
		{ { LEND_KEEP, { 0, 0, 0, 0 } }, 0 },     { { 'x', { 5, 0, 0, 0 } }, 0 },
		{ { LEND_KEEP, { 5, 0, 0, 255 } }, 0 },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(lend_size(&rows[i].h), rows[i].size);
}

TEST(paths_are_absolute_and_end)
{
	static const struct {
		const char *bytes;
		size_t n;
		int r;
	} rows[] = {
		{ "/a", 3, 0 }, { "/a\0/b", 6, 0 },  { "/a", 2, -1 },    { "a", 2, -1 },
		{ "", 1, -1 },  { "/a\0\0", 4, -1 }, { "/a\0b", 5, -1 }, { "/", 2, 0 },
	};
	struct err e;

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(lend_check(rows[i].bytes, rows[i].n, &e), rows[i].r);
	char many[(LEND_PATHS_MAX + 1) * 2];
	for (size_t i = 0; i < sizeof many; i++)
		many[i] = i % 2 ? '\0' : '/';
	CHECK_INT(lend_check(many, sizeof many - 2, &e), 0);
	CHECK_INT(lend_check(many, sizeof many, &e), -1);
}

TEST(empty_and_single_dot_names_do_not_matter)
{
	static const struct {
		const char *a, *b;
		bool is_same;
	} rows[] = {
		{ "/a/b", "/a/b", true },     { "/a/b", "//a/./b/", true }, { "/", "/.", true },
		{ "/a", "/a/..", false },     { "/a", "/ab", false },       { "/a/b", "/a", false },
		{ "/a/..b", "/a/.b", false }, { "/a", "/A", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		CHECK_INT(lend_is_same(rows[i].a, rows[i].b), rows[i].is_same);
		CHECK_INT(lend_is_same(rows[i].b, rows[i].a), rows[i].is_same);
	}
}
