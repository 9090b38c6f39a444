#include "wire/target.h"

#include "wire/http-internal.h"
#include "wire/utf8.h"

enum { DELETE_BYTE = 0x7f };

static bool is_unreserved(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* The byte of an escape at `s`, or -1. */
static int escaped(struct span s)
{
	int high = s.len > 2 && s.at[0] == '%' ? http_hex(s.at[1]) : -1;
	int low = high >= 0 ? http_hex(s.at[2]) : -1;

	return low < 0 ? -1 : high << 4 | low;
}

/* An escape that a server may undo before it looks for the parts of a path. */
static bool is_treacherous(int c)
{
	return c < 0x20 || c == DELETE_BYTE || c == '.' || c == '/' || c == '\\';
}

/* In a normal path: an escape that makes another one when it is undone. */
static bool has_escaped_escape(const char *path)
{
	for (; (path = strstr(path, "%25")); path += 3)
		if (http_hex(path[3]) >= 0 && http_hex(path[4]) >= 0)
			return true;
	return false;
}

/* Code points that a server may drop, cut off or take for a blank before it looks for dots. */
static bool is_ignorable(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ ' ', ' ' },         { 0x80, 0xa0 },     { 0xad, 0xad },     { 0x34f, 0x34f },
		{ 0x61c, 0x61c },     { 0x115f, 0x1160 }, { 0x1680, 0x1680 }, { 0x17b4, 0x17b5 },
		{ 0x180b, 0x180f },   { 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x206f },
		{ 0x2800, 0x2800 },   { 0x3000, 0x3000 }, { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff },   { 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1d173, 0x1d17a },
		{ 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < COUNT(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

/* One that is a dot, or is made one where text is brought into a common form. */
static bool is_dot(uint32_t c)
{
	return c == '.' || c == 0x2024 || c == 0xfe52 || c == 0xff0e;
}

/* The same of slashes, which would be the end of a segment. */
static bool is_slash_alike(uint32_t c)
{
	return c == 0x2044 || c == 0x2215 || c == 0x29f8 || c == 0x29f9 || c == 0xfe68 ||
	       c == 0xff0f || c == 0xff3c;
}

/* The code point of a normal path at `at`, of which every byte above 7f is escaped. */
static uint32_t next_point(struct span path, size_t *at)
{
	static const uint8_t marks[] = { 0x7f, 0x7f, 0x1f, 0x0f, 0x07 };
	int c = path.at[*at] == '%' ? escaped(span_after(path, *at)) : (uint8_t)path.at[*at];
	size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
	uint32_t point = (uint32_t)c & (n == 1 ? 0xff : marks[n]);

	*at += path.at[*at] == '%' ? 3 : 1;
	for (; n > 1 && *at < path.len; n--, *at += 3)
		point = point << 6 | ((uint32_t)escaped(span_after(path, *at)) & 0x3f);
	return point;
}

/* "." and "..", also with parameters, which some servers cut off first, and with what nobody sees.
 * `path` is normal: judged is what a server reads that has decoded it. */
static bool is_dots(struct span segment)
{
	size_t n_dots = 0;

	for (size_t at = 0; at < segment.len;) {
		uint32_t c = next_point(segment, &at);

		if (c == ';')
			break;
		if (!is_dot(c) && !is_ignorable(c))
			return false;
		n_dots += is_dot(c);
	}
	return n_dots == 1 || n_dots == 2;
}

static bool has_good_points(struct span path)
{
	for (size_t at = 0; at < path.len;)
		if (is_slash_alike(next_point(path, &at)))
			return false;
	return true;
}

static bool has_good_segments(struct span path)
{
	size_t start = 1;

	for (size_t i = 1; i <= path.len; i++) {
		if (i < path.len && path.at[i] != '/')
			continue;
		if (is_dots((struct span){ path.at + start, i - start }))
			return false;
		if (i == start && i < path.len)
			return false; /* two slashes */
		start = i + 1;
	}
	return has_good_points(path);
}

static bool add_path(struct span path, struct str *out)
{
	struct utf8 utf8 = { 0 };

	for (size_t i = 0; i < path.len; i++) {
		int c = (unsigned char)path.at[i];
		bool is_escape = c == '%';

		if (is_escape) {
			c = escaped(span_after(path, i));
			if (c < 0 || is_treacherous(c))
				return false;
			i += 2;
		}
		uint8_t byte = (uint8_t)c;

		if (!utf8_feed(&utf8, &byte, 1))
			return false;
		if ((is_escape && !is_unreserved(c)) || c > DELETE_BYTE)
			str_addf(out, "%%%02X", (unsigned)c);
		else
			str_addn(out, &byte, 1);
	}
	return utf8_is_whole(&utf8);
}

int http_target_normal(struct span target, struct str *out)
{
	struct span path = target;
	size_t before = out->len;

	if (target.len == 0 || target.at[0] != '/' || !http_all(target, C_TARGET))
		return -1;
	const char *query = memchr(target.at, '?', target.len);

	if (query)
		path.len = (size_t)(query - target.at);
	if (add_path(path, out) && !out->overflow &&
	    has_good_segments((struct span){ str_text(out) + before, out->len - before }) &&
	    !has_escaped_escape(str_text(out) + before))
		return 0;
	out->len = before;
	if (out->data)
		out->data[before] = '\0';
	return -1;
}

void http_target_escape(const char *path, struct str *out)
{
	for (; *path; path++)
		if (http_is(*path, C_TARGET))
			str_addn(out, path, 1);
		else
			str_addf(out, "%%%02X", (unsigned char)*path);
}
