#include "wire/dns.h"

#include "test.h"

#define HEAD(flags, counts) "\x12\x34" flags counts
#define ONE "\x00\x01\x00\x00\x00\x00\x00\x00"
#define ONE_OPT "\x00\x01\x00\x00\x00\x00\x00\x01"
#define RD "\x01\x00"
#define NAME                                                                                       \
	"\x07"                                                                                     \
	"Example"                                                                                  \
	"\x03"                                                                                     \
	"org"                                                                                      \
	"\x00"
#define A_IN "\x00\x01\x00\x01"
#define OPT(size) "\x00\x00\x29" size "\x00\x00\x00\x00\x00\x00"
#define COOKIE                                                                                     \
	"\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x0c\x00\x0a\x00\x08"                             \
	"12345678"
#define L63                                                                                        \
	"\x3f"                                                                                     \
	"a23456789012345678901234567890123456789012345678901234567890123"
#define L61                                                                                        \
	"\x3d"                                                                                     \
	"a234567890123456789012345678901234567890123456789012345678901"
#define L62                                                                                        \
	"\x3e"                                                                                     \
	"a2345678901234567890123456789012345678901234567890123456789012"

struct row {
	const char *bytes;
	size_t n;
	const char *name; /* "": no name of a host */
	enum dns_result want;
	uint16_t type, udp_size;
};
#define ROW(bytes, want, name, type, size)                                                         \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, name, want, type, size                                   \
	}

/* clang-format off */
static const struct row rows[] = {
	ROW(HEAD(RD, ONE) NAME A_IN, DNS_OK, "example.org", DNS_A, 512),
	ROW(HEAD("\x00\x00", ONE) NAME A_IN, DNS_OK, "example.org", DNS_A, 512),
	ROW(HEAD("\x01\x20", ONE) NAME A_IN, DNS_OK, "example.org", DNS_A, 512), /* AD */
	ROW(HEAD(RD, ONE) NAME "\x00\x1c\x00\x01", DNS_OK, "example.org", DNS_AAAA, 512),
	ROW(HEAD(RD, ONE) NAME "\x00\x10\x00\x01", DNS_OK, "example.org", 16, 512),
	ROW(HEAD(RD, ONE) NAME "\x00\x41\x00\x01", DNS_OK, "example.org", DNS_HTTPS, 512),
	ROW(HEAD(RD, ONE) NAME "\x00\xff\x00\x01", DNS_OK, "example.org", DNS_ANY, 512),
	ROW(HEAD(RD, ONE_OPT) NAME A_IN OPT("\x04\xd0"), DNS_OK, "example.org", DNS_A, 1232),
	ROW(HEAD(RD, ONE_OPT) NAME A_IN OPT("\x00\x00"), DNS_OK, "example.org", DNS_A, 512),
	ROW(HEAD(RD, ONE_OPT) NAME A_IN COOKIE, DNS_OK, "example.org", DNS_A, 1232),
	/* names that are questions, but of no host */
	ROW(HEAD(RD, ONE) "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x03" "a.b" "\x03" "org" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x04" "org." "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x08" "exa\0mple" "\x03" "org" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x0b" "example org" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x02" "\xc3\xbc" "\x03" "org" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x03" "127" "\x01" "0" "\x01" "0" "\x01" "1" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x04" "0x7f" "\x01" "1" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x01" "*" "\x03" "org" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) "\x02" "-a" "\x00" A_IN, DNS_OK, "", DNS_A, 512),
	ROW(HEAD(RD, ONE) L63 L63 L63 L61 "\x00" A_IN, DNS_OK,
	    "a23456789012345678901234567890123456789012345678901234567890123."
	    "a23456789012345678901234567890123456789012345678901234567890123."
	    "a23456789012345678901234567890123456789012345678901234567890123."
	    "a234567890123456789012345678901234567890123456789012345678901", DNS_A, 512),
	/* no questions */
	ROW("", DNS_DROP, "", 0, 512),
	ROW("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00", DNS_DROP, "", 0, 512),
	ROW(HEAD("\x81\x80", ONE) NAME A_IN, DNS_DROP, "", 0, 512),
	ROW(HEAD("\x09\x00", ONE) NAME A_IN, DNS_UNKNOWN, "", 0, 512), /* IQUERY */
	ROW(HEAD("\x28\x00", ONE) NAME A_IN, DNS_UNKNOWN, "", 0, 512), /* UPDATE */
	ROW(HEAD(RD, "\x00\x00\x00\x00\x00\x00\x00\x00"), DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, "\x00\x02\x00\x00\x00\x00\x00\x00") NAME A_IN NAME A_IN, DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, "\x00\x01\x00\x01\x00\x00\x00\x00") NAME A_IN, DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, "\x00\x01\x00\x00\x00\x01\x00\x00") NAME A_IN, DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, "\x00\x01\x00\x00\x00\x00\x00\x02") NAME A_IN OPT("\x04\xd0") OPT("\x04\xd0"),
	    DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE), DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE) NAME "\x00\x01\x00", DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE) NAME A_IN "x", DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE) "\x07" "Example" A_IN, DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE) "\x07" "Exam", DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE) "\xc0\x0c" A_IN, DNS_MALFORMED, "", 0, 512),         /* a pointer to itself */
	ROW(HEAD(RD, ONE) "\x03" "www" "\xc0\x0c" A_IN, DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE) "\x40" A_IN, DNS_MALFORMED, "", 0, 512),             /* a label of 64 */
	ROW(HEAD(RD, ONE) L63 L63 L63 L62 "\x00" A_IN, DNS_MALFORMED, "", 0, 512), /* 256 bytes */
	ROW(HEAD(RD, ONE_OPT) NAME A_IN, DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE_OPT) NAME A_IN "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x01", DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE_OPT) NAME A_IN "\x01" "a" "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00", DNS_MALFORMED, "", 0, 512),
	ROW(HEAD(RD, ONE_OPT) NAME A_IN "\x00\x00\x10\x04\xd0\x00\x00\x00\x00\x00\x00", DNS_MALFORMED, "", 0, 512),
};
/* clang-format on */

