#include "wire/base64.h"

#include "test.h"

TEST(vectors_of_rfc_4648_section_10)
{
	static const struct {
		const char *bytes, *want;
	} cases[] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str s = { .max = 64 };

		base64_encode(cases[i].bytes, strlen(cases[i].bytes), &s);
		CHECK_STR(str_text(&s), cases[i].want);
	}
}

/* The digits count up when the bytes are the numbers 0..63 in six bits each. */
TEST(every_digit_stands_for_its_number)
{
	AUTO(str_done) struct str s = { .max = 128 };
	unsigned char bytes[48] = { 0 };

	for (unsigned int n = 0; n < 64; n++)
		for (unsigned int bit = 0; bit < 6; bit++)
			if (n & 32u >> bit)
				bytes[(n * 6 + bit) / 8] |=
				    (unsigned char)(0x80u >> (n * 6 + bit) % 8);
	base64_encode(bytes, sizeof bytes, &s);
	CHECK_STR(str_text(&s), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
}

TEST(bytes_with_the_high_bit_and_nul_are_only_bytes)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *want;
	} cases[] = {
		{ "\0", 1, "AA==" },       { "\0\0\0", 3, "AAAA" },       { "\xff", 1, "/w==" },
		{ "\xff\xff", 2, "//8=" }, { "\xff\xfe\xfd", 3, "//79" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str s = { .max = 64 };

		base64_encode(cases[i].bytes, cases[i].n, &s);
		CHECK_STR(str_text(&s), cases[i].want);
	}
}

/* Exact allocations, so that ASan sees a read behind the end. */
TEST(reads_no_byte_behind_the_last)
{
	for (size_t n = 0; n < 64; n++) {
		AUTO(str_done) struct str s = { .max = 128 };
		AUTO(freep) unsigned char *bytes = mem_alloc(n);

		base64_encode(bytes, n, &s);
		CHECK_INT(s.len, (n + 2) / 3 * 4);
		CHECK(!s.overflow);
	}
}

TEST(adds_to_what_is_there)
{
	AUTO(str_done) struct str s = { .max = 64 };

	str_add(&s, "data:");
	base64_encode("foo", 3, &s);
	CHECK_STR(str_text(&s), "data:Zm9v");
}

TEST(every_length_is_decoded_to_what_was_encoded)
{
	for (size_t n = 0; n < 70; n++) {
		AUTO(str_done) struct str text = { .max = 128 };
		AUTO(str_done) struct str bytes = { .max = 70 };
		unsigned char raw[70];

		for (size_t i = 0; i < n; i++)
			raw[i] = (unsigned char)(i * 89 + n * 7);
		base64_encode(raw, n, &text);
		CHECK(base64_decode(str_text(&text), text.len, &bytes));
		CHECK_INT(bytes.len, n);
		CHECK(n == 0 || memcmp(bytes.data, raw, n) == 0);
	}
}

TEST(only_the_text_that_would_be_printed_is_decoded)
{
	static const struct {
		const char *text;
		size_t n;
	} cases[] = {
		{ "A", 1 },       { "AA", 2 },       { "AAA", 3 },      { "AA=", 3 },
		{ "=", 1 },       { "==", 2 },       { "===", 3 },      { "====", 4 },
		{ "A===", 4 },    { "AB==", 4 },     { "AAB=", 4 },     { "A=A=", 4 },
		{ "A=AA", 4 },    { "AA=A", 4 },     { "AA==AAAA", 8 }, { "AAA=AAAA", 8 },
		{ "Zg==\n", 5 },  { "Zm9\n", 4 },    { "Zm 9", 4 },     { " Zm9", 4 },
		{ "Zm9-", 4 },    { "Zm9_", 4 },     { "Zm9*", 4 },     { "Zm\0009", 4 },
		{ "Zm9\xff", 4 }, { "Zm9vZm9!", 8 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str s = { .max = 64 };
		AUTO(freep) char *exact = mem_alloc(cases[i].n);

		printf("# %s\n", cases[i].text);
		memcpy(exact, cases[i].text, cases[i].n);
		str_add(&s, "before");
		CHECK(!base64_decode(exact, cases[i].n, &s));
		CHECK_STR(str_text(&s), "before");
		CHECK(!s.overflow);
	}
}

TEST(what_does_not_fit_is_not_decoded)
{
	AUTO(str_done) struct str s = { .max = 5 };

	CHECK(base64_decode("Zm9v", 4, &s));
	CHECK(base64_decode("Zm8=", 4, &s));
	CHECK_STR(str_text(&s), "foofo");
	CHECK(!base64_decode("Zg==", 4, &s));
	CHECK(s.overflow);
	CHECK_STR(str_text(&s), "foofo");
}
