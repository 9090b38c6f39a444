#include "store/processes.h"

#include "unit/store_fixture.h"

static struct process_row row_of(const char *id, int num)
{
	return (struct process_row){ .id = id,
		                     .tenant = "t1",
		                     .sandbox = "sb_1",
		                     .generation = 1,
		                     .num = num,
		                     .argv = "[\"true\"]",
		                     .created_ms = 1000 };
}

/* A row that may become each state: everything that one of them needs. */
static struct process_row end_of(const char *id, enum process_state state)
{
	return (struct process_row){ .id = id,
		                     .state = state,
		                     .exit_code = 7,
		                     .signal = state == PROCESS_SIGNALED ? 11 : 0,
		                     .reason = "because",
		                     .started_ms = 1001,
		                     .ended_ms = 1002 };
}

static void go(struct store *s, const char *id, enum process_state to, enum store_code want)
{
	struct err e = { 0 };
	struct process_row row = end_of(id, to);

	MUST(want, process_state_is_final(to) ? store_process_finish(s, &row, HEAR, &e)
	                                      : store_process_move(s, &row, HEAR, &e));
}

/* ---- states ------------------------------------------------------------------------------ */

/* Written out again, from the diagram. */
static const char *const allowed[] = {
	"queued>awaiting_approval running denied killed expired lost",
	"awaiting_approval>queued running denied killed expired lost",
	"running>exited signaled timeout oom killed expired denied lost",
	"exited>",
	"signaled>",
	"timeout>",
	"oom>",
	"killed>",
	"expired>",
	"denied>",
	"lost>",
};
_Static_assert(COUNT(allowed) == PROCESS_STATE_COUNT, "a state has no row");

static bool is_allowed(enum process_state from, enum process_state to)
{
	char line[160], word[32];
	size_t n = strlen(process_state_name(from));

	CHECK(strncmp(allowed[from], process_state_name(from), n) == 0 && allowed[from][n] == '>');
	snprintf(line, sizeof line, " %s ", allowed[from] + n + 1);
	snprintf(word, sizeof word, " %s ", process_state_name(to));
	return strstr(line, word);
}

TEST(the_matrix_is_the_diagram)
{
	for (int from = 0; from < PROCESS_STATE_COUNT; from++) {
		bool leads_on = false;

		for (int to = 0; to < PROCESS_STATE_COUNT; to++) {
			CHECK_INT(process_state_may(from, to), is_allowed(from, to));
			leads_on = leads_on || is_allowed(from, to);
		}
		CHECK_INT(process_state_is_final(from), !leads_on);
	}
	CHECK(!process_state_may(PROCESS_STATE_COUNT, PROCESS_RUNNING));
	CHECK(!process_state_may(PROCESS_RUNNING, PROCESS_STATE_COUNT));
	CHECK(!process_state_is_final(PROCESS_STATE_COUNT));
	CHECK_STR(process_state_name(PROCESS_STATE_COUNT), "?");
}

TEST(every_transition_is_applied_or_refused)
{
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	for (unsigned int pair = 0; pair < PROCESS_STATE_COUNT * PROCESS_STATE_COUNT; pair++) {
		enum process_state from = pair / PROCESS_STATE_COUNT;
		enum process_state to = pair % PROCESS_STATE_COUNT;
		char id[32];
		struct process_row row, got;

		snprintf(id, sizeof id, "px_%u", pair);
		row = row_of(id, (int)pair);
		row.state = process_state_is_final(from) ? PROCESS_RUNNING : from;
		MUST(STORE_OK, store_process_insert(s, &row, HEAR, &e));
		if (process_state_is_final(from))
			go(s, id, from, STORE_OK);
		go(s, id, to, is_allowed(from, to) ? STORE_OK : STORE_CONFLICT);
		CHECK_INT(store_process_get(s, "t1", id, &a, &got, &e), 0);
		enum process_state now = is_allowed(from, to) ? to : from;

		CHECK_INT(got.state, now);
		bool has_code = now == PROCESS_EXITED || now == PROCESS_TIMEOUT ||
		                now == PROCESS_KILLED || now == PROCESS_EXPIRED;

		CHECK_INT(got.exit_code, has_code ? 7 : -1);
		CHECK_INT(got.signal, now == PROCESS_SIGNALED ? 11 : 0);
		CHECK_INT(got.ended_ms, process_state_is_final(now) ? 1002 : 0);
	}
	go(s, "px_nowhere", PROCESS_RUNNING, STORE_NOT_FOUND);
	go(s, "px_nowhere", PROCESS_LOST, STORE_NOT_FOUND);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_an_end_may_not_say)
{
	static const struct {
		struct process_row row;
		const char *part;
	} rows[] = {
		{ { .state = PROCESS_RUNNING, .ended_ms = 1 }, "ends in" },
		{ { .state = PROCESS_STATE_COUNT, .ended_ms = 1 }, "not a state" },
		{ { .state = PROCESS_EXITED, .ended_ms = 1, .exit_code = 256 },
		  "256 is not an exit" },
		{ { .state = PROCESS_EXITED, .ended_ms = 1, .exit_code = -1 }, "not an exit code" },
		{ { .state = PROCESS_SIGNALED, .ended_ms = 1 }, "needs the signal" },
		{ { .state = PROCESS_KILLED }, "ended_ms" },
	};
	struct err e = { 0 };
	struct process_row born = row_of("px_1", 1);

	dir_make();
	struct store *s = must_open();

	for (size_t i = 0; i < COUNT(rows); i++)
		REFUSED(store_process_finish(s, &rows[i].row, HEAR, &e), rows[i].part);
	born.state = PROCESS_EXITED;
	REFUSED(store_process_insert(s, &born, HEAR, &e), "goes on in");
	REFUSED(store_process_move(s, &born, HEAR, &e), "goes on in");
	store_close(s);
	dir_remove();
}

