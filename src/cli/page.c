#include "cli/page.h"

#include <assert.h>

#include "wire/base64.h"
#include "wire/escape.h"
#include "wire/hash.h"

#define CELL_MAX (64u << 10)
#define PRE_MAX (8u << 20)

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1c1e21;--dim:#5f6670;"
    "--line:#e2e4e8;--good:#1a7f45;--warn:#8a5a00;--bad:#b3261e;--badbg:#fdf1f0;--warnbg:#fdf7ea;"
    "--code:#f3f4f6}"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171a;--card:#1c1f23;--ink:#e6e8eb;"
    "--dim:#9aa2ad;--line:#30353c;--good:#5cc98a;--warn:#e3b341;--bad:#ff8a80;--badbg:#2b1d1d;"
    "--warnbg:#29241a;--code:#24282e}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}"
    "main{max-width:1220px;margin:0 auto;padding:2rem 1.25rem 4rem}"
    "h1{font-size:1.7rem;margin:0;overflow-wrap:anywhere}"
    "h2{font-size:1.12rem;margin:2.4rem 0 .6rem}"
    ".below{color:var(--dim);margin:.2rem 0 1.4rem;overflow-wrap:anywhere}"
    ".tiles{display:flex;flex-wrap:wrap;gap:.7rem}"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:.55rem .95rem;min-width:7.2rem;color:var(--dim);font-size:.86rem}"
    ".tile b{display:block;font-size:1.5rem;line-height:1.3;color:var(--ink)}"
    "table{width:100%;border-collapse:collapse;background:var(--card);font-size:.9rem;"
    "border:1px solid var(--line)}"
    "th,td{text-align:left;vertical-align:top;padding:.38rem .6rem;"
    "border-bottom:1px solid "
    "var(--line);overflow-wrap:anywhere}td{min-width:6.4rem}td.n{min-width:0;white-space:nowrap}"
    "th{color:var(--dim);font-weight:600;white-space:nowrap}td:first-child{white-space:nowrap}"
    "code,pre{font:.84em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
    "pre{background:var(--code);border:1px solid var(--line);border-radius:8px;"
    "padding:.8rem 1rem;overflow:auto;max-height:34rem}"
    "p{margin:.4rem 0}.good,.tile.good b{color:var(--good)}.warn,.tile.warn b{color:var(--warn)}"
    ".bad,.tile.bad b{color:var(--bad)}tr.bad{background:var(--badbg);color:inherit}"
    "tr.warn{background:var(--warnbg);color:inherit}tr.good{color:inherit}"
    "@media print{body{background:none}pre{max-height:none}}";

static const char *const tones[] = { "", "good", "warn", "bad" };
_Static_assert(COUNT(tones) == PAGE_TONES, "a tone has no name");

/* ---- foreign text --------------------------------------------------------------------- */

static void add_html(struct str *out, const char *text, size_t n)
{
	static const struct {
		char c;
		const char *is;
	} rows[] = { { '&', "&amp;" },
		     { '<', "&lt;" },
		     { '>', "&gt;" },
		     { '"', "&quot;" },
		     { '\'', "&#39;" } };

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < COUNT(rows) && rows[k].c != text[i])
			k++;
		if (k < COUNT(rows))
			str_add(out, rows[k].is);
		else
			str_addn(out, text + i, 1);
	}
}

/* The longest run of backticks. */
static size_t ticks_in(const char *text, size_t n)
{
	size_t most = 0, run = 0;

	for (size_t i = 0; i < n; i++) {
		run = text[i] == '`' ? run + 1 : 0;
		most = run > most ? run : most;
	}
	return most;
}

static void add_ticks(struct str *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		str_add(out, "`");
}

/* A span of spaces alone is none, and one that begins or ends with a tick needs a space there,
 * which readers take away again if there is one at both ends. */
static void add_span(struct str *out, const char *text, size_t n)
{
	size_t ticks = ticks_in(text, n) + 1;
	bool is_padded = n > 0 && (text[0] == '`' || text[n - 1] == '`' ||
	                           (text[0] == ' ' && text[n - 1] == ' '));

	if (n == 0)
		return;
	add_ticks(out, ticks);
	str_add(out, is_padded ? " " : "");
	str_addn(out, text, n);
	str_add(out, is_padded ? " " : "");
	add_ticks(out, ticks);
}

