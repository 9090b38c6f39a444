#include "store/connections.h"

#include <assert.h>

#include "store/store-internal.h"

#define SECOND_MS 1000
#define HOUR_MS (3600 * SECOND_MS)
#define HOST_TEXT_MAX 288 /* GATE_RULE_SIZE is the longest of them */
#define PATH_MAX_BYTES 512

static const char *const kind_names[] = {
	[CONNECTION_ONE] = "connection",    [CONNECTION_REQUEST] = "request",
	[CONNECTION_LOOKUP] = "lookup",     [CONNECTION_ONES] = "connections",
	[CONNECTION_REQUESTS] = "requests", [CONNECTION_LOOKUPS] = "lookups",
};
_Static_assert(COUNT(kind_names) == CONNECTION_KINDS, "a kind has no name");
#define TO_MANY (CONNECTION_ONES - CONNECTION_ONE)

const char *connection_kind_name(enum connection_kind kind)
{
	return kind < CONNECTION_KINDS ? kind_names[kind] : "?";
}

/* clang-format off */
#define F(field, kind, max) COL(connection_row, field, kind, max, 0)
static const struct column columns[] = {
	F(seq,        COL_SEQ,   0),
	F(sandbox,    COL_NEED,  STORE_ID_MAX),
	F(tenant,     COL_NEED,  STORE_NAME_MAX),
	F(node,       COL_NEED,  STORE_NAME_MAX),
	F(generation, COL_INT,   0),
	F(kind,       COL_STATE, 0),
	F(num,        COL_INT,   0),
	F(request,    COL_INT,   0),
	F(ts_ms,      COL_INT,   0),
	F(process,    COL_TEXT,  STORE_ID_MAX),
	F(name,       COL_TEXT,  HOST_TEXT_MAX),
	F(dst,        COL_TEXT,  STORE_ID_MAX),
	F(real,       COL_TEXT,  STORE_ID_MAX),
	F(port,       COL_INT,   0),
	F(proto,      COL_TEXT,  STORE_ID_MAX),
	F(sni,        COL_TEXT,  HOST_TEXT_MAX),
	F(alpn,       COL_TEXT,  STORE_ID_MAX),
	F(decision,   COL_NEED,  STORE_ID_MAX),
	F(denied,     COL_INT,   0),
	F(rule,       COL_TEXT,  HOST_TEXT_MAX),
	F(reason,     COL_TEXT,  STORE_ID_MAX),
	F(approval,   COL_TEXT,  STORE_ID_MAX),
	F(secrets,    COL_NEED,  STORE_TEXT_MAX),
	F(rules,      COL_INT,   0),
	F(bytes_up,   COL_INT,   0),
	F(bytes_down, COL_INT,   0),
	F(ms,         COL_INT,   0),
	F(close,      COL_TEXT,  STORE_ID_MAX),
	F(method,     COL_TEXT,  STORE_ID_MAX),
	F(path,       COL_TEXT,  PATH_MAX_BYTES),
	F(status,     COL_SOME,  0),
	F(count,      COL_INT,   0),
	F(cache,      COL_TEXT,  STORE_ID_MAX),
};
/* clang-format on */
static const struct table table = {
	.name = "connections",
	.noun = "connection",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct connection_row),
	.states = kind_names,
	.n_states = COUNT(kind_names),
};

struct put_args {
	struct connection_row *rows;
	size_t n;
};

static bool is_open(const struct connection_row *row)
{
	return row->close && strcmp(row->close, CONNECTION_OPEN) == 0;
}

/* ---- writes, in the store thread --------------------------------------------------------- */

#define BY_NUM " FROM connections WHERE sandbox=?1 AND generation=?2 AND num=?3 AND request=?4"

static void bind_key(sqlite3_stmt *st, const struct connection_row *row)
{
	db_bind_text(st, 1, row->sandbox);
	db_bind_int(st, 2, row->generation);
	db_bind_int(st, 3, row->num);
	db_bind_int(st, 4, row->request);
}

