#include "wire/hostname.h"

#include <arpa/inet.h>

#include "test.h"

#define L61 "a234567890123456789012345678901234567890123456789012345678901"
#define NAME_OF_253 L61 "23." L61 "23." L61 "23." L61

struct row {
	const char *bytes;
	size_t n;
	const char *want; /* NULL: no name */
};
#define ROW(text, want)                                                                            \
	{                                                                                          \
		text, sizeof(text) - 1, want                                                       \
	}

/* clang-format off */
static const struct row names[] = {
	ROW("example.org", "example.org"),
	ROW("EXAMPLE.Org", "example.org"),
	ROW("example.org.", "example.org"),
	ROW("localhost", "localhost"),
	ROW("a", "a"),
	ROW("a.", "a"),
	ROW("a-b.example.org", "a-b.example.org"),
	ROW("a--b.example.org", "a--b.example.org"),
	ROW("_dmarc._tcp.example.org", "_dmarc._tcp.example.org"),
	ROW("_", "_"),
	ROW("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
	ROW("1.example.org", "1.example.org"),
	ROW("127.0.0.1.example.org", "127.0.0.1.example.org"),
	ROW("0x7f.example", "0x7f.example"),
	ROW("1e3", "1e3"),
	ROW("0xfg", "0xfg"),
	ROW("0x7f-1", "0x7f-1"),
	ROW("x0", "x0"),
	ROW(L61 "23.example.org", L61 "23.example.org"),
	ROW(NAME_OF_253, NAME_OF_253),
	ROW(NAME_OF_253 ".", NAME_OF_253),
	/* lengths */
	ROW("", NULL),
	ROW(".", NULL),
	ROW("..", NULL),
	ROW("example.org..", NULL),
	ROW("example..org", NULL),
	ROW(".example.org", NULL),
	ROW(L61 "234.example.org", NULL),
	ROW(NAME_OF_253 "2", NULL),
	ROW(NAME_OF_253 "2.", NULL),
	ROW(NAME_OF_253 "..", NULL),
	/* NUL: what a C string would end at */
	ROW("example.org\0.evil.test", NULL),
	ROW("example.org\0", NULL),
	ROW("\0example.org", NULL),
	ROW("\0", NULL),
	ROW("evil.test\0.example.org", NULL),
	/* other bytes */
	ROW("exa mple.org", NULL),
	ROW(" example.org", NULL),
	ROW("example.org ", NULL),
	ROW("example.org\n", NULL),
	ROW("example.org\r\nHost: x", NULL),
	ROW("example\t.org", NULL),
	ROW("exam\x7f" "ple.org", NULL),
	ROW("exam\x1b" "ple.org", NULL),
	ROW("*.example.org", NULL),
	ROW("example.org:443", NULL),
	ROW("example.org/", NULL),
	ROW("user@example.org", NULL),
	ROW("example.org#", NULL),
	ROW("example%2eorg", NULL),
	ROW("[example.org]", NULL),
	ROW("exam\\ple.org", NULL),
	/* IDN: U-labels, the ideographic full stops, a full-width letter, Latin-1 */
	ROW("b\xc3\xbc" "cher.example", NULL),
	ROW("example\xe3\x80\x82org", NULL),
	ROW("example\xef\xbc\x8eorg", NULL),
	ROW("\xef\xbd\x85xample.org", NULL),
	ROW("b\xfc" "cher.example", NULL),
	ROW("example.org\xc2\xad", NULL),
	/* hyphens */
	ROW("-a.example.org", NULL),
	ROW("a-.example.org", NULL),
	ROW("-", NULL),
	ROW("example.-", NULL),
	/* an address in the last label, whatever is before it */
	ROW("example.1", NULL),
	ROW("example.0x1", NULL),
	ROW("1.2.3.4.5", NULL),
};

/* One address in every spelling, and the ends of what each form can hold. */
static const struct row literals[] = {
	ROW("127.0.0.1", NULL), ROW("127.0.0.1.", NULL), ROW("127.0.0.", NULL), ROW("127.1", NULL), ROW("127.0.1", NULL),
	ROW("2130706433", NULL), ROW("0x7f000001", NULL), ROW("0X7F000001", NULL),
	ROW("017700000001", NULL), ROW("0177.0.0.1", NULL), ROW("0177.1", NULL),
	ROW("0x7f.1", NULL), ROW("0x7f.0.0.1", NULL), ROW("0x7f.0x0.0x0.0x1", NULL),
	ROW("127.0.0.0x1", NULL), ROW("127.0.0.01", NULL), ROW("127.0x1", NULL),
	ROW("00000000177.0.0.1", NULL), ROW("0x0000007f.1", NULL),
	ROW("0", NULL), ROW("1", NULL), ROW("0x0", NULL), ROW("00", NULL), ROW("0.0.0.0", NULL),
	ROW("255.255.255.255", NULL), ROW("4294967295", NULL), ROW("0xffffffff", NULL),
	ROW("037777777777", NULL), ROW("169.254.169.254", NULL), ROW("2852039166", NULL),
	ROW("0xA9FEA9FE", NULL), ROW("0251.0376.0251.0376", NULL), ROW("169.254.43518", NULL),
	ROW("169.16689662", NULL), ROW("100.100.100.200", NULL), ROW("10.0.0.1 ", NULL),
	ROW("10.0.0.1 x", NULL), ROW("10.0.0.1\n", NULL), ROW("10.0.0.1\tx", NULL),
	ROW("::1", NULL), ROW("[::1]", NULL), ROW("::", NULL), ROW("fe80::1%eth0", NULL),
	ROW("[fe80::1%25eth0]", NULL), ROW("::ffff:127.0.0.1", NULL), ROW("64:ff9b::7f00:1", NULL),
	ROW("2001:DB8::1", NULL), ROW("0:0:0:0:0:0:0:1", NULL),
};
/* clang-format on */

TEST(names_in_every_spelling)
{
	for (size_t i = 0; i < COUNT(names); i++) {
		char out[GATE_NAME_SIZE] = "untouched";
		bool is_name = hostname_read(names[i].bytes, names[i].n, out);

		printf("# %zu: %s\n", i, names[i].want ? names[i].want : "-");
		CHECK_INT(is_name, names[i].want != NULL);
		CHECK_STR(out, is_name ? names[i].want : "untouched");
		if (is_name) {
			char again[GATE_NAME_SIZE];

			CHECK(hostname_read(out, strlen(out), again));
			CHECK_STR(again, out);
			CHECK(!hostname_is_literal(names[i].bytes, names[i].n));
		}
	}
}

TEST(addresses_in_every_spelling)
{
	for (size_t i = 0; i < COUNT(literals); i++) {
		char out[GATE_NAME_SIZE];

		printf("# %s\n", literals[i].bytes);
		CHECK(hostname_is_literal(literals[i].bytes, literals[i].n));
		CHECK(!hostname_read(literals[i].bytes, literals[i].n, out));
	}
}

TEST(what_is_no_address)
{
	static const struct row rows[] = {
		ROW("", NULL),     ROW(".", NULL),         ROW("1..2", NULL),
		ROW(".1", NULL),   ROW("1.2.3.4.5", NULL), ROW("example.1", NULL),
		ROW("0x7g", NULL), ROW("[]", NULL),        ROW("[::1", NULL),
		ROW(":::", NULL),  ROW("1\0", NULL),       ROW("::1\0", NULL),
		ROW("g::1", NULL), ROW("1..", NULL),       ROW("example.org", NULL),
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		printf("# row %zu\n", i);
		CHECK(!hostname_is_literal(rows[i].bytes, rows[i].n));
	}
}

/* What inet_aton() or inet_pton() takes is a literal and never a name, whatever the text. */
TEST(no_text_is_an_address_and_a_name)
{
	static const char alphabet[] = "0127f8xX.: a";
	uint32_t seed = 1;
	size_t addresses = 0;

	for (int i = 0; i < 400000; i++) {
		char text[14] = "", out[GATE_NAME_SIZE];
		struct in6_addr addr;

		for (size_t k = 0; k < 1 + (size_t)i % (sizeof text - 1); k++) {
			seed = seed * 1664525 + 1013904223;
			text[k] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
		}
		bool is_address = inet_aton(text, (struct in_addr *)&addr) ||
		                  inet_pton(AF_INET6, text, &addr) == 1;

		if (is_address && !hostname_is_literal(text, strlen(text)))
			CHECK_STR(text, "a literal");
		if (hostname_is_literal(text, strlen(text)) &&
		    hostname_read(text, strlen(text), out))
			CHECK_STR(text, "no name");
		addresses += is_address;
	}
	printf("# %zu addresses\n", addresses);
	CHECK(addresses > 1000);
}

/* Every byte in the middle of a label. */
TEST(bytes_of_a_label)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

	for (int c = 0; c < 256; c++) {
		char text[] = { 'a', (char)c, 'b' }, out[GATE_NAME_SIZE];
		bool is_good = (c && strchr(good, c)) || (c >= 'A' && c <= 'Z') || c == '.';

		CHECK_INT(hostname_read(text, sizeof text, out), is_good);
		CHECK_INT(hostname_is_label(text, sizeof text), c && strchr(good, c) != NULL);
	}
}

