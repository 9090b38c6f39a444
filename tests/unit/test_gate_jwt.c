#include "gate/jwt.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "test.h"
#include "wire/base64.h"

static char pem[8192];

static EVP_PKEY *new_key(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());

	CHECK(key && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
	int n = BIO_read(bio, pem, sizeof pem - 1);

	pem[n > 0 ? n : 0] = '\0';
	BIO_free(bio);
	return key;
}

static struct str decode(struct span part)
{
	struct str text = { .max = 4096 }, out = { .max = 4096 };

	for (size_t i = 0; i < part.len; i++) {
		char c = part.at[i];

		c = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
		str_addn(&text, &c, 1);
	}
	while (text.len % 4)
		str_add(&text, "=");
	CHECK(base64_decode(str_text(&text), text.len, &out));
	str_done(&text);
	return out;
}

static bool verifies(EVP_PKEY *key, struct span text, const struct str *signature)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool is_good = EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
	               EVP_DigestVerify(ctx, (const uint8_t *)signature->data, signature->len,
	                                (const uint8_t *)text.at, text.len) == 1;

	EVP_MD_CTX_free(ctx);
	return is_good;
}

TEST(whoever_has_the_public_key_can_check_it)
{
	EVP_PKEY *key = new_key(EVP_RSA_gen(2048));
	const struct jwt_claims claims = { "12345", 1700000000 };
	static uint8_t out[4096];
	struct err e = { 0 };
	int n = jwt_sign(span_of(pem), &claims, out, sizeof out, &e);

	CHECK(n > 0);
	const char *text = (const char *)out, *dot = memchr(text, '.', (size_t)n);
	const char *last = memrchr(text, '.', (size_t)n);

	CHECK(dot && last > dot);
	struct str head = decode((struct span){ text, (size_t)(dot - text) });
	struct str body = decode((struct span){ dot + 1, (size_t)(last - dot - 1) });
	struct str signature = decode((struct span){ last + 1, (size_t)(text + n - last - 1) });

	CHECK_STR(str_text(&head), "{\"alg\":\"RS256\",\"typ\":\"JWT\"}");
	CHECK_STR(str_text(&body), "{\"iat\":1699999940,\"exp\":1700000540,\"iss\":\"12345\"}");
	CHECK(verifies(key, (struct span){ text, (size_t)(last - text) }, &signature));
	signature.data[7] ^= 1;
	CHECK(!verifies(key, (struct span){ text, (size_t)(last - text) }, &signature));
	/* The key may stand where the answer goes. */
	memcpy(out, pem, strlen(pem) + 1);
	CHECK_INT(jwt_sign((struct span){ (char *)out, strlen(pem) }, &claims, out, sizeof out, &e),
	          n);
	CHECK_INT(jwt_sign(span_of(pem), &claims, out, 100, &e), -1);
	str_done(&head);
	str_done(&body);
	str_done(&signature);
	EVP_PKEY_free(key);
}

TEST(other_keys_are_none)
{
	const struct jwt_claims claims = { "12345", 1700000000 };
	uint8_t out[4096];
	struct err e = { 0 };

	EVP_PKEY_free(new_key(EVP_EC_gen("P-256")));
	CHECK_INT(jwt_sign(span_of(pem), &claims, out, sizeof out, &e), -1);
	EVP_PKEY_free(new_key(EVP_RSA_gen(1024)));
	CHECK_INT(jwt_sign(span_of(pem), &claims, out, sizeof out, &e), -1);
	static const char *const none[] = { "", "ghp_0123456789",
		                            "-----BEGIN RSA PRIVATE KEY-----" };

	for (size_t i = 0; i < COUNT(none); i++)
		CHECK_INT(jwt_sign(span_of(none[i]), &claims, out, sizeof out, &e), -1);
}
