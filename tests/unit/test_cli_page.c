#include "cli/page.h"

#include "test.h"

/* One cell in a row, after our own. */
static void print(enum page_format format, const char *text, bool is_ours, struct str *out)
{
	static const char *const heads[] = { "A", "B", NULL };
	struct page p = { .format = format, .out = out };

	page_table(&p, heads);
	page_row(&p, PAGE_PLAIN);
	page_cellf(&p, "x");
	if (is_ours)
		page_cellf(&p, "%s", text);
	else
		page_cell(&p, text);
	page_end(&p);
}

TEST(foreign_text_in_html_is_text)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "plain", "<td><code>plain</code></td>" },
		{ "", "<td></td>" },
		{ "<script>alert(1)</script>",
		  "<td><code>&lt;script&gt;alert(1)&lt;/script&gt;</code></td>" },
		{ "\" onload='x' &lt;",
		  "<td><code>&quot; onload=&#39;x&#39; &amp;lt;</code></td>" },
		{ "a\nb\x1b[2J\xe2\x80\xae", "<td><code>a\\nb\\x1b[2J\\u{202e}</code></td>" },
		{ "\xff<", "<td><code>\\xff&lt;</code></td>" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 65536 };

		print(PAGE_HTML, rows[i].text, false, &out);
		CHECK(strstr(str_text(&out), rows[i].shown));
	}
}

TEST(foreign_text_in_markdown_is_a_span)
{
	static const struct {
		const char *text, *shown;
	} rows[] = {
		{ "plain", "- x: `plain`\n\n" },
		{ "a`b", "- x: ``a`b``\n\n" },
		{ "``", "- x: ``` `` ```\n\n" },
		{ " x ", "- x: `  x  `\n\n" },
		{ "| a | <b> [c](d) ![e](f) https://example.org $x$ \\",
		  "- x: `| a | <b> [c](d) ![e](f) https://example.org $x$ \\`\n\n" },
		{ "\n# title\n```\n- x", "- x: ````\\n# title\\n```\\n- x````\n\n" },
		{ "", "- x\n\n" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 65536 };

		print(PAGE_MARKDOWN, rows[i].text, false, &out);
		CHECK_STR(str_text(&out), rows[i].shown);
	}
}

TEST(our_own_words_stay_bare_only_when_they_mean_nothing)
{
	static const struct {
		const char *text;
		bool is_bare;
	} rows[] = {
		{ "12", true },
		{ "0.25 s", true },
		{ "and so on (or not), 5% of it: yes.", true },
		{ "1. a list", false },
		{ "1) a list", false },
		{ "1.", false },
		{ "- a list", false },
		{ "+ a list", false },
		{ " indented", false },
		{ "a *b*", false },
		{ "a_b_", false },
		{ "www.example.org", false },
		{ "x://y", false },
		{ ":smile:", false },
		{ "a@b", false },
		{ "&lt;", false },
		{ "a | b", false },
		{ "a~~b", false },
		{ "# x", false },
		{ "a\\b", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str out = { .max = 65536 };

		print(PAGE_MARKDOWN, rows[i].text, true, &out);
		CHECK_INT(strchr(str_text(&out), '`') == NULL, rows[i].is_bare);
	}
}

TEST(a_block_ends_where_it_ends)
{
	static const char text[] = "+a\n```\n# out\n</pre><script>\x1b\n";
	AUTO(str_done) struct str html = { .max = 65536 };
	AUTO(str_done) struct str md = { .max = 65536 };
	struct page p = { .format = PAGE_HTML, .out = &html },
		    q = { .format = PAGE_MARKDOWN, .out = &md };

	page_pre(&p, text, sizeof text - 1);
	page_pre(&q, text, sizeof text - 1);
	CHECK_STR(str_text(&html),
	          "<pre>\n+a\n```\n# out\n&lt;/pre&gt;&lt;script&gt;\\x1b\n</pre>\n");
	CHECK_STR(str_text(&md), "````text\n+a\n```\n# out\n</pre><script>\\x1b\n````\n\n");
}

TEST(a_page_says_that_it_loads_nothing)
{
	AUTO(str_done) struct str out = { .max = 65536 };
	struct page p = { .format = PAGE_HTML, .out = &out };
	static const char *const empty[] = { "A", NULL };

	page_begin(&p, "<t>", "b");
	page_tile(&p, 3, "things", PAGE_GOOD);
	page_section(&p, "S & T");
	page_table(&p, empty);
	page_say(&p, PAGE_WARN, "none");
	page_end(&p);
	CHECK(strstr(str_text(&out), "<title>&lt;t&gt;</title>"));
	CHECK(strstr(str_text(&out), "content=\"default-src 'none'; style-src 'sha256-"));
	CHECK(strstr(str_text(&out), "<h2>S &amp; T</h2>"));
	CHECK(!strstr(str_text(&out), "<table"));
	CHECK(!strstr(str_text(&out), "<script") && !strstr(str_text(&out), "http:") &&
	      !strstr(str_text(&out), "url("));
}
