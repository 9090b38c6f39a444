#include "base/str.h"

#include "test.h"

TEST(ceiling_holds_and_is_remembered)
{
	static const struct {
		const char *name;
		size_t max;
		const char *a, *b, *want;
		bool overflow;
	} cases[] = {
		{ "fits", 10, "ab", "cd", "abcd", false },
		{ "exactly full", 4, "ab", "cd", "abcd", false },
		{ "one too many", 3, "ab", "cd", "ab", true },
		{ "nothing fits", 0, "ab", "cd", "", true },
		{ "after an overflow nothing is added", 3, "abcd", "x", "", true },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str s = { .max = cases[i].max };

		printf("# %s\n", cases[i].name);
		str_add(&s, cases[i].a);
		str_addf(&s, "%s", cases[i].b);
		CHECK_STR(str_text(&s), cases[i].want);
		CHECK_INT(s.len, strlen(cases[i].want));
		CHECK_INT(s.overflow, cases[i].overflow);
	}
}

TEST(formats_longer_than_its_small_buffer)
{
	AUTO(str_done) struct str s = { .max = 4096 };

	for (int width = 254; width <= 258; width++) {
		str_clear(&s);
		str_addf(&s, "%*d", width, 7);
		CHECK_INT(s.len, width);
		CHECK_INT(s.data[width - 1], '7');
	}
}

TEST(bytes_may_hold_nul)
{
	AUTO(str_done) struct str s = { .max = 16 };

	str_addn(&s, "a\0b", 3);
	str_addn(&s, NULL, 0);
	CHECK_INT(s.len, 3);
	CHECK_INT(memcmp(s.data, "a\0b", 4), 0);
}

TEST(clear_forgets_text_and_overflow)
{
	AUTO(str_done) struct str s = { .max = 2 };

	str_add(&s, "abc");
	CHECK(s.overflow);
	str_clear(&s);
	CHECK(!s.overflow);
	str_add(&s, "ab");
	CHECK_STR(str_text(&s), "ab");
	str_clear(&s);
	CHECK_STR(str_text(&s), "");
}

TEST(done_accepts_nothing_and_twice)
{
	struct str s = { .max = 8 };

	str_done(&s);
	CHECK_STR(str_text(&s), "");
	str_add(&s, "x");
	str_done(&s);
	str_done(&s);
	CHECK_STR(str_text(&s), "");
	CHECK_INT(s.max, 8);
}
