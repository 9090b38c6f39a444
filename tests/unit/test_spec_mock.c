#include "spec/mock.h"

#include "test.h"

static const char text[] = "answers:\n"
			   "  - {method: GET, path: /v1/users/*, body: one}\n"
			   "  - method: POST\n"
			   "    path: /v1/**\n"
			   "    status: 201\n"
			   "    headers: {Content-Type: application/json, X-A: b}\n"
			   "    body: '{\"id\": 1}'\n"
			   "    delay: 100ms\n"
			   "  - {status: 418}\n";

TEST(the_first_answer_that_fits)
{
	static const struct {
		const char *method, *path;
		uint32_t status;
		const char *body;
	} rows[] = {
		{ "GET", "/v1/users/7", 200, "one" },
		{ "HEAD", "/v1/users/7", 200, "one" },
		{ "GET", "/v1/users/7/x", 418, "" },
		{ "POST", "/v1/users/7/x", 201, "{\"id\": 1}" },
		{ "DELETE", "/", 418, "" },
	};
	struct mock m = { 0 };
	struct err e = { 0 };

	CHECK_INT(mock_read(&m, text, strlen(text), &e), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct mock_answer *a = mock_find(&m, rows[i].method, rows[i].path);

		CHECK(a);
		CHECK_INT(a->status, rows[i].status);
		CHECK_STR(a->body, rows[i].body);
	}
	CHECK_INT(m.answers.at[1].delay_ms, 100);
	CHECK_INT(m.answers.at[1].headers.len, 2);
	CHECK_STR(m.answers.at[1].headers.at[0].key, "Content-Type");
	mock_done(&m);
	mock_done(&m);
}

TEST(nothing_fits)
{
	static const char json[] = "{\"answers\": [{\"path\": \"/a\"}]}";
	struct mock m = { 0 };
	struct err e = { 0 };

	CHECK_INT(mock_read(&m, json, strlen(json), &e), 0);
	CHECK(mock_find(&m, "GET", "/a"));
	CHECK(!mock_find(&m, "GET", "/b"));
	mock_done(&m);
}

TEST(what_cannot_be_answered_is_refused)
{
	static const char *const rows[] = {
		"",
		"[]",
		"answers: 5",
		"answers: [5]",
		"answers: [{status: 99}]",
		"answers: [{status: 101}]",
		"answers: [{status: ok}]",
		"answers: [{method: 'GE T'}]",
		"answers: [{path: relative}]",
		"answers: [{path: '/a?b'}]",
		"answers: [{headers: {Content-Length: 5}}]",
		"answers: [{headers: {Connection: close}}]",
		"answers: [{headers: {'A B': c}}]",
		"answers: [{headers: {A: \"b\\r\\nC: d\"}}]",
		"answers: [{delay: 2h}]",
		"answers: [{delay: soon}]",
		"answers: [{nonsense: 1}]",
		"other: 1",
	};
	struct mock m = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		if (mock_read(&m, rows[i], strlen(rows[i]), &e) == 0)
			printf("# taken: %s\n", rows[i]);
		CHECK(e.msg[0]);
	}
}
