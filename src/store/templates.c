#include "store/templates.h"

#include <assert.h>

#include "store/store-internal.h"

static const char *const build_states[] = {
	[BUILD_WAITING] = "waiting",
	[BUILD_BUILDING] = "building",
	[BUILD_READY] = "ready",
	[BUILD_ERROR] = "error",
};
_Static_assert(COUNT(build_states) == BUILD_STATE_COUNT, "a state has no name");

const char *build_state_name(enum build_state state)
{
	return build_states[state];
}

/* clang-format off */
#define T(field, kind, max) COL(template_row, field, kind, max, 0)
static const struct column template_columns[] = {
	T(seq,        COL_SEQ,  0),
	T(id,         COL_NEED, STORE_ID_MAX),
	T(tenant,     COL_NEED, STORE_NAME_MAX),
	T(node,       COL_NEED, STORE_NAME_MAX),
	T(name,       COL_NEED, STORE_NAME_MAX),
	T(created_ms, COL_INT,  0),
};
#define B(field, kind, max, bit) COL(build_row, field, kind, max, bit)
static const struct column build_columns[] = {
	B(seq,        COL_SEQ,   0,               0),
	B(id,         COL_NEED,  STORE_ID_MAX,    0),
	B(tenant,     COL_NEED,  STORE_NAME_MAX,  0),
	B(template,   COL_NEED,  STORE_ID_MAX,    0),
	B(node,       COL_NEED,  STORE_NAME_MAX,  0),
	B(state,      COL_STATE, 0,               BUILD_SET_STATE),
	B(reason,     COL_TEXT,  STORE_TEXT_MAX,  BUILD_SET_STATE),
	B(step,       COL_TEXT,  STORE_NAME_MAX,  BUILD_SET_STATE),
	B(tags,       COL_NEED,  STORE_TEXT_MAX,  0),
	B(context,    COL_TEXT,  STORE_BUILD_MAX, BUILD_SET_MADE),
	B(image,      COL_TEXT,  STORE_NAME_MAX,  BUILD_SET_MADE),
	B(workspace,  COL_TEXT,  STORE_ID_MAX,    BUILD_SET_MADE),
	B(created_ms, COL_INT,   0,               0),
	B(ended_ms,   COL_SOME,  0,               BUILD_SET_ENDED),
};
#define G(field, kind, max) COL(tag_row, field, kind, max, 0)
static const struct column tag_columns[] = {
	G(template,   COL_NEED, STORE_ID_MAX),
	G(tag,        COL_NEED, STORE_NAME_MAX),
	G(build,      COL_NEED, STORE_ID_MAX),
	G(created_ms, COL_INT,  0),
};
#define L(field, kind, max) COL(line_row, field, kind, max, 0)
static const struct column line_columns[] = {
	L(build, COL_NEED, STORE_ID_MAX),
	L(num,   COL_INT,  0),
	L(at_ms, COL_INT,  0),
	L(level, COL_NEED, STORE_NAME_MAX),
	L(text,  COL_TEXT, STORE_TEXT_MAX),
};
#define S(field, kind, max) COL(step_row, field, kind, max, 0)
static const struct column step_columns[] = {
	S(tenant,     COL_NEED, STORE_NAME_MAX),
	S(hash,       COL_NEED, STORE_ID_MAX),
	S(workspace,  COL_NEED, STORE_ID_MAX),
	S(created_ms, COL_INT,  0),
};
/* clang-format on */
#define TABLE(name_, noun_, unique_, columns_, row_)                                               \
	{                                                                                          \
		.name = (name_), .noun = (noun_), .unique = (unique_), .columns = (columns_),      \
		.n_columns = COUNT(columns_), .row_bytes = sizeof(struct row_)                     \
	}
static const struct table templates =
    TABLE("templates", "template", "id", template_columns, template_row);
static const struct table builds = {
	.name = "builds",
	.noun = "build",
	.columns = build_columns,
	.n_columns = COUNT(build_columns),
	.row_bytes = sizeof(struct build_row),
	.states = build_states,
	.n_states = COUNT(build_states),
};
static const struct table tags =
    TABLE("template_tags", "tag", "template,tag", tag_columns, tag_row);
static const struct table lines = TABLE("build_lines", "line", "build,num", line_columns, line_row);
static const struct table steps =
    TABLE("build_steps", "step", "tenant,hash", step_columns, step_row);

/* ---- writes ------------------------------------------------------------------------------ */

