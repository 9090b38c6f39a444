#include "wire/weburl.h"

#include "test.h"

static const struct {
	const char *base, *ref, *want; /* NULL: it says nothing */
} rows[] = {
	{ "https://a.test/", "b", "https://a.test/b" },
	{ "https://a.test/simple/p/", "p-1.whl", "https://a.test/simple/p/p-1.whl" },
	{ "https://a.test/simple/p/", "../../f/p-1.whl", "https://a.test/f/p-1.whl" },
	{ "https://a.test/simple/p/", "../../../../f", "https://a.test/f" },
	{ "https://a.test/simple/p/", "./f#sha256=00", "https://a.test/simple/p/f" },
	{ "https://a.test/x/y", "/f", "https://a.test/f" },
	{ "https://a.test/x/y", "f", "https://a.test/x/f" },
	{ "https://a.test:8443/x", "/f", "https://a.test:8443/f" },
	{ "http://a.test/x", "//B.test/f", "http://b.test/f" },
	{ "https://a.test/x", "HTTP://b.test:80/f", "http://b.test/f" },
	{ "https://a.test/x", "https://b.test:443/f", "https://b.test/f" },
	{ "https://a.test/x", "https://b.test", "https://b.test/" },
	{ "https://a.test/x", "/a/%2B%61", "https://a.test/a/%2Ba" },
	{ "https://a.test/x", "..", "https://a.test/" },
	{ "https://a.test/x/y/", ".", "https://a.test/x/y/" },
	{ "https://a.test/", "", NULL },
	{ "https://a.test/", "#f", NULL },
	{ "https://a.test/", "f?x", NULL },
	{ "https://a.test/", "ftp://b.test/f", NULL },
	{ "https://a.test/", "javascript:x", NULL },
	{ "https://a.test/", "https://u@b.test/f", NULL },
	{ "https://a.test/", "https://127.0.0.1/f", NULL },
	{ "https://a.test/", "https://[::1]/f", NULL },
	{ "https://a.test/", "https:///f", NULL },
	{ "https://a.test/", "/a//b", NULL },
	{ "https://a.test/", "/a%2fb", NULL },
	{ "https://a.test/", "/a%2e%2e/b", NULL },
	{ "https://a.test/", "/a\\b", NULL },
};

TEST(one_spelling_or_none)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str text = { .max = WEBURL_TEXT_MAX };
		struct weburl base, out;
		const char *want = rows[i].want;

		CHECK(weburl_read(span_of(rows[i].base), &base) == 0);
		test_true((weburl_resolve(&base, span_of(rows[i].ref), &out) == 0) == !!want,
		          rows[i].ref, __FILE__, __LINE__);
		if (!want)
			continue;
		weburl_print(&out, &text);
		CHECK_STR(str_text(&text), want);
	}
}

TEST(whole_ones_only)
{
	struct weburl u;

	CHECK(weburl_read(span_of("/a"), &u) < 0);
	CHECK(weburl_read(span_of("//a.test/a"), &u) < 0);
	CHECK(weburl_read(span_of("https://"), &u) < 0);
}

TEST(escapes_make_no_difference_to_a_key)
{
	static const char *const same[] = { "https://a.test/a%2Bb/@c", "https://a.test/a+b/%40c",
		                            "https://a.test:443/%61+b/@c" };

	for (size_t i = 0; i < COUNT(same); i++) {
		AUTO(str_done) struct str key = { .max = WEBURL_TEXT_MAX };
		struct weburl u;

		CHECK(weburl_read(span_of(same[i]), &u) == 0);
		weburl_key(&u, &key);
		CHECK_STR(str_text(&key), "https://a.test/a%2Bb/%40c");
	}
}
