/*
 * ident.c - ids and tokens as their clients have them. An id is in a host name there, so it has no
 * underscore. A token is not kept anywhere: it is made again from the id and the key of the store.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/hex.h"
#include "e2b/e2b-internal.h"

#define KEY_NAME "door_key"
#define KEY_BYTES 32
#define SIGNED_MAX 2048

static char key[2 * KEY_BYTES + 1]; /* as it is stored: hexadecimal */

int ident_open(struct core *c, struct err *e)
{
	AUTO(arena_done) struct arena a = { 0 };
	unsigned char random[KEY_BYTES];
	const char *stored = NULL;

	if (store_meta_get(c->store, KEY_NAME, &a, &stored, e) < 0)
		return -1;
	if (stored && strlen(stored) == sizeof key - 1) {
		memcpy(key, stored, sizeof key);
		return 0;
	}
	if (RAND_bytes(random, sizeof random) != 1)
		return err_new(e, ERR_INTERNAL, "make a key");
	hex_print(random, sizeof random, key);
	return store_meta_set(c->store, KEY_NAME, key, (struct store_call){ .is_durable = true },
	                      e);
}

void ident_out(const char *id, char out[E2B_ID_SIZE])
{
	snprintf(out, E2B_ID_SIZE, "i%s", id + strlen("sb_"));
}

bool ident_in(struct span text, char out[ID_SIZE])
{
	const char *dash = memchr(text.at, '-', text.len);
	size_t n = dash ? (size_t)(dash - text.at) : text.len; /* old clients add who they are */

	if (n < 2 || n + 2 >= ID_SIZE || text.at[0] != 'i')
		return false;
	snprintf(out, ID_SIZE, "sb_%.*s", (int)n - 1, text.at + 1);
	return id_is(out, strlen(out), "sb");
}

/* Signs each field with its NUL: no field has one, so none can reach into the next. */
void ident_sign(const char *const *fields, char out[E2B_TOKEN_SIZE])
{
	AUTO(str_done) struct str text = { .max = SIGNED_MAX };
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	for (; *fields; fields++)
		str_addn(&text, *fields, strlen(*fields) + 1);
	if (text.overflow || !HMAC(EVP_sha256(), key, (int)strlen(key),
	                           (const unsigned char *)text.data, text.len, mac, &n))
		abort(); /* a built-in digest does not fail, and callers bound what they sign */
	hex_print(mac, n, out);
}

void ident_token(const struct sbx *s, const char *use, char out[E2B_TOKEN_SIZE])
{
	ident_sign((const char *[]){ use, s->id, NULL }, out);
}

bool ident_takes(const struct sbx *s, const char *use, struct span token)
{
	char expected[E2B_TOKEN_SIZE];

	ident_token(s, use, expected);
	return token.len == strlen(expected) && CRYPTO_memcmp(token.at, expected, token.len) == 0;
}

struct search {
	struct span token;
	struct sbx *found;
};

static void look_at(void *entry, void *arg)
{
	struct search *x = arg;
	struct sbx *s = entry;

	if (e2b_is_there(s) && ident_takes(s, "envd", x->token))
		x->found = s;
}

struct sbx *ident_by_token(struct core *c, struct span token)
{
	struct search x = { .token = token };

	roster_each(&c->sandboxes, look_at, &x);
	return x.found;
}
