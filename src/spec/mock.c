#include "spec/mock.h"

#include "spec/opts.h"
#include "spec/rules.h"
#include "wire/base64.h"
#include "wire/http.h"
#include "wire/target.h"
#include "wire/url.h"

#define DELAY_MS_MAX 60000u
#define STATUS_DEFAULT 200

/* ---- values -------------------------------------------------------------------------- */

static int status_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	uint32_t *field = opt_field(o, into);

	(void)in;
	if (!json_is_integer(v) || json_integer_value(v) < 200 || json_integer_value(v) > 599)
		return wrong_type(o->type->wants, v, e);
	*field = (uint32_t)json_integer_value(v);
	return 0;
}

static int delay_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	uint32_t *field = opt_field(o, into);
	char buf[24];
	const char *text = scalar_text(v, buf);
	uint64_t ms = 0;

	(void)in;
	if (!text)
		return wrong_type(o->type->wants, v, e);
	if (duration_parse(text, &ms, e) < 0)
		return -1;
	if (ms > DELAY_MS_MAX)
		return err_new(e, ERR_LIMIT, "is more than a minute");
	*field = (uint32_t)ms;
	return 0;
}

static int check_method(const struct opt *o, struct arena *a, const char *text, const char **out,
                        struct err *e)
{
	AUTO(str_done) struct str probe = { .max = HTTP_HEAD_MAX };

	(void)o;
	http_print_request(&probe, span_of(text), span_of("/"));
	if (probe.len == 0 || strlen(text) > HTTP_METHOD_MAX)
		return err_new(e, ERR_INVALID, "\"%s\" is no method", quote(text).text);
	*out = arena_strdup(a, text);
	return 0;
}

/* As http_target_normal() would write it. */
static int check_pattern(const struct opt *o, struct arena *a, const char *text, const char **out,
                         struct err *e)
{
	AUTO(str_done) struct str path = { .max = 3ul * PATH_TEXT_MAX };
	const char *checked = NULL;

	if (check_url_path(o, a, text, &checked, e) < 0)
		return -1;
	http_target_escape(checked, &path);
	*out = arena_strdup(a, str_text(&path));
	return 0;
}

/* What can stand in a head, and is not about how the answer is framed. */
static int check_field(const char *name, const char *value, struct err *e)
{
	static const struct http_head none;
	AUTO(str_done) struct str probe = { .max = HTTP_HEAD_MAX };
	struct http_print p = http_print_response(&probe, STATUS_DEFAULT);

	http_print_text(&p, name, value);
	if (p.wrong || !http_goes_on(&none, span_of(name)))
		return err_new(e, ERR_INVALID, "\"%s\" cannot be said: %s", quote(name).text,
		               p.wrong ? p.wrong : "it is about the connection");
	return 0;
}

static int check_field_name(const struct opt *o, struct arena *a, const char *text,
                            const char **out, struct err *e)
{
	(void)o;
	*out = arena_strdup(a, text);
	return check_field(text, "", e);
}

static int check_field_value(const struct opt *o, struct arena *a, const char *text,
                             const char **out, struct err *e)
{
	(void)o;
	*out = arena_strdup(a, text);
	return check_field("X", text, e);
}

/* ---- the document -------------------------------------------------------------------- */

static const struct opt_type opt_status = { .wants = "a number from 200 to 599",
	                                    .set = status_set };
static const struct opt_type opt_delay = { .wants = "a time such as 100ms", .set = delay_set };

/* clang-format off */
#define FIELD(name) .offset = offsetof(struct mock_answer, name)

static const struct opt answer_rows[] = {
	{ .key = "method", .type = &opt_text, .check = check_method, FIELD(method) },
	{ .key = "path", .type = &opt_text, .check = check_pattern, FIELD(path) },
	{ .key = "status", .type = &opt_status, FIELD(status) },
	{ .key = "headers", .type = &opt_map, .check_key = check_field_name,
	  .check = check_field_value, FIELD(headers), .max = HTTP_FIELDS_MAX - 8 },
	{ .key = "body", .type = &opt_text, .check = check_any, FIELD(body) },
	{ .key = "delay", .type = &opt_delay, FIELD(delay_ms) },
};
/* clang-format on */

static const struct opt_table answer_table = { answer_rows, COUNT(answer_rows) };

static int answer_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct mock *m = into;

	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	if (list_room(o, m->answers.len, e) < 0)
		return -1;
	vec_push(&m->answers, (struct mock_answer){ .status = STATUS_DEFAULT, .body = "" });
	struct mock_answer *a = &m->answers.at[m->answers.len - 1];

	if (members_apply(in, o->members, a, v, e) < 0)
		return -1;
	a->body_len = strlen(a->body);
	return 0;
}

/* ---- files --------------------------------------------------------------------------- */

static const char *type_of(const char *path)
{
	static const struct {
		const char *ending, *type;
	} types[] = {
		{ ".css", "text/css; charset=utf-8" },
		{ ".csv", "text/csv; charset=utf-8" },
		{ ".gif", "image/gif" },
		{ ".gz", "application/gzip" },
		{ ".htm", "text/html; charset=utf-8" },
		{ ".html", "text/html; charset=utf-8" },
		{ ".ico", "image/x-icon" },
		{ ".jpeg", "image/jpeg" },
		{ ".jpg", "image/jpeg" },
		{ ".js", "text/javascript; charset=utf-8" },
		{ ".json", "application/json" },
		{ ".jsonl", "application/x-ndjson" },
		{ ".md", "text/markdown; charset=utf-8" },
		{ ".mjs", "text/javascript; charset=utf-8" },
		{ ".pdf", "application/pdf" },
		{ ".png", "image/png" },
		{ ".svg", "image/svg+xml" },
		{ ".tar", "application/x-tar" },
		{ ".txt", "text/plain; charset=utf-8" },
		{ ".wasm", "application/wasm" },
		{ ".webp", "image/webp" },
		{ ".xml", "application/xml" },
		{ ".yaml", "application/yaml" },
		{ ".yml", "application/yaml" },
		{ ".zip", "application/zip" },
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < COUNT(types); i++)
		if (strcasecmp(dot, types[i].ending) == 0)
			return types[i].type;
	return "application/octet-stream";
}

