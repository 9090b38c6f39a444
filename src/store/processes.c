#include "store/processes.h"

#include <assert.h>

#include "store/store-internal.h"

/* ---- states ------------------------------------------------------------------------------ */

/* clang-format off */
static const char *const state_names[] = {
	[PROCESS_QUEUED]            = "queued",
	[PROCESS_AWAITING_APPROVAL] = "awaiting_approval",
	[PROCESS_RUNNING]           = "running",
	[PROCESS_EXITED]            = "exited",
	[PROCESS_SIGNALED]          = "signaled",
	[PROCESS_TIMEOUT]           = "timeout",
	[PROCESS_OOM]               = "oom",
	[PROCESS_KILLED]            = "killed",
	[PROCESS_EXPIRED]           = "expired",
	[PROCESS_DENIED]            = "denied",
	[PROCESS_LOST]              = "lost",
};
_Static_assert(COUNT(state_names) == PROCESS_STATE_COUNT, "a state has no name");

#define S(state) (1u << PROCESS_##state)
#define NEVER_RAN (S(KILLED) | S(EXPIRED) | S(DENIED) | S(LOST))
static const uint32_t may_become[PROCESS_STATE_COUNT] = {
	[PROCESS_QUEUED]            = S(AWAITING_APPROVAL) | S(RUNNING) | NEVER_RAN,
	[PROCESS_AWAITING_APPROVAL] = S(QUEUED) | S(RUNNING) | NEVER_RAN,
	[PROCESS_RUNNING]           = S(EXITED) | S(SIGNALED) | S(TIMEOUT) | S(OOM) | S(KILLED) |
	                              S(EXPIRED) | S(DENIED) | S(LOST),
	/* The others are final. */
};
/* clang-format on */

#define STATES_OPEN (S(QUEUED) | S(AWAITING_APPROVAL) | S(RUNNING))
#define STATES_SWEPT (S(KILLED) | S(EXPIRED) | S(LOST))

const char *process_state_name(enum process_state state)
{
	return state < PROCESS_STATE_COUNT ? state_names[state] : "?";
}

bool process_state_may(enum process_state from, enum process_state to)
{
	return from < PROCESS_STATE_COUNT && to < PROCESS_STATE_COUNT &&
	       may_become[from] & 1u << to;
}

bool process_state_is_final(enum process_state state)
{
	return state < PROCESS_STATE_COUNT && !(STATES_OPEN & 1u << state);
}

static uint32_t may_come_from(enum process_state to)
{
	uint32_t from = 0;

	for (unsigned int i = 0; i < PROCESS_STATE_COUNT; i++)
		from |= process_state_may((enum process_state)i, to) ? 1u << i : 0;
	return from;
}

/* ---- the table --------------------------------------------------------------------------- */

enum { SET_MOVE = 1 << 0, SET_END = 1 << 1, SET_BOTH = SET_MOVE | SET_END };

/* clang-format off */
#define F(field, kind, max, bit) COL(process_row, field, kind, max, bit)
static const struct column columns[] = {
	F(seq,           COL_SEQ,   0,                 0),
	F(id,            COL_NEED,  STORE_ID_MAX,      0),
	F(tenant,        COL_NEED,  STORE_NAME_MAX,    0),
	F(node,          COL_NEED,  STORE_NAME_MAX,    0),
	F(sandbox,       COL_NEED,  STORE_ID_MAX,      0),
	F(generation,    COL_INT,   0,                 0),
	F(num,           COL_INT,   0,                 0),
	F(state,         COL_STATE, 0,                 SET_BOTH),
	F(argv,          COL_NEED,  STORE_ARGV_MAX,    0),
	F(cwd,           COL_TEXT,  STORE_TEXT_MAX,    SET_END),
	F(label,         COL_TEXT,  STORE_NAME_MAX,    0),
	F(shell,         COL_TEXT,  STORE_NAME_MAX,    0),
	F(at_end,        COL_SOME,  0,                 0),
	F(exit_code,     COL_CODE,  0,                 SET_END),
	F(signal,        COL_SOME,  0,                 SET_END),
	F(reason,        COL_TEXT,  STORE_TEXT_MAX,    SET_BOTH),
	F(created_ms,    COL_INT,   0,                 0),
	F(started_ms,    COL_SOME,  0,                 SET_MOVE),
	F(ended_ms,      COL_SOME,  0,                 SET_END),
	F(ms,            COL_INT,   0,                 SET_END),
	F(cpu_ms,        COL_INT,   0,                 SET_END),
	F(mem_peak,      COL_INT,   0,                 SET_END),
	F(io_bytes,      COL_INT,   0,                 SET_END),
	F(bytes_out,     COL_INT,   0,                 SET_END),
	F(bytes_err,     COL_INT,   0,                 SET_END),
	F(bytes_dropped, COL_INT,   0,                 SET_END),
	F(log_id,        COL_TEXT,  STORE_ID_MAX,      SET_MOVE),
	F(details,       COL_TEXT,  STORE_DETAILS_MAX, SET_END),
};
/* clang-format on */
static const struct table table = {
	.name = "processes",
	.noun = "process",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct process_row),
	.states = state_names,
	.n_states = COUNT(state_names),
};

