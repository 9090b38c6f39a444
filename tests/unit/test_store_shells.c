#include "store/shells.h"

#include "unit/store_fixture.h"

TEST(a_shell_is_kept_replaced_and_dropped)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct shell_list list;
	struct shell_row row = {
		.sandbox = "sb_1", .name = "main", .tenant = "t1", .cwd = "/work"
	};
	struct shell_row other = { .sandbox = "sb_1", .name = "two", .tenant = "t1" };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_shell_put(s, &row, HEAR, &e));
	MUST(STORE_OK, store_shell_put(s, &other, HEAR, &e));
	row = (struct shell_row){ .sandbox = "sb_1",
		                  .name = "main",
		                  .tenant = "t1",
		                  .cwd = "/tmp",
		                  .env = "{\"A\":\"b\"}",
		                  .process = "px_1",
		                  .restarts = 3 };
	MUST(STORE_OK, store_shell_put(s, &row, HEAR, &e));
	CHECK_INT(store_shell_list(s, "t1", "sb_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_STR(list.rows[0].name, "main");
	CHECK_STR(list.rows[0].cwd, "/tmp");
	CHECK_STR(list.rows[0].env, "{\"A\":\"b\"}");
	CHECK_STR(list.rows[0].process, "px_1");
	CHECK_STR(list.rows[0].node, store_node(s));
	CHECK_INT(list.rows[0].restarts, 3);
	CHECK_STR(list.rows[1].env, "{}");
	CHECK_INT(store_shell_list(s, "t2", "sb_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	MUST(STORE_OK, store_shell_drop(s, "sb_1", "none", HEAR, &e));
	CHECK_INT(heard.rows, 0);
	MUST(STORE_OK, store_shell_drop(s, "sb_1", "main", HEAR, &e));
	CHECK_INT(heard.rows, 1);
	MUST(STORE_OK, store_shell_put(s, &row, HEAR, &e));
	MUST(STORE_OK, store_shell_drop(s, "sb_1", NULL, HEAR, &e));
	CHECK_INT(heard.rows, 2);
	row.env = "[]";
	MUST(STORE_INVALID, store_shell_put(s, &row, HEAR, &e));
	row.name = NULL;
	REFUSED(store_shell_put(s, &row, HEAR, &e), "needs its name");
	arena_done(&a);
	store_close(s);
	dir_remove();
}