TEST(what_a_client_says)
{
	static const struct {
		const char *text;
		uint16_t port;
		enum said_kind kind;
		const char *name;
	} rows[] = {
		{ "", 0, SAID_NOTHING, "" },
		{ "Example.ORG.", 8443, SAID_NAME, "example.org" },
		{ "127.0.0.1", 80, SAID_ADDRESS, "" },
		{ "0x7f.1", 0, SAID_ADDRESS, "" },
		{ "[::1]", 443, SAID_ADDRESS, "" },
		{ "exa mple.org", 0, SAID_BAD, "" },
		{ "example.1", 0, SAID_BAD, "" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct said host = said_host(span_of(rows[i].text), rows[i].port);
		struct said sni = said_sni(rows[i].text, strlen(rows[i].text));

		CHECK_INT(host.kind, rows[i].kind);
		CHECK_INT(host.port, rows[i].port);
		CHECK_STR(host.name, rows[i].name);
		CHECK_INT(sni.kind, rows[i].kind);
		CHECK_INT(sni.port, 0);
		CHECK_STR(sni.name, rows[i].name);
	}
	CHECK_INT(said_sni("example.org\0.evil.test", 22).kind, SAID_BAD);
}

TEST(a_place_is_a_name_and_perhaps_a_port)
{
	static const struct {
		const char *text;
		bool is_one;
	} cases[] = {
		{ "example.org", true },
		{ "example.org:8443", true },
		{ "example.org:", false },
		{ "example.org:x", false },
		{ "example.org:123456", false },
		{ "example.org:1:2", false },
		{ "", false },
		{ ":1", false },
		{ "a b", false },
		{ "127.0.0.1", false },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK(hostname_is_place(cases[i].text) == cases[i].is_one);
}