/* ---- rows -------------------------------------------------------------------------------- */

static void check_end(const struct process_row *got, const struct process_row *end)
{
	CHECK_INT(got->state, end->state);
	CHECK_INT(got->exit_code, end->exit_code);
	CHECK_STR(got->reason, end->reason);
	CHECK_STR(got->cwd, end->cwd);
	CHECK_INT(got->ended_ms, end->ended_ms);
	CHECK_INT(got->ms, end->ms);
	CHECK_INT(got->cpu_ms, end->cpu_ms);
	CHECK_INT(got->mem_peak, end->mem_peak);
	CHECK_INT(got->io_bytes, end->io_bytes);
	CHECK_INT(got->bytes_out, end->bytes_out);
	CHECK_INT(got->bytes_err, end->bytes_err);
	CHECK_INT(got->bytes_dropped, end->bytes_dropped);
	CHECK_STR(got->details, end->details);
}

TEST(a_life_comes_back_as_it_was)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct process_row got, row = row_of("px_1", 1);
	struct process_row run = {
		.id = "px_1", .state = PROCESS_RUNNING, .started_ms = 1001, .log_id = "lg_1"
	};
	struct process_row end = { .id = "px_1",
		                   .state = PROCESS_EXITED,
		                   .exit_code = 0,
		                   .reason = "r",
		                   .cwd = "/end",
		                   .ended_ms = 1005,
		                   .ms = 4,
		                   .cpu_ms = 3,
		                   .mem_peak = 1ll << 33,
		                   .io_bytes = 5,
		                   .bytes_out = 6,
		                   .bytes_err = 7,
		                   .bytes_dropped = 8,
		                   .details = "{\"children\":[]}" };

	row.cwd = "/work";
	row.label = "tests";
	row.shell = "main";
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_process_insert(s, &row, HEAR, &e));
	MUST(STORE_OK, store_process_move(s, &run, HEAR, &e));
	CHECK_INT(store_process_get(s, "t1", "px_1", &a, &got, &e), 0);
	CHECK_INT(got.state, PROCESS_RUNNING);
	CHECK_INT(got.exit_code, -1);
	CHECK_STR(got.cwd, "/work");
	MUST(STORE_OK, store_process_finish(s, &end, HEAR, &e));
	CHECK_INT(store_process_get(s, "t1", "px_1", &a, &got, &e), 0);
	check_end(&got, &end);
	CHECK_STR(got.argv, row.argv);
	CHECK_STR(got.sandbox, "sb_1");
	CHECK_STR(got.node, store_node(s));
	CHECK_STR(got.label, "tests");
	CHECK_STR(got.shell, "main");
	CHECK_STR(got.log_id, "lg_1");
	CHECK_INT(got.num, 1);
	CHECK_INT(got.created_ms, 1000);
	CHECK_INT(got.started_ms, 1001);
	CHECK_INT(store_process_get(s, "t2", "px_1", &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_a_row_may_not_be)
{
	struct err e = { 0 };
	AUTO(freep) char *long_argv = mem_alloc(STORE_ARGV_MAX + 2);
	struct process_row row = row_of("px_1", 1), twin = row_of("px_2", 1),
			   bad = row_of("px_3", 3);

	memset(long_argv, ' ', STORE_ARGV_MAX + 1);
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_process_insert(s, &row, HEAR, &e));
	MUST(STORE_EXISTS, store_process_insert(s, &row, HEAR, &e));
	MUST(STORE_EXISTS, store_process_insert(s, &twin, HEAR, &e)); /* the same num */
	twin.generation = 2;
	MUST(STORE_OK, store_process_insert(s, &twin, HEAR, &e));
	bad.argv = "{}";
	MUST(STORE_INVALID, store_process_insert(s, &bad, HEAR, &e));
	bad.argv = long_argv;
	REFUSED(store_process_insert(s, &bad, HEAR, &e), "argv of a process is longer");
	bad.argv = NULL;
	REFUSED(store_process_insert(s, &bad, HEAR, &e), "needs its argv");
	bad = end_of("px_1", PROCESS_LOST);
	bad.details = "{";
	MUST(STORE_INVALID, store_process_finish(s, &bad, HEAR, &e));
	store_close(s);
	dir_remove();
}

