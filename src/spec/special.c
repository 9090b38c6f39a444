#include "spec/special.h"

struct block {
	uint8_t prefix[16];
	uint8_t bits;
	enum special class;
};

/* The first row that matches counts. Everything that clouds and clusters use for identity lies in
 * two blocks of link-local addresses, or is one odd address of one of them. */
/* clang-format off */
static const struct block v4[] = {
	{ { 169, 254, 169 },      24, SPECIAL_METADATA }, /* .254 nearly all; .252, .253, .250 beside it */
	{ { 169, 254, 170 },      24, SPECIAL_METADATA }, /* AWS: tasks .2, pods .23 */
	{ { 169, 254, 0, 23 },    32, SPECIAL_METADATA }, /* Tencent */
	{ { 169, 254, 42, 42 },   32, SPECIAL_METADATA }, /* Scaleway */
	{ { 100, 100, 100, 200 }, 32, SPECIAL_METADATA }, /* Alibaba */
	{ { 100, 96, 0, 96 },     32, SPECIAL_METADATA }, /* Volcengine */
	{ { 192, 0, 0, 192 },     32, SPECIAL_METADATA }, /* Oracle, classic */
	{ { 168, 63, 129, 16 },   32, SPECIAL_METADATA }, /* Azure: a public one */
	{ { 0 },                  8,  SPECIAL_UNSPECIFIED },
	{ { 10 },                 8,  SPECIAL_PRIVATE },
	{ { 100, 64 },            10, SPECIAL_CGNAT },
	{ { 127 },                8,  SPECIAL_LOOPBACK },
	{ { 169, 254 },           16, SPECIAL_LINK_LOCAL },
	{ { 172, 16 },            12, SPECIAL_PRIVATE },
	{ { 192, 0, 0 },          24, SPECIAL_RESERVED },
	{ { 192, 0, 2 },          24, SPECIAL_DOC },
	{ { 192, 31, 196 },       24, SPECIAL_RESERVED }, /* AS112 */
	{ { 192, 52, 193 },       24, SPECIAL_RESERVED }, /* AMT */
	{ { 192, 88, 99 },        24, SPECIAL_SIX_TO_FOUR },
	{ { 192, 168 },           16, SPECIAL_PRIVATE },
	{ { 192, 175, 48 },       24, SPECIAL_RESERVED }, /* AS112 */
	{ { 198, 18 },            15, SPECIAL_BENCHMARK },
	{ { 198, 51, 100 },       24, SPECIAL_DOC },
	{ { 203, 0, 113 },        24, SPECIAL_DOC },
	{ { 224 },                4,  SPECIAL_MULTICAST },
	{ { 240 },                4,  SPECIAL_RESERVED },
};

static const struct block v6[] = {
	{ { 0xfd, 0x00, 0x0e, 0xc2 },       64, SPECIAL_METADATA }, /* AWS: ::254, ::23 and beside */
	{ { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54 },             128, SPECIAL_METADATA }, /* Google */
	{ { 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, SPECIAL_METADATA }, /* Oracle */
	{ { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 },                   128, SPECIAL_METADATA }, /* Scaleway */
	{ { 0xfd, 0x00, 0xa9, 0xfe, 0xa9, 0xfe, [15] = 1 },          128, SPECIAL_METADATA }, /* Akamai */
	{ { 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe },             128, SPECIAL_METADATA }, /* OpenStack */
	{ { [15] = 0 },                     128, SPECIAL_UNSPECIFIED },
	{ { [15] = 1 },                     128, SPECIAL_LOOPBACK },
	{ { 0 },                            96, SPECIAL_V4_MAPPED }, /* compatible */
	{ { [10] = 0xff, 0xff },            96, SPECIAL_V4_MAPPED },
	{ { [8] = 0xff, 0xff },             96, SPECIAL_V4_MAPPED }, /* translated */
	{ { 0x00, 0x64, 0xff, 0x9b },       96, SPECIAL_NAT64 },
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, SPECIAL_NAT64 },
	{ { 0x20, 0x01, 0x00, 0x00 },       32, SPECIAL_TEREDO },
	{ { 0x20, 0x01, 0x00, 0x02, 0, 0 }, 48, SPECIAL_BENCHMARK },
	{ { 0x20, 0x01, 0x00 },             23, SPECIAL_RESERVED }, /* protocol assignments */
	{ { 0x20, 0x01, 0x0d, 0xb8 },       32, SPECIAL_DOC },
	{ { 0x20, 0x02 },                   16, SPECIAL_SIX_TO_FOUR },
	{ { 0x26, 0x20, 0x00, 0x4f, 0x80 }, 48, SPECIAL_RESERVED }, /* AS112 */
	{ { 0x3f, 0xff },                   20, SPECIAL_DOC },
	{ { 0xfc },                         7,  SPECIAL_ULA },
	{ { 0xfe, 0x80 },                   10, SPECIAL_LINK_LOCAL },
	{ { 0xfe, 0xc0 },                   10, SPECIAL_LINK_LOCAL },
	{ { 0xff },                         8,  SPECIAL_MULTICAST },
	{ { 0x20 },                         3,  SPECIAL_NONE },
	{ { 0 },                            0,  SPECIAL_RESERVED }, /* not allocated */
};

