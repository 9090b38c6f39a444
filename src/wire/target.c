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

/* "." and "..", also with parameters, which some servers cut off first. */
static bool is_dots(struct span segment)
{
	size_t n = 0;

	while (n < segment.len && segment.at[n] != ';')
		n++;
	return (n == 1 || n == 2) && memcmp(segment.at, "..", n) == 0;
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
	return true;
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
		if (is_escape && !is_unreserved(c))
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
	if (has_good_segments(path) && add_path(path, out) && !out->overflow &&
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
