#include "store/db-internal.h"

#include <assert.h>

#define BUSY_MS 5000 /* only another program, such as a backup, can make us wait */

static enum store_code code_of_constraint(int extended)
{
	switch (extended) {
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return STORE_EXISTS;
	default:
		return STORE_INVALID;
	}
}

enum store_code db_code(const struct db *db)
{
	switch (db->failed & 0xff) {
	case SQLITE_OK:
		return STORE_OK;
	case SQLITE_CONSTRAINT:
		return code_of_constraint(db->failed);
	case SQLITE_FULL:
		return STORE_FULL;
	default:
		return STORE_BROKEN;
	}
}

int db_fail(struct db *db, struct err *e)
{
	static const enum err_kind kinds[] = {
		[STORE_INVALID] = ERR_INVALID,
		[STORE_EXISTS] = ERR_INVALID,
		[STORE_FULL] = ERR_LIMIT,
		[STORE_BROKEN] = ERR_INTERNAL,
	};

	db->failed = sqlite3_extended_errcode(db->c);
	int sys = sqlite3_system_errno(db->c);

	err_new(e, kinds[db_code(db)], "%s%s%s", sqlite3_errmsg(db->c), sys ? ": " : "",
	        sys ? strerrordesc_np(sys) : "");
	e->sys = sys;
	return -1;
}

int db_open(struct db *db, const char *path, int flags, struct err *e)
{
	/* Each connection has one thread (NOMUTEX); a link in place of the file is refused. */
	int r = sqlite3_open_v2(
	    path, &db->c,
	    flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE, NULL);

	if (r != SQLITE_OK)
		return db_fail(db, e);
	sqlite3_busy_timeout(db->c, BUSY_MS);
	/* No statement of ours may write the file past the tables. */
	(void)sqlite3_db_config(db->c, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return db_script(db,
	                 "PRAGMA synchronous=NORMAL;"
	                 "PRAGMA wal_autocheckpoint=0;"
	                 "PRAGMA temp_store=MEMORY;"
	                 "PRAGMA cell_size_check=ON;",
	                 e);
}

void db_done(struct db *db)
{
	for (size_t i = 0; i < db->n_kept; i++) {
		sqlite3_finalize(db->kept[i].st);
		free(db->kept[i].sql);
	}
	int r = sqlite3_close(db->c);

	assert(r == SQLITE_OK); /* no statement is left over */
	(void)r;
	*db = (struct db){ 0 };
}

int db_script(struct db *db, const char *sql, struct err *e)
{
	if (sqlite3_exec(db->c, sql, NULL, NULL, NULL) != SQLITE_OK)
		return db_fail(db, e);
	return 0;
}

sqlite3_stmt *db_stmt(struct db *db, const char *sql, struct err *e)
{
	sqlite3_stmt *st = NULL;

	for (size_t i = 0; i < db->n_kept; i++)
		if (strcmp(db->kept[i].sql, sql) == 0)
			return db->kept[i].st;
	if (sqlite3_prepare_v3(db->c, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK) {
		db_fail(db, e);
		return NULL;
	}
	/* Full: the one that was made first goes. It is not in use: we hold a few at a time. */
	size_t at = db->n_made++ % DB_STATEMENTS_MAX;

	if (at < db->n_kept) {
		sqlite3_finalize(db->kept[at].st);
		free(db->kept[at].sql);
	} else {
		db->n_kept++;
	}
	db->kept[at].sql = mem_strdup(sql);
	db->kept[at].st = st;
	return st;
}

void db_release(sqlite3_stmt **st)
{
	if (!*st)
		return;
	(void)sqlite3_reset(*st); /* repeats the error of the last step, which was reported */
	(void)sqlite3_clear_bindings(*st);
	*st = NULL;
}

int db_step(struct db *db, sqlite3_stmt *st, struct err *e)
{
	switch (sqlite3_step(st)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return db_fail(db, e);
	}
}

int db_do(struct db *db, const char *sql, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, sql, e);

	return st ? db_step(db, st, e) : -1;
}

int db_number(struct db *db, const char *sql, int64_t *out, struct err *e)
{
	AUTO(db_release) sqlite3_stmt *st = db_stmt(db, sql, e);

	if (!st)
		return -1;
	int r = db_step(db, st, e);
	if (r < 0)
		return -1;
	if (r == 0)
		return err_new(e, ERR_INTERNAL, "no answer to %s", sql);
	*out = sqlite3_column_int64(st, 0);
	return 0;
}

/* Only a wrong number of a parameter, or an empty heap, can fail here. */
static void bound(int r)
{
	assert(r == SQLITE_OK);
	(void)r;
}

void db_bind_text(sqlite3_stmt *st, int at, const char *text)
{
	bound(sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC));
}

void db_bind_int(sqlite3_stmt *st, int at, int64_t value)
{
	bound(sqlite3_bind_int64(st, at, value));
}

void db_bind_blob(sqlite3_stmt *st, int at, const void *bytes, size_t n)
{
	bound(sqlite3_bind_blob64(st, at, n ? bytes : "", n, SQLITE_STATIC));
}