/* ---- lists ------------------------------------------------------------------------------- */

static struct store *open_many(void)
{
	struct err e = { 0 };
	char id[32];

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < 12; i++) {
		snprintf(id, sizeof id, "px_%02d", i);
		struct process_row row = row_of(id, i + 1);

		row.sandbox = i % 2 ? "sb_odd" : "sb_even";
		row.label = i % 3 ? NULL : "third";
		row.generation = 1 + i / 6;
		row.state = PROCESS_RUNNING;
		CHECK_INT(store_process_insert(s, &row, HEAR, &e), 0);
	}
	settle(s);
	go(s, "px_03", PROCESS_EXITED, STORE_OK);
	go(s, "px_04", PROCESS_OOM, STORE_OK);
	return s;
}

static const char *numbers(const struct process_list *list)
{
	static char text[256];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < list->n; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? "," : "",
		                      list->rows[i].id + 3);
	return text;
}

TEST(lists_filter)
{
	static const struct {
		struct process_query query;
		const char *want;
		bool has_next;
	} rows[] = {
		{ { .page = { .tenant = "t1" } }, "11,10,09,08,07,06,05,04,03,02,01,00", false },
		{ { .page = { .tenant = "t2" } }, "", false },
		{ { .page = { .tenant = "t1", .limit = 2 } }, "11,10", true },
		{ { .page = { .tenant = "t1", .limit = 2, .cursor = "na" } }, "08,07", true },
		{ { .page = { .tenant = "t1", .is_oldest_first = true, .limit = 3 } },
		  "00,01,02",
		  true },
		{ { .page = { .is_all_tenants = true }, .sandbox = "sb_odd" },
		  "11,09,07,05,03,01",
		  false },
		{ { .page = { .tenant = "t1" }, .label = "third" }, "09,06,03,00", false },
		{ { .page = { .tenant = "t1" }, .sandbox = "sb_odd", .label = "third" },
		  "09,03",
		  false },
		{ { .page = { .tenant = "t1" },
		    .states = 1u << PROCESS_EXITED | 1u << PROCESS_OOM },
		  "04,03",
		  false },
		{ { .page = { .tenant = "t1" }, .states = 1u << PROCESS_LOST }, "", false },
	};
	struct err e = { 0 };
	struct store *s = open_many();

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct process_list list;

		if (store_process_list(s, &rows[i].query, &a, &list, &e) < 0)
			CHECK_STR(e.msg, "");
		CHECK_STR(numbers(&list), rows[i].want);
		CHECK_INT(list.next != NULL, rows[i].has_next);
		arena_done(&a);
	}
	store_close(s);
	dir_remove();
}

