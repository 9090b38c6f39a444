#include "store/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/advice.h"
#include "base/fd.h"
#include "store/store-internal.h"

/* ---- the lock file ----------------------------------------------------------------------- */

/* It is locked by the daemon that uses the folder, and says what became of the database. With it
 * an empty, absent or beheaded database is told from one that never was. */
#define MARK_BYTES 8
static const char mark_open[MARK_BYTES + 1] = "open   \n";
static const char mark_closed[MARK_BYTES + 1] = "closed \n";

static int lock_folder(struct store *s, struct err *e)
{
	s->lock_fd =
	    openat(s->dir_fd, "caisson.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock_fd < 0)
		return err_sys(e, errno, "open caisson.lock");
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK) {
		err_new(e, ERR_DENIED, "another daemon is using this folder");
		return err_advise(e, ADVICE_STATE_TAKEN);
	}
	return err_sys(e, errno, "lock caisson.lock");
}

static int write_mark(struct store *s, const char *mark, struct err *e)
{
	if (pwrite(s->lock_fd, mark, MARK_BYTES, 0) != MARK_BYTES || fdatasync(s->lock_fd) < 0)
		return err_sys(e, errno, "write caisson.lock");
	return 0;
}

/* ---- the files --------------------------------------------------------------------------- */

#define GO_ON "put it back, or remove caisson.lock to go on without it"

/* Opens the file by hand first: SQLite would follow a link, make the file readable by all, and
 * quietly go on read-only. */
static int look_at_file(struct store *s, bool had_one, struct err *e)
{
	struct stat st;
	AUTO(fd_close)
	int fd = openat(s->dir_fd, "caisson.db",
	                O_RDWR | O_CLOEXEC | O_NOFOLLOW | (had_one ? 0 : O_CREAT), 0600);

	if (fd < 0 && errno == ENOENT)
		return err_new(e, ERR_NOT_FOUND, "caisson.db was here and is missing: " GO_ON);
	if (fd < 0)
		return err_sys(e, errno, "open caisson.db");
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "stat caisson.db");
	if (!S_ISREG(st.st_mode))
		return err_new(e, ERR_INVALID, "caisson.db is not a file");
	if (had_one && st.st_size == 0)
		return err_new(e, ERR_INVALID, "caisson.db has been emptied: " GO_ON);
	if (st.st_mode & 077 && fchmod(fd, 0600) < 0)
		return err_sys(e, errno, "close caisson.db to others");
	return 0;
}

