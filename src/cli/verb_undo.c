/*
 * verb_undo.c - the points of a workspace: snap, restore, undo, redo, history, diff.
 */
#include "cli/verbs.h"

#include <unistd.h>

#include "cli/table.h"
#include "wire/escape.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (64u << 20)

static int put_text(json_t *o, const char *key, const char *text, struct err *e)
{
	if (text && json_object_set_new(o, key, json_string(text)) < 0)
		return err_new(e, ERR_INVALID, "%s: not UTF-8", key);
	return 0;
}

/* ---- snap ---------------------------------------------------------------------------- */

struct snap {
	struct verb_opts common;
	const char *label;
};

static int snap_run(struct verb_call *c, struct err *e)
{
	const struct snap *x = c->opts;
	AUTO(json_decrefp) json_t *point = NULL;
	AUTO(str_done) struct str out = { .max = 256 };
	json_t *body = json_object();

	if (put_text(body, "label", x->label, e) < 0) {
		json_decref(body);
		return -1;
	}
	if (sandbox_call(c, "POST", "/v1/workspaces/{}/snapshots", body, &point, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(point), e);
	str_addf(&out, "%s\n", text_of(point, "id"));
	return print_text(&out, e);
}

static const struct flag snap_flags[] = {
	{ 'm', FLAG_TEXT, "label", offsetof(struct snap, label), "TEXT", "to know it by", NULL },
	FLAG_JSON,
};

const struct verb cmd_snap = { .name = "snap",
	                       .usage = "WORKSPACE [-m TEXT]",
	                       .does = "keep what a workspace is now; prints the snapshot's id",
	                       .flags = snap_flags,
	                       .n_flags = COUNT(snap_flags),
	                       .words = "workspace",
	                       .opts_size = sizeof(struct snap),
	                       .words_min = 1,
	                       .words_max = 1,
	                       .run = snap_run };

/* ---- undo, redo, restore ------------------------------------------------------------- */

struct undo {
	struct verb_opts common;
	struct flag_number steps;
	const char *to;
	bool may_end;
};

static int undo_run(struct verb_call *c, struct err *e)
{
	const struct undo *x = c->opts;
	AUTO(json_decrefp) json_t *done = NULL;
	AUTO(str_done) struct str out = { .max = 256 };
	AUTO(str_done) struct str pattern = { .max = 64 };
	json_t *body = json_object();

	if (x->steps.is_set)
		json_object_set_new(body, "steps", json_integer((json_int_t)x->steps.value));
	if (x->may_end)
		json_object_set_new(body, "processes", json_string("kill"));
	if (put_text(body, "to", c->words.n > 1 ? c->words.at[1] : x->to, e) < 0) {
		json_decref(body);
		return -1;
	}
	str_addf(&pattern, "/v1/workspaces/{}/%s", c->verb->name);
	c->client.doing = c->verb->name;
	if (sandbox_call(c, "POST", str_text(&pattern), body, &done, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(done), e);
	str_addf(&out, "%s, %lld files\n", text_of(done, "to"),
	         (long long)number_of(done, "files"));
	return print_text(&out, e);
}

/* clang-format off */
static const struct flag undo_flags[] = {
	{ 'n',  FLAG_NUMBER, "steps", offsetof(struct undo, steps), "N", "so many steps (1)", NULL },
	{ '\0', FLAG_TEXT,   "to",    offsetof(struct undo, to), "PROCESS", "this command and all after it", NULL },
	{ '\0', FLAG_SWITCH, "kill",  offsetof(struct undo, may_end), NULL, "end processes that are in the way of a large change", NULL },
	FLAG_JSON,
};
static const struct flag redo_flags[] = {
	{ 'n',  FLAG_NUMBER, "steps", offsetof(struct undo, steps), "N", "so many steps (1)", NULL },
	{ '\0', FLAG_SWITCH, "kill",  offsetof(struct undo, may_end), NULL, "end processes that are in the way of a large change", NULL },
	FLAG_JSON,
};
static const struct flag restore_flags[] = {
	{ '\0', FLAG_SWITCH, "kill",  offsetof(struct undo, may_end), NULL, "end processes that are in the way of a large change", NULL },
	FLAG_JSON,
};
/* clang-format on */

const struct verb cmd_undo = { .name = "undo",
	                       .usage = "WORKSPACE [-n N | --to PROCESS]",
	                       .does = "back to what a workspace was before its last command",
	                       .more =
	                           "Whatever the command did to the tree: removed, rewritten, "
	                           "installed. What is there now "
	                           "is kept, for redo. Processes go on; they see the files change.",
	                       .flags = undo_flags,
	                       .n_flags = COUNT(undo_flags),
	                       .words = "workspace",
	                       .opts_size = sizeof(struct undo),
	                       .words_min = 1,
	                       .words_max = 1,
	                       .run = undo_run };

const struct verb cmd_redo = { .name = "redo",
	                       .usage = "WORKSPACE [-n N]",
	                       .does = "what was undone, done again",
	                       .flags = redo_flags,
	                       .n_flags = COUNT(redo_flags),
	                       .words = "workspace",
	                       .opts_size = sizeof(struct undo),
	                       .words_min = 1,
	                       .words_max = 1,
	                       .run = undo_run };

const struct verb cmd_restore = {
	.name = "restore",
	.usage = "WORKSPACE POINT",
	.does = "a workspace as it was at a point of its history, or a snapshot",
	.more = "POINT is cp_..., sn_..., px_... (as the command left it) or base.",
	.flags = restore_flags,
	.n_flags = COUNT(restore_flags),
	.words = "workspace",
	.opts_size = sizeof(struct undo),
	.words_min = 2,
	.words_max = 2,
	.run = undo_run
};

/* ---- history ------------------------------------------------------------------------- */

struct history {
	struct verb_opts common;
	struct flag_number limit;
};

/* "pytest -q", or what made it if no command did. */
static void add_cmd(struct table *t, const json_t *p)
{
	AUTO(str_done) struct str line = { .max = 512 };
	json_t *cmd = json_object_get(p, "cmd"), *word;
	size_t i;

	json_array_foreach(cmd, i, word)
	{
		str_addf(&line, "%s%.400s", i ? " " : "", json_string_value(word));
	}
	table_cell(t, line.len > 0 ? str_text(&line) : text_of(p, "label"));
}

static void add_point(struct table *t, const json_t *p, const char *head)
{
	const char *id = text_of(p, "id");
	bool is_current = json_is_true(json_object_get(p, "current"));

	table_cell(t, strcmp(id, head) == 0 ? "*" : is_current ? "" : "undone");
	table_cell(t, id);
	table_cell(t, text_of(p, "kind"));
	table_cellf(t, "%lld", (long long)number_of(p, "files"));
	table_cell(t, brief_bytes((uint64_t)number_of(p, "bytes")).text);
	table_cell(t, brief_age(number_of(p, "created_ms")).text);
	table_cell(t, text_of(p, "process"));
	add_cmd(t, p);
}

static int history_run(struct verb_call *c, struct err *e)
{
	static const char *const heads[] = { "",    "POINT",   "KIND", "FILES", "BYTES",
		                             "AGE", "PROCESS", "WHAT", NULL };
	const struct history *x = c->opts;
	char limit[32];
	const char *texts[] = { c->words.at[0], limit };
	AUTO(table_clear) struct table t;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *p;
	size_t i;

	snprintf(limit, sizeof limit, "%llu",
	         x->limit.is_set ? (unsigned long long)x->limit.value : 100ull);
	table_init(&t, heads);
	client_path(&path, "/v1/workspaces/{}/history?limit={}", texts);
	if (client_call(&c->client, "GET", str_text(&path), NULL, &all, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(all), e);
	json_array_foreach(json_object_get(all, "points"), i, p)
	    add_point(&t, p, text_of(all, "head"));
	table_print(&t, terminal_width(), &out);
	return print_text(&out, e);
}

static const struct flag history_flags[] = {
	{ 'n', FLAG_NUMBER, "limit", offsetof(struct history, limit), "N", "the last N (100)",
	  NULL },
	FLAG_JSON,
};

const struct verb cmd_history = { .name = "history",
	                          .usage = "WORKSPACE [-n N]",
	                          .does = "what changed a workspace, the newest first",
	                          .flags = history_flags,
	                          .n_flags = COUNT(history_flags),
	                          .words = "workspace",
	                          .opts_size = sizeof(struct history),
	                          .words_min = 1,
	                          .words_max = 1,
	                          .run = history_run };

/* ---- diff ---------------------------------------------------------------------------- */

struct diff {
	struct verb_opts common;
	bool is_stat, is_patch, is_root;
};

static int print_files(const json_t *answer, struct err *e)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	json_t *f;
	size_t i;

	json_array_foreach(json_object_get(answer, "files"), i, f)
	{
		str_addf(&out, "%s ", text_of(f, "status"));
		if (text_of(f, "from")[0]) {
			escape_text(text_of(f, "from"), &out);
			str_add(&out, " -> ");
		}
		escape_text(text_of(f, "path"), &out);
		str_add(&out, "\n");
	}
	return print_text(&out, e);
}

static int print_counts(const json_t *answer, struct err *e)
{
	AUTO(str_done) struct str out = { .max = TEXT_MAX };
	const char *status;
	json_t *n;

	json_object_foreach(json_object_get(answer, "counts"), status, n)
	{
		escape_text(status, &out);
		str_addf(&out, " %lld\n", (long long)json_integer_value(n));
	}
	return print_text(&out, e);
}

static int diff_run(struct verb_call *c, struct err *e)
{
	const struct diff *x = c->opts;
	const char *texts[] = { c->words.at[0], c->words.n > 1 ? c->words.at[1] : "base",
		                c->words.n > 2 ? c->words.at[2] : "" };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *answer = NULL;

	client_path(&path,
	            c->words.n > 2 ? "/v1/workspaces/{}/changes?base={}&to={}"
	                           : "/v1/workspaces/{}/changes?base={}",
	            texts);
	str_add(&path, x->is_patch ? "&format=patch" : x->is_stat ? "&format=stat" : "");
	str_add(&path, x->is_root ? "&root=1" : "");
	if (x->is_patch) {
		const struct client_ask get = { .method = "GET", .path = str_text(&path) };

		return client_fetch(&c->client, &get, STDOUT_FILENO, e);
	}
	if (client_call(&c->client, "GET", str_text(&path), NULL, &answer, e) < 0)
		return -1;
	if (x->common.is_json)
		return print_json(json_incref(answer), e);
	return x->is_stat ? print_counts(answer, e) : print_files(answer, e);
}

static const struct flag diff_flags[] = {
	{ 'p', FLAG_SWITCH, "patch", offsetof(struct diff, is_patch), NULL,
	  "as a patch that git applies; the first POINT may be a commit, too", NULL },
	{ '\0', FLAG_SWITCH, "stat", offsetof(struct diff, is_stat), NULL, "only how many", NULL },
	{ '\0', FLAG_SWITCH, "root", offsetof(struct diff, is_root), NULL,
	  "of the root that its sandboxes share with --checkpoint all, not of its files", NULL },
	FLAG_JSON,
};

const struct verb cmd_diff = { .name = "diff",
	                       .usage = "WORKSPACE [POINT [POINT]] [--root] [--stat|-p]",
	                       .does = "which files differ, from the beginning or a point on",
	                       .more = "Up to now, or between two points.",
	                       .flags = diff_flags,
	                       .n_flags = COUNT(diff_flags),
	                       .words = "workspace",
	                       .opts_size = sizeof(struct diff),
	                       .words_min = 1,
	                       .words_max = 3,
	                       .run = diff_run };
