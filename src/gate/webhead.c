#include "gate/webhead.h"

#define TARGET_MAX (HTTP_TARGET_MAX + 4 * SECRET_VALUE_MAX)

static void print_host(struct http_print *p, const struct http_head *h)
{
	char text[GATE_NAME_SIZE + sizeof ":65535"];

	if (h->port > 0)
		snprintf(text, sizeof text, "%.*s:%u", (int)h->host.len, h->host.at, h->port);
	else
		snprintf(text, sizeof text, "%.*s", (int)h->host.len, h->host.at);
	http_print_text(p, "Host", text);
}

static void print_connection(struct http_print *p, bool is_upgrade, bool is_last)
{
	if (is_upgrade)
		http_print_text(p, "Upgrade", "websocket");
	if (is_upgrade || is_last)
		http_print_text(p, "Connection", is_upgrade ? "Upgrade" : "close");
}

/* The first line; with a secret in its query, where that is said there. */
static struct http_print print_first(const struct http_head *h, const struct injection *j,
                                     struct str *out)
{
	if (!j || inject_field(j))
		return http_print_request(out, h->method, h->path);
	struct str target = { .max = TARGET_MAX };

	str_room(&target, TARGET_MAX);
	inject_target(j, h->path, &target);
	struct http_print p =
	    http_print_request(out, h->method, (struct span){ str_text(&target), target.len });

	if (target.overflow)
		p.wrong = "the target is too long";
	str_wipe(&target);
	return p;
}

static void print_injected(struct http_print *p, const struct injection *j)
{
	const char *name = inject_field(j);

	if (j->sign)
		sigv4_print(j->sign, p);
	else if (name)
		http_print_field(p, span_of(name), j->said);
	/* In what is coded nobody could find it. */
	http_print_text(p, "Accept-Encoding", "identity");
}

static bool is_set(const struct webhead_to *to, struct span field)
{
	return to->name && rules_header(to->rules, to->name, to->port, field);
}

/* The first rule for a field says it; not where a secret is said. */
static void print_set(struct http_print *p, const struct webhead_to *to, const struct injection *j)
{
	for (size_t i = 0; to->name && i < to->rules->headers.len; i++) {
		const struct header_rule *rule = &to->rules->headers.at[i];
		struct span name = span_of(rule->name);

		if (rules_header(to->rules, to->name, to->port, name) == rule &&
		    !(j && inject_replaces(j, name)))
			http_print_field(p, name, span_of(rule->value));
	}
}

/* By which a server is told of another method, target or host than the first line and Host say. */
static bool is_override(struct span field)
{
	static const char *const names[] = {
		"X-HTTP-Method-Override",
		"X-Method-Override",
		"X-HTTP-Method",
		"X-Original-Method",
		"X-Forwarded-Method",
		"X-Original-URL",
		"X-Original-URI",
		"X-Rewrite-URL",
		"X-Override-URL",
		"X-Forwarded-URL",
		"X-Forwarded-Uri",
		"X-Forwarded-Path",
		"X-Forwarded-Prefix",
		"X-Forwarded-Host",
		"X-Forwarded-Server",
		"X-Forwarded-Scheme",
		"X-Forwarded-Proto",
		"X-Forwarded-Port",
		"X-Original-Host",
		"X-Host",
		"X-HTTP-Host-Override",
		"X-Proxy-Url",
		"X-Envoy-Original-Path",
		"X-Replaced-Path",
		"X-Script-Name",
		"X-Http-Destinationurl",
		"Forwarded",
		"Request-Uri",
		"Destination-Url",
	};

	for (size_t i = 0; i < COUNT(names); i++)
		if (span_is_nocase(field, names[i]))
			return true;
	return memchr(field.at, '_', field.len); /* CGI reads it as a dash */
}

/* Of a request whose method or path was judged, nothing else may say what they are. */
static bool is_judged(const struct webhead_to *to)
{
	return to->name && rules_judges_requests(to->rules, to->name, to->port);
}

