/*
 * edit.c - a file is changed where its text says so.
 */
#include "base/fd.h"
#include "tree/blob.h"
#include "tree/diff.h"
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/ops.h"
#include "tree/patchtext.h"
#include "tree/splice.h"
#include "tree/text.h"
#include "tree/verbs.h"
#include "wire/hash.h"

void op_detail_lines(struct call *c, const size_t *lines, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_add(list, json_integer((json_int_t)lines[i]));
	if (!c->detail)
		c->detail = json_object();
	json_put(c->detail, "lines", list);
}

static int read_edit(struct call *c, const json_t *from, struct splice_edit *out, struct err *e)
{
	static const struct field fields[] = {
		{ "old", offsetof(struct splice_edit, from), FIELD_BYTES, true },
		{ "new", offsetof(struct splice_edit, to), FIELD_BYTES, true },
		{ "all", offsetof(struct splice_edit, all), FIELD_BOOL, false },
	};

	if (json_read(from, (struct fields){ fields, COUNT(fields) }, out, &c->arena, e) < 0)
		return -1;
	if (out->from.len == out->to.len && memcmp(out->from.at, out->to.at, out->to.len) == 0)
		return fail(e, TREE_INVALID, "old and new are the same");
	return 0;
}

/* One after the other, each on what the one before has left. */
static int do_edits(struct call *c, const json_t *edits, struct span text, struct str *out,
                    struct splice_result *result, struct err *e)
{
	AUTO(str_done) struct str now = { .max = TREE_WHOLE_MAX };
	size_t n = json_array_size(edits);

	if (!json_is_array(edits) || n == 0 || n > TREE_EDITS_MAX)
		return fail(e, TREE_INVALID, "edits: a list of 1 to %d", TREE_EDITS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct splice_edit edit = { 0 };
		struct str last = now;
		struct span from = i == 0 ? text : (struct span){ str_text(&last), last.len };

		now = (struct str){ .max = TREE_WHOLE_MAX };
		int r = read_edit(c, json_array_get(edits, i), &edit, e);
		if (r == 0)
			r = splice_text(from, &edit, &now, result, e);
		str_done(&last);
		if (r < 0 && n > 1)
			return err_wrap(e, "edits[%zu]", i);
		if (r < 0 || call_check(c, e) < 0)
			return -1;
	}
	*out = now;
	now = (struct str){ 0 };
	return 0;
}

static int do_insert(struct call *c, const json_t *insert, struct span text, struct str *out,
                     struct err *e)
{
	struct {
		uint32_t line;
		struct span text;
	} args = { 0 };
	static const struct field fields[] = {
		{ "line", 0, FIELD_COUNT, true },
		{ "text", offsetof(__typeof__(args), text), FIELD_BYTES, true },
	};

	if (json_read(insert, (struct fields){ fields, COUNT(fields) }, &args, &c->arena, e) < 0)
		return err_wrap(e, "insert");
	return splice_lines(text, args.line, args.text, out, e);
}

static int do_unified(struct call *c, struct span patch, struct span text, struct str *out,
                      struct splice_result *result, struct err *e)
{
	AUTO(hunks_done) struct hunks hunks = { 0 };
	struct hunk_result applied = { 0 };

	if (patch_parse_hunks(&hunks, patch, e) < 0)
		return -1;
	int r = hunks_apply(text, &hunks, out, &applied, e);
	if (applied.n_lines > 0)
		op_detail_lines(c, applied.lines, applied.n_lines);
	result->by_eol = applied.by_eol;
	result->replaced = hunks.at.len;
	return r;
}

static int change(struct call *c, const struct edit_args *args, struct span text, struct str *out,
                  struct splice_result *result, struct err *e)
{
	int r;

	if (!!args->edits + !!args->insert + !!args->unified.at != 1)
		return fail(e, TREE_INVALID, "one of edits, insert, unified");
	if (has_nul(text))
		return fail(e, TREE_NOT_TEXT, "a file with NUL bytes is not edited as text");
	if (args->edits) {
		r = do_edits(c, args->edits, text, out, result, e);
		if (r < 0 && result->n_lines > 0)
			op_detail_lines(c, result->lines, result->n_lines);
		return r;
	}
	if (args->unified.at)
		return do_unified(c, args->unified, text, out, result, e);
	result->replaced = 0;
	return do_insert(c, args->insert, text, out, e);
}

static void add_diff(json_t *to, const char *path, struct span before, struct span after)
{
	AUTO(str_done) struct str diff = { .max = TREE_DIFF_MAX };

	path += path[0] == '/';
	str_add(&diff, "--- a/");
	str_add(&diff, path);
	str_add(&diff, "\n+++ b/");
	str_add(&diff, path);
	str_add(&diff, "\n");
	bool is_made = diff_add(before, after, &diff);
	if (is_made && !diff.overflow)
		json_put_bytes(to, "diff", (struct span){ str_text(&diff), diff.len });
	else
		json_put(to, "diff", json_null());
}

static int check_match(const struct edit_args *args, struct span text, struct err *e)
{
	char hash[TREE_HASH_TEXT];

	if (!args->match || !*args->match)
		return 0;
	hash_of(text, hash);
	if (strcmp(hash, args->match) != 0)
		return fail(e, TREE_STALE, "it has changed: its hash is %s", hash);
	return 0;
}

static json_t *changed(const char *path, struct span before, struct span after,
                       const struct splice_result *result)
{
	json_t *j = json_object();
	char hash[TREE_HASH_TEXT];

	hash_of(after, hash);
	json_put_bytes(j, "path", span_of(path));
	json_put_text(j, "hash", hash);
	json_put_number(j, "bytes", after.len);
	json_put_number(j, "replaced", result->replaced);
	json_put_text(j, "match", result->by_eol ? "eol" : "exact");
	add_diff(j, path, before, after);
	return j;
}

int op_edit(struct call *c, const struct edit_args *args, json_t **out, struct err *e)
{
	AUTO(blob_done) struct blob old = { 0 };
	AUTO(str_done) struct str text = { .max = TREE_WHOLE_MAX };
	struct splice_result result = { 0 };
	struct stat st;
	AUTO(fd_close) int fd = root_open_file(c->conn->root_fd, args->path, &st, e);

	if (fd < 0)
		return -1;
	if (blob_read(&old, fd, &st, TREE_WHOLE_MAX, e) < 0)
		return err_wrap(e, "%s", args->path);
	struct span before = blob_span(&old);
	if (check_match(args, before, e) < 0 || change(c, args, before, &text, &result, e) < 0)
		return err_wrap(e, "%s", args->path);
	struct span after = { str_text(&text), text.len };
	const struct replace_how how = {
		.root_fd = c->conn->root_fd, .path = args->path, .expect = &st, .undo = args->undo
	};
	if (replace_whole(&how, after, NULL, e) < 0)
		return -1;
	*out = changed(args->path, before, after, &result);
	return 0;
}

int verb_edit(struct call *c, struct err *e)
{
	struct edit_args args = { 0 };
	static const struct field fields[] = {
		{ "edits", offsetof(struct edit_args, edits), FIELD_ANY, false },
		{ "insert", offsetof(struct edit_args, insert), FIELD_ANY, false },
		{ "unified", offsetof(struct edit_args, unified), FIELD_BYTES, false },
	};
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	AUTO(json_drop) json_t *j = NULL;

	if (!body ||
	    json_read(body, (struct fields){ fields, COUNT(fields) }, &args, &c->arena, e) < 0)
		return -1;
	args.path = c->path;
	args.match = c->match;
	if (op_edit(c, &args, &j, e) < 0)
		return -1;
	return call_answer(c, j, e);
}
