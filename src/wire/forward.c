#include "wire/forward.h"

#define COOKIES_MAX (32u << 10)

static struct span trim(struct span s)
{
	while (s.len > 0 && (*s.at == ' ' || *s.at == '\t'))
		s = span_after(s, 1);
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static bool begins(struct span s, struct span with)
{
	return s.len >= with.len && memcmp(s.at, with.at, with.len) == 0;
}

/* ---- cookies ------------------------------------------------------------------------- */

/* The next of a list with semicolons. */
static bool next_part(struct span *rest, struct span *out)
{
	size_t n = 0;

	if (rest->len == 0)
		return false;
	while (n < rest->len && rest->at[n] != ';')
		n++;
	*out = trim((struct span){ rest->at, n });
	*rest = span_after(*rest, n < rest->len ? n + 1 : n);
	return true;
}

static bool split_pair(struct span pair, struct span *name, struct span *value)
{
	const char *equals = pair.len > 0 ? memchr(pair.at, '=', pair.len) : NULL;
	size_t n = equals ? (size_t)(equals - pair.at) : 0;

	if (n == 0)
		return false;
	*name = trim((struct span){ pair.at, n });
	*value = trim(span_after(pair, n + 1));
	return name->len > 0;
}

bool cookie_next(struct span *rest, struct span *name, struct span *value)
{
	struct span part;

	while (next_part(rest, &part))
		if (split_pair(part, name, value))
			return true;
	return false;
}

bool cookie_is_token(struct span name, const char *tag)
{
	return name.len == 2 + strlen(tag) && memcmp(name.at, "cp", 2) == 0 &&
	       span_is(span_after(name, 2), tag);
}

static void add_cookie(struct str *out, struct span name, struct span value)
{
	if (out->len > 0)
		str_add(out, "; ");
	str_addn(out, name.at, name.len);
	str_add(out, "=");
	str_addn(out, value.at, value.len);
}

void cookie_in(struct span field, const char *tag, struct str *out)
{
	char prefix[FORWARD_TAG + 4];
	struct span name, value;

	snprintf(prefix, sizeof prefix, "cp%s_", tag);
	while (cookie_next(&field, &name, &value)) {
		if (!begins(name, span_of(prefix)) || name.len == strlen(prefix))
			continue;
		add_cookie(out, span_after(name, strlen(prefix)), value);
	}
}

/* Of a cookie: all but what is decided here. */
static bool is_kept_attribute(struct span part)
{
	const char *equals = part.len > 0 ? memchr(part.at, '=', part.len) : NULL;
	struct span name =
	    trim((struct span){ part.at, equals ? (size_t)(equals - part.at) : part.len });

	return name.len > 0 && !span_is_nocase(name, "Domain") && !span_is_nocase(name, "HttpOnly");
}

bool cookie_out(struct span field, const char *tag, struct str *out)
{
	struct span part, name, value;

	if (!next_part(&field, &part) || !split_pair(part, &name, &value))
		return false;
	str_addf(out, "cp%s_", tag);
	str_addn(out, name.at, name.len);
	str_add(out, "=");
	str_addn(out, value.at, value.len);
	while (next_part(&field, &part)) {
		if (!is_kept_attribute(part))
			continue;
		str_add(out, "; ");
		str_addn(out, part.at, part.len);
	}
	str_add(out, "; HttpOnly");
	return true;
}

/* ---- fields that go no further ------------------------------------------------------- */

/* Said anew here; about us; or by proxies between the client and us about who the client is, which
 * the application must not believe and has no business with. One that ends with '*' stands
 * for all that begin so. */
static const char *const of_request[] = {
	"Host",
	"Expect",
	"Cookie",
	FORWARD_TOKEN,
	"X-Caisson-*",
	/* addresses */
	"Forwarded",
	"X-Forwarded*",
	"Via",
	"X-Real-*",
	"X-Client-Ip",
	"X-Cluster-Client-Ip",
	"True-Client-Ip",
	"Client-Ip",
	"X-Remote-*",
	"X-Original-*",
	"X-Originating-Ip",
	"X-Proxyuser-Ip",
	"X-Host",
	"X-Scheme",
	"X-Url-Scheme",
	"X-Envoy-*",
	"Front-End-Https",
	"Proxy",
	"Proxy-*",
	"Cf-*",
	"Cdn-Loop",
	"Fly-*",
	"X-Amzn-Oidc-*",
	"X-Goog-Iap-*",
	"X-Goog-Authenticated-User-*",
	"X-Ms-Client-Principal*",
	/* who the client is */
	"Remote-*",
	"X-Webauth-*",
	"X-Auth-Request-*",
	"X-Authenticated-*",
	"X-Authentik-*",
	"X-Pomerium-*",
	"X-Vouch-*",
	"Tailscale-*",
	"X-Ssl-*",
	"Ssl-Client-*",
	"X-Client-Cert*",
	"X-Client-Verify",
	NULL,
};

/* Set-Cookie is said anew; Date by the server. The other two speak for every port of this host:
 * one would empty the jar of all forwards, the other lead their clients elsewhere. */
static const char *const of_answer[] = { "Set-Cookie", "Date", "Clear-Site-Data", "Alt-Svc", NULL };

/* Programs behind CGI and WSGI read X_Real_Ip as X-Real-Ip. */
static char plain_letter(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return (char)(c == '_' ? '-' : c);
}

static bool is_called(struct span name, const char *pattern)
{
	size_t n = strlen(pattern);
	bool is_begin = n > 0 && pattern[n - 1] == '*';

	n -= is_begin ? 1 : 0;
	if (is_begin ? name.len < n : name.len != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (plain_letter(name.at[i]) != plain_letter(pattern[i]))
			return false;
	return true;
}

static bool is_one_of(struct span name, const char *const *list)
{
	for (; list && *list; list++)
		if (is_called(name, *list))
			return true;
	return false;
}

static bool goes_on(const struct http_head *h, struct span name, const char *const *ours)
{
	return http_goes_on(h, name) && !is_one_of(name, ours);
}

/* ---- requests ------------------------------------------------------------------------ */

/* Cookies under their names inside, without those that carry a token. */
static void print_cookies(struct http_print *p, const struct http_head *h,
                          const struct forward_way *way)
{
	AUTO(str_done) struct str all = { .max = COOKIES_MAX };

	for (size_t i = 0; i < h->n_fields; i++) {
		AUTO(str_done) struct str own = { .max = COOKIES_MAX };
		struct span field = h->fields[i].value, name, value;

		if (!span_is_nocase(h->fields[i].name, "Cookie"))
			continue;
		if (way->tag) {
			cookie_in(field, way->tag, &own);
			field = (struct span){ str_text(&own), own.len };
		}
		if (!way->tag && !carry_in(&way->carry, field)) {
			http_print_field(p, span_of("Cookie"), field);
			continue;
		}
		while (cookie_next(&field, &name, &value))
			if (!carry_in(&way->carry, name) && !carry_in(&way->carry, value))
				add_cookie(&all, name, value);
	}
	if (all.len > 0)
		http_print_text(p, "Cookie", str_text(&all));
}

int forward_request(const struct http_head *h, const struct forward_way *way, struct str *out,
                    struct err *e)
{
	AUTO(str_done) struct str target = { .max = HTTP_HEAD_MAX };
	const struct span *host = http_header(h, "Host");

	if (!host)
		return err_new(e, ERR_INVALID, "a request without a host");
	carry_query(&way->carry, h->target, &target);
	struct span to = { str_text(&target), target.len };

	if (carry_in(&way->carry, to))
		return err_new(e, ERR_INVALID, "the path has a token of this daemon in it");
	struct http_print p = http_print_request(out, h->method, to);

	http_print_field(&p, span_of("Host"), way->host ? span_of(way->host) : *host);
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (goes_on(h, f->name, of_request) && !is_one_of(f->name, way->drops) &&
		    !carry_in(&way->carry, f->value))
			http_print_field(&p, f->name, f->value);
	}
	print_cookies(&p, h, way);
	http_print_field(&p, span_of("X-Forwarded-Host"), *host);
	http_print_text(&p, "X-Forwarded-Proto", way->proto ? way->proto : "http");
	http_print_text(&p, "X-Forwarded-For", "127.0.0.1");
	http_print_framing(&p, h->body, h->length);
	if (h->is_upgrade_websocket)
		http_print_text(&p, "Upgrade", "websocket");
	http_print_text(&p, "Connection", h->is_upgrade_websocket ? "Upgrade" : "close");
	return http_print_end(&p, e);
}

/* ---- answers ------------------------------------------------------------------------- */

static const char *copy(struct arena *a, struct span s)
{
	return arena_strndup(a, s.at, s.len);
}

void forward_answer(const struct http_head *h, const char *tag, struct arena *a,
                    const char *out[FORWARD_FIELDS])
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];
		AUTO(str_done) struct str cookie = { .max = HTTP_HEAD_MAX + 64 };

		if (span_is_nocase(f->name, "Set-Cookie") && !tag) {
			out[n++] = "Set-Cookie";
			out[n++] = copy(a, f->value);
		} else if (span_is_nocase(f->name, "Set-Cookie") &&
		           cookie_out(f->value, tag, &cookie)) {
			out[n++] = "Set-Cookie";
			out[n++] = arena_strdup(a, str_text(&cookie));
		} else if (goes_on(h, f->name, of_answer)) {
			out[n++] = copy(a, f->name);
			out[n++] = copy(a, f->value);
		}
	}
	out[n] = NULL;
}

