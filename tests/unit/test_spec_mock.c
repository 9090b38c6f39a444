#include "spec/mock.h"

#include "base/limits.h"
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
		"files: []",
		"files: {a: 5}",
		"files: {a: '!'}",
		"files: {a: AAA}",
		"files: {../a: ''}",
		"files: {/a: ''}",
		"files: {'': ''}",
		"files: {a/../b: ''}",
		"{\"files\": {\"a\": \"\", \"a\": \"\"}}",
	};
	struct mock m = { 0 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };

		if (mock_read(&m, rows[i], strlen(rows[i]), &e) == 0)
			printf("# taken: %s\n", rows[i]);
		CHECK(e.msg[0]);
	}
}

TEST(files_by_their_path)
{
	static const char json[] = "{\"files\": {\"a/b.json\": \"e30K\", \"index.html\": \"PGI+\","
				   "\"a b+c%20.bin\": \"AAEC\", \"empty\": \"\"}}";
	static const struct {
		const char *method, *path;
		uint32_t status; /* 0: none */
		const char *type, *body;
		size_t len;
	} rows[] = {
		{ "GET", "/a/b.json", 200, "application/json", "{}\n", 3 },
		{ "HEAD", "/a/b.json", 200, "application/json", "{}\n", 3 },
		{ "GET", "/", 200, "text/html; charset=utf-8", "<b>", 3 },
		{ "GET", "/index.html", 200, "text/html; charset=utf-8", "<b>", 3 },
		{ "GET", "/a%20b+c%2520.bin", 200, "application/octet-stream", "\0\1\2", 3 },
		{ "GET", "/a%20b%2Bc%2520.bin", 200, "application/octet-stream", "\0\1\2", 3 },
		{ "GET", "/empty", 200, "application/octet-stream", "", 0 },
		{ "GET", "/a/", 0, NULL, NULL, 0 },
		{ "GET", "/a", 0, NULL, NULL, 0 },
		{ "GET", "/a/b.json/", 0, NULL, NULL, 0 },
		{ "GET", "/A/b.json", 0, NULL, NULL, 0 },
		{ "POST", "/a/b.json", 405, "GET, HEAD", "", 0 },
		{ "DELETE", "/other", 405, "GET, HEAD", "", 0 },
	};
	struct mock m = { 0 };
	struct err e = { 0 };

	CHECK_INT(mock_read(&m, json, strlen(json), &e), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct mock_answer *a = mock_find(&m, rows[i].method, rows[i].path);

		CHECK_INT(a ? a->status : 0, rows[i].status);
		if (!a)
			continue;
		CHECK_STR(a->headers.at[0].value, rows[i].type);
		CHECK_INT(a->body_len, rows[i].len);
		CHECK(memcmp(a->body, rows[i].body, rows[i].len) == 0);
	}
	mock_done(&m);
}

TEST(answers_come_before_files)
{
	static const char yaml[] = "answers: [{method: POST, path: /a, status: 201}]\n"
				   "files: {a: e30K}\n";
	struct mock m = { 0 };
	struct err e = { 0 };

	CHECK_INT(mock_read(&m, yaml, strlen(yaml), &e), 0);
	CHECK_INT(mock_find(&m, "POST", "/a")->status, 201);
	CHECK_INT(mock_find(&m, "GET", "/a")->status, 200);
	CHECK_INT(mock_find(&m, "POST", "/b")->status, 405);
	mock_done(&m);
}

TEST(files_have_bounds)
{
	AUTO(str_done) struct str many = { .max = 1u << 20 };
	AUTO(str_done) struct str large = { .max = 8u << 20 };
	const struct {
		const struct str *text;
		const char *why;
	} rows[] = { { &many, "files: has more than 1000 entries" },
		     { &large, "files: b: the files have more than 2097152 bytes" } };

	str_add(&many, "{\"files\": {\"f\": \"\"");
	for (int i = 0; i < MOCK_FILES_MAX; i++)
		str_addf(&many, ",\"f%d\": \"\"", i);
	str_add(&many, "}}");
	str_add(&large, "{\"files\": {\"a\": \"");
	for (size_t i = 0; i < MOCK_BYTES_MAX / 3; i++)
		str_add(&large, "AAAA");
	str_add(&large, "\", \"b\": \"AAAA\"}}");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mock m = { 0 };
		struct err e = { 0 };

		CHECK_INT(mock_read(&m, str_text(rows[i].text), rows[i].text->len, &e), -1);
		CHECK(strstr(e.msg, rows[i].why));
	}
}
