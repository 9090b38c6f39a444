#include "wire/connect.h"

#include "test.h"

TEST(an_envelope_is_all_of_the_body_and_plain)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *want; /* NULL: refused */
	} cases[] = {
		{ "\0\0\0\0\2{}", 7, "{}" },
		{ "\0\0\0\0\0", 5, "" },
		{ "", 0, NULL },
		{ "\0\0\0\0", 4, NULL },
		{ "\0\0\0\0\2{", 6, NULL },   /* cut */
		{ "\0\0\0\0\2{}x", 8, NULL }, /* more behind it */
		{ "\1\0\0\0\2{}", 7, NULL },  /* compressed */
		{ "\2\0\0\0\2{}", 7, NULL },  /* an end is the server's */
		{ "\0\xff\xff\xff\xff{}", 7, NULL },
		{ "\0\0\0\1\2{}", 7, NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct span out = { NULL, 0 };
		bool is_one = connect_message((struct span){ cases[i].bytes, cases[i].n }, &out);

		CHECK(is_one == (cases[i].want != NULL));
		CHECK(!is_one || span_is(out, cases[i].want));
	}
}

TEST(what_is_printed_is_read)
{
	AUTO(str_done) struct str text = { .max = 1 << 20 };
	AUTO(str_done) struct str long_one = { .max = 1 << 20 };
	struct span out;

	for (int i = 0; i < 70000; i++)
		str_add(&long_one, "x");
	connect_print(&text, 0, (struct span){ long_one.data, long_one.len });
	CHECK(connect_message((struct span){ text.data, text.len }, &out));
	CHECK(out.len == long_one.len && memcmp(out.at, long_one.data, out.len) == 0);
	str_clear(&text);
	connect_print(&text, CONNECT_END, span_of("{}"));
	CHECK(text.len == 7 && text.data[0] == CONNECT_END && text.data[4] == 2);
}

TEST(every_code_of_ours_is_one_of_theirs)
{
	CHECK_STR(connect_name(connect_of(FAIL_NOT_FOUND)), "not_found");
	CHECK_STR(connect_name(connect_of(FAIL_IS_DIRECTORY)), "invalid_argument");
	CHECK(connect_status(connect_of(FAIL_UNAUTHORIZED)) == 401);
	for (enum fail_code c = FAIL_NONE; c < FAIL_CODES; c++)
		CHECK(connect_status(connect_of(c)) >= 400 && *connect_name(connect_of(c)));
}
