#include "store/row-internal.h"

#include <assert.h>
#include <inttypes.h>

/* ---- the fields of a row, by description ------------------------------------------------ */

static const char *text_at(const void *row, const struct column *c)
{
	const char *text = NULL;

	memcpy(&text, (const char *)row + c->at, sizeof text);
	return text;
}

static int64_t int_at(const void *row, const struct column *c)
{
	int64_t value = 0;

	memcpy(&value, (const char *)row + c->at, sizeof value);
	return value;
}

static unsigned int state_at(const void *row, const struct column *c)
{
	unsigned int value = 0;

	memcpy(&value, (const char *)row + c->at, sizeof value);
	return value;
}

static void set_at(void *row, const struct column *c, const void *value, size_t n)
{
	memcpy((char *)row + c->at, value, n);
}

static bool is_written(const struct column *c, uint32_t fields)
{
	return c->kind != COL_SEQ && (fields == ROW_ALL || c->bit & fields);
}

static bool is_text(const struct column *c)
{
	return c->kind == COL_TEXT || c->kind == COL_NEED;
}

/* ---- copy -------------------------------------------------------------------------------- */

static int copy_text(const struct table *t, const struct column *c, struct arena *a,
                     const void *from, void *to, struct err *e)
{
	const char *text = text_at(from, c);

	if (!text && c->kind == COL_TEXT)
		return 0;
	if (!text || (!text[0] && c->kind == COL_NEED))
		return err_new(e, ERR_INVALID, "a %s needs its %s", t->noun, c->name);
	size_t n = strnlen(text, (size_t)c->max + 1);

	if (n > c->max)
		return err_new(e, ERR_INVALID, "%s of a %s is longer than %u bytes", c->name,
		               t->noun, c->max);
	const char *copy = arena_strndup(a, text, n);

	set_at(to, c, &copy, sizeof copy);
	return (int)n;
}

int row_copy(const struct table *t, uint32_t fields, struct arena *a, const void *from, void *to,
             struct err *e)
{
	int bytes = 0;

	memcpy(to, from, t->row_bytes);
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct column *c = &t->columns[i];

		if (!is_text(c))
			continue;
		if (!is_written(c, fields) && strcmp(c->name, "id") != 0) {
			const char *none = NULL;

			set_at(to, c, &none, sizeof none); /* the caller's will not live */
			continue;
		}
		int n = copy_text(t, c, a, from, to, e);
		if (n < 0)
			return -1;
		bytes += n;
	}
	return bytes;
}

/* ---- write ------------------------------------------------------------------------------- */

static void bind_column(const struct table *t, const struct column *c, sqlite3_stmt *st, int at,
                        const void *row)
{
	switch (c->kind) {
	case COL_TEXT:
	case COL_NEED:
		db_bind_text(st, at, text_at(row, c));
		return;
	case COL_SEQ:
	case COL_INT:
		db_bind_int(st, at, int_at(row, c));
		return;
	case COL_SOME:
	case COL_CODE:
		if (int_at(row, c) != (c->kind == COL_CODE ? -1 : 0))
			db_bind_int(st, at, int_at(row, c));
		return; /* what is not bound is NULL */
	case COL_STATE:
		assert(state_at(row, c) < t->n_states);
		db_bind_text(st, at, t->states[state_at(row, c)]);
		return;
	case COL_HASH:
		db_bind_blob(st, at, (const char *)row + c->at, STORE_HASH_BYTES);
		return;
	}
}

static int bind_row(const struct table *t, sqlite3_stmt *st, const void *row, uint32_t fields)
{
	int at = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		if (is_written(&t->columns[i], fields))
			bind_column(t, &t->columns[i], st, ++at, row);
	return at;
}

/* Every written column, in order, through a format with its name and number. */
static int add_columns(const struct table *t, uint32_t fields, const char *what, struct str *sql)
{
	int at = 0;

	for (size_t i = 0; i < t->n_columns; i++) {
		const char *name = t->columns[i].name;

		if (!is_written(&t->columns[i], fields))
			continue;
		at++;
		str_add(sql, at > 1 ? "," : "");
		if (strcmp(what, "name") == 0)
			str_add(sql, name);
		else if (strcmp(what, "number") == 0)
			str_addf(sql, "?%d", at);
		else if (strcmp(what, "assign") == 0)
			str_addf(sql, "%s=?%d", name, at);
		else
			str_addf(sql, "%s=excluded.%s", name, name);
	}
	return at;
}

static void insert_sql(const struct table *t, struct str *sql)
{
	str_addf(sql, "INSERT INTO %s(", t->name);
	add_columns(t, ROW_ALL, "name", sql);
	str_add(sql, ")VALUES(");
	add_columns(t, ROW_ALL, "number", sql);
	str_add(sql, ")");
}

static int run_row(struct db *db, const struct table *t, const struct str *sql, const void *row,
                   struct err *e)
{
	assert(!sql->overflow);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, str_text(sql), e);

	if (!st)
		return -1;
	bind_row(t, st, row, ROW_ALL);
	return db_step(db, st, e);
}

