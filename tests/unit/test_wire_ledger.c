#include "wire/ledger.h"

#include "test.h"
#include "wire/hash.h"

#define ONE "1111111111111111111111111111111111111111111111111111111111111111"

TEST(a_line_is_what_the_format_says)
{
	const struct ledger_event ev = { .kind = LEDGER_EXEC_STARTED,
		                         .tenant = "uid:0",
		                         .sandbox = "sb_1",
		                         .workspace = "ws_1",
		                         .process = "px_1",
		                         .actor = "uid:1000",
		                         .src = "ab-2",
		                         .data = "{\"argv\":[\"true\"]}" };
	const struct ledger_place at = {
		.seq = 7, .ts_ms = 1000, .prev = ONE, .link_seq = 2, .link_prev = LEDGER_ZERO
	};
	static const char body[] = "{\"seq\":7,\"ts\":1000,\"kind\":\"exec.started\",\"tenant\":"
				   "\"uid:0\",\"sandbox\":\"sb_1\",\"link\":{\"seq\":2,\"prev\":"
				   "\"" LEDGER_ZERO "\"},\"workspace\":\"ws_1\",\"process\":"
				   "\"px_1\",\"actor\":\"uid:1000\",\"src\":\"ab-2\",\"data\":"
				   "{\"argv\":[\"true\"]},\"prev\":\"" ONE "\"";
	AUTO(str_done) struct str line = { .max = LEDGER_LINE_MAX };
	AUTO(str_done) struct str want = { .max = LEDGER_LINE_MAX };
	char hash[LEDGER_HASH_SIZE], again[LEDGER_HASH_SIZE];
	struct ledger_line l;

	CHECK(ledger_print(&line, &ev, &at, hash));
	hash_of(span_of(body), again);
	CHECK_STR(hash, again);
	str_addf(&want, "%s,\"hash\":\"%s\"}\n", body, hash);
	CHECK_STR(str_text(&line), str_text(&want));

	struct span one = { line.data, line.len - 1 };

	CHECK_INT(ledger_parse(one, &l), 0);
	CHECK(ledger_hash_holds(one, &l));
	CHECK_INT((long long)l.seq, 7);
	CHECK_INT(l.ts_ms, 1000);
	CHECK_INT((long long)l.link_seq, 2);
	CHECK(span_is(l.kind, "exec.started") && span_is(l.tenant, "uid:0"));
	CHECK(span_is(l.sandbox, "sb_1") && span_is(l.link_prev, LEDGER_ZERO));
	CHECK(span_is(l.workspace, "ws_1") && span_is(l.process, "px_1"));
	CHECK(span_is(l.actor, "uid:1000") && span_is(l.src, "ab-2"));
	CHECK(span_is(l.data, "{\"argv\":[\"true\"]}") && span_is(l.prev, ONE));
}

TEST(what_would_break_a_line_is_refused)
{
	char long_name[LEDGER_NAME_SIZE + 1];
	AUTO(freep) char *long_data = mem_alloc(LEDGER_DATA_MAX + 2);

	memset(long_name, 'a', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	memset(long_data, ' ', LEDGER_DATA_MAX + 1);
	long_data[0] = '{';
	long_data[LEDGER_DATA_MAX] = '}';
	long_data[LEDGER_DATA_MAX + 1] = '\0';
	const struct ledger_event rows[] = {
		{ .tenant = "a\"b", .data = "{}" },
		{ .sandbox = "a\nb", .data = "{}" },
		{ .workspace = "a\\b", .data = "{}" },
		{ .process = "a b", .data = "{}" },
		{ .actor = "\x1b[2J", .data = "{}" },
		{ .actor = "\xc3\xa9", .data = "{}" },
		{ .src = long_name, .data = "{}" },
		{ .data = "" },
		{ .data = "[" },
		{ .data = "{\n}" },
		{ .data = "{\"a\":\"\x7f\"}" },
		{ .data = "{\"a\":\"\xe2\x80\xae\"}" },
		{ .data = long_data },
	};
	const struct ledger_place at = { .seq = 1, .prev = LEDGER_ZERO };

	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(str_done) struct str line = { .max = 2ul * LEDGER_LINE_MAX };
		char hash[LEDGER_HASH_SIZE];

		printf("# row %zu\n", i);
		CHECK(!ledger_print(&line, &rows[i], &at, hash));
		CHECK_INT((long long)line.len, 0);
	}
}

#define END ",\"prev\":\"" ONE "\",\"hash\":\"" ONE "\"}"

