/*
 * db-internal.h - one SQLite connection with its prepared statements. Each belongs to one thread.
 */
#pragma once

#include <sqlite3.h>

#include "store/store.h"

#define DB_STATEMENTS_MAX 96

struct db {
	sqlite3 *c;
	struct {
		char *sql;
		sqlite3_stmt *st;
	} kept[DB_STATEMENTS_MAX];
	size_t n_kept, n_made;
	int failed; /* SQLite's extended code of the last failure */
};

int db_open(struct db *db, const char *path, int flags, struct err *e);
void db_done(struct db *db);

/* Fills *e from the connection's last failure. Returns -1. */
int db_fail(struct db *db, struct err *e);
enum store_code db_code(const struct db *db); /* of that failure */

/* Several statements, their rows ignored. */
int db_script(struct db *db, const char *sql, struct err *e);

/* Prepared once, then kept; unbound and ready. Release it: an open one holds a read lock.
 *   AUTO(db_release) sqlite3_stmt *st = db_stmt(db, "SELECT ...", e);   NULL on failure */
sqlite3_stmt *db_stmt(struct db *db, const char *sql, struct err *e) MUST_USE;
void db_release(sqlite3_stmt **st);

int db_step(struct db *db, sqlite3_stmt *st, struct err *e); /* 1: a row, 0: done, -1 */
/* One statement without parameters and rows; for BEGIN and its like. */
int db_do(struct db *db, const char *sql, struct err *e);
/* The first column of the first row; fails when there is none. */
int db_number(struct db *db, const char *sql, int64_t *out, struct err *e);

/* The bytes must outlive the statement's use. NULL binds NULL. */
void db_bind_text(sqlite3_stmt *st, int at, const char *text);
void db_bind_int(sqlite3_stmt *st, int at, int64_t value);
void db_bind_blob(sqlite3_stmt *st, int at, const void *bytes, size_t n);
