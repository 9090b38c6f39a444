#include "store/processes.h"
#include "store/store-internal.h"
#include "unit/store_fixture.h"

/* Bytes of the header of a database file (sqlite.org/fileformat.html, "The Database Header"). */
enum { AT_VERSION = 60, AT_APPLICATION = 68 };
enum { LAST_VERSION = 13 }; /* as many as there are steps */

static void poke(const char *name, off_t at, const void *bytes, size_t n)
{
	AUTO(fd_close) int fd = open(file_in_dir(name), O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(pwrite(fd, bytes, n, at), (long long)n);
}

static void poke_number(off_t at, uint32_t number)
{
	uint8_t bytes[] = { (uint8_t)(number >> 24), (uint8_t)(number >> 16),
		            (uint8_t)(number >> 8), (uint8_t)number };

	poke("caisson.db", at, bytes, sizeof bytes);
}

static off_t size_of(const char *name)
{
	struct stat st;

	return stat(file_in_dir(name), &st) < 0 ? -1 : st.st_size;
}

static char content[1 << 20];

static size_t slurp(const char *name)
{
	AUTO(fd_close) int fd = open(file_in_dir(name), O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, content, sizeof content);

	CHECK(n >= 0);
	return (size_t)n;
}

/* Refused, and not a byte of the database is different afterwards. */
static void must_refuse_untouched(const char *part)
{
	static char before[sizeof content];
	size_t n = slurp("caisson.db");

	memcpy(before, content, n);
	must_refuse(part);
	must_refuse(part); /* nor does the refusal heal itself */
	CHECK_INT(slurp("caisson.db"), n);
	CHECK(memcmp(before, content, n) == 0);
}

static void fill(int rows)
{
	struct err e = { 0 };
	struct store *s = must_open();

	for (int i = 0; i < rows; i++) {
		char id[32];

		snprintf(id, sizeof id, "px_%d", i);
		struct process_row row = {
			.id = id, .tenant = "t1", .sandbox = "sb_1", .num = i, .argv = "[]"
		};

		CHECK_INT(store_process_insert(s, &row, HEAR, &e), 0);
	}
	settle(s);
	CHECK_INT(heard.code, STORE_OK);
	store_close(s);
}

static size_t n_rows(void)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct process_list list;
	struct store *s = must_open();

	CHECK_INT(store_process_running_of(s, "sb_1", &a, &list, &e), 0);
	arena_done(&a);
	store_close(s);
	return list.n;
}

/* ---- steps ------------------------------------------------------------------------------- */

static void open_db(struct db *db)
{
	struct err e = { 0 };

	if (db_open(db, file_in_dir("x.db"), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &e) < 0)
		CHECK_STR(e.msg, "");
}

static int64_t number_of(struct db *db, const char *sql)
{
	struct err e = { 0 };
	int64_t n = -1;

	if (db_number(db, sql, &n, &e) < 0)
		CHECK_STR(e.msg, "");
	return n;
}

static const struct schema_step three[] = {
	{ "a", "CREATE TABLE a(x INTEGER) STRICT; INSERT INTO a VALUES(1)" },
	{ "b", "ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 5; INSERT INTO a VALUES(2,6)" },
	{ "c", "CREATE TABLE c(z); INSERT INTO c SELECT y FROM a" },
};
static const struct schema_step broken[] = {
	{ "a", "CREATE TABLE a(x INTEGER) STRICT; INSERT INTO a VALUES(1)" },
	{ "b", "CREATE TABLE b(x); INSERT INTO nowhere VALUES(1)" },
};

TEST(every_version_leads_to_the_last)
{
	struct err e = { 0 };

	for (size_t from = 0; from <= COUNT(three); from++) {
		struct db db = { 0 };

		dir_make();
		open_db(&db);
		CHECK_INT(schema_apply(&db, three, from, &e), 0);
		CHECK_INT(number_of(&db, "PRAGMA user_version"), (long long)from);
		for (int i = 0; i < 2; i++) { /* the second time there is nothing to do */
			CHECK_INT(schema_apply(&db, three, COUNT(three), &e), 0);
			CHECK_INT(number_of(&db, "PRAGMA user_version"), 3);
			CHECK_INT(number_of(&db, "SELECT sum(z) FROM c"), 11);
		}
		CHECK_INT(schema_apply(&db, three, 2, &e), -1); /* and never back */
		CHECK(strstr(e.msg, "version 3, this program knows up to 2"));
		db_done(&db);
		unlink(file_in_dir("x.db"));
		dir_remove();
	}
}

TEST(a_step_that_fails_leaves_the_old_version)
{
	struct err e = { 0 };
	struct db db = { 0 };

	dir_make();
	open_db(&db);
	CHECK_INT(schema_apply(&db, broken, COUNT(broken), &e), -1);
	CHECK(strstr(e.msg, "step 2, b"));
	CHECK_INT(number_of(&db, "PRAGMA user_version"), 0);
	CHECK_INT(number_of(&db, "SELECT count(*) FROM sqlite_schema"), 0);
	CHECK_INT(schema_apply(&db, broken, 1, &e), 0);
	CHECK_INT(schema_apply(&db, broken, COUNT(broken), &e), -1);
	CHECK_INT(number_of(&db, "PRAGMA user_version"), 1);
	CHECK_INT(number_of(&db, "SELECT count(*) FROM sqlite_schema"), 1);
	db_done(&db);
	unlink(file_in_dir("x.db"));
	dir_remove();
}

