/*
 * tokens.h - bearer tokens, by the hash of their text; the text itself is nowhere.
 */
#pragma once

#include "store/store.h"

#define TOKEN_TOUCH_MS 60000 /* last_used_ms is this exact, so that a request is not a write */

struct token_row {
	int64_t seq;
	const char *id, *tenant;
	const char *node; /* NULL at insert: this store's */
	const char *name;
	uint8_t hash[STORE_HASH_BYTES];
	const char *scopes;
	int64_t created_ms, expires_ms, revoked_ms, last_used_ms;
};

struct token_list {
	struct token_row *rows;
	size_t n;
	const char *next; /* cursor, or NULL at the end */
};

bool token_is_valid(const struct token_row *t, int64_t now_ms); /* not expired, not revoked */

int store_token_insert(struct store *s, const struct token_row *row, struct store_call call,
                       struct err *e);
/* `tenant` NULL: of any. */
int store_token_revoke(struct store *s, const char *tenant, const char *id, int64_t now_ms,
                       struct store_call call,
                       struct err *e); /* NOT_FOUND, or OK also when it was */
/* Remembers the use, if the last one is TOKEN_TOUCH_MS ago; otherwise changes nothing. */
int store_token_touch(struct store *s, const char *id, int64_t now_ms, struct store_call call,
                      struct err *e);

/* Of any tenant: this is how the tenant becomes known. Invalid ones too, see token_is_valid(). */
int store_token_by_hash(struct store *s, const uint8_t hash[STORE_HASH_BYTES], struct arena *a,
                        struct token_row *out, struct err *e);
int store_token_list(struct store *s, const struct store_page *page, struct arena *a,
                     struct token_list *out, struct err *e);
