#include "store/repos.h"

#include "unit/store_fixture.h"

static struct repo_row some(const char *id, const char *key, const char *url)
{
	return (struct repo_row){ .id = id,
		                  .tenant = "t1",
		                  .key = key,
		                  .url = url,
		                  .refs = "[\"refs/heads/*\"]",
		                  .refresh = "always",
		                  .state = REPO_CLONING,
		                  .created_ms = 5 };
}

static int by_url(struct store *s, const char *tenant, const char *cred, struct repo_row *out)
{
	static struct arena a;
	const struct repo_row like = { .tenant = tenant,
		                       .url = "https://git.test/app.git",
		                       .cred = cred };
	struct err e = { 0 };

	return store_repo_by_url(s, &like, &a, out, &e);
}

TEST(a_tenant_has_one_repository_for_a_key_and_one_for_a_url)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct repo_row got;
	struct repo_row first = some("rp_1", "app", "https://git.test/app.git");
	struct repo_row same_key = some("rp_2", "app", "https://git.test/other.git");
	struct repo_row same_url = some("rp_3", "two", "https://git.test/app.git");

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_repo_insert(s, &first, HEAR, &e));
	MUST(STORE_EXISTS, store_repo_insert(s, &same_key, HEAR, &e));
	MUST(STORE_EXISTS, store_repo_insert(s, &same_url, HEAR, &e));
	same_url.cred = "work"; /* another credential may see something else */
	MUST(STORE_OK, store_repo_insert(s, &same_url, HEAR, &e));
	same_key.tenant = "t2";
	MUST(STORE_OK, store_repo_insert(s, &same_key, HEAR, &e));

	CHECK_INT(by_url(s, "t1", NULL, &got), 0);
	CHECK_STR(got.id, "rp_1");
	CHECK_INT(by_url(s, "t1", "work", &got), 0);
	CHECK_STR(got.id, "rp_3");
	CHECK_INT(by_url(s, "t2", NULL, &got), -1);
	CHECK_INT(store_repo_by_key(s, "t2", "app", &a, &got, &e), 0);
	CHECK_STR(got.id, "rp_2");
	CHECK_INT(store_repo_get(s, "t1", "rp_2", &a, &got, &e), -1);

	first.state = REPO_GONE; /* its names are free again */
	first.ended_ms = 9;
	MUST(STORE_OK, store_repo_update(s, &first, REPO_SET_STATE | REPO_SET_ENDED, HEAR, &e));
	CHECK_INT(store_repo_by_key(s, "t1", "app", &a, &got, &e), -1);
	first = some("rp_4", "app", "https://git.test/app.git");
	MUST(STORE_OK, store_repo_insert(s, &first, HEAR, &e));
	struct store_page page = { .tenant = "t1" };
	struct repo_list list;

	CHECK_INT(store_repo_list(s, &page, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_STR(list.rows[0].id, "rp_4");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(whoever_moved_a_row_first_has_the_lock)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct repo_row got, row = some("rp_1", "app", "/srv/app");

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_repo_insert(s, &row, HEAR, &e));
	row.state = REPO_REFRESHING;
	MUST(STORE_CONFLICT, store_repo_update(s, &row, REPO_SET_STATE, HEAR, &e));
	row.state = REPO_READY;
	row.generation = 1;
	row.fetched_ms = 7;
	row.head = "main";
	MUST(STORE_OK, store_repo_update(s, &row, REPO_SET_STATE | REPO_SET_FETCHED, HEAR, &e));
	row.state = REPO_REFRESHING;
	MUST(STORE_OK, store_repo_update(s, &row, REPO_SET_STATE, HEAR, &e));
	MUST(STORE_CONFLICT, store_repo_update(s, &row, REPO_SET_STATE, HEAR, &e));
	row.state = REPO_GONE;
	MUST(STORE_CONFLICT, store_repo_update(s, &row, REPO_SET_STATE, HEAR, &e));

	struct repo_row second = some("rp_2", "lib", "/srv/lib");

	MUST(STORE_OK, store_repo_insert(s, &second, HEAR, &e));
	MUST(STORE_OK, store_repo_unlock(s, "the daemon died", HEAR, &e));
	CHECK_INT(heard.rows, 2);
	CHECK_INT(store_repo_get(s, "t1", "rp_1", &a, &got, &e), 0);
	CHECK_INT(got.state, REPO_READY);
	CHECK_STR(got.head, "main");
	CHECK_INT(store_repo_get(s, "t1", "rp_2", &a, &got, &e), 0);
	CHECK_INT(got.state, REPO_FAILED);
	CHECK_STR(got.state_reason, "the daemon died");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_a_name_meant_is_void_after_a_fetch)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct repo_row row = some("rp_1", "app", "/srv/app");
	struct ref_row got, ref = { .repo = "rp_1",
		                    .name = "main",
		                    .sha = "4218351a097c12dae651700e2ffb4319b1a6e234",
		                    .branch = "main",
		                    .generation = 1 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_repo_insert(s, &row, HEAR, &e));
	MUST(STORE_OK, store_ref_put(s, &ref, HEAR, &e));
	ref.generation = 2;
	MUST(STORE_OK, store_ref_put(s, &ref, HEAR, &e));
	CHECK_INT(store_ref_get(s, "rp_1", "main", &a, &got, &e), 0);
	CHECK_INT(got.generation, 2);
	CHECK_STR(got.branch, "main");
	row.state = REPO_READY;
	row.generation = 3;
	MUST(STORE_OK, store_repo_update(s, &row, REPO_SET_STATE | REPO_SET_FETCHED, HEAR, &e));
	CHECK_INT(store_ref_get(s, "rp_1", "main", &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	arena_done(&a);
	store_close(s);
	dir_remove();
}
