#include "wire/escape.h"

#include "test.h"

TEST(what_a_terminal_would_obey_is_shown)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "", "" },
		{ "plain text", "plain text" },
		{ "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80",
		  "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80" },
		{ "\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07" },
		{ "a\nb\tc\rd", "a\\nb\\tc\\x0d"
		                "d" },
		{ "\x7f", "\\x7f" },
		{ "\xc2\x9b"
		  "31m",
		  "\\u{9b}31m" }, /* C1 in UTF-8 */
		{ "\x9b"
		  "31m",
		  "\\x9b31m" }, /* C1 as a byte */
		{ "a\xe2\x80\xae"
		  "b",
		  "a\\u{202e}b" },                                      /* right to left */
		{ "\xe2\x81\xa6x\xe2\x81\xa9", "\\u{2066}x\\u{2069}" }, /* isolates */
		{ "\xe2\x80\xa8", "\\u{2028}" },
		{ "\xef\xbb\xbf", "\\u{feff}" },
		{ "\xf3\xa0\x81\x81", "\\u{e0041}" },
		{ "\xff\xfe", "\\xff\\xfe" },
		{ "\xc3", "\\xc3" }, /* cut */
		{ "\xc3(", "\\xc3(" },
		{ "\xe2\x80", "\\xe2\\x80" },
		{ "\xc0\xaf", "\\xc0\\xaf" },          /* overlong */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" }, /* surrogate */
		{ "\xe2\x80\xe2\x80\xae", "\\xe2\\x80\\u{202e}" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 256 };

		escape_text(rows[i].text, &out);
		CHECK_STR(str_text(&out), rows[i].shown);
	}
}

TEST(wherever_it_was_cut)
{
	static const char text[] = "a\x1b[0m\n\xe2\x80\xae \xc3\xbc\xf0\x9f\x98\x80\xff\n";
	static const char shown[] = "a\\x1b[0m\n\\u{202e} \xc3\xbc\xf0\x9f\x98\x80\\xff\n";
	size_t n = sizeof text - 1;

	for (size_t first = 0; first <= n; first++) {
		for (size_t second = first; second <= n; second++) {
			AUTO(str_done) struct str out = { .max = 256 };
			struct escape x = { .keeps_lines = true };

			escape_feed(&x, text, first, &out);
			escape_feed(&x, text + first, second - first, &out);
			escape_feed(&x, text + second, n - second, &out);
			escape_end(&x, &out);
			CHECK_STR(str_text(&out), shown);
		}
	}
}

TEST(no_byte_that_is_not_printable_comes_out)
{
	unsigned char text[3];

	for (unsigned int i = 0; i < 1u << 16; i++) {
		AUTO(str_done) struct str out = { .max = 64 };
		struct escape x = { 0 };

		text[0] = (unsigned char)(i >> 8);
		text[1] = (unsigned char)i;
		text[2] = 'x';
		escape_feed(&x, text, sizeof text, &out);
		escape_end(&x, &out);
		for (size_t k = 0; k < out.len; k++)
			CHECK((unsigned char)out.data[k] >= 0x20 && out.data[k] != 0x7f);
	}
}

TEST(a_long_message_is_cut)
{
	AUTO(str_done) struct str text = { .max = 8192 };

	for (int i = 0; i < 4000; i++)
		str_add(&text, "x");
	CHECK(strlen(escape_brief(str_text(&text))) < 1024);
}
