/*
 * mock.h - a host that the gate itself plays: which request gets which answer. Pure.
 *
 *   answers:                        # the first one that fits; nothing fits: 404
 *     - method: POST                # all, unless given
 *       path: /v1/charges           # patterns as in net.http; all, unless given
 *       status: 201                 # 200
 *       headers: {Content-Type: application/json}
 *       body: '{"id": "ch_1"}'
 *       delay: 100ms                # none
 *   files:                          # a folder: GET and HEAD, by path; behind the answers
 *     a/b.json: e30K                # base64; the type is by the ending; "a/" is a/index.html
 */
#pragma once

#include "spec/spec.h"

struct mock_answer {
	const char *method, *path; /* NULL: all */
	uint32_t status, delay_ms;
	struct pair_list headers;
	const char *body;
	size_t body_len; /* it may have zeros */
};

struct mock_file {
	const char *path; /* nothing in it is escaped; begins with a slash */
	struct mock_answer answer;
};

struct mock {
	struct arena arena;
	VEC(struct mock_answer) answers;
	VEC(struct mock_file) files;
	size_t files_bytes;
};

/* JSON or YAML. On failure *m is not touched. */
int mock_read(struct mock *m, const char *text, size_t n, struct err *e) MUST_USE;
void mock_done(struct mock *m);

/* `path` is from http_target_normal(). NULL: nothing fits. */
const struct mock_answer *mock_find(const struct mock *m, const char *method, const char *path);
