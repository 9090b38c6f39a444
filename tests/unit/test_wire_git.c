#include "wire/git.h"

#include "test.h"

TEST(a_url_has_one_spelling)
{
	static const struct {
		const char *text, *canonical, *host;
		uint16_t port;
		const char *key;
	} rows[] = {
		{ "https://Git.Test/o/App.git", "https://git.test/o/App.git", "git.test", 443,
		  "o-App" },
		{ "https://git.test:443/app/", "https://git.test/app", "git.test", 443,
		  "git.test-app" },
		{ "https://git.test:8443/a%20b", "https://git.test:8443/a%20b", "git.test", 8443,
		  "git.test-8443-a-20b" },
		{ "file:///srv/app", "/srv/app", "", 0, "srv-app" },
		{ "/srv/a b/", "/srv/a b", "", 0, "srv-a-b" },
		{ "/", "/", "", 0, "repo" },
		{ "/.git", "/.git", "", 0, "repo" },
		{ "/x/.hidden", "/x/.hidden", "", 0, "x-.hidden" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct git_url u;
		struct err e = { 0 };
		char key[64];

		CHECK_INT(git_url_read(rows[i].text, &u, &e), 0);
		CHECK_STR(u.text, rows[i].canonical);
		CHECK_STR(u.host, rows[i].host);
		CHECK_INT(u.port, rows[i].port);
		CHECK_INT(u.is_folder, rows[i].port == 0);
		git_url_key(&u, key, sizeof key);
		CHECK_STR(key, rows[i].key);
	}
}

TEST(what_is_no_url_of_ours_is_refused)
{
	static const char *const rows[] = {
		"",
		"app",
		"./app",
		"git.test/app",
		"http://git.test/app",
		"git://git.test/app",
		"ssh://git.test/app",
		"git@git.test:app",
		"ext::sh -c id",
		"fd::3",
		"ext::/x",
		"https://",
		"https:///app",
		"https://git.test",
		"https://git.test/",
		"https://git.test//",
		"https://user@git.test/app",
		"https://u:p@git.test/app",
		"https://git.test/app?x=1",
		"https://git.test/app#x",
		"https://git.test/a b",
		"https://git.test/a\nb",
		"https://git.test/../app",
		"https://git.test/app/..",
		"https://git.test:0/app",
		"https://git.test:65536/app",
		"https://git.test:/app",
		"https://git.test:4x/app",
		"https://-o/app",
		"https://127.0.0.1/app",
		"https://[::1]/app",
		"https://0x7f.1/app",
		"file://host/app",
		"file:/app",
		"/a/../b",
		"/a\x1b[31m",
		"/a\xff",
		"https://git.test/\xc3\xa4",
		"--upload-pack=x",
		"transport::https://git.test/app",
		"HTTPS://git.test/app",
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct git_url u;
		struct err e = { 0 };

		if (git_url_read(rows[i], &u, &e) == 0)
			CHECK_STR(rows[i], "refused");
		CHECK(strncmp(e.msg, "url: ", 5) == 0);
	}
}

TEST(a_name_is_what_git_takes_and_no_option)
{
	static const char *const good[] = { "main",         "v1.0",  "feature/a-b",
		                            "refs/heads/x", "@x",    "a@b",
		                            "\xc3\xa4",     "a.b/c", "x-" };
	static const char *const bad[] = {
		"",
		"-x",
		"--upload-pack=x",
		"a..b",
		"a b",
		"a\tb",
		"a~1",
		"a^",
		"a:b",
		"a?",
		"a*",
		"a[",
		"a\\b",
		"a@{1}",
		"@",
		"/a",
		"a/",
		"a//b",
		".a",
		"a/.b",
		"a.",
		"a.lock",
		"a.lock/b",
		"a\nb",
		"a\x7f",
		"a\x1b",
		"\xff",
		"refs/heads/../x",
	};

	for (size_t i = 0; i < COUNT(good); i++)
		if (!git_ref_is(good[i]))
			CHECK_STR(good[i], "taken");
	for (size_t i = 0; i < COUNT(bad); i++)
		if (git_ref_is(bad[i]))
			CHECK_STR(bad[i], "refused");
}

TEST(a_pattern_is_below_refs_and_has_one_star)
{
	static const char *const good[] = { "refs/heads/*", "refs/tags/v1", "refs/pull/*/head" };
	static const char *const bad[] = { "heads/*",        "refs/*/*",      "*",
		                           "refs/heads/a*",  "refs/*b",       "+refs/heads/*",
		                           "refs/heads/*:x", "^refs/heads/*", "refs/" };

	for (size_t i = 0; i < COUNT(good); i++)
		CHECK(git_pattern_is(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		if (git_pattern_is(bad[i]))
			CHECK_STR(bad[i], "refused");
}

TEST(a_commit_and_an_author)
{
	CHECK(git_sha_is("4218351a097c12dae651700e2ffb4319b1a6e234", 40));
	CHECK(!git_sha_is("4218351A097c12dae651700e2ffb4319b1a6e234", 40));
	CHECK(!git_sha_is("4218351a", 8));
	CHECK(git_person_is("A. Nobody"));
	CHECK(git_person_is("\xd0\x98"));
	CHECK(!git_person_is(""));
	CHECK(!git_person_is("a <b>"));
	CHECK(!git_person_is("a\nb"));
	CHECK(!git_person_is(" ."));
}
