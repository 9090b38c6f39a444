#include "spec/special.h"

#include <arpa/inet.h>

#include "test.h"

struct addr {
	uint8_t at[16];
	bool is_v6;
};

static struct addr addr_of(const char *text)
{
	struct addr a = { .is_v6 = strchr(text, ':') };

	if (inet_pton(a.is_v6 ? AF_INET6 : AF_INET, text, a.at) != 1)
		CHECK_STR(text, "an address");
	return a;
}

/* Adds +1 or -1; false when that leaves the space of addresses. */
static bool step(struct addr *a, int by)
{
	for (int i = a->is_v6 ? 15 : 3; i >= 0; i--) {
		a->at[i] = (uint8_t)(a->at[i] + by);
		if (a->at[i] != (by > 0 ? 0 : 0xff))
			return true;
	}
	return false;
}

static struct addr last_of(struct addr a, unsigned bits)
{
	unsigned size = a.is_v6 ? 128 : 32;

	for (unsigned i = bits; i < size; i++)
		a.at[i / 8] |= (uint8_t)(0x80u >> i % 8);
	return a;
}

static void check_class(struct addr a, enum special want)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(a.is_v6 ? AF_INET6 : AF_INET, a.at, text, sizeof text);
	printf("# %s\n", text);
	CHECK_STR(special_name(special_class(a.at, a.is_v6)), special_name(want));
	CHECK_INT(special_never(a.at, a.is_v6), want == SPECIAL_METADATA);
}

