#include "store/templates.h"

#include "unit/store_fixture.h"

static void add_build(struct store *s, const char *template, const char *id, enum build_state state)
{
	struct err e = { 0 };
	const struct build_row row = { .id = id,
		                       .tenant = "t1",
		                       .template = template,
		                       .state = state,
		                       .tags = "[\"v1\"]",
		                       .created_ms = 5 };

	MUST(STORE_OK, store_build_insert(s, &row, HEAR, &e));
}

static void tag(struct store *s, const char *name, const char *build)
{
	struct err e = { 0 };
	const struct tag_row row = {
		.template = "tp_1", .tag = name, .build = build, .created_ms = 6
	};

	MUST(STORE_OK, store_tag_put(s, &row, HEAR, &e));
}

TEST(a_name_leads_to_builds_by_tags_that_move)
{
	const struct template_row row = { .id = "tp_1", .tenant = "t1", .name = "mine" };
	struct template_row got;
	struct build_row build;
	struct build_list list;
	struct tag_list tags;
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_template_insert(s, &row, HEAR, &e));
	MUST(STORE_EXISTS,
	     store_template_insert(
		 s, &(struct template_row){ .id = "tp_2", .tenant = "t1", .name = "mine" }, HEAR,
		 &e));
	CHECK_INT(store_template_by_name(s, "t1", "mine", &a, &got, &e), 0);
	CHECK_STR(got.id, "tp_1");
	CHECK_INT(store_template_by_name(s, "t2", "mine", &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	add_build(s, "tp_1", "b1", BUILD_READY);
	add_build(s, "tp_1", "b2", BUILD_READY);
	add_build(s, "tp_1", "b3", BUILD_WAITING);
	tag(s, "v1", "b1");
	tag(s, "stable", "b1");
	CHECK_INT(store_build_by_tag(s, "tp_1", "v1", &a, &build, &e), 0);
	CHECK_STR(build.id, "b1");
	CHECK_INT(store_build_loose(s, "tp_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].id, "b2");
	tag(s, "v1", "b2");
	CHECK_INT(store_build_loose(s, "tp_1", &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	MUST(STORE_OK,
	     store_tag_drop(s, &(struct tag_row){ .template = "tp_1", .tag = "stable" }, HEAR, &e));
	MUST(STORE_NOT_FOUND,
	     store_tag_drop(s, &(struct tag_row){ .template = "tp_1", .tag = "stable" }, HEAR, &e));
	CHECK_INT(store_tag_list(s, "tp_1", &a, &tags, &e), 0);
	CHECK_INT(tags.n, 1);
	MUST(STORE_NOT_FOUND, store_template_drop(s, "t2", "tp_1", HEAR, &e));
	CHECK_INT(store_build_get(s, "t1", "b2", &a, &build, &e), 0);
	MUST(STORE_OK, store_template_drop(s, "t1", "tp_1", HEAR, &e));
	CHECK_INT(store_build_get(s, "t1", "b2", &a, &build, &e), -1);
	CHECK_INT(store_tag_list(s, "tp_1", &a, &tags, &e), 0);
	CHECK_INT(tags.n, 0);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_build_says_lines_ends_and_is_ended_by_a_restart)
{
	const struct build_row done = { .id = "b1",
		                        .tenant = "t1",
		                        .template = "tp_1",
		                        .tags = "[]",
		                        .state = BUILD_READY,
		                        .context = "{}",
		                        .image = "template:b1",
		                        .workspace = "ws_1",
		                        .ended_ms = 9 };
	struct build_row got;
	struct build_list list;
	struct line_row said[5];
	struct line_list lines;
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	add_build(s, "tp_1", "b1", BUILD_BUILDING);
	add_build(s, "tp_1", "b2", BUILD_BUILDING);
	CHECK_INT(store_build_unfinished(s, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	for (int64_t i = 0; i < 5; i++)
		said[i] = (struct line_row){ .build = "b1",
			                     .num = i,
			                     .at_ms = i,
			                     .level = "info",
			                     .text = i == 3 ? "three" : "x" };
	MUST(STORE_OK, store_build_say(s, said, 1, HEAR, &e));
	MUST(STORE_OK, store_build_say(s, said + 1, 4, HEAR, &e));
	CHECK_INT(store_build_lines(s, &(struct line_query){ "b1", 3, 100 }, &a, &lines, &e), 0);
	CHECK_INT(lines.n, 2);
	CHECK_STR(lines.rows[0].text, "three");
	CHECK_INT(store_build_lines(s, &(struct line_query){ "b1", 0, 2 }, &a, &lines, &e), 0);
	CHECK_INT(lines.n, 2);
	CHECK_INT(store_build_by_tag(s, "tp_1", "v1", &a, &got, &e), -1);
	MUST(STORE_OK, store_build_update(
			   s, &done, BUILD_SET_STATE | BUILD_SET_MADE | BUILD_SET_ENDED, HEAR, &e));
	CHECK_INT(store_build_by_tag(s, "tp_1", "v1", &a, &got, &e), 0); /* in the same moment */
	CHECK_STR(got.id, "b1");
	tag(s, "v2", "b2"); /* of one that is not ready */
	CHECK_INT(store_build_by_tag(s, "tp_1", "v2", &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	CHECK_INT(store_build_unfinished(s, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].id, "b2");
	MUST(STORE_OK, store_build_unlock(s, "restarted", HEAR, &e));
	CHECK_INT(store_build_get(s, "t1", "b1", &a, &got, &e), 0);
	CHECK_INT(got.state, BUILD_READY);
	CHECK_STR(got.tags, "[\"v1\"]");
	CHECK_STR(got.image, "template:b1");
	CHECK_INT(store_build_get(s, "t1", "b2", &a, &got, &e), 0);
	CHECK_INT(got.state, BUILD_ERROR);
	CHECK_STR(got.reason, "restarted");
	MUST(STORE_OK, store_build_drop(s, "b1", HEAR, &e));
	MUST(STORE_NOT_FOUND, store_build_update(s, &done, BUILD_SET_STATE, HEAR, &e));
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_step_is_of_a_tenant_and_the_last_one_counts)
{
	struct step_row row = { .tenant = "t1", .hash = "aa", .workspace = "ws_1" }, got;
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_step_put(s, &row, HEAR, &e));
	row.workspace = "ws_2";
	MUST(STORE_OK, store_step_put(s, &row, HEAR, &e));
	CHECK_INT(store_step_get(s, "t1", "aa", &a, &got, &e), 0);
	CHECK_STR(got.workspace, "ws_2");
	CHECK_INT(store_step_get(s, "t2", "aa", &a, &got, &e), -1);
	MUST(STORE_OK, store_build_unlock(s, "restarted", HEAR, &e)); /* there is no ws_2 */
	CHECK_INT(store_step_get(s, "t1", "aa", &a, &got, &e), -1);
	arena_done(&a);
	store_close(s);
	dir_remove();
}