/* ---- databases that are not opened ------------------------------------------------------- */

TEST(a_newer_database_is_left_alone)
{
	dir_make();
	fill(10);
	poke_number(AT_VERSION, 4711);
	must_refuse_untouched("version 4711, this program knows up to");
	poke_number(AT_VERSION, LAST_VERSION);
	CHECK_INT(n_rows(), 10);
	dir_remove();
}

TEST(the_database_of_another_program_is_left_alone)
{
	dir_make();
	fill(10);
	poke_number(AT_APPLICATION, 12345);
	must_refuse_untouched("another program");
	dir_remove();
}

TEST(damage_is_found)
{
	static const char junk[4096] = "this is not what it was";
	static const struct {
		const char *part;
		off_t at;
		size_t n;
	} rows[] = {
		{ "file is not a database", 0, sizeof junk }, /* the header */
		{ "malformed", 100, 64 },                     /* the schema's page */
		{ "damaged", -4096, sizeof junk },            /* the last page */
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		dir_make();
		fill(500);
		off_t at = rows[i].at < 0 ? size_of("caisson.db") + rows[i].at : rows[i].at;

		poke("caisson.db", at, junk, rows[i].n);
		must_refuse_untouched(rows[i].part);
		dir_remove();
	}
}

TEST(a_shortened_database_is_found)
{
	dir_make();
	fill(500);
	CHECK_INT(truncate(file_in_dir("caisson.db"), size_of("caisson.db") - 12288), 0);
	must_refuse_untouched("malformed");
	dir_remove();
}

TEST(an_emptied_or_absent_database_is_not_made_anew)
{
	dir_make();
	fill(3);
	CHECK_INT(truncate(file_in_dir("caisson.db"), 0), 0);
	must_refuse_untouched("has been emptied");
	CHECK_INT(size_of("caisson.db"), 0);
	CHECK_INT(unlink(file_in_dir("caisson.db")), 0);
	must_refuse("is missing");
	CHECK_INT(size_of("caisson.db"), -1);
	CHECK_INT(unlink(file_in_dir("caisson.lock")), 0); /* as the sentence says */
	CHECK_INT(n_rows(), 0);
	dir_remove();
}

TEST(an_empty_file_that_never_was_one_is_taken)
{
	dir_make();
	AUTO(fd_close)
	int fd = open(file_in_dir("caisson.db"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(n_rows(), 0);
	dir_remove();
}

static void fill_and_die(int rows)
{
	pid_t child = fork();

	if (child == 0) {
		struct err e = { 0 };
		struct store *s = must_open();

		for (int i = 0; i < rows; i++) {
			char id[32];

			snprintf(id, sizeof id, "px_%d", i);
			struct process_row row = {
				.id = id, .tenant = "t1", .sandbox = "sb_1", .num = i, .argv = "[]"
			};

			CHECK_INT(store_process_insert(s, &row, HEAR, &e), 0);
		}
		settle(s);
		kill(getpid(), SIGKILL);
	}
	CHECK_INT(waitpid(child, NULL, 0), child);
}

TEST(a_log_removed_after_a_crash_is_noticed)
{
	char moved[sizeof dir + 8];

	dir_make();
	snprintf(moved, sizeof moved, "%s.wal", dir);
	fill_and_die(10);
	CHECK_INT(rename(file_in_dir("caisson.db-wal"), moved), 0);
	must_refuse_untouched("caisson.db-wal, with its last records, is missing");
	CHECK_INT(rename(moved, file_in_dir("caisson.db-wal")), 0);
	struct store *s = must_open();

	CHECK(!store_was_clean(s));
	store_close(s);
	CHECK_INT(n_rows(), 10);
	CHECK_INT(unlink(file_in_dir("caisson.db-wal")), 0); /* after a good end it holds nothing */
	CHECK_INT(n_rows(), 10);
	dir_remove();
}

TEST(a_torn_log_loses_its_end_and_nothing_else)
{
	dir_make();
	fill(5);
	fill_and_die(0);
	fill(0);
	CHECK_INT(n_rows(), 5);
	fill_and_die(0); /* leaves a log */
	AUTO(fd_close)
	int fd = open(file_in_dir("caisson.db-wal"), O_WRONLY | O_APPEND | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, content, 5000), 5000);
	CHECK_INT(n_rows(), 5);
	dir_remove();
}

static void become_nobody(void)
{
	if (geteuid() == 0)
		CHECK(setgid(65534) == 0 && setuid(65534) == 0);
}

TEST(a_read_only_database_is_refused)
{
	dir_make();
	fill(3);
	CHECK_INT(chmod(file_in_dir("caisson.db"), 0400), 0);
	CHECK_INT(chown(file_in_dir("caisson.db"), 65534, 65534) && geteuid() == 0, 0);
	CHECK_INT(chown(file_in_dir("caisson.lock"), 65534, 65534) && geteuid() == 0, 0);
	CHECK_INT(chown(dir, 65534, 65534) && geteuid() == 0, 0);
	become_nobody();
	must_refuse("open caisson.db: Permission denied");
	dir_remove();
}
