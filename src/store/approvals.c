#include "store/approvals.h"

#include <assert.h>

#include "store/store-internal.h"

/* ---- names ------------------------------------------------------------------------------- */

static const char *const state_names[] = {
	[APPROVAL_PENDING] = "pending",     [APPROVAL_ALLOWED] = "allowed",
	[APPROVAL_DENIED] = "denied",       [APPROVAL_EXPIRED] = "expired",
	[APPROVAL_WITHDRAWN] = "withdrawn",
};
_Static_assert(COUNT(state_names) == APPROVAL_STATE_COUNT, "a state has no name");

static const char *const kind_names[] = {
	[APPROVAL_NET] = "net",         [APPROVAL_POLICY] = "policy", [APPROVAL_PUSH] = "push",
	[APPROVAL_PUBLISH] = "publish", [APPROVAL_APPLY] = "apply",   [APPROVAL_SECRET] = "secret",
	[APPROVAL_COMMAND] = "command", [APPROVAL_WALL] = "wall",
};
_Static_assert(COUNT(kind_names) == APPROVAL_KINDS, "a kind has no name");

static const char *const scope_names[] = {
	[FOR_ONCE] = "once",
	[FOR_SANDBOX] = "sandbox",
	[FOR_WORKSPACE] = "workspace",
};
_Static_assert(COUNT(scope_names) == APPROVAL_SCOPES, "a scope has no name");

static size_t find(const char *const *names, size_t n, const char *name)
{
	size_t i = 0;

	while (i < n && strcmp(names[i], name) != 0)
		i++;
	return i;
}

const char *approval_state_name(enum approval_state s)
{
	return s < APPROVAL_STATE_COUNT ? state_names[s] : "?";
}

const char *approval_kind_name(enum approval_kind k)
{
	return k < APPROVAL_KINDS ? kind_names[k] : "?";
}

const char *approval_scope_name(enum approval_scope s)
{
	return s < APPROVAL_SCOPES ? scope_names[s] : "?";
}

enum approval_state approval_state_of(const char *name)
{
	return (enum approval_state)find(state_names, COUNT(state_names), name);
}

enum approval_kind approval_kind_of(const char *name)
{
	return (enum approval_kind)find(kind_names, COUNT(kind_names), name);
}

enum approval_scope approval_scope_of(const char *name)
{
	return (enum approval_scope)find(scope_names, COUNT(scope_names), name);
}

/* ---- the table --------------------------------------------------------------------------- */

#define DECIDED 1u
#define APPLIED 2u
/* clang-format off */
#define F(field, kind, max, bit) COL(approval_row, field, kind, max, bit)
static const struct column columns[] = {
	F(seq,        COL_SEQ,   0,                0),
	F(rev,        COL_INT,   0,                DECIDED | APPLIED),
	F(id,         COL_NEED,  STORE_ID_MAX,     0),
	F(tenant,     COL_NEED,  STORE_NAME_MAX,   0),
	F(node,       COL_NEED,  STORE_NAME_MAX,   0),
	F(state,      COL_STATE, 0,                DECIDED),
	F(kind,       COL_NEED,  STORE_NAME_MAX,   0),
	F(sandbox,    COL_TEXT,  STORE_ID_MAX,     0),
	F(workspace,  COL_TEXT,  STORE_ID_MAX,     0),
	F(process,    COL_TEXT,  STORE_ID_MAX,     0),
	F(what,       COL_NEED,  STORE_TEXT_MAX,   0),
	F(why,        COL_TEXT,  STORE_TEXT_MAX,   0),
	F(suggestion, COL_TEXT,  STORE_TEXT_MAX,   0),
	F(detail,     COL_NEED,  STORE_DETAIL_MAX, 0),
	F(lasting,    COL_INT,   0,                0),
	F(created_ms, COL_INT,   0,                0),
	F(until_ms,   COL_INT,   0,                0),
	F(scope,      COL_TEXT,  STORE_NAME_MAX,   DECIDED),
	F(actor,      COL_TEXT,  STORE_NAME_MAX,   DECIDED),
	F(note,       COL_TEXT,  STORE_TEXT_MAX,   DECIDED),
	F(reason,     COL_TEXT,  STORE_TEXT_MAX,   DECIDED),
	F(decided_ms, COL_SOME,  0,                DECIDED),
	F(expires_ms, COL_SOME,  0,                DECIDED),
	F(applied_ms, COL_SOME,  0,                APPLIED),
};
/* clang-format on */
static const struct table table = {
	.name = "approvals",
	.noun = "approval",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct approval_row),
	.states = state_names,
	.n_states = COUNT(state_names),
};

