#include "store/tokens.h"

#include <assert.h>

#include "store/store-internal.h"

/* clang-format off */
#define F(field, kind, max) COL(token_row, field, kind, max, 0)
static const struct column columns[] = {
	F(seq,          COL_SEQ,  0),
	F(id,           COL_NEED, STORE_ID_MAX),
	F(tenant,       COL_NEED, STORE_NAME_MAX),
	F(node,         COL_NEED, STORE_NAME_MAX),
	F(name,         COL_TEXT, STORE_NAME_MAX),
	F(hash,         COL_HASH, 0),
	F(scopes,       COL_NEED, STORE_NAME_MAX),
	F(created_ms,   COL_INT,  0),
	F(expires_ms,   COL_SOME, 0),
	F(revoked_ms,   COL_SOME, 0),
	F(last_used_ms, COL_SOME, 0),
};
/* clang-format on */
static const struct table table = {
	.name = "tokens",
	.noun = "token",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct token_row),
};

bool token_is_valid(const struct token_row *t, int64_t now_ms)
{
	return !t->revoked_ms && (!t->expires_ms || now_ms < t->expires_ms);
}

static int run_insert(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_insert(&s->writer, &table, q->args, e);
}

int store_token_insert(struct store *s, const struct token_row *row, struct store_call call,
                       struct err *e)
{
	static const struct op op = { "insert a token", run_insert, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *row);
	struct token_row full = *row;

	full.node = row->node ? row->node : s->node;
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

struct stamp_args {
	const char *tenant, *id;
	int64_t now_ms;
};

/* The first revocation counts: a second one does not move it. */
static int run_revoke(struct store *s, struct request *q, struct err *e)
{
	const struct stamp_args *args = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE tokens SET revoked_ms=coalesce(revoked_ms,?3)"
	                           " WHERE (?1 IS NULL OR tenant=?1) AND id=?2",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, args->tenant);
	db_bind_text(st, 2, args->id);
	db_bind_int(st, 3, args->now_ms);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	if (q->answer.rows)
		return 0;
	q->answer.code = STORE_NOT_FOUND;
	return err_new(e, ERR_NOT_FOUND, "no token %s", args->id);
}

static int run_touch(struct store *s, struct request *q, struct err *e)
{
	const struct stamp_args *args = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE tokens SET last_used_ms=?2 WHERE id=?1"
	                           " AND coalesce(last_used_ms,0)<=?2-?3",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, args->id);
	db_bind_int(st, 2, args->now_ms);
	db_bind_int(st, 3, TOKEN_TOUCH_MS);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

static int send_stamp(struct store *s, const struct op *op, const struct stamp_args *what,
                      struct store_call call, struct err *e)
{
	AUTO(request_drop) struct request *q = request_new(op, sizeof *what);
	struct stamp_args *args = q->args;

	if (what->now_ms <= 0)
		return err_new(e, ERR_INVALID, "%s: at what time?", op->name);
	args->now_ms = what->now_ms;
	args->id = arena_strndup(&q->arena, what->id, strnlen(what->id, STORE_ID_MAX));
	if (what->tenant)
		args->tenant =
		    arena_strndup(&q->arena, what->tenant, strnlen(what->tenant, STORE_NAME_MAX));
	return request_send(s, &q, call, e);
}

int store_token_revoke(struct store *s, const char *tenant, const char *id, int64_t now_ms,
                       struct store_call call, struct err *e)
{
	static const struct op op = { "revoke a token", run_revoke, .is_vital = true };

	return send_stamp(s, &op, &(struct stamp_args){ tenant, id, now_ms }, call, e);
}

int store_token_touch(struct store *s, const char *id, int64_t now_ms, struct store_call call,
                      struct err *e)
{
	static const struct op op = { "touch a token", run_touch, .is_vital = true };

	return send_stamp(s, &op, &(struct stamp_args){ NULL, id, now_ms }, call, e);
}

int store_token_by_hash(struct store *s, const uint8_t hash[STORE_HASH_BYTES], struct arena *a,
                        struct token_row *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	row_select(&table, &sql);
	str_add(&sql, "WHERE hash=?1");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_blob(st, 1, hash, STORE_HASH_BYTES);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_token_list(struct store *s, const struct store_page *page, struct arena *a,
                     struct token_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	struct page_plan plan;
	struct row_list found;

	row_select(&table, &sql);
	if (row_page_where(page, &sql, &plan, e) < 0)
		return -1;
	row_page_order(&plan, &sql);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_page(&from, &plan, a, &found, e) < 0)
		return -1;
	*out = (struct token_list){ found.rows, found.n, found.next };
	return 0;
}