/* One row, as its op does with it. */
static int send_row(struct store *s, const struct op *op, const struct table *t, const void *row,
                    struct store_call call, struct err *e)
{
	AUTO(request_drop) struct request *q = request_new(op, t->row_bytes);
	int n = row_copy(t, ROW_ALL, &q->arena, row, q->args, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_template(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_insert(&s->writer, &templates, q->args, e);
}

int store_template_insert(struct store *s, const struct template_row *row, struct store_call call,
                          struct err *e)
{
	static const struct op op = { "name a template", run_template, .is_vital = false };
	struct template_row full = *row;

	full.node = row->node ? row->node : s->node;
	return send_row(s, &op, &templates, &full, call, e);
}

static int run_build(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_insert(&s->writer, &builds, q->args, e);
}

int store_build_insert(struct store *s, const struct build_row *row, struct store_call call,
                       struct err *e)
{
	static const struct op op = { "record a build", run_build, .is_vital = false };
	struct build_row full = *row;

	full.node = row->node ? row->node : s->node;
	return send_row(s, &op, &builds, &full, call, e);
}

struct build_args {
	struct build_row row;
	uint32_t fields;
};

/* Whoever hears that it is ready finds it by them, and nobody before. */
static int put_tags(struct store *s, const struct build_args *args, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer,
	            "INSERT OR REPLACE INTO template_tags(template,tag,build,created_ms)"
	            " SELECT b.template,t.value,b.id,?2 FROM builds b,json_each(b.tags) t"
	            " WHERE b.id=?1",
	            e);

	if (!st)
		return -1;
	db_bind_text(st, 1, args->row.id);
	db_bind_int(st, 2, args->row.ended_ms);
	return db_step(&s->writer, st, e) < 0 ? -1 : 0;
}

static int run_update(struct store *s, struct request *q, struct err *e)
{
	const struct build_args *args = q->args;
	int r = row_update(&s->writer, &builds, &args->row, args->fields, NULL, e);

	if (r < 0)
		return -1;
	q->answer.rows = r;
	if (r > 0 && args->fields & BUILD_SET_STATE && args->row.state == BUILD_READY)
		return put_tags(s, args, e);
	if (r > 0)
		return 0;
	q->answer.code = STORE_NOT_FOUND;
	return err_new(e, ERR_NOT_FOUND, "no such build");
}

int store_build_update(struct store *s, const struct build_row *row, uint32_t fields,
                       struct store_call call, struct err *e)
{
	static const struct op op = { "update a build", run_update, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct build_args));
	struct build_args *args = q->args;
	struct build_row full = *row;

	full.node = row->node ? row->node : s->node;
	args->fields = fields;
	int n = row_copy(&builds, fields, &q->arena, &full, &args->row, e);
	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

struct drop_args {
	const char *const *sql; /* each with ?1 and, if it has it, ?2; ends with NULL */
	const char *first, *second;
};

/* The last one says whether it was there. */
static int run_drop(struct store *s, struct request *q, struct err *e)
{
	const struct drop_args *args = q->args;

	for (size_t i = 0; args->sql[i]; i++) {
		AUTO(db_release) sqlite3_stmt *st = db_stmt(&s->writer, args->sql[i], e);

		if (!st)
			return -1;
		db_bind_text(st, 1, args->first);
		if (args->second)
			db_bind_text(st, 2, args->second);
		if (db_step(&s->writer, st, e) < 0)
			return -1;
		q->answer.rows = sqlite3_changes(s->writer.c);
	}
	if (q->answer.rows)
		return 0;
	q->answer.code = STORE_NOT_FOUND;
	return err_new(e, ERR_NOT_FOUND, "no such row");
}

static int send_drop(struct store *s, const struct drop_args *drop, struct store_call call,
                     struct err *e)
{
	static const struct op op = { "drop a template", run_drop, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof *drop);
	struct drop_args *args = q->args;

	*args = (struct drop_args){ drop->sql, arena_strdup(&q->arena, drop->first),
		                    drop->second ? arena_strdup(&q->arena, drop->second) : NULL };
	return request_send(s, &q, call, e);
}

int store_template_drop(struct store *s, const char *tenant, const char *id, struct store_call call,
                        struct err *e)
{
	static const char *const sql[] = {
		"DELETE FROM build_lines WHERE build IN(SELECT id FROM builds"
		" WHERE template=?1 AND tenant=?2)",
		"DELETE FROM template_tags WHERE template IN(SELECT id FROM templates"
		" WHERE id=?1 AND tenant=?2)",
		"DELETE FROM builds WHERE template=?1 AND tenant=?2",
		"DELETE FROM templates WHERE id=?1 AND tenant=?2",
		NULL,
	};

