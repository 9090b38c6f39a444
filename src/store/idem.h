/*
 * idem.h - Idempotency-Key: a request that is sent twice happens once.
 *
 *   begin ──▷ new ── the work ──▷ finish   the answer is kept for 24 hours
 *                             └─▷ abandon  nothing happened; the key is free again
 *
 * begin is decided by the store thread: of two requests with one key exactly one is new. What
 * was in progress when the daemon died stays so and is called interrupted: nobody knows how far
 * it came, and the caller is told that, with the ids of what it may have made.
 */
#pragma once

#include "store/store.h"

#define IDEM_KEEP_MS (24ll * 3600 * 1000)

enum idem_state {
	IDEM_NEW,         /* yours to do */
	IDEM_DONE,        /* status and body as they were */
	IDEM_IN_PROGRESS, /* somebody else does it now */
	IDEM_INTERRUPTED, /* a daemon before this one began it */
	IDEM_MISMATCH,    /* the key was used for another request */
};

struct idem_found {
	enum idem_state state;
	int status;       /* with IDEM_DONE */
	const void *body; /* with IDEM_DONE, and with IDEM_INTERRUPTED what was noted (or nothing);
	                   * borrowed for the time of the callback */
	size_t body_bytes;
	int64_t created_ms;
};

struct idem_request {
	const char *tenant, *key;
	uint8_t route_hash[STORE_HASH_BYTES]; /* method and path */
	uint8_t body_hash[STORE_HASH_BYTES];
	int64_t now_ms;
};

struct idem_result {
	const char *tenant, *key;
	int status;
	const void *body;
	size_t body_bytes; /* at most STORE_BODY_MAX */
};

int store_idem_begin(struct store *s, const struct idem_request *r, struct store_call call,
                     struct err *e);
/* STORE_CONFLICT when it is not in progress, or was begun by another daemon. */
int store_idem_finish(struct store *s, const struct idem_result *r, struct store_call call,
                      struct err *e);
/* What the request has begun to make, for who asks again after a crash: JSON. Sent before the rows
 * of what it makes, so that none of them is there without it. */
int store_idem_note(struct store *s, const struct idem_result *r, struct store_call call,
                    struct err *e);
int store_idem_abandon(struct store *s, const char *tenant, const char *key, struct store_call call,
                       struct err *e);
/* Forgets up to STORE_PURGE_ROWS keys that are older than IDEM_KEEP_MS; the answer says how many.
 */
int store_idem_purge(struct store *s, int64_t now_ms, struct store_call call, struct err *e);
