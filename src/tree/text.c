#include "tree/text.h"

#include "wire/utf8.h"

size_t utf8_first(struct span s)
{
	struct utf8 u = { 0 };

	for (size_t i = 0; i < s.len; i++) {
		if (!utf8_feed(&u, s.at + i, 1))
			return 0;
		if (utf8_is_whole(&u))
			return i + 1;
	}
	return 0;
}

bool utf8_is_valid(struct span s)
{
	return utf8_is(s.at, s.len);
}

struct span utf8_cut(struct span s, size_t max)
{
	if (s.len <= max)
		return s;
	size_t n = max;
	for (int i = 0; i < 3 && n > 0 && ((unsigned char)s.at[n] & 0xc0) == 0x80; i++)
		n--;
	return (struct span){ s.at, n };
}

void utf8_lossy(struct span s, struct str *out)
{
	while (s.len > 0) {
		size_t n = utf8_first(s);

		if (n > 0)
			str_addn(out, s.at, n);
		else
			str_add(out, "\xef\xbf\xbd");
		s = span_after(s, n > 0 ? n : 1);
	}
}

bool line_take(struct span *rest, struct span *line)
{
	if (rest->len == 0)
		return false;
	const char *end = memchr(rest->at, '\n', rest->len);
	size_t n = end ? (size_t)(end - rest->at) + 1 : rest->len;

	*line = (struct span){ rest->at, n };
	*rest = span_after(*rest, n);
	return true;
}

struct span line_bare(struct span line)
{
	if (line.len > 0 && line.at[line.len - 1] == '\n')
		line.len--;
	else
		return line;
	if (line.len > 0 && line.at[line.len - 1] == '\r')
		line.len--;
	return line;
}

struct line_ends line_ends_count(struct span s)
{
	struct line_ends ends = { 0 };

	for (const char *p = s.at, *end = s.at + s.len; p < end; p++) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			break;
		if (p > s.at && p[-1] == '\r')
			ends.crlf++;
		else
			ends.lf++;
	}
	return ends;
}

const char *line_ends_name(struct line_ends ends)
{
	if (ends.lf > 0)
		return ends.crlf > 0 ? "mixed" : "lf";
	return ends.crlf > 0 ? "crlf" : "none";
}

bool line_ends_are_crlf(struct line_ends ends)
{
	return ends.crlf > 0 && ends.lf == 0;
}

void crlf_add(struct span s, struct str *out)
{
	struct span line;

	while (line_take(&s, &line)) {
		struct span bare = line_bare(line);

		str_addn(out, bare.at, bare.len);
		if (line.at[line.len - 1] == '\n')
			str_add(out, "\r\n");
	}
}

bool has_bom(struct span s)
{
	return s.len >= 3 && memcmp(s.at, "\xef\xbb\xbf", 3) == 0;
}

bool has_nul(struct span s)
{
	return s.len > 0 && memchr(s.at, 0, s.len);
}
