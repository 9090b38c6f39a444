#include "wire/pkgmeta.h"

#include "test.h"

#define H1 "1111111111111111111111111111111111111111111111111111111111111111"
#define H2 "2222222222222222222222222222222222222222222222222222222222222222"
#define B512                                                                                       \
	"EREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREQ=="
#define JSON_TYPE "application/vnd.pypi.simple.v1+json"

static void note(void *arg, const struct weburl *url, const struct digest *d)
{
	AUTO(str_done) struct str text = { .max = WEBURL_TEXT_MAX };
	char digest[DIGEST_TEXT_SIZE];

	weburl_print(url, &text);
	digest_print(d, digest);
	str_addf(arg, "%s %.11s\n", str_text(&text), digest);
}

static const struct {
	enum pkg_kind kind;
	const char *at, *type, *dl, *text, *want; /* NULL: malformed */
} rows[] = {
	/* pip, HTML */
	{ PKG_PIP, "https://i.test/simple/p/", "text/html", NULL,
	  "<!DOCTYPE html><a href=\"p-1.whl#sha256=" H1 "\">p</a><A HREF='/f/p-2.whl#sha256=" H2
	  "' >",
	  "https://i.test/simple/p/p-1.whl sha256-1111\nhttps://i.test/f/p-2.whl sha256-2222\n" },
	{ PKG_PIP, "https://i.test/simple/p/", "text/html; charset=utf-8", NULL,
	  "<a data-core-metadata=\"sha256=" H2 "\" href=https://f.test/p.whl#sha256=" H1 ">",
	  "https://f.test/p.whl sha256-1111\nhttps://f.test/p.whl.metadata sha256-2222\n" },
	{ PKG_PIP, "https://i.test/simple/p/", "text/html", NULL,
	  "<base href=\"https://f.test/x/\"><a href=\"p.whl#sha256=" H1 "\">",
	  "https://f.test/x/p.whl sha256-1111\n" },
	{ PKG_PIP, "https://i.test/simple/p/", "text/html", NULL,
	  "<a href=\"p&#43;1&amp;2.whl#sha256=" H1 "\"><!-- <a href=\"x#sha256=" H1 "\"> -->"
	  "<a href=\"q.whl\"><a href=\"r.whl#md5=00\"><a href=\"s.whl?x#sha256=" H1 "\">"
	  "<abbr href=\"t#sha256=" H1 "\"><a href=\"u.whl#sha256=11\">",
	  "https://i.test/simple/p/p+1&2.whl sha256-1111\n" },
	{ PKG_PIP, "https://i.test/s/", "text/html", NULL, "<a href=\"x#sha256=" H1,
	  "https://i.test/s/x sha256-1111\n" },
	{ PKG_PIP, "https://i.test/s/", "text/html", NULL, "<", "" },
	{ PKG_PIP, "https://i.test/s/", "text/html", NULL, "<a", "" },
	{ PKG_PIP, "https://i.test/s/", "text/html", NULL, "<!--", "" },
	/* pip, JSON */
	{ PKG_PIP, "https://i.test/simple/p/", JSON_TYPE, NULL,
	  "{\"name\":\"p\",\"files\":[{\"url\":\"../p.whl\",\"hashes\":{\"sha256\":\"" H1 "\"},"
	  "\"core-metadata\":{\"sha256\":\"" H2 "\"}},{\"hashes\":{\"sha256\":\"" H1 "\"}},"
	  "{\"url\":\"q\",\"hashes\":{\"md5\":\"00\"},\"core-metadata\":true}]}",
	  "https://i.test/simple/p.whl sha256-1111\nhttps://i.test/simple/p.whl.metadata "
	  "sha256-2222\n" },
	{ PKG_PIP, "https://i.test/simple/p/", JSON_TYPE, NULL, "{\"files\":[", NULL },
	/* npm */
	{ PKG_NPM, "https://n.test/p", "application/json", NULL,
	  "{\"name\":\"p\",\"versions\":{\"1.0.0\":{\"dist\":{\"shasum\":\"00\",\"tarball\":"
	  "\"https:\\/\\/n.test\\/p\\/-\\/p-1.0.0.tgz\",\"integrity\":\"sha1-xx sha512-" B512
	  "\"}},"
	  "\"0.9.0\":{\"dist\":{\"tarball\":\"https://n.test/old.tgz\",\"shasum\":\"00\"}},"
	  "\"2.0.0\":{\"dist\":{\"tarball\":\"https://c.test/p.tgz\",\"integrity\":\"sha512-" B512
	  "?x\",\"signatures\":[{\"sig\":\"s\"}]}}}}",
	  "https://n.test/p/-/p-1.0.0.tgz sha512-1111\nhttps://c.test/p.tgz sha512-1111\n" },
	{ PKG_NPM, "https://n.test/p/1.0.0", "application/json", NULL,
	  "{\"dist\":{\"tarball\":\"https://n.test/p.tgz\",\"integrity\":\"sha512-" B512 "\"}}",
	  "https://n.test/p.tgz sha512-1111\n" },
	{ PKG_NPM, "https://n.test/p", "application/json", NULL, "[", NULL },
	/* cargo */
	{ PKG_CARGO, "https://c.test/i/se/rd/serde", "text/plain", "https://d.test/crates",
	  "{\"name\":\"serde\",\"vers\":\"1.0.0\",\"cksum\":\"" H1
	  "\",\"deps\":[{\"name\":\"x\"}]}\n"
	  "{\"name\":\"serde\",\"vers\":\"1.0.1\",\"cksum\":\"" H2 "\"}\n",
	  "https://d.test/crates/serde/1.0.0/download sha256-1111\n"
	  "https://d.test/crates/serde/1.0.1/download sha256-2222\n" },
	{ PKG_CARGO, "https://c.test/3/a/abc", "text/plain",
	  "https://d.test/{crate}-{version}.crate",
	  "{\"name\":\"abc\",\"vers\":\"1.0.0\",\"cksum\":\"" H1 "\"}",
	  "https://d.test/abc-1.0.0.crate sha256-1111\n" },
	{ PKG_CARGO, "https://c.test/3/a/abc", "text/plain", NULL, "{\"name\":\"abc\"}", "" },
	{ PKG_CARGO, "https://c.test/3/a/abc", "text/plain", "https://d.test", "{\"name\"", NULL },
};

