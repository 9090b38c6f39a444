#include "store/repos.h"

#include <assert.h>

#include "store/store-internal.h"

/* clang-format off */
static const char *const state_names[] = {
	[REPO_CLONING]    = "cloning",
	[REPO_READY]      = "ready",
	[REPO_REFRESHING] = "refreshing",
	[REPO_FAILED]     = "failed",
	[REPO_GONE]       = "gone",
};
_Static_assert(COUNT(state_names) == REPO_STATE_COUNT, "a state has no name");

#define S(state) (1u << REPO_##state)
static const uint32_t leads_to[] = {
	[REPO_CLONING]    = S(READY) | S(FAILED) | S(GONE),
	[REPO_READY]      = S(REFRESHING) | S(GONE),
	[REPO_REFRESHING] = S(READY),
	[REPO_FAILED]     = S(CLONING) | S(GONE),
	[REPO_GONE]       = 0,
};
_Static_assert(COUNT(leads_to) == REPO_STATE_COUNT, "a state leads nowhere");

#define F(field, kind, max, bit) COL(repo_row, field, kind, max, bit)
static const struct column columns[] = {
	F(seq,          COL_SEQ,   0,                0),
	F(id,           COL_NEED,  STORE_ID_MAX,     0),
	F(tenant,       COL_NEED,  STORE_NAME_MAX,   0),
	F(node,         COL_NEED,  STORE_NAME_MAX,   0),
	F(key,          COL_NEED,  STORE_NAME_MAX,   0),
	F(url,          COL_NEED,  STORE_URL_MAX,    0),
	F(cred,         COL_TEXT,  STORE_NAME_MAX,   0),
	F(refs,         COL_NEED,  STORE_TEXT_MAX,   REPO_SET_WISHES),
	F(refresh,      COL_NEED,  STORE_NAME_MAX,   REPO_SET_WISHES),
	F(state,        COL_STATE, 0,                REPO_SET_STATE),
	F(state_reason, COL_TEXT,  STORE_TEXT_MAX,   REPO_SET_STATE),
	F(tree,         COL_INT,   0,                REPO_SET_TREE),
	F(head,         COL_TEXT,  STORE_REF_MAX,    REPO_SET_FETCHED),
	F(generation,   COL_INT,   0,                REPO_SET_FETCHED),
	F(created_ms,   COL_INT,   0,                0),
	F(fetched_ms,   COL_SOME,  0,                REPO_SET_FETCHED),
	F(ended_ms,     COL_SOME,  0,                REPO_SET_ENDED),
};
#undef F
#define FIELDS_ALL ((REPO_SET_WISHES << 1) - 1)

#define F(field, kind, max) COL(ref_row, field, kind, max, 0)
static const struct column ref_columns[] = {
	F(repo,       COL_NEED, STORE_ID_MAX),
	F(name,       COL_NEED, STORE_REF_MAX),
	F(sha,        COL_NEED, STORE_COMMIT_MAX),
	F(branch,     COL_TEXT, STORE_REF_MAX),
	F(generation, COL_INT,  0),
};
/* clang-format on */
static const struct table table = {
	.name = "repos",
	.noun = "repository",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct repo_row),
	.states = state_names,
	.n_states = COUNT(state_names),
};
static const struct table ref_table = {
	.name = "repo_refs",
	.noun = "name",
	.unique = "repo,name",
	.columns = ref_columns,
	.n_columns = COUNT(ref_columns),
	.row_bytes = sizeof(struct ref_row),
};

const char *repo_state_name(enum repo_state state)
{
	return state < REPO_STATE_COUNT ? state_names[state] : "?";
}

bool repo_state_may(enum repo_state from, enum repo_state to)
{
	return from < REPO_STATE_COUNT && to < REPO_STATE_COUNT && (leads_to[from] & 1u << to);
}

static uint32_t may_come_from(enum repo_state to)
{
	uint32_t from = 0;

	for (unsigned int i = 0; i < REPO_STATE_COUNT; i++)
		from |= repo_state_may((enum repo_state)i, to) ? 1u << i : 0;
	return from;
}

/* ---- writes ------------------------------------------------------------------------------ */

struct repo_args {
	struct repo_row row;
	uint32_t fields;
};

static int run_insert(struct store *s, struct request *q, struct err *e)
{
	const struct repo_args *args = q->args;

	q->answer.rows = 1;
	return row_insert(&s->writer, &table, &args->row, e);
}

int store_repo_insert(struct store *s, const struct repo_row *row, struct store_call call,
                      struct err *e)
{
	static const struct op op = { "insert a repository", run_insert, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct repo_args));
	struct repo_args *args = q->args;
	struct repo_row full = *row;

	if (row->state != REPO_CLONING)
		return err_new(e, ERR_INVALID, "a repository does not begin as %s",
		               repo_state_name(row->state));
	full.node = row->node ? row->node : s->node;
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, &args->row, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_on_id(struct db *db, const char *sql, const char *id, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, sql, e);

	if (!st)
		return -1;
	db_bind_text(st, 1, id);
	return db_step(db, st, e);
}

