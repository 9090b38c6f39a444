#include "store/sandboxes.h"

#include "unit/store_fixture.h"

static struct sandbox_row row_of(const char *id)
{
	return (struct sandbox_row){ .id = id,
		                     .tenant = "t1",
		                     .generation = 1,
		                     .spec = "{\"net\":{\"mode\":\"deny\"}}",
		                     .slot = -1,
		                     .created_ms = 1000,
		                     .mem_bytes = 100,
		                     .cpu_milli = 2000,
		                     .pids = 64,
		                     .disk_bytes = 7 };
}

/* ---- states ------------------------------------------------------------------------------ */

/* Written out again, from the diagram. */
static const char *const allowed[] = {
	"creating>running failed deleting unreachable",
	"running>paused stopping stopped replacing deleting failed unreachable",
	"paused>running stopping stopped replacing deleting failed unreachable",
	"stopping>stopped deleting failed unreachable",
	"stopped>creating replacing deleting",
	"replacing>running stopped deleting failed unreachable",
	"deleting>gone",
	"gone>",
	"failed>creating replacing deleting",
	"unreachable>running paused stopping stopped failed deleting",
};
_Static_assert(COUNT(allowed) == SANDBOX_STATE_COUNT, "a state has no row");

static bool is_allowed(enum sandbox_state from, enum sandbox_state to)
{
	char line[160], word[32];
	size_t n = strlen(sandbox_state_name(from));

	CHECK(strncmp(allowed[from], sandbox_state_name(from), n) == 0 && allowed[from][n] == '>');
	snprintf(line, sizeof line, " %s ", allowed[from] + n + 1);
	snprintf(word, sizeof word, " %s ", sandbox_state_name(to));
	return strstr(line, word);
}

TEST(the_matrix_is_the_diagram)
{
	for (int from = 0; from < SANDBOX_STATE_COUNT; from++)
		for (int to = 0; to < SANDBOX_STATE_COUNT; to++)
			CHECK_INT(sandbox_state_may(from, to), is_allowed(from, to));
	CHECK(!sandbox_state_may(SANDBOX_STATE_COUNT, SANDBOX_RUNNING));
	CHECK(!sandbox_state_may(SANDBOX_RUNNING, SANDBOX_STATE_COUNT));
	CHECK_STR(sandbox_state_name(SANDBOX_STATE_COUNT), "?");
}

/* The shortest way from creating to each state. */
static const struct {
	int n;
	enum sandbox_state by[3];
} ways[] = {
	[SANDBOX_CREATING] = { 0, { 0 } },
	[SANDBOX_RUNNING] = { 1, { SANDBOX_RUNNING } },
	[SANDBOX_PAUSED] = { 2, { SANDBOX_RUNNING, SANDBOX_PAUSED } },
	[SANDBOX_STOPPING] = { 2, { SANDBOX_RUNNING, SANDBOX_STOPPING } },
	[SANDBOX_STOPPED] = { 2, { SANDBOX_RUNNING, SANDBOX_STOPPED } },
	[SANDBOX_REPLACING] = { 2, { SANDBOX_RUNNING, SANDBOX_REPLACING } },
	[SANDBOX_DELETING] = { 1, { SANDBOX_DELETING } },
	[SANDBOX_GONE] = { 2, { SANDBOX_DELETING, SANDBOX_GONE } },
	[SANDBOX_FAILED] = { 1, { SANDBOX_FAILED } },
	[SANDBOX_UNREACHABLE] = { 1, { SANDBOX_UNREACHABLE } },
};
_Static_assert(COUNT(ways) == SANDBOX_STATE_COUNT, "a state has no way to it");

static void move(struct store *s, const char *id, enum sandbox_state to, enum store_code want)
{
	struct err e = { 0 };
	struct sandbox_row row = { .id = id, .state = to, .state_reason = "test", .ended_ms = 5 };

	MUST(want, store_sandbox_update(s, &row, SANDBOX_SET_STATE | SANDBOX_SET_ENDED, HEAR, &e));
}

