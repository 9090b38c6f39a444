/*
 * batch.c - several operations in one call, in order, each with its own result.
 *
 * Atomic: the first that fails undoes the ones before, and the answer is its error.
 */
#include "tree/fail.h"
#include "tree/json.h"
#include "tree/limits.h"
#include "tree/ops.h"
#include "tree/undo.h"
#include "tree/verbs.h"

struct step {
	struct span op;
	const char *path;
	struct span text, match;
	struct edit_args edit;
	uint32_t mode, first, count, line_max;
	bool only_new, recursive, with_hash;
	bool has_mode;
	struct undo *undo;
};

static int do_stat(struct call *c, const struct step *s, json_t **out, struct err *e)
{
	return op_stat(c, s->path, s->with_hash, out, e);
}

static int do_read(struct call *c, const struct step *s, json_t **out, struct err *e)
{
	const struct lines_args args = { s->path, s->first, s->count, s->line_max };

	return op_lines(c, &args, out, e);
}

static int do_write(struct call *c, const struct step *s, json_t **out, struct err *e)
{
	const struct replace_how how = { .path = s->path,
		                         .match = s->match.at,
		                         .only_new = s->only_new,
		                         .has_mode = s->has_mode,
		                         .mode = s->mode,
		                         .undo = s->undo };

	if (!s->text.at)
		return fail(e, TREE_INVALID, "text or text_base64: missing");
	return op_write(c, how, s->text, out, e);
}

static int do_edit(struct call *c, const struct step *s, json_t **out, struct err *e)
{
	struct edit_args args = s->edit;

	args.path = s->path;
	args.match = s->match.at;
	args.undo = s->undo;
	return op_edit(c, &args, out, e);
}

static int do_delete(struct call *c, const struct step *s, json_t **out, struct err *e)
{
	const struct delete_args args = { s->path, s->match.at, s->recursive, s->undo };

	return op_delete(c, &args, out, e);
}

#define AT(member) offsetof(struct step, member)
/* clang-format off */
#define OP_PATH { "op", AT(op), FIELD_TEXT, true }, { "path", AT(path), FIELD_PATH, true }

static const struct field stat_fields[] = {
	OP_PATH,
	{ "hash", AT(with_hash), FIELD_BOOL, false },
};
static const struct field read_fields[] = {
	OP_PATH,
	{ "first", AT(first), FIELD_COUNT, false },
	{ "count", AT(count), FIELD_COUNT, false },
	{ "line_max", AT(line_max), FIELD_COUNT, false },
};
static const struct field write_fields[] = {
	OP_PATH,
	{ "text", AT(text), FIELD_BYTES, false },
	{ "mode", AT(mode), FIELD_MODE, false },
	{ "if_match", AT(match), FIELD_TEXT, false },
	{ "only_new", AT(only_new), FIELD_BOOL, false },
};
static const struct field edit_fields[] = {
	OP_PATH,
	{ "edits", AT(edit.edits), FIELD_ANY, false },
	{ "insert", AT(edit.insert), FIELD_ANY, false },
	{ "unified", AT(edit.unified), FIELD_BYTES, false },
	{ "if_match", AT(match), FIELD_TEXT, false },
};
static const struct field delete_fields[] = {
	OP_PATH,
	{ "recursive", AT(recursive), FIELD_BOOL, false },
	{ "if_match", AT(match), FIELD_TEXT, false },
};

static const struct {
	const char *name;
	struct fields fields;
	int (*run)(struct call *c, const struct step *s, json_t **out, struct err *e);
} ops[] = {
	{ "stat",   { stat_fields, COUNT(stat_fields) }, do_stat },
	{ "read",   { read_fields, COUNT(read_fields) }, do_read },
	{ "write",  { write_fields, COUNT(write_fields) }, do_write },
	{ "edit",   { edit_fields, COUNT(edit_fields) }, do_edit },
	{ "delete", { delete_fields, COUNT(delete_fields) }, do_delete },
};
/* clang-format on */

static int run(struct call *c, const json_t *from, struct undo *undo, json_t **out, struct err *e)
{
	const char *name = json_string_value(json_object_get(from, "op"));
	struct step s = { .undo = undo };
	char path[PATH_TEXT_MAX];
	size_t i = 0;

	while (name && i < COUNT(ops) && strcmp(ops[i].name, name) != 0)
		i++;
	if (!name || i == COUNT(ops))
		return fail(e, TREE_INVALID, "op: one of read, write, edit, delete, stat");
	s.has_mode = json_object_get(from, "mode");
	if (json_read(from, ops[i].fields, &s, &c->arena, e) < 0 ||
	    root_join(c->path, s.path, path, e) < 0)
		return -1;
	s.path = path;
	return ops[i].run(c, &s, out, e);
}

/* Adds {"ok":…} or {"error":…}; -1 only when the whole batch must end. */
static int run_one(struct call *c, const json_t *from, struct undo *undo, json_t *results,
                   struct err *e)
{
	json_t *item = json_object(), *ok = NULL;

	json_add(results, item);
	json_drop(&c->detail);
	if (run(c, from, undo, &ok, e) == 0) {
		json_put(item, "ok", ok);
		return 0;
	}
	if (undo)
		return err_wrap(e, "operation %zu", json_array_size(results) - 1);
	json_put(item, "error", json_error(e, c->detail));
	json_drop(&c->detail);
	return 0;
}

int verb_batch(struct call *c, struct err *e)
{
	AUTO(undo_done) struct undo log = { 0 };
	struct undo *undo = c->flags & TREE_ATOMIC ? &log : NULL;
	AUTO(json_drop) json_t *body = call_body_json(c, e);
	AUTO(json_drop) json_t *results = json_array();
	size_t n = json_array_size(body);

	if (!body)
		return -1;
	if (!json_is_array(body) || n > TREE_OPS_MAX)
		return fail(e, TREE_INVALID, "a list of at most %d operations", TREE_OPS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (call_check(c, e) < 0 ||
		    run_one(c, json_array_get(body, i), undo, results, e) < 0)
			return -1;
	}
	if (undo)
		undo_commit(undo);
	return call_answer(c, results, e);
}