/* Means nothing between its neighbours; of a text that begins with a digit, "1." and "1)" would. */
static bool is_quiet(const char *text, size_t n, size_t i)
{
	const char *next = i + 1 < n ? text + i + 1 : " ";
	char c = text[i];
	bool has_number = text[0] >= '0' && text[0] <= '9';

	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return true;
	if (c == '.' || c == ')')
		return *next == ' ' ? !has_number : c == ')' || (*next >= '0' && *next <= '9');
	return i > 0 && (strchr(" ,;%'(-+", c) || (c == ':' && *next == ' '));
}

/* No letter of it means anything in Markdown, also at the beginning of a line. */
static bool is_harmless(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_quiet(text, n, i))
			return false;
	return true;
}

static void add_text(const struct page *p, struct str *out, const char *text, bool is_code)
{
	AUTO(str_done) struct str shown = { .max = CELL_MAX };

	escape_text(text, &shown);
	const char *at = str_text(&shown);

	if (p->format == PAGE_HTML) {
		str_add(out, is_code && shown.len > 0 ? "<code>" : "");
		add_html(out, at, shown.len);
		str_add(out, shown.overflow ? "…" : "");
		str_add(out, is_code && shown.len > 0 ? "</code>" : "");
	} else if (!is_code && is_harmless(at, shown.len)) {
		str_addn(out, at, shown.len);
	} else {
		add_span(out, at, shown.len);
		str_add(out, shown.overflow ? "…" : "");
	}
}

/* ---- parts ---------------------------------------------------------------------------- */

static void end_row(struct page *p)
{
	if (p->has_row)
		str_add(p->out, p->format == PAGE_HTML ? "</tr>\n" : "\n");
	p->has_row = false;
}

/* Whatever is open ends. */
static void settle(struct page *p)
{
	end_row(p);
	if (p->is_table_open)
		str_add(p->out, p->format == PAGE_HTML ? "</tbody></table>\n" : "\n");
	if (p->has_tiles)
		str_add(p->out, p->format == PAGE_HTML ? "</div>\n" : "\n");
	p->heads = NULL;
	p->has_tiles = p->is_table_open = false;
}

static void add_policy(struct str *out)
{
	AUTO(str_done) struct str text = { .max = 64 };
	uint8_t bytes[HASH_BYTES];
	struct hash h;

	hash_init(&h);
	hash_add(&h, (struct span){ style, sizeof style - 1 });
	hash_bytes(&h, bytes);
	base64_encode(bytes, sizeof bytes, &text);
	str_addf(out,
	         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	         "style-src 'sha256-%s'; base-uri 'none'; form-action 'none'\">\n",
	         str_text(&text));
}

