#include "wire/escape.h"

#include "wire/utf8.h"

/* Code points that are not shown as they are, besides C0 and C1: they turn the direction of
 * writing, end a line for some programs, or are not visible at all (Default_Ignorable_Code_Point
 * of Unicode's DerivedCoreProperties.txt, and the blank of Braille). */
static const struct {
	uint32_t first, last;
} hidden[] = {
	{ 0x7f, 0x9f },       { 0xad, 0xad },       { 0x34f, 0x34f },     { 0x61c, 0x61c },
	{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },   { 0x200b, 0x200f },
	{ 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x2800, 0x2800 },   { 0x3164, 0x3164 },
	{ 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
	{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

bool escape_is_hidden(uint32_t c)
{
	for (size_t i = 0; i < COUNT(hidden); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	return false;
}

static uint32_t code_point(const unsigned char *p, size_t n)
{
	static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = p[0] & masks[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static void add_whole(const struct escape *x, struct str *out)
{
	uint32_t c = code_point(x->wait, x->n);

	bool is_kept = x->keeps_lines && (c == '\n' || c == '\t');

	if (is_kept || (c >= 0x20 && !escape_is_hidden(c)))
		str_addn(out, x->wait, x->n);
	else if (c == '\n' || c == '\t')
		str_add(out, c == '\n' ? "\\n" : "\\t");
	else
		str_addf(out, c < 0x80 ? "\\x%02x" : "\\u{%x}", (unsigned int)c);
}

/* What waits is no beginning of a sequence: its first byte is shown, and the rest may be one. */
static void add_wrong(struct escape *x, struct str *out)
{
	str_addf(out, "\\x%02x", x->wait[0]);
	x->n--;
	memmove(x->wait, x->wait + 1, x->n);
}

static void settle(struct escape *x, struct str *out)
{
	while (x->n > 0) {
		struct utf8 u = { 0 };

		if (!utf8_feed(&u, x->wait, x->n)) {
			add_wrong(x, out);
			continue;
		}
		if (utf8_is_whole(&u)) {
			add_whole(x, out);
			x->n = 0;
		}
		return;
	}
}

void escape_feed(struct escape *x, const void *bytes, size_t n, struct str *out)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++) {
		size_t plain = i;

		while (x->n == 0 && plain < n && p[plain] >= 0x20 && p[plain] < 0x7f)
			plain++;
		str_addn(out, p + i, plain - i);
		i = plain;
		if (i == n)
			return;
		x->wait[x->n++] = p[i];
		settle(x, out);
	}
}

void escape_end(struct escape *x, struct str *out)
{
	while (x->n > 0)
		add_wrong(x, out);
}

void escape_text(const char *text, struct str *out)
{
	struct escape x = { 0 };

	escape_feed(&x, text, strlen(text), out);
	escape_end(&x, out);
}

const char *escape_brief(const char *text)
{
	static char brief[1024];
	AUTO(str_done) struct str out = { .max = sizeof brief - 1 };

	escape_text(text, &out);
	snprintf(brief, sizeof brief, "%s", str_text(&out));
	return brief;
}