TEST(every_transition_is_applied_or_refused)
{
	struct err e = { 0 };
	struct arena a = { 0 };

	dir_make();
	struct store *s = must_open();

	for (unsigned int pair = 0; pair < SANDBOX_STATE_COUNT * SANDBOX_STATE_COUNT; pair++) {
		enum sandbox_state from = pair / SANDBOX_STATE_COUNT;
		enum sandbox_state to = pair % SANDBOX_STATE_COUNT;
		char id[32];
		struct sandbox_row row, got;

		snprintf(id, sizeof id, "sb_%u", pair);
		row = row_of(id);
		MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
		for (int i = 0; i < ways[from].n; i++)
			move(s, id, ways[from].by[i], STORE_OK);
		move(s, id, to, is_allowed(from, to) ? STORE_OK : STORE_CONFLICT);
		if (heard.code == STORE_CONFLICT)
			CHECK(strstr(heard.msg, "cannot become"));
		CHECK_INT(store_sandbox_get(s, "t1", id, &a, &got, &e), 0);
		CHECK_INT(got.state, is_allowed(from, to) ? to : from);
	}
	move(s, "sb_nowhere", SANDBOX_RUNNING, STORE_NOT_FOUND);
	CHECK_INT(heard.kind, ERR_NOT_FOUND);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(live_states_are_those_that_can_use_cpu)
{
	static const bool live[] = {
		[SANDBOX_CREATING] = true,    [SANDBOX_RUNNING] = true,   [SANDBOX_PAUSED] = true,
		[SANDBOX_STOPPING] = true,    [SANDBOX_REPLACING] = true, [SANDBOX_DELETING] = true,
		[SANDBOX_UNREACHABLE] = true,
	};

	for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
		CHECK_INT(sandbox_state_is_live(i), live[i]);
}

/* ---- rows -------------------------------------------------------------------------------- */

TEST(a_row_comes_back_as_it_was)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_row got, row = {
		.id = "sb_1",
		.tenant = "t1",
		.node = "nd_other",
		.key = "task-1",
		.generation = 3,
		.state_reason = "why",
		.spec = "{\"a\":1}",
		.labels = "{\"k\":\"v\"}",
		.enforced = "{\"net\":\"netns\"}",
		.backend = "native",
		.boot_id = "boot",
		.slot = 4,
		.created_ms = 1,
		.started_ms = 2,
		.ended_ms = 3,
		.expires_ms = 4,
		.idle_ms = 5,
		.last_active_ms = 6,
		.mem_bytes = 1ll << 40,
		.cpu_milli = 8,
		.pids = 9,
		.disk_bytes = 10,
	};

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
	CHECK_INT(store_sandbox_by_key(s, "t1", "task-1", &a, &got, &e), 0);
	CHECK_INT(got.seq, 1);
	CHECK_STR(got.id, row.id);
	CHECK_STR(got.tenant, row.tenant);
	CHECK_STR(got.node, row.node);
	CHECK_STR(got.key, row.key);
	CHECK_INT(got.generation, 3);
	CHECK_INT(got.state, SANDBOX_CREATING);
	CHECK_STR(got.state_reason, row.state_reason);
	CHECK_STR(got.spec, row.spec);
	CHECK_STR(got.labels, row.labels);
	CHECK_STR(got.enforced, row.enforced);
	CHECK_STR(got.backend, row.backend);
	CHECK_STR(got.boot_id, row.boot_id);
	CHECK_INT(got.slot, 4);
	CHECK_INT(got.created_ms + got.started_ms * 10 + got.ended_ms * 100, 321);
	CHECK_INT(got.expires_ms + got.idle_ms * 10 + got.last_active_ms * 100, 654);
	CHECK_INT(got.mem_bytes, 1ll << 40);
	CHECK_INT(got.cpu_milli + got.pids * 10 + got.disk_bytes * 100, 1098);
	CHECK_INT(store_sandbox_get(s, "t2", "sb_1", &a, &got, &e), -1);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(absent_values_stay_absent)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_row got, row = row_of("sb_1");

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
	CHECK_INT(store_sandbox_get(s, "t1", "sb_1", &a, &got, &e), 0);
	CHECK_STR(got.node, store_node(s));
	CHECK_STR(got.labels, "{}");
	CHECK(!got.key && !got.state_reason && !got.enforced && !got.backend && !got.boot_id);
	CHECK_INT(got.slot, -1);
	CHECK_INT(got.started_ms | got.ended_ms | got.expires_ms | got.idle_ms, 0);
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(an_update_changes_what_it_names)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_row got, row = row_of("sb_1");
	struct sandbox_row next = { .id = "sb_1",
		                    .generation = 2,
		                    .slot = 9,
		                    .boot_id = "b",
		                    .spec = "[]",
		                    .expires_ms = 77,
		                    .mem_bytes = 1 };

	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
	MUST(STORE_OK,
	     store_sandbox_update(s, &next, SANDBOX_SET_GENERATION | SANDBOX_SET_SLOT, HEAR, &e));
	CHECK_INT(heard.rows, 1);
	CHECK_INT(store_sandbox_get(s, "t1", "sb_1", &a, &got, &e), 0);
	CHECK_INT(got.generation, 2);
	CHECK_INT(got.slot, 9);
	CHECK_STR(got.boot_id, "b");
	CHECK_STR(got.spec, row.spec);
	CHECK_INT(got.expires_ms, 0);
	MUST(STORE_OK,
	     store_sandbox_update(s, &next, SANDBOX_SET_SPEC | SANDBOX_SET_EXPIRES, HEAR, &e));
	CHECK_INT(store_sandbox_get(s, "t1", "sb_1", &a, &got, &e), 0);
	CHECK_STR(got.spec, "[]");
	CHECK_INT(got.expires_ms, 77);
	CHECK_INT(got.mem_bytes, 1);
	REFUSED(store_sandbox_update(s, &next, 0, HEAR, &e), "names what it changes");
	REFUSED(store_sandbox_update(s, &next, 1u << 30, HEAR, &e), "names what it changes");
	next.state = SANDBOX_GONE;
	REFUSED(store_sandbox_update(s, &next, SANDBOX_SET_STATE, HEAR, &e), "ended_ms");
	next.state = SANDBOX_STATE_COUNT;
	REFUSED(store_sandbox_update(s, &next, SANDBOX_SET_STATE, HEAR, &e), "no such state");
	move(s, "sb_1", SANDBOX_DELETING, STORE_OK);
	move(s, "sb_1", SANDBOX_GONE, STORE_OK);
	MUST(STORE_CONFLICT, store_sandbox_update(s, &next, SANDBOX_SET_EXPIRES, HEAR, &e));
	arena_done(&a);
	store_close(s);
	dir_remove();
}

