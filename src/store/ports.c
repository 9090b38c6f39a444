#include "store/ports.h"

#include <assert.h>

#include "store/store-internal.h"

/* clang-format off */
#define F(field, kind, max) COL(port_row, field, kind, max, 0)
static const struct column columns[] = {
	F(seq,        COL_SEQ,  0),
	F(sandbox,    COL_NEED, STORE_ID_MAX),
	F(tenant,     COL_NEED, STORE_NAME_MAX),
	F(node,       COL_NEED, STORE_NAME_MAX),
	F(port,       COL_INT,  0),
	F(local_port, COL_SOME, 0),
	F(token_hash, COL_HASH, 0),
	F(created_ms, COL_INT,  0),
	F(expires_ms, COL_SOME, 0),
};
/* clang-format on */
static const struct table table = {
	.name = "ports",
	.noun = "port",
	.unique = "sandbox,port",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct port_row),
};

static int run_put(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_put(&s->writer, &table, q->args, e);
}

int store_port_put(struct store *s, const struct port_row *row, struct store_call call,
                   struct err *e)
{
	static const struct op op = { "keep a port", run_put, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *row);
	struct port_row full = *row;

	full.node = row->node ? row->node : s->node;
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_drop(struct store *s, struct request *q, struct err *e)
{
	const struct port_row *which = q->args;
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer, "DELETE FROM ports WHERE sandbox=?1 AND (?2=0 OR port=?2)", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, which->sandbox);
	db_bind_int(st, 2, which->port);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

int store_port_drop(struct store *s, const char *sandbox, int64_t port, struct store_call call,
                    struct err *e)
{
	static const struct op op = { "drop a port", run_drop, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct port_row));
	struct port_row *which = q->args;

	which->sandbox = arena_strndup(&q->arena, sandbox, strnlen(sandbox, STORE_ID_MAX));
	which->port = port;
	return request_send(s, &q, call, e);
}

int store_port_list(struct store *s, const char *tenant, const char *sandbox, struct arena *a,
                    struct port_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	struct row_list found;

	row_select(&table, &sql);
	str_add(&sql, "WHERE tenant=?1 AND sandbox=?2 ORDER BY port");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	db_bind_text(st, 2, sandbox);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct port_list){ found.rows, found.n };
	return 0;
}

int store_port_by_token(struct store *s, const uint8_t hash[STORE_HASH_BYTES], struct arena *a,
                        struct port_row *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	row_select(&table, &sql);
	str_add(&sql, "WHERE token_hash=?1");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_blob(st, 1, hash, STORE_HASH_BYTES);
	return row_one(&s->reader, &table, st, a, out, e);
}
