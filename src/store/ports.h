/*
 * ports.h - forwarded ports of a sandbox.
 *
 * Only the hash of a port's token is stored.
 */
#pragma once

#include "store/store.h"

struct port_row {
	int64_t seq;
	const char *sandbox, *tenant;
	const char *node;   /* NULL at put: this store's */
	int64_t port;       /* inside, 1..65535 */
	int64_t local_port; /* 0: through the daemon */
	uint8_t token_hash[STORE_HASH_BYTES];
	int64_t created_ms, expires_ms;
};

struct port_list {
	struct port_row *rows;
	size_t n;
};

int store_port_put(struct store *s, const struct port_row *row, struct store_call call,
                   struct err *e); /* makes or replaces it */
int store_port_drop(struct store *s, const char *sandbox, int64_t port, struct store_call call,
                    struct err *e); /* port 0: all of them */
int store_port_list(struct store *s, const char *tenant, const char *sandbox, struct arena *a,
                    struct port_list *out, struct err *e);
/* Expired ones too: the caller has the clock. */
int store_port_by_token(struct store *s, const uint8_t hash[STORE_HASH_BYTES], struct arena *a,
                        struct port_row *out, struct err *e);
