#include "store/workspaces.h"

#include "unit/store_fixture.h"

#define NOTHING ((struct workspace_with){ 0 })

static struct workspace_row workspace_of(const char *id, int64_t num)
{
	return (struct workspace_row){ .id = id,
		                       .tenant = "t1",
		                       .num = num,
		                       .top = num + 1,
		                       .state = WORKSPACE_READY,
		                       .stack = "[1]",
		                       .ahead = "[]",
		                       .spec = "{}",
		                       .created_ms = 1000,
		                       .used_ms = 1000 };
}

static struct point_row point_of(const char *id, int64_t num, int64_t before)
{
	return (struct point_row){ .id = id,
		                   .tenant = "t1",
		                   .workspace = "ws_1",
		                   .num = num,
		                   .before = before,
		                   .stack = "[1]",
		                   .created_ms = 1000,
		                   .files = 2,
		                   .boot_id = "boot" };
}

static void add(struct store *s, struct workspace_row *w, struct point_row p)
{
	struct err e = { 0 };

	w->head = p.num;
	w->rev++;
	MUST(STORE_OK, store_workspace_update(s, w, WORKSPACE_SET_HEAD,
	                                      (struct workspace_with){ .point = &p }, HEAR, &e));
}

TEST(a_point_and_the_head_come_together)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row got, w = workspace_of("ws_1", 2);
	struct point_row point = point_of("cp_1", 10, 0), found;

	point.process = "px_1";
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &w, 1, HEAR, &e));
	add(s, &w, point);
	w.head = 11; /* the id is taken: the head stays where it was */
	MUST(STORE_EXISTS,
	     store_workspace_update(s, &w, WORKSPACE_SET_HEAD,
	                            (struct workspace_with){ .point = &point }, HEAR, &e));
	CHECK_INT(store_workspace_by_id(s, "ws_1", &a, &got, &e), 0);
	CHECK_INT(got.head, 10);
	CHECK_INT(store_point_get(s, "t1", "cp_1", &a, &found, &e), 0);
	CHECK_INT(found.num, 10);
	CHECK_INT(found.kind, POINT_AUTO);
	CHECK_INT(store_point_get(s, "t2", "cp_1", &a, &found, &e), -1);
	CHECK_INT(store_point_by_process(s, "t1", "px_1", &a, &found, &e), 0);
	CHECK_INT(store_point_by_num(s, 10, &a, &found, &e), 0);
	CHECK_INT(store_point_by_num(s, 11, &a, &found, &e), -1);
	point.num = point.before = 4;
	CHECK_INT(store_workspace_update(s, &w, WORKSPACE_SET_HEAD,
	                                 (struct workspace_with){ .point = &point }, HEAR, &e),
	          -1);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(the_way_back_has_each_number_once)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row w = workspace_of("ws_1", 2);
	struct point_row snapshot = point_of("sn_1", 11, 10);
	struct store_page page = { .tenant = "t1" };
	struct point_list list;

	snapshot.kind = POINT_SNAPSHOT;
	snapshot.label = "before lunch";
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &w, 1, HEAR, &e));
	add(s, &w, point_of("cp_10", 10, 0));
	add(s, &w, point_of("cp_11", 11, 10));
	add(s, &w, snapshot);
	add(s, &w, point_of("cp_12", 12, 11));
	add(s, &w, point_of("cp_13", 13, 11)); /* after 12 was undone */
	CHECK_INT(store_point_chain(s, 13, 100, &a, &list, &e), 0);
	CHECK_INT(list.n, 3);
	CHECK_INT(list.rows[0].num, 13);
	CHECK_STR(list.rows[1].id, "cp_11");
	CHECK_INT(list.rows[2].num, 10);
	CHECK_INT(store_point_chain(s, 13, 2, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_INT(store_point_chain(s, 0, 2, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	CHECK_INT(store_point_list(s, "ws_1", &page, &a, &list, &e), 0);
	CHECK_INT(list.n, 5);
	CHECK_STR(list.rows[0].id, "cp_13");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_is_not_on_disk_is_known)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row w = workspace_of("ws_1", 2);
	struct point_list list;

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &w, 1, HEAR, &e));
	add(s, &w, point_of("cp_10", 10, 0));
	add(s, &w, point_of("cp_11", 11, 10));
	CHECK_INT(store_point_volatile(s, "boot", &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	CHECK_INT(store_point_volatile(s, "later", &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	MUST(STORE_OK, store_point_durable(s, "ws_2", 11, HEAR, &e));
	CHECK_INT(heard.rows, 0);
	MUST(STORE_OK, store_point_durable(s, "ws_1", 10, HEAR, &e));
	CHECK_INT(heard.rows, 1);
	CHECK_INT(store_point_volatile(s, "later", &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].num, 11);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(points_are_needed_by_histories_snapshots_and_forks)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row w = workspace_of("ws_1", 2), fork = workspace_of("ws_2", 4);
	struct point_row snapshot = point_of("sn_14", 14, 10);
	struct point_list list;

	snapshot.kind = POINT_SNAPSHOT;
	fork.begins = fork.origin = fork.head = 12;
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &w, 1, HEAR, &e));
	add(s, &w, point_of("cp_10", 10, 0));
	add(s, &w, point_of("cp_11", 11, 10)); /* undone, something else was done */
	add(s, &w, point_of("cp_12", 12, 10)); /* the fork's */
	add(s, &w, snapshot);
	add(s, &w, point_of("cp_15", 15, 10)); /* ahead */
	MUST(STORE_OK, store_workspace_insert(s, &fork, 1, HEAR, &e));
	w.head = 10;
	w.ahead = "[15]";
	MUST(STORE_OK, store_workspace_update(s, &w, WORKSPACE_SET_HEAD, NOTHING, HEAR, &e));
	CHECK_INT(store_point_useless(s, 100, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].num, 11);
	MUST(STORE_OK, store_point_drop(s, 11, HEAR, &e));
	w.state = WORKSPACE_TRASH;
	MUST(STORE_OK, store_workspace_update(s, &w, WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	CHECK_INT(store_point_useless(s, 100, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	w.state = WORKSPACE_GONE;
	MUST(STORE_OK, store_workspace_update(s, &w, WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	CHECK_INT(store_point_useless(s, 100, &a, &list, &e), 0);
	CHECK_INT(list.n, 2); /* 14 and 15; the fork has 12 and 10 */
	CHECK_INT(list.rows[0].num, 14);
	CHECK_INT(list.rows[1].num, 15);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_history_goes_on_where_a_point_was_cut_out)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row w = workspace_of("ws_1", 2);
	struct point_list list;

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &w, 1, HEAR, &e));
	add(s, &w, point_of("cp_1", 10, 0));
	add(s, &w, point_of("cp_2", 20, 10));
	add(s, &w, point_of("cp_3", 30, 20));
	CHECK_INT(store_point_after(s, 0, &a, &list, &e), 0);
	CHECK_INT(list.n, 3);
	CHECK_INT(store_point_after(s, list.rows[0].seq, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_STR(list.rows[0].id, "cp_2");
	MUST(STORE_OK, store_point_cut(s, 20, HEAR, &e));
	CHECK_INT(store_point_chain(s, 30, 10, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_INT(list.rows[0].before, 10);
	MUST(STORE_OK, store_point_cut(s, 10, HEAR, &e));
	CHECK_INT(store_point_chain(s, 30, 10, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].before, 0);
	arena_done(&a);
	store_close(s);
	dir_remove();
}
