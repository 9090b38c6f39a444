#include "gate/ca.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "test.h"

static X509 *read_pem(const char *pem)
{
	BIO *in = BIO_new_mem_buf(pem, -1);
	X509 *cert = PEM_read_bio_X509(in, NULL, NULL, NULL);

	BIO_free(in);
	CHECK(cert);
	return cert;
}

static struct ca *make(uint8_t first, const char *id)
{
	uint8_t seed[GATE_SEED_SIZE] = { first };
	struct err e = { 0 };
	struct ca *ca = ca_new(seed, id, &e);

	CHECK(ca);
	return ca;
}

static bool is_same_key(const struct ca *a, const struct ca *b)
{
	X509 *x = read_pem(ca_pem(a)), *y = read_pem(ca_pem(b));
	bool is_same = EVP_PKEY_eq(X509_get0_pubkey(x), X509_get0_pubkey(y)) == 1;

	X509_free(x);
	X509_free(y);
	return is_same;
}

TEST(the_key_comes_from_seed_and_sandbox)
{
	struct ca *a = make(1, "sb_a"), *again = make(1, "sb_a"), *other = make(1, "sb_b"),
		  *seed = make(2, "sb_a");

	CHECK(is_same_key(a, again));
	CHECK(!is_same_key(a, other));
	CHECK(!is_same_key(a, seed));
	ca_free(a);
	ca_free(again);
	ca_free(other);
	ca_free(seed);
	ca_free(NULL);
}

TEST(what_it_signs_is_trusted_for_that_name_by_whoever_has_the_certificate)
{
	struct ca *ca = make(1, "sb_a"), *later = make(1, "sb_a");
	X509 *root = read_pem(ca_pem(ca));
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *check = X509_STORE_CTX_new();
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	SSL *ssl = SSL_new(ctx), *again = SSL_new(ctx);

	CHECK_INT(X509_check_ca(root), 1);
	CHECK_INT(ca_hash(ca),
	          (uint32_t)X509_NAME_hash_ex(X509_get_subject_name(root), NULL, NULL, NULL));
	CHECK_INT(ca_hash(ca), ca_hash(later));
	CHECK_INT(X509_verify(root, X509_get0_pubkey(root)), 1);
	CHECK(ca_show(later, "www.example.org", ssl));
	CHECK(ca_show(later, "www.example.org", again));
	X509 *leaf = SSL_get_certificate(ssl);

	CHECK(leaf == SSL_get_certificate(again)); /* made once */
	X509_STORE_add_cert(store, root);
	X509_STORE_set_flags(store, X509_V_FLAG_X509_STRICT);
	X509_STORE_CTX_init(check, store, leaf, NULL);
	X509_STORE_CTX_set_purpose(check, X509_PURPOSE_SSL_SERVER);
	CHECK_INT(X509_verify_cert(check), 1);
	CHECK_INT(X509_check_host(leaf, "www.example.org", 0, 0, NULL), 1);
	CHECK_INT(X509_check_host(leaf, "example.org", 0, 0, NULL), 0);
	CHECK_INT(X509_check_ca(leaf), 0);
	CHECK_INT(SSL_check_private_key(ssl), 1);
	X509_STORE_CTX_free(check);
	X509_STORE_free(store);
	X509_free(root);
	SSL_free(ssl);
	SSL_free(again);
	SSL_CTX_free(ctx);
	ca_free(ca);
	ca_free(later);
}

TEST(long_names_and_many_names)
{
	struct ca *ca = make(1, "sb_a");
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	char name[GATE_NAME_SIZE];

	for (int i = 0; i < 300; i++) {
		SSL *ssl = SSL_new(ctx);

		snprintf(name, sizeof name, "%060d.%060d.%060d.%060d.org", i, i, i, i);
		CHECK(ca_show(ca, name, ssl));
		CHECK_INT(X509_check_host(SSL_get_certificate(ssl), name, 0, 0, NULL), 1);
		SSL_free(ssl);
	}
	SSL_CTX_free(ctx);
	ca_free(ca);
}
