#include "store/workspaces.h"

#include "store/sandboxes.h"
#include "store/trees.h"
#include "unit/store_fixture.h"

#define NOTHING ((struct workspace_with){ 0 })

static struct workspace_row row_of(const char *id, int64_t num)
{
	return (struct workspace_row){ .id = id,
		                       .tenant = "t1",
		                       .num = num,
		                       .top = num + 1,
		                       .stack = "[1]",
		                       .spec = "{}",
		                       .rev = 1,
		                       .created_ms = 1000,
		                       .used_ms = 1000 };
}

/* Written out again, from the diagram. */
static const char *const allowed[] = {
	"making>ready failed trash", "ready>trash", "failed>trash", "trash>ready gone", "gone>",
};
_Static_assert(COUNT(allowed) == WORKSPACE_STATE_COUNT, "a state has no row");

static bool is_allowed(int from, int to)
{
	char line[160], word[32];
	size_t n = strlen(workspace_state_name(from));

	CHECK(strncmp(allowed[from], workspace_state_name(from), n) == 0);
	snprintf(line, sizeof line, " %s ", allowed[from] + n + 1);
	snprintf(word, sizeof word, " %s ", workspace_state_name(to));
	return strstr(line, word);
}

TEST(the_matrix_is_the_diagram)
{
	for (int from = 0; from < WORKSPACE_STATE_COUNT; from++)
		for (int to = 0; to < WORKSPACE_STATE_COUNT; to++)
			CHECK_INT(workspace_state_may(from, to), is_allowed(from, to));
}