TEST(only_the_one_form_is_read)
{
	static const struct {
		const char *line;
		bool is_good;
	} rows[] = {
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"data\":{}" END, true },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"tenant\":\"t\",\"data\":{}" END, true },
		{ "{\"seq\":0,\"ts\":0,\"kind\":\"x\",\"data\":{}" END, false },
		{ "{\"seq\":01,\"ts\":0,\"kind\":\"x\",\"data\":{}" END, false },
		{ "{\"seq\":-1,\"ts\":0,\"kind\":\"x\",\"data\":{}" END, false },
		{ "{\"seq\":99999999999999999999,\"ts\":0,\"kind\":\"x\",\"data\":{}" END, false },
		{ "{ \"seq\":1,\"ts\":0,\"kind\":\"x\",\"data\":{}" END, false },
		{ "{\"ts\":0,\"seq\":1,\"kind\":\"x\",\"data\":{}" END, false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"\",\"data\":{}" END, false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"a\\u0000\",\"data\":{}" END, false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"process\":\"p\",\"sandbox\":\"s\","
		  "\"data\":{}" END,
		  false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"link\":{\"seq\":1,\"prev\":\"" ONE
		  "\"},\"data\":{}" END,
		  false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"data\":[]" END, false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"data\":{\t}" END, false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\"" END, false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"data\":{}" END " ", false },
		{ "{\"seq\":1,\"ts\":0,\"kind\":\"x\",\"data\":{},\"prev\":\"\",\"hash\":\"\"}",
		  false },
		{ "", false },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct ledger_line l;

		printf("# row %zu\n", i);
		CHECK_INT(ledger_parse(span_of(rows[i].line), &l), rows[i].is_good ? 0 : -1);
	}
}

TEST(names_of_files)
{
	static const struct {
		const char *name;
		uint64_t seq;
	} rows[] = {
		{ "00000000000000000001.jsonl", 1 },
		{ "00000000000000123456.jsonl", 123456 },
		{ "0000000000000000001.jsonl", 0 },
		{ "00000000000000000001.json", 0 },
		{ "00000000000000000001.torn", 0 },
		{ "x0000000000000000001.jsonl", 0 },
		{ "99999999999999999999.jsonl", 0 },
		{ "head", 0 },
		{ "", 0 },
	};
	char name[LEDGER_FILE_SIZE];

	for (size_t i = 0; i < COUNT(rows); i++)
		CHECK_INT((long long)ledger_file_seq(rows[i].name), (long long)rows[i].seq);
	ledger_file_name(42, name);
	CHECK_STR(name, "00000000000000000042.jsonl");
}

TEST(kinds_have_names_of_their_own)
{
	for (enum ledger_kind k = 0; k < LEDGER_KINDS; k++) {
		CHECK_INT(ledger_kind_of(span_of(ledger_kind_name(k))), k);
		CHECK(strlen(ledger_kind_name(k)) < LEDGER_KIND_SIZE);
	}
	CHECK_INT(ledger_kind_of(span_of("exec")), LEDGER_KINDS);
}

struct packet {
	struct ledger_append a;
	char data[64];
};

TEST(packets)
{
#define GOOD                                                                                       \
	{                                                                                          \
		.type = LEDGER_APPEND, .kind = LEDGER_EXEC_ENDED, .num = 1                         \
	}
	struct packet good = { .a = GOOD };
	const size_t n = sizeof good.a + 3;

	memcpy(good.a.data, "{}", 3);
	CHECK(ledger_append_check(&good.a, n));
	CHECK(!ledger_append_check(&good.a, n - 1));
	CHECK(!ledger_append_check(&good.a, n + 1));
	CHECK(!ledger_append_check(&good.a, sizeof good.a));
	struct packet bad = good;
	bad.a.kind = LEDGER_CHECKPOINT; /* nobody but the writer says that */
	CHECK(!ledger_append_check(&bad.a, n));
	bad = good;
	bad.a.kind = LEDGER_KINDS;
	CHECK(!ledger_append_check(&bad.a, n));
	bad = good;
	bad.a.num = 0;
	CHECK(!ledger_append_check(&bad.a, n));
	bad = good;
	memset(bad.a.actor, 'a', sizeof bad.a.actor);
	CHECK(!ledger_append_check(&bad.a, n));
	bad = good;
	memcpy(bad.a.data, "{\n", 3);
	CHECK(!ledger_append_check(&bad.a, n));

	struct ledger_hello h = { .type = LEDGER_HELLO, .version = LEDGER_VERSION, .life = "0f" };
	CHECK(ledger_hello_check(&h, sizeof h));
	CHECK(!ledger_hello_check(&h, sizeof h - 1));
	h.life[1] = 'g';
	CHECK(!ledger_hello_check(&h, sizeof h));
	memset(h.life, '0', sizeof h.life);
	CHECK(!ledger_hello_check(&h, sizeof h));
}
