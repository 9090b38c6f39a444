#include "store/ports.h"

#include "unit/store_fixture.h"

TEST(a_port_is_kept_found_replaced_and_dropped)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct port_list list;
	struct port_row got, row = { .sandbox = "sb_1",
		                     .tenant = "t1",
		                     .port = 3000,
		                     .token_hash = { 1 },
		                     .created_ms = 5,
		                     .expires_ms = 9 };
	struct port_row second = { .sandbox = "sb_1",
		                   .tenant = "t1",
		                   .port = 80,
		                   .local_port = 8080,
		                   .token_hash = { 2 },
		                   .created_ms = 6 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_port_put(s, &row, HEAR, &e));
	MUST(STORE_OK, store_port_put(s, &second, HEAR, &e));
	CHECK_INT(store_port_list(s, "t1", "sb_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_INT(list.rows[0].port, 80);
	CHECK_INT(list.rows[0].local_port, 8080);
	CHECK_INT(list.rows[0].expires_ms, 0);
	CHECK_INT(store_port_list(s, "t2", "sb_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	CHECK_INT(store_port_by_token(s, row.token_hash, &a, &got, &e), 0);
	CHECK_INT(got.port, 3000);
	CHECK_INT(got.expires_ms, 9);
	CHECK_STR(got.tenant, "t1");
	CHECK_STR(got.node, store_node(s));
	CHECK(memcmp(got.token_hash, row.token_hash, STORE_HASH_BYTES) == 0);

	row.token_hash[0] = 3;
	MUST(STORE_OK, store_port_put(s, &row, HEAR, &e));
	CHECK_INT(store_port_by_token(s, got.token_hash, &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	row.sandbox = "sb_2"; /* another sandbox, the same token */
	MUST(STORE_EXISTS, store_port_put(s, &row, HEAR, &e));
	row.port = 0;
	row.token_hash[0] = 4;
	MUST(STORE_INVALID, store_port_put(s, &row, HEAR, &e));
	MUST(STORE_OK, store_port_drop(s, "sb_1", 81, HEAR, &e));
	CHECK_INT(heard.rows, 0);
	MUST(STORE_OK, store_port_drop(s, "sb_1", 80, HEAR, &e));
	CHECK_INT(heard.rows, 1);
	MUST(STORE_OK, store_port_put(s, &second, HEAR, &e));
	MUST(STORE_OK, store_port_drop(s, "sb_1", 0, HEAR, &e));
	CHECK_INT(heard.rows, 2);
	arena_done(&a);
	store_close(s);
	dir_remove();
}
