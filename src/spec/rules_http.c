/*
 * rules_http.c - requests: method and path of what was terminated, or came in plain text.
 */
#include "spec/rules-internal.h"

static bool segment_matches(struct span pattern, struct span text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

	if (span_is(pattern, "*"))
		return text.len > 0;
	while (t < text.len) {
		if (p < pattern.len && pattern.at[p] == '*') {
			star = p++;
			from = t;
		} else if (p < pattern.len && pattern.at[p] == text.at[t]) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.at[p] == '*')
		p++;
	return p == pattern.len;
}

/* The segment behind the slash at `at`. */
static struct span segment(const char *at)
{
	return (struct span){ at + 1, strcspn(at + 1, "/") };
}

static const char *behind(struct span s)
{
	return s.at + s.len;
}

/* Back to the last ** when something does not fit: linear in the product, whatever the pattern. */
bool path_matches(const char *pattern, const char *path)
{
	const char *star = NULL, *from = NULL;

	if (*pattern != '/' || *path != '/')
		return false;
	while (*path) {
		struct span p = *pattern ? segment(pattern) : (struct span){ pattern, 0 };
		struct span t = segment(path);

		if (span_is(p, "**") && !*behind(p))
			return true;
		if (span_is(p, "**")) {
			pattern = star = behind(p);
			from = path;
		} else if (*pattern && segment_matches(p, t)) {
			pattern = behind(p);
			path = behind(t);
		} else if (star) {
			path = from = behind(segment(from));
			pattern = star;
		} else {
			return false;
		}
	}
	return !*pattern;
}

static bool has_method(const struct request_rule *rule, const char *method)
{
	for (size_t i = 0; i < rule->methods.len; i++)
		if (strcmp(rule->methods.at[i], method) == 0)
			return true;
	return rule->methods.len == 0;
}

static bool has_path(const struct request_rule *rule, const char *path)
{
	for (size_t i = 0; i < rule->paths.len; i++)
		if (path_matches(rule->paths.at[i], path))
			return true;
	return rule->paths.len == 0;
}

/* Some rule of that host is about paths: what is no clear path is not for anybody then. */
static bool is_about_paths(const struct rules *r, const struct question *q)
{
	for (size_t i = 0; i < r->http.len; i++)
		if (r->http.at[i].paths.len > 0 &&
		    host_covers(&r->http.at[i].host, q->name, q->to.port))
			return true;
	return false;
}

static struct verdict judge(const struct rules *r, const struct question *q, const char *method,
                            const char *path)
{
	const struct host_rule *host = http_find(r, q->name, q->to.port);
	const struct request_rule *found = NULL;
	struct verdict v = { .what = VERDICT_ALLOW };
	const bool is_bad = !path && host && is_about_paths(r, q);

	if (!host)
		return v;
	verdict_by(&v, "http", host->text);
	v.has_http = true;
	for (size_t i = 0; !is_bad && i < r->http.len; i++) {
		const struct request_rule *rule = &r->http.at[i];

		if (host_covers(&rule->host, q->name, q->to.port) && has_method(rule, method) &&
		    has_path(rule, path) && (!found || (rule->is_ask && !found->is_ask)))
			found = rule;
	}
	if (found) {
		verdict_by(&v, found->is_ask ? "http ask" : "http", found->host.text);
		v.what = found->is_ask ? VERDICT_ASK : VERDICT_ALLOW;
		return v;
	}
	v.what = VERDICT_DENY;
	v.reason = is_bad ? GATE_HTTP_BAD : GATE_HTTP_RULE;
	return v;
}

struct verdict rules_http(const struct rules *r, const struct question *q, const char *method,
                          const char *path)
{
	struct question asked = *q;

	asked.proto = GATE_PROTO_HTTP;
	enum gate_reason why = said_check(&asked);

	if (why != GATE_NONE)
		return verdict_deny(why);
	if (strcmp(method, "CONNECT") == 0 || strcmp(method, "TRACE") == 0)
		return verdict_deny(GATE_HTTP_RULE);
	return q->name ? judge(r, q, method, path) : (struct verdict){ .what = VERDICT_ALLOW };
}
