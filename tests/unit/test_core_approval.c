#include "core/approval-internal.h"

#include "unit/test_core.h"
#include "wire/hash.h"
#include "wire/tree.h"

/* Decisions need the ledger: tests/net/approvals.py has them. */

static struct {
	int n;
	enum approval_state state;
	char id[ID_SIZE];
} answers[APPROVALS_PER_SANDBOX + 8];

static void be_told(void *arg, const struct approval_row *row)
{
	size_t i = (size_t)(uintptr_t)arg;

	answers[i].n++;
	answers[i].state = row->state;
	snprintf(answers[i].id, sizeof answers[i].id, "%s", row->id);
}

static void *as(size_t i)
{
	return (void *)(uintptr_t)i;
}

static void begin(void)
{
	struct err e = { 0 };

	memset(answers, 0, sizeof answers);
	rig_start();
	CHECK_INT(approvals_open(&rig_core, &e), 0);
}

static void finish(void)
{
	struct core *c = &rig_core;

	c->is_closing = true;
	store_close(c->store); /* first: whoever waits for it has to be there */
	approvals_close(c);
	c->store = NULL;
	rig_stop();
}

static struct approval_ask ask_of(const char *what)
{
	return (struct approval_ask){ .kind = APPROVAL_NET,
		                      .tenant = "t1",
		                      .sandbox = "sb_1",
		                      .workspace = "ws_1",
		                      .what = what,
		                      .timeout_ms = 60000 };
}

static const char *must_ask(const struct approval_ask *a, size_t i)
{
	static char id[ID_SIZE];
	struct fail f = { 0 };

	CHECK_INT(approval_ask(&rig_core, a, be_told, as(i), id, &f), 0);
	return id;
}

static struct approval_row stored(const char *id, struct arena *a)
{
	struct approval_row row = { 0 };
	struct err e = { 0 };

	for (int i = 0; i < 1000; i++) {
		if (store_approval_get(rig_core.store, NULL, id, a, &row, &e) == 0)
			break;
		rig_pass(1);
	}
	CHECK_STR(row.id, id);
	return row;
}

TEST(the_same_is_one_question_until_the_last_has_left)
{
	struct approval_ask a = ask_of("a"), b = ask_of("b"), other = ask_of("a");
	struct arena arena = { 0 };
	char id[ID_SIZE];

	dir_make();
	begin();
	other.sandbox = "sb_2";
	snprintf(id, sizeof id, "%s", must_ask(&a, 1));
	CHECK_STR(must_ask(&a, 2), id);
	CHECK(strcmp(must_ask(&b, 3), id) != 0);
	CHECK(strcmp(must_ask(&other, 4), id) != 0);
	CHECK_INT(stored(id, &arena).state, APPROVAL_PENDING);
	approval_cancel(&rig_core, as(1));
	CHECK_INT(stored(id, &arena).state, APPROVAL_PENDING);
	approval_cancel(&rig_core, as(2));
	RIG_UNTIL(stored(id, &arena).state == APPROVAL_WITHDRAWN);
	CHECK(strcmp(must_ask(&a, 5), id) != 0); /* that one is over */
	CHECK_INT(answers[1].n + answers[2].n, 0);
	approvals_of_gone(&rig_core, "sb_1");
	CHECK_INT(answers[3].state, APPROVAL_WITHDRAWN);
	CHECK_INT(answers[5].state, APPROVAL_WITHDRAWN);
	CHECK_INT(answers[4].n, 0); /* of another sandbox */
	arena_done(&arena);
	finish();
	dir_remove();
}

TEST(no_answer_in_time_is_told_once_as_such)
{
	struct approval_ask a = ask_of("a");
	struct arena arena = { 0 };
	char id[ID_SIZE];

	dir_make();
	begin();
	a.timeout_ms = 30;
	snprintf(id, sizeof id, "%s", must_ask(&a, 1));
	RIG_UNTIL(answers[1].n > 0);
	CHECK_INT(answers[1].state, APPROVAL_EXPIRED);
	RIG_UNTIL(stored(id, &arena).state == APPROVAL_EXPIRED);
	rig_pass(20);
	CHECK_INT(answers[1].n, 1);
	arena_done(&arena);
	finish();
	dir_remove();
}

TEST(who_comes_when_too_many_wait_is_refused)
{
	struct fail f = { 0 };
	char id[ID_SIZE];

	dir_make();
	begin();
	for (size_t i = 0; i < APPROVALS_PER_SANDBOX; i++) {
		char what[16];
		struct approval_ask a = ask_of(what);

		snprintf(what, sizeof what, "%zu", i);
		(void)must_ask(&a, i);
	}
	struct approval_ask more = ask_of("more"), again = ask_of("0"), other = ask_of("more");

	CHECK_INT(approval_ask(&rig_core, &more, be_told, as(70), id, &f), -1);
	CHECK_INT(f.code, FAIL_QUOTA);
	(void)must_ask(&again, 70); /* is no new one */
	other.sandbox = "sb_2";
	(void)must_ask(&other, 71);
	finish();
	dir_remove();
}

