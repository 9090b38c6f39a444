#include "store/secrets.h"

#include "unit/store_fixture.h"

static struct secret_row row_of(const char *name, const char *sealed)
{
	return (struct secret_row){ .tenant = "t1",
		                    .name = name,
		                    .bind = "{\"hosts\":[\"a.test\"]}",
		                    .sealed = sealed,
		                    .changed_ms = 5 };
}

TEST(set_used_set_again_and_dropped)
{
	struct secret_row row = row_of("one", "AAAA"), next = row_of("one", "BBBB"), got;
	struct secret_row use = { .tenant = "t1", .name = "one", .uses = 2, .last_used_ms = 70 };
	struct secret_list list;
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_secret_put(s, &row, HEAR, &e));
	CHECK_INT(store_secret_get(s, "t1", "one", &a, &got, &e), 0);
	CHECK_STR(got.sealed, "AAAA");
	CHECK_INT(got.version, 1);
	CHECK_INT(got.last_used_ms, 0);
	CHECK_INT(store_secret_get(s, "t2", "one", &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	MUST(STORE_OK, store_secret_used(s, &use, HEAR, &e));
	use.last_used_ms = 60; /* told late: the later one counts */
	MUST(STORE_OK, store_secret_used(s, &use, HEAR, &e));
	next.changed_ms = 9;
	MUST(STORE_OK, store_secret_put(s, &next, HEAR, &e));
	CHECK_INT(store_secret_get(s, "t1", "one", &a, &got, &e), 0);
	CHECK_STR(got.sealed, "BBBB");
	CHECK_INT(got.version, 2);
	CHECK_INT(got.created_ms, 5);
	CHECK_INT(got.changed_ms, 9);
	CHECK_INT(got.uses, 4);
	CHECK_INT(got.last_used_ms, 70);
	CHECK_INT(store_secret_list(s, "t1", &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	MUST(STORE_OK, store_secret_drop(s, "t1", "one", HEAR, &e));
	MUST(STORE_NOT_FOUND, store_secret_drop(s, "t1", "one", HEAR, &e));
	MUST(STORE_OK, store_secret_used(s, &use, HEAR, &e)); /* of one that is gone */
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_a_row_cannot_be_is_refused)
{
	struct secret_row broken = row_of("one", "AAAA"), nameless = row_of("", "AAAA");
	struct err e = { 0 };

	dir_make();
	struct store *s = must_open();

	broken.bind = "not json";
	MUST(STORE_INVALID, store_secret_put(s, &broken, HEAR, &e));
	CHECK_INT(store_secret_put(s, &nameless, HEAR, &e), -1);
	store_close(s);
	dir_remove();
}
