/*
 * rules_decide.c - the one decision about a name, an address, and the first bytes that go there.
 */
#include "spec/rules-internal.h"

#include <arpa/inet.h>

#include "spec/special.h"

enum { PORT_TLS = 443 };

struct verdict verdict_deny(enum gate_reason why)
{
	return (struct verdict){ .what = VERDICT_DENY, .reason = why };
}

void verdict_by(struct verdict *v, const char *list, const char *text)
{
	snprintf(v->rule, sizeof v->rule, "%s: %s", list, text);
}

/* A verdict on the way, and what only the next steps need to know of the rule. */
struct finding {
	struct verdict v;
	bool is_port_named; /* 443 is not only for TLS */
	bool is_open;       /* mode allow: whatever the protocol */
};

static const struct mock_rule *mock_find(const struct rules *r, const char *name, uint16_t port)
{
	for (size_t i = 0; i < r->mock.len; i++)
		if (host_covers(&r->mock.at[i].host, name, port))
			return &r->mock.at[i];
	return NULL;
}

const struct host_rule *http_find(const struct rules *r, const char *name, uint16_t port)
{
	for (size_t i = 0; i < r->http.len; i++)
		if (host_covers(&r->http.at[i].host, name, port))
			return &r->http.at[i].host;
	return NULL;
}

enum pkg_kind rules_cached(const struct rules *r, const char *name, uint16_t port)
{
	for (size_t i = 0; i < r->cache.len; i++) {
		const struct host_rule *h = &r->cache.at[i].host;

		if (host_covers(h, name, port ? port : h->port))
			return r->cache.at[i].kind;
	}
	return PKG_NONE;
}

const struct header_rule *rules_header(const struct rules *r, const char *name, uint16_t port,
                                       struct span field)
{
	for (size_t i = 0; i < r->headers.len; i++)
		if (host_covers(&r->headers.at[i].host, name, port) &&
		    span_is_nocase(field, r->headers.at[i].name))
			return &r->headers.at[i];
	return NULL;
}

bool rules_has_headers(const struct rules *r, const char *name, uint16_t port)
{
	for (size_t i = 0; i < r->headers.len; i++)
		if (host_covers(&r->headers.at[i].host, name, port))
			return true;
	return false;
}

/* ---- names ---- */

static struct finding found(enum verdict_what what, const char *list, const struct host_rule *rule)
{
	struct finding f = { .v.what = what, .is_port_named = rule->port > 0 };

	verdict_by(&f.v, list, rule->text);
	return f;
}

/* The order of the rules is here and nowhere else. */
static struct finding find_name(const struct rules *r, const char *name, uint16_t port)
{
	const struct host_rule *rule = hosts_find(&r->deny, name, port);
	const struct mock_rule *mock = mock_find(r, name, port);
	struct finding f = { .v = verdict_deny(GATE_NO_RULE) };

	if (r->mode == NET_DENY)
		return f;
	if (rule) {
		f = found(VERDICT_DENY, "deny", rule);
		f.v.reason = GATE_RULE;
	} else if (mock) {
		f = found(VERDICT_ALLOW, "mock", &mock->host);
		f.v.mock = mock;
	} else if (r->is_offline && rules_cached(r, name, port) == PKG_NONE) {
		f.v.reason = GATE_OFFLINE;
	} else if ((rule = http_find(r, name, port))) {
		f = found(VERDICT_ALLOW, "http", rule);
		f.v.has_http = true;
	} else if ((rule = hosts_find(&r->allow, name, port))) {
		f = found(VERDICT_ALLOW, "allow", rule);
	} else if (r->mode == NET_ALLOW) {
		f = (struct finding){ .v.what = VERDICT_ALLOW, .is_open = true };
		verdict_by(&f.v, "mode", "allow");
	} else if ((rule = hosts_find(&r->ask, name, port))) {
		f = found(VERDICT_ASK, "ask", rule);
	}
	return f;
}

/* Is there a port of one of these rules that no deny rule takes away? */
static bool is_left(const struct rules *r, const struct host_rule *rule, const char *name)
{
	return host_covers(rule, name, rule->port) &&
	       (rule->port == 0 || !hosts_find(&r->deny, name, rule->port));
}

static const struct host_rule *left_of(const struct rules *r, const struct host_rules *l,
                                       const char *name)
{
	for (size_t i = 0; i < l->len; i++)
		if (is_left(r, &l->at[i], name))
			return &l->at[i];
	return NULL;
}

