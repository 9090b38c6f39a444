/*
 * What the store promises when something else fails: the process is killed, a call fails, the
 * disk is full. In all of them: what was answered is there afterwards.
 */
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>

#include "store/connections.h"
#include "store/processes.h"
#include "store/sandboxes.h"
#include "unit/store_fixture.h"

static struct process_row row_of(const char *sandbox, int num, char id[48])
{
	snprintf(id, 48, "px_%s_%d", sandbox, num);
	return (struct process_row){ .id = id,
		                     .tenant = "t1",
		                     .sandbox = sandbox,
		                     .num = num,
		                     .argv = "[\"true\"]",
		                     .created_ms = 1 };
}

static bool is_there(struct store *s, const char *sandbox, int num)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct process_row got;
	char id[48];

	snprintf(id, sizeof id, "px_%s_%d", sandbox, num);
	int r = store_process_get(s, "t1", id, &a, &got, &e);

	if (r < 0 && e.kind != ERR_NOT_FOUND)
		CHECK_STR(e.msg, "");
	arena_done(&a);
	return r == 0;
}

/* ---- kill -9 ----------------------------------------------------------------------------- */

static int report_fd;

static void report(void *arg, const struct store_answer *a)
{
	int num = (int)(intptr_t)arg;

	CHECK_INT(a->code, STORE_OK);
	CHECK_INT(write(report_fd, &num, sizeof num), sizeof num);
}

/* In the child, until it is killed: a few requests always waiting, now and then a durable one. */
static _Noreturn void insert_for_ever(const char *sandbox)
{
	struct store *s = must_open();

	for (int num = 1;; num++) {
		struct err e = { 0 };
		char id[48];
		struct process_row row = row_of(sandbox, num, id);
		struct store_call call = { .done = report,
			                   .arg = (void *)(intptr_t)num,
			                   .is_durable = num % 97 == 0 };

		CHECK_INT(store_process_insert(s, &row, call, &e), 0);
		while (store_waiting(s) > 16) {
			struct pollfd ready = { .fd = store_fd(s), .events = POLLIN };

			poll(&ready, 1, 1000);
			store_dispatch(s);
		}
	}
}

/* Returns how many were acknowledged, all of them found again. */
static int kill_round(int round)
{
	int fds[2], acked[4096], n = 0;
	char sandbox[32];
	struct err e = { 0 };
	int64_t last = 0;

	snprintf(sandbox, sizeof sandbox, "sb_%d", round);
	CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
	pid_t child = fork();

	if (child == 0) {
		report_fd = fds[1];
		insert_for_ever(sandbox);
	}
	close(fds[1]);
	struct pollfd first = { .fd = fds[0], .events = POLLIN };

	if (round % 4) /* the others are killed anywhere, also while they open */
		CHECK_INT(poll(&first, 1, TEST_WAIT_MS), 1);
	usleep((useconds_t)(rand() % 15000));
	kill(child, SIGKILL);
	CHECK_INT(waitpid(child, NULL, 0), child);
	for (ssize_t got = 0; (got = read(fds[0], acked + n, sizeof acked - (size_t)n * 4)) > 0;)
		n += (int)(got / 4);
	close(fds[0]);

	struct store *s = must_open();

	for (int i = 0; i < n; i++)
		CHECK(is_there(s, sandbox, acked[i]));
	CHECK_INT(store_process_num_max(s, sandbox, 0, &last, &e), 0);
	for (int i = 1; i <= last; i++) /* in order, so without a gap */
		CHECK(is_there(s, sandbox, i));
	CHECK(last >= n);
	store_close(s);
	return n;
}

static void kill_rounds(int from, int to)
{
	int total = 0, silent = 0;

	srand((unsigned int)time(NULL));
	dir_make();
	for (int round = from; round < to; round++) {
		int n = kill_round(round);

		total += n;
		silent += n == 0;
	}
	printf("# %d acknowledged rows in %d rounds, %d of these too short for one\n", total,
	       to - from, silent);
	CHECK(total > 0);
	dir_remove();
}

TEST(killed_100_times_and_nothing_acknowledged_is_lost)
{
	kill_rounds(0, 100);
}

TEST(killed_100_times_more)
{
	kill_rounds(100, 200);
}

/* ---- kill -9 between the open and the close of a connection ------------------------------- */

enum { BATCH = 8, CONNECTIONS = 4000 };

/* In the child: each batch opens some connections and closes those of the batch before. Lazy, as
 * the daemon does it. */
