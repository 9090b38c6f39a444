#include "store/idem.h"

#include "store/store-internal.h"

/* ---- begin ------------------------------------------------------------------------------- */

static int forget_if_old(struct store *s, const struct idem_request *r, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "DELETE FROM idempotency"
	                           " WHERE tenant=?1 AND key=?2 AND created_ms<=?3",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, r->tenant);
	db_bind_text(st, 2, r->key);
	db_bind_int(st, 3, r->now_ms - IDEM_KEEP_MS);
	return db_step(&s->writer, st, e);
}

/* Returns 1 when the key was free and is now ours. */
static int claim(struct store *s, const struct idem_request *r, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "INSERT INTO idempotency"
	                           "(tenant,key,node,boot,route_hash,body_hash,created_ms)"
	                           " VALUES(?1,?2,?3,?4,?5,?6,?7) ON CONFLICT DO NOTHING",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, r->tenant);
	db_bind_text(st, 2, r->key);
	db_bind_text(st, 3, s->node);
	db_bind_text(st, 4, s->boot);
	db_bind_blob(st, 5, r->route_hash, STORE_HASH_BYTES);
	db_bind_blob(st, 6, r->body_hash, STORE_HASH_BYTES);
	db_bind_int(st, 7, r->now_ms);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	return sqlite3_changes(s->writer.c);
}

static bool is_same(sqlite3_stmt *st, int at, const uint8_t hash[STORE_HASH_BYTES])
{
	return sqlite3_column_bytes(st, at) == STORE_HASH_BYTES &&
	       memcmp(sqlite3_column_blob(st, at), hash, STORE_HASH_BYTES) == 0;
}

static void keep_answer(struct request *q, sqlite3_stmt *st)
{
	size_t n = (size_t)sqlite3_column_bytes(st, 4);
	void *body = arena_alloc(&q->arena, n + 1);

	if (n > 0)
		memcpy(body, sqlite3_column_blob(st, 4), n);
	q->idem.status = sqlite3_column_int(st, 3);
	q->idem.body = body;
	q->idem.body_bytes = n;
}

/* What the row that was there before us says. */
static int look(struct store *s, struct request *q, struct err *e)
{
	const struct idem_request *r = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "SELECT route_hash,body_hash,boot,status,body,created_ms"
	                           " FROM idempotency WHERE tenant=?1 AND key=?2",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, r->tenant);
	db_bind_text(st, 2, r->key);
	int n = db_step(&s->writer, st, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return err_new(e, ERR_INTERNAL, "the key was there and is gone");
	q->idem.created_ms = sqlite3_column_int64(st, 5);
	if (!is_same(st, 0, r->route_hash) || !is_same(st, 1, r->body_hash)) {
		q->idem.state = IDEM_MISMATCH;
	} else if (sqlite3_column_type(st, 3) != SQLITE_NULL) {
		q->idem.state = IDEM_DONE;
		keep_answer(q, st);
	} else {
		const char *boot = (const char *)sqlite3_column_text(st, 2);

		q->idem.state = strcmp(boot, s->boot) == 0 ? IDEM_IN_PROGRESS : IDEM_INTERRUPTED;
		keep_answer(q, st);
	}
	return 0;
}

static int run_begin(struct store *s, struct request *q, struct err *e)
{
	const struct idem_request *r = q->args;

	q->idem = (struct idem_found){ .state = IDEM_NEW, .created_ms = r->now_ms };
	q->answer.idem = &q->idem;
	if (forget_if_old(s, r, e) < 0)
		return -1;
	int n = claim(s, r, e);

	q->answer.rows = n > 0;
	if (n != 0)
		return n < 0 ? -1 : 0;
	return look(s, q, e);
}

static int check_names(const char *tenant, const char *key, struct err *e)
{
	if (!tenant || !tenant[0] || !key || !key[0])
		return err_new(e, ERR_INVALID, "an idempotency key has a tenant and a text");
	if (strnlen(tenant, STORE_NAME_MAX + 1) > STORE_NAME_MAX ||
	    strnlen(key, STORE_NAME_MAX + 1) > STORE_NAME_MAX)
		return err_new(e, ERR_INVALID, "an idempotency key has at most %d bytes",
		               STORE_NAME_MAX);
	return 0;
}

