/*
 * syncer.c - the sync thread: waits for the disk, so that nobody else has to.
 *
 * Commits are in the write-ahead log, in the kernel's memory: safe from our death, not from the
 * loss of power. This thread syncs the log, at once when a durable request waits, otherwise
 * SYNC_AFTER_MS after the first commit; and it copies a long log into the database, which SQLite
 * allows beside a writer.
 */
#include "store/store-internal.h"

static int sync_log(struct db *db, struct err *e)
{
	sqlite3_file *log = NULL;
	int r = sqlite3_file_control(db->c, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);

	if (r == SQLITE_OK && log && log->pMethods)
		r = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
	else
		r = SQLITE_IOERR_FSYNC;
	if (r != SQLITE_OK)
		return err_new(e, ERR_INTERNAL, "sync the store: %s", sqlite3_errstr(r));
	return 0;
}

int wal_checkpoint(struct db *db, int mode, struct err *e)
{
	int r = sqlite3_wal_checkpoint_v2(db->c, NULL, mode, NULL, NULL);

	return r == SQLITE_OK ? 0 : db_fail(db, e);
}

/* After a failed sync the kernel forgets what it could not write, and the next sync of the same
 * bytes succeeds without having written them (fsync(2), since Linux 4.13 reported once). So they
 * are written anew: into the database, and the log begins again. */
static int sync_again(struct db *db, struct err *e)
{
	if (wal_checkpoint(db, SQLITE_CHECKPOINT_TRUNCATE, e) < 0)
		return -1;
	return sync_log(db, e);
}

static struct timespec after(struct timespec t, long ms)
{
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* Under the lock. Returns false when there is nothing to sync and there will not be. */
static bool wait_for_work(struct store *s, bool has_failed)
{
	while (!s->unsynced.n) {
		if (s->is_written)
			return s->is_dirty;
		if (!s->is_dirty) {
			pthread_cond_wait(&s->has_unsynced, &s->lock);
			continue;
		}
		struct timespec due =
		    after(s->dirty_at, has_failed ? SYNC_RETRY_MS : SYNC_AFTER_MS);

		if (pthread_cond_timedwait(&s->has_unsynced, &s->lock, &due) == ETIMEDOUT)
			return true;
	}
	return true;
}

/* Under the lock. */
static bool answer_durable(struct store *s, struct request_list *waiting, const struct err *e)
{
	for (struct request *q = waiting->first; q && e; q = q->next) {
		q->answer.code = STORE_BROKEN;
		q->err = *e;
	}
	return done_add(s, waiting);
}

void *syncer_main(void *store)
{
	struct store *s = store;
	bool has_failed = false;

	pthread_mutex_lock(&s->lock);
	while (wait_for_work(s, has_failed) && !(has_failed && s->is_written && !s->unsynced.n)) {
		struct request_list waiting = s->unsynced;
		bool is_log_long = s->wal_pages_seen >= WAL_PAGES_GOAL;
		struct err e = { 0 }, ignored = { 0 };

		s->unsynced = (struct request_list){ 0 };
		s->is_dirty = false;
		pthread_mutex_unlock(&s->lock);

		has_failed =
		    (has_failed ? sync_again(&s->syncer, &e) : sync_log(&s->syncer, &e)) < 0;

		pthread_mutex_lock(&s->lock);
		if (answer_durable(s, &waiting, has_failed ? &e : NULL))
			done_ring(s);
		if (has_failed) {
			s->is_dirty = true;
			clock_gettime(CLOCK_MONOTONIC, &s->dirty_at);
			continue;
		}
		if (!is_log_long)
			continue;
		pthread_mutex_unlock(&s->lock);
		(void)wal_checkpoint(&s->syncer, SQLITE_CHECKPOINT_PASSIVE,
		                     &ignored); /* tried again */
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