void page_begin(struct page *p, const char *title, const char *below)
{
	if (p->format == PAGE_MARKDOWN) {
		str_add(p->out, "# ");
		add_text(p, p->out, title, false);
		str_add(p->out, "\n\n");
		add_text(p, p->out, below, false);
		str_add(p->out, "\n\n");
		return;
	}
	str_add(p->out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
	add_policy(p->out);
	str_add(p->out, "<meta name=\"referrer\" content=\"no-referrer\">\n"
	                "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	add_text(p, p->out, title, false);
	str_add(p->out, "</title>\n<style>");
	str_add(p->out, style);
	str_add(p->out, "</style></head><body><main>\n<h1>");
	add_text(p, p->out, title, false);
	str_add(p->out, "</h1>\n<p class=\"below\">");
	add_text(p, p->out, below, false);
	str_add(p->out, "</p>\n");
}

void page_tile(struct page *p, uint64_t number, const char *label, enum page_tone tone)
{
	if (p->format == PAGE_HTML) {
		str_add(p->out, p->has_tiles ? "" : "<div class=\"tiles\">");
		str_addf(p->out, "<div class=\"tile %s\"><b>%llu</b>", tones[tone],
		         (unsigned long long)number);
		add_text(p, p->out, label, false);
		str_add(p->out, "</div>");
	} else {
		str_addf(p->out, "%s**%llu** ", p->has_tiles ? ", " : "",
		         (unsigned long long)number);
		add_text(p, p->out, label, false);
	}
	p->has_tiles = true;
}

void page_section(struct page *p, const char *title)
{
	settle(p);
	str_add(p->out, p->format == PAGE_HTML ? "<h2>" : "\n## ");
	add_text(p, p->out, title, false);
	str_add(p->out, p->format == PAGE_HTML ? "</h2>\n" : "\n\n");
}

void page_say(struct page *p, enum page_tone tone, const char *text)
{
	settle(p);
	if (p->format == PAGE_HTML)
		str_addf(p->out, "<p class=\"%s\">", tones[tone]);
	add_text(p, p->out, text, false);
	str_add(p->out, p->format == PAGE_HTML ? "</p>\n" : "\n\n");
}

void page_table(struct page *p, const char *const *heads)
{
	settle(p);
	p->heads = heads;
}

/* With its first row: one without any is not there. */
static void open_table(struct page *p)
{
	p->is_table_open = true;
	if (p->format == PAGE_MARKDOWN)
		return;
	str_add(p->out, "<table>");
	for (size_t i = 0; p->heads[0][0] && p->heads[i]; i++) {
		str_add(p->out, i ? "<th scope=\"col\">" : "<thead><tr><th scope=\"col\">");
		add_text(p, p->out, p->heads[i], false);
		str_add(p->out, p->heads[i + 1] ? "</th>" : "</th></tr></thead>");
	}
	str_add(p->out, "<tbody>\n");
}

void page_row(struct page *p, enum page_tone tone)
{
	static const char *const marks[] = { "", "", "(!) ", "**(!)** " };

	end_row(p);
	if (!p->is_table_open)
		open_table(p);
	p->has_row = p->is_first = true;
	p->column = 0;
	if (p->format == PAGE_HTML)
		str_addf(p->out, "<tr class=\"%s\">", tones[tone]);
	else
		str_addf(p->out, "- %s", marks[tone]);
}

static void add_html_cell(const struct page *p, const char *text, bool is_name, bool is_code)
{
	const char *begin = is_name ? "<th scope=\"row\">" : is_code ? "<td>" : "<td class=\"n\">";

	str_add(p->out, begin);
	add_text(p, p->out, text, is_code && !is_name);
	str_add(p->out, is_name ? "</th>" : "</td>");
}

/* "- name: value; Head value": what has no text is left out. */
static void add_item(struct page *p, const char *head, const char *text, bool is_code)
{
	bool is_second = p->column == 2;

	if (!text[0])
		return;
	if (!p->is_first)
		str_add(p->out, is_second ? ": " : "; ");
	if (!p->is_first && head[0] && (!is_second || !is_code)) {
		add_text(p, p->out, head, false);
		str_add(p->out, " ");
	}
	add_text(p, p->out, text, is_code);
	p->is_first = false;
}

static void add_cell(struct page *p, const char *text, bool is_code)
{
	const char *head = p->heads[p->column];
	bool is_name = p->column == 0 && !p->heads[0][0];

	assert(head);
	p->column++;
	if (p->format == PAGE_HTML)
		add_html_cell(p, text, is_name, is_code);
	else
		add_item(p, head, text, is_code && !is_name);
}

void page_cell(struct page *p, const char *text)
{
	add_cell(p, text, true);
}

void page_cellf(struct page *p, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	add_cell(p, text, false);
}

void page_pre(struct page *p, const char *bytes, size_t n)
{
	AUTO(str_done) struct str shown = { .max = PRE_MAX };
	struct escape x = { .keeps_lines = true };

	settle(p);
	escape_feed(&x, bytes, n, &shown);
	escape_end(&x, &shown);
	const char *at = str_text(&shown);

	if (p->format == PAGE_HTML) {
		str_add(p->out, "<pre>\n");
		add_html(p->out, at, shown.len);
		str_add(p->out, "</pre>\n");
		return;
	}
	size_t ticks = ticks_in(at, shown.len) < 3 ? 3 : ticks_in(at, shown.len) + 1;

	add_ticks(p->out, ticks);
	str_add(p->out, "text\n");
	str_addn(p->out, at, shown.len);
	str_add(p->out, shown.len > 0 && at[shown.len - 1] == '\n' ? "" : "\n");
	add_ticks(p->out, ticks);
	str_add(p->out, "\n\n");
}

void page_end(struct page *p)
{
	settle(p);
	str_add(p->out, p->format == PAGE_HTML ? "</main></body></html>\n" : "");
}