/* ---- writes ------------------------------------------------------------------------------ */

#define LAST_REV "SELECT coalesce(max(rev),0) FROM approvals"

/* Not less than the clock, so that it grows also when the last rows were removed. */
static int next_rev(struct store *s, struct approval_row *row, int64_t now_ms, struct err *e)
{
	int64_t last = 0;

	if (db_number(&s->writer, LAST_REV, &last, e) < 0)
		return -1;
	row->rev = last >= now_ms ? last + 1 : now_ms;
	return 0;
}

static int run_insert(struct store *s, struct request *q, struct err *e)
{
	struct approval_row *row = q->args;

	if (next_rev(s, row, row->created_ms, e) < 0)
		return -1;
	q->answer.rows = 1;
	return row_insert(&s->writer, &table, q->args, e);
}

int store_approval_insert(struct store *s, const struct approval_row *row, struct store_call call,
                          struct err *e)
{
	static const struct op op = { "insert an approval", run_insert, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *row);
	struct approval_row full = *row;

	if (row->state != APPROVAL_PENDING)
		return err_new(e, ERR_INVALID, "an approval does not begin as %s",
		               approval_state_name(row->state));
	full.node = row->node ? row->node : s->node;
	full.detail = row->detail ? row->detail : "{}";
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_decide(struct store *s, struct request *q, struct err *e)
{
	struct approval_row *row = q->args;
	char from[STATES_TEXT_MAX];

	if (next_rev(s, row, row->decided_ms, e) < 0)
		return -1;
	row_states(&table, 1u << APPROVAL_PENDING, from);
	int n = row_update(&s->writer, &table, row, DECIDED, from, e);

	if (n < 0)
		return -1;
	q->answer.rows = n;
	return n > 0 ? 0 : refuse_state(s, q, &table, row->id, approval_state_name(row->state), e);
}

int store_approval_decide(struct store *s, const struct approval_row *row, struct store_call call,
                          struct err *e)
{
	static const struct op op = { "decide an approval", run_decide, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *row);

	if (row->state == APPROVAL_PENDING || row->state >= APPROVAL_STATE_COUNT ||
	    row->decided_ms <= 0)
		return err_new(e, ERR_INVALID, "a decision is one, at some time");
	int n = row_copy(&table, DECIDED, &q->arena, row, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_applied(struct store *s, struct request *q, struct err *e)
{
	struct approval_row *row = q->args;

	if (next_rev(s, row, row->applied_ms, e) < 0)
		return -1;
	int n = row_update(&s->writer, &table, row, APPLIED, NULL, e);

	q->answer.rows = n > 0 ? n : 0;
	return n < 0 ? -1 : 0;
}

int store_approval_applied(struct store *s, const char *id, int64_t now_ms, struct store_call call,
                           struct err *e)
{
	static const struct op op = { "note what an approval led to", run_applied,
		                      .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct approval_row));
	const struct approval_row row = { .id = id, .applied_ms = now_ms };
	int n = row_copy(&table, APPLIED, &q->arena, &row, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
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

int store_approval_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                       struct approval_row *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s, "WHERE id=?1 AND (?2 IS NULL OR tenant=?2)", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, id);
	db_bind_text(st, 2, tenant);
	return row_one(&s->reader, &table, st, a, out, e);
}

static int get_like(struct store *s, const char *where, const struct approval_row *like,
                    struct arena *a, struct approval_row *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, where, e);

