/*
 * page.h - a page that people read, as HTML or as Markdown. Pure.
 *
 * Whoever writes one says what is where, never how: every text, also our own, is foreign here and
 * goes through one of two ways. What a terminal or an eye would be led astray by is shown first
 * (escape.h); then
 *
 *   HTML      & < > " ' are references. The page has no script and no link, loads nothing, and says
 *             so to the browser (Content-Security-Policy: the one style sheet, by its hash).
 *   Markdown  code spans and fenced blocks, whose fences are longer than any in the text; there is
 *             no table, because a `|` ends a cell even in a span. No text of others begins a line.
 */
#pragma once

#include "base/str.h"

enum page_format { PAGE_HTML, PAGE_MARKDOWN, PAGE_FORMATS };
enum page_tone { PAGE_PLAIN, PAGE_GOOD, PAGE_WARN, PAGE_BAD, PAGE_TONES };

struct page {
	enum page_format format;
	struct str *out;
	/* private */
	const char *const *heads; /* of the table that is open; NULL: none */
	size_t column;
	bool is_table_open, has_row, has_tiles, is_first;
};

void page_begin(struct page *p, const char *title, const char *below);
/* Numbers at the top: before any section. */
void page_tile(struct page *p, uint64_t number, const char *label, enum page_tone tone);
void page_section(struct page *p, const char *title);
void page_say(struct page *p, enum page_tone tone, const char *text);
/* `heads` ends with NULL and lives until the next call that is not about a row. With "" as the
 * first head the first cell of a row is its name. A table without rows is not there. */
void page_table(struct page *p, const char *const *heads);
void page_row(struct page *p, enum page_tone tone);
void page_cell(struct page *p, const char *text);
void page_cellf(struct page *p, const char *fmt, ...) PRINTF(2, 3); /* a number, a few words */
void page_pre(struct page *p, const char *bytes, size_t n);         /* lines, as they are */
void page_end(struct page *p);