TEST(what_a_row_may_not_be)
{
	struct err e = { 0 };
	char long_id[STORE_ID_MAX + 2];
	struct sandbox_row good = row_of("sb_1");

	memset(long_id, 'x', sizeof long_id);
	long_id[sizeof long_id - 1] = '\0';
	dir_make();
	struct store *s = must_open();
	struct sandbox_row bad = good;

	bad.id = NULL;
	REFUSED(store_sandbox_insert(s, &bad, HEAR, &e), "needs its id");
	bad.id = long_id;
	REFUSED(store_sandbox_insert(s, &bad, HEAR, &e), "longer than 64");
	bad = good;
	bad.tenant = "";
	REFUSED(store_sandbox_insert(s, &bad, HEAR, &e), "needs its tenant");
	bad = good;
	bad.state = SANDBOX_STOPPED;
	REFUSED(store_sandbox_insert(s, &bad, HEAR, &e), "does not begin as stopped");
	static const struct {
		const char *spec, *labels;
	} broken[] = { { "{", NULL }, { "{}", "[]" }, { "{}", "{\"a\":1}" }, { "{}", "x" } };

	for (size_t i = 0; i < COUNT(broken); i++) {
		bad = good;
		bad.spec = broken[i].spec;
		bad.labels = broken[i].labels;
		MUST(STORE_INVALID, store_sandbox_insert(s, &bad, HEAR, &e));
		CHECK_INT(heard.kind, ERR_INVALID);
	}
	MUST(STORE_OK, store_sandbox_insert(s, &good, HEAR, &e));
	MUST(STORE_EXISTS, store_sandbox_insert(s, &good, HEAR, &e));
	store_close(s);
	dir_remove();
}

