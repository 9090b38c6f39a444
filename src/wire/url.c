#include "wire/url.h"

#include "wire/http-internal.h"

/* Where the byte stands, or the length. */
static size_t find(struct span s, char c)
{
	const char *at = s.len > 0 ? memchr(s.at, c, s.len) : NULL;

	return at ? (size_t)(at - s.at) : s.len;
}

int url_split(struct span target, struct url *out, struct err *e)
{
	if (target.len == 0 || target.at[0] != '/')
		return err_new(e, ERR_INVALID, "target does not begin with a slash");
	if (!http_all(target, C_TARGET))
		return err_new(e, ERR_INVALID, "target has a byte that must be escaped");
	size_t n = find(target, '?');
	bool has_query = n < target.len;

	*out = (struct url){
		.path = { target.at, n },
		.query = span_after(target, has_query ? n + 1 : n),
		.has_query = has_query,
	};
	return 0;
}

bool url_segment(struct span *rest, struct span *out)
{
	if (rest->len == 0)
		return false;
	struct span tail = span_after(*rest, *rest->at == '/' ? 1 : 0);
	size_t n = find(tail, '/');

	*out = (struct span){ tail.at, n };
	*rest = span_after(tail, n);
	return true;
}

/* The byte that two digits at `in` stand for, or -1; never 0. */
static int unescape(struct span in)
{
	int high = in.len > 1 ? http_hex(in.at[0]) : -1;
	int low = in.len > 1 ? http_hex(in.at[1]) : -1;

	return high < 0 || low < 0 || high + low == 0 ? -1 : high << 4 | low;
}

int url_decode(enum url_part part, struct span in, char *buf, size_t cap, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < in.len; i++) {
		int c = (unsigned char)in.at[i];

		if (n >= cap || n >= INT_MAX)
			return err_new(e, ERR_LIMIT, "a name in the target is too long");
		if (!http_is(in.at[i], C_TARGET))
			return err_new(e, ERR_INVALID, "target has a byte that must be escaped");
		if (c == '%') {
			c = unescape(span_after(in, i + 1));
			if (c < 0)
				return err_new(e, ERR_INVALID, "target has a malformed escape");
			i += 2;
		} else if (c == '+' && part == URL_QUERY) {
			c = ' ';
		}
		buf[n++] = (char)c;
	}
	if (n >= cap)
		return err_new(e, ERR_LIMIT, "a name in the target is too long");
	buf[n] = '\0';
	return (int)n;
}

int url_param(struct span *rest, struct url_buf buf, struct url_param *out, struct err *e)
{
	if (rest->len == 0)
		return 0;
	size_t n = find(*rest, '&');
	struct span pair = { rest->at, n };
	size_t eq = find(pair, '=');
	struct span value = span_after(pair, eq < n ? eq + 1 : n);

	if (eq == 0 || n + 1 == rest->len)
		return err_new(e, ERR_INVALID, "query has a parameter without a name");
	int name_len = url_decode(URL_QUERY, (struct span){ pair.at, eq }, buf.at, buf.cap, e);

	if (name_len < 0)
		return -1;
	size_t used = (size_t)name_len + 1;
	int value_len = url_decode(URL_QUERY, value, buf.at + used, buf.cap - used, e);

	if (value_len < 0)
		return -1;
	*out = (struct url_param){
		.name = buf.at,
		.value = buf.at + used,
		.name_len = (size_t)name_len,
		.value_len = (size_t)value_len,
		.has_value = eq < n,
	};
	*rest = span_after(*rest, n < rest->len ? n + 1 : n);
	return 1;
}

static bool is_unreserved(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

void url_encode(const void *bytes, size_t n, struct str *out)
{
	static const char digits[] = "0123456789ABCDEF";
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++) {
		char escaped[3] = { '%', digits[p[i] >> 4], digits[p[i] & 15] };

		if (is_unreserved(p[i]))
			str_addn(out, &p[i], 1);
		else
			str_addn(out, escaped, sizeof escaped);
	}
}