TEST(what_has_not_ended_is_found_and_swept)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct process_list list;
	struct process_row got;
	struct store *s = open_many();
	struct process_sweep sweep = { .sandbox = "sb_even",
		                       .generation = 1,
		                       .state = PROCESS_LOST,
		                       .reason = "host restarted",
		                       .ended_ms = 2000 };

	CHECK_INT(store_process_running_of(s, "sb_even", &a, &list, &e), 0);
	CHECK_STR(numbers(&list), "00,02,06,08,10");
	CHECK_INT(store_process_running_of(s, NULL, &a, &list, &e), 0);
	CHECK_INT(list.n, 10);
	MUST(STORE_OK, store_process_finish_all(s, &sweep, HEAR, &e));
	CHECK_INT(heard.rows, 2); /* generation 2 stays, and what had ended */
	CHECK_INT(store_process_running_of(s, "sb_even", &a, &list, &e), 0);
	CHECK_STR(numbers(&list), "06,08,10");
	CHECK_INT(store_process_get(s, "t1", "px_02", &a, &got, &e), 0);
	CHECK_INT(got.state, PROCESS_LOST);
	CHECK_STR(got.reason, "host restarted");
	CHECK_INT(got.ended_ms, 2000);
	CHECK_INT(store_process_get(s, "t1", "px_04", &a, &got, &e), 0);
	CHECK_INT(got.state, PROCESS_OOM);
	sweep.state = PROCESS_EXITED;
	REFUSED(store_process_finish_all(s, &sweep, HEAR, &e), "together");
	sweep.state = PROCESS_KILLED;
	sweep.ended_ms = 0;
	REFUSED(store_process_finish_all(s, &sweep, HEAR, &e), "ended_ms");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_purge_removes_is_known_before)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct process_list list;
	struct store *s = open_many();
	struct process_sweep sweep = {
		.sandbox = "sb_even", .generation = 1, .state = PROCESS_LOST, .ended_ms = 2000000
	};

	MUST(STORE_OK, store_process_finish_all(s, &sweep, HEAR, &e));
	CHECK_INT(store_process_ended(s, 2000000, &a, &list, &e), 0);
	size_t before = list.n;
	CHECK_INT(store_process_ended(s, 2000001, &a, &list, &e), 0);
	CHECK_INT(list.n, before + 2);
	MUST(STORE_OK, store_purge(s, 2000001, HEAR, &e));
	CHECK_INT(heard.rows, list.n);
	CHECK_INT(store_process_ended(s, 2000001, &a, &list, &e), 0);
	CHECK_INT(list.n, 0);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(numbers_go_on_in_each_generation)
{
	struct err e = { 0 };
	int64_t num = -1;
	struct store *s = open_many();

	CHECK_INT(store_process_num_max(s, "sb_even", 1, &num, &e), 0);
	CHECK_INT(num, 5);
	CHECK_INT(store_process_num_max(s, "sb_even", 2, &num, &e), 0);
	CHECK_INT(num, 11);
	CHECK_INT(store_process_num_max(s, "sb_even", 3, &num, &e), 0);
	CHECK_INT(num, 0);
	store_close(s);
	dir_remove();
}

TEST(what_was_due_at_an_end_is_found_again)
{
	static const struct {
		int64_t first, last;    /* at_end of the first process, and of the newest */
		bool is_first, is_last; /* they have ended */
		int64_t want;
	} rows[] = {
		{ AT_END_KEEP, AT_END_KEEP, true, true, AT_END_KEEP },
		{ AT_END_DELETE, AT_END_KEEP, false, true, AT_END_KEEP },
		{ AT_END_DELETE, AT_END_KEEP, true, false, AT_END_DELETE },
		{ AT_END_STOP, AT_END_KEEP, true, false, AT_END_KEEP },
		{ AT_END_KEEP, AT_END_STOP, false, true, AT_END_STOP },
		{ AT_END_DELETE, AT_END_STOP, true, true, AT_END_DELETE },
	};
	struct err e = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		int64_t at_end = -1;
		struct process_row row = row_of("px_1", 1);

		dir_make();
		struct store *s = must_open();

		row.state = PROCESS_RUNNING;
		row.at_end = rows[i].first;
		MUST(STORE_OK, store_process_insert(s, &row, HEAR, &e));
		row.id = "px_2";
		row.num = 2;
		row.at_end = rows[i].last;
		MUST(STORE_OK, store_process_insert(s, &row, HEAR, &e));
		if (rows[i].is_first)
			go(s, "px_1", PROCESS_EXITED, STORE_OK);
		if (rows[i].is_last)
			go(s, "px_2", PROCESS_EXITED, STORE_OK);
		CHECK_INT(store_process_at_end(s, "sb_1", 1, &at_end, &e), 0);
		CHECK_INT(at_end, rows[i].want);
		CHECK_INT(store_process_at_end(s, "sb_1", 2, &at_end, &e), 0);
		CHECK_INT(at_end, AT_END_KEEP);
		store_close(s);
		dir_remove();
	}
}
