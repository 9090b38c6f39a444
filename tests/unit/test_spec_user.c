#include "spec/spec.h"
#include "test.h"

TEST(names_uids_and_uid_gid_pairs)
{
	static const struct {
		const char *text, *name;
		uint32_t uid, gid;
		bool has_gid;
	} rows[] = {
		{ "agent", "agent", 0, 0, false },
		{ "root", "root", 0, 0, false },
		{ "_apt", "_apt", 0, 0, false },
		{ "www-data", "www-data", 0, 0, false },
		{ "a0123456789012345678901234567_-z", "a0123456789012345678901234567_-z", 0, 0,
		  false },
		{ "0", NULL, 0, 0, false },
		{ "0:0", NULL, 0, 0, true },
		{ "1000", NULL, 1000, 0, false },
		{ "1000:100", NULL, 1000, 100, true },
		{ "4294967294:4294967294", NULL, 4294967294, 4294967294, true },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct user_ref got = { 0 };
		struct err e = { 0 };

		printf("# %s\n", rows[i].text);
		CHECK_INT(user_parse(rows[i].text, &got, &e), 0);
		CHECK_STR(got.name, rows[i].name);
		CHECK_INT(got.uid, rows[i].uid);
		CHECK_INT(got.gid, rows[i].gid);
		CHECK_INT(got.has_gid, rows[i].has_gid);
	}
}

/* CAP-08 of the attack corpus, and its neighbours. */
TEST(nothing_is_parsed_half_way)
{
	static const char *const rows[] = {
		"",
		" ",
		"-1",
		"-1:0",
		"0:-1",
		"4294967295",
		"4294967296",
		"1:4294967295",
		"99999999999999999999",
		" 0",
		"0 ",
		"0\n",
		"+0",
		"00",
		"01:1",
		"1:00",
		"0x0",
		"1:0x0",
		"1:",
		":1",
		":",
		"1:1:1",
		"1.0",
		"1e0",
		"\xd9\xa0",      /* an arabic-indic zero */
		"\xef\xbc\x90",  /* a full-width zero */
		"0\xe2\x80\x8b", /* a zero-width space behind */
		"agent:agent",
		"root:0",
		"0:root",
		"Root",
		"-root",
		"roo t",
		"root\n",
		"../root",
		"a/b",
		"a01234567890123456789012345678901", /* 33 bytes */
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct user_ref got = { .uid = 7, .gid = 7 };
		struct err e = { 0 };

		printf("# row %zu\n", i);
		CHECK_INT(user_parse(rows[i], &got, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
		CHECK(strstr(e.msg, "is not a user"));
		CHECK_INT(got.uid, 7);
		CHECK_INT(got.gid, 7);
	}
}
