#include "store/sandboxes.h"

#include <assert.h>

#include "base/limits.h"
#include "store/store-internal.h"

/* ---- states ------------------------------------------------------------------------------ */

static const char *const state_names[] = {
	[SANDBOX_CREATING] = "creating", [SANDBOX_RUNNING] = "running",
	[SANDBOX_PAUSED] = "paused",     [SANDBOX_STOPPING] = "stopping",
	[SANDBOX_STOPPED] = "stopped",   [SANDBOX_REPLACING] = "replacing",
	[SANDBOX_DELETING] = "deleting", [SANDBOX_GONE] = "gone",
	[SANDBOX_FAILED] = "failed",     [SANDBOX_UNREACHABLE] = "unreachable",
};
_Static_assert(COUNT(state_names) == SANDBOX_STATE_COUNT, "a state has no name");

#define S(state) (1u << SANDBOX_##state)
/* clang-format off */
static const uint32_t may_become[] = {
	[SANDBOX_CREATING]    = S(RUNNING) | S(FAILED) | S(DELETING) | S(UNREACHABLE),
	[SANDBOX_RUNNING]     = S(PAUSED) | S(STOPPING) | S(STOPPED) | S(REPLACING) | S(DELETING) |
	                        S(FAILED) | S(UNREACHABLE),
	[SANDBOX_PAUSED]      = S(RUNNING) | S(STOPPING) | S(STOPPED) | S(REPLACING) | S(DELETING) |
	                        S(FAILED) | S(UNREACHABLE),
	[SANDBOX_STOPPING]    = S(STOPPED) | S(DELETING) | S(FAILED) | S(UNREACHABLE),
	[SANDBOX_STOPPED]     = S(CREATING) | S(REPLACING) | S(DELETING),
	[SANDBOX_REPLACING]   = S(RUNNING) | S(STOPPED) | S(DELETING) | S(FAILED) | S(UNREACHABLE),
	[SANDBOX_DELETING]    = S(GONE),
	[SANDBOX_GONE]        = 0,
	[SANDBOX_FAILED]      = S(CREATING) | S(REPLACING) | S(DELETING),
	[SANDBOX_UNREACHABLE] = S(RUNNING) | S(PAUSED) | S(STOPPING) | S(STOPPED) | S(DELETING) |
	                        S(FAILED),
};
/* clang-format on */
_Static_assert(COUNT(may_become) == SANDBOX_STATE_COUNT, "a state leads nowhere");

#define STATES_ALL ((1u << SANDBOX_STATE_COUNT) - 1)
#define STATES_LIVE (STATES_ALL & ~(S(STOPPED) | S(GONE) | S(FAILED)))

const char *sandbox_state_name(enum sandbox_state state)
{
	return state < SANDBOX_STATE_COUNT ? state_names[state] : "?";
}

bool sandbox_state_may(enum sandbox_state from, enum sandbox_state to)
{
	return from < SANDBOX_STATE_COUNT && to < SANDBOX_STATE_COUNT &&
	       may_become[from] & 1u << to;
}

bool sandbox_state_is_live(enum sandbox_state state)
{
	return state < SANDBOX_STATE_COUNT && STATES_LIVE & 1u << state;
}

static uint32_t may_come_from(enum sandbox_state to)
{
	uint32_t from = 0;

	for (unsigned int i = 0; i < SANDBOX_STATE_COUNT; i++)
		from |= sandbox_state_may((enum sandbox_state)i, to) ? 1u << i : 0;
	return from;
}

/* ---- the table --------------------------------------------------------------------------- */

