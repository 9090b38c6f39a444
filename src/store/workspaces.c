#include "store/workspaces.h"

#include <assert.h>

#include "base/limits.h"
#include "store/points-internal.h"
#include "store/sandboxes.h"

/* ---- states ------------------------------------------------------------------------------ */

static const char *const state_names[] = {
	[WORKSPACE_MAKING] = "making", [WORKSPACE_READY] = "ready", [WORKSPACE_FAILED] = "failed",
	[WORKSPACE_TRASH] = "trash",   [WORKSPACE_GONE] = "gone",
};
_Static_assert(COUNT(state_names) == WORKSPACE_STATE_COUNT, "a state has no name");

#define S(state) (1u << WORKSPACE_##state)
/* clang-format off */
static const uint32_t may_become[] = {
	[WORKSPACE_MAKING] = S(READY) | S(FAILED) | S(TRASH),
	[WORKSPACE_READY]  = S(TRASH),
	[WORKSPACE_FAILED] = S(TRASH),
	[WORKSPACE_TRASH]  = S(READY) | S(GONE),
	[WORKSPACE_GONE]   = 0,
};
/* clang-format on */
_Static_assert(COUNT(may_become) == WORKSPACE_STATE_COUNT, "a state leads nowhere");

const char *workspace_state_name(enum workspace_state state)
{
	return state < WORKSPACE_STATE_COUNT ? state_names[state] : "?";
}

bool workspace_state_may(enum workspace_state from, enum workspace_state to)
{
	return from < WORKSPACE_STATE_COUNT && to < WORKSPACE_STATE_COUNT &&
	       may_become[from] & 1u << to;
}

static uint32_t may_come_from(enum workspace_state to)
{
	uint32_t from = 0;

	for (unsigned int i = 0; i < WORKSPACE_STATE_COUNT; i++)
		from |= workspace_state_may((enum workspace_state)i, to) ? 1u << i : 0;
	return from;
}

/* ---- the table --------------------------------------------------------------------------- */

/* clang-format off */
#define F(field, kind, max, bit) COL(workspace_row, field, kind, max, bit)
static const struct column columns[] = {
	F(seq,          COL_SEQ,   0,                   0),
	F(id,           COL_NEED,  STORE_ID_MAX,        0),
	F(tenant,       COL_NEED,  STORE_NAME_MAX,      0),
	F(node,         COL_NEED,  STORE_NAME_MAX,      0),
	F(key,          COL_TEXT,  STORE_NAME_MAX,      0),
	F(repo,         COL_TEXT,  STORE_ID_MAX,        WORKSPACE_SET_BASE),
	F(base,         COL_TEXT,  STORE_TEXT_MAX,      WORKSPACE_SET_BASE),
	F(base_commit,  COL_TEXT,  STORE_NAME_MAX,      WORKSPACE_SET_BASE),
	F(branch,       COL_TEXT,  STORE_TEXT_MAX,      WORKSPACE_SET_BASE),
	F(mode,         COL_NEED,  STORE_NAME_MAX,      0),
	F(state,        COL_STATE, 0,                   WORKSPACE_SET_STATE),
	F(state_reason, COL_TEXT,  STORE_TEXT_MAX,      WORKSPACE_SET_STATE),
	F(spec,         COL_NEED,  SPEC_BYTES_MAX,      WORKSPACE_SET_SPEC),
	F(parent,       COL_TEXT,  STORE_ID_MAX,        0),
	F(num,          COL_INT,   0,                   0),
	F(top,          COL_INT,   0,                   WORKSPACE_SET_STACK),
	F(stack,        COL_NEED,  POINT_STACK_MAX, WORKSPACE_SET_STACK),
	F(begins,       COL_INT,   0,                   WORKSPACE_SET_STACK),
	F(origin,       COL_INT,   0,                   WORKSPACE_SET_ORIGIN),
	F(head,         COL_INT,   0,                   WORKSPACE_SET_HEAD),
	F(ahead,        COL_NEED,  WORKSPACE_AHEAD_MAX, WORKSPACE_SET_HEAD),
	F(rev,          COL_INT,   0,                   WORKSPACE_SET_HEAD),
	F(clean,        COL_INT,   0,                   WORKSPACE_SET_CLEAN),
	F(pending,      COL_TEXT,  WORKSPACE_AHEAD_MAX, WORKSPACE_SET_PENDING),
	F(pin,          COL_INT,   0,                   WORKSPACE_SET_LIFE),
	F(ttl_ms,       COL_SOME,  0,                   WORKSPACE_SET_LIFE),
	F(expires_ms,   COL_SOME,  0,                   WORKSPACE_SET_LIFE | WORKSPACE_SET_USED),
	F(created_ms,   COL_INT,   0,                   0),
	F(used_ms,      COL_INT,   0,                   WORKSPACE_SET_USED),
	F(ended_ms,     COL_SOME,  0,                   WORKSPACE_SET_STATE),
	F(disk_bytes,   COL_INT,   0,                   0),
	F(inodes,       COL_INT,   0,                   0),
	F(root_num,     COL_INT,   0,                   WORKSPACE_SET_ROOT),
	F(root_top,     COL_INT,   0,                   WORKSPACE_SET_ROOT),
	F(root_begins,  COL_INT,   0,                   WORKSPACE_SET_ROOT),
	F(root_tree,    COL_INT,   0,                   WORKSPACE_SET_ROOT),
	F(root_image,   COL_TEXT,  STORE_NAME_MAX,      WORKSPACE_SET_ROOT),
};
/* clang-format on */
static const struct table table = {
	.name = "workspaces",
	.noun = "workspace",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct workspace_row),
	.states = state_names,
	.n_states = COUNT(state_names),
};
#define FIELDS_ALL ((WORKSPACE_SET_ROOT << 1) - 1)