TEST(a_key_is_free_again_when_its_sandbox_is_gone)
{
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_row got, row = row_of("sb_1"), second = row_of("sb_2"),
				other = row_of("sb_3");

	row.key = second.key = other.key = "task";
	other.tenant = "t2";
	dir_make();
	struct store *s = must_open();

	MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
	MUST(STORE_EXISTS, store_sandbox_insert(s, &second, HEAR, &e));
	MUST(STORE_OK, store_sandbox_insert(s, &other, HEAR, &e));
	move(s, "sb_1", SANDBOX_DELETING, STORE_OK);
	MUST(STORE_EXISTS, store_sandbox_insert(s, &second, HEAR, &e));
	move(s, "sb_1", SANDBOX_GONE, STORE_OK);
	CHECK_INT(store_sandbox_by_key(s, "t1", "task", &a, &got, &e), -1);
	MUST(STORE_OK, store_sandbox_insert(s, &second, HEAR, &e));
	CHECK_INT(store_sandbox_by_key(s, "t1", "task", &a, &got, &e), 0);
	CHECK_STR(got.id, "sb_2");
	arena_done(&a);
	store_close(s);
	dir_remove();
}

/* ---- lists ------------------------------------------------------------------------------- */

#define MANY 25ll

static struct store *open_many(void)
{
	struct err e = { 0 };
	char id[32], labels[96];

	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < MANY; i++) {
		snprintf(id, sizeof id, "sb_%02d", i);
		snprintf(labels, sizeof labels, "{\"parity\":\"%s\",\"n\":\"%d\"}",
		         i % 2 ? "odd" : "even", i / 10);
		struct sandbox_row row = row_of(id);

		row.labels = labels;
		CHECK_INT(store_sandbox_insert(s, &row, HEAR, &e), 0);
	}
	struct sandbox_row other = row_of("sb_other");

	other.tenant = "t2";
	other.labels = "{\"parity\":\"odd\"}";
	MUST(STORE_OK, store_sandbox_insert(s, &other, HEAR, &e));
	return s;
}

/* The ids' numbers of all pages, such as "24,23,22". */
static const char *numbers(struct store *s, struct sandbox_query q)
{
	static struct str text;
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_list list;

	text.max = 4096;
	str_clear(&text);
	do {
		if (store_sandbox_list(s, &q, &a, &list, &e) < 0)
			CHECK_STR(e.msg, "");
		CHECK(list.n <= (q.page.limit ? q.page.limit : STORE_LIST_DEFAULT));
		for (size_t i = 0; i < list.n; i++)
			str_addf(&text, "%s%s", text.len ? "," : "", list.rows[i].id + 3);
		q.page.cursor = list.next;
	} while (list.next);
	arena_done(&a);
	return str_text(&text);
}

TEST(pages_are_complete_and_in_order)
{
	static const char newest[] =
	    "24,23,22,21,20,19,18,17,16,15,14,13,12,11,10,09,08,07,06,05,04,"
	    "03,02,01,00";
	static const char oldest[] =
	    "00,01,02,03,04,05,06,07,08,09,10,11,12,13,14,15,16,17,18,19,20,"
	    "21,22,23,24";
	static const size_t limits[] = { 1, 2, 5, 24, 25, 26, 0, 1000 };
	struct store *s = open_many();

	for (size_t i = 0; i < COUNT(limits); i++) {
		struct store_page page = { .tenant = "t1", .limit = limits[i] };

		CHECK_STR(numbers(s, (struct sandbox_query){ .page = page }), newest);
		page.is_oldest_first = true;
		CHECK_STR(numbers(s, (struct sandbox_query){ .page = page }), oldest);
	}
	CHECK_STR(numbers(s, (struct sandbox_query){ .page = { .tenant = "t2" } }), "other");
	CHECK_STR(numbers(s, (struct sandbox_query){ .page = { .tenant = "t3" } }), "");
	CHECK(strncmp(numbers(s, (struct sandbox_query){ .page = { .is_all_tenants = true } }),
	              "other,24,", 9) == 0);
	store_close(s);
	dir_remove();
}