TEST(what_stands_answers_in_the_next_turn)
{
	struct approval_ask a = ask_of("a"), other = ask_of("a");
	struct approval_row row = { .id = "ap_old",
		                    .tenant = "t1",
		                    .kind = "net",
		                    .sandbox = "sb_1",
		                    .what = "a",
		                    .created_ms = 1,
		                    .until_ms = 2 };
	struct approval_row yes = { .id = "ap_old",
		                    .state = APPROVAL_ALLOWED,
		                    .scope = "sandbox",
		                    .actor = "uid:0",
		                    .decided_ms = 1,
		                    .expires_ms = core_now_ms() + 60000 };
	struct store_call nobody = { 0 };
	struct arena arena = { 0 };
	struct err e = { 0 };

	dir_make();
	begin();
	CHECK_INT(store_approval_insert(rig_core.store, &row, nobody, &e), 0);
	CHECK_INT(store_approval_decide(rig_core.store, &yes, nobody, &e), 0);
	RIG_UNTIL(stored("ap_old", &arena).state == APPROVAL_ALLOWED);
	CHECK_STR(must_ask(&a, 1), "ap_old");
	CHECK_INT(answers[1].n, 0); /* not before it returns */
	RIG_UNTIL(answers[1].n > 0);
	CHECK_INT(answers[1].state, APPROVAL_ALLOWED);
	(void)must_ask(&a, 2);
	approval_cancel(&rig_core, as(2));
	rig_pass(10);
	CHECK_INT(answers[2].n, 0);
	other.sandbox = "sb_2";
	CHECK(strcmp(must_ask(&other, 3), "ap_old") != 0);
	arena_done(&arena);
	finish();
	dir_remove();
}

TEST(a_question_outlives_the_daemon_and_is_joined_again)
{
	struct approval_ask a = ask_of("a");
	struct arena arena = { 0 };
	char id[ID_SIZE];

	dir_make();
	begin();
	snprintf(id, sizeof id, "%s", must_ask(&a, 1));
	(void)stored(id, &arena);
	finish();
	begin();
	CHECK(approval_find(&rig_core, id) != NULL);
	CHECK_STR(must_ask(&a, 1), id);
	approval_cancel(&rig_core, as(1));
	RIG_UNTIL(stored(id, &arena).state == APPROVAL_WITHDRAWN);
	arena_done(&arena);
	finish();
	dir_remove();
}

TEST(foreign_text_is_escaped_and_bounded)
{
	static char big[3 * STORE_TEXT_MAX];
	static const struct {
		const char *said, *shown;
	} rows[] = {
		{ "plain", "plain" },
		{ "a\x1b[2Jb\n", "a\\x1b[2Jb\\n" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "c1 \xc2\x9b", "c1 \\u{9b}" },
		{ "run true '\xe2\x80\xaegnp.exe'", "run true '\\u{202e}gnp.exe'" },
		{ "\xe2\x80\x8b\xe2\x81\xa6\xc2\xad", "\\u{200b}\\u{2066}\\u{ad}" },
		{ "\xf3\xa0\x81\x81\xe2\x80\xa8", "\\u{e0041}\\u{2028}" },
		{ "torn \xc3", "torn \\xc3" },
	};
	struct arena arena = { 0 };
	struct fail f = { 0 };
	char id[ID_SIZE];

	dir_make();
	begin();
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct approval_ask a = ask_of(rows[i].said);

		CHECK_STR(approval_find(&rig_core, must_ask(&a, i))->what, rows[i].shown);
	}
	memset(big, 'x', sizeof big - 1);
	struct approval_ask one = ask_of(big);

	snprintf(id, sizeof id, "%s", must_ask(&one, 10));
	CHECK(strlen(approval_find(&rig_core, id)->what) <= STORE_TEXT_MAX);
	CHECK_STR(must_ask(&one, 11), id);
	big[sizeof big - 2] = 'y'; /* another one, beyond what is shown */
	CHECK(strcmp(must_ask(&one, 12), id) != 0);
	struct approval_ask none = ask_of("");

	CHECK_INT(approval_ask(&rig_core, &none, be_told, as(13), id, &f), -1);
	none = ask_of("nobody waits");
	CHECK_INT(approval_ask(&rig_core, &none, NULL, NULL, id, &f), -1);
	none.is_lasting = true;
	CHECK_INT(approval_ask(&rig_core, &none, NULL, NULL, id, &f), 0);
	arena_done(&arena);
	finish();
	dir_remove();
}

/* What a yes is told that proves to have seen `seen`; NULL: it may be said. */
static const char *refused(const char *id, const char *seen)
{
	static struct fail f;

	f = (struct fail){ 0 };
	return approval_was_seen(approval_find(&rig_core, id), seen, &f) < 0 ? f.detail : NULL;
}

TEST(a_line_that_was_cut_is_allowed_only_by_who_saw_all_of_it)
{
	static char big[3 * STORE_TEXT_MAX], huge[64 << 10];
	char id[ID_SIZE], sum[TREE_HASH_TEXT];
	const char *why;

	dir_make();
	begin();
	memset(big, 'x', sizeof big - 1);
	memset(huge, 'x', sizeof huge - 1);
	struct approval_ask whole = ask_of("short"), cut = ask_of(big), lost = ask_of(huge),
			    part = ask_of("run something ... (cut)");

	part.is_cut = true;
	snprintf(id, sizeof id, "%s", must_ask(&cut, 1));
	CHECK(strstr(approval_find(&rig_core, id)->detail, big) != NULL);
	why = refused(id, NULL);
	CHECK(why && strstr(why, "seen: "));
	hash_of(span_of(approval_find(&rig_core, id)->what), sum); /* of what was cut */
	why = refused(id, sum);
	CHECK(why && strstr(why, "seen: "));
	hash_of(span_of(big), sum);
	CHECK(refused(id, sum) == NULL);
	why = refused(must_ask(&lost, 2), sum);
	CHECK(why && strstr(why, "can only be denied"));
	why = refused(must_ask(&part, 3), sum);
	CHECK(why && strstr(why, "can only be denied"));
	CHECK(refused(must_ask(&whole, 4), NULL) == NULL);
	finish();
	dir_remove();
}
