/*
 * verb_approve.c - what waits for a person: shown (approvals), and decided (approve).
 *
 * What is shown comes from sandboxes and is escaped. A decision is read from a terminal, or said in
 * words on the command line; input that is no terminal decides nothing.
 */
#include <time.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/verbs.h"
#include "wire/escape.h"
#include "wire/hash.h"
#include "wire/tree.h"

#define PATH_BYTES_MAX 8192
#define TEXT_MAX (64u << 20)

static void add_line(struct str *out, const char *name, const char *text)
{
	if (!*text)
		return;
	str_addf(out, "  %-9s ", name);
	escape_text(text, out);
	str_add(out, "\n");
}

/* "in 4m", of a moment by the clock that is still to come. */
static struct brief brief_left(int64_t until_ms)
{
	struct brief now = brief_age(until_ms);
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	int64_t left = until_ms - ((int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000);

	return left > 0 ? brief_duration((uint64_t)left) : now;
}

/* ---- approvals ------------------------------------------------------------------------ */

struct approvals_opts {
	struct verb_opts common;
	bool is_followed, is_all;
	const char *state, *kind, *sandbox, *workspace;
};

struct rows {
	const struct approvals_opts *opts;
	struct table table;
};

static const char *const heads[] = { "APPROVAL", "STATE", "KIND", "FIRST SEEN",
	                             "LEFT",     "WHO",   "WHAT", NULL };

static const char *who_of(const json_t *row)
{
	const char *sandbox = text_of(row, "sandbox"), *workspace = text_of(row, "workspace");

	return *sandbox ? sandbox : workspace;
}

static bool is_pending(const json_t *row)
{
	return strcmp(text_of(row, "state"), "pending") == 0;
}

static int print_line(const json_t *row, struct err *e)
{
	AUTO(str_done) struct str text = { .max = 65536 };
	const char *actor = text_of(row, "actor"), *reason = text_of(row, "reason");

	str_addf(&text, "%s  %-9s %-8s %s  ", text_of(row, "id"), text_of(row, "state"),
	         text_of(row, "kind"), who_of(row));
	escape_text(text_of(row, "what"), &text);
	if (*actor || *reason) {
		str_add(&text, "  (");
		escape_text(*actor ? actor : reason, &text);
		str_addf(&text, "%s%s)", *actor ? ", " : "", *actor ? text_of(row, "scope") : "");
	}
	str_add(&text, "\n");
	return print_text(&text, e);
}

static int take_row(void *arg, const json_t *row, struct err *e)
{
	struct rows *r = arg;

	if (r->opts->common.is_json)
		return print_json(json_deep_copy(row), e);
	if (r->opts->is_followed)
		return print_line(row, e);
	table_cell(&r->table, text_of(row, "id"));
	table_cell(&r->table, text_of(row, "state"));
	table_cell(&r->table, text_of(row, "kind"));
	table_cell(&r->table, brief_age(number_of(row, "created_ms")).text);
	table_cell(&r->table, is_pending(row) ? brief_left(number_of(row, "until_ms")).text : NULL);
	table_cell(&r->table, who_of(row));
	table_cell(&r->table, text_of(row, "what"));
	return 0;
}

static void make_path(const struct approvals_opts *x, struct str *path)
{
	const char *state = x->state ? x->state : x->is_all ? NULL : "pending";
	const struct {
		const char *pattern, *value;
	} filters[] = { { "state={}&", state },
		        { "kind={}&", x->kind },
		        { "sandbox={}&", x->sandbox },
		        { "workspace={}&", x->workspace } };

	str_add(path, "/v1/approvals?");
	for (size_t i = 0; i < COUNT(filters); i++)
		if (filters[i].value)
			client_path(path, filters[i].pattern, &filters[i].value);
	str_add(path, x->is_followed ? "follow=1" : "limit=100");
}

static int approvals_run(struct verb_call *c, struct err *e)
{
	const struct approvals_opts *x = c->opts;
	struct rows rows = { .opts = x };
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(str_done) struct str text = { .max = TEXT_MAX };
	AUTO(json_decrefp) json_t *list = NULL;
	const json_t *row;
	size_t i;

	if (x->is_all && x->state)
		return err_new(e, ERR_INVALID, "--all or --state, not both");
	make_path(x, &path);
	if (x->is_followed)
		return fetch_lines(&c->client, str_text(&path), take_row, &rows, e);
	if (fetch_list(&c->client, str_text(&path), "approvals", &list, e) < 0)
		return -1;
	table_init(&rows.table, heads);
	int r = 0;

	json_array_foreach(list, i, row) r = r < 0 ? r : take_row(&rows, row, e);
	if (r == 0 && !x->common.is_json) {
		table_print(&rows.table, terminal_width(), &text);
		r = print_text(&text, e);
	}
	table_clear(&rows.table);
	return r;
}

/* clang-format off */
static const struct flag approvals_flags[] = {
	{ 'f',  FLAG_SWITCH, "follow",    offsetof(struct approvals_opts, is_followed), NULL, "then every change, as it comes", NULL },
	{ '\0', FLAG_SWITCH, "all",       offsetof(struct approvals_opts, is_all), NULL, "also what was decided, expired or withdrawn", NULL },
	{ '\0', FLAG_TEXT,   "state",     offsetof(struct approvals_opts, state), "STATE", "only these", "pending allowed denied expired withdrawn" },
	{ '\0', FLAG_TEXT,   "kind",      offsetof(struct approvals_opts, kind), "KIND", "only these", "net policy push publish apply secret command wall" },
	{ '\0', FLAG_TEXT,   "sandbox",   offsetof(struct approvals_opts, sandbox), "SANDBOX", "only of this sandbox", NULL },
	{ '\0', FLAG_TEXT,   "workspace", offsetof(struct approvals_opts, workspace), "WS", "only of this workspace", NULL },
	{ '\0', FLAG_SWITCH, "json",      offsetof(struct verb_opts, is_json), NULL, "the API's objects, one on a line", NULL },
};
/* clang-format on */

const struct verb cmd_approvals = { .name = "approvals",
	                            .usage = "[-f] [--all] [options]",
	                            .does = "what waits for a person",
	                            .more =
	                                "Decided with caisson approve. No answer in time is a no.",
	                            .flags = approvals_flags,
	                            .n_flags = COUNT(approvals_flags),
	                            .opts_size = sizeof(struct approvals_opts),
	                            .run = approvals_run };

/* ---- approve -------------------------------------------------------------------------- */

struct approve_opts {
	struct verb_opts common;
	bool is_allowed, is_denied;
	const char *scope, *for_text, *note, *seen;
};

static int decide(struct verb_call *c, const char *id, json_t *body, struct err *e)
{
	const struct approve_opts *x = c->opts;
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *row = NULL;

	client_path(&path, "/v1/approvals/{}", &id);
	if (client_call(&c->client, "POST", str_text(&path), body, &row, e) < 0)
		return -1;
	return x->common.is_json ? print_json(json_incref(row), e) : print_line(row, e);
}

static void set_text(json_t *body, const char *key, const char *text)
{
	if (text)
		json_object_set_new(body, key, json_string(text));
}

static int decide_said(struct verb_call *c, const char *id, struct err *e)
{
	const struct approve_opts *x = c->opts;
	json_t *body = json_pack("{ss}", "decision", x->is_allowed ? "allow" : "deny");

	set_text(body, "scope", x->scope);
	set_text(body, "for", x->for_text);
	set_text(body, "note", x->note);
	set_text(body, "seen", x->seen);
	return decide(c, id, body, e);
}

/* The whole text of a question whose line is cut, or NULL. */
static const char *whole_of(const json_t *row)
{
	return json_string_value(json_object_get(json_object_get(row, "detail"), "what"));
}

/* A line that is cut and whose rest nobody has is no question that a person can say yes to. */
static bool can_be_allowed(const json_t *row)
{
	return !json_is_true(json_object_get(json_object_get(row, "detail"), "cut")) ||
	       whole_of(row);
}

static void add_what(struct str *out, const json_t *row)
{
	const json_t *lines = json_object_get(json_object_get(row, "detail"), "difference"), *line;
	size_t i;

	if (json_array_size(lines) == 0) {
		add_line(out, "what", whole_of(row) ? whole_of(row) : text_of(row, "what"));
		return;
	}
	add_line(out, "what", "change the rules of its network:");
	json_array_foreach(lines, i, line) add_line(out, "", json_string_value(line));
}

/* Prints a screen at a time: the question comes after the last of it, and nothing of it has left
 * the screen unseen. False: the terminal is gone. */
static bool print_pages(const struct str *text, struct err *e)
{
	size_t height = terminal_height(), width = terminal_width(), used = 0;
	char line[64];

	for (const char *at = str_text(text); *at;) {
		size_t n = strcspn(at, "\n"), rows = width ? n / width + 1 : 1;

		if (height > 2 && used > 0 && used + rows > height - 2) {
			fprintf(stderr, "-- Enter shows more --");
			if (fflush(stdout) != 0 || !fgets(line, sizeof line, stdin))
				return false;
			used = 0;
		}
		struct str one = { .data = (char *)(uintptr_t)at, .len = n + (at[n] == '\n') };

		if (print_text(&one, e) < 0)
			return false;
		used += rows;
		at += one.len;
	}
	return true;
}

/* Files of an apply, by reason and whole: `what` may be cut. */
static void add_files(struct str *out, const json_t *files)
{
	const json_t *file, *other;
	size_t i, k;

	json_array_foreach(files, i, file)
	{
		bool is_first = true;

		for (k = 0; k < i && is_first; k++)
			is_first = strcmp(text_of(json_array_get(files, k), "why"),
			                  text_of(file, "why")) != 0;
		if (!is_first)
			continue;
		add_line(out, "because", text_of(file, "why"));
		json_array_foreach(files, k, other)
		{
			if (strcmp(text_of(other, "why"), text_of(file, "why")) == 0)
				add_line(out, "", text_of(other, "path"));
		}
	}
}

/* 1: the terminal is gone. */
static int show(const json_t *row, struct err *e)
{
	AUTO(str_done) struct str text = { .max = 1u << 20 };
	AUTO(str_done) struct str who = { .max = 4096 };

	str_addf(&who, "%s %s %s", text_of(row, "sandbox"), text_of(row, "workspace"),
	         text_of(row, "process"));
	if (strcmp(text_of(row, "tenant"), "local") != 0)
		str_addf(&who, " of tenant %s", text_of(row, "tenant"));
	str_addf(&text, "%s  %s\n", text_of(row, "id"), text_of(row, "kind"));
	add_line(&text, "who", str_text(&who));
	add_what(&text, row);
	add_files(&text, json_object_get(json_object_get(row, "detail"), "files"));
	add_line(&text, "why", text_of(row, "why"));
	str_addf(&text, "  %-9s %s ago, denied in %s\n", "seen",
	         brief_age(number_of(row, "created_ms")).text,
	         brief_left(number_of(row, "until_ms")).text);
	add_line(&text, "instead", text_of(row, "suggestion"));
	if (!can_be_allowed(row))
		add_line(&text, "cut", "too long to be shown whole: it can only be denied");
	if (text.overflow)
		return err_new(e, ERR_LIMIT, "%s is too long for a terminal", text_of(row, "id"));
	return print_pages(&text, e) ? 0 : e->kind ? -1 : 1;
}

static const struct choice {
	char letter;
	const char *decision, *scope; /* NULL: none is made */
} choices[] = {
	{ 'a', "allow", "once" }, { 's', "allow", "sandbox" }, { 'w', "allow", "workspace" },
	{ 'd', "deny", "once" },  { 'n', NULL, NULL },         { 'q', NULL, NULL },
};

/* NULL: the terminal is gone. */
static const struct choice *ask(bool is_whole)
{
	char line[64];

	for (;;) {
		fprintf(stderr, "%s[d]eny, [n]ext, [q]uit? ",
		        is_whole ? "[a]llow once, for this [s]andbox, for this [w]orkspace, " : "");
		if (!fgets(line, sizeof line, stdin))
			return NULL;
		for (size_t i = 0; i < COUNT(choices); i++)
			if (line[0] == choices[i].letter && (line[1] == '\n' || !line[1]) &&
			    (is_whole || !choices[i].decision ||
			     strcmp(choices[i].decision, "allow") != 0))
				return &choices[i];
	}
}

/* Proves to the daemon that the whole was on this screen. */
static void set_seen(json_t *body, const json_t *row)
{
	char sum[TREE_HASH_TEXT];

	if (!whole_of(row))
		return;
	hash_of(span_of(whole_of(row)), sum);
	set_text(body, "seen", sum);
}

/* 1: on to the next, 0: enough. What the daemon refuses is said, and the list goes on: it may be
 * too late, or the scope may make no sense. */
static int ask_about(struct verb_call *c, const json_t *row, struct err *e)
{
	const struct approve_opts *x = c->opts;

	int r = show(row, e);

	if (r != 0)
		return r < 0 ? -1 : 0;
	const struct choice *choice = ask(can_be_allowed(row));

	if (!choice || choice->letter == 'q')
		return 0;
	if (!choice->decision)
		return 1;
	json_t *body = json_pack("{ss,ss}", "decision", choice->decision, "scope", choice->scope);

	if (strcmp(choice->scope, "once") != 0)
		set_text(body, "for", x->for_text);
	set_text(body, "note", x->note);
	set_seen(body, row);
	if (decide(c, text_of(row, "id"), body, e) == 0)
		return 1;
	if (!c->client.problem)
		return -1;
	fprintf(stderr, "%s\n", e->msg);
	return 1;
}

static int ask_all(struct verb_call *c, struct err *e)
{
	AUTO(json_decrefp) json_t *list = NULL;

	if (fetch_list(&c->client, "/v1/approvals?state=pending&limit=100", "approvals", &list, e) <
	    0)
		return -1;
	if (json_array_size(list) == 0)
		fprintf(stderr, "nothing waits\n");
	for (size_t i = json_array_size(list); i > 0; i--) { /* the oldest first */
		int r = ask_about(c, json_array_get(list, i - 1), e);

		if (r <= 0)
			return r;
	}
	return 0;
}

static int ask_one(struct verb_call *c, const char *id, struct err *e)
{
	AUTO(str_done) struct str path = { .max = PATH_BYTES_MAX };
	AUTO(json_decrefp) json_t *row = NULL;

	client_path(&path, "/v1/approvals/{}", &id);
	if (client_call(&c->client, "GET", str_text(&path), NULL, &row, e) < 0)
		return -1;
	if (!is_pending(row)) {
		(void)!print_line(row, e);
		return err_new(e, ERR_INVALID, "it is %s", text_of(row, "state"));
	}
	return ask_about(c, row, e) < 0 ? -1 : 0;
}

static int approve_run(struct verb_call *c, struct err *e)
{
	const struct approve_opts *x = c->opts;
	const char *id = c->words.n > 0 ? c->words.at[0] : NULL;

	if (x->is_allowed && x->is_denied)
		return err_new(e, ERR_INVALID, "--allow or --deny, not both");
	if (x->is_allowed || x->is_denied)
		return id ? decide_said(c, id, e)
		          : err_new(e, ERR_INVALID, "which one? caisson approvals lists them");
	if (x->scope || x->seen)
		return err_new(e, ERR_INVALID, "--scope and --seen go with --allow or --deny");
	if (!isatty(STDIN_FILENO))
		return err_new(e, ERR_INVALID,
		               "the input is no terminal: --allow or --deny has to be said");
	return id ? ask_one(c, id, e) : ask_all(c, e);
}

/* clang-format off */
static const struct flag approve_flags[] = {
	{ '\0', FLAG_SWITCH, "allow", offsetof(struct approve_opts, is_allowed), NULL, "say yes", NULL },
	{ '\0', FLAG_SWITCH, "deny",  offsetof(struct approve_opts, is_denied), NULL, "say no", NULL },
	{ '\0', FLAG_TEXT,   "scope", offsetof(struct approve_opts, scope), "SCOPE", "for what: once unless given", "once sandbox workspace" },
	{ '\0', FLAG_TEXT,   "for",   offsetof(struct approve_opts, for_text), "TIME", "how long that stands for a sandbox or workspace: 10m, 8h; a day unless given", NULL },
	{ '\0', FLAG_TEXT,   "note",  offsetof(struct approve_opts, note), "TEXT", "for the record", NULL },
	{ '\0', FLAG_TEXT,   "seen",  offsetof(struct approve_opts, seen), "SHA256", "with --allow, of a question that is cut: the hash of detail.what", NULL },
	{ '\0', FLAG_SWITCH, "json",  offsetof(struct verb_opts, is_json), NULL, "print the API's object", NULL },
};
/* clang-format on */

const struct verb cmd_approve = {
	.name = "approve",
	.usage = "[APPROVAL [--allow|--deny] [--scope SCOPE] [--for TIME]]",
	.does = "decide what waits for a person",
	.more = "Without --allow or --deny it shows who asks for what and why, and asks here. A "
		"decision that comes too late changes nothing, and exit status 1 says so.",
	.flags = approve_flags,
	.n_flags = COUNT(approve_flags),
	.opts_size = sizeof(struct approve_opts),
	.words_max = 1,
	.run = approve_run
};