/* clang-format off */
#define F(field, kind, max, bit) COL(sandbox_row, field, kind, max, bit)
static const struct column columns[] = {
	F(seq,            COL_SEQ,   0,              0),
	F(id,             COL_NEED,  STORE_ID_MAX,   0),
	F(tenant,         COL_NEED,  STORE_NAME_MAX, 0),
	F(node,           COL_NEED,  STORE_NAME_MAX, 0),
	F(key,            COL_TEXT,  STORE_NAME_MAX, 0),
	F(generation,     COL_INT,   0,              SANDBOX_SET_GENERATION),
	F(state,          COL_STATE, 0,              SANDBOX_SET_STATE),
	F(state_reason,   COL_TEXT,  STORE_TEXT_MAX, SANDBOX_SET_STATE),
	F(spec,           COL_NEED,  SPEC_BYTES_MAX, SANDBOX_SET_SPEC),
	F(labels,         COL_NEED,  STORE_TEXT_MAX, SANDBOX_SET_LABELS),
	F(enforced,       COL_TEXT,  STORE_TEXT_MAX, SANDBOX_SET_ENFORCED),
	F(backend,        COL_TEXT,  STORE_NAME_MAX, SANDBOX_SET_ENFORCED),
	F(boot_id,        COL_TEXT,  STORE_ID_MAX,   SANDBOX_SET_SLOT),
	F(socket,         COL_TEXT,  STORE_ID_MAX,   SANDBOX_SET_SLOT),
	F(slot,           COL_CODE,  0,              SANDBOX_SET_SLOT),
	F(created_ms,     COL_INT,   0,              0),
	F(started_ms,     COL_SOME,  0,              SANDBOX_SET_STARTED),
	F(ended_ms,       COL_SOME,  0,              SANDBOX_SET_ENDED),
	F(expires_ms,     COL_SOME,  0,              SANDBOX_SET_EXPIRES),
	F(idle_ms,        COL_SOME,  0,              SANDBOX_SET_IDLE),
	F(last_active_ms, COL_SOME,  0,              SANDBOX_SET_ACTIVE),
	F(mem_bytes,      COL_INT,   0,              SANDBOX_SET_SPEC),
	F(cpu_milli,      COL_INT,   0,              SANDBOX_SET_SPEC),
	F(pids,           COL_INT,   0,              SANDBOX_SET_SPEC),
	F(disk_bytes,     COL_INT,   0,              SANDBOX_SET_SPEC),
	F(workspace,      COL_TEXT,  STORE_ID_MAX,   0),
	F(image_tree,     COL_SOME,  0,              SANDBOX_SET_SLOT),
	F(life,           COL_SOME,  0,              0),
	F(door,           COL_TEXT,  STORE_ARGV_MAX, SANDBOX_SET_DOOR),
};
/* clang-format on */
static const struct table table = {
	.name = "sandboxes",
	.noun = "sandbox",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct sandbox_row),
	.states = state_names,
	.n_states = COUNT(state_names),
};
#define FIELDS_ALL ((SANDBOX_SET_DOOR << 1) - 1)

/* ---- labels ------------------------------------------------------------------------------ */

/* A value that is not a text becomes NULL, which the table refuses. */
#define LABELS_DROP "DELETE FROM sandbox_labels WHERE seq=(SELECT seq FROM sandboxes WHERE id=?1)"
#define LABELS_FILL                                                                                \
	"INSERT INTO sandbox_labels(tenant,key,value,seq)"                                         \
	" SELECT b.tenant,j.key,CASE WHEN j.type='text' THEN j.value END,b.seq"                    \
	" FROM sandboxes b,json_each(b.labels) j WHERE b.id=?1"

static int run_on_id(struct db *db, const char *sql, const char *id, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, sql, e);

	if (!st)
		return -1;
	db_bind_text(st, 1, id);
	return db_step(db, st, e);
}

/* ---- writes ------------------------------------------------------------------------------ */

struct sandbox_args {
	struct sandbox_row row;
	uint32_t fields;
};

static int run_insert(struct store *s, struct request *q, struct err *e)
{
	const struct sandbox_args *args = q->args;

	if (row_insert(&s->writer, &table, &args->row, e) < 0 ||
	    run_on_id(&s->writer, LABELS_FILL, args->row.id, e) < 0)
		return -1;
	q->answer.rows = 1;
	return 0;
}

