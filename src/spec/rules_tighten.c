/*
 * rules_tighten.c - do new rules allow nothing that the old ones did not?
 *
 * Rule against rule: each thing that the new document allows must lie within one rule of the old
 * one, and each restriction of the old one that touches it must be there still. Two rules that
 * only together contain a third are not seen; then the answer is no, and the operator decides.
 */
#include "spec/rules-internal.h"

enum { PORT_TLS = 443 };

/* On 443 a rule that names the port allows more than one that does not: any protocol. */
static bool lets(const struct host_rule *old, const struct host_rule *new)
{
	return host_contains(old, new) && (new->port != PORT_TLS || old->port == PORT_TLS);
}

static bool some_lets(const struct host_rules *l, const struct host_rule *new)
{
	for (size_t i = 0; i < l->len; i++)
		if (lets(&l->at[i], new))
			return true;
	return false;
}

static bool some_contains(const struct host_rules *l, const struct host_rule *inner)
{
	for (size_t i = 0; i < l->len; i++)
		if (host_contains(&l->at[i], inner))
			return true;
	return false;
}

static bool has_text(const struct text_list *l, const char *text)
{
	for (size_t i = 0; i < l->len; i++)
		if (strcmp(l->at[i], text) == 0)
			return true;
	return false;
}

/* Every entry is in the old list; an empty list is everything. */
static bool is_within(const struct text_list *old, const struct text_list *new)
{
	if (old->len == 0)
		return true;
	for (size_t i = 0; i < new->len; i++)
		if (!has_text(old, new->at[i]))
			return false;
	return new->len > 0;
}

/* ---- restrictions of the old rules ---- */

static bool http_contains(const struct rules *r, const struct host_rule *inner)
{
	for (size_t i = 0; i < r->http.len; i++)
		if (host_contains(&r->http.at[i].host, inner))
			return true;
	return false;
}

/* TLS ends at the gate for these too, and only HTTP is spoken. */
static bool cache_contains(const struct rules *r, const struct host_rule *inner)
{
	for (size_t i = 0; i < r->cache.len; i++)
		if (host_contains(&r->cache.at[i].host, inner))
			return true;
	return false;
}

static bool some_meets(const struct host_rules *l, const struct host_rule *h)
{
	for (size_t i = 0; i < l->len; i++)
		if (host_meets(&l->at[i], h))
			return true;
	return false;
}

/* Names or addresses of the new rules can be where the old rule speaks. An address may be that of
 * any name. */
static bool is_reachable(const struct rules *r, const struct host_rule *h)
{
	if (r->mode == NET_DENY)
		return false;
	if (r->mode == NET_ALLOW || r->cidr.len > 0 || some_meets(&r->allow, h) ||
	    some_meets(&r->ask, h))
		return true;
	for (size_t i = 0; i < r->http.len; i++)
		if (host_meets(&r->http.at[i].host, h))
			return true;
	for (size_t i = 0; i < r->mock.len; i++)
		if (host_meets(&r->mock.at[i].host, h))
			return true;
	return false;
}

static const struct mock_rule *same_mock(const struct rules *r, const struct mock_rule *m)
{
	for (size_t i = 0; i < r->mock.len; i++)
		if (strcmp(r->mock.at[i].host.text, m->host.text) == 0 &&
		    strcmp(r->mock.at[i].content, m->content) == 0)
			return &r->mock.at[i];
	return NULL;
}

/* What is read because it is cached stays so, or is looked at. */
static bool keeps_reading(const struct rules *now, const struct rules *next)
{
	for (size_t i = 0; i < now->cache.len; i++) {
		const struct host_rule *h = &now->cache.at[i].host;

		if (is_reachable(next, h) && !cache_contains(next, h) &&
		    !some_contains(&next->inspect, h))
			return false;
	}
	return true;
}

/* What was asked for is asked for still. */
static bool keeps_asking(const struct rules *next, const struct request_rule *old)
{
	for (size_t i = 0; i < next->http.len; i++) {
		const struct request_rule *new = &next->http.at[i];

		if (new->is_ask && host_contains(&new->host, &old->host) &&
		    is_within(&new->methods, &old->methods) && is_within(&new->paths, &old->paths))
			return true;
	}
	return false;
}

/* A field may be what a server lets somebody in by: more of them, fewer, and another order, in
 * which another one is the first that says it, may be more. */
static bool keeps_headers(const struct rules *now, const struct rules *next)
{
	if (now->headers.len != next->headers.len)
		return false;
	for (size_t i = 0; i < now->headers.len; i++)
		if (strcmp(now->headers.at[i].text, next->headers.at[i].text) != 0)
			return false;
	return true;
}