static _Noreturn void connect_for_ever(void)
{
	struct store *s = must_open();

	for (int batch = 1;; batch++) {
		struct connection_row rows[2 * BATCH];
		struct err e = { 0 };

		for (int i = 0; i < 2 * BATCH; i++)
			rows[i] =
			    (struct connection_row){ .sandbox = "sb",
				                     .tenant = "t1",
				                     .num = (batch - i / BATCH) * BATCH + i % BATCH,
				                     .decision = "allow",
				                     .close = i < BATCH ? "open" : "client",
				                     .bytes_up = i < BATCH ? 0 : batch,
				                     .count = 1 };
		struct store_call call = { .done = report,
			                   .arg = (void *)(intptr_t)batch,
			                   .is_lazy = true };

		if ((batch + 1) * BATCH < CONNECTIONS)
			CHECK_INT(store_connection_put(s, rows, (size_t)2 * BATCH, call, &e), 0);
		else
			usleep(1000);
		store_nudge(s);
		settle(s);
	}
}

static int look_at_all(struct store *s, bool closed[CONNECTIONS])
{
	struct connection_query q = { .tenant = "t1", .sandbox = "sb", .limit = STORE_LIST_MAX };
	struct connection_list list;
	struct err e = { 0 };
	int n = 0;

	do {
		AUTO(arena_done) struct arena a = { 0 };

		CHECK_INT(store_connection_list(s, &q, &a, &list, &e), 0);
		for (size_t i = 0; i < list.n; i++, n++) {
			const struct connection_row *row = &list.rows[i];
			bool is_closed = strcmp(row->close, "client") == 0;

			CHECK(row->seq > q.after && row->num < CONNECTIONS);
			CHECK_INT(row->bytes_up != 0, is_closed);
			closed[row->num] = is_closed;
			q.after = row->seq;
		}
	} while (list.has_more);
	return n;
}

TEST(a_connection_is_whole_after_a_kill)
{
	srand((unsigned int)time(NULL));
	for (int round = 0; round < 30; round++) {
		static bool closed[CONNECTIONS];
		int fds[2], acked = 0;

		dir_make();
		CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
		pid_t child = fork();

		if (child == 0) {
			report_fd = fds[1];
			connect_for_ever();
		}
		close(fds[1]);
		struct pollfd first = { .fd = fds[0], .events = POLLIN };

		CHECK_INT(poll(&first, 1, TEST_WAIT_MS), 1);
		usleep((useconds_t)(rand() % 20000));
		kill(child, SIGKILL);
		CHECK_INT(waitpid(child, NULL, 0), child);
		for (int num = 0; read(fds[0], &num, sizeof num) == sizeof num;)
			acked = num;
		close(fds[0]);
		struct store *s = must_open();

		memset(closed, 0, sizeof closed);
		int n = look_at_all(s, closed);

		CHECK(acked > 0 &&
		      n >= (acked + 1) * BATCH); /* the first closed what nobody opened */
		for (int i = 0; i < acked * BATCH; i++)
			CHECK(closed[i]);
		store_close(s);
		dir_remove();
	}
}

/* ---- a call fails ------------------------------------------------------------------------ */

/* The n-th call from now on fails, or all from then on do. */
static atomic_int calls_left = -1; /* < 0: never */
static atomic_int n_failed;
static atomic_bool is_lasting;
static int fail_errno;

static bool fails_now(void)
{
	if (atomic_load(&calls_left) < 0)
		return false;
	int left = atomic_fetch_sub(&calls_left, 1);

	if (left > 1 || (left < 1 && !is_lasting))
		return false;
	if (is_lasting)
		atomic_store(&calls_left, 0);
	atomic_fetch_add(&n_failed, 1);
	return true;
}

static void fail_after(int calls, int errnum, bool lasting)
{
	fail_errno = errnum;
	is_lasting = lasting;
	n_failed = 0;
	calls_left = calls;
}

static ssize_t faulty_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	if (!fails_now())
		return pwrite(fd, bytes, n, at);
	if (fail_errno == 0 && n > 1) /* a short write, and nothing after it */
		return pwrite(fd, bytes, n / 2, at);
	errno = fail_errno ? fail_errno : ENOSPC;
	return -1;
}

static ssize_t faulty_write(int fd, const void *bytes, size_t n)
{
	if (!fails_now())
		return write(fd, bytes, n);
	errno = fail_errno ? fail_errno : ENOSPC;
	return -1;
}

static int faulty_ftruncate(int fd, off_t size)
{
	if (!fails_now())
		return ftruncate(fd, size);
	errno = fail_errno ? fail_errno : ENOSPC;
	return -1;
}

