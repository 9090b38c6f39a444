/*
 * rules_match.c - names against patterns, addresses against ranges.
 */
#include "spec/rules-internal.h"

/* "a.b.example.org" is below "example.org". */
static bool is_below(struct span name, const struct host_rule *h)
{
	return name.len > h->len + 1 && name.at[name.len - h->len - 1] == '.' &&
	       memcmp(name.at + name.len - h->len, h->name, h->len) == 0;
}

static bool is_same(struct span name, const struct host_rule *h)
{
	return name.len == h->len && memcmp(name.at, h->name, h->len) == 0;
}

static bool name_covers(const struct host_rule *h, struct span name)
{
	switch (h->kind) {
	case HOST_EVERY:
		return true;
	case HOST_EXACT:
		return is_same(name, h);
	case HOST_ONE:
		return is_below(name, h) && !memchr(name.at, '.', name.len - h->len - 1);
	case HOST_DEEP:
		return is_below(name, h);
	}
	return false;
}

bool host_covers(const struct host_rule *h, const char *name, uint16_t port)
{
	return (h->port == 0 || h->port == port) && name_covers(h, span_of(name));
}

static bool pattern_contains(const struct host_rule *outer, const struct host_rule *inner)
{
	struct span name = { inner->name, inner->len };

	if (outer->kind == HOST_EVERY)
		return true;
	if (inner->kind == HOST_EVERY || outer->kind == HOST_EXACT)
		return inner->kind == HOST_EXACT && is_same(name, outer);
	if (inner->kind == HOST_EXACT)
		return name_covers(outer, name);
	if (outer->kind == HOST_ONE)
		return inner->kind == HOST_ONE && is_same(name, outer);
	return is_same(name, outer) || is_below(name, outer);
}

bool host_contains(const struct host_rule *outer, const struct host_rule *inner)
{
	return (outer->port == 0 || outer->port == inner->port) && pattern_contains(outer, inner);
}

/* Two patterns have no name in common, or one has all of the other. */
bool host_meets(const struct host_rule *a, const struct host_rule *b)
{
	return (a->port == 0 || b->port == 0 || a->port == b->port) &&
	       (pattern_contains(a, b) || pattern_contains(b, a));
}

const struct host_rule *hosts_find(const struct host_rules *l, const char *name, uint16_t port)
{
	const struct host_rule *found = NULL;

	for (size_t i = 0; i < l->len; i++) {
		if (!host_covers(&l->at[i], name, port))
			continue;
		if (l->at[i].port > 0)
			return &l->at[i];
		if (!found)
			found = &l->at[i];
	}
	return found;
}

/* ---- ranges ---- */

static bool has_prefix(const uint8_t *addr, const uint8_t *prefix, unsigned bits)
{
	size_t whole = bits / 8;
	unsigned mask = 0xffu << (8 - bits % 8) & 0xffu;

	return memcmp(addr, prefix, whole) == 0 &&
	       (bits % 8 == 0 || ((addr[whole] ^ prefix[whole]) & mask) == 0);
}

bool range_covers(const struct range_rule *r, const struct rules_addr *a)
{
	return r->is_v6 == a->is_v6 && (r->port == 0 || r->port == a->port) &&
	       has_prefix(a->at, r->addr, r->bits);
}

bool range_contains(const struct range_rule *outer, const struct range_rule *inner)
{
	return outer->is_v6 == inner->is_v6 && outer->bits <= inner->bits &&
	       (outer->port == 0 || outer->port == inner->port) &&
	       has_prefix(inner->addr, outer->addr, outer->bits);
}

const struct range_rule *ranges_find(const struct range_rules *l, const struct rules_addr *a)
{
	for (size_t i = 0; i < l->len; i++)
		if (range_covers(&l->at[i], a))
			return &l->at[i];
	return NULL;
}
