#include "store/ports.h"
#include "store/processes.h"
#include "store/sandboxes.h"
#include "store/shells.h"
#include "store/tokens.h"
#include "unit/store_fixture.h"

TEST(facts_are_set_and_read)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	const char *value = "?";

	dir_make();
	struct store *s = must_open();

	CHECK_INT(store_meta_get(s, "none", &a, &value, &e), 0);
	CHECK(!value);
	MUST(STORE_OK, store_meta_set(s, "k", "one", HEAR, &e));
	MUST(STORE_OK, store_meta_set(s, "k", "two", HEAR, &e));
	CHECK_INT(store_meta_get(s, "k", &a, &value, &e), 0);
	CHECK_STR(value, "two");
	CHECK_INT(store_meta_get(s, "born_ms", &a, &value, &e), 0);
	CHECK(strtoll(value, NULL, 10) > 1700000000000ll);
	CHECK_INT(store_meta_get(s, "node", &a, &value, &e), 0);
	CHECK_STR(value, store_node(s));
	arena_done(&a);
	store_close(s);
	dir_remove();
}

static int n_of(struct store *s)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_query q = { .page = { .tenant = "t1" },
		                   .states = (1u << SANDBOX_STATE_COUNT) - 1 };
	struct sandbox_list list;

	CHECK_INT(store_sandbox_list(s, &q, &a, &list, &e), 0);
	arena_done(&a);
	return (int)list.n;
}

static void fill(struct store *s, const char *id, int64_t ended_ms)
{
	struct err e = { 0 };
	char process[32];
	struct sandbox_row row = {
		.id = id, .tenant = "t1", .spec = "{}", .slot = -1, .labels = "{\"a\":\"b\"}"
	};
	struct sandbox_row end = { .id = id, .state = SANDBOX_DELETING, .ended_ms = ended_ms };
	struct shell_row shell = { .sandbox = id, .name = "main", .tenant = "t1" };
	struct port_row port = { .sandbox = id, .tenant = "t1", .port = 80 };

	memcpy(port.token_hash, id, strlen(id));
	snprintf(process, sizeof process, "px_%s", id);
	MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
	MUST(STORE_OK, store_shell_put(s, &shell, HEAR, &e));
	MUST(STORE_OK, store_port_put(s, &port, HEAR, &e));
	struct process_row px = { .id = process, .tenant = "t1", .sandbox = id, .argv = "[]" };

	MUST(STORE_OK, store_process_insert(s, &px, HEAR, &e));
	if (!ended_ms)
		return;
	px = (struct process_row){ .id = process, .state = PROCESS_KILLED, .ended_ms = ended_ms };
	MUST(STORE_OK, store_process_finish(s, &px, HEAR, &e));
	MUST(STORE_OK, store_sandbox_update(s, &end, SANDBOX_SET_STATE, HEAR, &e));
	end.state = SANDBOX_GONE;
	MUST(STORE_OK,
	     store_sandbox_update(s, &end, SANDBOX_SET_STATE | SANDBOX_SET_ENDED, HEAR, &e));
}

static int64_t purge_all(struct store *s, int64_t before_ms)
{
	struct err e = { 0 };
	int64_t total = 0;

	do {
		MUST(STORE_OK, store_purge(s, before_ms, HEAR, &e));
		total += heard.rows;
	} while (heard.rows);
	return total;
}

TEST(purge_removes_what_ended_and_nothing_else)
{
	static const struct text_pair label = { "a", "b" };
	struct err e = { 0 };
	struct arena a = { 0 };
	struct shell_list shells;
	struct port_list ports;
	struct process_row px;
	struct sandbox_list list;
	struct sandbox_query q = { .page = { .tenant = "t1" },
		                   .labels = &label,
		                   .n_labels = 1,
		                   .states = (1u << SANDBOX_STATE_COUNT) - 1 };

	dir_make();
	struct store *s = must_open();

	fill(s, "sb_old", 100);
	fill(s, "sb_new", 200);
	fill(s, "sb_live", 0);
	CHECK_INT(purge_all(s, 100), 0);
	CHECK_INT(purge_all(s, 101), 5); /* process, shell, port, label, sandbox */
	CHECK_INT(n_of(s), 2);
	CHECK_INT(store_process_get(s, "t1", "px_sb_old", &a, &px, &e), -1);
	CHECK_INT(store_shell_list(s, "t1", "sb_old", &a, &shells, &e), 0);
	CHECK_INT(shells.n, 0);
	CHECK_INT(store_port_list(s, "t1", "sb_old", &a, &ports, &e), 0);
	CHECK_INT(ports.n, 0);
	CHECK_INT(purge_all(s, INT64_MAX), 5);
	CHECK_INT(n_of(s), 1);
	CHECK_INT(store_process_get(s, "t1", "px_sb_live", &a, &px, &e), 0);
	CHECK_INT(store_sandbox_list(s, &q, &a, &list, &e), 0);
	CHECK_INT(list.n, 1);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_sandbox_with_a_process_left_stays)
{
	struct err e = { 0 };
	struct process_row px = {
		.id = "px_2", .tenant = "t1", .sandbox = "sb_1", .argv = "[]", .num = 2
	};

	dir_make();
	struct store *s = must_open();

	fill(s, "sb_1", 100);
	MUST(STORE_OK, store_process_insert(s, &px, HEAR, &e));
	CHECK_INT(purge_all(s, 1000), 1);
	CHECK_INT(n_of(s), 1);
	px = (struct process_row){ .id = "px_2", .state = PROCESS_LOST, .ended_ms = 5 };
	MUST(STORE_OK, store_process_finish(s, &px, HEAR, &e));
	CHECK_INT(purge_all(s, 1000), 5);
	CHECK_INT(n_of(s), 0);
	store_close(s);
	dir_remove();
}

TEST(purge_removes_dead_tokens)
{
	static const struct {
		int64_t expires_ms, revoked_ms;
		bool stays;
	} rows[] = { { 0, 0, true }, { 99, 0, false }, { 100, 0, true }, { 0, 99, false } };
	struct err e = { 0 };
	struct arena a = { 0 };
	int64_t want = 0;

	dir_make();
	struct store *s = must_open();

	for (size_t i = 0; i < COUNT(rows); i++) {
		char id[32];

		snprintf(id, sizeof id, "tk_%zu", i);
		struct token_row row = { .id = id,
			                 .tenant = "t1",
			                 .scopes = "all",
			                 .hash = { (uint8_t)i },
			                 .expires_ms = rows[i].expires_ms,
			                 .revoked_ms = rows[i].revoked_ms };

		MUST(STORE_OK, store_token_insert(s, &row, HEAR, &e));
		want += !rows[i].stays;
	}
	CHECK_INT(purge_all(s, 100), want);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct token_row got;
		uint8_t hash[STORE_HASH_BYTES] = { (uint8_t)i };

		CHECK_INT(store_token_by_hash(s, hash, &a, &got, &e), rows[i].stays ? 0 : -1);
	}
	arena_done(&a);
	store_close(s);
	dir_remove();
}