static int faulty_open(const char *path, int flags, int mode)
{
	if (!fails_now())
		return open(path, flags, mode);
	errno = fail_errno ? fail_errno : ENOSPC;
	return -1;
}

static atomic_int n_syncs;
static atomic_bool is_disk_gone, is_disk_stuck;

/* SQLite has no hook for these two; they stand in for libc's in the whole program. */
static int faulty_sync(long call, int fd)
{
	while (is_disk_stuck)
		usleep(1000);
	if (fails_now() || is_disk_gone) {
		errno = EIO;
		return -1;
	}
	int r = (int)syscall(call, fd);

	n_syncs++;
	return r;
}

int fdatasync(int fildes)
{
	return faulty_sync(SYS_fdatasync, fildes);
}

int fsync(int fd)
{
	return faulty_sync(SYS_fsync, fd);
}

static void install_faults(void)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} rows[] = {
		{ "pwrite", (sqlite3_syscall_ptr)faulty_pwrite },
		{ "pwrite64", (sqlite3_syscall_ptr)faulty_pwrite },
		{ "write", (sqlite3_syscall_ptr)faulty_write },
		{ "ftruncate", (sqlite3_syscall_ptr)faulty_ftruncate },
		{ "open", (sqlite3_syscall_ptr)faulty_open },
	};
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	int n = 0;

	for (size_t i = 0; i < COUNT(rows); i++)
		n += vfs->xSetSystemCall(vfs, rows[i].name, rows[i].call) == SQLITE_OK;
	CHECK(n >= 4); /* pwrite64 is not everywhere */
}

enum { ROWS = 24 };
static enum store_code codes[ROWS];
static int n_codes;

static void keep_code(void *arg, const struct store_answer *a)
{
	codes[(intptr_t)arg] = a->code;
	n_codes++;
}

static bool is_durable(int i)
{
	return i % 8 == 7;
}

/* Returns how many were queued; each has an answer in codes[] afterwards. */
static int insert_some(struct store *s)
{
	int n = 0;

	for (int i = 0; i < ROWS; i++) {
		struct err e = { 0 };
		char id[48];
		struct process_row row = row_of("sb", i, id);
		struct store_call call = { .done = keep_code,
			                   .arg = (void *)(intptr_t)i,
			                   .is_durable = is_durable(i) };

		CHECK_INT(store_process_insert(s, &row, call, &e), 0);
		n++;
		if (i % 3 == 0)
			settle(s); /* several transactions */
	}
	return n;
}

/* One run with a fault, one without. Returns whether the fault was reached. */
static bool fault_round(int calls, int errnum, bool lasting)
{
	struct err e = { 0 };

	for (int i = 0; i < ROWS; i++)
		codes[i] = STORE_BROKEN;
	n_codes = 0;
	dir_make();
	fail_after(calls, errnum, lasting);
	struct store *s = store_open(dir, &e);
	int n = 0;

	if (s)
		n = insert_some(s);
	else
		CHECK(e.kind != ERR_NONE);
	store_close(s);
	bool is_reached = n_failed > 0;

	CHECK_INT(n_codes, n);
	CHECK(s || is_reached);
	calls_left = -1;
	s = must_open(); /* whatever was in the way is gone: it opens, and its pages are checked */
	for (int i = 0; i < n; i++) {
		/* A durable one that failed may be there: it was its sync that failed. */
		if (codes[i] == STORE_OK || !is_durable(i))
			CHECK_INT(is_there(s, "sb", i), codes[i] == STORE_OK);
		char id[48];
		struct process_row row = row_of("sb", i, id);

		if (!is_there(s, "sb", i))
			MUST(STORE_OK, store_process_insert(s, &row, HEAR, &e));
	}
	store_close(s);
	dir_remove();
	return is_reached;
}

/* There are hundreds, most of them while the tables are made: each way to fail takes every third of
 * them, from another one on. */
#define STEP 3

static void fault_sweep(int from, int errnum, bool lasting)
{
	int calls = from, n = 0;

	install_faults();
	for (; fault_round(calls, errnum, lasting); calls += STEP)
		n++;
	printf("# %d of about %d calls failed, one by one\n", n, calls - 1);
	CHECK(n > 10);
}

TEST(each_call_fails_once_with_eio)
{
	fault_sweep(1, EIO, false);
}

TEST(each_call_fails_once_with_enospc)
{
	fault_sweep(2, ENOSPC, false);
}

TEST(each_write_is_short_once)
{
	fault_sweep(3, 0, false);
}

TEST(from_each_call_on_all_fail_with_eio)
{
	fault_sweep(1, EIO, true);
}

