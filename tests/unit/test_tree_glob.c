#include "tree/glob.h"

#include "test.h"
#include "tree/ignore.h"

TEST(globs_match_as_a_shell_would)
{
	static const struct {
		const char *pattern, *path;
		bool is;
	} cases[] = {
		{ "a", "a", true },
		{ "a", "b", false },
		{ "*", "abc", true },
		{ "*", "a/b", false },
		{ "*.c", "x.c", true },
		{ "*.c", "x.h", false },
		{ "*.c", "d/x.c", false },
		{ "**/*.c", "x.c", true },
		{ "**/*.c", "d/e/x.c", true },
		{ "src/**/*.c", "src/x.c", true },
		{ "src/**/*.c", "src/a/b/x.c", true },
		{ "src/**/*.c", "srcx/x.c", false },
		{ "src/**", "src", false },
		{ "src/**", "src/a/b", true },
		{ "**", "a/b/c", true },
		{ "**/b/**", "a/b/c", true },
		{ "**/b/**", "b/c", true },
		{ "**/b/**", "a/c", false },
		{ "a**b", "axxb", true },
		{ "a**b", "a/b", false },
		{ "?", "x", true },
		{ "?", "/", false },
		{ "?", "\xc3\xa4", true },
		{ "??", "\xc3\xa4", false },
		{ "?", "\xff", true },
		{ "[abc]", "b", true },
		{ "[!abc]", "b", false },
		{ "[^abc]", "d", true },
		{ "[a-c]x", "bx", true },
		{ "[]]", "]", true },
		{ "[a-]", "-", true },
		{ "[", "[", true },
		{ "[a", "[a", true },
		{ "[!a]", "/", false },
		{ "\\*", "*", true },
		{ "\\*", "x", false },
		{ "a*b*c", "aXbYc", true },
		{ "a*b*c", "aXcYb", false },
		{ "*a", "aaaaaaaaaaaaaaaaaaaaaaaab", false },
		{ "**/a/**/b/**/c", "a/x/b/y/z/c", true },
		{ "**/x/*.c", "x/x/y/x/a.c", true },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (glob_matches(span_of(cases[i].pattern), span_of(cases[i].path)) != cases[i].is)
			printf("# %s on %s\n", cases[i].pattern, cases[i].path);
		CHECK_INT(glob_matches(span_of(cases[i].pattern), span_of(cases[i].path)),
		          cases[i].is);
	}
}

TEST(braces_unfold_within_reason)
{
	static const struct {
		const char *pattern;
		int n; /* -1: refused */
		const char *path;
	} cases[] = {
		{ "{a,b}", 2, "b" },
		{ "x{a,b}y", 2, "xay" },
		{ "{a,{b,c}d}", 3, "cd" },
		{ "{a,b}{c,d}", 4, "bd" },
		{ "{a,}", 2, "a" },
		{ "{a}", 1, "{a}" },
		{ "{a", 1, "{a" },
		{ "\\{a,b}", 1, "{a,b}" },
		{ "{a\\,b,c}", 2, "a,b" },
		{ "**/*.{c,h}", 2, "src/x.h" },
		{ "{0,1}{0,1}{0,1}{0,1}{0,1}{0,1}", 64, "010101" },
		{ "{0,1}{0,1}{0,1}{0,1}{0,1}{0,1}{0,1}", -1, NULL },
		{ "", -1, NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(globs_done) struct globs g = { 0 };
		AUTO(arena_done) struct arena arena = { 0 };
		struct err e;
		int r = globs_add(&g, span_of(cases[i].pattern), &arena, &e);

		CHECK_INT(r < 0 ? -1 : (int)g.at.len, cases[i].n);
		if (cases[i].path)
			CHECK(globs_match(&g, span_of(cases[i].path)));
	}
}

TEST(stars_do_not_blow_up)
{
	char pattern[200], path[4001];

	memset(path, 'a', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[sizeof pattern - 1] = 'b';
	CHECK(!glob_matches((struct span){ pattern, sizeof pattern }, span_of(path)));
	for (size_t i = 0; i < sizeof path - 1; i += 2)
		path[i] = '/';
	CHECK(!glob_matches(span_of("**/a/**/a/**/a/**/a/**/a/**/b"), span_of(path + 1)));
}

TEST(gitignore_hides_what_git_would)
{
	static const char rules[] = "# comment\n"
				    "*.o\n"
				    "!keep.o\n"
				    "/top\n"
				    "build/\n"
				    "doc/*.txt\n"
				    "**/cache\n"
				    "trailing   \n"
				    "\\#hash\n"
				    "a/**/z\r\n";
	static const struct {
		const char *path;
		bool is_dir, is;
	} cases[] = {
		{ "x.o", false, true },          { "d/x.o", false, true },
		{ "keep.o", false, false },      { "d/keep.o", false, false },
		{ "top", false, true },          { "d/top", false, false },
		{ "build", true, true },         { "build", false, false },
		{ "d/build", true, true },       { "doc/a.txt", false, true },
		{ "doc/b/a.txt", false, false }, { "d/doc/a.txt", false, false },
		{ "x/cache", true, true },       { "trailing", false, true },
		{ "#hash", false, true },        { "a/z", false, true },
		{ "a/b/c/z", false, true },      { "other", false, false },
	};
	AUTO(ignore_done) struct ignore ig;

	ignore_init(&ig, -1, "");
	ignore_push_text(&ig, span_of(rules), "");
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (ignore_has(&ig, cases[i].path, cases[i].is_dir) != cases[i].is)
			printf("# %s\n", cases[i].path);
		CHECK_INT(ignore_has(&ig, cases[i].path, cases[i].is_dir), cases[i].is);
	}
	/* Rules of a directory below win, and end with it. */
	ignore_push_text(&ig, span_of("!*.o\n/only\n"), "d");
	CHECK(!ignore_has(&ig, "d/x.o", false));
	CHECK(ignore_has(&ig, "d/only", false));
	CHECK(!ignore_has(&ig, "d/e/only", false));
	ignore_pop(&ig);
	CHECK(ignore_has(&ig, "d/x.o", false));
}
