#include "store/tokens.h"

#include "unit/store_fixture.h"

static struct token_row row_of(const char *id, uint8_t hash)
{
	return (struct token_row){ .id = id,
		                   .tenant = "t1",
		                   .name = "ci",
		                   .hash = { hash },
		                   .scopes = "exec files",
		                   .created_ms = 10 };
}

TEST(validity)
{
	static const struct {
		struct token_row row;
		bool is_valid;
	} rows[] = {
		{ { 0 }, true },
		{ { .expires_ms = 101 }, true },
		{ { .expires_ms = 100 }, false },
		{ { .revoked_ms = 1 }, false },
		{ { .expires_ms = 101, .revoked_ms = 1000 }, false },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT(token_is_valid(&rows[i].row, 100), rows[i].is_valid);
}

TEST(a_token_is_found_by_its_hash_only)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct token_row got, row = row_of("tk_1", 1), twin = row_of("tk_2", 1);
	uint8_t hash[STORE_HASH_BYTES] = { 1 };

	row.expires_ms = 99;
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_token_insert(s, &row, HEAR, &e));
	MUST(STORE_EXISTS, store_token_insert(s, &twin, HEAR, &e));
	CHECK_INT(store_token_by_hash(s, hash, &a, &got, &e), 0);
	CHECK_STR(got.id, "tk_1");
	CHECK_STR(got.tenant, "t1");
	CHECK_STR(got.name, "ci");
	CHECK_STR(got.scopes, "exec files");
	CHECK_STR(got.node, store_node(s));
	CHECK_INT(got.created_ms, 10);
	CHECK_INT(got.expires_ms, 99);
	CHECK_INT(got.revoked_ms + got.last_used_ms, 0);
	CHECK(memcmp(got.hash, hash, sizeof hash) == 0);
	hash[STORE_HASH_BYTES - 1] = 1;
	CHECK_INT(store_token_by_hash(s, hash, &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	twin.hash[0] = 2;
	twin.scopes = NULL;
	REFUSED(store_token_insert(s, &twin, HEAR, &e), "needs its scopes");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(revoked_once_and_for_all)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct token_row got, row = row_of("tk_1", 1);

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_token_insert(s, &row, HEAR, &e));
	MUST(STORE_NOT_FOUND, store_token_revoke(s, "t2", "tk_1", 50, HEAR, &e));
	MUST(STORE_NOT_FOUND, store_token_revoke(s, "t1", "tk_2", 50, HEAR, &e));
	MUST(STORE_OK, store_token_revoke(s, "t1", "tk_1", 50, HEAR, &e));
	MUST(STORE_OK, store_token_revoke(s, "t1", "tk_1", 60, HEAR, &e));
	CHECK_INT(store_token_by_hash(s, row.hash, &a, &got, &e), 0);
	CHECK_INT(got.revoked_ms, 50);
	REFUSED(store_token_revoke(s, "t1", "tk_1", 0, HEAR, &e), "at what time");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(use_is_remembered_by_the_minute)
{
	static const struct {
		int64_t at, want, rows;
	} uses[] = {
		{ 1000000, 1000000, 1 },
		{ 1000001, 1000000, 0 },
		{ 1000000 + TOKEN_TOUCH_MS - 1, 1000000, 0 },
		{ 1000000 + TOKEN_TOUCH_MS, 1000000 + TOKEN_TOUCH_MS, 1 },
		{ 5, 1000000 + TOKEN_TOUCH_MS, 0 }, /* the clock went back */
	};
	struct err e = { 0 };
	struct token_row row = row_of("tk_1", 1);

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_token_insert(s, &row, HEAR, &e));
	for (size_t i = 0; i < COUNT(uses); i++) {
		struct arena a = { 0 };
		struct token_row got;

		MUST(STORE_OK, store_token_touch(s, "tk_1", uses[i].at, HEAR, &e));
		CHECK_INT(heard.rows, uses[i].rows);
		CHECK_INT(store_token_by_hash(s, row.hash, &a, &got, &e), 0);
		CHECK_INT(got.last_used_ms, uses[i].want);
		arena_done(&a);
	}
	store_close(s);
	dir_remove();
}

TEST(lists_are_of_one_tenant)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct token_list list;
	char id[32];

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < 5; i++) {
		snprintf(id, sizeof id, "tk_%d", i);
		struct token_row row = row_of(id, (uint8_t)(i + 1));

		row.tenant = i == 2 ? "t2" : "t1";
		MUST(STORE_OK, store_token_insert(s, &row, HEAR, &e));
	}
	struct store_page page = { .tenant = "t1", .limit = 3 };

	CHECK_INT(store_token_list(s, &page, &a, &list, &e), 0);
	CHECK_INT(list.n, 3);
	CHECK_STR(list.rows[2].id, "tk_1");
	page.cursor = list.next;
	CHECK_INT(store_token_list(s, &page, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].id, "tk_0");
	CHECK(!list.next);
	page.tenant = NULL;
	REFUSED(store_token_list(s, &page, &a, &list, &e), "one tenant");
	arena_done(&a);
	store_close(s);
	dir_remove();
}