/* After a crash the newest commits are in the log; without it they would be lost in silence. */
static int look_at_log(struct store *s, bool was_open, struct err *e)
{
	struct stat st;

	if (!was_open)
		return 0;
	if (fstatat(s->dir_fd, "caisson.db-wal", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_new(e, ERR_NOT_FOUND,
		               "the last daemon did not end well and caisson.db-wal, with its "
		               "last records, is missing: " GO_ON);
	s->last_write_s = st.st_mtime;
	return 0;
}

static int look_at_files(struct store *s, struct err *e)
{
	char mark[MARK_BYTES] = { 0 };
	ssize_t n = pread(s->lock_fd, mark, sizeof mark, 0);

	if (n < 0)
		return err_sys(e, errno, "read caisson.lock");
	s->was_clean = n == 0 || memcmp(mark, mark_closed, MARK_BYTES) == 0;
	if (look_at_file(s, n > 0, e) < 0)
		return -1;
	return look_at_log(s, !s->was_clean, e);
}

/* ---- the connections --------------------------------------------------------------------- */

static int on_commit(void *store, sqlite3 *c, const char *name, int pages)
{
	struct store *s = store;

	(void)c;
	(void)name;
	s->wal_pages = pages;
	return SQLITE_OK;
}

/* The log stays when the last connection closes, so that its absence always means something. */
static int keep_log(struct db *db, struct err *e)
{
	int on = 1;

	if (sqlite3_file_control(db->c, "main", SQLITE_FCNTL_PERSIST_WAL, &on) != SQLITE_OK)
		return db_fail(db, e);
	return 0;
}

static int open_writer(struct store *s, struct err *e)
{
	if (db_open(&s->writer, s->path, SQLITE_OPEN_READWRITE, e) < 0)
		return -1;
	if (sqlite3_db_readonly(s->writer.c, "main"))
		return err_new(e, ERR_DENIED, "caisson.db is read-only");
	if (keep_log(&s->writer, e) < 0 || schema_open(&s->writer, e) < 0)
		return err_wrap(e, "caisson.db");
	sqlite3_wal_hook(s->writer.c, on_commit, s);
	return 0;
}

/* A connection knows the log from its first read on. */
static int open_beside(struct db *db, const char *path, int flags, struct err *e)
{
	int64_t tables = 0;

	if (db_open(db, path, flags, e) < 0 || keep_log(db, e) < 0)
		return -1;
	return db_number(db, "SELECT count(*) FROM sqlite_schema", &tables, e);
}

static int open_others(struct store *s, struct err *e)
{
	if (open_beside(&s->reader, s->path, SQLITE_OPEN_READONLY, e) < 0)
		return -1;
	return open_beside(&s->syncer, s->path, SQLITE_OPEN_READWRITE, e);
}

/* ---- who we are -------------------------------------------------------------------------- */

static int random_id(const char *prefix, char id[STORE_ID_MAX], struct err *e)
{
	uint64_t random[2];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return err_sys(e, errno, "get random bytes");
	snprintf(id, STORE_ID_MAX, "%s_%016" PRIx64 "%016" PRIx64, prefix, random[0], random[1]);
	return 0;
}

static int birth_records(struct store *s, const char *node, struct err *e)
{
	struct timespec now;
	AUTO(db_release)
	sqlite3_stmt *st =
	    db_stmt(&s->writer, "INSERT OR IGNORE INTO meta VALUES('node',?1),('born_ms',?2)", e);

	if (!st)
		return -1;
	clock_gettime(CLOCK_REALTIME, &now);
	char ms[24];

	snprintf(ms, sizeof ms, "%lld", now.tv_sec * 1000ll + now.tv_nsec / 1000000);
	db_bind_text(st, 1, node);
	db_bind_text(st, 2, ms);
	return db_step(&s->writer, st, e);
}

static int identify(struct store *s, struct err *e)
{
	char fresh[STORE_ID_MAX];
	struct arena a = { 0 };
	const char *node = NULL;

	if (random_id("bt", s->boot, e) < 0 || random_id("nd", fresh, e) < 0 ||
	    birth_records(s, fresh, e) < 0)
		return -1;
	int r = store_meta_get(s, "node", &a, &node, e);

	if (r == 0 && !node)
		r = err_new(e, ERR_INTERNAL, "caisson.db does not know its node");
	if (r == 0)
		snprintf(s->node, sizeof s->node, "%s", node);
	arena_done(&a);
	return r;
}

/* ---- open and close ---------------------------------------------------------------------- */

static int settle(struct store *s, struct err *e)
{
	reserve_init(s);
	if (fsync(s->dir_fd) < 0) /* the names of the new files */
		return err_sys(e, errno, "sync the folder");
	return write_mark(s, mark_open, e);
}

static int start_threads(struct store *s, struct err *e)
{
	sigset_t all, old;

	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->event_fd < 0)
		return err_sys(e, errno, "make an eventfd");
	sigfillset(&all); /* signals are the loop's */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int r = pthread_create(&s->store_thread, NULL, writer_main, s);

	if (r == 0) {
		r = pthread_create(&s->sync_thread, NULL, syncer_main, s);
		if (r != 0) {
			pthread_mutex_lock(&s->lock);
			s->is_closing = true;
			pthread_cond_signal(&s->has_work);
			pthread_mutex_unlock(&s->lock);
			pthread_join(s->store_thread, NULL);
		}
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0)
		return err_sys(e, r, "start a thread");
	return 0;
}

static const struct {
	int (*run)(struct store *s, struct err *e);
} steps[] = {
	{ lock_folder }, { look_at_files }, { open_writer },   { open_others },
	{ identify },    { settle },        { start_threads },
};

static struct store *store_new(void)
{
	struct store *s = mem_alloc(sizeof *s);
	pthread_condattr_t monotonic;

	s->dir_fd = s->lock_fd = s->event_fd = -1;
	s->reserve = (struct reserve){ .db_fd = -1, .wal_fd = -1 };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->has_work, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->has_unsynced, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return s;
}

static void store_free(struct store *s)
{
	db_done(&s->reader);
	db_done(&s->syncer);
	db_done(&s->writer);
	reserve_done(s);
	fd_close(&s->event_fd);
	fd_close(&s->dir_fd);
	fd_close(&s->lock_fd);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->has_work);
	pthread_cond_destroy(&s->has_unsynced);
	free(s->path);
	free(s->dir);
	free(s);
}

static int open_all(struct store *s, const char *dir, struct err *e)
{
	char path[PATH_MAX];

	/* SQLite refuses every link on the way, so it gets the way without one. */
	s->dir = realpath(dir, NULL);
	if (!s->dir)
		return err_sys(e, errno, "find it");
	if (snprintf(path, sizeof path, "%s/caisson.db", s->dir) >= (int)sizeof path)
		return err_new(e, ERR_INVALID, "the path is too long");
	s->path = mem_strdup(path);
	s->dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir_fd < 0)
		return err_sys(e, errno, "open it");
	for (size_t i = 0; i < COUNT(steps); i++)
		if (steps[i].run(s, e) < 0)
			return -1;
	return 0;
}

struct store *store_open(const char *dir, struct err *e)
{
	struct store *s = store_new();

	if (open_all(s, dir, e) == 0)
		return s;
	store_free(s);
	err_wrap(e, "state folder %s", dir);
	if (e->kind == ERR_LIMIT || e->sys == ENOSPC || e->sys == EDQUOT)
		err_advise(e, ADVICE_DISK_FULL);
	return NULL;
}

static void stop_threads(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_closing = true;
	pthread_cond_signal(&s->has_work);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->store_thread, NULL);

	pthread_mutex_lock(&s->lock);
	s->is_written = true;
	pthread_cond_signal(&s->has_unsynced);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->sync_thread, NULL);
}

void store_close(struct store *s)
{
	struct err ignored = { 0 };

	if (!s)
		return;
	stop_threads(s);
	store_dispatch(s);
	/* If it fails, the log keeps everything and the mark says so. */
	if (wal_checkpoint(&s->writer, SQLITE_CHECKPOINT_TRUNCATE, &ignored) == 0)
		(void)write_mark(s, mark_closed, &ignored);
	store_free(s);
}

const char *store_node(const struct store *s)
{
	return s->node;
}

time_t store_last_write(const struct store *s)
{
	return s->last_write_s;
}

bool store_was_clean(const struct store *s)
{
	return s->was_clean;
}
