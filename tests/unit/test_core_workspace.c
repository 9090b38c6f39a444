/* Workspaces with keepers that die, daemons that do, and hosts that lose their power. */
#include <sys/mman.h>

#include "test_core.h"

static struct wsx *w;
static struct point_row point;
static char point_id[ID_SIZE];
static struct fail failure;
static bool is_told;
static struct wsx_restored restored;

static void keep_failure(const struct fail *f)
{
	failure = f ? *f : (struct fail){ 0 };
	is_told = true;
}

static void created(void *arg, struct wsx *made, const struct fail *f)
{
	(void)arg;
	w = made;
	keep_failure(f);
}

static void pointed(void *arg, struct wsx *of, const struct point_row *row, const struct fail *f)
{
	(void)arg;
	(void)of;
	point = *row;
	snprintf(point_id, sizeof point_id, "%s", row->id);
	keep_failure(f);
}

static void back(void *arg, struct wsx *of, const struct wsx_restored *r, const struct fail *f)
{
	(void)arg;
	(void)of;
	restored = r ? *r : (struct wsx_restored){ 0 };
	keep_failure(f);
}

/* Found again by its key, in whatever life. */
static void find(const char *key)
{
	struct fail f = { 0 };

	w = wsx_find(&rig_core, "t1", key, &f);
	CHECK(w);
}

static void make(void)
{
	const struct wsx_ask ask = { .tenant = "t1", .key = "key" };
	struct fail f = { 0 };

	rig_boot = "boot-1";
	rig_deadly.times = rig_refused.sys = 0;
	rig_files = 1;
	rig_start();
	is_told = false;
	CHECK_INT(wsx_create(&rig_core, &ask, created, NULL, &f), 0);
	rig_await(&is_told);
	CHECK_INT(failure.code, FAIL_NONE);
}

static void begin(void)
{
	dir_make();
	make();
}

static void look(void);

/* Somebody has worked with it. */
static void begin_open(void)
{
	begin();
	look();
}

static void end(void)
{
	rig_stop();
	dir_remove();
}

static void used(void *arg, struct wsx *of, const struct wsx_usage *u, const struct fail *f)
{
	(void)arg;
	(void)of;
	(void)u;
	keep_failure(f);
}

static void look(void)
{
	is_told = false;
	wsx_usage(w, used, NULL);
	rig_await(&is_told);
	CHECK_INT(failure.code, FAIL_NONE);
}

static void keep(enum point_kind kind)
{
	is_told = false;
	wsx_point(w, &(struct wsx_point_ask){ .kind = kind, .label = "l" }, pointed, NULL);
	rig_await(&is_told);
}

static void go(enum wsx_way way, const char *to)
{
	is_told = false;
	wsx_restore(w, &(struct wsx_restore){ .way = way, .to = to }, back, NULL);
	rig_await(&is_told);
}

/* The disk has all of it, and the rows say so. */
static void synced(void)
{
	RIG_UNTIL(w->unsynced == 0);
	rig_pass(20);
}

static uint64_t number(void)
{
	return (uint64_t)w->row.num;
}

/* The last that a keeper of it was asked to write back; UINT64_MAX: none was. */
static uint64_t last_restore(void)
{
	for (size_t i = rig_n; i-- > 0;)
		if (rig_list[i].workspace == number() && rig_list[i].type == V_RESTORE)
			return rig_list[i].to;
	return UINT64_MAX;
}

/* ---- points ------------------------------------------------------------------------------- */

TEST(a_point_moves_the_head_and_nothing_new_makes_none)
{
	begin_open();
	CHECK_INT(w->row.head, 0);
	keep(POINT_AUTO);
	CHECK_INT(failure.code, FAIL_NONE);
	CHECK(point.num > 0);
	CHECK_INT(w->row.head, point.num);
	int64_t head = w->row.head;
	rig_files = 0;
	keep(POINT_AUTO);
	CHECK_STR(point_id, "");
	CHECK_INT(w->row.head, head);
	keep(POINT_SNAPSHOT); /* has a name all the same, and is on disk when it is told */
	CHECK(id_is(point_id, strlen(point_id), "sn"));
	CHECK_INT(w->row.head, head);
	CHECK(rig_count(number(), V_SYNC) >= 1);
	end();
}

TEST(the_disk_has_it_a_while_later)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct point_row row;
	struct err e = { 0 };

	begin_open();
	keep(POINT_AUTO);
	CHECK_INT(rig_count(number(), V_SYNC), 0);
	synced();
	CHECK_INT(rig_count(number(), V_SYNC), 1);
	CHECK_INT(store_point_by_num(rig_core.store, point.num, &a, &row, &e), 0);
	CHECK_INT(row.durable, 1);
	end();
}