int webhead_request(const struct http_head *h, const struct injection *j,
                    const struct webhead_to *to, struct str *out, struct err *e)
{
	struct http_print p = print_first(h, j, out);
	const bool has_no_overrides = is_judged(to);

	if (h->host.len > 0)
		print_host(&p, h);
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (http_goes_on(h, f->name) && !span_is_nocase(f->name, "Host") &&
		    !span_is_nocase(f->name, "Expect") && !(j && inject_replaces(j, f->name)) &&
		    !is_set(to, f->name) && !(has_no_overrides && is_override(f->name)))
			http_print_field(&p, f->name, f->value);
	}
	print_set(&p, to, j);
	if (j)
		print_injected(&p, j);
	if (h->expect_continue)
		http_print_text(&p, "Expect", "100-continue");
	http_print_framing(&p, h->body, h->length);
	print_connection(&p, h->is_upgrade_websocket, !h->keep_alive);
	return http_print_end(&p, e);
}

int webhead_answer(const struct http_head *h, const struct webhead_way *way, struct str *out,
                   struct err *e)
{
	struct http_print p = http_print_response(out, h->status);
	bool has_length = h->has_length && h->status >= 200 && h->status != 204;

	for (size_t i = 0; i < h->n_fields; i++)
		if (http_goes_on(h, h->fields[i].name) &&
		    !(way->is_cached && span_is_nocase(h->fields[i].name, CACHE_FIELD)))
			http_print_field(&p, h->fields[i].name, h->fields[i].value);
	/* Of a body that is not sent the length is said all the same (HEAD, 304). */
	http_print_framing(&p, has_length ? HTTP_LENGTH : way->body, h->length);
	print_connection(&p, h->status == 101, way->is_last && h->status >= 200);
	return http_print_end(&p, e);
}

/* RFC 9110, 6.5.1: not what frames, routes, or says who asks. */
static bool may_trail(const struct http_head *none, struct span name)
{
	static const char *const never[] = {
		"Host",  "Authorization", "Cookie",        "Set-Cookie",   "Expect",
		"Range", "Cache-Control", "Content-Range", "Content-Type", "Content-Encoding"
	};

	for (size_t i = 0; i < COUNT(never); i++)
		if (span_is_nocase(name, never[i]))
			return false;
	return http_goes_on(none, name);
}

/* To a server: nor what says who asks, where a secret is bound, or what the request is about. */
static bool may_trail_to(const struct webhead_to *to, struct span name)
{
	if (!to || !to->name)
		return true;
	return !(rules_is_bound(to->rules, to->name) && inject_is_carrier(to->rules, name)) &&
	       !(is_judged(to) && is_override(name));
}

int webhead_last_chunk(const struct str *trailers, const struct webhead_to *to, struct str *out,
                       struct err *e)
{
	static const struct http_head none;
	static struct http_head h;

	if (http_trailers(trailers, &h) < 0)
		return err_new(e, ERR_INVALID, "fields behind the body are malformed");
	struct http_print p = http_print_trailers(out);

	for (size_t i = 0; i < h.n_fields; i++)
		if (may_trail(&none, h.fields[i].name) && may_trail_to(to, h.fields[i].name))
			http_print_field(&p, h.fields[i].name, h.fields[i].value);
	return http_print_end(&p, e);
}

int webhead_mock(const struct mock_answer *a, const struct webhead_way *way, struct str *out,
                 struct err *e)
{
	struct http_print p = http_print_response(out, (int)a->status);

	for (size_t i = 0; i < a->headers.len; i++)
		http_print_text(&p, a->headers.at[i].key, a->headers.at[i].value);
	http_print_framing(&p, way->body, a->body_len);
	print_connection(&p, false, way->is_last);
	return http_print_end(&p, e);
}

int webhead_status(enum gate_reason why)
{
	return why == GATE_NAME_MISMATCH                      ? 421
	       : why == GATE_HTTP_BAD || why == GATE_NAME_BAD ? 400
	       : why == GATE_SPOOL                            ? 503
	       : why == GATE_TOKEN                            ? 502
	                                                      : 403;
}

void webhead_refusal(int status, const char *text, bool has_body, struct str *out)
{
	struct err unused;
	struct http_print p = http_print_response(out, status);

	http_print_text(&p, "Content-Type", "text/plain; charset=utf-8");
	http_print_text(&p, "Cache-Control", "no-store");
	http_print_framing(&p, HTTP_LENGTH, strlen(text));
	print_connection(&p, false, true);
	if (http_print_end(&p, &unused) == 0 && has_body)
		str_add(out, text);
}
