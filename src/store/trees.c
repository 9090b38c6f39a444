#include "store/trees.h"

#include <assert.h>

#include "store/store-internal.h"

static const char *const state_names[] = {
	[TREE_MAKING] = "making",
	[TREE_READY] = "ready",
	[TREE_TRASH] = "trash",
};
_Static_assert(COUNT(state_names) == TREE_STATE_COUNT, "a state has no name");

const char *tree_state_name(enum tree_state state)
{
	return state < TREE_STATE_COUNT ? state_names[state] : "?";
}

/* clang-format off */
#define F(field, kind, max) COL(tree_row, field, kind, max, 0)
static const struct column columns[] = {
	F(num,        COL_INT,   0),
	F(tenant,     COL_NEED,  STORE_NAME_MAX),
	F(node,       COL_NEED,  STORE_NAME_MAX),
	F(kind,       COL_NEED,  STORE_NAME_MAX),
	F(state,      COL_STATE, 0),
	F(owner,      COL_NEED,  STORE_NAME_MAX),
	F(key,        COL_TEXT,  STORE_NAME_MAX),
	F(bytes,      COL_INT,   0),
	F(created_ms, COL_INT,   0),
};
/* clang-format on */
static const struct table table = {
	.name = "trees",
	.noun = "tree",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct tree_row),
	.states = state_names,
	.n_states = COUNT(state_names),
};

/* ---- writes ------------------------------------------------------------------------------ */

static int run_insert(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_insert(&s->writer, &table, q->args, e);
}

int store_tree_insert(struct store *s, const struct tree_row *row, struct store_call call,
                      struct err *e)
{
	static const struct op op = { "insert a tree", run_insert, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *row);
	struct tree_row full = *row;

	if (row->num <= 0 || row->state >= TREE_TRASH)
		return err_new(e, ERR_INVALID, "a tree has a number, and does not begin as trash");
	full.node = row->node ? row->node : s->node;
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

struct tree_move {
	int64_t num, bytes;
	enum tree_state state;
};

static int refuse(struct request *q, int64_t num, const char *wanted, struct err *e)
{
	q->answer.code = STORE_CONFLICT;
	return err_new(e, ERR_INVALID, "tree %lld is not there, or cannot become %s",
	               (long long)num, wanted);
}

static int run_move(struct store *s, struct request *q, struct err *e)
{
	static const char *const from[] = { "||", "|making|ready|", "|making|ready|trash|" };
	const struct tree_move *m = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE trees SET state=?2,bytes=CASE WHEN ?3<0 THEN bytes ELSE"
	                           " ?3 END WHERE num=?1 AND instr(?4,'|'||state||'|')",
	                           e);

	if (!st)
		return -1;
	db_bind_int(st, 1, m->num);
	db_bind_text(st, 2, state_names[m->state]);
	db_bind_int(st, 3, m->bytes);
	db_bind_text(st, 4, from[m->state]);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return q->answer.rows ? 0 : refuse(q, m->num, state_names[m->state], e);
}

int store_tree_move(struct store *s, int64_t num, enum tree_state state, int64_t bytes,
                    struct store_call call, struct err *e)
{
	static const struct op op = { "move a tree", run_move, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct tree_move));

	if (state >= TREE_STATE_COUNT)
		return err_new(e, ERR_INVALID, "no such state of a tree");
	*(struct tree_move *)q->args = (struct tree_move){ num, bytes, state };
	return request_send(s, &q, call, e);
}

static int run_drop(struct store *s, struct request *q, struct err *e)
{
	const struct tree_move *m = q->args;
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer, "DELETE FROM trees WHERE num=?1 AND state='trash'", e);

	if (!st)
		return -1;
	db_bind_int(st, 1, m->num);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return q->answer.rows ? 0 : refuse(q, m->num, "nothing", e);
}

int store_tree_drop(struct store *s, int64_t num, struct store_call call, struct err *e)
{
	static const struct op op = { "drop a tree", run_drop, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct tree_move));

	((struct tree_move *)q->args)->num = num;
	return request_send(s, &q, call, e);
}

/* Not below a workspace that is there, nor below a point. */
#define UNUSED                                                                                     \
	" (kind='checkout' OR kind='layer' AND owner='flat') AND state='ready' AND num NOT "       \
	"IN(SELECT j.value FROM workspaces w,"                                                     \
	"json_each(w.stack) j WHERE w.state<>'gone') AND num NOT IN(SELECT j.value FROM points p," \
	"json_each(p.stack) j)"

static int run_retire(struct store *s, struct request *q, struct err *e)
{
	const struct tree_move *m = q->args;
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer, "UPDATE trees SET state='trash' WHERE num=?1 AND" UNUSED, e);

	if (!st)
		return -1;
	db_bind_int(st, 1, m->num);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return q->answer.rows ? 0 : refuse(q, m->num, "trash: it is needed", e);
}

int store_tree_retire(struct store *s, int64_t num, struct store_call call, struct err *e)
{
	static const struct op op = { "retire a tree", run_retire, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct tree_move));

	((struct tree_move *)q->args)->num = num;
	return request_send(s, &q, call, e);
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

int store_tree_get(struct store *s, int64_t num, struct arena *a, struct tree_row *out,
                   struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, "WHERE num=?1", e);

	if (!st)
		return -1;
	db_bind_int(st, 1, num);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_tree_by_key(struct store *s, const struct tree_row *which, struct arena *a,
                      struct tree_row *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s,
	                                "WHERE owner=?1 AND kind=?2 AND key=?3 AND"
	                                " state IN('making','ready')",
	                                e);

	if (!st)
		return -1;
	db_bind_text(st, 1, which->owner);
	db_bind_text(st, 2, which->kind);
	db_bind_text(st, 3, which->key);
	return row_one(&s->reader, &table, st, a, out, e);
}

static int list_where(struct store *s, const char *where, const char *value, struct arena *a,
                      struct tree_list *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, where, e);
	struct row_list found;

	if (!st)
		return -1;
	db_bind_text(st, 1, value);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct tree_list){ found.rows, found.n };
	return 0;
}

int store_tree_of(struct store *s, const char *owner, struct arena *a, struct tree_list *out,
                  struct err *e)
{
	return list_where(s, "WHERE owner=?1 AND state<>'trash' ORDER BY num", owner, a, out, e);
}

int store_tree_unused(struct store *s, int64_t before_ms, struct arena *a, struct tree_list *out,
                      struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s, "WHERE created_ms<=?1 AND" UNUSED " ORDER BY num", e);
	struct row_list found;

	if (!st)
		return -1;
	db_bind_int(st, 1, before_ms);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct tree_list){ found.rows, found.n };
	return 0;
}

int store_tree_in(struct store *s, enum tree_state state, struct arena *a, struct tree_list *out,
                  struct err *e)
{
	return list_where(s, "WHERE state=?1 ORDER BY num", tree_state_name(state), a, out, e);
}
