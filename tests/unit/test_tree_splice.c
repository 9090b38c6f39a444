#include "tree/splice.h"

#include "test.h"
#include "tree/diff.h"
#include "tree/fail.h"

TEST(an_edit_changes_its_bytes_and_no_others)
{
	static const struct {
		const char *text, *from, *to, *result;
		int replaced;
		bool all, by_eol;
	} cases[] = {
		{ "abc", "b", "X", "aXc", 1, false, false },
		{ "abc", "abc", "", "", 1, false, false },
		{ "aXbXc", "X", "--", "a--b--c", 2, true, false },
		{ "aaaa", "aa", "b", "bb", 2, true, false },
		/* exact, whatever the line ends */
		{ "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n", 1, false, false },
		/* line ends differ: found, and the file's are kept */
		{ "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n", 1, false,
		  true },
		{ "a\nb\nc\n", "a\r\nb\r\n", "x\r\n", "x\nc\n", 1, false, true },
		{ "a\r\nb\r\n", "b\n", "c\n", "a\r\nc\r\n", 1, false, true },
		{ "\r\na\r\n", "\na", "\nb", "\r\nb\r\n", 1, false, true },
		/* one line becomes two in a file that has CRLF throughout */
		{ "a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n", 1, false, false },
		{ "a\r\nb\n", "a", "x\ny", "x\ny\r\nb\n", 1, false, false },
		/* who writes carriage returns means them */
		{ "a\r\nb\r\n", "a", "x\r\ny", "x\r\ny\r\nb\r\n", 1, false, false },
		/* the byte order mark is no part of any line */
		{ "\xef\xbb\xbf"
		  "a\n",
		  "a", "b",
		  "\xef\xbb\xbf"
		  "b\n",
		  1, false, false },
		{ "\xff\xfe"
		  "a",
		  "a", "b",
		  "\xff\xfe"
		  "b",
		  1, false, false },
		{ "x\r\n1\r\nx\r\n2\r\n", "x\n", "y\n", "y\r\n1\r\ny\r\n2\r\n", 2, true, true },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct splice_edit edit = { span_of(cases[i].from), span_of(cases[i].to),
			                          cases[i].all };
		AUTO(str_done) struct str out = { .max = 1000 };
		struct splice_result result = { 0 };
		struct err e = { 0 };

		CHECK_INT(splice_text(span_of(cases[i].text), &edit, &out, &result, &e), 0);
		CHECK_STR(str_text(&out), cases[i].result);
		CHECK_INT((long long)result.replaced, cases[i].replaced);
		CHECK_INT(result.by_eol, cases[i].by_eol);
	}
}

TEST(an_edit_that_is_not_clear_says_where)
{
	static const struct {
		const char *text, *from;
		bool all;
		enum tree_code code;
		size_t n, lines[3];
	} cases[] = {
		{ "a\nb\na\n", "a", false, TREE_AMBIGUOUS_MATCH, 2, { 1, 3 } },
		{ "aaa", "aa", false, TREE_AMBIGUOUS_MATCH, 2, { 1, 1 } },
		{ "x\r\n\r\nx\r\n", "x\n", false, TREE_AMBIGUOUS_MATCH, 2, { 1, 3 } },
		{ "abc", "z", false, TREE_NO_MATCH, 0, { 0 } },
		{ "abc", "z", true, TREE_NO_MATCH, 0, { 0 } },
		{ "a\n\tfoo();\nb\n  foo();\n",
		  "    foo();\n    bar();\n",
		  false,
		  TREE_NO_MATCH,
		  2,
		  { 2, 4 } },
		{ "", "x", false, TREE_NO_MATCH, 0, { 0 } },
		{ "abc", "", false, TREE_INVALID, 0, { 0 } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct splice_edit edit = { span_of(cases[i].from), span_of("new"),
			                          cases[i].all };
		AUTO(str_done) struct str out = { .max = 1000 };
		struct splice_result result = { 0 };
		struct err e = { 0 };

		CHECK_INT(splice_text(span_of(cases[i].text), &edit, &out, &result, &e), -1);
		CHECK_STR(tree_code_name(fail_code(&e)), tree_code_name(cases[i].code));
		CHECK_INT((long long)result.n_lines, (long long)cases[i].n);
		for (size_t j = 0; j < cases[i].n; j++)
			CHECK_INT((long long)result.lines[j], (long long)cases[i].lines[j]);
	}
}

TEST(lines_are_put_in_behind_a_line)
{
	static const struct {
		const char *text;
		size_t line;
		const char *lines, *result; /* NULL: refused */
	} cases[] = {
		{ "a\nb\n", 0, "x\n", "x\na\nb\n" },
		{ "a\nb\n", 1, "x", "a\nx\nb\n" },
		{ "a\nb\n", 2, "x\ny\n", "a\nb\nx\ny\n" },
		{ "a\nb", 2, "x", "a\nb\nx\n" },
		{ "a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n" },
		{ "a\r\nb", 2, "x", "a\r\nb\r\nx\r\n" },
		{ "\xef\xbb\xbf"
		  "a\n",
		  0, "x",
		  "\xef\xbb\xbf"
		  "x\na\n" },
		{ "", 0, "x", "x\n" },
		{ "a\n", 2, "x", NULL },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str out = { .max = 1000 };
		struct err e = { 0 };
		int r = splice_lines(span_of(cases[i].text), cases[i].line, span_of(cases[i].lines),
		                     &out, &e);

		CHECK_INT(r, cases[i].result ? 0 : -1);
		if (cases[i].result)
			CHECK_STR(str_text(&out), cases[i].result);
	}
}

TEST(a_diff_shows_the_change_and_three_lines_around)
{
	static const struct {
		const char *before, *after, *diff;
	} cases[] = {
		{ "a\n", "a\n", "" },
		{ "a\n", "b\n", "@@ -1,1 +1,1 @@\n-a\n+b\n" },
		{ "", "a\n", "@@ -0,0 +1,1 @@\n+a\n" },
		{ "a\n", "", "@@ -1,1 +0,0 @@\n-a\n" },
		{ "a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n" },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n",
		  "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n" },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n",
		  "X\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nY\n",
		  "@@ -1,4 +1,4 @@\n-1\n+X\n 2\n 3\n 4\n"
		  "@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+Y\n" },
		{ "a\nb\nc\n", "a\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c\n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str out = { .max = 10000 };

		CHECK(diff_add(span_of(cases[i].before), span_of(cases[i].after), &out));
		CHECK_STR(str_text(&out), cases[i].diff);
	}
}
