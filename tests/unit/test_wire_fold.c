#include "wire/fold.h"

#include "test.h"

static const char *folded(const char *name)
{
	static struct fold_name f;

	fold_name(span_of(name), &f);
	return f.text;
}

static void put_utf8(uint32_t c, char out[5])
{
	static const struct {
		uint32_t below;
		unsigned char lead;
		int n;
	} rows[] = {
		{ 0x80, 0, 1 }, { 0x800, 0xc0, 2 }, { 0x10000, 0xe0, 3 }, { 0x110000, 0xf0, 4 }
	};
	size_t i = 0;

	while (c >= rows[i].below)
		i++;
	for (int k = rows[i].n - 1; k > 0; k--, c >>= 6)
		out[k] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(rows[i].lead | c);
	out[rows[i].n] = '\0';
}

/* Unicode 15.1, DerivedCoreProperties.txt: Default_Ignorable_Code_Point, by hand. */
TEST(default_ignorable_characters_are_not_there)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },
		{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
		{ 0x200b, 0x200f },   { 0x202a, 0x202e },   { 0x2060, 0x206f },
		{ 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },   { 0xfff0, 0xfff8 },   { 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};
	size_t seen = 0;

	for (size_t i = 0; i < COUNT(ranges); i++) {
		for (uint32_t c = ranges[i].first; c <= ranges[i].last; c++, seen++) {
			char at[5], name[32];

			put_utf8(c, at);
			snprintf(name, sizeof name, "%s.cl%saude%s", at, at, at);
			CHECK_STR(folded(name), ".claude");
		}
	}
	CHECK_INT(seen, 4174);
}

TEST(spellings_of_ascii)
{
	static const struct {
		const char *name, *folded;
	} rows[] = {
		{ "MAKEFILE", "makefile" },
		{ "make\xef\xac\x81le", "makefile" }, /* U+FB01 */
		{ "ma\xe2\x84\xaa"
		  "efile",
		  "makefile" }, /* U+212A */
		{ ".v\xc5\xbf"
		  "code",
		  ".vscode" },                            /* U+017F */
		{ "cla\xc3\x9f", "class" },               /* U+00DF */
		{ "cla\xe1\xba\x9e", "class" },           /* U+1E9E */
		{ ".te\xef\xac\x86", ".test" },           /* U+FB06 */
		{ "\xef\xbd\x8d\xef\xbc\xa1ke", "make" }, /* U+FF4D, U+FF21 */
		{ "\xf0\x9d\x90\x8c"
		  "ake",
		  "make" },                /* U+1D40C */
		{ "\xe3\x8f\x82", "a.m" }, /* U+33C2 */
		{ "a. .", "a" },
		{ "a:b", "a" },
		{ ":b", ":b" },
		{ "...", "" },
		{ "\xc3\xa4\xc3\x84", "\xc3\xa4\xc3\x84" }, /* no ASCII: as it is */
		{ "a\xff\xfe"
		  "B\xe2\x81",
		  "a\xff\xfe"
		  "b\xe2\x81" },
		{ "\xc1\xa1\xe0\x81\xa1", "\xc1\xa1\xe0\x81\xa1" }, /* overlong */
		{ "\xe2\x84\x80", "\xe2\x84\x80" },                 /* a/c: no name has a slash */
		{ "", "" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %s\n", rows[i].name);
		CHECK_STR(folded(rows[i].name), rows[i].folded);
	}
}

TEST(the_longest_name_has_room)
{
	char name[FOLD_NAME_MAX + 1] = "";

	for (size_t i = 0; i + 3 <= FOLD_NAME_MAX; i += 3)
		memcpy(name + i, "\xe3\x8f\x82",
		       4); /* "a.m.": the longest that three bytes become */
	CHECK_INT(strlen(folded(name)), FOLD_NAME_MAX / 3 * 4 - 1);
	memset(name, 'X', FOLD_NAME_MAX);
	CHECK_INT(strlen(folded(name)), FOLD_NAME_MAX);
}

TEST(every_character_folds_once)
{
	/* Beyond the third plane only tags are in the table. */
	for (uint32_t c = 0x80; c < 0x30000; c++) {
		char at[5], once[64];

		if (c >= 0xd800 && c < 0xe000)
			continue;
		put_utf8(c, at);
		snprintf(once, sizeof once, "x%sx", folded(at));
		once[1 + strcspn(once + 1, ":")] = '\0'; /* cut off the next time */
		if (strcmp(folded(once), once) != 0) {
			printf("# U+%04X\n", c);
			CHECK_STR(folded(once), once);
		}
	}
}
