#include "wire/seal.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#define HASH_LEN 32
#define NONCE_LEN 12
#define LABELED_MAX 256 /* a label, and what stands behind it: at most 65 bytes, or an info */

/* Of the two parts of a suite, as the RFC writes them: KEM; then KEM, KDF and AEAD. */
static const struct span kem = { "KEM\0\x20", 5 };
static const struct span hpke = { "HPKE\0\x20\0\x01\0\x03", 10 };

struct keys {
	uint8_t key[32], nonce[NONCE_LEN];
};

static void add(uint8_t *out, size_t *n, struct span s)
{
	if (s.len > 0)
		memcpy(out + *n, s.at, s.len);
	*n += s.len;
}

static struct span bytes(const void *at, size_t n)
{
	return (struct span){ at, n };
}

static bool hmac(struct span key, const uint8_t *at, size_t n, uint8_t out[HASH_LEN])
{
	static const uint8_t zeros[HASH_LEN]; /* an absent salt is as many zeros (RFC 5869) */

	return HMAC(EVP_sha256(), key.len > 0 ? (const void *)key.at : zeros,
	            key.len > 0 ? (int)key.len : HASH_LEN, at, n, out, NULL);
}

/* LabeledExtract of RFC 9180, 4. */
static bool extract(struct span suite, struct span salt, const char *label, struct span ikm,
                    uint8_t out[HASH_LEN])
{
	uint8_t text[LABELED_MAX];
	size_t n = 0;

	add(text, &n, span_of("HPKE-v1"));
	add(text, &n, suite);
	add(text, &n, span_of(label));
	add(text, &n, ikm);
	bool is_done = hmac(salt, text, n, out);

	OPENSSL_cleanse(text, sizeof text);
	return is_done;
}

/* LabeledExpand, of no more than one block. */
static bool expand(struct span suite, const uint8_t prk[HASH_LEN], const char *label,
                   struct span info, struct span out)
{
	uint8_t text[LABELED_MAX] = { 0, (uint8_t)out.len }, block[HASH_LEN];
	size_t n = 2;

	add(text, &n, span_of("HPKE-v1"));
	add(text, &n, suite);
	add(text, &n, span_of(label));
	add(text, &n, info);
	add(text, &n, bytes("\x01", 1));
	bool is_done = hmac(bytes(prk, HASH_LEN), text, n, block);

	memcpy((void *)(uintptr_t)out.at, block, out.len);
	OPENSSL_cleanse(block, sizeof block);
	return is_done;
}

/* ---- the key of both ----------------------------------------------------------------- */

static bool diffie(const uint8_t key[SEAL_KEY_BYTES], const uint8_t peer[SEAL_KEY_BYTES],
                   uint8_t out[SEAL_KEY_BYTES])
{
	EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, key, SEAL_KEY_BYTES);
	EVP_PKEY *other = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, peer, SEAL_KEY_BYTES);
	EVP_PKEY_CTX *ctx = own ? EVP_PKEY_CTX_new(own, NULL) : NULL;
	size_t n = SEAL_KEY_BYTES;
	/* A point of small order gives zeros, which the library refuses. */
	bool is_done = ctx && other && EVP_PKEY_derive_init(ctx) == 1 &&
	               EVP_PKEY_derive_set_peer(ctx, other) == 1 &&
	               EVP_PKEY_derive(ctx, out, &n) == 1 && n == SEAL_KEY_BYTES;

	EVP_PKEY_CTX_free(ctx);
	EVP_PKEY_free(other);
	EVP_PKEY_free(own);
	return is_done;
}

struct pair {
	const uint8_t *enc; /* public, of the one who seals for this once */
	const uint8_t *to;  /* public, of the one who opens */
};

/* Decap and Encap end alike: from what both can compute to the keys of the one message. */
static bool schedule(const uint8_t dh[SEAL_KEY_BYTES], struct pair p, struct span info,
                     struct keys *out)
{
	uint8_t context[2 * SEAL_KEY_BYTES], prk[HASH_LEN], shared[HASH_LEN];
	uint8_t mode[1 + 2 * HASH_LEN] = { 0 }; /* base */
	struct span none = { "", 0 };

	memcpy(context, p.enc, SEAL_KEY_BYTES);
	memcpy(context + SEAL_KEY_BYTES, p.to, SEAL_KEY_BYTES);
	bool is_done =
	    extract(kem, none, "eae_prk", bytes(dh, SEAL_KEY_BYTES), prk) &&
	    expand(kem, prk, "shared_secret", bytes(context, sizeof context),
	           bytes(shared, sizeof shared)) &&
	    extract(hpke, none, "psk_id_hash", none, mode + 1) &&
	    extract(hpke, none, "info_hash", info, mode + 1 + HASH_LEN) &&
	    extract(hpke, bytes(shared, sizeof shared), "secret", none, prk) &&
	    expand(hpke, prk, "key", bytes(mode, sizeof mode), bytes(out->key, sizeof out->key)) &&
	    expand(hpke, prk, "base_nonce", bytes(mode, sizeof mode),
	           bytes(out->nonce, sizeof out->nonce));

