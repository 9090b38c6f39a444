#include "wire/attest.h"

#include "test.h"

struct row {
	enum ledger_kind kind;
	const char *workspace, *process, *data;
};

/* clang-format off */
static const struct row task[] = {
	{ LEDGER_WORKSPACE_CREATED, "ws_1", "", "{\"base\":\"ba5e\",\"branch\":\"fix\",\"key\":\"k\",\"repo\":\"rp_1\"}" },
	{ LEDGER_SANDBOX_CREATED,   "ws_1", "", "{\"image\":\"tools\",\"image_digest\":\"d1\",\"policy\":\"p1\"}" },
	{ LEDGER_EXEC_STARTED,      "ws_1", "px_1", "{\"argv\":[\"make\"],\"cwd\":\"/work\"}" },
	{ LEDGER_EXEC_STARTED,      "ws_2", "px_9", "{\"argv\":[\"another's\"]}" },
	{ LEDGER_NET_CONNECTION,    "ws_1", "px_1", "{\"close\":\"open\",\"decision\":\"allow\",\"name\":\"ok.test\",\"port\":443}" },
	{ LEDGER_NET_CONNECTION,    "ws_1", "px_1", "{\"close\":\"client\",\"decision\":\"allow\",\"name\":\"ok.test\",\"port\":443}" },
	{ LEDGER_NET_LOOKUP,        "ws_1", "px_1", "{\"decision\":\"deny\",\"name\":\"evil.test\",\"port\":53}" },
	{ LEDGER_EXEC_ENDED,        "ws_1", "px_1", "{\"exit_code\":2}" },
	{ LEDGER_SECRET_USED,       "ws_1", "px_1", "{\"secret\":\"token\"}" },
	{ LEDGER_POLICY_CHANGED,    "ws_1", "", "{\"policy\":\"p2\"}" },
	{ LEDGER_GIT_COMMITTED,     "ws_1", "", "{\"commit\":\"c1\",\"tree\":\"t1\"}" },
	{ LEDGER_EXEC_STARTED,      "ws_1", "px_2", "{\"argv\":[\"later\"]}" },
	{ LEDGER_APPLIED,           "ws_1", "", "{\"state\":\"begun\",\"tree\":\"t2\"}" },
	{ LEDGER_GIT_PUSHED,        "ws_1", "", "{\"branch\":\"fix\",\"commit\":\"c3\",\"host\":\"forge.test\"}" },
	{ LEDGER_EXEC_STARTED,      "ws_1", "px_3", "{\"argv\":[\"too late\"]}" },
};
/* clang-format on */

static bool attested(uint64_t record, const char *tenant, struct str *out)
{
	struct attest_ask ask = { .workspace = "ws_1", .record = record, .ledger = "1ed9e7" };
	struct attest a;

	snprintf(ask.tenant, sizeof ask.tenant, "%s", tenant);
	attest_init(&a, &ask);
	for (size_t i = 0; i < COUNT(task); i++) {
		AUTO(str_done) struct str line = { .max = LEDGER_LINE_MAX };
		const struct ledger_event ev = { .kind = task[i].kind,
			                         .tenant = "t",
			                         .workspace = task[i].workspace,
			                         .process = task[i].process,
			                         .data = task[i].data };
		const struct ledger_place at = { .seq = i + 1,
			                         .ts_ms = 1000 * (int64_t)i,
			                         .prev = LEDGER_ZERO };
		char hash[LEDGER_HASH_SIZE];
		struct ledger_line l;

		CHECK(ledger_print(&line, &ev, &at, hash));
		CHECK_INT(ledger_parse((struct span){ line.data, line.len - 1 }, &l), 0);
		attest_feed(&a, &l);
	}
	bool is_there = attest_print(&a, out);

	attest_done(&a);
	return is_there;
}

static void check_all(const char *text, const char *const *wanted)
{
	for (size_t i = 0; wanted[i]; i++)
		if (!strstr(text, wanted[i]))
			CHECK_STR(text, wanted[i]);
}

TEST(a_commit_is_what_was_known_then)
{
	static const char *const wanted[] = {
		"\"subject\":[{\"digest\":{\"gitCommit\":\"c1\",\"gitTree\":\"t1\"},\"name\":\"ws_"
		"1\"}]",
		"\"predicateType\":\"https://slsa.dev/provenance/v1\"",
		"\"commands\":[{\"argv\":[\"make\"],\"cwd\":\"/"
		"work\",\"exit_code\":2}],\"commands_total\":1",
		"\"policies\":[\"p1\",\"p2\"]",
		"{\"digest\":{\"gitCommit\":\"ba5e\"},\"name\":\"base\",\"uri\":\"urn:caisson:"
		"repository:rp_1\"}",
		"{\"digest\":{\"sha256\":\"d1\"},\"name\":\"image\",\"uri\":\"urn:caisson:image:"
		"tools\"}",
		"\"hosts\":{\"evil.test\":{\"denied\":1},\"ok.test:443\":{\"connections\":1}}",
		"\"secrets\":{\"token\":1}",
		"\"kind\":\"git.committed\",\"record\":11",
		"\"finishedOn\":\"1970-01-01T00:00:10Z\"",
		NULL
	};
	AUTO(str_done) struct str out = { .max = ATTEST_BYTES_MAX };
	AUTO(str_done) struct str again = { .max = ATTEST_BYTES_MAX };

	CHECK(attested(11, "t", &out) && attested(11, "t", &again));
	check_all(str_text(&out), wanted);
	CHECK(!strstr(str_text(&out), "another") && !strstr(str_text(&out), "later"));
	CHECK_STR(str_text(&again), str_text(&out));
	json_t *o = attest_read((struct span){ out.data, out.len });

	CHECK(o);
	json_decref(o);
}

TEST(the_last_one_unless_another_is_asked_for)
{
	static const char *const wanted[] = { "\"name\":\"forge.test fix\"", "\"gitCommit\":\"c3\"",
		                              "[\"later\"]", NULL };
	AUTO(str_done) struct str out = { .max = ATTEST_BYTES_MAX };

	CHECK(attested(0, "t", &out));
	check_all(str_text(&out), wanted);
	CHECK(!strstr(str_text(&out), "too late"));
}

TEST(what_is_no_promotion_is_not_attested)
{
	AUTO(str_done) struct str out = { .max = ATTEST_BYTES_MAX };

	CHECK(!attested(3, "t", &out));  /* a command */
	CHECK(!attested(13, "t", &out)); /* an apply that has only begun */
	CHECK(!attested(99, "t", &out) || strstr(str_text(&out), "c3") == NULL);
	CHECK(!attested(0, "u", &out)); /* another's */
	CHECK_STR(str_text(&out), "");
}

TEST(what_is_no_statement_of_ours_is_not_read)
{
	CHECK(!attest_read(span_of("{}")));
	CHECK(!attest_read(span_of("")));
	CHECK(!attest_read(span_of("{\"_type\":\"https://in-toto.io/Statement/v1\"}")));
}