static int remove_row(struct store *s, const struct connection_row *row, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->writer, "DELETE" BY_NUM, e);

	if (!st)
		return -1;
	bind_key(st, row);
	return db_step(&s->writer, st, e) < 0 ? -1 : 0;
}

/* What is there already: 0 nothing, 1 open or lost, 2 final, -1. Whose it is was best known when it
 * was opened. */
static int look(struct store *s, struct arena *a, struct connection_row *row, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(
	    &s->writer,
	    "SELECT close IN('" CONNECTION_OPEN "','" CONNECTION_LOST "'),process" BY_NUM, e);

	if (!st)
		return -1;
	bind_key(st, row);
	int r = db_step(&s->writer, st, e);

	if (r <= 0)
		return r;
	const char *process = (const char *)sqlite3_column_text(st, 1);

	if (!row->process && process)
		row->process = arena_strdup(a, process);
	return sqlite3_column_int(st, 0) ? 1 : 2;
}

static int count_rows(struct store *s, const char *sandbox, int64_t *n, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer, "SELECT rows FROM connection_totals WHERE sandbox=?1", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, sandbox);
	int r = db_step(&s->writer, st, e);

	*n = r > 0 ? sqlite3_column_int64(st, 0) : 0;
	return r < 0 ? -1 : 0;
}

/* What the sum says so far is added to `sum`. */
static int take_sum(struct store *s, struct connection_row *sum, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer, "SELECT count,bytes_up,bytes_down,ms" BY_NUM, e);

	if (!st)
		return -1;
	bind_key(st, sum);
	int r = db_step(&s->writer, st, e);

	if (r <= 0)
		return r;
	sum->count += sqlite3_column_int64(st, 0);
	sum->bytes_up += sqlite3_column_int64(st, 1);
	sum->bytes_down += sqlite3_column_int64(st, 2);
	sum->ms += sqlite3_column_int64(st, 3);
	return 0;
}

/* Its number is the time that it stands for, below zero: no connection has that. */
static int add_up(struct store *s, const struct connection_row *row, int64_t rows, struct err *e)
{
	int64_t span_ms =
	    rows < STORE_CONNECTION_ROWS + STORE_CONNECTION_SUMS ? SECOND_MS : HOUR_MS;
	int64_t begin_ms = row->ts_ms - row->ts_ms % span_ms;
	struct connection_row sum = { .sandbox = row->sandbox,
		                      .tenant = row->tenant,
		                      .node = row->node,
		                      .generation = row->generation,
		                      .kind = (enum connection_kind)(row->kind + TO_MANY),
		                      .num = -1 - begin_ms,
		                      .request = 2 * (int64_t)row->kind + row->denied,
		                      .ts_ms = begin_ms,
		                      .decision = row->denied ? "deny" : "allow",
		                      .denied = row->denied,
		                      .secrets = "[]",
		                      .bytes_up = row->bytes_up,
		                      .bytes_down = row->bytes_down,
		                      .ms = row->ms,
		                      .count = row->count };

	if (take_sum(s, &sum, e) < 0 || remove_row(s, &sum, e) < 0)
		return -1;
	return row_insert(&s->writer, &table, &sum, e);
}

/* A row that replaces another is inserted anew, at the end of the order. */
static int put_one(struct store *s, struct request *q, struct connection_row *row, struct err *e)
{
	int64_t rows = 0;
	int before = look(s, &q->arena, row, e);

	if (before < 0)
		return -1;
	if (before == 2 || (before == 1 && is_open(row)))
		return 0;
	if (count_rows(s, row->sandbox, &rows, e) < 0)
		return -1;
	if (before == 0 && rows >= STORE_CONNECTION_ROWS && is_open(row))
		return 0; /* its end is added up */
	q->answer.rows++;
	if (before == 0 && rows >= STORE_CONNECTION_ROWS)
		return add_up(s, row, rows, e);
	if (before == 1 && remove_row(s, row, e) < 0)
		return -1;
	return row_insert(&s->writer, &table, row, e);
}