/* ---- writes ------------------------------------------------------------------------------ */

struct process_args {
	struct process_row row;
	uint32_t fields;
};

/* What a row may not say. The exit code is there with exited and never else: rule 4. */
/* It ended by itself, perhaps after it was asked to. */
static bool may_have_code(enum process_state state)
{
	return state == PROCESS_EXITED || state == PROCESS_TIMEOUT || state == PROCESS_KILLED ||
	       state == PROCESS_EXPIRED;
}

static int check_row(const struct process_row *row, bool is_end, struct err *e)
{
	const char *state = process_state_name(row->state);

	if (row->state >= PROCESS_STATE_COUNT || process_state_is_final(row->state) != is_end)
		return err_new(e, ERR_INVALID, "%s is not a state that %s", state,
		               is_end ? "a process ends in" : "a process goes on in");
	if (is_end && row->ended_ms <= 0)
		return err_new(e, ERR_INVALID, "a process ends at some time: ended_ms");
	if (row->exit_code > 255 || (row->state == PROCESS_EXITED && row->exit_code < 0))
		return err_new(e, ERR_INVALID, "%lld is not an exit code",
		               (long long)row->exit_code);
	if (row->state == PROCESS_SIGNALED && row->signal <= 0)
		return err_new(e, ERR_INVALID, "signaled needs the signal");
	return 0;
}

/* Queues one of the three writes of a row. */
static int send_row(struct store *s, const struct op *op, const struct process_args *what,
                    struct store_call call, struct err *e)
{
	AUTO(request_drop) struct request *q = request_new(op, sizeof *what);
	struct process_args *args = q->args;
	struct process_row full = what->row;

	if (!may_have_code(full.state))
		full.exit_code = -1;
	full.node = full.node ? full.node : s->node;
	int n = row_copy(&table, what->fields, &q->arena, &full, &args->row, e);

	if (n < 0)
		return -1;
	args->fields = what->fields;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_insert(struct store *s, struct request *q, struct err *e)
{
	const struct process_args *args = q->args;

	q->answer.rows = 1;
	return row_insert(&s->writer, &table, &args->row, e);
}

int store_process_insert(struct store *s, const struct process_row *row, struct store_call call,
                         struct err *e)
{
	static const struct op op = { "insert a process", run_insert, .is_vital = false };
	struct process_args args = { .row = *row, .fields = ROW_ALL };

	if (check_row(row, false, e) < 0)
		return -1;
	args.row.ended_ms = 0;
	args.row.signal = 0;
	return send_row(s, &op, &args, call, e);
}

static int run_update(struct store *s, struct request *q, struct err *e)
{
	const struct process_args *args = q->args;
	char from[STATES_TEXT_MAX];

	row_states(&table, may_come_from(args->row.state), from);
	int n = row_update(&s->writer, &table, &args->row, args->fields, from, e);

	if (n < 0)
		return -1;
	if (n == 0)
		return refuse_state(s, q, &table, args->row.id, process_state_name(args->row.state),
		                    e);
	q->answer.rows = n;
	return 0;
}

int store_process_move(struct store *s, const struct process_row *row, struct store_call call,
                       struct err *e)
{
	static const struct op op = { "update a process", run_update, .is_vital = true };
	struct process_args args = { .row = *row, .fields = SET_MOVE };

	if (check_row(row, false, e) < 0)
		return -1;
	return send_row(s, &op, &args, call, e);
}

int store_process_finish(struct store *s, const struct process_row *row, struct store_call call,
                         struct err *e)
{
	static const struct op op = { "finish a process", run_update, .is_vital = true };
	struct process_args args = { .row = *row, .fields = SET_END };

	if (check_row(row, true, e) < 0)
		return -1;
	return send_row(s, &op, &args, call, e);
}

/* Every state that is swept into may come from every open one, so no state is asked for. */
static int run_sweep(struct store *s, struct request *q, struct err *e)
{
	const struct process_sweep *sweep = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->writer,
	                           "UPDATE processes INDEXED BY processes_open"
	                           " SET state=?1,reason=?2,ended_ms=?3"
	                           " WHERE sandbox=?4 AND generation<=?5 AND ended_ms IS NULL",
	                           e);

	if (!st)
		return -1;
	db_bind_text(st, 1, process_state_name(sweep->state));
	db_bind_text(st, 2, sweep->reason);
	db_bind_int(st, 3, sweep->ended_ms);
	db_bind_text(st, 4, sweep->sandbox);
	db_bind_int(st, 5, sweep->generation);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

int store_process_finish_all(struct store *s, const struct process_sweep *sweep,
                             struct store_call call, struct err *e)
{
	static const struct op op = { "finish processes", run_sweep, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *sweep);
	struct process_sweep *args = q->args;

