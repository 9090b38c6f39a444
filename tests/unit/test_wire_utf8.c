#include "wire/utf8.h"

#include "test.h"

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *bytes;
	size_t n;
	bool is_text;
} rows[] = {
	{ BYTES(""), true },
	{ BYTES("abc\0\x7f"), true },
	{ BYTES("\xc2\x80"), true },
	{ BYTES("\xdf\xbf"), true },
	{ BYTES("\xe0\xa0\x80"), true },
	{ BYTES("\xed\x9f\xbf"), true },
	{ BYTES("\xee\x80\x80"), true },
	{ BYTES("\xef\xbf\xbf"), true },
	{ BYTES("\xf0\x90\x80\x80"), true },
	{ BYTES("\xf4\x8f\xbf\xbf"), true },
	{ BYTES("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z"), true },
	{ BYTES("\x80"), false },
	{ BYTES("\xbf"), false },
	{ BYTES("\xc0\x80"), false },
	{ BYTES("\xc1\xbf"), false },
	{ BYTES("\xe0\x9f\xbf"), false },
	{ BYTES("\xed\xa0\x80"), false },
	{ BYTES("\xed\xbf\xbf"), false },
	{ BYTES("\xf0\x8f\xbf\xbf"), false },
	{ BYTES("\xf4\x90\x80\x80"), false },
	{ BYTES("\xf5\x80\x80\x80"), false },
	{ BYTES("\xff"), false },
	{ BYTES("\xc3("), false },
	{ BYTES("\xe2\x82("), false },
	{ BYTES("\xf0\x9f\x98("), false },
	{ BYTES("\xc3"), false },
	{ BYTES("\xe2\x82"), false },
	{ BYTES("\xf0\x9f\x98"), false },
};

TEST(text_is_told_from_bytes_wherever_it_is_cut)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		for (size_t cut = 0; cut <= rows[i].n; cut++) {
			struct utf8 u = { 0 };
			bool is_text = utf8_feed(&u, rows[i].bytes, cut) &&
			               utf8_feed(&u, rows[i].bytes + cut, rows[i].n - cut) &&
			               utf8_is_whole(&u);

			printf("# row %zu, cut at %zu\n", i, cut);
			CHECK_INT(is_text, rows[i].is_text);
		}
	}
}

/* Every code point, encoded by the rule and not by the table. */
TEST(every_code_point_is_taken_but_surrogates)
{
	for (uint32_t c = 0x80; c < 0x110000; c++) {
		uint8_t four[4] = { (uint8_t)(0xf0 | c >> 18), (uint8_t)(0x80 | (c >> 12 & 63)),
			            (uint8_t)(0x80 | (c >> 6 & 63)), (uint8_t)(0x80 | (c & 63)) };
		size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		struct utf8 u = { 0 };

		if (n == 2)
			four[2] = (uint8_t)(0xc0 | c >> 6);
		if (n == 3)
			four[1] = (uint8_t)(0xe0 | c >> 12);
		bool is_text = utf8_feed(&u, four + 4 - n, n) && utf8_is_whole(&u);

		CHECK_INT(is_text, c < 0xd800 || c > 0xdfff);
	}
}