static int file_add(struct input *in, struct mock *m, const char *name, const json_t *v,
                    struct err *e)
{
	AUTO(str_done) struct str body = { .max = MOCK_BYTES_MAX - m->files_bytes };
	const char *checked = NULL;

	if (check_rules_file(NULL, in->arena, name, &checked, e) < 0)
		return -1;
	if (!json_is_string(v))
		return wrong_type("text", v, e);
	bool is_bytes = base64_decode(json_string_value(v), json_string_length(v), &body);

	if (body.overflow)
		return err_new(e, ERR_LIMIT, "the files have more than %u bytes", MOCK_BYTES_MAX);
	if (!is_bytes)
		return err_new(e, ERR_INVALID, "is not base64");
	m->files_bytes += body.len;
	struct mock_file f = { .path = checked - 1, /* the slash is there */
		               .answer = { .status = STATUS_DEFAULT,
		                           .body =
		                               arena_strndup(in->arena, str_text(&body), body.len),
		                           .body_len = body.len } };
	struct text_pair type = { "Content-Type", type_of(checked) };

	vec_push(&f.answer.headers, type);
	vec_push(&m->files, f);
	return 0;
}

static int files_set(struct input *in, const struct opt *o, void *into, json_t *v, struct err *e)
{
	struct mock *m = into;
	const char *name;
	json_t *text;

	if (!json_is_object(v))
		return wrong_type(o->type->wants, v, e);
	json_object_foreach(v, name, text)
	{
		if (list_room(o, m->files.len, e) < 0)
			return -1;
		if (file_add(in, m, name, text, e) < 0)
			return err_wrap(e, "%s", quote(name).text);
	}
	return 0;
}

static const struct opt_type opt_answers = { .wants = "a list of objects",
	                                     .items = true,
	                                     .set = answer_set };
static const struct opt_type opt_files = { .wants = "an object of file: base64", .set = files_set };
static const struct opt rows[] = {
	{ .key = "answers", .type = &opt_answers, .members = &answer_table },
	{ .key = "files", .type = &opt_files, .max = MOCK_FILES_MAX },
};
static const struct opt_table table = { rows, COUNT(rows) };
static const struct doc_kind kind = {
	.table = &table,
	.noun = "the mock",
	.keys = "answers",
	.when_empty = "answers: []",
};

int mock_read(struct mock *m, const char *text, size_t n, struct err *e)
{
	AUTO(mock_done) struct mock next = { 0 };
	struct err unused;

	/* JSON is YAML too; but a folder is long, and nobody needs its lines. */
	if (n > 0 && text[0] == '{' &&
	    doc_json(&kind, &next.arena, &next, (struct span){ text, n }, &unused) < 0)
		mock_done(&next);
	if (!next.answers.at && !next.files.at &&
	    doc_yaml(&kind, &next.arena, &next, (struct span){ text, n }, e) < 0)
		return -1;
	*m = next;
	next = (struct mock){ 0 };
	return 0;
}

void mock_done(struct mock *m)
{
	for (size_t i = 0; i < m->answers.len; i++)
		vec_done(&m->answers.at[i].headers);
	for (size_t i = 0; i < m->files.len; i++)
		vec_done(&m->files.at[i].answer.headers);
	vec_done(&m->answers);
	vec_done(&m->files);
	arena_done(&m->arena);
	*m = (struct mock){ 0 };
}

/* Whoever answers GET answers HEAD too. */
static bool has_method(const struct mock_answer *a, const char *method)
{
	return !a->method || strcmp(a->method, method) == 0 ||
	       (strcmp(a->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

/* Every spelling of a path leads to its file: what has two meanings was refused before. */
static const struct mock_answer *file_find(const struct mock *m, const char *method,
                                           const char *path)
{
	static struct text_pair allow = { "Allow", "GET, HEAD" };
	static const struct mock_answer no_method = { .status = 405,
		                                      .headers = { &allow, 1, 1 },
		                                      .body = "" };
	char name[PATH_TEXT_MAX + 1];
	struct err unused;

	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return &no_method;
	int n = url_decode(URL_SEGMENT, span_of(path), name, sizeof name, &unused);

	if (n <= 0)
		return NULL; /* longer than any of ours */
	const char *rest = name[n - 1] == '/' ? "index.html" : "";

	for (size_t i = 0; i < m->files.len; i++)
		if (strncmp(m->files.at[i].path, name, (size_t)n) == 0 &&
		    strcmp(m->files.at[i].path + n, rest) == 0)
			return &m->files.at[i].answer;
	return NULL;
}

const struct mock_answer *mock_find(const struct mock *m, const char *method, const char *path)
{
	for (size_t i = 0; i < m->answers.len; i++) {
		const struct mock_answer *a = &m->answers.at[i];

		if (has_method(a, method) && (!a->path || path_matches(a->path, path)))
			return a;
	}
	return m->files.len > 0 ? file_find(m, method, path) : NULL;
}