static enum dns_result parse(const struct row *row, struct dns_query *q)
{
	/* On the heap, without room behind it: ASan sees a byte too far. */
	uint8_t *copy = mem_alloc(row->n + 1);

	memcpy(copy, row->bytes, row->n);
	enum dns_result r = dns_parse(copy, row->n, q);

	free(copy);
	return r;
}

TEST(questions)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct dns_query q;

		printf("# row %zu\n", i);
		CHECK_INT(parse(&rows[i], &q), rows[i].want);
		CHECK_STR(q.name, rows[i].name);
		CHECK_INT(q.is_name_ok, rows[i].name[0] != '\0');
		CHECK_INT(q.type, rows[i].type);
		CHECK_INT(q.udp_size, rows[i].udp_size);
		CHECK_INT(q.question_len > 0, rows[i].want == DNS_OK);
		if (rows[i].want != DNS_DROP)
			CHECK_INT(q.id, 0x1234);
	}
}

/* A question that is cut anywhere is none. */
TEST(every_prefix_is_refused)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		for (size_t n = 0; rows[i].want == DNS_OK && n < rows[i].n; n++) {
			struct row cut = rows[i];
			struct dns_query q;

			cut.n = n;
			CHECK_INT(parse(&cut, &q), n < 12 ? DNS_DROP : DNS_MALFORMED);
		}
}

TEST(a_question_has_a_largest_size)
{
	static uint8_t msg[DNS_QUERY_MAX + 1];
	static const char start[] = HEAD(RD, ONE_OPT) NAME A_IN OPT("\x04\xd0");
	size_t n = sizeof start - 1;
	struct dns_query q;

	for (int over = 0; over < 2; over++) {
		size_t size = DNS_QUERY_MAX + (size_t)over, rdata = size - n;

		memcpy(msg, start, n);
		msg[n - 2] = (uint8_t)(rdata >> 8);
		msg[n - 1] = (uint8_t)rdata;
		CHECK_INT(dns_parse(msg, size, &q), over ? DNS_MALFORMED : DNS_OK);
	}
}

static void check_answer(const struct row *row, int rcode, bool has_address, const char *want,
                         size_t n)
{
	static const uint8_t address[4] = { 198, 18, 0, 2 };
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;

	(void)parse(row, &q);
	CHECK_INT(dns_print(out, &q, rcode, has_address ? address : NULL, 60), n);
	CHECK(memcmp(out, want, n) == 0);
}

TEST(answers)
{
#define ANSWER(row, rcode, a, want) check_answer(row, rcode, a, want, sizeof(want) - 1)
	static const struct row plain = ROW(HEAD(RD, ONE) NAME A_IN, 0, "", 0, 0);
	static const struct row quiet = ROW(HEAD("\x00\x00", ONE) NAME A_IN, 0, "", 0, 0);
	static const struct row edns = ROW(HEAD(RD, ONE_OPT) NAME A_IN COOKIE, 0, "", 0, 0);
	static const struct row broken = ROW(HEAD(RD, ONE) "\xc0\x0c" A_IN, 0, "", 0, 0);

	ANSWER(&plain, DNS_NOERROR, true,
	       "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00" NAME A_IN
	       "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x02");
	ANSWER(&plain, DNS_NOERROR, false,
	       "\x12\x34\x81\x80\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN);
	ANSWER(&quiet, DNS_NXDOMAIN, false,
	       "\x12\x34\x80\x83\x00\x01\x00\x00\x00\x00\x00\x00" NAME A_IN);
	ANSWER(&edns, DNS_NOERROR, true,
	       "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x01" NAME A_IN
	       "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x12\x00\x02"
	       "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00");
	ANSWER(&broken, DNS_FORMERR, true, "\x12\x34\x81\x81\x00\x00\x00\x00\x00\x00\x00\x00");
}

TEST(the_longest_answer_fits)
{
	static const struct row longest =
	    ROW(HEAD(RD, ONE_OPT) L63 L63 L63 L61 "\x00" A_IN OPT("\xff\xff"), 0, "", 0, 0);
	static const uint8_t address[4] = { 198, 18, 0, 2 };
	uint8_t out[DNS_ANSWER_MAX];
	struct dns_query q;

	CHECK_INT(parse(&longest, &q), DNS_OK);
	CHECK_INT(q.udp_size, 0xffff);
	CHECK_INT(dns_print(out, &q, DNS_NOERROR, address, UINT32_MAX), 12 + 255 + 4 + 16 + 11);
}
