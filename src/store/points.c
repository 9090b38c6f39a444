#include "store/points.h"

#include <assert.h>

#include "store/points-internal.h"

static const char *const kind_names[] = {
	[POINT_AUTO] = "auto",
	[POINT_SNAPSHOT] = "snapshot",
	[POINT_UNDO] = "undo",
};
_Static_assert(COUNT(kind_names) == POINT_KIND_COUNT, "a kind has no name");

const char *point_kind_name(enum point_kind kind)
{
	return kind < POINT_KIND_COUNT ? kind_names[kind] : "?";
}

/* clang-format off */
#define F(field, kind, max) COL(point_row, field, kind, max, 0)
static const struct column columns[] = {
	F(seq,        COL_SEQ,   0),
	F(id,         COL_NEED,  STORE_ID_MAX),
	F(tenant,     COL_NEED,  STORE_NAME_MAX),
	F(node,       COL_NEED,  STORE_NAME_MAX),
	F(workspace,  COL_NEED,  STORE_ID_MAX),
	F(num,        COL_INT,   0),
	F(before,     COL_INT,   0),
	F(stack,      COL_NEED,  POINT_STACK_MAX),
	F(kind,       COL_STATE, 0),
	F(label,      COL_TEXT,  STORE_NAME_MAX),
	F(process,    COL_TEXT,  STORE_ID_MAX),
	F(created_ms, COL_INT,   0),
	F(files,      COL_INT,   0),
	F(bytes,      COL_INT,   0),
	F(durable,    COL_INT,   0),
	F(boot_id,    COL_NEED,  STORE_ID_MAX),
	F(root,       COL_INT,   0),
};
/* clang-format on */
static const struct table table = {
	.name = "points",
	.noun = "point",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct point_row),
	.states = kind_names,
	.n_states = COUNT(kind_names),
};

/* ---- writes ------------------------------------------------------------------------------ */

int point_copy(struct store *s, struct arena *a, const struct point_row *from, struct point_row *to,
               struct err *e)
{
	struct point_row full = *from;

	if (from->num <= 0 || from->before < 0 || from->before == from->num || from->root < 0 ||
	    from->root == from->num || from->kind >= POINT_KIND_COUNT)
		return err_new(e, ERR_INVALID, "a point has a number and follows another");
	full.node = from->node ? from->node : s->node;
	return row_copy(&table, ROW_ALL, a, &full, to, e);
}

int point_insert(struct db *db, const struct point_row *row, struct err *e)
{
	return row_insert(db, &table, row, e);
}

struct point_args {
	int64_t num;
	const char *workspace;
};

static int run_change(struct store *s, struct request *q, const char *sql, struct err *e)
{
	const struct point_args *args = q->args;
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->writer, sql, e);

	if (!st)
		return -1;
	db_bind_int(st, 1, args->num);
	if (args->workspace)
		db_bind_text(st, 2, args->workspace);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	return 0;
}

static int run_durable(struct store *s, struct request *q, struct err *e)
{
	return run_change(
	    s, q, "UPDATE points SET durable=1 WHERE durable=0 AND num<=?1 AND workspace=?2", e);
}

int store_point_durable(struct store *s, const char *workspace, int64_t num, struct store_call call,
                        struct err *e)
{
	static const struct op op = { "points are on disk", run_durable, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct point_args));
	struct point_args *args = q->args;

	args->num = num;
	args->workspace = arena_strndup(&q->arena, workspace, strnlen(workspace, STORE_ID_MAX));
	return request_send(s, &q, call, e);
}

static int run_drop(struct store *s, struct request *q, struct err *e)
{
	return run_change(s, q, "DELETE FROM points WHERE num=?1", e);
}

int store_point_drop(struct store *s, int64_t num, struct store_call call, struct err *e)
{
	static const struct op op = { "drop a point", run_drop, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct point_args));

	((struct point_args *)q->args)->num = num;
	return request_send(s, &q, call, e);
}

/* What follows it follows the one before it: a history that led through it still does. */
static int run_cut(struct store *s, struct request *q, struct err *e)
{
	if (run_change(s, q,
	               "UPDATE points SET before=(SELECT p.before FROM points p WHERE p.num=?1"
	               " ORDER BY p.seq LIMIT 1) WHERE before=?1 AND EXISTS(SELECT 1 FROM points p"
	               " WHERE p.num=?1)",
	               e) < 0)
		return -1;
	return run_drop(s, q, e);
}

int store_point_cut(struct store *s, int64_t num, struct store_call call, struct err *e)
{
	static const struct op op = { "cut out a point", run_cut, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct point_args));

	((struct point_args *)q->args)->num = num;
	return request_send(s, &q, call, e);
}

/* ---- reads ------------------------------------------------------------------------------- */