static int run_put(struct store *s, struct request *q, struct err *e)
{
	const struct put_args *args = q->args;

	for (size_t i = 0; i < args->n; i++)
		if (put_one(s, q, &args->rows[i], e) < 0)
			return -1;
	return 0;
}

static int run_lose(struct store *s, struct request *q, struct err *e)
{
	const char *const *sandbox = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE connections INDEXED BY connections_open"
	                           " SET close='" CONNECTION_LOST "'"
	                           " WHERE sandbox=?1 AND close='" CONNECTION_OPEN "'",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, *sandbox);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

/* ---- requests, in the loop --------------------------------------------------------------- */

static int check_row(const struct connection_row *row, struct err *e)
{
	if (row->kind >= CONNECTION_ONES)
		return err_new(e, ERR_INVALID, "%s are added up by the store",
		               connection_kind_name(row->kind));
	if (row->num < 0 || row->request < 0 || row->ts_ms < 0 || row->denied < 0 ||
	    row->denied > 1 || row->count < 1)
		return err_new(e, ERR_INVALID, "a number of a connection is out of range");
	return 0;
}

int store_connection_put(struct store *s, const struct connection_row *rows, size_t n,
                         struct store_call call, struct err *e)
{
	static const struct op op = { "keep connections", run_put, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct put_args));
	struct put_args *args = q->args;

	if (n < 1 || n > STORE_CONNECTIONS_MAX)
		return err_new(e, ERR_INVALID, "1 to %d connections at a time",
		               STORE_CONNECTIONS_MAX);
	args->rows = arena_alloc(&q->arena, n * sizeof *rows);
	for (size_t i = 0; i < n; i++) {
		struct connection_row full = rows[i];

		full.node = full.node ? full.node : s->node;
		full.secrets = full.secrets ? full.secrets : "[]";
		if (check_row(&full, e) < 0)
			return -1;
		int bytes = row_copy(&table, ROW_ALL, &q->arena, &full, &args->rows[i], e);

		if (bytes < 0)
			return -1;
		q->bytes += sizeof *rows + (size_t)bytes;
	}
	args->n = n;
	return request_send(s, &q, call, e);
}

int store_connection_lose(struct store *s, const char *sandbox, struct store_call call,
                          struct err *e)
{
	static const struct op op = { "lose connections", run_lose, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(const char *));
	const char **which = q->args;

	*which = arena_strndup(&q->arena, sandbox, strnlen(sandbox, STORE_ID_MAX));
	return request_send(s, &q, call, e);
}

/* ---- reads ------------------------------------------------------------------------------- */

int store_connection_list(struct store *s, const struct connection_query *query, struct arena *a,
                          struct connection_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	size_t limit = query->limit ? query->limit : STORE_LIST_DEFAULT;
	struct row_list found;

	if (limit > STORE_LIST_MAX)
		return err_new(e, ERR_INVALID, "limit is at most %d", STORE_LIST_MAX);
	row_select(&table, &sql);
	str_add(&sql, "WHERE tenant=?1 AND sandbox=?2 AND seq>?3");
	str_add(&sql, query->decision ? " AND decision=?5" : "");
	str_add(&sql, query->name ? " AND name=?6" : "");
	str_add(&sql, query->is_denied_only ? " AND denied=1" : "");
	str_add(&sql, query->is_allowed_only ? " AND denied=0" : "");
	str_add(&sql, " ORDER BY seq LIMIT ?4");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_text(st, 1, query->tenant);
	db_bind_text(st, 2, query->sandbox);
	db_bind_int(st, 3, query->after);
	db_bind_int(st, 4, (int64_t)limit + 1); /* one more tells whether more come */
	if (query->decision)
		db_bind_text(st, 5, query->decision);
	if (query->name)
		db_bind_text(st, 6, query->name);
	struct row_source from = {
		.db = &s->reader, .table = &table, .st = st, .max = limit, .is_bounded = true
	};

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct connection_list){ found.rows, found.n, found.has_more };
	return 0;
}