/* ---- writes ------------------------------------------------------------------------------ */

struct insert_args {
	struct workspace_row *rows;
	size_t n;
	uint64_t most;
};

#define COUNT_OF_TENANT                                                                            \
	"SELECT count(*) FROM workspaces WHERE tenant=?1 AND state NOT IN('trash','gone')"

static int count_of(struct db *db, const char *tenant, uint64_t *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, COUNT_OF_TENANT, e);

	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	if (db_step(db, st, e) < 0)
		return -1;
	*out = (uint64_t)sqlite3_column_int64(st, 0);
	return 0;
}

/* In the transaction: a hundred at once cannot pass together. */
static int check_room(struct store *s, struct request *q, struct err *e)
{
	const struct insert_args *args = q->args;
	uint64_t n = 0;

	if (!args->most)
		return 0;
	if (count_of(&s->writer, args->rows[0].tenant, &n, e) < 0)
		return -1;
	if (n + args->n <= args->most)
		return 0;
	q->answer.code = STORE_CONFLICT;
	return err_new(e, ERR_LIMIT, "workspaces: %zu more with %llu in use, and the quota is %llu",
	               args->n, (unsigned long long)n, (unsigned long long)args->most);
}

static int run_insert(struct store *s, struct request *q, struct err *e)
{
	const struct insert_args *args = q->args;

	if (check_room(s, q, e) < 0)
		return -1;
	for (size_t i = 0; i < args->n; i++)
		if (row_insert(&s->writer, &table, &args->rows[i], e) < 0)
			return -1;
	q->answer.rows = (int64_t)args->n;
	return 0;
}

int store_workspace_insert(struct store *s, const struct workspace_row *rows, size_t n,
                           struct store_call call, struct err *e)
{
	return store_workspace_insert_within(s, &(struct workspace_batch){ rows, n, 0 }, call, e);
}

int store_workspace_count(struct store *s, const char *tenant, uint64_t *out, struct err *e)
{
	return count_of(&s->reader, tenant, out, e);
}

int store_workspace_insert_within(struct store *s, const struct workspace_batch *batch,
                                  struct store_call call, struct err *e)
{
	const struct workspace_row *rows = batch->rows;
	size_t n = batch->n;
	static const struct op op = { "insert workspaces", run_insert, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct insert_args));
	struct insert_args *args = q->args;

	if (n == 0 || n > WORKSPACE_FORKS_MAX)
		return err_new(e, ERR_INVALID, "1 to %d workspaces at a time", WORKSPACE_FORKS_MAX);
	args->rows = arena_alloc(&q->arena, n * sizeof *rows);
	args->n = n;
	args->most = batch->most;
	for (size_t i = 0; i < n; i++) {
		struct workspace_row full = rows[i];

		if (full.num <= 0 || full.state > WORKSPACE_READY)
			return err_new(e, ERR_INVALID, "a workspace begins as making or ready");
		full.node = full.node ? full.node : s->node;
		full.ahead = full.ahead ? full.ahead : "[]";
		full.mode = full.mode ? full.mode : "edit";
		int bytes = row_copy(&table, ROW_ALL, &q->arena, &full, &args->rows[i], e);

		if (bytes < 0)
			return -1;
		q->bytes += (size_t)bytes + sizeof full;
	}
	return request_send(s, &q, call, e);
}

struct update_args {
	struct workspace_row row;
	uint32_t fields;
	bool has_point;
	struct point_row point;
	int64_t trash, root_trash;
};

