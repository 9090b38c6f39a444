#include "store/connections.h"

#include "unit/store_fixture.h"

static struct connection_row row_of(int64_t num, const char *close)
{
	return (struct connection_row){ .sandbox = "sb_1",
		                        .tenant = "t1",
		                        .generation = 1,
		                        .num = num,
		                        .ts_ms = 1000 * num,
		                        .name = "example.org",
		                        .dst = "198.18.0.2",
		                        .port = 443,
		                        .proto = "tls",
		                        .decision = "allow",
		                        .rule = "allow: example.org",
		                        .close = close,
		                        .count = 1 };
}

static struct connection_row denied_row(int64_t num)
{
	struct connection_row row = row_of(num, "gate");

	row.decision = "deny";
	row.denied = 1;
	row.reason = "no_rule";
	row.rule = NULL;
	row.name = "example.net";
	return row;
}

static struct connection_list list_of(struct store *s, struct connection_query q, struct arena *a)
{
	struct connection_list list = { 0 };
	struct err e = { 0 };

	q.tenant = q.tenant ? q.tenant : "t1";
	q.sandbox = "sb_1";
	CHECK_INT(store_connection_list(s, &q, a, &list, &e), 0);
	return list;
}

TEST(a_close_replaces_its_open_and_moves_to_the_end)
{
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();
	struct connection_row rows[] = { row_of(1, "open"), row_of(2, "open") };

	rows[0].process = "px_1";
	MUST(STORE_OK, store_connection_put(s, rows, 2, HEAR, &e));
	CHECK_INT(heard.rows, 2);
	struct connection_list list = list_of(s, (struct connection_query){ 0 }, &a);

	CHECK_INT(list.n, 2);
	CHECK_STR(list.rows[0].close, "open");
	CHECK_STR(list.rows[0].node, store_node(s));
	CHECK_STR(list.rows[0].secrets, "[]");
	int64_t seen = list.rows[1].seq;

	rows[0] = row_of(1, "client");
	rows[0].bytes_up = 10;
	rows[0].ms = 7;
	MUST(STORE_OK, store_connection_put(s, rows, 1, HEAR, &e));
	list = list_of(s, (struct connection_query){ .after = seen }, &a);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].num, 1);
	CHECK_STR(list.rows[0].process, "px_1"); /* told when it opened */
	CHECK_INT(list.rows[0].bytes_up, 10);
	CHECK_INT(list.rows[0].ms, 7);
	CHECK_STR(list.rows[0].close, "client");
	CHECK_INT(list_of(s, (struct connection_query){ 0 }, &a).n, 2);

	/* told again by a monitor that does not know what was taken: nothing changes */
	rows[0] = row_of(1, "open");
	rows[1] = row_of(1, "server");
	MUST(STORE_OK, store_connection_put(s, rows, 2, HEAR, &e));
	CHECK_INT(heard.rows, 0);
	list = list_of(s, (struct connection_query){ .after = seen }, &a);
	CHECK_INT(list.n, 1);
	CHECK_STR(list.rows[0].close, "client");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(requests_generations_and_tenants_are_apart)
{
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();
	struct connection_row rows[] = { row_of(1, "client"), row_of(1, NULL), row_of(1, NULL),
		                         row_of(1, "client") };

	for (int i = 1; i < 3; i++) {
		rows[i].kind = CONNECTION_REQUEST;
		rows[i].request = i;
		rows[i].method = "GET";
		rows[i].path = "/a";
		rows[i].status = 200;
	}
	rows[3].generation = 2;
	MUST(STORE_OK, store_connection_put(s, rows, COUNT(rows), HEAR, &e));
	CHECK_INT(heard.rows, 4);
	struct connection_list list = list_of(s, (struct connection_query){ 0 }, &a);

	CHECK_INT(list.n, 4);
	CHECK_STR(list.rows[2].method, "GET");
	CHECK_INT(list.rows[2].status, 200);
	CHECK_STR(connection_kind_name(list.rows[2].kind), "request");
	CHECK_INT(list_of(s, (struct connection_query){ .tenant = "t2" }, &a).n, 0);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(a_list_is_filtered_and_has_pages)
{
	static const struct {
		struct connection_query q;
		size_t n;
	} rows[] = {
		{ { .limit = 100 }, 8 },
		{ { .is_denied_only = true }, 4 },
		{ { .is_allowed_only = true }, 4 },
		{ { .decision = "deny" }, 4 },
		{ { .decision = "ask_deny" }, 0 },
		{ { .name = "example.org" }, 4 },
		{ { .name = "example.or" }, 0 },
		{ { .name = "example.org", .is_denied_only = true }, 0 },
		{ { .limit = 3 }, 3 },
	};
	struct err e = { 0 };
	struct arena a = { 0 };
	struct connection_row put[8];

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < 8; i++)
		put[i] = i % 2 ? denied_row(i) : row_of(i, "client");
	MUST(STORE_OK, store_connection_put(s, put, 8, HEAR, &e));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct connection_list list = list_of(s, rows[i].q, &a);

		CHECK_INT(list.n, rows[i].n);
		CHECK_INT(list.has_more, rows[i].q.limit == 3);
	}
	struct connection_query big = { .tenant = "t1", .sandbox = "sb_1", .limit = 1001 };
	struct connection_list list;

	REFUSED(store_connection_list(s, &big, &a, &list, &e), "limit is at most");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_is_open_can_be_lost)
{
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();
	struct connection_row rows[] = { row_of(1, "open"), row_of(2, "server") };

	MUST(STORE_OK, store_connection_put(s, rows, 2, HEAR, &e));
	MUST(STORE_OK, store_connection_lose(s, "sb_2", HEAR, &e));
	CHECK_INT(heard.rows, 0);
	MUST(STORE_OK, store_connection_lose(s, "sb_1", HEAR, &e));
	CHECK_INT(heard.rows, 1);
	struct connection_list list = list_of(s, (struct connection_query){ 0 }, &a);

	CHECK_STR(list.rows[0].close, "lost");
	CHECK_STR(list.rows[1].close, "server");
	rows[0] = row_of(1, "client"); /* it was on its way all the same */
	MUST(STORE_OK, store_connection_put(s, rows, 1, HEAR, &e));
	CHECK_INT(heard.rows, 1);
	list = list_of(s, (struct connection_query){ 0 }, &a);
	CHECK_STR(list.rows[1].close, "client");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

/* Rows until the sandbox has its share, then so many more of each sort in one second. */
TEST(beyond_its_share_a_sandbox_has_sums)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct connection_row rows[200];

	dir_make();
	struct store *s = must_open();

	for (int64_t num = 1; num <= STORE_CONNECTION_ROWS; num += COUNT(rows)) {
		for (size_t i = 0; i < COUNT(rows); i++) {
			rows[i] = row_of(num + (int64_t)i, num == 1 && i == 0 ? "open" : "client");
			rows[i].ts_ms = 1000;
		}
		MUST(STORE_OK, store_connection_put(s, rows, COUNT(rows), HEAR, &e));
	}
	struct connection_query last = { .after = STORE_CONNECTION_ROWS, .limit = 1000 };

	CHECK_INT(list_of(s, last, &a).n, 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int64_t num = STORE_CONNECTION_ROWS + 1 + (int64_t)i;

		rows[i] = i % 2 ? denied_row(num) : row_of(num, "client");
		rows[i].ts_ms = 5000 + (int64_t)i; /* all of one second */
		rows[i].bytes_down = 3;
		if (i % 4 == 3) {
			rows[i].kind = CONNECTION_LOOKUP;
			rows[i].count = 5;
		}
	}
	MUST(STORE_OK, store_connection_put(s, rows, COUNT(rows), HEAR, &e));
	CHECK_INT(heard.rows, COUNT(rows));
	rows[0] = row_of(STORE_CONNECTION_ROWS + 900, "open"); /* counts when it closes */
	MUST(STORE_OK, store_connection_put(s, rows, 1, HEAR, &e));
	CHECK_INT(heard.rows, 0);
	struct connection_list list = list_of(s, last, &a);

	CHECK_INT(list.n, 3);
	for (size_t i = 0; i < list.n; i++) {
		const struct connection_row *sum = &list.rows[i];

		CHECK_INT(sum->ts_ms, 5000);
		CHECK(!sum->name);
		CHECK_INT(sum->count, sum->kind == CONNECTION_LOOKUPS ? 250
		                      : sum->denied                   ? 50
		                                                      : 100);
		CHECK_STR(sum->decision, sum->denied ? "deny" : "allow");
	}
	rows[0] = row_of(1, "client"); /* its own row was there before */
	rows[0].bytes_up = 99;
	MUST(STORE_OK, store_connection_put(s, rows, 1, HEAR, &e));
	last.after = list.rows[2].seq;
	list = list_of(s, last, &a);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].bytes_up, 99);

	MUST(STORE_OK, store_purge(s, 2000, HEAR, &e)); /* room for new rows */
	CHECK_INT(heard.rows, STORE_PURGE_ROWS);
	rows[0] = row_of(STORE_CONNECTION_ROWS + 1000, "client");
	MUST(STORE_OK, store_connection_put(s, rows, 1, HEAR, &e));
	last.after = list.rows[0].seq;
	list = list_of(s, last, &a);
	CHECK_INT(list.n, 1);
	CHECK_INT(list.rows[0].kind, CONNECTION_ONE);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_makes_no_sense_is_refused)
{
	static const struct {
		struct connection_row row;
		const char *part;
	} rows[] = {
		{ { .sandbox = "sb", .tenant = "t", .count = 1 }, "needs its decision" },
		{ { .sandbox = "sb", .decision = "deny", .count = 1 }, "needs its tenant" },
		{ { .sandbox = "sb", .tenant = "t", .decision = "deny" }, "out of range" },
		{ { .sandbox = "sb", .tenant = "t", .decision = "deny", .num = -1, .count = 1 },
		  "out of range" },
		{ { .sandbox = "sb", .tenant = "t", .decision = "deny", .denied = 2, .count = 1 },
		  "out of range" },
		{ { .sandbox = "sb", .tenant = "t", .kind = CONNECTION_ONES, .count = 1 },
		  "added up" },
	};
	struct err e = { 0 };

	dir_make();
	struct store *s = must_open();

	for (size_t i = 0; i < COUNT(rows); i++)
		REFUSED(store_connection_put(s, &rows[i].row, 1, HEAR, &e), rows[i].part);
	REFUSED(store_connection_put(s, &rows[0].row, 0, HEAR, &e), "at a time");
	struct connection_row row = row_of(1, "client");

	row.secrets = "{}";
	MUST(STORE_INVALID, store_connection_put(s, &row, 1, HEAR, &e));
	store_close(s);
	dir_remove();
}