/* A lookup knows no port: any will do. */
static struct verdict decide_lookup(const struct rules *r, const char *name)
{
	const struct host_rule *deny = hosts_find(&r->deny, name, 0); /* of all ports */
	const struct host_rule *rule = NULL;

	if (r->mode == NET_DENY || deny)
		return find_name(r, name, 0).v;
	for (size_t i = 0; !rule && i < r->mock.len; i++)
		rule = is_left(r, &r->mock.at[i].host, name) ? &r->mock.at[i].host : NULL;
	for (size_t i = 0; !rule && i < r->http.len; i++)
		rule = is_left(r, &r->http.at[i].host, name) ? &r->http.at[i].host : NULL;
	if (!rule)
		rule = left_of(r, &r->allow, name);
	if (!rule)
		rule = left_of(r, &r->ask, name);
	return find_name(r, name, rule ? rule->port : 0).v;
}

/* ---- addresses ---- */

static bool is_granted(const struct rules *r, const struct rules_addr *to)
{
	uint8_t inner[2][16];
	enum gate_reason unused;

	if (!ranges_find(&r->grant, to))
		return false;
	for (size_t i = to->is_v6 ? special_embedded(to->at, inner) : 0; i-- > 0;) {
		struct rules_addr v4 = { .port = to->port };

		memcpy(v4.at, inner[i], sizeof v4.at);
		if (!rules_may_dial(r, &v4, &unused))
			return false;
	}
	return true;
}

bool rules_may_dial(const struct rules *r, const struct rules_addr *to, enum gate_reason *why)
{
	if (special_never(to->at, to->is_v6)) {
		*why = GATE_METADATA;
		return false;
	}
	if (ranges_find(&r->deny_cidr, to)) {
		*why = GATE_RULE;
		return false;
	}
	*why = GATE_SPECIAL;
	return (special_class(to->at, to->is_v6) == SPECIAL_NONE && !ranges_find(&r->own, to)) ||
	       is_granted(r, to);
}

static struct verdict find_address(const struct rules *r, const struct rules_addr *to)
{
	const struct range_rule *rule = ranges_find(&r->cidr, to);
	const struct range_rule *denied = ranges_find(&r->deny_cidr, to);
	struct verdict v = { .what = VERDICT_ALLOW };
	enum gate_reason why = GATE_NONE;

	if (special_never(to->at, to->is_v6))
		return verdict_deny(GATE_METADATA);
	if (denied && r->mode != NET_DENY) {
		v = verdict_deny(GATE_RULE);
		verdict_by(&v, "deny_cidr", denied->text);
		return v;
	}
	if (r->mode == NET_DENY || (!rule && r->mode != NET_ALLOW))
		return verdict_deny(GATE_LITERAL);
	if (r->is_offline)
		return verdict_deny(GATE_OFFLINE);
	verdict_by(&v, rule ? "cidr" : "mode", rule ? rule->text : "allow");
	if (!rules_may_dial(r, to, &why)) {
		v.what = VERDICT_DENY;
		v.reason = why;
	}
	return v;
}

/* ---- first bytes ---- */

/* The rule stays: it is the one that the connection was judged under. */
static struct verdict refuse(struct verdict v, enum gate_reason why)
{
	struct verdict denied = verdict_deny(why);

	memcpy(denied.rule, v.rule, sizeof denied.rule);
	return denied;
}

enum gate_reason said_check(const struct question *q)
{
	const struct said *s = &q->said;

	if (s->kind == SAID_BAD)
		return GATE_NAME_BAD;
	if (s->port > 0 && s->port != q->to.port)
		return GATE_NAME_MISMATCH;
	if (!q->name)
		return GATE_NONE;
	if (s->kind == SAID_NOTHING)
		return q->proto == GATE_PROTO_TLS ? GATE_NO_SNI : GATE_NAME_MISMATCH;
	return s->kind == SAID_NAME && strcmp(s->name, q->name) == 0 ? GATE_NONE
	                                                             : GATE_NAME_MISMATCH;
}

/* What is wrong with the protocol on a connection to a name. */
static enum gate_reason check_named(const struct rules *r, const struct question *q,
                                    const struct finding *f)
{
	bool may_be_any = f->is_port_named || f->is_open;
	enum gate_reason why = GATE_NONE;

	switch (q->proto) {
	case GATE_PROTO_TLS:
		why = said_check(q);
		if (why == GATE_NO_SNI &&
		    (f->is_open || hosts_find(&r->tls_any, q->name, q->to.port)))
			why = GATE_NONE;
		return why;
	case GATE_PROTO_HTTP:
		return q->to.port == PORT_TLS && !may_be_any ? GATE_PROTOCOL : said_check(q);
	case GATE_PROTO_SSH:
	case GATE_PROTO_TCP:
		return f->v.is_terminated || (q->to.port == PORT_TLS && !may_be_any) ? GATE_PROTOCOL
		                                                                     : GATE_NONE;
	case GATE_UNKNOWN:
	case GATE_PROTO_DNS:
	case GATE_PROTOS:
		break;
	}
	return GATE_PROTOCOL;
}

