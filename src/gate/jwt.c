#include "gate/jwt.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/str.h"
#include "wire/base64.h"

#define BITS_MIN 2048
#define BITS_MAX 8192
#define TEXT_MAX 2048

/* base64url, without padding (RFC 7515, 2). */
static void add_code(const void *bytes, size_t n, struct str *out)
{
	AUTO(str_done) struct str code = { .max = 2ul * TEXT_MAX };

	base64_encode(bytes, n, &code);
	for (size_t i = 0; i < code.len && code.data[i] != '='; i++) {
		char c = code.data[i];

		c = (char)(c == '+' ? '-' : c == '/' ? '_' : c);
		str_addn(out, &c, 1);
	}
}

static int ignore_passphrase(char *buf, int size, int is_writing, void *arg)
{
	(void)buf;
	(void)size;
	(void)is_writing;
	(void)arg;
	return -1; /* nobody could be asked */
}

static EVP_PKEY *read_key(struct span key)
{
	BIO *bio = BIO_new_mem_buf(key.at, (int)key.len);
	EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, ignore_passphrase, NULL) : NULL;

	BIO_free(bio);
	ERR_clear_error();
	if (pkey && EVP_PKEY_is_a(pkey, "RSA") && EVP_PKEY_get_bits(pkey) >= BITS_MIN &&
	    EVP_PKEY_get_bits(pkey) <= BITS_MAX)
		return pkey;
	EVP_PKEY_free(pkey);
	return NULL;
}

static size_t sign(EVP_PKEY *key, const struct str *text, uint8_t out[BITS_MAX / 8])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t n = BITS_MAX / 8;
	bool is_signed = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
	                 EVP_DigestSign(ctx, out, &n, (const uint8_t *)text->data, text->len) == 1;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return is_signed ? n : 0;
}

int jwt_sign(struct span key, const struct jwt_claims *c, uint8_t *out, size_t size, struct err *e)
{
	static const char head[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
	AUTO(str_done) struct str text = { .max = 2ul * TEXT_MAX };
	uint8_t signature[BITS_MAX / 8];
	char claims[512];
	int n = snprintf(claims, sizeof claims, "{\"iat\":%lld,\"exp\":%lld,\"iss\":\"%s\"}",
	                 (long long)c->now_s - JWT_BEFORE_S, (long long)c->now_s + JWT_AFTER_S,
	                 c->issuer);

	if (n < 0 || (size_t)n >= sizeof claims)
		return err_new(e, ERR_LIMIT, "the name of the app is too long");
	EVP_PKEY *pkey = read_key(key);

	if (!pkey)
		return err_new(e, ERR_INVALID, "that is no RSA key in PEM");
	add_code(head, sizeof head - 1, &text);
	str_add(&text, ".");
	add_code(claims, (size_t)n, &text);
	size_t len = sign(pkey, &text, signature);

	EVP_PKEY_free(pkey);
	str_add(&text, ".");
	add_code(signature, len, &text);
	if (len == 0 || text.overflow || text.len > size)
		return err_new(e, ERR_INTERNAL, "it cannot be signed with");
	memcpy(out, text.data, text.len);
	return (int)text.len;
}
