#include "store/trees.h"
#include "test_core.h"

static struct {
	int n;
	uint64_t num;
	enum fail_code code;
} last;

static void done(void *arg, uint64_t num, const struct fail *f)
{
	(void)arg;
	last.n++;
	last.num = num;
	last.code = f ? f->code : FAIL_NONE;
}

static void start(void)
{
	dir_make();
	rig_deadly.times = 0;
	rig_refused.sys = 0;
	rig_start();
	last.n = 0;
}

static void stop(void)
{
	rig_stop();
	dir_remove();
}

static uint64_t make(const char *key)
{
	const struct tree_new ask = { "t1", "checkout", "rp_1", key };
	int n = last.n;

	tree_make(&rig_core, &ask, done, NULL);
	RIG_UNTIL(last.n > n);
	return last.code == FAIL_NONE ? last.num : 0;
}

/* -1: there is none. */
static int state_of(const char *key)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct tree_row row;
	struct err e = { 0 };

	if (store_tree_by_key(rig_core.store,
	                      &(struct tree_row){ .owner = "rp_1", .kind = "checkout", .key = key },
	                      &a, &row, &e) < 0)
		return -1;
	return (int)row.state;
}

static size_t n_in_trash(void)
{
	AUTO(arena_done) struct arena a = { 0 };
	struct tree_list list = { 0 };
	struct err e = { 0 };

	CHECK_INT(store_tree_in(rig_core.store, TREE_TRASH, &a, &list, &e), 0);
	return list.n;
}

TEST(no_number_is_given_twice_whoever_dies)
{
	uint64_t most = 0;

	start();
	for (int life = 0; life < 5; life++) {
		for (int i = 0; i < 700; i++) {
			uint64_t n = trees_number(&rig_core);

			CHECK(n > most && n > VAULT_EMPTY_TREE);
			most = n;
		}
		rig_again();
	}
	stop();
}

TEST(made_sealed_kept)
{
	start();
	uint64_t one = make("one"), two = make("two");
	CHECK(one && two && one != two);
	CHECK_INT(state_of("one"), TREE_MAKING);
	tree_seal(&rig_core, one, done, NULL);
	tree_keep(&rig_core, two, done, NULL);
	RIG_UNTIL(last.n == 4);
	CHECK_INT(last.code, FAIL_NONE);
	CHECK_INT(state_of("one"), TREE_READY);
	CHECK_INT(state_of("two"), TREE_READY);
	CHECK_INT(rig_count(0, V_SEAL_TREE), 1); /* what is only kept may be written */
	CHECK_INT(make("one"), 0);
	CHECK_INT(last.code, FAIL_EXISTS);
	stop();
}

TEST(removed_is_trash_until_the_folder_is_gone)
{
	start();
	uint64_t one = make("one");

	rig_refused.type = V_REMOVE_TREE;
	rig_refused.sys = EBUSY;
	tree_remove(&rig_core, one);
	RIG_UNTIL(rig_count(0, V_REMOVE_TREE) == 1);
	rig_pass(5);
	CHECK_INT(n_in_trash(), 1);
	CHECK_INT(state_of("one"), -1); /* and its name is free */
	rig_refused.sys = 0;
	rig_again(); /* the next daemon tries again */
	RIG_UNTIL(n_in_trash() == 0);
	CHECK(rig_count(0, V_REMOVE_TREE) >= 1);
	stop();
}

TEST(half_made_ones_go_at_the_next_start)
{
	start();
	make("half");
	uint64_t whole = make("whole");
	tree_seal(&rig_core, whole, done, NULL);
	RIG_UNTIL(last.n == 3);
	rig_again();
	RIG_UNTIL(state_of("half") == -1 && n_in_trash() == 0);
	CHECK_INT(state_of("whole"), TREE_READY);
	CHECK(rig_count(0, V_REMOVE_TREE) >= 1);
	stop();
}

TEST(a_keeper_that_dies_under_it_fails_it_and_the_next_one_is_another)
{
	start();
	rig_deadly.type = V_MAKE_TREE;
	rig_deadly.times = 1;
	CHECK_INT(make("one"), 0);
	CHECK_INT(last.code, FAIL_BACKEND_ERROR);
	RIG_UNTIL(state_of("one") == -1); /* what may be there of it is removed */
	CHECK(make("one") > 0);
	CHECK(rig_opened >= 2);
	stop();
}
