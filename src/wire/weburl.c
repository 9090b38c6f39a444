#include "wire/weburl.h"

#include "wire/hostname.h"
#include "wire/http-internal.h"
#include "wire/http.h"
#include "wire/target.h"

enum { PORT_HTTP = 80, PORT_TLS = 443 };

static bool takes_nocase(struct span *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s->len < n || !span_is_nocase((struct span){ s->at, n }, prefix))
		return false;
	*s = span_after(*s, n);
	return true;
}

static size_t until(struct span s, const char *any)
{
	size_t n = 0;

	while (n < s.len && !strchr(any, s.at[n]))
		n++;
	return n;
}

/* host or host:port, in front of a path. */
static bool take_authority(struct span *rest, struct weburl *out)
{
	struct span host, all = { rest->at, until(*rest, "/?#") };
	uint16_t port = 0;

	if (!http_host_split(all, &host, &port) || !hostname_read(host.at, host.len, out->host))
		return false;
	out->port = port > 0 ? port : out->is_tls ? PORT_TLS : PORT_HTTP;
	*rest = span_after(*rest, all.len);
	return true;
}

/* RFC 3986, 5.2.4, of a path that begins with a slash. What climbs out stays at the top. */
static void add_without_dots(struct span path, struct str *out)
{
	struct span rest = span_after(path, 1);

	for (bool is_last = false; !is_last;) {
		struct span part = { rest.at, until(rest, "/") };

		is_last = part.len == rest.len;
		rest = span_after(rest, is_last ? part.len : part.len + 1);
		if (span_is(part, "..")) {
			while (out->len > 0 && out->data[out->len - 1] != '/')
				out->len--;
			out->len -= out->len > 0;
		}
		if (!span_is(part, ".") && !span_is(part, "..")) {
			str_add(out, "/");
			str_addn(out, part.at, part.len);
		} else if (is_last) {
			str_add(out, "/");
		}
	}
}

static int settle_path(struct span path, struct weburl *out)
{
	AUTO(str_done) struct str flat = { .max = WEBURL_PATH_SIZE };
	AUTO(str_done) struct str normal = { .max = 3ul * WEBURL_PATH_SIZE };

	add_without_dots(path, &flat);
	if (flat.overflow ||
	    http_target_normal((struct span){ str_text(&flat), flat.len }, &normal) < 0 ||
	    normal.len >= sizeof out->path)
		return -1;
	memcpy(out->path, normal.data, normal.len + 1);
	return 0;
}

/* Of a reference without a host. */
static int resolve_path(const struct weburl *base, struct span ref, struct weburl *out)
{
	AUTO(str_done) struct str path = { .max = 2ul * WEBURL_PATH_SIZE };
	const char *slash = strrchr(base->path, '/');

	if (ref.at[0] != '/')
		str_addn(&path, base->path, (size_t)(slash - base->path) + 1);
	str_addn(&path, ref.at, ref.len);
	if (path.overflow)
		return -1;
	return settle_path((struct span){ str_text(&path), path.len }, out);
}

static int read_rest(struct span ref, struct weburl *u)
{
	if (!take_authority(&ref, u))
		return -1;
	return settle_path(ref.len > 0 ? ref : span_of("/"), u);
}

int weburl_resolve(const struct weburl *base, struct span ref, struct weburl *out)
{
	struct weburl u = { .is_tls = base->is_tls, .port = base->port };
	int r = -1;

	memcpy(u.host, base->host, sizeof u.host);
	ref.len = until(ref, "#");
	if (ref.len == 0 || ref.len >= WEBURL_PATH_SIZE || memchr(ref.at, '?', ref.len) ||
	    memchr(ref.at, '\0', ref.len))
		return -1;
	bool is_tls = takes_nocase(&ref, "https://");

	if (is_tls || takes_nocase(&ref, "http://")) {
		u.is_tls = is_tls;
		r = read_rest(ref, &u);
	} else if (takes_nocase(&ref, "//")) {
		r = read_rest(ref, &u);
	} else if (until(ref, "/") <= until(ref, ":")) { /* else another scheme */
		r = resolve_path(base, ref, &u);
	}
	if (r == 0)
		*out = u;
	return r;
}

int weburl_read(struct span text, struct weburl *out)
{
	static const struct weburl nowhere = { .port = PORT_HTTP, .host = "invalid", .path = "/" };
	struct span scheme = text;

	if (!takes_nocase(&scheme, "https://") && !takes_nocase(&scheme, "http://"))
		return -1;
	return weburl_resolve(&nowhere, text, out);
}

static void print_origin(const struct weburl *u, struct str *out)
{
	str_addf(out, "%s://%s", u->is_tls ? "https" : "http", u->host);
	if (u->port != (u->is_tls ? PORT_TLS : PORT_HTTP))
		str_addf(out, ":%u", u->port);
}

void weburl_print(const struct weburl *u, struct str *out)
{
	print_origin(u, out);
	str_add(out, u->path);
}

static bool is_unreserved(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       strchr("-._~/", c);
}

/* A normal path: every escape is one, and of none that is part of the path's form. */
void weburl_key(const struct weburl *u, struct str *out)
{
	print_origin(u, out);
	for (const char *p = u->path; *p; p++) {
		int c = (unsigned char)*p;

		if (c == '%') {
			c = http_hex(p[1]) * 16 + http_hex(p[2]);
			p += 2;
		}
		if (is_unreserved(c))
			str_addf(out, "%c", c);
		else
			str_addf(out, "%%%02X", (unsigned)c);
	}
}
