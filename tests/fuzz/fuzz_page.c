/*
 * fuzz_page.c - any text on a page: in HTML it makes no tag and no attribute, in Markdown it stays
 * in its span and in its block.
 */
#include <assert.h>

#include "cli/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const heads[] = { "A", "B", NULL };

static void print(enum page_format format, const char *text, struct str *out)
{
	struct page p = { .format = format, .out = out };

	page_table(&p, heads);
	page_row(&p, PAGE_PLAIN);
	page_cellf(&p, "x");
	page_cell(&p, text);
	page_end(&p);
}

static bool is_inert(char c)
{
	return !strchr("<>\"'\n", c) && (unsigned char)c >= ' ';
}

static void check_html(const char *text)
{
	static const char begin[] = "<tr class=\"\"><td class=\"n\">x</td><td><code>",
			  end[] = "</code></td></tr>";
	AUTO(str_done) struct str out = { .max = 8u << 20 };

	print(PAGE_HTML, text, &out);
	const char *at = strstr(str_text(&out), begin);
	const char *stop = at ? strstr(at, end) : NULL;

	if (!*text)
		return;
	assert(at && stop);
	for (at += sizeof begin - 1; at < stop; at++)
		assert(is_inert(*at));
}

/* As CommonMark reads a span: it ends with the first run of as many ticks. */
static void check_span(const char *text)
{
	AUTO(str_done) struct str out = { .max = 8u << 20 };

	print(PAGE_MARKDOWN, text, &out);
	const char *at = str_text(&out);

	if (!*text)
		return;
	assert(strncmp(at, "- x: `", 6) == 0);
	size_t ticks = strspn(at + 5, "`");

	for (at += 5 + ticks; *at; at += strspn(at, "`")) {
		at += strcspn(at, "`\n");
		assert(*at == '`');
		if (strspn(at, "`") == ticks)
			break;
	}
	at += ticks;
	assert(strcmp(at, "\n\n") == 0 || strcmp(at, "…\n\n") == 0);
}

static void check_block(const uint8_t *data, size_t size)
{
	AUTO(str_done) struct str out = { .max = 64u << 20 };
	struct page p = { .format = PAGE_MARKDOWN, .out = &out };

	page_pre(&p, (const char *)data, size);
	size_t ticks = strspn(str_text(&out), "`"), n = 0;

	for (const char *at = str_text(&out); *at; at += strcspn(at, "\n") + 1) {
		const char *line = at + strspn(at, " ");

		n += strspn(line, "`") >= ticks;
	}
	assert(ticks >= 3 && n == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(freep) char *text = mem_alloc(size + 1);

	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	check_html(text);
	check_span(text);
	check_block(data, size);
	return 0;
}
