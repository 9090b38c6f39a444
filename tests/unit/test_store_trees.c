#include "store/trees.h"

#include "store/workspaces.h"
#include "unit/store_fixture.h"

#define NAMED(what) ((struct tree_row){ .owner = "rp_1", .kind = (what), .key = "c0ffee" })

static struct tree_row row_of(int64_t num)
{
	return (struct tree_row){
		.num = num, .tenant = "t1", .kind = "checkout", .owner = "rp_1", .created_ms = 5
	};
}

TEST(a_tree_is_made_ready_and_removed)
{
	static const struct {
		enum tree_state to;
		enum store_code want;
	} steps[] = {
		{ TREE_MAKING, STORE_CONFLICT }, { TREE_READY, STORE_OK },
		{ TREE_READY, STORE_OK }, /* said again */
		{ TREE_TRASH, STORE_OK },        { TREE_READY, STORE_CONFLICT },
		{ TREE_TRASH, STORE_OK },
	};
	struct err e = { 0 };
	struct arena a = { 0 };
	struct tree_row got, row = row_of(7);

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_tree_insert(s, &row, HEAR, &e));
	MUST(STORE_EXISTS, store_tree_insert(s, &row, HEAR, &e));
	MUST(STORE_CONFLICT, store_tree_drop(s, 7, HEAR, &e));
	for (size_t i = 0; i < COUNT(steps); i++)
		MUST(steps[i].want,
		     store_tree_move(s, 7, steps[i].to, i == 1 ? 4096 : -1, HEAR, &e));
	CHECK_INT(store_tree_get(s, 7, &a, &got, &e), 0);
	CHECK_INT(got.state, TREE_TRASH);
	CHECK_INT(got.bytes, 4096);
	CHECK_STR(got.node, store_node(s));
	MUST(STORE_OK, store_tree_drop(s, 7, HEAR, &e));
	MUST(STORE_CONFLICT, store_tree_drop(s, 7, HEAR, &e));
	MUST(STORE_CONFLICT, store_tree_move(s, 7, TREE_TRASH, -1, HEAR, &e));
	CHECK_INT(store_tree_get(s, 7, &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(one_tree_of_an_owner_for_each_key)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct tree_row got, first = row_of(2), second = row_of(3), other = row_of(4);
	struct tree_list list;

	first.key = second.key = "c0ffee";
	other.kind = "pot";
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_tree_insert(s, &first, HEAR, &e));
	MUST(STORE_EXISTS, store_tree_insert(s, &second, HEAR, &e));
	MUST(STORE_INVALID, store_tree_insert(s, &other, HEAR, &e));
	other.kind = "repo";
	MUST(STORE_OK, store_tree_insert(s, &other, HEAR, &e));
	CHECK_INT(store_tree_by_key(s, &NAMED("checkout"), &a, &got, &e), 0);
	CHECK_INT(got.num, 2);
	CHECK_INT(store_tree_by_key(s, &NAMED("repo"), &a, &got, &e), -1);
	MUST(STORE_OK, store_tree_move(s, 2, TREE_TRASH, -1, HEAR, &e));
	MUST(STORE_OK, store_tree_insert(s, &second, HEAR, &e));
	CHECK_INT(store_tree_by_key(s, &NAMED("checkout"), &a, &got, &e), 0);
	CHECK_INT(got.num, 3);
	CHECK_INT(store_tree_of(s, "rp_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_INT(store_tree_in(s, TREE_TRASH, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].num, 2);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

/* Of trees 2 to 5 a workspace lies on 2, a point on 3, one that is gone on 4. */
TEST(what_something_lies_on_is_not_retired)
{
	static const struct {
		int64_t num;
		enum store_code want;
	} rows[] = { { 2, STORE_CONFLICT }, { 3, STORE_CONFLICT }, { 4, STORE_OK },
		     { 5, STORE_OK },       { 6, STORE_CONFLICT }, { 5, STORE_CONFLICT } };
	struct workspace_row w = { .id = "ws_1",
		                   .tenant = "t1",
		                   .num = 20,
		                   .top = 21,
		                   .stack = "[2]",
		                   .ahead = "[]",
		                   .spec = "{}",
		                   .rev = 1 };
	struct workspace_row gone = w;
	struct point_row point = { .id = "cp_1",
		                   .tenant = "t1",
		                   .workspace = "ws_1",
		                   .num = 30,
		                   .stack = "[3,1]",
		                   .boot_id = "boot" };
	struct err e = { 0 };
	struct arena a = { 0 };
	struct tree_list list;

	dir_make();
	struct store *s = must_open();

	for (int64_t i = 2; i <= 6; i++) {
		struct tree_row row = row_of(i);

		row.kind = i == 6 ? "repo" : "checkout";
		MUST(STORE_OK, store_tree_insert(s, &row, HEAR, &e));
		MUST(STORE_OK, store_tree_move(s, i, TREE_READY, -1, HEAR, &e));
	}
	gone.id = "ws_2";
	gone.num = 22;
	gone.stack = "[4]";
	MUST(STORE_OK, store_workspace_insert(s, &w, 1, HEAR, &e));
	MUST(STORE_OK, store_workspace_insert(s, &gone, 1, HEAR, &e));
	for (enum workspace_state to = WORKSPACE_TRASH; to <= WORKSPACE_GONE; to++) {
		gone.state = to;
		MUST(STORE_OK, store_workspace_update(s, &gone, WORKSPACE_SET_STATE,
		                                      (struct workspace_with){ 0 }, HEAR, &e));
	}
	w.head = 30;
	MUST(STORE_OK,
	     store_workspace_update(s, &w, WORKSPACE_SET_HEAD,
	                            (struct workspace_with){ .point = &point }, HEAR, &e));
	CHECK_INT(store_tree_unused(s, 4, &a, &list, &e), 0);
	CHECK_INT(list.n, 0); /* too young */
	CHECK_INT(store_tree_unused(s, 5, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_INT(list.rows[0].num, 4);
	for (size_t i = 0; i < COUNT(rows); i++)
		MUST(rows[i].want, store_tree_retire(s, rows[i].num, HEAR, &e));
	arena_done(&a);
	store_close(s);
	dir_remove();
}