static int run_trash(struct db *db, const struct update_args *args, int64_t num, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(db,
	                           "INSERT INTO trees(num,tenant,node,kind,state,owner,bytes,"
	                           "created_ms) SELECT ?1,tenant,node,'top','trash',id,0,created_ms"
	                           " FROM workspaces WHERE id=?2",
	                           e);

	if (!st)
		return -1;
	db_bind_int(st, 1, num);
	db_bind_text(st, 2, args->row.id);
	return num ? db_step(db, st, e) : 0;
}

static int run_update(struct store *s, struct request *q, struct err *e)
{
	const struct update_args *args = q->args;
	const struct workspace_row *row = &args->row;
	bool is_move = args->fields & WORKSPACE_SET_STATE;
	char from[STATES_TEXT_MAX];

	row_states(&table,
	           is_move ? may_come_from(row->state)
	                   : ((1u << WORKSPACE_STATE_COUNT) - 1) & ~S(GONE),
	           from);
	int n = row_update(&s->writer, &table, row, args->fields, from, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return refuse_state(s, q, &table, row->id,
		                    is_move ? workspace_state_name(row->state) : NULL, e);
	q->answer.rows = n;
	if (args->has_point && point_insert(&s->writer, &args->point, e) < 0)
		return -1;
	if (run_trash(&s->writer, args, args->trash, e) < 0)
		return -1;
	return run_trash(&s->writer, args, args->root_trash, e);
}

int store_workspace_update(struct store *s, const struct workspace_row *row, uint32_t fields,
                           struct workspace_with with, struct store_call call, struct err *e)
{
	static const struct op op = { "update a workspace", run_update, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct update_args));
	struct update_args *args = q->args;
	int bytes = 0;

	if (!fields || fields & ~(uint32_t)FIELDS_ALL)
		return err_new(e, ERR_INVALID, "an update of a workspace names what it changes");
	if (fields & WORKSPACE_SET_STATE && row->state >= WORKSPACE_STATE_COUNT)
		return err_new(e, ERR_INVALID, "no such state of a workspace");
	int n = row_copy(&table, fields, &q->arena, row, &args->row, e);

	if (n < 0)
		return -1;
	args->fields = fields;
	args->has_point = with.point != NULL;
	args->trash = with.trash;
	args->root_trash = with.root_trash;
	if (with.point)
		bytes = point_copy(s, &q->arena, with.point, &args->point, e);
	if (bytes < 0)
		return -1;
	q->bytes += (size_t)(n + bytes);
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

static int get_where(struct store *s, const char *where, const char *const values[2],
                     struct arena *a, struct workspace_row *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, where, e);

	if (!st)
		return -1;
	db_bind_text(st, 1, values[0]);
	if (values[1])
		db_bind_text(st, 2, values[1]);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_workspace_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                        struct workspace_row *out, struct err *e)
{
	return get_where(s, "WHERE tenant=?1 AND id=?2", (const char *[]){ tenant, id }, a, out, e);
}

int store_workspace_by_key(struct store *s, const char *tenant, const char *key, struct arena *a,
                           struct workspace_row *out, struct err *e)
{
	return get_where(s, "WHERE tenant=?1 AND key=?2 AND state NOT IN('trash','gone')",
	                 (const char *[]){ tenant, key }, a, out, e);
}

int store_workspace_by_id(struct store *s, const char *id, struct arena *a,
                          struct workspace_row *out, struct err *e)
{
	return get_where(s, "WHERE id=?1", (const char *[]){ id, NULL }, a, out, e);
}

int store_workspace_list(struct store *s, const struct workspace_query *query, struct arena *a,
                         struct workspace_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	uint32_t states = query->states ? query->states : S(MAKING) | S(READY) | S(FAILED);
	char text[STATES_TEXT_MAX];
	struct page_plan plan;
	struct row_list found;

	row_select(&table, &sql);
	if (row_page_where(&query->page, &sql, &plan, e) < 0)
		return -1;
	/* Said in words, so that SQLite uses the index of those that are there. */
	str_add(&sql, states & S(GONE) ? "" : " AND state<>'gone'");
	str_add(&sql, " AND instr(?4,'|'||state||'|')");
	str_add(&sql, query->parent ? " AND parent=?5" : "");
	str_add(&sql, query->repo ? " AND repo=?6" : "");
	row_page_order(&plan, &sql);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	row_states(&table, states, text);
	db_bind_text(st, 4, text);
	if (query->parent)
		db_bind_text(st, 5, query->parent);
	if (query->repo)
		db_bind_text(st, 6, query->repo);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_page(&from, &plan, a, &found, e) < 0)
		return -1;
	*out = (struct workspace_list){ found.rows, found.n, found.next };
	return 0;
}

