#include "wire/zip.h"

#include "base/str.h"
#include "test.h"

static void put(struct str *out, uint64_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		char byte = (char)(n >> 8 * i);

		str_addn(out, &byte, 1);
	}
}

struct fields {
	uint32_t flags, method, packed, size, at;
};

static void put_central(struct str *out, const char *name, struct fields f)
{
	put(out, 0x02014b50, 4);
	put(out, 20, 2);
	put(out, 20, 2);
	put(out, f.flags, 2);
	put(out, f.method, 2);
	put(out, 0, 4);
	put(out, 0x12345678, 4);
	put(out, f.packed, 4);
	put(out, f.size, 4);
	put(out, (uint32_t)strlen(name), 2);
	put(out, 3, 2); /* extra */
	put(out, 2, 2); /* comment */
	put(out, 0, 8);
	put(out, f.at, 4);
	str_add(out, name);
	str_add(out, "eeecc");
}

static void put_end(struct str *out, uint32_t n, uint32_t len, uint32_t at, const char *comment)
{
	put(out, 0x06054b50, 4);
	put(out, 0, 4);
	put(out, n, 2);
	put(out, n, 2);
	put(out, len, 4);
	put(out, at, 4);
	put(out, (uint32_t)strlen(comment), 2);
	str_add(out, comment);
}

TEST(the_end_is_found_behind_any_comment)
{
	static const struct {
		const char *comment;
		uint64_t size;
		uint32_t n, len, at;
		bool is_fine;
	} cases[] = {
		{ "", 1000, 1, 60, 100, true },         { "a comment PK\5\6", 1000, 0, 0, 0, true },
		{ "", 1000, 1, 60, 941, false },        /* beyond the end */
		{ "", 1000, 0xffff, 60, 100, false },   /* Zip64 */
		{ "", 1000, 1, 60, UINT32_MAX, false }, /* Zip64 */
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str tail = { .max = 1000 };
		struct zip_end end;
		struct err e = { 0 };

		str_add(&tail, "what is before it");
		put_end(&tail, cases[i].n, cases[i].len, cases[i].at, cases[i].comment);
		int r = zip_end((struct span){ tail.data, tail.len }, cases[i].size, &end, &e);

		CHECK_INT(r == 0, cases[i].is_fine);
		if (r == 0)
			CHECK_INT((long long)end.at, cases[i].at);
	}
	struct zip_end end;
	struct err e = { 0 };
	CHECK(zip_end(span_of("no archive at all, and long enough"), 100, &end, &e) < 0);
	CHECK(zip_end(span_of(""), 0, &end, &e) < 0);
}

TEST(entries_of_a_directory)
{
	AUTO(str_done) struct str text = { .max = 1000 };
	struct zip_entry entry;
	struct err e = { 0 };

	put_central(&text, "a/b", (struct fields){ .method = 8, .packed = 5, .size = 9, .at = 7 });
	put_central(&text, "d/", (struct fields){ 0 });
	struct span rest = { text.data, text.len };

	CHECK_INT(zip_next(&rest, &entry, &e), 1);
	CHECK(span_is(entry.name, "a/b"));
	CHECK_INT((long long)entry.packed, 5);
	CHECK_INT((long long)entry.size, 9);
	CHECK_INT((long long)entry.at, 7);
	CHECK_INT(entry.crc, 0x12345678);
	CHECK_INT(zip_next(&rest, &entry, &e), 1);
	CHECK(span_is(entry.name, "d/"));
	CHECK_INT(zip_next(&rest, &entry, &e), 0);
	rest = (struct span){ text.data, text.len - 1 };
	CHECK_INT(zip_next(&rest, &entry, &e), 1);
	CHECK_INT(zip_next(&rest, &entry, &e), -1); /* cut */
}

TEST(entries_that_are_not_taken)
{
	static const struct fields cases[] = {
		{ .flags = 1 },                                 /* encrypted */
		{ .method = 12 },                               /* bzip2 */
		{ .method = 8, .size = UINT32_MAX },            /* Zip64 */
		{ .packed = 3, .size = 4 },                     /* stored, and shorter */
		{ .method = 8, .packed = 1, .at = UINT32_MAX }, /* Zip64 */
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str text = { .max = 1000 };
		struct zip_entry entry;
		struct err e = { 0 };

		put_central(&text, "x", cases[i]);
		struct span rest = { text.data, text.len };
		CHECK_INT(zip_next(&rest, &entry, &e), -1);
	}
	struct err e = { 0 };
	char head[ZIP_LOCAL_BYTES] = "PK\3\4";
	head[26] = 3;
	head[28] = 5;
	CHECK_INT(zip_local(head, &e), 8);
	head[0] = 'x';
	CHECK_INT(zip_local(head, &e), -1);
}