static struct verdict decide_name(const struct rules *r, const struct question *q)
{
	struct finding f = find_name(r, q->name, q->to.port);
	enum gate_reason why = GATE_NONE;

	if (f.v.what == VERDICT_DENY)
		return f.v;
	if (!f.v.mock)
		f.v.cache = rules_cached(r, q->name, q->to.port);
	f.v.is_terminated = f.v.mock || f.v.has_http || f.v.cache != PKG_NONE ||
	                    hosts_find(&r->inspect, q->name, q->to.port) ||
	                    rules_has_headers(r, q->name, q->to.port) || rules_is_bound(r, q->name);
	if (f.v.what == VERDICT_ASK && q->is_answered)
		f.v.what = VERDICT_ALLOW;
	if (q->stage == STAGE_BYTES)
		why = check_named(r, q, &f);
	return why == GATE_NONE ? f.v : refuse(f.v, why);
}

/* Whoever knows the address of a name does not get around the rules for it. */
static struct verdict decide_address(const struct rules *r, const struct question *q)
{
	struct verdict v = find_address(r, &q->to);
	const char *name = q->said.name;
	enum gate_reason why = GATE_NONE;

	if (v.what == VERDICT_DENY || q->stage != STAGE_BYTES)
		return v;
	if (q->proto == GATE_PROTO_TLS || q->proto == GATE_PROTO_HTTP)
		why = said_check(q);
	if (why == GATE_NONE && q->said.kind == SAID_NAME) {
		struct finding f = find_name(r, name, q->to.port);

		if (f.v.reason == GATE_RULE)
			return f.v;
		if (f.v.mock || f.v.has_http || hosts_find(&r->inspect, name, q->to.port) ||
		    rules_has_headers(r, name, q->to.port) || rules_is_bound(r, name))
			why = GATE_NAME_MISMATCH;
	}
	return why == GATE_NONE ? v : refuse(v, why);
}

struct verdict rules_decide(const struct rules *r, const struct question *q)
{
	if (q->stage == STAGE_LOOKUP)
		return q->name ? decide_lookup(r, q->name) : verdict_deny(GATE_NAME_BAD);
	return q->name ? decide_name(r, q) : decide_address(r, q);
}

bool rules_resolves(const struct rules *r, const char *name)
{
	return decide_lookup(r, name).what != VERDICT_DENY;
}

/* ---- for people ---- */

static bool literal_read(const char *text, struct rules_addr *out)
{
	out->is_v6 = strchr(text, ':');
	return inet_pton(out->is_v6 ? AF_INET6 : AF_INET, text, out->at) == 1;
}

/* The one line that would change the verdict, or nothing. */
static void narrowest_of(const struct verdict *v, const struct question *q, const char *text,
                         struct str *out)
{
	const char *list = q->name ? "allow" : "cidr";

	if (v->what == VERDICT_ALLOW || v->reason == GATE_RULE || v->reason == GATE_METADATA ||
	    v->reason == GATE_OFFLINE)
		return;
	if (v->reason == GATE_SPECIAL)
		list = "grant"; /* of the operator */
	str_addf(out, "%s: %s%s:%u", list, text,
	         q->name       ? ""
	         : q->to.is_v6 ? "/128"
	                       : "/32",
	         q->to.port);
}

struct verdict rules_explain(const struct rules *r, const char *name, uint16_t port,
                             struct str *rule, struct str *narrowest)
{
	char canonical[GATE_NAME_SIZE] = "", shown[INET6_ADDRSTRLEN] = "";
	struct question q = { .stage = STAGE_CONNECT, .to.port = port ? port : PORT_TLS };

	if (hostname_read(name, strlen(name), canonical))
		q.name = canonical;
	else if (!literal_read(name, &q.to))
		return verdict_deny(GATE_NAME_BAD);
	struct verdict v = rules_decide(r, &q);

	if (!q.name)
		(void)inet_ntop(q.to.is_v6 ? AF_INET6 : AF_INET, q.to.at, shown, sizeof shown);
	str_add(rule, v.rule);
	narrowest_of(&v, &q, q.name ? canonical : shown, narrowest);
	return v;
}
