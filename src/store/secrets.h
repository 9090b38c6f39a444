/*
 * secrets.h - the rows of secrets: what they are for in clear, what they are only sealed to the
 * gate (spec/bind.h, wire/seal.h). Nobody who reads this database learns a value.
 */
#pragma once

#include "store/store.h"

#define STORE_BIND_MAX (16u << 10)
#define STORE_SEALED_MAX (8u << 10) /* base64 */

struct secret_row {
	const char *tenant;
	const char *node; /* NULL at put: this store's */
	const char *name; /* one for each tenant */
	const char *bind, *sealed;
	int64_t version; /* given by the store: how often it was set */
	int64_t created_ms, changed_ms, last_used_ms, uses;
};

struct secret_list {
	struct secret_row *rows;
	size_t n;
};

/* New, or another value or purpose of one that exists. On disk before it is answered: who was told
 * that a secret was replaced may have revoked the old one. */
int store_secret_put(struct store *s, const struct secret_row *row, struct store_call call,
                     struct err *e);
int store_secret_drop(struct store *s, const char *tenant, const char *name, struct store_call call,
                      struct err *e); /* STORE_NOT_FOUND */
/* Was used so often until then. One that is gone is nobody's concern. */
int store_secret_used(struct store *s, const struct secret_row *row, struct store_call call,
                      struct err *e);

int store_secret_get(struct store *s, const char *tenant, const char *name, struct arena *a,
                     struct secret_row *out, struct err *e);
int store_secret_list(struct store *s, const char *tenant, struct arena *a, struct secret_list *out,
                      struct err *e); /* by name */