/* Each block with what lies right below and right above it. */
/* clang-format off */
static const struct row {
	const char *first;
	unsigned bits;
	enum special want, below, above;
} rows[] = {
	{ "0.0.0.0",         8,  SPECIAL_UNSPECIFIED, SPECIAL_NONE,       SPECIAL_NONE },
	{ "10.0.0.0",        8,  SPECIAL_PRIVATE,     SPECIAL_NONE,       SPECIAL_NONE },
	{ "100.64.0.0",      10, SPECIAL_CGNAT,       SPECIAL_NONE,       SPECIAL_NONE },
	{ "100.96.0.96",     32, SPECIAL_METADATA,    SPECIAL_CGNAT,      SPECIAL_CGNAT },
	{ "100.100.100.200", 32, SPECIAL_METADATA,    SPECIAL_CGNAT,      SPECIAL_CGNAT },
	{ "127.0.0.0",       8,  SPECIAL_LOOPBACK,    SPECIAL_NONE,       SPECIAL_NONE },
	{ "168.63.129.16",   32, SPECIAL_METADATA,    SPECIAL_NONE,       SPECIAL_NONE },
	{ "169.254.0.0",     16, SPECIAL_LINK_LOCAL,  SPECIAL_NONE,       SPECIAL_NONE },
	{ "169.254.0.23",    32, SPECIAL_METADATA,    SPECIAL_LINK_LOCAL, SPECIAL_LINK_LOCAL },
	{ "169.254.42.42",   32, SPECIAL_METADATA,    SPECIAL_LINK_LOCAL, SPECIAL_LINK_LOCAL },
	{ "169.254.169.0",   24, SPECIAL_METADATA,    SPECIAL_LINK_LOCAL, SPECIAL_METADATA },
	{ "169.254.170.0",   24, SPECIAL_METADATA,    SPECIAL_METADATA,   SPECIAL_LINK_LOCAL },
	{ "172.16.0.0",      12, SPECIAL_PRIVATE,     SPECIAL_NONE,       SPECIAL_NONE },
	{ "192.0.0.0",       24, SPECIAL_RESERVED,    SPECIAL_NONE,       SPECIAL_NONE },
	{ "192.0.0.192",     32, SPECIAL_METADATA,    SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "192.0.2.0",       24, SPECIAL_DOC,         SPECIAL_NONE,       SPECIAL_NONE },
	{ "192.31.196.0",    24, SPECIAL_RESERVED,    SPECIAL_NONE,       SPECIAL_NONE },
	{ "192.52.193.0",    24, SPECIAL_RESERVED,    SPECIAL_NONE,       SPECIAL_NONE },
	{ "192.88.99.0",     24, SPECIAL_SIX_TO_FOUR, SPECIAL_NONE,       SPECIAL_NONE },
	{ "192.168.0.0",     16, SPECIAL_PRIVATE,     SPECIAL_NONE,       SPECIAL_NONE },
	{ "192.175.48.0",    24, SPECIAL_RESERVED,    SPECIAL_NONE,       SPECIAL_NONE },
	{ "198.18.0.0",      15, SPECIAL_BENCHMARK,   SPECIAL_NONE,       SPECIAL_NONE },
	{ "198.51.100.0",    24, SPECIAL_DOC,         SPECIAL_NONE,       SPECIAL_NONE },
	{ "203.0.113.0",     24, SPECIAL_DOC,         SPECIAL_NONE,       SPECIAL_NONE },
	{ "224.0.0.0",       4,  SPECIAL_MULTICAST,   SPECIAL_NONE,       SPECIAL_RESERVED },
	{ "240.0.0.0",       4,  SPECIAL_RESERVED,    SPECIAL_MULTICAST,  SPECIAL_NONE },
	{ "::",              128, SPECIAL_UNSPECIFIED, SPECIAL_NONE,      SPECIAL_LOOPBACK },
	{ "::1",             128, SPECIAL_LOOPBACK,   SPECIAL_UNSPECIFIED, SPECIAL_V4_MAPPED },
	{ "::ffff:0:0",      96, SPECIAL_V4_MAPPED,   SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "::ffff:0:0:0",    96, SPECIAL_V4_MAPPED,   SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "64:ff9b::",       96, SPECIAL_NAT64,       SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "64:ff9b:1::",     48, SPECIAL_NAT64,       SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "100::",           64, SPECIAL_RESERVED,    SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "2000::",          3,  SPECIAL_NONE,        SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "2001::",          32, SPECIAL_TEREDO,      SPECIAL_NONE,       SPECIAL_RESERVED },
	{ "2001:2::",        48, SPECIAL_BENCHMARK,   SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "2001:10::",       28, SPECIAL_RESERVED,    SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "2001:20::",       28, SPECIAL_RESERVED,    SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "2001:db8::",      32, SPECIAL_DOC,         SPECIAL_NONE,       SPECIAL_NONE },
	{ "2002::",          16, SPECIAL_SIX_TO_FOUR, SPECIAL_NONE,       SPECIAL_NONE },
	{ "2620:4f:8000::",  48, SPECIAL_RESERVED,    SPECIAL_NONE,       SPECIAL_NONE },
	{ "3fff::",          20, SPECIAL_DOC,         SPECIAL_NONE,       SPECIAL_NONE },
	{ "5f00::",          16, SPECIAL_RESERVED,    SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "fc00::",          7,  SPECIAL_ULA,         SPECIAL_RESERVED,   SPECIAL_RESERVED },
	{ "fd00:ec2::",      64, SPECIAL_METADATA,    SPECIAL_ULA,        SPECIAL_ULA },
	{ "fd20:ce::254",    128, SPECIAL_METADATA,   SPECIAL_ULA,        SPECIAL_ULA },
	{ "fd00:c1::a9fe:a9fe", 128, SPECIAL_METADATA, SPECIAL_ULA,       SPECIAL_ULA },
	{ "fd00:42::42",     128, SPECIAL_METADATA,   SPECIAL_ULA,        SPECIAL_ULA },
	{ "fd00:a9fe:a9fe::1", 128, SPECIAL_METADATA, SPECIAL_ULA,        SPECIAL_ULA },
	{ "fe80::",          10, SPECIAL_LINK_LOCAL,  SPECIAL_RESERVED,   SPECIAL_LINK_LOCAL },
	{ "fe80::a9fe:a9fe", 128, SPECIAL_METADATA,   SPECIAL_LINK_LOCAL, SPECIAL_LINK_LOCAL },
	{ "fec0::",          10, SPECIAL_LINK_LOCAL,  SPECIAL_LINK_LOCAL, SPECIAL_MULTICAST },
	{ "ff00::",          8,  SPECIAL_MULTICAST,   SPECIAL_LINK_LOCAL, SPECIAL_NONE },
};
/* clang-format on */

TEST(every_block_at_its_ends)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct addr first = addr_of(rows[i].first);
		struct addr last = last_of(first, rows[i].bits);
		struct addr below = first, above = last;

		check_class(first, rows[i].want);
		/* The last addresses of a block of embeddings embed one themselves. */
		check_class(last, rows[i].want);
		if (step(&below, -1))
			check_class(below, rows[i].below);
		if (step(&above, 1))
			check_class(above, rows[i].above);
	}
}

TEST(ordinary_addresses)
{
	static const char *const texts[] = {
		"1.1.1.1",       "8.8.8.8",      "93.184.216.34",   "100.63.255.255",
		"100.128.0.0",   "172.15.0.1",   "172.32.0.1",      "192.167.255.255",
		"198.17.255.1",  "198.20.0.0",   "223.255.255.254", "2606:4700::1111",
		"2001:4860::88", "2400:cb00::1", "2a00:1450::1",    "2001:200::1",
	};
	for (size_t i = 0; i < COUNT(texts); i++)
		check_class(addr_of(texts[i]), SPECIAL_NONE);
}

