/*
 * meta.c - small facts by name, and the end of old rows.
 */
#include "store/store-internal.h"

struct meta_args {
	const char *key, *value;
};

int store_meta_get(struct store *s, const char *key, struct arena *a, const char **value,
                   struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->reader, "SELECT value FROM meta WHERE key=?1", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, key);
	int r = db_step(&s->reader, st, e);

	if (r < 0)
		return -1;
	*value = r ? arena_strdup(a, (const char *)sqlite3_column_text(st, 0)) : NULL;
	return 0;
}

static int run_set(struct store *s, struct request *q, struct err *e)
{
	const struct meta_args *args = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "INSERT INTO meta VALUES(?1,?2)"
	                           " ON CONFLICT(key) DO UPDATE SET value=excluded.value",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, args->key);
	db_bind_text(st, 2, args->value);
	q->answer.rows = 1;
	return db_step(&s->writer, st, e);
}

int store_meta_set(struct store *s, const char *key, const char *value, struct store_call call,
                   struct err *e)
{
	static const struct op op = { "set a fact", run_set, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct meta_args));
	struct meta_args *args = q->args;

	if (strnlen(key, STORE_NAME_MAX + 1) > STORE_NAME_MAX ||
	    strnlen(value, STORE_TEXT_MAX + 1) > STORE_TEXT_MAX)
		return err_new(e, ERR_INVALID, "a fact is longer than %d bytes", STORE_TEXT_MAX);
	args->key = arena_strdup(&q->arena, key);
	args->value = arena_strdup(&q->arena, value);
	return request_send(s, &q, call, e);
}

/* ---- purge ------------------------------------------------------------------------------- */

#define OF_GONE(column)                                                                            \
	" IN(SELECT " column " FROM sandboxes b WHERE state='gone' AND ended_ms<?1"                \
	" AND NOT EXISTS(SELECT 1 FROM processes p WHERE p.sandbox=b.id)"                          \
	" ORDER BY ended_ms LIMIT ?2)"

/* In this order: what hangs on a sandbox goes before it. All speak of the same sandboxes. */
static const char *const purges[] = {
	"DELETE FROM processes WHERE seq IN(SELECT seq FROM processes WHERE ended_ms<?1"
	" ORDER BY ended_ms LIMIT ?2)",
	"DELETE FROM shells WHERE sandbox" OF_GONE("id"),
	"DELETE FROM ports WHERE sandbox" OF_GONE("id"),
	"DELETE FROM sandbox_labels WHERE seq" OF_GONE("seq"),
	"DELETE FROM sandboxes WHERE seq" OF_GONE("seq"),
	"DELETE FROM connections WHERE seq IN(SELECT seq FROM connections WHERE ts_ms<?1"
	" ORDER BY ts_ms LIMIT ?2)",
	"DELETE FROM tokens WHERE seq IN(SELECT seq FROM tokens"
	" WHERE revoked_ms<?1 OR expires_ms<?1 LIMIT ?2)",
	/* A decision that still stands is no old record. */
	"DELETE FROM approvals WHERE seq IN(SELECT seq FROM approvals WHERE decided_ms<?1"
	" AND (scope IS NULL OR scope='once' OR expires_ms<?1) LIMIT ?2)",
};

static int run_purge(struct store *s, struct request *q, struct err *e)
{
	const int64_t *before_ms = q->args;

	for (size_t i = 0; i < COUNT(purges); i++) {
		AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->writer, purges[i], e);

		if (!st)
			return -1;
		db_bind_int(st, 1, *before_ms);
		db_bind_int(st, 2, STORE_PURGE_ROWS);
		if (db_step(&s->writer, st, e) < 0)
			return -1;
		q->answer.rows += sqlite3_changes(s->writer.c);
	}
	return 0;
}

int store_purge(struct store *s, int64_t before_ms, struct store_call call, struct err *e)
{
	static const struct op op = { "purge", run_purge, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof before_ms);

	*(int64_t *)q->args = before_ms;
	return request_send(s, &q, call, e);
}