TEST(keys_are_free_again_in_the_trash)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row got, first = row_of("ws_1", 10), second = row_of("ws_2", 20);
	struct workspace_list list;
	struct workspace_query q = { .page = { .tenant = "t1" } };

	first.key = second.key = "task";
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &first, 1, HEAR, &e));
	MUST(STORE_EXISTS, store_workspace_insert(s, &second, 1, HEAR, &e));
	first.state = WORKSPACE_GONE;
	MUST(STORE_CONFLICT,
	     store_workspace_update(s, &first, WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	first.state = WORKSPACE_TRASH;
	first.ended_ms = 50;
	MUST(STORE_OK, store_workspace_update(s, &first, WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	MUST(STORE_OK, store_workspace_insert(s, &second, 1, HEAR, &e));
	CHECK_INT(store_workspace_by_key(s, "t1", "task", &a, &got, &e), 0);
	CHECK_STR(got.id, "ws_2");
	CHECK_STR(got.mode, "edit");
	CHECK_STR(got.ahead, "[]");
	first.state = WORKSPACE_READY; /* back out of the trash: the name is taken */
	MUST(STORE_EXISTS,
	     store_workspace_update(s, &first, WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_list(s, &q, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	q.states = 1u << WORKSPACE_TRASH;
	CHECK_INT(store_workspace_list(s, &q, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].id, "ws_1");
	CHECK_INT(store_workspace_trashed(s, 49, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	CHECK_INT(store_workspace_trashed(s, 50, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_INT(store_workspace_get(s, "t2", "ws_2", &a, &got, &e), -1);
	CHECK_INT(store_workspace_by_id(s, "ws_2", &a, &got, &e), 0);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(forks_come_together_or_not_at_all)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row got,
	    rows[3] = { row_of("ws_1", 1), row_of("ws_2", 2), row_of("ws_3", 2) };
	struct workspace_list list;
	struct workspace_query q = { .page = { .tenant = "t1" }, .parent = "ws_0" };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_EXISTS, store_workspace_insert(s, rows, 3, HEAR, &e)); /* one number twice */
	CHECK_INT(store_workspace_by_id(s, "ws_1", &a, &got, &e), -1);
	rows[2].num = 3;
	for (size_t i = 0; i < 3; i++)
		rows[i].parent = "ws_0";
	MUST(STORE_OK, store_workspace_insert(s, rows, 3, HEAR, &e));
	CHECK_INT(heard.rows, 3);
	CHECK_INT(store_workspace_list(s, &q, &a, &list, &e), 0);
	CHECK_INT(list.n, 3);
	CHECK_INT(store_workspace_insert(s, rows, 0, HEAR, &e), -1);
	CHECK_INT(store_workspace_insert(s, rows, WORKSPACE_FORKS_MAX + 1, HEAR, &e), -1);
	rows[0].stack = "{}";
	rows[0].id = "ws_4";
	rows[0].num = 4;
	MUST(STORE_INVALID, store_workspace_insert(s, rows, 1, HEAR, &e));
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_is_under_way_or_over_is_found)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row row = row_of("ws_1", 1), got;
	struct workspace_list list;

	row.state = WORKSPACE_READY;
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &row, 1, HEAR, &e));
	CHECK_INT(store_workspace_unsettled(s, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	row.pending = "{\"restore\":4}";
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_PENDING, NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_unsettled(s, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].pending, "{\"restore\":4}");
	row.pending = NULL;
	row.head = 4;
	row.ahead = "[5]";
	row.rev = 2;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_PENDING | WORKSPACE_SET_HEAD,
	                                      NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_by_id(s, "ws_1", &a, &got, &e), 0);
	CHECK(!got.pending);
	CHECK_INT(got.head, 4);
	CHECK_STR(got.ahead, "[5]");
	row.ttl_ms = 10;
	row.expires_ms = 2000;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_LIFE, NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_expired(s, 1999, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	CHECK_INT(store_workspace_expired(s, 2000, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	row.pin = 1;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_LIFE, NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_expired(s, 2000, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	CHECK_INT(store_workspace_update(s, &row, 0, NOTHING, HEAR, &e), -1);
	row.id = "ws_9";
	MUST(STORE_NOT_FOUND,
	     store_workspace_update(s, &row, WORKSPACE_SET_CLEAN, NOTHING, HEAR, &e));
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(who_needs_an_image_by_its_name)
{
	struct err e = { 0 };
	struct workspace_row row = row_of("ws_1", 2);
	struct workspace_by_image q = { "t1", "template:x", NULL };

	dir_make();
	struct store *s = must_open();

	CHECK(!store_workspace_has_image(s, &q));
	row.state = WORKSPACE_READY;
	row.spec = "{\"image\":\"template:x\"}";
	MUST(STORE_OK, store_workspace_insert(s, &row, 1, HEAR, &e));
	CHECK(store_workspace_has_image(s, &q));
	q.but = "ws_1";
	CHECK(!store_workspace_has_image(s, &q));
	q = (struct workspace_by_image){ "t2", "template:x", NULL };
	CHECK(!store_workspace_has_image(s, &q));
	q = (struct workspace_by_image){ "t1", "template:y", NULL };
	CHECK(!store_workspace_has_image(s, &q));
	row.state = WORKSPACE_TRASH;
	row.ended_ms = 5;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	q = (struct workspace_by_image){ "t1", "template:x", NULL };
	CHECK(!store_workspace_has_image(s, &q));
	store_close(s);
	dir_remove();
}

TEST(what_went_with_a_sandbox_is_found_without_it)
{
	static const struct {
		const char *id, *workspace;
		int64_t life;
		bool is_gone;
	} rows[] = {
		{ "sb_1", "ws_1", LIFE_OWNS_WORK | LIFE_PAUSE, true },
		{ "sb_2", "ws_2", LIFE_OWNS_WORK, false },
		{ "sb_3", "ws_3", LIFE_PAUSE, true },
		{ "sb_4", "ws_4", LIFE_OWNS_WORK, true },
		{ "sb_5", "ws_4", 0, false },
	};
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_list list;

	dir_make();
	struct store *s = must_open();

	for (int64_t i = 0; i < 4; i++) {
		struct workspace_row row = row_of(rows[i].workspace, 2 * i + 2);

		row.state = WORKSPACE_READY;
		MUST(STORE_OK, store_workspace_insert(s, &row, 1, HEAR, &e));
	}
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct sandbox_row row = { .id = rows[i].id,
			                   .tenant = "t1",
			                   .generation = 1,
			                   .state = SANDBOX_CREATING,
			                   .spec = "{}",
			                   .slot = -1,
			                   .created_ms = 1,
			                   .workspace = rows[i].workspace,
			                   .life = rows[i].life };

		MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
		if (!rows[i].is_gone)
			continue;
		row.state = SANDBOX_DELETING;
		MUST(STORE_OK, store_sandbox_update(s, &row, SANDBOX_SET_STATE, HEAR, &e));
		row.state = SANDBOX_GONE;
		row.ended_ms = 2;
		MUST(STORE_OK, store_sandbox_update(s, &row, SANDBOX_SET_STATE | SANDBOX_SET_ENDED,
		                                    HEAR, &e));
	}
	CHECK_INT(store_workspace_orphaned(s, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].id, "ws_1");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_top_that_is_given_up_is_trash_at_once)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row row = row_of("ws_1", 1), got;
	struct tree_list list;

	row.state = WORKSPACE_READY;
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &row, 1, HEAR, &e));
	row.top = 30;
	row.begins = 12;
	row.stack = "[7,1]";
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_STACK,
	                                      (struct workspace_with){ .trash = 2 }, HEAR, &e));
	CHECK_INT(store_tree_in(s, TREE_TRASH, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].num, 2);
	CHECK_STR(list.rows[0].owner, "ws_1");
	row.top = 31; /* given up twice: nothing is changed */
	MUST(STORE_EXISTS, store_workspace_update(s, &row, WORKSPACE_SET_STACK,
	                                          (struct workspace_with){ .trash = 2 }, HEAR, &e));
	CHECK_INT(store_workspace_by_id(s, "ws_1", &a, &got, &e), 0);
	CHECK_INT(got.top, 30);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_root_comes_later_and_its_image_is_needed)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_row row = row_of("ws_1", 1), got;
	const struct workspace_with both = { .trash = 2, .root_trash = 41 };
	struct tree_list list;

	row.state = WORKSPACE_READY;
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_workspace_insert(s, &row, 1, HEAR, &e));
	CHECK_INT(store_workspace_by_root(s, 9, &a, &got, &e), -1);
	row.root_num = 40;
	row.root_top = 41;
	row.root_tree = 9;
	row.root_image = "system";
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_ROOT, NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_by_root(s, 9, &a, &got, &e), 0);
	CHECK_STR(got.id, "ws_1");
	CHECK_STR(got.root_image, "system");
	CHECK_INT(got.root_num, 40);
	CHECK_INT(got.root_top, 41);
	row.state = WORKSPACE_TRASH;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_by_root(s, 9, &a, &got, &e), 0); /* it may come back */
	row.state = WORKSPACE_GONE;
	MUST(STORE_OK, store_workspace_update(s, &row, WORKSPACE_SET_STATE, both, HEAR, &e));
	CHECK_INT(store_workspace_by_root(s, 9, &a, &got, &e), -1);
	CHECK_INT(store_tree_in(s, TREE_TRASH, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_bound_holds_for_one_tenant_and_for_all_of_a_batch)
{
	static const struct {
		const char *tenant;
		size_t n;
		uint64_t most;
		enum store_code want;
		uint64_t count; /* then */
	} rows[] = {
		{ "t1", 2, 3, STORE_OK, 2 },       { "t1", 2, 3, STORE_CONFLICT, 2 },
		{ "t2", 3, 3, STORE_OK, 3 },       { "t1", 1, 3, STORE_OK, 3 },
		{ "t1", 1, 3, STORE_CONFLICT, 3 }, { "t1", 1, 0, STORE_OK, 4 },
	};
	char ids[COUNT(rows)][3][16];
	struct workspace_row made[3];
	struct err e = { 0 };
	uint64_t n = 0;

	dir_make();
	struct store *s = must_open();

	for (size_t i = 0; i < COUNT(rows); i++) {
		for (size_t k = 0; k < rows[i].n; k++) {
			snprintf(ids[i][k], sizeof ids[i][k], "ws_%zu_%zu", i, k);
			made[k] = row_of(ids[i][k], (int64_t)(i * 10 + k * 2 + 10));
			made[k].tenant = rows[i].tenant;
		}
		struct workspace_batch batch = { made, rows[i].n, rows[i].most };

		MUST(rows[i].want, store_workspace_insert_within(s, &batch, HEAR, &e));
		CHECK_INT(store_workspace_count(s, rows[i].tenant, &n, &e), 0);
		CHECK_INT(n, rows[i].count);
	}
	made[0] = row_of("ws_0_0", 10);
	made[0].state = WORKSPACE_TRASH;
	MUST(STORE_OK, store_workspace_update(s, &made[0], WORKSPACE_SET_STATE, NOTHING, HEAR, &e));
	CHECK_INT(store_workspace_count(s, "t1", &n, &e), 0);
	CHECK_INT(n, 3);
	CHECK_INT(store_check(s, &e), 0);
	store_close(s);
	dir_remove();
}

TEST(a_stack_is_exchanged_everywhere_at_once)
{
	static const char *const stacks[] = { "[5,6,7]", "[5,6,7]", "[5,6]", "[1]" };
	struct tree_row flat = { .num = 90,
		                 .tenant = "t1",
		                 .kind = "layer",
		                 .owner = "flat",
		                 .key = "k",
		                 .created_ms = 1 };
	const struct stack_change change = { "[5,6,7]", "[90]", 90 };
	struct workspace_row rows[COUNT(stacks)], got;
	struct point_row point = { .id = "cp_1",
		                   .tenant = "t1",
		                   .workspace = "ws_0",
		                   .num = 80,
		                   .stack = "[5,6,7]",
		                   .boot_id = "boot" },
			 found;
	char ids[COUNT(stacks)][8];
	struct err e = { 0 };
	struct arena a = { 0 };
	struct workspace_list list;
	struct tree_row tree;

	dir_make();
	struct store *s = must_open();

	for (size_t i = 0; i < COUNT(stacks); i++) {
		snprintf(ids[i], sizeof ids[i], "ws_%zu", i);
		rows[i] = row_of(ids[i], (int64_t)(10 + 2 * i));
		rows[i].stack = stacks[i];
	}
	MUST(STORE_OK, store_workspace_insert(s, rows, COUNT(rows), HEAR, &e));
	rows[0].head = 80;
	rows[0].ahead = "[]";
	MUST(STORE_OK,
	     store_workspace_update(s, &rows[0], WORKSPACE_SET_HEAD,
	                            (struct workspace_with){ .point = &point }, HEAR, &e));
	CHECK_INT(store_stack_long(s, 1, 10, &a, &list, &e), 0);
	CHECK_INT(list.n, 2); /* each once */
	CHECK_INT(store_stack_long(s, 2, 10, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].stack, "[5,6,7]");
	MUST(STORE_CONFLICT, store_stack_replace(s, &change, HEAR, &e)); /* there is no such tree */
	CHECK_INT(store_workspace_by_id(s, "ws_1", &a, &got, &e), 0);
	CHECK_STR(got.stack, "[5,6,7]");
	MUST(STORE_OK, store_tree_insert(s, &flat, HEAR, &e));
	MUST(STORE_OK, store_stack_replace(s, &change, HEAR, &e));
	for (size_t i = 0; i < COUNT(stacks); i++) {
		CHECK_INT(store_workspace_by_id(s, ids[i], &a, &got, &e), 0);
		CHECK_STR(got.stack, i < 2 ? "[90]" : stacks[i]);
	}
	CHECK_INT(store_point_by_num(s, 80, &a, &found, &e), 0);
	CHECK_STR(found.stack, "[90]");
	CHECK_INT(store_tree_get(s, 90, &a, &tree, &e), 0);
	CHECK_INT(tree.state, TREE_READY);
	CHECK_INT(store_stack_long(s, 2, 10, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	arena_done(&a);
	store_close(s);
	dir_remove();
}