TEST(from_each_call_on_all_fail_with_enospc)
{
	fault_sweep(2, ENOSPC, true);
}

/* The store is open and in use when the calls begin to fail, and when they stop. */
TEST(it_recovers_alone)
{
	struct err e = { 0 };
	static const int errnums[] = { EIO, ENOSPC, 0 };

	install_faults();
	for (size_t i = 0; i < COUNT(errnums); i++) {
		char id[48];

		dir_make();
		struct store *s = must_open();
		struct process_row row = row_of("sb", 1, id);

		MUST(STORE_OK, store_process_insert(s, &row, HEAR, &e));
		fail_after(1, errnums[i], true);
		row = row_of("sb", 2, id);
		CHECK_INT(store_process_insert(s, &row, (struct store_call){ .done = hear }, &e),
		          0);
		settle(s);
		CHECK(heard.code == STORE_FULL || heard.code == STORE_BROKEN);
		CHECK(is_there(s, "sb", 1));
		CHECK(!is_there(s, "sb", 2));
		row = (struct process_row){ .id = "px_sb_1", .state = PROCESS_RUNNING };
		CHECK_INT(store_process_move(s, &row, HEAR, &e), 0);
		settle(s);
		CHECK(heard.code != STORE_OK);
		calls_left = -1;
		row = row_of("sb", 2, id);
		MUST(STORE_OK,
		     store_process_insert(
			 s, &row, (struct store_call){ .done = hear, .is_durable = true }, &e));
		store_close(s);
		s = must_open();
		CHECK(is_there(s, "sb", 1) && is_there(s, "sb", 2));
		store_close(s);
		dir_remove();
	}
}

/* ---- what reaches the disk, and when ----------------------------------------------------- */

static void insert_one(struct store *s, int num, struct store_call call)
{
	struct err e = { 0 };
	char id[48];
	struct process_row row = row_of("sb", num, id);

	if (store_process_insert(s, &row, call, &e) < 0)
		CHECK_STR(e.msg, "");
}

TEST(an_ordinary_write_is_synced_soon_after_its_answer)
{
	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < 20; i++) {
		int before = n_syncs, ms = 0;

		insert_one(s, i, HEAR);
		settle(s);
		CHECK_INT(heard.code, STORE_OK);
		for (; n_syncs == before && ms < TEST_WAIT_MS; ms++)
			usleep(1000);
		CHECK(ms < TEST_WAIT_MS);
		if (i == 10)
			printf("# synced %d ms after the answer\n", ms);
	}
	int quiet = n_syncs;

	usleep(150000);
	CHECK_INT(n_syncs, quiet); /* nothing was written, so nothing is synced */
	store_close(s);
	dir_remove();
}

static int answers[4], n_answers;

static void keep_order(void *arg, const struct store_answer *a)
{
	CHECK_INT(a->code, STORE_OK);
	answers[n_answers++] = (int)(intptr_t)arg;
}

TEST(a_durable_write_waits_for_the_disk_and_others_do_not)
{
	dir_make();
	struct store *s = must_open();

	is_disk_stuck = true;
	insert_one(s, 1, (struct store_call){ keep_order, (void *)1, .is_durable = true });
	while (!is_there(s, "sb", 1)) /* it is committed, and on its way to the disk */
		usleep(1000);
	insert_one(s, 2, (struct store_call){ keep_order, (void *)2, .is_durable = false });
	while (n_answers == 0) {
		usleep(1000);
		store_dispatch(s);
	}
	CHECK_INT(answers[0], 2);
	is_disk_stuck = false;
	settle(s);
	CHECK_INT(n_answers, 2);
	CHECK_INT(answers[1], 1);
	store_close(s);
	dir_remove();
}

TEST(a_sync_that_fails_is_reported_to_those_who_asked_for_it)
{
	struct store_call durable = { .done = hear, .is_durable = true };

	dir_make();
	struct store *s = must_open();

	is_disk_gone = true;
	insert_one(s, 1, durable);
	settle(s);
	CHECK_INT(heard.code, STORE_BROKEN);
	CHECK(strstr(heard.msg, "sync the store"));
	insert_one(s, 2, HEAR);
	settle(s);
	CHECK_INT(heard.code, STORE_OK);
	insert_one(s, 3, durable); /* not silently fine the second time */
	settle(s);
	CHECK_INT(heard.code, STORE_BROKEN);
	is_disk_gone = false;
	insert_one(s, 4, durable);
	settle(s);
	CHECK_INT(heard.code, STORE_OK);
	store_close(s);
	s = must_open();
	for (int num = 1; num <= 4; num++)
		CHECK(is_there(s, "sb", num));
	store_close(s);
	dir_remove();
}

