/*
 * sign.c - requests for files that are signed: v1_ and the SHA-256, in base64 without padding, of
 * PATH:read|write:USER:TOKEN, and :EXPIRY where there is one. Clients that have one address for all
 * sandboxes do not say which one is meant: then it is the one whose token signed it.
 *
 * The form is theirs. Without a colon in USER it can be read from its end in one way only: a path
 * with colons cannot turn a signature for reading into one for writing.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "e2b/e2b-internal.h"
#include "wire/base64.h"

struct signed_ask {
	const char *path, *operation, *user, *expiry, *signature;
	struct sbx *found;
};

static bool is_signed_by(const struct sbx *s, const struct signed_ask *q)
{
	AUTO(str_done) struct str text = { .max = 16u << 10 };
	AUTO(str_done) struct str coded = { .max = 128 };
	char token[E2B_TOKEN_SIZE];
	unsigned char hash[32];

	ident_token(s, "envd", token);
	str_addf(&text, "%s:%s:%s:%s", q->path, q->operation, q->user, token);
	if (q->expiry)
		str_addf(&text, ":%s", q->expiry);
	if (text.overflow || EVP_Digest(text.data, text.len, hash, NULL, EVP_sha256(), NULL) != 1)
		return false;
	str_add(&coded, "v1_");
	base64_encode(hash, sizeof hash, &coded);
	while (coded.len > 0 && coded.data[coded.len - 1] == '=')
		coded.data[--coded.len] = '\0';
	return strlen(q->signature) == coded.len &&
	       CRYPTO_memcmp(q->signature, coded.data, coded.len) == 0;
}

static void look_at(void *entry, void *arg)
{
	struct signed_ask *q = arg;

	if (e2b_is_there(entry) && is_signed_by(entry, q))
		q->found = entry;
}

static bool is_over(const char *expiry)
{
	size_t n = strspn(expiry, "0123456789");

	return n == 0 || n > 15 || expiry[n] || strtoll(expiry, NULL, 10) * 1000 < core_now_ms();
}

struct sbx *sign_check(struct call *c, const char *operation, struct sbx *known, struct fail *f)
{
	const char *path = call_query(c, "path"), *user = call_query(c, "username");
	struct signed_ask q = { .path = path ? path : "",
		                .operation = operation,
		                .user = user ? user : "",
		                .expiry = call_query(c, "signature_expiration"),
		                .signature = call_query(c, "signature") };

	if (strchr(q.user, ':'))
		q.found = NULL;
	else if (known)
		look_at(known, &q);
	else
		roster_each(&c->api->core->sandboxes, look_at, &q);
	if (!q.found) {
		fail_set(f, FAIL_UNAUTHORIZED, "invalid signature");
		return NULL;
	}
	if (q.expiry && is_over(q.expiry)) {
		fail_set(f, FAIL_UNAUTHORIZED, "signature is already expired");
		return NULL;
	}
	return q.found;
}
