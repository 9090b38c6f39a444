#include "store/approvals.h"

#include "unit/store_fixture.h"

static struct approval_row row_of(const char *id, const char *what)
{
	return (struct approval_row){ .id = id,
		                      .tenant = "t1",
		                      .kind = "net",
		                      .sandbox = "sb_1",
		                      .workspace = "ws_1",
		                      .what = what,
		                      .created_ms = 10,
		                      .until_ms = 90 };
}

static struct approval_row decision_of(const char *id, enum approval_state state, const char *scope)
{
	return (struct approval_row){
		.id = id, .state = state, .scope = scope, .actor = "uid:0", .decided_ms = 50
	};
}

TEST(asked_decided_once_and_never_again)
{
	struct approval_row row = row_of("ap_1", "a"), got;
	struct approval_row yes = decision_of("ap_1", APPROVAL_ALLOWED, "once");
	struct approval_row no = decision_of("ap_1", APPROVAL_DENIED, "once");
	struct approval_row open = { .id = "ap_1", .state = APPROVAL_PENDING };
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_approval_insert(s, &row, HEAR, &e));
	MUST(STORE_EXISTS, store_approval_insert(s, &row, HEAR, &e));
	CHECK_INT(store_approval_get(s, "t1", "ap_1", &a, &got, &e), 0);
	CHECK_INT(got.state, APPROVAL_PENDING);
	CHECK_STR(got.detail, "{}");
	int64_t rev = got.rev;

	CHECK_INT(store_approval_get(s, "t2", "ap_1", &a, &got, &e), -1);
	CHECK_INT(store_approval_get(s, NULL, "ap_1", &a, &got, &e), 0);
	CHECK_INT(store_approval_decide(s, &open, HEAR, &e), -1);
	MUST(STORE_OK, store_approval_decide(s, &yes, HEAR, &e));
	MUST(STORE_CONFLICT, store_approval_decide(s, &no, HEAR, &e));
	MUST(STORE_CONFLICT, store_approval_decide(s, &yes, HEAR, &e));
	no.id = "ap_2";
	MUST(STORE_NOT_FOUND, store_approval_decide(s, &no, HEAR, &e));
	MUST(STORE_OK, store_approval_applied(s, "ap_1", 60, HEAR, &e));
	CHECK_INT(store_approval_get(s, "t1", "ap_1", &a, &got, &e), 0);
	CHECK_INT(got.state, APPROVAL_ALLOWED);
	CHECK_STR(got.actor, "uid:0");
	CHECK_INT(got.applied_ms, 60);
	CHECK(got.rev > rev);
	CHECK_INT(store_approval_rev(s), got.rev);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_stands_is_found_for_its_scope_until_its_end)
{
	static const struct {
		const char *what, *sandbox, *workspace, *kind;
		int64_t now_ms;
		const char *found; /* NULL: none */
	} rows[] = {
		{ "box", "sb_1", "ws_1", "net", 60, "ap_box" },
		{ "box", "sb_1", NULL, "net", 60, "ap_box" },
		{ "box", "sb_2", "ws_1", "net", 60, NULL },
		{ "box", "sb_1", "ws_1", "push", 60, NULL },
		{ "box", "sb_1", "ws_1", "net", 100, NULL }, /* its time is over */
		{ "tree", "sb_2", "ws_1", "net", 60, "ap_tree" },
		{ "tree", "sb_1", "ws_2", "net", 60, NULL },
		{ "tree", "sb_1", "ws_1", "net", 1000000, "ap_tree" }, /* it has none */
		{ "once", "sb_1", "ws_1", "net", 60, NULL },
		{ "new", "sb_1", "ws_1", "net", 60, "ap_new" }, /* the last word */
		{ "other", "sb_1", "ws_1", "net", 60, NULL },
	};
	static const struct {
		const char *id, *what, *scope;
		enum approval_state state;
		int64_t decided_ms, expires_ms;
	} made[] = {
		{ "ap_box", "box", "sandbox", APPROVAL_ALLOWED, 50, 100 },
		{ "ap_tree", "tree", "workspace", APPROVAL_DENIED, 50, 0 },
		{ "ap_once", "once", "once", APPROVAL_ALLOWED, 50, 0 },
		{ "ap_new", "new", "sandbox", APPROVAL_DENIED, 55, 0 },
		{ "ap_old", "new", "workspace", APPROVAL_ALLOWED, 50, 0 },
	};
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	for (size_t i = 0; i < COUNT(made); i++) {
		struct approval_row row = row_of(made[i].id, made[i].what);
		struct approval_row d = decision_of(made[i].id, made[i].state, made[i].scope);

		d.decided_ms = made[i].decided_ms;
		d.expires_ms = made[i].expires_ms;
		MUST(STORE_OK, store_approval_insert(s, &row, HEAR, &e));
		MUST(STORE_OK, store_approval_decide(s, &d, HEAR, &e));
	}
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct approval_row like = { .tenant = "t1",
			                           .kind = rows[i].kind,
			                           .what = rows[i].what,
			                           .sandbox = rows[i].sandbox,
			                           .workspace = rows[i].workspace,
			                           .decided_ms = rows[i].now_ms };
		struct approval_row got;
		int r = store_approval_standing(s, &like, &a, &got, &e);

		CHECK_INT(r, rows[i].found ? 0 : -1);
		if (r == 0)
			CHECK_STR(got.id, rows[i].found);
	}
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(lists_changes_and_what_is_purged)
{
	struct approval_query pending = { .page = { .tenant = "t1" },
		                          .states = 1u << APPROVAL_PENDING };
	struct approval_query all = { .page = { .is_all_tenants = true } };
	struct approval_row one = row_of("ap_1", "a"), two = row_of("ap_2", "b");
	struct approval_row other = row_of("ap_3", "c");
	struct approval_row late = { .id = "ap_1",
		                     .state = APPROVAL_EXPIRED,
		                     .reason = "nobody answered in time",
		                     .decided_ms = 90 };
	struct approval_row stands = decision_of("ap_2", APPROVAL_ALLOWED, "sandbox");
	struct approval_list list;
	struct err e = { 0 };
	struct arena a = { 0 };

	other.tenant = "t2";
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_approval_insert(s, &one, HEAR, &e));
	MUST(STORE_OK, store_approval_insert(s, &two, HEAR, &e));
	MUST(STORE_OK, store_approval_insert(s, &other, HEAR, &e));
	CHECK_INT(store_approval_list(s, &pending, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	CHECK_STR(list.rows[0].id, "ap_2");
	int64_t rev = store_approval_rev(s);

	MUST(STORE_OK, store_approval_decide(s, &late, HEAR, &e));
	CHECK_INT(store_approval_list(s, &pending, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	all.after = rev;
	CHECK_INT(store_approval_changes(s, &all, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].reason, "nobody answered in time");
	all.after = 0;
	all.upto = rev;
	CHECK_INT(store_approval_changes(s, &all, &a, &list, &e), 0);
	CHECK_INT(list.n, 2);
	stands.expires_ms = 500;
	MUST(STORE_OK, store_approval_decide(s, &stands, HEAR, &e));
	MUST(STORE_OK, store_purge(s, 400, HEAR, &e));
	CHECK_INT(store_approval_get(s, NULL, "ap_1", &a, &one, &e), -1);
	CHECK_INT(store_approval_get(s, NULL, "ap_2", &a, &one, &e), 0); /* it stands */
	CHECK_INT(store_approval_get(s, NULL, "ap_3", &a, &one, &e), 0); /* it waits */
	MUST(STORE_OK, store_purge(s, 600, HEAR, &e));
	CHECK_INT(store_approval_get(s, NULL, "ap_2", &a, &one, &e), -1);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(names_there_and_back)
{
	for (enum approval_kind k = 0; k < APPROVAL_KINDS; k++)
		CHECK_INT(approval_kind_of(approval_kind_name(k)), k);
	for (enum approval_state k = 0; k < APPROVAL_STATE_COUNT; k++)
		CHECK_INT(approval_state_of(approval_state_name(k)), k);
	for (enum approval_scope k = 0; k < APPROVAL_SCOPES; k++)
		CHECK_INT(approval_scope_of(approval_scope_name(k)), k);
	CHECK_INT(approval_kind_of("nothing"), APPROVAL_KINDS);
}
