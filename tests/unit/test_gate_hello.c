/*
 * Hellos of OpenSSL's own client, whole, in part and damaged.
 */
#include "gate/hello.h"

#include <openssl/ssl.h>

#include "test.h"

struct bytes {
	uint8_t at[HELLO_BYTES_MAX + 1];
	size_t n;
};

static struct bytes hello_of(const char *name, const char *alpn)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	struct bytes b = { .n = 0 };

	SSL_set_bio(ssl, in, out);
	if (name)
		SSL_set_tlsext_host_name(ssl, name);
	if (alpn)
		SSL_set_alpn_protos(ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
	CHECK(SSL_connect(ssl) < 0);
	b.n = (size_t)BIO_read(out, b.at, sizeof b.at);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return b;
}

TEST(a_hello_says_whom_it_means_and_what_it_speaks)
{
	/* clang-format off */
	static const struct {
		const char *name, *alpn, *said, *shown;
		enum said_kind kind;
		bool has_http1;
	} rows[] = {
		{ "www.example.org", "\x02h2\x08http/1.1", "www.example.org", "h2,http/1.1", SAID_NAME, true },
		{ "WWW.Example.ORG", NULL, "www.example.org", "", SAID_NAME, true },
		{ "www.example.org", "\x02h2", "www.example.org", "h2", SAID_NAME, false },
		{ NULL, NULL, "", "", SAID_NOTHING, true },
		{ "127.0.0.1", NULL, "", "", SAID_ADDRESS, true },
		{ "a b", NULL, "", "", SAID_BAD, true },
		{ "x", "\x04\x01\x02,y\x08http/1.1", "x", "http/1.1", SAID_NAME, true },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct bytes b = hello_of(rows[i].name, rows[i].alpn);
		struct hello h;

		CHECK_INT(hello_read(b.at, b.n, &h), HELLO_OK);
		CHECK_INT(h.sni.kind, rows[i].kind);
		CHECK_STR(h.sni.kind == SAID_NAME ? h.sni.name : "", rows[i].said);
		CHECK_STR(h.alpn, rows[i].shown);
		CHECK_INT(h.has_http1, rows[i].has_http1);
	}
}

TEST(a_part_of_a_hello_wants_more)
{
	struct bytes b = hello_of("www.example.org", NULL);
	struct hello h;

	for (size_t n = 0; n < b.n; n++)
		CHECK_INT(hello_read(b.at, n, &h), HELLO_MORE);
	b.at[b.n] = 0x16; /* and what follows does not matter */
	CHECK_INT(hello_read(b.at, b.n + 1, &h), HELLO_OK);
}

TEST(a_hello_in_two_records_is_one)
{
	struct bytes b = hello_of("www.example.org", NULL), two = { .n = 0 };
	struct hello h;
	size_t half = (b.n - 5) / 2, rest = b.n - 5 - half;

	memcpy(two.at, b.at, 5 + half);
	two.at[3] = (uint8_t)(half >> 8);
	two.at[4] = (uint8_t)half;
	CHECK_INT(hello_read(two.at, 5 + half, &h), HELLO_MORE);
	memcpy(two.at + 5 + half, b.at, 3);
	two.at[8 + half] = (uint8_t)(rest >> 8);
	two.at[9 + half] = (uint8_t)rest;
	memcpy(two.at + 10 + half, b.at + 5 + half, rest);
	CHECK_INT(hello_read(two.at, b.n + 5, &h), HELLO_OK);
	CHECK_STR(h.sni.name, "www.example.org");
}

TEST(what_is_no_hello_is_bad_at_once)
{
	static const struct {
		const char *at;
		size_t n;
	} rows[] = {
		{ "\x15\x03\x01\x00\x02\x02\x28", 7 }, /* an alert */
		{ "\x16\x03\x01\x00\x04"
		  "abcd",
		  9 },
		{ "\x80\x2e\x01\x00\x02", 5 }, /* SSLv2 */
		{ "GET / HTTP/1.1\r\n", 16 },
	};
	struct hello h;

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(hello_read((const uint8_t *)rows[i].at, rows[i].n, &h), HELLO_BAD);
}

/* The extension of the name, found by its bytes, with another inside. */
TEST(two_names_or_half_a_name_are_a_trick)
{
	struct bytes b = hello_of("www.example.org", NULL);
	uint8_t *name = memmem(b.at, b.n, "www.example.org", 15);
	struct hello h;

	CHECK(name);
	name[-4]--; /* length of the list */
	CHECK_INT(hello_read(b.at, b.n, &h), HELLO_OK);
	CHECK_INT(h.sni.kind, SAID_BAD);
	name[-4]++;
	name[-1] = 5; /* "www.e", and then ten bytes that look like something else */
	CHECK_INT(hello_read(b.at, b.n, &h), HELLO_OK);
	CHECK_INT(h.sni.kind, SAID_BAD);
	name[-1] = 15;
	name[3] = '\0';
	CHECK_INT(hello_read(b.at, b.n, &h), HELLO_OK);
	CHECK_INT(h.sni.kind, SAID_BAD);
}
