#include "spec/opts.h"
#include "test.h"

static const char *const words[] = { "net", "fs", "creds", "limits", "image", "profile", NULL };

TEST(the_nearest_word_is_found)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "nets", "net" },
		{ "nte", "net" },
		{ "NET", "net" },
		{ "network", "net" },
		{ "f", "fs" },
		{ "lim", "limits" },
		{ "limit", "limits" },
		{ "cerds", "creds" },
		{ "profil", "profile" },
		{ "imgae", "image" },
		{ "porfile", "profile" },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_STR(nearest(rows[i].text, words), rows[i].want);
}

TEST(nothing_near_is_nothing)
{
	static const char *const rows[] = {
		"", "x", "zz", "quota", "environment", "net3456789012345678901234567890123456789",
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# %s\n", rows[i]);
		CHECK(!nearest(rows[i], words));
	}
}

TEST(a_hint_names_one_or_all)
{
	static const char *const many[] = {
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
		"cccccccccccccccccccccccccccccc", "dddddddddddddddddddddddddddddd",
		"eeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "ffffffffffffffffffffffffffffff",
		"gggggggggggggggggggggggggggggg", "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
		"iiiiiiiiiiiiiiiiiiiiiiiiiiiiii", NULL,
	};
	CHECK_STR(hint("nett", words).text, "; did you mean \"net\"?");
	CHECK_STR(hint("quota", words).text, "; valid: net, fs, creds, limits, image, profile");
	CHECK(strlen(hint("0", many).text) < sizeof(struct hint));
}

TEST(a_quote_is_short_printable_and_hides_secrets)
{
	char longer[400];

	memset(longer, '\x1b', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	CHECK_STR(quote("plain").text, "plain");
	CHECK_STR(quote("a\nb\x7f\xc2\x85").text, "a\\x0ab\\x7f\\xc2\\x85");
	CHECK(strlen(quote(longer).text) < sizeof(struct quoted));
	CHECK(strstr(quote(longer).text, "\\x1b..."));
	CHECK(!strstr(quote("ghp_0123").text, "0123"));
}

/* Names of images are words too, and have up to 255 bytes. */
TEST(long_words_of_others_are_near_to_none)
{
	char name[256];
	const char *const both[] = { name, "host", NULL };

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	CHECK(!nearest("mine:v1", both));
	CHECK_STR(nearest("hosd", both), "host");
	CHECK_STR(nearest("xx", both), name);
}
