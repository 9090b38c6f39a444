#include "wire/truststore.h"

#include "wire/base64.h"

#define CERT_MAX (64u << 10) /* of one, as text; the longest in use have a tenth of that */

enum der_tag {
	DER_INTEGER = 0x02,
	DER_OCTETS = 0x04,
	DER_OID = 0x06,
	DER_BMP = 0x1e, /* text of two bytes each */
	DER_SEQUENCE = 0x30,
	DER_SET = 0x31,
	DER_FIRST = 0xa0, /* [0], explicit */
};

#define OID(name, ...) static const unsigned char name[] = { __VA_ARGS__ }
OID(oid_data, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01);
OID(oid_cert_bag, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01, 0x03);
OID(oid_x509, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x16, 0x01);
OID(oid_friendly_name, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x14);
/* 2.16.840.1.113894.746875.1.1, Java's own: trusted for what the value says. */
OID(oid_trusted, 0x60, 0x86, 0x48, 0x01, 0x86, 0xf9, 0x66, 0xad, 0xca, 0x7b, 0x01, 0x01);
OID(oid_any_usage, 0x55, 0x1d, 0x25, 0x00);

/* ---- DER ------------------------------------------------------------------------------- */

static void add_value(struct str *out, enum der_tag tag, const void *bytes, size_t n)
{
	unsigned char head[6] = { (unsigned char)tag };
	size_t len = 1, size_bytes = 0;

	if (n < 0x80) {
		head[len++] = (unsigned char)n;
	} else {
		for (size_t rest = n; rest; rest >>= 8)
			size_bytes++;
		head[len++] = (unsigned char)(0x80 | size_bytes);
		while (size_bytes-- > 0)
			head[len++] = (unsigned char)(n >> 8 * size_bytes);
	}
	str_addn(out, head, len);
	str_addn(out, bytes, n);
}

/* All that was written since `from` becomes the value. */
static void wrap(struct str *out, size_t from, enum der_tag tag)
{
	AUTO(str_done) struct str inner = { .max = out->max };

	if (out->overflow)
		return;
	str_addn(&inner, str_text(out) + from, out->len - from);
	out->len = from;
	add_value(out, tag, str_text(&inner), inner.len);
}

#define ADD_OID(out, oid) add_value(out, DER_OID, oid, sizeof(oid))

/* ---- one certificate ------------------------------------------------------------------- */

static void add_trusted(struct str *out)
{
	const size_t from = out->len;

	ADD_OID(out, oid_trusted);
	const size_t value = out->len;
	ADD_OID(out, oid_any_usage);
	wrap(out, value, DER_SET);
	wrap(out, from, DER_SEQUENCE);
}

static void add_name(struct str *out, unsigned int number)
{
	const size_t from = out->len;
	unsigned char wide[2 * 24] = { 0 };
	char name[24];
	size_t n = (size_t)snprintf(name, sizeof name, "trusted-%u", number);

	for (size_t i = 0; i < n; i++)
		wide[2 * i + 1] = (unsigned char)name[i];
	ADD_OID(out, oid_friendly_name);
	const size_t value = out->len;
	add_value(out, DER_BMP, wide, 2 * n);
	wrap(out, value, DER_SET);
	wrap(out, from, DER_SEQUENCE);
}

static void add_cert(struct str *out, const struct str *der, unsigned int number)
{
	const size_t bag = out->len;

	ADD_OID(out, oid_cert_bag);
	const size_t cert = out->len;
	ADD_OID(out, oid_x509);
	const size_t value = out->len;
	add_value(out, DER_OCTETS, der->data, der->len);
	wrap(out, value, DER_FIRST);
	wrap(out, cert, DER_SEQUENCE);
	wrap(out, cert, DER_FIRST);
	const size_t attributes = out->len;
	add_trusted(out); /* the shorter one first: a set is sorted */
	add_name(out, number);
	wrap(out, attributes, DER_SET);
	wrap(out, bag, DER_SEQUENCE);
}

/* A SEQUENCE with nothing behind it: a reader that stumbles over one reads none. */
static bool is_whole(const struct str *der)
{
	const unsigned char *p = (const unsigned char *)der->data;
	size_t size_bytes, n = 0;

	if (der->len < 2 || p[0] != DER_SEQUENCE)
		return false;
	if (p[1] < 0x80)
		return der->len == 2u + p[1];
	size_bytes = p[1] & 0x7fu;
	if (size_bytes > 3 || der->len < 2 + size_bytes)
		return false;
	for (size_t i = 0; i < size_bytes; i++)
		n = n << 8 | p[2 + i];
	return der->len == 2 + size_bytes + n;
}

/* ---- PEM ------------------------------------------------------------------------------- */

static const char *find(const char *text, size_t n, const char *word)
{
	return n ? memmem(text, n, word, strlen(word)) : NULL;
}

/* The text between the two lines, in any layout. */
static bool decode(const char *text, size_t n, struct str *der)
{
	AUTO(str_done) struct str digits = { .max = CERT_MAX };

	str_clear(der);
	for (size_t i = 0, from = 0; i <= n; i++)
		if (i == n || (text[i] && strchr(" \t\r\n", text[i]))) {
			str_addn(&digits, text + from, i - from);
			from = i + 1;
		}
	return !digits.overflow && base64_decode(str_text(&digits), digits.len, der) &&
	       is_whole(der);
}

static void add_certs(struct str *out, const char *pem, size_t n)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----",
			  end[] = "-----END CERTIFICATE-----";
	AUTO(str_done) struct str der = { .max = CERT_MAX };
	const char *const last = pem + n;
	unsigned int number = 0;

	while (!out->overflow && (pem = find(pem, (size_t)(last - pem), begin))) {
		pem += strlen(begin);
		const char *stop = find(pem, (size_t)(last - pem), end);

		if (!stop)
			return;
		if (decode(pem, (size_t)(stop - pem), &der))
			add_cert(out, &der, ++number);
		pem = stop + strlen(end);
	}
}

/* ---- the file -------------------------------------------------------------------------- */

/* SEQUENCE { data, [0] { OCTETS { what was written since `from` } } } */
static void wrap_data(struct str *out, size_t from)
{
	AUTO(str_done) struct str inner = { .max = out->max };

	str_addn(&inner, str_text(out) + from, out->len - from);
	out->len = from;
	ADD_OID(out, oid_data);
	const size_t value = out->len;
	add_value(out, DER_OCTETS, str_text(&inner), inner.len);
	wrap(out, value, DER_FIRST);
	wrap(out, from, DER_SEQUENCE);
}

bool truststore_make(const char *pem, size_t n, struct str *out)
{
	static const unsigned char version[] = { DER_INTEGER, 1, 3 };
	AUTO(str_done) struct str all = { .max = out->max };

	add_certs(&all, pem, n);
	wrap(&all, 0, DER_SEQUENCE);
	wrap_data(&all, 0);
	wrap(&all, 0, DER_SEQUENCE);
	wrap_data(&all, 0);
	const size_t from = out->len;
	str_addn(out, version, sizeof version);
	str_addn(out, str_text(&all), all.len);
	wrap(out, from, DER_SEQUENCE);
	return !all.overflow && !out->overflow;
}
