#include "store/secrets.h"

#include <assert.h>

#include "store/store-internal.h"

/* clang-format off */
#define F(field, kind, max) COL(secret_row, field, kind, max, 0)
static const struct column columns[] = {
	F(tenant,       COL_NEED, STORE_NAME_MAX),
	F(node,         COL_NEED, STORE_NAME_MAX),
	F(name,         COL_NEED, STORE_NAME_MAX),
	F(bind,         COL_NEED, STORE_BIND_MAX),
	F(sealed,       COL_NEED, STORE_SEALED_MAX),
	F(version,      COL_INT,  0),
	F(created_ms,   COL_INT,  0),
	F(changed_ms,   COL_INT,  0),
	F(last_used_ms, COL_SOME, 0),
	F(uses,         COL_INT,  0),
};
/* clang-format on */
static const struct table table = {
	.name = "secrets",
	.noun = "secret",
	.unique = "tenant,name",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct secret_row),
};

/* ---- writes ------------------------------------------------------------------------------ */

/* When it was first set stays; what is known of its use too. */
static int run_put(struct store *s, struct request *q, struct err *e)
{
	const struct secret_row *row = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(
	    &s->writer,
	    "INSERT INTO secrets(tenant,node,name,bind,sealed,version,created_ms,changed_ms,uses)"
	    " VALUES(?1,?2,?3,?4,?5,1,?6,?6,0) ON CONFLICT(tenant,name) DO UPDATE SET"
	    " bind=?4,sealed=?5,version=version+1,changed_ms=?6",
	    e);

	if (!st)
		return -1;
	db_bind_text(st, 1, row->tenant);
	db_bind_text(st, 2, row->node);
	db_bind_text(st, 3, row->name);
	db_bind_text(st, 4, row->bind);
	db_bind_text(st, 5, row->sealed);
	db_bind_int(st, 6, row->changed_ms);
	q->answer.rows = 1;
	return db_step(&s->writer, st, e) < 0 ? -1 : 0;
}

static int send_row(struct store *s, const struct op *op, const struct secret_row *row,
                    struct store_call call, struct err *e)
{
	AUTO(request_drop) struct request *q = request_new(op, sizeof *row);
	struct secret_row full = *row;

	full.node = row->node ? row->node : s->node;
	full.bind = row->bind ? row->bind : "{}";
	full.sealed = row->sealed ? row->sealed : "-";
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

int store_secret_put(struct store *s, const struct secret_row *row, struct store_call call,
                     struct err *e)
{
	static const struct op op = { "store a secret", run_put, .is_vital = false };

	call.is_durable = true;
	return send_row(s, &op, row, call, e);
}

static int run_drop(struct store *s, struct request *q, struct err *e)
{
	const struct secret_row *row = q->args;
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer, "DELETE FROM secrets WHERE tenant=?1 AND name=?2", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, row->tenant);
	db_bind_text(st, 2, row->name);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	if (q->answer.rows)
		return 0;
	q->answer.code = STORE_NOT_FOUND;
	return err_new(e, ERR_NOT_FOUND, "no such secret");
}

int store_secret_drop(struct store *s, const char *tenant, const char *name, struct store_call call,
                      struct err *e)
{
	static const struct op op = { "drop a secret", run_drop, .is_vital = true };

	call.is_durable = true;
	return send_row(s, &op, &(struct secret_row){ .tenant = tenant, .name = name }, call, e);
}

static int run_used(struct store *s, struct request *q, struct err *e)
{
	const struct secret_row *row = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE secrets SET uses=uses+?3,"
	                           "last_used_ms=max(coalesce(last_used_ms,0),?4)"
	                           " WHERE tenant=?1 AND name=?2",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, row->tenant);
	db_bind_text(st, 2, row->name);
	db_bind_int(st, 3, row->uses);
	db_bind_int(st, 4, row->last_used_ms);
	q->answer.rows = 1;
	return db_step(&s->writer, st, e) < 0 ? -1 : 0;
}

int store_secret_used(struct store *s, const struct secret_row *row, struct store_call call,
                      struct err *e)
{
	static const struct op op = { "note the use of a secret", run_used, .is_vital = true };

	return send_row(s, &op, row, call, e);
}

/* ---- reads ------------------------------------------------------------------------------- */

static sqlite3_stmt *select_where(struct store *s, const char *where, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	row_select(&table, &sql);
	str_add(&sql, where);
	assert(!sql.overflow);
	return db_stmt(&s->reader, str_text(&sql), e);
}

int store_secret_get(struct store *s, const char *tenant, const char *name, struct arena *a,
                     struct secret_row *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, "WHERE tenant=?1 AND name=?2", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	db_bind_text(st, 2, name);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_secret_list(struct store *s, const char *tenant, struct arena *a, struct secret_list *out,
                      struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, "WHERE tenant=?1 ORDER BY name", e);
	struct row_list found;

	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct secret_list){ found.rows, found.n };
	return 0;
}
