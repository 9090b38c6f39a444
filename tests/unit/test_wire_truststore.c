#include "wire/truststore.h"

#include "test.h"
#include "wire/base64.h"

#define BEGIN "-----BEGIN CERTIFICATE-----\n"
#define END "-----END CERTIFICATE-----\n"

/* A walk through DER: one value after the other. */
struct der {
	const unsigned char *at, *end;
};

static struct der whole(const struct str *s)
{
	const unsigned char *at = (const unsigned char *)s->data;

	return (struct der){ at, at + s->len };
}

/* The next value, which has this tag. */
static struct der next(struct der *d, unsigned int tag)
{
	size_t n = 0;

	CHECK(d->end - d->at >= 2);
	CHECK_INT(d->at[0], tag);
	unsigned int size = d->at[1];
	d->at += 2;
	if (size < 0x80) {
		n = size;
	} else {
		CHECK(d->end - d->at >= (int)(size & 0x7f));
		CHECK(d->at[0] != 0); /* no longer than needed */
		for (size &= 0x7f; size > 0; size--)
			n = n << 8 | *d->at++;
		CHECK(n >= 0x80);
	}
	CHECK((size_t)(d->end - d->at) >= n);
	struct der value = { d->at, d->at + n };
	d->at += n;
	return value;
}

static bool is_empty(struct der d)
{
	return d.at == d.end;
}

static void is_oid(struct der *d, const char *bytes, size_t n)
{
	struct der oid = next(d, 0x06);

	CHECK_INT(oid.end - oid.at, n);
	CHECK_INT(memcmp(oid.at, bytes, n), 0);
}
#define IS_OID(d, text) is_oid(d, text, sizeof(text) - 1)

/* SEQUENCE { data, [0] { OCTETS } } */
static struct der data(struct der *d)
{
	struct der info = next(d, 0x30);

	IS_OID(&info, "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01");
	struct der explicit = next(&info, 0xa0);
	CHECK(is_empty(info));
	struct der octets = next(&explicit, 0x04);
	CHECK(is_empty(explicit));
	return octets;
}

/* Up to the bags with certificates. */
static struct der open_store(const struct str *store)
{
	struct der file = whole(store);
	struct der pfx = next(&file, 0x30);

	CHECK(is_empty(file));
	struct der version = next(&pfx, 0x02);
	CHECK_INT(*version.at, 3);
	struct der safe = data(&pfx);
	CHECK(is_empty(pfx)); /* no MAC: no password */
	struct der infos = next(&safe, 0x30);
	struct der contents = data(&infos);
	CHECK(is_empty(infos));
	return next(&contents, 0x30);
}

static void is_named(struct der *set, const char *name)
{
	struct der attribute = next(set, 0x30);

	IS_OID(&attribute, "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x14");
	struct der values = next(&attribute, 0x31);
	struct der text = next(&values, 0x1e);
	CHECK_INT(text.end - text.at, 2 * strlen(name));
	for (size_t i = 0; name[i]; i++) {
		CHECK_INT(text.at[2 * i], 0);
		CHECK_INT(text.at[2 * i + 1], name[i]);
	}
}

static void is_trusted(struct der *set)
{
	struct der attribute = next(set, 0x30);

	IS_OID(&attribute, "\x60\x86\x48\x01\x86\xf9\x66\xad\xca\x7b\x01\x01");
	struct der values = next(&attribute, 0x31);
	IS_OID(&values, "\x55\x1d\x25\x00");
}

static struct der next_cert(struct der *bags, const char *name)
{
	struct der bag = next(bags, 0x30);

	IS_OID(&bag, "\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03");
	struct der explicit = next(&bag, 0xa0);
	struct der cert = next(&explicit, 0x30);
	IS_OID(&cert, "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01");
	struct der value = next(&cert, 0xa0);
	struct der attributes = next(&bag, 0x31);
	CHECK(is_empty(bag));
	is_trusted(&attributes);
	is_named(&attributes, name);
	CHECK(is_empty(attributes));
	return next(&value, 0x04);
}

