/*
 * row-internal.h - a table described once: its columns copy, check, insert, update and read rows.
 *
 * The fields of a row struct have the names of their columns. SQL is made from the names in these
 * descriptions only; values are always bound.
 */
#pragma once

#include "base/str.h"
#include "store/db-internal.h"

#define SQL_BYTES_MAX 4096 /* the longest that we make */

enum col_kind {
	COL_SEQ,   /* int64_t: the table's own key; read, never written */
	COL_TEXT,  /* const char *, or NULL */
	COL_NEED,  /* const char *, never NULL or empty */
	COL_INT,   /* int64_t */
	COL_SOME,  /* int64_t; 0 is NULL */
	COL_CODE,  /* int64_t; -1 is NULL */
	COL_STATE, /* an enum; its name is stored */
	COL_HASH,  /* uint8_t[STORE_HASH_BYTES] */
};

struct column {
	const char *name;
	enum col_kind kind;
	size_t at;
	uint32_t max; /* bytes of a text */
	uint32_t bit; /* of the field sets that updates are given; 0: never changes */
};
#define COL(row, field, kind_, max_, bit_)                                                         \
	{                                                                                          \
		.name = #field, .kind = (kind_), .at = offsetof(struct row, field), .max = (max_), \
		.bit = (bit_)                                                                      \
	}

struct table {
	const char *name, *noun;
	const char *unique; /* columns by which a put finds the row to replace */
	const struct column *columns;
	size_t n_columns, row_bytes;
	const char *const *states; /* names, by value */
	size_t n_states;
};

/* Copies the row; the texts of the columns in `fields`, and those without a bit, are checked and
 * copied into the arena. Returns how many bytes of text those are. */
int row_copy(const struct table *t, uint32_t fields, struct arena *a, const void *from, void *to,
             struct err *e);
#define ROW_ALL UINT32_MAX

int row_insert(struct db *db, const struct table *t, const void *row, struct err *e);
int row_put(struct db *db, const struct table *t, const void *row, struct err *e);
/* By id; with `states` only in one of these. Returns how many rows were changed, 0 or 1. */
int row_update(struct db *db, const struct table *t, const void *row, uint32_t fields,
               const char *states, struct err *e);

/* The state of the row with that id, as its name; "" when there is no such row. */
#define STATE_NAME_MAX 32
int row_state(struct db *db, const struct table *t, const char *id, char name[STATE_NAME_MAX],
              struct err *e);

/* "SELECT the columns FROM the table " */
void row_select(const struct table *t, struct str *sql);
/* The current row of a statement that began with row_select(). */
int row_read(const struct table *t, sqlite3_stmt *st, struct arena *a, void *out, struct err *e);
/* The only row of it; ERR_NOT_FOUND when there is none. */
int row_one(struct db *db, const struct table *t, sqlite3_stmt *st, struct arena *a, void *out,
            struct err *e);

/* All rows of a bound statement, in the arena; ends early at max rows, or at STORE_LIST_BYTES. */
struct row_source {
	struct db *db;
	const struct table *table;
	sqlite3_stmt *st;
	size_t max;      /* 0: all */
	bool is_bounded; /* STORE_LIST_BYTES counts */
};
struct row_list {
	void *rows;
	size_t n;
	bool has_more;
	const char *next; /* cursor, by row_page() */
};
int row_all(const struct row_source *from, struct arena *a, struct row_list *out, struct err *e);

/* A set of states as a text, "|running|paused|", for instr(?, '|'||state||'|'). */
#define STATES_TEXT_MAX 256
void row_states(const struct table *t, uint32_t states, char text[STATES_TEXT_MAX]);

/* One page: row_page_where() makes " WHERE seq<?1 AND tenant=?2"; the caller adds conditions of
 * its own, from ?4 on; row_page_order() adds the end, LIMIT ?3; then prepare, bind from ?4 on,
 * and row_page() binds the rest and reads. */
struct page_plan {
	const struct store_page *page;
	int64_t edge;
	size_t limit;
};
int row_page_where(const struct store_page *page, struct str *sql, struct page_plan *plan,
                   struct err *e);
void row_page_order(const struct page_plan *plan, struct str *sql);
int row_page(const struct row_source *from, const struct page_plan *plan, struct arena *a,
             struct row_list *out, struct err *e);