/* ---- the disk is full -------------------------------------------------------------------- */

/* In a mount namespace of our own: a small disk. */
static void small_disk(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		SKIP("needs root, for a mount namespace");
	dir_make();
	CHECK_INT(mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=700"), 0);
}

static void fill_disk(void)
{
	static const char block[65536] = "x";
	AUTO(fd_close) int fd = open(file_in_dir("filler"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	for (size_t n = sizeof block; n; n /= 2)
		while (write(fd, block, n) == (ssize_t)n)
			continue;
	CHECK_INT(errno, ENOSPC);
}

enum { MANY = 200000 };
static bool is_acked[MANY];
static int n_acked, n_full;

static void keep_acked(void *arg, const struct store_answer *a)
{
	is_acked[(intptr_t)arg] = a->code == STORE_OK;
	n_acked += a->code == STORE_OK;
	n_full += a->code == STORE_FULL;
	CHECK(a->code == STORE_OK || a->code == STORE_FULL);
}

/* Inserts until one is refused, or a number of them. */
static int insert_until_full(struct store *s, int num, int end)
{
	n_full = 0;
	for (; num < end && !n_full; num++) {
		struct err e = { 0 };
		char id[48];
		struct process_row row = row_of("sb", num, id);
		struct store_call call = { .done = keep_acked, .arg = (void *)(intptr_t)num };

		CHECK_INT(store_process_insert(s, &row, call, &e), 0);
		if (num % 16 == 0)
			settle(s);
	}
	settle(s);
	return num;
}

static void move_sandbox(struct store *s, enum sandbox_state state)
{
	struct err e = { 0 };
	struct sandbox_row row = { .id = "sb", .state = state };

	MUST(STORE_OK, store_sandbox_update(s, &row, SANDBOX_SET_STATE, HEAR, &e));
}

TEST(a_full_disk_stops_new_rows_only_and_is_forgotten_when_freed)
{
	struct err e = { 0 };
	struct sandbox_row box = { .id = "sb", .tenant = "t1", .spec = "{}", .slot = -1 };

	small_disk();
	struct store *s = must_open();

	MUST(STORE_OK, store_sandbox_insert(s, &box, HEAR, &e));
	move_sandbox(s, SANDBOX_RUNNING);
	fill_disk();
	int end = insert_until_full(s, 0, MANY);

	CHECK(n_full > 0 && end < MANY);
	printf("# %d rows after the disk was full, then none\n", n_acked);
	for (int i = 0; i < 3000; i++) { /* several times around the log */
		move_sandbox(s, SANDBOX_PAUSED);
		move_sandbox(s, SANDBOX_RUNNING);
	}
	for (int num = 0; num < 1000 && num < n_acked; num++) {
		char id[48];
		struct process_row row = row_of("sb", num, id);

		row.state = PROCESS_KILLED;
		row.ended_ms = 5;
		MUST(STORE_OK, store_process_finish(s, &row, HEAR, &e));
		CHECK(is_there(s, "sb", num));
	}
	move_sandbox(s, SANDBOX_STOPPING);
	move_sandbox(s, SANDBOX_DELETING);
	insert_until_full(s, end, end + 1);
	CHECK_INT(n_full, 1);
	end++;

	CHECK_INT(unlink(file_in_dir("filler")), 0);
	int more = insert_until_full(s, end, end + 1000);

	CHECK_INT(n_full, 0);
	CHECK_INT(more, end + 1000);
	store_close(s);
	s = must_open();
	for (int num = 0; num < more; num++)
		CHECK_INT(is_there(s, "sb", num), is_acked[num]);
	store_close(s);
	CHECK_INT(umount2(dir, MNT_DETACH), 0);
	CHECK_INT(rmdir(dir), 0);
}

TEST(a_disk_that_is_full_from_the_start_is_refused)
{
	small_disk();
	fill_disk();
	struct err e = { 0 };

	CHECK(!store_open(dir, &e));
	printf("# %s\n", e.msg);
	CHECK_INT(unlink(file_in_dir("filler")), 0);
	store_close(must_open());
	fill_disk(); /* and one that was closed on it */
	struct store *s = store_open(dir, &e);

	store_close(s);
	CHECK_INT(unlink(file_in_dir("filler")), 0);
	store_close(must_open());
	CHECK_INT(umount2(dir, MNT_DETACH), 0);
	CHECK_INT(rmdir(dir), 0);
}
