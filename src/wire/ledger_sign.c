#include "wire/ledger_sign.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include "wire/base64.h"
#include "wire/hash.h"

#define SIG_BYTES 64
#define KEY_BYTES 32
#define TEXT_MAX 512

static void bio_drop(BIO **b)
{
	BIO_free(*b);
}

static void md_drop(EVP_MD_CTX **c)
{
	EVP_MD_CTX_free(*c);
}

static int refuse(struct err *e, const char *what)
{
	return err_new(e, ERR_INVALID, "the key of the ledger: %s", what);
}

static int take_key(struct ledger_key *k, EVP_PKEY *pkey, struct err *e)
{
	uint8_t raw[KEY_BYTES];
	size_t n = sizeof raw;
	char hash[LEDGER_HASH_SIZE];

	if (!pkey)
		return refuse(e, "not a key in PEM");
	if (EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519 ||
	    EVP_PKEY_get_raw_public_key(pkey, raw, &n) <= 0 || n != sizeof raw) {
		EVP_PKEY_free(pkey);
		return refuse(e, "not one of Ed25519");
	}
	hash_of((struct span){ (const char *)raw, n }, hash);
	k->pkey = pkey;
	snprintf(k->name, sizeof k->name, "%.*s", LEDGER_KEY_SIZE - 1, hash);
	return 0;
}

int ledger_key_make(struct ledger_key *k, struct err *e)
{
	return take_key(k, EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), e);
}

int ledger_key_read(struct ledger_key *k, struct span pem, bool is_private, struct err *e)
{
	AUTO(bio_drop) BIO *in = BIO_new_mem_buf(pem.at, (int)pem.len);

	if (!in || pem.len > LEDGER_PEM_MAX)
		return refuse(e, "too long");
	return take_key(k,
	                is_private ? PEM_read_bio_PrivateKey(in, NULL, NULL, NULL)
	                           : PEM_read_bio_PUBKEY(in, NULL, NULL, NULL),
	                e);
}

int ledger_key_print(const struct ledger_key *k, bool is_private, struct str *pem, struct err *e)
{
	AUTO(bio_drop) BIO *out = BIO_new(BIO_s_secmem());
	char *bytes = NULL;

	if (!out ||
	    (is_private ? PEM_write_bio_PKCS8PrivateKey(out, k->pkey, NULL, NULL, 0, NULL, NULL)
	                : PEM_write_bio_PUBKEY(out, k->pkey)) <= 0)
		return refuse(e, "it cannot be written");
	long n = BIO_get_mem_data(out, &bytes);

	str_addn(pem, bytes, (size_t)n);
	return 0;
}

void ledger_key_done(struct ledger_key *k)
{
	EVP_PKEY_free(k->pkey);
	k->pkey = NULL;
}

static size_t text_of(const struct ledger_seal *s, char out[TEXT_MAX])
{
	int n = snprintf(out, TEXT_MAX, "caisson-ledger-v1\n%s\n%s\n%llu\n%lld\n%s\n", s->kind,
	                 s->ledger, (unsigned long long)s->seq, (long long)s->ts_ms, s->prev);

	return n > 0 && n < TEXT_MAX ? (size_t)n : 0;
}

int ledger_key_sign(const struct ledger_key *k, struct span text, char sig[LEDGER_SIG_SIZE],
                    struct err *e)
{
	AUTO(md_drop) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	AUTO(str_done) struct str coded = { .max = LEDGER_SIG_SIZE };
	uint8_t raw[SIG_BYTES];
	size_t n = sizeof raw;

	if (!ctx || text.len == 0 || EVP_DigestSignInit(ctx, NULL, NULL, NULL, k->pkey) <= 0 ||
	    EVP_DigestSign(ctx, raw, &n, (const uint8_t *)text.at, text.len) <= 0 ||
	    n != sizeof raw)
		return err_new(e, ERR_INTERNAL, "the ledger cannot sign");
	base64_encode(raw, n, &coded);
	snprintf(sig, LEDGER_SIG_SIZE, "%s", str_text(&coded));
	return 0;
}

bool ledger_key_holds(const struct ledger_key *k, struct span text, struct span sig)
{
	AUTO(md_drop) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	AUTO(str_done) struct str raw = { .max = SIG_BYTES + 1 };

	if (!ctx || text.len == 0 || !base64_decode(sig.at, sig.len, &raw) || raw.len != SIG_BYTES)
		return false;
	return EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, k->pkey) > 0 &&
	       EVP_DigestVerify(ctx, (const uint8_t *)raw.data, raw.len, (const uint8_t *)text.at,
	                        text.len) == 1;
}

int ledger_sign(const struct ledger_key *k, const struct ledger_seal *s, char sig[LEDGER_SIG_SIZE],
                struct err *e)
{
	char words[TEXT_MAX];

	return ledger_key_sign(k, (struct span){ words, text_of(s, words) }, sig, e);
}

bool ledger_sign_holds(const struct ledger_key *k, const struct ledger_seal *s, struct span sig)
{
	char words[TEXT_MAX];

	return ledger_key_holds(k, (struct span){ words, text_of(s, words) }, sig);
}