	if (!st)
		return -1;
	db_bind_text(st, 1, like->tenant);
	db_bind_text(st, 2, like->kind);
	db_bind_text(st, 3, like->what);
	db_bind_text(st, 4, like->sandbox);
	db_bind_text(st, 5, like->workspace);
	db_bind_int(st, 6, like->decided_ms);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_approval_standing(struct store *s, const struct approval_row *like, struct arena *a,
                            struct approval_row *out, struct err *e)
{
	return get_like(
	    s,
	    "WHERE tenant=?1 AND kind=?2 AND what=?3 AND state IN('allowed','denied')"
	    " AND (scope='sandbox' AND sandbox=?4 OR scope='workspace' AND workspace=?5)"
	    " AND (expires_ms IS NULL OR expires_ms>?6)"
	    " ORDER BY decided_ms DESC, seq DESC LIMIT 1",
	    like, a, out, e);
}

int store_approval_last(struct store *s, const struct approval_row *like, struct arena *a,
                        struct approval_row *out, struct err *e)
{
	return get_like(s,
	                "WHERE tenant=?1 AND kind=?2 AND what=?3"
	                " AND (?4 IS NULL OR sandbox=?4) AND (?5 IS NULL OR workspace=?5)"
	                " AND created_ms<=?6 ORDER BY seq DESC LIMIT 1",
	                like, a, out, e);
}

int64_t store_approval_rev(struct store *s)
{
	struct err ignored = { 0 };
	int64_t last = 0;

	(void)!db_number(&s->reader, LAST_REV, &last, &ignored); /* then all of it comes */
	return last;
}

int store_approval_changes(struct store *s, const struct approval_query *q, struct arena *a,
                           struct approval_list *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(
	    s,
	    "WHERE rev>?1 AND (?2=0 OR rev<=?2) AND (?3 IS NULL OR tenant=?3)"
	    " AND (?4 IS NULL OR instr(?4,'|'||state||'|')) AND (?5 IS NULL OR sandbox=?5)"
	    " AND (?6 IS NULL OR workspace=?6) AND (?7 IS NULL OR kind=?7)"
	    " ORDER BY rev LIMIT ?8",
	    e);
	char states[STATES_TEXT_MAX];
	struct row_list found;

	if (!st)
		return -1;
	row_states(&table, q->states, states);
	db_bind_int(st, 1, q->after);
	db_bind_int(st, 2, q->upto);
	db_bind_text(st, 3, q->page.is_all_tenants ? NULL : q->page.tenant);
	db_bind_text(st, 4, q->states ? states : NULL);
	db_bind_text(st, 5, q->sandbox);
	db_bind_text(st, 6, q->workspace);
	db_bind_text(st, 7, q->kind);
	db_bind_int(st, 8, (int64_t)(q->page.limit ? q->page.limit : STORE_LIST_DEFAULT));
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct approval_list){ found.rows, found.n, NULL };
	return 0;
}

int store_approval_list(struct store *s, const struct approval_query *q, struct arena *a,
                        struct approval_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	char states[STATES_TEXT_MAX];
	struct page_plan plan;
	struct row_list found;

	row_select(&table, &sql);
	if (row_page_where(&q->page, &sql, &plan, e) < 0)
		return -1;
	str_add(&sql,
	        " AND (?4 IS NULL OR instr(?4,'|'||state||'|')) AND (?5 IS NULL OR sandbox=?5)"
	        " AND (?6 IS NULL OR workspace=?6) AND (?7 IS NULL OR kind=?7)");
	/* Said in words, so that SQLite uses the index of those that wait. */
	str_add(&sql, q->states == 1u << APPROVAL_PENDING ? " AND state='pending'" : "");
	str_add(&sql, q->is_unapplied_only ? " AND applied_ms IS NULL" : "");
	row_page_order(&plan, &sql);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	row_states(&table, q->states, states);
	db_bind_text(st, 4, q->states ? states : NULL);
	db_bind_text(st, 5, q->sandbox);
	db_bind_text(st, 6, q->workspace);
	db_bind_text(st, 7, q->kind);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_page(&from, &plan, a, &found, e) < 0)
		return -1;
	*out = (struct approval_list){ found.rows, found.n, found.next };
	return 0;
}
