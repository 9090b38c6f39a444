/*
 * special.h - addresses that are not somewhere on the Internet (IANA's special-purpose registries).
 *
 * A name that resolves to one leads into the host or its network, so only what the operator granted
 * is dialled. Where credentials of a machine are handed out (metadata services) nobody can grant.
 * An IPv4 address is in the first four bytes.
 */
#pragma once

#include "base/base.h"

enum special {
	SPECIAL_NONE,
	SPECIAL_UNSPECIFIED, /* 0.0.0.0/8, :: */
	SPECIAL_LOOPBACK,
	SPECIAL_PRIVATE,    /* RFC 1918 */
	SPECIAL_LINK_LOCAL, /* fec0::/10 too */
	SPECIAL_CGNAT,
	SPECIAL_ULA,
	SPECIAL_MULTICAST,
	SPECIAL_BENCHMARK, /* our own synthetic addresses lie there */
	SPECIAL_DOC,
	SPECIAL_RESERVED,  /* broadcast, protocol assignments, discard, not allocated */
	SPECIAL_V4_MAPPED, /* ::ffff:0:0/96 and the older forms: compatible, translated, ISATAP */
	SPECIAL_NAT64,     /* 64:ff9b::/96, 64:ff9b:1::/48 */
	SPECIAL_SIX_TO_FOUR,
	SPECIAL_TEREDO,
	SPECIAL_METADATA, /* of a cloud, also inside of one of the four above */
	SPECIAL_COUNT
};

enum special special_class(const uint8_t addr[16], bool is_v6);
bool special_never(const uint8_t addr[16], bool is_v6); /* metadata: not even by the operator */
const char *special_name(enum special s);               /* "private", "metadata", ... */

/* The IPv4 addresses that an IPv6 one stands for; both must be allowed. Returns how many. */
size_t special_embedded(const uint8_t addr[16], uint8_t out[2][16]);