	return send_drop(s, &(struct drop_args){ sql, id, tenant }, call, e);
}

int store_build_drop(struct store *s, const char *id, struct store_call call, struct err *e)
{
	static const char *const sql[] = {
		"DELETE FROM build_lines WHERE build=?1",
		"DELETE FROM template_tags WHERE build=?1",
		"DELETE FROM builds WHERE id=?1",
		NULL,
	};

	return send_drop(s, &(struct drop_args){ sql, id, NULL }, call, e);
}

int store_tag_drop(struct store *s, const struct tag_row *row, struct store_call call,
                   struct err *e)
{
	static const char *const sql[] = {
		"DELETE FROM template_tags WHERE template=?1 AND tag=?2",
		NULL,
	};

	return send_drop(s, &(struct drop_args){ sql, row->template, row->tag }, call, e);
}

static int run_lines(struct store *s, struct request *q, struct err *e)
{
	const struct line_list *all = q->args;

	for (size_t i = 0; i < all->n; i++)
		if (row_put(&s->writer, &lines, &all->rows[i], e) < 0)
			return -1;
	q->answer.rows = (int64_t)all->n;
	return 0;
}

int store_build_say(struct store *s, const struct line_row *rows, size_t n, struct store_call call,
                    struct err *e)
{
	static const struct op op = { "log a build", run_lines, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct line_list));
	struct line_list *all = q->args;

	*all = (struct line_list){ arena_alloc(&q->arena, n * sizeof *rows), n };
	for (size_t i = 0; i < n; i++) {
		int bytes = row_copy(&lines, ROW_ALL, &q->arena, &rows[i], &all->rows[i], e);

		if (bytes < 0)
			return -1;
		q->bytes += (size_t)bytes;
	}
	return request_send(s, &q, call, e);
}

static int run_unlock(struct store *s, struct request *q, struct err *e)
{
	const char *const *reason = q->args;
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(
	    &s->writer, "UPDATE builds SET state='error',reason=?1 WHERE state='building'", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, *reason);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	AUTO(db_release)
	sqlite3_stmt *old = db_stmt(&s->writer,
	                            "DELETE FROM build_steps WHERE workspace NOT IN"
	                            "(SELECT id FROM workspaces WHERE state='ready')",
	                            e);

	return !old || db_step(&s->writer, old, e) < 0 ? -1 : 0;
}

int store_build_unlock(struct store *s, const char *reason, struct store_call call, struct err *e)
{
	static const struct op op = { "end builds", run_unlock, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(const char *));
	const char **args = q->args;

	*args = arena_strndup(&q->arena, reason, strnlen(reason, STORE_TEXT_MAX));
	return request_send(s, &q, call, e);
}

static int run_tag(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_put(&s->writer, &tags, q->args, e);
}

int store_tag_put(struct store *s, const struct tag_row *row, struct store_call call, struct err *e)
{
	static const struct op op = { "tag a build", run_tag, .is_vital = false };

	return send_row(s, &op, &tags, row, call, e);
}

static int run_step(struct store *s, struct request *q, struct err *e)
{
	q->answer.rows = 1;
	return row_put(&s->writer, &steps, q->args, e);
}

int store_step_put(struct store *s, const struct step_row *row, struct store_call call,
                   struct err *e)
{
	static const struct op op = { "keep a step", run_step, .is_vital = false };

	return send_row(s, &op, &steps, row, call, e);
}

/* ---- reads ------------------------------------------------------------------------------- */

struct where {
	const struct table *table;
	const char *sql;
	const char *first, *second;
};

static sqlite3_stmt *select_where(struct store *s, const struct where *w, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	row_select(w->table, &sql);
	str_add(&sql, w->sql);
	assert(!sql.overflow);
	sqlite3_stmt *st = db_stmt(&s->reader, str_text(&sql), e);
	if (!st)
		return NULL;
	db_bind_text(st, 1, w->first);
	if (w->second)
		db_bind_text(st, 2, w->second);
	return st;
}

static int get_where(struct store *s, const struct where *w, struct arena *a, void *out,
                     struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, w, e);

	return st ? row_one(&s->reader, w->table, st, a, out, e) : -1;
}

