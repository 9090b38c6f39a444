#include "tree/patchtext.h"

#include "test.h"
#include "tree/diff.h"
#include "tree/fail.h"

static enum tree_code apply(const char *text, const char *patch, struct str *out, struct err *e)
{
	AUTO(hunks_done) struct hunks hunks = { 0 };
	struct hunk_result result = { 0 };

	*e = (struct err){ 0 };
	if (patch_parse_hunks(&hunks, span_of(patch), e) < 0 ||
	    hunks_apply(span_of(text), &hunks, out, &result, e) < 0)
		return fail_code(e);
	return TREE_OK;
}

TEST(hunks_apply_where_their_lines_are)
{
	static const struct {
		const char *text, *patch, *result; /* NULL: refused */
		enum tree_code code;
	} cases[] = {
		{ "a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+X\n c\n", "a\nX\nc\n", TREE_OK },
		{ "a\nb\nc\n", "@@ -2 +2 @@\n-b\n+X\n", "a\nX\nc\n", TREE_OK },
		/* elsewhere, but only there */
		{ "1\n2\na\nb\n", "@@ -1,2 +1,1 @@\n a\n-b\n", "1\n2\na\n", TREE_OK },
		{ "b\nx\nb\nx\nb\n", "@@ -2,1 +2,0 @@\n-b\n", NULL, TREE_AMBIGUOUS_MATCH },
		{ "b\nx\nb\n", "@@ -3,1 +3,0 @@\n-b\n", "b\nx\n", TREE_OK },
		/* not there, or with other context */
		{ "a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-B\n+X\n c\n", NULL, TREE_NO_MATCH },
		{ "a\nb\n", "@@ -1,2 +1,2 @@\n  a\n-b\n+X\n", NULL, TREE_NO_MATCH },
		/* additions */
		{ "a\nb\n", "@@ -1,0 +2,1 @@\n+X\n", "a\nX\nb\n", TREE_OK },
		{ "", "@@ -0,0 +1,2 @@\n+X\n+Y\n", "X\nY\n", TREE_OK },
		{ "a\n", "@@ -9,0 +9,1 @@\n+X\n", NULL, TREE_NO_MATCH },
		/* ends of files */
		{ "a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "b\n", TREE_OK },
		{ "a\n", "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", "b", TREE_OK },
		{ "a", "@@ -1 +1,2 @@\n a\n+b\n", "a\nb\n", TREE_OK },
		/* line ends */
		{ "a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+X\n", "a\r\nX\r\n", TREE_OK },
		{ "a\nb\n", "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+X\r\n", "a\nX\n", TREE_OK },
		{ "\xef\xbb\xbf"
		  "a\n",
		  "@@ -1 +1 @@\n-a\n+b\n",
		  "\xef\xbb\xbf"
		  "b\n",
		  TREE_OK },
		/* blanks that an editor took away */
		{ "a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+X\n", "a\n\nX\n", TREE_OK },
		/* a model that does not count */
		{ "a\nb\nc\n", "@@\n a\n-b\n+X\n c\n\n", "a\nX\nc\n", TREE_OK },
		/* two hunks, in order */
		{ "1\n2\n3\n4\n", "@@ -1 +1 @@\n-1\n+a\n@@ -4 +4 @@\n-4\n+d\n", "a\n2\n3\nd\n",
		  TREE_OK },
		{ "1\n2\n", "@@ -2 +2 @@\n-2\n+b\n@@ -1 +1 @@\n-1\n+a\n", NULL, TREE_NO_MATCH },
		/* nonsense */
		{ "a\n", "@@ -1,2 +1 @@\n-a\n", NULL, TREE_INVALID },
		{ "a\n", "@@ -x +1 @@\n-a\n", NULL, TREE_INVALID },
		{ "a\n", "@@ -1 +1 @@\n", NULL, TREE_INVALID },
		{ "a\n", "@@ -99999999999 +1 @@\n-a\n+b\n", NULL, TREE_INVALID },
		{ "a\n", "", NULL, TREE_INVALID },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(str_done) struct str out = { .max = 10000 };
		struct err e;
		enum tree_code code = apply(cases[i].text, cases[i].patch, &out, &e);

		if (code != cases[i].code)
			printf("# case %zu: %s\n", i, e.msg);
		CHECK_STR(tree_code_name(code), tree_code_name(cases[i].code));
		if (cases[i].result)
			CHECK_STR(str_text(&out), cases[i].result);
	}
}

TEST(a_hunk_that_does_not_fit_is_named)
{
	AUTO(str_done) struct str out = { .max = 10000 };
	struct err e;

	apply("a\nb\nc\n", "--- x\n+++ x\n@@ -1 +1 @@\n-a\n+A\n@@ -2,2 +2,2 @@\n b\n-d\n+D\n", &out,
	      &e);
	CHECK_STR(e.msg,
	          "hunk 2 (line 6 of the patch): its lines are not there; line 3 is not \"d\"");
}

TEST(heads_of_git_say_what_happens_to_a_file)
{
	static const struct {
		const char *patch;
		enum patch_kind kind;
		const char *path, *new_path;
		int mode, n_hunks; /* mode -1: not said */
	} cases[] = {
		{ "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
		  PATCH_UPDATE, "x", NULL, -1, 1 },
		{ "--- a/d/x.c\t2020-01-01 00:00:00\n+++ b/d/x.c\t2020\n@@ -1 +1 @@\n-a\n+b\n",
		  PATCH_UPDATE, "d/x.c", NULL, -1, 1 },
		{ "--- x\n+++ x\n@@ -1 +1 @@\n-a\n+b\n", PATCH_UPDATE, "x", NULL, -1, 1 },
		{ "diff --git a/n b/n\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/n\n"
		  "@@ -0,0 +1 @@\n+x\n",
		  PATCH_ADD, "n", NULL, 0755, 1 },
		{ "diff --git a/e b/e\nnew file mode 100644\nindex 0..0\n", PATCH_ADD, "e", NULL,
		  0644, 0 },
		{ "diff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n"
		  "@@ -1 +0,0 @@\n-x\n",
		  PATCH_DELETE, "o", NULL, -1, 1 },
		{ "--- a/o\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", PATCH_DELETE, "o", NULL, -1, 1 },
		{ "diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n",
		  PATCH_UPDATE, "o", "n", -1, 0 },
		{ "diff --git a/o b/n\nsimilarity index 90%\nrename from o\nrename to n\n--- a/o\n"
		  "+++ b/n\n@@ -1 +1 @@\n-a\n+b\n",
		  PATCH_UPDATE, "o", "n", -1, 1 },
		{ "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", PATCH_UPDATE, "x", NULL,
		  0755, 0 },
		{ "diff --git \"a/\\303\\244 \\\"\" \"b/\\303\\244 \\\"\"\n--- \"a/\\303\\244 "
		  "\\\"\"\n"
		  "+++ \"b/\\303\\244 \\\"\"\n@@ -1 +1 @@\n-a\n+b\n",
		  PATCH_UPDATE, "\xc3\xa4 \"", NULL, -1, 1 },
		{ "From: someone\n\n text\n---\n x | 2 +-\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n"
		  "@@ -1 +1 @@\n-a\n+b\n-- \n2.39\n",
		  PATCH_UPDATE, "x", NULL, -1, 1 },
		{ "diff --git a/has space b/has space\nold mode 100644\nnew mode 100755\n",
		  PATCH_UPDATE, "has space", NULL, 0755, 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(patch_done) struct patch p = { 0 };
		struct err e = { 0 };

		if (patch_parse(&p, span_of(cases[i].patch), &e) < 0)
			printf("# case %zu: %s\n", i, e.msg);
		CHECK_STR(e.msg, "");
		CHECK_INT((long long)p.files.len, 1);
		const struct patch_file *f = &p.files.at[0];

		CHECK_INT(f->kind, cases[i].kind);
		CHECK_STR(f->path, cases[i].path);
		CHECK_STR(f->new_path, cases[i].new_path);
		CHECK_INT(f->has_mode ? (int)f->mode : -1, cases[i].mode);
		CHECK_INT((long long)f->hunks.at.len, cases[i].n_hunks);
	}
}

TEST(patches_that_we_do_not_take_are_refused)
{
	static const char *const cases[] = {
		"diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n",
		"diff --git a/x b/x\nnew file mode 160000\n",
		"diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 3\n",
		"diff --git a/x b/x\nBinary files a/x and b/x differ\n",
		"@@ -1 +1 @@\n-a\n+b\n",
		"--- a/x\nno plus\n@@ -1 +1 @@\n-a\n+b\n",
		"diff --git \"a/x b/x\n@@ -1 +1 @@\n-a\n+b\n",
		"*** Begin Patch\n*** Update File: x\n-a\n+b\n",
		"*** Begin Patch\n*** Update File: x\n*** End Patch\n",
		"*** Begin Patch\n*** Add File: x\nno plus\n*** End Patch\n",
		"*** Begin Patch\n*** Delete File: x\n-a\n*** End Patch\n",
		"*** Begin Patch\n*** Rename File: x\n*** End Patch\n",
		"*** Begin Patch\n*** Add File: \n+x\n*** End Patch\n",
		"*** Begin Patch\n*** End Patch\n",
		"hello",
		"",
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(patch_done) struct patch p = { 0 };
		struct err e = { 0 };

		if (patch_parse(&p, span_of(cases[i]), &e) == 0)
			printf("# case %zu\n", i);
		CHECK_INT(fail_code(&e), TREE_INVALID);
	}
}

TEST(v4a_finds_its_place_by_anchors)
{
	static const struct {
		const char *text, *body, *result;
	} cases[] = {
		{ "a\nb\nc\n", " a\n-b\n+X\n c\n", "a\nX\nc\n" },
		{ "f\nx\ng\nx\n", "@@ g\n-x\n+y\n", "f\nx\ng\ny\n" },
		{ "class A:\n  def f():\n    x\nclass B:\n  def f():\n    x\n",
		  "@@ class B:\n@@   def f():\n-    x\n+    y\n",
		  "class A:\n  def f():\n    x\nclass B:\n  def f():\n    y\n" },
		{ "  def f():\n    x\n", "@@ def f():\n-    x\n+    y\n", "  def f():\n    y\n" },
		{ "a\n", "@@ a\n+b\n", "a\nb\n" },
		{ "a\nz\n", "+b\n", "a\nz\nb\n" },
		{ "x\na\nx\n", "-x\n+y\n*** End of File\n", "x\na\ny\n" },
		{ "a\nb\n", "-a\n+1\n@@\n-b\n+2\n", "1\n2\n" },
		{ "a\r\nb\r\n", " a\n-b\n+c\n+d\n", "a\r\nc\r\nd\r\n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(patch_done) struct patch p = { 0 };
		AUTO(str_done) struct str patch = { .max = 10000 }, out = { .max = 10000 };
		struct hunk_result result = { 0 };
		struct err e = { 0 };

		str_addf(&patch, "*** Begin Patch\n*** Update File: f\n%s*** End Patch\n",
		         cases[i].body);
		CHECK_INT(patch_parse(&p, span_of(str_text(&patch)), &e), 0);
		CHECK(p.is_v4a);
		CHECK_INT(
		    hunks_apply(span_of(cases[i].text), &p.files.at[0].hunks, &out, &result, &e),
		    0);
		CHECK_STR(str_text(&out), cases[i].result);
	}
}

/* Few lines, and few different ones. */
static void random_text(struct str *out, uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	for (uint32_t n = *seed >> 24 & 31; n > 0; n--) {
		*seed = *seed * 1664525 + 1013904223;
		str_addf(out, "%c%s", (int)('a' + (*seed >> 28)),
		         n == 1 && *seed & 1 << 20 ? "" : "\n");
	}
}

TEST(a_diff_applied_gives_the_other_text)
{
	uint32_t seed = 12345;

	for (int round = 0; round < 3000; round++) {
		AUTO(str_done) struct str a = { .max = 4096 }, b = { .max = 4096 };
		AUTO(str_done) struct str diff = { .max = 65536 }, out = { .max = 65536 };
		struct err e = { 0 };

		random_text(&a, &seed);
		random_text(&b, &seed);
		CHECK(diff_add(span_of(str_text(&a)), span_of(str_text(&b)), &diff));
		if (diff.len == 0)
			str_add(&out, str_text(&a));
		else if (apply(str_text(&a), str_text(&diff), &out, &e) != TREE_OK)
			printf("# %s\n%s", e.msg, str_text(&diff));
		CHECK_STR(str_text(&out), str_text(&b));
	}
}

/* Patches of both formats, with one name in every place that a name can be. */
static const char *const forms[] = {
	"--- %s\n+++ %s\n@@ -1 +1 @@\n-a\n+b\n",
	"--- a/x\n+++ %s\n@@ -1 +1 @@\n-a\n+b\n",
	"--- %s\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
	"--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-a\n+b\n",
	"--- /dev/null\n+++ %s\n@@ -0,0 +1 @@\n+b\n",
	"--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+b\n",
	"--- %s\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
	"--- \"%s\"\n+++ \"%s\"\n@@ -1 +1 @@\n-a\n+b\n",
	"--- %s\t2026-01-01\n+++ %s\t2026-01-01\n@@ -1 +1 @@\n-a\n+b\n",
	"diff --git a/%s b/%s\nnew file mode 100644\n",
	"diff --git a/%s b/%s\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
	"diff --git a/x b/%s\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
	"diff --git \"a/%s\" \"b/%s\"\ndeleted file mode 100644\n",
	"diff --git a/x b/y\nrename from %s\nrename to y\n",
	"diff --git a/x b/y\nrename from x\nrename to %s\n",
	"diff --git a/x b/y\ncopy from x\ncopy to %s\n",
	"diff --git a/x b/y\ncopy from %s\ncopy to y\n",
	"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- %s\n+++ %s\n@@ -1 +1 @@\n-a\n+b\n",
	"*** Begin Patch\n*** Add File: %s\n+a\n*** End Patch\n",
	"*** Begin Patch\n*** Delete File: %s\n*** End Patch\n",
	"*** Begin Patch\n*** Update File: %s\n-a\n+b\n*** End Patch\n",
	"*** Begin Patch\n*** Update File: x\n*** Move to: %s\n*** End Patch\n",
	"*** Begin Patch\n*** Add File: ok\n+a\n*** Delete File: %s\n*** End Patch\n",
};

static enum tree_code parse_with(const char *form, const char *name)
{
	AUTO(patch_done) struct patch p = { 0 };
	AUTO(str_done) struct str text = { .max = 4096 };
	struct err e = { 0 };

	for (const char *at = form; *at;) {
		const char *mark = strstr(at, "%s");

		str_addn(&text, at, mark ? (size_t)(mark - at) : strlen(at));
		str_add(&text, mark ? name : "");
		at = mark ? mark + 2 : at + strlen(at);
	}
	return patch_parse(&p, (struct span){ text.data, text.len }, &e) < 0 ? fail_code(&e)
	                                                                     : TREE_OK;
}

TEST(names_that_lead_out_refuse_the_whole_patch)
{
	static const char *const outside[] = {
		"../x",        "../../etc/passwd", "x/../../y", "x/../y", "..",
		"x/..",        "./../x",           "x//..//y",  "/x",     "//x",
		"/etc/passwd", "/dev/nullx",       "/dev/../x", "/..",
	};
	static const char *const inside[] = {
		"x", "x/y", "..x", "x..", "...", "x/..y/z", "./x", "x/./y", "a/b",
	};

	/* quoted, as git writes it */
	CHECK_INT(parse_with("--- \"a/%s\"\n+++ \"b/%s\"\n@@ -1 +1 @@\n-a\n+b\n", "..\\057x"),
	          TREE_INVALID);
	for (size_t i = 0; i < COUNT(forms); i++) {
		for (size_t k = 0; k < COUNT(outside); k++) {
			if (parse_with(forms[i], outside[k]) != TREE_INVALID)
				printf("# taken: %s in %s", outside[k], forms[i]);
			CHECK_INT(parse_with(forms[i], outside[k]), TREE_INVALID);
		}
		for (size_t k = 0; k < COUNT(inside); k++) {
			if (parse_with(forms[i], inside[k]) != TREE_OK)
				printf("# refused: %s in %s", inside[k], forms[i]);
			CHECK_INT(parse_with(forms[i], inside[k]), TREE_OK);
		}
	}
}