int row_insert(struct db *db, const struct table *t, const void *row, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	insert_sql(t, &sql);
	return run_row(db, t, &sql, row, e);
}

int row_put(struct db *db, const struct table *t, const void *row, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	insert_sql(t, &sql);
	str_addf(&sql, " ON CONFLICT(%s) DO UPDATE SET ", t->unique);
	add_columns(t, ROW_ALL, "excluded", &sql);
	return run_row(db, t, &sql, row, e);
}

static const struct column *column_named(const struct table *t, const char *name)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (strcmp(t->columns[i].name, name) == 0)
			return &t->columns[i];
	return NULL;
}

int row_update(struct db *db, const struct table *t, const void *row, uint32_t fields,
               const char *states, struct err *e)
{
	AUTO(str_done) struct str sql = { .max = SQL_BYTES_MAX };

	str_addf(&sql, "UPDATE %s SET ", t->name);
	int at = add_columns(t, fields, "assign", &sql);

	str_addf(&sql, " WHERE id=?%d", at + 1);
	if (states)
		str_addf(&sql, " AND instr(?%d,'|'||state||'|')", at + 2);
	assert(!sql.overflow && at > 0);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, str_text(&sql), e);
	if (!st)
		return -1;
	bind_row(t, st, row, fields);
	db_bind_text(st, at + 1, text_at(row, column_named(t, "id")));
	if (states)
		db_bind_text(st, at + 2, states);
	if (db_step(db, st, e) < 0)
		return -1;
	return sqlite3_changes(db->c);
}

int row_state(struct db *db, const struct table *t, const char *id, char name[STATE_NAME_MAX],
              struct err *e)
{
	char sql[128];

	snprintf(sql, sizeof sql, "SELECT state FROM %s WHERE id=?1", t->name);
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, sql, e);
	if (!st)
		return -1;
	db_bind_text(st, 1, id);
	int r = db_step(db, st, e);

	if (r < 0)
		return -1;
	snprintf(name, STATE_NAME_MAX, "%s", r ? (const char *)sqlite3_column_text(st, 0) : "");
	return 0;
}

/* ---- read -------------------------------------------------------------------------------- */

void row_select(const struct table *t, struct str *sql)
{
	str_add(sql, "SELECT ");
	for (size_t i = 0; i < t->n_columns; i++)
		str_addf(sql, "%s%s", i ? "," : "", t->columns[i].name);
	str_addf(sql, " FROM %s ", t->name);
}

static int read_state(const struct table *t, const char *name, unsigned int *state, struct err *e)
{
	for (unsigned int i = 0; name && i < t->n_states; i++)
		if (strcmp(t->states[i], name) == 0) {
			*state = i;
			return 0;
		}
	return err_new(e, ERR_INTERNAL, "a %s has the unknown state %s", t->noun,
	               name ? name : "NULL");
}

static int read_column(const struct table *t, const struct column *c, sqlite3_stmt *st,
                       struct arena *a, void *out, struct err *e)
{
	int at = (int)(c - t->columns);
	const char *text = NULL;
	int64_t value = 0;
	unsigned int state = 0;

	switch (c->kind) {
	case COL_TEXT:
	case COL_NEED:
		text = (const char *)sqlite3_column_text(st, at);
		text = text ? arena_strndup(a, text, (size_t)sqlite3_column_bytes(st, at)) : NULL;
		set_at(out, c, &text, sizeof text);
		return 0;
	case COL_SEQ:
	case COL_INT:
	case COL_SOME:
	case COL_CODE:
		value = sqlite3_column_int64(st, at); /* NULL is 0 */
		if (c->kind == COL_CODE && sqlite3_column_type(st, at) == SQLITE_NULL)
			value = -1;
		set_at(out, c, &value, sizeof value);
		return 0;
	case COL_STATE:
		if (read_state(t, (const char *)sqlite3_column_text(st, at), &state, e) < 0)
			return -1;
		set_at(out, c, &state, sizeof state);
		return 0;
	case COL_HASH:
		if (sqlite3_column_bytes(st, at) != STORE_HASH_BYTES)
			return err_new(e, ERR_INTERNAL, "%s of a %s is not a hash", c->name,
			               t->noun);
		set_at(out, c, sqlite3_column_blob(st, at), STORE_HASH_BYTES);
		return 0;
	}
	return 0;
}

int row_read(const struct table *t, sqlite3_stmt *st, struct arena *a, void *out, struct err *e)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (read_column(t, &t->columns[i], st, a, out, e) < 0)
			return -1;
	return 0;
}

int row_one(struct db *db, const struct table *t, sqlite3_stmt *st, struct arena *a, void *out,
            struct err *e)
{
	int r = db_step(db, st, e);