int store_idem_begin(struct store *s, const struct idem_request *r, struct store_call call,
                     struct err *e)
{
	static const struct op op = { "begin a request", run_begin, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *r);
	struct idem_request *args = q->args;

	if (check_names(r->tenant, r->key, e) < 0)
		return -1;
	*args = *r;
	args->tenant = arena_strdup(&q->arena, r->tenant);
	args->key = arena_strdup(&q->arena, r->key);
	return request_send(s, &q, call, e);
}

/* ---- finish ------------------------------------------------------------------------------ */

static int refuse(struct request *q, const char *key, struct err *e)
{
	q->answer.code = STORE_CONFLICT;
	return err_new(e, ERR_INVALID, "the idempotency key %s is not in progress", key);
}

/* Without a status it stays in progress. */
static int run_finish(struct store *s, struct request *q, struct err *e)
{
	const struct idem_result *r = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE idempotency SET status=nullif(?3,0),body=?4"
	                           " WHERE tenant=?1 AND key=?2 AND status IS NULL AND boot=?5",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, r->tenant);
	db_bind_text(st, 2, r->key);
	db_bind_int(st, 3, r->status);
	db_bind_blob(st, 4, r->body, r->body_bytes);
	db_bind_text(st, 5, s->boot);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return q->answer.rows ? 0 : refuse(q, r->key, e);
}

static int send_result(struct store *s, const struct op *op, const struct idem_result *r,
                       struct store_call call, struct err *e)
{
	AUTO(request_drop) struct request *q = request_new(op, sizeof *r);
	struct idem_result *args = q->args;

	if (check_names(r->tenant, r->key, e) < 0)
		return -1;
	if (r->body_bytes > STORE_BODY_MAX)
		return err_new(e, ERR_INVALID, "an answer to keep has at most %u bytes",
		               STORE_BODY_MAX);
	*args = *r;
	args->tenant = arena_strdup(&q->arena, r->tenant);
	args->key = arena_strdup(&q->arena, r->key);
	args->body = arena_strndup(&q->arena, r->body_bytes ? r->body : "", r->body_bytes);
	q->bytes += r->body_bytes;
	return request_send(s, &q, call, e);
}

int store_idem_finish(struct store *s, const struct idem_result *r, struct store_call call,
                      struct err *e)
{
	static const struct op op = { "finish a request", run_finish, .is_vital = true };

	return send_result(s, &op, r, call, e);
}

int store_idem_note(struct store *s, const struct idem_result *r, struct store_call call,
                    struct err *e)
{
	static const struct op op = { "note what a request makes", run_finish, .is_vital = true };
	struct idem_result open = *r;

	open.status = 0;
	return send_result(s, &op, &open, call, e);
}

static int run_abandon(struct store *s, struct request *q, struct err *e)
{
	const struct idem_result *r = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "DELETE FROM idempotency"
	                           " WHERE tenant=?1 AND key=?2 AND status IS NULL",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, r->tenant);
	db_bind_text(st, 2, r->key);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return q->answer.rows ? 0 : refuse(q, r->key, e);
}

int store_idem_abandon(struct store *s, const char *tenant, const char *key, struct store_call call,
                       struct err *e)
{
	static const struct op op = { "abandon a request", run_abandon, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct idem_result));
	struct idem_result *args = q->args;

	if (check_names(tenant, key, e) < 0)
		return -1;
	args->tenant = arena_strdup(&q->arena, tenant);
	args->key = arena_strdup(&q->arena, key);
	return request_send(s, &q, call, e);
}

/* ---- purge ------------------------------------------------------------------------------- */

static int run_purge(struct store *s, struct request *q, struct err *e)
{
	const int64_t *now_ms = q->args;
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer,
	            "DELETE FROM idempotency WHERE (tenant,key) IN"
	            "(SELECT tenant,key FROM idempotency WHERE created_ms<=?1 LIMIT ?2)",
	            e);

	if (!st)
		return -1;
	db_bind_int(st, 1, *now_ms - IDEM_KEEP_MS);
	db_bind_int(st, 2, STORE_PURGE_ROWS);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

int store_idem_purge(struct store *s, int64_t now_ms, struct store_call call, struct err *e)
{
	static const struct op op = { "purge old keys", run_purge, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof now_ms);

	*(int64_t *)q->args = now_ms;
	return request_send(s, &q, call, e);
}
