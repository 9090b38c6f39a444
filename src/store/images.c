#include "store/images.h"

#include <assert.h>

#include "base/vec.h"
#include "store/store-internal.h"

/* clang-format off */
#define F(field, kind, max) COL(image_row, field, kind, max, 0)
static const struct column columns[] = {
	F(tenant,     COL_NEED, STORE_NAME_MAX),
	F(node,       COL_NEED, STORE_NAME_MAX),
	F(name,       COL_NEED, STORE_NAME_MAX),
	F(tree,       COL_INT,  0),
	F(source,     COL_NEED, STORE_NAME_MAX),
	F(digest,     COL_NEED, STORE_NAME_MAX),
	F(bytes,      COL_INT,  0),
	F(files,      COL_INT,  0),
	F(layers,     COL_INT,  0),
	F(dropped,    COL_INT,  0),
	F(settings,   COL_TEXT, STORE_SETTINGS_MAX),
	F(passwd,     COL_TEXT, STORE_PASSWD_MAX),
	F(created_ms, COL_INT,  0),
};
/* clang-format on */
static const struct table table = {
	.name = "images",
	.noun = "image",
	.unique = "tenant,name",
	.columns = columns,
	.n_columns = COUNT(columns),
	.row_bytes = sizeof(struct image_row),
};

/* ---- writes ------------------------------------------------------------------------------ */

struct image_args {
	struct image_row row;
	bool is_replace;
};

static int run_put(struct store *s, struct request *q, struct err *e)
{
	const struct image_args *args = q->args;

	q->answer.rows = 1;
	return args->is_replace ? row_put(&s->writer, &table, &args->row, e)
	                        : row_insert(&s->writer, &table, &args->row, e);
}

int store_image_put(struct store *s, const struct image_row *row, bool is_replace,
                    struct store_call call, struct err *e)
{
	static const struct op op = { "name an image", run_put, .is_vital = false };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct image_args));
	struct image_args *args = q->args;
	struct image_row full = *row;

	if (row->tree <= 0)
		return err_new(e, ERR_INVALID, "an image has a tree");
	full.node = row->node ? row->node : s->node;
	args->is_replace = is_replace;
	int n = row_copy(&table, ROW_ALL, &q->arena, &full, &args->row, e);

	if (n < 0)
		return -1;
	q->bytes += (size_t)n;
	return request_send(s, &q, call, e);
}

static int run_drop(struct store *s, struct request *q, struct err *e)
{
	const struct image_row *row = q->args;
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer, "DELETE FROM images WHERE tenant=?1 AND name=?2 AND tree=?3", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, row->tenant);
	db_bind_text(st, 2, row->name);
	db_bind_int(st, 3, row->tree);
	if (db_step(&s->writer, st, e) < 0)
		return -1;
	q->answer.rows = sqlite3_changes(s->writer.c);
	if (q->answer.rows)
		return 0;
	q->answer.code = STORE_NOT_FOUND;
	return err_new(e, ERR_NOT_FOUND, "no such image");
}

int store_image_drop(struct store *s, const char *tenant, const char *name, int64_t tree,
                     struct store_call call, struct err *e)
{
	static const struct op op = { "drop an image", run_drop, .is_vital = true };
	AUTO(request_drop) struct request *q = request_new(&op, sizeof(struct image_row));
	struct image_row *row = q->args;

	row->tenant = arena_strdup(&q->arena, tenant);
	row->name = arena_strdup(&q->arena, name);
	row->tree = tree;
	q->bytes += strlen(tenant) + strlen(name);
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

int store_image_get(struct store *s, const char *tenant, const char *name, struct arena *a,
                    struct image_row *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = select_where(s, "WHERE tenant=?1 AND name=?2", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	db_bind_text(st, 2, name);
	return row_one(&s->reader, &table, st, a, out, e);
}

int store_image_list(struct store *s, const char *tenant, struct arena *a, struct image_list *out,
                     struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = select_where(s, "WHERE tenant=?1 ORDER BY name", e);
	struct row_list found;

	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	struct row_source from = { .db = &s->reader, .table = &table, .st = st };

	if (row_all(&from, a, &found, e) < 0)
		return -1;
	*out = (struct image_list){ found.rows, found.n };
	return 0;
}

int store_image_loose(struct store *s, struct arena *a, struct number_list *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st = db_stmt(&s->reader,
	                           "SELECT num FROM trees WHERE kind='image' AND state='ready'"
	                           " AND num NOT IN(SELECT tree FROM images)"
	                           " AND num NOT IN(SELECT root_tree FROM workspaces"
	                           "  WHERE root_tree>0 AND state<>'gone')",
	                           e);
	VEC(int64_t) found = { 0 };
	int r = st ? 1 : -1;

	while (r > 0 && (r = db_step(&s->reader, st, e)) > 0)
		vec_push(&found, sqlite3_column_int64(st, 0));
	*out =
	    (struct number_list){ arena_alloc(a, (found.len + 1) * sizeof *found.at), found.len };
	if (found.len > 0)
		memcpy(out->at, found.at, found.len * sizeof *found.at);
	vec_done(&found);
	return r;
}

int store_image_bytes(struct store *s, const char *tenant, int64_t *out, struct err *e)
{
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->reader, "SELECT coalesce(sum(bytes),0) FROM images WHERE tenant=?1", e);

	if (!st)
		return -1;
	db_bind_text(st, 1, tenant);
	if (db_step(&s->reader, st, e) < 0)
		return -1;
	*out = sqlite3_column_int64(st, 0);
	return 0;
}