	if (r < 0)
		return -1;
	if (r == 0)
		return err_new(e, ERR_NOT_FOUND, "no such %s", t->noun);
	AUTO(freep) void *row = mem_alloc(t->row_bytes);
	if (row_read(t, st, a, row, e) < 0)
		return -1;
	memcpy(out, row, t->row_bytes);
	return 0;
}

static size_t row_text_bytes(const struct table *t, sqlite3_stmt *st)
{
	size_t bytes = t->row_bytes;

	for (size_t i = 0; i < t->n_columns; i++)
		bytes += is_text(&t->columns[i]) ? (size_t)sqlite3_column_bytes(st, (int)i) : 0;
	return bytes;
}

int row_all(const struct row_source *from, struct arena *a, struct row_list *out, struct err *e)
{
	const struct table *t = from->table;
	AUTO(freep) char *rows = NULL;
	size_t n = 0, cap = 0, bytes = 0;
	int r = 0;

	while ((r = db_step(from->db, from->st, e)) > 0) {
		bool is_full = from->is_bounded && n > 0 && bytes > STORE_LIST_BYTES;

		if (is_full || (from->max && n == from->max))
			break;
		if (n == cap) {
			cap = cap ? cap * 2 : 16;
			rows = mem_grow(rows, cap * t->row_bytes);
		}
		bytes += row_text_bytes(t, from->st);
		if (row_read(t, from->st, a, rows + n * t->row_bytes, e) < 0)
			return -1;
		n++;
	}
	if (r < 0)
		return -1;
	*out = (struct row_list){ .n = n, .has_more = r > 0 };
	out->rows = arena_alloc(a, n * t->row_bytes);
	if (n > 0)
		memcpy(out->rows, rows, n * t->row_bytes);
	return 0;
}

void row_states(const struct table *t, uint32_t states, char text[STATES_TEXT_MAX])
{
	size_t n = 1;

	snprintf(text, STATES_TEXT_MAX, "|");
	for (size_t i = 0; i < t->n_states; i++)
		if (states & 1u << i)
			n += (size_t)snprintf(text + n, STATES_TEXT_MAX - n, "%s|", t->states[i]);
	assert(n < STATES_TEXT_MAX);
}

/* ---- pages ------------------------------------------------------------------------------- */

/* A cursor is its direction and the seq of the last row: nothing in it needs to be secret, the
 * tenant is asked again each time. */
static int read_cursor(const struct store_page *page, int64_t *edge, struct err *e)
{
	char way = page->is_oldest_first ? 'o' : 'n';
	const char *digits = page->cursor + 1;
	size_t n = page->cursor[0] == way ? strspn(digits, "0123456789abcdef") : 0;

	if (n == 0 || n > 15 || digits[n])
		return err_new(e, ERR_INVALID, "the cursor is not one of this list");
	*edge = (int64_t)strtoull(digits, NULL, 16);
	return 0;
}

int row_page_where(const struct store_page *page, struct str *sql, struct page_plan *plan,
                   struct err *e)
{
	*plan = (struct page_plan){ .page = page,
		                    .limit = page->limit ? page->limit : STORE_LIST_DEFAULT,
		                    .edge = page->is_oldest_first ? 0 : INT64_MAX };
	if (!page->tenant == !page->is_all_tenants)
		return err_new(e, ERR_INVALID, "a list is of one tenant, or of all");
	if (plan->limit > STORE_LIST_MAX)
		return err_new(e, ERR_INVALID, "limit is at most %d", STORE_LIST_MAX);
	if (page->cursor && read_cursor(page, &plan->edge, e) < 0)
		return -1;
	str_addf(sql, "WHERE seq%s?1", page->is_oldest_first ? ">" : "<");
	if (!page->is_all_tenants)
		str_add(sql, " AND tenant=?2");
	return 0;
}

void row_page_order(const struct page_plan *plan, struct str *sql)
{
	str_addf(sql, " ORDER BY seq %s LIMIT ?3", plan->page->is_oldest_first ? "ASC" : "DESC");
}

int row_page(const struct row_source *from, const struct page_plan *plan, struct arena *a,
             struct row_list *out, struct err *e)
{
	struct row_source page = *from;
	const struct column *seq = column_named(from->table, "seq");

	page.max = plan->limit;
	page.is_bounded = true;
	db_bind_int(from->st, 1, plan->edge);
	if (!plan->page->is_all_tenants)
		db_bind_text(from->st, 2, plan->page->tenant);
	db_bind_int(from->st, 3, (int64_t)plan->limit + 1); /* one more tells whether more come */
	if (row_all(&page, a, out, e) < 0)
		return -1;
	if (!out->has_more)
		return 0;
	const char *last = (const char *)out->rows + (out->n - 1) * from->table->row_bytes;
	char cursor[24];

	snprintf(cursor, sizeof cursor, "%c%" PRIx64, plan->page->is_oldest_first ? 'o' : 'n',
	         (uint64_t)int_at(last, seq));
	out->next = arena_strdup(a, cursor);
	return 0;
}