TEST(who_claims_what)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 1u << 16 };
		struct weburl at;

		CHECK(weburl_read(span_of(rows[i].at), &at) == 0);
		struct pkg_page page = { .kind = rows[i].kind,
			                 .text = span_of(rows[i].text),
			                 .type = span_of(rows[i].type),
			                 .at = &at,
			                 .dl = rows[i].dl };

		test_true((pkg_read(&page, note, &out) == 0) == !!rows[i].want, rows[i].text,
		          __FILE__, __LINE__);
		if (rows[i].want)
			CHECK_STR(str_text(&out), rows[i].want);
	}
}

TEST(targets_in_one_spelling)
{
	static const struct {
		enum pkg_kind kind;
		const char *target, *want;
	} targets[] = {
		{ PKG_PIP, "/simple/%70/", "/simple/p/" },
		{ PKG_PIP, "/simple/p/?x", NULL },
		{ PKG_PIP, "/simple/a%2fb/", NULL },
		{ PKG_PIP, "/simple/../b/", NULL },
		{ PKG_NPM, "/p", "/p" },
		{ PKG_NPM, "/@scope%2fname", "/@scope%2fname" },
		{ PKG_NPM, "/@scope%2Fname", "/@scope%2fname" },
		{ PKG_NPM, "/npm/@s%2fn", "/npm/@s%2fn" },
		{ PKG_NPM, "/scope%2fname", NULL },
		{ PKG_NPM, "/@scope%2f", NULL },
		{ PKG_NPM, "/@scope%2f..", NULL },
		{ PKG_NPM, "/@a%2fb%2fc", NULL },
		{ PKG_NPM, "/@a%2fb/c", NULL },
		{ PKG_NPM, "/@%2fb", NULL },
		{ PKG_NPM, "", NULL },
	};

	for (size_t i = 0; i < COUNT(targets); i++) {
		char out[WEBURL_PATH_SIZE];
		int r = pkg_target(targets[i].kind, span_of(targets[i].target), out);

		test_true((r == 0) == !!targets[i].want, targets[i].target, __FILE__, __LINE__);
		if (r == 0)
			CHECK_STR(out, targets[i].want);
	}
}

