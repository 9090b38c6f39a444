#include "wire/url.h"

#include "test.h"

#define SPAN(text) ((struct span){ text, sizeof(text) - 1 })

TEST(a_target_is_split_at_the_first_question_mark)
{
	static const struct {
		const char *target, *path, *query;
		bool has_query;
	} rows[] = {
		{ "/", "/", "", false },           { "/?", "/", "", true },
		{ "/a/b", "/a/b", "", false },     { "/a?b", "/a", "b", true },
		{ "/a?b?c", "/a", "b?c", true },   { "//a//?/", "//a//", "/", true },
		{ "/a%3Fb", "/a%3Fb", "", false },
	};
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct url u;

		CHECK_INT(url_split(span_of(rows[i].target), &u, &e), 0);
		CHECK(span_is(u.path, rows[i].path));
		CHECK(span_is(u.query, rows[i].query));
		CHECK_INT(u.has_query, rows[i].has_query);
	}
}

TEST(what_is_no_path_is_refused)
{
	static const struct span rows[] = {
		SPAN(""),          SPAN("a"),      SPAN("*"),     SPAN("http://a/"),
		SPAN("?a"),        SPAN("/a b"),   SPAN("/a\0b"), SPAN("/a#b"),
		SPAN("/\xc3\xa4"), SPAN("/a\r\n"), SPAN("/\\"),   SPAN("/\x7f"),
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		struct url u;

		CHECK_INT(url_split(rows[i], &u, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
	}
}

/* Joined by a bar, so that an empty segment is seen. */
static void join_segments(struct span path, struct str *out)
{
	struct span segment;

	while (url_segment(&path, &segment)) {
		str_add(out, "|");
		str_addn(out, segment.at, segment.len);
	}
}

TEST(segments_come_as_they_are)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "", "" },
		{ "/", "|" },
		{ "//", "||" },
		{ "/a", "|a" },
		{ "/a/", "|a|" },
		{ "/a//b", "|a||b" },
		{ "/./../a/..", "|.|..|a|.." },
		{ "/%2e%2E/%2f", "|%2e%2E|%2f" },
		{ "/a;b=c/d", "|a;b=c|d" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str got = { .max = 256 };

		join_segments(span_of(rows[i].path), &got);
		CHECK_STR(str_text(&got), rows[i].want);
	}
}

struct decoded {
	enum url_part part;
	struct span in;
	struct span want; /* at NULL: refused */
};

TEST(escapes_are_decoded_or_refused)
{
	static const struct decoded rows[] = {
		{ URL_SEGMENT, SPAN(""), SPAN("") },
		{ URL_SEGMENT, SPAN("abc"), SPAN("abc") },
		{ URL_SEGMENT, SPAN("a%20b"), SPAN("a b") },
		{ URL_SEGMENT, SPAN("%2F%2f"), SPAN("//") },
		{ URL_SEGMENT, SPAN("%2e%2E"), SPAN("..") },
		{ URL_SEGMENT, SPAN("%0a%01%FF%80"), SPAN("\n\x01\xff\x80") },
		{ URL_SEGMENT, SPAN("%252e"), SPAN("%2e") },
		{ URL_SEGMENT, SPAN("a+b"), SPAN("a+b") },
		{ URL_QUERY, SPAN("a+b%2B"), SPAN("a b+") },
		{ .in = SPAN("%") },
		{ .in = SPAN("%4") },
		{ .in = SPAN("a%") },
		{ .in = SPAN("%4g") },
		{ .in = SPAN("%g4") },
		{ .in = SPAN("%%41") },
		{ .in = SPAN("%+1") },
		{ .in = SPAN("%0x41") },
		{ .in = SPAN("%u0041") },
		{ .in = SPAN("%00") },
		{ .in = SPAN("a%00b") },
		{ .in = SPAN("a\0b") },
		{ .in = SPAN("a b") },
		{ .in = SPAN("\xff") },
		{ .in = SPAN("#") },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(freep) char *copy = mem_alloc(rows[i].in.len + 1);
		struct err e = { 0 };
		char buf[16];

		printf("# %s\n", rows[i].in.at);
		memcpy(copy, rows[i].in.at, rows[i].in.len);
		struct span in = { copy, rows[i].in.len };
		int n = url_decode(rows[i].part, in, buf, sizeof buf, &e);

		if (!rows[i].want.at) {
			CHECK_INT(n, -1);
			CHECK_INT(e.kind, ERR_INVALID);
			continue;
		}
		CHECK_INT(n, rows[i].want.len);
		CHECK(memcmp(buf, rows[i].want.at, (size_t)n + 1) == 0);
	}
}

