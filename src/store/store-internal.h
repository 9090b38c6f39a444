/*
 * store-internal.h - the store's threads and what passes between them.
 *
 *   loop thread ──queue──▷ store thread ──done──▷ loop thread
 *                               └──unsynced──▷ sync thread ──done──▷ loop thread
 *
 * A request is owned by the list it is in. Everything else is owned by one thread, as marked.
 */
#pragma once

#include <pthread.h>
#include <time.h>

#include "store/idem.h"
#include "store/row-internal.h"

#define SYNC_AFTER_MS 30    /* leaves the disk 20 of the promised 50 */
#define SYNC_RETRY_MS 1000  /* after a failure */
#define WAL_PAGES_GOAL 2000 /* 8 MiB: the sync thread copies it into the database */
#define WAL_PAGES_MAX 4000  /* it does not keep up: the store thread does it, and waits */
#define BATCH_MAX 256       /* requests of one transaction */
#define BATCH_BYTES (1u << 20)

struct request;

/* What kinds of request there are. run() is in the store thread, in a transaction; it may run
 * twice, when the first transaction could not be committed. On failure it sets answer.code, or
 * leaves STORE_OK there, and the code is that of the database's failure. */
struct op {
	const char *name;
	int (*run)(struct store *s, struct request *q, struct err *e);
	bool is_vital; /* needs no new room to speak of: runs also when the disk is full */
};

struct request {
	struct request *next;
	const struct op *op;
	struct arena arena; /* of args and what they point to */
	void *args;
	size_t bytes;
	struct store_call call;
	struct store_answer answer;
	struct idem_found idem;
	struct err err;
};

struct request_list {
	struct request *first, *last;
	size_t n;
};

struct reserve {
	int db_fd, wal_fd;
	bool is_tight; /* the disk is full but for what is set aside */
};

struct store {
	/* Fixed once open. */
	char *dir, *path;
	int dir_fd, lock_fd, event_fd;
	char node[STORE_ID_MAX], boot[STORE_ID_MAX];
	bool was_clean;
	time_t last_write_s;
	pthread_t store_thread, sync_thread;

	/* Loop thread. */
	struct db reader;
	size_t n_waiting, bytes_waiting;

	/* Store thread. */
	struct db writer;
	struct reserve reserve;
	int wal_pages;

	/* Sync thread. */
	struct db syncer;

	/* Under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t has_work, has_unsynced;
	struct request_list queue, unsynced, done;
	int wal_pages_seen;
	bool is_dirty, is_closing, is_written;
	struct timespec dirty_at;
};

/* request.c */
struct request *request_new(const struct op *op, size_t args_bytes) MUST_USE;
void request_drop(struct request **q); /* for AUTO() */
int request_send(struct store *s, struct request **q, struct store_call call, struct err *e);
/* For a run() whose row did not match: says what the row says, or that there is none. `wanted` is
 * the state that it was to have, or NULL. */
int refuse_state(struct store *s, struct request *q, const struct table *t, const char *id,
                 const char *wanted, struct err *e);
void list_add(struct request_list *list, struct request *q);
struct request *list_take(struct request_list *list);
/* Under the lock. True: done_ring() is due, after the lock: who is woken needs it. */
bool done_add(struct store *s, struct request_list *list) MUST_USE;
void done_ring(struct store *s); /* wakes the loop */

/* The threads. */
void *writer_main(void *store);
void *syncer_main(void *store);
int wal_checkpoint(struct db *db, int mode, struct err *e);

/* reserve.c, store thread */
void reserve_init(struct store *s);
void reserve_done(struct store *s);
void reserve_keep(struct store *s); /* sets is_tight */

/* schema.c. A program knows the steps 1..n; a database says how many it has seen. */
struct schema_step {
	const char *name, *sql;
};
int schema_apply(struct db *db, const struct schema_step *steps, size_t n, struct err *e);
int schema_open(struct db *db, struct err *e); /* checks the file and applies our own steps */