TEST(every_certificate_is_there_and_trusted)
{
	static const char pem[] =
	    "# a comment\n" BEGIN "MAMCAQE=\n" END "\n" BEGIN "MAMC\r\n  AQI=\r\n" END;
	AUTO(str_done) struct str store = { .max = 1 << 20 };

	CHECK(truststore_make(pem, strlen(pem), &store));
	struct der bags = open_store(&store);
	struct der one = next_cert(&bags, "trusted-1"), two = next_cert(&bags, "trusted-2");
	CHECK(is_empty(bags));
	CHECK_INT(one.end - one.at, 5);
	CHECK_INT(memcmp(one.at, "\x30\x03\x02\x01\x01", 5), 0);
	CHECK_INT(memcmp(two.at, "\x30\x03\x02\x01\x02", 5), 0);
}

TEST(what_is_no_certificate_is_left_out)
{
	static const char *const rows[] = {
		"",
		"text",
		BEGIN,
		BEGIN "MAMCAQE=\n",
		BEGIN END,
		BEGIN "!!!!\n" END,
		BEGIN "MAMCAQ\n" END,   /* not in fours */
		BEGIN "MAQCAQE=\n" END, /* shorter than it says */
		BEGIN "MAICAQE=\n" END, /* longer */
		BEGIN "AgEB\n" END,     /* a number */
		BEGIN "MIT/////\n" END,
		BEGIN "MA==\n" END,
		"-----BEGIN TRUSTED CERTIFICATE-----\nMAMCAQE=\n-----END TRUSTED "
		"CERTIFICATE-----\n",
		"-----BEGIN X509 CRL-----\nMAMCAQE=\n-----END X509 CRL-----\n",
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str store = { .max = 4096 };

		printf("# row %zu\n", i);
		CHECK(truststore_make(rows[i], strlen(rows[i]), &store));
		struct der bags = open_store(&store);
		CHECK(is_empty(bags));
	}
}

/* Lengths of one to three bytes. */
TEST(long_ones)
{
	static const size_t sizes[] = { 0x7b, 0x7c, 0x7f, 0x80, 0xff, 0x100, 2000, 40000 };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t n = sizes[i], head = n < 0x80 ? 2 : n < 0x100 ? 3 : 4;
		AUTO(freep) unsigned char *der = mem_alloc(n + 4);
		AUTO(str_done) struct str pem = { .max = 1 << 20 }, store = { .max = 1 << 20 };

		memset(der, 'x', n + 4);
		memcpy(der,
		       head == 2   ? (unsigned char[]){ 0x30, (unsigned char)n, 0, 0 }
		       : head == 3 ? (unsigned char[]){ 0x30, 0x81, (unsigned char)n, 0 }
		                   : (unsigned char[]){ 0x30, 0x82, (unsigned char)(n >> 8),
		                                        (unsigned char)n },
		       4);
		str_add(&pem, BEGIN);
		base64_encode(der, head + n, &pem);
		str_add(&pem, "\n" END);
		printf("# %zu bytes\n", n);
		CHECK(truststore_make(str_text(&pem), pem.len, &store));
		struct der bags = open_store(&store);
		struct der cert = next_cert(&bags, "trusted-1");
		CHECK_INT(cert.end - cert.at, head + n);
		CHECK_INT(memcmp(cert.at, der, head + n), 0);
	}
}

TEST(what_finds_no_room_is_said)
{
	static const char pem[] = BEGIN "MAMCAQE=\n" END;

	for (size_t max = 0; max < 180; max++) {
		AUTO(str_done) struct str store = { .max = max };
		bool is_made = truststore_make(pem, strlen(pem), &store);

		if (is_made) {
			struct der bags = open_store(&store);

			(void)next_cert(&bags, "trusted-1");
			return;
		}
	}
	CHECK(false);
}