static int run_update(struct store *s, struct request *q, struct err *e)
{
	const struct repo_args *args = q->args;
	bool is_move = args->fields & REPO_SET_STATE;
	char from[STATES_TEXT_MAX];

	row_states(&table, is_move ? may_come_from(args->row.state) : ~(uint32_t)S(GONE), from);
	int n = row_update(&s->writer, &table, &args->row, args->fields, from, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return refuse_state(s, q, &table, args->row.id,
		                    is_move ? repo_state_name(args->row.state) : NULL, e);
	q->answer.rows = n;
	if (!(args->fields & (REPO_SET_FETCHED | REPO_SET_ENDED)))
		return 0;
	return run_on_id(&s->writer, "DELETE FROM repo_refs WHERE repo=?1", args->row.id, e);
}

int store_repo_update(struct store *s, const struct repo_row *row, uint32_t fields,
                      struct store_call call, struct err *e)
{
	static const struct op op = { "update a repository", run_update, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct repo_args));
	struct repo_args *args = q->args;

	if (!fields || fields & ~(uint32_t)FIELDS_ALL)
		return err_new(e, ERR_INVALID, "an update of a repository names what it changes");
	if (fields & REPO_SET_STATE && row->state >= REPO_STATE_COUNT)
		return err_new(e, ERR_INVALID, "no such state of a repository");
	int n = row_copy(&table, fields, &q->arena, row, &args->row, e);

	if (n < 0)
		return -1;
	args->fields = fields;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

struct unlock_args {
	const char *reason;
};

static int run_unlock(struct store *s, struct request *q, struct err *e)
{
	const struct unlock_args *args = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE repos SET state_reason=?1,"
	                           " state=CASE state WHEN 'cloning' THEN 'failed' ELSE 'ready' END"
	                           " WHERE state IN('cloning','refreshing')",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, args->reason);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

int store_repo_unlock(struct store *s, const char *reason, struct store_call call, struct err *e)
{
	static const struct op op = { "unlock repositories", run_unlock, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct unlock_args));
	struct unlock_args *args = q->args;

	args->reason = arena_strndup(&q->arena, reason, strnlen(reason, STORE_TEXT_MAX));
	return request_send(s, &q, call, e);
}

static int run_ref(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_put(&s->writer, &ref_table, q->args, e);
}

int store_ref_put(struct store *s, const struct ref_row *row, struct store_call call, struct err *e)
{
	static const struct op op = { "keep a name", run_ref, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *row);
	int n = row_copy(&ref_table, ROW_ALL, &q->arena, row, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

/* ---- reads ------------------------------------------------------------------------------- */

struct where {
	const struct table *table;
	const char *sql;
	const char *values[3];
};

static int get_where(struct store *s, const struct where *w, struct arena *a, void *out,
                     struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	row_select(w->table, &sql);
	str_add(&sql, w->sql);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	for (int i = 0; i < 3 && w->values[i]; i++)
		db_bind_text(st, i + 1, w->values[i]);
	return row_one(&s->reader, w->table, st, a, out, e);
}

int store_repo_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                   struct repo_row *out, struct err *e)
{
	const struct where w = { &table, "WHERE tenant=?1 AND id=?2", { tenant, id } };

	return get_where(s, &w, a, out, e);
}

int store_repo_by_key(struct store *s, const char *tenant, const char *key, struct arena *a,
                      struct repo_row *out, struct err *e)
{
	const struct where w = { &table,
		                 "WHERE tenant=?1 AND key=?2 AND state<>'gone'",
		                 { tenant, key } };

	return get_where(s, &w, a, out, e);
}

int store_repo_by_url(struct store *s, const struct repo_row *like, struct arena *a,
                      struct repo_row *out, struct err *e)
{
	const struct where w = {
		&table,
		"WHERE tenant=?1 AND url=?2 AND coalesce(cred,'')=?3 AND state<>'gone'",
		{ like->tenant, like->url, like->cred ? like->cred : "" }
	};

	return get_where(s, &w, a, out, e);
}

int store_repo_list(struct store *s, const struct store_page *page, struct arena *a,
                    struct repo_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	struct page_plan plan;
	struct row_list found;

	row_select(&table, &sql);
	if (row_page_where(page, &sql, &plan, e) < 0)
		return -1;
	str_add(&sql, " AND state<>'gone'");
	row_page_order(&plan, &sql);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_page(&from, &plan, a, &found, e) < 0)
		return -1;
	*out = (struct repo_list){ found.rows, found.n, found.next };
	return 0;
}

int store_ref_get(struct store *s, const char *repo, const char *name, struct arena *a,
                  struct ref_row *out, struct err *e)
{
	const struct where w = { &ref_table, "WHERE repo=?1 AND name=?2", { repo, name } };

	return get_where(s, &w, a, out, e);
}