TEST(labels_filter_exactly)
{
	static const struct text_pair odd_2[] = { { "parity", "odd" }, { "n", "2" } };
	static const struct text_pair none[] = { { "parity", "odd" }, { "parity", "even" } };
	static const struct text_pair part[] = { { "parity", "od" } };
	struct err e = { 0 };
	struct store *s = open_many();
	struct sandbox_query q = { .page = { .tenant = "t1", .limit = 2 },
		                   .labels = odd_2,
		                   .n_labels = 2 };

	CHECK_STR(numbers(s, q), "23,21");
	q.n_labels = 1;
	q.page.limit = 5;
	CHECK_STR(numbers(s, q), "23,21,19,17,15,13,11,09,07,05,03,01");
	q.labels = part;
	CHECK_STR(numbers(s, q), "");
	q.labels = none;
	q.n_labels = 2;
	CHECK_STR(numbers(s, q), "");

	struct sandbox_row row = { .id = "sb_00", .labels = "{\"parity\":\"odd\"}" };

	MUST(STORE_OK, store_sandbox_update(s, &row, SANDBOX_SET_LABELS, HEAR, &e));
	q.labels = odd_2;
	q.n_labels = 1;
	CHECK_STR(numbers(s, q), "23,21,19,17,15,13,11,09,07,05,03,01,00");
	q.page = (struct store_page){ .is_all_tenants = true, .limit = 1 };
	CHECK_STR(numbers(s, q), "other,23,21,19,17,15,13,11,09,07,05,03,01,00");
	store_close(s);
	dir_remove();
}

TEST(states_filter_and_gone_is_left_out)
{
	struct store *s = open_many();
	struct sandbox_query q = { .page = { .tenant = "t1" }, .states = 1u << SANDBOX_RUNNING };

	move(s, "sb_03", SANDBOX_RUNNING, STORE_OK);
	move(s, "sb_07", SANDBOX_RUNNING, STORE_OK);
	move(s, "sb_08", SANDBOX_DELETING, STORE_OK);
	move(s, "sb_08", SANDBOX_GONE, STORE_OK);
	CHECK_STR(numbers(s, q), "07,03");
	q.states |= 1u << SANDBOX_GONE;
	CHECK_STR(numbers(s, q), "08,07,03");
	q.states = 0;
	CHECK(!strstr(numbers(s, q), "08"));
	store_close(s);
	dir_remove();
}

TEST(bad_questions_are_refused)
{
	static const char *const cursors[] = { "",    "n",   "x1",
		                               "o1",  "n1z", "n 1",
		                               "n-1", "1",   "n1234567890123456" };
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_list list = { 0 };
	struct store *s = open_many();
	struct sandbox_query q = { 0 };

	REFUSED(store_sandbox_list(s, &q, &a, &list, &e), "one tenant, or of all");
	q.page = (struct store_page){ .tenant = "t1", .is_all_tenants = true };
	REFUSED(store_sandbox_list(s, &q, &a, &list, &e), "one tenant, or of all");
	q.page = (struct store_page){ .tenant = "t1", .limit = STORE_LIST_MAX + 1 };
	REFUSED(store_sandbox_list(s, &q, &a, &list, &e), "at most 1000");
	for (size_t i = 0; i < COUNT(cursors); i++) {
		q.page = (struct store_page){ .tenant = "t1", .cursor = cursors[i] };
		REFUSED(store_sandbox_list(s, &q, &a, &list, &e), "cursor");
	}
	q.page.cursor = NULL;
	q.n_labels = STORE_LABELS_MAX + 1;
	REFUSED(store_sandbox_list(s, &q, &a, &list, &e), "at most 8 labels");
	store_close(s);
	dir_remove();
}

TEST(a_page_of_large_rows_ends_early)
{
	enum { LARGE = 12, BYTES = 900 << 10 };
	struct err e = { 0 };
	struct arena a = { 0 };
	struct sandbox_list list;
	AUTO(freep) char *spec = mem_alloc(BYTES + 1);

	memset(spec, ' ', BYTES);
	spec[0] = '{';
	spec[BYTES - 1] = '}';
	dir_make();
	struct store *s = must_open();

	for (int i = 0; i < LARGE; i++) {
		char id[32];

		snprintf(id, sizeof id, "sb_%02d", i);
		struct sandbox_row row = row_of(id);

		row.spec = spec;
		MUST(STORE_OK, store_sandbox_insert(s, &row, HEAR, &e));
	}
	struct sandbox_query q = { .page = { .tenant = "t1" } };

	CHECK_INT(store_sandbox_list(s, &q, &a, &list, &e), 0);
	CHECK_INT(list.n, 5);
	CHECK(list.next);
	arena_done(&a);
	CHECK_STR(numbers(s, q), "11,10,09,08,07,06,05,04,03,02,01,00");
	store_close(s);
	dir_remove();
}