static bool keeps_restrictions(const struct rules *now, const struct rules *next)
{
	for (size_t i = 0; i < now->deny.len; i++)
		if (is_reachable(next, &now->deny.at[i]) &&
		    !some_contains(&next->deny, &now->deny.at[i]))
			return false;
	for (size_t i = 0; i < now->inspect.len; i++)
		if (is_reachable(next, &now->inspect.at[i]) &&
		    !some_contains(&next->inspect, &now->inspect.at[i]))
			return false;
	for (size_t i = 0; i < now->http.len; i++)
		if (is_reachable(next, &now->http.at[i].host) &&
		    (!http_contains(next, &now->http.at[i].host) ||
		     (now->http.at[i].is_ask && !keeps_asking(next, &now->http.at[i]))))
			return false;
	for (size_t i = 0; i < now->mock.len; i++)
		if (is_reachable(next, &now->mock.at[i].host) && !same_mock(next, &now->mock.at[i]))
			return false;
	return keeps_headers(now, next) && keeps_reading(now, next) &&
	       (!now->is_offline || next->is_offline);
}

/* ---- what the new rules allow ---- */

static bool was_allowed(const struct rules *now, const struct host_rule *h)
{
	return now->mode == NET_ALLOW || some_lets(&now->allow, h);
}

/* A rule of http lies within another; or what had no such rule gets one. */
static bool http_lets(const struct rules *now, const struct request_rule *new)
{
	bool is_met = false;

	for (size_t i = 0; i < now->http.len; i++) {
		const struct request_rule *old = &now->http.at[i];

		is_met |= host_meets(&old->host, &new->host);
		if (lets(&old->host, &new->host) && is_within(&old->methods, &new->methods) &&
		    is_within(&old->paths, &new->paths) && (new->is_ask || !old->is_ask))
			return true;
	}
	return !is_met && was_allowed(now, &new->host);
}

static bool allows_no_name_more(const struct rules *now, const struct rules *next)
{
	for (size_t i = 0; i < next->allow.len; i++)
		if (!was_allowed(now, &next->allow.at[i]))
			return false;
	for (size_t i = 0; i < next->ask.len; i++)
		if (!was_allowed(now, &next->ask.at[i]) && !some_lets(&now->ask, &next->ask.at[i]))
			return false;
	for (size_t i = 0; i < next->http.len; i++)
		if (!http_lets(now, &next->http.at[i]))
			return false;
	for (size_t i = 0; i < next->mock.len; i++)
		if (!same_mock(now, &next->mock.at[i]))
			return false;
	for (size_t i = 0; i < next->tls_any.len; i++)
		if (!some_contains(&now->tls_any, &next->tls_any.at[i]))
			return false;
	return next->mode != NET_ALLOW || now->mode == NET_ALLOW;
}

/* Who is offline has what is cached, and nothing else. */
static bool caches_no_more(const struct rules *now, const struct rules *next)
{
	for (size_t i = 0; now->is_offline && i < next->cache.len; i++)
		if (!cache_contains(now, &next->cache.at[i].host))
			return false;
	return true;
}

static bool ranges_contain(const struct range_rules *l, const struct range_rule *inner)
{
	for (size_t i = 0; i < l->len; i++)
		if (range_contains(&l->at[i], inner))
			return true;
	return false;
}

static bool allows_no_address_more(const struct rules *now, const struct rules *next)
{
	for (size_t i = 0; i < now->deny_cidr.len; i++)
		if (!ranges_contain(&next->deny_cidr, &now->deny_cidr.at[i]))
			return false;
	for (size_t i = 0; i < next->cidr.len; i++)
		if (now->mode != NET_ALLOW && !ranges_contain(&now->cidr, &next->cidr.at[i]))
			return false;
	for (size_t i = 0; i < next->grant.len; i++)
		if (!ranges_contain(&now->grant, &next->grant.at[i]))
			return false;
	return true;
}

/* ---- how much, and through whom ---- */

static bool is_no_more(uint64_t now, uint64_t next)
{
	return now == 0 || (next > 0 && next <= now);
}

static bool keeps_rates(const struct rates *now, const struct rates *next)
{
	return is_no_more(now->connections, next->connections) &&
	       (now->connections == 0 || next->connections_ms >= now->connections_ms) &&
	       is_no_more(now->bytes_up, next->bytes_up) &&
	       is_no_more(now->bytes_down, next->bytes_down) && is_no_more(now->up, next->up) &&
	       is_no_more(now->down, next->down);
}

static bool is_same_proxy(const struct rules *now, const struct rules *next)
{
	return now->proxy == next->proxy && now->proxy_port == next->proxy_port &&
	       (now->proxy == PROXY_NONE || strcmp(now->proxy_host, next->proxy_host) == 0);
}

/* A field that is not judged below would let looser rules pass as tighter ones: judge it, then
 * change the number. Not judged, since they allow nothing by themselves: arena, own (the host's),
 * creds and canaries (the daemon's), ask_ms. */
_Static_assert(sizeof(struct rates) == 40, "a new rate is judged in keeps_rates()");
_Static_assert(sizeof(struct rules) == 416, "a new field is judged in rules_tightens()");

bool rules_tightens(const struct rules *now, const struct rules *next)
{
	if (next->mode == NET_DENY)
		return true;
	return now->mode != NET_DENY && is_same_proxy(now, next) && keeps_restrictions(now, next) &&
	       allows_no_name_more(now, next) && allows_no_address_more(now, next) &&
	       caches_no_more(now, next) && keeps_rates(&now->rates, &next->rates);
}
