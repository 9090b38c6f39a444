#include "api/auth.h"

#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <unistd.h>

#include "store/tokens.h"
#include "wire/base64.h"

#define TOKEN_BYTES 32
#define TOKEN_HEX_BYTES 28 /* as many as find room */

static const char bearer[] = "Bearer ";

int auth_token_hex(const char *prefix, char out[TOKEN_TEXT])
{
	unsigned char random[TOKEN_HEX_BYTES];
	size_t len = strlen(prefix);

	if (RAND_bytes(random, sizeof random) != 1)
		return -1;
	snprintf(out, TOKEN_TEXT, "%s", prefix);
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(out + len + 2 * i, TOKEN_TEXT - len - 2 * i, "%02x", random[i]);
	return 0;
}

int auth_token(const char *prefix, char out[TOKEN_TEXT])
{
	unsigned char random[TOKEN_BYTES];
	AUTO(str_done) struct str coded = { .max = TOKEN_TEXT };

	if (RAND_bytes(random, sizeof random) != 1)
		return -1;
	base64_encode(random, sizeof random, &coded);
	for (char *p = coded.data; *p; p++) {
		if (*p == '+')
			*p = '-';
		else if (*p == '/')
			*p = '_';
		else if (*p == '=')
			*p = '\0';
	}
	snprintf(out, TOKEN_TEXT, "%s%s", prefix, coded.data);
	return 0;
}

void auth_hash(const char *token, uint8_t out[STORE_HASH_BYTES])
{
	if (EVP_Digest(token, strlen(token), out, NULL, EVP_sha256(), NULL) != 1)
		abort(); /* a built-in digest does not fail */
}

/* ---- TCP ----------------------------------------------------------------------------- */

static bool is_address(struct span host)
{
	char text[INET6_ADDRSTRLEN + 2] = "";
	struct in6_addr six;
	struct in_addr four;

	if (host.len == 0 || host.len >= sizeof text)
		return false;
	memcpy(text, host.at, host.len);
	if (text[0] == '[') {
		text[host.len - 1] = '\0';
		return inet_pton(AF_INET6, text + 1, &six) == 1;
	}
	return inet_pton(AF_INET, text, &four) == 1;
}

static bool is_our_host(const struct api *a, struct span host)
{
	return is_address(host) || span_is_nocase(host, "localhost") ||
	       (a->tcp_host && span_is_nocase(host, a->tcp_host));
}

/* "http://host:port" of the Origin is the one that was asked: else it is a page from elsewhere. */
static bool is_our_origin(const struct http_head *h)
{
	const struct span *origin = http_header(h, "Origin"), *host = http_header(h, "Host");

	if (!origin)
		return true;
	size_t skip = origin->len > 8 && memcmp(origin->at, "https://", 8) == 0  ? 8
	              : origin->len > 7 && memcmp(origin->at, "http://", 7) == 0 ? 7
	                                                                         : 0;
	return skip && host && span_same_nocase(span_after(*origin, skip), *host);
}

#define S(scope) (1u << SCOPE_##scope)
/* What each includes. Who approves does not work with what he approves of, and the other way. */
static const unsigned int includes[] = {
	[SCOPE_NONE] = 0,
	[SCOPE_READ] = S(READ),
	[SCOPE_EXEC] = S(READ) | S(EXEC),
	[SCOPE_MANAGE] = S(READ) | S(EXEC) | S(MANAGE),
	[SCOPE_APPROVE] = S(READ) | S(APPROVE),
	[SCOPE_ADMIN] = S(READ) | S(EXEC) | S(MANAGE) | S(APPROVE) | S(ADMIN),
};
_Static_assert(COUNT(includes) == SCOPES, "a scope includes nothing");

static bool is_named(const char *granted, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = granted; (at = strstr(at, name)); at += n)
		if ((at == granted || at[-1] == ' ' || at[-1] == ',') &&
		    (at[n] == '\0' || at[n] == ' ' || at[n] == ','))
			return true;
	return false;
}

/* `admin` is the operator's, whose tenant is "local". A token of another tenant that has it from
 * the time before that was refused does there what the other scopes let it do. */
static bool has_scope(const struct token_row *t, enum scope wanted)
{
	if (wanted == SCOPE_ADMIN && strcmp(t->tenant, AUTH_OPERATOR) != 0)
		return false;
	for (enum scope s = SCOPE_READ; s < SCOPES; s++)
		if (includes[s] & 1u << wanted && is_named(t->scopes, scope_name(s)))
			return true;
	return false;
}

bool auth_names_admin(const char *scopes)
{
	return is_named(scopes, scope_name(SCOPE_ADMIN));
}

int auth_check_token(struct call *c, struct span text, enum scope scope, struct fail *f)
{
	uint8_t hash[STORE_HASH_BYTES];
	struct token_row row;
	struct err e = { 0 };

	/* Looked up by its hash: what the time of the search tells is nothing about the token. */
	auth_hash(arena_strndup(&c->arena, text.at, text.len), hash);
	if (store_token_by_hash(c->api->core->store, hash, &c->arena, &row, &e) < 0 ||
	    !token_is_valid(&row, core_now_ms()))
		return fail_set(f, FAIL_UNAUTHORIZED, "the token is unknown, expired or revoked");
	snprintf(c->tenant, sizeof c->tenant, "%s", row.tenant);
	(void)store_token_touch(c->api->core->store, row.id, core_now_ms(),
	                        (struct store_call){ 0 }, &e); /* only says when it was last used */
	snprintf(c->actor, sizeof c->actor, "token:%s", row.id);
	c->is_admin = has_scope(&row, SCOPE_ADMIN);
	c->may_exec = has_scope(&row, SCOPE_EXEC);
	if (!has_scope(&row, scope))
		return fail_set(f, FAIL_FORBIDDEN, "the token lacks the scope %s",
		                scope_name(scope));
	return 0;
}

static int check_bearer(struct call *c, enum scope scope, struct fail *f)
{
	const struct span *h = http_header(c->r->head, "Authorization");

	if (!h || http_header_count(c->r->head, "Authorization") != 1 || h->len <= strlen(bearer) ||
	    memcmp(h->at, bearer, strlen(bearer)) != 0)
		return fail_set(f, FAIL_UNAUTHORIZED, "a bearer token is needed");
	return auth_check_token(c, span_after(*h, strlen(bearer)), scope, f);
}

int auth_check_place(struct call *c, struct fail *f)
{
	if (!is_our_host(c->api, c->r->head->host))
		return fail_set(f, FAIL_FORBIDDEN, "the Host header names somebody else");
	if (!is_our_origin(c->r->head))
		return fail_set(f, FAIL_FORBIDDEN, "requests of other origins are refused");
	return 0;
}

int auth_check(struct call *c, enum scope scope, struct fail *f)
{
	const struct request *r = c->r;

	if (r->door == DOOR_UNIX) {
		if (r->peer_uid != 0 && r->peer_uid != geteuid())
			return fail_set(f, FAIL_UNAUTHORIZED, "this daemon is somebody else's");
		snprintf(c->tenant, sizeof c->tenant, AUTH_OPERATOR);
		snprintf(c->actor, sizeof c->actor, "uid:%u", (unsigned int)r->peer_uid);
		c->is_operator = true;
		return 0;
	}
	if (auth_check_place(c, f) < 0)
		return -1;
	return scope == SCOPE_NONE ? 0 : check_bearer(c, scope, f);
}