/* ---- a keeper that dies ------------------------------------------------------------------- */

/* Whatever it was doing: it is done again with the next one. Not for ever. */
#define MANY 20

TEST(an_operation_whose_keeper_dies_is_done_with_the_next)
{
	static const struct {
		enum vault_type type;
		bool is_undo;
	} rows[] = { { V_CHECKPOINT, false }, { V_SYNC, false }, { V_RESTORE, true } };

	for (size_t i = 0; i < COUNT(rows); i++)
		for (int times = 1; times <= MANY; times += MANY - 1) {
			begin_open();
			keep(POINT_AUTO);
			int64_t first = w->row.head;

			keep(POINT_AUTO);
			int64_t second = w->row.head;
			int opened = rig_opened;

			rig_deadly.type = rows[i].type;
			rig_deadly.times = times;
			if (rows[i].is_undo) {
				go(WSX_UNDO, NULL);
			} else {
				keep(POINT_SNAPSHOT);
			}
			printf("# row %zu, %d deaths: %s\n", i, times, failure.detail);
			CHECK_INT(failure.code, times == 1 ? FAIL_NONE : FAIL_BACKEND_ERROR);
			CHECK(rig_opened > opened);
			if (times == 1 && rows[i].is_undo)
				CHECK_INT(restored.to, first);
			if (times == 1 && !rows[i].is_undo)
				CHECK(w->row.head > second);
			rig_deadly.times = 0;
			keep(POINT_AUTO); /* and it goes on */
			CHECK_INT(failure.code, FAIL_NONE);
			end();
		}
}

TEST(what_failed_says_whether_anything_was_done)
{
	begin_open();
	keep(POINT_AUTO);
	rig_deadly.type = V_CHECKPOINT;
	rig_deadly.times = MANY;
	keep(POINT_AUTO);
	CHECK(failure.code != FAIL_NONE && failure.is_retry_safe);
	rig_deadly.type = V_RESTORE; /* the row says that it will be done */
	rig_deadly.times = MANY;
	go(WSX_UNDO, NULL);
	CHECK(failure.code != FAIL_NONE && !failure.is_retry_safe);
	end();
}

TEST(without_any_keeper_everybody_is_told)
{
	begin_open();
	keep(POINT_AUTO);
	rig_end_keeper(&rig_keepers[0]);
	rig_is_full = true;
	keep(POINT_AUTO);
	CHECK(failure.code != FAIL_NONE);
	go(WSX_UNDO, NULL);
	CHECK(failure.code != FAIL_NONE);
	rig_is_full = false;
	go(WSX_UNDO, NULL);
	CHECK_INT(failure.code, FAIL_NONE);
	end();
}

/* It has no number then, and the beginning has a name already. */
TEST(a_snapshot_of_nothing_is_refused)
{
	begin();
	keep(POINT_SNAPSHOT);
	CHECK_INT(failure.code, FAIL_CONFLICT);
	look();
	rig_files = 0;
	keep(POINT_SNAPSHOT);
	CHECK_INT(failure.code, FAIL_CONFLICT);
	rig_files = 1;
	keep(POINT_SNAPSHOT);
	CHECK_INT(failure.code, FAIL_NONE);
	end();
}

/* ---- a daemon that dies ------------------------------------------------------------------- */

static int64_t *marks; /* of the life that was ended: what it saw */

static void start_undo(void)
{
	rig_deadly.type = V_RESTORE;
	rig_deadly.times = 1;
	wsx_restore(w, &(struct wsx_restore){ .way = WSX_UNDO }, back, NULL);
	RIG_UNTIL(rig_deadly.times == 0);
	CHECK(w->row.pending);
}

/* A daemon that is killed in the middle of it: whatever it held is gone. */
static void live_and_die(void (*live)(void))
{
	int status;

	dir_make();
	marks = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(marks != MAP_FAILED);
	pid_t pid = fork();
	if (pid == 0) {
		make();
		look();
		live();
		_exit(TEST_PASSED);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == TEST_PASSED);
}

static void undo_of_two(void)
{
	keep(POINT_AUTO);
	marks[0] = w->row.head;
	keep(POINT_AUTO);
	start_undo();
}