static sqlite3_stmt *select_where(struct store *s, const char *with, const char *where,
                                  struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	str_add(&sql, with);
	row_select(&table, &sql);
	str_add(&sql, where);
	assert(!sql.overflow);
	return db_stmt(&s->reader, str_text(&sql), e);
}

static int all_of(struct store *s, sqlite3_stmt *st, struct arena *a, struct point_list *out,
                  struct err *e)
{
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };
	struct row_list found;

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct point_list){ found.rows, found.n, NULL };
	return 0;
}

static int get_by_text(struct store *s, const char *where, const char *const values[2],
                       struct arena *a, struct point_row *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, "", where, e);

	if (!st)
		return -1;
	db_bind_text(st, 1, values[0]);
	db_bind_text(st, 2, values[1]);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_point_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                    struct point_row *out, struct err *e)
{
	return get_by_text(s, "WHERE tenant=?1 AND id=?2", (const char *[]){ tenant, id }, a, out,
	                   e);
}

int store_point_by_process(struct store *s, const char *tenant, const char *process,
                           struct arena *a, struct point_row *out, struct err *e)
{
	return get_by_text(s, "WHERE tenant=?1 AND process=?2 ORDER BY seq DESC LIMIT 1",
	                   (const char *[]){ tenant, process }, a, out, e);
}

int store_point_by_num(struct store *s, int64_t num, struct arena *a, struct point_row *out,
                       struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s, "", "WHERE num=?1 ORDER BY seq LIMIT 1", e);

	if (!st)
		return -1;
	db_bind_int(st, 1, num);
	return row_one(&s->reader, &table, st, a, out, e);
}

/* Each number once: its first row. */
#define CHAIN                                                                                      \
	"WITH RECURSIVE chain(num,at) AS(SELECT ?1,0 UNION ALL SELECT"                             \
	" (SELECT p.before FROM points p WHERE p.num=chain.num ORDER BY p.seq LIMIT 1),at+1"       \
	" FROM chain WHERE chain.num>0 AND at<?2) "

int store_point_chain(struct store *s, int64_t num, size_t max, struct arena *a,
                      struct point_list *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st =
	    select_where(s, CHAIN,
	                 "WHERE seq IN(SELECT(SELECT p.seq FROM points p WHERE p.num=chain.num"
	                 " ORDER BY p.seq LIMIT 1) FROM chain) ORDER BY num DESC LIMIT ?2",
	                 e);

	if (!st)
		return -1;
	db_bind_int(st, 1, num);
	db_bind_int(st, 2, (int64_t)max);
	return all_of(s, st, a, out, e);
}

int store_point_list(struct store *s, const char *workspace, const struct store_page *page,
                     struct arena *a, struct point_list *out, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };
	struct page_plan plan;
	struct row_list found;

	row_select(&table, &sql);
	if (row_page_where(page, &sql, &plan, e) < 0)
		return -1;
	str_add(&sql, " AND workspace=?4");
	row_page_order(&plan, &sql);
	assert(!sql.overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return -1;
	db_bind_text(st, 4, workspace);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_page(&from, &plan, a, &found, e) < 0)
		return -1;
	*out = (struct point_list){ found.rows, found.n, found.next };
	return 0;
}

int store_point_after(struct store *s, int64_t seq, struct arena *a, struct point_list *out,
                      struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s, "", "WHERE seq>?1 ORDER BY seq LIMIT ?2", e);

	if (!st)
		return -1;
	db_bind_int(st, 1, seq);
	db_bind_int(st, 2, STORE_LIST_MAX);
	return all_of(s, st, a, out, e);
}

int store_point_volatile(struct store *s, const char *boot_id, struct arena *a,
                         struct point_list *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st =
	    select_where(s, "", "WHERE durable=0 AND boot_id<>?1 ORDER BY num DESC", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, boot_id);
	return all_of(s, st, a, out, e);
}

/* UNION, not UNION ALL: whoever was seen is not looked at again. */
#define NEEDED                                                                                     \
	"WITH RECURSIVE there(id,begins,origin,head,ahead) AS"                                     \
	"(SELECT id,begins,origin,head,ahead FROM workspaces WHERE state<>'gone'),"                \
	"needed(num) AS("                                                                          \
	"SELECT begins FROM there UNION SELECT origin FROM there UNION SELECT head FROM there"     \
	" UNION SELECT j.value FROM there,json_each(there.ahead) j"                                \
	" UNION SELECT num FROM points WHERE kind='snapshot' AND workspace IN(SELECT id FROM"      \
	" there)"                                                                                  \
	" UNION SELECT p.before FROM points p JOIN needed ON p.num=needed.num) "

int store_point_useless(struct store *s, size_t max, struct arena *a, struct point_list *out,
                        struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(
	    s, NEEDED, "WHERE num NOT IN(SELECT num FROM needed) ORDER BY num LIMIT ?1", e);

	if (!st)
		return -1;
	db_bind_int(st, 1, (int64_t)max);
	return all_of(s, st, a, out, e);
}