TEST(the_buffer_counts_the_nul)
{
	struct err e = { 0 };
	char buf[4];

	CHECK_INT(url_decode(URL_SEGMENT, SPAN("abc"), buf, 4, &e), 3);
	CHECK_INT(url_decode(URL_SEGMENT, SPAN("%61%62%63"), buf, 4, &e), 3);
	CHECK_INT(url_decode(URL_SEGMENT, SPAN("abcd"), buf, 4, &e), -1);
	CHECK_INT(e.kind, ERR_LIMIT);
	CHECK_INT(url_decode(URL_SEGMENT, SPAN(""), buf, 1, &e), 0);
	CHECK_INT(url_decode(URL_SEGMENT, SPAN(""), buf, 0, &e), -1);
}

/* name=value; or name; when there is no value. Returns what the last call said. */
static int join_params(struct span query, size_t cap, struct str *out)
{
	struct url_param param;
	struct err e = { 0 };
	char buf[64];
	int r = 0;

	while ((r = url_param(&query, (struct url_buf){ buf, cap }, &param, &e)) > 0) {
		CHECK_INT(strlen(param.name), param.name_len);
		CHECK_INT(strlen(param.value), param.value_len);
		str_addf(out, "%s%s%s;", param.name, param.has_value ? "=" : "", param.value);
	}
	CHECK(r == 0 || e.kind == ERR_INVALID || e.kind == ERR_LIMIT);
	return r;
}

TEST(parameters_are_decoded_one_by_one)
{
	static const struct {
		const char *query, *want;
		int last;
	} rows[] = {
		{ "", "", 0 },
		{ "a", "a;", 0 },
		{ "a=", "a=;", 0 },
		{ "a=1&b=2", "a=1;b=2;", 0 },
		{ "a=1&a=2", "a=1;a=2;", 0 },
		{ "a=b=c", "a=b=c;", 0 },
		{ "list=&depth=2&hidden", "list=;depth=2;hidden;", 0 },
		{ "a%3Db=%26+%2b", "a=b=& +;", 0 },
		{ "a=/b?c", "a=/b?c;", 0 },
		{ "&", "", -1 },
		{ "=", "", -1 },
		{ "=a", "", -1 },
		{ "a=1&", "", -1 },
		{ "a&&b", "a;", -1 },
		{ "a=1&b=%zz", "a=1;", -1 },
		{ "%=1", "", -1 },
		{ "a=%00", "", -1 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str got = { .max = 256 };

		printf("# %s\n", rows[i].query);
		CHECK_INT(join_params(span_of(rows[i].query), 64, &got), rows[i].last);
		CHECK_STR(str_text(&got), rows[i].want);
	}
}

TEST(name_and_value_share_the_buffer)
{
	AUTO(str_done) struct str got = { .max = 256 };

	CHECK_INT(join_params(SPAN("abc=de"), 7, &got), 0);
	CHECK_INT(join_params(SPAN("abc=de"), 6, &got), -1);
	CHECK_INT(join_params(SPAN("abc=de"), 4, &got), -1);
	CHECK_INT(join_params(SPAN("abc"), 4, &got), -1);
	CHECK_STR(str_text(&got), "abc=de;");
}

TEST(any_name_of_a_file_survives)
{
	for (unsigned int c = 1; c < 256; c++) {
		AUTO(str_done) struct str s = { .max = 64 };
		char name[3] = { 'x', (char)c, 'y' };
		struct err e = { 0 };
		char buf[8];

		url_encode(name, sizeof name, &s);
		struct span in = { s.data, s.len };

		CHECK_INT(url_decode(URL_SEGMENT, in, buf, sizeof buf, &e), 3);
		CHECK(memcmp(buf, name, 3) == 0);
		CHECK_INT(url_decode(URL_QUERY, in, buf, sizeof buf, &e), 3);
		CHECK(memcmp(buf, name, 3) == 0);
	}
}

TEST(only_unreserved_bytes_are_not_escaped)
{
	AUTO(str_done) struct str s = { .max = 256 };

	url_encode("aZ09-._~ /?#%+&=;:@\xff", 20, &s);
	CHECK_STR(str_text(&s), "aZ09-._~%20%2F%3F%23%25%2B%26%3D%3B%3A%40%FF");
}
