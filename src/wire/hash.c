/* The one-shot interface of OpenSSL 3 reads its configuration first; this one is older and
 * deprecated because it cannot be replaced by a provider, which is what we want here. */
#define OPENSSL_API_COMPAT 0x10100000L

#include "wire/hash.h"

#include <openssl/sha.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(struct hash), "a hash has no room");

static SHA256_CTX *inner(struct hash *h)
{
	return (SHA256_CTX *)(void *)h->state;
}

void hash_init(struct hash *h)
{
	SHA256_Init(inner(h));
}

void hash_add(struct hash *h, struct span bytes)
{
	SHA256_Update(inner(h), bytes.at, bytes.len);
}

void hash_bytes(struct hash *h, uint8_t out[HASH_BYTES])
{
	SHA256_Final(out, inner(h));
}

void hash_text(struct hash *h, char out[TREE_HASH_TEXT])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t sum[HASH_BYTES];

	hash_bytes(h, sum);
	for (size_t i = 0; i < sizeof sum; i++) {
		out[2 * i] = digits[sum[i] >> 4];
		out[2 * i + 1] = digits[sum[i] & 15];
	}
	out[TREE_HASH_TEXT - 1] = '\0';
}

void hash_of(struct span bytes, char out[TREE_HASH_TEXT])
{
	struct hash h;

	hash_init(&h);
	hash_add(&h, bytes);
	hash_text(&h, out);
}
