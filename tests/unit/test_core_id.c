#include "core/id.h"

#include "test.h"

TEST(an_id_is_new_and_known_as_one)
{
	char a[ID_SIZE], b[ID_SIZE];

	id_make(a, "sb");
	id_make(b, "sb");
	CHECK(strcmp(a, b) != 0);
	CHECK_INT(strlen(a), 29);
	CHECK(id_is(a, strlen(a), "sb"));
	CHECK(!id_is(a, strlen(a), "px"));
	CHECK(!id_is(a, strlen(a) - 1, "sb"));
}

TEST(what_looks_like_an_id_and_is_none_is_refused)
{
	static const char *const wrong[] = {
		"",
		"sb_",
		"sb",
		"sb_../../../../etc/passwd0000",
		"sb_00000000000000000000000000/",
		"sb_0000000000000000000000000A",
		"sb_0000000000000000000000000",
		"sb_000000000000000000000000000",
		"sb-00000000000000000000000000",
	};

	for (size_t i = 0; i < COUNT(wrong); i++)
		CHECK(!id_is(wrong[i], strlen(wrong[i]), "sb"));
	CHECK(!id_is("sb_0000000000000\0000000000000", 29, "sb"));
}

TEST(a_key_is_short_plain_and_no_id)
{
	static const char *const good[] = { "a", "task-123", "owner@repo:main", "A.b_c", "0" };
	static const char *const bad[] = { "",     ".",        "..",   "-x",   "a/b", "a b",
		                           "a%2f", "\xc3\xa4", "sb_x", "a\nb", "../x" };
	char longest[129];

	for (size_t i = 0; i < COUNT(good); i++)
		CHECK(key_is(good[i], strlen(good[i])));
	for (size_t i = 0; i < COUNT(bad); i++)
		CHECK(!key_is(bad[i], strlen(bad[i])));
	memset(longest, 'a', sizeof longest);
	CHECK(key_is(longest, 128));
	CHECK(!key_is(longest, 129));
	CHECK(!key_is("a\0b", 3));
}
