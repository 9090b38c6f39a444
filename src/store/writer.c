/*
 * writer.c - the store thread: everything that waits, in one transaction.
 *
 * A request that the rows refuse is undone alone, by its savepoint. When the disk or the database
 * fails, the transaction is given up and every request of it runs again in one of its own, so
 * that each gets an answer of its own and none is called done that is not.
 */
#include "store/store-internal.h"

static void rollback(struct db *db)
{
	struct err ignored = { 0 };

	/* SQLite has already done it after some errors. If ours fails too, the next BEGIN says
	 * so to everybody. */
	if (!sqlite3_get_autocommit(db->c))
		(void)db_do(db, "ROLLBACK", &ignored);
}

/* Gives the request the failure of the database around it. */
static void blame(struct store *s, struct request *q, const struct err *e)
{
	enum store_code code = db_code(&s->writer);

	q->answer.code = code == STORE_OK ? STORE_BROKEN : code;
	q->err = *e;
}

static int run_one(struct store *s, struct request *q)
{
	q->answer = (struct store_answer){ 0 };
	q->err = (struct err){ 0 };
	s->writer.failed = SQLITE_OK;
	if (!q->op->is_vital && s->reserve.is_tight)
		reserve_keep(s);
	if (!q->op->is_vital && s->reserve.is_tight) {
		q->answer.code = STORE_FULL;
		return err_new(&q->err, ERR_LIMIT, "%s: the disk of the store is full",
		               q->op->name);
	}
	if (q->op->run(s, q, &q->err) == 0)
		return 0;
	if (q->answer.code == STORE_OK) {
		struct err e = q->err;

		blame(s, q, &e);
	}
	return err_wrap(&q->err, "%s", q->op->name);
}

/* The failure was not the request's: the transaction cannot be trusted any more. */
static bool is_transaction_lost(const struct store *s)
{
	enum store_code code = db_code(&s->writer);

	return code == STORE_FULL || code == STORE_BROKEN || sqlite3_get_autocommit(s->writer.c);
}

static int run_saved(struct store *s, struct request *q)
{
	struct err e = { 0 };

	if (db_do(&s->writer, "SAVEPOINT one", &e) < 0)
		return -1;
	if (run_one(s, q) < 0 &&
	    (is_transaction_lost(s) || db_do(&s->writer, "ROLLBACK TO one", &e) < 0))
		return -1;
	return db_do(&s->writer, "RELEASE one", &e);
}

/* Returns -1 when nothing was committed. */
static int run_together(struct store *s, const struct request_list *batch)
{
	struct err e = { 0 };

	if (db_do(&s->writer, "BEGIN IMMEDIATE", &e) < 0)
		return -1;
	for (struct request *q = batch->first; q; q = q->next)
		if (run_saved(s, q) < 0)
			return -1;
	return db_do(&s->writer, "COMMIT", &e);
}

static void run_alone(struct store *s, struct request *q)
{
	struct err e = { 0 };

	if (db_do(&s->writer, "BEGIN IMMEDIATE", &e) < 0) {
		blame(s, q, &e);
		return;
	}
	if (run_one(s, q) == 0 && db_do(&s->writer, "COMMIT", &e) < 0)
		blame(s, q, &e);
	if (q->answer.code == STORE_FULL)
		s->reserve.is_tight = true;
	rollback(&s->writer);
}

static void run_batch(struct store *s, const struct request_list *batch)
{
	if (batch->n > 1) {
		if (run_together(s, batch) == 0)
			return;
		rollback(&s->writer);
	}
	for (struct request *q = batch->first; q; q = q->next)
		run_alone(s, q);
}

/* After a batch: the log must not grow for ever, and the reserve follows the database. */
static void maintain(struct store *s, int pages_before)
{
	struct err ignored = { 0 };

	if (s->wal_pages < pages_before)
		reserve_keep(s); /* the log began anew, so the database may have grown */
	if (s->wal_pages >= WAL_PAGES_MAX)
		(void)wal_checkpoint(&s->writer, SQLITE_CHECKPOINT_PASSIVE, &ignored);
}

/* Waits for requests. Returns false when there will be none. */
static bool take_batch(struct store *s, struct request_list *batch)
{
	size_t bytes = 0;

	pthread_mutex_lock(&s->lock);
	while (!s->queue.n && !s->is_closing)
		pthread_cond_wait(&s->has_work, &s->lock);
	while (s->queue.n && batch->n < BATCH_MAX && bytes < BATCH_BYTES) {
		bytes += s->queue.first->bytes;
		list_add(batch, list_take(&s->queue));
	}
	pthread_mutex_unlock(&s->lock);
	return batch->n > 0;
}

static void hand_over(struct store *s, struct request_list *batch)
{
	struct request_list done = { 0 };
	bool has_news = false;

	pthread_mutex_lock(&s->lock);
	for (struct request *q = NULL; (q = list_take(batch));) {
		bool is_ok = q->answer.code == STORE_OK;

		has_news = has_news || (is_ok && (q->call.is_durable || !s->is_dirty));
		if (is_ok && !s->is_dirty) {
			s->is_dirty = true;
			clock_gettime(CLOCK_MONOTONIC, &s->dirty_at);
		}
		list_add(is_ok && q->call.is_durable ? &s->unsynced : &done, q);
	}
	s->wal_pages_seen = s->wal_pages;
	bool is_due = done_add(s, &done);

	pthread_mutex_unlock(&s->lock);
	if (is_due)
		done_ring(s);
	if (has_news)
		pthread_cond_signal(&s->has_unsynced);
}

void *writer_main(void *store)
{
	struct store *s = store;
	struct request_list batch = { 0 };

	while (take_batch(s, &batch)) {
		int pages_before = s->wal_pages;

		run_batch(s, &batch);
		hand_over(s, &batch);
		maintain(s, pages_before);
	}
	return NULL;
}