static int list_where(struct store *s, const char *where, int64_t value, struct arena *a,
                      struct workspace_list *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, where, e);
	struct row_list found;

	if (!st)
		return -1;
	db_bind_int(st, 1, value);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct workspace_list){ found.rows, found.n, NULL };
	return 0;
}

int store_workspace_by_root(struct store *s, int64_t tree, struct arena *a,
                            struct workspace_row *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s, "WHERE root_tree=?1 AND state<>'gone' LIMIT 1", e);

	if (!st)
		return -1;
	db_bind_int(st, 1, tree);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_workspace_unsettled(struct store *s, struct arena *a, struct workspace_list *out,
                              struct err *e)
{
	return list_where(s, "WHERE (pending IS NOT NULL OR state='making') AND ?1=0", 0, a, out,
	                  e);
}

bool store_workspace_has_image(struct store *s, const struct workspace_by_image *q)
{
	struct err e;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->reader,
	                           "SELECT 1 FROM workspaces WHERE tenant=?1 AND state='ready'"
	                           " AND spec->>'image'=?2 AND id<>?3 LIMIT 1",
	                           &e);

	if (!st)
		return true; /* on doubt */
	db_bind_text(st, 1, q->tenant);
	db_bind_text(st, 2, q->image);
	db_bind_text(st, 3, q->but ? q->but : "");
	return db_step(&s->reader, st, &e) != 0;
}

int store_workspace_orphaned(struct store *s, struct arena *a, struct workspace_list *out,
                             struct err *e)
{
	return list_where(
	    s,
	    "WHERE state='ready' AND id IN(SELECT workspace FROM sandboxes"
	    " WHERE state='gone' AND life&?1) AND id NOT IN(SELECT workspace FROM sandboxes"
	    " WHERE state<>'gone' AND workspace IS NOT NULL)",
	    LIFE_OWNS_WORK, a, out, e);
}

int store_workspace_expired(struct store *s, int64_t now_ms, struct arena *a,
                            struct workspace_list *out, struct err *e)
{
	return list_where(s,
	                  "WHERE state='ready' AND pin=0 AND expires_ms IS NOT NULL AND"
	                  " expires_ms<=?1 ORDER BY expires_ms LIMIT 100",
	                  now_ms, a, out, e);
}

int store_workspace_trashed(struct store *s, int64_t before_ms, struct arena *a,
                            struct workspace_list *out, struct err *e)
{
	return list_where(s,
	                  "WHERE state='trash' AND ended_ms IS NOT NULL AND ended_ms<=?1 LIMIT 100",
	                  before_ms, a, out, e);
}

/* ---- stacks ------------------------------------------------------------------------------ */

int store_stack_long(struct store *s, uint64_t most, size_t max, struct arena *a,
                     struct workspace_list *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s,
	                                "WHERE state<>'gone' AND json_array_length(stack)>?1"
	                                " GROUP BY stack ORDER BY seq LIMIT ?2",
	                                e);
	struct row_list found;

	if (!st)
		return -1;
	db_bind_int(st, 1, (int64_t)most);
	db_bind_int(st, 2, (int64_t)max);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct workspace_list){ found.rows, found.n, NULL };
	return 0;
}

static int run_replace(struct store *s, struct request *q, struct err *e)
{
	static const char *const steps[] = {
		"UPDATE trees SET state='ready' WHERE num=?3 AND state IN('making','ready') AND "
		"?1<>?2",
		"UPDATE workspaces SET stack=?2 WHERE stack=?1 AND ?3>0",
		"UPDATE points SET stack=?2 WHERE stack=?1 AND ?3>0",
	};
	const struct stack_change *change = q->args;

	for (size_t i = 0; i < COUNT(steps); i++) {
		AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->writer, steps[i], e);

		if (!st)
			return -1;
		db_bind_text(st, 1, change->from);
		db_bind_text(st, 2, change->to);
		db_bind_int(st, 3, change->tree);
		if (db_step(&s->writer, st, e) < 0)
			return -1;
		if (i == 0 && sqlite3_changes(s->writer.c) == 0) {
			q->answer.code = STORE_CONFLICT;
			return err_new(e, ERR_INVALID, "tree %lld is not there",
			               (long long)change->tree);
		}
		q->answer.rows = sqlite3_changes(s->writer.c);
	}
	return 0;
}

int store_stack_replace(struct store *s, const struct stack_change *change, struct store_call call,
                        struct err *e)
{
	static const struct op op = { "exchange a stack", run_replace, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *change);
	struct stack_change *args = q->args;

	*args = *change;
	args->from = arena_strdup(&q->arena, change->from);
	args->to = arena_strdup(&q->arena, change->to);
	return request_send(s, &q, call, e);
}