	if (sweep->state >= PROCESS_STATE_COUNT || !(STATES_SWEPT & 1u << sweep->state))
		return err_new(e, ERR_INVALID, "processes do not end as %s together",
		               process_state_name(sweep->state));
	if (sweep->ended_ms <= 0)
		return err_new(e, ERR_INVALID, "a process ends at some time: ended_ms");
	if (strnlen(sweep->sandbox, STORE_ID_MAX + 1) > STORE_ID_MAX ||
	    (sweep->reason && strnlen(sweep->reason, STORE_TEXT_MAX + 1) > STORE_TEXT_MAX))
		return err_new(e, ERR_INVALID, "a text is longer than %d bytes", STORE_TEXT_MAX);
	*args = *sweep;
	args->sandbox = arena_strdup(&q->arena, sweep->sandbox);
	args->reason = sweep->reason ? arena_strdup(&q->arena, sweep->reason) : NULL;
	return request_send(s, &q, call, e);
}

/* ---- reads ------------------------------------------------------------------------------- */

int store_process_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                      struct process_row *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	row_select(&table, &sql);
	str_add(&sql, "WHERE tenant=?1 AND id=?2");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	db_bind_text(st, 2, id);
	return row_one(&s->reader, &table, st, a, out, e);
}

/* Numbers of the parameters that row_page() leaves to us. */
enum { AT_STATES = 4, AT_SANDBOX, AT_LABEL };

int store_process_list(struct store *s, const struct process_query *query, struct arena *a,
                       struct process_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	char states[STATES_TEXT_MAX];
	struct page_plan plan;
	struct row_list found;

	row_select(&table, &sql);
	if (row_page_where(&query->page, &sql, &plan, e) < 0)
		return -1;
	str_add(&sql, query->states ? " AND instr(?4,'|'||state||'|')" : "");
	str_add(&sql, query->sandbox ? " AND sandbox=?5" : "");
	str_add(&sql, query->label ? " AND label=?6" : "");
	row_page_order(&plan, &sql);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	row_states(&table, query->states, states);
	if (query->states)
		db_bind_text(st, AT_STATES, states);
	if (query->sandbox)
		db_bind_text(st, AT_SANDBOX, query->sandbox);
	if (query->label)
		db_bind_text(st, AT_LABEL, query->label);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_page(&from, &plan, a, &found, e) < 0)
		return -1;
	*out = (struct process_list){ found.rows, found.n, found.next };
	return 0;
}

int store_process_running_of(struct store *s, const char *sandbox, struct arena *a,
                             struct process_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	struct row_list found;

	row_select(&table, &sql);
	str_add(&sql, "INDEXED BY processes_open WHERE ended_ms IS NULL");
	str_add(&sql, sandbox ? " AND sandbox=?1 ORDER BY seq" : " ORDER BY seq");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	if (sandbox)
		db_bind_text(st, 1, sandbox);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct process_list){ .rows = found.rows, .n = found.n };
	return 0;
}

int store_process_ended(struct store *s, int64_t before_ms, struct arena *a,
                        struct process_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	struct row_list found;

	row_select(&table, &sql);
	str_add(&sql, "WHERE ended_ms<?1 ORDER BY ended_ms LIMIT ?2");
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_int(st, 1, before_ms);
	db_bind_int(st, 2, STORE_PURGE_ROWS);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct process_list){ .rows = found.rows, .n = found.n };
	return 0;
}

int store_process_at_end(struct store *s, const char *sandbox, int64_t generation, int64_t *at_end,
                         struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->reader,
	            "SELECT max(at_end) FROM processes WHERE sandbox=?1 AND generation=?2"
	            " AND ended_ms IS NOT NULL AND (at_end=?3 OR num=(SELECT max(num)"
	            " FROM processes WHERE sandbox=?1 AND generation=?2))",
	            e);

	if (!st)
		return -1;
	db_bind_text(st, 1, sandbox);
	db_bind_int(st, 2, generation);
	db_bind_int(st, 3, AT_END_DELETE);
	if (db_step(&s->reader, st, e) < 0)
		return -1;
	*at_end = sqlite3_column_int64(st, 0); /* of no rows: NULL, which is 0 */
	return 0;
}

int store_process_num_max(struct store *s, const char *sandbox, int64_t generation, int64_t *num,
                          struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(
	    &s->reader, "SELECT max(num) FROM processes WHERE sandbox=?1 AND generation=?2", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, sandbox);
	db_bind_int(st, 2, generation);
	if (db_step(&s->reader, st, e) < 0)
		return -1;
	*num = sqlite3_column_int64(st, 0); /* of no rows: NULL, which is 0 */
	return 0;
}