int store_sandbox_insert(struct store *s, const struct sandbox_row *row, struct store_call call,
                         struct err *e)
{
	static const struct op op = { "insert a sandbox", run_insert, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct sandbox_args));
	struct sandbox_args *args = q->args;
	struct sandbox_row full = *row;

	if (row->state != SANDBOX_CREATING && row->state != SANDBOX_RUNNING)
		return err_new(e, ERR_INVALID, "a sandbox does not begin as %s",
		               sandbox_state_name(row->state));
	full.node = row->node ? row->node : s->node;
	full.labels = row->labels ? row->labels : "{}";
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, &args->row, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_update(struct store *s, struct request *q, struct err *e)
{
	const struct sandbox_args *args = q->args;
	const struct sandbox_row *row = &args->row;
	bool is_move = args->fields & SANDBOX_SET_STATE;
	char from[STATES_TEXT_MAX];

	row_states(&table, is_move ? may_come_from(row->state) : STATES_ALL & ~S(GONE), from);
	int n = row_update(&s->writer, &table, row, args->fields, from, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return refuse_state(s, q, &table, row->id,
		                    is_move ? sandbox_state_name(row->state) : NULL, e);
	q->answer.rows = n;
	if (!(args->fields & SANDBOX_SET_LABELS))
		return 0;
	if (run_on_id(&s->writer, LABELS_DROP, row->id, e) < 0)
		return -1;
	return run_on_id(&s->writer, LABELS_FILL, row->id, e);
}

int store_sandbox_update(struct store *s, const struct sandbox_row *row, uint32_t fields,
                         struct store_call call, struct err *e)
{
	static const struct op op = { "update a sandbox", run_update, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct sandbox_args));
	struct sandbox_args *args = q->args;
	bool is_end = fields & SANDBOX_SET_STATE && row->state == SANDBOX_GONE;

	if (!fields || fields & ~(uint32_t)FIELDS_ALL)
		return err_new(e, ERR_INVALID, "an update of a sandbox names what it changes");
	if (fields & SANDBOX_SET_STATE && row->state >= SANDBOX_STATE_COUNT)
		return err_new(e, ERR_INVALID, "no such state of a sandbox");
	if (is_end && (!(fields & SANDBOX_SET_ENDED) || row->ended_ms <= 0))
		return err_new(e, ERR_INVALID, "a sandbox is gone at some time: ended_ms");
	int n = row_copy(&table, fields, &q->arena, row, &args->row, e);

	if (n < 0)
		return -1;
	args->fields = fields;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

/* ---- reads ------------------------------------------------------------------------------- */

static int get_where(struct store *s, const char *where, const char *const values[2],
                     struct arena *a, struct sandbox_row *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	row_select(&table, &sql);
	str_add(&sql, where);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_text(st, 1, values[0]);
	db_bind_text(st, 2, values[1]);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_sandbox_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                      struct sandbox_row *out, struct err *e)
{
	return get_where(s, "WHERE tenant=?1 AND id=?2", (const char *[]){ tenant, id }, a, out, e);
}

int store_sandbox_by_key(struct store *s, const char *tenant, const char *key, struct arena *a,
                         struct sandbox_row *out, struct err *e)
{
	return get_where(s, "WHERE tenant=?1 AND key=?2 AND state<>'gone'",
	                 (const char *[]){ tenant, key }, a, out, e);
}

static int list_sql(const struct sandbox_query *query, struct str *sql, struct page_plan *plan,
                    struct err *e)
{
	if (query->n_labels > STORE_LABELS_MAX)
		return err_new(e, ERR_INVALID, "at most %d labels in one filter", STORE_LABELS_MAX);
	row_select(&table, sql);
	if (row_page_where(&query->page, sql, plan, e) < 0)
		return -1;
	/* Said in words, so that SQLite uses the index of those that are there. */
	str_add(sql, query->states & S(GONE) ? "" : " AND state<>'gone'");
	str_add(sql, query->states ? " AND instr(?4,'|'||state||'|')" : "");
	for (size_t i = 0; i < query->n_labels; i++) {
		str_addf(sql,
		         " AND seq IN(SELECT seq FROM sandbox_labels WHERE key=?%zu AND value=?%zu",
		         5 + 2 * i, 6 + 2 * i);
		str_add(sql, query->page.is_all_tenants ? ")" : " AND tenant=?2)");
	}
	row_page_order(plan, sql);
	assert(!sql->overflow);
	return 0;
}

int store_sandbox_list(struct store *s, const struct sandbox_query *query, struct arena *a,
                       struct sandbox_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	char states[STATES_TEXT_MAX];
	struct page_plan plan;
	struct row_list found;

	if (list_sql(query, &sql, &plan, e) < 0)
		return -1;
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	row_states(&table, query->states, states);
	if (query->states)
		db_bind_text(st, 4, states);
	for (size_t i = 0; i < query->n_labels; i++) {
		db_bind_text(st, (int)(5 + 2 * i), query->labels[i].key);
		db_bind_text(st, (int)(6 + 2 * i), query->labels[i].value);
	}
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_page(&from, &plan, a, &found, e) < 0)
		return -1;
	*out = (struct sandbox_list){ found.rows, found.n, found.next };
	return 0;
}
