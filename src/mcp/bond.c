/*
 * bond.c - which answer is whose. A call that waits for its client is found again by
 *
 *   requestState = WORD.UNTIL.MAC
 *
 * The word is random and good once; the MAC binds it to who was asked (tenant and token or user),
 * to the whole call (workspace, method, name, arguments), and to its end. The key is this process's
 * own, and so are the calls that wait.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/hex.h"
#include "mcp/mcp-internal.h"

#define KEY_BYTES 32
#define WORD_BYTES 16
#define MAC_BYTES 32
#define TEXT_FORM "%63[a-z0-9-].%llu.%n"

bool bond_word(char out[MCP_WORD_SIZE])
{
	unsigned char random[WORD_BYTES];

	if (RAND_bytes(random, sizeof random) != 1)
		return false;
	snprintf(out, MCP_WORD_SIZE, "ask-");
	hex_print(random, sizeof random, out + 4);
	return true;
}

bool bond_is_client(const struct mcp *a, const struct mcp *b)
{
	return strcmp(a->tenant, b->tenant) == 0 && strcmp(a->actor, b->actor) == 0 &&
	       strcmp(a->session ? a->session : "", b->session ? b->session : "") == 0;
}

/* A reference. What is said about a call, but not of it, is left out. */
static json_t *call_of(const struct mcp *m)
{
	const json_t *name = json_object_get(m->rpc.params, "name");
	json_t *arguments = json_object_get(m->rpc.params, "arguments");

	return json_pack("{ss,ss,ss,ss*,sO*,sO*}", "tenant", m->tenant, "actor", m->actor, "method",
	                 m->rpc.method, "workspace", m->bound, "name", name, "arguments",
	                 arguments);
}

bool bond_is_call(const struct mcp *a, const struct mcp *b)
{
	json_t *one = call_of(a), *other = call_of(b);
	bool is_same = json_equal(one, other);

	json_decref(one);
	json_decref(other);
	return is_same;
}

/* In base 16. False: there is no key, or no text of the call. */
static bool mac(const struct mcp *m, const char *word, uint64_t until_ms,
                char out[2 * MAC_BYTES + 1])
{
	static unsigned char key[KEY_BYTES];
	static bool has_key;
	unsigned char bytes[EVP_MAX_MD_SIZE];
	unsigned int n = 0;
	json_t *all = call_of(m);

	has_key = has_key || RAND_bytes(key, sizeof key) == 1;
	json_object_set_new(all, "word", json_string(word));
	json_object_set_new(all, "until", json_integer((json_int_t)until_ms));
	char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	bool is_made = text && has_key &&
	               HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)text,
	                    strlen(text), bytes, &n);
	if (is_made)
		hex_print(bytes, MAC_BYTES, out);
	free(text);
	json_decref(all);
	return is_made;
}

bool bond_print(const struct mcp *m, const char *word, uint64_t until_ms, char out[BOND_SIZE])
{
	char sum[2 * MAC_BYTES + 1];

	if (!mac(m, word, until_ms, sum))
		return false;
	snprintf(out, BOND_SIZE, "%s.%llu.%s", word, (unsigned long long)until_ms, sum);
	return true;
}

bool bond_read(const struct mcp *m, const char *text, uint64_t now_ms, char word[MCP_WORD_SIZE])
{
	char sum[2 * MAC_BYTES + 1], found[64];
	unsigned long long until_ms = 0;
	int n = 0;

	if (sscanf(text, TEXT_FORM, found, &until_ms, &n) != 2 || n == 0 || now_ms >= until_ms ||
	    strlen(text + n) != sizeof sum - 1 || !mac(m, found, until_ms, sum) ||
	    CRYPTO_memcmp(text + n, sum, sizeof sum - 1) != 0)
		return false;
	snprintf(word, MCP_WORD_SIZE, "%s", found);
	return true;
}