TEST(a_restore_that_was_begun_is_finished_by_the_next_one)
{
	live_and_die(undo_of_two);
	rig_start();
	find("key");
	CHECK(w->row.pending);
	rig_files = 0;
	keep(POINT_AUTO); /* opens it */
	CHECK_INT(failure.code, FAIL_NONE);
	CHECK_INT(last_restore(), marks[0]);
	CHECK_INT(w->row.head, marks[0]);
	synced(); /* and when the disk has it, nothing is pending */
	CHECK(!w->row.pending);
	end();
}

/* ---- a host that loses its power ----------------------------------------------------------- */

static void lose_power(void)
{
	static char name[32];
	static int n = 1;

	snprintf(name, sizeof name, "boot-%d", ++n);
	rig_boot = name;
	rig_again();
	find("key");
}

TEST(points_that_the_disk_did_not_have_are_lost_and_only_those)
{
	begin_open();
	keep(POINT_AUTO);
	synced();
	int64_t kept = w->row.head;
	keep(POINT_AUTO);
	keep(POINT_AUTO);
	int64_t gone = w->row.head;

	CHECK(gone > kept);
	lose_power();
	CHECK_INT(w->row.head, kept);
	/* What is there is kept before anything else is done: it may be more than that point. */
	rig_files = 1;
	is_told = false;
	wsx_restore(w, &(struct wsx_restore){ .way = WSX_UNDO }, back, NULL);
	rig_await(&is_told);
	CHECK_INT(failure.code, FAIL_NONE);
	CHECK(rig_count(number(), V_CHECKPOINT) >= 1);
	/* What the keeper has of them may be half written, and goes with their rows. */
	CHECK_INT(rig_list[0].type, V_REMOVE_POINTS);
	CHECK_INT(rig_list[1].type, V_CHECKPOINT);
	AUTO(arena_done) struct arena a = { 0 };
	struct point_row row;
	struct err e = { 0 };

	CHECK(store_point_by_num(w->core->store, kept, &a, &row, &e) == 0);
	CHECK(store_point_by_num(w->core->store, gone, &a, &row, &e) < 0);
	end();
}

TEST(what_was_restored_is_written_again_unless_the_disk_had_it)
{
	for (int is_synced = 0; is_synced < 2; is_synced++) {
		begin_open();
		keep(POINT_SNAPSHOT);
		int64_t first = w->row.head;

		keep(POINT_SNAPSHOT);
		rig_files = 0;
		go(WSX_UNDO, NULL);
		CHECK_INT(w->row.head, first);
		if (is_synced)
			synced();
		lose_power();
		CHECK_INT(w->row.head, first);
		keep(POINT_AUTO);
		CHECK_INT((int64_t)last_restore(), is_synced ? -1 : first);
		synced();
		lose_power(); /* now it has */
		keep(POINT_AUTO);
		CHECK_INT((int64_t)last_restore(), -1);
		end();
	}
}

static void forked(void *arg, const char (*ids)[ID_SIZE], size_t n, const struct fail *f)
{
	(void)arg;
	(void)ids;
	CHECK_INT(n, 1);
	keep_failure(f);
}

/* Its names may be there, and what they held not yet. */
TEST(what_a_fork_began_with_is_written_again)
{
	struct fail f = { 0 };

	begin_open();
	keep(POINT_SNAPSHOT);
	int64_t head = w->row.head;

	rig_files = 0;
	is_told = false;
	CHECK_INT(wsx_fork(w, &(struct wsx_forks){ .n = 1, .key = "f" }, forked, NULL, &f), 0);
	rig_await(&is_told);
	CHECK_INT(failure.code, FAIL_NONE);
	for (int life = 0; life < 3; life++) {
		find("f");
		CHECK_INT(w->row.head, head);
		look(); /* opens it */
		/* In the first life it is filled, in the second doubtful, in the third on disk. */
		CHECK_INT((int64_t)last_restore(), life == 1 ? head : -1);
		if (life == 1)
			synced();
		lose_power();
	}
	end();
}

static void undo_of_what_is_lost(void)
{
	keep(POINT_SNAPSHOT);
	marks[0] = w->row.head;
	keep(POINT_AUTO); /* these two the disk does not have */
	keep(POINT_AUTO);
	start_undo();
}

TEST(a_target_that_is_lost_is_no_target)
{
	live_and_die(undo_of_what_is_lost);
	rig_boot = "boot-after";
	rig_start();
	find("key");
	CHECK_INT(w->row.head, marks[0]);
	rig_files = 0;
	keep(POINT_AUTO);
	CHECK_INT(failure.code, FAIL_NONE);
	CHECK_INT(last_restore(), marks[0]);
	CHECK_INT(w->row.head, marks[0]);
	end();
}
