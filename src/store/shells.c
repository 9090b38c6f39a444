#include "store/shells.h"

#include <assert.h>

#include "store/store-internal.h"

/* clang-format off */
#define F(field, kind, max) COL(shell_row, field, kind, max, 0)
static const struct column columns[] = {
	F(seq,      COL_SEQ,  0),
	F(sandbox,  COL_NEED, STORE_ID_MAX),
	F(name,     COL_NEED, STORE_NAME_MAX),
	F(tenant,   COL_NEED, STORE_NAME_MAX),
	F(node,     COL_NEED, STORE_NAME_MAX),
	F(process,  COL_TEXT, STORE_ID_MAX),
	F(cwd,      COL_TEXT, STORE_TEXT_MAX),
	F(env,      COL_NEED, STORE_ENV_MAX),
	F(restarts, COL_INT,  0),
};
/* clang-format on */
static const struct table table = {
	.name = "shells",
	.noun = "shell",
	.unique = "sandbox,name",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct shell_row),
};

static int run_put(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_put(&s->writer, &table, q->args, e);
}

int store_shell_put(struct store *s, const struct shell_row *row, struct store_call call,
                    struct err *e)
{
	static const struct op op = { "keep a shell", run_put, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *row);
	struct shell_row full = *row;

	full.node = row->node ? row->node : s->node;
	full.env = row->env ? row->env : "{}";
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_drop(struct store *s, struct request *q, struct err *e)
{
	const struct shell_row *which = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(
	    &s->writer, "DELETE FROM shells WHERE sandbox=?1 AND (?2 IS NULL OR name=?2)", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, which->sandbox);
	db_bind_text(st, 2, which->name);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

int store_shell_drop(struct store *s, const char *sandbox, const char *name, struct store_call call,
                     struct err *e)
{
	static const struct op op = { "drop a shell", run_drop, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct shell_row));
	struct shell_row *which = q->args;

	which->sandbox = arena_strndup(&q->arena, sandbox, strnlen(sandbox, STORE_ID_MAX));
	which->name = name ? arena_strndup(&q->arena, name, strnlen(name, STORE_NAME_MAX)) : NULL;
	return request_send(s, &q, call, e);
}

int store_shell_list(struct store *s, const char *tenant, const char *sandbox, struct arena *a,
                     struct shell_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	struct row_list found;

	row_select(&table, &sql);
	str_add(&sql, "WHERE tenant=?1 AND sandbox=?2 ORDER BY seq");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	db_bind_text(st, 2, sandbox);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct shell_list){ found.rows, found.n };
	return 0;
}