	OPENSSL_cleanse(prk, sizeof prk);
	OPENSSL_cleanse(shared, sizeof shared);
	return is_done;
}

static bool agree(const uint8_t key[SEAL_KEY_BYTES], const uint8_t peer[SEAL_KEY_BYTES],
                  struct pair p, struct span info, struct keys *out)
{
	uint8_t dh[SEAL_KEY_BYTES];
	bool is_done =
	    info.len <= SEAL_INFO_MAX && diffie(key, peer, dh) && schedule(dh, p, info, out);

	OPENSSL_cleanse(dh, sizeof dh);
	return is_done;
}

int seal_public(const uint8_t key[SEAL_KEY_BYTES], uint8_t out[SEAL_KEY_BYTES], struct err *e)
{
	EVP_PKEY *own = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, key, SEAL_KEY_BYTES);
	size_t n = SEAL_KEY_BYTES;
	bool is_done = own && EVP_PKEY_get_raw_public_key(own, out, &n) == 1;

	EVP_PKEY_free(own);
	return is_done ? 0 : err_new(e, ERR_INTERNAL, "compute a public key");
}

/* ---- the message --------------------------------------------------------------------- */

/* `out` has room for in.len, and for the tag when it is sealed. */
static bool cipher(bool is_sealing, const struct keys *k, struct span aad, struct span in,
                   uint8_t *out)
{
	size_t len = is_sealing ? in.len : in.len - SEAL_TAG_BYTES;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0;
	bool is_done =
	    ctx && aad.len <= INT_MAX && in.len <= INT_MAX &&
	    EVP_CipherInit_ex(ctx, EVP_chacha20_poly1305(), NULL, k->key, k->nonce, is_sealing) ==
		1 &&
	    EVP_CipherUpdate(ctx, NULL, &n, (const uint8_t *)aad.at, (int)aad.len) == 1 &&
	    EVP_CipherUpdate(ctx, out, &n, (const uint8_t *)in.at, (int)len) == 1;

	if (is_done && !is_sealing)
		is_done = EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG_BYTES,
		                              (void *)(uintptr_t)(in.at + len)) == 1;
	is_done = is_done && EVP_CipherFinal_ex(ctx, out + n, &n) == 1;
	if (is_done && is_sealing)
		is_done =
		    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG_BYTES, out + len) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return is_done;
}

/* A pair for this once. */
static bool ephemeral(uint8_t key[SEAL_KEY_BYTES], uint8_t public[SEAL_KEY_BYTES])
{
	EVP_PKEY *own = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
	size_t n = SEAL_KEY_BYTES, m = SEAL_KEY_BYTES;
	bool is_done = own && EVP_PKEY_get_raw_private_key(own, key, &n) == 1 &&
	               EVP_PKEY_get_raw_public_key(own, public, &m) == 1;

	EVP_PKEY_free(own);
	return is_done;
}

int seal_close(const uint8_t to[SEAL_KEY_BYTES], const struct seal_frame *frame, struct span plain,
               struct str *out, struct err *e)
{
	AUTO(freep) uint8_t *text = mem_alloc(plain.len + SEAL_OVERHEAD);
	uint8_t key[SEAL_KEY_BYTES];
	struct keys k;
	bool is_done = ephemeral(key, text) &&
	               agree(key, to, (struct pair){ text, to }, frame->info, &k) &&
	               cipher(true, &k, frame->aad, plain, text + SEAL_KEY_BYTES);

	OPENSSL_cleanse(key, sizeof key);
	OPENSSL_cleanse(&k, sizeof k);
	if (!is_done)
		return err_new(e, ERR_INTERNAL, "seal it: is that a public key?");
	str_addn(out, text, plain.len + SEAL_OVERHEAD);
	return out->overflow ? err_new(e, ERR_LIMIT, "it is too long") : 0;
}

int seal_open(const uint8_t key[SEAL_KEY_BYTES], const struct seal_frame *frame, struct span sealed,
              uint8_t *plain, struct err *e)
{
	const uint8_t *enc = (const uint8_t *)sealed.at;
	uint8_t own[SEAL_KEY_BYTES];
	struct keys k;

	if (sealed.len < SEAL_OVERHEAD || sealed.len > INT_MAX)
		return err_new(e, ERR_INVALID, "it is not sealed");
	if (seal_public(key, own, e) < 0)
		return -1;
	bool is_done = agree(key, enc, (struct pair){ enc, own }, frame->info, &k) &&
	               cipher(false, &k, frame->aad, span_after(sealed, SEAL_KEY_BYTES), plain);

	OPENSSL_cleanse(&k, sizeof k);
	if (!is_done) {
		OPENSSL_cleanse(plain, sealed.len - SEAL_OVERHEAD);
		return err_new(e, ERR_INVALID, "the seal is broken, or another's");
	}
	return (int)(sealed.len - SEAL_OVERHEAD);
}
