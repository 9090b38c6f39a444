#include "wire/target.h"

#include "test.h"

static const struct row {
	const char *target, *want; /* NULL: refused */
} rows[] = {
	{ "/", "/" },
	{ "/a/b", "/a/b" },
	{ "/a/b/", "/a/b/" },
	{ "/a?b=../c//d%2f", "/a" },
	{ "/a?b?c", "/a" },
	{ "/?", "/" },
	{ "/%61%5A%30%2d%5f%7e", "/aZ0-_~" },
	{ "/a%20b", "/a%20b" },
	{ "/%c3%bc%3a", "/%C3%BC%3A" },
	{ "/a:b@c;d=e,f!$&'()*+", "/a:b@c;d=e,f!$&'()*+" },
	{ "/[1]", "/[1]" },
	{ "/...", "/..." },
	{ "/.a/..b/c..", "/.a/..b/c.." },
	{ "/.git;x", "/.git;x" },
	{ "/100%25", "/100%25" },
	{ "/100%25/a", "/100%25/a" },
	{ "/100%25g1", "/100%25g1" },
	{ "/%ef%bf%bd", "/%EF%BF%BD" },
	/* forms */
	{ "", NULL },
	{ "*", NULL },
	{ "a", NULL },
	{ "?a", NULL },
	{ "http://example.org/", NULL },
	{ "example.org:443", NULL },
	/* dot segments */
	{ "/.", NULL },
	{ "/..", NULL },
	{ "/./a", NULL },
	{ "/../a", NULL },
	{ "/a/.", NULL },
	{ "/a/..", NULL },
	{ "/a/../b", NULL },
	{ "/a/..?x", NULL },
	{ "/a/..;/b", NULL },
	{ "/a/.;x=1/b", NULL },
	{ "/a/..;x", NULL },
	{ "/a/%2e%2e/b", NULL },
	/* dots once they are decoded, and cut */
	{ "/a/..%3b/b", NULL },
	{ "/a/..%3Bx=1/b", NULL },
	{ "/a/.%3b", NULL },
	{ "/a/..%20", NULL },
	{ "/a/..%20/b", NULL },
	{ "/a/%20../b", NULL },
	{ "/a/.%20./b", NULL },
	{ "/a/..%c2%a0/b", NULL },
	{ "/a/..%c2%ad;x/b", NULL },
	{ "/a/..%e2%80%8b/b", NULL },
	{ "/a/.%e2%81%a0./b", NULL },
	{ "/a/..%e3%80%80/b", NULL },
	{ "/a/..%ef%bb%bf", NULL },
	{ "/a/..%f3%a0%81%81/b", NULL },
	{ "/a/%ef%bc%8e%ef%bc%8e/b", NULL },
	{ "/a/.%EF%BC%8E/b", NULL },
	{ "/a/%e2%80%a4%e2%80%a4/b", NULL },
	{ "/a%ef%bc%8fb", NULL },
	{ "/a%e2%88%95b", NULL },
	/* and what is none */
	{ "/a/..%20x", "/a/..%20x" },
	{ "/a/%20/b", "/a/%20/b" },
	{ "/a/..%c3%bc", "/a/..%C3%BC" },
	{ "/a/x%3b..", "/a/x%3B.." },
	{ "/a/...%20", "/a/...%20" },
	{ "/%f0%9f%98%80", "/%F0%9F%98%80" },
	{ "/a/%2E./b", NULL },
	{ "/a/.%2e/b", NULL },
	{ "/a%2eb", NULL },
	/* slashes */
	{ "//", NULL },
	{ "//example.org/a", NULL },
	{ "/a//b", NULL },
	{ "/a//", NULL },
	{ "/a%2fb", NULL },
	{ "/a%2Fb", NULL },
	{ "/a\\b", NULL },
	{ "/a%5cb", NULL },
	{ "/a%5C..%5Cb", NULL },
	/* escapes */
	{ "/%", NULL },
	{ "/%4", NULL },
	{ "/%zz", NULL },
	{ "/%4z", NULL },
	{ "/a%00b", NULL },
	{ "/a%0ab", NULL },
	{ "/a%0d%0ab", NULL },
	{ "/a%1fb", NULL },
	{ "/a%7fb", NULL },
	{ "/%252e%252e/b", NULL },
	{ "/%252f", NULL },
	{ "/%25%32%65", NULL },
	{ "/%252%65", NULL },
	/* bytes */
	{ "/a b", NULL },
	{ "/a\tb", NULL },
	{ "/a#b", NULL },
	{ "/a?b#c", NULL },
	{ "/\"", NULL },
	{ "/<a>", NULL },
	{ "/{a}", NULL },
	{ "/b\xc3\xbc", NULL },
	{ "/a?\xc3\xbc", NULL },
	{ "/\x7f", NULL },
	/* UTF-8: overlong dot and slash, a surrogate, cut, alone */
	{ "/%c0%ae%c0%ae/b", NULL },
	{ "/%c0%af", NULL },
	{ "/%e0%80%af", NULL },
	{ "/%f0%80%80%af", NULL },
	{ "/%ed%a0%80", NULL },
	{ "/%c3", NULL },
	{ "/%c3/%bc", NULL },
	{ "/%bc", NULL },
	{ "/%ff", NULL },
};

TEST(one_meaning_or_none)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };
		char want[256];

		printf("# %s\n", rows[i].target);
		snprintf(want, sizeof want, "before%s", rows[i].want ? rows[i].want : "");
		str_add(&out, "before");
		int r = http_target_normal(span_of(rows[i].target), &out);

		CHECK_INT(r, rows[i].want ? 0 : -1);
		CHECK_STR(str_text(&out), want);
	}
}

TEST(a_nul_is_refused_and_room_is_bounded)
{
	AUTO(str_done) struct str out = { .max = 4 };

	CHECK_INT(http_target_normal((struct span){ "/a\0b", 4 }, &out), -1);
	CHECK_INT(http_target_normal(span_of("/abc"), &out), 0);
	str_clear(&out);
	CHECK_INT(http_target_normal(span_of("/abcd"), &out), -1);
}

/* Normal once is normal for good. */
TEST(normal_stays_normal)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 4096 };

		if (!rows[i].want)
			continue;
		CHECK_INT(http_target_normal(span_of(rows[i].want), &out), 0);
		CHECK_STR(str_text(&out), rows[i].want);
	}
}

TEST(paths_as_people_write_them)
{
	AUTO(str_done) struct str out = { .max = 4096 };

	http_target_escape("/b\xc3\xbc"
	                   "cher/*/**/{x}|^",
	                   &out);
	CHECK_STR(str_text(&out), "/b%C3%BCcher/*/**/%7Bx%7D%7C%5E");
}