static const char *const names[] = {
	[SPECIAL_NONE] = "none",
	[SPECIAL_UNSPECIFIED] = "unspecified",
	[SPECIAL_LOOPBACK] = "loopback",
	[SPECIAL_PRIVATE] = "private",
	[SPECIAL_LINK_LOCAL] = "link_local",
	[SPECIAL_CGNAT] = "cgnat",
	[SPECIAL_ULA] = "ula",
	[SPECIAL_MULTICAST] = "multicast",
	[SPECIAL_BENCHMARK] = "benchmark",
	[SPECIAL_DOC] = "documentation",
	[SPECIAL_RESERVED] = "reserved",
	[SPECIAL_V4_MAPPED] = "v4_mapped",
	[SPECIAL_NAT64] = "nat64",
	[SPECIAL_SIX_TO_FOUR] = "6to4",
	[SPECIAL_TEREDO] = "teredo",
	[SPECIAL_METADATA] = "metadata",
};
_Static_assert(COUNT(names) == SPECIAL_COUNT, "a class has no name");
/* clang-format on */

static bool is_in(const struct block *b, const uint8_t *addr)
{
	size_t whole = b->bits / 8u;
	unsigned mask = 0xffu << (8 - b->bits % 8u) & 0xffu;

	return memcmp(b->prefix, addr, whole) == 0 &&
	       (b->bits % 8u == 0 || ((b->prefix[whole] ^ addr[whole]) & mask) == 0);
}

static enum special find(const struct block *at, size_t n, const uint8_t *addr)
{
	for (size_t i = 0; i < n; i++)
		if (is_in(&at[i], addr))
			return at[i].class;
	return SPECIAL_NONE;
}

/* Where an IPv4 address stands in an IPv6 one. */
static const struct place {
	struct block in;
	uint8_t at[4];    /* offsets of its bytes */
	uint8_t inverted; /* Teredo hides the client from naive NATs */
} places[] = {
	{ { { 0 }, 96, SPECIAL_V4_MAPPED }, { 12, 13, 14, 15 }, 0 },
	{ { { [10] = 0xff, 0xff }, 96, SPECIAL_V4_MAPPED }, { 12, 13, 14, 15 }, 0 },
	{ { { [8] = 0xff, 0xff }, 96, SPECIAL_V4_MAPPED }, { 12, 13, 14, 15 }, 0 },
	{ { { 0x00, 0x64, 0xff, 0x9b }, 96, SPECIAL_NAT64 }, { 12, 13, 14, 15 }, 0 },
	/* RFC 8215: a network chooses its own prefix below, so both ends of RFC 6052, 2.2. */
	{ { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, SPECIAL_NAT64 }, { 12, 13, 14, 15 }, 0 },
	{ { { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 }, 48, SPECIAL_NAT64 }, { 6, 7, 9, 10 }, 0 },
	{ { { 0x20, 0x02 }, 16, SPECIAL_SIX_TO_FOUR }, { 2, 3, 4, 5 }, 0 },
	{ { { 0x20, 0x01, 0x00, 0x00 }, 32, SPECIAL_TEREDO }, { 4, 5, 6, 7 }, 0 },
	{ { { 0x20, 0x01, 0x00, 0x00 }, 32, SPECIAL_TEREDO }, { 12, 13, 14, 15 }, 0xff },
};

/* RFC 5214: ::0:5efe:a.b.c.d or ::200:5efe:a.b.c.d below any prefix. */
static bool is_isatap(const uint8_t addr[16])
{
	return (addr[8] & 0xfd) == 0 && addr[9] == 0 && addr[10] == 0x5e && addr[11] == 0xfe;
}

static void embedded_copy(const uint8_t addr[16], const struct place *p, uint8_t out[16])
{
	memset(out, 0, 16);
	for (size_t i = 0; i < COUNT(p->at); i++)
		out[i] = addr[p->at[i]] ^ p->inverted;
}

size_t special_embedded(const uint8_t addr[16], uint8_t out[2][16])
{
	static const struct place last = { .at = { 12, 13, 14, 15 } };
	enum special class = find(v6, COUNT(v6), addr);
	size_t n = 0;

	if (class == SPECIAL_UNSPECIFIED || class == SPECIAL_LOOPBACK)
		return 0; /* these two are no compatible ones */
	for (size_t i = 0; i < COUNT(places); i++)
		if (is_in(&places[i].in, addr))
			embedded_copy(addr, &places[i], out[n++]);
	if (n == 0 && is_isatap(addr))
		embedded_copy(addr, &last, out[n++]);
	return n;
}

enum special special_class(const uint8_t addr[16], bool is_v6)
{
	uint8_t inner[2][16];

	if (!is_v6)
		return find(v4, COUNT(v4), addr);
	enum special class = find(v6, COUNT(v6), addr);

	for (size_t i = special_embedded(addr, inner); i-- > 0;)
		if (find(v4, COUNT(v4), inner[i]) == SPECIAL_METADATA)
			return SPECIAL_METADATA;
	return class == SPECIAL_NONE && is_isatap(addr) ? SPECIAL_V4_MAPPED : class;
}

bool special_never(const uint8_t addr[16], bool is_v6)
{
	return special_class(addr, is_v6) == SPECIAL_METADATA;
}

const char *special_name(enum special s)
{
	return (unsigned)s < COUNT(names) ? names[s] : "unknown";
}