TEST(what_is_an_index)
{
	static const struct {
		const char *path;
		enum pkg_kind kind;
		bool is_index;
	} paths[] = {
		{ "/simple/p/", PKG_PIP, true },
		{ "/f/p-1.whl", PKG_PIP, false },
		{ "/p", PKG_NPM, true },
		{ "/@s%2fn", PKG_NPM, true },
		{ "/p/-/p-1.0.0.tgz", PKG_NPM, false },
		{ "/p-1.0.0.tgz", PKG_NPM, false },
		{ "/-/npm/v1/security", PKG_NPM, false },
		{ "/", PKG_NPM, false },
		{ "/config.json", PKG_CARGO, true },
		{ "/1/a", PKG_CARGO, true },
		{ "/index/ab/cd/abcd", PKG_CARGO, true },
		{ "/ab/ce/abcd", PKG_CARGO, false },
		{ "/crates/a/1.0.0/download", PKG_CARGO, false },
		{ "/", PKG_NONE, false },
	};

	for (size_t i = 0; i < COUNT(paths); i++)
		test_true(pkg_is_index(paths[i].kind, paths[i].path) == paths[i].is_index,
		          paths[i].path, __FILE__, __LINE__);
}

TEST(few_spellings_of_accept)
{
	const char *rich = pkg_accept(PKG_PIP, span_of("x, " JSON_TYPE ";q=0.3"));

	CHECK(rich == pkg_accept(PKG_PIP, span_of(JSON_TYPE)));
	CHECK_STR(pkg_accept(PKG_PIP, span_of("*/*")), "text/html");
	CHECK_STR(pkg_accept(PKG_PIP, (struct span){ 0 }), "text/html");
	CHECK_STR(pkg_accept(PKG_NPM, span_of("application/json")), "application/json");
	CHECK(pkg_is_index_type(PKG_PIP, span_of("Text/HTML; charset=x")));
	CHECK(!pkg_is_index_type(PKG_PIP, span_of("application/zip")));
	CHECK(!pkg_is_index_type(PKG_NPM, span_of("text/html")));
	CHECK(pkg_is_index_type(PKG_CARGO, span_of("")));
}

TEST(digests_as_text)
{
	struct digest d, again;
	char text[DIGEST_TEXT_SIZE];

	CHECK(digest_read("sha256-" H1, &d));
	digest_print(&d, text);
	CHECK_STR(text, "sha256-" H1);
	CHECK(digest_read(text, &again) && digest_is_same(&d, &again));
	CHECK(digest_read("sha256-" H2, &again) && !digest_is_same(&d, &again));
	CHECK(!digest_read("sha1-1111", &d) && !digest_read("sha256-", &d) && !digest_read("", &d));
}

TEST(where_a_cargo_index_says_its_files_are)
{
	char dl[WEBURL_PATH_SIZE];
	struct weburl at, config;

	CHECK(weburl_read(span_of("https://c.test/i/se/rd/serde"), &at) == 0);
	CHECK(pkg_cargo_config(&at, &config) == 0);
	CHECK_STR(config.path, "/i/config.json");
	CHECK(pkg_cargo_config(&config, &at) < 0);
	CHECK(pkg_cargo_dl(span_of("{\"dl\":\"https://d.test/\",\"api\":\"x\"}"), dl) == 0);
	CHECK_STR(dl, "https://d.test/");
	CHECK(pkg_cargo_dl(span_of("{\"api\":\"x\"}"), dl) < 0);
	CHECK(pkg_cargo_dl(span_of("{"), dl) < 0);
}
