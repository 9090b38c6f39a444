#include "store/images.h"

#include "store/trees.h"
#include "store/workspaces.h"
#include "unit/store_fixture.h"

static struct image_row row_of(const char *name, int64_t tree)
{
	return (struct image_row){ .tenant = "t1",
		                   .name = name,
		                   .tree = tree,
		                   .source = "tar",
		                   .digest = "abc",
		                   .bytes = 100 * tree,
		                   .files = 3,
		                   .layers = 1,
		                   .created_ms = 5 };
}

static void add_tree(struct store *s, int64_t num)
{
	struct err e = { 0 };
	struct tree_row row = { .num = num,
		                .tenant = "t1",
		                .kind = "image",
		                .owner = "x",
		                .state = TREE_READY,
		                .created_ms = 5 };

	MUST(STORE_OK, store_tree_insert(s, &row, HEAR, &e));
}

TEST(a_name_is_given_replaced_and_dropped)
{
	struct image_row row = row_of("small", 7), next = row_of("small", 8), got;
	struct number_list loose;
	struct image_list list;
	struct err e = { 0 };
	struct arena a = { 0 };
	int64_t bytes = 0;

	dir_make();
	struct store *s = must_open();

	add_tree(s, 7);
	add_tree(s, 8);
	row.passwd = "root:x:0:0::/:/bin/sh\n";
	MUST(STORE_OK, store_image_put(s, &row, false, HEAR, &e));
	MUST(STORE_EXISTS, store_image_put(s, &next, false, HEAR, &e));
	CHECK_INT(store_image_get(s, "t1", "small", &a, &got, &e), 0);
	CHECK_INT(got.tree, 7);
	CHECK_STR(got.passwd, row.passwd);
	CHECK_INT(store_image_get(s, "t2", "small", &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	CHECK_INT(store_image_loose(s, &a, &loose, &e), 0);
	CHECK_INT(loose.n, 1);
	CHECK_INT(loose.at[0], 8);
	MUST(STORE_OK, store_image_put(s, &next, true, HEAR, &e));
	CHECK_INT(store_image_loose(s, &a, &loose, &e), 0);
	CHECK_INT(loose.at[0], 7);
	CHECK_INT(store_image_list(s, "t1", &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK(!list.rows[0].passwd);
	CHECK_INT(store_image_bytes(s, "t1", &bytes, &e), 0);
	CHECK_INT(bytes, 800);
	MUST(STORE_NOT_FOUND, store_image_drop(s, "t1", "small", 7, HEAR, &e));
	MUST(STORE_OK, store_image_drop(s, "t1", "small", 8, HEAR, &e));
	CHECK_INT(store_image_loose(s, &a, &loose, &e), 0);
	CHECK_INT(loose.n, 2);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(the_tree_of_a_root_is_not_loose)
{
	struct workspace_row row = { .id = "ws_1",
		                     .tenant = "t1",
		                     .num = 1,
		                     .top = 2,
		                     .stack = "[1]",
		                     .spec = "{}",
		                     .state = WORKSPACE_READY,
		                     .root_num = 3,
		                     .root_top = 4,
		                     .root_tree = 7,
		                     .root_image = "small" };
	struct number_list loose;
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	add_tree(s, 7);
	MUST(STORE_OK, store_workspace_insert(s, &row, 1, HEAR, &e));
	CHECK_INT(store_image_loose(s, &a, &loose, &e), 0);
	CHECK_INT(loose.n, 0);
	row.state = WORKSPACE_TRASH;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_STATE,
	                                      (struct workspace_with){ 0 }, HEAR, &e));
	row.state = WORKSPACE_GONE;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_STATE,
	                                      (struct workspace_with){ 0 }, HEAR, &e));
	CHECK_INT(store_image_loose(s, &a, &loose, &e), 0);
	CHECK_INT(loose.n, 1);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(one_tree_has_one_name)
{
	struct image_row row = row_of("small", 7), other = row_of("other", 7);
	struct err e = { 0 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_image_put(s, &row, false, HEAR, &e));
	MUST(STORE_EXISTS, store_image_put(s, &other, false, HEAR, &e));
	store_close(s);
	dir_remove();
}