/* ---- who asks ------------------------------------------------------------------------ */

bool forward_host_is(const struct http_head *h, uint16_t port)
{
	return h->port == port &&
	       (span_is(h->host, "127.0.0.1") || span_is_nocase(h->host, "localhost") ||
	        span_is(h->host, "[::1]"));
}

static bool is_own_origin(const struct http_head *h)
{
	static const char scheme[] = "http://";
	const struct span *origin = http_header(h, "Origin"), *host = http_header(h, "Host");

	if (!origin)
		return true;
	return host && http_header_count(h, "Origin") == 1 && begins(*origin, span_of(scheme)) &&
	       span_same_nocase(span_after(*origin, strlen(scheme)), *host);
}

/* Somebody follows a link, wherever it was: nothing is read by that page. */
static bool is_navigation(const struct http_head *h)
{
	const struct span *mode = http_header(h, "Sec-Fetch-Mode");
	const struct span *dest = http_header(h, "Sec-Fetch-Dest");

	return mode && span_is(*mode, "navigate") && dest && span_is(*dest, "document") &&
	       (span_is(h->method, "GET") || span_is(h->method, "HEAD"));
}

bool forward_is_own_page(const struct http_head *h)
{
	const struct span *site = http_header(h, "Sec-Fetch-Site");

	if (!is_own_origin(h))
		return false;
	return !site || span_is(*site, "same-origin") || span_is(*site, "none") || is_navigation(h);
}
