/*
 * store.h - what exists, on disk: one SQLite database, and no SQL anywhere else.
 *
 * A write is a request: store_x_insert() and its like copy what they are given, queue it and
 * return at once. The store thread runs the queue in order, as many requests as are waiting in
 * one transaction. The answer comes back in the caller's thread: store_fd() becomes readable,
 * store_dispatch() calls the callbacks. What an answered write has changed
 *   - survives kill -9 of the process at any instant;
 *   - is on disk, and survives the loss of power, within 50 ms;
 *   - with is_durable: is on disk before it is answered.
 * Answers come in the order of the requests; only durable ones wait for the disk, so others may
 * overtake them. A second thread does that waiting (syncer.c). What remains in the way of an
 * ordinary write is one fsync whenever the log begins anew, once in about 8 MiB.
 *
 * A read is an ordinary call on a connection of its own. It sees what has been answered; a write
 * that is only queued is not visible yet. Reads allocate from the caller's arena.
 *
 * All of it is called from one thread, the loop's. Texts are UTF-8 without NUL, times are
 * milliseconds since 1970, 0 where there is none. Ids are made by the caller.
 *
 * On a full disk writes fail one by one with STORE_FULL and the rest goes on. Blocks set aside
 * (reserve.c) keep changes of state, ends and deletions possible; new rows come back by
 * themselves when there is room again.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

/* clang-format off */
#define STORE_QUEUE_MAX 4096          /* requests not yet answered; the caller holds back then */
#define STORE_QUEUE_BYTES (32u << 20) /* and their texts */
#define STORE_ID_MAX 64               /* "sb_" and a random number */
#define STORE_NAME_MAX 256            /* tenants, nodes, keys, labels, shells, backends, scopes */
#define STORE_TEXT_MAX 4096           /* a folder, a reason */
#define STORE_ARGV_MAX (64u << 10)    /* a record, not a replay: the caller cuts longer ones */
#define STORE_DETAILS_MAX (256u << 10)/* children, violations, execs of one process; bounded there */
#define STORE_ENV_MAX (3u << 19)      /* ARGV_BYTES_MAX */
#define STORE_BODY_MAX (5u << 20)     /* an answer kept for its Idempotency-Key: a spec is in it */
#define STORE_LIST_MAX 1000           /* rows of one page */
#define STORE_LIST_DEFAULT 100
#define STORE_LIST_BYTES (4u << 20)   /* a page of large rows ends early and has a cursor */
#define STORE_LABELS_MAX 8            /* pairs of one filter */
#define STORE_HASH_BYTES 32           /* SHA-256 */
/* clang-format on */

struct store;

enum store_code {
	STORE_OK,
	STORE_INVALID,   /* a value that the table does not take, such as broken JSON */
	STORE_NOT_FOUND, /* no such row */
	STORE_EXISTS,    /* id or key are taken */
	STORE_CONFLICT,  /* the state does not allow it; nothing was changed */
	STORE_FULL,      /* the disk is full; try again later */
	STORE_BROKEN,    /* I/O error, damage, our own failure */
};

struct idem_found;

struct store_answer {
	enum store_code code;
	const struct err *err;         /* NULL with STORE_OK */
	int64_t rows;                  /* how many were changed or removed */
	const struct idem_found *idem; /* of store_idem_begin() only */
};

/* Who hears of it. The answer is borrowed for the time of the call; done may be NULL. The
 * callback may queue and read, but not close the store. */
struct store_call {
	void (*done)(void *arg, const struct store_answer *a);
	void *arg;
	bool is_durable;
	bool is_lazy; /* goes with the next that is not, or at store_nudge() */
};

/* One page of a list, by the order in which rows were made; the newest first. */
struct store_page {
	const char *tenant;
	bool is_all_tenants; /* instead of a tenant; for recovery and the operator */
	bool is_oldest_first;
	size_t limit;       /* 0: STORE_LIST_DEFAULT */
	const char *cursor; /* NULL, or `next` of the page before; anything else is refused */
};

/* Opens or makes DIR/caisson.db, 0600; DIR exists. Refused, each with its sentence: another
 * daemon on the same DIR, a database that is newer than this program, damaged, foreign,
 * read-only, empty or gone although there was one (DIR/caisson.lock remembers), and one whose
 * write-ahead log has been removed after a crash. Nothing is ever made anew over an old one. */
struct store *store_open(const char *dir, struct err *e) MUST_USE;

/* Runs what is queued, calls all callbacks, syncs, closes. NULL is fine. */
void store_close(struct store *s);

int store_fd(const struct store *s); /* readable when answers wait; stays the store's */
void store_dispatch(struct store *s);

const char *store_node(const struct store *s);  /* this state folder's id, for ever */
time_t store_last_write(const struct store *s); /* of the last daemon, if it did not: seconds */
bool store_was_clean(const struct store *s);    /* the last daemon said goodbye; or the first */
void store_nudge(struct store *s);
size_t store_waiting(const struct store *s); /* requests not yet answered */

/* Small facts by name. An absent one is NULL. */
int store_meta_get(struct store *s, const char *key, struct arena *a, const char **value,
                   struct err *e);
int store_meta_set(struct store *s, const char *key, const char *value, struct store_call call,
                   struct err *e);

/* Is the file of the database what it was written as? */
int store_check(struct store *s, struct err *e);

/* Removes what ended before that: finished processes, sandboxes that are gone and have no
 * process left, connections, approvals, tokens long revoked or expired, with everything that hangs
 * on them. At most STORE_PURGE_ROWS of each kind at a time: again while the answer's rows are not
 * 0. */
#define STORE_PURGE_ROWS 500
int store_purge(struct store *s, int64_t before_ms, struct store_call call, struct err *e);