static const char *const metadata_v4[] = {
	"169.254.169.254", "169.254.169.253", "169.254.169.252", "169.254.169.250",
	"169.254.170.2",   "169.254.170.23",  "169.254.0.23",    "169.254.42.42",
	"100.100.100.200", "100.96.0.96",     "192.0.0.192",     "168.63.129.16",
};

static const char *const metadata_v6[] = {
	"fd00:ec2::254",      "fd00:ec2::23", "fd00:ec2::253",     "fd20:ce::254",
	"fd00:c1::a9fe:a9fe", "fd00:42::42",  "fd00:a9fe:a9fe::1", "fe80::a9fe:a9fe",
};

/* Where each form of an IPv6 address keeps the four bytes. */
static const struct form {
	const char *prefix;
	uint8_t at[4], inverted;
	enum special class;
} forms[] = {
	{ "::", { 12, 13, 14, 15 }, 0, SPECIAL_V4_MAPPED },
	{ "::ffff:0:0", { 12, 13, 14, 15 }, 0, SPECIAL_V4_MAPPED },
	{ "::ffff:0:0:0", { 12, 13, 14, 15 }, 0, SPECIAL_V4_MAPPED },
	{ "64:ff9b::", { 12, 13, 14, 15 }, 0, SPECIAL_NAT64 },
	{ "64:ff9b:1::", { 12, 13, 14, 15 }, 0, SPECIAL_NAT64 },
	{ "64:ff9b:1:1:2:3::", { 12, 13, 14, 15 }, 0, SPECIAL_NAT64 },
	{ "64:ff9b:1::", { 6, 7, 9, 10 }, 0, SPECIAL_NAT64 },
	{ "2002::", { 2, 3, 4, 5 }, 0, SPECIAL_SIX_TO_FOUR },
	{ "2002::1:2:3:4:5", { 2, 3, 4, 5 }, 0, SPECIAL_SIX_TO_FOUR },
	{ "2001::", { 12, 13, 14, 15 }, 0xff, SPECIAL_TEREDO },
	{ "2001:0:808:808::", { 12, 13, 14, 15 }, 0xff, SPECIAL_TEREDO },
	{ "2001::", { 4, 5, 6, 7 }, 0, SPECIAL_TEREDO },
	{ "2606:4700::5efe:0:0", { 12, 13, 14, 15 }, 0, SPECIAL_V4_MAPPED },
	{ "2606:4700::200:5efe:0:0", { 12, 13, 14, 15 }, 0, SPECIAL_V4_MAPPED },
	{ "fe80::5efe:0:0", { 12, 13, 14, 15 }, 0, SPECIAL_LINK_LOCAL },
};

static struct addr embed(const struct form *f, const char *v4)
{
	struct addr a = addr_of(f->prefix), inner = addr_of(v4);

	for (int i = 0; i < 4; i++)
		a.at[f->at[i]] = inner.at[i] ^ f->inverted;
	return a;
}

TEST(metadata_of_all_clouds_in_all_forms)
{
	for (size_t i = 0; i < COUNT(metadata_v6); i++)
		check_class(addr_of(metadata_v6[i]), SPECIAL_METADATA);
	for (size_t i = 0; i < COUNT(metadata_v4); i++) {
		check_class(addr_of(metadata_v4[i]), SPECIAL_METADATA);
		for (size_t k = 0; k < COUNT(forms); k++)
			check_class(embed(&forms[k], metadata_v4[i]), SPECIAL_METADATA);
	}
}

TEST(an_embedded_address_does_not_make_the_form_ordinary)
{
	static const char *const inner[] = { "8.8.8.8", "10.0.0.1", "127.0.0.1", "192.168.1.1" };

	for (size_t i = 0; i < COUNT(inner); i++)
		for (size_t k = 0; k < COUNT(forms); k++) {
			struct addr a = embed(&forms[k], inner[i]), want = addr_of(inner[i]);
			uint8_t found[2][16];
			size_t n = special_embedded(a.at, found);
			bool is_there = false;

			check_class(a, forms[k].class);
			for (size_t j = 0; j < n; j++)
				is_there |= memcmp(found[j], want.at, 16) == 0;
			CHECK(is_there);
		}
}

TEST(what_embeds_nothing)
{
	static const char *const texts[] = { "::", "::1", "2606:4700::1111", "fd00::1", "fe80::1" };
	uint8_t found[2][16];

	for (size_t i = 0; i < COUNT(texts); i++)
		CHECK_INT(special_embedded(addr_of(texts[i]).at, found), 0);
}

TEST(all_classes_have_names)
{
	for (int i = 0; i < SPECIAL_COUNT; i++)
		for (int k = 0; k < i; k++)
			CHECK(strcmp(special_name(i), special_name(k)) != 0);
	CHECK_STR(special_name(SPECIAL_COUNT), "unknown");
}