static int all_where(struct store *s, const struct where *w, struct arena *a, struct row_list *out,
                     struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, w, e);
	struct row_source from = { .db = &s->reader, .table = w->table, .st = st };

	return st ? row_all(&from, a, out, e) : -1;
}

int store_template_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                       struct template_row *out, struct err *e)
{
	const struct where w = { &templates, "WHERE tenant=?1 AND id=?2", tenant, id };

	return get_where(s, &w, a, out, e);
}

int store_template_by_name(struct store *s, const char *tenant, const char *name, struct arena *a,
                           struct template_row *out, struct err *e)
{
	const struct where w = { &templates, "WHERE tenant=?1 AND name=?2", tenant, name };

	return get_where(s, &w, a, out, e);
}

int store_template_list(struct store *s, const char *tenant, struct arena *a,
                        struct template_list *out, struct err *e)
{
	const struct where w = { &templates, "WHERE tenant=?1 ORDER BY seq", tenant, NULL };
	struct row_list found;

	if (all_where(s, &w, a, &found, e) < 0)
		return -1;
	*out = (struct template_list){ found.rows, found.n };
	return 0;
}

int store_build_get(struct store *s, const char *tenant, const char *id, struct arena *a,
                    struct build_row *out, struct err *e)
{
	const struct where w = { &builds, "WHERE tenant=?1 AND id=?2", tenant, id };

	return get_where(s, &w, a, out, e);
}

int store_build_by_tag(struct store *s, const char *template, const char *tag, struct arena *a,
                       struct build_row *out, struct err *e)
{
	const struct where w = { &builds,
		                 "WHERE id=(SELECT build FROM template_tags"
		                 " WHERE template=?1 AND tag=?2) AND state='ready'",
		                 template, tag };

	return get_where(s, &w, a, out, e);
}

static int builds_where(struct store *s, const struct where *w, struct arena *a,
                        struct build_list *out, struct err *e)
{
	struct row_list found;

	if (all_where(s, w, a, &found, e) < 0)
		return -1;
	*out = (struct build_list){ found.rows, found.n };
	return 0;
}

int store_build_list(struct store *s, const char *template, struct arena *a, struct build_list *out,
                     struct err *e)
{
	const struct where w = { &builds, "WHERE template=?1 ORDER BY seq DESC", template, NULL };

	return builds_where(s, &w, a, out, e);
}

int store_build_unfinished(struct store *s, struct arena *a, struct build_list *out, struct err *e)
{
	const struct where w = { &builds, "WHERE state=?1 ORDER BY seq", "building", NULL };

	return builds_where(s, &w, a, out, e);
}

int store_build_loose(struct store *s, const char *template, struct arena *a,
                      struct build_list *out, struct err *e)
{
	const struct where w = { &builds,
		                 "WHERE template=?1 AND state IN('ready','error')"
		                 " AND id NOT IN(SELECT build FROM template_tags)"
		                 " AND seq<(SELECT max(seq) FROM builds WHERE template=?1)",
		                 template, NULL };

	return builds_where(s, &w, a, out, e);
}

int store_build_lines(struct store *s, const struct line_query *q, struct arena *a,
                      struct line_list *out, struct err *e)
{
	const struct where w = { &lines, "WHERE build=?1 AND num>=?2 ORDER BY num LIMIT ?3",
		                 q->build, NULL };
	AUTO(db_release) sqlite3_stmt *st = select_where(s, &w, e);
	struct row_source from = { .db = &s->reader, .table = &lines, .st = st };
	struct row_list found;

	if (!st)
		return -1;
	db_bind_int(st, 2, q->from);
	db_bind_int(st, 3, (int64_t)q->n);
	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct line_list){ found.rows, found.n };
	return 0;
}

int store_tag_list(struct store *s, const char *template, struct arena *a, struct tag_list *out,
                   struct err *e)
{
	const struct where w = { &tags, "WHERE template=?1 ORDER BY created_ms,tag", template,
		                 NULL };
	struct row_list found;

	if (all_where(s, &w, a, &found, e) < 0)
		return -1;
	*out = (struct tag_list){ found.rows, found.n };
	return 0;
}

int store_step_get(struct store *s, const char *tenant, const char *hash, struct arena *a,
                   struct step_row *out, struct err *e)
{
	const struct where w = { &steps, "WHERE tenant=?1 AND hash=?2", tenant, hash };

	return get_where(s, &w, a, out, e);
}
